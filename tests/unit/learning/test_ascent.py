"""Steps of an ascent against the conditions of optimality, and updates against their defining equations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

import oracle
from spectralgp import Graph, Polynomial, Task, learn
from spectralgp.kernels import WithResidual
from spectralgp.learning import sqp
from spectralgp.learning.sqp import _climb, _quadratic_program, _Summit, updated
from tolerances import EXACT


@pytest.mark.parametrize("seed", range(20))
def test_a_quadratic_program_is_solved(seed):
    """Random ones with the origin feasible, of which several constraints bind."""
    rng = np.random.default_rng(seed)
    size, n_rows = 5, 12
    factor = rng.standard_normal((size, size)) * 10.0 ** rng.uniform(-1, 2, size)
    precision = factor @ factor.T + 0.1 * np.eye(size)
    gradient, rows = 100 * rng.standard_normal(size), rng.standard_normal((n_rows, size))
    least = -rng.uniform(0, 0.5, n_rows)
    root = np.linalg.inv(np.linalg.cholesky(precision)).T
    step = _quadratic_program(root, gradient, rows, least)
    slacks = rows @ step - least
    assert np.min(slacks) > -1e-10
    # the model is concave, so the conditions of optimality, with multipliers of binding constraints, suffice
    multipliers, residual = nnls(rows[slacks < 1e-9].T, precision @ step - gradient)
    assert np.count_nonzero(multipliers) > 0
    assert residual < 1e-7 * np.linalg.norm(gradient)


def test_a_free_step_is_newtons():
    rng = np.random.default_rng(0)
    factor, gradient = rng.standard_normal((4, 4)), rng.standard_normal(4)
    precision = factor @ factor.T
    root = np.linalg.inv(np.linalg.cholesky(precision)).T
    expected = np.linalg.solve(precision, gradient)
    for rows, least in ((np.empty((0, 4)), np.empty(0)), (np.eye(4), expected - 1.0)):
        assert oracle.relative_error(_quadratic_program(root, gradient, rows, least), expected) < 1e-10


@pytest.mark.parametrize("curvature", [2.0, 1e-3, -1.0])
def test_an_update_is_that_of_powell(curvature):
    """The secant equation where the curvature is positive enough, and positive definite whatever it is."""
    rng = np.random.default_rng(0)
    factor, step = rng.standard_normal((4, 4)), rng.standard_normal(4)
    precision = factor @ factor.T + np.eye(4)
    expected = float(step @ precision @ step)
    change = curvature * precision @ step
    found = updated(precision, step, change)
    assert np.linalg.eigvalsh(found)[0] > 0
    # 0.2 is Powell's constant
    assert oracle.relative_error(step @ found @ step, max(curvature, 0.2) * expected) < EXACT
    if curvature > 0.2:
        assert oracle.relative_error(found @ step, change) < EXACT


def test_an_ascent_that_is_higher_than_a_known_maximum_goes_on():
    """Else what it had reached by then would be taken for the highest maximum, and it is none."""
    known = _Summit(np.zeros(2), 5.0, np.eye(2))
    near = np.array([0.1, 0.0])
    assert known.is_ahead(near, 4.99, 0.001)
    assert not known.is_ahead(near, 5.01, 0.001)
    assert not known.is_ahead(near + 1, 4.99, 0.001)
    assert not known.is_ahead(near, 4.99, 1.0)


class Flat:
    """An objective that is the same everywhere."""

    units = np.ones(2)

    def evaluate(self, x):
        return 1e6, np.zeros(2)


def test_a_step_that_rounding_swallows_is_none():
    assert _climb(Flat(), np.ones(2), 1e6, np.full(2, 1e-20), 1e-20) is None


def test_points_that_rounding_misses_are_not_asked_for_again(monkeypatch):
    """Signals that are all zero drive filters to zero by steps against constraints at every one of their points."""
    solved, stepped = [], []
    solve, step = sqp._quadratic_program, sqp._Constraints.step
    monkeypatch.setattr(sqp, "_quadratic_program", lambda *arguments: solved.append(1) or solve(*arguments))
    monkeypatch.setattr(sqp._Constraints, "step", lambda *arguments: stepped.append(1) or step(*arguments))
    ring = Graph.from_edges([(node, (node + 1) % 5) for node in range(5)])
    kernel = WithResidual.of(Polynomial(2), Polynomial(2))
    learn(Task.of(ring, None, np.empty((12, 0)), np.zeros((12, 5))), kernel)
    assert len(solved) <= 2 * len(stepped)
