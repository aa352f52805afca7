"""Every solver on every kind of problem: certificates hold up against finite differences of dense likelihoods."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import RBF
from solver_problems import (
    AWKWARD,
    INPUTS,
    LENGTH_SCALE,
    N_SIGNALS,
    TRUTHS,
    Problem,
    awkward_task,
    kkt_residual,
    lowest_response,
    problem,
    signals_of,
)

import oracle
from cases import GRAPHS, WEIGHTS
from spectralgp import GraphGPRegressor, Matern, RegularizedLaplacian
from spectralgp.datasets import sensor_graph
from spectralgp.graphs import Graph
from spectralgp.learning import Outcome, Sqp, Task, learn
from spectralgp.learning import sqp as sqp_module
from spectralgp.learning.objective import Objective
from spectralgp.model.kernels import Diffusion, Identity, Polynomial
from spectralgp.model.spectra import Chebyshev, Exact, decompose
from tolerances import CONVERGED, FORMULA, GRADIENT, OPTIMUM

every_truth = pytest.mark.parametrize("truth", TRUTHS)
every_prior = pytest.mark.parametrize("prior", ["weak", None])


# The default solver


@every_prior
@every_truth
@pytest.mark.parametrize(("degree", "constraint"), [(1, "eigenvalues"), (3, "eigenvalues"), (3, "interval"), (3, None)])
def test_certificates_of_sqp_are_honest(truth, degree, constraint, prior):
    """Stationarity is that of the dense problem; the filter is non-negative without exception."""
    case = problem(truth, degree, constraint, prior)
    fit = learn(case.task, case.kernel)
    certificate = fit.certificate
    assert fit.converged, fit.message
    gradient = oracle.jacobian(case.log_posterior, case.point(fit), 1e-4)
    rounding = GRADIENT * max(1.0, float(np.max(np.abs(gradient))))
    assert abs(kkt_residual(case, fit) - certificate.stationarity) < rounding + 1e-5
    assert certificate.stationarity <= CONVERGED * np.sqrt(case.task.signals.size)
    assert certificate.feasibility <= 1e-9
    assert certificate.lift <= 1e-8
    if constraint is not None:
        assert lowest_response(case, fit) >= -1e-13
    assert oracle.relative_error(fit.log_posterior, case.log_posterior(case.point(fit))) < FORMULA


@every_prior
@every_truth
def test_the_objective_never_falls_with_the_degree(truth, prior):
    case = problem(truth, 8, prior=prior)
    fit = learn(case.task, case.kernel)
    values = [stage.log_posterior for stage in fit.stages]
    assert len(values) == 9
    # a filter lifted by rounding may cost as much as rounding
    assert np.min(np.diff(values)) > -OPTIMUM
    assert values[-1] == fit.log_posterior


def brute_force(case: Problem, start: np.ndarray, points: np.ndarray) -> float:
    """Best dense log posterior near a start, with a constraint at every point, by SciPy's trust-region method."""
    n_graph = case.kernel.degree + 1
    objective = Objective(case.task, case.kernel.with_theta(np.zeros(n_graph)), decompose(case.graph, scaled=True))
    rows = np.zeros((points.size, start.size))
    rows[:, :n_graph] = np.polynomial.chebyshev.chebvander(2 * points - 1, case.kernel.degree)
    result = minimize(
        lambda x: -case.log_posterior(x),
        start,
        jac=lambda x: -oracle.jacobian(case.log_posterior, x, 1e-4),
        method="SLSQP",
        bounds=objective.bounds,
        constraints=[{"type": "ineq", "fun": lambda x: rows @ x, "jac": lambda x: rows}],
        options={"maxiter": 200, "ftol": 1e-12},
    )
    assert np.min(rows @ result.x) > -1e-7
    return -float(result.fun)


@pytest.mark.parametrize("truth", ["ramp", "low-pass"])
@pytest.mark.parametrize(("degree", "constraint"), [(1, "eigenvalues"), (2, "eigenvalues"), (2, "interval")])
def test_sqp_is_the_optimum_with_every_constraint_at_once(truth, degree, constraint):
    """Few constraints, added where violated, give the optimum of all of them."""
    case = problem(truth, degree, constraint, graph="complete" if truth == "low-pass" else "random")
    fit = learn(case.task, case.kernel)
    points = np.linspace(0, 1, 101) if constraint == "interval" else case.eigenvalues
    x = case.point(fit)
    start = x + 0.01 * np.random.default_rng(0).standard_normal(x.size)  # within the same basin
    start[0] += 0.05  # feasible
    best = brute_force(case, start, points)
    assert abs(best - fit.log_posterior) < OPTIMUM * case.task.signals.size


