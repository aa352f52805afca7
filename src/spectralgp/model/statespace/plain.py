"""Loops of the filters in NumPy, used unless Numba is installed: same arguments and results as `compiled`.

Steps that repeat one row of the table of gains are a recursion with constant coefficients. They are cut into blocks
that run side by side: once from zero for what each block adds to the state, and again from the state that it starts at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from spectralgp._basics.checks import Array, Indices

MOST_RATIO = 0.99  # of one change to the one before it, as taken for what is still to come
FEWEST_IN_BLOCKS = 64  # steps of a run, below which blocks do not pay

Step = Callable[[int, Array, Array], tuple[Array, tuple[Array, ...]]]  # the first of its run, state, input: new, found


class TransitionMatrices(NamedTuple):
    """A state space over gaps: transitions by their entries that are not zero, and noises; arrays end in modes."""

    entries: Array  # (n_gaps, n_entries, n_modes)
    slopes: Array  # (n_gaps, n_entries, n_modes), derivatives in the rates
    noises: Array  # (n_gaps, n_states, n_states, n_modes)
    rows: Indices  # (n_entries,), of the entries
    columns: Indices
    heads: Indices  # states whose sum is the value
    own: Array  # (n_modes,), own variance of each value

    def carried(self, gap: int, states: Array) -> Array:
        """States (..., n_states, n_modes) after a gap without noise: ``A x``."""
        return multiply(self.entries[gap], self.rows, self.columns, states)

    def carried_back(self, gap: int, states: Array) -> Array:
        """``A^T x``."""
        return multiply(self.entries[gap], self.columns, self.rows, states)

    def carried_matrix(self, gap: int, matrix: Array) -> Array:
        """``A P``."""
        return self.carried(gap, matrix.swapaxes(0, 1)).swapaxes(0, 1)

    def moved(self, gap: int, states: Array, covariance: Array) -> tuple[Array, Array]:
        """Means (..., n_states, n_modes) and covariance of states after a gap: ``A m`` and ``A P A^T + Q``."""
        return self.carried(gap, states), self.carried(gap, self.carried_matrix(gap, covariance)) + self.noises[gap]

    def values(self, states: Array) -> Array:
        """Values of states (..., n_states, n_modes), the sums of their heads, shape (..., n_modes)."""
        return states[..., self.heads, :].sum(axis=-2)

    def with_values(self, states: Array, values: Array) -> Array:
        """States with values (..., n_modes) added to the heads."""
        found = states.copy()
        found[..., self.heads, :] += values[..., None, :]
        return found

    @property
    def written_out(self) -> Array:
        """Transitions as matrices, shape (n_gaps, n_states, n_states, n_modes)."""
        return written_out(self.entries, self.rows, self.columns, self.noises.shape[1])


class FilterGains(NamedTuple):
    """Gains of a filter, one row per step until they repeat: equation (29)."""

    gains: Array  # (n_rows, n_states, n_modes), k / s
    variances: Array  # (n_rows, n_modes), s
    filtered: Array  # (n_rows, n_states, n_states, n_modes), covariances after a step; or (1, ...), after the last one
    row_of: Indices  # (n_steps,), the row that belongs to each step


def has_settled(change: float, before: float, tolerance: float) -> bool:
    """Whether changes to come, each as much smaller as this one is than the one before, add up to at most a tolerance.

    For compiled loops too.
    """
    ratio = min(change / before, MOST_RATIO) if before > 0 else 0.0
    return change <= tolerance * (1 - ratio)


def multiply(transition: Array, rows: Indices, columns: Indices, state: Array) -> Array:
    """``A x`` for states of shape (..., n_states, n_modes)."""
    out = np.zeros(state.shape)
    for entry, (row, column) in enumerate(zip(rows, columns, strict=True)):
        out[..., row, :] += transition[entry] * state[..., column, :]
    return out


def written_out(transition: Array, rows: Indices, columns: Indices, n_states: int) -> Array:
    """Transitions as matrices, shape (..., n_states, n_states, n_modes)."""
    out = np.zeros((*transition.shape[:-2], n_states, n_states, transition.shape[-1]))
    out[..., rows, columns, :] = transition
    return out


def gains(
    matrices: TransitionMatrices, which: Indices, common: int, first: Array, tolerance: float, keep: bool
) -> FilterGains:
    """The table of gains; with covariances after every step, or after the last one.

    `which` are the gaps before each step, here and below; that of the first is of no consequence.
    """
    found_gains: list[Array] = []
    found_variances: list[Array] = []
    found_filtered: list[Array] = []
    index = np.empty(which.size, np.int64)
    covariance, is_steady, before = first, False, np.inf
    for step, gap in enumerate(which):
        if is_steady and gap == common:
            index[step] = len(found_gains) - 1
            continue
        predicted = first
        if step > 0:
            predicted = matrices.noises[gap] + matrices.carried(gap, matrices.carried_matrix(gap, covariance))
        predicted = 0.5 * (predicted + predicted.swapaxes(0, 1))
        gain = predicted[:, matrices.heads].sum(axis=1)
        variance = matrices.own + matrices.values(gain)
        gain = gain / variance
        left = predicted - gain[:, None] * gain * variance
        now, was, whole = (np.einsum("aaj->aj", part) for part in (left, covariance, predicted))
        change = float(np.max(np.abs(now - was) / (whole + variance)))
        covariance = left
        index[step] = len(found_gains)
        found_gains.append(gain)
        found_variances.append(variance)
        if not keep:
            found_filtered.clear()
        found_filtered.append(left)
        if step > 0 and gap == common:
            is_steady, before = has_settled(change, before, tolerance), change
        else:
            is_steady, before = False, np.inf
    return FilterGains(np.array(found_gains), np.array(found_variances), np.array(found_filtered), index)


def _run(
    step: Step, index: Indices, state: Array, inputs: Array, outputs: Sequence[Array], backwards: bool = False
) -> Array:
    """Take a linear step over all inputs, filling in what it puts out, and return the last state.

    Its coefficients are constant over a run of steps: each repeats the entry of `index` before it, or is alone.
    """
    is_repeated = np.diff(index, prepend=-1) == 0
    starts = np.flatnonzero(~(is_repeated & np.roll(is_repeated, 1)))  # the first repeats nothing
    runs = list(pairwise([*starts.tolist(), index.size]))
    for start, stop in reversed(runs) if backwards else runs:
        steps = slice(stop - 1, start - 1 if start else None, -1) if backwards else slice(start, stop)
        state = _scan(step, start, state, inputs[steps], [out[steps] for out in outputs])
    return state


def _scan(step: Step, first: int, state: Array, inputs: Array, outputs: Sequence[Array]) -> Array:
    """`_run` over steps that all have the coefficients of the first."""
    n_steps = len(inputs)
    length = int(np.sqrt(n_steps))
    n_blocks = n_steps // length if n_steps >= FEWEST_IN_BLOCKS else 0
    n_inside = n_blocks * length
    if n_blocks:
        blocks = inputs[:n_inside].reshape(n_blocks, length, -1)
        added = np.zeros((n_blocks, *state.shape))
        units = np.repeat(np.eye(len(state))[:, :, None], state.shape[1], axis=2)
        nothing = np.zeros(state.shape[1])
        for place in range(length):
            added, _ = step(first, added, blocks[:, place])
            units, _ = step(first, units, nothing)
        starts = np.empty((n_blocks, *state.shape))
        for block in range(n_blocks):
            starts[block] = state
            state = np.einsum("abj,aj->bj", units, state) + added[block]
        shaped = [out[:n_inside].reshape(n_blocks, length, *out.shape[1:]) for out in outputs]  # views
        for place in range(length):
            starts, found = step(first, starts, blocks[:, place])
            for out, part in zip(shaped, found, strict=False):
                out[:, place] = part
    for place in range(n_inside, n_steps):
        state, found = step(first, state, inputs[place])
        for out, part in zip(outputs, found, strict=False):
            out[place] = part
    return state


def forward(
    matrices: TransitionMatrices,
    which: Indices,
    table: FilterGains,
    first: Array,
    given: Array,
    are_values: bool,
    keep: bool,
) -> tuple[Array, Array]:
    """Innovations of values, or values of innovations, and filtered states after every step or the last: (29)."""
    found = np.empty(given.shape)
    states = np.empty((len(given) if keep else 0, *first.shape))

    def step(at: int, before: Array, given: Array) -> tuple[Array, tuple[Array, ...]]:
        predicted = before if at == 0 else matrices.carried(which[at], before)
        expected = matrices.values(predicted)
        innovation = given - expected if are_values else given
        filtered = predicted + table.gains[table.row_of[at]] * innovation[..., None, :]
        return filtered, (innovation if are_values else given + expected, filtered)

    last = _run(step, table.row_of, first, given, (found, states) if keep else (found,))
    return found, states if keep else last[None]


def _adjoints(
    matrices: TransitionMatrices, which: Indices, table: FilterGains, innovations: Array, keep: bool
) -> tuple[Array, Array]:
    """Solutions ``u``, and the adjoints ``r`` of predicted states where they are asked for: equation (30)."""
    solved = np.empty(innovations.shape)
    adjoints = np.empty((len(innovations) if keep else 0, *table.gains.shape[1:]))

    def step(at: int, after: Array, innovation: Array) -> tuple[Array, tuple[Array, ...]]:
        row = table.row_of[at]
        found = innovation / table.variances[row] - (table.gains[row] * after).sum(axis=-2)
        adjoint = matrices.with_values(after, found)
        return matrices.carried_back(which[at], adjoint), (found, adjoint)

    outputs = (solved, adjoints) if keep else (solved,)
    _run(step, table.row_of, np.zeros(table.gains.shape[1:]), innovations, outputs, backwards=True)
    return solved, adjoints


def backward(matrices: TransitionMatrices, which: Indices, table: FilterGains, innovations: Array) -> Array:
    """``C^-1 z`` from the innovations of ``z``: equation (31)."""
    return _adjoints(matrices, which, table, innovations, False)[0]


def scores(
    matrices: TransitionMatrices, which: Indices, table: FilterGains, innovations: Array, states: Array
) -> tuple[Array, Array, Array, Array]:
    """Sums over steps of what equation (30) asks of the data: ``u^2``, ``r r^T`` by gap, at first, and with states."""
    solved, adjoints = _adjoints(matrices, which, table, innovations, keep=True)
    rows, columns, filtered, index = matrices.rows, matrices.columns, table.filtered, table.row_of
    later, gaps = adjoints[1:], which[1:]
    is_steady = index[1:] == index[:-1]
    first = adjoints[0][:, None] * adjoints[0][None]
    squares = np.zeros(matrices.noises.shape)
    crossed = np.zeros(matrices.entries.shape)
    if is_steady.any():
        steady, row = later[is_steady], index[1:][is_steady][-1]
        gap = gaps[is_steady][-1]
        square = np.einsum("naj,nbj->abj", steady, steady)
        squares[gap] += square
        before = states[:-1][is_steady]
        for entry, (place, column) in enumerate(zip(rows, columns, strict=True)):
            crossed[gap, entry] += np.einsum("nj,nj->j", steady[:, place], before[:, column])
        product = matrices.carried_matrix(gap, filtered[row])
        crossed[gap] += np.einsum("abj,bcj->acj", square, product)[rows, columns]
    alone = np.flatnonzero(~is_steady)
    if alone.size:
        adjoint, gap = later[alone], gaps[alone]
        written = written_out(matrices.entries[gap], rows, columns, filtered.shape[1])
        after = np.einsum("nabj,naj->nbj", written, adjoint)
        smoothed = states[alone] + np.einsum("nabj,nbj->naj", filtered[index[alone]], after)
        np.add.at(squares, gap, adjoint[:, :, None] * adjoint[:, None])
        np.add.at(crossed, gap, adjoint[:, rows] * smoothed[:, columns])
    return np.einsum("nj,nj->j", solved, solved), squares, first, crossed


def informations(
    matrices: TransitionMatrices, which: Indices, table: FilterGains, tolerance: float, with_sums: bool, wanted: Indices
) -> tuple[Array, Array, Array, Array, Array]:
    """Diagonals of ``C^-1``, and sums of ``N`` by gap, at first, and with covariances: equation (30).

    Where sums are asked for, diagonals are their sum, shape (1, n_modes), else there are no covariances. Last come the
    ``N`` of the steps that are wanted, which are in order.
    """
    n_steps, (n_states, n_modes) = which.size, table.gains.shape[1:]
    diagonals = np.zeros((1 if with_sums else n_steps, n_modes))
    sums, crossed, heads = np.zeros(matrices.noises.shape), np.zeros(matrices.entries.shape), matrices.heads
    kept = np.empty((wanted.size, n_states, n_states, n_modes))
    after, is_still, last_change = np.zeros((n_states, n_states, n_modes)), False, np.inf
    step = n_steps - 1
    is_repeated = np.concatenate([[False], table.row_of[1:] == table.row_of[:-1]])
    while step >= 0:
        row, gap = table.row_of[step], which[step]
        gain, variance = table.gains[row], table.variances[row]
        # N_ = (I - h k^T) N (I - k h^T) + h h^T / s
        seen = np.einsum("abj,bj->aj", after, gain)
        diagonal = 1 / variance + (gain * seen).sum(axis=0)
        here = after.copy()
        here[heads] -= seen
        here[:, heads] -= seen[:, None]
        here[np.ix_(heads, heads)] += diagonal
        n_times = 1
        if is_still and is_repeated[step]:
            n_times = int(np.argmin(is_repeated[: step + 1][::-1]))
        if with_sums:
            diagonals[0] += n_times * diagonal
        else:
            diagonals[step + 1 - n_times : step + 1] = diagonal
        kept[(wanted > step - n_times) & (wanted <= step)] = here
        if step == 0:
            break
        matrix = written_out(matrices.entries[gap], matrices.rows, matrices.columns, n_states)
        product = np.einsum("abj,bcj->acj", here, matrix)
        before = np.einsum("abj,acj->bcj", matrix, product)
        sums[gap] += n_times * here
        if with_sums:
            with_states = np.einsum("abj,bcj->acj", product, table.filtered[table.row_of[step - 1]])
            crossed[gap] += n_times * with_states[matrices.rows, matrices.columns]
        if is_repeated[step]:
            now, was = np.einsum("aaj->aj", before), np.einsum("aaj->aj", after)
            change = float(np.max(np.abs(now - was) / (now + 1 / variance)))
            is_still, last_change = has_settled(change, last_change, tolerance), change
        else:
            is_still, last_change = False, np.inf
        after = before
        step -= n_times
    return diagonals, sums, here, crossed, kept


def products(matrices: TransitionMatrices, which: Indices, shared: Array, values: Array) -> Array:
    """``C z``: a recursion forwards and another one backwards; `shared` is the stationary covariance with a value."""
    lower, upper = np.empty((2, *values.shape))

    def step(at: int, before: Array, value: Array) -> tuple[Array, tuple[Array, ...]]:
        state = matrices.carried(which[at], before) + shared * value[..., None, :]
        return state, (matrices.values(state),)

    def back(at: int, after: Array, value: Array) -> tuple[Array, tuple[Array, ...]]:
        state = matrices.carried_back(which[at], matrices.with_values(after, value))
        return state, ((shared * after).sum(axis=-2),)

    nothing = np.zeros(shared.shape)
    _run(step, which, nothing, values, (lower,))
    _run(back, which, nothing, values, (upper,), backwards=True)
    return matrices.own * values + lower + upper
