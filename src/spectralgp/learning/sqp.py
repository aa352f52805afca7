"""The default solver: sequential quadratic programming with continuation from simple filters to complex ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spectralgp._basics.checks import Array, as_integer, as_positive
from spectralgp._basics.progress import mention, report
from spectralgp.kernels import GraphKernel
from spectralgp.learning.ascent import GAIN, VIOLATION, Ascent, ascend, stationarity_limit
from spectralgp.learning.fisher import precision_at
from spectralgp.learning.fit import Fit, Outcome, Stage, certify, finish, lift_above_zero
from spectralgp.learning.grid import grid_search
from spectralgp.learning.objective import Objective
from spectralgp.learning.solver import Solver
from spectralgp.learning.starts import random_start, starting_points
from spectralgp.learning.task import Task
from spectralgp.spectra import Spectrum

ROUGHLY = 0.3  # nats that a fit may fall short of its maximum where it is compared and thrown away
APART = 4 * ROUGHLY  # nats, in height or along a parabola, from which rough solutions are not of one maximum
A_SIGNAL = 0.01  # the same for each signal, where there are many
SILENT = 1e-6  # mean power, as a share of what is not explained, below which a filter explains nothing
FAINT = 0.05  # the same of a rough solution, which may be on its way there


@dataclass(frozen=True, eq=False)
class _Solution:
    """Where a search ended, on which spectrum, and how."""

    objective: Objective
    x: Array
    value: float
    detail: str
    lift: float
    is_near: bool = False


@dataclass(frozen=True)
class Sqp(Solver):
    """Joint constrained optimisation of all hyperparameters, with continuation in the complexity of the filter.

    Each form of a filter starts from the solution of the one before it, the same function with one more parameter, so
    the objective never falls along the way and the search stays near the simpler model. What it finds is a local
    maximum near that model. Higher ones may exist further away: `n_restarts` looks for them. With few signals the
    highest maximum often predicts worse, at times far worse: restarts say how high the likelihood goes, not which model
    to trust.

    Parameters
    ----------
    max_iterations : int, default=500
        Limit on the iterations of each constrained solve.
    enough : float, optional
        Stop where a further step promises no more than so many nats; as far as rounding allows if not given.
    n_restarts : int, default=0
        Ascend from so many random starts too, in the final form of each kernel, and keep the highest log posterior of
        all; ``Fit.restarts`` says what each reached. Fits that are compared and thrown away, on held-out folds for
        one, have no restarts, and so weights of stacked kernels do not know of them. Where signals have holes, those
        are completed under the answer, and the search goes on from what is higher then: the log posterior given what
        was observed can only rise by it. The rough fits of the default model to such signals have none.
    random_state : int, default=0
        Seed of the random starts, the same for every kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Graph, Polynomial, Sqp, Task, learn
    >>> ring = Graph.from_edges([(node, (node + 1) % 12) for node in range(12)])
    >>> signals = np.cumsum(np.random.default_rng(0).standard_normal((8, 12)), axis=1)
    >>> task = Task.of(ring, None, np.empty((8, 0)), signals - signals.mean(), prior=None)
    >>> fit = learn(task, Polynomial(2), solver=Sqp(n_restarts=5))
    >>> len(fit.restarts), fit.log_posterior >= learn(task, Polynomial(2)).log_posterior
    (5, True)
    """

    max_iterations: int = 500
    enough: float | None = None
    n_restarts: int = 0
    random_state: int = 0

    def __post_init__(self) -> None:
        """Check the limits."""
        as_integer(self.max_iterations, "max_iterations", 1)
        as_integer(self.n_restarts, "n_restarts", 0)
        as_integer(self.random_state, "random_state", 0)
        if self.enough is not None:
            as_positive(self.enough, "enough")

    def roughly(self, n_signals: int = 0) -> Sqp:
        enough = max(ROUGHLY, A_SIGNAL * n_signals) if self.enough is None else self.enough
        return dataclasses.replace(self, enough=enough, n_restarts=0)

    def without_restarts(self) -> Sqp:
        return self if self.n_restarts == 0 else dataclasses.replace(self, n_restarts=0)

    @property
    def shares_families(self) -> bool:
        return True

    def n_steps(self, kernels: Sequence[GraphKernel]) -> int:
        return len(longest_path(kernels))

    def fit(self, task: Task, kernels: Sequence[GraphKernel], like: Sequence[Fit] | None = None) -> list[Fit]:
        warm = None if like is None else self._fit_like(task, kernels, like)
        return self._fit_cold(task, kernels) if warm is None else warm

    def _fit_like(self, task: Task, kernels: Sequence[GraphKernel], like: Sequence[Fit]) -> list[Fit] | None:
        """Every kernel from one start, the solution it is like; None where one of them does not converge."""
        fits = []
        for kernel, other in zip(kernels, like, strict=True):
            spectrum = other.model.spectrum
            if _is_silent(other.model.graph_kernel, spectrum, other.model.noise_variance, SILENT):
                return None
            objective = Objective(task, kernel.bind(spectrum), spectrum)
            found = self._solve_refined(objective, [objective.point(other.model)])
            fit = _finish(found, (_stage(kernel, found),))
            if not fit.converged:
                return None
            fits.append(self._restarted(fit, found))
        for form in longest_path(kernels):
            report(form.label)
        return fits

    def _fit_cold(self, task: Task, kernels: Sequence[GraphKernel]) -> list[Fit]:
        """Fits along one continuation."""
        path = longest_path(kernels)
        spectrum = task.spectrum_of(path[-1])
        fits: dict[int, Fit] = {}
        stages: list[Stage] = []
        x: Array | None = None
        guided: list[Array] = []
        before: GraphKernel | None = None
        faint = SILENT
        for form in path:
            objective = Objective(task, form.bind(spectrum), spectrum)
            if before is None or x is None:
                starts = self._first_starts(objective)
            else:
                starts = _grown(objective, before, x, faint)
            if form.guides():
                guided = self._guide(objective, guided, before)
                starts += guided
                if form in kernels:
                    starts += grid_search(objective)[:1]
            # with a prior and a residual, forms on the way need no more than to lead to the next; in the paper's model
            # they decide which maximum it is
            is_exact = form in kernels or task.prior is None or form.residual is None
            solver = self if is_exact else self.roughly()
            found = solver._solve_refined(objective, starts)
            faint = SILENT if solver.enough is None else FAINT
            objective, x = found.objective, found.x
            spectrum, before = objective.spectrum, objective.split(x)[0]
            stages.append(_stage(form, found))
            if form in kernels:
                # what a restart finds is no step of the continuation: a kernel is learnt the same alone or in a family
                fit = self._restarted(_finish(found, tuple(stages)), found)
                fits |= {index: fit for index, kernel in enumerate(kernels) if kernel == form}
            report(form.label)
        return [fits[index] for index in range(len(kernels))]

    def _guide(self, objective: Objective, guided: list[Array], before: GraphKernel | None) -> list[Array]:
        """Solutions of the forms that guide the present one, each from its own last solution."""
        solutions = []
        for index, guide in enumerate(objective.graph_kernel.guides()):
            other = Objective(objective.task, guide, objective.spectrum)
            starts = starting_points(other)
            if before is not None:
                own = other.graph_kernel.grown_from(before.with_theta(guided[index][: before.theta.size]))
                starts = [np.concatenate([own, guided[index][before.theta.size :]])]
            solutions.append(self._best(other, starts).x)
            objective.n_evaluations += other.n_evaluations
        return solutions

    def _solve_refined(self, objective: Objective, starts: list[Array]) -> _Solution:
        """Solution on a spectrum that is fine enough for it: each finer one starts from the solution on the last.

        Quadrature weights can be negative, and an optimiser exploits that where they are too coarse for its filter.
        Since the error is bounded, such a solution never passes. Points on the way to a solution need not pass: they
        are often harder to resolve than the answer, and cost nothing but time.
        """
        while True:
            best = self._best(objective, starts)
            x, lift = lift_above_zero(objective, best.x)
            finer = None if objective.errors(x).is_tolerable else objective.spectrum.refined()
            if finer is None:
                is_near = self.enough is not None and best.is_near
                return _Solution(objective, x, objective.evaluate(x)[0], best.detail, lift, is_near)
            # the solution on too coarse a spectrum may lie anywhere, so what it started from is not given up
            coarse, starts = objective, [x, *starts]
            objective = Objective(coarse.task, coarse.graph_kernel, finer)
            objective.n_evaluations = coarse.n_evaluations

    def _best(self, objective: Objective, starts: list[Array]) -> Ascent:
        """The highest of the ascents from every start."""
        ascents = (ascend(objective, start, self.max_iterations, self.enough) for start in starts)
        return max(ascents, key=lambda one: one.value)

    def _first_starts(self, objective: Objective) -> list[Array]:
        """Starting points; of several, the rough solutions from them, one for each maximum that may be the highest.

        Not where the spectrum may be too coarse for a solution, which then says little.
        """
        starts = starting_points(objective)
        if len(starts) == 1 or self.enough is not None or objective.task.spectrum.tolerance > 0:
            return starts
        rough = [ascend(objective, start, self.max_iterations, ROUGHLY) for start in starts]
        first, *others = sorted(rough, key=lambda one: one.value, reverse=True)
        precision, kept = precision_at(objective, first.x), [first.x]
        if precision is None:
            return [one.x for one in rough]
        for one in others:
            steps = [one.x - other for other in kept]
            if one.value > first.value - APART and all(step @ precision @ step > 2 * APART for step in steps):
                kept.append(one.x)
        return kept

    def _restarted(self, fit: Fit, found: _Solution) -> Fit:
        """A fit, or a higher one from a random start; either says what those reached."""
        if self.n_restarts == 0 or found.x.size == 0:
            return fit
        objective, random_state = found.objective, np.random.default_rng(self.random_state)
        label, smallest_gain = objective.graph_kernel.label, GAIN * objective.task.signals.size
        highest, reached, n_evaluations = fit, list[float](), 0
        for number in range(1, self.n_restarts + 1):
            mention(f"{label}, restart {number} of {self.n_restarts}")
            before = objective.n_evaluations
            one = self._fit_from(objective, random_start(objective, random_state))
            n_evaluations += (objective.n_evaluations if one is None else one.n_evaluations) - before
            reached.append(-np.inf if one is None else one.log_posterior)
            if one is not None and one.log_posterior > highest.log_posterior + smallest_gain:
                highest = one
        stage = Stage(f"{label}, {self.n_restarts} restarts", highest.log_posterior, n_evaluations)
        return dataclasses.replace(highest, stages=(*fit.stages, stage), restarts=tuple(reached))

    def _fit_from(self, objective: Objective, start: Array) -> Fit | None:
        """The fit from one start; None where that leads to no model."""
        try:
            found = self._solve_refined(objective, [start])
            fit = _finish(found, (_stage(objective.graph_kernel, found),))
        except (ArithmeticError, RuntimeError, ValueError):  # the search before went through: it is this start's fault
            return None
        is_model = np.isfinite(fit.log_posterior) and fit.outcome is not Outcome.TOO_FEW_MOMENTS
        return fit if is_model else None


def _grown(objective: Objective, before: GraphKernel, x: Array, faint: float) -> list[Array]:
    """The solution of the form before, as one of this form; more where that one is of no use."""
    kernel, rest = objective.graph_kernel, x[before.theta.size :]
    starts = [np.concatenate([theta, rest]) for theta in (kernel.grown_from(before), *kernel.given_starts())]
    _, _, noise_variance = objective.split(starts[0])
    if _is_silent(before, objective.spectrum, noise_variance, faint):
        starts += starting_points(objective)  # at zero the slope in every coefficient vanishes: no way out from there
    return starts


def _is_silent(kernel: GraphKernel, spectrum: Spectrum, noise_variance: float, share: float) -> bool:
    """Whether a kernel explains nothing, or so little, beside what is explained by none."""
    unexplained = noise_variance + float(spectrum.mean(kernel.residual_power(spectrum.eigenvalues)))
    return kernel.mean_power(spectrum) < share * unexplained


def longest_path(kernels: Sequence[GraphKernel]) -> tuple[GraphKernel, ...]:
    """The forms that kernels of one family are learnt by, from the simplest to the most complex."""
    return max((kernel.path() for kernel in kernels), key=len)


def _stage(kernel: GraphKernel, found: _Solution) -> Stage:
    return Stage(kernel.label, found.value, found.objective.n_evaluations)


def _finish(solution: _Solution, stages: tuple[Stage, ...]) -> Fit:
    objective, x, detail = solution.objective, solution.x, solution.detail
    certificate, limit = certify(objective, x, solution.lift), stationarity_limit(objective)
    if x.size == 0:
        return finish(objective, x, certificate, Outcome.NOTHING_TO_LEARN, f"nothing to learn: {detail}", stages)
    if solution.is_near:
        return finish(objective, x, certificate, Outcome.CONVERGED, detail, stages)
    if certificate.stationarity <= limit and certificate.feasibility <= VIOLATION:
        return finish(objective, x, certificate, Outcome.CONVERGED, f"stationary within {limit:.2g}", stages)
    detail = f"{detail}; stationarity {certificate.stationarity:.2g} exceeds {limit:.2g}"
    return finish(objective, x, certificate, Outcome.NOT_STATIONARY, detail, stages)
