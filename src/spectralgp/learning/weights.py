"""Weights of models compared on what was held out: by squared error too, and where densities do not compare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralgp._basics.checks import Array

MOST_STEPS, WEIGHT_TOLERANCE = 2_000, 1e-6  # towards the best weights


@dataclass(frozen=True, eq=False)
class Quantiles:
    """Laws of single values as points with weights, in the units of the user."""

    points: Array  # shape (n_values, n_points)
    weights: Array  # of the points, the same for all values; they add up to one

    @classmethod
    def mixed(cls, weights: Array, parts: list[Array]) -> Quantiles:
        """The mixture of several laws, each of equally likely points of shape (n_values, n_points)."""
        shares = [np.full(part.shape[1], weight / part.shape[1]) for weight, part in zip(weights, parts, strict=True)]
        return cls(np.concatenate(parts, axis=1), np.concatenate(shares))


def share_by_crps(observed: Array, first: Quantiles, second: Quantiles) -> float:
    """The share of the second law in a mixture of two that has the least mean CRPS of values that were observed.

    Equation (19c): in its energy form the score is a quadratic function of the share.
    """
    of_first, of_second = (np.mean(np.abs(one.points - observed[:, None]) @ one.weights) for one in (first, second))
    points = np.concatenate([first.points, second.points], axis=1)
    order = np.argsort(points, axis=1)
    gaps = np.diff(np.take_along_axis(points, order, axis=1), axis=1)
    is_first = np.arange(points.shape[1]) < first.weights.size
    both = np.concatenate([first.weights, second.weights])
    below = [np.cumsum((both * is_one)[order], axis=1)[:, :-1] for is_one in (is_first, ~is_first)]

    def apart(one: Array, other: Array) -> float:
        """Mean distance of two independent values, from the probabilities of being below each point."""
        return float(np.mean(np.sum(gaps * (one * (1 - other) + other * (1 - one)), axis=1)))

    within_first, across, within_second = apart(below[0], below[0]), apart(*below), apart(below[1], below[1])
    curvature = 2 * across - within_first - within_second  # the energy distance of the two
    if curvature <= 0:
        return 0.0
    return float(np.clip((of_first - of_second - within_first + across) / curvature, 0.0, 1.0))


def weights_by_error(log_densities: Array, errors: Array, n_values: float) -> Array:
    """Weights of a mixture that maximise ``sum_n log sum_k w_k p_nk - (n_values / 2) log mean (sum_k w_k e_k)^2``.

    Densities of signals held out, shape (n_signals, n_models), say how good the mixture's law is, and the squared error
    of its mean, from those of the models' values, shape (..., n_models), how good its mean is. Densities of single
    values would reward the means of the signals that vary least. By exponentiated gradients from equal weights.
    """
    scaled = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    flat = errors.reshape(-1, errors.shape[-1])
    products = flat.T @ flat / len(flat)
    weights, step = np.full(errors.shape[-1], 1 / errors.shape[-1]), 1 / (len(scaled) + n_values)

    def score(weights: Array) -> float:
        return float(np.sum(np.log(scaled @ weights)) - 0.5 * n_values * np.log(weights @ products @ weights))

    best = score(weights)
    for _ in range(MOST_STEPS):
        crossed = products @ weights
        slope = (1 / (scaled @ weights)) @ scaled - n_values * crossed / (weights @ crossed)
        moved = weights * np.exp(np.maximum(step * (slope - slope.max()), -50.0))
        moved /= moved.sum()
        found = score(moved)
        if found < best:
            step /= 2
            continue
        change = float(np.max(np.abs(moved - weights)))
        weights, best, step = moved, found, 1.5 * step
        if change < WEIGHT_TOLERANCE:
            break
    return weights
