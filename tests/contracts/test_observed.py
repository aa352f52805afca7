"""The estimator with a likelihood, covariates or known noise: every verb, against dense formulas and by its laws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, poisson
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

import spectralgp
from oracle import relative_error
from spectralgp import Graph, GraphGPRegressor, Polynomial
from spectralgp.datasets import load_us_income
from spectralgp.estimators.observing import Coefficients
from spectralgp.likelihoods import Gaussian, NegativeBinomial, Poisson, StudentT

N_SIGNALS, N_NODES = 12, 10
EDGES = [(node, (node + 1) % N_NODES) for node in range(N_NODES)] + [(0, 5)]
GRAPH = Graph.from_edges(EDGES)
NAMES = [f"n{node}" for node in range(N_NODES)]
KNOWN_NOISE = 1e-8  # the bar, against the dense oracle
NATS = 0.05  # that a bound may be below the log density, for few values


def data(seed: int = 0):
    rng = np.random.default_rng(seed)
    inputs = np.sort(rng.uniform(0.0, 3.0, (N_SIGNALS, 1)), axis=0)
    latent = np.sin(2 * inputs + 0.6 * np.arange(N_NODES)) + 0.5
    exposure = rng.uniform(0.5, 3.0, latent.shape)
    return inputs, latent, exposure, rng


def counts(missing: float = 0.1):
    inputs, latent, exposure, rng = data()
    values = rng.poisson(exposure * np.exp(latent)).astype(float)
    values[rng.random(values.shape) < missing] = np.nan
    return inputs, values, exposure


@pytest.fixture(scope="module")
def fitted():
    inputs, values, exposure = counts()
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), likelihood="poisson")
    return model.fit(inputs, values, exposure=exposure)


@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial", "binomial", "bernoulli", "student_t"])
def test_every_likelihood_is_learnt_and_predicts_in_the_units_of_values(likelihood):
    inputs, latent, _, rng = data()
    beside = {"trials": 5} if likelihood == "binomial" else {}
    draw = spectralgp.likelihoods.as_likelihood(likelihood).started(1.0)
    latent = 3 * latent if likelihood == "bernoulli" else latent  # else so few bits say nothing
    values = draw.draw(latent, np.full(latent.shape, float(beside.get("trials", 1))), rng)
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), likelihood=likelihood).fit(inputs, values, **beside)
    assert model.fits_[0].converged
    mean, low, high = model.predict(inputs, return_quantiles=(0.05, 0.95), **beside)
    inside = np.mean((values >= low) & (values <= high))
    assert 0.85 < inside <= 1.0
    assert np.corrcoef(mean.ravel(), values.ravel())[0, 1] > 0.4
    assert likelihood in model.summary().lower().replace("studentt", "student_t").replace(
        "negativebinomial", "negative_binomial"
    )


@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial", "student_t"])
def test_learning_takes_few_steps_along_the_border_of_what_filters_may_be(likelihood):
    """A residual that ends at zero, and what trades off against it: noise of the latent signals, or of the likelihood.

    Before, steps that would have led beyond the border were not lengthened at all: 60 of them for Poisson counts, and
    with parameters of a likelihood beside them 100 were not enough.
    """
    rng = np.random.default_rng(0)
    graph = Graph.from_points(rng.random((40, 2)), 5)
    inputs = np.linspace(0.0, 6.0, 25)[:, None]
    eigenvalues, vectors = np.linalg.eigh(graph.laplacian("normalized").toarray())
    root = np.linalg.cholesky(RBF(0.7)(inputs) + 1e-9 * np.eye(25))
    latent = 0.7 + 2 * (root @ rng.standard_normal((25, 40)) * np.exp(-2 * eigenvalues)) @ vectors.T
    noise = 0.3 * rng.standard_normal(latent.shape)
    values = latent + noise if likelihood == "student_t" else rng.poisson(np.exp(latent + noise)).astype(float)
    model = GraphGPRegressor(graph, likelihood=likelihood).fit(inputs, values)
    assert model.fits_[0].converged
    assert len(model.fits_[0].stages) <= 40


@pytest.mark.slow
def test_outliers_leave_a_student_t_alone_and_its_parameters_settle():
    """Incomes in per cent, of which four in a hundred are spoilt: with a Gaussian these are what is explained."""
    data, rng = load_us_income(), np.random.default_rng(0)
    truth, years = 100 * data.relative_incomes[61:], data.years[61:, None].astype(float)
    spoilt = rng.random(truth.shape) < 0.04
    values = truth + np.where(spoilt, 50.0 * rng.choice([-1, 1], truth.shape), 0.0)
    errors = {}
    for likelihood in ("gaussian", "student_t"):
        model = GraphGPRegressor(data.graph, Polynomial(2), likelihood=likelihood).fit(years, values)
        errors[likelihood] = float(np.sqrt(np.mean(np.square(model.predict(years) - truth))))
    assert model.fits_[0].converged
    assert errors["student_t"] < 0.3 * errors["gaussian"]


def test_predictions_are_those_of_the_dense_law(fitted):
    """Means and deviations at new inputs, from the sites by dense matrices: equations (35), (8)."""
    inputs, values, _ = counts()
    model, posterior = fitted.fits_[0].model, fitted.posterior_
    new = np.array([[0.2], [1.7]])
    both = np.vstack([inputs, new])
    kernel = model.input_kernel.covariance(both)
    eigenvalues, vectors = model.spectrum.eigenvalues, model.spectrum.eigenvectors
    power, own = model.nodes.powers(eigenvalues)
    dense = np.kron(kernel, (vectors * power) @ vectors.T) + np.kron(np.eye(len(both)), (vectors * own) @ vectors.T)
    sites, n_known = posterior.sites, values.size
    _, slopes, curvatures = (one.ravel() for one in sites.terms)
    seen = np.flatnonzero(curvatures > 0)
    known = dense[:n_known, :n_known]
    noisy = known[np.ix_(seen, seen)] + np.diag(1 / curvatures[seen])
    across = dense[n_known:, :n_known][:, seen]
    pseudo = sites.mean.ravel()[seen] + slopes[seen] / curvatures[seen] - sites.coefficients[0]
    mean = sites.coefficients[0] + across @ np.linalg.solve(noisy, pseudo)
    variance = np.diag(dense[n_known:, n_known:] - across @ np.linalg.solve(noisy, across.T))
    rates = np.exp(mean + variance / 2).reshape(2, N_NODES)
    found, std = fitted.predict(new, return_std=True)
    assert relative_error(found, rates) < 1e-6
    assert relative_error(std, rates * np.sqrt(np.expm1(variance)).reshape(2, N_NODES)) < 1e-6
    doubled = fitted.predict(new, exposure=2.0)
    assert relative_error(doubled, 2 * rates) < 1e-6


def test_densities_are_lower_bounds_that_are_near(fitted):
    """One entry of each signal against draws of the latent signals; together against the chain of two."""
    new = np.array([[0.2], [1.7]])
    values = np.full((2, N_NODES), np.nan)
    values[0, :2], values[1, 3] = (2.0, 1.0), 4.0
    alone = fitted.log_predictive_density(new, values, joint=False)
    latent, seen = fitted.posterior_.at(new).latent, np.isfinite(values).ravel()
    covariance = np.block([[latent.between(one, other) for other in range(2)] for one in range(2)])
    law = multivariate_normal(latent.mean.ravel()[seen], covariance[np.ix_(seen, seen)])
    rates = np.exp(law.rvs(40_000, random_state=0))
    logs = poisson.logpmf(values.ravel()[seen], rates)
    for row, own in enumerate((slice(0, 2), slice(2, 3))):
        weights = np.exp(logs[:, own].sum(axis=1))
        truth, error = np.log(weights.mean()), weights.std() / weights.mean() / 200
        assert -NATS - 4 * error < alone[row] - truth < 4 * error
    weights = np.exp(logs.sum(axis=1))
    truth, error = np.log(weights.mean()), weights.std() / weights.mean() / 200
    assert -NATS - 4 * error < fitted.log_predictive_density(new, values) - truth < 4 * error


def test_what_is_observed_of_new_signals_is_conditioned_on(fitted):
    """The same as a model with those signals among its own, but for the fixed effects, which both find."""
    new, observed = np.array([[0.2]]), np.full((1, N_NODES), np.nan)
    observed[0, :4] = [0.0, 2.0, 5.0, 1.0]
    given = fitted.predict(new, observed=observed)
    more = fitted.condition_on(new, observed)
    filled, std = more.impute(new, observed)
    assert relative_error(given[0, 4:], filled[0, 4:]) < 1e-6
    assert np.array_equal(filled[0, :4], observed[0, :4])
    assert np.array_equal(std[0] > 0, np.isnan(observed[0]))
    further, _ = fitted.impute(new, observed)
    assert relative_error(further, filled) < 1e-6
    nothing = np.full((1, N_NODES), np.nan)
    assert relative_error(fitted.predict(new, observed=nothing), fitted.predict(new)) < 1e-12


def test_training_signals_are_filled_in_by_their_own_law(fitted):
    inputs, values, exposure = counts()
    filled, std = fitted.impute(inputs, values)
    sites = fitted.posterior_.sites
    expected = exposure * np.exp(sites.mean + sites.variance / 2)
    holes = np.isnan(values)
    assert relative_error(filled[holes], expected[holes]) < 1e-9
    assert np.array_equal(filled[~holes], values[~holes])
    assert np.all(std[holes] > np.sqrt(expected[holes]))


def test_leaving_out_is_deleting(fitted):
    """A signal's log density without its own values, against sites that were found without them."""
    _, values, exposure = counts()
    row, left = 3, fitted.leave_one_out("signal")
    posterior = fitted.posterior_
    kept = np.where(np.arange(N_SIGNALS)[:, None] == row, np.nan, values)
    observations = posterior.observed_by.observations(kept)
    without = spectralgp.fields.find_sites(posterior.sites.covariance, observations)
    law = without.mean[row], without.variance[row], exposure[row]
    # sites of the others stay as they are, and fixed effects too: near, not the same
    assert np.max(np.abs(left.mean[row] / Poisson().mean(*law) - 1)) < 0.1
    by_entry = fitted.leave_one_out("entry")
    assert np.array_equal(np.isnan(by_entry.log_density), np.isnan(values))
    assert fitted.leave_one_out("node").log_density.shape == (N_NODES,)
    # what is known of a value without itself is less than with it
    assert np.nanmean(by_entry.log_density) < np.nanmean(
        Poisson().log_density(np.nan_to_num(values), posterior.sites.mean, posterior.sites.variance, exposure)
    )


