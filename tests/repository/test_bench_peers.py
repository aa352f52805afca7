"""The comparison with other Gaussian processes: its yardstick against dense algebra, and what it makes of results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

ROOT = Path(__file__).resolve().parents[2]


MODULES = ("_peers", "_peers_page", "bench_peers", "write_performance")


@pytest.mark.parametrize("has_holes", [False, True])
def test_the_likelihood_is_that_of_the_dense_covariance(bench, has_holes):
    problem = bench["_peers"].Problem.drawn(12, 7, has_holes)
    values, vectors = np.linalg.eigh(problem.laplacian)
    power = (1.5 - values / values[-1]) ** 2
    learnt = bench["_peers"].Learnt(power, 1.3, 0.2)
    squared = np.sum((problem.inputs[:, None] - problem.inputs[None]) ** 2, axis=2)
    whole = np.kron(np.exp(-0.5 * squared / 1.3**2), vectors @ np.diag(power) @ vectors.T) + 0.2 * np.eye(84)
    seen = np.isfinite(problem.signals.ravel())
    assert seen.all() != has_holes
    expected = multivariate_normal(cov=whole[np.ix_(seen, seen)]).logpdf(problem.signals.ravel()[seen])
    assert learnt.log_likelihood(problem) == pytest.approx(expected, rel=1e-10)


def test_our_own_model_is_read_as_it_is(bench):
    """Hyperparameters as the comparison reads them give the likelihood that the fit states."""
    module = bench["_peers"]
    problem, clock = module.Problem.drawn(20, 12, False), module.Clock(60.0)
    clock.begin()
    answer = module.ours(problem, clock, "cpu")
    found = bench["bench_peers"].learning(problem, answer, clock)
    settings = module.PAPER | {"center": None, "prior": None}
    model = module.GraphGPRegressor(problem.graph, module.Polynomial(3), module.INPUT_KERNEL, **settings)
    model.fit(problem.inputs, problem.signals)
    assert found["log_likelihood"] == pytest.approx(model.log_marginal_likelihood_, rel=1e-8)
    mean, variance = answer.predict()
    assert mean.shape == variance.shape == problem.new_signals.shape
    scored = bench["bench_peers"].scored(problem, mean, variance, found["noise_variance"])
    assert scored["rmse"] == pytest.approx(np.sqrt(np.mean((problem.new_signals - mean) ** 2)))


def test_the_dense_program_has_the_likelihood_and_slopes_of_the_eigenbasis(bench):
    from reproduction import released

    problem = bench["_peers"].Problem.drawn(9, 6, False)
    values, vectors = problem.spectrum
    given = problem.inputs, problem.signals, vectors, np.vander(values, 4, increasing=True)
    beta, length, noise = np.array([1.0, -0.5, 0.2, 0.1]), 0.7, -1.0
    expected = released._Data(*given).log_likelihood(beta, length, noise)
    found = bench["_peers"]._dense_data(released._Data)(*given).log_likelihood(beta, length, noise)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)


def test_a_rival_counts_from_when_it_is_near_its_best(bench):
    found = {"path": [[1.0, 2.0, -50.0], [3.0, 6.0, -10.5], [9.0, 18.0, -10.0]]}
    assert bench["bench_peers"].reached(found) == (3.0, 6.0)


def test_a_rival_is_clocked_at_our_likelihood_too(bench):
    found = {"path": [[1.0, 2.0, -50.0], [3.0, 6.0, -10.5], [9.0, 18.0, -10.0]]}
    reached = bench["bench_peers"].reached_ours
    assert reached(found, {"log_likelihood": -49.5}) == 1.0
    assert reached(found, {"log_likelihood": -9.2}) == 9.0
    assert reached(found, {"log_likelihood": -8.9}) is None
    words = [bench["_peers_page"].until_ours("Other", found, {"log_likelihood": one}) for one in (-9.2, -8.9)]
    assert words == ["9", "not reached"]


def run_of(seconds, likelihood, memory=0.4):
    return {
        "seconds": {"processor": seconds, "wall": seconds},
        "gigabytes": {"before": 0.3, "learning": memory},
        "says": "",
        "is_stopped": False,
        "path": [[seconds, seconds, likelihood]],
        "log_likelihood": likelihood,
        "filter_error": 0.1,
        "prediction": {"processor": seconds / 100, "wall": 0.0, "log_density": -1.0},
    }


def test_bars_are_met_by_speed_at_no_lower_likelihood(bench):
    problem = "45 x 30, complete"
    for likelihood, is_met in ((-5.0, True), (-6.0, False)):
        runs = {problem: {"spectralgp": run_of(1.0, likelihood), "GPyTorch, Adam": run_of(20.0, -5.0)}}
        bars = bench["bench_peers"].bars_met(runs)
        assert bars[f"{problem}: times faster than GPyTorch, Adam"] == {"found": 20.0, "bar": 10.0, "met": is_met}


def test_the_page_says_where_another_one_is_better(bench):
    better = run_of(0.5, -4.0, 0.31) | {"filter_error": 0.05}
    runs = {"spectralgp": run_of(1.0, -5.0), "Other": better}
    (words,) = bench["_peers_page"].better(runs)
    assert words == (
        "Other learns faster, has a higher likelihood, has a smaller filter error, predicts faster, takes less memory"
    )


def test_the_page_of_performance_is_as_its_results_say(bench):
    assert (ROOT / "docs" / "performance.md").read_text(encoding="utf-8") == bench["write_performance"].page()
