"""Draws of the hyperparameters against the curvature of the dense log posterior."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GRAPHS, WEIGHTS
from spectralgp.learning import Task, hyperparameter_draws, learn
from spectralgp.learning.objective import Objective
from spectralgp.model.kernels import Diffusion, Identity, Polynomial
from tolerances import STANDARD_ERRORS

N_SIGNALS = 25
INPUTS = np.random.default_rng(0).uniform(-2, 2, (N_SIGNALS, 1))
N_DRAWS = 3000


def parameters(model):
    """What the optimiser sees of a model: filter, length scale, noise."""
    return np.concatenate([model.graph_kernel.theta, model.input_kernel.theta, [np.log(model.noise_variance)]])


def drawn_signals(node_covariance):
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
    signals = drawn_signals(oracle.polynomial(oracle.laplacian(weights, scaled=True), [1.0, -0.5]))
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
    signals = drawn_signals(np.eye(7))[:8]
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
    tried = []
    monkeypatch.setattr("spectralgp.learning.draws._Laplace.draw", lambda *_: tried.append(1))
    draws = hyperparameter_draws(small, fit, 3, np.random.default_rng(0))
    assert draws.models == (fit.model,) * 3
    assert draws.n_stand_ins == 3
    assert len(tried) == 3 * 50  # for each of them


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


# At active constraints and bounds


def grid_moments(log_posterior, first, second):
    """Means and deviations of two parameters under a density on a grid, by sums."""
    values = np.array([[log_posterior(a, b) for b in second] for a in first])
    weights = np.exp(values - values.max())
    weights /= weights.sum()
    marginals = ((weights.sum(axis=1), first), (weights.sum(axis=0), second))
    means = [marginal @ points for marginal, points in marginals]
    deviations = [
        np.sqrt(marginal @ (points - mean) ** 2) for (marginal, points), mean in zip(marginals, means, strict=True)
    ]
    return np.array(means), np.array(deviations)


@pytest.fixture(scope="module")
def constrained():
    """A line that would turn negative at the upper end: all but its two coefficients are known."""
    weights, inputs = WEIGHTS["random"], INPUTS[:12]
    matrix = oracle.laplacian(weights, scaled=True)
    dense = oracle.from_filter(oracle.matrix_function(matrix, lambda t: np.maximum(1.2 - 2.2 * t, 0.0)))
    signals = oracle.draw(oracle.rbf(inputs, inputs, 0.8), dense, 0.05, np.random.default_rng(3))
    task = Task.of(GRAPHS["random"], RBF(0.8, "fixed"), inputs, signals, noise_variance=0.05, prior=None)
    fit = learn(task, Polynomial(1))

    def log_posterior(at_zero, at_one):
        """Of the filter's values at both ends of the spectrum, the upper of which is held at zero."""
        node_covariance = oracle.polynomial(matrix, [at_zero, at_one - at_zero])
        return oracle.log_likelihood(signals, oracle.rbf(inputs, inputs, 0.8), node_covariance, 0.05)

    return task, fit, log_posterior


@pytest.mark.slow
def test_draws_at_an_active_constraint_have_the_moments_of_the_posterior(constrained):
    """By sums over a grid of the allowed region; Laplace's approximation itself is worth some tens of per cent.

    A normal that ignores the gradient at the constraint spreads several times as far into the region.
    """
    task, fit, log_posterior = constrained
    assert fit.certificate.active == ("filter at 1",)
    assert fit.certificate.multipliers[0] > 1
    draws = hyperparameter_draws(task, fit, 4000, np.random.default_rng(0))
    assert draws.n_stand_ins == 0
    ends = np.array([model.graph_kernel.response([0.0, 1.0]) for model in draws.models])
    assert np.all(ends[:, 1] >= 0)
    mode = fit.model.graph_kernel.response([0.0, 1.0])
    spread = ends.std(axis=0)
    means, deviations = grid_moments(
        log_posterior,
        np.linspace(max(mode[0] - 6 * spread[0], 1e-3), mode[0] + 6 * spread[0], 80),
        np.linspace(0.0, 12 * spread[1], 80),
    )
    assert np.all(np.abs(spread / deviations - 1) < 0.5)
    assert np.all(np.abs(ends.mean(axis=0) - means) < 0.5 * deviations)


def test_a_draw_falls_below_the_mode_by_half_a_nat_a_parameter(constrained):
    """As for a normal distribution; an exponential slack falls by one nat. It was up to 479 nats."""
    task, fit, _ = constrained
    objective = Objective(task, fit.model.graph_kernel, fit.model.spectrum)
    draws = hyperparameter_draws(task, fit, 1000, np.random.default_rng(1)).models
    drops = [fit.log_posterior - objective.evaluate(objective.point(model))[0] for model in draws]
    assert 0.5 < np.mean(drops) < 2.5
    assert np.quantile(drops, 0.9) < 6


def test_draws_at_a_bound_of_the_noise_leave_it_as_the_gradient_says():
    """Noise at its floor: the log noise rises from it as an exponential with the multiplier as its rate."""
    signals = oracle.draw(oracle.rbf(INPUTS, INPUTS, 0.8), np.eye(7), 1e-9, np.random.default_rng(0))
    task = Task.of(GRAPHS["random"], RBF(0.8, "fixed"), INPUTS, signals, prior=None)
    fit = learn(task, Identity())
    (rate,) = fit.certificate.multipliers
    assert fit.certificate.active == ("noise_variance at its lower bound",)
    assert rate > 20  # so steep that the curvature does not matter
    draws = hyperparameter_draws(task, fit, 2000, np.random.default_rng(0)).models
    slacks = np.log([model.noise_variance for model in draws]) - task.noise_bounds[0]
    assert np.all(slacks >= 0)
    assert abs(slacks.mean() * rate - 1) < STANDARD_ERRORS / np.sqrt(2000) + 0.1
    assert len(set(slacks.tolist())) == 2000  # none was put on the bound


@pytest.mark.parametrize("constraint", ["eigenvalues", "interval"])
def test_filters_that_touch_zero_inside_are_drawn_without_stand_ins(constraint):
    """Two touching points of degree 5, where most draws used to be the fit itself."""
    rng = np.random.default_rng(4)
    matrix = oracle.laplacian(WEIGHTS["random"], scaled=True)
    dense = oracle.from_filter(oracle.matrix_function(matrix, lambda t: np.exp(-9 * t)))
    signals = oracle.draw(oracle.rbf(INPUTS[:12], INPUTS[:12], 0.8), dense, 0.02, rng)
    task = Task.of(GRAPHS["random"], RBF(1.0), INPUTS[:12], signals, prior=None)
    fit = learn(task, Polynomial(5, constraint))
    assert len(fit.certificate.active) >= 1
    draws = hyperparameter_draws(task, fit, 100, np.random.default_rng(0))
    assert draws.n_stand_ins == 0
    objective = Objective(task, fit.model.graph_kernel, fit.model.spectrum)
    drops = [fit.log_posterior - objective.evaluate(objective.point(model))[0] for model in draws.models]
    assert np.median(drops) < 3 * objective.units.size  # half a nat each, were it a normal distribution
