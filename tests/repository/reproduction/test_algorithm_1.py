"""Algorithm 1 as a solver: certificates and fits against dense algebra, and the printed lines against a plain loop."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from settings import PAPER
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from solver_problems import INPUTS, Problem, lowest_response, problem, signals_of

import oracle
from cases import GRAPHS, WEIGHTS
from reproduction import Lagrangian, Limits
from reproduction.algorithm_1 import FilterProblem
from spectralgp import GraphGPRegressor, Polynomial
from spectralgp.learning import Objective, Outcome, Task, learn
from tolerances import CONVERGED, FORMULA

N_DESCENT = 40  # steps of a descent at most
MATRIX = oracle.laplacian(WEIGHTS["random"], scaled=True)
SIGNALS = {truth: signals_of(truth, WEIGHTS["random"]) for truth in ("low-pass", "high-pass", "ramp")}
FAST = Lagrangian(Limits(ascent=2000, dual=250, descent=100))  # fewer steps than by default; it must end properly
PLAIN = PAPER | {"prior": None, "center": None, "scale": None}


def task_of(truth, **options):
    return Task.of(GRAPHS["random"], RBF(1.0), INPUTS, SIGNALS[truth], prior=None, **options)


# The problem in the filter


def test_the_problem_of_the_filter_is_the_dense_one_and_certificates_say_how_far_off_a_point_is():
    """At a point that is no solution: residuals of the Lagrangian's gradient, of signs and of complementarity."""
    task, kernel = task_of("ramp"), Polynomial(2)
    spectrum = task.spectrum_of(kernel)
    objective = Objective(task, kernel.bind(spectrum), spectrum)
    x = objective.starting_points()[0]
    length_scale, noise = np.exp(x[-2]), np.exp(x[-1])
    of_filter = FilterProblem(objective, np.eye(3), x)
    z, multipliers = np.array([0.3, -0.5, 0.1]), np.linspace(0.0, 2.0, of_filter.points.size)

    def response(points, z):
        return objective.graph_kernel.with_theta(z).response(points)

    def lagrangian(z):
        dense = oracle.from_filter(oracle.matrix_function(MATRIX, lambda t: response(t, z)))
        inputs = oracle.rbf(INPUTS, INPUTS, length_scale)
        value = -oracle.log_likelihood(SIGNALS["ramp"], inputs, dense, noise)
        return value - multipliers @ response(of_filter.points, z)

    value, gradient = of_filter.lagrangian(multipliers)(z)
    assert oracle.relative_error(value, lagrangian(z)) < FORMULA
    slopes = oracle.jacobian(lagrangian, z)
    assert oracle.relative_error(gradient, slopes) < 1e-5
    values = response(of_filter.points, z)
    assert values.min() < 0 < values.max()
    peak, found = np.max(np.abs(values)), of_filter.certificate(z, multipliers, lift=0.5)
    assert found.stationarity == pytest.approx(np.max(np.abs(slopes)), rel=1e-5)
    assert found.feasibility == pytest.approx(-values.min() / peak)
    assert found.complementarity == pytest.approx(np.max(np.abs(multipliers * values)))
    assert found.lift == 0.5
    below = values <= 1e-6 * peak
    assert found.active == tuple(f"filter at {point:.4g}" for point in of_filter.points[below])
    np.testing.assert_array_equal(found.multipliers, multipliers[below])
    np.testing.assert_array_equal(of_filter.whole(z), [*z, *x[3:]])


# With safeguards


