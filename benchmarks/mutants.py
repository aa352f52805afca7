"""Mutants of the package: small changes drawn at random, each of which some test should notice.

    python benchmarks/mutants.py --number 60 --seed 1

Each mutant is one change of an expression: another operator or comparison, a constant off by one, halved or doubled, a
condition negated, ``min`` for ``max``. They are drawn uniformly from all such places in the package but those that
tests need not see: docstrings, messages, annotations and the demonstration.

1. The tests of make test run once on the unchanged package, to learn which of them run which functions, and how long
   they take. This is kept in .pytest_cache for as long as no file of the package or the tests changes.
2. Each mutant meets tests that run its function, as many as fit in a short time: one case of each test before further
   cases, and tests that run little else before those that run everything. Most mutants end here.
3. All survivors meet all these tests together, in one tree. Where they pass, all of them survive. Where some fail,
   those are run on each survivor alone, and all tests again on the survivors that are left.

Mutants are written into copies of the tree, never into the tree itself. A test that hangs has noticed its mutant. Two
mutants that undo each other in step 3 would be missed, which is unlikely at places drawn at random.

While writing a test for some mutant, ask for that mutant and that test only:

    python benchmarks/mutants.py --seed 1 --only 17 --tests tests/unit/test_scores.py
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from _places import Mutant, Place, drawn, mutated, places

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src", "spectralgp")
NOT_COPIED = (
    ".git",
    ".venv*",
    ".*_cache",
    ".hypothesis",
    "__pycache__",
    "build",
    "dist",
    "*-output",
    "reproduction-quick",
)
RECORD = ROOT / ".pytest_cache" / "mutants.json"
SELECTION = ("src", "tests", "-m", "not slow", "--ignore=tests/repository")  # as in make test

OWN_TESTS = 40.0  # seconds that the tests of step 2 take on the unchanged package
SLOW = 5.0  # seconds; slower tests are left to step 3
MOST_FAILURES = 20  # failed tests after which the suite of step 3 is broken off
PATIENCE = 4.0  # times the seconds on the unchanged package, plus START, after which a run has hung
START = 90.0  # seconds to start, and to compile the loops


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run of tests: failed ones, whether any failed, and whether it hung."""

    failed: tuple[str, ...]
    passed: bool
    timed_out: bool = False

    def __str__(self) -> str:
        if self.timed_out:
            return "timed out"
        return f"killed by {self.failed[0] if self.failed else '(the tests did not start)'}"


