"""The rows of a Laplacian in one partition, as a worker has them: steps, and what is exchanged with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array
from spectralgp.graphs.laplacians import normalized_parts
from spectralgp.operators.cpu import gershgorin_bound, row_squares, summed_column_products, summed_products
from spectralgp.partitioned.folder import read_partition, read_verified

KEPT = 0.2  # of a worker's memory, for partitions of the graph that stay open


@dataclass(frozen=True)
class Place:
    """Where a task finds its partition, and in which form it wants it.

    Parameters
    ----------
    folder : str
        Of the graph.
    mark : str
        Of the graph's content, so that what was kept of another graph in the same folder is not taken for it.
    number : int
        Of the partition.
    kind : {"combinatorial", "normalized"}
        Which Laplacian.
    dtype : str
        Precision of the blocks.
    device : {"cpu", "cuda"}
        Where the worker computes.
    start : int, optional
        Position of the first own node where signals come in the order of the partitions; that of the user if not given.
    """

    folder: str
    mark: str
    number: int
    kind: str
    dtype: str
    device: str = "cpu"
    start: int | None = None


@dataclass(frozen=True, eq=False)
class Message:
    """What a partition tells others of some blocks.

    Parameters
    ----------
    values : ndarray of shape (n_blocks, n_rows, n_columns)
        The blocks at own nodes.
    rows : ndarray of int, optional
        Places of these nodes in the partition's boundary, sorted; all from the first if not given.
    """

    values: Array
    rows: NDArray[np.int32] | None = None

    def __sizeof__(self) -> int:
        """Bytes of its arrays, for Dask."""
        return int(self.values.nbytes + (0 if self.rows is None else self.rows.nbytes))

    def only_for(self, others: tuple[int, ...], place: Place) -> Message:
        """The part of a partition's whole message that some others need; all of it if none are named."""
        if not others:
            return self
        rows = _asked(place.folder, place.mark, place.number, others)
        rows = rows[: int(np.searchsorted(rows, self.values.shape[1]))]
        return Message(self.values[:, rows], rows)

    def at(self, places: NDArray[np.int32]) -> Array:
        """Values at places in the boundary."""
        return self.values[:, places if self.rows is None else np.searchsorted(self.rows, places)]


@lru_cache(maxsize=1024)
def _asked(folder: str, mark: str, number: int, others: tuple[int, ...]) -> NDArray[np.int32]:
    """Places in a partition's boundary that some others have in their halos; the mark is of what is in the folder."""
    parts = (read_partition(Path(folder), other) for other in others)  # verified where they are at home
    return np.unique(np.concatenate([part.halo_place[np.asarray(part.halo_owner) == number] for part in parts]))


@dataclass(frozen=True, eq=False)
class LocalLaplacian:
    """Rows of a Laplacian that a partition computes with, and what it exchanges.

    Parameters
    ----------
    nodes, positions : ndarray of int
        Numbers of the own nodes, which random numbers belong to, and their positions in signals; the same, unless
        signals come in the order of the partitions.
    ends : list of int
        Numbers of local nodes within 0, 1, ... hops.
    matrix : tuple of arrays
        ``indptr, indices, weights, diagonal`` of the rows; the Laplacian is the diagonal less the weights.
    boundary, boundary_ends
        Own positions that others need, by the number of hops.
    senders : list of pairs of ndarray
        For each neighbour, in the order of their numbers: the local positions of its nodes in the halo, and the places
        of these in its messages.
    xp : module
        NumPy or CuPy.
    """

    nodes: NDArray[np.int64]
    positions: NDArray[np.int64]
    ends: list[int]
    matrix: tuple[Any, Any, Any, Any]
    boundary: NDArray[np.int32]
    boundary_ends: list[int]
    senders: list[tuple[Any, Any]]
    xp: Any = np
    _rows: dict[tuple[int, int], Any] = field(default_factory=dict)

    @property
    def n_own(self) -> int:
        """Number of own nodes."""
        return self.ends[0]

    @property
    def n_hops(self) -> int:
        """Number of rings of the halo."""
        return len(self.ends) - 1

    @property
    def n_bytes(self) -> int:
        """Memory that it takes."""
        return int(sum(array.nbytes for array in (*self.matrix, self.nodes)))

    # ----------------------------------------------------------------------------------------------- exchange

    def message(self, blocks: Sequence[Any], n_hops: int) -> Message:
        """What all others need of some blocks, for so many hops, on the host."""
        chosen = self.boundary[: self.boundary_ends[n_hops]]
        return Message(np.stack([on_host(block[self.xp.asarray(chosen)]) for block in blocks]))

    def receive(self, blocks: Sequence[Any], inbox: Sequence[Message], n_hops: int) -> None:
        """Fill the halo of some blocks with what the others have there, in the order of `senders`."""
        last = self.ends[n_hops]
        for (positions, places), message in zip(self.senders, inbox, strict=True):
            n_within = int(np.searchsorted(positions, last))
            for block, values in zip(blocks, message.at(places[:n_within]), strict=True):
                block[self.xp.asarray(positions[:n_within])] = self.xp.asarray(values)

    # -------------------------------------------------------------------------------------------------- steps

    def spread(self, own: Any, n_hops: int) -> Any:
        """A block of own values with room for the halo."""
        block = self.xp.zeros((self.ends[n_hops], own.shape[1]), dtype=own.dtype)
        block[: self.n_own] = own
        return block

    def step(self, scale: float, current: Any, previous: Any, n_rows: int) -> None:
        """``scale L current - 2 current - previous`` in place of `previous`, in the first rows."""
        if self._is_compiled:
            from spectralgp.operators import loops

            loops.step_rows(self.matrix, current.dtype.type(scale), current, previous, 0, n_rows)
        else:
            self._plain_step(scale, current, previous, n_rows)

    def advance(self, scale: float, current: Any, previous: Any, n_rows: int, gram: bool) -> tuple[Array, Array]:
        """The same, with products of own rows: of the new block with itself, and with the current one."""
        if self._is_compiled:
            from spectralgp.operators import loops

            arguments = (self.matrix, current.dtype.type(scale), current, previous)
            loop: Any = loops.gram_rows if gram else loops.columns_rows
            squares, crosses = loop(*arguments, self.n_own)
            loops.step_rows(*arguments, self.n_own, n_rows)
            return squares, crosses
        self._plain_step(scale, current, previous, n_rows)
        own, other = previous[: self.n_own], current[: self.n_own]
        return products(own, own, gram), products(own, other, gram)

    @property
    def _is_compiled(self) -> bool:
        return self.xp is np and find_spec("numba") is not None

    def _plain_step(self, scale: float, current: Any, previous: Any, n_rows: int) -> None:
        *_, diagonal = self.matrix
        product = diagonal[:n_rows, None] * current[:n_rows] - self._weights(n_rows, len(current)) @ current
        previous[:n_rows] = scale * product - 2 * current[:n_rows] - previous[:n_rows]

    def _weights(self, n_rows: int, n_columns: int) -> Any:
        shape = (n_rows, n_columns)
        if shape not in self._rows:
            indptr, indices, weights, _ = self.matrix
            last = int(indptr[n_rows])
            self._rows[shape] = self.csr((weights[:last], indices[:last], indptr[: n_rows + 1]), shape)
        return self._rows[shape]

    def csr(self, parts: Any, shape: tuple[int, int]) -> Any:
        """A sparse matrix of the library."""
        if self.xp is np:
            return csr_array(parts, shape=shape)
        return import_module("cupyx.scipy.sparse").csr_matrix(parts, shape=shape)


