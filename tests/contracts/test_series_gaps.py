"""Forecasts of series with gaps: missing values and rows, dead sensors, constant nodes, trends and odd rows."""

import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from spectralgp import Graph, GraphGPForecaster
from spectralgp.model.statespace import MaternComponent
from spectralgp.series import ensembles

N_NODES, N_LEARNT = 5, 60
RING = Graph.from_edges([(node, (node + 1) % N_NODES) for node in range(N_NODES)])
QUICK = {"components": (MaternComponent(0.5),), "seasons": None}


def correlated(n_rows: int, carry: float = 0.9, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    nodes = np.arange(N_NODES)
    root, values = np.linalg.cholesky(np.exp(-np.abs(np.subtract.outer(nodes, nodes)))), np.zeros((n_rows, N_NODES))
    for row in range(1, n_rows):
        values[row] = carry * values[row - 1] + root @ random.standard_normal(N_NODES)
    return values


VALUES = correlated(80)


@pytest.fixture(scope="module")
def fitted():
    return GraphGPForecaster(RING, **QUICK).fit(VALUES[:N_LEARNT])


def in_turn(model, values, steps):
    """Log densities of rows by the covariance of `predict`, with an update after each."""
    model, found = copy.deepcopy(model), []
    for row, step in zip(values, steps, strict=True):
        mean, covariance = model.predict(np.array([step]), return_cov=True)
        seen = np.isfinite(row)
        law = multivariate_normal(mean[0][seen], covariance[0][np.ix_(seen, seen)]) if seen.any() else None
        found.append(0.0 if law is None else law.logpdf(row[seen]))
        model.update(pd.DataFrame(row[None], index=[step]))
    return np.array(found)


def later(kind):
    """Rows after those learnt from, and their times."""
    values, steps = VALUES[N_LEARNT : N_LEARNT + 8].copy(), np.arange(N_LEARNT, N_LEARNT + 8.0)
    if kind == "missing values":
        values[:4, :4] = values[6, 0] = np.nan
    if kind == "rows without any value":
        values[[0, 1, 5]] = np.nan
    if kind == "a gap in time":
        steps[3:] += 7.5
    return values, steps


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("kind", ["complete", "missing values", "rows without any value", "a gap in time"])
def test_densities_obey_the_chain_rule(fitted, kind, moves):
    model = fitted.transfer(RING) if moves else fitted
    values, steps = later(kind)
    table = pd.DataFrame(values, index=steps)
    densities = model.log_predictive_density(table, joint=False)
    np.testing.assert_allclose(densities, in_turn(model, values, steps), rtol=1e-8, atol=1e-8)
    after, halves = copy.deepcopy(model), [model.log_predictive_density(table[:4])]
    after.update(table[:4])
    halves.append(after.log_predictive_density(table[4:]))
    assert model.log_predictive_density(table) == pytest.approx(sum(halves), abs=1e-8)
    distances = [model.anomaly_scores(table[:4], by="step"), after.anomaly_scores(table[4:], by="step")]
    np.testing.assert_allclose(model.anomaly_scores(table, by="step"), np.concatenate(distances), rtol=1e-8)


def judged_by(values):
    """A model, and what validation blocks said while it was learnt."""
    seen, judged = [], ensembles.validated
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensembles, "validated", lambda *args: seen.append(judged(*args)) or seen[-1])
        return GraphGPForecaster(RING, **QUICK).fit(values), seen[-1] if seen else None


def test_a_block_without_values_leaves_what_the_other_says():
    random = np.random.default_rng(0)
    errors, values = random.standard_normal((200, N_NODES)), np.zeros((200, N_NODES))
    errors[120:160] *= 3  # three times as wild in the first block
    for row in range(1, 200):
        values[row] = 0.6 * values[row - 1] + errors[row]
    ended = values.copy()
    ended[160:] = np.nan
    nothing = np.full((40, N_NODES), np.nan)
    for rows in (ended, np.concatenate([values[:120], nothing, values[120:160]])):
        model, said = judged_by(rows)
        assert all(one.factor > 1.5 for one in said.by_horizon)
        assert said.by_horizon[0].factor > 3
        std = model.predict(1, return_std=True)[1][0]
        assert (std > 2).all()  # of errors that were last three


def test_a_dead_sensor_leaves_correlations_and_drift_of_the_others():
    random = np.random.default_rng(1)
    values, common = np.zeros((300, N_NODES)), random.standard_normal((300, 1))
    carry = np.linspace(0.2, 0.97, N_NODES)
    for row in range(1, 300):  # errors go together everywhere, and node 2 follows changes of node 4
        values[row] = carry * values[row - 1] + 0.5 * random.standard_normal(N_NODES) + 1.5 * common[row]
        values[row, 2] += 2 * (values[row - 1, 4] - values[row - 2, 4])
    dead = values.copy()
    dead[150:, 0] = np.nan
    (plain, of_all), (model, said) = (judged_by(one) for one in (values, dead))
    assert min(said.shares[0], of_all.shares[0]) >= 0.8
    assert model.drift_horizons_ == plain.drift_horizons_ == [1]

    def between(one):
        covariance = one.predict(1, return_cov=True)[1][0][1:, 1:]
        deviations = np.sqrt(np.diag(covariance))
        return (covariance / np.outer(deviations, deviations))[np.triu_indices(N_NODES - 1, 1)]

    standard_error = (1 - 0.5**2) / np.sqrt(300)  # of a correlation of a half
    np.testing.assert_allclose(between(model), between(plain), atol=3 * standard_error)


