"""Validation with missing values: entries are hidden in the pattern of those missing, and predicted by candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np
from scipy.stats import norm

from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp._basics.progress import quietly, step_done
from spectralgp.learning.candidates import Candidate, GraphOf, learn_near
from spectralgp.learning.fit import Fit, Solver
from spectralgp.learning.folds import MOST_COMPARED, MOST_MEMBERS, FoldScores
from spectralgp.learning.objective import Task
from spectralgp.learning.sqp import Sqp
from spectralgp.model.fields import GraphGP, Transformation
from spectralgp.model.signals import Signals

MOST_HIDDEN, LEAST_HIDDEN = 0.15, 0.05  # share of the observed entries
ENOUGH_HIDDEN = 2_000  # entries: least number on large data
MOST_MOVES = 20  # of a pattern with few missing values
MOST_NODES, FEWEST_NODES = 0.2, 3  # whole hidden nodes: share of the observed ones; least number within that share
ENTRIES_PER_SIGNAL = 5.0  # hidden entries per independent one: errors at neighbours are correlated
WHOLE_WORTH = 2.0  # independent entries per hidden node or signal
MOST_FILLING = 3  # members, each of which imputes the signals
SIGNAL_SHARE, FEWEST_SIGNALS = 0.2, 5  # whole hidden signals, as in one of five folds; fewest signals for that


class HiddenEntries:
    """Validation by hidden entries, which all candidates impute, and by whole hidden signals, which they predict.

    There are no folds: a candidate is learnt once, from all observed values, imputed first under the best candidate so
    far. Then the centre, scales and shrinkage are learnt without the hidden entries, with the hyperparameters kept, and
    the score is the density of the hidden values.
    """

    def __init__(self, signals: Signals, random_state: np.random.Generator, graph_of: GraphOf | None = None) -> None:
        of_rows, of_holes, of_signals = random_state.spawn(3)
        n_signals, self.n_nodes = signals.shape
        self.most_members: int | None = MOST_MEMBERS if n_signals > MOST_COMPARED else MOST_FILLING
        self.chosen: Indices = np.sort(of_rows.permutation(n_signals)[:MOST_COMPARED])
        self.kept, self.has_final_fits = [self.chosen], self.chosen.size == n_signals and graph_of is None
        observed = signals.observed[self.chosen]
        rows = np.zeros(self.chosen.size, dtype=bool)
        if self.chosen.size >= FEWEST_SIGNALS:
            rows[of_signals.choice(rows.size, round(SIGNAL_SHARE * rows.size), replace=False)] = True
        self.in_signals = observed & rows[:, None]
        self.hidden = np.zeros(observed.shape, dtype=bool)
        self.hidden[~rows], self.worth = hidden_like_missing(observed[~rows], of_holes)
        per_signal = np.broadcast_to(WHOLE_WORTH / observed.sum(axis=1, keepdims=True), observed.shape)
        self.signals_worth = per_signal[self.in_signals]
        self._graph = None if graph_of is None else graph_of(self.chosen, self.hidden | self.in_signals)
        self._parts: dict[Task, tuple[Task, Task]] = {}
        self._cut: dict[Signals, tuple[Signals, Signals]] = {}
        self._best: dict[Transformation | None, tuple[float, GraphGP | None]] = {}

    def score(
        self, candidates: Sequence[Candidate], solver: Solver | None = None, starts: Sequence[Fit | None] = ()
    ) -> FoldScores:
        """Learn candidates from all observed values, and score hidden entries and signals."""
        solver, fits, logs, of_signals = (solver or Sqp()).coarse(), list[Fit](), list[Array](), list[Array]()
        for candidate, start in zip_longest(candidates, starts):
            whole, without = self._tasks(candidate.task)
            best, near = self._best.get(candidate.transformation, (-np.inf, None))
            with quietly():
                fit = learn_near(whole, candidate.kernel, solver, start, near)
            fits.append(fit)
            densities = self._log_densities(candidate, fit, whole, without)
            logs.append(densities[self.hidden])
            of_signals.append(densities[self.in_signals])
            score = float(self.worth @ logs[-1])
            if score > best:
                self._best[candidate.transformation] = score, fit.model
            step_done(candidate.described)
        further = None
        if self.in_signals.any():
            further = FoldScores(np.stack(of_signals, axis=1), None, self.n_nodes, (), self.signals_worth)
        logs_of_each = np.stack(logs, axis=1)
        return FoldScores(logs_of_each, None, self.n_nodes, tuple(fits), self.worth, of_signals=further)

    def values(self, candidate: Candidate) -> tuple[Array, Array]:
        """Raise: candidates are compared by densities alone."""
        raise NotImplementedError(f"{candidate.name} must be compared by its densities where values are missing.")

    def _tasks(self, task: Task) -> tuple[Task, Task]:
        """Task of the compared signals, with and without the hidden entries."""
        if task not in self._parts:
            if task.signals not in self._cut:
                signals, nothing = task.signals, np.zeros(self.hidden.shape, dtype=bool)
                own = signals if self.has_final_fits else signals.without(nothing, self.chosen)
                self._cut[signals] = own, signals.without(self.hidden | self.in_signals, self.chosen)
            own, less = self._cut[task.signals]
            made = task if self._graph is None else replace(task, graph=self._graph)
            whole = task if self.has_final_fits else made.part(self.chosen, own)
            self._parts[task] = whole, made.part(self.chosen, less)
        return self._parts[task]

    def _log_densities(self, candidate: Candidate, fit: Fit, whole: Task, without: Task) -> Array:
        """Normal log densities of hidden entries in the user's units; meaningless elsewhere."""
        # hyperparameters are kept in the user's units, and the signals without hidden entries have other units
        model = fit.model.scaled_by(whole.signals.units.spread / without.signals.units.spread)
        posterior = candidate.condition(model, without, learns_tails=False, is_fast=True)
        field = posterior.completion()
        truth, variance = whole.signals.units.restore(whole.signals.as_observed), field.values_variance()
        logs = norm.logpdf(truth, field.values, np.sqrt(np.where(variance > 0, variance, 1.0)))
        if candidate.transformation is not None:
            logs = logs + candidate.transformation.log_slopes_of(whole.signals, whole.inputs)
        return np.asarray(logs)


