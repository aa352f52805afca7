"""Computations of a worker on one partition: its rows of the Laplacian, steps, messages, tasks between exchanges.

Each task gets all data as arguments, opens its partition of the graph, and returns arrays, so that it can run again
elsewhere if its worker is lost. Only a `RecurrenceState` is changed in place, by the one task that takes it over and
leaves it empty. The cache of partitions comes first, then recurrences, own values, and signals in and out.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
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

from spectralgp._basics.arrays import few_threads, on_host
from spectralgp._basics.checks import Array
from spectralgp.graphs.core import LaplacianKind, laplacian_parts
from spectralgp.graphs.operators import block_products, column_products, combine_columns
from spectralgp.graphs.operators.cpu import gershgorin_bound, row_squares
from spectralgp.graphs.partitioned.folder import read_owners, read_partition, read_verified

CACHED_SHARE = 0.2  # of a worker's memory, for partitions of the graph that stay open


@dataclass(frozen=True)
class TaskKey:
    """Partition of a task, and the form of its Laplacian."""

    folder: str
    content_hash: str  # of the graph, in case another one is built in the folder
    number: int
    kind: LaplacianKind
    dtype: str
    device: str = "cpu"
    start: int | None = None  # position of the first own node, if signals are in the order of the partitions


@dataclass(frozen=True, eq=False)
class Message:
    """Values of blocks at boundary nodes of a partition, shape (n_blocks, n_rows, n_columns), for other partitions."""

    values: Array
    rows: NDArray[np.int32] | None = None  # positions in the boundary, sorted; the first ones if not given

    def __sizeof__(self) -> int:  # for Dask
        return int(self.values.nbytes + (0 if self.rows is None else self.rows.nbytes))


@lru_cache(maxsize=1024)
def _rows_needed(folder: str, content_hash: str, number: int, others: tuple[int, ...]) -> NDArray[np.int32]:
    """Positions in a partition's boundary that are in the halos of some others; the hash is part of the cache key."""
    parts = (read_partition(Path(folder), other) for other in others)  # verified by their own workers
    return np.unique(np.concatenate([part.halo_place[np.asarray(part.halo_owner) == number] for part in parts]))


