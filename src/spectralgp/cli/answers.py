"""`predict`, `impute`, `score` and `report`: what a saved model says of signals."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from spectralgp import GraphGPClassifier, GraphGPForecaster, GraphGPRegressor, load
from spectralgp.cli import files
from spectralgp.cli.app import AsJson, Debug, Force, answering, print_json, to_be_written
from spectralgp.cli.files import file_option
from spectralgp.files.inputs import inputs_from_file, time_inputs
from spectralgp.files.tables import (
    Dialect,
    as_long,
    index_of,
    read_table,
    side_by_side,
    with_intervals,
    write_tables,
)
from spectralgp.kernels import InputRecipe
from spectralgp.scores import coverage, crps, observed_and_predicted, root_mean_square_error

if TYPE_CHECKING:
    import pandas as pd

Out = Annotated[Path, typer.Option(help="Table for the answer, CSV or Parquet.", dir_okay=False, metavar="FILE")]
Std = Annotated[Path | None, typer.Option(help="Table for the standard deviations.", dir_okay=False, metavar="FILE")]
Long = Annotated[
    bool, typer.Option("--long", help="Write one long table: label, node, mean, std; lower and upper with --level.")
]
Level = Annotated[
    float | None,
    typer.Option(
        help="Write the ends of intervals of this probability beside each node (NODE lower, NODE upper), all rounded "
        "to three digits of the standard deviation.",
        min=0.01,
        max=0.99,
    ),
]


@answering
def predict(
    model: files.ModelFile,
    out: Out,
    signals: Annotated[
        Path | None,
        file_option("Signals to go on from, for a model with lag:1: the signal after each row is predicted.", None),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            help="Table of new inputs by their names at fit, or of times; lag:1 or time where the model's file does "
            "not say how its inputs were made.",
            metavar="FILE|lag:N|time",
        ),
    ] = None,
    at: Annotated[
        list[str] | None, typer.Option(help="Time to predict, for a model of time; may be repeated.", metavar="TIME")
    ] = None,
    observed: Annotated[
        Path | None,
        file_option(
            "What is known of the predicted signals themselves, with the same labels; empty cells are predicted.",
            None,
        ),
    ] = None,
    exposure: files.Exposure = None,
    trials: files.Trials = None,
    std: Std = None,
    level: Level = None,
    long: Long = False,
    layout: files.Layout = "auto",
    nodes: files.Nodes = "exact",
    date_format: files.DateFormat = None,
    force: Force = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    r"""Predict signals, with intervals or the standard deviation of what would be observed.

    Text is written as in the files that were given: separators, decimal commas, dates. Of a model of classes: the class
    of every node and the probability of each, in columns named after them.

    Example (the model is that of `spectralgp fit --help`):
      spectralgp predict model.sgp --signals files/later.csv \
        --level 0.9 --out predicted.csv
    """
    _check_out(out, std, long, force)
    found = load(model)
    if isinstance(found, GraphGPClassifier):
        options = (signals, inputs, at, observed, exposure, trials, std, level, long)
        _predict_classes(found, out, any(options), as_json)
        return
    fitted, reader = files.as_signals(found, model), files.Reader(layout, nodes, date_format)
    new = _new_inputs(fitted, signals, inputs, at, observed, reader)
    index = None if new is None else new.index
    beside = files.beside_of({"exposure": exposure, "trials": trials}, reader, fitted.graph_, index)
    known = None if observed is None else _matched(reader.signals(observed, fitted.graph_), new, observed)
    fitted.set_output(predict="pandas")
    mean, deviation = fitted.predict(new, return_std=True, include_noise=True, observed=known, **beside)
    tables = [files.input_parts(inputs).table] if inputs else []
    _write(mean, deviation, out, std, long, level, reader.dialect(signals, observed, *tables))
    _say(as_json, out, std, mean, "Predicted")


def _predict_classes(model: GraphGPClassifier, out: Path, has_more: bool, as_json: bool) -> None:
    """Write the class of every node, and probabilities."""
    import pandas as pd

    if has_more or not model._read.form.is_flat:
        raise typer.BadParameter("a model of classes of nodes must be asked for nothing but --out; got more options.")
    names = range(model.graph_.n_nodes) if model.graph_.names is None else model.graph_.names
    labels = [f"p({name})" for name in model.classes_.tolist()]
    table = pd.DataFrame(model.predict_proba(), pd.Index(list(names), name="node"), labels).round(6)
    table.insert(0, "class", model.predict())
    write_tables({out: table}, dialect=Dialect())
    if as_json:
        print_json({"out": out, "n_nodes": len(table), "classes": model.classes_})
        return
    typer.echo(f"Predicted the classes of {len(table)} nodes: {out}")


def _new_inputs(
    model: GraphGPRegressor,
    signals: Path | None,
    inputs: list[str] | None,
    at: list[str] | None,
    observed: Path | None,
    reader: files.Reader,
) -> pd.DataFrame | None:
    """Where to predict, in the way that the model was fitted."""
    of_times = None if at or signals or not inputs else _times_in(model, inputs, reader.date_format)
    if of_times is not None:
        return of_times
    parts, recipe = files.how_made(model, inputs)
    wanted = ["--signals"] if parts.lag is not None else ["--at"] if parts.time and parts.table is None else []
    given = [name for name, value in (("--signals", signals), ("--at", at)) if value]
    is_known_by_label = wanted == ["--at"] and observed is not None and not given
    if given != wanted and not is_known_by_label:
        ask = f"give {wanted[0]}" if wanted else "leave out --signals and --at"
        way = "without inputs" if recipe == InputRecipe() and not inputs else f"with {model.input_recipe_ or inputs}"
        raise typer.BadParameter(f"{ask}: the model was fitted {way}; got {', '.join(given) or 'none'}.")
    if at:
        return files.times_given(at, recipe.time, reader.date_format)
    if observed is not None and is_known_by_label:
        with files.naming(observed):
            return time_inputs(reader.signals(observed, model.graph_).index, recipe.time)
    if signals is not None:
        made, *_ = files.make_inputs(signals, model.graph_, parts, recipe, reader, ahead=True)
        return files.in_order(made, model)
    if parts.table is None:
        return None
    table = inputs_from_file(parts.table, features=recipe.columns, date_format=reader.date_format)
    with files.naming(parts.table):
        times = [time_inputs(table.index, recipe.time)] if parts.time else []
    return files.in_order(files.joined([*times, table], table.index, parts), model)


def _times_in(model: GraphGPRegressor, inputs: list[str], date_format: str | None) -> pd.DataFrame | None:
    """Inputs of a model of time alone from the first column of a table; None where that is not what was asked."""
    recipe, table = model.input_recipe_, files.input_parts(inputs).table
    if table is None or recipe is None or recipe != InputRecipe(recipe.time) or recipe.time is None:
        return None
    with files.naming(table):
        return time_inputs(index_of(read_table(table), 0, date_format), recipe.time)


def _matched(observed: pd.DataFrame, new: pd.DataFrame | None, path: Path) -> pd.DataFrame:
    """What is known of the signals to predict, by their labels."""
    if new is None:
        if len(observed) != 1:
            raise ValueError(
                f"{path} must have one row for a model without inputs, which predicts one signal; got {len(observed)}. "
                "Fill in several with `spectralgp impute`."
            )
        return observed
    unknown = [str(label) for label in observed.index if label not in new.index]
    if unknown or not observed.index.is_unique:
        got = f"{unknown[0]}, which is not among them" if unknown else "a label twice"
        raise ValueError(f"{path} must have the labels of the signals to predict, each once; got {got}.")
    return observed.reindex(new.index)


@answering
def impute(
    model: files.ModelFile,
    signals: files.Signals,
    out: Out,
    std: Std = None,
    level: Level = None,
    inputs: files.Inputs = None,
    long: Long = False,
    layout: files.Layout = "auto",
    nodes: files.Nodes = "exact",
    date_format: files.DateFormat = None,
    force: Force = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    r"""Fill in empty cells; what was observed stays as it is, with standard deviation zero.

    Text is written as in the file of the signals: separators, decimal commas, dates.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/holes.csv \
        --inputs time --out holes.sgp
      spectralgp impute holes.sgp --signals files/holes.csv \
        --level 0.9 --out filled.csv
    """
    _check_out(out, std, long, force)
    fitted = files.loaded(model)
    reader = files.Reader(layout, nodes, date_format)
    data = files.data_of(fitted, signals, inputs, reader)
    with files.naming(signals):
        values, deviation = fitted.impute(data.inputs, data.signals)
    n_filled = int(data.signals.isna().to_numpy().sum())
    _write(values, deviation, out, std, long, level, reader.dialect(signals))
    _say(as_json, out, std, values, f"Filled in {n_filled} cells of", n_filled=n_filled)


@answering
def score(
    model: files.ModelFile,
    signals: files.Signals,
    inputs: files.Inputs = None,
    level: Annotated[
        float, typer.Option(help="Of the intervals whose coverage is measured.", min=0.01, max=0.99)
    ] = 0.9,
    layout: files.Layout = "auto",
    nodes: files.Nodes = "exact",
    date_format: files.DateFormat = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Score predictions of signals that the model has not seen; it says so if it has. Empty cells are skipped.

    Example (the model is that of `spectralgp fit --help`):
      spectralgp score model.sgp --signals files/later.csv
    """
    fitted = files.loaded(model)
    data = files.data_of(fitted, signals, inputs, files.Reader(layout, nodes, date_format))
    with files.naming(signals):
        n_seen = int(np.sum(fitted.has_seen(data.inputs, data.signals)))
        scores = scored(fitted, data.inputs, data.signals, level)
    if as_json:
        print_json({**asdict(scores), "level": level, "n_training_signals": n_seen})
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=False)
    table.add_row("log density of a signal (s.e.)", f"{scores.log_density:.2f} ({scores.log_density_error:.2f}) nats")
    table.add_row("root mean square error", f"{scores.rmse:.4g}")
    table.add_row("CRPS", f"{scores.crps:.4g}")
    table.add_row(f"inside {level:.0%} intervals", f"{scores.coverage:.1%}")
    typer.echo(f"{scores.n_values} values of {scores.n_signals} signals")
    Console().print(table)
    if n_seen:
        some = "These signals are" if n_seen == len(data.signals) else f"{n_seen} of {len(data.signals)} signals are"
        typer.echo(f"{some} training signals, which the model has seen: these scores are too good to expect of others.")


