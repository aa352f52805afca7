"""Operator of a partitioned graph, on arrays that stay with the workers of a Dask cluster.

Functions of the cluster come last: its client, the assignment of partitions to workers, and errors.
"""

from __future__ import annotations

import copy
import mmap
import os
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import chain, count, pairwise
from operator import getitem
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import is_dask_array
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from spectralgp._basics.checks import Array
from spectralgp._basics.extras import require
from spectralgp._basics.progress import mention
from spectralgp.graphs import LaplacianKind
from spectralgp.graphs.operators import Operator, blocks
from spectralgp.graphs.partitioned import local
from spectralgp.graphs.partitioned.local import TaskKey
from spectralgp.graphs.partitioned.sources import BYTES_PER_CHUNK, PURPOSE, as_dask

if TYPE_CHECKING:
    from spectralgp.graphs.partitioned.graph import PartitionedGraph

Futures = list[Any]
EXCHANGES_AHEAD = 8  # exchanges that may be pending before the first of them is awaited
QUIET = {"distributed.scheduler.work-stealing": False, "distributed.scheduler.active-memory-manager.start": False}
"""Settings of Dask under which no state of a recurrence is moved or copied; recommended for your own clusters."""

PATIENCE = 10.0  # seconds between checks for living workers
NO_ROOM = "workers must have memory for their partitions"
MORE_ROOM = "Cut the graph into more partitions, pass Y as float32, or raise the workers' memory_limit."


class PartitionedBlock(NDArrayOperatorsMixin):
    """Block of columns over the nodes of a partitioned graph, with arithmetic; one future per partition."""

    def __init__(self, operator: PartitionedOperator, parts: Sequence[Any], n_columns: int) -> None:
        self.operator, self.n_columns = operator, n_columns
        self._parts: list[Any] | None = list(parts)

    @property
    def parts(self) -> list[Any]:
        """Own values of each partition, shape (n_own, n_columns)."""
        if self._parts is None:
            raise RuntimeError("a block was used after a recurrence had taken it over")
        return self._parts

    def taken(self) -> list[Any]:
        """Release the own values to the caller, so that their memory is freed after use."""
        parts, self._parts = self.parts, None
        return parts

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of nodes and columns."""
        return self.operator.n_nodes, self.n_columns

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
        """Apply part by part; numbers become Python's, which keep the precision of the parts."""
        if method != "__call__":
            return NotImplemented
        n_columns = max(one.n_columns for one in inputs if isinstance(one, PartitionedBlock))
        given = [one if isinstance(one, PartitionedBlock) or np.ndim(one) else float(one) for one in inputs]
        return self.operator.mapped(ufunc, n_columns, *given)


