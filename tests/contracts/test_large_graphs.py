"""The quadrature spectrum against the exact one: same likelihood, fits, predictions and leave-one-out."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import KERNELS, LARGE_CASES, LARGE_FILTERS, LargeCase
from spectralgp.graph import Graph
from spectralgp.graph_kernels import LocalAverage, Polynomial, PseudoInverse
from spectralgp.learning import Task, learn, learn_all
from spectralgp.learning.accuracy import likelihood_errors, require_moments
from spectralgp.learning.laplace import hyperparameter_draws
from spectralgp.learning.objective import Objective
from spectralgp.leave_one_out import leave_one_out
from spectralgp.posterior import condition
from spectralgp.spectrum import Chebyshev, LargeSignals, TooFewMoments, decompose
from tolerances import EXACT, FILTERED, GRADIENT, OPTIMUM, QUADRATURE, SAME_FILTER, STANDARD_ERRORS

EXACTLY = Chebyshev(n_moments=257, n_probes="exact")
LENGTH_SCALE = 1.3

every_case = pytest.mark.parametrize("case", LARGE_CASES.values(), ids=LARGE_CASES)


def objectives(case, settings=EXACTLY, kernel=None, **options):
    """The same objective on the exact spectrum and on the quadrature, and the point of the truth."""
    kernel = case.kernel if kernel is None else kernel
    exact = decompose(case.graph, kernel.laplacian, scaled=kernel.scaled)
    large = LargeSignals(case.graph, case.signals, settings)
    spectrum = large.spectrum(kernel.laplacian, kernel.scaled)
    true = Objective(Task(RBF(1.0), case.inputs, case.signals, **options), kernel.bind(exact), exact)
    ours = Objective(Task(RBF(1.0), case.inputs, large, **options), kernel.bind(spectrum), spectrum)
    return true, ours, true.join(true.graph_kernel.theta, np.log([LENGTH_SCALE]), case.noise_variance)


def posteriors(case, settings=EXACTLY, kernel=None):
    true, ours, x = objectives(case, settings, kernel)
    return (
        condition(true.model(x), case.inputs, case.signals),
        condition(ours.model(x), case.inputs, ours.task.signals),
    )


@cache
def remembered(name):
    return posteriors(LARGE_CASES[name])


# Likelihood


@every_case
@pytest.mark.parametrize("prior", ["weak", None])
def test_likelihood_and_gradient_are_those_of_the_exact_spectrum(case, prior):
    true, ours, x = objectives(case, prior=prior)
    (expected, expected_gradient), (actual, gradient) = true.evaluate(x), ours.evaluate(x)
    assert oracle.relative_error(actual, expected) < QUADRATURE
    assert oracle.relative_error(gradient, expected_gradient) < QUADRATURE
    differences = oracle.jacobian(lambda point: ours.evaluate(point)[0], x)
    assert oracle.relative_error(gradient, differences) < GRADIENT


@pytest.mark.parametrize("name", [name for name in KERNELS if not name.startswith(("LocalAverage", "PseudoInverse"))])
def test_every_kernel_on_the_spectrum_works(name):
    """Away from its maximum, where gradients are not small."""
    case = dataclasses.replace(LARGE_CASES["low-pass, 10%"], n_nodes=80)
    true, ours, x = objectives(case, Chebyshev(n_moments=513, n_probes="exact"), KERNELS[name].kernel)
    (expected, expected_gradient), (actual, gradient) = true.evaluate(x), ours.evaluate(x)
    assert oracle.relative_error(actual, expected) < QUADRATURE
    assert oracle.relative_error(gradient, expected_gradient) < QUADRATURE
    assert likelihood_errors(ours, x)[0] < QUADRATURE * abs(expected)


@pytest.mark.parametrize("kernel", [LocalAverage(), PseudoInverse()])
def test_kernels_that_are_no_smooth_function_on_the_spectrum_say_so(kernel):
    case = LARGE_CASES["low-pass, 10%"]
    large = LargeSignals(case.graph, case.signals, Chebyshev())
    with pytest.raises(ValueError, match=r"graph_kernel must be a function on the spectrum without a pole.*exact"):
        learn(Task(RBF(1.0), case.inputs, large), case.graph, kernel)


# Stated errors


@every_case
@pytest.mark.parametrize("n_moments", [3, 5, 9, 17, 33, 65, 129])
def test_the_truncation_error_is_a_bound(case, n_moments):
    true, ours, x = objectives(case, Chebyshev(n_moments=n_moments, n_probes="exact"))
    error = abs(ours.evidence(x).log_likelihood - true.evidence(x).log_likelihood)
    bound, probes = likelihood_errors(ours, x)
    assert error <= bound + EXACT * abs(true.evidence(x).log_likelihood)
    assert probes == 0.0
    assert likelihood_errors(true, x) == (0.0, 0.0)


@every_case
@pytest.mark.parametrize("n_moments", [3, 9, 33])
def test_the_truncation_error_bounds_the_log_determinant_too(case, n_moments):
    """Signals of zeros have nothing but the determinant."""
    true, _, x = objectives(case, Chebyshev(n_moments=3), prior=None)
    silent = LargeSignals(case.graph, np.zeros_like(case.signals), Chebyshev(n_moments=n_moments, n_probes="exact"))
    spectrum = silent.spectrum("combinatorial", scaled=True)
    true = Objective(Task(RBF(1.0), case.inputs, np.zeros_like(case.signals)), case.kernel, true.spectrum)
    ours = Objective(Task(RBF(1.0), case.inputs, silent), case.kernel, spectrum)
    error = abs(ours.evidence(x).log_likelihood - true.evidence(x).log_likelihood)
    assert error <= likelihood_errors(ours, x)[0] + EXACT * abs(true.evidence(x).log_likelihood)


@every_case
def test_the_probe_error_covers_the_deviation(case):
    """Over 30 seeds: deviations in units of the stated error have a root mean square of one, and a mean of zero.

    With 16 probes and two control variates the stated error has 13 degrees of freedom, so a deviation in its units is
    Student's, with variance 13/11; its mean over the seeds has a standard error of 0.2.
    """
    truth, deviations = None, []
    for seed in range(30):
        true, ours, x = objectives(case, Chebyshev(n_moments=257, n_probes=16, random_state=seed))
        truth = true.evidence(x).log_likelihood if truth is None else truth
        deviations.append((ours.evidence(x).log_likelihood - truth) / likelihood_errors(ours, x)[1])
    assert 0.6 < np.sqrt(np.mean(np.square(deviations))) < 1.5
    assert abs(np.mean(deviations)) < STANDARD_ERRORS * np.sqrt(13 / 11 / 30)
    assert np.max(np.abs(deviations)) < STANDARD_ERRORS


def test_too_few_moments_are_noticed_and_added():
    case = LARGE_CASES["notch, 1%"]
    settings = Chebyshev(n_moments=9, n_probes="exact", tolerance=1e-8)
    _, ours, x = objectives(case, settings)
    with pytest.raises(TooFewMoments):
        require_moments(ours, x)
    large = LargeSignals(case.graph, case.signals, settings)
    fit = learn(Task(RBF(1.0), case.inputs, large, prior=None), case.graph, Polynomial(2))
    assert fit.converged
    assert fit.model.spectrum.eigenvalues.size > 9
    assert 0 < fit.truncation_error <= 1e-8 * case.signals.size
    exact = learn(Task(RBF(1.0), case.inputs, case.signals, prior=None), case.graph, Polynomial(2, "interval"))
    assert abs(fit.log_likelihood - exact.log_likelihood) < OPTIMUM * case.signals.size


def test_a_fit_that_runs_out_of_moments_says_so():
    case = LARGE_CASES["notch, 1%"]
    large = LargeSignals(case.graph, case.signals, Chebyshev(n_moments=9, max_moments=17, n_probes="exact"))
    fit = learn(Task(RBF(1.0), case.inputs, large), case.graph, Polynomial(2))
    assert not fit.converged
    assert "truncation error of" in fit.message
    assert "raise max_moments" in fit.message
    assert fit.truncation_error > 1e-5 * case.signals.size


def test_the_papers_algorithm_states_its_truncation_error():
    case = LARGE_CASES["notch, 1%"]
    large = LargeSignals(case.graph, case.signals, Chebyshev(n_moments=9, max_moments=17, n_probes="exact"))
    fit = learn(Task(RBF(1.0), case.inputs, large), case.graph, Polynomial(2), solver="lagrangian", max_iterations=20)
    assert fit.truncation_error > 1e-5 * case.signals.size


# Fits


@every_case
def test_fitted_coefficients_are_those_of_the_exact_fit(case):
    degree = max(3, len(case.coefficients) - 1)
    kernel = Polynomial(degree, "interval")
    exact = learn(Task(RBF(1.0), case.inputs, case.signals), case.graph, kernel)
    large = LargeSignals(case.graph, case.signals, Chebyshev(n_probes="exact"))
    fit = learn(Task(RBF(1.0), case.inputs, large), case.graph, kernel)
    assert fit.converged
    assert oracle.relative_error(fit.model.graph_kernel.theta, exact.model.graph_kernel.theta) < SAME_FILTER
    assert (
        oracle.relative_error(fit.model.graph_kernel.coefficients, exact.model.graph_kernel.coefficients) < SAME_FILTER
    )
    assert oracle.relative_error(fit.model.noise_variance, exact.model.noise_variance) < SAME_FILTER
    assert (
        oracle.relative_error(fit.model.input_kernel.kernel.length_scale, exact.model.input_kernel.kernel.length_scale)
        < SAME_FILTER
    )
    assert abs(fit.log_likelihood - exact.log_likelihood) < OPTIMUM * case.signals.size


@pytest.mark.parametrize("n_moments", [33, 161])
def test_degree_eight_does_not_run_away(n_moments):
    """The notch at 1% noise that fooled a prototype: negative weights made a large noise look likely."""
    case = LARGE_CASES["notch, 1%"]
    large = LargeSignals(case.graph, case.signals, Chebyshev(n_moments=n_moments, n_probes="exact"))
    fit = learn(Task(RBF(1.0), case.inputs, large, prior=None), case.graph, Polynomial(8))
    exact = learn(Task(RBF(1.0), case.inputs, case.signals, prior=None), case.graph, Polynomial(8, "interval"))
    assert fit.model.noise_variance == pytest.approx(exact.model.noise_variance, rel=SAME_FILTER)
    grid = np.linspace(0, 1, 101)
    learnt, truth = fit.model.graph_kernel.response(grid), exact.model.graph_kernel.response(grid)
    assert oracle.relative_error(learnt, truth) < SAME_FILTER
    assert fit.truncation_error <= 1e-5 * case.signals.size


def test_kernels_that_need_different_numbers_of_moments_live_together():
    """A constant filter needs few, a notch many: the first one's spectrum stays as it was, and readable."""
    case = LARGE_CASES["notch, 1%"]
    large = LargeSignals(case.graph, case.signals, Chebyshev(n_moments=9, n_probes="exact"))
    task = Task(RBF(1.0), case.inputs, large)
    kernels = [Polynomial(0, laplacian="normalized"), Polynomial(2)]
    flat, notch = learn_all(task, case.graph, kernels)
    assert flat.model.spectrum.eigenvalues.size < notch.model.spectrum.eigenvalues.size
    exact = learn(dataclasses.replace(task, signals=case.signals), case.graph, kernels[0])
    assert abs(flat.log_likelihood - exact.log_likelihood) < OPTIMUM * case.signals.size
    assert len(hyperparameter_draws(task, flat, 2, np.random.default_rng(0))) == 2
    expected = leave_one_out(condition(exact.model, case.inputs, case.signals)).log_density
    actual = leave_one_out(condition(flat.model, case.inputs, large)).log_density
    assert oracle.relative_error(actual, expected) < SAME_FILTER


