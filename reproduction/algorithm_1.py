"""The paper's Algorithm 1: grid search, unconstrained ascent, then the dual problem in the filter alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve, solve_triangular

from spectralgp import GraphKernel, Spectrum, Sqp, Task
from spectralgp.learning import (
    Certificate,
    Fit,
    Objective,
    Outcome,
    SearchResult,
    Solver,
    Stage,
    grid_search,
    lift_above_zero,
    step_done,
)

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
FIRST_MULTIPLIER = 1e-2
MAX_ACTIVE = 1e-6  # response, relative to the filter's largest, at which a constraint counts as active
MAX_VIOLATION = 1e-9  # how far below zero a filter may fall for its rounding, relative to its largest value

RATES = 10.0 ** np.arange(2, -13, -1)
TRIAL_STEPS = 5  # that must all descend for a learning rate to be taken
MAX_STEP = 5.0  # no log parameter and no filter on unit-scale signals should leap further
STEPS_PER_RATE = 50  # of the ascent, after which its learning rates are found anew
MAX_DUAL_STEP = 2.0  # in the logarithm of a multiplier
MAX_STEPS_TO_HALVE = 200  # dual steps within which the residual must halve

LITERAL_TOLERANCE = 1e-3  # change of the Lagrangian that ends either loop, that of the authors' released program
MAX_GROWTH = 1e3  # size of the filter, relative to that at the start, from where steps no longer lead back
MAX_SWAMPED_SHARE = 0.1  # of the observations that a filter may swamp where the Lagrangian stands still

ValueAndGradient = Callable[[Array], tuple[float, Array]]
Bounds = tuple[Array | float, Array | float]
UNBOUNDED: Bounds = (-np.inf, np.inf)


@dataclass(frozen=True)
class Limits:
    """Largest numbers of iterations, of the ascent, of dual steps and of a descent within one, and the tolerance."""

    ascent: int = 3000
    dual: int = 1000
    descent: int = 500
    residual: float = 1e-3  # of the conditions of optimality, at which a stage has converged


@dataclass(frozen=True)
class Lagrangian(Solver):
    """Algorithm 1 of the paper with the initialisation of its supplement, in three stages.

    1. A grid search of the coefficients and the noise, at the supplement's starting length scale.
    2. Gradient ascent in all hyperparameters without the constraint.
    3. The dual problem in the coefficients, all else frozen: descent to convergence, then one ascent step in the
       logarithms of the multipliers, repeated.

    Kernels that are not linear in their parameters have no constraint, and are learnt by `Sqp`.

    Parameters
    ----------
    limits : Limits, optional
        Largest number of iterations of each stage, and the tolerance.
    literal : bool, default=False
        Stage 3 as the paper prints it, without the safeguards listed below. It may diverge, or end with a filter that
        is negative somewhere; the outcome says so, and the filter is not mended.
    multiplier : float or "random", default=0.01
        First value of every multiplier; if random, their logarithms are normal about that of 0.01, with a standard
        deviation of one. The paper names no value. With `literal`, 0.01 often ends before it has constrained anything:
        the authors' programs take ``log(1 + exp(-1))`` at a rate of 1, and ``exp(0.1)`` at a rate of 0.1.
    dual_rate : float, default=1.0
        Learning rate of the logarithms of the multipliers: constant if literal, else the first one.
    random_state : int, default=0
        Seed of random multipliers.

    Notes
    -----
    Differences from the printed algorithm (docs/reproduction-algorithm.md has every number):

    - Stage 1 tries both grids of the supplement, each up to a common sign, and thins one of more than 10,000 filters.
    - Stages 2 and 3 step in coefficients of polynomials orthonormal on the spectrum, and stage 2 in the logarithms of
      the input kernel's parameters and of the noise, within bounds, with learning rates by the supplement's rule that
      are found anew every 50 steps. Then the filter changes sign if it is negative on average.
    - Stage 3 starts from that filter plus the constant that makes it non-negative: from an infeasible one the
      multipliers tend to grow without bound. Descents divide their rate by ten where a step does not improve;
      steps in the logarithms of the multipliers are cut at 2, at a rate that follows the dual.
    - It ends where the residual of the conditions of optimality is at most 5e-4, or does not halve within 200 steps,
      and returns the best feasible filter met, lifted where rounding left it below zero. That has converged if its
      residual is at most 1e-3 and stage 2 converged, or had nothing to freeze.

    With `literal` stage 3 is lines 1 to 5 of the printed box, from the unconstrained solution even where that is
    negative, in coefficients of powers and at fixed rates; either loop ends where the Lagrangian changes by less than
    0.001, the tolerance of the authors' released program. One check is added: a filter that grows to a thousand times
    its first size, or swamps more than a tenth of the observations, has diverged.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction import Lagrangian
    >>> from spectralgp import Graph, Polynomial, Task, learn
    >>> ring = Graph.from_edges([(node, (node + 1) % 12) for node in range(12)])
    >>> white = np.random.default_rng(0).standard_normal((20, 12))
    >>> signals = 2 * white - np.roll(white, 1, axis=1) - np.roll(white, -1, axis=1)
    >>> task = Task.of(ring, None, np.empty((20, 0)), signals, prior=None)
    >>> for solver in (Lagrangian(), Lagrangian(literal=True)):
    ...     fit = learn(task, Polynomial(1), solver=solver)
    ...     print(fit.outcome.name, fit.certificate.feasibility > 0)
    CONVERGED False
    NEGATIVE_FILTER True
    """

    plain_models_only: ClassVar[bool] = True
    limits: Limits = field(default_factory=Limits)
    literal: bool = False
    multiplier: float | Literal["random"] = FIRST_MULTIPLIER
    dual_rate: float = 1.0
    random_state: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, given in {"multiplier": self.multiplier, "dual_rate": self.dual_rate}.items():
            is_positive = isinstance(given, float | int) and 0 < given < np.inf
            if not is_positive and (name, given) != ("multiplier", "random"):
                raise ValueError(f"{name} must be a finite number above 0; got {given!r}.")

    def fit(self, task: Task, kernels: Sequence[GraphKernel], warm_starts: Sequence[Fit] | None = None) -> list[Fit]:
        (kernel,) = kernels
        if not kernel.theta.size or kernel.search().with_powers(kernel.theta) is None:
            return Sqp(self.limits.descent).fit(task, kernels, warm_starts)
        spectrum = task.spectrum_of(kernel)
        while True:
            fit = self._fit(Objective(task, kernel.bind(spectrum), spectrum))
            finer = None if fit.errors.is_tolerable else spectrum.refined()
            if finer is None:
                return [fit]
            spectrum = finer

    def _fit(self, objective: Objective) -> Fit:
        stages: list[Stage] = []

        def note(name: str, x: Array) -> float:
            value, before = objective.evaluate(x)[0], sum(stage.n_evaluations for stage in stages)
            stages.append(Stage(name, value, objective.n_evaluations - before))
            step_done(name)
            return value

        x, name = grid_search(objective)
        note(name, x)
        x, stopped = _ascend(objective, x, self.limits)
        if np.mean(objective.split(x)[0].response(objective.spectrum.eigenvalues)) < 0:
            x[: objective.n_graph] *= -1  # the same covariance, with a filter that is positive on average
        value = note("unconstrained ascent", x)
        if not objective.positivity(x):
            outcome = Outcome.STEP_LIMIT if stopped else Outcome.CONVERGED
            detail = f"the unconstrained ascent {stopped or 'converged'}"
            return SearchResult(objective, x, value, outcome, detail).fit(tuple(stages))
        found = self._solve_dual(objective, x)
        note("dual problem", found.x)
        frozen = ["the input kernel"] * bool(objective.input_theta.size) + ["the noise"] * objective.learns_noise
        if stopped and frozen:
            outcome = Outcome.STEP_LIMIT if found.outcome is Outcome.CONVERGED else found.outcome
            are = f"{' and '.join(frozen)} {'are' if len(frozen) > 1 else 'is'}"
            detail = f"the unconstrained ascent {stopped}, so {are} not at its optimum; {found.detail}"
            found = replace(found, outcome=outcome, detail=detail)
        return found.fit(tuple(stages), rests_on=x)

    def _solve_dual(self, objective: Objective, x: Array) -> SearchResult:
        """Stage 3, from the unconstrained solution."""
        kernel, spectrum = objective.graph_kernel, objective.spectrum
        if self.literal:
            problem = FilterProblem(objective, _powers(kernel), x)
        else:
            problem = FilterProblem(objective, _orthonormal(kernel, spectrum), lift_above_zero(objective, x)[0])
        logs = np.full(
            problem.points.size, np.log(FIRST_MULTIPLIER if self.multiplier == "random" else self.multiplier)
        )
        if self.multiplier == "random":
            logs += np.random.default_rng(self.random_state).standard_normal(logs.size)
        return (_solve_literally if self.literal else _solve_safely)(problem, logs, self.dual_rate, self.limits)


def learning_rate(function: ValueAndGradient, start: Array, group: Indices, bounds: Bounds = UNBOUNDED) -> float:
    """Largest power of ten at which each of five steps in one group of parameters descends."""
    first = function(start)
    for rate in RATES:
        x, (value, gradient) = start, first
        for _ in range(TRIAL_STEPS):
            proposal = x.copy()
            proposal[group] -= rate * gradient[group]
            proposal = np.clip(proposal, *bounds)
            if np.max(np.abs(proposal - x)) > MAX_STEP:
                break
            new_value, new_gradient = function(proposal)
            if not new_value <= value:
                break
            x, value, gradient = proposal, new_value, new_gradient
        else:
            return float(rate)
    return float(RATES[-1])


def descend(
    function: ValueAndGradient, start: Array, rates: Array, limit: int, tolerance: float, bounds: Bounds = UNBOUNDED
) -> tuple[Array, bool]:
    """Last point of gradient descent with one rate per parameter; whether the projected gradient met the tolerance."""
    low, high = bounds
    x = np.clip(start, low, high)
    value, gradient = function(x)
    for _ in range(limit):
        free = ((x > low) | (gradient < 0)) & ((x < high) | (gradient > 0))
        if np.max(np.abs(gradient * free), initial=0.0) <= tolerance:
            return x, True
        proposal = np.clip(x - rates * gradient, low, high)
        new_value, new_gradient = function(proposal)
        if new_value < value:
            x, value, gradient = proposal, new_value, new_gradient
            continue
        rates = rates / 10  # the step fails to descend
        if np.max(rates * np.abs(gradient)) < 1e-15 * max(1.0, float(np.max(np.abs(x)))):
            break
    return x, False


def _ascend(objective: Objective, start: Array, limits: Limits) -> tuple[Array, str]:
    """Stage 2, ascent in all hyperparameters: the last point, and why it stopped early, empty if it converged."""
    change = np.eye(start.size)
    change[: objective.n_graph, : objective.n_graph] = _orthonormal(objective.graph_kernel, objective.spectrum)
    bounds = (objective.bounds[:, 0], objective.bounds[:, 1])  # the coefficients have none, so change keeps them

    def negative(z: Array) -> tuple[float, Array]:
        value, gradient = objective.evaluate(change @ z)
        return -value, -gradient @ change

    edges = [0, objective.n_graph, objective.n_graph + objective.input_theta.size, start.size]
    groups = [np.arange(first, last) for first, last in itertools.pairwise(edges) if last > first]
    z, stopped = solve(change, start), f"stopped after {limits.ascent} steps"
    for n_steps in range(0, limits.ascent, STEPS_PER_RATE):
        # curvatures change by orders of magnitude on the way, and the noise's unlike the filter's
        rates = np.zeros(z.size)
        for group in groups:
            rates[group] = learning_rate(negative, z, group, bounds)
        before, few = z, min(STEPS_PER_RATE, limits.ascent - n_steps)
        z, is_settled = descend(negative, z, rates, limit=few, tolerance=limits.residual, bounds=bounds)
        if is_settled:
            return change @ z, ""
        if np.array_equal(z, before):
            stopped = f"stopped after {n_steps} steps, where no learning rate climbs"
            break
    return change @ z, stopped


def _orthonormal(kernel: GraphKernel, spectrum: Spectrum) -> Array:
    """Matrix from coefficients of polynomials orthonormal on the spectrum to Chebyshev coefficients."""
    triangle = np.linalg.qr(_design(kernel, spectrum.eigenvalues))[1]
    n_coefficients = triangle.shape[1]
    diagonal = np.abs(np.diag(triangle))
    if triangle.shape[0] < n_coefficients or np.min(diagonal) < 1e-10 * np.max(diagonal):
        return np.eye(n_coefficients)  # there are fewer distinct eigenvalues than coefficients
    return np.asarray(solve_triangular(triangle, np.eye(n_coefficients)))


def _powers(kernel: GraphKernel) -> Array:
    """Matrix from the paper's ``beta``, coefficients of powers of ``lambda / upper``, to Chebyshev coefficients."""
    columns = []
    for unit in np.eye(kernel.theta.size):
        column = kernel.search().with_powers(unit)
        assert column is not None  # the grid search has refused other kernels
        columns.append(column.theta)
    return np.column_stack(columns)


