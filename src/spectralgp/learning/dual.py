"""The problem of Algorithm 1, its box of five lines: the filter alone, kept non-negative by multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve, solve_triangular

from spectralgp._basics.checks import Array
from spectralgp.fields import Evidence
from spectralgp.kernels import GraphKernel
from spectralgp.learning.descent import TRIAL, Limits, ValueAndGradient, descend, learning_rate
from spectralgp.learning.fit import TOUCHING, Certificate, Outcome, lift_above_zero
from spectralgp.learning.objective import Objective
from spectralgp.spectra import Spectrum

RESIDUAL = 1e-3  # of the conditions of optimality, where a stage counts as converged
FEASIBLE = 1e-9  # how far below zero a filter may fall for its rounding, relative to its largest value
LONGEST_DUAL_STEP = 2.0  # in the logarithm of a multiplier
PATIENCE = 200  # dual steps within which the residual must halve


@dataclass(frozen=True, eq=False)
class Ended:
    """Where and how the dual problem ended: the vector of all hyperparameters, residuals, and a verdict."""

    x: Array
    certificate: Certificate
    outcome: Outcome
    detail: str


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


def powers(kernel: GraphKernel) -> Array:
    """Matrix from the paper's ``beta``, coefficients of powers of ``lambda / upper``, to Chebyshev coefficients."""
    columns = []
    for unit in np.eye(kernel.theta.size):
        column = kernel.with_powers(unit)
        assert column is not None  # the grid search has refused other kernels
        columns.append(column.theta)
    return np.column_stack(columns)


def _design(kernel: GraphKernel, eigenvalues: Array) -> Array:
    design = kernel.linear_design(eigenvalues)
    if design is None:
        raise ValueError(f"graph_kernel must be linear in its parameters for Algorithm 1; got {kernel!r}.")
    return design


class Frozen:
    """The problem of Algorithm 1: the filter in coordinates ``z``, with everything else held fixed.

    ``to_theta`` takes the coordinates to Chebyshev coefficients: `orthonormal`, or `powers` as in the paper.
    """

    def __init__(self, objective: Objective, to_theta: Array, x: Array) -> None:
        self.objective, self.to_theta, self.x = objective, to_theta, x
        kernel, input_theta, self.noise_variance = objective.split(x)
        spectrum, (asked,) = objective.spectrum, objective.positivity(x)
        self.inputs = objective.inputs_at(input_theta)[0]
        self.data = objective.data_in(spectrum, self.inputs)
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
        evidence = Evidence(self.inputs, response**2, noise, self.data)
        value = evidence.log_likelihood
        gradient = self.basis.T @ (2 * response * evidence.power_gradient)
        if self.objective.prior is not None:
            kernel = self.objective.graph_kernel.with_theta(self.to_theta @ z)
            further, slope, _ = kernel.log_prior(self.objective.spectrum, self.noise_variance)
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
        touching = response <= TOUCHING * peak
        return Certificate(
            stationarity=float(np.max(np.abs(gradient))),
            feasibility=max(0.0, -float(np.min(response)) / peak),
            complementarity=float(np.max(np.abs(multipliers * response))),
            lift=lift,
            active=tuple(f"filter at {point:.4g}" for point in self.points[touching]),
            multipliers=tuple(multipliers[touching].tolist()),
        )


def solve_dual(problem: Frozen, logs: Array, dual_rate: float, limits: Limits) -> Ended:
    """Stage 3: ``max_m min_beta -log p - exp(m)^T B_v beta``, by descent in beta and single ascent steps in m.

    Safeguarded: `Lagrangian` lists how. ``logs`` is the first ``m``.
    """
    rows, z = problem.rows, problem.start
    rates = np.full(z.size, learning_rate(problem.negative, z, np.arange(z.size)))
    best = (problem.negative(z)[0], z, np.exp(logs))  # the best feasible point so far: the start is one
    step, previous, rising, residuals = dual_rate, -np.inf, 0, [np.inf] * PATIENCE
    outcome, detail = Outcome.STEP_LIMIT, f"the dual problem stopped after {limits.dual} steps"
    for _ in range(limits.dual):
        multipliers = np.exp(logs)
        lagrangian = problem.lagrangian(multipliers)
        z, _ = descend(lagrangian, z, rates, limit=limits.descent, tolerance=RESIDUAL / 10)
        certificate = problem.certificate(z, multipliers)
        feasible = certificate.feasibility <= FEASIBLE
        if feasible and certificate.residual <= RESIDUAL / 2:
            best = (problem.negative(z)[0], z, multipliers)
            break
        if feasible and problem.negative(z)[0] < best[0]:
            best = (problem.negative(z)[0], z, multipliers)
        residuals.append(certificate.residual)
        if residuals[-1] > 0.5 * residuals[-PATIENCE - 1] or not np.isfinite(residuals[-1]):
            outcome = Outcome.DIVERGED
            detail = (
                f"the dual problem diverged: within {PATIENCE} steps the residual did not halve (now "
                f"{residuals[-1]:.2g}, with multipliers up to {np.max(multipliers):.2g}); returned the best "
                "non-negative filter met"
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
    certificate = problem.certificate(z, best[2], lift)
    if certificate.residual <= RESIDUAL:  # however the search for a better one ended
        outcome, detail = Outcome.CONVERGED, "the dual problem converged"
    return Ended(lifted, certificate, outcome, detail)
