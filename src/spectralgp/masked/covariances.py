"""The covariance of complete signals, by what it does to them."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp._arrays import on_host
from spectralgp._checks import Array
from spectralgp.model import GraphGP
from spectralgp.modes import Modes
from spectralgp.spectrum import Quadrature, Spectrum
from spectralgp.spectrum.base import OfEigenvalues

Mask = NDArray[np.bool_]

SLACK = 0.3  # of its smallest value, that the series of a preconditioner may leave out


class CompleteCovariance(ABC):
    """Covariance of complete signals, by what it does to them.

    Blocks are arrays in a layout of its own, in the domain of the nodes; they add, and multiply entry by entry.
    """

    noise_variance: float

    @property
    def finest(self) -> float:
        """The smallest tolerance that a solve should be driven to."""
        return 1e-8

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Numbers of signals and nodes."""

    @abstractmethod
    def load(self, values: Array) -> Any:
        """Values (n_signals, n_nodes) as a block."""

    @abstractmethod
    def unload(self, block: Any) -> Array:
        """The values of a block, on the host."""

    @abstractmethod
    def times(self, block: Any) -> Any:
        """``A y``."""

    @abstractmethod
    def solved(self, block: Any) -> Any:
        """``A^-1 y``, or near it: what preconditions."""

    def inverse(self, block: Any) -> Any:
        """``A^-1 y``."""
        return self.solved(block)

    @abstractmethod
    def draw(self, random_state: np.random.Generator) -> Any:
        """A block drawn from ``N(0, A)``."""

    @abstractmethod
    def draw_signal(self, random_state: np.random.Generator) -> Any:
        """The same without noise."""

    @cached_property
    @abstractmethod
    def inverse_diagonal(self) -> Array:
        """Diagonal of ``A^-1``, shape (n_signals, n_nodes)."""

    @abstractmethod
    def inner(self, left: Any, right: Any) -> float:
        """Sum of the products of two blocks' entries."""

    @abstractmethod
    def log_diagonal(self, observed: Mask) -> tuple[float, Any]:
        """Sum of the diagonal of ``log A`` over what was observed, and what ``log A`` does to blocks; or nothing."""


