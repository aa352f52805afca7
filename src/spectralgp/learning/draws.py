"""Uncertainty of the hyperparameters: draws from their approximate posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space
from scipy.special import log_ndtr, ndtri_exp

from spectralgp._basics.checks import Array
from spectralgp.fields import GraphGP
from spectralgp.learning.fit import Fit, active_constraints, certify
from spectralgp.learning.missing import objective_of
from spectralgp.learning.objective import MIN_PRECISION, Objective, Task, told_apart

DIFFERENCE = 1e-4  # in units of a parameter, of the gradients that give the curvature
MAX_TRIES = 50  # for each draw that violates nothing


@dataclass(frozen=True, eq=False)
class Draws:
    """Models with drawn hyperparameters; the last `n_stand_ins` of them are the fit itself, for want of a draw."""

    models: tuple[GraphGP, ...]
    n_stand_ins: int = 0


def hyperparameter_draws(task: Task, fit: Fit, n_draws: int, random_state: np.random.Generator) -> Draws:
    """Models with hyperparameters drawn from Laplace's approximation to their posterior.

    Where no constraint is active that is a normal distribution about the fit, with the curvature of the log posterior.
    At an active constraint or bound the log posterior falls linearly into the allowed region, with the multiplier as
    its slope: the slack is drawn from that exponential, cut off further by the curvature along it, and everything else
    from the normal distribution on the face where the constraint holds. Draws that violate another are drawn again.
    """
    objective = objective_of(task, fit.model)
    laplace = _Laplace(objective, objective.point(fit.model))
    models: list[GraphGP] = []
    for _ in range(MAX_TRIES * n_draws):
        if len(models) == n_draws:
            break
        x = laplace.draw(random_state)
        if x is not None:
            models.append(told_apart(task, objective.model(x)))
    n_stand_ins = n_draws - len(models)
    return Draws((*models, *[fit.model] * n_stand_ins), n_stand_ins)


class _Laplace:
    """Normal distribution on the face of the active constraints, with exponential slacks off it."""

    def __init__(self, objective: Objective, mode: Array) -> None:
        self.objective, self.mode, self.units = objective, mode, objective.units
        self.low, self.high = objective.bounds.T
        multipliers = np.array(certify(objective, mode).multipliers)
        held = multipliers > 0
        rows = active_constraints(objective, mode)[0][held] * self.units
        self.multipliers = multipliers[held]
        values, vectors = np.linalg.eigh(self._curvature())
        values = np.maximum(values, MIN_PRECISION)  # so that no draw strays further than a unit
        curvature, covariance = (vectors * values) @ vectors.T, (vectors / values) @ vectors.T
        face = null_space(rows) if rows.size else np.eye(mode.size)
        values, vectors = np.linalg.eigh(face.T @ curvature @ face)
        self.root = face @ (vectors / np.sqrt(values))
        # moves one slack at a time, in a direction that the curvature does not mix with those of the face
        self.inward = covariance @ rows.T @ np.linalg.pinv(rows @ covariance @ rows.T)
        self.precisions = np.einsum("ij,ik,kj->j", self.inward, curvature, self.inward)

    def _curvature(self) -> Array:
        """Negative second derivatives of the log posterior in units of the parameters, by differences within bounds."""
        mode, units = self.mode, self.units
        curvature = np.empty((mode.size, mode.size))
        for index, unit in enumerate(units):
            ends = np.array([mode, mode])
            reach = np.array([-DIFFERENCE, DIFFERENCE]) * unit
            ends[:, index] = np.clip(mode[index] + reach, self.low[index], self.high[index])
            width = (ends[1, index] - ends[0, index]) / unit
            behind, ahead = (self.objective.evaluate(end)[1] for end in ends)
            curvature[index] = (behind - ahead) * units / width if width > 0 else 0.0
        return (curvature + curvature.T) / 2

    def draw(self, random_state: np.random.Generator) -> Array | None:
        """One draw; None if it violates a constraint that is not active at the mode."""
        step = self.root @ random_state.standard_normal(self.root.shape[1])
        if self.multipliers.size:
            # slacks s >= 0 with density exp(-multiplier s - precision s^2 / 2): a normal about -multiplier / precision,
            # cut off at zero, by inversion of its upper tail
            roots = np.sqrt(self.precisions)
            starts = self.multipliers / roots
            tails = log_ndtr(-starts) + np.log1p(-random_state.random(starts.size))
            step = step + self.inward @ (np.maximum(-ndtri_exp(tails) - starts, 0.0) / roots)
        x = self.mode + self.units * step
        inside = np.all((x >= self.low) & (x <= self.high))
        return x if inside and all(np.all(one.rows @ x >= 0) for one in self.objective.positivity(x)) else None
