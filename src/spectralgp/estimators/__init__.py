"""Scikit-learn's face of the library."""

from spectralgp.estimators.forecaster import GraphGPForecaster
from spectralgp.estimators.regressor import GraphGPRegressor, load

__all__ = ["GraphGPForecaster", "GraphGPRegressor", "load"]
