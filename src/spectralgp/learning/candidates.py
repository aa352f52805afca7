"""Models that may be learnt: data and decisions, which of them "auto" tries, and how they are learnt."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, Literal, TypeAlias

import numpy as np

from spectralgp._basics.checks import Array, Indices
from spectralgp.graphs import LAPLACIANS, LaplacianKind
from spectralgp.learning.families import learn_all
from spectralgp.learning.fit import Fit, Solver
from spectralgp.learning.objective import Task
from spectralgp.model.fields import (
    GraphGP,
    Posterior,
    Transformation,
    condition_latent,
    conditioned,
    conditioned_shrunk,
)
from spectralgp.model.kernels import (
    GraphKernel,
    Identity,
    KernelTerm,
    Polynomial,
    SpectralKernel,
    StandardisedKernel,
    with_residual,
)
from spectralgp.model.kernels.carry import CarryColumns
from spectralgp.model.signals import Scale, Signals

DEGREE, HIGHER_DEGREE, RESIDUAL_DEGREE = 2, 4, 2
TRIED_LAPLACIANS: tuple[LaplacianKind, ...] = ("combinatorial", "normalized")
BOTH_TERMS: tuple[KernelTerm, ...] = ("smooth", "linear")
PRIOR_VALUES = 8.0  # equivalent sample size of a squared scale of one
NODES_PER_VALUE = 4  # nodes of a signal per independent error: errors at neighbours are alike
SAME_SCALE = 0.3  # standard deviation of the logarithms of squared scales, below which signals have one scale
OTHER_MAXIMUM_NATS = 0.5  # by which a rough fit is likelier than another only where that is at another maximum
AMPLITUDES = np.logspace(-4, 1, 21)  # of what inputs explain, by which its variance is multiplied


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model to learn, and how it is conditioned on signals."""

    task: Task
    kernel: GraphKernel
    shrunk: bool = False  # whether the covariance of predictions is shrunk towards the graph's
    name: str = ""  # for people
    warm_start_from: Candidate | None = None  # with the same parameters on other data
    transformation: Transformation | None = None  # what the task's inputs and signals are of the user's, if not those
    is_tuned: bool = False  # whether it is the one that it starts from, with means of the least squared error
    learnt_from: Indices | None = None  # signals that hyperparameters are learnt from; all if not given
    recipe: Recipe | None = None  # what a setting made it of, for one like it of other signals

    @property
    def untuned(self) -> Candidate:
        """The candidate that it is but for its means."""
        return (self.warm_start_from if self.is_tuned else None) or self

    @property
    def described(self) -> str:
        """Its name, and the Laplacian that it is on."""
        return self.name if self.kernel.needs_no_graph else f"{self.name} ({self.kernel.laplacian} Laplacian)"

    @property
    def learning(self) -> Task:
        """What hyperparameters are learnt from: the task, or a part of it in the same units."""
        rows = self.learnt_from
        return self.task if rows is None else self.task.part(rows, self.task.signals.some(rows))

    def condition(
        self, model: GraphGP, task: Task | None = None, learns_tails: bool = True, roughly: bool = False
    ) -> Any:
        """A learnt model conditioned on the signals of the task, or of a part of it; learns to shrink if it must."""
        task = task or self.task
        if task.observed_by is not None:
            return condition_latent(model, task.inputs, task.signals, task.observed_by)
        own = (model, task.inputs, task.signals, task.carried)
        if self.shrunk and model.shrinkage is None:
            posterior = conditioned_shrunk(*own, learns_tails=learns_tails, roughly=roughly)
        else:
            posterior = conditioned(*own, roughly=roughly)
        return posterior if self.transformation is None else replace(posterior, transformation=self.transformation)

    @property
    def carried(self) -> float:
        """What inputs carry over at every frequency before the model sees the signals."""
        return 0.0 if self.transformation is None else self.transformation.carried

    @cached_property
    def _log_slopes(self) -> Array:
        """What densities of the task's values gain in the units of the user, zero without a transformation."""
        if self.transformation is None:
            return np.zeros(1)
        return self.transformation.log_slopes_of(self.task.signals, self.task.inputs)

    @property
    def spread(self) -> float:
        """The unit that the task's signals are in, in the user's; of a transformation that at a typical value."""
        return self.task.signals.units.spread * float(np.exp(-np.mean(self._log_slopes)))

    def in_units(self, fit: Fit) -> Fit:
        """A fit of the task, of the signals as the user gave them, and of a node of relative scale one."""
        shift = float(np.sum(self._log_slopes)) - self.task.signals.log_volume
        return replace(fit.shifted(shift), model=fit.model.scaled_by(self.spread))


