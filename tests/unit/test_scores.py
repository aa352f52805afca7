from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, special, stats
from settings import PAPER
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import oracle
from oracle import relative_error
from spectralgp import Diffusion, Graph, GraphGPRegressor, Identity, Polynomial, scores
from tolerances import EXACT, FORMULA, OPTIMUM, STANDARD_ERRORS

pytestmark = pytest.mark.usefixtures("learnt_values")  # compared with dense formulas


@pytest.fixture
def predictions():
    rng = np.random.default_rng(0)
    mean = rng.standard_normal((7, 5))
    std = rng.uniform(0.1, 3.0, (7, 5))
    return mean + std * rng.standard_normal((7, 5)), mean, std


def test_log_density_is_the_normal_one(predictions):
    observed, mean, std = predictions
    expected = stats.norm(mean, std).logpdf(observed)
    assert relative_error(scores.log_density(observed, mean, std), expected) < EXACT
    assert scores.mean_log_density(observed, mean, std) == pytest.approx(expected.mean(), rel=EXACT)


def integrated_crps(observed, mean, std):
    """The integral of (F(t) - [t >= y])^2, the distance between the predicted and the observed step function."""
    found = []
    for value, centre, spread in np.nditer([observed, mean, std]):
        z = float((value - centre) / spread)
        below = integrate.quad(lambda t: special.ndtr(t) ** 2, -np.inf, z, epsabs=0, epsrel=1e-11, limit=200)[0]
        above = integrate.quad(lambda t: special.ndtr(-t) ** 2, z, np.inf, epsabs=0, epsrel=1e-11, limit=200)[0]
        found.append(spread * (below + above))
    return np.reshape(found, np.shape(observed))


def test_crps_is_the_integral_of_its_definition(predictions):
    assert relative_error(scores.crps(*predictions), integrated_crps(*predictions)) < FORMULA


def test_pit_is_the_normal_distribution_function(predictions):
    observed, mean, std = predictions
    assert relative_error(scores.pit(observed, mean, std), stats.norm(mean, std).cdf(observed)) < EXACT


def test_the_normalised_error_is_relative_to_a_baseline():
    observed, mean = np.array([[1.0, 2.0], [3.0, 6.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    assert scores.normalized_mean_squared_error(observed, mean) == pytest.approx(4 / (4 + 1 + 0 + 9), rel=EXACT)
    assert scores.normalized_mean_squared_error(observed, mean, 0) == pytest.approx(4 / (1 + 4 + 9 + 36), rel=EXACT)
    before = np.array([[1.0, 1.0], [2.0, 2.0]])
    assert scores.normalized_mean_squared_error(observed, mean, before) == pytest.approx(
        4 / (0 + 1 + 1 + 16), rel=EXACT
    )
    assert scores.normalized_mean_squared_error(observed, before, before) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 1.0], [1.0, 2.0]), r"baseline must differ from observed somewhere; got 1\.0 for equal values"),
        (([1.0, 2.0], [1.0, 2.0], [1.0]), r"baseline must have the shape of observed, \(2,\); got \(1,\)"),
        (([1.0, 2.0], [1.0, 2.0], np.nan), r"baseline must .*; got nan at index \(\) \(1 such"),
        (([np.nan, 2.0], [1.0, 2.0], [1.0, np.nan]), r"baseline must .*; got nan at index \(1,\)"),
        (([np.nan, 1.0], [1.0, 2.0], [5.0, 1.0]), r"baseline must differ from observed somewhere; got 1\.0"),
        (([1.0, 2.0], [1.0]), r"mean must have the shape of observed"),
    ],
)
def test_bad_baselines_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        scores.normalized_mean_squared_error(*arguments)


