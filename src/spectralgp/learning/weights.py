"""Weights of models: maximisation of concave scores on the simplex."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spectralgp._basics.checks import Array

Score = Callable[[Array], tuple[float, Array]]  # value and gradient at weights

NEGLIGIBLE_WEIGHT = 1e-6  # of a model in an ensemble
ROUNDING = 1e-12


def simplex_weights(score: Score, n_models: int, *, n_steps: int = 2_000, tolerance: float = 1e-8) -> Array:
    """Return the weights, non-negative and of sum one, that maximise a concave score.

    Steps ``w_k <- w_k (1 + s (g_k - w^T g))`` along the gradient ``g`` start from equal weights and stay on the
    simplex. A step that does not raise the score is halved, and the next one is half as long again. It ends where no
    weight changes by more than `tolerance`. The score should be a mean over observations, so that ``s = 1`` is a step
    of its size: of a mean log score, one of expectation maximisation.

    Examples
    --------
    >>> import numpy as np
    >>> target = np.array([0.7, 0.3, 0.0])
    >>> simplex_weights(lambda weights: (-np.sum((weights - target) ** 2), 2 * (target - weights)), 3).round(3).tolist()
    [0.7, 0.3, 0.0]
    """
    weights, step = np.full(n_models, 1 / n_models), 1.0
    best, slope = score(weights)
    with np.errstate(all="ignore"):  # a long step may leave an observation without density
        for _ in range(n_steps):
            factors = 1 + step * (slope - weights @ slope)
            moved = weights * np.maximum(factors, 0.0)
            moved /= moved.sum()
            change = abs(moved - weights).max()
            value, gradient = score(moved)
            if factors.min() >= -ROUNDING and value >= best - ROUNDING * abs(best):
                weights, best, slope, step = moved, value, gradient, 1.5 * step
            else:
                step /= 2
            if change < tolerance:
                break
    return weights


def stacking_weights(
    log_densities: Array,
    counts: Array | None = None,
    prior: float = 0.0,
    *,
    n_steps: int = 10_000,
    tolerance: float = 1e-10,
    negligible: float = NEGLIGIBLE_WEIGHT,
) -> Array:
    """Weights of a mixture that maximise the held-out log score ``sum_n c_n log sum_k w_k p_nk``.

    Densities have shape (n_observations, n_models), for signals, values or both. Each observation counts as one unless
    `counts` are given, and equal weights as `prior` observations: a Dirichlet prior, equation (30b). Weights below
    `negligible` become zero, except the largest; `n_steps` and `tolerance` are those of `simplex_weights`.

    Examples
    --------
    >>> import numpy as np
    >>> stacking_weights(np.log([[0.9, 0.1], [0.8, 0.2]])).round(3).tolist()
    [1.0, 0.0]
    """
    counts = np.ones(len(log_densities)) if counts is None else counts
    score = log_score(log_densities, counts, prior, float(counts.sum()) + prior)
    weights = simplex_weights(score, log_densities.shape[1], n_steps=n_steps, tolerance=tolerance)
    kept = np.where(weights >= min(negligible, float(np.max(weights))), weights, 0.0)
    return kept / kept.sum()


def log_score(log_densities: Array, counts: Array, prior: float, total: float) -> Score:
    """Log score of mixtures relative to a total, with `prior` observations of equal weights."""
    scaled = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    shares, equal = counts / total, prior / total / log_densities.shape[1]

    def score(weights: Array) -> tuple[float, Array]:
        mixed = scaled @ weights
        value, gradient = shares @ np.log(mixed), (shares / mixed) @ scaled
        if equal:
            value, gradient = value + equal * np.sum(np.log(weights)), gradient + equal / weights
        return float(value), gradient

    return score


def weights_by_error(log_densities: Array, errors: Array, n_values: float) -> Array:
    """Weights of a mixture that maximise ``sum_n log sum_k w_k p_nk - (n_values / 2) log mean (sum_k w_k e_k)^2``.

    Densities of held-out signals, shape (n_signals, n_models), score the mixture's distribution; the squared error of
    its mean, from the models' errors of shape (..., n_models), scores the mean. Densities of single values would reward
    the means of the signals that vary least.
    """
    n_signals = len(log_densities)
    of_densities = log_score(log_densities, np.ones(n_signals), 0.0, n_signals + n_values)
    flat = errors.reshape(-1, errors.shape[-1])
    products, share = flat.T @ flat / len(flat), n_values / (n_signals + n_values)

    def score(weights: Array) -> tuple[float, Array]:
        value, gradient = of_densities(weights)
        crossed = products @ weights
        square = float(weights @ crossed)
        return value - 0.5 * share * float(np.log(square)), gradient - share * crossed / square

    return simplex_weights(score, errors.shape[-1])


def weights_by_crps(observed: Array, points: Array, shares: Array) -> Array:
    """Weights of a mixture of distributions with the least mean CRPS of the observed values.

    Equation (19c): in its energy form the score is a quadratic function of the weights. The distributions of a value
    have common `points`, shape (n_values, n_points). Their probabilities, the `shares`, are equal for all values; they
    have shape (n_distributions, n_points), and rows add up to one.
    """
    errors = shares @ np.mean(np.abs(points - observed[:, None]), axis=0)
    order = np.argsort(points, axis=1)
    gaps = np.diff(np.take_along_axis(points, order, axis=1), axis=1)
    below = np.cumsum(shares[:, order], axis=2)[:, :, :-1]  # distribution functions between the points
    half = np.einsum("np,knp,lnp->kl", gaps, below, 1 - below, optimize=True) / len(observed)
    distances, unit = half + half.T, float(np.mean(errors)) or 1.0

    def score(weights: Array) -> tuple[float, Array]:
        between = distances @ weights
        return float(weights @ (0.5 * between - errors)) / unit, (between - errors) / unit

    return simplex_weights(score, len(errors))