class Tree:
    """A copy of the checkout, whose package can be changed."""

    def __init__(self, folder: Path, source: Path = ROOT, ignored: Sequence[str] = NOT_COPIED) -> None:
        self.folder = folder
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns(*ignored))

    def run(self, mutants: Sequence[Mutant], arguments: Sequence[str], limit: float | None = None) -> Outcome:
        """Run pytest with some mutants in place."""
        originals = {}
        for file in {mutant.place.file for mutant in mutants}:
            originals[file] = (self.folder / PACKAGE / file).read_bytes()
            self._write(file, mutated(originals[file], [one for one in mutants if one.place.file == file]))
        try:
            return self._pytest(arguments, limit)
        finally:
            for file, text in originals.items():
                self._write(file, text)

    def _write(self, file: str, text: bytes) -> None:
        path = self.folder / PACKAGE / file
        path.write_bytes(text)
        # Python tells sources apart by their size and the second they were written in
        Path(cache_from_source(str(path))).unlink(missing_ok=True)

    def _pytest(self, arguments: Sequence[str], limit: float | None) -> Outcome:
        folders = [self.folder / "benchmarks", self.folder / "src", self.folder]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "NUMBA_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "",  # what is compiled once need not be compiled for every mutant
        }
        shutil.rmtree(self.folder / ".hypothesis", ignore_errors=True)  # no examples of the mutant before
        shutil.rmtree(self.notes, ignore_errors=True)
        self.notes.mkdir()
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--hypothesis-seed=0",
            "-p",
            "_watching",
            "-p",
            "no:cacheprovider",
        ]
        process = subprocess.Popen(
            [*command, f"--notes={self.notes}", *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            return Outcome((), False, timed_out=True)
        finally:
            if process.returncode is None:  # hung or interrupted: end also what the tests started
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        notes = self.notes / "main.json"
        failed = json.loads(notes.read_text(encoding="utf-8"))["failed"] if notes.exists() else []
        return Outcome(tuple(failed), status in (0, 5))  # 5: no test was left to run

    @property
    def notes(self) -> Path:
        """Folder of the notes of runs."""
        return self.folder.with_name(f"{self.folder.name}-notes")


@dataclass(frozen=True)
class Record:
    """Record of the tests on the unchanged package."""

    seconds: dict[str, float]  # of each test
    reached: dict[str, set[str]]  # tests by "file:line of the function"
    wall_seconds: float

    @classmethod
    def of(cls, tree: Tree, jobs: int) -> Record:
        """The record of this checkout: the last one, or a new one."""
        state = _state(tree.folder)
        if RECORD.exists():
            kept = json.loads(RECORD.read_text(encoding="utf-8"))
            if kept.pop("state") == state:
                return cls._read(kept)
        _say("the tests on the unchanged package")
        begun = time.monotonic()
        outcome = tree.run([], [f"-n{jobs}", "--dist=worksteal", "--watch", *SELECTION])
        if not outcome.passed:
            raise SystemExit(f"The tests must pass on the unchanged package; failed: {', '.join(outcome.failed)}.")
        kept = {"reached": {}, "wall_seconds": time.monotonic() - begun}
        for path in sorted(tree.notes.glob("*.json")):
            notes = json.loads(path.read_text(encoding="utf-8"))
            kept["reached"] |= {
                test: [f"{file}:{line}" for file, line in found] for test, found in notes["reached"].items()
            }
            kept |= {"seconds": notes["seconds"]} if "seconds" in notes else {}
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps({"state": state, **kept}), encoding="utf-8")
        return cls._read(kept)

    @classmethod
    def _read(cls, kept: dict[str, Any]) -> Record:
        return cls(kept["seconds"], {test: set(found) for test, found in kept["reached"].items()}, kept["wall_seconds"])

    def own_tests(self, place: Place) -> list[str]:
        """Tests to meet a mutant first: those of its function, or of its module where what it changes is in none."""
        reached = [test for test, found in self.reached.items() if f"{place.file}:{place.function}" in found]
        # a compiled function is seen by nobody
        for part in (f"{place.file}:", f"{Path(place.file).parent.as_posix()}/"):
            reached = reached or [
                test for test, found in self.reached.items() if any(one.startswith(part) for one in found)
            ]
        cases = defaultdict(list)
        for test in sorted(reached, key=lambda test: (self.seconds[test], test)):
            cases[test.partition("[")[0]].append(test)
        ranks = {test: rank for group in cases.values() for rank, test in enumerate(group)}
        ordered = sorted(reached, key=lambda test: (ranks[test], len(self.reached[test]), test))
        chosen, total = [], 0.0
        for test in ordered:
            if self.seconds[test] < SLOW and total + self.seconds[test] < OWN_TESTS:
                chosen.append(test)
                total += self.seconds[test]
        return chosen


def _state(root: Path) -> str:
    """Fingerprint of the record: of every file of the package and of the tests."""
    digest = hashlib.sha256()
    for folder in ("src", "tests"):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


class Run:
    """A run of mutants against the tests, in several trees at a time."""

    def __init__(self, scratch: Path, jobs: int) -> None:
        self.jobs = jobs
        if (ROOT.parent / "shared").exists():
            # tests look for data beside the checkout
            (scratch / "shared").symlink_to(ROOT.parent / "shared")
        self.scratch = scratch
        self.first = Tree(scratch / "tree-0")

    def start(self) -> None:
        """Make the other trees, with the compiled files of the first."""
        self.trees: SimpleQueue[Tree] = SimpleQueue()
        for number in range(self.jobs):
            tree = self.first if number == 0 else Tree(self.scratch / f"tree-{number}", self.first.folder, ())
            self.trees.put(tree)

    def each(
        self, mutants: Sequence[Mutant], tests: Callable[[Mutant], list[str]], limit: float | None
    ) -> list[Outcome]:
        """Each mutant alone against tests of its own, until the first fails."""

        def one(mutant: Mutant) -> Outcome:
            chosen, tree = tests(mutant), self.trees.get()
            try:
                wanted = self.scratch / f"chosen-{mutant.number}.json"
                wanted.write_text(json.dumps(chosen), encoding="utf-8")
                files = _files(chosen)
                if not files:
                    return Outcome((), True)
                outcome = tree.run([mutant], ["-x", f"--chosen={wanted}", *files], limit)
                _say(f"{mutant}\n       {'lives on' if outcome.passed else outcome}")
                return outcome
            finally:
                self.trees.put(tree)

        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(one, mutants))

    def together(self, mutants: Sequence[Mutant], record: Record) -> dict[Mutant, Outcome]:
        """The fate of mutants under all tests."""
        if not mutants:
            return {}
        apart, close = _apart(mutants)
        _say(f"the tests on {len(apart)} survivors together")
        limit = START + PATIENCE * record.wall_seconds
        options = [f"-n{self.jobs}", "--dist=worksteal", f"--maxfail={MOST_FAILURES}"]
        outcome = self.first.run(apart, [*options, *SELECTION], limit)
        if outcome.passed or len(apart) == 1:
            return dict.fromkeys(apart, outcome) | self.together(close, record)
        known = [test for test in dict.fromkeys(outcome.failed) if test in record.seconds]
        limit = START + PATIENCE * sum(record.seconds[test] for test in known)
        alone = dict(zip(apart, self.each(apart, lambda _: known, limit), strict=True))
        killed = {mutant: found for mutant, found in alone.items() if not found.passed}
        if killed:
            return killed | self.together([one for one in mutants if one not in killed], record)
        # no test fails for one of them alone, or the run hung: fewer at a time
        half = len(apart) // 2
        return self.together(apart[:half], record) | self.together([*apart[half:], *close], record)


