"""Passes over a graph: Chebyshev series, quadrature weights, moments and filters against their definitions."""

import pickle

import numpy as np
import pytest
from numpy.polynomial import chebyshev as series

import oracle
from spectralgp.graphs import Graph
from spectralgp.graphs.operators import (
    CpuOperator,
    MomentPass,
    chebyshev_coefficients,
    chebyshev_points,
    quadrature_weights,
)
from tolerances import EXACT, SINGLE

N_NODES, N_COLUMNS = 12, 4
WEIGHTS = oracle.random_weights(N_NODES, seed=3, density=0.3)
SIGNALS = np.random.default_rng(0).standard_normal((N_COLUMNS, N_NODES))


def operator_of(weights=WEIGHTS, **options):
    return CpuOperator(*Graph(weights).laplacian_parts(), **options)


def dense(operator, weights=WEIGHTS):
    return 2 * oracle.laplacian(weights) / operator.bound - np.eye(len(weights))


# Series


@pytest.mark.parametrize("n_points", [1, 2, 7, 64])
def test_points_are_the_roots_of_the_next_polynomial(n_points):
    points = chebyshev_points(n_points)
    assert np.all(np.diff(points) < 0)
    assert oracle.relative_error(points[::-1], series.chebpts1(n_points)) < EXACT
    assert np.max(np.abs(series.chebval(points, np.eye(n_points + 1)[-1]))) < EXACT * n_points


@pytest.mark.parametrize("n_points", [1, 5, 33])
def test_coefficients_are_those_that_give_the_values(n_points):
    coefficients = np.random.default_rng(1).standard_normal((3, n_points))
    values = series.chebval(chebyshev_points(n_points), coefficients.T)
    assert oracle.relative_error(chebyshev_coefficients(values), coefficients) < EXACT


def test_coefficients_of_a_function_are_those_of_numpy():
    expected = series.chebinterpolate(np.exp, 40)
    assert oracle.relative_error(chebyshev_coefficients(np.exp(chebyshev_points(41))), expected) < EXACT


@pytest.mark.parametrize("shape", [(1,), (6,), (9, 2, 2)])
def test_quadrature_weights_are_those_of_equation_12(shape):
    moments = np.random.default_rng(2).standard_normal(shape)
    assert oracle.relative_error(quadrature_weights(moments), oracle.chebyshev_weights(moments)) < EXACT


def test_the_quadrature_is_exact_for_polynomials_of_its_degree():
    """``sum_q m_q f(x_q) = tr f(A)``, with seven moments for degree six."""
    operator = operator_of()
    eigenvalues = np.linalg.eigvalsh(dense(operator))
    moments = np.array([np.trace(oracle.chebyshev_matrix(dense(operator), k)) for k in range(7)])
    coefficients = np.random.default_rng(3).standard_normal(7)
    total = quadrature_weights(moments) @ np.polyval(coefficients, chebyshev_points(7))
    assert oracle.relative_error(total, np.sum(np.polyval(coefficients, eigenvalues))) < EXACT


# Moments


@pytest.mark.parametrize("gram", [True, False])
@pytest.mark.parametrize("n_moments", [3, 4, 12])
@pytest.mark.parametrize("options", [{}, {"reorder": True}, {"dtype": np.float32}])
def test_moments_are_those_of_dense_polynomials(gram, n_moments, options):
    """Equation (24)."""
    operator = operator_of(**options)
    moments = MomentPass(operator, operator.load(SIGNALS), gram)
    moments.extend(n_moments)
    assert moments.n_moments == n_moments | 1  # two by each product
    polynomials = [oracle.chebyshev_matrix(dense(operator), k) for k in range(moments.n_moments)]
    expected = np.stack([SIGNALS @ matrix @ SIGNALS.T for matrix in polynomials])
    expected = expected if gram else np.diagonal(expected, axis1=1, axis2=2)
    assert oracle.relative_error(moments.moments, expected) < (SINGLE if "dtype" in options else EXACT)


