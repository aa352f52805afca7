"""Commands `predict`, `impute`, `score` and `report`: answers of a saved model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from spectralgp import GraphGPClassifier, GraphGPForecaster, GraphGPRegressor, load
from spectralgp.cli import files
from spectralgp.cli.app import check_outputs, print_answer
from spectralgp.cli.commands import ImputeCommand, PredictCommand, ReportCommand, ScoreCommand
from spectralgp.files.inputs import inputs_from_file, time_inputs
from spectralgp.files.tables import Dialect, as_long, index_of, read_table, side_by_side, with_intervals, write_tables
from spectralgp.learning.baselines import PredictionErrors
from spectralgp.model.kernels import InputRecipe
from spectralgp.scores import coverage, observed_and_predicted

if TYPE_CHECKING:
    import pandas as pd


def predict(asked: PredictCommand) -> None:
    """Predict signals or classes."""
    _check_out(asked)
    found = load(asked.model)
    if isinstance(found, GraphGPClassifier):
        _predict_classes(asked, found)
        return
    fitted = files.signal_model(found, asked.model)
    new = _new_inputs(asked, fitted)
    beside = files.auxiliary_data(asked, fitted.graph_, None if new is None else new.index)
    known = None
    if asked.observed is not None:
        known = matched_observations(files.signal_table(asked, asked.observed, fitted.graph_), new, asked.observed)
    fitted.set_output(predict="pandas")
    # quantiles of counts and the like: mean and standard deviation do not give their intervals
    if asked.level is not None and hasattr(fitted, "likelihood_"):
        beside["return_quantiles"] = 0.5 * (1 - asked.level), 0.5 * (1 + asked.level)
    mean, deviation, *ends = fitted.predict(new, return_std=True, include_noise=True, observed=known, **beside)
    dialect = files.dialect_for(asked, asked.signals, asked.observed, files.input_parts(asked.inputs).table)
    _answer(asked, mean, deviation, dialect, "Predicted", ends)


def _predict_classes(asked: PredictCommand, model: GraphGPClassifier) -> None:
    """Write the class of every node, with probabilities."""
    import pandas as pd

    beside = (asked.exposure, asked.trials, asked.std, asked.level, asked.long)
    if any((asked.signals, asked.inputs, asked.at, asked.observed, *beside)) or not model._alignment.form.is_flat:
        raise typer.BadParameter("a model of classes of nodes must be given --out alone; got more options.")
    names = range(model.graph_.n_nodes) if model.graph_.names is None else model.graph_.names
    labels = [f"p({name})" for name in model.classes_.tolist()]
    table = pd.DataFrame(model.predict_proba(), pd.Index(list(names), name="node"), labels).round(6)
    table.insert(0, "class", model.predict())
    write_tables({asked.out: table}, dialect=Dialect())
    answer = {"out": asked.out, "n_nodes": len(table), "classes": model.classes_}
    print_answer(asked, answer, f"Predicted the classes of {len(table)} nodes: {asked.out}")


def _new_inputs(asked: PredictCommand, model: GraphGPRegressor) -> pd.DataFrame | None:
    """New inputs, made as in the fit; None for a model without inputs."""
    signals, inputs, at, observed = asked.signals, asked.inputs, asked.at, asked.observed
    table, recipe = files.input_parts(inputs).table, model.input_recipe_
    clock = None if recipe is None else recipe.time
    is_of_time_alone = clock is not None and recipe == InputRecipe(clock)
    if is_of_time_alone and table is not None and not at and signals is None:  # a table of times
        with files.naming_file(table):
            return time_inputs(index_of(read_table(table), 0, asked.date_format), clock)
    parts = files.fitted_inputs(model, inputs)
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
        with files.naming_file(observed):
            return time_inputs(files.signal_table(asked, observed, model.graph_).index, parts.clock)
    if signals is not None:
        return files.fitted_data(asked, model, signals, ahead=True).inputs
    if table is None:
        return None
    features = inputs_from_file(table, features=parts.columns, date_format=asked.date_format)
    with files.naming_file(table):
        times = [time_inputs(features.index, parts.clock)] if parts.time else []
    return files.in_order(files.joined_inputs([*times, features], features.index, parts), model)


def matched_observations(observed: pd.DataFrame, new: pd.DataFrame | None, path: Path) -> pd.DataFrame:
    """Match observed values to the signals to predict, by their labels."""
    if new is None:
        if len(observed) != 1:
            raise ValueError(
                f"{path} must have one row for a model without inputs, which predicts one signal; got {len(observed)}. "
                "Impute several with `spectralgp impute`."
            )
        return observed
    unknown = [str(label) for label in observed.index if label not in new.index]
    if unknown or not observed.index.is_unique:
        got = f"{unknown[0]}, which is not among them" if unknown else "a label twice"
        raise ValueError(f"{path} must have the labels of the signals to predict, each once; got {got}.")
    return observed.reindex(new.index)


def impute(asked: ImputeCommand) -> None:
    """Impute missing values."""
    _check_out(asked)
    fitted = files.signal_model(load(asked.model), asked.model)
    data = files.fitted_data(asked, fitted, asked.signals)
    beside = files.auxiliary_data(asked, fitted.graph_, data.signals.index)
    with files.naming_file(asked.signals):
        values, deviation = fitted.impute(data.inputs, data.signals, **beside)
    n_imputed = int(data.signals.isna().to_numpy().sum())
    dialect = files.dialect_for(asked, asked.signals)
    _answer(asked, values, deviation, dialect, f"Imputed {n_imputed} values of", (), n_imputed=n_imputed)


def score(asked: ScoreCommand) -> None:
    """Score predictions, signal by signal."""
    fitted, level = files.signal_model(load(asked.model), asked.model), asked.level
    data = files.fitted_data(asked, fitted, asked.signals)
    beside = files.auxiliary_data(asked, fitted.graph_, data.signals.index)
    with files.naming_file(asked.signals):
        n_seen, n_signals = int(np.sum(fitted.has_seen(data.inputs, data.signals))), len(data.signals)
        observed, mean, std = observed_and_predicted(fitted, data.inputs, data.signals, **beside)
        densities = np.asarray(fitted.log_predictive_density(data.inputs, data.signals, joint=False, **beside))
        found = PredictionErrors.of(asked.model.name, observed, mean, std, densities)
    answer = {
        "n_signals": int(np.sum(~np.isnan(found.log_densities))),  # with an observed value
        **{name: getattr(found, name) for name in ("n_values", "log_density", "log_density_error", "rmse", "crps")},
        "coverage": coverage(observed, mean, std, level),
        "level": level,
        "n_training_signals": n_seen,
    }
    rows = {
        "log density of a signal (s.e.)": f"{found.log_density:.2f} ({found.log_density_error:.2f}) nats",
        "root mean square error": f"{found.rmse:.4g}",
        "CRPS": f"{found.crps:.4g}",
        f"inside {level:.0%} intervals": f"{answer['coverage']:.1%}",
    }
    lines = [f"{found.n_values} values of {answer['n_signals']} signals", ""]
    lines += [f" {name:32}{value}" for name, value in rows.items()]
    if n_seen:
        some = "These signals are" if n_seen == n_signals else f"{n_seen} of {n_signals} signals are"
        lines += ["", f"{some} training signals of the model: expect worse scores on others."]
    print_answer(asked, answer, "\n".join(lines))


def report(asked: ReportCommand) -> None:
    """Write a page about a model of signals or of a series."""
    check_outputs(asked.out, force=asked.force)
    fitted, signals, inputs = load(asked.model), asked.signals, asked.inputs
    given: tuple[Any, ...] = ()
    options: dict[str, Any] = {"title": asked.title, "aspect": "equal" if asked.aspect is None else asked.aspect}
    if isinstance(fitted, GraphGPForecaster):
        exogenous = files.exogenous(fitted, files.input_parts(inputs).table, asked.date_format)
        given = (None if signals is None else files.signal_table(asked, signals, fitted.graph_), exogenous)
        options |= {"horizon": asked.steps}
    elif files.signal_model(fitted, asked.model) and signals is not None:
        data = files.fitted_data(asked, fitted, signals)
        given = (data.inputs, data.signals)
    elif inputs is not None:
        raise typer.BadParameter("--inputs must be left out without --signals: they are inputs of these.")
    with files.naming_file(asked.model if signals is None else signals):
        path = fitted.report(asked.out, *given, **options)
    print_answer(asked, {"out": path, "n_bytes": path.stat().st_size}, f"Report: {path}")


def _check_out(asked: PredictCommand | ImputeCommand) -> None:
    check_outputs(asked.out, asked.std, force=asked.force)
    if asked.long and asked.std is not None:
        raise typer.BadParameter("--std must be left out with --long, whose table has a column for it.")


def _answer(
    asked: PredictCommand | ImputeCommand,
    mean: pd.DataFrame,
    std: pd.DataFrame,
    dialect: Dialect,
    done: str,
    ends: Sequence[pd.DataFrame],
    **more: int,
) -> None:
    """Write values with their standard deviations or intervals, and print a summary."""
    tables = {"mean": mean, "std": std} if asked.level is None else with_intervals(mean, std, asked.level, ends)
    answer = as_long(tables) if asked.long else mean if asked.level is None else side_by_side(tables)
    written = {asked.out: answer} if asked.std is None else {asked.out: answer, asked.std: std}
    write_tables(written, index=not asked.long, dialect=dialect)
    n_signals, n_nodes = mean.shape
    where = f"{asked.out}" if asked.std is None else f"{asked.out}, standard deviations: {asked.std}"
    known = {"out": asked.out, "std": asked.std, "n_signals": n_signals, "n_nodes": n_nodes, **more}
    print_answer(asked, known, f"{done} {n_signals} signals at {n_nodes} nodes: {where}")