Recipe: TypeAlias = tuple[GraphKernel, tuple[KernelTerm, ...], Scale, bool]
"""What a setting made a candidate of: a kernel, terms of the inputs, scale of the nodes, whether inputs carry over."""


@dataclass(frozen=True, eq=False)
class Setting:
    """A task and what was decided about its variants, from which candidates are made; equal tasks are made once."""

    task: Task  # its noise variance in the units that the signals came in
    signals: dict[Scale, Signals]  # by the way their nodes are scaled, the first choice first
    is_kernel_open: bool = False  # whether the input kernel is the default one, whose terms are to be chosen
    columns: Indices | None = None  # of the inputs that may carry over
    residual: SpectralKernel | str | None = None  # filter of what neighbours share and inputs do not explain
    shrunk: bool = False  # whether the covariance of predictions is shrunk towards the graph's
    transformation: Transformation | None = None  # what inputs and signals are of the user's, if not those
    learnt_from: Indices | None = None  # signals that hyperparameters are learnt from; all if not given
    _tasks: dict[object, Task] = field(default_factory=dict)

    def candidate(
        self,
        kernel: GraphKernel,
        terms: tuple[KernelTerm, ...] = BOTH_TERMS,
        scale: Scale = None,
        carries: bool = False,
        warm_start_from: Candidate | None = None,
    ) -> Candidate:
        """A kernel with the residual that goes with it, on a task; nodes are scaled in the first way if not given."""
        scale = next(iter(self.signals)) if scale is None else scale
        task, full, residual = self._task(terms, scale, carries), kernel, self.residual
        if isinstance(residual, str):
            constraint: Literal["interval", "eigenvalues"]
            constraint = "interval" if kernel.constraint == "interval" else "eigenvalues"
            residual = Polynomial(RESIDUAL_DEGREE, constraint, kernel.laplacian, kernel.scaled)
            if task.graph.n_edges == 0:  # all frequencies are the same: what neighbours share is noise
                residual = None
        if residual is not None:
            full = with_residual(kernel, residual)
        words = {full.label: True, " + ".join(terms): self.is_kernel_open, "node scales": scale == "node"}
        words |= {"carry-over": carries, "shrunk": self.shrunk}
        if self.transformation is not None:
            words[self.transformation.described] = True
        return Candidate(
            task,
            full.scaled_by(1 / task.signals.units.spread),
            self.shrunk,
            ", ".join(word for word, is_said in words.items() if is_said),
            warm_start_from,
            self.transformation,
            learnt_from=self.learnt_from,
            recipe=(kernel, terms, scale, carries),
        )

    def _task(self, terms: tuple[KernelTerm, ...], scale: Scale, carries: bool) -> Task:
        """The task with an input kernel of some terms, nodes scaled in some way, with or without carry-over."""
        key = (terms, scale, carries)
        if key not in self._tasks:
            base, signals = self.task, self.signals[scale]
            unit, noise = signals.units.spread**2, base.noise_variance
            if isinstance(noise, tuple):
                noise = (noise[0] / unit, noise[1] / unit)
            elif noise is not None:
                noise = noise / unit
            kernel = StandardisedKernel.of(base.inputs, terms) if self.is_kernel_open else base.input_kernel
            carried = CarryColumns.of(self.columns, base.inputs) if carries and self.columns is not None else None
            own = replace(base, input_kernel=kernel, signals=signals, noise_variance=noise, carried=carried)
            self._tasks[key] = own
        return self._tasks[key]


