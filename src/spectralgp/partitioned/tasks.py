"""Tasks: what a worker computes of one partition, and between two exchanges with the others.

Every function here gets what it needs as arguments, finds its partition of the graph by itself, and returns arrays, so
that it can run again elsewhere if its worker is lost. A `State` alone is changed in place: by the one task that takes
it over, which leaves it empty.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from spectralgp._basics.arrays import few_threads
from spectralgp._basics.checks import Array
from spectralgp.operators.cpu import gershgorin_bound, row_squares
from spectralgp.partitioned.local import LocalLaplacian, Message, TaskKey, laplacian, products

# ---------------------------------------------------------------------------------------------------- recurrences


@dataclass(frozen=True, eq=False)
class State:
    """Where a recurrence stands in one partition."""

    blocks: list[Any]  # the current block, the one before and others, with halos; empty once a task has taken them over
    carried: dict[str, Any]  # what else the program carries along
    message: Message  # the blocks at the own nodes that others need
    found: list[Any]  # by the program, at each of the last steps

    def __sizeof__(self) -> int:
        """Bytes of its arrays: Dask decides by them what is cheap to move, and what to write to disk."""
        return int(sum(array.nbytes for array in (*self.blocks, self.message.values, *self.carried.values())))

    def taken(self) -> tuple[list[Any], dict[str, Any]]:
        """The blocks and what is carried along, for the one task that changes them."""
        if not self.blocks:
            raise RuntimeError("the state of a recurrence was taken over twice; run the whole pass again")
        blocks = list(self.blocks)
        self.blocks.clear()
        return blocks, self.carried


@dataclass(frozen=True, eq=False)
class Run:
    """A recurrence in the hands of a task."""

    local: LocalLaplacian
    scale: float  # what a step multiplies the Laplacian by
    blocks: list[Any]
    carried: dict[str, Any]

    def step(self, n_rows: int, share: float = 1.0) -> None:
        """Put the next block in place of the one before, in the first rows."""
        self.local.step(self.scale * share, self.blocks[0], self.blocks[1], n_rows)


class Program(ABC):
    """What is done about each step of a three-term recurrence."""

    @abstractmethod
    def begin(self, local: LocalLaplacian, own: Any, block: Any) -> tuple[list[Any], dict[str, Any]]:
        """First blocks (the current one, the one before, others) from a given one with its halo; what is carried."""

    def resume(self, blocks: list[Any]) -> list[Any]:
        """Blocks to go on from, after an exchange."""
        return blocks

    @abstractmethod
    def step(self, run: Run, number: int, n_rows: int) -> Any:
        """Take one of the steps, in the first rows; what is found by it."""


def advance(
    key: TaskKey, state: Any, inbox: Sequence[Message], n_hops: int, n_steps: int, scale: float, program: Program
) -> State:
    """Take steps of a program from a state, or from a block of own values, after an exchange.

    Blocks have halos of `n_hops` rings, one of which is used up by each step. The message is for the next exchange.
    """
    local = laplacian(key)
    with few_threads(1):
        if isinstance(state, State):
            blocks, carried = state.taken()
            local.receive(blocks, inbox, n_steps)
            blocks = program.resume(blocks)
        else:
            blocks, carried = program.begin(local, state, local.spread(state, inbox, n_hops))
        run, found = Run(local, scale, blocks, carried), []
        for number in range(n_steps):
            found.append(program.step(run, number, local.ends[n_steps - 1 - number]))
            blocks[:2] = blocks[1::-1]
        return State(blocks, carried, local.message(blocks, n_hops), found)


@dataclass(frozen=True, eq=False)
class Moments(Program):
    """``T_k(A)`` of a block; what is found are products of each with itself and with the one before."""

    gram: bool
    is_first: bool

    def begin(self, local: LocalLaplacian, own: Any, block: Any) -> tuple[list[Any], dict[str, Any]]:
        return [block, -block], {}

    def step(self, run: Run, number: int, n_rows: int) -> Any:
        # at half the scale, from -T_0: scale L T_0 / 2 - 2 T_0 + T_0 is T_1 = A T_0
        scale = run.scale / 2 if self.is_first and number == 0 else run.scale
        return run.local.advance(scale, run.blocks[0], run.blocks[1], n_rows, self.gram)


@dataclass(frozen=True, eq=False)
class Probes(Program):
    """``T_k(A) z`` of probes ``z``; ``z * f(L) z`` is added up for functions with coefficients (n_functions, n_steps).

    The first coefficients have one more column, for ``T_0``.
    """

    coefficients: Array
    is_first: bool

    def begin(self, local: LocalLaplacian, own: Any, block: Any) -> tuple[list[Any], dict[str, Any]]:
        carried = {"probes": own, "total": local.xp.zeros((local.n_own, len(self.coefficients)), dtype=block.dtype)}
        self._add(local, block, carried, 0)
        return [block, -block], carried

    def step(self, run: Run, number: int, n_rows: int) -> None:
        run.step(n_rows, 0.5 if self.is_first and number == 0 else 1.0)  # as for moments
        self._add(run.local, run.blocks[1], run.carried, number + self.is_first)

    def _add(self, local: LocalLaplacian, block: Any, carried: dict[str, Any], term: int) -> None:
        rows = local.xp.einsum("mn,mn->m", carried["probes"], block[: local.n_own])[:, None]
        carried["total"] += rows * local.xp.asarray(self.coefficients[:, term], dtype=rows.dtype)


@dataclass(frozen=True, eq=False)
class Clenshaw(Program):
    """Steps ``b_k = 2 A b_{k+1} - b_{k+2} + C_k``, the last one of all ``A b_1 - b_2 + C_0``.

    ``C_k`` are the columns times coefficients, in descending order, of shape (n_steps, n_columns, n_outputs) or
    (n_steps, n_columns).
    """

    coefficients: Array
    is_last: bool

    def begin(self, local: LocalLaplacian, own: Any, block: Any) -> tuple[list[Any], dict[str, Any]]:
        shape = (len(block), self.coefficients.shape[-1])
        return [local.xp.zeros(shape, dtype=block.dtype) for _ in range(2)], {"columns": block}

    def step(self, run: Run, number: int, n_rows: int) -> None:
        current, previous = (block[:n_rows] for block in run.blocks)
        is_half = self.is_last and number == len(self.coefficients) - 1
        if is_half:  # at half the scale, from b_2 - b_1: scale L b_1 / 2 - 2 b_1 - b_2 + b_1 is A b_1 - b_2
            previous -= current
        run.step(n_rows, 0.5 if is_half else 1.0)
        multiply = combined if self.coefficients.ndim == 3 else scaled
        previous += multiply(run.carried["columns"][:n_rows], self.coefficients[number])


@dataclass(frozen=True, eq=False)
class Lanczos(Program):
    """The Lanczos method; what is found are products of ``w`` with itself, ``2 A w`` and the vector before.

    Blocks are ``2 A w``, ``w`` and the vector before ``u = w / (2 length)``, of length one. Lengths are known only once
    the products of all partitions are added up, so that vectors are divided by them a step later: the next ``w`` is
    what is left of ``2 A u`` without ``u``, `doubled` times, and without the one before.
    """

    length: float = 0.5
    doubled: float = 0.0

    def begin(self, local: LocalLaplacian, own: Any, block: Any) -> tuple[list[Any], dict[str, Any]]:
        return [block, local.xp.zeros_like(block), local.xp.zeros_like(block)], {}

    def resume(self, blocks: list[Any]) -> list[Any]:
        product, left, before = blocks
        unit = left / (2 * self.length)
        following = product / (2 * self.length) - before * (2 * self.length) - unit * self.doubled
        return [following, array_namespace(left).zeros_like(left), unit]

    def step(self, run: Run, number: int, n_rows: int) -> Any:
        run.step(n_rows)
        own = [block[: run.local.n_own] for block in run.blocks]
        return np.array([products(own[0], other, gram=False)[0] for other in own])


def message_of(key: TaskKey, part: Any, n_hops: int, others: tuple[int, ...]) -> Message:
    """What others need of a state, or of a block of own values, for `n_hops` steps; all of them if none are named."""
    message = part.message if isinstance(part, State) else laplacian(key).message([part], n_hops)
    return message.only_for(others, key)


def found_by(state: State) -> list[Any]:
    """What a program found at each of the last steps."""
    return state.found


def total_of(state: State) -> Any:
    """What probes add up to."""
    return state.carried["total"]


def own_values(key: TaskKey, state: State) -> Any:
    """The current block at own nodes."""
    return state.blocks[0][: laplacian(key).n_own].copy()


def stepped(key: TaskKey, current: Any, previous: Any, inbox: Sequence[Message], scale: float) -> Any:
    """One step of the recurrence from blocks of own values, which stay as they are."""
    local = laplacian(key)
    with few_threads(1):
        following = previous.copy()
        local.step(scale, local.spread(current, inbox, 1), following, local.n_own)
        return following


# ------------------------------------------------------------------------------- of one partition's own values alone


def largest_row(key: TaskKey) -> float:
    """The largest sum of absolute values in a row of ``L``."""
    return gershgorin_bound(*laplacian(key).own_rows())


def rows(key: TaskKey) -> Any:
    """Diagonal of ``L``, and sums of squares of its other entries in each row."""
    local = laplacian(key)
    weights, diagonal = local.own_rows()
    return local.xp.asarray(np.column_stack([diagonal, row_squares(weights.indptr, weights.data)]).astype(key.dtype))


def zeros(key: TaskKey, n_columns: int) -> Any:
    """Zeros."""
    local = laplacian(key)
    return local.xp.zeros((local.n_own, n_columns), dtype=key.dtype)


def unit_vectors(key: TaskKey, nodes: NDArray[np.intp]) -> Any:
    """A one at one node per column."""
    local, block = laplacian(key), zeros(key, len(nodes))
    order = np.argsort(local.positions)
    found = np.minimum(np.searchsorted(local.positions, nodes, sorter=order), local.n_own - 1)
    own = np.flatnonzero(local.positions[order[found]] == nodes)
    block[order[found[own]], own] = 1
    return block


def random(draw: Any, key: TaskKey, n_columns: int, random_state: np.random.Generator) -> Any:
    """Random numbers of the nodes; the generator stays as it is, for the task may run again."""
    local, own = laplacian(key), copy.deepcopy(random_state)
    return draw(local.xp.asarray(local.nodes.astype(np.uint64)), n_columns, own, key.dtype, local.xp)


def row_products(left: Any, right: Any) -> Any:
    """Inner products of the rows."""
    return (left * right).sum(axis=1)[:, None]


def beside(left: Any, right: Any) -> Any:
    """Columns of two blocks."""
    return array_namespace(left).concat([left, right], axis=1)


def combined(block: Any, matrix: Array) -> Any:
    """``block @ matrix``."""
    return block @ array_namespace(block).asarray(matrix, dtype=block.dtype)


def scaled(block: Any, factors: Array) -> Any:
    """``block * factors``."""
    return block * array_namespace(block).asarray(factors, dtype=block.dtype)
