"""The pages of the documentation: snippets run, links lead somewhere, and the API page has every public name."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import snippets
import spectralgp

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tutorial.md", "guide.md", "coming-from.md"])
def test_snippets_print_what_their_comments_say(name):
    page = DOCS / name
    assert snippets.snippets_of(page)
    printed, _ = snippets.run(page)
    snippets.check(page, printed)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (DOCS / target).exists(), target


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
