"""The paper's Algorithm 1: grid search, unconstrained ascent, then the dual problem in the filter alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.linalg import solve

from spectralgp._basics.checks import Array, as_integer, as_option, as_positive
from spectralgp._basics.progress import report
from spectralgp.kernels import GraphKernel
from spectralgp.learning.descent import Limits, descend, group_rates
from spectralgp.learning.dual import RESIDUAL, Ended, Frozen, orthonormal, powers, solve_dual
from spectralgp.learning.fit import Fit, Outcome, Stage, certify, finish, lift_above_zero
from spectralgp.learning.grid import grid_search
from spectralgp.learning.literal import solve_literally
from spectralgp.learning.objective import Objective
from spectralgp.learning.solver import Solver
from spectralgp.learning.sqp import Sqp
from spectralgp.learning.task import Task

FIRST_MULTIPLIER = 1e-2
TUNED = 50  # steps of the ascent after which its learning rates are found anew


@dataclass(frozen=True)
class Lagrangian(Solver):
    """Algorithm 1 of the paper with the initialisation of its supplement, in three stages.

    1. A grid search of the coefficients and the noise, at the supplement's starting length scale.
    2. Gradient ascent in all hyperparameters without the constraint.
    3. The dual problem in the coefficients, all else frozen: descent to convergence, then one ascent step in the
       logarithms of the multipliers, repeated.

    Kernels that are not linear in their parameters have nothing to be constrained, and are left to `Sqp`.

    Parameters
    ----------
    limits : Limits, optional
        Most iterations of each stage.
    literal : bool, default=False
        Stage 3 as the paper prints it, without the safeguards listed below. It may diverge, and it may end with a
        filter that is negative somewhere, which is returned as it is; the outcome says so.
    multiplier : float or "random", default=0.01
        First value of every multiplier; or, if random, their logarithms are normal about that of 0.01, with a standard
        deviation of one.
    dual_rate : float, default=1.0
        Learning rate of the logarithms of the multipliers: fixed if literal, else the first one.
    random_state : int, default=0
        Seed of random multipliers.

    Notes
    -----
    Where the three stages differ from what is printed:

    - Stage 1 tries both grids of the supplement, each up to a common sign, and thins one of more than 10,000 filters.
    - Steps of stages 2 and 3 are in coefficients of polynomials that are orthonormal on the spectrum, not of powers.
    - Stage 2 steps in the logarithms of the input kernel's parameters and of the noise, within their bounds, until no
      derivative exceeds 1e-3.
    - Learning rates follow the supplement's rule: the largest power of ten with which five steps all improve, none of
      them longer than five. In stage 2 there is one for the filter, one for the input kernel and one for the noise,
      found anew every 50 steps; in stage 3 one for the filter, found once, on the likelihood at the start. A step that
      does not improve is not taken, and divides the rates by ten until they are found anew or the next descent begins.
    - After stage 2 the signs of all coefficients are changed if the filter's mean over the eigenvalues is negative,
      which leaves the likelihood as it is.
    - Stage 3 starts from a feasible filter: the unconstrained solution plus the constant that makes its least value
      zero, if that is negative. From an infeasible one the multipliers tend to grow without bound.
    - A descent of stage 3 ends where no derivative exceeds 1e-4.
    - A step in the logarithm of a multiplier is cut at 2 and -2. Its rate is divided by ten when the dual falls, and
      multiplied by ten after ten steps in which it does not.
    - Stage 3 ends where the residual of the conditions of optimality is at most 5e-4 and the filter nowhere below
      -1e-9 of its largest value. It gives up where the residual does not halve within 200 steps.
    - What is returned is the best feasible filter met in stage 3, lifted by a constant where rounding left it below
      zero. It counts as converged if its residual is at most 1e-3 and stage 2 converged, or had nothing to freeze.

    With `literal` stages 1 and 2 are the same, the sign with them, and stage 3 is lines 1 to 5 of the printed box:

    - It starts from the unconstrained solution, even where that is negative.
    - It descends in the coefficients of powers of the eigenvalues over the largest, at one rate that is never changed:
      by the supplement's rule, on the Lagrangian at the start. A descent ends with a step that changes the Lagrangian
      by less than 0.001, the tolerance of the authors' released program, or at its limit.
    - One step of `dual_rate` in the logarithms of the multipliers follows, and so on, until the Lagrangian changes by
      less than 0.001 from the end of one descent to that of the next.
    - What is added is a stop where the filter grows to a thousand times its size at the start, with the coefficients
      before that, and a verdict: that is divergence, and so is a Lagrangian that stands still where the filter is so
      large that it swamps more than a tenth of the observations.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Graph, Lagrangian, Polynomial, Task, learn
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

    limits: Limits = field(default_factory=Limits)
    literal: bool = False
    multiplier: float | Literal["random"] = FIRST_MULTIPLIER
    dual_rate: float = 1.0
    random_state: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        if isinstance(self.multiplier, str):
            as_option(self.multiplier, "multiplier", ("random",))
        else:
            as_positive(self.multiplier, "multiplier")
        as_positive(self.dual_rate, "dual_rate")
        as_integer(self.random_state, "random_state", 0)

    def n_steps(self, kernels: Sequence[GraphKernel]) -> int:
        (kernel,) = kernels
        if kernel.linear_design(np.zeros(1)) is None:
            return self._fallback.n_steps(kernels)
        return 2 if kernel.guides() else 3

    @property
    def only_papers_model(self) -> bool:
        return True

    @property
    def _fallback(self) -> Sqp:
        return Sqp(self.limits.descent)

    def fit(self, task: Task, kernels: Sequence[GraphKernel], like: Sequence[Fit] | None = None) -> list[Fit]:
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
        x, stopped = _ascend(objective, x, self.limits.ascent)
        if np.mean(kernel.with_theta(x[: objective.n_graph]).response(spectrum.eigenvalues)) < 0:
            x[: objective.n_graph] *= -1  # the same covariance, with a filter that is positive on average
        stage("unconstrained ascent", x)
        if not objective.positivity(x):
            outcome = Outcome.STEP_LIMIT if stopped else Outcome.CONVERGED
            detail = f"the unconstrained ascent {stopped or 'converged'}"
            return finish(objective, x, certify(objective, x), outcome, detail, tuple(stages))
        ended = self._solve(objective, x)
        stage("dual problem", ended.x)
        outcome, detail = ended.outcome, ended.detail
        frozen = _frozen(objective)
        if stopped and frozen:
            outcome = Outcome.STEP_LIMIT if outcome is Outcome.CONVERGED else outcome
            detail = f"the unconstrained ascent {stopped}, so {frozen} not at its optimum; {detail}"
        return finish(objective, ended.x, ended.certificate, outcome, detail, tuple(stages), rests_on=x)

    def _solve(self, objective: Objective, x: Array) -> Ended:
        """Stage 3, from the unconstrained solution."""
        kernel, spectrum = objective.graph_kernel, objective.spectrum
        if self.literal:
            problem = Frozen(objective, powers(kernel), x)
            return solve_literally(problem, self._first_logs(problem), self.dual_rate, self.limits)
        problem = Frozen(objective, orthonormal(kernel, spectrum), lift_above_zero(objective, x)[0])
        return solve_dual(problem, self._first_logs(problem), self.dual_rate, self.limits)

    def _first_logs(self, problem: Frozen) -> Array:
        """Logarithms of the first multipliers, one for each constraint."""
        size = problem.points.size
        if self.multiplier == "random":
            return np.log(FIRST_MULTIPLIER) + np.random.default_rng(self.random_state).standard_normal(size)
        return np.full(size, np.log(self.multiplier))