def test_root_mean_square_error_is_that_of_the_definition():
    assert scores.root_mean_square_error([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 10.0]]) == pytest.approx(
        3.0, rel=EXACT
    )


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_are_the_normal_central_ones(predictions, level):
    observed, mean, std = predictions
    low, high = stats.norm(mean, std).interval(level)
    assert relative_error(scores.interval_half_width(std, level), (high - low) / 2) < EXACT
    assert scores.coverage(observed, mean, std, level) == np.mean((low <= observed) & (observed <= high))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1.0, 2.0], [1.0], [1.0, 1.0]), ValueError, r"mean must have the shape of observed, \(2,\); got \(1,\)"),
        ((np.ones((2, 3)), np.ones((2, 3)), np.ones((3, 2))), ValueError, r"std must have the shape of observed"),
        (([1.0], [1.0], [0.0]), ValueError, r"std must be above zero.*include_noise=True"),
        (([1.0], [1.0], [-1.0]), ValueError, r"std must be above zero at observed values; got -1\.0"),
        (([np.inf], [1.0], [1.0]), ValueError, r"observed must be finite or NaN; got inf at index \(0,\)"),
        (([np.nan] * 2, [1.0] * 2, [1.0] * 2), ValueError, r"observed must hold at least one value; got NaN in all of"),
        (
            ([np.nan, 1.0], [1.0, np.nan], [1.0] * 2),
            ValueError,
            r"mean must be finite at observed values.* nan at index \(1,\)",
        ),
        (([np.nan, 1.0], [1.0] * 2, [1.0, np.nan]), ValueError, r"std must be finite at observed values"),
        (([np.nan, 1.0], [np.inf, 1.0], [1.0] * 2), ValueError, r"mean must be finite or NaN; got inf at index \(0,\)"),
        (([], [], []), ValueError, r"observed must hold at least one value; got shape \(0,\)"),
        (([[1.0], [1.0, 2.0]], [1.0], [1.0]), TypeError, r"observed must be an array of real numbers"),
        (("abc", [1.0], [1.0]), TypeError, r"observed must be an array of real numbers"),
    ],
)
@pytest.mark.parametrize(
    "score", [scores.log_density, scores.mean_log_density, scores.coverage, scores.crps, scores.pit]
)
def test_bad_predictions_are_named(score, arguments, error, message):
    with pytest.raises(error, match=message):
        score(*arguments)


@pytest.mark.parametrize("level", [0.0, 1.0, 90, -0.5, np.nan])
def test_a_level_is_a_probability(level):
    with pytest.raises(ValueError, match="level must"):
        scores.coverage([1.0], [1.0], [1.0], level=level)


def test_errors_need_one_prediction_a_value():
    with pytest.raises(ValueError, match=r"mean must have the shape of observed, \(1, 2\); got \(2,\)"):
        scores.root_mean_square_error([[1.0, 2.0]], [1.0, 2.0])


# What was not observed


@pytest.fixture
def with_missing_values(predictions):
    """Values with missing values, predictions that say nothing of them, and where there is a value."""
    observed, mean, std = (part.copy() for part in predictions)
    known = np.random.default_rng(3).random(observed.shape) < 0.6
    known[0] = False  # a signal of which nothing was observed
    observed[~known] = np.nan
    mean[0, 0], std[0, 0] = np.nan, 0.0  # as `impute` has std where nothing was hidden
    return (observed, mean, std), known


def normal(predictions, known):
    """What SciPy says of the values that were observed."""
    observed, mean, std = (part[known] for part in predictions)
    return observed, stats.norm(mean, std)


def test_scores_of_a_value_not_observed_are_nan(with_missing_values):
    predictions, known = with_missing_values
    observed, prediction = normal(predictions, known)
    expected = {
        scores.log_density: prediction.logpdf(observed),
        scores.pit: prediction.cdf(observed),
        scores.crps: integrated_crps(*(part[known] for part in predictions)),
    }
    for score, values in expected.items():
        found = score(*predictions)
        np.testing.assert_array_equal(np.isnan(found), ~known)
        assert relative_error(found[known], values) < FORMULA


