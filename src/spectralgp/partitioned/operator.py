"""The operator of a partitioned graph: the verbs of the others, on arrays that stay with Dask's workers."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.checks import Array
from spectralgp._basics.progress import mention
from spectralgp.operators import Operator, Recurrence, precision_of
from spectralgp.operators.base import Tridiagonal
from spectralgp.operators.randomness import node_normals, node_signs
from spectralgp.partitioned import tasks, verbs
from spectralgp.partitioned.blocks import PartitionedBlock
from spectralgp.partitioned.homes import Homes, Told, at
from spectralgp.partitioned.local import Place, products
from spectralgp.partitioned.moving import Futures, loaded, stacked, unloaded
from spectralgp.partitioned.running import Parted, current_client, explaining, settle, workers_of

AHEAD = 8  # exchanges that may be under way before the first of them is waited for


def make_partitioned_operator(graph: Parted, kind: str, like: Any, device: str | None = None) -> PartitionedOperator:
    """Operator of a Laplacian of a partitioned graph, for signals such as `like`, on the client that is there."""
    return PartitionedOperator(graph, kind, precision_of(np.empty(0) if like is None else like), device or "cpu")


class PartitionedOperator(Operator):
    """Laplacian of a partitioned graph, applied by Dask's workers.

    A block is one future a partition. Steps are taken several at a time between exchanges, as many as the halo of the
    partitions has hops. What partitions told each other is kept for as long as a pass lasts, so that when a worker is
    lost its own partitions alone are computed again. Sums over the nodes are added up on the client, in the order of
    the partitions: the result is the same to the last bit whichever worker computed what.

    Parameters
    ----------
    graph : PartitionedGraph
        The graph.
    kind : {"combinatorial", "normalized"}
        Which Laplacian.
    dtype : float64 or float32
        Precision of the blocks.
    device : {"cpu", "cuda"}, default="cpu"
        Where workers compute.
    """

    def __init__(self, graph: Parted, kind: str, dtype: Any, device: str = "cpu") -> None:
        self.graph, self.dtype = graph, np.dtype(dtype)
        mark = graph.mark
        starts = np.cumsum([0, *graph.sizes]).tolist() if graph.is_in_partition_order else [None] * graph.n_partitions
        self.places = [
            Place(str(graph.folder), mark, number, kind, self.dtype.name, device, starts[number])
            for number in range(graph.n_partitions)
        ]
        self._homes = Homes(graph.n_partitions)
        mention(f"partitions by Dask, {self.client.dashboard_link}")
        super().__init__(graph.n_nodes, max(self.gather(self.each(verbs.largest_row, zip(self.places)))))

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling, without the workers' addresses."""
        return self.__dict__ | {"_homes": Homes(len(self.places))}

    # -------------------------------------------------------------------------------------------------- tasks

    @property
    def client(self) -> Any:
        """Dask's client."""
        return current_client()

    @property
    def n_hops(self) -> int:
        """Steps between two exchanges."""
        return self.graph.n_hops

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Run a task; if not told by the options, what it needs decides where."""
        name = getattr(function, "func", function).__name__
        return self.client.submit(function, *arguments, key=f"{name}-{uuid.uuid4().hex}", pure=False, **options)

    def each(self, function: Callable[..., Any], rows: Iterable[Sequence[Any]]) -> Futures:
        """Run a task for every partition where it is at home, each with its row of arguments."""
        homes = self._homes.now(workers_of(self.client))
        return [self.submit(function, *row, **at(home)) for row, home in zip(rows, homes, strict=True)]

    def gather(self, futures: Futures) -> list[Any]:
        """Results of tasks on the client."""
        client = self.client
        with explaining(client):
            settle(client, futures, self._homes.known)
            return list(client.gather(futures))

    def _made(self, function: Callable[..., Any], n_columns: int, *arguments: Any) -> PartitionedBlock:
        return PartitionedBlock(self, self.each(function, ((place, *arguments) for place in self.places)), n_columns)

    def _mapped(self, function: Callable[..., Any], n_columns: int, *arguments: Any) -> PartitionedBlock:
        """A block from others, part by part; what is no block is given to every task."""
        lists = [one.parts if isinstance(one, PartitionedBlock) else [one] * len(self.places) for one in arguments]
        return PartitionedBlock(self, self.each(function, zip(*lists, strict=True)), n_columns)

    @cached_property
    def _neighbours(self) -> list[list[int]]:
        return [[int(one) for one in self.graph.partition(number).neighbours] for number in range(len(self.places))]

    def exchanged(self, function: Callable[..., Any], parts: Futures, told: Told, *arguments: Any) -> Futures:
        """Run a task on every partition with what its neighbours have told it."""
        rows = zip(self.places, parts, self._inboxes(told), strict=True)
        return self.each(function, ((*row, *arguments) for row in rows))

    def _inboxes(self, told: Told) -> list[Futures]:
        return [told.inbox(number, near) for number, near in enumerate(self._neighbours)]

    def messages(self, parts: Futures, n_hops: int) -> Told:
        """What partitions tell each other of a block."""
        return self._telling(tasks.boundary_of, parts, n_hops)

    def told(self, states: Futures) -> Told:
        """What partitions tell each other after some steps."""
        return self._telling(tasks.message_of, states)

    def _telling(self, function: Callable[..., Any], parts: Futures, *arguments: Any) -> Told:
        """All that is asked for stays with those at home where the teller is; others get what they need of it."""
        homes = self._homes.now(workers_of(self.client))
        messages = []
        for place, part, near in zip(self.places, parts, self._neighbours, strict=True):
            own, told = homes[place.number], {}
            for home in dict.fromkeys(homes[one] for one in near):
                others = () if home == own else tuple(one for one in near if homes[one] == home)
                told[home] = self.submit(function, place, part, others, *arguments, **at(own))
            messages.append(told)
        return Told(homes, messages)

    @property
    def factor(self) -> float:
        """What a step multiplies the Laplacian by."""
        return 4 / self.bound

    # ------------------------------------------------------------------------------------------------- blocks

    def load(self, signals: Any) -> PartitionedBlock:
        return PartitionedBlock(self, loaded(self, signals), int(signals.shape[0]))

    def unload(self, block: PartitionedBlock) -> Any:
        return unloaded(self, block.parts, block.n_columns)

    def stack(self, signals: list[Any]) -> Any:
        return stacked(signals)

    def zeros(self, n_columns: int) -> PartitionedBlock:
        return self._made(verbs.zeros, n_columns, n_columns)

    def unit_vectors(self, nodes: NDArray[np.intp]) -> PartitionedBlock:
        return self._made(verbs.unit_vectors, len(nodes), np.asarray(nodes))

    def random_signs(self, n_columns: int, random_state: np.random.Generator) -> PartitionedBlock:
        return self._random(node_signs, n_columns, random_state)

    def random_normal(self, n_columns: int, random_state: np.random.Generator) -> PartitionedBlock:
        return self._random(node_normals, n_columns, random_state)

    def _random(self, draw: Any, n_columns: int, random_state: np.random.Generator) -> PartitionedBlock:
        block = self._made(partial(verbs.random, draw), n_columns, n_columns, copy.deepcopy(random_state))
        draw(np.empty(0, dtype=np.uint64), n_columns, random_state, self.dtype)  # moves on as the workers' copies do
        return block

    def rows(self) -> PartitionedBlock:
        """Diagonal of ``L``, and sums of squares of its other entries in each row."""
        return self._made(verbs.rows, 2)

    def row_products(self, left: PartitionedBlock, right: PartitionedBlock) -> PartitionedBlock:
        return self._mapped(verbs.row_products, 1, left, right)

    def beside(self, left: PartitionedBlock, right: PartitionedBlock) -> PartitionedBlock:
        return self._mapped(verbs.beside, left.n_columns + right.n_columns, left, right)

    def chosen(self, block: PartitionedBlock, columns: NDArray[np.intp]) -> PartitionedBlock:
        return self._mapped(verbs.chosen, len(columns), block, np.asarray(columns))

    def combine(self, block: PartitionedBlock, matrix: Array) -> PartitionedBlock:
        """``block @ matrix``."""
        return self._mapped(verbs.combined, matrix.shape[1], block, matrix)

    def scale(self, block: PartitionedBlock, factors: Array) -> PartitionedBlock:
        """``block * factors``."""
        return self._mapped(verbs.scaled, block.n_columns, block, factors)

    def product(self, left: PartitionedBlock, right: PartitionedBlock) -> Array:
        """``left^T right``, added up in the order of the partitions."""
        return self._summed(self._mapped(products, 0, left, right, True).parts)

    def column_products(self, left: PartitionedBlock, right: PartitionedBlock) -> Array:
        return self._summed(self._mapped(products, 0, left, right, False).parts)

    def _summed(self, futures: Futures) -> Array:
        return np.sum(np.stack(self.gather(futures)), axis=0)

    # ------------------------------------------------------------------------------------------------- passes

    def step(self, current: PartitionedBlock, previous: PartitionedBlock) -> PartitionedBlock:
        """``2 A current - previous``, after an exchange of one hop."""
        inboxes = self._inboxes(self.messages(current.parts, 1))
        rows = zip(self.places, current.parts, previous.parts, inboxes, strict=True)
        parts = self.each(tasks.stepped, ((*row, self.factor) for row in rows))
        return PartitionedBlock(self, parts, current.n_columns)

    def recurrence(self, columns: PartitionedBlock, gram: bool) -> Recurrence:
        """``T_k(A)`` of a block, several steps at a time."""
        return PartitionedRecurrence(self, columns, gram)

    def filtered(self, columns: PartitionedBlock, coefficients: Array) -> PartitionedBlock:
        """``sum_k T_k(A) C_k`` by Clenshaw's recurrence, several steps at a time."""
        n_terms, n_outputs = coefficients.shape[0], coefficients.shape[-1]
        told = self.messages(columns.parts, self.n_hops)
        states = self.exchanged(tasks.begin_filter, columns.parts, told, n_outputs)
        kept = [told, self.told(states)]
        descending = coefficients[:0:-1]
        for start in range(0, n_terms - 1, self.n_hops):
            several = descending[start : start + self.n_hops]
            states = self.exchanged(tasks.go_on_with_filter, states, kept[-1], self.factor, several)
            kept.append(self.told(states))
            self._settle(kept[-AHEAD:][0].futures)
            mention(f"filter {start + len(several)} of {n_terms - 1}")
        parts = self.exchanged(tasks.finish_filter, states, kept[-1], self.factor, coefficients[0])
        self._settle(parts)
        return PartitionedBlock(self, parts, n_outputs)

    def probed(self, probes: PartitionedBlock, coefficients: Array) -> PartitionedBlock:
        """Mean over the probes of ``z * f(L) z`` for several functions, several steps at a time."""
        shares = coefficients / probes.n_columns
        told = self.messages(probes.parts, self.n_hops)
        first = min(self.n_hops + 1, shares.shape[1])
        states = self.exchanged(tasks.begin_probes, probes.parts, told, self.factor, shares[:, :first])
        kept = [told, self.told(states)]
        for start in range(first, shares.shape[1], self.n_hops):
            several = shares[:, start : start + self.n_hops]
            states = self.exchanged(tasks.go_on_with_probes, states, kept[-1], self.factor, several)
            kept.append(self.told(states))
            self._settle(kept[-AHEAD:][0].futures)
        parts = self.each(tasks.total_of, zip(states))
        self._settle(parts)
        return PartitionedBlock(self, parts, len(shares))

    def _settle(self, futures: Futures) -> None:
        """Wait until tasks are done, so that a failure is told here and no long queue builds up."""
        client = self.client
        with explaining(client):
            settle(client, futures, self._homes.known)
            for future in futures:
                if future.status != "finished":
                    future.result()

    def largest_eigenvalue(self) -> tuple[float, float]:
        """Largest eigenvalue of ``L`` by the Lanczos method, as for any operator, with one exchange and sum a step."""
        start = self.random_normal(1, np.random.default_rng(0))
        start = self.combine(start, self.product(start, start) ** -0.5)
        states = self.exchanged(tasks.begin_lanczos, start.parts, self.messages(start.parts, 1), self.factor)
        found, kept = Tridiagonal(self.n_nodes), [self.told(states)]
        square, cross, _ = self._lanczos_sums(states)
        length, doubled = 0.5, cross / square
        while True:
            states = self.exchanged(tasks.go_on_with_lanczos, states, kept[-1], self.factor, length, doubled)
            kept.append(self.told(states))
            square, cross, overlap = self._lanczos_sums(states)
            length = float(np.sqrt(square)) / 2
            if found.add(doubled / 2, length):
                break
            doubled = cross / square - overlap
        return self.bound * (found.value + 1) / 2, self.bound * found.residual / 2

    def counted(self, states: Futures) -> list[list[tuple[Array, Array]]]:
        """Products of every partition in its last steps."""
        return self.gather(self.each(tasks.products_of, zip(states)))

    def _lanczos_sums(self, states: Futures) -> Array:
        return np.sum([one[0][0] for one in self.counted(states)], axis=0)


