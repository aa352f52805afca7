"""Signals that follow one another in time: rows by filters, at a cost that is linear in the number of signals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spectralgp._basics.arrays import without_caches
from spectralgp._basics.checks import Array, Indices
from spectralgp.fields.factors import Left, PowersOfEigenvalues, Rows
from spectralgp.kernels import NewInputs
from spectralgp.spectra import Filters
from spectralgp.states import Component, Filter, Matern, StateSpace, Timeline

LEAST_OWN = 1e-10  # of the power, what each signal has for itself in draws: less is lost in rounding
MOST_FILTERS = 2  # that rows remember
MOST_POINTS = 256  # new inputs whose variances are found at a time


@dataclass(frozen=True, eq=False)
class InTime(Rows):
    """``K_j`` is a sum of components over times: solved with by the filters of equations (29) to (31).

    Coordinates are the signals in the order of time, in which filters run.
    """

    moments: Array  # times of the signals, in any order; some may be equal
    components: tuple[Component, ...]
    shares: Array  # of the power, by component, shape (n_components, n_modes), or (n_components, 1) for all modes
    rates: Array  # of the same shape

    __getstate__ = without_caches

    @property
    def n_signals(self) -> int:
        return self.moments.size

    @cached_property
    def order(self) -> Indices:
        """The signals by time."""
        return np.argsort(self.moments, kind="stable")

    @cached_property
    def _places(self) -> Indices:
        return np.argsort(self.order)

    @cached_property
    def timeline(self) -> Timeline:
        """The times in order."""
        return Timeline.of(self.moments[self.order])

    @cached_property
    def _filters(self) -> dict[bytes, Filter]:
        return {}

    def filter(self, power: Array, own: Array) -> Filter:
        """Filters at modes; the last ones are remembered."""
        key = power.tobytes() + own.tobytes()
        if key not in self._filters:
            while len(self._filters) >= MOST_FILTERS:
                del self._filters[next(iter(self._filters))]
            rates = np.broadcast_to(self.rates, (len(self.components), power.size))
            space = StateSpace(self.components, np.maximum(power, 0.0) * self.shares, rates, own)
            self._filters[key] = Filter.of(space, self.timeline, keeps_covariances=True)
        return self._filters[key]

    def load(self, signals: Array) -> Array:
        return signals[..., self.order, :]

    def unload(self, coordinates: Array) -> Array:
        return coordinates[..., self._places, :]

    def apply(self, coordinates: Array, power: Array, own: Array, exponent: float = 1.0) -> Array:
        if coordinates.ndim > 2:
            return np.stack([self.apply(one, power, own, exponent) for one in coordinates])
        if exponent == 0.5:  # a root need not be finer than draws
            own = np.maximum(own, LEAST_OWN * power * self.shares.sum(axis=0) + np.finfo(float).tiny)
        found = self.filter(power, own)
        verbs = {1.0: found.times, -1.0: found.solve, 0.5: found.drawn, -0.5: found.whitened}
        return verbs[exponent](coordinates)

    def log_determinants(self, power: Array, own: Array) -> Array:
        return self.filter(power, own).log_determinants

    def column(self, signal: int, power: Array, own: Array, inverse: bool = False) -> Array:
        unit = np.zeros((self.n_signals, power.size))
        unit[self._places[signal]] = 1.0
        return self.unload(self.apply(unit, power, own, -1.0 if inverse else 1.0))

    def diagonal(self, power: Array, own: Array, inverse: bool = False) -> Array:
        if inverse:
            return self.unload(self.filter(power, own).inverse_diagonal())
        return np.broadcast_to(power * self.shares.sum(axis=0) + own, (self.n_signals, power.size)).copy()

    def at(self, new: NewInputs, powers: PowersOfEigenvalues) -> LeftInTime:
        return LeftInTime(self, new, powers)

    def joined(self, new: NewInputs) -> InTime:
        assert new.inputs is not None  # times are features
        return replace(self, moments=np.concatenate([self.moments, new.inputs[:, 0]]))


@dataclass(frozen=True, eq=False)
class LeftInTime(Left, Filters):
    """Forecasts, and what is between known signals."""

    known: InTime
    new: NewInputs
    powers: PowersOfEigenvalues

    @cached_property
    def _cross(self) -> Array:
        """Covariances with the known signals in the order of time, shape (n_inputs, n_signals)."""
        return self.new.cross[:, self.known.order]

    @property
    def reach(self) -> Filters:
        """``gamma k(x*, X) C^-1``."""
        return self

    def apply(self, coefficients: Array, eigenvalues: Array) -> Array:
        power, own = self.powers(eigenvalues)
        return power * (self._cross @ self.known.apply(coefficients, power, own, -1.0))

    def matrices(self, eigenvalues: Array) -> Array:
        power, own = self.powers(eigenvalues)
        columns = np.broadcast_to(self._cross[:, :, None], (*self._cross.shape, power.size))
        return power * np.stack([self.known.apply(column, power, own, -1.0) for column in columns])

    def covariances(self, eigenvalues: Array) -> Array:
        power = self.powers(eigenvalues)[0][:, None, None]
        explained = np.stack([one.T @ self._cross.T for one in self.matrices(eigenvalues)])  # (n_inputs, j, n_inputs)
        return power * (self.new.covariance - explained.transpose(1, 0, 2))

    def variances(self, eigenvalues: Array) -> Array:
        """By the states just before and after each new time, equation (31): ``h^T (P - P N P) h``."""
        power, own = self.powers(eigenvalues)
        found = self.known.filter(power, own)
        assert self.new.inputs is not None  # times are features
        times = self.new.inputs[:, 0]
        parts = [found.between(times[start : start + MOST_POINTS]) for start in range(0, times.size, MOST_POINTS)]
        return np.maximum(np.concatenate([np.empty((0, power.size)), *parts]), 0.0)  # removes rounding


def rows_in_time(moments: Array, terms: Any) -> InTime:
    """Rows of a sum of Matern kernels of one column, given as (variance, smoothness, rate)."""
    variances, smoothness, rates = zip(*terms, strict=True)
    return InTime(
        moments, tuple(Matern(one) for one in smoothness), np.array(variances)[:, None], np.array(rates)[:, None]
    )
