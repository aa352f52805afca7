"""No word on the pages contradicts its number: they are read as a reader does, and recomputed from what they print."""

import re
from pathlib import Path

import numpy as np
import pytest

from reproduction import facts
from reproduction.appendices import FILES
from reproduction.experiments import BASELINES, POLYNOMIALS
from reproduction.published import COLUMNS, TABLE_1

DOCS = Path(__file__).resolve().parents[3] / "docs"
NUMBER = r"-?\d+\.\d+"


@pytest.fixture(scope="module")
def text() -> str:
    return (DOCS / "reproduction.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def appendices() -> dict[str, str]:
    return {name: (DOCS / name).read_text(encoding="utf-8") for name in FILES}


def section(text: str, title: str) -> str:
    (found,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return found


def rows(text: str) -> list[list[str]]:
    """Cells of the rows of the tables in a text, headers too."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in lines]


# the page


def test_pictures_have_one_format_and_all_are_shown(text, appendices):
    shown = re.findall(r"!\[[^]]*\]\(images/reproduction/([^)]+)\)", text + "".join(appendices.values()))
    assert len(set(shown)) == len(shown)
    assert {path.name for path in (DOCS / "images" / "reproduction").iterdir()} == set(shown)
    assert {Path(name).suffix for name in shown} == {".png"}


def test_the_count_is_that_of_the_table(text):
    found = rows(section(text, "The paper's claims"))[1:]
    tested = [row for row in found if row[4] != "-"]
    short = section(text, "In short")
    assert f"Of {len(tested)} claims that could be tested" in short
    said = re.findall(r"(\d+) hold, (\d+) do not, and (\d+) are not decided", short)
    for place, words in zip((4, 5), said, strict=True):
        verdicts = [row[4] if row[place] == "same" else row[place] for row in tested]
        counted = [sum(one.startswith(start) for one in verdicts) for start in ("yes", "**no**", "not decided")]
        assert [int(word) for word in words] == counted


# what stands beside numbers


def test_bold_scores_are_those_more_than_two_errors_apart(text, appendices):
    header, *found = rows(section(text, "Table 1"))
    for title, data in (("Traffic", "traffic"), ("Weather", "weather")):
        part = section(appendices[FILES[1]], title)
        names, *scores = [row for row in rows(part) if len(row) == 11]
        for cells in scores:
            label = cells[0]
            for index, size in enumerate(size for name, size in TABLE_1 if name == data):
                ours, paper, apart = (cells[1 + 5 * index + step] for step in (0, 3, 4))
                mean, error = (float(number) for number in re.findall(NUMBER, ours))
                other, other_error = (float(number) for number in re.findall(NUMBER, paper))
                distance = (mean - other) / np.hypot(error, other_error)
                assert float(apart) == pytest.approx(distance, abs=0.06)
                (row,) = [row for row in found if row[0] == label]
                cell = row[header.index(f"{data} {size}")]
                if abs(abs(distance) - 2) > 0.02:
                    assert ("**" in cell) == (abs(distance) > 2), (label, cell)
                assert f"{mean:.2f}" in cell
        assert len(scores) == 13
        assert names[0] == "model"


def test_the_printed_inverse_is_wrong_by_orders_of_magnitude_and_the_authors_filter_negative():
    # the inverse of a Kronecker sum is not the Kronecker sum of the inverses, on any pair of numbers but a few
    assert 1 / (2.0 + 3.0) != 1 / 2.0 + 1 / 3.0
    assert np.median([facts.printed_inverse_error(seed) for seed in range(50)]) > 30
    smallest, lift = facts.smallest_of_authors()
    assert smallest == pytest.approx(-0.7567, abs=1e-4)
    assert np.sign(smallest + lift) == 1


def test_cubics_are_the_nearest_by_projection():
    # diffusion at alpha 1 is exp(-x / 4) on [0, 2]: a cubic is off by about (1 / 4)^4 / (8 * 4!) / 2 of it
    assert facts.cubic_errors()["diffusion"] == pytest.approx(1 / (4**4 * 8 * 24), rel=0.5)
    assert max(facts.cubic_errors().values()) == facts.cubic_errors()["cosine"]


# beside the checkout, and only there: SPECTRALGP_DATA names data, not documents
SHARED = Path(__file__).resolve().parents[4] / "shared"


def source(name: str, folder: Path = SHARED) -> str:
    """Text of a document that numbers were typed from; the test is skipped where it is not at hand."""
    if not (folder / name).is_file():
        pytest.skip(f"{name} is not here: it is looked for in {folder}")
    return (folder / name).read_text(encoding="utf-8")


def test_table_1_is_the_paper_s():
    text = source("paper.tex")
    body = text.split(r"\label{traffic_fmri}")[1].split(r"\end{tabular}")[0]
    lines = [line for line in body.splitlines() if line.count("&") == 6 and re.search(NUMBER, line)]
    rows = [model.row for model in (*POLYNOMIALS, *BASELINES)]
    assert len(lines) == len(rows)
    for row, line in zip(rows, lines, strict=True):
        for column, cell in zip(COLUMNS, line.split("&")[1:], strict=True):
            numbers = [float(number) for number in re.findall(NUMBER, cell)]
            found = TABLE_1[column].get(row)
            assert numbers == ([] if found is None else [found.mean, found.standard_error])
