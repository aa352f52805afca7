"""Signals in tables that need not fit in memory: one row a node, one column a signal."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.extras import require
from spectralgp.partitioned.sources import is_dask_table, open_parquet

PURPOSE = "to read signals from tables larger than memory"


def signals_of_table(table: Any, node: str | None, n_nodes: int, names: Sequence[Hashable] | None) -> Any:
    """Signals as a Dask array of shape (n_signals, n_nodes), which is read when it is computed.

    Parameters
    ----------
    table : dask DataFrame, or path of a Parquet file or of a folder of such
        The table.
    node : str, optional
        Column that says which node a row is; the order of the rows if not given.
    n_nodes, names
        Of the graph.

    Raises
    ------
    TypeError
        If it is another kind of table, or a column holds anything but numbers.
    ValueError
        If there is no such column, or rows and nodes do not match one by one.
    """
    arrays, dask = (require(name, "dask", PURPOSE) for name in ("dask.array", "dask"))
    if isinstance(table, str | os.PathLike):
        rows = _parquet_rows(Path(table), node)
    elif is_dask_table(table):
        rows = _dask_rows(table, node)
    else:
        raise TypeError(
            "table must be a dask DataFrame or a file or folder of Parquet, with one row a node; "
            f"got {type(table).__name__}. Arrays and Zarr arrays of shape (n_signals, n_nodes) go to fit as they are."
        )
    if sum(rows.sizes) != n_nodes:
        raise ValueError(f"table must have a row for each of the {n_nodes} nodes; got {sum(rows.sizes)} rows.")
    dtype, values = np.result_type(*rows.dtypes.values(), np.float32), dask.delayed(_values, pure=False)
    chunks = [
        arrays.from_delayed(values(part, list(rows.dtypes), dtype), (len(rows.dtypes), size), dtype=dtype)
        for part, size in zip(rows.parts, rows.sizes, strict=True)
    ]
    signals = arrays.concatenate(chunks, axis=1)
    if rows.nodes is None:
        return signals
    places = _places(rows.nodes, n_nodes, names)
    return signals if np.array_equal(places, np.arange(n_nodes)) else signals[:, places]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Delayed parts of a table, tables or columns by name; their sizes; the columns of signals; the nodes of all."""

    parts: list[Any]
    sizes: Sequence[int]
    dtypes: Mapping[str, Any]
    nodes: NDArray[Any] | None


def _parquet_rows(path: Path, node: str | None) -> _Rows:
    files = open_parquet(path, "table")
    kinds = files.schema.empty_table().to_pandas(ignore_metadata=True).dtypes
    dtypes = _signals_among({name: kinds[name] for name in files.columns(() if node is None else (node,))}, node)
    read = require("dask", "dask", PURPOSE).delayed(files.read, pure=False)
    numbers = range(len(files.groups))
    nodes = None if node is None else np.concatenate([files.read(number, [node])[node] for number in numbers])
    return _Rows([read(number, list(dtypes)) for number in numbers], files.sizes, dtypes, nodes)


def _dask_rows(table: Any, node: str | None) -> _Rows:
    dask = require("dask", "dask", PURPOSE)
    if node is not None and table.index.name == node:
        table = table.reset_index()
    dtypes = _signals_among(dict(table.dtypes), node)
    parts, length = table.to_delayed(), dask.delayed(len)
    if node is None:
        return _Rows(parts, dask.compute(*map(length, parts)), dtypes, None)
    nodes = dask.compute(*(part[node] for part in parts))
    return _Rows(parts, [len(one) for one in nodes], dtypes, np.concatenate([one.to_numpy() for one in nodes]))


def _signals_among(kinds: Mapping[str, Any], node: str | None) -> dict[str, Any]:
    """Columns of signals, with their types."""
    if node is not None and node not in kinds:
        raise ValueError(
            f"node must be a column of the table; got {node!r}, and columns {list(kinds)[:5]}. Name the one that says "
            "which node a row is."
        )
    found = {name: kind for name, kind in kinds.items() if name != node}
    if not found:
        raise ValueError("table must have a column for each signal; got none beside the nodes.")
    wrong = next((name for name, kind in found.items() if getattr(kind, "kind", "O") not in "biuf"), None)
    if wrong is not None:
        raise TypeError(
            f"table must have columns of numbers; got {wrong!r} of {found[wrong]}. Pass the column of the nodes as "
            "node, and leave out others."
        )
    return found


def _values(part: Any, columns: Sequence[str], dtype: Any) -> NDArray[Any]:
    return np.stack([np.asarray(part[name], dtype=dtype) for name in columns])


def _places(given: NDArray[Any], n_nodes: int, names: Sequence[Hashable] | None) -> NDArray[np.intp]:
    """The row of each node."""
    pandas = require("pandas", "dask", PURPOSE)
    rows = pandas.Index(given)
    if not rows.is_unique:
        raise ValueError(f"table must have one row a node; got several for {rows[rows.duplicated()].tolist()[0]!r}.")
    wanted = pandas.Index(range(n_nodes) if names is None else names)
    places: NDArray[np.intp] = rows.get_indexer(wanted)
    if np.any(places < 0):
        kind = "numbers from 0" if names is None else "names"
        missing, other = wanted[places < 0].tolist()[0], rows.difference(wanted).tolist()[0]
        raise ValueError(
            f"nodes of the table must be the {kind} of the graph's {n_nodes} nodes; got no row for {missing!r}, and "
            f"one for {other!r}. Give every node a row."
        )
    return places
