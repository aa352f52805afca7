"""Masks, rivals, verdicts and page of benchmarks/bench_missing.py, by hand or by the formulas of the methods."""

from __future__ import annotations

import numpy as np
import pytest
from runs import runs_of
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from oracle import relative_error
from spectralgp import Graph
from spectralgp.learning import baselines
from tolerances import EXACT, FORMULA, OPTIMUM, ROUND_TRIP

MODULES = ("_holes", "_imputers", "_missing_page", "bench_missing")
NAN = np.nan
RIDGE = 1e-3  # what the prior of a Bayesian ridge regression shrinks slopes of one by, or less
DAYS = np.array([[0.0], [1.0], [3.0]])


@pytest.fixture
def path():
    """Three nodes in a row; the edges weigh 1 and 3."""
    return Graph.from_edges({"source": [0, 1], "target": [1, 2], "weight": [1.0, 3.0]})


@pytest.fixture
def field():
    """Twelve places, fifteen days of a smooth field, and some holes."""
    rng = np.random.default_rng(3)
    places = rng.uniform([10, 55], [20, 65], (12, 2))
    graph = Graph.from_points(places, 4)
    values = 5 + rng.standard_normal((15, 1)) + rng.standard_normal((15, 2)) @ places.T / 10
    return graph, np.arange(15.0)[:, None], np.where(rng.random((15, 12)) < 0.2, NAN, values)


# ----- what is removed -----


def lengths_of_runs(column):
    edges = np.flatnonzero(np.diff(np.concatenate([[0], column.astype(int), [0]])))
    return edges[1::2] - edges[::2]


def test_removals_are_what_they_say(bench):
    shape = (95, 45)
    removed = {name: one.removed(shape, np.random.default_rng(7)) for name, one in bench["_holes"].REMOVALS.items()}
    counts = [removed[f"{share}% at random"].sum() for share in (10, 30, 50)]
    assert counts == [428, 1282, 2138]  # of 4,275, rounded to the even
    assert {length for column in removed["outages"].T for length in lengths_of_runs(column)} == {10}
    assert removed["outages"].sum() == 860  # 855 are asked for
    assert sorted(removed["unseen nodes"].sum(axis=0))[-6:] == [0, 95, 95, 95, 95, 95]


def test_outages_that_do_not_fit_are_refused(bench):
    with pytest.raises(ValueError, match=r"share must leave room between outages; got 0\.9"):
        bench["_holes"].outages((20, 3), 0.9, np.random.default_rng(0))


# ----- deviations from hidden entries -----


@pytest.mark.parametrize("removal", ["30% at random", "outages", "unseen nodes"])
def test_observed_entries_are_hidden_once_and_in_the_manner_of_the_holes(bench, removal):
    missing = bench["_holes"].REMOVALS[removal].removed((40, 20), np.random.default_rng(1))
    folds = list(baselines.hidden(np.where(missing, NAN, 1.0), np.random.default_rng(2)))
    times = np.sum(folds, axis=0)
    assert times.max() == 1
    assert not times[missing].any()
    if removal == "unseen nodes":  # whole nodes too, or nothing
        assert all(set(fold.sum(axis=0)) == {0, 40} for fold in folds)
    if removal == "outages":  # whole outages where no other one is in the way, and days rolled over the end
        assert max(length for fold in folds for column in fold.T for length in lengths_of_runs(column)) == 10
    assert max(fold.sum() for fold in folds) < 0.4 * missing.sum()


# ----- methods that give values -----


def test_station_means_and_interpolation_by_hand(bench, path):
    holed = np.array([[1.0, NAN, NAN], [NAN, 5.0, NAN], [7.0, 9.0, NAN]])
    imputers = bench["_imputers"]
    means = baselines.for_seen_nodes(imputers.station_means)(path, DAYS, holed)
    assert means.tolist() == [[1.0, 7.0, 1.0], [4.0, 5.0, 5.0], [7.0, 9.0, 8.0]]  # the last node was never seen
    lines = baselines.for_seen_nodes(imputers.interpolation)(path, DAYS, holed)
    assert lines.tolist() == [[1.0, 5.0, 1.0], [3.0, 5.0, 5.0], [7.0, 9.0, 8.0]]


def test_the_candidate_with_the_least_hidden_error_is_taken(bench):
    rng, imputers = np.random.default_rng(0), bench["_imputers"]
    holed = np.where(rng.random((30, 6)) < 0.2, NAN, 4 + 0.5 * rng.standard_normal((30, 6)))

    def constant(value):
        return lambda graph, inputs, signals: np.where(np.isnan(signals), value, signals)

    completed, std = imputers.best_of([constant(9.0), constant(4.0)])(None, None, holed)
    assert set(completed[np.isnan(holed)]) == {4.0}
    assert np.all((std > 0.3) & (std < 0.7))


