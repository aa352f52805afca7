"""Transformations of signals and inputs for a model, and predictions in the user's units."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import factorial
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.polynomial.hermite_e import hermevander

from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp._basics.saved import Positive, axes, gt
from spectralgp.model.fields.field import PredictiveDistribution, as_observed
from spectralgp.model.signals import Signals

LEAST_SKEWNESS = 1.0  # of all values together, for logarithms to be tried
REACH = 2.0  # upper end of logarithms, in largest training values
N_ORDERS = 12  # of Hermite polynomials in covariances; the remainder counts as of the next order
POINTS = np.linspace(-8.0, 8.0, 65)  # evenly spaced, since clipped values have kinks
WEIGHTS: Array = np.exp(-0.5 * POINTS**2) / np.sum(np.exp(-0.5 * POINTS**2))
POLYNOMIALS: Array = hermevander(POINTS, N_ORDERS - 1) / np.sqrt([float(factorial(one)) for one in range(N_ORDERS)])


class Transformation(ABC):
    """An increasing function of each value, which may depend on its node and its input, and its inverse.

    Signals are arrays of shape (..., n_signals, n_nodes) in memory, NaN if missing. ``inputs`` are transformed inputs,
    except in `inputs` itself. Moments are those of each transformed value, which counts as normal. The signal without
    noise is the expectation of an observation of it, whose variance is `noisy`: so its mean is that of observations.
    """

    is_of_nodes: ClassVar[bool]  # whether it is specific to the nodes of one graph
    has_slopes: ClassVar[bool]  # whether densities depend on its derivative

    @property
    @abstractmethod
    def described(self) -> str:
        """Short name of the transformed signals."""

    @property
    def carried(self) -> float:
        """Coefficient of inputs in the signals, added to the model's autoregressive filter at every frequency."""
        return 0.0

    def inputs(self, given: Array) -> Array:
        """Transform the user's inputs."""
        return given

    @abstractmethod
    def signals(self, given: Array, inputs: Array) -> Array:
        """Transform the user's signals."""

    @abstractmethod
    def restored(self, transformed: Array, inputs: Array) -> Array:
        """Invert `signals`."""

    @abstractmethod
    def log_slopes(self, transformed: Array, inputs: Array) -> Array:
        """Logarithm of the derivative of `signals` at each value, added to log densities in the user's units."""

    def log_slopes_of(self, signals: Signals, inputs: Array) -> Array:
        """`log_slopes` of centred and scaled signals, zero at missing values."""
        return np.nan_to_num(self.log_slopes(signals.units.restore(signals.as_observed), inputs))

    @abstractmethod
    def mean(self, mean: Any, find_noisy: Callable[[], Any], inputs: Array) -> Any:
        """Mean of the user's values, from the mean and the variance of transformed observations."""

    @abstractmethod
    def variance(self, mean: Any, variance: Any, noisy: Any, nodes: Indices | None = None) -> Any:
        """Variance of the user's signals, from moments at all nodes or some."""

    @abstractmethod
    def covariance(self, mean: Array, covariance: Array, noisy: Array) -> Array:
        """Covariance of the user's signals, shape (n_signals, n_nodes, n_signals, n_nodes)."""


@dataclass(frozen=True, eq=False)
class Changes(Transformation):
    """``y - c x``: changes of signals from their inputs at the same nodes, equation (19d)."""

    columns: Annotated[Indices, axes("n_nodes")]  # of the inputs, one for each node of the graph
    factor: float  # c, the units of the signals over those of the inputs

    is_of_nodes, has_slopes = True, False
    described = "changes"

    @property
    def carried(self) -> float:
        return self.factor

    def signals(self, given: Array, inputs: Array) -> Array:
        return given - self._before(inputs)

    def restored(self, transformed: Array, inputs: Array) -> Array:
        return transformed + self._before(inputs)

    def log_slopes(self, transformed: Array, inputs: Array) -> Array:
        return 0.0 * transformed

    def mean(self, mean: Any, find_noisy: Callable[[], Any], inputs: Array) -> Any:
        return mean + self._before(inputs)

    def variance(self, mean: Any, variance: Any, noisy: Any, nodes: Indices | None = None) -> Any:
        return variance

    def covariance(self, mean: Array, covariance: Array, noisy: Array) -> Array:
        return covariance

    def _before(self, inputs: Array) -> Array:
        return self.factor * np.asarray(inputs)[:, self.columns]


