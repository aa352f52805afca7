"""Graphs: learnt weights and correlations beside the graph that comes with the data, on the same splits.

    python benchmarks/bench_graphs.py                     20 splits of every set, about eight minutes on one core
    python benchmarks/bench_graphs.py --sets weather      one of them
    python benchmarks/bench_graphs.py --quick             2 splits, into a temporary folder

Each set is trained on half of its signals, at most 50, drawn as in bench_real.py, and tested on 60 others; today's
values are predicted from yesterday's by the default regressor. Results are in benchmarks/results/graphs.json: 20
splits of weather and wind, 10 of the others, without the model without a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _real_data import split, training_sizes
from _reporting import data_folder, save
from _series import SERIES
from _splits import add, options, print_problem, results, run, tried

from spectralgp import Graph, GraphGPRegressor, LearntGraph
from spectralgp.datasets import load_air_quality, load_us_income, load_weather
from spectralgp.scores import coverage, crps, root_mean_square_error

Array = np.ndarray
N_SPLITS, QUICK_SPLITS = 20, 2


def _weather() -> tuple[Graph, Array]:
    data = load_weather(data_folder())
    return data.graph, data.temperatures


def _wind() -> tuple[Graph, Array]:
    data = SERIES["wind"]()
    return data.graph, data.values


def _air() -> tuple[Graph, Array]:
    data = load_air_quality()
    whole = np.isfinite(data.concentrations).mean(axis=0) > 0.97
    return data.graph.subgraph(whole), data.concentrations[:, whole]


def _incomes() -> tuple[Graph, Array]:
    data = load_us_income()
    return data.graph, 100 * data.relative_incomes


SETS: dict[str, Callable[[], tuple[Graph, Array]]] = {
    "weather": _weather,
    "wind": _wind,
    "air quality": _air,
    "incomes": _incomes,
}
GRAPHS: dict[str, Callable[[Graph], Any]] = {
    "given": lambda graph: graph,
    "none": lambda graph: None,
    "learnt": lambda graph: LearntGraph(graph.coordinates),
    "correlations": lambda graph: Graph.from_signals,
}


def score(name: str, seed: int, which: str) -> dict[str, Any]:
    """Scores of the default on one graph and split."""
    graph, rows = SETS[name]()
    whole = np.isfinite(rows[:-1]).all(axis=1) & np.isfinite(rows[1:]).all(axis=1)
    inputs, signals = rows[:-1][whole], rows[1:][whole]
    train, test = split(len(signals), training_sizes(len(signals))[-1], seed)

    def scores() -> dict[str, float]:
        model = GraphGPRegressor(GRAPHS[which](graph), random_state=0).fit(inputs[train], signals[train])
        mean, std = model.predict(inputs[test], return_std=True, include_noise=True)
        density = model.log_predictive_density(inputs[test], signals[test], joint=False)
        return {
            "log_density": float(np.mean(density)) / graph.n_nodes,
            "rmse": root_mean_square_error(signals[test], mean),
            "crps": float(np.mean(crps(signals[test], mean, std))),
            "coverage": coverage(signals[test], mean, std, 0.9),
        }

    return tried(f"split {seed}", scores)


def one_split(name: str, seed: int, graphs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Scores of all graphs on one split."""
    return {which: score(name, seed, which) for which in graphs}


def print_differences(runs: dict[str, Any]) -> None:
    """Gains over the given graph, paired by splits, with their standard errors."""
    for which in (which for which in runs if which != "given"):
        gains = 1e3 * (np.array(runs[which]["log_density"]) - np.array(runs["given"]["log_density"]))
        ratio = np.mean(np.array(runs[which]["rmse"]) / np.array(runs["given"]["rmse"]))
        error = gains.std(ddof=1) / np.sqrt(len(gains))
        print(f"{which}: {gains.mean():+.1f} ± {error:.1f} mnats per value, RMSE x {ratio:.4f}", flush=True)


def main() -> None:
    chosen = options(__doc__, "splits", N_SPLITS, QUICK_SPLITS, {"sets": list(SETS), "graphs": list(GRAPHS)})
    kept, path, _ = results("graphs", chosen.out, {"sets": {}})
    for name, new in run(one_split, chosen.sets, chosen.graphs, chosen.splits, chosen.workers):
        runs = add(kept["sets"], name, {"splits": chosen.splits}, new, list(GRAPHS))
        save("graphs", kept, Path(path).parent)
        print_problem(name, runs)
        if "given" in runs:
            print_differences(runs)


if __name__ == "__main__":
    main()
