"""Every graph kernel on every kind of graph keeps the same contract."""

import dataclasses
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GRAPHS, KERNELS, KERNELS_AND_GRAPHS, WEIGHTS, Heat, bound, bump, bump_jacobian, node_covariance
from spectralgp import (
    Cosine,
    GlobalFilter,
    LocalAverage,
    Matern,
    PinnedFilter,
    PseudoInverse,
    RandomWalk,
    RegularizedLaplacian,
)
from spectralgp.cli.learning import graph_kernels
from spectralgp.estimators import GraphGPRegressor
from spectralgp.graphs import Graph
from spectralgp.learning import Stacking, Task, learn
from spectralgp.model.kernels import (
    Diffusion,
    Identity,
    KernelSearch,
    Polynomial,
    Positivity,
    Response,
    mean_power,
    power_jacobians,
    signal_of,
    with_residual,
)
from spectralgp.model.spectra import decompose
from tolerances import EXACT, FORMULA, GRADIENT, ROUND_TRIP

every_kernel_and_graph = pytest.mark.parametrize(("name", "graph"), KERNELS_AND_GRAPHS)
every_kernel = pytest.mark.parametrize("name", KERNELS)


def test_every_kind_of_kernel_is_a_case():
    assert set(graph_kernels().values()) <= {type(case.kernel) for case in KERNELS.values()}


@every_kernel_and_graph
def test_covariance_is_the_dense_one(name, graph):
    """B B^T of equations (2) and (4), and of the table of kernels, by dense functions of the Laplacian."""
    case = KERNELS[name]
    expected = case.dense(case.kernel, WEIGHTS[graph])
    assert oracle.relative_error(node_covariance(case.kernel, GRAPHS[graph]), expected) < FORMULA


@every_kernel_and_graph
def test_jacobian_is_that_of_finite_differences(name, graph):
    kernel, spectrum = bound(KERNELS[name].kernel, GRAPHS[graph])
    if isinstance(kernel, LocalAverage):
        actual = np.moveaxis(kernel.covariance_jacobian(GRAPHS[graph]), 0, -1)
        expected = oracle.jacobian(lambda theta: kernel.with_theta(theta).covariance(GRAPHS[graph]), kernel.theta)
    else:
        actual = kernel.power_jacobian(spectrum.eigenvalues)
        expected = oracle.jacobian(lambda theta: kernel.with_theta(theta).power(spectrum.eigenvalues), kernel.theta)
    for index in range(kernel.theta.size):
        assert oracle.relative_error(actual[..., index], expected[..., index]) < GRADIENT
    assert actual.shape[-1] == kernel.theta.size


class ConstrainedSearch(KernelSearch):
    """Holds the only parameter at zero or above, from one."""

    def bounds(self, variance):
        return np.array([[-5.0, 5.0]])

    def starting_points(self, spectrum, variance):
        return [np.ones(1)]

    def positivity(self, spectrum, coarse=False):
        return (Positivity(np.zeros(1), np.ones((1, 1)), np.ones(1)),)


class ConstrainedHeat(Heat):
    def search(self):
        return ConstrainedSearch(self)


@pytest.mark.parametrize("beside", [(), (Identity(laplacian="normalized"),)], ids=["alone", "in a sum"])
def test_learning_asks_the_search_of_a_users_own_kernel(beside):
    """Signals a tenth as large would have it negative; alone and in a sum, the constraint holds it at zero."""
    signals = 0.1 * np.random.default_rng(0).standard_normal((8, GRAPHS["ring"].n_nodes))
    task = Task.of(GRAPHS["ring"], RBF(1.0), np.arange(8.0)[:, None], signals)
    free, held = (learn(task, sum(beside, start=kernel)) for kernel in (Heat(), ConstrainedHeat()))
    assert free.model.graph_kernel.theta[0] < -1
    assert held.model.graph_kernel.theta[0] == pytest.approx(0.0, abs=1e-9)


def test_a_method_of_the_search_on_a_kernel_is_refused():
    with pytest.raises(TypeError, match=r"Own must not define bounds, positivity; these are methods of its search\. M"):

        class Own(Heat):
            def bounds(self, variance):
                return np.zeros((1, 2))

            def positivity(self, spectrum, coarse=False):
                return ()


