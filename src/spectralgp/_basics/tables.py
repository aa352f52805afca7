"""Tables of any library: reading by narwhals, imported when a table is met, matching by name, and writing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from html import escape
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj
from numpy.typing import DTypeLike, NDArray

from spectralgp._basics.arrays import on_host
from spectralgp._basics.extras import require
from spectralgp._basics.saved import StoredAs

if TYPE_CHECKING:
    from narwhals.stable import v2 as nw

DAY = np.timedelta64(1, "D")
MICROSECONDS_A_DAY = 86_400_000_000
NODE = "node"  # default name of the dimension of the nodes


@dataclass(frozen=True)
class TableKind:
    """Library and layout of a table, so that answers can have the same."""

    # "xarray", or the name in narwhals: "pandas", "polars", "pyarrow" and others
    library: Annotated[str, StoredAs(Literal[WRITTEN])]
    dims: tuple[str, str] | None = None  # dimensions of an array of xarray: rows, and columns
    is_turned: bool = False  # whether the dimension of the columns comes first


@dataclass(frozen=True, eq=False)
class Table:
    """Table read from any library."""

    values: NDArray[Any]  # of shape (n_rows, n_columns), or (n_rows,) for a series; NaN for nulls
    names: tuple[Hashable, ...] | None  # of the columns
    index: Any  # pandas Index with the labels of the rows; None in libraries without
    layout: TableKind
    native: Any  # the table itself; an array of xarray as a pandas table, rows first
    source: Any  # the given table
    dates: tuple[int, ...] = ()  # columns of `values` that were dates, now days since 1970

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self.values.shape

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.values)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """The values."""
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    def as_one_row(self) -> Table:
        """A series over the columns as a table with one row."""
        names = self.names if self.index is None else tuple(self.index)
        return Table(self.values[None, :], names, None, self.layout, self.native, self.source)


def as_table(
    thing: Any,
    argument: str,
    *,
    names: Collection[Hashable] | None = None,
    rows: str | None = None,
    allow_dates: bool = False,
) -> Any:
    """Convert a table of any library to a `Table`; return arrays and other objects unchanged.

    `argument` is its name in messages. The expected `names` of the columns, or the dimension of the `rows`, identify
    the dimensions of an array of xarray. If dates are allowed, they become numbers by `days_of`.
    """
    if thing is None or isinstance(thing, Table | np.ndarray | list | tuple | dict | str) or is_array_api_obj(thing):
        return thing
    if is_data_array(thing):
        return _from_xarray(thing, argument, names, rows, allow_dates)
    from narwhals.exceptions import DuplicateError
    from narwhals.stable import v2 as nw

    try:
        found = nw.from_native(thing, allow_series=True, pass_through=True)
        if isinstance(found, nw.LazyFrame):
            remedy = "compute" if hasattr(thing, "compute") else "collect"
            raise TypeError(
                f"{argument} must be a table in memory; got a lazy one, {type(thing).__module__.partition('.')[0]}."
                f"{type(thing).__name__}. Pass {argument}.{remedy}()."
            )
        if not isinstance(found, nw.Series | nw.DataFrame):
            return thing
        frame = found.to_frame() if isinstance(found, nw.Series) else found
        columns = tuple(frame.columns)
    except DuplicateError:
        given = getattr(thing, "column_names", None) or thing.columns
        raise _repeated(given, f"{argument} must have distinct column names") from None
    index = getattr(thing, "index", None) if hasattr(thing, "iloc") else None
    frame, dates = _in_days(frame) if allow_dates else (frame, ())
    values, layout = _values(frame, argument), TableKind(found.implementation.value)
    if isinstance(found, nw.Series):
        return Table(values[:, 0].astype(float), None, index, layout, thing, thing)
    return Table(values, columns, index, layout, thing, thing, dates)


def _repeated(names: Iterable[Hashable], condition: str) -> ValueError:
    repeated = Counter(names).most_common(1)[0][0]
    return ValueError(f"{condition}; got {repeated!r} more than once. Rename them.")


# ---------------------------------------------------------------------------------------------------------- dates


def days_of(values: NDArray[Any]) -> NDArray[np.float64] | None:
    """Convert dates to days since 1970, in UTC if they have a time zone; None for other values."""
    if values.dtype.kind == "O" and values.size and all(isinstance(one, date | np.datetime64) for one in values.flat):
        plain = [
            one.astimezone(UTC).replace(tzinfo=None) if isinstance(one, datetime) and one.tzinfo else one
            for one in values.flat
        ]
        values = np.array(plain, dtype="datetime64[us]").reshape(values.shape)
    if values.dtype.kind != "M":
        return None
    return np.asarray((values - np.datetime64(0, "D")) / DAY, dtype=np.float64)


def columns_in_days(array: NDArray[Any]) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Array of shape (n_rows, n_columns) with columns of dates as days, and the positions of these columns."""
    if array.ndim != 2 or array.dtype.kind not in "MO":
        return array, ()
    columns = [days_of(column) for column in array.T]
    found = tuple(place for place, days in enumerate(columns) if days is not None)
    if not found:
        return array, ()
    made = [column if days is None else days for column, days in zip(array.T, columns, strict=True)]
    return np.stack(made, axis=1), found


