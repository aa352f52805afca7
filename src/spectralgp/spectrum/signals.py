"""Signals as the likelihood reads them: their energy at each frequency, in the eigenbasis of the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spectralgp._checks import Array


@dataclass(frozen=True, eq=False)
class RotatedSignals:
    """Signals in the eigenbases of the input covariance and of the graph, ``Z = U^T Y V`` of equation (5).

    Parameters
    ----------
    coefficients : ndarray of shape (n_signals, n_nodes)
        Row i belongs to input eigenvector i, column j to frequency j.
    """

    coefficients: Array

    @property
    def n_observations(self) -> int:
        """Number of observed values, signals times nodes."""
        return int(self.coefficients.size)

    @cached_property
    def multiplicities(self) -> Array:
        """How many nodes' worth of spectrum each frequency stands for: one each, in an exact spectrum."""
        return np.ones(self.coefficients.shape[1])

    @cached_property
    def energies(self) -> Array:
        """``Z_ij^2``, shape (n_signals, n_frequencies)."""
        return np.square(self.coefficients)

    def gram(self, scales: Array) -> Array:
        """Sum over frequencies of outer products, ``sum_j (s_ij Z_ij) (s_kj Z_kj)``, shape (n_signals, n_signals)."""
        scaled = self.coefficients * scales
        return scaled @ scaled.T


@dataclass(frozen=True, eq=False)
class SpectralSignals:
    """Signals in the graph Fourier domain, one column a frequency.

    Parameters
    ----------
    coefficients : ndarray of shape (n_signals, n_nodes)
        ``Y V``.
    """

    coefficients: Array

    def rotate(self, input_vectors: Array) -> RotatedSignals:
        """Coefficients in the eigenbasis of the input covariance, ``U^T Y V``."""
        return RotatedSignals(input_vectors.T @ self.coefficients)


@dataclass(frozen=True, eq=False)
class RotatedMoments:
    """The same from quadrature: ``U^T E_q U`` of equation (13) at each node of the quadrature.

    Parameters
    ----------
    matrices : ndarray of shape (n_frequencies, n_signals, n_signals)
        Energy at each frequency, in the eigenbasis of the input covariance.
    multiplicities : ndarray of shape (n_frequencies,)
        How many nodes' worth of spectrum each frequency stands for; they add up to the number of nodes, but single
        ones may be negative.
    n_observations : int
        Number of observed values, signals times nodes.
    """

    matrices: Array
    multiplicities: Array
    n_observations: int

    @cached_property
    def energies(self) -> Array:
        """``(U^T E_q U)_ii``, shape (n_signals, n_frequencies)."""
        return np.diagonal(self.matrices, axis1=1, axis2=2).T.copy()

    def gram(self, scales: Array) -> Array:
        """``sum_q s_iq (U^T E_q U)_ik s_kq``, shape (n_signals, n_signals)."""
        return np.einsum("iq,qik,kq->ik", scales, self.matrices, scales, optimize=True)


@dataclass(frozen=True, eq=False)
class SpectralMoments:
    """Energies ``E_q`` of signals at the nodes of a quadrature, equation (12), instead of their Fourier transform.

    Parameters
    ----------
    matrices : ndarray of shape (n_frequencies, n_signals, n_signals)
        ``E_q``.
    multiplicities : ndarray of shape (n_frequencies,)
        ``m_q``.
    n_observations : int
        Number of observed values, signals times nodes.
    """

    matrices: Array
    multiplicities: Array
    n_observations: int

    def rotate(self, input_vectors: Array) -> RotatedMoments:
        """Energies in the eigenbasis of the input covariance, ``U^T E_q U``."""
        return RotatedMoments(input_vectors.T @ self.matrices @ input_vectors, self.multiplicities, self.n_observations)
