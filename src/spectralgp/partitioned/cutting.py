"""Which partition each node goes to, and the order of the nodes in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from spectralgp._basics.checks import Array, as_integer, as_option
from spectralgp._basics.extras import require
from spectralgp.partitioned.hilbert import curve_keys

PARTITIONERS = ("auto", "hilbert", "metis", "rcm", "contiguous")
ROWS = 1 << 18  # points that are put on the curve at once


@dataclass(frozen=True, eq=False)
class Cut:
    """Nodes by partition, and within one in its order; a place in `order` is the rank of a node.

    Parameters
    ----------
    order : integer array of shape (n_nodes,)
        Nodes of the first partition, of the second, ...
    starts : int64 array of shape (n_partitions + 1,)
        Where each partition begins, and the number of nodes.
    """

    order: NDArray[np.signedinteger[Any]]
    starts: NDArray[np.int64]


def as_partitioner(partitioner: Any, has_coordinates: bool) -> Any:
    """Name of a partitioner, "auto" decided, or an array of the partitions of the nodes."""
    if not isinstance(partitioner, str):
        return np.asarray(partitioner)
    as_option(partitioner, "partitioner", PARTITIONERS)
    if partitioner == "auto":
        return "hilbert" if has_coordinates else "metis" if find_spec("pymetis") else "rcm"
    if partitioner == "hilbert" and not has_coordinates:
        raise ValueError(
            "partitioner must be another than 'hilbert' for a graph without coordinates; got 'hilbert'. "
            "Pass coordinates, or partitioner='metis'."
        )
    return partitioner


def cut_nodes(
    partitioner: Any, n_nodes: int, n_partitions: int, coordinates: Array | None, weights: Callable[[], Any]
) -> Cut:
    """Cut by a partitioner that `as_partitioner` returned; `weights` gives those of the graph, if it is asked."""
    if not isinstance(partitioner, str):
        return _given(partitioner, n_nodes, n_partitions)
    if partitioner == "contiguous":
        return in_equal_pieces(np.arange(n_nodes), n_partitions)
    if partitioner == "hilbert":
        if coordinates is None:
            raise ValueError("coordinates must be given for the Hilbert curve; got None. Pass another partitioner.")
        return in_equal_pieces(curve_order(coordinates, lambda points: points), n_partitions)
    matrix = weights()
    along = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    if partitioner == "rcm" or n_partitions == 1:
        return in_equal_pieces(along, n_partitions)
    return _metis(matrix, along, n_partitions)


def in_equal_pieces(order: NDArray[np.signedinteger[Any]], n_partitions: int) -> Cut:
    """Cut of nodes in an order into pieces whose numbers of nodes differ by one at most."""
    starts = np.arange(n_partitions + 1, dtype=np.int64) * len(order) // n_partitions
    return Cut(order, starts)


def as_n_partitions(n_partitions: Any, n_nodes: int) -> int:
    """Number of partitions, none of which would be empty."""
    return as_integer(n_partitions, "n_partitions", 1, n_nodes)


def curve_order(coordinates: Array, placed: Callable[[Array], Array]) -> NDArray[np.int64]:
    """Nodes along a Hilbert curve, a block of rows at a time.

    Points of more than three dimensions are projected to the first three principal ones.

    Parameters
    ----------
    coordinates : array of shape (n_nodes, n_dimensions)
        May be memory-mapped.
    placed : callable
        From rows of coordinates to points of a space in which near nodes are near.
    """
    blocks = [slice(start, start + ROWS) for start in range(0, len(coordinates), ROWS)]
    axes = _principal_axes(coordinates, placed, blocks)
    low = np.min([(placed(coordinates[block]) @ axes).min(axis=0) for block in blocks], axis=0)
    high = np.max([(placed(coordinates[block]) @ axes).max(axis=0) for block in blocks], axis=0)
    keys = np.concatenate(
        [curve_keys(placed(coordinates[block]) @ axes, low, float((high - low).max())) for block in blocks]
    )
    return np.argsort(keys, kind="stable")


def _principal_axes(coordinates: Array, placed: Callable[[Array], Array], blocks: list[slice]) -> Array:
    """Directions in which points spread most, in columns: three at most."""
    n_dimensions = placed(coordinates[:1]).shape[1]
    if n_dimensions <= 3:
        return np.eye(n_dimensions)
    origin = placed(coordinates[:1])
    moments, mean = np.zeros((n_dimensions, n_dimensions)), np.zeros(n_dimensions)
    for block in blocks:
        points = placed(coordinates[block]) - origin
        moments += points.T @ points
        mean += points.sum(axis=0)
    covariance = moments - np.outer(mean, mean) / len(coordinates)
    return np.linalg.eigh(covariance)[1][:, -3:]


def _given(partitions: NDArray[Any], n_nodes: int, n_partitions: int) -> Cut:
    if partitions.shape != (n_nodes,) or partitions.dtype.kind not in "iu":
        raise ValueError(
            f"partitioner must be one of {', '.join(PARTITIONERS)}, or a whole number for each of {n_nodes} nodes; "
            f"got an array of {partitions.dtype} of shape {partitions.shape}. Pass the partition of every node."
        )
    outside = partitions[(partitions < 0) | (partitions >= n_partitions)]
    if outside.size:
        raise ValueError(
            f"partitioner must have partitions from 0 to {n_partitions - 1}; got {outside[0]}. "
            "Pass a larger n_partitions, or count partitions from zero."
        )
    return _of_partitions(partitions, np.argsort(partitions, kind="stable"), n_partitions)


def _of_partitions(partitions: NDArray[Any], order: NDArray[np.int64], n_partitions: int) -> Cut:
    sizes = np.bincount(partitions, minlength=n_partitions)
    if not sizes.all():
        raise ValueError(
            f"partitioner must give every partition a node; got none for partition {int(np.argmin(sizes))} of "
            f"{n_partitions}. Pass a smaller n_partitions, or another partitioner."
        )
    return Cut(order, np.concatenate([[0], np.cumsum(sizes)]))


def _metis(matrix: Any, along: NDArray[Any], n_partitions: int) -> Cut:
    """Cut by METIS; within a partition nodes are in the order of reverse Cuthill-McKee."""
    pymetis = require("pymetis", "metis", "to cut a graph by METIS")
    adjacency = pymetis.CSRAdjacency(matrix.indptr, matrix.indices)
    _, parts = pymetis.part_graph(n_partitions, adjacency=adjacency)
    partitions = np.asarray(parts, dtype=np.int64)
    order = along[np.argsort(partitions[along], kind="stable")]
    return _of_partitions(partitions, order, n_partitions)
