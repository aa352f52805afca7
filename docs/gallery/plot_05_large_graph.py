"""
A graph of 20,000 nodes
=======================

Beyond 5,000 nodes the graph is not decomposed. The same estimator passes over it about a hundred times, and learns
from moments, with stated errors.
"""

# %%
# Sixteen noisy waves over points in a square; the phase is the input.

import matplotlib.pyplot as plt
import numpy as np

from spectralgp import Graph, GraphGPRegressor, Polynomial
from spectralgp.show.plots import plot_signal

rng = np.random.default_rng(0)
points = rng.random((20_000, 2))
graph = Graph.from_points(points, n_neighbors=8)
phases = rng.standard_normal((16, 1))
truth = np.sin(phases + 6 * points[:, 0])
signals = truth + 0.3 * rng.standard_normal(truth.shape)

model = GraphGPRegressor(graph, Polynomial(3), residual=None).fit(phases, signals)
fit = model.fits_[0]
print(f"noise variance {model.noise_variance_:.3f}, where 0.09 was drawn")
print(f"log likelihood {model.log_marginal_likelihood_:.0f}, truncation error {fit.truncation_error:.2g}, "
      f"standard error by probes {fit.probe_error:.2g}")  # fmt: skip

# %%
# A new wave is predicted from its phase alone.

mean = model.predict([[0.5]])[0]
new = np.sin(0.5 + 6 * points[:, 0])
error = np.sqrt(np.mean((mean - new) ** 2))
print(f"error {error:.2f}, where the wave varies by {np.std(new):.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
plot_signal(graph, signals[0], ax=left, node_size=2, colorbar_label="signal")
left.set_title("One of sixteen signals")
plot_signal(graph, mean, ax=right, node_size=2, colorbar_label="prediction")
right.set_title("Predicted at a new phase")
plt.show()
