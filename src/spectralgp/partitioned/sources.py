"""Tables and arrays that are read a block of rows at a time: NumPy, Dask, Parquet."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from spectralgp._extras import require
from spectralgp.graph.places import as_points

ROWS = 1 << 20  # of an array that are read at once


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows in blocks, each read when it is asked for.

    Parameters
    ----------
    n_blocks : int
        How many there are.
    read : callable
        From the number of a block to its rows: a table or an array.
    columns : sequence of str
        Names of the columns of a table that can be read; none of an array.
    fingerprint : object
        Something that is the same as long as the rows are: an array, or anything with a telling `repr`.
    sizes : sequence of int, optional
        Numbers of rows, where they are known beforehand.
    kinds : dict, optional
        Types of the columns, where they are known beforehand.
    """

    n_blocks: int
    read: Callable[[int], Any]
    columns: Sequence[str]
    fingerprint: Any
    sizes: Sequence[int] = ()
    kinds: Mapping[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Any]:
        """Blocks in turn."""
        return map(self.read, range(self.n_blocks))


def edge_blocks(edges: Any) -> Blocks:
    """Blocks of a table of edges with the columns that matter."""
    if isinstance(edges, str | os.PathLike):
        blocks = parquet_blocks(Path(edges), "edges", ("source", "target", "weight"))
    elif hasattr(edges, "npartitions") and hasattr(edges, "columns"):
        blocks = _dask_table(edges)
    else:
        raise TypeError(
            "edges must be a dask DataFrame or a file or folder of Parquet, with columns source, target and optionally "
            f"weight; got {type(edges).__name__}. For edges in memory use Graph.from_edges, then from_graph."
        )
    if not {"source", "target"} <= set(blocks.columns):
        raise ValueError(
            "edges must have columns 'source', 'target' and optionally 'weight'; "
            f"got {list(blocks.columns)}. Rename the columns."
        )
    return blocks


def point_blocks(points: Any) -> Blocks:
    """Blocks of an array of points, each finite and of shape (n_rows, n_dimensions)."""
    if isinstance(points, str | os.PathLike):
        table = parquet_blocks(Path(points), "points", None)
        return Blocks(table.n_blocks, lambda number: as_points(table.read(number)), (), table.fingerprint)
    if hasattr(points, "dask") and hasattr(points, "chunks"):
        return _dask_array(points)
    array = points if isinstance(points, np.ndarray) and points.ndim == 2 else as_points(points)
    n_blocks = -(-len(array) // ROWS)
    return Blocks(n_blocks, lambda number: as_points(array[number * ROWS : (number + 1) * ROWS]), (), array)


def _dask_table(table: Any) -> Blocks:
    dask = require("dask", "dask", "to read dask tables")
    columns = [name for name in ("source", "target", "weight") if name in table.columns]
    # the mark of a lazy table is its graph of tasks; without the same one the rows may be others
    mark = dask.base.tokenize(table)
    return Blocks(table.npartitions, lambda number: table[columns].partitions[number].compute(), columns, mark)


def _dask_array(array: Any) -> Blocks:
    dask = require("dask", "dask", "to read dask arrays")
    if array.ndim != 2:
        raise ValueError(
            f"points must have shape (n_nodes, n_dimensions); got {array.shape}. Rows are nodes, columns coordinates."
        )
    whole_rows = array.rechunk({1: -1})
    n_blocks = whole_rows.numblocks[0]
    return Blocks(
        n_blocks, lambda number: as_points(whole_rows.blocks[number].compute()), (), dask.base.tokenize(array)
    )


def _by_number(path: Path) -> list[tuple[int, str]]:
    """What sorts part.2 before part.10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(path))]


def parquet_blocks(path: Path, argument: str, wanted: Sequence[str] | None) -> Blocks:
    """Row groups of Parquet files, in the order of the files' names, numbers in them by size.

    Where no columns are wanted, all are, but an index that pandas or Dask wrote: blocks are arrays then, else columns
    by name.
    """
    parquet = require("pyarrow.parquet", "parquet", "to read Parquet files")
    paths = sorted(path.rglob("*.parquet"), key=_by_number) if path.is_dir() else [path]
    if not paths or not all(file.is_file() for file in paths):
        raise FileNotFoundError(
            f"{argument} must be a file or a folder of Parquet; got {path}, where there is none. Pass another path."
        )
    heads = [parquet.ParquetFile(file) for file in paths]
    index = (heads[0].schema_arrow.pandas_metadata or {}).get("index_columns", ())
    columns = [name for name in heads[0].schema_arrow.names if name not in index or name in (wanted or ())]
    groups = [(at, group) for at, head in enumerate(heads) for group in range(head.num_row_groups)]
    chosen = [name for name in (columns if wanted is None else wanted) if name in columns]
    files = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in paths]

    def read(number: int) -> Any:
        at, group = groups[number]
        table = parquet.ParquetFile(paths[at]).read_row_group(group, columns=chosen)
        if wanted is None:
            return np.column_stack([table[name].to_numpy() for name in chosen])
        return {name: table[name].to_numpy() for name in chosen}

    sizes = [heads[at].metadata.row_group(group).num_rows for at, group in groups]
    kinds = {name: np.dtype(heads[0].schema_arrow.field(name).type.to_pandas_dtype()) for name in columns}
    return Blocks(len(groups), read, columns, files, sizes, kinds)
