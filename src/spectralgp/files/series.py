"""Fitted forecasters as JSON and arrays, and forecasters made of those again: what was learnt, and no rows."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Literal, Union

import numpy as np
from numpy.typing import NDArray

from spectralgp import states
from spectralgp._basics.tables import LIBRARIES
from spectralgp.files.models import parts_made, parts_of, parts_written
from spectralgp.files.schema import (
    COUNT,
    GRAPH,
    LAYOUT,
    NAME,
    NODES,
    NOT_NEGATIVE,
    NUMBER,
    PER_NODE,
    POSITIVE,
    POSITIVE_PER_NODE,
    RECORDS,
    TINY,
    GraphKernel,
    Kind,
    array,
    each,
    integer,
    record,
    require,
    several,
)
from spectralgp.forecasting.backtests import PERSISTENCE, SEASONAL, Backtest
from spectralgp.forecasting.mean import Mean, Season
from spectralgp.forecasting.model import GRAPH as ON_GRAPH
from spectralgp.forecasting.model import NODES as NODES_ALONE
from spectralgp.forecasting.model import SEPARABLE, SeriesModel
from spectralgp.forecasting.stack import LAGS, Member, Stack, Trials
from spectralgp.forecasting.times import Calendar, Numbers
from spectralgp.graphs import Graph
from spectralgp.learning import Certificate, Outcome, Stage
from spectralgp.scores import JUDGED_LEVELS
from spectralgp.time import Filtered, ModalProcess, SeriesFit
from spectralgp.time.learning import Dynamics

Json = Any
OF_MODEL = ("clock", "mean", "scales", "recent", "last", "n_steps", "trials", "components", "notes")
OF_BACKTEST = ("horizons", "n_origins", "coverage", "log_density", "node_rmse", "how", "coverages", "bias")

COMPONENT: Kind = Union[  # noqa: UP007
    record(states.Matern, smoothness=POSITIVE, tagged=True),
    record(states.Oscillator, period=POSITIVE, n_harmonics=integer(1, 1000), tagged=True),
]
COMPONENTS = several(COMPONENT, least=1)
CLOCK: Kind = Union[  # noqa: UP007
    record(Numbers, start=float, step=POSITIVE, tagged=True),
    record(
        Calendar,
        start=integer(-(2**62), 2**62),
        step=POSITIVE,
        zone=str | None,
        by=Literal["elapsed", "clock", "months", "month ends"],
        tagged=True,
    ),
]


def _mean(**fields: Any) -> Mean:
    mean = Mean(**fields)
    n_columns = sum(2 * len(season.harmonics) for season in mean.seasons) + mean.n_exogenous
    require(len(mean.coefficients) == n_columns, "coefficients", f"{n_columns} rows", len(mean.coefficients))
    return mean


MEAN = record(
    Mean,
    _mean,
    clock=CLOCK,
    seasons=several(record(Season, name=Literal["", "day", "week", "year"], period=POSITIVE, harmonics=several(COUNT))),
    levels=PER_NODE,
    coefficients=array("_columns", "n_nodes"),
    x_center=array("n_exogenous"),
    x_scale=array("n_exogenous", least=TINY),
    **each("penalty x_penalty", NOT_NEGATIVE),
)


def _process(**fields: Any) -> ModalProcess:
    process = ModalProcess(**fields)
    shape = (len(process.components), process.own.size)
    for name in ("powers", "rates"):
        found = getattr(process, name).shape
        require(found == shape, name, f"of shape {shape}", found)
    return process


PROCESS = record(
    ModalProcess,
    _process,
    components=COMPONENTS,
    powers=array("_components", "n_nodes", least=0.0),
    rates=array("_components", "n_nodes", least=TINY),
    own=POSITIVE_PER_NODE,
    basis=array("n_nodes", "n_nodes") | None,
)
DYNAMICS = record(
    Dynamics,
    components=COMPONENTS,
    **each("powers rates", several(GraphKernel, least=1)),
    residuals=several(GraphKernel, most=1),
    **each("noise_variance least_rate", POSITIVE),
)
FIT = record(
    SeriesFit,
    SimpleNamespace,  # the process is the member's
    dynamics=DYNAMICS,
    **each("log_likelihood value", NUMBER),
    certificate=RECORDS[Certificate],
    outcome=Literal[*(outcome.name for outcome in Outcome)],
    detail=str,
    stages=several(RECORDS[Stage]),
    precision=array("_parameters", "_parameters"),
)


def _member(name: str, process: ModalProcess, fit: Any, **fields: Any) -> tuple[Member, Filtered]:
    n_states, n_nodes = sum(one.n_states for one in process.components), process.own.size
    sizes = {"state": (n_states, n_nodes), "covariance": (n_states, n_states, n_nodes)}
    for what, shape in sizes.items():
        require(fields[what].shape == shape, what, f"of shape {shape}", fields[what].shape)
    if fields["unknown"] is None:
        fields["unknown"] = np.empty((0, n_states, n_nodes))
    expected, found = f"of shape (n, {n_states}, {n_nodes})", fields["unknown"].shape
    require(found[1:] == (n_states, n_nodes), "unknown", expected, found)
    learnt = None
    if fit is not None:
        outcome, n_parameters = Outcome[fit.outcome], fit.dynamics.theta.size
        expected = f"of shape ({n_parameters}, {n_parameters})"
        require(fit.precision.shape == (n_parameters, n_parameters), "precision", expected, fit.precision.shape)
        learnt = SeriesFit(process=process, **(vars(fit) | {"outcome": outcome}))
    return Member(name, process, learnt), Filtered(process, **fields)


MEMBER = record(
    type("MemberWithState", (), {}),
    _member,
    name=str,
    process=PROCESS,
    fit=FIT | None,
    **each("time log_likelihood", float),
    state=array("_states", "n_nodes"),
    covariance=array("_states", "_states", "n_nodes"),
    unknown=(array("_unknown", "_states", "n_nodes") | None, None),
)
TRIALS = record(
    Trials,
    names=several(Literal[ON_GRAPH, SEPARABLE, NODES_ALONE], least=1),
    weights=array("n_tried"),
    horizons=array("n_tried_horizons", kinds="i"),
    errors=array("n_tried_horizons", "n_tried", allows_nan=True),
)
BY_HORIZON = array("n_horizons")
STACK = record(
    Stack,
    SimpleNamespace,  # members are beside it in the file
    weights=array("n_members"),
    spread=COUNT,
    horizons=BY_HORIZON,
    drift=array("_drifting", "_lags", "n_nodes"),
    drifting=array("n_horizons", kinds="i"),
    inflations=array("n_horizons", "n_nodes", least=TINY),
    shares=BY_HORIZON,
    correlations=array("_correlated", "n_nodes", "n_nodes"),
)


def _backtest(names: tuple[str, ...], rmse: Any, crps: Any, **fields: Any) -> Backtest:
    found, n_levels = fields["coverages"], len(JUDGED_LEVELS)
    require(found is None or len(found) == n_levels, "coverages", f"of {n_levels} levels", np.shape(found))
    return Backtest(rmse=dict(zip(names, rmse, strict=True)), crps=dict(zip(names, crps, strict=True)), **fields)


BACKTEST = record(
    type("BacktestOfRivals", (), {}),
    _backtest,
    names=several(Literal["model", PERSISTENCE, SEASONAL], least=1),
    **each("rmse crps", array("n_rivals", "n_scored", allows_nan=True)),
    **each("horizons n_origins", array("n_scored", kinds="i")),
    **each("coverage log_density", array("n_scored", allows_nan=True)),
    node_rmse=array("n_scored", "n_nodes", allows_nan=True),
    how=str,
    coverages=(array("_levels", "n_scored", allows_nan=True) | None, None),  # from version 6 on
    bias=(array("n_scored", allows_nan=True) | None, None),
)
AUTO = Literal["auto"]
PARAMETERS = record(
    type("ForecasterParameters", (), {}),
    dict,
    graph=bool,
    components=AUTO | COMPONENTS,
    seasons=AUTO | float | several(float) | None,
    calendar=AUTO | several(str) | None,
    **each("residual drift", AUTO | None),
    verbose=integer(-(2**31)),
)
FILE = record(
    type("ForecasterFile", (), {}),
    SimpleNamespace,
    kind=Literal["forecaster"],
    graph=GRAPH,
    parameters=PARAMETERS,
    names=several(NAME) | None,
    columns=NODES | None,
    is_flat=bool,
    layout=LAYOUT | None,
    output=Literal[("numpy", *LIBRARIES)] | None,
    time_column=str | None,
    exogenous_names=(several(NAME) | None, None),  # from version 7 on
    backtest=BACKTEST | None,
    clock=CLOCK,
    mean=MEAN,
    scales=POSITIVE_PER_NODE,
    recent=array("_lags_kept", "n_nodes"),
    last=float,
    n_steps=COUNT,
    trials=TRIALS | None,
    components=COMPONENTS,
    notes=several(str),
    stack=STACK,
    members=several(MEMBER, least=1),
)


def series_written(
    model: SeriesModel, backtest: Backtest | None, graph: Graph, estimator: dict[str, Any]
) -> tuple[Json, dict[str, NDArray[Any]]]:
    """A forecaster as JSON, and the arrays that it names: of a size that does not grow with the rows it has seen.

    `estimator` has ``parameters`` and the form of answers, by the fields of the file.
    """
    members = [
        {
            **{name: getattr(member, name) for name in ("name", "process", "fit")},
            **{name: getattr(seen, name) for name in ("time", "log_likelihood", "state", "covariance")},
            "unknown": seen.unknown if len(seen.unknown) else None,
        }
        for member, seen in zip(model.stack.members, model.states, strict=True)
    ]
    scores = None
    if backtest is not None:
        scores = {name: getattr(backtest, name) for name in OF_BACKTEST} | {"names": tuple(backtest.rmse)}
        scores |= {"rmse": np.array(list(backtest.rmse.values())), "crps": np.array(list(backtest.crps.values()))}
    parts = {
        **estimator,
        "kind": "forecaster",
        "graph": parts_of(graph),
        "backtest": scores,
        "stack": model.stack,
        "members": members,
        **{name: getattr(model, name) for name in OF_MODEL},
    }
    return parts_written(parts, FILE)


def series_made(state: Json, arrays: Mapping[str, NDArray[Any]]) -> tuple[SeriesModel, SimpleNamespace]:
    """The model that `series_written` wrote, and the file's other fields; a ValueError says what is wrong with it."""
    made = parts_made(state, arrays, FILE)
    members, filtered = zip(*made.members, strict=True)
    n_members, n_nodes = len(members), made.graph.n_nodes
    stack = made.stack
    n_drifting, places = len(stack.drift), np.asarray(stack.drifting)
    are_weights = stack.weights.size == n_members and np.all(stack.weights >= 0) and np.isclose(stack.weights.sum(), 1)
    require(are_weights, "stack.weights", f"{n_members} that add up to one", "others")
    require(stack.spread < n_members, "stack.spread", f"below {n_members}", stack.spread)
    require(np.all((places >= -1) & (places < n_drifting)), "stack.drifting", f"below {n_drifting}", "others")
    require(stack.drift.shape[1] == LAGS * n_nodes, "stack.drift", f"of {LAGS} lags", stack.drift.shape)
    require(len(stack.correlations) in (0, len(stack.horizons)), "stack.correlations", "one per horizon", "others")
    require(np.all(np.diff(stack.horizons) > 0), "stack.horizons", "increasing", "others")
    require(made.recent.shape == (LAGS, n_nodes), "recent", f"{LAGS} rows", made.recent.shape)
    fields = {name: getattr(made, name) for name in OF_MODEL}
    return SeriesModel(stack=Stack(members=tuple(members), **vars(stack)), states=tuple(filtered), **fields), made
