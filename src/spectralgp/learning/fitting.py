"""Fitting: candidates learnt, weighed by what they predict of what was held out, drawn, and conditioned."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import TypeAlias

import numpy as np
from scipy.special import logsumexp

from spectralgp._basics.arrays import few_threads, without_caches
from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.progress import quietly, step_done
from spectralgp._basics.saved import NotNegative, Number
from spectralgp.learning.candidates import Candidate, Plan, differ_in_scale, learn_candidates, tuned_twin
from spectralgp.learning.draws import Draws, averaging_draws, has_few_values, hyperparameter_draws
from spectralgp.learning.fit import Fit, Solver
from spectralgp.learning.folds import MOST_COMPARED, Folds, FoldScores, Stacking
from spectralgp.learning.hidden import HiddenEntries
from spectralgp.learning.many import MOST_MEMBERS, Conditioning, conditioning, of_all_signals
from spectralgp.learning.missing import with_evidence
from spectralgp.learning.time_order import TimeOrder
from spectralgp.learning.weights import Quantiles, stacking_weights, weights_by_crps, weights_by_error
from spectralgp.model.fields import GraphGP, Mixture, Posterior

SHOWN_DRAWS, SHOWN_SEED = 32, 1
MOST_FILLING = 3  # the same where signals have holes, which each member completes
STACKED_DRAWS = 16  # of the hyperparameters of each stacked model, where nothing is shrunk
SMALLEST_SHARE = 0.01  # weight of a member that was found by choice, below which it is left out

Shown: TypeAlias = tuple[float, GraphGP, float, float]
"""A weight, a model, the spread of its units, and what inputs carry over before it sees the signals."""


@dataclass(frozen=True)
class ComparedModel:
    """A model that was compared with others on held-out signals."""

    name: str  # for people, with its Laplacian
    score: Number  # mean log density of a held-out signal, in nats
    weight: NotNegative  # in the mixture; zero where it was left out


@dataclass(frozen=True, eq=False)
class FittedModels:
    """Learnt models with their weights, and the posterior that predicts with all of them."""

    candidates: tuple[Candidate, ...]  # what was learnt; those of a plan that got no weight are left out
    raw_fits: tuple[Fit, ...]  # one per candidate, of the signals as learning saw them
    weights: Array  # one per candidate, in predictions; they add up to one
    draws: tuple[Draws, ...]  # one per candidate: the models that stand for it in the posterior
    posterior: Posterior | Mixture  # conditioned on all signals
    tried: tuple[ComparedModel, ...] = ()  # all models that were compared; none where there was one model only
    order: TimeOrder | None = None  # of the rows, by which the models were compared; at random if not given
    filling: Array | None = None  # weights in filling in what was not observed, where they are others
    note: str = ""  # what was done about many signals, for people
    conditioned_on: Indices | None = None  # signals given, where the posterior does not know of all

    __getstate__ = without_caches

    @cached_property
    def fits(self) -> tuple[Fit, ...]:
        """Fits in the units that the signals came in."""
        pairs = zip(self.raw_fits, self.candidates, strict=True)
        return tuple(candidate.in_units(fit) for fit, candidate in pairs)

    @property
    def shown(self) -> tuple[Shown, ...]:
        """Models with drawn hyperparameters, for bands about what was learnt: as `Shown` has them."""
        return tuple(one for part in self.shown_of_each for one in part)

    @cached_property
    def shown_of_each(self) -> tuple[tuple[Shown, ...], ...]:
        """Those of each candidate; of one without a weight the fit alone."""
        parts: list[tuple[Shown, ...]] = []
        for number, (weight, fit, drawn) in enumerate(zip(self.weights, self.raw_fits, self.draws, strict=True)):
            candidate, task = self.candidates[number], self.candidates[number].learning
            if weight > 0 and len(drawn.models) == 1:  # else those that predict are several
                with few_threads(task.signals.shape[0]):
                    drawn = hyperparameter_draws(task, fit, SHOWN_DRAWS, np.random.default_rng([SHOWN_SEED, number]))
            pairs = zip((float(weight) * drawn.shares).tolist(), drawn.models, strict=True)
            parts.append(tuple((share, model, candidate.spread, candidate.carried) for share, model in pairs))
        return tuple(parts)

    def conditioned_anew(self, candidates: Sequence[Candidate]) -> FittedModels:
        """The same models conditioned on other data, that of the given candidates."""
        draws, posterior = conditioned(candidates, self.weights, self.draws, self.filling)
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


def fit_models(
    plan: Plan,
    solver: Solver,
    stacking: Stacking,
    generator: np.random.Generator,
    is_choice: bool,
    start: Fit | None,
    order: TimeOrder | None = None,
) -> FittedModels:
    """Learn candidates, weigh them by what they predict of signals held out, and condition them on all signals.

    Several candidates are stacked, with the weights that score best on held-out folds; where they are a choice of the
    library's (`is_choice`), only those of use are kept. A single one is learnt from a `start`, if there is one. Where
    rows have an `order`, folds are those of forward chaining.
    """
    of_folds, of_draws = generator.spawn(2)
    candidates = next(plan)
    n_signals, is_stacked = candidates[0].task.signals.shape[0], len(candidates) > 1
    learnt_from, is_open = candidates[0].learnt_from, stacking.n_draws is None
    if is_open:
        # on a large graph every draw would cost a pass of its own at prediction; a t has the tails that draws add
        is_one = not is_stacked or candidates[0].task.spectrum.needs_passes or candidates[0].shrunk
        stacking = replace(stacking, n_draws=0 if is_one else STACKED_DRAWS)
    weights, warm_starts, tried = (
        np.ones(1),
        [] if is_stacked or start is None else [start],
        tuple[ComparedModel, ...](),
    )
    is_learnt, filling = False, None  # whether warm starts are fits to all signals already; other weights
    with few_threads(n_signals):
        if is_stacked:
            signals = candidates[0].task.signals
            judge: Folds | HiddenEntries
            if is_choice and signals.has_holes:
                judge = HiddenEntries(signals, of_folds)
                is_learnt = judge.is_whole
            else:
                n_folded = None if learnt_from is None else learnt_from.size
                judge = Folds(signals.shape, stacking, of_folds, is_choice, order is not None, n_folded)
            candidates, held_out = _tried(plan, candidates, judge, solver)
            if is_choice and n_signals <= MOST_COMPARED and order is None and isinstance(judge, Folds):
                candidates, held_out = _with_tuned(candidates, held_out, judge, solver)
            most = MOST_FILLING if isinstance(judge, HiddenEntries) else None
            most = MOST_MEMBERS if n_signals > MOST_COMPARED else most
            weights = _weights_between(candidates, held_out, judge, is_choice, most)
            if held_out.of_signals is not None:
                filling, weights = weights, _weights_of(candidates, held_out.of_signals, is_choice, most)
            rows = zip(candidates, held_out.log_densities.mean(axis=0).tolist(), weights.tolist(), strict=True)
            tried = tuple(ComparedModel(candidate.described, score, weight) for candidate, score, weight in rows)
            if is_choice:  # only what is of use is learnt from all signals
                kept = np.flatnonzero(weights if filling is None else weights + filling)
                starts = dict(zip(candidates, held_out.fits, strict=True))
                candidates, weights = [candidates[index] for index in kept], weights[kept]
                filling = None if filling is None else filling[kept]
                warm_starts = [starts[one.untuned] for one in candidates]
        parts = {one.task: one.learning for one in candidates}  # candidates that share a task share its part too
        tasks = [parts[one.task] for one in candidates]
        if is_choice and not tasks[0].is_complete:
            solver = solver.coarse()  # more draws for what is missing would tell nothing of predictions
        with quietly() if is_stacked else nullcontext():
            if is_learnt:
                fits = [with_evidence(*pair) for pair in zip(tasks, warm_starts, strict=True)]
            else:
                # what was learnt from the first fold may lead to a lower maximum
                is_cheap = is_choice and n_signals <= MOST_COMPARED and not tasks[0].spectrum.needs_passes
                looks_elsewhere = is_cheap and is_stacked and tasks[0].is_complete
                fits = learn_candidates(candidates, tasks, solver, warm_starts, None, looks_elsewhere)
        if is_stacked:
            step_done("all signals")
        drawn = []
        for task, fit, stream in zip(tasks, fits, of_draws.spawn(len(fits)), strict=True):
            if is_open and has_few_values(task, fit):
                drawn.append(averaging_draws(task, fit, stream))
            elif stacking.n_draws:
                drawn.append(hyperparameter_draws(task, fit, stacking.n_draws, stream))
            else:
                drawn.append(Draws((fit.model,)))
        if learnt_from is None:
            pairs = zip(candidates, tasks, strict=True)
            chosen = Conditioning([replace(one, task=task) for one, task in pairs], drawn)
        else:
            chosen = conditioning(candidates, tasks, drawn, weights, learnt_from, generator)
        complete, posterior = conditioned(chosen.candidates, weights, chosen.drawn, filling)
        if learnt_from is not None and chosen.rows is None:
            posteriors = [one for _, one in posterior.parts]
            fits = [of_all_signals(*one, posteriors) for one in zip(chosen.candidates, fits, chosen.drawn, strict=True)]
    decided = tried, order, filling, chosen.note, chosen.rows
    return FittedModels(tuple(chosen.candidates), tuple(fits), weights, complete, posterior, *decided)


def conditioned(
    candidates: Sequence[Candidate], weights: Array, drawn: Sequence[Draws], filling: Array | None = None
) -> tuple[tuple[Draws, ...], Posterior | Mixture]:
    """Models that stand for candidates, with all that conditioning on their signals taught, and the posterior."""
    shares, posteriors, complete = list[Array](), list[Posterior](), list[Draws]()
    both = np.stack([weights, weights if filling is None else filling], axis=1)
    with few_threads(candidates[0].task.signals.shape[0]):
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
    predicting, completing = np.array(shares).T
    is_averaged = np.count_nonzero(weights) == 1 and filling is None  # of one model, averaged over its hyperparameters
    completing = None if filling is None else completing
    return tuple(complete), Mixture(predicting, tuple(posteriors), completing, is_averaged)


def _tried(
    plan: Plan, candidates: list[Candidate], judge: Folds | HiddenEntries, solver: Solver
) -> tuple[list[Candidate], FoldScores]:
    """All candidates of a plan, and what they predicted."""
    held_out = judge.score(candidates, solver)
    tried, scores = list(candidates), held_out.scores
    while True:
        try:
            further = plan.send(scores)
        except StopIteration:
            return tried, held_out
        found = judge.score(further, solver)
        tried, held_out, scores = [*tried, *further], held_out.beside(found), found.scores


def _weights_between(
    candidates: Sequence[Candidate],
    held_out: FoldScores,
    judge: Folds | HiddenEntries,
    is_choice: bool,
    most: int | None,
) -> Array:
    """Weights of candidates by density, and between two groups whose densities do not compare by CRPS of values.

    Where values are tied, as zeros are, the density of logarithms grows without bound as their constant falls.
    """
    has_slopes = np.array([one.transformation is not None and one.transformation.has_slopes for one in candidates])
    groups = [np.flatnonzero(has_slopes == kind) for kind in (False, True)]
    if not all(group.size for group in groups):
        return _weights_of(candidates, held_out, is_choice, most)
    assert isinstance(judge, Folds)  # nothing has slopes where signals have holes
    weights, observed, laws = np.empty(len(candidates)), list[Array](), list[Quantiles]()
    for group in groups:
        own = [candidates[one] for one in group.tolist()]
        weights[group] = part = _weights_of(own, held_out.of(group), is_choice, most)
        found = [judge.values(candidates[one]) for one in group[part > 0]]
        observed.append(found[0][0])
        laws.append(Quantiles.mixed(part[part > 0], [points for _, points in found]))
    shares = weights_by_crps(observed[0], laws)
    return _of_use(shares[has_slopes.astype(int)] * weights, most)


def _weights_of(candidates: Sequence[Candidate], held_out: FoldScores, is_choice: bool, most: int | None) -> Array:
    """Weights of candidates by density, and where some are tuned by squared error too.

    Of a choice no more than some get one, if there is a limit, and none a negligible one.
    """
    if not is_choice:
        return stacking_weights(held_out.log_densities)
    if held_out.errors is not None and any(one.is_tuned for one in candidates):
        n_values = held_out.value_weight * held_out.errors[..., 0].size
        return _of_use(weights_by_error(held_out.log_densities, held_out.errors, n_values), None)
    prior = 0.0 if held_out.worth is None else 1.0
    weights = stacking_weights(*held_out.observations, prior, n_steps=1_000, tolerance=1e-6, negligible=SMALLEST_SHARE)
    return _of_use(weights, most)


def _with_tuned(
    candidates: list[Candidate], held_out: FoldScores, folds: Folds, solver: Solver
) -> tuple[list[Candidate], FoldScores]:
    """Add candidates with means of the least squared error where signals differ in scale under the best candidate.

    Each candidate of a positive weight has one, unless it sees the signals through a transformation.
    """
    plain = [index for index, one in enumerate(candidates) if one.transformation is None]
    best = max(plain, key=lambda index: held_out.scores[index])
    if not differ_in_scale(candidates[best], folds.first_part(candidates[best]), held_out.fits[best].model):
        return candidates, held_out
    weights = _weights_of(
        [candidates[index] for index in plain], held_out.of(np.array(plain)), is_choice=True, most=None
    )
    added = [tuned_twin(candidates[index]) for index, weight in zip(plain, weights, strict=True) if weight > 0]
    return [*candidates, *added], held_out.beside(folds.score(added, solver))


def _of_use(weights: Array, most: int | None) -> Array:
    """Weights of the members of a choice: no more than some, if there is a limit, and none that is negligible."""
    weights = np.where(weights >= SMALLEST_SHARE, weights, 0.0)
    if most is not None and np.count_nonzero(weights) > most:
        weights = np.where(weights >= np.sort(weights)[-most], weights, 0.0)
    return weights / weights.sum()
