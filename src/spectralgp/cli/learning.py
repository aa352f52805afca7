"""`fit` and `compare`: from files to a model, and to a table of graph kernels."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import typer
from rich.console import Console

import spectralgp
from spectralgp import Chebyshev, GraphGPClassifier, GraphGPForecaster, GraphGPRegressor, GraphKernel, Stacking
from spectralgp._basics.checks import Array, Mask
from spectralgp._basics.progress import progress_bar
from spectralgp.cli import files
from spectralgp.cli.app import ResultColumn, print_json, say, table_of, to_be_written
from spectralgp.cli.commands import AUTO, KERNELS, CompareCommand, FitCommand
from spectralgp.graphs import GraphBase
from spectralgp.learning.baselines import PredictionErrors, baselines_of, fillings, forecasts
from spectralgp.scores import calibration_of, observed_and_predicted, pit
from spectralgp.show.report import words

Fitted = GraphGPRegressor | GraphGPForecaster | GraphGPClassifier


def kernel_named(text: str) -> GraphKernel | None:
    """A graph kernel such as "diffusion", "polynomial:3" or "polynomial:auto"; None for "auto", the default."""
    name, _, setting = text.strip().lower().partition(":")
    if name == AUTO and not setting:
        return None
    if name not in KERNELS:
        raise typer.BadParameter(f"kernel must be one of {', '.join([AUTO, *KERNELS])}; got {text!r}.")
    make, parameter = getattr(spectralgp, name.title().replace("-", "")), KERNELS[name]
    if not setting:
        return make("auto") if name == "polynomial" else make()
    if parameter is None:
        raise typer.BadParameter(f"kernel {name} must stand alone, without a number; got {text!r}.")
    try:
        value: Any = setting if setting == "auto" else float(setting) if parameter == "nu" else int(setting)
        kernel: GraphKernel = make(value)
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(
            f"kernel must be such as {name}:2, the number being its {parameter}; got {text!r}."
        ) from error
    return kernel


def _with_degree(kernel: str, degree: str | None) -> str:
    if degree is None:
        return kernel
    if kernel not in (AUTO, "polynomial"):
        raise typer.BadParameter(f"--degree must be left out unless the kernel is polynomial; got it with {kernel}.")
    return f"polynomial:{degree}"


def fit(asked: FitCommand) -> None:
    """Learn a model from files, and save it."""
    to_be_written(asked.out, force=asked.force)
    kernel = kernel_named(_with_degree(asked.kernel, asked.degree))
    path = asked.classes if asked.signals is None else asked.signals
    if path is None or None not in (asked.signals, asked.classes):
        got = "neither" if path is None else "both"
        raise typer.BadParameter(f"one of --signals and --classes must be given; got {got}.")
    data, beside, evidence = None, dict[str, Any](), ""
    model: Fitted
    if asked.signals is None:
        model, given = _of_classes(asked, kernel, path)
    else:
        data = files.read_data(asked, path)
        if asked.season:
            model, given = _of_series(asked, kernel, data)
        else:
            model, given = _of_signals(asked, kernel, data)
            beside = files.beside_of(asked, data.graph, data.signals.index)
    start = perf_counter()
    with files.naming(path):
        model.fit(*given, **beside)
    seconds = perf_counter() - start
    if isinstance(model, GraphGPRegressor) and data is not None:
        model.input_recipe_, evidence = data.recipe, f"Log evidence {model.log_marginal_likelihood_:.2f} nats; "
    model.save(asked.out)
    known = {"model": asked.out, "n_nodes": model.graph_.n_nodes, "n_edges": model.graph_.n_edges}
    said = f"{model.summary().rstrip()}\n\n{evidence}{seconds:.1f} s.\nSaved as {asked.out}."
    say(asked.as_json, {**known, **_learnt(model, data), "seconds": seconds}, said)


def _of_signals(
    asked: FitCommand, kernel: GraphKernel | None, data: files.CommandData
) -> tuple[GraphGPRegressor, tuple[Any, ...]]:
    """A model of signals, and what it is fitted to."""
    if asked.device == "cuda" and asked.spectrum == "exact":
        raise typer.BadParameter("--device must be cpu where the spectrum is exact, which is found on the host.")
    settings = Chebyshev(device="cuda") if asked.device == "cuda" else asked.spectrum
    model = GraphGPRegressor(
        data.graph,
        Stacking(kernel, n_jobs=asked.jobs),
        random_state=asked.seed,
        spectrum=settings,
        verbose=1,
        likelihood=asked.likelihood,
    )
    return model, (data.inputs, data.signals)


def _of_series(
    asked: FitCommand, kernel: GraphKernel | None, data: files.CommandData
) -> tuple[GraphGPForecaster, tuple[Any, ...]]:
    """A model of a series, and what it is fitted to: rows, and columns beside time."""
    parts, season = files.input_parts(asked.inputs), asked.season or []
    if kernel is not None:
        raise typer.BadParameter("--kernel and --degree must be left out with --season: a series has its own.")
    if not parts.time or parts.lag is not None:
        raise typer.BadParameter("--season must come with --inputs time, and without lag: a series goes on by itself.")
    try:
        seasons: Any = AUTO if season == [AUTO] else tuple(float(one) for one in season)
    except ValueError as error:
        raise typer.BadParameter(f"--season must be auto or periods in rows; got {' and '.join(season)}.") from error
    columns = list(data.recipe.columns)
    exogenous = data.inputs[columns] if data.inputs is not None and columns else None
    return GraphGPForecaster(data.graph, seasons=seasons, verbose=1), (data.signals, exogenous)


def _of_classes(asked: FitCommand, kernel: GraphKernel | None, path: Path) -> tuple[GraphGPClassifier, tuple[Any, ...]]:
    """A model of classes of nodes, and what it is fitted to: features, and labels."""
    left = {"--kernel": kernel, "--season": asked.season, "--exposure": asked.exposure, "--trials": asked.trials}
    left |= {"--device": asked.device, "--likelihood": asked.likelihood if asked.likelihood != "gaussian" else None}
    typed = [name for name, value in left.items() if value]
    if typed:
        raise typer.BadParameter(f"{typed[0]} must be left out with --classes, whose model has its own.")
    graph, parts = files.graph_of(asked), files.input_parts(asked.inputs)
    if parts.time or parts.lag is not None:
        raise typer.BadParameter("--inputs must be a table of node and features with --classes, which have no time.")
    columns = files.node_table(path, graph, "its class")
    if len(columns) > 1:
        raise typer.BadParameter(f"--classes must have two columns, node and class; got {len(columns) + 1}.")
    features = None if parts.table is None else _node_features(parts.table, graph)
    return GraphGPClassifier(graph, spectrum=asked.spectrum, verbose=1), (features, next(iter(columns.values())))


def _node_features(path: Path, graph: GraphBase) -> Array:
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


def _learnt(model: Fitted, data: files.CommandData | None) -> dict[str, Any]:
    """What was learnt, for machines."""
    if isinstance(model, GraphGPClassifier):
        learnt = {"weights": model.kernel_weights_, "temperature": model.temperature_}
        return {"n_labels": model.n_labels_, "classes": model.classes_, **learnt}
    if isinstance(model, GraphGPForecaster):
        found, seasons = model.backtest_, [one.period for one in model.seasons_]
        scores = {} if found is None else {"horizons": found.horizons, "rmse": found.rmse, "crps": found.crps}
        return {"n_steps": model.n_steps_, "weights": model.weights_, "seasons": seasons, "backtest": scores}
    assert data is not None
    fits = []
    for fit, weight in zip(model.fits_, model.kernel_weights_, strict=True):
        said = {name: getattr(fit, name) for name in ("converged", "message", "method")}
        fits.append({"kernel": fit.model.graph_kernel.label, "weight": weight, **said})
    return {
        "n_signals": len(data.signals),
        "n_missing": int(data.signals.isna().to_numpy().sum()),
        "inputs": [] if data.inputs is None else list(data.inputs.columns),
        "log_evidence": model.log_marginal_likelihood_,
        "noise_variance": model.noise_variance_,
        "fits": fits,
    }


@dataclass(frozen=True)
class ComparisonRow:
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
        cls,
        found: PredictionErrors,
        evidence: float | None = None,
        left: float | None = None,
        seconds: float | None = None,
    ) -> ComparisonRow:
        """What the table has of a performance."""
        inside = {f"{level:.0%}": share for level, share in found.coverages.items()}
        scores = (found.log_density, found.log_density_error, found.rmse, found.crps, inside["90%"], inside)
        return cls(found.name, evidence, left, *scores, seconds)


COLUMNS = {
    "log\nevidence": ResultColumn("{row.log_evidence:.1f}", "log_evidence", True),
    "leave-\none-out": ResultColumn("{row.leave_one_out:.2f}", "leave_one_out", True),
    "held-out\n(s.e.)": ResultColumn("{row.held_out:.2f} ({row.held_out_error:.2f})", "held_out", True),
    "\nRMSE": ResultColumn("{row.rmse:.4g}", "rmse", False),
    "in\n90%": ResultColumn("{row.coverage:.1%}", "coverage", None),
}
FILLING_COLUMNS = {
    "log density\nper value": ResultColumn("{row.held_out:.2f}", "held_out", True),
    "\nRMSE": ResultColumn("{row.rmse:.4g}", "rmse", False),
    "\nCRPS": ResultColumn("{row.crps:.4g}", "crps", False),
    "in\n90%": ResultColumn("{row.coverage:.1%}", "coverage", None),
}


def compare(asked: CompareCommand) -> None:
    """Compare graph kernels with each other and with baselines."""
    names = dict.fromkeys(part.strip() for part in asked.kernels.split(","))
    named = {name: kernel_named(name) for name in names if name}
    data = files.read_data(asked, asked.signals)
    n_held_out = max(round(asked.held_out * len(data.signals)), 1)
    if len(data.signals) - n_held_out < 2:
        raise ValueError(
            f"{asked.signals} must have at least 2 signals beside those held out, {n_held_out}; got "
            f"{len(data.signals)}. Add rows."
        )
    training, new = data.part(slice(None, -n_held_out)), data.part(slice(-n_held_out, None))
    rows: list[ComparisonRow] = []
    ours: tuple[GraphGPRegressor, PredictionErrors, Array] | None = None  # auto, or the best: compared with baselines
    with progress_bar("compare", len(named), show=True) as progress:
        for name, kernel in named.items():
            stacking = Stacking(kernel, n_jobs=asked.jobs)
            model = GraphGPRegressor(data.graph, stacking, random_state=asked.seed, spectrum=asked.spectrum)
            try:
                row, found, transformed = _compared(name, model, training, new)
                rows.append(row)
                if ours is None or name == AUTO or (ours[1].name != AUTO and row.held_out > ours[1].log_density):
                    ours = model, found, transformed
            except ValueError as error:  # such as a kernel that a large graph cannot have
                typer.echo(f"note: {name} is left out: {' '.join(str(error).split())}", err=True)
            if progress is not None:
                progress(name)
    if ours is None:
        raise ValueError("kernels must hold one that can be learnt; got none. The notes say why.")
    n_learnt = len(training.signals)
    model, performance, transformed = ours
    others, filled = _baselines(training, new), _fillings(model, performance.name, data, new)
    named_ours = [replace(one, name=f"learnt model ({one.name})") for one in [performance, *filled[:1]]]
    said = [
        *words.baseline_words([named_ours[0], *others], words.SOURCES["held out"]["scored"]),
        *words.baseline_words([*named_ours[1:], *filled[1:]], words.FILLING),
        *(f"{performance.name}: {one}" for one in words.calibration_words(calibration_of(transformed))),
    ]
    tables = {
        "kernels": rows,
        "baselines": list(map(ComparisonRow.of, others)),
        "fillings": list(map(ComparisonRow.of, filled)),
    }
    if asked.as_json:
        listed = {name: [asdict(row) for row in table] for name, table in tables.items()}
        print_json({"n_signals": n_learnt, "n_held_out": n_held_out, **listed, "words": said})
        return
    console = Console()
    for sentence in said:
        console.print(sentence, highlight=False, markup=False)
    console.print(table_of([*rows, *tables["baselines"]], COLUMNS))
    hidden = ""
    if filled:
        console.print(table_of(tables["fillings"], FILLING_COLUMNS, title="\nfilling in"))
        hidden = f" Filling in: {filled[0].n_values} observed values of the held-out signals were hidden, in runs like "
        hidden += "those of the empty cells."
    console.print(
        f"Learnt from {n_learnt} signals; the last {n_held_out} are held out. Log evidence: total in nats. Leave-one-"
        "out and held-out: log density in nats per signal. Larger is better for all three. RMSE: of held-out values. "
        "The last rows are what any model should beat. In 90%: share of held-out values inside their 90% interval."
        f"{hidden} The best numbers are bold.",
        style="dim",
        highlight=False,
    )


def _compared(
    name: str, model: GraphGPRegressor, training: files.CommandData, new: files.CommandData
) -> tuple[ComparisonRow, PredictionErrors, Array]:
    """A kernel's row of the table, how it did signal by signal, and the PIT of every value."""
    start = perf_counter()
    model.fit(training.inputs, training.signals)
    seconds = perf_counter() - start
    predicted = observed_and_predicted(model, new.inputs, new.signals)
    densities = np.asarray(model.log_predictive_density(new.inputs, new.signals, joint=False))
    found = PredictionErrors.of(name, *predicted, densities)
    try:
        left_out: float | None = float(np.nanmean(model.leave_one_out("signal").log_density))
    except ValueError:  # it has no closed form where a large graph's signals have holes
        left_out = None
    return ComparisonRow.of(found, model.log_marginal_likelihood_, left_out, seconds), found, pit(*predicted)


