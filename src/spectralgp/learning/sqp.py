"""The default solver: sequential quadratic programming with continuation from simple filters to complex ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from spectralgp._checks import Array, as_integer
from spectralgp._progress import report
from spectralgp.graph_kernels import GraphKernel
from spectralgp.learning.fit import Fit, Outcome, Stage, certify, finish, lift_above_zero
from spectralgp.learning.grid import grid_search
from spectralgp.learning.objective import Objective
from spectralgp.learning.solver import Solver
from spectralgp.learning.task import Task

TOLERANCE = 1e-15  # of the objective per observation, where SLSQP stops
STATIONARITY = 1e-3  # residual of the gradient per root of the number of observations, where a fit counts as converged
VIOLATION = 1e-12  # of the filter, relative to its largest value
FALL = 1e-9  # of the objective per observation, which rounding and lifting a filter may cost
SILENT = 1e-6  # mean power over noise below which a filter explains nothing
MOST_ROUNDS = 30  # of adding violated constraints
MOST_RESTARTS = 3  # from a point that is feasible but not yet stationary


@dataclass(frozen=True, eq=False)
class _Solution:
    """Where a search ended, on which spectrum, and how."""

    objective: Objective
    x: Array
    detail: str
    lift: float
    is_astray: bool = False


@dataclass(frozen=True)
class Sqp(Solver):
    """Joint constrained optimisation of all hyperparameters, with continuation in the complexity of the filter.

    Each form of a filter starts from the solution of the one before it, the same function with one more parameter, so
    the objective never falls along the way and the search stays near the simpler model. What it finds is a local
    maximum; higher ones may exist further away, and with few signals those usually predict worse.

    Parameters
    ----------
    max_iterations : int, default=500
        Limit on the iterations of each constrained solve.
    """

    max_iterations: int = 500

    def __post_init__(self) -> None:
        """Check the limit."""
        as_integer(self.max_iterations, "max_iterations", 1)

    @property
    def shares_families(self) -> bool:
        """Kernels of one family are steps of one continuation."""
        return True

    def n_steps(self, kernels: Sequence[GraphKernel]) -> int:
        """One for each form on the longest path."""
        return max(len(kernel.path()) for kernel in kernels)

    def fit(self, task: Task, kernels: Sequence[GraphKernel]) -> list[Fit]:
        """Fits along one continuation."""
        path = max((kernel.path() for kernel in kernels), key=len)
        spectrum = task.spectrum_of(path[-1])
        fits: dict[int, Fit] = {}
        stages: list[Stage] = []
        x: Array | None = None
        guided: list[Array] = []
        before: GraphKernel | None = None
        for form in path:
            objective = Objective(task, form.bind(spectrum), spectrum)
            starts = _starts(objective) if before is None or x is None else _grown(objective, before, x)
            if form.guides():
                guided = self._guide(objective, guided, before)
                starts += guided
                if form in kernels:
                    starts += grid_search(objective)[:1]
            found = self._solve_refined(objective, starts)
            objective, x = found.objective, found.x
            spectrum, before = objective.spectrum, objective.split(x)[0]
            stages.append(Stage(form.label, objective.evaluate(x)[0], objective.n_evaluations))
            for index in [index for index, kernel in enumerate(kernels) if kernel == form]:
                fits[index] = _finish(found, tuple(stages))
            report(form.label)
        return [fits[index] for index in range(len(kernels))]

    def _guide(self, objective: Objective, guided: list[Array], before: GraphKernel | None) -> list[Array]:
        """Solutions of the forms that guide the present one, each from its own last solution."""
        solutions = []
        for index, guide in enumerate(objective.graph_kernel.guides()):
            other = Objective(objective.task, guide, objective.spectrum)
            starts = _starts(other)
            if before is not None:
                own = other.graph_kernel.grown_from(before.with_theta(guided[index][: before.theta.size]))
                starts = [np.concatenate([own, guided[index][before.theta.size :]])]
            solutions.append(self._best(other, starts)[0])
            objective.n_evaluations += other.n_evaluations
        return solutions

    def _solve_refined(self, objective: Objective, starts: list[Array]) -> _Solution:
        """Solution on a spectrum that is fine enough for it: each finer one starts from the solution on the last.

        Quadrature weights can be negative, and an optimiser exploits that where they are too coarse for its filter.
        Since the error is bounded, such a solution never passes. Points on the way to a solution need not pass: they
        are often harder to resolve than the answer, and cost nothing but time.
        """
        while True:
            x, detail = self._best(objective, starts)
            x, lift = lift_above_zero(objective, x)
            solution = _Solution(objective, x, detail, lift)
            value, highest = max(((objective.evaluate(start)[0], start) for start in starts), key=lambda pair: pair[0])
            if not objective.evaluate(x)[0] >= value - FALL * objective.task.signals.size:
                solution = _Solution(objective, highest, "no step from the start led up", 0.0, is_astray=True)
            settled = objective.errors(solution.x).is_tolerable and not solution.is_astray
            finer = None if settled else objective.spectrum.refined()
            if finer is None:
                return solution
            # the solution on too coarse a spectrum may lie anywhere, so what it started from is not given up
            coarse, starts = objective, [solution.x, *starts]
            objective = Objective(coarse.task, coarse.graph_kernel, finer)
            objective.n_evaluations = coarse.n_evaluations

    def _best(self, objective: Objective, starts: list[Array]) -> tuple[Array, str]:
        """Solve from every start and keep the highest objective."""
        solutions = [self._solve(objective, start) for start in starts]
        return max(solutions, key=lambda solution: solution[2])[:2]

    def _solve(self, objective: Objective, start: Array) -> tuple[Array, str, float]:
        """Constrained maximum from one start, with constraints added only where they turn out to be violated.

        A filter is lowest at a few points, so a few linear constraints stand for those at every eigenvalue.
        """
        if start.size == 0:
            return start, "every hyperparameter is fixed", objective.evaluate(start)[0]
        scale = float(objective.task.signals.size)

        def negative(x: Array) -> tuple[float, Array]:
            value, gradient = objective.evaluate(x)
            return -value / scale, -gradient / scale

        low, high = objective.bounds.T
        x, n_restarts = np.clip(start, low, high), 0
        first = objective.split(x)[0].first_positivity(objective.spectrum)
        rows = np.vstack([np.empty((0, start.size)), *(one.padded(0, start.size).rows for one in first)])
        for _ in range(MOST_ROUNDS):
            result = minimize(
                negative,
                x,
                jac=True,
                method="SLSQP",
                bounds=objective.bounds,
                constraints=_constraints(rows),
                options={"maxiter": self.max_iterations, "ftol": TOLERANCE},
            )
            x = np.clip(result.x, low, high)
            violated = _violated(objective, x)
            if len(violated):
                rows = np.vstack([rows, violated])
            elif n_restarts == MOST_RESTARTS or certify(objective, x).stationarity <= _stationarity_limit(objective):
                break
            else:
                n_restarts += 1  # the solver forgets a curvature that misled it
        return x, str(result.message), -float(result.fun)


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


def _grown(objective: Objective, before: GraphKernel, x: Array) -> list[Array]:
    """The solution of the form before, as one of this form; more where that one is of no use."""
    kernel, rest = objective.graph_kernel, x[before.theta.size :]
    starts = [np.concatenate([theta, rest]) for theta in (kernel.grown_from(before), *kernel.given_starts())]
    _, _, noise_variance = objective.split(starts[0])
    if before.mean_power(objective.spectrum) < SILENT * noise_variance:
        starts += _starts(objective)  # at zero the slope in every coefficient vanishes: no way out from there
    return starts


def _constraints(rows: Array) -> list[dict[str, object]]:
    """Linear constraints ``rows @ x >= 0``, as SLSQP takes them."""
    return [{"type": "ineq", "fun": lambda x: rows @ x, "jac": lambda x: rows}] if len(rows) else []


def _violated(objective: Objective, x: Array) -> Array:
    """Rows of the constraints at local minima of filters, among the points where they must not be negative but are."""
    rows = [np.empty((0, x.size))]
    for filtered in objective.positivity(x):
        response = filtered.rows @ x
        padded = np.concatenate([[np.inf], response, [np.inf]])
        minima = (response <= padded[:-2]) & (response <= padded[2:])
        rows.append(filtered.rows[minima & (response < -VIOLATION * np.max(np.abs(response)))])
    return np.vstack(rows)


def _stationarity_limit(objective: Objective) -> float:
    """Residual of the gradient that counts as zero: a thousandth of its standard deviation over draws of the data."""
    return float(STATIONARITY * np.sqrt(objective.task.signals.size))


def _finish(solution: _Solution, stages: tuple[Stage, ...]) -> Fit:
    objective, x, detail = solution.objective, solution.x, solution.detail
    certificate, limit = certify(objective, x, solution.lift), _stationarity_limit(objective)
    if x.size == 0:
        return finish(objective, x, certificate, Outcome.NOTHING_TO_LEARN, f"nothing to learn: {detail}", stages)
    if certificate.stationarity <= limit and certificate.feasibility <= VIOLATION:
        return finish(objective, x, certificate, Outcome.CONVERGED, f"stationary within {limit:.2g}", stages)
    detail = f"{detail}; stationarity {certificate.stationarity:.2g} exceeds {limit:.2g}"
    # on a quadrature, a search that leads nowhere was led by negative weights
    led_astray = solution.is_astray and np.isfinite(objective.errors(x).limit)
    outcome = Outcome.TOO_FEW_MOMENTS if led_astray else Outcome.NOT_STATIONARY
    return finish(objective, x, certificate, outcome, detail, stages)
