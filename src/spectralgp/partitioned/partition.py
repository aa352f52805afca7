"""One part of a graph that is kept in parts: its own nodes, and what s steps of the recurrence need around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.checks import Array, Integers


@dataclass(frozen=True, eq=False)
class Partition:
    """Own nodes, the halo of nodes within `n_hops` hops around them, and the rows of the weights that are needed.

    Parameters
    ----------
    number : int
        Which partition this is, from 0.
    nodes : int64 array of shape (n_local,)
        Nodes in the user's order of nodes: own ones first, then the halo ring by ring; within a ring by owner, then by
        place in the owner's own nodes. A position in this array is a local position.
    ends : int64 array of shape (n_hops + 1,)
        Numbers of local nodes within 0, 1, ... hops of the own ones: from n_own to n_local.
    indptr, indices, weights : arrays
        Rows of the weights in CSR, columns being local positions, sorted (int32, and float64 weights), of the first
        ``ends[-2]`` local nodes: all that are within ``n_hops - 1`` hops. `indptr` is int32 where that suffices.
    degrees : float64 array of shape (n_local,)
        Sums of the weights at all local nodes, the last ring included.
    boundary : int32 array of shape (n_boundary,)
        Own positions that other partitions have in their halos, by level, then by position. The level of a node is
        the smallest ring in which another partition has it.
    boundary_ends : int64 array of shape (n_hops + 1,)
        Numbers of boundary nodes of level 0 (none), at most 1, at most 2, ...
    halo_owner : int32 array of shape (n_halo,)
        For each halo node, in the order of ``nodes[n_own:]``, the partition whose own it is.
    halo_place : int32 array of shape (n_halo,)
        Its place in the owner's `boundary`.
    """

    number: int
    nodes: NDArray[np.int64]
    ends: NDArray[np.int64]
    indptr: Integers
    indices: NDArray[np.int32]
    weights: Array
    degrees: Array
    boundary: NDArray[np.int32]
    boundary_ends: NDArray[np.int64]
    halo_owner: NDArray[np.int32]
    halo_place: NDArray[np.int32]

    @property
    def n_own(self) -> int:
        """Number of own nodes."""
        return int(self.ends[0])

    @property
    def n_local(self) -> int:
        """Number of own and halo nodes."""
        return int(self.ends[-1])

    @property
    def n_hops(self) -> int:
        """Number of rings of the halo, some of which may be empty."""
        return len(self.ends) - 1

    @property
    def neighbours(self) -> NDArray[np.int32]:
        """Partitions that own nodes of the halo, sorted."""
        return np.unique(np.asarray(self.halo_owner))


def damage_of(part: Partition, sizes: Sequence[int]) -> str | None:
    """Name of the first array that cannot be that of a partition of a graph; None if all can.

    Parameters
    ----------
    part : Partition
        Whose arrays have lengths that go together.
    sizes : sequence of int
        Numbers of nodes that the graph's partitions own.
    """
    wrong = {
        "ends": part.n_own != sizes[part.number] or not _ascends(part.ends),
        "nodes": not _within(part.nodes, sum(sizes)),
        "indptr": part.indptr[0] != 0 or not _ascends(part.indptr),
        "indices": not _within(part.indices, part.n_local),
        "weights": not _within(part.weights, np.inf),
        "degrees": not _within(part.degrees, np.inf),
        "boundary": not _within(part.boundary, part.n_own),
        "boundary_ends": part.boundary_ends[0] != 0 or not _ascends(part.boundary_ends),
        "halo_owner": not _within(part.halo_owner, len(sizes)),
        "halo_place": not _within(part.halo_place, max(sizes)),
    }
    return next((name for name, is_wrong in wrong.items() if is_wrong), None)


def _ascends(array: Integers) -> bool:
    return bool(np.all(array[1:] >= array[:-1]))


def _within(array: NDArray[Any], end: float) -> bool:
    """Whether all are numbers from 0 to below the end."""
    return array.size == 0 or bool(np.min(array) >= 0 and np.max(array) < end)  # comparisons with NaN are false
