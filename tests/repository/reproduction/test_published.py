"""Numbers typed from elsewhere, against where they come from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reproduction.experiments import BASELINES, POLYNOMIALS
from reproduction.published import COLUMNS, TABLE_1

NUMBER = r"-?\d+\.\d+"


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
