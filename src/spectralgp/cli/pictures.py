"""Command `plot`: nodes over time, a map or filters of a saved model, as a picture or a page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from spectralgp import GraphGPForecaster, GraphGPRegressor, load
from spectralgp._basics.extras import require
from spectralgp._basics.files import atomic_write
from spectralgp.cli import files
from spectralgp.cli.app import check_outputs, print_answer
from spectralgp.cli.commands import PlotCommand

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")
WIDTH, HEIGHT, MAP_SIZE = 9.0, 3.6, (7.0, 6.0)  # in inches: of a panel, and of a map
METADATA = ("Creator", "Date", "Format", "Type")  # that matplotlib writes by default
MOST_PANELS = 12
DEFAULT_STEPS = 12  # rows of a forecast


def plot(asked: PlotCommand) -> None:
    """Draw nodes over time, a map or filters."""
    out, node = asked.out, asked.node or []
    check_outputs(out, force=asked.force)
    if out.suffix.lower() not in (*PICTURES, *PAGES):
        raise typer.BadParameter(f"--out must end with {', '.join((*PICTURES, *PAGES))}; got {out}.")
    if node and asked.draw_map:
        raise typer.BadParameter("--node and --map must not both be given. Draw two pictures.")
    if asked.row is not None and not asked.draw_map:
        raise typer.BadParameter("--row must come with --map.")
    if len(node) > MOST_PANELS:
        raise typer.BadParameter(f"--node must be given at most {MOST_PANELS} times; got {len(node)}.")
    import matplotlib

    matplotlib.use("agg")  # without a screen
    fitted = load(asked.model)
    is_series = isinstance(fitted, GraphGPForecaster)
    if not is_series:
        files.signal_model(fitted, asked.model)
    names = [str(name) for name in fitted.node_names_ or range(fitted.graph_.n_nodes)]
    unknown = [name for name in node if name not in names]
    if unknown:
        raise ValueError(
            f"--node must be a node of {asked.model}; got {unknown[0]}. The first of them are {names[:5]}."
        )
    pyplot = require("matplotlib.pyplot", "plots", "to draw")
    n_panels = max(len(node), 1)
    size = MAP_SIZE if asked.draw_map else (WIDTH, HEIGHT * n_panels)
    figure, axes = pyplot.subplots(n_panels, 1, squeeze=False, sharex=True, layout="constrained", figsize=size)
    with files.naming_file(asked.model if asked.signals is None else asked.signals):
        if is_series:
            _draw_series(asked, fitted, names, axes[:, 0])
        else:
            _draw_signals(asked, fitted, axes[:, 0])
    if asked.title is not None:
        figure.suptitle(asked.title)
    for ax in axes[: len(node), 0]:
        ax.label_outer()
    shown = ", ".join(node) if node else "map" if asked.draw_map else "filters"
    _save(figure, out, asked.title or f"{asked.model.name}: {shown}")
    print_answer(asked, {"out": out, "n_bytes": out.stat().st_size}, f"Picture: {out}")


def _draw_signals(asked: PlotCommand, model: GraphGPRegressor, axes: Sequence[Axes]) -> None:
    """Draw nodes over time, a map or the filters of a model of signals."""
    from spectralgp.show.plots import plot_filter, plot_imputed, plot_prediction, plot_signal

    path, row = asked.signals, asked.row
    if asked.steps is not None:
        raise typer.BadParameter("--steps must be left out: the model is not of a series, as fitted with --season.")
    if not asked.node and not asked.draw_map:
        if path is not None:
            raise typer.BadParameter("--signals must come with --node or --map: filters are drawn without.")
        plot_filter(model, ax=axes[0])
        return
    if path is None:
        raise typer.BadParameter("--signals must be given with --node or --map, which draw them.")
    data = files.fitted_data(asked, model, path)
    observed: pd.DataFrame = data.signals
    completed, std = model.set_output(predict="pandas").impute(data.inputs, observed)
    if asked.draw_map:
        labels = [str(label).removesuffix(" 00:00:00") for label in observed.index]
        if row is not None and row not in labels:
            raise ValueError(f"--row must be a label of a row; got {row}. The last of them are {labels[-3:]}.")
        place = len(labels) - 1 if row is None else labels.index(row)
        graph = model.graph_.require_whole("to be drawn")
        ordered = list(graph.names or observed.columns)
        known, imputed = (table[ordered].iloc[place].to_numpy() for table in (observed, completed))
        plot_signal(graph, known, imputed=imputed, ax=axes[0], aspect=map_aspect(graph.coordinates))
        axes[0].set_title(labels[place])
        return
    columns = {str(name): place for place, name in enumerate(observed.columns)}
    for name, ax in zip(asked.node or [], axes, strict=True):
        column = columns[name]
        values = observed.iloc[:, column]
        if values.isna().any():
            plot_imputed(observed, completed, std, column, ax=ax, level=asked.level)
            continue
        mean, spread = model.predict(data.inputs, return_std=True, include_noise=True)
        own = observed.columns[column]
        along: dict[str, Any] = {"positions": observed.index} if observed.index.dtype != object else {"sort": False}
        plot_prediction(values, mean[own], spread[own], ax=ax, level=asked.level, ylabel=name, **along)


def _draw_series(asked: PlotCommand, model: GraphGPForecaster, names: list[str], axes: Sequence[Axes]) -> None:
    """Draw forecasts of nodes, a map of forecasts, or the time scales of a series by frequency."""
    from spectralgp.show.plots import plot_forecast, plot_forecast_map, plot_rates

    if asked.inputs is not None:
        raise typer.BadParameter("--inputs must be left out for a series.")
    past = None if asked.signals is None else files.signal_table(asked, asked.signals, model.graph_)
    if asked.draw_map:
        plot_forecast_map(model, asked.steps or 1, ax=axes[0], aspect=map_aspect(model.graph_.coordinates))
    elif not asked.node:
        plot_rates(model, ax=axes[0])
    for name, ax in zip(asked.node or [], axes, strict=False):
        steps = asked.steps or DEFAULT_STEPS
        plot_forecast(model, names.index(name), steps, past=past, levels=(asked.level,), ax=ax)


def map_aspect(coordinates: Any) -> Any:
    """Aspect ratio of a map: by latitude if all coordinates may be degrees, else "equal"."""
    if coordinates is None or coordinates.shape[1] != 2:
        return "equal"
    across, up = np.abs(coordinates).max(axis=0)
    are_degrees = across <= 180 and up <= 80 and max(across, up) > 2  # neither a small plane nor near a pole
    return 1 / np.cos(np.radians(coordinates[:, 1].mean())) if are_degrees else "equal"


def _save(figure: Figure, out: Path, heading: str) -> None:
    """Save a picture, or a self-contained page with it."""
    suffix = out.suffix.lower()
    with atomic_write(out) as beside:
        if suffix in PICTURES:
            figure.savefig(beside, format=suffix[1:], dpi=150, bbox_inches="tight")
            return
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", bbox_inches="tight", metadata=dict.fromkeys(METADATA))
        picture = drawn.getvalue()
        picture = picture[picture.index("<svg") :].replace("<svg", '<svg role="img"', 1)
        beside.write_text(
            f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(heading)}</title>'
            "<style>body{margin:1rem;font-family:sans-serif}svg{max-width:100%;height:auto}</style></head>\n"
            f"<body>{picture}</body>\n</html>\n",
            encoding="utf-8",
        )
