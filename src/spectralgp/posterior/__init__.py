"""Conditioning on data, and what follows: means, variances, covariances, samples and densities, on any spectrum."""

from spectralgp.posterior.conditioning import Posterior, condition
from spectralgp.posterior.filled import Filled
from spectralgp.posterior.prediction import Prediction

__all__ = ["Filled", "Posterior", "Prediction", "condition"]
