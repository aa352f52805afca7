"""Answers as tables of a library, with the names of nodes and the labels of rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj

from spectralgp._arrays import on_host
from spectralgp._extras import require
from spectralgp._frames.reading import NODE, Layout, Table

LIBRARIES = ("pandas", "polars", "pyarrow", "xarray")
WRITTEN = (*LIBRARIES, "modin", "cudf")  # those that narwhals can make, too
SIGNAL = "signal"  # what the dimension of the rows is called where nothing else is known


def written(values: Any, layout: Layout, names: Sequence[Hashable] | None = None, index: Any = None) -> Any:
    """Numbers in one or two dimensions as a table.

    Parameters
    ----------
    values : array of shape (n_rows, n_columns) or (n_rows,)
        The numbers.
    layout : Layout
        The kind of table.
    names : sequence of length n_columns, optional
        Of the columns. Libraries that know texts only have them as texts; without names, columns are numbered.
    index : pandas Index, optional
        Labels of the rows, for libraries that have such.

    Raises
    ------
    ImportError
        If the library is not installed.

    Examples
    --------
    >>> written(np.array([[1.0, 2.0]]), Layout("polars"), ["a", "b"]).to_dict(as_series=False)
    {'a': [1.0], 'b': [2.0]}
    """
    numbers = np.asarray(on_host(values))
    extra = layout.library if layout.library in LIBRARIES else "all"
    library = require(layout.library, extra, f"to answer as a table of {layout.library}")
    if layout.library == "xarray":
        return _data_array(library, numbers, layout, names, index)
    if layout.library == "pandas":
        if numbers.ndim == 1:
            return library.Series(numbers, index=index)
        columns = None if names is None else list(names)
        return library.DataFrame(numbers, index=index, columns=columns)
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


def _data_array(xarray: Any, numbers: Any, layout: Layout, names: Sequence[Hashable] | None, index: Any) -> Any:
    own = getattr(index, "name", None)
    rows, nodes = layout.dims or (SIGNAL if own is None or own == NODE else str(own), NODE)
    coordinates = _coordinate(xarray, rows, index)
    if numbers.ndim == 1:
        return xarray.DataArray(numbers, dims=(rows,), coords=coordinates)
    if names is not None:
        listed = np.empty(len(names), dtype=object)
        listed[:] = names
        coordinates |= {nodes: np.array(names) if all(isinstance(name, str) for name in names) else listed}
    array = xarray.DataArray(numbers, dims=(rows, nodes), coords=coordinates)
    return array.transpose(nodes, rows) if layout.is_turned else array


def _coordinate(xarray: Any, dim: str, index: Any) -> dict[Hashable, Any]:
    if index is None:
        return {}
    if index.nlevels > 1:
        return dict(xarray.Coordinates.from_pandas_multiindex(index, dim))
    return {dim: index.rename(None)}


def like_table(values: Any, table: Any) -> Any:
    """An array as what a table or array is: a table with its names and index, or an array of its library."""
    if isinstance(table, Table):
        source, layout = table.source, table.layout
        if layout.library == "xarray":
            return source.copy(data=values.T if layout.is_turned else values)
        if hasattr(source, "iloc"):
            named = {"columns": source.columns} if hasattr(source, "columns") else {"name": source.name}
            return type(source)(values, index=source.index, **named)
        return written(values, layout, table.names) if layout.library in WRITTEN else values
    if is_array_api_obj(table) and not isinstance(table, np.ndarray):
        return array_namespace(table).asarray(values, dtype=table.dtype, device=device(table))
    return values