def test_draws_have_the_predicted_moments(fitted):
    new = np.array([[0.2], [1.7]])
    mean, std = fitted.predict(new, return_std=True, include_noise=True)
    drawn = fitted.sample_y(new, 4_000, include_noise=True)
    assert np.all(drawn == np.floor(drawn))
    assert np.all(np.abs(drawn.mean(axis=-1) - mean) < 5 * std / np.sqrt(4_000))
    rates = fitted.sample_y(new, 4_000)
    own = fitted.predict(new, return_std=True)[1]
    assert np.all(np.abs(rates.mean(axis=-1) - mean) < 5 * own / np.sqrt(4_000))


def test_fixed_effects_are_found_with_their_errors():
    """Over draws of the data, errors of a coefficient have the standard error that is stated."""
    missed = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        covariate = rng.standard_normal(N_NODES)
        latent = 0.3 + 0.7 * covariate + 0.3 * rng.standard_normal((N_SIGNALS, N_NODES))
        values = rng.poisson(3 * np.exp(latent)).astype(float)
        model = GraphGPRegressor(GRAPH, Polynomial(1), likelihood="poisson")
        model.fit(None, values, exposure=3.0, covariates={"slope": covariate})
        assert model.coefficients_.names == ("intercept", "slope")
        missed.append((model.coefficients_["slope"] - 0.7) / model.coefficients_.errors[1])
    assert abs(np.mean(missed)) < 4 / np.sqrt(12)
    assert 0.5 < np.sqrt(np.mean(np.square(missed))) < 2.0
    assert "slope" in repr(model.coefficients_)


