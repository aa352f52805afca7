"""Partitioners: assignment of nodes to partitions, and the order of nodes within them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from spectralgp._basics.checks import Array, Integers, as_option
from spectralgp._basics.extras import require

PARTITIONERS = ("auto", "hilbert", "metis", "rcm", "contiguous")
POINTS_AT_ONCE = 1 << 18  # points whose place on the curve is computed at once
BITS = 21  # of each axis of the curve: three of them fit 64 bits

# nodes by partition; and the start of each partition, followed by the number of nodes
Partitioning = tuple[Integers, NDArray[np.int64]]


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
    partitioner: Any, n_nodes: int, n_partitions: int, coordinates: Any, weights: Callable[[], Any]
) -> Partitioning:
    """Partitioning by a result of `as_partitioner`; `weights` returns those of the graph on demand."""
    if not isinstance(partitioner, str):
        return _given(partitioner, n_nodes, n_partitions)
    if partitioner == "contiguous":
        return in_equal_pieces(np.arange(n_nodes), n_partitions)
    if partitioner == "hilbert":
        return in_equal_pieces(curve_order(coordinates, lambda points: points), n_partitions)
    matrix = weights()
    along = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    if partitioner == "rcm" or n_partitions == 1:
        return in_equal_pieces(along, n_partitions)
    pymetis = require("pymetis", "metis", "to cut a graph by METIS")
    _, parts = pymetis.part_graph(n_partitions, adjacency=pymetis.CSRAdjacency(matrix.indptr, matrix.indices))
    partitions = np.asarray(parts, dtype=np.int64)
    order = along[np.argsort(partitions[along], kind="stable")]  # of reverse Cuthill-McKee within each partition
    return _of_partitions(partitions, order, n_partitions)


def in_equal_pieces(order: Integers, n_partitions: int) -> Partitioning:
    """Ordered nodes, cut into pieces whose sizes differ by at most one."""
    starts = np.arange(n_partitions + 1, dtype=np.int64) * len(order) // n_partitions
    return order, starts


def curve_order(
    coordinates: Array, embedded: Callable[[Array], Array], points_at_once: int = POINTS_AT_ONCE
) -> NDArray[np.int64]:
    """Nodes along a Hilbert curve, a block at a time; `embedded` maps rows to points of a Euclidean space."""
    blocks = [slice(start, start + points_at_once) for start in range(0, len(coordinates), points_at_once)]
    axes = _principal_axes(coordinates, embedded, blocks)
    low = np.min([(embedded(coordinates[block]) @ axes).min(axis=0) for block in blocks], axis=0)
    high = np.max([(embedded(coordinates[block]) @ axes).max(axis=0) for block in blocks], axis=0)
    largest = 2**BITS - 1
    scale = largest / (float((high - low).max()) or 1.0)
    keys = []
    for block in blocks:
        cells = np.minimum((embedded(coordinates[block]) @ axes - low) * scale, largest).astype(np.uint64)
        keys.append(hilbert_index(cells))
    return np.argsort(np.concatenate(keys), kind="stable")


def _principal_axes(coordinates: Array, embedded: Callable[[Array], Array], blocks: list[slice]) -> Array:
    """The first three principal axes at most, in columns, for projection."""
    origin = embedded(coordinates[:1])
    n_dimensions = origin.shape[1]
    if n_dimensions <= 3:
        return np.eye(n_dimensions)
    moments, mean = np.zeros((n_dimensions, n_dimensions)), np.zeros(n_dimensions)
    for block in blocks:
        points = embedded(coordinates[block]) - origin
        moments += points.T @ points
        mean += points.sum(axis=0)
    covariance = moments - np.outer(mean, mean) / len(coordinates)
    return np.linalg.eigh(covariance)[1][:, -3:]


def _given(partitions: NDArray[Any], n_nodes: int, n_partitions: int) -> Partitioning:
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


def _of_partitions(partitions: NDArray[Any], order: NDArray[np.int64], n_partitions: int) -> Partitioning:
    sizes = np.bincount(partitions, minlength=n_partitions)
    if not sizes.all():
        raise ValueError(
            f"partitioner must give every partition a node; got none for partition {int(np.argmin(sizes))} of "
            f"{n_partitions}. Pass a smaller n_partitions, or another partitioner."
        )
    return order, np.concatenate([[0], np.cumsum(sizes)])


def hilbert_index(cells: NDArray[np.uint64], bits: int = BITS) -> NDArray[np.uint64]:
    """Distance along the Hilbert curve of cells (n_cells, n_axes) with coordinates below ``2 ** bits``.

    By Skilling's algorithm (Programming the Hilbert curve, 2004): from the highest bit down, an axis whose bit is set
    inverts the lower bits of the first axis, and one whose bit is not set exchanges them with those of the first axis;
    at last a Gray code is undone, and the bits of all axes are interleaved.
    """
    axes = [np.array(column, dtype=np.uint64) for column in cells.T]
    one = np.uint64(1)
    for place in range(bits - 1, 0, -1):
        shift = np.uint64(place)
        lower = (one << shift) - one
        for axis in axes:
            is_set = (axis >> shift) & one
            inverted = is_set * lower
            # the bits in which the two differ, where they are exchanged; nothing for the first axis itself
            exchanged = (axes[0] ^ axis) & (lower - inverted)
            axes[0] ^= inverted | exchanged
            if axis is not axes[0]:
                axis ^= exchanged
    for before, axis in pairwise(axes):
        axis ^= before
    flips = np.zeros_like(axes[0])
    for place in range(bits - 1, 0, -1):
        shift = np.uint64(place)
        flips ^= ((axes[-1] >> shift) & one) * ((one << shift) - one)
    index = np.zeros_like(axes[0])
    for place in range(bits - 1, -1, -1):
        for axis in axes:
            index <<= one
            index |= ((axis ^ flips) >> np.uint64(place)) & one
    return index
