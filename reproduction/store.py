"""Results on disk: one line per job, kept as soon as it ends, and read only where code and job are the same."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import spectralgp
from reproduction.experiments import Study
from reproduction.jobs import Job, jobs_of

RESULTS = "results.jsonl"
FIGURES = "figures.json"
FORMAT = 2  # raise it when the meaning of a number in the results changes
PACKAGE, HERE = Path(spectralgp.__file__).parent, Path(__file__).parent
# what no result depends on: pictures, words and commands
SHOWING = ("show", "cli", "__main__.py")
COMPUTING = ("algorithm_1.py", "experiments.py", "jobs.py", "problems.py", "released.py", "released_baselines.py")
DRAWING = ("drawing.py", "filter_pictures.py", "prediction_pictures.py", "figures.py")
LIBRARIES = ("numpy", "scipy", "scikit-learn")

Results = list[dict[str, Any]]
"""What the jobs of an experiment found, in their order."""


def fingerprint(job: Job) -> str:
    """Changes whenever a job, the code that runs it or the form of its result does.

    Examples
    --------
    >>> from reproduction import EXPERIMENTS, fingerprint
    >>> from reproduction.jobs import jobs_of
    >>> first, second, *_ = jobs_of(EXPERIMENTS[0])
    >>> fingerprint(first) == fingerprint(second)
    False
    """
    return _digest([str(FORMAT), computing_code(), type(job).__name__, repr(job)])


@cache
def computing_code() -> str:
    """Fingerprint of the code that results depend on, without comments and docstrings, and of its libraries."""
    package = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in SHOWING]
    versions = [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES]
    return _digest([*versions, *map(_code, sorted(package)), *(_code(HERE / name) for name in COMPUTING)])


@cache
def drawing_code() -> str:
    """Fingerprint of the code that pictures depend on."""
    paths = [*sorted((PACKAGE / "show" / "plots").rglob("*.py")), *(HERE / name for name in DRAWING)]
    return _digest([importlib.metadata.version("matplotlib"), *map(_code, paths)])


def _code(path: Path) -> str:
    """A module's code as Python reads it, with its name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            body[0] = ast.Pass()
    return f"{path.name} {ast.dump(tree)}"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


class Record:
    """Results of one experiment so far.

    Parameters
    ----------
    folder : path
        Folder of all results.
    study : Study
        The experiment.
    """

    def __init__(self, folder: Path, study: Study) -> None:
        self.path = folder / study.key / RESULTS
        self._found: dict[str, dict[str, Any]] = {}
        self.jobs = {fingerprint(job): job for job in jobs_of(study)}
        lines = _lines(self.path)
        self._is_clean = True
        for line in lines:
            entry = _entry(line)
            if entry is None or entry["fingerprint"] not in self.jobs:
                self._is_clean = False
                continue
            self._found[entry["fingerprint"]] = entry

    @property
    def missing(self) -> list[Job]:
        """Jobs whose results are not here."""
        return [job for print_, job in self.jobs.items() if print_ not in self._found]

    @property
    def results(self) -> Results | None:
        """Results of all jobs, None as long as one is missing."""
        return None if self.missing else [self._found[print_]["result"] for print_ in self.jobs]

    @property
    def seconds(self) -> float:
        """Of the processor, that the jobs took."""
        return sum(float(entry["seconds"]) for entry in self._found.values())

    @property
    def digest(self) -> str:
        """Changes whenever a result does."""
        return _digest(json.dumps(self._found[print_]["result"]) for print_ in self.jobs if print_ in self._found)

    def keep(self, job: Job, result: dict[str, Any], seconds: float) -> None:
        """Write a job's result to disk at once, so that an interruption loses none that has ended.

        Raises
        ------
        ValueError
            If a number is none.
        """
        own = fingerprint(job)
        line = json.dumps({"job": job.name, "fingerprint": own, "seconds": seconds, "result": result}, allow_nan=False)
        if not self._is_clean:  # results of older code, or a line cut short
            write_text(self.path, "".join(json.dumps(one) + "\n" for one in self._found.values()))
            self._is_clean = True
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._found[own] = json.loads(line)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines(keepends=True)
    except (FileNotFoundError, UnicodeDecodeError):
        return []


def _entry(line: str) -> dict[str, Any] | None:
    """Content of a line, None if it was cut short."""
    try:
        entry = json.loads(line)
    except json.JSONDecodeError:
        return None
    is_whole = line.endswith("\n") and isinstance(entry, dict) and {"fingerprint", "seconds", "result"} <= entry.keys()
    return entry if is_whole else None


class Drawn:
    """Current pictures of a folder: those drawn from the same results by the same code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self._digests: dict[str, str] = dict(json.loads((folder / FIGURES).read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            self._digests = {}

    def is_current(self, name: str, sources: Mapping[str, str]) -> bool:
        """Whether a picture is there, and nothing it is drawn from has changed since."""
        return self._digests.get(name) == _of(sources) and (self.folder / f"{name}.png").is_file()

    def keep(self, name: str, sources: Mapping[str, str]) -> None:
        """Remember what a picture was drawn from."""
        self._digests[name] = _of(sources)
        write_text(self.folder / FIGURES, json.dumps(self._digests, indent=1))


def _of(sources: Mapping[str, str]) -> str:
    return _digest([drawing_code(), *(f"{key} {value}" for key, value in sorted(sources.items()))])


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
