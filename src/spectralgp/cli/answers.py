"""`predict`, `impute`, `score` and `report`: what a saved model says of signals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from spectralgp import GraphGPClassifier, GraphGPForecaster, GraphGPRegressor, load
from spectralgp.cli import files
from spectralgp.cli.app import print_json, say, to_be_written
from spectralgp.cli.commands import ImputeCommand, PredictCommand, ReportCommand, ScoreCommand
from spectralgp.files.inputs import inputs_from_file, time_inputs
from spectralgp.files.tables import Dialect, as_long, index_of, read_table, side_by_side, with_intervals, write_tables
from spectralgp.learning.baselines import PredictionErrors
from spectralgp.model.kernels import InputRecipe
from spectralgp.scores import coverage, observed_and_predicted

if TYPE_CHECKING:
    import pandas as pd


def predict(asked: PredictCommand) -> None:
    """Predict signals, or classes."""
    _check_out(asked)
    found = load(asked.model)
    if isinstance(found, GraphGPClassifier):
        _predict_classes(asked, found)
        return
    fitted = files.as_signals(found, asked.model)
    new = _new_inputs(asked, fitted)
    beside = files.beside_of(asked, fitted.graph_, None if new is None else new.index)
    known = None
    if asked.observed is not None:
        known = _matched(files.read_signals(asked, asked.observed, fitted.graph_), new, asked.observed)
    fitted.set_output(predict="pandas")
    # counts and the like have ends of their own: no deviation from a mean knows that they are not negative
    if asked.level is not None and hasattr(fitted, "likelihood_"):
        beside["return_quantiles"] = 0.5 * (1 - asked.level), 0.5 * (1 + asked.level)
    mean, deviation, *ends = fitted.predict(new, return_std=True, include_noise=True, observed=known, **beside)
    dialect = files.dialect_for(asked, asked.signals, asked.observed, files.input_parts(asked.inputs).table)
    _answer(asked, mean, deviation, dialect, "Predicted", ends)


def _predict_classes(asked: PredictCommand, model: GraphGPClassifier) -> None:
    """Write the class of every node, and probabilities."""
    import pandas as pd

    beside = (asked.exposure, asked.trials, asked.std, asked.level, asked.long)
    if any((asked.signals, asked.inputs, asked.at, asked.observed, *beside)) or not model._read.form.is_flat:
        raise typer.BadParameter("a model of classes of nodes must be asked for nothing but --out; got more options.")
    names = range(model.graph_.n_nodes) if model.graph_.names is None else model.graph_.names
    labels = [f"p({name})" for name in model.classes_.tolist()]
    table = pd.DataFrame(model.predict_proba(), pd.Index(list(names), name="node"), labels).round(6)
    table.insert(0, "class", model.predict())
    write_tables({asked.out: table}, dialect=Dialect())
    answer = {"out": asked.out, "n_nodes": len(table), "classes": model.classes_}
    say(asked.as_json, answer, f"Predicted the classes of {len(table)} nodes: {asked.out}")


def _new_inputs(asked: PredictCommand, model: GraphGPRegressor) -> pd.DataFrame | None:
    """Where to predict, in the way that the model was fitted."""
    signals, inputs, at, observed = asked.signals, asked.inputs, asked.at, asked.observed
    table, recipe = files.input_parts(inputs).table, model.input_recipe_
    clock = None if recipe is None else recipe.time
    is_of_time_alone = clock is not None and recipe == InputRecipe(clock)
    if is_of_time_alone and table is not None and not at and signals is None:  # times are in its first column
        with files.naming(table):
            return time_inputs(index_of(read_table(table), 0, asked.date_format), clock)
    parts = files.how_made(model, inputs)
    wanted = ["--signals"] if parts.lag is not None else ["--at"] if parts.time and table is None else []
    given = [name for name, value in (("--signals", signals), ("--at", at)) if value]
    is_known_by_label = wanted == ["--at"] and observed is not None and not given
    if given != wanted and not is_known_by_label:
        ask = f"give {wanted[0]}" if wanted else "leave out --signals and --at"
        way = "without inputs" if parts == files.InputColumns() else f"with {recipe or inputs}"
        raise typer.BadParameter(f"{ask}: the model was fitted {way}; got {', '.join(given) or 'none'}.")
    if at:
        return files.times_given(at, parts.clock, asked.date_format)
    if observed is not None and is_known_by_label:
        with files.naming(observed):
            return time_inputs(files.read_signals(asked, observed, model.graph_).index, parts.clock)
    if signals is not None:
        return files.data_of(asked, model, signals, ahead=True).inputs
    if table is None:
        return None
    features = inputs_from_file(table, features=parts.columns, date_format=asked.date_format)
    with files.naming(table):
        times = [time_inputs(features.index, parts.clock)] if parts.time else []
    return files.in_order(files.joined([*times, features], features.index, parts), model)


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


def impute(asked: ImputeCommand) -> None:
    """Fill in empty cells."""
    _check_out(asked)
    fitted = files.as_signals(load(asked.model), asked.model)
    data = files.data_of(asked, fitted, asked.signals)
    beside = files.beside_of(asked, fitted.graph_, data.signals.index)
    with files.naming(asked.signals):
        values, deviation = fitted.impute(data.inputs, data.signals, **beside)
    n_filled = int(data.signals.isna().to_numpy().sum())
    dialect = files.dialect_for(asked, asked.signals)
    _answer(asked, values, deviation, dialect, f"Filled in {n_filled} cells of", (), n_filled=n_filled)


def score(asked: ScoreCommand) -> None:
    """Score predictions, each signal taken alone."""
    fitted, level = files.as_signals(load(asked.model), asked.model), asked.level
    data = files.data_of(asked, fitted, asked.signals)
    beside = files.beside_of(asked, fitted.graph_, data.signals.index)
    with files.naming(asked.signals):
        n_seen, n_signals = int(np.sum(fitted.has_seen(data.inputs, data.signals))), len(data.signals)
        observed, mean, std = observed_and_predicted(fitted, data.inputs, data.signals, **beside)
        densities = np.asarray(fitted.log_predictive_density(data.inputs, data.signals, joint=False, **beside))
        found = PredictionErrors.of(asked.model.name, observed, mean, std, densities)
    answer = {
        "n_signals": int(np.sum(~np.isnan(found.log_densities))),  # of which something was observed
        **{name: getattr(found, name) for name in ("n_values", "log_density", "log_density_error", "rmse", "crps")},
        "coverage": coverage(observed, mean, std, level),
        "level": level,
        "n_training_signals": n_seen,
    }
    if asked.as_json:
        print_json(answer)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=False)
    table.add_row("log density of a signal (s.e.)", f"{found.log_density:.2f} ({found.log_density_error:.2f}) nats")
    table.add_row("root mean square error", f"{found.rmse:.4g}")
    table.add_row("CRPS", f"{found.crps:.4g}")
    table.add_row(f"inside {level:.0%} intervals", f"{answer['coverage']:.1%}")
    typer.echo(f"{found.n_values} values of {answer['n_signals']} signals")
    Console().print(table)
    if n_seen:
        some = "These signals are" if n_seen == n_signals else f"{n_seen} of {n_signals} signals are"
        typer.echo(f"{some} training signals, which the model has seen: these scores are too good to expect of others.")


def report(asked: ReportCommand) -> None:
    """Write a page about a model or a series."""
    to_be_written(asked.out, force=asked.force)
    fitted, signals, inputs = load(asked.model), asked.signals, asked.inputs
    given: tuple[Any, ...] = ()
    options: dict[str, Any] = {"title": asked.title, "aspect": "equal" if asked.aspect is None else asked.aspect}
    if isinstance(fitted, GraphGPForecaster):
        exogenous = files.exogenous(fitted, files.input_parts(inputs).table, asked.date_format)
        given = (None if signals is None else files.read_signals(asked, signals, fitted.graph_), exogenous)
        options |= {"horizon": asked.steps}
    elif files.as_signals(fitted, asked.model) and signals is not None:
        data = files.data_of(asked, fitted, signals)
        given = (data.inputs, data.signals)
    elif inputs is not None:
        raise typer.BadParameter("--inputs must be left out without --signals, whose inputs they are.")
    with files.naming(asked.model if signals is None else signals):
        path = fitted.report(asked.out, *given, **options)
    say(asked.as_json, {"out": path, "n_bytes": path.stat().st_size}, f"Report: {path}")


def _check_out(asked: PredictCommand | ImputeCommand) -> None:
    to_be_written(asked.out, asked.std, force=asked.force)
    if asked.long and asked.std is not None:
        raise typer.BadParameter("--std must be left out with --long, which has a column of its own for them.")


def _answer(
    asked: PredictCommand | ImputeCommand,
    mean: pd.DataFrame,
    std: pd.DataFrame,
    dialect: Dialect,
    done: str,
    ends: Sequence[pd.DataFrame],
    **more: int,
) -> None:
    """Write what was asked for of values and their standard deviations, and say what was done."""
    tables = {"mean": mean, "std": std} if asked.level is None else with_intervals(mean, std, asked.level, ends)
    answer = as_long(tables) if asked.long else mean if asked.level is None else side_by_side(tables)
    written = {asked.out: answer} if asked.std is None else {asked.out: answer, asked.std: std}
    write_tables(written, index=not asked.long, dialect=dialect)
    n_signals, n_nodes = mean.shape
    where = f"{asked.out}" if asked.std is None else f"{asked.out}, standard deviations: {asked.std}"
    known = {"out": asked.out, "std": asked.std, "n_signals": n_signals, "n_nodes": n_nodes, **more}
    say(asked.as_json, known, f"{done} {n_signals} signals at {n_nodes} nodes: {where}")
