"""The pages of the documentation: snippets run, links lead somewhere, and the API page has every public name."""

import ast
import importlib.util
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import snippets
import spectralgp
from spectralgp import cli

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"  # its commands are run by test_dist.py
PAGES = sorted([*DOCS.glob("*.md"), *ROOT.glob("*.md")])
# what a block of code may be called: python and sh are run, R is not, and "" is a drawing, or commands of make
LANGUAGES = {"python", "sh", "r", "bibtex", "", "{toctree}", "{eval-rst}"}


def named(pages):
    return pytest.mark.parametrize("page", pages, ids=lambda page: page.name)


@pytest.mark.slow
@named([page for page in PAGES if page != README and (snippets.snippets_of(page) or snippets.commands_of(page))])
def test_snippets_do_what_their_comments_say(page, tmp_path, monkeypatch):
    """Commands first, in a folder of their own, then what is Python: no page is left out, nor has to be listed."""
    monkeypatch.chdir(tmp_path)
    for line in snippets.commands_of(page):
        answer = CliRunner().invoke(cli.app, shlex.split(line, comments=True)[1:])
        assert answer.exit_code == 0, answer.output
        snippets.check_command(line, answer.stdout, tmp_path)
    printed, _ = snippets.run(page)
    snippets.check(page, printed)


@named(PAGES)
def test_code_of_other_libraries_parses_and_every_block_is_of_a_kind_that_is_looked_at(page):
    text = page.read_text(encoding="utf-8")
    fences = re.findall(r"^[ \t]*(?:```|~~~)(.*)$", text, flags=re.MULTILINE)
    assert {fence.strip() for fence in fences[::2]} <= LANGUAGES
    assert not any(fences[1::2])
    assert text.count("```python\n") == len(snippets.snippets_of(page)) + len(snippets.elsewhere_of(page))
    for snippet in snippets.elsewhere_of(page):
        ast.parse(snippet)


def test_the_pages_with_snippets_are_those_known_to_have_them():
    """A pattern that no longer matches must not let pages pass unread."""
    with_python = {page.name for page in PAGES if snippets.snippets_of(page)}
    assert with_python >= {"README.md", "tutorial.md", "guide.md", "missing-data.md", "coming-from.md"}
    assert {page.name for page in PAGES if snippets.commands_of(page)} >= {"README.md", "guide.md"}
    assert {snippet.split()[2] for snippet in snippets.elsewhere_of(DOCS / "coming-from.md")} == set(snippets.ELSEWHERE)


def anchors(page):
    """Anchors of the headings of a page, as MyST and GitHub make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@named(PAGES)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^):\s]*))?\)", text):
        place = page.parent / target if target else page
        made = re.fullmatch(r"generated/gallery/(\w+)\.rst", target)
        if made:  # by sphinx-gallery, from a script of the gallery
            assert made[1] == "index" or (DOCS / "gallery" / f"{made[1]}.py").exists(), target
            continue
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), (target, anchor)


def test_the_api_page_is_current_and_has_every_public_name():
    spec = importlib.util.spec_from_file_location("make_api", DOCS / "make_api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    assert text == module.page()
    for name in spectralgp.__all__:
        assert f"   spectralgp.{name}\n" in text


def test_every_page_is_in_the_contents():
    contents = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or re.search(rf"^{page.stem}$", contents, flags=re.MULTILINE), page.name


# The README: every snippet runs as it stands, in order, and prints what its comments say


@pytest.fixture(scope="module")
def outputs():
    return snippets.run(README)


def test_snippets_print_what_their_comments_say(outputs):
    printed, _ = outputs
    assert len(printed) == 6
    snippets.check(README, printed)


def test_the_years_of_the_first_snippet_are_those_it_says(outputs):
    """Thirty years to learn from and twenty to predict: one row less would be divided by twenty all the same."""
    _, names = outputs
    data, train, test = names["data"], names["train"], names["test"]
    years = data.years[1:]  # the year a change leads to
    assert (years[train][0], years[train][-1]) == (1960, 1989)
    assert (years[test][0], years[test][-1]) == (1990, 2009)
    assert names["relative"][:-1][test].shape == (20, 48)


def test_the_filter_of_the_first_snippet_is_low_pass():
    smooth, rough = map(float, snippets.leading_numbers(snippets.shown(snippets.snippets_of(README)[0])[-1]))
    assert smooth > 3 * rough  # neighbouring states move together


def test_what_is_said_of_probes_is_so(outputs):
    _, names = outputs
    model = names["model"]
    error, total = re.search(r"here (\d+) nats out of ([\d,]+)", README.read_text(encoding="utf-8")).groups()
    assert round(model.fits_[0].probe_error) == int(error)
    assert round(abs(model.log_marginal_likelihood_)) == int(total.replace(",", ""))
    assert abs(model.noise_variance_ / 0.09 - 1) < 0.03  # "right to three per cent"
    np.testing.assert_allclose(names["mean"].shape, (1, 2))
