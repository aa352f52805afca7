"""Fitting: candidates learnt, weighed on held-out folds, drawn, and conditioned on the signals."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy.special import logsumexp

from spectralgp._basics.arrays import few_threads
from spectralgp._basics.checks import Array, as_integer
from spectralgp._basics.progress import quietly, report
from spectralgp.fields import GraphGP, Mixture, Posterior
from spectralgp.fields.stacking import stacking_weights
from spectralgp.learning import (
    Candidate,
    Draws,
    Fit,
    Folds,
    HeldOut,
    Solver,
    hyperparameter_draws,
    learn_all,
)
from spectralgp.learning.candidates import MOST_COMPARED

SHOWN_DRAWS, SHOWN_SEED = 32, 1
MOST_MEMBERS = 2  # of a choice, where there are so many signals that each takes long to learn from
SMALLEST_SHARE = 0.01  # weight of a member that was found by choice, below which it is left out

Plan: TypeAlias = Generator[list[Candidate], Array, None]
"""Candidates by stages: each stage is chosen knowing the held-out scores of the one before."""


@dataclass(frozen=True)
class Stacking:
    """How models are weighed and averaged.

    Parameters
    ----------
    n_folds : int, default=5
        Folds for the weights of stacked models. Where the library chooses what to stack, it compares models on no more
        than 400 signals, and in no more folds than hold out 60 of them, or 30 of 500 nodes and more.
    n_draws : int, optional
        Average predictions over this many draws of the hyperparameters from Laplace's approximation to their
        posterior, of a single model too; 0 uses the best values alone. If not given, 16 for models that are stacked
        on an exact spectrum without shrinkage, else 0.
    n_jobs : int, optional
        Threads that learn folds side by side on an exact spectrum, as joblib counts them; one if not given. Results are
        the same.

    Examples
    --------
    >>> from spectralgp import GraphGPRegressor, Stacking
    >>> GraphGPRegressor(stacking=Stacking(n_folds=10)).stacking.n_folds
    10
    """

    n_folds: int = 5
    n_draws: int | None = None
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        """Check every setting."""
        as_integer(self.n_folds, "n_folds", 2)
        if self.n_draws is not None:
            as_integer(self.n_draws, "n_draws", 0)


@dataclass(frozen=True)
class Tried:
    """A model that was compared with others on held-out signals.

    Parameters
    ----------
    name : str
        What it is, for people, with its Laplacian.
    score : float
        Mean log density of a held-out signal, in nats.
    weight : float
        In the mixture; zero where it was left out.
    """

    name: str
    score: float
    weight: float


@dataclass(frozen=True, eq=False)
class FittedModels:
    """Learnt models with their weights, and the posterior that predicts with all of them.

    Parameters
    ----------
    candidates : tuple of Candidate
        What was learnt; those that a plan tried and that got no weight are left out.
    raw_fits : tuple of Fit
        One a candidate, of the signals as learning saw them.
    weights : ndarray of shape (n_candidates,)
        They add up to one.
    draws : tuple of Draws
        One a candidate: the models that stand for it in the posterior, of the signals as learning saw them.
    posterior : Posterior or Mixture
        Conditioned on all signals.
    tried : tuple of Tried
        All models that were compared, those without weight too; none where there was one model only.
    """

    candidates: tuple[Candidate, ...]
    raw_fits: tuple[Fit, ...]
    weights: Array
    draws: tuple[Draws, ...]
    posterior: Posterior | Mixture
    tried: tuple[Tried, ...] = ()

    @cached_property
    def fits(self) -> tuple[Fit, ...]:
        """The same in the units that the signals came in."""
        pairs = zip(self.raw_fits, self.candidates, strict=True)
        return tuple(fit.in_units(candidate.task.signals) for fit, candidate in pairs)

    @cached_property
    def shown(self) -> tuple[tuple[float, GraphGP, float], ...]:
        """Models with drawn hyperparameters, for bands around what was learnt: weight, model, and spread of its units.

        Those that predict, where there are several to a candidate; else `SHOWN_DRAWS` of each, by a seed of their own.
        """
        parts: list[tuple[float, GraphGP, float]] = []
        for number, (weight, fit, drawn) in enumerate(zip(self.weights, self.raw_fits, self.draws, strict=True)):
            task, models = self.candidates[number].task, drawn.models
            if weight > 0 and len(models) == 1:
                with few_threads(task.signals.shape[0]):
                    stream = np.random.default_rng([SHOWN_SEED, number])
                    models = hyperparameter_draws(task, fit, SHOWN_DRAWS, stream).models
            parts += [(float(weight) / len(models), model, task.signals.units.spread) for model in models]
        return tuple(parts)

    def conditioned_anew(self, candidates: Sequence[Candidate]) -> FittedModels:
        """The same models conditioned on other data, that of the given candidates."""
        draws, posterior = conditioned(candidates, self.weights, self.draws)
        return replace(self, candidates=tuple(candidates), draws=draws, posterior=posterior)

    @property
    def log_likelihood(self) -> float:
        """Log marginal likelihood of the mixture."""
        parts = [np.log(w) + fit.log_likelihood for w, fit in zip(self.weights, self.fits, strict=True) if w > 0]
        return float(logsumexp(parts))

    @property
    def n_stand_ins(self) -> int:
        """Draws of the hyperparameters that broke a constraint, so that the best values stand in for them."""
        pairs = zip(self.draws, self.weights, strict=True)
        return sum(draws.n_stand_ins for draws, weight in pairs if weight > 0)

    @property
    def n_evaluations(self) -> int:
        """Evaluations of the likelihood in all fits; stages that fits share count once."""
        return sum(stage.n_evaluations for stage in {stage: None for fit in self.fits for stage in fit.stages})


def at_once(candidates: Sequence[Candidate]) -> Plan:
    """The plan of trying some candidates and no others."""
    yield list(candidates)


def fit_models(
    plan: Plan, solver: Solver, stacking: Stacking, is_choice: bool, random_state: np.random.Generator
) -> FittedModels:
    """Learn candidates, weigh them by what they predict of signals held out, and condition them on all signals.

    Parameters
    ----------
    plan : Plan
        Candidates by stages. Several are stacked: the mixture has the weights that score best on held-out folds.
    solver : Solver
        How to learn.
    stacking : Stacking
        Folds and draws.
    is_choice : bool
        Whether candidates are a choice of the library's, of which only those of use are kept.
    random_state : numpy.random.Generator
        For folds and draws, each from a stream of its own.
    """
    of_folds, of_draws = random_state.spawn(2)
    candidates = next(plan)
    n_signals = candidates[0].task.signals.shape[0]
    with few_threads(n_signals):
        weights, like, is_stacked = np.ones(1), [], len(candidates) > 1
        tried: tuple[Tried, ...] = ()
        if is_stacked:
            folds = _folds(candidates[0].task.signals.shape, stacking, is_choice, of_folds)
            candidates, held_out = _tried(plan, candidates, folds, solver)
            weights = _weights(held_out, is_choice, most=MOST_MEMBERS if n_signals > MOST_COMPARED else None)
            tried = _compared(candidates, held_out, weights)
            if is_choice:  # only what is of use is learnt from all signals
                kept = np.flatnonzero(weights)
                candidates, weights = [candidates[index] for index in kept], weights[kept]
                like = [held_out.fits[index] for index in kept]
        tasks = [candidate.task for candidate in candidates]
        if is_choice and tasks[0].signals.observed is not None:
            solver = solver.coarse()  # more draws for what is missing would tell nothing of predictions
        with quietly() if is_stacked else nullcontext():
            fits = learn_all(tasks, [candidate.kernel for candidate in candidates], solver, like)
        if is_stacked:
            report("all signals")
        drawn = tuple(
            hyperparameter_draws(task, fit, stacking.n_draws, stream) if stacking.n_draws else Draws((fit.model,))
            for task, fit, stream in zip(tasks, fits, of_draws.spawn(len(fits)), strict=True)
        )
        drawn, posterior = conditioned(candidates, weights, drawn)
    return FittedModels(tuple(candidates), tuple(fits), weights, drawn, posterior, tried)


def conditioned(
    candidates: Sequence[Candidate], weights: Array, drawn: Sequence[Draws]
) -> tuple[tuple[Draws, ...], Posterior | Mixture]:
    """Models that stand for candidates, conditioned on their signals.

    Returns the models with all that was learnt in conditioning them, and the posterior.
    """
    shares, posteriors, complete = [], [], []
    with few_threads(candidates[0].task.signals.shape[0]):
        for weight, candidate, one in zip(weights, candidates, drawn, strict=True):
            if weight > 0:
                own = [candidate.condition(model) for model in one.models]
                shares += [weight / len(own)] * len(own)
                posteriors += own
                one = replace(one, models=tuple(posterior.prior for posterior in own))
            complete.append(one)
    single = len(posteriors) == 1
    return tuple(complete), posteriors[0] if single else Mixture(np.array(shares), tuple(posteriors))


def _tried(plan: Plan, candidates: list[Candidate], folds: Folds, solver: Solver) -> tuple[list[Candidate], HeldOut]:
    """All candidates of a plan, and what they predicted."""
    held_out = folds.score(candidates, solver)
    tried, scores = list(candidates), held_out.scores
    while True:
        try:
            further = plan.send(scores)
        except StopIteration:
            return tried, held_out
        found = folds.score(further, solver)
        tried, held_out, scores = [*tried, *further], held_out.beside(found), found.scores


def _compared(candidates: Sequence[Candidate], held_out: HeldOut, weights: Array) -> tuple[Tried, ...]:
    """What is told of the comparison."""
    rows = zip(candidates, held_out.log_densities.mean(axis=0).tolist(), weights.tolist(), strict=True)
    return tuple(Tried(candidate.described, score, weight) for candidate, score, weight in rows)


def _weights(held_out: HeldOut, is_choice: bool, most: int | None) -> Array:
    """Weights of the candidates; of a choice no more than some get one, and none a negligible one."""
    if not is_choice:
        return stacking_weights(held_out.log_densities)
    weights = stacking_weights(
        held_out.log_densities,
        held_out.value_log_densities,
        n_iterations=1_000,
        tolerance=1e-6,
        negligible=SMALLEST_SHARE,
        value_weight=held_out.value_weight,
    )
    if most is not None and np.count_nonzero(weights) > most:
        weights = np.where(weights >= np.sort(weights)[-most], weights, 0.0)
    return weights / weights.sum()


def _folds(shape: tuple[int, int], stacking: Stacking, is_choice: bool, random_state: np.random.Generator) -> Folds:
    n_signals, n_nodes = shape
    n_folds, n_draws = min(stacking.n_folds, n_signals), stacking.n_draws or 0
    return Folds(n_signals, n_folds, random_state, n_draws, is_choice, n_nodes, stacking.n_jobs)
