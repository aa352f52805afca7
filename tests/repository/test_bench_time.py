"""The page of forecasts is the one that its results make, and says where a rival wins."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from _series_page import page  # noqa: E402
from _series_rivals import simple, var_ridge  # noqa: E402

RESULTS = json.loads((ROOT / "benchmarks" / "results" / "time.json").read_text())


def test_the_page_is_current():
    assert (ROOT / "docs" / "forecasts.md").read_text(encoding="utf-8") == page(RESULTS)


def test_a_rival_that_wins_is_named():
    changed = copy.deepcopy(RESULTS)
    rivals = changed["series"]["wind"]["rivals"]
    rivals["persistence"]["rmse"] = [one / 2 for one in rivals["default"]["rmse"]]
    changed["series"]["wind"]["advantages"]["VAR ridge"][1] = [-1.0, 0.1]
    text = page(changed)
    assert "- wind, 1 step: persistence has the smaller error, by 100.0% of it." in text
    assert "- wind, 6 steps: VAR ridge has the higher joint density, by 1.000." in text
    assert "The largest ratio is 2.000; the bar is 1.03: missed." in text


def test_simple_rivals_forecast_what_they_say():
    values = np.arange(40.0)[:, None] + np.zeros((40, 2))
    origins = np.array([30, 31])
    last = simple(values, 30, origins, [1, 6], None)
    np.testing.assert_array_equal(last.mean[6], values[origins])
    np.testing.assert_array_equal(last.std[6], 6.0)
    season = simple(values, 30, origins, [1, 6], 4)
    np.testing.assert_array_equal(season.mean[6], values[origins + 6 - 8])
    var = var_ridge(values + np.random.default_rng(0).standard_normal((40, 2)), 30, origins, [1], ())
    assert var.mean[1].shape == (2, 2)
    assert np.isfinite(var.density[1]).all()