# ---------------------------------------------------------------------------------------------------- known noise


def conditioned(dense, noisy, values, seen):
    """The level by generalised least squares, and means and variances of what comes after the values given those."""
    ones = np.ones(seen.size)
    solved = np.linalg.solve(noisy, np.stack([values[seen], ones], axis=1))
    level = ones @ solved[:, 0] / (ones @ solved[:, 1])
    across = dense[values.size :][:, seen]
    mean = level + across @ (solved[:, 0] - level * solved[:, 1])
    return level, mean, np.diag(dense[values.size :, values.size :] - across @ np.linalg.solve(noisy, across.T))


def test_known_noise_is_that_of_the_dense_oracle():
    """The bar: 1e-8, given the hyperparameters that were learnt."""
    inputs, latent, _, rng = data()
    noise = rng.uniform(0.01, 0.5, latent.shape)
    values = latent + np.sqrt(noise) * rng.standard_normal(latent.shape)
    values[2, 3] = np.nan
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF()).fit(inputs, values, noise_variance=noise)
    prior = model.fits_[0].model
    new = np.array([[0.2], [1.7]])
    both = np.vstack([inputs, new])
    vectors, eigenvalues = prior.spectrum.eigenvectors, prior.spectrum.eigenvalues
    power, own = prior.graph_kernel.power(eigenvalues), prior.graph_kernel.residual_power(eigenvalues)
    dense = np.kron(prior.input_kernel.covariance(both), (vectors * power) @ vectors.T)
    dense += np.kron(np.eye(len(both)), (vectors * own) @ vectors.T)
    seen = np.flatnonzero(np.isfinite(values.ravel()))
    noisy = dense[np.ix_(seen, seen)] + np.diag(noise.ravel()[seen])
    level, mean, variance = conditioned(dense, noisy, values.ravel(), seen)
    found, std = model.predict(new, return_std=True)
    assert relative_error(found.ravel(), mean) < KNOWN_NOISE
    assert relative_error(std.ravel(), np.sqrt(variance)) < KNOWN_NOISE
    total = model.predict(new, return_std=True, include_noise=True, noise_variance=0.3)[1]
    assert relative_error(total.ravel(), np.sqrt(variance + 0.3)) < KNOWN_NOISE
    # the evidence too, at the level that makes it highest
    expected = multivariate_normal(np.full(seen.size, level), noisy).logpdf(values.ravel()[seen])
    assert abs(model.log_marginal_likelihood_ - expected) < 1e-5


