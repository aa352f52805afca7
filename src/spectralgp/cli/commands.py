"""What can be typed: every command with its help, as a noun that holds its options.

What it does is a function of its name, in the module that it is given here. That module, and with it NumPy,
scikit-learn and the rest, is imported when the command is run: no help needs any of them.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from spectralgp.cli.app import Command, command

AUTO = "auto"
KERNELS = {  # by name; what a number behind it sets
    "polynomial": "degree",
    "identity": None,
    "global-filter": None,
    "local-average": None,
    "pseudo-inverse": None,
    "regularized-laplacian": None,
    "diffusion": None,
    "random-walk": "steps",
    "cosine": None,
    "matern": "nu",
}
COMPARED = "identity,regularized-laplacian,diffusion,matern,polynomial:2,polynomial:auto,auto"

# -------------------------------------------------------------------------------------------------------- options


def _option(text: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(help=text, rich_help_panel=panel, **more)


_data, _model = partial(_option, panel="Data"), partial(_option, panel="Model")
_share = partial(_option, min=0.01, max=0.99)  # a probability
_file = partial(_option, panel="Data", exists=True, dir_okay=False, metavar="FILE")  # that is there
_new_file = partial(_option, dir_okay=False, metavar="FILE")  # to be written


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
        "What signals are explained by: a table with their index, lag:1 (the row before; lag:7, seven before), or "
        "time (their index). May be repeated: they are joined.",
        metavar="FILE|lag:N|time",
    ),
]
DateFormat = Annotated[str | None, _data("How dates are written, if not as 2024-01-31.", metavar="%d.%m.%Y")]
SpectrumOption = Annotated[Literal["auto", "exact", "chebyshev"], _model("Eigenvectors, or moments for large graphs.")]
Out = Annotated[Path, _new_file("Table for the answer, CSV or Parquet.")]
Std = Annotated[Path | None, _new_file("Table for the standard deviations.")]
Table = Annotated[Path | None, _new_file("Table for the answer, CSV or Parquet.")]
Long = Annotated[
    bool, typer.Option("--long", help="Write one long table: label, node, mean, std; lower and upper with --level.")
]
Level = Annotated[
    float | None,
    _share(
        "Write the ends of intervals of this probability beside each node (NODE lower, NODE upper), all rounded to "
        "three digits of the standard deviation."
    ),
]
Title = Annotated[str | None, _option("The heading.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]


@dataclass(frozen=True, eq=False, kw_only=True)
class TableCommand(Command):
    """A command that reads tables of signals; how, is at the end of its options."""

    layout: Annotated[Literal["auto", "wide", "long"], _data("Layout of the signals.")] = "auto"
    nodes: Annotated[
        Literal["exact", "graph"],
        _data("Where nodes of file and graph differ: an error, or missing ones are not observed, others left out."),
    ] = "exact"
    date_format: DateFormat = None


# Options that several commands have. They follow the command's own, the last group's first.


@dataclass(frozen=True, eq=False, kw_only=True)
class WritingOptions:
    """How a command that writes a file answers."""

    force: Force = False
    as_json: AsJson = False


@dataclass(frozen=True, eq=False, kw_only=True)
class ObservationOptions:
    """What stands beside signals whose likelihood is not Gaussian."""

    exposure: Annotated[
        str | None, _data("What counts are proportional to: a number, or a table as of signals.", metavar="TABLE")
    ] = None
    trials: Annotated[
        str | None, _data("Trials of a binomial likelihood: a number, or a table as of signals.", metavar="TABLE")
    ] = None


@dataclass(frozen=True, eq=False, kw_only=True)
class LearningOptions:
    """What models are learnt from, and how."""

    graph: Annotated[
        Path | None, _file("Edges (CSV, Parquet: source, target, weight), GraphML, .mtx, .npz or GeoJSON.")
    ] = None
    points: Annotated[
        Path | None,
        _file(
            "Nodes with longitude and latitude, or x and y: joined to neighbours, or only drawn where a --graph is "
            "given."
        ),
    ] = None
    neighbors: Annotated[int | None, _data("Nearest neighbours of each point (8).", min=1)] = None
    radius: Annotated[float | None, _data("Join points within it instead, in km on the sphere.")] = None
    inputs: Inputs = None
    seed: Annotated[int, _model("Of folds and draws.", min=0, max=2**32 - 1)] = 0
    jobs: Annotated[
        int | None, _model("Threads that learn folds side by side; -1 for all cores.", callback=_not_zero)
    ] = None


# ------------------------------------------------------------------------------------------------------- commands


@command("learning", "Learn a model from a graph and signals, and save it.")
class FitCommand(TableCommand, WritingOptions, ObservationOptions, LearningOptions):
    r"""Learn a model from a graph and signals, or classes of some nodes, in files, and save it.

    Empty cells are what was not observed. Nodes are matched by name across files.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs lag:1 --out model.sgp
    """

    out: Annotated[Path, _new_file("File for the model.", metavar="MODEL")]
    signals: Annotated[Path | None, _file(SIGNALS)] = None
    classes: Annotated[
        Path | None,
        _file(
            "Instead of signals, classes of some nodes: a table of node and class. With --inputs FILE, a table of node "
            "and features."
        ),
    ] = None
    season: Annotated[
        list[str] | None,
        _model(
            "Learn a series that `forecast` and `update` go on with: a period in rows whose season is in the mean, or "
            "auto. May be repeated. Takes --inputs time.",
            metavar="N|auto",
        ),
    ] = None
    kernel: Annotated[
        str,
        _model(
            f"Graph kernel: {', '.join([AUTO, *KERNELS])}; auto tries several models and stacks them.", metavar="NAME"
        ),
    ] = AUTO
    degree: Annotated[str | None, _model("Degree of the polynomial: a number, or auto.", metavar="N|auto")] = None
    spectrum: SpectrumOption = "auto"
    device: Annotated[Literal["cpu", "cuda"] | None, _model("Where to compute on large graphs.")] = None
    likelihood: Annotated[
        str,
        _model("Likelihood of values by name, such as poisson for counts or student_t for outliers.", metavar="NAME"),
    ] = "gaussian"


@command("answers", "Predict signals, with intervals.")
class PredictCommand(TableCommand, WritingOptions, ObservationOptions):
    r"""Predict signals, with intervals or the standard deviation of what would be observed.

    Text is written as in the files that were given: separators, decimal commas, dates. Of a model of classes: the class
    of every node and the probability of each, in columns named after them.

    Example (the model is that of `spectralgp fit --help`):
      spectralgp predict model.sgp --signals files/later.csv \
        --level 0.9 --out predicted.csv
    """

    model: ModelFile
    out: Out
    signals: Annotated[
        Path | None,
        _file("Signals to go on from, for a model with lag:1: the signal after each row is predicted.", panel=None),
    ] = None
    inputs: Annotated[
        list[str] | None,
        _option(
            "Table of new inputs by their names at fit, or of times; lag:1 or time where the model's file does "
            "not say how its inputs were made.",
            metavar="FILE|lag:N|time",
        ),
    ] = None
    at: Annotated[
        list[str] | None, _option("Time to predict, for a model of time; may be repeated.", metavar="TIME")
    ] = None
    observed: Annotated[
        Path | None,
        _file(
            "What is known of the predicted signals themselves, with the same labels; empty cells are predicted.",
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


@command("answers", "Fill in empty cells, with intervals.")
class ImputeCommand(TableCommand, WritingOptions, ObservationOptions):
    r"""Fill in empty cells; what was observed stays as it is, with standard deviation zero.

    Text is written as in the file of the signals: separators, decimal commas, dates.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/holes.csv \
        --inputs time --out holes.sgp
      spectralgp impute holes.sgp --signals files/holes.csv \
        --level 0.9 --out filled.csv
    """

    model: ModelFile
    signals: Annotated[Path, _file(SIGNALS)]
    out: Out
    std: Std = None
    level: Level = None
    inputs: Inputs = None
    long: Long = False


@command("answers", "Score predictions of signals that the model has not seen.")
class ScoreCommand(TableCommand, ObservationOptions):
    """Score predictions of signals that the model has not seen; it says so if it has. Empty cells are skipped.

    Example (the model is that of `spectralgp fit --help`):
      spectralgp score model.sgp --signals files/later.csv
    """

    model: ModelFile
    signals: Annotated[Path, _file(SIGNALS)]
    inputs: Inputs = None
    level: Annotated[float, _share("Of the intervals whose coverage is measured.")] = 0.9
    as_json: AsJson = False


@command("learning", "Compare graph kernels with what people use instead.")
class CompareCommand(TableCommand, LearningOptions):
    r"""Compare graph kernels with each other and with what people use instead.

    Each is learnt from the first rows and scored on the last. Beside them stand node means, no change (with lag:1: the
    row before), ridge regression and, where cells are empty, neighbours on the graph and the iterative imputer. Where
    one of them is better, that is said first.

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
    held_out: Annotated[float, _model("Share of the signals to hold out: the last rows.", min=0.01, max=0.9)] = 0.2
    spectrum: SpectrumOption = "auto"
    as_json: AsJson = False


