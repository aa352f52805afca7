"""Predictive distributions of signals: normal fields, before and after values are observed, and their mixtures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_array
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import logsumexp, softmax
from scipy.stats import norm
from scipy.stats import t as student

from spectralgp._basics.arrays import non_negative_root, on_host, take, times_matrix
from spectralgp._basics.checks import Array, Indices, Mask, as_integer, as_signals
from spectralgp.model.fields import covariances
from spectralgp.model.fields.covariances import Covariance, SignalDistribution, with_entries
from spectralgp.model.fields.observations import PartialObservations
from spectralgp.model.fields.shrinkage import Shrinkage, t_log_density
from spectralgp.model.fields.sites import Sites
from spectralgp.model.likelihoods import quantile_of
from spectralgp.model.signals import Units
from spectralgp.model.spectra import SpectralData

MOST_CHAINED = 6_000  # values of incomplete signals whose joint covariance is written out for a density
MOST_WEIGHED = 1_000  # values by whose joint density weights of models change: the first of more
MOST_RESCALED = 2_000  # values of partly observed signals whose joint covariance is written out for draws with tails


class PredictiveDistribution(ABC):
    """Predictive distribution of signals, in the units of the training signals.

    Second moments are of the signals without noise unless ``include_noise`` is set.
    """

    is_discrete: bool = False  # whether values are whole numbers

    @property
    @abstractmethod
    def mean(self) -> Any:
        """Mean of the signals without noise, shape (n_signals, n_nodes), of the kind of the training signals."""

    @abstractmethod
    def variance(self, include_noise: bool = False, nodes: Indices | None = None) -> Any:
        """Variance at every node, or at given nodes; on a quadrature that of all nodes is by random probes."""

    @property
    @abstractmethod
    def variance_error(self) -> Array:
        """Root mean square standard error of `variance` at all nodes, one per signal; zero if it is exact."""

    @property
    @abstractmethod
    def values(self) -> Array:
        """Observed values, and means of the others."""

    @abstractmethod
    def values_variance(self) -> Array:
        """Variance of values with their noise; zero at observed ones."""

    @abstractmethod
    def joint_covariance(self, include_noise: bool = False, rows: Sequence[int] | None = None) -> Array:
        """Covariance over some signals, all by default, and nodes, shape (n_signals, n_nodes, n_signals, n_nodes).

        ``reshape(n_signals * n_nodes, -1)`` gives the matrix that belongs to ``mean.ravel()``.
        """

    @abstractmethod
    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Any:
        """Joint draws over signals and nodes, shape (n_samples, n_signals, n_nodes)."""

    @abstractmethod
    def log_density(self, signals: Any, joint: bool = True) -> Any:
        """Log density of further values, NaN if missing, given the observed ones, which are ignored; noise included.

        One total for all signals together (float) if `joint`, else one number per signal alone, shape (n_signals,).
        """

    @abstractmethod
    def distribution(self, values: Array) -> Array:
        """Probability that a value, with its noise, is no larger than the given one, entry by entry."""

    @abstractmethod
    def quantile(self, probability: float) -> Array:
        """Least values, with their noise, that are not exceeded with a probability, entry by entry."""

    @abstractmethod
    def given(self, observed: Any) -> PredictiveDistribution:
        """Conditional distribution given further values, NaN if missing; the distribution itself if all are."""


def standard_deviation(
    prediction: PredictiveDistribution, include_noise: bool = False, nodes: Indices | None = None
) -> Any:
    """Square root of the variance; a variance that probes make negative counts as zero."""
    return non_negative_root(prediction.variance(include_noise, nodes))


def node_covariances(prediction: PredictiveDistribution, include_noise: bool = False) -> Array:
    """Covariance over the nodes of each signal, shape (n_signals, n_nodes, n_nodes)."""
    rows = range(len(prediction.mean))
    return np.stack([prediction.joint_covariance(include_noise, [row])[0, :, 0] for row in rows])


def numeric_quantile(prediction: PredictiveDistribution, probability: float) -> Array:
    """Quantiles by bisection of the distribution function."""
    moments = prediction.mean, standard_deviation(prediction, include_noise=True)
    centre, reach = (np.asarray(on_host(one), dtype=float) for one in moments)
    return quantile_of(prediction.distribution, probability, centre, reach, prediction.is_discrete)


@dataclass(frozen=True, eq=False)
class SharedLevels:
    """Posterior of levels ``l ~ N(0, V)`` that all signals share at a node: equation (23d).

    With columns ``B``, the entries of each node, ``l | y ~ N(P^-1 B^T Q y, P^-1)``, ``P = V^-1 + B^T Q B``.
    """

    observations: PartialObservations
    columns: Array  # B, shape (n_levels, n_signals, n_nodes)
    variances: Array  # prior variances of the levels

    @cached_property
    def _solved(self) -> Array:
        """``Q B``, shape (n_levels, n_signals, n_nodes); zero at missing entries."""
        return self.observations.solve(self.columns)

    @cached_property
    def _factor(self) -> Array:
        """Lower Cholesky factor of ``P``."""
        precision = np.tensordot(self._solved, self.columns, axes=((1, 2), (1, 2)))
        return cholesky(precision + np.diag(1 / self.variances), lower=True, check_finite=False)

    def drawn(self, normal: Array) -> Array:
        """Levels drawn from their posterior by standard normal numbers (n_levels,)."""
        return np.asarray(solve_triangular(self._factor, self._weights + normal, lower=True, trans=1))

    def _whitened(self, columns: Array) -> Array:
        flat = columns.reshape(len(self.columns), self.observations.values.size)
        return solve_triangular(self._factor, flat, lower=True, check_finite=False).reshape(columns.shape)

    @cached_property
    def precision_factors(self) -> Array:
        """Factors whose outer products uncertain levels subtract from ``Q``."""
        return self._whitened(self._solved)

    @cached_property
    def _weights(self) -> Array:
        """Posterior means of the levels, in the units of `factors`."""
        return np.tensordot(self.precision_factors, self.observations.values, axes=2)

    @cached_property
    def factors(self) -> Array:
        """Factors of the covariance that uncertain levels add to signals without noise."""
        image = self.observations.times(self._solved) - self.observations.covariance.noise_variance * self._solved
        return self._whitened(self.columns - image)

    @property
    def value_factors(self) -> Array:
        """Factors of the covariance that uncertain levels add to values; zero at observed entries."""
        noise = self.observations.covariance.noise_variance
        return np.where(self.observations.observed, 0.0, self.factors - noise * self.precision_factors)

    def shift(self, factors: Array) -> Array:
        """Change of means by the posterior means of the levels, for signals or values by their factors."""
        return np.tensordot(self._weights, factors, axes=1)

    @property
    def solution(self) -> Array:
        """``Q y`` about the posterior means of the levels."""
        return self.observations.solution - self.shift(self.precision_factors)

    @property
    def log_factor(self) -> float:
        """Change of the log density of the values by uncertain levels."""
        known = self.variances[np.isfinite(self.variances)]  # an infinite variance is a factor of every density
        logs = np.sum(np.log(np.diag(self._factor))) + 0.5 * np.sum(np.log(known))
        return float(0.5 * np.sum(self._weights**2) - logs)


@dataclass(frozen=True, eq=False)
class GaussianField(PredictiveDistribution):
    """Signals that are normal, or multivariate t's each with its own scale (finite `freedom`): equations (17), (18)."""

    covariance: SignalDistribution  # of all signals, noise included
    centred: Callable[[], Any]  # returns `centre`; on a large graph it takes a pass, which some densities avoid
    units: Units

    freedom: float = field(default=np.inf, kw_only=True)  # degrees of freedom of a signal

    @cached_property
    def centre(self) -> Any:
        """Prior mean of all signals, as a block of the spectrum."""
        return self.centred()

    @property
    @abstractmethod
    def n_signals(self) -> int:
        """Number of predicted signals."""

    @property
    @abstractmethod
    def _tails(self) -> tuple[Array, Array]:
        """Degrees of freedom of each signal, and the factor of its normal covariance: equation (17)."""

    @property
    @abstractmethod
    def _level_variances(self) -> Array | None:
        """Variances of unobserved levels, one per node; None if there are none."""

    @abstractmethod
    def _between(self, number: int, other: int, include_noise: bool) -> Array:
        """Covariance between the nodes of two signals, centred and scaled, without unobserved levels."""

    @abstractmethod
    def _covariance_at(self, rows: Indices, nodes: Indices) -> Array:
        """Normal covariance of values at some entries, noise included, centred and scaled."""

    @abstractmethod
    def _draw(self, random_state: np.random.Generator, include_noise: bool) -> Any:
        """One draw of all signals, centred and scaled, without unobserved levels."""

    @abstractmethod
    def value_draws(self, n_draws: int, random_state: np.random.Generator) -> Array:
        """Joint draws of values with their noise; observed ones do not vary; shape (n_draws, n_signals, n_nodes)."""

    @abstractmethod
    def mean_at(self, nodes: Indices) -> Array:
        """Means at some nodes, shape (n_signals, n_some_nodes)."""

    @property
    def _n_nodes(self) -> int:
        return self.covariance.shape[1]

    @cached_property
    def _centre_values(self) -> Array:
        return np.asarray(on_host(self.covariance.basis.unload(self.centre)))

    @property
    def _divisor(self) -> Array:
        """Divisor of the units, on the host: a number, one per node, or a row of either per signal."""
        return np.asarray(on_host(self.units.divisor))

    def _with_level_variance(self, variance: Any, nodes: Indices | None = None) -> Any:
        """Variances in the user's units, with those of unobserved levels."""
        if self._level_variances is None:
            return variance
        return variance + (self._level_variances if nodes is None else self._level_variances[nodes])

    def joint_covariance(self, include_noise: bool = False, rows: Sequence[int] | None = None) -> Array:
        numbers = range(self.n_signals) if rows is None else rows
        divisors = np.broadcast_to(self._divisor, (self.n_signals, self._n_nodes))
        levels = 0.0 if self._level_variances is None else np.diag(self._level_variances)

        def block(one: int, other: int) -> Array:
            covariance = self._between(one, other, include_noise)
            return np.asarray(covariance * np.multiply.outer(divisors[one], divisors[other]) + levels)

        return np.array([[block(one, other) for other in numbers] for one in numbers]).transpose(0, 2, 1, 3)

    def value_covariance(self, chosen: Mask) -> Array:
        """Normal covariance of the values at entries chosen by a mask, noise included."""
        rows, nodes = np.nonzero(chosen)
        divisors = np.broadcast_to(self._divisor, chosen.shape)[chosen]
        covariance = self._covariance_at(rows, nodes) * np.multiply.outer(divisors, divisors)
        if self._level_variances is not None:
            covariance += np.where(np.equal.outer(nodes, nodes), self._level_variances[nodes], 0.0)
        return covariance

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Any:
        draws = []
        for _ in range(as_integer(n_samples, "n_samples", 1)):
            drawn = self.mean + self.units.restore_scale(self._draw(random_state, include_noise))
            if self._level_variances is not None:
                drawn = drawn + np.sqrt(self._level_variances) * random_state.standard_normal(self._n_nodes)
            draws.append(drawn)
        return array_namespace(draws[0]).stack(draws)

    def _drawn_scales(self, random_state: np.random.Generator) -> Array | None:
        """Scales of signals that are multivariate t's; None if they are normal."""
        if np.isinf(self.freedom):
            return None
        freedom = self._tails[0]
        return np.asarray(np.sqrt((freedom - 2) / random_state.chisquare(freedom))[:, None])

    def _drawn_noise(self, random_state: np.random.Generator) -> Any:
        noise = covariances.white_noise(self.covariance, random_state)
        return noise if self.covariance.is_written_out else self.covariance.basis.unload(noise)

    def _rescaled(self, signal: Array, noise: Array, scales: Array) -> tuple[Array, Array]:
        """Drawn signals and noise, each scaled in the part that earlier signals do not determine: equation (18)."""
        if self.n_signals == 1 or signal.size > MOST_RESCALED:  # then covariances between signals change
            return signal * scales, noise * scales
        factor = self._joint_factor

        def moved(noisy: Array) -> Array:
            whitened = solve_triangular(factor, noisy.ravel(), lower=True, check_finite=False).reshape(noisy.shape)
            return np.asarray(factor @ (whitened * (scales - 1)).ravel()).reshape(noisy.shape)

        def solve(noisy: Array) -> Array:
            return np.asarray(cho_solve((factor, True), noisy.ravel(), check_finite=False)).reshape(noisy.shape)

        return covariances.rescaled(signal, noise, scales, self.covariance.noise_variance, moved, solve)

    @cached_property
    def _joint_factor(self) -> Array:
        """Cholesky factor of the normal covariance of all signals with noise, centred and scaled."""
        plain = replace(self, units=Units(), freedom=np.inf)
        joint = plain.joint_covariance(include_noise=True).reshape(self.n_signals * self._n_nodes, -1)
        return cholesky(joint, lower=True, check_finite=False)

    def _marginals(self, nodes: Indices | None = None) -> tuple[Any, tuple[Array, ...]]:
        """Distribution of each value alone, of SciPy, and its parameters: normal, or a t."""
        mean, std = self.mean if nodes is None else self.mean_at(nodes), standard_deviation(self, True, nodes)
        if np.isinf(self.freedom):
            return norm, (on_host(mean), on_host(std))
        freedom = self._tails[0][:, None]
        return student, (freedom, on_host(mean), on_host(std) * np.sqrt((freedom - 2) / freedom))

    def value_log_densities(self, signals: Array, nodes: Indices) -> Array:
        """Log density of each value alone at some nodes, noise included, shape (n_signals, n_some_nodes)."""
        marginal, parameters = self._marginals(nodes)
        return np.asarray(marginal.logpdf(signals, *parameters))

    def distribution(self, values: Array) -> Array:
        marginal, parameters = self._marginals()
        return np.asarray(marginal.cdf(values, *parameters))

    def quantile(self, probability: float) -> Array:
        marginal, parameters = self._marginals()
        return np.asarray(marginal.ppf(probability, *parameters))

    def _chain(self, signals: Array) -> float:
        """Log density of some values, those of each signal given those of earlier signals."""
        chosen = np.isfinite(signals)
        rows = chosen.any(axis=1)
        counts, (freedom, widths) = chosen.sum(axis=1)[rows], (one[rows] for one in self._tails)
        n_values = int(counts.sum())
        if not n_values:
            return 0.0
        if counts.size > 1 and n_values > MOST_CHAINED:
            raise ValueError(
                f"joint must be False for {n_values} values of incomplete signals, whose joint covariance would be too "
                "large; got True. Ask for the density of every signal alone, or of fewer signals."
            )
        factor = cholesky(self.value_covariance(chosen), lower=True, check_finite=False)
        whitened = solve_triangular(factor, (signals - self.values)[chosen], lower=True, check_finite=False)
        starts = np.cumsum(counts) - counts
        lengths, logs = (np.add.reduceat(one, starts) for one in (whitened**2, 2 * np.log(np.diag(factor))))
        return float(np.sum(t_log_density(lengths / widths, logs + counts * np.log(widths), counts, freedom)))


