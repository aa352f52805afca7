"""Partitioned graphs on Dask: what a pass costs over one machine's, and a graph larger than the workers' memory.

    python benchmarks/bench_dask.py             all of it, each part in a process of its own; about half an hour
    python benchmarks/bench_dask.py --quick     the same with small graphs, in a minute; nothing is written
    python benchmarks/bench_dask.py streamed    one part alone, added to earlier measurements

Nodes are random points in the unit square in random order. Both workers have one thread, and the single machine two.
Needs the extras `dask`, `zarr` and `large`, and 25 GB of disk in the folder for temporary files.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from _dask import (
    FULL,
    N_WORKERS,
    ONE_THREAD,
    QUICK,
    Memory,
    Sizes,
    cluster,
    cpu,
    kills,
    messages_in,
    moment_pass,
    run_on,
    sent_by,
    wave_at,
    write_points,
    write_signals,
)
from _dask_page import NEW
from _large import conditions, one_blas_thread, peak_memory, present_memory, report, run_child, watched_passes
from _reporting import RESULTS, print_table, save
from scipy.sparse import load_npz as load_sparse
from scipy.sparse import save_npz as save_sparse

from spectralgp import Chebyshev, Graph, GraphGPRegressor, PartitionedGraph, Polynomial
from spectralgp.graphs.operators import (
    MomentPass,
    column_products,
    largest_eigenvalue,
    random_normal,
    random_signs,
    tighten,
)

BARS = {"cpu": 1.25, "megabytes": 2.0, "memory": 1.3, "error": 1e-12}

# ------------------------------------------------------------------------------------ a pass in memory, both ways


def prepare(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Graph, partitions and signals in files, so that making them does not count."""
    cost, paper = sizes.cost, sizes.paper
    points = np.load(write_points(cost.n_nodes, folder))
    save_sparse(folder / "weights.npz", Graph.from_points(points, cost.n_neighbors).weights, compressed=False)
    np.save(folder / "signals.npy", np.random.default_rng(1).standard_normal((cost.n_signals, cost.n_nodes)))
    for number in cost.partitions:
        PartitionedGraph.from_points(
            points, folder / f"parts-{number}", n_partitions=number, n_neighbors=cost.n_neighbors
        )
    PartitionedGraph.from_points(points[:1000], folder / "tiny", n_partitions=N_WORKERS, n_neighbors=8)
    PartitionedGraph.from_points(
        points[: paper.n_nodes], folder / "paper", n_partitions=paper.n_partitions, n_neighbors=paper.n_neighbors
    )
    PartitionedGraph.from_points(
        points[: paper.n_small], folder / "small", n_partitions=paper.small_partitions, n_neighbors=8
    )
    return {"nodes": cost.n_nodes}


