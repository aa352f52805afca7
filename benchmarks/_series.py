"""Series on graphs for `bench_time.py`: descriptions, sources, and training rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from _real_data import AbsentError
from _reporting import data_folder

from spectralgp import Graph
from spectralgp.datasets import load_air_quality, load_uber

Array = np.ndarray
LEAST_OBSERVED = 0.92  # of a station's days


@dataclass(frozen=True)
class Series:
    """Rows in time on a graph, and where they are from."""

    words: str
    graph: Graph
    values: Array  # (n_steps, n_nodes)
    dates: Array | None  # of the rows, where they have any
    n_test: int
    season: int | None  # in steps, for the seasonal naive forecast and the rivals that ask for one
    seasons: tuple[float, ...]  # whose waves VAR gets
    units: str
    source: str


def _folder() -> Any:
    folder = data_folder()
    if folder is None:
        raise AbsentError("the folder of data is not here: set SPECTRALGP_DATA")
    return folder


def _file(name: str) -> Any:
    path = _folder() / name
    if not path.is_file():
        raise AbsentError(f"{name} is not in {path.parent}")
    return path


def _air() -> Series:
    air = load_air_quality()
    logs = np.log(air.concentrations)
    stations = np.flatnonzero(np.isfinite(logs).mean(axis=0) >= LEAST_OBSERVED)
    days = np.arange(len(logs))
    columns = [np.interp(days, days[known], logs[known, at]) for at in stations for known in [np.isfinite(logs[:, at])]]
    words = "logarithm of PM10 at rural stations in Germany, daily, 2003; stations with 92% of the days, interpolated"
    source = "European Environment Agency, in this package"
    values = np.stack(columns, axis=1)
    return Series(words, air.graph.subgraph(stations), values, air.dates, 90, 7, (7.0,), "log µg/m³", source)


def _wind() -> Series:
    with np.load(_file("irish_wind.npz")) as file:
        speeds, coordinates = file["speeds"].astype(float), file["coordinates"]
    roots = np.sqrt(speeds)
    dates = np.datetime64("1961-01-01") + np.arange(len(roots))
    rows = slice(0, 2_400)
    graph = Graph.from_points(coordinates, n_neighbors=4, metric="haversine")
    words = "root of the daily mean wind speed at 12 Irish stations, the first 2,400 days from 1961 on"
    source = "Haslett and Raftery 1989, by R's gstat"
    return Series(words, graph, roots[rows], dates[rows], 400, None, (365.25,), "root of knots", source)


def _chickenpox() -> Series:
    data = json.loads(_file("hungary_chickenpox.json").read_text())
    edges = [(a, b) for a, b in data["edges"] if a != b]
    values = np.cumsum(np.array(data["FX"], dtype=float), axis=0)
    words = "weekly cases of chickenpox in 20 Hungarian counties, 2005 to 2015: standardised changes, summed up"
    source = "Rozemberczki et al. 2021, by pytorch-geometric-temporal"
    return Series(words, Graph.from_edges(edges, n_nodes=20), values, None, 104, 52, (52.18,), "deviations", source)


def _uber() -> Series:
    uber = load_uber(_file("journal/uber_data.mat").parent)
    values = np.sqrt(uber.signals)
    words = "root of hourly pickups in 29 zones of New York, one month"
    return Series(
        words, uber.graph, values, None, 168, 168, (24.0, 168.0), "root of pickups", "The journal version of the paper"
    )


SERIES: dict[str, Callable[[], Series]] = {"air": _air, "wind": _wind, "chickenpox": _chickenpox, "uber": _uber}
