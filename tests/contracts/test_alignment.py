"""What comes beside signals belongs to nodes and rows by name: other orders give the same answers, or an error."""

import copy
import inspect
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import xarray as xr
from sklearn.model_selection import cross_val_score

from spectralgp import Graph, GraphGPClassifier, GraphGPForecaster, GraphGPRegressor, Polynomial, Stacking
from spectralgp.datasets import load_sids
from spectralgp.scores import coverage_scorer, crps_scorer, log_density_scorer

NAMES = list("abcde")
GRAPH = Graph.from_edges([(NAMES[place], NAMES[(place + 1) % 5]) for place in range(5)])
LABELS = [f"row {letter}" for letter in "ABCDEFGH"]
RNG = np.random.default_rng(0)
SAME = 1e-6  # relative: fits to permuted data, as far as they converge


def frame(values: Any, labels: Any = LABELS, columns: Any = NAMES) -> pd.DataFrame:
    return pd.DataFrame(np.asarray(values), index=list(labels)[: len(values)], columns=list(columns))


X = frame(RNG.standard_normal((8, 2)), columns=["wind", "rain"])
EXPOSURE = frame(RNG.uniform(5, 500, (8, 5)))
TRIALS = frame(RNG.integers(2, 30, (8, 5)))
COVARIATES = pd.DataFrame({"height": RNG.standard_normal(5), "age": RNG.standard_normal(5)}, index=NAMES)
LATENT = np.sin(X[["wind"]].to_numpy() + np.arange(5))
COUNTS = frame(RNG.poisson(0.1 * np.exp(0.5 * LATENT) * EXPOSURE)).astype(float)
VALUES = frame(LATENT + 0.3 * RNG.standard_normal((8, 5)))
SUCCESSES = frame(RNG.binomial(TRIALS, 0.4)).astype(float)
NOISE = frame(RNG.uniform(0.05, 0.2, (8, 5)))
WEIGHTS = frame(RNG.uniform(1, 5, (8, 5)))
NEW = frame([[0.3, 0.1], [1.0, -1.0], [0.2, 2.0]], ["n1", "n2", "n3"], X.columns)


def new(table: pd.DataFrame) -> pd.DataFrame:
    """The first three rows as those of new signals."""
    return table[:3].set_axis(NEW.index)


def with_missing_values(table: pd.DataFrame) -> pd.DataFrame:
    return new(table).mask(np.arange(15).reshape(3, 5) % 4 == 0)


# ------------------------------------------------------------------------------------------------------- regression


