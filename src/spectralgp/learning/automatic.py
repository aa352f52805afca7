"""What "auto" tries: models by stages, each stage chosen by what the one before predicted of signals held out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from spectralgp._basics.checks import Array, Indices
from spectralgp.graphs import GraphBase, LaplacianKind
from spectralgp.kernels import GraphKernel, Identity, InputKernel, Polynomial, SpectralKernel, Standardised, Term
from spectralgp.kernels.carry import CarryColumns
from spectralgp.learning import Candidate, Solver, Task, learn_all
from spectralgp.learning.fitting import Plan
from spectralgp.learning.task import NoiseVariance, Prior
from spectralgp.signals import Scale, Signals
from spectralgp.spectra import Exact, SpectrumSettings

RESIDUAL_DEGREE = 2
DEGREE, HIGHER_DEGREE = 2, 4
LAPLACIANS: tuple[LaplacianKind, ...] = ("combinatorial", "normalized")
MOST_SHRUNK = 2_000  # nodes: what is shrunk is a matrix of nodes by nodes

BOTH: tuple[Term, ...] = ("smooth", "linear")


@dataclass(frozen=True, eq=False)
class Setting:
    """Data and what the user decided, from which tasks and candidates are made; the same ones are made once.

    Parameters
    ----------
    graph : Graph
        The graph.
    inputs : ndarray of shape (n_signals, n_features)
        Training inputs.
    kernel : InputKernel or None
        Covariance between signals; None for the default one, whose terms are open.
    signals : dict
        Signals by the way their nodes are scaled, the first of them first choice.
    columns : ndarray of int or None
        Columns of the inputs that may carry over.
    residual : SpectralKernel, "auto" or None
        What neighbours share and inputs do not explain.
    shrunk : bool
        Whether the covariance of predictions is shrunk towards the graph's.
    noise_variance, prior, spectrum
        As the fields of `Task`, the noise in the units that the signals came in.
    """

    graph: GraphBase
    inputs: Array
    kernel: InputKernel | None
    signals: dict[Scale, Signals]
    columns: Indices | None = None
    residual: SpectralKernel | str | None = None
    shrunk: bool = False
    noise_variance: NoiseVariance = None
    prior: Prior = "weak"
    spectrum: SpectrumSettings = Exact()
    _tasks: dict[object, Task] = field(default_factory=dict)

    @property
    def first_scale(self) -> Scale:
        """How nodes are scaled unless something else is found better."""
        return next(iter(self.signals))

    def task(self, terms: tuple[Term, ...] = BOTH, scale: Scale = None, carries: bool = False) -> Task:
        """The task with an input kernel of some terms, nodes scaled in some way, with or without carry-over."""
        key = (terms, scale, carries)
        if key not in self._tasks:
            signals = self.signals[scale]
            kernel = Standardised.of(self.inputs, terms) if self.kernel is None else self.kernel
            noise = self.noise_variance
            if noise is not None:
                unit = signals.units.spread**2
                noise = (noise[0] / unit, noise[1] / unit) if isinstance(noise, tuple) else noise / unit
            carried = CarryColumns.of(self.columns, self.inputs) if carries and self.columns is not None else None
            self._tasks[key] = Task(self.graph, kernel, self.inputs, signals, noise, self.prior, self.spectrum, carried)
        return self._tasks[key]

    def candidate(
        self,
        kernel: GraphKernel,
        terms: tuple[Term, ...] = BOTH,
        scale: Scale = None,
        carries: bool = False,
        near: Candidate | None = None,
    ) -> Candidate:
        """A kernel with the residual that goes with it, on a task; `near` is a candidate with the same parameters."""
        scale = self.first_scale if scale is None else scale
        task, full = self.task(terms, scale, carries), self.with_residual(kernel)
        parts = [full.label]
        if self.kernel is None:
            parts.append(" + ".join(terms))
        parts += [name for name, used in (("node scales", scale == "node"), ("carry-over", carries)) if used]
        name = ", ".join([*parts, *(["shrunk"] if self.shrunk else [])])
        return Candidate(task, full.scaled_by(1 / task.signals.units.spread), self.shrunk, name, near)

    def with_residual(self, kernel: GraphKernel) -> GraphKernel:
        """A kernel with a residual filter beside it, where one is wanted and it can have one."""
        if self.residual is None:
            return kernel
        if not isinstance(self.residual, str):
            return kernel.with_residual(self.residual)
        if self.graph.n_edges == 0:
            return kernel  # all frequencies are the same: what neighbours share is noise
        constraint: Literal["interval", "eigenvalues"]
        constraint = "interval" if kernel.is_positive_everywhere else "eigenvalues"
        return kernel.with_residual(Polynomial(RESIDUAL_DEGREE, constraint, kernel.laplacian, kernel.scaled))


def likelier_scale(setting: Setting, kernel: GraphKernel, carries: bool, solver: Solver) -> Scale:
    """The way of scaling nodes under which a kernel makes the signals likelier; each node's own scale costs half a nat.

    For a kernel that the user chose: where models are stacked, folds decide.
    """
    values: dict[Scale, float] = {}
    for scale, signals in setting.signals.items():
        candidate = setting.candidate(kernel, scale=scale, carries=carries)
        (fit,) = learn_all([candidate.task], [candidate.kernel], solver.coarse())
        cost = 0.5 * signals.shape[1] if scale == "node" else 0.0
        values[scale] = fit.in_units(signals).log_likelihood - cost
    return max(values, key=lambda scale: values[scale])


def automatic(setting: Setting) -> Plan:
    """The plan of the default.

    1. Filters on two Laplacians, with a smooth and a linear term in the inputs.
    2. The better of those with a higher degree, and without scales of the nodes.
    3. The best of all with one term only; without a graph; and with what inputs carry over.
    4. The linear term alone with what inputs carry over.

    On a large graph one Laplacian is tried, in both degrees at once, and no model without a graph.
    """
    is_large, is_default = setting.spectrum.needs_passes, setting.kernel is None
    if setting.graph.n_edges == 0:
        yield from _without_graph(setting)
        return
    kernel, scale = Polynomial(DEGREE), setting.first_scale
    if is_large:
        tried = [setting.candidate(kernel), setting.candidate(Polynomial(HIGHER_DEGREE))]
        scores = yield tried
        best = tried[int(np.argmax(scores))]
        kernel = Polynomial(HIGHER_DEGREE) if scores[1] > scores[0] else kernel
    else:
        kernels = [Polynomial(DEGREE, laplacian=laplacian) for laplacian in LAPLACIANS]
        tried = [setting.candidate(kernel) for kernel in kernels]
        first = yield tried
        kernel, best = kernels[int(np.argmax(first))], tried[int(np.argmax(first))]
        higher = dataclasses.replace(kernel, degree=HIGHER_DEGREE)
        others = [other for other in setting.signals if other != scale]
        tried = [setting.candidate(higher), *(setting.candidate(kernel, scale=other, near=best) for other in others)]
        scores = yield tried
        if scores[0] > np.max(first):
            kernel, best = higher, tried[0]
        if len(others) and np.max(scores[1:]) > np.max(first):
            scale = others[int(np.argmax(scores[1:]))]
    further: list[Candidate] = []
    if is_default:
        further += [setting.candidate(kernel, (term,), scale) for term in BOTH]
    if not is_large:
        further += [setting.candidate(Identity(), terms, scale) for terms in _terms(is_default)]
    if setting.columns is not None:
        further += [setting.candidate(kernel, BOTH, scale, carries=True, near=best)]
    if further:
        yield further
    if setting.columns is not None and is_default:
        yield [setting.candidate(kernel, ("linear",), scale, carries=True, near=further[1])]


def _terms(is_default: bool) -> Sequence[tuple[Term, ...]]:
    """Sets of terms to try: both, and the linear one alone; a kernel of the user's own has no choice."""
    return (BOTH, ("linear",)) if is_default else (BOTH,)


def _without_graph(setting: Setting) -> Plan:
    """One output a node: nothing but terms and scales to choose."""
    sets: Sequence[tuple[Term, ...]] = (BOTH, ("smooth",), ("linear",)) if setting.kernel is None else (BOTH,)
    if len(sets) == 1:
        yield [setting.candidate(Identity(), scale=scale) for scale in setting.signals]
        return
    scores = yield [setting.candidate(Identity(), terms) for terms in sets]
    best = sets[int(np.argmax(scores))]
    others = [scale for scale in setting.signals if scale != setting.first_scale]
    if others:
        yield [setting.candidate(Identity(), best, other) for other in others]
