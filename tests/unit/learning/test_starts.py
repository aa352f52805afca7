"""Starts, typical and random, and what restarts find, against a brute-force search of the dense model."""

import itertools

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import oracle
from spectralgp import Diffusion, Graph, GraphGPRegressor, Identity, Polynomial, Response, Sqp, Task, learn
from spectralgp.learning import sqp
from spectralgp.learning.objective import Objective
from spectralgp.learning.sqp import random_start
from spectralgp.model.kernels import WithResidual, as_input_kernel, input_starts, with_residual
from spectralgp.model.spectra import Chebyshev
from tolerances import EXACT, FORMULA, OPTIMUM, SAME_EVIDENCE, STANDARD_ERRORS

WEIGHTS = oracle.random_weights(6, 1)
BOUNDS = (1e-2, 1e2)
SEVERAL = 76  # the seed of data on which the highest maximum is not the continuation's


def data(seed):
    """Six signals of one input on six nodes: few enough for several maxima."""
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(0, 3, (6, 1))
    return inputs, np.sin(inputs + np.arange(6)) + 0.5 * rng.standard_normal((6, 6))


def task(seed, **options):
    return Task.of(Graph(WEIGHTS), RBF(1.0, BOUNDS), *data(seed), **{"prior": None} | options)


# Starts


@pytest.mark.parametrize("prior", ["weak", None])
@pytest.mark.parametrize(
    "kernel", [with_residual(Polynomial(2), Polynomial(1)), Polynomial(2)], ids=["residual", "none"]
)
def test_a_start_from_some_of_many_signals_leads_to_the_same_maximum(monkeypatch, kernel, prior):
    rng = np.random.default_rng(1)
    inputs, smooth = rng.uniform(-2, 2, (80, 2)), np.linalg.inv(np.eye(6) + oracle.laplacian(WEIGHTS))
    explained = np.sin(inputs @ rng.standard_normal((2, 6))) + 0.3 * rng.standard_normal((80, 6))
    own = Task.of(Graph(WEIGHTS), RBF(1.0, BOUNDS), inputs, explained @ smooth, prior=prior)
    whole = learn(own, kernel)
    monkeypatch.setattr(sqp, "SIGNALS_BEFORE_ALL", 30)
    started = learn(own, kernel)
    assert started.converged
    assert started.log_posterior == pytest.approx(whole.log_posterior, abs=OPTIMUM)
    assert started.n_evaluations <= 10 < 30 < whole.n_evaluations


def test_with_inputs_held_the_objective_is_that_of_the_other_parameters():
    own = task(SEVERAL, prior="weak")
    kernel = with_residual(Polynomial(2), Polynomial(1))
    spectrum = own.spectrum_of(kernel)
    whole = Objective(own, kernel.bind(spectrum), spectrum)
    x, other = whole.starting_points()[0], whole.starting_points()[-1]
    held = whole.inputs_held(x)
    rest = np.delete(np.arange(x.size), whole.n_graph)
    assert np.array_equal(held.bounds, whole.bounds[rest])
    value, gradient = whole.evaluate(x)
    assert oracle.relative_error(held.evaluate(x[rest])[1], gradient[rest]) < EXACT
    moved = np.where(np.arange(x.size) == whole.n_graph, x, other + 0.1)
    gain = held.evaluate(moved[rest])[0] - held.evaluate(x[rest])[0]
    assert gain == pytest.approx(whole.evaluate(moved)[0] - value, rel=FORMULA)


def test_length_scales_start_as_given_and_at_a_third_of_and_at_the_typical_distance():
    inputs = np.array([[0.0], [1.0], [3.0]])  # distances 1, 2, 3
    kernel = as_input_kernel(ConstantKernel(5.0) * RBF(0.1))
    given, third, typical = (
        np.exp(theta).round(12).tolist() for theta in input_starts(kernel, kernel.prior(inputs)[0])
    )
    assert given == [5.0, 0.1]
    assert third == pytest.approx([5.0, 2 / 3])
    assert typical == pytest.approx([5.0, 2.0])
    # nothing to vary where no length scale is free
    for other in (ConstantKernel(5.0), RBF(2.0, "fixed"), None):
        kernel = as_input_kernel(other)
        assert len(input_starts(kernel, kernel.prior(inputs)[0])) == 1


