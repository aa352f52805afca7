"""A covariance of many signals by the covariances of all inputs with a few: equation (34)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr

from spectralgp._basics.checks import Array, Indices
from spectralgp.fields.factors import LeftOfInputs, PowersOfEigenvalues, Rows
from spectralgp.kernels import InputKernel, NewInputs
from spectralgp.spectra import FilterBank, Filters, Modes, modes_of

ROUNDING = 1e-10  # of the largest variance, below which what points leave open of the inputs is rounding
SMALLEST_MODE = 1e-12  # of the largest mode of the points, below which one is rounding
NO_MATRIX = (
    "{argument} where a low rank stands for the covariance of very many signals, of which no matrix is written out. "
    "Fit fewer signals."
)


@dataclass(frozen=True, eq=False)
class LowRank(Rows):
    """``K = U diag(kappa) U^T + k I`` with few modes, averaged FITC: ``D_ij = (kappa_i + k) p_j + r_j``.

    Where ``U`` does not reach, ``K`` is ``k``. Coordinates are those of the modes, and below them what the modes leave
    of the signals, so that they are as long as the signals.
    """

    vectors: Array  # U, shape (n_signals, rank), orthonormal
    values: Array  # kappa
    rest: float  # k, mean over the signals of what the points leave open of their variances
    points: Indices  # signals whose inputs stand for all
    from_points: Array  # by which covariances with the points become those with the modes, shape (n_points, rank)

    @classmethod
    def of(
        cls, kernel: InputKernel, inputs: Array, points: Indices, scales: Array | None = None, amplitude: float = 1.0
    ) -> LowRank:
        """The covariance by points, of signals divided by `scales`, and with all but the level times an `amplitude`."""
        cross = kernel.with_amplitude(kernel.columns(inputs, points), amplitude)
        variances = kernel.with_amplitude(kernel.variances(inputs), amplitude)
        inner = modes_of(cross[points]).require_definite("the input covariance")
        is_kept = inner.values > SMALLEST_MODE * np.max(inner.values, initial=0.0)
        root = inner.vectors[:, is_kept] / np.sqrt(inner.values[is_kept])
        factors = cross @ root  # Phi, with Phi Phi^T the covariance that goes through the points
        left = variances - np.sum(np.square(factors), axis=1)
        if scales is not None:
            factors, left = factors / scales[:, None], left / scales**2
        axes, triangle = qr(factors, mode="economic", check_finite=False)
        turned, lengths, directions = np.linalg.svd(triangle)
        from_points = root @ (directions.T * lengths)
        if scales is not None:  # covariances with the points come divided by theirs
            from_points = scales[points, None] * from_points
        return cls(axes @ turned, lengths**2, float(max(np.mean(left), 0.0)), points, from_points)

    @property
    def n_signals(self) -> int:
        return self.vectors.shape[0]

    @property
    def n_coordinates(self) -> int:
        return sum(self.vectors.shape)

    def load(self, signals: Array) -> Array:
        upper = self.vectors.T @ signals
        return np.concatenate([upper, signals - self.vectors @ upper], axis=-2)

    def unload(self, coordinates: Array) -> Array:
        rank = self.values.size
        return self.vectors @ coordinates[..., :rank, :] + coordinates[..., rank:, :]

    def variances(self, power: Array, own: Array) -> Array:
        """``D``, shape (rank, n_modes)."""
        return self.values[:, None] * power + self._outside(power, own)

    def _outside(self, power: Array, own: Array) -> Array:
        """What takes the place of ``D`` where the modes do not reach, shape (n_modes,)."""
        return self.rest * power + own

    def apply(self, coordinates: Array, power: Array, own: Array, exponent: float = 1.0) -> Array:
        rank = self.values.size
        upper = self.variances(power, own) ** exponent * coordinates[..., :rank, :]
        return np.concatenate([upper, self._outside(power, own) ** exponent * coordinates[..., rank:, :]], axis=-2)

    def log_determinants(self, power: Array, own: Array) -> Array:
        n_outside = self.n_signals - self.values.size
        return np.log(self.variances(power, own)).sum(axis=0) + n_outside * np.log(self._outside(power, own))

    def column(self, signal: int, power: Array, own: Array, inverse: bool = False) -> Array:
        exponent = -1.0 if inverse else 1.0
        outside = self._outside(power, own) ** exponent
        column: Array = (self.vectors * self.vectors[signal]) @ (self.variances(power, own) ** exponent - outside)
        column[signal] += outside
        return column

    def diagonal(self, power: Array, own: Array, inverse: bool = False) -> Array:
        exponent = -1.0 if inverse else 1.0
        outside = self._outside(power, own) ** exponent
        return outside + np.square(self.vectors) @ (self.variances(power, own) ** exponent - outside)

    def weighted_inverses(self, weights: Array, power: Array, own: Array) -> list[Modes]:
        raise ValueError(NO_MATRIX.format(argument="by must be 'signal' or 'entry'"))

    def reached_by(self, bank: FilterBank) -> Filters:
        """Filters from the coordinates of the modes, as filters from all coordinates."""
        return _FromFirst(bank, self.values.size)

    def at(self, new: NewInputs, powers: PowersOfEigenvalues) -> LeftOfInputs:
        return LeftOfInputs(self, new, powers, new.cross[:, self.points] @ self.from_points)

    def joined(self, new: Any) -> Rows:
        raise ValueError(NO_MATRIX.format(argument="observed must be None"))


@dataclass(frozen=True, eq=False)
class _FromFirst(Filters):
    """Filters that take the first of the signals alone."""

    bank: FilterBank
    n_first: int

    def apply(self, coefficients: Array, eigenvalues: Array) -> Array:
        return self.bank.apply(coefficients[..., : self.n_first, :], eigenvalues)

    def matrices(self, eigenvalues: Array) -> Array:
        raise NotImplementedError("coordinates outside the modes have no number of their own")


def greedy_points(kernel: InputKernel, inputs: Array, rank: int) -> Indices:
    """Signals whose inputs stand for all: each the one of which those before leave most open (pivoted Cholesky)."""
    left = kernel.variances(inputs).astype(float)
    largest, factors, points = float(np.max(left, initial=0.0)), np.empty((rank, left.size)), list[int]()
    while len(points) < min(rank, left.size):
        number, point = len(points), int(np.argmax(left))
        if left[point] <= ROUNDING * largest:
            break
        own = kernel.columns(inputs, np.array([point]))[:, 0] - factors[:number, point] @ factors[:number]
        factors[number] = own / np.sqrt(left[point])
        left -= np.square(factors[number])
        left[point] = 0.0
        points.append(point)
    return np.array(points, dtype=np.intp)
