"""The estimator with a likelihood, covariates or known noise: every verb, against dense formulas and by its laws."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm, poisson
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

import oracle
import spectralgp
from oracle import relative_error
from spectralgp import Diffusion, Graph, GraphGPRegressor, PinnedFilter, Polynomial, graph_gp, leave_one_out
from spectralgp.estimators.observing import Coefficients
from spectralgp.model import likelihoods
from spectralgp.model.fields import ObservationModel, condition_latent, observed_with, probability_transforms, sites
from spectralgp.model.signals import read_signals

pytestmark = pytest.mark.usefixtures("learnt_values")  # compared with dense formulas

N_SIGNALS, N_NODES = 12, 10
EDGES = [(node, (node + 1) % N_NODES) for node in range(N_NODES)] + [(0, 5)]
GRAPH = Graph.from_edges(EDGES)
PAIR = np.array([[0.2], [1.7]])  # new inputs
BY_QUADRATURE = 1e-4  # of forty points, where noise is smaller than what is not known of a signal
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
    draw = likelihoods.with_first_values(likelihoods.as_likelihood(likelihood), 1.0)
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
    model = GraphGPRegressor(graph, residual=Polynomial(2), likelihood=likelihood)
    model.fit(inputs, values)
    assert model.fits_[0].converged
    assert len(model.fits_[0].stages) <= 14


def written_out(prior, inputs):
    """Covariance of latent signals at inputs without their white part, by the kernels that were learnt."""
    vectors, eigenvalues = prior.spectrum.eigenvectors, prior.spectrum.eigenvalues
    power, own = prior.graph_kernel.power(eigenvalues), prior.graph_kernel.residual_power(eigenvalues)
    dense = np.kron(prior.input_kernel.covariance(inputs), (vectors * power) @ vectors.T)
    return dense + np.kron(np.eye(len(inputs)), (vectors * own) @ vectors.T)


def conditioned(dense, noise, values, seen, effects, n_known):
    """Means and variances after the first entries, given the seen values of these, and their log density.

    Signals have an intercept with its prior beside the covariance, and values the covariance of the noise.
    """
    noisy, across, prior = dense[np.ix_(seen, seen)] + noise, dense[n_known:][:, seen], effects.precision[0, 0]
    ones, centred = np.ones(seen.size), values - effects.mean[0]
    information = ones @ np.linalg.solve(noisy, ones) + prior
    level = ones @ np.linalg.solve(noisy, centred) / information
    mean = effects.mean[0] + level + across @ np.linalg.solve(noisy, centred - level)
    variance = np.diag(dense[n_known:, n_known:] - across @ np.linalg.solve(noisy, across.T))
    variance = variance + np.square(1 - across @ np.linalg.solve(noisy, ones)) / information
    return mean, variance, multivariate_normal(cov=noisy + 1 / prior).logpdf(centred)


def test_predictions_are_those_of_the_dense_law(fitted):
    """Means and deviations at new inputs, from the sites by dense matrices: equations (35), (8)."""
    inputs, values, _ = counts()
    model, posterior = fitted.fits_[0].model, fitted.posterior_
    dense = written_out(model, np.vstack([inputs, PAIR])) + model.noise_variance * np.eye(values.size + 2 * N_NODES)
    sites, n_known = posterior.sites, values.size
    _, slopes, curvatures = (one.ravel() for one in sites.terms)
    seen = np.flatnonzero(curvatures > 0)
    effects = posterior.observed_by.effects
    pseudo = sites.mean.ravel()[seen] + slopes[seen] / curvatures[seen]
    mean, variance, _ = conditioned(dense, np.diag(1 / curvatures[seen]), pseudo, seen, effects, n_known)
    rates = np.exp(mean + variance / 2).reshape(2, N_NODES)
    found, std = fitted.predict(PAIR, return_std=True)
    assert relative_error(found, rates) < 1e-6
    assert relative_error(std, rates * np.sqrt(np.expm1(variance)).reshape(2, N_NODES)) < 1e-6
    doubled = fitted.predict(PAIR, exposure=2.0)
    assert relative_error(doubled, 2 * rates) < 1e-6


def test_densities_are_lower_bounds_that_are_near(fitted):
    """One entry of each signal against draws of the latent signals; together against the chain of two."""
    new, values = PAIR, np.full((2, N_NODES), np.nan)
    values[0, :2], values[1, 3] = (2.0, 1.0), 4.0
    alone = fitted.log_predictive_density(new, values, joint=False, exposure=1.0)
    latent, seen = fitted.posterior_.at(new).latent, np.isfinite(values).ravel()
    law = multivariate_normal(latent.mean.ravel()[seen], latent.value_covariance(np.isfinite(values)))
    rates = np.exp(law.rvs(40_000, random_state=0))
    logs = poisson.logpmf(values.ravel()[seen], rates)
    for row, own in enumerate((slice(0, 2), slice(2, 3))):
        weights = np.exp(logs[:, own].sum(axis=1))
        truth, error = np.log(weights.mean()), weights.std() / weights.mean() / 200
        assert -NATS - 4 * error < alone[row] - truth < 4 * error
    weights = np.exp(logs.sum(axis=1))
    truth, error = np.log(weights.mean()), weights.std() / weights.mean() / 200
    assert -NATS - 4 * error < fitted.log_predictive_density(new, values, exposure=1.0) - truth < 4 * error


def test_what_is_observed_of_new_signals_is_conditioned_on(fitted):
    """The same as a model with those signals among its own, but for the fixed effects, which both find."""
    new, observed = np.array([[0.2]]), np.full((1, N_NODES), np.nan)
    observed[0, :4] = [0.0, 2.0, 5.0, 1.0]
    given = fitted.predict(new, observed=observed, observed_exposure=1.0)
    more = fitted.condition_on(new, observed, exposure=1.0)
    filled, std = more.impute(new, observed)
    assert relative_error(given[0, 4:], filled[0, 4:]) < 1e-6
    assert np.array_equal(filled[0, :4], observed[0, :4])
    assert np.array_equal(std[0] > 0, np.isnan(observed[0]))
    further, _ = fitted.impute(new, observed, exposure=1.0)
    assert relative_error(further, filled) < 1e-6
    nothing = np.full((1, N_NODES), np.nan)
    assert relative_error(fitted.predict(new, observed=nothing), fitted.predict(new)) < 1e-12


def test_training_signals_are_filled_in_by_their_own_law(fitted):
    inputs, values, exposure = counts()
    filled, std = fitted.impute(inputs, values)
    sites = fitted.posterior_.sites
    expected = exposure * np.exp(sites.mean + sites.variance / 2)
    missing = np.isnan(values)
    assert relative_error(filled[missing], expected[missing]) < 1e-9
    assert np.array_equal(filled[~missing], values[~missing])
    assert np.all(std[missing] > np.sqrt(expected[missing]))


def test_leaving_out_is_deleting(fitted):
    """A signal's log density without its own values, against sites that were found without them."""
    _, values, exposure = counts()
    row, left = 3, fitted.leave_one_out("signal")
    posterior = fitted.posterior_
    kept = np.where(np.arange(N_SIGNALS)[:, None] == row, np.nan, values)
    observations = posterior.observed_by.observations(kept)
    without = spectralgp.model.fields.find_sites(posterior.sites.covariance, observations)
    law = without.mean[row], without.variance[row], exposure[row]
    # sites of the others stay as they are, and fixed effects too: near, not the same
    assert np.max(np.abs(left.mean[row] / spectralgp.Poisson().mean(*law) - 1)) < 0.1
    by_entry = fitted.leave_one_out("entry")
    assert np.array_equal(np.isnan(by_entry.log_density), np.isnan(values))
    assert fitted.leave_one_out("node").log_density.shape == (N_NODES,)
    # what is known of a value without itself is less than with it
    assert np.nanmean(by_entry.log_density) < np.nanmean(
        likelihoods.predictive_log_density(
            spectralgp.Poisson(), np.nan_to_num(values), posterior.sites.mean, posterior.sites.variance, exposure
        )
    )