def test_averages_are_over_what_was_observed(with_missing_values):
    (observed, mean, std), known = with_missing_values
    values, prediction = normal((observed, mean, std), known)
    assert scores.mean_log_density(observed, mean, std) == pytest.approx(prediction.logpdf(values).mean(), rel=EXACT)
    low, high = prediction.interval(0.5)
    assert scores.coverage(observed, mean, std, 0.5) == np.mean((low <= values) & (values <= high))
    errors = np.mean((values - prediction.mean()) ** 2)
    assert scores.root_mean_square_error(observed, mean) == pytest.approx(np.sqrt(errors), rel=EXACT)
    assert scores.normalized_mean_squared_error(observed, mean) == pytest.approx(errors / values.var(), rel=EXACT)
    found = scores.normalized_mean_squared_error(observed, mean, np.where(known, 2.0, np.nan))
    assert found == pytest.approx(errors / np.mean((values - 2) ** 2), rel=EXACT)


@pytest.mark.parametrize(
    "read",
    [
        lambda values: np.ma.array(np.where(np.isnan(values), 1e20, values), mask=np.isnan(values)),
        lambda values: pd.DataFrame(values).astype("Float64"),
        lambda values: pd.DataFrame(values).astype(object).where(~np.isnan(values), pd.NA),
    ],
    ids=["masked", "nullable", "NA"],
)
def test_a_mask_or_na_is_nan(with_missing_values, read):
    (observed, mean, std), _ = with_missing_values
    np.testing.assert_array_equal(scores.crps(read(observed), mean, std), scores.crps(observed, mean, std))
    assert scores.root_mean_square_error(read(observed), mean) == scores.root_mean_square_error(observed, mean)


# Scorers


N_NODES = 6
GRAPH = Graph(oracle.random_weights(N_NODES, seed=5), names=list("abcdef"))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    inputs = rng.standard_normal((18, 2)) * [1.0, 100.0]  # of two scales, so that a scaler before the model matters
    signals = 5 + np.sin(inputs[:, :1] + np.arange(N_NODES) / 3) + 0.2 * rng.standard_normal((18, N_NODES))
    return inputs, signals


def model():
    """The paper's model, whose predictions are normal."""
    return GraphGPRegressor(GRAPH, Polynomial(1), RBF(1.0), **PAPER)


def by_hand(fitted, inputs, signals, level=0.9):
    """The three scores from the predictive normal distributions, by SciPy."""
    mean, covariance = fitted.predict(inputs, return_cov=True, include_noise=True)
    densities = [
        stats.multivariate_normal(*one).logpdf(row) for *one, row in zip(mean, covariance, signals, strict=True)
    ]
    std = np.sqrt(np.einsum("ijj->ij", covariance))
    low, high = stats.norm(mean, std).interval(level)
    return {
        scores.log_density_scorer: np.mean(densities),
        scores.crps_scorer: -np.mean(integrated_crps(signals, mean, std)),
        scores.coverage_scorer: np.mean((low <= signals) & (signals <= high)),
    }


SCORERS = [scores.log_density_scorer, scores.crps_scorer, scores.coverage_scorer]


@pytest.mark.parametrize("scorer", SCORERS)
def test_scorers_give_the_mean_score_of_the_predictive_distribution(data, scorer):
    inputs, signals = data
    fitted = model().fit(inputs[:12], signals[:12])
    expected = by_hand(fitted, inputs[12:], signals[12:])[scorer]
    found = scorer(fitted, inputs[12:], signals[12:])
    assert isinstance(found, float)
    assert found == pytest.approx(expected, rel=FORMULA)


