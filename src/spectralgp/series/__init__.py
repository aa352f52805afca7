"""Signals that follow one another in time: processes by mode, filtered, forecast and updated."""

from spectralgp.model.statespace import Component, Matern, Oscillator
from spectralgp.series.learning import SeriesFit, learn_each, learn_on_graph
from spectralgp.series.process import Filtered, Forecast, ModalProcess, complete, completed_in_turn, rolling

__all__ = [
    "Component",
    "Filtered",
    "Forecast",
    "Matern",
    "ModalProcess",
    "Oscillator",
    "SeriesFit",
    "complete",
    "completed_in_turn",
    "learn_each",
    "learn_on_graph",
    "rolling",
]
