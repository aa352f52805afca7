"""The report of a series: numbers against the model's own answers, words against numbers, and a whole page."""

import base64
import copy
import dataclasses
import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from spectralgp import Graph, GraphGPForecaster, load
from spectralgp.scores import INTERVAL_LEVELS, coverage
from spectralgp.series import MaternComponent
from spectralgp.series.backtests import Backtest
from spectralgp.show.curves import Curve, component_curves
from spectralgp.show.report import words
from spectralgp.show.report.figures import series_figures
from spectralgp.show.report.numbers import SeriesReport, forecast_predictions
from tolerances import EXACT

NAMES = [f"<b>{letter}" for letter in "fedcba"]  # in another order than the graph's
RING = Graph.from_edges([(NAMES[node], NAMES[(node + 1) % 6]) for node in range(6)], names=sorted(NAMES))
N_LEARNT = 120


def rows(n_steps=150, seed=0):
    rng = np.random.default_rng(seed)
    values = np.zeros((n_steps, 6))
    for n in range(1, n_steps):
        values[n] = 0.8 * values[n - 1] + rng.standard_normal(6)
    values[:, 0] *= 3
    values[110:114, 2] = np.nan
    return pd.DataFrame(values, pd.date_range("2020-01-01", periods=n_steps), NAMES)


@pytest.fixture(scope="module")
def model():
    return GraphGPForecaster(RING, components=(MaternComponent(0.5),), seasons=7.0, calendar=None).fit(
        rows()[:N_LEARNT]
    )


@pytest.fixture(scope="module")
def page(model, tmp_path_factory):
    return model.report(tmp_path_factory.mktemp("series") / "report.html", horizon=10).read_text(encoding="utf-8")


def data_of(page):
    return json.loads(re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL).group(1))


def values_of(drawn):
    """Numbers of a trace, which plotly packs."""
    return np.frombuffer(base64.b64decode(drawn["bdata"]), drawn["dtype"]) if "bdata" in drawn else drawn


def field(data, name):
    values = np.frombuffer(base64.b64decode(data["arrays"][name]), dtype="<f4")
    return values.reshape(len(data["labels"]), len(data["names"]))


def test_the_page_shows_the_models_own_forecast_after_its_rows(model, page):
    data, table = data_of(page), rows()[:N_LEARNT]
    assert data["names"] == sorted(NAMES)
    assert data["labels"][-10:] == [str(day.date()) for day in pd.date_range("2020-04-30", periods=10)]
    n_past = len(data["labels"]) - 10
    assert data["start"]["signal"] == n_past
    np.testing.assert_allclose(field(data, "observed")[:n_past], table[data["names"]].to_numpy()[-n_past:], rtol=1e-6)
    mean, std = model.predict(10, return_std=True)
    np.testing.assert_allclose(field(data, "mean")[n_past:], mean[data["names"]], rtol=1e-5)
    np.testing.assert_allclose(field(data, "std")[n_past:], std[data["names"]], rtol=1e-5)
    assert np.isnan(field(data, "mean")[:n_past]).all()
    assert np.isnan(field(data, "observed")[n_past:]).all()


def test_what_was_not_observed_is_shown_as_it_is_filled_in(model, page):
    data, table = data_of(page), rows()[:N_LEARNT]
    n_past = len(data["labels"]) - 10
    completed, std = model.impute(table)
    missing = table[data["names"]].isna().to_numpy()[-n_past:]
    assert data["imputed"] == np.flatnonzero(missing).tolist()
    assert len(data["imputed"]) == 4
    filled = np.frombuffer(base64.b64decode(data["arrays"]["imputedMean"]), dtype="<f4")
    expected = completed[data["names"]].to_numpy()[-n_past:][missing]
    spread = std[data["names"]].to_numpy()[-n_past:][missing]
    assert np.all(np.abs(filled - expected) < 0.05 * spread)  # by the rows that are shown, where impute has all