def test_typical_starts_are_every_pair_of_those_of_the_kernels():
    problem = task(0)
    spectrum = problem.spectrum_of(Diffusion())
    starts = Objective(problem, Diffusion(), spectrum).starting_points()
    centres, _ = problem.input_kernel.prior(problem.inputs)
    expected = itertools.product(
        Diffusion().search().starting_points(spectrum, problem.variance), input_starts(problem.input_kernel, centres)
    )
    assert len(starts) == 9
    for start, (graph, inputs) in zip(starts, expected, strict=True):
        np.testing.assert_allclose(start, [*graph, *inputs, np.log(0.2 * problem.variance)], rtol=EXACT)


@pytest.mark.parametrize(
    "kernel",
    [
        Identity(),
        Diffusion(strength_bounds=(0.5, 2.0)),
        Polynomial(3),
        Polynomial(2) + Identity(),
        WithResidual.of(Polynomial(2), Polynomial(1)),
    ],
    ids=lambda kernel: kernel.label,
)
def test_random_starts_are_spread_over_what_the_bounds_allow(kernel):
    problem = task(0)
    spectrum = problem.spectrum_of(kernel)
    objective = Objective(problem, kernel.bind(spectrum), spectrum)
    rng = np.random.default_rng(0)
    starts = np.array([random_start(objective, rng) for _ in range(300)])
    low, high = objective.bounds.T
    assert np.all((starts >= low) & (starts <= high))
    # the noise from its lower bound to the signals' variance, evenly on its logarithmic scale
    ends = np.array([problem.noise_bounds[0], np.log(problem.variance)])
    quantiles = np.quantile(starts[:, -1], [0.0, 0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose((quantiles - ends[0]) / (ends[1] - ends[0]), [0, 0.25, 0.5, 0.75, 1], atol=0.08)
    # length scales over three orders of magnitude about the typical one
    typical = problem.input_kernel.prior(problem.inputs)[0][0]
    lengths = starts[:, -2] - typical
    assert lengths.min() == pytest.approx(-np.log(30), abs=0.2)
    assert lengths.max() == pytest.approx(min(np.log(30), np.log(100) - typical), abs=0.2)
    if isinstance(kernel, Polynomial):
        slopes = starts[:, 1] / np.sqrt(problem.variance)
        assert np.mean(slopes > 0) == pytest.approx(0.5, abs=0.1)  # filters that rise as well as those that fall
        assert np.std(slopes) == pytest.approx(2.0, rel=0.2)
        responses = starts[:, :4] @ kernel.bind(spectrum).design(spectrum.eigenvalues).T
        assert np.mean(responses.min(axis=1) < 0) > 0.5  # which ascents have to cope with


def test_random_input_parameters_stay_at_bounds_that_exclude_what_is_typical():
    problem = Task.of(Graph(WEIGHTS), RBF(50.0, (50.0, 60.0)), *data(0), prior=None)
    spectrum = problem.spectrum_of(Identity())
    objective, rng = Objective(problem, Identity(), spectrum), np.random.default_rng(0)
    lengths = np.exp([random_start(objective, rng)[1] for _ in range(20)])
    np.testing.assert_allclose(lengths, 50.0)


# Restarts


def dense_maximum(seed, constrained):
    """The highest of many searches of the dense model of degree 2, by SciPy, from a grid of starts."""
    inputs, signals = data(seed)
    matrix = oracle.laplacian(WEIGHTS, scaled=True)
    eigenvalues = np.linalg.eigvalsh(matrix)
    variance = np.var(signals)

    def negative(x):
        node_covariance = oracle.polynomial(matrix, x[:3])
        covariance = oracle.rbf(inputs, inputs, np.exp(x[3]))
        return -oracle.log_likelihood(signals, covariance, node_covariance, np.exp(x[4]))

    bounds = [(None, None)] * 3 + [tuple(np.log(BOUNDS)), tuple(np.log(np.array([1e-3, 10.0]) * variance))]
    design = np.pad(np.vander(eigenvalues, 3, increasing=True), ((0, 0), (0, 2)))
    options = {"constraints": LinearConstraint(design, 0, np.inf)} if constrained else {}
    grid = itertools.product(
        (-1.0, 1.0), (-3.0, 0.0, 3.0), (-3.0, 3.0), np.log([0.1, 1.0, 10.0]), [np.log(0.1 * variance)]
    )
    found = [minimize(negative, start, method="SLSQP", bounds=bounds, **options) for start in grid]
    feasible = [one for one in found if not constrained or np.min(design @ one.x) > -1e-9]
    return -min(one.fun for one in feasible)


@pytest.mark.parametrize(("seed", "constraint"), [(SEVERAL, "eigenvalues"), (24, None)])
def test_restarts_find_what_brute_force_finds(seed, constraint):
    kernel = Polynomial(2, constraint)
    continued, restarted = (learn(task(seed), kernel, solver=solver) for solver in (Sqp(), Sqp(n_restarts=20)))
    highest = dense_maximum(seed, constraint is not None)
    assert continued.log_likelihood < highest - 0.1
    assert restarted.converged
    assert restarted.log_likelihood == pytest.approx(highest, abs=SAME_EVIDENCE)
    assert restarted.certificate.feasibility == 0
    if constraint is not None:
        assert restarted.model.graph_kernel.response(restarted.model.spectrum.eigenvalues).min() >= 0
    # stages go on where the continuation ended
    *before, last = restarted.stages
    assert tuple(before) == continued.stages
    assert (last.name, last.log_posterior) == ("Polynomial(2), 20 restarts", restarted.log_posterior)
    assert len(restarted.restarts) == 20
    assert max(restarted.restarts) == pytest.approx(restarted.log_posterior, abs=1e-6)


def test_restarts_repeat_and_depend_on_their_seed():
    first, again, other = (
        learn(task(SEVERAL), Polynomial(2), solver=Sqp(n_restarts=4, random_state=seed)).restarts for seed in (0, 0, 1)
    )
    assert first == again != other


def test_where_nothing_is_higher_the_continuation_is_kept():
    continued, restarted = (learn(task(0), Polynomial(2), solver=solver) for solver in (Sqp(), Sqp(n_restarts=10)))
    assert max(restarted.restarts) == pytest.approx(continued.log_posterior, abs=1e-6)
    np.testing.assert_array_equal(restarted.model.graph_kernel.theta, continued.model.graph_kernel.theta)


def test_a_kernel_is_restarted_the_same_alone_and_in_a_family():
    solver, problem = Sqp(n_restarts=5), task(SEVERAL)
    together = solver.fit(problem, [Polynomial(1), Polynomial(2)])
    for kernel, fit in zip([Polynomial(1), Polynomial(2)], together, strict=True):
        alone = learn(problem, kernel, solver=solver)
        assert fit.restarts == alone.restarts
        assert fit.log_posterior == alone.log_posterior
        assert fit.stages == alone.stages


def test_fits_that_are_compared_have_no_restarts():
    for solver in (Sqp(n_restarts=7), Sqp(tolerance_nats=0.5, n_restarts=7)):
        assert solver.coarse().n_restarts == 0
    model = GraphGPRegressor(
        Graph(WEIGHTS), [Polynomial(1), Identity()], RBF(), solver=Sqp(n_restarts=3), residual=None
    )
    model.fit(*data(SEVERAL))
    assert [len(fit.restarts) for fit in model.fits_] == [3, 3]


def test_restarts_are_in_the_units_of_the_signals():
    inputs, signals = data(SEVERAL)
    settings = {"residual": None, "carry": None, "center": None, "scale": "global", "prior": None}
    (small,), (large,) = (
        GraphGPRegressor(Graph(WEIGHTS), Polynomial(2), RBF(), solver=Sqp(n_restarts=5), **settings)
        .fit(inputs, factor * signals)
        .fits_
        for factor in (1.0, 1000.0)
    )
    shift = signals.size * np.log(1000.0)
    np.testing.assert_allclose(np.array(large.restarts) + shift, small.restarts, atol=1e-5)
    assert max(large.restarts) <= large.log_posterior + 1e-6


def test_starts_that_lead_to_no_model_count_as_minus_infinity():
    def choosy(eigenvalues, rate):
        if rate > 1.5:
            raise ValueError("too far")
        return np.exp(-rate * eigenvalues)

    kernel = Response(choosy, (0.5,), ((-10.0, 10.0),))
    fit = learn(task(0), kernel, solver=Sqp(n_restarts=20))
    failed = np.isneginf(fit.restarts)
    assert 0 < np.count_nonzero(failed) < 20
    assert np.all(np.isfinite(np.array(fit.restarts)[~failed]))
    assert fit.log_posterior >= learn(task(0), kernel).log_posterior - 1e-9


def test_with_nothing_to_learn_there_is_nothing_to_restart():
    kernel = Polynomial.from_coefficients([1.0], fixed=True)
    problem = Task.of(Graph(WEIGHTS), RBF(1.0, "fixed"), *data(0), noise_variance=0.1)
    assert learn(problem, kernel, solver=Sqp(n_restarts=3)).restarts == ()


def test_restarts_by_quadrature_find_what_the_exact_spectrum_has():
    exact = learn(task(SEVERAL), Polynomial(2, "interval"), solver=Sqp(n_restarts=10))
    large = learn(task(SEVERAL, spectrum=Chebyshev()), Polynomial(2, "interval"), solver=Sqp(n_restarts=10))
    for fit in (exact, large):
        assert fit.converged
        assert fit.log_likelihood > fit.stages[-2].log_posterior + 0.1
    assert (
        abs(large.log_likelihood - exact.log_likelihood) <= STANDARD_ERRORS * large.probe_error + large.truncation_error
    )


@pytest.mark.parametrize("tolerance_nats", [None, 0.3], ids=["fine", "rough"])
@pytest.mark.parametrize(("hole", "gain"), [((0, 0), 0.3), ((1, 2), 0.0)], ids=["higher", "not higher"])
def test_with_missing_values_restarts_only_raise_the_density_of_what_was_observed(hole, gain, tolerance_nats):
    """The signals are completed under the answer, and the search goes on from what is higher then."""
    inputs, signals = data(SEVERAL)
    signals[hole] = np.nan
    problem = Task.of(Graph(WEIGHTS), RBF(1.0, BOUNDS), inputs, signals, prior=None)
    plain, restarted = (learn(problem, Polynomial(2), solver=Sqp(500, tolerance_nats, n)) for n in (0, 20))
    assert restarted.converged
    assert restarted.log_posterior >= plain.log_posterior + gain
    assert len(restarted.restarts) == 20
    # the density of what was observed, by dense algebra
    matrix = oracle.laplacian(WEIGHTS, scaled=True)
    dense = oracle.polynomial(matrix, restarted.model.graph_kernel.coefficients)
    length_scale = np.exp(restarted.model.input_kernel.theta[0])
    covariance = oracle.covariance(oracle.rbf(inputs, inputs, length_scale), dense, restarted.model.noise_variance)
    observed = np.isfinite(signals.ravel())
    expected = oracle.log_density(signals.ravel()[observed], 0.0, covariance[np.ix_(observed, observed)])
    assert restarted.log_posterior == pytest.approx(expected, abs=1e-6)


def test_progress_counts_forms_and_mentions_restarts(listener):
    learn(task(0), Polynomial(1), solver=Sqp(n_restarts=2))
    assert listener.steps == ["Polynomial(0)", "Polynomial(1)"]
    learn(task(0), Polynomial(1), progress=(steps := []).append)
    assert steps == listener.steps
    assert listener.mentions == ["Polynomial(1), restart 1 of 2", "Polynomial(1), restart 2 of 2"]


@pytest.mark.parametrize("name", ["n_restarts", "random_state"])
def test_settings_of_restarts_are_checked(name):
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least 0; got -1"):
        Sqp(**{name: -1})
