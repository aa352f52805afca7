"""Forecasts of series: the default of `GraphGPForecaster` and what people use instead, at rolling origins.

    python benchmarks/bench_time.py                          every series at hand, a few minutes
    python benchmarks/bench_time.py --series air wind        some of them
    python benchmarks/bench_time.py --statsforecast PYTHON   with AutoETS and AutoARIMA, by a Python that has them
    python benchmarks/bench_time.py --page                   write docs/forecasts.md from the results, and run nothing

Everything is learnt on the first part of a series, once, and then forecasts every later row 1, 6 and 24 steps before it
with what was learnt kept. No choice of the library was made by these scores but those that the page names.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _real_data import AbsentError
from _reporting import RESULTS, ROOT, save
from _series import SERIES, Series
from _series_page import page
from _series_rivals import Forecasts, simple, var_ridge
from _splits import on_one_thread

from spectralgp import GraphGPForecaster
from spectralgp.scores import coverage, crps, root_mean_square_error

Array = np.ndarray
HORIZONS = [1, 6, 24]
BLOCK = 24  # origins in a block, over which standard errors are taken: forecasts of neighbouring origins go together
MOST_CHOSEN = 30  # origins of AutoETS and AutoARIMA, which are slow


def of_model(series: Series, n_train: int, n_origins: int, **parameters: Any) -> tuple[Forecasts, Any, float]:
    """Forecasts of a forecaster, the forecaster, and seconds of the processor that it took to learn."""
    import pandas

    index = None if series.dates is None else pandas.DatetimeIndex(series.dates)
    table = pandas.DataFrame(series.values, index, series.graph.names)
    graph = parameters.pop("graph")
    start = time.process_time()
    model = GraphGPForecaster(graph, **parameters).fit(table[:n_train])
    seconds = time.process_time() - start
    found = model.backtest(table[n_train:], HORIZONS)
    parts = [{h: found.forecasts[h][k][:n_origins] for h in HORIZONS} for k in (1, 2)]
    densities = {h: found.densities[h][:n_origins] for h in HORIZONS}
    return Forecasts(*parts, densities), model, seconds


def on_their_own(forecasts: Forecasts, observed: dict[int, Array]) -> Forecasts:
    """Scores with nodes that are independent given the past."""
    found = {}
    for horizon, values in observed.items():
        z = (values - forecasts.mean[horizon]) / forecasts.std[horizon]
        found[horizon] = np.sum(-0.5 * z**2 - np.log(forecasts.std[horizon]) - 0.5 * np.log(2 * np.pi), axis=1)
    return Forecasts(forecasts.mean, forecasts.std, found)


def scores(forecasts: Forecasts, observed: dict[int, Array]) -> dict[str, list[Any]]:
    """By horizon; densities in nats per value, and of every origin."""
    known = {h: np.where(np.isfinite(forecasts.mean[h]), observed[h], np.nan) for h in HORIZONS}
    made = [(known[h], forecasts.mean[h], forecasts.std[h]) for h in HORIZONS]
    n_nodes = observed[HORIZONS[0]].shape[1]
    return {
        "rmse": [root_mean_square_error(*one[:2]) for one in made],
        "crps": [float(np.nanmean(crps(*one))) for one in made],
        "coverage": [coverage(*one) for one in made],
        "density": [float(forecasts.density[h].mean()) / n_nodes if forecasts.density else None for h in HORIZONS],
    }


def advantage(ours: Forecasts, other: Forecasts, horizon: int, n_nodes: int) -> tuple[float, float]:
    """By how much ours has the higher joint density, in nats per value, with its standard error over blocks."""
    gain = (ours.density[horizon] - other.density[horizon]) / n_nodes
    blocks = [gain[start : start + BLOCK].mean() for start in range(0, len(gain) - BLOCK // 2, BLOCK)]
    error = float(np.std(blocks, ddof=1) / np.sqrt(len(blocks))) if len(blocks) > 1 else float("nan")
    return float(gain.mean()), error


def by_statsforecast(python: str, series: Series, n_train: int, origins: Array) -> dict[str, Any]:
    """Scores of AutoETS and AutoARIMA at some of the origins, with ours at the same origins."""
    chosen = origins[:: max(1, len(origins) // MOST_CHOSEN)]
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "series.npz", Path(folder) / "forecasts.npz"
        np.savez(
            given, values=series.values, origins=chosen, n_train=n_train, season=series.season or 1, horizons=HORIZONS
        )
        subprocess.run([python, str(Path(__file__).with_name("_statsforecast.py")), given, made], check=True)
        with np.load(made) as file:
            content = dict(file)
    observed = {h: series.values[chosen + h] for h in HORIZONS}
    found: dict[str, Any] = {"places": (chosen - origins[0]).tolist()}
    for name in ("AutoETS", "AutoARIMA"):
        mean, std = content[f"{name} mean"], np.where(content[f"{name} std"] > 0, content[f"{name} std"], np.nan)
        ok = np.isfinite(mean) & np.isfinite(std)
        parts = [
            {h: np.where(ok[place], one[place], np.nan) for place, h in enumerate(HORIZONS)} for one in (mean, std)
        ]
        found[name] = scores(Forecasts(*parts, {}), observed) | {
            "seconds": float(content[f"{name} seconds"]),
            "n_failed": int(np.sum(~ok[0].any(axis=0))),
        }
    return found


def run(name: str, python: str | None) -> dict[str, Any]:
    """All forecasts of one series, scored."""
    series = SERIES[name]()
    values, n_steps, n_nodes = series.values, *series.values.shape
    n_train = n_steps - series.n_test
    origins = np.arange(n_train - 1, n_steps - max(HORIZONS))
    observed = {h: values[origins + h] for h in HORIZONS}
    forecasts = {"persistence": simple(values, n_train, origins, HORIZONS, None)}
    if series.season is not None:
        forecasts["seasonal naive"] = simple(values, n_train, origins, HORIZONS, series.season)
    start = time.process_time()
    forecasts["VAR ridge"] = var_ridge(values, n_train, origins, HORIZONS, series.seasons)
    seconds = {"VAR ridge": time.process_time() - start}
    # the same components and mean, every node by itself, without drift
    alone, _, seconds["GP per node"] = of_model(series, n_train, len(origins), graph=None, drift=None)
    forecasts["GP per node"] = on_their_own(alone, observed)
    ours, model, seconds["default"] = of_model(series, n_train, len(origins), graph=series.graph)
    forecasts["default"] = ours
    found = {rival: scores(one, observed) for rival, one in forecasts.items()}
    for rival in seconds:
        found[rival]["seconds"] = seconds[rival]
    result = {
        "words": series.words,
        "source": series.source,
        "units": series.units,
        "n_nodes": n_nodes,
        "n_train": n_train,
        "n_origins": len(origins),
        "rivals": found,
        "advantages": {
            rival: [advantage(ours, forecasts[rival], h, n_nodes) for h in HORIZONS]
            for rival in ("VAR ridge", "GP per node")
        },
        "weights": model.weights_,
        "seasons": [one.described for one in model.seasons_],
        "components": list(model.component_names_),
        "drift": model.drift_horizons_,
        "miscovered": model.backtest_.miscovered,
    }
    if python is not None:
        some = by_statsforecast(python, series, n_train, origins)
        places = some.pop("places")
        own = Forecasts(*({h: one[h][places] for h in HORIZONS} for one in (ours.mean, ours.std)), {})
        result["at_some_origins"] = {
            "n_origins": len(places),
            "default": scores(own, {h: observed[h][places] for h in HORIZONS}),
            **some,
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", nargs="*", default=list(SERIES), choices=list(SERIES))
    parser.add_argument("--statsforecast", metavar="PYTHON")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    path = arguments.out / "time.json"
    result = json.loads(path.read_text()) if path.is_file() else {"series": {}, "absent": {}}
    if not arguments.page:
        on_one_thread()
        for name in arguments.series:
            try:
                result["series"][name] = run(name, arguments.statsforecast)
                result["absent"].pop(name, None)
            except AbsentError as error:
                result["absent"][name] = str(error)
                continue
            rivals = result["series"][name]["rivals"]
            for rival, found in rivals.items():
                print(f"{name:12} {rival:16} rmse " + " ".join(f"{one:.4g}" for one in found["rmse"]), flush=True)
            save("time", {key: result[key] for key in ("series", "absent")}, arguments.out)
    (ROOT / "docs" / "forecasts.md").write_text(page(result), encoding="utf-8")


if __name__ == "__main__":
    main()
