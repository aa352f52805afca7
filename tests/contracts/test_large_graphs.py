"""The quadrature spectrum against the exact one: same likelihood, fits, predictions and leave-one-out."""

import dataclasses
from functools import cache

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import KERNELS, LARGE_CASES, LARGE_FILTERS, LargeCase
from spectralgp.graphs import Graph
from spectralgp.learning import Outcome, Task, hyperparameter_draws, learn, learn_all
from spectralgp.learning.objective import Objective
from spectralgp.model.fields import condition, graph_gp, leave_one_out, log_marginal_likelihood, standard_deviation
from spectralgp.model.kernels import Diffusion, Polynomial, held_out_inputs
from spectralgp.model.signals import read_signals
from spectralgp.model.spectra import Chebyshev, Exact, LikelihoodErrors
from tolerances import EXACT, FILTERED, GRADIENT, OPTIMUM, QUADRATURE, SAME_FILTER, STANDARD_ERRORS

EXACTLY = Chebyshev(n_moments=257, n_probes="exact")
LENGTH_SCALE = 1.3

every_case = pytest.mark.parametrize("case", LARGE_CASES.values(), ids=LARGE_CASES)


def task_of(case, settings=Exact(), signals=None, input_kernel=None, inputs=None, **options):
    """The case's task on the exact spectrum, or on a quadrature with the given settings."""
    kernel = RBF(1.0) if input_kernel is None else input_kernel
    values = case.signals if signals is None else signals
    return Task.of(case.graph, kernel, case.inputs if inputs is None else inputs, values, spectrum=settings, **options)


def objectives(case, settings=EXACTLY, kernel=None, **options):
    """The same objective on the exact spectrum and on the quadrature, and the point of the truth."""
    kernel = case.kernel if kernel is None else kernel
    found = []
    for task in (task_of(case, **options), task_of(case, settings, **options)):
        spectrum = task.spectrum_of(kernel)
        found.append(Objective(task, kernel.bind(spectrum), spectrum))
    true, ours = found
    return true, ours, true.join(true.graph_kernel.theta, np.log([LENGTH_SCALE]), case.noise_variance)


def posteriors(case, settings=EXACTLY, kernel=None):
    true, ours, x = objectives(case, settings, kernel)
    return condition(true.model(x), case.inputs, case.signals), condition(ours.model(x), case.inputs, case.signals)


@cache
def remembered(name):
    return posteriors(LARGE_CASES[name])


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
    assert ours.evidence(x).errors.truncation < QUADRATURE * abs(expected)


@every_case
@pytest.mark.parametrize("n_moments", [3, 5, 9, 17, 33, 65, 129])
def test_the_truncation_error_is_a_bound(case, n_moments):
    true, ours, x = objectives(case, Chebyshev(n_moments=n_moments, n_probes="exact"))
    error = abs(ours.evidence(x).log_likelihood - true.evidence(x).log_likelihood)
    stated = ours.evidence(x).errors
    assert error <= stated.truncation + EXACT * abs(true.evidence(x).log_likelihood)
    assert stated.probes == stated.rounding == 0.0
    assert true.evidence(x).errors == LikelihoodErrors()


@every_case
@pytest.mark.parametrize("n_moments", [3, 9, 33])
def test_the_truncation_error_bounds_the_log_determinant_too(case, n_moments):
    """Signals of zeros have nothing but the determinant."""
    silent = dataclasses.replace(case)
    object.__setattr__(silent, "signals", np.zeros_like(case.signals))
    true, ours, x = objectives(silent, Chebyshev(n_moments=n_moments, n_probes="exact"))
    error = abs(ours.evidence(x).log_likelihood - true.evidence(x).log_likelihood)
    assert error <= ours.evidence(x).errors.truncation + EXACT * abs(true.evidence(x).log_likelihood)


NAMED = [pytest.param(case, id=name, marks=pytest.mark.slow) for name, case in LARGE_CASES.items()]
NAMED[0] = pytest.param(LARGE_CASES["low-pass, 10%"], id="low-pass, 10%")