class PartitionedOperator(Operator):
    """Laplacian of a partitioned graph, applied by Dask's workers, several steps at a time between exchanges.

    Messages are kept during a pass: when a worker is lost, only its own partitions are computed again. Sums over the
    nodes are added up in the order of the partitions, so that results do not depend on the workers.
    """

    def __init__(self, graph: PartitionedGraph, kind: LaplacianKind, dtype: Any, device: str = "cpu") -> None:
        self.graph, self.dtype = graph, np.dtype(dtype)
        starts = np.cumsum([0, *graph.sizes]).tolist() if graph.is_in_partition_order else [None] * graph.n_partitions
        self.keys = [
            TaskKey(str(graph.folder), graph.content_hash, number, kind, self.dtype.name, device, starts[number])
            for number in range(graph.n_partitions)
        ]
        self._workers, self._known = [""] * graph.n_partitions, set[str]()
        mention(f"partitions by Dask, {self.client.dashboard_link}")
        super().__init__(graph.n_nodes, max(self.gather(self.each(local.largest_row, zip(self.keys)))))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_workers": [""] * len(self.keys), "_known": set()}  # other workers

    @property
    def client(self) -> Any:
        """Dask's client."""
        return current_client()

    def placed(self) -> list[str]:
        """Worker of each partition, to which tasks are pinned: Dask would move states to idle workers."""
        workers = workers_of(self.client)
        self._workers = placed_evenly(self._workers, workers)
        self._known |= set(workers)
        return self._workers

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Run a task, on a worker given by the options or chosen by Dask."""
        name = getattr(function, "func", function).__name__
        return self.client.submit(function, *arguments, key=f"{name}-{uuid.uuid4().hex}", **options)

    def each(self, function: Callable[..., Any], rows: Iterable[Sequence[Any]]) -> Futures:
        """Run one task per partition on its worker, each with its row of arguments."""
        pairs = zip(rows, self.placed(), strict=True)
        return [self.submit(function, *row, **pinned_to(worker)) for row, worker in pairs]

    def gather(self, futures: Futures) -> list[Any]:
        """Gather results of tasks on the client."""
        self.settle(futures)
        with explained_failures(self.client):
            return list(self.client.gather(futures))

    def settle(self, futures: Futures) -> None:
        """Wait until tasks are done: failures are raised here, and no long queue builds up."""
        client, distributed = self.client, require("distributed", "dask", PURPOSE)
        with explained_failures(client):
            while True:
                try:
                    distributed.wait(futures, timeout=PATIENCE)
                    break
                except distributed.TimeoutError:
                    alive = set(workers_of(client))
                    if self._known and alive and not alive & self._known:  # Dask would run no task elsewhere
                        raise RuntimeError(
                            f"some worker must live as long as a pass; got all {len(self._known)} lost since it began. "
                            "Nothing was changed: run it again."
                        ) from None
            for future in futures:
                if future.status != "finished":
                    future.result()

    def mapped(self, function: Callable[..., Any], n_columns: int, *arguments: Any) -> PartitionedBlock:
        """Block made part by part from blocks and keys; other arguments are passed to each task."""
        lists = [
            one.parts if isinstance(one, PartitionedBlock) else one if one is self.keys else [one] * len(self.keys)
            for one in arguments
        ]
        return PartitionedBlock(self, self.each(function, zip(*lists, strict=True)), n_columns)

    @cached_property
    def _neighbours(self) -> list[list[int]]:
        return [np.unique(self.graph.partition(number).halo_owner).tolist() for number in range(len(self.keys))]

    def exchange(self, parts: Futures, n_hops: int) -> list[Futures]:
        """Messages to each partition for `n_hops` steps: complete on the same worker, reduced for other workers."""
        workers, sent = self.placed(), []
        for key, part, near in zip(self.keys, parts, self._neighbours, strict=True):
            own, messages = workers[key.number], {}
            for worker in dict.fromkeys(workers[one] for one in near):
                others = () if worker == own else tuple(one for one in near if workers[one] == worker)
                messages[worker] = self.submit(local.message_of, key, part, n_hops, others, **pinned_to(own))
            sent.append(messages)
        return [[sent[one][worker] for one in near] for worker, near in zip(workers, self._neighbours, strict=True)]

    def load(self, signals: Any) -> PartitionedBlock:
        signals, n_signals = as_dask(signals), int(signals.shape[0])
        if is_dask_array(signals):
            parts = self._load_dask(signals)
        elif isinstance(signals, np.memmap) and isinstance(signals.base, mmap.mmap):
            order = "C" if signals.flags.c_contiguous else "F"
            where = (str(signals.filename), signals.dtype.str, int(signals.offset), signals.shape, order)
            parts = self.each(local.read_map, ((key, *where) for key in self.keys))
        else:
            values = signals if isinstance(signals, np.ndarray) else np.asarray(signals[:, :])
            rows = ((key, values[:, self.graph.own_nodes(key.number)]) for key in self.keys)
            with warnings.catch_warnings():
                # an array in memory is sent with the tasks, so that they can run again if a worker is lost
                warnings.filterwarnings("ignore", message="Sending large graph")
                parts = self.each(local.as_block, rows)
        return PartitionedBlock(self, parts, n_signals)

    def _load_dask(self, signals: Any) -> Futures:
        """Split each chunk, computed once, by the partitions of its nodes, and join the pieces."""
        delayed, graph = require("dask", "dask", PURPOSE).delayed, self.graph
        if graph.is_in_partition_order:
            chunks = signals.rechunk((signals.shape[0], graph.sizes)).to_delayed().ravel()
            place = delayed(local.as_block)
            return list(self.client.compute([place(*pair) for pair in zip(self.keys, chunks, strict=True)]))
        chunks, starts = signals.rechunk({0: -1}).to_delayed().ravel(), np.cumsum([0, *signals.chunks[1]])
        split, described = delayed(local.split_chunk), (str(graph.folder), graph.content_hash, len(self.keys))
        pairs = zip(chunks, starts.tolist(), strict=False)
        pieces = self._pieces(self.client.compute([split(*pair, *described) for pair in pairs]), len(self.keys))
        return self.each(local.join_pieces, ((key, [own[key.number] for own in pieces]) for key in self.keys))

    def _pieces(self, wholes: Futures, n_pieces: int) -> list[Futures]:
        """Pieces of each result, requested while it is in memory: from disk it would be read for each piece."""
        return [[self.submit(getitem, whole, number) for number in range(n_pieces)] for whole in wholes]

    def unload(self, block: PartitionedBlock) -> Any:
        """Signals as a Dask array in the user's order of nodes, with at most one chunk per partition."""
        dask, arrays = (require(name, "dask", PURPOSE) for name in ("dask", "dask.array"))
        graph, dtype, n_signals = self.graph, self.dtype, block.n_columns
        if graph.is_in_partition_order:
            widths, turned = graph.sizes, dask.delayed(local.signals_of_block)
            chunks = [turned(part) for part in block.parts]
        else:
            n_chunks = min(len(self.keys), 1 + n_signals * graph.n_nodes * dtype.itemsize // BYTES_PER_CHUNK)
            stops = np.linspace(0, graph.n_nodes, n_chunks + 1).astype(np.int64)
            pieces = self._pieces(self.mapped(local.split_block, 0, self.keys, block, stops).parts, n_chunks)
            widths, ordered = np.diff(stops).tolist(), dask.delayed(local.join_chunk)
            chunks = [
                ordered([own[number] for own in pieces], (n_signals, width), dtype.str)
                for number, width in enumerate(widths)
            ]
        pairs = zip(chunks, widths, strict=True)
        pieces = [arrays.from_delayed(chunk, (n_signals, width), dtype=dtype) for chunk, width in pairs]
        return arrays.concatenate(pieces, axis=1)

    def zeros(self, n_columns: int) -> PartitionedBlock:
        return self.mapped(local.zeros, n_columns, self.keys, n_columns)

    def unit_vectors(self, nodes: NDArray[np.intp]) -> PartitionedBlock:
        return self.mapped(local.unit_vectors, len(nodes), self.keys, np.asarray(nodes))

    def random_block(self, draw: Callable[..., Any], n_columns: int, random_state: np.random.Generator) -> Any:
        task = partial(local.random, draw)
        block = self.mapped(task, n_columns, self.keys, n_columns, copy.deepcopy(random_state))
        draw(np.empty(0, dtype=np.uint64), n_columns, random_state, self.dtype)  # advances it like the workers' copies
        return block

    def rows(self) -> PartitionedBlock:
        return self.mapped(local.rows, 2, self.keys)

    # ------------------------------------------------------------------------------------------------- passes

    def step(self, current: PartitionedBlock, previous: PartitionedBlock) -> PartitionedBlock:
        rows = zip(self.keys, current.parts, previous.parts, self.exchange(current.parts, 1), strict=True)
        parts = self.each(local.step_once, ((*row, 4 / self.bound) for row in rows))
        return PartitionedBlock(self, parts, current.n_columns)

    def recurrence(self, columns: PartitionedBlock, gram: bool) -> Iterator[tuple[Array, Array]]:
        recurrence, n_hops = _Pass(self, columns.taken(), self.graph.n_hops), self.graph.n_hops
        steps = partial(local.moment_steps, gram=gram)
        return chain.from_iterable(recurrence.sums(n_hops, steps) for _ in count())

    def filtered(self, columns: PartitionedBlock, coefficients: Array) -> PartitionedBlock:
        recurrence = _Pass(self, columns.parts, self.graph.n_hops)
        n_terms, descending = len(coefficients), coefficients[::-1]
        for start in range(0, n_terms, self.graph.n_hops):
            several = descending[start : start + self.graph.n_hops]
            n_done = start + len(several)
            steps = partial(local.clenshaw_steps, coefficients=several, is_last=n_done == n_terms)
            recurrence.advance(len(several), steps)
            mention(f"filter {n_done} of {n_terms}")
        parts = self.each(local.own_values, zip(self.keys, recurrence.states, strict=True))
        self.settle(parts)
        return PartitionedBlock(self, parts, coefficients.shape[-1])

    def probed(self, probes: PartitionedBlock, coefficients: Array) -> PartitionedBlock:
        recurrence = _Pass(self, probes.parts, self.graph.n_hops)
        shares = coefficients / probes.n_columns
        starts = [0, *range(self.graph.n_hops + 1, shares.shape[1], self.graph.n_hops)]
        for start, stop in pairwise([*starts, shares.shape[1]]):
            steps = partial(local.probe_steps, coefficients=shares[:, start:stop])
            recurrence.advance(stop - max(start, 1), steps)
        parts = self.each(local.probe_totals, zip(recurrence.states))
        self.settle(parts)
        return PartitionedBlock(self, parts, len(shares))

    def tridiagonal(self, start: PartitionedBlock) -> Iterator[tuple[float, float]]:
        """Rows of the tridiagonal matrix, with one exchange and one sum per step."""
        recurrence = _Pass(self, blocks.combine_columns(start, blocks.block_products(start, start) ** -0.5).parts, 1)
        length = 0.5  # of a vector of length one
        ((_, doubled, _),) = recurrence.sums(1, partial(local.lanczos_step, length=length, doubled=0.0))
        while True:
            steps = partial(local.lanczos_step, length=length, doubled=doubled)
            ((square, cross, overlap),) = recurrence.sums(1, steps)
            length = float(np.sqrt(square)) / 2
            yield doubled / 2, length
            doubled = cross / square - overlap


def _mapped(function: Callable[..., Any], width: Callable[..., int], block: PartitionedBlock, *others: Any) -> Any:
    return block.operator.mapped(function, width(block, *others), block, *others)


def _summed(multiply: Callable[..., Array], left: PartitionedBlock, right: PartitionedBlock) -> Array:
    return np.sum(left.operator.gather(left.operator.mapped(multiply, 0, left, right).parts), axis=0)


WIDTHS: dict[Any, Callable[..., int]] = {  # numbers of columns of the results
    blocks.row_products: lambda left, right: 1,
    blocks.join_columns: lambda left, right: left.n_columns + right.n_columns,
    blocks.take_columns: lambda block, columns: len(columns),
    blocks.combine_columns: lambda block, matrix: matrix.shape[-1],
}
for function, width in WIDTHS.items():
    function.register(PartitionedBlock, partial(_mapped, function, width))
for multiply in (blocks.block_products, blocks.column_products):
    multiply.register(PartitionedBlock, partial(_summed, multiply))


class _Pass:
    """Recurrence in progress: states of the partitions, and all messages so far, to recompute lost states."""

    def __init__(self, operator: PartitionedOperator, parts: Futures, n_hops: int) -> None:
        self.operator, self.states, self.n_hops = operator, parts, n_hops
        self._inboxes = [operator.exchange(parts, n_hops)]

    def advance(self, n_steps: int, steps: local.Steps) -> None:
        """Take steps, and exchange messages."""
        operator = self.operator
        rows = zip(operator.keys, self.states, self._inboxes[-1], strict=True)
        settings = (self.n_hops, n_steps, 4 / operator.bound, steps)
        self.states = operator.each(local.advance, ((*row, *settings) for row in rows))
        self._inboxes.append(operator.exchange(self.states, self.n_hops))
        operator.settle(list(chain.from_iterable(self._inboxes[-EXCHANGES_AHEAD:][0])))

    def sums(self, n_steps: int, steps: local.Steps) -> list[Any]:
        """Take steps, and sum their results in the order of the partitions."""
        self.advance(n_steps, steps)
        found = self.operator.gather(self.operator.each(getattr, ((state, "results") for state in self.states)))
        return [tuple(np.sum(parts, axis=0) for parts in zip(*step, strict=True)) for step in zip(*found, strict=True)]


def current_client() -> Any:
    """The user's client, or a new local cluster with one worker per core, and a warning."""
    distributed = require("distributed", "dask", PURPOSE)
    try:
        return distributed.get_client()
    except ValueError:
        pass
    n_workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with require("dask", "dask", PURPOSE).config.set(QUIET):
        client = distributed.Client(n_workers=n_workers, threads_per_worker=1)
    warnings.warn(
        f"No Dask client was there, so a local one with {n_workers} worker{'s' * (n_workers > 1)} was started "
        f"({client.dashboard_link}). Make your own before: dask.distributed.Client(...).",
        UserWarning,
        stacklevel=2,
    )
    return client


def workers_of(client: Any) -> list[str]:
    """Sorted addresses of the workers; a RuntimeError if the scheduler does not answer."""
    try:
        if client.status != "running":
            raise ConnectionError(f"the client is {client.status}")
        return sorted(client.ncores())
    except (OSError, CancelledError) as error:
        raise _lost(client, error) from error


def _lost(client: Any, error: BaseException) -> RuntimeError:
    address = client.scheduler.address if client.scheduler is not None else "an unknown address"
    return RuntimeError(
        f"the Dask scheduler at {address} must stay there until the work is done; got its connection closed "
        f"({type(error).__name__}). Nothing was changed: start a cluster and run it again."
    )


@contextmanager
def explained_failures(client: Any) -> Iterator[None]:
    """Explain errors of lost workers, a lost scheduler, or too little memory."""
    distributed = require("distributed", "dask", PURPOSE)
    lost = (distributed.comm.CommClosedError, CancelledError, TimeoutError)
    try:
        yield
    except distributed.KilledWorker as error:
        worker = getattr(error.last_worker, "address", "a worker")
        limit = getattr(error.last_worker, "memory_limit", None)
        room = f" (memory limit {limit / 1e9:.2g} GB)" if limit else ""
        raise MemoryError(f"{NO_ROOM}; got {worker}{room} killed while it computed. {MORE_ROOM}") from error
    except MemoryError as error:  # of a task, or of the scheduler
        raise MemoryError(f"{NO_ROOM}; got less: {error} {MORE_ROOM}") from error
    except lost as error:
        raise _lost(client, error) from error


def placed_evenly(before: Sequence[str], workers: Sequence[str]) -> list[str]:
    """Worker of each partition, given its previous worker ("" for none) and the present workers, if there are any."""
    if not workers:
        return [""] * len(before)
    # partitions stay with a living worker up to its share; others to free shares, consecutive ones to the same worker
    n_partitions, n_workers = len(before), len(workers)
    stops = [n_partitions * number // n_workers for number in range(n_workers + 1)]
    room = {worker: stops[number + 1] - stops[number] for number, worker in enumerate(workers)}
    kept: list[str | None] = []
    for worker in before:
        stays = room.get(worker, 0) > 0
        kept.append(worker if stays else None)
        if stays:
            room[worker] -= 1
    free = iter([worker for worker in workers for _ in range(room[worker])])
    return [worker or next(free) for worker in kept]


def pinned_to(worker: str) -> dict[str, Any]:
    """Options that pin a task to a worker, unless that worker is lost."""
    return {"workers": [worker], "allow_other_workers": True} if worker else {}