@dataclass(frozen=True, eq=False)
class Logarithms(Transformation):
    """``log(1 + y / c)``, equation (13d), also of inputs that are never negative.

    Predicted values are clipped to between zero and twice the largest training value in means, covariances and draws,
    so that tails do not dominate these. Densities are without clipping. Beyond the limits (inputs: below zero) the
    function of new signals and inputs is linear.
    """

    spread: Positive  # c, the standard deviation of all training values
    highest: Positive  # logarithm at twice the largest training value
    columns: Annotated[Indices, axes("n_logarithms")]  # of the transformed inputs
    input_spreads: Annotated[Array, axes("n_logarithms"), gt(0)]  # c of each of these

    is_of_nodes, has_slopes = False, True
    described = "logarithms"

    @classmethod
    def of(cls, signals: Array, inputs: Array, carried: Indices | None) -> Logarithms:
        """Logarithms of training signals, and of columns of inputs that are never negative, each by its deviation.

        Columns of the autoregressive term are of one kind, and share one deviation. A constant column has the root mean
        square of the deviations of the others.
        """
        spread, spreads, lowest = float(np.std(signals)), np.std(inputs, axis=0), np.min(inputs, axis=0, initial=0.0)
        if carried is not None:
            spreads[carried] = np.sqrt(np.mean(spreads[carried] ** 2))
            lowest[carried] = np.min(lowest[carried])
        varies = (lowest >= 0) & (spreads > 0)
        if varies.any():
            spreads[spreads == 0] = np.sqrt(np.mean(spreads[varies] ** 2))
        columns = np.flatnonzero((lowest >= 0) & (spreads > 0))
        highest = float(np.log1p(REACH * np.max(signals) / spread))
        return cls(spread, highest, columns, spreads[columns])

    @staticmethod
    def are_offered(signals: Array) -> bool:
        """Whether signals are never negative, and skewed."""
        if not np.min(signals) >= 0 or not np.ptp(signals) > 0:
            return False
        apart = (signals - np.mean(signals)) / np.std(signals)
        return bool(np.mean(apart**3) > LEAST_SKEWNESS)

    def inputs(self, given: Array) -> Array:
        transformed = np.array(given, dtype=float)
        relative = transformed[:, self.columns] / self.input_spreads
        transformed[:, self.columns] = np.log1p(np.maximum(relative, 0.0)) + np.minimum(relative, 0.0)
        return transformed

    def signals(self, given: Array, inputs: Array) -> Array:
        relative, top = given / self.spread, np.expm1(self.highest)
        inside = np.log1p(np.clip(relative, 0.0, top))
        return inside + np.minimum(relative, 0.0) + np.maximum(relative - top, 0.0) / (1 + top)

    def restored(self, transformed: Array, inputs: Array) -> Array:
        inside, top = np.clip(transformed, 0.0, self.highest), np.exp(self.highest)
        beyond = np.minimum(transformed, 0.0) + top * np.maximum(transformed - self.highest, 0.0)
        return self.spread * (np.expm1(inside) + beyond)

    def log_slopes(self, transformed: Array, inputs: Array) -> Array:
        return -np.log(self.spread) - np.clip(transformed, 0.0, self.highest)

    def mean(self, mean: Any, find_noisy: Callable[[], Any], inputs: Array) -> Any:
        roots = np.sqrt(np.maximum(find_noisy(), 0.0))
        return sum(weight * self._cut(mean + point * roots) for point, weight in zip(POINTS, WEIGHTS, strict=True))

    def variance(self, mean: Any, variance: Any, noisy: Any, nodes: Indices | None = None) -> Any:
        squares = self._coefficients(mean, noisy) ** 2
        return _series(squares, _ratio(variance, noisy))

    def covariance(self, mean: Array, covariance: Array, noisy: Array) -> Array:
        coefficients, roots = self._coefficients(mean, noisy), np.sqrt(np.maximum(noisy, 0.0))
        products = (np.multiply.outer(one, one) for one in coefficients)
        return _series(list(products), _ratio(covariance, np.multiply.outer(roots, roots)))

    def _coefficients(self, mean: Array, variance: Array) -> Array:
        """Coefficients of normal values in the user's units in Hermite polynomials: equation (13e)."""
        roots, found = np.sqrt(np.maximum(variance, 0.0)), np.zeros((N_ORDERS + 1, *mean.shape))
        for point, weight, polynomials in zip(POINTS, WEIGHTS, POLYNOMIALS, strict=True):
            values = self._cut(mean + point * roots)
            found[:-1] += np.multiply.outer(weight * polynomials, values)
            found[-1] += weight * values**2
        found[-1] = np.sqrt(np.maximum(found[-1] - np.sum(found[:-1] ** 2, axis=0), 0.0))
        return found

    def _cut(self, transformed: Array) -> Array:
        """Predicted value in the user's units."""
        return self.spread * np.expm1(np.clip(transformed, 0.0, self.highest))


