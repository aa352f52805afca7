"""Every solver on every kind of problem: certificates hold up against finite differences of dense likelihoods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize, nnls
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GRAPHS, WEIGHTS
from spectralgp import GraphGPRegressor
from spectralgp.datasets import sensor_graph
from spectralgp.graphs import Graph
from spectralgp.learning import Lagrangian, Limits, Outcome, Sqp, Task, learn
from spectralgp.learning import lagrangian as lagrangian_module
from spectralgp.learning import sqp as sqp_module
from spectralgp.learning.objective import Objective
from spectralgp.model.kernels import Diffusion, Identity, Matern, Polynomial, RegularizedLaplacian
from spectralgp.model.spectra import Chebyshev, Exact, ExactSpectrum, decompose
from tolerances import CONVERGED, FORMULA, GRADIENT, OPTIMUM

N_SIGNALS = 8
INPUTS = np.random.default_rng(0).uniform(-2, 2, (N_SIGNALS, 2))
LENGTH_SCALE = 1.2

TRUTHS = {
    "low-pass": lambda t: np.exp(-3 * t),
    "high-pass": lambda t: 0.1 + t**2,
    "ramp": lambda t: np.maximum(t - 0.3, 0.0),  # an unconstrained line turns negative at zero
    "band-pass": lambda t: np.maximum(4 * t * (1 - t) - 0.5, 0.0),
}


def signals_of(truth: str, weights: np.ndarray, seed: int = 0, noise: float = 1e-3) -> np.ndarray:
    matrix = oracle.laplacian(weights, scaled=True)
    dense = oracle.from_filter(oracle.matrix_function(matrix, TRUTHS[truth]))
    covariance = oracle.rbf(INPUTS, INPUTS, LENGTH_SCALE)
    return oracle.draw(covariance, dense, noise, np.random.default_rng(seed))


@dataclass(frozen=True)
class Problem:
    """A task, its graph, and the log posterior by dense algebra and a hand-written prior."""

    task: Task
    weights: np.ndarray
    kernel: Polynomial

    @property
    def graph(self) -> Graph:
        return Graph(self.weights)

    @property
    def eigenvalues(self) -> np.ndarray:
        return decompose(self.graph, scaled=True).eigenvalues

    def log_posterior(self, x: np.ndarray) -> float:
        """At ``x`` = Chebyshev coefficients on [0, 1], log length scale, log noise variance (unless fixed)."""
        task, n_graph = self.task, self.kernel.degree + 1
        chebyshev, log_length = x[:n_graph], x[n_graph]
        noise = np.exp(x[n_graph + 1]) if task.known_noise is None else task.known_noise
        coefficients = np.polynomial.Chebyshev(chebyshev, domain=[0, 1]).convert(kind=np.polynomial.Polynomial).coef
        matrix = oracle.laplacian(self.weights, scaled=True)
        dense = oracle.polynomial(matrix, coefficients)
        value = oracle.log_likelihood(task.signals.values, oracle.rbf(INPUTS, INPUTS, np.exp(log_length)), dense, noise)
        if task.prior == "weak":
            rough = sum(p**6 * c**2 for p, c in enumerate(chebyshev))
            value -= 0.05 * rough / (np.trace(dense) / len(dense) + noise)
            squared = [np.sum((a - b) ** 2) for i, a in enumerate(INPUTS) for b in INPUTS[:i]]
            value -= 0.5 * (2 * log_length - np.log(np.median(squared))) ** 2
            if task.known_noise is None:
                within = float(np.mean(np.var(task.signals.values, axis=0)))
                value += oracle.noise_log_prior(noise, within, len(dense))
        return value

    def point(self, fit) -> np.ndarray:
        noise = [np.log(fit.model.noise_variance)] if self.task.known_noise is None else []
        return np.concatenate([fit.model.graph_kernel.theta, fit.model.input_kernel.theta, noise])


def problem(truth, degree, constraint="eigenvalues", prior=None, noise_variance=None, graph="random", **options):
    signals = signals_of(truth, WEIGHTS[graph], **options)
    task = Task.of(GRAPHS[graph], RBF(1.0), INPUTS, signals, noise_variance, prior)
    return Problem(task, WEIGHTS[graph], Polynomial(degree, constraint))


every_truth = pytest.mark.parametrize("truth", TRUTHS)
every_prior = pytest.mark.parametrize("prior", ["weak", None])


def lowest_response(problem, fit) -> float:
    points = np.linspace(0, 1, 2001) if problem.kernel.constraint == "interval" else problem.eigenvalues
    return float(np.min(fit.model.graph_kernel.response(points)))


def kkt_residual(problem: Problem, fit) -> float:
    """Largest entry of the dense Lagrangian's gradient, multipliers by non-negative least squares."""
    x = problem.point(fit)
    gradient = oracle.jacobian(problem.log_posterior, x, 1e-4)
    kernel = fit.model.graph_kernel
    rows = []
    if problem.kernel.constraint is not None:
        points = kernel.extrema() if problem.kernel.constraint == "interval" else problem.eigenvalues
        response = kernel.response(points)
        touching = points[response <= 1e-6 * np.max(response)]
        padding = np.zeros((touching.size, x.size - kernel.theta.size))
        rows += list(np.hstack([np.polynomial.chebyshev.chebvander(2 * touching - 1, kernel.degree), padding]))
    if problem.task.known_noise is None:
        low, high = problem.task.noise_bounds
        if abs(x[-1] - low) < 1e-8:
            rows.append(np.eye(x.size)[-1])
        if abs(x[-1] - high) < 1e-8:
            rows.append(-np.eye(x.size)[-1])
    if not rows:
        return float(np.max(np.abs(gradient)))
    multipliers, _ = nnls(np.array(rows).T, -gradient)
    return float(np.max(np.abs(gradient + np.array(rows).T @ multipliers)))


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


