"""Algorithm 1 as printed, against a plain loop over its lines with dense covariances."""

from __future__ import annotations

import numpy as np
import pytest
from settings import PAPER
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GRAPHS, WEIGHTS
from spectralgp import GraphGPRegressor
from spectralgp.learning import Lagrangian, Limits, Outcome, Task, learn
from spectralgp.learning.lagrangian import FilterProblem
from spectralgp.learning.objective import Objective
from spectralgp.model.kernels import Polynomial
from tolerances import CONVERGED, FORMULA, OPTIMUM

N_SIGNALS = 8
N_DESCENT = 40  # steps of a descent at most
INPUTS = np.random.default_rng(0).uniform(-2, 2, (N_SIGNALS, 2))
MATRIX = oracle.laplacian(WEIGHTS["random"], scaled=True)
PLAIN = PAPER | {"prior": None, "center": None, "scale": None}


def signals_of(response, noise=1e-3):
    dense = oracle.from_filter(oracle.matrix_function(MATRIX, response))
    return oracle.draw(oracle.rbf(INPUTS, INPUTS, 1.2), dense, noise, np.random.default_rng(0))


SIGNALS = {
    "low-pass": signals_of(lambda t: np.exp(-3 * t)),
    "high-pass": signals_of(lambda t: 0.1 + t**2),
    "ramp": signals_of(lambda t: np.maximum(t - 0.3, 0.0)),
}


def task_of(truth, **options):
    return Task.of(GRAPHS["random"], RBF(1.0), INPUTS, SIGNALS[truth], prior=None, **options)


def unconstrained(truth, degree):
    """Where line 1 starts: coefficients of powers, length scale and noise."""
    model = learn(task_of(truth), Polynomial(degree, None), solver="lagrangian").model
    return model.graph_kernel.coefficients, np.exp(model.input_kernel.theta[0]), model.noise_variance


class Dense:
    """The Lagrangian of the paper's section 4 and its gradient, by matrices of n_signals * n_nodes rows."""

    def __init__(self, truth, length_scale, noise, degree):
        self.values, self.noise = SIGNALS[truth].ravel(), noise
        self.inputs = oracle.rbf(INPUTS, INPUTS, length_scale)
        self.powers = [np.linalg.matrix_power(MATRIX, p) for p in range(degree + 1)]
        self.vandermonde = np.vander(np.linalg.eigvalsh(MATRIX), degree + 1, increasing=True)

    def __call__(self, beta, multipliers):
        filtered = sum(b * power for b, power in zip(beta, self.powers, strict=True))
        covariance = oracle.covariance(self.inputs, filtered @ filtered.T, self.noise)
        inverse = np.linalg.inv(covariance)
        weights = inverse @ self.values
        value = -oracle.log_density(self.values, 0.0, covariance) - multipliers @ self.vandermonde @ beta
        gradient = -self.vandermonde.T @ multipliers
        for p, power in enumerate(self.powers):
            slope = np.kron(self.inputs, filtered @ power + power @ filtered)
            gradient[p] += 0.5 * np.sum(inverse * slope) - 0.5 * weights @ slope @ weights
        return value, gradient


def learning_rate(lagrangian, beta, multipliers):
    """The supplement's rule: the largest power of ten with which five steps all descend, none longer than 5."""
    for exponent in range(2, -13, -1):
        x, (value, gradient) = beta, lagrangian(beta, multipliers)
        for _ in range(5):
            step = -(10.0**exponent) * gradient
            if np.max(np.abs(step)) > 5:
                break
            x, before, (value, gradient) = x + step, value, lagrangian(x + step, multipliers)
            if value > before:
                break
        else:
            return 10.0**exponent
    raise AssertionError("no rate descends")


def algorithm_1(lagrangian, beta, logs, dual_rate, n_dual):
    """Lines 2 to 4."""
    rate, value = learning_rate(lagrangian, beta, np.exp(logs)), np.inf
    for _ in range(n_dual):
        before = value
        value, gradient = lagrangian(beta, np.exp(logs))
        for _ in range(N_DESCENT):
            beta, last = beta - rate * gradient, value
            value, gradient = lagrangian(beta, np.exp(logs))
            if abs(value - last) < 1e-3:
                break
        else:
            before = np.inf  # a descent that was cut short is no convergence
        if abs(value - before) < 1e-3:
            return beta
        logs = logs - dual_rate * np.exp(logs) * (lagrangian.vandermonde @ beta)
    return beta