@pytest.mark.parametrize("degree", [3, 8])
@pytest.mark.parametrize("spectrum", [Exact(), Chebyshev(n_probes="exact")], ids=["exact", "quadrature"])
def test_a_violation_that_is_left_is_lifted_and_said(degree, spectrum, monkeypatch):
    """However much a solve may violate, the filter ends above zero, and the certificate says by what."""
    graph = Graph.from_points(np.random.default_rng(0).random((80, 2)), 6)
    matrix = oracle.laplacian(graph.weights.toarray(), scaled=True)
    dense = oracle.from_filter(oracle.matrix_function(matrix, TRUTHS["ramp"]))
    signals = oracle.draw(oracle.rbf(INPUTS, INPUTS, 1.0), dense, 1e-3, np.random.default_rng(1))
    task = Task.of(graph, RBF(1.0), INPUTS, signals, spectrum=spectrum, prior=None)
    lifts = []
    for violation in (1e-12, 1e-5):
        monkeypatch.setattr(sqp_module, "VIOLATION", violation)
        fit = learn(task, Polynomial(degree))
        points = decompose(graph, scaled=True).eigenvalues
        assert np.min(fit.model.graph_kernel.response(points)) >= -1e-15
        assert fit.certificate.feasibility == 0.0
        assert any(name.startswith("filter at ") for name in fit.certificate.active)
        lifts.append(fit.certificate.lift)
    assert lifts[0] <= 1e-12 * (1 + 1e-1)
    assert lifts[1] <= 1e-5 * (1 + 1e-3)


def test_a_start_that_is_no_valid_filter_leads_to_one():
    case = problem("low-pass", 2)
    given = Polynomial.from_coefficients([0.5, -3.0, 1.0])
    assert np.min(given.response(case.eigenvalues)) < -0.1
    fit, plain = learn(case.task, given), learn(case.task, Polynomial(2))
    assert fit.converged
    assert lowest_response(case, fit) >= 0
    assert fit.log_posterior >= plain.log_posterior - OPTIMUM


# Cost


def smooth_fields(n_nodes=300, n_signals=30, strength=20.0, seed=0):
    """White noise through a low-pass filter, inputs that explain it, and noise 10 dB below."""
    rng = np.random.default_rng(seed)
    graph = sensor_graph(n_nodes, rng)
    inputs = rng.standard_normal((n_signals, 2))
    spectrum = decompose(graph, scaled=True)
    root = np.linalg.cholesky(oracle.rbf(inputs, inputs, 1.0) + 1e-10 * np.eye(n_signals))
    white = rng.standard_normal((n_signals, n_nodes)) * np.exp(-strength / 2 * spectrum.eigenvalues)
    clean = root @ white @ spectrum.eigenvectors.T
    return graph, inputs, clean / clean.std() + np.sqrt(0.1) * rng.standard_normal(clean.shape)


@pytest.mark.parametrize("strength", [3.0, 20.0, 100.0])
@pytest.mark.parametrize("spectrum", ["exact", "chebyshev"])
def test_a_high_degree_takes_few_evaluations(strength, spectrum):
    """The bar of issue 8 for 300 nodes and 30 signals; steps by differences took 200 to 600."""
    graph, inputs, signals = smooth_fields(strength=strength)
    model = GraphGPRegressor(graph, Polynomial(8), spectrum=spectrum).fit(inputs, signals)
    (fit,) = model.fits_
    assert fit.converged
    assert fit.n_evaluations <= 110


def test_an_active_constraint_is_named_and_costs_likelihood():
    constrained, free = problem("ramp", 1), problem("ramp", 1, None)
    fit = learn(constrained.task, constrained.kernel)
    other = learn(free.task, free.kernel)
    (touching,) = [name for name in fit.certificate.active if name.startswith("filter at ")]
    assert float(touching.removeprefix("filter at ")) in (0.0, 1.0)
    response = other.model.graph_kernel.response(free.eigenvalues)
    assert response.min() < 0 < response.max()
    assert fit.log_likelihood < other.log_likelihood - 1
    assert other.certificate.active == ()


def test_the_interval_is_asked_for_more_than_the_eigenvalues():
    """On a star, eigenvalues leave a wide gap in which a cubic may turn negative."""
    case = problem("ramp", 3, graph="star")
    whole = problem("ramp", 3, "interval", graph="star")
    fit, other = learn(case.task, case.kernel), learn(whole.task, whole.kernel)
    assert other.log_posterior <= fit.log_posterior + OPTIMUM
    assert lowest_response(whole, other) >= -1e-13


def test_the_noise_floor_is_named():
    """Signals without noise, filtered by a polynomial of the degree learnt."""
    matrix = oracle.laplacian(WEIGHTS["random"], scaled=True)
    dense = oracle.polynomial(matrix, [1.0, -0.5])
    signals = oracle.draw(oracle.rbf(INPUTS, INPUTS, 0.3), dense, 1e-12, np.random.default_rng(0))
    fit = learn(Task.of(GRAPHS["random"], RBF(1.0), INPUTS, signals, prior=None), Polynomial(1))
    assert "noise_variance at its lower bound" in fit.certificate.active
    assert fit.model.noise_variance == pytest.approx(1e-3 * np.var(signals))