def test_figures_have_the_scores_of_the_backtest(model, page):
    found, figures = model.backtest_, data_of(page)["figures"]
    assert {"map-plot", "node-plot", "error-plot", "crps-plot", "coverage-plot", "rate-plot"} == set(figures)
    steps = [str(one) for one in found.horizons]
    for plot, scores in (("error-plot", found.rmse), ("crps-plot", found.crps)):
        drawn = {trace["name"]: trace for trace in figures[plot]["data"]}
        assert set(drawn) == {"model", "persistence", "seasonal naive"}
        for name, trace in drawn.items():
            assert trace["x"] == steps
            np.testing.assert_allclose(values_of(trace["y"]), scores[name])
    for place, level in enumerate(INTERVAL_LEVELS):
        expected, observed = figures["coverage-plot"]["data"][2 * place : 2 * place + 2]
        assert expected["y"] == [level] * len(steps)
        assert observed["name"] == f"in {level:.0%} intervals"
        np.testing.assert_allclose(values_of(observed["y"]), found.coverages[place])
    for which, (band, line) in zip(("rate", "power"), np.reshape(figures["rate-plot"]["data"], (2, 2)), strict=True):
        (curve,) = component_curves(model, which, values_of(line["x"]))
        np.testing.assert_allclose(values_of(line["y"]), curve.values)
        np.testing.assert_allclose(values_of(band["y"]), [*curve.high, *curve.low[::-1]])
    heads, cells = words.by_horizon(found)
    assert heads == [
        "steps ahead", "forecasts", "error", "error of persistence", "error of seasonal naive", "CRPS",
        "CRPS of persistence", "CRPS of seasonal naive", "in 50%", "in 80%", "in 90%",
    ]  # fmt: skip
    assert cells[0][2:5] == [f"{found.rmse[name][0]:.4g}" for name in ("model", "persistence", "seasonal naive")]
    assert cells[-1][-1] == f"{found.coverage[-1]:.1%}"


def test_shares_inside_intervals_and_biases_are_those_of_the_forecasts(model):
    found = model.backtest_
    for place, horizon in enumerate(found.horizons.tolist()):
        observed, mean, std = found.forecasts[horizon]
        shares = [coverage(observed, mean, std, level) for level in INTERVAL_LEVELS]
        np.testing.assert_allclose(found.coverages[:, place], shares, rtol=EXACT)
        assert found.bias[place] == pytest.approx(np.nanmean(observed - mean), rel=EXACT)
    np.testing.assert_array_equal(found.coverages[-1], found.coverage)


def test_bands_are_of_two_deviations_of_the_logarithm_and_a_factor_of_a_thousand_at_most():
    found = np.array([0.0, 0.7]), np.array([[2.0, 1.0], [4.0, 0.5]]), np.array([[0.1, 1e6], [2.0, 0.25]])
    model = SimpleNamespace(component_names_=("one", "other"), response=lambda *_, **__: found)
    for which, (one, other) in (("power", (2.0, [4.0, 0.5])), ("rate", (0.5, [0.25, 2.0]))):
        first, second = component_curves(model, which)
        assert (first.name, second.name) == ("one", "other")
        np.testing.assert_allclose(first.values, [one, 1.0])
        np.testing.assert_allclose(first.low, [one * np.exp(-0.1), 1e-3])
        np.testing.assert_allclose(first.high, [one * np.exp(0.1), 1e3])
        ends = second.low, second.values, second.high
        np.testing.assert_allclose(ends, [np.multiply(np.exp(reach), other) for reach in (-1.0, 0.0, 1.0)])
        np.testing.assert_array_equal(second.frequencies, [0.0, 0.7])


def test_a_model_from_a_file_has_the_same_words_and_no_rows(model, page, tmp_path):
    model.save(tmp_path / "model.sgp")
    again = load(tmp_path / "model.sgp")
    text = again.report(tmp_path / "report.html", horizon=10).read_text(encoding="utf-8")
    first = [one.split('<h2 id="glance-title">')[1].split('<h2 id="map-title">')[0] for one in (page, text)]
    assert first[0] == first[1]
    assert len(data_of(text)["labels"]) == 10
    assert "has no rows: pass them" in text
    shown = again.report(tmp_path / "report.html", rows()[:N_LEARNT], horizon=10).read_text(encoding="utf-8")
    assert data_of(shown)["labels"] == data_of(page)["labels"]
    np.testing.assert_array_equal(field(data_of(shown), "observed"), field(data_of(page), "observed"))


def test_later_rows_stand_beside_the_forecast_and_judge_it(model, tmp_path):
    table = rows()
    text = model.report(tmp_path / "report.html", table, horizon=10).read_text(encoding="utf-8")
    data = data_of(text)
    np.testing.assert_allclose(field(data, "observed")[-10:], table[data["names"]][N_LEARNT : N_LEARNT + 10], rtol=1e-6)
    expected = model.backtest(table)
    assert "Forecasts are scored on given rows that the model was not fitted to." in text
    assert f"1 step ahead they are typically off by {expected.rmse['model'][0]:.3g}; " in text
    plain = copy.copy(model).report(tmp_path / "plain.html").read_text(encoding="utf-8")
    assert "scored on the last two fifths of the rows, by models of the first three fifths" in plain


