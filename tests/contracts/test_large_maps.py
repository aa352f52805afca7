"""Maps that a likelihood observes, on a quadrature: against dense laws, and against the exact spectrum."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.gaussian_process.kernels import RBF

import oracle
import spectralgp
from oracle import relative_error
from spectralgp import Bernoulli, Chebyshev, Graph, GraphGPRegressor, Poisson, Polynomial, StudentT, graph_gp
from spectralgp.learning import Task
from spectralgp.learning.missing import LatentExpectation
from spectralgp.model.fields import ObservationModel, find_sites
from spectralgp.model.fields.covariances import white_noise
from spectralgp.model.fields.curvatures import ProbedLatentCovariance

N_NODES = 300
POINTS = np.random.default_rng(0).random((N_NODES, 2))
GRAPH = Graph.from_points(POINTS, 8)
KERNEL = Polynomial.from_coefficients([1.6, -2.6, 1.1], fixed=True)
WHITE = 0.1
LIKELIHOODS = {"poisson": Poisson(), "bernoulli": Bernoulli(), "student t": StudentT(4.0, 0.5)}
NO_INPUTS = np.empty((1, 0))


def problem(name: str, missing: float = 0.0, n_probes: int | str = 32):
    """The covariance of a map on a quadrature, the same written out, and what was observed, with an intercept."""
    rng = np.random.default_rng(1)
    exact = graph_gp(GRAPH, KERNEL, None, WHITE).latent_covariance(NO_INPUTS)
    large = graph_gp(GRAPH, KERNEL, None, WHITE, spectrum=Chebyshev(n_probes=n_probes)).latent_covariance(NO_INPUTS)
    latent = 0.4 + exact.draw_signal(rng) + white_noise(exact, rng)
    values = LIKELIHOODS[name].draw(latent, np.ones(latent.shape), rng)
    values[rng.random(values.shape) < missing] = np.nan
    ones = np.ones(values.shape)
    observed_by = ObservationModel.of(LIKELIHOODS[name], ones, ones[None], values, has_intercept=True)
    return large, exact.between(0, 0), observed_by.observations(values)


@pytest.mark.parametrize(("missing", "sd", "apart"), [(0.0, 0.01, 0.005), (0.5, 0.03, 0.01)])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_law_is_near_the_dense_one(name, missing, sd, apart):
    """Equations (35) to (39): variances as effective curvatures have them, and by probes within their errors."""
    covariance, dense, observations = problem(name, missing)
    found = find_sites(covariance, observations)

    def expected(mean, variance):
        terms = observations.expected(mean[None], variance[None])
        return tuple(one[0] for one in terms)

    effects = observations.effects
    total, level = dense + 1 / effects.precision[0, 0], np.full(len(dense), effects.mean[0])
    mean, law, bound = oracle.normal_law(total, level, expected)
    deviations = np.sqrt(np.diag(law))
    assert np.sqrt(np.mean(np.square((found.mean[0] - mean) / deviations))) < apart
    ratio = np.sqrt(found.variance[0]) / deviations
    assert abs(np.mean(ratio) - 1) < sd
    assert 0 < found.variance_error < 0.02 * np.mean(found.variance)
    stated = found.variance_error / (2 * np.mean(found.variance))  # of a standard deviation
    assert np.std(ratio) < np.hypot(2 * stated, sd)
    value, error = found.log_bound()
    assert abs(value - bound) < 4 * error + 0.01 * N_NODES
    # given its variances the mean is that of (36), to the tolerance of solves
    slopes = found.terms[1][0]
    assert np.sqrt(np.mean(np.square((dense @ slopes + found.coefficients - found.mean[0]) / deviations))) < 1e-3
    pulled = effects.precision[0, 0] * (found.coefficients[0] - effects.mean[0])
    assert abs(np.sum(slopes) - pulled) < 1e-3 * np.sqrt(np.sum(found.terms[2]))
    information = np.linalg.inv(dense + np.diag(1 / np.maximum(found.terms[2][0], 1e-300))).sum()
    assert relative_error(found.coefficient_covariance, 1 / (information + effects.precision)) < 1e-3


def test_draws_have_the_variances():
    covariance, dense, observations = problem("poisson", 0.5)
    found = find_sites(covariance, observations)
    total = dense + 1 / observations.effects.precision[0, 0]
    law = np.linalg.inv(np.linalg.inv(total) + np.diag(found.terms[2][0]))
    drawn = found.mean[0] + found.value_draws(400, np.random.default_rng(0))[:, 0]
    assert abs(np.mean(drawn.var(axis=0) / np.diag(law)) - 1) < 4 * np.sqrt(2 / 400 / 30)
    assert np.abs(drawn.mean(axis=0) - found.mean[0]).max() < 5 * np.sqrt(np.diag(law).max() / 400)


@pytest.mark.parametrize(("n_signals", "n_draws"), [(1, 64), (3, 64), (4, 54), (20, 10), (110, 2), (250, 2)])
def test_draws_of_latent_signals_are_fewer_the_more_values_each_has(n_signals, n_draws):
    """As many as have 65,536 values together, from two to 64."""
    values = np.ones((n_signals, N_NODES))
    task = Task.of(GRAPH, None, np.empty((n_signals, 0)), values, spectrum=Chebyshev())
    observed_by = ObservationModel(Poisson(), values, values[None])
    said = LatentExpectation(replace(task, observed_by=observed_by)).described("no steps")
    assert f"energies by {n_draws} draws" in said


def test_systems_of_several_signals_are_solved():
    """With entries that have a slope and no curvature, as those of Student's t may."""
    rng, inputs = np.random.default_rng(0), np.array([[0.0], [0.5], [2.0]])
    large = graph_gp(GRAPH, KERNEL, RBF(0.7), WHITE, spectrum=Chebyshev()).latent_covariance(inputs)
    exact = graph_gp(GRAPH, KERNEL, RBF(0.7), WHITE).latent_covariance(inputs)
    weights = rng.lognormal(0.0, 1.5, (3, N_NODES)) * (rng.random((3, N_NODES)) < 0.7)
    rights, starts = rng.standard_normal((2, 2, 3, N_NODES))
    dense = exact.submatrix(np.ones(weights.shape, dtype=bool))
    expected = np.linalg.solve(np.eye(weights.size) + weights.ravel()[:, None] * dense, rights.reshape(2, -1).T).T
    for start in (None, starts):
        found = ProbedLatentCovariance(large).solve(weights, rights, start, 1e-6)
        assert relative_error(found.reshape(2, -1), expected) < 1e-5


