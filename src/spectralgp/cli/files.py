"""Files of commands: graphs, signals, inputs, exposures and models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from spectralgp import Graph, GraphGPClassifier, GraphGPForecaster, GraphGPRegressor, load
from spectralgp._basics.checks import Array
from spectralgp._basics.extras import require
from spectralgp._basics.tables import some
from spectralgp.cli.option import LearningOptions, ObservationOptions, TableOptions
from spectralgp.files.graphs import graph_from_file, graph_from_points, with_points
from spectralgp.files.inputs import TIME, Clock, InputRecipe, clock_kind, inputs_from_file, lagged, time_inputs
from spectralgp.files.signals import signals_from_file
from spectralgp.files.tables import FileTable, dialect_of, index_of, naming_file, read_table
from spectralgp.graphs import GraphBase

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class CommandData:
    """Data to fit or to score a model: a graph with names, and tables with one row per signal."""

    graph: GraphBase
    inputs: pd.DataFrame | None
    signals: pd.DataFrame
    recipe: InputRecipe  # how the inputs were made

    @property
    def features(self) -> Array:
        """Inputs as an array; without columns for signals without inputs."""
        return np.empty((len(self.signals), 0)) if self.inputs is None else self.inputs.to_numpy(dtype=float)

    def part(self, rows: slice) -> CommandData:
        """Some of the rows."""
        return replace(self, inputs=None if self.inputs is None else self.inputs[rows], signals=self.signals[rows])


@dataclass(frozen=True)
class InputColumns:
    """Columns of inputs: the index of the signals, signals some rows before, a table."""

    time: bool = False
    lag: int | None = None
    table: Path | None = None
    clock: Clock | None = None  # kind of times of the fitted model, if known
    columns: tuple[str, ...] = ()  # of the table, that the fitted model has


def signal_table(path: Path, graph: GraphBase, table: TableOptions, *, in_order: bool = False) -> pd.DataFrame:
    """Read signals on a graph; their times must increase if `in_order`."""
    return signals_from_file(path, graph, in_order=in_order, **vars(table))


def dialect_for(date_format: str | None, *paths: Path | None) -> dict[str, Any]:
    """Options of pandas' `to_csv` that write tables as in the first given file."""
    given = [path for path in paths if path is not None]
    return dialect_of(given[0], date_format) if given else {"date_format": date_format}


def signal_model(model: Any, path: Path) -> GraphGPRegressor:
    """Return a loaded model if it is one of signals; an error says which commands take series and classes."""
    if isinstance(model, GraphGPRegressor):
        return model
    got, use = "a series", "`spectralgp forecast` or `spectralgp update`"
    if isinstance(model, GraphGPClassifier):
        got, use = "one of classes", "`spectralgp predict`"
    raise ValueError(f"{path} must hold a model of signals for this command; got {got}. Use {use}.")


def auxiliary_data(
    typed: Mapping[str, str | None], table: TableOptions, graph: GraphBase, index: pd.Index[Any] | None
) -> dict[str, Any]:
    """Exposures and trials that were given, by name: a number, or a table with the rows of an index."""
    found: dict[str, Any] = {}
    for name, text in typed.items():
        option = f"--{name.replace('_', '-')}"
        if text is None:
            continue
        with suppress(ValueError):
            found[name] = float(text)
            continue
        path = Path(text)
        if not path.is_file():
            raise typer.BadParameter(f"{option} must be a number, or a table like that of the signals; got {text!r}.")
        values = signal_table(path, graph, table)
        if index is not None:
            unknown = index.difference(values.index)
            if len(unknown):
                raise typer.BadParameter(f"{option} must have the rows of the signals; got none for {unknown[0]}.")
            values = values.loc[index]
        found[name] = values
    return found


def graph_of(learning: LearningOptions) -> Graph:
    """Read a graph of edges, of points or of both."""
    if learning.neighbors is not None and learning.radius is not None:
        raise typer.BadParameter("--neighbors and --radius must not both be given. Choose one of them.")
    if learning.graph is not None:
        read = graph_from_file(learning.graph, learning.neighbors, learning.radius)
        return read if learning.points is None else with_points(read, learning.points)
    if learning.points is None:
        raise typer.BadParameter(
            "a graph must be given: pass --graph FILE, or --points FILE with coordinates of nodes."
        )
    return graph_from_points(learning.points, learning.neighbors, learning.radius)


