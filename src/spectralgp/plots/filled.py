"""Pictures of signals with holes, and of what fills them in."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.checks import Array, as_integer, as_real_array
from spectralgp._basics.tables import as_table, frame_index, frame_names
from spectralgp.plots.positions import Positions, name_of, read_positions, write_names
from spectralgp.plots.style import COLOURS, FILLED_MARKER, axes, interval_label, legend_above, mark_size, size_in_points
from spectralgp.scores import interval_half_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OBSERVED, FILLED = COLOURS[:2]


def plot_filled(
    observed: ArrayLike,
    completed: ArrayLike,
    std: ArrayLike,
    node: Hashable,
    *,
    ax: Axes | None = None,
    names: Sequence[Hashable] | None = None,
    positions: ArrayLike | None = None,
    level: float = 0.9,
    xlabel: str | None = None,
    ylabel: str | None = None,
) -> Axes:
    """Draw one node over the signals: what was observed there, and what fills the holes, with intervals.

    Parameters
    ----------
    observed : array-like or DataFrame of shape (n_signals, n_nodes)
        What was observed; NaN (or masked) where nothing was.
    completed, std : array-like or DataFrame of shape (n_signals, n_nodes)
        What ``model.impute(X, observed)`` returns: the signals without holes, and the standard deviation, noise
        included, of what fills them. They are read only where nothing was observed. Columns of tables are matched by
        name.
    node : int or name
        Which node: the position of its column, or its name. An integer is always a position.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    names : sequence of hashables of length n_nodes, optional
        Of the nodes, in the order of the columns, such as ``graph.names``; those of a DataFrame if not given.
    positions : array-like of shape (n_signals,), optional
        Where the signals stand on the horizontal axis: numbers such as years, or dates (NumPy's, pandas' or Python's,
        shown in their own time zone). If not given, the index of a DataFrame, written along the bottom if it holds
        neither, else the numbers of the rows.
    level : float, default=0.9
        Probability of the intervals.
    xlabel, ylabel : str, optional
        What the axes show; "" for nothing. If not given: the name of the positions, where they are pandas objects with
        one, else "date", "position" or "signal", and the name or number of the node.

    Returns
    -------
    matplotlib Axes
        The line through what was observed is broken at each hole. The legend stands above the axes: give a title room,
        ``ax.set_title(..., pad=26)``.

    Raises
    ------
    TypeError, ValueError
        If the tables or the positions do not match, there is no such node, or a hole is not filled in.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from spectralgp.plots import plot_filled
    >>> observed = np.array([[1.0, 2.0], [1.5, np.nan], [2.0, 3.0]])
    >>> completed = np.array([[1.0, 2.0], [1.5, 2.4], [2.0, 3.0]])
    >>> std = np.array([[0.0, 0.0], [0.0, 0.2], [0.0, 0.0]])
    >>> ax = plot_filled(observed, completed, std, "Bergen", names=["Oslo", "Bergen"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['observed', 'filled in', '90% interval']
    >>> ax.lines[1].get_xydata().tolist()
    [[1.0, 2.4]]
    >>> matplotlib.pyplot.close(ax.figure)
    """
    observed = as_table(observed, "observed", names=names)
    values = as_real_array(observed, "observed", ("n_signals", "n_nodes"), allow_nan=True, remedy="Rows are signals.")
    n_signals, n_nodes = values.shape
    if values.size == 0:
        raise ValueError(f"observed must hold at least one value; got shape {values.shape}. Pass what was observed.")
    known = frame_names(observed) if names is None else tuple(names)
    if known is not None and len(known) != n_nodes:
        raise ValueError(
            f"names must hold one name for each of the {n_nodes} nodes; got {len(known)}. Pass those of the columns."
        )
    column = _column_of(node, known, n_nodes)
    series = values[:, column]
    hole = np.isnan(series)
    centres = _at_holes(completed, "completed", observed, column, hole)
    spreads = _at_holes(std, "std", observed, column, hole)
    if (spreads < 0).any():
        raise ValueError(f"std must be at least 0; got {spreads.min()}. Pass what impute returns second.")
    half_widths = interval_half_width(spreads, level)
    along = _along(observed, positions, n_signals)
    places = np.arange(float(n_signals)) if along is None else along.places
    ax = axes(ax)
    # marks small enough to leave each other room, and holes in the line to be seen
    marks: dict[str, Any] = {"markersize": mark_size(ax, 6 * n_signals), "markeredgewidth": 0}
    if not hole.all():
        order = np.argsort(places, kind="stable")
        ax.plot(places[order], series[order], "o-", color=OBSERVED, linewidth=0.8, label="observed", **marks)
    if hole.any():
        ax.plot(places[hole], centres, FILLED_MARKER, color=FILLED, label="filled in", **marks)
        low, high = centres - half_widths, centres + half_widths
        width = np.clip(0.5 * size_in_points(ax)[0] / n_signals, 0.8, 2.0)
        ax.vlines(places[hole], low, high, color=FILLED, alpha=0.5, linewidth=width, label=interval_label(level))
    ax.margins(x=0.02)
    legend_above(ax)
    if along is not None:
        along.use(ax)
        shown = along.label
    else:
        index = frame_index(observed)
        shown = name_of(index, "signal") + write_names(ax, places, [str(item) for item in index])
    ax.set_xlabel(shown if xlabel is None else xlabel)
    ax.set_ylabel((f"node {column}" if known is None else str(known[column])) if ylabel is None else ylabel)
    return ax


def _column_of(node: Any, names: tuple[Any, ...] | None, n_nodes: int) -> int:
    """Position of a node that is given by its position or its name; integers are positions, as in `Graph.subgraph`."""
    if isinstance(node, Integral) and not isinstance(node, bool):
        return as_integer(node, "node", 0, n_nodes - 1)
    if names is None:
        raise ValueError(
            f"node must be a position where the nodes have no names; got {node!r}. Pass names=, such as graph.names."
        )
    if node not in names:
        raise ValueError(
            f"node must be one of the names; got {node!r}. The first of them are {list(names[:5])}; "
            "a position will do too."
        )
    return names.index(node)


def _at_holes(table: Any, name: str, observed: Any, column: int, hole: Any) -> Array:
    """Values of one column where nothing was observed, the column matched by name where both tables have names."""
    wanted = frame_names(observed)
    table = as_table(table, name, names=wanted)
    sizes = dict(zip(("n_signals", "n_nodes"), np.shape(observed), strict=True))
    values = as_real_array(table, name, tuple(sizes), sizes=sizes, allow_nan=True, remedy="Pass what impute returns.")
    columns = frame_names(table)
    if wanted is not None and columns is not None:
        if wanted[column] not in columns:
            raise ValueError(
                f"{name} must have the columns of observed; got none called {wanted[column]!r}. "
                "Pass what impute returns."
            )
        column = columns.index(wanted[column])
    index, own = frame_index(observed), frame_index(table)
    if index is not None and own is not None and not index.equals(own):
        raise ValueError(
            f"{name} must have the rows of observed; got other row labels, or another order. "
            f"Pass {name}.loc[observed.index]."
        )
    filling: Array = values[hole, column]
    if np.isnan(filling).any():
        row = int(np.flatnonzero(hole)[np.isnan(filling)][0])
        raise ValueError(
            f"{name} must have a value wherever observed has none; got NaN in row {row} of column {column}. "
            "Pass what impute returns."
        )
    return filling


def _along(observed: Any, positions: Any, n_signals: int) -> Positions | None:
    """Where the signals stand: as told, by the index of a table, else by number; None if the index is only names."""
    if positions is not None:
        return read_positions(positions, n_signals)
    index = frame_index(observed)
    try:
        return read_positions(np.arange(n_signals) if index is None else index, n_signals, "signal")
    except TypeError:  # neither numbers nor dates
        return None