def test_a_common_curvature_leaves_what_probes_err_by():
    for n_probes, bar in (("exact", 1e-3), (32, 1.5)):
        covariance, dense, _ = problem("poisson", n_probes=n_probes)
        variance, error = ProbedLatentCovariance(covariance).variances(np.full((1, N_NODES), 0.7))
        law = np.diag(np.linalg.inv(np.linalg.inv(dense) + 0.7 * np.eye(N_NODES)))
        missed = np.sqrt(np.mean(np.square(variance[0] - law)))
        assert missed < (bar * np.mean(law) if error == 0 else bar * error)


def test_determinants_by_probes_are_within_their_stated_errors():
    covariance, dense, _ = problem("poisson")
    weights = np.random.default_rng(0).lognormal(0.0, 1.0, (1, N_NODES))
    expected = np.linalg.slogdet(np.eye(N_NODES) + dense * weights[0])[1]
    value, error = ProbedLatentCovariance(covariance).log_determinant(weights)
    assert abs(value - expected) < 4 * error
    assert error < 0.01 * expected


def test_curvatures_around_an_entry_are_those_of_the_heat_kernel_and_of_similar_signals():
    """Against dense matrices: shares of nodes by ``exp(-t L)``, of signals by squares of their covariance."""
    inputs, rng = np.array([[0.0], [0.5], [2.0]]), np.random.default_rng(0)
    prior = graph_gp(GRAPH, KERNEL, RBF(0.7), WHITE, spectrum=Chebyshev(n_probes="exact"))
    latent = ProbedLatentCovariance(prior.latent_covariance(inputs))
    weights = rng.lognormal(0.0, 1.0, (3, N_NODES))
    around, total = latent.around(weights)
    exact = spectralgp.decompose(GRAPH, scaled=True)
    power = KERNEL.power(exact.eigenvalues)
    values, modes = np.linalg.eigh(RBF(0.7)(inputs))
    left = 1 / (1 / (np.multiply.outer(values, power) + WHITE) + weights.mean())
    side = np.square((modes * left.mean(axis=1)) @ modes.T)
    common = left.mean(axis=0)
    share = common.mean() ** 2 / np.mean(common**2)
    time = brentq(lambda one: np.mean(np.exp(-one * exact.eigenvalues)) - share, 0.0, 1e3)
    heat = (exact.eigenvectors * np.exp(-time * exact.eigenvalues)) @ exact.eigenvectors.T
    of_signals, of_nodes = side / np.diag(side)[:, None], heat / np.diag(heat)[:, None]
    assert relative_error(around, of_signals @ weights @ of_nodes.T) < 0.02
    assert relative_error(total, np.multiply.outer(of_signals.sum(axis=1), of_nodes.sum(axis=1))) < 0.02