def test_draws_have_the_predicted_moments(fitted):
    mean, std = fitted.predict(PAIR, return_std=True, include_noise=True)
    drawn = fitted.sample_y(PAIR, 4_000, include_noise=True)
    assert np.all(drawn == np.floor(drawn))
    assert np.all(np.abs(drawn.mean(axis=-1) - mean) < 5 * std / np.sqrt(4_000))
    rates = fitted.sample_y(PAIR, 4_000)
    own = fitted.predict(PAIR, return_std=True)[1]
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


def test_known_noise_is_that_of_the_dense_oracle():
    """The bar: 1e-8, given the hyperparameters that were learnt."""
    inputs, latent, _, rng = data()
    noise = rng.uniform(0.01, 0.5, latent.shape)
    values = latent + np.sqrt(noise) * rng.standard_normal(latent.shape)
    values[2, 3] = np.nan
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF()).fit(inputs, values, noise_variance=noise)
    dense = written_out(model.fits_[0].model, np.vstack([inputs, PAIR]))
    seen = np.flatnonzero(np.isfinite(values.ravel()))
    effects, own = model.posterior_.observed_by.effects, np.diag(noise.ravel()[seen])
    mean, variance, expected = conditioned(dense, own, values.ravel()[seen], seen, effects, values.size)
    found, std = model.predict(PAIR, return_std=True)
    assert relative_error(found.ravel(), mean) < KNOWN_NOISE
    assert relative_error(std.ravel(), np.sqrt(variance)) < KNOWN_NOISE
    total = model.predict(PAIR, return_std=True, include_noise=True, noise_variance=0.3)[1]
    assert relative_error(total.ravel(), np.sqrt(variance + 0.3)) < KNOWN_NOISE
    # the evidence too, with the level integrated out
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
    dense, scale = written_out(model.fits_[0].model, np.vstack([inputs, PAIR])), model.likelihood_.scale
    seen = np.flatnonzero(np.isfinite(values.ravel()))
    effects, own = model.posterior_.observed_by.effects, model.noise_variance_ + scale**2 / weights.ravel()[seen]
    mean, variance, _ = conditioned(dense, np.diag(own), values.ravel()[seen], seen, effects, values.size)
    found, std = model.predict(PAIR, return_std=True)
    assert relative_error(found.ravel(), mean) < KNOWN_NOISE
    assert relative_error(std.ravel(), np.sqrt(variance)) < KNOWN_NOISE
    total = model.predict(PAIR, return_std=True, include_noise=True, weights=4.0)[1]
    expected = variance + model.noise_variance_ + scale**2 / 4
    assert relative_error(total.ravel(), np.sqrt(expected)) < KNOWN_NOISE
    model.save(tmp_path / "weights.sgp")
    again = spectralgp.load(tmp_path / "weights.sgp")
    assert np.array_equal(again.predict(PAIR, return_std=True, include_noise=True, weights=4.0)[1], total)
    weights[0, 0] = 0.0
    with pytest.raises(ValueError, match=r"weights must be finite and above 0 .* row 0, column 0"):
        model.fit(inputs, values, weights=weights)
    with pytest.raises(ValueError, match="weights must be left out if noise_variance"):
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
    settings = {"scale": None, "carry": None, "residual": PinnedFilter()}
    constant = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), **settings).fit(inputs, values, noise_variance=0.09)
    given = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), **settings).fit(inputs, values, noise_variance=noise)
    # one has the mean of Y as its level, the other integrates a level of a thousand deviations out
    prior = given.posterior_.observed_by.effects.precision[0, 0]
    lost = 0.5 * np.log(prior * given.coefficients_.errors[0] ** 2)
    assert abs(given.log_marginal_likelihood_ - lost - constant.log_marginal_likelihood_) < 0.5
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