@pytest.mark.parametrize("scorer", SCORERS)
def test_scorers_go_through_the_steps_of_a_pipeline(data, scorer):
    inputs, signals = data
    pipeline = make_pipeline(StandardScaler(), "passthrough", model()).fit(inputs[:12], signals[:12])
    scaled = (inputs - inputs[:12].mean(axis=0)) / inputs[:12].std(axis=0)
    fitted = model().fit(scaled[:12], signals[:12])
    expected = by_hand(fitted, scaled[12:], signals[12:])[scorer]
    assert scorer(pipeline, inputs[12:], signals[12:]) == pytest.approx(expected, rel=FORMULA)
    alone = make_pipeline(model()).fit(inputs[:12], signals[:12])
    assert scorer(alone, inputs[12:], signals[12:]) == scorer(alone[-1], inputs[12:], signals[12:])


@pytest.mark.parametrize("scorer", [scores.log_density_scorer, scores.crps_scorer])
def test_scorers_choose_in_a_grid_search(data, scorer):
    inputs, signals = data
    kernels = [Identity(), Diffusion(), Polynomial(1)]
    pipeline = make_pipeline(StandardScaler(), model())
    search = GridSearchCV(pipeline, {"graphgpregressor__graph_kernel": kernels}, scoring=scorer, cv=3)
    search.fit(inputs, signals)
    totals = []
    for kernel in kernels:
        pipeline.set_params(graphgpregressor__graph_kernel=kernel)
        folds = [
            scorer(pipeline.fit(inputs[kept], signals[kept]), inputs[left_out], signals[left_out])
            for kept, left_out in KFold(3).split(inputs)
        ]
        totals.append(np.mean(folds))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], totals, rtol=EXACT)
    assert search.best_index_ == np.argmax(totals)
    # the search itself can be scored, as nested cross-validation does
    assert scorer(search, inputs, signals) == scorer(search.best_estimator_, inputs, signals)


def test_several_scorers_and_another_level(data):
    inputs, signals = data
    scoring = {
        "half": partial(scores.coverage_scorer, level=0.5),
        "most": scores.coverage_scorer,
        "density": scores.log_density_scorer,
    }
    found = cross_validate(model(), inputs, signals, scoring=scoring, cv=KFold(2))
    first, second = KFold(2).split(inputs)
    for position, (kept, left_out) in enumerate((first, second)):
        fitted = model().fit(inputs[kept], signals[kept])
        expected = by_hand(fitted, inputs[left_out], signals[left_out], 0.5)
        assert found["test_half"][position] == expected[scores.coverage_scorer]
        assert found["test_density"][position] == pytest.approx(expected[scores.log_density_scorer], rel=FORMULA)


@pytest.mark.parametrize("scorer", SCORERS)
def test_columns_of_a_table_are_matched_by_name(data, scorer):
    inputs, signals = data
    fitted = model().fit(inputs[:12], signals[:12])
    table = pd.DataFrame(signals, columns=list("abcdef"))
    other_way = table[list("fbdcea")]
    expected = scorer(fitted, inputs[12:], signals[12:])
    assert scorer(fitted, inputs[12:], other_way[12:]) == pytest.approx(expected, rel=EXACT)
    folds = cross_val_score(model(), inputs, signals, scoring=scorer, cv=3)
    np.testing.assert_allclose(cross_val_score(model(), inputs, other_way, scoring=scorer, cv=3), folds, rtol=OPTIMUM)
    with pytest.raises(ValueError, match="'f' are missing"):
        scorer(fitted, inputs[12:], table[list("abcde")][12:])


@pytest.mark.parametrize("scorer", SCORERS)
def test_a_single_output_is_scored_too(data, scorer):
    inputs, signals = data
    flat = GraphGPRegressor().fit(inputs[:12], signals[:12, 0])
    column = GraphGPRegressor().fit(inputs[:12], signals[:12, :1])
    expected = scorer(column, inputs[12:], signals[12:, :1])
    assert scorer(flat, inputs[12:], signals[12:, 0]) == pytest.approx(expected, rel=EXACT)


