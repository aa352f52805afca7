"""Predictive distributions of values whose latent signals are normal: densities, distributions and quantiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from spectralgp._basics.checks import Array
from spectralgp.model.likelihoods.base import DENSITY_POINTS, RULES, Likelihood, expectation

QUANTILE_STEPS = 100  # of doubling and halving
QUANTILE_TOLERANCE = 1e-10  # relative, of values that are not whole numbers


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

    def below(latent: Array) -> Array:
        return likelihood.distribution_at(values, latent, beside)

    return np.clip(expectation(below, mean, variance, n_points=DENSITY_POINTS), 0.0, 1.0)


def randomised_pit(
    likelihood: Likelihood,
    values: Array,
    mean: Array,
    variance: Array,
    beside: Array,
    random_state: np.random.Generator,
) -> Array:
    """Probability integral transforms, uniform if predictions are calibrated; drawn at random within a step."""
    upper = predictive_distribution(likelihood, values, mean, variance, beside)
    if not likelihood.is_discrete:
        return upper
    lower = predictive_distribution(likelihood, values - 1, mean, variance, beside)
    return lower + random_state.random(np.shape(values)) * (upper - lower)


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