def node_table(path: Path, graph: GraphBase, contents: str) -> dict[str, list[Any]]:
    """Read columns of a table with one row per node, named in its first column.

    They are in the graph's order; None for empty cells and nodes without a row. `contents` describe them in errors.
    """
    table = read_table(path)
    names = [str(node) for node in (range(graph.n_nodes) if graph.names is None else graph.names)]
    known, labels = set(names), table.labels(0)
    unknown = [label for label in labels if label not in known]
    twice = [label for label, times in Counter(labels).items() if times > 1]
    if unknown or twice or len(table.names) < 2:
        got = f"{unknown[0]!r}, which is none" if unknown else f"{twice[0]!r} twice" if twice else "one column alone"
        raise ValueError(
            f"{path} must have a row per node, its name in the first column and {contents} beside it; got {got}. The "
            f"first nodes of the graph are {some(names[:3])}."
        )
    columns = [dict(zip(labels, table.labels(place), strict=True)) for place in range(1, len(table.names))]
    found = zip(table.names[1:], columns, strict=True)
    return {name: [cells.get(node) or None for node in names] for name, cells in found}


def read_data(signals: Path, learning: LearningOptions, table: TableOptions) -> CommandData:
    """Read a graph, and signals on it with their inputs; a graph without names gets those of the columns."""
    graph = graph_of(learning)
    data = make_inputs(signals, graph, input_parts(learning.inputs), table)
    if graph.names is not None:
        return data
    return replace(data, graph=Graph(graph.weights, list(data.signals.columns), graph.coordinates))


def input_parts(inputs: list[str] | None) -> InputColumns:
    """Parse the values of ``--inputs``, each kind once: ``time``, ``lag:`` with a number, or a file."""
    found = InputColumns()
    for word in inputs or []:
        number = word.removeprefix("lag:")
        if word == TIME:
            part: dict[str, Any] = {"time": True}
        elif number != word:
            if not (number.isascii() and number.isdecimal() and int(number) > 0):
                raise typer.BadParameter(f"--inputs must be lag:1, the row before, or another number; got {word}.")
            part = {"lag": int(number)}
        elif Path(word).is_file():
            part = {"table": Path(word)}
        else:
            raise typer.BadParameter(f"--inputs must be a file, lag:1 or time; got {word}, which is not a file.")
        if getattr(found, *part):
            raise typer.BadParameter(
                f"--inputs must have one table, one lag and time at most once; got {' and '.join(inputs or [])}. "
                "Join tables into one."
            )
        found = replace(found, **part)
    return found


def make_inputs(
    path: Path, graph: GraphBase, parts: InputColumns, table: TableOptions, *, ahead: bool = False
) -> CommandData:
    """Read signals and make their inputs; if `ahead`, inputs of the next signals, which are not known yet."""
    signals, tables = signal_table(path, graph, table, in_order=parts.lag is not None), list["pd.DataFrame"]()
    with naming_file(path):
        if parts.lag is not None:
            before, signals = lagged(signals, parts.lag, ahead=ahead)
            tables.append(before.rename(columns=str))
        if parts.time:
            tables.append(time_inputs(signals.index, parts.clock))
    columns: tuple[str, ...] = ()
    if parts.table is not None:
        known = parts.columns or None
        tables.append(inputs_from_file(parts.table, signals.index, features=known, date_format=table.date_format))
        columns = tuple(tables[-1].columns)
    recipe = InputRecipe(clock_kind(signals.index) if parts.time else None, parts.lag, columns)
    return CommandData(graph, joined_inputs(tables, signals.index, parts), signals, recipe)


def joined_inputs(tables: list[pd.DataFrame], index: pd.Index[Any], parts: InputColumns) -> pd.DataFrame | None:
    """Join parts of inputs to one table; None without parts."""
    names = Counter(name for table in tables for name in table.columns)
    repeated = [name for name, count in names.items() if count > 1]
    if repeated:
        raise ValueError(
            f"{parts.table or '--inputs'} must have no column named like those of time and lag (time, the nodes); got "
            f"{some(repeated)}. Rename them."
        )
    if not tables:
        return None
    return require("pandas", "cli", "to read tables").concat([table.set_axis(index) for table in tables], axis=1)


