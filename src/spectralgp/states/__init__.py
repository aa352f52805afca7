"""Processes in time with few states: components, and the filters that solve with their covariances."""

from spectralgp.states.components import Component, Matern, Oscillator
from spectralgp.states.filters import Filter, Slopes, StateSpace, Timeline, distinct, evaluate, sandwiched
from spectralgp.states.plain import written_out
from spectralgp.states.whittle import information

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
    "written_out",
]
