"""`forecast`, what comes after the last row of a series, and `update`, rows that have come since."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from spectralgp import GraphGPForecaster, GraphGPRegressor, load
from spectralgp.cli import files
from spectralgp.cli.app import AsJson, Debug, Force, answering, print_json, to_be_written
from spectralgp.cli.files import file_option
from spectralgp.files.inputs import inputs_from_file
from spectralgp.files.tables import Dialect, dialect_of, side_by_side, with_intervals, write_tables
from spectralgp.scores import interval_half_width

if TYPE_CHECKING:
    import pandas as pd

AUTO = "auto"
LEVEL = 0.9
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
            "signals or classes. Use `spectralgp predict`."
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
        float | None,
        typer.Option(
            help="Probability of the interval of --lower and --upper (0.9); without them its ends are written beside "
            "each node (NODE lower, NODE upper), rounded.",
            min=0.01,
            max=0.99,
        ),
    ] = None,
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
      spectralgp forecast series.sgp --steps 3 --level 0.9 --out forecast.csv
    """
    to_be_written(out, std, lower, upper, force=force)
    fitted = _loaded(model).set_output(predict="pandas")
    mean, deviation = fitted.predict(steps, return_std=True, X=_exogenous(inputs, date_format))
    half = interval_half_width(deviation.to_numpy(), level or LEVEL)
    is_beside = level is not None and lower is None and upper is None
    answer = side_by_side(with_intervals(mean, deviation, level or LEVEL)) if is_beside else mean
    tables = {out: answer, std: deviation, lower: mean - half, upper: mean + half}
    named = {path: table.rename_axis("time") for path, table in tables.items() if path is not None}
    write_tables(named, dialect=Dialect(date_format=date_format) if inputs is None else dialect_of(inputs, date_format))
    first, last = mean.index[0], mean.index[-1]
    if as_json:
        paths = {"out": out, "std": std, "lower": lower, "upper": upper}
        print_json({**paths, "n_steps": steps, "n_nodes": mean.shape[1], "first": str(first), "last": str(last)})
        return
    typer.echo(f"Forecast {steps} steps at {mean.shape[1]} nodes, {first} to {last}: {out}")


@answering
def update(
    model: files.ModelFile,
    signals: Annotated[Path, file_option("Rows to take in; those that the model knows are left out.", None)],
    out: Annotated[
        Path | None,
        typer.Option(help="File for the updated model; the model itself if not given.", dir_okay=False, metavar="FILE"),
    ] = None,
    inputs: files.Inputs = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            help="Table for how odd each new value of a series was, in deviations.", dir_okay=False, metavar="FILE"
        ),
    ] = None,
    layout: files.Layout = "auto",
    nodes: files.Nodes = "exact",
    date_format: files.DateFormat = None,
    force: Force = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    r"""Take rows that have come since into a model: nothing is learnt anew.

    A series goes on from the last of them; rows up to its last one are left out. A model of signals is conditioned on
    them too; with time or lag:1 as inputs, rows that it has seen are left out.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs time --season auto --out series.sgp
      spectralgp update series.sgp --signals files/later.csv --scores odd.csv
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs lag:1 --out model.sgp --force
      spectralgp update model.sgp --signals files/later.csv --out later.sgp
    """
    to_be_written(out, scores, force=force)
    fitted, reader, target = load(model), files.Reader(layout, nodes, date_format), model if out is None else out
    if isinstance(fitted, GraphGPForecaster):
        answer, said = _taken_in(fitted, model, signals, inputs, scores, reader)
    elif scores is not None:
        raise typer.BadParameter("--scores must be left out: the model is not a series, as --season makes it.")
    else:
        fitted, answer = _conditioned(files.as_signals(fitted, model), model, signals, inputs, reader)
        said = f"Took in {answer['n_new']} rows; the model has {answer['n_signals']} signals: {target}"
    fitted.save(target)
    if answer["n_left_out"]:
        typer.echo(f"note: {answer['n_left_out']} rows that the model knows are left out", err=True)
    if as_json:
        print_json({"model": target, **answer})
        return
    typer.echo(said.replace("{target}", str(target)))


def _taken_in(
    fitted: GraphGPForecaster,
    model: Path,
    signals: Path,
    inputs: list[str] | None,
    scores: Path | None,
    reader: files.Reader,
) -> tuple[dict[str, Any], str]:
    """Let a series go on to new rows; how many there were and how odd, as an answer and in words."""
    parts = files.input_parts(inputs)
    if parts.time or parts.lag is not None:
        raise typer.BadParameter("--inputs must be a table for a series, of the columns that it has beside time.")
    rows = reader.signals(signals, fitted.graph_)
    with files.naming(signals):
        is_new = fitted.is_later(rows)
    known, exogenous = int(np.sum(~is_new)), _exogenous(parts.table, reader.date_format)
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
        write_tables({scores: table.assign(row=by_step)}, dialect=reader.dialect(signals))
    oddest = int(np.nanargmax(by_step))
    where = f"{new.index[oddest]}".removesuffix(" 00:00:00")
    answer = {"n_new": len(new), "n_left_out": known, "n_steps": fitted.n_steps_}
    said = (
        f"Took in {len(new)} rows; the series has {fitted.n_steps_}: {{target}}\n"
        f"The oddest row is {where}, at {by_step[oddest]:.2f} times the usual deviation."
    )
    return {**answer, "oddest": where, "score": float(by_step[oddest])}, said


def _conditioned(
    fitted: GraphGPRegressor, model: Path, signals: Path, inputs: list[str] | None, reader: files.Reader
) -> tuple[GraphGPRegressor, dict[str, Any]]:
    """A model of signals conditioned on new rows, and how many there were."""
    data = files.data_of(fitted, signals, inputs, reader)
    with files.naming(signals):
        # inputs that are no times may come again, with the same values: those are new measurements
        is_in_time = data.recipe.time is not None or data.recipe.lag is not None
        is_new = ~fitted.has_seen(data.inputs, data.signals) if is_in_time else np.ones(len(data.signals), dtype=bool)
        if not is_new.any():
            raise ValueError(f"{signals} must have rows that {model} has not seen; got {is_new.size} that it has.")
        updated = fitted.condition_on(None if data.inputs is None else data.inputs[is_new], data.signals[is_new])
    n_signals = updated.posterior_.parts[0][1].inputs.shape[0]
    return updated, {"n_new": int(is_new.sum()), "n_left_out": int(np.sum(~is_new)), "n_signals": n_signals}
