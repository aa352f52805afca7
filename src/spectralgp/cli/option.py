"""Options: what they are typed as, with their help; those that several commands have are said once."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

AUTO = "auto"


def plain(text: str, panel: str | None = None, **more: Any) -> Any:
    """Option with its help, in a panel of the page."""
    return typer.Option(help=text, rich_help_panel=panel, **more)


data, model = partial(plain, panel="Data"), partial(plain, panel="Model")
share = partial(plain, min=0.01, max=0.99)  # a probability
file = partial(plain, panel="Data", exists=True, dir_okay=False, metavar="FILE")  # to read
other_file = partial(file, panel=None)
new_file = partial(plain, dir_okay=False, metavar="FILE")  # to write


def _not_zero(jobs: int | None) -> int | None:
    if jobs == 0:
        raise typer.BadParameter("--jobs must be a number of threads, or -1 for all cores; got 0.")
    return jobs


SIGNALS = "Signals: a CSV or Parquet table, wide (one row per signal, one column per node) or long (time, node, value)."
ModelFile = Annotated[
    Path, typer.Argument(help="A model that `fit` saved.", exists=True, dir_okay=False, metavar="MODEL")
]
SignalsFile = Annotated[Path, file(SIGNALS)]
Inputs = Annotated[
    list[str] | None,
    data(
        "Inputs that explain the signals: a table with the same index, lag:1 (the previous row; lag:7, seven rows "
        "before), or time (the index). May be repeated to combine several.",
        metavar="FILE|lag:N|time",
    ),
]
DateFormat = Annotated[str | None, data("Format of dates, unless as 2024-01-31.", metavar="%d.%m.%Y")]
Table = Annotated[Path | None, new_file("Table to write, CSV or Parquet.")]
Title = Annotated[str | None, plain("Heading.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


@dataclass(frozen=True)
class TableOptions:
    """Layout of tables of signals."""

    layout: Annotated[Literal["auto", "wide", "long"], data("Layout of the signals.")] = "auto"
    nodes: Annotated[
        Literal["exact", "graph"],
        data("If the nodes of file and graph differ: an error, or nodes not in the file count as missing values."),
    ] = "exact"
    date_format: DateFormat = None


@dataclass(frozen=True)
class ObservationOptions:
    """Exposures and trials, of signals whose likelihood is not Gaussian."""

    exposure: Annotated[
        str | None, data("Exposure of counts: a number, or a table like that of the signals.", metavar="TABLE")
    ] = None
    trials: Annotated[
        str | None,
        data("Trials of a binomial likelihood: a number, or a table like that of the signals.", metavar="TABLE"),
    ] = None


@dataclass(frozen=True, eq=False)
class LearningOptions:
    """Graph, inputs and effort of learning."""

    graph: Annotated[
        Path | None, file("Edges (CSV, Parquet: source, target, weight), GraphML, .mtx, .npz or GeoJSON.")
    ] = None
    points: Annotated[
        Path | None,
        file(
            "Nodes with longitude and latitude, or x and y: joined to their nearest neighbours, or only drawn if "
            "--graph is given."
        ),
    ] = None
    neighbors: Annotated[int | None, data("Nearest neighbours of each point (8).", min=1)] = None
    radius: Annotated[float | None, data("Join points within this distance instead, in km on the sphere.")] = None
    inputs: Inputs = None
    spectrum: Annotated[
        Literal["auto", "exact", "chebyshev"], model("Eigenvectors (exact), or Chebyshev moments for large graphs.")
    ] = "auto"
    seed: Annotated[int, model("Seed of folds and draws.", min=0, max=2**32 - 1)] = 0
    jobs: Annotated[
        int | None, model("Threads that learn folds in parallel; -1 for all cores.", callback=_not_zero)
    ] = None
    effort: Annotated[
        Literal["full", "fast"],
        model("Compare all models of the default, or fewer of them in little more than half the time."),
    ] = "full"


@dataclass(frozen=True, eq=False)
class OutputOptions:
    """Table of predicted or imputed values."""

    out: Annotated[Path, new_file("Table to write, CSV or Parquet.")]
    std: Annotated[Path | None, new_file("Table of standard deviations to write.")] = None
    level: Annotated[
        float | None,
        share(
            "Write intervals of this probability beside each node (NODE lower, NODE upper), all rounded to three "
            "digits of the standard deviation."
        ),
    ] = None
    long: Annotated[
        bool, typer.Option("--long", help="Write one long table: label, node, mean, std; lower and upper with --level.")
    ] = False
    force: Force = False
