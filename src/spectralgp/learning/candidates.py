"""Candidate models: the settings and variants that they are made of, and the learning of kernels and candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from operator import itemgetter
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

import numpy as np

from spectralgp._basics.checks import Indices, Mask, as_integer, as_option
from spectralgp._basics.progress import Progress, quietly, reporting_to
from spectralgp._basics.saved import UNSAVED, Count, axes, ge
from spectralgp.graphs import GraphBase
from spectralgp.learning.fit import Fit, Solver
from spectralgp.learning.missing import expectation_of, learn_incomplete, with_evidence
from spectralgp.learning.objective import Task
from spectralgp.learning.sqp import Sqp, as_solver
from spectralgp.learning.time_order import TimeOrder
from spectralgp.model.fields import GraphGP, Transformation, condition_latent, posterior_of, shrunk_posterior_of
from spectralgp.model.kernels import Diffusion, GraphKernel, Identity, Polynomial, SpectralKernel, StandardisedKernel
from spectralgp.model.kernels.base import constructor_arguments, theta_near, with_residual
from spectralgp.model.kernels.carry import CarryColumns
from spectralgp.model.kernels.inputs import KernelTerm
from spectralgp.model.kernels.named import End, PinnedFilter, Shape
from spectralgp.model.signals import Scale, Signals

RESIDUAL_DEGREE = 2
Effort = Literal["full", "fast"]
TERMS: tuple[KernelTerm, ...] = ("smooth", "linear")  # of the default input kernel
PRIOR_VALUES = 8.0  # equivalent sample size of a squared scale of one
NODES_PER_VALUE = 4  # nodes per independent error: errors at neighbours are correlated
SAME_SCALE = 0.3  # standard deviation of the log squared scales below which signals have one scale
MOST_CHOSEN_ON = 100  # signals by which a residual is chosen
CHOICE_DEGREE, CHOICE_TOLERANCE_NATS = 4, 1.0  # of the signal's filter there in the default, and of the fits
MOST_LEARNT_WHOLE = 1_500  # signals from which hyperparameters are all learnt
STACKED_DRAWS = 16  # of the hyperparameters of each stacked model without shrinkage
AMPLITUDES = np.logspace(-4, 1, 21)  # factors of the variance explained by inputs

GraphOf: TypeAlias = Callable[[Indices, Mask | None], GraphBase]
"""Makes the graph of some of the signals, without hidden entries."""


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
    # of a candidate with tuned means: the one whose hyperparameters it has
    untuned: Annotated[Candidate | None, UNSAVED] = None
    is_fallback: bool = False  # whether predictions fall back to it where inputs leave the range of training

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
    def spread(self) -> float:
        """Unit of the task's signals in the user's; at a typical value if they are transformed."""
        signals, spread = self.task.signals, self.task.signals.units.spread
        if self.transformation is None:
            return spread
        return spread * float(np.exp(-np.mean(self.transformation.log_slopes_of(signals, self.task.inputs))))

    def noise_of(self, model: GraphGP) -> float:
        """Noise variance of a model in the user's units, with the least power of its residual, within its bounds."""
        bounds, least = self.task.noise_variance, np.min(model.graph_kernel.residual_power(model.spectrum.eigenvalues))
        most = bounds[1] * self.spread**2 if isinstance(bounds, tuple) else np.inf if bounds is None else 0.0
        return float(np.clip(model.noise_variance + least, model.noise_variance, max(most, model.noise_variance)))

    def in_units(self, fit: Fit) -> Fit:
        """Fit to the task in the user's units, for a node of relative scale one."""
        signals, volume = self.task.signals, self.task.signals.log_volume
        if self.transformation is not None:
            volume -= float(np.sum(self.transformation.log_slopes_of(signals, self.task.inputs)))
        return replace(fit.shifted(-volume), model=fit.model.scaled_by(self.spread))