def test_fixed_noise_stays():
    case = problem("low-pass", 2, noise_variance=0.07)
    fit = learn(case.task, case.kernel)
    assert fit.model.noise_variance == 0.07
    assert "noise_variance" not in "".join(fit.certificate.active)


def test_nothing_to_learn_is_learnt_at_once():
    signals = signals_of("low-pass", WEIGHTS["random"])
    task = Task.of(GRAPHS["random"], RBF(LENGTH_SCALE, "fixed"), INPUTS, signals, noise_variance=0.2)
    fit = learn(task, Identity(amplitude=0.6, amplitude_bounds="fixed"))
    expected = oracle.log_likelihood(signals, oracle.rbf(INPUTS, INPUTS, LENGTH_SCALE), 0.36 * np.eye(7), 0.2)
    assert fit.converged
    assert fit.outcome is Outcome.NOTHING_TO_LEARN
    assert "nothing to learn" in fit.message
    assert oracle.relative_error(fit.log_likelihood, expected) < FORMULA


@pytest.mark.parametrize("seed", range(4))
def test_graph_structure_is_found_where_the_inputs_say_nothing(seed):
    """Signals that are smooth on the graph, and independent of their inputs.

    Alone, a constant filter is worth nothing then, and a filter of zero has no slope in any coefficient: the
    continuation must not stay there.
    """
    rng = np.random.default_rng(seed)
    matrix = oracle.laplacian(WEIGHTS["random"], scaled=True)
    dense = oracle.from_filter(oracle.matrix_function(matrix, lambda t: np.exp(-4 * t)))
    signals = oracle.draw(np.eye(N_SIGNALS), dense, 0.01, rng)
    task = Task.of(GRAPHS["random"], RBF(1.0), INPUTS, signals - signals.mean())
    fit = learn(task, Polynomial(3))
    start = np.array([np.std(signals), 0.0, 0.0, 0.0])
    objective = Objective(task, fit.model.graph_kernel, fit.model.spectrum)
    x0 = objective.join(start, np.zeros(1), 0.2 * task.variance)
    fresh = minimize(
        lambda x: -objective.evaluate(x)[0],
        x0,
        jac=lambda x: -objective.evaluate(x)[1],
        method="SLSQP",
        bounds=objective.bounds,
        constraints=[{"type": "ineq", "fun": lambda x: objective.split(x)[0].response(objective.spectrum.eigenvalues)}],
        options={"maxiter": 300, "ftol": 1e-12},
    )
    assert fit.log_posterior >= -fresh.fun - 0.01


# Awkward problems


@every_prior
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_problems_end_with_a_valid_filter(name, prior):
    fit = learn(awkward_task(name, prior), Polynomial(3))
    assert np.isfinite(fit.log_posterior)
    assert np.min(fit.model.graph_kernel.response(fit.model.spectrum.eigenvalues)) >= 0
    assert fit.model.noise_variance > 0
    assert fit.converged, fit.message


def test_scaling_the_laplacian_changes_nothing_about_polynomials():
    signals = signals_of("band-pass", WEIGHTS["random"])
    task = Task.of(GRAPHS["random"], RBF(1.0), INPUTS, signals)
    scaled, plain = (learn(task, Polynomial(4, scaled=value)) for value in (True, False))
    assert abs(scaled.log_posterior - plain.log_posterior) < OPTIMUM
    largest = decompose(GRAPHS["random"]).eigenvalues[-1]
    points = np.linspace(0, 1, 9)
    expected = scaled.model.graph_kernel.response(points)
    assert oracle.relative_error(plain.model.graph_kernel.response(largest * points), expected) < 1e-3


@pytest.mark.parametrize("kernel", [Identity(), Diffusion(), RegularizedLaplacian(), Matern()])
def test_named_kernels_reach_the_best_of_a_scan(kernel):
    """The joint optimum is at least that of many starts of a general-purpose optimiser."""
    task = Task.of(GRAPHS["random"], RBF(1.0), INPUTS, signals_of("low-pass", WEIGHTS["random"]), prior=None)
    fit = learn(task, kernel)
    objective = Objective(task, kernel, fit.model.spectrum)
    rng = np.random.default_rng(0)
    low, high = np.maximum(objective.bounds[:, 0], -4), np.minimum(objective.bounds[:, 1], 4)
    best = max(
        -minimize(
            lambda x: tuple(-np.asarray(part) for part in objective.evaluate(x)),
            rng.uniform(low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=objective.bounds,
        ).fun
        for _ in range(12)
    )
    assert fit.converged
    assert fit.log_posterior >= best - 1e-3


def test_too_few_iterations_are_reported():
    case = problem("band-pass", 3)
    fit = learn(case.task, case.kernel, solver=Sqp(max_iterations=1))
    assert not fit.converged
    assert fit.outcome is Outcome.NOT_STATIONARY
    assert "stationarity" in fit.message
    assert fit.message.endswith("Raise max_iterations")
