"""Tables in files: named columns of cells, the row number of every cell for messages, and labels of rows.

CSV is read by Python's own reader, which gives every cell as text with its row: nothing is guessed in silence (names
keep their zeros, short rows are errors), and every error can name the place. Numbers are parsed when they are needed.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.checks import Array
from spectralgp._basics.extras import require
from spectralgp._basics.files import atomic_write
from spectralgp._basics.tables import days_of, some
from spectralgp.scores import interval_half_width

if TYPE_CHECKING:
    import pandas as pd

PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".tsv", ".txt")
LONG = ("node", "value")  # columns of a long table, beside its index
SEPARATORS = (",", ";", "\t", "|")
MISSING = {"", "na", "n/a", "nan", "null"}  # cells of missing values, in capitals or not
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
SAMPLE_ROWS = 50  # by which the separator is chosen
PLAIN_NUMBER = re.compile(r"[-+]?(?:0|[1-9]\d*)(?:\.\d+)?")
COMPACT_DATE = re.compile(r"(?:1[89]|2[01])\d{6}(?:\d\d)?")
OFFSET = re.compile(r":\d\d(?:\.\d+)?(Z|[-+]\d\d(?::?\d\d)?)$")
ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d(:\d\d)?")
SIGNIFICANT_DIGITS = 3  # of a standard deviation, to which values are rounded beside their intervals


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Name a file in errors that occur inside."""
    try:
        yield
    except ValueError as error:
        raise ValueError(str(error) if str(path) in str(error) else f"{path}: {error}") from error


@dataclass(frozen=True, eq=False)
class FileTable:
    """Named columns of cells."""

    path: Path
    names: tuple[str, ...]  # the first may be empty, as that of an index is
    columns: tuple[Sequence[Any], ...]  # text in a CSV file; also numbers, dates or None in a Parquet file
    rows: NDArray[np.intp]  # as a spreadsheet counts them, the names in row 1; those of Parquet without the names
    separator: str = ""  # of cells in a text file

    def place(self, *names: str) -> int | None:
        """Position of the column with the first of some names, in capitals or not; None if there is none."""
        lowered = [known.lower() for known in self.names]
        for name in names:
            if name in self.names:
                return self.names.index(name)
            if lowered.count(name) == 1:
                return lowered.index(name)
        return None

    def labels(self, column: int) -> list[str]:
        """Cells of a column as names: text without blanks around it, whole numbers without a point."""
        return [cell.strip() if type(cell) is str else as_label(cell) for cell in self.columns[column]]

    def where(self, row: int, column: int) -> str:
        """Place of a cell, for a message."""
        return f"row {self.rows[row]}, column {self.names[column]!r}"

    def refuse(self, condition: str, got: str, row: int, column: int, remedy: str) -> NoReturn:
        """Raise a ValueError that names a cell."""
        raise ValueError(f"{self.path} must {condition}; got {got} in {self.where(row, column)}. {remedy}")

    def numbers(self, columns: Sequence[int], *, allow_missing: bool = False) -> Array:
        """Cells of some columns as finite numbers, of shape (n_rows, n_columns), NaN where a cell is empty and may be.

        Where the separator is not a comma, decimal commas are read, unless some cells of the same file have points.
        """
        values, first = np.empty((len(self.rows), len(columns))), dict[str, tuple[int, int]]()  # with a comma, a point
        for place, column in enumerate(columns):
            cells = self.columns[column]
            if isinstance(cells, np.ndarray):  # of a Parquet file, without empty cells
                values[:, place] = cells
                continue
            for row, cell in enumerate(cells):
                text = cell
                if self.separator not in ("", ",") and isinstance(cell, str):
                    if "," in cell and DECIMAL_COMMA.fullmatch(cell.strip()):
                        text = cell.replace(",", ".")
                    if "." in text:
                        first.setdefault("," if "," in cell else ".", (row, column))
                number = _number(text)
                if number is None:
                    condition = f"hold numbers there{', or empty cells for missing values' * allow_missing}"
                    remedy = "Numbers are written as 1234.5, without separators of thousands."
                    self.refuse(condition, repr(cell), row, column, remedy)
                values[row, place] = number
        if len(first) == 2:  # one of them may separate thousands
            (row, column), comma = first["."], first[","]
            got = f"{self.columns[comma[1]][comma[0]]!r} in {self.where(*comma)} and {self.columns[column][row]!r}"
            remedy = "Write all numbers with a point, or all with a comma."
            self.refuse("have one decimal mark", got, row, column, remedy)
        wrong = np.argwhere(np.isinf(values) if allow_missing else ~np.isfinite(values))
        if wrong.size:
            row, place = wrong[0].tolist()
            got = "infinity" if np.isinf(values[row, place]) else "an empty cell"
            remedy = "Leave cells of missing values empty." if allow_missing else "Fill it in or drop the row."
            self.refuse("hold finite numbers there", got, row, columns[place], remedy)
        return values