def test_diagonals_that_are_remembered_are_within_their_errors():
    spectrum = Chebyshev().of(GRAPH, scaled=True)
    exact = spectralgp.decompose(GRAPH, scaled=True)

    def functions(eigenvalues):
        return np.stack([np.exp(-3 * eigenvalues), 1 / (0.1 + eigenvalues), eigenvalues**2])

    found, errors = spectrum.local_diagonals(functions)
    truth = functions(exact.eigenvalues) @ np.square(exact.eigenvectors).T
    missed = np.sqrt(np.mean(np.square(found - truth), axis=1))
    assert np.all(missed < 1.5 * errors + 1e-4 * truth.max(axis=1))
    by_probes = np.asarray(spectrum.diagonals(functions)[0])
    assert missed[0] <= np.sqrt(np.mean(np.square(by_probes - truth), axis=1))[0] * 1.1


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(3)
    prior = graph_gp(GRAPH, KERNEL, None, WHITE)
    exposure = rng.uniform(2.0, 8.0, N_NODES)
    latent = 0.4 + prior.sample(NO_INPUTS, 1, rng, include_noise=True)[0]
    values = rng.poisson(exposure * np.exp(latent)).astype(float)
    values[:, rng.random(N_NODES) < 0.1] = np.nan
    return values, exposure


@pytest.fixture(scope="module")
def learnt(counts):
    values, exposure = counts
    models = [
        GraphGPRegressor(GRAPH, Polynomial(2), likelihood="poisson", spectrum=spectrum)
        for spectrum in (spectralgp.Exact(), Chebyshev())
    ]
    return [model.fit(None, values, exposure=exposure) for model in models]


def test_what_is_learnt_is_that_of_the_exact_spectrum(learnt, counts):
    exact, large = learnt
    values, exposure = counts
    points = np.linspace(0.0, 1.0, 9)
    powers = [model.response(points)[0] ** 2 + model.noise_variance_ for model in learnt]
    assert relative_error(powers[1], powers[0]) < 0.05
    levels = [model.coefficients_["intercept"] for model in learnt]
    assert abs(levels[1] - levels[0]) < 0.2 * exact.coefficients_.errors[0]
    fit = large.fits_[0]
    assert fit.converged
    assert abs(large.log_marginal_likelihood_ - exact.log_marginal_likelihood_) < 4 * fit.probe_error + 3.0
    answers = [model.predict(None, observed=values, exposure=exposure, return_std=True) for model in learnt]
    assert relative_error(answers[1][0], answers[0][0]) < 0.02
    assert np.sqrt(np.mean(np.square(answers[1][1] / answers[0][1] - 1))) < 0.015  # by probes: one of them is 5% off
    filled = [model.impute(None, values, exposure=exposure) for model in learnt]
    assert np.array_equal(filled[1][0][~np.isnan(values)], values[~np.isnan(values)])
    assert relative_error(filled[1][0], filled[0][0]) < 0.02
    assert "32 probes" in fit.method
    assert "64 draws" in fit.method


