"""Scikit-learn's face of the library."""

from spectralgp.estimators.loading import load
from spectralgp.estimators.regressor import GraphGPRegressor

__all__ = ["GraphGPRegressor", "load"]