def one(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """The pass on one machine: seconds of the processor, and memory on top of the idle process."""
    cost = sizes.cost
    tiny = PartitionedGraph.open(folder / "tiny")
    rng = np.random.default_rng(0)
    warm = Graph.from_points(tiny.coordinates, 8).operator("combinatorial", np.empty((1, 1)))
    moment_pass(warm, random_normal(warm, 4, rng), 5)
    idle = present_memory()
    graph = Graph(load_sparse(folder / "weights.npz"))
    signals = np.load(folder / "signals.npy", mmap_mode="r")
    with one_blas_thread():
        operator = graph.operator("combinatorial", signals)
        tighten(operator, *largest_eigenvalue(operator))
        times = []
        for _ in range(cost.repeats):
            found = None  # and with it the state of the pass before
            block = operator.load(signals)
            before, start = time.process_time(), time.perf_counter()
            found = moment_pass(operator, block, cost.n_moments)
            times.append((time.process_time() - before, time.perf_counter() - start))
            del block
    np.save(folder / "moments.npy", found.moments)
    best = min(times)
    return {
        "edges": graph.n_edges,
        "cpu_seconds": best[0],
        "seconds": best[1],
        "all_cpu_seconds": [spent for spent, _ in times],
        "gigabytes": {"idle": idle, "peak": peak_memory()},
    }


def parted(sizes: Sizes, folder: Path, n_partitions: int) -> dict[str, Any]:
    """A pass by two workers."""
    cost = sizes.cost
    graph, tiny = PartitionedGraph.open(folder / f"parts-{n_partitions}"), PartitionedGraph.open(folder / "tiny")
    signals, expected = np.load(folder / "signals.npy", mmap_mode="r"), np.load(folder / "moments.npy")
    n_steps = (cost.n_moments - 1) // 2
    with cluster(folder) as client:
        warm = tiny.operator("combinatorial", signals)
        moment_pass(warm, random_normal(warm, 4, np.random.default_rng(0)), 5)
        idle = run_on(client, present_memory)
        with Memory(client.run(_process)) as memory:
            operator = graph.operator("combinatorial", signals)
            tighten(operator, *largest_eigenvalue(operator))
            times, moved = [], 0.0
            for _ in range(cost.repeats):
                found = None
                block = operator.load(signals)
                column_products(block, block)  # it is there once this is
                before, sent, start = cpu(client), sum(run_on(client, sent_by).values()), time.perf_counter()
                found = moment_pass(operator, block, cost.n_moments)
                took, after = time.perf_counter() - start, cpu(client)
                moved = (sum(run_on(client, sent_by).values()) - sent) / n_steps / 1e6
                times.append((after[0] - before[0], after[1] - before[1], took))
                del block
        error = float(np.max(np.abs(found.moments - expected)) / np.max(np.abs(expected)))
    best = min(times, key=lambda three: three[0] + three[1])
    return {
        "partitions": n_partitions,
        "hops": graph.n_hops,
        "halo": graph.halo,
        "cut": graph.cut,
        "cpu_seconds": {"workers": best[0], "client": best[1]},
        "seconds": best[2],
        "all_cpu_seconds": [workers + client for workers, client, _ in times],
        "megabytes_a_step": moved,
        "gigabytes": {
            "idle": [idle[name] for name in sorted(idle)],
            "peak": [memory.peak[name] for name in sorted(memory.peak)],
        },
        "error": error,
    }


def _process() -> int:
    import os

    return os.getpid()


def judged(alone: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """Ratios to the single machine's pass of the same run."""
    share = (alone["gigabytes"]["peak"] - alone["gigabytes"]["idle"]) / N_WORKERS
    over = [peak - idle for peak, idle in zip(run["gigabytes"]["peak"], run["gigabytes"]["idle"], strict=True)]
    ratios = {
        "cpu": sum(run["cpu_seconds"].values()) / alone["cpu_seconds"],
        "megabytes": run["megabytes_a_step"],
        "memory": max(over) / share,
        "error": run["error"],
    }
    return {**run, "ratios": ratios, "met": {name: bool(ratios[name] <= bar) for name, bar in BARS.items()}}


# ------------------------------------------------------------------------- a graph that workers have no memory for


def streamed(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Build a graph, write signals, fit, and write the mean at new inputs, none of it ever whole in memory."""
    import dask.array
    import zarr

    size = sizes.streamed
    points = np.load(write_points(size.n_nodes, folder), mmap_mode="r")
    start = time.perf_counter()
    graph = PartitionedGraph.from_points(
        points, folder / "graph", n_partitions=size.n_partitions, n_neighbors=size.n_neighbors
    )
    building = time.perf_counter() - start
    write_signals(points, size.n_signals, size.chunk, folder / "signals.zarr")
    inputs = np.linspace(0, 1, size.n_signals)[:, None]
    watch = watched_passes()
    spectrum = Chebyshev(n_moments=size.n_moments, max_moments=size.n_moments)
    model = GraphGPRegressor(graph, Polynomial(2), residual=None, carry=None, spectrum=spectrum)
    before = peak_memory()
    with messages_in(folder), cluster(folder, size.gigabytes) as client:
        processes = client.run(_process)
        idle = run_on(client, present_memory)
        with Memory(processes) as memory:
            with watch.lap("learning on the client"):
                model.fit(inputs, zarr.open_array(str(folder / "signals.zarr"), mode="r"))
            with watch.lap("mean, computed and written"):
                new = inputs[: size.n_new] + 0.5 / size.n_signals
                mean = model.predict(new)
                dask.array.to_zarr(mean, str(folder / "mean.zarr"))
        peaks = run_on(client, peak_memory)
        survived = client.run(_process) == processes
    written = zarr.open_array(str(folder / "mean.zarr"), mode="r")
    seen = np.asarray(written[:, : size.chunk])
    truth = wave_at(new, np.asarray(points[: size.chunk]))
    total = sum(peaks.values())
    return {
        **asdict(size),
        "edges": graph.n_edges,
        "hops": graph.n_hops,
        "halo": graph.halo,
        "folder_gigabytes": sum(file.stat().st_size for file in graph.folder.rglob("*") if file.is_file()) / 1e9,
        "signals_gigabytes": 8e-9 * size.n_signals * size.n_nodes,
        "building_seconds": building,
        "stages": watch.seconds,
        "gigabytes_of_workers": {
            "idle": sorted(idle.values()),
            "peak": sorted(peaks.values()),
            "watched": sorted(memory.peak.values()),
        },
        "gigabytes_of_client": {"before": before, "peak": peak_memory()},
        "killed": kills(folder) + len(memory.lost),
        "within": bool(total <= size.gigabytes and survived and not kills(folder)),
        "mean_is_finite": bool(np.all(np.isfinite(seen)) and written.shape == (size.n_new, size.n_nodes)),
        "mean_error": float(np.sqrt(np.mean((seen - truth) ** 2))),
        "noise_variance": float(model.noise_variance_),
    }


# --------------------------------------------------------------------- what an estimate for a billion nodes needs


def paper(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Seconds of a worker's processor a node and step, with ten edges a node, and what a task costs."""
    size = sizes.paper
    graph, small = PartitionedGraph.open(folder / "paper"), PartitionedGraph.open(folder / "small")
    rng, n_moments = np.random.default_rng(0), 2 * size.n_steps + 1
    with cluster(folder) as client:

        def timed(action: Any) -> dict[str, float]:
            before, start = cpu(client), time.perf_counter()
            action()
            took, after = time.perf_counter() - start, cpu(client)
            return {"workers": after[0] - before[0], "client": after[1] - before[1], "seconds": took}

        operator = graph.operator("combinatorial", np.empty((1, 1)))
        tighten(operator, *largest_eigenvalue(operator))  # compiles, and reads the partitions
        steps, _ = _counted_lanczos(operator)
        lanczos = timed(lambda: largest_eigenvalue(operator))
        block = random_normal(operator, size.n_signals, rng)
        column_products(block, block)
        gram = timed(lambda: moment_pass(operator, block, n_moments))
        probes = random_signs(operator, size.n_signals, rng)
        column_products(probes, probes)
        columns = timed(lambda: _probe_pass(operator, probes, n_moments))
        block = random_normal(operator, size.n_signals, rng)
        column_products(block, block)
        filtering = timed(lambda: operator.filtered(block, np.ones((size.n_steps + 1, size.n_signals, NEW))))
        tiny = small.operator("combinatorial", np.empty((1, 1)))
        tighten(tiny, *largest_eigenvalue(tiny))
        _, n_tasks = _counted_lanczos(tiny)
        tasks = timed(lambda: largest_eigenvalue(tiny))
    per = size.n_nodes * size.n_steps
    boundary = [graph.partition(number).boundary_ends[-1] for number in range(graph.n_partitions)]
    return {
        **asdict(size),
        "edges": graph.n_edges,
        "hops": graph.n_hops,
        "boundary": float(np.mean(boundary)),
        "lanczos_steps": steps,
        "nanoseconds_a_node_and_step": {
            "largest eigenvalue": 1e9 * lanczos["workers"] / size.n_nodes / steps,
            "moments of the signals": 1e9 * gram["workers"] / per,
            "moments of the probes": 1e9 * columns["workers"] / per,
            "filter": 1e9 * filtering["workers"] / per,
        },
        # of the processor: the scheduler is in the client's process here, and the machine may have other work
        "task_milliseconds": 1e3 * tasks["client"] / n_tasks,
    }


def _probe_pass(operator: Any, block: Any, n_moments: int) -> None:
    MomentPass(operator, block, gram=False).extend(n_moments)


def _counted_lanczos(operator: Any) -> tuple[int, int]:
    """Steps that the largest eigenvalue takes, and tasks."""
    plain, names = operator.submit, list[str]()

    def counted(function: Any, *arguments: Any, **options: Any) -> Any:
        names.append(getattr(function, "func", function).__name__)
        return plain(function, *arguments, **options)

    operator.submit = counted
    largest_eigenvalue(operator)
    del operator.submit
    return names.count("advance") // len(operator.keys) - 1, len(names)  # the first only multiplies the start


# ---------------------------------------------------------------------------------------------------------- all


def child(part: str, quick: bool, folder: Path, *more: object) -> dict[str, Any]:
    threads = ONE_THREAD | {"NUMBA_NUM_THREADS": str(N_WORKERS if part == "one" else 1)}
    options = ["--quick"] if quick else []
    found = run_child(__file__, part, *options, "--folder", folder, *more, environment=threads)
    print(part, *more, json.dumps(found), flush=True)
    return found


def measured(parts: list[str], quick: bool) -> dict[str, Any]:
    """Results of parts, each in processes of its own, with files that are removed at the end."""
    sizes, found = QUICK if quick else FULL, dict[str, Any]()
    folder = Path(tempfile.mkdtemp(prefix="bench-dask-"))
    try:
        if {"cost", "paper"} & set(parts):
            child("prepare", quick, folder)
        if "cost" in parts:
            alone = child("one", quick, folder)
            runs = [child("parted", quick, folder, "--partitions", number) for number in sizes.cost.partitions]
            runs = [run if "failed" in run else judged(alone, run) for run in runs]
            found["cost"] = {**asdict(sizes.cost), "one": alone, "runs": runs}
        for part in ("streamed", "paper"):
            if part in parts:
                found[part] = child(part, quick, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


def show(found: dict[str, Any]) -> None:
    rows = [
        [run["partitions"], *(f"{run['ratios'][name]:.3g}" for name in BARS), all(run["met"].values())]
        for run in found.get("cost", {}).get("runs", [])
        if "failed" not in run
    ]
    print_table("over one machine", ["partitions", "CPU time", "MB a step", "memory", "error", "met"], rows)
    for name, value in found.get("streamed", {}).items():
        print(f"{name:24s} {value}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["cost", "streamed", "paper"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", type=Path, help="of the files, for one part that the main process starts")
    parser.add_argument("--partitions", type=int)
    given = parser.parse_args()
    if given.folder is not None:
        sizes, (part,) = QUICK if given.quick else FULL, given.parts
        if part == "parted":
            report(parted(sizes, given.folder, given.partitions))
        else:
            report({"prepare": prepare, "one": one, "streamed": streamed, "paper": paper}[part](sizes, given.folder))
        return
    found = measured(given.parts, given.quick)
    show(found)
    if given.quick:
        return
    path = RESULTS / "dask.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    kept = {name: value for name, value in before.items() if name in ("cost", "streamed", "paper")}
    save("dask", {"conditions": conditions(), **kept, **found})


if __name__ == "__main__":
    main()
