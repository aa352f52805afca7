"""Kinds of likelihoods: Gaussian, Student's t, counts, classes of two, proportions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betainc, expit, gammaincc, gammaln, log_expit
from scipy.stats import norm
from scipy.stats import t as student

from spectralgp._basics.checks import Array, as_option
from spectralgp._basics.saved import Positive, kinds_of
from spectralgp.model.likelihoods.base import Likelihood, Ranges, Terms, ValueCondition

LARGEST_LOG = 600.0  # whose exponential is still a number
LARGEST_EXPOSURE = 1e100  # and one over the smallest: rates are products with exponentials, which stay numbers
ROBUST = 1.4826  # standard deviation of a normal variable over the median of its absolute value


def _exp(log: Array) -> Array:
    """Exponentials that stay numbers."""
    return np.exp(np.minimum(log, LARGEST_LOG))


EXPOSED = ValueCondition(
    lambda _, beside: (beside >= 1 / LARGEST_EXPOSURE) & (beside <= LARGEST_EXPOSURE),
    "exposure",
    f"be finite and above 0 ({1 / LARGEST_EXPOSURE:g} to {LARGEST_EXPOSURE:g}) where a count was observed",
    "Leave out entries that were not exposed: NaN in Y.",
)
COUNTED = ValueCondition(
    lambda values, _: (values >= 0) & (values == np.floor(values)),
    "Y",
    "hold counts, whole numbers from 0 on",
    "Pass counts, and rates by exposure=; NaN is no count.",
)
TRIED = ValueCondition(
    lambda _, beside: (beside >= 1) & (beside == np.floor(beside)),
    "trials",
    "be whole numbers from 1 on where Y is observed",
    "Leave out entries without trials: NaN in Y.",
)
NO_MORE_THAN_TRIALS = ValueCondition(
    lambda values, beside: values <= beside,
    "Y",
    "hold no more successes than there were trials",
    "Pass the number of trials of each entry as trials=.",
)
OF_TWO_CLASSES = ValueCondition(
    lambda values, _: (values == 0) | (values == 1),
    "Y",
    "hold zeros and ones",
    "Pass 1 for one of the two classes and 0 for the other, or counts with likelihood='binomial'.",
)


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """Values with normal noise, ``y ~ N(f, s^2 v)``; ``v``, one by default, is given per value.

    Parameters
    ----------
    scale : float, optional
        ``s``, in the units of `Y`; learnt if not given.

    Examples
    --------
    >>> import numpy as np
    >>> float(Gaussian(scale=2.0).mean(np.array(3.0), np.array(1.0), np.array(1.0)).round(6))
    3.0
    """

    name: ClassVar[str] = "gaussian"
    is_white_noise = True
    in_latent_units = ("scale",)
    parameters: ClassVar[Ranges] = {"scale": (1e-3, 0.3, 1e2)}

    scale: Positive | None = None

    def _noise(self, beside: Array) -> Array:
        return np.asarray(float(self.scale or 1.0) ** 2 * beside)

    def at(self, values: Array, latent: Array, beside: Array) -> Terms:
        noise, missed = self._noise(beside), values - latent
        return -0.5 * np.square(missed) / noise, missed / noise, np.broadcast_to(1 / noise, missed.shape)

    def constant(self, values: Array, beside: Array) -> Array:
        return np.asarray(-0.5 * np.log(2 * np.pi * self._noise(beside)) + 0.0 * values)

    def expected(self, values: Array, mean: Array, variance: Array, beside: Array) -> Terms:
        log, slope, curvature = self.at(values, mean, beside)
        return log + self.constant(values, beside) - 0.5 * curvature * variance, slope, curvature

    def mean_at(self, latent: Array, beside: Array) -> Array:
        return latent

    def variance_at(self, latent: Array, beside: Array) -> Array:
        return np.broadcast_to(self._noise(beside), np.shape(latent))

    def distribution_at(self, values: Array, latent: Array, beside: Array) -> Array:
        return np.asarray(norm.cdf(values, latent, np.sqrt(self._noise(beside))))

    def draw(self, latent: Array, beside: Array, random_state: np.random.Generator) -> Array:
        return random_state.normal(latent, np.sqrt(self._noise(beside)))

    def rough_latent(self, values: Array, beside: Array) -> Array:
        return values


@dataclass(frozen=True)
class StudentT(Likelihood):
    """Values with heavy tails, ``y = f + s t`` with Student's t: outliers count little.

    Parameters
    ----------
    freedom : float, optional
        Degrees of freedom; learnt if not given, and then above two, so that standard deviations are finite.
    scale : float, optional
        ``s``, in the units of `Y`; learnt if not given.

    Examples
    --------
    >>> import numpy as np
    >>> slopes = StudentT(4.0, 1.0).at(np.array([1.0, 100.0]), np.zeros(2), np.ones(2))[1]
    >>> slopes.round(3).tolist()
    [1.0, 0.05]
    """

    name: ClassVar[str] = "student_t"
    is_white_noise = True
    in_latent_units = ("scale",)
    parameters: ClassVar[Ranges] = {"freedom": (2.1, 4.0, 100.0), "scale": (1e-3, 0.3, 1e2)}

    freedom: Positive | None = None
    scale: Positive | None = None

    @property
    def _both(self) -> tuple[float, float]:
        return float(self.freedom or 4.0), float(self.scale or 1.0)

    def at(self, values: Array, latent: Array, beside: Array) -> Terms:
        freedom, scale = self._both
        missed = values - latent
        square, total = np.square(missed), freedom * scale**2
        slope = (freedom + 1) * missed / (total + square)
        curvature = (freedom + 1) * (total - square) / np.square(total + square)  # negative for outliers
        return -0.5 * (freedom + 1) * np.log1p(square / total), slope, curvature

    @property
    def first_variance(self) -> float:
        return self._both[1] ** 2

    def constant(self, values: Array, beside: Array) -> Array:
        freedom, scale = self._both
        log = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - 0.5 * np.log(freedom * np.pi * scale**2)
        return np.full(np.shape(values), log)

    def mean_at(self, latent: Array, beside: Array) -> Array:
        return latent

    def variance_at(self, latent: Array, beside: Array) -> Array:
        freedom, scale = self._both
        return np.full(np.shape(latent), scale**2 * freedom / (freedom - 2) if freedom > 2 else np.inf)

    def distribution_at(self, values: Array, latent: Array, beside: Array) -> Array:
        freedom, scale = self._both
        return np.asarray(student.cdf(values, freedom, latent, scale))

    def draw(self, latent: Array, beside: Array, random_state: np.random.Generator) -> Array:
        freedom, scale = self._both
        return latent + scale * random_state.standard_t(freedom, np.shape(latent))

    def rough_latent(self, values: Array, beside: Array) -> Array:
        """Values without their outliers."""
        middle = np.median(values)
        reach = 3 * ROBUST * float(np.median(np.abs(values - middle)))
        return np.clip(values, middle - reach, middle + reach)


class _Counts(Likelihood):
    """Counts with an exposure: their mean is the exposure times ``exp(f)``."""

    beside: ClassVar[str | None] = "exposure"
    is_discrete = True
    conditions: ClassVar[tuple[ValueCondition, ...]] = (EXPOSED, COUNTED)

    def mean_at(self, latent: Array, beside: Array) -> Array:
        return beside * _exp(latent)

    def mean(self, mean: Array, variance: Array, beside: Array) -> Array:
        return beside * _exp(mean + 0.5 * variance)

    def rough_latent(self, values: Array, beside: Array) -> Array:
        return np.log((values + 0.5) / beside)


@dataclass(frozen=True)
class Poisson(_Counts):
    """Counts, ``y ~ Poisson(exposure * exp(f))``.

    Examples
    --------
    >>> import numpy as np
    >>> float(Poisson().mean(np.array(0.0), np.array(2.0), np.array(10.0)).round(4))
    27.1828
    """

    name: ClassVar[str] = "poisson"

    def at(self, values: Array, latent: Array, beside: Array) -> Terms:
        rate = beside * _exp(latent)
        return values * latent - rate, values - rate, rate

    def constant(self, values: Array, beside: Array) -> Array:
        return values * np.log(beside) - gammaln(values + 1)

    def expected(self, values: Array, mean: Array, variance: Array, beside: Array) -> Terms:
        rate = beside * _exp(mean + 0.5 * variance)
        return values * mean - rate + self.constant(values, beside), values - rate, rate

    def variance_at(self, latent: Array, beside: Array) -> Array:
        return beside * _exp(latent)

    def variance(self, mean: Array, variance: Array, beside: Array, include_noise: bool = True) -> Array:
        centre = self.mean(mean, variance, beside)
        return np.square(centre) * np.expm1(variance) + (centre if include_noise else 0.0)

    def distribution_at(self, values: Array, latent: Array, beside: Array) -> Array:
        return np.where(values < 0, 0.0, gammaincc(np.floor(values) + 1, beside * _exp(latent)))

    def draw(self, latent: Array, beside: Array, random_state: np.random.Generator) -> Array:
        return random_state.poisson(beside * _exp(latent)).astype(float)


@dataclass(frozen=True)
class NegativeBinomial(_Counts):
    """Counts that vary more than Poisson's: with the mean ``m``, their variance is ``m + dispersion m^2``.

    Parameters
    ----------
    dispersion : float, optional
        Learnt if not given; at zero it would be Poisson's distribution.

    Examples
    --------
    >>> import numpy as np
    >>> float(NegativeBinomial(0.5).variance_at(np.array(0.0), np.array(4.0)))
    12.0
    """

    name: ClassVar[str] = "negative_binomial"
    parameters: ClassVar[Ranges] = {"dispersion": (1e-4, 0.2, 1e2)}

    dispersion: Positive | None = None

    @property
    def _size(self) -> float:
        return 1 / float(self.dispersion or 1.0)

    def at(self, values: Array, latent: Array, beside: Array) -> Terms:
        size = self._size
        odds = latent + np.log(beside / size)
        share = expit(odds)
        total = values + size
        curvature = total * share * (1 - share)
        return values * log_expit(odds) + size * log_expit(-odds), values - total * share, curvature

    def constant(self, values: Array, beside: Array) -> Array:
        return np.asarray(gammaln(values + self._size) - gammaln(self._size) - gammaln(values + 1))

    def variance_at(self, latent: Array, beside: Array) -> Array:
        mean = self.mean_at(latent, beside)
        return mean + np.square(mean) / self._size

    def variance(self, mean: Array, variance: Array, beside: Array, include_noise: bool = True) -> Array:
        centre = self.mean(mean, variance, beside)
        of_mean = np.square(centre) * np.expm1(variance)
        return of_mean + (centre + (of_mean + np.square(centre)) / self._size if include_noise else 0.0)

    def distribution_at(self, values: Array, latent: Array, beside: Array) -> Array:
        share = expit(-latent - np.log(beside / self._size))
        return np.where(values < 0, 0.0, betainc(self._size, np.floor(values) + 1, share))

    def draw(self, latent: Array, beside: Array, random_state: np.random.Generator) -> Array:
        rate = random_state.gamma(self._size, self.mean_at(latent, beside) / self._size)
        return random_state.poisson(rate).astype(float)


@dataclass(frozen=True)
class Binomial(Likelihood):
    """Successes among trials, each with the probability ``1 / (1 + exp(-f))``.

    Examples
    --------
    >>> import numpy as np
    >>> float(Binomial().mean_at(np.array(0.0), np.array(10.0)))
    5.0
    """

    name: ClassVar[str] = "binomial"
    beside: ClassVar[str | None] = "trials"
    is_discrete = True
    conditions: ClassVar[tuple[ValueCondition, ...]] = (TRIED, COUNTED, NO_MORE_THAN_TRIALS)

    def at(self, values: Array, latent: Array, beside: Array) -> Terms:
        share = expit(latent)
        logs = values * log_expit(latent) + (beside - values) * log_expit(-latent)
        return logs, values - beside * share, beside * share * (1 - share)

    def constant(self, values: Array, beside: Array) -> Array:
        return np.asarray(gammaln(beside + 1) - gammaln(values + 1) - gammaln(beside - values + 1))

    def mean_at(self, latent: Array, beside: Array) -> Array:
        return np.asarray(beside * expit(latent))

    def variance_at(self, latent: Array, beside: Array) -> Array:
        share = expit(latent)
        return np.asarray(beside * share * (1 - share))

    def distribution_at(self, values: Array, latent: Array, beside: Array) -> Array:
        whole = np.floor(values)
        found = betainc(beside - whole, whole + 1, expit(-latent))  # meaningless for no success or all
        return np.where(values < 0, 0.0, np.where(values >= beside, 1.0, found))

    def draw(self, latent: Array, beside: Array, random_state: np.random.Generator) -> Array:
        trials = np.broadcast_to(beside, np.shape(latent)).astype(np.int64)
        return random_state.binomial(trials, expit(latent)).astype(float)

    def rough_latent(self, values: Array, beside: Array) -> Array:
        return np.log((values + 0.5) / (beside - values + 0.5))


@dataclass(frozen=True)
class Bernoulli(Binomial):
    """One of two classes, 0 or 1, as successes in one trial; the latter with the probability ``1 / (1 + exp(-f))``.

    Examples
    --------
    >>> import numpy as np
    >>> float(Bernoulli().mean(np.array(1.0), np.array(0.0), np.array(1.0)).round(4))
    0.7311
    """

    name: ClassVar[str] = "bernoulli"
    beside: ClassVar[str | None] = None
    conditions: ClassVar[tuple[ValueCondition, ...]] = (OF_TWO_CLASSES,)


def named_likelihoods() -> dict[str, type[Likelihood]]:
    """Likelihoods of this package by name: every subclass of `Likelihood` is one."""
    return {kind.name: kind for kind in kinds_of(Likelihood)}


def as_likelihood(given: Likelihood | str) -> Likelihood:
    """Likelihood given by its name or itself."""
    if isinstance(given, Likelihood):
        return given
    named = named_likelihoods()
    return named[as_option(given, "likelihood", tuple(named))]()
