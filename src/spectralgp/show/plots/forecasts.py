"""Pictures of forecasts: a node's fan, the graph some steps ahead, rates by frequency, and scores by horizon."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes

from spectralgp._basics.checks import Array, as_integer, as_option
from spectralgp._basics.tables import as_table, frame_index, frame_names, match_columns
from spectralgp.scores import interval_half_width
from spectralgp.series.backtests import GOOD_COVERAGE, Backtest
from spectralgp.show.curves import component_curves
from spectralgp.show.plots import style
from spectralgp.show.plots.predictions import node_of
from spectralgp.show.plots.signals import plot_signal

BLUE, ORANGE, *_ = style.COLOURS
LEVELS = (0.5, 0.9)  # of the intervals of a fan
SHADES = ("0.7", "0.85")
MOST_PAST = 4  # rows before the forecast that are drawn for each row of it


def plot_forecast(
    model: Any,
    node: Hashable,
    horizon: Any = 24,
    *,
    past: Any = None,
    later: Any = None,
    X: Any = None,
    ax: Axes | None = None,
    levels: Sequence[float] = LEVELS,
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


def plot_rates(model: Any, *, which: Literal["rate", "power"] = "rate", ax: Axes | None = None) -> Axes:
    """Draw learnt time scales, one over the rate, or powers of the components by frequency of the graph, with bands.

    Bands are two standard deviations wide to either side, up to a factor of a thousand.
    """
    as_option(which, "which", ("rate", "power"))
    curves = component_curves(model, which)
    ax = style.as_axes(ax)
    for place, one in enumerate(curves):
        look = style.curve_look(place)
        ax.fill_between(one.frequencies, one.low, one.high, color=look["color"], alpha=0.2, linewidth=0)
        ax.plot(one.frequencies, one.values, label=one.name, **look)
    shown = "time scale in steps" if which == "rate" else "power, in units of nodes"
    ax.set(yscale="log", xlabel="frequency (eigenvalue of the Laplacian)", ylabel=shown)
    style.legend_above(ax)
    return ax


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