def test_imputers_of_scikit_learn_find_a_twin_and_a_line(bench):
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 40))
    truth = np.column_stack([first, second, first + 7, 2 * second - first])
    holed = truth.copy()
    holed[:3, 2], holed[5:8, 3] = NAN, NAN
    inputs = np.arange(40.0)[:, None]
    twin = bench["_imputers"].knn_of_stations(1, None, inputs, holed[:, :3])
    shift = np.nanmean(holed[:, 2]) - first.mean() - np.nanmean(holed[:, 2] - first)  # means are over different days
    assert relative_error(twin[:3, 2], truth[:3, 2] + shift) < EXACT
    line = baselines.iterative(None, inputs, holed)
    assert relative_error(line, truth) < RIDGE
    completed, std = bench["_imputers"].iterative_draws(None, inputs, holed)
    assert np.array_equal(completed[~np.isnan(holed)], truth[~np.isnan(holed)])
    gone = np.isnan(holed)
    assert relative_error(completed[gone], truth[gone]) < RIDGE
    assert std[gone].max() < RIDGE


# ----- kriging and the GP in space and time -----


def test_pooled_hyperparameters_are_those_of_the_joint_likelihood(bench):
    rng = np.random.default_rng(0)
    places, values = rng.uniform(0, 5, (40, 2)), rng.standard_normal(40)
    values += np.sin(places).sum(axis=1)
    kernel = ConstantKernel() * RBF(1.0) + WhiteKernel(0.5)
    sample = (places, values)
    alone = GaussianProcessRegressor(kernel).fit(*sample)
    twice = bench["_imputers"].pooled_process(kernel, [sample, sample])
    best = alone.log_marginal_likelihood_value_
    assert alone.log_marginal_likelihood(twice.theta) == pytest.approx(best, abs=OPTIMUM * len(values))


def conditional(kernel, observed, values, new):
    """Mean and deviation of a GP by its formula, noise included."""
    covariance, cross = kernel(observed), kernel(new, observed)
    solved = np.linalg.solve(covariance, cross.T)
    return solved.T @ values, np.sqrt(kernel.diag(new) - np.sum(cross * solved.T, axis=1))


def test_kriging_of_a_day_by_its_formula(bench, field, monkeypatch):
    graph, inputs, holed = field
    learnt = ConstantKernel(1e3) + ConstantKernel(0.8) * Matern(3.0, nu=1.5) + WhiteKernel(0.1)
    monkeypatch.setattr(bench["_imputers"], "pooled_process", lambda kernel, samples: learnt)
    completed, std = bench["_imputers"].kriging(graph, inputs, holed)
    means = np.nanmean(holed, axis=0)
    unit = np.nanstd(holed - means)
    longitude, latitude = graph.coordinates.T
    places = np.column_stack([longitude * np.cos(np.pi * latitude.mean() / 180), latitude])
    day = int(np.argmax(np.isnan(holed).sum(axis=1)))
    gone = np.isnan(holed[day])
    mean, deviation = conditional(learnt, places[~gone], ((holed[day] - means) / unit)[~gone], places[gone])
    assert relative_error(completed[day, gone], means[gone] + unit * mean) < FORMULA
    assert relative_error(std[day, gone], unit * deviation) < FORMULA
    assert np.array_equal(completed[~np.isnan(holed)], holed[~np.isnan(holed)])
    assert not std[~np.isnan(holed)].any()


def test_the_process_in_space_and_time_by_its_formula(bench, field, monkeypatch):
    graph, inputs, holed = field
    holed = holed.copy()
    holed[:, 4] = NAN  # never seen
    learnt = ConstantKernel(0.8) * Matern([3.0, 3.0, 2.0], nu=1.5) + WhiteKernel(0.1)
    monkeypatch.setattr(bench["_imputers"], "pooled_process", lambda kernel, samples: learnt)
    completed, std = bench["_imputers"].space_time(graph, inputs, holed)
    above, means, variances = bench["_imputers"].centred_by_station(graph, holed)
    seen = np.arange(12) != 4
    assert relative_error(means[seen], np.nanmean(holed[:, seen], axis=0)) < ROUND_TRIP
    assert (variances > 0).tolist() == (~seen).tolist()
    unit = np.nanstd(above)
    days, nodes = np.indices(holed.shape)
    features = np.dstack([bench["_imputers"].places(graph)[nodes], days.astype(float)])
    gone = np.isnan(holed)
    mean, deviation = conditional(learnt, features[~gone], above[~gone] / unit, features[gone])
    assert relative_error(completed[gone], means[nodes[gone]] + unit * mean) < FORMULA
    assert relative_error(std[gone] ** 2, (unit * deviation) ** 2 + variances[nodes[gone]]) < FORMULA


