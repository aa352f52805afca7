"""Latent signals given what a likelihood observes of them, against importance sampling and a dense normal law."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import oracle
from oracle import relative_error
from spectralgp import Bernoulli, Binomial, Diffusion, Graph, NegativeBinomial, Poisson, StudentT, graph_gp
from spectralgp.model.fields import EffectPrior, ObservationModel, Sites, find_sites, sites
from spectralgp.model.fields import curvatures as tables
from spectralgp.model.fields.covariances import white_noise
from spectralgp.model.likelihoods import Gaussian, Likelihood

AGREEMENT = 1e-6  # of two ways to the same normal law, each until nothing changes
N_DRAWS = 40_000
LIKELIHOODS = {
    "poisson": Poisson(),
    "bernoulli": Bernoulli(),
    "negative binomial": NegativeBinomial(0.5),
    "binomial": Binomial(),
    "student t": StudentT(4.0, 0.5),
}
FAST = sites.FINAL._replace(most_exact=0, most_written_out=0)
BARS = {"student t": (0.02, 0.03, 0.4)}  # mean in standard deviations, ratio of these, bound in nats; else:
BAR = (0.01, 0.02, 0.21)  # 0.2 for sixty latent values that are normal; the intercept is one more


def problem(likelihood: Likelihood, n_signals: int, n_nodes: int, seed: int, missing: float = 0.0, n_effects: int = 2):
    """A covariance, observations with an intercept and a covariate, and the covariance about both written out."""
    rng = np.random.default_rng(seed)
    edges = [(node, (node + 1) % n_nodes) for node in range(n_nodes)] + [(0, n_nodes // 2)]
    prior = graph_gp(Graph.from_edges(edges), Diffusion(1.0), RBF(0.7), noise_variance=0.05)
    covariance = prior.latent_covariance(rng.uniform(0.0, 3.0, (n_signals, 1)))
    latent = 0.4 + covariance.draw_signal(rng) + white_noise(covariance, rng)
    beside = np.full(latent.shape, 6.0 if likelihood.name == "binomial" else 1.0)
    values = likelihood.draw(latent, beside, rng)
    values[rng.random(values.shape) < missing] = np.nan
    columns = np.stack([np.ones(values.shape), rng.standard_normal(values.shape)])[:n_effects]
    observations = ObservationModel.of(likelihood, beside, columns, values, has_intercept=True).observations(values)
    return covariance, observations, covariance.submatrix(np.ones(values.shape, dtype=bool))


def with_effects(observations, dense: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Prior mean and covariance of latent signals whose fixed effects are normal: ``T b`` and ``A + T S T^T``."""
    columns, prior = observations.columns.reshape(len(observations.columns), -1), observations.effects
    return prior.mean @ columns, dense + columns.T @ np.linalg.solve(prior.precision, columns)


