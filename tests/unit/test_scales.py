"""Scales of the nodes by empirical Bayes, against a grid, simulated variances and what must not matter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import f as fisher

import oracle
from spectralgp.model.signals import read_signals
from spectralgp.model.signals.levels import _log_posterior, common_variance, relative_scales
from tolerances import GRADIENT


def drawn(worth: float, n_nodes: int, n_signals: int, seed: int = 0) -> np.ndarray:
    """Variances of nodes about their means whose true ones are scaled inverse chi-squares."""
    rng, freedom = np.random.default_rng(seed), n_signals - 1
    return worth / rng.chisquare(worth, n_nodes) * rng.chisquare(freedom, n_nodes) / n_signals


def log_density(worth, common, variances: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """Variances are a multiple of Fisher's F; the prior is log-normal about eight."""
    worth, common = np.asarray(worth)[..., None], np.asarray(common)[..., None]
    of_data = np.sum(fisher.logpdf(variances / common, freedom, worth) - np.log(common), axis=-1)
    return of_data - 0.5 * (np.log(worth[..., 0] / 8) / 1.5) ** 2


@pytest.mark.parametrize("seed", range(5))
def test_value_slope_and_curvature(seed):
    """Equation (13c) is the log density of the variances up to a constant; its slopes are those of differences."""
    rng = np.random.default_rng(seed)
    freedom = rng.integers(1, 30, 40).astype(float)
    variances = rng.chisquare(freedom) / freedom * 3 ** rng.standard_normal(40)
    points = rng.normal((1.0, 0.0), 1.0, (3, 2))
    ours = [_log_posterior(point, variances, freedom)[0] for point in points]
    theirs = [log_density(*np.exp(point), variances, freedom) for point in points]
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), rtol=1e-9)
    _, slope, curvature = _log_posterior(points[0], variances, freedom)
    slopes = oracle.jacobian(lambda point: _log_posterior(point, variances, freedom)[0], points[0])
    curvatures = oracle.jacobian(lambda point: _log_posterior(point, variances, freedom)[1], points[0])
    assert oracle.relative_error(slope, slopes) < GRADIENT
    assert oracle.relative_error(curvature, curvatures) < GRADIENT


@pytest.mark.parametrize(("worth", "n_nodes", "n_signals"), [(0.8, 60, 20), (4.0, 10, 5), (60.0, 45, 30), (8.0, 2, 2)])
def test_the_maximum_is_that_of_a_grid(worth, n_nodes, n_signals):
    variances, freedom = (
        drawn(worth, n_nodes, n_signals) * n_signals / (n_signals - 1),
        np.full(n_nodes, n_signals - 1.0),
    )
    variances = np.maximum(variances / variances.mean(), 0.01)
    found = common_variance(variances, freedom)
    grid = np.meshgrid(np.geomspace(0.05, 5_000, 150), np.geomspace(0.01, 10, 100))
    assert log_density(*found, variances, freedom) >= np.max(log_density(*grid, variances, freedom))


def test_scales_are_squeezed_variances():
    variances, counts = drawn(2.0, 30, 12), np.full(30, 12)
    own = variances * 12 / 11
    own = np.maximum(own / own.mean(), 0.01)
    worth, common = common_variance(own, np.full(30, 11.0))
    np.testing.assert_allclose(relative_scales(variances, counts) ** 2, (worth * common + 11 * own) / (worth + 11))


def test_nodes_that_never_moved_are_not_infinitely_sure():
    """Half of the nodes have no variance at all: finite, above 5% of the common scale, and the others as they were."""
    variances = np.repeat([0.0, 1.0], 20)
    scales = relative_scales(variances, np.full(40, 20))
    assert np.all(np.isfinite(scales))
    assert 0.1 <= scales[0] < 0.3 * scales[-1]
    alone = relative_scales(np.append(np.ones(40), 0.0), np.full(41, 20))
    assert 0.1 < alone[-1] < alone[0]


def test_one_signal_and_constant_signals_say_nothing():
    assert relative_scales(np.zeros(4), np.full(4, 1)).tolist() == [1.0] * 4
    assert relative_scales(np.zeros(4), np.full(4, 9)).tolist() == [1.0] * 4
    assert read_signals(np.array([[1.0, 2.0, 5.0]]), "node", "node").units.relative.tolist() == [1.0] * 3


def test_nodes_with_one_value_or_none_have_the_common_scale():
    variances, counts = np.append(drawn(1.0, 20, 10), [0.0, 0.0]), np.append(np.full(20, 10), [1, 0])
    scales = relative_scales(variances, counts)
    assert scales[-1] == pytest.approx(scales[-2])
    np.testing.assert_allclose(scales[:-2], relative_scales(variances[:-2], counts[:-2]))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.just(0.0) | st.floats(1e-200, 1e6), min_size=2, max_size=12),
    st.integers(2, 50),
    st.floats(1e-3, 1e3),
    st.randoms(),
)
def test_units_and_order_of_nodes_do_not_matter(variances, n_signals, unit, random):
    own, counts = np.array(variances), np.full(len(variances), n_signals)
    order = np.array(random.sample(range(own.size), own.size))
    scales = relative_scales(own, counts)
    assert np.all(scales > 0)
    np.testing.assert_allclose(relative_scales(unit * own, counts), scales, rtol=1e-6)
    np.testing.assert_allclose(relative_scales(own[order], counts), scales[order], rtol=1e-6)
    ranks = np.argsort(own, kind="stable")
    assert np.all(np.diff(scales[ranks]) >= -1e-12 * scales.max())  # what varies more keeps the larger scale


@pytest.mark.parametrize("center", ["global", "node"])
def test_signals_with_and_without_missing_values_agree(center):
    """One missing value among many values changes little; the same function reads both."""
    rng = np.random.default_rng(3)
    values = rng.standard_normal((400, 6)) * [1.0, 1.0, 2.0, 3.0, 0.1, 0.5] + [0, 1, 2, 3, 4, 5]
    whole = read_signals(values, center, "node").units.relative
    expected = relative_scales(values.var(axis=0), np.full(6, 400))
    np.testing.assert_allclose(whole, expected)
    values[7, 2] = np.nan
    np.testing.assert_allclose(read_signals(values, center, "node").units.relative, whole, rtol=0.01)