@command("forecasting", "Forecast the rows after the last one of a series.")
class ForecastCommand(Command, WritingOptions):
    r"""Forecast the rows after the last one of a series, with intervals.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs time --season auto --out series.sgp
      spectralgp forecast series.sgp --steps 3 --level 0.9 --out forecast.csv
    """

    model: ModelFile
    out: Annotated[Path, _new_file("Table for the forecast, CSV or Parquet.")]
    steps: Annotated[int, _option("How many rows ahead.", min=1)] = 1
    std: Table = None
    lower: Table = None
    upper: Table = None
    level: Annotated[
        float | None,
        _share(
            "Probability of the interval of --lower and --upper (0.9); without them its ends are written beside each "
            "node (NODE lower, NODE upper), rounded."
        ),
    ] = None
    inputs: Annotated[
        Path | None, _file("Columns that the series was fitted with beside time, one row per step.", panel=None)
    ] = None
    date_format: DateFormat = None


@command("forecasting", "Take new rows into a model, without learning it anew.")
class UpdateCommand(TableCommand, WritingOptions, ObservationOptions):
    r"""Take rows that have come since into a model: nothing is learnt anew.

    A series goes on from the last of them; rows up to its last one are left out. A model of signals is conditioned on
    them too; with time or lag:1 as inputs, rows that it has seen are left out.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs time --season auto --out series.sgp
      spectralgp update series.sgp --signals files/later.csv --scores odd.csv
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs lag:1 --out model.sgp --force
      spectralgp update model.sgp --signals files/later.csv --out later.sgp
    """

    model: ModelFile
    signals: Annotated[Path, _file("Rows to take in; those that the model knows are left out.", panel=None)]
    out: Annotated[Path | None, _new_file("File for the updated model; the model itself if not given.")] = None
    inputs: Inputs = None
    scores: Annotated[Path | None, _new_file("Table for how odd each new value of a series was, in deviations.")] = None


