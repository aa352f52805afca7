"""Candidate models: the settings and variants that they are made of, and their learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.saved import UNSAVED, axes
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
from spectralgp.model.kernels import GraphKernel, Polynomial, SpectralKernel, StandardisedKernel, with_residual
from spectralgp.model.kernels.carry import CarryColumns
from spectralgp.model.signals import Scale, Signals

RESIDUAL_DEGREE = 2
PRIOR_VALUES = 8.0  # equivalent sample size of a squared scale of one
NODES_PER_VALUE = 4  # nodes per independent error: errors at neighbours are correlated
SAME_SCALE = 0.3  # standard deviation of the log squared scales below which signals have one scale
OTHER_MAXIMUM_NATS = 0.5  # gain of a rough fit over a final one that is evidence of a higher maximum
AMPLITUDES = np.logspace(-4, 1, 21)  # factors of the variance explained by inputs


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model to learn, and how it is conditioned on signals."""

    task: Task
    kernel: GraphKernel
    shrunk: bool = False  # whether the covariance of predictions is shrunk towards the graph's
    name: str = ""
    transformation: Transformation | None = None  # of the user's inputs and signals into the task's, if any
    # signals from which hyperparameters are learnt; all unless given
    learnt_from: Annotated[Indices, axes("_learnt_from")] | None = None
    untuned: Annotated[Candidate | None, UNSAVED] = (
        None  # of a candidate with tuned means: the one whose hyperparameters it has
    )

    @property
    def described(self) -> str:
        """Name with the Laplacian."""
        return self.name if self.kernel.needs_no_graph else f"{self.name} ({self.kernel.laplacian} Laplacian)"

    @property
    def learning(self) -> Task:
        """Task of the signals from which hyperparameters are learnt, in the same units."""
        rows = self.learnt_from
        return self.task if rows is None else self.task.part(rows, self.task.signals.some(rows))

    def condition(
        self, model: GraphGP, task: Task | None = None, learns_tails: bool = True, is_fast: bool = False
    ) -> Any:
        """Condition a learnt model on the signals of the task, or of a part of it; learn the shrinkage if needed."""
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
        """Lagged coefficient that the transformation subtracts, the same at every frequency."""
        return 0.0 if self.transformation is None else self.transformation.carried

    @cached_property
    def _log_slopes(self) -> Array:
        """Log slopes of the transformation at the signals; zero without one."""
        if self.transformation is None:
            return np.zeros(1)
        return self.transformation.log_slopes_of(self.task.signals, self.task.inputs)

    @property
    def spread(self) -> float:
        """Unit of the task's signals in the user's; at a typical value if they are transformed."""
        return self.task.signals.units.spread * float(np.exp(-np.mean(self._log_slopes)))

    def in_units(self, fit: Fit) -> Fit:
        """Fit to the task in the user's units, for a node of relative scale one."""
        shift = float(np.sum(self._log_slopes)) - self.task.signals.log_volume
        return replace(fit.shifted(shift), model=fit.model.scaled_by(self.spread))


@dataclass(frozen=True, eq=False)
class Setting:
    """Task with the decisions that hold for all its variants."""

    task: Task  # with a noise variance in the user's units
    signals: dict[Scale, Signals]  # by the scale of the nodes, the first choice first
    is_kernel_open: bool = False  # whether the input kernel is the default one
    columns: Indices | None = None  # of the inputs in a lagged term
    residual: SpectralKernel | str | None = None  # filter of the residual covariance
    shrunk: bool = False  # whether the covariance of predictions is shrunk towards the graph's
    transformation: Transformation | None = None  # of the user's inputs and signals into the task's, if any
    learnt_from: Indices | None = None  # signals from which hyperparameters are learnt; all unless given
    title: str = ""  # first words of the names of its models
    _tasks: dict[object, Task] = field(default_factory=dict)  # cached, so that variants share them

    @property
    def has_edges(self) -> bool:
        """Whether the graph has any edge."""
        return self.task.graph.n_edges > 0

    @property
    def has_folds(self) -> bool:
        """Whether models can be compared by validation: several signals whose values vary."""
        return self.task.signals.shape[0] > 1 and self.task.signals.variance > 0

    def with_residual(self, kernel: GraphKernel) -> GraphKernel:
        """Add the residual covariance to a kernel."""
        residual = self.residual
        if isinstance(residual, str):
            if not self.has_edges:  # all frequencies are equal: a residual is noise
                return kernel
            constraint: Literal["interval", "eigenvalues"]
            constraint = "interval" if kernel.constraint == "interval" else "eigenvalues"
            residual = Polynomial(RESIDUAL_DEGREE, constraint, kernel.laplacian, kernel.scaled)
        return kernel if residual is None else with_residual(kernel, residual)

    def task_with(self, scale: Scale, carries: bool) -> Task:
        """Task with given scales of the nodes, with or without a lagged term."""
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
    """Model that the default may choose, named by its choices."""

    setting: Setting
    kernel: GraphKernel
    scale: Scale  # of the nodes
    carries: bool = False  # whether it has a lagged term
    is_tuned: bool = False  # whether its means have the amplitude of least squared error

    @property
    def candidate(self) -> Candidate:
        """Model to learn."""
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


# ---------------------------------------------------------------------- learning, and means of least squared error


def with_tuned_means(candidate: Candidate) -> Candidate:
    """Candidate with means whose amplitude has the least squared error."""
    return replace(candidate, name=f"{candidate.name}, least squares", untuned=candidate)


def differ_in_scale(candidate: Candidate, task: Task, model: GraphGP) -> bool:
    """Return whether leave-one-out errors differ in size between signals: equation (18c)."""
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
    """Fit candidates to tasks.

    `learnt` is a cache of fits; new ones are added. A tuned candidate has the fit of its untuned one with another
    amplitude of the means. With `looks_elsewhere` a fit restarts from a rough one from scratch if that is likelier.
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
    """Model with means whose amplitude has the least leave-one-out squared error: equation (18d).

    Signals are left out one by one, equation (10), and errors are in the user's units.
    """
    models, signals = [replace(model, mean_amplitude=float(amplitude)) for amplitude in AMPLITUDES], task.signals
    squares = []
    for posterior in (_conditioned(one, task) for one in models):
        errors = posterior.left_out(signals.centred_by == "node" and signals.shape[0] > 1).errors
        squares.append(np.mean(np.square(signals.units.restore_scale(posterior.basis.unload(errors)))))
    return models[int(np.argmin(squares))]


def _conditioned(model: GraphGP, task: Task) -> Posterior:
    return posterior_of(replace(model, shrinkage=None), task.inputs, task.signals, task.carried)
