"""Conjugate gradients and Lanczos against dense matrices."""

from dataclasses import dataclass, field

import numpy as np
import pytest

import oracle
from oracle import relative_error
from spectralgp.graphs.operators import lanczos
from spectralgp.model.fields.krylov import LANCZOS_TOLERANCE, LinearSystem, conjugate_gradients, gauss_quadrature


@dataclass(frozen=True, eq=False)
class Dense:
    """A matrix, preconditioned by a diagonal, for sets of values (n_sets, n_values); counts its products."""

    matrix: np.ndarray
    diagonal: np.ndarray
    smallest: float
    products: list = field(default_factory=list)

    @classmethod
    def drawn(cls, n_values: int, condition: float, seed: int) -> "Dense":
        rng = np.random.default_rng(seed)
        vectors = np.linalg.qr(rng.standard_normal((n_values, n_values)))[0]
        matrix = (vectors * np.geomspace(1 / condition, 1.0, n_values)) @ vectors.T
        diagonal = rng.uniform(0.5, 2.0, n_values)
        roots = np.sqrt(diagonal)
        return cls(matrix, diagonal, float(np.linalg.eigvalsh(matrix / np.multiply.outer(roots, roots))[0]))

    @property
    def system(self) -> LinearSystem:
        return LinearSystem(self.times, self.precondition, self.inner, self.smallest)

    def times(self, block, image):
        self.products.append(1)
        return block @ self.matrix

    def precondition(self, block):
        found = block / self.diagonal
        return found, found

    def inner(self, left, right):
        return np.sum(left * right, axis=-1, keepdims=True)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("condition", [3.0, 100.0, 1e4])
@pytest.mark.parametrize("has_start", [False, True])
def test_what_is_left_of_a_system_is_within_the_tolerance(tolerance, condition, has_start):
    system, rng = Dense.drawn(200, condition, 0), np.random.default_rng(1)
    rights = rng.standard_normal((3, 200))
    exact = np.linalg.solve(system.matrix, rights.T).T
    start = exact * (1 + 0.1 * rng.standard_normal(exact.shape)) if has_start else None
    error = conjugate_gradients(system.system, rights, start, tolerance) - exact
    left = np.sqrt(np.sum(error @ system.matrix * error, axis=1) / np.sum(exact @ system.matrix * exact, axis=1))
    assert np.all(left <= tolerance)
    assert np.max(left) > 5e-3 * tolerance  # and it does not go on for nothing


def test_lanczos_goes_on_until_nothing_changes():
    """Of a matrix whose eigenvalues are far apart, for which a few steps do not do."""
    matrix, probe = Dense.drawn(300, 1e6, 4).matrix, np.random.default_rng(5).integers(0, 2, 300) * 2.0 - 1.0
    values, axes = np.linalg.eigh(matrix)
    expected = np.square(axes.T @ probe) @ np.log(values) / probe.size

    def found(max_steps: int) -> float:
        steps = lanczos(lambda block: matrix @ block, lambda left, right: float(left @ right), probe)
        nodes, weights = gauss_quadrature(steps, 10, max_steps)
        assert oracle.relative_error(weights.sum(), 1.0) < 1e-10
        return float(weights @ np.log(nodes))

    assert relative_error(found(1_000), expected) < 100 * LANCZOS_TOLERANCE
    assert relative_error(found(10), expected) > 1_000 * LANCZOS_TOLERANCE


def test_nothing_to_solve_takes_no_product_and_a_solution_one():
    dense = Dense.drawn(50, 10.0, 2)
    conjugate_gradients(dense.system, np.zeros((2, 50)), None, 1e-6)
    assert len(dense.products) == 0
    exact = np.random.default_rng(3).standard_normal((2, 50))
    conjugate_gradients(dense.system, exact @ dense.matrix, exact, 1e-6)
    assert len(dense.products) == 1


def test_what_a_start_explains_counts_as_solved():
    """The tolerance is of all energy: what is left of a start that is near enough is not worked on."""
    rng = np.random.default_rng(3)
    exact = rng.standard_normal((2, 50))
    for distance, n_products in ((1e-6, 1), (0.3, 4)):
        dense = Dense.drawn(50, 10.0, 2)
        start = exact + distance * rng.standard_normal(exact.shape)
        conjugate_gradients(dense.system, exact @ dense.matrix, start, 1e-3)
        assert (len(dense.products) == 1) is (n_products == 1)
        assert len(dense.products) >= n_products


def test_systems_that_do_not_end_are_given_up():
    dense = Dense.drawn(50, 1e4, 2)
    conjugate_gradients(dense.system, np.random.default_rng(3).standard_normal((2, 50)), None, 0.0)
    assert len(dense.products) == 2_000