def dense_law(found: Sites, dense: np.ndarray):
    """The dense law with fixed effects among what is normal."""
    observations, shape = found.observations, found.mean.shape
    prior, covariance = with_effects(observations, dense)

    def expected(mean, variance):
        terms = observations.expected(mean.reshape(shape), variance.reshape(shape))
        return tuple(one.ravel() for one in terms)

    return oracle.normal_law(covariance, prior, expected)


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_law_is_the_dense_one(name, missing):
    """Equations (35) to (38), with effects that are as uncertain as their prior and the values leave them."""
    covariance, observations, dense = problem(LIKELIHOODS[name], 5, 8, 0, missing)
    found = find_sites(covariance, observations)
    mean, law, bound = dense_law(found, dense)
    assert relative_error(found.mean.ravel(), mean) < AGREEMENT
    assert relative_error(found.variance.ravel(), np.diag(law)) < AGREEMENT
    assert abs(found.log_bound()[0] - bound) < 1e-5
    assert found.log_bound()[1] == 0.0
    assert relative_error(found.among_nodes(2), law[16:24, 16:24]) < AGREEMENT
    assert relative_error(found.among_signals(3), law[3::8, 3::8]) < AGREEMENT
    places = [8, 9, 10, 11, 28, 29, 30, 31]
    assert relative_error(found.among(np.repeat([1, 3], 4), np.arange(8)), law[np.ix_(places, places)]) < AGREEMENT
    # effects given latent signals: a regression whose noise has the covariance A
    columns, prior = observations.columns.reshape(2, -1), observations.effects
    precision = np.linalg.inv(dense)
    given = np.linalg.inv(columns @ precision @ columns.T + prior.precision)
    gain = given @ columns @ precision
    expected = given @ (columns @ precision @ mean + prior.precision @ prior.mean)
    assert relative_error(found.coefficients, expected) < 1e-5
    assert relative_error(found.coefficient_covariance, given + gain @ law @ gain.T) < 1e-5
    # latent signals about them, as learning sees them
    rest = np.eye(40) - columns.T @ gain
    factors = found.deviations(40, np.random.default_rng(0)).reshape(-1, 40)
    assert relative_error(factors.T @ factors, rest @ law @ rest.T + columns.T @ given @ columns) < 1e-5


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_draws_of_latent_signals_have_their_law(name, missing):
    covariance, observations, dense = problem(LIKELIHOODS[name], 5, 8, 0, missing)
    found, white = find_sites(covariance, observations), covariance.noise_variance
    # draws of signals without the white part have their law, that of the effects included
    roots, signal = np.sqrt(found.terms[2]).ravel(), with_effects(observations, dense - white * np.eye(40))[1]
    precision = np.eye(40) + roots[:, None] * (signal + white * np.eye(40)) * roots
    law = signal - (signal * roots) @ np.linalg.solve(precision, roots[:, None] * signal)
    assert relative_error(found.signal_variance.ravel(), np.diag(law)) < AGREEMENT
    mean, drawn = oracle.law_of(found.drawn_signal)
    assert not mean.any()
    assert relative_error(drawn, law) < AGREEMENT
    drawn = oracle.law_of(lambda state: found.value_draws(1, state))[1]
    assert relative_error(drawn, dense_law(found, dense)[1]) < AGREEMENT


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_law_is_near_the_truth(name):
    """The bar: sixty latent values, against importance sampling; on average over five draws of the data."""
    likelihood, found_bars = LIKELIHOODS[name], []
    for seed in range(5):
        covariance, observations, dense = problem(likelihood, 6, 10, seed, n_effects=1)
        found = find_sites(covariance, observations)
        mean, law, bound = dense_law(found, dense)
        values, beside = observations.values.ravel(), observations.beside.ravel()

        def log_density(draws, values=values, beside=beside):
            return np.sum(likelihood.at(values, draws, beside)[0] + likelihood.constant(values, beside), axis=1)

        (prior, total), rng = with_effects(observations, dense), np.random.default_rng(seed)
        evidence, error, centre, deviations = oracle.by_importance(total, prior, log_density, (mean, law), N_DRAWS, rng)
        assert bound < evidence + 3 * error
        apart = (found.mean.ravel() - centre) / deviations
        ratio = np.mean(np.sqrt(found.variance.ravel()) / deviations)
        found_bars.append((np.sqrt(np.mean(apart**2)), abs(ratio - 1), evidence - bound))
    assert np.all(np.mean(found_bars, axis=0) < BARS.get(name, BAR))


@pytest.mark.parametrize(("missing", "bar"), [(0.0, 0.01), (0.5, 0.03)])
@pytest.mark.parametrize("name", ["poisson", "bernoulli"])
def test_effective_curvatures_are_near_the_dense_law(name, missing, bar):
    """The bar: 500 entries, fast variances within a hundredth, three with half of the values missing: (39)."""
    covariance, observations, _ = problem(LIKELIHOODS[name], 20, 25, 0, missing)
    exact, fast = find_sites(covariance, observations), find_sites(covariance, observations, effort=FAST)
    assert fast.root is None
    assert abs(np.mean(np.sqrt(fast.variance / exact.variance)) - 1) < bar
    assert np.sqrt(np.mean(np.square(fast.mean - exact.mean) / exact.variance)) < 0.02
    value, error = fast.log_bound()
    assert abs(value - exact.log_bound()[0]) < 4 * error + 1.0
    assert abs(np.mean(np.log(fast.spread_at_modes / exact.spread_at_modes))) < 0.03
    # draws by conjugate gradients have the variances
    drawn = fast.mean + fast.value_draws(200, np.random.default_rng(0))
    assert abs(np.mean(drawn.var(axis=0) / exact.variance) - 1) < 4 * np.sqrt(2 / 200 / 20)
    assert relative_error(np.diag(fast.among_nodes(3)), fast.variance[3]) < 1e-9
    with pytest.raises(ValueError, match="joint must be False for 500 values with a likelihood"):
        fast.among(np.repeat(np.arange(20), 25), np.tile(np.arange(25), 20))


