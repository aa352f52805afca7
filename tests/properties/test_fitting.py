"""What must hold of whole fits, on any graph and any signals."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

import oracle
from spectralgp.graphs import Graph
from spectralgp.learning import Task, hyperparameter_draws, learn
from spectralgp.model.kernels import Polynomial
from strategies import adjacencies
from tolerances import OPTIMUM

N_SIGNALS = 5
# roots of the weights, as in the properties of formulas: a moderate spread of eigenvalues
weights_of_graphs = adjacencies(min_nodes=2, max_nodes=6).map(np.sqrt).map(np.sqrt)
seeds = st.integers(0, 2**16)
priors = st.sampled_from(["weak", None])
few = settings(max_examples=20)


def task_on(weights, seed, prior, factor=1.0, order=None):
    """Signals that depend on inputs and graph, so that the optimum is a clear one."""
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(-2, 2, (N_SIGNALS, 1))
    dense = oracle.from_filter(oracle.matrix_function(oracle.laplacian(weights, scaled=True), lambda t: 1.2 - t))
    signals = oracle.draw(oracle.rbf(inputs, inputs, 1.0), dense, 0.05, rng)
    order = np.arange(len(weights)) if order is None else order
    graph = Graph(weights[np.ix_(order, order)])
    return Task.of(graph, RBF(1.0), inputs, factor * signals[:, order], prior=prior)


@few
@given(weights_of_graphs, seeds, priors, st.integers(0, 5), st.sampled_from(["eigenvalues", "interval"]))
def test_a_learnt_filter_is_never_negative(weights, seed, prior, degree, constraint):
    task = task_on(weights, seed, prior)
    fit = learn(task, Polynomial(degree, constraint))
    response = fit.model.graph_kernel.response
    peak = float(np.max(response(np.linspace(0, 1, 201))))
    assert np.min(response(fit.model.spectrum.eigenvalues)) >= 0
    if constraint == "interval":
        assert np.min(response(np.linspace(0, 1, 2001))) >= -1e-12 * max(peak, 1.0)
    for model in hyperparameter_draws(task, fit, 3, np.random.default_rng(0)).models:
        assert np.min(model.graph_kernel.response(model.spectrum.eigenvalues)) >= 0


@few
@given(weights_of_graphs, seeds, priors, st.integers(1, 4))
def test_more_coefficients_never_lower_the_objective(weights, seed, prior, degree):
    fit = learn(task_on(weights, seed, prior), Polynomial(degree))
    values = [stage.log_posterior for stage in fit.stages]
    assert np.min(np.diff(values)) > -OPTIMUM * fit.model.spectrum.graph.n_nodes * N_SIGNALS
