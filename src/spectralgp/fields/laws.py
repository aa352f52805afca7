"""Laws of a signal: normal, or a multivariate t; densities by squared lengths of whitened errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import gammaln

from spectralgp._basics.checks import Array


def t_log_density(
    quadratics: Array, log_determinants: Array | float, n_values: Array | int, freedom: Array | float
) -> Array:
    """Log densities of errors under multivariate t laws with given covariances; normal ones for infinite `freedom`.

    Parameters
    ----------
    quadratics : ndarray of shape (n_signals,)
        ``e^T C^-1 e``, with the covariance ``C`` of each.
    log_determinants : ndarray of shape (n_signals,) or float
        ``log |C|``.
    n_values : ndarray of shape (n_signals,) or int
        Length of each error.
    freedom : float or ndarray of shape (n_signals,)
        Degrees of freedom, more than two.
    """
    if np.all(np.isinf(freedom)):
        return -0.5 * (quadratics + log_determinants + n_values * np.log(2 * np.pi))
    # the scale matrix is C (nu - 2) / nu, so that the covariance is C
    constant = gammaln((freedom + n_values) / 2) - gammaln(freedom / 2) - 0.5 * n_values * np.log((freedom - 2) * np.pi)
    return constant - 0.5 * log_determinants - 0.5 * (freedom + n_values) * np.log1p(quadratics / (freedom - 2))


def rescaled(
    signal: Array,
    noise: Array,
    scales: Array,
    noise_variance: float,
    moved: Callable[[Array], Array],
    solve: Callable[[Array], Array],
) -> tuple[Array, Array]:
    """Drawn signals and their noise, with what signals before it leave open of each scaled by its own factor.

    Parameters
    ----------
    signal, noise : ndarray of shape (n_signals, n_nodes)
        Drawn.
    scales : ndarray of shape (n_signals, 1)
        The factors.
    noise_variance : float
        How much of the covariance of their sum is white noise.
    moved : callable
        What scaling adds to noisy values: they are whitened in their order, scaled, and put back.
    solve : callable
        The inverse of the covariance of noisy values, times such values.
    """
    noisy = signal + noise
    added = moved(noisy)
    left = signal - noisy + noise_variance * solve(noisy)  # of the signals, given their noisy values
    scaled = signal + added - noise_variance * solve(added) + (scales - 1) * left
    return scaled, noisy + added - scaled
