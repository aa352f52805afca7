"""Figures of fitted models on given axes, and reports as pages."""