@dataclass(frozen=True, eq=False)
class ResidualChoice:
    """Residual that evidence chose, if any, its rough fit, and the noise variance there in the user's units."""

    kernel: PinnedFilter | None
    fit: Fit | None = None
    noise_variance: float = 0.0


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
    is_fallback: bool = False  # whether it is "no change"
    _tasks: dict[object, Task] = field(default_factory=dict)  # cached, so that variants share them
    chosen_on: Indices | None = None  # signals by which a residual is chosen, if not by all
    chosen: list[ResidualChoice] = field(default_factory=list)  # residual, once it is chosen

    @property
    def has_folds(self) -> bool:
        """Whether models can be compared by validation: several signals whose values vary."""
        return self.task.signals.shape[0] > 1 and self.task.signals.variance > 0

    def task_with(self, scale: Scale, carries: bool, terms: tuple[KernelTerm, ...]) -> Task:
        """Task with given scales of the nodes, with or without a lagged term, and terms of an open input kernel."""
        key = (scale, carries, terms)
        if key not in self._tasks:
            base, signals = self.task, self.signals[scale]
            unit, noise = signals.units.spread**2, base.noise_variance
            if isinstance(noise, tuple):
                noise = (noise[0] / unit, noise[1] / unit)
            elif noise is not None:
                noise = noise / unit
            kernel = base.input_kernel
            if self.is_kernel_open:
                kernel = StandardisedKernel.of(base.inputs, terms, self.columns)
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
    terms: tuple[KernelTerm, ...] = TERMS  # of the input kernel, if that is open
    is_free: bool = False  # whether its residual is a polynomial, beside the noise of the chosen one

    @property
    def candidate(self) -> Candidate:
        """Model to learn."""
        setting, kernel, residual = self.setting, self.kernel, self.setting.residual
        task = setting.task_with(self.scale, self.carries, self.terms)
        if isinstance(residual, str):
            residual = None
            if setting.task.graph.n_edges > 0 and isinstance(kernel, SpectralKernel):  # else a residual is noise
                choice = chosen_residual(setting, kernel, task)
                residual = choice.kernel and replace(choice.kernel, laplacian=kernel.laplacian, scaled=kernel.scaled)
                if self.is_free:
                    residual = Polynomial(RESIDUAL_DEGREE, laplacian=kernel.laplacian, scaled=kernel.scaled)
                    least = float(np.exp(task.noise_bounds[0]))
                    if task.known_noise is None:
                        bounds = least, max(2 * least, choice.noise_variance / task.signals.units.spread**2)
                        task = replace(task, noise_variance=bounds)
        kernel = kernel if residual is None else with_residual(kernel, residual)
        words = {"no change": setting.is_fallback, kernel.label: True, "node scales": self.scale == "node"}
        words |= {f"{self.terms[0]} alone": len(self.terms) == 1, "carry-over": self.carries, "shrunk": setting.shrunk}
        words["free residual"] = self.is_free
        if setting.transformation is not None:
            words[setting.transformation.described] = True
        return Candidate(
            task,
            kernel.scaled_by(1 / task.signals.units.spread),
            setting.shrunk,
            ", ".join(word for word, is_said in words.items() if is_said),
            setting.transformation,
            setting.learnt_from,
            is_fallback=setting.is_fallback,
        )


@dataclass(frozen=True)
class Stacking:
    """Kernels to stack, with settings of folds, draws and threads: an argument for `graph_kernel`.

    Parameters
    ----------
    kernels : graph kernel or list of them, optional
        Kernels, kept as a tuple. If not given, the default chooses, as without a `graph_kernel`.
    n_folds : int, default=5
        Folds for the weights of stacked models. The default compares models on at most 400 signals, in as few folds as
        hold out 60 of them, or 30 with 500 nodes and more; by forward chaining in two steps if rows are in time order.
    n_draws : int, optional
        Draws of the hyperparameters from Laplace's approximation to their posterior, over which predictions are
        averaged; 0 uses the best values alone. Default: 16 for stacked models on an exact spectrum without shrinkage.
    n_jobs : int, optional
        Threads that learn folds in parallel on an exact spectrum, as in joblib. Default: one.
    effort : {"full", "fast"}, default="full"
        Effort of the default's search. "fast" compares fewer models: one Laplacian, one degree, and both terms of the
        inputs together, in little more than half the time, for slightly lower densities. Given kernels are as before.

    Examples
    --------
    >>> from spectralgp import Diffusion, GraphGPRegressor, Polynomial, Stacking
    >>> model = GraphGPRegressor(graph_kernel=Stacking([Diffusion(), Polynomial(2)], n_folds=10))
    >>> model.set_params(graph_kernel__n_folds=4).graph_kernel.n_folds
    4
    """

    kernels: Annotated[GraphKernel | Sequence[GraphKernel] | None, UNSAVED] = None  # files have them beside it
    n_folds: Annotated[int, ge(2)] = 5
    n_draws: Count | None = None
    n_jobs: Annotated[int, ge(-(2**31))] | None = None
    effort: Effort = "full"

    get_params = constructor_arguments

    def __sklearn_clone__(self) -> Self:
        return self  # it cannot change

    def __post_init__(self) -> None:
        """Check every setting."""
        condition = "graph_kernel must be a graph kernel such as Polynomial(3), a list of them, or a Stacking of them"
        remedy = "For a filter of your own, wrap it in Response(function); input kernels go into input_kernel=."
        if self.kernels is not None:
            listed = [self.kernels] if isinstance(self.kernels, GraphKernel) else self.kernels
            if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
                raise TypeError(f"{condition}; got {self.kernels!r}. {remedy}")
            for place, kernel in enumerate(listed):
                if not isinstance(kernel, GraphKernel):
                    got = f"{kernel!r} at position {place}, of type {type(kernel).__module__}"
                    raise TypeError(f"{condition}; got {got}. {remedy}")
            object.__setattr__(self, "kernels", tuple(listed))
        as_integer(self.n_folds, "n_folds", 2)
        as_option(self.effort, "effort", get_args(Effort))
        if self.n_draws is not None:
            as_integer(self.n_draws, "n_draws", 0)

    @property
    def label(self) -> str:
        """Label of its kernel, or "stacked" for several."""
        kernels: Any = self.kernels or (Polynomial("auto"),)
        return kernels[0].label if len(kernels) == 1 else "stacked"


