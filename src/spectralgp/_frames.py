"""Tables from outside: their column names and index, without importing the library they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj
from numpy.typing import NDArray


def frame_names(table: Any) -> tuple[Any, ...] | None:
    """Column names of a DataFrame; None for anything else."""
    columns = getattr(table, "columns", None)
    return None if columns is None else tuple(columns)


def frame_index(table: Any) -> Any:
    """Index of a pandas DataFrame; None for anything else."""
    return getattr(table, "index", None) if hasattr(table, "columns") else None


def like_table(values: Any, table: Any) -> Any:
    """An array as what a table or array is: a DataFrame with its names and index, or an array of its library."""
    if hasattr(table, "iloc"):
        named = {"columns": table.columns} if hasattr(table, "columns") else {"name": table.name}
        return type(table)(values, index=table.index, **named)
    if hasattr(table, "columns"):
        return type(table)({name: values[:, place] for place, name in enumerate(table.columns)})
    if is_array_api_obj(table) and not isinstance(table, np.ndarray):
        return array_namespace(table).asarray(values, dtype=table.dtype, device=device(table))
    return values


def series_index(values: Any) -> tuple[Any, ...] | None:
    """Index of a pandas Series; None for anything else."""
    return tuple(values.index) if hasattr(values, "iloc") and not hasattr(values, "columns") else None


def check_numeric(table: Any, name: str) -> None:
    """Refuse a table with columns that do not hold numbers, each named; what to do about them depends on their kind.

    Raises
    ------
    TypeError
        If a column holds words, dates or anything else that is no number.
    """
    names = frame_names(table)
    if names is None:
        return
    if len(set(names)) < len(names):
        repeated = Counter(names).most_common(1)[0][0]
        raise ValueError(f"{name} must have distinct column names; got {repeated!r} more than once. Rename them.")
    kinds = {column: str(table[column].dtype) for column in names}
    words = [column for column, kind in kinds.items() if kind.lower() in ("str", "string", "category", "categorical")]
    words += [column for column, kind in kinds.items() if kind == "object" and _holds_words(table[column])]
    dates = [column for column, kind in kinds.items() if kind.lower().startswith(("datetime", "timedelta", "date"))]
    if words and len(names) - len(words) <= 2 and name == "Y":
        raise TypeError(
            f"{name} must be a wide table, one row a signal and one column a node; got a long one, with words in "
            f"column {words[0]!r}. Turn it into a wide one: {name}.pivot(index=<time>, columns=<node>, values=<value>)."
        )
    if words:
        raise TypeError(
            f"{name} must hold numbers; got words in column {words[0]!r} ({len(words)} such columns in all). "
            "Drop or encode them."
        )
    if dates:
        raise TypeError(
            f"{name} must hold numbers; got dates in column {dates[0]!r} ({len(dates)} such columns in all). "
            f"Make numbers of them, for example days: ({name}[{dates[0]!r}] - {name}[{dates[0]!r}].min()) / "
            "numpy.timedelta64(1, 'D')."
        )


def _holds_words(column: Any) -> bool:
    return any(isinstance(value, str) for value in column)


def check_same_order(X: Any, Y: Any) -> None:
    """Refuse two tables with the same row labels in different orders: rows are paired by position.

    Raises
    ------
    ValueError
        If the labels are the same but their order is not.
    """
    left, right = (getattr(table, "index", None) if hasattr(table, "iloc") else None for table in (X, Y))
    if left is None or right is None or len(left) != len(right) or left.equals(right):
        return
    if left.is_unique and right.is_unique and set(left) == set(right):
        raise ValueError(
            "X and Y must have their rows in the same order; got the same row labels in different orders. "
            "Pass Y.loc[X.index]."
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
    unknown = [column for column in columns if column not in set(names)]
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
