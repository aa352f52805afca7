"""Mixtures: weights against a general optimiser, moments and densities against their definitions."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GRAPHS
from spectralgp import GraphGPRegressor
from spectralgp.model.fields import Mixture, condition, graph_gp, leave_one_out, node_covariances, standard_deviation
from spectralgp.model.fields.field import MixtureField
from spectralgp.model.kernels import Diffusion, Identity, Polynomial
from tolerances import FORMULA, STANDARD_ERRORS

RNG = np.random.default_rng(0)
INPUTS = RNG.uniform(-2, 2, (6, 2))
SIGNALS = RNG.standard_normal((6, 7))
NEW = RNG.uniform(-2, 2, (3, 2))
OBSERVED = RNG.standard_normal((3, 7))
WEIGHTS = np.array([0.2, 0.5, 0.0, 0.3])
KERNELS = [Identity(), Diffusion(3.0), Diffusion(1.0), Polynomial.from_coefficients([1.0, -0.9])]


@pytest.fixture(scope="module")
def mixture():
    lengths, noises = (0.7, 1.0, 1.5, 2.0), (0.1, 0.3, 0.5, 0.2)
    priors = [
        graph_gp(GRAPHS["random"], kernel, RBF(length), noise)
        for kernel, length, noise in zip(KERNELS, lengths, noises, strict=True)
    ]
    return Mixture(WEIGHTS, tuple(condition(prior, INPUTS, SIGNALS) for prior in priors))


# Prediction


@pytest.mark.parametrize("include_noise", [False, True])
def test_moments_are_those_of_a_mixture(mixture, include_noise):
    """E y, and E y y^T - E y E y^T, over inputs and nodes together; the rest are its blocks."""
    prediction = mixture.at(NEW)
    parts = [posterior.at(NEW) for posterior in mixture.posteriors]
    means = np.array([part.mean.ravel() for part in parts])
    seconds = [
        part.joint_covariance(include_noise).reshape(21, 21) + np.outer(m, m)
        for part, m in zip(parts, means, strict=True)
    ]
    mean = WEIGHTS @ means
    covariance = np.tensordot(WEIGHTS, seconds, axes=1) - np.outer(mean, mean)
    assert oracle.relative_error(prediction.mean, mean.reshape(3, 7)) < FORMULA
    assert oracle.relative_error(prediction.joint_covariance(include_noise).reshape(21, 21), covariance) < FORMULA
    variance = np.diag(covariance).reshape(3, 7)
    assert oracle.relative_error(prediction.variance(include_noise), variance) < FORMULA
    assert oracle.relative_error(standard_deviation(prediction, include_noise), np.sqrt(variance)) < FORMULA
    blocks = np.array([covariance[7 * i : 7 * i + 7, 7 * i : 7 * i + 7] for i in range(3)])
    assert oracle.relative_error(node_covariances(prediction, include_noise), blocks) < FORMULA
    nodes = np.array([5, 0])
    assert oracle.relative_error(prediction.variance(include_noise, nodes), variance[:, nodes]) < FORMULA
    assert prediction.variance_error.tolist() == [0.0, 0.0, 0.0]


# Fallback where inputs leave the range of training


FALLBACK, SHARES = np.array([0.0, 0.75, 0.0, 0.25]), np.array([0.35, 1.0, 0.0])


def components(mixture, include_noise):
    """Probabilities, means and covariances of all normal distributions that (C1) mixes, over inputs and nodes together.

    One uniform number decides for all inputs which fall back; those that do are independent of the others.
    """
    parts = [posterior.at(NEW) for posterior in mixture.posteriors]
    own = [(part.mean, part.joint_covariance(include_noise).reshape(21, 21)) for part in parts]
    for probability, falls in ((0.35, [False, False, True]), (0.65, [True, False, True])):
        is_other = np.repeat(falls, 7)
        for weight, (mean, covariance) in zip(WEIGHTS, own, strict=True):
            for other_weight, (other_mean, other_covariance) in zip(FALLBACK, own, strict=True):
                both = np.where(is_other, other_mean.ravel(), mean.ravel())
                matrix = np.where(np.equal.outer(is_other, is_other), covariance, 0.0)
                matrix[np.ix_(is_other, is_other)] = other_covariance[np.ix_(is_other, is_other)]
                yield probability * weight * other_weight, both, matrix


@pytest.fixture(scope="module")
def falling(mixture):
    return replace(mixture.at(NEW), fallback=(FALLBACK, SHARES))


@pytest.mark.parametrize("include_noise", [False, True])
def test_moments_with_a_fallback_are_those_of_all_components(mixture, falling, include_noise):
    shares, means, covariances = map(np.array, zip(*components(mixture, include_noise), strict=True))
    mean = shares @ means
    apart = means - mean
    covariance = np.tensordot(shares, covariances, axes=1) + np.einsum("k,ka,kb->ab", shares, apart, apart)
    assert oracle.relative_error(falling.mean, mean.reshape(3, 7)) < FORMULA
    assert oracle.relative_error(falling.joint_covariance(include_noise).reshape(21, 21), covariance) < FORMULA
    some = falling.joint_covariance(include_noise, [2, 0])
    expected = covariance.reshape(3, 7, 3, 7)[[2, 0]][:, :, [2, 0]]
    assert oracle.relative_error(some, expected) < FORMULA
    variance = np.diag(covariance).reshape(3, 7)
    assert oracle.relative_error(falling.variance(include_noise), variance) < FORMULA
    assert oracle.relative_error(falling.variance(include_noise, np.array([5, 0])), variance[:, [5, 0]]) < FORMULA
    if include_noise:
        assert oracle.relative_error(falling.values_variance(), variance) < FORMULA
    draws = falling.sample(4000, np.random.default_rng(0), include_noise).reshape(4000, 21)
    errors = np.sqrt(np.diag(covariance) / 4000)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < STANDARD_ERRORS * errors)
    products = (draws[:, :, None] - mean) * (draws[:, None] - mean)
    assert np.all(np.abs(products.mean(axis=0) - covariance) < STANDARD_ERRORS * products.std(axis=0) / np.sqrt(4000))


def test_densities_with_a_fallback_are_those_of_all_components(mixture, falling):
    shares, means, covariances = map(np.array, zip(*components(mixture, True), strict=True))
    logs = [oracle.log_density(OBSERVED.ravel(), *one) for one in zip(means, covariances, strict=True)]
    assert oracle.relative_error(falling.log_density(OBSERVED), logsumexp(logs, b=shares)) < FORMULA
    for row, alone in enumerate(falling.log_density(OBSERVED, joint=False)):
        own = slice(7 * row, 7 * row + 7)
        logs = [oracle.log_density(OBSERVED[row], m[own], c[own, own]) for m, c in zip(means, covariances, strict=True)]
        assert oracle.relative_error(alone, logsumexp(logs, b=shares)) < FORMULA
        single = replace(mixture.at(NEW[[row]]), fallback=(FALLBACK, SHARES[[row]]))
        assert oracle.relative_error(single.log_density(OBSERVED[[row]]), alone) < FORMULA
        assert oracle.relative_error(single.mean, falling.mean[[row]]) < FORMULA
    below = norm.cdf(OBSERVED.ravel(), means, np.sqrt(np.einsum("kaa->ka", covariances)))
    assert oracle.relative_error(falling.distribution(OBSERVED), (shares @ below).reshape(3, 7)) < FORMULA
    assert oracle.relative_error(falling.distribution(falling.quantile(0.3)), np.full((3, 7), 0.3)) < FORMULA


def test_values_that_are_known_condition_both_sides_of_a_fallback(mixture, falling):
    known = np.where(np.arange(7) < 3, OBSERVED, np.nan)
    parts = [posterior.at(NEW).given(known).values for posterior in mixture.posteriors]
    own, other = (np.tensordot(weights, parts, axes=1) for weights in (WEIGHTS, FALLBACK))
    expected = SHARES[:, None] * own + (1 - SHARES[:, None]) * other
    assert oracle.relative_error(falling.given(known).values, expected) < FORMULA


def test_joint_densities_of_signals_without_values_are_those_of_the_others(mixture):
    """However many values the others have: 6,000 and more incomplete ones are refused."""
    for part in (posterior.at(NEW) for posterior in mixture.posteriors):
        chosen = np.arange(3) != 1
        matrix = part.joint_covariance(include_noise=True)[chosen][:, :, chosen].reshape(14, 14)
        expected = oracle.log_density(OBSERVED[chosen].ravel(), part.mean[chosen].ravel(), matrix)
        found = part.log_density(np.where(chosen[:, None], OBSERVED, np.nan))
        assert oracle.relative_error(found, expected) < FORMULA


# Densities


def dense_log_densities(posterior):
    """Joint log density of all observed signals, and of each alone, by dense Gaussians."""
    part = posterior.at(NEW)
    covariance = part.joint_covariance(include_noise=True)
    together = oracle.log_density(OBSERVED.ravel(), part.mean.ravel(), covariance.reshape(21, 21))
    alone = [oracle.log_density(OBSERVED[i], part.mean[i], covariance[i, :, i, :]) for i in range(3)]
    return together, np.array(alone)


def test_log_density_is_that_of_the_mixture(mixture):
    together, alone = zip(*(dense_log_densities(posterior) for posterior in mixture.posteriors), strict=True)
    prediction = mixture.at(NEW)
    expected = logsumexp(together, b=WEIGHTS)
    actual = prediction.log_density(OBSERVED)
    assert isinstance(actual, float)
    assert oracle.relative_error(actual, expected) < FORMULA
    expected = logsumexp(alone, axis=0, b=WEIGHTS[:, None])
    assert oracle.relative_error(prediction.log_density(OBSERVED, joint=False), expected) < FORMULA


class Constant:
    """A part of which every draw is one number, and another with noise."""

    def __init__(self, number):
        self.number = number

    def sample(self, n_samples, random_state, include_noise):
        return np.full((n_samples, 1, 1), self.number + 0.5 * include_noise)


@pytest.mark.parametrize("include_noise", [False, True])
def test_samples_are_those_of_the_parts_by_their_weights_in_any_order(include_noise):
    n_samples, parts = 20_000, tuple(Constant(number) for number in range(4))
    draws = MixtureField(WEIGHTS, parts).sample(n_samples, np.random.default_rng(0), include_noise)
    assert draws.shape == (n_samples, 1, 1)
    drawn = draws.ravel() - 0.5 * include_noise == np.arange(4)[:, None]
    assert np.all(drawn.sum(axis=0) == 1)
    for half in (drawn[:, : n_samples // 2], drawn[:, n_samples // 2 :]):
        error = np.sqrt(WEIGHTS * (1 - WEIGHTS) / half.shape[1])
        assert np.all(np.abs(half.mean(axis=1) - WEIGHTS) <= STANDARD_ERRORS * error)


@pytest.mark.parametrize("by", ["signal", "node", "entry"])
def test_leave_one_out_of_a_mixture(mixture, by):
    parts = [leave_one_out(posterior, by) for posterior in mixture.posteriors]
    left = leave_one_out(mixture, by)
    mean = np.tensordot(WEIGHTS, [part.mean for part in parts], axes=1)
    second = np.tensordot(WEIGHTS, [part.std**2 + part.mean**2 for part in parts], axes=1)
    logs = np.array([part.log_density for part in parts])
    weights = WEIGHTS.reshape(-1, *[1] * (logs.ndim - 1))
    assert left.by == by
    assert oracle.relative_error(left.mean, mean) < FORMULA
    assert oracle.relative_error(left.std**2, second - mean**2) < FORMULA
    assert oracle.relative_error(left.log_density, logsumexp(logs, axis=0, b=weights)) < FORMULA


def test_models_of_weight_zero_are_not_evaluated(mixture):
    class Untouchable:
        def at(self, inputs):
            return self

        def __getattr__(self, name):
            raise AssertionError("a model without weight was asked")

    others = (mixture.posteriors[0], Untouchable())
    prediction = Mixture(np.array([1.0, 0.0]), others).at(NEW)
    assert oracle.relative_error(prediction.mean, mixture.posteriors[0].at(NEW).mean) < FORMULA
    prediction.log_density(OBSERVED)
    prediction.sample(2, np.random.default_rng(0))


# Averages over hyperparameters


@pytest.mark.parametrize(("most", "n_rows"), [(1_000, 3), (7, 1), (3, 1), (15, 2)])
def test_observed_values_change_posterior_weights_by_their_joint_density(mixture, monkeypatch, most, n_rows):
    """Of many values those of the first rows count; a weight of zero stays."""
    monkeypatch.setattr("spectralgp.model.fields.field.MOST_WEIGHED", most)
    field, values = replace(mixture, is_averaged=True).at(NEW), OBSERVED.copy()
    values[2, 4] = np.nan
    seen = np.flatnonzero(np.isfinite(values[:n_rows]))
    densities = [
        multivariate_normal.pdf(
            values[:n_rows].ravel()[seen],
            part.mean[:n_rows].ravel()[seen],
            part.joint_covariance(include_noise=True).reshape(21, 21)[np.ix_(seen, seen)],
        )
        for part in field.fields
    ]
    expected = WEIGHTS * densities / np.dot(WEIGHTS, densities)
    np.testing.assert_allclose(field.given(values).weights, expected, rtol=FORMULA)
    np.testing.assert_array_equal(mixture.at(NEW).given(values).weights, WEIGHTS)


@pytest.mark.parametrize("share", [0.4, 1.0])
def test_a_mask_chooses_entries_of_the_joint_covariance(share):
    """With scales of nodes, and the level of a node that was never observed, which all signals share."""
    signals, chosen = SIGNALS + np.linspace(0, 9, 7), np.random.default_rng(1).random((3, 7)) <= share
    signals[:, 3] = np.nan
    model = GraphGPRegressor(GRAPHS["random"], Polynomial(1), center="node", scale="node").fit(INPUTS, signals)
    for _, posterior in model.posterior_.parts:
        field = posterior.at(NEW)
        joint = field.joint_covariance(include_noise=True).reshape(21, 21)
        places = np.flatnonzero(chosen)
        np.testing.assert_allclose(
            field.value_covariance(chosen), joint[np.ix_(places, places)], rtol=FORMULA, atol=FORMULA
        )


def test_signals_that_leave_draws_no_weight_may_be_followed_by_more():
    graph, rng = GRAPHS["random"], np.random.default_rng(2)
    inputs, signals = rng.standard_normal((400, 1)), rng.standard_normal((400, 7)) * 0.1
    model = GraphGPRegressor(graph, Polynomial(1)).fit(INPUTS[:3, :1], SIGNALS[:3])
    for start in range(0, 400, 100):
        model = model.condition_on(inputs[start : start + 100], signals[start : start + 100])
    weights = model.learnt_.draws[0].weights
    assert np.min(weights) == 0
    again = model.condition_on(inputs[:2] + 0.1, signals[:2]).learnt_.draws[0].weights
    np.testing.assert_allclose(np.sum(again), 1.0)
    assert np.all(again[weights == 0] == 0)
