"""The covariance of signals, which is diagonal in the eigenbases of the inputs and of the graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spectralgp._checks import Array
from spectralgp.spectrum import SpectralData


def data_variances(
    input_power: Array, power: Array, noise_variance: float, residual_power: Array | float = 0.0
) -> Array:
    """``D_ij = kappa_i gamma_j + eta_j + sigma^2``, equation (15): the one place that says so.

    Parameters
    ----------
    input_power : ndarray of shape (n_signals,)
        ``kappa``, the eigenvalues of ``K``.
    power : ndarray of shape (..., n_frequencies)
        ``gamma``; leading axes are for several filters.
    noise_variance : float
        ``sigma^2``.
    residual_power : ndarray of shape (n_frequencies,), default=0.0
        ``eta``.

    Returns
    -------
    ndarray of shape (..., n_signals, n_frequencies)
    """
    return input_power[:, None] * power[..., None, :] + (residual_power + noise_variance)


@dataclass(frozen=True, eq=False)
class DataCovariance:
    """Covariance of all observed values, ``K (x) B B^T + I (x) H H^T + sigma^2 I``, by its eigenvalues ``D``.

    Signals are given to it in both eigenbases.

    Parameters
    ----------
    input_power : ndarray of shape (n_signals,)
        ``kappa``.
    power : ndarray of shape (n_frequencies,)
        ``gamma``.
    noise_variance : float
        ``sigma^2``.
    residual_power : ndarray of shape (n_frequencies,), default=0.0
        ``eta``.
    """

    input_power: Array
    power: Array
    noise_variance: float
    residual_power: Array | float = 0.0

    @cached_property
    def variances(self) -> Array:
        """``D``, shape (n_signals, n_frequencies)."""
        return data_variances(self.input_power, self.power, self.noise_variance, self.residual_power)

    @cached_property
    def precisions(self) -> Array:
        """``1 / D``."""
        return 1 / self.variances

    def log_determinant(self, multiplicities: Array) -> float:
        """Logarithm of the determinant, each frequency counted as often as it stands for a node."""
        return float(np.sum(np.log(self.variances) @ multiplicities))

    def quadratic(self, data: SpectralData) -> float:
        """``y^T C^-1 y``."""
        return float(np.sum(data.energies * self.precisions))

    def log_likelihood(self, data: SpectralData) -> float:
        """Log density of the data, a total in nats with the 2 pi term: equations (5) and (13)."""
        constant = data.n_observations * np.log(2 * np.pi)
        return -0.5 * float(self.log_determinant(data.multiplicities) + self.quadratic(data) + constant)

    def slopes(self, data: SpectralData) -> Array:
        """``E_ij``, the derivative of the log likelihood in ``D_ij``: equation (6)."""
        return 0.5 * (data.energies * self.precisions - data.multiplicities) * self.precisions
