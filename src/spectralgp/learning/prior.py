"""The weak prior on hyperparameters that keeps few signals from being overfitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralgp._checks import Array
from spectralgp.graph_kernels import GraphKernel, Polynomial
from spectralgp.spectrum import AnySpectrum

ROUGHNESS = 0.1  # weight of the penalty on high Chebyshev coefficients
NOISE_SHARE = 0.1  # most probable noise variance, as a share of the signals' variance
NOISE_DEGREES_OF_FREEDOM = 2.0
LENGTH_SCALE_SPREAD = 0.5  # standard deviation of log length scale, half that of its square


@dataclass(frozen=True, eq=False)
class WeakPrior:
    """Log prior density of the hyperparameters, up to a constant (section 5 of the design).

    Three terms: a penalty on rough filters, ``-(0.1/2) sum_p p^6 c_p^2 / (mean g^2 + sigma^2)`` on the Chebyshev
    coefficients of a polynomial; log-normal length scales about the median distance of the inputs; and an inverse-gamma
    noise variance about a tenth of the variance. All are free of the units of the signals.

    Parameters
    ----------
    variance : float
        Variance of the signals.
    log_length_scales : ndarray of shape (n_input_parameters,)
        Centre for each parameter of the input kernel that is a length scale, NaN for every other one.
    """

    variance: float
    log_length_scales: Array

    def graph_term(
        self, kernel: GraphKernel, spectrum: AnySpectrum, noise_variance: float
    ) -> tuple[float, Array, float]:
        """Penalty on a rough polynomial: its value, and its gradients in ``theta`` and in the log noise."""
        theta = kernel.theta
        if not isinstance(kernel, Polynomial):
            return 0.0, np.zeros_like(theta), 0.0
        weights = ROUGHNESS * np.arange(theta.size) ** 6.0
        scale = kernel.mean_power(spectrum) + noise_variance
        value = -0.5 * float(weights @ theta**2) / scale
        slope = spectrum.mean(kernel.power_jacobian(spectrum.eigenvalues))
        return value, -weights * theta / scale - value / scale * slope, -value / scale * noise_variance

    def input_term(self, theta: Array) -> tuple[float, Array]:
        """Log-normal density of the length scales, and its gradient."""
        deviations = np.nan_to_num((theta - self.log_length_scales) / LENGTH_SCALE_SPREAD)
        return -0.5 * float(deviations @ deviations), -deviations / LENGTH_SCALE_SPREAD

    def noise_term(self, noise_variance: float) -> tuple[float, float]:
        """Inverse-gamma density of the noise on a logarithmic scale, and its derivative in the log noise."""
        half = NOISE_DEGREES_OF_FREEDOM / 2
        ratio = NOISE_SHARE * self.variance / noise_variance
        return half * (np.log(ratio) - ratio), half * (ratio - 1)
