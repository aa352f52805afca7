"""Benchmark scripts: their pages are made of their results, their yardsticks are right, and short forms run."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import oracle
from spectralgp import Graph
from tolerances import FORMULA

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
LIMIT = 4.0  # standard errors, over data sets, that a share may be off; seeds are fixed


@pytest.fixture(scope="module", autouse=True)
def scripts() -> Iterator[None]:
    """Benchmarks find each other as scripts do, by their folder."""
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


def results_of(name: str) -> dict[str, Any]:
    return json.loads((BENCHMARKS / "results" / f"{name}.json").read_text())


def pages() -> dict[str, str]:
    import _calibration_page
    import _observations_page
    import _series_page
    import write_performance

    return {
        "calibration": _calibration_page.page(results_of("calibration")),
        "forecasts": _series_page.page(results_of("time")),
        "observations": _observations_page.page(results_of("observations")),
        "performance": write_performance.page(),
    }


@pytest.mark.parametrize("name", ["calibration", "forecasts", "observations", "performance"])
def test_a_page_is_made_of_its_results(name):
    assert (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") == pages()[name]


def test_every_setting_of_calibration_has_results_of_one_code():
    import _calibration

    cells = results_of("calibration")["cells"]
    assert list(cells) == list(_calibration.CELLS)
    assert len({cell["code"] for cell in cells.values()}) == 1


@pytest.mark.parametrize(
    "name", ["regression, true hyperparameters, 5, complete", "counts, true rates, 0.2", "counts, true rates, 20"]
)
def test_predictions_by_the_truth_are_calibrated(name):
    import _calibration
    import bench_calibration
    from _calibration_page import rows_of

    kept = {"code": "", "n_sets": 0, "seconds": 0.0, "warned": 0, "failed": [], "rows": {}}
    for seed in range(150):
        bench_calibration.add(kept, _calibration.CELLS[name].run(seed))
    (row,) = rows_of({"cells": {name: kept}, "machine": {"python": "3"}})
    assert max(row.coverage(level).n_errors for level in _calibration.LEVELS) < LIMIT
    assert row.transform.n_errors < LIMIT


def test_signals_and_series_are_drawn_with_the_covariance_of_the_dense_oracle():
    import _calibration

    weights, inputs = oracle.random_weights(6, seed=4), np.array([[0.3], [-1.2], [0.9]])
    graph, matrix = Graph(weights), oracle.laplacian(weights, scaled=True)
    found = oracle.law_of(partial(_calibration.draw_signals, graph, inputs, _calibration.POLYNOMIAL))[1]
    signal, residual = oracle.polynomial(matrix, [1, -0.8]), oracle.polynomial(matrix, [0.5, -0.25])
    expected = oracle.covariance(oracle.rbf(inputs, inputs), signal, 0.09) + np.kron(np.eye(3), residual)
    assert oracle.relative_error(found, expected) < FORMULA
    found, lags = oracle.law_of(partial(_calibration.draw_series, graph, 4))[1], np.arange(4)
    between = [oracle.matrix_function(matrix, partial(_decayed, lag)) for lag in lags]
    expected = np.block([[between[abs(one - other)] for other in lags] for one in lags]) + 0.09 * np.eye(24)
    assert oracle.relative_error(found, expected) < FORMULA


def _decayed(lag: int, values: np.ndarray) -> np.ndarray:
    return (1 - 0.7 * values) ** 2 * np.exp(-lag * (0.05 + 0.3 * values))


@pytest.mark.parametrize("has_missing", [False, True])
def test_the_likelihood_that_rivals_are_judged_by_is_that_of_the_dense_covariance(has_missing):
    import _peers

    problem = _peers.Problem.drawn(12, 7, has_missing)
    values, vectors = np.linalg.eigh(problem.laplacian)
    power = (1.5 - values / values[-1]) ** 2
    covariance = oracle.covariance(oracle.rbf(problem.inputs, problem.inputs, 1.3), (vectors * power) @ vectors.T, 0.2)
    seen = np.isfinite(problem.signals.ravel())
    assert seen.all() != has_missing
    expected = multivariate_normal(cov=covariance[np.ix_(seen, seen)]).logpdf(problem.signals.ravel()[seen])
    assert _peers.Learnt(power, 1.3, 0.2).log_likelihood(problem) == pytest.approx(expected, rel=1e-10)


def test_classes_of_rivals_agree_with_their_definitions():
    from _classes import harmonic, labelled, split, spreading

    data = labelled("karate")
    known = split(data.classes, 2, 0)
    weights, others = data.graph.weights.toarray(), np.setdiff1d(np.arange(34), known)
    found = harmonic(data, known)[:, 1]
    np.testing.assert_allclose(found[others], (weights @ found / weights.sum(axis=1))[others], atol=1e-6)
    roots, start = np.sqrt(weights.sum(axis=1)), np.zeros((34, 2))
    start[known] = np.eye(2)[data.classes[known]]
    closed = np.linalg.solve(np.eye(34) - 0.2 * weights / np.outer(roots, roots), start)
    np.testing.assert_allclose(spreading(data, known, 0.2), closed / closed.sum(axis=1, keepdims=True), atol=5e-3)


@pytest.mark.slow
def test_partitions_in_turn_do_what_the_whole_graph_does():
    """The check that benchmarks/gpu.py runs on a GPU, here on the CPU."""
    import _in_turn

    found = _in_turn.partitions("cpu")
    assert max(found["float64"].values()) < 1e-13
    assert max(found["float32"].values()) < 1e-5


def test_watched_functions_are_there():
    """In a process of its own, since watching changes classes."""
    code = "import _large; assert _large.watched_stages().seconds == {}"
    subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, check=True)


QUICK = {
    "bench_calibration": "--small --sets 2 --only counts observations --out OUT",
    "bench_real": "--quick --sets incomes --rivals default knn --workers 1 --out OUT",
    "bench_missing": "--quick --sets incomes --removals outages --rivals default knn --workers 1 --out OUT",
    "bench_state_space": "--quick",
    "bench_dask": "cost streamed --quick",
    "soak": "--fits 40 --workers 3 --out OUT",
}


@pytest.mark.slow
@pytest.mark.parametrize("script", QUICK)
def test_the_short_form_of_a_script_runs(script, tmp_path):
    """The soak has two threads of linear algebra: what runs on them alone would be rounded otherwise beside others."""
    options = [str(tmp_path) if one == "OUT" else one for one in QUICK[script].split()]
    threads = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"} if script == "soak" else {}
    environment = {**os.environ, **threads, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, str(BENCHMARKS / f"{script}.py"), *options]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    if script == "soak":
        assert set(json.loads((tmp_path / "soak.json").read_text())["bars_met"].values()) == {True}
