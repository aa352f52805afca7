"""Models that may be learnt: data and decisions, the variants that they leave open, and how they are learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from spectralgp._basics.checks import Array, Indices
from spectralgp.learning.families import learn_all
from spectralgp.learning.fit import Fit, Solver
from spectralgp.learning.objective import Task
from spectralgp.model.fields import (
    GraphGP,
    Posterior,
    Transformation,
    condition_latent,
    posterior_of,
    shrunk_posterior_of,
)
from spectralgp.model.kernels import (
    GraphKernel,
    Polynomial,
    SpectralKernel,
    StandardisedKernel,
    with_residual,
)
from spectralgp.model.kernels.carry import CarryColumns
from spectralgp.model.signals import Scale, Signals

RESIDUAL_DEGREE = 2
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
    transformation: Transformation | None = None  # what the task's inputs and signals are of the user's, if not those
    learnt_from: Indices | None = None  # signals that hyperparameters are learnt from; all if not given
    untuned: Candidate | None = None  # the same but for its means, which here have the least squared error

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
        self, model: GraphGP, task: Task | None = None, learns_tails: bool = True, is_fast: bool = False
    ) -> Any:
        """A learnt model conditioned on the signals of the task, or of a part of it; learns to shrink if it must."""
        task = task or self.task
        if task.observed_by is not None:
            return condition_latent(model, task.inputs, task.signals, task.observed_by)
        own = (model, task.inputs, task.signals, task.carried)
        if self.shrunk and model.shrinkage is None:
            posterior = shrunk_posterior_of(*own, learns_tails=learns_tails, is_fast=is_fast)
        else:
            posterior = posterior_of(*own, is_fast=is_fast)
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


@dataclass(frozen=True, eq=False)
class Setting:
    """A task and the decisions about it; tasks of equal settings are made once."""

    task: Task  # its noise variance in the units that the signals came in
    signals: dict[Scale, Signals]  # by the way their nodes are scaled, the first choice first
    is_kernel_open: bool = False  # whether the input kernel is the default one
    columns: Indices | None = None  # of the inputs that may carry over
    residual: SpectralKernel | str | None = None  # filter of what neighbours share and inputs do not explain
    shrunk: bool = False  # whether the covariance of predictions is shrunk towards the graph's
    transformation: Transformation | None = None  # what inputs and signals are of the user's, if not those
    learnt_from: Indices | None = None  # signals that hyperparameters are learnt from; all if not given
    title: str = ""  # with which names of its models begin
    _tasks: dict[object, Task] = field(default_factory=dict)

    @property
    def has_edges(self) -> bool:
        """Whether nodes have neighbours."""
        return self.task.graph.n_edges > 0

    @property
    def has_folds(self) -> bool:
        """Whether models can be compared: several signals, and values that vary."""
        return self.task.signals.shape[0] > 1 and self.task.signals.variance > 0

    def with_residual(self, kernel: GraphKernel) -> GraphKernel:
        """The kernel with the residual that goes with it."""
        residual = self.residual
        if isinstance(residual, str):
            if not self.has_edges:  # all frequencies are the same: what neighbours share is noise
                return kernel
            constraint: Literal["interval", "eigenvalues"]
            constraint = "interval" if kernel.constraint == "interval" else "eigenvalues"
            residual = Polynomial(RESIDUAL_DEGREE, constraint, kernel.laplacian, kernel.scaled)
        return kernel if residual is None else with_residual(kernel, residual)

    def task_with(self, scale: Scale, carries: bool) -> Task:
        """The task with nodes scaled in some way, with or without carry-over."""
        key = (scale, carries)
        if key not in self._tasks:
            base, signals = self.task, self.signals[scale]
            unit, noise = signals.units.spread**2, base.noise_variance
            if isinstance(noise, tuple):
                noise = (noise[0] / unit, noise[1] / unit)
            elif noise is not None:
                noise = noise / unit
            kernel = StandardisedKernel.of(base.inputs) if self.is_kernel_open else base.input_kernel
            carried = CarryColumns.of(self.columns, base.inputs) if carries and self.columns is not None else None
            own = replace(base, input_kernel=kernel, signals=signals, noise_variance=noise, carried=carried)
            self._tasks[key] = own
        return self._tasks[key]


@dataclass(frozen=True)
class Variant:
    """One of the models that a setting leaves open, by all that was chosen."""

    setting: Setting
    kernel: GraphKernel
    scale: Scale  # of the nodes
    carries: bool = False  # whether inputs carry over
    is_tuned: bool = False  # whether means have the amplitude of the least squared error

    @property
    def candidate(self) -> Candidate:
        """The model to learn."""
        setting, kernel = self.setting, self.setting.with_residual(self.kernel)
        task = setting.task_with(self.scale, self.carries)
        words = {setting.title: bool(setting.title), kernel.label: True, "node scales": self.scale == "node"}
        words |= {"carry-over": self.carries, "shrunk": setting.shrunk}
        if setting.transformation is not None:
            words[setting.transformation.described] = True
        return Candidate(
            task,
            kernel.scaled_by(1 / task.signals.units.spread),
            setting.shrunk,
            ", ".join(word for word, is_said in words.items() if is_said),
            setting.transformation,
            setting.learnt_from,
        )


# --------------------------------------------------------- learning them, and means of the least squared error


def with_tuned_means(candidate: Candidate) -> Candidate:
    """Candidate with means of the amplitude that has the least squared error."""
    return replace(candidate, name=f"{candidate.name}, least squares", untuned=candidate)


def differ_in_scale(candidate: Candidate, task: Task, model: GraphGP) -> bool:
    """Return whether errors of signals left out differ in size, so that means are worth tuning: equation (18c)."""
    if not candidate.shrunk or task.spectrum.needs_passes or task.signals.has_missing:
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
    plain = [one.untuned or one for one in candidates]
    places = {one: place for place, one in enumerate(plain) if one not in learnt}
    own, kernels = [tasks[place] for place in places.values()], [one.kernel for one in places]
    fits = learn_all(own, kernels, solver, [known[place] for place in places.values()])
    if looks_elsewhere:
        rough = learn_all(own, kernels, solver.coarse())
        gains = [other.log_posterior - fit.log_posterior for other, fit in zip(rough, fits, strict=True)]
        for place in (place for place, gain in enumerate(gains) if gain > OTHER_MAXIMUM_NATS):
            (fits[place],) = learn_all([own[place]], [kernels[place]], solver, [rough[place]])
    learnt |= zip(places, fits, strict=True)
    for one, task in zip(candidates, tasks, strict=True):
        if one.untuned is not None:
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
    return posterior_of(replace(model, shrinkage=None), task.inputs, task.signals, task.carried)
