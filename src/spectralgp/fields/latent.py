"""What is predicted of values that a likelihood observes: laws of the latent signals, and of values given them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array, Indices, Mask, as_integer
from spectralgp.fields.covariances import Covariance, Modal
from spectralgp.fields.factors import Blocks, GraphNodes, Inputs, LeftOfInputs
from spectralgp.fields.field import Field, Predictive, as_observed
from spectralgp.fields.posterior import GraphGP, OfOneModel
from spectralgp.fields.seen import DRAW_SEED, DRAWS, FEWEST_DRAWS, MOST_DRAWN
from spectralgp.fields.sites import MOST_WRITTEN_OUT, ObservedBy, Sites, find_sites
from spectralgp.graphs import Graph
from spectralgp.kernels import Identity, NewInputs
from spectralgp.likelihoods import Likelihood
from spectralgp.signals import Signals, Units, expected_signals
from spectralgp.spectra import Filters, decompose, modes_of

NO_COVARIANCE = (
    "return_cov must be False with a likelihood, whose values are no linear functions of the latent signals; got True. "
    "Draw values with sample_y, and take the covariance of the draws."
)
TOO_MANY_JOINT = (
    "joint must be False for {n_values} values with a likelihood, whose joint law would be too large to write out; got "
    "True. Ask for the density of every signal alone, or of fewer signals."
)


# ------------------------------------------------------------------------------------- laws of the latent signals


class Latent(ABC):
    """A normal law of latent signals, those that are shown."""

    @property
    @abstractmethod
    def mean(self) -> Array:
        """Means, shape (n_signals, n_nodes)."""

    @property
    @abstractmethod
    def variance(self) -> Array:
        """Variances, of the same shape."""

    @property
    @abstractmethod
    def variance_error(self) -> Array:
        """Root mean square standard errors of the variances by random probes, one per signal."""

    @abstractmethod
    def among(self, chosen: Mask) -> Array:
        """Covariance of the entries that a mask chooses."""

    @abstractmethod
    def draws(self, n_draws: int, random_state: np.random.Generator, white: bool = True) -> Array:
        """Signals drawn jointly, shape (n_draws, n_signals, n_nodes), with their white part or without."""

    @property
    @abstractmethod
    def without_white(self) -> tuple[Array, Array]:
        """Means and variances of the signals without their white part."""

    @abstractmethod
    def given(self, values: Array, observed_by: ObservedBy) -> Latent:
        """The law given further values, NaN where there is none, and how they are observed."""


@dataclass(frozen=True, eq=False)
class AtInputs(Latent):
    """Latent signals at new inputs."""

    posterior: LatentPosterior
    new: NewInputs
    columns: Array  # of fixed effects there, shape (n_effects, n_inputs, n_nodes)

    @cached_property
    def field(self) -> Field:
        """The signals about the posterior mean of the fixed effects, which are uncertain."""
        sites = self.posterior.sites
        covariance, basis = sites.covariance, sites.covariance.basis
        reach, left = covariance.at(self.new)
        centre = basis.filtered(covariance.coordinates(basis.load(sites.image)), reach)
        if covariance.is_written_out and sites.root is None:
            assert isinstance(reach, LeftOfInputs)
            gains = np.square(covariance.powers[0] / covariance.rows.variances(*covariance.powers))
            wider = replace(reach, gains=gains * sites.spread_at_modes)  # by modes, each on its own
            left = Modal(Blocks(wider, basis.eigenvalues), covariance.nodes)
        return Field(left, lambda: centre, Units(), mean_deviations=partial(self._mean_factors, reach))

    def _mean_factors(self, reach: Filters) -> list[Array]:
        """Factors of the covariance of the mean: of fixed effects, and of training signals that reach new inputs."""
        sites, basis, n_effects = self.posterior.sites, self.posterior.basis, len(self.columns)
        covariance, are_related = sites.covariance, bool(np.any(self.new.cross))
        known = [] if sites.root is None or not are_related else [sites.root]
        if are_related and not covariance.is_written_out:
            n_draws = max(FEWEST_DRAWS, min(DRAWS, MOST_DRAWN // sites.mean.size))
            known = [sites.deviating(n_draws, np.random.default_rng(DRAW_SEED))[0] / np.sqrt(n_draws)]
        together = np.concatenate([sites.solved_image, *known])
        reached = np.zeros((len(together), *self.columns.shape[1:]))
        if are_related:
            blocks = [together] if covariance.is_written_out else together
            found = [basis.filtered(covariance.coordinates(basis.load(one)), reach) for one in blocks]
            reached = np.concatenate([np.asarray(on_host(basis.unload(one))) for one in found]).reshape(reached.shape)
        return [*sites.factors_of(self.columns - reached[:n_effects]), *reached[n_effects:]]

    @cached_property
    def _fixed(self) -> Array:
        return np.tensordot(self.posterior.sites.coefficients, self.columns, axes=1)

    @cached_property
    def mean(self) -> Array:
        return np.asarray(self.field.mean + self._fixed)

    @cached_property
    def variance(self) -> Array:
        return np.asarray(self.field.variance(include_noise=True))

    @property
    def variance_error(self) -> Array:
        return self.field.variance_error

    def among(self, chosen: Mask) -> Array:
        self.posterior.sites.require_entries()
        return self.field.among(chosen)

    def draws(self, n_draws: int, random_state: np.random.Generator, white: bool = True) -> Array:
        return np.asarray(self.field.sample(n_draws, random_state, include_noise=white)) + self._fixed

    @property
    def without_white(self) -> tuple[Array, Array]:
        return self.mean, np.asarray(self.field.variance())

    def given(self, values: Array, observed_by: ObservedBy) -> OfRows:
        posterior = self.posterior
        covariance = posterior.sites.covariance.joined(self.new)
        known = posterior.signals.as_observed
        together = posterior.observed_by.followed_by(observed_by)
        observations = together.observations(np.vstack([known, values]), posterior.likelihood)
        rows = np.arange(len(known), len(known) + len(values))
        return OfRows(find_sites(covariance, observations, posterior.sites), rows)


@dataclass(frozen=True, eq=False)
class OfRows(Latent):
    """Some of the signals that sites are of."""

    sites: Sites
    rows: Indices

    @property
    def mean(self) -> Array:
        return self.sites.mean[self.rows]

    @property
    def variance(self) -> Array:
        return self.sites.variance[self.rows]

    @property
    def variance_error(self) -> Array:
        return np.full(len(self.rows), self.sites.variance_error)

    def among(self, chosen: Mask) -> Array:
        rows, nodes = np.nonzero(chosen)
        if rows[0] == rows[-1]:
            return self.sites.among_nodes(int(self.rows[rows[0]]))[np.ix_(nodes, nodes)]
        if self.sites.root is None:
            raise ValueError(TOO_MANY_JOINT.format(n_values=self.mean.size))
        return self.sites.among(self.rows[rows], nodes)

    def draws(self, n_draws: int, random_state: np.random.Generator, white: bool = True) -> Array:
        if not white:
            raise ValueError(
                "include_noise must be True for draws of signals of which values were observed with noise that is "
                "known; got False. Draw values with their noise, or predict means and deviations."
            )
        return self.sites.draws(n_draws, random_state)[:, self.rows]

    @property
    def without_white(self) -> tuple[Array, Array]:
        """``m - s u`` and ``v (1 + s w)^2 - s (1 + s w)`` with the white variance ``s``."""
        sites, white = self.sites, self.sites.covariance.noise_variance
        grown = 1 + white * sites.terms[2][self.rows]
        mean = self.mean - white * sites.solution[self.rows]
        return mean, np.maximum(self.variance * grown**2 - white * grown, 0.0)

    def given(self, values: Array, observed_by: ObservedBy) -> OfRows:
        observations = self.sites.observations
        known, observed = observations.values.copy(), observations.observed.copy()
        beside, new = observations.beside.copy(), np.isfinite(values)
        known[self.rows] = np.where(new, values, known[self.rows])
        observed[self.rows] |= new
        beside[self.rows] = np.where(new, observed_by.beside, beside[self.rows])
        further = replace(observations, values=known, observed=observed, beside=beside)
        return OfRows(find_sites(self.sites.covariance, further, self.sites), self.rows)


def log_evidence_under(mean: Array, covariance: Array, likelihood: Likelihood, values: Array, beside: Array) -> float:
    """Lower bound of the log density of values, NaN where there is none, where ``f ~ N(mean, covariance)``."""
    own = np.isfinite(values)
    rows = Inputs(modes_of(covariance[np.ix_(own, own)]))  # entries are signals of a single node
    node = GraphNodes(decompose(Graph.edgeless(1)), Identity(), 0.0)
    nothing = np.empty((0, rows.n_signals, 1))
    known = ObservedBy(likelihood, beside[own][:, None], nothing).observations(values[own][:, None])
    return find_sites(Modal(rows, node), replace(known, offset=mean[own][:, None])).log_bound()[0]


# ------------------------------------------------------------------------------------------------ laws of values


@dataclass(frozen=True, eq=False)
class ValueField(Predictive):
    """Values that a likelihood observes of latent signals; `beside` are exposures or trials.

    Without noise it is the mean of a value given the latent signal that is predicted: a rate, or a probability.
    """

    latent: Latent
    observed_by: ObservedBy  # of the values that are predicted
    known: Array  # values that were observed of these signals, NaN elsewhere

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood."""
        return self.observed_by.likelihood

    @property
    def _law(self) -> tuple[Array, Array, Array]:
        return self.latent.mean, self.latent.variance, self.observed_by.beside

    @property
    def _law_of_mean(self) -> tuple[Array, Array, Array]:
        """Of what noise is about: without the white part of latent signals, where that is noise too."""
        mean, variance = self.latent.without_white if self.likelihood.is_white_noise else self._law[:2]
        return mean, variance, self.observed_by.beside

    @cached_property
    def mean(self) -> Array:
        return self.likelihood.mean(*self._law_of_mean)

    def variance(self, include_noise: bool = False, nodes: Indices | None = None) -> Array:
        law = self._law if include_noise else self._law_of_mean
        variance = self.likelihood.variance(*law, include_noise=include_noise)
        return variance if nodes is None else variance[:, nodes]

    @property
    def variance_error(self) -> Array:
        errors = self.latent.variance_error
        if not errors.any():
            return np.zeros(len(errors))
        mean, variance, beside = self._law_of_mean
        laws = ((mean, one, beside) for one in (variance, variance + errors[:, None]))
        before, after = (self.likelihood.variance(*law, include_noise=False) for law in laws)
        return np.asarray(np.sqrt(np.mean(np.square(after - before), axis=1)))

    def distribution(self, values: Array) -> Array:
        return self.likelihood.distribution(values, *self._law)

    @property
    def is_discrete(self) -> bool:
        return self.likelihood.is_discrete

    def transforms(self, values: Array, random_state: np.random.Generator) -> Array:
        """Randomised probability integral transforms of values, NaN where there is none."""
        seen = np.isfinite(values)
        found = self.likelihood.randomised_pit(np.where(seen, values, 0.0), *self._law, random_state)
        return np.where(seen, found, np.nan)

    @property
    def values(self) -> Array:
        return np.where(np.isfinite(self.known), self.known, self.likelihood.mean(*self._law))

    def values_variance(self) -> Array:
        return np.where(np.isfinite(self.known), 0.0, self.variance(include_noise=True))

    def node_covariance(self, include_noise: bool = False) -> Array:
        raise ValueError(NO_COVARIANCE)

    def joint_covariance(self, include_noise: bool = False) -> Array:
        raise ValueError(NO_COVARIANCE)

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Array:
        white = include_noise or not self.likelihood.is_white_noise
        latent = self.latent.draws(as_integer(n_samples, "n_samples", 1), random_state, white)
        if include_noise:
            return self.likelihood.draw(latent, self.observed_by.beside, random_state)
        return self.likelihood.mean_at(latent, self.observed_by.beside)

    def _further(self, signals: Any) -> Array:
        """Values, without those that are known already."""
        found = np.asarray(as_observed(signals, *self.latent.mean.shape), dtype=float)
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
        values, beside = signals[own], np.broadcast_to(self.observed_by.beside, signals.shape)[own]
        return log_evidence_under(self.latent.mean[own], self.latent.among(own), self.likelihood, values, beside)

    def value_log_densities(self, signals: Array, nodes: Indices) -> Array:
        mean, variance, beside = (np.broadcast_to(one, self.latent.mean.shape)[:, nodes] for one in self._law)
        return self.likelihood.log_density(signals, mean, variance, beside)

    def given(self, observed: Any) -> ValueField:
        values = self._further(observed)
        if not np.isfinite(values).any():
            return self
        known = np.where(np.isfinite(values), values, self.known)
        return replace(self, latent=self.latent.given(values, self.observed_by), known=known)

    def seen_with(self, observed_by: ObservedBy) -> ValueField:
        """The field with other exposures or trials and, before anything is observed, other columns of fixed effects."""
        own = replace(self.observed_by, beside=observed_by.beside, columns=observed_by.columns)
        latent = replace(self.latent, columns=own.columns) if isinstance(self.latent, AtInputs) else self.latent
        return replace(self, observed_by=own, latent=latent)


