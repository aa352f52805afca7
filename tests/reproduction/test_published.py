"""Numbers typed from elsewhere, against where they come from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reproduction.experiments import BASELINES, POLYNOMIALS
from reproduction.published import AUTHORS_CODE, COLUMNS, OPTIMA, TABLE_1

NUMBER = r"-?\d+\.\d+"


# beside the checkout, and only there: SPECTRALGP_DATA names data, not documents
SHARED = Path(__file__).resolve().parents[3] / "shared"


def source(name: str, folder: Path = SHARED) -> str:
    """Text of a document that numbers were typed from; the test is skipped where it is not at hand."""
    if not (folder / name).is_file():
        pytest.skip(f"{name} is not here: it is looked for in {folder}")
    return (folder / name).read_text(encoding="utf-8")


def test_a_source_that_is_not_here_is_a_reason_to_skip(tmp_path):
    with pytest.raises(pytest.skip.Exception, match=r"paper\.tex is not here: it is looked for in "):
        source("paper.tex", tmp_path)


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


def test_the_rerun_of_the_authors_code_is_the_design_s():
    text = source("DESIGN.md")
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


def test_optima_of_the_baselines_are_the_design_s():
    text = source("DESIGN.md")
    sentence = text.split("Baselines at their optimum")[1].split("What was learnt")[0]
    numbers = [float(number) for number in re.findall(NUMBER, sentence)]
    names = ["standard", "laplacian", "global", "diffusion", "regularised", "walk-3", "cosine"]
    columns = [("weather", 15), ("weather", 30), ("traffic", 10), ("traffic", 20)]
    typed = [OPTIMA[column][name].mean for name in names for column in columns]
    assert typed == numbers
