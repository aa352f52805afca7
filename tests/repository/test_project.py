"""What a project says of itself in several places, it says alike."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import spectralgp

ROOT = Path(__file__).resolve().parents[2]


def test_version_and_licence_are_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (version,) = re.findall(r"^version: (.+)$", citation, flags=re.MULTILINE)
    (licence,) = re.findall(r"^license: (.+)$", citation, flags=re.MULTILINE)
    assert version == project["version"] == spectralgp.__version__
    assert licence == project["license"]


def test_the_workflow_runs_every_python_that_is_promised():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    listed = [line.rsplit(" :: ", 1)[1] for line in project["classifiers"] if "Python :: 3." in line]
    assert listed
    assert re.findall(r'"(3\.\d+)"', workflow.split("python: [")[1].split("]")[0]) == listed


def test_the_workflow_builds_documentation_and_both_artefacts_with_targets_that_exist():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    targets = set(re.findall(r"\bmake ([\w-]+)", workflow))
    assert targets == {"test-all", "docs", "dist"}
    rules = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert targets <= set(rules)
