"""What a model of a series answers, of two members whose weights, drift and inflations are known, against each row.

Filters of single members are held against dense matrices in test_process.py; here they stand for them.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from spectralgp._basics.tables import listing
from spectralgp.graphs import Graph
from spectralgp.model.statespace import MaternComponent, OscillatorComponent
from spectralgp.series import ModalProcess, complete, learn_each
from spectralgp.series.backtests import Backtest, ScoredForecasts, coverage_words, rival_words, scored
from spectralgp.series.clocks import NumericClock
from spectralgp.series.ensembles import BlockValidation, Ensemble, EnsembleMember, HorizonScores
from spectralgp.series.mean import Season, learn_mean
from spectralgp.series.model import (
    SeriesModel,
    SeriesRows,
    _block_scores,
    backtested,
    backtested_after,
    imputed,
    innovations,
    interpolated,
    joined,
    learn_series,
    one_step,
    paths,
    season_rows,
    summary_of,
)
from tolerances import STANDARD_ERRORS

N_ROWS, N_NODES = 30, 3
LEVELS, SCALES = np.array([10.0, -5.0, 0.0]), np.array([2.0, 1.0, 0.5])
WEIGHTS, HORIZONS = np.array([0.7, 0.3]), np.array([1.0, 2.0, 6.0])
INFLATIONS = np.array([[1.2, 0.9, 1.0], [2.0, 1.5, 1.1], [3.0, 1.0, 2.0]])
SHARES = np.array([0.0, 0.5, 0.25])
SHOWN = np.array([[1.0, 0.4, -0.2], [0.4, 1.0, 0.3], [-0.2, 0.3, 1.0]])
DRIFT = 0.1 * np.random.default_rng(3).standard_normal((9, 3))
RANDOM = np.random.default_rng(9)
OWN = np.cumsum(RANDOM.standard_normal((N_ROWS + 6, N_NODES)), axis=0) / 3 + RANDOM.standard_normal((N_ROWS + 6, 3))
STEPS = np.arange(N_ROWS + 6.0)


def processes():
    basis = np.linalg.qr(np.array([[1.0, 1.0, 0.2], [1.0, -1.0, 0.4], [1.0, 0.3, -1.0]]))[0]
    rates = np.full((1, 3), 0.3)
    return (
        ModalProcess((MaternComponent(1.5),), np.array([[2.0, 0.5, 0.3]]), rates, np.full(3, 0.2), basis),
        ModalProcess((MaternComponent(0.5),), np.array([[0.4, 1.0, 2.0]]), 2 * rates, np.array([0.1, 0.3, 0.2]), None),
    )


def rows(first, last):
    return SeriesRows(STEPS[first:last], LEVELS + SCALES * OWN[first:last], None)


@pytest.fixture(scope="module")
def model():
    """After the first thirty rows; the last ones matter at the first horizon, and fade towards the second."""
    flat = learn_mean(NumericClock(), STEPS[:4], np.tile(LEVELS, (4, 1)), None, None, None)
    members = tuple(EnsembleMember(name, one) for name, one in zip(("graph", "nodes"), processes(), strict=True))
    drifting, correlations = np.array([0, -1, -1]), np.array([np.eye(3), SHOWN, SHOWN])
    stack = Ensemble(members, WEIGHTS, 0, HORIZONS, DRIFT[None], drifting, INFLATIONS, SHARES, correlations)
    states = tuple(one.filtered(STEPS[:N_ROWS], OWN[:N_ROWS]) for one in processes())
    recent = OWN[N_ROWS - 3 : N_ROWS][::-1]
    return SeriesModel(
        NumericClock(), flat, SCALES, stack, states, recent, N_ROWS - 1.0, N_ROWS, None, (MaternComponent(0.5),), ()
    )


def law(origin, horizon):
    """Mean, standard deviations and correlations of a row some steps after another, by hand."""
    step = origin + horizon
    parts = [one.filtered(STEPS[: origin + 1], OWN[: origin + 1]).forecast([float(step)]) for one in processes()]
    mean = sum(weight * one.mean[0] for weight, one in zip(WEIGHTS, parts, strict=True))
    variance = sum(weight * one.variance[0] for weight, one in zip(WEIGHTS, parts, strict=True))
    last = np.concatenate([OWN[origin], OWN[origin - 1], OWN[origin - 2]])
    # drift is whole at one step and none at two; beyond six nothing changes but the members
    mean = mean + max(0.0, min(1.0, 2 - horizon)) * (last @ DRIFT)
    inflation = np.array([np.interp(horizon, HORIZONS, one) for one in INFLATIONS.T])
    share = np.interp(horizon, HORIZONS, SHARES)
    shown = (2 - horizon) * np.eye(3) + (horizon - 1) * SHOWN if horizon < 2 else SHOWN
    own = parts[0].node_covariance(0)
    own = own / np.sqrt(np.outer(np.diag(own), np.diag(own)))
    return LEVELS + SCALES * mean, SCALES * np.sqrt(inflation * variance), (1 - share) * own + share * shown


def test_rows_ahead_are_weighted_drifting_inflated_and_correlated(model):
    horizons = np.array([1.0, 1.5, 2.0, 3.0, 6.0, 9.0])
    found = model.ahead(model.last + horizons)
    np.testing.assert_array_equal(found.horizons, horizons)
    for place, horizon in enumerate(horizons):
        mean, std, correlation = law(N_ROWS - 1, horizon)
        np.testing.assert_allclose(found.mean[place], mean, rtol=1e-9)
        np.testing.assert_allclose(found.variance[place], std**2, rtol=1e-9)
        np.testing.assert_allclose(found.correlation(place), correlation, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.covariance(place), np.outer(std, std) * correlation, rtol=1e-9, atol=1e-12)


def test_more_rows_move_the_state_on(model):
    later = model.updated(rows(N_ROWS, N_ROWS + 4))
    assert (later.last, later.n_steps) == (N_ROWS + 3.0, N_ROWS + 4)
    np.testing.assert_allclose(later.recent, OWN[N_ROWS + 3 : N_ROWS : -1])
    mean, std, _ = law(N_ROWS + 3, 1)
    found = later.ahead(later.last + np.ones(1))
    np.testing.assert_allclose(found.mean[0], mean, rtol=1e-8)
    np.testing.assert_allclose(found.variance[0], std**2, rtol=1e-8)
    one_more = model.updated(rows(N_ROWS, N_ROWS + 1))
    np.testing.assert_allclose(one_more.recent, OWN[N_ROWS : N_ROWS - 3 : -1])
    assert model.updated(rows(N_ROWS, N_ROWS)) is model


def test_a_hole_in_a_last_row_is_filled_by_what_was_forecast_given_the_rest(model):
    holed = rows(N_ROWS, N_ROWS + 1)
    holed.values[0, 1] = np.nan
    mean, std, correlation = law(N_ROWS - 1, 1)
    covariance, seen = np.outer(std, std) * correlation, [0, 2]
    gain = covariance[1, seen] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
    expected = mean[1] + gain @ (holed.values[0, seen] - mean[seen])
    later = model.updated(holed)
    np.testing.assert_allclose(later.recent[0] * SCALES + LEVELS, [*holed.values[0, :1], expected, holed.values[0, 2]])
    np.testing.assert_allclose(later.recent[1:], OWN[N_ROWS - 1 : N_ROWS - 3 : -1])
    empty = model.updated(replace(holed, values=np.full((1, 3), np.nan)))
    np.testing.assert_array_equal(empty.recent[0], np.zeros(3))  # of which nothing is known


def crps_of(observed, mean, std):
    """Of a normal law, in closed form."""
    z = (observed - mean) / std
    return std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))


def test_a_backtest_scores_every_forecast_from_rolling_origins(model):
    first, everything = 20, rows(0, N_ROWS)
    found = backtested(model, everything, first, np.array([1, 3]), "as it was")
    assert (found.how, found.horizons.tolist(), found.n_origins.tolist()) == ("as it was", [1, 3], [9, 7])
    for place, horizon in enumerate((1, 3)):
        origins = np.arange(first, N_ROWS - horizon)
        laws = [law(origin, horizon) for origin in origins]
        mean, std = (np.array([one[part] for one in laws]) for part in range(2))
        observed = everything.values[origins + horizon]
        np.testing.assert_allclose(found.forecasts[horizon], [observed, mean, std], rtol=1e-7)
        assert found.rmse["model"][place] == pytest.approx(np.sqrt(np.mean((observed - mean) ** 2)))
        assert found.crps["model"][place] == pytest.approx(np.mean(crps_of(observed, mean, std)), rel=1e-6)
        assert found.bias[place] == pytest.approx(np.mean(observed - mean))
        np.testing.assert_allclose(found.node_rmse[place], np.sqrt(np.mean((observed - mean) ** 2, axis=0)))
        for level, share in zip((0.5, 0.8, 0.9), found.coverages[:, place], strict=True):
            inside = np.abs(observed - mean) <= norm.ppf(0.5 + level / 2) * std
            assert share == pytest.approx(inside.mean())
        assert found.coverage[place] == found.coverages[2, place]
        correlation = law(N_ROWS - 1, horizon)[2]  # as it is after the last row
        densities = [
            multivariate_normal(cov=np.outer(s, s) * correlation).logpdf(o - m)
            for o, m, s in zip(observed, mean, std, strict=True)
        ]
        np.testing.assert_allclose(found.densities[horizon], densities, rtol=1e-7)
        assert found.log_density[place] == pytest.approx(np.sum(densities) / observed.size)
        again = everything.values[origins]
        assert found.rmse["persistence"][place] == pytest.approx(np.sqrt(np.mean((observed - again) ** 2)))
        seen = everything.values[: first + 1]
        changes = np.sqrt(np.mean((seen[horizon:] - seen[:-horizon]) ** 2, axis=0))
        assert found.crps["persistence"][place] == pytest.approx(np.mean(crps_of(observed, again, changes)), rel=1e-6)
    assert "seasonal naive" not in found.rmse


def test_later_rows_are_forecast_from_the_last_one_and_from_each_of_them(model):
    later = rows(N_ROWS, N_ROWS + 5)
    found = backtested_after(model, later, np.array([1, 2]))
    assert found.n_origins.tolist() == [5, 4]
    for place, horizon in enumerate((1, 2)):
        laws = [law(N_ROWS - 1 + number, horizon) for number in range(6 - horizon)]
        mean, std = (np.array([one[part] for one in laws]) for part in range(2))
        observed = later.values[horizon - 1 :]
        np.testing.assert_allclose(found.forecasts[horizon], [observed, mean, std], rtol=1e-7)
        before = rows(N_ROWS - 1, N_ROWS + 5).values[: 6 - horizon]
        assert found.rmse["persistence"][place] == pytest.approx(np.sqrt(np.mean((observed - before) ** 2)))
        densities = [
            multivariate_normal(cov=np.outer(s, s) * laws[0][2]).logpdf(o - m)
            for o, m, s in zip(observed, mean, std, strict=True)
        ]
        np.testing.assert_allclose(found.densities[horizon], densities, rtol=1e-6)


def test_rows_one_step_ahead_have_distances_and_densities(model):
    later = rows(N_ROWS, N_ROWS + 4)
    later.values[2, 1] = later.values[3] = np.nan
    scaled, distances, densities = one_step(model, later)
    for number in range(2):
        mean, std, correlation = law(N_ROWS - 1 + number, 1)
        error, covariance = later.values[number] - mean, np.outer(std, std) * correlation
        np.testing.assert_allclose(scaled[number], error / std, rtol=1e-7)
        assert distances[number] == pytest.approx(np.sqrt(error @ np.linalg.solve(covariance, error) / 3))
        assert densities[number] == pytest.approx(multivariate_normal(cov=covariance).logpdf(error))
    mean, std, correlation = law(N_ROWS + 1, 1)
    error, covariance = (later.values[2] - mean)[[0, 2]], (np.outer(std, std) * correlation)[np.ix_([0, 2], [0, 2])]
    assert distances[2] == pytest.approx(np.sqrt(error @ np.linalg.solve(covariance, error) / 2))
    assert densities[2] == pytest.approx(multivariate_normal(cov=covariance).logpdf(error))
    assert np.isnan(scaled[2, 1])
    assert (np.isnan(distances[3]), densities[3]) == (True, 0.0)


def test_innovations_are_errors_of_a_step_in_deviations(model):
    everything = rows(0, N_ROWS)
    found = innovations(model, everything)
    assert np.isnan(found[0]).all()
    for row in range(3, N_ROWS, 5):
        mean, std, _ = law(row - 1, 1)
        np.testing.assert_allclose(found[row], (everything.values[row] - mean) / std, rtol=1e-7)
    still = replace(model, stack=replace(model.stack, drifting=np.array([-1, -1, -1])))
    holed = replace(everything, values=np.where(np.arange(N_ROWS)[:, None] == 20, np.nan, everything.values))
    np.testing.assert_allclose(innovations(still, holed)[1:20], innovations(still, everything)[1:20], rtol=1e-7)


def test_paths_have_the_means_and_covariances_of_their_rows(model):
    ahead = model.ahead(model.last + np.array([1.0, 2.0]))
    drawn = paths(ahead, 4_000, np.random.default_rng(0))
    assert drawn.shape == (4_000, 2, 3)
    for place in range(2):
        mean, std, correlation = law(N_ROWS - 1, place + 1)
        covariance = np.outer(std, std) * correlation
        assert np.all(np.abs(drawn[:, place].mean(axis=0) - mean) < STANDARD_ERRORS * std / np.sqrt(4_000))
        error = np.sqrt((covariance**2 + np.outer(std**2, std**2)) / 4_000)
        assert np.all(np.abs(np.cov(drawn[:, place].T) - covariance) < STANDARD_ERRORS * error)
    # rows are those of one path: the second goes with the first as the member's do
    whole = np.cov(drawn[:, 0, 0], drawn[:, 1, 0])
    assert whole[0, 1] > 0.1 * np.sqrt(whole[0, 0] * whole[1, 1])


def test_what_held_out_blocks_said_is_scored_in_the_units_of_the_user(model):
    everything, cut = rows(0, N_ROWS), 18
    seen = [ScoredForecasts(np.array([20, 25]), OWN[[20, 25]], OWN[[20, 25]] + 0.3, np.full((2, 3), 0.7)), None]
    said = tuple(HorizonScores(None, (), 1.0, np.zeros((2, 1)), one) for one in seen)
    trials = BlockValidation(("graph", "nodes"), WEIGHTS, np.array([2, 6]), np.ones((2, 2)), "graph", SHARES, said)
    found = _block_scores(everything, model.mean, SCALES, trials, cut)
    assert (found.horizons.tolist(), found.n_origins.tolist()) == ([2], [2])
    observed = everything.values[[20, 25]]
    expected = [observed, observed + 0.3 * SCALES, np.tile(0.7 * SCALES, (2, 1))]
    np.testing.assert_allclose(found.forecasts[2], expected, rtol=1e-9)
    np.testing.assert_allclose(found.node_rmse[0], 0.3 * SCALES)
    changes = np.sqrt(np.mean((everything.values[2:cut] - everything.values[: cut - 2]) ** 2, axis=0))
    again = np.mean(crps_of(observed, everything.values[[18, 23]], changes))
    assert found.crps["persistence"][0] == pytest.approx(again, rel=1e-6)
    nothing = replace(trials, by_horizon=(said[1], said[1]))
    assert _block_scores(everything, model.mean, SCALES, nothing, cut) is None


def test_the_season_of_naive_forecasts_is_the_longest_if_it_was_there_twice(model):
    seasonal = replace(model.mean, seasons=(Season("", 7.0, (1,)), Season("day", 11.6, (1, 2))))
    assert [season_rows(seasonal, n_before) for n_before in (23, 24, 99)] == [None, 12, 12]
    assert season_rows(model.mean, 99) is None


def test_missing_values_are_filled_by_the_heaviest_member_of_the_graph(model):
    holed = rows(0, N_ROWS)
    holed.values[12, 1] = holed.values[20] = np.nan
    values, variances = imputed(model, holed, 400)
    missing = np.isnan(holed.values)
    np.testing.assert_array_equal(values[~missing], holed.values[~missing])
    assert not variances[~missing].any()
    fitted = tuple(replace(one, fit=fit) for one, fit in zip(model.stack.members, (None, object()), strict=True))
    for members, process in ((model.stack.members, processes()[0]), (fitted, processes()[1])):
        chosen = replace(model, stack=replace(model.stack, members=members))
        own = complete(process, holed.steps, model.in_units(holed), 400)
        values, variances = imputed(chosen, holed, 400)
        np.testing.assert_allclose(values[missing], (LEVELS + SCALES * own.mean)[missing], rtol=1e-6)
        np.testing.assert_allclose(variances[missing], (SCALES**2 * own.variance)[missing], rtol=1e-6)


def test_a_summary_has_the_mean_the_members_and_what_blocks_said(model):
    graph = Graph.from_edges([(0, 1), (1, 2)])
    trials = BlockValidation(("graph", "nodes on their own"), WEIGHTS, np.array([1, 6]), np.ones((2, 2)))
    seasonal = replace(model.mean, seasons=(Season("day", 24.0, (1, 2)), Season("", 7.5, (1,))))
    told = replace(model, mean=seasonal, trials=trials, notes=("odd rows",))
    assert summary_of(told, None, graph).split("\n") == [
        "30 steps on 3 nodes and 2 edges.",
        "Note: odd rows.",
        "  mean:     levels of nodes; seasons: day (2 waves), 7.5 steps (1 waves); exogenous columns: none",
        "  weights:  graph 0.70, nodes on their own 0.30",
        "",
        "graph, weight 0.70:",
        "  Matern 3/2: 82% of the variance, time scale 3.3 steps",
        "  noise and residual: 18% of the variance",
        "",
        "nodes, weight 0.30:",
        "  Matern 1/2: 85% of the variance, time scale 1.7 steps",
        "  noise and residual: 15% of the variance",
        "",
        "  drift:    errors regressed on the last rows at 1 steps",
        "  nodes:    errors are correlated as by graph; 0% of it from past errors at one step",
        "  backtest: none, for lack of rows; intervals are those of the model",
    ]
    first, second = model.stack.members
    uneven = replace(second.process, components=(OscillatorComponent(6.28318),), rates=np.array([[0.5, 0.26, 0.25]]))
    members, nothing = (first, replace(second, process=uneven)), np.empty((0, 3, 3))
    weights, still = np.array([0.0, 1.0]), np.array([-1, -1, -1])
    stack = replace(model.stack, members=members, weights=weights, correlations=nothing, drifting=still)
    scores = {"model": np.ones(1), "persistence": np.full(1, 0.5)}
    ones = np.ones(1)
    backtest = Backtest(np.array([2]), np.array([9]), scores, scores, 0.5 * ones, ones, ones[:, None], "by hand")
    exogenous = replace(model.mean, x_center=np.zeros(2))
    found = summary_of(replace(model, stack=stack, mean=exogenous), backtest, Graph.edgeless(1)).split("\n")
    assert found[:2] == [
        "30 steps on 1 node and 0 edges.",
        "  mean:     levels of nodes; seasons: none; exogenous columns: 2",
    ]
    assert found[2:9] == [
        "",
        "nodes, weight 1.00:",
        "  oscillator of 6.283 steps: 85% of the variance, time scale 2 to 4 steps",
        "  noise and residual: 15% of the variance",
        "",
        "  drift:    none that gained 5%",
        "  nodes:    errors are correlated as by graph",
    ]
    assert found[9:11] == ["", "Backtest, by hand:"]
    assert found[-2:] == [
        "  90% intervals 2 steps ahead covered 50.0% of what came: too narrow, and wider by now.",
        "  persistence had the smaller error 2 steps ahead.",
    ]


def test_long_series_are_learnt_from_their_last_rows(monkeypatch):
    """But for the mean and the states, which are of all; models that are compared are learnt from fewer."""
    steps = np.arange(130.0)
    values = 5 + np.cumsum(np.random.default_rng(1).standard_normal((130, 2)), axis=0) * [1.0, 3.0]
    values[128, 1] = np.nan
    choices = {
        "components": (MaternComponent(0.5),),
        "seasons": None,
        "calendar": None,
        "residual": None,
        "drift": None,
    }

    def learnt(n_rows, n_nodes=2, notes=()):
        own = SeriesRows(steps[:n_rows], values[:n_rows, :n_nodes], None)
        return learn_series(Graph.edgeless(n_nodes), NumericClock(), own, **choices, notes=notes)[0]

    for name, value in {"MOST_LEARNT": 100, "FEWEST_COMPARED": 20, "COMPARED_VALUES": 60}.items():
        monkeypatch.setattr(f"spectralgp.series.model.{name}", value)
    found = learnt(130, notes=("odd rows",))
    assert found.notes == (
        "odd rows",
        "all but the mean is learnt from the last 100 rows",
        "models that are compared are learnt from 30 of these",
    )
    assert (found.n_steps, found.last) == (130, 129.0)
    np.testing.assert_allclose(found.mean.levels, np.nanmean(values, axis=0))
    own = found.in_units(SeriesRows(steps, values, None))
    np.testing.assert_allclose(found.scales, np.sqrt(np.nanmean((values - found.mean.levels) ** 2, axis=0)))
    (member,) = found.stack.members
    earlier = learn_each(steps[-70:-40], interpolated(steps, own)[-70:-40], (MaternComponent(0.5),))
    expected = learn_each(steps[-100:], own[-100:], (MaternComponent(0.5),), start=earlier)
    np.testing.assert_allclose(member.process.rates, expected.rates, rtol=0.02)
    whole = member.process.filtered(steps, own, 1e-3)
    np.testing.assert_allclose(found.states[0].state, whole.state, rtol=1e-9)
    np.testing.assert_allclose(found.recent[[0, 2]], own[[129, 127]], rtol=1e-9)
    np.testing.assert_allclose(found.recent[1, 0], own[128, 0])
    before = member.process.filtered(steps[:128], own[:128]).forecast([128.0])
    np.testing.assert_allclose(found.recent[1, 1], before.mean[0, 1], rtol=1e-2)  # what was forecast of it
    assert learnt(100, n_nodes=1).notes == ()  # of as many values, all rows before the blocks


def test_words_of_a_backtest_say_where_intervals_and_errors_are_off():
    scores = {"model": np.array([1.0, 2.0, 3.0]), "persistence": np.array([0.9, 2.0, 2.5])}
    coverage = np.array([0.859, 0.86, 0.945])
    nothing = np.full(3, np.nan)
    found = Backtest(
        np.array([1, 6, 24]), np.full(3, 9), scores, scores, coverage, nothing, nothing[:, None], "by hand"
    )
    assert found.miscovered == [(1, 0.859), (24, 0.945)]
    assert coverage_words(found) == [
        "90% intervals 1 step ahead covered 85.9% of what came: too narrow, and wider by now.",
        "90% intervals 24 steps ahead covered 94.5% of what came: too wide.",
    ]
    assert rival_words(found) == ["persistence had the smaller error 1 and 24 steps ahead."]
    assert [listing(one) for one in ([3], [3, 4], [3, 4, 5])] == ["3", "3 and 4", "3, 4 and 5"]
    assert str(found).split("\n") == [
        "Backtest, by hand:",
        "steps  rmse  persistence  crps  coverage",
        "    1     1          0.9     1      0.86",
        "    6     2            2     2      0.86",
        "   24     3          2.5     3      0.94",
    ]


def test_scores_of_what_was_not_observed_are_not_numbers():
    values, targets = np.arange(12.0).reshape(6, 2), np.array([2, 3])
    observed = np.array([[4.0, np.nan], [7.0, np.nan]])
    pieces = [ScoredForecasts(targets, observed, np.full((2, 2), 5.0), np.ones((2, 2)))]
    found = scored(np.array([1]), pieces, values, values, 3, "by hand")
    np.testing.assert_allclose(found.node_rmse, [[np.sqrt(2.5), np.nan]])
    assert found.rmse["model"][0] == pytest.approx(np.sqrt(2.5))
    assert found.bias[0] == pytest.approx(0.5)
    # of the row three before only the second target has one, in which the first node was 0
    assert found.rmse["seasonal naive"][0] == pytest.approx(7.0)
    assert found.rmse["persistence"][0] == pytest.approx(np.sqrt((2**2 + 3**2) / 2))
    assert found.n_origins.tolist() == [2]
    unseen = [replace(pieces[0], observed=np.full((2, 2), np.nan))]
    nothing = scored(np.array([1]), unseen, values, values, None, "")
    assert np.isnan([nothing.rmse["model"][0], nothing.crps["model"][0], nothing.coverage[0], nothing.bias[0]]).all()


def test_rows_are_joined_and_cut_with_what_stands_beside_them():
    one, other = (
        SeriesRows(np.arange(2.0) + start, np.full((2, 3), start), np.full((2, 1), -start)) for start in (0.0, 2.0)
    )
    both = joined([one, other])
    np.testing.assert_array_equal(both.steps, [0, 1, 2, 3])
    np.testing.assert_array_equal(both.exogenous[:, 0], [0, 0, -2, -2])
    assert both.part(slice(1, 3)).exogenous.tolist() == [[0.0], [-2.0]]
    assert joined([rows(0, 2), rows(2, 3)]).exogenous is None
