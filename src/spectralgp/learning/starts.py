"""Where searches for hyperparameters start."""

from __future__ import annotations

import numpy as np

from spectralgp._checks import Array
from spectralgp.learning.objective import Objective

FIRST_NOISE = 0.2  # of the signals' variance


def starting_points(objective: Objective) -> list[Array]:
    """Every start of the graph kernel with every start of the input kernel; the last is at the inputs' own scale."""
    task, bounds = objective.task, objective.bounds
    graph_thetas = objective.graph_kernel.starting_points(objective.spectrum, task.variance)
    input_thetas = task.input_kernel.starting_points(task.inputs)
    noise = task.noise_variance or FIRST_NOISE * task.variance
    starts = [objective.join(graph, inputs, noise) for graph in graph_thetas for inputs in input_thetas]
    return [np.clip(start, bounds[:, 0], bounds[:, 1]) for start in starts]
