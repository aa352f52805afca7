"""Transformations: a model sees other signals, at other inputs, than the user's, and answers in the user's units."""

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

LEAST_SKEWNESS = 1.0  # of all values together, beyond which logarithms are tried
REACH = 2.0  # times the largest training value, up to which there are logarithms
N_ORDERS = 12  # of Hermite polynomials in covariances; what they leave counts as of the order that follows
POINTS = np.linspace(-8.0, 8.0, 65)  # evenly spaced, since values that are cut off bend sharply
WEIGHTS: Array = np.exp(-0.5 * POINTS**2) / np.sum(np.exp(-0.5 * POINTS**2))
POLYNOMIALS: Array = hermevander(POINTS, N_ORDERS - 1) / np.sqrt([float(factorial(one)) for one in range(N_ORDERS)])


class Transformation(ABC):
    """An increasing function of every value, which may depend on its node and its input; what a model sees, and back.

    Signals are arrays of shape (..., n_signals, n_nodes) in memory, NaN where nothing was observed, which stays NaN.
    ``inputs`` are what the model sees of the inputs, except in `inputs` itself. Moments are those of each value's law,
    which counts as normal. The signal without noise is what is expected of an observation of it, whose variance is
    `noisy`: so its mean is that of observations.
    """

    is_of_nodes: ClassVar[bool]  # whether it belongs to the nodes of one graph, so that it cannot move to another
    has_slopes: ClassVar[bool]  # whether its densities hang on how values are spread, so that no other compares

    @property
    @abstractmethod
    def described(self) -> str:
        """What the model sees of the signals, in a word or two."""

    @property
    def carried(self) -> float:
        """What inputs carry over to the signals at every frequency, to which the model's own filter is added."""
        return 0.0

    def inputs(self, given: Array) -> Array:
        """What the model sees of the user's inputs."""
        return given

    @abstractmethod
    def signals(self, given: Array, inputs: Array) -> Array:
        """What the model sees of the user's signals."""

    @abstractmethod
    def restored(self, seen: Array, inputs: Array) -> Array:
        """The user's signals again: undoes `signals`."""

    @abstractmethod
    def log_slopes(self, seen: Array, inputs: Array) -> Array:
        """Logarithm of the derivative of `signals` at each value, by which densities grow in the user's units."""

    def log_slopes_of(self, signals: Signals, inputs: Array) -> Array:
        """`log_slopes` of signals that were read, zero where nothing was observed."""
        return np.nan_to_num(self.log_slopes(signals.units.restore(signals.as_observed), inputs))

    @abstractmethod
    def mean(self, mean: Any, find_noisy: Callable[[], Any], inputs: Array) -> Any:
        """Mean of the user's values, from the mean and the variance of observations that the model sees."""

    @abstractmethod
    def variance(self, mean: Any, variance: Any, noisy: Any, nodes: Indices | None = None) -> Any:
        """Variance of the user's signals at all nodes, or at those that the moments are given at."""

    @abstractmethod
    def covariance(self, mean: Array, covariance: Array, noisy: Array) -> Array:
        """Covariance of the user's signals, shape (n_signals, n_nodes, n_signals, n_nodes)."""


