"""Answers of saved models, for the commands `predict`, `impute`, `score` and `update`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from spectralgp import GraphGPClassifier, GraphGPForecaster, GraphGPRegressor
from spectralgp.cli import files
from spectralgp.cli.app import Answer
from spectralgp.cli.option import ObservationOptions, OutputOptions, TableOptions
from spectralgp.files.inputs import InputRecipe, inputs_from_file, time_inputs
from spectralgp.files.tables import as_long, index_of, read_table, side_by_side, with_intervals, write_tables
from spectralgp.learning.baselines import PredictionErrors
from spectralgp.scores import coverage, observed_and_predicted

if TYPE_CHECKING:
    import pandas as pd


def written_classes(model: GraphGPClassifier, out: Path) -> Answer:
    """Write the class of every node, with probabilities."""
    import pandas as pd

    names = range(model.graph_.n_nodes) if model.graph_.names is None else model.graph_.names
    labels = [f"p({name})" for name in model.classes_.tolist()]
    table = pd.DataFrame(model.predict_proba(), pd.Index(list(names), name="node"), labels).round(6)
    table.insert(0, "class", model.predict())
    write_tables({out: table})
    answer = {"out": out, "n_nodes": len(table), "classes": model.classes_}
    return answer, f"Predicted the classes of {len(table)} nodes: {out}"


def inputs_to_predict(
    model: GraphGPRegressor,
    signals: Path | None,
    inputs: list[str] | None,
    at: list[str] | None,
    observed: Path | None,
    options: TableOptions,
) -> pd.DataFrame | None:
    """New inputs, made as in the fit; None for a model without inputs."""
    table, recipe = files.input_parts(inputs).table, model.input_recipe_
    clock = None if recipe is None else recipe.time
    is_of_time_alone = clock is not None and recipe == InputRecipe(clock)
    if is_of_time_alone and table is not None and not at and signals is None:  # a table of times
        with files.naming_file(table):
            return time_inputs(index_of(read_table(table), 0, options.date_format), clock)
    parts = files.fitted_inputs(model, inputs)
    wanted = ["--signals"] if parts.lag is not None else ["--at"] if parts.time and table is None else []
    given = [name for name, value in (("--signals", signals), ("--at", at)) if value]
    is_known_by_label = wanted == ["--at"] and observed is not None and not given
    if given != wanted and not is_known_by_label:
        ask = f"give {wanted[0]}" if wanted else "leave out --signals and --at"
        way = "without inputs" if parts == files.InputColumns() else f"with {recipe or inputs}"
        raise typer.BadParameter(f"{ask}: the model was fitted {way}; got {', '.join(given) or 'none'}.")
    if at:
        return files.times_given(at, parts.clock, options.date_format)
    if observed is not None and is_known_by_label:
        with files.naming_file(observed):
            return time_inputs(files.signal_table(observed, model.graph_, options).index, parts.clock)
    if signals is not None:
        return files.fitted_data(model, signals, inputs, options, ahead=True).inputs
    if table is None:
        return None
    features = inputs_from_file(table, features=parts.columns, date_format=options.date_format)
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


def model_scores(
    model: GraphGPRegressor, data: files.CommandData, name: str, level: float, beside: Mapping[str, Any]
) -> Answer:
    """Score predictions, signal by signal; signals that the model was fitted to are counted."""
    n_seen, n_signals = int(np.sum(model.has_seen(data.inputs, data.signals))), len(data.signals)
    observed, mean, std = observed_and_predicted(model, data.inputs, data.signals, **beside)
    densities = np.asarray(model.log_predictive_density(data.inputs, data.signals, joint=False, **beside))
    found = PredictionErrors.of(name, observed, mean, std, densities)
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
    return answer, "\n".join(lines)


def written(
    output: OutputOptions,
    mean: pd.DataFrame,
    std: pd.DataFrame,
    dialect: dict[str, Any],
    done: str,
    ends: Sequence[pd.DataFrame] = (),
    **more: int,
) -> Answer:
    """Write values with their standard deviations or intervals, and summarise what was `done`."""
    tables = {"mean": mean, "std": std} if output.level is None else with_intervals(mean, std, output.level, ends)
    answer = as_long(tables) if output.long else mean if output.level is None else side_by_side(tables)
    saved = {output.out: answer} if output.std is None else {output.out: answer, output.std: std}
    write_tables(saved, index=not output.long, **dialect)
    n_signals, n_nodes = mean.shape
    where = f"{output.out}" if output.std is None else f"{output.out}, standard deviations: {output.std}"
    known = {"out": output.out, "std": output.std, "n_signals": n_signals, "n_nodes": n_nodes, **more}
    return known, f"{done} {n_signals} signals at {n_nodes} nodes: {where}"


def update_series(
    fitted: GraphGPForecaster,
    path: Path,
    signals: Path,
    parts: files.InputColumns,
    table: TableOptions,
    scores: Path | None,
) -> dict[str, Any]:
    """Add new rows to a series in place; return counts of rows and the largest anomaly score."""
    if parts.time or parts.lag is not None:
        raise typer.BadParameter("--inputs must be a table for a series, of its covariates beside time.")
    rows = files.signal_table(signals, fitted.graph_, table)
    with files.naming_file(signals):
        is_new = fitted.is_later(rows)
    known, exogenous = int(np.sum(~is_new)), files.exogenous(fitted, parts.table, table.date_format)
    if not is_new.any():
        raise ValueError(f"{signals} must have rows after the last one of {path}; got {known} earlier ones.")
    new, own = rows[is_new], None if exogenous is None else exogenous[is_new]
    with files.naming_file(signals):
        odd = fitted.anomaly_scores(new, own)
        by_step = fitted.anomaly_scores(new, own, by="step")
        fitted.update(new, own)
    if scores is not None:
        import pandas as pd

        names = fitted.node_names_ or range(odd.shape[1])
        answer = pd.DataFrame(odd, index=new.index, columns=[str(name) for name in names])
        write_tables({scores: answer.assign(row=by_step)}, **files.dialect_for(table.date_format, signals))
    oddest = int(np.nanargmax(by_step))
    where = f"{new.index[oddest]}".removesuffix(" 00:00:00")
    counts = {"n_new": len(new), "n_left_out": known, "n_steps": fitted.n_steps_}
    return {**counts, "oddest": where, "score": float(by_step[oddest])}


def conditioned(
    fitted: GraphGPRegressor,
    path: Path,
    signals: Path,
    inputs: list[str] | None,
    table: TableOptions,
    observing: ObservationOptions,
) -> tuple[GraphGPRegressor, dict[str, Any]]:
    """Condition a model of signals on new rows; return it with counts of rows."""
    data = files.fitted_data(fitted, signals, inputs, table)
    with files.naming_file(signals):
        # other inputs than times may repeat: rows with the same values are then new measurements
        is_in_time = data.recipe.time is not None or data.recipe.lag is not None
        is_new = ~fitted.has_seen(data.inputs, data.signals) if is_in_time else np.ones(len(data.signals), dtype=bool)
        if not is_new.any():
            raise ValueError(f"{signals} must have rows that are not training rows of {path}; got {is_new.size} old.")
        new = data.signals[is_new]
        beside = files.auxiliary_data(vars(observing), table, fitted.graph_, new.index)
        updated = fitted.condition_on(None if data.inputs is None else data.inputs[is_new], new, **beside)
    n_signals = updated.posterior_.parts[0][1].inputs.shape[0]
    return updated, {"n_new": int(is_new.sum()), "n_left_out": int(np.sum(~is_new)), "n_signals": n_signals}
