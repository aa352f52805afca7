"""Tables and arrays that are read a block of rows at a time: Dask, Parquet, NumPy."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectralgp._basics.extras import require

READING = "to read tables larger than memory"


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows in blocks, each read when it is asked for."""

    n_blocks: int
    read: Callable[[int], Any]  # from the number of a block to its rows
    fingerprint: Any  # the same as long as the rows are: an array, or anything with a telling `repr`

    def __iter__(self) -> Iterator[Any]:
        """Blocks in turn."""
        return map(self.read, range(self.n_blocks))


@dataclass(frozen=True, eq=False)
class Table:
    """Blocks of a table: row groups of Parquet files, or parts of a Dask table."""

    columns: list[str]
    n_blocks: int
    fingerprint: Any
    read: Callable[[int, Sequence[str]], Any]  # some columns of a block
    delayed: Callable[[Sequence[str]], list[Any]]  # some columns of every block, to be read by Dask
    dtypes: Callable[[], Mapping[str, Any]]  # of all columns
    sizes: Callable[[], Sequence[int]]  # numbers of rows of the blocks


def open_table(table: Any, argument: str, index: Sequence[str], content: str, remedy: str) -> Table:
    """A Dask table, or Parquet files; columns named in `index` are read even where they are the index of the table."""
    if isinstance(table, str | os.PathLike):
        return _parquet_table(Path(table), argument, index)
    if hasattr(table, "npartitions") and hasattr(table, "columns"):
        return _dask_table(table, index)
    raise TypeError(
        f"{argument} must be a dask DataFrame or a file or folder of Parquet, with {content}; "
        f"got {type(table).__name__}. {remedy}"
    )


def _dask_table(table: Any, index: Sequence[str]) -> Table:
    dask = require("dask", "dask", READING)
    if table.index.name in index:
        table = table.reset_index()
    return Table(
        list(table.columns),
        table.npartitions,
        dask.base.tokenize(table),  # of its graph of tasks; without the same one the rows may be others
        lambda number, columns: table[list(columns)].partitions[number].compute(),
        lambda columns: table[list(columns)].to_delayed(),
        lambda: dict(table.dtypes),
        lambda: dask.compute(*map(dask.delayed(len), table.to_delayed())),
    )


def _parquet_table(path: Path, argument: str, index: Sequence[str]) -> Table:
    """Row groups in the order of the files' names, in which part.2 is before part.10; only heads are read here."""
    paths = sorted(path.rglob("*.parquet"), key=_by_number) if path.is_dir() else [path]
    if not paths or not all(file.is_file() for file in paths):
        raise FileNotFoundError(
            f"{argument} must be a file or a folder of Parquet; got {path}, where there is none. Pass another path."
        )
    heads = [_parquet().read_metadata(file) for file in paths]
    pairs = zip(paths, heads, strict=True)
    groups = [(file, group) for file, head in pairs for group in range(head.num_row_groups)]
    schema = heads[0].schema.to_arrow_schema()
    hidden = (schema.pandas_metadata or {}).get("index_columns", ())  # an index that pandas or Dask wrote

    def read(number: int, columns: Sequence[str]) -> dict[str, Any]:
        file, group = groups[number]
        found = _parquet().ParquetFile(file).read_row_group(group, columns=list(columns))
        return {name: found[name].to_numpy() for name in columns}

    def delayed(columns: Sequence[str]) -> list[Any]:
        reading = require("dask", "dask", READING).delayed(read, pure=False)
        return [reading(number, columns) for number in range(len(groups))]

    return Table(
        [name for name in schema.names if name not in hidden or name in index],
        len(groups),
        [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in paths],
        read,
        delayed,
        lambda: dict(schema.empty_table().to_pandas(ignore_metadata=True).dtypes),
        lambda: [head.row_group(group).num_rows for head in heads for group in range(head.num_row_groups)],
    )


def _by_number(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(path))]


def _parquet() -> Any:
    return require("pyarrow.parquet", "parquet", "to read Parquet files")
