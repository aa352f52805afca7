"""What learning maximises, against dense algebra, a hand-written prior and finite differences."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, RationalQuadratic, WhiteKernel

import oracle
from cases import GRAPHS, KERNELS, WEIGHTS, bound
from spectralgp.graphs import Graph
from spectralgp.learning import Task
from spectralgp.learning.objective import Objective, check_noise, noise_log_prior
from spectralgp.model.kernels import Polynomial, inputs, with_residual
from tolerances import FORMULA, GRADIENT

N_SIGNALS = 6
RNG = np.random.default_rng(5)
INPUTS = RNG.uniform(-2, 2, (N_SIGNALS, 2))
INPUT_KERNELS = {
    "rbf": RBF(0.9),
    "anisotropic": RBF([0.7, 1.6]),
    "fixed length scale": ConstantKernel(1.3) * RBF(1.1, "fixed"),
    "composite": ConstantKernel(0.7) * RBF(1.2) + WhiteKernel(0.2),
    "product": Matern([1.0, 2.0], nu=1.5) * RationalQuadratic(1.5, 0.8) + DotProduct(0.5),
    "nothing free": RBF(1.0, "fixed"),
    "precomputed": "precomputed",
    "independent": None,
}

every_prior = pytest.mark.parametrize("prior", ["weak", None])


def make(name="Polynomial(3)", graph="random", inputs="rbf", prior="weak", noise_variance=None):
    """An objective, a point to evaluate it at, and the signals."""
    kernel, spectrum = bound(KERNELS[name].kernel, GRAPHS[graph])
    input_kernel = INPUT_KERNELS[inputs]
    given = oracle.rbf(INPUTS, INPUTS, 1.1) if inputs == "precomputed" else INPUTS
    signals = np.random.default_rng(1).standard_normal((N_SIGNALS, spectrum.graph.n_nodes))
    task = Task.of(GRAPHS[graph], input_kernel, given, signals, noise_variance, prior)
    objective = Objective(task, kernel, spectrum)
    return objective, objective.join(kernel.theta, objective.input_theta, 0.3), signals


def dense_input_covariance(objective, theta):
    kernel = objective.task.input_kernel.described
    if kernel is None:
        return np.eye(N_SIGNALS)
    return objective.task.inputs if kernel == "precomputed" else kernel.clone_with_theta(theta)(INPUTS)


def assert_gradient(objective, x):
    value, gradient = objective.evaluate(x)
    expected = oracle.jacobian(lambda y: objective.evaluate(y)[0], x, step=1e-4)
    assert np.isfinite(value)
    assert oracle.relative_error(gradient, expected, max(1.0, float(np.max(np.abs(expected), initial=0)))) < GRADIENT


@every_prior
@pytest.mark.parametrize("graph", ["random", "disconnected", "complete"])
@pytest.mark.parametrize("name", KERNELS)
def test_gradient_of_every_graph_kernel(name, graph, prior):
    objective, x, _ = make(name, graph, prior=prior)
    assert_gradient(objective, x)


@every_prior
@pytest.mark.parametrize("noise_variance", [None, 0.4])
@pytest.mark.parametrize("inputs", INPUT_KERNELS)
def test_gradient_of_every_kind_of_inputs(inputs, noise_variance, prior):
    objective, x, _ = make(inputs=inputs, prior=prior, noise_variance=noise_variance)
    assert x.size == 4 + objective.input_theta.size + (noise_variance is None)
    assert_gradient(objective, x)


@pytest.mark.parametrize("inputs", INPUT_KERNELS)
@pytest.mark.parametrize("name", ["Polynomial(3)", "LocalAverage", "Matern(3/2)"])
def test_without_a_prior_it_is_the_dense_likelihood(name, inputs):
    objective, x, signals = make(name, "disconnected", inputs, prior=None)
    graph_kernel, theta, noise = objective.split(x)
    dense = KERNELS[name].dense(graph_kernel, WEIGHTS["disconnected"])
    expected = oracle.log_likelihood(signals, dense_input_covariance(objective, theta), dense, noise)
    assert oracle.relative_error(objective.evaluate(x)[0], expected) < FORMULA
    assert objective.evidence(x).log_likelihood == objective.evaluate(x)[0]


def hand_written_prior(chebyshev, eigenvalues, noise, log_lengths, centres, variance, learns_noise=True):
    """Section 5 of the design, term by term; ``chebyshev`` on [0, 1]."""
    response = np.polynomial.chebyshev.chebval(2 * eigenvalues - 1, chebyshev)
    rough = sum(p**6 * c**2 for p, c in enumerate(chebyshev))
    total = -(0.1 / 2) * rough / (np.mean(response**2) + noise)
    # the length scale squared is log-normal with standard deviation one
    total += sum(-0.5 * (2 * length - 2 * centre) ** 2 for length, centre in zip(log_lengths, centres, strict=True))
    if learns_noise:
        total += oracle.noise_log_prior(noise, variance, eigenvalues.size)
    return total


@pytest.mark.parametrize(("learns_noise", "noise"), [(True, 0.3), (True, 0.02), (True, 1e-5), (False, 0.3)])
def test_the_weak_prior_is_the_hand_written_one(learns_noise, noise):
    objective, x, signals = make(noise_variance=None if learns_noise else noise)
    plain, _, _ = make(prior=None, noise_variance=None if learns_noise else noise)
    x = x.copy()
    x[4] += 0.4
    if learns_noise:
        x[5] = np.log(noise)
    eigenvalues = np.linalg.eigvalsh(oracle.laplacian(WEIGHTS["random"], scaled=True))
    squared = [np.sum((a - b) ** 2) for i, a in enumerate(INPUTS) for b in INPUTS[:i]]
    centre = 0.5 * np.log(np.median(squared))
    within = np.mean(np.var(signals, axis=0))
    expected = hand_written_prior(x[:4], eigenvalues, noise, x[4:5], [centre], within, learns_noise)
    assert oracle.relative_error(objective.evaluate(x)[0] - plain.evaluate(x)[0], expected) < FORMULA


@pytest.mark.parametrize("n_nodes", [1, 60, 1_000, 5_000])
def test_less_noise_than_a_tenth_has_to_outweigh_a_quarter_of_a_signal(n_nodes):
    """Slope and curvature by differences; both sides meet; far below it is worth M/4 values, of at most 250."""
    for deviation in (-9.0, -2.0, -0.3, 0.4, 3.0):
        slope, curvature = oracle.jacobian(
            lambda u: np.array(noise_log_prior(u[0], n_nodes)[:2]), np.array([deviation])
        )[:, 0]
        value, own_slope, precision = noise_log_prior(deviation, n_nodes)
        assert value < 0
        assert abs(own_slope - slope) < GRADIENT * max(1.0, abs(slope))
        if deviation < 0:
            assert abs(precision + curvature) < GRADIENT * max(1.0, abs(curvature))
    assert noise_log_prior(0.0, n_nodes)[:2] == (0.0, 0.0)
    assert max(np.abs(noise_log_prior(1e-9, n_nodes)[:2])) < 1e-8
    assert noise_log_prior(-1e4, n_nodes)[1] == pytest.approx(min(n_nodes, 1_000) / 8)


@pytest.mark.parametrize("noise", [1e-5, 0.02, 0.098, 0.102])
def test_gradient_below_the_most_probable_noise(noise):
    objective, x, _ = make()
    assert_gradient(objective, np.append(x[:-1], np.log(noise * objective.task.typical_noise / 0.1)))


def test_only_length_scales_have_a_prior_among_the_input_parameters():
    """Amplitude and white noise are left to the data."""
    objective, x, _ = make(inputs="composite")
    plain, _, _ = make(inputs="composite", prior=None)
    difference = lambda y: objective.evaluate(y)[0] - plain.evaluate(y)[0]  # noqa: E731
    slopes = oracle.jacobian(difference, x)[4:-1]
    names = [parameter.name for parameter in INPUT_KERNELS["composite"].hyperparameters]
    moved = dict(zip(names, np.abs(slopes) > 1e-6, strict=True))
    assert moved == {"k1__k1__constant_value": False, "k1__k2__length_scale": True, "k2__noise_level": False}


def test_the_weak_prior_has_no_units():
    """Scaling signals, filter and noise moves the log posterior by the Jacobian of the likelihood alone."""
    objective, x, signals = make()
    factor = 1e3
    task = Task.of(GRAPHS["random"], RBF(0.9), INPUTS, factor * signals)
    other = Objective(task, objective.graph_kernel, objective.spectrum)
    y = np.concatenate([factor * x[:4], x[4:5], x[5:] + 2 * np.log(factor)])
    expected = objective.evaluate(x)[0] - signals.size * np.log(factor)
    assert oracle.relative_error(other.evaluate(y)[0], expected) < FORMULA


def test_fixed_noise_is_not_among_the_parameters():
    objective, x, _ = make(noise_variance=0.4)
    assert objective.split(x)[2] == 0.4
    assert "noise_variance" not in objective.parameter_names
    assert len(objective.parameter_names) == len(objective.bounds) == x.size


@pytest.mark.parametrize(("prior", "expected"), [("weak", 1e-6), (None, 1e-3)])
def test_noise_bounds_are_shares_of_the_variance(prior, expected):
    signals = 7 * np.random.default_rng(0).standard_normal((4, 5))
    graph = Graph(np.zeros((5, 5)))
    low, high = np.exp(Task.of(graph, None, np.empty((4, 0)), signals, None, prior).noise_bounds)
    assert low == pytest.approx(expected * np.var(signals))
    assert high == pytest.approx(10 * np.var(signals))
    given = Task.of(graph, None, np.empty((4, 0)), signals, (0.5, 3.0), prior)
    assert np.exp(given.noise_bounds) == pytest.approx([0.5, 3.0])
    assert given.known_noise is None


def test_the_prior_of_the_default_kernel_is_log_normal_in_its_length_and_variances():
    """Standard deviations of one in the squared length, of 2 in the linear term and of 3 in the levels."""
    graph_kernel, spectrum = bound(KERNELS["Polynomial(3)"].kernel, GRAPHS["random"])
    signals = np.random.default_rng(1).standard_normal((N_SIGNALS, 7))
    kernel, shift = inputs.StandardisedKernel.of(INPUTS), np.array([0.2, -0.7, 1.1])
    tasks = [Task.of(GRAPHS["random"], kernel, INPUTS, signals, None, prior) for prior in ("weak", None)]
    weak, none = (Objective(task, graph_kernel, spectrum) for task in tasks)

    def log_prior(theta):
        x = weak.join(graph_kernel.theta, theta, 0.3)
        return weak.evaluate(x)[0] - none.evaluate(x)[0]

    found = log_prior(kernel.theta + shift) - log_prior(kernel.theta)
    assert found == pytest.approx(-0.5 * ((2 * 0.2) ** 2 + (0.7 / 2) ** 2 + (1.1 / 3) ** 2), rel=1e-9)


def test_a_point_is_evaluated_once_in_a_row_and_its_gradient_is_the_callers():
    objective, x, _ = make()
    value, gradient = objective.evaluate(x)
    gradient += 1.0
    again = objective.evaluate(x.copy())
    assert (objective.n_evaluations, again[0]) == (1, value)
    np.testing.assert_allclose(again[1], gradient - 1.0)
    objective.evaluate(x + 0.01)
    objective.evaluate(x)
    assert objective.n_evaluations == 3


def test_parameters_have_names_and_places():
    objective, _, _ = make("Diffusion", inputs="anisotropic")
    of_inputs = ("kernel theta[0]", "kernel theta[1]")
    assert objective.parameter_names == ("amplitude", "strength", *of_inputs, "noise_variance")
    assert objective.is_of_inputs.tolist() == [False, False, True, True, False]
    fixed, _, _ = make("Diffusion", inputs="anisotropic", noise_variance=0.3)
    assert fixed.parameter_names == objective.parameter_names[:-1]
    assert fixed.is_of_inputs.tolist() == [False, False, True, True]


def test_a_model_says_where_it_is():
    """Also where rounding took its noise below the bound; the part of it that is a residual's floor is none of it."""
    objective, x, signals = make()
    model = objective.model(x)
    np.testing.assert_allclose(objective.point(model), x, rtol=1e-12)
    lowest = 1e-6 * np.var(signals)
    for noise in (0.9 * lowest, -1e-20):
        assert objective.point(replace(model, noise_variance=noise))[-1] == pytest.approx(np.log(lowest))
    kernel = with_residual(Polynomial(1), Polynomial(0)).bind(objective.spectrum).with_theta([0.9, -0.2, 0.5])
    both = Objective(objective.task, kernel, objective.spectrum)
    found = both.model(both.join(kernel.theta, objective.input_theta, 0.3))
    floored = replace(found, graph_kernel=replace(kernel, floor=0.1), noise_variance=0.4)
    assert both.point(floored)[-1] == pytest.approx(np.log(0.3))