def _design(kernel: GraphKernel, eigenvalues: Array) -> Array:
    return np.column_stack([kernel.with_theta(unit).response(eigenvalues) for unit in np.eye(kernel.theta.size)])


class FilterProblem:
    """Algorithm 1's problem in the filter alone; ``to_theta`` maps its coordinates to Chebyshev coefficients."""

    def __init__(self, objective: Objective, to_theta: Array, x: Array) -> None:
        self.objective, self.to_theta, self.x = objective, to_theta, x
        kernel, _, self.noise_variance = objective.split(x)
        spectrum, (asked,) = objective.spectrum, objective.positivity(x)
        evidence: Any = objective.evidence(x, by_modes=True)
        self.evidence = evidence  # given the lagged terms of the inputs, which are frozen too
        self.n_observations = self.evidence.data.n_observations
        self.basis = _design(kernel, spectrum.eigenvalues) @ to_theta
        self.points = spectrum.eigenvalues
        if not np.isin(asked.points, self.points).all():  # asked of the whole interval
            self.points = np.union1d(self.points, np.linspace(0, spectrum.upper, 201))
        self.rows = _design(kernel, self.points) @ to_theta
        self.start = solve(to_theta, x[: objective.n_graph])

    def negative(self, z: Array) -> tuple[float, Array]:
        """Negative log posterior of the coefficients, and its gradient."""
        self.objective.n_evaluations += 1
        response = self.basis @ z
        noise = np.full(response.size, self.noise_variance)
        evidence = replace(self.evidence, power=response**2, own=noise)
        value = evidence.log_likelihood
        gradient = self.basis.T @ (2 * response * evidence.power_gradient)
        if self.objective.task.prior is not None:
            kernel = self.objective.graph_kernel.with_theta(self.to_theta @ z)
            further, slope, *_ = kernel.search().log_prior(self.objective.spectrum, self.noise_variance)
            value, gradient = value + further, gradient + self.to_theta.T @ slope
        return -value, -gradient

    def lagrangian(self, multipliers: Array) -> ValueAndGradient:
        """The Lagrangian ``-log p - multipliers^T B_v beta`` as a function of the coordinates, with its gradient."""
        linear = self.rows.T @ multipliers

        def value_and_gradient(z: Array) -> tuple[float, Array]:
            value, gradient = self.negative(z)
            return value - float(linear @ z), gradient - linear

        return value_and_gradient

    def whole(self, z: Array) -> Array:
        """The vector of all hyperparameters with these coefficients."""
        return np.concatenate([self.to_theta @ z, self.x[self.objective.n_graph :]])

    def certificate(self, z: Array, multipliers: Array, lift: float = 0.0) -> Certificate:
        """Residuals of this problem, with Algorithm 1's own multipliers."""
        gradient = self.negative(z)[1] - self.rows.T @ multipliers
        response = self.rows @ z
        peak = float(np.max(np.abs(response))) or 1.0
        touching = response <= MAX_ACTIVE * peak
        return Certificate(
            stationarity=float(np.max(np.abs(gradient))),
            feasibility=max(0.0, -float(np.min(response)) / peak),
            complementarity=float(np.max(np.abs(multipliers * response))),
            lift=lift,
            active=tuple(f"filter at {point:.4g}" for point in self.points[touching]),
            multipliers=tuple(multipliers[touching].tolist()),
        )

    def result(self, x: Array, certificate: Certificate, outcome: Outcome, detail: str) -> SearchResult:
        """The result of stage 3, at a vector of all hyperparameters."""
        value = self.objective.evaluate(x)[0]
        return SearchResult(self.objective, x, value, outcome, detail, certificate.lift, certificate)