@dataclass(frozen=True)
class Case:
    """A kind of model: its values, and what stands beside them."""

    likelihood: str
    values: pd.DataFrame
    argument: str | None
    beside: Any = None

    def arguments(self, of_new: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = {"covariates": COVARIATES}
        if self.argument is not None:
            found[self.argument] = new(self.beside) if of_new else self.beside
        return found


CASES = {
    "counts": Case("poisson", COUNTS, "exposure", EXPOSURE),
    "proportions": Case("binomial", SUCCESSES, "trials", TRIALS),
    "known noise": Case("gaussian", VALUES, "noise_variance", NOISE),
    "weights": Case("gaussian", VALUES, "weights", WEIGHTS),
}


@cache
def fitted(name: str) -> GraphGPRegressor:
    case = CASES[name]
    model = GraphGPRegressor(GRAPH, Polynomial(1), likelihood=case.likelihood, prior=None)  # nothing is averaged
    return model.fit(X, case.values, **case.arguments())


def questions(name: str) -> dict[str, dict[str, Any]]:
    """Data arguments of every method, by name."""
    case = CASES[name]
    beside, holed, whole = case.arguments(of_new=True), with_missing_values(case.values), new(case.values)
    observed = {"observed": holed}
    if case.argument in ("exposure", "trials"):
        observed["observed_exposure"] = new(case.beside)
    return {
        "fit": {"X": X, "Y": case.values, **case.arguments()},
        "predict": {"X": NEW, **observed, **beside},
        "sample_y": {"X": NEW, **observed, **beside},
        "log_predictive_density": {"X": NEW, "Y": whole, "observed": holed, **beside},
        "score": {"X": NEW, "y": whole, "sample_weight": pd.Series([1.0, 2.0, 5.0], NEW.index), **beside},
        "impute": {"X": NEW, "Y": holed, **beside},
        "condition_on": {"X": NEW, "Y": whole, **beside},
        "has_seen": {"X": X, "Y": case.values},
        "report": {},  # as `impute` reads it
    }


OPTIONS = {  # arguments that are no data
    "self", "return_std", "return_cov", "include_noise", "nodes", "return_quantiles", "n_samples", "random_state",
    "joint", "by", "path", "title", "aspect", "horizon", "horizons", "eigenvalues", "which", "graph", "theta",
    "eval_gradient", "params", "deep", "predict", "args",
}  # fmt: skip
BESIDE = {"exposure", "trials", "noise_variance", "weights"}


def other_orders(given: Any) -> dict[str, Any]:
    """A table in other orders of its rows and columns."""
    turned = given.index[np.r_[len(given) - 1, 0 : len(given) - 1]]
    found = {"rows": given.loc[turned]}
    if isinstance(given, pd.DataFrame):
        found["columns"] = given[given.columns[::-1]]
    return found


def answer_of(model: Any, method: str, arguments: dict[str, Any]) -> Any:
    if method == "fit":
        model = sklearn.clone(model).fit(**arguments)
        return model.predict(NEW, covariates=COVARIATES)
    found = getattr(model, method)(**arguments, **({"include_noise": True} if method == "sample_y" else {}))
    return found.predict(NEW) if method == "condition_on" else found


def same(found: Any, expected: Any) -> bool:
    """Whether answers are the same, in the order of their own names."""
    if isinstance(expected, tuple):
        return all(same(one, other) for one, other in zip(found, expected, strict=True))
    if isinstance(expected, pd.DataFrame):
        found = found.loc[expected.index, expected.columns]
    return bool(np.allclose(np.asarray(found), np.asarray(expected), rtol=SAME, atol=SAME))


TURNED = [
    (name, method, argument, order)
    for name in CASES
    for method, arguments in questions(name).items()
    for argument, given in arguments.items()
    for order in other_orders(given)
]


@pytest.mark.parametrize(("name", "method", "argument", "order"), TURNED)
def test_other_orders_of_an_argument_give_the_same_answer_or_an_error(name, method, argument, order):
    model, arguments = fitted(name), questions(name)[method]
    expected = answer_of(model, method, arguments)
    turned = arguments | {argument: other_orders(arguments[argument])[order]}
    try:
        found = answer_of(model, method, turned)
    except ValueError as error:
        # rows of X and Y are paired, and the order of features is scikit-learn's to check
        assert "must have their rows in the same order" in str(error) or "Feature names" in str(error)  # noqa: PT017
        assert argument in ("X", "Y", "y", "observed")
        return
    if argument in ("X", "Y", "y", "observed") and order == "rows" and method != "has_seen":
        pytest.fail("rows in another order than X must be refused")
    assert same(found, expected)


@pytest.mark.parametrize("estimator", [GraphGPRegressor, GraphGPForecaster, GraphGPClassifier])
def test_every_argument_of_every_method_is_tried_in_other_orders(estimator):
    asked = {
        GraphGPRegressor: [questions(name) for name in CASES],
        GraphGPForecaster: [SERIES_QUESTIONS],
        GraphGPClassifier: [CLASS_QUESTIONS],
    }[estimator]
    for method in (name for name in vars(estimator) if not name.startswith("_")):
        function = getattr(estimator, method)
        if (
            not callable(function)
            or method.startswith("set_")
            or method in ("save", "transfer", "is_later", "times_ahead")
        ):
            continue
        data = set(inspect.signature(function).parameters) - OPTIONS
        tried = set().union(*(one.get(method, {}) for one in asked))
        if method == "report":
            assert data <= {"X", "Y", "covariates", *BESIDE}
            continue
        assert data <= tried, f"{method}: {data - tried}"


# --------------------------------------------------------------------------------------------------- several kinds


@pytest.mark.parametrize("kind", ["Series", "xarray", "dict of Series", "turned xarray"])
def test_names_of_any_library_are_matched(kind):
    turned = NAMES[::-1]
    exposure, table = pd.Series([1.0, 10, 100, 1000, 1e4], NAMES), COVARIATES.loc[turned]
    expected = GraphGPRegressor(GRAPH, Polynomial(1), likelihood="poisson").fit(
        X.to_numpy(), COUNTS.to_numpy(), exposure=exposure.to_numpy(), covariates=COVARIATES.to_numpy()
    )
    beside, covariates = exposure[turned], table
    if kind != "Series":
        beside = xr.DataArray(beside.to_numpy(), dims="node", coords={"node": turned})
        covariates = xr.DataArray(table.to_numpy(), dims=("node", "of"), coords={"node": turned, "of": list(table)})
    if kind == "turned xarray":
        covariates = covariates.T
    if kind == "dict of Series":
        covariates = {name: table[name] for name in table}
    model = GraphGPRegressor(GRAPH, Polynomial(1), likelihood="poisson")
    model.fit(X, COUNTS, exposure=beside, covariates=covariates)
    np.testing.assert_allclose(model.coefficients_.values, expected.coefficients_.values, rtol=1e-6)
    assert model.coefficients_.names == ("intercept", "height", "age")
    found = model.predict(NEW, exposure=beside)
    np.testing.assert_allclose(found, expected.predict(NEW.to_numpy(), exposure=exposure.to_numpy()), rtol=1e-6)


def test_columns_of_polars_are_matched_and_its_series_go_by_position():
    expected = fitted("counts").predict(NEW, exposure=new(EXPOSURE))
    turned = pl.DataFrame(new(EXPOSURE)[NAMES[::-1]].reset_index(drop=True))
    np.testing.assert_allclose(fitted("counts").predict(NEW, exposure=turned), expected)
    one = fitted("counts").predict(NEW, exposure=pl.Series([1.0, 2.0, 3.0, 4.0, 5.0]))
    np.testing.assert_allclose(one, fitted("counts").predict(NEW, exposure=np.arange(1.0, 6.0)))


@pytest.mark.parametrize(
    ("argument", "given", "message"),
    [
        ("exposure", pd.Series(np.ones(5), list("abcdX")), r"one value for each node.*'X' belong.*'e' are missing"),
        ("exposure", pd.Series(np.ones(4), list("abcd")), r"one value for each node.*'e' are missing"),
        ("exposure", frame(np.ones((3, 5)), NEW.index, list("abcdX")), r"'X' belong to no node, while 'e'"),
        ("exposure", frame(np.ones((3, 5)), ["n1", "n2", "n4"]), r"one row for each signal.*'n4'.*'n3' are missing"),
        ("exposure", np.ones(4), r"one for each of the 5 nodes, or have the shape"),
        ("covariates", COVARIATES.rename(index={"a": "X"}), r"covariates must have one row for each node.*'X'"),
        ("covariates", COVARIATES.rename(columns={"age": "size"}), r"covariates must be those of fit"),
        ("observed_exposure", 3.0, "observed_exposure must be left out without observed"),
    ],
)
def test_names_that_do_not_match_are_refused_with_both_sets(argument, given, message):
    with pytest.raises(ValueError, match=message):
        fitted("counts").predict(NEW, **{argument: given})


def test_names_are_refused_where_nodes_have_none():
    ring = Graph.from_edges([(node, (node + 1) % 5) for node in range(5)])
    model = GraphGPRegressor(ring, Polynomial(1), likelihood="poisson")
    with pytest.raises(ValueError, match="exposure must have one value for each node"):
        model.fit(X.to_numpy(), COUNTS.to_numpy(), exposure=pd.Series(np.ones(5), list("abcde")))


def test_masks_of_nodes_are_matched_by_name():
    mask = pd.Series([True, False, True, False, False], list("ebacd"))  # e and a
    found = fitted("counts").predict(NEW, nodes=mask)
    assert list(found.columns) == ["a", "e"]
    pd.testing.assert_frame_equal(found, fitted("counts").predict(NEW)[["a", "e"]])
    assert GRAPH.subgraph(mask).names == ("a", "e")
    with pytest.raises(ValueError, match="names"):
        GRAPH.subgraph(mask.rename({"a": "X"}))


# -------------------------------------------------------------------------------------- exposures of what was observed


def test_counts_of_training_signals_keep_their_exposures():
    """The finding `exposure_of_observed`: rates of 12.5 per thousand where 1.85 is right."""
    data = load_sids()
    thousands, periods = data.births / 1000, np.array([[0.0], [1.0]])
    model = GraphGPRegressor(data.graph, likelihood="poisson").fit(periods, data.deaths, exposure=thousands)
    right = model.predict(periods, observed=data.deaths, exposure=thousands) / thousands
    for given in ({"exposure": 1.0}, {}, {"observed_exposure": thousands}):
        np.testing.assert_allclose(model.predict(periods, observed=data.deaths, **given), right, rtol=1e-9)
    doubled = model.predict(periods, observed=data.deaths, observed_exposure=2 * thousands)
    assert np.mean(doubled) < 0.9 * np.mean(right)  # other signals, of half the rate
    with pytest.raises(ValueError, match="observed_exposure must be given for values in observed"):
        model.predict(periods, observed=data.deaths + 1.0, exposure=1.0)


@pytest.mark.parametrize("name", ["counts", "proportions"])
def test_exposures_of_the_answer_and_of_what_was_observed_are_two_things(name):
    """Rates given counts at one exposure are the means at another exposure over it."""
    case, model = CASES[name], fitted(name)
    observed, beside = with_missing_values(case.values), new(case.beside)
    rates = model.predict(NEW, observed=observed, observed_exposure=beside)
    means = model.predict(NEW, observed=observed, observed_exposure=beside, **{case.argument: beside})
    np.testing.assert_allclose(means / beside, rates, rtol=1e-9)
    joined = model.condition_on(NEW, observed, **{case.argument: beside})
    filled, _ = joined.impute(NEW, observed)
    missing = observed.isna().to_numpy()
    np.testing.assert_allclose(filled.to_numpy()[missing], means.to_numpy()[missing], rtol=1e-5)


@pytest.mark.parametrize("method", ["score", "log_predictive_density", "impute", "condition_on"])
@pytest.mark.parametrize("name", CASES)
def test_what_a_model_was_fitted_with_is_asked_for_by_name(name, method):
    case = CASES[name]
    given = case.arguments(of_new=True)
    del given[case.argument]
    with pytest.raises(ValueError, match=f"{case.argument} must be given for values in Y"):
        getattr(fitted(name), method)(NEW, new(case.values), **given)


@pytest.mark.parametrize("scorer", [log_density_scorer, crps_scorer, coverage_scorer])
@pytest.mark.parametrize("name", CASES)
def test_scorers_ask_for_it_too(name, scorer):
    case = CASES[name]
    given = case.arguments(of_new=True)
    assert np.isfinite(scorer(fitted(name), NEW, new(case.values), **given))
    del given[case.argument]
    with pytest.raises(ValueError, match=f"{case.argument} must be given to score where it was given to fit"):
        scorer(fitted(name), NEW, new(case.values), **given)


def test_exposures_of_observed_values_are_refused_where_a_likelihood_has_none():
    classes = (VALUES > 0).astype(float)
    model = GraphGPRegressor(GRAPH, Polynomial(1), likelihood="bernoulli", prior=None).fit(X, classes)
    for one, observed in ((model, new(classes)), (fitted("weights"), new(VALUES))):
        with pytest.raises(ValueError, match="exposure must be left out with this model"):
            one.predict(NEW, observed=observed, observed_exposure=5.0)


def test_a_model_with_known_noise_asks_for_it():
    """The finding `known_noise_nan`: NaN in place of every answer."""
    model, observed = fitted("known noise"), with_missing_values(VALUES)
    assert np.isfinite(model.predict(NEW, return_std=True)).all()
    for ask in (
        lambda: model.predict(NEW, return_std=True, include_noise=True),
        lambda: model.predict(NEW, return_quantiles=(0.1,)),
        lambda: model.sample_y(NEW, include_noise=True),
        lambda: model.predict(NEW, observed=observed),
        lambda: model.impute(NEW, observed),
    ):
        with pytest.raises(ValueError, match="noise_variance must be given"):
            ask()
    noise = new(NOISE).where(observed.notna())  # known where values are
    whole = model.predict(NEW, observed=observed, noise_variance=new(NOISE))
    np.testing.assert_allclose(model.predict(NEW, observed=observed, noise_variance=noise), whole, rtol=1e-9)
    filled, std = model.impute(NEW, observed, noise_variance=noise)
    np.testing.assert_allclose(filled, whole.where(observed.isna(), observed), rtol=1e-6)
    assert ((std > 0) == observed.isna()).all(axis=None)
    with pytest.raises(ValueError, match=r"noise_variance must be finite and above 0.*got nan at row 0, column 'b'"):
        model.impute(NEW, observed, noise_variance=noise.assign(b=np.nan))


def test_more_signals_need_what_stands_beside_them_where_they_have_values_alone():
    """In any order of the columns: what was checked were the values with the graph's order taken twice."""
    turned = ["c", "e", "a", "b", "d"]
    model = GraphGPRegressor(GRAPH, Polynomial(1), likelihood="poisson").fit(X, COUNTS[turned], exposure=EXPOSURE)
    observed = with_missing_values(COUNTS)[turned]
    exposure = new(EXPOSURE)[turned]
    joined = model.condition_on(NEW, observed, exposure=exposure.where(observed.notna()))
    whole = model.condition_on(NEW, observed, exposure=exposure)
    np.testing.assert_allclose(joined.predict(NEW), whole.predict(NEW), rtol=1e-9)


def test_training_signals_with_other_covariates_are_new():
    """Of two covariates of every entry one differs in one row: there its missing value is imputed anew."""
    values, rng = VALUES.mask(VALUES > 0.8), np.random.default_rng(3)
    first, second = rng.standard_normal((2, *VALUES.shape))
    model = GraphGPRegressor(GRAPH, Polynomial(1)).fit(X, values, covariates={"first": first, "second": second})
    row = int(np.flatnonzero(values.isna().any(axis=1))[0])
    other = np.where(np.arange(len(values))[:, None] == row, second + 1, second)
    found = [model.impute(X, values, covariates={"first": first, "second": one})[1] for one in (second, other)]
    assert np.flatnonzero((found[0] != found[1]).any(axis=1)).tolist() == [row]


def test_weights_of_missing_training_values_are_kept():
    settings = Stacking(Polynomial(1), n_draws=0)  # each draw would have a noise of its own
    model = GraphGPRegressor(GRAPH, settings).fit(X, VALUES.mask(VALUES > 0.8), weights=100 * WEIGHTS)
    _, std = model.impute(X, VALUES.mask(VALUES > 0.8))
    missing = np.argwhere(VALUES.to_numpy() > 0.8)
    field = model.posterior_.imputed(np.arange(8))
    signal = np.sqrt(field.variance())
    scale = model.likelihood_.scale
    noise = np.sqrt(scale**2 / (100 * WEIGHTS.to_numpy()) + model.noise_variance_)
    for row, node in missing:
        assert std.iloc[row, node] ** 2 < signal[row, node] ** 2 + 1.05 * noise[row, node] ** 2


# ----------------------------------------------------------------------------------------------- metadata routing


def test_cross_validation_scores_with_exposures():
    """The finding `metadata_routing`: held-out counts were scored at an exposure of one."""
    rng = np.random.default_rng(0)
    inputs, exposure = np.arange(12.0)[:, None], rng.uniform(50, 5000, (12, 5))
    counts = rng.poisson(exposure * 0.01)
    model = GraphGPRegressor(GRAPH, Polynomial(1), likelihood="poisson")
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_val_score(model, inputs, counts, params={"exposure": exposure}, cv=3)
    expected = []
    for held_out in np.arange(12).reshape(3, 4):
        rest = np.setdiff1d(np.arange(12), held_out)
        own = sklearn.clone(model).fit(inputs[rest], counts[rest], exposure=exposure[rest])
        expected.append(own.score(inputs[held_out], counts[held_out], exposure=exposure[held_out]))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert np.min(found) > 0.0  # below -3 at an exposure of one


# ------------------------------------------------------------------------------------------------------------ series

DATES = pd.date_range("2024-01-01", periods=63, freq="D")
OUTSIDE = pd.DataFrame({"holiday": RNG.random(63) < 0.3, "temp": RNG.standard_normal(63)}, DATES).astype(float)
SERIES = pd.DataFrame(
    5 * OUTSIDE[["holiday"]].to_numpy() - 2 * OUTSIDE[["temp"]].to_numpy() + 0.3 * RNG.standard_normal((63, 5)),
    DATES,
    NAMES,
)
LATER = SERIES[60:]
SERIES_QUESTIONS: dict[str, dict[str, Any]] = {
    "fit": {"Y": SERIES[:60], "X": OUTSIDE[:60]},
    "predict": {"X": OUTSIDE[60:], "observed": LATER[["a", "b"]].reindex(columns=NAMES)},
    "sample_y": {"X": OUTSIDE[60:]},
    "update": {"Y": LATER, "X": OUTSIDE[60:]},
    "impute": {"Y": LATER.mask(LATER > 3), "X": OUTSIDE[60:]},
    "log_predictive_density": {"Y": LATER, "X": OUTSIDE[60:]},
    "anomaly_scores": {"Y": LATER, "X": OUTSIDE[60:]},
    "backtest": {"Y": LATER, "X": OUTSIDE[60:]},
    "report": {},
}


@cache
def forecaster() -> GraphGPForecaster:
    return GraphGPForecaster(GRAPH, seasons=None, calendar=None, drift=None).fit(SERIES[:60], OUTSIDE[:60])


def series_answer(method: str, arguments: dict[str, Any]) -> Any:
    model = copy.deepcopy(forecaster())
    if method == "fit":
        return sklearn.clone(model).fit(**arguments).predict(3, X=OUTSIDE[60:])
    if method == "update":
        return model.update(**arguments).predict(1, X=[[1.0, 2.0]])
    if method in ("predict", "sample_y"):
        return getattr(model, method)(3, **arguments)
    if method == "backtest":
        return model.backtest(**arguments, horizons=(1, 2)).rmse["model"]
    return getattr(model, method)(**arguments)


@pytest.mark.filterwarnings("ignore:Y is not in the order of time")
@pytest.mark.parametrize("order", ["rows", "columns"])
@pytest.mark.parametrize(
    ("method", "argument"), [(method, one) for method, given in SERIES_QUESTIONS.items() for one in given]
)
def test_series_are_matched_by_time_and_name(method, argument, order):
    arguments = SERIES_QUESTIONS[method]
    expected = series_answer(method, arguments)
    turned = other_orders(arguments[argument])[order]
    found = series_answer(method, arguments | {argument: turned})
    if argument == "Y" and not isinstance(expected, tuple | pd.DataFrame) and method == "anomaly_scores":
        found = found[turned.index.get_indexer(LATER.index)] if order == "rows" else found
    if argument == "Y" and order == "columns" and method == "fit":
        assert list(found.columns) == NAMES[::-1]
    assert same(found, expected)


def test_times_of_columns_and_of_what_was_observed_must_be_those_asked_for():
    """The finding `forecaster_X`: columns of other dates were taken by position."""
    model = forecaster()
    with pytest.raises(ValueError, match="X must have a row for each time; got none for '2024-03-01'"):
        model.predict(3, X=OUTSIDE[20:23])
    longer = model.predict(1, X=OUTSIDE[60:])  # more than is asked for
    np.testing.assert_allclose(longer, model.predict(1, X=OUTSIDE[60:61]))
    late = LATER.set_axis(LATER.index + pd.Timedelta(days=365))
    with pytest.raises(ValueError, match="observed must have rows at the times asked for, 2024-03-01 to 2024-03-03"):
        model.predict(3, X=OUTSIDE[60:], observed=late)
    first = model.predict(3, X=OUTSIDE[60:], observed=LATER[:1])
    padded = LATER.copy()
    padded.iloc[1:] = np.nan
    np.testing.assert_allclose(first, model.predict(3, X=OUTSIDE[60:], observed=padded))
    with pytest.raises(ValueError, match=r"X must have one column for each column of fit.*'cold' belong"):
        model.predict(3, X=OUTSIDE[60:].rename(columns={"temp": "cold"}))
    with pytest.raises(ValueError, match="X must have one row per time; got 2024-03-01 more than once"):
        model.predict(1, X=OUTSIDE.iloc[[60, 60]])


def test_numbers_after_dates_are_refused():
    numbered = LATER.set_axis([500, 900, 1300])
    for ask in (forecaster().update, forecaster().log_predictive_density):
        with pytest.raises(TypeError, match="must be dates, as those at fit were; got numbers"):
            ask(numbered, OUTSIDE[60:])
    counted = forecaster().log_predictive_density(LATER.reset_index(drop=True), OUTSIDE[60:].to_numpy())
    assert counted == pytest.approx(forecaster().log_predictive_density(LATER, OUTSIDE[60:]))


# ------------------------------------------------------------------------------------------------------------ classes

FEATURES = pd.DataFrame(RNG.standard_normal((5, 2)), NAMES, ["one", "two"])
NODE_LABELS = pd.Series(["x", "y", None, "x", "y"], NAMES)
CLASS_SIGNALS = frame(RNG.integers(0, 2, (8, 5)))
CLASS_QUESTIONS: dict[str, dict[str, Any]] = {
    "fit": {"X": FEATURES, "y": NODE_LABELS},
    "score": {"X": X, "y": CLASS_SIGNALS, "sample_weight": WEIGHTS},
    "predict": {"X": X},
    "predict_proba": {"X": X},
    "decision_function": {"X": X},
}


@cache
def of_signals() -> GraphGPClassifier:
    return GraphGPClassifier(GRAPH).fit(X, CLASS_SIGNALS)


@pytest.mark.parametrize("order", ["rows", "columns"])
@pytest.mark.parametrize("argument", ["X", "y"])
def test_features_and_labels_of_nodes_are_matched_by_name(argument, order):
    arguments = CLASS_QUESTIONS["fit"]
    turned = other_orders(arguments[argument]).get(order)
    if turned is None:
        return
    expected = GraphGPClassifier(GRAPH).fit(**arguments).predict_proba()
    model = GraphGPClassifier(GRAPH).fit(**(arguments | {argument: turned}))
    own = NAMES if argument == "X" else list(turned.index)
    places = [own.index(name) for name in NAMES]
    np.testing.assert_allclose(model.predict_proba()[places], expected, rtol=1e-6)


@pytest.mark.parametrize("order", ["rows", "columns"])
@pytest.mark.parametrize("argument", ["X", "y", "sample_weight"])
def test_scores_of_classes_are_matched_by_name(argument, order):
    arguments = CLASS_QUESTIONS["score"]
    turned = arguments | {argument: other_orders(arguments[argument])[order]}
    expected = of_signals().score(**arguments)
    try:
        assert of_signals().score(**turned) == pytest.approx(expected)
    except ValueError as error:
        assert "Feature names" in str(error)  # noqa: PT017
    fresh = GraphGPClassifier(GRAPH)
    fit = {"X": turned["X"], "y": turned["y"]}
    assert fresh.fit(**fit).score(X[fit["X"].columns], CLASS_SIGNALS) == pytest.approx(
        of_signals().score(X, CLASS_SIGNALS)
    )


def test_labels_of_xarray_are_matched_by_name():
    turned = NAMES[::-1]
    values = CLASS_SIGNALS[turned].to_numpy()
    table = xr.DataArray(values.T, dims=("node", "time"), coords={"node": turned})
    found = GraphGPClassifier(GRAPH).fit(X.to_numpy(), table).predict_proba()
    places = [turned.index(name) for name in NAMES]
    np.testing.assert_allclose(found[:, places], of_signals().predict_proba(), rtol=1e-6)
    with pytest.raises(ValueError, match=r"X must have one row for each node.*'X' belong"):
        GraphGPClassifier(GRAPH).fit(FEATURES.rename(index={"a": "X"}), NODE_LABELS)
