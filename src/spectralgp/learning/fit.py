"""Solvers, and their result: a learnt model with a certificate of optimality."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.optimize import nnls

from spectralgp._basics.checks import Array
from spectralgp._basics.saved import Count, Number
from spectralgp._basics.tables import as_html
from spectralgp.learning.objective import Objective, Task
from spectralgp.model.fields import GraphGP
from spectralgp.model.kernels import GraphKernel
from spectralgp.model.spectra import LikelihoodErrors

if TYPE_CHECKING:
    from spectralgp.learning.draws import HyperparameterPosterior

MAX_ACTIVE = 1e-6  # response, as a share of a filter's largest, at which a constraint counts as active
MIN_RESPONSE = 1e-15  # of a filter's largest value: below this, another order of summation may find it negative
MAX_DISTANCE_AT_BOUND = 1e-9  # relative distance from a bound that counts as being at it


class Outcome(Enum):
    """Outcome of learning."""

    CONVERGED = auto()
    NOTHING_TO_LEARN = auto()  # every hyperparameter is fixed
    NOT_STATIONARY = auto()
    TOO_FEW_MOMENTS = auto()
    DIVERGED = auto()
    STEP_LIMIT = auto()
    NEGATIVE_FILTER = auto()


REMEDIES = {
    Outcome.NOT_STATIONARY: "Raise max_iterations",
    Outcome.TOO_FEW_MOMENTS: "Raise max_moments in spectrum=Chebyshev(...)",
    Outcome.DIVERGED: "Use solver='sqp'",
    Outcome.STEP_LIMIT: "Raise max_iterations or the limits of the solver, or use solver='sqp'",
    Outcome.NEGATIVE_FILTER: "Use solver='sqp', which keeps the filter non-negative",
}


@dataclass(frozen=True)
class Certificate:
    """Residuals of the conditions of Karush, Kuhn and Tucker for a constrained maximum.

    The conditions hold at every local maximum; ``Sqp(n_restarts=...)`` searches for higher ones. Residuals are in nats
    per unit change of a parameter of the optimiser.
    """

    stationarity: Number  # largest entry of the gradient of the Lagrangian
    feasibility: Number  # how far a filter falls below zero where it must not, relative to its largest value
    complementarity: Number  # largest product of a multiplier and its constraint's slack
    lift: Number  # constant added to a filter afterwards against negative rounding, relative to its largest value
    active: tuple[str, ...]  # constraints that hold with equality and parameters at a bound
    multipliers: tuple[Number, ...] = ()  # one for each of these: how many nats a unit of slack would be worth

    @property
    def residual(self) -> float:
        """Largest of the three residuals."""
        return max(self.stationarity, self.feasibility, self.complementarity)


@dataclass(frozen=True)
class Stage:
    """One step of a solver: its name, the log posterior reached, and its cost."""

    name: str
    log_posterior: Number
    n_evaluations: Count


class SearchReport:
    """Outcome and stages of a search."""

    outcome: Outcome
    stages: tuple[Stage, ...]

    @property
    def converged(self) -> bool:
        """Whether the solver met its tolerances."""
        return self.outcome in (Outcome.CONVERGED, Outcome.NOTHING_TO_LEARN)

    @property
    def n_evaluations(self) -> int:
        """Evaluations of the likelihood with its gradient."""
        return sum(stage.n_evaluations for stage in self.stages)


@dataclass(frozen=True, eq=False)
class Fit(SearchReport):
    """A learnt model.

    Parameters
    ----------
    model : GraphGP
        The prior with the learnt hyperparameters.
    log_likelihood, log_posterior : float
        Log marginal likelihood, a total in nats, without and with the log prior of the hyperparameters.
    certificate : Certificate
        Residuals of the conditions of optimality.
    outcome, detail : Outcome, str
        Outcome of the search, and its numbers.
    stages : tuple of Stage
        The solver's steps, in order; those of `Sqp` are simpler filters on the way, and restarts.
    errors : Errors
        Bounds of the numerical errors of the likelihood.
    method : str
        Treatment of missing values, and the reason.
    restarts : tuple of float
        Log posterior reached from each random start, in order; minus infinity if it led to no model. With missing
        values it is the expected one, as in `stages`.
    """

    model: GraphGP
    log_likelihood: Number
    log_posterior: Number
    certificate: Certificate
    outcome: Outcome
    detail: str
    stages: tuple[Stage, ...]
    errors: LikelihoodErrors = field(default_factory=LikelihoodErrors)
    method: str = "every value was observed"
    restarts: tuple[Number, ...] = ()

    @property
    def message(self) -> str:
        """Outcome in words, with a remedy unless the solver converged."""
        return self.detail if self.converged else f"{self.detail}. {REMEDIES[self.outcome]}"

    @property
    def is_noise_at_bound(self) -> bool:
        """Whether the noise is at its lower bound, and not mostly the `floor` of an older file's residual."""
        is_lowest = "noise_variance at its lower bound" in self.certificate.active
        return is_lowest and self.model.graph_kernel.floor < 0.5 * self.model.noise_variance

    def shifted(self, nats: float) -> Fit:
        """The fit with log densities of the signals in other units."""
        return replace(
            self,
            log_likelihood=self.log_likelihood + nats,
            log_posterior=self.log_posterior + nats,
            stages=tuple(replace(stage, log_posterior=stage.log_posterior + nats) for stage in self.stages),
            restarts=tuple(reached + nats for reached in self.restarts),
        )

    @property
    def truncation_error(self) -> float:
        """Bound on the error of the log likelihood by truncation, in nats; zero on an exact spectrum."""
        return self.errors.truncation

    @property
    def probe_error(self) -> float:
        """Standard error of the log likelihood by the random probes, in nats; zero on an exact spectrum."""
        return self.errors.probes

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        certificate = self.certificate
        return as_html(
            "Fit",
            {
                "graph kernel": self.model.graph_kernel.label,
                "converged": "yes" if self.converged else "no",
                "how it ended": self.message,
                "log likelihood": f"{self.log_likelihood:.2f}",
                "noise variance": f"{self.model.noise_variance:.4g}",
                "stationarity": f"{certificate.stationarity:.2g}",
                "active constraints": ", ".join(certificate.active) or "none",
                "stages": "; ".join(f"{stage.name} ({stage.log_posterior:.2f})" for stage in self.stages),
                "missing values": self.method,
            },
        )


