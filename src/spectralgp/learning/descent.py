"""Gradient descent with the paper's rule for the learning rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spectralgp._basics.checks import Array, Indices

ValueAndGradient = Callable[[Array], tuple[float, Array]]

RATES = 10.0 ** np.arange(2, -13, -1)
TRIAL = 5  # steps that must all descend for a learning rate to be taken
LONGEST_STEP = 5.0  # no log parameter and no filter on unit-scale signals should leap further


@dataclass(frozen=True)
class Limits:
    """Most iterations of each stage: ascent, dual steps, and descents within a dual step."""

    ascent: int = 3000
    dual: int = 1000
    descent: int = 500

    @classmethod
    def from_iterations(cls, max_iterations: int) -> Limits:
        """Limits in proportion to one number; 500 gives the defaults."""
        return cls(6 * max_iterations, 2 * max_iterations, max_iterations)


def learning_rate(
    function: ValueAndGradient, start: Array, group: Indices, bounds: tuple[Array, Array] | None = None
) -> float:
    """Largest power of ten with which every one of a few steps in one group of parameters descends."""
    low, high = bounds or unbounded(start.size)
    first = function(start)
    for rate in RATES:
        x, (value, gradient) = start, first
        for _ in range(TRIAL):
            proposal = x.copy()
            proposal[group] -= rate * gradient[group]
            proposal = np.clip(proposal, low, high)
            if np.max(np.abs(proposal - x)) > LONGEST_STEP:
                break
            new_value, new_gradient = function(proposal)
            if not new_value <= value:
                break
            x, value, gradient = proposal, new_value, new_gradient
        else:
            return float(rate)
    return float(RATES[-1])


def descend(
    function: ValueAndGradient,
    start: Array,
    rates: Array,
    *,
    limit: int,
    tolerance: float,
    bounds: tuple[Array, Array] | None = None,
) -> tuple[Array, bool]:
    """Gradient descent with a rate for each parameter, all divided by ten when a step fails to descend.

    Returns the last point, and whether the projected gradient fell below the tolerance.
    """
    low, high = bounds or unbounded(start.size)
    x = np.clip(start, low, high)
    value, gradient = function(x)
    for _ in range(limit):
        free = ((x > low) | (gradient < 0)) & ((x < high) | (gradient > 0))
        if np.max(np.abs(gradient * free), initial=0.0) <= tolerance:
            return x, True
        proposal = np.clip(x - rates * gradient, low, high)
        new_value, new_gradient = function(proposal)
        if new_value < value:
            x, value, gradient = proposal, new_value, new_gradient
            continue
        rates = rates / 10
        if np.max(rates * np.abs(gradient)) < 1e-15 * max(1.0, float(np.max(np.abs(x)))):
            break
    return x, False


def group_rates(
    function: ValueAndGradient,
    start: Array,
    groups: Sequence[Indices],
    bounds: tuple[Array, Array] | None = None,
) -> Array:
    """The learning rate of each parameter, found for one group of them at a time."""
    rates = np.zeros(start.size)
    for group in groups:
        rates[group] = learning_rate(function, start, group, bounds)
    return rates


def unbounded(size: int) -> tuple[Array, Array]:
    """Bounds that bind nothing."""
    return np.full(size, -np.inf), np.full(size, np.inf)
