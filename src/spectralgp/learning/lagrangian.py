"""The paper's Algorithm 1: grid search, unconstrained ascent, then the dual problem in the filter alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve, solve_triangular

from spectralgp._checks import Array
from spectralgp._progress import report
from spectralgp.covariance import DataCovariance
from spectralgp.evidence import Evidence
from spectralgp.graph_kernels import GraphKernel
from spectralgp.learning.descent import TRIAL, descend, group_rates, learning_rate
from spectralgp.learning.fit import TOUCHING, Certificate, Fit, Outcome, Stage, certify, finish, lift_above_zero
from spectralgp.learning.grid import grid_search
from spectralgp.learning.objective import Objective
from spectralgp.learning.solver import Solver
from spectralgp.learning.sqp import Sqp
from spectralgp.learning.task import Task
from spectralgp.spectrum import Spectrum

RESIDUAL = 1e-3  # of the conditions of optimality, where a stage counts as converged
FIRST_MULTIPLIER = 1e-2
LONGEST_DUAL_STEP = 2.0  # in the logarithm of a multiplier
PATIENCE = 200  # dual steps within which the residual must halve


@dataclass(frozen=True)
class Limits:
    """Most iterations of each stage: ascent, dual steps, and descents within a dual step."""

    ascent: int = 3000
    dual: int = 1000
    descent: int = 500

    @classmethod
    def from_iterations(cls, max_iterations: int) -> Limits:
        """Limits in proportion to one number; 500 gives the defaults."""
        return cls(6 * max_iterations, 2 * max_iterations, max_iterations)


@dataclass(frozen=True)
class Lagrangian(Solver):
    """Algorithm 1 of the paper with the initialisation of its supplement, in three stages.

    1. A grid search of the coefficients and the noise, at the supplement's starting length scale.
    2. Gradient ascent in all hyperparameters without the constraint.
    3. The dual problem in the coefficients, all else frozen: descent to convergence, then one ascent step in the
       logarithms of the multipliers, repeated. It starts from a feasible filter, because from an infeasible one the
       multipliers tend to grow without bound; if they do all the same, that is reported, and the best feasible
       filter met on the way is returned.

    Learning rates follow the supplement's rule, the largest power of ten that improves the objective consistently,
    found automatically. Steps are taken in coefficients of polynomials that are orthonormal on the spectrum, in which
    one rate suits all of them. Kernels that are not linear in their parameters have nothing to be constrained, and are
    left to `Sqp`.

    Parameters
    ----------
    limits : Limits, optional
        Most iterations of each stage.
    """

    limits: Limits = Limits()

    def n_steps(self, kernels: Sequence[GraphKernel]) -> int:
        """Two stages without a constraint, three with one."""
        (kernel,) = kernels
        if kernel.linear_design(np.zeros(1)) is None:
            return self._fallback.n_steps(kernels)
        return 2 if kernel.guides() else 3

    @property
    def _fallback(self) -> Sqp:
        return Sqp(self.limits.descent)

    def fit(self, task: Task, kernels: Sequence[GraphKernel], like: Sequence[Fit] | None = None) -> list[Fit]:
        """The fit of one kernel, from Algorithm 1's own start whatever it is like."""
        (kernel,) = kernels
        if kernel.linear_design(np.zeros(1)) is None:
            return self._fallback.fit(task, kernels, like)
        spectrum = task.spectrum_of(kernel)
        while True:
            fit = self._fit(Objective(task, kernel.bind(spectrum), spectrum))
            finer = None if fit.errors.is_tolerable else spectrum.refined()
            if finer is None:
                return [fit]
            spectrum = finer

    def _fit(self, objective: Objective) -> Fit:
        kernel, spectrum = objective.graph_kernel, objective.spectrum
        stages: list[Stage] = []

        def stage(name: str, x: Array) -> None:
            before = sum(earlier.n_evaluations for earlier in stages)
            stages.append(Stage(name, objective.evaluate(x)[0], objective.n_evaluations - before))
            report(name)

        x, name = grid_search(objective)
        stage(name, x)
        to_theta = orthonormal(kernel, spectrum)
        x, settled = _ascend(objective, to_theta, x, self.limits.ascent)
        if np.mean(kernel.with_theta(x[: objective.n_graph]).response(spectrum.eigenvalues)) < 0:
            x[: objective.n_graph] *= -1  # the same covariance, with a filter that is positive on average
        stage("unconstrained ascent", x)
        if not objective.positivity(x):
            outcome = Outcome.CONVERGED if settled else Outcome.STEP_LIMIT
            detail = "ascent converged" if settled else f"ascent stopped after {self.limits.ascent} steps"
            return finish(objective, x, certify(objective, x), outcome, detail, tuple(stages))
        problem = _Frozen(objective, to_theta, lift_above_zero(objective, x)[0])
        x, certificate, outcome, detail = _solve_dual(problem, self.limits)
        stage("dual problem", x)
        if certificate.residual <= RESIDUAL:
            outcome, detail = Outcome.CONVERGED, "the dual problem converged"
        return finish(objective, x, certificate, outcome, detail, tuple(stages))


