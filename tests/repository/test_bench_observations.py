"""The page of counts and classes is the one that its results make, says where a rival wins, and scores are right."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import poisson

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from _classes import calibration_error, harmonic, labelled, scores, split, spreading  # noqa: E402
from _counts import sids, transformed  # noqa: E402
from _observations_page import page  # noqa: E402

from spectralgp import Polynomial  # noqa: E402

RESULTS = json.loads((ROOT / "benchmarks" / "results" / "observations.json").read_text())


def test_the_page_is_current():
    assert (ROOT / "docs" / "observations.md").read_text(encoding="utf-8") == page(RESULTS)


def test_a_rival_that_wins_is_named_and_bars_are_missed():
    changed = copy.deepcopy(RESULTS)
    rivals = changed["classes"]["breast cancer, 2"]["rivals"]
    ours = rivals["classifier"]
    rivals["label spreading, 0.9"]["error"] = [one - 0.01 for one in ours["error"]]
    rivals["label spreading, 0.9"]["log_probability"] = [one + 0.06 for one in ours["log_probability"]]
    ours["calibration"] = [0.2 for _ in ours["calibration"]]
    counts = changed["counts"]["sids"]["rivals"]
    best = max(np.mean(one["log_density"]) for one in counts.values())
    counts["Poisson regression"]["log_density"] = [best + 1 for _ in counts["Poisson"]["log_density"]]
    text = page(changed)
    assert "- breast cancer, 2 per class: label spreading, 0.9 has the better error, by 0.0100" in text
    assert "log probability -0.060 to the best of these (**missed**); calibration error 0.200 (**missed**)" in text
    assert "- sids: Poisson regression is " in text


def test_scores_of_probabilities_that_are_known():
    probabilities = np.array([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7], [0.6, 0.4]])
    truth = np.array([0, 1, 1, 1])
    found = scores(probabilities, truth)
    assert found["error"] == 0.5
    np.testing.assert_allclose(found["log_probability"], np.log([0.9, 0.1, 0.7, 0.4]).mean())
    # bins of 0.9 (half right), 0.7 (right) and 0.6 (wrong)
    np.testing.assert_allclose(calibration_error(probabilities, truth), (2 * 0.4 + 0.3 + 0.6) / 4)


def test_rivals_on_a_graph_agree_with_their_definitions():
    data = labelled("karate")
    known = split(data.classes, 2, 0)
    assert np.bincount(data.classes[known]).tolist() == [2, 2]
    weights, others = data.graph.weights.toarray(), np.setdiff1d(np.arange(34), known)
    found = harmonic(data, known)[:, 1]
    means = weights @ found / weights.sum(axis=1)
    np.testing.assert_allclose(found[others], means[others], atol=1e-6)
    roots = np.sqrt(weights.sum(axis=1))
    start = np.zeros((34, 2))
    start[known] = np.eye(2)[data.classes[known]]
    closed = np.linalg.solve(np.eye(34) - 0.2 * weights / np.outer(roots, roots), start)
    expected = closed / closed.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(spreading(data, known, 0.2), expected, atol=5e-3)


@pytest.mark.slow
def test_probabilities_of_counts_by_transformed_rates_add_up():
    data = sids()
    known = np.ones(data.counts.shape, dtype=bool)
    known[0, 0] = False
    total = 0.0
    for count in range(40):
        counts = data.counts.copy()
        counts[0, 0] = count
        changed = type(data)(*(counts if name == "counts" else one for name, one in vars(data).items()))
        total += float(np.exp(transformed(changed, known, True, Polynomial(2)).log_density[0, 0]))
    np.testing.assert_allclose(total, 1.0, atol=1e-6)
    assert poisson.cdf(39, data.counts[0, 0]) > 0.999  # no more than that is to be expected there