def test_quantiles_hold_what_was_observed(learnt, counts):
    values, exposure = counts
    low, high = learnt[1].predict(None, observed=values, exposure=exposure, return_quantiles=(0.05, 0.95))[1:]
    seen = ~np.isnan(values)
    assert 0.88 < np.mean((low <= values)[seen] & (values <= high)[seen]) <= 1.0
    left = learnt[1].leave_one_out("entry")
    both = [model.leave_one_out("entry").log_density[seen].mean() for model in learnt]
    assert abs(both[1] - both[0]) < 0.01
    assert left.transforms is not None


def test_a_new_map_has_the_law_of_the_prior(learnt):
    exact, large = (model.predict(None, return_std=True) for model in learnt)
    assert relative_error(large[0], exact[0]) < 0.05
    assert relative_error(large[1], exact[1]) < 0.1


def test_given_hyperparameters_are_not_learnt(counts):
    values, exposure = counts
    models = [
        GraphGPRegressor(GRAPH, KERNEL, likelihood="poisson", noise_variance=WHITE, spectrum=spectrum)
        for spectrum in (spectralgp.Exact(), Chebyshev())
    ]
    exact, large = (model.fit(None, values, exposure=exposure) for model in models)
    assert large.fits_[0].converged
    deviations = np.sqrt(exact.posterior_.sites.variance)
    assert np.max(np.abs(large.posterior_.sites.mean - exact.posterior_.sites.mean) / deviations) < 0.02
    ratio = np.sqrt(large.posterior_.sites.variance) / deviations
    assert abs(np.mean(ratio) - 1) < 0.01
    assert np.std(ratio) < 0.03


def test_a_large_map_has_a_report(learnt, tmp_path):
    """By predictions at training inputs, where leaving out whole signals takes the covariance of all nodes."""
    assert "<html" in learnt[1].report(tmp_path / "report.html").read_text(encoding="utf-8")


def test_large_maps_of_weighted_values_are_drawn_without_noise(counts):
    """The white part of what is observed is drawn for by pseudo-values with weights."""
    values, weights = counts[0], np.where(np.isnan(counts[0]), 1.0, counts[1])
    model = GraphGPRegressor(GRAPH, KERNEL, residual=None, noise_variance=WHITE, spectrum=Chebyshev())
    model.fit(None, np.sqrt(values), weights=weights)
    mean, std = model.predict(None, observed=np.sqrt(values), weights=weights, return_std=True)
    drawn = model.sample_y(None, 60, observed=np.sqrt(values), random_state=0)
    assert np.max(np.abs(drawn.mean(axis=-1) - mean) / std) < 5 / np.sqrt(60)
    assert abs(np.mean(drawn.var(axis=-1) / std**2) - 1) < 0.15


def test_what_is_not_offered_says_so(learnt, counts):
    values, exposure = counts
    large = learnt[1]
    for by in ("node", "signal"):
        with pytest.raises(ValueError, match="spectrum must be exact with a likelihood for joint densities"):
            large.leave_one_out(by)
    with pytest.raises(ValueError, match="spectrum must be exact with a likelihood for joint densities"):
        large.log_predictive_density(None, values, exposure=exposure)
    with pytest.raises(ValueError, match="Covariances of values are not available with a likelihood"):
        large.predict(None, return_cov=True)
