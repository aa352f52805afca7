"""Tables and arrays that are read a block of rows at a time: NumPy, Dask, Parquet."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spectralgp._basics.extras import require
from spectralgp.graphs.points import as_points

EDGE = ("source", "target", "weight")
ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows in blocks, each read when it is asked for."""

    n_blocks: int
    read: Callable[[int], Any]  # from the number of a block to its rows: a table or an array
    columns: Sequence[str]  # of a table that can be read; none of an array
    fingerprint: Any  # the same as long as the rows are: an array, or anything with a telling `repr`

    def __iter__(self) -> Iterator[Any]:
        """Blocks in turn."""
        return map(self.read, range(self.n_blocks))


def edge_blocks(edges: Any) -> Blocks:
    """Blocks of a table of edges with the columns that matter."""
    if isinstance(edges, str | os.PathLike):
        files = open_parquet(Path(edges), "edges")
        columns = files.columns(EDGE)
        chosen = [name for name in EDGE if name in columns]
        blocks = Blocks(len(files.groups), lambda number: files.read(number, chosen), columns, files.fingerprint)
    elif is_dask_table(edges):
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
        files = open_parquet(Path(points), "points")
        names = files.columns()

        def read(number: int) -> Any:
            return as_points(np.column_stack(list(files.read(number, names).values())))

        return Blocks(len(files.groups), read, (), files.fingerprint)
    if hasattr(points, "dask") and hasattr(points, "chunks"):
        return _dask_array(points)
    array = points if isinstance(points, np.ndarray) and points.ndim == 2 else as_points(points)
    n_blocks = -(-len(array) // ROWS_AT_ONCE)
    return Blocks(
        n_blocks, lambda number: as_points(array[number * ROWS_AT_ONCE : (number + 1) * ROWS_AT_ONCE]), (), array
    )


def is_dask_table(thing: Any) -> bool:
    """Whether it is a table of Dask's."""
    return hasattr(thing, "npartitions") and hasattr(thing, "columns")


def _dask_table(table: Any) -> Blocks:
    dask = require("dask", "dask", "to read dask tables")
    columns = [name for name in EDGE if name in table.columns]
    token = dask.base.tokenize(table)  # of its graph of tasks; without the same one the rows may be others
    return Blocks(table.npartitions, lambda number: table[columns].partitions[number].compute(), columns, token)


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


@dataclass(frozen=True, eq=False)
class Parquet:
    """Row groups of Parquet files, in the order of the files' names, numbers in them by size."""

    groups: list[tuple[Path, int]]  # the file and the number in it of each row group
    sizes: list[int]  # numbers of rows of the groups
    schema: Any  # of the first file
    fingerprint: Any  # the same as long as the files are

    def columns(self, wanted: Sequence[str] = ()) -> list[str]:
        """Names of the columns, without an index that pandas or Dask wrote unless it is wanted."""
        index = (self.schema.pandas_metadata or {}).get("index_columns", ())
        return [name for name in self.schema.names if name not in index or name in wanted]

    def read(self, number: int, columns: Sequence[str]) -> dict[str, Any]:
        """Some columns of a row group."""
        path, group = self.groups[number]
        table = _parquet().ParquetFile(path).read_row_group(group, columns=list(columns))
        return {name: table[name].to_numpy() for name in columns}


def open_parquet(path: Path, argument: str) -> Parquet:
    """A file of Parquet, or all in a folder; only their heads are read."""
    paths = sorted(path.rglob("*.parquet"), key=_by_number) if path.is_dir() else [path]
    if not paths or not all(file.is_file() for file in paths):
        raise FileNotFoundError(
            f"{argument} must be a file or a folder of Parquet; got {path}, where there is none. Pass another path."
        )
    heads = [_parquet().read_metadata(file) for file in paths]
    pairs = list(zip(paths, heads, strict=True))
    groups = [(file, group) for file, head in pairs for group in range(head.num_row_groups)]
    sizes = [head.row_group(group).num_rows for head in heads for group in range(head.num_row_groups)]
    files = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in paths]
    return Parquet(groups, sizes, heads[0].schema.to_arrow_schema(), files)


def _parquet() -> Any:
    return require("pyarrow.parquet", "parquet", "to read Parquet files")
