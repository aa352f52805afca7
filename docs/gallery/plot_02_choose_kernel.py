"""
Choose a kernel, and read its filter
====================================

A graph kernel is a covariance between nodes. On the spectrum of the graph it is a filter: the strength of
smooth and of rough patterns. Which one fits the incomes of US states best?
"""

# %%
# Yearly changes of income, of each state relative to all, for 30 years. The signals have no inputs, so they
# are independent draws; each kernel is scored by the log density of each year given the others, in closed
# form.

import matplotlib.pyplot as plt
import numpy as np

from spectralgp import Diffusion, GraphGPRegressor, Identity, Polynomial, RegularizedLaplacian
from spectralgp.datasets import load_us_income
from spectralgp.show.plots import plot_filter

data = load_us_income()
changes = 100 * np.diff(data.relative_incomes, axis=0)[30:60]  # per cent

kernels = {
    "no graph": Identity(),
    "diffusion": Diffusion(),
    "regularised Laplacian": RegularizedLaplacian(),
    "learnt polynomial": Polynomial(3),
}
models = {
    name: GraphGPRegressor(data.graph, kernel, residual=None).fit(None, changes) for name, kernel in kernels.items()
}
densities = {name: np.mean(model.leave_one_out("signal").log_density) for name, model in models.items()}
for name, density in densities.items():
    print(f"{name:22} {density:8.2f} nats per year")

# %%
# Every kernel of the graph is better than the one without it. Their filters fall: patterns in
# which neighbours move together are stronger than those in which they move apart.

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
plot_filter(models, ax=ax, show_std=True)
ax.set_title("How strong patterns are, from smooth to rough")
plt.show()
