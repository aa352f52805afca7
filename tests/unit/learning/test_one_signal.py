"""One signal: closed forms of (19g) to (19j), mixtures of t's, covariates, weights, kernels of a list."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, multivariate_t
from scipy.stats import t as student

import oracle
from spectralgp import (
    Diffusion,
    Graph,
    GraphGPRegressor,
    Identity,
    LocalAverage,
    Matern,
    Polynomial,
    RandomWalk,
    Stacking,
    load,
)
from spectralgp.learning import one_signal

RNG = np.random.default_rng(0)
GRAPH = Graph.from_points(RNG.random((30, 2)), n_neighbors=4)
SMOOTH = np.linalg.inv(np.eye(30) + 3 * GRAPH.laplacian().toarray())
TRUTH = 5 + 4 * SMOOTH @ RNG.standard_normal(30) + 0.1 * RNG.standard_normal(30)
HIDDEN = np.arange(30) % 3 == 1
KNOWN = np.where(HIDDEN, np.nan, TRUTH)[None]


def matrices(model):
    """Weights of the grid points of a model, their covariances of values in the user's units, and of the signal."""
    found = []
    for weight, part in model.posterior_.parts:
        kernel, unit = part.prior.graph_kernel, part.signals.units.spread**2
        laplacian = oracle.laplacian(GRAPH.weights.toarray(), kernel.laplacian)
        signal = unit * oracle.matrix_function(laplacian, kernel.power)
        found.append((weight, signal + unit * part.prior.noise_variance * np.eye(30), signal))
    return found


def universal(covariance, columns, seen, values):
    """Generalised least squares and kriging with uncertain effects, by dense algebra: mean, covariance, and scale."""
    inverse = np.linalg.inv(covariance[np.ix_(seen, seen)])
    own, wanted, cross = columns[seen], ~seen, covariance[np.ix_(~seen, seen)]
    of_effects = np.linalg.inv(own.T @ inverse @ own)
    effects = of_effects @ own.T @ inverse @ values
    lack = columns[wanted] - cross @ inverse @ own
    mean = columns[wanted] @ effects + cross @ inverse @ (values - own @ effects)
    spread = covariance[np.ix_(wanted, wanted)] - cross @ inverse @ cross.T + lack @ of_effects @ lack.T
    missed = values - own @ effects
    return mean, spread, float(missed @ inverse @ missed) / (values.size - columns.shape[1])


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("n_effects", [1, 3])
def test_evidence_is_the_integral_over_effects_and_scale(n_effects, is_known):
    """(19g), against numerical integration over the scale, with effects of a wide normal prior."""
    n_values, ratio, wide = 7, 0.3, 1e5
    root = RNG.standard_normal((n_values, n_values))
    covariance, effects = root @ root.T, np.c_[np.ones(n_values), RNG.standard_normal((n_values, n_effects - 1))]
    values, whole = RNG.standard_normal(n_values), covariance + ratio * np.eye(n_values)

    def density(scale: float) -> float:
        return float(np.exp(oracle.log_density(values, 0.0, scale * whole + wide * effects @ effects.T)))

    flat = (2 * np.pi * wide) ** (n_effects / 2) * np.sqrt(np.linalg.det(effects.T @ effects))
    found = one_signal.integrated(covariance, effects, values, np.array([ratio]), is_known)
    expected = density(1 / ratio) if is_known else quad(lambda log: density(np.exp(log)), -9, 9, limit=400)[0]
    assert abs(float(found.log_evidence[0]) - np.log(expected * flat)) < 2e-4


