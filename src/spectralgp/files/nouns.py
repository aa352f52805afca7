"""Records of fitted estimators in model files: makers and checks of types that annotations do not describe in full."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Annotated, Any, Literal, cast, get_args

import numpy as np
from msgspec import convert
from scipy.sparse import csr_array
from sklearn.gaussian_process import kernels as of_inputs

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.saved import Count, NotNegative, Number, Positive, Range, axes, ge
from spectralgp._basics.tables import LIBRARIES, TableKind
from spectralgp.files.inputs import InputRecipe
from spectralgp.files.schema import (
    KINDS,
    MAKERS,
    SHARED,
    Kind,
    are_places,
    are_shares,
    check,
    derived,
    either,
    ensure,
    ensure_shape,
    hints_of,
    kind_of,
    maker,
    record,
    several,
    special,
)
from spectralgp.graphs import Graph, LaplacianKind
from spectralgp.learning import Candidate, Draws, Fit, Solver, Stacking, Task
from spectralgp.learning.fitting import FittedModels, condition_all
from spectralgp.learning.objective import NoiseVariances
from spectralgp.model.fields import EffectPrior, GraphGP, ObservationModel, ProcessKernel, Shrinkage
from spectralgp.model.fields.classes import ClassSites
from spectralgp.model.kernels import GraphKernel, Response
from spectralgp.model.likelihoods import Likelihood, named_likelihoods
from spectralgp.model.signals import CompleteState, IncompleteState, Signals, SignalView
from spectralgp.model.spectra import Chebyshev, DensityState, Eigenpairs, Spectrum, SpectrumSettings
from spectralgp.model.statespace import Component
from spectralgp.scores import INTERVAL_LEVELS
from spectralgp.series import FilteredProcess, ModalProcess, SeriesFit
from spectralgp.series.backtests import Backtest
from spectralgp.series.clocks import Clock
from spectralgp.series.ensembles import LAGS
from spectralgp.series.mean import SeriesMean
from spectralgp.series.model import SeriesModel

SAME_FUNCTION = 1e-9  # of its values, by which a filter's may differ from those saved: another machine's rounding

# --------------------------------------------------------------------------------------- names and kernels of inputs


def _name(found: Any, reading: Any) -> Any:
    if isinstance(found, list):
        return tuple(_name(one, reading) for one in found)
    if not isinstance(found, str | int | float):
        raise ValueError(f"must be a name; got {repr(found)[:60]}")
    return found


def _scales(found: Any, _: Any) -> Any:
    if isinstance(found, list):
        return np.array(convert(found, kind_of(several(Positive, least=1))))
    return convert(found, kind_of(Positive))


def _limits(found: Any, _: Any) -> Any:
    if found == "fixed":
        return found
    has_rows = isinstance(found, list) and all(isinstance(one, list) for one in found)
    number = float | Literal["Infinity"]
    pairs = np.array(convert(found if has_rows else [found], tuple[tuple[number, number], ...]), dtype=float)
    if not np.all(pairs >= 0):
        raise ValueError(f"must be numbers from 0 on; got {repr(found)[:60]}")
    return pairs if has_rows else tuple(pairs[0].tolist())


NAME, SCALES, LIMITS = special(_name), special(_scales), special(_limits)
LENGTH: dict[str, Kind] = {"length_scale": SCALES, "length_scale_bounds": LIMITS}
FORMULAS: dict[type, dict[str, Kind]] = {  # of scikit-learn
    of_inputs.RBF: LENGTH,
    of_inputs.Matern: {"nu": Annotated[float, Range(0, is_open=True, is_extended=True)], **LENGTH},
    of_inputs.RationalQuadratic: {"alpha": Positive, "alpha_bounds": LIMITS, **LENGTH},
    of_inputs.ExpSineSquared: {"periodicity": Positive, "periodicity_bounds": LIMITS, **LENGTH},
    of_inputs.DotProduct: {"sigma_0": NotNegative, "sigma_0_bounds": LIMITS},
    of_inputs.WhiteKernel: {"noise_level": NotNegative, "noise_level_bounds": LIMITS},
    of_inputs.ConstantKernel: {"constant_value": NotNegative, "constant_value_bounds": LIMITS},
    of_inputs.Sum: {"k1": of_inputs.Kernel, "k2": of_inputs.Kernel},
    of_inputs.Product: {"k1": of_inputs.Kernel, "k2": of_inputs.Kernel},
    of_inputs.Exponentiation: {"kernel": of_inputs.Kernel, "exponent": int | float},
}
either(of_inputs.Kernel, (record(noun, tagged=True, **fields) for noun, fields in FORMULAS.items()))

# ------------------------------------------------------------- nouns that files hold in other parts than Python does

# a function of the user's by its name, and its values at a few frequencies
PARTS = {name: hint for name, hint in hints_of(Response).items() if name not in ("function", "jacobian")}
record(Response, tagged=True, **PARTS | {"name": str, "sampled": several(Number)})
SHARED |= {Signals: "signals", Task: "tasks", GraphGP: "models", ModalProcess: "processes"}
SIGNALS = derived(CompleteState, tagged=True) | derived(IncompleteState, tagged=True)
KINDS[SpectrumSettings] = derived(Chebyshev) | None  # null where spectra are exact, which leaves nothing to set
for clock in get_args(Clock):
    derived(clock, tagged=True)
# which one a model has: what was found of it is stored once
record(Spectrum, laplacian=LaplacianKind, scaled=bool, n_moments=hints_of(Chebyshev)["n_moments"] | None)
KINDS[Spectrum] = derived(Spectrum)
FOUND = {"eigenpairs": Eigenpairs, "densities": DensityState}  # what is found of graphs to know their spectra
record(
    Graph,
    data=Annotated[Array, axes("_entries")],
    indices=Annotated[Indices, axes("_entries")],
    indptr=Annotated[Indices, axes("n_nodes + 1")],
    names=several(NAME) | None,
    coordinates=Annotated[Array, axes("n_nodes", "_dimensions")] | None,
)

# ------------------------------------------------------------------------------------------ what makes and checks them


@maker(Graph)
def _graph(reading: Any, data: Any, indices: Any, indptr: Any, names: Any, coordinates: Any) -> Graph:
    n_nodes, n_entries = indptr.size - 1, data.size
    # before SciPy sees them, whose own checks let some through that its compiled code stumbles over
    is_whole = n_nodes >= 1 and indices.size == n_entries and indptr[0] == 0 and indptr[-1] == n_entries
    rows = f"{n_entries} weights and {n_nodes} rows"
    ensure(is_whole and np.all(np.diff(indptr) >= 0), "graph.indptr", "the rows of a sparse matrix", rows)
    ensure(are_places(indices, n_nodes), "graph.indices", f"between {n_nodes} nodes", "others")
    reading.graph = Graph(csr_array((data, indices, indptr), shape=(n_nodes, n_nodes)), names, coordinates)
    return reading.graph


@maker(Spectrum)
def _spectrum(reading: Any, laplacian: Any, scaled: bool, n_moments: int | None) -> Spectrum:
    graph, settings, like = reading.graph, reading.task.spectrum, reading.task.signals.like
    settings.remember(graph, laplacian, reading.known.get(laplacian), like)
    spectrum: Any = settings.of(graph, laplacian, scaled, like)
    return spectrum if n_moments == spectrum.n_moments else replace(spectrum, n_moments=n_moments)


@maker(Response)
def _response(reading: Any, name: str, sampled: tuple[float, ...], **fields: Any) -> Response:
    """Filter with the function given for its name, if its values are those that were saved."""
    given = reading.responses.get(name)
    ensure(given is not None, f"responses[{name!r}]", "the function of a filter", "none")
    own = given if isinstance(given, Response) else Response(cast(Any, given))
    made = replace(own, name=name, **fields)
    is_same = np.allclose(made.sampled, sampled, rtol=SAME_FUNCTION, atol=SAME_FUNCTION * np.max(np.abs(sampled)))
    ensure(is_same, f"responses[{name!r}]", "the function that the model was saved with", "one of other values")
    return made


MAKERS[SignalView] = lambda reading, **fields: SignalView(**fields, graph=reading.graph)
MAKERS[IncompleteState] = lambda _, **fields: IncompleteState(**fields).signals


@maker(CompleteState)
def _complete(_: Any, **fields: Any) -> Signals:
    state = CompleteState(**fields)
    n_stored = state.source.shape[0]
    shapes = (n_stored + 1, n_stored + 1) if state.gram is None else state.gram.shape, state.level.shape
    is_whole = shapes == ((n_stored + 1, n_stored + 1), (n_stored + 1,)) and are_places(state.rows, n_stored)
    ensure(is_whole, "signals", f"of {n_stored} signals", f"arrays of shapes {shapes}")
    return state.signals


@maker(Task)
def _task(reading: Any, inputs: Any, spectrum: Any, carried: Any, **fields: Any) -> Task:
    are_columns = carried is None or are_places(carried.columns, inputs.shape[1])
    ensure(are_columns, "carried.columns", f"columns of {inputs.shape[1]} inputs", "others")
    task = Task(reading.graph, inputs=inputs, carried=carried, spectrum=reading.settings(spectrum), **fields)
    reading.task = reading.task or task
    if (own := task.observed_by) is None:
        return task
    values = task.signals.as_observed
    for one in own.likelihood.conditions:
        if not np.all(one.holds(values, own.beside) | np.isnan(values)):
            raise ValueError(f"{one.argument} must {one.condition}; got others")
    if own.effects is None:
        has_intercept = bool(len(own.columns) and np.all(own.columns[0] == 1.0))
        own = ObservationModel.of(own.likelihood, own.beside, own.columns, values, has_intercept)
    return replace(task, observed_by=own)


@check.register
def _filtered(filtered: FilteredProcess) -> None:
    n_states, n_nodes = sum(one.n_states for one in filtered.process.components), filtered.process.own.size
    ensure_shape("state", filtered.state, (n_states, n_nodes))
    ensure_shape("covariance", filtered.covariance, (n_states, n_states, n_nodes))
    ensure_shape("unknown", filtered.unknown, (len(filtered.unknown), n_states, n_nodes))


@check.register
def _effects(effects: EffectPrior) -> None:
    values, precision = np.linalg.eigvalsh(effects.precision), effects.precision
    is_precision = np.allclose(precision, precision.T) and values.min(initial=0.0) >= -1e-9 * values.max(initial=0.0)
    ensure(is_precision, "precision", "symmetric and not negative", "another")


@check.register
def _shrinkage(shrinkage: Shrinkage) -> None:
    n_rows, n_nodes = shrinkage.root.shape
    of_how_many = f"of {shrinkage.n_signals} signals on {n_nodes} nodes"
    ensure(min(shrinkage.n_signals, n_nodes) <= n_rows <= n_nodes, "root", of_how_many, f"{n_rows} rows")
    try:
        root = shrinkage.root_of_mean
    except np.linalg.LinAlgError as error:
        raise ValueError("root must be of a covariance; got another matrix") from error
    ensure(np.all(np.isfinite(root)), "root", "of a finite covariance", "another matrix")


@check.register
def _candidate(candidate: Candidate) -> None:
    columns, n_features = getattr(candidate.transformation, "columns", np.empty(0)), candidate.task.inputs.shape[1]
    ensure(are_places(columns, n_features), "transformation.columns", f"columns of {n_features} inputs", "others")
    rows, n_signals = candidate.learnt_from, candidate.task.signals.shape[0]
    are_some = rows is None or (rows.size and are_places(rows, n_signals))
    ensure(are_some, "learnt_from", f"some of {n_signals} signals", "others")


@check.register
def _draws(draws: Draws) -> None:
    lengths = [len(draws.models)] + [len(one) for one in (draws.weights, draws.levels) if one is not None]
    is_whole = len(set(lengths)) == 1 and are_shares(draws.shares)
    ensure(is_whole, "weights", f"shares of {lengths[0]} models, with a row of levels each", "others")


@check.register
def _mean(mean: SeriesMean) -> None:
    n_columns = sum(2 * len(season.harmonics) for season in mean.seasons) + mean.n_exogenous
    ensure(len(mean.coefficients) == n_columns, "coefficients", f"{n_columns} rows", len(mean.coefficients))


@check.register
def _backtest(backtest: Backtest) -> None:
    n_found, n_levels = len(INTERVAL_LEVELS if backtest.coverages is None else backtest.coverages), len(INTERVAL_LEVELS)
    ensure(n_found == n_levels, "coverages", f"of {n_levels} levels", n_found)
    ensure(list(backtest.rmse) == list(backtest.crps) != [], "rmse", "of the same as crps", list(backtest.rmse))


@check.register
def _process(process: ModalProcess) -> None:
    shape = (len(process.components), process.own.size)
    ensure_shape("powers", process.powers, shape)
    ensure_shape("rates", process.rates, shape)


@check.register
def _process_kernel(kernel: ProcessKernel) -> None:
    n_kernels, least = len(kernel.kernels), 2 * kernel.n_components
    ensure(n_kernels in (least, least + 1), "kernels", f"{least}, and a residual if there is one", n_kernels)


@check.register
def _fit(fit: SeriesFit) -> None:
    ensure_shape("precision", fit.precision, 2 * (fit.kernel.theta.size + 1,))


# -------------------------------------------------------------------------------------------- fitted estimators

# of learnt models, beside their candidates; the others of their parts are computed from these
KEPT = {name: hint for name, hint in hints_of(FittedModels).items() if name != "candidates"}


def parameters_of(reading: Any, **found: Any) -> dict[str, Any]:
    """Parameters of an estimator by name."""
    if "spectrum" in found and not isinstance(found["spectrum"], str):
        found["spectrum"] = reading.settings(found["spectrum"])
    if isinstance(found.get("graph_kernel"), tuple):
        found["graph_kernel"] = list(found["graph_kernel"])
    if (stacking := found.pop("stacking", None)) is not None:
        found["graph_kernel"] = replace(stacking, kernels=found["graph_kernel"])
    return found


MAKERS[parameters_of] = parameters_of


TABLES = {table: SIGNALS if noun is Signals else derived(noun) for noun, table in SHARED.items()}
WHOLE: dict[str, Kind] = {  # of every kind
    "graph": derived(Graph),
    "shared": record(dict, **{table: several(kind) for table, kind in TABLES.items()}),
    **{name: dict[LaplacianKind, noun] for name, noun in FOUND.items()},  # type: ignore[valid-type]
}
FORM: dict[str, Kind] = {
    "names": several(NAME) | None,
    "columns": Annotated[Indices, axes("n_nodes")] | None,
    "is_flat": bool,
    "layout": TableKind | None,
    "output": Literal[("numpy", *LIBRARIES)] | None,
}
AUTO = Literal["auto"]
SETTINGS = Literal["auto", "exact", "chebyshev"] | SpectrumSettings
# whether there is a graph, which is the file's
OF_ANY: dict[str, Kind] = {"graph": bool, "verbose": Annotated[int, ge(-(2**31))]}

# ------------------------------------------------------------------------------------------------------ regressors

PARAMETERS = record(
    parameters_of,
    **OF_ANY,
    graph_kernel=GraphKernel | several(GraphKernel) | None,
    input_kernel=Literal["precomputed"] | of_inputs.Kernel | None,
    noise_variance=NoiseVariances,
    prior=Literal["weak"] | None,
    residual=AUTO | GraphKernel | None,
    carry=Literal["auto", "lagged"] | several(NAME) | None,
    solver=Literal["sqp"] | Solver | None,
    spectrum=SETTINGS,
    stacking=Stacking | None,  # beside its kernels
    random_state=Count | None,
    likelihood=Literal[*named_likelihoods()] | Likelihood,
    center=Literal["auto", "global", "node"] | None,
    scale=Literal["auto", "global", "node"] | None,
)
FITTED = record(
    SimpleNamespace,
    **FORM | {"output": Literal["default"] | FORM["output"]},
    is_in_memory=bool,
    copies=Annotated[Indices, axes("_given")],
    labels=several(str) | None,  # of the rows
    n_features_in=Count | None,
    feature_names_in=several(str) | None,
    date_columns=several(Count),
    log_marginal_likelihood=Number,
    center=Annotated[Any, axes("n_nodes", or_number=True)],
    scale=Annotated[Array, axes("n_nodes")],
    input_recipe=InputRecipe | None,
    effects=several(str),  # names of fixed effects
)
REGRESSOR = record(
    SimpleNamespace,
    kind=Literal["regressor"],
    **WHOLE,
    candidates=several(Candidate, least=1),
    learnt=record(SimpleNamespace, **KEPT, fits=several(Fit)),
    estimator=record(SimpleNamespace, parameters=PARAMETERS, fitted=FITTED),
)


def learnt_of(parts: SimpleNamespace) -> FittedModels:
    """Fitted models of a file's parts, conditioned on their signals as by `fit`."""
    candidates, learnt = parts.candidates, parts.learnt
    counts = {len(candidates), len(learnt.raw_fits), len(learnt.draws), len(learnt.fits), learnt.weights.size}
    are_weights = are_shares(learnt.weights) and (learnt.filling is None or are_shares(learnt.filling))
    expected = "as many candidates, fits, draws and weights that add up to one"
    ensure(len(counts) == 1 and are_weights, "learnt", expected, sorted(counts))
    for candidate, one in zip(candidates, learnt.draws, strict=True):
        n_signals = candidate.task.signals.shape[0]
        for points, spectrum in ((model.points, model.spectrum) for model in one.models):
            are_some = points is None or (spectrum.has_eigenvectors and are_places(points, n_signals))
            ensure(are_some, "points", f"some of {n_signals} signals on an exact spectrum", "others")
    models = [model for one in learnt.draws for model in one.models]
    try:
        memory = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))  # of this machine, in bytes
    except (AttributeError, OSError, ValueError):  # unknown
        memory = np.inf
    require_memory(candidates[0].task.signals.shape[0], models, memory)
    kept = {name: getattr(learnt, name) for name in KEPT}
    draws, posterior = condition_all(candidates, learnt.weights, learnt.draws, learnt.filling)
    return FittedModels(candidates=candidates, posterior=posterior, **kept | {"draws": draws})


