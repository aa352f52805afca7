"""Fitting: choose, learn and weigh candidates, draw hyperparameters, and condition on the signals."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import Annotated, Any, TypeAlias

import numpy as np
from scipy.special import logsumexp

from spectralgp._basics.arrays import few_threads, without_caches
from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.progress import announce, mention, quietly, step_done
from spectralgp._basics.saved import UNSAVED, axes
from spectralgp.graphs import GraphParameters
from spectralgp.learning.candidates import Candidate, Choices, learn_candidates
from spectralgp.learning.draws import Draws, averaging_draws, has_few_values, hyperparameter_draws
from spectralgp.learning.fit import Fit, Solver
from spectralgp.learning.folds import Folds
from spectralgp.learning.hidden import HiddenEntries
from spectralgp.learning.many import conditioning, rows_to_learn_from, time_message, with_full_evidence
from spectralgp.learning.missing import with_evidence
from spectralgp.learning.one_signal import is_integrated, learn_one_signal
from spectralgp.learning.search import ComparedModel, Comparison, WeightedCandidates, search
from spectralgp.learning.time_order import BEYOND_TRAINING, TimeOrder
from spectralgp.model.fields import Fallback, GraphGP, Mixture, Posterior
from spectralgp.model.spectra import release_passes

SHOWN_DRAWS, SHOWN_SEED = 32, 1

Shown: TypeAlias = tuple[float, GraphGP, float, float]
"""Weight, model, spread of its units, and lagged coefficient of its transformation."""


@dataclass(frozen=True, eq=False)
class FittedModels:
    """Learnt models, their weights, and the posterior of the ensemble."""

    candidates: tuple[Candidate, ...]  # with a weight, unless the user asked for them
    raw_fits: tuple[Fit, ...]  # one per candidate, in the units of learning
    weights: Annotated[Array, axes("n_members")]  # one per candidate, of predictions; they add up to one
    draws: tuple[Draws, ...]  # one per candidate: its models in the posterior
    posterior: Annotated[Posterior | Mixture, UNSAVED]  # conditioned on all signals
    tried: tuple[ComparedModel, ...] = ()  # all compared models; empty for a single model
    order: TimeOrder | None = None  # of the rows, if models were compared by forward chaining
    filling: Annotated[Array, axes("n_members")] | None = None  # weights of imputed values, if they differ
    note: str = ""  # for the summary: treatment of many signals
    conditioned_on: Annotated[Indices | None, UNSAVED] = None  # signals of the posterior; all unless given
    is_expected: Annotated[bool, UNSAVED] = False  # whether likelihoods of `raw_fits` are those of imputed signals
    graph_parameters: GraphParameters | None = None  # of weights that were learnt, if any

    __getstate__ = without_caches

    @cached_property
    def with_evidence(self) -> FittedModels:
        """These models with the likelihoods of observed values in `raw_fits`, which take as long as a fit's steps."""
        if not self.is_expected:
            return self
        pairs = zip(self.candidates, self.raw_fits, strict=True)
        fits = tuple(with_evidence(candidate.learning, fit) for candidate, fit in pairs)
        return replace(self, raw_fits=fits, is_expected=False)

    @cached_property
    def fits(self) -> tuple[Fit, ...]:
        """Fits in the user's units, with the likelihoods of observed values."""
        pairs = zip(self.with_evidence.raw_fits, self.candidates, strict=True)
        return tuple(candidate.in_units(fit) for fit, candidate in pairs)

    @cached_property
    def shown(self) -> tuple[tuple[Shown, ...], ...]:
        """Models with drawn hyperparameters per candidate, for bands; the fit alone for one without a weight."""
        parts: list[tuple[Shown, ...]] = []
        for number, (weight, fit, drawn) in enumerate(zip(self.weights, self.raw_fits, self.draws, strict=True)):
            candidate, task = self.candidates[number], self.candidates[number].learning
            if weight > 0 and len(drawn.models) == 1:  # otherwise the posterior has draws
                with few_threads(task.signals.shape[0]):
                    drawn = hyperparameter_draws(task, fit, SHOWN_DRAWS, np.random.default_rng([SHOWN_SEED, number]))
            pairs = zip((float(weight) * drawn.shares).tolist(), drawn.models, strict=True)
            parts.append(tuple((share, model, candidate.spread, candidate.carried) for share, model in pairs))
        return tuple(parts)

    def conditioned_anew(self, candidates: Sequence[Candidate]) -> FittedModels:
        """Condition the models on other data, those of the given candidates."""
        draws, posterior = condition_all(candidates, self.weights, self.draws, self.filling)
        return replace(self, candidates=tuple(candidates), draws=draws, posterior=posterior)

    @property
    def order_words(self) -> str:
        """Sentences on the time order of the rows; empty without one."""
        own = "" if self.order is None else self.order.described
        return own + BEYOND_TRAINING * any(one.is_fallback for one in self.candidates)

    @property
    def log_likelihood(self) -> float:
        """Log marginal likelihood of the ensemble."""
        parts = [np.log(w) + fit.log_likelihood for w, fit in zip(self.weights, self.fits, strict=True) if w > 0]
        return float(logsumexp(parts))

    @property
    def n_stand_ins(self) -> int:
        """Number of draws that violated a constraint and were replaced by the fit."""
        pairs = zip(self.draws, self.weights, strict=True)
        return sum(draws.n_stand_ins for draws, weight in pairs if weight > 0)


