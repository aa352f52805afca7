from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from oracle import relative_error
from spectralgp.scores import (
    coverage,
    interval_half_width,
    log_density,
    mean_log_density,
    root_mean_square_error,
)
from tolerances import EXACT, STANDARD_ERRORS


@pytest.fixture
def predictions():
    rng = np.random.default_rng(0)
    mean = rng.standard_normal((7, 5))
    std = rng.uniform(0.1, 3.0, (7, 5))
    return mean + std * rng.standard_normal((7, 5)), mean, std


def test_log_density_is_the_normal_one(predictions):
    observed, mean, std = predictions
    expected = stats.norm(mean, std).logpdf(observed)
    assert relative_error(log_density(observed, mean, std), expected) < EXACT
    assert mean_log_density(observed, mean, std) == pytest.approx(expected.mean(), rel=EXACT)


def test_root_mean_square_error_is_that_of_the_definition():
    assert root_mean_square_error([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 10.0]]) == pytest.approx(3.0, rel=EXACT)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_are_the_normal_central_ones(predictions, level):
    observed, mean, std = predictions
    low, high = stats.norm(mean, std).interval(level)
    assert relative_error(interval_half_width(std, level), (high - low) / 2) < EXACT
    assert coverage(observed, mean, std, level) == np.mean((low <= observed) & (observed <= high))


def test_coverage_of_a_calibrated_prediction_is_its_level():
    n_values = 20_000
    rng = np.random.default_rng(1)
    std = rng.uniform(0.5, 2.0, n_values)
    found = coverage(std * rng.standard_normal(n_values), np.zeros(n_values), std, level=0.8)
    assert abs(found - 0.8) < STANDARD_ERRORS * np.sqrt(0.8 * 0.2 / n_values)


def test_a_perfect_prediction_has_no_error_and_full_coverage():
    values = np.arange(4.0)
    assert root_mean_square_error(values, values) == 0
    assert coverage(values, values, np.full(4, 1e-3)) == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1.0, 2.0], [1.0], [1.0, 1.0]), ValueError, r"mean must have the shape of observed, \(2,\); got \(1,\)"),
        ((np.ones((2, 3)), np.ones((2, 3)), np.ones((3, 2))), ValueError, r"std must have the shape of observed"),
        (([1.0], [1.0], [0.0]), ValueError, r"std must be above zero.*include_noise=True"),
        (([1.0], [1.0], [-1.0]), ValueError, r"std must be above zero everywhere; got -1\.0"),
        (([np.nan], [1.0], [1.0]), ValueError, r"observed must be finite; got nan at index \(0,\)"),
        (([], [], []), ValueError, r"observed must hold at least one value; got shape \(0,\)"),
        (([[1.0], [1.0, 2.0]], [1.0], [1.0]), TypeError, r"observed must be an array of real numbers"),
        (("abc", [1.0], [1.0]), TypeError, r"observed must be an array of real numbers"),
    ],
)
@pytest.mark.parametrize("score", [log_density, mean_log_density, coverage])
def test_bad_predictions_are_named(score, arguments, error, message):
    with pytest.raises(error, match=message):
        score(*arguments)


@pytest.mark.parametrize("level", [0.0, 1.0, 90, -0.5, np.nan])
def test_a_level_is_a_probability(level):
    with pytest.raises(ValueError, match="level must"):
        coverage([1.0], [1.0], [1.0], level=level)


def test_errors_need_one_prediction_a_value():
    with pytest.raises(ValueError, match=r"mean must have the shape of observed, \(1, 2\); got \(2,\)"):
        root_mean_square_error([[1.0, 2.0]], [1.0, 2.0])
