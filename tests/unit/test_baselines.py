"""Baselines by their formulas: forecasts, imputed values, and how they are judged."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from scipy.stats import t as student
from sklearn.linear_model import RidgeCV

from oracle import relative_error
from spectralgp import Graph
from spectralgp.learning import baselines
from spectralgp.learning.baselines import BaselinePrediction, PredictionErrors, no_change, node_means, ridge_regression
from spectralgp.scores import coverage, crps, root_mean_square_error
from tolerances import EXACT, FORMULA

NAN = np.nan
DAYS = np.array([[0.0], [1.0], [3.0]])


@pytest.fixture
def path():
    """Three nodes in a row; the edges weigh 1 and 3."""
    return Graph.from_edges({"source": [0, 1], "target": [1, 2], "weight": [1.0, 3.0]})


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((24, 3))
    return inputs, 5 + inputs @ rng.standard_normal((3, 4)) + 0.3 * rng.standard_normal((24, 4))


def in_time(n_signals=30, n_nodes=4, seed=0):
    """A random walk: inputs are the signals before."""
    walk = np.cumsum(np.random.default_rng(seed).standard_normal((n_signals + 1, n_nodes)), axis=0)
    return walk[:-1].copy(), walk[1:].copy()


# --------------------------------------------------------------------------------------------------------- forecasts


def test_node_means_leave_a_signal_out_of_its_own():
    signals = np.array([[1.0, NAN], [3.0, 4.0], [8.0, 6.0]])
    new = np.empty((2, 0))
    assert node_means(np.empty((3, 0)), signals, new).mean.tolist() == [[4.0, 5.0], [4.0, 5.0]]
    left = node_means(np.empty((3, 0)), signals).mean
    assert left.tolist() == [[5.5, 5.0], [4.5, 6.0], [2.0, 4.0]]


def test_deviations_are_root_mean_squares_of_residuals():
    """By node; of all values for a node without any, and never less than a tenth of the others'."""
    residuals = np.full((5, 4), NAN)
    residuals[:2] = [[1.0, NAN, 2.0, 0.0], [3.0, NAN, NAN, 0.0]]
    found = baselines.with_residuals(np.zeros((3, 4)), residuals)
    variances = np.array([5.0, 14 / 5, 4.0, 0.0])
    variances[3] = 0.01 * variances.mean()
    np.testing.assert_allclose(found.std, np.tile(np.sqrt(variances), (3, 1)), rtol=1e-12)
    assert found.covariances == ()
    still = baselines.with_residuals(np.full((2, 1), 30.0), np.zeros((4, 1)))
    np.testing.assert_allclose(still.std, 30e-6, rtol=1e-12)
    whole = np.random.default_rng(0).standard_normal((9, 3))
    ((signals, covariance),) = baselines.with_residuals(np.zeros((2, 3)), whole).covariances
    assert signals.tolist() == [0, 1]
    sample = whole.T @ whole / 9  # about zero, and shrunk towards one variance
    share = covariance[0, 1] / sample[0, 1]
    np.testing.assert_allclose(covariance, share * sample + (1 - share) * np.mean(np.diag(sample)) * np.eye(3))
    assert 0 < share < 1
    apart = baselines.with_residuals(np.zeros((2, 3)), whole, is_correlated=False)
    np.testing.assert_allclose(apart.std[0], np.sqrt(np.diag(sample)))
    assert apart.covariances == ()


def standardised(inputs, like):
    return (inputs - like.mean(axis=0)) / like.std(axis=0)


def ridge(inputs, signals, new_inputs, penalty):
    """Ridge regression with a constant that is not penalised, by its normal equations."""
    middle = inputs.mean(axis=0)
    gram = (inputs - middle).T @ (inputs - middle) + penalty * np.eye(inputs.shape[1])
    slopes = np.linalg.solve(gram, (inputs - middle).T @ (signals - signals.mean(axis=0)))
    return signals.mean(axis=0) + (new_inputs - middle) @ slopes


def test_ridge_regression_learns_each_node_from_the_signals_it_was_observed_in(data):
    inputs, signals = data
    holed, new = signals.copy(), np.random.default_rng(1).standard_normal((5, 3))
    holed[:6, 1], holed[3:, 2] = NAN, NAN  # of the third node there are three values: it has its mean
    found = ridge_regression(inputs, holed, new)
    known = inputs[6:]
    expected = RidgeCV(baselines.PENALTIES).fit(standardised(known, known), signals[6:, 1])
    expected = expected.predict(standardised(new, known))
    assert relative_error(found.mean[:, 1], expected) < FORMULA
    assert relative_error(found.mean[:, 2], np.full(5, holed[:3, 2].mean())) < EXACT
    whole = ridge_regression(inputs, signals, new)
    assert not found.covariances  # of residuals with missing values
    assert whole.covariances