@dataclass(frozen=True, eq=False)
class LocalLaplacian:
    """Rows of a Laplacian in one partition, and the positions of its exchanges."""

    nodes: NDArray[np.int64]  # numbers of the own nodes, for random numbers
    positions: NDArray[np.int64]  # of the own nodes in signals: the nodes, or places in the order of the partitions
    ends: list[int]  # numbers of local nodes within 0, 1, ... hops
    matrix: tuple[Any, Any, Any, Any]  # indptr, indices, weights, diagonal; L is the diagonal less the weights
    boundary: NDArray[np.int32]  # own positions in halos of others, by the number of hops
    boundary_ends: list[int]
    senders: list[tuple[Any, Any]]  # per neighbour: local positions of its nodes, and their places in its messages
    xp: Any
    _rows: dict[tuple[int, int], Any] = field(default_factory=dict)  # cached, since slices synchronise a GPU

    @property
    def n_own(self) -> int:
        """Number of own nodes."""
        return self.ends[0]

    @property
    def n_bytes(self) -> int:
        """Size in memory."""
        return int(sum(array.nbytes for array in (*self.matrix, self.nodes)))

    def own_rows(self) -> tuple[csr_array, Array]:
        """Weights, in double precision, and diagonal of the own rows, on the host."""
        indptr, indices, weights, diagonal = (on_host(array) for array in self.matrix)
        whole = csr_array((weights.astype(np.float64), indices, indptr), shape=(len(indptr) - 1, self.ends[-1]))
        return whole[: self.n_own], diagonal[: self.n_own]

    def message(self, blocks: Sequence[Any], n_hops: int) -> Message:
        """Values of blocks that all others need for `n_hops` steps, on the host."""
        chosen = self.xp.asarray(self.boundary[: self.boundary_ends[n_hops]])
        return Message(np.stack([on_host(block[chosen]) for block in blocks]))

    def receive(self, blocks: Sequence[Any], inbox: Sequence[Message], n_hops: int) -> None:
        """Fill `n_hops` rings of the halo of some blocks with messages, which are in the order of `senders`."""
        last = self.ends[n_hops]
        for (positions, places), message in zip(self.senders, inbox, strict=True):
            n_within = int(np.searchsorted(positions, last))
            rows, chosen = places[:n_within], self.xp.asarray(positions[:n_within])
            if message.rows is not None:
                rows = np.searchsorted(message.rows, rows)
            for block, values in zip(blocks, message.values[:, rows], strict=True):
                block[chosen] = self.xp.asarray(values)

    def spread(self, own: Any, inbox: Sequence[Message], n_hops: int) -> Any:
        """A block of own values with its halo of `n_hops` rings."""
        block = self.xp.empty((self.ends[n_hops], own.shape[1]), dtype=own.dtype)
        block[: self.n_own] = own
        self.receive([block], inbox, n_hops)
        return block

    def step(self, scale: float, current: Any, previous: Any, n_rows: int) -> None:
        """``scale L current - 2 current - previous`` in place of `previous`, in the first rows."""
        if self._is_compiled:
            from spectralgp.graphs.operators import loops

            loops.step_rows(self.matrix, current.dtype.type(scale), current, previous, 0, n_rows)
            return
        *_, diagonal = self.matrix
        product = diagonal[:n_rows, None] * current[:n_rows] - self._weights(n_rows, len(current)) @ current
        previous[:n_rows] = scale * product - 2 * current[:n_rows] - previous[:n_rows]

    def advance(self, scale: float, current: Any, previous: Any, n_rows: int, gram: bool) -> tuple[Array, Array]:
        """Take a `step`, and return products over own rows: of the new block with itself, and with the current one."""
        if self._is_compiled:
            from spectralgp.graphs.operators import loops

            arguments = (self.matrix, current.dtype.type(scale), current, previous)
            squares, crosses = np.zeros((2, *[current.shape[1]] * (2 if gram else 1)))
            loops.add(*arguments, 0, self.n_own, squares, crosses)
            loops.step_rows(*arguments, self.n_own, n_rows)
            return squares, crosses
        self.step(scale, current, previous, n_rows)
        own, other = previous[: self.n_own], current[: self.n_own]
        multiply = block_products if gram else column_products
        return multiply(own, own), multiply(own, other)

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


_cache: dict[TaskKey, LocalLaplacian] = {}
_cache_lock = Lock()


def laplacian(key: TaskKey, limit: float | None = None) -> LocalLaplacian:
    """Rows of a partition, from the cache, of at most `limit` bytes, by default `cache_limit()`, or from its folder."""
    # a pass takes partitions in turn, so that the one used last is needed latest: a full cache does not take a new one;
    # only partitions of other graphs and forms, from earlier passes, are removed for it
    with _cache_lock:
        if key in _cache:
            return _cache[key]
    opened = _opened(key)
    with _cache_lock:
        _cache[key] = opened
        limit, total = cache_limit() if limit is None else limit, sum(one.n_bytes for one in _cache.values())
        others = [one for one in _cache if replace(one, number=key.number) != key]
        for one in (*others, key):
            if total <= limit:
                break
            total -= _cache.pop(one).n_bytes
    return opened


def cache_limit() -> float:
    """Bytes for opened partitions: a share of a worker's memory limit, or infinity."""
    try:
        limit = import_module("distributed").get_worker().memory_manager.memory_limit
    except (ImportError, ValueError, AttributeError):  # in no worker
        return float("inf")
    return CACHED_SHARE * limit if limit else float("inf")


def _opened(key: TaskKey) -> LocalLaplacian:
    """Read from the files into memory: maps would count against the worker's limit."""
    part = read_verified(key.folder, key.content_hash, key.number)
    xp: Any = import_module("cupy") if key.device == "cuda" else np
    dtype, n_rows = np.dtype(key.dtype), len(part.indptr) - 1
    indptr, indices, degrees = np.array(part.indptr), np.array(part.indices), np.array(part.degrees)
    rows = csr_array((np.array(part.weights), indices, indptr), shape=(n_rows, part.n_local))
    scaled, diagonal = laplacian_parts(rows, degrees, key.kind)
    weights, diagonal = np.asarray(scaled.data, dtype), np.asarray(diagonal, dtype)
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


