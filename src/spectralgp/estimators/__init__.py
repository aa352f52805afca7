"""Scikit-learn's face of the library."""

from spectralgp.estimators.regressor import GraphGPRegressor

__all__ = ["GraphGPRegressor"]