def test_ridge_regression_leaves_each_signal_out(data):
    """With the scales and the penalty of all signals."""
    inputs, signals = data
    scaled = standardised(inputs, inputs)
    penalty = RidgeCV(baselines.PENALTIES).fit(scaled, signals).alpha_
    found = ridge_regression(inputs, signals)
    for row in (0, 11):
        others = np.arange(24) != row
        expected = ridge(scaled[others], signals[others], scaled[[row]], penalty)[0]
        assert relative_error(found.mean[row], expected) < FORMULA


def refitted(signals, row):
    """Mean and deviation of each node from all signals but one, value by value.

    Below five signals: errors of each value about the mean of its node in the others, pooled, with the 90% intervals
    of Student's t. Where one signal is left: errors about the mean of its other nodes, of a difference of two values.
    """
    others = [signal for number, signal in enumerate(signals) if number != row]

    def mean_of(rest, node, without=None):
        own = [signal[node] for signal in rest if not np.isnan(signal[node])]
        everywhere = [value for signal in rest for value in signal if not np.isnan(value)]
        if not own and not everywhere:
            everywhere = [value for place, value in enumerate(without) if place != node and not np.isnan(value)]
        return np.mean(own or everywhere or [0.0])

    errors = [
        signal[node] - mean_of(others[:place] + others[place + 1 :], node, signal)
        for place, signal in enumerate(others)
        for node in range(len(signal))
        if not np.isnan(signal[node])
    ]
    n_seen = len({node for signal in others for node in range(len(signal)) if not np.isnan(signal[node])})
    freedom = max(len(errors) - (n_seen if len(others) > 1 else 1), 1)
    deviation = (
        np.sqrt((2 if len(others) == 1 else 1) * np.mean(np.square(errors)))
        * student.ppf(0.95, freedom)
        / norm.ppf(0.95)
    )
    return [mean_of(others, node) for node in range(len(signals[row]))], deviation


@pytest.mark.parametrize("n_signals", [2, 3, 5])
@pytest.mark.parametrize("has_missing", [False, True])
def test_node_means_left_out_are_those_of_a_refit_without_the_signal(n_signals, has_missing):
    signals = 5 + np.random.default_rng(n_signals).standard_normal((n_signals, 4))
    if has_missing:
        signals[0, 1] = signals[-1, 2] = NAN
    found = node_means(np.empty((n_signals, 0)), signals)
    for row in range(n_signals):
        mean, deviation = refitted(signals, row)
        assert relative_error(found.mean[row], np.array(mean)) < FORMULA
        assert relative_error(found.std[row], np.full(4, deviation)) < FORMULA


@pytest.mark.parametrize("n_signals", [2, 3, 5, 7, 24])
@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("kind", ["node means", "ridge regression"])
def test_no_baseline_knows_the_signal_that_it_leaves_out(n_signals, has_missing, kind, monkeypatch):
    """Neither mean nor deviations of a signal change with it; settings, such as a penalty, are those of all signals."""
    monkeypatch.setattr(baselines, "PENALTIES", np.array([2.0]))
    rng = np.random.default_rng(n_signals)
    inputs, signals = rng.standard_normal((n_signals, 2)), rng.standard_normal((n_signals, 3))
    if has_missing:
        signals[0, 1] = signals[-1, 2] = NAN
    changed = signals.copy()
    changed[1] = 1e3 * rng.standard_normal(3)
    model = {"node means": node_means, "ridge regression": ridge_regression}[kind]
    before, after = model(inputs, signals), model(inputs, changed)
    assert relative_error(after.mean[1], before.mean[1]) < FORMULA
    np.testing.assert_array_equal(after.std[1], before.std[1])


def test_a_covariance_of_few_signals_can_be_inverted():
    """Residuals of two signals about their mean are opposites, whose covariance has rank one."""
    signals = np.random.default_rng(0).standard_normal((3, 5))
    for found in (node_means(np.empty((2, 0)), signals[:2], np.empty((3, 0))), node_means(np.empty((3, 0)), signals)):
        expected = norm.logpdf(signals, found.mean, found.std).sum(axis=1)
        assert relative_error(found.log_density(signals), expected) < FORMULA