def test_a_solution_keeps_its_bounds_where_a_step_does_not(monkeypatch):
    """A step may end a hair beyond a bound: the noise floor holds all the same."""
    plain = sqp_module._quadratic_program
    monkeypatch.setattr(sqp_module, "_quadratic_program", lambda *given: plain(*given) - 1e-7)
    signals = signals_of("low-pass", WEIGHTS["random"])
    task = Task.of(
        GRAPHS["random"],
        RBF(1.0),
        INPUTS,
        signals,
        prior=None,
        noise_variance=(0.5 * signals.var(), 10 * signals.var()),
    )
    fit = learn(task, Diffusion())
    assert "noise_variance at its lower bound" in fit.certificate.active
    assert oracle.relative_error(fit.model.noise_variance, 0.5 * np.var(signals)) < FORMULA


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


@pytest.mark.parametrize("solver", ["sqp", "lagrangian"])
def test_fixed_noise_stays(solver):
    case = problem("low-pass", 2, noise_variance=0.07)
    fit = learn(case.task, case.kernel, solver=solver)
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
    fits = [learn(task, Polynomial(degree)) for degree in (0, 3)]
    start = np.array([np.std(signals), 0.0, 0.0, 0.0])
    objective = Objective(task, fits[1].model.graph_kernel, fits[1].model.spectrum)
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
    assert fits[1].log_posterior >= -fresh.fun - 0.01


# Awkward problems


AWKWARD = {
    "edgeless graph": (np.zeros((5, 5)), lambda rng: rng.standard_normal((N_SIGNALS, 5))),
    "single node": (np.zeros((1, 1)), lambda rng: rng.standard_normal((N_SIGNALS, 1))),
    "disconnected graph": (WEIGHTS["disconnected"], lambda rng: rng.standard_normal((N_SIGNALS, 8))),
    "one signal": (WEIGHTS["random"], lambda rng: rng.standard_normal((1, 7))),
    "constant signals": (WEIGHTS["random"], lambda rng: np.ones((N_SIGNALS, 7))),
    "zero signals": (WEIGHTS["random"], lambda rng: np.zeros((N_SIGNALS, 7))),
    "repeated eigenvalues": (WEIGHTS["complete"], lambda rng: rng.standard_normal((N_SIGNALS, 6))),
    "two signals": (WEIGHTS["ring"], lambda rng: rng.standard_normal((2, 6)).cumsum(axis=1)),
}


@pytest.mark.parametrize(("solver", "prior"), [("sqp", "weak"), ("sqp", None), ("lagrangian", None)])
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_problems_end_with_a_valid_filter(name, solver, prior):
    weights, make = AWKWARD[name]
    signals = make(np.random.default_rng(3))
    solve = learn if solver == "sqp" else algorithm_1
    fit = solve(Task.of(Graph(weights), RBF(1.0), INPUTS[: len(signals)], signals, prior=prior), Polynomial(3))
    assert np.isfinite(fit.log_posterior)
    assert np.min(fit.model.graph_kernel.response(fit.model.spectrum.eigenvalues)) >= 0
    assert fit.model.noise_variance > 0
    assert fit.message
    if solver == "sqp":
        assert fit.converged, fit.message


