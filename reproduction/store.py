"""Results on disk: written whole or not at all, and read only where they belong to the experiment asked for."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import spectralgp
from reproduction.experiments import Study

RESULTS = "results.json"
FORMAT = 1  # raise it when the meaning of a number in the results changes


def fingerprint(study: Study) -> str:
    """Changes whenever the description of an experiment, the package or the form of its results does.

    Examples
    --------
    >>> from reproduction import EXPERIMENTS, fingerprint
    >>> fingerprint(EXPERIMENTS[0]) == fingerprint(EXPERIMENTS[0].quick())
    False
    """
    described = f"{FORMAT} {spectralgp.__version__} {study!r}"
    return hashlib.sha256(described.encode()).hexdigest()


def write_results(folder: Path, study: Study, jobs: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Write an experiment's results, and return them as they will be read."""
    content = {
        "experiment": study.key,
        "fingerprint": fingerprint(study),
        "version": spectralgp.__version__,
        "description": repr(study),
        "seconds": seconds,
        "jobs": jobs,
    }
    text = json.dumps(content, allow_nan=False)
    write_text(folder / study.key / RESULTS, text)
    results: dict[str, Any] = json.loads(text)
    return results


def read_results(folder: Path, study: Study) -> dict[str, Any] | None:
    """Results of exactly this experiment, or None if there are none (missing, of another description, or damaged)."""
    try:
        content = json.loads((folder / study.key / RESULTS).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
        return None
    if not isinstance(content, dict) or content.get("fingerprint") != fingerprint(study):
        return None
    return content


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it there, so that nobody ever reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(name).chmod(0o644)  # temporary files are private; results are not
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
