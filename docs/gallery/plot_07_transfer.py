"""
Take a model to another graph
=============================

A filter is a function of graph frequency, so it can be learnt on one graph and used on another.
"""

# %%
# Learn from 35 of the 50 stations. ``constraint="interval"`` keeps the polynomial non-negative between the
# eigenvalues too, where those of another graph may lie.

import matplotlib.pyplot as plt
import numpy as np

from spectralgp import Graph, GraphGPRegressor, Polynomial
from spectralgp.datasets import load_air_quality
from spectralgp.show.plots import plot_signal

data = load_air_quality()
signals = np.log(data.concentrations[:60])
days = np.arange(60.0)[:, None]
places = data.graph.coordinates
first = np.random.default_rng(0).permutation(50)[:35]

small = Graph.from_points(places[first], n_neighbors=5, metric="haversine")
learnt = GraphGPRegressor(
    small, Polynomial(3, constraint="interval"), center="global", scale="global"
).fit(days, signals[:, first])  # fmt: skip

# %%
# On the graph of all 50 the filters, the kernel of the inputs and the noise are kept. Signals known
# at 35 stations are imputed at the 15 others, which the model has never seen.

model = learnt.transfer(data.graph)
known = np.full(signals.shape, np.nan)
known[:, first] = signals[:, first]
filled, std = model.impute(days, known)
others = np.setdiff1d(np.arange(50), first)
observed = np.isfinite(signals[:, others])
error = np.sqrt(np.mean((filled - signals)[:, others][observed] ** 2))
daily = np.nanmean(known, axis=1, keepdims=True)
plain = np.sqrt(np.mean((daily - signals[:, others])[observed] ** 2))
print(f"error {error:.2f} at stations never seen; {plain:.2f} for the mean of each day")

# %%
# That is a little better than the mean of the day: the levels of stations that were never seen are not known.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
plot_signal(data.graph, signals[30], ax=left, aspect=1.6, colorbar_label="log of PM10")
left.set_title("Measured")
plot_signal(data.graph, known[30], imputed=filled[30], ax=right, aspect=1.6, colorbar_label="log of PM10")
right.set_title("Known at 35 stations, filled in at 15")
plt.show()
