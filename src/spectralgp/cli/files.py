"""What commands are given: graphs, signals, inputs and models in files, and the options that name them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectralgp import Graph, GraphGPRegressor
from spectralgp.graph import GraphBase
from spectralgp.reading import (
    graph_from_file,
    graph_from_points,
    inputs_from_file,
    lagged,
    parsed_index,
    signals_from_file,
    time_inputs,
    with_points,
)

if TYPE_CHECKING:
    import pandas as pd

TIME, LAG = "time", "lag:1"


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
    str | None,
    typer.Option(
        help="What signals are explained by: a table with their index, lag:1 (the row before), or time (their index).",
        metavar="FILE|lag:1|time",
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
    """

    graph: GraphBase
    inputs: pd.DataFrame | None
    signals: pd.DataFrame


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
    graph: Graph, signals: Path, inputs: str | None, layout: Layout, nodes: Nodes, date_format: str | None
) -> Data:
    """Signals on a graph with their inputs; a graph without names has those of the columns from here on."""
    table = signals_from_file(signals, graph, layout=layout.value, nodes=nodes.value, date_format=date_format)
    named = graph if graph.names is not None else Graph(graph.weights, list(table.columns), graph.coordinates)
    return Data(named, *with_inputs(table, inputs, None, signals, date_format))


def with_inputs(
    signals: pd.DataFrame, inputs: str | None, features: list[str] | None, path: Path, date_format: str | None
) -> tuple[pd.DataFrame | None, pd.DataFrame]:
    """Inputs, and the signals that have them."""
    if inputs is None:
        return None, signals
    if inputs == TIME:
        return time_inputs(signals.index), signals
    if inputs.startswith("lag:"):
        if inputs != LAG:
            raise typer.BadParameter(f"--inputs must be lag:1, the row before; got {inputs}.")
        with naming(path):
            return lagged(signals)
    if not Path(inputs).is_file():
        raise typer.BadParameter(f"--inputs must be a file, lag:1 or time; got {inputs}, which is no file.")
    return inputs_from_file(inputs, signals.index, features=features, date_format=date_format), signals


# --------------------------------------------------------------------------------------------------------- models


def features_of(model: GraphGPRegressor) -> list[str] | None:
    """Names of the inputs that a model was fitted to; None if it has none."""
    if not hasattr(model, "n_features_in_"):
        return None
    names = getattr(model, "feature_names_in_", None)
    return [f"x{place}" for place in range(model.n_features_in_)] if names is None else [str(name) for name in names]


def kind_of_inputs(model: GraphGPRegressor) -> str | None:
    """How a model's inputs were made, by their names: "time", "lag:1", "table", or None without any."""
    features = features_of(model)
    if features is None:
        return None
    if features == [TIME]:
        return TIME
    return LAG if set(features) == {str(name) for name in model.graph_.names or ()} else "table"


def signals_for(
    model: GraphGPRegressor, path: Path, layout: Layout, nodes: Nodes, date_format: str | None
) -> pd.DataFrame:
    """Signals on the graph of a fitted model."""
    return signals_from_file(path, model.graph_, layout=layout.value, nodes=nodes.value, date_format=date_format)


def data_of(
    model: GraphGPRegressor, signals: Path, inputs: str | None, layout: Layout, nodes: Nodes, date_format: str | None
) -> Data:
    """Signals for a fitted model, with inputs of its kind.

    Raises
    ------
    BadParameter
        If inputs must be given in a table and are not.
    """
    kind = kind_of_inputs(model)
    if inputs is None and kind == "table":
        raise typer.BadParameter(
            f"--inputs must name a table with {features_of(model)}, which the model was fitted to."
        )
    if inputs is not None and kind is None:
        raise typer.BadParameter("--inputs must be left out: the model was fitted without inputs.")
    table = signals_for(model, signals, layout, nodes, date_format)
    features = features_of(model)
    made, chosen = with_inputs(table, inputs or kind, features, signals, date_format)
    return Data(model.graph_, made if made is None else made.reindex(columns=features), chosen)


def times_given(at: list[str], date_format: str | None) -> pd.DataFrame:
    """Inputs of a model of time, from what was typed.

    Raises
    ------
    BadParameter
        If it is neither numbers nor dates.
    """

    def refuse(row: int, got: str, remedy: str) -> None:
        raise typer.BadParameter(f"--at must be a time; got {got}. {remedy}")

    index = parsed_index(at, TIME, date_format, refuse)
    try:
        return time_inputs(index)
    except ValueError as error:
        raise typer.BadParameter(f"--at must be numbers, or dates as 2024-01-31; got {', '.join(at)}.") from error