@dataclass(frozen=True, eq=False)
class Field(GaussianField):
    """Signals of which no value has been observed; their mean may be uncertain."""

    mean_factors: Callable[[], Sequence[Any]] | None = None  # of the covariance of the mean; None if it is certain
    joint: Callable[[], ConditionedField] | None = None  # with known signals, if `covariance` is given these

    @property
    def n_signals(self) -> int:
        return self.covariance.shape[0]

    def given(self, observed: Any) -> Field | ConditionedField:
        observed = np.asarray(on_host(as_observed(observed, self.n_signals, self._n_nodes, "observed")), dtype=float)
        return self._joint.given(observed) if np.isfinite(observed).any() else self

    @cached_property
    def _joint(self) -> ConditionedField:
        """Distribution that is conditioned on further values."""
        if self.joint is not None:
            return self.joint()
        values, observed = np.zeros(self.covariance.shape), np.zeros(self.covariance.shape, dtype=bool)
        observations = PartialObservations(cast(Covariance, self.covariance), values, observed)
        rows = np.arange(self.n_signals)
        return ConditionedField(self.covariance, self.centred, self.units, observations, rows, freedom=self.freedom)

    @property
    def _tails(self) -> tuple[Array, Array]:
        return np.full(self.n_signals, self.freedom), np.ones(self.n_signals)

    @property
    def _level_variances(self) -> Array | None:
        variances = self.units.offset_variance
        return None if variances is None or not variances.any() else variances

    @cached_property
    def _mean_factors(self) -> Sequence[Any]:
        return () if self.mean_factors is None else self.mean_factors()

    @cached_property
    def _stacked_factors(self) -> Array:
        return np.stack([np.asarray(on_host(one)) for one in self._mean_factors])

    @cached_property
    def mean(self) -> Any:
        return self.units.restore(self.covariance.basis.unload(self.centre))

    def mean_at(self, nodes: Indices) -> Array:
        offset, vectors = np.asarray(self.units.offset), with_entries(self.covariance).basis.eigenvectors
        centred = self.units.restore_scale(times_matrix(self.centre, vectors[nodes].T), nodes)
        return np.asarray(centred + (offset[nodes] if offset.ndim else offset))

    @cached_property
    def _diagonal(self) -> tuple[Any, Array]:
        return covariances.signal_variances(self.covariance)

    def variance(self, include_noise: bool = False, nodes: Indices | None = None) -> Any:
        diagonal = self._diagonal[0] if nodes is None else covariances.signal_variances(self.covariance, nodes)[0]
        if not include_noise:
            diagonal = diagonal - self.covariance.noise_variance
            if nodes is not None or not self._diagonal[1].any():  # exact: values below zero are rounding
                xp = array_namespace(diagonal)
                diagonal = xp.where(diagonal > 0, diagonal, xp.zeros_like(diagonal))
        variance = self.units.restore_scale(self.units.restore_scale(diagonal, nodes), nodes)
        for one in self._mean_factors:
            moved = self.units.restore_scale(one)
            variance = variance + (moved if nodes is None else on_host(take(moved, nodes, axis=1))) ** 2
        return self._with_level_variance(variance, nodes)

    @property
    def variance_error(self) -> Array:
        return self._diagonal[1] * np.sqrt(np.mean(self._divisor**4))

    @property
    def values(self) -> Array:
        return np.asarray(on_host(self.mean))

    def values_variance(self) -> Array:
        return np.asarray(on_host(self.variance(include_noise=True)))

    def _between(self, number: int, other: int, include_noise: bool) -> Array:
        covariance = with_entries(self.covariance).between(number, other)
        if number == other and not include_noise:
            covariance[np.diag_indices_from(covariance)] -= self.covariance.noise_variance
        if len(self._mean_factors):
            covariance = covariance + self._stacked_factors[:, number].T @ self._stacked_factors[:, other]
        return covariance

    def _covariance_at(self, rows: Indices, nodes: Indices) -> Array:
        if rows[0] == rows[-1]:
            return self._between(rows[0], rows[0], include_noise=True)[np.ix_(nodes, nodes)]
        chosen = np.zeros(self.covariance.shape, dtype=bool)
        chosen[rows, nodes] = True
        covariance = with_entries(self.covariance).submatrix(chosen)
        if len(self._mean_factors):
            covariance += self._stacked_factors[:, chosen].T @ self._stacked_factors[:, chosen]
        return covariance

    def _draw(self, random_state: np.random.Generator, include_noise: bool) -> Any:
        scales, signal = self._drawn_scales(random_state), self.covariance.draw_signal(random_state)
        signal = signal if self.covariance.is_written_out else self.covariance.basis.unload(signal)
        if self.mean_factors is not None:
            white = random_state.standard_normal(len(self._mean_factors))
            signal = signal + sum(weight * one for weight, one in zip(white, self._mean_factors, strict=True))
        if scales is None:
            return signal + self._drawn_noise(random_state) if include_noise else signal
        noise = self._drawn_noise(random_state)
        if self.mean_factors is not None:
            signal, noise = self._rescaled(signal, noise, scales)
        else:  # tails are learnt on exact spectra
            signal, noise = with_entries(self.covariance).rescaled(signal, noise, scales)
        return signal + noise if include_noise else signal

    def value_draws(self, n_draws: int, random_state: np.random.Generator) -> Array:
        return np.asarray(self.sample(n_draws, random_state, include_noise=True))

    def log_density(self, signals: Any, joint: bool = True) -> Any:
        signals = as_observed(signals, self.n_signals, self._n_nodes)
        xp, rows = array_namespace(signals), range(self.n_signals)
        is_certain = self.mean_factors is None and self._level_variances is None
        if is_certain and not bool(xp.any(xp.isnan(signals))):
            errors = self.covariance.basis.load(self.units.apply(signals)) - self.centre
            return self.log_density_of(self.covariance.basis.read_block(errors), joint)
        signals = np.asarray(on_host(signals), dtype=float)
        chosen = ~np.isnan(signals).all(axis=1)
        if joint and is_certain and not np.isnan(signals[chosen]).any():  # others are missing as a whole
            errors = self.covariance.basis.load(self.units.apply(np.nan_to_num(signals))) - self.centre
            of_chosen = self.covariance.basis.read_block(errors).rotate(np.eye(self.n_signals)[:, chosen])
            return self.log_density_of(of_chosen, joint, chosen)
        if not joint:
            density = self._chain if self.covariance.is_written_out else self._gain
            return np.array([density(_only(signals, row)) for row in rows])
        return self._gain(signals) if np.isinf(self.freedom) else self._chain(signals)

    def log_density_of(self, errors: SpectralData, joint: bool = False, chosen: Any = slice(None)) -> Any:
        """Log density of complete signals, all or, if joint, chosen ones, less their mean, as read on the spectrum."""
        of_signals = partial(covariances.sequential_lengths, chosen=chosen) if joint else covariances.marginal_lengths
        lengths, logs = of_signals(self.covariance, errors)
        single = self.units.log_density(t_log_density(lengths, logs, self._n_nodes, self.freedom), self._n_nodes)
        return float(np.sum(single)) if joint else single

    def _gain(self, signals: Array) -> float:
        """Normal log density of some values, given known signals."""
        if not np.isfinite(signals).any():
            return 0.0
        known = 0.0 if self.joint is None else self._joint.log_evidence
        return self._joint.given(signals).log_evidence - known - float(self.units.log_volume(np.isfinite(signals)))


