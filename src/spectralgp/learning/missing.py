"""Learning from signals with holes: complete them under the model, learn from what is expected, and again."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.linalg import cholesky

from spectralgp._basics.checks import Array
from spectralgp._basics.progress import mention, quietly, report
from spectralgp.fields import GraphGP, Seen, seen_about
from spectralgp.kernels import GraphKernel
from spectralgp.learning.fisher import precision_at
from spectralgp.learning.fit import Certificate, Fit, Outcome, Stage, certify, lift_above_zero
from spectralgp.learning.objective import Objective
from spectralgp.learning.solver import Solver
from spectralgp.learning.sqp import longest_path
from spectralgp.learning.starts import starting_points
from spectralgp.learning.task import Task
from spectralgp.signals import Incomplete
from spectralgp.spectra import Spectrum

SEED = 0
FIRST_DRAWS, FEWEST_DRAWS, MOST_DRAWS = 8, 2, 1_024
MOST_DRAWN = 2**21  # values of all draws together, unless they are the first ones
MOST_AT_FIRST = 2**23  # values of the first draws
MOST_EXACT = 2**27  # operations of a step without draws
GROUPS = 8  # of draws, from which their error is estimated
ENOUGH = 0.001  # nats that a fit may fall short of its maximum, where what is missing slows all directions alike
SOLVED, FINEST = 3e-5, 1e-5  # nats that solves may cost, and the smallest tolerance of one
A_TENTH = 0.1  # of the truncation error that a quadrature may have, for solves and for what is left to gain
LOST_TO_DRAWS = 0.02  # nats that draws may cost
A_STEP = 5  # iterations that a solver may take, for each step that there may be
MEMORY = 5  # steps that the next one is extrapolated from
FURTHEST = 20.0  # times the last step, that an extrapolation may go further
MOST_LIFTED = 0.01  # of a filter's largest value, that an extrapolated one may lie below zero
GROWTH = 1.0  # times the last gain: a larger one says that an extrapolation led astray
SAFE = 0.98  # largest share of information that is taken to be missing
FAR, COARSE = 10.0, 10.0  # nats that a step gains far from the answer, and by how much solves are coarser there


class Expectation:
    """Completes the signals of a task under models: the same random numbers in every step, from the last solutions.

    Parameters
    ----------
    task : Task
        With signals that have holes.
    n_draws : int or None
        Draws that stand for what was not observed; None for its exact covariance.
    """

    def __init__(self, task: Task, n_draws: int | None) -> None:
        self.task, self.n_draws = task, n_draws
        self.allowed = max(SOLVED, A_TENTH * task.spectrum.tolerance * _signals(task).size)  # nats that solves may cost
        self._solutions: tuple[Array | None, Array | None] = (None, None)

    @classmethod
    def of(cls, task: Task, roughly: bool = False) -> Expectation:
        """Exactly where that is cheap, else by a few draws to begin with; those are enough for a rough fit."""
        observed = _signals(task).observed
        n_signals, n_nodes = observed.shape
        n_missing = int(observed.size - np.count_nonzero(observed))
        cost = n_missing * observed.size * (n_signals + n_nodes)
        if task.spectrum.has_node_covariances and cost <= MOST_EXACT and (not roughly or n_missing <= FIRST_DRAWS):
            return cls(task, None)
        return cls(task, min(FIRST_DRAWS, most_draws(task)))

    def _seen(self, model: GraphGP) -> Seen:
        """The signals under a model."""
        task = self.task
        covariance = model.covariance(model.rows(task.inputs))
        return seen_about(self._carried(model), covariance, _signals(task))

    def _carried(self, model: GraphGP) -> Any:
        """The mean that inputs carry over to the signals."""
        return model.carried_values(self.task.carried, self.task.inputs, _signals(self.task).units)

    def completed(self, model: GraphGP, is_far: bool = False) -> Task:
        """The task with signals completed under a model; coarsely, and by few draws, if that is far from the answer."""
        seen, signals = self._seen(model), _signals(self.task)
        # a quadratic form at its minimum: what a solve leaves costs the square of it, for each value observed
        tolerance = max(float(np.sqrt(self.allowed / signals.size)), FINEST) * (COARSE if is_far else 1.0)
        if self.n_draws is None:
            mean, deviations = seen.mean, seen.spread(None, np.random.default_rng(SEED))
        elif self.n_draws == 1:
            # on so many values one draw says it all: the mean is not needed
            prior = seen.drawn(np.random.default_rng(SEED))
            missed, solution = seen.filled(seen.values - prior, self._solutions[0], tolerance)
            self._solutions = solution, None
            mean, deviations = prior + missed, np.empty((0, *prior.shape))
        else:
            n_draws = min(FEWEST_DRAWS, self.n_draws) if is_far else self.n_draws
            first, others = self._solutions
            mean, solution = seen.filled(seen.values, first, tolerance)
            draws, solutions = seen.draws(n_draws, np.random.default_rng(SEED), _as_many(others, n_draws), tolerance)
            self._solutions = solution, solutions
            deviations = draws / np.sqrt(n_draws)
        return dataclasses.replace(self.task, signals=signals.completed(mean + self._carried(model), deviations))

    def log_likelihood(self, model: GraphGP) -> tuple[float, float]:
        """Log density of what was observed, and its standard error: equation (19)."""
        return self._seen(model).log_density()


class ObservedObjective(Objective):
    """The gradient of the log posterior given what was observed: that of completed signals, expected at the same point.

    Its values are those of the expected log posterior, and not to be compared between points.
    """

    def __init__(self, expectation: Expectation, like: GraphGP) -> None:
        super().__init__(expectation.task, like.graph_kernel, like.spectrum)
        self._expectation, self._like = expectation, like

    def at(self, x: Array) -> Objective:
        """The objective of signals completed at a point."""
        graph_kernel, input_theta, noise_variance = self.split(x)
        kernel = self.task.input_kernel.with_theta(input_theta)
        model = GraphGP(self.spectrum, graph_kernel, kernel, noise_variance, self._like.carry)
        return Objective(self._expectation.completed(model), self.graph_kernel, self.spectrum)

    def _log_likelihood(self, x: Array) -> tuple[float, Array]:
        return self.at(x)._log_likelihood(x)

    def model(self, x: Array) -> GraphGP:
        """The prior at ``x``."""
        return super().model(x) if self.task.carried is None else self.at(x).model(x)


def objective_of(task: Task, model: GraphGP) -> Objective:
    """The log posterior that a model is a maximum of; its gradient, where signals have holes."""
    if task.signals.observed is None:
        return Objective(task, model.graph_kernel, model.spectrum)
    return ObservedObjective(Expectation.of(task), model)


def learn_incomplete(
    task: Task, kernels: Sequence[GraphKernel], solver: Solver, like: Sequence[Fit] | None = None
) -> list[Fit]:
    """Fits to signals with holes, each from one that is like it, or from that of the kernel before it."""
    fits: list[Fit] = []
    for number, kernel in enumerate(kernels):
        start = like[number] if like is not None else None
        with quietly():
            fits.append(_Maximisation(task, kernel, solver).fit(start))
    for form in longest_path(kernels):
        report(form.label)
    return fits


@dataclass(frozen=True, eq=False)
class _Step:
    """One step: where it began and ended, and what the expected log posterior gained. It holds no signals."""

    before: Array
    after: Array
    fit: Fit
    gain: float
    is_far: bool


class _Maximisation:
    """Expectation-maximisation, accelerated, with as many draws as it takes."""

    def __init__(self, task: Task, kernel: GraphKernel, solver: Solver) -> None:
        self.task, self.kernel = task, kernel
        self.solver, enough = solver.without_restarts(), solver.enough
        self.searching = None if self.solver is solver else solver  # restarts, of which the steps have none
        self.most_steps = max(1, solver.max_iterations // A_STEP)
        self.is_rough = enough is not None
        self.expectation = Expectation.of(task, self.is_rough)
        self.enough = max(ENOUGH if enough is None else enough, self.expectation.allowed)
        observed = _signals(task).observed
        self.share = min(SAFE, 1 - np.count_nonzero(observed) / observed.size)
        self.stages: list[Stage] = []
        self.restarts: tuple[float, ...] = ()
        self.objective: Objective | None = None  # of the last step

    def fit(self, like: Fit | None) -> Fit:
        """The fit, from one that is like it or from the simplest model."""
        completed = self.expectation.completed
        if like is None:
            simplest = self._learnt(self.kernel.path()[0], completed(_crude(self.task, self.kernel), is_far=True), None)
            fit = self._learnt(self.kernel, completed(simplest.model, is_far=True), None)
        else:
            fit = self._learnt(self.kernel, completed(like.model), like)
        model, outcome, detail, history = fit.model, Outcome.NOT_STATIONARY, "", list[_Step]()
        is_far = like is None
        for _ in range(self.most_steps):
            is_far = history[-1].gain > max(FAR, COARSE * self.enough) if history else is_far
            step = self._step(model, fit, is_far)
            if history and history[-1].is_far and not is_far:
                history = []  # of other completions
            if history and step.gain > GROWTH * history[-1].gain and model is not history[-1].fit.model:
                model, fit, history = history[-1].fit.model, history[-1].fit, []  # it led astray: from there again
                continue
            fit, history = step.fit, [*history[-MEMORY:], step]
            left = step.gain / (1 - self._rate(history))
            detail = f"another step would gain {max(step.gain, 0.0):.2g} nats"
            if left <= self.enough and not step.is_far:
                if self._has_enough_draws(step.after):
                    higher = self._higher(fit)
                    if higher is None:
                        outcome = Outcome.CONVERGED
                        break
                    fit = higher
                history = []
            model = self._extrapolated(history) if history else fit.model
        return self._finished(fit, outcome, detail)

    def _learnt(self, kernel: GraphKernel, completed: Task, like: Fit | None, solver: Solver | None = None) -> Fit:
        """A fit to completed signals."""
        fit = (solver or self.solver).fit(completed, [kernel], None if like is None else [like])[0]
        completed.signals.release()
        n_deviations = 0 if completed.signals.deviations is None else len(completed.signals.deviations)
        how = "exactly" if self.expectation.n_draws is None else f"by {_count(max(n_deviations, 1))}"
        self.stages.append(Stage(f"{kernel.label}, completed {how}", fit.log_posterior, fit.n_evaluations))
        mention(f"{kernel.label}, step {len(self.stages)}")
        return fit

    def _higher(self, fit: Fit) -> Fit | None:
        """The best of the restarts given signals completed under the answer, if it is higher; they are made once.

        What is higher for signals completed under a model is likelier than it given what was observed too.
        """
        solver, self.searching = self.searching, None
        if solver is None:
            return None
        step = self._step(fit.model, fit, False, solver)
        self.restarts = step.fit.restarts
        return step.fit if step.gain > self.enough else None

    def _step(self, model: GraphGP, like: Fit, is_far: bool, solver: Solver | None = None) -> _Step:
        completed = self.expectation.completed(model, is_far)
        fit = self._learnt(self.kernel, completed, dataclasses.replace(like, model=model), solver)
        self.objective = objective = Objective(completed, fit.model.graph_kernel, fit.model.spectrum)
        before = objective.point(model)
        gain = fit.log_posterior - objective.evaluate(before)[0]
        return _Step(before, objective.point(fit.model), fit, gain, is_far)

    def _rate(self, history: Sequence[_Step]) -> float:
        """Share of the way to the maximum that a plain step leaves: about that of the information that is missing."""
        if len(history) < 2 or history[-2].gain <= 0:
            return float(self.share)
        ratio = np.sqrt(max(history[-1].gain, 0.0) / history[-2].gain)
        return float(min(SAFE, max(self.share, ratio)))

    def _extrapolated(self, history: Sequence[_Step]) -> GraphGP:
        """Where the last steps lead to if they go on as they did (Anderson's method), as far as that is allowed."""
        last, objective = history[-1], self.objective
        if objective is None or len(history) < 2 or len({step.after.size for step in history}) > 1:
            return last.fit.model
        precision = precision_at(objective, last.after)
        root = np.diag(1 / objective.units) if precision is None else cholesky(precision)
        moves = np.array([root @ (step.after - step.before) for step in history])
        ends = np.array([step.after for step in history])
        weights = np.linalg.lstsq(np.diff(moves, axis=0).T, moves[-1], rcond=1e-3)[0]
        further = -np.diff(ends, axis=0).T @ weights
        length = float(np.linalg.norm(root @ further))
        further *= min(1.0, FURTHEST * float(np.linalg.norm(moves[-1])) / max(length, 1e-300))
        for share in (1.0, 0.5, 0.25):
            x, lift = lift_above_zero(objective, np.clip(ends[-1] + share * further, *objective.bounds.T))
            if lift <= MOST_LIFTED:
                return objective.model(x)
        return last.fit.model

    def _has_enough_draws(self, x: Array) -> bool:
        """Whether draws cost little at a point; if not, there are more from now on."""
        n_draws, most = self.expectation.n_draws, most_draws(self.task)
        if n_draws is None or 2 * n_draws > most or self.is_rough or self.objective is None:
            return True
        lost = _lost_to_draws(self.objective, x, n_draws) / (1 - self.share)
        if lost <= LOST_TO_DRAWS:
            return True
        self.expectation.n_draws = int(min(most, max(2 * n_draws, np.ceil(1.2 * n_draws * lost / LOST_TO_DRAWS))))
        return False

    def _finished(self, fit: Fit, outcome: Outcome, detail: str) -> Fit:
        """The fit with the evidence of what was observed."""
        model = fit.model
        if fit.outcome in (Outcome.NOTHING_TO_LEARN, Outcome.TOO_FEW_MOMENTS, Outcome.NEGATIVE_FILTER):
            outcome, detail = fit.outcome, fit.detail
        certificate = fit.certificate if self.is_rough else self._certificate(fit)
        value, error = self.expectation.log_likelihood(model)
        prior = fit.log_posterior - fit.log_likelihood
        errors = dataclasses.replace(fit.errors, probes=float(np.hypot(fit.errors.probes, error)))
        return dataclasses.replace(
            fit,
            log_likelihood=value,
            log_posterior=value + prior,
            certificate=certificate,
            outcome=outcome,
            detail=detail,
            stages=tuple(self.stages),
            errors=errors,
            method=self._method(),
            restarts=self.restarts,
        )

    def _certificate(self, fit: Fit) -> Certificate:
        objective = ObservedObjective(self.expectation, fit.model)
        return certify(objective, objective.point(fit.model), fit.certificate.lift)

    def _method(self) -> str:
        observed = _signals(self.task).observed
        n_missing, n_draws = int(observed.size - np.count_nonzero(observed)), self.expectation.n_draws
        holes = f"{n_missing} of {observed.size} values missing"
        steps = f"{len(self.stages)} steps of expectation-maximisation"
        if n_draws is None:
            return f"exact, {steps}: {holes}, few enough for their covariance to be written out"
        return f"{_count(n_draws)}, {steps}: {holes}, too many for their covariance to be written out in each"


def most_draws(task: Task) -> int:
    """As many draws as time and memory are meant for."""
    n_signals, n_nodes = task.signals.shape
    size = n_signals * n_nodes
    if FIRST_DRAWS * size > MOST_AT_FIRST:
        return 1 if task.spectrum.needs_passes else FEWEST_DRAWS
    return max(FIRST_DRAWS, min(MOST_DRAWS, MOST_DRAWN // size))


def _as_many(solutions: Array | None, n_draws: int) -> Array | None:
    """Solutions for so many draws, of which the first are the same: those that are known, and zeros."""
    if solutions is None:
        return None
    rest = np.zeros((max(n_draws - len(solutions), 0), *solutions.shape[1:]))
    return np.concatenate([solutions[:n_draws], rest])


def _count(n_draws: int) -> str:
    return "1 draw" if n_draws == 1 else f"{n_draws} draws"


def _lost_to_draws(objective: Objective, x: Array, n_draws: int) -> float:
    """Nats of the expected log posterior that draws are estimated to cost, from gradients of groups of them."""
    n_groups, deviations = min(GROUPS, n_draws), objective.task.signals.deviations
    assert deviations is not None
    gradients = []
    for group in np.array_split(np.arange(n_draws), n_groups):
        signals = objective.task.signals
        part = _signals(objective.task).completed(signals.values, deviations[group] * np.sqrt(n_draws / group.size))
        alone = Objective(dataclasses.replace(objective.task, signals=part), objective.graph_kernel, objective.spectrum)
        gradients.append(alone.evaluate(x)[1])
    precision = precision_at(objective, x)
    if precision is None:
        return 0.0
    spread = np.cov(np.array(gradients).T, ddof=1).reshape(precision.shape) / n_groups
    return 0.5 * float(np.trace(np.linalg.solve(precision, spread)))


def _crude(task: Task, kernel: GraphKernel) -> GraphGP:
    """A model to begin with: the simplest form, where a search would start."""
    form = kernel.path()[0]
    spectrum: Spectrum = task.spectrum_of(kernel)
    objective = Objective(task, form.bind(spectrum), spectrum)
    graph_kernel, input_theta, noise_variance = objective.split(starting_points(objective)[-1])
    return GraphGP(spectrum, graph_kernel, task.input_kernel.with_theta(input_theta), noise_variance)


def _signals(task: Task) -> Incomplete:
    return cast(Incomplete, getattr(task.signals, "incomplete", task.signals))
