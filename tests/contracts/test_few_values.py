"""Few values: what is not known of hyperparameters, fixed effects and centres is part of every prediction."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import expon, nbinom, norm
from scipy.stats import t as student
from sklearn.gaussian_process.kernels import RBF

import oracle
from spectralgp import Diffusion, Graph, GraphGPRegressor, Poisson, Polynomial, Task, decompose, graph_gp, load
from spectralgp.learning.draws import HyperparameterPosterior, _Laplace
from spectralgp.model.fields import ObservationModel
from spectralgp.model.fields.field import SharedLevels
from spectralgp.model.fields.posterior import posterior_of
from spectralgp.model.kernels import WithResidual
from spectralgp.model.signals import read_signals
from tolerances import FORMULA

PATH = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
RING = Graph.from_edges([(node, (node + 1) % 6) for node in range(6)])


@pytest.mark.filterwarnings("ignore:the noise is at its lower bound")
@pytest.mark.parametrize("center", [None, "global", "node"])
@pytest.mark.parametrize("unit", [1e-9, 1e3, 1e9])
def test_a_constant_is_predicted_in_its_own_units(center, unit):
    """Its amplitude started at one, in whatever units it came."""
    inputs = np.arange(6.0)[:, None]

    def answers(size: float) -> np.ndarray:
        model = GraphGPRegressor(PATH, Diffusion(), RBF(1.0), center=center, residual=None)
        model.fit(inputs, np.full((6, 4), size))
        return np.stack(model.predict([[2.5], [1000.0]], return_std=True, include_noise=True)) / size

    expected = answers(1.0)
    np.testing.assert_allclose(answers(unit), expected, rtol=1e-6, atol=1e-9)
    assert abs(expected[0, 0, 0] - 1) < 2 * expected[1, 0, 0] < 0.1


@pytest.mark.parametrize("exposure", [1e-300, 1e300])
def test_exposures_whose_rates_are_no_numbers_are_refused(exposure):
    values = np.random.default_rng(0).poisson(2.0, (5, 6))
    with pytest.raises(ValueError, match=r"exposure must be finite and above 0 \(1e-100 to 1e\+100\).*got 1e"):
        GraphGPRegressor(RING, Polynomial(1), likelihood="poisson").fit(None, values, exposure=exposure)


# Averaging over hyperparameters and centres: equation (19e)

RNG = np.random.default_rng(3)
X, NEW = RNG.standard_normal((5, 2)), RNG.standard_normal((4, 2))
Y = 5 + np.array([0.0, 4.0, 8.0, 4.0, 0.0, -4.0]) + np.sin(X[:, :1]) + 0.3 * RNG.standard_normal((5, 6))
LAPLACIAN = oracle.laplacian(RING.weights.toarray(), scaled=True)
COMMON, OWN = Polynomial.from_coefficients([1.0, -0.6]), Polynomial.from_coefficients([0.4])
PRIOR = graph_gp(RING, WithResidual.of(COMMON, OWN), RBF(1.2), noise_variance=0.1)


def covariance_of(prior, inputs: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
    """Covariance of signals at inputs by entries, noise included, or that with others."""
    kernel, length = prior.graph_kernel, float(np.exp(prior.input_kernel.theta[0]))
    common = oracle.matrix_function(LAPLACIAN, kernel.power)
    if others is not None:
        return np.kron(oracle.rbf(inputs, others, length), common)
    own = oracle.matrix_function(LAPLACIAN, kernel.residual_power) + prior.noise_variance * np.eye(6)
    return np.kron(oracle.rbf(inputs, inputs, length), common) + np.kron(np.eye(len(inputs)), own)


@pytest.mark.parametrize("mask", [np.ones((5, 6), dtype=bool), RNG.random((5, 6)) < 0.7], ids=["complete", "missing"])
@pytest.mark.parametrize("center", ["global", "node"])
def test_levels_are_those_of_generalised_least_squares(center, mask):
    """Their evidence is integrated, and draws have their posterior: both by dense matrices."""
    signals = read_signals(np.where(mask, Y, np.nan), center, "global")
    task = replace(Task.of(RING, RBF(1.2), X, Y), signals=signals)
    posterior = HyperparameterPosterior(task, PRIOR)
    values, seen = signals.as_observed.ravel()[mask.ravel()], mask.ravel()
    columns = np.kron(np.ones((5, 1)), np.ones((6, 1)) if center == "global" else np.eye(6))[seen]
    matrix = covariance_of(PRIOR, X)[np.ix_(seen, seen)]
    wide = 1e6 * task.variance
    base = np.ones((1, 6)) if center == "global" else np.eye(6)
    given, shared = posterior_of(PRIOR, X, signals), np.repeat(base[:, None], 5, axis=1)
    levels = SharedLevels(given.observations(), shared, np.full(len(base), wide))
    total = matrix + wide * columns @ columns.T
    assert abs(given.log_evidence() + levels.log_factor - oracle.log_density(values, 0.0, total)) < 1e-6
    precision = columns.T @ np.linalg.solve(matrix, columns) + np.eye(columns.shape[1]) / wide
    mean = np.linalg.solve(precision, columns.T @ np.linalg.solve(matrix, values))
    np.testing.assert_allclose(levels.drawn(np.zeros(len(mean))), mean, rtol=1e-8, atol=1e-10)
    moved = np.stack([levels.drawn(one) - mean for one in np.eye(len(mean))])
    np.testing.assert_allclose(moved.T @ moved, np.linalg.inv(precision), rtol=1e-7, atol=1e-10)
    drawn = posterior.levels([posterior.mode] * 16, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(axis=0), mean @ base, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(np.var(drawn, axis=0), np.diag(base.T @ np.linalg.inv(precision) @ base), rtol=0.6)


def test_the_posterior_of_hyperparameters_is_evidence_prior_and_measure():
    """Equation (19e), by dense matrices: three coefficients are in the units of the signals."""
    signals = read_signals(Y, "global", "global")
    task = replace(Task.of(RING, RBF(1.2), X, Y), signals=signals)
    posterior = HyperparameterPosterior(task, PRIOR)

    def expected(x: np.ndarray) -> float:
        matrix = covariance_of(posterior.objective.model(x), X)
        evidence = oracle.log_density(signals.values.ravel(), 0.0, matrix + 1e6 * task.variance)
        return evidence + posterior.objective.log_prior(x)[0] - 1.5 * np.log(np.mean(np.diag(matrix)))

    points = [posterior.mode, posterior.mode + 0.1 * RNG.random(posterior.mode.size)]
    found = [posterior.log_density(x) for x in points]
    assert abs(found[1] - found[0] - expected(points[1]) + expected(points[0])) < 1e-6
    observed_by = ObservationModel.of(Poisson(), np.ones((5, 6)), np.ones((1, 5, 6)), np.ones((5, 6)), True)
    counts = replace(task, signals=read_signals(np.ones((5, 6))), observed_by=observed_by)
    latent = HyperparameterPosterior(counts, replace(PRIOR, likelihood=Poisson()))
    deviation = np.sqrt(np.mean(np.diag(covariance_of(PRIOR, X))))
    model = replace(latent.objective.model(latent.mode), likelihood=Poisson())
    evidence = [latent.expectation.log_likelihood(model)[0] for _ in range(3)][-1]  # by sites that have settled
    measure = latent.log_density(latent.mode) - evidence - latent.objective.log_prior(latent.mode)[0]
    assert measure == pytest.approx(-2 * np.log(deviation) - 3 * deviation)


def test_proposals_have_the_density_of_their_widths():
    """Half of them are drawn at each width, off the active constraints by exponential slacks that are as wide."""
    laplace = _Laplace(HyperparameterPosterior(Task.of(RING, RBF(1.2), X, Y), PRIOR))
    laplace.multipliers, laplace.precisions = np.array([2.0]), np.array([0.0])
    normal, slacks, n_normal = RNG.standard_normal(laplace.mode.size - 1), np.array([0.7]), laplace.mode.size - 1
    parts = [norm.logpdf(normal, 0, width).sum() + expon.logpdf(0.7, 0, width / 2) for width in (1.0, 1.5)]
    expected = logsumexp(parts) + n_normal * 0.5 * np.log(2 * np.pi) - np.log(2.0)
    assert abs(laplace.log_density((1.0, 1.5), normal, slacks) - expected) < 1e-10


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("center", ["global", "node", None])
def test_predictions_are_a_mixture_over_drawn_models_and_levels(center, has_missing):
    """Each model is dense, with a centre of its own; its weight is a sixteenth."""
    signals = np.where(RNG.random(Y.shape) < 0.2, np.nan, Y) if has_missing else Y
    model = GraphGPRegressor(RING, Polynomial(1), RBF(1.0), center=center, residual=None).fit(X, signals)
    seen, means, variances = np.isfinite(signals).ravel(), [], []
    for weight, part in model.posterior_.parts:
        assert weight == 1 / 16
        units = part.signals.units
        matrix, cross = covariance_of(part.prior, X)[np.ix_(seen, seen)], covariance_of(part.prior, X, NEW)[seen]
        scaled = ((signals - units.offset) / units.divisor).ravel()[seen]
        means.append((cross.T @ np.linalg.solve(matrix, scaled)).reshape(4, 6) * units.divisor + units.offset)
        left = np.diag(covariance_of(part.prior, NEW) - cross.T @ np.linalg.solve(matrix, cross))
        variances.append(left.reshape(4, 6) * units.divisor**2)
    mean, std = model.predict(NEW, return_std=True, include_noise=True)
    assert len(means) == 16
    np.testing.assert_allclose(mean, np.mean(means, axis=0), rtol=1e-8)
    np.testing.assert_allclose(std**2, np.mean(variances, axis=0) + np.var(means, axis=0), rtol=1e-7)
    offsets = np.ptp([np.broadcast_to(part.signals.units.offset, 6) for _, part in model.posterior_.parts], axis=0)
    assert np.all(offsets > 0) == (center is not None)
    lower, upper = model.predict(NEW, return_quantiles=(0.05, 0.95))[1:]
    roots = np.sqrt(variances)
    for points, probability in ((lower, 0.05), (upper, 0.95)):
        np.testing.assert_allclose(np.mean(norm.cdf(points, means, roots), axis=0), probability, rtol=1e-7)
    values = RNG.normal(mean, std)
    expected = logsumexp([part.at(NEW).log_density(values) for _, part in model.posterior_.parts]) - np.log(16)
    assert abs(model.log_predictive_density(NEW, values) - expected) < 1e-8


def test_the_default_of_one_signal_is_one_kernel():
    """Folds take two signals; what is known of some nodes tells of the others, averaged over hyperparameters."""
    signal = np.where(np.arange(6) < 4, Y[:1], np.nan)
    model = GraphGPRegressor(RING).fit(None, signal)
    (kernel,) = model.graph_kernel_
    assert isinstance(kernel, Diffusion)
    completed, std = model.impute(None, signal)
    laplacian = oracle.laplacian(RING.weights.toarray(), kernel.laplacian, kernel.scaled)
    assert len(model.posterior_.parts) > 1
    means, variances = [], []
    for _, part in model.posterior_.parts:
        prior, unit, center = part.prior, part.signals.units.spread**2, part.signals.units.offset
        own = unit * oracle.matrix_function(laplacian, prior.graph_kernel.power)
        noisy = own + unit * prior.noise_variance * np.eye(6)
        mean, covariance = oracle.condition(noisy, np.arange(4), (signal - center)[0, :4], np.arange(4, 6))
        means.append(mean + center[4:])
        variances.append(np.diag(covariance))
    weights = np.array([weight for weight, _ in model.posterior_.parts])
    mean = weights @ np.array(means)
    variance = weights @ (np.array(variances) + np.square(np.array(means) - mean))
    assert oracle.relative_error(completed[0, 4:], mean) < FORMULA
    assert oracle.relative_error(std[0, 4:], np.sqrt(variance)) < FORMULA


@pytest.mark.parametrize("unit", [1e-20, 1.0, 1e20])
def test_quantiles_are_those_of_normal_laws_in_any_unit(unit):
    model = GraphGPRegressor(RING, Polynomial(1), RBF(1.0), prior=None).fit(X, unit * Y)
    mean, std = model.predict(NEW, return_std=True, include_noise=True)
    found = model.predict(NEW, return_quantiles=(0.1,))[1]
    freedom = model.posterior_.prior.freedom
    scale = std * np.sqrt(1 - 2 / freedom)
    np.testing.assert_allclose(found, student.ppf(0.1, freedom, mean, scale), rtol=1e-8)


@pytest.mark.parametrize("center", ["global", "node"])
def test_averages_are_saved_conditioned_further_and_reweighted_alike(center, tmp_path):
    model = GraphGPRegressor(RING, Polynomial(1), RBF(1.0), center=center, residual=None).fit(X, Y)
    model.save(tmp_path / "model.sgp")
    loaded = load(tmp_path / "model.sgp")
    np.testing.assert_array_equal(loaded.predict(NEW, return_std=True), model.predict(NEW, return_std=True))
    further = np.where(np.arange(6) < 3, Y[:1] + 0.1, np.nan)
    observed = model.predict(NEW[:1], observed=further, return_std=True)
    conditioned = model.condition_on(NEW[:1], further)
    np.testing.assert_allclose(conditioned.predict(NEW[:1], return_std=True), observed, rtol=1e-7)
    weights = [weight for weight, _ in conditioned.posterior_.parts]
    logs = np.array([part.at(NEW[:1]).log_density(further) for _, part in model.posterior_.parts])
    np.testing.assert_allclose(weights, np.exp(logs - logsumexp(logs)), rtol=1e-9)


@pytest.mark.parametrize(
    ("n_signals", "center", "is_averaged"),
    [(7, None, True), (11, None, False), (11, "global", True), (15, "node", True), (40, "node", False)],
)
def test_what_was_centred_counts_as_parameters(n_signals, center, is_averaged):
    """Two of a filter, one of a residual that is flat, a length scale and noise: 16 values for each of them."""
    inputs, signals = RNG.standard_normal((n_signals, 1)), RNG.standard_normal((n_signals, 6))
    model = GraphGPRegressor(RING, Polynomial(1), RBF(1.0), center=center, residual=None).fit(inputs, signals)
    assert (len(model.posterior_.parts) > 1) == is_averaged


@pytest.mark.parametrize("n_covariates", [0, 1, 4])
@pytest.mark.parametrize("likelihood", ["gaussian", "poisson"])
@pytest.mark.slow
def test_intervals_with_fixed_effects_hold_what_they_say(likelihood, n_covariates):
    """12 of 20 nodes measured, one signal: with four covariates 90% intervals held 0.50 and 0.68 of the values."""
    held = []
    for seed in range(12):
        rng = np.random.default_rng(1000 + seed)
        graph = Graph.from_points(rng.random((20, 2)), n_neighbors=4)
        spectrum, covariates = decompose(graph, scaled=True), rng.standard_normal((20, n_covariates))
        filtered = np.sqrt(0.5) * (1 - 0.9 * spectrum.eigenvalues) * rng.standard_normal(20)
        latent = 2 + covariates @ (0.7 * rng.standard_normal(n_covariates)) + spectrum.eigenvectors @ filtered
        beside: dict[str, Any] = {"covariates": covariates} if n_covariates else {}
        truth = latent + 0.3 * rng.standard_normal(20)
        if likelihood == "poisson":
            truth = rng.poisson(np.exp(latent)).astype(float)
        else:
            beside["weights"] = 1.0
        known = np.where(np.arange(20) < 12, truth, np.nan)[None]
        model = GraphGPRegressor(graph, Polynomial(1), likelihood=likelihood).fit(None, known, **beside)
        _, low, high = model.predict(None, observed=known, return_quantiles=(0.05, 0.95), **beside)
        held.append(np.mean((low[0, 12:] <= truth[12:]) & (truth[12:] <= high[0, 12:])))
    error = np.std(held) / np.sqrt(len(held))
    assert 0.86 - 3 * error < np.mean(held) < 0.95 + 3 * error


def test_zero_counts_leave_the_rate_open():
    """24 zeros gave log p(1) = -14.3; by Jeffreys' prior it is -3.9."""
    model = GraphGPRegressor(RING, Polynomial(1), likelihood="poisson").fit(None, np.zeros((4, 6)))
    one = np.where(np.arange(6) == 0, 1.0, np.nan)[None]
    assert abs(model.log_predictive_density(None, one) - nbinom.logpmf(1, 0.5, 24 / 25)) < 1.0


