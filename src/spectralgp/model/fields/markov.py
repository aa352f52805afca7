"""Covariances of signals in time, by filters at a cost linear in the number of signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import ClassVar

import numpy as np

from spectralgp._basics.arrays import without_caches
from spectralgp._basics.checks import Array, Indices
from spectralgp.model.fields.factors import PosteriorRows, PowersOfEigenvalues, RowCovariance
from spectralgp.model.kernels import GraphKernel, NewInputs, power_jacobians
from spectralgp.model.kernels.inputs import MaternTerm
from spectralgp.model.spectra import LikelihoodErrors
from spectralgp.model.statespace import Component, Filter, MaternComponent, StateSpace, Timeline, evaluate, information

FEWEST_IN_TIME = 200  # signals, from which on filters are cheaper than an eigendecomposition
LEAST_OWN = 1e-10  # own variance of a signal in draws, as a share of the power: less is lost in rounding
MOST_FILTERS = 2  # in the cache
MOST_POINTS = 256  # new inputs whose variances are found at a time


@dataclass(frozen=True, eq=False)
class TimeCovariance(RowCovariance):
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
    def timeline(self) -> Timeline:
        """The times in order."""
        return Timeline.of(self.moments[self.order])

    @cached_property
    def _filters(self) -> dict[bytes, Filter]:
        return {}

    def filter(self, power: Array, own: Array) -> Filter:
        """Filter at given powers; the last ones are cached."""
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
        return coordinates[..., np.argsort(self.order), :]

    def apply(self, coordinates: Array, power: Array, own: Array, exponent: float = 1.0) -> Array:
        if coordinates.ndim > 2:
            sets = [self.apply(one, power, own, exponent) for one in coordinates]
            return np.array(sets).reshape(coordinates.shape)
        if exponent == 0.5:  # a root need not be finer than draws
            own = np.maximum(own, LEAST_OWN * power * self.shares.sum(axis=0) + np.finfo(float).tiny)
        found = self.filter(power, own)
        verbs = {1.0: found.times, -1.0: found.solve, 0.5: found.drawn, -0.5: found.whitened}
        return verbs[exponent](coordinates)

    def log_determinants(self, power: Array, own: Array) -> Array:
        return self.filter(power, own).log_determinants

    def diagonal(self, power: Array, own: Array, exponent: float = 1.0) -> Array:
        if exponent == -1.0:
            return self.unload(self.filter(power, own).inverse_diagonal())
        return np.broadcast_to(power * self.shares.sum(axis=0) + own, (self.n_signals, power.size)).copy()

    def at(self, new: NewInputs, powers: PowersOfEigenvalues) -> PosteriorTimeRows:
        return PosteriorTimeRows(self, new, powers)

    def joined(self, new: NewInputs) -> TimeCovariance:
        assert new.inputs is not None  # times are features
        return replace(self, moments=np.concatenate([self.moments, new.inputs[:, 0]]))


@dataclass(frozen=True, eq=False)
class PosteriorTimeRows(PosteriorRows):
    """Posterior of signals at new times, before, between and after the known ones."""

    known: TimeCovariance
    new: NewInputs
    powers: PowersOfEigenvalues

    @cached_property
    def _cross(self) -> Array:
        """Covariances with the known signals in the order of time, shape (n_inputs, n_signals)."""
        return self.new.cross[:, self.known.order]

    def apply(self, coefficients: Array, eigenvalues: Array) -> Array:
        """``gamma k(x*, X) C^-1`` times the known signals."""
        power, own = self.powers(eigenvalues)
        return power * (self._cross @ self.known.apply(coefficients, power, own, -1.0))

    def matrices(self, eigenvalues: Array) -> Array:
        power, own = self.powers(eigenvalues)
        columns = np.broadcast_to(self._cross[:, :, None], (*self._cross.shape, power.size))
        return power * self.known.apply(columns, power, own, -1.0)

    def covariances(self, eigenvalues: Array) -> Array:
        power = self.powers(eigenvalues)[0][:, None, None]
        explained = np.einsum("anj,bn->jab", self.matrices(eigenvalues), self._cross, optimize=True)
        return power * (self.new.covariance - explained)

    def variances(self, eigenvalues: Array) -> Array:
        """By the states just before and after each new time, equation (31): ``h^T (P - P N P) h``."""
        power, own = self.powers(eigenvalues)
        found = self.known.filter(power, own)
        assert self.new.inputs is not None  # times are features
        times = self.new.inputs[:, 0]
        parts = [found.between(times[start : start + MOST_POINTS]) for start in range(0, times.size, MOST_POINTS)]
        return np.maximum(np.concatenate([np.empty((0, power.size)), *parts]), 0.0)  # removes rounding


def are_in_time(inputs: Array, scales: Array | None) -> bool:
    """Return whether signals under Matern kernels are so numerous that filters are cheaper."""
    return len(inputs) >= FEWEST_IN_TIME and scales is None


def rows_in_time(moments: Array, terms: Sequence[MaternTerm]) -> TimeCovariance:
    """Covariance of signals under a sum of Matern kernels of one column."""
    shares, rates = np.array([[term.variance, term.rate] for term in terms]).T[:, :, None]
    return TimeCovariance(moments, tuple(MaternComponent(term.smoothness) for term in terms), shares, rates)


@singledispatch
def process_rows(kernel: GraphKernel, eigenvalues: Array, times: Array) -> TimeCovariance | None:
    """Covariance of rows that the graph kernel itself relates, by their times (n, 1); None for all other kernels."""
    return None


@singledispatch
def state_space(
    kernel: GraphKernel, eigenvalues: Array, noise_variance: float, terms: Sequence[MaternTerm], n_inputs: int
) -> tuple[StateSpace, Array]:
    """State space of signals in time, and its Jacobian in the parameters of the graph kernel and the input kernel.

    `terms` are those of the input kernel, which has `n_inputs` parameters. The Jacobian, of powers, rates and own
    variances, has shape (2 n_components + 1, n_modes, n_parameters).
    """
    power, own = kernel.power(eigenvalues), kernel.residual_power(eigenvalues) + noise_variance
    signal, *residual = power_jacobians(kernel, eigenvalues) or ()
    n, n_graph = len(terms), kernel.theta.size
    jacobian = np.zeros((2 * n + 1, eigenvalues.size, n_graph + n_inputs))
    jacobian[-1, :, signal.shape[1] : n_graph] = np.hstack([np.empty((eigenvalues.size, 0)), *residual])
    for number, term in enumerate(terms):
        jacobian[number, :, : signal.shape[1]] = term.variance * signal
        for place in term.of_variance:
            jacobian[number, :, n_graph + place] = term.variance * power
        for place in term.of_length:
            jacobian[n + number, :, n_graph + place] = -term.rate
    shares, rates = np.array([[term.variance, term.rate] for term in terms]).T[:, :, None]
    components = tuple(MaternComponent(term.smoothness) for term in terms)
    return StateSpace(components, np.maximum(power, 0.0) * shares, rates + np.zeros(eigenvalues.size), own), jacobian


@dataclass(frozen=True, eq=False)
class TimeEvidence:
    """Log marginal likelihood of signals in the order of time, with its derivatives: equation (30).

    Coefficients are those of the signals and of factors of the covariance of missing values: outer products add up.
    """

    space: StateSpace
    jacobian: Array  # of powers, rates and own variances in all parameters: (2 n_components + 1, n_modes, n_parameters)
    timeline: Timeline
    coefficients: Sequence[Array]
    errors: ClassVar[LikelihoodErrors] = LikelihoodErrors()  # none

    @cached_property
    def _evaluated(self) -> tuple[Array, Array]:
        return evaluate(self.space, self.timeline, self.coefficients)

    @property
    def log_likelihood(self) -> float:
        """Total in nats, the 2 pi term included."""
        return float(self._evaluated[0].sum())

    @property
    def gradient(self) -> Array:
        """Gradient in all parameters."""
        return np.tensordot(self._evaluated[1], self.jacobian, 2)

    def information(self, further: float = 0.0) -> Array:
        """Fisher information of all parameters, equation (33), if values had a `further` white variance."""
        space = replace(self.space, own=self.space.own + further) if further else self.space
        local = information(space, self.timeline)
        return np.einsum("lja,lkj,kjb->ab", self.jacobian, local, self.jacobian, optimize=True)