def _ratio(covariance: Array, scale: Array) -> Array:
    """Correlations; zero if the scale is zero."""
    return np.divide(covariance, scale, out=np.zeros(covariance.shape), where=scale > 0)


def _series(products: Any, correlations: Array) -> Array:
    """``sum_k c_k r^k`` over the orders from one on, by Horner's rule."""
    total = np.zeros(correlations.shape)
    for one in products[:0:-1]:
        total = (total + one) * correlations
    return total


@dataclass(frozen=True, eq=False)
class TransformedField(PredictiveDistribution):
    """Predictive distribution of signals in the user's units, from one of transformed signals."""

    field: PredictiveDistribution  # of the transformed signals
    transformation: Transformation
    inputs: Array  # transformed, one row per predicted signal
    known: Mask  # of observed entries of these signals, shape (n_signals, n_nodes)

    @cached_property
    def mean(self) -> Any:
        return self.transformation.mean(self.field.mean, lambda: self._noisy, self.inputs)

    @cached_property
    def _noisy(self) -> Any:
        """Variance of transformed observations."""
        return self.field.variance(include_noise=True)

    @cached_property
    def values(self) -> Array:
        transformed = self.field.values
        predicted = self.transformation.mean(transformed, self.field.values_variance, self.inputs)
        return np.where(self.known, self.transformation.restored(transformed, self.inputs), predicted)

    def values_variance(self) -> Array:
        variance = self.field.values_variance()
        return np.asarray(self.transformation.variance(self.field.values, variance, variance))

    def variance(self, include_noise: bool = False, nodes: Indices | None = None) -> Any:
        mean, noisy = self.field.mean, self._noisy
        if nodes is not None:
            mean, noisy = mean[:, nodes], noisy[:, nodes]
        variance = noisy if include_noise else self.field.variance(nodes=nodes)
        return self.transformation.variance(mean, variance, noisy, nodes)

    @property
    def variance_error(self) -> Array:
        """Error of the transformed field: zero, since nothing is transformed on large graphs."""
        return self.field.variance_error

    def joint_covariance(self, include_noise: bool = False, rows: Sequence[int] | None = None) -> Array:
        chosen = slice(None) if rows is None else list(rows)
        covariance = self.field.joint_covariance(include_noise, rows)
        return self.transformation.covariance(self.field.mean[chosen], covariance, self._noisy[chosen])

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Any:
        drawn = self.field.sample(n_samples, random_state, include_noise)
        noise = np.zeros(self.known.shape) if include_noise else np.maximum(self._noisy - self.field.variance(), 0.0)
        return self.transformation.mean(drawn, lambda: noise, self.inputs)

    def log_density(self, signals: Any, joint: bool = True) -> Any:
        transformed = self._transformed(signals, "signals")
        slopes = self.transformation.log_slopes(transformed, self.inputs)
        further = np.sum(slopes, axis=1, where=np.isfinite(transformed) & ~self.known)
        log_density = self.field.log_density(transformed, joint)
        return float(log_density + np.sum(further)) if joint else log_density + further

    def distribution(self, values: Array) -> Array:
        with np.errstate(invalid="ignore"):  # NaN below the least value that there may be
            transformed = self.transformation.signals(values, self.inputs)
        return np.where(np.isnan(transformed), 0.0, self.field.distribution(transformed))

    def quantile(self, probability: float) -> Array:
        found = self.field.quantile(probability)
        return np.asarray(self.transformation.mean(found, lambda: np.zeros(found.shape), self.inputs))

    def given(self, observed: Any) -> TransformedField:
        transformed = self._transformed(observed, "observed")
        return replace(self, field=self.field.given(transformed), known=self.known | np.isfinite(transformed))

    def _transformed(self, signals: Any, name: str) -> Array:
        """Transform the user's signals after validation."""
        n_signals, n_nodes = self.known.shape
        checked: Array = np.asarray(on_host(as_observed(signals, n_signals, n_nodes, name)), dtype=float)
        return self.transformation.signals(checked, self.inputs)
