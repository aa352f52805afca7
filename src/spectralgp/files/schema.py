"""What a model file may hold: for every noun of a fitted model, its fields and what each of them may be.

A file can ask for the types in these tables and for no others: no name in it is ever looked up anywhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Annotated, Any, Literal, Union

import numpy as np
from msgspec import Meta, MsgspecError, Struct, convert, defstruct
from scipy.sparse import csr_array
from sklearn.gaussian_process import kernels as of_inputs

from spectralgp import kernels, likelihoods
from spectralgp._basics.tables import LIBRARIES, WRITTEN, Layout
from spectralgp.fields import Changes, EffectPrior, GraphGP, Logarithms, ObservedBy, Shrinkage
from spectralgp.graphs import Graph
from spectralgp.kernels.carry import CarryColumns, CarryFilter
from spectralgp.kernels.polynomial import HIGHEST_DEGREE
from spectralgp.learning import Candidate, Certificate, Draws, Fit, Lagrangian, Limits, Outcome, Sqp, Stage, Task
from spectralgp.learning.fitting import Tried
from spectralgp.learning.folds import Stacking
from spectralgp.learning.time_order import TimeOrder
from spectralgp.signals import CompleteState, IncompleteState, ReadAs, Units
from spectralgp.spectra import Chebyshev, DensityState, Eigenpairs, Errors, Spectrum

# A type of msgspec, made while the program runs. No union may have both a number with limits and a tuple of fixed
# length: msgspec 0.22 corrupts memory when it frees such a type.
Kind = Any
RECORDS: dict[type, type[Struct]] = {}  # what is written of an object, by its type
MAKERS: dict[type[Struct], Callable[..., Any]] = {}  # what makes an object of that again
MOST_MOMENTS = 2**20
TINY = 5e-324  # the least number above zero

# --------------------------------------------------------------------------------------------------------- values


class Special:
    """A value that JSON does not have as such, made by the hook of msgspec while it reads."""

    _read: Callable[[Any, Any], Any]  # of what was found and the reading that it is part of

    def __init__(self, found: Any, reading: Any) -> None:
        try:
            self.value = self._read(found, reading)
        except MsgspecError as error:
            raise ValueError(str(error)) from error  # to which msgspec adds the place

    def made(self, reading: Any, where: str) -> Any:
        """What stands for it in the model."""
        return self.value


def special(read: Callable[[Any, Any], Any]) -> Kind:
    """A type of such values, by the function that reads them."""
    return type(read.__name__, (Special,), {"_read": staticmethod(read)})


def number(least: float = -math.inf) -> Kind:
    """A number that may be infinite, or NaN where there is no least one."""

    def number(found: Any, _: Any) -> float:
        value = float(convert(found, float | Literal["Infinity", "-Infinity", "NaN"]))
        if value < least or (math.isnan(value) and least > -math.inf):
            raise ValueError(f"must be at least {least:g}; got {found!r}")
        return value

    return special(number)


def _scales(found: Any, _: Any) -> Any:
    return np.array(convert(found, several(POSITIVE, least=1))) if isinstance(found, list) else convert(found, POSITIVE)


def _limits(found: Any, _: Any) -> Any:
    if found == "fixed":
        return found
    has_rows = isinstance(found, list) and all(isinstance(one, list) for one in found)
    number = float | Literal["Infinity"]
    pairs = np.array(convert(found if has_rows else [found], tuple[tuple[number, number], ...]), dtype=float)
    if not np.all(pairs >= 0):
        raise ValueError(f"must be numbers from 0 on; got {repr(found)[:60]}")
    return pairs if has_rows else tuple(pairs[0].tolist())


def _name(found: Any, reading: Any) -> Any:
    if isinstance(found, list):
        return tuple(_name(one, reading) for one in found)
    if not isinstance(found, str | int | float):
        raise ValueError(f"must be a name; got {repr(found)[:60]}")
    return found


def array(
    *axes: str, kinds: str = "f", allows_nan: bool = False, or_number: bool = False, least: float = -math.inf
) -> Kind:
    """An array, stored beside the JSON; an axis of one name has one length in all of a file, one with _ any length."""

    def array(found: Any, reading: Any) -> Any:
        value = convert(found, float) if or_number and not isinstance(found, dict) else stored_array(found, reading)
        if np.any(value < least):
            raise ValueError(f"must be {'positive' if least == TINY else f'at least {least:g}'}; got {np.min(value):g}")
        return value

    def stored_array(found: Any, reading: Any) -> Any:
        reference: Any = convert(found, ARRAY)
        if reference.array not in reading.arrays:
            raise ValueError(f"must be an array of this file; got {reference.array[:60]!r}")
        stored = reading.arrays[reference.array]
        array = stored.T if reference.order == "F" else stored
        if array.dtype.kind not in kinds or array.ndim != len(axes):
            raise ValueError(f"must be numbers with {len(axes)} axes; got {array.dtype} {array.shape}")
        for axis, length in zip(axes, array.shape, strict=True):
            name, _, more = axis.partition(" + ")
            known = reading.sizes.setdefault(name, length - int(more or 0)) + int(more or 0)
            if not axis.startswith("_") and length != known:
                raise ValueError(f"must have {axis} = {known}; got {length}")
        if array.dtype.kind == "f" and (np.isinf(array).any() or (not allows_nan and np.isnan(array).any())):
            raise ValueError("must be finite; got NaN or infinity")
        return array

    return special(array)


def shared(table: str) -> Kind:
    """Position, in a table of the file, of what several others hold."""

    class Reference(Special):
        def _read(self, found: Any, _: Any) -> int:
            return convert(found, int)

        def made(self, reading: Any, where: str) -> Any:
            return reading.shared(table, self.value, where)

    return Reference


def integer(least: int, most: int = 2**53) -> Kind:
    """A whole number within limits."""
    return Annotated[int, Meta(ge=least, le=most)]


def several(kind: Kind, least: int = 0, most: int | None = None) -> Kind:
    """A tuple of one kind of value."""
    return Annotated[tuple[kind, ...], Meta(min_length=least, max_length=most)]


def each(names: str, kind: Kind) -> dict[str, Kind]:
    """Several fields of one kind."""
    return dict.fromkeys(names.split(), kind)


def record(cls: type, make: Callable[..., Any] | None = None, *, tagged: bool = False, **fields: Kind) -> Kind:
    """An object by its fields, all of them (but for those with a default, in a pair) and no others."""
    listed = [(name, *(kind if isinstance(kind, tuple) else (kind,))) for name, kind in fields.items()]
    tag: dict[str, Any] = {"tag": True, "tag_field": "type"} if tagged else {}
    struct = defstruct(cls.__name__, listed, module=__name__, kw_only=True, forbid_unknown_fields=True, **tag)
    MAKERS[struct], RECORDS[cls] = make or cls, struct
    return struct


ARRAY = defstruct("ARRAY", [("array", str), ("order", Literal["C", "F"])], forbid_unknown_fields=True)
POSITIVE, NOT_NEGATIVE = Annotated[float, Meta(gt=0)], Annotated[float, Meta(ge=0)]
COUNT, NUMBER = integer(0), number()
NAME, SCALES, LIMITS = special(_name), special(_scales), special(_limits)
PER_NODE, POSITIVE_PER_NODE, NODES = array("n_nodes"), array("n_nodes", least=TINY), array("n_nodes", kinds="i")


def require(condition: Any, name: str, expected: str, found: object) -> None:
    """Refuse what does not go together: the name of it, what it must be, and what was found."""
    if not condition:
        raise ValueError(f"{name} must be {expected}; got {found}")


def are_places(indices: Any, n_places: int) -> bool:
    """Whether indices are of some of so many."""
    return bool(np.all((indices >= 0) & (indices < n_places)))


# -------------------------------------------------------------------------------------------------- graph kernels

PAIR: Kind = tuple[number(0.0), number(0.0)]  # type: ignore[misc]
FREE_PAIR: Kind = tuple[number(), number()]  # type: ignore[misc]
BOUNDS = Literal["fixed"] | PAIR
LAPLACIAN = Literal["combinatorial", "normalized", "balanced"]
ON_SPECTRUM: dict[str, Kind] = {"laplacian": LAPLACIAN, "scaled": bool, "tagged": True}
AMPLITUDE: dict[str, Kind] = {"amplitude": POSITIVE, "amplitude_bounds": BOUNDS | None, **ON_SPECTRUM}
STRENGTH: dict[str, Kind] = {"strength": POSITIVE, "strength_bounds": BOUNDS, **AMPLITUDE}

# a function of the user's by its name, and what it was at a few frequencies
RESPONSE = record(
    kernels.Response,
    name=str,
    parameters=several(NUMBER),
    parameter_bounds=several(FREE_PAIR) | None,
    sampled=several(NUMBER),
    amplitude=POSITIVE,
    **ON_SPECTRUM,
)
GraphKernel: Kind = Union[
    record(
        kernels.Polynomial,
        degree=Literal["auto"] | integer(0, HIGHEST_DEGREE),
        constraint=Literal["eigenvalues", "interval"] | None,
        chebyshev=several(float, most=HIGHEST_DEGREE + 1) | None,
        upper=POSITIVE,
        fixed=bool,
        **ON_SPECTRUM,
    ),
    *(record(kernel, **AMPLITUDE) for kernel in (kernels.Identity, kernels.PseudoInverse, kernels.Cosine)),
    *(
        record(kernel, **STRENGTH)
        for kernel in (kernels.GlobalFilter, kernels.LocalAverage, kernels.RegularizedLaplacian, kernels.Diffusion)
    ),
    record(kernels.RandomWalk, steps=integer(1, 10_000), shift=POSITIVE, shift_bounds=BOUNDS, **AMPLITUDE),
    RESPONSE,
    record(kernels.Matern, nu=POSITIVE, length_scale=POSITIVE, length_scale_bounds=BOUNDS, **AMPLITUDE),
    record(kernels.Sum, kernels=several("GraphKernel", least=1), **ON_SPECTRUM),
    record(
        kernels.WithResidual, kernels=several("GraphKernel", least=2, most=2), floor=(NOT_NEGATIVE, 0.0), **ON_SPECTRUM
    ),
]

# -------------------------------------------------------------------------------------------------- input kernels

LENGTH: dict[str, Kind] = {"length_scale": SCALES, "length_scale_bounds": LIMITS, "tagged": True}
InputFormula: Kind = Union[  # noqa: UP007
    record(of_inputs.RBF, **LENGTH),
    record(of_inputs.Matern, nu=number(TINY), **LENGTH),
    record(of_inputs.RationalQuadratic, alpha=POSITIVE, alpha_bounds=LIMITS, **LENGTH),
    record(of_inputs.ExpSineSquared, periodicity=POSITIVE, periodicity_bounds=LIMITS, **LENGTH),
    record(of_inputs.DotProduct, sigma_0=NOT_NEGATIVE, sigma_0_bounds=LIMITS, tagged=True),
    record(of_inputs.WhiteKernel, noise_level=NOT_NEGATIVE, noise_level_bounds=LIMITS, tagged=True),
    record(of_inputs.ConstantKernel, constant_value=NOT_NEGATIVE, constant_value_bounds=LIMITS, tagged=True),
    record(of_inputs.Sum, k1="InputFormula", k2="InputFormula", tagged=True),
    record(of_inputs.Product, k1="InputFormula", k2="InputFormula", tagged=True),
    record(of_inputs.Exponentiation, kernel="InputFormula", exponent=int | float, tagged=True),
]
InputKernel: Kind = Union[
    record(kernels.Learnt, kernel=InputFormula, tagged=True),
    record(kernels.Precomputed, tagged=True),
    *(record(kernel, tagged=True) for kernel in (kernels.Independent, kernels.Unrelated)),
    record(
        kernels.Standardised,
        terms=several(Literal["smooth", "linear"], least=1, most=2),
        tagged=True,
        **each("logarithms centres", array("_parameters")),
        **each("offset spread", array("n_features")),
    ),
]

# ----------------------------------------------------------------------------------------------- graph and signals


def _graph(data: Any, indices: Any, indptr: Any, names: Any, coordinates: Any) -> Graph:
    n_nodes, n_entries = indptr.size - 1, data.size
    # before SciPy sees them, whose own checks let some through that its compiled code stumbles over
    is_whole = n_nodes >= 1 and indices.size == n_entries and indptr[0] == 0 and indptr[-1] == n_entries
    rows = f"{n_entries} weights and {n_nodes} rows"
    require(is_whole and np.all(np.diff(indptr) >= 0), "graph.indptr", "the rows of a sparse matrix", rows)
    require(are_places(indices, n_nodes), "graph.indices", f"between {n_nodes} nodes", "others")
    return Graph(csr_array((data, indices, indptr), shape=(n_nodes, n_nodes)), names, coordinates)


def _complete(**fields: Any) -> Any:
    state = CompleteState(**fields)
    n_stored = state.source.shape[0]
    shapes = (n_stored + 1, n_stored + 1) if state.gram is None else state.gram.shape, state.level.shape
    is_whole = shapes == ((n_stored + 1, n_stored + 1), (n_stored + 1,)) and are_places(state.rows, n_stored)
    require(is_whole, "signals", f"of {n_stored} signals", f"arrays of shapes {shapes}")
    return state.signals


def _units(**fields: Any) -> Units:
    units = Units(**fields)
    require(np.all(units.divisor > 0), "units.relative", "positive", "others")
    return units


GRAPH = record(
    Graph,
    _graph,
    data=array("_entries"),
    indices=array("_entries", kinds="i"),
    indptr=array("n_nodes + 1", kinds="i"),
    names=several(NAME) | None,
    coordinates=array("n_nodes", "_dimensions") | None,
)
SCALING = Literal["global", "node"] | None
OFFSET = array("n_nodes", or_number=True)
READ_AS = record(ReadAs, center=SCALING, scale=SCALING)
OF_SIGNALS: dict[str, Kind] = {
    "units": record(
        Units,
        _units,
        offset=OFFSET,
        spread=POSITIVE,
        relative=PER_NODE | None,
        offset_variance=(array("n_nodes", least=0.0) | None, None),
        signal_scales=(array("_scaled_signals") | None, None),
    ),
    "read_as": READ_AS | None,
    "tagged": True,
}
SignalsState: Kind = Union[  # noqa: UP007
    record(
        CompleteState,
        _complete,
        source=array("_stored", "n_nodes", kinds="fiu"),
        offset=OFFSET,
        divisor=array("n_nodes", or_number=True, least=TINY),
        gram=array("_and_ones", "_and_ones") | None,  # null where signals are in memory
        rounding=NOT_NEGATIVE,
        rows=array("n_signals", kinds="i"),
        level=array("_and_ones"),
        recentres=SCALING,
        **OF_SIGNALS,
    ),
    record(
        IncompleteState,
        lambda **fields: IncompleteState(**fields).signals,
        values=array("n_signals", "n_nodes", allows_nan=True),
        is_centred_by_node=bool,
        precision=Literal["float32", "float64"],
        **OF_SIGNALS,
    ),
]

# ----------------------------------------------------------------------------------------------- tasks and models

MOMENTS = integer(3, MOST_MOMENTS)
DEVICE = Literal["cpu", "cuda"] | None
SETTINGS = record(  # null where spectra are exact, which leaves nothing to set
    Chebyshev,
    tolerance=POSITIVE,
    **each("n_moments max_moments", MOMENTS),
    n_probes=Literal["exact"] | integer(4, MOST_MOMENTS),
    random_state=COUNT,
    device=(DEVICE, None),
)


PARAMETER = POSITIVE | None  # of a likelihood; null where it is still to be learnt
LIKELIHOOD: Kind = Union[
    *(record(kind, tagged=True) for kind in (likelihoods.Poisson, likelihoods.Bernoulli, likelihoods.Binomial)),
    record(likelihoods.Gaussian, scale=PARAMETER, tagged=True),
    record(likelihoods.StudentT, freedom=PARAMETER, scale=PARAMETER, tagged=True),
    record(likelihoods.NegativeBinomial, dispersion=PARAMETER, tagged=True),
]
NOISE = POSITIVE | several(POSITIVE, least=2, most=2) | None  # known, or the bounds of what is learnt


def _effect_prior(mean: Any, precision: Any) -> EffectPrior:
    values = np.linalg.eigvalsh(precision)
    is_precision = np.allclose(precision, precision.T) and values.min(initial=0.0) >= -1e-9 * values.max(initial=0.0)
    require(bool(is_precision), "precision", "symmetric and not negative", "another")
    return EffectPrior(mean, precision)


TASK = record(
    Task,
    input_kernel=InputKernel,
    inputs=array("n_signals", "n_features"),
    signals=shared("signals"),
    noise_variance=NOISE,
    prior=Literal["weak"] | None,
    spectrum=SETTINGS | None,
    noise_floor=(POSITIVE | None, None),  # as a share of the variance, and device: up to version 2
    device=(DEVICE, None),
    carried=record(CarryColumns, columns=NODES, offset=PER_NODE) | None,
    observed_by=(  # as they are up to version 5
        record(
            ObservedBy,
            likelihood=LIKELIHOOD,
            beside=array("n_signals", "n_nodes", least=TINY),
            columns=array("n_effects", "n_signals", "n_nodes"),
            effects=(  # up to version 6 their prior follows from the values
                record(EffectPrior, _effect_prior, mean=array("n_effects"), precision=array("n_effects", "n_effects"))
                | None,
                None,
            ),
        )
        | None,
        None,
    ),
    typical_variance=(POSITIVE | None, None),
)

# what the inputs and signals of a candidate's task are of the user's; those themselves where it is null
TRANSFORMATION: Kind = Union[  # noqa: UP007
    record(Changes, columns=NODES, factor=float, tagged=True),
    record(
        Logarithms,
        spread=POSITIVE,
        highest=POSITIVE,
        columns=array("n_logarithms", kinds="i"),
        input_spreads=array("n_logarithms", least=TINY),
        tagged=True,
    ),
]


def _candidate(**fields: Any) -> Candidate:
    candidate = Candidate(**fields)
    columns, n_features = getattr(candidate.transformation, "columns", np.empty(0)), candidate.task.inputs.shape[1]
    require(are_places(columns, n_features), "transformation.columns", f"columns of {n_features} inputs", "others")
    rows, n_signals = candidate.learnt_from, candidate.task.signals.shape[0]
    are_some = rows is None or (rows.size and are_places(rows, n_signals))
    require(are_some, "learnt_from", f"some of {n_signals} signals", "others")
    return candidate


def _draws(**fields: Any) -> Draws:
    draws = Draws(**fields)
    lengths = [len(draws.models)] + [len(one) for one in (draws.weights, draws.levels) if one is not None]
    are_shares = len(set(lengths)) == 1 and np.isclose(draws.shares.sum(), 1)
    require(are_shares, "weights", f"shares of {lengths[0]} models, with a row of levels each", "others")
    return draws


def _shrinkage(**fields: Any) -> Shrinkage:
    shrinkage = Shrinkage(**fields)
    n_rows, n_nodes = shrinkage.root.shape
    of_how_many = f"of {shrinkage.n_signals} signals on {n_nodes} nodes"
    require(min(shrinkage.n_signals, n_nodes) <= n_rows <= n_nodes, "root", of_how_many, f"{n_rows} rows")
    try:
        root = shrinkage.root_of_mean
    except np.linalg.LinAlgError as error:
        raise ValueError("root must be of a covariance; got another matrix") from error
    require(np.all(np.isfinite(root)), "root", "of a finite covariance", "another matrix")
    return shrinkage


SPECTRUM = record(Spectrum, laplacian=LAPLACIAN, scaled=bool, n_moments=MOMENTS | None)
MODEL = record(
    GraphGP,
    spectrum=SPECTRUM,  # which one: what was found of it is stored once
    graph_kernel=GraphKernel,
    input_kernel=InputKernel,
    noise_variance=NOT_NEGATIVE,
    carry=record(
        CarryFilter,
        chebyshev=array("n_carried_terms"),
        upper=POSITIVE,
        covariance=array("n_carried_terms", "n_carried_terms") | None,
    )
    | None,
    shrinkage=(  # learnt from the signals of files without it
        record(
            Shrinkage,
            _shrinkage,
            worth=POSITIVE,
            root=array("_root_rows", "n_nodes"),
            profile=POSITIVE_PER_NODE,
            n_signals=integer(0),
            freedom=number(2.0 + 1e-9),
        )
        | None,
        None,
    ),
    mean_amplitude=(POSITIVE, 1.0),  # one up to version 3
    points=(array("_points", kinds="i") | None, None),
    likelihood=(LIKELIHOOD | None, None),
)
FIT = record(
    Fit,
    lambda outcome, **fields: Fit(outcome=Outcome[outcome], **fields),
    model=shared("models"),
    **each("log_likelihood log_posterior", NUMBER),
    certificate=record(
        Certificate,
        active=several(str),
        multipliers=several(NUMBER),
        **each("stationarity feasibility complementarity lift", NUMBER),
    ),
    outcome=Literal[*(outcome.name for outcome in Outcome)],
    detail=str,
    stages=several(record(Stage, name=str, log_posterior=NUMBER, n_evaluations=COUNT)),
    errors=record(Errors, **each("truncation rounding probes limit", NUMBER)),
    method=str,
    restarts=several(NUMBER),
)

# ------------------------------------------------------------------------------------------------------ estimators

# Fields that came later have a default. So have parameters up to version 2, which are turned into those of today.

SOLVER: Kind = Union[  # noqa: UP007
    record(
        Sqp,
        lambda tolerance_nats, enough, **fields: Sqp(tolerance_nats=tolerance_nats or enough, **fields),
        max_iterations=integer(1),
        tolerance_nats=(POSITIVE | None, None),
        enough=(POSITIVE | None, None),  # its name up to version 2
        n_restarts=COUNT,
        random_state=COUNT,
        tagged=True,
    ),
    record(
        Lagrangian,
        limits=record(Limits, ascent=COUNT, dual=COUNT, descent=COUNT),
        literal=bool,
        multiplier=Literal["random"] | POSITIVE,
        dual_rate=POSITIVE,
        random_state=COUNT,
        tagged=True,
    ),
]
ANY_INTEGER = integer(-(2**31))
FOLDS: dict[str, Kind] = {"n_folds": integer(2), "n_draws": COUNT | None, "n_jobs": ANY_INTEGER | None}
INPUT_KERNEL = Literal["precomputed"] | InputFormula | None
OLD_PARAMETERS: dict[str, Kind] = {
    name: (kind | None, None) for name, kind in {"kernel": INPUT_KERNEL, "max_iterations": integer(1), **FOLDS}.items()
}
PARAMETERS = record(
    dict,
    graph=bool,  # whether there is one: it is that of the file
    graph_kernel=GraphKernel | several(GraphKernel) | None,
    input_kernel=(INPUT_KERNEL, None),
    noise_variance=NOISE,
    prior=Literal["weak"] | None,
    residual=Literal["auto"] | GraphKernel | None,
    carry=Literal["auto", "lagged"] | several(NAME) | None,
    solver=Literal["sqp", "lagrangian"] | SOLVER | None,
    spectrum=Literal["auto", "exact", "chebyshev"] | SETTINGS | None,
    stacking=(record(Stacking, **FOLDS) | None, None),
    random_state=COUNT | None,
    verbose=ANY_INTEGER,
    likelihood=(Literal[*likelihoods.NAMED] | LIKELIHOOD, "gaussian"),
    **each("center scale", Literal["auto", "global", "node"] | None),
    noise_floor=(POSITIVE | None, None),
    device=(DEVICE, None),
    **OLD_PARAMETERS,
)
# libraries by the names that may be loaded to answer with their tables, and no others
LAYOUT = record(Layout, library=Literal[WRITTEN], dims=tuple[str, str] | None, is_turned=bool)
CLOCK = Literal["numbers", "dates"] | None
RECIPE = record(kernels.InputRecipe, time=CLOCK, lag=integer(1) | None, columns=several(str))
FITTED = record(
    SimpleNamespace,
    names=several(NAME) | None,
    columns=NODES | None,
    copies=array("_given", kinds="i"),
    n_features_in=COUNT | None,
    feature_names_in=several(str) | None,
    log_marginal_likelihood=NUMBER,
    **each("is_flat is_in_memory", bool),
    **each("n_evaluations n_stand_ins", (COUNT | None, None)),  # up to version 2: the fits and the draws say it
    center=OFFSET,
    scale=PER_NODE,
    layout=(LAYOUT | None, None),
    output=(Literal[("default", "numpy", *LIBRARIES)] | None, None),
    input_recipe=(RECIPE | None, None),
    effects=(several(str), ()),  # names of fixed effects
    date_columns=(several(COUNT), ()),  # none up to version 5
    labels=(several(str) | None, None),  # of the rows: from version 6 on
)

# --------------------------------------------------------------------------------------------------- all of a file

FILE = record(
    SimpleNamespace,
    graph=GRAPH,
    shared=record(dict, signals=several(SignalsState), tasks=several(TASK), models=several(MODEL)),
    eigenpairs=several(
        record(
            Eigenpairs,
            lambda laplacian, **fields: (laplacian, Eigenpairs(**fields)),
            laplacian=LAPLACIAN,
            eigenvalues=PER_NODE,
            eigenvectors=array("n_nodes", "n_nodes"),
        )
    ),
    densities=several(
        record(
            DensityState,
            lambda laplacian, **fields: (laplacian, DensityState(**fields)),
            laplacian=LAPLACIAN,
            largest_eigenvalue=POSITIVE,
            residual=NOT_NEGATIVE,
            moments=array("_moments", "_probes") | None,
        )
    ),
    candidates=several(
        record(
            Candidate,
            _candidate,
            task=shared("tasks"),
            kernel=GraphKernel,
            shrunk=bool,
            name=str,
            transformation=(TRANSFORMATION | None, None),
            learnt_from=(array("_learnt_from", kinds="i") | None, None),  # all signals up to version 4
        ),
        least=1,
    ),
    learnt=record(
        SimpleNamespace,
        **each("raw_fits fits", several(FIT)),  # as many as candidates, and draws too
        weights=array("n_members"),
        draws=several(
            record(
                Draws,
                _draws,
                models=several(shared("models"), least=1),
                n_stand_ins=COUNT,
                weights=(array("_models", least=0.0) | None, None),
                levels=(array("_models", "n_nodes") | None, None),
            )
        ),
        tried=several(record(Tried, name=str, score=NUMBER, weight=NOT_NEGATIVE)),
        order=(record(TimeOrder, factor=float, **each("n_following n_rows", COUNT)) | None, None),
        filling=(array("n_members") | None, None),
        note=(str, ""),
    ),
    estimator=record(SimpleNamespace, parameters=PARAMETERS, fitted=FITTED),
)