def test_weights_divide_a_noise_that_is_learnt(tmp_path):
    """Against the dense oracle at what was learnt; the scale is that of the noise at weight one."""
    inputs, latent, _, rng = data()
    weights = rng.uniform(0.2, 5.0, latent.shape)
    values = latent + 0.4 / np.sqrt(weights) * rng.standard_normal(latent.shape)
    values[2, 3], weights[2, 3] = np.nan, 0.0  # of what was not observed a weight says nothing
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), residual=None).fit(inputs, values, weights=weights)
    assert model.fits_[0].converged
    assert abs(np.log(model.likelihood_.scale / 0.4)) < 0.2
    prior, scale = model.fits_[0].model, model.likelihood_.scale
    new = np.array([[0.2], [1.7]])
    both = np.vstack([inputs, new])
    vectors, power = prior.spectrum.eigenvectors, prior.graph_kernel.power(prior.spectrum.eigenvalues)
    dense = np.kron(prior.input_kernel.covariance(both), (vectors * power) @ vectors.T)
    seen = np.flatnonzero(np.isfinite(values.ravel()))
    noisy = dense[np.ix_(seen, seen)] + np.diag(model.noise_variance_ + scale**2 / weights.ravel()[seen])
    _, mean, variance = conditioned(dense, noisy, values.ravel(), seen)
    found, std = model.predict(new, return_std=True)
    assert relative_error(found.ravel(), mean) < KNOWN_NOISE
    assert relative_error(std.ravel(), np.sqrt(variance)) < KNOWN_NOISE
    total = model.predict(new, return_std=True, include_noise=True, weights=4.0)[1]
    expected = variance + model.noise_variance_ + scale**2 / 4
    assert relative_error(total.ravel(), np.sqrt(expected)) < KNOWN_NOISE
    model.save(tmp_path / "weights.sgp")
    again = spectralgp.load(tmp_path / "weights.sgp")
    assert np.array_equal(again.predict(new, return_std=True, include_noise=True, weights=4.0)[1], total)
    weights[0, 0] = 0.0
    with pytest.raises(ValueError, match=r"weights must be finite and above 0 .* row 0, column 0"):
        model.fit(inputs, values, weights=weights)
    with pytest.raises(ValueError, match="weights must be left out where noise_variance"):
        model.fit(inputs, values, weights=2.0, noise_variance=1.0)
    with pytest.raises(ValueError, match="weights must be left out with likelihood='poisson'"):
        GraphGPRegressor(GRAPH, likelihood="poisson").fit(None, np.ones((2, N_NODES)), weights=2.0)


