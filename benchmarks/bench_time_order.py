"""Time order: the default and simpler methods, learnt from the first part of a series and scored on the rest.

    python benchmarks/bench_time_order.py                  every set, two minutes; then simulated series, three
    python benchmarks/bench_time_order.py --no-ranges      without the simulated series
    python benchmarks/bench_time_order.py --out FOLDER     results elsewhere than in benchmarks/results/time_order.json

Inputs are the signals before. Time has one order, so there is one split of each set, and standard errors are those of
the mean over the signals judged. No change forecasts the signal before, with the Ledoit-Wolf covariance of past
changes, as the others have that of their residuals. "fertility 20" is learnt from 20 signals and scored on 45 at most.

The simulated series are for one constant: the quantile of distances in training up to which inputs are within its
range, equation (19f).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from _real_data import AbsentError, RealSet, content_sum, real_set, ring, training_sizes
from _reporting import RESULTS, data_folder, print_table, save
from _rivals import RIVALS, ModelForecast
from _splits import on_one_thread, tried

from spectralgp import Graph, GraphGPRegressor
from spectralgp.datasets import load_air_quality, load_fertility
from spectralgp.learning import baselines
from spectralgp.learning.baselines import BaselinePrediction
from spectralgp.model.fields import posterior
from spectralgp.scores import coverage, crps, root_mean_square_error

Array = np.ndarray
MOST_JUDGED, MOST_AHEAD = 60, 45  # the latter where a number of training signals is given
LEAST_OBSERVED, AIR_TRAINING = 0.97, 80  # of a station's days; days that are learnt from
SIZES = {"weather": (30, 50, 70), "wind": (60, 120, 200), "air": (60, 150), "incomes": (30, 50), "fertility": (20, 30)}
SIZED = tuple(f"{name} {size}" for name, sizes in SIZES.items() for size in sizes)
SETS = ("incomes", "weather", "CO2", "sea temperature", "air", *SIZED)
BARS = {"incomes": 1.05, "weather": 1.03} | dict.fromkeys(SIZED, 1.06)  # RMSE over that of no change
QUANTILES, N_SEEDS, N_SIMULATED = (0.5, 0.75, 0.9, 0.95, 1.0), 10, 12


def in_time(name: str) -> tuple[RealSet, int]:
    """A set with its rows in the order of time, and how many of them are learnt from."""
    stem, _, size = name.partition(" ")
    if size.isdigit():
        return in_time(stem)[0], int(size)
    if name == "wind":
        return _wind(), 0
    if name == "fertility":
        return _fertility(), 0
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


def _wind() -> RealSet:
    path = None if (folder := data_folder()) is None else folder / "irish_wind.npz"
    if path is None or not path.exists():
        raise AbsentError("irish_wind.npz is not in the folder SPECTRALGP_DATA")
    with np.load(path) as file:
        speeds, coordinates = np.sqrt(file["speeds"].astype(float)), file["coordinates"]
    graph, words = Graph.from_points(coordinates, 4, metric="haversine"), "root of the daily mean wind speed in Ireland"
    source = "Haslett and Raftery 1989, by R's gstat"
    return RealSet(words, graph, speeds[:-1], speeds[1:], "root of knots", "four nearest neighbours", source, "GPL")


def _fertility() -> RealSet:
    data = load_fertility()
    nodes = np.flatnonzero(np.isfinite(data.rates).all(axis=0))
    rates, words = data.rates[:, nodes], "births per woman, from those of the year before"
    parts = data.graph.subgraph(nodes), rates[:-1], rates[1:], "births per woman", "shared borders"
    return RealSet(words, *parts, "World Bank, in this package", "CC BY 4.0")


def simulated(kind: str, n_signals: int, rng: np.random.Generator) -> Array:
    """Signals on a ring: a common level of some kind, and autoregressive deviations that are alike at neighbours."""
    white, moves = rng.standard_normal((n_signals, N_SIMULATED)), 1.5 * rng.standard_normal(n_signals)
    steps = white + np.roll(white, 1, axis=1) + np.roll(white, -1, axis=1)
    days, kept = np.arange(n_signals), {"stationary": 0.0, "slow": 0.97, "walk": 1.0}.get(kind)
    season = 10 * np.sin(2 * np.pi * (days + rng.integers(200)) / 200)
    step = 12.0 * rng.choice([-1, 1]) * (days >= n_signals - MOST_AHEAD + rng.integers(20))
    signals, level = np.zeros((n_signals, N_SIMULATED)), np.zeros(n_signals)
    for day in range(1, n_signals):
        signals[day] = 0.6 * signals[day - 1] + steps[day]
        level[day] = kept * level[day - 1] + (kept > 0) * moves[day] if kept is not None else 0.0
    return signals + (level + {"season": season, "step": step}.get(kind, 0.0))[:, None]


def ranges() -> dict[str, dict[str, Any]]:
    """RMSE over no change on simulated series, without a fallback and by the quantile where it begins."""
    found = {}
    for kind in ("stationary", "slow", "walk", "season", "step"):
        for n_train in (30, 60):
            ratios, densities = [], []
            for seed in range(N_SEEDS):
                series = simulated(kind, n_train + MOST_AHEAD + 1, np.random.default_rng([seed, n_train]))
                with warnings.catch_warnings(action="ignore"):  # little noise, which bounds hold
                    mixture: Any = GraphGPRegressor(ring(N_SIMULATED)).fit(series[:n_train], series[1 : n_train + 1])
                scores = [_scored(mixture.posterior_, series[n_train:], quantile) for quantile in (np.inf, *QUANTILES)]
                ratios.append([ratio for ratio, _ in scores])
                densities.append([density for _, density in scores])
            means, worst = np.exp(np.mean(np.log(ratios), axis=0)), np.max(ratios, axis=0)
            of_density = np.mean(densities, axis=0)
            rows = {"rmse": means, "worst": worst, "log_density": of_density - of_density[0]}
            found[f"{kind} {n_train}"] = {measure: np.round(row, 4).tolist() for measure, row in rows.items()}
    return found


def _scored(mixture: Any, series: Array, quantile: float) -> tuple[float, float]:
    """RMSE over no change and log density per value, with a fallback from a quantile on; none if it is infinite."""
    kept = posterior.RANGE
    try:
        posterior.RANGE = min(quantile, 1.0)
        if np.isinf(quantile) and getattr(mixture, "fallback", None) is not None:
            mixture = replace(mixture, fallback=None)
        prediction = mixture.at(series[:-1])
        error = root_mean_square_error(series[1:], prediction.mean)
        density = np.mean(prediction.log_density(series[1:], joint=False)) / N_SIMULATED
        return error / root_mean_square_error(series[1:], series[:-1]), float(density)
    finally:
        posterior.RANGE = kept


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


def score(data: RealSet, n_train: int, rival: str, most: int) -> dict[str, Any]:
    """A rival's scores on what follows the training signals, or what it failed with."""
    train, test = slice(n_train), slice(n_train, n_train + most)
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
    parser.add_argument("--no-ranges", action="store_true", help="leave out the simulated series")
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
        most = MOST_AHEAD if name in SIZED else MOST_JUDGED
        runs = {rival: score(data, n_train, rival, most) for rival in FORECASTS}
        ratio = runs["default"].get("rmse", np.nan) / runs["no change"]["rmse"]
        n_judged = min(most, len(data.signals) - n_train)
        facts = {"words": data.words, "units": data.units, "n_nodes": data.graph.n_nodes, "sha256": sum_of_data}
        facts |= {"n_train": n_train, "n_judged": n_judged, "ratio": ratio, "bar": BARS.get(name)}
        kept["problems"][name] = {"facts": facts, "runs": runs}
        measures = ("rmse", "crps", "log_density", "coverage", "processor_seconds")
        rows = [[rival, *(f"{run.get(measure, np.nan):.4g}" for measure in measures)] for rival, run in runs.items()]
        print_table(
            f"{name}: {n_train} signals, then {n_judged}; RMSE over no change {ratio:.3f}", ["", *measures], rows
        )
    if not chosen.no_ranges:
        kept["ranges"] = {"quantiles": [None, *QUANTILES], "n_seeds": N_SEEDS, "series": ranges()}
        rows = [[name, *(f"{value:.3f}" for value in one["rmse"])] for name, one in kept["ranges"]["series"].items()]
        print_table("RMSE over no change by the quantile", ["", "none", *map(str, QUANTILES)], rows)
    save("time_order", kept, chosen.out)


if __name__ == "__main__":
    main()