def frozen_residual(case: Problem, fit) -> float:
    """Least norm of the frozen problem's Lagrangian gradient over multipliers that are complementary to 1e-3.

    In coordinates orthonormal on the spectrum, by finite differences of the dense log posterior.
    """
    x, n_graph = case.point(fit), case.kernel.degree + 1
    points = case.eigenvalues
    if case.kernel.constraint == "interval":
        points = np.union1d(points, np.linspace(0, 1, 201))
    design = np.polynomial.chebyshev.chebvander(2 * case.eigenvalues - 1, case.kernel.degree)
    to_theta = np.linalg.inv(np.linalg.qr(design)[1])
    gradient = oracle.jacobian(
        lambda theta: case.log_posterior(np.concatenate([theta, x[n_graph:]])), x[:n_graph], 1e-4
    )
    rows = np.polynomial.chebyshev.chebvander(2 * points - 1, case.kernel.degree)
    slack = np.maximum(rows @ x[:n_graph], 0.0)
    limits = CONVERGED / np.maximum(slack, 1e-12)
    result = lsq_linear((rows @ to_theta).T, -gradient @ to_theta, (0.0, limits), tol=1e-14)
    return float(np.sqrt(2 * result.cost))


@pytest.mark.parametrize(
    ("truth", "degree", "constraint", "prior"),
    [
        ("low-pass", 1, "eigenvalues", None),
        ("low-pass", 2, "eigenvalues", "weak"),
        ("high-pass", 1, "eigenvalues", "weak"),
        ("high-pass", 2, "eigenvalues", None),
        ("ramp", 1, "eigenvalues", None),
        ("ramp", 2, "eigenvalues", "weak"),
        ("band-pass", 2, "eigenvalues", None),
        ("band-pass", 3, "interval", "weak"),
        ("ramp", 3, "interval", None),
    ],
)
def test_a_fit_is_valid_and_has_converged_or_says_why(truth, degree, constraint, prior):
    case, steps = problem(truth, degree, constraint, prior), []
    fit = learn(case.task, case.kernel, solver=FAST, progress=steps.append)
    assert lowest_response(case, fit) >= (-1e-13 if constraint == "eigenvalues" else -1e-9)
    assert steps == [stage.name for stage in fit.stages]
    assert steps[1:] == ["unconstrained ascent", "dual problem"]
    grid, ascent, dual = (stage.log_posterior for stage in fit.stages)
    assert grid < ascent
    assert dual == fit.log_posterior
    assert oracle.relative_error(fit.log_posterior, case.log_posterior(case.point(fit))) < FORMULA
    if fit.converged:
        assert fit.certificate.residual <= CONVERGED
        assert fit.message == "the dual problem converged"
        # each of degree + 1 entries may reach the residual
        assert frozen_residual(case, fit) <= CONVERGED * np.sqrt(degree + 1) + 1e-6
    else:
        assert fit.certificate.residual > CONVERGED
        assert fit.outcome in (Outcome.DIVERGED, Outcome.STEP_LIMIT)
        diverged = fit.outcome is Outcome.DIVERGED
        assert fit.detail.startswith(f"the dual problem {'diverged: ' if diverged else 'stopped after '}")


# As printed


def unconstrained(truth, degree):
    """Where line 1 starts: coefficients of powers, length scale and noise."""
    model = learn(task_of(truth), Polynomial(degree, None), solver=Lagrangian()).model
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


def rate_of_the_supplement(lagrangian, beta, multipliers):
    """The largest power of ten with which five steps all descend, none longer than 5."""
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


def lines_2_to_4(lagrangian, beta, logs, dual_rate, n_dual):
    rate, value = rate_of_the_supplement(lagrangian, beta, np.exp(logs)), np.inf
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
    expected = lines_2_to_4(Dense(truth, length_scale, noise, degree), beta, logs, dual_rate, n_dual)
    assert fit.outcome is outcome, fit.detail
    assert oracle.relative_error(fit.model.graph_kernel.coefficients, expected) < FORMULA
    # all but the coefficients is frozen, and the coefficients have moved
    assert fit.model.noise_variance == pytest.approx(noise, rel=FORMULA)
    assert oracle.relative_error(expected, beta) > 1e3 * FORMULA


# As any solver


def test_it_is_a_solver_of_the_estimator():
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
    with pytest.raises(ValueError, match=r"residual must be None or 'auto' with solver=Lagrangian\(\.\.\.\)"):
        model.set_params(residual=Polynomial(1)).fit(INPUTS, signals)
