"""The loops of `loops` in NumPy, for where Numba is not installed: the same arguments, the same numbers.

Steps that repeat one row of the table of gains are a recursion with constant coefficients. They are cut into blocks
that run side by side: once from zero for what each block adds to the state, and again from the state that it starts at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from spectralgp._basics.checks import Array, Indices

MOST_RATIO = 0.99  # of one change to the one before it, as taken for what is still to come
FEWEST_IN_BLOCKS = 64  # steps of a run, below which blocks do not pay

Step = Callable[[Array, Array], tuple[Array, tuple[Array, ...]]]


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
    transitions: Array,
    rows: Indices,
    columns: Indices,
    noises: Array,
    heads: Indices,
    own: Array,
    which: Indices,
    common: int,
    first: Array,
    tolerance: float,
    keep: bool,
) -> tuple[Array, Array, Array, Indices]:
    """Gains ``k / s``, variances ``s`` and filtered covariances, one row per step until they repeat: equation (29)."""
    found_gains: list[Array] = []
    found_variances: list[Array] = []
    found_filtered: list[Array] = []
    index = np.empty(which.size, np.int64)
    covariance, is_steady, before = first, False, np.inf
    for step, gap in enumerate(which):
        if is_steady and gap == common:
            index[step] = len(found_gains) - 1
            continue
        if step == 0:
            predicted = first
        else:
            moved = multiply(transitions[gap], rows, columns, covariance.swapaxes(0, 1)).swapaxes(0, 1)  # A P
            predicted = noises[gap] + multiply(transitions[gap], rows, columns, moved)
        predicted = 0.5 * (predicted + predicted.swapaxes(0, 1))
        gain = predicted[:, heads].sum(axis=1)
        variance = own + gain[heads].sum(axis=0)
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
            ratio = min(change / before, MOST_RATIO) if before > 0 else 0.0
            is_steady, before = change <= tolerance * (1 - ratio), change
        else:
            is_steady, before = False, np.inf
    return np.array(found_gains), np.array(found_variances), np.array(found_filtered), index


def _runs(index: Indices) -> Iterator[tuple[int, int]]:
    """First and last-but-one of steps that go together: each repeats the row of the one before it, or is alone."""
    is_repeated = np.concatenate([[False], index[1:] == index[:-1], [False]])
    step = 0
    while step < index.size:
        stop = step + 1
        if is_repeated[step]:
            stop = step + int(np.argmin(is_repeated[step:]))
        yield step, stop
        step = stop


def _scan(step: Step, state: Array, inputs: Array, outputs: tuple[Array, ...]) -> Array:
    """Run a linear step with constant coefficients over inputs, fill in what it puts out, and return the last state."""
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
            added, _ = step(added, blocks[:, place])
            units, _ = step(units, nothing)
        starts = np.empty((n_blocks, *state.shape))
        for block in range(n_blocks):
            starts[block] = state
            state = np.einsum("abj,aj->bj", units, state) + added[block]
        shaped = [out[:n_inside].reshape(n_blocks, length, *out.shape[1:]) for out in outputs]
        for place in range(length):
            starts, found = step(starts, blocks[:, place])
            for out, part in zip(shaped, found, strict=False):
                out[:, place] = part
    for place in range(n_inside, n_steps):
        state, found = step(state, inputs[place])
        for out, part in zip(outputs, found, strict=False):
            out[place] = part
    return state


def forward(
    transitions: Array,
    rows: Indices,
    columns: Indices,
    heads: Indices,
    gains: Array,
    index: Indices,
    which: Indices,
    first: Array,
    values: Array,
    keep: bool,
) -> tuple[Array, Array]:
    """Innovations, and filtered states after every step or after the last one: equation (29)."""
    innovations = np.empty(values.shape)
    states = np.empty((len(values) if keep else 0, *first.shape))
    state = first
    for start, stop in _runs(index):
        gain, transition = gains[index[start]], transitions[which[start]]

        def step(
            before: Array, value: Array, gain: Array = gain, transition: Array = transition, is_first: bool = start == 0
        ) -> tuple[Array, tuple[Array, ...]]:
            predicted = before if is_first else multiply(transition, rows, columns, before)
            innovation = value - predicted[..., heads, :].sum(axis=-2)
            filtered = predicted + gain * innovation[..., None, :]
            return filtered, (innovation, filtered)

        kept = (innovations[start:stop], states[start:stop]) if keep else (innovations[start:stop],)
        state = _scan(step, state, values[start:stop], kept)
    return innovations, states if keep else state[None]


def _adjoints(
    transitions: Array,
    rows: Indices,
    columns: Indices,
    heads: Indices,
    gains: Array,
    variances: Array,
    index: Indices,
    which: Indices,
    innovations: Array,
    keep: bool,
) -> tuple[Array, Array]:
    """Solutions ``u``, and the adjoints ``r`` of predicted states where they are asked for: equation (30)."""
    solved = np.empty(innovations.shape)
    adjoints = np.empty((len(innovations) if keep else 0, gains.shape[1], innovations.shape[1]))
    after = np.zeros(gains.shape[1:])
    for start, stop in reversed(list(_runs(index))):
        gain, variance, transition = gains[index[start]], variances[index[start]], transitions[which[start]]

        def step(
            after: Array,
            innovation: Array,
            gain: Array = gain,
            variance: Array = variance,
            transition: Array = transition,
        ) -> tuple[Array, tuple[Array, ...]]:
            found = innovation / variance - (gain * after).sum(axis=-2)
            adjoint = after.copy()
            adjoint[..., heads, :] += found[..., None, :]
            return multiply(transition, columns, rows, adjoint), (found, adjoint)

        kept = (solved[start:stop][::-1], adjoints[start:stop][::-1]) if keep else (solved[start:stop][::-1],)
        after = _scan_back(step, after, innovations[start:stop][::-1], kept)
    return solved, adjoints


def _scan_back(step: Step, state: Array, inputs: Array, outputs: tuple[Array, ...]) -> Array:
    """`_scan` over views in reverse, which cannot be cut into blocks where they are."""
    if len(inputs) < FEWEST_IN_BLOCKS:
        return _scan(step, state, inputs, outputs)
    copies = tuple(np.empty(out.shape) for out in outputs)
    state = _scan(step, state, np.ascontiguousarray(inputs), copies)
    for out, copy in zip(outputs, copies, strict=True):
        out[:] = copy
    return state


def backward(
    transitions: Array,
    rows: Indices,
    columns: Indices,
    heads: Indices,
    gains: Array,
    variances: Array,
    index: Indices,
    which: Indices,
    innovations: Array,
) -> Array:
    """``C^-1 z`` from the innovations of ``z``: equation (31)."""
    return _adjoints(transitions, rows, columns, heads, gains, variances, index, which, innovations, False)[0]


def _by_gap(terms: Array, which: Indices, n_gaps: int) -> Array:
    """Sums over the steps after each gap."""
    if n_gaps == 1:
        return terms.sum(axis=0, keepdims=True)
    out = np.zeros((n_gaps, *terms.shape[1:]))
    np.add.at(out, which, terms)
    return out


def scores(
    transitions: Array,
    rows: Indices,
    columns: Indices,
    heads: Indices,
    gains: Array,
    variances: Array,
    filtered: Array,
    index: Indices,
    which: Indices,
    innovations: Array,
    states: Array,
) -> tuple[Array, Array, Array, Array]:
    """Sums over steps of what equation (30) asks of the data: ``u^2``, ``r r^T`` by gap, at first, and with states."""
    solved, adjoints = _adjoints(
        transitions, rows, columns, heads, gains, variances, index, which, innovations, keep=True
    )
    n_gaps, later, gaps = len(transitions), adjoints[1:], which[1:]
    is_steady = index[1:] == index[:-1]
    first = adjoints[0][:, None] * adjoints[0][None]
    squares = np.zeros((n_gaps, *filtered.shape[1:]))
    crossed = np.zeros(transitions.shape)
    if is_steady.any():
        steady, row = later[is_steady], index[1:][is_steady][-1]
        gap = gaps[is_steady][-1]
        square = np.einsum("naj,nbj->abj", steady, steady)
        squares[gap] += square
        before = states[:-1][is_steady]
        for entry, (place, column) in enumerate(zip(rows, columns, strict=True)):
            crossed[gap, entry] += np.einsum("nj,nj->j", steady[:, place], before[:, column])
        product = multiply(transitions[gap], rows, columns, filtered[row].swapaxes(0, 1)).swapaxes(0, 1)
        crossed[gap] += np.einsum("abj,bcj->acj", square, product)[rows, columns]
    alone = np.flatnonzero(~is_steady)
    if alone.size:
        adjoint, gap = later[alone], gaps[alone]
        matrices = written_out(transitions[gap], rows, columns, filtered.shape[1])
        after = np.einsum("nabj,naj->nbj", matrices, adjoint)
        smoothed = states[alone] + np.einsum("nabj,nbj->naj", filtered[index[alone]], after)
        squares += _by_gap(adjoint[:, :, None] * adjoint[:, None], gap, n_gaps)
        crossed += _by_gap(adjoint[:, rows] * smoothed[:, columns], gap, n_gaps)
    return np.einsum("nj,nj->j", solved, solved), squares, first, crossed


def informations(
    transitions: Array,
    rows: Indices,
    columns: Indices,
    heads: Indices,
    gains: Array,
    variances: Array,
    filtered: Array,
    index: Indices,
    which: Indices,
    tolerance: float,
    keep: bool,
    with_sums: bool,
    places: Indices,
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Diagonals of ``C^-1``, their sums, and sums of ``N`` by gap, at first, and with covariances: equation (30).

    Last come the ``N`` of steps that have a place, which is not negative.
    """
    n_steps, n_states, n_modes = which.size, gains.shape[1], gains.shape[2]
    diagonals, total = np.empty((n_steps if keep else 1, n_modes)), np.zeros(n_modes)
    sums, crossed = np.zeros((len(transitions), n_states, n_states, n_modes)), np.zeros(transitions.shape)
    kept = np.empty((int(places.max(initial=-1)) + 1, n_states, n_states, n_modes))
    after, is_still, last_change = np.zeros((n_states, n_states, n_modes)), False, np.inf
    step = n_steps - 1
    is_repeated = np.concatenate([[False], index[1:] == index[:-1]])
    while step >= 0:
        row, gap = index[step], which[step]
        gain, variance = gains[row], variances[row]
        seen = np.einsum("abj,bj->aj", after, gain)
        diagonal = 1 / variance + (gain * seen).sum(axis=0)
        here = after.copy()
        here[heads] -= seen
        here[:, heads] -= seen[:, None]
        here[np.ix_(heads, heads)] += diagonal
        n_times = 1
        if is_still and is_repeated[step]:
            n_times = int(np.argmin(is_repeated[: step + 1][::-1]))
        total += n_times * diagonal
        here_places = places[step + 1 - n_times : step + 1]
        kept[here_places[here_places >= 0]] = here
        if keep:
            diagonals[step + 1 - n_times : step + 1] = diagonal
        if step == 0:
            break
        matrix = written_out(transitions[gap], rows, columns, n_states)
        product = np.einsum("abj,bcj->acj", here, matrix)
        before = np.einsum("abj,acj->bcj", matrix, product)
        sums[gap] += n_times * here
        if with_sums:
            crossed[gap] += n_times * np.einsum("abj,bcj->acj", product, filtered[index[step - 1]])[rows, columns]
        if is_repeated[step]:
            now, was = np.einsum("aaj->aj", before), np.einsum("aaj->aj", after)
            change = float(np.max(np.abs(now - was) / (now + 1 / variance)))
            ratio = min(change / last_change, MOST_RATIO) if last_change > 0 else 0.0
            is_still, last_change = change <= tolerance * (1 - ratio), change
        else:
            is_still, last_change = False, np.inf
        after = before
        step -= n_times
    return diagonals, total, sums, here, crossed, kept


