"""Shrinkage towards the graph: densities against scipy's, the evidence by its chain rule, predictions by matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import multigammaln
from scipy.stats import invwishart, multivariate_t
from sklearn.gaussian_process.kernels import RBF

import oracle
from oracle import relative_error
from spectralgp.graph import Graph
from spectralgp.graph_kernels import Polynomial, WithResidual
from spectralgp.leaving_out import leave_one_out
from spectralgp.model import graph_gp
from spectralgp.posterior import condition
from spectralgp.shrinkage import Shrinkage, condition_shrunk
from spectralgp.shrinkage.wishart import _evidence
from spectralgp.spectrum import Chebyshev
from tolerances import EXACT, FORMULA, GRADIENT, STANDARD_ERRORS

RNG = np.random.default_rng(3)
SHAPES = {"few signals": (5, 9), "many signals": (20, 6), "square": (7, 7)}


def whitened(shape):
    n_signals, n_nodes = SHAPES[shape]
    mixing = np.eye(n_nodes) + 0.5 * np.tril(np.ones((n_nodes, n_nodes)), -1)
    return np.random.default_rng(n_signals).standard_normal((n_signals, n_nodes)) @ mixing.T


def made(shape, worth=4.0):
    rows = whitened(shape)
    return Shrinkage(worth, rows, np.ones(rows.shape[1]), rows.shape[0])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_new_signal_is_a_multivariate_t(shape):
    """With the degrees of freedom and the scale of the inverse-Wishart posterior."""
    shrinkage, rows = made(shape), whitened(shape)
    n_signals, n_nodes = rows.shape
    nu = shrinkage.worth + n_nodes + 1
    psi = shrinkage.worth * np.eye(n_nodes) + rows.T @ rows
    freedom = nu + n_signals - n_nodes + 1
    errors = RNG.standard_normal((3, n_nodes))
    expected = multivariate_t(np.zeros(n_nodes), psi / freedom, df=freedom).logpdf(errors)
    assert oracle.relative_error(shrinkage.log_densities(errors), expected) < FORMULA
    assert oracle.relative_error(shrinkage.log_density(errors[:1]), expected[0]) < FORMULA
    mean = invwishart(nu + n_signals, psi).mean()
    assert oracle.relative_error(shrinkage.scale / (shrinkage.freedom - 2), mean) < FORMULA
    assert oracle.relative_error(shrinkage.diagonal(np.eye(n_nodes)), np.diag(mean)) < FORMULA


@pytest.mark.parametrize("shape", SHAPES)
def test_signals_together_follow_the_chain_rule(shape):
    shrinkage, rows = made(shape), whitened(shape)
    errors = RNG.standard_normal((3, rows.shape[1]))
    total, seen = 0.0, rows
    for error in errors:
        total += Shrinkage(shrinkage.worth, seen, np.ones(rows.shape[1]), len(seen)).log_densities(error[None])[0]
        seen = np.vstack([seen, error])
    assert oracle.relative_error(shrinkage.log_density(errors), total) < FORMULA


@pytest.mark.parametrize("shape", SHAPES)
def test_the_evidence_is_a_product_of_predictions(shape):
    """Starting from no signals at all, at a worth and a profile that are held."""
    rows = whitened(shape)
    n_signals, n_nodes = rows.shape
    design = np.polynomial.chebyshev.chebvander(np.linspace(-1, 1, n_nodes), 2)
    x = np.array([1.1, 0.3, -0.4, 0.2])
    worth, profile = np.exp(x[0]), np.exp(0.5 * design @ x[1:])
    expected = 0.0
    for count in range(n_signals):
        seen = np.vstack([np.zeros((1, n_nodes)), rows[:count] / profile])
        part = Shrinkage(worth, seen, profile, count)
        expected += part.log_densities(rows[count : count + 1] / profile)[0] - np.sum(np.log(profile))
    root = rows if n_signals <= n_nodes else np.linalg.qr(rows, mode="r")
    value, gradient = _evidence(x, root, design, n_signals)
    constant = -0.5 * n_signals * n_nodes * np.log(np.pi)
    assert oracle.relative_error(value + constant, expected) < FORMULA
    numerical = approx_fprime(x, lambda point: _evidence(point, root, design, n_signals)[0], 1e-6)
    assert oracle.relative_error(gradient, numerical) < GRADIENT


def test_one_node_is_known_by_hand():
    """A Student t with the evidence of an inverse gamma."""
    value, _ = _evidence(np.array([0.0, 0.0, 0.0, 0.0]), np.array([[2.0]]), np.array([[1.0, -1.0, 1.0]]), 1)
    by_hand = multigammaln(2.0, 1) - multigammaln(1.5, 1) - 2.0 * np.log(1 + 4)
    assert abs(value - by_hand) < EXACT


def test_draws_have_the_covariance_of_the_t():
    shrinkage = made("many signals")
    draws = np.array([shrinkage.draw(2, RNG) for _ in range(6000)])
    expected = shrinkage.scale / (shrinkage.freedom - 2)
    spread = np.sqrt(np.diag(expected))
    # the fourth moment of a t is 3 (f - 2) / (f - 4) times the square of its second
    tails = np.sqrt(2 * (shrinkage.freedom - 1) / (shrinkage.freedom - 4) / 6000)
    for column in range(2):
        found = np.cov(draws[:, column].T) / np.multiply.outer(spread, spread)
        assert np.max(np.abs(found - expected / np.multiply.outer(spread, spread))) < STANDARD_ERRORS * tails


def test_the_share_of_the_signals_grows_where_the_graph_is_wrong():
    positions, rng = np.linspace(0, 1, 8), np.random.default_rng(0)
    right = rng.standard_normal((40, 8))
    wrong = right @ (np.eye(8) + 1.5 * np.eye(8)[::-1])
    assert Shrinkage.learnt(right, positions).share < 0.2
    assert Shrinkage.learnt(wrong, positions).share > 0.6


def test_a_profile_corrects_wrong_powers():
    positions, rng = np.linspace(0, 1, 30), np.random.default_rng(0)
    true = np.exp(1.0 - 2 * positions)
    learnt = Shrinkage.learnt(rng.standard_normal((60, 30)) * true, positions)
    assert np.max(np.abs(np.log(learnt.profile / true))) < 0.15


GRAPH = Graph(oracle.random_weights(6, seed=1))
INPUTS = RNG.uniform(-2, 2, (12, 1))
PRIOR = graph_gp(GRAPH, Polynomial.from_coefficients([0.8, -0.5]), RBF(1.0), 0.2)
SIGNALS = PRIOR.sample(INPUTS, 1, np.random.default_rng(0))[0] + 0.4 * RNG.standard_normal((12, 6))


def test_means_are_the_graph_s_and_covariances_are_between_it_and_the_signals():
    plain, shrunk = (one(PRIOR, INPUTS, SIGNALS) for one in (condition, condition_shrunk))
    new = np.array([[0.3], [1.0]])
    left, right = plain.at(new), shrunk.at(new)
    np.testing.assert_array_equal(left.mean, right.mean)
    vectors, shrinkage = PRIOR.basis.require_eigenvectors(""), shrunk.shrinkage
    variances = np.array([np.diag(vectors.T @ one @ vectors) for one in left.node_covariance(include_noise=True)])
    coefficients = shrunk.input_modes.vectors.T @ SIGNALS @ vectors
    rows = coefficients / np.sqrt(PRIOR.covariance(shrunk.input_modes).variances) / shrinkage.profile
    psi = shrinkage.worth * np.eye(6) + rows.T @ rows
    for index in range(2):
        outer = vectors * np.sqrt(variances[index]) * shrinkage.profile
        expected = outer @ psi @ outer.T / (shrinkage.freedom - 2)
        assert oracle.relative_error(right.node_covariance(include_noise=True)[index], expected) < FORMULA
        assert oracle.relative_error(right.variance(include_noise=True)[index], np.diag(expected)) < FORMULA
        t = multivariate_t(right.mean[index], expected * (shrinkage.freedom - 2) / shrinkage.freedom, shrinkage.freedom)
        observed = SIGNALS[:2] + 0.1
        density = right.log_density(observed, joint=False)[index]
        assert oracle.relative_error(density, t.logpdf(observed[index])) < FORMULA
    assert np.all(right.variance() < right.variance(include_noise=True))
    joint = right.joint_covariance(include_noise=True)
    # inputs are whitened one after the other, so that the first is as if it were alone
    assert oracle.relative_error(joint[0, :, 0], right.node_covariance(include_noise=True)[0]) < FORMULA
    draws = right.sample(6000, np.random.default_rng(1), include_noise=True)[:, 1]
    spread = np.sqrt(np.diag(joint[1, :, 1]))
    tails = np.sqrt(2 * (shrinkage.freedom - 1) / (shrinkage.freedom - 4) / 6000)
    found = np.cov(draws.T) / np.multiply.outer(spread, spread)
    assert np.max(np.abs(found - joint[1, :, 1] / np.multiply.outer(spread, spread))) < STANDARD_ERRORS * tails


def test_a_quadrature_cannot_be_shrunk():
    prior = graph_gp(GRAPH, Polynomial(1), RBF(1.0), 0.2, spectrum=Chebyshev(n_moments=9))
    with pytest.raises(ValueError, match=r"prior must be on an exact spectrum to shrink a covariance.*Use condition"):
        condition_shrunk(prior, INPUTS, SIGNALS)


def test_values_alone_have_the_density_of_a_t():
    shrunk = condition_shrunk(PRIOR, INPUTS, SIGNALS)
    prediction, freedom = shrunk.at(np.array([[0.3]])), shrunk.shrinkage.freedom
    scale = prediction.variance(include_noise=True)[0, 2] * (freedom - 2) / freedom
    expected = multivariate_t(prediction.mean[0, 2], scale, df=freedom).logpdf(0.7)
    found = prediction.value_log_densities(np.full((1, 2), 0.7), np.array([2, 5]))[0, 0]
    assert oracle.relative_error(found, expected) < FORMULA


def test_leaving_out_where_inputs_explain_nothing_is_exact():
    """Then whitened errors are the rows of ``Q``, and taking one out is learning without it at the same worth."""
    prior = graph_gp(GRAPH, Polynomial.from_coefficients([0.8, -0.5]), None, 0.2)
    shrunk = condition_shrunk(prior, np.empty((12, 0)), SIGNALS)
    left, shrinkage = leave_one_out(shrunk), shrunk.shrinkage
    vectors = prior.basis.require_eigenvectors("")
    roots = np.sqrt(prior.power + 0.2) * shrinkage.profile
    rows = SIGNALS @ vectors / roots
    for index in (0, 7):
        others = np.delete(rows, index, axis=0)
        psi = shrinkage.worth * np.eye(6) + others.T @ others
        freedom = shrinkage.worth + 11 + 2
        outer = vectors * roots
        scale = outer @ psi @ outer.T / freedom
        expected = multivariate_t(np.zeros(6), scale, df=freedom).logpdf(SIGNALS[index])
        assert oracle.relative_error(left.log_density[index], expected) < FORMULA
        assert oracle.relative_error(left.std[index] ** 2, np.diag(scale) * freedom / (freedom - 2)) < FORMULA


# Signals with holes


def shrunk_with_holes(share: float):
    """A shrunk posterior of signals of which a share was not observed, and those signals."""
    rng = np.random.default_rng(4)
    graph = Graph(oracle.random_weights(6, seed=3))
    prior = graph_gp(graph, WithResidual.of(Polynomial(1), Polynomial.from_coefficients([0.5])), RBF(1.0), 0.2)
    inputs, mixing = rng.standard_normal((30, 1)), rng.standard_normal((6, 6))
    signals = rng.standard_normal((30, 6)) @ mixing / 3
    signals[rng.random(signals.shape) < share] = np.nan
    return condition_shrunk(prior, inputs, signals), inputs, signals


def dense_shrunk(posterior, inputs: np.ndarray) -> np.ndarray:
    """``K (x) G + I (x) V S R S V^T`` from its definition."""
    prior, shrinkage = posterior.prior, posterior.shrinkage
    vectors, eigenvalues = posterior.basis.eigenvectors, posterior.basis.eigenvalues
    scales = np.sqrt(prior.graph_kernel.residual_power(eigenvalues) + prior.noise_variance) * shrinkage.profile
    mean = (shrinkage.worth * np.eye(6) + shrinkage.root.T @ shrinkage.root) / (shrinkage.freedom - 2)
    own = vectors @ (scales[:, None] * mean * scales) @ vectors.T
    return np.kron(oracle.rbf(inputs, inputs), prior.node_covariance()) + np.kron(np.eye(len(inputs)), own)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_the_covariance_of_complete_signals_is_what_it_says(share):
    posterior, inputs, _ = shrunk_with_holes(share)
    complete, matrix = posterior.complete_covariance(posterior.input_modes), dense_shrunk(posterior, inputs)
    block = np.random.default_rng(0).standard_normal((30, 6))
    assert relative_error(complete.times(block).ravel(), matrix @ block.ravel()) < FORMULA
    assert relative_error(complete.solved(block).ravel(), np.linalg.solve(matrix, block.ravel())) < FORMULA
    assert relative_error(complete.log_determinant(), np.linalg.slogdet(matrix)[1]) < FORMULA
    draws = np.stack([complete.draw_signal(np.random.default_rng(seed)).ravel() for seed in range(4_000)])
    variances = np.diag(matrix) - complete.noise_variance
    assert np.all(np.abs(np.mean(draws**2, axis=0) / variances - 1) < 5 * np.sqrt(2 / 4_000))


def test_signals_known_in_part_are_conditioned_on_under_it():
    posterior, inputs, signals = shrunk_with_holes(0.2)
    new, observed = np.array([[0.4]]), np.array([[1.0, np.nan, 0.5, np.nan, -1.0, np.nan]])
    both, values = np.vstack([inputs, new]), np.vstack([signals, observed])
    seen = np.isfinite(values).ravel()
    mean, covariance = oracle.condition(
        dense_shrunk(posterior, both), np.flatnonzero(seen), values.ravel()[seen], np.flatnonzero(~seen)
    )
    found = posterior.at_observed(new, observed)
    assert relative_error(found.values[np.isnan(observed)], mean[-3:]) < FORMULA * 10
    assert relative_error(found.values_std[np.isnan(observed)], np.sqrt(np.diag(covariance)[-3:])) < FORMULA * 10


def test_densities_of_what_was_observed_are_marginal_ts():
    """A marginal of a multivariate t is one, of the same freedom."""
    posterior, _, _ = shrunk_with_holes(0.0)
    prediction, values = posterior.at(np.array([[0.1]])), np.array([[0.3, np.nan, -0.2, 0.8, np.nan, 0.1]])
    seen, freedom = np.isfinite(values[0]), posterior.shrinkage.freedom
    scale = prediction.node_covariance(include_noise=True)[0] * (freedom - 2) / freedom
    expected = multivariate_t(prediction.mean[0, seen], scale[np.ix_(seen, seen)], freedom).logpdf(values[0, seen])
    assert relative_error(prediction.log_density(values, joint=False), [expected]) < FORMULA
    whole = np.nan_to_num(values)
    expected = multivariate_t(prediction.mean[0], scale, freedom).logpdf(whole[0])
    assert relative_error(prediction.log_density(whole, joint=False), [expected]) < FORMULA


def test_shrinkage_learnt_from_few_holes_is_near_that_of_none():
    few, none = shrunk_with_holes(0.02)[0].shrinkage, shrunk_with_holes(0.0)[0].shrinkage
    assert abs(few.share - none.share) < 0.1