def fit_models(choices: Choices, solver: Solver, random_state: np.random.Generator) -> FittedModels:
    """Learn the given models, or choose among those of the default, and condition them on all signals."""
    shape, rows, given = choices.setting.task.signals.shape, None, None
    is_fast = choices.is_choice and choices.stacking.effort == "fast"
    note = "Fewer models were compared, by effort='fast'." if is_fast else ""
    if choices.has_many_signals:
        rows = rows_to_learn_from(shape[0], random_state)
        announce(time_message(shape, len(choices.kernels), choices.is_choice))
        choices = choices.with_settings(learnt_from=rows)
    if choices.order is not None:
        mention("rows are in time order")
    of_folds, of_draws = random_state.spawn(2)
    try:
        # a quadrature has few frequencies
        with few_threads(shape[0], *(2 * shape[:1] if choices.setting.task.spectrum.needs_passes else shape)):
            drawn: Sequence[Draws]
            if is_integrated(choices):
                chosen, fits, drawn = learn_one_signal(choices)
            else:
                chosen = _chosen(choices, solver, of_folds)
                fits = _learnt(chosen, choices, solver)
                drawn = _drawn(chosen.candidates, fits, choices, of_draws)
            candidates, weights = chosen.candidates, chosen.weights
            if rows is not None:
                candidates, drawn, learning, given = conditioning(candidates, drawn, weights, rows, random_state)
                note = f"{learning} {note}".rstrip()
            draws, posterior = condition_all(candidates, weights, drawn, chosen.filling)
            is_expected = rows is None or given is not None
            if not is_expected:
                posteriors = [one for _, one in posterior.parts]
                fits = [with_full_evidence(*one, posteriors) for one in zip(candidates, fits, drawn, strict=True)]
    finally:
        if choices.setting.task.spectrum.needs_passes:  # on a large graph, whose recurrences have states
            for signals in (signals for one in (choices.setting, *choices.further) for signals in one.signals.values()):
                signals.release()
            release_passes(choices.setting.task.graph)
    learnt = tuple(candidates), tuple(fits), weights, draws, posterior
    return FittedModels(*learnt, chosen.compared, choices.order, chosen.filling, note, given, is_expected)


def _chosen(choices: Choices, solver: Solver, random_state: np.random.Generator) -> WeightedCandidates:
    """Candidates to learn from all signals: those that were compared or stacked, or the one that was asked for."""
    variants, start = ([], None) if choices.is_choice else choices.asked_for(solver)
    if len(variants) == 1:
        return WeightedCandidates([variants[0].candidate], np.ones(1), [start])
    comparison = Comparison(_validation(choices, random_state), solver)
    if choices.is_choice:
        search(comparison, choices.with_settings(chosen_on=comparison.validation.kept[0]))
        return comparison.weighted()
    comparison.score(variants)
    return comparison.stacked()