def _baselines(training: files.CommandData, new: files.CommandData) -> list[PredictionErrors]:
    """What one might use instead, on the same held-out signals."""
    names = [] if training.inputs is None else list(training.inputs.columns)
    nodes = [str(name) for name in training.signals.columns]
    columns = np.array([names.index(name) for name in nodes]) if set(nodes) <= set(names) else None
    pairs = [(one.features, one.signals.to_numpy(dtype=float)) for one in (training, new)]
    factor = None if training.recipe.lag is None else 1.0
    return forecasts(baselines_of(*pairs[0], columns, factor), *pairs)


def _fillings(
    model: GraphGPRegressor, name: str, data: files.CommandData, new: files.CommandData
) -> list[PredictionErrors]:
    """Ours and others at hidden values of the held-out signals, the last of all; none where no cell is empty."""
    names, rows = list(data.graph.names or data.signals.columns), slice(-len(new.signals), None)
    signals = data.signals[names].to_numpy(dtype=float)  # in the order of the graph

    def fill(out: Mask) -> tuple[Array, Array]:
        partial = new.signals[names].mask(out[rows])
        inputs = new.features if new.inputs is None else new.inputs
        mean, std = model.predict(inputs, return_std=True, include_noise=True, observed=partial)
        return mean[names], std[names]

    return fillings(name, fill, model.graph_, data.features, signals, rows)
