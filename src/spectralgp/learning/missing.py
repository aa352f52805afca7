"""Learning from signals with holes: complete them under the model, learn from what is expected, and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cholesky

from spectralgp._basics.checks import Array
from spectralgp._basics.progress import mention, quietly, report
from spectralgp.fields import GraphGP, Seen, seen_about
from spectralgp.kernels import GraphKernel
from spectralgp.learning.fit import Fit, Outcome, Solver, Stage, certify, lift_above_zero
from spectralgp.learning.objective import Objective, Task

SEED = 0
FIRST_DRAWS, COARSE_DRAWS, MIN_DRAWS, MAX_DRAWS = 8, 4, 2, 1_024
MAX_DRAWN_VALUES = 2**21  # of all draws together, unless they are the first ones
MAX_FIRST_VALUES = 2**23  # of the first draws together
MAX_EXACT_OPERATIONS = 2**27  # of a step without draws
DRAW_TOLERANCE_NATS = 0.02  # that draws may cost
DRAW_GROUPS = 8  # from which that cost is estimated
EM_TOLERANCE_NATS = 0.001  # that a fit may fall short of its maximum, where what is missing slows all directions alike
SOLVE_TOLERANCE_NATS, MIN_SOLVE_TOLERANCE = 3e-6, 1e-5  # what solves may cost, and the smallest tolerance of one
TRUNCATION_SHARE = 0.1  # of the tolerated truncation error of a quadrature, that solves and a stop may cost each
FAR_GAIN_NATS = 10.0  # a step that gains more is far from the answer
FAR_FACTOR = 10.0  # times the tolerance: a step that gains less is near
ITERATIONS_PER_STEP = 5  # of a solver's limit, for each step that there may be
MAX_HISTORY = 5  # steps that the next one is extrapolated from
MAX_EXTRAPOLATION = 20.0  # times the last step
MAX_LIFT = 0.01  # of a filter's largest value, that an extrapolated one may lie below zero
MAX_MISSING_SHARE = 0.98  # of the information, that is taken to be missing


class Expectation:
    """The E-step: completes signals under a model, from the same random numbers and the last solutions."""

    def __init__(self, task: Task, n_draws: int | None) -> None:
        self.task, self.signals, self.n_draws = task, task.signals, n_draws  # None for the exact covariance
        truncation_error = task.spectrum.tolerance * self.signals.size
        self.tolerance_nats = max(SOLVE_TOLERANCE_NATS, TRUNCATION_SHARE * truncation_error)
        self._solutions: tuple[Array | None, Array | None] = (None, None)

    @classmethod
    def of(cls, task: Task, is_coarse: bool = False) -> Expectation:
        """Exactly where that is cheap, else by a few draws to begin with, which suffice for a coarse fit."""
        observed = task.signals.observed
        n_missing = observed.size - task.signals.size
        is_cheap = n_missing * observed.size * sum(observed.shape) <= MAX_EXACT_OPERATIONS
        if task.spectrum.has_node_covariances and is_cheap and (not is_coarse or n_missing <= FIRST_DRAWS):
            return cls(task, None)
        return cls(task, min(COARSE_DRAWS if is_coarse else FIRST_DRAWS, _max_draws(task)))

    def _seen(self, model: GraphGP, tolerance: float = 0.0) -> tuple[Seen, Any]:
        """The signals under a model, and the mean that inputs carry over to them."""
        carried = model.carried_values(self.task.carried, self.task.inputs, self.signals.units)
        covariance = model.covariance(model.rows(self.task.inputs, self.signals.units.signal_scales))
        return seen_about(carried, covariance, self.signals, tolerance=tolerance), carried

    def completed(self, model: GraphGP, is_far: bool = False) -> Task:
        """The task with signals completed under a model; by few draws if that is far from the answer."""
        # a quadratic form at its minimum: what a solve leaves costs the square of it, for each value observed
        tolerance = max(float(np.sqrt(self.tolerance_nats / self.signals.size)), MIN_SOLVE_TOLERANCE)
        seen, carried = self._seen(model, tolerance)
        if self.n_draws is None:
            mean, deviations = seen.mean, seen.spread(None, np.random.default_rng(SEED))
        elif self.n_draws == 1:
            # with this many values one draw says it all: the mean is not needed
            prior = seen.drawn(np.random.default_rng(SEED))
            missed, solution = seen.filled(seen.values - prior, self._solutions[0], tolerance)
            self._solutions = solution, None
            mean, deviations = prior + missed, np.empty((0, *prior.shape))
        else:
            n_draws = min(MIN_DRAWS, self.n_draws) if is_far else self.n_draws
            first, others = self._solutions
            if others is not None:  # the first draws are always the same ones
                rest = np.zeros((max(n_draws - len(others), 0), *others.shape[1:]))
                others = np.concatenate([others[:n_draws], rest])
            mean, solution = seen.filled(seen.values, first, tolerance)
            draws, solutions = seen.draws(n_draws, np.random.default_rng(SEED), others, tolerance)
            self._solutions = solution, solutions
            deviations = draws / np.sqrt(n_draws)
        return replace(self.task, signals=self.signals.completed(mean + carried, deviations))

    def log_likelihood(self, model: GraphGP) -> tuple[float, float]:
        """Log density of what was observed, and its standard error: equation (20)."""
        return self._seen(model)[0].log_density()


def objective_of(task: Task, model: GraphGP, expectation: Expectation | None = None) -> Objective:
    """The log posterior that a model is a maximum of; its gradient, where signals have holes."""
    if task.signals.is_complete:
        return Objective(task, model.graph_kernel, model.spectrum)
    own = expectation or Expectation.of(task)

    def complete(prior: GraphGP) -> Task:
        return own.completed(replace(prior, carry=model.carry))

    return Objective(task, model.graph_kernel, model.spectrum, complete)


def learn_incomplete(
    task: Task, kernel: GraphKernel, solver: Solver, warm_start: Fit | None = None, near: GraphGP | None = None
) -> Fit:
    """A fit to signals with holes, from a warm start or from the simplest form of the kernel.

    Without a warm start they may be completed first under a model of any form that was learnt from the same signals.
    Likelihoods are those expected of completed signals, until `with_evidence`.
    """
    with quietly():
        fit = _ExpectationMaximisation(task, kernel, solver).fit(warm_start, near)
    report(kernel.label)
    return fit


def with_evidence(task: Task, fit: Fit) -> Fit:
    """A fit to signals with holes with the likelihood of what was observed."""
    value, error = Expectation.of(task).log_likelihood(fit.model)
    errors = replace(fit.errors, probes=float(np.hypot(fit.errors.probes, error)))
    log_posterior = value + (fit.log_posterior - fit.log_likelihood)
    return replace(fit, log_likelihood=value, log_posterior=log_posterior, errors=errors)


@dataclass(frozen=True, eq=False)
class _Step:
    """One step: where it began and ended, and what the expected log posterior gained. It holds no signals."""

    before: Array
    after: Array
    fit: Fit
    gain: float
    is_far: bool


class _ExpectationMaximisation:
    """Expectation-maximisation with Anderson's acceleration, and as many draws as it takes."""

    def __init__(self, task: Task, kernel: GraphKernel, solver: Solver) -> None:
        self.task, self.kernel = task, kernel
        self.solver = solver.without_restarts()
        self.restarting = None if self.solver is solver else solver  # the solver with restarts, which are made once
        self.max_steps = max(1, solver.max_iterations // ITERATIONS_PER_STEP)
        self.is_coarse = solver.tolerance_nats is not None
        self.expectation = Expectation.of(task, self.is_coarse)
        asked = EM_TOLERANCE_NATS if solver.tolerance_nats is None else solver.tolerance_nats
        self.tolerance_nats = max(asked, self.expectation.tolerance_nats)
        self.missing_share = min(MAX_MISSING_SHARE, 1 - task.signals.size / task.signals.observed.size)
        self.stages: list[Stage] = []
        self.restarts: tuple[float, ...] = ()
        self.objective: Objective | None = None  # of the last step

    def fit(self, warm_start: Fit | None, near: GraphGP | None = None) -> Fit:
        """The fit."""
        fit = self._first_fit(warm_start, near)
        model, outcome, detail, history = fit.model, Outcome.NOT_STATIONARY, "", list[_Step]()
        is_far = warm_start is None and near is None
        for _ in range(self.max_steps):
            if history and is_far:  # once near, always: fewer draws have another maximum, to and fro without end
                is_far = history[-1].gain > max(FAR_GAIN_NATS, FAR_FACTOR * self.tolerance_nats)
            step = self._step(model, fit, is_far)
            if history and history[-1].is_far and not is_far:
                history = []  # of other completions
            if history and step.gain > history[-1].gain and model is not history[-1].fit.model:
                # the extrapolation led astray: from where it began again
                model, fit, history = history[-1].fit.model, history[-1].fit, []
                continue
            fit, history = step.fit, [*history[-MAX_HISTORY:], step]
            # a plain step leaves about the share of the way to the maximum that the missing information has in all
            rate = self.missing_share
            if len(history) > 1 and history[-2].gain > 0:
                ratio = np.sqrt(max(step.gain, 0.0) / history[-2].gain)
                rate = float(min(MAX_MISSING_SHARE, max(self.missing_share, ratio)))
            detail = f"another step would gain {max(step.gain, 0.0):.2g} nats"
            if step.gain / (1 - rate) <= self.tolerance_nats and not step.is_far:
                if self._has_enough_draws(step.after):
                    higher = self._restarted(fit)
                    if higher is None:
                        outcome = Outcome.CONVERGED
                        break
                    fit = higher
                history = []
            model = self._extrapolated(history) if history else fit.model
        return self._finished(fit, outcome, detail)

    def _first_fit(self, warm_start: Fit | None, near: GraphGP | None) -> Fit:
        """A fit to signals completed under the warm start, a model of another form, or one of the simplest form."""
        known = near if warm_start is None else warm_start.model
        if known is not None:
            return self._learnt(self.kernel, self.expectation.completed(known), warm_start)
        form, spectrum = self.kernel.path()[0], self.task.spectrum_of(self.kernel)
        objective = Objective(self.task, form.bind(spectrum), spectrum)
        model = objective.without_carry(objective.starting_points()[-1])
        simplest = self._learnt(form, self.expectation.completed(model, is_far=True), None)
        return self._learnt(self.kernel, self.expectation.completed(simplest.model, is_far=True), None)

    def _learnt(
        self, kernel: GraphKernel, completed: Task, warm_start: Fit | None, solver: Solver | None = None
    ) -> Fit:
        """The M-step: a fit to completed signals."""
        fit = (solver or self.solver).fit(completed, [kernel], None if warm_start is None else [warm_start])[0]
        completed.signals.release()
        n_deviations = 0 if completed.signals.deviations is None else len(completed.signals.deviations)
        how = "exactly" if self.expectation.n_draws is None else f"by {_count(max(n_deviations, 1))}"
        self.stages.append(Stage(f"{kernel.label}, completed {how}", fit.log_posterior, fit.n_evaluations))
        mention(f"{kernel.label}, step {len(self.stages)}")
        return fit

    def _step(self, model: GraphGP, fit: Fit, is_far: bool, solver: Solver | None = None) -> _Step:
        completed = self.expectation.completed(model, is_far)
        new = self._learnt(self.kernel, completed, replace(fit, model=model), solver)
        self.objective = objective = Objective(completed, new.model.graph_kernel, new.model.spectrum)
        before = objective.point(model)
        gain = new.log_posterior - objective.evaluate(before)[0]
        return _Step(before, objective.point(new.model), new, gain, is_far)

    def _restarted(self, fit: Fit) -> Fit | None:
        """The best of the restarts given signals completed under the answer, if it is higher; they are made once."""
        solver, self.restarting = self.restarting, None
        if solver is None:
            return None
        step = self._step(fit.model, fit, False, solver)
        self.restarts = step.fit.restarts
        # what is higher for signals completed under a model is likelier than it given what was observed too
        return step.fit if step.gain > self.tolerance_nats else None

    def _extrapolated(self, history: Sequence[_Step]) -> GraphGP:
        """Where the last steps lead to if they go on as they did (Anderson's method), as far as that is allowed."""
        last, objective = history[-1], self.objective
        if objective is None or len(history) < 2 or len({step.after.size for step in history}) > 1:
            return last.fit.model
        precision = objective.precision(last.after)
        root = np.diag(1 / objective.units) if precision is None else cholesky(precision)
        moves = np.array([root @ (step.after - step.before) for step in history])
        ends = np.array([step.after for step in history])
        weights = np.linalg.lstsq(np.diff(moves, axis=0).T, moves[-1], rcond=1e-3)[0]
        further = -np.diff(ends, axis=0).T @ weights
        length = float(np.linalg.norm(root @ further))
        further *= min(1.0, MAX_EXTRAPOLATION * float(np.linalg.norm(moves[-1])) / max(length, 1e-300))
        for share in (1.0, 0.5, 0.25):
            x, lift = lift_above_zero(objective, np.clip(ends[-1] + share * further, *objective.bounds.T))
            if lift <= MAX_LIFT:
                return objective.model(x)
        return last.fit.model

    def _has_enough_draws(self, x: Array) -> bool:
        """Whether draws cost little at a point, by gradients of groups of them; if not, there are more from now on."""
        n_draws, most, objective = self.expectation.n_draws, _max_draws(self.task), self.objective
        if n_draws is None or 2 * n_draws > most or self.is_coarse or objective is None:
            return True
        precision, deviations = objective.precision(x), objective.task.signals.deviations
        if precision is None or deviations is None:
            return True
        gradients = []
        for group in np.array_split(np.arange(n_draws), min(DRAW_GROUPS, n_draws)):
            scaled = deviations[group] * np.sqrt(n_draws / group.size)
            part = self.expectation.signals.completed(objective.task.signals.values, scaled)
            alone = replace(objective.task, signals=part)
            gradients.append(Objective(alone, objective.graph_kernel, objective.spectrum).evaluate(x)[1])
        spread = np.cov(np.array(gradients).T, ddof=1).reshape(precision.shape) / len(gradients)
        lost_nats = 0.5 * float(np.trace(np.linalg.solve(precision, spread))) / (1 - self.missing_share)
        if lost_nats <= DRAW_TOLERANCE_NATS:
            return True
        wanted = max(2 * n_draws, np.ceil(1.2 * n_draws * lost_nats / DRAW_TOLERANCE_NATS))
        self.expectation.n_draws = int(min(most, wanted))
        return False

    def _finished(self, fit: Fit, outcome: Outcome, detail: str) -> Fit:
        """The fit, and in words how what was not observed was treated."""
        if fit.outcome in (Outcome.NOTHING_TO_LEARN, Outcome.TOO_FEW_MOMENTS, Outcome.NEGATIVE_FILTER):
            outcome, detail = fit.outcome, fit.detail
        certificate, n_draws = fit.certificate, self.expectation.n_draws
        if not self.is_coarse:
            objective = objective_of(self.task, fit.model, self.expectation)
            certificate = certify(objective, objective.point(fit.model), certificate.lift)
        steps = f"{len(self.stages)} steps of expectation-maximisation"
        n_values = self.task.signals.observed.size
        holes = f"{n_values - self.task.signals.size} of {n_values} values missing"
        method = f"exact, {steps}: {holes}, few enough for their covariance to be written out"
        if n_draws is not None:
            method = f"{_count(n_draws)}, {steps}: {holes}, too many for their covariance to be written out in each"
        return replace(
            fit,
            certificate=certificate,
            outcome=outcome,
            detail=detail,
            stages=tuple(self.stages),
            method=method,
            restarts=self.restarts,
        )


def _max_draws(task: Task) -> int:
    """As many draws as time and memory are meant for."""
    n_signals, n_nodes = task.signals.shape
    size = n_signals * n_nodes
    if FIRST_DRAWS * size > MAX_FIRST_VALUES:
        return 1 if task.spectrum.needs_passes else MIN_DRAWS
    return max(FIRST_DRAWS, min(MAX_DRAWS, MAX_DRAWN_VALUES // size))


def _count(n_draws: int) -> str:
    return "1 draw" if n_draws == 1 else f"{n_draws} draws"
