"""Adjacency matrices from points in space: nearest neighbours, or all within a radius."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from spectralgp._checks import Array, as_integer, as_option, as_positive, as_real_array
from spectralgp.graph.weights import finished, mirrored

DEFAULT_NEIGHBORS = 10


def weights_from_points(
    points: Array,
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
    n_nodes = len(points)
    if radius is not None:
        pairs = cKDTree(points).query_pairs(as_positive(radius, "radius"), output_type="ndarray")
        low, high = pairs.T.astype(np.int32 if n_nodes < 2**31 else np.int64)
        squared = np.zeros(len(low))
        for coordinate in points.T:  # one axis at a time: no (n_edges, n_dimensions) array
            squared += np.square(coordinate[low] - coordinate[high])
        return mirrored(low, high, _weigh(squared, weights, bandwidth), n_nodes)
    if n_nodes < 2:
        raise ValueError(
            f"points must have at least two rows for nearest neighbours; got {points.shape}. "
            "Use Graph([[0.0]]) for a single node."
        )
    n_neighbors = DEFAULT_NEIGHBORS if n_neighbors is None else n_neighbors
    directed = _nearest(points, as_integer(n_neighbors, "n_neighbors", 1, n_nodes - 1), weights, bandwidth)
    return finished(_symmetrized(directed, symmetrize))


def _nearest(points: Array, n_neighbors: int, weights: str, bandwidth: float | None) -> Any:
    """Directed matrix from every node to its nearest others, coincident points included."""
    n_nodes = len(points)
    distances, neighbors = cKDTree(points).query(points, k=n_neighbors + 1, workers=-1)
    others = neighbors != np.arange(n_nodes)[:, np.newaxis]
    # where coincident points crowded a node out of its own list, its farthest neighbour is dropped instead
    others[others.all(axis=1), -1] = False
    small = np.int32 if n_nodes * n_neighbors < 2**31 else np.int64
    indices = neighbors[others].astype(small)
    del neighbors
    squared = np.square(distances[others])
    del distances, others
    indptr = np.arange(0, n_nodes * n_neighbors + 1, n_neighbors, dtype=small)
    values = _weigh(squared, weights, bandwidth)
    directed = csr_array((values, indices, indptr), shape=(n_nodes, n_nodes))
    directed.sort_indices()
    return directed


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
    squared /= -bandwidth
    np.exp(squared, out=squared)
    if squared.min() == 0:
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


def as_points(points: Any) -> Array:
    """Finite points of shape (n_nodes, n_dimensions), at least one of each."""
    array = as_real_array(
        points,
        "points",
        ("n_nodes", "n_dimensions"),
        remedy="Rows are nodes; use points[:, None] for points on a line.",
    )
    if 0 in array.shape:
        raise ValueError(f"points must have at least one row and one column; got {array.shape}. Rows are nodes.")
    return array