def hidden_like_missing(observed: Mask, random_state: np.random.Generator) -> tuple[Mask, Array]:
    """Observed entries to hide, at least one if possible, and the number of independent entries that each counts as.

    The pattern of missing values is moved to other nodes and times: several times if few are missing, and only some of
    its runs of signals if many are. If nodes were never observed, whole nodes are hidden. All other nodes, and all
    signals, keep an observed value.
    """
    is_unseen = ~observed.any(axis=0)
    missing = ~observed & ~is_unseen
    hidden, whole = np.zeros(observed.shape, dtype=bool), np.zeros(observed.shape[1], dtype=bool)
    if is_unseen.any():
        seen = np.flatnonzero(~is_unseen)
        n_nodes = max(1, min(round(MOST_NODES * seen.size), max(FEWEST_NODES, int(is_unseen.sum()))))
        whole[random_state.choice(seen, min(n_nodes, seen.size - 1), replace=False)] = True
    if missing.any() or not whole.any():
        hidden = _moved(missing, observed & ~whole, random_state)
    hidden |= observed & whole
    hidden[~(observed & ~hidden).any(axis=1)] = False
    counts = np.maximum(hidden.sum(axis=0), 1)
    worth = np.where(whole, WHOLE_WORTH / counts, 1 / ENTRIES_PER_SIGNAL)
    return hidden, np.broadcast_to(worth, hidden.shape)[hidden]


def _moved(missing: Mask, observed: Mask, random_state: np.random.Generator) -> Mask:
    """Move the pattern of missing values onto observed ones; every node keeps an observed value."""
    n_signals, n_nodes = missing.shape
    n_observed, hidden = int(np.count_nonzero(observed)), np.zeros(missing.shape, dtype=bool)
    wanted = min(LEAST_HIDDEN * n_observed, ENOUGH_HIDDEN)
    for _ in range(MOST_MOVES if missing.any() else 0):
        moved = np.roll(missing[:, random_state.permutation(n_nodes)], int(random_state.integers(n_signals)), axis=0)
        hidden |= moved & observed
        if np.count_nonzero(hidden) >= wanted:
            break
    n_hidden = int(np.count_nonzero(hidden))
    if n_hidden > MOST_HIDDEN * n_observed:  # about a share of them is kept, in whole runs of signals at a node
        starts = hidden & ~np.vstack([np.zeros((1, n_nodes), dtype=bool), hidden[:-1]])
        numbers = np.cumsum(starts.T.ravel()).reshape(hidden.shape[::-1]).T
        draws = random_state.random(int(np.count_nonzero(starts)))
        hidden &= np.append(False, draws < MOST_HIDDEN * n_observed / n_hidden)[numbers]
    elif n_hidden < wanted:
        left = np.flatnonzero(observed & ~hidden)
        hidden.flat[random_state.choice(left, int(np.ceil(wanted)) - n_hidden, replace=False)] = True
    hidden[:, ~(observed & ~hidden).any(axis=0)] = False
    return hidden
