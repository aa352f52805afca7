"""Rivals on the same splits, or seeds, in several processes: what `bench_real.py` and `bench_missing.py` share."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from _paired import LARGER_IS_BETTER, average
from _reporting import RESULTS, ROOT, print_table
from threadpoolctl import threadpool_limits

SCORES = (*LARGER_IS_BETTER, "coverage", "seconds", "processor_seconds")
DIGITS = 8  # of what is kept: far more than the page prints


def tried(name: str, work: Callable[[], Mapping[str, float]]) -> dict[str, Any]:
    """The scores that some work gives, with its time, or what it failed with."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter(), time.process_time()
        try:
            found = work()
        except Exception as error:  # a rival that fails is a finding, not the end of an hour's run
            return {"failed": f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}"}
        took = {"seconds": time.perf_counter() - start[0], "processor_seconds": time.process_time() - start[1]}
    scores = {measure: float(f"{value:.{DIGITS}g}") for measure, value in {**found, **took}.items()}
    return {**scores, "warned": bool(caught)}


def gathered(splits: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The scores of a rival's splits, as a list for each score; None where it failed."""
    lists: dict[str, Any] = {name: [found.get(name) for found in splits] for name in SCORES}
    lists["warned"] = [found.get("warned", False) for found in splits]
    lists["failed"] = [found["failed"] for found in splits if "failed" in found]
    return lists


def on_one_thread() -> None:
    """Set up a process that shares the machine with others."""
    import numba

    threadpool_limits(1)
    numba.set_num_threads(1)


def run(
    one_split: Callable[[Any, int, Sequence[str]], dict[str, dict[str, Any]]],
    problems: Sequence[Any],
    rivals: Sequence[str],
    n_splits: int,
    n_workers: int,
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Each problem with the scores of every method, when it is finished."""
    context = multiprocessing.get_context("spawn")  # a forked process would inherit pools of threads
    with ProcessPoolExecutor(n_workers, context, on_one_thread) as pool:
        waiting = {
            problem: [pool.submit(one_split, problem, seed, rivals) for seed in range(n_splits)] for problem in problems
        }
        for problem, futures in waiting.items():
            splits = [future.result() for future in futures]
            yield problem, {rival: gathered([found[rival] for found in splits]) for rival in rivals}


def add(
    found: dict[str, Any], name: str, about: dict[str, Any], new: dict[str, Any], order: Sequence[str]
) -> dict[str, Any]:
    """Add new runs of a problem to those of other methods on the same data and splits; return all its runs."""
    old = found.get(name, {})
    runs = (old["runs"] if old.get("facts") == about else {}) | new
    found[name] = {"facts": about, "runs": {rival: runs[rival] for rival in order if rival in runs}}
    return found[name]["runs"]


def print_problem(name: str, runs: dict[str, Any]) -> None:
    rows = [[rival, *(f"{average(runs, rival, measure):.4g}" for measure in SCORES)] for rival in runs]
    print_table(name, ["model", *SCORES], rows)


def options(words: str, unit: str, n_most: int, n_quick: int, lists: Mapping[str, Sequence[str]]) -> argparse.Namespace:
    """The options that were given: how many splits, or seeds, and which names of each list to run.

    A quick run has few splits, and a temporary folder where none is named.
    """
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(f"--{unit}", type=int, default=n_most, help=f"{unit} of each problem (default {n_most})")
    for name, known in lists.items():
        names = "; ".join(known).replace("%", "%%")
        parser.add_argument(f"--{name}", nargs="+", choices=known, default=list(known), metavar="NAME", help=names)
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1), help="processes")
    parser.add_argument("--out", type=Path, help="folder for results and page instead of benchmarks/results and docs")
    parser.add_argument("--quick", action="store_true", help=f"{n_quick} {unit}, into a temporary folder")
    parser.add_argument("--page", action="store_true", help="write the page from the results, and run nothing")
    chosen = parser.parse_args()
    if getattr(chosen, unit) < 2:
        parser.error(f"--{unit} must be at least 2; got {getattr(chosen, unit)}. One has no standard error.")
    if chosen.quick:
        setattr(chosen, unit, n_quick)
        chosen.out = chosen.out or Path(tempfile.mkdtemp(prefix="spectralgp-"))
    return chosen


def results(name: str, out: Path | None, empty: dict[str, Any]) -> tuple[dict[str, Any], Path, Path]:
    """Results of earlier runs, their file, and the folder of the page."""
    path = (out or RESULTS) / f"{name}.json"
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else empty
    kept.pop("machine", None)  # that of this run is written
    return kept, path, out or ROOT / "docs"


def write_page(path: Path, docs: Path, write: Callable[[dict[str, Any], Path], Path]) -> None:
    """Write the page from a file of results."""
    if path.exists():
        print(f"\nwritten to {write(json.loads(path.read_text()), docs)}")
    else:
        print(f"no results in {path}: run without --page first, with the data at hand")
