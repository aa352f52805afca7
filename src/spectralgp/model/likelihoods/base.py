"""Likelihoods: how the value at an entry is observed, given the latent signal there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import ClassVar, Self

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from spectralgp._basics.checks import Array, Mask, as_positive, check_derivative

POINTS, DENSITY_POINTS = 20, 40  # of Gauss-Hermite quadratures of expectations, and of densities and distributions
LARGEST_LOG = 600.0  # whose exponential is still a number
QUANTILE_STEPS = 100  # of doubling and halving
QUANTILE_TOLERANCE = 1e-10  # relative, of values that are not whole numbers
PARAMETER_TOLERANCE = 1e-4  # of the logarithm of a parameter that is learnt
PARAMETER_STEP = 1.0  # of that logarithm, at most, from sites that will change with it
N_CHECKED = 5  # values at which a likelihood of one's own is compared with differences
DIFFERENCE = 1e-2  # of that logarithm, for slopes and curvatures

BESIDE = ("exposure", "trials", "noise_variance", "weights", "covariates")  # arguments of methods, beside values
Terms = tuple[Array, Array, Array]
"""Log densities, slopes and curvatures, one per entry."""
Ranges = dict[str, tuple[float, float, float]]
"""The lowest, the first and the highest value of each parameter; in units of latent signals, where it has units."""


def _rule(n_points: int) -> tuple[Array, Array]:
    points, weights = hermegauss(n_points)
    return points, weights / weights.sum()


RULES = {n_points: _rule(n_points) for n_points in (POINTS, DENSITY_POINTS)}


def expectation(function: Callable[[Array], Array], mean: Array, variance: Array, n_points: int = POINTS) -> Array:
    """``E function(f)`` with ``f ~ N(mean, variance)``, entry by entry, by Gauss-Hermite quadrature."""
    std, total = np.sqrt(variance), np.zeros(np.broadcast_shapes(np.shape(mean), np.shape(variance)))
    for point, weight in zip(*RULES[n_points], strict=True):
        total = total + weight * function(mean + point * std)
    return total


def quantile_of(
    distribution: Callable[[Array], Array], probability: float, centre: Array, reach: Array, is_discrete: bool = False
) -> Array:
    """The least values at which a distribution reaches a probability, entry by entry, by bisection about a centre."""
    least = 1.0 if is_discrete else QUANTILE_TOLERANCE * np.abs(centre)  # whatever the units
    reach = np.maximum(np.where(np.isfinite(reach), reach, np.abs(centre)), least)
    low, high = centre - reach, centre + reach
    for _ in range(QUANTILE_STEPS):
        short, over = ~(distribution(high) >= probability), distribution(low) >= probability
        if not (short.any() or over.any()):
            break
        reach = 2 * reach
        low, high = np.where(over, low - reach, low), np.where(short, high + reach, high)
    for _ in range(QUANTILE_STEPS):
        apart = 0.5 if is_discrete else QUANTILE_TOLERANCE * np.maximum(reach, np.abs(high))
        if np.all(high - low <= apart):
            break
        middle = 0.5 * (low + high)
        enough = distribution(middle) >= probability
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.floor(high) if is_discrete else high


@dataclass(frozen=True)
class ValueCondition:
    """What values must be, and what to do where they are not."""

    holds: Callable[[Array, Array], Mask]  # of values and what stands beside them, entry by entry
    argument: str  # that is wrong where it does not hold
    condition: str
    remedy: str


@dataclass(frozen=True)
class Likelihood(ABC):
    """How values are observed: ``p(y | f)`` of an entry, given the latent signal ``f`` there.

    Beside each value stands a number: an exposure, or a number of trials; one if there is nothing. A likelihood of
    one's own says what is abstract here, for arrays of any shape; all else follows by quadrature. Fields that are None
    are positive parameters that are learnt; `parameters` names them.
    """

    name: ClassVar[str]
    beside: ClassVar[str | None] = None  # the argument of `fit` that stands beside values
    is_discrete: ClassVar[bool] = False  # whether values are whole numbers
    is_white_noise: ClassVar[bool] = False  # whether the white part of latent signals counts as noise of the values
    parameters: ClassVar[Ranges] = {}
    in_latent_units: ClassVar[tuple[str, ...]] = ()  # parameters that have the units of latent signals

    def __post_init__(self) -> None:
        """Check the parameters."""
        for name in self.parameters:
            value = getattr(self, name)
            if value is not None:
                as_positive(value, name)

    @abstractmethod
    def at(self, values: Array, latent: Array, beside: Array) -> Terms:
        """Log density up to `constant`, its derivative in ``f``, and minus the second derivative."""

    def constant(self, values: Array, beside: Array) -> Array:
        """What the log density has beside that, which does not depend on ``f``."""
        return np.zeros(np.broadcast_shapes(np.shape(values), np.shape(beside)))

    @abstractmethod
    def mean_at(self, latent: Array, beside: Array) -> Array:
        """Mean of a value given the latent signal."""

    @abstractmethod
    def variance_at(self, latent: Array, beside: Array) -> Array:
        """Variance of a value given the latent signal."""

    @abstractmethod
    def distribution_at(self, values: Array, latent: Array, beside: Array) -> Array:
        """Probability that a value is no larger, given the latent signal."""

    @abstractmethod
    def draw(self, latent: Array, beside: Array, random_state: np.random.Generator) -> Array:
        """Values drawn given the latent signal."""

    @abstractmethod
    def rough_latent(self, values: Array, beside: Array) -> Array:
        """A latent signal that would make values likely, roughly: for the scale of the latent signals."""

    @property
    def first_variance(self) -> float:
        """Largest latent variance that a search of sites begins with, where the log density is still concave."""
        return 1.0

    def rough_level(self, values: Array, beside: Array) -> float:
        """Latent level that would make all values together likely, roughly: the centre of an intercept's prior."""
        if self.is_discrete:  # of which single ones say little
            values, beside = np.sum(values, keepdims=True), np.sum(beside, keepdims=True)
        return float(np.mean(self.rough_latent(values, beside)))

    def conditions(self) -> Iterator[ValueCondition]:
        """What values, and what stands beside them, must be."""
        yield from ()

    def check_derivatives(self, values: Array, beside: Array) -> None:
        """Refuse a class of one's own whose `at` does not return derivatives, by differences at a few values."""
        if not type(self).__module__.startswith("spectralgp."):
            values, beside, name = values[:N_CHECKED], beside[:N_CHECKED], f"{type(self).__name__}.at must return"
            latent = self.rough_latent(values, beside) + 0.3 * (-1.0) ** np.arange(values.size)
            places = [f"y = {y:g}, f = {f:g}" for y, f in zip(values, latent, strict=True)]
            terms = partial(self.started().at, values, beside=beside)
            check_derivative(f"{name} the slope of its log density", terms, latent, places)
            check_derivative(
                f"{name} minus the second derivative", lambda f: (-terms(f)[1], terms(f)[2]), latent, places
            )

    # ----------------------------------------------------------------------------------------- own parameters

    @property
    def open_parameters(self) -> tuple[str, ...]:
        """Parameters that are learnt and have no value yet."""
        return tuple(name for name in self.parameters if getattr(self, name) is None)

    def started(self, unit: float = 1.0) -> Self:
        """The likelihood with first values for what is learnt; `unit` is a standard deviation of latent signals."""
        firsts = {name: self.parameters[name][1] * self._unit(name, unit) for name in self.open_parameters}
        return replace(self, **firsts)

    def _unit(self, name: str, unit: float) -> float:
        """The unit that a parameter is in."""
        return unit if name in self.in_latent_units else 1.0

    def learnt(
        self, names: tuple[str, ...], values: Array, mean: Array, variance: Array, beside: Array, unit: float = 1.0
    ) -> tuple[Self, float]:
        """The likelihood with parameters that maximise ``sum E log p(y | f)``, one after the other, and the gain."""
        likelihood, gain = self, 0.0
        for number, name in enumerate(names):
            now = self.logarithms(names)[number]
            low, high = np.clip(self.bounds(names, unit)[number], now - PARAMETER_STEP, now + PARAMETER_STEP)

            def missed(log: float, name: str = name, likelihood: Self = likelihood) -> float:
                return -likelihood._total((name,), np.array([log]), values, mean, variance, beside)

            before = missed(now)
            found = minimize_scalar(missed, bounds=(low, high), options={"xatol": PARAMETER_TOLERANCE})
            if found.fun < before:
                likelihood, gain = likelihood.with_logarithms((name,), np.array([found.x])), gain + before - found.fun
        return likelihood, float(gain)

    def _total(self, names: tuple[str, ...], logs: Array, *law: Array) -> float:
        """``sum E log p(y | f)`` with parameters of these logarithms; `law` as `expected` takes it."""
        return float(np.sum(self.with_logarithms(names, logs).expected(*law)[0]))

    def bounds(self, names: tuple[str, ...], unit: float = 1.0) -> Array:
        """Bounds of the logarithms of parameters, shape (n_names, 2)."""
        found = [np.multiply(self.parameters[name][::2], self._unit(name, unit)) for name in names]
        return np.log(np.array(found).reshape(-1, 2))

    def logarithms(self, names: tuple[str, ...]) -> Array:
        """Logarithms of parameters."""
        return np.log(np.array([getattr(self, name) for name in names], dtype=float))

    def with_logarithms(self, names: tuple[str, ...], logs: Array) -> Self:
        """The likelihood with parameters of these logarithms."""
        return replace(self, **dict(zip(names, np.exp(logs).tolist(), strict=True)))

    def slopes(
        self, names: tuple[str, ...], values: Array, mean: Array, variance: Array, beside: Array
    ) -> tuple[Array, Array]:
        """Derivative of ``sum E log p(y | f)`` in the parameters' logarithms, and minus the second, by differences."""
        logs, steps = self.logarithms(names), DIFFERENCE * np.eye(len(names))

        def total(step: Array) -> float:
            return self._total(names, logs + step, values, mean, variance, beside)

        here = total(np.zeros(len(names)))
        up, down = (np.array([total(sign * step) for step in steps]) for sign in (1.0, -1.0))
        curvature = np.diag(2 * here - up - down)
        for one, other in combinations(range(len(names)), 2):
            both = total(steps[one] + steps[other])
            curvature[one, other] = curvature[other, one] = up[one] + up[other] - both - here
        return (up - down) / (2 * DIFFERENCE), curvature / DIFFERENCE**2

    # -------------------------------------------------------------------------------------------- by quadrature

    def expected(self, values: Array, mean: Array, variance: Array, beside: Array) -> Terms:
        """Expectations of `at` with the constant, over ``f ~ N(mean, variance)``: what (35) and (36) ask for."""
        std = np.sqrt(variance)
        logs, slopes, curvatures = self.constant(values, beside), np.zeros(np.shape(mean)), np.zeros(np.shape(mean))
        for point, weight in zip(*RULES[POINTS], strict=True):
            log, slope, curvature = self.at(values, mean + point * std, beside)
            logs, slopes, curvatures = logs + weight * log, slopes + weight * slope, curvatures + weight * curvature
        return logs, slopes, curvatures

    def log_density(self, values: Array, mean: Array, variance: Array, beside: Array) -> Array:
        """``log E p(y | f)`` over ``f ~ N(mean, variance)``, entry by entry."""
        points, weights = RULES[DENSITY_POINTS]
        std = np.sqrt(variance)
        logs = [
            np.log(weight) + self.at(values, mean + point * std, beside)[0]
            for point, weight in zip(points, weights, strict=True)
        ]
        return np.asarray(logsumexp(logs, axis=0) + self.constant(values, beside))

    def mean(self, mean: Array, variance: Array, beside: Array) -> Array:
        """Mean of values where ``f ~ N(mean, variance)``."""
        return expectation(lambda latent: self.mean_at(latent, beside), mean, variance)

    def variance(self, mean: Array, variance: Array, beside: Array, include_noise: bool = True) -> Array:
        """Variance of values, or without noise that of their mean given ``f``, where ``f ~ N(mean, variance)``."""
        centre = self.mean(mean, variance, beside)
        total = expectation(lambda latent: np.square(self.mean_at(latent, beside) - centre), mean, variance)
        if include_noise:
            total = total + expectation(lambda latent: self.variance_at(latent, beside), mean, variance)
        return total

    def distribution(self, values: Array, mean: Array, variance: Array, beside: Array) -> Array:
        """Probability that a value is no larger, where ``f ~ N(mean, variance)``."""
        found = expectation(
            lambda latent: self.distribution_at(values, latent, beside), mean, variance, n_points=DENSITY_POINTS
        )
        return np.clip(found, 0.0, 1.0)

    def randomised_pit(
        self, values: Array, mean: Array, variance: Array, beside: Array, random_state: np.random.Generator
    ) -> Array:
        """Probability integral transforms, uniform where predictions are right; between steps drawn at random."""
        upper = self.distribution(values, mean, variance, beside)
        if not self.is_discrete:
            return upper
        lower = self.distribution(values - 1, mean, variance, beside)
        return lower + random_state.random(np.shape(values)) * (upper - lower)
