"""Uncertainty of the hyperparameters: draws from their posterior."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated

import numpy as np
from scipy.linalg import null_space
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from spectralgp._basics.checks import Array
from spectralgp._basics.saved import Count, axes, ge
from spectralgp.learning.fit import Fit, active_constraints, certify
from spectralgp.learning.missing import LatentExpectation, expectation_of, objective_of
from spectralgp.learning.objective import MIN_PRECISION, Objective, Task, noise_log_prior
from spectralgp.model.fields import GraphGP, Posterior
from spectralgp.model.fields.field import SharedLevels
from spectralgp.model.fields.posterior import posterior_of
from spectralgp.model.fields.sites import MOST_EXACT_SITES, STEP, WIDE_DEVIATION
from spectralgp.model.likelihoods import log_bounds, log_parameters, open_parameters, with_log_parameters
from spectralgp.model.spectra import mean_over_nodes

DIFFERENCE = 1e-4  # in units of a parameter, of the gradients that give the curvature
LATENT_DIFFERENCE = 1e-2  # the same where gradients are those of sites, found to a tolerance
MAX_TRIES = 50  # for each draw that violates nothing
VALUES_PER_PARAMETER = 16  # observed values, below which predictions are averaged over the hyperparameters: (19e)
AVERAGED, PROPOSED, PROPOSED_LATENT = 16, 256, 96  # draws of such an average, and proposals that they are chosen from
WIDTHS = (1.0, 1.5)  # of the proposals, in those of Laplace's approximation
DEVIATION_RATE = 3.0  # of the exponential prior of a latent deviation: it is above one with a probability of 5%


@dataclass(frozen=True, eq=False)
class Draws:
    """Models with drawn hyperparameters; the last `n_stand_ins` of them are the fit itself, for want of a draw."""

    models: Annotated[tuple[GraphGP, ...], ge(1)]
    n_stand_ins: Count = 0
    # posterior probabilities that add up to one; equal if not given
    weights: Annotated[Array, axes("_models"), ge(0)] | None = None
    # of the nodes, one row per model: above the centre of the signals, in their spread
    levels: Annotated[Array, axes("_models", "n_nodes")] | None = None

    @property
    def shares(self) -> Array:
        """Weights of the models, which add up to one."""
        return np.full(len(self.models), 1 / len(self.models)) if self.weights is None else self.weights


def hyperparameter_draws(task: Task, fit: Fit, n_draws: int, random_state: np.random.Generator) -> Draws:
    """Models with hyperparameters drawn from Laplace's approximation to their posterior.

    Where no constraint is active that is a normal distribution about the fit, with the curvature of the log posterior.
    At an active constraint or bound the log posterior falls linearly into the allowed region, with the multiplier as
    its slope: the slack is drawn from that exponential, cut off further by the curvature along it, and everything else
    from the normal distribution on the face where the constraint holds. Draws that violate another are drawn again.
    """
    posterior = HyperparameterPosterior(task, fit.model)
    points = [x for x, *_ in _Laplace(posterior).proposals(n_draws, random_state)]
    n_stand_ins = n_draws - len(points)
    return Draws((*map(posterior.model, points), *[fit.model] * n_stand_ins), n_stand_ins)


def has_few_values(task: Task, fit: Fit) -> bool:
    """Whether hyperparameters are too uncertain to be taken as known: few observed values for each parameter.

    Never without a prior, which asks for maximum likelihood, nor on a large graph or of many entries.
    """
    own = task.observed_by
    is_small = task.spectrum.has_node_covariances and task.signals.observed.size <= MOST_EXACT_SITES
    if task.prior is None or not is_small:
        return False
    parameters: list[Sized] = [fit.model.graph_kernel.theta, fit.model.input_kernel.theta, task.centred_at]
    parameters += [] if own is None else [open_parameters(own.likelihood), own.columns]
    return task.signals.size < VALUES_PER_PARAMETER * (sum(map(len, parameters)) + (task.known_noise is None))


def averaging_draws(task: Task, fit: Fit, random_state: np.random.Generator) -> Draws:
    """Models with hyperparameters drawn from their posterior itself, by importance resampling: equation (19e).

    Proposals are from Laplace's approximation, at its own width and a larger one. Weights are limited to the root of
    their number times their mean, so that no proposal stands for all. Resampling is systematic, in the order of the
    variances that proposals predict, so that small changes of the data lead to small changes of the average.
    """
    posterior = HyperparameterPosterior(task, fit.model)
    laplace, n_proposals = _Laplace(posterior), PROPOSED if task.observed_by is None else PROPOSED_LATENT
    proposals = laplace.proposals(n_proposals, random_state, WIDTHS)
    if not proposals:
        return Draws((fit.model,))
    proposals.sort(key=lambda proposal: posterior.variance(proposal[0]))
    logs = np.array([posterior.log_density(x) - laplace.log_density(WIDTHS, *own) for x, *own in proposals])
    logs = np.minimum(logs, logsumexp(logs) - 0.5 * np.log(logs.size))
    shares = np.cumsum(np.exp(logs - logsumexp(logs)))
    quantiles = (np.arange(AVERAGED) + random_state.random()) / AVERAGED
    chosen = [proposals[place][0] for place in np.searchsorted(shares[:-1], quantiles)]
    return Draws(tuple(map(posterior.model, chosen)), levels=posterior.levels(chosen, random_state))


class HyperparameterPosterior:
    """Log posterior of the hyperparameters, with the logarithms of a likelihood's own parameters after them."""

    def __init__(self, task: Task, fitted: GraphGP) -> None:
        self.task, self.fitted = task, fitted
        self.expectation = None if task.is_complete else expectation_of(task)
        self.names, own, bounds = tuple[str, ...](), np.empty(0), np.empty((0, 2))
        if isinstance(self.expectation, LatentExpectation):
            self.names, likelihood = self.expectation.names, fitted.likelihood or self.expectation.likelihood
            self.expectation.is_far, self.expectation.effort = False, STEP
            own = log_parameters(likelihood, self.names)
            bounds = log_bounds(likelihood, self.names, self.expectation.unit)
        self.objective = objective_of(task, fitted, self.expectation)
        self.positivity = self.objective.positivity  # constraints ``filter >= 0``
        self.n_shared, self.bounds = len(self.objective.bounds), np.vstack([self.objective.bounds, bounds])
        self.units = np.append(self.objective.units, np.ones(len(bounds)))
        self.difference = DIFFERENCE if self.expectation is None else LATENT_DIFFERENCE
        self.parameter_names = *self.objective.parameter_names, *self.names
        self.mode = np.append(self.objective.point(fitted), own)  # the point of the fitted model

    def model(self, x: Array) -> GraphGP:
        """The model at a point."""
        model, likelihood = self.objective.model(x[: self.n_shared]), self.fitted.likelihood
        own = None if likelihood is None else with_log_parameters(likelihood, self.names, x[self.n_shared :])
        return replace(model, mean_amplitude=self.fitted.mean_amplitude, likelihood=own)

    def evaluate(self, x: Array) -> tuple[float, Array]:
        """Log posterior and its gradient; of signals that are not known, values are not to be compared."""
        expectation, shared = self.expectation, x[: self.n_shared]
        if not isinstance(expectation, LatentExpectation) or not self.names:
            return self.objective.evaluate(x)
        task = expectation.completed(self.model(x))
        evidence = Objective(task, self.objective.graph_kernel, self.objective.spectrum).evidence(shared)
        prior, slope = self.objective.log_prior(shared)
        gradient = np.concatenate([evidence.gradient + slope, expectation.own_slopes[0]])
        return evidence.log_likelihood + prior, gradient

    def log_density(self, x: Array) -> float:
        """Log posterior density: evidence, prior and the measure of (19e)."""
        if isinstance(self.expectation, LatentExpectation):
            total = self.expectation.log_likelihood(self.model(x))[0]
        else:
            posterior, levels = self._conditioned(x)
            total = posterior.log_evidence() + levels.log_factor
        return total + self.objective.log_prior(x[: self.n_shared])[0] + self._log_measure(x)

    def _conditioned(self, x: Array) -> tuple[Posterior, SharedLevels]:
        """Posterior at a point, and what the signals say of their own centre there."""
        task, units = self.task, self.task.signals.units
        posterior = posterior_of(self.model(x), task.inputs, task.signals, task.carried)
        columns = task.centred_at[:, None] * np.broadcast_to(units.spread / units.divisor, task.signals.shape)
        return posterior, SharedLevels(
            posterior.observations(), columns, np.full(len(columns), WIDE_DEVIATION**2 * task.variance)
        )

    def levels(self, points: list[Array], random_state: np.random.Generator) -> Array | None:
        """Levels of the nodes, one row per point, drawn from their distribution there, with its exact moments."""
        if not len(self.task.centred_at):
            return None
        normal = random_state.standard_normal((len(points), len(self.task.centred_at)))
        normal = (normal - normal.mean(axis=0)) / normal.std(axis=0)
        drawn = [self._conditioned(x)[1].drawn(own) for x, own in zip(points, normal, strict=True)]
        return np.stack(drawn) @ self.task.centred_at

    def variance(self, x: Array) -> float:
        """Mean prior variance of a value, or of a latent signal where the likelihood has no noise of its own."""
        model = self.model(x)
        kernel, points = model.graph_kernel, model.spectrum.eigenvalues
        of_inputs = float(np.mean(np.diag(model.input_kernel.covariance(self.task.inputs))))
        power = of_inputs * kernel.power(points) + kernel.residual_power(points)
        return float(mean_over_nodes(model.spectrum, power)) + model.noise_variance + self._own_noise(model)

    def _own_noise(self, model: GraphGP) -> float:
        """Noise variance that is a parameter of the likelihood; zero where there is none."""
        return float(getattr(model.likelihood, "scale", 0.0)) ** 2 if "scale" in self.names else 0.0

    def _log_measure(self, x: Array) -> float:
        """Log density of the scale of the signals: uniform in its logarithm, or that of a latent deviation."""
        model, deviation = self.model(x), float(np.sqrt(self.variance(x)))
        units = model.graph_kernel.search().theta_units
        # coefficients in the units of the signals, whose density is of ratios to their deviation
        total = -float(np.sum(np.log2(units(4.0) / units(1.0)))) * float(np.log(deviation))
        noise = self._own_noise(model)
        if noise:
            total += noise_log_prior(float(np.log(noise / self.task.typical_noise)), self.task.graph.n_nodes)[0]
        if model.likelihood is None or model.likelihood.is_white_noise:
            return total
        return total + float(np.log(deviation)) - DEVIATION_RATE * deviation


