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
from spectralgp.graphs.core import normalized_parts
from spectralgp.operators.cpu import summed_column_products, summed_products
from spectralgp.partitioned.folder import read_partition, read_verified

CACHED_SHARE = 0.2  # of a worker's memory, for partitions of the graph that stay open


@dataclass(frozen=True)
class TaskKey:
    """Which partition a task works on, and in which form."""

    folder: str
    content_hash: str  # of the graph, so that another one built in the same folder is not taken for it
    number: int
    kind: str  # of Laplacian
    dtype: str
    device: str = "cpu"
    start: int | None = None  # position of the first own node, where signals come in the order of the partitions


@dataclass(frozen=True, eq=False)
class Message:
    """Blocks at some own nodes of a partition, shape (n_blocks, n_rows, n_columns), for others.

    `rows` are the places of these nodes in the partition's boundary, sorted; the first ones if not given.
    """

    values: Array
    rows: NDArray[np.int32] | None = None

    def __sizeof__(self) -> int:
        """Bytes of its arrays, for Dask."""
        return int(self.values.nbytes + (0 if self.rows is None else self.rows.nbytes))

    def only_for(self, others: tuple[int, ...], key: TaskKey) -> Message:
        """The part of a partition's whole message that some others need; all of it if none are named."""
        if not others:
            return self
        rows = _rows_needed(key.folder, key.content_hash, key.number, others)
        rows = rows[: int(np.searchsorted(rows, self.values.shape[1]))]
        return Message(self.values[:, rows], rows)

    def at(self, places: NDArray[np.int32]) -> Array:
        """Values at places in the boundary."""
        return self.values[:, places if self.rows is None else np.searchsorted(self.rows, places)]


@lru_cache(maxsize=1024)
def _rows_needed(folder: str, content_hash: str, number: int, others: tuple[int, ...]) -> NDArray[np.int32]:
    """Places in a partition's boundary that some others have in their halos; the hash only tells graphs apart."""
    parts = (read_partition(Path(folder), other) for other in others)  # verified by their own workers
    return np.unique(np.concatenate([part.halo_place[np.asarray(part.halo_owner) == number] for part in parts]))


@dataclass(frozen=True, eq=False)
class LocalLaplacian:
    """Rows of a Laplacian that a partition computes with, and what it exchanges."""

    nodes: NDArray[np.int64]  # numbers of the own nodes, which random numbers belong to
    positions: NDArray[np.int64]  # of the own nodes in signals: the nodes, or places in the order of the partitions
    ends: list[int]  # numbers of local nodes within 0, 1, ... hops
    matrix: tuple[Any, Any, Any, Any]  # indptr, indices, weights, diagonal; L is the diagonal less the weights
    boundary: NDArray[np.int32]  # own positions that others need, by the number of hops
    boundary_ends: list[int]
    senders: list[tuple[Any, Any]]  # per neighbour: local positions of its nodes, and their places in its messages
    xp: Any = np
    _rows: dict[tuple[int, int], Any] = field(default_factory=dict)

    @property
    def n_own(self) -> int:
        """Number of own nodes."""
        return self.ends[0]

    @property
    def n_bytes(self) -> int:
        """Memory that it takes."""
        return int(sum(array.nbytes for array in (*self.matrix, self.nodes)))

    def own_rows(self) -> tuple[csr_array, Array]:
        """Weights, in double precision, and diagonal of the own rows, on the host."""
        indptr, indices, weights, diagonal = (on_host(array) for array in self.matrix)
        whole = csr_array((weights.astype(np.float64), indices, indptr), shape=(len(indptr) - 1, self.ends[-1]))
        return whole[: self.n_own], diagonal[: self.n_own]

    # ----------------------------------------------------------------------------------------------- exchange

    def message(self, blocks: Sequence[Any], n_hops: int) -> Message:
        """What all others need of some blocks for `n_hops` steps, on the host."""
        chosen = self.xp.asarray(self.boundary[: self.boundary_ends[n_hops]])
        return Message(np.stack([on_host(block[chosen]) for block in blocks]))

    def receive(self, blocks: Sequence[Any], inbox: Sequence[Message], n_hops: int) -> None:
        """Fill `n_hops` rings of the halo of some blocks with messages, which are in the order of `senders`."""
        last = self.ends[n_hops]
        for (positions, places), message in zip(self.senders, inbox, strict=True):
            n_within = int(np.searchsorted(positions, last))
            for block, values in zip(blocks, message.at(places[:n_within]), strict=True):
                block[self.xp.asarray(positions[:n_within])] = self.xp.asarray(values)

    def spread(self, own: Any, inbox: Sequence[Message], n_hops: int) -> Any:
        """A block of own values with its halo of `n_hops` rings."""
        block = self.xp.zeros((self.ends[n_hops], own.shape[1]), dtype=own.dtype)
        block[: self.n_own] = own
        self.receive([block], inbox, n_hops)
        return block

    # -------------------------------------------------------------------------------------------------- steps

    def step(self, scale: float, current: Any, previous: Any, n_rows: int) -> None:
        """``scale L current - 2 current - previous`` in place of `previous`, in the first rows."""
        if self._is_compiled:
            from spectralgp.operators import loops

            loops.step_rows(self.matrix, current.dtype.type(scale), current, previous, 0, n_rows)
            return
        *_, diagonal = self.matrix
        product = diagonal[:n_rows, None] * current[:n_rows] - self._weights(n_rows, len(current)) @ current
        previous[:n_rows] = scale * product - 2 * current[:n_rows] - previous[:n_rows]

    def advance(self, scale: float, current: Any, previous: Any, n_rows: int, gram: bool) -> tuple[Array, Array]:
        """Take a `step`, and return products over own rows: of the new block with itself, and with the current one."""
        if self._is_compiled:
            from spectralgp.operators import loops

            arguments = (self.matrix, current.dtype.type(scale), current, previous)
            loop: Any = loops.gram_rows if gram else loops.columns_rows
            squares, crosses = loop(*arguments, self.n_own)
            loops.step_rows(*arguments, self.n_own, n_rows)
            return squares, crosses
        self.step(scale, current, previous, n_rows)
        own, other = previous[: self.n_own], current[: self.n_own]
        return products(own, own, gram), products(own, other, gram)

    @property
    def _is_compiled(self) -> bool:
        return self.xp is np and find_spec("numba") is not None

    def _weights(self, n_rows: int, n_columns: int) -> Any:
        shape = (n_rows, n_columns)
        if shape not in self._rows:
            indptr, indices, weights, _ = self.matrix
            last = int(indptr[n_rows])
            make: Any = csr_array if self.xp is np else import_module("cupyx.scipy.sparse").csr_matrix
            self._rows[shape] = make((weights[:last], indices[:last], indptr[: n_rows + 1]), shape=shape)
        return self._rows[shape]


