"""Adjacency matrices from points in space: nearest neighbours, or all within a radius."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from spectralgp._basics.checks import Array, Integers, as_integer, as_option, as_positive
from spectralgp.graphs.places import Plane, Sphere
from spectralgp.graphs.weights import finished, mirrored

DEFAULT_NEIGHBORS = 10

TIE = 1e-9
"""How much farther than a radius, relative to it, rounding may put a point that is just as far."""

PIECE = 1 << 20
"""Numbers that are added up at once; at most 2^26."""


@dataclass(frozen=True, eq=False)
class Joining:
    """Which points are joined, and how heavily; `Graph.from_points` says what the fields mean."""

    n_neighbors: int | None
    radius: float | None
    weights: str
    bandwidth: float | None
    symmetrize: str


def as_joining(
    n_nodes: int,
    n_neighbors: int | None,
    radius: float | None,
    weights: str,
    bandwidth: float | None,
    symmetrize: str,
) -> Joining:
    """Check what goes together; the radius has a little more for rounding, and one of it and n_neighbors is None."""
    as_option(weights, "weights", ("gaussian", "inverse", "binary"))
    as_option(symmetrize, "symmetrize", ("maximum", "average", "minimum"))
    if bandwidth is not None:
        bandwidth = as_positive(bandwidth, "bandwidth")
        if weights != "gaussian":
            raise ValueError(
                f"bandwidth must be None unless weights='gaussian'; got {bandwidth} with "
                f"weights={weights!r}. Leave it out."
            )
    if radius is not None and n_neighbors is not None:
        raise ValueError(
            f"n_neighbors must be None when radius is given; got n_neighbors={n_neighbors} and "
            f"radius={radius}. Choose one of the two."
        )
    if radius is not None:
        return Joining(None, as_positive(radius, "radius") * (1 + TIE), weights, bandwidth, symmetrize)
    if n_nodes < 2:
        raise ValueError(
            f"points must have at least two rows for nearest neighbours; got {n_nodes}. "
            "Use Graph.edgeless(1) for a single node."
        )
    n_neighbors = as_integer(DEFAULT_NEIGHBORS if n_neighbors is None else n_neighbors, "n_neighbors", 1, n_nodes - 1)
    return Joining(n_neighbors, None, weights, bandwidth, symmetrize)


def weights_from_points(places: Plane | Sphere, joining: Joining) -> Any:
    """Weights for `Graph.from_points`, whose docstring says what they mean."""
    if joining.radius is not None:
        starts, ends, squared = _within(places, joining.radius)
        return mirrored(starts, ends, weigh(squared, joining.weights, joining.bandwidth), len(places.points))
    directed = _directed(places, joining)
    return finished(symmetrized(directed, directed.T.tocsr(), joining.symmetrize))


def _within(places: Plane | Sphere, radius: float) -> tuple[Integers, Integers, Array]:
    """Pairs of points within a radius, each once, with their squared distances."""
    pairs = cKDTree(places.embedded()).query_pairs(places.reach(radius), output_type="ndarray")
    starts, ends = pairs.T.astype(small_integers(len(places.points)))
    squared = places.squared_distances(starts, ends)
    near = np.sqrt(squared) <= radius
    return (starts, ends, squared) if near.all() else (starts[near], ends[near], squared[near])


def _directed(places: Plane | Sphere, joining: Joining) -> Any:
    """Matrix of the weights from every node to its nearest others."""
    n_neighbors = joining.n_neighbors or 0
    ends = _nearest(places.embedded(), n_neighbors)
    n_nodes, n_edges = len(places.points), len(ends)
    squared = places.squared_distances(np.repeat(np.arange(n_nodes, dtype=ends.dtype), n_neighbors), ends)
    indptr = np.arange(0, n_edges + 1, n_neighbors, dtype=small_integers(n_edges))
    directed = csr_array((weigh(squared, joining.weights, joining.bandwidth), ends, indptr), shape=(n_nodes, n_nodes))
    directed.sort_indices()
    return directed


def _nearest(points: Array, n_neighbors: int) -> Integers:
    """Nearest others of every point in turn, coincident points included, of shape (n_nodes * n_neighbors,)."""
    _, neighbors = cKDTree(points).query(points, k=n_neighbors + 1, workers=-1)
    return neighbors[others_of(neighbors)].astype(small_integers(len(points)))


def others_of(neighbors: Integers) -> NDArray[np.bool_]:
    """Which of a point's nearest points are others, for every point, the same number for each."""
    others: NDArray[np.bool_] = neighbors != np.arange(len(neighbors))[:, np.newaxis]
    # where coincident points crowded a node out of its own list, its farthest neighbour is dropped instead
    others[others.all(axis=1), -1] = False
    return others


