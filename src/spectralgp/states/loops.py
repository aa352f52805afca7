"""Compiled loops of the filters, twins of `plain`. Importing this module imports Numba, so do it where they run.

Arrays end in modes, over which the innermost loops run. ``rows`` and ``columns`` are the entries of a transition that
are not zero, ``heads`` the states that add up to a value; ``which`` is the gap before each step, ``index`` the row of
the table of gains that belongs to it. Equations are those of docs/method.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from spectralgp._basics.extras import can_keep_compiled

MOST_RATIO = 0.99  # of one change to the one before it, as taken for what is still to come
FEWEST_ROWS, FIRST_NUMBERS = 64, 2**20  # of the table of gains, at first: memory that no row needs is never touched


# by loops: assignments of whole arrays take Numba many times as long to compile
@register_jitable
def _clear(out: Any) -> None:
    """Zeros in a matrix with modes last."""
    for row in range(out.shape[0]):
        for mode in range(out.shape[1]):
            out[row, mode] = 0.0


@register_jitable
def _clear_all(out: Any) -> None:
    for row in range(out.shape[0]):
        _clear(out[row])


@register_jitable
def _copy(source: Any, out: Any) -> None:
    for row in range(out.shape[0]):
        for mode in range(out.shape[1]):
            out[row, mode] = source[row, mode]


@register_jitable
def _copy_all(source: Any, out: Any) -> None:
    for row in range(out.shape[0]):
        _copy(source[row], out[row])


@register_jitable
def _multiply(transition: Any, rows: Any, columns: Any, state: Any, out: Any) -> None:
    """``A x``."""
    _clear(out)
    for entry in range(rows.size):
        row, column = rows[entry], columns[entry]
        for mode in range(out.shape[1]):
            out[row, mode] += transition[entry, mode] * state[column, mode]


@register_jitable
def _multiply_back(transition: Any, rows: Any, columns: Any, state: Any, out: Any) -> None:
    """``A^T x``."""
    _clear(out)
    for entry in range(rows.size):
        row, column = rows[entry], columns[entry]
        for mode in range(out.shape[1]):
            out[column, mode] += transition[entry, mode] * state[row, mode]


@register_jitable
def _multiply_matrix(transition: Any, rows: Any, columns: Any, matrix: Any, out: Any) -> None:
    """``A P``."""
    _clear_all(out)
    for entry in range(rows.size):
        row, column = rows[entry], columns[entry]
        for other in range(out.shape[1]):
            for mode in range(out.shape[2]):
                out[row, other, mode] += transition[entry, mode] * matrix[column, other, mode]


def _fill_table(
    transitions: Any,
    rows: Any,
    columns: Any,
    noises: Any,
    heads: Any,
    own: Any,
    which: Any,
    common: int,
    tolerance: float,
    counts: Any,
    before: Any,
    work: Any,
    gains: Any,
    variances: Any,
    filtered: Any,
    index: Any,
) -> None:
    """Go on with the table of gains until it is full or ends; `counts` are steps, rows, and whether it is steady."""
    n_states, n_modes = gains.shape[1], gains.shape[2]
    covariance, predicted, product = work[0], work[1], work[2]
    step, n_found = counts[0], counts[1]
    while step < which.size and n_found < gains.shape[0]:
        gap = which[step]
        if counts[2] == 1 and gap == common:
            index[step] = n_found - 1
            step += 1
            continue
        if step > 0:
            _multiply_matrix(transitions[gap], rows, columns, covariance, product)
            _copy_all(noises[gap], predicted)
            for entry in range(rows.size):
                row, column = rows[entry], columns[entry]
                for other in range(n_states):
                    for mode in range(n_modes):
                        predicted[other, row, mode] += product[other, column, mode] * transitions[gap, entry, mode]
        gain, variance = gains[n_found], variances[n_found]
        _clear(gain)
        for mode in range(n_modes):
            variance[mode] = own[mode]
        for head in heads:
            for state in range(n_states):
                for mode in range(n_modes):
                    gain[state, mode] += 0.5 * (predicted[state, head, mode] + predicted[head, state, mode])
        for head in heads:
            for mode in range(n_modes):
                variance[mode] += gain[head, mode]
        change = 0.0
        for state in range(n_states):
            for mode in range(n_modes):
                gain[state, mode] /= variance[mode]
            for other in range(state + 1):
                for mode in range(n_modes):
                    whole = 0.5 * (predicted[state, other, mode] + predicted[other, state, mode])
                    product[state, other, mode] = whole - gain[state, mode] * gain[other, mode] * variance[mode]
            for mode in range(n_modes):
                moved = abs(product[state, state, mode] - covariance[state, state, mode])
                change = max(change, moved / (predicted[state, state, mode] + variance[mode]))
        last = n_found if filtered.shape[0] == gains.shape[0] else 0
        for state in range(n_states):
            for other in range(state + 1):
                for mode in range(n_modes):
                    covariance[state, other, mode] = product[state, other, mode]
                    covariance[other, state, mode] = product[state, other, mode]
        _copy_all(covariance, filtered[last])
        index[step] = n_found
        n_found += 1
        counts[2] = 0
        if step > 0 and gap == common:
            ratio = min(change / before[0], MOST_RATIO) if before[0] > 0 else 0.0
            if change <= tolerance * (1 - ratio):
                counts[2] = 1
            before[0] = change
        else:
            before[0] = np.inf
        step += 1
    counts[0], counts[1] = step, n_found


def _forward(
    transitions: Any,
    rows: Any,
    columns: Any,
    heads: Any,
    gains: Any,
    index: Any,
    which: Any,
    first: Any,
    values: Any,
    keep: bool,
) -> Any:
    n_steps, n_modes = values.shape
    n_states = first.shape[0]
    innovations = np.empty((n_steps, n_modes))
    states = np.empty((n_steps if keep else 1, n_states, n_modes))
    predicted, filtered = np.empty((n_states, n_modes)), np.zeros((n_states, n_modes))
    _copy(first, predicted)
    for step in range(n_steps):
        if step > 0:
            _multiply(transitions[which[step]], rows, columns, filtered, predicted)
        innovation, gain = innovations[step], gains[index[step]]
        for mode in range(n_modes):
            innovation[mode] = values[step, mode]
        for head in heads:
            for mode in range(n_modes):
                innovation[mode] -= predicted[head, mode]
        for state in range(n_states):
            for mode in range(n_modes):
                filtered[state, mode] = predicted[state, mode] + gain[state, mode] * innovation[mode]
        if keep or step == n_steps - 1:
            _copy(filtered, states[step if keep else 0])
    return innovations, states


def _backward(
    transitions: Any,
    rows: Any,
    columns: Any,
    heads: Any,
    gains: Any,
    variances: Any,
    index: Any,
    which: Any,
    innovations: Any,
) -> Any:
    n_steps, n_modes = innovations.shape
    n_states = gains.shape[1]
    solved = np.empty((n_steps, n_modes))
    adjoint, after = np.zeros((n_states, n_modes)), np.zeros((n_states, n_modes))
    for step in range(n_steps - 1, -1, -1):
        row, found = index[step], solved[step]
        for mode in range(n_modes):
            found[mode] = innovations[step, mode] / variances[row, mode]
        for state in range(n_states):
            for mode in range(n_modes):
                found[mode] -= gains[row, state, mode] * after[state, mode]
        _copy(after, adjoint)
        for head in heads:
            for mode in range(n_modes):
                adjoint[head, mode] += found[mode]
        if step > 0:
            _multiply_back(transitions[which[step]], rows, columns, adjoint, after)
    return solved


def _scores(
    transitions: Any,
    rows: Any,
    columns: Any,
    heads: Any,
    gains: Any,
    variances: Any,
    filtered: Any,
    index: Any,
    which: Any,
    innovations: Any,
    states: Any,
) -> Any:
    n_steps, n_modes = innovations.shape
    n_states = gains.shape[1]
    energies = np.zeros(n_modes)
    squares = np.zeros((transitions.shape[0], n_states, n_states, n_modes))
    steady = np.zeros((n_states, n_states, n_modes))
    first, crossed = np.zeros((n_states, n_states, n_modes)), np.zeros(transitions.shape)
    adjoint, after = np.zeros((n_states, n_modes)), np.zeros((n_states, n_modes))
    found, smoothed = np.empty(n_modes), np.zeros((n_states, n_modes))
    product = np.zeros((n_states, n_states, n_modes))
    common, steady_row = -1, -1
    for step in range(n_steps - 1, -1, -1):
        row, gap = index[step], which[step]
        for mode in range(n_modes):
            found[mode] = innovations[step, mode] / variances[row, mode]
        for state in range(n_states):
            for mode in range(n_modes):
                found[mode] -= gains[row, state, mode] * after[state, mode]
        for mode in range(n_modes):
            energies[mode] += found[mode] * found[mode]
        _copy(after, adjoint)
        for head in heads:
            for mode in range(n_modes):
                adjoint[head, mode] += found[mode]
        if step == 0:
            for state in range(n_states):
                for other in range(n_states):
                    for mode in range(n_modes):
                        first[state, other, mode] = adjoint[state, mode] * adjoint[other, mode]
            break
        if row == index[step - 1]:  # a steady step: sums over all of them are multiplied in the end
            common, steady_row = gap, row
            for state in range(n_states):
                for other in range(state + 1):
                    for mode in range(n_modes):
                        steady[state, other, mode] += adjoint[state, mode] * adjoint[other, mode]
            for entry in range(rows.size):
                for mode in range(n_modes):
                    crossed[gap, entry, mode] += adjoint[rows[entry], mode] * states[step - 1, columns[entry], mode]
            _multiply_back(transitions[gap], rows, columns, adjoint, after)
            continue
        for state in range(n_states):
            for other in range(n_states):
                for mode in range(n_modes):
                    squares[gap, state, other, mode] += adjoint[state, mode] * adjoint[other, mode]
        _multiply_back(transitions[gap], rows, columns, adjoint, after)
        _copy(states[step - 1], smoothed)  # and P A^T r: the smoothed state before the step
        for state in range(n_states):
            for other in range(n_states):
                for mode in range(n_modes):
                    smoothed[state, mode] += filtered[index[step - 1], state, other, mode] * after[other, mode]
        for entry in range(rows.size):
            for mode in range(n_modes):
                crossed[gap, entry, mode] += adjoint[rows[entry], mode] * smoothed[columns[entry], mode]
    if common >= 0:
        for state in range(n_states):
            for other in range(n_states):
                for mode in range(n_modes):
                    if other > state:
                        steady[state, other, mode] = steady[other, state, mode]
                    squares[common, state, other, mode] += steady[state, other, mode]
        _multiply_matrix(transitions[common], rows, columns, filtered[steady_row], product)  # A P
        for entry in range(rows.size):
            for other in range(n_states):
                for mode in range(n_modes):
                    crossed[common, entry, mode] += (
                        steady[rows[entry], other, mode] * product[other, columns[entry], mode]
                    )
    return energies, squares, first, crossed


def _informations(
    transitions: Any,
    rows: Any,
    columns: Any,
    heads: Any,
    gains: Any,
    variances: Any,
    filtered: Any,
    index: Any,
    which: Any,
    tolerance: float,
    keep: bool,
    with_sums: bool,
    places: Any,
    n_kept: int,
) -> Any:
    n_steps, n_states, n_modes = which.size, gains.shape[1], gains.shape[2]
    diagonals = np.empty((n_steps if keep else 1, n_modes))
    total = np.zeros(n_modes)
    sums = np.zeros((transitions.shape[0], n_states, n_states, n_modes))
    first, crossed = np.zeros((n_states, n_states, n_modes)), np.zeros(transitions.shape)
    after, before = np.zeros((n_states, n_states, n_modes)), np.zeros((n_states, n_states, n_modes))
    here, product = np.zeros((n_states, n_states, n_modes)), np.zeros((n_states, n_states, n_modes))
    seen, diagonal = np.zeros((n_states, n_modes)), np.zeros(n_modes)
    n_still, is_still, last_change = 0, False, np.inf
    kept = np.empty((n_kept, n_states, n_states, n_modes))
    for step in range(n_steps - 1, -1, -1):
        row, gap = index[step], which[step]
        is_repeated = step > 0 and row == index[step - 1]
        if is_still and is_repeated:
            n_still += 1
            if keep:
                for mode in range(n_modes):
                    diagonals[step, mode] = diagonal[mode]
            if places[step] >= 0:
                _copy_all(here, kept[places[step]])
            continue
        if n_still > 0:  # add what repeated itself since
            still_gap, still_row = which[step + 1], index[step + 1]
            for mode in range(n_modes):
                total[mode] += n_still * diagonal[mode]
            for state in range(n_states):
                for other in range(n_states):
                    for mode in range(n_modes):
                        sums[still_gap, state, other, mode] += n_still * here[state, other, mode]
            if with_sums:
                _multiply_matrix(transitions[still_gap], rows, columns, filtered[still_row], product)
                for entry in range(rows.size):
                    for other in range(n_states):
                        for mode in range(n_modes):
                            crossed[still_gap, entry, mode] += (
                                n_still * here[rows[entry], other, mode] * product[other, columns[entry], mode]
                            )
            n_still = 0
        # N_ = (I - h k^T) N (I - k h^T) + h h^T / s
        _clear(seen)
        for state in range(n_states):
            for other in range(n_states):
                for mode in range(n_modes):
                    seen[state, mode] += after[state, other, mode] * gains[row, other, mode]
        for mode in range(n_modes):
            diagonal[mode] = 1 / variances[row, mode]
        for state in range(n_states):
            for mode in range(n_modes):
                diagonal[mode] += gains[row, state, mode] * seen[state, mode]
        _copy_all(after, here)
        for head in heads:
            for state in range(n_states):
                for mode in range(n_modes):
                    here[head, state, mode] -= seen[state, mode]
                    here[state, head, mode] -= seen[state, mode]
            for other in heads:
                for mode in range(n_modes):
                    here[head, other, mode] += diagonal[mode]
        for mode in range(n_modes):
            total[mode] += diagonal[mode]
        if keep:
            for mode in range(n_modes):
                diagonals[step, mode] = diagonal[mode]
        if places[step] >= 0:
            _copy_all(here, kept[places[step]])
        if step == 0:
            _copy_all(here, first)
            break
        _multiply_columns(transitions[gap], rows, columns, here, product)  # N_ A
        _clear_all(before)
        for entry in range(rows.size):
            state, column = rows[entry], columns[entry]
            for other in range(n_states):
                for mode in range(n_modes):
                    before[column, other, mode] += transitions[gap, entry, mode] * product[state, other, mode]
        for state in range(n_states):
            for other in range(n_states):
                for mode in range(n_modes):
                    sums[gap, state, other, mode] += here[state, other, mode]
        if with_sums:
            for entry in range(rows.size):
                for other in range(n_states):
                    for mode in range(n_modes):
                        crossed[gap, entry, mode] += (
                            product[rows[entry], other, mode] * filtered[index[step - 1], other, columns[entry], mode]
                        )
        if is_repeated:
            change = 0.0
            for state in range(n_states):
                for mode in range(n_modes):
                    moved = abs(before[state, state, mode] - after[state, state, mode])
                    change = max(change, moved / (before[state, state, mode] + 1 / variances[row, mode]))
            ratio = min(change / last_change, MOST_RATIO) if last_change > 0 else 0.0
            is_still = change <= tolerance * (1 - ratio)
            last_change = change
        else:
            is_still, last_change = False, np.inf
        _copy_all(before, after)
    return diagonals, total, sums, first, crossed, kept


@register_jitable
def _multiply_columns(transition: Any, rows: Any, columns: Any, matrix: Any, out: Any) -> None:
    """``N A``."""
    _clear_all(out)
    for entry in range(rows.size):
        row, column = rows[entry], columns[entry]
        for other in range(out.shape[0]):
            for mode in range(out.shape[2]):
                out[other, column, mode] += matrix[other, row, mode] * transition[entry, mode]


def _products(
    transitions: Any, rows: Any, columns: Any, heads: Any, which: Any, shared: Any, own: Any, values: Any
) -> Any:
    n_steps, n_modes = values.shape
    n_states = shared.shape[0]
    out = np.empty((n_steps, n_modes))
    state, moved = np.zeros((n_states, n_modes)), np.zeros((n_states, n_modes))
    for step in range(n_steps):
        if step > 0:
            _multiply(transitions[which[step]], rows, columns, state, moved)
        for mode in range(n_modes):
            out[step, mode] = own[mode] * values[step, mode]
        for place in range(n_states):
            for mode in range(n_modes):
                state[place, mode] = moved[place, mode] + shared[place, mode] * values[step, mode]
        for head in heads:
            for mode in range(n_modes):
                out[step, mode] += state[head, mode]
    _clear(state)
    for step in range(n_steps - 1, 0, -1):
        for head in heads:
            for mode in range(n_modes):
                state[head, mode] += values[step, mode]
        _multiply_back(transitions[which[step]], rows, columns, state, moved)
        _copy(moved, state)
        for place in range(n_states):
            for mode in range(n_modes):
                out[step - 1, mode] += shared[place, mode] * state[place, mode]
    return out


def _generated(
    transitions: Any, rows: Any, columns: Any, heads: Any, gains: Any, index: Any, which: Any, innovations: Any
) -> Any:
    n_steps, n_modes = innovations.shape
    n_states = gains.shape[1]
    out = np.empty((n_steps, n_modes))
    predicted, filtered = np.zeros((n_states, n_modes)), np.zeros((n_states, n_modes))
    for step in range(n_steps):
        if step > 0:
            _multiply(transitions[which[step]], rows, columns, filtered, predicted)
        for mode in range(n_modes):
            out[step, mode] = innovations[step, mode]
        for head in heads:
            for mode in range(n_modes):
                out[step, mode] += predicted[head, mode]
        gain = gains[index[step]]
        for state in range(n_states):
            for mode in range(n_modes):
                filtered[state, mode] = predicted[state, mode] + gain[state, mode] * innovations[step, mode]
    return out


# no reassociation: sums must be those of NumPy to the last few digits
_fill, forward, backward, scores, _sum, products, generated = (
    njit(cache=can_keep_compiled(), error_model="numpy", fastmath={"contract", "nsz", "arcp"}, nogil=True)(loop)
    for loop in (_fill_table, _forward, _backward, _scores, _informations, _products, _generated)
)


def gains(
    transitions: Any,
    rows: Any,
    columns: Any,
    noises: Any,
    heads: Any,
    own: Any,
    which: Any,
    common: int,
    first: Any,
    tolerance: float,
    keep: bool,
) -> tuple[Any, Any, Any, Any]:
    """Gains ``k / s``, variances ``s`` and filtered covariances, one row per step until they repeat: equation (29)."""
    n_steps, work, index = which.size, np.array([first] * 3), np.empty(which.size, np.int64)
    counts, before = np.zeros(3, np.int64), np.full(1, np.inf)
    shapes = first.shape[1:], first.shape[2:], first.shape
    n_rows = min(n_steps, max(FEWEST_ROWS, FIRST_NUMBERS // sum(math.prod(shape) for shape in shapes)))
    tables = [np.empty((n_rows, *shape)) for shape in shapes[: 3 if keep else 2]]
    last = [] if keep else [work[:1].copy()]
    arguments = transitions, rows, columns, noises, heads, own, which, common, tolerance
    while True:
        _fill(*arguments, counts, before, work, *tables, *last, index)
        if counts[0] == n_steps:
            break
        tables = [_twice_as_long(one) for one in tables]
    found = [one[: int(counts[1])] for one in tables]
    return (*found, *last, index)  # type: ignore[return-value]


def _twice_as_long(table: Any) -> Any:
    """A table with room for as many rows again."""
    longer = np.empty((2 * len(table), *table.shape[1:]))
    longer[: len(table)] = table
    return longer


def informations(*arguments: Any) -> Any:
    """Diagonals of ``C^-1``, and sums of ``N``, as `plain.informations` has them."""
    return _sum(*arguments, int(arguments[-1].max(initial=-1)) + 1)
