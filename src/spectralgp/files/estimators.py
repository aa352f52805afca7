"""Records of fitted estimators in model files, and checks that their parts agree."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.saved import Count, Number, axes, ge
from spectralgp._basics.tables import LIBRARIES, TableKind
from spectralgp.files.inputs import InputRecipe
from spectralgp.files.nouns import FOUND, NAME, SIGNALS
from spectralgp.files.schema import MAKERS, Kind, are_places, derived, each, ensure, hints_of, record, several
from spectralgp.graphs import Graph, LaplacianKind
from spectralgp.learning import Candidate, Draws, Fit, Solver, Stacking, Task
from spectralgp.learning.fitting import FittedModels, condition_all
from spectralgp.learning.objective import NoiseVariances
from spectralgp.learning.search import ComparedModel
from spectralgp.learning.time_order import TimeOrder
from spectralgp.model import likelihoods
from spectralgp.model.fields import GraphGP
from spectralgp.model.fields.classes import ClassSites
from spectralgp.model.kernels import GraphKernel
from spectralgp.model.likelihoods import Likelihood
from spectralgp.model.spectra import SpectrumSettings
from spectralgp.model.statespace import Component
from spectralgp.series import ModalProcess
from spectralgp.series.backtests import Backtest
from spectralgp.series.model import SeriesModel
from spectralgp.series.stack import LAGS

# parts of learnt models that files hold; the others are computed from these
KEPT = ("raw_fits", "weights", "draws", "tried", "order", "filling", "note")


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


TABLES = {"signals": SIGNALS} | {
    name: derived(one) for name, one in {"tasks": Task, "models": GraphGP, "processes": ModalProcess}.items()
}
WHOLE: dict[str, Kind] = {  # of every kind
    "graph": derived(Graph),
    "shared": record(dict, **{name: several(kind) for name, kind in TABLES.items()}),
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
OF_ANY: dict[str, Kind] = {
    "graph": bool,
    "verbose": Annotated[int, ge(-(2**31))],
}  # whether there is a graph: the file's

# ------------------------------------------------------------------------------------------------------ regressors

PARAMETERS = record(
    parameters_of,
    **OF_ANY,
    graph_kernel=GraphKernel | several(GraphKernel) | None,
    input_kernel=Literal["precomputed"] | Kernel | None,
    noise_variance=NoiseVariances,
    prior=Literal["weak"] | None,
    residual=AUTO | GraphKernel | None,
    carry=Literal["auto", "lagged"] | several(NAME) | None,
    solver=Literal["sqp"] | Solver | None,
    spectrum=SETTINGS,
    stacking=Stacking | None,  # beside its kernels
    random_state=Count | None,
    likelihood=Literal[*likelihoods.named_likelihoods()] | Likelihood,
    **each("center scale", Literal["auto", "global", "node"] | None),
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
LEARNT = record(
    SimpleNamespace,
    **each("raw_fits fits", several(Fit)),  # as many as candidates, and draws too
    weights=Annotated[Array, axes("n_members")],
    draws=several(Draws),
    tried=several(ComparedModel),
    order=TimeOrder | None,
    filling=Annotated[Array, axes("n_members")] | None,
    note=str,
)
REGRESSOR = record(
    SimpleNamespace,
    kind=Literal["regressor"],
    **WHOLE,
    candidates=several(Candidate, least=1),
    learnt=LEARNT,
    estimator=record(SimpleNamespace, parameters=PARAMETERS, fitted=FITTED),
)


def learnt_of(parts: SimpleNamespace) -> FittedModels:
    """Fitted models of a file's parts, conditioned on their signals as by `fit`."""
    candidates, learnt = parts.candidates, parts.learnt
    counts = {len(candidates), len(learnt.raw_fits), len(learnt.draws), len(learnt.fits), learnt.weights.size}
    sets = [learnt.weights] if learnt.filling is None else [learnt.weights, learnt.filling]
    are_weights = all(np.all(one >= 0) and np.isclose(one.sum(), 1.0) for one in sets)
    expected = "as many candidates, fits, draws and weights that add up to one"
    ensure(len(counts) == 1 and are_weights, "learnt", expected, sorted(counts))
    for candidate, one in zip(candidates, learnt.draws, strict=True):
        n_signals = candidate.task.signals.shape[0]
        for points, spectrum in ((model.points, model.spectrum) for model in one.models):
            are_some = points is None or (spectrum.has_eigenvectors and are_places(points, n_signals))
            ensure(are_some, "points", f"some of {n_signals} signals on an exact spectrum", "others")
    models = [model for one in learnt.draws for model in one.models]
    require_memory(candidates[0].task.signals.shape[0], models, _memory())
    kept = {name: getattr(learnt, name) for name in KEPT}
    draws, posterior = condition_all(candidates, learnt.weights, learnt.draws, learnt.filling)
    return FittedModels(candidates=candidates, posterior=posterior, **kept | {"draws": draws})


def require_memory(n_signals: int, models: Sequence[GraphGP], available: float) -> None:
    """Refuse a model whose covariances between signals take more bytes than available: a short file may describe it."""
    ranks = [n_signals if model.points is None else model.points.size for model in models]
    needed = 8 * n_signals * (sum(ranks) + 2 * max(ranks))
    expected = f"one for {available / 1e9:.2g} GB of memory"
    ensure(needed <= available, "the model", expected, f"one that takes {needed / 1e9:.2g} GB")


def _memory() -> float:
    """Bytes of memory of this machine; infinity if unknown."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


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
        **each("residual drift", AUTO | None),
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
    are_weights = stack.weights.size == n_members and np.all(stack.weights >= 0) and np.isclose(stack.weights.sum(), 1)
    ensure(are_weights, "stack.weights", f"{n_members} that add up to one", "others")
    ensure(stack.spread < n_members, "stack.spread", f"below {n_members}", stack.spread)
    ensure(np.all((places >= -1) & (places < n_drifting)), "stack.drifting", f"below {n_drifting}", "others")
    ensure(stack.drift.shape[1] == LAGS * n_nodes, "stack.drift", f"of {LAGS} lags", stack.drift.shape)
    ensure(len(stack.correlations) in (0, len(stack.horizons)), "stack.correlations", "one per horizon", "others")
    ensure(np.all(np.diff(stack.horizons) > 0), "stack.horizons", "increasing", "others")
    ensure(recent.shape == (LAGS, n_nodes), "recent", f"{LAGS} rows", recent.shape)
    return model


# ----------------------------------------------------------------------------------------------------- classifiers

CLASSIFIER = record(
    SimpleNamespace,
    kind=Literal["classifier"],
    **WHOLE,
    parameters=record(parameters_of, **OF_ANY, input_kernel=Kernel | None, spectrum=SETTINGS),
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
