"""Commands with their options and help, each a dataclass.

A function of the command's name, in the module named here, runs it. That module, and with it NumPy, scikit-learn and
the rest, is imported when the command runs: help needs none of them.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from spectralgp.cli.app import Command, command

AUTO = "auto"
COMPARED = "identity,regularized-laplacian,diffusion,matern,polynomial:2,polynomial:auto,auto"

# -------------------------------------------------------------------------------------------------------- options


def _option(text: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(help=text, rich_help_panel=panel, **more)


_data, _model = partial(_option, panel="Data"), partial(_option, panel="Model")
_share = partial(_option, min=0.01, max=0.99)  # a probability
_file = partial(_option, panel="Data", exists=True, dir_okay=False, metavar="FILE")  # to read
_new_file = partial(_option, dir_okay=False, metavar="FILE")  # to write


def _not_zero(jobs: int | None) -> int | None:
    if jobs == 0:
        raise typer.BadParameter("--jobs must be a number of threads, or -1 for all cores; got 0.")
    return jobs


SIGNALS = "Signals: a CSV or Parquet table, wide (one row per signal, one column per node) or long (time, node, value)."
ModelFile = Annotated[
    Path, typer.Argument(help="A model that `fit` saved.", exists=True, dir_okay=False, metavar="MODEL")
]
Inputs = Annotated[
    list[str] | None,
    _data(
        "Inputs that explain the signals: a table with the same index, lag:1 (the previous row; lag:7, seven rows "
        "before), or time (the index). May be repeated to combine several.",
        metavar="FILE|lag:N|time",
    ),
]
DateFormat = Annotated[str | None, _data("Format of dates, unless as 2024-01-31.", metavar="%d.%m.%Y")]
SpectrumOption = Annotated[
    Literal["auto", "exact", "chebyshev"], _model("Eigenvectors (exact), or Chebyshev moments for large graphs.")
]
Out = Annotated[Path, _new_file("Table to write, CSV or Parquet.")]
Std = Annotated[Path | None, _new_file("Table of standard deviations to write.")]
Table = Annotated[Path | None, _new_file("Table to write, CSV or Parquet.")]
Long = Annotated[
    bool, typer.Option("--long", help="Write one long table: label, node, mean, std; lower and upper with --level.")
]
Level = Annotated[
    float | None,
    _share(
        "Write intervals of this probability beside each node (NODE lower, NODE upper), all rounded to three digits "
        "of the standard deviation."
    ),
]
Title = Annotated[str | None, _option("Heading.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


@dataclass(frozen=True, eq=False, kw_only=True)
class TableCommand(Command):
    """A command that reads tables of signals."""

    layout: Annotated[Literal["auto", "wide", "long"], _data("Layout of the signals.")] = "auto"
    nodes: Annotated[
        Literal["exact", "graph"],
        _data("If the nodes of file and graph differ: an error, or nodes not in the file count as missing values."),
    ] = "exact"
    date_format: DateFormat = None


@dataclass(frozen=True, eq=False, kw_only=True)
class ObservationOptions:
    """Exposures and trials, of signals whose likelihood is not Gaussian."""

    exposure: Annotated[
        str | None, _data("Exposure of counts: a number, or a table like that of the signals.", metavar="TABLE")
    ] = None
    trials: Annotated[
        str | None,
        _data("Trials of a binomial likelihood: a number, or a table like that of the signals.", metavar="TABLE"),
    ] = None


@dataclass(frozen=True, eq=False, kw_only=True)
class LearningOptions:
    """Graph, inputs and effort of learning."""

    graph: Annotated[
        Path | None, _file("Edges (CSV, Parquet: source, target, weight), GraphML, .mtx, .npz or GeoJSON.")
    ] = None
    points: Annotated[
        Path | None,
        _file(
            "Nodes with longitude and latitude, or x and y: joined to their nearest neighbours, or only drawn if "
            "--graph is given."
        ),
    ] = None
    neighbors: Annotated[int | None, _data("Nearest neighbours of each point (8).", min=1)] = None
    radius: Annotated[float | None, _data("Join points within this distance instead, in km on the sphere.")] = None
    inputs: Inputs = None
    seed: Annotated[int, _model("Seed of folds and draws.", min=0, max=2**32 - 1)] = 0
    jobs: Annotated[
        int | None, _model("Threads that learn folds in parallel; -1 for all cores.", callback=_not_zero)
    ] = None


# ------------------------------------------------------------------------------------------------------- commands


@command("learning", "Learn a model from a graph and signals, and save it.")
class FitCommand(TableCommand, ObservationOptions, LearningOptions):
    r"""Learn a model from a graph and signals, or classes of some nodes, in files, and save it.

    Empty cells are missing values. Nodes are matched by name across files.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs lag:1 --out model.sgp
    """

    out: Annotated[Path, _new_file("File for the model.", metavar="MODEL")]
    signals: Annotated[Path | None, _file(SIGNALS)] = None
    classes: Annotated[
        Path | None,
        _file(
            "Instead of signals, classes of some nodes: a table of node and class. --inputs FILE is then a table of "
            "node and features."
        ),
    ] = None
    season: Annotated[
        list[str] | None,
        _model(
            "Learn a time series, for `forecast` and `update`: a seasonal period in rows, or auto. May be repeated. "
            "Needs --inputs time.",
            metavar="N|auto",
        ),
    ] = None
    kernel: Annotated[
        str,
        _model(
            "Graph kernel by name, such as diffusion, matern:2.5 or polynomial:3; auto compares several models and "
            "stacks them. An unknown name is answered with a list of all.",
            metavar="NAME",
        ),
    ] = AUTO
    degree: Annotated[str | None, _model("Degree of the polynomial: a number, or auto.", metavar="N|auto")] = None
    spectrum: SpectrumOption = "auto"
    device: Annotated[Literal["cpu", "cuda"] | None, _model("Device for large graphs.")] = None
    likelihood: Annotated[
        str, _model("Likelihood of the values, such as poisson for counts or student_t for outliers.", metavar="NAME")
    ] = "gaussian"
    force: Force = False


@command("answers", "Predict signals, with intervals.")
class PredictCommand(TableCommand, ObservationOptions):
    r"""Predict signals, with intervals or standard deviations (noise included).

    The table has the separators, decimal commas and dates of the given files. A model of classes predicts the class of
    every node, with the probability of each class in a column.

    Example (the model is that of `spectralgp fit --help`):
      spectralgp predict model.sgp --signals files/later.csv \
        --level 0.9 --out predicted.csv
    """

    model: ModelFile
    out: Out
    signals: Annotated[
        Path | None, _file("Last signals, for a model with lag:1: the signal after each row is predicted.", panel=None)
    ] = None
    inputs: Annotated[
        list[str] | None,
        _option(
            "Table of new inputs with the columns of the fit, or of times; lag:1 or time if the model's file does "
            "not record how its inputs were made.",
            metavar="FILE|lag:N|time",
        ),
    ] = None
    at: Annotated[
        list[str] | None, _option("Time to predict, for a model of time; may be repeated.", metavar="TIME")
    ] = None
    observed: Annotated[
        Path | None,
        _file(
            "Known values of the predicted signals themselves, with the same labels; empty cells are predicted.",
            panel=None,
        ),
    ] = None
    observed_exposure: Annotated[
        str | None,
        _data("Exposures, or trials, of --observed, unless the model was fitted to these signals.", metavar="TABLE"),
    ] = None
    std: Std = None
    level: Level = None
    long: Long = False
    force: Force = False


@command("answers", "Impute missing values, with intervals.")
class ImputeCommand(TableCommand, ObservationOptions):
    r"""Impute missing values (empty cells). Observed values are kept, with standard deviation zero.

    The table has the separators, decimal commas and dates of the file of the signals.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/missing.csv \
        --inputs time --out missing.sgp
      spectralgp impute missing.sgp --signals files/missing.csv \
        --level 0.9 --out filled.csv
    """

    model: ModelFile
    signals: Annotated[Path, _file(SIGNALS)]
    out: Out
    std: Std = None
    level: Level = None
    inputs: Inputs = None
    long: Long = False
    force: Force = False


@command("answers", "Score predictions of held-out signals.")
class ScoreCommand(TableCommand, ObservationOptions):
    """Score predictions of held-out signals; says if some are training signals. Missing values are skipped.

    Example (the model is that of `spectralgp fit --help`):
      spectralgp score model.sgp --signals files/later.csv
    """

    model: ModelFile
    signals: Annotated[Path, _file(SIGNALS)]
    inputs: Inputs = None
    level: Annotated[float, _share("Probability of the intervals whose coverage is measured.")] = 0.9


@command("learning", "Compare graph kernels with each other and with baselines.")
class CompareCommand(TableCommand, LearningOptions):
    r"""Compare graph kernels with each other and with baselines.

    Each is learnt from the first rows and scored on the last. Baselines are node means, no change (with lag:1: the
    previous row), ridge regression and, for missing values, neighbours on the graph and the iterative imputer. A
    baseline that is better than the learnt models is named first.

    Example (the files are those of `spectralgp example`):
      spectralgp compare --graph files/edges.csv --signals files/incomes.csv \
        --inputs lag:1 --kernels identity,diffusion,polynomial:2
    """

    signals: Annotated[Path, _file(SIGNALS)]
    kernels: Annotated[
        str,
        _model(
            f"Kernels to compare, separated by commas ({COMPARED.replace(',', ', ')}).",
            show_default=False,
            metavar="NAMES",
        ),
    ] = COMPARED
    held_out: Annotated[float, _model("Share of the signals, the last rows, to hold out.", min=0.01, max=0.9)] = 0.2
    spectrum: SpectrumOption = "auto"


@command("forecasting", "Forecast the next rows of a time series.")
class ForecastCommand(Command):
    r"""Forecast the next rows of a time series, with intervals.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs time --season auto --out series.sgp
      spectralgp forecast series.sgp --steps 3 --level 0.9 --out forecast.csv
    """

    model: ModelFile
    out: Out
    steps: Annotated[int, _option("Number of rows to forecast.", min=1)] = 1
    std: Table = None
    lower: Table = None
    upper: Table = None
    level: Annotated[
        float | None,
        _share(
            "Probability of the interval of --lower and --upper (0.9); without these two its ends are written beside "
            "each node (NODE lower, NODE upper), rounded."
        ),
    ] = None
    inputs: Annotated[Path | None, _file("Covariates of the fit beside time, one row per step.", panel=None)] = None
    date_format: DateFormat = None
    force: Force = False


@command("forecasting", "Condition a model on new rows, without refitting it.")
class UpdateCommand(TableCommand, ObservationOptions):
    r"""Condition a model on new rows, with unchanged hyperparameters.

    Forecasts of a series then start after the last new row; rows up to its former last one are left out. With time or
    lag:1 as inputs, training rows of a model of signals are left out.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs time --season auto --out series.sgp
      spectralgp update series.sgp --signals files/later.csv --scores odd.csv
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs lag:1 --out model.sgp --force
      spectralgp update model.sgp --signals files/later.csv --out later.sgp
    """

    model: ModelFile
    signals: Annotated[Path, _file("New rows; those that the model knows already are left out.", panel=None)]
    out: Annotated[Path | None, _new_file("File for the updated model; by default that of the model itself.")] = None
    inputs: Inputs = None
    scores: Annotated[Path | None, _new_file("Table of anomaly scores of the new values of a series to write.")] = None
    force: Force = False


@command("pictures", "Draw nodes over time, a map, or filters.")
class PlotCommand(TableCommand):
    r"""Draw nodes over time, a map or, without either, the learnt filters.

    A node over time shows observed and imputed values, with intervals; without missing values, its predictions. A node
    of a series shows the forecast.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --points files/states.csv --neighbors 5 \
        --signals files/missing.csv --inputs time --out missing.sgp
      spectralgp plot missing.sgp --map --row 1975 \
        --signals files/missing.csv --out map.html
      spectralgp plot missing.sgp --node Maine --node Texas \
        --signals files/missing.csv --out nodes.png
    """

    model: ModelFile
    out: Annotated[Path, _new_file("Picture (.png, .svg, .pdf) or page (.html) to write.")]
    node: Annotated[list[str] | None, _option("Draw a node over time; may be repeated.", metavar="NAME")] = None
    draw_map: Annotated[bool, typer.Option("--map", help="Draw a row of the signals on the graph.")] = False
    row: Annotated[str | None, _option("Label of the row on the map; the last by default.", metavar="LABEL")] = None
    signals: Annotated[Path | None, _file("Signals to draw; the model imputes empty cells.", panel=None)] = None
    inputs: Inputs = None
    steps: Annotated[int | None, _option("Number of rows to forecast, of a series (12; on a map 1).", min=1)] = None
    level: Annotated[float, _share("Probability of intervals.")] = 0.9
    title: Title = None
    force: Force = False


@command("answers", "Write a page about a model.")
class ReportCommand(TableCommand):
    r"""Write a page about a model: how well it predicts, compared with baselines.

    Then a map, a node over time, the relations of neighbours, calibration and filters. The page is one HTML file that
    needs no network.

    Example (the model is that of `spectralgp fit --help`):
      spectralgp report model.sgp --signals files/later.csv --out report.html
    """

    model: ModelFile
    out: Annotated[Path, _new_file("Page to write.", metavar="FILE.html")]
    signals: Annotated[
        Path | None,
        _file(
            "Signals to score the model on; leave-one-out by default. Of a series: rows to show before the forecast, "
            "and later ones to score it on.",
            panel=None,
        ),
    ] = None
    inputs: Inputs = None
    steps: Annotated[int, _option("Number of rows to forecast, of a series.", min=1)] = 24
    title: Title = None
    aspect: Annotated[
        float | None, _option("Aspect ratio of the map, height to width; 1 / cos(latitude) for degrees.", min=0.1)
    ] = None
    force: Force = False


@command("showcase", "Impute outages of sensors, and compare with other methods.")
class DemoCommand(Command):
    """Impute outages of sensors; compare with other methods, and save a picture.

    Example:
      spectralgp demo --out pictures
    """

    out: Annotated[Path, _option("Folder for the picture.", file_okay=False)] = Path("demo-output")


@command("showcase", "Write files to try the other commands with.")
class ExampleCommand(Command):
    """Write files to try the other commands with: incomes of 48 US states, in per cent above the typical state.

    edges.csv (borders), states.csv (coordinates), incomes.csv (1960 to 1989), later.csv (1989 to 2009, to predict) and
    missing.csv (1960 to 2009, a tenth of the cells empty).

    Example:
      spectralgp example --out files
    """

    out: Annotated[Path, _option("Folder for the files.", file_okay=False)] = Path("files")
    force: Force = False


@command("installation", "List versions, threads and devices.")
class InfoCommand(Command):
    """List versions, threads and devices.

    Example:
      spectralgp info
    """
