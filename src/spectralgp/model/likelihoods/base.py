"""Likelihoods: the distribution of a value given the latent signal, expectations over it, and learnt parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, ClassVar, TypedDict, TypeVar

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from spectralgp._basics.checks import Array, Mask, as_positive, check_derivative

POINTS, DENSITY_POINTS = 20, 40  # of Gauss-Hermite quadratures of expectations, and of densities and distributions
QUANTILE_STEPS = 100  # of doubling and halving
QUANTILE_TOLERANCE = 1e-10  # relative, of values that are not whole numbers
PARAMETER_TOLERANCE = 1e-4  # of the logarithm of a learnt parameter
PARAMETER_STEP = 1.0  # largest step of that logarithm, since sites change with it
DIFFERENCE = 1e-2  # of that logarithm, for slopes and curvatures
N_CHECKED = 5  # values at which the derivatives of a user's likelihood are compared with differences

Terms = tuple[Array, Array, Array]  # log densities, slopes and curvatures, one per entry
# lowest, first and highest value of each parameter; in units of latent signals, where it has units
Ranges = dict[str, tuple[float, float, float]]


class AuxiliaryData(TypedDict, total=False):
    """Further arguments that describe observations, as `GraphGPRegressor.fit` documents them."""

    exposure: Any
    trials: Any
    noise_variance: Any
    weights: Any
    covariates: Any


RULES = {n: (points, weights / weights.sum()) for n in (POINTS, DENSITY_POINTS) for points, weights in [hermegauss(n)]}


def expectation(function: Callable[[Array], Array], mean: Array, variance: Array, n_points: int = POINTS) -> Array:
    """``E function(f)`` with ``f ~ N(mean, variance)``, entry by entry, by Gauss-Hermite quadrature."""
    std, total = np.sqrt(variance), np.zeros(np.broadcast_shapes(np.shape(mean), np.shape(variance)))
    for point, weight in zip(*RULES[n_points], strict=True):
        total = total + weight * function(mean + point * std)
    return total


@dataclass(frozen=True)
class ValueCondition:
    """Condition on observed values, with the text of the error if they violate it."""

    holds: Callable[[Array, Array], Mask]  # of values and their exposures or trials, entry by entry
    argument: str  # named by the error
    condition: str
    remedy: str


@dataclass(frozen=True)
class Likelihood(ABC):
    """Likelihood of observed values: ``p(y | f)`` of an entry, given the latent signal ``f`` there.

    Each value comes with a number, `beside`: an exposure, a number of trials, or one. A subclass defines the abstract
    members, for arrays of any shape; expectations follow by quadrature. A field that is None is a positive parameter
    to be learnt; `parameters` names them.
    """

    name: ClassVar[str]
    beside: ClassVar[str | None] = None  # the argument of `fit` with the numbers that accompany values
    is_discrete: ClassVar[bool] = False  # whether values are whole numbers
    is_white_noise: ClassVar[bool] = False  # whether the white part of latent signals counts as noise of the values
    parameters: ClassVar[Ranges] = {}
    in_latent_units: ClassVar[tuple[str, ...]] = ()  # parameters that have the units of latent signals
    conditions: ClassVar[tuple[ValueCondition, ...]] = ()  # on values and their exposures or trials

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
        """Terms of the log density that do not depend on ``f``."""
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
        """Draw values given the latent signal."""

    @abstractmethod
    def rough_latent(self, values: Array, beside: Array) -> Array:
        """Rough estimate of the latent signal from values, for the scale of the latent signals."""

    @property
    def first_variance(self) -> float:
        """Largest latent variance that a search of sites begins with, where the log density is still concave."""
        return 1.0

    def expected(self, values: Array, mean: Array, variance: Array, beside: Array) -> Terms:
        """Expectations of `at` with the constant, over ``f ~ N(mean, variance)``, for equations (35) and (36)."""
        std = np.sqrt(variance)
        logs, slopes, curvatures = self.constant(values, beside), np.zeros(np.shape(mean)), np.zeros(np.shape(mean))
        for point, weight in zip(*RULES[POINTS], strict=True):
            log, slope, curvature = self.at(values, mean + point * std, beside)
            logs, slopes, curvatures = logs + weight * log, slopes + weight * slope, curvatures + weight * curvature
        return logs, slopes, curvatures

    def mean(self, mean: Array, variance: Array, beside: Array) -> Array:
        """Mean of values over ``f ~ N(mean, variance)``."""
        return expectation(lambda latent: self.mean_at(latent, beside), mean, variance)

    def variance(self, mean: Array, variance: Array, beside: Array, include_noise: bool = True) -> Array:
        """Variance of values, or without noise that of their mean given ``f``, over ``f ~ N(mean, variance)``."""
        centre = self.mean(mean, variance, beside)
        total = expectation(lambda latent: np.square(self.mean_at(latent, beside) - centre), mean, variance)
        if include_noise:
            total = total + expectation(lambda latent: self.variance_at(latent, beside), mean, variance)
        return total


def predictive_log_density(likelihood: Likelihood, values: Array, mean: Array, variance: Array, beside: Array) -> Array:
    """``log E p(y | f)`` over ``f ~ N(mean, variance)``, entry by entry."""
    points, weights = RULES[DENSITY_POINTS]
    std = np.sqrt(variance)
    logs = [
        np.log(weight) + likelihood.at(values, mean + point * std, beside)[0]
        for point, weight in zip(points, weights, strict=True)
    ]
    return np.asarray(logsumexp(logs, axis=0) + likelihood.constant(values, beside))


def predictive_distribution(
    likelihood: Likelihood, values: Array, mean: Array, variance: Array, beside: Array
) -> Array:
    """Probability that a value is no larger, where ``f ~ N(mean, variance)``."""
    found = expectation(lambda f: likelihood.distribution_at(values, f, beside), mean, variance, DENSITY_POINTS)
    return np.clip(found, 0.0, 1.0)


def randomised_pit(
    distribution: Callable[[Array], Array], values: Array, is_discrete: bool, random_state: np.random.Generator
) -> Array:
    """Probability integral transforms, uniform if predictions are calibrated; drawn at random within a step.

    Values may be missing, NaN, and so are their transforms.
    """
    observed = np.isfinite(values)
    given = np.where(observed, values, 1.0)
    found = distribution(given)
    if is_discrete:
        lower = distribution(given - 1)
        found = lower + random_state.random(values.shape) * (found - lower)
    return np.where(observed, found, np.nan)


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


L = TypeVar("L", bound=Likelihood)


def open_parameters(likelihood: Likelihood) -> tuple[str, ...]:
    """Names of the parameters to be learnt: those without a value."""
    return tuple(name for name in likelihood.parameters if getattr(likelihood, name) is None)


def with_first_values(likelihood: L, unit: float = 1.0) -> L:
    """Likelihood with first values of open parameters; `unit` is a standard deviation of latent signals."""
    first = {name: float(_range(likelihood, name, unit)[1]) for name in open_parameters(likelihood)}
    return replace(likelihood, **first)


def _range(likelihood: Likelihood, name: str, unit: float) -> Array:
    return np.multiply(likelihood.parameters[name], unit if name in likelihood.in_latent_units else 1.0)


def log_bounds(likelihood: Likelihood, names: tuple[str, ...], unit: float = 1.0) -> Array:
    """Bounds of the logarithms of parameters, shape (n_names, 2)."""
    return np.log(np.array([_range(likelihood, name, unit)[::2] for name in names]).reshape(-1, 2))


def log_parameters(likelihood: Likelihood, names: tuple[str, ...]) -> Array:
    """Logarithms of parameters."""
    return np.log(np.array([getattr(likelihood, name) for name in names], dtype=float))


def with_log_parameters(likelihood: L, names: tuple[str, ...], logs: Array) -> L:
    """Likelihood with parameters of these logarithms."""
    return replace(likelihood, **dict(zip(names, np.exp(logs).tolist(), strict=True)))


def learn_parameters(likelihood: L, names: tuple[str, ...], *observed: Array, unit: float = 1.0) -> tuple[L, float]:
    """Likelihood with parameters that maximise the sum of `expected` log densities one by one, and the gain in nats."""
    gain = 0.0
    for name in names:
        (now,) = log_parameters(likelihood, (name,))
        low, high = np.clip(log_bounds(likelihood, (name,), unit)[0], now - PARAMETER_STEP, now + PARAMETER_STEP)

        def missed(log: float, name: str = name, likelihood: L = likelihood) -> float:
            return -_total(likelihood, (name,), np.array([log]), *observed)

        before = missed(now)
        found = minimize_scalar(missed, bounds=(low, high), options={"xatol": PARAMETER_TOLERANCE})
        if found.fun < before:
            likelihood = with_log_parameters(likelihood, (name,), np.array([found.x]))
            gain += before - found.fun
    return likelihood, float(gain)


def _total(likelihood: Likelihood, names: tuple[str, ...], logs: Array, *observed: Array) -> float:
    """``sum E log p(y | f)`` with parameters of these logarithms."""
    return float(np.sum(with_log_parameters(likelihood, names, logs).expected(*observed)[0]))


def parameter_slopes(likelihood: Likelihood, names: tuple[str, ...], *observed: Array) -> tuple[Array, Array]:
    """Derivative of ``sum E log p(y | f)`` in the parameters' logarithms, and minus the second, by differences."""
    logs, steps = log_parameters(likelihood, names), DIFFERENCE * np.eye(len(names))

    def total(step: Array) -> float:
        return _total(likelihood, names, logs + step, *observed)

    here = total(np.zeros(len(names)))
    up, down = (np.array([total(sign * step) for step in steps]) for sign in (1.0, -1.0))
    curvature = np.diag(2 * here - up - down)
    for one, other in combinations(range(len(names)), 2):
        both = total(steps[one] + steps[other])
        curvature[one, other] = curvature[other, one] = up[one] + up[other] - both - here
    return (up - down) / (2 * DIFFERENCE), curvature / DIFFERENCE**2


def check_derivatives(likelihood: Likelihood, values: Array, beside: Array) -> None:
    """Refuse a user's class whose `at` contradicts finite differences at a few values."""
    if type(likelihood).__module__.startswith("spectralgp."):
        return
    values, beside, name = values[:N_CHECKED], beside[:N_CHECKED], f"{type(likelihood).__name__}.at must return"
    latent = likelihood.rough_latent(values, beside) + 0.3 * (-1.0) ** np.arange(values.size)
    places = [f"y = {y:g}, f = {f:g}" for y, f in zip(values, latent, strict=True)]
    terms = partial(with_first_values(likelihood).at, values, beside=beside)
    check_derivative(f"{name} the slope of its log density", terms, latent, places)
    check_derivative(f"{name} minus the second derivative", lambda f: (-terms(f)[1], terms(f)[2]), latent, places)
