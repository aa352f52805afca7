"""Simulation-based calibration: draw a truth, draw data from it, fit, and count how often intervals hold it."""

import numpy as np
import pytest
from scipy.special import ndtri
from settings import PAPER, paper_kernel

import oracle
from spectralgp import Graph, GraphGPRegressor, Polynomial, Stacking
from tolerances import STANDARD_ERRORS

N_DATA_SETS, N_SIGNALS, N_NEW, N_NODES = 200, 12, 6, 8
WEIGHTS = oracle.random_weights(N_NODES, seed=2, density=0.4)
GRAPH = Graph(WEIGHTS)
LAPLACIAN = oracle.laplacian(WEIGHTS, scaled=True)
EIGENVALUES = np.linalg.eigvalsh(LAPLACIAN)
LEVEL = 0.9

pytestmark = pytest.mark.slow


def truth(rng):
    """A line that stays above zero, a length scale and a noise, about where the weak prior expects them."""
    ends = np.exp(0.5 * rng.standard_normal(2))
    length_scale = 1.8 * np.exp(0.4 * rng.standard_normal())
    return np.array([ends[0], ends[1] - ends[0]]), length_scale, 0.1 * np.exp(0.5 * rng.standard_normal())


@pytest.fixture(scope="module")
def shares():
    """For each data set: share of new values, and of the filter at the eigenvalues, inside 90% intervals."""
    values, filters = [], []
    half_width = ndtri(0.5 + LEVEL / 2)
    for seed in range(N_DATA_SETS):
        rng = np.random.default_rng(seed)
        coefficients, length_scale, noise = truth(rng)
        inputs = rng.uniform(-2, 2, (N_SIGNALS + N_NEW, 1))
        dense = oracle.polynomial(LAPLACIAN, coefficients)
        signals = oracle.draw(oracle.rbf(inputs, inputs, length_scale), dense, noise, rng)
        settings, kernel = PAPER | {"center": None, "random_state": seed}, Stacking(Polynomial(1), n_draws=16)
        model = GraphGPRegressor(GRAPH, kernel, paper_kernel(inputs[:N_SIGNALS]), **settings)
        model.fit(inputs[:N_SIGNALS], signals[:N_SIGNALS])
        mean, std = model.predict(inputs[N_SIGNALS:], return_std=True, include_noise=True)
        values.append(np.mean(np.abs(signals[N_SIGNALS:] - mean) < half_width * std))
        filter_mean, filter_std = model.response(EIGENVALUES, return_std=True)
        true_filter = np.polynomial.polynomial.polyval(EIGENVALUES, coefficients)
        filters.append(np.mean(np.abs(true_filter - filter_mean) < half_width * filter_std))
    return np.array(values), np.array(filters)


def test_predictive_intervals_hold_nine_values_in_ten(shares):
    """Within standard errors over the data sets, and a per cent for the average over hyperparameters."""
    values, _ = shares
    error = values.std(ddof=1) / np.sqrt(N_DATA_SETS)
    assert abs(values.mean() - LEVEL) < STANDARD_ERRORS * error + 0.01


def test_the_band_around_the_filter_holds_it_about_as_often(shares):
    """Laplace's approximation from twelve signals: four times in five at least, and not always."""
    _, filters = shares
    assert 0.8 < filters.mean() < 0.97