@pytest.mark.parametrize("is_known", [False, True])
def test_values_left_out_are_those_of_models_without_them(is_known):
    """(19j), by deleting each value and solving again; (19h), by generalised least squares."""
    n_values, ratios = 9, np.array([0.2, 1.5])
    root = RNG.standard_normal((n_values, n_values))
    covariance, effects = root @ root.T, np.c_[np.ones(n_values), RNG.standard_normal(n_values)]
    values = RNG.standard_normal(n_values)
    found = one_signal.integrated(covariance, effects, values, ratios, is_known)
    for number, ratio in enumerate(ratios):
        whole = covariance + ratio * np.eye(n_values)
        inverse = np.linalg.inv(whole)
        least = np.linalg.solve(effects.T @ inverse @ effects, effects.T @ inverse @ values)
        np.testing.assert_allclose(found.coefficients[:, number], least, rtol=1e-9)
        for place in range(n_values):
            seen = np.arange(n_values) != place
            mean, spread, scale = universal(whole, effects, seen, values[seen])
            if is_known:
                expected = multivariate_normal(mean, spread / ratio).logpdf(values[place])
            else:
                expected = student.logpdf(values[place], n_values - 3, mean[0], np.sqrt(scale * spread[0, 0]))
            assert abs(found.left_out[place, number] - expected) < 1e-8


def test_the_default_is_a_mixture_of_ts_by_universal_kriging():
    """(19h), (19i): every grid point against dense algebra, and quantiles, densities and draws of their mixture."""
    model = GraphGPRegressor(GRAPH).fit(None, KNOWN)
    assert {type(kernel) for kernel in model.graph_kernel_} <= {Matern, Identity}
    points, seen = matrices(model), ~HIDDEN
    freedom, laws = seen.sum() - 1, []
    for weight, whole, _ in points:
        mean, spread, scale = universal(whole, np.ones((30, 1)), seen, TRUTH[seen])
        assert abs(scale * freedom / (freedom - 2) - 1) < 1e-9  # already in the covariance
        laws.append((weight, mean, spread * scale))
    weights = np.array([weight for weight, *_ in laws])
    mean = weights @ [one for _, one, _ in laws]
    variance = weights @ [np.diag(one) * freedom / (freedom - 2) for *_, one in laws]
    variance = variance + weights @ [(one - mean) ** 2 for _, one, _ in laws]
    completed, std = model.impute(None, KNOWN)
    np.testing.assert_allclose(completed[0, HIDDEN], mean, rtol=1e-9)
    np.testing.assert_allclose(std[0, HIDDEN], np.sqrt(variance), rtol=1e-8)
    field = model.posterior_.imputed(np.array([0]))
    upper = field.quantile(0.95)[0, HIDDEN]
    below = [student.cdf(upper, freedom, one, np.sqrt(np.diag(own))) for _, one, own in laws]
    np.testing.assert_allclose(weights @ below, 0.95, atol=1e-7)
    joint = logsumexp([np.log(w) + multivariate_t.logpdf(TRUTH[HIDDEN], one, own, freedom) for w, one, own in laws])
    assert abs(field.log_density(np.where(HIDDEN, TRUTH, np.nan)[None]) - joint) < 1e-7
    drawn = field.sample(4_000, np.random.default_rng(0), include_noise=True)[:, 0, HIDDEN]
    errors = (drawn.mean(axis=0) - mean) / np.sqrt(variance / 4_000)
    assert np.max(np.abs(errors)) < 4.5
    np.testing.assert_allclose(drawn.std(axis=0), np.sqrt(variance), rtol=0.1)
    some = field.given(np.where(np.arange(30) == 1, TRUTH, np.nan)[None])  # hidden before
    more = seen | (np.arange(30) == 1)
    part = model.posterior_.parts[0][1].imputed(np.array([0])).given(np.where(np.arange(30) == 1, TRUTH, np.nan)[None])
    mean, spread, scale = universal(points[0][1], np.ones((30, 1)), more, TRUTH[more])
    np.testing.assert_allclose(part.mean[0, ~more], mean, rtol=1e-9)
    expected = np.diag(spread) * scale * (freedom + 1) / (freedom - 1)
    np.testing.assert_allclose(part.variance(include_noise=True)[0, ~more], expected, rtol=1e-8)
    assert np.all(np.isfinite(some.mean))


