"""Tasks: what a worker computes of one partition between two exchanges with the others.

Every function here gets what it needs as arguments, finds its partition of the graph by itself, and returns arrays, so
that it can run again elsewhere if its worker is lost. A `State` alone is changed in place: by the one task that takes
it over, which leaves it empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spectralgp._basics.arrays import few_threads
from spectralgp._basics.checks import Array
from spectralgp.partitioned.local import LocalLaplacian, Message, Place, laplacian, products


@dataclass(frozen=True, eq=False)
class State:
    """Where a recurrence stands in one partition: blocks on local nodes, and what the last steps left for others.

    Parameters
    ----------
    blocks : list of arrays
        The current block and the one before, with room for the halo; empty once a task has taken them over.
    message : Message
        Both at the own nodes that others need.
    products : list of pairs of ndarray
        Of every step: the new block with itself, and with the one before.
    more : dict
        What else the recurrence carries along.
    """

    blocks: list[Any]
    message: Message
    products: list[tuple[Array, Array]]
    more: dict[str, Any] = field(default_factory=dict)

    def __sizeof__(self) -> int:
        """Bytes of its arrays: Dask decides by them what is cheap to move, and what to write to disk."""
        arrays = [*self.blocks, self.message.values, *self.more.values()]
        return int(sum(array.nbytes for array in arrays))

    def taken(self) -> list[Any]:
        """The blocks, for the one task that changes them."""
        if not self.blocks:
            raise RuntimeError("the state of a recurrence was taken over twice; run the whole pass again")
        blocks = list(self.blocks)
        self.blocks.clear()
        return blocks


def message_of(place: Place, state: State, others: tuple[int, ...]) -> Message:
    """What some other partitions need, or all if none are named."""
    return state.message.only_for(others, place)


def products_of(state: State) -> list[tuple[Array, Array]]:
    """What the client needs."""
    return state.products


def boundary_of(place: Place, block: Any, others: tuple[int, ...], n_hops: int) -> Message:
    """The same, of a block of own values."""
    return laplacian(place).message([block], n_hops).only_for(others, place)


def stepped(place: Place, current: Any, previous: Any, inbox: Sequence[Message], scale: float) -> Any:
    """One step of the recurrence from blocks of own values, which stay as they are."""
    local = laplacian(place)
    with few_threads(1):
        spread = local.spread(current, 1)
        local.receive([spread], inbox, 1)
        following = previous.copy()
        local.step(scale, spread, following, local.n_own)
        return following


def begin_moments(place: Place, block: Any, inbox: Sequence[Message], n_steps: int, scale: float, gram: bool) -> State:
    """First steps of ``T_k(A)`` of a block: ``T_1 = A T_0``, then the recurrence.

    A step at half the scale from ``-T_0`` gives ``scale L T_0 / 2 - 2 T_0 + T_0``, which is ``A T_0``.
    """
    local = laplacian(place)
    with few_threads(1):
        current = local.spread(block, local.n_hops)
        local.receive([current], inbox, n_steps)
        previous = -current
        first = local.advance(scale / 2, current, previous, local.ends[n_steps - 1], gram)
        return _moments(local, [previous, current], n_steps - 1, scale, gram, [first])


def go_on_with_moments(
    place: Place, state: State, inbox: Sequence[Message], n_steps: int, scale: float, gram: bool
) -> State:
    """More steps of ``T_k(A)``."""
    local, blocks = laplacian(place), state.taken()
    with few_threads(1):
        local.receive(blocks, inbox, n_steps)
        return _moments(local, blocks, n_steps, scale, gram, [])


def _moments(
    local: LocalLaplacian, blocks: list[Any], n_steps: int, scale: float, gram: bool, found: list[tuple[Array, Array]]
) -> State:
    current, previous = blocks
    for left in range(n_steps - 1, -1, -1):
        found.append(local.advance(scale, current, previous, local.ends[left], gram))
        current, previous = previous, current
    return _left(local, [current, previous], found)


def _left(
    local: LocalLaplacian, blocks: list[Any], found: list[tuple[Array, Array]], more: dict[str, Any] | None = None
) -> State:
    """The state that steps leave, with what others need for as many more as there are hops."""
    return State(blocks, local.message(blocks, local.n_hops), found, more or {})


def begin_filter(place: Place, columns: Any, inbox: Sequence[Message], n_outputs: int) -> State:
    """Start of Clenshaw's recurrence: blocks of zeros, and the columns with their halo."""
    local = laplacian(place)
    spread = local.spread(columns, local.n_hops)
    local.receive([spread], inbox, local.n_hops)
    blocks = [local.xp.zeros((len(spread), n_outputs), dtype=columns.dtype) for _ in range(2)]
    return _left(local, blocks, [], {"columns": spread})


