"""Records, makers and checks of types that annotations do not describe in full, with scikit-learn's kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal, cast, get_args

import numpy as np
from msgspec import convert
from scipy.sparse import csr_array
from sklearn.gaussian_process import kernels as of_inputs

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.saved import NotNegative, Number, Positive, Range, axes, gt
from spectralgp.files.schema import (
    KINDS,
    SHARED,
    TINY,
    Kind,
    are_places,
    check,
    derived,
    each,
    either,
    ensure,
    hints_of,
    kind_of,
    maker,
    record,
    several,
    special,
)
from spectralgp.graphs import Graph, LaplacianKind
from spectralgp.learning import Candidate, Draws, Task
from spectralgp.model.fields import EffectPrior, GraphGP, ObservationModel, ProcessKernel, Shrinkage, Transformation
from spectralgp.model.kernels import GraphKernel, Response
from spectralgp.model.likelihoods import Likelihood
from spectralgp.model.signals import CompleteState, IncompleteState, Signals, SignalView, Units
from spectralgp.model.spectra import Chebyshev, DensityState, Eigenpairs, Spectrum, SpectrumSettings
from spectralgp.scores import INTERVAL_LEVELS
from spectralgp.series import FilteredProcess, ModalProcess, SeriesFit
from spectralgp.series.backtests import Backtest
from spectralgp.series.mean import SeriesMean
from spectralgp.series.times import Clock

SAME_FUNCTION = 1e-9  # of its values, by which a filter's may differ from those saved: another machine's rounding

# --------------------------------------------------------------------------------------- names and kernels of inputs


def _name(found: Any, reading: Any) -> Any:
    if isinstance(found, list):
        return tuple(_name(one, reading) for one in found)
    if not isinstance(found, str | int | float):
        raise ValueError(f"must be a name; got {repr(found)[:60]}")
    return found


def _scales(found: Any, _: Any) -> Any:
    is_one = not isinstance(found, list)
    return (
        convert(found, kind_of(Positive)) if is_one else np.array(convert(found, kind_of(several(Positive, least=1))))
    )


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
    of_inputs.Matern: {"nu": Annotated[float, Range(TINY, is_extended=True)], **LENGTH},
    of_inputs.RationalQuadratic: {"alpha": Positive, "alpha_bounds": LIMITS, **LENGTH},
    of_inputs.ExpSineSquared: {"periodicity": Positive, "periodicity_bounds": LIMITS, **LENGTH},
    of_inputs.DotProduct: {"sigma_0": NotNegative, "sigma_0_bounds": LIMITS},
    of_inputs.WhiteKernel: {"noise_level": NotNegative, "noise_level_bounds": LIMITS},
    of_inputs.ConstantKernel: {"constant_value": NotNegative, "constant_value_bounds": LIMITS},
    of_inputs.Sum: each("k1 k2", of_inputs.Kernel),
    of_inputs.Product: each("k1 k2", of_inputs.Kernel),
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
record(
    EffectPrior, mean=Annotated[Array, axes("n_effects")], precision=Annotated[Array, axes("n_effects", "n_effects")]
)
record(
    ObservationModel,
    likelihood=Likelihood,
    beside=Annotated[Array, axes("n_signals", "n_nodes"), gt(0)],
    columns=Annotated[Array, axes("n_effects", "n_signals", "n_nodes")],
    effects=EffectPrior | None,  # null up to version 6, where their prior follows from the values
)
record(
    Candidate,
    task=Task,
    kernel=GraphKernel,
    shrunk=bool,
    name=str,
    transformation=Transformation | None,
    learnt_from=Annotated[Indices, axes("_learnt_from")] | None,
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
    task, found = reading.task, reading.known.get(laplacian)
    return task.spectrum.restored(reading.graph, laplacian, scaled, task.signals.like, found, n_moments)


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


@maker(SignalView)
def _read_as(reading: Any, **fields: Any) -> SignalView:
    return SignalView(**fields, graph=reading.graph)


@maker(IncompleteState)
def _incomplete(_: Any, **fields: Any) -> Signals:
    return IncompleteState(**fields).signals


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
    for one in own.likelihood.conditions():
        if not np.all(one.holds(values, own.beside) | np.isnan(values)):
            raise ValueError(f"{one.argument} must {one.condition}; got others")
    if own.effects is None:
        has_intercept = bool(len(own.columns) and np.all(own.columns[0] == 1.0))
        own = ObservationModel.of(own.likelihood, own.beside, own.columns, values, has_intercept)
    return replace(task, observed_by=own)


@maker(FilteredProcess)
def _filtered(_: Any, process: ModalProcess, **fields: Any) -> FilteredProcess:
    n_states, n_nodes = sum(one.n_states for one in process.components), process.own.size
    sizes = {"state": (n_states, n_nodes), "covariance": (n_states, n_states, n_nodes)}
    for what, shape in sizes.items():
        ensure(fields[what].shape == shape, what, f"of shape {shape}", fields[what].shape)
    unknown = fields["unknown"].shape
    ensure(unknown[1:] == (n_states, n_nodes), "unknown", f"of shape (n, {n_states}, {n_nodes})", unknown)
    return FilteredProcess(process, **fields)


@check(Units)
def _units(units: Units) -> None:
    ensure(np.all(units.divisor > 0), "units.relative", "positive", "others")


@check(EffectPrior)
def _effects(effects: EffectPrior) -> None:
    values, precision = np.linalg.eigvalsh(effects.precision), effects.precision
    is_precision = np.allclose(precision, precision.T) and values.min(initial=0.0) >= -1e-9 * values.max(initial=0.0)
    ensure(is_precision, "precision", "symmetric and not negative", "another")


@check(Shrinkage)
def _shrinkage(shrinkage: Shrinkage) -> None:
    n_rows, n_nodes = shrinkage.root.shape
    of_how_many = f"of {shrinkage.n_signals} signals on {n_nodes} nodes"
    ensure(min(shrinkage.n_signals, n_nodes) <= n_rows <= n_nodes, "root", of_how_many, f"{n_rows} rows")
    try:
        root = shrinkage.root_of_mean
    except np.linalg.LinAlgError as error:
        raise ValueError("root must be of a covariance; got another matrix") from error
    ensure(np.all(np.isfinite(root)), "root", "of a finite covariance", "another matrix")


@check(Candidate)
def _candidate(candidate: Candidate) -> None:
    columns, n_features = getattr(candidate.transformation, "columns", np.empty(0)), candidate.task.inputs.shape[1]
    ensure(are_places(columns, n_features), "transformation.columns", f"columns of {n_features} inputs", "others")
    rows, n_signals = candidate.learnt_from, candidate.task.signals.shape[0]
    are_some = rows is None or (rows.size and are_places(rows, n_signals))
    ensure(are_some, "learnt_from", f"some of {n_signals} signals", "others")


@check(Draws)
def _draws(draws: Draws) -> None:
    lengths = [len(draws.models)] + [len(one) for one in (draws.weights, draws.levels) if one is not None]
    are_shares = len(set(lengths)) == 1 and np.isclose(draws.shares.sum(), 1)
    ensure(are_shares, "weights", f"shares of {lengths[0]} models, with a row of levels each", "others")


@check(SeriesMean)
def _mean(mean: SeriesMean) -> None:
    n_columns = sum(2 * len(season.harmonics) for season in mean.seasons) + mean.n_exogenous
    ensure(len(mean.coefficients) == n_columns, "coefficients", f"{n_columns} rows", len(mean.coefficients))


@check(Backtest)
def _backtest(backtest: Backtest) -> None:
    n_found, n_levels = len(INTERVAL_LEVELS if backtest.coverages is None else backtest.coverages), len(INTERVAL_LEVELS)
    ensure(n_found == n_levels, "coverages", f"of {n_levels} levels", n_found)
    ensure(list(backtest.rmse) == list(backtest.crps) != [], "rmse", "of the same as crps", list(backtest.rmse))


@check(ModalProcess)
def _process(process: ModalProcess) -> None:
    shape = (len(process.components), process.own.size)
    for name in ("powers", "rates"):
        found = getattr(process, name).shape
        ensure(found == shape, name, f"of shape {shape}", found)


@check(ProcessKernel)
def _process_kernel(kernel: ProcessKernel) -> None:
    n_kernels, least = len(kernel.kernels), 2 * kernel.n_components
    ensure(n_kernels in (least, least + 1), "kernels", f"{least}, and a residual if there is one", n_kernels)


@check(SeriesFit)
def _fit(fit: SeriesFit) -> None:
    shape = 2 * (fit.kernel.theta.size + 1,)
    ensure(fit.precision.shape == shape, "precision", f"of shape {shape}", fit.precision.shape)
