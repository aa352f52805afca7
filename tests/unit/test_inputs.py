"""Covariances between inputs: three kinds of kernel behind the same verbs."""

import pickle

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

import oracle
from spectralgp.model.kernels import (
    Diffusion,
    IndependentSignals,
    LearntInputKernel,
    PrecomputedCovariance,
    StandardisedKernel,
    as_covariance,
    as_input_kernel,
    held_out_inputs,
    input_starts,
    length_scale_centres,
    matern_terms,
    modes_and_gradient,
    modes_of_inputs,
    new_inputs,
    with_amplitude,
    without_amplitude,
)
from spectralgp.model.kernels import inputs as inputs_module
from tolerances import EXACT, FORMULA, GRADIENT

INPUTS = np.random.default_rng(0).standard_normal((7, 3)) * [1.0, 10.0, 0.1]
POINTS = np.array([[0.1, 2.0, 0.0], [3.0, -1.0, 0.1]])
KERNEL = ConstantKernel(2.0) * RBF([1.0, 5.0, 0.2])
MATRIX = KERNEL(INPUTS)
KINDS = {
    "learnt": (LearntInputKernel(KERNEL), INPUTS),
    "precomputed": (PrecomputedCovariance(), MATRIX),
    "independent": (IndependentSignals(), np.empty((7, 0))),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def dense(kind):
    return np.eye(7) if kind == "independent" else 2 * oracle.rbf(INPUTS / [1.0, 5.0, 0.2], INPUTS / [1.0, 5.0, 0.2])


# Verbs


@every_kind
def test_covariance_and_modes_are_the_dense_ones(kind):
    kernel, inputs = KINDS[kind]
    assert oracle.relative_error(kernel.covariance(inputs), dense(kind)) < FORMULA
    for modes in (modes_of_inputs(kernel, inputs), modes_and_gradient(kernel, inputs)[0]):
        rebuilt = modes.vectors @ np.diag(modes.values) @ modes.vectors.T
        assert oracle.relative_error(rebuilt, dense(kind)) < FORMULA


@every_kind
def test_the_gradient_is_that_of_finite_differences(kind):
    kernel, inputs = KINDS[kind]
    gradient = modes_and_gradient(kernel, inputs)[1]
    assert gradient.shape == (7, 7, kernel.theta.size)
    assert kernel.bounds.shape == (kernel.theta.size, 2)
    if kernel.theta.size:
        expected = oracle.jacobian(lambda theta: kernel.with_theta(theta).covariance(inputs), kernel.theta)
        assert oracle.relative_error(gradient, expected) < GRADIENT


@every_kind
def test_parts_of_the_training_inputs_are_parts_of_the_covariance(kind):
    kernel, inputs = KINDS[kind]
    kept, held_out = np.array([5, 0, 2]), np.array([1, 6])
    matrix = dense(kind)
    part = kernel.covariance(kernel.form.subset(inputs, kept))
    assert oracle.relative_error(part, matrix[np.ix_(kept, kept)]) < FORMULA
    new = held_out_inputs(kernel, inputs, kept, held_out)
    assert oracle.relative_error(new.cross, matrix[np.ix_(held_out, kept)]) < FORMULA
    assert oracle.relative_error(new.variances, matrix[held_out, held_out]) < FORMULA
    assert oracle.relative_error(new.covariance, matrix[np.ix_(held_out, held_out)]) < FORMULA


@every_kind
def test_columns_variances_and_modes_of_scaled_signals_are_dense_ones(kind):
    kernel, inputs = KINDS[kind]
    matrix, points = dense(kind), np.array([4, 1])
    assert oracle.relative_error(kernel.columns(inputs, points), matrix[:, points]) < FORMULA
    assert oracle.relative_error(kernel.variances(inputs), np.diag(matrix)) < FORMULA
    scales = np.linspace(0.5, 2.0, 7)
    for modes, factor in (
        (modes_of_inputs(kernel, inputs, scales), 1.0),
        (modes_and_gradient(kernel, inputs, scales)[0], 1.0),
        (modes_of_inputs(kernel, inputs, scales, 3.0), 3.0),
        (modes_of_inputs(kernel, inputs, amplitude=3.0), None),
    ):
        rebuilt = (modes.vectors * modes.values) @ modes.vectors.T
        expected = 3.0 * matrix if factor is None else factor * matrix / np.outer(scales, scales)
        assert oracle.relative_error(rebuilt, expected) < FORMULA
    slopes, scaled = (modes_and_gradient(kernel, inputs, one)[1] for one in (None, scales))
    np.testing.assert_allclose(scaled, slopes / np.outer(scales, scales)[:, :, None])


def test_an_amplitude_leaves_the_level_as_it_is():
    kernel = StandardisedKernel.of(INPUTS).with_theta(np.log([0.7, 0.4, 2.5]))
    matrix = kernel.covariance(INPUTS)
    assert kernel.level == pytest.approx(2.5)
    assert oracle.relative_error(with_amplitude(kernel, matrix, 3.0), 2.5 + 3 * (matrix - 2.5)) < EXACT
    modes = modes_of_inputs(kernel, INPUTS, amplitude=3.0)
    assert oracle.relative_error((modes.vectors * modes.values) @ modes.vectors.T, 2.5 + 3 * (matrix - 2.5)) < FORMULA
    assert with_amplitude(kernel, matrix, 1.0) is matrix
    assert LearntInputKernel(KERNEL).level == PrecomputedCovariance().level == 0.0


def test_inputs_that_are_covariances_are_cut_both_ways():
    """The covariances of new inputs with those that were kept, of some new inputs, and of both together."""
    kernel, cross, test = PrecomputedCovariance(), np.arange(14.0).reshape(2, 7), np.array([[3.0, 1.0], [1.0, 5.0]])
    kept, form = np.array([6, 2]), kernel.form
    np.testing.assert_array_equal(form.with_kept(cross, 7, kept), cross[:, kept])
    assert form.with_kept(cross, 8, kept) is cross  # of another number of signals: refused where it is used
    both = form.with_kept((cross, test), 7, kept)
    np.testing.assert_array_equal(both[0], cross[:, kept])
    assert both[1] is test
    np.testing.assert_array_equal(form.some(cross, [1]), cross[[1]])
    part = form.some((cross, test), [1])
    np.testing.assert_array_equal(part[0], cross[[1]])
    np.testing.assert_array_equal(part[1], [[5.0]])
    np.testing.assert_array_equal(form.some((cross, np.array([3.0, 5.0])), [1])[1], [5.0])
    together = form.joined(MATRIX, (cross, test))
    np.testing.assert_array_equal(together, np.block([[MATRIX, cross.T], [cross, test]]))
    assert form.as_new(MATRIX)[1] is MATRIX
    assert form.as_new(cross) is cross
    pair = (cross, test)
    assert form.as_new(pair) is pair
    given = kernel.at(MATRIX, (cross, np.array([3.0, 5.0])))
    np.testing.assert_array_equal(given.variances, [3.0, 5.0])
    for new in (given, kernel.at(MATRIX, cross)):
        with pytest.raises(ValueError, match="X must hold the covariance of the test inputs"):
            new.covariance  # noqa: B018
    with pytest.raises(ValueError, match="the test variances in X must"):
        kernel.at(MATRIX, (cross, np.ones(3)))
    with pytest.raises(ValueError, match="the test covariance in X must"):
        kernel.at(MATRIX, (cross, np.ones((2, 3))))


def test_features_are_cut_by_rows():
    kernel, form, new = LearntInputKernel(KERNEL), LearntInputKernel.form, INPUTS[[2, 5]]
    assert form.with_kept(new, 7, np.array([1])) is new
    np.testing.assert_array_equal(form.some(new, np.array([False, True])), INPUTS[[5]])
    np.testing.assert_array_equal(form.joined(INPUTS, new), np.vstack([INPUTS, new]))
    assert form.as_new(INPUTS) is INPUTS
    training = np.array([[1.0, 0.0], [2.0, 3.0], [1.0, -0.0]])
    assert form.equal_rows(training, [[1, -0.0], [3, 2], [2, 3]]) == [[0, 2], [], [1]]
    assert PrecomputedCovariance.form.equal_rows(training, (training[:1], np.eye(1))) == [[0, 2]]
    np.testing.assert_array_equal(IndependentSignals.form.read_new([[1.0]], 1, np.asarray), [[1.0]])
    scaled = kernel.at(INPUTS, new).divided_by(np.arange(1.0, 8.0))
    np.testing.assert_allclose(scaled.cross, KERNEL(new, INPUTS) / np.arange(1.0, 8.0))
    assert scaled.divided_by(None) is scaled


def test_an_overall_factor_is_held_and_no_other():
    held = without_amplitude(LearntInputKernel(ConstantKernel(2.0) * (RBF(3.0) * ConstantKernel(4.0))))
    assert held.theta.tolist() == [np.log(3.0)]
    assert oracle.relative_error(held.covariance(INPUTS), 8 * oracle.rbf(INPUTS / 3, INPUTS / 3)) < EXACT
    for kernel in (ConstantKernel(2.0) + RBF(3.0), ConstantKernel(2.0), RBF(3.0)):
        assert without_amplitude(LearntInputKernel(kernel)).kernel == kernel
    mixed = without_amplitude(LearntInputKernel(ConstantKernel(2.0) * (ConstantKernel(5.0) + RBF(3.0))))
    np.testing.assert_allclose(np.exp(mixed.theta), [5.0, 3.0])


def test_terms_of_a_sum_know_their_parameters():
    """Constants before, behind and around Matern kernels; fixed ones have no place in theta."""
    fixed = ConstantKernel(7.0, "fixed")
    kernel = Matern(0.5, nu=0.5) * ConstantKernel(2.0) + fixed * (
        ConstantKernel(3.0) * Matern(4.0, "fixed", nu=2.5) + Matern(5.0, nu=1.5)
    )
    first, second, third = matern_terms(LearntInputKernel(kernel), np.zeros((4, 1)))
    np.testing.assert_allclose(np.exp(kernel.theta), [0.5, 2.0, 3.0, 5.0])
    assert first == (2.0, 0.5, pytest.approx(1 / 0.5), (1,), (0,))
    assert second == (pytest.approx(21.0), 2.5, pytest.approx(np.sqrt(5) / 4), (2,), ())
    assert third == (7.0, 1.5, pytest.approx(np.sqrt(3) / 5), (), (3,))


def test_learning_starts_at_the_given_shorter_and_typical_length_scales():
    kernel = LearntInputKernel(ConstantKernel(2.0) * RBF(7.0))
    centres = np.array([np.nan, np.log(0.9)])
    starts = np.exp(input_starts(kernel, centres))
    np.testing.assert_allclose(starts, [[2.0, 7.0], [2.0, 0.3], [2.0, 0.9]])
    typical = kernel.with_theta(np.log([2.0, 0.9]))
    np.testing.assert_allclose(np.exp(input_starts(typical, centres)), [[2.0, 0.3], [2.0, 0.9]])
    without = LearntInputKernel(ConstantKernel(2.0))
    np.testing.assert_allclose(np.exp(input_starts(without, np.array([np.nan]))), [[2.0]])
    default = StandardisedKernel.of(INPUTS)
    np.testing.assert_array_equal(input_starts(default, default.centres), [default.theta])


def test_the_typical_distance_of_very_many_inputs_is_that_of_some():
    points = np.random.default_rng(0).standard_normal(2_999)
    for given, some in ((points[:1_500], points[:1_500]), (points, points[::2])):
        distances = np.abs(np.subtract.outer(some, some))[np.triu_indices(1_500, 1)]
        assert inputs_module.half_log_median(given[:, None]) == pytest.approx(np.log(np.median(distances)))


def test_new_inputs_of_a_kernel_and_of_its_matrices_agree():
    scales = np.array([1.0, 5.0, 0.2])
    cross, test = 2 * oracle.rbf(POINTS / scales, INPUTS / scales), 2 * oracle.rbf(POINTS / scales, POINTS / scales)
    for new in (LearntInputKernel(KERNEL).at(INPUTS, POINTS), PrecomputedCovariance().at(MATRIX, (cross, test))):
        assert oracle.relative_error(new.cross, cross) < EXACT
        assert oracle.relative_error(new.variances, np.diag(test)) < EXACT
        assert oracle.relative_error(new.covariance, test) < EXACT


def test_a_new_independent_signal_shares_nothing():
    kernel = IndependentSignals()
    new = kernel.at(np.empty((7, 0)), np.empty((2, 0)))
    np.testing.assert_array_equal(new.cross, np.zeros((2, 7)))
    np.testing.assert_array_equal(new.covariance, np.eye(2))
    assert kernel.form.read_new(None, 0, np.asarray).shape == (1, 0)
    with pytest.raises(ValueError, match=r"X must be None, or have no columns.*independent; got shape \(2, 3\)"):
        new_inputs(kernel, np.empty((7, 0)), POINTS)


def test_three_matrices_are_one_too_many():
    with pytest.raises(ValueError, match="X must be a matrix or a pair of them where the kernel is precomputed; got 3"):
        PrecomputedCovariance().at(MATRIX, (MATRIX, MATRIX, MATRIX))


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_what_passes_for_rounding_of_a_covariance_is_relative(unit):
    covariance = unit * np.array([[2.0, 1.0], [1.0, 2.0]])
    rounded = covariance + unit * np.array([[0.0, 1e-10], [0.0, 0.0]])
    np.testing.assert_array_equal(as_covariance(rounded), rounded)
    with pytest.raises(
        ValueError, match=rf"X must be symmetric.*differ across the diagonal by up to {1e-9 * unit:.3g}"
    ):
        as_covariance(covariance + unit * np.array([[0.0, 1e-9], [0.0, 0.0]]))


# What users write


@pytest.mark.parametrize("kernel", [None, "precomputed", RBF(), RBF() + ConstantKernel()])
def test_what_users_write_comes_back(kernel):
    assert as_input_kernel(kernel).described is kernel
    assert as_input_kernel(as_input_kernel(kernel)).described is kernel


@pytest.mark.parametrize("kernel", ["rbf", RBF, 1.0, np.eye(3), Diffusion()])
def test_the_input_kernel_must_be_of_scikit_learn(kernel):
    with pytest.raises(TypeError, match=r"kernel must .*; got"):
        as_input_kernel(kernel)


# Typical length scales


def median_squared_distance(inputs):
    return np.median([np.sum((a - b) ** 2) for i, a in enumerate(inputs) for b in inputs[:i]])


def test_isotropic_length_scale_is_centred_at_the_median_distance():
    (centre,) = length_scale_centres(RBF(), INPUTS)
    assert np.exp(2 * centre) == pytest.approx(median_squared_distance(INPUTS))


def test_anisotropic_length_scales_share_out_the_distance():
    """Three features of equal length scale add up to the same squared distance as one of the whole."""
    centres = length_scale_centres(RBF([1.0, 1.0, 1.0]), INPUTS)
    expected = [3 * median_squared_distance(column[:, None]) for column in INPUTS.T]
    np.testing.assert_allclose(np.exp(2 * centres), expected)


def test_other_parameters_have_no_centre_and_fixed_ones_no_entry():
    kernel = ConstantKernel(2.0) * RBF(1.0) + WhiteKernel() + RBF(3.0, "fixed")
    centres = length_scale_centres(kernel, INPUTS)
    assert centres.size == kernel.theta.size == 3
    assert np.isnan(centres).tolist() == [True, False, True]


@pytest.mark.parametrize("inputs", [np.ones((5, 3)), np.ones((1, 3))])
def test_coinciding_or_single_inputs_have_no_typical_distance(inputs):
    assert np.isnan(length_scale_centres(RBF(), inputs)).all()


def test_only_length_scales_that_divide_a_distance_have_a_centre():
    """That of a periodic kernel divides a sine, and its period is no length scale; products and powers are entered."""
    kernel = (ExpSineSquared() * RationalQuadratic() + DotProduct()) ** 2 + Matern()
    centre = 0.5 * np.log(median_squared_distance(INPUTS))
    names = [parameter.name.rpartition("__")[2] for parameter in kernel.hyperparameters]
    assert names == ["length_scale", "periodicity", "alpha", "length_scale", "sigma_0", "length_scale"]
    expected = [np.nan, np.nan, np.nan, centre, np.nan, centre]
    np.testing.assert_allclose(length_scale_centres(kernel, INPUTS), expected)


def test_the_default_kernel_starts_at_the_median_distance():
    """That of the inputs after every column was centred and divided by its standard deviation."""
    standardised = (INPUTS - INPUTS.mean(axis=0)) / INPUTS.std(axis=0)
    default = StandardisedKernel.of(INPUTS, ("smooth",))
    kernel = default.described.k1
    assert isinstance(kernel, RBF)
    assert kernel.length_scale**2 == pytest.approx(median_squared_distance(standardised))
    assert np.exp(default.bounds[0]) == pytest.approx((1e-3 * kernel.length_scale, 1e3 * kernel.length_scale))
    assert StandardisedKernel.of(np.ones((4, 2)), ("smooth",)).described.k1.length_scale == 1.0


@pytest.mark.parametrize("terms", [("smooth", "linear"), ("smooth",), ("linear",)])
def test_the_default_kernel_is_scikit_learn_s_of_standardised_inputs(terms):
    """Covariances at training inputs, their derivatives by differences, and those of new inputs."""
    kernel = StandardisedKernel.of(INPUTS, terms)
    kernel = kernel.with_theta(kernel.theta + 0.3 * np.arange(1, 1 + kernel.theta.size))
    standardised = (INPUTS - INPUTS.mean(axis=0)) / INPUTS.std(axis=0)
    assert oracle.relative_error(kernel.covariance(INPUTS), kernel.described(standardised)) < FORMULA
    new = kernel.at(INPUTS, INPUTS[:3] + 1)
    expected = kernel.described((INPUTS[:3] + 1 - INPUTS.mean(axis=0)) / INPUTS.std(axis=0), standardised)
    assert oracle.relative_error(new.cross, expected) < FORMULA
    modes, gradient = modes_and_gradient(kernel, INPUTS)
    rebuilt = (modes.vectors * modes.values) @ modes.vectors.T
    assert oracle.relative_error(rebuilt, kernel.described(standardised)) < FORMULA
    assert len(repr(kernel)) < 500  # without what is remembered of the inputs
    for index in range(kernel.theta.size):
        step = 1e-6 * np.eye(kernel.theta.size)[index]
        ahead, behind = (kernel.with_theta(kernel.theta + sign * step).covariance(INPUTS) for sign in (1, -1))
        assert oracle.relative_error(gradient[..., index], (ahead - behind) / 2e-6) < GRADIENT


@pytest.mark.parametrize("bounds", [(1e-3, 1e3), np.array([[1e-3, 1e3]])], ids=["a pair", "an array"])
def test_a_squared_exponential_is_the_same_by_remembered_distances(bounds):
    first, other = np.random.default_rng(0).standard_normal((2, 7, 3))
    kernel = as_input_kernel(RBF(2.0, bounds))
    for places in (first, other, first):  # which it must not take for one another
        for theta in (np.log([0.4]), np.log([3.0])):
            own = kernel.with_theta(theta)
            covariance, slopes = RBF(float(np.exp(theta[0])))(places, eval_gradient=True)
            modes, gradient = modes_and_gradient(own, places)
            assert oracle.relative_error((modes.vectors * modes.values) @ modes.vectors.T, covariance) < EXACT
            assert oracle.relative_error(gradient, slopes) < EXACT
            assert own.described == RBF(float(np.exp(theta[0])), bounds) or isinstance(bounds, np.ndarray)
    assert len(pickle.dumps(own)) < first.nbytes + 2_000  # distances are not kept in files


def test_the_default_kernel_of_one_input_starts_at_one():
    """There is no distance; a second column, or none, changes what the linear term is worth."""
    for terms, expected in ((("smooth",), [0, 0]), (("linear",), [0]), (("smooth", "linear"), [0, -np.log(2), 0])):
        kernel = StandardisedKernel.of(np.array([[3.0, 5.0]]), terms)
        np.testing.assert_allclose(kernel.theta, expected, atol=1e-15)
        np.testing.assert_array_equal(kernel.prior(np.empty((0, 2)))[0], kernel.theta)
        assert kernel.level == 1.0
    np.testing.assert_array_equal(StandardisedKernel.of(np.ones((4, 0))).theta, [0, 0, 0])


def test_the_default_kernel_moves_by_three_orders_in_length_and_five_in_variances():
    kernel = StandardisedKernel.of(INPUTS)
    widths = np.log([1e3, 1e5, 1e5])
    np.testing.assert_allclose(kernel.bounds, np.stack([kernel.theta - widths, kernel.theta + widths], axis=1))
    linear = StandardisedKernel.of(INPUTS, ("linear",))
    np.testing.assert_allclose(linear.bounds, [[-np.log(1e5), np.log(1e5)]])


def test_columns_that_do_not_vary_are_not_divided():
    kernel = StandardisedKernel.of(np.array([[1e6, 0.0, 1.0], [1e6, 0.0, 3.0], [1e6, 0.0, 5.0]]))
    np.testing.assert_allclose(kernel.spread, [1.0, 1.0, np.sqrt(8 / 3)])
    np.testing.assert_allclose(kernel.offset, [1e6, 0.0, 3.0])
    # what varies by less than rounding leaves of a column's largest value is constant too
    inputs = -1e3 + np.multiply.outer([-1.0, 1.0, 0.0, 0.0], [1.8e-9, 1.1e-9])
    assert np.all(inputs.std(axis=0) > 0.5e-9)
    spread = StandardisedKernel.of(inputs).spread
    assert spread[0] == inputs[:, 0].std()
    assert spread[1] == 1.0
