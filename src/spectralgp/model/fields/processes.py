"""Signals in time: covariances by filters at a cost linear in their number, and kernels of processes: equation (27)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.arrays import without_caches
from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.saved import UNSAVED, Positive, ge
from spectralgp.model.fields.factors import PosteriorRows, PowersOfEigenvalues, RowCovariance
from spectralgp.model.kernels import GraphKernel, Identity, KernelSearch, NewInputs, SpectralKernel, power_jacobians
from spectralgp.model.kernels.base import SIGNAL_SHARE, CombinedKernel, CombinedSearch, LogPrior, joint_prior
from spectralgp.model.kernels.inputs import MaternTerm
from spectralgp.model.spectra import LikelihoodErrors, Spectrum, mean_over_nodes
from spectralgp.model.statespace import Component, Filter, MaternComponent, StateSpace, Timeline, evaluate, information

FEWEST_IN_TIME = 200  # signals, from which on filters are cheaper than an eigendecomposition
LEAST_OWN = 1e-10  # own variance of a signal in draws, as a share of the power: less is lost in rounding
MOST_FILTERS = 2  # in the cache
MOST_POINTS = 256  # new inputs whose variances are found at a time
LEAST_RATE = 0.01  # over the span: a slower process cannot be told from a constant
FIRST_TURNS = 5.0  # periods that an oscillator keeps its phase for, where searches start and priors are centred
PERIOD_SPREAD = 1.5  # standard deviation of the log rate of an oscillator
RANGE_SPREADS = 3.0  # standard deviations of a log rate between one over the span and one over the step
LEAST_SPREAD = 1.0  # of a log rate
SHIFTS = (0.25, -0.25, 0.0)  # of the first rates, as shares of that range: one search from each


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


@dataclass(frozen=True, eq=False)
class RatePriors:
    """Normal priors of log rates, by the time scales that a series can resolve: from one step to the whole span."""

    centres: Array  # (n_components,)
    spreads: Array  # (n_components,), standard deviations
    shifts: Array  # (n_components,), distance between starts; zero for oscillators
    least: float  # rate

    @classmethod
    def of(cls, components: Sequence[Component], timeline: Timeline) -> RatePriors:
        """Matern processes share out the range from fast to slow; oscillators keep their phase for a few periods."""
        span = float(timeline.times[-1] - timeline.times[0])
        step = float(np.median(np.diff(timeline.times)))
        reach = max(float(np.log(span / step)), LEAST_SPREAD)
        drifting = [component.angles.size == 0 for component in components]
        places = np.cumsum(drifting) / (1 + sum(drifting))  # from fast to slow
        centres = -np.log(step) - reach * places
        spreads = np.full(len(components), max(reach / RANGE_SPREADS, LEAST_SPREAD))
        for number, component in enumerate(components):
            if component.angles.size:
                centres[number] = np.log(max(component.angles[0] / (2 * np.pi * FIRST_TURNS), 1 / span))
                spreads[number] = PERIOD_SPREAD
        return cls(centres, spreads, reach * np.array(drifting), LEAST_RATE / span)


@dataclass(frozen=True, kw_only=True)
class ProcessKernel(CombinedKernel):
    """A sum of components in time with a power and a rate at each frequency, and a residual of each row: equation (27).

    `kernels` are the powers of the components, their rates above the least one, and the residual if there is one. The
    kernel itself says how rows at several times covary, so that no input kernel does. Made by `ProcessKernel.open`.
    """

    components: Annotated[tuple[Component, ...], ge(1)]
    least_rate: Positive
    priors: Annotated[RatePriors | None, UNSAVED] = None  # for learning

    __getstate__ = without_caches

    @classmethod
    def open(
        cls,
        components: Sequence[Component],
        power: GraphKernel,
        rate: GraphKernel | None,
        residual: GraphKernel | None,
        priors: RatePriors,
    ) -> ProcessKernel:
        """Kernel to learn: `power` for each component, `rate` for each that does not oscillate, or one number each."""
        if not components:
            raise ValueError("components must hold at least one component; got none.")
        for kernel in (power, rate, residual):
            if kernel is not None and power_jacobians(kernel, np.zeros(1)) is None:
                raise ValueError(f"power, rate and residual must be functions on the spectrum; got {kernel!r}.")
        by_frequency = Identity() if rate is None else rate
        rates = [Identity() if component.angles.size else by_frequency for component in components]
        parts: list[Any] = [*[power] * len(components), *rates, *([] if residual is None else [residual])]
        return cls.of(*parts, components=tuple(components), least_rate=priors.least, priors=priors)

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.components)

    @property
    def powers(self) -> tuple[SpectralKernel, ...]:
        """Variance of each component by frequency."""
        return self.kernels[: self.n_components]

    @property
    def rates(self) -> tuple[SpectralKernel, ...]:
        """Rate of each component above the least one, by frequency."""
        return self.kernels[self.n_components : 2 * self.n_components]

    @property
    def residual(self) -> SpectralKernel | None:  # type: ignore[override]
        """Variance of the residual of each row by frequency."""
        return self.kernels[-1] if len(self.kernels) > 2 * self.n_components else None

    def chosen(self, numbers: Sequence[int]) -> ProcessKernel:
        """Kernel of some of the components."""
        of_both = [part[number] for part in (self.powers, self.rates) for number in numbers]
        return replace(
            self,
            kernels=(*of_both, *self.kernels[2 * self.n_components :]),
            components=tuple(self.components[number] for number in numbers),
            priors=None,  # which depend on all components
        )

    def search(self) -> ProcessSearch:
        return self._search

    @cached_property
    def _search(self) -> ProcessSearch:
        parts = tuple(kernel.search() for kernel in self.kernels)
        return ProcessSearch(self, is_given=any(part.is_given for part in parts), parts=parts)

    def power(self, eigenvalues: ArrayLike) -> Array:
        return np.sum([kernel.power(eigenvalues) for kernel in self.powers], axis=0)

    def residual_power(self, eigenvalues: ArrayLike) -> Array:
        return np.zeros(np.shape(eigenvalues)) if self.residual is None else self.residual.power(eigenvalues)

    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        own = [kernel.power_jacobian(eigenvalues) for kernel in self.powers]
        n_others = sum(kernel.theta.size for kernel in self.kernels[self.n_components :])
        return np.hstack([*own, np.zeros((np.size(eigenvalues), n_others))])

    def scaled_by(self, factor: float) -> Self:
        n, rates = self.n_components, self.rates
        scaled = [kernel.scaled_by(factor) for kernel in self.kernels]
        return replace(self, kernels=(*scaled[:n], *rates, *scaled[2 * n :]))

    def space(self, eigenvalues: Array, noise_variance: float) -> StateSpace:
        """State space at frequencies, with white noise."""
        powers = np.array([kernel.power(eigenvalues) for kernel in self.powers])
        rates = self.least_rate + np.array([kernel.power(eigenvalues) for kernel in self.rates])
        return StateSpace(self.components, powers, rates, self.residual_power(eigenvalues) + noise_variance)

    def rows(self, eigenvalues: Array, times: Array) -> TimeCovariance:
        """Covariance of rows at times (n, 1)."""
        space, total = self.space(eigenvalues, 0.0), self.power(eigenvalues)
        shares = np.divide(space.powers, total, out=np.zeros(space.powers.shape), where=total > 0)
        return TimeCovariance(times[:, 0], self.components, shares, space.rates)

    @property
    def label(self) -> str:
        return f"{self.n_components} components, {self.powers[0].label}"


class ProcessSearch(CombinedSearch):
    """Search space of powers, rates and a residual: powers grow in complexity first, then rates."""

    kernel: ProcessKernel

    @property
    def parameter_names(self) -> tuple[str, ...]:
        numbers = range(self.kernel.n_components)
        words = [f"{what} {number}" for what in ("power", "rate") for number in numbers] + ["residual"]
        return tuple(
            f"{word}: {name}" for word, own in zip(words, self.parts, strict=False) for name in own.parameter_names
        )

    def path(self) -> tuple[GraphKernel, ...]:
        n, paths = self.kernel.n_components, [part.path() for part in self.parts]

        def form(of_power: int, of_rate: int) -> ProcessKernel:
            turns = [*[of_power] * n, *[of_rate] * n, *[of_power] * (len(paths) - 2 * n)]
            kernels: Any = tuple(path[min(turn, len(path) - 1)] for path, turn in zip(paths, turns, strict=True))
            return replace(self.kernel, kernels=kernels)

        n_powers, n_rates = (max(map(len, part)) for part in (paths[:n] + paths[2 * n :], paths[n : 2 * n]))
        grown = [form(turn, 0) for turn in range(n_powers)] + [form(n_powers - 1, turn) for turn in range(1, n_rates)]
        return tuple(grown)

    @property
    def priors(self) -> RatePriors:
        """Priors of the rates, which all kernels have that are learnt."""
        assert self.kernel.priors is not None
        return self.kernel.priors

    def _by_scale(self, variance: float, shift: float = 0.0, share: float = 1.0) -> list[tuple[KernelSearch, float]]:
        """Each search space with its scale: variances, or typical rates, shifted and divided by a share."""
        n, rates = self.kernel.n_components, np.exp(self.priors.centres + shift * self.priors.shifts) / share
        scales = [*[variance] * n, *rates.tolist(), *[variance] * (len(self.parts) - 2 * n)]
        return list(zip(self.parts, scales, strict=True))

    def bounds(self, variance: float) -> Array:
        return np.vstack([part.bounds(scale) for part, scale in self._by_scale(variance)])

    def theta_units(self, variance: float) -> Array:
        return np.concatenate([part.theta_units(scale) for part, scale in self._by_scale(variance)])

    def starting_points(self, spectrum: Spectrum, variance: float) -> list[Array]:
        """Constant filters, at rates faster and slower than typical ones, and last at these."""
        equal = variance / (len(self.parts) - self.kernel.n_components)
        by_shift = [self._by_scale(equal, shift, SIGNAL_SHARE) for shift in SHIFTS]
        return [
            np.concatenate([part.starting_points(spectrum, scale)[-1] for part, scale in pairs]) for pairs in by_shift
        ]

    def log_prior(self, spectrum: Spectrum, noise_variance: float) -> LogPrior:
        n = self.kernel.n_components
        rates = [self._rate_prior(spectrum, number) for number in range(n)]
        powers = [part.log_prior(spectrum, noise_variance) for part in self.parts[:n] + self.parts[2 * n :]]
        return joint_prior([*powers[:n], *rates, *powers[n:]])

    def _rate_prior(self, spectrum: Spectrum, number: int) -> LogPrior:
        """Prior of the parameters of a rate, and of the log of its mean."""
        kernel, place = self.kernel, self.kernel.n_components + number
        rate, own = kernel.kernels[place], self.parts[place].log_prior(spectrum, kernel.least_rate)
        mean = kernel.least_rate + float(mean_over_nodes(spectrum, rate.power(spectrum.eigenvalues)))
        spread = self.priors.spreads[number]
        deviation = float(np.log(mean) - self.priors.centres[number]) / spread
        direction = mean_over_nodes(spectrum, rate.power_jacobian(spectrum.eigenvalues)) / (mean * spread)
        slope, precision = own.slope - deviation * direction, own.precision + np.outer(direction, direction)
        return LogPrior(own.value - 0.5 * deviation**2, slope, 0.0, precision)


def state_space(
    kernel: GraphKernel, eigenvalues: Array, noise_variance: float, terms: Sequence[MaternTerm], n_inputs: int
) -> tuple[StateSpace, Array]:
    """State space of signals in time, and its Jacobian in the parameters of the graph kernel and the input kernel.

    `terms` are those of the input kernel, which has `n_inputs` parameters. The Jacobian, of powers, rates and own
    variances, has shape (2 n_components + 1, n_modes, n_parameters).
    """
    if isinstance(kernel, ProcessKernel):
        jacobian = np.zeros((2 * kernel.n_components + 1, eigenvalues.size, kernel.theta.size + n_inputs))
        for number, (part, columns) in enumerate(zip(kernel.kernels, kernel.places, strict=True)):
            jacobian[number, :, columns] = part.power_jacobian(eigenvalues)
        return kernel.space(eigenvalues, noise_variance), jacobian
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
