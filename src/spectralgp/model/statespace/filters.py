"""Covariances of sums of components over times, one per mode, solved with by a Kalman filter and its adjoint.

Everything is exact and linear in the number of steps: equations (28) to (32). Gains and variances do not depend on the
data; where steps are even they soon repeat themselves, and from there on a step costs as much as its transition. What
even steps say of parameters before they are seen is Whittle's information, equation (33).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import NamedTuple

import numpy as np

from spectralgp._basics.checks import Array, Indices
from spectralgp.model.statespace import plain
from spectralgp.model.statespace.components import Component
from spectralgp.model.statespace.plain import FilterGains, TransitionMatrices

STEADY = 1e-13  # of the variance: largest deviation of a covariance that counts as steady
MOST_NUMBERS = 2**25  # in the arrays of one evaluation, above which modes are split into lots

# Whittle's information
N_FREQUENCIES = 96  # between the lowest that a series tells of and the highest
N_NEAR_PERIODS = 10  # more on either side of each harmonic of an oscillator
WIDTH_OF_PERIODS = 0.3  # radians per step, how far those lie


@cache
def _loops() -> ModuleType:
    """Compiled loops if Numba is installed, else those in NumPy."""
    return import_module("spectralgp.model.statespace.compiled") if find_spec("numba") is not None else plain


def distinct(gaps: Array, times: Array) -> tuple[Array, Indices]:
    """Distinct gaps, up to the rounding of times, and the index of each gap among them."""
    rounding = 4 * np.spacing(np.abs(times).max())
    order = np.argsort(gaps, kind="stable")
    which = np.empty(gaps.size, np.intp)
    which[order] = np.concatenate([[0], np.cumsum(np.diff(gaps[order]) > rounding)])
    return np.bincount(which, gaps) / np.bincount(which), which


@dataclass(frozen=True, eq=False)
class Timeline:
    """Times in order, as the distinct gaps between them."""

    times: Array  # (n_steps,)
    gaps: Array  # (n_gaps,), distinct
    which: Indices  # (n_steps,), the gap before each step; that of the first is of no consequence

    @classmethod
    def of(cls, times: Array) -> Timeline:
        """Gaps that differ by no more than the times' own rounding are the same."""
        if times.size < 2:
            return cls(times, np.ones(1), np.zeros(times.size, np.intp))
        between = np.diff(times)
        if not between.min() >= 0:
            raise ValueError("times must be in order for a filter to run along them; got an earlier one after another.")
        gaps, which = distinct(between, times)
        return cls(times, gaps, np.concatenate([which[:1], which]))

    @cached_property
    def common(self) -> int:
        """Index of the most frequent gap."""
        return int(np.argmax(np.bincount(self.which, minlength=1)))


class StateLayout(NamedTuple):
    """States of components one after the other, in blocks with a transition each."""

    n_states: int
    blocks: list[tuple[int, int, slice, int]]  # each with its component, number there, states, and first entry
    rows: Indices  # (n_entries,), of the entries of transitions that are not zero
    columns: Indices
    heads: Indices  # states whose sum is the value
    n_blocks: Array  # (n_components, 1)
    stationary: list[Array]  # covariance of the states of a block of power one, by component


@lru_cache(maxsize=64)  # a search has the same components at every step
def state_layout(components: tuple[Component, ...]) -> StateLayout:
    """Layout of the states of components."""
    stationary, state, entry = [component.stationary for component in components], 0, 0
    n_blocks, blocks = [component.n_blocks for component in components], []
    for number, own in enumerate(stationary):
        for block in range(n_blocks[number]):
            blocks.append((number, block, slice(state, state + len(own)), entry))
            state, entry = state + len(own), entry + own.size
    grids = [np.mgrid[states, states].reshape(2, -1) for _, _, states, _ in blocks]
    rows, columns = np.concatenate(grids, axis=1).astype(np.int64)
    heads = np.array([states.start for _, _, states, _ in blocks], np.int64)
    return StateLayout(state, blocks, rows, columns, heads, np.array(n_blocks)[:, None], stationary)