@dataclass(frozen=True, eq=False)
class EigenCovariance(CompleteCovariance):
    """``A = sum_ij D_ij (u_i (x) b_j) (u_i (x) b_j)^T`` by its eigenpairs, or any vectors in which it is diagonal.

    Parameters
    ----------
    vectors : ndarray of shape (n_signals, n_signals)
        ``u_i`` in columns, orthonormal.
    variances : ndarray of shape (n_signals, n_nodes)
        ``D``.
    forward : ndarray of shape (n_nodes, n_nodes)
        ``b_j`` in columns.
    noise_variance : float
        How much of it is white noise.
    backward : ndarray of shape (n_nodes, n_nodes), optional
        The inverse of its transpose; the same where it is orthonormal, as it is if not given.
    signal_root : ndarray of shape (n_nodes, n_nodes), optional
        Where it is not: any root of what signals have each for themselves, without the noise; the rest of ``D`` is
        shared by way of the inputs.
    """

    vectors: Array
    variances: Array
    forward: Array
    noise_variance: float
    backward: Array | None = None
    signal_root: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of signals and nodes."""
        return self.vectors.shape[0], self.forward.shape[0]

    @property
    def dual(self) -> Array:
        """The inverse of the transpose of `forward`."""
        return self.forward if self.backward is None else self.backward

    @cached_property
    def precisions(self) -> Array:
        """``1 / D``."""
        return 1 / self.variances

    @cached_property
    def single(self) -> EigenCovariance:
        """The same in single precision, twice as fast, for solves that are not driven further than it."""
        shorter: dict[str, Any] = {
            name: getattr(self, name).astype(np.float32)
            for name in ("vectors", "variances", "forward", "backward")
            if getattr(self, name) is not None
        }
        return replace(self, **shorter)

    def load(self, values: Array) -> Array:
        """In the precision of the vectors."""
        return values.astype(self.vectors.dtype, copy=False)

    def unload(self, block: Array) -> Array:
        """As it is."""
        return block

    def _through(self, block: Array, weights: Array, into: Array, out: Array) -> Array:
        return self.vectors @ (weights * (self.vectors.T @ block @ into)) @ out.T

    def times(self, block: Array) -> Array:
        """``A y``."""
        return self._through(block, self.variances, self.forward, self.forward)

    def solved(self, block: Array) -> Array:
        """``A^-1 y``."""
        return self._through(block, self.precisions, self.dual, self.dual)

    def _drawn(self, variances: Array, random_state: np.random.Generator) -> Array:
        # by the symmetric root, which does not depend on the signs and the order of eigenvectors, so that the same
        # random numbers give draws that change with the model no more than it does
        white = self.vectors.T @ random_state.standard_normal(self.shape)
        drawn: Array = self.vectors @ (np.sqrt(np.maximum(variances, 0.0)) * white) @ self.forward.T
        return drawn

    def draw(self, random_state: np.random.Generator) -> Array:
        """Values drawn from ``N(0, A)``."""
        return self._drawn(self.variances, random_state)

    def draw_signal(self, random_state: np.random.Generator) -> Array:
        """The same without noise."""
        if self.signal_root is None:
            return self._drawn(self.variances - self.noise_variance, random_state)
        own = random_state.standard_normal(self.shape) @ self.signal_root.T
        return own + self._drawn(self.variances - 1.0, random_state)

    @cached_property
    def inverse_diagonal(self) -> Array:
        """``(U o U) (1 / D) (B^-T o B^-T)^T``."""
        return np.asarray(np.square(self.vectors) @ self.precisions @ np.square(self.dual).T)

    def inverse_between(self, signal: int, other: int, nodes: Any = slice(None)) -> Array:
        """Entries of ``A^-1`` between the nodes of two signals, or between some of them."""
        rows = self.dual[nodes]
        return np.asarray((rows * ((self.vectors[signal] * self.vectors[other]) @ self.precisions)) @ rows.T)

    def inner(self, left: Array, right: Array) -> float:
        """Sum of products."""
        return float(np.vdot(left, right))

    def log_diagonal(self, observed: Mask) -> tuple[float, Any]:
        """Known where the vectors are orthonormal."""
        if self.backward is not None:
            return 0.0, None
        logs = np.log(self.variances)
        diagonal = np.square(self.vectors) @ logs @ np.square(self.forward).T
        total = float(np.sum(diagonal, where=observed))
        return total, lambda block: self._through(block, logs, self.forward, self.forward)

    def log_determinant(self) -> float:
        """``log |A|``."""
        total = float(np.sum(np.log(self.variances)))
        if self.backward is not None:
            total += 2 * self.shape[0] * float(np.linalg.slogdet(self.forward)[1])
        return total

    def among(self, chosen: Mask, inverse: bool = False) -> Array:
        """Entries of ``A`` or of its inverse between those that a mask chooses, row by row."""
        weights = self.precisions if inverse else self.variances
        basis = self.dual if inverse else self.forward
        signals, nodes = np.nonzero(chosen)
        rows, starts = basis[nodes], np.searchsorted(signals, np.arange(self.shape[0] + 1))
        entries = np.empty((signals.size, signals.size))
        for signal in range(self.shape[0]):
            own = slice(starts[signal], starts[signal + 1])
            if own.start == own.stop:
                continue
            # sum_i U_ni U_n'i w_ij at every frequency j, for every other signal n' up to this one
            across = (self.vectors[: signal + 1] * self.vectors[signal]) @ weights
            others = slice(0, own.stop)
            entries[own, others] = rows[own] @ (across[signals[others]] * rows[others]).T
            entries[others, own] = entries[own, others].T
        return entries


@dataclass(frozen=True, eq=False)
class SeriesCovariance(CompleteCovariance):
    """The same on a spectrum whose eigenvectors are not known, by Chebyshev series.

    Parameters
    ----------
    basis : Quadrature
        The spectrum.
    vectors : ndarray of shape (n_signals, n_signals)
        ``u_i`` in columns.
    variances : callable
        ``D`` at eigenvalues, shape (n_signals, n_eigenvalues).
    noise_variance : float
        How much of it is white noise.
    signal : callable, optional
        Draws columns without the noise; needed for draws alone.
    """

    basis: Quadrature
    vectors: Array
    variances: OfEigenvalues
    noise_variance: float
    signal: Callable[[np.random.Generator], Any] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of signals and nodes."""
        return self.vectors.shape[0], self.basis.n_nodes

    @property
    def finest(self) -> float:
        """What the precision of the signals gives."""
        return 3e-7 if str(self.basis.operator.dtype).endswith("64") else 1e-5

    def load(self, values: Array) -> Any:
        """Columns over the nodes."""
        return self.basis.load(values)

    def unload(self, block: Any) -> Array:
        """Columns as values."""
        return np.asarray(on_host(self.basis.unload(block)))

    def _through(self, block: Any, series: Array) -> Any:
        turned = self.basis.combined(block, self.vectors.T)
        return self.basis.combined(self.basis.each_filtered(turned, series), self.vectors)

    @cached_property
    def _series(self) -> Array:
        return self.basis.series(self.variances)

    @cached_property
    def _short_series(self) -> Array:
        return self.basis.series(self._precisions, SLACK)

    def _precisions(self, eigenvalues: Array) -> Array:
        return 1 / self.variances(eigenvalues)

    def times(self, block: Any) -> Any:
        """``A y``: a polynomial of low degree."""
        return self._through(block, self._series)

    def solved(self, block: Any) -> Any:
        """Near ``A^-1 y``, by a short series."""
        return self._through(block, self._short_series)

    def inverse(self, block: Any) -> Any:
        """``A^-1 y``, by a long one."""
        return self._through(block, self.basis.series(self._precisions))

    def draw(self, random_state: np.random.Generator) -> Any:
        """Columns drawn from ``N(0, A)``."""
        noise = self.basis.white(self.shape[0], random_state) * float(np.sqrt(self.noise_variance))
        return self.draw_signal(random_state) + noise

    def draw_signal(self, random_state: np.random.Generator) -> Any:
        """The same without noise."""
        assert self.signal is not None, "only a covariance of signals under a prior is drawn from"
        return self.signal(random_state)

    @cached_property
    def inverse_diagonal(self) -> Array:
        """By random probes."""
        squares = np.square(self.vectors)
        diagonals, _ = self.basis.diagonals(lambda eigenvalues: squares @ self._precisions(eigenvalues))
        largest = squares @ (1 / np.min(self.variances(self.basis.eigenvalues), axis=1))
        smallest = squares @ (1 / np.max(self.variances(self.basis.eigenvalues), axis=1))
        return np.clip(np.asarray(on_host(diagonals)), smallest[:, None], largest[:, None])

    def inner(self, left: Any, right: Any) -> float:
        """Sum of products, in double precision."""
        return self.basis.inner(left, right)

    def log_diagonal(self, observed: Mask) -> tuple[float, Any]:
        """Not known."""
        return 0.0, None


def covariance_on(
    basis: Spectrum,
    vectors: Array,
    variances: OfEigenvalues,
    noise_variance: float,
    signal: Callable[[np.random.Generator], Any] | None = None,
) -> CompleteCovariance:
    """Covariance of complete signals on a spectrum of either kind; parameters are those of `SeriesCovariance`."""
    if isinstance(basis, Quadrature):
        return SeriesCovariance(basis, vectors, variances, noise_variance, signal)
    eigenvectors = basis.require_eigenvectors("spectrum must be exact or a quadrature.")
    return EigenCovariance(vectors, variances(basis.eigenvalues), eigenvectors, noise_variance)


def covariance_of(prior: GraphGP, input_modes: Modes) -> CompleteCovariance:
    """Covariance of complete signals under a prior, at inputs with the given modes."""
    variances = functools.partial(_variances_at, prior, input_modes)
    signal = functools.partial(prior.sample_block, input_modes)
    return covariance_on(prior.basis, input_modes.vectors, variances, prior.noise_variance, signal)


def _variances_at(prior: GraphGP, input_modes: Modes, eigenvalues: Array) -> Array:
    return prior.covariance_at(input_modes, eigenvalues).variances
