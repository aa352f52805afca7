"""Paired differences, verdicts and sentences of benchmarks/bench_real.py, by hand; its rivals, by their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from runs import runs_of
from settings import PAPER
from sklearn.covariance import LedoitWolf
from sklearn.model_selection import KFold

from oracle import relative_error
from spectralgp import Graph, GraphGPRegressor, Identity, Stacking
from spectralgp.scores import coverage_scorer, crps_scorer, log_density_scorer
from tolerances import EXACT, KEPT

MODULES = ("_paired", "_real_data", "_rivals", "_real_page", "_splits", "bench_real")


def test_the_advantage_is_the_mean_paired_difference_with_its_standard_error(bench):
    runs = {"default": runs_of([1.0, 2.0, 4.0], [3.0, 5.0, 7.0]), "knn": runs_of([0.0, 3.0, 1.0], [2.0, 5.0, 9.0])}
    density = bench["_paired"].advantage(runs, "knn", "log_density")  # differences 1, -1, 3
    assert (density.mean, density.n_ahead, density.n_splits) == (1.0, 2, 3)
    assert density.standard_error == pytest.approx(2 / np.sqrt(3), rel=EXACT)
    error = bench["_paired"].advantage(runs, "knn", "rmse")  # smaller is better: -1, 0, 2
    assert (error.mean, error.n_ahead) == (pytest.approx(1 / 3, rel=EXACT), 1)
    assert error.standard_error == pytest.approx(np.sqrt(7 / 3 / 3), rel=EXACT)


def test_a_split_that_failed_is_no_pair(bench):
    runs = {"default": runs_of([1.0, None, 4.0]), "knn": runs_of([0.0, 3.0, 1.0])}
    density = bench["_paired"].advantage(runs, "knn", "log_density")
    assert (density.mean, density.standard_error, density.n_splits) == (2.0, pytest.approx(1.0, rel=EXACT), 2)
    assert bench["_paired"].average(runs, "default", "log_density") == 2.5


CASES = {  # the default, then what it does not reach; both rivals have densities of 0, RMSE of 1 and 2
    "behind by half a standard error": (runs_of([-3.0, 1.0]), set()),  # -1 +- 2
    "behind by three standard errors": (runs_of([-2.0, -1.0]), {"log density, ridge-lw", "log density, standard"}),
    "RMSE 0.9% above": (runs_of([1.0, 1.0], [1.0, 1.018]), set()),
    "RMSE 1.1% above": (runs_of([1.0, 1.0], [1.0, 1.022]), {"rmse"}),
    "covers 86.5%": (runs_of([1.0, 1.0], coverage=[0.84, 0.89]), set()),
    "covers 85.5%": (runs_of([1.0, 1.0], coverage=[0.84, 0.87]), {"coverage"}),
    "covers 94.5%": (runs_of([1.0, 1.0], coverage=[0.94, 0.95]), {"coverage"}),
    "failed once": (
        runs_of([1.0, 1.0], failed=["split 7"]),
        {"log density, ridge-lw", "log density, standard", "rmse", "coverage"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_verdicts_by_hand(bench, case):
    ours, short = CASES[case]
    runs = {"default": ours, "ridge-lw": runs_of([0.0, 0.0]), "standard": runs_of([0.0, 0.0], [2.0, 2.0])}
    met = bench["_paired"].bars_met(runs)
    assert {bar for bar, reached in met.items() if not reached} == short


def test_the_page_says_first_where_the_default_loses(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(bench["_real_page"], "load", lambda name: None)
    facts = {"set": "CO2", "words": "air", "n_nodes": 12, "n_edges": 12, "n_signals": 40, "n_features": 12}
    facts |= {"n_train": 20, "n_test": 20, "n_splits": 2, "units": "ppm", "graph": "ring", "source": "air"}
    runs = {"default": runs_of([-2.0, -1.0], [1.0, 1.0], [0.97, 0.99]), "ridge-lw": runs_of([0.0, 0.0], [0.5, 0.7])}
    runs["standard"] = runs_of([-9.0, -9.0], [1.0, 1.0])
    result = {"problems": {"CO2 20": {"facts": facts | {"licence": "none"}, "runs": runs}}}
    result |= {"absent": {"traffic": "no file"}, "machine": {"python": "3", "cpus": 2}}
    result |= {"settings": {"n_workers": 2, "sklearn": "1"}}
    (tmp_path / "real-data.md").write_text("old\n\n<!-- reproduction: begin -->\n\nkept\n", encoding="utf-8")
    lines = bench["_real_page"].write(result, tmp_path).read_text(encoding="utf-8").splitlines()
    assert lines[-4:] == ["", "<!-- reproduction: begin -->", "", "kept"]  # what another program wrote
    assert "old" not in lines
    told = "in log density, nats per signal, worse than: ridge + Ledoit-Wolf by 1.50 ± 0.50 (0 of 2)."
    assert f"* **CO2 20**: {told}" in lines
    assert "* **CO2 20**: in RMSE, ppm, worse than: ridge + Ledoit-Wolf by 0.40 ± 0.10 (0 of 2)." in lines
    assert "* **CO2 20**: the default's 90% intervals are too wide: they cover 98.0%." in lines
    assert "* *traffic*: not run: no file." in lines
    verdicts = (
        "| CO2 20 | -1.50 ± 0.50, **not met** | +7.50 ± 0.50, met | 1.667, **not met** | 1.667 | 98.0%, **not met** |"
    )
    assert verdicts in lines
    assert any(line.endswith("1 of 4 bars are met:") for line in lines)
    worse = "; ".join(f"worse than some rival in {words} on 1 (CO2 20)" for words in ("log density", "RMSE", "CRPS"))
    said = f"Of 1 settings: {worse}; coverage outside 86% to 94% on 1 (CO2 20)."
    assert lines.index(said) < lines.index("## What holds, and what does not")
    told = "ridge + Ledoit-Wolf by 0.40 ± 0.10 (0 of 2; it covers 90.0%). The default covers 98.0%."
    assert f"* **CO2 20**: in CRPS, ppm, worse than: {told}" in lines


def run_in_time(rmse, density, coverage=0.9):
    scores = {"rmse": rmse, "crps": rmse / 2, "log_density": density, "log_density_error": 1.5, "coverage": coverage}
    return scores | {"seconds": 2.0, "processor_seconds": 1.0, "warned": False}


def test_forecasts_in_time_order_have_a_section_with_rivals_wins_first(bench):
    runs = {"default": run_in_time(2.1, -60.0, 0.95), "no change": run_in_time(2.0, -70.0)}
    runs["ridge"] = run_in_time(4.0, -59.0)
    runs["node means"] = {"failed": "node means: ValueError: why"}
    facts = {"units": "°C", "n_train": 47, "n_judged": 47, "bar": 1.03, "ratio": 1.05}
    result = {"problems": {"weather": {"facts": facts, "runs": runs}}, "absent": {"air": "no file"}}
    lines = "\n".join(bench["_real_page"].time_order(result)).splitlines()
    won = [line for line in lines if line.startswith("* **weather**")]
    assert won == [
        "* **weather**: in log density, nats per signal, better than the default (-60.00): ridge (-59.00).",
        "* **weather**: in RMSE, °C, better than the default (2.1): no change (2).",
        "* **weather**: in CRPS, °C, better than the default (1.05): no change (1).",
        "* **weather**: the default's 90% intervals are too wide: they cover 95.0%.",
    ]
    row = "| weather, °C | default | 2.10 | 1.050 | 1.05 | 95.0% | -60.00 ± 1.50 | 1.00 s |"
    assert lines.index(won[-1]) < lines.index(row)
    assert "* weather: RMSE over no change 1.050, at most 1.03: **not met**." in lines
    assert "* *air*: not run: no file." in lines
    assert any("node means | failed" in line for line in lines)
    assert bench["_real_page"].time_order(None) == []
    runs |= {"default": run_in_time(2.1, -60.0), "no change": run_in_time(3.0, -70.0)}
    runs["ridge"] = run_in_time(4.0, -80.0)
    assert "Nothing is better here, and intervals hold." in "\n".join(bench["_real_page"].time_order(result))


def test_results_of_other_rivals_are_kept_for_the_same_data_and_splits_only(bench):
    add, found, order = bench["_splits"].add, {}, ["default", "knn"]
    add(found, "CO2 20", {"n_splits": 2}, {"knn": "old", "default": "old"}, order)
    both = add(found, "CO2 20", {"n_splits": 2}, {"default": "new"}, order)
    assert list(both.items()) == [("default", "new"), ("knn", "old")]
    assert add(found, "CO2 20", {"n_splits": 3}, {"default": "new"}, order) == {"default": "new"}


def test_sizes_and_splits_follow_the_rule(bench):
    sizes = {n: bench["_real_data"].training_sizes(n) for n in (20, 94, 192, 999, 1000)}
    assert sizes == {20: [15], 94: [47], 192: [50], 999: [50], 1000: [20, 50]}
    train, test = bench["_real_data"].split(94, 47, 3)
    assert sorted([*train, *test]) == list(range(94))
    assert [len(part) for part in bench["_real_data"].split(2798, 20, 3)] == [20, 60]


def test_sets_that_are_not_here_are_named(bench, monkeypatch):
    monkeypatch.setattr(bench["_real_data"], "data_folder", lambda: None)
    bench["_real_data"].real_set.cache_clear()
    found, absent = bench["_real_data"].problems(["weather", "incomes"])
    assert [problem.name for problem in found] == ["incomes 40"]
    assert absent == {"weather": "the paper's data are not here: set SPECTRALGP_DATA to their folder"}


@pytest.fixture
def tiny(bench):
    rng = np.random.default_rng(0)
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    inputs = rng.standard_normal((24, 2))
    signals = inputs @ rng.standard_normal((2, 4)) + 0.3 * rng.standard_normal((24, 4))
    return bench["_real_data"].RealSet("", graph, inputs, signals, "", "", "", "")


def closed_form_ridge(inputs, signals, test_inputs):
    """Ridge regression with a penalty of one on standardised inputs."""
    scaled, new = ((one - inputs.mean(axis=0)) / inputs.std(axis=0) for one in (inputs, test_inputs))
    slopes = np.linalg.solve(scaled.T @ scaled + np.eye(scaled.shape[1]), scaled.T @ (signals - signals.mean(axis=0)))
    return signals.mean(axis=0) + new @ slopes


@pytest.mark.parametrize("rival", ["ridge", "ridge-lw"])
def test_ridge_and_its_residual_covariance_by_their_formulas(bench, tiny, monkeypatch, rival):
    monkeypatch.setattr("spectralgp.learning.baselines.PENALTIES", np.array([1.0]))
    found = bench["bench_real"].score(tiny, 16, 1, rival)
    train, test = bench["_real_data"].split(24, 16, 1)
    X, Y, observed = tiny.inputs[train], tiny.signals[train], tiny.signals[test]
    residuals = np.empty_like(Y)
    for kept, out in KFold(5, shuffle=True, random_state=0).split(X):
        residuals[out] = Y[out] - closed_form_ridge(X[kept], Y[kept], X[out])
    if rival == "ridge":
        covariance = np.diag(np.mean(residuals**2, axis=0))
    else:
        covariance = LedoitWolf(assume_centered=True).fit(residuals).covariance_
    errors = observed - closed_form_ridge(X, Y, tiny.inputs[test])
    distances = np.sum(errors @ np.linalg.inv(covariance) * errors, axis=1)
    density = -0.5 * np.mean(distances + np.linalg.slogdet(2 * np.pi * covariance)[1])
    inside = np.abs(errors) <= 1.6448536 * np.sqrt(np.diag(covariance))
    expected = np.array([density, np.sqrt(np.mean(errors**2)), inside.mean()])
    assert relative_error([found[name] for name in ("log_density", "rmse", "coverage")], expected) < KEPT


def test_the_models_of_the_library_are_scored_as_its_scorers_do(bench, tiny):
    found = bench["bench_real"].score(tiny, 16, 1, "standard")
    train, test = bench["_real_data"].split(24, 16, 1)
    model = GraphGPRegressor(tiny.graph, Stacking(Identity(), n_draws=16), **PAPER | {"center": "node"})
    model.fit(tiny.inputs[train], tiny.signals[train])
    X, Y = tiny.inputs[test], tiny.signals[test]
    expected = [log_density_scorer(model, X, Y), -crps_scorer(model, X, Y), coverage_scorer(model, X, Y)]
    assert relative_error([found[name] for name in ("log_density", "crps", "coverage")], np.array(expected)) < KEPT


def test_a_rival_that_fails_is_noted(bench, tiny):
    broken = tiny.signals.copy()
    broken[:, 0] = np.nan
    data = bench["_real_data"].RealSet("", tiny.graph, tiny.inputs, broken, "", "", "", "")
    found = bench["bench_real"].score(data, 16, 5, "sklearn")
    assert found["failed"].startswith("split 5: ValueError: Input y contains NaN")
    lists = bench["_splits"].gathered([found, {"rmse": 2.0, "warned": True}])
    assert (lists["rmse"], lists["warned"], len(lists["failed"])) == ([None, 2.0], [False, True], 1)