def test_the_variance_of_a_task_is_that_of_its_signals_unless_they_have_none():
    graph, empty = GRAPHS["random"], np.empty((4, 0))
    signals = np.random.default_rng(0).standard_normal((4, 7)) + 5 * np.arange(7)
    task = Task.of(graph, None, empty, signals)
    assert task.variance == pytest.approx(np.mean((signals - signals.mean()) ** 2), rel=0.2)
    assert task.typical_noise == pytest.approx(0.1 * np.mean(np.var(signals, axis=0)))
    known = replace(task, typical_variance=3.0)
    assert (known.variance, known.typical_noise) == (3.0, pytest.approx(0.3))
    assert Task.of(graph, None, empty, np.zeros((4, 7))).variance == 1.0
    # the same at all nodes' own levels: nothing within, so that what there is counts
    levels = Task.of(graph, None, empty, np.tile(np.arange(7.0), (4, 1)))
    assert levels.typical_noise == pytest.approx(0.1 * levels.variance)


@pytest.mark.parametrize("noise", [(0.5,), (0.5, 1.0, 2.0), (0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (1.0, np.inf)])
def test_bounds_of_the_noise_are_two_numbers_in_order(noise):
    with pytest.raises(ValueError, match=r"bounds \(low, high\) with 0 < low < high; got"):
        check_noise(noise)
    check_noise((1e-9, 2e-9))


def test_white_variance_beside_all_else_leaves_less_information():
    """The same as so much more noise, but for the slope in its logarithm."""
    objective, x, _ = make(prior=None, noise_variance=0.3)
    more, y, _ = make(prior=None, noise_variance=0.8)
    assert oracle.relative_error(objective.evidence(x).information(0.5), more.evidence(y).information()) < FORMULA
    assert np.all(np.diag(objective.evidence(x).information()) > np.diag(more.evidence(y).information()))
    assert oracle.relative_error(objective.precision(x, 0.5), more.precision(y)) < FORMULA