def test_extending_goes_on_where_it_ended(listener):
    operator = operator_of()
    whole, parts = (MomentPass(operator, operator.load(SIGNALS), gram=True) for _ in range(2))
    whole.extend(41)
    # the first product comes with the pass, which is no step of its own
    assert listener.heard == listener.mentions == [f"moment {n} of 41" for n in range(5, 42, 2)]
    for n_moments in (5, 5, 3, 20, 41):
        before = parts.moments
        parts.extend(n_moments)
        np.testing.assert_array_equal(parts.moments[: len(before)], before)
    np.testing.assert_array_equal(parts.moments, whole.moments)


def test_an_eigenvalue_beyond_the_interval_is_noticed():
    operator = operator_of()
    operator.bound = 0.9 * np.linalg.eigvalsh(oracle.laplacian(WEIGHTS))[-1]
    moments = MomentPass(operator, operator.load(SIGNALS), gram=True)
    with pytest.raises(ArithmeticError, match="beyond the interval of the recurrence"):
        moments.extend(101)


@pytest.mark.parametrize("gram", [True, False])
def test_signals_of_zeros_have_moments_of_zeros(gram):
    operator = operator_of()
    moments = MomentPass(operator, operator.zeros(2), gram)
    moments.extend(9)
    assert not moments.moments.any()


def test_an_interrupted_pass_keeps_its_moments_and_does_not_go_on():
    operator = operator_of()
    moments = MomentPass(operator, operator.load(SIGNALS), gram=True)
    moments.extend(5)
    before = moments.moments
    operator.advance = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        moments.extend(9)
    assert moments.is_released
    np.testing.assert_array_equal(moments.moments, before)


def test_a_pickled_pass_is_its_moments():
    operator = operator_of()
    moments = MomentPass(operator, operator.load(SIGNALS), gram=False)
    again = pickle.loads(pickle.dumps(moments))
    assert again.is_released
    np.testing.assert_array_equal(again.moments, moments.moments)


# Filters


@pytest.mark.parametrize("n_terms", [1, 2, 3, 9])
@pytest.mark.parametrize("options", [{}, {"reorder": True}, {"dtype": np.float32}])
def test_filtering_is_the_dense_sum_of_polynomials(n_terms, options, listener):
    operator = operator_of(**options)
    coefficients = np.random.default_rng(4).standard_normal((n_terms, N_COLUMNS, 2))
    columns = operator.load(SIGNALS)
    actual = operator.unload(operator.filtered(columns, coefficients))
    expected = sum(
        oracle.chebyshev_matrix(dense(operator), k) @ SIGNALS.T @ matrix for k, matrix in enumerate(coefficients)
    )
    assert oracle.relative_error(actual, expected.T) < (SINGLE if "dtype" in options else EXACT)
    assert len(listener.heard) == len(listener.mentions) == n_terms - 1
    np.testing.assert_array_equal(operator.unload(columns), operator.unload(operator.load(SIGNALS)))


@pytest.mark.parametrize("n_terms", [1, 2, 9])
def test_every_column_may_have_a_filter_of_its_own(n_terms):
    operator = operator_of()
    coefficients = np.random.default_rng(5).standard_normal((n_terms, N_COLUMNS))
    actual = operator.unload(operator.filtered(operator.load(SIGNALS), coefficients))
    polynomials = [oracle.chebyshev_matrix(dense(operator), k) for k in range(n_terms)]
    expected = sum(matrix @ (SIGNALS.T * row) for matrix, row in zip(polynomials, coefficients, strict=True))
    assert oracle.relative_error(actual, expected.T) < EXACT


def test_probes_average_products_with_what_filters_make_of_them():
    operator = operator_of()
    coefficients = np.random.default_rng(6).standard_normal((2, 5))
    filters = [sum(c * oracle.chebyshev_matrix(dense(operator), k) for k, c in enumerate(row)) for row in coefficients]
    expected = [np.mean(SIGNALS * (SIGNALS @ matrix), axis=0) for matrix in filters]
    actual = operator.unload(operator.probed(operator.load(SIGNALS), coefficients))
    assert oracle.relative_error(actual, expected) < EXACT
