"""Scikit-learn's face of the library."""

from spectralgp.estimators.classifier import GraphGPClassifier
from spectralgp.estimators.forecaster import GraphGPForecaster
from spectralgp.estimators.loading import load
from spectralgp.estimators.regressor import GraphGPRegressor

__all__ = ["GraphGPClassifier", "GraphGPForecaster", "GraphGPRegressor", "load"]