def require_memory(n_signals: int, models: Sequence[GraphGP], available: float) -> None:
    """Refuse a model whose covariances between signals take more bytes than available: a short file may describe it."""
    ranks = [n_signals if model.points is None else model.points.size for model in models]
    needed = 8 * n_signals * (sum(ranks) + 2 * max(ranks))
    expected = f"one for {available / 1e9:.2g} GB of memory"
    ensure(needed <= available, "the model", expected, f"one that takes {needed / 1e9:.2g} GB")


# ----------------------------------------------------------------------------------------------------- forecasters

FORECASTER = record(
    SimpleNamespace,
    kind=Literal["forecaster"],
    **WHOLE,
    parameters=record(
        parameters_of,
        **OF_ANY,
        components=AUTO | several(Component, least=1),
        seasons=AUTO | float | several(float) | None,
        calendar=AUTO | several(str) | None,
        residual=AUTO | None,
        drift=AUTO | None,
    ),
    **FORM,
    time_column=str | None,
    exogenous_names=several(NAME) | None,
    backtest=Backtest | None,
    **hints_of(SeriesModel),
)


def series_of(made: SimpleNamespace) -> SeriesModel:
    """Series model of a forecaster's parts."""
    model = SeriesModel(**{name: getattr(made, name) for name in hints_of(SeriesModel)})
    stack, recent, places = model.stack, model.recent, model.stack.drifting
    n_members, n_drifting, n_nodes = len(stack.members), len(stack.drift), made.graph.n_nodes
    are_theirs = [one.process for one in model.states] == [one.process for one in stack.members]
    ensure(are_theirs, "states", f"those of {n_members} members", "others")
    are_weights = stack.weights.size == n_members and are_shares(stack.weights)
    ensure(are_weights, "stack.weights", f"{n_members} that add up to one", "others")
    ensure(stack.spread < n_members, "stack.spread", f"below {n_members}", stack.spread)
    ensure(np.all((places >= -1) & (places < n_drifting)), "stack.drifting", f"below {n_drifting}", "others")
    ensure_shape("stack.drift", stack.drift, (n_drifting, LAGS * n_nodes, n_nodes))
    ensure(len(stack.correlations) in (0, len(stack.horizons)), "stack.correlations", "one per horizon", "others")
    ensure(np.all(np.diff(stack.horizons) > 0), "stack.horizons", "increasing", "others")
    ensure_shape("recent", recent, (LAGS, n_nodes))
    return model