def test_no_change_is_what_columns_hold_in_the_units_of_the_signals():
    before, signals = in_time()
    model = partial(no_change, columns=np.array([1, 3, 0, 2]), factor=2.5)
    expected = 2.5 * before[:, [1, 3, 0, 2]]
    np.testing.assert_array_equal(model(before, signals).mean, expected)
    found = model(before, signals, before[:3])
    np.testing.assert_array_equal(found.mean, expected[:3])
    again = baselines.with_residuals(expected[:3], signals - expected)
    np.testing.assert_array_equal(found.std, again.std)


def test_joint_densities_are_those_of_what_was_observed(data):
    inputs, signals = data
    found = ridge_regression(inputs[:18], signals[:18], inputs[18:])
    ((_, covariance),) = found.covariances
    holed = signals[18:].copy()
    holed[0, 2], holed[3] = NAN, NAN
    densities = found.log_density(holed)
    nodes = [0, 1, 3]
    first = multivariate_normal(found.mean[0, nodes], covariance[np.ix_(nodes, nodes)]).logpdf(holed[0, nodes])
    second = multivariate_normal(found.mean[1], covariance).logpdf(holed[1])
    assert relative_error(densities[:2], np.array([first, second])) < FORMULA
    assert densities[3] == 0
    alone = BaselinePrediction(found.mean, found.std).log_density(holed)
    expected = np.nansum(norm.logpdf(holed, found.mean, found.std), axis=1)
    assert relative_error(alone, expected) < FORMULA


def test_baselines_are_offered_where_they_make_sense(data):
    before, signals = in_time()
    everywhere = np.arange(4)

    def offered(*given):
        return list(baselines.baselines_of(*given))

    assert offered(before, signals, everywhere) == ["node means", "no change", "ridge regression"]
    found = baselines.baselines_of(before / 100, signals, everywhere)["no change"]
    assert found.keywords["factor"] == pytest.approx(100)
    shuffled = np.random.default_rng(0).permutation(30)
    assert offered(before[shuffled], signals[shuffled], everywhere) == ["node means", "ridge regression"]
    assert offered(*data, None) == ["node means", "ridge regression"]
    assert offered(data[0], data[1], np.array([0, 1, 2, 0])) == ["node means", "ridge regression"]
    assert offered(np.empty((24, 0)), data[1], None) == ["node means"]
    many = np.where(np.random.default_rng(0).random((24, 600)) < 0.5, NAN, 1.0)
    assert offered(data[0], many, None) == ["node means"]  # 600 regressions


@pytest.mark.parametrize("n_signals", [2, 3, 5])
@pytest.mark.parametrize("n_nodes", [1, 4])
@pytest.mark.parametrize("kind", ["whole", "incomplete", "constant"])
def test_every_baseline_has_means_and_deviations_however_little_there_is(n_signals, n_nodes, kind):
    before, signals = in_time(n_signals, n_nodes)
    if kind == "constant":
        before, signals = np.ones_like(before), np.ones_like(signals)
    if kind == "incomplete":
        signals[0, -1] = NAN
    for one in [node_means, partial(no_change, columns=np.arange(n_nodes)), ridge_regression]:
        for found in (one(before, signals, before[:2]), one(before, signals)):
            assert np.isfinite(found.mean).all()
            assert (found.std > 0).all()


# -------------------------------------------------------------------------------------------------------- imputation


def test_deviations_mix_a_nodes_errors_with_the_pooled_ones():
    errors = [np.array([[1.0, NAN, NAN], [NAN, NAN, NAN]]), np.array([[2.0, 3.0, NAN], [NAN, NAN, NAN]])]
    pooled = 14 / 3  # of 1, 4 and 9
    expected = np.sqrt([(5 + 5 * pooled) / 7, (9 + 5 * pooled) / 6, pooled])
    assert relative_error(baselines.deviations(errors), expected) < EXACT


