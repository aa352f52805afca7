"""The forecaster as users have it: fit, forecast, update, sample, densities, backtests, tables and what is refused."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from spectralgp import Graph, GraphGPForecaster, decompose, load
from spectralgp.series import MaternComponent, OscillatorComponent
from spectralgp.series.model import SeriesRows, innovations

N_NODES, N_STEPS = 6, 220
NAMES = list("abcdef")
RING = Graph.from_edges([(node, (node + 1) % N_NODES) for node in range(N_NODES)])
NAMED = Graph(RING.weights, NAMES)
INDEX = pd.date_range("2021-03-20", periods=N_STEPS, freq="D", tz="Europe/Berlin")


def diffusing(n_steps: int, seed: int = 0) -> np.ndarray:
    """A field that spreads over the ring and is driven by noise that neighbours share."""
    random = np.random.default_rng(seed)
    weights = np.asarray(RING.weights.todense())
    carry = 0.6 * np.eye(N_NODES) + 0.15 * weights
    values = np.zeros((n_steps, N_NODES))
    for step in range(1, n_steps):
        values[step] = carry @ values[step - 1] + random.standard_normal(N_NODES) + 0.3 * random.standard_normal()
    return 10 + values * np.linspace(1, 3, N_NODES)


Y = diffusing(N_STEPS)
TABLE = pd.DataFrame(Y, INDEX, NAMES)
N_LEARNT = 200
QUICK = GraphGPForecaster(NAMED, components=[MaternComponent(0.5)], calendar=None, residual=None)


@pytest.fixture(scope="module")
def fitted() -> GraphGPForecaster:
    return GraphGPForecaster(NAMED).fit(TABLE[:N_LEARNT])


@pytest.fixture
def model(fitted) -> GraphGPForecaster:
    return copy.copy(fitted)


def test_forecasts_have_the_nodes_names_and_the_times_to_come(model):
    mean, std = model.predict(5, return_std=True)
    assert list(mean.columns) == NAMES
    pd.testing.assert_index_equal(
        mean.index, INDEX[N_LEARNT : N_LEARNT + 5], exact=False, check_names=False, check_freq=False
    )
    assert (np.diff(std.to_numpy(), axis=0) > -1e-9).all()
    with_covariances = model.predict(5, return_cov=True)[1]
    np.testing.assert_allclose(np.sqrt(np.diagonal(with_covariances, axis1=1, axis2=2)), std, rtol=1e-10)
    assert np.linalg.eigvalsh(with_covariances).min() > 0


def test_times_may_be_given_and_gaps_are_left_out(model):
    chosen = INDEX[[N_LEARNT + 1, N_LEARNT + 4]]
    pd.testing.assert_frame_equal(model.predict(chosen), model.predict(5).iloc[[1, 4]], check_freq=False, rtol=1e-9)


def test_forecasts_beat_the_last_row_and_intervals_cover(fitted):
    backtest = fitted.backtest_
    assert backtest.rmse["model"][0] < 0.95 * backtest.rmse["persistence"][0]
    assert 0.82 < backtest.coverage[0] < 0.96
    assert set(fitted.weights_) <= {"graph", "graph, separable", "nodes on their own"}
    np.testing.assert_allclose(sum(fitted.weights_.values()), 1.0)
    members = {one.name: one.fit for one in fitted.model_.stack.members if one.fit is not None}
    assert members  # one of the graph is kept whatever its weight, to impute missing values and to be looked at
    for name, fit in members.items():
        sizes = {kernel.theta.size for kernel in fit.kernel.powers}, {fit.kernel.residual.theta.size}
        assert sizes == ({4}, {3})
        assert {kernel.theta.size for kernel in fit.kernel.rates} <= ({3} if name == "graph" else {1})


def test_updates_by_one_row_and_by_all_are_the_same(model):
    later = TABLE[N_LEARNT:]
    one_by_one = copy.copy(model)
    for place in range(len(later)):
        one_by_one.update(later[place : place + 1])
    at_once = copy.copy(model).update(later)
    assert one_by_one.n_steps_ == at_once.n_steps_ == N_STEPS
    for one, other in zip(one_by_one.predict(3, return_std=True), at_once.predict(3, return_std=True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_what_is_known_of_a_row_narrows_the_rest_and_moves_later_rows(model):
    partial = TABLE[N_LEARNT : N_LEARNT + 3].copy()
    partial.iloc[0, 3:] = np.nan
    partial.iloc[1:] = np.nan
    std = model.predict(3, return_std=True)[1]
    known_mean, known_std = model.predict(3, return_std=True, observed=partial)
    np.testing.assert_array_equal(known_mean.iloc[0, :3], partial.iloc[0, :3])
    assert not known_std.iloc[0, :3].any()
    assert (known_std.iloc[0, 3:] < std.iloc[0, 3:]).all()
    first, second = np.sqrt(model.model_.stack.inflations[:2])  # a row on from what is known, and two from the last one
    assert (known_std.iloc[1] / first < std.iloc[1] / second).all()
    complete = TABLE[N_LEARNT : N_LEARNT + 1]
    both = pd.concat([complete, partial[1:2] * np.nan])
    expected = copy.copy(model).update(complete).predict(1)
    np.testing.assert_allclose(model.predict(2, observed=both).iloc[1:], expected, rtol=1e-10)


def test_what_is_known_must_have_a_row_per_time_and_one_kind_of_error_is_asked_for(model):
    with pytest.raises(ValueError, match="observed must have 3 rows, one per time; got 2"):
        model.predict(3, observed=TABLE[N_LEARNT : N_LEARNT + 2].to_numpy())
    with pytest.raises(ValueError, match="return_std and return_cov must not both be True"):
        model.predict(3, return_std=True, return_cov=True)
    whole = TABLE[N_LEARNT : N_LEARNT + 2].copy()
    whole.iloc[1, 2:] = np.nan
    mean, covariance = model.predict(2, return_cov=True, observed=whole[NAMES[::-1]])
    np.testing.assert_array_equal(mean.iloc[0], whole.iloc[0])
    assert not covariance[0].any()
    np.testing.assert_allclose(np.diag(covariance[1]) > 0, [False, False, True, True, True, True])


def test_later_rows_are_told_from_those_that_were_seen(model):
    assert model.is_later(TABLE[N_LEARNT - 2 : N_LEARNT + 2]).tolist() == [False, False, True, True]
    assert model.is_later(Y[:3]).tolist() == [True, True, True]
    ahead = model.times_ahead(3)
    assert ahead.equals(INDEX[N_LEARNT : N_LEARNT + 3]) or list(ahead) == list(INDEX[N_LEARNT : N_LEARNT + 3])
    counted = clone(QUICK).set_params(graph=None).fit(Y[:40, :2])
    np.testing.assert_array_equal(counted.times_ahead(2), [40.0, 41.0])


def test_samples_have_the_mean_and_the_covariance_of_forecasts(model):
    draws = model.sample_y(4, 4000, random_state=1)
    assert draws.shape == (4, N_NODES, 4000)
    mean, covariances = model.predict(4, return_cov=True)
    deviations = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    np.testing.assert_allclose(draws.mean(axis=2), mean, atol=5 * deviations.max() / np.sqrt(4000))
    for step in (0, 3):
        found = np.cov(draws[step]) / np.multiply.outer(deviations[step], deviations[step])
        expected = covariances[step] / np.multiply.outer(deviations[step], deviations[step])
        np.testing.assert_allclose(found, expected, atol=5 * np.sqrt(2 / 4000))
    assert np.corrcoef(draws[0, 0], draws[1, 0])[0, 1] > 0.3  # a path goes on from where it is
    np.testing.assert_array_equal(draws, model.sample_y(4, 4000, random_state=1))


def test_densities_are_those_of_rows_one_after_the_other(model):
    later = TABLE[N_LEARNT : N_LEARNT + 3]
    expected, going = [], copy.copy(model)
    for place in range(3):
        mean, covariance = going.predict(1, return_cov=True)
        expected.append(multivariate_normal(mean.iloc[0], covariance[0]).logpdf(later.iloc[place]))
        going.update(later[place : place + 1])
    np.testing.assert_allclose(model.log_predictive_density(later, joint=False), expected, rtol=1e-9)
    np.testing.assert_allclose(model.log_predictive_density(later), sum(expected), rtol=1e-9)


def test_anomalies_stand_out(model):
    odd = TABLE[N_LEARNT : N_LEARNT + 5].copy()
    odd.iloc[2, 1] += 30
    by_node, by_step = model.anomaly_scores(odd), model.anomaly_scores(odd, by="step")
    assert np.unravel_index(np.argmax(np.abs(by_node)), by_node.shape) == (2, 1)
    assert np.argmax(by_step) == 2
    usual = model.anomaly_scores(by="step")[1:]
    assert by_step[2] > usual.max()
    np.testing.assert_allclose(np.mean(usual**2), 1.0, atol=0.25)
    assert model.innovations_.shape == (N_LEARNT, N_NODES)
    white = model.innovations_[1:]
    lagged = np.mean(white[1:] * white[:-1])
    assert abs(lagged) < 5 / np.sqrt(white.size)


def test_innovations_are_errors_one_step_ahead_of_what_is_there(model):
    holed = TABLE.copy()
    holed.iloc[202, 1] = holed.iloc[205, 3:] = holed.iloc[209] = np.nan
    for rows, limits in ((TABLE, {"rtol": 1e-7, "atol": 1e-9}), (holed, {"rtol": 0, "atol": 1e-3})):  # in deviations
        found = innovations(model.model_, SeriesRows(np.arange(N_STEPS * 1.0), rows.to_numpy(), None))
        np.testing.assert_array_equal(np.isnan(found[N_LEARNT:]), rows[N_LEARNT:].isna())
        np.testing.assert_allclose(found[N_LEARNT:], model.anomaly_scores(rows[N_LEARNT:]), **limits)
        np.testing.assert_allclose(found[:N_LEARNT], model.innovations_, **limits)


def test_backtests_of_later_rows_go_on_from_the_last_one(model, tmp_path):
    later = TABLE[N_LEARNT:]
    found = model.backtest(later, horizons=(1, 3))
    assert found.horizons.tolist() == [1, 3]
    assert found.n_origins.tolist() == [20, 18]
    assert model.backtest(later).horizons.tolist() == [1, 6]  # and 24, had they been more
    whole = model.backtest(TABLE, horizons=(1, 3))
    np.testing.assert_allclose(whole.rmse["model"], found.rmse["model"], rtol=1e-10)
    model.save(tmp_path / "model.sgp")
    alone = load(tmp_path / "model.sgp").backtest(later, horizons=(1, 3))
    np.testing.assert_allclose(alone.rmse["model"], found.rmse["model"], rtol=1e-8)
    np.testing.assert_allclose(alone.log_density, found.log_density, rtol=1e-6)
    np.testing.assert_allclose(alone.rmse["persistence"], found.rmse["persistence"], rtol=1e-8)
    mean, std = model.predict(3, return_std=True)
    np.testing.assert_allclose(found.forecasts[3][1][0], mean.iloc[2], rtol=1e-8)
    np.testing.assert_allclose(found.forecasts[3][2][0], std.iloc[2], rtol=1e-8)


def test_backtests_of_rows_that_were_seen_begin_after_three_fifths(model):
    found = model.backtest(TABLE[:N_LEARNT], horizons=[3, 1, 3, 500])
    assert found.how == "rows that the model has seen"
    assert (found.horizons.tolist(), found.n_origins.tolist()) == ([1, 3], [79, 77])  # from row 120 on
    with pytest.raises(ValueError, match=r"horizons must have one of which there is a row to forecast; got \(20, 30\)"):
        model.backtest(TABLE[N_LEARNT:], horizons=(20, 30))
    with pytest.raises(ValueError, match=r"horizons must have one .* got \(1, 6, 24\)"):
        model.backtest(TABLE[:2])
    with pytest.raises(ValueError, match=r"Y must have at least two rows; got 1"):
        model.backtest(TABLE[N_LEARNT : N_LEARNT + 1])
    assert model.backtest(TABLE[:3]).n_origins.tolist() == [1]


def test_the_summary_says_what_was_learnt_and_where_intervals_are_off(model):
    text = model.summary()
    assert "200 steps on 6 nodes and 6 edges." in text
    assert "weights:" in text
    assert "Backtest, by models of the first three fifths" in text
    off = model.backtest_.miscovered
    assert text.count("of what came: too") == len(off)


def test_columns_and_rows_may_come_in_another_order(model):
    first, other = clone(QUICK).fit(TABLE[:N_LEARNT]), clone(QUICK)
    turned = TABLE[:N_LEARNT][NAMES[::-1]]
    with pytest.warns(UserWarning, match="not in the order of time"):
        other.fit(turned.sample(frac=1.0, random_state=0))
    expected, found = first.predict(2), other.predict(2)
    assert list(found.columns) == NAMES[::-1]
    np.testing.assert_allclose(found[NAMES], expected, rtol=1e-6)
    later = TABLE[N_LEARNT:].iloc[::-1]
    with pytest.warns(UserWarning, match="not in the order of time"):
        densities = model.log_predictive_density(later, joint=False)
    np.testing.assert_allclose(densities[::-1], model.log_predictive_density(TABLE[N_LEARNT:], joint=False))


def test_arrays_and_tables_of_other_libraries_say_the_same(model):
    plain = clone(QUICK).fit(Y[:N_LEARNT])
    frame = pl.DataFrame({"when": INDEX[:N_LEARNT], **{name: Y[:N_LEARNT, k] for k, name in enumerate(NAMES)}})
    tabled = clone(QUICK).fit(frame)
    found = tabled.predict(2)
    assert found.columns == ["when", *NAMES]
    np.testing.assert_allclose(found.drop("when").to_numpy(), plain.predict(2), rtol=1e-9)
    assert found["when"].to_list() == [one.to_pydatetime() for one in INDEX[N_LEARNT : N_LEARNT + 2]]
    plain.set_output(predict="pandas")
    assert plain.predict(2).index.tolist() == [N_LEARNT, N_LEARNT + 1]
    assert plain.predict(2).index.dtype.kind == "i"
    assert plain.predict([N_LEARNT, N_LEARNT + 0.5]).index.tolist() == [N_LEARNT, N_LEARNT + 0.5]
    model.set_output(predict="numpy")
    assert isinstance(model.predict(2), np.ndarray)
    np.testing.assert_array_equal(plain.update(Y[N_LEARNT]).predict(1).index, [N_LEARNT + 1])


def test_exogenous_columns_move_forecasts():
    random = np.random.default_rng(0)
    X = random.standard_normal((120, 1))
    values = diffusing(120) + 8 * X
    model = clone(QUICK).set_params(graph=RING).fit(values[:119], X[:119])
    low, high = (model.predict(1, X=[[x]])[0] for x in (-1.0, 1.0))
    np.testing.assert_allclose(high - low, 16.0, rtol=0.15)
    with pytest.raises(ValueError, match=r"X must be given, since the model was fitted with 1 exogenous"):
        model.predict(1)
    with pytest.raises(ValueError, match=r"X must have 1 columns, as at fit; got 2"):
        model.predict(1, X=[[1.0, 2.0]])
    with pytest.raises(ValueError, match="X must have 2 rows, one per time; got 1"):
        model.predict(2, X=[[1.0]])
    assert model.update(values[119:], X[119:]).n_steps_ == 120


def test_missing_values_are_said_and_empty_rows_are_skipped():
    holed = TABLE[:100].copy()
    holed.iloc[20:24, 2] = np.nan
    holed.iloc[50] = np.nan
    model = clone(QUICK).fit(holed)
    assert "4 missing values (0.7%) were imputed from the rest" in model.summary()
    assert "1 rows without any value are skipped" in model.summary()
    forecast = model.predict(3)
    assert np.isfinite(forecast).all(axis=None)
    later = TABLE[100:104].copy()
    later.iloc[1, :2] = np.nan
    later.iloc[2] = np.nan
    assert np.isfinite(model.update(later).predict(2)).all(axis=None)
    assert np.isfinite(model.backtest(TABLE[104:110]).rmse["model"]).all()
    dropped = clone(QUICK).fit(holed.drop(index=holed.index[50]))
    np.testing.assert_allclose(dropped.predict(3), forecast, rtol=1e-6)


def test_missing_values_are_filled_by_rows_before_and_after_and_by_neighbours(model):
    later = TABLE[N_LEARNT:].copy()
    later.iloc[5, 2] = later.iloc[8] = np.nan
    completed, std = model.impute(later)
    assert completed.index.equals(later.index)
    assert list(completed.columns) == NAMES
    np.testing.assert_array_equal(completed.to_numpy()[later.notna()], later.to_numpy()[later.notna()])
    assert ((std > 0) == later.isna()).all(axis=None)
    forecast = copy.copy(model).update(TABLE[N_LEARNT : N_LEARNT + 5]).predict(1, return_std=True)[1]
    assert std.iloc[5, 2] < 0.9 * forecast.iloc[0, 2]
    assert (std.iloc[8] > 0).all()
    errors = (completed - TABLE[N_LEARNT:]).to_numpy()[later.isna()] / std.to_numpy()[later.isna()]
    assert np.abs(errors).max() < 4
    turned = later[NAMES[::-1]]
    np.testing.assert_allclose(model.impute(turned)[0][NAMES], completed, rtol=1e-6)
    array = TABLE[:N_LEARNT].to_numpy(copy=True)
    array[50, 1] = np.nan
    found = model.impute(array)[0]
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found[50, 1], model.impute(TABLE[:N_LEARNT].where(~np.isnan(array)))[0].iloc[50, 1])


def test_forecasts_of_a_backtest_with_missing_values_know_of_no_later_row(model):
    later = TABLE[N_LEARNT:].copy()
    later.iloc[2, 1] = later.iloc[5, 3] = later.iloc[6, 3] = later.iloc[9, 0] = np.nan
    other = later.copy()
    other.iloc[10:] += 40.0
    found, after = (model.backtest(rows, horizons=(1, 3)).forecasts for rows in (later, other))
    for horizon in (1, 3):  # from origins up to row 9 after the end of fit: means and deviations
        for one in (1, 2):
            assert np.array_equal(found[horizon][one][:11], after[horizon][one][:11])


def test_a_row_with_missing_values_is_taken_in_as_rolling_forecasts_take_it(model):
    later = TABLE[N_LEARNT:].copy()
    later.iloc[0, 1] = later.iloc[0, 4] = later.iloc[1, 3] = np.nan
    rolled = model.backtest(later, horizons=(1,)).forecasts[1]
    for row in range(3):
        mean, std = model.predict(1, return_std=True)
        deviation = std.to_numpy()[0]
        assert np.abs((mean.to_numpy()[0] - rolled[1][row]) / deviation).max() < 1e-3
        assert np.abs(deviation / rolled[2][row] - 1).max() < 1e-3
        model.update(later[row : row + 1])


def test_one_node_and_no_graph_and_few_rows_will_do():
    flat = GraphGPForecaster().fit(Y[:60, 0])
    mean, std = flat.predict(2, return_std=True)
    assert mean.shape == std.shape == (2,)
    assert flat.sample_y(2, 3).shape == (2, 3)
    assert GraphGPForecaster().fit(Y[:8, :1]).n_steps_ == 8
    with pytest.raises(ValueError, match="Y must have at least 8 rows to learn from; got 7"):
        GraphGPForecaster().fit(Y[:7, :1])
    with pytest.raises(ValueError, match="graph must have up to 5,000 nodes to forecast; got 5,001"):
        GraphGPForecaster().fit(np.zeros((8, 5_001)))
    few = GraphGPForecaster(RING).fit(Y[:10])
    assert few.backtest_ is None
    assert few.predict(2).shape == (2, N_NODES)
    with pytest.raises(ValueError, match="too few rows for a backtest"):
        few.backtest()


def odd(kind):
    values = Y[:100].copy()
    if kind == "a constant node":
        values[:, 2] = 3.0
    elif kind == "nothing but constants":
        values = np.arange(6.0) + np.zeros_like(values)
    elif kind == "a node that is seen late":
        values[:80, 1] = np.nan
    else:
        values[:99, 1] = np.nan
    return values


@pytest.mark.parametrize(
    "kind", ["a constant node", "nothing but constants", "a node that is seen late", "a node that is seen once"]
)
def test_nodes_that_say_little_are_forecast_without_ado(kind):
    values = odd(kind)
    model = clone(QUICK).fit(pd.DataFrame(values, columns=NAMES))  # where a warning is an error
    mean, std = (np.asarray(part) for part in model.predict(2, return_std=True))
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    if "constant" in kind:
        deviations = values.std(axis=0)
        typical = np.median(deviations[deviations > 0]) if deviations.any() else np.abs(values).max()
        unit = typical / np.sqrt(len(values) + 1)  # as if the next value were the first to differ
        assert np.abs(mean[:, 2] - values[0, 2]).max() < 0.5 * unit
        assert ((std[:, 2] > 0.3 * unit) & (std[:, 2] < 1.5 * unit)).all()
    else:  # no more certain than its neighbours are
        assert np.abs(mean[:, 1] - values[-1, 1]).max() < 6 * std[:, 1].min()
        assert std[:, 1].min() > 0.3 * std.min(axis=1).max()


def test_components_may_be_chosen(model):
    own = GraphGPForecaster(
        NAMED, components=[MaternComponent(0.5), OscillatorComponent(5.0)], drift=None, residual=None
    )
    own.fit(TABLE[:80])
    assert own.components_ == (MaternComponent(0.5), OscillatorComponent(5.0))
    with pytest.raises(ValueError, match="drift must be one of 'auto'"):
        GraphGPForecaster(drift="yes").fit(Y)
    with pytest.raises(TypeError, match="components must be 'auto' or a sequence of Matern"):
        GraphGPForecaster(components=["fast"]).fit(Y)
    points, values, std = model.response(which="rate", return_std=True)
    assert values.shape == std.shape == (len(model.component_names_), len(points))
    assert (values > 0).all()
    ends = np.array([0.0, 1.0])
    np.testing.assert_array_equal(model.response(ends)[0], ends)
    np.testing.assert_allclose(model.response(ends)[1][:, 0], model.response()[1][:, 0])  # of the constant
    for wrong in ([-1e-9, 0.5], [0.5, 1 + 1e-9]):
        with pytest.raises(ValueError, match="eigenvalues must lie between 0 and 1; got"):
            model.response(wrong)
    with pytest.raises(ValueError, match="the model must have one of the graph for a response"):
        clone(QUICK).set_params(graph=None).fit(Y[:60]).response()


def test_copies_of_nodes_are_found_and_said():
    with pytest.warns(UserWarning, match=r"Y has copies: columns 'a', 'c' hold the same values"):
        model = clone(QUICK).fit(TABLE[:60].assign(c=TABLE["a"]))
    assert "columns 'a', 'c' hold the same values" in model.summary()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda t: pd.concat([t, t[:1]]), ValueError, "must have one row per time; got 2021-03-20 more than once"),
        (lambda t: t[:4], ValueError, "Y must have at least 8 rows"),
        (lambda t: t.rename(columns={"a": "z"}), ValueError, "one column for each node of the graph"),
        (lambda t: t.set_axis([str(one) for one in t.index]), TypeError, "the index of Y must be numbers or dates"),
        (lambda t: t.assign(e=np.nan, b=np.nan), ValueError, r"a value in every column; got none in 'b', 'e'. Leave"),
        (lambda t: t[NAMES[::-1]].assign(a=np.nan), ValueError, r"a value in every column; got none in 'a'. Leave"),
    ],
)
def test_wrong_rows_are_refused_with_what_to_do(change, error, message):
    model = GraphGPForecaster(NAMED)
    with pytest.raises(error, match=message):
        model.fit(change(TABLE[:30]))
    with pytest.raises(NotFittedError):
        model.predict(1)


def test_times_before_the_last_row_are_refused(model):
    with pytest.raises(ValueError, match="Y must have rows after the last one, at 2021-10-05; got earlier"):
        model.update(TABLE[N_LEARNT - 1 :])  # by the clock of the table, not that of UTC
    with pytest.raises(ValueError, match="times after the last row in increasing order"):
        model.predict(INDEX[:2])
    with pytest.raises(ValueError, match=r"increasing order; got.* The last row is at 2021-10-05"):
        model.predict(INDEX[[N_LEARNT, N_LEARNT + 2, N_LEARNT + 1]])
    with pytest.raises(ValueError, match="times after the last row in increasing order"):
        model.predict(INDEX[:0])
    with pytest.raises(ValueError, match="horizon must be an integer of at least 1"):
        model.predict(0)


def test_loaded_models_predict_the_same_and_files_do_not_grow(fitted, tmp_path):
    quick = clone(QUICK).set_params(components=(MaternComponent(0.5), OscillatorComponent(6.0)), seasons=[7.0])
    frame = pl.DataFrame({"when": INDEX[:120], **{name: Y[:120, k] for k, name in enumerate(NAMES)}})
    for number, model in enumerate((fitted, quick.fit(frame), clone(QUICK).set_params(graph=None).fit(Y[:60, :1]))):
        path = tmp_path / f"{number}.sgp"
        model.save(path)
        again = load(path)
        assert type(again) is GraphGPForecaster
        assert repr(again.get_params(deep=False)) == repr(
            model.get_params(deep=False) | {"seasons": again.seasons, "components": again.components}
        )
        for one, other in zip(again.predict(30, return_std=True), model.predict(30, return_std=True), strict=True):
            assert type(one) is type(other)
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
        np.testing.assert_array_equal(again.sample_y(3, 2), model.sample_y(3, 2))
        assert again.summary() == model.summary()
        assert not hasattr(again, "innovations_")
        again.save(tmp_path / "again.sgp")
        np.testing.assert_array_equal(np.asarray(load(tmp_path / "again.sgp").predict(3)), np.asarray(model.predict(3)))
    again = load(tmp_path / "0.sgp")
    later = TABLE[N_LEARNT:]
    assert again.log_predictive_density(later) == fitted.log_predictive_density(later)
    longer = copy.copy(fitted).update(later)
    longer.save(tmp_path / "longer.sgp")
    assert abs((tmp_path / "longer.sgp").stat().st_size - (tmp_path / "0.sgp").stat().st_size) < 200
    np.testing.assert_array_equal(again.update(later).predict(2), longer.predict(2))
    for one, other in zip(
        again.response(which="rate", return_std=True), fitted.response(None, True, "rate"), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_a_model_of_the_graph_moves_to_another_graph(model):
    larger = Graph.from_edges([(node, (node + 1) % 9) for node in range(9)])
    moved = model.transfer(larger).set_output(predict="numpy")
    mean, std = moved.predict(2, return_std=True)
    assert mean.shape == (2, 9)
    np.testing.assert_allclose(std, std[0, 0])  # a ring looks the same from every node, and nothing was seen
    assert moved.n_steps_ == 0
    before, after = model.model_, moved.model_
    np.testing.assert_allclose(moved.scale_, np.sqrt(np.mean(model.scale_**2)))
    np.testing.assert_allclose(after.mean.at(np.array([7.0])), before.mean.levels.mean())
    (member,) = after.stack.members
    power = before.stack.heaviest.fit.kernel.powers[0]
    frequencies = decompose(larger, power.laplacian, scaled=True).eigenvalues
    np.testing.assert_allclose(member.process.powers[0], power.power(frequencies))
    assert (after.recent.shape, bool(after.recent.any()), moved.backtest_) == ((3, 9), False, None)
    assert not hasattr(moved, "innovations_")
    rows = moved.sample_y(30, 1)[:, :, 0]
    after = moved.update(rows)
    assert (after.predict(1, return_std=True)[1] < std[0]).all()
    assert "moved from a graph of 6 nodes" in after.summary()
