"""Learning from missing values or latent signals by expectation-maximisation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import block_diag, cholesky

from spectralgp._basics.checks import Array
from spectralgp._basics.progress import mention, quietly, step_done
from spectralgp.learning.fit import Fit, Outcome, Solver, Stage, certify, lift_above_zero
from spectralgp.learning.objective import Objective, Task, definite
from spectralgp.learning.sqp import constrained_step, updated
from spectralgp.model import fields, likelihoods
from spectralgp.model.fields import GraphGP, Sites
from spectralgp.model.fields.sites import FINAL, ROUGH, STEP, Effort
from spectralgp.model.kernels import GraphKernel
from spectralgp.model.likelihoods import Likelihood
from spectralgp.model.signals import expected_signals

# E-steps
SEED = 0
FIRST_DRAWS, COARSE_DRAWS, MIN_DRAWS, MAX_DRAWS = 8, 4, 2, 1_024
MAX_DRAWN_VALUES = 2**21  # of all draws together, unless they are the first ones
MAX_FIRST_VALUES = 2**23  # of the first draws together
MAX_EXACT_OPERATIONS = 2**27  # of a step without draws
SOLVE_TOLERANCE_NATS, MIN_SOLVE_TOLERANCE = 3e-6, 1e-5  # what solves may cost, and the smallest tolerance of one
DRAW_SOLVE_TOLERANCE_NATS = 0.01  # what those for draws may cost, half of what draws may
TRUNCATION_SHARE = 0.1  # of the tolerated truncation error of a quadrature, that solves and a stop may cost each
MAX_MISSING_SHARE = 0.98  # limit on the estimated share of missing information
LATENT_TOLERANCE_NATS = 0.012  # of the maximum, with latent signals
NEAR_GAIN_NATS = 0.1  # a step that gains less is near enough for sites to be found well
NEAR_OWN_NATS = 1.0  # and one for steps to be lengthened where a likelihood that is not log-concave learns too
MAX_SPREAD_OPERATIONS = 2**26  # for the deviations of latent signals in one evaluation
MIN_DEVIATIONS = 8
LARGE_TOLERANCE_NATS = 0.1  # of the maximum on a large graph, whose Monte Carlo error is larger
MAX_LATENT_DRAWS, MAX_LATENT_VALUES = 64, 2**16  # on a large graph, and of them together, unless they are the fewest
MAX_PASSED = 8  # points whose slopes are cached, and the last one

# Steps
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


# ----------------------------------------------------------------------------------------------------------- E-steps


class Expectation(ABC):
    """E-step: expected signals under a model."""

    n_draws: int | None = None  # that estimate a covariance; None if it is exact
    most_draws: int = 0  # limit
    missing_share: float  # of the information about hyperparameters
    has_parameters: bool = False  # whether the E-step learns parameters of a likelihood
    gain: float = 0.0  # of the likelihood's parameters in the last E-step
    likelihood: Likelihood | None = None  # learnt in the last E-step
    ahead: Array | None = None  # predicted end of the search, if known
    left_nats: float | None = None  # between the start of the last step and the maximum, by that prediction

    def __init__(self, task: Task, tolerance_nats: float) -> None:
        self.task, self.signals = task, task.signals
        truncation_error = task.spectrum.tolerance * self.signals.size
        self.tolerance_nats = max(tolerance_nats, TRUNCATION_SHARE * truncation_error)  # that solves may cost

    @property
    def solve_tolerance(self) -> float:
        """Tolerance of solves, whose squared error per observed value lowers the log likelihood."""
        return max(float(np.sqrt(self.tolerance_nats / self.signals.size)), MIN_SOLVE_TOLERANCE)

    @abstractmethod
    def completed(self, model: GraphGP, is_far: bool = False) -> Task:
        """Return the task with signals imputed under a model; roughly if that is far from the answer."""

    @abstractmethod
    def log_likelihood(self, model: GraphGP) -> tuple[float, float]:
        """Log density of the observed values, and its standard error."""

    @abstractmethod
    def described(self, steps: str) -> str:
        """Description of the treatment of unknown values."""

    def settle(self, objective: Objective, before: Array, after: Array, gain: float) -> None:  # noqa: B027
        """Predict the next step from the last one; not needed if the share of missing information is known."""

    def lengthen(self, reach: float) -> None:  # noqa: B027
        """Extrapolate the likelihood's parameters by a share of the step; none by default."""

    def finished(self, model: GraphGP) -> GraphGP:
        """Return the model with the learnt likelihood, which is fixed from now on."""
        return model