@pytest.mark.parametrize("case", NAMED)
def test_the_probe_error_covers_the_deviation(case):
    """Over 120 seeds: deviations in units of the stated error have a root mean square of about one, and a mean of zero.

    With 16 probes and two control variates the stated error has 13 degrees of freedom, so a deviation in its units is
    Student's, with variance 13/11, wider by 14/12 for the slopes of the controls, which are estimated too; its mean
    over the seeds has a standard error of 0.11.
    """
    truth, deviations = None, []
    for seed in range(120):
        true, ours, x = objectives(case, Chebyshev(n_moments=257, n_probes=16, random_state=seed))
        truth = true.evidence(x).log_likelihood if truth is None else truth
        deviations.append((ours.evidence(x).log_likelihood - truth) / ours.evidence(x).errors.probes)
    assert 0.6 < np.sqrt(np.mean(np.square(deviations))) < 1.5
    assert abs(np.mean(deviations)) < STANDARD_ERRORS * np.sqrt(13 / 11 * 14 / 12 / 120)
    assert np.max(np.abs(deviations)) < STANDARD_ERRORS


@pytest.mark.parametrize(
    ("weights", "strength"),
    [(oracle.star(60), 1e5), (np.diag([1.0] * 58 + [1e9], 1) + np.diag([1.0] * 58 + [1e9], -1), 1e3)],
    ids=["star", "a heavy edge"],
)
def test_the_truncation_error_sees_a_filter_that_is_steep_between_its_points(weights, strength):
    """Almost all eigenvalues lie within the first gap of the interpolation, and so does all that the filter does."""
    graph = Graph(weights)
    signals = read_signals(np.random.default_rng(0).standard_normal((4, len(weights))))
    kernel = Diffusion(strength=strength, laplacian="combinatorial")
    found = []
    for settings in (Exact(), Chebyshev(n_moments=33, n_probes="exact")):
        task = Task.of(graph, None, np.empty((4, 0)), signals, 0.01, spectrum=settings)
        found.append(Objective(task, kernel, task.spectrum_of(kernel)))
    true, ours = found
    x = kernel.theta
    error = abs(ours.evidence(x).log_likelihood - true.evidence(x).log_likelihood)
    assert error > 1  # the quadrature is of no use here
    assert ours.evidence(x).errors.truncation >= error


def test_too_few_moments_are_noticed_and_added():
    case = LARGE_CASES["notch, 1%"]
    settings = Chebyshev(n_moments=9, n_probes="exact", tolerance=1e-8)
    _, ours, x = objectives(case, settings)
    assert not ours.evidence(x).errors.is_tolerable
    assert ours.spectrum.refined().n_moments == 17
    fit = learn(task_of(case, settings, prior=None), Polynomial(2))
    assert fit.converged
    assert fit.model.spectrum.eigenvalues.size > 9
    assert 0 < fit.truncation_error <= 1e-8 * case.signals.size
    exact = learn(task_of(case, prior=None), Polynomial(2, "interval"))
    assert abs(fit.log_likelihood - exact.log_likelihood) < OPTIMUM * case.signals.size


def test_a_fit_that_runs_out_of_moments_says_so():
    case = LARGE_CASES["notch, 1%"]
    fit = learn(task_of(case, Chebyshev(n_moments=9, max_moments=17, n_probes="exact")), Polynomial(2))
    assert not fit.converged
    assert fit.outcome is Outcome.TOO_FEW_MOMENTS
    assert "Raise max_moments" in fit.message


@every_case
def test_fitted_coefficients_are_those_of_the_exact_fit(case):
    degree = max(3, len(case.coefficients) - 1)
    kernel = Polynomial(degree, "interval")
    exact = learn(task_of(case), kernel)
    fit = learn(task_of(case, Chebyshev(n_probes="exact")), kernel)
    assert fit.converged
    for of in (
        lambda model: model.graph_kernel.theta,
        lambda model: model.graph_kernel.coefficients,
        lambda model: model.noise_variance,
        lambda model: model.input_kernel.kernel.length_scale,
    ):
        assert oracle.relative_error(of(fit.model), of(exact.model)) < SAME_FILTER
    assert abs(fit.log_likelihood - exact.log_likelihood) < OPTIMUM * case.signals.size


@pytest.mark.parametrize("n_moments", [33, 161])
def test_degree_eight_does_not_run_away(n_moments):
    """The notch at 1% noise that fooled a prototype: negative weights made a large noise look likely."""
    case = LARGE_CASES["notch, 1%"]
    fit = learn(task_of(case, Chebyshev(n_moments=n_moments, n_probes="exact"), prior=None), Polynomial(8))
    exact = learn(task_of(case, prior=None), Polynomial(8, "interval"))
    assert fit.model.noise_variance == pytest.approx(exact.model.noise_variance, rel=SAME_FILTER)
    grid = np.linspace(0, 1, 101)
    learnt, truth = fit.model.graph_kernel.response(grid), exact.model.graph_kernel.response(grid)
    assert oracle.relative_error(learnt, truth) < SAME_FILTER
    assert fit.truncation_error <= 1e-5 * case.signals.size


