"""
Classes from a few labels
=========================

Papers that cite each other are mostly of one subject. Labels on one paper in forty predict the subjects of the
others, with calibrated probabilities.
"""

# %%
# A synthetic graph like one of citations: 200 papers of four subjects, of which each cites others at random,
# far more often in its own subject. Five papers of each subject have a label; None is no label.

import matplotlib.pyplot as plt
import numpy as np

from spectralgp import Graph, GraphGPClassifier

generator = np.random.default_rng(0)
subjects = np.repeat(["algebra", "biology", "history", "physics"], 50)
same = subjects[:, None] == subjects
cites = np.triu(generator.random((200, 200)) < np.where(same, 0.12, 0.03), 1)
graph = Graph((cites | cites.T).astype(float))

labels = np.full(200, None, dtype=object)
for subject in np.unique(subjects):
    chosen = generator.choice(np.flatnonzero(subjects == subject), 5, replace=False)
    labels[chosen] = subject

model = GraphGPClassifier(graph).fit(None, labels)
print(model.summary())

# %%
# How many of the others are right, and how many of those that the model is sure of?

others = np.equal(labels, None)
probabilities = model.predict_proba()[others]
right = model.predict()[others] == subjects[others]
sure = probabilities.max(axis=1) > 0.9
print(f"{right.mean():.0%} of {others.sum()} papers are right, {right[sure].mean():.0%} of {sure.sum()} sure ones")

# %%
# Probabilities of all papers, a row each, sorted by subject: blocks on the diagonal are right answers. Beside it,
# the share of right answers by confidence: on the diagonal probabilities are calibrated.

confidence = probabilities.max(axis=1)
edges = np.quantile(confidence, np.linspace(0, 1, 7))
places = np.clip(np.searchsorted(edges, confidence, side="right") - 1, 0, 5)
stated = np.array([confidence[places == place].mean() for place in range(6)])
found = np.array([right[places == place].mean() for place in range(6)])

figure, (left, beside) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
image = left.imshow(model.predict_proba(), aspect="auto", cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
left.set_xticks(range(4), model.classes_)
left.set(ylabel="paper, by subject", title="probability of each subject")
figure.colorbar(image, ax=left)
beside.plot([0.4, 1], [0.4, 1], color="0.7")
beside.plot(stated, found, "o-")
beside.set(xlabel="confidence", ylabel="share that is right", title="does it mean what it says?")
plt.show()