def _in_days(frame: nw.DataFrame[Any]) -> tuple[nw.DataFrame[Any], tuple[int, ...]]:
    """Table with columns of dates as days, and the positions of these columns."""
    from narwhals.stable import v2 as nw

    native: Any = frame.to_native()
    own = dict[str, Any]()
    if hasattr(native, "iloc"):  # pandas, whose columns may hold objects
        found = {name: days_of(native[name].to_numpy()) for name, kind in frame.schema.items() if kind == nw.Object}
        own = {name: days for name, days in found.items() if days is not None}
        native = native.copy(deep=False) if own else native
        for name, days in own.items():
            native[name] = days
        frame = nw.from_native(native, eager_only=True)
    stamped = [name for name, kind in frame.schema.items() if kind in (nw.Date, nw.Datetime)]
    made = [nw.col(name).dt.timestamp("us").cast(nw.Float64) / MICROSECONDS_A_DAY for name in stamped]
    dates = tuple(place for place, name in enumerate(frame.columns) if name in own or name in stamped)
    return (frame.with_columns(*made) if made else frame), dates


# --------------------------------------------------------------------------------------------------------- values


def _values(frame: nw.DataFrame[Any], argument: str) -> NDArray[Any]:
    from narwhals.stable import v2 as nw

    native: Any = frame.to_native()
    if not hasattr(native, "iloc"):
        _check_columns(frame, argument)
        if frame.shape[1] == 0:
            return np.empty(frame.shape)
        single = all(dtype == nw.Float32 for dtype in frame.schema.values())
        return frame.select(nw.all().cast(nw.Float32 if single else nw.Float64)).to_numpy()
    kinds = {dtype: getattr(dtype, "kind", "O") for dtype in native.dtypes.unique()}
    if not all(kind in "biuf" for kind in kinds.values()):
        _check_columns(frame, argument)
    single = bool(kinds) and all(str(dtype).lower() == "float32" for dtype in kinds)
    dtype = np.float32 if single else np.float64
    try:
        if np.dtype(object) not in kinds:
            return native.to_numpy(dtype=dtype, na_value=np.nan)
        objects = native.to_numpy(dtype=object, copy=True)
        objects[native.isna().to_numpy()] = np.nan  # all markers of missing values
        return objects.astype(dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{argument} must hold numbers; got {error}. Convert it to numbers first.") from error


def _check_columns(frame: nw.DataFrame[Any], argument: str) -> None:
    """Refuse columns that do not hold numbers, by name, with a remedy for their kind."""
    from narwhals.stable import v2 as nw

    schema = frame.schema
    words = [name for name, dtype in schema.items() if dtype in (nw.String, nw.Categorical, nw.Enum, nw.Binary)]
    objects = [name for name, dtype in schema.items() if dtype == nw.Object]
    words += [name for name in objects if any(isinstance(value, str | bytes) for value in frame[name].to_list())]
    dates = [name for name, dtype in schema.items() if dtype.is_temporal()]
    library = frame.implementation.value
    if words and len(schema) - len(words) <= 2 and argument == "Y":
        remedy = {
            "pandas": f": {argument}.pivot(index=<time>, columns=<node>, values=<value>)",
            "polars": f": {argument}.pivot(on=<node>, index=<time>, values=<value>)",
        }.get(library, "")
        raise TypeError(
            f"{argument} must be a wide table, one row per signal and one column per node; got a long one, with words "
            f"in column {words[0]!r}. Turn it into a wide one{remedy}."
        )
    if words:
        raise TypeError(
            f"{argument} must hold numbers; got words in column {words[0]!r} ({len(words)} such columns in all). "
            "Drop or encode them."
        )
    if dates:
        days = f"({argument}[{dates[0]!r}] - {argument}[{dates[0]!r}].min()) / numpy.timedelta64(1, 'D')"
        raise TypeError(
            f"{argument} must hold numbers; got dates in column {dates[0]!r} ({len(dates)} such columns in all). "
            f"Make numbers of them, for example days{': ' + days if library == 'pandas' else ' since the first'}."
        )
    complex_ones = [name for name in schema if "complex" in str(getattr(frame[name].to_native(), "dtype", ""))]
    if complex_ones:
        raise ValueError(
            f"Complex data not supported: {argument} must hold real numbers; got column {complex_ones[0]!r}. "
            "Pass the real part or the modulus."
        )
    nested = [name for name, dtype in schema.items() if dtype.is_nested()]
    if nested:
        raise TypeError(f"{argument} must hold numbers; got {schema[nested[0]]} in column {nested[0]!r}. Unnest it.")


# --------------------------------------------------------------------------------------------------------- xarray


def is_data_array(thing: Any) -> bool:
    """Whether an object is an array of xarray, without importing xarray."""
    xarray: Any = sys.modules.get("xarray")
    return xarray is not None and isinstance(thing, xarray.DataArray)


def _from_xarray(
    array: Any, argument: str, names: Collection[Hashable] | None, rows: str | None, allow_dates: bool
) -> Table:
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{argument} must have two dimensions, of signals and of nodes; got {array.dims}. Select some of it, or "
            "stack dimensions into one."
        )
    dates = tuple(range(array.shape[-1])) if allow_dates and array.ndim == 2 and array.dtype.kind == "M" else ()
    if dates:
        array = (array - np.datetime64(0, "D")) / DAY
    if array.dtype.kind not in "biuf":
        kind = {"M": "dates", "m": "durations", "c": "complex numbers"}.get(array.dtype.kind, f"dtype {array.dtype}")
        raise TypeError(f"{argument} must hold numbers; got {kind}. Convert it to real numbers first.")
    if array.ndim == 1:
        index = array.indexes.get(array.dims[0])
        layout = TableKind("xarray", (str(array.dims[0]), NODE))
        return Table(np.asarray(array.to_numpy(), dtype=float), None, index, layout, array, array)
    turned = rows_first(array, argument, names, rows)
    first, along = turned.dims
    frame, values = turned.to_pandas(), np.asarray(turned.to_numpy())
    values = values if values.dtype.kind == "f" and values.itemsize in (4, 8) else values.astype(float)
    layout = TableKind("xarray", (str(first), str(along)), is_turned=array.dims[0] == along)
    index = frame.index if first in array.indexes else None
    if along not in array.indexes:
        return Table(values, None, index, layout, values, array, dates)
    if not frame.columns.is_unique:
        raise _repeated(frame.columns, f"{argument} must have distinct names along {along!r}")
    return Table(values, tuple(frame.columns.tolist()), index, layout, frame, array, dates)