def products(left: Any, right: Any, gram: bool) -> Array:
    """``left^T right``, or its diagonal, on the host in double precision."""
    if isinstance(left, np.ndarray):
        return summed_products(left, right) if gram else summed_column_products(left, right)
    product = on_host(left.T @ right).astype(np.float64)
    return product if gram else np.diagonal(product).copy()


# --------------------------------------------------------------------------------------------- opened partitions


class _Kept:
    """Partitions that this process has opened, as many as a share of its memory holds.

    A pass takes partitions in turn, so that the one it used last is the one it needs latest: where there is no room, a
    new one is not kept. Only those of other graphs and forms, from passes before, make room for it.
    """

    def __init__(self) -> None:
        self._lock, self._known = Lock(), dict[Place, LocalLaplacian]()

    def get(self, place: Place) -> LocalLaplacian:
        with self._lock:
            if place in self._known:
                return self._known[place]
        opened = _opened(place)
        with self._lock:
            self._known[place] = opened
            limit, total = _limit(), sum(one.n_bytes for one in self._known.values())
            others = [one for one in self._known if replace(one, number=place.number) != place]
            for one in (*others, place):
                if total <= limit:
                    break
                total -= self._known.pop(one).n_bytes
        return opened


_kept = _Kept()


def _limit() -> float:
    """Bytes for opened partitions: a share of a worker's memory, and all there is where it has no limit."""
    try:
        limit = import_module("distributed").get_worker().memory_manager.memory_limit
    except (ImportError, ValueError, AttributeError):  # in no worker
        return float("inf")
    return KEPT * limit if limit else float("inf")


def laplacian(place: Place) -> LocalLaplacian:
    """The rows of a partition, from memory or from its folder."""
    return _kept.get(place)


def _opened(place: Place) -> LocalLaplacian:
    """Read from the files into memory: what is mapped would count against a worker's limit for as long as it is."""
    part = read_verified(place.folder, place.mark, place.number)
    xp: Any = np
    if place.device == "cuda":
        import cupy

        xp = cupy
    dtype, n_rows = np.dtype(place.dtype), len(part.indptr) - 1
    indptr, indices, degrees = np.array(part.indptr), np.array(part.indices), np.array(part.degrees)
    if place.kind == "combinatorial":
        weights, diagonal = np.array(part.weights, dtype=dtype), degrees[:n_rows].astype(dtype)
    else:
        rows = csr_array((part.weights, indices, indptr), shape=(n_rows, part.n_local))
        scaled, diagonal = normalized_parts(rows, degrees)
        weights, diagonal = scaled.data.astype(dtype, copy=False), diagonal.astype(dtype, copy=False)
    owners, places = np.array(part.halo_owner), np.array(part.halo_place)
    senders = []
    for owner in np.unique(owners):
        positions = np.flatnonzero(owners == owner)
        senders.append((positions + part.n_own, places[positions]))
    nodes = np.array(part.nodes[: part.n_own])
    return LocalLaplacian(
        nodes,
        nodes if place.start is None else np.arange(place.start, place.start + part.n_own),
        [int(end) for end in part.ends],
        (xp.asarray(indptr), xp.asarray(indices), xp.asarray(weights), xp.asarray(diagonal)),
        np.array(part.boundary),
        [int(end) for end in part.boundary_ends],
        senders,
        xp,
    )


def row_facts(place: Place) -> tuple[Array, float]:
    """Diagonal and sums of squares of the other entries of own rows, and the largest sum of absolute values."""
    local = laplacian(place)
    indptr, indices, weights, diagonal = (on_host(array) for array in local.matrix)
    whole = csr_array((weights.astype(np.float64), indices, indptr), shape=(len(indptr) - 1, local.ends[-1]))
    rows, own = whole[: local.n_own], diagonal[: local.n_own]
    facts = np.column_stack([own, row_squares(rows.indptr, rows.data)]).astype(place.dtype)
    return facts, gershgorin_bound(rows, own)
