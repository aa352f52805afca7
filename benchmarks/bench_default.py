"""Cost of the default, which compares several models on held-out signals, as ratios within one run.

    python benchmarks/bench_default.py

1. Weather, 30 signals on 45 nodes: over an eigendecomposition of a 400 x 400 matrix.
2. Smooth fields, 200 signals on 1,000 nodes: over ``Polynomial(3)`` in the paper's model.
3. Smooth fields, 32 signals on 20,000 nodes, by quadrature: over a fit with nothing to learn, which is its passes.
4. Smooth fields, 2,000 signals on 20 nodes: seconds.
5. Weather as in 1, with its first 30 days in time order, which is found: over the same eigendecomposition.
6. Smooth fields, 90 signals on 45 nodes with 30% missing, fit and imputation: over the same eigendecomposition.
7. Smooth fields, 50 signals on 5,000 nodes: over decomposing the two Laplacians, once each.

Processor time on one thread; the spectra of the graphs are known beforehand in 2.

    python benchmarks/bench_default.py --only "45 x 90"     cases whose names begin so; the others' results are kept
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _fields import NOISE_VARIANCE, smooth_fields
from _reporting import RESULTS, data_folder, print_table, save
from scipy.linalg import eigh
from settings import PAPER
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from spectralgp import Graph, GraphGPRegressor, Identity, Polynomial, decompose
from spectralgp.datasets import load_weather

BARS = {"weather": 60.0, "weather in time order": 120.0, "1,000 x 200": 12.0, "20,000 x 32": 10.0, "20 x 2,000": 180.0}
BARS |= {"45 x 90, 30% missing": 160.0, "5,000 x 50": 2.0}
STRENGTH = 20.0


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Median of the processor time, after once that is not counted; of that one if there are no repeats."""
    times = []
    for _ in range(1 + repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return float(np.median(times[1:] or times))


def weather(*, in_time: bool = False) -> tuple[float, float]:
    data = load_weather(data_folder())
    order = np.arange(30) if in_time else np.random.default_rng(0).permutation(len(data.temperatures) - 1)[:30]
    inputs, signals = data.temperatures[order], data.temperatures[order + 1]
    return seconds(lambda: GraphGPRegressor(data.graph).fit(inputs, signals), 5), decomposition()


def decomposition() -> float:
    """Time of an eigendecomposition of a 400 x 400 matrix."""
    square = np.random.default_rng(0).standard_normal((400, 400))
    return seconds(lambda: eigh(square + square.T), 9)


def incomplete() -> tuple[float, float]:
    graph, inputs, signals = smooth_fields(45, 90, STRENGTH)
    signals[np.random.default_rng(1).random(signals.shape) < 0.3] = np.nan
    return seconds(lambda: GraphGPRegressor(graph).fit(inputs, signals).impute(inputs, signals)), decomposition()


def wide() -> tuple[float, float]:
    graph, inputs, signals = smooth_fields(5_000, 50, STRENGTH)

    def bases() -> None:
        fresh = Graph(graph.weights)
        for laplacian in ("combinatorial", "normalized"):
            decompose(fresh, laplacian)

    return seconds(lambda: GraphGPRegressor(Graph(graph.weights)).fit(inputs, signals), 0), seconds(bases, 0)


def middling() -> tuple[float, float]:
    graph, inputs, signals = smooth_fields(1_000, 200, STRENGTH)
    for laplacian in ("combinatorial", "normalized"):
        decompose(graph, laplacian)
    one = seconds(lambda: GraphGPRegressor(graph, Polynomial(3), RBF(1.0), **PAPER).fit(inputs, signals))
    return seconds(lambda: GraphGPRegressor(graph).fit(inputs, signals), 1), one


def large() -> tuple[float, float]:
    graph, inputs, signals = smooth_fields(20_000, 32, STRENGTH)
    fixed: dict[str, Any] = {"noise_variance": NOISE_VARIANCE, "spectrum": "chebyshev", **PAPER}

    def passes() -> None:
        GraphGPRegressor(Graph(graph.weights), Identity(), RBF(1.0, "fixed"), **fixed).fit(inputs, signals)

    def default() -> None:
        GraphGPRegressor(Graph(graph.weights), spectrum="chebyshev").fit(inputs, signals)

    return seconds(default), seconds(passes)


def many_signals() -> tuple[float, float]:
    graph, inputs, signals = smooth_fields(20, 2_000, STRENGTH)
    start = time.process_time()
    GraphGPRegressor(graph).fit(inputs, signals)
    return time.process_time() - start, 1.0


def main() -> None:
    measured = {"1,000 x 200": middling, "20,000 x 32": large, "20 x 2,000": many_signals}
    measured |= {"45 x 90, 30% missing": incomplete, "5,000 x 50": wide}
    if data_folder() is not None:
        measured = {"weather": weather, "weather in time order": partial(weather, in_time=True), **measured}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose names begin so")
    only, known = parser.parse_args().only, RESULTS / "default.json"
    runs = json.loads(known.read_text())["runs"] if only and known.exists() else {}
    with threadpool_limits(1):
        for name, measure in ((one, work) for one, work in measured.items() if one.startswith(only)):
            default, other = measure()
            ratio = default / other
            runs[name] = {"seconds": default, "other": other, "ratio": ratio, "bar": BARS[name]}
    rows = [
        [
            name,
            f"{run['seconds']:.2f}",
            f"{run['ratio']:.1f}",
            run["bar"],
            "yes" if run["ratio"] <= run["bar"] else "NO",
        ]
        for name, run in runs.items()
    ]
    print_table("the default", ["nodes x signals", "seconds", "ratio", "bar", "met"], rows)
    save("default", {"runs": runs})


if __name__ == "__main__":
    main()