def _validation(choices: Choices, random_state: np.random.Generator) -> Folds | HiddenEntries:
    """Held-out values: hidden entries if the default has missing values, folds otherwise."""
    signals, rows = choices.setting.task.signals, choices.setting.learnt_from
    if choices.is_choice and signals.has_missing:
        return HiddenEntries(signals, random_state, choices.graph_of)
    stacking, in_time = replace(choices.stacking, n_draws=choices.n_draws), choices.order is not None
    n_folded = None if rows is None else rows.size
    return Folds(signals.shape, stacking, random_state, choices.is_choice, in_time, n_folded, choices.graph_of)


def _learnt(chosen: WeightedCandidates, choices: Choices, solver: Solver) -> list[Fit]:
    """Fit the candidates to all their training signals."""
    candidates, starts, is_stacked = chosen.candidates, chosen.starts, bool(chosen.compared)
    parts = {one.task: one.learning for one in candidates}  # candidates with one task share its part
    tasks = [parts[one.task] for one in candidates]
    if choices.is_choice and not tasks[0].is_complete:
        solver = solver.coarse()  # more draws of missing values would not change predictions
    with quietly() if is_stacked else nullcontext():
        if chosen.is_learnt:
            fits = [fit for fit in starts if fit is not None]
        else:
            fits = learn_candidates(candidates, tasks, solver, starts)
    if is_stacked:
        step_done("all signals")
    return fits


def _drawn(
    candidates: Sequence[Candidate], fits: Sequence[Fit], choices: Choices, random_state: np.random.Generator
) -> list[Draws]:
    """Models of each candidate in the posterior: its fit, or draws of the hyperparameters."""
    drawn = []
    for candidate, fit, stream in zip(candidates, fits, random_state.spawn(len(fits)), strict=True):
        task = candidate.learning
        if choices.stacking.n_draws is None and has_few_values(task, fit):
            drawn.append(averaging_draws(task, fit, stream))
        elif choices.n_draws:
            drawn.append(hyperparameter_draws(task, fit, choices.n_draws, stream))
        else:
            drawn.append(Draws((fit.model,)))
    return drawn


def condition_all(
    candidates: Sequence[Candidate], weights: Array, drawn: Sequence[Draws], filling: Array | None = None
) -> tuple[tuple[Draws, ...], Posterior | Mixture]:
    """Condition candidates on their signals: models with what conditioning learns, and the posterior of all."""
    shares, posteriors, complete = list[Array](), list[Posterior](), list[Draws]()
    falls = np.array([one.is_fallback for one in candidates], dtype=float)
    both = np.stack([weights, weights if filling is None else filling, falls], axis=1)
    sizes, is_large = candidates[0].task.signals.shape, candidates[0].task.spectrum.needs_passes
    with few_threads(sizes[0] if is_large else max(sizes)):  # matrices are of signals, or also of nodes
        for weight, candidate, one in zip(both, candidates, drawn, strict=True):
            if np.any(weight > 0):
                tasks = map(candidate.task.recentred, [] if one.levels is None else one.levels)
                own = [candidate.condition(model, task) for model, task in zip_longest(one.models, tasks)]
                shares += [weight * share for share in one.shares]
                posteriors += own
                one = replace(one, models=tuple(posterior.prior for posterior in own))
            complete.append(one)
    if len(posteriors) == 1:
        return tuple(complete), posteriors[0]
    predicting, completing, falling = np.array(shares).T
    is_averaged = np.count_nonzero(weights) == 1 and filling is None  # over the hyperparameters of one model
    fallback = None
    for still in (one for one in candidates if one.is_fallback and not is_averaged):
        changes: Any = still.transformation
        fallback = Fallback(falling, changes.columns, still.task.inputs)
    completing = None if filling is None else completing
    return tuple(complete), Mixture(predicting, tuple(posteriors), completing, is_averaged, fallback)