# ----------------------------------------------------------------------------------------------------- classifiers

CLASSIFIER = record(
    SimpleNamespace,
    kind=Literal["classifier"],
    **WHOLE,
    parameters=record(parameters_of, **OF_ANY, input_kernel=of_inputs.Kernel | None, spectrum=SETTINGS),
    classes=several(NAME, least=2),
    labels=Annotated[Indices, axes("n_signals", "n_nodes")],  # places among the classes, -1 where there is none
    is_flat=bool,
    order=FORM["columns"],
    inputs=Annotated[Array, axes("_rows", "_features")] | None,
    feature_names=several(str) | None,
    date_columns=several(Count),
    sites=several(ClassSites, least=1),
    converged=several(bool, least=1),
)


def check_classes(made: SimpleNamespace) -> None:
    """Refuse parts of a classifier that do not agree."""
    (n_signals, n_nodes), n_classes = made.labels.shape, len(made.classes)
    known = made.labels[made.labels >= 0]
    ensure(np.array_equal(np.unique(known), np.arange(n_classes)), "labels", f"of {n_classes} classes", "others")
    ensure(np.all(made.labels >= -1), "labels", "at least -1", "others")
    ensure(len(set(made.classes)) == n_classes, "classes", "distinct", "some twice")
    ensure(not made.is_flat or n_signals == 1, "labels", "of one signal where there is one per node", n_signals)
    shapes = {(*one.linear.shape, *one.curvature.shape) for one in made.sites}
    ensure(shapes == {2 * (known.size, n_classes)}, "sites", f"of {known.size} labels and {n_classes} classes", shapes)
    ensure(len(made.converged) == len(made.sites), "converged", "one per site", len(made.converged))
    if made.inputs is not None:
        wanted = n_nodes if made.is_flat else n_signals
        ensure(len(made.inputs) == wanted, "inputs", f"{wanted} rows", len(made.inputs))
    n_columns = 0 if made.inputs is None else made.inputs.shape[1]
    ensure(all(one < n_columns for one in made.date_columns), "date_columns", f"of {n_columns} inputs", "others")
    named = made.feature_names is None or len(made.feature_names) == n_columns > 0
    ensure(named, "feature_names", "one per column of the inputs", made.feature_names)
