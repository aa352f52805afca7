"""Rivals on the same splits, or seeds, in several processes: what `bench_real.py` and `bench_missing.py` share."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from _paired import LARGER_IS_BETTER, average
from _reporting import print_table
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
    """Each problem with the scores of every rival, as soon as it is finished."""
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
    """Put new runs of a problem beside those that other rivals have of the same data and splits; all its runs."""
    old = found.get(name, {})
    runs = (old["runs"] if old.get("facts") == about else {}) | new
    found[name] = {"facts": about, "runs": {rival: runs[rival] for rival in order if rival in runs}}
    return found[name]["runs"]


def print_problem(name: str, runs: dict[str, Any]) -> None:
    rows = [[rival, *(f"{average(runs, rival, measure):.4g}" for measure in SCORES)] for rival in runs]
    print_table(name, ["model", *SCORES], rows)
