"""One field: signals on the nodes of a graph, known in part, and closed under conditioning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_array
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import logsumexp, softmax
from scipy.stats import norm
from scipy.stats import t as student

from spectralgp._basics.arrays import non_negative_root, on_host, take
from spectralgp._basics.checks import Array, Indices, Mask, as_integer, as_signals
from spectralgp.model.fields.covariances import Covariance, ModalCovariance, SignalDistribution, rescaled
from spectralgp.model.fields.seen import EntryPosterior, PartialObservations
from spectralgp.model.fields.shrinkage import Shrinkage, t_log_density
from spectralgp.model.likelihoods import quantile_of
from spectralgp.model.signals import Units
from spectralgp.model.spectra import SpectralData

MOST_CHAINED = 6_000  # values of signals with holes whose joint covariance is written out for a density
MOST_WEIGHED = 1_000  # values by whose joint density weights of models change: the first of more
MOST_RESCALED = 2_000  # values of signals known in part whose joint covariance is written out for draws with tails


class PredictiveDistribution(ABC):
    """What is predicted of signals, in the units that the training signals came in.

    Second moments are of the signals without noise unless ``include_noise`` is set.
    """

    @property
    @abstractmethod
    def mean(self) -> Any:
        """Mean of the signals without noise, shape (n_signals, n_nodes), of the kind of the training signals."""

    @abstractmethod
    def variance(self, include_noise: bool = False, nodes: Indices | None = None) -> Any:
        """Variance at every node, or at those given by position.

        On a quadrature it is exact at given nodes, and by random probes at all of them.
        """

    @property
    @abstractmethod
    def variance_error(self) -> Array:
        """Root mean square standard error of `variance` at all nodes, one per signal; zero where it is exact."""

    def std(self, include_noise: bool = False, nodes: Indices | None = None) -> Any:
        """Standard deviation, as `variance`; a variance that probes make negative counts as zero."""
        return non_negative_root(self.variance(include_noise, nodes))

    @property
    @abstractmethod
    def values(self) -> Array:
        """What was observed as it is, and the mean of the rest."""

    @abstractmethod
    def values_variance(self) -> Array:
        """Variance of the values as they would be observed; zero where they were."""

    @abstractmethod
    def node_covariance(self, include_noise: bool = False) -> Array:
        """Covariance over the nodes of every signal, shape (n_signals, n_nodes, n_nodes)."""

    @abstractmethod
    def joint_covariance(self, include_noise: bool = False) -> Array:
        """Covariance over signals and nodes together, shape (n_signals, n_nodes, n_signals, n_nodes).

        ``reshape(n_signals * n_nodes, -1)`` gives the matrix that belongs to ``mean.ravel()``.
        """

    @abstractmethod
    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Any:
        """Joint draws over signals and nodes, shape (n_samples, n_signals, n_nodes)."""

    @abstractmethod
    def log_density(self, signals: Any, joint: bool = True) -> Any:
        """Log density of further values given those that were observed, noise included.

        Parameters
        ----------
        signals : array of shape (n_signals, n_nodes)
            Further values; NaN where there is none. What was observed already is not looked at.
        joint : bool, default=True
            One total for all signals together (float), or one number per signal taken alone, shape (n_signals,).
        """

    @abstractmethod
    def value_log_densities(self, signals: Array, nodes: Indices) -> Array:
        """Log density of each value alone at some nodes, noise included, shape (n_signals, n_some_nodes)."""

    def seen_with(self, observed_by: Any) -> PredictiveDistribution:
        """The law of values that are observed in a given way; of signals as they are there is but one."""
        return self

    def transforms(self, values: Array, random_state: np.random.Generator) -> Array | None:
        """Probability integral transforms of values, where they do not follow from means and deviations; else None."""
        return None

    @abstractmethod
    def distribution(self, values: Array) -> Array:
        """Probability that a value, with its noise, is no larger than the given one, entry by entry."""

    @property
    def is_discrete(self) -> bool:
        """Whether values are whole numbers."""
        return False

    def quantile(self, probability: float) -> Array:
        """Least values, with their noise, that are not exceeded with a probability, entry by entry."""
        if not 0 < probability < 1:
            advice = "Pass 0.05 and 0.95 for 90% intervals."
            raise ValueError(
                f"return_quantiles must hold probabilities between 0 and 1, exclusive; got {probability}. {advice}"
            )
        return self._quantile(probability)

    def _quantile(self, probability: float) -> Array:
        centre, reach = (np.asarray(on_host(one), dtype=float) for one in (self.mean, self.std(include_noise=True)))
        return quantile_of(self.distribution, probability, centre, reach, self.is_discrete)

    @abstractmethod
    def given(self, observed: Any) -> PredictiveDistribution:
        """The law given what was observed of the signals, NaN where nothing was; given nothing it is the same."""


@dataclass(frozen=True, eq=False)
class SharedLevels:
    """What values say of levels ``l ~ N(0, V)`` that signals have in common: equation (23d).

    With columns ``B``, the entries of each node or of all, ``l | y ~ N(P^-1 B^T Q y, P^-1)``, ``P = V^-1 + B^T Q B``.
    """

    seen: PartialObservations
    columns: Array  # B, shape (n_levels, n_signals, n_nodes)
    variances: Array  # of the levels beforehand

    @cached_property
    def _solved(self) -> Array:
        """``Q B``, shape (n_levels, n_signals, n_nodes); zero where nothing was observed."""
        return self.seen.solve(self.columns)

    @cached_property
    def _factor(self) -> Array:
        """Lower Cholesky factor of ``P``."""
        precision = np.tensordot(self._solved, self.columns, axes=((1, 2), (1, 2)))
        return cholesky(precision + np.diag(1 / self.variances), lower=True, check_finite=False)

    def drawn(self, normal: Array) -> Array:
        """Levels given the values, of standard normal numbers (n_levels,)."""
        return np.asarray(solve_triangular(self._factor, self._weights + normal, lower=True, trans=1))

    def _whitened(self, columns: Array) -> Array:
        flat = columns.reshape(len(self.columns), self.seen.weights.size)
        return solve_triangular(self._factor, flat, lower=True, check_finite=False).reshape(columns.shape)

    @cached_property
    def less(self) -> Array:
        """What levels take from ``Q``, by outer products."""
        return self._whitened(self._solved)

    @cached_property
    def _weights(self) -> Array:
        """Means of the levels, in the units of `deviations`."""
        return np.tensordot(self.less, self.seen.values, axes=2)

    @cached_property
    def deviations(self) -> Array:
        """What signals without noise may deviate by for their levels, as `less` has them."""
        image = self.seen.times(self._solved) - self.seen.covariance.noise_variance * self._solved
        return self._whitened(self.columns - image)

    @property
    def value_deviations(self) -> Array:
        """What values may deviate by: nothing where they were observed."""
        noise = self.seen.covariance.noise_variance
        return np.where(self.seen.observed, 0.0, self.deviations - noise * self.less)

    def moved(self, deviations: Array) -> Array:
        """What the means of levels add to those of signals or values."""
        return np.tensordot(self._weights, deviations, axes=1)

    @property
    def solution(self) -> Array:
        """What levels leave of ``Q y``."""
        return self.seen.solution - self.moved(self.less)

    @property
    def log_factor(self) -> float:
        """What is added to the log density of the values for levels that are not known."""
        logs = np.sum(np.log(np.diag(self._factor))) + 0.5 * np.sum(np.log(self.variances))
        return float(0.5 * np.sum(self._weights**2) - logs)


@dataclass(frozen=True, eq=False)
class Field(PredictiveDistribution):
    """Signals with a mean and a covariance, of which some values may have been observed.

    A signal is normal, or a multivariate t with a scale of its own (finite `freedom`): equations (17) and (18). Levels
    of nodes that training signals never showed are normal, and learnt from values that are observed there.
    """

    covariance: (
        SignalDistribution  # of all signals, noise included; a `Covariance` where values were observed, or may be
    )
    centred: Callable[[], Any]  # gives `centre`; on a large graph it takes a pass, which densities may do without
    units: Units
    freedom: float = np.inf  # degrees of freedom of a signal
    seen: EntryPosterior | None = None  # given what was observed; nothing if not given
    shown: Indices | None = None  # with `seen`: the signals that are predicted; others are only conditioned on
    mean_deviations: Callable[[], Sequence[Any]] | None = None  # arrays whose outer products add to the covariance
    learnt_from_them: Shrinkage | None = None  # from the first of the signals: their shares are taken out of scales
    joint: Callable[[], Field] | None = None  # these signals with others known beside them, where not all is here

    @cached_property
    def centre(self) -> Any:
        """Mean of the signals before anything was observed, as a block of the spectrum."""
        return self.centred()

    def given(self, observed: Any) -> Field:
        observed = np.asarray(on_host(as_observed(observed, self.n_signals, self._n_nodes, "observed")), dtype=float)
        new = np.isfinite(observed)
        if not new.any():
            return self
        if self.joint is not None:
            return self._joint.given(observed)
        values, weights = np.zeros(self.covariance.shape), np.zeros(self.covariance.shape)
        if self.seen is not None:
            values, weights = self._weighted.values.copy(), self._weighted.weights.copy()
        scaled = self.units.apply(observed) - self._centre_values[self._rows]
        values[self._rows] = np.where(new, scaled, values[self._rows])
        weights[self._rows] = np.where(new, 1.0, weights[self._rows])
        return replace(self, seen=PartialObservations(cast(Covariance, self.covariance), values, weights))

    @cached_property
    def _joint(self) -> Field:
        """What is conditioned on further values."""
        return self if self.joint is None else self.joint()

    @property
    def _weighted(self) -> PartialObservations:
        """What was observed, with a weight per entry."""
        return cast(PartialObservations, self.seen)

    @property
    def _n_nodes(self) -> int:
        return self.covariance.shape[1]

    @cached_property
    def _rows(self) -> Indices:
        return np.arange(self.covariance.shape[0]) if self.shown is None else self.shown

    @property
    def n_signals(self) -> int:
        """Number of signals that are predicted."""
        return self._rows.size

    @cached_property
    def _centre_values(self) -> Array:
        return np.asarray(on_host(self.covariance.basis.unload(self.centre)))

    @cached_property
    def _levels(self) -> SharedLevels | None:
        """What was learnt of levels that were not known, where values were observed at their nodes."""
        variances = self.units.offset_variance
        if self.seen is None or variances is None:
            return None
        seen = self._weighted
        nodes = np.flatnonzero((variances > 0) & seen.observed.any(axis=0))
        own = np.equal.outer(nodes, np.arange(self._n_nodes))[:, None].astype(float)
        columns = np.broadcast_to(own, (nodes.size, *seen.weights.shape))
        return SharedLevels(seen, columns, (variances / self._divisor**2)[nodes]) if nodes.size else None

    @cached_property
    def _level_variances(self) -> Array | None:
        """Variances of levels that nothing is known of, one per node; None where there are none."""
        variances = self.units.offset_variance
        if variances is not None and self.seen is not None:
            variances = np.where(self._weighted.observed.any(axis=0), 0.0, variances)
        return None if variances is None or not variances.any() else variances

    def _lengths(self, rows: Indices) -> tuple[Array, Array, Array]:
        """`PartialObservations.lengths` of the observed values of signals, about levels that are not known."""
        seen, levels = self._weighted, self._levels
        return seen.lengths(rows) if levels is None else seen.lengths(rows, levels.solution, levels.less)

    @cached_property
    def _tails(self) -> tuple[Array, Array]:
        """Degrees of freedom of every signal shown, and what its covariance is multiplied by: equation (17)."""
        if np.isinf(self.freedom) or self.seen is None:
            return np.full(self.n_signals, self.freedom), np.ones(self.n_signals)
        lengths, counts = np.zeros(self.n_signals), np.zeros(self.n_signals)  # which draws alone do not tell
        if self._weighted.is_written_out:
            lengths, _, counts = self._lengths(self._rows)
        if self.learnt_from_them is not None:
            left_out = self.learnt_from_them.left_out(lengths)[0]
            lengths = np.where(self._rows < self.learnt_from_them.n_signals, left_out, lengths)
        return self.freedom + counts, (self.freedom - 2 + lengths) / (self.freedom - 2 + counts)

    @cached_property
    def mean(self) -> Any:
        if self.seen is None:
            return self.units.restore(self.covariance.basis.unload(self.centre))
        levels = self._levels
        moved = 0.0 if levels is None else levels.moved(levels.deviations)
        return self.units.restore((self.seen.signal_mean + moved + self._centre_values)[self._rows])

    @property
    def values(self) -> Array:
        if self.seen is None:
            return np.asarray(on_host(self.mean))
        moved = 0.0 if self._levels is None else self._levels.moved(self._levels.value_deviations)
        return np.asarray(self.units.restore((self.seen.mean + moved + self._centre_values)[self._rows]))

    def values_variance(self) -> Array:
        if self.seen is None:
            return np.asarray(on_host(self.variance(include_noise=True)))
        variance = self.seen.variance[self._rows] * self._tails[1][:, None]
        if self._levels is not None:
            variance = variance + np.sum(np.square(self._levels.value_deviations[:, self._rows]), axis=0)
        return np.asarray(self._with_level_variance(variance * self._divisor**2))

    def _with_level_variance(self, variance: Any, nodes: Indices | None = None) -> Any:
        """Variances in the units that signals came in, with those of levels that nothing is known of."""
        if self._level_variances is None:
            return variance
        return variance + (self._level_variances if nodes is None else self._level_variances[nodes])

    def variance(self, include_noise: bool = False, nodes: Indices | None = None) -> Any:
        if self.seen is not None:
            known = self.seen.signal_variance[self._rows] + (self.covariance.noise_variance if include_noise else 0.0)
            known = known * self._tails[1][:, None]
            if self._levels is not None:
                known = known + np.sum(np.square(self._levels.deviations[:, self._rows]), axis=0)
            variance = self._with_level_variance(known * self._divisor**2)
            return variance if nodes is None else variance[:, nodes]
        diagonal = self._diagonal[0] if nodes is None else self.covariance.diagonal(nodes)[0]
        if not include_noise:
            diagonal = diagonal - self.covariance.noise_variance
            if nodes is not None or not self._diagonal[1].any():  # exact: what lies below zero is rounding
                xp = array_namespace(diagonal)
                diagonal = xp.where(diagonal > 0, diagonal, xp.zeros_like(diagonal))
        variance = self.units.restore_scale(self.units.restore_scale(diagonal, nodes), nodes)
        for one in self._mean_deviations:
            moved = self.units.restore_scale(one)
            variance = variance + (moved if nodes is None else on_host(take(moved, nodes, axis=1))) ** 2
        return self._with_level_variance(variance, nodes)

    @cached_property
    def _diagonal(self) -> tuple[Any, Array]:
        return self.covariance.diagonal()

    @cached_property
    def _mean_deviations(self) -> Sequence[Any]:
        return () if self.mean_deviations is None else self.mean_deviations()

    @cached_property
    def _stacked_deviations(self) -> Array:
        return np.stack([np.asarray(on_host(one)) for one in self._mean_deviations])

    @property
    def _divisor(self) -> Array:
        """What was divided by, on the host: one number, one per node, or a row of either per signal shown."""
        return np.asarray(on_host(self.units.divisor))

    @property
    def variance_error(self) -> Array:
        if self.seen is None:
            return self._diagonal[1] * np.sqrt(np.mean(self._divisor**4))
        return self.seen.variance_errors(self.variance())

    def _between(self, number: int, other: int, include_noise: bool) -> Array:
        """Covariance between the nodes of two of the signals shown; levels are common to all of them."""
        row, across = int(self._rows[number]), int(self._rows[other])
        if self.seen is None:
            covariance = self.covariance.between(row, across)
            noise = 0.0 if include_noise else -self.covariance.noise_variance
        else:
            covariance = self._weighted.signal_between(row, across)
            noise = self.covariance.noise_variance if include_noise else 0.0
        if number == other:
            covariance[np.diag_indices_from(covariance)] += noise
        if len(self._mean_deviations):
            covariance = covariance + self._stacked_deviations[:, number].T @ self._stacked_deviations[:, other]
        scales, divisors = np.sqrt(self._tails[1]), np.broadcast_to(self._divisor, (self.n_signals, self._n_nodes))
        covariance = covariance * (scales[number] * scales[other])
        if self._levels is not None:
            covariance = covariance + self._levels.deviations[:, row].T @ self._levels.deviations[:, across]
        covariance = covariance * np.multiply.outer(divisors[number], divisors[other])
        if self._level_variances is not None:
            covariance = covariance + np.diag(self._level_variances)
        return np.asarray(covariance)

    def among(self, chosen: Mask) -> Array:
        """Normal covariance of the values that a mask chooses, noise included, given what was observed."""
        rows, nodes = np.nonzero(chosen)
        if self.seen is not None:
            covariance = self.seen.among(self._rows[rows], nodes)
            if self._levels is not None:
                moved = self._levels.value_deviations[:, self._rows[rows], nodes]
                covariance = covariance + moved.T @ moved
        elif rows[0] == rows[-1]:
            return self._between(rows[0], rows[0], include_noise=True)[np.ix_(nodes, nodes)]
        else:
            covariance = cast(Covariance, self.covariance).submatrix(chosen)
        if len(self._mean_deviations):
            covariance += self._stacked_deviations[:, chosen].T @ self._stacked_deviations[:, chosen]
        divisors = np.broadcast_to(self._divisor, chosen.shape)[chosen]
        covariance *= np.multiply.outer(divisors, divisors)
        if self._level_variances is not None:
            covariance += np.where(np.equal.outer(nodes, nodes), self._level_variances[nodes], 0.0)
        return covariance

    def node_covariance(self, include_noise: bool = False) -> Array:
        return np.stack([self._between(one, one, include_noise) for one in range(self.n_signals)])

    def joint_covariance(self, include_noise: bool = False) -> Array:
        numbers = range(self.n_signals)
        blocks = [[self._between(one, other, include_noise) for other in numbers] for one in numbers]
        return np.array(blocks).transpose(0, 2, 1, 3)

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Any:
        draws = [self._drawn(random_state, include_noise) for _ in range(as_integer(n_samples, "n_samples", 1))]
        return array_namespace(draws[0]).stack(draws)

    def _drawn(self, random_state: np.random.Generator, include_noise: bool) -> Any:
        (freedom, factors), is_t = self._tails, np.isfinite(self.freedom)
        scales: Any = np.sqrt((freedom - 2) / random_state.chisquare(freedom))[:, None] if is_t else None
        at_nodes = (lambda drawn: drawn) if self.covariance.is_written_out else self.covariance.basis.unload
        signal: Any
        noise: Any = None
        if self.seen is not None:
            (whole,) = self.seen.signal_draws(1, random_state)
            signal = whole[self._rows]
        else:
            signal = at_nodes(self.covariance.draw_signal(random_state))
            if self.mean_deviations is not None:
                white = random_state.standard_normal(len(self._mean_deviations))
                signal = signal + sum(weight * one for weight, one in zip(white, self._mean_deviations, strict=True))
        if include_noise or is_t:
            noise = at_nodes(self.covariance.draw_noise(random_state))
            noise = noise if self.shown is None else noise[self._rows]
        if is_t:
            signal, noise = (one * np.sqrt(factors)[:, None] for one in self._rescaled(signal, noise, scales))
        if self._levels is not None:
            white = random_state.standard_normal(len(self._levels.columns))
            signal = signal + np.tensordot(white, self._levels.deviations[:, self._rows], axes=1)
        drawn = self.mean + self.units.restore_scale(signal + noise if include_noise else signal)
        if self._level_variances is None:
            return drawn
        return drawn + np.sqrt(self._level_variances) * random_state.standard_normal(self._n_nodes)

    def _rescaled(self, signal: Array, noise: Array, scales: Array) -> tuple[Array, Array]:
        """Drawn signals and noise, with what signals before it leave open of each scaled: equation (18)."""
        if self.seen is None and self.mean_deviations is None:
            return cast(ModalCovariance, self.covariance).rescaled(
                signal, noise, scales
            )  # tails are learnt where it is one
        if self.n_signals == 1 or signal.size > MOST_RESCALED:  # then it takes from the covariance between signals
            return signal * scales, noise * scales
        factor = self._joint_factor

        def moved(noisy: Array) -> Array:
            whitened = solve_triangular(factor, noisy.ravel(), lower=True, check_finite=False).reshape(noisy.shape)
            return np.asarray(factor @ (whitened * (scales - 1)).ravel()).reshape(noisy.shape)

        def solve(noisy: Array) -> Array:
            return np.asarray(cho_solve((factor, True), noisy.ravel(), check_finite=False)).reshape(noisy.shape)

        return rescaled(signal, noise, scales, self.covariance.noise_variance, moved, solve)

    @cached_property
    def _joint_factor(self) -> Array:
        """Cholesky factor of the normal covariance of all signals with noise, centred and scaled."""
        plain = replace(self, units=Units(), freedom=np.inf)
        joint = plain.joint_covariance(include_noise=True).reshape(self.n_signals * self._n_nodes, -1)
        return cholesky(joint, lower=True, check_finite=False)

    @cached_property
    def _log_evidence(self) -> float:
        """Log density of all that was observed, also beside these signals; normal, centred and scaled."""
        known = self._joint
        if known.seen is None:
            return 0.0
        return known._weighted.log_density()[0] + (0.0 if known._levels is None else known._levels.log_factor)

    def log_density(self, signals: Any, joint: bool = True) -> Any:
        signals = as_observed(signals, self.n_signals, self._n_nodes)
        xp = array_namespace(signals)
        is_open = self.mean_deviations is not None or self._level_variances is not None
        if self.seen is not None or is_open or bool(xp.any(xp.isnan(signals))):
            return self._log_density_of_some(np.asarray(on_host(signals), dtype=float), joint)
        errors = self.covariance.basis.load(self.units.apply(signals)) - self.centre
        return self.log_density_of(self.covariance.basis.read_block(errors), joint)

    def log_density_of(self, errors: SpectralData, joint: bool = False) -> Any:
        """Log density of complete signals about their mean, read on the spectrum."""
        lengths, logs = (self.covariance.chained if joint else self.covariance.alone)(errors)
        single = self.units.log_density(t_log_density(lengths, logs, self._n_nodes, self.freedom), self._n_nodes)
        return float(np.sum(single)) if joint else single

    def _log_density_of_some(self, signals: Array, joint: bool) -> Any:
        """Log densities of values that are not complete signals, or that others were observed beside."""
        rows = range(self.n_signals)
        if not joint:
            is_dense = self.seen is None and self.covariance.is_written_out
            return np.array([self._chain(signals, [row]) if is_dense else self._gain(signals, row) for row in rows])
        if np.isinf(self.freedom):
            return self._gain(signals)
        if self.seen is None:
            return self._chain(signals, rows)
        total, known = 0.0, self
        for row in rows:
            total += known._gain(signals, row)
            known = known.given(np.where(np.arange(len(rows))[:, None] == row, signals, np.nan))
        return total

    def _gain(self, signals: Array, row: int | None = None) -> float:
        """Log density of the further values of one signal, or of all, given what was observed of it and of others."""
        known = np.zeros(signals.shape, dtype=bool) if self.seen is None else self._weighted.observed[self._rows]
        if row is not None:
            known = known | (np.arange(self.n_signals)[:, None] != row)
        further = np.where(known, np.nan, signals)
        if not np.isfinite(further).any():
            return 0.0
        more = self.given(further)
        if np.isinf(self.freedom) or row is None:
            gain = more._log_evidence - self._log_evidence
        else:
            gain = more._marginal(row) - self._marginal(row)
        return gain - float(self.units.log_volume(np.isfinite(further)))

    def _marginal(self, row: int) -> float:
        """Log density of what was observed of a signal given all others."""
        if not self._weighted.is_written_out:
            got = f"got {np.count_nonzero(self._weighted.observed)} with those observed. Ask for fewer signals."
            raise ValueError(f"Y must hold fewer values for densities with heavy tails given others; {got}")
        return float(t_log_density(*self._lengths(self._rows[[row]]), self.freedom)[0])

    def _chain(self, signals: Array, rows: Sequence[int]) -> float:
        """Log density of what there is of some signals, each given those before it."""
        chosen = np.isfinite(signals) & np.isin(np.arange(len(signals)), rows)[:, None]
        counts = chosen.sum(axis=1)[chosen.any(axis=1)]
        n_values = int(counts.sum())
        if not n_values:
            return 0.0
        if counts.size > 1 and n_values > MOST_CHAINED:
            raise ValueError(
                f"joint must be False for {n_values} values of signals with holes, whose joint covariance would be too "
                "large; got True. Ask for the density of every signal alone, or of fewer signals."
            )
        factor = cholesky(self.among(chosen), lower=True, check_finite=False)
        errors = (signals - np.asarray(on_host(self.mean)))[chosen]
        whitened = solve_triangular(factor, errors, lower=True, check_finite=False)
        starts = np.cumsum(counts) - counts
        lengths, logs = (np.add.reduceat(one, starts) for one in (whitened**2, 2 * np.log(np.diag(factor))))
        return float(np.sum(t_log_density(lengths, logs, counts, self.freedom)))

    def _values(self, nodes: Indices | None = None) -> tuple[Any, tuple[Array, ...]]:
        """Distribution of each value alone, of SciPy, and its parameters: normal, or a t."""
        mean, std = self.mean if nodes is None else on_host(self.mean)[:, nodes], self.std(True, nodes)
        if np.isinf(self.freedom):
            return norm, (on_host(mean), on_host(std))
        freedom = self._tails[0][:, None]
        return student, (freedom, on_host(mean), on_host(std) * np.sqrt((freedom - 2) / freedom))

    def value_log_densities(self, signals: Array, nodes: Indices) -> Array:
        law, parameters = self._values(nodes)
        return np.asarray(law.logpdf(signals, *parameters))

    def distribution(self, values: Array) -> Array:
        law, parameters = self._values()
        return np.asarray(law.cdf(values, *parameters))

    def _quantile(self, probability: float) -> Array:
        law, parameters = self._values()
        return np.asarray(law.ppf(probability, *parameters))


@dataclass(frozen=True, eq=False)
class MixtureField(PredictiveDistribution):
    """Mixture of fields, one per model; those of weight zero are not asked.

    Observed values change weights of draws from a posterior of hyperparameters, and no others.
    """

    weights: Array  # add up to one
    fields: tuple[PredictiveDistribution, ...]
    is_averaged: bool = False  # whether weights are posterior probabilities of hyperparameters

    def _average(self, ask: Callable[[PredictiveDistribution], Any]) -> Any:
        """Weighted sum of what the models answer."""
        return sum(weight * ask(part) for weight, part in self._parts)

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
        """The models' errors added up: their random probes are the same."""
        return np.asarray(self._average(lambda part: part.variance_error))

    def node_covariance(self, include_noise: bool = False) -> Array:
        return self._about_mean(lambda part: part.node_covariance(include_noise), "na,nb->nab")

    def joint_covariance(self, include_noise: bool = False) -> Array:
        return self._about_mean(lambda part: part.joint_covariance(include_noise), "na,mb->namb")

    def _about_mean(self, ask: Callable[[PredictiveDistribution], Array], axes: str) -> Array:
        """Covariances of the models and of their means."""

        def moment(part: PredictiveDistribution) -> Array:
            apart = part.mean - self.mean
            return ask(part) + np.einsum(axes, apart, apart)

        return np.asarray(self._average(moment))

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Any:
        counts = random_state.multinomial(as_integer(n_samples, "n_samples", 1), self.weights)
        chosen = [(int(count), part) for count, part in zip(counts, self.fields, strict=True) if count]
        draws = [part.sample(count, random_state, include_noise) for count, part in chosen]
        return take(array_namespace(*draws).concat(draws), random_state.permutation(n_samples), axis=0)

    def log_density(self, signals: Any, joint: bool = True) -> Any:
        parts = [np.log(weight) + part.log_density(signals, joint) for weight, part in self._parts]
        total = logsumexp(parts, axis=0)
        return float(total) if joint else total

    def value_log_densities(self, signals: Array, nodes: Indices) -> Array:
        parts = [np.log(weight) + part.value_log_densities(signals, nodes) for weight, part in self._parts]
        return np.asarray(logsumexp(parts, axis=0))

    def given(self, observed: Any) -> MixtureField:
        fields = tuple(part.given(observed) for part in self.fields)
        return replace(self, weights=self.weights_given(observed), fields=fields)

    def weights_given(self, observed: Any) -> Array:
        """Weights given further values: of many by the first, and as they are if no model could tell."""
        if not self.is_averaged:
            return self.weights
        values, logs = np.asarray(on_host(observed), dtype=float), np.full(len(self.fields), -np.inf)
        counts = np.cumsum(np.isfinite(values).sum(axis=1))
        first = np.where((counts <= max(MOST_WEIGHED, counts[0]))[:, None], values, np.nan)
        logs[self.weights > 0] = [np.log(weight) + part.log_density(first) for weight, part in self._parts]
        return np.asarray(softmax(logs)) if np.isfinite(logs.max()) else self.weights

    def distribution(self, values: Array) -> Array:
        return np.asarray(self._average(lambda part: part.distribution(values)))

    @property
    def is_discrete(self) -> bool:
        return self.fields[0].is_discrete

    def transforms(self, values: Array, random_state: np.random.Generator) -> Array | None:
        # of the same random numbers in all models
        found: list[Any] = [part.transforms(values, deepcopy(random_state)) for _, part in self._parts]
        weights = self.weights[self.weights > 0]
        return None if found[0] is None else np.tensordot(weights, np.stack(found), axes=1)

    def seen_with(self, observed_by: Any) -> MixtureField:
        return replace(self, fields=tuple(part.seen_with(observed_by) for part in self.fields))


def as_observed(signals: Any, n_signals: int, n_nodes: int, name: str = "signals") -> Any:
    """Finite signals or NaN, one row per signal, of the library they came from."""
    if not is_array_api_obj(signals) or is_numpy_array(signals):
        signals = np.atleast_2d(as_signals(signals, n_nodes, allow_nan=True))
    if signals.shape != (n_signals, n_nodes):
        raise ValueError(
            f"{name} must have one row for each of the {n_signals} inputs and one column for each of the {n_nodes} "
            f"nodes; got shape {signals.shape}. Fill rows of which nothing is known with NaN."
        )
    if bool(array_namespace(signals).any(array_namespace(signals).isinf(signals))):
        raise ValueError(f"{name} must not be infinite; got infinity. NaN stands for what was not observed.")
    return signals