@answering
def report(
    model: files.ModelFile,
    out: Annotated[Path, typer.Option(help="The page.", dir_okay=False, metavar="FILE.html")],
    signals: Annotated[
        Path | None,
        file_option(
            "Signals to judge the model by; leave-one-out if not given. Of a series: rows to show before the forecast, "
            "and later ones to judge it by.",
            None,
        ),
    ] = None,
    inputs: files.Inputs = None,
    steps: Annotated[int, typer.Option(help="How many rows ahead, of a series.", min=1)] = 24,
    title: Annotated[str | None, typer.Option(help="The heading.")] = None,
    aspect: Annotated[
        float | None,
        typer.Option(
            help="Length of a unit upwards on the map, to one sideways; 1 / cos(latitude) for degrees.", min=0.1
        ),
    ] = None,
    layout: files.Layout = "auto",
    nodes: files.Nodes = "exact",
    date_format: files.DateFormat = None,
    force: Force = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    r"""Write a page about a model, or a series: how well it predicts, beside what one might use instead.

    Then a map, a node over time, what neighbours share, calibration and filters. It is one HTML file that needs no
    network.

    Example (the model is that of `spectralgp fit --help`):
      spectralgp report model.sgp --signals files/later.csv --out report.html
    """
    to_be_written(out, force=force)
    fitted, reader = load(model), files.Reader(layout, nodes, date_format)
    given: tuple[Any, ...] = ()
    options: dict[str, Any] = {"title": title, "aspect": "equal" if aspect is None else aspect}
    if isinstance(fitted, GraphGPForecaster):
        table = files.input_parts(inputs).table
        exogenous = None if table is None else inputs_from_file(table, date_format=date_format)
        given = (None if signals is None else reader.signals(signals, fitted.graph_), exogenous)
        options |= {"horizon": steps}
    elif files.as_signals(fitted, model) and signals is not None:
        data = files.data_of(fitted, signals, inputs, reader)
        given = (data.inputs, data.signals)
    elif inputs is not None:
        raise typer.BadParameter("--inputs must be left out without --signals, whose inputs they are.")
    with files.naming(model if signals is None else signals):
        path = fitted.report(out, *given, **options)
    if as_json:
        print_json({"out": path, "n_bytes": path.stat().st_size})
        return
    typer.echo(f"Report: {path}")


@dataclass(frozen=True)
class Scores:
    """How well a model predicts signals, in nats and in the units of the signals."""

    n_signals: int  # of which something was observed
    n_values: int
    log_density: float  # of a signal: mean
    log_density_error: float  # and standard error, NaN for one signal
    rmse: float
    crps: float
    coverage: float


def scored(model: GraphGPRegressor, inputs: Any, truth: pd.DataFrame, level: float) -> Scores:
    """Score a model on signals, each taken alone; intervals are of probability `level`."""
    is_observed = truth.notna().to_numpy()
    densities = np.asarray(model.log_predictive_density(inputs, truth, joint=False))[is_observed.any(axis=1)]
    observed, mean, std = observed_and_predicted(model, inputs, truth)
    return Scores(
        densities.size,
        int(is_observed.sum()),
        float(np.mean(densities)),
        float(np.std(densities, ddof=1) / np.sqrt(densities.size)) if densities.size > 1 else float("nan"),
        root_mean_square_error(observed, mean),
        float(np.nanmean(crps(observed, mean, std))),
        coverage(observed, mean, std, level),
    )


def _check_out(out: Path, std: Path | None, long: bool, force: bool) -> None:
    to_be_written(out, std, force=force)
    if long and std is not None:
        raise typer.BadParameter("--std must be left out with --long, which has a column of its own for them.")


def _write(
    mean: pd.DataFrame,
    std: pd.DataFrame,
    out: Path,
    std_out: Path | None,
    long: bool,
    level: float | None,
    dialect: Dialect,
) -> None:
    tables = {"mean": mean, "std": std} if level is None else with_intervals(mean, std, level)
    answer = as_long(tables) if long else mean if level is None else side_by_side(tables)
    written = {out: answer} if std_out is None else {out: answer, std_out: std}
    write_tables(written, index=not long, dialect=dialect)


def _say(as_json: bool, out: Path, std: Path | None, table: pd.DataFrame, done: str, **more: Any) -> None:
    n_signals, n_nodes = table.shape
    if as_json:
        print_json({"out": out, "std": std, "n_signals": n_signals, "n_nodes": n_nodes, **more})
        return
    where = f"{out}" if std is None else f"{out}, standard deviations: {std}"
    typer.echo(f"{done} {n_signals} signals at {n_nodes} nodes: {where}")