def test_two_thousand_eigenvalues_need_a_handful_of_constraints(monkeypatch):
    n_nodes, n_signals = 2000, 4
    graph = Graph(np.zeros((n_nodes, n_nodes)))
    eigenvalues = np.linspace(0, 1, n_nodes) ** 1.5
    monkeypatch.setattr(Task, "spectrum_of", lambda *_: ExactSpectrum(graph, "combinatorial", True, eigenvalues))
    rng = np.random.default_rng(0)
    truth = np.maximum(np.sin(7 * eigenvalues), 0.0)
    signals = truth * rng.standard_normal((n_signals, n_nodes)) + 0.1 * rng.standard_normal((n_signals, n_nodes))
    sizes = []
    original = sqp_module._quadratic_program

    def watched(root, gradient, rows, least):
        sizes.append(len(rows))
        return original(root, gradient, rows, least)

    monkeypatch.setattr(sqp_module, "_quadratic_program", watched)
    fit = learn(Task.of(graph, None, np.empty((n_signals, 0)), signals, prior=None), Polynomial(6))
    response = fit.model.graph_kernel.response(eigenvalues)
    assert fit.converged, fit.message
    assert response.min() >= 0
    assert response.min() < 1e-6 * response.max()  # the constraint binds
    assert fit.certificate.lift < 1e-8
    assert max(sizes) < 60


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


# Algorithm 1


def algorithm_1(task, kernel):
    """The solver with fewer steps than by default, to keep the tests short; it must end properly all the same."""
    return learn(task, kernel, solver=Lagrangian(Limits(ascent=2000, dual=250, descent=100)))


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
def test_lagrangian_ends_valid_and_converged_or_says_why(truth, degree, constraint, prior):
    case = problem(truth, degree, constraint, prior)
    fit = algorithm_1(case.task, case.kernel)
    assert lowest_response(case, fit) >= (-1e-13 if constraint == "eigenvalues" else -1e-9)
    assert [stage.name for stage in fit.stages][1:] == ["unconstrained ascent", "dual problem"]
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


@pytest.mark.parametrize("noise_variance", [None, 1e-3])
def test_an_ascent_that_stops_early_is_no_convergence(noise_variance):
    """What the dual problem freezes is then not at the unconstrained optimum, however well it converges itself."""
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


@pytest.mark.parametrize(
    ("limits", "outcome", "ending"),
    [
        (Limits(ascent=3, dual=2), Outcome.STEP_LIMIT, "the dual problem stopped after 2 steps"),
        pytest.param(
            Limits(ascent=3), Outcome.DIVERGED, "the dual problem diverged: within 200 steps", marks=pytest.mark.slow
        ),
    ],
)
def test_an_ascent_that_stops_early_is_told_beside_a_dual_problem_that_fails(limits, outcome, ending):
    case = problem("low-pass", 1)
    fit = learn(case.task, case.kernel, solver=Lagrangian(limits))
    assert fit.outcome is outcome
    frozen = "the input kernel and the noise are"
    assert fit.detail.startswith(
        f"the unconstrained ascent stopped after 3 steps, so {frozen} not at its optimum; {ending}"
    )


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


def test_an_ascent_that_no_rate_takes_further_says_so(monkeypatch):
    """Rounding may leave a gradient above the tolerance, and no step that climbs."""
    monkeypatch.setattr(lagrangian_module, "RESIDUAL", 0.0)
    case = problem("ramp", 2, None)
    fit = learn(case.task, case.kernel, solver=Lagrangian(Limits(ascent=100_000)))
    assert fit.outcome is Outcome.STEP_LIMIT
    assert "steps, where no learning rate climbs" in fit.detail
    assert fit.certificate.stationarity < CONVERGED
    assert fit.n_evaluations < 100_000


@every_prior
def test_lagrangian_without_constraint_is_an_ascent(prior):
    case = problem("ramp", 1, None, prior)
    fit = learn(case.task, case.kernel, solver="lagrangian")
    assert fit.message == "the unconstrained ascent converged"
    assert fit.converged
    assert [stage.name for stage in fit.stages] == ["grid search", "unconstrained ascent"]
    assert fit.certificate.stationarity <= 10 * CONVERGED  # in Chebyshev coefficients, not orthonormal ones
    assert abs(kkt_residual(case, fit) - fit.certificate.stationarity) < 1e-4
    response = fit.model.graph_kernel.response(case.eigenvalues)
    assert response.min() < 0
    assert response.mean() > 0


def test_verdict_and_message_of_lagrangian_agree():
    """A best filter that meets the tolerance has converged, however the search for a better one ended."""
    case = problem("band-pass", 2, noise=0.1)
    fit = algorithm_1(case.task, case.kernel)
    assert fit.converged
    assert fit.certificate.residual <= CONVERGED
    assert fit.message == "the dual problem converged"
