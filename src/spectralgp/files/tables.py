"""Tables in files: named columns of cells, and for every cell the row that a message can name.

CSV is read by Python's own reader. It gives every cell as text with its row, so that nothing is guessed in silence
(names keep their zeros, short rows are errors) and every error can say where it is. Numbers are made where they are
wanted.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
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
from spectralgp._basics.tables import some

if TYPE_CHECKING:
    import pandas as pd

PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".tsv", ".txt")
SEPARATORS = (",", ";", "\t", "|")
MISSING = {"", "na", "n/a", "nan", "null"}  # cells of numbers that stand for nothing observed, in capitals or not
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
SAMPLE_ROWS = 50  # that the separator is judged by


@dataclass(frozen=True, eq=False)
class FileTable:
    """Named columns of cells."""

    path: Path
    names: tuple[str, ...]  # the first may be empty, as that of an index is
    columns: tuple[Sequence[Any], ...]  # text in a CSV file; also numbers, dates or None in a Parquet file
    rows: NDArray[np.intp]  # as a spreadsheet counts them, the names in row 1; those of Parquet without the names
    separator: str = ""  # of cells in a text file

    @property
    def n_rows(self) -> int:
        """Number of rows, without that of the names."""
        return len(self.rows)

    def place(self, name: str) -> int | None:
        """Position of the column with a name, in capitals or not; None if there is none."""
        lowered = [known.lower() for known in self.names]
        if name in self.names:
            return self.names.index(name)
        return lowered.index(name.lower()) if lowered.count(name.lower()) == 1 else None

    def labels(self, column: int) -> list[str]:
        """Cells of a column as names: text without blanks around it, whole numbers without a point."""
        return [cell.strip() if type(cell) is str else as_label(cell) for cell in self.columns[column]]

    def where(self, row: int, column: int) -> str:
        """The place of a cell, for a message."""
        return f"row {self.rows[row]}, column {self.names[column]!r}"

    def refuse(self, condition: str, got: str, row: int, column: int, remedy: str) -> NoReturn:
        """Say what is wrong with a cell, and where it is."""
        raise ValueError(f"{self.path} must {condition}; got {got} in {self.where(row, column)}. {remedy}")

    def numbers(self, columns: Sequence[int], *, allow_missing: bool = False) -> Array:
        """Cells of some columns as finite numbers, of shape (n_rows, n_columns), NaN where a cell is empty and may be.

        Where the separator is not a comma, decimal commas are read, unless some cells of the same file have points.
        """
        values = np.empty((self.n_rows, len(columns)))
        comma: tuple[int, int] | None = None
        for place, column in enumerate(columns):
            values[:, place], first = self._column_of_numbers(column, allow_missing)
            comma = comma or (None if first is None else (first, column))
        if comma is not None:
            self._require_commas(columns, comma)
        return values

    def _column_of_numbers(self, column: int, allow_missing: bool) -> tuple[Array, int | None]:
        """Numbers of a column, and the first row with a decimal comma."""
        cells, first = self.columns[column], None
        try:  # most columns are numbers as Python writes them, and empty cells
            if _has_oddities(cells):
                raise ValueError("what only Python takes for a number")
            values = np.array([np.nan if cell == "" else cell for cell in cells], dtype=np.float64)
            if values.ndim > 1:
                raise ValueError("lists, as a Parquet file may hold")
        except (TypeError, ValueError):
            values = np.empty(self.n_rows)
            for row, cell in enumerate(cells):
                number, has_comma = self._number(cell)
                if number is None:
                    condition = f"hold numbers there{', or empty cells for what was not observed' * allow_missing}"
                    remedy = "Numbers are written as 1234.5, without separators of thousands."
                    self.refuse(condition, repr(cell), row, column, remedy)
                values[row], first = number, row if has_comma and first is None else first
        wrong = np.flatnonzero(np.isinf(values) if allow_missing else ~np.isfinite(values))
        if wrong.size:
            got = "infinity" if np.isinf(values[wrong[0]]) else "an empty cell"
            remedy = "Leave cells empty where nothing was observed." if allow_missing else "Fill it in or drop the row."
            self.refuse("hold finite numbers there", got, int(wrong[0]), column, remedy)
        return values, first

    def _number(self, cell: Any) -> tuple[float | None, bool]:
        """A cell as a number, None if it is none, and whether it has a decimal comma."""
        if cell is None:
            return np.nan, False
        if not isinstance(cell, str):
            is_number = isinstance(cell, Number) and not isinstance(cell, bool)  # also Decimal
            return (float(cast(Any, cell)) if is_number else None), False
        text = cell.strip()
        if text.lower() in MISSING:
            return np.nan, False
        if self.separator not in ("", ",") and DECIMAL_COMMA.fullmatch(text):
            return float(text.replace(",", ".")), True
        try:
            return (None if "_" in text else float(text)), False
        except ValueError:
            return None, False

    def _require_commas(self, columns: Sequence[int], comma: tuple[int, int]) -> None:
        """Refuse a file with decimal commas and decimal points: one of them may separate thousands."""
        for column in columns:
            for row, cell in enumerate(self.columns[column]):
                if isinstance(cell, str) and "." in cell and cell.strip().lower() not in MISSING:
                    got = f"{self.columns[comma[1]][comma[0]]!r} in {self.where(*comma)} and {cell!r}"
                    remedy = "Write all numbers with a point, or all with a comma."
                    self.refuse("have one decimal mark", got, row, column, remedy)


def _has_oddities(cells: Sequence[Any]) -> bool:
    """Whether a column may have digits grouped by underscores, or truth values."""
    if isinstance(cells, np.ndarray):
        return cells.dtype.kind == "b"
    if all(type(cell) is str for cell in cells):
        return "_" in "".join(cells)
    return any("_" in cell if isinstance(cell, str) else isinstance(cell, bool) for cell in cells)


def as_label(cell: Any) -> str:
    """A cell as the name of a node: text without blanks around it, a whole number without a point, "" for nothing."""
    if cell is None:
        return ""
    if isinstance(cell, float | np.floating):
        return "" if np.isnan(cell) else str(int(cell)) if float(cell).is_integer() else str(cell)
    return str(cell).strip()


def read_table(path: Path | str) -> FileTable:
    """Read a table with the names of its columns in the first row.

    CSV (comma, semicolon, tab or bar; UTF-8 or marked UTF-16; also packed, .csv.gz) or Parquet.
    """
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
    if not table.n_rows:
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
        raise ValueError(
            f"{path} must be a table of text; got {error} in row {number + 1}. Check its quotes."
        ) from error
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
    """What splits all of the first rows alike, and the names into the most."""
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


# ------------------------------------------------------------------------------------------------------- writing


def write_tables(frames: dict[Path, pd.DataFrame], *, index: bool = True) -> None:
    """Write tables as CSV or, by their suffix, Parquet. No file is replaced before all of them are written."""
    with ExitStack() as stack:
        for path, frame in frames.items():
            beside = stack.enter_context(atomic_write(path))
            if path.suffix.lower() in PARQUET:
                require("pyarrow", "parquet", "to write Parquet files")
                frame.to_parquet(beside, index=index)
            else:
                frame.to_csv(beside, index=index)
