"""Processes in time with few states: components, and the filters that solve with their covariances."""

from spectralgp.model.statespace.components import Component, Matern, Oscillator
from spectralgp.model.statespace.filters import (
    Filter,
    Slopes,
    StateSpace,
    Timeline,
    distinct,
    evaluate,
    information,
    sandwiched,
)

__all__ = [
    "Component",
    "Filter",
    "Matern",
    "Oscillator",
    "Slopes",
    "StateSpace",
    "Timeline",
    "distinct",
    "evaluate",
    "information",
    "sandwiched",
]
