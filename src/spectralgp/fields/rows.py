"""How signals covary at each mode of the nodes: by their inputs, or as complete signals leave them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.kernels import NewInputs
from spectralgp.spectra import FilterBank, Filters, Modes, OfEigenvalues, modes_of

CONTRADICTION = 1e-8  # of the prior variance: a predictive one below zero by more than this is no rounding


class Rows(ABC):
    """Processes over signals, one per mode of the nodes: ``C_j = p_j K_j + r_j I`` at mode j.

    ``p``, the power of what inputs explain, and ``r``, what signals have each for themselves, are arrays of shape
    (n_modes,). Coordinates are combinations of the signals that suit the rows, shape (..., n_signals, n_modes).
    Derive another covariance of signals from it (a process in time, by filters): what asks does not change.
    """

    @property
    @abstractmethod
    def n_signals(self) -> int:
        """Number of signals."""

    @abstractmethod
    def load(self, signals: Array) -> Array:
        """Coordinates of signals, both of shape (..., n_signals, n_modes); an orthonormal change."""

    @abstractmethod
    def unload(self, coordinates: Array) -> Array:
        """Signals with given coordinates."""

    @abstractmethod
    def times(self, coordinates: Array, power: Array, own: Array) -> Array:
        """``C_j z_j``."""

    @abstractmethod
    def solve(self, coordinates: Array, power: Array, own: Array) -> Array:
        """``C_j^-1 z_j``."""

    @abstractmethod
    def log_determinants(self, power: Array, own: Array) -> Array:
        """``log |C_j|``, shape (n_modes,)."""

    @abstractmethod
    def drawn(self, white: Array, power: Array, own: Array) -> Array:
        """Coordinates with covariance ``C_j`` from white coordinates; the symmetric root, where there is a choice."""

    @abstractmethod
    def whitened(self, coordinates: Array, power: Array, own: Array) -> Array:
        """Coordinates with covariance one from such with covariance ``C_j``: undoes `drawn`."""

    @abstractmethod
    def column(self, signal: int, power: Array, own: Array, inverse: bool = False) -> Array:
        """Entries of ``C_j``, or of its inverse, between every signal and one, shape (n_signals, n_modes)."""

    @abstractmethod
    def diagonal(self, power: Array, own: Array, inverse: bool = False) -> Array:
        """Diagonals of ``C_j``, or of its inverse, shape (n_signals, n_modes)."""

    @abstractmethod
    def log_variances(self, power: Array, own: Array) -> Array | None:
        """Logarithms of ``C_j`` in coordinates, where it is diagonal there, shape (n_signals, n_modes); else None."""

    @abstractmethod
    def weighted_inverse(self, weights: Array, power: Array, own: Array) -> Modes:
        """``sum_j w_j C_j^-1`` over the signals, by its eigenvalues and eigenvectors."""

    @abstractmethod
    def at(self, new: Any, power: OfEigenvalues, own: OfEigenvalues) -> Left:
        """What complete signals say of those at new inputs, with powers given as functions of the eigenvalue."""

    @abstractmethod
    def joined(self, new: Any) -> Rows:
        """These signals and, after them, those at new inputs."""

    def matrices(self, power: Array, own: Array) -> Array:
        """``C_j`` written out, shape (n_modes, n_signals, n_signals)."""
        columns = [self.column(signal, power, own) for signal in range(self.n_signals)]
        return np.stack(columns, axis=-1).transpose(1, 0, 2)


class Left(ABC):
    """What complete signals say of those at new inputs: equation (8)."""

    @property
    @abstractmethod
    def reach(self) -> Filters:
        """Filters from the coordinates of the known signals to the means at the new inputs."""

    @abstractmethod
    def variances(self, eigenvalues: Array) -> Array:
        """What is left of the variance that inputs explain, shape (n_inputs, n_eigenvalues)."""

    @abstractmethod
    def covariances(self, eigenvalues: Array) -> Array:
        """What is left between the new inputs, shape (n_eigenvalues, n_inputs, n_inputs)."""


@dataclass(frozen=True, eq=False)
class Inputs(Rows):
    """One covariance ``K = U diag(kappa) U^T`` by inputs for all modes: ``D_ij = kappa_i p_j + r_j``, equation (15).

    Parameters
    ----------
    modes : Modes
        Of ``K``.
    """

    modes: Modes

    @property
    def turn(self) -> Array:
        """``U``."""
        return self.modes.vectors

    @property
    def n_signals(self) -> int:
        return self.modes.values.size

    def load(self, signals: Array) -> Array:
        """``U^T z``."""
        return self.turn.T @ signals

    def unload(self, coordinates: Array) -> Array:
        """``U z``."""
        return self.turn @ coordinates

    def variances(self, power: Array, own: Array | float) -> Array:
        """``D``, shape (..., n_signals, n_modes): the one place that says so; leading axes of `power` are filters."""
        return self.modes.values[:, None] * power[..., None, :] + own

    def times(self, coordinates: Array, power: Array, own: Array) -> Array:
        """``D z``."""
        return self.variances(power, own) * coordinates

    def solve(self, coordinates: Array, power: Array, own: Array) -> Array:
        """``z / D``."""
        return coordinates / self.variances(power, own)

    def log_determinants(self, power: Array, own: Array) -> Array:
        """Sum of the logarithms of ``D``."""
        return np.log(self.variances(power, own)).sum(axis=0)

    def drawn(self, white: Array, power: Array, own: Array) -> Array:
        """``sqrt(D) z``."""
        return np.sqrt(np.maximum(self.variances(power, own), 0.0)) * white

    def whitened(self, coordinates: Array, power: Array, own: Array) -> Array:
        """``z / sqrt(D)``."""
        return coordinates / np.sqrt(self.variances(power, own))

    def column(self, signal: int, power: Array, own: Array, inverse: bool = False) -> Array:
        """``sum_i U_ni U_n'i D_ij``."""
        variances = self.variances(power, own)
        return (self.turn * self.turn[signal]) @ (1 / variances if inverse else variances)

    def diagonal(self, power: Array, own: Array, inverse: bool = False) -> Array:
        """``(U o U) D``."""
        variances = self.variances(power, own)
        return np.square(self.turn) @ (1 / variances if inverse else variances)

    def log_variances(self, power: Array, own: Array) -> Array:
        """``log D``."""
        return np.log(self.variances(power, own))

    def weighted_inverse(self, weights: Array, power: Array, own: Array) -> Modes:
        return Modes((1 / self.variances(power, own)) @ weights, self.turn)

    def at(self, new: NewInputs, power: OfEigenvalues, own: OfEigenvalues) -> LeftOfInputs:
        return LeftOfInputs(self, new, power, own)

    def joined(self, new: NewInputs) -> Inputs:
        known = (self.turn * self.modes.values) @ self.turn.T
        together = modes_of(np.block([[known, new.cross.T], [new.cross, new.covariance]]))
        return Inputs(together.require_definite("the input covariance"))