def expectation_of(task: Task, is_coarse: bool = False) -> Expectation:
    """E-step of a task, for latent signals or for missing values."""
    return MissingValueExpectation.of(task, is_coarse) if task.observed_by is None else LatentExpectation(task)


class MissingValueExpectation(Expectation):
    """Missing values, imputed with the same random numbers at each step; solves start from the last solutions."""

    def __init__(self, task: Task, n_draws: int | None) -> None:
        super().__init__(task, SOLVE_TOLERANCE_NATS)
        self.n_draws, self.most_draws = n_draws, max_draws(task)
        self.missing_share = min(MAX_MISSING_SHARE, 1 - task.signals.size / task.signals.observed.size)
        self._solutions: tuple[Array | None, Array | None] = (None, None)

    @classmethod
    def of(cls, task: Task, is_coarse: bool = False) -> MissingValueExpectation:
        """Exact expectation if that is cheap, else by a few draws at first, which suffice for a coarse fit."""
        observed = task.signals.observed
        n_missing = observed.size - task.signals.size
        is_cheap = n_missing * observed.size * sum(observed.shape) <= MAX_EXACT_OPERATIONS
        if task.spectrum.has_node_covariances and is_cheap and (not is_coarse or n_missing <= FIRST_DRAWS):
            return cls(task, None)
        # a draw costs a share of a nat, whatever the number of values, of which a large graph's scores differ by many
        coarse = 1 if task.spectrum.needs_passes else COARSE_DRAWS
        return cls(task, min(coarse if is_coarse else FIRST_DRAWS, max_draws(task)))

    def _seen(self, model: GraphGP, tolerance: float = 0.0) -> tuple[fields.PartialObservations, Any]:
        """Partial observations of the signals under a model, and the mean of the autoregressive term."""
        carried = model.carried_values(self.task.carried, self.task.inputs, self.signals.units)
        covariance = model.covariance(model.rows(self.task.inputs, self.signals.units.signal_scales))
        return fields.partial_observations(carried, covariance, self.signals, tolerance=tolerance), carried

    def completed(self, model: GraphGP, is_far: bool = False) -> Task:
        tolerance = self.solve_tolerance
        seen, carried = self._seen(model, tolerance)
        # of draws it is in nats as it is: their energy is about that of the values, by the variance of the noise
        energy = float(np.sum(np.square(seen.values), where=seen.observed)) / model.noise_variance
        draw_tolerance = max(float(np.sqrt(DRAW_SOLVE_TOLERANCE_NATS / max(energy, 1.0))), tolerance)
        if is_far:
            tolerance = draw_tolerance
        if self.n_draws is None:
            mean, deviations = seen.mean, seen.exact_deviations
        elif self.n_draws == 1:
            # with this many values one draw says it all: the mean is not needed
            prior = seen.drawn(np.random.default_rng(SEED))
            missed, solution = seen.completed(seen.values - prior, self._solutions[0], tolerance)
            self._solutions = solution, None
            mean, deviations = prior + missed, np.empty((0, *prior.shape))
        else:
            n_draws = min(MIN_DRAWS, self.n_draws) if is_far else self.n_draws
            first, others = self._solutions
            if others is not None:  # the first draws are always the same ones
                rest = np.zeros((max(n_draws - len(others), 0), *others.shape[1:]))
                others = np.concatenate([others[:n_draws], rest])
            mean, solution = seen.completed(seen.values, first, tolerance)
            draws, solutions = seen.draws(n_draws, np.random.default_rng(SEED), others, draw_tolerance)
            self._solutions = solution, solutions
            deviations = draws / np.sqrt(n_draws)
        return replace(self.task, signals=self.signals.completed(mean + carried, deviations))

    def log_likelihood(self, model: GraphGP) -> tuple[float, float]:
        """Equation (20)."""
        return self._seen(model)[0].log_density()

    def described(self, steps: str) -> str:
        n_values = self.signals.observed.size
        missing = f"{n_values - self.signals.size} of {n_values} values missing"
        if self.n_draws is None:
            return f"exact, {steps}: {missing}, few enough for their covariance to be written out"
        return f"{count_of(self.n_draws)}, {steps}: {missing}, too many for their covariance to be written out in each"


