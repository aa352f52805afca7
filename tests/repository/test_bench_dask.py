"""The benchmark of partitioned graphs: its ratios by hand, its page, and a run with small graphs."""

from __future__ import annotations

import pytest

from spectralgp.graphs.partitioned import local
from tolerances import EXACT

MODULES = ("_dask", "_dask_page", "_in_turn", "write_performance", "bench_dask")


def run_of(workers, client, peaks, moved=1.0, error=1e-15):
    return {
        "partitions": 2,
        "halo": 0.02,
        "seconds": 5.0,
        "cpu_seconds": {"workers": workers, "client": client},
        "megabytes_a_step": moved,
        "gigabytes": {"idle": [0.5, 0.25], "peak": peaks},
        "error": error,
    }


def test_ratios_are_to_the_pass_of_one_machine(bench):
    """Four seconds of one machine, and a gigabyte over its idle state, of which half is a worker's share."""
    alone = {"cpu_seconds": 4.0, "gigabytes": {"idle": 0.5, "peak": 1.5}}
    good = bench["bench_dask"].judged(alone, run_of(4.5, 0.5, [1.0, 0.9]))
    assert good["ratios"] == pytest.approx({"cpu": 1.25, "megabytes": 1.0, "memory": 1.3, "error": 1e-15}, rel=EXACT)
    assert good["met"]["cpu"]
    bad = bench["bench_dask"].judged(alone, run_of(4.5, 0.6, [1.0, 0.95], moved=2.1, error=1e-11))
    assert bad["met"] == {"cpu": False, "megabytes": False, "memory": False, "error": False}


PAPER = {
    "n_nodes": 2_000_000,
    "n_partitions": 2,
    "small_partitions": 64,
    "edges": 20_000_000,
    "hops": 8,
    "boundary": 25_000.0,
    "lanczos_steps": 50,
    "nanoseconds_a_node_and_step": {
        "largest eigenvalue": 40.0,
        "moments of the signals": 200.0,
        "moments of the probes": 100.0,
        "filter": 60.0,
    },
    "task_milliseconds": 0.5,
}


def test_the_estimate_for_a_billion_nodes_by_hand(bench):
    """A partition a core has 10^9 / 1024 nodes, and a boundary that grew with their root."""
    page = "\n".join(bench["_dask_page"].on_paper({"paper": PAPER}, 0.5, bench["write_performance"].table))
    own = 1e9 / 1024
    computing = 200e-9 * own * 64
    boundary = 25_000 * (own / 1e6) ** 0.5
    message = 2 * 32 * 8 * boundary
    network = 8 * (4 * message + 1024 * 2 * 8 * 32**2 * 8) / 1.25e9
    # a square of 16 partitions has 8 with a side on another machine, and 4 with a corner on three
    tasks = 8 * 64 * (3 * 16 + 8 * 1 + 4 * 3) * 0.5e-3
    row = (
        f"| moments of the signals | 64 | 8 | 200 ns | {computing:.0f} s | {message / 1e6:.1f} MB | {network:.0f} s | "
        f"{tasks:.0f} s | {computing + network + tasks:.0f} s |"
    )
    assert row in page
    assert f"{1024**2 * 0.5e-3:.0f} s each for cutting the signals" in page


@pytest.mark.parametrize("has_numba", [True, False])
def test_partitions_in_turn_do_what_the_whole_graph_does(bench, monkeypatch, has_numba):
    """What benchmarks/gpu.py runs on a GPU, here on the CPU; without Numba by the same sparse products as there."""
    if not has_numba:
        monkeypatch.setattr(local, "find_spec", lambda name: None)
    found = bench["_in_turn"].partitions("cpu")
    assert max(found["float64"].values()) < 1e-13
    assert max(found["float32"].values()) < 1e-5


@pytest.mark.slow
def test_a_quick_run_measures_every_part(bench):
    found = bench["bench_dask"].measured(["cost", "streamed", "paper"], quick=True)
    assert not [part for part in found.values() if "failed" in part]
    assert [run["partitions"] for run in found["cost"]["runs"]] == [2]
    assert all(run["met"]["error"] and run["met"]["megabytes"] for run in found["cost"]["runs"])
    streamed = found["streamed"]
    assert streamed["within"]
    assert streamed["mean_is_finite"]
    assert streamed["mean_error"] < 0.3 / 2  # what noise leaves in the means of the nodes alone, of four signals
    assert streamed["killed"] == 0
    # the means of the nodes, of four signals, take a quarter of the noise; five standard errors are 1.2%
    assert streamed["noise_variance"] == pytest.approx(0.75 * 0.09, rel=0.02)
    assert found["paper"]["task_milliseconds"] > 0