@dataclass(frozen=True, eq=False)
class StateSpace:
    """Sum of components at each mode, and the own variance of each value: equation (28)."""

    components: tuple[Component, ...]
    powers: Array  # (n_components, n_modes)
    rates: Array  # (n_components, n_modes)
    own: Array  # (n_modes,)

    @property
    def n_modes(self) -> int:
        """Number of modes."""
        return self.own.size

    @cached_property
    def layout(self) -> StateLayout:
        """Layout of the states."""
        return state_layout(self.components)

    def modes(self, chosen: slice) -> StateSpace:
        """Return some of the modes."""
        if chosen.start == 0 and chosen.stop >= self.own.size:
            return self
        return replace(self, powers=self.powers[:, chosen], rates=self.rates[:, chosen], own=self.own[chosen])

    @cached_property
    def shares(self) -> Array:
        """Powers of single blocks, shape (n_components, n_modes)."""
        return self.powers / self.layout.n_blocks

    @cached_property
    def stationary(self) -> Array:
        """Covariance of the states before anything is seen, shape (n_states, n_states, n_modes)."""
        layout = self.layout
        found = np.zeros((layout.n_states, layout.n_states, self.own.size))
        for number, _, states, _ in layout.blocks:
            found[states, states] = np.multiply.outer(layout.stationary[number], self.shares[number])
        return found

    @cached_property
    def _matrices_by_gap(self) -> dict[float, TransitionMatrices]:
        return {}

    def matrices(self, gaps: Array) -> TransitionMatrices:
        """Equation (28) over gaps; a single gap is cached, since the next row often has the same."""
        if gaps.size > 1:
            return self._matrices(gaps)
        gap = float(gaps[0])
        if gap not in self._matrices_by_gap:
            self._matrices_by_gap.clear()
            self._matrices_by_gap[gap] = self._matrices(gaps)
        return self._matrices_by_gap[gap]

    def _matrices(self, gaps: Array) -> TransitionMatrices:
        layout, n_modes = self.layout, self.own.size
        entries = np.empty((gaps.size, layout.rows.size, n_modes))
        slopes = np.empty(entries.shape)
        noises = np.zeros((gaps.size, layout.n_states, layout.n_states, n_modes))
        parts = [one.transitions(gaps, rates) for one, rates in zip(self.components, self.rates, strict=True)]
        for number, block, states, entry in layout.blocks:
            stationary, matrix = layout.stationary[number], parts[number][0][:, block]
            here = slice(entry, entry + stationary.size)
            entries[:, here] = matrix.reshape(gaps.size, -1, n_modes)
            slopes[:, here] = parts[number][1][:, block].reshape(gaps.size, -1, n_modes)
            kept = np.einsum("uacj,udcj->uadj", np.einsum("uabj,bc->uacj", matrix, stationary), matrix)
            noises[:, states, states] = self.shares[number] * (stationary[:, :, None] - kept)
        own = np.array(self.own)  # in one piece, for compiled loops
        return TransitionMatrices(entries, slopes, noises, layout.rows, layout.columns, layout.heads, own)

    def variances(self, covariance: Array) -> Array:
        """Return variances of values, their own included, from covariances of the states, shape (..., n_modes)."""
        rows, columns = np.ix_(self.layout.heads, self.layout.heads)
        return covariance[..., rows, columns, :].sum(axis=(-3, -2)) + self.own

    def pulled_back(self, matrices: TransitionMatrices, on_entries: Array, on_noises: Array, on_first: Array) -> Array:
        """Derivatives in powers and rates, shape (2, n_components, n_modes), of those in matrices."""
        found, layout = np.zeros((2, *self.powers.shape)), self.layout
        n_gaps = len(matrices.entries)
        for number, _, states, entry in layout.blocks:
            stationary, share = layout.stationary[number], self.shares[number]
            shape = (n_gaps, *stationary.shape, self.own.size)
            here = slice(entry, entry + stationary.size)
            matrix, slope = (part[:, here].reshape(shape) for part in (matrices.entries, matrices.slopes))
            halves = (np.einsum("uabj,bc->uacj", part, stationary) for part in (matrix, slope))
            kept, moved = (np.einsum("uacj,udcj->uadj", half, matrix) for half in halves)
            noises, first = on_noises[:, states, states], on_first[states, states]
            unit = np.einsum("uabj,uabj->j", noises, stationary[:, :, None] - kept)
            unit += np.einsum("abj,ab->j", first, stationary)
            found[0, number] += unit / layout.n_blocks[number]
            found[1, number] += np.einsum("uqj,uqj->j", on_entries[:, here], matrices.slopes[:, here])
            found[1, number] -= 2 * share * np.einsum("uabj,uabj->j", noises, moved)
        return found


