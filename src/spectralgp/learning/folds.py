"""Held-out predictive densities from folds that never saw what they predict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from spectralgp._checks import Array
from spectralgp.graph_kernels import GraphKernel
from spectralgp.learning.draws import hyperparameter_draws
from spectralgp.learning.families import learn_all
from spectralgp.learning.fit import Fit
from spectralgp.learning.solver import Solver
from spectralgp.learning.task import Task
from spectralgp.posterior import Prediction, condition


def held_out_log_densities(
    task: Task,
    kernels: Sequence[GraphKernel],
    *,
    n_folds: int,
    n_draws: int,
    random_state: np.random.Generator,
    solver: Solver | None = None,
) -> Array:
    """Log predictive density of each signal under each kernel, learnt without the signal's fold.

    The first fold starts cold, and the others from its solutions. None starts from the fit to all signals: it would
    remember what it holds out, and would favour the kernels that overfit. Without a prior there are so many local
    maxima that even another fold's solution leads to one that remembers, so that every fold starts cold.

    With `n_draws` each kernel is averaged over that many draws of its hyperparameters.

    Returns
    -------
    ndarray of shape (n_signals, n_kernels)
    """
    n_signals = task.signals.shape[0]
    densities = np.empty((n_signals, len(kernels)))
    first: list[Fit] | None = None
    shuffled, *streams = random_state.spawn(1 + n_folds)
    for held_out, stream in zip(np.array_split(shuffled.permutation(n_signals), n_folds), streams, strict=True):
        kept = np.setdiff1d(np.arange(n_signals), held_out)
        part, others, fold = task.fold(kept, held_out)
        fits = learn_all(part, kernels, solver, like=first)
        first = None if task.prior is None else first or fits
        for column, (fit, own) in enumerate(zip(fits, stream.spawn(len(kernels)), strict=True)):
            models = hyperparameter_draws(part, fit, n_draws, own).models if n_draws else (fit.model,)
            logs = []
            for model in models:
                posterior = condition(model, part.inputs, part.signals)
                logs.append(Prediction(posterior, fold.new_inputs(model.input_kernel)).log_density_of(others))
            densities[held_out, column] = logsumexp(logs, axis=0) - np.log(len(models))
    return densities