def likelier_scale(setting: Setting, kernel: GraphKernel, carries: bool, solver: Solver) -> tuple[Scale, Fit]:
    """The way of scaling nodes under which a given kernel makes the signals likelier, and a rough fit with it."""
    found: list[tuple[float, Scale, Fit]] = []
    for scale, signals in setting.signals.items():
        candidate = setting.candidate(kernel, scale=scale, carries=carries)
        task = candidate.learning
        (fit,) = learn_all([task], [candidate.kernel], solver.coarse())
        cost = 0.5 * signals.shape[1] if scale == "node" else 0.0  # half a nat for each node's own scale
        found.append((fit.log_likelihood - task.signals.log_volume - cost, scale, fit))
    return max(found, key=itemgetter(0))[1:]


Plan: TypeAlias = Generator[list[Candidate], Array, None]
"""Candidates by stages: each stage is chosen knowing the held-out scores of the one before."""


def at_once(candidates: list[Candidate]) -> Plan:
    """The plan of trying some candidates and no others."""
    yield candidates


def automatic(setting: Setting) -> Plan:
    """The plan of the default.

    1. Filters on two Laplacians, on three where some node was never observed, with a smooth and a linear term in the
       inputs.
    2. The better of those with a higher degree, and without scales of the nodes.
    3. The best of all with one term only; without a graph; and with what inputs carry over.
    4. The linear term alone with what inputs carry over.

    On a large graph one Laplacian is tried, in both degrees at once, and no model without a graph. Where signals have
    holes, which make every model take long, the linear term is the only one that is tried alone.
    """
    is_large, is_default = setting.task.spectrum.needs_passes, setting.is_kernel_open
    scale, *others = setting.signals
    if setting.task.graph.n_edges == 0:
        yield from _without_graph(setting, others)
        return
    kernels = [Polynomial(DEGREE), Polynomial(HIGHER_DEGREE)]
    if not is_large:
        # a node that was never observed is known by its neighbours alone, to which few edges must tie it too
        laplacians = LAPLACIANS if setting.task.signals.has_unseen_nodes else TRIED_LAPLACIANS
        kernels = [Polynomial(DEGREE, laplacian=laplacian) for laplacian in laplacians]
    tried = [setting.candidate(kernel) for kernel in kernels]
    first = yield tried
    kernel, best = kernels[int(np.argmax(first))], tried[int(np.argmax(first))]
    if not is_large:
        higher = replace(kernel, degree=HIGHER_DEGREE)
        rescaled = [setting.candidate(kernel, scale=other, warm_start_from=best) for other in others]
        tried = [setting.candidate(higher), *rescaled]
        scores = yield tried
        if scores[0] > np.max(first):
            kernel, best = higher, tried[0]
        if others and np.max(scores[1:]) > np.max(first):
            scale = others[int(np.argmax(scores[1:]))]
    further: list[Candidate] = []
    alone = BOTH_TERMS[1:] if setting.task.signals.has_holes else BOTH_TERMS
    if is_default:
        further += [setting.candidate(kernel, (term,), scale) for term in alone]
    if not is_large:
        # a kernel of the user's own has no choice of terms
        sets: Sequence[tuple[KernelTerm, ...]] = (BOTH_TERMS, ("linear",)) if is_default else (BOTH_TERMS,)
        further += [setting.candidate(Identity(), terms, scale) for terms in sets[-len(alone) :]]
    if setting.columns is not None:
        further += [setting.candidate(kernel, BOTH_TERMS, scale, carries=True, warm_start_from=best)]
    if further:
        yield further
    if setting.columns is not None and is_default:
        yield [setting.candidate(kernel, ("linear",), scale, carries=True, warm_start_from=further[len(alone) - 1])]


def best_recipe(plan: Plan) -> Generator[list[Candidate], Array, Recipe]:
    """A plan, which ends with what the best of its candidates was made of."""
    tried, stage = list[tuple[float, Recipe]](), next(plan)
    while True:
        scores = yield stage
        tried += [(score, one.recipe) for score, one in zip(scores.tolist(), stage, strict=True) if one.recipe]
        try:
            stage = plan.send(scores)
        except StopIteration:
            return max(tried, key=itemgetter(0))[1]


def with_logarithms(plan: Plan, setting: Setting, logarithms: Setting) -> Plan:
    """A plan, and then the best candidate of a setting on logarithms, with and without what inputs carry over."""
    kernel, terms, scale, _ = yield from best_recipe(plan)
    both = [False] if setting.columns is None else [False, True]
    yield [logarithms.candidate(kernel, terms, scale, carries) for carries in both]


