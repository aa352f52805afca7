"""What rows are called: numbers, dates or other labels; and time as a number."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp._basics.extras import require
from spectralgp.files.tables import FileTable, as_label

if TYPE_CHECKING:
    import pandas as pd

PLAIN_NUMBER = re.compile(r"[-+]?(?:0|[1-9]\d*)(?:\.\d+)?")
COMPACT_DATE = re.compile(r"(?:1[89]|2[01])\d{6}(?:\d\d)?")
OFFSET = re.compile(r":\d\d(?:\.\d+)?(Z|[-+]\d\d(?::?\d\d)?)$")
DAY = np.timedelta64(1, "D")


def index_of(table: FileTable, column: int, date_format: str | None = None) -> pd.Index[Any]:
    """A column as the index of rows: numbers, else dates, else labels, whichever all of its cells are.

    Dates are in ISO 8601 (2024-01-31, 2024-01-31T12:00), or all in `date_format`, such as ``"%d.%m.%Y"``.
    """
    pandas = require("pandas", "cli", "to read signals from files")
    cells, name = table.columns[column], table.names[column] or None
    labels = table.labels(column)
    if "" in labels:
        table.refuse("label every row", "an empty cell", labels.index(""), column, "Fill it in or drop the row.")
    if not any(isinstance(cell, str) for cell in cells):  # of a Parquet file, which knows
        index = pandas.Index(cells, name=name)
        dates = _compact_dates(labels) if index.dtype.kind in "iu" and date_format is None else None
        return index if dates is None else _noted(dates, name, labels[0], table)
    first: dict[str, int] = {}  # a long table has every label many times
    for row, label in enumerate(labels):
        first.setdefault(label, row)
    rows = list(first.values())

    def refuse(place: int, got: str, remedy: str) -> None:
        table.refuse("hold dates there", got, rows[place], column, remedy)

    known = parsed_index(list(first), name, date_format, refuse, table)
    places = dict(zip(first, range(len(first)), strict=True))
    return known.take(np.fromiter(map(places.__getitem__, labels), dtype=np.intp, count=len(labels)))


def parsed_index(
    labels: list[str], name: str | None, date_format: str | None, refuse: Any, table: FileTable | None = None
) -> pd.Index[Any]:
    """Labels as an index of numbers, dates or labels; a note says where dates have no marks or several UTC offsets."""
    pandas = require("pandas", "cli", "to read signals from files")
    if date_format is not None:
        dates = pandas.to_datetime(labels, format=date_format, errors="coerce")
        wrong = np.flatnonzero(dates.isna())
        if wrong.size:
            refuse(int(wrong[0]), repr(labels[wrong[0]]), f"Dates are expected as in the format {date_format!r}.")
        return pandas.DatetimeIndex(dates, name=name)
    compact = _compact_dates(labels)
    if compact is not None:
        return _noted(compact, name, labels[0], table)
    if all(PLAIN_NUMBER.fullmatch(label) for label in labels):
        whole = not any("." in label for label in labels)
        return pandas.Index([int(label) if whole else float(label) for label in labels], name=name)
    offsets = {found[1] if (found := OFFSET.search(label)) else "" for label in labels}
    is_mixed = len(offsets) > 1 and "" not in offsets
    try:
        dates = pandas.DatetimeIndex(pandas.to_datetime(labels, format="ISO8601", utc=is_mixed), name=name)
    except (ValueError, TypeError):  # also where only some have a UTC offset
        return pandas.Index(labels, name=name, dtype=object)
    if is_mixed:
        warnings.warn(
            f"column {name!r}{_of(table)} has several UTC offsets; its times are converted to UTC: {labels[0]} to "
            f"{dates[0]}.",
            stacklevel=2,
        )
    return dates


def _compact_dates(labels: list[str]) -> pd.DatetimeIndex | None:
    """Dates as 20240131, or with the hour as 2024013118; None where not all are."""
    pandas = require("pandas", "cli", "to read signals from files")
    lengths = {len(label) if COMPACT_DATE.fullmatch(label) else 0 for label in labels}
    if len(lengths) != 1 or 0 in lengths:
        return None
    dates = pandas.to_datetime(labels, format="%Y%m%d" if lengths == {8} else "%Y%m%d%H", errors="coerce")
    return None if dates.isna().any() else pandas.DatetimeIndex(dates)


def _noted(dates: pd.DatetimeIndex, name: str | None, first: str, table: FileTable | None) -> pd.DatetimeIndex:
    """Dates, with a note that this is what numbers were taken for."""
    warnings.warn(
        f"column {name!r}{_of(table)} is read as dates: {first} as {dates[0]}. If they are numbers write {first}.0.",
        stacklevel=2,
    )
    return dates.rename(name)


def _of(table: FileTable | None) -> str:
    return "" if table is None else f" of {table.path}"


def times_of(index: Any) -> Array:
    """Time as numbers: numbers as they are, dates as days since 1970 (in UTC where they have a time zone)."""
    if index.dtype.kind in "iuf":
        return index.to_numpy(dtype=np.float64)
    if hasattr(index, "tz_localize"):
        plain = index if index.tz is None else index.tz_convert(None)
        return np.asarray((plain.to_numpy() - np.datetime64(0, "D")) / DAY, dtype=np.float64)
    got = f"labels such as {index[0]!r}" if len(index) else "no rows"
    raise ValueError(
        f"time must be numbers or dates as 2024-01-31, in the first column of the signals; got {got}. Say how dates "
        "are written (--date-format '%d.%m.%Y'), or pass a table of inputs."
    )


def following(index: pd.Index[Any], n_rows: int = 1) -> list[Any]:
    """Labels of the rows after the last: one step on each where all steps are alike, else in words."""
    pandas = require("pandas", "cli", "to read signals from files")
    if len(index) > 1 and index.dtype.kind in "iuf":
        steps = np.diff(index.to_numpy())
        if np.allclose(steps, steps[0]):
            return [index[-1] + steps[0] * step for step in range(1, n_rows + 1)]
    if len(index) > 2 and hasattr(index, "tz_localize"):
        frequency = pandas.DatetimeIndex(index, freq="infer").freq
        if frequency is not None:
            return [index[-1] + frequency * step for step in range(1, n_rows + 1)]
    last = as_label(index[-1]).removesuffix(" 00:00:00")
    return [f"{step} after {last}" if step > 1 else f"after {last}" for step in range(1, n_rows + 1)]