@pytest.mark.parametrize("name", ["poisson", "student t"])
def test_a_start_of_another_covariance_does_not_lead_astray(name):
    """What explains values by a small covariance is far off by one that is much larger."""
    likelihood, rng = LIKELIHOODS[name], np.random.default_rng(0)
    graph = Graph.from_edges([(node, (node + 1) % 8) for node in range(8)])
    inputs = np.linspace(0.0, 3.0, 5)[:, None]
    small, large = (
        graph_gp(graph, Diffusion(1.0, amplitude), RBF(0.7), noise_variance=0.05).latent_covariance(inputs)
        for amplitude in (1e-3, 3.0)
    )
    beside = np.ones(small.shape)
    values = likelihood.draw(2.0 * rng.standard_normal(small.shape), beside, rng)
    observed_by = ObservationModel.of(likelihood, beside, np.ones((1, *values.shape)), values, has_intercept=True)
    observations = observed_by.observations(values)
    found = find_sites(large, observations, find_sites(small, observations))
    expected = find_sites(large, observations)
    assert relative_error(found.mean, expected.mean) < AGREEMENT
    assert relative_error(found.coefficients, expected.coefficients) < AGREEMENT


def test_a_common_curvature_makes_effective_ones_exact():
    covariance, _, dense = problem(Poisson(), 5, 8, 0)
    bases, common = tables.ModalLatentCovariance(covariance), np.full((5, 8), 0.7)
    (variance, error), at_modes = bases.variances(common), bases.variances_at_modes(common)
    assert error == 0.0
    law = np.linalg.inv(np.linalg.inv(dense) + 0.7 * np.eye(40))
    assert relative_error(variance.ravel(), np.diag(law)) < AGREEMENT
    both = np.kron(bases.inputs, bases.nodes)
    assert relative_error(at_modes.ravel(), np.diag(both.T @ law @ both)) < AGREEMENT


def test_deviations_add_up_to_the_covariance_at_every_frequency():
    """All that learning asks of them, with one per signal; fewer have it on average."""
    covariance, observations, _ = problem(Poisson(), 6, 10, 0)
    fast = find_sites(covariance, observations, effort=FAST)
    bases, rng = tables.ModalLatentCovariance(covariance), np.random.default_rng(0)
    for most, bar in ((6, 1e-12), (4, 0.9)):
        factors = fast.deviations(most, rng)
        assert len(factors) == most + 2  # and those of the effects
        np.testing.assert_array_equal(factors[most:], fast.field_factors)
        deviations = bases.inputs.T @ factors[:most] @ bases.nodes
        gram = np.einsum("sij,skj->jik", deviations, deviations)
        expected = np.stack([np.diag(column) for column in fast.spread_at_modes.T])
        assert relative_error(gram, expected) < bar
        assert relative_error(np.einsum("jii->ij", gram), fast.spread_at_modes) < 1e-9


def test_cavities_are_laws_without_the_sites_of_a_block():
    """Equation (40), for Gaussian sites by deleting them from the dense law."""
    covariance, observations, dense = problem(Poisson(), 5, 8, 0)
    found = find_sites(covariance, observations)
    _, slopes, curvatures = (one.ravel() for one in found.terms)
    prior, total = with_effects(observations, dense)
    own = np.arange(8, 16)
    weights = np.where(np.isin(np.arange(40), own), 0.0, curvatures)
    law = np.linalg.inv(np.linalg.inv(total) + np.diag(weights))
    natural = np.where(weights > 0, curvatures * found.mean.ravel() + slopes, 0.0)
    mean = law @ (np.linalg.inv(total) @ prior + natural)
    cavity_mean, cavity = found.cavity(found.among_nodes(1), found.mean[1], 1)
    assert relative_error(cavity, law[np.ix_(own, own)]) < AGREEMENT
    assert relative_error(cavity_mean, mean[own]) < AGREEMENT


def test_a_table_of_curvatures_interpolates_their_logarithms():
    """Shares of two neighbours add up to one, and to the logarithm of each curvature above the least."""
    curvatures = np.array([[0.0, 1e-7, 0.02], [0.5, 3.0, 40.0]])
    lowest = tables.LOWEST_CURVATURE * curvatures.max()
    total, logs = np.zeros(curvatures.shape), np.zeros(curvatures.shape)
    for curvature, share in tables.tabulated(curvatures):
        assert np.all((share >= 0) & (share <= 1))
        total += share
        logs += share * np.log(curvature + lowest)
    np.testing.assert_allclose(total, 1.0, rtol=1e-12)
    np.testing.assert_allclose(logs, np.log(curvatures + lowest), rtol=1e-7)