def _number(cell: Any) -> float | None:
    """A cell as a number, NaN if it is empty, None if it is neither."""
    if isinstance(cell, str):
        try:
            return None if "_" in cell else float(cell)
        except ValueError:
            return np.nan if cell.strip().lower() in MISSING else None
    if cell is None:
        return np.nan
    return float(cast(Any, cell)) if isinstance(cell, Number) and not isinstance(cell, bool) else None  # also Decimal


def as_label(cell: Any) -> str:
    """A cell as the name of a node: text without blanks around it, a whole number without a point, "" for nothing."""
    if cell is None:
        return ""
    if isinstance(cell, float | np.floating):
        return "" if np.isnan(cell) else str(int(cell)) if float(cell).is_integer() else str(cell)
    return str(cell).strip()


def read_table(path: Path | str) -> FileTable:
    """Read a table with names in its first row: Parquet, or CSV (with , ; tab or |; in UTF-8 or -16; also packed)."""
    path = Path(path)
    table = _read_parquet(path) if path.suffix.lower() in PARQUET else _read_text(path)
    nameless = [place for place, name in enumerate(table.names) if place and not name]
    if nameless:
        raise ValueError(f"{path} must name every column in row 1; got no name in column {nameless[0] + 1}. Add it.")
    repeated = [name for name, count in Counter(table.names).items() if count > 1]
    if repeated:
        places = ", ".join(str(place) for place, name in enumerate(table.names, 1) if name == repeated[0])
        raise ValueError(
            f"{path} must have distinct column names; got {some(repeated)} more than once ({repeated[0]!r} in columns "
            f"{places}). Rename or drop them."
        )
    if not len(table.rows):
        raise ValueError(f"{path} must have rows below the names of its columns; got none. Check the file.")
    return table


# ---------------------------------------------------------------------------------------------------------- text


def _read_text(path: Path) -> FileTable:
    text = _decoded(path)
    separator = _separator(text)
    header, rows, numbers = None, [], []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    number = 0
    try:
        for number, cells in enumerate(reader, 1):
            if len(cells) < 2 and not any(cell.strip() for cell in cells):
                continue  # an empty line
            if header is None:
                header = [name.strip() for name in cells]
            elif len(cells) != len(header):
                raise ValueError(
                    f"{path} must have as many cells in every row as there are names, {len(header)}; got {len(cells)} "
                    f"in row {number}. Cells are separated by {separator!r}; quote those that contain it."
                )
            else:
                rows.append(cells)
                numbers.append(number)
    except csv.Error as error:
        raise ValueError(f"{path} must be a table of text; got {error} in row {number + 1}. Check quotes.") from error
    if header is None:
        raise ValueError(f"{path} must have the names of its columns in the first row; got an empty file.")
    columns = tuple(zip(*rows, strict=True)) if rows else tuple(() for _ in header)
    if len(header) > 1 and not header[-1] and not any(cell.strip() for cell in columns[-1]):
        header, columns = header[:-1], columns[:-1]  # every row ends with a separator
    return FileTable(path, tuple(header), columns, np.array(numbers, dtype=np.intp), separator)


def _decoded(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix.lower() == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} must be packed by gzip; got {error}. Rename it, or pack it again.") from error
    is_marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if is_marked else "utf-8-sig")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path} must be text in UTF-8; got the byte {data[error.start : error.start + 1].hex()} in row {row}. "
            "Save it as CSV in UTF-8 (or as Parquet, with that suffix)."
        ) from error


def _separator(text: str) -> str:
    """Separator that splits the first rows into equal numbers of cells, and the names into most."""
    head = list(islice(io.StringIO(text, newline=""), SAMPLE_ROWS))

    def merit(separator: str) -> tuple[bool, int]:
        try:
            lengths = [len(row) for row in csv.reader(head, delimiter=separator) if row]
        except csv.Error:
            lengths = []
        return (len(set(lengths)) == 1, lengths[0]) if lengths and lengths[0] > 1 else (False, 0)

    return max(SEPARATORS, key=merit)


# ------------------------------------------------------------------------------------------------------- Parquet