def go_on_with_filter(place: Place, state: State, inbox: Sequence[Message], scale: float, coefficients: Array) -> State:
    """Steps ``b_k = 2 A b_{k+1} - b_{k+2} + C_k``, as many as there are coefficients, in their order."""
    local, blocks, columns = laplacian(place), state.taken(), state.more["columns"]
    n_steps = len(coefficients)
    with few_threads(1):
        local.receive(blocks, inbox, n_steps)
        current, previous = blocks
        for left, matrix in zip(range(n_steps - 1, -1, -1), coefficients, strict=True):
            n_rows = local.ends[left]
            local.step(scale, current, previous, n_rows)
            previous[:n_rows] += _term(columns[:n_rows], matrix, local.xp)
            current, previous = previous, current
        return _left(local, [current, previous], [], state.more)


def finish_filter(place: Place, state: State, inbox: Sequence[Message], scale: float, coefficients: Array) -> Any:
    """Last step, ``A b_1 - b_2 + C_0``, as a block of own values."""
    local, (current, previous) = laplacian(place), state.taken()
    with few_threads(1):
        local.receive([current, previous], inbox, 1)
        last = previous[: local.n_own] * -0.5
        local.step(scale, current, previous, local.n_own)
        result = previous[: local.n_own] * 0.5
        result += last
        result += _term(state.more["columns"][: local.n_own], coefficients, local.xp)
        return result


def _term(columns: Any, matrix: Array, xp: Any) -> Any:
    factors = xp.asarray(matrix, dtype=columns.dtype)
    return columns @ factors if matrix.ndim == 2 else columns * factors


def begin_probes(place: Place, probes: Any, inbox: Sequence[Message], scale: float, coefficients: Array) -> State:
    """First steps of ``z * f(L) z``, summed over the probes ``z``: as many as there are coefficients, less one."""
    local = laplacian(place)
    n_steps = coefficients.shape[1] - 1
    with few_threads(1):
        current = local.spread(probes, local.n_hops)
        local.receive([current], inbox, n_steps)
        more = {"probes": probes, "total": local.xp.zeros((local.n_own, len(coefficients)), dtype=probes.dtype)}
        _add_probes(more, current, coefficients[:, 0], local)
        previous = -current
        if n_steps:
            local.step(scale / 2, current, previous, local.ends[n_steps - 1])
            current, previous = previous, current
            _add_probes(more, current, coefficients[:, 1], local)
        return _probed(local, [current, previous], scale, coefficients[:, 2:], more)


def go_on_with_probes(place: Place, state: State, inbox: Sequence[Message], scale: float, coefficients: Array) -> State:
    """More steps, as many as there are coefficients."""
    local, blocks = laplacian(place), state.taken()
    with few_threads(1):
        local.receive(blocks, inbox, coefficients.shape[1])
        more = state.more | {"total": state.more["total"].copy()}
        return _probed(local, blocks, scale, coefficients, more)


def _probed(local: LocalLaplacian, blocks: list[Any], scale: float, coefficients: Array, more: Any) -> State:
    current, previous = blocks
    n_steps = coefficients.shape[1]
    for number, left in enumerate(range(n_steps - 1, -1, -1)):
        local.step(scale, current, previous, local.ends[left])
        current, previous = previous, current
        _add_probes(more, current, coefficients[:, number], local)
    return _left(local, [current, previous], [], more)


def _add_probes(more: Any, current: Any, coefficients: Array, local: LocalLaplacian) -> None:
    rows = local.xp.einsum("mn,mn->m", more["probes"], current[: local.n_own])[:, None]
    more["total"] += rows * local.xp.asarray(coefficients, dtype=rows.dtype)


def total_of(state: State) -> Any:
    """What probes add up to."""
    return state.more["total"]


def begin_lanczos(place: Place, start: Any, inbox: Sequence[Message], scale: float) -> State:
    """First product of the Lanczos method, from a vector of length one."""
    local = laplacian(place)
    spread = local.spread(start, 1)
    local.receive([spread], inbox, 1)
    return _lanczos(local, spread, local.xp.zeros_like(spread), scale)


def go_on_with_lanczos(
    place: Place, state: State, inbox: Sequence[Message], scale: float, length: float, doubled: float
) -> State:
    """Next row: with ``u`` the vector of length one, what is left of ``2 A u`` without it and the one before.

    Blocks are ``2 A w``, ``w`` and the vector before ``u``, where ``u = w / (2 length)``: lengths are known only once
    all partitions have told theirs, so that vectors are divided by them a step later.
    """
    local, (product, left, before) = laplacian(place), state.taken()
    local.receive([product, left, before], inbox, 1)
    unit = left / (2 * length)
    return _lanczos(local, product / (2 * length) - before * (2 * length) - unit * doubled, unit, scale)


def _lanczos(local: LocalLaplacian, left: Any, before: Any, scale: float) -> State:
    product, own = local.xp.zeros_like(left), slice(local.n_own)
    local.step(scale, left, product, local.n_own)
    others = (left, product, before)
    found = np.array([float(products(left[own], other[own], gram=False)[0]) for other in others])
    blocks = [product, left, before]
    return State(blocks, local.message(blocks, 1), [(found, found)])
