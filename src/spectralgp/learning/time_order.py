"""Rows in time order: inputs are the previous signals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.saved import Count

FEWEST_IN_TIME = 12  # signals for forward chaining: half for learning, a quarter for validation
FOLLOWING_SHARE = 0.8  # least share of rows whose inputs are the previous signal; the others follow gaps
SAME_AS_BEFORE = 1e-9  # tolerance of an input, relative to the standard deviation of all values
FACTOR_DIGITS = 14  # significant digits of the factor between units
BEYOND_TRAINING = (
    " Beyond the levels seen in training no change is predicted; GraphGPForecaster models levels that move."
)


@dataclass(frozen=True)
class TimeOrder:
    """Time order of the rows: inputs times a factor are the previous signal."""

    factor: float  # the units of the signals over those of the inputs
    n_following: Count  # rows whose inputs are the previous signal; zero if the user states the order
    n_rows: Count  # rows with another signal before them

    @property
    def described(self) -> str:
        """Sentences for the summary."""
        times = "" if self.factor == 1.0 else f", times {self.factor:.4g},"
        found = f": inputs{times} are the signal before in {self.n_following} of {self.n_rows} rows"
        why = found if self.n_following else ", as carry='lagged' says"
        return f"Rows are in time order{why}. Models are weighed by forecasts of the second half."


def time_order(inputs: Array, signals: Array, columns: Indices) -> TimeOrder | None:
    """Return the time order if one factor ``c`` has ``c x[n + 1] = y[n]`` in enough rows of complete signals."""
    if len(signals) < FEWEST_IN_TIME:
        return None
    before, after = inputs[1:, columns], signals[:-1]
    rounding = 64 * np.finfo(float).eps * float(np.max(np.abs(signals)))
    tolerance = max(SAME_AS_BEFORE * float(np.std(signals)), rounding)
    # constant signals would follow each other in any order
    moved, sizes = np.max(np.abs(np.diff(signals, axis=0)), axis=1) > tolerance, np.sum(before**2, axis=1)
    ratios = np.sort((np.sum(before * after, axis=1)[sizes > 0] / sizes[sizes > 0])[moved[sizes > 0]])
    if not ratios.size:
        return None
    factor = float(f"{ratios[ratios.size // 2]:.{FACTOR_DIGITS}g}")
    follows = np.max(np.abs(factor * before - after), axis=1) <= tolerance
    n_rows, n_following = int(np.count_nonzero(moved)), int(np.count_nonzero(follows & moved))
    is_ordered = factor > 0 and n_rows >= len(signals) / 2 and n_following >= FOLLOWING_SHARE * n_rows
    return TimeOrder(factor, n_following, n_rows) if is_ordered else None