@dataclass(frozen=True, eq=False)
class RecurrenceState:
    """State of a recurrence in one partition."""

    blocks: list[Any]  # the current block, the one before and others, with halos; empty once a task has taken them over
    carried: dict[str, Any] = field(default_factory=dict)  # further arrays
    results: list[Any] = field(default_factory=list)  # results of the last steps
    message: Message = Message(np.empty(0))  # values of the blocks that others need

    def __sizeof__(self) -> int:
        # Dask uses the bytes of the arrays to decide what to move, and what to write to disk
        return int(sum(array.nbytes for array in (*self.blocks, self.message.values, *self.carried.values())))

    def take_over(self) -> RecurrenceState:
        """Take the state over, for the one task that changes its blocks."""
        if not self.blocks:
            raise RuntimeError("the state of a recurrence was taken over twice; run the whole pass again")
        blocks = list(self.blocks)
        self.blocks.clear()
        return RecurrenceState(blocks, self.carried)


# steps of a recurrence, each in the local nodes up to an end; the first state has one block and its own values
Steps = Callable[[LocalLaplacian, RecurrenceState, float, list[int]], None]


def advance(
    key: TaskKey, state: Any, inbox: Sequence[Message], n_hops: int, n_steps: int, scale: float, steps: Steps
) -> RecurrenceState:
    """Take steps from a state, or from own values, after an exchange; each invalidates one of the `n_hops` rings."""
    local = laplacian(key)
    with few_threads(1):
        if isinstance(state, RecurrenceState):
            state = state.take_over()
            local.receive(state.blocks, inbox, n_steps)
        else:
            state = RecurrenceState([local.spread(state, inbox, n_hops)], {"own": state})
        steps(local, state, scale, local.ends[:n_steps][::-1])
        return replace(state, message=local.message(state.blocks, n_hops))


def moment_steps(local: LocalLaplacian, state: RecurrenceState, scale: float, ends: list[int], gram: bool) -> None:
    """``T_k(A)`` of a block; results are products of each with itself and with the one before."""
    state.carried.clear()
    state.results.extend(local.advance(*step, gram) for step in _chebyshev_steps(state, scale, ends))


def probe_steps(
    local: LocalLaplacian, state: RecurrenceState, scale: float, ends: list[int], coefficients: Array
) -> None:
    """``T_k(A) z`` of probes ``z``, with sums of ``z * f(L) z``."""
    # coefficients have shape (n_functions, n_steps); the first ones have one more column, for T_0
    xp, terms = local.xp, iter(coefficients.T)

    def add(block: Any) -> None:
        rows = xp.einsum("mn,mn->m", state.carried["own"], block[: local.n_own])[:, None]
        state.carried["total"] += rows * xp.asarray(next(terms), dtype=rows.dtype)

    if len(state.blocks) == 1:
        state.carried["total"] = xp.zeros((local.n_own, len(coefficients)), dtype=state.blocks[0].dtype)
        add(state.blocks[0])
    for step in _chebyshev_steps(state, scale, ends):
        local.step(*step)
        add(state.blocks[1])


def _chebyshev_steps(state: RecurrenceState, scale: float, ends: list[int]) -> Iterator[tuple[float, Any, Any, int]]:
    """Arguments of each step, after which the next block becomes the current one."""
    factor = scale
    if len(state.blocks) == 1:  # at half the scale, from -T_0: scale L T_0 / 2 - 2 T_0 + T_0 is T_1 = A T_0
        state.blocks.append(-state.blocks[0])
        factor = scale / 2
    for n_rows in ends:
        current, previous = state.blocks
        yield factor, current, previous, n_rows
        state.blocks.reverse()
        factor = scale


