"""Rows in the order of time: inputs that are the signals before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.saved import Count

FEWEST_IN_TIME = 12  # signals to learn from the first half and to judge by the third quarter
FOLLOWING_SHARE = 0.8  # of the rows whose inputs are the signal before; the others come after gaps
SAME_AS_BEFORE = 1e-9  # of the deviation of all values, by which an input may differ from the value before
FACTOR_DIGITS = 14  # of the factor between units, beyond which it is rounding


@dataclass(frozen=True)
class TimeOrder:
    """That rows are in the order of time: inputs times a factor are the signal before."""

    factor: float  # the units of the signals over those of the inputs
    n_following: Count  # rows whose inputs are the signal of the row before; none where the user says it
    n_rows: Count  # rows that have a signal before them, another one than their own

    @property
    def described(self) -> str:
        """In words, for people."""
        times = "" if self.factor == 1.0 else f", times {self.factor:.4g},"
        found = f": inputs{times} are the signal before in {self.n_following} of {self.n_rows} rows"
        why = found if self.n_following else ", as carry='lagged' says"
        return f"Rows are in time order{why}. Models are weighed by forecasts of the second half."


def time_order(inputs: Array, signals: Array, columns: Indices) -> TimeOrder | None:
    """The order of time, if one factor ``c`` has ``c x[n + 1] = y[n]`` in enough rows of complete signals."""
    if len(signals) < FEWEST_IN_TIME:
        return None
    before, after = inputs[1:, columns], signals[:-1]
    rounding = 64 * np.finfo(float).eps * float(np.max(np.abs(signals)))
    tolerance = max(SAME_AS_BEFORE * float(np.std(signals)), rounding)
    # a signal that stays as it is would follow in any order of the rows
    moved, sizes = np.max(np.abs(np.diff(signals, axis=0)), axis=1) > tolerance, np.sum(before**2, axis=1)
    ratios = np.sort((np.sum(before * after, axis=1)[sizes > 0] / sizes[sizes > 0])[moved[sizes > 0]])
    if not ratios.size:
        return None
    factor = float(f"{ratios[ratios.size // 2]:.{FACTOR_DIGITS}g}")
    follows = np.max(np.abs(factor * before - after), axis=1) <= tolerance
    n_rows, n_following = int(np.count_nonzero(moved)), int(np.count_nonzero(follows & moved))
    is_ordered = factor > 0 and n_rows >= len(signals) / 2 and n_following >= FOLLOWING_SHARE * n_rows
    return TimeOrder(factor, n_following, n_rows) if is_ordered else None
