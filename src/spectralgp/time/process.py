"""A process in time on nodes, as a sum of components at every mode: filtered, forecast and updated, all exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spectralgp._basics.arrays import as_generator, without_caches
from spectralgp._basics.checks import Array, Indices, as_real_array
from spectralgp.states import Component, Filter, StateSpace, Timeline, distinct

PARTIAL = "Fill in values that are missing first, or make them NaN in all of the row, which is then skipped."


@dataclass(frozen=True, eq=False)
class ModalProcess:
    """Components by mode, and what each value has for itself: equation (27) with its parameters written out.

    Modes are the graph's frequencies, or the nodes themselves where there is no basis.
    """

    components: tuple[Component, ...]
    powers: Array  # (n_components, n_modes), not negative
    rates: Array  # (n_components, n_modes), positive, per unit of time
    own: Array  # (n_modes,), the residual and the noise
    basis: Array | None  # (n_nodes, n_modes), orthonormal

    __getstate__ = without_caches

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.own.size if self.basis is None else len(self.basis)

    @cached_property
    def space(self) -> StateSpace:
        """What filters run on."""
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
        values = as_real_array(
            values, "values", ("n_steps", "n_nodes"), sizes={"n_nodes": self.n_nodes}, allow_nan=True
        )
        return as_times(times, len(values)), values

    def filtered(self, times: Any, values: Any) -> Filtered:
        """What rows say of the future: one pass over them, equation (29).

        Parameters
        ----------
        times : array of shape (n_steps,)
            Times of the rows, increasing.
        values : array of shape (n_steps, n_nodes)
            Complete rows; rows of NaN are skipped.
        """
        times, values = self.read(times, values)
        seen = complete_rows(values)
        if not seen.size:
            raise ValueError("values must have a row that is not NaN; got none.")
        start = Filter.of(self.space, Timeline.of(times[seen]))
        return _after(self, start, times, values, seen, 0.0)


def as_times(times: Any, n_steps: int) -> Array:
    """Times that increase, one per row."""
    found = as_real_array(times, "times", ("n_steps",), sizes={"n_steps": n_steps})
    if np.any(np.diff(found) <= 0):
        first = int(np.argmax(np.diff(found) <= 0))
        raise ValueError(
            f"times must increase; got {found[first]} before {found[first + 1]}. "
            "Sort rows by time, and merge those of one time."
        )
    return found


def complete_rows(values: Array) -> Indices:
    """Numbers of the rows that are there; a row that is there in part is refused."""
    missing = np.isnan(values)
    there = ~missing.all(axis=1)
    if missing[there].any():
        row = int(np.flatnonzero(missing.any(axis=1) & there)[0])
        raise ValueError(
            f"values must have complete rows; got {int(missing[row].sum())} of {missing.shape[1]} missing in row {row}."
            f" {PARTIAL}"
        )
    return np.flatnonzero(there)


def _after(
    process: ModalProcess, start: Filter, times: Array, values: Array, seen: Indices, log_likelihood: float
) -> Filtered:
    """A filter after its rows."""
    every = seen.size == len(values)
    innovations, states = start.innovations(process.load(values if every else values[seen]))
    log_likelihood += float(start.log_likelihoods(innovations).sum())
    variances = start.variances
    if not every:
        innovations, variances = (_spread(part, seen, len(values)) for part in (innovations, variances))
    return Filtered(
        process, float(times[seen[-1]]), states[-1], start.table[2][-1], log_likelihood, innovations, variances
    )


def _spread(part: Array, seen: Indices, n_rows: int) -> Array:
    """Rows at their places among all, NaN elsewhere."""
    out = np.full((n_rows, part.shape[1]), np.nan)
    out[seen] = part
    return out


@dataclass(frozen=True, eq=False)
class Filtered:
    """A process that has seen rows: all that the future needs, and what the last rows to come in showed."""

    process: ModalProcess
    time: float  # of the last row
    state: Array  # (n_states, n_modes)
    covariance: Array  # (n_states, n_states, n_modes)
    log_likelihood: float  # of all rows
    innovations: Array  # (n_steps, n_modes), of the rows that the last call brought; NaN where a row was skipped
    innovation_variances: Array  # (n_steps, n_modes)

    def _started(self, times: Array) -> Filter:
        if times[0] <= self.time:
            raise ValueError(f"times must be later than the last row, at {self.time}; got {times[0]}.")
        return Filter.after(self.process.space, self.time, times, self.state, self.covariance)

    def updated(self, times: Any, rows: Any) -> Filtered:
        """The same after more rows, exactly; innovations are those of the new rows.

        Parameters
        ----------
        times : array of shape (n_steps,)
            Times of the rows, later than those seen.
        rows : array of shape (n_steps, n_nodes)
            Complete rows; rows of NaN are skipped.
        """
        times, rows = self.process.read(times, rows)
        seen = complete_rows(rows)
        if not seen.size:
            nothing = np.full((len(rows), self.process.own.size), np.nan)
            return replace(self, innovations=nothing, innovation_variances=nothing)
        return _after(self.process, self._started(times[seen]), times, rows, seen, self.log_likelihood)

    def log_densities(self, times: Any, rows: Any) -> Array:
        """Log density of each row given all before it, its nodes together, shape (n_steps,); NaN if it is skipped."""
        after = self.updated(times, rows)
        squares = np.square(after.innovations) / after.innovation_variances
        return -0.5 * (squares + np.log(2 * np.pi * after.innovation_variances)).sum(axis=1)

    def forecast(self, times: Any) -> Forecast:
        """What is known of rows at later times, in increasing order."""
        times = as_times(times, np.size(times))
        if not times.size or times[0] <= self.time:
            got = f"{times[0]}" if times.size else "none"
            raise ValueError(f"times must be later than the last row, at {self.time}; got {got}.")
        return Forecast(self, times)


@dataclass(frozen=True, eq=False)
class Forecast:
    """Gaussian laws of rows at later times, noise included."""

    known: Filtered
    times: Array  # (n_times,)

    @property
    def process(self) -> ModalProcess:
        """Whose rows these are."""
        return self.known.process

    @cached_property
    def _states(self) -> tuple[Array, Array]:
        """Means (n_times, n_modes) and variances of the modes."""
        space, line = self.process.space, Timeline.of(np.concatenate([[self.known.time], self.times]))
        matrices = space.matrices(line.gaps)
        means, variances = np.empty((2, self.times.size, space.n_modes))
        state, covariance = self.known.state, self.known.covariance
        for step, gap in enumerate(line.which[1:]):
            state, covariance = space.moved(matrices, gap, state, covariance)
            means[step], variances[step] = space.values(state), space.variances(covariance)
        return means, variances

    @cached_property
    def mean(self) -> Array:
        """Means, shape (n_times, n_nodes)."""
        return self.process.unload(self._states[0])

    @cached_property
    def variance(self) -> Array:
        """Variances, shape (n_times, n_nodes)."""
        return self.process.node_variances(self._states[1])

    def node_covariance(self, step: int) -> Array:
        """Covariance of the nodes at one of the times, by its number, shape (n_nodes, n_nodes)."""
        return self.process.node_covariance(self._states[1][step])

    def log_density(self, rows: Any) -> Array:
        """Log density of a row at each time, its nodes together but alone among the rows, shape (n_times,)."""
        rows = as_real_array(
            rows, "rows", ("n_times", "n_nodes"), sizes={"n_times": self.times.size, "n_nodes": self.process.n_nodes}
        )
        means, variances = self._states
        errors = self.process.load(rows) - means
        return -0.5 * (np.square(errors) / variances + np.log(2 * np.pi * variances)).sum(axis=1)

    def sample(self, n_samples: int, random_state: Any = None) -> Array:
        """Rows at all times together, drawn n times, shape (n_samples, n_times, n_nodes)."""
        random, space = as_generator(random_state), self.process.space
        line = Timeline.of(np.concatenate([[self.known.time], self.times]))
        matrices = space.matrices(line.gaps)
        roots = _roots(matrices.noises)
        shape = (n_samples, *self.known.state.shape)
        states = self.known.state + _spread_by(_roots(self.known.covariance), random.standard_normal(shape))
        out = np.empty((n_samples, self.times.size, space.n_modes))
        for step, gap in enumerate(line.which[1:]):
            states = space.moved(matrices, gap, states, self.known.covariance)[0]
            states += _spread_by(roots[gap], random.standard_normal(shape))
            noise = np.sqrt(space.own) * random.standard_normal((n_samples, space.n_modes))
            out[:, step] = space.values(states) + noise
        return self.process.unload(out)


def _roots(covariances: Array) -> Array:
    """``R`` with ``R R^T = P`` for covariances of shape (..., n_states, n_states, n_modes), which may be singular."""
    values, vectors = np.linalg.eigh(np.moveaxis(covariances, -1, -3))
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return np.moveaxis(roots, -3, -1)


def _spread_by(roots: Array, white: Array) -> Array:
    return np.einsum("abj,nbj->naj", roots, white)


def rolling(process: ModalProcess, times: Any, values: Any, origins: Indices, horizons: Indices) -> tuple[Array, Array]:
    """Forecasts of rows some steps after each origin, from all rows up to it, by one pass over the rows.

    Parameters
    ----------
    process : ModalProcess
        What the rows follow.
    times : array of shape (n_steps,)
        Times of the rows, increasing.
    values : array of shape (n_steps, n_nodes)
        Complete rows; rows of NaN are skipped.
    origins : array of shape (n_origins,)
        Numbers of the last rows that forecasts know of.
    horizons : array of shape (n_horizons,)
        How many rows after its origin a row to be forecast is.

    Returns
    -------
    means, variances : ndarray of shape (n_origins, n_horizons, n_nodes)
        Noise is included.
    """
    times, values = process.read(times, values)
    origins, horizons = np.asarray(origins, np.intp), np.asarray(horizons, np.intp)
    seen = complete_rows(values)
    last = np.searchsorted(seen, origins, side="right") - 1
    if np.min(last, initial=0) < 0 or np.min(horizons, initial=1) < 1:
        raise ValueError("origins and horizons must point to rows after the first one seen; got earlier ones.")
    if origins.max(initial=0) + horizons.max(initial=0) >= len(values):
        raise ValueError(
            f"origins and horizons must point to rows of values; got row "
            f"{origins.max(initial=0) + horizons.max(initial=0)} of {len(values)}."
        )
    space = process.space
    start = Filter.of(space, Timeline.of(times[seen]), keeps_covariances=True)
    coordinates = process.load(values[seen[: last.max(initial=-1) + 1]] if seen.size < len(values) else values)
    states, table, index = start.innovations(coordinates, keep=True)[1], start.table[2], start.table[3]
    means, variances = np.empty((2, origins.size, horizons.size, process.n_nodes))
    for number, horizon in enumerate(horizons):
        gaps, which = distinct(times[origins + horizon] - times[seen[last]], times)
        matrices = space.matrices(gaps)
        for gap in range(gaps.size):
            of_gap = np.flatnonzero(which == gap)
            for row in np.unique(index[last[of_gap]]):
                chosen = of_gap[index[last[of_gap]] == row]
                mean, covariance = space.moved(matrices, gap, states[last[chosen]], table[row])
                means[chosen, number] = process.unload(space.values(mean))
                variances[chosen, number] = process.node_variances(space.variances(covariance))
    return means, variances