@dataclass(frozen=True, eq=False)
class Changes(Transformation):
    """``y - c x``: a model sees how far signals are from what their inputs say at the same nodes, equation (19d)."""

    columns: Annotated[Indices, axes("n_nodes")]  # of the inputs, one for each node of the graph
    factor: float  # c, the units of the signals over those of the inputs

    is_of_nodes, has_slopes = True, False
    described = "changes"

    @property
    def carried(self) -> float:
        return self.factor

    def signals(self, given: Array, inputs: Array) -> Array:
        return given - self._before(inputs)

    def restored(self, seen: Array, inputs: Array) -> Array:
        return seen + self._before(inputs)

    def log_slopes(self, seen: Array, inputs: Array) -> Array:
        return 0.0 * seen

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
    """``log(1 + y / c)``, equation (13d), and the same of inputs that are never negative.

    Predicted values lie between zero and twice the largest training value: what the model sees beyond counts as the
    nearer of the two in means, covariances and draws, so that no tail makes them explode. Densities are those before
    that. New signals and inputs may be any: beyond these limits (inputs: below zero) it goes on as a straight line.
    """

    spread: Positive  # c, the standard deviation of all training values
    highest: Positive  # what the model sees of twice the largest training value
    columns: Annotated[Indices, axes("n_logarithms")]  # of the inputs that logarithms are taken of
    input_spreads: Annotated[Array, axes("n_logarithms"), gt(0)]  # c of each of these

    is_of_nodes, has_slopes = False, True
    described = "logarithms"

    @classmethod
    def of(cls, signals: Array, inputs: Array, carried: Indices | None) -> Logarithms:
        """Those of training signals, and of inputs: of columns that are never negative, each by its deviation.

        Columns that carry over are values of one kind, and have one in common. A column that does not vary has no
        deviation of its own, and gets the root mean square of those that do.
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
        """Whether signals are never negative, and skew."""
        if not np.min(signals) >= 0 or not np.ptp(signals) > 0:
            return False
        apart = (signals - np.mean(signals)) / np.std(signals)
        return bool(np.mean(apart**3) > LEAST_SKEWNESS)

    def inputs(self, given: Array) -> Array:
        seen = np.array(given, dtype=float)
        relative = seen[:, self.columns] / self.input_spreads
        seen[:, self.columns] = np.log1p(np.maximum(relative, 0.0)) + np.minimum(relative, 0.0)
        return seen

    def signals(self, given: Array, inputs: Array) -> Array:
        relative, top = given / self.spread, np.expm1(self.highest)
        inside = np.log1p(np.clip(relative, 0.0, top))
        return inside + np.minimum(relative, 0.0) + np.maximum(relative - top, 0.0) / (1 + top)

    def restored(self, seen: Array, inputs: Array) -> Array:
        inside, top = np.clip(seen, 0.0, self.highest), np.exp(self.highest)
        beyond = np.minimum(seen, 0.0) + top * np.maximum(seen - self.highest, 0.0)
        return self.spread * (np.expm1(inside) + beyond)

    def log_slopes(self, seen: Array, inputs: Array) -> Array:
        return -np.log(self.spread) - np.clip(seen, 0.0, self.highest)

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
        """What normal values are in the user's units, as a series of Hermite polynomials: equation (13e)."""
        roots, found = np.sqrt(np.maximum(variance, 0.0)), np.zeros((N_ORDERS + 1, *mean.shape))
        for point, weight, polynomials in zip(POINTS, WEIGHTS, POLYNOMIALS, strict=True):
            values = self._cut(mean + point * roots)
            found[:-1] += np.multiply.outer(weight * polynomials, values)
            found[-1] += weight * values**2
        found[-1] = np.sqrt(np.maximum(found[-1] - np.sum(found[:-1] ** 2, axis=0), 0.0))
        return found

    def _cut(self, seen: Array) -> Array:
        """A predicted value in the user's units."""
        return self.spread * np.expm1(np.clip(seen, 0.0, self.highest))


def _ratio(covariance: Array, scale: Array) -> Array:
    """Correlations; zero where nothing varies."""
    return np.divide(covariance, scale, out=np.zeros(covariance.shape), where=scale > 0)


def _series(products: Any, correlations: Array) -> Array:
    """``sum_k c_k r^k`` over the orders from one on, by Horner's rule."""
    total = np.zeros(correlations.shape)
    for one in products[:0:-1]:
        total = (total + one) * correlations
    return total


@dataclass(frozen=True, eq=False)
class TransformedField(PredictiveDistribution):
    """What is predicted of signals that a model saw transformed, in the user's units."""

    field: PredictiveDistribution  # as the model sees the signals
    transformation: Transformation
    inputs: Array  # as the model sees them, one row per signal that is predicted
    known: Mask  # what was observed of these signals, shape (n_signals, n_nodes)

    @cached_property
    def mean(self) -> Any:
        return self.transformation.mean(self.field.mean, lambda: self._noisy, self.inputs)

    @cached_property
    def _noisy(self) -> Any:
        """Variance of observations as the model sees them."""
        return self.field.variance(include_noise=True)

    @cached_property
    def values(self) -> Array:
        seen = self.field.values
        predicted = self.transformation.mean(seen, self.field.values_variance, self.inputs)
        return np.where(self.known, self.transformation.restored(seen, self.inputs), predicted)

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
        """That of what the model sees: zero, since nothing is transformed on large graphs."""
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
        seen = self._seen(signals, "signals")
        slopes = self.transformation.log_slopes(seen, self.inputs)
        further = np.sum(slopes, axis=1, where=np.isfinite(seen) & ~self.known)
        log_density = self.field.log_density(seen, joint)
        return float(log_density + np.sum(further)) if joint else log_density + further

    def value_log_densities(self, signals: Array, nodes: Indices) -> Array:
        whole = np.full(self.known.shape, np.nan)
        whole[:, nodes] = signals
        seen = self.transformation.signals(whole, self.inputs)
        slopes = self.transformation.log_slopes(seen, self.inputs)
        return self.field.value_log_densities(seen[:, nodes], nodes) + slopes[:, nodes]

    def distribution(self, values: Array) -> Array:
        with np.errstate(invalid="ignore"):
            seen = self.transformation.signals(values, self.inputs)  # NaN below the least value that there may be
        return np.where(np.isnan(seen), 0.0, self.field.distribution(seen))

    def quantile(self, probability: float) -> Array:
        found = self.field.quantile(probability)
        return np.asarray(self.transformation.mean(found, lambda: np.zeros(found.shape), self.inputs))

    def given(self, observed: Any) -> TransformedField:
        seen = self._seen(observed, "observed")
        return replace(self, field=self.field.given(seen), known=self.known | np.isfinite(seen))

    def _seen(self, signals: Any, name: str) -> Array:
        """What the model sees of signals that a user gives, checked."""
        n_signals, n_nodes = self.known.shape
        checked: Array = np.asarray(on_host(as_observed(signals, n_signals, n_nodes, name)), dtype=float)
        return self.transformation.signals(checked, self.inputs)