@dataclass(frozen=True, eq=False)
class ConditionedField(GaussianField):
    """Some signals of a field, given values of these and others.

    Levels of nodes without training values are normal, and learnt from values that are observed there.
    """

    entries: PartialObservations | Sites  # posterior of all signals, centred and scaled
    rows: Indices  # of the predicted signals
    shrinkage: Shrinkage | None = None  # learnt from the first of the signals: their shares are taken out of scales
    scale_freedom: float | None = None  # as of a `GraphGP`: the first signal's share is taken out of its scale

    @property
    def n_signals(self) -> int:
        return self.rows.size

    @property
    def _observations(self) -> PartialObservations:
        return cast(PartialObservations, self.entries)

    def given(self, observed: Any) -> ConditionedField:
        observed = np.asarray(on_host(as_observed(observed, self.n_signals, self._n_nodes, "observed")), dtype=float)
        new = np.isfinite(observed)
        if not new.any():
            return self
        values, known = self._observations.values.copy(), self._observations.observed.copy()
        scaled = self.units.apply(observed) - self._centre_values[self.rows]
        values[self.rows] = np.where(new, scaled, values[self.rows])
        known[self.rows] |= new
        return replace(self, entries=PartialObservations(cast(Covariance, self.covariance), values, known))

    @cached_property
    def levels(self) -> SharedLevels | None:
        """Posterior of levels at nodes with observed values, or of that of all nodes; None if levels are known."""
        variances = self.units.offset_variance
        if self.scale_freedom is not None:
            whole = np.ones((1, *self._observations.values.shape))
            return SharedLevels(self._observations, whole, np.array([np.inf]))
        if variances is None:
            return None
        observations = self._observations
        nodes = np.flatnonzero((variances > 0) & observations.observed.any(axis=0))
        own = np.equal.outer(nodes, np.arange(self._n_nodes))[:, None].astype(float)
        columns = np.broadcast_to(own, (nodes.size, *observations.values.shape))
        return SharedLevels(observations, columns, (variances / self._divisor**2)[nodes]) if nodes.size else None

    @cached_property
    def _level_variances(self) -> Array | None:
        variances = self.units.offset_variance
        if variances is None:
            return None
        variances = np.where(self._observations.observed.any(axis=0), 0.0, variances)
        return variances if variances.any() else None

    def lengths(self, rows: Indices) -> tuple[Array, Array, Array]:
        """`PartialObservations.lengths` of the observed values of signals, with uncertain levels."""
        observations, levels = self._observations, self.levels
        if levels is None:
            return observations.lengths(rows)
        lengths, logs, counts = observations.lengths(rows, levels.solution, levels.precision_factors)
        if self.scale_freedom is None:
            return lengths, logs, counts
        known = rows == 0  # the values that the scale was learnt from
        return lengths - known * (self.scale_freedom - 2), logs, counts - known * (self.scale_freedom + 1)

    @cached_property
    def _tails(self) -> tuple[Array, Array]:
        if np.isinf(self.freedom):
            return np.full(self.n_signals, self.freedom), np.ones(self.n_signals)
        lengths, counts = np.zeros(self.n_signals), np.zeros(self.n_signals)  # draws do not determine them
        if self._observations.is_written_out:
            lengths, _, counts = self.lengths(self.rows)
        if self.shrinkage is not None:
            left_out = self.shrinkage.left_out(lengths)[0]
            lengths = np.where(self.rows < self.shrinkage.n_signals, left_out, lengths)
        return self.freedom + counts, (self.freedom - 2 + lengths) / (self.freedom - 2 + counts)

    def _widened(self, factors: Array) -> Array:
        """Factors of levels at the predicted signals, with the tails of these if levels have their scale."""
        chosen = factors[:, self.rows]
        return chosen if self.scale_freedom is None else chosen * np.sqrt(self._tails[1])[:, None]

    @cached_property
    def mean(self) -> Any:
        levels = self.levels
        moved = 0.0 if levels is None else levels.shift(levels.factors)
        return self.units.restore((self.entries.signal_mean + moved + self._centre_values)[self.rows])

    def mean_at(self, nodes: Indices) -> Array:
        return np.asarray(self.mean[:, nodes])

    def variance(self, include_noise: bool = False, nodes: Indices | None = None) -> Any:
        known = self.entries.signal_variance[self.rows] + (self.covariance.noise_variance if include_noise else 0.0)
        known = known * self._tails[1][:, None]
        if self.levels is not None:
            known = known + np.sum(np.square(self._widened(self.levels.factors)), axis=0)
        variance = self._with_level_variance(known * self._divisor**2)
        return variance if nodes is None else variance[:, nodes]

    @property
    def variance_error(self) -> Array:
        return self.entries.variance_errors(self.variance())

    @property
    def values(self) -> Array:
        moved = 0.0 if self.levels is None else self.levels.shift(self.levels.value_factors)
        return np.asarray(self.units.restore((self.entries.mean + moved + self._centre_values)[self.rows]))

    def values_variance(self) -> Array:
        variance = self.entries.variance[self.rows] * self._tails[1][:, None]
        if self.levels is not None:
            variance = variance + np.sum(np.square(self._widened(self.levels.value_factors)), axis=0)
        return np.asarray(self._with_level_variance(variance * self._divisor**2))

    def _between(self, number: int, other: int, include_noise: bool) -> Array:
        row, across, scales = int(self.rows[number]), int(self.rows[other]), np.sqrt(self._tails[1])
        covariance = self._observations.signal_between(row, across)
        if number == other and include_noise:
            covariance[np.diag_indices_from(covariance)] += self.covariance.noise_variance
        covariance = covariance * (scales[number] * scales[other])
        if self.levels is not None:
            factors = self._widened(self.levels.factors)
            covariance = covariance + factors[:, number].T @ factors[:, other]
        return covariance

    def _covariance_at(self, rows: Indices, nodes: Indices) -> Array:
        covariance = self.entries.among(self.rows[rows], nodes)
        if self.levels is not None:
            moved = self.levels.value_factors[:, self.rows[rows], nodes]
            covariance = covariance + moved.T @ moved
        return covariance

    def _draw(self, random_state: np.random.Generator, include_noise: bool) -> Any:
        scales = self._drawn_scales(random_state)
        signal, noise = self.entries.drawn_signal(random_state)[self.rows], np.zeros(1)
        if include_noise or scales is not None:
            noise = self._drawn_noise(random_state)[self.rows]
        if scales is not None:
            roots = np.sqrt(self._tails[1])[:, None]
            signal, noise = (one * roots for one in self._rescaled(signal, noise, scales))
        if self.levels is not None:
            white = random_state.standard_normal(len(self.levels.columns))
            moved = np.tensordot(white, self._widened(self.levels.factors), axes=1)
            signal = signal + (moved if scales is None or self.scale_freedom is None else moved * scales)
        return signal + noise if include_noise else signal

    def value_draws(self, n_draws: int, random_state: np.random.Generator) -> Array:
        return np.asarray(self.values + self.entries.value_draws(n_draws, random_state)[:, self.rows])

    def log_density(self, signals: Any, joint: bool = True) -> Any:
        signals = as_observed(signals, self.n_signals, self._n_nodes)
        signals, rows = np.asarray(on_host(signals), dtype=float), range(self.n_signals)
        if not joint:
            return np.array([self._gain(_only(signals, row), row) for row in rows])
        if np.isinf(self.freedom) or self.scale_freedom is not None:
            return self._gain(signals)
        total, known = 0.0, self
        for row in rows:
            total += known._gain(_only(signals, row), row)
            known = known.given(_only(signals, row))
        return total

    @cached_property
    def log_evidence(self) -> float:
        """Log density of all observed values, normal, centred and scaled."""
        return self._observations.log_density()[0] + (0.0 if self.levels is None else self.levels.log_factor)

    def _gain(self, signals: Array, row: int | None = None) -> float:
        """Log density of further values of all signals, or of one, given the observed ones."""
        further = np.where(self._observations.observed[self.rows], np.nan, signals)
        if not np.isfinite(further).any():
            return 0.0
        if self.scale_freedom is not None:
            return self._chain(further)
        more = self.given(further)
        if np.isinf(self.freedom) or row is None:
            gain = more.log_evidence - self.log_evidence
        else:
            gain = more._log_conditional(row) - self._log_conditional(row)
        return gain - float(self.units.log_volume(np.isfinite(further)))

    def _log_conditional(self, row: int) -> float:
        """Log density of the observed values of a signal given all others."""
        if not self._observations.is_written_out:
            got = f"got {np.count_nonzero(self._observations.observed)} with the observed ones. Ask for fewer signals."
            raise ValueError(f"signals must hold fewer values for densities with heavy tails given others; {got}")
        return float(t_log_density(*self.lengths(self.rows[[row]]), self.freedom)[0])