def sandwiched(matrices: Array, covariances: Array) -> Array:
    """``A P A^T`` of matrices of shape (..., n_states, n_states, n_modes)."""
    half = np.einsum("...abj,...bcj->...acj", matrices, covariances)
    return np.einsum("...acj,...dcj->...adj", half, matrices)


@dataclass(frozen=True, eq=False)
class Filter:
    """A state space over times: gains that are computed once, and passes over data that use them.

    `mean` and `covariance` are those of the states at the first time before its value is seen.
    """

    space: StateSpace
    timeline: Timeline
    matrices: TransitionMatrices  # of the gaps
    mean: Array  # (n_states, n_modes)
    covariance: Array  # (n_states, n_states, n_modes)
    keeps_covariances: bool = False  # of the states after every step, rather than after the last one

    @classmethod
    def of(cls, space: StateSpace, timeline: Timeline, keeps_covariances: bool = False) -> Filter:
        """Return the filter from the stationary distribution."""
        matrices, mean = space.matrices(timeline.gaps), np.zeros((space.layout.n_states, space.n_modes))
        return cls(space, timeline, matrices, mean, space.stationary, keeps_covariances)

    @classmethod
    def after(cls, space: StateSpace, time: float, times: Array, state: Array, covariance: Array) -> Filter:
        """Return the filter from the distribution of the states at an earlier time."""
        line = Timeline.of(np.concatenate([[time], times]))
        matrices = space.matrices(line.gaps)
        first = matrices.moved(int(line.which[1]), state, covariance)
        return cls(space, Timeline(times, line.gaps, line.which[1:]), matrices, *first)

    @cached_property
    def table(self) -> FilterGains:
        """Gains, variances of innovations and filtered covariances."""
        first = np.array(self.covariance, order="C")
        which, common = self.timeline.which, self.timeline.common
        return FilterGains(*_loops().gains(self.matrices, which, common, first, STEADY, self.keeps_covariances))

    @property
    def variances(self) -> Array:
        """Variances of the innovations, shape (n_steps, n_modes)."""
        return self.table.variances[self.table.row_of]

    @cached_property
    def log_determinants(self) -> Array:
        """``log |C_j|``, the sum of the logarithms of innovation variances."""
        counts = np.bincount(self.table.row_of, minlength=len(self.table.variances))
        return np.asarray(counts.astype(float) @ np.log(self.table.variances))

    def innovations(self, values: Array, keep: bool = False) -> tuple[Array, Array]:
        """Return one-step prediction errors, and states after each step or after the last one: equation (29)."""
        return self._forward(np.ascontiguousarray(values), True, keep)

    def _forward(self, given: Array, are_values: bool, keep: bool) -> tuple[Array, Array]:
        return _loops().forward(self.matrices, self.timeline.which, self.table, self.mean, given, are_values, keep)

    def log_likelihoods(self, *innovations: Array) -> Array:
        """Return the log likelihood of each mode from its innovations, equation (29); several add up as in `slopes`."""
        precisions = (1 / self.table.variances)[self.table.row_of]
        lengths = sum(np.einsum("nj,nj,nj->j", one, one, precisions) for one in innovations)
        return np.asarray(-0.5 * (lengths + self.log_determinants + len(precisions) * np.log(2 * np.pi)))

    def solve(self, values: Array) -> Array:
        """``C^-1 z``: equation (31)."""
        return _loops().backward(self.matrices, self.timeline.which, self.table, self.innovations(values)[0])

    def inverse_diagonal(self) -> Array:
        """Diagonals of ``C^-1``, shape (n_steps, n_modes): equation (31)."""
        return self._informations()[0]

    def between(self, times: Array) -> Array:
        """Return variances of the noiseless values at other times, given values at all steps, (n_times, n_modes).

        ``h^T (P - P N P) h`` with the covariance ``P`` of the states given the values before, and the information
        ``N`` of those after. Covariances of every step must be kept.
        """
        space, line = self.space, self.timeline
        n_steps, states = line.times.size, (space.layout.n_states, space.layout.n_states, space.n_modes)
        before = np.searchsorted(line.times, times, side="right") - 1
        has_past, has_future = before >= 0, before + 1 < n_steps
        left = np.broadcast_to(space.stationary, (times.size, *states)).copy()
        heads = space.layout.heads
        if has_past.any():
            matrices = space.matrices(times[has_past] - line.times[before[has_past]])
            past = self.table.filtered[self.table.row_of[before[has_past]]]
            left[has_past] = sandwiched(matrices.written_out, past) + matrices.noises
        with_value = left[:, :, heads].sum(axis=2)
        found = with_value[:, heads].sum(axis=1)
        if has_future.any():
            after = before[has_future] + 1
            wanted, places = np.unique(after, return_inverse=True)
            informations = self._informations(wanted=wanted)[-1][places]
            matrices = space.matrices(line.times[after] - times[has_future])
            moved = np.einsum("uabj,ubj->uaj", matrices.written_out, with_value[has_future])
            found[has_future] -= np.einsum("uaj,uabj,ubj->uj", moved, informations, moved, optimize=True)
        return found

    def _informations(
        self, with_sums: bool = False, wanted: Sequence[int] | Indices = ()
    ) -> tuple[Array, Array, Array, Array, Array]:
        steps = self.matrices, self.timeline.which, self.table
        return _loops().informations(*steps, STEADY, with_sums, np.array(wanted, np.int64))

    def times(self, values: Array) -> Array:
        """``C z``."""
        shared = self.space.stationary[:, self.space.layout.heads].sum(axis=1)
        return _loops().products(self.matrices, self.timeline.which, shared, np.ascontiguousarray(values))

    def whitened(self, values: Array) -> Array:
        """``R^-1 z`` with ``R R^T = C``: innovations over their standard deviations."""
        return self.innovations(values)[0] / np.sqrt(self.variances)

    def drawn(self, white: Array) -> Array:
        """``R z`` with ``R R^T = C``."""
        return self._forward(white * np.sqrt(self.variances), False, False)[0]

    def slopes(self, values: Sequence[Array]) -> tuple[Array, Array]:
        """Return log likelihoods by mode, and slopes (2 n_components + 1, n_modes) in powers, rates and own: (30).

        Values, whose outer products add up, are the signals, and factors of the covariance of missing values.
        """
        (total,), sums, first, crossed, _ = self._informations(with_sums=True)
        on_own, on_noises, on_first, on_entries = -0.5 * total, -0.5 * sums, -0.5 * first, -crossed
        errors = []
        for one in values:
            innovations, states = self.innovations(one, keep=True)
            errors.append(innovations)
            found = _loops().scores(self.matrices, self.timeline.which, self.table, innovations, states)
            energies, squares, at_first, with_states = found
            on_own = on_own + 0.5 * energies
            on_noises = on_noises + 0.5 * squares
            on_first = on_first + 0.5 * at_first
            on_entries = on_entries + with_states
        slopes = self.space.pulled_back(self.matrices, on_entries, on_noises, on_first)
        return self.log_likelihoods(*errors), np.vstack([*slopes, on_own])


