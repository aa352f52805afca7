"""Cross-validation: folds of the signals, and the held-out scores of candidates."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.utils.parallel import Parallel, delayed

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.progress import ReportedCall, quietly, step_done
from spectralgp.learning.candidates import Candidate, GraphOf, Stacking, learn_candidates
from spectralgp.learning.draws import hyperparameter_draws
from spectralgp.learning.fit import Fit, Solver
from spectralgp.learning.objective import Task
from spectralgp.learning.sqp import Sqp
from spectralgp.model.fields import GraphGP, held_out_densities, held_out_values, posterior_of, standard_deviation
from spectralgp.model.kernels import held_out_inputs
from spectralgp.model.signals import Signals

MOST_MEMBERS = 2  # of the default with more than `MOST_COMPARED` signals, each of which takes long to learn
MOST_COMPARED = 400  # signals for the comparison of candidates
HELD_OUT = 60  # signals, in whole folds, for the comparison of candidates
HELD_OUT_IF_LONG, LONG_SIGNAL = 30, 500  # fewer with as many nodes or more
MOST_VALUES = 3_000  # held-out values that are scored one by one
LEVELS = (np.arange(19) + 0.5) / 19  # of the quantiles of a predictive distribution

Cut = tuple[Indices, Indices]  # signals kept, and signals held out


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Held-out scores of candidates."""

    log_densities: Array  # of each signal or hidden entry, shape (n_held_out, n_candidates)
    value_log_densities: Array | None  # of single values at some nodes, shape (n_held_out, n_some, n_candidates)
    n_nodes: int
    fits: tuple[Fit, ...]  # of the first fold: starts for other fits
    worth: Array | None = None  # of hidden entries: the number of independent ones that each counts as
    errors: Array | None = None  # of the predicted means of single values, in the task's units
    of_signals: FoldScores | None = None  # of whole hidden signals, if entries are hidden too

    @property
    def observations(self) -> tuple[Array, Array]:
        """Log densities of signals and of single values, one row each, and the weights of the rows."""
        rows = self.log_densities
        counts = np.ones(len(rows)) if self.worth is None else self.worth
        if self.value_log_densities is not None:
            values = self.value_log_densities.reshape(-1, rows.shape[1])
            weight = self.n_nodes / self.value_log_densities.shape[1]  # nodes per node whose single values are scored
            rows, counts = np.vstack([rows, values]), np.append(counts, np.full(len(values), weight))
        return rows, counts

    @property
    def scores(self) -> Array:
        """Weighted sum of the log densities per candidate."""
        rows, counts = self.observations
        scores: Array = counts @ rows
        return scores if self.of_signals is None else scores + self.of_signals.scores

    def subset(self, chosen: Indices) -> FoldScores:
        """Scores of some of the candidates."""
        values = None if self.value_log_densities is None else self.value_log_densities[..., chosen]
        fits = tuple(self.fits[one] for one in chosen)
        errors = None if self.errors is None else self.errors[..., chosen]
        return FoldScores(self.log_densities[:, chosen], values, self.n_nodes, fits, self.worth, errors)

    @classmethod
    def joined(cls, stages: Sequence[FoldScores]) -> FoldScores:
        """Scores of the candidates of several stages by the same held-out values."""
        arrays: dict[str, Any] = {}
        for name in ("log_densities", "value_log_densities", "errors"):
            parts = [getattr(one, name) for one in stages]
            arrays[name] = None if any(part is None for part in parts) else np.concatenate(parts, axis=-1)
        signals = [one.of_signals for one in stages if one.of_signals is not None]
        own, fits = cls.joined(signals) if len(signals) == len(stages) else None, sum((one.fits for one in stages), ())
        return replace(stages[0], **arrays, fits=fits, of_signals=own)