def kinds_of_missing_values(values):
    """The same values as an array, a masked array and two tables with their columns in another order."""
    table = pd.DataFrame(values, columns=list("abcdef"))[list("fbdcea")]
    masked = np.ma.array(np.where(np.isnan(values), 1e20, values), mask=np.isnan(values))
    return values, masked, table, table.astype("Float64")


@pytest.fixture(scope="module")
def incomplete(data):
    """A fitted model, and new signals of which some entries and one whole signal were not observed."""
    inputs, signals = data
    observed = np.where(np.random.default_rng(6).random((6, N_NODES)) < 0.7, signals[12:], np.nan)
    observed[2] = np.nan
    return model().fit(inputs[:12], signals[:12]), inputs[12:], observed


def test_scorers_skip_what_was_not_observed(incomplete):
    fitted, inputs, observed = incomplete
    mean, std = fitted.predict(inputs, return_std=True, include_noise=True)
    known = ~np.isnan(observed)
    values, prediction = normal((observed, mean, std), known)
    low, high = prediction.interval(0.9)
    for kind in kinds_of_missing_values(observed):
        assert scores.coverage_scorer(fitted, inputs, kind) == np.mean((low <= values) & (values <= high))
        expected = -integrated_crps(values, mean[known], std[known]).mean()
        assert scores.crps_scorer(fitted, inputs, kind) == pytest.approx(expected, rel=FORMULA)


class Densities:
    """Stands in for a model that knows its densities of signals with missing values: 0 where nothing was observed."""

    def log_predictive_density(self, X, Y, joint):
        assert not joint
        return np.array([-3.0, -5.0, 0.0, -1.0, -2.0, -4.0])


def test_the_density_of_a_signal_not_observed_does_not_count(incomplete):
    _, inputs, observed = incomplete
    for kind in kinds_of_missing_values(observed):
        assert scores.log_density_scorer(Densities(), inputs, kind) == pytest.approx(-15 / 5, rel=EXACT)
    flat = np.where(np.arange(6) == 2, np.nan, 1.0)
    assert scores.log_density_scorer(Densities(), inputs, flat) == pytest.approx(-15 / 5, rel=EXACT)


def test_the_density_of_a_signal_is_that_of_its_observed_nodes(incomplete):
    fitted, inputs, observed = incomplete
    mean, covariance = fitted.predict(inputs, return_cov=True, include_noise=True)
    densities = []
    for centre, spread, row in zip(mean, covariance, observed, strict=True):
        seen = np.flatnonzero(~np.isnan(row))
        if seen.size:
            densities.append(stats.multivariate_normal(centre[seen], spread[np.ix_(seen, seen)]).logpdf(row[seen]))
    for kind in kinds_of_missing_values(observed):
        assert scores.log_density_scorer(fitted, inputs, kind) == pytest.approx(np.mean(densities), rel=FORMULA)


@pytest.mark.parametrize("scorer", SCORERS)
def test_scorers_need_something_observed(incomplete, scorer):
    fitted, inputs, observed = incomplete
    with pytest.raises(ValueError, match="observed must hold at least one value; got NaN in all of"):
        scorer(fitted, inputs, np.full_like(observed, np.nan))


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (GaussianProcessRegressor(optimizer=None), "GaussianProcessRegressor"),
        (make_pipeline(StandardScaler(), GaussianProcessRegressor(optimizer=None)), "GaussianProcessRegressor"),
    ],
)
def test_what_has_no_such_predictions_is_refused(data, scorer, estimator, name):
    inputs, signals = data
    message = f"estimator must be a GraphGPRegressor, or a Pipeline or a search that ends in one; got {name}"
    with pytest.raises(TypeError, match=message):
        scorer(estimator.fit(inputs, signals), inputs, signals)


