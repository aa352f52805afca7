"""Logarithms of signals: the function itself, moments against Monte Carlo, and the default on skew data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from spectralgp import Graph, GraphGPRegressor, load
from spectralgp.model.fields import Logarithms
from spectralgp.scores import crps_scorer
from tolerances import FORMULA

NOTHING = np.empty((1, 0))
LOGARITHMS = Logarithms(2.0, float(np.log1p(2 * 30.0 / 2.0)), np.array([0, 2]), np.array([1.5, 0.5]))
TOP = 60.0


def test_the_function_is_log1p_and_straight_lines_beyond():
    values = np.array([[0.0, 1.0, 30.0, 60.0]])
    assert oracle.relative_error(LOGARITHMS.signals(values, NOTHING), np.log1p(values / 2.0)) < FORMULA
    beyond = LOGARITHMS.signals(np.array([[-3.0, TOP + 62.0]]), NOTHING)
    assert oracle.relative_error(beyond, [[-1.5, np.log1p(TOP / 2.0) + 1.0]]) < FORMULA
    seen = LOGARITHMS.inputs(np.array([[3.0, -7.0, 1.0], [-3.0, 2.0, 0.0]]))
    assert oracle.relative_error(seen, [[np.log(3.0), -7.0, np.log(3.0)], [-2.0, 2.0, 0.0]]) < FORMULA


@settings(max_examples=100, deadline=None)
@given(st.floats(-1e3, 1e3))
def test_it_is_undone_and_its_slopes_are_those_of_differences(value):
    """On both sides of zero and of the largest value, where it goes on with the slope that it has there."""
    seen = LOGARITHMS.signals(np.array([[value]]), NOTHING)
    assert LOGARITHMS.restored(seen, NOTHING)[0, 0] == pytest.approx(value, rel=1e-9, abs=1e-9)
    step = 1e-5
    ahead, behind = (LOGARITHMS.signals(np.array([[value + one]]), NOTHING)[0, 0] for one in (step, -step))
    slope = float(np.exp(LOGARITHMS.log_slopes(seen, NOTHING)[0, 0]))
    assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-4)


def test_what_was_not_observed_stays_so():
    seen = LOGARITHMS.signals(np.array([[np.nan, 1.0]]), NOTHING)
    assert np.isnan(seen[0, 0])
    assert np.isnan(LOGARITHMS.log_slopes(seen, NOTHING)[0, 0])


def test_when_they_are_offered():
    rng = np.random.default_rng(1)
    skew = rng.lognormal(size=(50, 4))
    assert Logarithms.are_offered(skew)
    assert Logarithms.are_offered(np.where(skew < 0.5, 0.0, skew))
    assert not Logarithms.are_offered(skew - 1.0)  # some are negative
    assert not Logarithms.are_offered(rng.uniform(size=(50, 4)))
    assert not Logarithms.are_offered(20 - skew.clip(0, 20))  # skew the other way
    assert not Logarithms.are_offered(np.ones((5, 2)))
    for n_rare, is_skew in ((27, True), (28, False)):  # ones among a hundred: a skewness of 1.04 and of 0.98
        assert Logarithms.are_offered(np.repeat([1.0, 0.0], [n_rare, 100 - n_rare]).reshape(20, 5)) == is_skew


def test_which_inputs_are_seen_as_logarithms():
    """Columns that are never negative, each by its own deviation; those that carry over by a common one."""
    rng = np.random.default_rng(2)
    signals, inputs = rng.lognormal(size=(30, 2)), rng.lognormal(size=(30, 5)) * [1.0, 10.0, 1.0, 3.0, 0.0]
    inputs[:, 2] -= 3.0
    plain = Logarithms.of(signals, inputs, None)
    assert plain.columns.tolist() == [0, 1, 3, 4]
    own = inputs.std(axis=0)
    typical = np.sqrt(np.mean(own[[0, 1, 3]] ** 2))  # of a column that does not vary
    assert oracle.relative_error(plain.input_spreads, [*own[[0, 1, 3]], typical]) < FORMULA
    assert plain.spread == pytest.approx(np.std(signals))
    assert plain.signals(np.array([[2 * signals.max()]]), NOTHING)[0, 0] == pytest.approx(plain.highest)
    common = Logarithms.of(signals, inputs, np.array([3, 0]))
    assert common.input_spreads[[0, 2]] == pytest.approx(np.sqrt(np.mean(own[[0, 3]] ** 2)))
    assert Logarithms.of(signals, inputs, np.array([2, 0])).columns.tolist() == [1, 3, 4]  # all of those, or none


MEANS, STDS = np.array([[0.3, 1.5, -0.5, 3.2]]), np.array([[0.5, 1.0, 0.6, 0.4]])


def cut(seen):
    """What a predicted value is in the user's units."""
    return 2.0 * np.expm1(np.clip(seen, 0.0, LOGARITHMS.highest))


