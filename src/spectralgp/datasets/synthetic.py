"""Synthetic data: random graphs, and signals with a known filter on them; `random_state` is NumPy's Generator."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist, squareform

from spectralgp._basics.checks import Array, as_integer, as_positive, as_real_array
from spectralgp.datasets.dataset import Dataset
from spectralgp.graphs import Graph
from spectralgp.model.kernels import Polynomial
from spectralgp.model.spectra import decompose

N_NEAREST = 2  # neighbours that a sensor is joined to at any distance
WEIGHT_AT_RANGE = 0.6
MAX_TRIES = 1000


def sensor_graph(n_nodes: int, random_state: np.random.Generator) -> Graph:
    """Random sensors in the unit square, joined to those within reach: the graph of the paper's synthetic signals.

    There are `n_nodes` of them, at least 3. Those closer than the range ``2 / sqrt(n_nodes)`` are joined, with weights
    ``exp(-d^2 / (2 s^2))`` that fall to 0.6 at the range, and every sensor is joined to its two nearest others in any
    case. They are placed anew until the graph is connected; its coordinates are their places. (PyGSP 0.5 builds its
    `Sensor` graph in this way, but halves a weight where only one of two sensors is among the other's nearest.)
    """
    as_integer(n_nodes, "n_nodes", N_NEAREST + 1)
    reach = 2 / np.sqrt(n_nodes)
    for _ in range(MAX_TRIES):
        places = random_state.random((n_nodes, 2))
        distances = squareform(pdist(places))
        np.fill_diagonal(distances, np.inf)
        joined = distances < reach
        nearest = np.argsort(distances, axis=1)[:, :N_NEAREST]
        np.put_along_axis(joined, nearest, True, axis=1)
        joined |= joined.T
        weights = np.where(joined, WEIGHT_AT_RANGE ** ((distances / reach) ** 2), 0.0)
        graph = Graph(weights, coordinates=places)
        if graph.is_connected:
            return graph
    raise RuntimeError(f"no connected sensor graph of {n_nodes} nodes in {MAX_TRIES} tries. Ask for more nodes.")


def barabasi_albert_graph(
    n_nodes: int, random_state: np.random.Generator, *, n_initial: int = 10, n_links: int = 5
) -> Graph:
    """Graph grown by preferential attachment (Barabasi and Albert), as in the paper's supplement.

    Growth starts from `n_initial` nodes without edges. Each further node is joined to `n_links` distinct earlier ones,
    at most `n_initial`, drawn with probabilities proportional to one plus their number of edges. Edges have weight 1.
    Grown anew until connected.
    """
    as_integer(n_initial, "n_initial", 1)
    as_integer(n_links, "n_links", 1, n_initial)
    as_integer(n_nodes, "n_nodes", n_initial + 1)
    for _ in range(MAX_TRIES):
        weights = np.zeros((n_nodes, n_nodes))
        for node in range(n_initial, n_nodes):
            attraction = 1 + weights[:node].sum(axis=1)
            chosen = random_state.choice(node, size=n_links, replace=False, p=attraction / attraction.sum())
            weights[node, chosen] = weights[chosen, node] = 1
        graph = Graph(weights)
        if graph.is_connected:
            return graph
    raise RuntimeError(f"no connected graph in {MAX_TRIES} tries. Ask for more links than {n_links} per node.")


def draw_filtered_signals(
    graph: Graph,
    coefficients: ArrayLike,
    n_signals: int,
    random_state: np.random.Generator,
    *,
    snr: float = 10.0,
    input_covariance: ArrayLike | None = None,
) -> Dataset:
    """White noise filtered by a polynomial of the scaled Laplacian, with noise added at a signal-to-noise ratio.

    Parameters
    ----------
    graph : Graph
        Graph of the `n_signals` signals.
    coefficients : array-like of shape (degree + 1,)
        ``theta_0, theta_1, ...`` of the true filter; signals are scaled to unit variance after filtering, as the
        paper's script does, and the filter along with them.
    snr : float, default=10.0
        Signal-to-noise ratio in decibels, ``10 log10`` of the ratio of the variances.
    input_covariance : array-like of shape (n_signals, n_signals), optional
        Covariance between signals; independent if not given.

    Returns
    -------
    Dataset
        - ``graph``: the given one.
        - ``signals`` and ``clean``, shape (n_signals, n_nodes): observed signals, and those without noise, whose
          variance over all entries is one.
        - ``graph_kernel``: the true filter, a Polynomial with the amplitude for that variance.
        - ``noise_variance``: variance of the added noise.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp.datasets import draw_filtered_signals, sensor_graph
    >>> rng = np.random.default_rng(1)
    >>> drawn = draw_filtered_signals(sensor_graph(30, rng), [1.0, -0.5], 15, rng, snr=20)
    >>> drawn.signals.shape, round(drawn.noise_variance, 6)
    ((15, 30), 0.01)
    """
    as_integer(n_signals, "n_signals", 1)
    noise_variance = 1 / as_positive(10.0 ** (snr / 10), "10 ** (snr / 10)")
    truth = Polynomial.from_coefficients(coefficients)
    white = random_state.standard_normal((n_signals, graph.n_nodes))
    if input_covariance is not None:
        axes, sizes = ("n_signals", "n_signals"), {"n_signals": n_signals}
        white = np.linalg.cholesky(as_real_array(input_covariance, "input_covariance", axes, sizes=sizes)) @ white
    filtered = decompose(graph, scaled=True).filter(white, truth.response)
    spread = float(np.std(filtered))
    noise = np.sqrt(noise_variance) * random_state.standard_normal(filtered.shape)
    clean, kernel = filtered / spread, truth.scaled_by(1 / spread)
    return Dataset(graph, signals=clean + noise, clean=clean, graph_kernel=kernel, noise_variance=noise_variance)


def draw_inverse_wishart(n_signals: int, random_state: np.random.Generator) -> Array:
    """Random covariance matrix (n_signals, n_signals) from the inverse Wishart distribution with identity scale.

    The degrees of freedom equal the number of signals, the least for which it exists, as in the paper's script.
    """
    as_integer(n_signals, "n_signals", 1)
    white = random_state.standard_normal((n_signals, n_signals))  # white^T white has the Wishart distribution
    drawn = np.linalg.inv(white.T @ white)
    return (drawn + drawn.T) / 2  # rounding aside it is symmetric already