@command("pictures", "Draw nodes over time, a map, or filters.")
class PlotCommand(TableCommand, WritingOptions):
    r"""Draw what a model makes of signals: nodes over time, a map or, without either, the learnt filters.

    A node over time has what was observed and what fills its empty cells, with intervals; without empty cells, what is
    predicted for it. Of a series it has the forecast.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --points files/states.csv --neighbors 5 \
        --signals files/holes.csv --inputs time --out holes.sgp
      spectralgp plot holes.sgp --map --row 1975 \
        --signals files/holes.csv --out map.html
      spectralgp plot holes.sgp --node Maine --node Texas \
        --signals files/holes.csv --out nodes.png
    """

    model: ModelFile
    out: Annotated[Path, _new_file("Picture (.png, .svg, .pdf) or page (.html).")]
    node: Annotated[list[str] | None, _option("Draw a node over time; may be repeated.", metavar="NAME")] = None
    draw_map: Annotated[bool, typer.Option("--map", help="Draw a row of the signals on the graph.")] = False
    row: Annotated[str | None, _option("Row of the map, by its label; the last if not given.", metavar="LABEL")] = None
    signals: Annotated[
        Path | None,
        _file("Signals to draw: what was observed and, in empty cells, what the model fills in.", panel=None),
    ] = None
    inputs: Inputs = None
    steps: Annotated[int | None, _option("Rows ahead, of a series (12; on a map 1).", min=1)] = None
    level: Annotated[float, _share("Probability of intervals.")] = 0.9
    title: Title = None


@command("answers", "Write a page about a model.")
class ReportCommand(TableCommand, WritingOptions):
    r"""Write a page about a model, or a series: how well it predicts, beside what one might use instead.

    Then a map, a node over time, what neighbours share, calibration and filters. It is one HTML file that needs no
    network.

    Example (the model is that of `spectralgp fit --help`):
      spectralgp report model.sgp --signals files/later.csv --out report.html
    """

    model: ModelFile
    out: Annotated[Path, _new_file("The page.", metavar="FILE.html")]
    signals: Annotated[
        Path | None,
        _file(
            "Signals to judge the model by; leave-one-out if not given. Of a series: rows to show before the forecast, "
            "and later ones to judge it by.",
            panel=None,
        ),
    ] = None
    inputs: Inputs = None
    steps: Annotated[int, _option("How many rows ahead, of a series.", min=1)] = 24
    title: Title = None
    aspect: Annotated[
        float | None,
        _option("Length of a unit upwards on the map, to one sideways; 1 / cos(latitude) for degrees.", min=0.1),
    ] = None


@command("showcase", "Fill in sensors that failed, and compare with other methods.")
class DemoCommand(Command):
    """Fill in what sensors that failed did not measure; compare with other methods, and save a picture.

    Example:
      spectralgp demo --out pictures
    """

    out: Annotated[Path, _option("Folder for the picture; made if need be.", file_okay=False)] = Path("demo-output")
    as_json: AsJson = False


@command("showcase", "Write files to try the other commands with.")
class ExampleCommand(Command):
    """Write files to try the other commands with: incomes of 48 US states, in per cent above the typical state.

    edges.csv (who borders whom), states.csv (where states are), incomes.csv (1960 to 1989), later.csv (1989 to 2009, to
    predict) and holes.csv (1960 to 2009, a tenth of the cells empty).

    Example:
      spectralgp example --out files
    """

    out: Annotated[Path, _option("Folder for the files; made if need be.", file_okay=False)] = Path("files")
    force: Force = False


@command("installation", "Say which versions, threads and devices there are.")
class InfoCommand(Command):
    """Say which versions, threads and devices there are.

    Example:
      spectralgp info
    """

    as_json: AsJson = False
