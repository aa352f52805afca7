"""No word on the page contradicts its number: the page is read as a reader does, and recomputed from what it prints."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from reproduction import facts
from reproduction.answers import LITTLE, RELATIVELY_WELL, WELL
from reproduction.experiments import EXPERIMENTS
from reproduction.published import TABLE_1

DOCS = Path(__file__).resolve().parents[3] / "docs"
NUMBER = r"-?\d+\.\d+"


@pytest.fixture(params=["documentation", pytest.param("quick", marks=pytest.mark.slow)])
def text(request) -> str:
    if request.param == "documentation":
        return (DOCS / "reproduction.md").read_text(encoding="utf-8")
    folder, _ = request.getfixturevalue("quick_run")
    return (folder / "summary.md").read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    (found,) = re.findall(rf"^##+ {re.escape(title)}\n(.*?)(?=^##|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return found


def rows(text: str) -> list[list[str]]:
    """Cells of the rows of the tables in a text, without headers."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(NUMBER, text)]


def answers(row: list[str]) -> list[bool]:
    return [cell == "yes" for cell in row[4:6]]


def statements(text: str, *words: str) -> list[list[str]]:
    found = [row for row in rows(text) if len(row) == 7 and all(word in row[2] for word in words)]
    return [row for row in found if row[4] != "-"]


def by_solver(row: list[str]) -> list[str]:
    """What is said of filters learnt jointly, and by Algorithm 1."""
    joint, _, algorithm_1 = row[6].partition("; by Algorithm 1: ")
    return [joint.removeprefix("jointly: "), algorithm_1]


def test_the_count_is_over_the_paper_s_own_statements(text):
    part = section(text, "What the paper states, and what we find")
    listed = [row for row in rows(part) if row[0].isdigit()]
    assert [row[0] for row in listed] == [str(number) for number in range(1, 15)]
    tested = [row for row in listed if row[4] != "-"]
    counts = [sum(answers(row)[place] for row in tested) for place in (0, 1)]
    assert f"{len(tested)} were tested" in part
    assert f"{counts[0]} with filters learnt jointly and {counts[1]} with filters learnt by Algorithm 1 hold" in part, (
        counts
    )
    assert "auto" not in part
    assert "high-pass" not in " ".join(row[2] for row in listed)


def test_every_criterion_stands_before_its_number(text):
    for row in rows(section(text, "What the paper states, and what we find")):
        assert row[3]


def test_little_improvement_is_what_the_numbers_say(text):
    found = statements(text, "little improvement")
    assert found
    for row in found:
        for holds, words in zip(answers(row), by_solver(row), strict=True):
            before, after = numbers(words)
            assert holds == (after < LITTLE and after < before), row


def test_recovery_is_what_the_numbers_say(text):
    for words, bar in (("recovered well", WELL), ("relatively well", RELATIVELY_WELL)):
        found = statements(text, words)
        assert found
        for row in found:
            for holds, said in zip(answers(row), by_solver(row), strict=True):
                errors = [float(share) / 100 for share in re.findall(r"(\d+\.\d)%", said)]
                assert holds == (max(errors) < bar), row


def test_polynomials_are_best_only_where_they_are(text):
    found = statements(text, "the polynomials perform best") + statements(text, "degrees 2 and 3 both perform better")
    assert found
    for row in found:
        for holds, said in zip(answers(row), by_solver(row), strict=True):
            pairs = re.findall(rf"degree-\d ({NUMBER}), [\w-]+ ({NUMBER}), paired ([+-]\d+\.\d+) \+- (\d+\.\d+)", said)
            assert pairs
            assert holds == all(float(ours) > float(other) for ours, other, _, _ in pairs), row
            for ours, other, difference, _ in pairs:
                assert float(difference) == pytest.approx(float(ours) - float(other), abs=0.011)


@pytest.mark.parametrize("data", ["traffic", "weather"])
def test_what_a_row_says_of_the_paper_is_what_its_cells_say(text, data):
    part = section(text, data.capitalize())
    sizes = sorted(size for name, size in TABLE_1 if name == data)
    said = 0
    for row in rows(part):
        cells, words = row[1:-1], row[-1]
        if not cells or "ours **" not in cells[0] or "paper" not in cells[0]:
            continue
        for size, cell in zip(sizes, cells, strict=False):
            ours = float(re.search(rf"ours \*\*({NUMBER})", cell)[1])
            mean, error = map(float, re.search(rf"paper ({NUMBER}) \(({NUMBER})\)", cell).groups())
            distance = (ours - mean) / error
            claim = re.search(rf"{size}: (within one standard error|({NUMBER}) standard errors (above|below))", words)
            assert claim, (row, size)
            if claim[2] is None:
                assert abs(distance) <= 1.01
            else:
                assert abs(distance) > 0.99
                assert float(claim[2]) == pytest.approx(abs(distance), abs=0.06)
                assert claim[3] == ("above" if distance > 0 else "below")
            said += 1
            scores = re.search(rf"Algorithm 1 ({NUMBER}) \(", cell)
            ends = re.search(
                rf"{size}: Algorithm 1 ends[^.]*? {NUMBER} nats (?:higher|lower) in likelihood and ({NUMBER}) "
                r"(higher|lower) in score",
                words,
            )
            if ends and scores:
                change = float(scores[1]) - ours
                assert float(ends[1]) == pytest.approx(abs(change), abs=0.06)
                assert abs(change) < 0.06 or ends[2] == ("higher" if change > 0 else "lower")
    assert said == 13 * len([size for size in sizes if f"{data} {size}" in part.split("\n|---")[0]])


def test_the_share_that_the_order_has_is_the_table_s(text):
    part = section(text, "Weather")
    row = next(row for row in rows(part) if row[0] == "degree 3" and len(row) in (5, 9) and "ours" not in row[1])
    for index, size in enumerate((15, 30)[: (len(row) - 1) // 4]):
        released, same, first = (numbers(cell)[0] for cell in row[1 + 4 * index : 4 + 4 * index])
        share = int(re.search(rf"[wW]ith {size} signals degree 3 scores .*?so that (-?\d+)% of", part)[1])
        assert share == pytest.approx(100 * (first - same) / (first - released), abs=1)


def test_the_documentation_never_blames_the_authors_for_what_is_only_missing_here():
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert "not published" not in text
    assert "never published" not in text
    assert "DESIGN" not in text  # nothing cites a document that is not here
    for study in EXPERIMENTS:
        assert f"## {study.title}\n" in text or study.key == "graphs"


def test_the_printed_inverse_is_wrong_and_the_authors_filter_negative():
    # the inverse of a Kronecker sum is not the Kronecker sum of the inverses, on any pair of numbers but a few
    assert 1 / (2.0 + 3.0) != 1 / 2.0 + 1 / 3.0
    assert facts.printed_inverse_error() > 1
    smallest, lift = facts.smallest_of_authors()
    assert smallest == pytest.approx(-0.7567, abs=1e-4)
    assert np.sign(smallest + lift) == 1
