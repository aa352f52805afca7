"""The variational Gaussian of classes against the dense oracle, and how members are weighed."""

from dataclasses import replace

import numpy as np
import pytest

from spectralgp import Chebyshev, Graph, decompose
from spectralgp.learning.classes import ClassMember, class_covariances, mixed, sharpened
from spectralgp.model.fields.classes import ClassSites, _points, expected_probabilities, given_labels, with_sites
from tests import oracle
from tests.tolerances import CLASS_PROBABILITY, EXACT, FORMULA, LEFT_OUT_CLASS

LABELS = np.array([0, 0, 1, 2, 2])
N_CLASSES = 3


def covariance_of(n_entries: int, amplitude: float, seed: int = 3) -> np.ndarray:
    places = np.random.default_rng(seed).random((n_entries, 2))
    distances = np.linalg.norm(places[:, None] - places, axis=2)
    return amplitude**2 * (np.exp(-2 * distances) + 1e-3 * np.eye(n_entries))


def test_expected_probabilities_against_many_draws():
    generator = np.random.default_rng(0)
    mean, variance = generator.normal(0, 2, (6, 4)), generator.uniform(0.1, 9, (6, 4))
    draws = mean + np.sqrt(variance) * generator.standard_normal((200_000, 6, 4))
    shares = np.exp(draws) / np.exp(draws).sum(axis=2, keepdims=True)
    error = shares.std(axis=0) / np.sqrt(len(draws))
    # five standard errors of the draws, and what points of low discrepancy leave
    assert np.all(np.abs(expected_probabilities(mean, variance) - shares.mean(axis=0)) < 5 * error + 0.01)


@pytest.mark.parametrize("level", [-1e5, -800.0, 800.0, 1e5])
def test_only_differences_of_latents_count_however_large_they_are(level):
    shares = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    mean = np.array([level + np.log([2.0, 3.0, 5.0]), [level + 2_000.0, level, level - 2_000.0]])
    np.testing.assert_allclose(expected_probabilities(mean, np.zeros(mean.shape)), shares, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("amplitude", [0.7, 2.0])
def test_probabilities_against_draws_of_the_prior(amplitude):
    covariance = covariance_of(9, amplitude)
    expected = oracle.class_probabilities(covariance, LABELS, N_CLASSES, 400_000, 1)
    n_labels = len(LABELS)
    field = given_labels(covariance[:n_labels, :n_labels], LABELS, N_CLASSES)
    found = field.probabilities(covariance[:, :n_labels], np.diag(covariance))
    np.testing.assert_allclose(found, expected, rtol=0, atol=CLASS_PROBABILITY)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=EXACT)


def test_means_are_the_maximum_of_the_bound():
    covariance = covariance_of(5, 1.5)
    field = given_labels(covariance, LABELS, N_CLASSES)
    inverse = np.linalg.inv(covariance)
    covariances = np.array([np.linalg.inv(inverse + np.diag(one)) for one in field.sites.curvature.T])
    normal = np.moveaxis(np.broadcast_to(_points(N_CLASSES), (512, 5, N_CLASSES)), 2, 1)

    def bound(means):
        return oracle.class_bound(covariance, LABELS, means, covariances, normal)

    generator, highest = np.random.default_rng(2), bound(field.mean.T)
    for _ in range(5):
        direction = generator.standard_normal(field.mean.T.shape) * np.sqrt(field.variance.T)
        assert bound(field.mean.T + 0.1 * direction) < highest
        assert bound(field.mean.T - 0.1 * direction) < highest


def test_the_variances_are_those_of_curvatures_that_agree_with_them():
    covariance = covariance_of(5, 1.5)
    field = given_labels(covariance, LABELS, N_CLASSES)
    latent = field.mean + np.sqrt(field.variance) * _points(N_CLASSES)
    shares = np.exp(latent) / np.exp(latent).sum(axis=2, keepdims=True)
    expected = np.mean(shares * (1 - shares), axis=0)
    np.testing.assert_allclose(field.sites.curvature, expected, rtol=0.05)
    for place in range(N_CLASSES):
        dense = np.linalg.inv(np.linalg.inv(covariance) + np.diag(field.sites.curvature[:, place]))
        np.testing.assert_allclose(field.variance[:, place], np.diag(dense), rtol=FORMULA)


def test_what_is_left_out_is_what_a_field_without_the_label_says():
    covariance = covariance_of(5, 1.5)
    found = given_labels(covariance, LABELS, N_CLASSES).left_out()
    for entry in range(5):
        kept = np.arange(5) != entry
        other = given_labels(covariance[np.ix_(kept, kept)], LABELS[kept], N_CLASSES)
        expected = other.probabilities(covariance[[entry]][:, kept], covariance[[entry], [entry]])[0]
        np.testing.assert_allclose(found[entry], expected, rtol=0, atol=LEFT_OUT_CLASS)


def test_a_start_elsewhere_leads_to_the_same_field():
    covariance = covariance_of(5, 1.5)
    field = given_labels(covariance, LABELS, N_CLASSES)
    again = given_labels(covariance, LABELS, N_CLASSES, given_labels(4 * covariance, LABELS, N_CLASSES))
    assert np.max(np.abs(again.mean - field.mean) / np.sqrt(field.variance)) < 0.1


