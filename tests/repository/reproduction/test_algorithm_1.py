"""Algorithm 1 as a solver: its descents, its stages with safeguards, and the printed lines against a plain loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from protocols import traffic, weather
from scipy.optimize import lsq_linear
from settings import PAPER, paper_kernel
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from solver_problems import (
    AWKWARD,
    INPUTS,
    N_SIGNALS,
    Problem,
    awkward_task,
    kkt_residual,
    lowest_response,
    problem,
    signals_of,
)

import oracle
from cases import GRAPHS, LARGE_CASES, WEIGHTS
from reproduction import Lagrangian, Limits
from reproduction.algorithm_1 import MAX_STEP, FilterProblem, descend, learning_rate
from spectralgp import Chebyshev, GraphGPRegressor, Identity, Polynomial
from spectralgp.learning import Objective, Outcome, Sqp, Task, learn
from spectralgp.model.kernels.carry import CarryColumns
from tolerances import CONVERGED, FORMULA, OPTIMUM

EVERYTHING = np.arange(1)
N_DESCENT = 40  # steps of a descent at most
MATRIX = oracle.laplacian(WEIGHTS["random"], scaled=True)
SIGNALS = {truth: signals_of(truth, WEIGHTS["random"]) for truth in ("low-pass", "high-pass", "ramp")}
FAST = Lagrangian(Limits(ascent=2000, dual=250, descent=100))  # fewer steps than by default; it must end properly
PLAIN = PAPER | {"prior": None, "center": None, "scale": None}


def task_of(truth, **options):
    return Task.of(GRAPHS["random"], RBF(1.0), INPUTS, SIGNALS[truth], prior=None, **options)


# Descents


def parabola(curvature):
    return lambda x: (0.5 * float(curvature @ x**2), curvature * x)


@pytest.mark.parametrize("curvature", [0.3, 1.0, 1.9, 2.1, 30.0, 150.0, 1e4])
def test_learning_rate_is_the_largest_power_of_ten_that_descends(curvature):
    """Steps on a parabola descend up to a rate of 2 over its curvature."""
    rate = learning_rate(parabola(np.array([curvature])), np.array([0.1]), EVERYTHING)
    assert rate == 10.0 ** np.floor(np.log10(2 / curvature))


@pytest.mark.parametrize(("slope", "rate"), [(5.0, 1.0), (5.01, 0.1), (500.0, 0.01)])
def test_a_step_of_five_is_the_longest(slope, rate):
    line = lambda x: (slope * float(x[0]), np.array([slope]))  # noqa: E731
    assert MAX_STEP == 5.0
    assert learning_rate(line, np.zeros(1), EVERYTHING) == rate


@pytest.mark.parametrize(
    ("curvature", "start", "rate"),
    [([1.0, 5.0], [3.0, -2.0], 0.1), ([1.0], [1.0], 100.0)],  # the second rate is too large, and is lowered
)
def test_descent_reaches_the_minimum_of_a_parabola(curvature, start, rate):
    function, rates = parabola(np.array(curvature)), np.full(len(start), rate)
    x, settled = descend(function, np.array(start), rates, limit=1000, tolerance=1e-8)
    assert settled
    assert np.max(np.abs(curvature * x)) <= 1e-8


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


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_problems_end_with_a_valid_filter(name):
    fit = learn(awkward_task(name, prior=None), Polynomial(3), solver=FAST)
    assert np.isfinite(fit.log_posterior)
    assert np.min(fit.model.graph_kernel.response(fit.model.spectrum.eigenvalues)) >= 0
    assert fit.model.noise_variance > 0
    assert fit.message


@pytest.mark.parametrize("noise_variance", [None, 1e-3])
def test_an_ascent_that_stops_early_is_no_convergence(noise_variance):
    """The dual problem then freezes parameters that are not at the unconstrained optimum."""
    case = problem("ramp", 2, noise_variance=noise_variance)
    fit = learn(case.task, case.kernel, solver=Lagrangian(Limits(ascent=3)))
    assert fit.certificate.residual <= CONVERGED
    assert fit.outcome is Outcome.STEP_LIMIT
    assert not fit.converged
    frozen = "the input kernel is" if noise_variance else "the input kernel and the noise are"
    assert fit.detail == (
        f"the unconstrained ascent stopped after 3 steps, so {frozen} not at its optimum; the dual problem converged"
    )
    longer = learn(case.task, case.kernel, solver=Lagrangian())
    assert longer.converged
    assert longer.log_likelihood > fit.log_likelihood
    assert noise_variance in (None, longer.model.noise_variance)


def test_an_ascent_that_stops_early_does_no_harm_where_nothing_is_frozen():
    """With the noise known and signals independent, the dual problem is the whole problem."""
    signals = signals_of("band-pass", WEIGHTS["random"])
    task = Task.of(GRAPHS["random"], None, np.empty((N_SIGNALS, 0)), signals, 0.01, prior=None)
    solver = Lagrangian(Limits(ascent=1))
    assert learn(task, Polynomial(1, None), solver=solver).message.startswith(
        "the unconstrained ascent stopped after 1"
    )
    fit = learn(task, Polynomial(1), solver=solver)
    assert fit.message == "the dual problem converged"
    assert abs(fit.log_likelihood - learn(task, Polynomial(1)).log_likelihood) < OPTIMUM * signals.size


@pytest.mark.parametrize("prior", ["weak", None])
def test_without_constraint_it_is_an_ascent(prior):
    case = problem("ramp", 1, None, prior)
    fit = learn(case.task, case.kernel, solver=Lagrangian())
    assert fit.message == "the unconstrained ascent converged"
    assert fit.converged
    assert [stage.name for stage in fit.stages] == ["grid search", "unconstrained ascent"]
    assert fit.certificate.stationarity <= 10 * CONVERGED  # in Chebyshev coefficients, not orthonormal ones
    assert abs(kkt_residual(case, fit) - fit.certificate.stationarity) < 1e-4
    response = fit.model.graph_kernel.response(case.eigenvalues)
    assert response.min() < 0
    assert response.mean() > 0


def test_kernels_without_constraint_are_learnt_by_the_default_solver():
    task = task_of("low-pass")
    fit, expected = (learn(task, Identity(), solver=solver) for solver in (Lagrangian(), Sqp()))
    assert (fit.log_posterior, fit.stages) == (expected.log_posterior, expected.stages)


def test_lagged_terms_are_taken_into_account():
    """Independent signals, half of the signal before and noise of a known size: the joint solution is found."""
    rng, graph = np.random.default_rng(4), GRAPHS["random"]
    before = rng.standard_normal((20, graph.n_nodes))
    signals = 0.5 * before + 2 * rng.standard_normal(before.shape)
    task = Task.of(graph, None, before, signals, 0.5, prior=None)
    task = replace(task, carried=CarryColumns.of(np.arange(graph.n_nodes), before))
    found, expected = (learn(task, Polynomial(1), solver=solver) for solver in (Lagrangian(), Sqp()))
    assert found.converged
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=OPTIMUM)
    assert oracle.relative_error(found.model.carry.chebyshev, expected.model.carry.chebyshev) < np.sqrt(OPTIMUM)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_the_dual_problem_is_stable_in_its_first_multipliers(seed):
    """As the paper says, fixed or random, with the safeguards."""
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


def test_a_filter_that_ends_negative_is_no_convergence_and_is_not_mended():
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
        f"{-fit.certificate.feasibility:.2g} of its largest magnitude. Use solver='sqp', which keeps the filter "
        "non-negative"
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


def test_signals_with_missing_values_are_learnt_from():
    signals = SIGNALS["low-pass"].copy()
    signals[0, 0] = np.nan
    task = Task.of(GRAPHS["random"], RBF(1.0), INPUTS, signals, prior=None)
    literal, free = (
        learn(task, kernel, solver=Lagrangian(literal=True)) for kernel in (Polynomial(1), Polynomial(2, None))
    )
    assert literal.certificate.feasibility > 0.1
    assert literal.outcome is Outcome.NEGATIVE_FILTER
    assert abs(free.log_likelihood - learn(task, Polynomial(2, None)).log_likelihood) < 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"multiplier": 0.0}, "multiplier must be a finite number above 0; got 0.0"),
        ({"multiplier": "drawn"}, "multiplier must be a finite number above 0; got 'drawn'"),
        ({"multiplier": None}, "multiplier must be a finite number above 0; got None"),
        ({"dual_rate": -1.0}, "dual_rate must be a finite number above 0; got -1.0"),
        ({"dual_rate": "random"}, "dual_rate must be a finite number above 0; got 'random'"),
    ],
)
def test_settings_that_say_nothing_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Lagrangian(**change)


def task_of_large(settings=None):
    case = LARGE_CASES["notch, 1%"]
    options = {} if settings is None else {"spectrum": settings}
    return Task.of(case.graph, RBF(1.0), case.inputs, case.signals, **options)


def test_its_truncation_error_is_stated():
    task = task_of_large(Chebyshev(n_moments=9, max_moments=17, n_probes="exact"))
    fit = learn(task, Polynomial(2), solver=Lagrangian(Limits(30, 4, 4)))
    assert fit.truncation_error > 1e-5 * task.signals.size
    assert fit.outcome is Outcome.TOO_FEW_MOMENTS


# The paper's data

# log likelihoods of the unconstrained ascent by (data, signals, degree)
ASCENTS = {
    (weather, 15, 1): -244.704,
    (weather, 15, 2): -194.265,
    (weather, 15, 3): -176.888,
    (weather, 30, 1): -366.027,
    (weather, 30, 2): -225.864,
    (weather, 30, 3): -200.189,
    (traffic, 10, 1): -743.329,
    (traffic, 10, 2): -731.869,
    (traffic, 10, 3): -585.102,
    (traffic, 20, 1): -1469.579,
    (traffic, 20, 2): -1469.287,
    (traffic, 20, 3): -1449.812,
}


def fit_to_data(data_folder, reader, n_signals, graph_kernel, solver):
    split = reader(data_folder, n_signals)
    model = GraphGPRegressor(split.graph, graph_kernel, paper_kernel(split.inputs), solver=solver, **PLAIN)
    return model.fit(split.inputs, split.signals)


@pytest.mark.slow
@pytest.mark.parametrize(("reader", "n_signals", "degree"), ASCENTS)
def test_the_unconstrained_ascent_ends_within_its_steps(data_folder, reader, n_signals, degree):
    """Rates found once only took more than 3000 steps on traffic 10, degree 3, and on weather 15, degree 2."""
    (fit,) = fit_to_data(data_folder, reader, n_signals, Polynomial(degree, None), Lagrangian()).fits_
    assert fit.converged, fit.message
    assert fit.log_likelihood == pytest.approx(ASCENTS[reader, n_signals, degree], abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("degree", "limits", "message"),
    [
        (3, Limits(ascent=300), "the unconstrained ascent stopped after 300 steps, so the input"),
        (1, Limits(), r"the fit of Polynomial\(1\) did not converge: the dual problem diverged: within 200"),
    ],
)
def test_fits_that_do_not_converge_warn(data_folder, degree, limits, message):
    """At a tenth of the steps the noise is frozen where it is no optimum; that was reported as converged."""
    with pytest.warns(ConvergenceWarning, match=message):
        model = fit_to_data(data_folder, traffic, 10, Polynomial(degree), Lagrangian(limits))
    assert model.fits_[0].outcome is not Outcome.CONVERGED
