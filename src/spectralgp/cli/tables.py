"""Tables of results on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table


@dataclass(frozen=True)
class Column:
    """A column of results.

    Parameters
    ----------
    text : str
        How a cell is written, as a format of ``row``.
    field : str
        The number that it is about.
    larger_is_better : bool or None
        None where neither is.
    """

    text: str
    field: str
    larger_is_better: bool | None


def table_of(
    rows: Sequence[Any], columns: Mapping[str, Column], *, name: str = "kernel", title: str = "\ngraph kernel"
) -> Table:
    """A table for 80 columns with a row a kernel, or what else has a `name`; the best numbers are bold."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(title, no_wrap=True)
    for title in columns:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(escape(getattr(row, name)), *(_cell(row, rows, column) for column in columns.values()))
    return table


def _cell(row: Any, rows: Sequence[Any], column: Column) -> str:
    value = getattr(row, column.field)
    if value is None:
        return "-"
    text = column.text.format(row=row)
    values = [known for known in (getattr(other, column.field) for other in rows) if known is not None]
    is_best = column.larger_is_better is not None and value == (max(values) if column.larger_is_better else min(values))
    return f"[bold]{text}[/bold]" if is_best else text