def test_models_without_inputs_are_scored():
    """Every signal has the same prediction, that of a new one."""
    signals = np.random.default_rng(0).standard_normal((12, 5)) + np.arange(5)
    model = GraphGPRegressor(Graph(oracle.random_weights(5, seed=1)), Diffusion()).fit(None, signals)
    mean, std = (
        np.broadcast_to(one, signals.shape) for one in model.predict(None, return_std=True, include_noise=True)
    )
    assert scores.crps_scorer(model, None, signals) == pytest.approx(-scores.crps(signals, mean, std).mean())
    assert scores.coverage_scorer(model, None, signals) == scores.coverage(signals, mean, std)
    densities = model.log_predictive_density(None, signals, joint=False)
    assert scores.log_density_scorer(model, None, signals) == pytest.approx(densities.mean())
    assert model.score(None, signals) == pytest.approx(r2_score(signals, mean))
    signals[0, 0] = np.nan
    assert np.isfinite(model.score(None, signals))


# ---------------------------------------------------------------------------------------------- judged by signals


def correlated(n_signals, n_nodes, correlation, rng):
    """Errors in their deviations; those of one signal are correlated."""
    common, own = rng.standard_normal((n_signals, 1)), rng.standard_normal((n_signals, n_nodes))
    return np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own


def is_called(errors):
    """Which of bias and the three levels are called off, without a tolerance."""
    found = scores.calibration_of(special.ndtr(errors))
    return [found.pit_mean.is_off(), *(one.is_off() for one in found.coverages.values())]


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.99])
@pytest.mark.parametrize("n_signals", [2, 4, 8, 25])
def test_calibrated_predictions_are_rarely_called_anything_else(n_signals, correlation):
    """However few the signals, and however correlated their values are."""
    rng, n_draws = np.random.default_rng([n_signals, int(100 * correlation)]), 300
    alarms = sum(any(is_called(correlated(n_signals, 30, correlation, rng))) for _ in range(n_draws))
    error = np.sqrt(scores.FALSE_ALARMS * (1 - scores.FALSE_ALARMS) / n_draws)
    assert alarms / n_draws <= scores.FALSE_ALARMS + STANDARD_ERRORS * error


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_what_is_off_is_called_so(correlation):
    rng = np.random.default_rng(0)
    errors = correlated(40, 30, correlation, rng)
    shifted, narrow, wide = (is_called(one) for one in (errors + 1, 2 * errors, errors / 3))
    assert shifted[0]
    assert not narrow[0]
    assert all(narrow[1:])
    assert all(wide[1:])


def test_standard_errors_are_those_of_means_of_signals():
    """Of signals with as many values each; a signal of which nothing was observed does not count."""
    transformed = np.random.default_rng(0).uniform(size=(12, 5))
    found = scores.calibration_of(np.vstack([transformed, np.full((1, 5), np.nan)]))
    means = transformed.mean(axis=1)
    assert found.pit_mean.n_signals == 12
    assert found.pit_mean.value == pytest.approx(means.mean(), rel=EXACT)
    assert found.pit_mean.standard_error == pytest.approx(means.std(ddof=1) / np.sqrt(12), rel=EXACT)
    assert np.isnan(scores.calibration_of(transformed[:1]).pit_mean.standard_error)
    assert not scores.calibration_of(np.full((1, 50), 0.99)).pit_mean.is_off()
    assert {level: one.value for level, one in found.coverages.items()} == {
        level: found.covered_at(level) for level in scores.INTERVAL_LEVELS
    }


@pytest.mark.parametrize("correlation", [0, 1])
def test_coverage_of_everything_is_as_sure_as_signals_are_independent(correlation):
    """All of ten signals are inside their intervals: by chance where values of a signal are all the same."""
    errors = 0.3 * np.clip(correlated(10, 40, correlation, np.random.default_rng(1)), -2, 2)
    found = scores.calibration_of(special.ndtr(errors)).coverages[0.9]
    assert found.value == 1.0
    n_independent = 10 if correlation else 400
    assert found.standard_error == pytest.approx(np.sqrt(0.9 * 0.1 / n_independent), rel=EXACT)
    assert found.is_off() == (not correlation)


