"""Pictures of forecasts show the numbers that the model gives."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from spectralgp import Graph, GraphGPForecaster
from spectralgp.series import MaternComponent
from spectralgp.show.plots import plot_backtest, plot_forecast, plot_forecast_map, plot_rates

NAMES = list("abcd")
ANGLES = 2 * np.pi * np.arange(4) / 4
RING = Graph.from_edges(
    [(node, (node + 1) % 4) for node in range(4)], names=range(4), coordinates=np.c_[np.cos(ANGLES), np.sin(ANGLES)]
)
NAMED = Graph(RING.weights, NAMES, RING.coordinates)
INDEX = pd.date_range("2020-01-01", periods=90)
VALUES = np.cumsum(np.random.default_rng(0).standard_normal((90, 4)), axis=0)
TABLE = pd.DataFrame(VALUES, INDEX, NAMES)


@pytest.fixture(scope="module")
def model() -> GraphGPForecaster:
    return GraphGPForecaster(NAMED, components=[MaternComponent(0.5)]).fit(TABLE[:80][NAMES[::-1]])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_a_fan_has_the_forecast_the_past_and_what_came(model):
    ax = plot_forecast(model, "b", 5, past=TABLE[:80], later=TABLE[80:])
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["90% interval", "50% interval", "forecast", "observed", "later"]
    mean, std = model.predict(5, return_std=True)
    forecast, observed, came = ax.lines
    np.testing.assert_allclose(forecast.get_ydata(), mean["b"])
    np.testing.assert_allclose(observed.get_ydata(), TABLE["b"][60:80])
    np.testing.assert_allclose(came.get_ydata(), TABLE["b"][80:85])
    assert np.diff(np.concatenate([observed.get_xdata(), forecast.get_xdata()])).tolist() == [1.0] * 24
    np.testing.assert_allclose(came.get_xdata(), forecast.get_xdata())
    top = ax.collections[0].get_paths()[0].vertices[:, 1].max()
    np.testing.assert_allclose(top, (mean["b"] + 1.6448536 * std["b"]).max(), rtol=1e-6)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("date", "b")


def test_rows_of_arrays_are_counted_up_to_the_forecast():
    counted = GraphGPForecaster(components=[MaternComponent(0.5)]).fit(VALUES[:80])
    ax = plot_forecast(counted, 2, 3, past=VALUES[:80], later=VALUES[80:])
    forecast, observed, came = ax.lines
    assert forecast.get_xdata().tolist() == came.get_xdata().tolist() == [80, 81, 82]
    assert observed.get_xdata()[-1] == 79
    assert ax.get_ylabel() == "node 2"


def test_a_map_has_the_last_of_the_steps_at_the_nodes_places(model):
    for which, place in (("mean", 0), ("std", 1)):
        ax = plot_forecast_map(model, 2, which=which)
        (nodes,) = [one for one in ax.collections if len(one.get_offsets()) == 4]
        np.testing.assert_allclose(nodes.get_offsets(), NAMED.coordinates)
        expected = model.predict(2, return_std=True)[place].iloc[-1][NAMES]
        np.testing.assert_allclose(nodes.get_array(), expected)


def test_rates_are_shown_as_time_scales_with_bands(model):
    ax = plot_rates(model)
    points, rates = model.response(which="rate")
    np.testing.assert_allclose(ax.lines[0].get_xydata(), np.c_[points, 1 / rates[0]])
    assert ax.get_legend().get_texts()[0].get_text() == "Matern 1/2"
    power = plot_rates(model, which="power")
    np.testing.assert_allclose(power.lines[0].get_ydata(), model.response(which="power")[1][0])
    assert len(power.collections) == 1


def test_backtests_are_drawn_by_horizon(model):
    backtest = model.backtest_
    ax = plot_backtest(backtest)
    assert [line.get_label() for line in ax.lines] == list(backtest.rmse)
    np.testing.assert_allclose(ax.lines[1].get_xydata(), np.c_[backtest.horizons, backtest.rmse["persistence"]])
    covered = plot_backtest(backtest, what="coverage")
    np.testing.assert_allclose(covered.lines[1].get_ydata(), backtest.coverage)
    with pytest.raises(ValueError, match="what must be one of 'rmse', 'crps', 'coverage'"):
        plot_backtest(backtest, what="error")
    with pytest.raises(ValueError, match="node must be one of the names"):
        plot_forecast(model, "z", 2)
