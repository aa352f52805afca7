"""The operator of a partitioned graph: the verbs of the others, on arrays that stay with Dask's workers."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from spectralgp._basics.checks import Array
from spectralgp._basics.progress import mention
from spectralgp.graphs import LaplacianKind
from spectralgp.operators import ArrayOperator, Operator
from spectralgp.partitioned import cluster, local
from spectralgp.partitioned.cluster import Placement, pinned_to, workers_of
from spectralgp.partitioned.local import TaskKey
from spectralgp.partitioned.signals import Futures, loaded, unloaded

if TYPE_CHECKING:
    from spectralgp.partitioned.graph import PartitionedGraph

EXCHANGES_AHEAD = 8  # that may be under way before the first of them is waited for


class PartitionedBlock(NDArrayOperatorsMixin):
    """Columns over the nodes of a partitioned graph, with the arithmetic of an array; one future per partition."""

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
        """Own values, of which this block forgets: memory is free when the taker is done with it."""
        parts, self._parts = self.parts, None
        return parts

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of nodes and columns."""
        return self.operator.n_nodes, self.n_columns

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
        """Part by part; numbers are Python's, by which no part changes its precision."""
        if method != "__call__":
            return NotImplemented
        blocks = [one for one in inputs if isinstance(one, PartitionedBlock)]
        given = [one if isinstance(one, PartitionedBlock) or np.ndim(one) else float(one) for one in inputs]
        return self.operator.mapped(ufunc, max(block.n_columns for block in blocks), *given)


