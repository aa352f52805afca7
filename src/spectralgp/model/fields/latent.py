"""Posterior and predictions under a likelihood: distributions of latent signals, and of values given these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any, cast

import numpy as np

from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array, Indices, as_integer
from spectralgp.graphs import Graph
from spectralgp.model.fields.covariances import ModalCovariance, with_new_inputs
from spectralgp.model.fields.factors import BlockCovariance, GraphNodeCovariance, InputCovariance, PosteriorInputRows
from spectralgp.model.fields.field import (
    ConditionedField,
    Field,
    GaussianField,
    MixtureField,
    PredictiveDistribution,
    as_observed,
    numeric_quantile,
)
from spectralgp.model.fields.observations import DRAW_SEED, DRAWS, FEWEST_DRAWS, MOST_DRAWN
from spectralgp.model.fields.posterior import GraphGP, SinglePosterior
from spectralgp.model.fields.sites import (
    MOST_WRITTEN_OUT,
    NO_ENTRIES,
    TOO_MANY_JOINT,
    ObservationModel,
    Sites,
    find_sites,
)
from spectralgp.model.kernels import Identity, NewInputs, new_inputs
from spectralgp.model.likelihoods import Likelihood, predictive_distribution, predictive_log_density, randomised_pit
from spectralgp.model.signals import Signals, Units, expected_signals
from spectralgp.model.spectra import Filters, decompose, modes_of

NO_COVARIANCE = (
    "Covariances of values are not available with a likelihood, since values are no linear functions of the latent "
    "signals. Take the covariance of samples."
)


@cache
def _one_node() -> GraphNodeCovariance:
    """Graph with one node and no noise, for signals of one value each."""
    return GraphNodeCovariance(decompose(Graph.edgeless(1)), Identity(), 0.0)


def log_evidence_under(mean: Array, covariance: Array, likelihood: Likelihood, values: Array, beside: Array) -> float:
    """Lower bound of the log density of values, NaN if missing, with latent ``f ~ N(mean, covariance)``."""
    own = np.isfinite(values)
    alone = ModalCovariance(InputCovariance(modes_of(covariance[np.ix_(own, own)])), _one_node())
    known = ObservationModel(likelihood, beside[own][:, None], np.empty((0, *alone.shape)))
    observations = replace(known.observations(values[own][:, None]), offset=mean[own][:, None])
    return find_sites(alone, observations).log_bound()[0]


# ------------------------------------------------------------------------------------------ predictions of values


@dataclass(frozen=True, eq=False)
class ValueField(PredictiveDistribution):
    """Predictive distribution of values of latent signals under a likelihood.

    Without noise it is that of the mean of a value given the latent signal: a rate, or a probability.
    """

    latent_by_columns: Callable[[Array], GaussianField]  # of the latent signals, by the columns of fixed effects
    observed_by: ObservationModel  # of the values that are predicted
    known: Array  # observed values of these signals, NaN if missing
    further: Callable[[Array, ObservationModel], Sites]  # sites given further values of these signals
    rows: Indices  # of these signals among those of the sites

    @classmethod
    def of_rows(cls, sites: Sites, rows: Indices, observed_by: ObservationModel, known: Array) -> ValueField:
        """Values of some of the signals of sites."""
        centre = partial(sites.covariance.basis.zeros, len(sites.mean))
        latent = ConditionedField(sites.covariance, centre, Units(), sites, rows)
        return cls(lambda columns: latent, observed_by, known, partial(sites.given, rows), rows)

    @cached_property
    def latent(self) -> GaussianField:
        """Field of the latent signals, with their white noise as noise of values."""
        return self.latent_by_columns(self.observed_by.columns)

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood."""
        return self.observed_by.likelihood

    @cached_property
    def _moments(self) -> tuple[Array, Array, Array]:
        return self.latent.values, self.latent.values_variance(), self.observed_by.beside

    @cached_property
    def _mean_moments(self) -> tuple[Array, Array, Array]:
        """Moments without noise: without the white noise of latent signals if that counts as noise."""
        if not self.likelihood.is_white_noise:
            return self._moments
        return np.asarray(self.latent.mean), np.asarray(self.latent.variance()), self.observed_by.beside

    @cached_property
    def mean(self) -> Array:
        return self.likelihood.mean(*self._mean_moments)

    def variance(self, include_noise: bool = False, nodes: Indices | None = None) -> Array:
        moments = self._moments if include_noise else self._mean_moments
        variance = self.likelihood.variance(*moments, include_noise=include_noise)
        return variance if nodes is None else variance[:, nodes]

    @property
    def variance_error(self) -> Array:
        errors = self.latent.variance_error
        if not errors.any():
            return np.zeros(len(errors))
        mean, variance, beside = self._mean_moments
        cases = ((mean, one, beside) for one in (variance, variance + errors[:, None]))
        before, after = (self.likelihood.variance(*moments, include_noise=False) for moments in cases)
        return np.asarray(np.sqrt(np.mean(np.square(after - before), axis=1)))

    def distribution(self, values: Array) -> Array:
        return predictive_distribution(self.likelihood, values, *self._moments)

    def quantile(self, probability: float) -> Array:
        return numeric_quantile(self, probability)

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.likelihood.is_discrete

    @property
    def values(self) -> Array:
        return np.where(np.isfinite(self.known), self.known, self.likelihood.mean(*self._moments))

    def values_variance(self) -> Array:
        return np.where(np.isfinite(self.known), 0.0, self.variance(include_noise=True))

    def joint_covariance(self, include_noise: bool = False, rows: Sequence[int] | None = None) -> Array:
        raise ValueError(NO_COVARIANCE)

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Array:
        n_draws = as_integer(n_samples, "n_samples", 1)
        if include_noise or not self.likelihood.is_white_noise:
            latent = self.latent.value_draws(n_draws, random_state)
        else:
            latent = np.asarray(self.latent.sample(n_draws, random_state))
        if include_noise:
            return self.likelihood.draw(latent, self.observed_by.beside, random_state)
        return self.likelihood.mean_at(latent, self.observed_by.beside)

    def _further(self, signals: Any) -> Array:
        """Given values, without those that are known already."""
        found = np.asarray(as_observed(signals, *self.known.shape), dtype=float)
        return np.where(np.isfinite(self.known), np.nan, found)

    def log_density(self, signals: Any, joint: bool = True) -> Any:
        signals = self._further(signals)
        rows = np.flatnonzero(np.isfinite(signals).any(axis=1)).tolist()
        if not joint:
            totals = np.zeros(len(signals))
            totals[rows] = [self._log_density_of([row], signals) for row in rows]
            return totals
        n_values = int(np.count_nonzero(np.isfinite(signals)))
        if n_values > MOST_WRITTEN_OUT and len(rows) > 1:
            raise ValueError(TOO_MANY_JOINT.format(n_values=n_values))
        return self._log_density_of(rows, signals) if rows else 0.0

    def _log_density_of(self, rows: list[int], signals: Array) -> float:
        """Log density of the values of some signals together."""
        own = np.isfinite(signals) & np.isin(np.arange(len(signals)), rows)[:, None]
        if not self.latent.covariance.is_written_out:
            raise ValueError(NO_ENTRIES.format(n_nodes=signals.shape[1]))
        values, beside = signals[own], np.broadcast_to(self.observed_by.beside, signals.shape)[own]
        covariance = self.latent.value_covariance(own)
        return log_evidence_under(self._moments[0][own], covariance, self.likelihood, values, beside)

    def value_log_densities(self, signals: Array, nodes: Indices) -> Array:
        """Log density of each value alone at some nodes, shape (n_signals, n_some_nodes)."""
        mean, variance, beside = (np.broadcast_to(one, self.known.shape)[:, nodes] for one in self._moments)
        return predictive_log_density(self.likelihood, signals, mean, variance, beside)

    def given(self, observed: Any) -> ValueField:
        values = self._further(observed)
        if not np.isfinite(values).any():
            return self
        known = np.where(np.isfinite(values), values, self.known)
        return ValueField.of_rows(self.further(values, self.observed_by), self.rows, self.observed_by, known)


