"""The likelihood and its gradient against dense algebra, for every graph kernel on every kind of graph."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GRAPHS, KERNELS, KERNELS_AND_GRAPHS, WEIGHTS, bound, drawn, node_covariance
from spectralgp.model.fields import Evidence, InputCovariance, graph_gp, log_marginal_likelihood
from spectralgp.model.kernels import Polynomial
from spectralgp.model.signals import read_signals
from spectralgp.model.spectra import modes_of
from tolerances import FORMULA, GRADIENT, SMALL_NOISE

N_SIGNALS = 5
INPUTS = np.random.default_rng(7).uniform(-2, 2, (N_SIGNALS, 2))
ROOT = np.random.default_rng(8).standard_normal((N_SIGNALS, N_SIGNALS))
# eigenvalues of at least a tenth, so that single entries can move by finite steps
COVARIANCE = ROOT @ ROOT.T / N_SIGNALS + 0.1 * np.eye(N_SIGNALS)

every_graph = pytest.mark.parametrize("graph", GRAPHS)
every_kernel_and_graph = pytest.mark.parametrize(("name", "graph"), KERNELS_AND_GRAPHS)
every_noise = pytest.mark.parametrize("relative_noise", [SMALL_NOISE, 0.3])


@every_noise
@every_kernel_and_graph
def test_log_likelihood_is_the_dense_one_in_both_orders(name, graph, relative_noise):
    """Equation (5) against the Kronecker covariance (3), entries stacked by signal and by node."""
    input_covariance = oracle.rbf(INPUTS, INPUTS, 0.9)
    dense, noise, signals = drawn(name, graph, relative_noise, input_covariance)
    prior = graph_gp(GRAPHS[graph], KERNELS[name].kernel, RBF(0.9), noise)
    actual = log_marginal_likelihood(prior, INPUTS, signals)
    for order in ("signals", "nodes"):
        expected = oracle.log_likelihood(signals, input_covariance, dense, noise, order)
        # a likelihood may cross zero: a nat for each entry is its scale
        assert oracle.relative_error(actual, expected, max(abs(expected), signals.size)) < FORMULA


def test_the_oracle_agrees_with_scipy():
    dense, noise, signals = drawn("Diffusion", "random", 0.3, COVARIANCE)
    matrix = oracle.covariance(COVARIANCE, dense, noise)
    expected = multivariate_normal(np.zeros(len(matrix)), matrix).logpdf(signals.ravel())  # by an eigendecomposition
    assert oracle.relative_error(oracle.log_likelihood(signals, COVARIANCE, dense, noise), expected) < FORMULA


def test_log_likelihood_of_independent_signals():
    """Equation (5) with K = I: the signals' densities add up."""
    dense, noise, signals = drawn("Matern(3/2)", "disconnected", 0.1, np.eye(N_SIGNALS))
    prior = graph_gp(GRAPHS["disconnected"], KERNELS["Matern(3/2)"].kernel, None, noise)
    expected = sum(oracle.log_density(row, 0.0, dense + noise * np.eye(len(dense))) for row in signals)
    assert oracle.relative_error(log_marginal_likelihood(prior, INPUTS, signals), expected) < FORMULA


REPEATED = np.repeat(INPUTS[:2], [3, 2], axis=0)


@pytest.mark.parametrize(
    ("name", "graph", "kernel", "inputs", "covariance"),
    [
        ("Cosine", "star", "precomputed", COVARIANCE, COVARIANCE),
        ("Polynomial(3)", "ring", RBF(), REPEATED, oracle.rbf(REPEATED, REPEATED)),
    ],
    ids=["precomputed", "repeated and zero eigenvalues"],
)
def test_log_likelihood_of_any_input_covariance(name, graph, kernel, inputs, covariance):
    """Duplicate inputs make K singular; the likelihood (5) and the gradient (7) do not mind."""
    dense, noise, signals = drawn(name, graph, 0.1, covariance)
    prior = graph_gp(GRAPHS[graph], KERNELS[name].kernel, kernel, noise)
    expected = oracle.log_likelihood(signals, covariance, dense, noise)
    assert oracle.relative_error(log_marginal_likelihood(prior, inputs, signals), expected) < FORMULA