def test_leaving_out_is_that_of_the_closed_form():
    model = GraphGPRegressor(GRAPH, [Diffusion(), Matern()]).fit(None, KNOWN)
    left, seen = model.leave_one_out("entry"), ~HIDDEN
    freedom, logs = seen.sum() - 2, []
    for _, whole, _ in matrices(model):
        rows = []
        for place in np.flatnonzero(seen):
            rest = seen & (np.arange(30) != place)
            mean, spread, scale = universal(whole, np.ones((30, 1)), rest, TRUTH[rest])
            own = np.flatnonzero(~rest).tolist().index(place)
            rows.append(student.logpdf(TRUTH[place], freedom, mean[own], np.sqrt(scale * spread[own, own])))
        logs.append(rows)
    weights = [weight for weight, *_ in matrices(model)]
    np.testing.assert_allclose(
        left.log_density[0, seen], logsumexp(logs, axis=0, b=np.array(weights)[:, None]), atol=1e-7
    )
    assert np.all(np.isnan(left.log_density[0, HIDDEN]))


def test_a_new_signal_has_the_level_and_the_scale_of_the_first():
    """Without inputs: about the level, uncertain as generalised least squares has it."""
    model = GraphGPRegressor(GRAPH).fit(None, KNOWN)
    mean, std = model.predict(np.empty((1, 0)), return_std=True, include_noise=True)
    seen, means, squares = ~HIDDEN, [], []
    for _, whole, _ in matrices(model):
        inverse = np.linalg.inv(whole[np.ix_(seen, seen)])
        means.append(np.sum(inverse @ TRUTH[seen]) / np.sum(inverse))
        squares.append(np.diag(whole) + 1 / np.sum(inverse) + means[-1] ** 2)
    weights = np.array([weight for weight, *_ in matrices(model)])
    np.testing.assert_allclose(mean[0], weights @ means, rtol=1e-9)
    np.testing.assert_allclose(std[0], np.sqrt(weights @ squares - (weights @ means) ** 2), rtol=1e-7)


# ---------------------------------------------------------------------------------- covariates, weights, known noise


