"""`fit` and `compare`: from files to a model, and to a table of graph kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer
from rich.console import Console

import spectralgp
from spectralgp import Chebyshev, GraphGPClassifier, GraphGPRegressor, GraphKernel, Stacking
from spectralgp._basics.checks import Array
from spectralgp._basics.progress import progress_bar
from spectralgp.cli import files
from spectralgp.cli.app import AsJson, Column, Debug, Force, answering, print_json, table_of, to_be_written
from spectralgp.cli.forecasting import Season, series_of
from spectralgp.scores import calibration_of, observed_and_predicted, pit

if TYPE_CHECKING:
    import pandas as pd

    from spectralgp.baselines import Performance

AUTO = "auto"
KERNELS: dict[str, tuple[Callable[..., GraphKernel], str | None]] = {  # by name; what a number behind it sets
    "polynomial": (spectralgp.Polynomial, "degree"),
    "identity": (spectralgp.Identity, None),
    "global-filter": (spectralgp.GlobalFilter, None),
    "local-average": (spectralgp.LocalAverage, None),
    "pseudo-inverse": (spectralgp.PseudoInverse, None),
    "regularized-laplacian": (spectralgp.RegularizedLaplacian, None),
    "diffusion": (spectralgp.Diffusion, None),
    "random-walk": (spectralgp.RandomWalk, "steps"),
    "cosine": (spectralgp.Cosine, None),
    "matern": (spectralgp.Matern, "nu"),
}
COMPARED = "identity,regularized-laplacian,diffusion,matern,polynomial:2,polynomial:auto,auto"


def kernel_named(text: str) -> GraphKernel | None:
    """A graph kernel such as "diffusion", "polynomial:3" or "polynomial:auto"; None for "auto", the default."""
    name, _, setting = text.strip().lower().partition(":")
    if name == AUTO and not setting:
        return None
    if name not in KERNELS:
        raise typer.BadParameter(f"kernel must be one of {', '.join([AUTO, *KERNELS])}; got {text!r}.")
    make, parameter = KERNELS[name]
    if not setting:
        return make("auto") if name == "polynomial" else make()
    if parameter is None:
        raise typer.BadParameter(f"kernel {name} must stand alone, without a number; got {text!r}.")
    try:
        value: Any = setting if setting == "auto" else float(setting) if parameter == "nu" else int(setting)
        return make(value)
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(
            f"kernel must be such as {name}:2, the number being its {parameter}; got {text!r}."
        ) from error


def _model_option(text: str, **options: Any) -> Any:
    return typer.Option(help=text, rich_help_panel="Model", **options)


def _not_zero(jobs: int | None) -> int | None:
    if jobs == 0:
        raise typer.BadParameter("--jobs must be a number of threads, or -1 for all cores; got 0.")
    return jobs


KernelName = Annotated[
    str,
    _model_option(
        f"Graph kernel: {', '.join([AUTO, *KERNELS])}; auto tries several models and stacks them.", metavar="NAME"
    ),
]
Degree = Annotated[str | None, _model_option("Degree of the polynomial: a number, or auto.", metavar="N|auto")]
SpectrumOption = Annotated[
    Literal["auto", "exact", "chebyshev"], _model_option("Eigenvectors, or moments for large graphs.")
]
LikelihoodOption = Annotated[
    Literal["gaussian", "poisson", "negative_binomial", "bernoulli", "binomial", "student_t"],
    _model_option("How values are observed: counts, classes of two, proportions, outliers."),
]
DeviceOption = Annotated[Literal["cpu", "cuda"] | None, _model_option("Where to compute on large graphs.")]
Seed = Annotated[int, _model_option("Of folds and draws.", min=0, max=2**32 - 1)]
Jobs = Annotated[
    int | None, _model_option("Threads that learn folds side by side; -1 for all cores.", callback=_not_zero)
]


@answering
def fit(
    out: Annotated[Path, typer.Option(help="File for the model.", dir_okay=False, metavar="MODEL")],
    signals: Annotated[Path | None, files.file_option(files.SIGNALS)] = None,
    classes: Annotated[
        Path | None,
        files.file_option(
            "Instead of signals, classes of some nodes: a table of node and class. With --inputs FILE, a table of node "
            "and features."
        ),
    ] = None,
    graph: files.GraphFile = None,
    points: files.Points = None,
    neighbors: files.Neighbors = None,
    radius: files.Radius = None,
    inputs: files.Inputs = None,
    layout: files.Layout = "auto",
    nodes: files.Nodes = "exact",
    date_format: files.DateFormat = None,
    season: Season = None,
    kernel: KernelName = AUTO,
    degree: Degree = None,
    spectrum: SpectrumOption = "auto",
    device: DeviceOption = None,
    likelihood: LikelihoodOption = "gaussian",
    exposure: files.Exposure = None,
    trials: files.Trials = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    force: Force = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    r"""Learn a model from a graph and signals, or classes of some nodes, in files, and save it.

    Empty cells are what was not observed. Nodes are matched by name across files.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs lag:1 --out model.sgp
    """
    to_be_written(out, force=force)
    chosen = kernel_named(_with_degree(kernel, degree))
    if (signals is None) == (classes is None):
        got = "neither" if signals is None else "both"
        raise typer.BadParameter(f"one of --signals and --classes must be given; got {got}.")
    if classes is not None:
        left = {"--kernel": chosen, "--season": season, "--exposure": exposure, "--trials": trials, "--device": device}
        left["--likelihood"] = likelihood if likelihood != "gaussian" else None
        given = [name for name, value in left.items() if value]
        if given:
            raise typer.BadParameter(f"{given[0]} must be left out with --classes, whose model has its own.")
        _fit_classes(files.graph_of(graph, points, neighbors, radius), classes, inputs, out, spectrum, as_json)
        return
    assert signals is not None
    reader = files.Reader(layout, nodes, date_format)
    data = files.read_data(graph, points, neighbors, radius, signals, inputs, reader)
    if season:
        _fit_series(data, inputs, season, out, chosen, as_json)
        return
    if device == "cuda" and spectrum == "exact":
        raise typer.BadParameter("--device must be cpu where the spectrum is exact, which is found on the host.")
    settings = Chebyshev(device="cuda") if device == "cuda" else spectrum
    model = GraphGPRegressor(
        data.graph,
        chosen,
        random_state=seed,
        stacking=Stacking(n_jobs=jobs),
        spectrum=settings,
        verbose=1,
        likelihood=likelihood,
    )
    beside = files.beside_of({"exposure": exposure, "trials": trials}, reader, data.graph, data.signals.index)
    start = perf_counter()
    with files.naming(signals):
        model.fit(data.inputs, data.signals, **beside)
    model.input_recipe_ = data.recipe
    seconds = perf_counter() - start
    model.save(out)
    if as_json:
        print_json(_fitted(model, data, out, seconds))
        return
    typer.echo(model.summary().rstrip())
    typer.echo(f"\nLog evidence {model.log_marginal_likelihood_:.2f} nats; {seconds:.1f} s.\nSaved as {out}.")


def _fit_classes(graph: Any, path: Path, inputs: list[str] | None, out: Path, spectrum: Any, as_json: bool) -> None:
    """Learn classes of nodes and save them."""
    parts = files.input_parts(inputs)
    if parts.time or parts.lag is not None:
        raise typer.BadParameter("--inputs must be a table of node and features with --classes, which have no time.")
    columns = files.node_table(path, graph, "its class")
    if len(columns) > 1:
        raise typer.BadParameter(f"--classes must have two columns, node and class; got {len(columns) + 1}.")
    features = None if parts.table is None else _node_features(parts.table, graph)
    model, start = GraphGPClassifier(graph, spectrum=spectrum, verbose=1), perf_counter()
    with files.naming(path):
        model.fit(features, next(iter(columns.values())))
    seconds = perf_counter() - start
    model.save(out)
    if as_json:
        answer = {"model": out, "n_nodes": graph.n_nodes, "n_edges": graph.n_edges, "n_labels": model.n_labels_}
        learnt = {"classes": model.classes_, "weights": model.kernel_weights_, "temperature": model.temperature_}
        print_json({**answer, **learnt, "seconds": seconds})
        return
    typer.echo(model.summary().rstrip())
    typer.echo(f"\n{seconds:.1f} s.\nSaved as {out}.")


def _node_features(path: Path, graph: Any) -> Any:
    """Features of all nodes from a table."""
    columns = files.node_table(path, graph, "its features")
    names = range(graph.n_nodes) if graph.names is None else graph.names
    values = np.empty((graph.n_nodes, len(columns)))
    for place, (column, cells) in enumerate(columns.items()):
        for node, (name, cell) in enumerate(zip(names, cells, strict=True)):
            try:
                values[node, place] = float(cell)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"{path} must have a number for every node in column {column!r}; got {cell!r} for {name!r}. Fill "
                    "it in, or leave the column out."
                ) from error
    return values


def _fit_series(
    data: files.Data, inputs: list[str] | None, season: list[str], out: Path, kernel: Any, as_json: bool
) -> None:
    """Learn a series and save it."""
    if kernel is not None:
        raise typer.BadParameter("--kernel and --degree must be left out with --season: a series has its own.")
    model, exogenous = series_of(data, inputs, season)
    start = perf_counter()
    model.fit(data.signals, exogenous)
    seconds = perf_counter() - start
    model.save(out)
    if as_json:
        backtest = model.backtest_
        scores = (
            {} if backtest is None else {"horizons": backtest.horizons, "rmse": backtest.rmse, "crps": backtest.crps}
        )
        answer = {"model": out, "n_nodes": data.graph.n_nodes, "n_edges": data.graph.n_edges}
        known = {
            "n_steps": model.n_steps_,
            "weights": model.weights_,
            "seasons": [one.period for one in model.seasons_],
        }
        print_json({**answer, **known, "backtest": scores, "seconds": seconds})
        return
    typer.echo(model.summary().rstrip())
    typer.echo(f"\n{seconds:.1f} s.\nSaved as {out}.")


def _with_degree(kernel: str, degree: str | None) -> str:
    if degree is None:
        return kernel
    if kernel not in (AUTO, "polynomial"):
        raise typer.BadParameter(f"--degree must be left out unless the kernel is polynomial; got it with {kernel}.")
    return f"polynomial:{degree}"


def _fitted(model: GraphGPRegressor, data: files.Data, out: Path, seconds: float) -> dict[str, Any]:
    fits = [
        {
            "kernel": fit.model.graph_kernel.label,
            "weight": weight,
            "converged": fit.converged,
            "message": fit.message,
            "method": fit.method,
        }
        for fit, weight in zip(model.fits_, model.kernel_weights_, strict=True)
    ]
    return {
        "model": out,
        "n_nodes": data.graph.n_nodes,
        "n_edges": data.graph.n_edges,
        "n_signals": len(data.signals),
        "n_missing": int(data.signals.isna().to_numpy().sum()),
        "inputs": [] if data.inputs is None else list(data.inputs.columns),
        "log_evidence": model.log_marginal_likelihood_,
        "noise_variance": model.noise_variance_,
        "fits": fits,
        "seconds": seconds,
    }


@dataclass(frozen=True)
class Compared:
    """How a graph kernel, or a baseline, did on held-out signals or hidden values, in nats."""

    kernel: str
    log_evidence: float | None  # of the signals learnt from, a total; None for what is no model of ours
    leave_one_out: float | None  # mean log density of a signal given all others; None without a closed form
    held_out: float  # mean log density of a held-out signal, or of a hidden value
    held_out_error: float  # and its standard error over the signals, NaN for one
    rmse: float
    crps: float
    coverage: float  # of 90% intervals
    coverages: dict[str, float]  # of intervals of 50, 80 and 90%
    seconds: float | None  # to fit

    @classmethod
    def of(
        cls, found: Performance, evidence: float | None = None, left: float | None = None, seconds: float | None = None
    ) -> Compared:
        """What the table has of a performance."""
        densities = found.log_densities[~np.isnan(found.log_densities)]
        error = float(np.std(densities, ddof=1) / np.sqrt(densities.size)) if densities.size > 1 else float("nan")
        inside = {f"{level:.0%}": share for level, share in found.coverages.items()}
        scores = (found.log_density, error, found.rmse, found.crps, inside["90%"], inside)
        return cls(found.name, evidence, left, *scores, seconds)


COLUMNS = {
    "log\nevidence": Column("{row.log_evidence:.1f}", "log_evidence", True),
    "leave-\none-out": Column("{row.leave_one_out:.2f}", "leave_one_out", True),
    "held-out\n(s.e.)": Column("{row.held_out:.2f} ({row.held_out_error:.2f})", "held_out", True),
    "\nRMSE": Column("{row.rmse:.4g}", "rmse", False),
    "in\n90%": Column("{row.coverage:.1%}", "coverage", None),
}
FILLING_COLUMNS = {
    "log density\nper value": Column("{row.held_out:.2f}", "held_out", True),
    "\nRMSE": Column("{row.rmse:.4g}", "rmse", False),
    "\nCRPS": Column("{row.crps:.4g}", "crps", False),
    "in\n90%": Column("{row.coverage:.1%}", "coverage", None),
}


@answering
def compare(
    signals: files.Signals,
    graph: files.GraphFile = None,
    points: files.Points = None,
    neighbors: files.Neighbors = None,
    radius: files.Radius = None,
    inputs: files.Inputs = None,
    layout: files.Layout = "auto",
    nodes: files.Nodes = "exact",
    date_format: files.DateFormat = None,
    kernels: Annotated[
        str,
        _model_option(
            f"Kernels to compare, separated by commas ({COMPARED.replace(',', ', ')}).",
            show_default=False,
            metavar="NAMES",
        ),
    ] = COMPARED,
    held_out: Annotated[
        float, _model_option("Share of the signals to hold out: the last rows.", min=0.01, max=0.9)
    ] = 0.2,
    spectrum: SpectrumOption = "auto",
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    r"""Compare graph kernels with each other and with what people use instead.

    Each is learnt from the first rows and scored on the last. Beside them stand node means, no change (with lag:1: the
    row before), ridge regression and, where cells are empty, neighbours on the graph and the iterative imputer. Where
    one of them is better, that is said first.

    Example (the files are those of `spectralgp example`):
      spectralgp compare --graph files/edges.csv --signals files/incomes.csv \
        --inputs lag:1 --kernels identity,diffusion,polynomial:2
    """
    named = {name: kernel_named(name) for name in dict.fromkeys(part.strip() for part in kernels.split(",")) if name}
    reader = files.Reader(layout, nodes, date_format)
    data = files.read_data(graph, points, neighbors, radius, signals, inputs, reader)
    n_held_out = max(round(held_out * len(data.signals)), 1)
    if len(data.signals) - n_held_out < 2:
        raise ValueError(
            f"{signals} must have at least 2 signals beside those held out, {n_held_out}; got {len(data.signals)}. Add "
            "rows."
        )
    rows: list[Compared] = []
    ours: tuple[GraphGPRegressor, Performance, Array] | None = (
        None  # auto, or the best: what is compared with baselines
    )
    with progress_bar("compare", len(named), show=True) as progress:
        for name, kernel in named.items():
            stacking = Stacking(n_jobs=jobs)
            model = GraphGPRegressor(data.graph, kernel, random_state=seed, stacking=stacking, spectrum=spectrum)
            try:
                row, found, transformed = _compared(name, model, data, n_held_out)
                rows.append(row)
                if ours is None or name == AUTO or (ours[1].name != AUTO and row.held_out > ours[1].log_density):
                    ours = model, found, transformed
            except ValueError as error:  # such as a kernel that a large graph cannot have
                typer.echo(f"note: {name} is left out: {' '.join(str(error).split())}", err=True)
            if progress is not None:
                progress(name)
    if ours is None:
        raise ValueError("kernels must hold one that can be learnt; got none. The notes say why.")
    from spectralgp.report import words

    n_learnt = len(data.signals) - n_held_out
    model, performance, transformed = ours
    others, filled = _baselines(data, n_held_out), _fillings(model, performance.name, data, n_held_out)
    named_ours = [replace(one, name=f"learnt model ({one.name})") for one in [performance, *filled[:1]]]
    said = [
        *words.baseline_words([named_ours[0], *others], words.SOURCES["held out"]["scored"]),
        *words.baseline_words([*named_ours[1:], *filled[1:]], words.FILLING),
        *(f"{performance.name}: {one}" for one in words.calibration_words(calibration_of(transformed))),
    ]
    baselines, fillings = [Compared.of(one) for one in others], [Compared.of(one) for one in filled]
    if as_json:
        known = {"n_signals": n_learnt, "n_held_out": n_held_out, "kernels": [asdict(row) for row in rows]}
        more = {"baselines": [asdict(row) for row in baselines], "fillings": [asdict(row) for row in fillings]}
        print_json({**known, **more, "words": said})
        return
    console = Console()
    for sentence in said:
        console.print(sentence, highlight=False, markup=False)
    console.print(table_of([*rows, *baselines], COLUMNS))
    if fillings:
        console.print(table_of(fillings, FILLING_COLUMNS, title="\nfilling in"))
    hidden = (
        f" Filling in: {filled[0].n_values} observed values of the held-out signals were hidden, in runs like those of "
        "the empty cells."
        if filled
        else ""
    )
    console.print(
        f"Learnt from {n_learnt} signals; the last {n_held_out} are held out. Log evidence: total in nats. Leave-one-"
        "out and held-out: log density in nats per signal. Larger is better for all three. RMSE: of held-out values. "
        "The last rows are what any model should beat. In 90%: share of held-out values inside their 90% interval."
        f"{hidden} The best numbers are bold.",
        style="dim",
        highlight=False,
    )


def _compared(
    name: str, model: GraphGPRegressor, data: files.Data, n_held_out: int
) -> tuple[Compared, Performance, Array]:
    """A kernel's row of the table, how it did signal by signal, and the PIT of every value."""
    from spectralgp.baselines import Performance

    start = perf_counter()
    model.fit(_rows(data.inputs, slice(None, -n_held_out)), data.signals[:-n_held_out])
    seconds = perf_counter() - start
    inputs, truth = _rows(data.inputs, slice(-n_held_out, None)), data.signals[-n_held_out:]
    predicted = observed_and_predicted(model, inputs, truth)
    densities = np.asarray(model.log_predictive_density(inputs, truth, joint=False))
    found = Performance.of(name, *predicted, densities)
    try:
        left_out: float | None = float(np.nanmean(model.leave_one_out("signal").log_density))
    except ValueError:  # it has no closed form where a large graph's signals have holes
        left_out = None
    return Compared.of(found, model.log_marginal_likelihood_, left_out, seconds), found, pit(*predicted)


