"""Evaluations and time that learning takes on smooth random fields, before and after a change of the solver.

    python benchmarks/bench_learning.py                  this checkout; half a minute
    python benchmarks/bench_learning.py --before OLD     the same with another checkout's package too, for ratios
    python benchmarks/bench_learning.py measure FOLDER   one package alone, as the main process starts it

Fields are white noise through ``exp(-strength lambda / 2)`` on the scaled Laplacian, with inputs that explain them and
noise 10 dB below. On small graphs, of sensors, the spectrum is exact; on the large one, of points with their nearest
neighbours, it is a quadrature. Every package reads the same files.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _fields import MOST_EXACT, smooth_fields
from _reporting import ROOT, print_table, save
from scipy.sparse import load_npz as load_sparse
from scipy.sparse import save_npz as save_sparse
from sklearn.gaussian_process.kernels import RBF

from spectralgp import Graph, GraphGPRegressor, Polynomial

SIZES = {(300, 30): 110, (20_000, 32): 450}  # nodes, signals: evaluations allowed
STRENGTHS = (3.0, 20.0, 100.0)
DEGREE = 8
REPEATS = 3


def prepare(n_nodes: int, n_signals: int, strength: float, folder: Path) -> None:
    """Graph, inputs and fields, in files."""
    graph, inputs, signals = smooth_fields(n_nodes, n_signals, strength)
    folder.mkdir()
    save_sparse(folder / "weights.npz", graph.weights)
    np.savez(folder / "fields.npz", inputs=inputs, signals=signals)


def measure(folder: Path) -> dict[str, Any]:
    """Evaluations, the median time of a fit after its passes, and the maximum it found."""
    fields = np.load(folder / "fields.npz")
    graph = Graph(load_sparse(folder / "weights.npz"))
    spectrum = "chebyshev" if graph.n_nodes > MOST_EXACT else "exact"
    times = []
    warnings.simplefilter("ignore")  # steep filters are no matter here
    for _ in range(1 + REPEATS):
        start = time.process_time()
        model = GraphGPRegressor(graph, Polynomial(DEGREE), RBF(1.0), spectrum=spectrum)
        model.fit(fields["inputs"], fields["signals"])
        times.append(time.process_time() - start)
    (fit,) = model.fits_
    return {
        "evaluations": int(fit.n_evaluations),
        "seconds": float(np.median(times[1:])),
        "log_posterior": float(fit.log_posterior),
        "converged": bool(fit.converged),
    }


def measured_by(checkout: Path, folder: Path) -> dict[str, Any]:
    """Evaluations with the package of a checkout, in another process, on one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    environment = {**os.environ, **threads, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, __file__, "measure", str(folder)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, Any] = json.loads(ended.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="another checkout to compare with")
    before = parser.parse_args().before
    runs = []
    with tempfile.TemporaryDirectory() as place:
        for (n_nodes, n_signals), bar in SIZES.items():
            for strength in STRENGTHS:
                folder = Path(place) / f"{n_nodes}-{strength:g}"
                prepare(n_nodes, n_signals, strength, folder)
                run = {"nodes": n_nodes, "signals": n_signals, "strength": strength, "bar": bar}
                run |= {"after": measured_by(ROOT, folder)}
                if before is not None:
                    run |= {"before": measured_by(before, folder)}
                runs.append(run)
    print_table(
        f"degree {DEGREE}, evaluations and processor time of a fit",
        ["nodes x signals", "strength", "evaluations", "bar", "met", "before", "time / before", "nats gained"],
        [row_of(run) for run in runs],
    )
    save("learning", {"degree": DEGREE, "runs": runs})


def row_of(run: dict[str, Any]) -> list[object]:
    after, before = run["after"], run.get("before")
    met = after["converged"] and after["evaluations"] <= run["bar"]
    row = [f"{run['nodes']:,} x {run['signals']}", f"{run['strength']:g}", after["evaluations"], run["bar"]]
    row += ["yes" if met else "NO"]
    if before is None:
        return [*row, "", "", ""]
    gained = after["log_posterior"] - before["log_posterior"]
    return [*row, before["evaluations"], f"{after['seconds'] / before['seconds']:.2f}", f"{gained:+.1e}"]


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(Path(sys.argv[2]))))
    else:
        main()