def lots(space: StateSpace, timeline: Timeline) -> Iterator[slice]:
    """Yield lots of modes whose arrays are of bounded size."""
    n_states, n_gaps, n_steps = space.layout.n_states, timeline.gaps.size, timeline.times.size
    per_mode = n_steps * (3 + n_states) + 4 * n_gaps * n_states**2
    per_mode += n_steps * n_states**2 if n_gaps > 1 else 0
    length = max(8, MOST_NUMBERS // per_mode)
    yield from (slice(start, start + length) for start in range(0, space.n_modes, length))


def evaluate(space: StateSpace, timeline: Timeline, values: Sequence[Array]) -> tuple[Array, Array]:
    """Return log likelihoods by mode and their slopes, as in `Filter.slopes`, by lots of modes."""
    found = [
        Filter.of(space.modes(lot), timeline, keeps_covariances=True).slopes([one[:, lot] for one in values])
        for lot in lots(space, timeline)
    ]
    values_by_lot, slopes = zip(*found, strict=True)
    return np.concatenate(values_by_lot), np.concatenate(slopes, axis=1)


# ---------------------------------------------------------------------------------------------- Whittle's information


def frequencies(space: StateSpace, gap: float, n_steps: int) -> tuple[Array, Array]:
    """Angular frequencies per step, denser at low ones and about periods, and how many values each stands for."""
    lowest = np.pi / max(n_steps, 2)
    points = [np.geomspace(lowest, np.pi, N_FREQUENCIES)]
    near = np.geomspace(lowest / 2, WIDTH_OF_PERIODS, N_NEAR_PERIODS)
    for component in space.components:
        points += [angle + sign * near for angle in component.angles * gap for sign in (-1, 1)]
    folded = np.abs(np.mod(np.concatenate(points) + np.pi, 2 * np.pi) - np.pi)
    chosen = np.unique(np.clip(folded, lowest / 4, np.pi))
    edges = np.concatenate([[0.0], 0.5 * (chosen[1:] + chosen[:-1]), [np.pi]])
    return chosen, n_steps * np.diff(edges) / np.pi


def log_density_slopes(space: StateSpace, gap: float, angles: Array) -> Array:
    """Derivatives of a log spectral density in powers, rates and own: (2 n_components + 1, n_frequencies, n_modes).

    The density of the sampled process is ``D(w) = r + Re h^T (2 (I - A e^-iw)^-1 - I) P_inf h``.
    """
    n_components = len(space.components)
    slopes = np.empty((2 * n_components + 1, angles.size, space.n_modes))
    phases = np.exp(-1j * angles)[:, None, None, None]
    density = np.broadcast_to(space.own, (angles.size, space.n_modes)).copy()
    for number, component in enumerate(space.components):
        matrices, changes = component.transitions(np.array([gap]), space.rates[number])
        unit, change = np.zeros((2, angles.size, space.n_modes))
        with_value = component.stationary[:, 0]
        for block in range(component.n_blocks):
            matrix, changed = (np.moveaxis(part[0, block], -1, 0) for part in (matrices, changes))  # (n_modes, b, b)
            resolvent = _inverse(np.eye(len(with_value)) - phases * matrix)
            ahead, behind = resolvent @ with_value, resolvent[..., 0, :]
            unit += 2 * ahead[..., 0].real - with_value[0]
            bent = np.einsum("wja,jab,wjb->wj", behind, changed, ahead, optimize=True)
            change += 2 * (phases[..., 0, 0] * bent).real
        slopes[number] = np.maximum(unit, 0.0) / component.n_blocks
        slopes[n_components + number] = space.powers[number] * change / component.n_blocks
        density += space.powers[number] * slopes[number]
    slopes[-1] = 1.0
    return slopes / density


def _inverse(matrices: Array) -> Array:
    """Inverses of small matrices (..., n, n), in closed form up to two by two."""
    if matrices.shape[-1] == 1:
        return np.asarray(1 / matrices)
    if matrices.shape[-1] > 2:
        return np.asarray(np.linalg.inv(matrices))
    (a, b), (c, d) = np.moveaxis(matrices, (-2, -1), (0, 1))
    adjugate = np.stack([np.stack([d, -b], axis=-1), np.stack([-c, a], axis=-1)], axis=-2)
    return np.asarray(adjugate / (a * d - b * c)[..., None, None])


def information(space: StateSpace, timeline: Timeline) -> Array:
    """Expected curvature in powers, rates and own variances of every mode: equation (33).

    Shape (2 n_components + 1, 2 n_components + 1, n_modes). Uneven steps count as even ones of the same mean.
    """
    n_steps = timeline.times.size
    gap = float(timeline.times[-1] - timeline.times[0]) / max(n_steps - 1, 1) or 1.0
    angles, counts = frequencies(space, gap, n_steps)
    slopes = log_density_slopes(space, gap, angles)
    by_mode = slopes.transpose(2, 0, 1)
    return np.moveaxis((by_mode * (0.5 * counts)) @ by_mode.transpose(0, 2, 1), 0, -1)
