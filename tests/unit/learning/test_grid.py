"""The paper's grid search, against trying every point."""

import dataclasses
import itertools

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GRAPHS, WEIGHTS, bound
from spectralgp.learning import Task, learn
from spectralgp.learning.objective import Objective
from spectralgp.learning.sqp import GRID_NOISE_SHARES, GRIDS, MAX_GRID_FILTERS, _combinations, grid_search
from spectralgp.model.kernels import Polynomial
from spectralgp.model.kernels.carry import CarryColumns
from tolerances import FORMULA, OPTIMUM

INPUTS = np.random.default_rng(0).uniform(-2, 2, (5, 2))


def task_on(graph, noise_variance=None, scale=1.0):
    signals = scale * np.random.default_rng(2).standard_normal((5, GRAPHS[graph].n_nodes))
    return Task.of(GRAPHS[graph], RBF(1.0), INPUTS, signals, noise_variance, prior=None)


@pytest.mark.parametrize("n_coefficients", [1, 2, 3])
def test_candidates_are_all_combinations_up_to_a_common_sign(n_coefficients):
    values = np.linspace(-5, 5, 11)
    candidates, n_values = _combinations(values, n_coefficients)
    assert n_values == 11
    found = {tuple(row) for row in candidates} | {tuple(-row + 0.0) for row in candidates}
    assert {tuple(np.add(row, 0.0)) for row in found} == set(itertools.product(values, repeat=n_coefficients))
    assert len(candidates) == (11**n_coefficients + 1) // 2


@pytest.mark.parametrize("n_coefficients", range(1, 14))
def test_candidates_stay_within_the_limit_and_keep_zero_and_the_ends(n_coefficients):
    candidates, n_values = _combinations(np.linspace(-10, 10, 11), n_coefficients)
    assert len(candidates) <= MAX_GRID_FILTERS + 1
    assert candidates.shape[1] == n_coefficients
    assert n_values % 2 == 1
    assert n_values >= 3
    assert {-10.0, 0.0}.issubset(candidates.ravel())


@pytest.mark.parametrize("noise_variance", [None, 0.35])
@pytest.mark.parametrize(("graph", "scaled"), [("random", True), ("disconnected", False)])
def test_grid_search_finds_the_best_point_of_both_grids(graph, scaled, noise_variance):
    """Every point of the paper's grids by the dense likelihood, for a polynomial of degree one."""
    kernel, spectrum = bound(Polynomial(1, scaled=scaled), GRAPHS[graph])
    task = task_on(graph, noise_variance, scale=1.7)
    objective = Objective(task, kernel, spectrum)
    x, name = grid_search(objective)
    assert name == "grid search"

    matrix = oracle.laplacian(WEIGHTS[graph], scaled=True)  # the grids are for eigenvalues in [0, 1]
    variance = np.var(task.signals.values)
    length = np.sqrt(np.mean(np.sum(task.signals.values**2, axis=1)))
    covariance = oracle.rbf(INPUTS, INPUTS, length)
    noises = [0.1 * variance, 0.2 * variance] if noise_variance is None else [noise_variance]
    best = max(
        oracle.log_likelihood(task.signals.values, covariance, variance * oracle.polynomial(matrix, beta), noise)
        for grid in (np.linspace(-5, 5, 11), np.linspace(-10, 10, 11))
        for beta in itertools.product(grid, repeat=2)
        for noise in noises
    )
    assert oracle.relative_error(objective.evaluate(x)[0], best) < FORMULA


def test_grids_are_the_papers():
    """Coefficients from -5 to 5 in steps of one and from -10 to 10 in steps of two, of noise a tenth and a fifth."""
    assert [grid.tolist() for grid in GRIDS] == [list(range(-5, 6)), list(range(-10, 11, 2))]
    assert GRID_NOISE_SHARES == (0.1, 0.2)


def test_a_thinned_grid_says_so():
    kernel, spectrum = bound(Polynomial(5), GRAPHS["random"])
    _, name = grid_search(Objective(task_on("random"), kernel, spectrum))
    assert name == "grid search, 5 of 11 values per coefficient"


def test_signals_of_zero_have_no_energy_to_start_from():
    """The supplement's starting length scale is their mean energy, here zero; warnings are errors."""
    task = Task.of(GRAPHS["random"], RBF(1.0), INPUTS, np.zeros((5, 7)))
    kernel, spectrum = bound(Polynomial(1), GRAPHS["random"])
    x, _ = grid_search(Objective(task, kernel, spectrum))
    assert np.all(np.isfinite(x))


def test_a_search_that_starts_on_a_grid_ends_well_with_lagged_terms():
    """Independent signals, half of the signal before and noise of a known size; with a constraint there is no grid."""
    rng, graph = np.random.default_rng(4), GRAPHS["random"]
    before = rng.standard_normal((20, graph.n_nodes))
    signals = 0.5 * before + 2 * rng.standard_normal(before.shape)
    task = Task.of(graph, None, before, signals, 0.5, prior=None)
    task = dataclasses.replace(task, carried=CarryColumns.of(np.arange(graph.n_nodes), before))
    found, expected = learn(task, Polynomial(1, None)), learn(task, Polynomial(1))
    assert found.converged
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=OPTIMUM)
    assert oracle.relative_error(found.model.carry.chebyshev, expected.model.carry.chebyshev) < np.sqrt(OPTIMUM)
