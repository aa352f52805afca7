"""Models that may be part of a mixture, and what each predicts of signals it did not see."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.parallel import Parallel, delayed

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.progress import Heard, quietly, report
from spectralgp.fields import GraphGP, Posterior, condition, condition_shrunk, held_out_densities
from spectralgp.kernels import GraphKernel
from spectralgp.learning.draws import hyperparameter_draws
from spectralgp.learning.families import learn_all
from spectralgp.learning.fit import Fit, Solver
from spectralgp.learning.sqp import Sqp
from spectralgp.learning.task import Fold, Task
from spectralgp.signals import Signals

MOST_COMPARED = 400  # signals that candidates are compared on
ENOUGH = 60  # signals held out, in whole folds
ENOUGH_IF_LONG, LONG = 30, 500  # the same where signals have so many nodes that each says much
MOST_VALUES = 3_000  # held out that are looked at one by one


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model to learn: data, a graph kernel, and whether the covariance of predictions is shrunk.

    Parameters
    ----------
    task : Task
        Data and settings.
    kernel : GraphKernel
        The form to learn.
    shrunk : bool, default=False
        Whether to shrink the covariance of predictions towards the graph's.
    name : str, default=""
        What it is, for people.
    near : Candidate, optional
        One with the same parameters on other data, whose solution on the same fold is a good start.
    """

    task: Task
    kernel: GraphKernel
    shrunk: bool = False
    name: str = ""
    near: Candidate | None = None

    @property
    def described(self) -> str:
        """Its name, and the Laplacian that it is on."""
        return self.name if self.kernel.needs_no_graph else f"{self.name} ({self.kernel.laplacian} Laplacian)"

    def condition(self, model: GraphGP, task: Task | None = None, learns_tails: bool = True) -> Posterior:
        """A learnt model conditioned on the signals of the task, or on those of a part of it.

        Where predictions are shrunk and the model does not say how, that is learnt from the signals.
        """
        task = self.task if task is None else task
        own = (model, task.inputs, task.signals, task.carried)
        if self.shrunk and model.shrinkage is None:
            return condition_shrunk(*own, learns_tails=learns_tails)
        return condition(*own)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What models predicted of signals that they had not seen.

    Parameters
    ----------
    log_densities : ndarray of shape (n_held_out, n_candidates)
        Of each signal.
    value_log_densities : ndarray of shape (n_held_out, n_some_nodes, n_candidates) or None
        Of each value alone, at some of the nodes; None on a large graph, where that would take a pass over it.
    n_nodes : int
        Number of all nodes.
    fits : tuple of Fit
        Of the first fold: a place to start from for fits to other data.
    """

    log_densities: Array
    value_log_densities: Array | None
    n_nodes: int
    fits: tuple[Fit, ...]

    @property
    def value_weight(self) -> float:
        """How many nodes each of those that were looked at stands for."""
        return 1.0 if self.value_log_densities is None else self.n_nodes / self.value_log_densities.shape[1]

    @property
    def scores(self) -> Array:
        """Log densities of signals plus those of their values, summed: one number a candidate."""
        scores: Array = self.log_densities.sum(axis=0)
        if self.value_log_densities is None:
            return scores
        return scores + self.value_weight * self.value_log_densities.sum(axis=(0, 1))

    def beside(self, other: HeldOut) -> HeldOut:
        """These candidates, and then others."""
        values = None
        if self.value_log_densities is not None and other.value_log_densities is not None:
            values = np.concatenate([self.value_log_densities, other.value_log_densities], axis=2)
        logs = np.concatenate([self.log_densities, other.log_densities], axis=1)
        return HeldOut(logs, values, self.n_nodes, self.fits + other.fits)


class Folds:
    """Parts of the signals to be held out in turn, the same for every candidate.

    Every fold but the first starts from the solution of the first, for the same kernel. None starts from the fit to all
    signals: that remembers those held out, and would favour kernels that overfit. Without a prior there are so many
    local maxima that even another fold's solution leads to one that remembers, so that every fold starts cold.

    Parameters
    ----------
    n_signals, n_folds : int
        How many.
    random_state : numpy.random.Generator
        For the parts, and for draws.
    n_draws : int, default=0
        Draws of the hyperparameters that each candidate is averaged over; zero for the best values alone.
    sparing : bool, default=False
        Learn from no more than `MOST_COMPARED` of the signals, and hold out folds only until `ENOUGH` were.
    n_nodes : int, default=1
        Length of the signals, for that.
    n_jobs : int, optional
        Threads that learn folds side by side, as joblib counts them; one if not given. Results are the same.
    """

    def __init__(
        self,
        n_signals: int,
        n_folds: int,
        random_state: np.random.Generator,
        n_draws: int = 0,
        sparing: bool = False,
        n_nodes: int = 1,
        n_jobs: int | None = None,
    ) -> None:
        shuffled, *self._streams = random_state.spawn(1 + n_folds)
        order = shuffled.permutation(n_signals)
        order = order[:MOST_COMPARED] if sparing else order
        self.chosen, self.n_draws, self.n_jobs = np.sort(order), n_draws, n_jobs
        self.held_out = np.array_split(order, n_folds)
        if sparing:
            seen = np.cumsum([part.size for part in self.held_out])
            enough = ENOUGH_IF_LONG if n_nodes >= LONG else ENOUGH
            self.held_out = self.held_out[: int(np.searchsorted(seen, enough)) + 1]
        self._first: dict[Candidate, Fit] = {}
        self._cut: dict[tuple[Signals, int], tuple[Signals, Signals]] = {}
        self._parts: dict[tuple[Task, int], tuple[Task, Signals, Fold]] = {}

    def score(self, candidates: Sequence[Candidate], solver: Solver | None = None) -> HeldOut:
        """What candidates predict of each signal, learnt without the fold it is in."""
        first, solver = candidates[0].task, (solver or Sqp()).coarse(self.chosen.size)
        n_nodes, ends = first.signals.shape[1], np.cumsum([0, *(part.size for part in self.held_out)])
        n_some = max(1, min(n_nodes, MOST_VALUES // int(ends[-1])))
        nodes = np.linspace(0, n_nodes - 1, n_some).astype(np.intp) if not first.spectrum.needs_passes else None
        like = [None if one.near is None else self._first.get(one.near) for one in candidates]
        one_fold = functools.partial(self._fold, candidates, solver, nodes)
        first_fold = one_fold(0, like)
        fits = first_fold[0]
        self._first |= zip(candidates, fits, strict=True)
        report(f"fold 1 of {len(self.held_out)}")
        like = [None] * len(fits) if first.prior is None else list(fits)
        # passes over a large graph are shared by the folds, which therefore wait for each other
        workers = Parallel(1 if first.spectrum.needs_passes else self.n_jobs, prefer="threads", return_as="generator")
        found = [first_fold]
        heard = Heard(one_fold)
        for number, fold in enumerate(workers(delayed(heard)(one, like) for one in range(1, len(self.held_out)))):
            found.append(fold)
            report(f"fold {number + 2} of {len(self.held_out)}")
        logs = np.concatenate([one for _, one, _ in found])
        values = None if nodes is None else np.concatenate([one for _, _, one in found])
        return HeldOut(logs, values, n_nodes, tuple(fits))

    def _fold(
        self,
        candidates: Sequence[Candidate],
        solver: Solver,
        nodes: Indices | None,
        number: int,
        like: Sequence[Fit | None],
    ) -> tuple[list[Fit], Array, Array]:
        """Fits without one of the folds, and log densities of its signals and of their values."""
        parts = [self._part(candidate.task, number) for candidate in candidates]
        with quietly():
            learnt = learn_all([part for part, _, _ in parts], [one.kernel for one in candidates], solver, like)
        logs, values = [], []
        for (part, others, fold), candidate, fit, stream in zip(
            parts, candidates, learnt, self._streams[number].spawn(len(candidates)), strict=True
        ):
            models: Sequence[GraphGP] = (fit.model,)
            if self.n_draws:
                models = hyperparameter_draws(part, fit, self.n_draws, stream).models
            found = [_predicted(candidate, model, part, fold, others, nodes) for model in models]
            logs.append(logsumexp([one for one, _ in found], axis=0) - np.log(len(found)))
            values.append(logsumexp([one for _, one in found], axis=0) - np.log(len(found)))
        return learnt, np.stack(logs, axis=-1), np.stack(values, axis=-1)

    def _part(self, task: Task, number: int) -> tuple[Task, Signals, Fold]:
        """A fold of a task, made once; signals that tasks share are cut once."""
        if (task, number) not in self._parts:
            held_out = self.held_out[number]
            kept = np.setdiff1d(self.chosen, held_out)
            if (task.signals, number) not in self._cut:
                self._cut[task.signals, number] = task.signals.fold(kept, held_out)
            cut = self._cut[task.signals, number]
            self._parts[task, number] = task.fold(kept, held_out, cut)
        return self._parts[task, number]


def _predicted(
    candidate: Candidate, model: GraphGP, part: Task, fold: Fold, others: Signals, nodes: Indices | None
) -> tuple[Array, Array]:
    """Log densities of the signals held out, and those of their values at some nodes."""
    new = fold.new_inputs(model.input_kernel)
    is_complete = part.signals.observed is None and others.observed is None
    if candidate.shrunk and is_complete and nodes is not None:
        plain = condition(model, part.inputs, part.signals, part.carried)
        return held_out_densities(plain, plain.given(new, fold.features), others, nodes)
    posterior = candidate.condition(model, part, learns_tails=False)
    prediction = posterior.given(new, fold.features)
    logs = posterior.log_densities_of(prediction, others)
    if nodes is None:
        return logs, np.empty((others.shape[0], 0))
    observed = others.units.mean(others.values)
    values = prediction.value_log_densities(observed[:, nodes], nodes)
    return logs, np.where(np.isfinite(observed[:, nodes]), values, 0.0)