@dataclass(frozen=True, eq=False)
class LeftOfInputs(Left):
    """Equation (8) in the eigenbasis of the inputs.

    Parameters
    ----------
    rows : Inputs
        Of the known signals.
    new : NewInputs
        Covariances of the new inputs.
    power, own : callable
        Of eigenvalues.
    """

    rows: Inputs
    new: NewInputs
    power: OfEigenvalues
    own: OfEigenvalues

    @cached_property
    def _weights(self) -> Array:
        """``W^T = k(X*, X) U``, shape (n_inputs, n_signals)."""
        return np.asarray(self.new.cross @ self.rows.turn)

    def _precisions(self, eigenvalues: Array) -> Array:
        return 1 / self.rows.variances(self.power(eigenvalues), self.own(eigenvalues))

    @property
    def reach(self) -> FilterBank:
        """``gamma W^T / D``."""
        return FilterBank(self._precisions, self._weights, lambda eigenvalues: self.power(eigenvalues)[None])

    def variances(self, eigenvalues: Array) -> Array:
        """``gamma k(x*, x*) - gamma^2 sum_i W_i^2 / D_i``."""
        power = self.power(eigenvalues)
        prior = np.multiply.outer(self.new.variances, power)
        left = prior - power**2 * (np.square(self._weights) @ self._precisions(eigenvalues))
        _refuse_contradiction(float(np.min(left, initial=0.0)), float(np.max(prior, initial=0.0)))
        return np.maximum(left, 0.0)  # removes rounding

    def covariances(self, eigenvalues: Array) -> Array:
        self.variances(eigenvalues)  # raises where covariances contradict each other
        power = self.power(eigenvalues)[:, None, None]
        scaled = self._weights[None] * self._precisions(eigenvalues).T[:, None, :]
        return power * self.new.covariance - power**2 * (scaled @ self._weights.T)