@pytest.mark.parametrize("name", ["poisson", "student t"])
def test_rounds_end_where_nothing_changes_or_a_step_of_learning_does(name, listener):
    covariance, observations, _ = problem(LIKELIHOODS[name], 5, 8, 0)
    found, numbers = None, []
    for effort in (sites.ROUGH, sites.STEP, sites.FINAL, sites.FINAL):
        listener.mentions.clear()
        found = find_sites(covariance, observations, found if len(numbers) == 3 else None, effort)
        numbers.append(len(listener.mentions))
        assert listener.mentions == [f"finding sites, round {number}" for number in range(1, numbers[-1] + 1)]
    assert 4 <= numbers[0] <= numbers[1] <= 8
    assert numbers[1] <= numbers[2] <= 30
    assert numbers[3] == 1
    assert relative_error(found.terms[1], found.solution, scale=1.0) < AGREEMENT


def test_a_rough_step_from_a_start_takes_two_rounds(listener):
    """However far the answer is: the next step of learning goes on from there."""
    likelihood = Poisson()
    covariance, observations, _ = problem(likelihood, 5, 8, 0)
    further = replace(observations, beside=np.full((5, 8), 2.0))
    start = find_sites(covariance, further)
    listener.mentions.clear()
    find_sites(covariance, observations, start, sites.ROUGH)
    assert listener.mentions == ["finding sites, round 1", "finding sites, round 2"]


def test_sites_of_the_first_signals_are_a_start_for_those_of_all():
    _, observations, _ = problem(Poisson(), 5, 8, 0)
    prior = graph_gp(Graph.from_edges([(node, (node + 1) % 8) for node in range(8)]), Diffusion(1.0), RBF(0.7), 0.05)
    both = prior.latent_covariance(np.linspace(0.0, 3.0, 5)[:, None])
    first = prior.latent_covariance(np.linspace(0.0, 3.0, 5)[:3, None])
    names = ("values", "observed", "beside")
    first_three = {name: getattr(observations, name)[:3] for name in names} | {"columns": observations.columns[:, :3]}
    known = replace(observations, **first_three)
    found = find_sites(both, observations, find_sites(first, known))
    expected = find_sites(both, observations)
    assert relative_error(found.mean, expected.mean) < AGREEMENT
    assert relative_error(found.variance, expected.variance) < AGREEMENT


@pytest.mark.parametrize("likelihood", [Poisson(), Binomial(), Gaussian(1.0)], ids=lambda one: one.name)
def test_the_prior_of_effects_is_about_the_level_of_all_values(likelihood):
    """Equation (37b): a mean of zero but for the intercept, and a precision that units of covariates do not change."""
    rng = np.random.default_rng(0)
    values, beside = rng.integers(0, 4, 20).astype(float), rng.integers(4, 9, 20).astype(float)
    columns = np.stack([np.ones(20), rng.uniform(100.0, 101.0, 20)])
    prior = EffectPrior.of(likelihood, values, beside, columns, has_intercept=True)
    rate = (values.sum() + 0.5) / beside.sum()
    odds = (values.sum() + 0.5) / (beside.sum() - values.sum() + 0.5)
    level = {"poisson": np.log(rate), "binomial": np.log(odds), "gaussian": values.mean()}[likelihood.name]
    np.testing.assert_allclose(prior.mean, [level, 0.0])
    spread = likelihood.rough_latent(values, beside).std()
    deviation = 1e3 * values.std() if likelihood.name == "gaussian" else 2.5 * max(spread, 1.0)
    np.testing.assert_allclose(prior.precision, columns @ columns.T / 20 / deviation**2)
    assert prior.penalty(prior.mean + np.array([0.5, 0.1])) == pytest.approx(
        0.5 * np.mean(np.square(0.5 + 0.1 * columns[1])) / deviation**2
    )
    without = EffectPrior.of(likelihood, values, beside, columns[1:], has_intercept=False)
    np.testing.assert_array_equal(without.mean, [0.0])


def test_effects_that_values_leave_open_are_as_their_prior_says():
    """Zeros alone would have a rate of zero: the prior decides how low, and the variances know of it."""
    covariance, _, dense = problem(Poisson(), 4, 6, 0)
    values, exposures = np.zeros((4, 6)), np.full((4, 6), 2.0)
    observed_by = ObservationModel.of(Poisson(), exposures, np.ones((1, 4, 6)), values, has_intercept=True)
    found = find_sites(covariance, observed_by.observations(values))
    assert found.observations.effects.mean == pytest.approx(np.log(0.5 / 48))
    prior, total = with_effects(found.observations, dense)
    mean, law, _ = dense_law(found, dense)
    assert relative_error(found.mean.ravel(), mean) < AGREEMENT
    assert relative_error(found.variance.ravel(), np.diag(law)) < AGREEMENT
    # posterior means of the rates, by importance sampling
    drawn = np.random.default_rng(0).multivariate_normal(prior, total, 40_000, method="cholesky")
    weights, rates = np.exp(-2.0 * np.exp(drawn).sum(axis=1))[:, None], np.exp(drawn)
    truth = np.sum(weights * rates, axis=0) / weights.sum()
    errors = np.sqrt(np.sum(np.square(weights * (rates - truth)), axis=0)) / weights.sum()
    assert np.all(np.abs(np.exp(found.mean + found.variance / 2).ravel() - truth) < 4 * errors + 0.02 * truth)