@pytest.mark.parametrize("likelihood", ["poisson", spectralgp.NegativeBinomial(), spectralgp.StudentT(freedom=5.0)])
def test_files_hold_all_of_it(likelihood, tmp_path):
    inputs, values, exposure = counts()
    covariates = {"own": exposure - 1.0}
    seen = {} if isinstance(likelihood, spectralgp.StudentT) else {"exposure": exposure}
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
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), likelihood=likelihood, **settings)
    with pytest.raises(ValueError, match=match):
        model.fit(inputs, known, **(fit or {}))


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
    refused("weights must be left out if noise_variance is given", "gaussian", {"weights": 1, "noise_variance": 1})
    refused(r"noise_variance must be left out with likelihood='poisson'.*It takes exposure", fit={"noise_variance": 1})


def test_a_scale_of_the_noise_is_not_ignored():
    """It was: noise was learnt whatever scale a Gaussian likelihood had, unless values were weighed."""
    match = r"likelihood must be without a scale.*got Gaussian\(scale=3\.0\)\. Pass noise_variance=9"
    for given in ({}, {"noise_variance": 2.0}, {"covariates": {"own": np.arange(N_NODES)}}):
        refused(match, likelihoods.Gaussian(3.0), given)
    inputs, values, exposure = counts()
    model = GraphGPRegressor(GRAPH, Polynomial(1), RBF(), likelihood=likelihoods.Gaussian(3.0))
    assert model.fit(inputs, values, weights=exposure).likelihood_ == likelihoods.Gaussian(3.0)


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
        match = rf"covariates must be those of fit, \['own'\]; got {found}"
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
    with pytest.raises(ValueError, match="Covariances of values are not available with a likelihood"):
        fitted.predict(np.zeros((1, 1)), return_cov=True)
    with pytest.raises(ValueError, match="likelihood must be 'gaussian' to transfer"):
        fitted.transfer(GRAPH)
    with pytest.raises(ValueError, match="trials must be left out"):
        fitted.predict(np.zeros((1, 1)), trials=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'expose'"):
        fitted.predict(np.zeros((1, 1)), expose=3)
    plain = GraphGPRegressor(GRAPH, Polynomial(1), RBF()).fit(*counts(0.0)[:2])
    with pytest.raises(ValueError, match="exposure must be left out, since the model was fitted without"):
        plain.predict(np.zeros((1, 1)), exposure=2.0)


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


def test_reports_judge_counts_by_randomised_transforms(fitted, tmp_path):
    left = fitted.leave_one_out()
    assert left.transforms is not None
    known = left.transforms[np.isfinite(left.transforms)]
    assert np.array_equal(np.isnan(left.transforms), np.isnan(counts()[1]))
    assert abs(known.mean() - 0.5) < 4 * np.sqrt(1 / 12 / known.size) + 0.05
    page = fitted.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<html" in page


# ------------------------------------------------------------------- normal values, of which every law is a dense one


class Normal:
    """A prior with white noise, and values with noise of their own, at inputs of four signals and of two new ones."""

    SCALE, WHITE = 0.4, 0.2
    INPUTS, NEW = np.array([[0.0], [0.4], [1.1], [2.0]]), np.array([[0.7], [1.5]])
    RNG = np.random.default_rng(3)
    BESIDE, NEW_BESIDE = RNG.uniform(0.5, 3.0, (4, 5)), RNG.uniform(0.5, 3.0, (2, 5))
    VALUES, FURTHER = RNG.standard_normal((4, 5)), RNG.standard_normal((2, 5))

    def __init__(self, complete: bool = False, effort: sites.Effort | None = None) -> None:
        prior = graph_gp(
            Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (1, 4)]), Diffusion(1.0), RBF(0.7), self.WHITE
        )
        self.values, self.further = self.VALUES.copy(), self.FURTHER.copy()
        if not complete:
            self.values[[0, 0, 2], [1, 3, 4]] = np.nan
            self.values[3] = np.nan
            self.further[0, [0, 2]] = np.nan
        beside = np.full((4, 5), 1.7) if complete else self.BESIDE
        likelihood, none = likelihoods.Gaussian(self.SCALE), np.empty((0, 4, 5))
        known = ObservationModel(likelihood, beside, none)
        signals, latent_covariance = read_signals(self.values), prior.latent_covariance(self.INPUTS)
        if effort is not None:
            own = sites.find_sites(latent_covariance, known.observations(self.values), effort=effort)
            known.last_found.append((prior, signals, own))
        self.posterior = condition_latent(prior, self.INPUTS, signals, known)
        self.new = observed_with(
            self.posterior.at(self.NEW), ObservationModel(likelihood, self.NEW_BESIDE, none[:, :2])
        )
        both = np.vstack([self.INPUTS, self.NEW])
        node = prior.node_covariance()
        self.signal = np.kron(RBF(0.7)(both), node)
        self.latent = self.signal + self.WHITE * np.eye(30)
        self.noise = self.SCALE**2 * np.concatenate([beside.ravel(), self.NEW_BESIDE.ravel()])
        self.all = np.concatenate([self.values.ravel(), self.further.ravel()])
        self.seen = np.isfinite(self.all) & (np.arange(30) < 20)

    def law(self, prior, wanted, seen):
        """Mean and covariance of signals, or of latent ones, given values."""
        noisy = self.latent[np.ix_(seen, seen)] + np.diag(self.noise[seen])
        across = prior[np.ix_(wanted, seen)]
        gain = np.linalg.solve(noisy, across.T).T
        return gain @ self.all[seen], prior[np.ix_(wanted, wanted)] - gain @ across.T

    def log_density(self, wanted, seen):
        mean, covariance = self.law(self.latent, wanted, seen)
        return oracle.log_density(self.all[wanted], mean, covariance + np.diag(self.noise[wanted]))


