"""Weights of models that are compared on what was held out: by density, and between densities that do not compare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralgp._basics.checks import Array


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
