"""Inputs of signals: a table, the signals of the row before, or time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from spectralgp._basics.extras import require
from spectralgp._basics.saved import ge
from spectralgp._basics.tables import listing, some
from spectralgp.files.tables import following, index_of, read_table, times_of

if TYPE_CHECKING:
    import pandas as pd

TIME = "time"
Clock = Literal["numbers", "dates"]


@dataclass(frozen=True)
class InputRecipe:
    """Recipe of inputs made from files; model files keep it, so that later commands make inputs in the same way."""

    time: Clock | None = None  # a column "time": a number as it is written, or a date as days since 1970-01-01, UTC
    lag: Annotated[int, ge(1)] | None = None  # one column per node with the signal this many rows before
    columns: tuple[str, ...] = ()  # of a table

    def __str__(self) -> str:
        parts = [] if self.time is None else [f"time ({self.time})"]
        parts += [] if self.lag is None else [f"lag:{self.lag}"]
        more = f", ... ({len(self.columns)} columns)" if len(self.columns) > 5 else ""
        parts += [f"a table with {', '.join(self.columns[:5])}{more}"] if self.columns else []
        return listing(parts) or "no inputs"


def inputs_from_file(
    path: Path | str,
    index: pd.Index[Any] | None = None,
    *,
    features: Sequence[str] | None = None,
    date_format: str | None = None,
) -> pd.DataFrame:
    """Read inputs, one row of numbers per signal, from a CSV or Parquet file.

    If the `index` of the signals is not a plain count, rows are matched by the first column of the table, in any order,
    and rows without a signal are left out. Otherwise rows are matched by position. `features` are the columns wanted,
    such as those of a fitted model: the first column is the index unless it is one of them. Dates in the index are in
    ISO 8601 or in `date_format`.
    """
    table = read_table(path)
    # an index without a name that only counts rows is not one of theirs
    is_count = index is None or (index.name is None and index.dtype.kind in "iu")
    has_own = index is not None and not (is_count and np.array_equal(index, np.arange(len(index))))
    has_index = has_own if features is None else table.names[0] not in features
    wanted = table.names[has_index:] if features is None else features
    if not wanted:
        raise ValueError(
            f"{table.path} must have columns of numbers beside the index, its first column; got {table.names[0]!r} "
            "alone. Add columns, or leave the index out of the signals too."
        )
    missing = [name for name in wanted if name not in table.names[has_index:]]
    if missing:
        raise ValueError(
            f"{table.path} must have the columns that the model was fitted to; got none named {some(missing)}. "
            "Rename or add them."
        )
    pandas = require("pandas", "cli", "to read signals from files")
    frame = pandas.DataFrame(table.numbers([table.names.index(name) for name in wanted]), columns=list(wanted))
    if has_index:
        frame.index = index_of(table, 0, date_format)
    if index is None:
        return frame
    if has_own and has_index:
        again, lost = np.flatnonzero(frame.index.duplicated()), np.flatnonzero(~index.isin(frame.index))
        if again.size:
            got = f"{frame.index[again[0]]} again"
            table.refuse("have one row for each label", got, int(again[0]), 0, "Drop copies.")
        if lost.size:
            raise ValueError(
                f"{table.path} must have a row for every signal, matched by its first column, {table.names[0]!r}; got "
                f"none for {some([str(label) for label in index[lost]])}. The first labels there are "
                f"{some([str(label) for label in frame.index[:3]])}."
            )
        return frame.loc[index]
    if len(frame) != len(index):
        raise ValueError(
            f"{table.path} must have a row for each of the {len(index)} signals where rows have no index to be matched "
            f"by; got {len(frame)}. Give both files a first column of dates or labels."
        )
    return frame


def lagged(signals: pd.DataFrame, lag: int = 1, *, ahead: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Inputs that are the signals `lag` rows before, and all signals but the first `lag`, to which they belong.

    Signals are in the order of time. If `ahead`, every row is an input of the signal `lag` rows after it, of which only
    the label is known: the second table then has no values (NaN), and one row for each row of `signals`.
    """
    pandas = require("pandas", "cli", "to read signals from files")
    index = signals.index
    before = signals if ahead else signals.iloc[:-lag]
    if not len(before):
        raise ValueError(f"signals must have at least {lag + 1} rows for lag:{lag}; got {len(signals)}. Add rows.")
    missing = np.argwhere(before.isna().to_numpy())
    if len(missing):
        row, column = missing[0]
        raise ValueError(
            f"signals must be complete where they are inputs, as lag:{lag} has it; got an empty cell in the row of "
            f"{before.index[row]}, column {before.columns[column]!r} ({len(missing)} in all). Impute "
            "them first (spectralgp impute, with a model of --inputs time), or choose other inputs."
        )
    gaps = np.diff(times_of(index)) if index.dtype.kind in "iufM" else np.empty(0)
    wide = np.flatnonzero(gaps > 1.5 * np.median(gaps)) if gaps.size else gaps
    if len(wide):
        warnings.warn(
            f"lag:{lag} counts rows, whatever their times: {index[wide[0] + 1]} is taken to follow {index[wide[0]]} as "
            f"any row does the one before ({len(wide)} such gaps in all). Add rows for times that are missing.",
            stacklevel=2,
        )
    if not ahead:
        return before.set_axis(index[lag:]), signals.iloc[lag:]
    labels = pandas.Index([*index, *following(index, lag)][lag:], name=index.name)
    return before.set_axis(labels), pandas.DataFrame(np.nan, index=labels, columns=signals.columns)


def time_inputs(index: pd.Index[Any], clock: Clock | None = None) -> pd.DataFrame:
    """Times of the signals, as by `times_of`, in a column named "time"; they must be of the kind `clock` if given."""
    pandas = require("pandas", "cli", "to read signals from files")
    times = times_of(index)
    if clock not in (None, clock_kind(index)):
        raise ValueError(
            f"time must be {clock}, as the model was fitted to; got {clock_kind(index)} such as {index[0]}. Write "
            "times as they were written for the fit."
        )
    return pandas.DataFrame({TIME: times}, index=index)


def clock_kind(index: pd.Index[Any]) -> Clock:
    """Kind of times: numbers or dates."""
    return "dates" if hasattr(index, "tz_localize") else "numbers"