def orthonormal(kernel: GraphKernel, spectrum: Spectrum) -> Array:
    """Matrix from coefficients of polynomials orthonormal on the spectrum to Chebyshev coefficients.

    The identity where there are fewer distinct eigenvalues than coefficients.
    """
    triangle = np.linalg.qr(_design(kernel, spectrum.eigenvalues))[1]
    n_coefficients = triangle.shape[1]
    diagonal = np.abs(np.diag(triangle))
    if triangle.shape[0] < n_coefficients or np.min(diagonal) < 1e-10 * np.max(diagonal):
        return np.eye(n_coefficients)
    return np.asarray(solve_triangular(triangle, np.eye(n_coefficients)))


def _ascend(objective: Objective, to_theta: Array, start: Array, limit: int) -> tuple[Array, bool]:
    """Stage 2: ascent in all hyperparameters, with a learning rate each for filter, input kernel and noise."""
    change = np.eye(start.size)
    change[: objective.n_graph, : objective.n_graph] = to_theta
    bounds = (objective.bounds[:, 0], objective.bounds[:, 1])  # the coefficients have none, so change keeps them

    def negative(z: Array) -> tuple[float, Array]:
        value, gradient = objective.evaluate(change @ z)
        return -value, -gradient @ change

    edges = [0, objective.n_graph, objective.n_graph + objective.input_theta.size, start.size]
    groups = [np.arange(first, last) for first, last in itertools.pairwise(edges) if last > first]
    z = solve(change, start)
    rates = group_rates(negative, z, groups, bounds)
    z, settled = descend(negative, z, rates, limit=limit, tolerance=RESIDUAL, bounds=bounds)
    return change @ z, settled


class _Frozen:
    """The problem of Algorithm 1: the filter in orthonormal coordinates ``z``, everything else held fixed."""

    def __init__(self, objective: Objective, to_theta: Array, x: Array) -> None:
        self.objective, self.to_theta, self.x = objective, to_theta, x
        kernel, input_theta, self.noise_variance = objective.split(x)
        spectrum, (asked,) = objective.spectrum, objective.positivity(x)
        self.modes = objective.inputs_at(input_theta)[0]
        self.data = objective.data_in(spectrum, self.modes)
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
        covariance = DataCovariance(self.modes.values, response**2, self.noise_variance)
        evidence = Evidence(self.modes, covariance, self.data)
        value = evidence.log_likelihood
        gradient = self.basis.T @ (2 * response * evidence.power_gradient)
        if self.objective.prior is not None:
            kernel = self.objective.graph_kernel.with_theta(self.to_theta @ z)
            further, slope, _ = kernel.log_prior(self.objective.spectrum, self.noise_variance)
            value, gradient = value + further, gradient + self.to_theta.T @ slope
        return -value, -gradient

    def whole(self, z: Array) -> Array:
        """The vector of all hyperparameters with these coefficients."""
        return np.concatenate([self.to_theta @ z, self.x[self.objective.n_graph :]])

    def certificate(self, z: Array, multipliers: Array, lift: float = 0.0) -> Certificate:
        """Residuals of this problem, with Algorithm 1's own multipliers."""
        gradient = self.negative(z)[1] - self.rows.T @ multipliers
        response = self.rows @ z
        peak = float(np.max(np.abs(response))) or 1.0
        touching = response <= TOUCHING * peak
        return Certificate(
            stationarity=float(np.max(np.abs(gradient))),
            feasibility=max(0.0, -float(np.min(response)) / peak),
            complementarity=float(np.max(np.abs(multipliers * response))),
            lift=lift,
            active=tuple(f"filter at {point:.4g}" for point in self.points[touching]),
            multipliers=tuple(multipliers[touching].tolist()),
        )


