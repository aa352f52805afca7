"""Real data: the default beside the paper's model, GPs without a graph, ridge regression and k-NN, on the same splits.

    python benchmarks/bench_real.py                        20 splits of every set, about twenty minutes on two cores
    python benchmarks/bench_real.py --rivals default       the default anew; the others' results are kept
    python benchmarks/bench_real.py --page                 the page anew, from the results
    python benchmarks/bench_real.py --quick                2 splits of 3 sets, into a temporary folder

Results are in benchmarks/results/real.json, the page that is made of them in docs/real-data.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from _paired import LARGER_IS_BETTER, average, bars_met, is_complete
from _real_data import SETS, Problem, RealSet, facts, problems, real_set, split
from _real_page import write
from _reporting import RESULTS, ROOT, print_table, save
from _rivals import RIVALS
from threadpoolctl import threadpool_limits

from spectralgp.scores import coverage, crps, root_mean_square_error

N_SPLITS = 20
QUICK_SPLITS, QUICK_SETS = 2, ("weather", "income changes", "sea temperature")
SCORES = (*LARGER_IS_BETTER, "coverage", "seconds", "processor_seconds")
DIGITS = 8  # of what is kept: far more than the page prints
Kept = dict[str, Any]  # what is in the file


def score(data: RealSet, n_train: int, seed: int, rival: str) -> dict[str, Any]:
    """A rival's scores on one split, or what it failed with."""
    train, test = split(len(data.signals), n_train, seed)
    observed = data.signals[test]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter(), time.process_time()
        try:
            forecast = RIVALS[rival].forecast(data.graph, data.inputs[train], data.signals[train], data.inputs[test])
            densities = forecast.log_density(observed)
        except Exception as error:  # a rival that fails is a finding, not the end of an hour's run
            return {"failed": f"split {seed}: {type(error).__name__}: {str(error).splitlines()[0]}"}
        took = time.perf_counter() - start[0], time.process_time() - start[1]
    found = {
        "log_density": np.mean(densities),
        "rmse": root_mean_square_error(observed, forecast.mean),
        "crps": np.mean(crps(observed, forecast.mean, forecast.std)),
        "coverage": coverage(observed, forecast.mean, forecast.std, 0.9),
        "seconds": took[0],
        "processor_seconds": took[1],
    }
    return {name: float(f"{value:.{DIGITS}g}") for name, value in found.items()} | {"warned": bool(caught)}


def gathered(splits: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The scores of a rival's splits, as a list for each score; None where it failed."""
    lists: dict[str, Any] = {name: [found.get(name) for found in splits] for name in SCORES}
    lists["warned"] = [found.get("warned", False) for found in splits]
    lists["failed"] = [found["failed"] for found in splits if "failed" in found]
    return lists


def one_split(problem: Problem, seed: int, rivals: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Every rival's scores on one split of a problem."""
    data = real_set(problem.set_name)
    return {rival: score(data, problem.n_train, seed, rival) for rival in rivals}


def on_one_thread() -> None:
    """Set up a process that shares the machine with others."""
    import numba

    threadpool_limits(1)
    numba.set_num_threads(1)


def run(
    chosen: Sequence[Problem], rivals: Sequence[str], n_splits: int, n_workers: int, kept: Kept, folder: Path
) -> None:
    """Run rivals on problems, and keep the results of each problem as soon as it is finished."""
    context = multiprocessing.get_context("spawn")  # a forked process would inherit pools of threads
    with ProcessPoolExecutor(n_workers, context, on_one_thread) as pool:
        waiting = {
            problem: [pool.submit(one_split, problem, seed, rivals) for seed in range(n_splits)] for problem in chosen
        }
        for problem, futures in waiting.items():
            splits = [future.result() for future in futures]
            new = {rival: gathered([found[rival] for found in splits]) for rival in rivals}
            runs = add(kept["problems"], problem.name, facts(problem, n_splits), new)
            save("real", kept, folder)
            print_problem(problem.name, runs)


def add(found: dict[str, Any], name: str, about: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Put new runs of a problem beside those that other rivals have of the same data and splits; all its runs."""
    old = found.get(name, {})
    runs = (old["runs"] if old.get("facts") == about else {}) | new
    found[name] = {"facts": about, "runs": {rival: runs[rival] for rival in RIVALS if rival in runs}}
    return found[name]["runs"]


def print_problem(name: str, runs: dict[str, Any]) -> None:
    rows = [[rival, *(f"{average(runs, rival, measure):.4g}" for measure in SCORES)] for rival in runs]
    print_table(name, ["model", *SCORES], rows)
    if is_complete(runs):
        print("bars not met:", ", ".join(bar for bar, met in bars_met(runs).items() if not met) or "none", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=N_SPLITS, help=f"splits of each set (default {N_SPLITS})")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET", help="; ".join(SETS))
    parser.add_argument(
        "--rivals", nargs="+", choices=RIVALS, default=list(RIVALS), metavar="MODEL", help="; ".join(RIVALS)
    )
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1), help="processes")
    parser.add_argument("--out", type=Path, help="folder for results and page instead of benchmarks/results and docs")
    parser.add_argument("--quick", action="store_true", help="2 splits of 3 sets, into a temporary folder")
    parser.add_argument("--page", action="store_true", help="write the page from the results, and run nothing")
    chosen = parser.parse_args()
    if chosen.splits < 2:
        parser.error(f"--splits must be at least 2; got {chosen.splits}. One split has no standard error.")
    if chosen.quick:
        chosen.splits, chosen.sets = QUICK_SPLITS, list(QUICK_SETS)
        chosen.out = chosen.out or Path(tempfile.mkdtemp(prefix="real-data-"))
    return chosen


def main() -> None:
    chosen = arguments()
    folder, docs = (chosen.out, chosen.out) if chosen.out else (RESULTS, ROOT / "docs")
    path = folder / "real.json"
    kept: Kept = json.loads(path.read_text()) if path.exists() else {"problems": {}}
    kept.pop("machine", None)  # that of this run is written
    if not chosen.page:
        found, absent = problems(chosen.sets)
        sizes = {problem.name for problem in found}
        here = set(chosen.sets) - set(absent)  # their old results go where they are not run with such a size any more
        kept["problems"] = {
            name: old for name, old in kept["problems"].items() if old["facts"]["set"] not in here or name in sizes
        }
        kept["absent"] = absent
        kept["settings"] = {"n_workers": chosen.workers, "sklearn": sklearn.__version__}
        run(found, chosen.rivals, chosen.splits, chosen.workers, kept, folder)
    if not path.exists():
        print(f"no results in {path}: run without --page first, with the data at hand")
        return
    print(f"\nwritten to {write(json.loads(path.read_text()), docs)}")


if __name__ == "__main__":
    main()
