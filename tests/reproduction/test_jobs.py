"""Single jobs against the reference numbers of DESIGN.md, section 10, and against slow formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from reproduction import problems
from reproduction.experiments import (
    BASELINES,
    EXPERIMENTS,
    LOW_PASS,
    POLYNOMIALS,
    FilterStudy,
    Model,
    PredictionStudy,
)
from reproduction.jobs import PredictionJob, _score, jobs_of
from reproduction.problems import Problem, problem
from reproduction.published import OPTIMA
from reproduction.tables import mean_score
from spectralgp import Graph, Identity

# continuation, plain maximum likelihood, on the released split: log marginal likelihoods and test scores
CONTINUATION = {
    ("weather", 15): ((-324.00, -209.01, -179.40), (-24.82, -9.10, -5.28)),
    ("weather", 30): ((-552.51, -273.44, -193.68), (-19.75, -5.77, -3.15)),
    ("traffic", 10): ((-746.50, -739.41, -730.44), (-321.39, -320.99, -322.03)),
    ("traffic", 20): ((-1475.91, -1467.14, -1464.35), (-320.80, -320.69, -320.68)),
}
ROUNDED = 0.011  # the references have two decimals


def run(data: str, size: int, models: tuple[Model, ...], folder) -> dict:
    study = PredictionStudy("", "", "", data, (size,), models)
    return PredictionJob(study, size, 1).run(folder)


@pytest.mark.parametrize(("data", "size"), CONTINUATION)
def test_polynomials_reach_the_reference_results(data, size, data_folder):
    models = run(data, size, POLYNOMIALS[:3], data_folder)["models"]
    likelihoods, tests = CONTINUATION[data, size]
    for degree, likelihood, test in zip((1, 2, 3), likelihoods, tests, strict=True):
        fit = models[f"degree-{degree}"]
        assert fit["log_likelihood"] == pytest.approx(likelihood, abs=ROUNDED)
        assert mean_score(fit["scores"]["released"]).mean == pytest.approx(test, abs=ROUNDED)
        assert fit["smallest_response"] >= -1e-8


def test_in_time_order_weather_comes_close_to_the_paper_s_table(data_folder):
    for size, expected in ((15, -1.21), (30, 0.17)):
        fit = run("weather", size, POLYNOMIALS[2:3], data_folder)["models"]["degree-3"]
        assert mean_score(fit["scores"]["time"]).mean == pytest.approx(expected, abs=ROUNDED)


@pytest.mark.parametrize(("data", "size"), OPTIMA)
def test_baselines_are_at_the_reference_optima_or_above(data, size, data_folder):
    models = run(data, size, BASELINES, data_folder)["models"]
    for row, reference in OPTIMA[data, size].items():
        found = mean_score(models[row]["scores"]["released"]).mean
        # the reference's regularised Laplacian is not at its optimum; ours is, by tests/experiments/test_protocols.py
        assert found >= reference.mean - 2 * ROUNDED
        if row != "regularised":
            assert found == pytest.approx(reference.mean, abs=2 * ROUNDED)


def test_scores_are_joint_densities_of_the_test_sets_over_their_size():
    rng = np.random.default_rng(0)
    graph = Graph.from_edges([(0, 1), (1, 2)])
    inputs, signals = rng.standard_normal((8, 2)), rng.standard_normal((8, 3))
    tests = {"released": (rng.standard_normal((4, 2)), rng.standard_normal((4, 3)))}
    task = Problem(graph, graph, np.zeros(3, dtype=bool), inputs, signals, tests, set_size=2, shift=5.0)
    model = Model("standard", "standard GP", Identity(amplitude=0.8, amplitude_bounds="fixed"))
    found = _score(model, task)
    noise = found["noise_variance"]
    # the length scale is learnt: read it back from the likelihood by a search of the dense model
    scales = np.geomspace(0.05, 50, 300)
    start = np.log(max(scales, key=lambda scale: dense_log_density(inputs, signals, scale, noise)))
    search = minimize_scalar(
        lambda log: -dense_log_density(inputs, signals, np.exp(log), noise), bounds=(start - 0.1, start + 0.1)
    )
    best, largest = np.exp(search.x), -search.fun
    assert found["log_likelihood"] == pytest.approx(largest, abs=1e-6)
    for index, value in enumerate(found["scores"]["released"]):
        x, y = (part[2 * index : 2 * index + 2] for part in tests["released"])
        together = dense_log_density(np.vstack([inputs, x]), np.vstack([signals, y]), best, noise)
        assert value == pytest.approx((together - largest) / 2 + 5.0, abs=1e-3)


def dense_log_density(inputs, signals, length_scale, noise):
    squared = np.sum((inputs[:, None] - inputs[None]) ** 2, axis=2)
    covariance = 0.64 * np.exp(-squared / (2 * length_scale**2)) + noise * np.eye(len(inputs))
    return sum(multivariate_normal(cov=covariance).logpdf(column) for column in signals.T)


def test_splits_are_disjoint_and_follow_the_protocol(data_folder):
    for data, size, n_test in (("weather", 30, 60), ("traffic", 20, 100)):
        task = problem(data, size, 1, data_folder)
        inputs, signals = task.tests["released"]
        assert len(task.inputs) == len(task.signals) == size
        assert len(inputs) == len(signals) == n_test == 10 * task.set_size
        rows = {row.tobytes() for row in task.signals}
        assert rows.isdisjoint(row.tobytes() for row in signals)
    assert problem("traffic", 10, 1, data_folder).shift == pytest.approx(-239.41, abs=0.005)
    # the smaller training set is part of the larger, as in the released code
    small, large = (problem("weather", size, 1, data_folder) for size in (15, 30))
    np.testing.assert_array_equal(small.inputs, large.inputs[:15])


def test_missing_data_are_named(monkeypatch, tmp_path):
    def missing(folder):
        raise FileNotFoundError("put it there")

    monkeypatch.setattr(problems, "load_weather", missing)
    with pytest.raises(problems.MissingData, match="file missing: put it there"):
        problem("weather", 15, 1, tmp_path)


def test_a_filter_job_compares_with_the_truth():
    study = FilterStudy("", "", "", "sensor", (LOW_PASS,), degrees=(2,), seeds=(1, 2), n_signals=200, snrs=(20.0,))
    shown, other = (job.run() for job in jobs_of(study))
    assert "shown" in shown
    assert "shown" not in other
    by_variant = {fit["variant"]: fit for fit in other["learnt"]}
    assert set(by_variant) == {"sqp", "noise known", "Algorithm 1"}
    # with so many signals only the misfit of degree 2 to the truth of degree 4 is left
    assert by_variant["noise known"]["error"] < 0.05
    coefficients = by_variant["noise known"]["coefficients"]
    eigenvalues = np.array(shown["shown"]["eigenvalues"])
    assert eigenvalues[0] == 0
    assert eigenvalues[-1] == pytest.approx(1)
    assert np.polyval(coefficients[::-1], 0.0) > np.polyval(coefficients[::-1], 1.0)


def test_every_experiment_of_the_paper_is_described():
    keys = [study.key for study in EXPERIMENTS]
    assert len(set(keys)) == len(keys) == 9
    for study in EXPERIMENTS:
        assert len(jobs_of(study.quick())) < len(jobs_of(study))
        if isinstance(study, FilterStudy):
            assert len(study.seeds) == 20