def test_means_and_variances_are_those_of_many_draws():
    """Means of values; variances of values, and of what is expected of them given a signal without noise."""
    n_draws, noise = 400_000, 0.4 * STDS**2
    rng = np.random.default_rng(3)
    signal = MEANS + np.sqrt(STDS**2 - noise) * rng.standard_normal((n_draws, 4))
    values = cut(signal + np.sqrt(noise) * rng.standard_normal((n_draws, 4)))
    mean = LOGARITHMS.mean(MEANS, lambda: STDS**2, NOTHING)
    error = values.std(axis=0) / np.sqrt(n_draws)
    assert np.all(np.abs(mean - values.mean(axis=0)) < 5 * error + 1e-3 * values.std(axis=0))
    variance = LOGARITHMS.variance(MEANS, STDS**2, STDS**2)
    assert variance[0] == pytest.approx(values.var(axis=0), rel=0.02, abs=1e-3)
    points, weights = np.polynomial.hermite_e.hermegauss(101)
    expected = sum(w * cut(signal + p * np.sqrt(noise)) for p, w in zip(points, weights / weights.sum(), strict=True))
    without_noise = LOGARITHMS.variance(MEANS, STDS**2 - noise, STDS**2)
    assert without_noise[0] == pytest.approx(expected.var(axis=0), rel=0.02, abs=1e-3)
    assert LOGARITHMS.variance(MEANS, 0.0 * STDS, STDS**2).tolist() == [[0.0] * 4]


def test_covariances_are_those_of_many_draws():
    rng = np.random.default_rng(4)
    root = rng.standard_normal((4, 4)) * 0.4
    covariance = root @ root.T + 0.05 * np.eye(4)
    drawn = cut(MEANS[0] + rng.multivariate_normal(np.zeros(4), covariance, 400_000))
    found = LOGARITHMS.covariance(MEANS, covariance[None, :, None], np.diag(covariance)[None])[0, :, 0]
    scale = np.sqrt(np.outer(np.diag(found), np.diag(found)))
    assert np.max(np.abs(found - np.cov(drawn.T)) / scale) < 0.02
    assert np.linalg.eigvalsh(found)[0] > -1e-9 * np.max(found)
    variances = np.diag(covariance)[None]
    assert np.diag(found) == pytest.approx(LOGARITHMS.variance(MEANS, variances, variances)[0])


def test_moments_of_values_that_are_not_cut_off_are_those_of_log_normal_ones():
    wide = Logarithms(0.7, 30.0, np.empty(0, dtype=int), np.empty(0))
    means, (first, second), noise = np.array([[9.0, 11.0]]), (0.9, 0.5), 0.2
    covariance, noisy = np.array([[first, 0.35], [0.35, second]]), np.array([[first + noise, second + noise]])
    expected = 0.7 * np.exp(means + noisy / 2)  # and less by the spread, which is what zero is seen as
    assert oracle.relative_error(wide.mean(means, lambda: noisy, NOTHING), expected - 0.7) < FORMULA
    variances = np.array([[first, second]])
    assert oracle.relative_error(wide.variance(means, variances, noisy), expected**2 * np.expm1(variances)) < FORMULA
    found = wide.covariance(means, covariance[None, :, None], noisy)[0, :, 0]
    assert oracle.relative_error(found, np.outer(expected, expected) * np.expm1(covariance)) < FORMULA


def test_a_wide_law_does_not_explode():
    mean = LOGARITHMS.mean(np.array([[2.0, 40.0]]), lambda: np.array([[100.0, 1.0]]), NOTHING)
    assert np.all((mean > 0) & (mean <= TOP * (1 + 1e-12)))


@pytest.fixture(scope="module")
def skew():
    """Log-normal signals on a ring, with some zeros, from log-normal inputs; a model of the default's choice."""
    rng, n_nodes = np.random.default_rng(5), 8
    graph = Graph.from_edges([(node, (node + 1) % n_nodes) for node in range(n_nodes)])
    inputs = rng.lognormal(size=(60, 3))
    mixing = rng.uniform(0.2, 1.0, (3, n_nodes))
    signals = np.exp(np.log(inputs) @ mixing + 0.4 * rng.standard_normal((60, n_nodes)))
    signals[signals < 0.3] = 0.0
    model = GraphGPRegressor(graph, random_state=0).fit(inputs[:30], signals[:30])
    return graph, inputs, signals, model


