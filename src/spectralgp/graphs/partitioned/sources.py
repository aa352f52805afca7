"""Data larger than memory: tables in blocks of rows, by Dask or Parquet, and their signals."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
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


def open_table(table: Any, argument: str, index: Sequence[str], content: str, remedy: str) -> Any:
    """Dask DataFrame of a table, or of the row groups of Parquet files; columns named in `index` may be its index."""
    if isinstance(table, str | os.PathLike):
        paths = _files(table)
        if not paths or not all(file.is_file() for file in paths):
            raise FileNotFoundError(
                f"{argument} must be a file or a folder of Parquet; got {table}, where there is none. "
                "Pass another path."
            )
        # in the order of the files' names, part.2 before part.10
        table = require("dask.dataframe", "dask", READING).read_parquet(list(map(str, paths)), split_row_groups=True)
    elif not (hasattr(table, "npartitions") and hasattr(table, "columns")):
        raise TypeError(
            f"{argument} must be a dask DataFrame or a file or folder of Parquet, with {content}; "
            f"got {type(table).__name__}. {remedy}"
        )
    return table.reset_index() if table.index.name in index else table


def table_blocks(frame: Any, given: Any, convert: Callable[[Any], Any]) -> RowBlocks:
    """Blocks of a Dask DataFrame that `open_table` made of a given table."""
    options, fingerprint = {}, require("dask", "dask", READING).base.tokenize(frame)  # of its graph of tasks
    if isinstance(given, str | os.PathLike):
        options = {"scheduler": "synchronous"}  # workers may not see the files
        fingerprint = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in _files(given)]
    return RowBlocks(
        frame.npartitions, lambda number: convert(frame.partitions[number].compute(**options)), fingerprint
    )


def _files(path: str | os.PathLike[str]) -> list[Path]:
    """Parquet files of a path."""
    return sorted(Path(path).rglob("*.parquet")) if os.path.isdir(path) else [Path(path)]


def _parts(frame: Any) -> list[Any]:
    """Partitions to be computed later, each alone: Dask would join those of few columns."""
    return [frame.partitions[number].to_delayed()[0] for number in range(frame.npartitions)]


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
    frame = open_table(table, "table", () if node is None else (node,), "one row per node", remedy)
    dtypes = _signals_among(frame, node)
    first = next(iter(dtypes)) if node is None else node
    nodes = dask.compute(*_parts(frame[[first]]))
    sizes = list(map(len, nodes))
    if sum(sizes) != n_nodes:
        raise ValueError(f"table must have a row for each of the {n_nodes} nodes; got {sum(sizes)} rows.")
    dtype, values = np.result_type(*dtypes.values(), np.float32), dask.delayed(_values)
    chunks = [
        arrays.from_delayed(values(part, dtype), (len(dtypes), size), dtype=dtype)
        for part, size in zip(_parts(frame[list(dtypes)]), sizes, strict=True)
    ]
    signals = arrays.concatenate(chunks, axis=1)
    if node is None:
        return signals
    places = _places(np.concatenate([part[node] for part in nodes]), n_nodes, names)
    return signals if np.array_equal(places, np.arange(n_nodes)) else signals[:, places]


def _signals_among(frame: Any, node: str | None) -> dict[str, Any]:
    """Columns of signals, with their types."""
    if node is not None and node not in frame.columns:
        raise ValueError(
            f"node must be a column of the table; got {node!r}, and columns {list(frame.columns[:5])}. Name the one "
            "with the nodes."
        )
    found = {name: kind for name, kind in frame.dtypes.items() if name != node}
    if not found:
        raise ValueError("table must have a column for each signal; got none besides the nodes.")
    wrong = next((name for name, kind in found.items() if getattr(kind, "kind", "O") not in "biuf"), None)
    if wrong is not None:
        raise TypeError(
            f"table must have columns of numbers; got {wrong!r} of {found[wrong]}. Pass the column of the nodes as "
            "node, and leave out others."
        )
    return found


def _values(part: Any, dtype: Any) -> NDArray[Any]:
    return np.ascontiguousarray(part.to_numpy(dtype=dtype).T)


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
