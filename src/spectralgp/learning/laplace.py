"""Uncertainty of the hyperparameters: draws from their approximate posterior."""

from __future__ import annotations

import numpy as np

from spectralgp._checks import Array
from spectralgp.graph_kernels import Polynomial
from spectralgp.learning.fit import Fit, lowest_points
from spectralgp.learning.objective import Objective, Task
from spectralgp.model import GraphGP

STEP = 1e-4  # of the central differences, in units of the parameter
LEAST_PRECISION = 1.0  # in a direction the data say nothing about, so that no draw strays further than its unit
TRIES = 50  # draws of a filter for each one that is not negative anywhere


def hyperparameter_draws(task: Task, fit: Fit, n_draws: int, random_state: np.random.Generator) -> tuple[GraphGP, ...]:
    """Models with hyperparameters drawn from Laplace's approximation to their posterior.

    A normal distribution about the fit, with the curvature of the log posterior (by central differences of its exact
    gradient), truncated to filters that are non-negative and to the bounds. The fit itself stands in for draws that
    cannot be had.
    """
    model = fit.model
    objective = Objective(task, model.graph_kernel, model.spectrum)
    mode = objective.join(model.graph_kernel.theta, model.input_kernel.theta, model.noise_variance)
    units = np.ones(mode.size)
    if isinstance(model.graph_kernel, Polynomial):
        units[: objective.n_graph] = np.sqrt(task.variance)
    root = _root_covariance(objective, mode, units)
    low, high = objective.bounds.T
    draws: list[GraphGP] = []
    for _ in range(TRIES * n_draws):
        if len(draws) == n_draws:
            break
        x = np.clip(mode + units * (root @ random_state.standard_normal(mode.size)), low, high)
        if _is_valid(objective, x):
            draws.append(objective.model(x))
    return (*draws, *[model] * (n_draws - len(draws)))


def _root_covariance(objective: Objective, mode: Array, units: Array) -> Array:
    """A square root of the inverse of the curvature, in the given units of the parameters."""
    curvature = np.empty((mode.size, mode.size))
    for index, unit in enumerate(units):
        shift = np.zeros(mode.size)
        shift[index] = STEP * unit
        ahead, behind = objective.evaluate(mode + shift)[1], objective.evaluate(mode - shift)[1]
        curvature[index] = (behind - ahead) * units / (2 * STEP)
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
    return vectors / np.sqrt(np.maximum(values, LEAST_PRECISION))


def _is_valid(objective: Objective, x: Array) -> bool:
    """Whether the filter at ``x`` is non-negative wherever its constraint asks for it."""
    kernel = objective.split(x)[0]
    if not isinstance(kernel, Polynomial):
        return True
    return bool(np.all(kernel.response(lowest_points(kernel, objective.spectrum)) >= 0))
