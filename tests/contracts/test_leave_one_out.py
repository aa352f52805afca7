"""Closed-form leave-one-out against deletion and dense conditioning."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GRAPHS, KERNELS, drawn
from spectralgp.model.fields import condition, graph_gp, leave_one_out
from tolerances import FORMULA, SMALL_NOISE

N_SIGNALS = 4
INPUTS = np.random.default_rng(0).uniform(-2, 2, (N_SIGNALS, 1))


def fitted(name, graph, relative_noise, independent=False):
    """A posterior, its signals and their dense covariance."""
    input_covariance = np.eye(N_SIGNALS) if independent else oracle.rbf(INPUTS, INPUTS, 0.8)
    dense, noise, signals = drawn(name, graph, relative_noise, input_covariance)
    prior = graph_gp(GRAPHS[graph], KERNELS[name].kernel, None if independent else RBF(0.8), noise)
    return condition(prior, INPUTS, signals), signals, oracle.covariance(input_covariance, dense, noise)


def deletions(by, shape):
    """Index of each result in `log_density`, and the mask of what is left out for it."""
    n_signals, n_nodes = shape
    indices = {
        "signal": [(n,) for n in range(n_signals)],
        "node": [(m,) for m in range(n_nodes)],
        "entry": [(n, m) for n in range(n_signals) for m in range(n_nodes)],
    }[by]
    for index in indices:
        mask = np.zeros(shape, dtype=bool)
        mask[(slice(None), *index) if by == "node" else index] = True
        yield index, mask


def assert_equals_deletion(by, posterior, signals, matrix):
    mean, variance = np.zeros(signals.shape), np.zeros(signals.shape)
    shapes = {"signal": signals.shape[:1], "node": signals.shape[1:], "entry": signals.shape}
    log_density = np.zeros(shapes[by])
    for index, mask in deletions(by, signals.shape):
        left_out_mean, covariance, log_density[index] = oracle.leave_out(signals, matrix, mask)
        mean[mask], variance[mask] = left_out_mean, np.diag(covariance)
    actual = leave_one_out(posterior, by)
    assert actual.by == by
    assert oracle.relative_error(actual.mean, mean) < FORMULA
    assert oracle.relative_error(actual.std**2, variance) < FORMULA
    assert oracle.relative_error(actual.log_density, log_density, max(np.max(np.abs(log_density)), 1.0)) < FORMULA


@pytest.mark.parametrize("relative_noise", [SMALL_NOISE, 0.2])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", ["Polynomial(3)", "LocalAverage", "PseudoInverse", "Matern(3/2)"])
@pytest.mark.parametrize("by", ["signal", "node", "entry"])
def test_leaving_out(name, graph, relative_noise, by):
    """Equation (10), the same with U and V exchanged, and the diagonal of the inverse covariance below it."""
    posterior, signals, matrix = fitted(name, graph, relative_noise)
    if (by, graph) != ("node", "single"):
        assert_equals_deletion(by, posterior, signals, matrix)
        return
    actual = leave_one_out(posterior, by)  # the one node left out leaves nothing: the prior itself
    assert oracle.relative_error(actual.mean, np.zeros_like(signals), np.max(np.abs(signals))) < FORMULA
    assert oracle.relative_error(actual.std.ravel() ** 2, np.diag(matrix)) < FORMULA
    expected = oracle.log_density(signals.ravel(), 0.0, matrix)
    assert oracle.relative_error(actual.log_density, [expected]) < FORMULA


@pytest.mark.parametrize("by", ["signal", "node", "entry"])
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_leaves_one_out(name, by):
    """Equation (10) for every kernel."""
    assert_equals_deletion(by, *fitted(name, "disconnected", 0.1))


@pytest.mark.parametrize("by", ["signal", "node", "entry"])
def test_independent_signals_leave_one_out_too(by):
    """K = I: leaving out a signal leaves its prior, leaving out a node or an entry does not."""
    assert_equals_deletion(by, *fitted("Diffusion", "random", 0.1, independent=True))


def test_the_default_leaves_out_signals():
    posterior, *_ = fitted("Diffusion", "random", 0.1)
    np.testing.assert_array_equal(leave_one_out(posterior).mean, leave_one_out(posterior, "signal").mean)


def test_only_signals_nodes_and_entries_can_be_left_out():
    posterior, *_ = fitted("Diffusion", "random", 0.1)
    with pytest.raises(ValueError, match=r"by must be one of 'signal', 'node', 'entry'; got 'edge'\. Pass one of"):
        leave_one_out(posterior, "edge")