def _design(kernel: GraphKernel, eigenvalues: Array) -> Array:
    design = kernel.linear_design(eigenvalues)
    if design is None:
        raise ValueError(f"graph_kernel must be linear in its parameters for Algorithm 1; got {kernel!r}.")
    return design


def _solve_dual(problem: _Frozen, limits: Limits) -> tuple[Array, Certificate, Outcome, str]:
    """Stage 3: ``max_m min_beta -log p - exp(m)^T B_v beta``, by descent in beta and single ascent steps in m."""
    rows, z = problem.rows, problem.start
    logs = np.full(rows.shape[0], np.log(FIRST_MULTIPLIER))
    rates = np.full(z.size, learning_rate(problem.negative, z, np.arange(z.size)))
    best = (problem.negative(z)[0], z, np.exp(logs))  # the best feasible point so far: the start is one
    step, previous, rising, residuals = 1.0, -np.inf, 0, [np.inf] * PATIENCE
    outcome, detail = Outcome.STEP_LIMIT, f"stopped after {limits.dual} dual steps"
    for _ in range(limits.dual):
        multipliers = np.exp(logs)
        linear = rows.T @ multipliers

        def lagrangian(w: Array, linear: Array = linear) -> tuple[float, Array]:
            value, gradient = problem.negative(w)
            return value - float(linear @ w), gradient - linear

        z, _ = descend(lagrangian, z, rates, limit=limits.descent, tolerance=RESIDUAL / 10)
        certificate = problem.certificate(z, multipliers)
        feasible = certificate.feasibility <= 1e-9
        if feasible and certificate.residual <= RESIDUAL / 2:
            best = (problem.negative(z)[0], z, multipliers)
            break
        if feasible and problem.negative(z)[0] < best[0]:
            best = (problem.negative(z)[0], z, multipliers)
        residuals.append(certificate.residual)
        if residuals[-1] > 0.5 * residuals[-PATIENCE - 1] or not np.isfinite(residuals[-1]):
            outcome = Outcome.DIVERGED
            detail = (
                f"diverged: within {PATIENCE} dual steps the residual did not halve (now {residuals[-1]:.2g}, with "
                f"multipliers up to {np.max(multipliers):.2g}); returned the best non-negative filter met"
            )
            break
        dual = lagrangian(z)[0]
        step, rising = (step / 10, 0) if dual < previous - 1e-9 * abs(previous) else (step, rising + 1)
        if rising >= 2 * TRIAL:
            step, rising = step * 10, 0
        previous = dual
        # the gradient of the dual in m is -exp(m) g
        logs = logs - np.clip(step * multipliers * (rows @ z), -LONGEST_DUAL_STEP, LONGEST_DUAL_STEP)
    lifted, lift = lift_above_zero(problem.objective, problem.whole(best[1]))
    z = solve(problem.to_theta, lifted[: problem.objective.n_graph])
    return lifted, problem.certificate(z, best[2], lift), outcome, detail