def features_of(model: GraphGPRegressor) -> list[str] | None:
    """Names of a fitted model's inputs; None without inputs."""
    if not hasattr(model, "n_features_in_"):
        return None
    numbered = [f"x{place}" for place in range(model.n_features_in_)]
    return [str(name) for name in getattr(model, "feature_names_in_", numbered)]


def fitted_inputs(model: GraphGPRegressor, inputs: list[str] | None) -> InputColumns:
    """Columns of the inputs of a fitted model: as its file records, or else as was typed."""
    parts, features, recipe = input_parts(inputs), features_of(model), model.input_recipe_
    typed = " and ".join(inputs or [])
    if features is None or recipe == InputRecipe():
        if inputs:
            raise typer.BadParameter(f"--inputs must be left out: the model was fitted without inputs; got {typed}.")
        return parts
    if recipe is None:
        if not inputs:
            raise typer.BadParameter(
                f"--inputs must say how the model's inputs, {some(features)}, are made (time, lag:1, or a table with "
                "them): its file does not, since it was saved from Python, or by an earlier version."
            )
        made = {str(name) for name in model.graph_.names or ()} if parts.lag is not None else set()
        made |= {TIME} if parts.time else set()
        left = tuple(name for name in features if name not in made)
        if not made <= set(features) or bool(left) != (parts.table is not None):
            raise typer.BadParameter(
                f"--inputs must make the inputs that the model was fitted to, {some(features)}; got {typed}."
            )
        return replace(parts, columns=left)
    differs = (parts.time and recipe.time is None) or parts.lag not in (None, recipe.lag)
    if differs or (parts.table is not None and not recipe.columns):
        raise typer.BadParameter(f"--inputs must be as the model was fitted, with {recipe}; got {typed}.")
    if recipe.columns and parts.table is None:
        raise typer.BadParameter(f"--inputs must name a table: the model was fitted with {recipe}.")
    return InputColumns(recipe.time is not None, recipe.lag, parts.table, recipe.time, recipe.columns)


def fitted_data(
    model: GraphGPRegressor, signals: Path, inputs: list[str] | None, table: TableOptions, *, ahead: bool = False
) -> CommandData:
    """Read signals for a fitted model, or make those `ahead` of them, with the inputs of its fit."""
    data = make_inputs(signals, model.graph_, fitted_inputs(model, inputs), table, ahead=ahead)
    return replace(data, inputs=in_order(data.inputs, model))


def model_and_data(
    path: Path, signals: Path, inputs: list[str] | None, table: TableOptions, observing: ObservationOptions
) -> tuple[GraphGPRegressor, CommandData, dict[str, Any]]:
    """Load a model of signals, and read signals for it with their exposures or trials."""
    model = signal_model(load(path), path)
    data = fitted_data(model, signals, inputs, table)
    return model, data, auxiliary_data(vars(observing), table, model.graph_, data.signals.index)


def in_order(made: pd.DataFrame | None, model: GraphGPRegressor) -> pd.DataFrame | None:
    """Order inputs as in the fit; a model transferred to other nodes lacks those of earlier signals."""
    if made is None:
        return None
    features = features_of(model) or []
    missing = sorted(set(features) - set(made.columns))
    if missing:
        raise ValueError(
            f"inputs must have all columns of the fit; got none named {some(missing)}. Fit the model anew."
        )
    return made[features]


def exogenous(model: GraphGPForecaster, path: Path | None, date_format: str | None) -> pd.DataFrame | None:
    """Read covariates of a series beside time, if a table is given; an additional first column has the times."""
    if path is None:
        return None
    names = read_table(path).names
    has_times = len(names) == model.model_.mean.n_exogenous + 1
    return inputs_from_file(path, features=names[1:] if has_times else None, date_format=date_format)


def times_given(at: list[str], clock: Clock | None, date_format: str | None) -> pd.DataFrame:
    """Parse times as inputs of a model of time."""
    typed = FileTable(Path("--at"), (TIME,), (at,), np.arange(1, len(at) + 1))
    try:
        return time_inputs(index_of(typed, 0, date_format), clock)
    except ValueError as error:
        wanted = {"numbers": "numbers", "dates": f"dates as {date_format or '2024-01-31'}"}
        either = " or ".join(wanted.values()) if clock is None else f"{wanted[clock]}, as the model was fitted to"
        raise typer.BadParameter(f"--at must be {either}; got {', '.join(at)}.") from error