def evidence_of(name: str, graph: str, relative_noise: float, input_covariance=COVARIANCE):
    dense, noise, signals = drawn(name, graph, relative_noise, input_covariance)
    kernel, spectrum = bound(KERNELS[name].kernel, GRAPHS[graph])
    basis, modes = kernel.basis(spectrum), modes_of(input_covariance)
    data = basis.read(read_signals(signals)).rotate(modes.vectors)
    power = kernel.power(basis.eigenvalues)
    evidence = Evidence(InputCovariance(modes), power, np.full(power.size, noise), data)
    return evidence, basis.eigenvectors, dense, noise, signals


@every_noise
@every_graph
@pytest.mark.parametrize("name", ["Polynomial(3)", "LocalAverage"])
def test_gradient_in_the_power(name, graph, relative_noise):
    """The first half of equation (6), relative to each frequency's own scale."""
    evidence, vectors, _, noise, signals = evidence_of(name, graph, relative_noise)
    power = evidence.power
    # D_ij varies on the scale gamma_j + sigma^2 / kappa_i
    scales = power + noise / evidence.rows.modes.values[-1]

    def moved(offsets):
        covariance = (vectors * (power + scales * offsets)) @ vectors.T
        return oracle.log_likelihood(signals, COVARIANCE, covariance, noise)

    expected = oracle.jacobian(moved, np.zeros(power.size), step=3e-3)
    assert oracle.relative_error(evidence.power_gradient * scales, expected) < GRADIENT


@every_noise
@every_graph
@pytest.mark.parametrize("name", ["Polynomial(3)", "LocalAverage"])
def test_gradient_in_the_noise(name, graph, relative_noise):
    """The second half of equation (6), in log sigma^2."""
    evidence, _, dense, noise, signals = evidence_of(name, graph, relative_noise)
    expected = oracle.derivative(lambda t: oracle.log_likelihood(signals, COVARIANCE, dense, noise * np.exp(t)), 3e-3)
    # the derivative of each entry is of order one half, and they may cancel
    scale = max(abs(float(expected)), 0.5)
    assert oracle.relative_error(noise * evidence.slopes.sum(), expected, scale) < GRADIENT


def by_entries(evidence):
    """The gradient in the entries of K, from that in its eigenbasis."""
    vectors = evidence.rows.modes.vectors
    return vectors @ evidence.input_covariance_gradient @ vectors.T


@every_noise
@every_graph
@pytest.mark.parametrize("name", ["Polynomial(3)", "LocalAverage"])
def test_gradient_in_the_input_covariance(name, graph, relative_noise):
    """Equation (7), entry by entry."""
    evidence, _, dense, noise, signals = evidence_of(name, graph, relative_noise)
    expected = np.zeros((N_SIGNALS, N_SIGNALS))
    for a in range(N_SIGNALS):
        for b in range(a + 1):
            direction = np.zeros((N_SIGNALS, N_SIGNALS))
            direction[a, b] = direction[b, a] = 1.0 if a == b else 0.5

            def moved(t, direction=direction):
                return oracle.log_likelihood(signals, COVARIANCE + t * direction, dense, noise)

            expected[a, b] = expected[b, a] = oracle.derivative(moved, 2e-4)
    assert oracle.relative_error(by_entries(evidence), expected) < GRADIENT


def test_gradient_in_a_singular_input_covariance_with_repeated_eigenvalues():
    """Equation (7) at K = 1 1^T (one eigenvalue, the rest zero), where eigenvectors have no derivative."""
    ones = np.ones((N_SIGNALS, N_SIGNALS))
    evidence, _, dense, noise, signals = evidence_of("Diffusion", "complete", 0.3, ones)
    direction = ROOT @ ROOT.T
    expected = oracle.derivative(lambda t: oracle.log_likelihood(signals, ones + t * direction, dense, noise), 1e-4)
    actual = np.sum(by_entries(evidence) * direction)
    assert oracle.relative_error(actual, expected) < GRADIENT


