"""Adjacency matrices from points in space: nearest neighbours, or all within a radius."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from spectralgp._checks import Array, as_integer, as_option, as_positive
from spectralgp.graph.places import Plane, Sphere
from spectralgp.graph.weights import finished, mirrored

Integers = NDArray[np.signedinteger[Any]]

DEFAULT_NEIGHBORS = 10

TIE = 1e-9
"""How much farther than a radius, relative to it, rounding may put a point that is just as far."""


def weights_from_points(
    places: Plane | Sphere,
    n_neighbors: int | None,
    radius: float | None,
    weights: str,
    bandwidth: float | None,
    symmetrize: str,
) -> Any:
    """Weights for `Graph.from_points`, whose docstring says what they mean."""
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
    n_nodes = len(places.points)
    if radius is not None:
        starts, ends, squared = _within(places, as_positive(radius, "radius") * (1 + TIE))
        return mirrored(starts, ends, _weigh(squared, weights, bandwidth), n_nodes)
    if n_nodes < 2:
        raise ValueError(
            f"points must have at least two rows for nearest neighbours; got {places.points.shape}. "
            "Use Graph.edgeless(1) for a single node."
        )
    n_neighbors = as_integer(DEFAULT_NEIGHBORS if n_neighbors is None else n_neighbors, "n_neighbors", 1, n_nodes - 1)
    return finished(_symmetrized(_directed(places, n_neighbors, weights, bandwidth), symmetrize))


def _within(places: Plane | Sphere, radius: float) -> tuple[Integers, Integers, Array]:
    """Pairs of points within a radius, each once, with their squared distances."""
    pairs = cKDTree(places.embedded()).query_pairs(places.reach(radius), output_type="ndarray")
    starts, ends = pairs.T.astype(_small(len(places.points)))
    squared = places.squared_distances(starts, ends)
    near = np.sqrt(squared) <= radius
    return (starts, ends, squared) if near.all() else (starts[near], ends[near], squared[near])


def _directed(places: Plane | Sphere, n_neighbors: int, weights: str, bandwidth: float | None) -> Any:
    """Matrix of the weights from every node to its nearest others."""
    ends = _nearest(places.embedded(), n_neighbors)
    n_nodes, n_edges = len(places.points), len(ends)
    squared = places.squared_distances(np.repeat(np.arange(n_nodes, dtype=ends.dtype), n_neighbors), ends)
    indptr = np.arange(0, n_edges + 1, n_neighbors, dtype=_small(n_edges))
    directed = csr_array((_weigh(squared, weights, bandwidth), ends, indptr), shape=(n_nodes, n_nodes))
    directed.sort_indices()
    return directed


def _nearest(points: Array, n_neighbors: int) -> Integers:
    """Nearest others of every point in turn, coincident points included, of shape (n_nodes * n_neighbors,)."""
    n_nodes = len(points)
    _, neighbors = cKDTree(points).query(points, k=n_neighbors + 1, workers=-1)
    others = neighbors != np.arange(n_nodes)[:, np.newaxis]
    # where coincident points crowded a node out of its own list, its farthest neighbour is dropped instead
    others[others.all(axis=1), -1] = False
    return neighbors[others].astype(_small(n_nodes))


def _small(largest: int) -> type[np.signedinteger[Any]]:
    return np.int32 if largest < 2**31 else np.int64


def _weigh(squared: Array, weights: str, bandwidth: float | None) -> Array:
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
        bandwidth = float(squared.mean())
        if bandwidth == 0:
            raise ValueError(
                "points must not all coincide with their neighbours; got only distances of 0. Pass a bandwidth."
            )
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


def _symmetrized(directed: Any, symmetrize: str) -> Any:
    other = directed.T.tocsr()
    if symmetrize == "maximum":
        return directed.maximum(other)
    if symmetrize == "minimum":
        return directed.minimum(other)
    mean = directed + other
    mean.data *= 0.5
    return mean
