"""Every snippet of the README runs as it stands, in order, and prints what its comments say."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import snippets
from spectralgp import cli

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = [
    line for text in re.findall(r"```sh\n(.*?)```", TEXT, flags=re.DOTALL) for line in text.splitlines() if line
]


@pytest.fixture(scope="module")
def outputs():
    return snippets.run(PAGE)


def test_snippets_print_what_their_comments_say(outputs):
    printed, _ = outputs
    assert len(printed) == 4
    snippets.check(PAGE, printed)


def test_the_years_of_the_first_snippet_are_those_it_says(outputs):
    """Thirty years to learn from and twenty to predict: one row less would be divided by twenty all the same."""
    _, names = outputs
    data, train, test = names["data"], names["train"], names["test"]
    years = data.years[1:]  # the year a change leads to
    assert (years[train][0], years[train][-1]) == (1960, 1989)
    assert (years[test][0], years[test][-1]) == (1990, 2009)
    assert names["relative"][:-1][test].shape == (20, 48)


def test_the_filter_of_the_first_snippet_is_low_pass():
    smooth, rough = map(float, snippets.leading_numbers(snippets.shown(snippets.snippets_of(PAGE)[0])[-1]))
    assert smooth > 3 * rough  # neighbouring states move together


def test_what_is_said_of_probes_is_so(outputs):
    _, names = outputs
    model = names["model"]
    error, total = re.search(r"here (\d+) nats out of ([\d,]+)", TEXT).groups()
    assert round(model.fits_[0].probe_error) == int(error)
    assert round(abs(model.log_marginal_likelihood_)) == int(total.replace(",", ""))
    assert abs(model.noise_variance_ / 0.09 - 1) < 0.025
    np.testing.assert_allclose(names["mean"].shape, (1, 2))


def test_commands_run_as_they_are_typed_and_print_what_their_comments_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) == 8
    for line in COMMANDS:
        program, *arguments = shlex.split(line, comments=True)
        assert program == "spectralgp"
        answer = CliRunner().invoke(cli.app, arguments)
        assert answer.exit_code == 0, answer.output
        comment = line.partition("  # ")[2]
        for share in re.findall(r"[\d.]+%(?! intervals)", comment):
            assert share in answer.stdout, line
        for name in re.findall(r"\w+\.csv", comment):
            assert (tmp_path / "files" / name).exists(), line
        for option, path in pairwise(arguments):
            assert option not in ("--out", "--std") or (tmp_path / path).exists(), line


def test_every_file_the_readme_points_to_exists():
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / target).exists(), target