def _without_graph(setting: Setting, others: Sequence[Scale]) -> Plan:
    """One output per node: nothing but terms and scales to choose."""
    if not setting.is_kernel_open:
        yield [setting.candidate(Identity(), scale=scale) for scale in setting.signals]
        return
    sets: Sequence[tuple[KernelTerm, ...]] = (BOTH_TERMS, ("smooth",), ("linear",))
    scores = yield [setting.candidate(Identity(), terms) for terms in sets]
    if others:
        yield [setting.candidate(Identity(), sets[int(np.argmax(scores))], other) for other in others]


# --------------------------------------------------------- learning them, and means of the least squared error


def tuned_twin(candidate: Candidate) -> Candidate:
    """Candidate with means of the amplitude that has the least squared error."""
    return replace(candidate, name=f"{candidate.name}, least squares", is_tuned=True, warm_start_from=candidate)


def differ_in_scale(candidate: Candidate, task: Task, model: GraphGP) -> bool:
    """Return whether errors of signals left out differ in size, so that means are worth tuning: equation (18c)."""
    if not candidate.shrunk or task.spectrum.needs_passes or task.signals.has_holes:
        return False
    (n_signals, n_nodes), posterior = task.signals.shape, _conditioned(model, task)
    energies = posterior.left_out(task.signals.centred_by == "node" and n_signals > 1).lengths / n_nodes
    n_values = n_nodes / NODES_PER_VALUE
    return float(np.std(np.log(PRIOR_VALUES + n_values * energies))) > SAME_SCALE


def learn_candidates(
    candidates: Sequence[Candidate],
    tasks: Sequence[Task],
    solver: Solver,
    starts: Sequence[Fit | None] | None = None,
    learnt: dict[Candidate, Fit] | None = None,
    looks_elsewhere: bool = False,
) -> list[Fit]:
    """Return fits of candidates to tasks.

    Candidates in `learnt` are not learnt again, and new fits are added to it: a tuned candidate has the fit of its
    untuned one but for the amplitude of means. With `looks_elsewhere` a fit that is less likely than a rough one from
    scratch goes on from that.
    """
    learnt = {} if learnt is None else learnt
    known: Sequence[Fit | None] = starts or [None] * len(candidates)
    places = {one.untuned: place for place, one in enumerate(candidates) if one.untuned not in learnt}
    own, kernels = [tasks[place] for place in places.values()], [one.kernel for one in places]
    fits = learn_all(own, kernels, solver, [known[place] for place in places.values()])
    if looks_elsewhere:
        rough = learn_all(own, kernels, solver.coarse())
        gains = [other.log_posterior - fit.log_posterior for other, fit in zip(rough, fits, strict=True)]
        for place in (place for place, gain in enumerate(gains) if gain > OTHER_MAXIMUM_NATS):
            (fits[place],) = learn_all([own[place]], [kernels[place]], solver, [rough[place]])
    learnt |= zip(places, fits, strict=True)
    for one, task in zip(candidates, tasks, strict=True):
        if one.is_tuned:
            fit = learnt[one.untuned]
            learnt[one] = replace(fit, model=tuned(fit.model, task))
    return [learnt[one] for one in candidates]


def tuned(model: GraphGP, task: Task) -> GraphGP:
    """The model with means of the amplitude that has the least squared error of signals left out: equation (18d).

    Left out one by one, equation (10), in the units that they came in.
    """
    models, signals = [replace(model, mean_amplitude=float(amplitude)) for amplitude in AMPLITUDES], task.signals
    squares = []
    for posterior in (_conditioned(one, task) for one in models):
        errors = posterior.left_out(signals.centred_by == "node" and signals.shape[0] > 1).errors
        squares.append(np.mean(np.square(signals.units.restore_scale(posterior.basis.unload(errors)))))
    return models[int(np.argmin(squares))]


def _conditioned(model: GraphGP, task: Task) -> Posterior:
    return conditioned(replace(model, shrinkage=None), task.inputs, task.signals, task.carried)
