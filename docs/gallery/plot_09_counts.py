"""
A rate from small counts
========================

Raw rates of small counties are mostly chance: one death in three hundred births is a high rate, and none is a
low one. A model of counts adds the information of a county's neighbours.
"""

# %%
# Sudden infant deaths in the counties of North Carolina, 1974 to 1978. Counts are Poisson with a rate per birth;
# logarithms of rates are the signal on the graph of neighbours.

import matplotlib.pyplot as plt
import numpy as np

from spectralgp import GraphGPRegressor, Polynomial
from spectralgp.datasets import load_sids

data = load_sids()
deaths, births = data.deaths[:1], data.births[:1] / 1000
model = GraphGPRegressor(data.graph, Polynomial(2), likelihood="poisson").fit(None, deaths, exposure=births)
rates = model.posterior_.imputed(np.arange(1)).mean / births
raw = deaths / births
for name, values in (("raw", raw), ("model", rates)):
    print(f"{name:5} rates go from {values.min():.1f} to {values.max():.1f} deaths per 1,000 births")

# %%
# The fewer births a county has, the more its rate is that of its surroundings. Every line is a county, from its
# raw rate to the model's.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for axis, values, title in ((axes[0], raw[0], "raw rates"), (axes[1], rates[0], "rates of the model")):
    points = axis.scatter(*data.graph.coordinates.T, c=values, s=60, cmap="viridis", vmin=0, vmax=5)
    axis.set(title=title, aspect=1.2)
    axis.set_axis_off()
figure.colorbar(points, ax=axes[:2], label="deaths per 1,000 births", orientation="horizontal", shrink=0.6)
axes[2].vlines(births[0], raw[0], rates[0], color="0.8", linewidth=1)
axes[2].plot(births[0], raw[0], ".", color="0.6", label="raw")
axes[2].plot(births[0], rates[0], ".", label="model")
axes[2].set(xscale="log", xlabel="births, in thousands", ylabel="deaths per 1,000 births")
axes[2].legend()
plt.show()
