"""Scikit-learn's face of the library."""

from spectralgp.estimators.regressor import GraphGPRegressor, load

__all__ = ["GraphGPRegressor", "load"]
