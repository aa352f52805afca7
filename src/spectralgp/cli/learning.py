"""Models of commands `fit` and `compare`: from files, by names of kernels, beside baselines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from operator import attrgetter
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import typer
from rich.console import Group
from rich.text import Text

from spectralgp import GraphGPClassifier, GraphGPForecaster, GraphGPRegressor, GraphKernel, Polynomial, Stacking
from spectralgp._basics.checks import Array, Mask
from spectralgp._basics.progress import progress_bar, step_done
from spectralgp._basics.saved import kinds_of
from spectralgp.cli import files
from spectralgp.cli.app import Answer, ResultColumn, table_of
from spectralgp.cli.option import AUTO, LearningOptions
from spectralgp.graphs import GraphBase
from spectralgp.learning.baselines import PredictionErrors, baselines_of, imputation_errors, prediction_errors
from spectralgp.model.kernels.named import PositiveParameters
from spectralgp.model.spectra import Chebyshev
from spectralgp.scores import calibration_of, observed_and_predicted, pit
from spectralgp.show.report import words

Fitted = GraphGPRegressor | GraphGPForecaster | GraphGPClassifier


def graph_kernels() -> dict[str, type[Any]]:
    """Graph kernels that need no arguments but a number, by name."""
    kinds: list[type[Any]] = [Polynomial, *sorted(kinds_of(PositiveParameters), key=attrgetter("__name__"))]
    return {re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower(): kind for kind in kinds}


def kernel_named(text: str) -> GraphKernel | None:
    """Graph kernel by name, such as "diffusion", "polynomial:3" or "polynomial:auto"; None for "auto", the default."""
    name, _, setting = text.strip().lower().partition(":")
    if name == AUTO and not setting:
        return None
    kernels = graph_kernels()
    if name not in kernels:
        raise typer.BadParameter(f"kernel must be one of {', '.join([AUTO, *kernels])}; got {text!r}.")
    make, parameter = kernels[name], fields(kernels[name])[0].name
    if not setting:
        return make("auto") if make is Polynomial else make()
    if parameter in (own.name.removesuffix("_bounds") for own in fields(make) if own.name.endswith("_bounds")):
        raise typer.BadParameter(f"kernel {name} must be given without a number; got {text!r}.")
    try:
        number = AUTO if setting == AUTO else float(setting)
        return make(int(number) if isinstance(number, float) and number.is_integer() else number)
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(
            f"kernel must be such as {name}:2, the number being its {parameter}; got {text!r}."
        ) from error


def with_degree(kernel: str, degree: str | None) -> str:
    """Name of a kernel with the degree of a polynomial, if one is given."""
    if degree is None:
        return kernel
    if kernel not in (AUTO, "polynomial"):
        raise typer.BadParameter(f"--degree must be left out unless the kernel is polynomial; got it with {kernel}.")
    return f"polynomial:{degree}"


def regressor_of(
    data: files.CommandData,
    kernel: GraphKernel | None,
    learning: LearningOptions,
    device: str | None = None,
    likelihood: str = "gaussian",
) -> tuple[GraphGPRegressor, tuple[Any, ...]]:
    """Model of signals, with its inputs and signals."""
    if device == "cuda" and learning.spectrum == "exact":
        raise typer.BadParameter("--device must be cpu with --spectrum exact, which is computed on the CPU.")
    options: dict[str, Any] = {"random_state": learning.seed, "likelihood": likelihood, "verbose": 1}
    options["spectrum"] = Chebyshev(device="cuda") if device == "cuda" else learning.spectrum
    model = GraphGPRegressor(data.graph, Stacking(kernel, n_jobs=learning.jobs, effort=learning.effort), **options)
    return model, (data.inputs, data.signals)


def forecaster_of(
    data: files.CommandData, season: list[str], kernel: GraphKernel | None, inputs: list[str] | None
) -> tuple[GraphGPForecaster, tuple[Any, ...]]:
    """Model of a time series, with its rows and covariates beside time."""
    parts = files.input_parts(inputs)
    if kernel is not None:
        raise typer.BadParameter("--kernel and --degree must be left out with --season: series have their own kernels.")
    if not parts.time or parts.lag is not None:
        raise typer.BadParameter("--season must come with --inputs time, and without lag, which series have anyway.")
    try:
        seasons: Any = AUTO if season == [AUTO] else tuple(float(one) for one in season)
    except ValueError as error:
        raise typer.BadParameter(f"--season must be auto or periods in rows; got {' and '.join(season)}.") from error
    columns = list(data.recipe.columns)
    exogenous = data.inputs[columns] if data.inputs is not None and columns else None
    return GraphGPForecaster(data.graph, seasons=seasons, verbose=1), (data.signals, exogenous)


def classifier_of(path: Path, learning: LearningOptions) -> tuple[GraphGPClassifier, tuple[Any, ...]]:
    """Model of classes of nodes, with its features and labels."""
    graph, parts = files.graph_of(learning), files.input_parts(learning.inputs)
    if parts.time or parts.lag is not None:
        raise typer.BadParameter("--inputs must be a table of node and features with --classes: classes have no time.")
    columns = files.node_table(path, graph, "its class")
    if len(columns) > 1:
        raise typer.BadParameter(f"--classes must have two columns, node and class; got {len(columns) + 1}.")
    features = None if parts.table is None else node_features(parts.table, graph)
    return GraphGPClassifier(graph, spectrum=learning.spectrum, verbose=1), (features, next(iter(columns.values())))


def node_features(path: Path, graph: GraphBase) -> Array:
    """Features of all nodes from a table, shape (n_nodes, n_features)."""
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


def learnt(model: Fitted, data: files.CommandData | None) -> dict[str, Any]:
    """Learnt values, for the answer in JSON."""
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


COLUMNS: dict[str, ResultColumn] = {
    "log\nevidence": ("{log_evidence:.1f}", "log_evidence", max),
    "leave-\none-out": ("{leave_one_out:.2f}", "leave_one_out", max),
    "held-out\n(s.e.)": ("{held_out:.2f} ({held_out_error:.2f})", "held_out", max),
    "\nRMSE": ("{rmse:.4g}", "rmse", min),
    "in\n90%": ("{coverage:.1%}", "coverage", None),
}
IMPUTATION_COLUMNS: dict[str, ResultColumn] = {
    "log density\nper value": ("{held_out:.2f}", "held_out", max),
    "\nRMSE": ("{rmse:.4g}", "rmse", min),
    "\nCRPS": ("{crps:.4g}", "crps", min),
    "in\n90%": ("{coverage:.1%}", "coverage", None),
}


def compared(
    kernels: Mapping[str, GraphKernel | None], data: files.CommandData, n_held_out: int, learning: LearningOptions
) -> Answer:
    """Learn models of kernels from the first rows, and compare them with baselines on the last."""
    training, new = data.part(slice(None, -n_held_out)), data.part(slice(-n_held_out, None))
    models = list(_learnt_kernels(kernels, training, new, learning))
    if not models:
        raise ValueError("kernels must hold one that can be learnt; got none. The notes say why.")
    model, errors, pits, _ = models[reference_of([errors for _, errors, *_ in models])]
    others, imputed = _baselines(training, new), _imputations(model, errors.name, data, new)
    sentences = comparison_words(errors, pits, others, imputed)
    rows = [row for *_, row in models]
    baselines, imputations = [row_of(one) for one in others], [row_of(one) for one in imputed]
    answer: dict[str, Any] = {"n_signals": len(training.signals), "n_held_out": n_held_out}
    answer |= {"kernels": rows, "baselines": baselines, "imputations": imputations, "words": sentences}

    tables, hidden = [table_of([*rows, *baselines], COLUMNS)], ""
    if imputed:
        tables.append(table_of(imputations, IMPUTATION_COLUMNS, title="\nimputation"))
        hidden = f" Imputation: {imputed[0].n_values} observed values of the held-out signals were hidden, in runs "
        hidden += "like those of the missing values."
    notes = (
        f"Learnt from {len(training.signals)} signals; the last {n_held_out} are held out. Log evidence: total in "
        "nats. Leave-one-out and held-out: log density in nats per signal. Larger is better for all three. RMSE: of "
        "held-out values. The last rows are baselines. In 90%: share of held-out values inside their 90% interval."
        f"{hidden} The best values are bold."
    )
    return answer, Group(*map(Text, sentences), *tables, Text(notes, style="dim"))


def reference_of(errors: Sequence[PredictionErrors]) -> int:
    """Position of the model to compare with baselines: the default if there is one, else the best."""
    return max(range(len(errors)), key=lambda place: (errors[place].name == AUTO, errors[place].log_density))


def comparison_words(
    errors: PredictionErrors, pits: Array, others: Sequence[PredictionErrors], imputed: Sequence[PredictionErrors]
) -> list[str]:
    """Sentences on baselines of prediction and, if any, of imputation (the model first), and on the calibration."""
    ours, *ours_imputed = (replace(one, name=f"learnt model ({one.name})") for one in [errors, *imputed[:1]])
    *_, scored = words.SOURCES["held out"]
    return [
        *words.baseline_words([ours, *others], scored),
        *words.baseline_words([*ours_imputed, *imputed[1:]], words.IMPUTING),
        *(f"{errors.name}: {one}" for one in words.calibration_words(calibration_of(pits))),
    ]


def row_of(found: PredictionErrors, **more: float | None) -> dict[str, Any]:
    """Row of the comparison: mean log density in nats, with its standard error, and errors; `more` of graph kernels."""
    coverages = {f"{level:.0%}": share for level, share in found.coverages.items()}
    scores = {"held_out": found.log_density, "held_out_error": found.log_density_error, "rmse": found.rmse}
    scores |= {"crps": found.crps, "coverage": coverages["90%"]}
    missing = dict.fromkeys(("log_evidence", "leave_one_out", "seconds"))
    return {"kernel": found.name, **missing, **scores, "coverages": coverages, **more}


def _learnt_kernels(
    kernels: Mapping[str, GraphKernel | None],
    training: files.CommandData,
    new: files.CommandData,
    learning: LearningOptions,
) -> Iterator[tuple[GraphGPRegressor, PredictionErrors, Array, dict[str, Any]]]:
    """Models of kernels, each with its errors, PIT values and row; a note names a kernel that cannot be learnt."""
    with progress_bar("compare", len(kernels), show=True):
        for name, kernel in kernels.items():
            model, given = regressor_of(training, kernel, learning)
            start = perf_counter()
            try:
                model.set_params(verbose=0).fit(*given)
                more = {"log_evidence": model.log_marginal_likelihood_, "seconds": perf_counter() - start}
                predicted = observed_and_predicted(model, new.inputs, new.signals)
                densities = np.asarray(model.log_predictive_density(new.inputs, new.signals, joint=False))
                with suppress(ValueError):  # no closed form for a large graph with missing values
                    more["leave_one_out"] = float(np.nanmean(model.leave_one_out("signal").log_density))
                found = PredictionErrors.of(name, *predicted, densities)
                yield model, found, pit(*predicted), row_of(found, **more)
            except ValueError as error:  # such as a kernel that a large graph cannot have
                typer.echo(f"note: {name} is left out: {' '.join(str(error).split())}", err=True)
            step_done(name)


def _baselines(training: files.CommandData, new: files.CommandData) -> list[PredictionErrors]:
    """Errors of baselines on the held-out signals."""
    names = [] if training.inputs is None else list(training.inputs.columns)
    nodes = [str(name) for name in training.signals.columns]
    columns = np.array([names.index(name) for name in nodes]) if set(nodes) <= set(names) else None
    pairs = [(one.features, one.signals.to_numpy(dtype=float)) for one in (training, new)]
    factor = None if training.recipe.lag is None else 1.0
    return prediction_errors(baselines_of(*pairs[0], columns, factor), *pairs)


def _imputations(
    model: GraphGPRegressor, name: str, data: files.CommandData, new: files.CommandData
) -> list[PredictionErrors]:
    """Errors of the model and of baselines at hidden values of the held-out signals; none without missing values."""
    names, rows = list(data.graph.names or data.signals.columns), slice(-len(new.signals), None)
    signals = data.signals[names].to_numpy(dtype=float)  # in the order of the graph

    def impute(hidden: Mask) -> tuple[Array, Array]:
        partial = new.signals[names].mask(hidden[rows])
        inputs = new.features if new.inputs is None else new.inputs
        mean, std = model.predict(inputs, return_std=True, include_noise=True, observed=partial)
        return mean[names], std[names]

    return imputation_errors(name, impute, model.graph_, data.features, signals, rows)
