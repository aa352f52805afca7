"""Conditioning of models on new rows, for the command `update`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer

from spectralgp import GraphGPForecaster, GraphGPRegressor
from spectralgp.cli import files
from spectralgp.cli.option import ObservationOptions, TableOptions
from spectralgp.files.tables import write_tables


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
        import pandas

        names = fitted.node_names_ or range(odd.shape[1])
        answer = pandas.DataFrame(odd, index=new.index, columns=[str(name) for name in names])
        write_tables({scores: answer.assign(row=by_step)}, dialect=files.dialect_for(table.date_format, signals))
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