@pytest.mark.parametrize("first", [0, 1])
def test_nodes_that_are_zero_for_long_leave_forecasts_of_all_as_they_are(first):
    random = np.random.default_rng(0)
    logarithms = 0.3 * correlated(120)
    roots = np.sqrt(random.poisson(20 * np.exp(logarithms)))
    late = roots.copy()
    late[:80, :2] = 0.0
    late[40, :2] = first
    stds = [GraphGPForecaster(RING, **QUICK).fit(one).predict(6, return_std=True)[1] for one in (roots, late)]
    assert (stds[1] < 2 * stds[0].max()).all()
    assert (stds[1][:, 2:] > 0.5 * stds[0][:, 2:]).all()


@pytest.mark.parametrize("kind", ["line", "line and week", "counter"])
def test_trends_are_continued(kind):
    steps, random = np.arange(66.0)[:, None], np.random.default_rng(0)
    values = {
        "line": 5 * steps + np.arange(2),
        "line and week": 2 * steps + 3 * np.sin(2 * np.pi * steps / 7 + np.arange(2)) + random.standard_normal((66, 2)),
        "counter": np.cumsum(random.poisson(20, size=(66, 2)), axis=0).astype(float),
    }[kind]
    model = GraphGPForecaster(components=(MaternComponent(1.5),), drift=None).fit(values[:60])
    mean, std = model.predict(6, return_std=True)
    assert [one.period for one in model.seasons_] == ([7.0] if "week" in kind else [])
    assert np.abs(mean - values[60:]).mean() < 0.5 * np.abs(values[59] - values[60:]).mean()
    assert (np.abs(mean - values[60:]) < 4 * std).all()


# ------------------------------------------------------------------------------------------------- times and doubts

DAYS = pd.date_range("2024-01-01", periods=80, freq="D")


def test_numbers_after_dates_and_dates_after_numbers_are_refused(fitted):
    dated = GraphGPForecaster(RING, **QUICK).fit(pd.DataFrame(VALUES[:N_LEARNT], index=DAYS[:N_LEARNT]))
    with pytest.raises(TypeError, match=r"times must be dates, as those at fit were; got numbers\. Pass dates"):
        dated.update(pd.DataFrame(VALUES[60:62], index=[500, 900]))
    with pytest.raises(TypeError, match="times must be numbers, as those at fit were; got dates"):
        fitted.update(pd.DataFrame(VALUES[60:62], index=DAYS[60:62]))
    assert (dated.n_steps_, fitted.n_steps_) == (N_LEARNT, N_LEARNT)
    assert dated.update(VALUES[60:62]).n_steps_ == N_LEARNT + 2  # rows of an array are the next ones


def test_a_time_out_of_reach_is_named():
    table = pd.DataFrame(VALUES[:60], index=[*range(59), 10**18])
    with pytest.raises(ValueError, match=r"times must lie within 1e\+12 steps of the first; got 1e\+18\. Check their"):
        GraphGPForecaster(RING, **QUICK).fit(table)


def test_a_gap_unlike_those_before_is_warned_of(fitted):
    model = copy.deepcopy(fitted)
    with pytest.warns(
        UserWarning, match=r"Y has a gap of 31 steps before row 90, unlike rows before\. Check its times"
    ):
        model.update(pd.DataFrame(VALUES[60:62], index=[90.0, 91.0]))
    model.update(pd.DataFrame(VALUES[62:63], index=[91.0 + 60]))  # less than twice as long as the last one
    copy.deepcopy(fitted).update(pd.DataFrame(VALUES[60:61], index=[59.0 + 24]))
    with pytest.warns(UserWarning, match="a gap of 25 steps before row 84"):
        copy.deepcopy(fitted).update(pd.DataFrame(VALUES[60:61], index=[59.0 + 25]))


def test_values_absurdly_far_from_their_forecast_are_warned_of(fitted):
    mean, std = fitted.predict(1, return_std=True)
    row = mean + 19.9 * std * np.array([1, -1, 1, -1, 1])
    copy.deepcopy(fitted).update(row)
    row[0, 3] = -999.0
    expected = (
        rf"Y has 1 values beyond 20 deviations of their forecasts; the first is row 60, node 3: -999, where "
        rf"{mean[0, 3]:.6g} was forecast\. Pass NaN if it is a code for a missing value"
    )
    model = copy.deepcopy(fitted)
    with pytest.warns(UserWarning, match=expected):
        model.update(row)
    assert model.n_steps_ == N_LEARNT + 1
    row[0, 3] = np.nan
    assert copy.deepcopy(fitted).update(row).n_steps_ == N_LEARNT + 1  # as the warning says


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.floats(0, 0.4), st.floats(0, 0.4), st.lists(st.integers(0, 4), max_size=2))
def test_any_pattern_of_missing_values_is_learnt_from(seed, share, empty, dead):
    """Missing values, rows and sensors, in any pattern: validation stays finite, and densities obey the chain rule."""
    random = np.random.default_rng(seed)
    values = correlated(56, 0.7, seed)
    values[random.random(values.shape) < share] = np.nan
    values[random.random(len(values)) < empty] = np.nan
    for node in dead:
        values[random.integers(1, 56) :, node] = np.nan
    values[0] = random.standard_normal(N_NODES)  # a value in every column
    learnt, after = values[:50], values[50:]
    model, said = judged_by(learnt)  # where a warning is an error
    assert (said is None) == (np.isfinite(learnt).any(axis=1).sum() < 40)  # of which a fifth is too short a block
    if said is not None:
        assert all(np.isfinite(found.factor) and found.factor >= 1 for found in said.by_horizon)
        assert said.weights.sum() == pytest.approx(1.0)
    assert sum(model.weights_.values()) == pytest.approx(1.0)
    assert (model.model_.stack.inflations > 0).all()
    densities = model.log_predictive_density(after, joint=False)
    np.testing.assert_allclose(densities, in_turn(model, after, np.arange(50.0, 56.0)), rtol=1e-8, atol=1e-8)