COUNTS = RNG.poisson(2.0, (5, 6)).astype(float)
WAYS = {
    "missing": ({}, None, np.where(RNG.random(Y.shape) < 0.2, np.nan, Y), {}),
    "one signal": ({}, None, np.where(np.arange(6) < 4, Y[:1], np.nan), {}),
    "precomputed": ({"input_kernel": "precomputed"}, RBF(1.0)(X), Y, {}),
    "covariates": ({}, None, Y, {"covariates": {"x": RNG.standard_normal(6)}}),
    "weights": ({}, None, Y, {"weights": RNG.uniform(0.5, 2.0, Y.shape)}),
    "known noise": ({}, None, Y, {"noise_variance": RNG.uniform(0.05, 0.2, Y.shape)}),
    "poisson": ({"likelihood": "poisson"}, None, COUNTS, {"exposure": 2.0}),
    "bernoulli": ({"likelihood": "bernoulli"}, None, np.minimum(COUNTS, 1.0), {}),
    "student": ({"likelihood": "student_t"}, None, Y, {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_observe_is_averaged(way, tmp_path):
    """Laws are mixtures of those of sixteen models, and files keep them to the bit."""
    settings, inputs, values, beside = WAYS[way]
    model = GraphGPRegressor(RING, Polynomial(1), **settings).fit(inputs, values, **beside)
    rows = np.arange(len(values))
    field, parts = model.posterior_.imputed(rows), [part.imputed(rows) for _, part in model.posterior_.parts]
    assert len(parts) == 16
    mean = np.mean([part.mean for part in parts], axis=0)
    np.testing.assert_allclose(field.mean, mean, rtol=1e-10)
    spread = np.mean([part.variance(include_noise=True) + np.square(part.mean - mean) for part in parts], axis=0)
    np.testing.assert_allclose(field.variance(include_noise=True), spread, rtol=1e-9)
    upper = field.quantile(0.9)
    below = np.mean([part.distribution(upper) for part in parts], axis=0)
    assert np.all(below >= 0.9 - 1e-9)
    assert np.all(np.mean([part.distribution(upper - 1) for part in parts], axis=0) < 0.9)
    model.save(tmp_path / "model.sgp")
    again = load(tmp_path / "model.sgp").posterior_.imputed(rows)
    np.testing.assert_array_equal(again.mean, field.mean)
    np.testing.assert_array_equal(again.variance(), field.variance())
