"""The weak prior on hyperparameters that keeps few signals from being overfitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralgp._basics.checks import Array

NOISE_SHARE = 0.1  # most probable noise variance, as a share of the signals' variance
NOISE_DEGREES_OF_FREEDOM = 3.0
NOISE_SPREAD = 1.0  # scale of the log noise variance about that


@dataclass(frozen=True, eq=False)
class WeakPrior:
    """Log prior density of the hyperparameters, up to a constant.

    Three terms: what the graph kernel says of its own parameters (`GraphKernel.log_prior`; polynomials are penalised
    for roughness), log-normal length scales about the median distance of the inputs, and a log noise variance with the
    heavy tails of Student's t about a tenth of the variance, so that it may vanish where data have no noise. All are
    free of the units of the signals.

    Parameters
    ----------
    variance : float
        Variance of the signals about the levels of their nodes.
    input_centres, input_spreads : ndarray of shape (n_input_parameters,)
        Centre for each parameter of the input kernel, NaN where there is none, and standard deviation.
    """

    variance: float
    input_centres: Array
    input_spreads: Array

    def input_term(self, theta: Array) -> tuple[float, Array]:
        """Log-normal density of the length scales, and its gradient."""
        deviations = np.nan_to_num((theta - self.input_centres) / self.input_spreads)
        return -0.5 * float(deviations @ deviations), -deviations / self.input_spreads

    @property
    def input_precisions(self) -> Array:
        """Curvature of that, negated."""
        return np.where(np.isnan(self.input_centres), 0.0, self.input_spreads**-2.0)

    @property
    def noise_precision(self) -> float:
        """Curvature of `noise_term` at its centre, negated."""
        return (NOISE_DEGREES_OF_FREEDOM + 1) / NOISE_DEGREES_OF_FREEDOM / NOISE_SPREAD**2

    def noise_term(self, noise_variance: float) -> tuple[float, float]:
        """Log density of the noise on a logarithmic scale, and its derivative in the log noise."""
        freedom = NOISE_DEGREES_OF_FREEDOM
        deviation = np.log(noise_variance / (NOISE_SHARE * self.variance)) / NOISE_SPREAD
        value = -0.5 * (freedom + 1) * np.log1p(deviation**2 / freedom)
        return float(value), float(-(freedom + 1) * deviation / (freedom + deviation**2) / NOISE_SPREAD)
