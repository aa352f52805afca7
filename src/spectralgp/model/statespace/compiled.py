"""Compiled loops of the filters, with the results of `plain`. Importing this module imports Numba.

They take the `TransitionMatrices` and the `FilterGains` of `plain`. Arrays end in modes, over which the innermost loops
run. Equations are those of docs/method.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from spectralgp._basics.extras import can_keep_compiled
from spectralgp.model.statespace import plain

_has_settled = register_jitable(plain.has_settled)


# by loops: Numba compiles them many times faster than assignments of whole arrays
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
    for row in range(source.shape[0]):
        for mode in range(source.shape[1]):
            out[row, mode] = source[row, mode]


@register_jitable
def _copy_all(source: Any, out: Any) -> None:
    for row in range(source.shape[0]):
        _copy(source[row], out[row])


# with columns for rows and rows for columns these multiply by the transpose
@register_jitable
def _multiply(transition: Any, rows: Any, columns: Any, state: Any, out: Any) -> None:
    """``A x``."""
    _clear(out)
    for entry in range(rows.size):
        row, column = rows[entry], columns[entry]
        for mode in range(out.shape[1]):
            out[row, mode] += transition[entry, mode] * state[column, mode]


@register_jitable
def _multiply_matrix(transition: Any, rows: Any, columns: Any, matrix: Any, out: Any) -> None:
    """``A P``."""
    _clear_all(out)
    for entry in range(rows.size):
        row, column = rows[entry], columns[entry]
        for other in range(out.shape[1]):
            for mode in range(out.shape[2]):
                out[row, other, mode] += transition[entry, mode] * matrix[column, other, mode]


@register_jitable
def _add_product(matrix: Any, transition: Any, rows: Any, columns: Any, out: Any) -> None:
    """Add ``P A``."""
    for entry in range(rows.size):
        row, column = rows[entry], columns[entry]
        for other in range(out.shape[0]):
            for mode in range(out.shape[2]):
                out[other, column, mode] += matrix[other, row, mode] * transition[entry, mode]


@register_jitable
def _add_entries(factor: float, left: Any, right: Any, rows: Any, columns: Any, out: Any) -> None:
    """Add some entries of a multiple of the product of two matrices."""
    for entry in range(rows.size):
        for other in range(left.shape[1]):
            for mode in range(left.shape[2]):
                out[entry, mode] += factor * left[rows[entry], other, mode] * right[other, columns[entry], mode]


@register_jitable
def _add_all(factor: float, matrix: Any, out: Any) -> None:
    """Add a multiple of a matrix."""
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            for mode in range(out.shape[2]):
                out[row, column, mode] += factor * matrix[row, column, mode]


@register_jitable
def _add_value(heads: Any, state: Any, sign: float, out: Any) -> None:
    """Add the value of a state, or subtract it."""
    for head in heads:
        for mode in range(out.size):
            out[mode] += sign * state[head, mode]


@register_jitable
def _add_to_heads(heads: Any, value: Any, out: Any) -> None:
    """Add a value to the states whose sum is the value."""
    for head in heads:
        for mode in range(value.size):
            out[head, mode] += value[mode]


@register_jitable
def _add_square(vector: Any, out: Any) -> None:
    """Add the lower triangle of ``x x^T``."""
    for state in range(vector.shape[0]):
        for other in range(state + 1):
            for mode in range(vector.shape[1]):
                out[state, other, mode] += vector[state, mode] * vector[other, mode]


@register_jitable
def _mirror(out: Any) -> None:
    """Copy the lower triangle into the upper one."""
    for state in range(out.shape[0]):
        for other in range(state):
            for mode in range(out.shape[2]):
                out[other, state, mode] = out[state, other, mode]


@register_jitable
def _observe(predicted: Any, before: Any, own: Any, heads: Any, gain: Any, variance: Any, after: Any) -> float:
    """Gain, variance and covariance after a value is observed; returns the relative change since the step before."""
    n_states, n_modes = gain.shape
    _clear(gain)
    for head in heads:
        for state in range(n_states):
            for mode in range(n_modes):
                gain[state, mode] += 0.5 * (predicted[state, head, mode] + predicted[head, state, mode])
    for mode in range(n_modes):
        variance[mode] = own[mode]
    _add_value(heads, gain, 1.0, variance)
    change = 0.0
    for state in range(n_states):
        for mode in range(n_modes):
            gain[state, mode] /= variance[mode]
        for other in range(state + 1):
            for mode in range(n_modes):
                whole = 0.5 * (predicted[state, other, mode] + predicted[other, state, mode])
                after[state, other, mode] = whole - gain[state, mode] * gain[other, mode] * variance[mode]
        for mode in range(n_modes):
            moved = abs(after[state, state, mode] - before[state, state, mode])
            change = max(change, moved / (predicted[state, state, mode] + variance[mode]))
    _mirror(after)
    return change


def _gains(matrices: Any, which: Any, common: int, first: Any, tolerance: float, keep: bool) -> Any:
    transitions, rows, columns, heads = matrices.entries, matrices.rows, matrices.columns, matrices.heads
    n_steps, n_states, n_modes = which.size, first.shape[0], first.shape[2]
    gains, variances = np.empty((1, n_states, n_modes)), np.empty((1, n_modes))
    filtered, index = np.empty((1, n_states, n_states, n_modes)), np.empty(n_steps, np.int64)
    covariance, predicted, product = first.copy(), first.copy(), np.empty(first.shape)
    n_found, is_steady, before = 0, False, np.inf
    for step in range(n_steps):
        gap = which[step]
        if is_steady and gap == common:
            index[step] = n_found - 1
            continue
        if n_found == gains.shape[0]:  # room for twice the rows
            old_gains, gains = gains, np.empty((2 * n_found, n_states, n_modes))
            old_variances, variances = variances, np.empty((2 * n_found, n_modes))
            _copy_all(old_gains, gains)
            _copy(old_variances, variances)
            if keep:
                old_filtered, filtered = filtered, np.empty((2 * n_found, n_states, n_states, n_modes))
                for place in range(n_found):
                    _copy_all(old_filtered[place], filtered[place])
        if step > 0:
            _multiply_matrix(transitions[gap], rows, columns, covariance, product)
            _copy_all(matrices.noises[gap], predicted)
            _add_product(product, transitions[gap], columns, rows, predicted)  # A P A^T + Q
        change = _observe(predicted, covariance, matrices.own, heads, gains[n_found], variances[n_found], product)
        _copy_all(product, covariance)
        _copy_all(covariance, filtered[n_found if keep else 0])
        index[step] = n_found
        n_found += 1
        if step > 0 and gap == common:
            is_steady, before = _has_settled(change, before, tolerance), change
        else:
            is_steady, before = False, np.inf
    return gains[:n_found], variances[:n_found], filtered[: n_found if keep else 1], index


def _forward(matrices: Any, which: Any, table: Any, first: Any, given: Any, are_values: bool, keep: bool) -> Any:
    transitions, rows, columns, heads = matrices.entries, matrices.rows, matrices.columns, matrices.heads
    n_steps, n_states, n_modes = given.shape[0], first.shape[0], first.shape[1]
    found, states = np.empty(given.shape), np.empty((n_steps if keep else 1, n_states, n_modes))
    predicted, filtered = first.copy(), np.zeros(first.shape)
    innovations, sign = (found, -1.0) if are_values else (given, 1.0)
    for step in range(n_steps):
        if step > 0:
            _multiply(transitions[which[step]], rows, columns, filtered, predicted)
        for mode in range(n_modes):
            found[step, mode] = given[step, mode]
        _add_value(heads, predicted, sign, found[step])
        innovation, gain = innovations[step], table.gains[table.row_of[step]]
        for state in range(n_states):
            for mode in range(n_modes):
                filtered[state, mode] = predicted[state, mode] + gain[state, mode] * innovation[mode]
        if keep or step == n_steps - 1:
            _copy(filtered, states[step if keep else 0])
    return found, states


@register_jitable
def _adjoint(gain: Any, variance: Any, heads: Any, innovation: Any, after: Any, solved: Any, adjoint: Any) -> None:
    """``u`` of a step and the adjoint ``r`` of its predicted state, from the adjoint after it: equation (30)."""
    for mode in range(solved.size):
        solved[mode] = innovation[mode] / variance[mode]
    for state in range(after.shape[0]):
        for mode in range(solved.size):
            solved[mode] -= gain[state, mode] * after[state, mode]
    _copy(after, adjoint)
    _add_to_heads(heads, solved, adjoint)


def _backward(matrices: Any, which: Any, table: Any, innovations: Any) -> Any:
    transitions, rows, columns, heads = matrices.entries, matrices.rows, matrices.columns, matrices.heads
    gains, variances, index = table.gains, table.variances, table.row_of
    solved, adjoint, after = np.empty(innovations.shape), np.zeros(gains.shape[1:]), np.zeros(gains.shape[1:])
    for step in range(innovations.shape[0] - 1, -1, -1):
        row = index[step]
        _adjoint(gains[row], variances[row], heads, innovations[step], after, solved[step], adjoint)
        _multiply(transitions[which[step]], columns, rows, adjoint, after)
    return solved


def _scores(matrices: Any, which: Any, table: Any, innovations: Any, states: Any) -> Any:
    transitions, rows, columns, heads = matrices.entries, matrices.rows, matrices.columns, matrices.heads
    gains, variances, filtered, index = table
    n_states, n_modes = gains.shape[1], gains.shape[2]
    energies, solved = np.zeros(n_modes), np.empty(n_modes)
    squares, crossed = np.zeros(matrices.noises.shape), np.zeros(transitions.shape)
    matrix, vector = matrices.noises.shape[1:], gains.shape[1:]
    first, steady, product = np.zeros(matrix), np.zeros(matrix), np.zeros(matrix)
    adjoint, after, smoothed = np.zeros(vector), np.zeros(vector), np.zeros(vector)
    common, steady_row = -1, -1
    for step in range(innovations.shape[0] - 1, -1, -1):
        row, gap = index[step], which[step]
        _adjoint(gains[row], variances[row], heads, innovations[step], after, solved, adjoint)
        for mode in range(n_modes):
            energies[mode] += solved[mode] * solved[mode]
        if step == 0:
            _add_square(adjoint, first)
            break
        _multiply(transitions[gap], columns, rows, adjoint, after)
        if row == index[step - 1]:  # a steady step: sums over all of them are multiplied in the end
            common, steady_row = gap, row
            _add_square(adjoint, steady)
            for entry in range(rows.size):
                for mode in range(n_modes):
                    crossed[gap, entry, mode] += adjoint[rows[entry], mode] * states[step - 1, columns[entry], mode]
            continue
        _add_square(adjoint, squares[gap])
        _copy(states[step - 1], smoothed)  # and P A^T r: the smoothed state before the step
        for state in range(n_states):
            for other in range(n_states):
                for mode in range(n_modes):
                    smoothed[state, mode] += filtered[index[step - 1], state, other, mode] * after[other, mode]
        for entry in range(rows.size):
            for mode in range(n_modes):
                crossed[gap, entry, mode] += adjoint[rows[entry], mode] * smoothed[columns[entry], mode]
    if common >= 0:
        _mirror(steady)
        _add_all(1.0, steady, squares[common])
        _multiply_matrix(transitions[common], rows, columns, filtered[steady_row], product)  # A P
        _add_entries(1.0, steady, product, rows, columns, crossed[common])
    _mirror(first)
    for gap in range(squares.shape[0]):
        _mirror(squares[gap])
    return energies, squares, first, crossed


@register_jitable
def _precede(after: Any, gain: Any, variance: Any, heads: Any, seen: Any, diagonal: Any, here: Any) -> None:
    """Information before a value is seen, ``(I - h k^T) N (I - k h^T) + h h^T / s``, and its diagonal at the value."""
    n_states, n_modes = gain.shape
    _clear(seen)
    for state in range(n_states):
        for other in range(n_states):
            for mode in range(n_modes):
                seen[state, mode] += after[state, other, mode] * gain[other, mode]
    for mode in range(n_modes):
        diagonal[mode] = 1 / variance[mode]
    for state in range(n_states):
        for mode in range(n_modes):
            diagonal[mode] += gain[state, mode] * seen[state, mode]
    _copy_all(after, here)
    for head in heads:
        for state in range(n_states):
            for mode in range(n_modes):
                here[head, state, mode] -= seen[state, mode]
                here[state, head, mode] -= seen[state, mode]
        _add_to_heads(heads, diagonal, here[head])


def _informations(matrices: Any, which: Any, table: Any, tolerance: float, with_sums: bool, wanted: Any) -> Any:
    transitions, rows, columns, heads = matrices.entries, matrices.rows, matrices.columns, matrices.heads
    gains, variances, filtered, index = table
    n_steps, n_states, n_modes = which.size, gains.shape[1], gains.shape[2]
    diagonals, diagonal = np.zeros((1 if with_sums else n_steps, n_modes)), np.empty(n_modes)
    sums, crossed = np.zeros(matrices.noises.shape), np.zeros(transitions.shape)
    matrix = matrices.noises.shape[1:]
    here, after, before, product = np.zeros(matrix), np.zeros(matrix), np.zeros(matrix), np.zeros(matrix)
    kept, last = np.empty((wanted.size, n_states, n_states, n_modes)), wanted.size - 1
    seen, is_still, last_change = np.zeros((n_states, n_modes)), False, np.inf
    step = n_steps - 1
    while step >= 0:
        row, gap = index[step], which[step]
        is_repeated = step > 0 and row == index[step - 1]
        _precede(after, gains[row], variances[row], heads, seen, diagonal, here)
        n_times = 1
        while is_still and step > n_times and row == index[step - n_times - 1]:
            n_times += 1
        for place in range(1 if with_sums else n_times):
            for mode in range(n_modes):
                if with_sums:
                    diagonals[0, mode] += n_times * diagonal[mode]
                else:
                    diagonals[step - place, mode] = diagonal[mode]
        while last >= 0 and wanted[last] > step - n_times:
            _copy_all(here, kept[last])
            last -= 1
        if step == 0:
            break
        _clear_all(product)
        _add_product(here, transitions[gap], rows, columns, product)  # N_ A
        _multiply_matrix(transitions[gap], columns, rows, product, before)  # A^T N_ A
        _add_all(n_times, here, sums[gap])
        if with_sums:
            _add_entries(n_times, product, filtered[index[step - 1]], rows, columns, crossed[gap])
        if is_repeated:
            change = 0.0  # of the diagonal, relative
            for state in range(n_states):
                for mode in range(n_modes):
                    moved = abs(before[state, state, mode] - after[state, state, mode])
                    change = max(change, moved / (before[state, state, mode] + 1 / variances[row, mode]))
            is_still, last_change = _has_settled(change, last_change, tolerance), change
        else:
            is_still, last_change = False, np.inf
        _copy_all(before, after)
        step -= n_times
    return diagonals, sums, here, crossed, kept


def _products(matrices: Any, which: Any, shared: Any, values: Any) -> Any:
    transitions, rows, columns, heads = matrices.entries, matrices.rows, matrices.columns, matrices.heads
    n_steps, n_modes = values.shape
    out, state, moved = np.empty(values.shape), np.zeros(shared.shape), np.zeros(shared.shape)
    for step in range(n_steps):
        _multiply(transitions[which[step]], rows, columns, state, moved)
        for mode in range(n_modes):
            out[step, mode] = matrices.own[mode] * values[step, mode]
        for place in range(shared.shape[0]):
            for mode in range(n_modes):
                state[place, mode] = moved[place, mode] + shared[place, mode] * values[step, mode]
        _add_value(heads, state, 1.0, out[step])
    _clear(state)
    for step in range(n_steps - 1, 0, -1):
        _add_to_heads(heads, values[step], state)
        _multiply(transitions[which[step]], columns, rows, state, moved)
        _copy(moved, state)
        for place in range(shared.shape[0]):
            for mode in range(n_modes):
                out[step - 1, mode] += shared[place, mode] * state[place, mode]
    return out


# no reassociation: sums must be those of NumPy to the last few digits
gains, forward, backward, scores, informations, products = (
    njit(cache=can_keep_compiled(), error_model="numpy", fastmath={"contract", "nsz", "arcp"}, nogil=True)(loop)
    for loop in (_gains, _forward, _backward, _scores, _informations, _products)
)