def test_effects_are_those_of_generalised_least_squares(tmp_path):
    """Means of coefficients and of hidden values, model by model, and 90% intervals by t's of 20 - 3 values."""
    slopes = RNG.standard_normal((30, 2))
    truth = TRUTH + slopes @ [1.0, -2.0]
    known = np.where(HIDDEN, np.nan, truth)[None]
    model = GraphGPRegressor(GRAPH).fit(None, known, covariates=slopes)
    parts, columns, seen = model.posterior_.parts, np.c_[np.ones(30), slopes], ~HIDDEN
    for _, part in parts[:: len(parts) // 4]:
        kernel, noise = part.prior.graph_kernel, part.prior.noise_variance + part.likelihood.scale**2
        laplacian = oracle.laplacian(GRAPH.weights.toarray(), kernel.laplacian)
        whole = oracle.matrix_function(laplacian, kernel.power) + noise * np.eye(30)
        mean, _, scale = universal(whole, columns, seen, truth[seen])
        np.testing.assert_allclose(part.imputed(np.array([0])).mean[0, HIDDEN], mean, rtol=2e-5)
        assert 0.25 < scale < 4  # of a draw: 17 / chi^2 of 17 degrees of freedom
    assert np.all(np.abs(model.coefficients_.values[1:] - [1.0, -2.0]) < 4 * model.coefficients_.errors[1:])
    assert model.coefficients_.names == ("intercept", "covariate 0", "covariate 1")
    model.save(tmp_path / "model.sgp")
    imputed = [one.impute(None, known, covariates=slopes) for one in (model, load(tmp_path / "model.sgp"))]
    np.testing.assert_array_equal(*imputed)


@pytest.mark.slow
def test_intervals_with_covariates_hold_what_they_say():
    """Four covariates and 12 of 20 values: intervals of one model of latent signals held 50% before."""
    held = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph = Graph.from_points(rng.random((20, 2)), n_neighbors=4)
        smooth = np.linalg.inv(np.eye(20) + graph.laplacian().toarray())
        slopes, hidden = rng.standard_normal((20, 4)), np.arange(20) >= 12
        truth = slopes @ rng.standard_normal(4) + smooth @ rng.standard_normal(20) + 0.3 * rng.standard_normal(20)
        known = np.where(hidden, np.nan, truth)[None]
        model = GraphGPRegressor(graph).fit(None, known, covariates=slopes)
        below = model.posterior_.imputed(np.array([0])).distribution(truth[None])[0, hidden]
        held.append(np.mean(np.abs(below - 0.5) < 0.45))
    error = np.std(held) / np.sqrt(len(held))
    assert 0.9 - 3 * error < np.mean(held) < 0.9 + 3 * error + 0.03


def test_a_weight_is_a_number_of_readings():
    """The mean of k readings with weight k is as informative of the signal as the readings are."""
    counts, nodes = RNG.integers(1, 4, 20), np.flatnonzero(~HIDDEN)
    means = TRUTH[nodes] + RNG.standard_normal(20) / np.sqrt(counts)
    laplacian = GRAPH.laplacian().toarray()
    covariance = oracle.matrix_function(laplacian, Matern(2.0, 2.0).power)[np.ix_(nodes, nodes)]
    roots, ratios = 1 / np.sqrt(counts), np.array([0.1, 1.0])
    whitened = covariance / np.multiply.outer(roots, roots)
    by_weight = one_signal.integrated(whitened, 1 / roots[:, None], means / roots, ratios, False)
    again = np.repeat(np.arange(20), counts)
    readings = means[again] + np.concatenate(
        [np.resize([0.4, -0.4], k - k % 2).tolist() + [0.0] * (k % 2) for k in counts]
    )
    single = covariance[np.ix_(again, again)]
    by_reading = one_signal.integrated(single, np.ones((again.size, 1)), readings, ratios, False)
    # the readings tell of the noise too, so that scales differ; levels given the ratio do not
    np.testing.assert_allclose(by_weight.coefficients, by_reading.coefficients, rtol=1e-9)
    values = np.full((1, 30), np.nan)
    values[0, nodes] = means
    weights = np.ones((1, 30))
    weights[0, nodes] = counts
    model = GraphGPRegressor(GRAPH).fit(None, values, weights=weights)
    for _, part in model.posterior_.parts[::12]:
        kernel, noise = part.prior.graph_kernel, part.likelihood.scale**2 / weights[0] + part.prior.noise_variance
        whole = oracle.matrix_function(oracle.laplacian(GRAPH.weights.toarray(), kernel.laplacian), kernel.power)
        expected, _, _ = universal(whole + np.diag(noise), np.ones((30, 1)), ~HIDDEN, means)
        np.testing.assert_allclose(part.imputed(np.array([0])).mean[0, HIDDEN], expected, rtol=2e-5)


def test_known_noise_stays_what_it_is():
    """One number, or one per value: normal predictions, whose level is uncertain."""
    model = GraphGPRegressor(GRAPH, noise_variance=0.04).fit(None, KNOWN)
    assert abs(model.noise_variance_ - 0.04) < 1e-12
    mean, squares = model.impute(None, KNOWN), []
    for _, whole, _ in matrices(model):
        means, spread, _ = universal(whole, np.ones((30, 1)), ~HIDDEN, TRUTH[~HIDDEN])
        squares.append([means, np.diag(spread) + means**2])
    weights = np.array([weight for weight, *_ in matrices(model)])
    first, second = np.tensordot(weights, squares, axes=1)
    np.testing.assert_allclose(mean[0][0, HIDDEN], first, rtol=1e-9)
    np.testing.assert_allclose(mean[1][0, HIDDEN], np.sqrt(second - first**2), rtol=1e-6)
    noises = np.linspace(0.02, 0.06, 30)
    model = GraphGPRegressor(GRAPH).fit(None, KNOWN, noise_variance=noises)
    for _, part in model.posterior_.parts[::8]:
        kernel = part.prior.graph_kernel
        whole = oracle.matrix_function(oracle.laplacian(GRAPH.weights.toarray(), kernel.laplacian), kernel.power)
        expected, _, _ = universal(whole + np.diag(noises), np.ones((30, 1)), ~HIDDEN, TRUTH[~HIDDEN])
        np.testing.assert_allclose(part.imputed(np.array([0])).mean[0, HIDDEN], expected, rtol=2e-5)


# ------------------------------------------------------------------------------------------ kernels, and what follows

ONE_STRENGTH = [Diffusion(), RandomWalk(), LocalAverage(), Diffusion(strength_bounds="fixed"), Identity()]


def test_kernels_of_a_list_are_stacked(tmp_path):
    """With weights that sum to one, in the order of the list; all that works on one model works on them."""
    model = GraphGPRegressor(GRAPH, Stacking(ONE_STRENGTH)).fit(None, KNOWN)
    assert [type(one) for one in model.graph_kernel_] == [type(one) for one in ONE_STRENGTH]
    assert abs(model.kernel_weights_.sum() - 1) < 1e-12
    assert model.graph_kernel_[3].strength == Diffusion().strength
    assert all(one.label in model.summary() for one in ONE_STRENGTH)
    scores = np.array([one.score for one in model.learnt_.tried])
    assert scores[np.argmax(model.kernel_weights_)] > scores.min()
    new = np.where(HIDDEN, TRUTH + 0.5, np.nan)[None]
    rows = np.empty((1, 0))
    model.save(tmp_path / "model.sgp")
    again = load(tmp_path / "model.sgp")
    for one in (model, again.condition_on(None, new), model.transfer(Graph(GRAPH.weights))):
        mean, std = one.predict(rows, return_std=True)
        assert np.all(np.isfinite(mean))
        assert np.all(std > 0)
        assert one.sample_y(rows, 3).shape == (1, 30, 3)
    np.testing.assert_array_equal(again.impute(None, KNOWN), model.impute(None, KNOWN))
    assert np.isfinite(model.log_predictive_density(rows, new))


def test_inputs_are_those_of_the_signal_itself(tmp_path):
    """Where it was observed predictions are those of the signal, elsewhere they go back to the level."""
    model = GraphGPRegressor(GRAPH).fit([[1.0]], KNOWN)
    completed, std = GraphGPRegressor(GRAPH).fit(None, KNOWN).impute(None, KNOWN)
    mean, own = model.predict([[1.0]], return_std=True, include_noise=True)
    np.testing.assert_allclose(mean[0, HIDDEN], completed[0, HIDDEN], rtol=1e-9)
    np.testing.assert_allclose(own[0, HIDDEN], std[0, HIDDEN], rtol=1e-9)
    assert model.report(tmp_path / "report.html").exists()


def test_a_complete_signal_and_signals_in_other_units():
    """Every value observed; and predictions in units of a thousandth."""
    model = GraphGPRegressor(GRAPH).fit(None, TRUTH[None])
    left = model.leave_one_out("entry")
    assert np.all(np.isfinite(left.log_density))
    small = GraphGPRegressor(GRAPH).fit(None, 1e-3 * KNOWN)
    np.testing.assert_allclose(
        1e3 * small.impute(None, 1e-3 * KNOWN)[0],
        GraphGPRegressor(GRAPH).fit(None, KNOWN).impute(None, KNOWN)[0],
        rtol=1e-7,
    )


@pytest.mark.parametrize(
    ("settings", "values", "message"),
    [
        ({"graph_kernel": [Polynomial(2), Matern()]}, KNOWN, "at most one further parameter, .* got Polynomial"),
        ({"graph_kernel": [Diffusion(), Matern(amplitude_bounds="fixed")]}, KNOWN, "a free amplitude"),
        ({"graph_kernel": [Diffusion(), Matern()], "prior": None}, KNOWN, "with prior='weak'"),
        ({"graph_kernel": [Diffusion(), Matern()]}, np.where(np.arange(30) < 4, TRUTH, np.nan)[None], "5 to 2,000"),
        ({"graph_kernel": [Diffusion(), Matern()], "noise_variance": (0.1, 0.2)}, KNOWN, "bounds of the noise"),
    ],
)  # fmt: skip
def test_what_is_not_integrated_is_refused_by_name(settings, values, message):
    with pytest.raises(ValueError, match=message):
        GraphGPRegressor(GRAPH, **settings).fit(None, values)


def test_without_a_prior_one_kernel_has_its_likeliest_parameters():
    model = GraphGPRegressor(GRAPH, prior=None).fit(None, KNOWN)
    (kernel,) = model.graph_kernel_
    assert isinstance(kernel, Diffusion)
    assert len(model.posterior_.parts) == 1
