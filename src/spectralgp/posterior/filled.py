"""Signals given what was observed of them: filling in, and nowcasting."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spectralgp._arrays import non_negative_root
from spectralgp._checks import Array
from spectralgp.masked import Completion, EigenCovariance, MaskedCovariance
from spectralgp.signals import Incomplete
from spectralgp.units import Units

NO_COVARIANCE = (
    "return_cov must be False on a large graph, where covariances of all nodes are not written out; got True. "
    "Ask for std, or draw samples."
)


@dataclass(frozen=True, eq=False)
class Filled:
    """Distribution of signals given what was observed of them and of others; it answers as a `Prediction` does.

    Everything is in the units that the signals came in.

    Parameters
    ----------
    completion : Completion
        Of all signals that are conditioned on.
    rows : ndarray of int
        Those that are asked for.
    """

    completion: Completion
    rows: NDArray[np.intp]

    @property
    def _units(self) -> Units:
        return self.completion.signals.units

    @cached_property
    def mean(self) -> Array:
        """Mean of the signals without noise, shape (n_rows, n_nodes)."""
        return np.asarray(self._units.mean(self.completion.signal_mean[self.rows]))

    @property
    def values(self) -> Array:
        """What was observed as it is, and the mean of the rest."""
        return np.asarray(self._units.mean(self.completion.mean[self.rows]))

    @property
    def values_std(self) -> Array:
        """Standard deviation of the values as they would be observed; zero where they were."""
        return np.asarray(self._units.std(np.sqrt(self.completion.variance[self.rows])))

    def variance(self, include_noise: bool = False, nodes: NDArray[np.intp] | None = None) -> Array:
        """Variance at every node, or at some."""
        noise = self.completion.complete.noise_variance if include_noise else 0.0
        variance = np.asarray((self.completion.signal_variance[self.rows] + noise) * self._units.divisor**2)
        return variance if nodes is None else variance[:, nodes]

    @property
    def variance_error(self) -> Array:
        """Root mean square standard error of `variance`, one number a signal: that of draws where there are any."""
        n_draws = self.completion.n_draws
        if n_draws is None:
            return np.zeros(self.rows.size)
        return np.sqrt(2 / n_draws * np.mean(np.square(self.variance()), axis=1))

    def std(self, include_noise: bool = False, nodes: NDArray[np.intp] | None = None) -> Array:
        """Standard deviation, as `variance`."""
        return np.asarray(non_negative_root(self.variance(include_noise, nodes)))

    def node_covariance(self, include_noise: bool = False) -> Array:
        """Covariance over the nodes for each signal, shape (n_rows, n_nodes, n_nodes)."""
        return np.stack([self._between(row, row, include_noise) for row in self.rows])

    def joint_covariance(self, include_noise: bool = False) -> Array:
        """Covariance over signals and nodes together, shape (n_rows, n_nodes, n_rows, n_nodes)."""
        blocks = [[self._between(row, other, include_noise) for other in self.rows] for row in self.rows]
        return np.array(blocks).transpose(0, 2, 1, 3)

    @cached_property
    def _moved(self) -> Array:
        """What the signals without noise deviate by for what was not observed."""
        return self.completion.deviations - self.completion.complete.noise_variance * self.completion.pulled

    def _between(self, row: int, other: int, include_noise: bool) -> Array:
        """Covariance of the nodes of one signal with those of another: equation (21)."""
        complete = self.completion.complete
        if not isinstance(complete, EigenCovariance):
            raise ValueError(NO_COVARIANCE)
        noise, divisor = complete.noise_variance, np.broadcast_to(self._units.divisor, complete.shape[1:])
        given = -(noise**2) * complete.inverse_between(row, other)
        if row == other:
            given[np.diag_indices_from(given)] += noise * (2.0 if include_noise else 1.0)
        moved = self._moved[:, row].T @ self._moved[:, other]
        return np.asarray((given + moved) * np.multiply.outer(divisor, divisor))

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Array:
        """Joint draws over signals and nodes, shape (n_samples, n_rows, n_nodes)."""
        draws = self.completion.signal_draws(n_samples, random_state)[:, self.rows]
        if include_noise:
            noise = np.sqrt(self.completion.complete.noise_variance)
            draws = draws + noise * random_state.standard_normal(draws.shape)
        return np.asarray(self._units.mean(draws))

    def log_evidence(self) -> float:
        """Log density of all that was observed, in the units that it was read in."""
        return self.completion.log_density()[0]

    def log_density(self, signals: Array, joint: bool = True) -> float | Array:
        """Log density of further values given those that were observed.

        Parameters
        ----------
        signals : ndarray of shape (n_rows, n_nodes)
            Further values; NaN where there is none. What was observed already is not looked at.
        joint : bool, default=True
            Of all signals together, or of each alone.
        """
        if joint:
            return self._gained(signals, np.ones(self.rows.size, dtype=bool))
        return np.array([self._gained(signals, np.arange(self.rows.size) == row) for row in range(self.rows.size)])

    def _gained(self, signals: Array, chosen: NDArray[np.bool_]) -> float:
        """What the log density of all that was observed gains by further values of some of the signals."""
        known, completion = self.completion.signals, self.completion
        further = np.full(known.shape, np.nan)
        further[self.rows[chosen]] = self._units.apply(signals)[chosen]
        added = np.isfinite(further) & ~known.observed
        if not added.any():
            return 0.0
        more = Incomplete.of(np.where(added, further, known.values), known.units)
        together = Completion(MaskedCovariance(completion.complete, more.observed), more, completion.carried)
        return together.log_density()[0] - self.log_evidence() - float(known.units.log_volume(added))
