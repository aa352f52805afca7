"""Processes in time with few states: components, and the filters that solve with their covariances."""

from spectralgp.model.statespace.components import Component, MaternComponent, OscillatorComponent
from spectralgp.model.statespace.filters import (
    Filter,
    StateSpace,
    Timeline,
    distinct,
    evaluate,
    information,
    sandwiched,
)
