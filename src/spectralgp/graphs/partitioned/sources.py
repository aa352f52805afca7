"""Data larger than memory: tables in blocks of rows, by Dask or Parquet, and their signals."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import is_dask_array
from numpy.typing import NDArray

from spectralgp._basics.arrays import on_host
from spectralgp._basics.extras import require

PURPOSE = "to compute on partitioned graphs"
READING = "to read tables larger than memory"
BYTES_PER_CHUNK = 2**26  # of signals


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Rows in blocks, each read on demand."""

    n_blocks: int
    read: Callable[[int], Any]  # rows of a block by its number
    fingerprint: Any  # identifies the rows: an array, or an object by its `repr`

    def __iter__(self) -> Iterator[Any]:
        """Blocks in turn."""
        return map(self.read, range(self.n_blocks))


@dataclass(frozen=True, eq=False)
class BlockTable:
    """Blocks of a table: row groups of Parquet files, or parts of a Dask table."""

    columns: list[str]
    n_blocks: int
    fingerprint: Any
    read: Callable[[int, Sequence[str]], Any]  # some columns of a block
    delayed: Callable[[Sequence[str]], list[Any]]  # some columns of every block, to be read by Dask
    dtypes: Callable[[], Mapping[str, Any]]  # of all columns
    sizes: Callable[[], Sequence[int]]  # numbers of rows of the blocks


def open_table(table: Any, argument: str, index: Sequence[str], content: str, remedy: str) -> BlockTable:
    """Open a Dask table or Parquet files; columns named in `index` may be the index of the table."""
    if isinstance(table, str | os.PathLike):
        return _parquet_table(Path(table), argument, index)
    if hasattr(table, "npartitions") and hasattr(table, "columns"):
        return _dask_table(table, index)
    raise TypeError(
        f"{argument} must be a dask DataFrame or a file or folder of Parquet, with {content}; "
        f"got {type(table).__name__}. {remedy}"
    )


def _dask_table(table: Any, index: Sequence[str]) -> BlockTable:
    dask = require("dask", "dask", READING)
    if table.index.name in index:
        table = table.reset_index()
    return BlockTable(
        list(table.columns),
        table.npartitions,
        dask.base.tokenize(table),  # of its graph of tasks
        lambda number, columns: table[list(columns)].partitions[number].compute(),
        lambda columns: table[list(columns)].to_delayed(),
        lambda: dict(table.dtypes),
        lambda: dask.compute(*map(dask.delayed(len), table.to_delayed())),
    )


def _parquet_table(path: Path, argument: str, index: Sequence[str]) -> BlockTable:
    """Row groups in the order of the files' names, part.2 before part.10; only metadata are read here."""
    paths = sorted(path.rglob("*.parquet"), key=_by_number) if path.is_dir() else [path]
    if not paths or not all(file.is_file() for file in paths):
        raise FileNotFoundError(
            f"{argument} must be a file or a folder of Parquet; got {path}, where there is none. Pass another path."
        )
    heads = [_parquet().read_metadata(file) for file in paths]
    pairs = zip(paths, heads, strict=True)
    groups = [(file, group) for file, head in pairs for group in range(head.num_row_groups)]
    schema = heads[0].schema.to_arrow_schema()
    hidden = (schema.pandas_metadata or {}).get("index_columns", ())  # index of pandas or Dask

    def read(number: int, columns: Sequence[str]) -> dict[str, Any]:
        file, group = groups[number]
        found = _parquet().ParquetFile(file).read_row_group(group, columns=list(columns))
        return {name: found[name].to_numpy() for name in columns}

    def delayed(columns: Sequence[str]) -> list[Any]:
        reading = require("dask", "dask", READING).delayed(read)
        return [reading(number, columns) for number in range(len(groups))]

    return BlockTable(
        [name for name in schema.names if name not in hidden or name in index],
        len(groups),
        [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in paths],
        read,
        delayed,
        lambda: dict(schema.empty_table().to_pandas(ignore_metadata=True).dtypes),
        lambda: [head.row_group(group).num_rows for head in heads for group in range(head.num_row_groups)],
    )


def _by_number(path: Path) -> list[int | str]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(path))]  # numbers in every other


def _parquet() -> Any:
    return require("pyarrow.parquet", "parquet", "to read Parquet files")


# --------------------------------------------------------------------------------------------------------- signals


def as_dask(array: Any) -> Any:
    """Convert a Zarr array to Dask's; return others unchanged."""
    if type(array).__module__.partition(".")[0] != "zarr":
        return array
    return require("dask.array", "dask", PURPOSE).from_zarr(array)


def require_complete(signals: Any, bytes_per_chunk: int = BYTES_PER_CHUNK) -> Any:
    """Return complete signals; raise ValueError for missing values, for a Dask array when it is computed."""
    if is_dask_array(signals):
        lazy: Any = signals
        return lazy.map_blocks(_complete, meta=lazy._meta)
    width = max(1, bytes_per_chunk // (8 * max(1, signals.shape[0])))
    for start in range(0, signals.shape[1], width):
        _complete(np.asarray(on_host(signals[:, start : start + width])))
    return signals


def _complete(block: Any) -> Any:
    if np.isnan(block).any():
        raise ValueError(
            "Y must be complete on a PartitionedGraph; got NaN. Impute the missing values, drop incomplete signals, or "
            "use a Graph, on which values can be missing."
        )
    return block


def signals_of_table(table: Any, node: str | None, n_nodes: int, names: Sequence[Hashable] | None) -> Any:
    """Signals of a table, for `PartitionedGraph.signals`: a Dask array of shape (n_signals, n_nodes)."""
    arrays, dask = (require(name, "dask", READING) for name in ("dask.array", "dask"))
    remedy = "Arrays and Zarr arrays of shape (n_signals, n_nodes) go to fit as they are."
    opened = open_table(table, "table", () if node is None else (node,), "one row per node", remedy)
    dtypes = _signals_among(opened, node)
    if node is None:
        nodes, sizes = None, opened.sizes()
    else:
        listed = [np.asarray(part[node]) for part in dask.compute(*opened.delayed([node]))]
        nodes, sizes = np.concatenate(listed), [len(one) for one in listed]
    if sum(sizes) != n_nodes:
        raise ValueError(f"table must have a row for each of the {n_nodes} nodes; got {sum(sizes)} rows.")
    dtype, values = np.result_type(*dtypes.values(), np.float32), dask.delayed(_values)
    chunks = [
        arrays.from_delayed(values(part, list(dtypes), dtype), (len(dtypes), size), dtype=dtype)
        for part, size in zip(opened.delayed(list(dtypes)), sizes, strict=True)
    ]
    signals = arrays.concatenate(chunks, axis=1)
    if nodes is None:
        return signals
    places = _places(nodes, n_nodes, names)
    return signals if np.array_equal(places, np.arange(n_nodes)) else signals[:, places]


def _signals_among(table: BlockTable, node: str | None) -> dict[str, Any]:
    """Columns of signals, with their types."""
    if node is not None and node not in table.columns:
        raise ValueError(
            f"node must be a column of the table; got {node!r}, and columns {table.columns[:5]}. Name the one "
            "with the nodes."
        )
    kinds = table.dtypes()
    found = {name: kinds[name] for name in table.columns if name != node}
    if not found:
        raise ValueError("table must have a column for each signal; got none besides the nodes.")
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
    pandas = require("pandas", "dask", READING)
    rows = pandas.Index(given)
    if not rows.is_unique:
        raise ValueError(f"table must have one row per node; got several for {rows[rows.duplicated()].tolist()[0]!r}.")
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