@every_noise
@every_graph
@pytest.mark.parametrize("name", ["Polynomial(3)", "LocalAverage"])
def test_gradient_in_the_node_covariance(name, graph, relative_noise):
    """Equation (7) with the two sides exchanged, in a few random directions."""
    evidence, vectors, dense, noise, signals = evidence_of(name, graph, relative_noise)
    gradient = vectors @ evidence.node_covariance_gradient @ vectors.T
    rng = np.random.default_rng(2)
    actual, expected = [], []
    root = oracle.matrix_function(dense + noise * np.eye(len(dense)), np.sqrt)
    for _ in range(4):
        # B B^T + noise may change by a little in its own metric, or it would not stay positive definite
        direction = rng.standard_normal(dense.shape)
        direction = root @ (direction + direction.T) @ root
        actual.append(np.sum(gradient * direction))
        expected.append(
            oracle.derivative(
                lambda t, d=direction: oracle.log_likelihood(signals, COVARIANCE, dense + t * d, noise), 2e-4
            )
        )
    assert oracle.relative_error(actual, expected) < GRADIENT


@every_noise
@every_kernel_and_graph
def test_gradient_in_the_parameters_of_a_graph_kernel(name, graph, relative_noise):
    """Equation (6) through each kernel's Jacobian; the differences are of the dense likelihood."""
    case = KERNELS[name]
    evidence, _, _, noise, signals = evidence_of(name, graph, relative_noise)
    kernel, spectrum = bound(case.kernel, GRAPHS[graph])

    def likelihood(theta):
        return oracle.log_likelihood(signals, COVARIANCE, case.dense(kernel.with_theta(theta), WEIGHTS[graph]), noise)

    expected_value = likelihood(kernel.theta)
    scale = max(abs(expected_value), signals.size)
    assert oracle.relative_error(evidence.log_likelihood, expected_value, scale) < FORMULA
    expected = oracle.jacobian(likelihood, kernel.theta, step=2e-4)
    scale = max(float(np.max(np.abs(expected), initial=0.0)), 1.0)
    assert oracle.relative_error(kernel.pull_back(evidence, spectrum), expected, scale) < GRADIENT


INDEFINITE = np.diag([1.0, 1.0, -1.0, 1.0, 1.0])
ASYMMETRIC = COVARIANCE + 0.5 * np.eye(5, k=1)


@pytest.mark.parametrize(
    ("kernel", "inputs", "signals", "message"),
    [
        (
            "precomputed",
            COVARIANCE,
            np.ones((6, 5)),
            r"signals must have .* n_signals = 5 and n_nodes = 6; got \(6, 5\)",
        ),
        ("precomputed", COVARIANCE, np.full((5, 6), np.inf), "signals must be finite or NaN; got inf"),
        ("precomputed", COVARIANCE, np.full((5, 6), np.nan), "Y must hold at least one value; got nothing but NaN"),
        (
            "precomputed",
            INDEFINITE,
            np.ones((5, 6)),
            "the input covariance must be positive semi-definite; got smallest eigenvalue -1",
        ),
        ("precomputed", ASYMMETRIC, np.ones((5, 6)), "symmetric"),
        (RBF(), np.zeros((4, 1)), np.ones((5, 6)), r"signals must have|inputs must have"),
        (RBF(), np.arange(6.0)[:, None], np.ones(6), "signals must have"),  # which fit one another by accident
    ],
)
def test_signals_and_inputs_that_do_not_go_together_are_refused(kernel, inputs, signals, message):
    with pytest.raises(ValueError, match=message):
        log_marginal_likelihood(graph_gp(GRAPHS["ring"], Polynomial(1), kernel, 0.1), inputs, signals)


def test_node_covariance_of_the_prior_is_that_of_the_kernel():
    prior = graph_gp(GRAPHS["ring"], Polynomial(1), "precomputed", 0.1)
    assert oracle.relative_error(prior.node_covariance(), node_covariance(prior.graph_kernel, GRAPHS["ring"])) == 0
