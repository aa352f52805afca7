"""Many signals: processor seconds of fits, beside an eigendecomposition of a 400 x 400 matrix, and their memory.

    python benchmarks/bench_many_signals.py                          both bars; some minutes
    python benchmarks/bench_many_signals.py --only "200 x 1,000"     one case
    python benchmarks/bench_many_signals.py --all                    also 100 x 10,000, by a low rank

1. ``Polynomial(2)`` with the default input kernel, 1,000 signals on 200 nodes.
2. The default, 2,000 signals on 2,000 nodes.
3. ``Polynomial(2)``, 10,000 signals on 100 nodes.

Signals are random functions of three inputs through a low-pass filter, a residual that neighbours share, and noise.
Every case runs in a process of its own, on the threads that there are.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
from _reporting import print_table, save
from scipy.linalg import eigh

from spectralgp import Graph, GraphGPRegressor, Polynomial, decompose

CASES = {"200 x 1,000": (200, 1_000), "2,000 x 2,000": (2_000, 2_000), "100 x 10,000": (100, 10_000)}
BARS = {"200 x 1,000": (15.0, 4.0), "2,000 x 2,000": (300.0, 4.0)}  # processor seconds, GB
N_FUNCTIONS = 300


def problem(n_nodes: int, n_signals: int) -> tuple[Graph, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    graph = Graph.from_points(rng.random((n_nodes, 2)))
    spectrum = decompose(graph)
    inputs, positions = rng.standard_normal((n_signals, 3)), spectrum.eigenvalues / spectrum.upper
    waves, phases = rng.standard_normal((3, N_FUNCTIONS)) / 2, rng.uniform(0, 2 * np.pi, N_FUNCTIONS)
    functions = np.sqrt(2 / N_FUNCTIONS) * np.cos(inputs @ waves + phases)
    explained = functions @ (rng.standard_normal((N_FUNCTIONS, n_nodes)) * np.exp(-3 * positions))
    shared = 0.5 * rng.standard_normal((n_signals, n_nodes)) * np.exp(-positions)
    noise = 0.3 * rng.standard_normal((n_signals, n_nodes))
    return graph, inputs, (explained + shared) @ spectrum.eigenvectors.T + noise


def measure(name: str) -> dict[str, Any]:
    """One case in this process."""
    graph, inputs, signals = problem(*CASES[name])
    matrix = np.random.default_rng(0).standard_normal((400, 400))
    start = time.process_time()
    for _ in range(5):
        eigh(matrix + matrix.T)
    unit = (time.process_time() - start) / 5
    model = GraphGPRegressor(graph, None if name == "2,000 x 2,000" else Polynomial(2))
    start = time.process_time()
    model.fit(inputs, signals)
    seconds = time.process_time() - start
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    log_likelihood = float(model.log_marginal_likelihood_)
    return {"seconds": seconds, "ratio": seconds / unit, "gigabytes": gigabytes, "log_likelihood": log_likelihood}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--measure", choices=CASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure)))
        return
    chosen = [arguments.only] if arguments.only else list(CASES if arguments.all else BARS)
    found, rows = {}, []
    for name in chosen:
        command = [sys.executable, __file__, "--measure", name]
        ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found[name] = one = json.loads(ended.stdout.splitlines()[-1])
        bar = BARS.get(name)
        is_met = bar is not None and one["seconds"] <= bar[0] and one["gigabytes"] <= bar[1]
        met = "" if bar is None else "met" if is_met else "missed"
        allowed = "" if bar is None else f"{bar[0]:.0f} s, {bar[1]:.0f} GB"
        rows.append([name, f"{one['seconds']:.1f}", f"{one['ratio']:.0f}", f"{one['gigabytes']:.1f}", allowed, met])
    header = ["nodes x signals", "processor s", "eigendecompositions", "GB", "bar", ""]
    print_table("Many signals", header, rows)
    save("many_signals", found)


if __name__ == "__main__":
    main()