# ---------------------------------------------------------------------------------------------------- conditioning


@dataclass(frozen=True, eq=False)
class LatentPosterior(OfOneModel):
    """A prior of latent signals conditioned on what a likelihood observes of them. It answers as a `Posterior` does."""

    prior: GraphGP  # with its likelihood
    inputs: Array
    signals: Signals  # the values, as they were given
    observed_by: ObservedBy
    sites: Sites

    transformation = None
    carried = None
    seen = None

    @property
    def modelled(self) -> Signals:
        """Means of the latent signals about the fixed effects."""
        return expected_signals(self.sites.image, np.empty((0, *self.sites.image.shape)))

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood, with all that was learnt of it."""
        return self.sites.observations.likelihood

    @property
    def covariance(self) -> Covariance:
        """Of the latent training signals."""
        return self.sites.covariance

    @property
    def given_signals(self) -> Array:
        """The training values as the user gave them, NaN where nothing was observed."""
        return self.signals.as_observed

    def at(self, inputs: Any) -> ValueField:
        """What is predicted at new inputs, for an exposure or a trial of one."""
        kernel = self.prior.input_kernel
        new = kernel.at(self.inputs, kernel.read_new(self.inputs, inputs))
        own = self.observed_by.columns
        columns = np.repeat(own[:, :1], len(new.cross), axis=1)  # those of the first signal, unless others are given
        observed_by = replace(
            self.observed_by, likelihood=self.likelihood, beside=np.ones(columns.shape[1:]), columns=columns
        )
        return ValueField(AtInputs(self, new, columns), observed_by, np.full(columns.shape[1:], np.nan))

    def filled(self, rows: Indices) -> ValueField:
        """Some of the training signals given what was observed of all."""
        observed_by = replace(self.observed_by.some(rows), likelihood=self.likelihood)
        known = self.signals.as_observed[rows]
        return ValueField(OfRows(self.sites, rows), observed_by, known)

    def left_out(self, by: str) -> tuple[Array, Array, Array]:
        """Means and variances of latent signals, each without its own entry, signal or node, and log densities."""
        sites, values = self.sites, self.signals.as_observed
        _, slopes, curvatures = sites.terms
        beside, likelihood = sites.observations.beside, self.likelihood
        if by == "entry":
            variance = sites.variance / (1 - np.minimum(curvatures * sites.variance, 1 - 1e-9))
            mean, seen = sites.mean - variance * slopes, sites.observations.observed
            logs = likelihood.log_density(sites.observations.values, mean, variance, beside)
            return mean, variance, np.where(seen, logs, np.nan)
        mean, variance = sites.mean.copy(), sites.variance.copy()
        is_signal = by == "signal"
        logs = np.full(mean.shape[0 if is_signal else 1], np.nan)
        for number in range(len(logs)):
            places: Any = number if is_signal else (slice(None), number)
            block = sites.among_nodes(number) if is_signal else sites.among_signals(number)
            mean[places], left = sites.cavity(block, sites.mean[places], places)
            variance[places] = np.diag(left)
            if np.isfinite(values[places]).any():
                law = mean[places], left, likelihood
                logs[number] = log_evidence_under(*law, values[places], beside[places])
        return mean, variance, logs


def condition_latent(prior: GraphGP, inputs: Array, signals: Signals, observed_by: ObservedBy) -> LatentPosterior:
    """Condition a prior of latent signals on values that a likelihood observes of them."""
    likelihood = prior.likelihood or observed_by.likelihood
    observations = observed_by.observations(signals.as_observed, likelihood)
    covariance = prior.latent_covariance(inputs)
    known = [one for own, values, one in observed_by.last_found if own is prior and values is signals]
    sites = known[0] if known else find_sites(covariance, observations)
    if not covariance.is_written_out:
        observed_by.last_found[:] = [(prior, signals, sites)]
    return LatentPosterior(prior, inputs, signals, observed_by, sites)
