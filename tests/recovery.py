"""Recovery of the paper's synthetic filters: independent signals on a sensor-type graph of 30 nodes, 10 dB noise."""

import numpy as np

from spectralgp.datasets import draw_filtered_signals, sensor_graph
from spectralgp.learning import Task, learn
from spectralgp.model.kernels import Polynomial
from spectralgp.model.spectra import decompose

# true coefficients, and the degree that is to recover them (the paper's section 6.1)
FILTERS = {
    "low-pass": ((1.0, -1.5, 1.5**2 / 2, -(1.5**3) / 6, 1.5**4 / 24), 2),
    "band-pass": ((0.0, 1.0, 4.0, 1.0, -6.0), 3),
}
# largest median error: with the noise variance given, and with it learnt
BARS = {"low-pass": (0.08, 0.25), "band-pass": (0.08, 0.10)}


def recovery_error(
    name: str, seed: int, *, graph_seed: int, give_noise: bool, prior: str | None = None, n_signals: int = 20
) -> float:
    """Relative L2 error of the learnt filter on the eigenvalues, after the best scalar."""
    graph = sensor_graph(30, np.random.default_rng(graph_seed))
    eigenvalues = decompose(graph, scaled=True).eigenvalues
    coefficients, degree = FILTERS[name]
    drawn = draw_filtered_signals(graph, coefficients, n_signals, np.random.default_rng(seed), snr=10.0)
    noise_variance = drawn.noise_variance if give_noise else None
    task = Task.of(graph, None, np.empty((n_signals, 0)), drawn.signals, noise_variance, prior)
    learnt = learn(task, Polynomial(degree)).model.graph_kernel.response(eigenvalues)
    truth = np.polynomial.polynomial.polyval(eigenvalues, coefficients)
    scalar = learnt @ truth / (learnt @ learnt)
    return float(np.linalg.norm(scalar * learnt - truth) / np.linalg.norm(truth))