def products(
    transitions: Array,
    rows: Indices,
    columns: Indices,
    heads: Indices,
    which: Indices,
    shared: Array,
    own: Array,
    values: Array,
) -> Array:
    """``C z``: a recursion forwards and another one backwards; `shared` is the stationary covariance with a value."""
    same_gap = np.concatenate([[-1], which[1:]])
    lower = np.empty(values.shape)
    state = np.zeros(shared.shape)
    for start, stop in _runs(same_gap):
        transition = transitions[which[start]]

        def step(before: Array, value: Array, transition: Array = transition) -> tuple[Array, tuple[Array, ...]]:
            state = multiply(transition, rows, columns, before) + shared * value[..., None, :]
            return state, (state[..., heads, :].sum(axis=-2),)

        state = _scan(step, state, values[start:stop], (lower[start:stop],))
    upper = np.zeros(values.shape)
    state = np.zeros(shared.shape)
    for start, stop in reversed(list(_runs(same_gap))):
        if stop == 1:
            break
        start = max(start, 1)
        transition = transitions[which[start]]

        def back(after: Array, value: Array, transition: Array = transition) -> tuple[Array, tuple[Array, ...]]:
            state = after.copy()
            state[..., heads, :] += value[..., None, :]
            state = multiply(transition, columns, rows, state)
            return state, ((shared * state).sum(axis=-2),)

        state = _scan_back(back, state, values[start:stop][::-1], (upper[start - 1 : stop - 1][::-1],))
    return own * values + lower + upper


def generated(
    transitions: Array,
    rows: Indices,
    columns: Indices,
    heads: Indices,
    gains: Array,
    index: Indices,
    which: Indices,
    innovations: Array,
) -> Array:
    """Values that have given innovations."""
    out = np.empty(innovations.shape)
    state = np.zeros(gains.shape[1:])
    for start, stop in _runs(index):
        gain, transition = gains[index[start]], transitions[which[start]]

        def step(
            before: Array, innovation: Array, gain: Array = gain, transition: Array = transition
        ) -> tuple[Array, tuple[Array, ...]]:
            predicted = multiply(transition, rows, columns, before)
            value = innovation + predicted[..., heads, :].sum(axis=-2)
            return predicted + gain * innovation[..., None, :], (value,)

        state = _scan(step, state, innovations[start:stop], (out[start:stop],))
    return out
