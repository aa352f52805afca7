"""Covariances between inputs: three kinds of kernel behind the same verbs."""

from __future__ import annotations

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
from spectralgp.kernels import (
    Diffusion,
    Independent,
    Learnt,
    Precomputed,
    Standardised,
    as_covariance,
    as_input_kernel,
    inputs,
    length_scale_centres,
)
from tolerances import EXACT, FORMULA, GRADIENT

INPUTS = np.random.default_rng(0).standard_normal((7, 3)) * [1.0, 10.0, 0.1]
POINTS = np.array([[0.1, 2.0, 0.0], [3.0, -1.0, 0.1]])
KERNEL = ConstantKernel(2.0) * RBF([1.0, 5.0, 0.2])
MATRIX = KERNEL(INPUTS)
KINDS = {
    "learnt": (Learnt(KERNEL), INPUTS),
    "precomputed": (Precomputed(), MATRIX),
    "independent": (Independent(), np.empty((7, 0))),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def dense(kind):
    return np.eye(7) if kind == "independent" else 2 * oracle.rbf(INPUTS / [1.0, 5.0, 0.2], INPUTS / [1.0, 5.0, 0.2])


# Verbs


@every_kind
def test_covariance_and_modes_are_the_dense_ones(kind):
    kernel, inputs = KINDS[kind]
    assert oracle.relative_error(kernel.covariance(inputs), dense(kind)) < FORMULA
    for modes in (kernel.modes(inputs), kernel.modes_and_gradient(inputs)[0]):
        rebuilt = modes.vectors @ np.diag(modes.values) @ modes.vectors.T
        assert oracle.relative_error(rebuilt, dense(kind)) < FORMULA


@every_kind
def test_the_gradient_is_that_of_finite_differences(kind):
    kernel, inputs = KINDS[kind]
    gradient = kernel.modes_and_gradient(inputs)[1]
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
    part = kernel.covariance(kernel.subset(inputs, kept))
    assert oracle.relative_error(part, matrix[np.ix_(kept, kept)]) < FORMULA
    new = kernel.between(inputs, kept, held_out)
    assert oracle.relative_error(new.cross, matrix[np.ix_(held_out, kept)]) < FORMULA
    assert oracle.relative_error(new.variances, matrix[held_out, held_out]) < FORMULA
    assert oracle.relative_error(new.covariance, matrix[np.ix_(held_out, held_out)]) < FORMULA


def test_new_inputs_of_a_kernel_and_of_its_matrices_agree():
    scales = np.array([1.0, 5.0, 0.2])
    cross, test = 2 * oracle.rbf(POINTS / scales, INPUTS / scales), 2 * oracle.rbf(POINTS / scales, POINTS / scales)
    for new in (Learnt(KERNEL).at(INPUTS, POINTS), Precomputed().at(MATRIX, (cross, test))):
        assert oracle.relative_error(new.cross, cross) < EXACT
        assert oracle.relative_error(new.variances, np.diag(test)) < EXACT
        assert oracle.relative_error(new.covariance, test) < EXACT


def test_a_new_independent_signal_shares_nothing():
    kernel = Independent()
    new = kernel.at(np.empty((7, 0)), np.empty((2, 0)))
    np.testing.assert_array_equal(new.cross, np.zeros((2, 7)))
    np.testing.assert_array_equal(new.covariance, np.eye(2))
    assert kernel.new(None, np.asarray).shape == (1, 0)
    with pytest.raises(ValueError, match=r"X must be None, or have no columns.*independent; got shape \(2, 3\)"):
        kernel.at(np.empty((7, 0)), POINTS)


def test_three_matrices_are_one_too_many():
    with pytest.raises(ValueError, match="X must be a matrix or a pair of them where the kernel is precomputed; got 3"):
        Precomputed().at(MATRIX, (MATRIX, MATRIX, MATRIX))


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
    with pytest.raises(
        TypeError, match=r"kernel must be a scikit-learn kernel such as RBF\(\), 'precomputed' or None; got"
    ):
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
    default = Standardised.of(INPUTS, ("smooth",))
    kernel = default.described.k1
    assert isinstance(kernel, RBF)
    assert kernel.length_scale**2 == pytest.approx(median_squared_distance(standardised))
    assert np.exp(default.bounds[0]) == pytest.approx((1e-3 * kernel.length_scale, 1e3 * kernel.length_scale))
    assert Standardised.of(np.ones((4, 2)), ("smooth",)).described.k1.length_scale == 1.0


@pytest.mark.parametrize("terms", [("smooth", "linear"), ("smooth",), ("linear",)])
def test_the_default_kernel_is_scikit_learn_s_of_standardised_inputs(terms):
    """Covariances at training inputs, their derivatives by differences, and those of new inputs."""
    kernel = Standardised.of(INPUTS, terms)
    kernel = kernel.with_theta(kernel.theta + 0.3 * np.arange(1, 1 + kernel.theta.size))
    standardised = (INPUTS - INPUTS.mean(axis=0)) / INPUTS.std(axis=0)
    assert oracle.relative_error(kernel.covariance(INPUTS), kernel.described(standardised)) < FORMULA
    new = kernel.at(INPUTS, INPUTS[:3] + 1)
    expected = kernel.described((INPUTS[:3] + 1 - INPUTS.mean(axis=0)) / INPUTS.std(axis=0), standardised)
    assert oracle.relative_error(new.cross, expected) < FORMULA
    _, gradient = kernel.modes_and_gradient(INPUTS)
    for index in range(kernel.theta.size):
        step = 1e-6 * np.eye(kernel.theta.size)[index]
        ahead, behind = (kernel.with_theta(kernel.theta + sign * step).covariance(INPUTS) for sign in (1, -1))
        assert oracle.relative_error(gradient[..., index], (ahead - behind) / 2e-6) < GRADIENT


@pytest.mark.parametrize("terms", [("smooth", "linear"), ("smooth",), ("linear",)])
def test_the_covariance_of_many_inputs_is_that_of_few(terms, monkeypatch):
    kernel = Standardised.of(INPUTS, terms)
    remembered = kernel.covariance(INPUTS)
    monkeypatch.setattr(inputs, "MOST_REMEMBERED", 6)
    assert oracle.relative_error(kernel.covariance(INPUTS), remembered) < EXACT


@pytest.mark.parametrize("bounds", [(1e-3, 1e3), np.array([[1e-3, 1e3]])], ids=["a pair", "an array"])
def test_a_squared_exponential_is_the_same_by_remembered_distances(bounds):
    first, other = np.random.default_rng(0).standard_normal((2, 7, 3))
    kernel = as_input_kernel(RBF(2.0, bounds))
    for places in (first, other, first):  # which it must not take for one another
        for theta in (np.log([0.4]), np.log([3.0])):
            own = kernel.with_theta(theta)
            covariance, slopes = RBF(float(np.exp(theta[0])))(places, eval_gradient=True)
            modes, gradient = own.modes_and_gradient(places)
            assert oracle.relative_error((modes.vectors * modes.values) @ modes.vectors.T, covariance) < EXACT
            assert oracle.relative_error(gradient, slopes) < EXACT
            assert own.described == RBF(float(np.exp(theta[0])), bounds) or isinstance(bounds, np.ndarray)
    assert len(pickle.dumps(own)) < first.nbytes + 2_000  # distances are not kept in files


def test_the_default_kernel_of_one_input_starts_at_one():
    """There is no distance; a second column, or none, changes what the linear term is worth."""
    for terms, expected in ((("smooth",), [0, 0]), (("linear",), [0]), (("smooth", "linear"), [0, -np.log(2), 0])):
        kernel = Standardised.of(np.array([[3.0, 5.0]]), terms)
        np.testing.assert_allclose(kernel.theta, expected, atol=1e-15)
        np.testing.assert_array_equal(kernel.theta_prior(np.empty((0, 2)))[0], kernel.theta)
        assert kernel.level == 1.0
    np.testing.assert_array_equal(Standardised.of(np.ones((4, 0))).theta, [0, 0, 0])


def test_the_default_kernel_moves_by_three_orders_in_length_and_five_in_variances():
    kernel = Standardised.of(INPUTS)
    widths = np.log([1e3, 1e5, 1e5])
    np.testing.assert_allclose(kernel.bounds, np.stack([kernel.theta - widths, kernel.theta + widths], axis=1))
    linear = Standardised.of(INPUTS, ("linear",))
    np.testing.assert_allclose(linear.bounds, [[-np.log(1e5), np.log(1e5)]])


def test_columns_that_do_not_vary_are_not_divided():
    kernel = Standardised.of(np.array([[1e6, 0.0, 1.0], [1e6, 0.0, 3.0], [1e6, 0.0, 5.0]]))
    np.testing.assert_allclose(kernel.spread, [1.0, 1.0, np.sqrt(8 / 3)])
    np.testing.assert_allclose(kernel.offset, [1e6, 0.0, 3.0])