@pytest.mark.parametrize(
    "name", ["means", "interpolation", "graph-knn", "knn", "iterative", "iterative-draws", "kriging"]
)
@pytest.mark.parametrize("unseen", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_rival_keeps_what_is_observed_and_says_how_sure_it_is(bench, field, name, unseen):
    graph, inputs, holed = field
    if unseen:
        holed = np.where(np.arange(12) == 4, NAN, np.where(np.isnan(holed), 5.0, holed))
    completed, std = bench["_imputers"].IMPUTERS[name].fill(graph, inputs, holed)
    gone = np.isnan(holed)
    assert np.array_equal(completed[~gone], holed[~gone])
    assert np.isfinite(completed).all()
    assert (std[gone] > 0).all()


# ----- scores, verdicts and the page -----


def test_only_what_was_removed_is_scored(bench):
    truth = np.array([[0.0, 1.0], [2.0, 3.0]])
    mean, std = np.array([[50.0, 2.0], [50.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 2.0]])
    found = bench["bench_missing"].scores(truth, (mean, std), np.array([[False, True], [False, True]]))
    assert found["rmse"] == pytest.approx(np.sqrt((1 + 9) / 2), rel=EXACT)
    assert found["log_density"] == pytest.approx(norm.logpdf([1.0, 3.0], [2.0, 0.0], [1.0, 2.0]).mean(), rel=EXACT)
    assert found["coverage"] == 1.0  # off by 1 and by 1.5 deviations


def result_of(bench, ours, rival):
    runs = {"default": ours} | {name: runs_of([-3.0, -3.0], [4.0, 4.0]) for name in bench["_missing_page"].BARRED}
    runs["knn"] = rival
    facts = {"set": "weather", "removal": "outages", "words": "air", "n_nodes": 4, "n_signals": 9, "n_splits": 2}
    facts |= {"units": "°C", "density_units": "nats per value", "graph": "path", "source": "air", "licence": "none"}
    facts |= {"share": 0.2, "n_train": 4}
    today = {"default": runs_of([-1.0, -1.0], [1.0, 2.0]), "alone": runs_of([-2.0, -2.0], [2.0, 2.5])}
    return {
        "problems": {"weather, outages": {"facts": facts, "runs": runs}},
        "nowcasting": {"weather": {"facts": facts, "runs": today}},
        "absent": {"incomes": "no file"},
        "machine": {"python": "3", "cpus": 2},
        "settings": {"n_workers": 2, "sklearn": "1"},
    }


def test_the_page_says_where_a_rival_is_better_and_keeps_what_is_written_by_hand(bench, tmp_path, monkeypatch):
    page = bench["_missing_page"]
    monkeypatch.setattr(page, "load", lambda name: None)
    result = result_of(bench, runs_of([-1.5, -1.0], [1.0, 1.0], [0.8, 0.85]), runs_of([-1.0, -1.1], [2.0, 2.5]))
    by_hand = "# Missing data\n\nBy hand.\n\n"
    (tmp_path / "missing-data.md").write_text(by_hand + page.MARK + "\n\nold figures\n")
    text = page.write(result, tmp_path).read_text(encoding="utf-8")
    assert text.startswith(by_hand + page.MARK)
    assert "old figures" not in text
    lines = text.splitlines()
    assert "worse than" not in text  # than k-NN by less than a standard error: -0.2 ± 0.3
    assert "* **weather, outages**: the default's 90% intervals are too narrow: they cover 82.5%." in lines
    assert "* *incomes*: not run: no file." in lines
    assert any("13 of 15 bars are met" in line for line in lines)  # log score of k-NN and coverage are not
    assert any("seeds: 0.650. The bar is 0.75: met." in line for line in lines)  # 1 / 2 and 2 / 2.5
    result["problems"]["weather, outages"]["runs"]["knn"] = runs_of([-0.5, -0.1], [2.0, 2.5])
    told = "in log density, nats per value, worse than: k-NN imputer by 0.950 ± 0.050 (0 of 2)."
    beaten = f"* **weather, outages**: {told}"
    lines = page.write(result, tmp_path).read_text(encoding="utf-8").splitlines()
    assert beaten in lines
    assert lines.index(beaten) < lines.index("## What holds, and what does not") < lines.index("## Data and methods")


def test_a_page_that_is_not_there_gets_headings_for_what_is_written_by_hand(bench, tmp_path, monkeypatch):
    page = bench["_missing_page"]
    monkeypatch.setattr(page, "load", lambda name: None)
    result = result_of(bench, runs_of([-1.5, -1.0], [1.0, 1.0]), runs_of([-2.0, -2.1], [2.0, 2.5]))
    text = page.write(result, tmp_path).read_text(encoding="utf-8")
    assert text.startswith("# Missing data\n\n## Signals with holes\n")
    assert "15 of 15 bars are met" in text
    assert "Nowhere by more than one standard error." in text


def test_a_default_that_failed_meets_no_bar(bench):
    result = result_of(
        bench, runs_of([None, -1.0], [None, 1.0], failed=["seed 0: why"]), runs_of([-2.0, -2.0], [2.0, 2.0])
    )
    assert not any(bench["_missing_page"].bars_met(result["problems"]["weather, outages"]["runs"]).values())
