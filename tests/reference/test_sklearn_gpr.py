"""Without a graph the model is scikit-learn's Gaussian process, several outputs with one kernel."""

import numpy as np
import pytest
from settings import PAPER
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic, WhiteKernel

import oracle
from spectralgp import GraphGPRegressor, log_marginal_likelihood
from spectralgp.graphs import Graph
from spectralgp.model.fields import graph_gp
from spectralgp.model.kernels import Identity
from tolerances import FORMULA, OPTIMUM

N_SIGNALS, N_NODES = 14, 4
RNG = np.random.default_rng(2)
X = RNG.uniform(-3, 3, (N_SIGNALS, 2))
NEW = RNG.uniform(-3, 3, (5, 2))
Y = oracle.draw(oracle.rbf(X, X, 1.3), 2.0 * np.eye(N_NODES), 0.1, RNG)
INPUT_KERNELS = [RBF(1.3), Matern(1.1, nu=1.5), RationalQuadratic(1.2, 0.7), RBF([0.8, 2.0])]


def fixed(kernel):
    """The kernel with nothing free."""
    for parameter in kernel.hyperparameters:
        kernel = kernel.clone_with_theta(kernel.theta) if parameter.fixed else kernel
    return kernel.set_params(**{f"{parameter.name}_bounds": "fixed" for parameter in kernel.hyperparameters})


@pytest.mark.parametrize("graph", [None, Graph(oracle.random_weights(N_NODES, seed=1))])
@pytest.mark.parametrize("kernel", INPUT_KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_fixed_hyperparameters_give_the_same_posterior(kernel, graph):
    amplitude, noise = 1.4, 0.15
    ours = GraphGPRegressor(
        graph,
        Identity(amplitude=amplitude, amplitude_bounds="fixed"),
        fixed(kernel),
        noise_variance=noise,
        **PAPER | {"center": None, "scale": None},
    ).fit(X, Y)
    theirs = GaussianProcessRegressor(amplitude**2 * kernel, alpha=noise, optimizer=None).fit(X, Y)
    mean, std = theirs.predict(NEW, return_std=True)
    actual_mean, actual_std = ours.predict(NEW, return_std=True)
    assert oracle.relative_error(actual_mean, mean) < FORMULA
    assert oracle.relative_error(actual_std, std) < FORMULA
    _, covariance = theirs.predict(NEW, return_cov=True)
    joint = ours.posterior_.at(NEW).joint_covariance()
    for node in range(N_NODES):
        assert oracle.relative_error(joint[:, node, :, node], covariance[..., node]) < FORMULA
    assert np.max(np.abs(joint[:, 0, :, 1])) < 1e-12  # nodes are independent
    # scikit-learn sums over outputs
    assert oracle.relative_error(ours.log_marginal_likelihood_, theirs.log_marginal_likelihood_value_) < FORMULA


def test_learnt_optimum_is_scikit_learns():
    """Plain maximum likelihood: amplitude, length scale and noise, against restarts of L-BFGS."""
    settings = PAPER | {"center": None, "prior": None, "noise_variance": (1e-6, 10.0)}
    ours = GraphGPRegressor(input_kernel=RBF(1.0), **settings).fit(X, Y)
    kernel = ConstantKernel(1.0, (1e-6, 1e6)) * RBF(1.0, (1e-3, 1e3)) + WhiteKernel(0.1, (1e-6, 10.0))
    theirs = GaussianProcessRegressor(kernel, alpha=0.0, n_restarts_optimizer=5, random_state=0).fit(X, Y)
    expected = theirs.log_marginal_likelihood_value_
    assert ours.log_marginal_likelihood_ >= expected - OPTIMUM * Y.size
    assert abs(ours.log_marginal_likelihood_ - expected) < OPTIMUM * Y.size
    learnt = theirs.kernel_
    assert ours.graph_kernel_[0].amplitude ** 2 == pytest.approx(learnt.k1.k1.constant_value, rel=0.01)
    assert ours.input_kernel_[0].length_scale == pytest.approx(learnt.k1.k2.length_scale, rel=0.01)
    assert ours.noise_variance_ == pytest.approx(learnt.k2.noise_level, rel=0.01)
    assert oracle.relative_error(ours.predict(NEW), theirs.predict(NEW)) < 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_likelihood_surface_is_scikit_learns(seed):
    """At random hyperparameters, not only at the optimum."""
    amplitude, length, noise = np.exp(np.random.default_rng(seed).uniform(-1, 1, 3))
    prior = graph_gp(Graph(np.zeros((N_NODES, N_NODES))), Identity(amplitude=amplitude), RBF(length), noise)
    kernel = ConstantKernel(amplitude**2) * RBF(length) + WhiteKernel(noise)
    expected = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, Y).log_marginal_likelihood_value_
    assert oracle.relative_error(log_marginal_likelihood(prior, X, Y), expected) < FORMULA