def test_skewed_errors_that_average_out_are_not_a_bias():
    errors = np.random.default_rng(0).exponential(size=(60, 20)) - 1
    found = scores.calibration_of(special.ndtr(errors))
    assert found.pit_mean.is_off()
    assert not found.error_mean.is_off()


def test_standard_errors_of_shares_are_those_of_signals_by_hand():
    values = np.array([[1.0, 2.0, 6.0], [2.0, np.nan, np.nan], [np.nan] * 3, [5.0, 3.0, np.nan]])
    found = scores.share_of(values, 0.5)
    mean = 19 / 6
    sums = [9 - 3 * mean, 2 - mean, 8 - 2 * mean]
    expected = np.sqrt(3 / 2 * sum(one**2 for one in sums)) / 6
    assert (found.value, found.expected, found.n_signals) == (pytest.approx(mean), 0.5, 3)
    assert found.standard_error == pytest.approx(expected)
    assert scores.share_of(values, 0.5, least_variance=100.0).standard_error == pytest.approx(10.0)
    assert np.isnan(scores.share_of(values[:1], 0.5).standard_error)


@pytest.mark.parametrize("n_signals", [2, 10])
def test_a_share_is_off_beyond_what_one_of_eighty_calibrated_ones_is_on_either_side(n_signals):
    """Five per cent are shared by a bias and three levels, on both sides; a tolerance is kept to as well."""
    chance = 0.1 * stats.t.ppf(1 - 0.05 / 8, n_signals - 1)
    for sign in (-1, 1):
        assert scores.Share(0.9 + sign * 1.001 * chance, 0.1, 0.9, n_signals).is_off()
        assert not scores.Share(0.9 + sign * 0.999 * chance, 0.1, 0.9, n_signals).is_off()
        assert not scores.Share(0.9 + sign * 1.001 * chance, 0.1, 0.9, n_signals).is_off(1.01 * chance)
        assert scores.Share(0.9 + sign * 1.02 * chance, 0.1, 0.9, n_signals).is_off(1.01 * chance)
    assert not scores.Share(9.0, float("nan"), 0.9, 1).is_off()


def correlation_in_rows(values):
    """Intraclass correlation by an analysis of variance, and the mean number of values of a row as a value sees it."""
    groups = [row[np.isfinite(row)] for row in values]
    n, sizes = sum(map(len, groups)), sum(len(one) ** 2 for one in groups) / sum(map(len, groups))
    mean = sum(one.sum() for one in groups) / n
    between = sum(one.size * (one.mean() - mean) ** 2 for one in groups) / (len(groups) - 1)
    within = sum(np.sum((one - one.mean()) ** 2) for one in groups) / max(n - len(groups), 1)
    size = (n - sizes) / (len(groups) - 1)
    return max(0.0, (between - within) / (between + (size - 1) * within)), sizes


@pytest.mark.parametrize(
    ("from_middle", "correlation"),
    [
        ([[0.1, 0.2, 0.3], [0.35, 0.3, np.nan], [0.05, 0.1, 0.12]], None),
        ([[0.1, 0.1], [0.2, 0.2]], 1.0),
        ([[0.4, 0.4], [0.4, 0.4]], 1.0),
        ([[0.1, 0.2], [0.2, 0.1]], 0.0),  # not negative
        ([[0.1], [0.2]], 0.0),  # a value per signal
    ],
)
def test_where_all_values_are_covered_the_error_is_that_of_calibrated_ones(from_middle, correlation):
    values = np.array(from_middle)
    found = scores.calibration_of(0.5 + values / 2).coverages[0.8]
    n_values, sizes = np.isfinite(values).sum(), values.shape[1]
    if correlation is None:
        correlation, sizes = correlation_in_rows(values)
        assert 0 < correlation < 1
    assert found.value == 1.0
    inflation = 1 + (sizes - 1) * correlation
    assert found.standard_error == pytest.approx(np.sqrt(0.8 * 0.2 * inflation / n_values))