@pytest.fixture(scope="module")
def normal():
    return Normal()


@pytest.mark.parametrize("which", ["training", "new", "new given some"])
def test_laws_of_normal_values_are_dense_ones(normal, which):
    """Without noise they are of signals alone; with it the white part of latent signals and that of values count."""
    wanted, seen, field = np.arange(20, 30), normal.seen, normal.new
    if which == "training":
        wanted, field = np.r_[10:15, 0:5], normal.posterior.imputed(np.array([2, 0]))
    if which == "new given some":
        seen, field = np.isfinite(normal.all), normal.new.given(normal.further)
    mean, covariance = normal.law(normal.signal, wanted, seen)
    of_latent, wider = normal.law(normal.latent, wanted, seen)
    assert relative_error(field.mean.ravel(), mean) < 1e-7
    assert relative_error(field.variance().ravel(), np.diag(covariance)) < 1e-6
    assert relative_error(field.variance(nodes=np.array([3, 1])), field.variance()[:, [3, 1]]) < 1e-12
    total = np.diag(wider) + normal.noise[wanted]
    assert relative_error(field.variance(include_noise=True).ravel(), total) < 1e-6
    is_known = seen[wanted]
    assert relative_error(field.values.ravel(), np.where(is_known, normal.all[wanted], of_latent)) < 1e-6
    assert relative_error(field.values_variance().ravel(), np.where(is_known, 0.0, total)) < 1e-6
    assert not field.variance_error.any()
    for probability in (0.1, 0.8):
        expected = norm.ppf(probability, of_latent, np.sqrt(total))
        assert relative_error(field.quantile(probability).ravel(), expected) < BY_QUADRATURE
    asked = np.where(np.arange(10).reshape(2, 5) % 3 == 1, np.nan, 0.3)
    transforms = probability_transforms(field, asked, np.random.default_rng(0)).ravel()
    assert np.array_equal(np.isnan(transforms), np.isnan(asked.ravel()))
    expected = norm.cdf(0.3, of_latent, np.sqrt(total))
    assert relative_error(transforms[~np.isnan(transforms)], expected[~np.isnan(transforms)]) < BY_QUADRATURE
    logs = field.value_log_densities(np.full((2, 2), 0.3), np.array([3, 1]))
    expected = norm.logpdf(0.3, of_latent, np.sqrt(total)).reshape(2, 5)[:, [3, 1]]
    assert relative_error(logs, expected) < BY_QUADRATURE


