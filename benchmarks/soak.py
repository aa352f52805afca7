"""Many fits in one process, and the same fits in many processes and threads: nothing grows, and every bit is the same.

    python benchmarks/soak.py                 a thousand fits, eight processes and eight threads, some minutes
    python benchmarks/soak.py --fits 200      fewer

A fit here is one of three in turn (one kernel, one with missing values, several stacked) or now and then a series; each
predicts, and the regressors are saved and loaded. What counts is the memory that the process holds after the first
tenth of the fits (but not before a series) against what it holds at the end, and a checksum of all predictions.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from _large import present_memory
from _reporting import save

import spectralgp
from spectralgp import Diffusion, Graph, GraphGPForecaster, GraphGPRegressor, Polynomial

N_NODES, N_SIGNALS, N_ROWS = 10, 9, 40
WORKERS, FITS_EACH = 8, 3
SERIES_EVERY = 20  # fits
MOST_MEGABYTES = 20.0


def fit(number: int) -> bytes:
    """One fit of what its number says, and what it predicts, as bytes."""
    rng = np.random.default_rng(number)
    graph = Graph.from_points(rng.random((N_NODES, 2)), 4)
    X, new = rng.standard_normal((N_SIGNALS, 1)), np.array([[0.3]])
    Y = np.sin(X + 3 * graph.coordinates[:, 0]) + 0.1 * rng.standard_normal((N_SIGNALS, N_NODES))
    kind = number % 3
    if number % SERIES_EVERY == SERIES_EVERY - 1:  # which takes longer than the others
        rows = np.cumsum(rng.standard_normal((N_ROWS, N_NODES)), axis=0)
        series = GraphGPForecaster(graph).fit(rows)
        return b"".join(part.tobytes() for part in series.predict(3, return_std=True))
    if kind == 1:
        Y[rng.random(Y.shape) < 0.2] = np.nan
    kernel = [Polynomial(1), Diffusion()] if kind == 2 else Polynomial(1)
    model = GraphGPRegressor(graph, kernel, random_state=0).fit(X, Y)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.sgp")
        loaded = spectralgp.load(Path(folder) / "model.sgp")
    answers = [*loaded.predict(new, return_std=True), *model.impute(X, Y)]
    return b"".join(np.ascontiguousarray(part).tobytes() for part in answers)


def checksum(numbers: range) -> str:
    """Of what some fits predict, in turn."""
    found = hashlib.sha256()
    for number in numbers:
        found.update(fit(number))
    return found.hexdigest()


def growth(n_fits: int) -> float:
    """Megabytes that a process holds more at the end than after the first tenth of the fits."""
    settled = 0.0
    for number in range(n_fits):
        fit(number)
        if number == max(n_fits // 10, SERIES_EVERY) - 1:
            gc.collect()
            settled = present_memory()
    gc.collect()
    return 1e3 * (present_memory() - settled)


def are_equal(n_workers: int = WORKERS) -> dict[str, bool]:
    """Whether processes and threads that fit at the same time find what one finds after the other."""
    parts = [range(FITS_EACH * worker, FITS_EACH * (worker + 1)) for worker in range(n_workers)]
    alone = [checksum(part) for part in parts]
    with ThreadPoolExecutor(n_workers) as pool:
        threads = list(pool.map(checksum, parts))
    with ProcessPoolExecutor(n_workers, mp_context=get_context("spawn")) as pool:
        processes = list(pool.map(checksum, parts))
    return {"threads": threads == alone, "processes": processes == alone}


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--out", type=Path, help="folder for the results; that of all results if not given")
    chosen = parser.parse_args(given)
    equal = are_equal(chosen.workers)
    grown = growth(chosen.fits)
    bars = {f"{chosen.fits:,} fits grow by less than {MOST_MEGABYTES:.0f} MB": grown < MOST_MEGABYTES}
    bars |= {f"{chosen.workers} {name} find the same bits": same for name, same in equal.items()}
    for name, met in bars.items():
        print(f"{name}: {'met' if met else 'NOT MET'}")
    print(f"{grown:.1f} MB")
    result = {"fits": chosen.fits, "megabytes": grown, "workers": chosen.workers, "bars_met": bars}
    save("soak", {"cores": os.cpu_count(), **result}, **({} if chosen.out is None else {"folder": chosen.out}))
    return 0 if all(bars.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