def test_jacobian_without_free_parameters_is_empty():
    fixed = Cosine(amplitude_bounds="fixed")
    assert fixed.power_jacobian([0.0, 1.0]).shape == (2, 0)
    assert fixed.theta.shape == (0,)
    assert fixed.search().bounds(1.0).shape == (0, 2)
    average = LocalAverage(strength_bounds="fixed", amplitude_bounds="fixed")
    assert average.covariance_jacobian(GRAPHS["ring"]).shape == (0, 6, 6)


@every_kernel_and_graph
def test_covariance_is_positive_semi_definite(name, graph):
    covariance = node_covariance(KERNELS[name].kernel, GRAPHS[graph])
    assert np.linalg.eigvalsh(covariance)[0] >= -EXACT * max(np.max(covariance), 1.0)
    kernel, spectrum = bound(KERNELS[name].kernel, GRAPHS[graph])
    assert np.all(kernel.power(kernel.basis(spectrum).eigenvalues) >= 0)


@every_kernel
def test_relabelled_nodes_relabel_the_covariance(name):
    weights = WEIGHTS["disconnected"]
    order = np.random.default_rng(0).permutation(len(weights))
    relabelled = node_covariance(KERNELS[name].kernel, Graph(weights[np.ix_(order, order)]))
    expected = node_covariance(KERNELS[name].kernel, GRAPHS["disconnected"])[np.ix_(order, order)]
    assert oracle.relative_error(relabelled, expected) < FORMULA


@every_kernel
def test_theta_goes_in_and_comes_out(name):
    kernel, _ = bound(KERNELS[name].kernel, GRAPHS["random"])
    theta = kernel.theta + 0.1 * np.random.default_rng(0).standard_normal(kernel.theta.size)
    moved = kernel.with_theta(theta)
    assert type(moved) is type(kernel)
    np.testing.assert_allclose(moved.theta, theta, rtol=ROUND_TRIP)
    back = moved.with_theta(kernel.theta)
    original = node_covariance(kernel, GRAPHS["random"])
    assert oracle.relative_error(node_covariance(back, GRAPHS["random"]), original) < EXACT
    if theta.size:
        assert oracle.relative_error(node_covariance(moved, GRAPHS["random"]), original) > 1e-4


@every_kernel
def test_names_and_bounds_belong_to_theta(name):
    kernel = KERNELS[name].kernel
    assert len(kernel.search().parameter_names) == kernel.theta.size
    assert kernel.search().bounds(1.0).shape == (kernel.theta.size, 2)
    assert np.all(kernel.search().bounds(1.0)[:, 0] <= kernel.theta)
    assert np.all(kernel.theta <= kernel.search().bounds(1.0)[:, 1])
    assert kernel.search().theta_units(4.0).shape == kernel.theta.shape


@every_kernel
def test_an_amplitude_is_free_where_parameters_alone_scale_the_covariance(name):
    kernel = KERNELS[name].kernel
    reached = kernel.with_theta(kernel.scaled_by(2.0).theta)
    expected = 4 * node_covariance(kernel, GRAPHS["random"])
    is_reached = oracle.relative_error(node_covariance(reached, GRAPHS["random"]), expected) < FORMULA
    assert kernel.search().has_free_amplitude == is_reached


