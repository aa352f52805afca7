"""Signals from files: wide tables, one row per signal and one column per node, or long ones (time, node, value)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from spectralgp._basics.checks import as_option
from spectralgp._basics.extras import require
from spectralgp._basics.tables import some
from spectralgp.files.tables import FileTable, index_of, read_table
from spectralgp.graphs import GraphBase

if TYPE_CHECKING:
    import pandas as pd

Nodes = Literal["exact", "graph"]


def signals_from_file(
    path: Path | str,
    graph: GraphBase,
    *,
    layout: Literal["auto", "wide", "long"] = "auto",
    nodes: Nodes = "exact",
    date_format: str | None = None,
    in_order: bool = False,
) -> pd.DataFrame:
    """Read signals on a graph from a CSV or Parquet file.

    Parameters
    ----------
    path : path
        The file. Empty cells (also NA, N/A, NaN and null) are missing values.
    graph : Graph
        Columns are matched by its names, in any order. Where it has none, they are in the order of its nodes, or of
        the numbers from 0 or from 1 on that they are named by.
    layout : {"auto", "wide", "long"}, default="auto"
        A wide table has one row per signal and one column per node; its first column is the index (dates, times,
        labels) unless it is named as a node. A long one has the columns ``node``, ``value`` and one more, the index;
        its signals are in the order of their numbers or dates, or as they come where they have other labels. "auto"
        takes a table for long if it has columns ``node`` and ``value``.
    nodes : {"exact", "graph"}, default="exact"
        If the nodes of file and graph differ: an error, or those of the graph, with missing values for nodes that the
        file lacks.
    date_format : str, optional
        How dates are written in the index, such as ``"%d.%m.%Y"``; ISO 8601 if not given.
    in_order : bool, default=False
        Refuse numbers or dates in the index that do not increase from row to row.

    Returns
    -------
    DataFrame of shape (n_signals, n_nodes)
        Columns are the nodes, in the order of a wide table (then those that it lacks), or in the graph's for a long
        one. Without an index in the file, rows are counted from zero.
    """
    as_option(layout, "layout", ("auto", "wide", "long"))
    as_option(nodes, "nodes", ("exact", "graph"))
    table = read_table(path)
    is_long = layout == "long" or (layout == "auto" and None not in (table.place("node"), table.place("value")))
    signals = (_from_long if is_long else _from_wide)(table, graph, nodes, date_format)
    index = signals.index
    wrong = np.flatnonzero(index.dtype != object and np.asarray(index[1:] <= index[:-1]))  # labels have no order
    if in_order and not is_long and wrong.size:  # signals of a long table are sorted
        row = int(wrong[0])
        before, after = index[row], index[row + 1]
        got = f"{after} {'again' if before == after else f'after {before}'} (row {table.rows[row]})"
        condition = "have its rows in the order of time where they are inputs (lag), one for each time"
        table.refuse(condition, got, row + 1, 0, "Sort them, and drop or average copies.")
    return signals.rename(columns={str(name): name for name in graph.names or ()})


def _from_wide(table: FileTable, graph: GraphBase, nodes: Nodes, date_format: str | None) -> pd.DataFrame:
    pandas = require("pandas", "cli", "to read signals from files")
    known = None if graph.names is None else {str(name) for name in graph.names}
    has_index = len(table.names) == graph.n_nodes + 1 if known is None else table.names[0] not in known
    columns = dict(zip(table.names[has_index:], range(has_index, len(table.names)), strict=True))
    note = f" (the first column, {table.names[0]!r}, is the index)" if has_index and table.names[0] else ""
    names = _matched(list(columns), graph, nodes, table, "column", note)
    present = [name for name in names if name in columns]
    values = pandas.DataFrame(table.numbers([columns[name] for name in present], allow_missing=True), columns=present)
    if has_index:
        values.index = index_of(table, 0, date_format)
    return values.reindex(columns=names) if len(present) < len(names) else values


def _from_long(table: FileTable, graph: GraphBase, nodes: Nodes, date_format: str | None) -> pd.DataFrame:
    pandas = require("pandas", "cli", "to read signals from files")
    node, value = table.place("node"), table.place("value")
    others = [place for place in range(len(table.names)) if place not in (node, value)]
    if len(others) == 2 and not table.names[0]:
        others = others[1:]  # a nameless index, which pandas writes beside
    if node is None or value is None or len(others) != 1:
        raise ValueError(
            f"{table.path} must have the columns node, value and one more, the time or label of the signal, to be a "
            f"long table; got {some(list(table.names))}. Rename or drop columns, or pass a wide table."
        )
    labels, index = table.labels(node), index_of(table, others[0], date_format)
    if "" in labels:
        table.refuse("name a node in every row", "an empty cell", labels.index(""), node, "Drop the row.")
    names = _matched(list(dict.fromkeys(labels)), graph, nodes, table, "node", "")
    names = names if graph.names is None else [str(name) for name in graph.names]
    cells = table.numbers([value], allow_missing=True)[:, 0]
    codes, signals = pandas.factorize(index, sort=index.dtype != object)
    place = {name: position for position, name in enumerate(names)}
    known = np.array([place.get(label, -1) for label in labels])
    again = np.flatnonzero(pandas.DataFrame({"signal": codes, "node": known}).duplicated() & (known >= 0))
    if again.size:
        row = int(again[0])
        first = np.argmax((codes == codes[row]) & (known == known[row]))
        other = f"another one than in row {table.rows[first]}"
        table.refuse("have one value for each signal and node", other, row, node, "Drop or average copies.")
    values = np.full((len(signals), len(names)), np.nan)
    values[codes[known >= 0], known[known >= 0]] = cells[known >= 0]
    return pandas.DataFrame(values, index=signals.rename(index.name), columns=names)


def _matched(given: list[str], graph: GraphBase, nodes: Nodes, table: FileTable, item: str, note: str) -> list[str]:
    """Names of the nodes, checked against the graph: those of the file in its order, then those that it lacks."""
    if graph.names is None:
        if len(given) != graph.n_nodes:
            raise ValueError(
                f"{table.path} must have {graph.n_nodes} {item}s, one for each node of a graph without names; got "
                f"{len(given)}{note}. Use a graph whose nodes have names, or add or drop {item}s."
            )
        if sorted(given) in (sorted(map(str, range(first, len(given) + first))) for first in (0, 1)):
            return sorted(given, key=int)
        if item == "column":  # in the order of the nodes
            return given
        raise ValueError(
            f"{table.path} must name nodes by their numbers where the graph has no names; got {some(given)}. "
            "Use a graph with names, or a wide table with columns in the order of the nodes."
        )
    names = [str(name) for name in graph.names]
    present, known = set(given), set(names)
    missing = [name for name in names if name not in present]
    unknown = [name for name in given if name not in known]
    if (missing or unknown) and (nodes == "exact" or len(missing) == len(names)):
        lacks = f"no {item} for {some(missing)}" if missing else ""
        extra = f"{item}s that are no node: {some(unknown)}" if unknown else ""
        choice = (
            ", or choose nodes='graph' (--nodes graph): values of the nodes that the file lacks are then missing, and "
            f"other {item}s are left out"
        )
        raise ValueError(
            f"{table.path} must have one {item} for each of the {len(names)} nodes of the graph, by name; got "
            f"{' and '.join(filter(None, (lacks, extra)))}{note}. Correct the names"
            f"{choice if len(missing) < len(names) else ''}."
        )
    return [name for name in given if name in known] + missing