@dataclass(frozen=True, eq=False)
class Choices:
    """Given kernels, or the settings from which the default chooses."""

    setting: Setting
    kernels: Sequence[GraphKernel]  # to learn, unless the choice is open; several are stacked
    stacking: Stacking
    is_open: bool = False  # whether the user left the choice open
    order: TimeOrder | None = None  # of the rows, if any: models are compared by forward chaining
    # for the best model too: logarithms or, for rows in time order, changes without and with inputs
    further: tuple[Setting, ...] = ()
    graph_of: GraphOf | None = None  # for validation; None if the graph is given

    @property
    def is_choice(self) -> bool:
        """Whether held-out scores choose: signals vary and there is more than one variant."""
        has_variants = self.setting.task.graph.n_edges > 0 or len(self.setting.signals) > 1 or bool(self.further)
        return self.is_open and self.setting.has_folds and has_variants

    @property
    def has_many_signals(self) -> bool:
        """Whether hyperparameters are learnt from some signals: never on large graphs, nor if signals are filtered."""
        task = self.setting.task
        is_quick = task.observed_by is not None or task.spectrum.needs_passes
        return task.signals.shape[0] > MOST_LEARNT_WHOLE and not (is_quick or task.is_in_time)

    def with_settings(self, **changes: Any) -> Choices:
        """Choices with changes of all settings."""
        setting, *further = (replace(one, **changes) for one in (self.setting, *self.further))
        return replace(self, setting=setting, further=tuple(further))

    @property
    def n_draws(self) -> int:
        """Number of draws of the hyperparameters per model."""
        if self.stacking.n_draws is not None:
            return self.stacking.n_draws
        # each draw costs a pass over a large graph at prediction; shrunk models have the tails of a t already
        is_stacked = self.is_choice or (not self.is_open and len(self.kernels) > 1)
        return 0 if not is_stacked or self.setting.task.spectrum.needs_passes or self.setting.shrunk else STACKED_DRAWS

    def asked_for(self, solver: Solver) -> tuple[list[Variant], Fit | None]:
        """Models to learn if nothing is chosen, and a rough fit of the first if there is one."""
        setting, kernels, (*others, last) = self.setting, self.kernels, self.setting.signals
        if self.is_open and setting.task.observed_by is None:  # one signal cannot tell scales of nodes
            return [Variant(setting, Diffusion() if setting.task.graph.n_edges else Identity(), last)], None
        if setting.task.signals.shape[0] < 2 and len(kernels) > 1:
            raise ValueError(
                "Y must hold at least 2 signals to stack kernels, unless it is one of 5 to 2,000 normal values on an "
                "exact spectrum, with prior='weak', a level in common, and no residual or bounds of the noise given; "
                "got n_samples = 1. Ask for one kernel, for example graph_kernel=Polynomial(1)."
            )
        carries, scale, start = setting.columns is not None, last, None
        if others:
            scale, start = likelier_scale(Variant(setting, kernels[0], last, carries=carries), solver)
        return [Variant(setting, kernel, scale, carries=carries) for kernel in kernels], start


# ---------------------------------------------------------------------------------------------------------- learning