def test_laws_at_new_inputs_by_effective_curvatures_are_dense_ones_where_noise_is_the_same():
    """Equation (39) is exact there, too many signals to write out though there are."""
    normal = Normal(complete=True, effort=sites.FINAL._replace(most_exact=0, most_written_out=0))
    assert normal.posterior.sites.root is None
    wanted = np.arange(20, 30)
    mean, covariance = normal.law(normal.signal, wanted, normal.seen)
    wider = normal.law(normal.latent, wanted, normal.seen)[1]
    assert relative_error(normal.new.mean.ravel(), mean) < 1e-6
    assert relative_error(normal.new.variance().ravel(), np.diag(covariance)) < 1e-6
    latent = normal.new.latent
    assert relative_error(latent.value_covariance(np.ones(latent.mean.shape, dtype=bool)), wider) < 1e-6
    value = normal.new.log_density(normal.further)
    assert value == pytest.approx(normal.log_density(wanted, normal.seen), abs=0.05)
    bound, error = normal.posterior.sites.log_bound()
    evidence = oracle.log_density(normal.all[:20], 0.0, normal.latent[:20, :20] + np.diag(normal.noise[:20]))
    assert bound == pytest.approx(evidence, abs=1e-4)
    assert error < 1e-4


def test_densities_of_normal_values_are_dense_ones(normal):
    new = np.flatnonzero(np.isfinite(normal.all) & (np.arange(30) >= 20))
    assert normal.new.log_density(normal.further) == pytest.approx(normal.log_density(new, normal.seen), abs=1e-6)
    alone = normal.new.log_density(normal.further, joint=False)
    expected = [normal.log_density(new[new // 5 == row], normal.seen) for row in (4, 5)]
    np.testing.assert_allclose(alone, expected, atol=1e-6)
    # what is known already is not asked for again
    given = normal.new.given(np.where(np.arange(5) < 3, normal.further, np.nan))
    known = normal.seen | np.isin(np.arange(30), new[new % 5 < 3])
    assert given.log_density(normal.further) == pytest.approx(normal.log_density(new[new % 5 >= 3], known), abs=1e-6)
    nothing = np.full((2, 5), np.nan)
    assert normal.new.log_density(nothing) == 0.0
    assert not normal.new.log_density(nothing, joint=False).any()
    assert normal.new.given(nothing) is normal.new


def test_densities_of_more_values_than_are_written_out_are_refused_together(normal):
    values, none = np.zeros((201, 5)), np.empty((0, 201, 5))
    field = observed_with(
        normal.posterior.at(np.linspace(0, 2, 201)[:, None]),
        ObservationModel(likelihoods.Gaussian(0.4), values + 1, none),
    )
    with pytest.raises(ValueError, match="joint must be False for 1005 values with a likelihood"):
        field.log_density(values)
    assert np.isfinite(field.log_density(np.where(np.arange(201)[:, None] > 0, values, np.nan)))
    alone = field.log_density(values, joint=False)
    assert np.all(np.isfinite(alone))
    one = np.where(np.arange(201)[:, None] == 1, values, np.nan)
    assert field.log_density(one) == pytest.approx(alone[1])


def test_a_posterior_of_latent_signals_tells_what_it_is_of(normal):
    posterior = normal.posterior
    assert posterior.input_variance == pytest.approx(1.0)  # that of the kernel
    np.testing.assert_array_equal(posterior.given_signals, normal.values)
    mean = normal.law(normal.latent, np.arange(20), normal.seen)[0]  # there are no fixed effects
    assert relative_error(posterior.modelled.values.ravel(), mean) < 1e-7
    assert posterior.parts == ((1.0, posterior),)
    at = posterior.at(normal.NEW)
    np.testing.assert_array_equal(at.observed_by.beside, np.ones((2, 5)))
    assert np.isnan(at.known).all()


@pytest.mark.parametrize("by", ["entry", "signal", "node"])
def test_leaving_out_normal_values_is_deleting_them(normal, by):
    """With missing values, and a signal of which nothing was observed."""
    left = leave_one_out(normal.posterior, by)
    for row, node in np.ndindex(4, 5):
        entry, places = 5 * row + node, np.arange(30)
        group = {"entry": places == entry, "signal": places // 5 == row, "node": places % 5 == node}[by]
        mean, variance = normal.law(normal.latent, [entry], normal.seen & ~group)
        assert left.mean[row, node] == pytest.approx(mean[0], abs=1e-6)
        if normal.seen[entry]:
            assert left.std[row, node] == pytest.approx(np.sqrt(variance[0, 0] + normal.noise[entry]), rel=1e-6)
        out = np.flatnonzero(group & normal.seen)
        found = left.log_density[{"entry": (row, node), "signal": row, "node": node}[by]]
        if out.size:
            assert found == pytest.approx(normal.log_density(out, normal.seen & ~group), abs=1e-6)
        else:
            assert np.isnan(found)


def test_draws_of_normal_values_have_their_laws(normal):
    n_draws = 500
    for field, wanted in ((normal.new, np.arange(20, 30)), (normal.new.given(normal.further), np.arange(20, 30))):
        seen = normal.seen if field is normal.new else np.isfinite(normal.all)
        mean, covariance = normal.law(normal.latent, wanted, seen)
        covariance = covariance + np.diag(normal.noise[wanted])
        drawn = field.sample(n_draws, np.random.default_rng(0), include_noise=True).reshape(n_draws, -1) - mean
        spreads = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / n_draws)
        assert np.all(np.abs(drawn.T @ drawn / n_draws - covariance) < 5 * spreads)
        assert np.all(np.abs(drawn.mean(axis=0)) < 5 * np.sqrt(np.diag(covariance) / n_draws))


def test_draws_without_noise_are_of_signals_alone(normal):
    """Of new ones, of those given values of their own, and of training signals."""
    given, training = np.isfinite(normal.all), normal.posterior.imputed(np.array([2, 0]))
    laws = ((normal.new, normal.seen), (normal.new.given(normal.further), given), (training, normal.seen))
    for field, seen in laws:
        wanted = np.r_[10:15, 0:5] if field is training else np.arange(20, 30)
        mean, covariance = normal.law(normal.signal, wanted, seen)
        found, spread = oracle.law_of(lambda state, field=field: field.sample(1, state))
        assert relative_error(found, mean) < 1e-6
        assert relative_error(spread, covariance) < 1e-6


def test_fixed_effects_are_found_by_name_and_shown_in_columns():
    found = Coefficients(("intercept", "x"), np.array([1.5, -0.25]), np.array([0.125, 2.0]))
    assert (found["x"], found["intercept"], len(found)) == (-0.25, 1.5, 2)
    assert repr(found) == "intercept   1.5 (standard error 0.125)\nx          -0.25 (standard error 2)"
    assert repr(Coefficients((), np.empty(0), np.empty(0))) == "no fixed effects"
