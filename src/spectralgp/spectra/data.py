"""Signals as the likelihood reads them: their energy at each frequency of a graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spectralgp._basics.checks import Array


class SpectralData(ABC):
    """Signals on a spectrum: one row a signal, or a combination of signals, one column a frequency."""

    @property
    @abstractmethod
    def multiplicities(self) -> Array:
        """How many nodes' worth of spectrum each frequency stands for, shape (n_frequencies,)."""

    @property
    @abstractmethod
    def n_observations(self) -> int:
        """Number of observed values, signals times nodes."""

    @property
    @abstractmethod
    def energies(self) -> Array:
        """Energy of each row at each frequency, shape (n_rows, n_frequencies)."""

    @property
    @abstractmethod
    def signed(self) -> Array:
        """Coefficient of each row at each frequency, whose squares are the energies; an error where only those are."""

    @abstractmethod
    def rotate(self, vectors: Array) -> SpectralData:
        """Combinations of the rows, one for each column of `vectors`: signals in the eigenbasis of the inputs."""

    @abstractmethod
    def gram(self, scales: Array) -> Array:
        """Products of the rows after each frequency of each was scaled, shape (n_rows, n_rows)."""

    @abstractmethod
    def node_gram(self, scales: Array) -> Array:
        """The same with the two sides exchanged: products of the frequencies, shape (n_frequencies, n_frequencies)."""

    @property
    @abstractmethod
    def carried_energies(self) -> tuple[Array, Array]:
        """Where signals stand above as many that they carry over: energies of the latter, and their products."""

    @abstractmethod
    def without_carried(self, response: Array) -> SpectralData:
        """The upper half of the rows less the lower half through a filter, given by its values at the frequencies."""

    @abstractmethod
    def quadratics(self, factors: Array) -> Array:
        """Squares of ``L_j^-1 y_j`` summed over frequencies, per row, with lower Cholesky factors ``L_j`` given."""

    @abstractmethod
    def outer(self, vectors: Array, scales: Array) -> Array:
        """`gram` of the rows, turned back by `vectors`: shape (n_signals, n_signals)."""


@dataclass(frozen=True, eq=False)
class SpectralSignals(SpectralData):
    """Signals in the graph Fourier domain.

    Parameters
    ----------
    coefficients : ndarray of shape (n_rows, n_nodes)
        ``Y V``, or ``Z = U^T Y V`` of equation (5).
    """

    coefficients: Array

    @cached_property
    def multiplicities(self) -> Array:
        """One each: every eigenvalue is known."""
        return np.ones(self.coefficients.shape[1])

    @property
    def n_observations(self) -> int:
        return int(self.coefficients.size)

    @property
    def signed(self) -> Array:
        """``Z_ij``."""
        return self.coefficients

    @cached_property
    def energies(self) -> Array:
        """``Z_ij^2``."""
        return np.square(self.coefficients)

    def rotate(self, vectors: Array) -> SpectralSignals:
        """``U^T Y V``."""
        return SpectralSignals(vectors.T @ self.coefficients)

    def gram(self, scales: Array) -> Array:
        """``sum_j (s_ij Z_ij) (s_kj Z_kj)``."""
        scaled = self.coefficients * scales
        return scaled @ scaled.T

    def node_gram(self, scales: Array) -> Array:
        """``sum_i (s_ij Z_ij) (s_ik Z_ik)``."""
        scaled = self.coefficients * scales
        return scaled.T @ scaled

    @property
    def carried_energies(self) -> tuple[Array, Array]:
        """``X_ij^2`` and ``X_ij Y_ij``."""
        signals, carried = np.split(self.coefficients, 2)
        return np.square(carried), carried * signals

    def without_carried(self, response: Array) -> SpectralSignals:
        """``Y_ij - b_j X_ij``."""
        signals, carried = np.split(self.coefficients, 2)
        return SpectralSignals(signals - response * carried)

    def quadratics(self, factors: Array) -> Array:
        return np.sum(np.square(np.linalg.solve(factors, self.coefficients.T[:, :, None])), axis=(0, 2))

    def outer(self, vectors: Array, scales: Array) -> Array:
        n_signals, n_nodes = self.coefficients.shape
        if n_nodes > 2 * n_signals:
            return np.asarray(vectors @ self.gram(scales) @ vectors.T)
        turned = vectors @ (self.coefficients * scales)
        return turned @ turned.T


@dataclass(frozen=True, eq=False)
class SpectralMoments(SpectralData):
    """Energies ``E_q`` of signals at the nodes of a quadrature, equation (12), instead of their Fourier transform.

    Parameters
    ----------
    matrices : ndarray of shape (n_frequencies, n_rows, n_rows)
        ``E_q``, or ``U^T E_q U`` of equation (13).
    weights : ndarray of shape (n_frequencies,)
        ``m_q``; they add up to the number of nodes, but single ones may be negative.
    n_nodes : int
        Number of nodes.
    """

    matrices: Array
    weights: Array
    n_nodes: int

    @property
    def multiplicities(self) -> Array:
        return self.weights

    @property
    def n_observations(self) -> int:
        return int(self.matrices.shape[1] * self.n_nodes)

    @property
    def signed(self) -> Array:
        """Not known: a quadrature has energies only."""
        raise ValueError("data must be on an exact spectrum to have coefficients; got a quadrature's.")

    @cached_property
    def energies(self) -> Array:
        """``(E_q)_ii``."""
        return np.diagonal(self.matrices, axis1=1, axis2=2).T.copy()

    def rotate(self, vectors: Array) -> SpectralMoments:
        """``U^T E_q U``."""
        return SpectralMoments(vectors.T @ self.matrices @ vectors, self.weights, self.n_nodes)

    def gram(self, scales: Array) -> Array:
        """``sum_q s_iq (E_q)_ik s_kq``."""
        return np.einsum("iq,qik,kq->ik", scales, self.matrices, scales, optimize=True)

    def node_gram(self, scales: Array) -> Array:
        """Not known: the frequencies of a quadrature are not those of the signals."""
        raise ValueError("data must be on an exact spectrum to have products between frequencies; got a quadrature's.")

    @property
    def carried_energies(self) -> tuple[Array, Array]:
        """Diagonals of the lower right and the upper right block of ``E_q``."""
        half = self.matrices.shape[1] // 2
        own, across = self.matrices[:, half:, half:], self.matrices[:, :half, half:]
        return np.diagonal(own, axis1=1, axis2=2).T, np.diagonal(across, axis1=1, axis2=2).T

    def without_carried(self, response: Array) -> SpectralMoments:
        """``E_yy - b (E_xy + E_yx) + b^2 E_xx``."""
        half, factor = self.matrices.shape[1] // 2, response[:, None, None]
        across = self.matrices[:, :half, half:]
        matrices = self.matrices[:, :half, :half] - factor * (across + np.swapaxes(across, 1, 2))
        return SpectralMoments(matrices + factor**2 * self.matrices[:, half:, half:], self.weights, self.n_nodes)

    def quadratics(self, factors: Array) -> Array:
        """Sums of the diagonals of ``L_q^-1 E_q L_q^-T``."""
        halves = np.linalg.solve(factors, self.matrices)
        return np.diagonal(np.linalg.solve(factors, np.swapaxes(halves, 1, 2)), axis1=1, axis2=2).sum(axis=0)

    def outer(self, vectors: Array, scales: Array) -> Array:
        return np.asarray(vectors @ self.gram(scales) @ vectors.T)
