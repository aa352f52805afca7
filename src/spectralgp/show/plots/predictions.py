"""Pictures of predictions with observed values, of imputed values, of forecasts, and of calibration."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from numbers import Integral
from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike

from spectralgp._basics.checks import Array, as_integer, as_option, as_real_array
from spectralgp._basics.tables import as_table, frame_index, frame_names, match_columns, match_rows
from spectralgp.scores import BAND_PROBABILITY, LEVELS, calibration_of, interval_half_width, pit
from spectralgp.series.backtests import GOOD_COVERAGE, Backtest
from spectralgp.show.plots import style
from spectralgp.show.plots.signals import plot_signal

BLUE, ORANGE, *_, SKY = style.COLOURS  # the last is light enough for a grey band to show on it
LEVELS_OF_FAN, SHADES = (0.5, 0.9), ("0.7", "0.85")  # of the intervals of a forecast
MOST_PAST = 4  # rows before the forecast that are drawn for each row of it


def plot_prediction(
    observed: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    ax: Axes | None = None,
    names: Sequence[str] | None = None,
    positions: ArrayLike | None = None,
    level: float = 0.9,
    sort: bool = True,
    xlabel: str | None = None,
    ylabel: str | None = None,
) -> Axes:
    """Draw predictions with intervals, and observed values, for the nodes of one signal or one node over time.

    Observations outside their interval are marked by another colour and shape. The legend stands above the axes.

    Parameters
    ----------
    observed, mean, std : array-like of shape (n_values,)
        Observed values, predictions, and their standard deviations, noise included (``predict(...,
        include_noise=True)``). Intervals have probability `level`.
    names : sequence of str, optional
        Names of the nodes, written along the bottom if there is room.
    positions : array-like of shape (n_values,), optional
        Positions along the horizontal axis: numbers such as years, or dates (NumPy's, pandas' or Python's, shown in
        their own time zone). Predictions are then a line with a band, unsorted.
    sort : bool, default=True
        Order nodes by their prediction.
    xlabel, ylabel : str, optional
        Labels of the axes; "" for none. By default the names of `positions` and `observed`, if they are pandas objects
        with one, or else "node", "date" or "position", and "value".

    Examples
    --------
    >>> from spectralgp.show.plots import plot_prediction
    >>> ax = plot_prediction([0.0, 5.0], [0.1, 0.0], [1.0, 1.0], names=["a", "b"])
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['b', 'a']
    """
    values = as_real_array(observed, "observed", ("n_values",))
    if values.size == 0:
        raise ValueError("observed must hold at least one value; got none. Pass observed values.")
    size = {"n_values": values.size}
    centres = as_real_array(mean, "mean", ("n_values",), sizes=size)
    half_widths = interval_half_width(as_real_array(std, "std", ("n_values",), sizes=size), level)
    if names is not None and len(names) != values.size:
        raise ValueError(f"names must hold one name for each of the {values.size} values; got {len(names)}.")
    along = None if positions is None else style.read_positions(positions, values.size)
    ax, interval = style.as_axes(ax), style.interval_label(level)
    low, high = centres - half_widths, centres + half_widths
    if along is not None:
        places = along.places
        order = np.argsort(places, kind="stable")
        ax.fill_between(places[order], low[order], high[order], color="0.8", linewidth=0, label=interval)
        ax.plot(places[order], centres[order], color="0.35", label="predicted")
    else:
        order = np.argsort(centres, kind="stable") if sort else np.arange(values.size)
        places = np.argsort(order, kind="stable").astype(float)
        width = np.clip(style.size_in_points(ax)[0] / values.size, 1.0, 4.0)
        ax.vlines(places, low, high, color="0.8", linewidth=width, label=interval)
        ax.plot(places, centres, "_", color="0.25", markersize=7, markeredgewidth=1.6, label="predicted")
    inside, marks = np.abs(values - centres) <= half_widths, style.mark_size(ax, values.size)
    ax.plot(places[inside], values[inside], "o", color=BLUE, markersize=marks, label="observed")
    if not inside.all():
        look: dict[str, Any] = {"color": ORANGE, "markersize": 1.25 * marks, "label": "observed, outside"}
        ax.plot(places[~inside], values[~inside], "D", **look)
    ax.margins(x=0.02)
    style.legend_above(ax)
    shown = along.label if along is not None else "node, in order of prediction" if sort else "node"
    if names is not None:
        shown += style.write_names(ax, places[order], [str(names[index]) for index in order])
    elif along is not None:
        along.use(ax)
    elif sort:
        ax.set_xticks([])  # ranks would be taken for the nodes' numbers
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel(shown if xlabel is None else xlabel)
    ax.set_ylabel(style.name_of(observed, "value") if ylabel is None else ylabel)
    return ax


def plot_imputed(
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
    """Draw one node over the signals: observed values, and imputed ones with intervals.

    The line through observed values is broken at missing ones. The legend stands above the axes.

    Parameters
    ----------
    observed : array-like or DataFrame of shape (n_signals, n_nodes)
        Observed values; NaN or masked for missing ones.
    completed, std : array-like or DataFrame of shape (n_signals, n_nodes)
        Both results of ``model.impute(X, observed)``: complete signals, and standard deviations of imputed values,
        noise included. Only those of missing values are used. Tables are matched by the names of rows and columns.
    node : int or name
        Position of its column, or its name; an integer is always a position.
    names : sequence of hashables of length n_nodes, optional
        Names of the nodes in the order of the columns, such as ``graph.names``; by default those of a DataFrame.
    positions : array-like of shape (n_signals,), optional
        Positions along the horizontal axis, as in `plot_prediction`. By default the index of a DataFrame, written along
        the bottom if it holds neither numbers nor dates, or else the numbers of the rows.
    level, xlabel, ylabel
        As in `plot_prediction`; by default the vertical axis shows the name or number of the node.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp.show.plots import plot_imputed
    >>> observed = np.array([[1.0, 2.0], [1.5, np.nan], [2.0, 3.0]])
    >>> completed = np.array([[1.0, 2.0], [1.5, 2.4], [2.0, 3.0]])
    >>> std = np.where(np.isnan(observed), 0.2, 0.0)
    >>> ax = plot_imputed(observed, completed, std, "Bergen", names=["Oslo", "Bergen"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()], ax.lines[1].get_xydata().tolist()
    (['observed', 'imputed', '90% interval'], [[1.0, 2.4]])
    """
    observed = as_table(observed, "observed", names=names)
    values = as_real_array(observed, "observed", ("n_signals", "n_nodes"), allow_nan=True, remedy="Rows are signals.")
    n_signals, n_nodes = values.shape
    if values.size == 0:
        raise ValueError(f"observed must hold at least one value; got shape {values.shape}. Pass observed values.")
    known = frame_names(observed) if names is None else tuple(names)
    if known is not None and len(known) != n_nodes:
        raise ValueError(
            f"names must hold one name for each of the {n_nodes} nodes; got {len(known)}. Pass those of the columns."
        )
    column, title = node_of(node, known, n_nodes)
    series = values[:, column]
    missing = np.isnan(series)
    centres = _imputed_column(completed, "completed", observed, column, missing)
    spreads = _imputed_column(std, "std", observed, column, missing)
    if (spreads < 0).any():
        raise ValueError(f"std must be at least 0; got {spreads.min()}. Pass what impute returns second.")
    half_widths = interval_half_width(spreads, level)
    along = _along(observed, positions, n_signals)
    places = np.arange(float(n_signals)) if along is None else along.places
    ax = style.as_axes(ax)
    # marks small enough to leave each other room, and breaks of the line visible
    marks: dict[str, Any] = {"markersize": style.mark_size(ax, 6 * n_signals), "markeredgewidth": 0}
    if not missing.all():
        order = np.argsort(places, kind="stable")
        ax.plot(places[order], series[order], "o-", color=BLUE, linewidth=0.8, label="observed", **marks)
    if missing.any():
        ax.plot(places[missing], centres, style.IMPUTED_MARKER, color=ORANGE, label="imputed", **marks)
        low, high = centres - half_widths, centres + half_widths
        width, label = np.clip(0.5 * style.size_in_points(ax)[0] / n_signals, 0.8, 2.0), style.interval_label(level)
        ax.vlines(places[missing], low, high, color=ORANGE, alpha=0.5, linewidth=width, label=label)
    ax.margins(x=0.02)
    style.legend_above(ax)
    if along is not None:
        along.use(ax)
        shown = along.label
    else:
        index = frame_index(observed)
        shown = style.name_of(index, "signal") + style.write_names(ax, places, [str(item) for item in index])
    ax.set(xlabel=shown if xlabel is None else xlabel, ylabel=title if ylabel is None else ylabel)
    return ax


def node_of(node: Any, names: tuple[Any, ...] | None, n_nodes: int) -> tuple[int, str]:
    """Position and name of a node, given by either; integers are positions, as in a `Graph`."""
    if isinstance(node, Integral) and not isinstance(node, bool):
        place = as_integer(node, "node", 0, n_nodes - 1)
        return place, f"node {place}" if names is None else str(names[place])
    if names is None:
        raise ValueError(
            f"node must be a position if the nodes have no names; got {node!r}. Pass names=, such as graph.names."
        )
    if node not in names:
        raise ValueError(
            f"node must be one of the names; got {node!r}. The first of them are {list(names[:5])}; "
            "a position will do too."
        )
    return names.index(node), str(node)


def _imputed_column(table: Any, name: str, observed: Any, column: int, missing: Any) -> Array:
    """Values of a column at missing values; rows and columns of tables are matched by their labels."""
    wanted = frame_names(observed)
    table = as_table(table, name, names=wanted)
    sizes = dict(zip(("n_signals", "n_nodes"), np.shape(observed), strict=True))
    values = as_real_array(table, name, tuple(sizes), sizes=sizes, allow_nan=True, remedy="Pass what impute returns.")
    columns, rows = frame_names(table), match_rows(frame_index(table), frame_index(observed), name)
    if wanted is not None and columns is not None:
        column = match_columns(columns, wanted, name, of="column of observed")[column]
    imputed: Array = values[rows][missing, column]
    if np.isnan(imputed).any():
        row = int(np.flatnonzero(missing)[np.isnan(imputed)][0])
        raise ValueError(
            f"{name} must have a value at every missing value of observed; got NaN in row {row} of column {column}. "
            "Pass what impute returns."
        )
    return imputed


def _along(observed: Any, positions: Any, n_signals: int) -> style.Positions | None:
    """Positions of the signals: as given, by the index of a table, or by number; None for an index of names."""
    if positions is not None:
        return style.read_positions(positions, n_signals)
    index = frame_index(observed)
    try:
        return style.read_positions(np.arange(n_signals) if index is None else index, n_signals, "signal")
    except TypeError:  # neither numbers nor dates
        return None


def plot_calibration(
    observed: ArrayLike, mean: ArrayLike, std: ArrayLike, *, axes: Sequence[Axes] | None = None, n_bins: int = 10
) -> tuple[Axes, Axes]:
    """Draw the calibration of predictions: a histogram of `scores.pit`, and `scores.coverage` by level.

    The histogram is flat, and the coverage on the diagonal, if the predictions are calibrated. A hump, and a coverage
    above the diagonal, mean that intervals are too wide; a U, and a coverage below, that they are too narrow; a slope
    is a bias. Grey bands hold 90% of calibrated predictions of independent values; values of neighbouring nodes are
    correlated and vary more.

    `observed`, `mean` and `std` are as `scores.pit` takes them, with the same errors; NaN in `observed` is left out.
    The histogram, of `n_bins` bars, and the coverage are drawn on the pair `axes`, or in a new figure.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp.show.plots import plot_calibration
    >>> observed = np.random.default_rng(0).standard_normal((20, 30))
    >>> histogram, coverage = plot_calibration(observed, np.zeros((20, 30)), np.ones((20, 30)))
    >>> coverage.get_xlabel()
    'probability of the interval'
    """
    transformed = pit(observed, mean, std)
    n_bars = as_integer(n_bins, "n_bins", 2)
    if axes is not None and len(axes) != 2:
        raise ValueError(f"axes must be a pair, for the histogram and the coverage; got {len(axes)}. Pass two Axes.")
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")[1]
    left, right = axes
    found = calibration_of(transformed, n_bars)
    density, edges, band = found.density, found.edges, found.density_band
    grey: dict[str, Any] = {"color": "0.3", "alpha": 0.3, "linewidth": 0}
    dashed: dict[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 1.2}
    left.bar(edges[:-1], density, np.diff(edges), align="edge", color=SKY, edgecolor="white", label="observed")
    left.axhspan(*band, label=f"{BAND_PROBABILITY:.0%} of calibrated, if independent", **grey)
    left.axhline(1, label="calibrated", **dashed)
    left.set(xlim=(0, 1), ylim=(0, 1.3 * max(density.max(), band[1])))  # with room for the legend
    left.set(xlabel="predicted probability of a lower value (PIT)", ylabel="density of observed values")
    left.legend(loc="upper center", ncols=2, frameon=False, fontsize="small")
    right.fill_between(LEVELS, found.low, found.high, **grey)
    right.plot([0, 1], [0, 1], **dashed)
    label = f"observed ({found.covered_at(0.9):.0%} in 90% intervals)"
    right.plot(LEVELS, found.covered, color=BLUE, linewidth=2, label=label)
    right.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability of the interval", ylabel="share of observed values inside")
    for axis in (right.xaxis, right.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0))
    right.legend(loc="best", frameon=False, fontsize="small")
    return left, right


def plot_forecast(
    model: Any,
    node: Hashable,
    horizon: Any = 24,
    *,
    past: Any = None,
    later: Any = None,
    X: Any = None,
    ax: Axes | None = None,
    levels: Sequence[float] = LEVELS_OF_FAN,
    ylabel: str | None = None,
) -> Axes:
    """Draw the forecast of one node as a fan of intervals, after the observed values.

    Parameters
    ----------
    model : GraphGPForecaster
        Fitted.
    node : int or name
        Position of its column, or its name; an integer is always a position.
    horizon, X
        Those of `GraphGPForecaster.predict`.
    past : table or array of shape (n_steps, n_nodes), optional
        Rows of the fit, of which the last ones are drawn; a table's index must hold times.
    later : table or array of shape (n_steps, n_nodes), optional
        Later rows, drawn over the fan.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import GraphGPForecaster
    >>> from spectralgp.show.plots import plot_forecast
    >>> Y = np.cumsum(np.random.default_rng(0).standard_normal((60, 2)), axis=0)
    >>> ax = plot_forecast(GraphGPForecaster().fit(Y), 0, 6, past=Y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['90% interval', '50% interval', 'forecast', 'observed']
    """
    place, title = node_of(node, model.node_names_, len(model.scale_))
    mean, std = (one[:, place] for one in _forecast(model, horizon, X))
    labels = model.times_ahead(horizon)
    ax = style.as_axes(ax)
    along = style.read_positions(labels, len(labels))
    width, mark = (0.0, "") if len(labels) > 1 else (6.0, "_")  # a fan of one step has no area
    for level, shade in zip(sorted(levels, reverse=True), reversed(SHADES), strict=False):
        half = interval_half_width(std, level)
        name = style.interval_label(level)
        ax.fill_between(along.places, mean - half, mean + half, color=shade, linewidth=width, label=name)
    ax.plot(along.places, mean, color="0.25", marker=mark, markersize=9, label="forecast")
    for rows, colour, label in ((past, BLUE, "observed"), (later, ORANGE, "later")):
        if rows is None:
            continue
        is_past = label == "observed"
        table = as_table(rows, "past" if is_past else "later", names=model.node_names_)
        values, names, index = np.asarray(table, dtype=float), frame_names(table), frame_index(table)
        column = place if names is None or model.node_names_ is None else names.index(model.node_names_[place])
        values = np.reshape(values, (len(values), -1))[:, column]
        if index is None:  # counted: up to the last row, or on from it
            step = labels[1] - labels[0] if len(labels) > 1 else 1
            numbers = np.arange(-len(values), 0) if is_past else np.arange(len(values))
            index = labels[0] + numbers * step
        where = style.read_positions(index, len(values)).places
        shown = slice(-MOST_PAST * len(labels), None) if is_past else slice(0, len(labels))
        marks = style.mark_size(ax, len(values[shown]))
        ax.plot(where[shown], values[shown], "o-", color=colour, markersize=marks, linewidth=0.8, label=label)
    along.use(ax)
    ax.margins(x=0.02)
    style.legend_above(ax)
    ax.set(xlabel=along.label, ylabel=title if ylabel is None else ylabel)
    return ax


def _forecast(model: Any, horizon: Any, X: Any) -> list[Array]:
    """Means and standard deviations (n_steps, n_nodes)."""
    plain = copy.copy(model).set_output(predict="numpy")
    return [np.reshape(one, (len(one), -1)) for one in plain.predict(horizon, return_std=True, X=X)]


def plot_forecast_map(model: Any, step: int = 1, *, which: Literal["mean", "std"] = "mean", **options: Any) -> Axes:
    """Draw the graph some steps ahead: the forecast of every node, or its standard deviation.

    `options`, `X` among them, are those of `plot_signal` and `GraphGPForecaster.predict`.
    """
    number = as_integer(step, "step", 1)
    as_option(which, "which", ("mean", "std"))
    mean, std = _forecast(model, number, options.pop("X", None))
    values = (mean if which == "mean" else std)[-1]
    names, own = model.node_names_, model.graph_.names
    in_graph_order = values if names is None or own is None else values[match_columns(names, tuple(own))]
    label = f"{'forecast' if which == 'mean' else 'deviation'}, {number} step{'' if number == 1 else 's'} ahead"
    return plot_signal(model.graph_, in_graph_order, **({"colorbar_label": label} | options))


def plot_backtest(
    backtest: Backtest, *, what: Literal["rmse", "crps", "coverage"] = "rmse", ax: Axes | None = None
) -> Axes:
    """Draw scores of a backtest by horizon, beside persistence and the seasonal naive forecast; or the coverage.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import GraphGPForecaster
    >>> from spectralgp.show.plots import plot_backtest
    >>> Y = np.cumsum(np.random.default_rng(0).standard_normal((60, 2)), axis=0)
    >>> plot_backtest(GraphGPForecaster().fit(Y).backtest_, what="coverage").get_ylabel()
    'share of values in their 90% interval'
    """
    as_option(what, "what", ("rmse", "crps", "coverage"))
    ax = style.as_axes(ax)
    if what == "coverage":
        ax.axhspan(*GOOD_COVERAGE, color="0.9", linewidth=0, label="calibrated")
        ax.axhline(0.9, color="0.5", linewidth=0.8)
        ax.plot(backtest.horizons, backtest.coverage, "o-", color=BLUE, label="model")
        lowest = min(0.7, float(np.nanmin(backtest.coverage)) - 0.05)
        ax.set(ylim=(lowest, 1.0), ylabel="share of values in their 90% interval")
    else:
        for place, (name, values) in enumerate(getattr(backtest, what).items()):
            ax.plot(backtest.horizons, values, marker="o", label=name, **style.curve_look(place))
        ax.set(ylim=(0.0, None), ylabel="root mean squared error" if what == "rmse" else "CRPS")
    ax.set(xscale="log", xlabel="steps ahead")
    ax.set_xticks(backtest.horizons, [str(one) for one in backtest.horizons.tolist()])
    ax.minorticks_off()
    style.legend_above(ax)
    return ax