def clenshaw_steps(
    local: LocalLaplacian, state: RecurrenceState, scale: float, ends: list[int], coefficients: Array, is_last: bool
) -> None:
    """Steps ``b_k = 2 A b_{k+1} - b_{k+2} + C_k``, at last ``A b_1 - b_2 + C_0``; ``C_k`` combines the columns."""
    # coefficients have shape (n_steps, n_columns, n_outputs) or (n_steps, n_columns), in descending order
    if len(state.blocks) == 1:
        block = state.blocks.pop()
        state.carried.clear()
        state.carried["columns"] = block
        shape = (len(block), coefficients.shape[-1])
        state.blocks.extend(local.xp.zeros(shape, dtype=block.dtype) for _ in range(2))
    for number, n_rows in enumerate(ends):
        current, previous = state.blocks
        is_half = is_last and number == len(coefficients) - 1
        if is_half:  # at half the scale, from b_2 - b_1: scale L b_1 / 2 - 2 b_1 - b_2 + b_1 is A b_1 - b_2
            previous[:n_rows] -= current[:n_rows]
        local.step(scale / 2 if is_half else scale, current, previous, n_rows)
        previous[:n_rows] += combine_columns(state.carried["columns"][:n_rows], coefficients[number])
        state.blocks.reverse()


def lanczos_step(
    local: LocalLaplacian, state: RecurrenceState, scale: float, ends: list[int], length: float, doubled: float
) -> None:
    """One step of the Lanczos method; the result has products of ``w`` with itself, ``2 A w`` and the previous vector.

    Blocks are ``2 A w``, ``w`` and the vector before ``u = w / (2 length)``, of length one. Lengths are sums over all
    partitions, known after the step, so that vectors are divided by them a step later: the next ``w`` is ``2 A u`` less
    `doubled` times ``u`` and less the one before.
    """
    if len(state.blocks) == 1:
        state.carried.clear()
        vector, before = state.blocks[0], local.xp.zeros_like(state.blocks[0])
    else:
        product, left, before = state.blocks
        unit = left / (2 * length)
        vector = product / (2 * length) - before * (2 * length) - unit * doubled
        before = unit
    product = local.xp.zeros_like(vector)
    local.step(scale, vector, product, ends[0])
    state.blocks[:] = product, vector, before
    own = [block[: local.n_own] for block in (vector, product, before)]
    state.results.append(np.array([column_products(own[0], other)[0] for other in own]))


def message_of(key: TaskKey, part: Any, n_hops: int, others: tuple[int, ...]) -> Message:
    """Message of a state, or of a block of own values, for `n_hops` steps of some others, or of all."""
    message = part.message if isinstance(part, RecurrenceState) else laplacian(key).message([part], n_hops)
    if not others:
        return message
    rows = _rows_needed(key.folder, key.content_hash, key.number, others)
    rows = rows[: int(np.searchsorted(rows, message.values.shape[1]))]
    return Message(message.values[:, rows], rows)


def probe_totals(state: RecurrenceState) -> Any:
    """Sums over probes."""
    return state.carried["total"]


def own_values(key: TaskKey, state: RecurrenceState) -> Any:
    """The current block at own nodes."""
    return state.blocks[0][: laplacian(key).n_own].copy()


def step_once(key: TaskKey, current: Any, previous: Any, inbox: Sequence[Message], scale: float) -> Any:
    """One step of the recurrence from blocks of own values, which are not changed."""
    local = laplacian(key)
    with few_threads(1):
        following = previous.copy()
        local.step(scale, local.spread(current, inbox, 1), following, local.n_own)
        return following


def largest_row(key: TaskKey) -> float:
    """The largest sum of absolute values in a row of ``L``."""
    return gershgorin_bound(*laplacian(key).own_rows())


def rows(key: TaskKey) -> Any:
    """Diagonal of ``L``, and sums of squares of its other entries in each row."""
    local = laplacian(key)
    weights, diagonal = local.own_rows()
    return local.xp.asarray(np.column_stack([diagonal, row_squares(weights.indptr, weights.data)]).astype(key.dtype))