class _Laplace:
    """Normal distribution on the face of the active constraints, with exponential slacks off it."""

    def __init__(self, posterior: HyperparameterPosterior) -> None:
        self.posterior, self.mode, self.units = posterior, posterior.mode, posterior.units
        self.low, self.high = posterior.bounds.T
        multipliers = np.array(certify(posterior, self.mode).multipliers)
        held = multipliers > 0
        rows = active_constraints(posterior, self.mode)[0][held] * self.units
        self.multipliers = multipliers[held]
        values, vectors = np.linalg.eigh(self._curvature())
        values = np.maximum(values, MIN_PRECISION)  # so that no draw strays further than a unit
        curvature, covariance = (vectors * values) @ vectors.T, (vectors / values) @ vectors.T
        face = null_space(rows) if rows.size else np.eye(self.mode.size)
        values, vectors = np.linalg.eigh(face.T @ curvature @ face)
        # symmetric, so that draws do not depend on the signs of eigenvectors
        self.onto, self.root = face @ face.T, face @ (vectors / np.sqrt(values)) @ (face @ vectors).T
        # moves one slack at a time, in a direction that the curvature does not mix with those of the face
        self.inward = covariance @ rows.T @ np.linalg.pinv(rows @ covariance @ rows.T)
        self.precisions = np.einsum("ij,ik,kj->j", self.inward, curvature, self.inward)

    def _curvature(self) -> Array:
        """Negative second derivatives of the log posterior in units of the parameters, by differences within bounds."""
        mode, units = self.mode, self.units
        curvature = np.empty((mode.size, mode.size))
        for index, unit in enumerate(units):
            ends = np.array([mode, mode])
            reach = np.array([-1.0, 1.0]) * self.posterior.difference * unit
            ends[:, index] = np.clip(mode[index] + reach, self.low[index], self.high[index])
            width = (ends[1, index] - ends[0, index]) / unit
            behind, ahead = (self.posterior.evaluate(end)[1] for end in ends)
            curvature[index] = (behind - ahead) * units / width if width > 0 else 0.0
        return (curvature + curvature.T) / 2

    def proposals(
        self, number: int, random_state: np.random.Generator, widths: tuple[float, ...] = (1.0,)
    ) -> list[tuple[Array, Array, Array]]:
        """Draws that violate no constraint, of all widths in turn, with their normal coordinates and slacks."""
        attempts = (self.draw(random_state, widths[one % len(widths)]) for one in range(MAX_TRIES * number))
        return list(islice((one for one in attempts if one is not None), number))

    def log_density(self, widths: tuple[float, ...], normal: Array, slacks: Array) -> float:
        """Log density of a draw among those of all widths, up to a constant."""
        logs = []
        for width in widths:
            scaled = slacks / width
            quadratic = np.sum(np.square(normal / width)) + self.precisions @ np.square(scaled)
            logs.append(-0.5 * quadratic - self.multipliers @ scaled - self.mode.size * np.log(width))
        return float(logsumexp(logs))

    def draw(self, random_state: np.random.Generator, width: float) -> tuple[Array, Array, Array] | None:
        """One draw; None if it violates a constraint that is not active at the mode."""
        normal = width * self.onto @ random_state.standard_normal(self.mode.size)
        # slacks s >= 0 with density exp(-multiplier s - precision s^2 / 2): a normal about -multiplier / precision,
        # cut off at zero, by inversion of its upper tail
        roots = np.sqrt(self.precisions)
        starts = self.multipliers / roots
        tails = log_ndtr(-starts) + np.log1p(-random_state.random(starts.size))
        slacks = width * np.maximum(-ndtri_exp(tails) - starts, 0.0) / roots
        x = self.mode + self.units * (self.root @ normal + self.inward @ slacks)
        inside = np.all((x >= self.low) & (x <= self.high))
        is_allowed = inside and all(np.all(one.response(x) >= 0) for one in self.posterior.positivity(x))
        return (x, normal, slacks) if is_allowed else None