class PartitionedRecurrence(Recurrence):
    """``T_k(A)`` of a block over a partitioned graph, as many steps between exchanges as the halo has hops.

    Parameters
    ----------
    operator : PartitionedOperator
        ``A``.
    columns : PartitionedBlock
        Taken over.
    gram : bool
        Whether to take all products of columns, or each column's with itself only.
    """

    def __init__(self, operator: PartitionedOperator, columns: PartitionedBlock, gram: bool) -> None:
        self.operator, self.gram = operator, gram
        self.first = (operator.product if gram else operator.column_products)(columns, columns)
        self._columns: Futures | None = columns.taken()
        self._states: Futures = []
        self._kept: list[Told] = []

    def advance(self, n_steps: int) -> Iterator[tuple[Array, Array]]:
        while n_steps > 0:
            several = min(n_steps, self.operator.n_hops)
            yield from self._several(several)
            n_steps -= several

    def _several(self, n_steps: int) -> Sequence[tuple[Array, Array]]:
        operator, settings = self.operator, (n_steps, self.operator.factor, self.gram)
        if self._columns is not None:
            self._kept.append(operator.messages(self._columns, n_steps))
            states = operator.exchanged(tasks.begin_moments, self._columns, self._kept[-1], *settings)
        else:
            states = operator.exchanged(tasks.go_on_with_moments, self._states, self._kept[-1], *settings)
        # what was told is kept until the pass ends: a lost partition starts again from there, and no other
        self._kept.append(operator.told(states))
        found = operator.counted(states)
        self._columns, self._states = None, states
        return [
            (np.sum([one[step][0] for one in found], axis=0), np.sum([one[step][1] for one in found], axis=0))
            for step in range(n_steps)
        ]