@pytest.mark.parametrize(("horizon", "n_past"), [(1, 60), (15, 60), (16, 64), (25, 100), (40, N_LEARNT)])
def test_four_rows_are_shown_for_each_that_is_forecast_and_sixty_at_least(model, tmp_path, horizon, n_past):
    data = data_of(model.report(tmp_path / "report.html", horizon=horizon).read_text(encoding="utf-8"))
    shown, expected = field(data, "observed"), rows()[data["names"]][N_LEARNT - n_past : N_LEARNT]
    np.testing.assert_allclose(shown[:n_past], expected, rtol=1e-6)
    assert len(shown) == n_past + horizon


def test_horizons_of_which_no_row_has_come_are_left_out(model):
    found = model.backtest(rows()[: N_LEARNT + 10])
    assert found.horizons.tolist() == [1, 6]
    assert found.n_origins.tolist() == [10, 5]


def test_rows_of_arrays_are_counted(tmp_path):
    values = rows()[NAMES[:1]].to_numpy()
    model = GraphGPForecaster(components=(MaternComponent(0.5),), seasons=None).fit(values[:60])
    text = model.report(tmp_path / "report.html", values[:60], horizon=3).read_text(encoding="utf-8")
    data = data_of(text)
    assert data["labels"][-4:] == ["row 59", "row 60", "row 61", "row 62"]
    assert "<h1>Forecasts on a graph of 1 node</h1>" in text
    assert "The model forecasts 1 node from its past." in text
    assert "Nodes are forecast independently" in text
    assert "rate-plot" not in data["figures"]
    n_past = len(data["labels"]) - 3
    np.testing.assert_allclose(field(data, "observed")[:-3], values[:60][-n_past:], rtol=1e-6)
    later = model.report(tmp_path / "later.html", values[60:70], horizon=3).read_text(encoding="utf-8")
    np.testing.assert_allclose(field(data_of(later), "observed"), values[60:63], rtol=1e-6)
    few = GraphGPForecaster(components=(MaternComponent(0.5),), seasons=None).fit(values[:12])
    assert few.backtest_ is None
    text = few.report(tmp_path / "few.html", horizon=2).read_text(encoding="utf-8")
    assert "too few rows to score forecasts" in text
    assert 'id="horizons"' not in text


def test_exogenous_columns_of_the_forecast_must_be_given(tmp_path):
    values, holidays = rows().to_numpy(), np.arange(150.0)[:, None] % 7 == 0
    values = np.where(np.isnan(values), 0.0, values) + holidays
    settings = {"components": (MaternComponent(0.5),), "seasons": None}
    model = GraphGPForecaster(Graph(RING.weights), **settings).fit(values[:60], holidays[:60].astype(float))
    with pytest.raises(ValueError, match="X must be given"):
        model.report(tmp_path / "report.html", horizon=3)
    text = model.report(tmp_path / "report.html", X=holidays[60:63].astype(float), horizon=3).read_text("utf-8")
    mean = model.predict(3, X=holidays[60:63].astype(float))
    np.testing.assert_allclose(field(data_of(text), "mean")[-3:], mean, rtol=1e-5)


def test_names_are_data_and_nothing_is_fetched(page):
    assert "<b>a" not in page
    assert "&lt;b&gt;a" in page
    assert "Content-Security-Policy" in page
    ours = page.replace(re.search(r"<script>\s*/\*\*\s*\* plotly.*?</script>", page, re.DOTALL).group(), "")
    assert not re.search(r"https?://", ours)
    assert page.index('id="glance-title"') < page.index('id="map-title"') < page.index('id="rates-title"')
    assert page.index('id="rates-title"') < page.index('id="appendix-title"')


# ---------------------------------------------------------------------------------------------------------- words


def backtest(ours, persistence, covered=0.9, **more):
    n = len(ours)
    rmse = {"model": np.array(ours), "persistence": np.array(persistence)}
    crps = {name: values / 2 for name, values in rmse.items()}
    shares = np.array([[0.5] * n, [0.8] * n, [covered] * n])
    errors = np.array([[1.0, 3.0, np.nan, 2.0, 0.5, 1.0], [9.0, 8.0, 7.0, 6.0, 5.0, 4.0]][:n])
    return Backtest(
        np.array([1, 6][:n]), np.full(n, 40), rmse, crps, np.full(n, covered), np.full(n, np.nan), errors,
        "rows after those seen", coverages=shares, bias=np.array([0.1, -0.2][:n]), **more,
    )  # fmt: skip


