"""One field: signals on the nodes of a graph, known in part, and closed under conditioning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_array
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import logsumexp
from scipy.stats import norm
from scipy.stats import t as student

from spectralgp._basics.arrays import non_negative_root, on_host, take
from spectralgp._basics.checks import Array, Indices, as_integer, as_signals
from spectralgp.fields.covariances import Covariance, Distribution, Modal
from spectralgp.fields.laws import rescaled, t_log_density
from spectralgp.fields.seen import Seen
from spectralgp.fields.shrinkage import Shrinkage
from spectralgp.signals.units import Units
from spectralgp.spectra import SpectralData

MOST_CHAINED = 6_000  # values of signals with holes whose joint covariance is written out for a density
MOST_RESCALED = 2_000  # values of signals known in part whose joint covariance is written out for draws with tails
TOO_MANY = (
    "joint must be False for {n_values} values of signals with holes, whose joint covariance would be too large; got "
    "True. Ask for the density of every signal alone, or of fewer signals."
)


class Predictive(ABC):
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

    @abstractmethod
    def given(self, observed: Any) -> Predictive:
        """The law given what was observed of the signals, NaN where nothing was; given nothing it is the same."""


@dataclass(frozen=True, eq=False)
class Field(Predictive):
    """Signals with a mean and a covariance, of which some values may have been observed.

    A signal is normal, or a multivariate t whose scale is its own (finite `freedom`). Given part of itself it is a t
    again: equation (25). Several signals are conditioned on with their covariance, and their joint density is a product
    in the order given: equation (26).

    Parameters
    ----------
    covariance : Distribution
        Of all signals, noise included; a `Covariance` where values were observed, or may be.
    centred : callable
        That gives `centre`, their mean before anything was observed, centred and scaled, as a block of the spectrum. On
        a large graph it takes a pass, which densities may do without.
    units : Units
        That the signals came in.
    freedom : float, default=inf
        Degrees of freedom of a signal.
    seen : Seen, optional
        What was observed; nothing if not given.
    shown : ndarray of int, optional
        The signals that are predicted; all if not given. Others are only conditioned on.
    spread : callable, optional
        That gives what the mean may deviate by besides, a sequence of arrays (n_signals, n_nodes) whose outer products
        add to the covariance.
    learnt_from_them : Shrinkage, optional
        What was learnt from the first of the signals, whose share in it is taken out of the scale of each.
    onward : callable, optional
        What conditions on observed values, where `covariance` is not all there is to know.
    """

    covariance: Distribution
    centred: Callable[[], Any]
    units: Units
    freedom: float = np.inf
    seen: Seen | None = None
    shown: Indices | None = None
    spread: Callable[[], Sequence[Any]] | None = None
    learnt_from_them: Shrinkage | None = None
    onward: Callable[[Array], Field] | None = None

    @cached_property
    def centre(self) -> Any:
        """Mean of the signals before anything was observed, as a block of the spectrum."""
        return self.centred()

    # ------------------------------------------------------------------------------------------------- conditioning

    def given(self, observed: Any) -> Field:
        observed = np.asarray(on_host(_as_observed(observed, self.n_signals, self._n_nodes, "observed")), dtype=float)
        new = np.isfinite(observed)
        if not new.any():
            return self
        if self.onward is not None:
            return self.onward(observed)
        values, weights = np.zeros(self.covariance.shape), np.zeros(self.covariance.shape)
        if self.seen is not None:
            values, weights = self.seen.values.copy(), self.seen.weights.copy()
        places = np.zeros(self.covariance.shape, dtype=bool)
        places[self._rows] = new
        scaled = np.zeros(self.covariance.shape)
        scaled[self._rows] = self.units.apply(observed)
        values[places] = (scaled - self._centre_values)[places]
        weights[places] = 1.0
        return replace(self, seen=Seen(cast(Covariance, self.covariance), values, weights))

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

    @property
    def _noise(self) -> float:
        return self.covariance.noise_variance

    @property
    def _basis(self) -> Any:
        return self.covariance.nodes.basis

    @cached_property
    def _centre_values(self) -> Array:
        return np.asarray(on_host(self._basis.unload(self.centre)))

    # --------------------------------------------------------------------------------------- the scale of each signal

    @cached_property
    def _lengths(self) -> list[tuple[float, float, int]]:
        """Squared length, log determinant and number of what was observed of every signal shown, given all others."""
        if self.seen is None or not self.seen.has_groups:
            return [(0.0, 0.0, 0)] * self.n_signals
        return [self.seen.length(int(row)) for row in self._rows]

    @cached_property
    def _tails(self) -> tuple[Array, Array]:
        """Degrees of freedom of every signal, and what its covariance is multiplied by: equation (25).

        Where what was observed is known by draws alone, the covariance stays.
        """
        if np.isinf(self.freedom) or self.seen is None:
            return np.full(self.n_signals, self.freedom), np.ones(self.n_signals)
        counts = np.array([count for *_, count in self._lengths])
        lengths = np.array([length for length, *_ in self._lengths])
        if self.learnt_from_them is not None:
            left_out = self.learnt_from_them.left_out(lengths)[0]
            lengths = np.where(self._rows < self.learnt_from_them.n_signals, left_out, lengths)
        return self.freedom + counts, (self.freedom - 2 + lengths) / (self.freedom - 2 + counts)

    # ------------------------------------------------------------------------------------------------------- moments

    @cached_property
    def mean(self) -> Any:
        if self.seen is None:
            mean = self._basis.unload(self.centre)
            return self.units.mean(mean if self.shown is None else mean[self._rows])
        return self.units.mean((self.seen.signal_mean + self._centre_values)[self._rows])

    @property
    def values(self) -> Array:
        if self.seen is None:
            return np.asarray(on_host(self.mean))
        return np.asarray(self.units.mean((self.seen.mean + self._centre_values)[self._rows]))

    def values_variance(self) -> Array:
        if self.seen is None:
            return np.asarray(on_host(self.variance(include_noise=True)))
        variance = self.seen.variance[self._rows] * self._tails[1][:, None]
        return np.asarray(variance * np.asarray(on_host(self.units.divisor)) ** 2)

    def variance(self, include_noise: bool = False, nodes: Indices | None = None) -> Any:
        if self.seen is not None:
            known = self.seen.signal_variance[self._rows] + (self._noise if include_noise else 0.0)
            variance = known * self._tails[1][:, None] * np.asarray(on_host(self.units.divisor)) ** 2
            return variance if nodes is None else variance[:, nodes]
        diagonal = self._diagonal[0] if nodes is None else self.covariance.diagonal(nodes)[0]
        if not include_noise:
            diagonal = diagonal - self._noise
            diagonal = diagonal if nodes is None and self._diagonal[1].any() else _not_negative(diagonal)
        if self.shown is not None:
            diagonal = diagonal[self._rows]
        scaled = self.units.std(self.units.std(diagonal, nodes), nodes)
        return scaled + self._open_variance(nodes)

    @cached_property
    def _diagonal(self) -> tuple[Any, Array]:
        return self.covariance.diagonal()

    @cached_property
    def _spread(self) -> Sequence[Any]:
        return () if self.spread is None else self.spread()

    @cached_property
    def _stacked_spread(self) -> Array:
        return np.stack([np.asarray(on_host(one)) for one in self._spread])

    def _open_variance(self, nodes: Indices | None) -> Any:
        """What `spread` adds to variances, in the units that the signals came in."""
        total: Any = 0.0
        for one in self._spread:
            moved = self.units.std(one)
            total = total + (moved if nodes is None else on_host(take(moved, nodes, axis=1))) ** 2
        return total

    @property
    def variance_error(self) -> Array:
        """Root mean square standard error of `variance`, one per signal: that of draws or of probes."""
        scales = np.asarray(on_host(self.units.divisor))
        if self.seen is None:
            return self._diagonal[1][self._rows] * np.sqrt(np.mean(scales**4))
        if self.seen.n_draws is None:
            return np.zeros(self.n_signals)
        return np.sqrt(2 / self.seen.n_draws * np.mean(np.square(self.variance()), axis=1))

    def _between(self, number: int, other: int, include_noise: bool) -> Array:
        """Covariance between the nodes of two of the signals shown."""
        row, across = int(self._rows[number]), int(self._rows[other])
        if self.seen is None:
            covariance = self.covariance.between(row, across)
            noise = 0.0 if include_noise else -self._noise
        else:
            covariance = self.seen.signal_between(row, across)
            noise = self._noise if include_noise else 0.0
        if number == other:
            covariance[np.diag_indices_from(covariance)] += noise
        if self.spread is not None:
            covariance = covariance + self._stacked_spread[:, number].T @ self._stacked_spread[:, other]
        scales = np.sqrt(self._tails[1])
        divisor = np.broadcast_to(np.asarray(on_host(self.units.divisor)), self.covariance.shape[1:])
        return np.asarray(covariance * np.multiply.outer(divisor, divisor) * (scales[number] * scales[other]))

    def node_covariance(self, include_noise: bool = False) -> Array:
        return np.stack([self._between(one, one, include_noise) for one in range(self.n_signals)])

    def joint_covariance(self, include_noise: bool = False) -> Array:
        numbers = range(self.n_signals)
        blocks = [[self._between(one, other, include_noise) for other in numbers] for one in numbers]
        return np.array(blocks).transpose(0, 2, 1, 3)

    # --------------------------------------------------------------------------------------------------------- draws

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Any:
        draws = [self._drawn(random_state, include_noise) for _ in range(as_integer(n_samples, "n_samples", 1))]
        return self._basis.stack(draws)

    def _drawn(self, random_state: np.random.Generator, include_noise: bool) -> Any:
        complete, basis = self.covariance, self._basis
        is_t = np.isfinite(self.freedom)
        freedom, factors = self._tails
        scales: Any = np.sqrt((freedom - 2) / random_state.chisquare(freedom))[:, None] if is_t else 1.0
        signal: Any
        if self.seen is not None:
            signal = self.seen.signal_draws(1, random_state)[0][self._rows]
        else:
            # blocks over the nodes are columns on a quadrature, and values elsewhere
            signal = complete.draw_signal(random_state)
            signal = signal if complete.is_written_out else basis.unload(signal)
            signal = signal if self.shown is None else signal[self._rows]
            if self.spread is not None:
                white = random_state.standard_normal(len(self._spread))
                signal = signal + sum(weight * one for weight, one in zip(white, self._spread, strict=True))
        noise: Any = 0.0
        if include_noise or is_t:
            noise = complete.draw_noise(random_state)
            noise = noise if complete.is_written_out else basis.unload(noise)
            noise = noise if self.shown is None else noise[self._rows]
        if is_t:
            signal, noise = (one * np.sqrt(factors)[:, None] for one in self._rescaled(signal, noise, scales))
        return self.mean + self.units.std(signal + noise if include_noise else signal)

    def _rescaled(self, signal: Array, noise: Array, scales: Array) -> tuple[Array, Array]:
        """Drawn signals and noise, with what signals before it leave open of each scaled: equation (26).

        Where their joint covariance is too large to write out, the deviation of each is scaled as a whole, which takes
        from the covariance between signals.
        """
        if self.seen is None and self.spread is None:
            return cast(Modal, self.covariance).rescaled(signal, noise, scales)  # tails are learnt where it is one
        if self.n_signals == 1 or signal.size > MOST_RESCALED:
            return signal * scales, noise * scales
        factor = self._joint_factor

        def moved(noisy: Array) -> Array:
            whitened = solve_triangular(factor, noisy.ravel(), lower=True, check_finite=False).reshape(noisy.shape)
            return np.asarray(factor @ (whitened * (scales - 1)).ravel()).reshape(noisy.shape)

        def solve(noisy: Array) -> Array:
            return np.asarray(cho_solve((factor, True), noisy.ravel(), check_finite=False)).reshape(noisy.shape)

        return rescaled(signal, noise, scales, self._noise, moved, solve)

    @cached_property
    def _joint_factor(self) -> Array:
        """Cholesky factor of the normal covariance of all signals with noise, centred and scaled."""
        size, divisor = self.n_signals * self._n_nodes, np.asarray(on_host(self.units.divisor))
        roots = np.multiply.outer(np.sqrt(self._tails[1]), np.broadcast_to(divisor, (self._n_nodes,))).ravel()
        joint = self.joint_covariance(include_noise=True).reshape(size, size)
        return cholesky(joint / np.multiply.outer(roots, roots), lower=True, check_finite=False)

    # ----------------------------------------------------------------------------------------------------- densities

    def log_evidence(self) -> float:
        """Log density of all that was observed, normal and in the units that it was read in."""
        return 0.0 if self.seen is None else self.seen.log_density()[0]

    def log_density(self, signals: Any, joint: bool = True) -> Any:
        signals = _as_observed(signals, self.n_signals, self._n_nodes)
        xp = array_namespace(signals)
        has_holes = bool(xp.any(xp.isnan(signals)))
        if self.seen is not None or has_holes or self._is_open:
            return self._log_density_of_some(np.asarray(on_host(signals), dtype=float), joint)
        errors = self._basis.load(self.units.apply(signals)) - self.centre
        return self.log_density_of(self._basis.read_block(errors), joint)

    @property
    def _is_open(self) -> bool:
        """Whether the spread counts in densities; on a quadrature what holes leave open is not part of them."""
        return self.spread is not None and self.covariance.is_written_out

    def log_density_of(self, errors: SpectralData, joint: bool = False) -> Any:
        """Log density of complete signals about their mean, read on the spectrum."""
        lengths, logs = (self.covariance.chained if joint else self.covariance.alone)(errors)
        return self._densities(lengths, logs, joint)

    def _densities(self, lengths: Array, logs: Array, joint: bool) -> Any:
        single = self.units.log_density(t_log_density(lengths, logs, self._n_nodes, self.freedom), self._n_nodes)
        return float(np.sum(single)) if joint else single

    def _log_density_of_some(self, signals: Array, joint: bool) -> Any:
        """Log densities of values that are not complete signals, or that others were observed beside."""
        if joint and np.isinf(self.freedom):
            return self._gained(signals)
        if self.seen is None:
            return self._chain(signals) if joint else self._alone(signals)
        if not joint:
            rows = range(self.n_signals)
            return np.array([self._of_row(self, signals, row) for row in rows])
        total, known = 0.0, self
        for row in range(self.n_signals):
            total += self._of_row(known, signals, row)
            known = known.given(np.where(np.arange(self.n_signals)[:, None] == row, signals, np.nan))
        return total

    def _gained(self, signals: Array) -> float:
        """What the log density of all that was observed gains by further values, where the law is normal."""
        further = self._further(signals)
        if not np.isfinite(further).any():
            return 0.0
        more = self.given(further)
        return more.log_evidence() - self._evidence_before(more) - float(self.units.log_volume(np.isfinite(further)))

    def _evidence_before(self, more: Field) -> float:
        """Log density of what was observed before, among all that `more` was."""
        if self.seen is not None or self.onward is None:
            return self.log_evidence()
        assert more.seen is not None
        assert more.shown is not None
        weights = more.seen.weights.copy()
        weights[more.shown] = 0.0
        return Seen(more.seen.covariance, more.seen.values, weights).log_density()[0]

    def _further(self, signals: Array) -> Array:
        """Values that were not observed before."""
        if self.seen is None:
            return signals
        return np.where(self.seen.observed[self._rows], np.nan, signals)

    def _of_row(self, known: Field, signals: Array, row: int) -> float:
        """Log density of the further values of one signal, given what was observed of it and of others."""
        further = np.where(np.arange(self.n_signals)[:, None] == row, known._further(signals), np.nan)
        seen = np.isfinite(further)
        if not seen.any():
            return 0.0
        more = known.given(further)
        if np.isinf(self.freedom):
            gained = more.log_evidence() - known.log_evidence()
        else:
            gained = float(more._marginal(row) - known._marginal(row))
        return gained - float(self.units.log_volume(seen))

    def _marginal(self, row: int) -> Array:
        """Log density of what was observed of a signal given all others."""
        assert self.seen is not None
        if not self.seen.has_groups:
            raise ValueError(TOO_MANY.format(n_values=int(np.count_nonzero(self.seen.observed))))
        length, logs, count = self.seen.length(int(self._rows[row]))
        return t_log_density(np.array(length), logs, count, self.freedom)

    def _alone(self, signals: Array) -> Array:
        """Log densities of what there is of every signal alone."""
        if not self.covariance.is_written_out:
            return np.array([self._of_row(self, signals, row) for row in range(self.n_signals)])
        errors, seen = signals - np.asarray(on_host(self.mean)), np.isfinite(signals)
        logs = np.zeros(self.n_signals)
        for row in range(self.n_signals):
            if seen[row].any():
                covariance = self._between(row, row, include_noise=True)[np.ix_(seen[row], seen[row])]
                logs[row] = _whitened_density(errors[row, seen[row]], covariance, [0], self.freedom)
        return logs

    def _chain(self, signals: Array) -> float:
        """Log density of what there is of all signals, each given those before it."""
        seen = np.isfinite(signals)
        n_values = int(np.count_nonzero(seen))
        if n_values > MOST_CHAINED:
            raise ValueError(TOO_MANY.format(n_values=n_values))
        if not n_values:
            return 0.0
        size = self.n_signals * self._n_nodes
        covariance = self.joint_covariance(include_noise=True).reshape(size, size)[np.ix_(seen.ravel(), seen.ravel())]
        counts = seen.sum(axis=1)
        starts = np.concatenate([[0], np.cumsum(counts[counts > 0])[:-1]])
        return _whitened_density((signals - np.asarray(self.mean))[seen], covariance, starts, self.freedom)

    def value_log_densities(self, signals: Array, nodes: Indices) -> Array:
        mean, std = on_host(self.mean)[:, nodes], self.std(include_noise=True, nodes=nodes)
        if np.isinf(self.freedom):
            return np.asarray(norm.logpdf(signals, mean, std))
        freedom = self._tails[0][:, None]
        return np.asarray(student.logpdf(signals, freedom, mean, std * np.sqrt((freedom - 2) / freedom)))


@dataclass(frozen=True, eq=False)
class MixedField(Predictive):
    """Mixture of fields, one per model; weights stay as they are, whatever is observed.

    Means and covariances are those of the mixture, densities and samples are exact. Models of weight zero are not
    evaluated.

    Parameters
    ----------
    weights : ndarray of shape (n_models,)
        They add up to one.
    fields : tuple of Field
        One per model.
    """

    weights: Array
    fields: tuple[Field, ...]

    @cached_property
    def _parts(self) -> list[tuple[float, Field]]:
        return [(float(weight), part) for weight, part in zip(self.weights, self.fields, strict=True) if weight > 0]

    @cached_property
    def mean(self) -> Any:
        total: Any = 0.0
        for weight, part in self._parts:
            total = total + weight * part.mean
        return total

    @cached_property
    def values(self) -> Array:
        total: Any = sum(weight * part.values for weight, part in self._parts)
        return np.asarray(total)

    def values_variance(self) -> Array:
        parts = self._parts
        total: Any = sum(weight * (part.values_variance() + (part.values - self.values) ** 2) for weight, part in parts)
        return np.asarray(total)

    def variance(self, include_noise: bool = False, nodes: Indices | None = None) -> Any:
        total: Any = 0.0
        for weight, part in self._parts:
            apart = part.mean - self.mean
            apart = apart if nodes is None else on_host(take(apart, nodes, axis=1))
            total = total + weight * (part.variance(include_noise, nodes) + apart**2)
        return total

    @property
    def variance_error(self) -> Array:
        """The models' errors added up: their random probes are the same."""
        return np.sum([weight * part.variance_error for weight, part in self._parts], axis=0)

    def node_covariance(self, include_noise: bool = False) -> Array:
        total = np.zeros((*self.mean.shape, self.mean.shape[1]))
        for weight, part in self._parts:
            apart = part.mean - self.mean
            total += weight * (part.node_covariance(include_noise) + apart[:, :, None] * apart[:, None, :])
        return total

    def joint_covariance(self, include_noise: bool = False) -> Array:
        total = np.zeros(self.mean.shape * 2)
        for weight, part in self._parts:
            apart = part.mean - self.mean
            total += weight * (part.joint_covariance(include_noise) + np.multiply.outer(apart, apart))
        return total

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Any:
        counts = random_state.multinomial(n_samples, self.weights)
        draws = [
            part.sample(int(count), random_state, include_noise)
            for count, part in zip(counts, self.fields, strict=True)
            if count
        ]
        return take(array_namespace(*draws).concat(draws), random_state.permutation(n_samples), axis=0)

    def log_density(self, signals: Any, joint: bool = True) -> Any:
        parts = [np.log(weight) + part.log_density(signals, joint) for weight, part in self._parts]
        total = logsumexp(parts, axis=0)
        return float(total) if joint else total

    def value_log_densities(self, signals: Array, nodes: Indices) -> Array:
        parts = [np.log(weight) + part.value_log_densities(signals, nodes) for weight, part in self._parts]
        return np.asarray(logsumexp(parts, axis=0))

    def given(self, observed: Any) -> MixedField:
        return MixedField(self.weights, tuple(part.given(observed) for part in self.fields))


def _whitened_density(errors: Array, covariance: Array, starts: Any, freedom: float) -> float:
    """Log density of errors in groups that begin at `starts`, each a t given those before it."""
    factor = cholesky(covariance, lower=True, check_finite=False)
    whitened = solve_triangular(factor, errors, lower=True, check_finite=False)
    lengths, logs = (np.add.reduceat(one, starts) for one in (whitened**2, 2 * np.log(np.diag(factor))))
    counts = np.diff(np.append(starts, errors.size))
    return float(np.sum(t_log_density(lengths, logs, counts, freedom)))


def _not_negative(diagonal: Any) -> Any:
    """Variances without the rounding that may lie below zero."""
    xp = array_namespace(diagonal)
    return xp.where(diagonal > 0, diagonal, xp.zeros_like(diagonal))


def _as_observed(signals: Any, n_signals: int, n_nodes: int, name: str = "signals") -> Any:
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