def test_runs_of_missing_values_are_moved_and_hidden_once_in_one_fold():
    """Single missing values, an outage of four and a node without values, moved to other nodes and later signals."""
    holed = np.ones((12, 9))
    holed[[0, 3, 7], 1], holed[4:8, 3], holed[:, 5], holed[10, 6] = NAN, NAN, NAN, NAN
    folds = list(baselines.hidden(holed, np.random.default_rng(2)))
    missing, rng = np.isnan(holed), np.random.default_rng(2)
    moved = np.roll(missing, rng.integers(12), axis=0)[:, rng.permutation(9)]
    np.testing.assert_array_equal(np.sum(folds, axis=0), moved & ~missing)
    runs = [run for node in range(9) for run in np.split(np.arange(12), np.flatnonzero(np.diff(moved[:, node])) + 1)]
    nodes = [node for node in range(9) for _ in range(1 + np.count_nonzero(np.diff(moved[:, node])))]
    for rows, node in zip(runs, nodes, strict=True):
        hidden_in = [fold for fold in folds if fold[rows, node].any()]
        assert len(hidden_in) <= 1
    assert 2 <= len(folds) <= baselines.N_FOLDS


def test_where_no_hole_can_be_moved_errors_are_those_of_means():
    whole = np.array([[1.0, 2.0], [3.0, 8.0]])
    (errors,) = baselines.residuals(lambda *_: whole, None, None, whole)
    np.testing.assert_array_equal(errors, [[-2.0, -6.0], [2.0, 6.0]])  # of the other signal


def test_five_signals_of_a_node_are_regressed(data):
    inputs, signals = data
    holed = signals.copy()
    holed[5:, 1], holed[4:, 2] = NAN, NAN
    found = ridge_regression(inputs, holed, inputs[:3]).mean
    known = inputs[:5]
    expected = RidgeCV(baselines.PENALTIES).fit(standardised(known, known), signals[:5, 1])
    expected = expected.predict(standardised(inputs[:3], known))
    assert relative_error(found[:, 1], expected) < FORMULA
    assert relative_error(found[:, 2], np.full(3, signals[:4, 2].mean())) < EXACT
    left = ridge_regression(inputs, holed).mean
    assert left[0, 2] == pytest.approx(signals[1:4, 2].mean())
    assert left[0, 1] != pytest.approx(signals[1:5, 1].mean())
    for n_signals, is_offered in ((4, False), (5, True)):
        names = baselines.baselines_of(inputs[:n_signals], signals[:n_signals], None)
        assert ("ridge regression" in names) == is_offered


def test_neighbours_on_the_graph_by_hand(path):
    neighbours = baselines.graph_neighbours
    holed = np.array([[2.0, NAN, 20.0], [4.0, 10.0, 40.0], [NAN, 16.0, NAN]])  # means 3, 13, 30
    expected = [[2.0, 13 + (1 * -1 + 3 * -10) / 4, 20.0], [4.0, 10.0, 40.0], [3 + 3.0, 16.0, 30 + 3.0]]
    assert relative_error(neighbours(path, DAYS, holed), np.array(expected)) < EXACT
    # a node without an observed neighbour has what all others are above their means
    holed = np.array([[4.0, NAN, NAN], [2.0, 10.0, 40.0], [NAN, 16.0, NAN]])  # means 3, 13, 40
    assert neighbours(path, DAYS, holed)[0, 2] == pytest.approx(41.0, rel=EXACT)


def test_a_node_never_seen_has_its_neighbours_mean(path):
    holed = np.array([[1.0, NAN, 7.0], [3.0, NAN, 5.0], [2.0, NAN, 9.0]])  # means 2 and 7, so 5.75 in between
    expected = [5.75 + (-1 + 0) / 4, 5.75 + (1 - 3 * 2) / 4, 5.75 + (0 + 3 * 2) / 4]
    filled = baselines.graph_neighbours(path, DAYS, holed)
    assert relative_error(filled[:, 1], np.array(expected)) < EXACT
    given = baselines.graph_neighbours(path, DAYS, holed, means=np.array([1.0, 2.0, 3.0]))
    assert given[0, 1] == pytest.approx(2 + (0 + 3 * 4) / 4, rel=EXACT)


def test_what_is_hidden_was_observed_and_is_little():
    rng = np.random.default_rng(0)
    holed = np.where(rng.random((40, 12)) < 0.4, NAN, 1.0)
    out = baselines.hidden_at_once(holed, slice(-10, None))
    assert out.any()
    assert not out[:-10].any()
    assert not out[np.isnan(holed)].any()
    assert out.sum() < 0.4 * np.sum(~np.isnan(holed[-10:]))
    assert (~np.isnan(holed) & ~out).any(axis=0).all()


