"""Numbers typed from elsewhere, against where they come from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reproduction.experiments import BASELINES, POLYNOMIALS
from reproduction.published import AUTHORS_CODE, COLUMNS, OPTIMA, TABLE_1

NUMBER = r"-?\d+\.\d+"


@pytest.fixture
def shared(data_folder) -> Path:
    return Path(__file__).resolve().parents[3] / "shared"


def test_table_1_is_the_paper_s(shared):
    text = (shared / "paper.tex").read_text(encoding="utf-8")
    body = text.split(r"\label{traffic_fmri}")[1].split(r"\end{tabular}")[0]
    lines = [line for line in body.splitlines() if line.count("&") == 6 and re.search(NUMBER, line)]
    rows = [model.row for model in (*POLYNOMIALS, *BASELINES)]
    assert len(lines) == len(rows)
    for row, line in zip(rows, lines, strict=True):
        for column, cell in zip(COLUMNS, line.split("&")[1:], strict=True):
            numbers = [float(number) for number in re.findall(NUMBER, cell)]
            found = TABLE_1[column].get(row)
            assert numbers == ([] if found is None else [found.mean, found.standard_error])


def test_the_rerun_of_the_authors_code_is_the_design_s(shared):
    text = (shared / "DESIGN.md").read_text(encoding="utf-8")
    table = text.split("| data | degree | paper's table |")[1]
    name = ""
    seen = 0
    for line in table.splitlines()[2:14]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = cells[0] or name
        data, size = name.split()
        rerun = AUTHORS_CODE[data, int(size)][f"degree-{cells[1]}"]
        likelihood, *_ = re.findall(NUMBER, cells[3])
        assert rerun.log_likelihood == float(likelihood)
        assert [rerun.mean, rerun.standard_error] == [float(number) for number in re.findall(NUMBER, cells[4])]
        seen += 1
    assert seen == sum(len(rows) for rows in AUTHORS_CODE.values())


def test_optima_of_the_baselines_are_the_design_s(shared):
    text = (shared / "DESIGN.md").read_text(encoding="utf-8")
    sentence = text.split("Baselines at their optimum")[1].split("What was learnt")[0]
    numbers = [float(number) for number in re.findall(NUMBER, sentence)]
    names = ["standard", "laplacian", "global", "diffusion", "regularised", "walk-3", "cosine"]
    columns = [("weather", 15), ("weather", 30), ("traffic", 10), ("traffic", 20)]
    typed = [OPTIMA[column][name].mean for name in names for column in columns]
    assert typed == numbers
