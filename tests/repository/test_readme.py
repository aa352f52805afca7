"""Every snippet of the README runs as it stands, in order, and prints what its comments say."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import snippets

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def outputs():
    return snippets.run(PAGE)


def test_snippets_print_what_their_comments_say(outputs):
    printed, _ = outputs
    assert len(printed) == 6
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


def test_every_file_the_readme_points_to_exists():
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / target).exists(), target
