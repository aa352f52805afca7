"""Smooth random fields that several benchmarks learn from."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from spectralgp import Chebyshev, Diffusion, Exact, Graph, graph_gp
from spectralgp.datasets import sensor_graph

NOISE_VARIANCE = 0.1  # 10 dB below the signals
MOST_EXACT = 5_000  # nodes
N_NEIGHBORS = 8


def smooth_fields(n_nodes: int, n_signals: int, strength: float) -> tuple[Graph, np.ndarray, np.ndarray]:
    """Graph, inputs and fields: white noise through ``exp(-strength lambda / 2)`` that inputs explain, and noise.

    Small graphs are of sensors; large ones, for a quadrature, of points with their nearest neighbours.
    """
    rng = np.random.default_rng(0)
    is_large = n_nodes > MOST_EXACT
    graph = Graph.from_points(rng.random((n_nodes, 2)), N_NEIGHBORS) if is_large else sensor_graph(n_nodes, rng)
    inputs = rng.standard_normal((n_signals, 2))
    truth = Diffusion(strength, laplacian="combinatorial", scaled=True)
    prior = graph_gp(graph, truth, RBF(1.0), NOISE_VARIANCE, spectrum=Chebyshev() if is_large else Exact())
    (clean,) = prior.sample(inputs, 1, rng)
    return graph, inputs, clean / clean.std() + np.sqrt(NOISE_VARIANCE) * rng.standard_normal(clean.shape)
