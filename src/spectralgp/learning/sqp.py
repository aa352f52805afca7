"""The default solver: sequential quadratic programming with continuation in the degree."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize

from spectralgp._checks import Array
from spectralgp.graph_kernels import GraphKernel, Polynomial
from spectralgp.learning.accuracy import require_moments
from spectralgp.learning.fit import Fit, Stage, certify, finish, lift_above_zero, lowest_points
from spectralgp.learning.grid import grid_search
from spectralgp.learning.objective import Objective, Task
from spectralgp.spectrum import AnySpectrum

Progress = Callable[[str], None]

TOLERANCE = 1e-15  # of the objective per observation, where SLSQP stops
STATIONARITY = 1e-3  # residual of the gradient per root of the number of observations, where a fit counts as converged
VIOLATION = 1e-12  # of the filter, relative to its largest value
MOST_ROUNDS = 30  # of adding violated constraints
MOST_RESTARTS = 3  # from a point that is feasible but not yet stationary


def fit_path(
    task: Task,
    kernel: Polynomial,
    degrees: Sequence[int],
    spectrum: AnySpectrum,
    max_iterations: int = 500,
    progress: Progress | None = None,
) -> list[Fit]:
    """Fits of several degrees along one continuation: each degree starts from the solution of the one below.

    The start is the same function with one more coefficient, so the objective never falls with the degree, and the
    search stays near the simpler model.
    """
    fits: dict[int, Fit] = {}
    stages: list[Stage] = []
    x, inner = np.empty(0), np.empty(0)
    for degree in range(max(degrees) + 1):
        objective = Objective(task, kernel.with_degree(degree), spectrum)
        starts = _starts(objective) if degree == 0 else [np.insert(x, degree, 0.0)]
        if degree > 0 and _is_silent(objective, starts[0]):
            starts += _starts(objective)  # at zero the slope in every coefficient vanishes: no way out from there
        if kernel.constraint is None:
            # without a constraint there are many more local maxima: start from the constrained one and from a grid too
            form = kernel.with_degree(degree)
            feasible = Objective(task, dataclasses.replace(form, constraint="eigenvalues"), spectrum)
            inner, _ = _best(feasible, starts if degree == 0 else [np.insert(inner, degree, 0.0)], max_iterations)
            objective.n_evaluations += feasible.n_evaluations
            starts += [inner, grid_search(objective, form)[0]] if degree in degrees else [inner]
        x, message = _best(objective, starts, max_iterations)
        x, lift = lift_above_zero(objective, x)
        require_moments(objective, x)
        stages.append(Stage(f"degree {degree}", objective.evaluate(x)[0], objective.n_evaluations))
        if degree in degrees:
            fits[degree] = _finish(objective, x, message, tuple(stages), lift)
        if progress is not None:
            progress(f"degree {degree}")
    return [fits[degree] for degree in degrees]


def fit_kernel(
    task: Task,
    kernel: GraphKernel,
    spectrum: AnySpectrum,
    max_iterations: int = 500,
    progress: Progress | None = None,
) -> Fit:
    """Fit of a kernel with a closed formula, from each of its starting points; the best is kept."""
    objective = Objective(task, kernel, spectrum)
    x, message = _best(objective, _starts(objective), max_iterations)
    stage = Stage(type(kernel).__name__, objective.evaluate(x)[0], objective.n_evaluations)
    if progress is not None:
        progress(stage.name)
    return _finish(objective, x, message, (stage,), 0.0)


def _starts(objective: Objective) -> list[Array]:
    """Starting points: those of the graph kernel, with length scales as given and at the inputs' own scale."""
    task, bounds = objective.task, objective.bounds
    input_thetas = [objective.input_theta]
    centres = task.input_kernel.typical_theta(task.inputs)
    typical = np.where(np.isnan(centres), objective.input_theta, centres)
    if not np.allclose(typical, objective.input_theta):
        input_thetas.append(typical)
    graph_thetas = objective.graph_kernel.starting_points(objective.spectrum, task.variance)
    noise = task.noise_variance or 0.2 * task.variance
    starts = [objective.join(graph, inputs, noise) for graph in graph_thetas for inputs in input_thetas]
    return [np.clip(start, bounds[:, 0], bounds[:, 1]) for start in starts]


def _is_silent(objective: Objective, x: Array) -> bool:
    """Whether the filter is so small that the noise explains everything."""
    kernel, _, noise_variance = objective.split(x)
    return kernel.mean_power(objective.spectrum) < 1e-6 * noise_variance