def _only(signals: Array, row: int) -> Array:
    """One of the signals; the others are missing."""
    return np.where(np.arange(len(signals))[:, None] == row, signals, np.nan)


@dataclass(frozen=True, eq=False)
class MixtureField(PredictiveDistribution):
    """Mixture of the predictions of several models; those of weight zero are not evaluated.

    Observed values change the weights only if these are posterior probabilities of hyperparameters.
    """

    weights: Array  # add up to one
    fields: tuple[PredictiveDistribution, ...]
    is_averaged: bool = False  # whether weights are posterior probabilities of hyperparameters
    fallback: tuple[Array, Array] | None = None  # other weights, and shares of `weights` in each row: equation (19f)

    @cached_property
    def _sides(self) -> tuple[Array, MixtureField, MixtureField]:
        """Shares of the rows, and mixtures by `weights` and by those of the fallback."""
        assert self.fallback is not None
        weights, shares = self.fallback
        return shares, replace(self, fallback=None), MixtureField(weights, self.fields)

    def _average(self, ask: Callable[[PredictiveDistribution], Any]) -> Any:
        """Weighted sum of a function of the models' predictions."""
        if self.fallback is None:
            return sum(weight * ask(part) for weight, part in self._parts)
        shares, known, beyond = self._sides
        return (shares * known._average(ask).T + (1 - shares) * beyond._average(ask).T).T

    @cached_property
    def _parts(self) -> list[tuple[float, PredictiveDistribution]]:
        return [(float(weight), part) for weight, part in zip(self.weights, self.fields, strict=True) if weight > 0]

    @cached_property
    def mean(self) -> Any:
        return self._average(lambda part: part.mean)

    @cached_property
    def values(self) -> Array:
        return np.asarray(self._average(lambda part: part.values))

    def values_variance(self) -> Array:
        return np.asarray(self._average(lambda part: part.values_variance() + (part.values - self.values) ** 2))

    def variance(self, include_noise: bool = False, nodes: Indices | None = None) -> Any:
        def around_mean(part: PredictiveDistribution) -> Any:
            apart = part.mean - self.mean
            apart = apart if nodes is None else on_host(take(apart, nodes, axis=1))
            return part.variance(include_noise, nodes) + apart**2

        return self._average(around_mean)

    @property
    def variance_error(self) -> Array:
        """Weighted sum of the models' errors: their random probes are the same."""
        return np.asarray(self._average(lambda part: part.variance_error))

    def joint_covariance(self, include_noise: bool = False, rows: Sequence[int] | None = None) -> Array:
        chosen = slice(None) if rows is None else list(rows)

        def moment(part: PredictiveDistribution, other: PredictiveDistribution | None = None) -> Array:
            apart, across = ((one.mean - self.mean)[chosen] for one in (part, other or part))
            products = np.einsum("na,mb->namb", apart, across)
            return products if other else part.joint_covariance(include_noise, rows) + products

        if self.fallback is None:
            return np.asarray(self._average(moment))
        shares, known, beyond = self._sides
        shares = shares[chosen]
        both, either = (find.outer(shares, shares)[:, None, :, None] for find in (np.minimum, np.maximum))
        mixed = (shares[:, None, None, None] - both) * moment(known, beyond)
        return both * moment(known) + (1 - either) * moment(beyond) + mixed + mixed.transpose(2, 3, 0, 1)

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Any:
        if self.fallback is not None:  # where a number that all rows of a draw share exceeds their own shares
            shares, *sides = self._sides
            falls = random_state.random((n_samples, 1, 1)) >= shares[:, None]
            return np.where(falls, *(one.sample(n_samples, random_state, include_noise) for one in reversed(sides)))
        counts = random_state.multinomial(as_integer(n_samples, "n_samples", 1), self.weights)
        chosen = [(int(count), part) for count, part in zip(counts, self.fields, strict=True) if count]
        draws = [part.sample(count, random_state, include_noise) for count, part in chosen]
        return take(array_namespace(*draws).concat(draws), random_state.permutation(n_samples), axis=0)

    def log_density(self, signals: Any, joint: bool = True) -> Any:
        if self.fallback is not None:
            return self._log_density_of_sides(signals, joint)
        parts = [np.log(weight) + part.log_density(signals, joint) for weight, part in self._parts]
        total = logsumexp(parts, axis=0)
        return float(total) if joint else total

    def _log_density_of_sides(self, signals: Any, joint: bool) -> Any:
        shares, known, beyond = self._sides
        if not joint:
            sides = [one.log_density(signals, joint) for one in (known, beyond)]
            return logsumexp(sides, axis=0, b=[shares, 1 - shares])
        ends, parts = np.unique([0.0, *shares, 1.0]), []
        for high in ends[1:]:  # as in `sample`: of the number that all rows share
            stays = (shares >= high)[:, None]
            parts.append(known.log_density(np.where(stays, signals, np.nan)))
            parts[-1] += beyond.log_density(np.where(stays, np.nan, signals))
        return float(logsumexp(parts, b=np.diff(ends)))

    def given(self, observed: Any) -> MixtureField:
        fields = tuple(part.given(observed) for part in self.fields)
        return replace(self, weights=self.weights_given(observed), fields=fields)

    def weights_given(self, observed: Any) -> Array:
        """Weights given further values, or the first of many; unchanged if no model has a finite density."""
        if not self.is_averaged:
            return self.weights
        values, logs = np.asarray(on_host(observed), dtype=float), np.full(len(self.fields), -np.inf)
        counts = np.cumsum(np.isfinite(values).sum(axis=1))
        first = np.where((counts <= max(MOST_WEIGHED, counts[0]))[:, None], values, np.nan)
        logs[self.weights > 0] = [np.log(weight) + part.log_density(first) for weight, part in self._parts]
        return np.asarray(softmax(logs)) if np.isfinite(logs.max()) else self.weights

    def distribution(self, values: Array) -> Array:
        return np.asarray(self._average(lambda part: part.distribution(values)))

    def quantile(self, probability: float) -> Array:
        return numeric_quantile(self, probability)

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether values are whole numbers."""
        return self.fields[0].is_discrete


def as_observed(signals: Any, n_signals: int, n_nodes: int, name: str = "signals") -> Any:
    """Finite signals or NaN, one row per signal, of the library they came from."""
    if not is_array_api_obj(signals) or is_numpy_array(signals):
        signals = np.atleast_2d(as_signals(signals, n_nodes, allow_nan=True))
    if signals.shape != (n_signals, n_nodes):
        raise ValueError(
            f"{name} must have one row for each of the {n_signals} inputs and one column for each of the {n_nodes} "
            f"nodes; got shape {signals.shape}. Use NaN for missing values."
        )
    if bool(array_namespace(signals).any(array_namespace(signals).isinf(signals))):
        raise ValueError(f"{name} must not be infinite; got infinity. Use NaN for missing values.")
    return signals