@pytest.mark.parametrize(
    ("truth", "degree", "multiplier", "dual_rate", "n_dual", "outcome"),
    [
        ("low-pass", 1, 0.01, 1.0, 50, Outcome.NEGATIVE_FILTER),
        ("low-pass", 1, 0.01, 30.0, 17, Outcome.STEP_LIMIT),
        ("low-pass", 2, 3.0, 0.1, 30, Outcome.STEP_LIMIT),
        ("high-pass", 2, 0.01, 30.0, 50, Outcome.CONVERGED),
        ("ramp", 1, 1.0, 1.0, 50, Outcome.CONVERGED),  # negative at the start, valid at the end
        ("low-pass", 2, "random", 30.0, 20, Outcome.NEGATIVE_FILTER),
    ],
)
def test_lines_2_to_4(truth, degree, multiplier, dual_rate, n_dual, outcome):
    beta, length_scale, noise = unconstrained(truth, degree)
    limits = Limits(dual=n_dual, descent=N_DESCENT)
    solver = Lagrangian(limits, literal=True, multiplier=multiplier, dual_rate=dual_rate, random_state=3)
    fit = learn(task_of(truth), Polynomial(degree), solver=solver)
    logs = np.full(len(MATRIX), np.log(0.01 if multiplier == "random" else multiplier))
    if multiplier == "random":
        logs += np.random.default_rng(3).standard_normal(len(MATRIX))
    expected = algorithm_1(Dense(truth, length_scale, noise, degree), beta, logs, dual_rate, n_dual)
    assert fit.outcome is outcome, fit.detail
    assert oracle.relative_error(fit.model.graph_kernel.coefficients, expected) < FORMULA
    # all but the coefficients is frozen, and the coefficients have moved
    assert fit.model.noise_variance == pytest.approx(noise, rel=FORMULA)
    assert oracle.relative_error(expected, beta) > 1e3 * FORMULA


def test_a_filter_that_ends_negative_is_no_convergence_and_is_returned_as_it_is():
    beta, *_ = unconstrained("low-pass", 1)
    assert np.min(np.vander(np.linalg.eigvalsh(MATRIX), 2, increasing=True) @ beta) < -0.1
    fit = learn(task_of("low-pass"), Polynomial(1), solver=Lagrangian(literal=True))
    response = fit.model.graph_kernel.response(np.linalg.eigvalsh(MATRIX))
    assert fit.outcome is Outcome.NEGATIVE_FILTER
    assert not fit.converged
    assert response.min() < -0.1
    assert fit.certificate.feasibility == pytest.approx(-response.min() / np.abs(response).max())
    assert fit.certificate.lift == 0
    assert fit.message == (
        "at a learning rate of 1e-04 the Lagrangian converged in 2 dual steps, and the filter falls to "
        f"{-fit.certificate.feasibility:.2g} of its largest magnitude. Use solver='sqp', or Lagrangian() without "
        "literal, which keep the filter non-negative"
    )


@pytest.mark.parametrize(
    ("truth", "degree", "dual_rate", "words"),
    [
        ("low-pass", 1, 1e3, "the filter diverged in dual step 3"),  # multipliers explode
        ("low-pass", 1, 1e300, "the filter diverged in dual step 2"),  # and overflow
        ("low-pass", 2, 1e3, "the Lagrangian converged in 6 dual steps, but to no solution: the filter has 2"),
    ],
)
def test_divergence_is_told_and_leaves_finite_numbers(truth, degree, dual_rate, words):
    """The last of them stands still where the filter swamps the signals: a smaller one is always more likely."""
    fit = learn(task_of(truth), Polynomial(degree), solver=Lagrangian(literal=True, dual_rate=dual_rate))
    assert fit.outcome is Outcome.DIVERGED
    assert words in fit.detail
    assert np.all(np.isfinite(fit.model.graph_kernel.coefficients))
    assert np.isfinite(fit.certificate.residual)
    dense = oracle.polynomial(MATRIX, fit.model.graph_kernel.coefficients)
    covariance = oracle.rbf(INPUTS, INPUTS, np.exp(fit.model.input_kernel.theta[0]))
    expected, smaller = (
        oracle.log_likelihood(SIGNALS[truth], covariance, scale * dense, fit.model.noise_variance)
        for scale in (1.0, np.exp(-2e-3))
    )
    assert fit.log_likelihood == pytest.approx(expected, rel=FORMULA)
    if "no solution" in words:
        told = float(fit.detail.split("gain ")[1].split()[0])
        assert told == pytest.approx((smaller - expected) / 1e-3, rel=0.02)
        assert told > 0.1 * SIGNALS[truth].size


def test_signals_of_zero_have_no_filter_to_run_off():
    task = Task.of(GRAPHS["random"], None, np.empty((3, 0)), np.zeros((3, 7)), 0.1, prior=None)
    fit = learn(task, Polynomial(1), solver=Lagrangian(literal=True))
    assert np.all(np.isfinite(fit.model.graph_kernel.coefficients))


