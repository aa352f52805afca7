"""Fitting: kernels learnt, weighed on held-out folds, drawn, and conditioned on the signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from spectralgp._arrays import few_threads
from spectralgp._checks import Array
from spectralgp.graph_kernels import GraphKernel
from spectralgp.learning import (
    Draws,
    Fit,
    Solver,
    Task,
    held_out_log_densities,
    hyperparameter_draws,
    learn_all,
    n_steps,
)
from spectralgp.mixture import Mixture, stacking_weights
from spectralgp.posterior import Posterior, condition


@dataclass(frozen=True)
class Stacking:
    """How kernels are weighed and averaged.

    Parameters
    ----------
    n_folds : int
        Folds for the weights of several kernels.
    n_draws : int
        Draws of the hyperparameters of each kernel that predictions are averaged over; zero for the best values alone.
    """

    n_folds: int = 5
    n_draws: int = 0


@dataclass(frozen=True, eq=False)
class FittedModels:
    """Learnt kernels with their weights, and the posterior that predicts with all of them.

    Parameters
    ----------
    fits : tuple of Fit
        One a kernel, of the signals as learning saw them.
    weights : ndarray of shape (n_kernels,)
        They add up to one.
    draws : tuple of Draws
        One a kernel: the models that stand for it in the posterior.
    posterior : Posterior or Mixture
        Conditioned on all signals.
    """

    fits: tuple[Fit, ...]
    weights: Array
    draws: tuple[Draws, ...]
    posterior: Posterior | Mixture

    @property
    def log_likelihood(self) -> float:
        """Log marginal likelihood of the mixture."""
        parts = [np.log(w) + fit.log_likelihood for w, fit in zip(self.weights, self.fits, strict=True) if w > 0]
        return float(logsumexp(parts))

    @property
    def n_evaluations(self) -> int:
        """Evaluations of the likelihood in all fits; stages that fits share count once."""
        return sum(stage.n_evaluations for stage in {stage: None for fit in self.fits for stage in fit.stages})


def fit_models(
    task: Task,
    kernels: Sequence[GraphKernel],
    solver: Solver,
    stacking: Stacking,
    random_state: np.random.Generator,
) -> FittedModels:
    """Learn kernels, weigh them by what they predict of signals held out, and condition them on all signals.

    Parameters
    ----------
    task : Task
        Data and settings.
    kernels : sequence of GraphKernel
        Several are stacked: the mixture has the weights that score best on held-out folds.
    solver : Solver
        How to learn.
    stacking : Stacking
        Folds and draws.
    random_state : numpy.random.Generator
        For folds and draws, each from a stream of its own.
    """
    folds, draws = random_state.spawn(2)
    with few_threads(task.signals.shape[0]):
        fits = tuple(learn_all(task, kernels, solver))
        drawn = tuple(
            hyperparameter_draws(task, fit, stacking.n_draws, stream) if stacking.n_draws else Draws((fit.model,))
            for fit, stream in zip(fits, draws.spawn(len(fits)), strict=True)
        )
        weights = np.ones(1)
        if len(kernels) > 1:
            n_folds = min(stacking.n_folds, task.signals.shape[0])
            weights = stacking_weights(
                held_out_log_densities(
                    task, kernels, n_folds=n_folds, n_draws=stacking.n_draws, random_state=folds, solver=solver
                )
            )
        members = [
            (weight / len(one.models), condition(model, task.inputs, task.signals))
            for weight, one in zip(weights, drawn, strict=True)
            if weight > 0
            for model in one.models
        ]
    shares, posteriors = np.array([share for share, _ in members]), tuple(posterior for _, posterior in members)
    posterior = posteriors[0] if len(members) == 1 else Mixture(shares, posteriors)
    return FittedModels(fits, weights, drawn, posterior)


def n_fitting_steps(kernels: Sequence[GraphKernel], solver: Solver, n_folds: int) -> int:
    """How many steps `fit_models` reports."""
    return n_steps(kernels, solver) * (1 + n_folds if len(kernels) > 1 else 1)
