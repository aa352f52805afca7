"""The weak prior on hyperparameters that keeps few signals from being overfitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralgp._checks import Array

NOISE_SHARE = 0.1  # most probable noise variance, as a share of the signals' variance
NOISE_DEGREES_OF_FREEDOM = 2.0
LENGTH_SCALE_SPREAD = 0.5  # standard deviation of log length scale, half that of its square


@dataclass(frozen=True, eq=False)
class WeakPrior:
    """Log prior density of the hyperparameters, up to a constant.

    Three terms: what the graph kernel says of its own parameters (`GraphKernel.log_prior`; polynomials are penalised
    for roughness), log-normal length scales about the median distance of the inputs, and an inverse-gamma noise
    variance about a tenth of the variance. All are free of the units of the signals.

    Parameters
    ----------
    variance : float
        Variance of the signals.
    input_centres : ndarray of shape (n_input_parameters,)
        Centre for each parameter of the input kernel that is a length scale, NaN for every other one.
    """

    variance: float
    input_centres: Array

    def input_term(self, theta: Array) -> tuple[float, Array]:
        """Log-normal density of the length scales, and its gradient."""
        deviations = np.nan_to_num((theta - self.input_centres) / LENGTH_SCALE_SPREAD)
        return -0.5 * float(deviations @ deviations), -deviations / LENGTH_SCALE_SPREAD

    def noise_term(self, noise_variance: float) -> tuple[float, float]:
        """Inverse-gamma density of the noise on a logarithmic scale, and its derivative in the log noise."""
        half = NOISE_DEGREES_OF_FREEDOM / 2
        ratio = NOISE_SHARE * self.variance / noise_variance
        return half * (np.log(ratio) - ratio), half * (ratio - 1)