def _solve_safely(problem: FilterProblem, logs: Array, dual_rate: float, limits: Limits) -> SearchResult:
    """Stage 3 with safeguards: ``max_m min_beta -log p - exp(m)^T B_v beta``, where ``logs`` is the first ``m``."""
    rows, z = problem.rows, problem.start
    rates = np.full(z.size, learning_rate(problem.negative, z, np.arange(z.size)))
    best = (problem.negative(z)[0], z, np.exp(logs))  # the best feasible point so far: the start is one
    step, previous, rising, residuals = dual_rate, -np.inf, 0, [np.inf] * MAX_STEPS_TO_HALVE
    outcome, detail = Outcome.STEP_LIMIT, f"the dual problem stopped after {limits.dual} steps"
    for _ in range(limits.dual):
        multipliers = np.exp(logs)
        lagrangian = problem.lagrangian(multipliers)
        z, _ = descend(lagrangian, z, rates, limit=limits.descent, tolerance=limits.residual / 10)
        certificate = problem.certificate(z, multipliers)
        feasible = certificate.feasibility <= MAX_VIOLATION
        if feasible and certificate.residual <= limits.residual / 2:
            best = (problem.negative(z)[0], z, multipliers)
            break
        if feasible and problem.negative(z)[0] < best[0]:
            best = (problem.negative(z)[0], z, multipliers)
        residuals.append(certificate.residual)
        if residuals[-1] > 0.5 * residuals[-MAX_STEPS_TO_HALVE - 1] or not np.isfinite(residuals[-1]):
            outcome = Outcome.DIVERGED
            detail = (
                f"the dual problem diverged: within {MAX_STEPS_TO_HALVE} steps the residual did not halve (now "
                f"{residuals[-1]:.2g}, with multipliers up to {np.max(multipliers):.2g}); returned the best "
                "non-negative filter met"
            )
            break
        dual = lagrangian(z)[0]
        step, rising = (step / 10, 0) if dual < previous - 1e-9 * abs(previous) else (step, rising + 1)
        if rising >= 2 * TRIAL_STEPS:
            step, rising = step * 10, 0
        previous = dual
        # the gradient of the dual in m is -exp(m) g
        logs = logs - np.clip(step * multipliers * (rows @ z), -MAX_DUAL_STEP, MAX_DUAL_STEP)
    lifted, lift = lift_above_zero(problem.objective, problem.whole(best[1]))
    z = solve(problem.to_theta, lifted[: problem.objective.n_graph])
    certificate = problem.certificate(z, best[2], lift)
    if certificate.residual <= limits.residual:  # however the search for a better one ended
        outcome, detail = Outcome.CONVERGED, "the dual problem converged"
    return problem.result(lifted, certificate, outcome, detail)


