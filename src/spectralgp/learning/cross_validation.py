"""Held-out predictive densities from folds that are learnt from scratch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from spectralgp._checks import Array
from spectralgp.graph import Graph
from spectralgp.graph_kernels import GraphKernel
from spectralgp.inputs import NewInputs
from spectralgp.learning.laplace import hyperparameter_draws
from spectralgp.learning.learn import Solver, learn_all
from spectralgp.learning.objective import Task
from spectralgp.learning.sqp import Progress
from spectralgp.posterior import (
    AnyPosterior,
    ChebyshevPosterior,
    ChebyshevPrediction,
    Posterior,
    Prediction,
    condition,
)
from spectralgp.spectrum import LargeSignals

Indices = NDArray[np.intp]


def held_out_log_densities(
    task: Task,
    graph: Graph,
    graph_kernels: Sequence[GraphKernel],
    *,
    n_folds: int,
    n_draws: int,
    random_state: np.random.Generator,
    solver: Solver = "sqp",
    max_iterations: int = 500,
    progress: Progress | None = None,
) -> Array:
    """Log predictive density of each signal under each kernel, learnt without the signal's fold.

    Every fold starts cold: one that started from the fit to all signals would remember them, and would favour
    the kernels that overfit. With `n_draws` each kernel is averaged over that many draws of its hyperparameters.

    Returns
    -------
    ndarray of shape (n_signals, n_kernels)
    """
    n_signals = task.signals.shape[0]
    densities = np.empty((n_signals, len(graph_kernels)))
    for held_out in np.array_split(random_state.permutation(n_signals), n_folds):
        kept = np.setdiff1d(np.arange(n_signals), held_out)
        part = _subset(task, kept)
        fits = learn_all(part, graph, graph_kernels, solver=solver, max_iterations=max_iterations, progress=progress)
        for column, fit in enumerate(fits):
            models = hyperparameter_draws(part, fit, n_draws, random_state) if n_draws else (fit.model,)
            logs = []
            for model in models:
                posterior = condition(model, part.inputs, part.signals)
                new = model.input_kernel.between(task.inputs, kept, held_out)
                logs.append(_log_densities(posterior, new, task.signals, kept, held_out))
            densities[held_out, column] = logsumexp(logs, axis=0) - np.log(len(models))
    return densities


def _log_densities(
    posterior: AnyPosterior, new: NewInputs, signals: Array | LargeSignals, kept: Indices, held_out: Indices
) -> Array:
    """Log density of each held-out signal alone."""
    if isinstance(signals, LargeSignals):
        prediction = ChebyshevPrediction(cast(ChebyshevPosterior, posterior), new)
        return prediction.held_out_log_density(signals, kept, held_out)
    return Prediction(cast(Posterior, posterior), new).log_density(signals[held_out], joint=False)


def _subset(task: Task, rows: Indices) -> Task:
    """The same task with some of the signals."""
    inputs = task.input_kernel.subset(task.inputs, rows)
    signals = task.signals.subset(rows) if isinstance(task.signals, LargeSignals) else task.signals[rows]
    return dataclasses.replace(task, inputs=inputs, signals=signals)
