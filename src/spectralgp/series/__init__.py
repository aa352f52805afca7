"""Time series on a graph: processes by mode, filtered, forecast and updated."""

from spectralgp.model.statespace import Component, MaternComponent, OscillatorComponent
from spectralgp.series.learning import SeriesFit, learn_each, learn_on_graph
from spectralgp.series.process import (
    FilteredProcess,
    ModalProcess,
    ProcessForecast,
    complete,
    completed_in_turn,
    rolling,
)

__all__ = [
    "Component",
    "FilteredProcess",
    "MaternComponent",
    "ModalProcess",
    "OscillatorComponent",
    "ProcessForecast",
    "SeriesFit",
    "complete",
    "completed_in_turn",
    "learn_each",
    "learn_on_graph",
    "rolling",
]