class PartitionedOperator(Operator):
    """Laplacian of a partitioned graph, applied by Dask's workers, several steps at a time between exchanges.

    Messages are kept for as long as a pass lasts: when a worker is lost, its own partitions alone are computed again.
    Sums over the nodes are added up in the order of the partitions: who computed what does not change a bit.
    """

    def __init__(self, graph: PartitionedGraph, kind: LaplacianKind, dtype: Any, device: str = "cpu") -> None:
        self.graph, self.dtype = graph, np.dtype(dtype)
        starts = np.cumsum([0, *graph.sizes]).tolist() if graph.is_in_partition_order else [None] * graph.n_partitions
        self.keys = [
            TaskKey(str(graph.folder), graph.content_hash, number, kind, self.dtype.name, device, starts[number])
            for number in range(graph.n_partitions)
        ]
        self._placement = Placement(graph.n_partitions)
        mention(f"partitions by Dask, {self.client.dashboard_link}")
        super().__init__(graph.n_nodes, max(self.gather(self.each(local.largest_row, zip(self.keys)))))

    def __getstate__(self) -> dict[str, Any]:
        # without the workers' addresses
        return self.__dict__ | {"_placement": Placement(len(self.keys))}

    @property
    def client(self) -> Any:
        """Dask's client."""
        return cluster.current_client()

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Run a task; where, is decided by the options, else by Dask."""
        name = getattr(function, "func", function).__name__
        return self.client.submit(function, *arguments, key=f"{name}-{uuid.uuid4().hex}", pure=False, **options)

    def each(self, function: Callable[..., Any], rows: Iterable[Sequence[Any]]) -> Futures:
        """Run one task per partition on its worker, each with its row of arguments."""
        workers = self._placement.among(workers_of(self.client))
        return [self.submit(function, *row, **pinned_to(worker)) for row, worker in zip(rows, workers, strict=True)]

    def gather(self, futures: Futures) -> list[Any]:
        """Results of tasks on the client."""
        self.settle(futures)
        with cluster.explained_failures(self.client):
            return list(self.client.gather(futures))

    def settle(self, futures: Futures) -> None:
        """Wait until tasks are done: failures are raised here, and no long queue builds up."""
        cluster.settle(self.client, futures, self._placement.known)

    def mapped(self, function: Callable[..., Any], n_columns: int, *arguments: Any) -> PartitionedBlock:
        """A block made part by part of others and of keys; all other arguments are given to every task."""
        lists = [
            one.parts if isinstance(one, PartitionedBlock) else one if one is self.keys else [one] * len(self.keys)
            for one in arguments
        ]
        return PartitionedBlock(self, self.each(function, zip(*lists, strict=True)), n_columns)

    @cached_property
    def _neighbours(self) -> list[list[int]]:
        return [np.unique(self.graph.partition(number).halo_owner).tolist() for number in range(len(self.keys))]

    def exchange(self, parts: Futures, n_hops: int) -> list[Futures]:
        """Messages for each partition for `n_hops` steps: whole on their own worker, and cut to what others need."""
        workers, sent = self._placement.among(workers_of(self.client)), []
        for key, part, near in zip(self.keys, parts, self._neighbours, strict=True):
            own, messages = workers[key.number], {}
            for worker in dict.fromkeys(workers[one] for one in near):
                others = () if worker == own else tuple(one for one in near if workers[one] == worker)
                messages[worker] = self.submit(local.message_of, key, part, n_hops, others, **pinned_to(own))
            sent.append(messages)
        return [[sent[one][worker] for one in near] for worker, near in zip(workers, self._neighbours, strict=True)]

    def load(self, signals: Any) -> PartitionedBlock:
        return PartitionedBlock(self, loaded(self, signals), int(signals.shape[0]))

    def unload(self, block: PartitionedBlock) -> Any:
        return unloaded(self, block.parts, block.n_columns)

    def zeros(self, n_columns: int) -> PartitionedBlock:
        return self.mapped(local.zeros, n_columns, self.keys, n_columns)

    def unit_vectors(self, nodes: NDArray[np.intp]) -> PartitionedBlock:
        return self.mapped(local.unit_vectors, len(nodes), self.keys, np.asarray(nodes))

    def random_block(self, draw: Callable[..., Any], n_columns: int, random_state: np.random.Generator) -> Any:
        task = partial(local.random, draw)
        block = self.mapped(task, n_columns, self.keys, n_columns, copy.deepcopy(random_state))
        draw(np.empty(0, dtype=np.uint64), n_columns, random_state, self.dtype)  # moves on as the workers' copies do
        return block

    def rows(self) -> PartitionedBlock:
        return self.mapped(local.rows, 2, self.keys)

    def row_products(self, left: PartitionedBlock, right: PartitionedBlock) -> PartitionedBlock:
        return self.mapped(ArrayOperator.row_products, 1, left, right)

    def beside(self, left: PartitionedBlock, right: PartitionedBlock) -> PartitionedBlock:
        return self.mapped(ArrayOperator.beside, left.n_columns + right.n_columns, left, right)

    def chosen(self, block: PartitionedBlock, columns: NDArray[np.intp]) -> PartitionedBlock:
        return self.mapped(ArrayOperator.chosen, len(columns), block, np.asarray(columns))

    def combine(self, block: PartitionedBlock, matrix: Array) -> PartitionedBlock:
        return self.mapped(ArrayOperator.combine, matrix.shape[1], block, matrix)

    def scale(self, block: PartitionedBlock, factors: Array) -> PartitionedBlock:
        return self.mapped(ArrayOperator.scale, block.n_columns, block, factors)

    def product(self, left: PartitionedBlock, right: PartitionedBlock) -> Array:
        return self._summed(ArrayOperator.product, left, right)

    def column_products(self, left: PartitionedBlock, right: PartitionedBlock) -> Array:
        return self._summed(ArrayOperator.column_products, left, right)

    def _summed(self, multiply: Callable[..., Array], left: PartitionedBlock, right: PartitionedBlock) -> Array:
        return np.sum(self.gather(self.mapped(multiply, 0, left, right).parts), axis=0)

    # ------------------------------------------------------------------------------------------------- passes

    def step(self, current: PartitionedBlock, previous: PartitionedBlock) -> PartitionedBlock:
        rows = zip(self.keys, current.parts, previous.parts, self.exchange(current.parts, 1), strict=True)
        parts = self.each(local.stepped, ((*row, 4 / self.bound) for row in rows))
        return PartitionedBlock(self, parts, current.n_columns)

    def recurrence(self, columns: PartitionedBlock, gram: bool) -> Iterator[tuple[Array, Array]]:
        recurrence = _Pass(self, columns.taken(), self.graph.n_hops)

        def found() -> Iterator[tuple[Array, Array]]:
            is_first = True
            while True:
                recurrence.advance(self.graph.n_hops, local.Moments(gram, is_first))
                yield from recurrence.sums()
                is_first = False

        return found()

    def filtered(self, columns: PartitionedBlock, coefficients: Array) -> PartitionedBlock:
        recurrence = _Pass(self, columns.parts, self.graph.n_hops)
        n_terms, descending = len(coefficients), coefficients[::-1]
        for start in range(0, n_terms, self.graph.n_hops):
            several = descending[start : start + self.graph.n_hops]
            n_done = start + len(several)
            recurrence.advance(len(several), local.Clenshaw(several, is_last=n_done == n_terms))
            mention(f"filter {n_done} of {n_terms}")
        parts = self.each(local.own_values, zip(self.keys, recurrence.states, strict=True))
        self.settle(parts)
        return PartitionedBlock(self, parts, coefficients.shape[-1])

    def probed(self, probes: PartitionedBlock, coefficients: Array) -> PartitionedBlock:
        recurrence = _Pass(self, probes.parts, self.graph.n_hops)
        shares = coefficients / probes.n_columns
        starts = [0, *range(self.graph.n_hops + 1, shares.shape[1], self.graph.n_hops)]
        for start, stop in pairwise([*starts, shares.shape[1]]):
            several = shares[:, start:stop]
            recurrence.advance(several.shape[1] - (start == 0), local.Probes(several, is_first=start == 0))
        parts = self.each(local.total_of, zip(recurrence.states))
        self.settle(parts)
        return PartitionedBlock(self, parts, len(shares))

    def _lanczos_rows(self, start: PartitionedBlock) -> Iterator[tuple[float, float]]:
        """Rows of the tridiagonal matrix, with one exchange and one sum per step."""
        recurrence = _Pass(self, self.combine(start, self.product(start, start) ** -0.5).parts, 1)
        recurrence.advance(1, local.Lanczos())
        ((square, cross, _),) = recurrence.sums()
        length, doubled = 0.5, cross / square
        while True:
            recurrence.advance(1, local.Lanczos(length, doubled))
            ((square, cross, overlap),) = recurrence.sums()
            length = float(np.sqrt(square)) / 2
            yield doubled / 2, length
            doubled = cross / square - overlap


class _Pass:
    """A recurrence under way: states of the partitions, and all messages so far, from which lost ones start again."""

    def __init__(self, operator: PartitionedOperator, parts: Futures, n_hops: int) -> None:
        self.operator, self.states, self.n_hops = operator, parts, n_hops
        self._inboxes = [operator.exchange(parts, n_hops)]

    def advance(self, n_steps: int, program: local.Program) -> None:
        """Take steps of a program, and tell the neighbours."""
        operator = self.operator
        rows = zip(operator.keys, self.states, self._inboxes[-1], strict=True)
        settings = (self.n_hops, n_steps, 4 / operator.bound, program)
        self.states = operator.each(local.advance, ((*row, *settings) for row in rows))
        self._inboxes.append(operator.exchange(self.states, self.n_hops))
        operator.settle(list(chain.from_iterable(self._inboxes[-EXCHANGES_AHEAD:][0])))

    def sums(self) -> list[Any]:
        """What the program found at each of the last steps, added up in the order of the partitions."""
        found = self.operator.gather(self.operator.each(local.found_by, zip(self.states)))
        return [tuple(np.sum(parts, axis=0) for parts in zip(*step, strict=True)) for step in zip(*found, strict=True)]
