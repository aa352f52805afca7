"""Ascent from one start: quadratic programs with the Fisher information as their curvature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from spectralgp._basics.checks import Array
from spectralgp.learning.fisher import precision_at
from spectralgp.learning.fit import certify
from spectralgp.learning.objective import Objective

# of a filter's largest value, by which it may fall below zero until it is lifted: no evaluation depends on it, and the
# point where a filter touches zero, which large multipliers stand on, is known to its root
VIOLATION = 1e-12
STATIONARITY = 1e-3  # residual of the gradient per root of the number of observations, where a fit counts as converged
GAIN = 1e-10  # nats for each observation that a further step promises, where an ascent stops
ROUNDING = 1e-14  # of the objective
FAR = 10.0  # nats that a step promises, above which its end has a curvature of its own
SUFFICIENT = 1e-4  # share of the promised gain that a step must keep
LONGEST_STEP = 1.0  # units of a parameter
KEPT = 0.2  # share of a filter that a step must keep where it is above zero
TOUCHING = 1e-3  # of a filter's largest value, below which a step may take it to zero
MOST_ROUNDS = 30  # of adding constraints that a step would violate
MOST_CUTS = 25  # of a step that does not lead up
MOST_RESTARTS = 3  # from a curvature that misled the ascent


@dataclass(frozen=True, eq=False)
class Ascent:
    """Where an ascent ended.

    Parameters
    ----------
    x : ndarray
        The highest point.
    value : float
        Objective there.
    detail : str
        Why it ended.
    is_near : bool
        Whether the maximum promises no more than was asked for.
    """

    x: Array
    value: float
    detail: str
    is_near: bool = True


class _Constraints:
    """Bounds, and constraints on filters that are added where a step would violate them.

    A filter is lowest at a few points, so a few linear constraints stand for those at every eigenvalue. No step takes
    a filter from well above zero to zero at once: there the slope in its power is lost, and with it the way back.
    """

    def __init__(self, objective: Objective, x: Array) -> None:
        self.objective, self.units = objective, objective.units
        self.low, self.high = objective.bounds.T
        has_low, has_high, identity = np.isfinite(self.low), np.isfinite(self.high), np.eye(x.size)
        self.bounds = np.vstack([identity[has_low], -identity[has_high]])
        self.least = np.concatenate([self.low[has_low], -self.high[has_high]])
        first = objective.split(x)[0].positivity(objective.spectrum, coarse=True)
        self.filters = [one.padded(0, x.size).rows for one in first]

    def step(self, x: Array, gradient: Array, precision: Array) -> Array:
        """The step that a quadratic model promises most of, to a point that violates nothing."""
        root = self._root(precision)
        peaks = [float(np.max(own @ x)) for own in self.filters]
        for _ in range(MOST_ROUNDS):
            rows = np.vstack([self.bounds, *self.filters])
            responses = [_least(own @ x, peak) for own, peak in zip(self.filters, peaks, strict=True)]
            step = _quadratic_program(root, gradient, rows, np.concatenate([self.least, *responses]) - rows @ x)
            if not self._add_violated(x, x + step, peaks):
                break
        return np.clip(x + step, self.low, self.high) - x

    def _root(self, precision: Array) -> Array:
        """A square root of the inverse, of which rounding does not make a complex one."""
        values, vectors = np.linalg.eigh(precision * np.outer(self.units, self.units))
        return self.units[:, None] * vectors / np.sqrt(np.maximum(values, ROUNDING * values[-1]))

    def _add_violated(self, x: Array, new: Array, peaks: list[float]) -> bool:
        """Add rows where filters fall furthest, among the points where they fall lower than they may."""
        has_violated = False
        for index, filtered in enumerate(self.objective.positivity(new)):
            response = filtered.rows @ new
            spare = response - _least(filtered.rows @ x, peaks[index])
            padded = np.concatenate([[np.inf], spare, [np.inf]])
            minima = (spare <= padded[:-2]) & (spare <= padded[2:])
            violated = filtered.rows[minima & (spare < -VIOLATION * np.max(np.abs(response)))]
            # what was asked for already and is missed by rounding is not met by asking again
            is_known = np.any(np.all(violated[:, None] == self.filters[index], axis=2), axis=1)
            self.filters[index] = np.vstack([self.filters[index], violated[~is_known]])
            has_violated = has_violated or not np.all(is_known)
        return has_violated


def _least(response: Array, peak: float) -> Array:
    """How low a step may take a filter: to a share of what it is, or to zero where it is nearly there."""
    return np.where(response > TOUCHING * peak, KEPT * response, 0.0)


def _quadratic_program(root: Array, gradient: Array, rows: Array, least: Array) -> Array:
    """The step ``d`` with ``rows @ d >= least`` that maximises ``gradient @ d - |z|^2 / 2``, where ``d = root @ z``.

    Less the free optimum, ``z`` is the shortest vector in a polyhedron, which non-negative least squares finds (Lawson
    and Hanson, Solving Least Squares Problems, chapter 23).
    """
    free, normals = root.T @ gradient, rows @ root
    lengths = np.linalg.norm(normals, axis=1)
    normals = normals / lengths[:, None]
    missing = least / lengths - normals @ free
    furthest = float(np.max(missing, initial=0.0))
    if furthest <= 0:
        step: Array = root @ free
        return step
    system = np.vstack([normals.T, missing / furthest])
    multipliers, _ = nnls(system, np.eye(free.size + 1)[-1], maxiter=50 * system.size)
    active = multipliers > 0
    step = root @ (free + np.linalg.lstsq(normals[active], missing[active])[0])
    return step


def stationarity_limit(objective: Objective) -> float:
    """Residual of the gradient that counts as zero: a thousandth of its standard deviation over draws of the data."""
    return float(STATIONARITY * np.sqrt(objective.task.signals.size))


def _fresh_precision(objective: Objective, x: Array) -> Array:
    precision = precision_at(objective, x)
    return np.diag(objective.task.signals.size / objective.units**2) if precision is None else precision


def _updated(precision: Array, step: Array, change: Array) -> Array:
    """Damped update of Broyden, Fletcher, Goldfarb, Shanno and Powell, which stays positive definite."""
    stepped = precision @ step
    curvature, expected = float(step @ change), float(step @ stepped)
    if curvature < 0.2 * expected:
        share = 0.8 * expected / (expected - curvature)
        change = share * change + (1 - share) * stepped
        curvature = float(step @ change)
    return precision + np.outer(change, change) / curvature - np.outer(stepped, stepped) / expected


def ascend(objective: Objective, start: Array, max_iterations: int, enough: float | None = None) -> Ascent:
    """Constrained local maximum from one start; or a point from which a step promises no more than `enough` nats.

    Far from it the curvature is taken anew at every step; near it, it is updated by the gradients, which know what the
    expected curvature does not. Updates that lead nowhere are forgotten.
    """
    if start.size == 0:
        return Ascent(start, objective.evaluate(start)[0], "every hyperparameter is fixed")
    size, limit = objective.task.signals.size, stationarity_limit(objective) / 2
    x = np.clip(start, *objective.bounds.T)
    constraints, precision = _Constraints(objective, x), _fresh_precision(objective, x)
    x = x + constraints.step(x, np.zeros(x.size), precision)
    value, gradient = objective.evaluate(x)
    n_restarts, is_fresh, detail = 0, True, "iteration limit reached"
    for _ in range(max_iterations):
        step = constraints.step(x, gradient, precision)
        promised = float(gradient @ step)
        if enough is not None and promised <= enough:
            return Ascent(x, value, "no step promises more")
        if promised <= GAIN * size and certify(objective, x).stationarity <= limit:
            return Ascent(x, value, "no step promises more")
        found = None if promised <= ROUNDING * abs(value) else _climb(objective, x, value, step, promised)
        if found is None and (is_fresh or n_restarts == MOST_RESTARTS):
            detail = "no step leads up"
            break
        last, before = x, gradient
        if found is None:
            n_restarts += 1
        else:
            x, value, gradient = found
        is_fresh = found is None or promised > FAR
        precision = _fresh_precision(objective, x) if is_fresh else _updated(precision, x - last, before - gradient)
    return Ascent(x, value, detail, is_near=False)


def _climb(
    objective: Objective, x: Array, value: float, step: Array, promised: float
) -> tuple[Array, float, Array] | None:
    """The point along a step that keeps a share of what it promises; None if there is none."""
    longest = float(np.max(np.abs(step) / objective.units))
    share = min(1.0, LONGEST_STEP / longest)
    for _ in range(MOST_CUTS):
        new = x + share * step
        if np.array_equal(new, x):
            return None
        new_value, gradient = objective.evaluate(new)
        if new_value >= value + SUFFICIENT * share * promised:
            return new, new_value, gradient
        # the maximum of the parabola through what is known, within reason
        bend = 2 * (value + share * promised - new_value)
        best = share * share * promised / bend if np.isfinite(bend) else 0.0
        share = float(np.clip(best, 0.1 * share, 0.5 * share))
    return None
