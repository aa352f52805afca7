"""Commands `forecast`, the next rows of a time series, and `update`, conditioning on new rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import typer

from spectralgp import GraphGPForecaster, GraphGPRegressor, load
from spectralgp.cli import files
from spectralgp.cli.app import check_outputs, print_answer
from spectralgp.cli.commands import ForecastCommand, UpdateCommand
from spectralgp.files.tables import side_by_side, with_intervals, write_tables
from spectralgp.scores import interval_half_width

LEVEL = 0.9


def forecast(asked: ForecastCommand) -> None:
    """Forecast the next rows."""
    out, std, lower, upper, level = asked.out, asked.std, asked.lower, asked.upper, asked.level
    check_outputs(out, std, lower, upper, force=asked.force)
    fitted = load(asked.model)
    if not isinstance(fitted, GraphGPForecaster):
        raise ValueError(
            f"{asked.model} must hold a series, as `spectralgp fit --inputs time --season auto` saves it; got a model "
            "of signals or classes. Use `spectralgp predict`."
        )
    fitted.set_output(predict="pandas")
    exogenous = files.exogenous(fitted, asked.inputs, asked.date_format)
    mean, deviation = fitted.predict(asked.steps, return_std=True, X=exogenous)
    half = interval_half_width(deviation.to_numpy(), level or LEVEL)
    is_beside = level is not None and lower is None and upper is None
    answer = side_by_side(with_intervals(mean, deviation, level or LEVEL)) if is_beside else mean
    tables = {out: answer, std: deviation, lower: mean - half, upper: mean + half}
    named = {path: table.rename_axis("time") for path, table in tables.items() if path is not None}
    write_tables(named, dialect=files.dialect_for(asked, asked.inputs))
    first, last, n_nodes = mean.index[0], mean.index[-1], mean.shape[1]
    paths = {"out": out, "std": std, "lower": lower, "upper": upper}
    known = {"n_steps": asked.steps, "n_nodes": n_nodes, "first": str(first), "last": str(last)}
    print_answer(asked, paths | known, f"Forecast {asked.steps} steps at {n_nodes} nodes, {first} to {last}: {out}")


def update(asked: UpdateCommand) -> None:
    """Condition a model on new rows."""
    check_outputs(asked.out, asked.scores, force=asked.force)
    fitted, target = load(asked.model), asked.model if asked.out is None else asked.out
    if isinstance(fitted, GraphGPForecaster):
        answer = _updated_series(asked, fitted)
        said = (
            f"Added {answer['n_new']} rows; the series has {answer['n_steps']}: {target}\nThe most anomalous row is "
            f"{answer['oddest']}, at {answer['score']:.2f} times the usual deviation."
        )
    elif asked.scores is not None:
        raise typer.BadParameter("--scores must be left out: the model is not of a series, as fitted with --season.")
    else:
        fitted, answer = _conditioned(asked, files.signal_model(fitted, asked.model))
        said = f"Added {answer['n_new']} rows; the model has {answer['n_signals']} signals: {target}"
    fitted.save(target)
    if answer["n_left_out"]:
        typer.echo(f"note: {answer['n_left_out']} rows that the model knows are left out", err=True)
    print_answer(asked, {"model": target, **answer}, said)


def _updated_series(asked: UpdateCommand, fitted: GraphGPForecaster) -> dict[str, Any]:
    """Add new rows to a series in place; return counts of rows and the largest anomaly score."""
    signals, parts = asked.signals, files.input_parts(asked.inputs)
    if parts.time or parts.lag is not None:
        raise typer.BadParameter("--inputs must be a table for a series, of its covariates beside time.")
    rows = files.signal_table(asked, signals, fitted.graph_)
    with files.naming_file(signals):
        is_new = fitted.is_later(rows)
    known, exogenous = int(np.sum(~is_new)), files.exogenous(fitted, parts.table, asked.date_format)
    if not is_new.any():
        raise ValueError(f"{signals} must have rows after the last one of {asked.model}; got {known} earlier ones.")
    new, own = rows[is_new], None if exogenous is None else exogenous[is_new]
    with files.naming_file(signals):
        odd = fitted.anomaly_scores(new, own)
        by_step = fitted.anomaly_scores(new, own, by="step")
        fitted.update(new, own)
    if asked.scores is not None:
        import pandas

        names = fitted.node_names_ or range(odd.shape[1])
        table = pandas.DataFrame(odd, index=new.index, columns=[str(name) for name in names])
        write_tables({asked.scores: table.assign(row=by_step)}, dialect=files.dialect_for(asked, signals))
    oddest = int(np.nanargmax(by_step))
    where = f"{new.index[oddest]}".removesuffix(" 00:00:00")
    counts = {"n_new": len(new), "n_left_out": known, "n_steps": fitted.n_steps_}
    return {**counts, "oddest": where, "score": float(by_step[oddest])}


def _conditioned(asked: UpdateCommand, fitted: GraphGPRegressor) -> tuple[GraphGPRegressor, dict[str, Any]]:
    """Condition a model of signals on new rows; return it with counts of rows."""
    data = files.fitted_data(asked, fitted, asked.signals)
    with files.naming_file(asked.signals):
        # other inputs than times may repeat: rows with the same values are then new measurements
        is_in_time = data.recipe.time is not None or data.recipe.lag is not None
        is_new = ~fitted.has_seen(data.inputs, data.signals) if is_in_time else np.ones(len(data.signals), dtype=bool)
        if not is_new.any():
            raise ValueError(
                f"{asked.signals} must have rows that are not training rows of {asked.model}; got {is_new.size} old."
            )
        new = data.signals[is_new]
        beside = files.auxiliary_data(asked, fitted.graph_, new.index)
        updated = fitted.condition_on(None if data.inputs is None else data.inputs[is_new], new, **beside)
    n_signals = updated.posterior_.parts[0][1].inputs.shape[0]
    return updated, {"n_new": int(is_new.sum()), "n_left_out": int(np.sum(~is_new)), "n_signals": n_signals}
