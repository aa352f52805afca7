"""Pictures of the command `plot`: nodes over time, and a map; saved as a picture or a page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from spectralgp import GraphGPForecaster, GraphGPRegressor
from spectralgp._basics.extras import require
from spectralgp._basics.files import atomic_write
from spectralgp.cli import files
from spectralgp.show import plots

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


def check_picture(out: Path, nodes: Sequence[str], is_map: bool, row: str | None) -> None:
    """Refuse a path that is no picture's, and options of pictures that do not go together."""
    if out.suffix.lower() not in (*PICTURES, *PAGES):
        raise typer.BadParameter(f"--out must end with {', '.join((*PICTURES, *PAGES))}; got {out}.")
    if nodes and is_map:
        raise typer.BadParameter("--node and --map must not both be given. Draw two pictures.")
    if row is not None and not is_map:
        raise typer.BadParameter("--row must come with --map.")
    if len(nodes) > MOST_PANELS:
        raise typer.BadParameter(f"--node must be given at most {MOST_PANELS} times; got {len(nodes)}.")


def new_figure(n_nodes: int, is_map: bool) -> tuple[Figure, Sequence[Axes]]:
    """Figure with a panel per node, or with one."""
    pyplot = require("matplotlib.pyplot", "plots", "to draw")
    pyplot.switch_backend("agg")  # without a screen
    n_panels = max(n_nodes, 1)
    size = MAP_SIZE if is_map else (WIDTH, HEIGHT * n_panels)
    figure, axes = pyplot.subplots(n_panels, 1, squeeze=False, sharex=True, layout="constrained", figsize=size)
    return figure, axes[:, 0]


def draw_signals(
    model: GraphGPRegressor,
    data: files.CommandData | None,
    nodes: Sequence[str],
    row: str | None,
    level: float,
    axes: Sequence[Axes],
) -> None:
    """Draw nodes over time, a row on a map (the last by default) if no nodes are given, or filters without signals."""
    if data is None:
        plots.plot_filter(model, ax=axes[0])
        return
    observed = data.signals
    completed, std = model.set_output(predict="pandas").impute(data.inputs, observed)
    if not nodes:
        labels = [str(label).removesuffix(" 00:00:00") for label in observed.index]
        if row is not None and row not in labels:
            raise ValueError(f"--row must be a label of a row; got {row}. The last of them are {labels[-3:]}.")
        place = len(labels) - 1 if row is None else labels.index(row)
        graph = model.graph_.require_whole("to be drawn")
        ordered = list(graph.names or observed.columns)
        known, imputed = (table[ordered].iloc[place].to_numpy() for table in (observed, completed))
        plots.plot_signal(graph, known, imputed=imputed, ax=axes[0], aspect=map_aspect(graph.coordinates))
        axes[0].set_title(labels[place])
    columns = {str(name): place for place, name in enumerate(observed.columns)}
    for name, ax in zip(nodes, axes, strict=False):
        column = columns[name]
        values = observed.iloc[:, column]
        if values.isna().any():
            plots.plot_imputed(observed, completed, std, column, ax=ax, level=level)
            continue
        mean, spread = model.predict(data.inputs, return_std=True, include_noise=True)
        own = observed.columns[column]
        along: dict[str, Any] = {"positions": observed.index} if observed.index.dtype != object else {"sort": False}
        plots.plot_prediction(values, mean[own], spread[own], ax=ax, level=level, ylabel=name, **along)


def draw_series(
    model: GraphGPForecaster,
    past: pd.DataFrame | None,
    nodes: Sequence[int],
    is_map: bool,
    steps: int | None,
    level: float,
    axes: Sequence[Axes],
) -> None:
    """Draw forecasts of nodes, a map of forecasts, or the time scales of a series by frequency."""
    if is_map:
        plots.plot_forecast_map(model, steps or 1, ax=axes[0], aspect=map_aspect(model.graph_.coordinates))
    elif not nodes:
        plots.plot_rates(model, ax=axes[0])
    for node, ax in zip(nodes, axes, strict=False):
        plots.plot_forecast(model, node, steps or DEFAULT_STEPS, past=past, levels=(level,), ax=ax)


def map_aspect(coordinates: Any) -> Any:
    """Aspect ratio of a map: by latitude if all coordinates may be degrees, else "equal"."""
    if coordinates is None or coordinates.shape[1] != 2:
        return "equal"
    across, up = np.abs(coordinates).max(axis=0)
    are_degrees = across <= 180 and up <= 80 and max(across, up) > 2  # neither a small plane nor near a pole
    return 1 / np.cos(np.radians(coordinates[:, 1].mean())) if are_degrees else "equal"


def save_figure(figure: Figure, out: Path, title: str | None, name: str) -> None:
    """Save a figure as a picture, or as a self-contained page with its title, or with a name if it has none."""
    if title is not None:
        figure.suptitle(title)
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
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(title or name)}</title>"
            "<style>body{margin:1rem;font-family:sans-serif}svg{max-width:100%;height:auto}</style></head>\n"
            f"<body>{picture}</body>\n</html>\n",
            encoding="utf-8",
        )