def _baselines(data: files.Data, n_held_out: int) -> list[Performance]:
    """What one might use instead, on the same held-out signals."""
    from spectralgp.baselines import baselines_of, forecasts

    inputs, signals = _features(data), data.signals.to_numpy(dtype=float)
    names = [] if data.inputs is None else list(data.inputs.columns)
    columns = [names.index(str(name)) if str(name) in names else -1 for name in data.signals.columns]
    has_all = data.inputs is not None and min(columns) >= 0
    training, new = ((inputs[rows], signals[rows]) for rows in (slice(None, -n_held_out), slice(-n_held_out, None)))
    factor = None if data.recipe.lag is None else 1.0
    return forecasts(baselines_of(*training, np.array(columns) if has_all else None, factor), training, new)


def _fillings(model: GraphGPRegressor, name: str, data: files.Data, n_held_out: int) -> list[Performance]:
    """Ours and others at values of the held-out signals that are hidden; none where no cell is empty."""
    from spectralgp.baselines import Performance, fillings, hidden_at_once

    names, rows = list(data.graph.names or data.signals.columns), slice(-n_held_out, None)
    signals = data.signals[names].to_numpy(dtype=float)  # in the order of the graph
    if not np.isnan(signals).any():
        return []
    out = hidden_at_once(signals, rows)
    if not out.any():
        return []
    partial = data.signals[names][rows].mask(out[rows])
    inputs = np.empty((n_held_out, 0)) if data.inputs is None else data.inputs[rows]
    predicted = model.predict(inputs, return_std=True, include_noise=True, observed=partial)
    mean, std = np.zeros((2, *signals.shape))
    mean[rows], std[rows] = (one[names] for one in predicted)
    ours = Performance.of(name, np.where(out, signals, np.nan), mean, std)
    return [ours, *fillings(model.graph_, _features(data), signals, out)]


def _features(data: files.Data) -> Array:
    """Inputs as an array; without columns if there are none."""
    return np.empty((len(data.signals), 0)) if data.inputs is None else data.inputs.to_numpy(dtype=float)


def _rows(table: pd.DataFrame | None, rows: slice) -> pd.DataFrame | None:
    return None if table is None else table[rows]
