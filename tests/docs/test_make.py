"""The picture at the head of the README shows what its caption says."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import numpy as np

from spectralgp import GraphGPRegressor
from spectralgp.datasets import load_us_income
from tolerances import FORMULA

ROOT = Path(__file__).resolve().parents[2]
ROOMS = runpy.run_path(str(ROOT / "tests" / "unit" / "test_architecture.py"))["ROOMS"]


def made():
    """The names of docs/make.py, which imports what stands beside it as a script does."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return runpy.run_path(str(ROOT / "docs" / "make.py"))
    finally:
        sys.path.pop(0)


def test_the_picture_of_the_architecture_has_every_room_in_its_order():
    floors = made()["rooms_picture"].__globals__["FLOORS"]
    assert [room for _, rooms in floors for room in rooms] == ROOMS
    figure = made()["rooms_picture"]()
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert {room for room in ROOMS if room != "__init__"} <= set(texts)
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    listed = {name.rstrip("/") for row in rows for name in re.findall(r"`([\w/]+)`", row.split("|")[1])}
    assert set(ROOMS) <= listed


def test_the_picture_of_the_readme_maps_the_prediction_for_1990():
    figure = made()["filter_and_map"]()
    maps = {ax.get_title(): ax for ax in figure.axes}
    mean, std = (
        maps[title].collections[1].get_array()
        for title in ("Predicted change of relative income, 1990", "Uncertainty of the prediction")
    )

    data = load_us_income()
    relative = data.relative_incomes
    levels, changes = relative[:-1], 100 * np.diff(relative, axis=0)
    year = list(data.years[1:]).index(1990)
    model = GraphGPRegressor(data.graph, random_state=0)
    model.fit(levels[year - 30 : year], changes[year - 30 : year])
    expected_mean, expected_std = model.predict(levels[[year]], return_std=True, include_noise=True)
    np.testing.assert_allclose(mean, expected_mean[0], rtol=FORMULA)
    np.testing.assert_allclose(std, expected_std[0], rtol=FORMULA)

    assert np.all(np.abs(mean) < std)  # "the predicted changes are smaller than their uncertainty"
    power = np.square(maps["Learnt filter"].lines[0].get_ydata())
    assert power[0] > power[-1]  # "neighbouring states move together"


def test_the_picture_of_three_filters_shows_each_with_its_band(data_folder, monkeypatch):
    monkeypatch.setenv("SPECTRALGP_DATA", str(data_folder))
    (ax,) = made()["three_filters"]().axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["signal g", "residual h", "carry-over b"]
    assert len([one for one in ax.collections if type(one).__name__ == "FillBetweenPolyCollection"]) == 3
    g, h, _ = (line.get_ydata() for line in ax.lines[:3])
    for response in (g, h):
        assert response.min() >= 0
        assert response[0] > response[-1]  # neighbours are alike
