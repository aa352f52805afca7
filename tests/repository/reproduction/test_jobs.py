"""Single jobs against the reference numbers of DESIGN.md, section 10, and against slow formulas."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from reproduction.experiments import BAND_PASS, BASELINES, EXPERIMENTS, LOW_PASS, POLYNOMIALS, FilterStudy, Model
from reproduction.jobs import PredictionJob, _score, jobs_of
from reproduction.problems import Problem, problem
from reproduction.results import mean_score
from spectralgp import Graph, Identity

# continuation, plain maximum likelihood, on the released split: log marginal likelihoods and test scores; the others
# are in tests/experiments/test_protocols.py
ROUNDED = 0.011  # the references have two decimals
# baselines at their optimum on the released split, test scores, by a dense program that shares nothing with this one


# referees' own programs found these; the first at the draw that the paper's Fig. 1 is drawn from
HIGHEST = {("band-pass", 1): -584.66, ("band-pass", 20): -568.04, ("low-pass", 9): -594.12}


@pytest.mark.slow
@pytest.mark.parametrize("truth", [LOW_PASS, BAND_PASS])
def test_none_of_20_seeds_is_below_the_best_of_12_starts(truth):
    study = next(study for study in EXPERIMENTS if study.key == "sensor")
    gaps = []
    for job in jobs_of(replace(study, truths=(truth,), degrees=(truth.degree,), variants=False)):
        chosen = tuple(one for one in job.variants if one.name in ("joint", "12 starts"))
        joint, searched = (fit["log_likelihood"] for fit in replace(job, variants=chosen).run()["learnt"])
        gaps.append(searched - joint)
        if (truth.key, job.seed) in HIGHEST:
            assert joint == pytest.approx(HIGHEST[truth.key, job.seed], abs=0.006)
    assert len(gaps) == 20
    assert max(gaps) < 0.05


def run(data: str, size: int, models: tuple[Model, ...], folder) -> dict:
    return {model.key: PredictionJob(data, size, 1, model, is_shown=False).run(folder) for model in models}


# degree 3: mean and standard error in each order, by a referee's own program
ORDERS = {
    15: {"released": (-5.28, 1.87), "sorted": (-3.70, 3.36), "first 60 sorted": (-1.21, 2.02)},
    30: {"released": (-3.15, 2.06), "sorted": (-2.13, 3.23), "first 60 sorted": (0.17, 1.99)},
}


@pytest.mark.parametrize("size", ORDERS)
def test_the_order_of_the_test_days_and_which_they_are_both_matter(size, data_folder):
    scores = run("weather", size, POLYNOMIALS[2:3], data_folder)["degree-3"]["scores"]
    for order, expected in ORDERS[size].items():
        found = mean_score(scores[order])
        assert (found.mean, found.standard_error) == pytest.approx(expected, abs=ROUNDED)


# the text's graph, degrees 1 to 3 and the standard GP, by a referee's own program, which took no two stations to be
# closer than 100 m
ON_THE_GRAPH_OF_THE_TEXT = {10: (-321.32, -321.58, -321.72, -321.31), 20: (-320.36, -320.81, -320.74, -320.36)}


@pytest.mark.parametrize("size", ON_THE_GRAPH_OF_THE_TEXT)
def test_the_graph_of_the_text_does_not_rescue_the_traffic_table(size, data_folder):
    task = problem("traffic-text", size, 1, data_folder)
    nearest = 1 / task.whole_graph.weights.toarray()[15:, 15:].clip(1e-9)
    floored = Graph(np.where(nearest < 13, 1 / np.maximum(nearest, 0.1), 0.0))
    found, referee = [], ON_THE_GRAPH_OF_THE_TEXT[size]
    for model in (*POLYNOMIALS[:3], BASELINES[0]):
        found.append(mean_score(_score(model, replace(task, graph=floored))["scores"]["released"]).mean)
        ours = mean_score(_score(model, task)["scores"]["released"]).mean
        assert ours == pytest.approx(found[-1], abs=0.3)  # the rule for close stations is not the text's
    assert found == pytest.approx(referee, abs=ROUNDED)


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


def test_a_filter_job_compares_with_the_truth():
    study = FilterStudy("", "", "", "sensor", (LOW_PASS,), degrees=(2,), seeds=(1, 2), n_signals=200, snrs=(20.0,))
    shown, other = (job.run() for job in jobs_of(study))
    assert "shown" in shown
    assert "shown" not in other
    by_variant = {fit["variant"]: fit for fit in other["learnt"]}
    assert set(by_variant) == {"joint", "noise known", "Algorithm 1", "12 starts"}
    # with so many signals only the misfit of degree 2 to the truth of degree 4 is left
    assert by_variant["noise known"]["error"] < 0.05
    coefficients = by_variant["noise known"]["coefficients"]
    eigenvalues = np.array(shown["shown"]["eigenvalues"])
    assert eigenvalues[0] == 0
    assert eigenvalues[-1] == pytest.approx(1)
    assert np.polyval(coefficients[::-1], 0.0) > np.polyval(coefficients[::-1], 1.0)
