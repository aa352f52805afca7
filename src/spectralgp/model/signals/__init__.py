"""Signals on the nodes of a graph, complete or with missing values."""

from spectralgp.model.signals.core import Center, Scale, Signals, Units
from spectralgp.model.signals.levels import can_complete
from spectralgp.model.signals.reading import (
    CompleteState,
    IncompleteState,
    SignalView,
    as_training,
    expected_signals,
    no_signals,
    read_in,
    read_signals,
    state_of,
)
