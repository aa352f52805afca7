"""What commands are given: graphs, signals, inputs and models in files, and the options that name them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectralgp import Graph, GraphGPRegressor
from spectralgp._basics.extras import require
from spectralgp._basics.tables import some
from spectralgp.files.graphs import graph_from_file, graph_from_points, with_points
from spectralgp.files.inputs import clock_of, inputs_from_file, lagged, time_inputs
from spectralgp.files.labels import parsed_index
from spectralgp.files.signals import signals_from_file
from spectralgp.graphs import GraphBase
from spectralgp.kernels import InputRecipe
from spectralgp.kernels.inputs import Clock

if TYPE_CHECKING:
    import pandas as pd

TIME = "time"


class Layout(StrEnum):
    """How a table of signals is laid out."""

    auto = "auto"
    wide = "wide"
    long = "long"


class Nodes(StrEnum):
    """What to do where nodes of file and graph differ."""

    exact = "exact"
    graph = "graph"


def file_option(name: str, text: str, panel: str | None = "Data") -> Any:
    """An option that names a file that is there."""
    return typer.Option(name, help=text, exists=True, dir_okay=False, rich_help_panel=panel, metavar="FILE")


Signals = Annotated[
    Path,
    file_option(
        "--signals",
        "Signals: a CSV or Parquet table, wide (a row a signal, a column a node) or long (time, node, value).",
    ),
]
GraphFile = Annotated[
    Path | None, file_option("--graph", "Edges (CSV, Parquet: source, target, weight), GraphML, .mtx, .npz or GeoJSON.")
]
Points = Annotated[
    Path | None,
    file_option(
        "--points",
        "Nodes with longitude and latitude, or x and y: joined to neighbours, or only drawn where a --graph is given.",
    ),
]
Neighbors = Annotated[
    int | None, typer.Option(help="Nearest neighbours of each point (8).", min=1, rich_help_panel="Data")
]
Radius = Annotated[
    float | None, typer.Option(help="Join points within it instead, in km on the sphere.", rich_help_panel="Data")
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        help="What signals are explained by: a table with their index, lag:1 (the row before; lag:7, seven before), or "
        "time (their index). May be repeated: they are joined.",
        metavar="FILE|lag:N|time",
        rich_help_panel="Data",
    ),
]
LayoutOption = Annotated[Layout, typer.Option("--layout", help="Layout of the signals.", rich_help_panel="Data")]
NodesOption = Annotated[
    Nodes,
    typer.Option(
        "--nodes",
        help="Where nodes of file and graph differ: an error, or missing ones are not observed, others left out.",
        rich_help_panel="Data",
    ),
]
DateFormat = Annotated[
    str | None,
    typer.Option(help="How dates are written, if not as 2024-01-31.", metavar="%d.%m.%Y", rich_help_panel="Data"),
]
ModelFile = Annotated[
    Path, typer.Argument(help="A model that `fit` saved.", exists=True, dir_okay=False, metavar="MODEL")
]


@dataclass(frozen=True, eq=False)
class Data:
    """What a model is fitted to, or scored on.

    Parameters
    ----------
    graph : Graph
        With a name for every node.
    inputs : DataFrame or None
        One row a signal.
    signals : DataFrame
        Columns are the nodes.
    recipe : InputRecipe
        How the inputs were made.
    """

    graph: GraphBase
    inputs: pd.DataFrame | None
    signals: pd.DataFrame
    recipe: InputRecipe


@dataclass(frozen=True)
class Told:
    """What inputs are to be made of, as it was typed.

    Parameters
    ----------
    time : bool
        Of the index of the signals.
    lag : int or None
        Of the signals this many rows before.
    table : Path or None
        Of a table.
    """

    time: bool = False
    lag: int | None = None
    table: Path | None = None


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file that an error inside is about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(str(error) if str(path) in str(error) else f"{path}: {error}") from error


def read_graph(graph: Path | None, points: Path | None, neighbors: int | None, radius: float | None) -> Graph:
    """The graph of a file of edges, of points, or of both.

    Raises
    ------
    BadParameter
        If there is neither, or too much.
    """
    if graph is None and points is None:
        raise typer.BadParameter("a graph must be given: pass --graph FILE, or --points FILE for coordinates of nodes.")
    if neighbors is not None and radius is not None:
        raise typer.BadParameter("--neighbors and --radius must not both be given. Choose one of them.")
    if graph is None and points is not None:
        return graph_from_points(points, neighbors, radius)
    assert graph is not None
    read = graph_from_file(graph, neighbors, radius)
    return read if points is None else with_points(read, points)


def read_data(
    graph: Graph, signals: Path, inputs: list[str] | None, layout: Layout, nodes: Nodes, date_format: str | None
) -> Data:
    """Signals on a graph with their inputs; a graph without names has those of the columns from here on."""
    told = as_told(inputs)
    table = signals_from_file(signals, graph, layout=layout.value, nodes=nodes.value, date_format=date_format)
    named = graph if graph.names is not None else Graph(graph.weights, list(table.columns), graph.coordinates)
    return Data(named, *make_inputs(table, told, InputRecipe(), signals, date_format))


def as_told(inputs: list[str] | None) -> Told:
    """What was typed after ``--inputs``, each part once.

    Raises
    ------
    BadParameter
        If it is neither ``time``, nor ``lag:`` with a number, nor a file; or of a kind that was given before.
    """
    told = Told()
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
            raise typer.BadParameter(f"--inputs must be a file, lag:1 or time; got {word}, which is no file.")
        if getattr(told, *part):
            raise typer.BadParameter(
                f"--inputs must have one table, one lag and time at most once; got {' and '.join(inputs or [])}. "
                "Join tables into one."
            )
        told = replace(told, **part)
    return told


def make_inputs(
    signals: pd.DataFrame, told: Told, recipe: InputRecipe, path: Path, date_format: str | None, *, ahead: bool = False
) -> tuple[pd.DataFrame | None, pd.DataFrame, InputRecipe]:
    """Inputs, the signals that have them, and how they were made, which must be as in `recipe` where that says so."""
    parts: list[pd.DataFrame] = []
    with naming(path):
        if told.lag is not None:
            before, signals = lagged(signals, told.lag, ahead=ahead)
            parts.append(before.rename(columns=str))
        if told.time:
            parts.append(time_inputs(signals.index, recipe.time))
    columns: tuple[str, ...] = ()
    if told.table is not None:
        known = recipe.columns or None
        parts.append(inputs_from_file(told.table, signals.index, features=known, date_format=date_format))
        columns = tuple(parts[-1].columns)
    clock = clock_of(signals.index) if told.time else None
    return joined(parts, signals.index, told), signals, InputRecipe(clock, told.lag, columns)


def joined(parts: list[pd.DataFrame], index: pd.Index[Any], told: Told) -> pd.DataFrame | None:
    """Parts of inputs as one table; None if there are none."""
    names = Counter(name for part in parts for name in part.columns)
    repeated = [name for name, count in names.items() if count > 1]
    if repeated:
        raise ValueError(
            f"{told.table or '--inputs'} must have no column named as those of time and lag (time, the nodes); got "
            f"{some(repeated)}. Rename them."
        )
    if not parts:
        return None
    return require("pandas", "cli", "to read tables").concat([part.set_axis(index) for part in parts], axis=1)


# --------------------------------------------------------------------------------------------------------- models


def features_of(model: GraphGPRegressor) -> list[str] | None:
    """Names of the inputs that a model was fitted to; None if it has none."""
    if not hasattr(model, "n_features_in_"):
        return None
    names = getattr(model, "feature_names_in_", None)
    return [f"x{place}" for place in range(model.n_features_in_)] if names is None else [str(name) for name in names]


def how_made(model: GraphGPRegressor, inputs: list[str] | None) -> tuple[Told, InputRecipe]:
    """What to make inputs of for a fitted model: as its file says, or where that says nothing, as was typed.

    Raises
    ------
    BadParameter
        If what was typed is not how the model was fitted, or nothing says how.
    """
    told, features, recipe = as_told(inputs), features_of(model), model.input_recipe_
    typed = " and ".join(inputs or [])
    if features is None or recipe == InputRecipe():
        if inputs:
            raise typer.BadParameter(f"--inputs must be left out: the model was fitted without inputs; got {typed}.")
        return told, InputRecipe()
    if recipe is None:
        if not inputs:
            raise typer.BadParameter(
                f"--inputs must say how the model's inputs, {some(features)}, are made (time, lag:1, or a table with "
                "them), as its file does not: it was saved from Python, or by an earlier version."
            )
        made = {str(name) for name in model.graph_.names or ()} if told.lag is not None else set()
        made |= {TIME} if told.time else set()
        left = tuple(name for name in features if name not in made)
        if not made <= set(features) or bool(left) != (told.table is not None):
            raise typer.BadParameter(
                f"--inputs must make the inputs that the model was fitted to, {some(features)}; got {typed}."
            )
        return told, InputRecipe(None, told.lag, left)
    differs = (told.time and recipe.time is None) or told.lag not in (None, recipe.lag)
    if differs or (told.table is not None and not recipe.columns):
        raise typer.BadParameter(f"--inputs must be as the model was fitted, with {recipe}; got {typed}.")
    if recipe.columns and told.table is None:
        raise typer.BadParameter(f"--inputs must name a table: the model was fitted with {recipe}.")
    return Told(recipe.time is not None, recipe.lag, told.table), recipe


def signals_for(
    model: GraphGPRegressor, path: Path, layout: Layout, nodes: Nodes, date_format: str | None
) -> pd.DataFrame:
    """Signals on the graph of a fitted model."""
    return signals_from_file(path, model.graph_, layout=layout.value, nodes=nodes.value, date_format=date_format)


def data_of(
    model: GraphGPRegressor,
    signals: Path,
    inputs: list[str] | None,
    layout: Layout,
    nodes: Nodes,
    date_format: str | None,
) -> Data:
    """Signals for a fitted model, with inputs of its kind.

    Raises
    ------
    BadParameter
        If inputs do not fit the model, or must be given and are not.
    """
    told, recipe = how_made(model, inputs)
    table = signals_for(model, signals, layout, nodes, date_format)
    made, chosen, _ = make_inputs(table, told, recipe, signals, date_format)
    return Data(model.graph_, in_order(made, model), chosen, recipe)


def in_order(made: pd.DataFrame | None, model: GraphGPRegressor) -> pd.DataFrame | None:
    """Inputs with their columns in the order of the fit.

    Raises
    ------
    ValueError
        If one is missing, as earlier signals are to a model that was taken to a graph with other nodes.
    """
    features = features_of(model) or []
    missing = [] if made is None else sorted(set(features) - set(made.columns))
    if missing:
        raise ValueError(
            f"inputs must have all columns of the fit; got none named {some(missing)}. Fit the model anew."
        )
    return None if made is None else made[features]


def times_given(at: list[str], clock: Clock | None, date_format: str | None) -> pd.DataFrame:
    """Inputs of a model of time, from what was typed.

    Raises
    ------
    BadParameter
        If it is neither numbers nor dates, or not those that the model was fitted to.
    """

    def refuse(row: int, got: str, remedy: str) -> None:
        raise typer.BadParameter(f"--at must be a time; got {got}. {remedy}")

    index = parsed_index(at, TIME, date_format, refuse)
    try:
        return time_inputs(index, clock)
    except ValueError as error:
        wanted = {"numbers": "numbers", "dates": "dates as 2024-01-31"}
        either = " or ".join(wanted.values()) if clock is None else f"{wanted[clock]}, as the model was fitted to"
        raise typer.BadParameter(f"--at must be {either}; got {', '.join(at)}.") from error
