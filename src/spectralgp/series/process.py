"""Process in time on nodes, a sum of components at each mode: filtered, forecast and updated, all exactly.

Missing values are imputed given all rows before and after, by solves under a mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from scipy.linalg import solve_triangular

from spectralgp._basics.arrays import as_generator, without_caches
from spectralgp._basics.checks import Array, Indices, Mask, as_real_array
from spectralgp._basics.saved import axes, ge, gt
from spectralgp.graphs import Graph
from spectralgp.model.fields import ModalCovariance, NodeCovariance, PartialObservations
from spectralgp.model.fields.processes import TimeCovariance
from spectralgp.model.spectra import ExactSpectrum
from spectralgp.model.statespace import Component, Filter, StateSpace, Timeline, distinct, sandwiched

SMALLEST_OPEN = 1e-10  # uncertainty by missing values, in deviations of a state, that is negligible
ROUGHLY_OPEN = 1e-3  # the same in passes over many past rows
COMPLETION_SEED = 1  # of draws of missing values
MOST_UNKNOWN = 256  # directions of the uncertainty by missing values; the largest are kept


@dataclass(frozen=True, eq=False)
class ModalProcess:
    """Components by mode, and the own variance of each value: equation (27) with its parameters as arrays.

    Modes are the graph's frequencies, or the nodes themselves where there is no basis.
    """

    components: Annotated[tuple[Component, ...], ge(1)]
    powers: Annotated[Array, axes("_components", "n_nodes"), ge(0)]
    rates: Annotated[Array, axes("_components", "n_nodes"), gt(0)]  # per unit of time
    own: Annotated[Array, axes("n_nodes"), gt(0)]  # the residual and the noise
    basis: Annotated[Array, axes("n_nodes", "n_nodes")] | None  # orthonormal

    __getstate__ = without_caches

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.own.size if self.basis is None else len(self.basis)

    @cached_property
    def space(self) -> StateSpace:
        """State space of the process."""
        return StateSpace(self.components, self.powers, self.rates, self.own)

    def load(self, values: Array) -> Array:
        """Modes of values over the nodes, shape (..., n_modes)."""
        return values if self.basis is None else values @ self.basis

    def unload(self, coordinates: Array) -> Array:
        """Values over the nodes, shape (..., n_nodes)."""
        return coordinates if self.basis is None else coordinates @ self.basis.T

    def node_variances(self, variances: Array) -> Array:
        """Variances of the nodes by those of the modes, shape (..., n_nodes)."""
        return variances if self.basis is None else variances @ np.square(self.basis).T

    def node_covariance(self, variances: Array) -> Array:
        """Covariance of the nodes by the variances of the modes, shape (n_nodes, n_nodes)."""
        return np.diag(variances) if self.basis is None else (self.basis * variances) @ self.basis.T

    def read(self, times: Any, values: Any) -> tuple[Array, Array]:
        """Times and values of rows, checked: shapes (n_steps,) and (n_steps, n_nodes)."""
        sizes = {"n_nodes": self.n_nodes}
        values = as_real_array(values, "values", ("n_steps", "n_nodes"), sizes=sizes, allow_nan=True)
        return increasing_times(times, len(values)), values

    def start(self, time: float) -> FilteredProcess:
        """Return the stationary state just before a time."""
        stationary, before = self.space.stationary, float(np.nextafter(time, -np.inf))
        state = np.zeros(stationary.shape[1:])
        return FilteredProcess(self, before, state, stationary, 0.0, np.empty((0, *state.shape)))

    def filtered(self, times: Any, values: Any, smallest_open: float = SMALLEST_OPEN) -> FilteredProcess:
        """Filter rows in one pass: equation (29), or (33b) with missing values.

        Rows, shape (n_steps, n_nodes), are at increasing times, NaN where nothing was observed; empty ones are skipped.
        `smallest_open` is the smallest uncertainty by missing values that is kept, in standard deviations of states.
        """
        times, values = self.read(times, values)
        seen, _ = rows_seen(values)
        if not seen.size:
            raise ValueError("values must have a row that is not NaN; got none.")
        return self.start(times[seen[0]]).updated(times, values, smallest_open)


def increasing_times(times: Any, n_steps: int) -> Array:
    """Return the times of rows; raises ValueError unless they increase."""
    found = as_real_array(times, "times", ("n_steps",), sizes={"n_steps": n_steps})
    if np.any(np.diff(found) <= 0):
        first = int(np.argmax(np.diff(found) <= 0))
        raise ValueError(
            f"times must increase; got {found[first]} before {found[first + 1]}. "
            "Sort rows by time, and merge those of one time."
        )
    return found


def rows_seen(values: Array) -> tuple[Indices, Mask]:
    """Numbers of the rows with values, and which of them have missing values."""
    missing = np.isnan(values)
    seen = np.flatnonzero(~missing.all(axis=1))
    return seen, np.asarray(missing[seen].any(axis=1))


@dataclass(frozen=True, eq=False)
class FilteredProcess:
    """Process given past rows: its state, on which forecasts depend."""

    process: ModalProcess
    time: float  # of the last row
    state: Annotated[Array, axes("_states", "n_nodes")]
    covariance: Annotated[Array, axes("_states", "_states", "n_nodes")]
    log_likelihood: float  # of all rows
    # (n_unknown, n_states, n_modes), uncertainty by missing values: `W` of (33b)
    unknown: Annotated[Array, axes("_unknown", "_states", "n_nodes")]

    def updated(self, times: Any, rows: Any, smallest_open: float = SMALLEST_OPEN) -> FilteredProcess:
        """Update by more rows, exactly; the arguments are those of `ModalProcess.filtered`."""
        process = self.process
        times, rows = process.read(times, rows)
        seen, are_partial = rows_seen(rows)
        if seen.size and times[seen[0]] <= self.time:
            raise ValueError(f"times must be later than the last row, at {self.time}; got {times[seen[0]]}.")
        if not seen.size or len(self.unknown) or are_partial.any():
            known = self
            for row in seen:
                known, _ = known.given(float(times[row]), rows[row], smallest_open)
            return known
        filtered = Filter.after(process.space, self.time, times[seen], self.state, self.covariance)
        innovations, states = filtered.innovations(process.load(rows if seen.size == len(rows) else rows[seen]))
        value = self.log_likelihood + float(filtered.log_likelihoods(innovations).sum())
        covariance = filtered.table.filtered[-1]
        return replace(self, time=float(times[seen[-1]]), state=states[-1], covariance=covariance, log_likelihood=value)

    def one_by_one(self, times: Array, rows: Array) -> Iterator[tuple[int, FilteredProcess, Array]]:
        """Yield for each row with values its number, the state after it, and the row with imputed values."""
        known = self
        for row in rows_seen(rows)[0].tolist():
            known, filled = known.given(float(times[row]), rows[row], ROUGHLY_OPEN)
            yield row, known, filled

    def given(self, time: float, row: Array, smallest_open: float) -> tuple[FilteredProcess, Array]:
        """Update by a row with or after missing values; return the state and the row with imputed values: (33b).

        The states are ``m + W u + e``: ``e`` has a covariance by mode, as if all were observed, and ``u`` is white
        noise of the missing values. With ``y = V z`` for the row, its missing part and ``u`` are the unknowns of a
        linear regression of the innovations by mode; its residual uncertainty becomes the new ``W``.
        """
        process, space = self.process, self.process.space
        matrices, missing = space.matrices(np.array([time - self.time])), np.isnan(row)
        mean, covariance = matrices.moved(0, self.state, self.covariance)
        opened = matrices.carried(0, self.unknown)
        gains = covariance[:, space.layout.heads].sum(axis=1)
        variances = space.variances(covariance)
        scaled = gains / variances
        after = covariance - scaled[:, None] * gains
        lost = np.empty((0, space.n_modes)) if process.basis is None else process.basis[missing]
        errors = process.load(np.where(missing, 0.0, row)) - matrices.values(mean)
        lengths, n_open = errors**2 / variances + np.log(2 * np.pi * variances), len(opened)
        if not n_open + len(lost):  # modes that are missing are nodes, which know nothing of each other: they wait
            errors[missing], lengths[missing] = 0.0, 0.0
            after[:, :, missing] = covariance[:, :, missing]
            state, value = mean + scaled * errors, self.log_likelihood - 0.5 * float(lengths.sum())
            filled = np.where(missing, matrices.values(mean), row)
            return replace(self, time=time, state=state, covariance=after, log_likelihood=value), filled
        sides = np.concatenate([matrices.values(opened), -lost])
        precision = (sides / variances) @ sides.T
        precision[np.diag_indices(n_open)] += 1.0
        factor = np.linalg.cholesky(precision)
        white = solve_triangular(factor, (sides / variances) @ errors, lower=True)
        best = solve_triangular(factor, white, lower=True, trans="T")
        moved = np.concatenate([opened - scaled * sides[:n_open, None], scaled * lost[:, None]])
        left = solve_triangular(factor, moved.reshape(len(moved), -1), lower=True).reshape(moved.shape)
        state = mean + scaled * errors + np.tensordot(best, moved, 1)
        value = float(lengths.sum() - white @ white)
        value += 2 * float(np.sum(np.log(np.diag(factor)))) - missing.sum() * np.log(2 * np.pi)
        filled, unknown = row.copy(), _largest(left, after, smallest_open)
        filled[missing] = best[n_open:]
        value = self.log_likelihood - 0.5 * value
        return replace(self, time=time, state=state, covariance=after, log_likelihood=value, unknown=unknown), filled

    def forecast(self, times: Any) -> ProcessForecast:
        """Forecast rows at later times, in increasing order."""
        times = increasing_times(times, np.size(times))
        if not times.size or times[0] <= self.time:
            got = f"{times[0]}" if times.size else "none"
            raise ValueError(f"times must be later than the last row, at {self.time}; got {got}.")
        return ProcessForecast(self, times)


@dataclass(frozen=True, eq=False)
class ProcessForecast:
    """Gaussian forecasts of rows at later times, noise included."""

    known: FilteredProcess
    times: Array  # (n_times,)

    @property
    def process(self) -> ModalProcess:
        """Process of the rows."""
        return self.known.process

    @cached_property
    def modes(self) -> tuple[Array, Array, Array]:
        """Means (n_times, n_modes) and variances of the modes, and factors of the uncertainty by missing values."""
        space, line = self.process.space, Timeline.of(np.concatenate([[self.known.time], self.times]))
        matrices = space.matrices(line.gaps)
        means, variances = np.empty((2, self.times.size, space.n_modes))
        state, covariance, unknown = self.known.state, self.known.covariance, self.known.unknown
        opened = np.empty((self.times.size, len(unknown), space.n_modes))
        for step, gap in enumerate(line.which[1:]):
            state, covariance = matrices.moved(gap, state, covariance)
            unknown = matrices.carried(gap, unknown)
            means[step], variances[step] = matrices.values(state), space.variances(covariance)
            opened[step] = matrices.values(unknown)
        return means, variances, opened

    @cached_property
    def mean(self) -> Array:
        """Means, shape (n_times, n_nodes)."""
        return self.process.unload(self.modes[0])

    @cached_property
    def variance(self) -> Array:
        """Variances, shape (n_times, n_nodes)."""
        _, variances, opened = self.modes
        return self.process.node_variances(variances) + np.square(self.process.unload(opened)).sum(axis=1)

    def node_covariance(self, step: int) -> Array:
        """Covariance of the nodes at one of the times, by its number, shape (n_nodes, n_nodes)."""
        _, variances, opened = self.modes
        sides = self.process.unload(opened[step])
        return self.process.node_covariance(variances[step]) + sides.T @ sides

    def sample(self, n_samples: int, random_state: Any = None) -> Array:
        """Draw rows jointly at all times, shape (n_samples, n_times, n_nodes)."""
        random, space, known = as_generator(random_state), self.process.space, self.known
        line = Timeline.of(np.concatenate([[known.time], self.times]))
        matrices = space.matrices(line.gaps)
        roots = _roots(matrices.noises)
        shape = (n_samples, *known.state.shape)
        states = known.state + np.einsum("abj,nbj->naj", _roots(known.covariance), random.standard_normal(shape))
        states += np.tensordot(random.standard_normal((n_samples, len(known.unknown))), known.unknown, 1)
        out = np.empty((n_samples, self.times.size, space.n_modes))
        for step, gap in enumerate(line.which[1:]):
            states = matrices.carried(gap, states)
            states += np.einsum("abj,nbj->naj", roots[gap], random.standard_normal(shape))
            noise = np.sqrt(space.own) * random.standard_normal((n_samples, space.n_modes))
            out[:, step] = matrices.values(states) + noise
        return self.process.unload(out)


def _largest(directions: Array, covariance: Array, smallest: float) -> Array:
    """Principal directions of the uncertainty of states, the largest first, without negligible ones."""
    scales = np.sqrt(np.maximum(np.einsum("aaj->aj", covariance), np.finfo(float).tiny))
    shape = directions.shape
    _, sizes, turned = np.linalg.svd((directions / scales).reshape(len(directions), -1), full_matrices=False)
    kept = min(int(np.sum(sizes > smallest)), MOST_UNKNOWN)
    return (sizes[:kept, None] * turned[:kept]).reshape(kept, *shape[1:]) * scales


def _roots(covariances: Array) -> Array:
    """``R`` with ``R R^T = P`` for covariances of shape (..., n_states, n_states, n_modes), which may be singular."""
    values, vectors = np.linalg.eigh(np.moveaxis(covariances, -1, -3))
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return np.moveaxis(roots, -3, -1)


def rolling(process: ModalProcess, times: Any, values: Any, origins: Indices, horizons: Indices) -> tuple[Array, Array]:
    """Forecast rows at horizons after each origin, from all rows up to it, in one pass over the rows.

    Rows are those of `ModalProcess.filtered`. Origins are numbers of rows, and horizons are counted in rows. Means and
    variances, noise included, have shape (n_origins, n_horizons, n_nodes).
    """
    times, values = process.read(times, values)
    origins, horizons = np.asarray(origins, np.intp), np.asarray(horizons, np.intp)
    seen, are_partial = rows_seen(values)
    last = np.searchsorted(seen, origins, side="right") - 1
    if last.min() < 0 or horizons.min() < 1:
        raise ValueError("origins and horizons must point to rows after the first one seen; got earlier ones.")
    furthest = origins.max() + horizons.max()
    if furthest >= len(values):
        raise ValueError(f"origins and horizons must point to rows of values; got row {furthest} of {len(values)}.")
    space, at = process.space, times[seen[last]]
    n_known = last.max() + 1  # rows after the last origin are of no use
    seen, are_partial = seen[:n_known], are_partial[:n_known]
    if are_partial.any():  # row by row: no forecast knows of a row after its origin
        is_origin = np.zeros(n_known, bool)
        is_origin[last] = True
        steps = process.start(times[seen[0]]).one_by_one(times[seen], values[seen])
        known = [one for is_kept, (_, one, _) in zip(is_origin, steps, strict=True) if is_kept]
        states, covariances = np.array([one.state for one in known]), np.array([one.covariance for one in known])
        index, last = np.arange(len(known)), np.cumsum(is_origin)[last] - 1
        unknown = [one.unknown for one in known]
    else:
        filtered = Filter.of(space, Timeline.of(times[seen]), keeps_covariances=True)
        states, unknown = filtered.innovations(process.load(values[seen]), keep=True)[1], []
        covariances, index = filtered.table.filtered, filtered.table.row_of
    means, variances = np.empty((2, origins.size, horizons.size, process.n_nodes))
    for number, horizon in enumerate(horizons):
        gaps, which = distinct(times[origins + horizon] - at, times)
        matrices = space.matrices(gaps)
        written = matrices.written_out
        for gap in range(gaps.size):
            chosen = np.flatnonzero(which == gap)
            rows, places = np.unique(index[last[chosen]], return_inverse=True)
            moved = sandwiched(written[gap], covariances[rows]) + matrices.noises[gap]
            means[chosen, number] = process.unload(matrices.values(matrices.carried(gap, states[last[chosen]])))
            variances[chosen, number] = process.node_variances(space.variances(moved))[places]
            for one in chosen if unknown else ():
                sides = process.unload(matrices.values(matrices.carried(gap, unknown[last[one]])))
                variances[one, number] += np.square(sides).sum(axis=0)
    return means, variances


def completed_in_turn(process: ModalProcess, times: Any, values: Any) -> Array:
    """Impute missing values by their mean given the observed values and all rows before; empty rows stay."""
    times, values = process.read(times, values)
    seen, are_partial = rows_seen(values)
    filled = values.copy()
    if are_partial.any():
        for row, _, one in process.start(times[seen[0]]).one_by_one(times, values):
            filled[row] = one
    return filled


@dataclass(frozen=True, eq=False)
class ProcessNodeCovariance(NodeCovariance):
    """The modes of a process: their powers are in the rows."""

    process: ModalProcess

    @cached_property
    def basis(self) -> ExactSpectrum:  # type: ignore[override]
        """The modes, numbered, as a spectrum of no graph."""
        n_nodes = self.process.n_nodes
        numbers = np.arange(float(n_nodes))
        return ExactSpectrum(Graph.edgeless(n_nodes), "combinatorial", False, numbers, self.process.basis)

    @property
    def noise_variance(self) -> float:  # type: ignore[override]
        """Smallest own variance of the modes."""
        return float(self.process.own.min())

    def powers(self, eigenvalues: Array) -> tuple[Array, Array]:
        return np.ones(self.process.own.size), self.process.own

    def draw_own(self, n_signals: int, random_state: np.random.Generator) -> Array:
        white = random_state.standard_normal((n_signals, self.process.own.size))
        return white * np.sqrt(self.process.own - self.noise_variance)


@dataclass(frozen=True, eq=False)
class ImputedProcess:
    """Rows with imputed values, and factors of the covariance of these."""

    mean: Array  # (n_steps, n_nodes): observed values, and the mean of the rest
    deviations: Array  # (n_draws, n_steps, n_nodes), zero where observed: outer products add up to the covariance
    solutions: tuple[Array, Array | None]  # of the linear systems, from which later solves may start

    @property
    def variance(self) -> Array:
        """Variances of the missing values, by draws, shape (n_steps, n_nodes)."""
        return np.square(self.deviations).sum(axis=0)


def complete(
    process: ModalProcess,
    times: Any,
    values: Any,
    n_draws: int = 0,
    before: ImputedProcess | None = None,
    tolerance: float = 0.0,
) -> ImputedProcess:
    """Impute missing values by their mean given all observed values, noise included.

    Rows are those of `ModalProcess.filtered`. Draws estimate the covariance of the missing values. Solves start from
    those of the same rows `before`, under a similar process; a tolerance of zero is as far as rounding allows.
    """
    times, values = process.read(times, values)
    observed = ~np.isnan(values)
    first, others = (None, None) if before is None else before.solutions
    known = np.where(observed, values, 0.0)
    in_time = TimeCovariance(times, process.components, process.powers, process.rates)
    covariance = ModalCovariance(in_time, ProcessNodeCovariance(process))
    seen = PartialObservations(covariance, known, observed, tolerance=tolerance, always_iterates=True)
    mean, solution = seen.completed(known, first, tolerance)
    if n_draws == 0:
        return ImputedProcess(mean, np.empty((0, *mean.shape)), (solution, None))
    draws, solved = seen.draws(n_draws, np.random.default_rng(COMPLETION_SEED), others, tolerance)
    return ImputedProcess(mean, draws / np.sqrt(n_draws), (solution, solved))
