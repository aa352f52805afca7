"""The estimator, with what it reads."""

from spectralgp.regressor.estimator import GraphGPRegressor

__all__ = ["GraphGPRegressor"]