def _solve_literally(problem: FilterProblem, logs: Array, dual_rate: float, limits: Limits) -> SearchResult:
    """Stage 3 as printed, lines 1 to 5, from the start of a problem in powers.

    For large filters the Lagrangian is about ``N M log |g| - multipliers^T g``, which has no lower bound: line 2 finds
    a local minimum, and there is none where multipliers are large. Then the filter grows until the multipliers vanish,
    and the Lagrangian may stand still far from any solution. That counts as divergence.
    """
    beta, multipliers, value = problem.start, np.exp(logs), np.nan
    rate = learning_rate(problem.lagrangian(multipliers), beta, np.arange(beta.size))
    size = float(np.max(np.abs(problem.rows @ beta))) or 1.0
    within = problem.rows / (MAX_GROWTH * size)
    outcome, ending = Outcome.STEP_LIMIT, f"the Lagrangian did not converge in {limits.dual} dual steps"
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows has diverged
        for n_steps in range(1, limits.dual + 1):
            function, previous = problem.lagrangian(np.exp(logs)), value
            beta, value, is_settled = _descend_plainly(function, beta, rate, limits.descent, within)  # line 2
            if np.isnan(value):
                outcome, ending = Outcome.DIVERGED, f"the filter diverged in dual step {n_steps}"
                break
            multipliers = np.exp(logs)
            if is_settled and abs(value - previous) < LITERAL_TOLERANCE:
                outcome, ending = Outcome.CONVERGED, f"the Lagrangian converged in {n_steps} dual steps"
                break
            logs = logs - dual_rate * multipliers * (problem.rows @ beta)  # the gradient in m is -exp(m) g
    certificate = problem.certificate(beta, multipliers)
    detail = f"at a learning rate of {rate:.0e} {ending}"
    # the derivative in the logarithm of the filter's size: zero at a solution, N M where a filter swamps the signals
    gain = float(beta @ problem.negative(beta)[1])
    if outcome is Outcome.CONVERGED and gain > MAX_SWAMPED_SHARE * problem.n_observations:
        outcome, growth = Outcome.DIVERGED, float(np.max(np.abs(problem.rows @ beta))) / size
        detail += (
            f", but to no solution: the filter has {growth:.2g} times its size at the start, and shrinking it would "
            f"gain {gain:.2g} nats for a unit of its logarithm"
        )
    if certificate.feasibility > MAX_VIOLATION:
        outcome = Outcome.NEGATIVE_FILTER if outcome is Outcome.CONVERGED else outcome
        detail += f", and the filter falls to {-certificate.feasibility:.2g} of its largest magnitude"
    return problem.result(problem.whole(beta), certificate, outcome, detail)


def _descend_plainly(
    function: ValueAndGradient, start: Array, rate: float, limit: int, within: Array
) -> tuple[Array, float, bool]:
    """Descent at one rate: the last point, its value or nan if ``|within @ x| <= 1`` would fail, whether it settled."""
    x, (value, gradient) = start, function(start)
    for _ in range(limit):
        proposal = x - rate * gradient
        if not np.max(np.abs(within @ proposal)) <= 1:
            return x, np.nan, False
        new_value, gradient = function(proposal)
        x, change, value = proposal, abs(new_value - value), new_value
        if change < LITERAL_TOLERANCE:
            return x, value, True
    return x, value, False
