"""Models that may be learnt: data and decisions, and what is made of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from spectralgp._basics.checks import Indices
from spectralgp.fields import GraphGP, Posterior, condition, condition_shrunk
from spectralgp.kernels import GraphKernel, Polynomial, SpectralKernel, Standardised, Term
from spectralgp.kernels.carry import CarryColumns
from spectralgp.learning.families import learn_all
from spectralgp.learning.fit import Fit, Solver
from spectralgp.learning.objective import Task
from spectralgp.signals import Scale, Signals

RESIDUAL_DEGREE = 2
BOTH_TERMS: tuple[Term, ...] = ("smooth", "linear")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model to learn, and how it is conditioned on signals."""

    task: Task
    kernel: GraphKernel
    shrunk: bool = False  # whether the covariance of predictions is shrunk towards the graph's
    name: str = ""  # for people
    warm_start_from: Candidate | None = None  # with the same parameters on other data

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
class Setting:
    """A task and what was decided about its variants, from which candidates are made; equal tasks are made once."""

    task: Task  # its noise variance in the units that the signals came in
    signals: dict[Scale, Signals]  # by the way their nodes are scaled, the first choice first
    is_kernel_open: bool = False  # whether the input kernel is the default one, whose terms are to be chosen
    columns: Indices | None = None  # of the inputs that may carry over
    residual: SpectralKernel | str | None = None  # filter of what neighbours share and inputs do not explain
    shrunk: bool = False  # whether the covariance of predictions is shrunk towards the graph's
    _tasks: dict[object, Task] = field(default_factory=dict)

    @property
    def first_scale(self) -> Scale:
        """How nodes are scaled unless something else is found better."""
        return next(iter(self.signals))

    def candidate(
        self,
        kernel: GraphKernel,
        terms: tuple[Term, ...] = BOTH_TERMS,
        scale: Scale = None,
        carries: bool = False,
        warm_start_from: Candidate | None = None,
    ) -> Candidate:
        """A kernel with the residual that goes with it, on a task."""
        scale = self.first_scale if scale is None else scale
        task, full = self._task(terms, scale, carries), self._with_residual(kernel)
        parts = [full.label]
        if self.is_kernel_open:
            parts.append(" + ".join(terms))
        parts += [
            name
            for name, used in (("node scales", scale == "node"), ("carry-over", carries), ("shrunk", self.shrunk))
            if used
        ]
        scaled = full.scaled_by(1 / task.signals.units.spread)
        return Candidate(task, scaled, self.shrunk, ", ".join(parts), warm_start_from)

    def _task(self, terms: tuple[Term, ...], scale: Scale, carries: bool) -> Task:
        """The task with an input kernel of some terms, nodes scaled in some way, with or without carry-over."""
        key = (terms, scale, carries)
        if key not in self._tasks:
            base, signals = self.task, self.signals[scale]
            unit, noise = signals.units.spread**2, base.noise_variance
            if isinstance(noise, tuple):
                noise = (noise[0] / unit, noise[1] / unit)
            elif noise is not None:
                noise = noise / unit
            kernel = Standardised.of(base.inputs, terms) if self.is_kernel_open else base.input_kernel
            carried = CarryColumns.of(self.columns, base.inputs) if carries and self.columns is not None else None
            self._tasks[key] = replace(
                base, input_kernel=kernel, signals=signals, noise_variance=noise, carried=carried
            )
        return self._tasks[key]

    def _with_residual(self, kernel: GraphKernel) -> GraphKernel:
        """A kernel with a residual filter beside it, where one is wanted and it can have one."""
        if self.residual is None:
            return kernel
        if not isinstance(self.residual, str):
            return kernel.with_residual(self.residual)
        if self.task.graph.n_edges == 0:
            return kernel  # all frequencies are the same: what neighbours share is noise
        constraint: Literal["interval", "eigenvalues"]
        constraint = "interval" if kernel.is_positive_everywhere else "eigenvalues"
        return kernel.with_residual(Polynomial(RESIDUAL_DEGREE, constraint, kernel.laplacian, kernel.scaled))


def likelier_scale(setting: Setting, kernel: GraphKernel, carries: bool, solver: Solver) -> tuple[Scale, Fit]:
    """The way of scaling nodes under which a kernel makes the signals likelier, and a rough fit with it.

    Each node's own scale costs half a nat. For a kernel that the user chose: where models are stacked, folds decide.
    """
    found: dict[Scale, tuple[float, Fit]] = {}
    for scale, signals in setting.signals.items():
        candidate = setting.candidate(kernel, scale=scale, carries=carries)
        (fit,) = learn_all([candidate.task], [candidate.kernel], solver.coarse())
        cost = 0.5 * signals.shape[1] if scale == "node" else 0.0
        found[scale] = (fit.in_units(signals).log_likelihood - cost, fit)
    best = max(found, key=lambda scale: found[scale][0])
    return best, found[best][1]
