"""Signals on the nodes of a graph, with or without holes."""

from spectralgp.signals.incomplete import Completed, Incomplete
from spectralgp.signals.reading import as_training, no_signals, read_in, read_signals
from spectralgp.signals.views import Center, Indices, Scale, Signals

__all__ = [
    "Center",
    "Completed",
    "Incomplete",
    "Indices",
    "Scale",
    "Signals",
    "as_training",
    "no_signals",
    "read_in",
    "read_signals",
]