def test_a_constant_array_is_the_constant():
    inputs, latent, _, rng = data()
    values = latent + 0.3 * rng.standard_normal(latent.shape)
    constant = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), noise_variance=0.09).fit(inputs, values)
    given = GraphGPRegressor(GRAPH, Polynomial(1), RBF())
    given.fit(inputs, values, noise_variance=np.full(values.shape, 0.09))
    assert np.array_equal(given.predict(inputs), constant.predict(inputs))
    assert given.fits_[0].n_evaluations == constant.fits_[0].n_evaluations


def test_noise_that_hardly_varies_is_near_the_constant():
    """Two ways, expectation-maximisation and none, to the same maximum."""
    inputs, latent, _, rng = data()
    values = latent + 0.3 * rng.standard_normal(latent.shape)
    noise = 0.09 * (1 + 1e-9 * rng.standard_normal(values.shape))
    settings = {"scale": None, "carry": None}
    constant = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), **settings).fit(inputs, values, noise_variance=0.09)
    given = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), **settings).fit(inputs, values, noise_variance=noise)
    assert abs(given.log_marginal_likelihood_ - constant.log_marginal_likelihood_) < 0.5
    assert relative_error(given.predict(inputs), constant.predict(inputs)) < 0.05


def test_covariates_in_a_gaussian_model_are_generalised_least_squares():
    inputs, latent, _, rng = data()
    covariate = rng.standard_normal(N_NODES)
    values = latent + 2.0 * covariate + 0.2 * rng.standard_normal(latent.shape)
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF()).fit(inputs, values, covariates=covariate[:, None])
    posterior = model.posterior_
    covariance = posterior.sites.covariance.submatrix(np.ones(values.shape, dtype=bool))
    covariance += model.likelihood_.scale**2 * np.eye(values.size)
    columns = np.stack([np.ones(values.size), np.tile(covariate, N_SIGNALS)], axis=1)
    information = columns.T @ np.linalg.solve(covariance, columns)
    expected = np.linalg.solve(information, columns.T @ np.linalg.solve(covariance, values.ravel()))
    assert relative_error(model.coefficients_.values, expected) < 1e-6
    assert relative_error(model.coefficients_.errors, np.sqrt(np.diag(np.linalg.inv(information)))) < 1e-6


# --------------------------------------------------------------------------------------------- files, and what is not


@pytest.mark.parametrize("likelihood", ["poisson", NegativeBinomial(), StudentT(freedom=5.0)])
def test_files_hold_all_of_it(likelihood, tmp_path):
    inputs, values, exposure = counts()
    covariates = {"own": exposure - 1.0}
    seen = {} if isinstance(likelihood, StudentT) else {"exposure": exposure}
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), likelihood=likelihood)
    model.fit(inputs, values, covariates=covariates, **seen)
    model.save(tmp_path / "model.sgp")
    again = spectralgp.load(tmp_path / "model.sgp")
    for one in (model, again):
        assert one.coefficients_.names == ("intercept", "own")
    assert np.array_equal(
        again.predict(inputs, covariates=covariates, **seen), model.predict(inputs, covariates=covariates, **seen)
    )
    assert again.likelihood_ == model.likelihood_
    assert again.get_params()["likelihood"] == model.get_params()["likelihood"]
    assert clone(model).likelihood == likelihood


def refused(match, likelihood="poisson", fit=None, values=None, **settings):
    inputs, known, _ = counts(0.0)
    known = known if values is None else values(known.copy())
    with pytest.raises(ValueError, match=match):
        GraphGPRegressor(GRAPH, Polynomial(1), RBF(), likelihood=likelihood, **settings).fit(
            inputs, known, **(fit or {})
        )


def with_entry(value):
    def changed(values):
        values[4, 7] = value
        return values

    return changed