class Solver(ABC):
    """A way to learn hyperparameters; reproduction/algorithm_1.py, outside the package, is an example."""

    plain_models_only: ClassVar[bool] = False  # learns models without residuals or shrinkage, and no choice of models
    shares_paths: ClassVar[bool] = False  # learns kernels on one path together
    max_iterations: int = 500  # of a fit; limits the steps of expectation-maximisation too
    tolerance_nats: float | None = None  # of the maximum; None as far as rounding allows

    @abstractmethod
    def fit(self, task: Task, kernels: Sequence[GraphKernel], warm_starts: Sequence[Fit] | None = None) -> list[Fit]:
        """Fit kernels on one path, optionally starting from their fits to similar signals in the same units."""

    def coarse(self, n_signals: int = 0) -> Solver:
        """Return a solver for fits that are only compared, with an accuracy that suffices for `n_signals`."""
        return self

    def without_restarts(self) -> Solver:
        """Return the solver without random restarts."""
        return self


@dataclass(frozen=True, eq=False)
class SearchResult:
    """End point of a search, and its outcome."""

    objective: Objective
    x: Array
    value: float  # of the objective at x
    outcome: Outcome
    detail: str
    lift: float = 0.0  # as in the certificate
    certificate: Certificate | None = None

    def fit(self, stages: tuple[Stage, ...], rests_on: Array | None = None) -> Fit:
        """Return the fit, with the larger errors of its point and of the point that it rests on."""
        objective, outcome, detail = self.objective, self.outcome, self.detail
        certificate = certify(objective, self.x, self.lift) if self.certificate is None else self.certificate
        model, evidence = objective.model(self.x), objective.evidence(self.x)
        errors, values = evidence.errors, (evidence.log_likelihood, objective.evaluate(self.x)[0])
        if rests_on is not None:
            errors = max(errors, objective.evidence(rests_on).errors, key=attrgetter("truncation"))
        model.rows(objective.task.inputs)  # which refuses a covariance that is not positive semi-definite
        if not errors.is_tolerable:
            outcome = Outcome.TOO_FEW_MOMENTS
            detail = f"truncation error of {errors.truncation:.2g} nats exceeds {errors.limit:.2g}"
        return Fit(model, *values, certificate, outcome, detail, stages, errors)


def active_constraints(
    objective: Objective | HyperparameterPosterior, x: Array
) -> tuple[Array, Array, tuple[str, ...], float]:
    """Active bounds and constraints on filters at ``x``: rows, slacks, names, and the feasibility."""
    rows, slacks, names = [], [], []
    for index, (low, high) in enumerate(objective.bounds):
        for bound, sign, side in ((low, 1.0, "lower"), (high, -1.0, "upper")):
            if np.isfinite(bound) and abs(x[index] - bound) <= MAX_DISTANCE_AT_BOUND * max(1.0, abs(bound)):
                rows.append(sign * np.eye(x.size)[index])
                slacks.append(0.0)
                names.append(f"{objective.parameter_names[index]} at its {side} bound")
    feasibility = 0.0
    for filtered in objective.positivity(x):
        response = filtered.response(x)
        peak = float(np.max(np.abs(response), initial=0.0)) or 1.0
        feasibility = max(feasibility, -float(np.min(response)) / peak)
        touching = response <= MAX_ACTIVE * peak
        rows += list(filtered.rows_of(touching, x.size))
        slacks += response[touching].tolist()
        names += [f"filter at {point:.4g}" for point in filtered.points[touching]]
    return np.vstack([np.empty((0, x.size)), *rows]), np.array(slacks), tuple(names), feasibility


def certify(objective: Objective | HyperparameterPosterior, x: Array, lift: float = 0.0) -> Certificate:
    """Certificate of the joint problem in all hyperparameters at ``x``; multipliers by non-negative least squares."""
    _, gradient = objective.evaluate(x)
    rows, slacks, names, feasibility = active_constraints(objective, x)
    if not names:
        return Certificate(float(np.max(np.abs(gradient), initial=0.0)), feasibility, 0.0, lift, ())
    # at a maximum the gradient points out of the feasible set: gradient + rows^T multipliers = 0, multipliers >= 0
    multipliers, _ = nnls(rows.T, -gradient)
    stationarity = float(np.max(np.abs(gradient + rows.T @ multipliers)))
    complementarity = float(np.max(multipliers * np.abs(slacks)))
    return Certificate(stationarity, feasibility, complementarity, lift, names, tuple(multipliers.tolist()))


def lift_above_zero(objective: Objective, x: Array) -> tuple[Array, float]:
    """Raise filters that are negative by rounding; return the new point, and the lift as in a certificate."""
    lifted, most = x, 0.0
    for filtered in objective.positivity(x):
        response = filtered.response(x)
        peak = float(np.max(np.abs(response)))
        shortfall = MIN_RESPONSE * peak - float(np.min(response))
        if shortfall <= 0 or peak == 0:
            continue
        lift = shortfall + 1e-14 * peak
        lifted = filtered.raised(lifted, lift)
        most = max(most, lift / peak)
    return lifted, most