def rows_first(array: Any, argument: str, names: Collection[Hashable] | None, rows: str | None = None) -> Any:
    """An array of xarray with its rows first; the other dimension has the names of the nodes, or the name "node"."""
    if rows is not None and rows in array.dims:
        return array.transpose(rows, ...)
    if argument == "X":  # whose columns are features, of any names
        return array
    wanted = set(names or ())
    found = {dim: set(array.indexes[dim].tolist()) if dim in array.indexes else set() for dim in array.dims}
    for chosen in (
        [dim for dim in array.dims if wanted and found[dim] == wanted],
        [dim for dim in array.dims if dim == NODE],
        [dim for dim in array.dims if found[dim] & wanted],
    ):
        if len(chosen) == 1:
            return array.transpose(..., *chosen)
    raise ValueError(
        f"{argument} must have one dimension whose coordinate holds the names of the nodes, or that is called "
        f"{NODE!r}; got {array.dims}, of which neither is, or both are. Say which it is: "
        f"{argument}.rename({{{array.dims[-1]!r}: {NODE!r}}})."
    )


def frame_names(table: Any) -> tuple[Any, ...] | None:
    """Column names of a table; None for anything else."""
    if isinstance(table, Table):
        return table.names
    columns = getattr(table, "column_names", None) or getattr(table, "columns", None)  # pyarrow's columns are values
    return None if columns is None else tuple(columns)


