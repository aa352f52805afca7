"""Signals as plain values: all that they are made of, and signals made of that again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array, Indices
from spectralgp.signals.incomplete import Incomplete
from spectralgp.signals.units import Units
from spectralgp.signals.views import Center, Reader, Signals, Store


@dataclass(frozen=True, eq=False)
class CompleteState:
    """What signals without holes are made of, on the host: the fields of `Store`, and the parameters of `Signals`."""

    source: Any
    offset: Any
    divisor: Any
    units: Units
    gram: Array
    rounding: float
    rows: Indices
    level: Array
    recentres: Center
    read_as: Reader | None

    @property
    def signals(self) -> Signals:
        """The signals."""
        store = Store(self.source, self.offset, self.divisor, self.units, self.gram, self.rounding)
        return Signals(store, self.rows, self.level, self.recentres, self.read_as)


@dataclass(frozen=True, eq=False)
class IncompleteState:
    """What signals with holes are made of: as the parameters of `Incomplete`."""

    values: Array
    units: Units
    is_centred_by_node: bool
    read_as: Reader | None
    precision: str

    @property
    def signals(self) -> Incomplete:
        """The signals."""
        dtype = np.dtype(self.precision)
        return Incomplete(self.values, self.units, self.is_centred_by_node, self.read_as, dtype)


def state_of(signals: Signals) -> CompleteState | IncompleteState:
    """What signals are made of; files and arrays on devices are read into memory."""
    read_as = signals._read
    if isinstance(signals, Incomplete):
        precision = np.dtype(signals.like.dtype).name
        return IncompleteState(
            signals.values, _units_on_host(signals.units), signals.is_centred_by_node, read_as, precision
        )
    store = signals._store
    source = store.source if isinstance(store.source, np.ndarray) else on_host(store.source[:, :])
    return CompleteState(
        source,
        _on_host(store.offset),
        _on_host(store.divisor),
        _units_on_host(store.units),
        store.gram,
        store.rounding,
        signals._rows,
        signals._level,
        signals._recentres,
        read_as,
    )


def _on_host(value: Any) -> Any:
    return value if np.ndim(value) == 0 else on_host(value)


def _units_on_host(units: Units) -> Units:
    relative = None if units.relative is None else on_host(units.relative)
    return Units(_on_host(units.offset), units.spread, relative)