def _read_parquet(path: Path) -> FileTable:
    parquet = require("pyarrow.parquet", "parquet", "to read Parquet files")
    try:
        with parquet.ParquetFile(path) as file:  # read_table would fail on two columns of one name
            read = file.read()
    except (OSError, ValueError) as error:
        if not path.exists():
            raise
        raise ValueError(f"{path} must be a Parquet file; got one that cannot be read ({error}).") from error
    index = [name for name in (read.schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
    order = sorted(range(read.num_columns), key=lambda place: read.column_names[place] not in index)
    names, columns = [read.column_names[place] for place in order], []  # pandas writes its index last
    for place in order:
        column = read.column(place)
        is_number = any(str(column.type).startswith(kind) for kind in ("int", "uint", "float", "double"))
        columns.append(column.to_numpy() if is_number and not column.null_count else column.to_pylist())
    labels = tuple("" if re.fullmatch(r"__index_level_\d+__", name) else name.strip() for name in names)
    return FileTable(path, labels, tuple(columns), np.arange(1, read.num_rows + 1, dtype=np.intp))


# -------------------------------------------------------------------------------------------- labels of rows


def index_of(table: FileTable, column: int, date_format: str | None = None) -> pd.Index[Any]:
    """A column as the index of rows: of numbers, else dates, else labels, by the kind of all of its cells.

    Dates are in ISO 8601 (2024-01-31, 2024-01-31T12:00), or all in `date_format`, such as ``"%d.%m.%Y"``. Dates
    without marks, such as 20240131, and times of several UTC offsets are read with a warning.
    """
    pandas = require("pandas", "cli", "to read signals from files")
    cells, name, labels = table.columns[column], table.names[column] or None, table.labels(column)
    if "" in labels:
        table.refuse("label every row", "an empty cell", labels.index(""), column, "Fill it in or drop the row.")
    is_text = any(isinstance(cell, str) for cell in cells)
    own = None if is_text else pandas.Index(cells, name=name)  # of a Parquet file, which knows
    if own is not None and (own.dtype.kind not in "iu" or date_format is not None):
        return own
    distinct, warning = list(dict.fromkeys(labels)), ""  # a long table has every label many times
    if date_format is not None:
        known = pandas.to_datetime(distinct, format=date_format, errors="coerce")
        if known.isna().any():
            wrong, remedy = distinct[np.argmax(known.isna())], f"Dates are expected as in the format {date_format!r}."
            table.refuse("hold dates there", repr(wrong), labels.index(wrong), column, remedy)
    elif (known := _compact_dates(distinct)) is not None:
        warning = f"is read as dates: {labels[0]} as {known[0]}. If they are numbers write {labels[0]}.0."
    elif own is not None:
        return own
    elif all(PLAIN_NUMBER.fullmatch(label) for label in distinct):
        whole = not any("." in label for label in distinct)
        known = pandas.Index([int(label) if whole else float(label) for label in distinct])
    else:
        offsets = {found[1] if (found := OFFSET.search(label)) else "" for label in distinct}
        is_mixed = len(offsets) > 1 and "" not in offsets
        try:
            known = pandas.DatetimeIndex(pandas.to_datetime(distinct, format="ISO8601", utc=is_mixed))
        except (ValueError, TypeError):  # also where only some have a UTC offset
            return pandas.Index(labels, name=name, dtype=object)
        if is_mixed:
            warning = f"has several UTC offsets; its times are converted to UTC: {labels[0]} to {known[0]}."
    if warning:
        warnings.warn(f"column {name!r} of {table.path} {warning}", stacklevel=2)
    places = {label: place for place, label in enumerate(distinct)}
    return known.rename(name).take([places[label] for label in labels])


def _compact_dates(labels: list[str]) -> pd.DatetimeIndex | None:
    """Dates such as 20240131, or 2024013118 with the hour; None unless all labels are."""
    lengths = {len(label) if COMPACT_DATE.fullmatch(label) else 0 for label in labels}
    if len(lengths) != 1 or 0 in lengths:
        return None
    pandas = require("pandas", "cli", "to read signals from files")
    dates = pandas.to_datetime(labels, format="%Y%m%d" if lengths == {8} else "%Y%m%d%H", errors="coerce")
    return None if dates.isna().any() else dates


def times_of(index: Any) -> Array:
    """Times as numbers: unchanged, or days since 1970 for dates (in UTC if they have a time zone)."""
    if index.dtype.kind in "iuf":
        return index.to_numpy(dtype=np.float64)
    if hasattr(index, "tz_localize"):
        return cast(Array, days_of((index if index.tz is None else index.tz_convert(None)).to_numpy()))
    got = f"labels such as {index[0]!r}" if len(index) else "no rows"
    raise ValueError(
        f"time must be numbers or dates as 2024-01-31, in the first column of the signals; got {got}. Say how dates "
        "are written (--date-format '%d.%m.%Y'), or pass a table of inputs."
    )


def following(index: pd.Index[Any], n_rows: int) -> list[Any]:
    """Labels of the rows after the last one: a step apart if all steps are equal, otherwise in words."""
    pandas, gap = require("pandas", "cli", "to read signals from files"), None
    if len(index) > 1 and index.dtype.kind in "iuf":
        gaps = np.diff(index.to_numpy())
        gap = gaps[0] if np.allclose(gaps, gaps[0]) else None
    elif len(index) > 2 and hasattr(index, "tz_localize"):
        gap = pandas.DatetimeIndex(index, freq="infer").freq
    if gap is not None:
        return [index[-1] + gap * step for step in range(1, n_rows + 1)]
    last = as_label(index[-1]).removesuffix(" 00:00:00")
    return [f"{step} after {last}" if step > 1 else f"after {last}" for step in range(1, n_rows + 1)]


# ------------------------------------------------------------------------------------------------------- writing


def dialect_of(path: Path | str, date_format: str | None = None) -> dict[str, Any]:
    """Options of pandas' `to_csv` that write as in a text file, with dates in `date_format` or as in its first row."""
    table = read_table(path)
    if not table.separator:
        return {"date_format": date_format}
    cells = (cell for column in table.columns for cell in column if "," in cell)
    has_commas = table.separator != "," and any(DECIMAL_COMMA.fullmatch(cell.strip()) for cell in cells)
    first = (column[0] for name, column in zip(table.names, table.columns, strict=True) if name.lower() not in LONG)
    label = next(first, "").strip()
    if date_format is None and COMPACT_DATE.fullmatch(label):
        date_format = "%Y%m%d" if len(label) == 8 else "%Y%m%d%H"
    elif date_format is None and (found := ISO_TIME.fullmatch(label)):
        date_format = f"%Y-%m-%d{found[1]}%H:%M{':%S' if found[2] else ''}"
    is_marked = Path(path).read_bytes().startswith(codecs.BOM_UTF8)
    written = {"sep": table.separator, "decimal": "," if has_commas else "."}
    return {**written, "date_format": date_format, "encoding": "utf-8-sig" if is_marked else "utf-8"}


def with_intervals(
    mean: pd.DataFrame, std: pd.DataFrame, level: float, ends: Sequence[pd.DataFrame] = ()
) -> dict[str, pd.DataFrame]:
    """Tables "mean", "std", "lower" and "upper", rounded to three digits of the smallest deviation in each column.

    Observed values, whose deviation is zero, are not rounded. `ends` are the lower and upper ones, if they do not
    follow from means and deviations.
    """
    spread = std.to_numpy()
    half = interval_half_width(spread, level)
    smallest = dict(zip(std.columns, np.min(spread, axis=0, where=spread > 0, initial=np.inf), strict=True))
    known = {node: one for node, one in smallest.items() if np.isfinite(one)}
    decimals = {node: SIGNIFICANT_DIGITS - 1 - int(np.floor(np.log10(one))) for node, one in known.items()}
    lower, upper = ends or (mean - half, mean + half)
    tables = {"mean": mean, "std": std, "lower": lower, "upper": upper}
    return {name: table.round(decimals).where(spread > 0, table) for name, table in tables.items()}


def side_by_side(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Columns "a", "a lower" and "a upper" of each node: its mean and the ends of its interval."""
    pandas, columns = require("pandas", "cli", "to write tables"), {}
    for node in tables["mean"].columns:
        columns[node] = tables["mean"][node]
        columns |= {f"{node} {end}": tables[end][node] for end in ("lower", "upper")}
    beside: pd.DataFrame = pandas.DataFrame(columns, index=tables["mean"].index)
    return beside


def as_long(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Long table of wide ones, with one row per value: label, node, and a column for each table."""
    first, *_ = tables.values()
    label = str(first.index.name or "signal")
    melted = [
        table.rename_axis(label).melt(ignore_index=False, var_name="node", value_name=name).reset_index()
        for name, table in tables.items()
    ]
    return melted[0].assign(**{name: table[name] for name, table in zip(tables, melted, strict=True)})


def write_tables(frames: dict[Path, pd.DataFrame], *, index: bool = True, **dialect: Any) -> None:
    """Write tables as CSV, in the dialect of `dialect_of`, or as Parquet; none is replaced before all are written."""
    with ExitStack() as stack:
        for path, frame in frames.items():
            beside = stack.enter_context(atomic_write(path))
            if path.suffix.lower() in PARQUET:
                require("pyarrow", "parquet", "to write Parquet files")
                frame.to_parquet(beside, index=index)
            else:
                frame.to_csv(beside, index=index, **dialect)