# Prediction


@pytest.mark.parametrize("name", LARGE_CASES)
def test_means_and_variances_are_those_of_the_exact_posterior(name):
    case, (true, ours) = LARGE_CASES[name], remembered(name)
    expected, actual = true.at(case.new), ours.at(case.new)
    assert oracle.relative_error(actual.mean, expected.mean) < QUADRATURE
    nodes = np.array([7, 0, 299, *range(20, 60)])
    for include_noise in (True, False):
        variance = expected.variance(include_noise)
        assert oracle.relative_error(actual.variance(include_noise, nodes), variance[:, nodes]) < FILTERED
        assert oracle.relative_error(actual.std(include_noise, nodes), np.sqrt(variance[:, nodes])) < QUADRATURE


@every_case
def test_variances_at_all_nodes_are_within_their_stated_error(case):
    """The root mean square over 300 nodes of the deviation, in units of the stated one."""
    true, ours = posteriors(case, dataclasses.replace(EXACTLY, n_probes=64))
    expected, prediction = true.at(case.new).variance(), ours.at(case.new)
    deviation = np.sqrt(np.mean((prediction.variance() - expected) ** 2, axis=1))
    ratio = deviation / prediction.variance_error
    assert np.all((ratio > 0.7) & (ratio < 1.4))
    assert prediction.variance_error.shape == (len(case.new),)
    noisy = prediction.variance(include_noise=True) - prediction.variance()
    assert oracle.relative_error(noisy, np.full_like(noisy, case.noise_variance)) < QUADRATURE
    assert np.all(np.isfinite(prediction.std()))