def test_bad_values_are_refused_by_their_place():
    refused("Y must hold counts.*got -1 at row 4, column 7", values=with_entry(-1.0))
    refused("Y must hold counts.*got 2.5 at row 4, column 7", values=with_entry(2.5))
    refused("Y must hold zeros and ones; got 2 at row", "bernoulli", values=lambda one: np.minimum(one, 2))
    refused("Y must hold no more successes.*trials", "binomial", {"trials": 1})
    refused("trials must be given", "binomial")
    refused("trials must be whole numbers", "binomial", {"trials": 7.5})
    exposure = with_entry(0.0)(np.ones((N_SIGNALS, N_NODES)))
    refused("exposure must be finite and above 0.*got 0 at row 4, column 7", fit={"exposure": exposure})
    refused("exposure must be left out", "bernoulli", {"exposure": 1.0})
    refused("exposure must be one number, one for each of the 10 nodes", fit={"exposure": np.ones(3)})
    refused("covariates must not be combinations", fit={"covariates": {"one": np.ones(N_NODES)}})
    refused("covariates must have one row for each of the 10 nodes", fit={"covariates": np.ones((3, 2))})
    match = r"noise_variance must be finite and above 0.*got 0 at row 4, column 7 \(1 such in all\)"
    refused(match, "gaussian", {"noise_variance": exposure})
    refused("weights must be finite and above 0.*got 0 at row 4, column 7", "gaussian", {"weights": exposure})
    refused("weights must be left out where noise_variance is given", "gaussian", {"weights": 1, "noise_variance": 1})
    refused(r"noise_variance must be left out with likelihood='poisson'.*It takes exposure", fit={"noise_variance": 1})


def test_a_scale_of_the_noise_is_not_ignored():
    """It was: noise was learnt whatever scale a Gaussian likelihood had, unless values were weighed."""
    match = r"likelihood must be without a scale.*got Gaussian\(scale=3\.0\)\. Pass noise_variance=9"
    for given in ({}, {"noise_variance": 2.0}, {"covariates": {"own": np.arange(N_NODES)}}):
        refused(match, Gaussian(3.0), given)
    inputs, values, exposure = counts()
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), likelihood=Gaussian(3.0))
    assert model.fit(inputs, values, weights=exposure).likelihood_ == Gaussian(3.0)


def test_covariates_that_differ_between_signals_are_asked_for_again():
    inputs, values, exposure = counts()
    own = np.tile(np.arange(N_NODES) / 10, (N_SIGNALS, 1))
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), likelihood="poisson")
    model.fit(inputs, values, exposure=exposure, covariates={"own": own})
    expected = model.predict(inputs[:2], covariates={"own": own[0]})
    np.testing.assert_array_equal(model.predict(inputs[:2]), expected)
    own[-1, 2] += 0.5
    model.fit(inputs, values, exposure=exposure, covariates={"own": own})
    for given, found in (({}, r"\[\]"), ({"covariates": {"other": own[0]}}, r"\['other'\]")):
        match = rf"covariates must be those of fit, \['own'\], where they differ between signals; got {found}"
        with pytest.raises(ValueError, match=match):
            model.predict(inputs[:2], **given)


def test_what_does_not_carry_over_says_so_by_name(fitted):
    refused("center must be 'auto' or 'global'", center="node")
    refused("scale must be 'auto'", scale="node")
    refused("carry must be 'auto' or None", carry=np.zeros(N_NODES, dtype=int))
    inputs, values, _ = counts()
    several = GraphGPRegressor(GRAPH, [Polynomial(1), Polynomial(2)], RBF(), likelihood="poisson")
    with pytest.raises(ValueError, match="graph_kernel must be one kernel"):
        several.fit(inputs, values)
    with pytest.raises(ValueError, match="return_cov must be False with a likelihood"):
        fitted.predict(np.zeros((1, 1)), return_cov=True)
    with pytest.raises(ValueError, match="likelihood must be 'gaussian' to transfer"):
        fitted.transfer(GRAPH)
    with pytest.raises(ValueError, match="trials must be left out"):
        fitted.predict(np.zeros((1, 1)), trials=3)
    with pytest.raises(TypeError, match="expose must not be given"):
        fitted.predict(np.zeros((1, 1)), expose=3)
    plain = GraphGPRegressor(GRAPH, Polynomial(1), RBF()).fit(*counts(0.0)[:2])
    with pytest.raises(ValueError, match="exposure must be left out where the model was fitted without"):
        plain.predict(np.zeros((1, 1)), exposure=2.0)
    with pytest.raises(ValueError, match="return_quantiles must be left out without a likelihood"):
        plain.predict(np.zeros((1, 1)), return_quantiles=(0.5,))


@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial"])
def test_zeros_alone_make_the_rate_small(likelihood):
    """The rate that zeros make likely has no lower bound; a prior of the fixed effects gives one."""
    inputs, _, exposure = counts()
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), likelihood=likelihood)
    rates = model.fit(inputs, np.zeros(exposure.shape), exposure=exposure).predict(inputs, exposure=1.0)
    assert np.all(rates > 0)
    assert np.max(rates) < 1 / exposure.sum()