def test_values_that_do_not_vary_have_a_rough_variance_of_one():
    ones = np.ones((3, 4))
    observed_by = ObservationModel.of(Poisson(), ones, ones[None], 7.0 * ones, has_intercept=True)
    assert observed_by.observations(7.0 * ones).rough_variance == 1.0
    values = np.array([[1.0, 2.0, 4.0, np.nan]])
    varied = ObservationModel.of(Poisson(), ones[:1], ones[None, :1], values, has_intercept=True).observations(values)
    assert varied.rough_variance == pytest.approx(np.var(np.log([1.5, 2.5, 4.5]), ddof=1))


def test_determinants_by_probes_are_within_their_stated_errors():
    """``log |I + A W|``, and what a common curvature says of it without a probe."""
    covariance, _, dense = problem(Poisson(), 5, 8, 0)
    weights = np.random.default_rng(0).lognormal(0.0, 1.0, (5, 8))
    expected = np.linalg.slogdet(np.eye(40) + dense * weights.ravel())[1]
    latent, found = tables.ModalLatentCovariance(covariance), []
    for seed in range(30):
        value, error = latent.log_determinant(weights, seed)
        found.append((value - expected) / error)
    assert 0.7 < np.sqrt(np.mean(np.square(found))) < 1.6  # of a t with seven degrees of freedom it is 1.18
    assert abs(np.mean(found)) < 4 * 1.2 / np.sqrt(30)
    value, error = latent.log_determinant(np.full((5, 8), 0.7))
    assert abs(value - np.linalg.slogdet(np.eye(40) + 0.7 * dense)[1]) < 1e-6
    assert error < 1e-6


def test_draws_go_on_from_a_start_and_are_solved_to_a_tolerance():
    """Given the solutions of the same draws, all is there; the answer is that of the dense system."""
    covariance, observations, dense = problem(Poisson(), 5, 8, 0, 0.3)
    found = find_sites(covariance, observations)
    drawn, solutions = found.deviating(3, np.random.default_rng(1))
    again, same = found.deviating(3, np.random.default_rng(1), solutions, 1e-3)
    np.testing.assert_array_equal(same, solutions)
    np.testing.assert_array_equal(again, drawn)
    rng, weights = np.random.default_rng(1), found.terms[2].ravel()
    prior, white = (tables.ModalLatentCovariance(covariance).drawn(3, rng), rng.standard_normal((3, 5, 8)))
    right = weights * prior.reshape(3, -1) + np.sqrt(weights) * white.reshape(3, -1)
    expected = np.linalg.solve(np.eye(40) + weights[:, None] * dense, right.T).T
    assert relative_error(solutions.reshape(3, -1), expected) < 1e-5
    assert relative_error((prior - drawn).reshape(3, -1), solutions.reshape(3, -1) @ dense) < 1e-9


def test_prior_draws_have_the_covariance_white_part_included():
    covariance, _, dense = problem(Poisson(), 2, 4, 0)
    drawn = tables.ModalLatentCovariance(covariance).drawn(4_000, np.random.default_rng(0)).reshape(4_000, -1)
    spreads = np.sqrt((np.outer(np.diag(dense), np.diag(dense)) + dense**2) / 4_000)
    assert np.all(np.abs(drawn.T @ drawn / 4_000 - dense) < 5 * spreads)


@pytest.mark.parametrize("weights", ["none", "tiny", "some"])
def test_systems_with_sites_are_solved_whatever_they_say(weights):
    """Where sites say nothing, conjugate gradients have no noise to go by."""
    covariance, _, dense = problem(Poisson(), 5, 8, 0)
    rng = np.random.default_rng(0)
    some = {"none": np.zeros((5, 8)), "tiny": np.full((5, 8), 1e-14), "some": rng.lognormal(0, 2, (5, 8))}[weights]
    rights = rng.standard_normal((2, 5, 8))
    found = tables.ModalLatentCovariance(covariance).solve(some, rights, None, 1e-9)
    expected = np.linalg.solve(np.eye(40) + some.ravel()[:, None] * dense, rights.reshape(2, -1).T).T
    assert relative_error(found.reshape(2, -1), expected) < 1e-7