def test_probes_cut_the_error_of_variances_by_their_root():
    case = LARGE_CASES["low-pass, 10%"]
    errors = []
    for n_probes in (16, 256):
        prediction = posteriors(case, dataclasses.replace(EXACTLY, n_probes=n_probes))[1].at(case.new)
        errors.append(np.mean(prediction.variance_error))
    assert 2.5 < errors[0] / errors[1] < 6.0  # four


@pytest.mark.parametrize("name", LARGE_CASES)
def test_log_densities_are_those_of_the_exact_posterior(name):
    case, (true, ours) = LARGE_CASES[name], remembered(name)
    expected, actual = true.at(case.new), ours.at(case.new)
    assert oracle.relative_error(actual.log_density(case.observed), expected.log_density(case.observed)) < QUADRATURE
    single = expected.log_density(case.observed, joint=False)
    assert oracle.relative_error(actual.log_density(case.observed, joint=False), single) < QUADRATURE


@pytest.mark.parametrize("name", LARGE_CASES)
def test_held_out_log_densities_need_no_further_pass(name):
    case = LARGE_CASES[name]
    true, ours, x = objectives(case)
    kept, held_out = np.array([0, 2, 3, 5, 6]), np.array([7, 1, 4])
    expected = condition(true.model(x), case.inputs[kept], case.signals[kept])
    whole = ours.task.signals
    actual = condition(ours.model(x), case.inputs[kept], whole.subset(kept))
    densities = actual.at(case.inputs[held_out]).held_out_log_density(whole, kept, held_out)
    truth = expected.at(case.inputs[held_out]).log_density(case.signals[held_out], joint=False)
    assert oracle.relative_error(densities, truth) < QUADRATURE