def observed_with(prediction: PredictiveDistribution, observed_by: ObservationModel | None) -> PredictiveDistribution:
    """Prediction for other exposures or trials and, if no value is observed, other columns of fixed effects."""
    if isinstance(prediction, MixtureField):
        return replace(prediction, fields=tuple(observed_with(part, observed_by) for part in prediction.fields))
    if observed_by is None or not isinstance(prediction, ValueField):
        return prediction
    own = replace(prediction.observed_by, beside=observed_by.beside, columns=observed_by.columns)
    return replace(prediction, observed_by=own)


def probability_transforms(
    prediction: PredictiveDistribution, values: Array, random_state: np.random.Generator
) -> Array | None:
    """Randomised probability integral transforms of values, NaN if missing; None without a likelihood."""
    first = prediction.fields[0] if isinstance(prediction, MixtureField) else prediction
    if not isinstance(first, ValueField):
        return None
    return randomised_pit(prediction.distribution, values, prediction.is_discrete, random_state)


# ---------------------------------------------------------------------------------------------------- conditioning


@dataclass(frozen=True, eq=False)
class LatentPosterior(SinglePosterior):
    """A prior of latent signals conditioned on values under a likelihood. Made by `condition_latent`.

    The training signals are the values. Predictions are for an exposure or a trial of one, unless changed by
    `observed_with`.
    """

    observed_by: ObservationModel = field(kw_only=True)

    @property
    def sites(self) -> Sites:
        """Posterior of the latent training signals."""
        return cast(Sites, self.entries)

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood, with learnt parameters."""
        return self.sites.observations.likelihood

    @property
    def modelled(self) -> Signals:
        image = self.sites.image  # about the fixed effects
        return expected_signals(image, np.empty((0, *image.shape)))

    def at(self, inputs: Any) -> ValueField:
        kernel = self.prior.input_kernel
        new = kernel.at(self.inputs, new_inputs(kernel, self.inputs, inputs))
        own = self.observed_by.columns
        columns = np.repeat(own[:, :1], len(new.cross), axis=1)  # by default those of the first signal
        beside, nothing = np.ones(columns.shape[1:]), np.full(columns.shape[1:], np.nan)
        observed_by = replace(self.observed_by, likelihood=self.likelihood, beside=beside, columns=columns)
        rows = np.arange(len(self.inputs), len(self.inputs) + len(new.cross))
        return ValueField(partial(self._latent_at, new), observed_by, nothing, partial(self._joined, new), rows)

    def _latent_at(self, new: NewInputs, columns: Array) -> Field:
        """Field of latent signals at new inputs, about the posterior mean of the uncertain fixed effects."""
        sites = self.sites
        covariance, basis = sites.covariance, self.basis
        reach, left = covariance.at(new)
        centre = basis.filtered(covariance.coordinates(basis.load(sites.image)), reach)
        if covariance.is_written_out and sites.root is None:
            assert isinstance(reach, PosteriorInputRows)
            gains = np.square(covariance.powers[0] / covariance.rows.variances(*covariance.powers))
            wider = replace(reach, gains=gains * sites.spread_at_modes)  # independent modes
            left = ModalCovariance(BlockCovariance(wider, basis.eigenvalues), covariance.nodes)
        fixed = Units(offset=np.tensordot(sites.coefficients, columns, axes=1))
        return Field(left, lambda: centre, fixed, partial(self._mean_factors, new, reach, columns))

    def _mean_factors(self, new: NewInputs, reach: Filters, columns: Array) -> list[Array]:
        """Factors of the covariance of the mean, by uncertain fixed effects and training signals."""
        sites = self.sites
        if not np.any(new.cross):
            return list(sites.factors_of(columns))
        known = [] if sites.root is None else [sites.root]
        if not self.covariance.is_written_out:
            n_draws = max(FEWEST_DRAWS, min(DRAWS, MOST_DRAWN // sites.mean.size))
            known = [sites.deviating(n_draws, np.random.default_rng(DRAW_SEED))[0] / np.sqrt(n_draws)]
        together = np.concatenate([sites.solved_image, *known])
        reached = np.array([on_host(one) for one in self.reached(together, reach)])
        reached = reached.reshape(len(together), *columns.shape[1:])
        return [*sites.factors_of(columns - reached[: len(columns)]), *reached[len(columns) :]]

    def _joined(self, new: NewInputs, values: Array, observed_by: ObservationModel) -> Sites:
        """Sites of the training signals and those at new inputs, given values of the latter."""
        together = self.observed_by.followed_by(observed_by)
        observations = together.observations(np.vstack([self.signals.as_observed, values]), self.likelihood)
        return find_sites(with_new_inputs(self.covariance, new), observations, self.sites)

    def imputed(self, rows: Indices) -> ValueField:
        observed_by = replace(self.observed_by.some(rows), likelihood=self.likelihood)
        known = self.signals.as_observed[rows]
        return ValueField.of_rows(self.sites, rows, observed_by, known)


def condition_latent(prior: GraphGP, inputs: Array, signals: Signals, observed_by: ObservationModel) -> LatentPosterior:
    """Condition a prior of latent signals on values under a likelihood."""
    likelihood = prior.likelihood or observed_by.likelihood
    observations = observed_by.observations(signals.as_observed, likelihood)
    covariance = prior.latent_covariance(inputs)
    known = [one for own, values, one in observed_by.last_found if own is prior and values is signals]
    sites = known[0] if known else find_sites(covariance, observations)
    if not covariance.is_written_out:
        observed_by.last_found[:] = [(prior, signals, sites)]
    return LatentPosterior(prior, inputs, signals, sites.covariance, entries=sites, observed_by=observed_by)
