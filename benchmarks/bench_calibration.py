"""Simulation-based calibration: whether intervals hold what they say, for data drawn from each model.

    python benchmarks/bench_calibration.py                    200 data sets per setting, over two hours
    python benchmarks/bench_calibration.py --sets 40          fewer
    python benchmarks/bench_calibration.py --only counts      settings whose name begins so
    python benchmarks/bench_calibration.py --page             write docs/calibration.md from the results, run nothing
    python benchmarks/bench_calibration.py --small --out DIR  a few data sets of some settings, results and page in DIR

Results are kept in benchmarks/results/calibration.json. A run that was interrupted goes on where it stopped: data sets
that were scored by the same code are not scored again, those of other code are. `--workers 2` takes two processes.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import _calibration
from _calibration import CELLS
from _calibration_page import write
from _reporting import save
from _splits import on_one_thread, results, write_page

import spectralgp

N_SETS, N_SMALL = 200, 8
SMALL = (
    "regression, true hyperparameters, 5, complete",
    "regression, Polynomial(2), 20, complete",
    "observations, equal weights, 1, 4",
    "counts, true rates, 2",
    "counts, Poisson, 2, 20, 1",
    "classes, classifier, 5",
    "forecasts, complete",
)
SECONDS_BETWEEN_SAVES = 30.0
Kept = dict[str, Any]


def digest_of_code() -> str:
    """Of the package and of the settings: results of other code are not added to."""
    files = [*sorted(Path(spectralgp.__file__).parent.rglob("*.py")), Path(_calibration.__file__)]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def run_set(name: str, seed: int) -> dict[str, Any]:
    """Scores of a data set."""
    return CELLS[name].run(seed)


def add(kept: Kept, new: dict[str, Any]) -> None:
    """Put the scores of a data set to those of its setting."""
    kept["n_sets"] += 1
    if "failed" in new:
        kept["failed"].append(new["failed"])
        return
    kept["seconds"] = round(kept["seconds"] + new["seconds"], 2)
    kept["warned"] += new["warned"]
    for row, scores in new["rows"].items():
        lists = kept["rows"].setdefault(row, {name: [] for name in scores})
        for name, score in scores.items():
            lists[name].append(score)


def scored(names: Sequence[str], starts: dict[str, int], n_sets: int, n_workers: int) -> Iterator[tuple[str, Any]]:
    """Settings and scores of the data sets that are wanted beyond those that are kept, in order."""
    wanted = [(name, seed) for name in names for seed in range(starts[name], n_sets)]
    if not wanted:
        return
    if n_workers == 1:
        on_one_thread()
        for name, seed in wanted:
            yield name, run_set(name, seed)
        return
    context = multiprocessing.get_context("spawn")  # a forked process would inherit pools of threads
    with ProcessPoolExecutor(n_workers, context, on_one_thread) as pool:
        yield from zip((name for name, _ in wanted), pool.map(run_set, *zip(*wanted, strict=True)), strict=True)


def run_all(names: Sequence[str], n_sets: int, n_workers: int, kept: Kept, folder: Path) -> None:
    """Score data sets, and save results from time to time."""
    digest, cells = digest_of_code(), kept["cells"]
    for name in names:
        if cells.get(name, {}).get("code") != digest:
            cells[name] = {"code": digest, "n_sets": 0, "seconds": 0.0, "warned": 0, "failed": [], "rows": {}}
    kept["cells"] = {name: cells[name] for name in CELLS if name in cells}
    last, current = time.monotonic(), ""
    for name, new in scored(names, {name: cells[name]["n_sets"] for name in names}, n_sets, n_workers):
        add(cells[name], new)
        if name != current:
            print(f"\n{name}", end=" ", flush=True)
            current = name
        print("." if "rows" in new else "F", end="", flush=True)
        if time.monotonic() - last > SECONDS_BETWEEN_SAVES:
            save("calibration", kept, folder)
            last = time.monotonic()
    save("calibration", kept, folder)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, help=f"data sets of a setting (default {N_SETS})")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="settings whose names begin with one of these")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="folder for results and page instead of benchmarks/results and docs")
    parser.add_argument("--small", action="store_true", help=f"{N_SMALL} data sets of a few quick settings")
    parser.add_argument("--page", action="store_true", help="write the page from the results, and run nothing")
    chosen = parser.parse_args(arguments)
    n_sets = chosen.sets or (N_SMALL if chosen.small else N_SETS)
    if n_sets < 2:
        parser.error(f"--sets must be at least 2; got {n_sets}. One has no standard error.")
    if chosen.small and chosen.out is None:
        parser.error("--out must be given with --small. The page in docs is that of a full run.")
    names = [name for name in (SMALL if chosen.small else CELLS) if name.startswith(tuple(chosen.only or [""]))]
    if not names:
        parser.error(f"--only must be the beginning of a setting's name; got {chosen.only}. They are: {list(CELLS)}")
    kept, path, docs = results("calibration", chosen.out, {"cells": {}})
    if not chosen.page:
        run_all(names, n_sets, chosen.workers, kept, path.parent)
    write_page(path, docs, write)


if __name__ == "__main__":
    main()
