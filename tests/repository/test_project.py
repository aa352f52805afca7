"""What a project says of itself in several places, it says alike."""

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


def test_every_file_and_name_that_the_architecture_points_to_is_there():
    """A reader with a task is led to a file, and finds in it what he was told."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "spectralgp"
    found = 0
    for title in ("Where to find something", "Where a new line of code goes"):
        rows = text.partition(f"## {title}\n")[2].partition("\n## ")[0].splitlines()
        for row in rows:
            source = ""  # what the path before a name holds
            for word in re.findall(r"`([^`]+)`", row):
                is_path = re.fullmatch(r"[\w/]+(\.py|/)", word) is not None
                if is_path:
                    path = (ROOT if word.startswith(("tests/", "docs/", "reproduction/")) else package) / word
                    if not path.exists():  # of the folder that the row has named, as in `reading.py`
                        path = next(package.rglob(word))
                    source = path.read_text(encoding="utf-8") if path.is_file() else ""
                    found += 1
                elif source and title.startswith("Where to find"):
                    assert re.search(rf"\b(class|def) {word.rpartition('.')[2]}\b", source), (row, word)
    assert found > 40
    kernel, likelihood = (
        next(row for row in text.splitlines() if row.startswith(f"| {start}"))
        for start in ("a graph kernel with a closed formula", "a new likelihood")
    )
    assert "`model/kernels/named.py`" in kernel
    assert "`model/likelihoods/kinds.py`" in likelihood
