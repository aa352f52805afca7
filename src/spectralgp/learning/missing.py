"""Learning from missing values or latent signals by expectation-maximisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky

from spectralgp._basics.checks import Array
from spectralgp._basics.progress import mention, quietly, step_done
from spectralgp.learning.expectations import MAX_MISSING_SHARE, Expectation, count_of, expectation_of
from spectralgp.learning.fit import Fit, Outcome, Solver, Stage, certify, lift_above_zero
from spectralgp.learning.objective import Objective, Task
from spectralgp.model.fields import GraphGP
from spectralgp.model.kernels import GraphKernel
from spectralgp.model.likelihoods import Likelihood

DRAW_TOLERANCE_NATS = 0.02  # lost by Monte Carlo error
DRAW_GROUPS = 8  # from which that cost is estimated
EM_TOLERANCE_NATS = 0.001  # of the maximum, if missing information slows all directions alike
FAR_GAIN_NATS = 10.0  # a step that gains more is far from the answer
FAR_FACTOR = 10.0  # times the tolerance: a step that gains less is near
ITERATIONS_PER_STEP = 5  # of a solver's limit, per step allowed
MAX_HISTORY = 5  # steps that the next one is extrapolated from
MAX_EXTRAPOLATION = 20.0  # times the last step
ASTRAY = 1.5  # times the distance left before: an extrapolation that leaves more is undone
MAX_LIFT = 0.01  # share of its largest value by which an extrapolated filter may be negative


def objective_of(task: Task, model: GraphGP, expectation: Expectation | None = None) -> Objective:
    """Return the log posterior that a model maximises; with missing values, its gradient."""
    if task.is_complete:
        return Objective(task, model.graph_kernel, model.spectrum)
    own = expectation or expectation_of(task)

    def complete(prior: GraphGP) -> Task:
        return own.completed(replace(prior, carry=model.carry, likelihood=model.likelihood))

    return Objective(task, model.graph_kernel, model.spectrum, complete)


def learn_incomplete(
    task: Task,
    kernel: GraphKernel,
    solver: Solver,
    warm_start: Fit | None = None,
    near: GraphGP | None = None,
    expectation: Expectation | None = None,
) -> Fit:
    """Learn from signals with missing values, from a warm start or from the simplest form of the kernel.

    Without a warm start they may be imputed first under a model of any form that was learnt from the same signals.
    Likelihoods are those expected of imputed signals, until `with_evidence`.
    """
    with quietly():
        fit = _ExpectationMaximisation(task, kernel, solver, expectation).fit(warm_start, near)
    step_done(kernel.label)
    return fit


def with_evidence(task: Task, fit: Fit, expectation: Expectation | None = None) -> Fit:
    """Return a fit to missing values with the likelihood of the observed ones; latent fits have it already."""
    if task.observed_by is not None and expectation is None:
        return fit
    value, error = (expectation or expectation_of(task)).log_likelihood(fit.model)
    errors = replace(fit.errors, probes=float(np.hypot(fit.errors.probes, error)))
    log_posterior = value + (fit.log_posterior - fit.log_likelihood)
    return replace(fit, log_likelihood=value, log_posterior=log_posterior, errors=errors)


@dataclass(frozen=True, eq=False)
class _Step:
    """One step: its start, its end, and the gain of the expected log posterior. It holds no signals."""

    before: Array
    after: Array
    fit: Fit
    gain: float
    is_far: bool
    left_nats: float | None  # between its start and the maximum, if known
    likelihood: Likelihood | None  # learnt


def _is_astray(step: _Step, last: _Step) -> bool:
    """Return whether an extrapolation led away from the maximum."""
    if step.left_nats is None or last.left_nats is None:
        return step.gain > last.gain
    return step.left_nats > ASTRAY * last.left_nats


class _ExpectationMaximisation:
    """Expectation-maximisation with Anderson's acceleration and an adaptive number of draws."""

    def __init__(self, task: Task, kernel: GraphKernel, solver: Solver, expectation: Expectation | None = None) -> None:
        self.task, self.kernel = task, kernel
        self.solver = solver.without_restarts()
        self.restarting = None if self.solver is solver else solver  # the solver with restarts, which are made once
        self.max_steps = max(1, solver.max_iterations // ITERATIONS_PER_STEP)
        self.is_coarse = solver.tolerance_nats is not None
        self.expectation = expectation or expectation_of(task, self.is_coarse)
        asked = EM_TOLERANCE_NATS if solver.tolerance_nats is None else solver.tolerance_nats
        self.tolerance_nats = max(asked, self.expectation.tolerance_nats)
        self.stages: list[Stage] = []
        self.restarts: tuple[float, ...] = ()
        self.objective: Objective  # of the last step
        self.reach = 1.0  # share of the predicted step that is taken

    def fit(self, warm_start: Fit | None, near: GraphGP | None = None) -> Fit:
        """The fit."""
        fit = self._first_fit(warm_start, near)
        if fit.outcome is Outcome.NOTHING_TO_LEARN and not self.expectation.has_parameters:
            return self._finished(fit, fit.outcome, fit.detail)
        model, outcome, detail, history = fit.model, Outcome.NOT_STATIONARY, "", list[_Step]()
        is_far = warm_start is None and near is None
        for _ in range(self.max_steps):
            if history and is_far:  # once near, always: fewer draws have another maximum, to and fro without end
                is_far = history[-1].gain > max(FAR_GAIN_NATS, FAR_FACTOR * self.tolerance_nats)
            step = self._step(model, fit, is_far)
            if history and history[-1].is_far and not is_far:
                history = []  # of other completions
            if history and _is_astray(step, history[-1]) and model is not history[-1].fit.model:
                # the extrapolation led astray: from where it began again
                model, fit = history[-1].fit.model, history[-1].fit
                self.expectation.likelihood = history[-1].likelihood
                history, self.reach = [], 0.25 * self.reach
                continue
            self.reach = min(1.0, 2 * self.reach)
            fit, history = step.fit, [*history[-MAX_HISTORY:], step]
            # a plain step leaves about the share of the way to the maximum that the missing information has in all
            rate = share = self.expectation.missing_share
            if len(history) > 1 and history[-2].gain > 0:
                ratio = np.sqrt(max(step.gain, 0.0) / history[-2].gain)
                rate = float(min(MAX_MISSING_SHARE, max(share, ratio)))
            left_nats = step.gain / (1 - rate) if step.left_nats is None else step.left_nats
            detail = f"another step would gain {max(step.gain, 0.0):.2g} nats"
            if left_nats <= self.tolerance_nats and not step.is_far:
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
        """Fit signals imputed under the warm start, a model of another form, or one of the simplest form."""
        known = near if warm_start is None else warm_start.model
        if known is not None:
            return self._learnt(self.kernel, self.expectation.completed(known), warm_start)
        form, spectrum = self.kernel.search().path()[0], self.task.spectrum_of(self.kernel)
        objective = Objective(self.task, form.bind(spectrum), spectrum)
        model = objective.model(objective.starting_points()[-1], carries=False)
        simplest = self._learnt(form, self.expectation.completed(model, is_far=True), None)
        if simplest.outcome is Outcome.NOTHING_TO_LEARN and form.theta.size == self.kernel.theta.size:
            return simplest
        return self._learnt(self.kernel, self.expectation.completed(simplest.model, is_far=True), None)

    def _learnt(
        self, kernel: GraphKernel, completed: Task, warm_start: Fit | None, solver: Solver | None = None
    ) -> Fit:
        """M-step: fit completed signals."""
        fit = (solver or self.solver).fit(completed, [kernel], None if warm_start is None else [warm_start])[0]
        completed.signals.release()
        n_deviations = 0 if completed.signals.deviations is None else len(completed.signals.deviations)
        how = "exactly" if self.expectation.n_draws is None else f"by {count_of(max(n_deviations, 1))}"
        self.stages.append(Stage(f"{kernel.label}, completed {how}", fit.log_posterior, fit.n_evaluations))
        mention(f"{kernel.label}, step {len(self.stages)}")
        return fit

    def _step(self, model: GraphGP, fit: Fit, is_far: bool, solver: Solver | None = None) -> _Step:
        completed = self.expectation.completed(model, is_far)
        new = self._learnt(self.kernel, completed, replace(fit, model=model), solver)
        self.objective = objective = Objective(completed, new.model.graph_kernel, new.model.spectrum)
        before = objective.point(model)
        gain, after = new.log_posterior - objective.evaluate(before)[0], objective.point(new.model)
        self.expectation.settle(objective, before, after, gain)
        expectation = self.expectation
        return _Step(before, after, new, gain + expectation.gain, is_far, expectation.left_nats, expectation.likelihood)

    def _restarted(self, fit: Fit) -> Fit | None:
        """Return the best of the restarts on signals imputed under the answer, if it is higher; only once."""
        solver, self.restarting = self.restarting, None
        if solver is None:
            return None
        step = self._step(fit.model, fit, False, solver)
        self.restarts = step.fit.restarts
        # a gain of the expected log posterior is a gain given the observed values too
        return step.fit if step.gain > self.tolerance_nats else None

    def _extrapolated(self, history: Sequence[_Step]) -> GraphGP:
        """Extrapolate the last steps by Anderson's method, within constraints."""
        last, objective = history[-1], self.objective
        if self.expectation.ahead is not None:
            self.expectation.lengthen(self.reach)
            return self._moved(objective, last, self.reach * (self.expectation.ahead - last.after))
        if len(history) < 2 or len({step.after.size for step in history}) > 1:
            return last.fit.model
        root = cholesky(objective.precision(last.after)) if objective.has_information else np.diag(1 / objective.units)
        starts, ends = (np.array([getattr(step, end) for step in history]) for end in ("before", "after"))
        moves = (ends - starts) @ root.T
        weights = np.linalg.lstsq(np.diff(moves, axis=0).T, moves[-1], rcond=1e-3)[0]
        further = -np.diff(ends, axis=0).T @ weights
        length = float(np.linalg.norm(root @ further))
        further *= min(1.0, MAX_EXTRAPOLATION * float(np.linalg.norm(moves[-1])) / max(length, 1e-300))
        return self._moved(objective, last, further)

    def _moved(self, objective: Objective, last: _Step, further: Array) -> GraphGP:
        """Return the model beyond the end of a step, as far as constraints allow."""
        for share in (1.0, 0.5, 0.25):
            point = np.clip(last.after + share * further, *objective.bounds.T)
            x, lift = lift_above_zero(objective, point)
            if lift <= MAX_LIFT:
                return objective.model(x)
        return last.fit.model

    def _has_enough_draws(self, x: Array) -> bool:
        """Return whether the Monte Carlo error is negligible at a point, from groups of draws; else add draws."""
        n_draws, most, objective = self.expectation.n_draws, self.expectation.most_draws, self.objective
        if n_draws is None or 2 * n_draws > most or self.is_coarse:
            return True
        deviations = objective.task.signals.deviations
        if deviations is None or not objective.has_information:
            return True
        precision = objective.precision(x)
        gradients = []
        for group in np.array_split(np.arange(n_draws), min(DRAW_GROUPS, n_draws)):
            scaled = deviations[group] * np.sqrt(n_draws / group.size)
            part = self.task.signals.completed(objective.task.signals.values, scaled)
            alone = replace(objective.task, signals=part)
            gradients.append(Objective(alone, objective.graph_kernel, objective.spectrum).evaluate(x)[1])
        spread = np.cov(np.array(gradients).T, ddof=1).reshape(precision.shape) / len(gradients)
        lost_nats = 0.5 * float(np.trace(np.linalg.solve(precision, spread))) / (1 - self.expectation.missing_share)
        if lost_nats <= DRAW_TOLERANCE_NATS:
            return True
        wanted = max(2 * n_draws, np.ceil(1.2 * n_draws * lost_nats / DRAW_TOLERANCE_NATS))
        self.expectation.n_draws = int(min(most, wanted))
        return False

    def _finished(self, fit: Fit, outcome: Outcome, detail: str) -> Fit:
        """Return the fit, with a description of the treatment of missing values."""
        if fit.outcome in (Outcome.NOTHING_TO_LEARN, Outcome.TOO_FEW_MOMENTS, Outcome.NEGATIVE_FILTER):
            outcome, detail = fit.outcome, fit.detail
        fit, certificate = replace(fit, model=self.expectation.finished(fit.model)), fit.certificate
        if not self.is_coarse and outcome is not Outcome.NOTHING_TO_LEARN:
            objective = objective_of(self.task, fit.model, self.expectation)
            certificate = certify(objective, objective.point(fit.model), certificate.lift)
        method = self.expectation.described(f"{len(self.stages)} steps of expectation-maximisation")
        if self.task.observed_by is not None:  # while sites are at hand
            fit = with_evidence(self.task, fit, self.expectation)
        return replace(
            fit,
            certificate=certificate,
            outcome=outcome,
            detail=detail,
            stages=tuple(self.stages),
            method=method,
            restarts=self.restarts,
        )
