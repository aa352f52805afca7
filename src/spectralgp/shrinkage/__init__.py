"""The covariance of a signal about its prediction, shrunk towards the graph's."""

from spectralgp.shrinkage.posterior import ShrunkPosterior, ShrunkPrediction, condition_shrunk
from spectralgp.shrinkage.wishart import Shrinkage

__all__ = ["Shrinkage", "ShrunkPosterior", "ShrunkPrediction", "condition_shrunk"]