def learn(
    task: Task,
    graph_kernel: GraphKernel,
    *,
    solver: Solver | Literal["sqp"] | None = None,
    progress: Progress | None = None,
) -> Fit:
    """Learn the hyperparameters of one graph kernel, the input kernel and the noise together.

    Parameters
    ----------
    task : Task
        Graph, signals, inputs, input kernel and settings.
    graph_kernel : GraphKernel
        The form to learn; a polynomial needs a degree in numbers.
    solver : Solver or "sqp", optional
        `Sqp`, joint constrained optimisation, unless given.
    progress : callable, optional
        Called with the name of each step as it ends.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Graph, Polynomial, Task, learn
    >>> ring = Graph.from_edges([(node, (node + 1) % 12) for node in range(12)])
    >>> signals = np.cumsum(np.random.default_rng(0).standard_normal((8, 12)), axis=1)
    >>> fit = learn(Task.of(ring, None, np.empty((8, 0)), signals - signals.mean()), Polynomial(2))
    >>> fit.converged, bool(fit.model.power.min() >= 0)
    (True, True)
    """
    if not isinstance(task, Task):
        raise TypeError(f"task must be a Task; got {type(task).__name__}. Make one with Task.of(...).")
    if not isinstance(graph_kernel, GraphKernel):
        raise TypeError(f"graph_kernel must be a graph kernel such as Polynomial(3); got {graph_kernel!r}.")
    with reporting_to(progress):
        return with_evidence(task, learn_all([task], [graph_kernel], as_solver(solver))[0])


def learn_all(
    tasks: Sequence[Task],
    kernels: Sequence[GraphKernel],
    solver: Solver | None = None,
    warm_starts: Sequence[Fit | None] | None = None,
) -> list[Fit]:
    """Learn graph kernels on their tasks, from warm starts if given; kernels on one path share a search."""
    solver, known = solver or Sqp(), warm_starts or [None] * len(kernels)
    fits, left = dict[int, Fit](), list(range(len(kernels)))
    while left:
        task, beside = tasks[left[0]], left[:1]
        if solver.shares_paths and task.is_complete:
            beside = [index for index in left if tasks[index] is task]
        paths = [kernels[index].search().path() for index in beside]
        path = max((path for path in paths if kernels[left[0]] in path), key=len)
        group = [index for index in beside if kernels[index] in path]
        left = [index for index in left if index not in group]
        own, starts = [kernels[index] for index in group], [start for i in group if (start := known[i]) is not None]
        if task.is_complete:
            found = solver.fit(task, own, starts if len(starts) == len(group) else None)
        else:
            found = [learn_incomplete(task, own[0], solver, known[group[0]])]
        fits |= zip(group, found, strict=True)
    return [fits[index] for index in range(len(kernels))]


def learn_near(
    task: Task, kernel: GraphKernel, solver: Solver, warm_start: Fit | None = None, near: GraphGP | None = None
) -> Fit:
    """Learn one graph kernel; missing values are first imputed under a model `near` it, if given.

    Likelihoods of incomplete signals are expected ones until `with_evidence`.
    """
    if task.is_complete:
        return learn_all([task], [kernel], solver, [warm_start])[0]
    return learn_incomplete(task, kernel, solver, warm_start, near)


def likelier_scale(variant: Variant, solver: Solver) -> tuple[Scale, Fit]:
    """Scale of the nodes under which the signals are likelier, and a rough fit with it."""
    found: list[tuple[float, Scale, Fit]] = []
    for scale in variant.setting.signals:
        candidate = replace(variant, scale=scale).candidate
        task = candidate.learning
        with quietly():
            fit = with_evidence(task, learn_all([task], [candidate.kernel], solver.coarse())[0])
        cost = 0.5 * task.signals.shape[1] if scale == "node" else 0.0  # half a nat per node
        found.append((fit.log_likelihood - task.signals.log_volume - cost, scale, fit))
    return max(found, key=itemgetter(0))[1:]


