"""Time order: the default and simpler methods, learnt from the first part of a series and scored on the rest.

    python benchmarks/bench_time_order.py                  every set, about a minute
    python benchmarks/bench_time_order.py --out FOLDER     results elsewhere than in benchmarks/results/time_order.json

Inputs are the signals before. Time has one order, so there is one split of each set, and standard errors are those of
the mean over the signals judged. No change forecasts the signal before, with the Ledoit-Wolf covariance of past
changes, as the others have that of their residuals.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _real_data import AbsentError, RealSet, content_sum, real_set, training_sizes
from _reporting import RESULTS, print_table, save
from _rivals import RIVALS, ModelForecast
from _splits import on_one_thread, tried

from spectralgp import Graph
from spectralgp.datasets import load_air_quality
from spectralgp.learning import baselines
from spectralgp.learning.baselines import BaselinePrediction
from spectralgp.scores import coverage, crps, root_mean_square_error

Array = np.ndarray
MOST_JUDGED = 60
LEAST_OBSERVED, AIR_TRAINING = 0.97, 80  # of a station's days; days that are learnt from
SETS = ("incomes", "weather", "CO2", "sea temperature", "air")
BARS = {"incomes": 1.05, "weather": 1.03}  # RMSE over that of no change


def in_time(name: str) -> tuple[RealSet, int]:
    """A set with its rows in the order of time, and how many of them are learnt from."""
    if name != "air":
        data = real_set(name)
        return data, training_sizes(len(data.signals))[-1]
    air = load_air_quality()
    logs = np.log(air.concentrations)
    stations = np.flatnonzero(np.isfinite(logs).mean(axis=0) > LEAST_OBSERVED)
    days = np.arange(len(logs))
    columns = [np.interp(days, days[known], logs[known, at]) for at in stations for known in [np.isfinite(logs[:, at])]]
    whole = np.stack(columns, axis=1)
    words = (
        "logarithm of particulate matter at rural stations in Germany, from that of the day before; missing values "
        "interpolated"
    )
    source = "European Environment Agency, in this package"
    graph, near = air.graph.subgraph(stations), "five nearest neighbours"
    return RealSet(words, graph, whole[:-1], whole[1:], "log µg/m³", near, source, "CC BY 4.0"), AIR_TRAINING


def no_change(graph: Graph, inputs: Array, signals: Array, test_inputs: Array) -> BaselinePrediction:
    factor = 10 ** np.round(np.log10(np.std(signals) / np.std(inputs)))  # incomes are shares, and forecast in percent
    return baselines.no_change(inputs, signals, test_inputs, columns=np.arange(graph.n_nodes), factor=factor)


def node_means(graph: Graph, inputs: Array, signals: Array, test_inputs: Array) -> BaselinePrediction:
    return baselines.node_means(inputs, signals, test_inputs)


FORECASTS: dict[str, Callable[[Graph, Array, Array, Array], BaselinePrediction | ModelForecast]] = {
    "default": RIVALS["default"].forecast,
    "no change": no_change,
    "node means": node_means,
    "ridge + Ledoit-Wolf": RIVALS["ridge-lw"].forecast,
}


def score(data: RealSet, n_train: int, rival: str) -> dict[str, Any]:
    """A rival's scores on what follows the training signals, or what it failed with."""
    train, test = slice(n_train), slice(n_train, n_train + MOST_JUDGED)
    observed = data.signals[test]

    def scores() -> dict[str, float]:
        forecast = FORECASTS[rival](data.graph, data.inputs[train], data.signals[train], data.inputs[test])
        densities = forecast.log_density(observed)
        return {
            "log_density": float(np.mean(densities)),
            "log_density_error": float(np.std(densities, ddof=1) / np.sqrt(len(densities))),
            "rmse": root_mean_square_error(observed, forecast.mean),
            "crps": float(np.mean(crps(observed, forecast.mean, forecast.std))),
            "coverage": coverage(observed, forecast.mean, forecast.std, 0.9),
        }

    return tried(rival, scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="NAME", help="; ".join(SETS))
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for results")
    chosen = parser.parse_args()
    on_one_thread()
    kept: dict[str, Any] = {"problems": {}, "absent": {}}
    for name in chosen.sets:
        try:
            data, n_train = in_time(name)
        except (AbsentError, FileNotFoundError) as error:
            kept["absent"][name] = str(error)
            continue
        sum_of_data = content_sum(data)
        runs = {rival: score(data, n_train, rival) for rival in FORECASTS}
        ratio = runs["default"].get("rmse", np.nan) / runs["no change"]["rmse"]
        n_judged = min(MOST_JUDGED, len(data.signals) - n_train)
        facts = {"words": data.words, "units": data.units, "n_nodes": data.graph.n_nodes, "sha256": sum_of_data}
        facts |= {"n_train": n_train, "n_judged": n_judged, "ratio": ratio, "bar": BARS.get(name)}
        kept["problems"][name] = {"facts": facts, "runs": runs}
        measures = ("rmse", "crps", "log_density", "coverage", "processor_seconds")
        rows = [[rival, *(f"{run.get(measure, np.nan):.4g}" for measure in measures)] for rival, run in runs.items()]
        print_table(
            f"{name}: {n_train} signals, then {n_judged}; RMSE over no change {ratio:.3f}", ["", *measures], rows
        )
    save("time_order", kept, chosen.out)


if __name__ == "__main__":
    main()
