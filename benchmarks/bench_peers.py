"""Other Gaussian processes on the same signals, each in a process of its own on a few threads.

    python benchmarks/bench_peers.py                             every problem and rival, two hours or so
    python benchmarks/bench_peers.py --only "200 x 100"          these problems; the others' results are kept
    python benchmarks/bench_peers.py --rivals spectralgp floor   some rivals; the others' results are kept
    python benchmarks/bench_peers.py --jobs 6 --limit 60       where there are cores for six at a time, two each
    python benchmarks/bench_peers.py --cuda --out folder         those on torch compute on a GPU

What everyone learns is in `_peers.py`. Time is of the processor, all threads together, and of the clock; imports and a
small problem before come uncounted, and what takes less than some seconds is run three times, of which the fastest
counts. A rival that has an end to its patience is asked for what it has by then; one that has not is ended.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import Queue
from threading import Lock
from typing import Any

import numpy as np
from _large import GIGABYTE, conditions, peak_memory, present_memory, run_child
from _peers import COMPLETE, INCOMPLETE, OUT_OF_TIME, Answer, Clock, Problem, Watch
from _reporting import RESULTS, print_table, save

SIZES = ((45, 30), (200, 100), (1_000, 200), (2_000, 500))  # nodes, signals
LIMIT = 40.0  # seconds of the processor, to learn and again to predict
MEGABYTE = 1e-3  # in GB
MOST_GIGABYTES = 8.0  # of address space beyond what is there when learning begins
REPEATS, SHORT = 3, 5.0  # runs of what takes less than so many seconds together
MOST_MARKS = 30  # of learning, at which likelihoods are computed
NEAR_NATS = 1.0  # of the highest likelihood that a rival reaches: when it is there
SLACK_NATS = 0.1  # within which likelihoods are equal
FASTER, PREDICTS_FASTER, INCOMPLETE_SECONDS, OVER_FLOOR = 10.0, 1_000.0, 3.0, 2.0
OVER_FLOOR_CLOCK = 2.5
OURS, FLOOR = "spectralgp", "floor"
LIBRARIES = ("numpy", "scikit-learn", "torch", "gpytorch", "botorch", "geometric_kernels")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE"}  # threads that wait are no work, on a machine that is busy


def problem_name(n_nodes: int, n_signals: int, is_incomplete: bool) -> str:
    return f"{n_nodes:,} x {n_signals}, {'30% missing' if is_incomplete else 'complete'}"


PROBLEMS = {problem_name(*size, incomplete): (*size, incomplete) for incomplete in (False, True) for size in SIZES}


def learnt_by(rival: Any, problem: Problem, clock: Clock, device: str) -> Answer:
    """The fastest of a few runs, where one is short; the clock keeps its marks."""
    best: tuple[Answer, list[Any]] | None = None
    total = 0.0
    for _ in range(REPEATS):
        clock.begin()
        answer = rival(problem, clock, device)
        total += clock.marks[-1][0]
        if best is None or clock.marks[-1][0] < best[1][-1][0]:
            best = answer, clock.marks
        if total > SHORT:
            break
    assert best is not None
    clock.marks = best[1]
    return best[0]


def learning(problem: Problem, answer: Answer, clock: Clock) -> dict[str, Any]:
    """Learnt states by time; likelihoods at some of the marks, among them the last and the best."""
    chosen = np.unique(np.geomspace(1, len(clock.marks), MOST_MARKS).astype(int)) - 1
    is_known = np.isfinite(problem.signals).all()
    path = []
    if is_known:
        for place in chosen:
            processor, wall, state = clock.marks[place]
            path.append([processor, wall, answer.learnt(state).log_likelihood(problem)])
    last = answer.learnt(clock.marks[-1][2])
    return {
        "log_likelihood": path[-1][2] if path else last.log_likelihood(problem),
        "filter_error": last.filter_error(problem),
        "noise_variance": last.noise_variance,
        "path": path,
    }


def scored(problem: Problem, mean: np.ndarray, variance: np.ndarray, noise: float) -> dict[str, float]:
    """Error at the new inputs, and log density of a value there."""
    errors, whole = problem.new_signals - mean, np.maximum(variance, 0) + noise
    density = float(np.mean(-0.5 * (errors**2 / whole + np.log(2 * np.pi * whole))))
    return {"rmse": float(np.sqrt(np.mean(errors**2))), "log_density": density}


def measure(rival_name: str, problem_name: str, out: Path, limit: float, device: str) -> None:
    """Run a method on a problem in this process; its results are written as soon as it ends."""
    n_nodes, n_signals, is_incomplete = PROBLEMS[problem_name]
    rival = (INCOMPLETE if is_incomplete else COMPLETE)[rival_name]
    if not rival_name.startswith("paper"):  # which has nothing to import, and no clock to end it
        rival(Problem.drawn(20, 12, is_incomplete), Clock(2.0, is_wall=device != "cpu"), device).predict()
    problem = Problem.drawn(n_nodes, n_signals, is_incomplete)
    _ = problem.laplacian  # a dense matrix is part of the problem
    if device == "cpu":
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (int(taken + MOST_GIGABYTES * GIGABYTE), resource.RLIM_INFINITY))
    watch = Watch(device != "cpu")
    watch.allow(1.5 * limit)  # a single step may be longer than the limit
    before = present_memory()
    clock = Clock(limit, is_wall=device != "cpu")
    answer = learnt_by(rival, problem, clock, device)
    found: dict[str, Any] = {
        "seconds": {"processor": clock.marks[-1][0], "wall": clock.marks[-1][1]},
        "gigabytes": {"before": before, "learning": peak_memory()},
        "says": answer.says,
        "is_stopped": answer.says.startswith("stopped after"),
    }
    out.write_text(json.dumps(found))
    if rival_name != FLOOR:
        watch.allow(np.inf)
        found |= learning(problem, answer, clock)
        watch.allow(limit)
        found["prediction"] = {"failed": f"not finished in {limit:.0f} s"}
        out.write_text(json.dumps(found))
        times: list[tuple[float, float]] = []
        while len(times) < REPEATS and sum(time_ for time_, _ in times) < SHORT:
            start = time.process_time(), time.perf_counter()
            mean, variance = answer.predict()
            times.append((time.process_time() - start[0], time.perf_counter() - start[1]))
            if not times[1:]:
                found["gigabytes"]["predicting"] = peak_memory()
        found["prediction"] = {"processor": min(times)[0], "wall": min(wall for _, wall in times)}
        found["prediction"] |= scored(problem, mean, variance, found["noise_variance"])
    out.write_text(json.dumps(found))


def run(problem: str, rival: str, limit: float, device: str, n_threads: int, slot: int | None) -> dict[str, Any]:
    """A rival on a problem in a process of its own, which a slot gives two cores that no other slot has."""
    with tempfile.TemporaryDirectory() as folder:
        out, environment = Path(folder) / "found.json", dict.fromkeys(THREADS, str(n_threads)) | PASSIVE
        arguments = ("--child", rival, problem, out, "--limit", limit, "--device", device)
        arguments += () if slot is None else ("--slot", slot)
        ended = run_child(__file__, *arguments, limit=30 * limit, environment=environment)
        found: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    if "failed" not in ended:
        return found
    words = ended["failed"]
    if words == OUT_OF_TIME or "not finished" in words:
        words = f"not finished in {limit:.0f} s"
    elif "allocate" in words or "MemoryError" in words or "memory" in words:
        words = f"more than {MOST_GIGABYTES:.0f} GB"
    if not found:
        return {"failed": words}
    if "processor" not in found.get("prediction", {"processor": 0}):
        found["prediction"] = {"failed": words}
    return found


def reached(found: dict[str, Any]) -> tuple[float, float]:
    """Processor and clock time at which a rival came within a nat of the highest likelihood that it reached."""
    path = found.get("path") or [[*found["seconds"].values(), 0.0]]
    highest = max(likelihood for *_, likelihood in path)
    return next((processor, wall) for processor, wall, value in path if value >= highest - NEAR_NATS)


def reached_ours(found: dict[str, Any], ours: dict[str, Any]) -> float | None:
    """Seconds of the processor at which a rival came within a nat of our likelihood; None where it never did."""
    path, wanted = found.get("path") or [], ours["log_likelihood"] - NEAR_NATS
    return next((processor for processor, _, likelihood in path if likelihood >= wanted), None)


def bars_met(runs: dict[str, Any]) -> dict[str, Any]:
    """Bars of the problems that were run: name, figures and whether each is met."""
    met: dict[str, Any] = {}

    def bar(name: str, found: float, limit: float, is_met: bool) -> None:
        known = np.isfinite(found)  # else there was no answer to compare with
        met[name] = {"found": found if known else None, "bar": limit, "met": bool(is_met) if known else None}

    for problem, by_rival in runs.items():
        ours = by_rival.get(OURS, {})
        if "seconds" not in ours:
            continue
        for name in (one for one in by_rival if one.startswith("GPyTorch") and "seconds" in by_rival[one]):
            theirs = by_rival[name]
            if theirs.get("log_likelihood") is None or theirs["is_stopped"]:  # it has not finished
                continue
            ratio = reached(theirs)[0] / ours["seconds"]["processor"]
            behind = ours["log_likelihood"] - max([one[2] for one in theirs["path"]] or [theirs["log_likelihood"]])
            bar(f"{problem}: times faster than {name}", ratio, FASTER, ratio >= FASTER and behind >= -SLACK_NATS)
        if problem.startswith("1,000 x 200, complete"):
            theirs = [found["prediction"] for name, found in by_rival.items() if name.startswith("GPyTorch")]
            seconds = [one.get("processor", np.inf) for one in theirs if one]  # what has no answer takes for ever
            if seconds:
                ratio = min(seconds) / ours["prediction"]["processor"]
                bar(
                    f"{problem}: times faster in predicting than GPyTorch",
                    ratio,
                    PREDICTS_FASTER,
                    ratio >= PREDICTS_FASTER,
                )
            if FLOOR in by_rival:
                ratio = ours["seconds"]["processor"] / by_rival[FLOOR]["seconds"]["processor"]
                bar(f"{problem}: over the floor", ratio, OVER_FLOOR, ratio <= OVER_FLOOR)
        if problem.startswith("2,000 x 500, complete") and FLOOR in by_rival:
            ratio = ours["seconds"]["wall"] / by_rival[FLOOR]["seconds"]["wall"]
            bar(f"{problem}: over the floor, by the clock", ratio, OVER_FLOOR_CLOCK, ratio <= OVER_FLOOR_CLOCK)
        if problem.startswith("200 x 100, 30%"):
            taken = ours["seconds"]["processor"]
            bar(f"{problem}: seconds", taken, INCOMPLETE_SECONDS, taken <= INCOMPLETE_SECONDS)
        others = {
            name: max(found["gigabytes"].values()) - found["gigabytes"]["before"]
            for name, found in by_rival.items()
            if name not in (OURS, FLOOR) and "gigabytes" in found
        }
        if others:
            least = min(others, key=others.__getitem__)
            own = max(ours["gigabytes"].values()) - ours["gigabytes"]["before"]
            theirs = max(others[least], MEGABYTE)  # less than that is rounding
            bar(f"{problem}: memory over that of {least}", own / theirs, 1.0, own <= theirs)
    return met


def shown(found: dict[str, Any]) -> list[str]:
    if "seconds" not in found:
        return [found["failed"]]
    spent, prediction = found["seconds"], found.get("prediction", {})
    cells = [f"{spent['processor']:.3g} ({spent['wall']:.3g})", found["says"]]
    cells.append(f"{max(found['gigabytes'].values()):.2f}")
    if found.get("log_likelihood") is not None:
        cells.append(f"{found['log_likelihood']:,.1f}")
    if "filter_error" in found:
        cells.append(f"{found['filter_error']:.1%}")
    return [*cells, prediction.get("failed") or f"{prediction.get('processor', np.nan):.3g} s"]


def versions() -> dict[str, str]:
    """Of the libraries that are here."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="problems whose names begin so")
    parser.add_argument("--rivals", nargs="+", help="these alone")
    parser.add_argument("--cuda", action="store_true", help="rivals on torch compute on a GPU")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of the processor to learn, and to predict")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time, each on two cores of its own")
    parser.add_argument("--threads", type=int, default=2, help="of each process")
    parser.add_argument("--slot", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cpu", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        if chosen.slot is not None:
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[2 * chosen.slot : 2 * chosen.slot + 2])
        measure(chosen.child[0], chosen.child[1], Path(chosen.child[2]), chosen.limit, chosen.device)
        print("{}")
        return
    if chosen.jobs * 2 > (os.cpu_count() or 1) and chosen.jobs > 1:
        parser.error(f"--jobs must leave two cores to each; got {chosen.jobs} on {os.cpu_count()} cores.")
    path = chosen.out / "peers.json"
    runs: dict[str, Any] = json.loads(path.read_text())["runs"] if path.exists() else {}
    device = "cuda" if chosen.cuda else "cpu"
    slots: Queue[int] = Queue()
    for slot in range(chosen.jobs):
        slots.put(slot)
    writing = Lock()

    def one(task: tuple[str, str]) -> None:
        slot = slots.get()
        found = run(*task, chosen.limit, device, chosen.threads, slot if chosen.jobs > 1 else None)
        slots.put(slot)
        with writing:
            problem, rival = task
            runs.setdefault(problem, {})[rival] = {**found, "load_average": os.getloadavg()[0]}
            print(problem, rival, *shown(found), sep=" | ", flush=True)
            order = {name: INCOMPLETE if is_incomplete else COMPLETE for name, (*_, is_incomplete) in PROBLEMS.items()}
            ordered = {
                name: {rival: runs[name][rival] for rival in rivals if rival in runs[name]}
                for name, rivals in order.items()
                if name in runs
            }
            settings = {"limit": chosen.limit, "device": device, "versions": versions(), "gigabytes": MOST_GIGABYTES}
            settings |= {"jobs": chosen.jobs, "threads": chosen.threads}
            result = {"conditions": conditions(), "settings": settings, "runs": ordered, "bars": bars_met(ordered)}
            save("peers", result, chosen.out)

    tasks = [
        (problem, rival)
        for problem, (*_, is_incomplete) in PROBLEMS.items()
        for rival in (INCOMPLETE if is_incomplete else COMPLETE)
        if problem.startswith(chosen.only) and (not chosen.rivals or rival in chosen.rivals)
    ]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        list(pool.map(one, tasks))
    rows = [[name, one["found"], one["bar"], one["met"]] for name, one in bars_met(runs).items()]
    print_table("bars", ["bar", "found", "asked", ""], rows)


if __name__ == "__main__":
    main()