class LatentExpectation(Expectation):
    """Latent signals given their observations; each step starts from the sites of the last."""

    effort: Effort = FINAL  # of the evidence

    def __init__(self, task: Task) -> None:
        assert task.observed_by is not None
        self.is_large = task.spectrum.needs_passes
        super().__init__(task, LARGE_TOLERANCE_NATS if self.is_large else LATENT_TOLERANCE_NATS)
        self.observed_by, self.missing_share = task.observed_by, 0.5
        self.names = likelihoods.open_parameters(self.observed_by.likelihood)
        self.has_parameters = bool(self.names)
        self.unit = float(np.sqrt(task.variance))
        self.likelihood: Likelihood = likelihoods.with_first_values(self.observed_by.likelihood, self.unit)
        self.sites: Sites | None = None
        self._drawn: Array | None = None  # solutions of the last draws
        self.is_far = not self.names  # from the answer, so that rough sites will do; a likelihood learnt of such is not
        self._slopes = np.empty(0), np.empty((0, 0))  # of the likelihood's parameters at the last sites
        self._passed: list[tuple[Array, Array]] = []  # points that steps began from, and the slopes there
        self._logs_ahead = np.empty(0)

    @property
    def _n_draws(self) -> int:
        """Number of draws that estimate the covariance of latent signals on a large graph."""
        n_signals, n_nodes = self.signals.shape
        return max(MIN_DRAWS, min(MAX_LATENT_DRAWS, MAX_LATENT_VALUES // (n_signals * n_nodes)))

    def _found(self, model: GraphGP, effort: Effort) -> Sites:
        covariance = model.latent_covariance(self.task.inputs)
        likelihood = self.likelihood if model.likelihood is None else model.likelihood
        observations = self.observed_by.observations(self.signals.as_observed, likelihood)
        self.sites = fields.find_sites(covariance, observations, self.sites, effort)
        return self.sites

    def completed(self, model: GraphGP, is_far: bool = False) -> Task:
        sites = self._found(model, ROUGH if self.is_far else STEP)
        observations = sites.observations
        if self.names and model.likelihood is None:
            self._slopes = self.own_slopes
            used, of_observed = observations.likelihood, sites.of_observed
            self.likelihood, self.gain = likelihoods.learn_parameters(used, self.names, *of_observed, unit=self.unit)
        if self.is_large:
            rng = np.random.default_rng(SEED)
            drawn, self._drawn = sites.deviating(self._n_draws, rng, self._drawn, self.solve_tolerance)
            deviations = np.concatenate([drawn / np.sqrt(self._n_draws), sites.field_factors])
        else:
            n_signals, n_nodes = self.signals.shape
            most = max(MIN_DEVIATIONS, MAX_SPREAD_OPERATIONS // (n_signals**2 * n_nodes))
            deviations = sites.deviations(most, np.random.default_rng(SEED))
        return replace(self.task, signals=expected_signals(sites.image, deviations), observed_by=None)

    def log_likelihood(self, model: GraphGP) -> tuple[float, float]:
        """A lower bound of it, equation (38)."""
        if self.is_large:  # as conditioning finds the sites, from nothing, so that they are found once
            return fields.condition_latent(model, self.task.inputs, self.signals, self.observed_by).sites.log_bound()
        return self._found(model, self.effort).log_bound()

    def described(self, steps: str) -> str:
        how = "exact" if self.sites is None or self.sites.root is not None else "by effective curvatures"
        if self.is_large:
            n_probes = self.sites.covariance.basis.settings.n_probes if self.sites is not None else "no"
            how += f" and {n_probes} probes, energies by {count_of(self._n_draws)}"
        return f"variances {how}, {steps}: latent signals of which {self.signals.size} values were observed"

    def settle(self, objective: Objective, before: Array, after: Array, gain: float) -> None:
        """Equation (41): where a step by the information of signals seen with the noise of sites would lead.

        The slope is that of the bound, to which sites are the best at every point. What the likelihood's own parameters
        and the others say of each other is learnt from how slopes changed between the last points.
        """
        assert self.sites is not None
        self.is_far = self.is_far and gain > NEAR_GAIN_NATS
        curvature = float(np.mean(self.sites.terms[2]))
        seen = objective.precision(after, 1 / max(curvature, 1e-12))
        self.ahead = self.left_nats = None
        if not objective.has_information or not len(before):
            return
        used = self.sites.observations.likelihood
        slope, own = objective.evaluate(before)[1], self._slopes
        point = np.concatenate([before, likelihoods.log_parameters(used, self.names)])
        slope = np.concatenate([slope, own[0]])
        precision = definite(block_diag(seen, own[1]), np.append(objective.units, np.ones(len(own[0]))))
        if self.names:
            self._passed = [*self._passed[-MAX_PASSED:], (point, slope)]
            for (one, there), (other, here) in pairwise(self._passed):
                if np.any(one != other):
                    precision = updated(precision, other - one, there - here)
        step = constrained_step(objective, point, slope, precision, likelihoods.log_bounds(used, self.names, self.unit))
        promised = float(slope @ step) - 0.5 * float(step @ precision @ step)
        # directions of which values say next to nothing are not waited for
        self.left_nats = min(promised, (gain + self.gain) / (1 - MAX_MISSING_SHARE))
        is_concave = bool(np.all(self.sites.terms[2][self.sites.observations.observed] > 0))
        if self.names and not is_concave and gain + self.gain > NEAR_OWN_NATS:
            return  # there may be several maxima, between which lengthened steps go to and fro
        self.ahead, self._logs_ahead = before + step[: before.size], point[before.size :] + step[before.size :]

    @property
    def own_slopes(self) -> tuple[Array, Array]:
        """Derivative of the bound in the logarithms of the likelihood's own parameters, and minus the second."""
        assert self.sites is not None
        return likelihoods.parameter_slopes(self.sites.observations.likelihood, self.names, *self.sites.of_observed)

    def lengthen(self, reach: float) -> None:
        logs = likelihoods.log_parameters(self.likelihood, self.names)
        logs = logs + reach * (self._logs_ahead - logs)
        self.likelihood = likelihoods.with_log_parameters(self.likelihood, self.names, logs)

    def finished(self, model: GraphGP) -> GraphGP:
        self.names, self.gain = (), 0.0
        return replace(model, likelihood=self.likelihood)


def max_draws(task: Task) -> int:
    """Largest number of draws within the limits of time and memory."""
    n_signals, n_nodes = task.signals.shape
    size = n_signals * n_nodes
    if FIRST_DRAWS * size > MAX_FIRST_VALUES:
        return 1 if task.spectrum.needs_passes else MIN_DRAWS
    return max(FIRST_DRAWS, min(MAX_DRAWS, MAX_DRAWN_VALUES // size))


def count_of(n_draws: int) -> str:
    """A number of draws in words."""
    return "1 draw" if n_draws == 1 else f"{n_draws} draws"


# ------------------------------------------------------------------------------------------------------------ search


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
    """Return a fit to missing values with the likelihood of the observed ones; other fits have it already."""
    if expectation is None and (task.is_complete or task.observed_by is not None):
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
            if history and model is not history[-1].fit.model:
                last = history[-1]
                if step.left_nats is None or last.left_nats is None:
                    is_astray = step.gain > last.gain
                else:
                    is_astray = step.left_nats > ASTRAY * last.left_nats
                if is_astray:  # the extrapolation led away from the maximum: again from where it began
                    model, fit, self.expectation.likelihood = last.fit.model, last.fit, last.likelihood
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
        precision, gradients = objective.precision(x), []
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
        fit = replace(fit, certificate=certificate, stages=tuple(self.stages), restarts=self.restarts)
        return replace(fit, outcome=outcome, detail=detail, method=method)
