"""What learning returns: the learnt model, with the evidence that it is one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from spectralgp._checks import Array
from spectralgp.graph_kernels import Polynomial
from spectralgp.learning.accuracy import likelihood_errors, require_moments, truncation_limit
from spectralgp.learning.objective import Objective
from spectralgp.model import GraphGP
from spectralgp.spectrum import AnySpectrum


@dataclass(frozen=True)
class Certificate:
    """How well a fit satisfies the conditions of Karush, Kuhn and Tucker for a constrained maximum.

    All residuals are of the problem that was solved: in nats for a unit change of a parameter as the optimiser sees it.

    Parameters
    ----------
    stationarity : float
        Largest entry of the gradient of the Lagrangian.
    feasibility : float
        How far the filter falls below zero where it must not, relative to its largest value.
    complementarity : float
        Largest product of a multiplier and its constraint's slack.
    lift : float
        Constant added to the filter after the solve to remove negative rounding, relative to its largest value.
    active : tuple of str
        Constraints that hold with equality and parameters at a bound.
    """

    stationarity: float
    feasibility: float
    complementarity: float
    lift: float
    active: tuple[str, ...]

    @property
    def residual(self) -> float:
        """The largest of the three residuals."""
        return max(self.stationarity, self.feasibility, self.complementarity)


@dataclass(frozen=True)
class Stage:
    """One step of a solver: what it did, where it got, and at what cost."""

    name: str
    log_posterior: float
    n_evaluations: int


@dataclass(frozen=True, eq=False)
class Fit:
    """A learnt model.

    Parameters
    ----------
    model : GraphGP
        The prior with the learnt hyperparameters.
    log_likelihood : float
        Log marginal likelihood, a total in nats.
    log_posterior : float
        The same plus the log prior of the hyperparameters (equal to it without a prior).
    certificate : Certificate
        Residuals of the conditions of optimality.
    converged : bool
        Whether the solver met its tolerances.
    message : str
        What the solver says about that.
    n_evaluations : int
        Evaluations of the likelihood with its gradient.
    stages : tuple of Stage
        The solver's way, in order: degrees of the continuation, or stages of Algorithm 1.
    truncation_error : float
        Bound on the error of the log likelihood by truncation, in nats; zero on an exact spectrum.
    probe_error : float
        Standard error of the log likelihood by the random probes, in nats; zero on an exact spectrum.
    """

    model: GraphGP
    log_likelihood: float
    log_posterior: float
    certificate: Certificate
    converged: bool
    message: str
    n_evaluations: int
    stages: tuple[Stage, ...]
    truncation_error: float = 0.0
    probe_error: float = 0.0


def lowest_points(kernel: Polynomial, spectrum: AnySpectrum) -> Array:
    """Points where a polynomial is asked to be non-negative and could be lowest.

    Where the eigenvalues are not known one by one, "eigenvalues" asks for the whole interval.
    """
    if kernel.constraint is None:
        return np.empty(0)
    return kernel.extrema() if kernel.constraint == "interval" or not spectrum.is_exact else spectrum.eigenvalues


def lift_above_zero(objective: Objective, x: Array) -> tuple[Array, float]:
    """Raise a filter that a solver left a hair below zero, so that it is non-negative without exception.

    Returns the new point, and the constant that was added relative to the filter's largest value.
    """
    kernel = objective.split(x)[0]
    if not isinstance(kernel, Polynomial) or kernel.constraint is None:
        return x, 0.0
    response = kernel.response(lowest_points(kernel, objective.spectrum))
    peak = float(np.max(np.abs(response)))
    shortfall = -float(np.min(response))
    if shortfall <= 0 or peak == 0:
        return x, 0.0
    lift = shortfall + 1e-14 * peak
    lifted = x.copy()
    lifted[0] += lift  # the first Chebyshev polynomial is the constant
    return lifted, lift / peak


def certify(objective: Objective, x: Array, lift: float = 0.0) -> Certificate:
    """Certificate of the joint problem in all hyperparameters at ``x``; multipliers by non-negative least squares."""
    _, gradient = objective.evaluate(x)
    kernel = objective.split(x)[0]
    rows, names, slacks = _bound_constraints(objective, x)
    feasibility = 0.0
    if isinstance(kernel, Polynomial) and kernel.constraint is not None:
        points = lowest_points(kernel, objective.spectrum)
        response = kernel.response(points)
        peak = float(np.max(np.abs(response), initial=0.0)) or 1.0
        feasibility = max(0.0, -float(np.min(response)) / peak)
        touching = response <= 1e-6 * peak
        for point, row, slack in zip(
            points[touching], kernel.design(points[touching]), response[touching], strict=True
        ):
            rows.append(np.concatenate([row, np.zeros(x.size - row.size)]))
            names.append(f"filter at {point:.4g}")
            slacks.append(float(slack))
    if not rows:
        return Certificate(float(np.max(np.abs(gradient), initial=0.0)), feasibility, 0.0, lift, ())
    # at a maximum the gradient points out of the feasible set: gradient + rows^T multipliers = 0, multipliers >= 0
    multipliers, _ = nnls(np.array(rows).T, -gradient)
    residual = gradient + np.array(rows).T @ multipliers
    complementarity = float(np.max(multipliers * np.abs(slacks)))
    return Certificate(float(np.max(np.abs(residual))), feasibility, complementarity, lift, tuple(names))


def _bound_constraints(objective: Objective, x: Array) -> tuple[list[Array], list[str], list[float]]:
    """Bounds that hold with equality, as rows of inequality constraints ``row @ x >= const``."""
    rows, names, slacks = [], [], []
    for index, (low, high) in enumerate(objective.bounds):
        for bound, sign in ((low, 1.0), (high, -1.0)):
            if np.isfinite(bound) and abs(x[index] - bound) <= 1e-9 * max(1.0, abs(bound)):
                rows.append(sign * np.eye(x.size)[index])
                side = "lower" if sign > 0 else "upper"
                names.append(f"{objective.parameter_names[index]} at its {side} bound")
                slacks.append(0.0)
    return rows, names, slacks


def finish(
    objective: Objective,
    x: Array,
    certificate: Certificate,
    converged: bool,
    message: str,
    stages: tuple[Stage, ...],
) -> Fit:
    """The fit at ``x``, as every solver ends, with the errors of the spectrum it was made on.

    Raises
    ------
    TooFewMoments
        If the spectrum is too coarse for the answer and may be refined.
    """
    require_moments(objective, x)
    truncation, probes = likelihood_errors(objective, x)
    limit = truncation_limit(objective)
    if truncation > limit:
        converged = False
        message = f"{message}; truncation error of {truncation:.2g} nats exceeds {limit:.2g}: raise max_moments"
    return Fit(
        model=objective.model(x),
        log_likelihood=objective.evidence(x).log_likelihood,
        log_posterior=objective.evaluate(x)[0],
        certificate=certificate,
        converged=bool(converged),
        message=message,
        n_evaluations=sum(stage.n_evaluations for stage in stages),
        stages=stages,
        truncation_error=truncation,
        probe_error=probes,
    )
