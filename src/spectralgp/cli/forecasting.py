"""`forecast` and `update`: what comes after the last row of a series, and rows that have come since."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from spectralgp import GraphGPForecaster, load
from spectralgp.cli import files
from spectralgp.cli.app import AsJson, Debug, Force, answering, print_json, to_be_written
from spectralgp.cli.files import file_option
from spectralgp.files.inputs import inputs_from_file
from spectralgp.files.tables import write_tables
from spectralgp.scores import interval_half_width

if TYPE_CHECKING:
    import pandas as pd

AUTO = "auto"
Season = Annotated[
    list[str] | None,
    typer.Option(
        help="Learn a series that `forecast` and `update` go on with: a period in rows whose season is in the mean, or "
        "auto. May be repeated. Takes --inputs time.",
        rich_help_panel="Model",
        metavar="N|auto",
    ),
]
Table = Annotated[
    Path | None, typer.Option(help="Table for the answer, CSV or Parquet.", dir_okay=False, metavar="FILE")
]
Exogenous = Annotated[
    Path | None, file_option("Columns that the series was fitted with beside time, one row per step.", None)
]


def seasons_typed(season: list[str]) -> Any:
    """Seasons as they were typed: one word for all that are found, or periods."""
    if season == [AUTO]:
        return AUTO
    try:
        return tuple(float(one) for one in season)
    except ValueError as error:
        raise typer.BadParameter(f"--season must be auto or periods in rows; got {' and '.join(season)}.") from error


def series_of(data: files.Data, inputs: list[str] | None, season: list[str]) -> tuple[GraphGPForecaster, Any]:
    """A forecaster for what a command read, and the exogenous columns of its rows."""
    parts = files.input_parts(inputs)
    if not parts.time or parts.lag is not None:
        raise typer.BadParameter("--season must come with --inputs time, and without lag: a series goes on by itself.")
    columns = [name for name in ([] if data.inputs is None else data.inputs.columns) if name != files.TIME]
    exogenous = None if not columns or data.inputs is None else data.inputs[columns]
    return GraphGPForecaster(data.graph, seasons=seasons_typed(season), verbose=1), exogenous


def _loaded(path: Path) -> GraphGPForecaster:
    model = load(path)
    if not isinstance(model, GraphGPForecaster):
        raise ValueError(
            f"{path} must hold a series, as `spectralgp fit --inputs time --season auto` saves it; got a model of "
            "signals. Use `spectralgp predict`."
        )
    return model


def _exogenous(path: Path | None, date_format: str | None) -> pd.DataFrame | None:
    return None if path is None else inputs_from_file(path, date_format=date_format)


@answering
def forecast(
    model: files.ModelFile,
    out: Annotated[Path, typer.Option(help="Table for the forecast, CSV or Parquet.", dir_okay=False, metavar="FILE")],
    steps: Annotated[int, typer.Option(help="How many rows ahead.", min=1)] = 1,
    std: Table = None,
    lower: Table = None,
    upper: Table = None,
    level: Annotated[
        float, typer.Option(help="Probability of the interval of --lower and --upper.", min=0.01, max=0.99)
    ] = 0.9,
    inputs: Exogenous = None,
    date_format: files.DateFormat = None,
    force: Force = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    r"""Forecast the rows after the last one of a series, with intervals.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs time --season auto --out series.sgp
      spectralgp forecast series.sgp --steps 3 --out forecast.csv \
        --lower lower.csv --upper upper.csv
    """
    to_be_written(out, std, lower, upper, force=force)
    fitted = _loaded(model).set_output(predict="pandas")
    mean, deviation = fitted.predict(steps, return_std=True, X=_exogenous(inputs, date_format))
    half = interval_half_width(deviation.to_numpy(), level)
    tables = {out: mean, std: deviation, lower: mean - half, upper: mean + half}
    write_tables({path: table.rename_axis("time") for path, table in tables.items() if path is not None})
    first, last = mean.index[0], mean.index[-1]
    if as_json:
        named = {"out": out, "std": std, "lower": lower, "upper": upper}
        print_json({**named, "n_steps": steps, "n_nodes": mean.shape[1], "first": str(first), "last": str(last)})
        return
    typer.echo(f"Forecast {steps} steps at {mean.shape[1]} nodes, {first} to {last}: {out}")


@answering
def update(
    model: files.ModelFile,
    signals: Annotated[Path, file_option("Rows of the series; those up to its last one are left out.", None)],
    out: Annotated[
        Path | None,
        typer.Option(help="File for the updated model; the model itself if not given.", dir_okay=False, metavar="FILE"),
    ] = None,
    inputs: Exogenous = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="Table for how odd each new value was, in deviations.", dir_okay=False, metavar="FILE"),
    ] = None,
    layout: files.Layout = "auto",
    nodes: files.Nodes = "exact",
    date_format: files.DateFormat = None,
    force: Force = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    r"""Take rows that have come since into a series: nothing is learnt anew, and it goes on from the last of them.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs time --season auto --out series.sgp
      spectralgp update series.sgp --signals files/later.csv --scores odd.csv
    """
    to_be_written(*([] if out is None else [out]), scores, force=force)
    fitted = _loaded(model)
    rows = files.Reader(layout, nodes, date_format).signals(signals, fitted.graph_)
    with files.naming(signals):
        is_new = fitted.is_later(rows)
    known, exogenous = int(np.sum(~is_new)), _exogenous(inputs, date_format)
    if not is_new.any():
        raise ValueError(f"{signals} must have rows after the last one of {model}; got {known} earlier ones.")
    new, own = rows[is_new], None if exogenous is None else exogenous[is_new]
    with files.naming(signals):
        odd = fitted.anomaly_scores(new, own)
        by_step = fitted.anomaly_scores(new, own, by="step")
        fitted.update(new, own)
    if scores is not None:
        import pandas

        names = fitted.node_names_ or range(odd.shape[1])
        table = pandas.DataFrame(odd, index=new.index, columns=[str(name) for name in names])
        write_tables({scores: table.assign(row=by_step)})
    fitted.save(model if out is None else out)
    if known:
        typer.echo(f"note: {known} rows up to the last one of the model are left out", err=True)
    oddest = int(np.nanargmax(by_step))
    where = f"{new.index[oddest]}".removesuffix(" 00:00:00")
    if as_json:
        answer = {"model": model if out is None else out, "n_new": len(new), "n_left_out": known}
        print_json({**answer, "n_steps": fitted.n_steps_, "oddest": where, "score": float(by_step[oddest])})
        return
    typer.echo(f"Took in {len(new)} rows; the series has {fitted.n_steps_}: {model if out is None else out}")
    typer.echo(f"The oddest row is {where}, at {by_step[oddest]:.2f} times the usual deviation.")
