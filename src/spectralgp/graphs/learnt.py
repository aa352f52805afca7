"""Graphs on points whose weights are learnt from signals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.base import BaseEstimator

from spectralgp._basics.checks import Array, as_integer
from spectralgp._basics.saved import axes
from spectralgp._basics.tables import frame_names
from spectralgp.graphs.core import Graph
from spectralgp.graphs.points import EARTH_RADIUS, as_places
from spectralgp.graphs.weights import Names

MOST_LEARNT_NODES = 1_000  # each evaluation of the likelihood decomposes a dense Laplacian
SOFTNESS = 0.25  # width of the soft limit on the number of neighbours, as a share of it
FARTHEST, CLOSEST = 600.0, 1e-300  # largest power of a weight, whose exponential is a normal number; smallest square
NEGLIGIBLE = 1e-6  # share of the smaller degree of its ends, below which an edge is left out
FARTHEST_DEVIATION = 3.0  # of log parameters from the usual ones, at which they are bounded, in prior deviations
EXPONENTS = (0.5, 8.0)  # bounds


@dataclass(frozen=True, eq=False)
class GraphParameters:
    """Parameters of learnt weights, with standard errors by the curvature of the log posterior."""

    names: tuple[str, ...]
    values: Annotated[Array, axes("_graph_parameters")]
    errors: Annotated[Array, axes("_graph_parameters", allows_nan=True)]  # NaN for a parameter at a bound
    is_kept: bool = True  # False if the usual weights predicted held-out signals better

    def __getitem__(self, name: str) -> float:
        """The parameter of a name."""
        return float(self.values[self.names.index(name)])

    def __repr__(self) -> str:
        rows = zip(self.names, self.values.tolist(), self.errors.tolist(), strict=True)
        listed = ", ".join(f"{name} {value:.3g} (standard error {error:.2g})" for name, value, error in rows)
        kept = "" if self.is_kept else "; not kept, since the usual weights predict held-out signals better"
        return f"learnt weights of the graph: {listed}{kept}"


@dataclass(frozen=True, eq=False)
class WeightFamily:
    """Weights of all pairs of nodes as a function of logarithms of lengths, exponent and number of neighbours.

    ``w_ab = exp(-(sum_f d_abf^2 / rho_f^2)^(p/2)) (1 - (1 - c_ab) (1 - c_ba))``, where ``c_ab`` is the logistic of
    ``(k - rank_ab) / (k / 4)`` and b the ``rank_ab``-th neighbour of a: equation (44).
    """

    squares: Array  # squared distances, shape (n_lengths, n_nodes, n_nodes)
    ranks: Array
    usual: Array  # log parameters, the centre of their prior
    parameter_names: tuple[str, ...]
    names: Names
    coordinates: Array

    @property
    def bounds(self) -> Array:
        """Bounds of the log parameters, shape (n_parameters, 2)."""
        bounds = self.usual[:, None] + FARTHEST_DEVIATION * np.array([-1.0, 1.0])
        bounds[-2], bounds[-1] = np.log(EXPONENTS), np.clip(bounds[-1], 0.0, np.log(len(self.ranks) - 1))
        return bounds

    def at(self, theta: Array) -> tuple[Graph, Callable[[Array], Array]]:
        """Graph at log parameters, and the function from a symmetric gradient in its weights to that in these."""
        inverse, exponent, neighbors = np.exp(-2 * theta[:-2]), np.exp(theta[-2]), np.exp(theta[-1])
        squared = np.maximum(np.tensordot(inverse, self.squares, 1), CLOSEST)
        power = squared ** (exponent / 2)
        kernel = np.exp(-np.minimum(power, FARTHEST))
        np.fill_diagonal(kernel, 0.0)
        near = expit((1 - self.ranks / neighbors) / SOFTNESS)
        weights = kernel * (near + near.T - near * near.T)
        weights = (weights + weights.T) / 2

        def pulled_back(slope: Array) -> Array:
            own = np.where(power < FARTHEST, slope * weights * power, 0.0)
            lengths = exponent * inverse * np.tensordot(self.squares, own / squared, 2)
            change = near * (1 - near) * (1 - near.T) * self.ranks / (neighbors * SOFTNESS)
            return np.append(
                lengths, [-0.5 * exponent * np.sum(own * np.log(squared)), 2 * np.sum(slope * kernel * change)]
            )

        return Graph._built(csr_array(weights), self.names, self.coordinates), pulled_back

    def graph(self, theta: Array) -> Graph:
        """Graph at log parameters, without negligible edges."""
        graph = self.at(theta)[0]
        weights = graph.weights.toarray()
        weights[weights < NEGLIGIBLE * np.minimum.outer(graph.degrees, graph.degrees)] = 0.0
        return Graph(weights, self.names, self.coordinates)


class LearntGraph(BaseEstimator):
    """Graph on points whose weights `GraphGPRegressor.fit` learns, as its argument `graph`.

    Weights fall with the distance, ``exp(-(d / length)^exponent)`` with a length per coordinate, and beyond a number of
    neighbours. These parameters maximise the marginal likelihood together with the filters and the noise, with
    log-normal priors of standard deviation one about usual values. The regressor has them in ``graph_parameters_``, and
    the graph in ``graph_``: that of the usual values if it predicts held-out signals better, by folds in which weights
    are learnt anew, and for one signal. A fit takes some five times as long as on a given graph.

    Parameters
    ----------
    points : array-like, table or geopandas geometry of shape (n_nodes, n_dimensions)
        Coordinates of up to 1,000 nodes, or features in comparable units, with names as in `Graph.from_points`.
    neighbors : int, default=8
        Usual number of neighbours.
    metric : {"euclidean", "haversine"}, default="euclidean"
        "haversine" for longitudes and latitudes in degrees, with one length, of chords in kilometres.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import GraphGPRegressor, LearntGraph, Polynomial
    >>> rng = np.random.default_rng(0)
    >>> points = rng.random((20, 2))
    >>> Y = np.sin(6 * points[:, 0] + rng.uniform(0, 6, (30, 1))) + 0.1 * rng.standard_normal((30, 20))
    >>> learnt = GraphGPRegressor(LearntGraph(points), Polynomial(2)).fit(None, Y).graph_parameters_
    >>> learnt.names, bool(learnt["length 1"] > 2 * learnt["length 0"])
    (('length 0', 'length 1', 'exponent', 'neighbors'), True)
    """

    def __init__(
        self, points: Any, neighbors: int = 8, *, metric: Literal["euclidean", "haversine"] = "euclidean"
    ) -> None:
        self.points = points
        self.neighbors = neighbors
        self.metric = metric

    def family(self) -> WeightFamily:
        """Check the parameters, and return the weights to be learnt."""
        places, labels = as_places(self.points, self.metric)
        columns, n_nodes = places.embedded().T, len(places.points)
        if not 3 <= n_nodes <= MOST_LEARNT_NODES:
            raise ValueError(
                f"points must have 3 to {MOST_LEARNT_NODES:,} rows for weights to be learnt; got {n_nodes:,}. Use "
                "Graph.from_points, whose weights are given."
            )
        neighbors = as_integer(self.neighbors, "neighbors", 1, n_nodes - 1)
        given, squares = frame_names(self.points) or (), np.square(columns[:, :, None] - columns[:, None])
        names = [f"length {name}" for name in (given if len(given) == len(columns) else range(len(columns)))]
        if self.metric == "haversine":
            names, squares = ["length in km"], EARTH_RADIUS**2 * squares.sum(axis=0, keepdims=True)
        distances = np.sqrt(squares.sum(axis=0))
        np.fill_diagonal(distances, -1.0)  # before any other point at the same place
        length = float(np.median(np.sort(distances, axis=1)[:, neighbors]))
        if not length > 0:
            raise ValueError(
                f"points must not coincide with most of their {neighbors} neighbours; got such points. Merge them."
            )
        usual = np.log([*[length] * len(squares), 2.0, neighbors])
        ranks = distances.argsort(axis=1, kind="stable").argsort(axis=1).astype(float)
        return WeightFamily(squares, ranks, usual, (*names, "exponent", "neighbors"), labels, places.points)