def frame_index(table: Any) -> Any:
    """Index of a table, such as those of pandas; None for other objects and for a single column."""
    if isinstance(table, Table):
        return table.index if len(table.shape) == 2 else None
    return getattr(table, "index", None) if hasattr(table, "columns") else None


def is_counted(index: Any) -> bool:
    """Whether an index merely counts the rows: none, or the default index of pandas."""
    return index is None or (hasattr(index, "step") and index.name is None)


def row_labels(index: Any, n_rows: int, first: int = 0) -> tuple[str, ...]:
    """Labels of rows by an index, or by number without one, such as "row 0"; dates without zeros of time."""
    if is_counted(index):
        start = first if index is None else index.start
        return tuple(f"row {start + row}" for row in range(n_rows))
    if hasattr(index, "tz_localize"):
        index = index.tz_localize(None).to_numpy()  # local time
    if getattr(index, "dtype", np.dtype(object)).kind != "M":
        return tuple(str(label) for label in index)
    texts = np.datetime_as_string(np.asarray(index, dtype="M8[us]"))
    for ending in (".000000", ":00", "T00:00"):  # shortened if all labels have the ending
        if all(text.endswith(ending) for text in texts):
            texts = np.array([text.removesuffix(ending) for text in texts])
        else:
            break
    return tuple(text.replace("T", " ") for text in texts.tolist())


def series_index(values: Any) -> tuple[Any, ...] | None:
    """Index of a pandas Series, or of one dimension of xarray; None for anything else."""
    if is_data_array(values):
        return tuple(values.indexes[values.dims[0]].tolist()) if values.ndim == 1 and values.indexes else None
    return tuple(values.index) if hasattr(values, "iloc") and not hasattr(values, "columns") else None


def check_same_order(X: Any, Y: Any, argument: str = "Y") -> None:
    """Refuse two tables with the same row labels in different orders: rows are paired by position."""
    left, right = (table.index if isinstance(table, Table) else None for table in (X, Y))
    if left is None or right is None or len(left) != len(right) or left.equals(right):
        return
    if left.is_unique and right.is_unique and set(left) == set(right):
        is_pandas = X.layout.library == Y.layout.library == "pandas"
        raise ValueError(
            f"X and {argument} must have their rows in the same order; got the same row labels in different orders. "
            + (f"Pass {argument}.loc[X.index]." if is_pandas else f"Select the rows of {argument} by the labels of X.")
        )


def match_rows(index: Any, wanted: Any, argument: str) -> NDArray[np.intp] | slice:
    """Positions of wanted row labels in an index; a full slice if either merely counts the rows."""
    if is_counted(index) or is_counted(wanted) or index.equals(wanted):
        return slice(None)
    positions = {label: place for place, label in enumerate(index)}
    if set(wanted) != positions.keys() or not len(positions) == len(index) == len(wanted):  # each once
        raise _unmatched(index, wanted, argument, "row", "signal", "its label", "Select rows by these labels")
    return np.array([positions[label] for label in wanted], dtype=np.intp)


def match_columns(
    columns: tuple[Hashable, ...],
    names: tuple[Hashable, ...],
    argument: str = "Y",
    item: str = "column",
    of: str = "node of the graph",
) -> NDArray[np.intp]:
    """Positions of named columns in the order of `names`; `item` and `of` name columns and their counterparts."""
    positions = {column: index for index, column in enumerate(columns)}
    if set(names) != positions.keys() or len(positions) != len(columns):
        raise _unmatched(columns, names, argument, item, of, "name", f"Rename or select {item}s")
    return np.array([positions[name] for name in names], dtype=np.intp)


def _unmatched(
    labels: Collection[Hashable], wanted: Collection[Hashable], argument: str, item: str, of: str, by: str, remedy: str
) -> ValueError:
    """Error for labels that differ from the wanted ones, with the first unknown and missing ones."""
    found, known, kind = set(labels), set(wanted), of.partition(" ")[0]
    unknown, missing = [one for one in labels if one not in known], [one for one in wanted if one not in found]
    return ValueError(
        f"{argument} must have one {item} for each {of}, by {by}; got {len(labels)} {item}s, of which {some(unknown)} "
        f"belong to no {kind}, while {some(missing)} are missing. {remedy}, or pass {argument}.to_numpy() with its "
        f"{item}s in the order of the {kind}s."
    )