def test_amplitudes_and_coefficients_have_the_units_of_the_signals():
    """Of a variance of 4: eight orders of magnitude about a deviation of two, and steps of two."""
    for kernel in (Diffusion(), Response(bump, (0.4, -1.0)), LocalAverage()):
        assert kernel.search().parameter_names[0] == "amplitude"
        np.testing.assert_allclose(kernel.search().bounds(4.0)[0], np.log([2e-8, 2e8]))
        np.testing.assert_array_equal(kernel.search().theta_units(4.0), np.ones(kernel.theta.size))
    np.testing.assert_allclose(Diffusion().search().bounds(4.0)[1], np.log([1e-5, 1e5]))
    np.testing.assert_allclose(Diffusion(amplitude_bounds=(0.1, 30.0)).search().bounds(4.0)[0], np.log([0.1, 30.0]))
    np.testing.assert_allclose(
        Diffusion(amplitude=2.0, amplitude_bounds=(0.1, 30.0)).scaled_by(3.0).search().bounds(1.0)[0],
        np.log([0.3, 90.0]),
    )
    np.testing.assert_array_equal(Polynomial(2).search().theta_units(4.0), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(Polynomial(2).search().bounds(4.0), [[-np.inf, np.inf]] * 3)
    both = Polynomial(1) + Identity(scaled=True)
    np.testing.assert_array_equal(both.search().theta_units(4.0), [2.0, 2.0, 1.0])
    np.testing.assert_allclose(both.search().bounds(4.0)[1:], [[-np.inf, np.inf], np.log([2e-8, 2e8])])


@pytest.mark.parametrize(
    ("kernel", "values"),
    [
        (Diffusion(strength=0.7), [0.7, 0.1, 10.0]),
        (GlobalFilter(strength=0.7), [0.7, 0.1, 10.0]),
        (LocalAverage(strength=0.7), [0.7, 0.1, 10.0]),
        (RandomWalk(shift=4.0), [4.0, 3.0, 20.0]),
        (Matern(length_scale=2.0), [2.0, 0.3, 5.0]),
    ],
)
def test_learning_starts_from_strong_and_weak_filters_too(kernel, values):
    kernel, spectrum = bound(kernel, GRAPHS["random"])
    starts = kernel.search().starting_points(spectrum, 2.5)
    np.testing.assert_allclose(np.exp([start[1] for start in starts]), values)
    name = kernel.search().parameter_names[1]
    (alone,) = dataclasses.replace(kernel, **{f"{name}_bounds": "fixed"}).search().starting_points(spectrum, 2.5)
    np.testing.assert_allclose(alone, starts[0][:1])
    held = dataclasses.replace(kernel, amplitude=0.3, amplitude_bounds="fixed").search().starting_points(spectrum, 2.5)
    np.testing.assert_allclose(np.exp(held), np.array(values)[:, None])


def test_kernels_without_a_graph_of_their_own_go_together():
    both = Identity(amplitude=0.5, laplacian="normalized") + Identity(amplitude=2.0)
    np.testing.assert_allclose(both.power([0.0, 1.5]), [4.25, 4.25])
    assert (both.laplacian, both.scaled) == ("normalized", False)
    assert (Identity() + RandomWalk()).laplacian == "normalized"
    assert (both + Identity()).kernels == (*both.kernels, Identity())
    assert both.search().parameter_names == ("kernels[0].amplitude", "kernels[1].amplitude")
    message = "kernels must be functions of one Laplacian to go together; got combinatorial"
    with pytest.raises(ValueError, match=message):
        GlobalFilter() + Diffusion()
    with pytest.raises(TypeError, match="unsupported operand"):
        Identity() + 1.0


def test_a_kernel_and_its_residual_have_their_own_parameters():
    """In files of earlier versions the residual has a floor, which is subtracted until parameters change."""
    curved = Polynomial.from_coefficients([1.0, 0.5])
    both = with_residual(Diffusion(scaled=True, laplacian="combinatorial"), curved)
    eigenvalues = np.array([0.2, 1.0])
    old = dataclasses.replace(both, floor=0.999)
    assert both.floor == 0.0
    np.testing.assert_allclose(both.residual_power(eigenvalues), [1.21, 2.25])
    np.testing.assert_allclose(old.residual_power(eigenvalues), [1.21 - 0.999, 2.25 - 0.999])
    assert old.scaled_by(3.0).floor == pytest.approx(9 * 0.999)
    np.testing.assert_allclose(old.scaled_by(3.0).residual_power(eigenvalues), 9 * old.residual_power(eigenvalues))
    assert old.with_theta(old.theta) == both
    assert (signal_of(both), both.residual) == both.kernels
    np.testing.assert_array_equal(both.response(eigenvalues), signal_of(both).response(eigenvalues))
    signal, residual = power_jacobians(both, eigenvalues)
    np.testing.assert_array_equal(signal, signal_of(both).power_jacobian(eigenvalues))
    np.testing.assert_array_equal(residual, curved.power_jacobian(eigenvalues))
    np.testing.assert_array_equal(both.power_jacobian(eigenvalues), np.hstack([signal, np.zeros((2, 2))]))
    assert with_residual(both, Identity()) is both
    assert with_residual(LocalAverage(), Identity()) == LocalAverage()
    assert both.label == "Diffusion | Polynomial(1)"
    held = with_residual(Diffusion(amplitude_bounds="fixed", scaled=True, laplacian="combinatorial"), curved)
    assert (both.search().has_free_amplitude, held.search().has_free_amplitude) == (True, False)
    plain = curved.residual_power(eigenvalues)
    assert plain.tolist() == [0.0, 0.0]
    assert curved.residual is None
    assert signal_of(curved) is curved


@every_kernel_and_graph
def test_scaling_the_filter_scales_the_covariance_by_the_square(name, graph):
    kernel = KERNELS[name].kernel
    expected = 9.0 * node_covariance(kernel, GRAPHS[graph])
    assert oracle.relative_error(node_covariance(kernel.scaled_by(3.0), GRAPHS[graph]), expected) < EXACT


@every_kernel
def test_the_power_is_the_square_of_the_response(name):
    kernel, spectrum = bound(KERNELS[name].kernel, GRAPHS["random"])
    if not isinstance(kernel, LocalAverage):
        response = kernel.response(spectrum.eigenvalues)
        assert oracle.relative_error(response**2, kernel.power(spectrum.eigenvalues)) < EXACT
        doubled = kernel.scaled_by(2.0).response(spectrum.eigenvalues)
        assert oracle.relative_error(doubled, 2 * response) < EXACT
    else:
        matrix = kernel.filter_matrix(spectrum.graph)
        assert oracle.relative_error(matrix @ matrix.T, kernel.covariance(spectrum.graph)) < EXACT


@every_kernel_and_graph
def test_learning_starts_with_four_fifths_of_the_variance_as_signal(name, graph):
    kernel, spectrum = bound(KERNELS[name].kernel, GRAPHS[graph])
    starts = kernel.search().starting_points(spectrum, 2.5)
    assert len(starts) >= 1
    for theta in starts:
        assert theta.shape == kernel.theta.shape
    for theta in starts[int(kernel.search().is_given) :]:
        power = mean_power(kernel.with_theta(theta), spectrum)
        if any("amplitude" in name or "chebyshev" in name for name in kernel.search().parameter_names):
            # no amplitude gives power where the formula has none: L^+ of a graph without edges
            assert power == pytest.approx(2.0, rel=1e-9) or mean_power(kernel, spectrum) == 0


@every_kernel
def test_a_kernel_is_frozen_and_rebuilt_by_its_parameters_and_pickles(name):
    kernel = KERNELS[name].kernel
    assert clone(kernel) is kernel
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'scaled'"):
        kernel.scaled = not kernel.scaled
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    parameters = kernel.get_params()
    assert set(parameters) == {field.name for field in dataclasses.fields(kernel)}
    assert type(kernel)(**parameters) == kernel
    assert {"laplacian", "scaled"} <= set(parameters)


STRONG = {"strength": 1.0, "strength_bounds": (1e-5, 1e5)}
DEFAULTS = {
    Identity: {"laplacian": "combinatorial"},
    GlobalFilter: {"laplacian": "combinatorial", **STRONG},
    LocalAverage: {"laplacian": "combinatorial", **STRONG},
    PseudoInverse: {"laplacian": "combinatorial"},
    RegularizedLaplacian: {"laplacian": "normalized", **STRONG},
    Diffusion: {"laplacian": "normalized", **STRONG},
    RandomWalk: {"laplacian": "normalized", "steps": 3, "shift": 2.0, "shift_bounds": (2.0, 1e3)},
    Cosine: {"laplacian": "normalized"},
    Matern: {"laplacian": "combinatorial", "nu": 1.5, "length_scale": 1.0, "length_scale_bounds": (1e-3, 1e3)},
}


@pytest.mark.parametrize("kind", DEFAULTS)
def test_defaults_are_those_of_the_documentation(kind):
    expected = {"amplitude": 1.0, "amplitude_bounds": None, "scaled": False, **DEFAULTS[kind]}
    assert kind().get_params() == expected


# Formulas at the edge of what they are for


def test_the_pseudo_inverse_gives_no_power_to_what_rounding_left_of_zero():
    """Three eigenvalues, of which rounding is 3 * 2.2e-16 times the largest."""
    np.testing.assert_array_equal(PseudoInverse().power([1e-17, 0.5, 4.0]), [0.0, 2.0, 0.25])
    np.testing.assert_array_equal(PseudoInverse().power([2.0**-48, 0.5, 2.0]), [2.0**48, 2.0, 0.5])
    np.testing.assert_array_equal(PseudoInverse().power([0.0, 0.0]), [0.0, 0.0])


@pytest.mark.parametrize(
    "bounds", [None, ((0.0, 1.0), (-2.0, 0.0)), ((0.4, 1.0), (-2.0, -1.0)), ((0.0, 0.4), (-1.0, 5.0))]
)
def test_differences_stay_within_bounds_and_are_of_second_order(bounds):
    """Of a bump at 0.4 with log width -1: in the middle of its bounds, and at one end or the other of them."""
    eigenvalues = np.linspace(0, 1, 11)
    kernel = Response(bump, (0.4, -1.0), bounds)
    values, slopes = bump(eigenvalues, 0.4, -1.0), bump_jacobian(eigenvalues, 0.4, -1.0)
    expected = np.column_stack([2 * values**2, 2 * values[:, None] * slopes])  # the first is the log amplitude
    assert oracle.relative_error(kernel.power_jacobian(eigenvalues), expected) < GRADIENT


@pytest.mark.parametrize(
    ("below", "above", "offsets"),
    [
        (1.5, 1.5, [-1, 1]),
        (1.0, 1.0, [-1, 1]),
        (0.5, 9.0, [0, 1, 2]),
        (9.0, 0.5, [-2, -1, 0]),
        (1.9, 0.9, []),
        (0.9, 1.9, []),
        (0.0, 0.0, []),
    ],
)
@pytest.mark.parametrize("value", [0.4, -3.0])
def test_differences_are_taken_where_there_is_room(value, below, above, offsets):
    """Values of the function in steps about the parameter; bounds with no room between them leave no slope."""
    step = np.finfo(float).eps ** (1 / 3) * max(1.0, abs(value))
    asked = []

    def function(eigenvalues, centre):
        asked.append(centre)
        return np.exp(-((eigenvalues - centre) ** 2))

    bounds = ((value - below * step, value + above * step),)
    eigenvalues = np.linspace(0.15, 1, 4)
    jacobian = Response(function, (value,), bounds).power_jacobian(eigenvalues)
    response = np.exp(-((eigenvalues - value) ** 2))
    expected = 4 * response**2 * (eigenvalues - value) * bool(offsets)
    np.testing.assert_allclose(jacobian[:, 1], expected, rtol=1e-6)
    np.testing.assert_allclose(np.subtract(asked[1:], value) / step, offsets, atol=1e-6)
    assert all(bounds[0][0] <= one <= bounds[0][1] for one in asked)


def test_a_response_is_known_again_by_its_values_from_zero_to_one():
    kernel = Response(lambda eigenvalues, rate: np.exp(-rate * eigenvalues), (0.7,), amplitude=3.0)
    np.testing.assert_allclose(kernel.sampled, np.exp(-0.7 * np.arange(9) / 8))


# Errors


@pytest.mark.parametrize("amplitude", [0.0, -2.0, np.nan, np.inf])
@every_kernel
def test_amplitude_must_be_positive(name, amplitude):
    kernel = KERNELS[name].kernel
    if hasattr(kernel, "amplitude"):
        with pytest.raises(ValueError, match="amplitude must be a finite number above 0; got"):
            dataclasses.replace(kernel, amplitude=amplitude)


def answered(function):
    return Response(function).response([0.0, 0.5, 1.0])


TURNED = Response(bump, (0.4, -1.0), jacobian=lambda *at: bump_jacobian(*at).T)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *(
            (lambda kind=kind: kind(strength=-1.0), r"strength must be a finite number above 0; got -1\.0")
            for kind in (GlobalFilter, LocalAverage, RegularizedLaplacian, Diffusion)
        ),
        (lambda: RandomWalk(steps=0), r"steps must be an integer of at least 1; got 0"),
        (lambda: RandomWalk(shift=1.5, shift_bounds="fixed"), r"shift must be at least 2.*got 1\.5\. Raise shift"),
        (lambda: RandomWalk(shift=2.5, shift_bounds=(1.0, 3.0)), r"shift must be at least 2.*got 1\.0\. Raise shift"),
        (
            lambda: RandomWalk(laplacian="combinatorial"),
            "laplacian must be 'normalized', or scaled, for RandomWalk.*scaled=True",
        ),
        (lambda: Cosine(laplacian="combinatorial"), "laplacian must be 'normalized', or scaled, for Cosine"),
        (lambda: Matern(nu=0), r"nu must be a finite number above 0; got 0\. Pass"),
        (
            lambda: answered(lambda one: one[:2]),
            r"function must give one value for each eigenvalue; got shape \(2,\) for \(3,\)",
        ),
        (lambda: answered(lambda one: 1.0), r"the values of function must have shape \(n_eigenvalues,\); got \(\)"),
        (lambda: answered(lambda one: one * np.nan), "the values of function must be finite; got nan"),
        (lambda: TURNED.power_jacobian([0.1, 0.5, 0.9]), "jacobian"),
    ],
)
def test_wrong_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomWalk(steps=1.5), r"steps must be an integer of at least 1; got 1\.5"),
        (lambda: Response(3), r"function must be callable.*got 3\. Pass for example"),
        (lambda: Response(bump, 1.0), r"must be a tuple of numbers; got 1\.0\. Pass for example \(1\.0,\)"),
    ],
)
def test_arguments_of_a_wrong_type_are_refused(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_a_parameter_must_lie_within_its_bounds():
    with pytest.raises(ValueError, match=r"strength must lie within strength_bounds.*got strength = 5\.0.*Widen"):
        Diffusion(strength=5.0, strength_bounds=(0.1, 1.0))
    with pytest.raises(ValueError, match="positive and ascending"):
        Matern(length_scale=1.0, length_scale_bounds=(-1.0, 2.0))
    with pytest.raises(ValueError, match=r"amplitude must lie within amplitude_bounds.*got amplitude = 5\.0"):
        Diffusion(amplitude=5.0, amplitude_bounds=(0.1, 1.0))
    for value in (0.1, 2.0):  # up to rounding, which learning may add
        Diffusion(strength=value * (1 + 5e-10), strength_bounds=(0.1, 2.0))
        Diffusion(strength=value * (1 - 5e-10), strength_bounds=(0.1, 2.0))
    for value in (0.1 * (1 - 5e-9), 2.0 * (1 + 5e-9)):
        with pytest.raises(ValueError, match="strength must lie within strength_bounds"):
            Diffusion(strength=value, strength_bounds=(0.1, 2.0))
    for bounds in (None, "free", (1.0, 2.0, 3.0), 1.0):
        with pytest.raises(ValueError, match=r"strength_bounds must be a pair \(low, high\) or 'fixed'; got"):
            Diffusion(strength_bounds=bounds)


def test_a_response_needs_a_pair_of_bounds_for_each_parameter():
    with pytest.raises(ValueError, match="parameter_bounds must hold one pair for each of the 2 parameters; got 1"):
        Response(bump, (0.5, 0.0), parameter_bounds=((0.0, 1.0),))
    bounded = Response(bump, (0.5, 0.0), parameter_bounds=((0.0, 1.0), (-2.0, 2.0)))
    np.testing.assert_array_equal(bounded.search().bounds(1.0)[1:], [[0.0, 1.0], [-2.0, 2.0]])


def _answers(name: str, seed: int, factor: float) -> tuple[np.ndarray, float]:
    """Means and deviations at new inputs over the factor of the signals, and the evidence less that of the factor."""
    rng, kernel = np.random.default_rng(seed), KERNELS[name].kernel
    inputs, new = rng.standard_normal((6, 1)), rng.standard_normal((2, 1))
    signals = np.sin(inputs + np.arange(GRAPHS["random"].n_nodes)) + 0.3 * rng.standard_normal(
        (6, GRAPHS["random"].n_nodes)
    )
    if kernel.search().is_given or not kernel.search().has_free_amplitude:
        kernel = kernel.scaled_by(factor)  # what has units is in those of the signals
    # parameters of a function may lie on a ridge, whose ends have other draws about them
    chosen = Stacking(kernel, n_draws=0) if name.startswith("Response") else kernel
    model = GraphGPRegressor(GRAPHS["random"], chosen, scale="global").fit(inputs, factor * signals)
    answer = np.stack(model.predict(new, return_std=True)) / factor
    return answer, model.log_marginal_likelihood_ + signals.size * np.log(factor)


@pytest.mark.filterwarnings("ignore:the noise is at its lower bound")
@pytest.mark.filterwarnings("ignore:the fit of:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", KERNELS)
def test_answers_do_not_depend_on_the_units_of_the_signals(name):
    plain, evidence = _answers(name, 0, 1.0)
    for factor in (1e-120, 1e8):
        answer, other = _answers(name, 0, factor)
        assert oracle.relative_error(answer, plain) < 1e-3  # flat maxima are met to a tolerance of the evidence
        # slopes by differences lead to a maximum as closely as their own error lets them: 1.1e-4 on one processor
        assert other == pytest.approx(evidence, abs=1e-3 if name == "Response(differences)" else 1e-4)


@every_kernel
def test_priors_have_the_slopes_and_the_curvature_that_they_say(name):
    """By differences of the log prior and of its gradient."""
    kernel, spectrum = bound(KERNELS[name].kernel, GRAPHS["random"])
    noise = 0.3

    def log_prior(theta, noise_variance=noise):
        return kernel.with_theta(theta).search().log_prior(spectrum, noise_variance)

    _, gradient, of_noise, precision = log_prior(kernel.theta)
    expected = oracle.jacobian(lambda theta: log_prior(theta)[0], kernel.theta)
    np.testing.assert_allclose(gradient, expected, atol=1e-6)
    log_noise = oracle.derivative(lambda t: log_prior(kernel.theta, noise * np.exp(t))[0], 1e-3)
    assert of_noise == pytest.approx(float(log_noise), abs=1e-6)
    assert precision.shape == (kernel.theta.size, kernel.theta.size)
    bend = oracle.jacobian(lambda theta: log_prior(theta)[1], kernel.theta)
    np.testing.assert_allclose(precision, -bend, atol=1e-5)


@pytest.mark.parametrize("shape", ["line", "exponential", "parabola"])
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_a_pinned_filter_vanishes_exactly_at_its_end(shape, scaled, laplacian):
    for end, place in (("high", -1), ("low", 0)):
        kernel = PinnedFilter(0.7, shape, end, laplacian=laplacian, scaled=scaled)
        kernel, spectrum = bound(kernel, GRAPHS["random"])
        power = kernel.power(spectrum.eigenvalues)
        assert power[place] == 0.0 if end == "high" else power[place] < 1e-28  # the eigenvalue zero is rounded
        assert np.all(np.delete(power, place) > 0)
    moved = kernel.moved_to(decompose(GRAPHS["ring"], laplacian, scaled=scaled))
    largest = np.max(np.linalg.eigvalsh(oracle.laplacian(WEIGHTS["ring"], laplacian, scaled)))
    assert moved.upper == pytest.approx(largest)


def test_a_pinned_filter_refuses_other_shapes_and_ends():
    with pytest.raises(ValueError, match="shape must be one of"):
        PinnedFilter(shape="cubic")
    with pytest.raises(ValueError, match="vanishes_at must be one of"):
        PinnedFilter(vanishes_at="middle")
    assert PinnedFilter(shape="line").search().parameter_names == ("amplitude",)
    assert PinnedFilter(shape="parabola").search().parameter_names == ("amplitude", "bend")