@dataclass(frozen=True, eq=False)
class Blocks(Rows):
    """A covariance of its own at every mode, ``S_j + r_j I``: what complete signals leave at new inputs.

    ``S_j`` has the power of the mode in it, so that none is asked for.

    Parameters
    ----------
    left : Left
        Made where it is asked for.
    eigenvalues : ndarray of shape (n_modes,)
        The modes.
    """

    left: Left
    eigenvalues: Array

    @cached_property
    def _variances(self) -> Array:
        return self.left.variances(self.eigenvalues)

    @cached_property
    def _modes(self) -> tuple[Array, Array]:
        """Eigenvalues (n_modes, n_signals) and eigenvectors of every block."""
        values, vectors = np.linalg.eigh(self.left.covariances(self.eigenvalues))
        return np.maximum(values, 0.0), vectors

    @property
    def n_signals(self) -> int:
        return self._variances.shape[0]

    def load(self, signals: Array) -> Array:
        """The signals themselves: no combination suits every mode."""
        return signals

    def unload(self, coordinates: Array) -> Array:
        return coordinates

    def _through(self, coordinates: Array, values: Array) -> Array:
        vectors = self._modes[1]
        turned = np.einsum("jab,...aj->...bj", vectors, coordinates, optimize=True) * values.T
        return np.einsum("jab,...bj->...aj", vectors, turned, optimize=True)

    def _spectrum(self, own: Array) -> Array:
        return self._modes[0] + own[:, None]

    def times(self, coordinates: Array, power: Array, own: Array) -> Array:
        return self._through(coordinates, self._spectrum(own))

    def solve(self, coordinates: Array, power: Array, own: Array) -> Array:
        return self._through(coordinates, 1 / self._spectrum(own))

    def log_determinants(self, power: Array, own: Array) -> Array:
        return np.log(self._spectrum(own)).sum(axis=1)

    def drawn(self, white: Array, power: Array, own: Array) -> Array:
        return self._through(white, np.sqrt(self._spectrum(own)))

    def whitened(self, coordinates: Array, power: Array, own: Array) -> Array:
        return self._through(coordinates, 1 / np.sqrt(self._spectrum(own)))

    def column(self, signal: int, power: Array, own: Array, inverse: bool = False) -> Array:
        values, vectors = self._spectrum(own), self._modes[1]
        return np.einsum("jab,jb->aj", vectors, vectors[:, signal] * (1 / values if inverse else values))

    def diagonal(self, power: Array, own: Array, inverse: bool = False) -> Array:
        if not inverse:
            return self._variances + own
        return np.einsum("jab,jb->aj", np.square(self._modes[1]), 1 / self._spectrum(own))

    def log_variances(self, power: Array, own: Array) -> None:
        return

    def weighted_inverse(self, weights: Array, power: Array, own: Array) -> Modes:
        vectors = self._modes[1]
        scaled = vectors * (weights[:, None] / self._spectrum(own))[:, None, :]
        return modes_of(np.einsum("jab,jcb->ac", scaled, vectors, optimize=True))

    def at(self, new: Any, power: OfEigenvalues, own: OfEigenvalues) -> Left:
        raise NotImplementedError("new inputs are given all at once, to the rows of the known signals")

    def joined(self, new: Any) -> Rows:
        raise NotImplementedError("new inputs are given all at once, to the rows of the known signals")

    def matrices(self, power: Array, own: Array) -> Array:
        return self.left.covariances(self.eigenvalues) + own[:, None, None] * np.eye(self.n_signals)


def _refuse_contradiction(smallest: float, largest: float) -> None:
    """Refuse variances below zero, which covariances of new inputs bring that do not belong to the cross-covariance."""
    if smallest < -CONTRADICTION * largest:
        raise ValueError(
            "X must hold covariances of new inputs that fit their cross-covariance; got a predictive "
            f"variance of {smallest:.3g}. Check that both come from one kernel."
        )
