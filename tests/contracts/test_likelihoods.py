"""What every likelihood promises, against SciPy's distributions, finite differences and sums over a fine grid."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, kstest, nbinom, norm, poisson
from scipy.stats import t as student

from cases import Waiting
from oracle import derivative, relative_error
from spectralgp import Bernoulli, Binomial, NegativeBinomial, Poisson, StudentT
from spectralgp.model.likelihoods import (
    Gaussian,
    as_likelihood,
    learn_parameters,
    log_bounds,
    named_likelihoods,
    open_parameters,
    parameter_slopes,
    predictive_distribution,
    predictive_log_density,
    quantile_of,
    randomised_pit,
    with_first_values,
)
from tolerances import FORMULA, GRADIENT

QUADRATURE = 1e-6  # of twenty points, for latent signals of which the standard deviation is 0.6

CASES = {
    "gaussian": (Gaussian(0.7), [0.3, -2.0, 4.0], [1.0, 1.0, 1.0], lambda f, _: norm(f, 0.7)),
    "student_t": (StudentT(4.0, 0.7), [0.3, -2.0, 4.0], [1.0, 1.0, 1.0], lambda f, _: student(4.0, f, 0.7)),
    "poisson": (Poisson(), [0.0, 3.0, 12.0], [0.5, 2.0, 10.0], lambda f, e: poisson(e * np.exp(f))),
    "negative_binomial": (
        NegativeBinomial(0.4),
        [0.0, 3.0, 12.0],
        [0.5, 2.0, 10.0],
        lambda f, e: nbinom(2.5, 2.5 / (2.5 + e * np.exp(f))),
    ),
    "binomial": (Binomial(), [0.0, 3.0, 12.0], [1.0, 7.0, 12.0], lambda f, n: binom(n, expit(f))),
    "bernoulli": (Bernoulli(), [0.0, 1.0, 1.0], [1.0, 1.0, 1.0], lambda f, _: binom(1, expit(f))),
}
MEAN, VARIANCE = np.array([0.2, -0.8, 0.5]), np.array([0.36, 0.1, 0.0])


@pytest.fixture(params=CASES)
def case(request):
    likelihood, values, beside, law = CASES[request.param]
    return likelihood, np.array(values), np.array(beside), law


def log_of(law, values):
    return law.logpmf(values) if hasattr(law.dist, "logpmf") else law.logpdf(values)


def over_latent(function):
    """Expectations over the latent signal, one entry after the other, by sums over a fine grid.

    They are exact to rounding for functions as smooth as these, which times the density vanish at both ends.
    """
    found = []
    for index, (mean, variance) in enumerate(zip(MEAN, VARIANCE, strict=True)):
        if variance == 0:
            found.append(function(np.array(mean), index))
            continue
        points, step = np.linspace(mean - 10 * np.sqrt(variance), mean + 10 * np.sqrt(variance), 2_001, retstep=True)
        found.append(step * norm(mean, np.sqrt(variance)).pdf(points) @ function(points, index))
    return np.array(found)


def test_every_name_is_a_case_and_gives_its_likelihood():
    assert set(CASES) == set(named_likelihoods())
    assert all(as_likelihood(name).name == name for name in CASES)


def test_densities_are_scipys(case):
    likelihood, values, beside, law = case
    for latent in (-1.3, 0.4):
        found = likelihood.at(values, np.full(3, latent), beside)[0] + likelihood.constant(values, beside)
        expected = [log_of(law(latent, one), value) for value, one in zip(values, beside, strict=True)]
        assert relative_error(found, expected) < FORMULA


def test_slopes_and_curvatures_are_derivatives(case):
    likelihood, values, beside, _ = case
    at = np.array([-0.4, 0.3, 1.1])
    _, slope, curvature = likelihood.at(values, at, beside)
    assert relative_error(slope, derivative(lambda t: likelihood.at(values, at + t, beside)[0], 1e-4)) < GRADIENT
    assert relative_error(curvature, -derivative(lambda t: likelihood.at(values, at + t, beside)[1], 1e-4)) < GRADIENT


def test_expectations_are_those_of_a_fine_grid(case):
    likelihood, values, beside, law = case
    found = likelihood.expected(values, MEAN, VARIANCE, beside)
    expected = over_latent(lambda f, i: log_of(law(f, beside[i]), values[i]))
    assert relative_error(found[0], expected) < QUADRATURE
    for place in (1, 2):
        each = over_latent(lambda f, i, p=place: likelihood.at(values[i], f, beside[i])[p])
        # a t is no polynomial near its mode: twenty points leave a little there
        assert relative_error(found[place], each) < (1e-3 if likelihood.name == "student_t" else QUADRATURE)


def test_moments_and_predictive_densities_are_those_of_the_mixture(case):
    likelihood, values, beside, law = case
    mean = over_latent(lambda f, i: law(f, beside[i]).mean())
    squares = over_latent(lambda f, i: law(f, beside[i]).var() + law(f, beside[i]).mean() ** 2)
    own = over_latent(lambda f, i: law(f, beside[i]).mean() ** 2)
    assert relative_error(likelihood.mean(MEAN, VARIANCE, beside), mean) < QUADRATURE
    assert relative_error(likelihood.variance(MEAN, VARIANCE, beside), squares - mean**2) < QUADRATURE
    without = likelihood.variance(MEAN, VARIANCE, beside, include_noise=False)
    assert np.allclose(without, own - mean**2, rtol=1e-5, atol=1e-9)
    densities = over_latent(lambda f, i: np.exp(log_of(law(f, beside[i]), values[i])))
    logs = predictive_log_density(likelihood, values, MEAN, VARIANCE, beside)
    assert relative_error(np.exp(logs), densities) < QUADRATURE
    below = over_latent(lambda f, i: law(f, beside[i]).cdf(values[i]))
    assert relative_error(predictive_distribution(likelihood, values, MEAN, VARIANCE, beside), below) < QUADRATURE


def quantile(likelihood, probability, *law):
    mean, reach = likelihood.mean(*law), np.sqrt(likelihood.variance(*law))
    return quantile_of(
        lambda y: predictive_distribution(likelihood, y, *law), probability, mean, reach, likelihood.is_discrete
    )


@pytest.mark.parametrize("probability", [0.05, 0.5, 0.95])
def test_quantiles_invert_distributions(case, probability):
    likelihood, _, beside, _ = case
    found = quantile(likelihood, probability, MEAN, VARIANCE, beside)
    reached = predictive_distribution(likelihood, found, MEAN, VARIANCE, beside)
    if likelihood.is_discrete:
        before = predictive_distribution(likelihood, found - 1, MEAN, VARIANCE, beside)
        assert np.array_equal(found, np.floor(found))
        assert np.all(reached >= probability)
        assert np.all(before < probability)
    else:
        assert relative_error(reached, np.full(3, probability)) < 1e-8


def test_draws_have_the_moments_and_uniform_transforms(case):
    likelihood, _, beside, _ = case
    rng, n_draws = np.random.default_rng(0), 20_000
    latent = MEAN + np.sqrt(VARIANCE) * rng.standard_normal((n_draws, 3))
    drawn = likelihood.draw(latent, beside, rng)
    error = np.sqrt(likelihood.variance(MEAN, VARIANCE, beside) / n_draws)
    assert np.all(np.abs(drawn.mean(axis=0) - likelihood.mean(MEAN, VARIANCE, beside)) < 4 * error)
    law = partial(predictive_distribution, likelihood, mean=MEAN, variance=VARIANCE, beside=beside)
    pit = randomised_pit(law, drawn[:2_000], likelihood.is_discrete, rng)
    assert min(kstest(pit[:, entry], "uniform").pvalue for entry in range(3)) > 1e-4


def test_parameters_are_learnt_where_expectations_are_highest():
    rng = np.random.default_rng(1)
    latent = rng.standard_normal(4_000)
    truths = {"freedom": 5.0, "scale": 0.5}
    values = StudentT(**truths).draw(latent, np.ones(1), rng)
    start = with_first_values(StudentT(), 1.0)
    nothing = np.zeros(latent.size)
    found = start
    for _ in range(20):
        found, gain = learn_parameters(found, ("freedom", "scale"), values, latent, nothing, np.ones(latent.size))
    best = student.fit(values - latent, floc=0.0)
    assert gain < 1e-3
    assert abs(np.log(found.freedom / best[0])) < 0.02
    assert abs(np.log(found.scale / best[2])) < 0.01
    assert open_parameters(StudentT(freedom=3.0)) == ("scale",)


@pytest.mark.parametrize("name", CASES)
def test_learning_starts_inside_the_bounds_and_in_the_unit_of_latent_signals(name):
    likelihood = as_likelihood(name)
    for low, first, high in likelihood.parameters.values():
        assert low < first < high
    plain, doubled = with_first_values(likelihood, 1.0), with_first_values(likelihood, 2.0)
    for parameter, (_, first, _) in likelihood.parameters.items():
        if parameter in open_parameters(likelihood):
            assert getattr(plain, parameter) == first
            assert getattr(doubled, parameter) == first * (2 if parameter == "scale" else 1)


def test_degrees_of_freedom_that_are_not_learnt_yet_are_those_that_learning_starts_from():
    values, latent, beside = np.array([0.3, -2.0, 40.0]), np.zeros(3), np.ones(3)
    found, expected = (
        one.at(values, latent, beside) for one in (StudentT(scale=1.0), with_first_values(StudentT(scale=1.0)))
    )
    np.testing.assert_array_equal(found, expected)


def test_one_of_your_own_takes_twenty_lines():
    found = quantile(as_likelihood(Waiting()), 0.5, np.zeros(1), np.zeros(1), np.ones(1))
    assert relative_error(found, [np.log(2)]) < 1e-8


def test_unknown_names_and_wrong_parameters_are_refused():
    with pytest.raises(ValueError, match="likelihood must be one of 'gaussian'"):
        as_likelihood("gamma")
    with pytest.raises(ValueError, match="dispersion must be a finite number above 0"):
        NegativeBinomial(-1.0)
    with pytest.raises(ValueError, match="freedom must be a finite number above 0"):
        StudentT(0.0)


def test_slopes_in_own_parameters_are_those_of_formulas():
    """Of a normal scale in closed form, and of two parameters by differences of expectations by hand."""
    rng = np.random.default_rng(0)
    values, mean, variance, beside = rng.standard_normal(30), rng.standard_normal(30), rng.random(30), np.ones(30)
    squares = np.sum(np.square(values - mean) + variance) / 0.7**2
    slope, curvature = parameter_slopes(Gaussian(0.7), ("scale",), values, mean, variance, beside)
    assert abs(slope[0] - (squares - 30)) < 1e-3 * squares
    assert abs(curvature[0, 0] - 2 * squares) < 1e-3 * squares

    def total(logs):
        return StudentT(*np.exp(logs)).expected(values, mean, variance, beside)[0].sum()

    slope, curvature = parameter_slopes(StudentT(4.0, 0.7), ("freedom", "scale"), values, mean, variance, beside)
    logs, h = np.log([4.0, 0.7]), 1e-3
    one, other = np.array([h, 0.0]), np.array([0.0, h])
    assert np.allclose(slope, [(total(logs + e) - total(logs - e)) / (2 * h) for e in (one, other)], rtol=1e-3)
    mixed = (
        total(logs + one + other) - total(logs + one - other) - total(logs - one + other) + total(logs - one - other)
    )
    assert abs(curvature[0, 1] + mixed / (4 * h**2)) < 0.05 * abs(curvature[0, 1])


def test_rough_latent_signals_are_those_that_values_suggest():
    """Half a count more keeps logarithms finite; outliers of a t are drawn in to three robust deviations."""
    counts, exposures = np.array([0.0, 2.0, 9.0]), np.array([0.5, 2.0, 10.0])
    for likelihood in (Poisson(), NegativeBinomial(0.4)):
        expected = [np.log(1.0), np.log(1.25), np.log(0.95)]
        np.testing.assert_allclose(likelihood.rough_latent(counts, exposures), expected)
    trials, values = np.array([4.0, 4.0, 4.0, 1.0]), np.array([0.0, 2.0, 3.0, 1.0])
    for likelihood in (Binomial(), Bernoulli()):
        found = likelihood.rough_latent(values, trials)
        np.testing.assert_allclose(found, np.log([0.5 / 4.5, 1.0, 3.5 / 1.5, 3.0]))
        np.testing.assert_allclose(likelihood.rough_latent(trials - values, trials), -found)
    values = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 50.0, -70.0])
    np.testing.assert_array_equal(Gaussian(0.7).rough_latent(values, np.ones(7)), values)
    reach = 3 * 2 / norm.ppf(0.75)  # the median distance from the median is that of a normal law times its deviation
    drawn_in = StudentT(4.0, 0.7).rough_latent(values, np.ones(7))
    np.testing.assert_allclose(drawn_in, [-1, 0, 1, 2, 3, 1 + reach, 1 - reach], rtol=1e-3)


def test_counts_below_zero_and_beyond_all_trials_are_certain_and_between_whole_numbers_nothing_changes(case):
    likelihood, values, beside, law = case
    if not likelihood.is_discrete:
        return
    for latent in (-1.3, 0.4):
        at = np.full(3, latent)
        assert not likelihood.distribution_at(np.array([-1.0, -0.5, -7.0]), at, beside).any()
        for further in (0.0, 0.4, 0.99):
            found = likelihood.distribution_at(values + further, at, beside)
            expected = [law(latent, one).cdf(value) for value, one in zip(values, beside, strict=True)]
            assert relative_error(found, expected) < FORMULA
    if isinstance(likelihood, Binomial | Bernoulli):
        assert np.array_equal(likelihood.distribution_at(beside + np.array([0.0, 0.5, 3.0]), MEAN, beside), np.ones(3))


@pytest.mark.parametrize(("first", "best"), [(0.1, 0.27182818), (20.0, 7.35758882), (0.9, None)])
def test_a_parameter_moves_by_a_factor_of_e_at_most_and_is_looked_for_no_further_than_can_be_told(first, best):
    """A normal scale, of which the best is known: the root of the mean square."""
    rng = np.random.default_rng(0)
    values, mean, variance = rng.standard_normal(50), 0.3 * rng.standard_normal(50), rng.random(50)
    truth, calls = np.sqrt(np.mean(np.square(values - mean) + variance)), []

    class Counted(Gaussian):
        def expected(self, *law):
            calls.append(self.scale)
            return super().expected(*law)

    found, gain = learn_parameters(Counted(first), ("scale",), values, mean, variance, np.ones(50))
    assert abs(np.log(found.scale / (best or truth))) < 1e-4
    assert len(calls) < 30
    totals = [Gaussian(one).expected(values, mean, variance, np.ones(50))[0].sum() for one in (found.scale, first)]
    assert gain == pytest.approx(totals[0] - totals[1])


def test_parameters_stay_within_their_bounds_in_the_unit_of_latent_signals():
    values, nothing, beside = np.full(20, 1e-9), np.zeros(20), np.ones(20)
    for unit, lowest in ((1.0, 1e-3), (50.0, 0.05)):
        found, _ = learn_parameters(Gaussian(2 * lowest), ("scale",), values, nothing, nothing, beside, unit=unit)
        assert lowest <= found.scale < 1.001 * lowest
    bounds = log_bounds(StudentT(), ("scale", "freedom"), 7.0)
    np.testing.assert_allclose(np.exp(bounds), [[7e-3, 700.0], [2.1, 100.0]])
    best = StudentT(4.0, 0.3)
    assert learn_parameters(best, (), values, nothing, nothing, beside) == (best, 0.0)


def test_quantiles_far_out_are_found_on_both_sides():
    """Of which the standard deviation says little, or is not finite at all."""
    for likelihood, law in ((Gaussian(0.7), norm(3.0, 0.7)), (StudentT(2.0, 0.7), student(2.0, 3.0, 0.7))):
        for probability in (1e-6, 0.3, 1 - 1e-6):
            found = quantile(likelihood, probability, np.array([3.0]), np.zeros(1), np.ones(1))
            assert relative_error(found, [law.ppf(probability)]) < 1e-7
    for probability in (1e-9, 0.2, 1 - 1e-9):
        found = quantile(Poisson(), probability, np.array([2.0]), np.zeros(1), np.array([3.0]))
        assert found == [poisson(3 * np.exp(2.0)).ppf(probability)]


def test_what_overflows_stays_a_number():
    for likelihood in (Poisson(), NegativeBinomial(0.4)):
        assert np.isfinite(likelihood.mean(np.array([2_000.0]), np.ones(1), np.ones(1))).all()
        assert np.isfinite(likelihood.mean_at(np.array([599.9]), np.ones(1))).all()
    assert relative_error(Poisson().mean_at(np.array([500.0]), np.ones(1)), np.exp([500.0])) < FORMULA


def test_values_must_be_what_a_likelihood_can_observe():
    """Entry by entry: counts, exposures, classes, trials."""
    values, beside = np.array([0.0, 3.0, 1.5, -1.0, 2.0]), np.array([1.0, 0.5, 2.0, 0.0, np.inf])
    exposed, counted = Poisson.conditions
    assert (exposed.argument, counted.argument) == ("exposure", "Y")
    assert exposed.holds(values, beside).tolist() == [True, True, True, False, False]
    assert counted.holds(values, beside).tolist() == [True, True, False, False, True]
    tried, counted, no_more = Binomial.conditions
    trials = np.array([1.0, 3.0, 2.5, 0.0, 1.0])
    assert tried.holds(values, trials).tolist() == [True, True, False, False, True]
    assert no_more.holds(values, trials).tolist() == [True, True, True, True, False]
    (classes,) = Bernoulli.conditions
    assert classes.holds(np.array([0.0, 1.0, 0.5, 2.0, -1.0]), trials).tolist() == [True, True, False, False, False]
    assert Gaussian.conditions == ()


def test_a_t_with_few_degrees_of_freedom_has_no_finite_variance():
    assert StudentT(2.0, 0.7).variance_at(np.zeros(1), np.ones(1)) == np.inf
    assert StudentT(3.0, 0.7).variance_at(np.zeros(1), np.ones(1)) == pytest.approx(3 * 0.49)