def test_kernels_that_need_different_numbers_of_moments_live_together():
    """A constant filter needs few, a notch many: the first one's spectrum stays as it was, and readable."""
    case = LARGE_CASES["notch, 1%"]
    task = task_of(case, Chebyshev(n_moments=9, n_probes="exact"))
    kernels = [Polynomial(0, laplacian="normalized"), Polynomial(2)]
    flat, notch = learn_all([task, task], kernels)
    assert flat.model.spectrum.eigenvalues.size < notch.model.spectrum.eigenvalues.size
    exact = learn(task_of(case), kernels[0])
    assert abs(flat.log_likelihood - exact.log_likelihood) < OPTIMUM * case.signals.size
    assert len(hyperparameter_draws(task, flat, 2, np.random.default_rng(0)).models) == 2
    expected = leave_one_out(condition(exact.model, case.inputs, case.signals)).log_density
    actual = leave_one_out(condition(flat.model, case.inputs, task.signals)).log_density
    assert oracle.relative_error(actual, expected) < SAME_FILTER


@pytest.mark.parametrize("name", LARGE_CASES)
def test_means_and_variances_are_those_of_the_exact_posterior(name):
    case, (true, ours) = LARGE_CASES[name], remembered(name)
    expected, actual = true.at(case.new), ours.at(case.new)
    assert oracle.relative_error(actual.mean, expected.mean) < QUADRATURE
    nodes = np.array([7, 0, 299, *range(20, 60)])
    for include_noise in (True, False):
        variance = expected.variance(include_noise)
        assert oracle.relative_error(actual.variance(include_noise, nodes), variance[:, nodes]) < FILTERED
        deviation = standard_deviation(actual, include_noise, nodes)
        assert oracle.relative_error(deviation, np.sqrt(variance[:, nodes])) < QUADRATURE


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
    assert np.all(np.isfinite(standard_deviation(prediction)))


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
    task, model = ours.task, ours.model(x)
    signals, others = task.signals.fold(kept, held_out)
    part = task.part(kept, signals)
    posterior = condition(model, part.inputs, part.signals)
    prediction = posterior.given(
        held_out_inputs(model.input_kernel, task.inputs, kept, held_out), task.inputs[held_out]
    )
    densities = posterior.log_densities_of(prediction, others)
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


@pytest.mark.parametrize("weights", [np.zeros((6, 6)), oracle.disconnected(), oracle.star(9), oracle.complete(2)])
def test_odd_graphs_give_the_exact_likelihood(weights):
    graph = Graph(weights)
    signals = read_signals(np.random.default_rng(0).standard_normal((5, graph.n_nodes)), center="global")
    for kernel in (Polynomial(1, "interval"), Polynomial(1, "interval", laplacian="normalized", scaled=False)):
        fits = [
            learn(Task.of(graph, None, np.empty((5, 0)), signals, prior=None, spectrum=settings), kernel)
            for settings in (Exact(), EXACTLY)
        ]
        assert abs(fits[0].log_likelihood - fits[1].log_likelihood) < OPTIMUM * signals.size


def test_a_prior_on_a_large_graph_needs_no_data():
    """It can be made, sampled and asked for a likelihood, and knows the graph's spectrum from then on."""
    case = LargeCase(LARGE_FILTERS["band-pass"], 0.1, n_nodes=60)
    prior = graph_gp(case.graph, case.kernel, RBF(LENGTH_SCALE), 0.3, spectrum=EXACTLY)
    exact = graph_gp(case.graph, case.kernel, RBF(LENGTH_SCALE), 0.3)
    expected = log_marginal_likelihood(exact, case.inputs, case.signals)
    assert oracle.relative_error(log_marginal_likelihood(prior, case.inputs, case.signals), expected) < QUADRATURE
    for include_noise in (False, True):
        draws = prior.sample(case.inputs[:2], 3000, np.random.default_rng(0), include_noise)
        covariance = oracle.covariance(
            oracle.rbf(case.inputs[:2], case.inputs[:2], LENGTH_SCALE), exact.node_covariance(), 0.3 * include_noise
        )
        found = np.cov(draws.reshape(3000, -1).T)
        spread = np.sqrt((np.multiply.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / 3000)
        assert np.all(np.abs(found - covariance) < STANDARD_ERRORS * spread)
    with pytest.raises(ValueError, match="spectrum must be exact to write out the covariance of all nodes"):
        prior.node_covariance()
