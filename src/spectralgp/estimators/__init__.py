"""Estimators with the interface of scikit-learn."""

from spectralgp.estimators.classifier import GraphGPClassifier
from spectralgp.estimators.forecaster import GraphGPForecaster
from spectralgp.estimators.loading import load
from spectralgp.estimators.regressor import GraphGPRegressor

__all__ = ["GraphGPClassifier", "GraphGPForecaster", "GraphGPRegressor", "load"]