def products(left: Any, right: Any, gram: bool) -> Array:
    """``left^T right``, or its diagonal, on the host in double precision."""
    if isinstance(left, np.ndarray):
        return summed_products(left, right) if gram else summed_column_products(left, right)
    product = on_host(left.T @ right).astype(np.float64)
    return product if gram else np.diagonal(product).copy()


# --------------------------------------------------------------------------------------------- opened partitions


class PartitionCache:
    """Partitions that this process has opened, as many as a share of its memory holds.

    A pass takes partitions in turn, so that the one it used last is the one it needs latest: where there is no room, a
    new one is not kept. Only those of other graphs and forms, from passes before, make room for it.
    """

    def __init__(self) -> None:
        self._lock, self._known = Lock(), dict[TaskKey, LocalLaplacian]()

    def get(self, key: TaskKey) -> LocalLaplacian:
        """A partition, from memory or from its folder."""
        with self._lock:
            if key in self._known:
                return self._known[key]
        opened = _opened(key)
        with self._lock:
            self._known[key] = opened
            limit, total = _memory_limit(), sum(one.n_bytes for one in self._known.values())
            others = [one for one in self._known if replace(one, number=key.number) != key]
            for one in (*others, key):
                if total <= limit:
                    break
                total -= self._known.pop(one).n_bytes
        return opened


_cache = PartitionCache()


def _memory_limit() -> float:
    """Bytes for opened partitions: a share of a worker's memory, or any number where it has no limit."""
    try:
        limit = import_module("distributed").get_worker().memory_manager.memory_limit
    except (ImportError, ValueError, AttributeError):  # in no worker
        return float("inf")
    return CACHED_SHARE * limit if limit else float("inf")


def laplacian(key: TaskKey) -> LocalLaplacian:
    """The rows of a partition, from memory or from its folder."""
    return _cache.get(key)


def _opened(key: TaskKey) -> LocalLaplacian:
    """Read from the files into memory: what is mapped would count against a worker's limit for as long as it is."""
    part = read_verified(key.folder, key.content_hash, key.number)
    xp: Any = import_module("cupy") if key.device == "cuda" else np
    dtype, n_rows = np.dtype(key.dtype), len(part.indptr) - 1
    indptr, indices, degrees = np.array(part.indptr), np.array(part.indices), np.array(part.degrees)
    if key.kind == "combinatorial":
        weights, diagonal = np.array(part.weights, dtype=dtype), degrees[:n_rows].astype(dtype)
    else:
        rows = csr_array((part.weights, indices, indptr), shape=(n_rows, part.n_local))
        scaled, diagonal = normalized_parts(rows, degrees)
        weights, diagonal = scaled.data.astype(dtype, copy=False), diagonal.astype(dtype, copy=False)
    owners, places = np.array(part.halo_owner), np.array(part.halo_place)
    halos = [np.flatnonzero(owners == owner) for owner in np.unique(owners)]
    nodes = np.array(part.nodes[: part.n_own])
    return LocalLaplacian(
        nodes,
        nodes if key.start is None else np.arange(key.start, key.start + part.n_own),
        part.ends.tolist(),
        (xp.asarray(indptr), xp.asarray(indices), xp.asarray(weights), xp.asarray(diagonal)),
        np.array(part.boundary),
        part.boundary_ends.tolist(),
        [(positions + part.n_own, places[positions]) for positions in halos],
        xp,
    )
