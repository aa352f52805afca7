"""Cost of the default, which compares eight models on held-out signals, as ratios within one run.

    python benchmarks/bench_default.py

1. Weather, 30 signals on 45 nodes: over an eigendecomposition of a 400 x 400 matrix.
2. Smooth fields, 200 signals on 1,000 nodes: over ``Polynomial(3)`` in the paper's model.
3. Smooth fields, 32 signals on 20,000 nodes, by quadrature: over a fit with nothing to learn, which is its passes.
4. Smooth fields, 2,000 signals on 20 nodes: seconds.
5. Weather as in 1, with its first 30 days in time order, which is found: over the same eigendecomposition.

Processor time on one thread; the spectra of the graphs are known beforehand in 2.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _fields import NOISE_VARIANCE, smooth_fields
from _reporting import data_folder, print_table, save
from scipy.linalg import eigh
from settings import PAPER
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from spectralgp import Graph, GraphGPRegressor, Identity, Polynomial, decompose
from spectralgp.datasets import load_weather

BARS = {"weather": 60.0, "weather in time order": 120.0, "1,000 x 200": 12.0, "20,000 x 32": 10.0, "20 x 2,000": 180.0}
STRENGTH = 20.0


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Median of the processor time, after once that is not counted."""
    times = []
    for _ in range(1 + repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return float(np.median(times[1:]))


def weather(*, in_time: bool = False) -> tuple[float, float]:
    data = load_weather(data_folder())
    order = np.arange(30) if in_time else np.random.default_rng(0).permutation(len(data.temperatures) - 1)[:30]
    inputs, signals = data.temperatures[order], data.temperatures[order + 1]
    square = np.random.default_rng(0).standard_normal((400, 400))
    fit = seconds(lambda: GraphGPRegressor(data.graph).fit(inputs, signals), 5)
    return fit, seconds(lambda: eigh(square + square.T), 9)


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
    if data_folder() is not None:
        measured = {"weather": weather, "weather in time order": partial(weather, in_time=True), **measured}
    runs = {}
    with threadpool_limits(1):
        for name, measure in measured.items():
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