def numbers_of(model, found, times=()):
    nothing = np.full((0, 6), np.nan)
    shown = forecast_predictions(["row 0"], nothing, *np.ones((3, 1, 6)), None)
    return SeriesReport(model.graph_, tuple("abcdef"), shown, model.model_, found, times, ())


def test_what_is_said_first(model):
    said = words.forecast_accuracy_words(numbers_of(model, backtest([1.0, 2.0], [1.5, 1.9])))
    assert [one.split("; ")[0].split(",")[0] for one in said[2:5]] == [
        "1 step ahead they are typically off by 1",
        "6 steps ahead they are typically off by 2",
        "Persistence had the smaller error 6 steps ahead.",
    ]
    assert "too low by 0.1" in said[5]
    assert "too high by 0.2" in said[6]
    worse = words.forecast_accuracy_words(numbers_of(model, backtest([2.0, 2.0], [1.5, 1.9])))
    assert "Persistence had the smaller error 1 and 6 steps ahead." in worse
    said = words.forecast_accuracy_words(numbers_of(model, backtest([1.0], [1.5])))
    assert "Persistence has a smaller error at no horizon." in said
    old = dataclasses.replace(backtest([1.0], [1.5]), coverages=None, bias=None)
    assert "1 step ahead 90% of values lie inside their 90% intervals." in words.forecast_accuracy_words(
        numbers_of(model, old)
    )
    heads, (row,) = words.by_horizon(old)
    assert (heads[-2:], row[-2:]) == (["CRPS of persistence", "in 90%"], ["0.75", "90.0%"])
    assert len(series_figures(numbers_of(model, old))["coverage-plot"].data) == 2


def test_imputed_rows_stand_before_those_of_the_forecast():
    past, later, mean, std = (np.full((n, 3), value) for n, value in ((2, 1.0), (1, 2.0), (1, 3.0), (1, 4.0)))
    found = forecast_predictions("abc", past, later, mean, std, (5 * past, 6 * past))
    np.testing.assert_array_equal(found.observed[:, 0], [1, 1, 2])
    np.testing.assert_array_equal([found.mean[:, 0], found.std[:, 0]], [[np.nan, np.nan, 3], [np.nan, np.nan, 4]])
    np.testing.assert_array_equal([one[:, 0] for one in found.imputed], [[5, 5, np.nan], [6, 6, np.nan]])
    assert (found.source, found.labels, found.first, found.log_density) == ("forecast", ("a", "b", "c"), 2, None)


def test_intervals_that_do_not_hold_are_told(model):
    (said,) = [
        one for one in words.forecast_cautions(numbers_of(model, backtest([1.0], [1.5], 0.7))) if "interval" in one
    ]
    assert said == "90% intervals 1 step ahead covered 70.0% of what came: too narrow, and wider by now."
    assert any("missing values" in one for one in words.forecast_cautions(numbers_of(model, None)))


def test_how_long_patterns_last_in_words(model):
    ends = np.array([0.0, 1.0])
    times = [Curve("Matern 1/2", ends, np.array(values), *np.ones((2, 2))) for values in ([1234.0, 3.0], [5.0, 5.1])]
    said = " ".join(words.time_scale_words(numbers_of(model, None, times)))
    assert (
        "Matern 1/2: patterns common to neighbours last about 1,200 steps, differences between neighbours about 3."
        in said
    )
    assert "Matern 1/2: patterns last about 5 steps, smooth or rough." in said


def test_how_much_neighbours_have_a_say_in_words(model):
    times = [Curve("Matern 1/2", np.array([0.0, 1.0]), np.array([2.0, 2.1]), *np.ones((2, 2)))]

    def said(weights, drift=()):
        on_graph, alone = (SimpleNamespace(fit=fit) for fit in (object(), None))
        stack = SimpleNamespace(weights=np.array(weights), members=(on_graph, alone), drift_horizons=drift)
        numbers = dataclasses.replace(numbers_of(model, None, times), model=SimpleNamespace(stack=stack))
        return words.time_scale_words(numbers)

    assert said([1.0, 0.0])[0].startswith("100% of the weight")
    assert said([0.3, 0.7])[0].startswith("30% of the weight")
    alone, last = said([0.0, 1.0], (1, 2, 6))
    assert alone.startswith("Nodes are forecast independently")
    assert "1, 2 and 6 steps ahead" in last
