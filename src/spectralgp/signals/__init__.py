"""Signals on the nodes of a graph, with or without holes."""

from spectralgp.signals.incomplete import Completed, Incomplete
from spectralgp.signals.reading import ReadAs, as_training, no_signals, read_in, read_signals
from spectralgp.signals.state import CompleteState, IncompleteState, state_of
from spectralgp.signals.views import Center, Scale, Signals

__all__ = [
    "Center",
    "CompleteState",
    "Completed",
    "Incomplete",
    "IncompleteState",
    "ReadAs",
    "Scale",
    "Signals",
    "as_training",
    "no_signals",
    "read_in",
    "read_signals",
    "state_of",
]