def zeros(key: TaskKey, n_columns: int) -> Any:
    """Block of zeros."""
    local = laplacian(key)
    return local.xp.zeros((local.n_own, n_columns), dtype=key.dtype)


def unit_vectors(key: TaskKey, nodes: NDArray[np.intp]) -> Any:
    """Block with a one at one node per column."""
    local, block = laplacian(key), zeros(key, len(nodes))
    order = np.argsort(local.positions)
    found = np.minimum(np.searchsorted(local.positions, nodes, sorter=order), local.n_own - 1)
    own = np.flatnonzero(local.positions[order[found]] == nodes)
    block[order[found[own]], own] = 1
    return block


def random(draw: Any, key: TaskKey, n_columns: int, random_state: np.random.Generator) -> Any:
    """Random numbers of the nodes; the generator is copied, since the task may run again."""
    local, own = laplacian(key), copy.deepcopy(random_state)
    return draw(local.xp.asarray(local.nodes.astype(np.uint64)), n_columns, own, key.dtype)


def as_block(key: TaskKey, values: NDArray[Any]) -> Any:
    """Signals of the own nodes, in their order, as a block."""
    return laplacian(key).xp.asarray(np.ascontiguousarray(values.T), dtype=key.dtype)


def read_map(key: TaskKey, filename: str, dtype: str, offset: int, shape: tuple[int, int], order: str) -> Any:
    """Own columns of a file, mapped a signal at a time, since maps count as a worker's memory."""
    local, (n_signals, n_nodes) = laplacian(key), shape
    block = np.empty((local.n_own, n_signals), dtype=key.dtype)
    if order == "F":
        block[:] = np.memmap(filename, dtype, "r", offset, (n_nodes, n_signals))[local.positions]
        return local.xp.asarray(block)
    n_bytes = n_nodes * np.dtype(dtype).itemsize
    for number in range(n_signals):
        block[:, number] = np.memmap(filename, dtype, "r", offset + number * n_bytes, (n_nodes,))[local.positions]
    return local.xp.asarray(block)


def split_chunk(chunk: Any, start: int, folder: str, content_hash: str, n_parts: int) -> list[tuple[NDArray[Any], ...]]:
    """Positions and values of a chunk's nodes for each partition; the chunk begins at node `start`."""
    owners, places = (array[start : start + chunk.shape[1]] for array in read_owners(folder, content_hash))
    return _grouped(owners, n_parts, places, np.asarray(chunk).T)


def _grouped(groups: NDArray[Any], n_groups: int, *arrays: NDArray[Any]) -> list[tuple[NDArray[Any], ...]]:
    """Rows of some arrays by group."""
    order = np.argsort(groups, kind="stable")
    stops = np.searchsorted(groups[order], np.arange(1, n_groups))
    return [tuple(array[rows] for array in arrays) for rows in np.split(order, stops)]


def join_pieces(key: TaskKey, pieces: list[tuple[NDArray[Any], ...]]) -> Any:
    """Block of a partition from its pieces of all chunks by `split_chunk`."""
    local = laplacian(key)
    block = np.empty((local.n_own, pieces[0][1].shape[1]), dtype=key.dtype)
    for places, values in pieces:
        block[places] = values
    return local.xp.asarray(block)


def split_block(key: TaskKey, part: Any, stops: NDArray[np.int64]) -> list[tuple[NDArray[Any], ...]]:
    """Positions and values of own nodes for each chunk of the user's order."""
    nodes = laplacian(key).positions
    chunks = np.searchsorted(stops, nodes, side="right") - 1
    return _grouped(chunks, len(stops) - 1, nodes - stops[chunks], on_host(part))


def join_chunk(pieces: list[Any], shape: tuple[int, int], dtype: str) -> NDArray[Any]:
    """Chunk of signals from its pieces of all partitions by `split_block`."""
    signals = np.empty(shape, dtype=dtype)
    for places, values in pieces:
        signals[:, places] = values.T
    return signals


def signals_of_block(part: Any) -> NDArray[Any]:
    """Signals of the own nodes, from a block."""
    return np.ascontiguousarray(on_host(part).T)