class Folds:
    """Validation by random folds of the signals or, in time order, by forward chaining; equal for all candidates.

    Each fold after the first starts from the first fold's fit of the same kernel. No fold starts from a fit to all
    signals, which would leak held-out values and favour kernels that overfit. Without a prior there are so many local
    maxima that another fold's fit leaks them too, and every fold starts from scratch.
    """

    has_final_fits = False  # whether candidates are learnt from all signals

    def __init__(
        self,
        shape: tuple[int, int],
        stacking: Stacking,
        random_state: np.random.Generator,
        sparing: bool = False,
        in_time: bool = False,
        most: int | None = None,
        graph_of: GraphOf | None = None,
    ) -> None:
        (n_signals, n_nodes), n_folds = shape, min(stacking.n_folds, shape[0])
        self.most_members = MOST_MEMBERS if n_signals > MOST_COMPARED else None  # of the ensemble
        self.tunes_means = sparing and not in_time and n_signals <= MOST_COMPARED
        shuffled, *self._streams = random_state.spawn(1 + n_folds)
        order = shuffled.permutation(n_signals)[: MOST_COMPARED if sparing else most]
        self.chosen, self.n_draws, self.n_jobs = np.sort(order), stacking.n_draws or 0, stacking.n_jobs
        self.held_out = np.array_split(order, n_folds)
        if sparing:  # no more folds than needed
            seen = np.cumsum([part.size for part in self.held_out])
            enough = HELD_OUT_IF_LONG if n_nodes >= LONG_SIGNAL else HELD_OUT
            self.held_out = self.held_out[: int(np.searchsorted(seen, enough)) + 1]
        self.kept = [np.setdiff1d(self.chosen, part) for part in self.held_out]
        if in_time:  # the third quarter given the first half, and the last given all before it
            self.chosen = np.arange(n_signals)[-MOST_COMPARED if sparing else None :]
            *before, last = np.array_split(self.chosen, [self.chosen.size // 2, 3 * self.chosen.size // 4])
            self.kept, self.held_out = [before[0], np.concatenate(before)], [before[1], last]
        n_some = max(1, min(n_nodes, MOST_VALUES // sum(part.size for part in self.held_out)))
        self.nodes = np.linspace(0, n_nodes - 1, n_some).astype(np.intp)  # whose single values are scored
        self._cut: dict[tuple[Signals, int], tuple[Signals, Signals]] = {}
        self.parts: dict[tuple[Task, int], Task] = {}  # tasks of the training signals of each fold
        self._learnt: list[dict[Candidate, Fit]] = [{} for _ in self.held_out]
        self._graphs = None if graph_of is None else [graph_of(kept, None) for kept in self.kept]

    def score(
        self, candidates: Sequence[Candidate], solver: Solver | None = None, starts: Sequence[Fit | None] = ()
    ) -> FoldScores:
        """Learn candidates without each fold, the first from given fits, and score its signals."""
        first, solver = candidates[0].task, (solver or Sqp()).coarse(self.chosen.size)
        n_nodes, n_folds, needs_passes = first.signals.shape[1], len(self.held_out), first.spectrum.needs_passes
        nodes = None if needs_passes else self.nodes
        one_fold = functools.partial(self._fold, candidates, solver, nodes)
        found = [one_fold(0, starts or [None] * len(candidates))]
        step_done(f"fold 1 of {n_folds}")
        fits = found[0][0]
        warm_starts = [None] * len(fits) if first.prior is None else fits
        # folds share passes over a large graph, and so wait for each other
        workers = Parallel(1 if needs_passes else self.n_jobs, prefer="threads", return_as="generator")
        calls = [ReportedCall(copy_context().run, one_fold, number, warm_starts) for number in range(1, n_folds)]
        for fold in workers(delayed(call)() for call in calls):
            found.append(fold)
            step_done(f"fold {len(found)} of {n_folds}")
        logs, values, errors = (np.concatenate([one[place] for one in found]) for place in (1, 2, 3))
        if nodes is None:
            return FoldScores(logs, None, n_nodes, tuple(fits))
        return FoldScores(logs, values, n_nodes, tuple(fits), errors=errors)

    def values(self, candidate: Candidate) -> tuple[Array, Array]:
        """Held-out values, (n_values,), and quantiles of their predictions, (n_values, n_points)."""
        task, nodes, found = candidate.task, self.nodes, []
        for number, held_out in enumerate(self.held_out):
            fit, part = self._learnt[number][candidate], self.parts[task, number]
            others = self._cut[task.signals, number][1]
            cut, model = (self.kept[number], held_out), fit.model
            observed, points = others.units.restore(others.values), np.full((LEVELS.size, *others.shape), np.nan)
            points[:, :, nodes] = _points(candidate, model, part, cut, nodes)
            if candidate.transformation is not None:
                inputs = task.inputs[held_out]
                observed = candidate.transformation.restored(observed, inputs)
                points = candidate.transformation.mean(points, functools.partial(np.zeros, others.shape), inputs)
            found.append(np.stack([observed, *points])[:, :, nodes].reshape(len(points) + 1, -1))
        observed, *predicted = np.concatenate(found, axis=1)
        return observed, np.stack(predicted, axis=1)

    def _fold(
        self,
        candidates: Sequence[Candidate],
        solver: Solver,
        nodes: Indices | None,
        number: int,
        warm_starts: Sequence[Fit | None],
    ) -> tuple[list[Fit], Array, Array, Array]:
        """Fits without a fold; log densities of its signals and of single values; errors of the latter."""
        kept, held_out = self.kept[number], self.held_out[number]
        parts = []
        for task in (candidate.task for candidate in candidates):  # shared tasks and signals are split once
            if (task.signals, number) not in self._cut:
                self._cut[task.signals, number] = task.signals.fold(kept, held_out)
            if (task, number) not in self.parts:
                part = task.part(kept, self._cut[task.signals, number][0])
                self.parts[task, number] = part if self._graphs is None else replace(part, graph=self._graphs[number])
            parts.append(self.parts[task, number])
        with quietly():
            fits = learn_candidates(candidates, parts, solver, warm_starts, self._learnt[number])
        logs, values, errors = [], [], []
        streams = self._streams[number].spawn(len(candidates))
        for part, candidate, fit, stream in zip(parts, candidates, fits, streams, strict=True):
            others = self._cut[candidate.task.signals, number][1]
            models: Sequence[GraphGP] = (fit.model,)
            if self.n_draws:
                models = hyperparameter_draws(part, fit, self.n_draws, stream).models
            found = [_predicted(candidate, model, part, others, (kept, held_out), nodes) for model in models]
            logs.append(logsumexp([one for one, _, _ in found], axis=0) - np.log(len(found)))
            values.append(logsumexp([one for _, one, _ in found], axis=0) - np.log(len(found)))
            errors.append(np.mean([one for _, _, one in found], axis=0))
            if candidate.transformation is not None and nodes is not None:
                slopes = candidate.transformation.log_slopes_of(others, candidate.task.inputs[held_out])
                logs[-1], values[-1] = logs[-1] + slopes.sum(axis=1), values[-1] + slopes[:, nodes]
        return fits, np.stack(logs, axis=-1), np.stack(values, axis=-1), np.stack(errors, axis=-1)


def _predicted(
    candidate: Candidate, model: GraphGP, part: Task, others: Signals, cut: Cut, nodes: Indices | None
) -> tuple[Array, Array, Array]:
    """Log densities of held-out signals and of their values at some nodes, and errors of these, in the task's units."""
    inputs = candidate.task.inputs
    new, features = held_out_inputs(model.input_kernel, inputs, *cut), inputs[cut[1]]
    is_complete = part.signals.is_complete and others.is_complete
    if candidate.shrunk and is_complete and nodes is not None:
        plain = posterior_of(model, part.inputs, part.signals, part.carried)
        return held_out_densities(plain, plain.given(new, features), others, nodes)
    posterior = candidate.condition(model, part, learns_tails=False)
    prediction = posterior.given(new, features)
    logs = posterior.log_densities_of(prediction, others)
    if nodes is None:
        nothing = np.empty((others.shape[0], 0))
        return logs, nothing, nothing
    observed = others.units.restore(others.values)[:, nodes]
    values, errors = prediction.value_log_densities(observed, nodes), observed - prediction.mean_at(nodes)
    is_there = np.isfinite(observed)
    return logs, np.where(is_there, values, 0.0), np.where(is_there, errors, 0.0)


def _points(candidate: Candidate, model: GraphGP, part: Task, cut: Cut, nodes: Indices) -> Array:
    """Quantiles of held-out values in the task's units, shape (n_points, n_signals, n_nodes)."""
    inputs, freedom = candidate.task.inputs, np.inf
    plain = posterior_of(model, part.inputs, part.signals, part.carried)
    prediction = plain.given(held_out_inputs(model.input_kernel, inputs, *cut), inputs[cut[1]])
    if candidate.shrunk:
        mean, std, freedom = held_out_values(plain, prediction, nodes)
    else:
        mean, std = prediction.mean[:, nodes], standard_deviation(prediction, include_noise=True, nodes=nodes)
    deviations = norm.ppf(LEVELS) if np.isinf(freedom) else student.ppf(LEVELS, freedom) * np.sqrt(1 - 2 / freedom)
    return np.asarray(mean + np.multiply.outer(deviations, std))
