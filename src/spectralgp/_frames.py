"""Tables from outside: their column names and index, without importing the library they come from."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def frame_names(table: Any) -> tuple[Any, ...] | None:
    """Column names of a DataFrame; None for anything else."""
    columns = getattr(table, "columns", None)
    return None if columns is None else tuple(columns)


def frame_index(table: Any) -> Any:
    """Index of a pandas DataFrame; None for anything else."""
    return getattr(table, "index", None) if hasattr(table, "columns") else None


def match_columns(columns: tuple[Hashable, ...], names: tuple[Hashable, ...]) -> NDArray[np.intp]:
    """Positions of the columns that belong to the graph's nodes, in the nodes' order.

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
    unknown = [column for column in columns if column not in set(names)]
    if missing or unknown or len(positions) != len(columns):
        raise ValueError(
            f"Y must have one column for each node of the graph, by name; got {len(columns)} columns, of which "
            f"{_some(unknown)} belong to no node, while {_some(missing)} are missing. "
            "Rename or select columns, or pass Y.to_numpy() with its columns in the order of the nodes."
        )
    return np.array([positions[name] for name in names], dtype=np.intp)


def _some(items: list[Any]) -> str:
    """A few of the items, for a message."""
    if not items:
        return "none"
    shown = ", ".join(repr(item) for item in items[:5])
    return shown if len(items) <= 5 else f"{shown} and {len(items) - 5} more"
