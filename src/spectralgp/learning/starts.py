"""Where searches for hyperparameters start: at typical values, and anywhere."""

from __future__ import annotations

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.learning.objective import Objective

SPREAD = 2.0  # standard deviation of random graph parameters about typical ones, in their units
WIDEST = float(np.log(30.0))  # furthest that random input parameters lie from typical ones, on their logarithmic scale
FIRST_NOISE = 0.2  # of the signals' variance


def starting_points(objective: Objective) -> list[Array]:
    """Every start of the graph kernel with every start of the input kernel; the last is at the inputs' own scale."""
    task, bounds = objective.task, objective.bounds
    graph_thetas = objective.graph_kernel.starting_points(objective.spectrum, task.variance)
    input_thetas = task.input_kernel.starting_points(task.inputs)
    noise = task.known_noise or FIRST_NOISE * task.variance
    starts = [objective.join(graph, inputs, noise) for graph in graph_thetas for inputs in input_thetas]
    return [np.clip(start, bounds[:, 0], bounds[:, 1]) for start in starts]


def random_start(objective: Objective, random_state: np.random.Generator) -> Array:
    """A point within the bounds, where filters need not be positive.

    Graph parameters are normal about one of the kernel's own starts, input parameters log-uniform about where they are
    expected, and the noise is log-uniform between its lower bound and the signals' variance.
    """
    task, kernel = objective.task, objective.graph_kernel
    low, high = objective.bounds.T
    graph_thetas = kernel.starting_points(objective.spectrum, task.variance)
    start = graph_thetas[random_state.integers(len(graph_thetas))]
    graph_theta = random_state.normal(start, SPREAD * kernel.theta_units(task.variance))
    centres = task.input_kernel.expected_theta(task.inputs)
    own = slice(kernel.theta.size, kernel.theta.size + centres.size)
    input_theta = random_state.uniform(
        np.clip(centres - WIDEST, low[own], high[own]), np.clip(centres + WIDEST, low[own], high[own])
    )
    lowest = task.noise_bounds[0]
    log_noise = random_state.uniform(lowest, max(lowest, np.log(task.variance)))
    return np.clip(objective.join(graph_theta, input_theta, float(np.exp(log_noise))), low, high)