def _best(objective: Objective, starts: list[Array], max_iterations: int) -> tuple[Array, str]:
    """Solve from every start and keep the highest objective."""
    solutions = [_solve(objective, start, max_iterations) for start in starts]
    return max(solutions, key=lambda solution: solution[2])[:2]


def _solve(objective: Objective, start: Array, max_iterations: int) -> tuple[Array, str, float]:
    """Constrained maximum from one start, with constraints added only where they turn out to be violated.

    A polynomial is lowest at a few points, so a few linear constraints stand for those at every eigenvalue.
    """
    if start.size == 0:
        return start, "nothing to learn: every hyperparameter is fixed", objective.evaluate(start)[0]
    scale = float(objective.task.signals.size)

    def negative(x: Array) -> tuple[float, Array]:
        value, gradient = objective.evaluate(x)
        return -value / scale, -gradient / scale

    kernel = objective.graph_kernel
    points = _first_points(kernel, objective.spectrum)
    x, n_restarts = start, 0
    for _ in range(MOST_ROUNDS):
        result = minimize(
            negative,
            x,
            jac=True,
            method="SLSQP",
            bounds=objective.bounds,
            constraints=_constraints(kernel, points, start.size),
            options={"maxiter": max_iterations, "ftol": TOLERANCE},
        )
        x = np.clip(result.x, objective.bounds[:, 0], objective.bounds[:, 1])
        violated = _violated(objective, x)
        if violated.size:
            points = np.union1d(points, violated)
        elif n_restarts == MOST_RESTARTS or certify(objective, x).stationarity <= _stationarity_limit(objective):
            break
        else:
            n_restarts += 1  # the solver forgets a curvature that misled it
    return x, str(result.message), -float(result.fun)


def _first_points(kernel: GraphKernel, spectrum: AnySpectrum) -> Array:
    """A few eigenvalues (or points of the interval) spread like Chebyshev points, to ask positivity at first."""
    if not isinstance(kernel, Polynomial) or kernel.constraint is None:
        return np.empty(0)
    n_points = 4 * kernel.theta.size
    spread = kernel.upper * (1 - np.cos(np.linspace(0, np.pi, n_points))) / 2
    if kernel.constraint == "interval" or not spectrum.is_exact:
        return spread
    eigenvalues = spectrum.eigenvalues
    nearest = np.searchsorted((eigenvalues[1:] + eigenvalues[:-1]) / 2, spread)
    return np.unique(eigenvalues[nearest])


def _constraints(kernel: GraphKernel, points: Array, n_parameters: int) -> list[dict[str, object]]:
    """Linear constraints ``g(points) >= 0``, as SLSQP takes them."""
    if points.size == 0 or not isinstance(kernel, Polynomial):
        return []
    matrix = np.zeros((points.size, n_parameters))
    matrix[:, : kernel.theta.size] = kernel.design(points)
    return [{"type": "ineq", "fun": lambda x: matrix @ x, "jac": lambda x: matrix}]


def _violated(objective: Objective, x: Array) -> Array:
    """Local minima of the filter, among the points where it must not be negative, at which it is."""
    kernel = objective.split(x)[0]
    if not isinstance(kernel, Polynomial) or kernel.constraint is None:
        return np.empty(0)
    points = lowest_points(kernel, objective.spectrum)
    response = kernel.response(points)
    padded = np.concatenate([[np.inf], response, [np.inf]])
    minima = (response <= padded[:-2]) & (response <= padded[2:])
    return points[minima & (response < -VIOLATION * np.max(np.abs(response)))]


def _stationarity_limit(objective: Objective) -> float:
    """Residual of the gradient that counts as zero: a thousandth of its standard deviation over draws of the data."""
    return float(STATIONARITY * np.sqrt(objective.task.signals.size))


def _finish(objective: Objective, x: Array, message: str, stages: tuple[Stage, ...], lift: float) -> Fit:
    certificate = certify(objective, x, lift)
    limit = _stationarity_limit(objective)
    converged = certificate.stationarity <= limit and certificate.feasibility <= VIOLATION
    if converged and x.size:
        message = f"stationary within {limit:.2g}"
    elif not converged:
        message = f"{message}; stationarity {certificate.stationarity:.2g} exceeds {limit:.2g}"
    return finish(objective, x, certificate, converged, message, stages)
