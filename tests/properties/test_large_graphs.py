"""Laws of the quadrature spectrum, on any graph."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

import oracle
from spectralgp.graphs import Graph
from spectralgp.graphs.operators import chebyshev_coefficients
from spectralgp.learning import Task
from spectralgp.learning.objective import Objective
from spectralgp.model.fields import condition, graph_gp
from spectralgp.model.kernels import Polynomial
from spectralgp.model.signals import read_signals
from spectralgp.model.spectra import Chebyshev, Exact, decompose
from strategies import graphs, graphs_and_permutations
from tolerances import EXACT, FORMULA, QUADRATURE

laplacians = st.sampled_from(["combinatorial", "normalized", "balanced"])
seeds = st.integers(0, 2**32 - 1)
thetas = st.lists(st.floats(-2, 2), min_size=3, max_size=3)


def signals_on(graph, seed, n_signals=3):
    return np.random.default_rng(seed).standard_normal((n_signals, graph.n_nodes))


def settings(n_moments=33):
    return Chebyshev(n_moments=n_moments, n_probes="exact")


@given(graphs(), laplacians)
def test_the_interval_holds_every_eigenvalue(graph, laplacian):
    """The largest eigenvalue is found, and the recurrence's interval reaches beyond it."""
    expected = np.linalg.eigvalsh(oracle.laplacian(graph.weights.toarray(), laplacian))[-1]
    spectrum = settings().of(graph, laplacian)
    assert oracle.relative_error(spectrum.largest_eigenvalue, expected if graph.n_edges else 1.0) < QUADRATURE
    assert spectrum.operator.bound >= expected * (1 - EXACT)


@given(graphs_and_permutations(), laplacians, seeds)
def test_moments_do_not_depend_on_the_order_of_the_nodes(graph_and_order, laplacian, seed):
    graph, order = graph_and_order
    values = signals_on(graph, seed)
    dense = graph.weights.toarray()
    one, other = (settings().of(g, laplacian) for g in (graph, Graph(dense[np.ix_(order, order)])))
    # moments are of A = 2 L / bound - I, whose bound Lanczos finds to its own accuracy
    other.operator.bound = one.operator.bound
    found = read_signals(values[:, order]).moments(other.operator, 33)
    assert oracle.relative_error(found, read_signals(values).moments(one.operator, 33)) < FORMULA
    assert oracle.relative_error(other.density.moments(33), one.density.moments(33)) < FORMULA


@given(graphs(), laplacians, seeds)
def test_energies_and_multiplicities_add_up(graph, laplacian, seed):
    values = signals_on(graph, seed)
    spectrum = settings().of(graph, laplacian, scaled=True)
    assert oracle.relative_error(spectrum.multiplicities.sum(), graph.n_nodes) < FORMULA
    assert oracle.relative_error(spectrum.read(read_signals(values)).matrices.sum(axis=0), values @ values.T) < FORMULA


# three moments of a steep filter: its series goes on far beyond a few times that many terms
@example(Graph(np.zeros((3, 3))), "combinatorial", [0.0, 2.0, 0.0], 0.01171875, 3, 0)
@given(graphs(), laplacians, thetas, st.floats(0.01, 2.0), st.sampled_from([3, 5, 9, 33]), seeds)
def test_the_likelihood_is_within_its_stated_truncation_error(graph, laplacian, theta, noise, n_moments, seed):
    signals = signals_on(graph, seed)
    kernel = Polynomial(2, laplacian=laplacian).with_theta(theta)
    tasks = [Task.of(graph, None, np.empty((3, 0)), signals, spectrum=kind) for kind in (Exact(), settings(n_moments))]
    true, ours = (Objective(task, kernel, task.spectrum_of(kernel)) for task in tasks)
    x = true.join(kernel.theta, np.empty(0), noise)
    expected, actual = (one.evidence(x).log_likelihood for one in (true, ours))
    assert abs(actual - expected) <= ours.evidence(x).errors.truncation + QUADRATURE * max(abs(expected), signals.size)


@given(graphs(), thetas, seeds)
def test_filtering_by_a_series_is_filtering_by_the_eigenvalues(graph, theta, seed):
    signals = signals_on(graph, seed)
    kernel, spectrum = Polynomial(2).with_theta(theta), decompose(graph, scaled=True)
    quadrature = settings().of(graph, scaled=True)
    operator = quadrature.operator
    coefficients = chebyshev_coefficients(kernel.response(quadrature.points(3)))
    filters = coefficients[:, None, None] * np.eye(3)
    actual = operator.unload(operator.filtered(operator.load(signals), filters))
    scale = float(np.max(np.abs(signals))) * max(1.0, float(np.sum(np.abs(theta))))
    assert oracle.relative_error(actual, spectrum.filter(signals, kernel.response), scale) < QUADRATURE


@given(graphs(), thetas, st.floats(0.05, 2.0), seeds)
def test_posterior_means_are_those_of_the_exact_spectrum(graph, theta, noise, seed):
    signals = signals_on(graph, seed)
    kernel = Polynomial(2).with_theta(theta)
    covariance = oracle.rbf(np.arange(4.0)[:, None], np.arange(4.0)[:, None], 1.5)
    new = (covariance[3:, :3], covariance[3:, 3:])
    priors = [graph_gp(graph, kernel, "precomputed", noise, spectrum=kind) for kind in (Exact(), settings())]
    expected, actual = (condition(prior, covariance[:3, :3], signals).at(new) for prior in priors)
    scale = float(np.max(np.abs(signals)))
    assert oracle.relative_error(actual.mean, expected.mean, scale) < QUADRATURE
    nodes = np.arange(graph.n_nodes)
    power = max(1.0, float(np.sum(np.abs(theta))) ** 2)
    assert oracle.relative_error(actual.variance(nodes=nodes), expected.variance(), power) < QUADRATURE