@pytest.mark.parametrize("n_missing", [1, 30])
def test_imputations_are_judged_at_what_was_hidden(path, n_missing):
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((40, 1)) + 0.1 * rng.standard_normal((40, 3)) + [1.0, 2.0, 3.0]
    holed = truth.copy()
    holed.flat[rng.choice(120, n_missing, replace=False)] = NAN
    out, given = baselines.hidden_at_once(holed, slice(4, None)), []

    def fill(hidden):
        given.append(hidden)
        return truth[4:] + 0.25, np.ones((36, 3))

    ours, *found = baselines.imputation_errors("ours", fill, path, np.arange(40.0)[:, None], holed, slice(4, None))
    np.testing.assert_array_equal(given, [out])
    assert ours.name == "ours"
    assert ours.rmse == pytest.approx(0.25, rel=EXACT)
    assert [one.name for one in found] == ["neighbours on the graph", "iterative imputer"]
    for one in [ours, *found]:
        assert one.n_values == out.sum()
        assert one.rmse < 0.5
        assert one.is_by_value
        assert np.flatnonzero(~np.isnan(one.squared_errors)).tolist() == np.flatnonzero(out.any(axis=1)).tolist()
    filled = baselines.graph_neighbours(path, DAYS, np.where(out, NAN, holed))
    assert found[0].rmse == pytest.approx(root_mean_square_error(truth[out], filled[out]), rel=EXACT)


def test_the_iterative_imputer_is_left_out_on_larger_graphs():
    rng = np.random.default_rng(0)
    holed = np.where(rng.random((12, 61)) < 0.1, NAN, rng.standard_normal((12, 61)))
    line = Graph.from_edges([(node, node + 1) for node in range(60)])
    found = baselines.imputation_errors(
        "ours", lambda out: np.ones((2, 12, 61)), line, np.empty((12, 0)), holed, slice(None)
    )
    assert [one.name for one in found] == ["ours", "neighbours on the graph"]


def test_nothing_is_filled_in_where_nothing_is_missing(path):
    whole = np.random.default_rng(0).standard_normal((12, 3))
    assert baselines.imputation_errors("ours", lambda out: (whole, whole), path, DAYS, whole, slice(None)) == []


# ------------------------------------------------------------------------------------------------------------ judged


def test_performances_are_scores():
    rng = np.random.default_rng(0)
    observed, mean = rng.standard_normal((2, 8, 5))
    std = rng.uniform(0.5, 2, (8, 5))
    observed[2, 1], observed[4] = NAN, NAN
    joint = rng.standard_normal(8)
    found = PredictionErrors.of("ours", observed, mean, std, joint)
    assert found.rmse == pytest.approx(root_mean_square_error(observed, mean), rel=EXACT)
    assert found.crps == pytest.approx(np.nanmean(crps(observed, mean, std)), rel=EXACT)
    assert found.log_density == pytest.approx(np.mean(np.delete(joint, 4)), rel=EXACT)
    assert found.coverages == {level: coverage(observed, mean, std, level) for level in (0.5, 0.8, 0.9)}
    by_value = PredictionErrors.of("ours", observed, mean, std)
    assert by_value.log_density == pytest.approx(np.nanmean(norm.logpdf(observed, mean, std)), rel=EXACT)
    assert found.n_values == 34
    assert found.log_density_error == pytest.approx(np.std(np.delete(joint, 4), ddof=1) / np.sqrt(7), rel=EXACT)
    few = [PredictionErrors.of("ours", observed[:n], mean[:n], std[:n]).log_density_error for n in (1, 2)]
    assert np.isnan(few).tolist() == [True, False]


def test_better_is_by_the_mean_and_clear_by_more_than_a_standard_error():
    observed, std = np.zeros((4, 1)), np.ones((4, 1))

    def of(errors):
        return PredictionErrors.of("one", observed, np.array(errors)[:, None], std)

    assert of([1.0, 1.0, 1.0, 1.0]).better_than(of([2.0, 2.0, 2.0, 2.1])) == dict.fromkeys(
        ("rmse", "crps", "log_density"), True
    )
    luck = of([3.0, 0.0, 0.0, 0.0]).better_than(of([0.0, 2.0, 2.0, 1.5]))  # ahead in three signals, behind in one
    assert luck["rmse"] is False
    assert of([1.0, 1.0, 1.0, 1.0]).better_than(of([1.0, 1.0, 1.0, 1.0])) == {}
    assert of([2.0, 2.0, 2.0, 2.0]).better_than(of([1.0, 1.0, 1.0, 1.0])) == {}