def test_literal_through_the_estimator():
    """Fit and predictions of a filter that is negative somewhere are those of its covariance."""
    signals, solver = SIGNALS["low-pass"], Lagrangian(literal=True)
    model = GraphGPRegressor(GRAPHS["random"], Polynomial(1), RBF(1.0), solver=solver, **PLAIN)
    with pytest.warns(ConvergenceWarning, match=r"did not converge: .*the filter falls to -0\.4.* Use solver='sqp'"):
        model.fit(INPUTS, signals)
    assert model.response().min() < 0
    new = np.array([[0.3, -0.2], [1.0, 1.0]])
    dense = oracle.polynomial(MATRIX, model.graph_kernel_[0].coefficients)
    every = np.vstack([INPUTS, new])
    covariance = oracle.rbf(every, every, model.input_kernel_[0].length_scale)
    mean, variance = oracle.predict(signals, covariance, dense, model.noise_variance_)
    predicted, deviation = model.predict(new, return_std=True, include_noise=False)
    assert oracle.relative_error(predicted.ravel(), mean) < FORMULA
    assert oracle.relative_error(deviation.ravel() ** 2, np.diag(variance)) < FORMULA


def test_literal_with_holes_keeps_its_verdict():
    holes = SIGNALS["low-pass"].copy()
    holes[0, 0] = np.nan
    task = Task.of(GRAPHS["random"], RBF(1.0), INPUTS, holes, prior=None)
    fit = learn(task, Polynomial(1), solver=Lagrangian(literal=True))
    assert fit.certificate.feasibility > 0.1
    assert fit.outcome is Outcome.NEGATIVE_FILTER


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_the_dual_problem_is_stable_in_its_first_multipliers(seed):
    """As the paper says, fixed or random, once what could run off is kept on course."""
    plain, random, other = (
        learn(task_of("ramp"), Polynomial(2), solver=solver)
        for solver in (
            Lagrangian(),
            Lagrangian(multiplier="random", random_state=seed),
            Lagrangian(multiplier=0.1, dual_rate=0.1),
        )
    )
    for fit in (plain, random, other):
        assert fit.converged
        assert fit.certificate.residual <= CONVERGED
        assert abs(fit.log_likelihood - plain.log_likelihood) < OPTIMUM * SIGNALS["ramp"].size
    assert random.n_evaluations != plain.n_evaluations


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"multiplier": 0.0}, ValueError, "multiplier must be a finite number above 0; got 0.0"),
        ({"multiplier": "drawn"}, ValueError, "multiplier must be one of 'random'; got 'drawn'"),
        ({"multiplier": None}, TypeError, "multiplier must be a finite number above 0; got None"),
        ({"dual_rate": -1.0}, ValueError, "dual_rate must be a finite number above 0; got -1.0"),
        ({"random_state": -1}, ValueError, "random_state must be .* got -1"),
    ],
)
def test_settings_that_say_nothing_are_refused(change, kind, message):
    with pytest.raises(kind, match=message):
        Lagrangian(**change)


def test_the_problem_of_the_filter_is_the_dense_one_and_certificates_say_how_far_off_a_point_is():
    """At a point that is no solution: residuals of the Lagrangian's gradient, of signs and of complementarity."""
    task, kernel = task_of("ramp"), Polynomial(2)
    spectrum = task.spectrum_of(kernel)
    objective = Objective(task, kernel.bind(spectrum), spectrum)
    x = objective.starting_points()[0]
    length_scale, noise = np.exp(x[-2]), np.exp(x[-1])
    problem = FilterProblem(objective, np.eye(3), x)
    z, multipliers = np.array([0.3, -0.5, 0.1]), np.linspace(0.0, 2.0, problem.points.size)

    def response(points, z):
        return objective.graph_kernel.with_theta(z).response(points)

    def lagrangian(z):
        dense = oracle.from_filter(oracle.matrix_function(MATRIX, lambda t: response(t, z)))
        inputs = oracle.rbf(INPUTS, INPUTS, length_scale)
        value = -oracle.log_likelihood(SIGNALS["ramp"], inputs, dense, noise)
        return value - multipliers @ response(problem.points, z)

    value, gradient = problem.lagrangian(multipliers)(z)
    assert oracle.relative_error(value, lagrangian(z)) < FORMULA
    slopes = oracle.jacobian(lagrangian, z)
    assert oracle.relative_error(gradient, slopes) < 1e-5
    values = response(problem.points, z)
    assert values.min() < 0 < values.max()
    peak, found = np.max(np.abs(values)), problem.certificate(z, multipliers, lift=0.5)
    assert found.stationarity == pytest.approx(np.max(np.abs(slopes)), rel=1e-5)
    assert found.feasibility == pytest.approx(-values.min() / peak)
    assert found.complementarity == pytest.approx(np.max(np.abs(multipliers * values)))
    assert found.lift == 0.5
    below = values <= 1e-6 * peak
    assert found.active == tuple(f"filter at {point:.4g}" for point in problem.points[below])
    np.testing.assert_array_equal(found.multipliers, multipliers[below])
    np.testing.assert_array_equal(problem.whole(z), [*z, *x[3:]])


def test_limits_of_the_stages_are_in_proportion():
    assert Limits.from_iterations(500) == Limits() == Limits(3000, 1000, 500)
    assert Limits.from_iterations(10) == Limits(60, 20, 10)
