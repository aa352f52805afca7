"""Algorithm 1 as its box is printed: plain descent and ascent at fixed rates, with nothing to keep them on course."""

from __future__ import annotations

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.learning.descent import Limits, ValueAndGradient, learning_rate
from spectralgp.learning.dual import FEASIBLE, Ended, Frozen
from spectralgp.learning.fit import Outcome

TOLERANCE = 1e-3  # change of the Lagrangian that ends either loop, that of the authors' released program
FURTHEST = 1e3  # size of the filter, relative to that at the start, from where steps no longer lead back
SWAMPED = 0.1  # share of the observations that a filter may swamp where the Lagrangian stands still


def solve_literally(problem: Frozen, logs: Array, dual_rate: float, limits: Limits) -> Ended:
    """Lines 1 to 5, from the start of a problem in powers and from the logarithms of the multipliers.

    Line 2 descends until a step changes the Lagrangian by less than the tolerance, at the largest power of ten that
    descends consistently at the start. Line 3 is one step of `dual_rate`. Line 4 compares the Lagrangian at the ends
    of two descents. Line 5 returns the coefficients as they are.

    For large filters the Lagrangian is about ``N M log |g| - multipliers^T g``, which has no lower bound: line 2 finds
    a local minimum, and there is none where multipliers are large. Then the filter grows until the multipliers vanish,
    and the Lagrangian may stand still far from any solution. That is told as divergence.
    """
    beta, multipliers, value = problem.start, np.exp(logs), np.nan
    rate = learning_rate(problem.lagrangian(multipliers), beta, np.arange(beta.size))
    size = float(np.max(np.abs(problem.rows @ beta))) or 1.0
    within = problem.rows / (FURTHEST * size)
    outcome, ending = Outcome.STEP_LIMIT, f"the Lagrangian did not converge in {limits.dual} dual steps"
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows has diverged
        for n_steps in range(1, limits.dual + 1):
            function, previous = problem.lagrangian(np.exp(logs)), value
            beta, value, is_settled = _descend_plainly(function, beta, rate, limits.descent, within)
            if np.isnan(value):
                outcome, ending = Outcome.DIVERGED, f"the filter diverged in dual step {n_steps}"
                break
            multipliers = np.exp(logs)
            if is_settled and abs(value - previous) < TOLERANCE:
                outcome, ending = Outcome.CONVERGED, f"the Lagrangian converged in {n_steps} dual steps"
                break
            logs = logs - dual_rate * multipliers * (problem.rows @ beta)  # the gradient in m is -exp(m) g
    certificate = problem.certificate(beta, multipliers)
    detail = f"at a learning rate of {rate:.0e} {ending}"
    # the derivative in the logarithm of the filter's size: zero at a solution, N M where a filter swamps the signals
    gain = float(beta @ problem.negative(beta)[1])
    if outcome is Outcome.CONVERGED and gain > SWAMPED * problem.data.n_observations:
        outcome, growth = Outcome.DIVERGED, float(np.max(np.abs(problem.rows @ beta))) / size
        detail += (
            f", but to no solution: the filter has {growth:.2g} times its size at the start, and shrinking it would "
            f"gain {gain:.2g} nats for a unit of its logarithm"
        )
    if certificate.feasibility > FEASIBLE:
        outcome = Outcome.NEGATIVE_FILTER if outcome is Outcome.CONVERGED else outcome
        detail += f", and the filter falls to {-certificate.feasibility:.2g} of its largest magnitude"
    return Ended(problem.whole(beta), certificate, outcome, detail)


def _descend_plainly(
    function: ValueAndGradient, start: Array, rate: float, limit: int, within: Array
) -> tuple[Array, float, bool]:
    """Descent at one rate that nothing changes: the last point, its value, and whether it settled.

    The value is nan if the next point would not be finite, or not ``|within @ x| <= 1``.
    """
    x, (value, gradient) = start, function(start)
    for _ in range(limit):
        proposal = x - rate * gradient
        if not np.max(np.abs(within @ proposal)) <= 1:
            return x, np.nan, False
        new_value, gradient = function(proposal)
        x, change, value = proposal, abs(new_value - value), new_value
        if change < TOLERANCE:
            return x, value, True
    return x, value, False
