"""
Are intervals calibrated?
=========================

A prediction comes with a standard deviation. Held-out values show whether it is right.
"""

# %%
# Particulate matter at 50 stations: a tenth of 60 days is hidden at random, imputed, and compared.

import matplotlib.pyplot as plt
import numpy as np

from spectralgp import GraphGPRegressor, Polynomial
from spectralgp.datasets import load_air_quality
from spectralgp.scores import coverage
from spectralgp.show.plots import plot_calibration

data = load_air_quality()
measured = np.log(data.concentrations[:60])
days = np.arange(60.0)[:, None]
hidden = (np.random.default_rng(0).random(measured.shape) < 0.1) & np.isfinite(measured)
known = np.where(hidden, np.nan, measured)

model = GraphGPRegressor(data.graph, Polynomial(3)).fit(days, known)
completed, std = model.impute(days, known)
covered = coverage(measured[hidden], completed[hidden], std[hidden], 0.9)
print(f"{covered:.1%} of {hidden.sum()} values are inside their 90% intervals")

# %%
# Where the histogram is flat and the coverage on the diagonal, intervals are calibrated. Here the histogram is
# nearly flat. Errors have heavier tails than a Gaussian: a little more than half of them lie in its middle
# half, while few are far off.

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
plot_calibration(measured[hidden], completed[hidden], std[hidden], axes=axes)
plt.show()

# %%
# With half the standard deviation the histogram is a U, and the coverage far below the diagonal.

halved = coverage(measured[hidden], completed[hidden], std[hidden] / 2, 0.9)
print(f"{halved:.1%} with half the standard deviation")
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
plot_calibration(measured[hidden], completed[hidden], std[hidden] / 2, axes=axes)
plt.show()