def members(model):
    return [one.transformation is not None for one in model.learnt_.candidates]


def test_the_default_takes_them_where_they_predict_better(skew):
    graph, inputs, signals, model = skew
    assert model.kernel_weights_[members(model)].sum() > 0.5
    assert "logarithms" in model.summary()
    shifted = GraphGPRegressor(graph, random_state=0).fit(inputs[:30], signals[:30] - 10.0)
    assert not any(members(shifted))
    new, observed = inputs[30:], signals[30:]
    assert model.log_predictive_density(new, observed) > shifted.log_predictive_density(new, observed - 10.0) + 50
    scores = [crps_scorer(model, new, observed), crps_scorer(shifted, new, observed - 10.0)]
    assert scores[0] > 0.9 * scores[1]  # the negative of the CRPS


@pytest.mark.slow
def test_it_is_offered_nowhere_else(skew):
    graph, inputs, signals, _ = skew
    incomplete = signals[:30].copy()
    incomplete[3, 4] = np.nan
    assert not any(members(GraphGPRegressor(graph, noise_variance=0.5).fit(inputs[:30], signals[:30])))
    assert not any(members(GraphGPRegressor(graph, spectrum="chebyshev").fit(inputs[:30], signals[:30])))
    assert not any(members(GraphGPRegressor(graph).fit(inputs[:30], incomplete)))


@pytest.mark.slow
def test_draws_moments_and_densities_agree(skew):
    """Of what the default says at new inputs, with and without noise, and given some of the values."""
    _, inputs, signals, model = skew
    observed = np.where(np.arange(8) < 4, signals[30:33], np.nan)
    for known in (None, observed):
        for noise in (False, True):
            mean, std = model.predict(inputs[30:33], return_std=True, include_noise=noise, observed=known)
            drawn = model.sample_y(inputs[30:33], 6_000, 1, include_noise=noise, observed=known)
            error = drawn.std(axis=-1) / np.sqrt(6_000)
            assert np.all(np.abs(drawn.mean(axis=-1) - mean) < 5 * error + 0.03 * drawn.std(axis=-1) + 1e-12)
            assert np.median(drawn.std(axis=-1) / np.maximum(std, 1e-12)) == pytest.approx(1.0, abs=0.1)
    covariance = model.predict(inputs[30:32], return_cov=True, include_noise=True)[1]
    std = model.predict(inputs[30:32], return_std=True, include_noise=True)[1]
    assert np.sqrt(np.einsum("naa->na", covariance)) == pytest.approx(std)


def test_densities_of_single_values_integrate_to_one(skew):
    """Over all numbers: logarithms reach beyond zero and beyond the largest value."""
    _, inputs, _, model = skew
    part = next(one for _, one in model.posterior_.parts if one.transformation is not None)
    field = part.at(inputs[30:31])
    one = np.arange(field.mean.shape[1]) == 2
    grid = np.concatenate([np.linspace(-20, 0, 500)[:-1], np.geomspace(1e-6, 1e4, 3_000)])
    logs = np.array([field.log_density(np.where(one, value, np.nan)[None]) for value in grid])
    assert np.trapezoid(np.exp(logs), grid) == pytest.approx(1.0, abs=0.01)


def test_answers_after_saving_and_more_signals(skew, tmp_path):
    _, inputs, signals, model = skew
    model.save(tmp_path / "model.sgp")
    again = load(tmp_path / "model.sgp")
    assert np.array_equal(again.predict(inputs[30:]), model.predict(inputs[30:]))
    more = again.condition_on(inputs[30:40], signals[30:40])
    before, after = (one.log_predictive_density(inputs[40:], signals[40:]) for one in (model, more))
    assert after > before
    filled, std = model.impute(inputs[50:52], np.where(np.arange(8) < 5, signals[50:52], np.nan))
    assert filled[:, :5] == pytest.approx(signals[50:52, :5], abs=1e-9)
    assert np.all(std[:, 5:] > 0)
    assert np.all(np.isfinite(model.leave_one_out().mean))
    assert 0 < model.noise_variance_ < np.var(signals)
    assert np.all((model.center_ > signals.min()) & (model.center_ < signals.max()))


def test_new_inputs_and_signals_may_be_negative(skew):
    """Nothing is refused that the plain models take."""
    _, inputs, signals, model = skew
    wanted = inputs[30:32] - 5.0
    assert np.all(np.isfinite(model.predict(wanted)))
    assert np.isfinite(model.log_predictive_density(wanted, signals[30:32] - 5.0))
