"""Draws of the hyperparameters against the curvature of the dense log posterior."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GRAPHS, WEIGHTS
from spectralgp.graph_kernels import Diffusion, Polynomial
from spectralgp.learning import Task, hyperparameter_draws, learn
from spectralgp.learning.objective import Objective
from tolerances import STANDARD_ERRORS

N_SIGNALS = 25
INPUTS = np.random.default_rng(0).uniform(-2, 2, (N_SIGNALS, 1))
N_DRAWS = 3000


def parameters(model):
    """What the optimiser sees of a model: filter, length scale, noise."""
    return np.concatenate([model.graph_kernel.theta, model.input_kernel.theta, [np.log(model.noise_variance)]])


def drawn_signals(graph, node_covariance):
    return oracle.draw(oracle.rbf(INPUTS, INPUTS, 0.8), node_covariance, 0.05, np.random.default_rng(3))


def dense_log_likelihood(signals, weights):
    matrix = oracle.laplacian(weights, scaled=True)

    def function(x):
        # Chebyshev polynomials of degree one on [0, 1]: 1 and 2 t - 1
        node_covariance = oracle.polynomial(matrix, [x[0] - x[1], 2 * x[1]])
        return oracle.log_likelihood(signals, oracle.rbf(INPUTS, INPUTS, np.exp(x[2])), node_covariance, np.exp(x[3]))

    return function


def test_moments_are_those_of_laplaces_approximation():
    """Mean at the mode, covariance the inverse curvature of the dense log likelihood, within standard errors."""
    weights = WEIGHTS["complete"]  # little dense algebra
    signals = drawn_signals("complete", oracle.polynomial(oracle.laplacian(weights, scaled=True), [1.0, -0.5]))
    task = Task.of(GRAPHS["complete"], RBF(1.0), INPUTS, signals, prior=None)
    fit = learn(task, Polynomial(1, None))
    draws = hyperparameter_draws(task, fit, N_DRAWS, np.random.default_rng(0)).models
    points = np.array([parameters(model) for model in draws])
    function, mode = dense_log_likelihood(signals, weights), parameters(fit.model)
    hessian = oracle.jacobian(lambda x: oracle.jacobian(function, x, 1e-3), mode, 1e-3)
    covariance = np.linalg.inv(-hessian)
    deviations = np.sqrt(np.diag(covariance))
    assert np.all(deviations < 0.9)  # the data speak up in every direction, or LEAST_PRECISION would
    assert np.max(np.abs(points.mean(axis=0) - mode) / deviations) < STANDARD_ERRORS / np.sqrt(N_DRAWS)
    correlations = np.cov(points.T) / np.outer(deviations, deviations)
    expected = covariance / np.outer(deviations, deviations)
    assert np.max(np.abs(correlations - expected)) < STANDARD_ERRORS * np.sqrt(2 / N_DRAWS)


@pytest.fixture(scope="module")
def small():
    signals = drawn_signals("random", np.eye(7))[:8]
    return Task.of(GRAPHS["random"], RBF(1.0), INPUTS[:8], signals)


@pytest.mark.parametrize("constraint", ["eigenvalues", "interval"])
def test_every_drawn_filter_is_valid(small, constraint):
    fit = learn(small, Polynomial(3, constraint))
    draws = hyperparameter_draws(small, fit, 200, np.random.default_rng(1)).models
    spectrum = fit.model.spectrum
    points = spectrum.eigenvalues if constraint == "eigenvalues" else np.linspace(0, 1, 1001)
    lowest = min(np.min(model.graph_kernel.response(points)) for model in draws)
    assert lowest >= -1e-12
    assert len({tuple(model.graph_kernel.theta) for model in draws}) > 100


def test_draws_keep_to_the_bounds_and_to_what_is_fixed(small):
    kernel = RBF(1.0, (0.9, 1.1))
    task = Task.of(GRAPHS["random"], kernel, small.inputs, small.signals, noise_variance=0.2)
    fit = learn(task, Diffusion(strength_bounds="fixed"))
    draws = hyperparameter_draws(task, fit, 100, np.random.default_rng(2)).models
    lengths = np.array([model.input_kernel.kernel.length_scale for model in draws])
    assert np.all((lengths >= 0.9 * (1 - 1e-12)) & (lengths <= 1.1 * (1 + 1e-12)))
    assert {model.noise_variance for model in draws} == {0.2}
    assert {model.graph_kernel.strength for model in draws} == {1.0}


def test_draws_repeat_with_the_seed(small):
    fit = learn(small, Polynomial(2))
    first, again, other = (
        [parameters(model) for model in hyperparameter_draws(small, fit, 5, np.random.default_rng(seed)).models]
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_fit_stands_in_where_no_valid_draw_can_be_had(small, monkeypatch):
    fit = learn(small, Polynomial(2))
    monkeypatch.setattr("spectralgp.learning.draws._Laplace.draw", lambda *_: None)
    draws = hyperparameter_draws(small, fit, 3, np.random.default_rng(0))
    assert draws.models == (fit.model,) * 3
    assert draws.n_stand_ins == 3


def test_a_direction_without_data_gets_unit_precision():
    """One signal of nothing but noise says nothing about the length scale without a prior."""
    signals = np.random.default_rng(0).standard_normal((1, 7))
    task = Task.of(GRAPHS["random"], RBF(1.0), np.zeros((1, 1)), signals, prior=None)
    fit = learn(task, Polynomial(0))
    objective = Objective(task, fit.model.graph_kernel, fit.model.spectrum)
    draws = hyperparameter_draws(task, fit, 2000, np.random.default_rng(0)).models
    logs = np.array([model.input_kernel.theta[0] for model in draws])
    assert objective.parameter_names[1] == "kernel theta[0]"
    assert abs(np.std(logs) - 1) < STANDARD_ERRORS / np.sqrt(2 * 2000)