def _frozen(objective: Objective) -> str:
    """What the dual problem does not learn, with its verb; nothing if it learns all there is."""
    parts = ["the input kernel"] * bool(objective.input_theta.size) + ["the noise"] * objective.learns_noise
    return f"{' and '.join(parts)} {'are' if len(parts) > 1 else 'is'}" if parts else ""


def _ascend(objective: Objective, start: Array, limit: int) -> tuple[Array, str]:
    """Stage 2: ascent in all hyperparameters, with a learning rate each for filter, input kernel and noise.

    Returns the last point, and how the ascent stopped before it converged; nothing if it converged.
    """
    change = np.eye(start.size)
    change[: objective.n_graph, : objective.n_graph] = orthonormal(objective.graph_kernel, objective.spectrum)
    bounds = (objective.bounds[:, 0], objective.bounds[:, 1])  # the coefficients have none, so change keeps them

    def negative(z: Array) -> tuple[float, Array]:
        value, gradient = objective.evaluate(change @ z)
        return -value, -gradient @ change

    edges = [0, objective.n_graph, objective.n_graph + objective.input_theta.size, start.size]
    groups = [np.arange(first, last) for first, last in itertools.pairwise(edges) if last > first]
    z, stopped = solve(change, start), f"stopped after {limit} steps"
    for n_steps in range(0, limit, TUNED):
        # curvatures change by orders of magnitude on the way, and the noise's unlike the filter's
        rates = group_rates(negative, z, groups, bounds)
        before, few = z, min(TUNED, limit - n_steps)
        z, is_settled = descend(negative, z, rates, limit=few, tolerance=RESIDUAL, bounds=bounds)
        if is_settled:
            return change @ z, ""
        if np.array_equal(z, before):
            stopped = f"stopped after {n_steps} steps, where no learning rate climbs"
            break
    return change @ z, stopped
