"""Signals with holes as the likelihood reads them: second moments expected over what was not observed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.spectra.data import SpectralData, SpectralSignals


@dataclass(frozen=True, eq=False)
class Spread:
    """Covariance of signals in the graph Fourier domain, as a sum of outer products of deviations.

    Where there are more deviations than signals, what they add up to in each frequency is smaller than they are.

    Parameters
    ----------
    deviations : ndarray of shape (n_deviations, n_signals, n_nodes)
        Their Fourier coefficients.
    """

    deviations: Array

    @cached_property
    def matrices(self) -> Array | None:
        """Covariance of the signals in each frequency, shape (n_nodes, n_signals, n_signals), if that is smaller."""
        n_deviations, n_signals, _ = self.deviations.shape
        if n_deviations <= n_signals:
            return None
        across = np.ascontiguousarray(self.deviations.transpose(2, 1, 0))
        return across @ across.transpose(0, 2, 1)

    def energies(self, vectors: Array) -> Array:
        """Expected energies of combinations, one for each column of `vectors`, shape (n_rows, n_nodes)."""
        if self.matrices is None:
            return np.sum(np.square(vectors.T @ self.deviations), axis=0)
        return np.sum((self.matrices @ vectors) * vectors, axis=1).T

    def gram(self, vectors: Array, scales: Array) -> Array:
        """Expected products of the combinations after each frequency of each was scaled."""
        if self.matrices is None:
            scaled = (vectors.T @ self.deviations) * scales
            return np.einsum("sij,skj->ik", scaled, scaled, optimize=True)
        rotated = vectors.T @ self.matrices @ vectors
        return np.einsum("ij,jik,kj->ik", scales, rotated, scales, optimize=True)

    def node_gram(self, vectors: Array, scales: Array) -> Array:
        """The same with the two sides exchanged, shape (n_nodes, n_nodes)."""
        scaled = ((vectors.T @ self.deviations) * scales).reshape(-1, scales.shape[1])
        return scaled.T @ scaled


@dataclass(frozen=True, eq=False)
class ExpectedSignals(SpectralData):
    """Signals known by their mean and spread: every square is an expected one.

    Parameters
    ----------
    mean : SpectralSignals
        The mean; what is carried over stands below it, and is known.
    spread : Spread
        The covariance of the signals.
    vectors : ndarray of shape (n_signals, n_rows), optional
        Combinations of the signals that the rows are; the signals themselves if not given.
    """

    mean: SpectralSignals
    spread: Spread
    vectors: Array | None = None

    @property
    def _combinations(self) -> Array:
        return np.eye(self.spread.deviations.shape[1]) if self.vectors is None else self.vectors

    @property
    def multiplicities(self) -> Array:
        """One each: every eigenvalue is known."""
        return self.mean.multiplicities

    @property
    def n_observations(self) -> int:
        return self.mean.n_observations

    @property
    def signed(self) -> Array:
        """Not known: squares of what was not observed are more than those of its mean."""
        raise ValueError("data must be complete to have coefficients; got signals of which some values are expected.")

    @cached_property
    def energies(self) -> Array:
        """``E[Z_ij^2]``."""
        return self.mean.energies + self.spread.energies(self._combinations)

    def rotate(self, vectors: Array) -> ExpectedSignals:
        """``U^T Y V``."""
        n_signals = self._combinations.shape[1]
        own = vectors[:n_signals, :n_signals] if vectors.shape[0] == 2 * n_signals else vectors
        return ExpectedSignals(self.mean.rotate(vectors), self.spread, self._combinations @ own)

    def gram(self, scales: Array) -> Array:
        """``E[sum_j (s_ij Z_ij) (s_kj Z_kj)]``."""
        return self.mean.gram(scales) + self.spread.gram(self._combinations, scales)

    def node_gram(self, scales: Array) -> Array:
        """``E[sum_i (s_ij Z_ij) (s_ik Z_ik)]``."""
        return self.mean.node_gram(scales) + self.spread.node_gram(self._combinations, scales)

    @property
    def carried_energies(self) -> tuple[Array, Array]:
        """Those of the mean: deviations are not of what is carried over."""
        return self.mean.carried_energies

    def without_carried(self, response: Array) -> ExpectedSignals:
        return ExpectedSignals(self.mean.without_carried(response), self.spread, self.vectors)

    def quadratics(self, factors: Array) -> Array:
        rotated = self._combinations.T @ self.spread.deviations
        return self.mean.quadratics(factors) + sum(SpectralSignals(one).quadratics(factors) for one in rotated)

    def outer(self, vectors: Array, scales: Array) -> Array:
        return np.asarray(vectors @ self.gram(scales) @ vectors.T)
