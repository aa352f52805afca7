"""Time, memory and accuracy of fits with missing entries, each in a process of its own.

    python benchmarks/bench_missing_scale.py                     every problem, half an hour or so
    python benchmarks/bench_missing_scale.py --old FOLDER        also complete signals, against an earlier checkout
    python benchmarks/bench_missing_scale.py --only "45 x 30"    one problem; the others' results are kept
    python benchmarks/bench_missing_scale.py --part middling "1,000 x 200, outages"    as the main process starts it

Signals are drawn from a known low-pass filter, 10 dB above their noise, and learnt with one filter and white noise.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _large import (
    INPUT_KERNEL,
    TRUTH,
    conditions,
    draw_signals,
    filter_error,
    one_blas_thread,
    peak_memory,
    report,
    run_child,
    seconds,
    warm_up,
)
from _missing_page import COLUMNS, scale_rows
from _missing_values import at_random, outages, whole_nodes
from _reporting import RESULTS, print_table, save
from bench_large import N_SIGNALS, read
from settings import PAPER

from spectralgp import Graph, GraphGPRegressor, Polynomial
from spectralgp.datasets import sensor_graph

N_FEATURES = 8  # inputs far enough apart for the signals to be so many
N_LARGE = 1_000_000
REPEATS, ROUNDS = 5, 4  # fits of a process, processes of either checkout
COMPLETE = {"45 x 30": (45, 30), "1,000 x 200": (1_000, 200)}
Mask = Callable[[tuple[int, int], np.random.Generator], np.ndarray]
MIDDLING: dict[str, tuple[int, int, Mask, float]] = {  # nodes, signals, missing entries, most seconds
    "1,000 x 200, 30% at random": (1_000, 200, lambda shape, rng: at_random(shape, 0.3, rng), 60.0),
    "1,000 x 200, 30% as outages": (1_000, 200, lambda shape, rng: outages(shape, 0.3, rng), 60.0),
    "2,000 x 500, 50% at random": (2_000, 500, lambda shape, rng: at_random(shape, 0.5, rng), 600.0),
}
MOST_GIGABYTES, LARGEST_ERROR = 1.0, 0.02  # of the middling ones of 1,000 nodes
SMALL: dict[str, Mask] = {
    "10% at random": lambda shape, rng: at_random(shape, 0.1, rng),
    "50% at random": lambda shape, rng: at_random(shape, 0.5, rng),
    "90% at random": lambda shape, rng: at_random(shape, 0.9, rng),
    "5 nodes": lambda shape, rng: whole_nodes(shape, 5, rng),
    "5 signals": lambda shape, rng: whole_nodes(shape[::-1], 5, rng).T,
    "outages": lambda shape, rng: outages(shape, 0.3, rng),
    "all of these": lambda shape, rng: (
        at_random(shape, 0.1, rng) | whole_nodes(shape, 5, rng) | whole_nodes(shape[::-1], 5, rng).T
        | outages(shape, 0.2, rng)
    ),
}  # fmt: skip
SMALL_SECONDS = 2.0
LARGE_SECONDS, LARGE_GIGABYTES = 900.0, 8.0
SLOWDOWN = 1.02
LIMIT = 3600.0  # seconds after which a child is ended


def draw(n_nodes: int, n_signals: int) -> tuple[Graph, np.ndarray, np.ndarray, float]:
    """Graph, inputs, signals of the known filter, and the variance of their noise."""
    rng = np.random.default_rng(0)
    graph = sensor_graph(n_nodes, rng)
    inputs = rng.standard_normal((n_signals, N_FEATURES))
    return graph, inputs, *draw_signals(graph, TRUTH, inputs, n_signals, rng)


def found_by(model: GraphGPRegressor, took: float) -> dict[str, Any]:
    (learnt,) = model.fits_
    return {
        "seconds": {"fit": took},
        "gigabytes": peak_memory(),
        "filter_error": filter_error(TRUTH, model.graph_kernel_[0]),
        "method": str(learnt.method),
        "converged": bool(learnt.converged),
    }


def middling(name: str) -> dict[str, Any]:
    """One filter of degree 5, learnt from signals with missing values."""
    n_nodes, n_signals, mask, _ = MIDDLING[name]
    graph, inputs, signals, noise_variance = draw(n_nodes, n_signals)
    removed = mask(signals.shape, np.random.default_rng(1))
    incomplete = np.where(removed, np.nan, signals)
    model = GraphGPRegressor(graph, Polynomial(5), INPUT_KERNEL, **PAPER)
    took = seconds(
        lambda: model.fit(inputs, incomplete)
    )  # on as many threads as there are: matrices are of nodes by nodes
    found = found_by(model, took)
    return {**found, "missing": float(removed.mean()), "noise_ratio": model.noise_variance_ / noise_variance}


def small(name: str) -> dict[str, Any]:
    """One filter of degree 3 on 45 nodes; the first fit of a process is not counted."""
    graph, inputs, signals, _ = draw(45, 30)
    removed = SMALL[name](signals.shape, np.random.default_rng(1))
    incomplete = np.where(removed, np.nan, signals)
    model = GraphGPRegressor(graph, Polynomial(3), INPUT_KERNEL, **PAPER)
    with one_blas_thread():
        model.fit(inputs, incomplete)
        took = float(np.median([seconds(lambda: model.fit(inputs, incomplete)) for _ in range(3)]))
    return {**found_by(model, took), "missing": float(removed.mean())}


def large(folder: str) -> dict[str, Any]:
    """A million nodes: learn, and impute the missing values."""
    graph, signals, rest = read(Path(folder))
    removed = at_random(signals.shape, 0.2, np.random.default_rng(1))
    truth = signals[removed]
    signals[removed] = np.nan
    warm_up()
    model = GraphGPRegressor(graph, Polynomial(3), INPUT_KERNEL, **PAPER, prior=None, spectrum="chebyshev")
    with one_blas_thread():
        took = seconds(lambda: model.fit(rest["inputs"], signals))
        start = time.perf_counter()
        completed, std = model.impute(rest["inputs"], signals)
        filling = time.perf_counter() - start
    found = found_by(model, took)
    found["seconds"] = {"fit": took, "impute": filling, "total": took + filling}
    errors = (completed[removed] - truth) / std[removed]
    return {**found, "missing": float(removed.mean()), "standardised_error": float(np.sqrt(np.mean(errors**2)))}


def complete(name: str) -> dict[str, Any]:
    """Processor seconds of fits of complete signals."""
    graph, inputs, signals, _ = draw(*COMPLETE[name])
    model = GraphGPRegressor(graph, Polynomial(5), INPUT_KERNEL, **PAPER)
    times = []
    with one_blas_thread():
        model.fit(inputs, signals)
        for _ in range(REPEATS):
            start = time.process_time()
            model.fit(inputs, signals)
            times.append(time.process_time() - start)
    return {"times": times}


def slowdown(name: str, old: Path) -> dict[str, Any]:
    """Complete signals here and in an earlier checkout, processes in turn, so that other load slows both."""
    times: dict[str, list[float]] = {"old": [], "new": []}
    for _ in range(ROUNDS):
        for tree, folder in (("old", old / "src"), ("new", Path(__file__).resolve().parents[1] / "src")):
            found = run_child(__file__, "--part", "complete", name, environment={"PYTHONPATH": str(folder)})
            if "failed" in found:
                return found
            times[tree] += found["times"]
    fastest = {tree: min(found) for tree, found in times.items()}
    return {"ratio": fastest["new"] / fastest["old"], "seconds": fastest, "times": times}


PARTS = {"middling": middling, "small": small, "large": large, "complete": complete}


def shown(run: dict[str, Any]) -> dict[str, str]:
    """The cells of a table."""
    if "failed" in run:
        return {"seconds": "failed", "method": run["failed"]}
    if "ratio" in run:
        return {"seconds": f"{run['ratio']:.3f} times before"}
    clock = run["seconds"]
    fit = f"{clock['fit']:.1f} + {clock['impute']:.1f}" if "impute" in clock else f"{clock['fit']:.2f}"
    cells = {"seconds": fit, "GB": f"{run['gigabytes']:.2f}", "filter error": f"{run['filter_error']:.2%}"}
    return {**cells, "method": run["method"]}


def bars_met(runs: dict[str, Any]) -> dict[str, bool]:
    """Bars of the problems that were run, and whether each is met."""
    met: dict[str, bool] = {}
    done = {name: run for name, run in runs.items() if "failed" not in run}
    for name in (one for one in MIDDLING if one in runs):
        limit, run = MIDDLING[name][3], done.get(name)
        met[f"{name} in {limit:.0f} s"] = run is not None and run["seconds"]["fit"] <= limit
        if MIDDLING[name][0] == 1_000:
            met[f"{name} in {MOST_GIGABYTES:.0f} GB"] = run is not None and run["gigabytes"] <= MOST_GIGABYTES
            bar = f"{name}, filter error under {LARGEST_ERROR:.0%}"
            met[bar] = run is not None and run["filter_error"] < LARGEST_ERROR
    little = [name for name in runs if name.removeprefix("45 x 30, ") in SMALL]
    if little:
        quick = all(name in done and done[name]["seconds"]["fit"] <= SMALL_SECONDS for name in little)
        met[f"45 x 30, any mask, in {SMALL_SECONDS:.0f} s"] = quick
    for name in (one for one in runs if one.startswith(f"{N_LARGE:,}")):
        run = done.get(name)
        met[f"{name}, in {LARGE_SECONDS:.0f} s"] = run is not None and run["seconds"]["total"] <= LARGE_SECONDS
        met[f"{name}, in {LARGE_GIGABYTES:.0f} GB"] = run is not None and run["gigabytes"] <= LARGE_GIGABYTES
    for name in (one for one in runs if one.startswith("complete")):
        met[f"{name}, at most {SLOWDOWN} times before"] = name in done and done[name]["ratio"] <= SLOWDOWN
    return met


def problems(old: Path | None) -> dict[str, Callable[[], dict[str, Any]]]:
    """Problems to run, by name."""
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    if old is not None:
        found |= {f"complete, {name}": lambda name=name: slowdown(name, old) for name in COMPLETE}
    for name in SMALL:
        found[f"45 x 30, {name}"] = lambda name=name: run_child(__file__, "--part", "small", name, limit=LIMIT)
    for name in MIDDLING:
        found[name] = lambda name=name: run_child(__file__, "--part", "middling", name, limit=LIMIT)
    found[f"{N_LARGE:,} x {N_SIGNALS}, 20% at random"] = run_large
    return found


def run_large() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        prepared = run_child(str(Path(__file__).with_name("bench_large.py")), "prepare", N_LARGE, folder)
        if "failed" in prepared:
            return prepared
        return run_child(__file__, "--part", "large", folder, limit=LIMIT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, help="a checkout to compare the cost of complete signals with")
    parser.add_argument("--only", default="", help="problems whose names begin so")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part:
        report(PARTS[chosen.part[0]](chosen.part[1]))
        return
    path = chosen.out / "missing_scale.json"
    runs: dict[str, Any] = json.loads(path.read_text())["runs"] if path.exists() else {}
    for name, work in problems(chosen.old).items():
        if name.startswith(chosen.only):
            runs[name] = work()
            runs[name]["shown"] = shown(runs[name])
            print(name, runs[name]["shown"], flush=True)
            ordered = {one: runs[one] for one in [*problems(Path()), *runs] if one in runs}
            save(
                "missing_scale",
                {"conditions": conditions(), "runs": ordered, "bars_met": bars_met(ordered)},
                chosen.out,
            )
    print_table("fits with missing entries", ["problem", *COLUMNS], scale_rows(runs))
    for name, reached in bars_met(runs).items():
        print(f"{name}: {'met' if reached else 'NOT MET'}")


if __name__ == "__main__":
    main()
