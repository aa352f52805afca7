"""Names of columns and labels of rows, matched."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp._frames.reading import Table, is_data_array


def frame_names(table: Any) -> tuple[Any, ...] | None:
    """Column names of a table; None for anything else."""
    if isinstance(table, Table):
        return table.names
    columns = getattr(table, "column_names", None) or getattr(table, "columns", None)  # pyarrow's columns are values
    return None if columns is None else tuple(columns)


def frame_index(table: Any) -> Any:
    """Index of a table that has one, as those of pandas do; None for anything else, and for a single column."""
    if isinstance(table, Table):
        return table.index if len(table.shape) == 2 else None
    return getattr(table, "index", None) if hasattr(table, "columns") else None


def series_index(values: Any) -> tuple[Any, ...] | None:
    """Index of a pandas Series, or of one dimension of xarray; None for anything else."""
    if is_data_array(values):
        return tuple(values.indexes[values.dims[0]].tolist()) if values.ndim == 1 and values.indexes else None
    return tuple(values.index) if hasattr(values, "iloc") and not hasattr(values, "columns") else None


def check_same_order(X: Any, Y: Any) -> None:
    """Refuse two tables with the same row labels in different orders: rows are paired by position.

    Raises
    ------
    ValueError
        If the labels are the same but their order is not.
    """
    left, right = (table.index if isinstance(table, Table) else None for table in (X, Y))
    if left is None or right is None or len(left) != len(right) or left.equals(right):
        return
    if left.is_unique and right.is_unique and set(left) == set(right):
        is_pandas = X.layout.library == Y.layout.library == "pandas"
        remedy = "Pass Y.loc[X.index]." if is_pandas else "Select the rows of Y by the labels of X."
        raise ValueError(
            "X and Y must have their rows in the same order; got the same row labels in different orders. " + remedy
        )


def match_columns(
    columns: tuple[Hashable, ...], names: tuple[Hashable, ...], argument: str = "Y", item: str = "column"
) -> NDArray[np.intp]:
    """Positions of the columns that belong to the graph's nodes, in the nodes' order; `item` is a column's word.

    Raises
    ------
    ValueError
        If a node has no column, or a column no node, or two columns the same name.

    Examples
    --------
    >>> match_columns(("b", "a"), ("a", "b")).tolist()
    [1, 0]
    """
    positions = {column: index for index, column in enumerate(columns)}
    missing = [name for name in names if name not in positions]
    known = set(names)
    unknown = [column for column in columns if column not in known]
    if missing or unknown or len(positions) != len(columns):
        raise ValueError(
            f"{argument} must have one {item} for each node of the graph, by name; got {len(columns)} {item}s, of "
            f"which {some(unknown)} belong to no node, while {some(missing)} are missing. "
            f"Rename or select {item}s, or pass {argument}.to_numpy() with its {item}s in the order of the nodes."
        )
    return np.array([positions[name] for name in names], dtype=np.intp)


def some(items: list[Any]) -> str:
    """A few of the items, for a message."""
    if not items:
        return "none"
    shown = ", ".join(repr(item) for item in items[:5])
    return shown if len(items) <= 5 else f"{shown} and {len(items) - 5} more"
