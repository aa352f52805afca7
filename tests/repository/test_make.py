"""The picture at the head of the README shows what its caption says."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from spectralgp.cli.showcase import METHODS, made_outages
from tolerances import FORMULA

ROOT = Path(__file__).resolve().parents[2]
PARTS = runpy.run_path(str(ROOT / "tests" / "unit" / "test_architecture.py"))["PARTS"]


def made():
    """The names of docs/make.py, which imports what stands beside it as a script does."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return runpy.run_path(str(ROOT / "docs" / "make.py"))
    finally:
        sys.path.pop(0)


def test_the_picture_of_the_architecture_has_every_part_in_its_order():
    layers = made()["package_picture"].__globals__["LAYERS"]
    folders = [(name, parts) for layer in layers for name, _, parts in layer]
    drawn = [part for name, parts in folders for part in [name, *(f"{name}.{part}" for part in parts)]]
    assert sorted([*drawn, "__init__", "__main__"]) == sorted(PARTS)
    places = [PARTS.index(name) for name, _ in folders]
    assert places == sorted(places)
    texts = [text.get_text() for text in made()["package_picture"]().axes[0].texts]
    assert {part.rpartition(".")[2] for part in drawn} <= set(texts)
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    listed = {name.rstrip("/") for row in rows for name in re.findall(r"`([\w/]+)`", row.split("|")[1])}
    assert {part.replace(".", "/") for part in PARTS} <= listed


@pytest.mark.slow
def test_the_picture_of_the_readme_shows_what_was_hidden_and_how_far_off_each_method_is():
    figure = made()["filled_in_by_default"]()
    by_title = {ax.get_title(loc="left"): ax for ax in figure.axes}
    data = made_outages()
    station = by_title["A sensor of median error"]
    (hidden,) = (line for line in station.lines if line.get_label() == "hidden from all")
    measured = [data.measured[data.hidden[:, column], column] for column in range(data.graph.n_nodes)]
    assert any(one.size and np.array_equal(one, hidden.get_ydata()) for one in measured)
    errors = by_title["Errors, and shares inside 90% intervals"]
    widths = [bar.get_width() for bar in errors.patches]
    names = [text.get_text().partition(":")[0] for text in errors.texts]
    assert names == [*METHODS, "spectralgp"]
    lines, _ = METHODS["Interpolation"](data)
    assert widths[0] == pytest.approx(np.sqrt(np.mean((lines - data.measured)[data.hidden] ** 2)), rel=FORMULA)
    assert widths[-1] < min(widths[:-1])  # "the error is smaller than that of what people use instead"


def test_the_picture_of_three_filters_shows_each_with_its_band(data_folder, monkeypatch):
    monkeypatch.setenv("SPECTRALGP_DATA", str(data_folder))
    (ax,) = made()["three_filters"]().axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["signal g", "residual h", "carry-over b"]
    assert len([one for one in ax.collections if type(one).__name__ == "FillBetweenPolyCollection"]) == 3
    g, h, _ = (line.get_ydata() for line in ax.lines[:3])
    for response in (g, h):
        assert response.min() >= 0
        assert response[0] > response[-1]  # neighbours are alike