def test_samples_have_the_moments_of_the_prediction():
    case = LargeCase(LARGE_FILTERS["band-pass"], 0.1, n_nodes=60)
    true, ours = posteriors(case)
    expected, n_samples = true.at(case.new), 400
    for include_noise in (False, True):
        draws = ours.at(case.new).sample(n_samples, np.random.default_rng(0), include_noise)
        assert draws.shape == (n_samples, 3, 60)
        flat = draws.reshape(n_samples, -1)
        joint = expected.joint_covariance(include_noise).reshape(flat.shape[1], -1)
        errors = np.sqrt(np.diag(joint) / n_samples)
        assert np.all(np.abs(flat.mean(axis=0) - expected.mean.ravel()) < STANDARD_ERRORS * errors)
        found = np.cov(flat.T)
        spread = np.sqrt((np.multiply.outer(np.diag(joint), np.diag(joint)) + joint**2) / n_samples)
        assert np.all(np.abs(found - joint) < STANDARD_ERRORS * spread)


def test_samples_of_a_filter_that_ends_at_zero_take_few_terms():
    """Beyond the largest eigenvalue the filter turns negative: the root of its square has a kink there."""
    case = LargeCase((1.0, -1.0), 0.1, n_nodes=60)
    _, ours = posteriors(case)
    assert ours.response_series().size == 2
    assert ours.series(np.sqrt).size > 100


