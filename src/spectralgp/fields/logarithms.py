"""Logarithms of signals that are never negative and skew, and of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermevander

from spectralgp._basics.checks import Array, Indices
from spectralgp.fields.transformed import Transformation

LEAST_SKEWNESS = 1.0  # of all values together, beyond which logarithms are tried
REACH = 2.0  # times the largest training value, up to which there are logarithms
N_ORDERS = 12  # of Hermite polynomials in covariances; what they leave counts as of the order that follows
POINTS = np.linspace(-8.0, 8.0, 65)  # evenly spaced, since values that are cut off bend sharply
WEIGHTS: Array = np.exp(-0.5 * POINTS**2) / np.sum(np.exp(-0.5 * POINTS**2))
POLYNOMIALS: Array = hermevander(POINTS, N_ORDERS - 1) / np.sqrt([float(factorial(one)) for one in range(N_ORDERS)])


@dataclass(frozen=True, eq=False)
class Logarithms(Transformation):
    """``log(1 + y / c)``, equation (13d), and the same of inputs that are never negative.

    Predicted values lie between zero and twice the largest training value: what the model sees beyond counts as the
    nearer of the two in means, covariances and draws, so that no tail makes them explode. Densities are those before
    that. New signals and inputs may be any: beyond these limits (inputs: below zero) it goes on as a straight line.
    """

    spread: float  # c, the standard deviation of all training values
    highest: float  # what the model sees of twice the largest training value
    columns: Indices  # of the inputs that logarithms are taken of
    input_spreads: Array  # c of each of these

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