def test_node_covariances_are_those_of_the_dense_laplacian():
    weights = oracle.random_weights(12, 0)
    known, degrees = np.array([1, 5, 7]), weights.sum(axis=1)
    laplacian = np.eye(12) - weights / np.sqrt(np.outer(degrees, degrees))
    features = np.random.default_rng(0).standard_normal((12, 2))
    spectrum = decompose(Graph(weights), "normalized")
    found = list(class_covariances(spectrum, known, features))
    tried = [(share, strength) for share in (0.0, 0.1, 0.5) for strength in (10.0, 20.0, 40.0, 80.0, 160.0, 320.0)]
    assert [(one.feature_share, one.kernel.strength) for one in found] == tried
    for one in found:
        values, vectors = np.linalg.eigh(laplacian)
        dense = (vectors * np.exp(-0.5 * one.kernel.strength * values)) @ vectors.T
        dense = 0.999 * dense / (np.trace(dense) / 12) + 0.001 * np.eye(12)
        dense = (1 - one.feature_share) * dense + one.feature_share * features @ features.T / 2
        np.testing.assert_allclose(one.columns, dense[:, known], rtol=0, atol=FORMULA)
        np.testing.assert_allclose(one.variances, np.diag(dense), rtol=0, atol=FORMULA)


def test_columns_by_chebyshev_filters_are_those_by_eigenvectors():
    graph = Graph(oracle.random_weights(60, 1, density=0.1))
    known = np.array([0, 20, 40])
    exact = class_covariances(decompose(graph, "normalized"), known, None)
    for one, other in zip(exact, class_covariances(Chebyshev().of(graph, "normalized"), known, None), strict=True):
        # the mean variance, and those of nodes, are by random probes
        unscaled = [(each.columns - 0.001 * np.eye(60)[:, known]) / each.kernel.amplitude**2 for each in (one, other)]
        assert oracle.relative_error(unscaled[1], unscaled[0]) < 1e-3
        np.testing.assert_allclose(other.kernel.amplitude, one.kernel.amplitude, rtol=0.1)
        assert abs(np.mean(other.variances) - np.mean(one.variances)) < 0.15


def test_members_are_weighed_by_the_labels_that_they_leave_out():
    said = [np.array([[0.8, 0.2], [0.5, 0.5]]), np.array([[0.4, 0.6], [0.5, 0.5]])]
    members = [ClassMember(None, None, None, one) for one in said]
    mixture = mixed(members, np.array([0, 1]))
    np.testing.assert_allclose(mixture.weights, [2 / 3, 1 / 3], rtol=EXACT)
    expected = sharpened(np.tensordot([2 / 3, 1 / 3], said, 1), mixture.temperature)
    np.testing.assert_allclose(mixture.left_out, expected, rtol=EXACT)


def test_the_temperature_has_the_largest_posterior_on_a_grid():
    generator = np.random.default_rng(4)
    left_out, labels = generator.dirichlet((2, 1, 1), 40), generator.integers(0, 2, 40)
    found = mixed([ClassMember(None, None, None, left_out)], labels).temperature
    logs = np.linspace(-2, 2, 2001)
    powers = left_out[None] ** np.exp(logs)[:, None, None]
    likelihood = np.log(powers / powers.sum(axis=2, keepdims=True))[:, np.arange(40), labels].sum(axis=1)
    best = logs[np.argmax(likelihood - 0.5 * ((logs - 0.5) / 0.5) ** 2)]
    np.testing.assert_allclose(np.log(found), best, rtol=0, atol=0.003)


def test_members_far_behind_have_no_weight_and_none_is_lost_to_rounding():
    """Forty labels that one member is sure of and the other all but excludes: a thousand nats apart."""
    sure, wrong = np.tile([1 - 1e-9, 1e-9], (40, 1)), np.tile([0.0, 1.0], (40, 1))
    for said, weights in (([sure, wrong], [1.0, 0.0]), ([wrong, sure], [0.0, 1.0])):
        mixture = mixed([ClassMember(None, None, None, one) for one in said], np.zeros(40, dtype=int))
        np.testing.assert_allclose(mixture.weights, weights, atol=1e-300)


def test_predictions_ask_members_that_count():
    members = [ClassMember(None, None, None, np.full((1, 2), 0.5))] * 4
    mixture = replace(mixed(members, np.zeros(1, dtype=int)), weights=np.array([0.5, 5.1e-4, 4.9e-4, 0.49901]))
    heaviest = mixture.heaviest
    assert len(heaviest.members) == 3
    np.testing.assert_allclose(heaviest.weights, np.array([0.5, 5.1e-4, 0.49901]) / 0.99952)
    assert heaviest.temperature == mixture.temperature


def test_probabilities_are_raised_to_a_power():
    np.testing.assert_allclose(sharpened(np.array([[0.2, 0.8], [0.5, 0.5]]), 2.0), [[1 / 17, 16 / 17], [0.5, 0.5]])
    np.testing.assert_allclose(sharpened(np.array([0.0, 1.0]), 1.0), [1e-12, 1.0], rtol=1e-9)


def test_a_step_goes_a_share_of_the_way_from_sites_to_others():
    one, other = ClassSites(np.array([[1.0]]), np.array([[2.0]])), ClassSites(np.array([[5.0]]), np.array([[10.0]]))
    found = one.towards(other, 0.25)
    assert (found.linear.item(), found.curvature.item()) == (2.0, 4.0)


def test_sites_that_are_known_give_the_same_field():
    covariance = covariance_of(5, 1.5)
    field = given_labels(covariance, LABELS, N_CLASSES)
    again = with_sites(covariance, field.sites, field.converged)
    for name in ("weights", "mean", "variance", "converged"):
        np.testing.assert_array_equal(getattr(again, name), getattr(field, name))
    np.testing.assert_allclose(covariance @ field.weights, field.mean, rtol=1e-9)


def test_labels_that_are_no_surprise_leave_curvatures_above_zero():
    """Two classes that far latent fields tell apart: means stay finite."""
    field = given_labels(covariance_of(4, 200.0), np.array([0, 0, 0, 0]), 2)
    assert np.all(field.sites.curvature >= 1e-9)
    assert np.all(np.isfinite(field.mean))
    assert np.all(field.variance > 0)