def test_covariances_over_the_nodes_are_refused():
    case, (_, ours) = LARGE_CASES["notch, 10%"], remembered("notch, 10%")
    with pytest.raises(ValueError, match=r"return_cov must be False on a large graph.*300\^2 entries; got True\. Ask"):
        ours.at(case.new).node_covariance()


# Leave-one-out


@pytest.mark.parametrize("name", LARGE_CASES)
def test_leaving_out_signals_is_that_of_the_exact_posterior(name):
    """Deviations come from probes: 64 of them, each wrong by about its size over the root of 64."""
    true, ours = remembered(name)
    expected, actual = leave_one_out(true), leave_one_out(ours)
    assert actual.by == "signal"
    assert oracle.relative_error(actual.log_density, expected.log_density) < QUADRATURE
    assert oracle.relative_error(actual.mean, expected.mean) < QUADRATURE
    deviation = np.sqrt(np.mean((actual.std**2 - expected.std**2) ** 2, axis=1))
    assert np.all(deviation < 3 / np.sqrt(64) * np.mean(expected.std**2, axis=1))
    assert oracle.relative_error(np.mean(actual.std**2, axis=1), np.mean(expected.std**2, axis=1)) < 0.05


@pytest.mark.parametrize("by", ["node", "entry"])
def test_leaving_out_nodes_is_refused(by):
    with pytest.raises(ValueError, match=rf"by must be 'signal' on a large graph.*got '{by}'\. Use spectrum='exact'"):
        leave_one_out(remembered("notch, 10%")[1], by)


# Independent signals, given covariances, odd graphs


def test_independent_signals_and_given_covariances_work_too():
    case = LARGE_CASES["band-pass, 10%"]
    covariance = oracle.rbf(case.inputs, case.inputs, LENGTH_SCALE)
    for input_kernel, inputs in [(None, np.empty((8, 0))), ("precomputed", covariance)]:
        large = LargeSignals(case.graph, case.signals, EXACTLY)
        kernel = Polynomial(2, "interval")
        exact = learn(Task(input_kernel, inputs, case.signals), case.graph, kernel)
        fit = learn(Task(input_kernel, inputs, large), case.graph, kernel)
        assert abs(fit.log_likelihood - exact.log_likelihood) < OPTIMUM * case.signals.size
        expected = leave_one_out(condition(exact.model, inputs, case.signals))
        model = dataclasses.replace(exact.model, spectrum=fit.model.spectrum)
        actual = leave_one_out(condition(model, inputs, large))
        assert oracle.relative_error(actual.log_density, expected.log_density) < QUADRATURE
        assert oracle.relative_error(actual.mean, expected.mean, np.max(np.abs(case.signals))) < QUADRATURE


@pytest.mark.parametrize("weights", [np.zeros((6, 6)), oracle.disconnected(), oracle.star(9), oracle.complete(2)])
def test_odd_graphs_give_the_exact_likelihood(weights):
    graph = Graph(weights)
    signals = np.random.default_rng(0).standard_normal((5, graph.n_nodes))
    large = LargeSignals(graph, signals, EXACTLY)
    for kernel in (Polynomial(1, "interval"), Polynomial(1, "interval", laplacian="normalized", scaled=False)):
        exact = learn(Task(None, np.empty((5, 0)), signals - signals.mean(), prior=None), graph, kernel)
        shifted = LargeSignals(graph, signals, EXACTLY, offset=signals.mean())
        fit = learn(Task(None, np.empty((5, 0)), shifted, prior=None), graph, kernel)
        assert abs(fit.log_likelihood - exact.log_likelihood) < OPTIMUM * signals.size
    assert large.shape == signals.shape