def small_integers(largest: int) -> type[np.signedinteger[Any]]:
    """Type of 32 bits where it holds the numbers up to the largest."""
    return np.int32 if largest < 2**31 else np.int64


def weigh(squared: Array, weights: str, bandwidth: float | None) -> Array:
    """Edge weights from squared distances, in place; every one is positive."""
    if weights == "binary":
        return np.ones_like(squared)
    if not squared.size:
        return squared
    if weights == "inverse":
        if squared.min() == 0:
            raise ValueError(
                "points must be distinct when weights='inverse'; got coincident neighbours. "
                "Merge them, or use weights='gaussian'."
            )
        np.sqrt(squared, out=squared)
        return np.divide(1.0, squared, out=squared)
    if bandwidth is None:
        bandwidth = ExactSum().plus(squared).mean
    farthest = float(squared.max())
    with np.errstate(over="ignore"):
        squared /= -bandwidth
    np.exp(squared, out=squared)
    if squared.min() < np.finfo(np.float64).tiny:  # so small a number has lost its digits, if it is not zero
        raise ValueError(
            "bandwidth must be large enough for every neighbour's weight exp(-d^2 / bandwidth) to be "
            f"above 0; got {bandwidth} with a neighbour at d^2 = {farthest}. "
            f"Pass at least {farthest / 700:.3g}, or use weights='inverse'."
        )
    return squared


def symmetrized(directed: Any, other: Any, symmetrize: str) -> Any:
    """Weights from those in one direction, and those in the other at the same place."""
    if symmetrize == "maximum":
        return directed.maximum(other)
    if symmetrize == "minimum":
        return directed.minimum(other)
    mean = directed + other
    mean.data *= 0.5
    return mean


@dataclass(frozen=True, eq=False)
class ExactSum:
    """Sum of non-negative numbers without rounding, so that neither their order nor parts of them matter."""

    total: Fraction = Fraction(0)
    count: int = 0

    def plus(self, numbers: Array) -> ExactSum:
        """Sum with more numbers."""
        total = self.total
        for start in range(0, len(numbers), PIECE):
            mantissas, exponents = np.frexp(numbers[start : start + PIECE])
            lowest = int(exponents.min())
            exponents -= lowest
            mantissas *= 2.0**27
            high = np.floor(mantissas)
            mantissas -= high
            mantissas *= 2.0**26
            # of 26 or 27 bits each: sums of a piece of them are whole numbers below 2^53
            sums = (np.bincount(exponents, weights=part).tolist() for part in (high, mantissas))
            whole = sum((int(up) << 26) + int(low) << place for place, (up, low) in enumerate(zip(*sums, strict=True)))
            total += Fraction(whole) * Fraction(2) ** (lowest - 53)
        return ExactSum(total, self.count + len(numbers))

    @property
    def mean(self) -> float:
        """Mean of squared distances, correctly rounded: a bandwidth."""
        if self.total == 0:
            raise ValueError(
                "points must not all coincide with their neighbours; got only distances of 0. Pass a bandwidth."
            )
        return float(self.total / self.count)