def some(items: list[Any]) -> str:
    """A few of the items, for a message."""
    if not items:
        return "none"
    shown = ", ".join(repr(item) for item in items[:5])
    return shown if len(items) <= 5 else f"{shown} and {len(items) - 5} more"


def listing(parts: Sequence[Any]) -> str:
    """Parts of a sentence, such as "one", "one and two", "one, two and three"."""
    *others, last = map(str, parts or [""])
    return f"{', '.join(others)} and {last}" if others else last


LIBRARIES = ("pandas", "polars", "pyarrow", "xarray")
WRITTEN = (*LIBRARIES, "modin", "cudf")  # those that narwhals can make, too
SIGNAL = "signal"  # default name of the dimension of the rows


def to_table(values: Any, layout: TableKind, names: Sequence[Hashable] | None = None, index: Any = None) -> Any:
    """Convert numbers of shape (n_rows, n_columns) or (n_rows,) to a table.

    Libraries whose columns have text names get the `names` as text; without names, columns are numbered. The `index` is
    one of pandas, for libraries that have indexes.
    """
    numbers = np.asarray(on_host(values))
    extra = layout.library if layout.library in LIBRARIES else "all"
    library = require(layout.library, extra, f"to answer as a table of {layout.library}")
    if layout.library == "xarray":
        return _data_array(library, numbers, layout, names, index)
    if layout.library == "pandas":
        columns = None if names is None else list(names)
        return library.Series(numbers, index) if numbers.ndim == 1 else library.DataFrame(numbers, index, columns)
    from narwhals.stable import v2 as nw

    backend: Any = layout.library
    if numbers.ndim == 1:
        return nw.new_series("", numbers, nw.Float64, backend=backend).to_native()
    texts = [str(name) for name in (range(numbers.shape[1]) if names is None else names)]
    if len(set(texts)) < len(texts):
        repeated = next(text for place, text in enumerate(texts) if text in texts[:place])
        raise ValueError(
            f"names of nodes must differ as texts to be columns of {layout.library}; got {repeated!r} more than once. "
            "Ask for pandas, whose columns may have any names."
        )
    return nw.from_numpy(np.ascontiguousarray(numbers), schema=texts, backend=backend).to_native()


def _data_array(xarray: Any, numbers: Any, layout: TableKind, names: Sequence[Hashable] | None, index: Any) -> Any:
    own, coordinates = getattr(index, "name", None), dict[Hashable, Any]()
    rows, nodes = layout.dims or (SIGNAL if own is None or own == NODE else str(own), NODE)
    if index is not None and index.nlevels > 1:
        coordinates |= xarray.Coordinates.from_pandas_multiindex(index, rows)
    elif index is not None:
        coordinates[rows] = index.rename(None)
    if numbers.ndim == 1:
        return xarray.DataArray(numbers, dims=(rows,), coords=coordinates)
    if names is not None:
        listed = np.empty(len(names), dtype=object)
        listed[:] = names
        coordinates[nodes] = np.array(names) if all(isinstance(name, str) for name in names) else listed
    array = xarray.DataArray(numbers, dims=(rows, nodes), coords=coordinates)
    return array.transpose(nodes, rows) if layout.is_turned else array


def like_table(values: Any, table: Any) -> Any:
    """Convert an array to the kind of a table or array: a table with its names and index, or its library's array."""
    if isinstance(table, Table):
        source, layout = table.source, table.layout
        if layout.library == "xarray":
            return source.copy(data=values.T if layout.is_turned else values)
        if hasattr(source, "iloc"):
            named = {"columns": source.columns} if hasattr(source, "columns") else {"name": source.name}
            return type(source)(values, index=source.index, **named)
        return to_table(values, layout, table.names) if layout.library in WRITTEN else values
    if is_array_api_obj(table) and not isinstance(table, np.ndarray):
        return array_namespace(table).asarray(values, dtype=table.dtype, device=device(table))
    return values


def as_html(title: str, properties: Mapping[str, object]) -> str:
    """HTML table of names and values with a title, for notebooks; all texts are escaped."""
    left = 'style="text-align: left"'
    rows = "".join(
        f'<tr><th scope="row" {left}>{escape(name)}</th><td {left}>{escape(str(value))}</td></tr>'
        for name, value in properties.items()
    )
    return f"<table><caption {left}><b>{escape(title)}</b></caption><tbody>{rows}</tbody></table>"
