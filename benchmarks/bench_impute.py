"""Imputation at several sizes: seconds of a fit, and of imputing the missing values after it.

    python benchmarks/bench_impute.py                        every case, some minutes
    python benchmarks/bench_impute.py --only "2,642 x 20"    one case

1. The default, 20 signals on a graph like a road network of 2,642 nodes and 3,304 edges, a fifth missing.
2. ``Polynomial(5)`` in the paper's model, 200 smooth inputs on 1,000 nodes, noise a tenth, 30% missing.
3. The default by quadrature, 8 and 32 signals on 20,000 nodes and 8 on 5,000 and 10,000, a fifth missing.
4. The same, 8 signals on a graph of neighbours in three dimensions of 20,000 nodes.

Wall and processor seconds on the threads that there are, beside an eigendecomposition of a 400 x 400 matrix, so that
machines compare.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from _fields import smooth_fields
from _reporting import print_table, save
from scipy.linalg import eigh
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import Delaunay
from settings import PAPER
from sklearn.gaussian_process.kernels import RBF

from spectralgp import Chebyshev, Diffusion, Graph, GraphGPRegressor, Polynomial, graph_gp

BARS = {"2,642 x 20": 15.0, "1,000 x 200": 60.0, "20,000 x 8": 25.0}  # wall, processor and wall seconds
Case = tuple[GraphGPRegressor, np.ndarray, np.ndarray]


def with_missing(signals: np.ndarray, share: float) -> np.ndarray:
    """Signals with a share of their values missing."""
    return np.where(np.random.default_rng(1).random(signals.shape) < share, np.nan, signals)


def roads(n_nodes: int = 2_642, n_edges: int = 3_304) -> Graph:
    """Random points, joined by a tree of their triangulation and by the shortest of its other edges."""
    points = np.random.default_rng(0).random((n_nodes, 2))
    sides = Delaunay(points).simplices[:, [[0, 1], [1, 2], [0, 2]]].reshape(-1, 2)
    pairs = np.unique(np.sort(sides, axis=1), axis=0)
    lengths = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    distances = np.zeros((n_nodes, n_nodes))
    distances[pairs[:, 0], pairs[:, 1]] = lengths
    tree = minimum_spanning_tree(distances).tocoo()
    chosen = {tuple(sorted(pair)) for pair in zip(tree.row.tolist(), tree.col.tolist(), strict=True)}
    for pair in map(tuple, pairs[np.argsort(lengths)].tolist()):
        if len(chosen) < n_edges:
            chosen.add(pair)
    return Graph.from_edges(sorted(chosen))


def road_network() -> Case:
    graph, inputs = roads(), np.linspace(0, 5, 20)[:, None]
    prior = graph_gp(graph, Diffusion(20.0), RBF(1.0), 0.1)
    signals = prior.sample(inputs, 1, np.random.default_rng(0), include_noise=True)[0]
    return GraphGPRegressor(graph), inputs, with_missing(signals, 0.2)


def smooth_inputs() -> Case:
    graph, inputs = smooth_fields(1_000, 2, 20.0)[0], np.linspace(0, 20, 200)[:, None]
    prior = graph_gp(graph, Diffusion(20.0), RBF(3.0), 0.1)
    signals = prior.sample(inputs, 1, np.random.default_rng(0), include_noise=True)[0]
    return GraphGPRegressor(graph, Polynomial(5), RBF(1.0), **PAPER), inputs, with_missing(signals, 0.3)


def large(n_nodes: int, n_signals: int = 8) -> Case:
    graph, inputs, signals = smooth_fields(n_nodes, n_signals, 20.0)
    return GraphGPRegressor(graph), inputs, with_missing(signals, 0.2)


def in_space() -> Case:
    graph, inputs = Graph.from_points(np.random.default_rng(0).random((20_000, 3)), 8), np.linspace(0, 5, 8)[:, None]
    prior = graph_gp(graph, Diffusion(10.0), RBF(1.0), 0.2, spectrum=Chebyshev())
    signals = prior.sample(inputs, 1, np.random.default_rng(0), include_noise=True)[0]
    return GraphGPRegressor(graph), inputs, with_missing(signals, 0.2)


CASES: dict[str, Callable[[], Case]] = {
    "2,642 x 20": road_network,
    "1,000 x 200": smooth_inputs,
    "20,000 x 8": partial(large, 20_000),
    "5,000 x 8": partial(large, 5_000),
    "10,000 x 8": partial(large, 10_000),
    "20,000 x 32": partial(large, 20_000, 32),
    "20,000 x 8 in space": in_space,
}


def timed(work: Callable[..., object], *arguments: object) -> tuple[float, float]:
    """Wall and processor seconds."""
    start = time.perf_counter(), time.process_time()
    work(*arguments)
    return time.perf_counter() - start[0], time.process_time() - start[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(CASES), help="one case; nothing is kept")
    only = parser.parse_args().only
    square, found, rows = np.random.default_rng(0).standard_normal((400, 400)), {}, []
    for name in CASES if only is None else [only]:
        model, inputs, signals = CASES[name]()
        unit = min(timed(eigh, square + square.T)[1] for _ in range(5))
        fit = timed(model.fit, inputs, signals)
        fill = timed(model.impute, inputs, signals)
        wall, processor = (sum(pair) for pair in zip(fit, fill, strict=True))
        judged = processor if name == "1,000 x 200" else wall
        found[name] = {"fit": fit, "fill": fill, "over_eigh": processor / unit}
        bar = BARS.get(name, np.inf)
        rows.append([name, *fit, *fill, processor / unit, bar, "yes" if judged <= bar else "NO"])
        print(name, [f"{value:.1f}" for value in (*fit, *fill)], flush=True)
    columns = ["case", "fit, wall", "fit, cpu", "fill, wall", "fill, cpu", "cpu over eigh(400)", "bar", "met"]
    print_table("imputation, seconds", columns, rows)
    if only is None:
        save("impute", found)


if __name__ == "__main__":
    main()