def test_a_covariate_that_separates_classes_has_a_finite_effect():
    inputs, latent, _, _ = data()
    side = np.where(np.arange(N_NODES) < 5, -1.0, 1.0)
    values = np.broadcast_to(side > 0, latent.shape).astype(float)
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), likelihood="bernoulli")
    model.fit(inputs, values, covariates=side)
    _, effect = model.coefficients_.values
    assert 3 < effect < np.inf
    share = model.predict(inputs)
    assert np.all((share > 0.9) == (values > 0))
    assert np.all((share < 0.1) == (values == 0))


@pytest.mark.filterwarnings("ignore:the fit of:sklearn.exceptions.ConvergenceWarning")  # the scale has no lower bound
def test_values_that_are_all_the_same_are_predicted():
    inputs = data()[0][::4]  # few: the search goes on to its limit
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), likelihood="student_t")
    model.fit(inputs, np.full((len(inputs), N_NODES), 1.5))
    np.testing.assert_allclose(model.predict(inputs), 1.5, rtol=1e-3)


@pytest.mark.filterwarnings("ignore:the fit of:sklearn.exceptions.ConvergenceWarning")
def test_tails_that_are_learnt_leave_deviations_finite():
    """Of a law without variance too: what is learnt has more than two degrees of freedom."""
    inputs, latent, _, rng = data()
    values = latent + 0.1 * rng.standard_cauchy(latent.shape)
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), likelihood="student_t").fit(inputs, values)
    _, std = model.predict(inputs, return_std=True, include_noise=True)
    assert model.likelihood_.freedom == pytest.approx(2.1, rel=1e-3)
    assert np.isfinite(std).all()


def test_one_map_needs_no_inputs():
    rng = np.random.default_rng(0)
    values = rng.poisson(3.0, (1, N_NODES)).astype(float)
    model = GraphGPRegressor(GRAPH, likelihood="poisson").fit(None, values, exposure=np.arange(1.0, N_NODES + 1))
    mean, low, high = model.predict(None, return_quantiles=(0.05, 0.95), exposure=np.arange(1.0, N_NODES + 1))
    assert mean.shape == (1, N_NODES)
    assert np.all((low <= mean) & (mean <= high))
    filled = model.impute(None, np.where(np.arange(N_NODES) == 3, np.nan, values))[0]
    assert np.isfinite(filled).all()


def test_names_order_columns_of_exposures_too():
    pandas = pytest.importorskip("pandas")
    inputs, values, exposure = counts()
    named = Graph(GRAPH.weights, NAMES)
    order = np.random.default_rng(0).permutation(N_NODES)
    table = pandas.DataFrame(values, columns=NAMES)
    beside = pandas.DataFrame(exposure, columns=NAMES)
    turned = [NAMES[place] for place in order]
    plain = GraphGPRegressor(named, Polynomial(1), RBF(), likelihood="poisson").fit(inputs, table, exposure=beside)
    other = GraphGPRegressor(named, Polynomial(1), RBF(), likelihood="poisson")
    other.fit(inputs, table[turned], exposure=beside)
    found = other.predict(inputs, exposure=beside)
    assert list(found.columns) == turned
    assert relative_error(found[NAMES].to_numpy(), plain.predict(inputs, exposure=beside).to_numpy()) < 1e-6


def test_reports_judge_counts_by_randomised_transforms(fitted, tmp_path):
    left = fitted.leave_one_out()
    assert left.transforms is not None
    known = left.transforms[np.isfinite(left.transforms)]
    assert np.array_equal(np.isnan(left.transforms), np.isnan(counts()[1]))
    assert abs(known.mean() - 0.5) < 4 * np.sqrt(1 / 12 / known.size) + 0.05
    page = fitted.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<html" in page


def test_fixed_effects_are_found_by_name_and_shown_in_columns():
    found = Coefficients(("intercept", "x"), np.array([1.5, -0.25]), np.array([0.125, 2.0]))
    assert (found["x"], found["intercept"], len(found)) == (-0.25, 1.5, 2)
    assert repr(found) == "intercept   1.5 (standard error 0.125)\nx          -0.25 (standard error 2)"
    assert repr(Coefficients((), np.empty(0), np.empty(0))) == "no fixed effects"