def _files(tests: Sequence[str]) -> list[str]:
    """Files of tests, in the order in which pytest comes to them."""
    files = sorted({test.partition("::")[0] for test in tests})
    # examples of a module that is loaded before its package would have classes of their own
    return [(PACKAGE / "__init__.py").as_posix(), *files] if any(file.startswith("src") for file in files) else files


def _apart(mutants: Sequence[Mutant]) -> tuple[list[Mutant], list[Mutant]]:
    """Mutants that do not overlap, and the others."""
    apart: list[Mutant] = []
    for mutant in mutants:
        start, stop = mutant.place.span
        same = [one.place.span for one in apart if one.place.file == mutant.place.file]
        if all(stop <= first or last <= start for first, last in same):
            apart.append(mutant)
    return apart, [mutant for mutant in mutants if mutant not in apart]


def fates(mutants: Sequence[Mutant], jobs: int, paths: Sequence[str]) -> dict[Mutant, Outcome]:
    """Outcome of each mutant, under all tests or under those of some paths."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        run = Run(Path(folder), jobs)
        if paths:
            run.start()
            return {mutant: run.first.run([mutant], ["-x", *paths]) for mutant in mutants}
        record = Record.of(run.first, jobs)
        run.start()
        own = functools.cache(lambda mutant: record.own_tests(mutant.place))
        found = dict(zip(mutants, run.each(mutants, own, START + PATIENCE * OWN_TESTS), strict=True))
        return found | run.together([mutant for mutant in mutants if found[mutant].passed], record)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw mutants of the package, and say which of them no test notices.")
    parser.add_argument("--number", type=int, default=60, help="how many (60)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (2)")
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="only those of the mutants with these numbers")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="only these tests")
    parser.add_argument("--list", action="store_true", help="say which mutants, and run nothing")
    options = parser.parse_args()
    found = places(ROOT / PACKAGE)
    mutants = drawn(found, options.number, options.seed)
    mutants = [mutant for mutant in mutants if options.only is None or mutant.number in options.only]
    if options.list:
        print(*mutants, sep="\n")
        return
    # a shell lets what runs in its background ignore interrupts, and tests that interrupt something would wait in vain
    signal.signal(signal.SIGINT, signal.default_int_handler)
    begun = time.monotonic()
    ends = fates(mutants, options.jobs, options.tests)
    for mutant in mutants:
        print(f"{mutant}\n       {'SURVIVED' if ends[mutant].passed else ends[mutant]}")
    survived = sum(end.passed for end in ends.values())
    hung = sum(end.timed_out for end in ends.values())
    print(
        f"\n{len(mutants)} mutants of {len(found)} places, seed {options.seed}: {len(mutants) - survived} killed "
        f"({hung} of them by time-out), {survived} survived; {(time.monotonic() - begun) / 60:.0f} minutes"
    )


if __name__ == "__main__":
    main()