def chosen_residual(setting: Setting, kernel: SpectralKernel, task: Task) -> ResidualChoice:
    """Choose the residual of a setting by the first model that asks, with its task.

    It vanishes at one end of the spectrum, or is none, as evidence says: equation (11c). A line is an exponential of
    little bend, so other shapes are tried where that explains more than the price of a line. Missing values are imputed
    under the model without a residual. With a likelihood, and missing values on a large graph, it is the exponential.
    """
    if setting.chosen:
        return setting.chosen[0]
    is_large, signals = task.spectrum.needs_passes, task.signals
    pinned = partial(PinnedFilter, laplacian=kernel.laplacian, scaled=kernel.scaled)
    if task.observed_by is not None or (is_large and not task.is_complete):
        return ResidualChoice(pinned())
    part, rows = task, setting.learnt_from if setting.chosen_on is None else setting.chosen_on
    rows = np.arange(signals.shape[0]) if rows is None else rows
    if not is_large and (rows.size < signals.shape[0] or rows.size > MOST_CHOSEN_ON):
        rows = rows[:: -(-rows.size // MOST_CHOSEN_ON)]
        part = task.part(rows, signals.some(rows))
    if setting.chosen_on is not None:  # what a filter of low degree misses is no residual
        kernel = Polynomial(CHOICE_DEGREE, laplacian=kernel.laplacian, scaled=kernel.scaled)
    kernel, solver, best = kernel.scaled_by(1 / signals.units.spread), Sqp(tolerance_nats=CHOICE_TOLERANCE_NATS), None
    with quietly():
        (bare,) = learn_all([part], [kernel], solver)
        if not part.is_complete:
            part = expectation_of(part, is_coarse=True).completed(bare.model)
            (bare,) = solver.fit(part, [kernel], [bare])
        likeliest, bent, highest, price = bare, bare, bare.log_likelihood, 0.5 * float(np.log(part.signals.size))
        for end, shape in product(get_args(End), get_args(Shape)):
            if shape != "exponential" and bent.log_likelihood < bare.log_likelihood + price - CHOICE_TOLERANCE_NATS:
                continue
            own = pinned(shape=shape, vanishes_at=end)
            one = Candidate(part, with_residual(kernel, own))
            (fit,) = solver.fit(part, [one.kernel], [start_from(bare, one)])
            bent = fit if shape == "exponential" else bent
            value = fit.log_likelihood - price * own.theta.size
            if value > highest:
                best, highest, likeliest = own, value, fit
    noise_variance = likeliest.model.noise_variance * signals.units.spread**2
    setting.chosen.append(ResidualChoice(best, likeliest, noise_variance))
    return setting.chosen[0]


def start_from(fit: Fit, candidate: Candidate) -> Fit:
    """Start of a candidate near the fit of another: its filters, input kernel and noise where forms agree."""
    task, kernel, model = candidate.task, candidate.kernel, fit.model
    before, inputs, spectrum = model.graph_kernel, task.input_kernel, model.spectrum
    if (kernel.laplacian, kernel.scaled) != (before.laplacian, before.scaled):
        spectrum = task.spectrum_of(kernel)
    kernel = kernel.bind(spectrum)
    if inputs.theta.shape == model.input_kernel.theta.shape:
        inputs = inputs.with_theta(model.input_kernel.theta)
    own = replace(
        model,
        spectrum=spectrum,
        graph_kernel=kernel.with_theta(theta_near(kernel, before, spectrum, task.variance)),
        input_kernel=inputs,
        carry=None,
    )
    return replace(fit, model=own)


def with_tuned_means(candidate: Candidate) -> Candidate:
    """Candidate with means whose amplitude has the least squared error."""
    return replace(candidate, name=f"{candidate.name}, least squares", untuned=candidate)


def differ_in_scale(candidate: Candidate, task: Task, model: GraphGP) -> bool:
    """Return whether leave-one-out errors differ in size between signals: equation (18c)."""
    if not candidate.shrunk or task.spectrum.needs_passes or task.signals.has_missing:
        return False
    n_signals, n_nodes = task.signals.shape
    posterior = posterior_of(model, task.inputs, task.signals, task.carried)
    energies = posterior.left_out(task.signals.centred_by == "node" and n_signals > 1).lengths / n_nodes
    n_values = n_nodes / NODES_PER_VALUE
    return float(np.std(np.log(PRIOR_VALUES + n_values * energies))) > SAME_SCALE


def learn_candidates(
    candidates: Sequence[Candidate],
    tasks: Sequence[Task],
    solver: Solver,
    starts: Sequence[Fit | None] | None = None,
    learnt: dict[Candidate, Fit] | None = None,
) -> list[Fit]:
    """Fit candidates to tasks.

    `learnt` is a cache of fits; new ones are added. A tuned candidate has the fit of its untuned one with another
    amplitude of the means.
    """
    learnt = {} if learnt is None else learnt
    known: Sequence[Fit | None] = starts or [None] * len(candidates)
    plain = [one.untuned or one for one in candidates]
    places = {one: place for place, one in enumerate(plain) if one not in learnt}
    own, kernels = [tasks[place] for place in places.values()], [one.kernel for one in places]
    fits = learn_all(own, kernels, solver, [known[place] for place in places.values()])
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
    for one in models:
        posterior = posterior_of(one, task.inputs, signals, task.carried)
        errors = posterior.left_out(signals.centred_by == "node" and signals.shape[0] > 1).errors
        squares.append(np.mean(np.square(signals.units.restore_scale(posterior.basis.unload(errors)))))
    return models[int(np.argmin(squares))]
