"""`plot`: nodes over time, a map or filters of a saved model, as a picture or a page."""

from __future__ import annotations

import io
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from spectralgp import GraphGPForecaster, GraphGPRegressor, load
from spectralgp._basics.extras import require
from spectralgp._basics.files import atomic_write
from spectralgp.cli import files
from spectralgp.cli.app import AsJson, Debug, Force, answering, print_json, to_be_written
from spectralgp.cli.files import file_option

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")
WIDTH, HEIGHT, MAP_SIZE = 9.0, 3.6, (7.0, 6.0)  # in inches: of a panel, and of a map
METADATA = ("Creator", "Date", "Format", "Type")  # that matplotlib writes if it is not told otherwise
MOST_PANELS = 12
DEFAULT_STEPS = 12  # of a forecast that is drawn


@answering
def plot(
    model: files.ModelFile,
    out: Annotated[
        Path, typer.Option(help="Picture (.png, .svg, .pdf) or page (.html).", dir_okay=False, metavar="FILE")
    ],
    node: Annotated[
        list[str] | None, typer.Option(help="Draw a node over time; may be repeated.", metavar="NAME")
    ] = None,
    draw_map: Annotated[bool, typer.Option("--map", help="Draw a row of the signals on the graph.")] = False,
    row: Annotated[
        str | None, typer.Option(help="Row of the map, by its label; the last if not given.", metavar="LABEL")
    ] = None,
    signals: Annotated[
        Path | None,
        file_option("Signals to draw: what was observed and, in empty cells, what the model fills in.", None),
    ] = None,
    inputs: files.Inputs = None,
    steps: Annotated[int | None, typer.Option(help="Rows ahead, of a series (12; on a map 1).", min=1)] = None,
    level: Annotated[float, typer.Option(help="Probability of intervals.", min=0.01, max=0.99)] = 0.9,
    title: Annotated[str | None, typer.Option(help="The heading.")] = None,
    layout: files.Layout = "auto",
    nodes: files.Nodes = "exact",
    date_format: files.DateFormat = None,
    force: Force = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    r"""Draw what a model makes of signals: nodes over time, a map or, without either, the learnt filters.

    A node over time has what was observed and what fills its empty cells, with intervals; without empty cells, what is
    predicted for it. Of a series it has the forecast.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --points files/states.csv --neighbors 5 \
        --signals files/holes.csv --inputs time --out holes.sgp
      spectralgp plot holes.sgp --map --row 1975 \
        --signals files/holes.csv --out map.html
      spectralgp plot holes.sgp --node Maine --node Texas \
        --signals files/holes.csv --out nodes.png
    """
    to_be_written(out, force=force)
    suffix = out.suffix.lower()
    if suffix not in (*PICTURES, *PAGES):
        raise typer.BadParameter(f"--out must end with {', '.join((*PICTURES, *PAGES))}; got {out}.")
    if node and draw_map:
        raise typer.BadParameter("--node and --map must not both be given. Draw two pictures.")
    if row is not None and not draw_map:
        raise typer.BadParameter("--row must come with --map, which shows it.")
    if len(node or ()) > MOST_PANELS:
        raise typer.BadParameter(f"--node must be given at most {MOST_PANELS} times; got {len(node or ())}.")
    import matplotlib

    matplotlib.use("agg")  # needs no screen
    fitted, reader = load(model), files.Reader(layout, nodes, date_format)
    if not isinstance(fitted, GraphGPForecaster):
        files.as_signals(fitted, model)
    names = [str(name) for name in fitted.node_names_ or range(fitted.graph_.n_nodes)]
    unknown = [name for name in node or () if name not in names]
    if unknown:
        raise ValueError(f"--node must be a node of {model}; got {unknown[0]}. The first of them are {names[:5]}.")
    with files.naming(model if signals is None else signals):
        if isinstance(fitted, GraphGPForecaster):
            if inputs is not None:
                raise typer.BadParameter("--inputs must be left out for a series.")
            past = None if signals is None else reader.signals(signals, fitted.graph_)
            figure = _series_drawn(fitted, past, node, draw_map, steps, level)
        else:
            if steps is not None:
                raise typer.BadParameter("--steps must be left out: the model is not a series, as --season makes it.")
            figure = _signals_drawn(fitted, signals, inputs, reader, node, draw_map, row, level)
    if title is not None:
        figure.suptitle(title)
    for ax in figure.axes[: len(node or ())]:
        ax.label_outer()
    _save(figure, out, title or f"{model.name}: {', '.join(node) if node else 'map' if draw_map else 'filters'}")
    if as_json:
        print_json({"out": out, "n_bytes": out.stat().st_size})
        return
    typer.echo(f"Picture: {out}")


def _figure(n_panels: int = 1, size: tuple[float, float] | None = None) -> tuple[Figure, list[Axes]]:
    pyplot = require("matplotlib.pyplot", "plots", "to draw")
    figure, axes = pyplot.subplots(
        n_panels, 1, squeeze=False, sharex=True, layout="constrained", figsize=size or (WIDTH, HEIGHT * n_panels)
    )
    return figure, axes[:, 0].tolist()


def _signals_drawn(
    model: GraphGPRegressor,
    path: Path | None,
    inputs: list[str] | None,
    reader: files.Reader,
    node: list[str] | None,
    draw_map: bool,
    row: str | None,
    level: float,
) -> Figure:
    """Nodes over time, a map or the filters of a model of signals."""
    from spectralgp.plots import plot_filled, plot_filter, plot_prediction, plot_signal

    if not node and not draw_map:
        if path is not None:
            raise typer.BadParameter("--signals must come with --node or --map: filters are drawn without.")
        figure, (ax,) = _figure()
        plot_filter(model, ax=ax)
        return figure
    if path is None:
        raise typer.BadParameter("--signals must be given with --node or --map, which draw them.")
    data = files.data_of(model, path, inputs, reader)
    observed: pd.DataFrame = data.signals
    completed, std = model.set_output(predict="pandas").impute(data.inputs, observed)
    if draw_map:
        labels = [str(label).removesuffix(" 00:00:00") for label in observed.index]
        if row is not None and row not in labels:
            raise ValueError(f"--row must be a label of a row; got {row}. The last of them are {labels[-3:]}.")
        place = len(labels) - 1 if row is None else labels.index(row)
        ordered = list(model.graph_.names or observed.columns)
        figure, (ax,) = _figure(size=MAP_SIZE)
        rows = (table[ordered].iloc[place].to_numpy() for table in (observed, completed))
        graph = model.graph_.require_whole("to be drawn")
        plot_signal(graph, next(rows), filled=next(rows), ax=ax, aspect=_aspect(graph.coordinates))
        ax.set_title(labels[place])
        return figure
    figure, axes = _figure(len(node or ()))
    columns = {str(name): place for place, name in enumerate(observed.columns)}
    for name, ax in zip(node or (), axes, strict=True):
        column = columns[name]
        values = observed.iloc[:, column]
        if values.isna().any():
            plot_filled(observed, completed, std, column, ax=ax, level=level)
            continue
        mean, spread = model.predict(data.inputs, return_std=True, include_noise=True)
        own = observed.columns[column]
        along: dict[str, Any] = {"positions": observed.index} if observed.index.dtype != object else {"sort": False}
        plot_prediction(values, mean[own], spread[own], ax=ax, level=level, ylabel=name, **along)
    return figure


def _series_drawn(
    model: GraphGPForecaster,
    past: pd.DataFrame | None,
    node: list[str] | None,
    draw_map: bool,
    steps: int | None,
    level: float,
) -> Figure:
    """Forecasts of nodes, or of all on a map, or the time scales of a series by frequency."""
    from spectralgp.plots import plot_forecast, plot_forecast_map, plot_rates

    if draw_map:
        figure, (ax,) = _figure(size=MAP_SIZE)
        plot_forecast_map(model, steps or 1, ax=ax, aspect=_aspect(model.graph_.coordinates))
        return figure
    figure, axes = _figure(max(len(node or ()), 1))
    if not node:
        plot_rates(model, ax=axes[0])
        return figure
    names = [str(name) for name in model.node_names_ or range(model.graph_.n_nodes)]
    for name, ax in zip(node, axes, strict=True):
        plot_forecast(model, names.index(name), steps or DEFAULT_STEPS, past=past, levels=(level,), ax=ax)
    return figure


def _aspect(coordinates: Any) -> Any:
    """Length of a unit upwards to one sideways: of degrees by their latitude, where all coordinates may be degrees."""
    if coordinates is None or coordinates.shape[1] != 2:
        return "equal"
    across, up = np.abs(coordinates).max(axis=0)
    are_degrees = across <= 180 and up <= 80 and max(across, up) > 2  # no small plane, and not near a pole
    return 1 / np.cos(np.radians(coordinates[:, 1].mean())) if are_degrees else "equal"


def _save(figure: Figure, out: Path, heading: str) -> None:
    """Save a picture, or a page that has it inside and asks for nothing else."""
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
