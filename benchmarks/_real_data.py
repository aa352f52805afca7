"""Real data read as signals on a graph, for `bench_real.py`: what they are, where they are from, how they are split.

Sets, training sizes and splits follow rules that look at no model's score: see `training_sizes` and `split`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from _reporting import data_folder

from spectralgp import Graph
from spectralgp.datasets import load_traffic, load_us_income, load_weather

Array = np.ndarray
FEWEST, MOST, MOST_TESTED = 15, 50, 60
FEW, MANY = 20, 1000  # sets of so many signals are run with few training signals too
RULE = (
    f"A set is trained on half of its signals, at least {FEWEST} and at most {MOST}; a set of {MANY:,} signals or more "
    f"is also trained on {FEW}. The others are tested on, at most {MOST_TESTED} signals. Split s is the permutation "
    "of NumPy's `default_rng(s)`."
)
LEFT_OUT = (
    "Of libpysal's other built-in sets none has one quantity at twelve times or more (Mexico's incomes have seven, "
    "St. Louis's homicides three, North Carolina's births two). Of scikit-learn's, iris, wine, diabetes, breast cancer "
    "and Linnerud have no graph that their columns live on."
)


class AbsentError(Exception):
    """A set that is not on this machine, and how to get it."""


@dataclass(frozen=True)
class RealSet:
    """Signals on a graph, the inputs of each, and where they are from."""

    words: str  # what is predicted from what
    graph: Graph
    inputs: Array  # (n_signals, n_features)
    signals: Array  # (n_signals, n_nodes)
    units: str
    graph_words: str
    source: str
    licence: str


@dataclass(frozen=True)
class Problem:
    """A set and a number of training signals."""

    set_name: str
    n_train: int

    @property
    def name(self) -> str:
        return f"{self.set_name} {self.n_train}"


def training_sizes(n_signals: int) -> list[int]:
    """Numbers of training signals for a set, by its number of signals."""
    sizes = [int(np.clip(n_signals // 2, FEWEST, MOST))]
    return [FEW, *sizes] if n_signals >= MANY else sizes


def split(n_signals: int, n_train: int, seed: int) -> tuple[Array, Array]:
    """Positions of the training and of the test signals."""
    order = np.random.default_rng(seed).permutation(n_signals)
    return order[:n_train], order[n_train : n_train + MOST_TESTED]


def facts(problem: Problem, n_splits: int) -> dict[str, Any]:
    """Facts of a problem for the page, and a checksum of its data."""
    data, n_train = real_set(problem.set_name), problem.n_train
    n_signals, n_nodes = data.signals.shape
    return {
        "set": problem.set_name,
        "words": data.words,
        "n_nodes": n_nodes,
        "n_edges": data.graph.n_edges,
        "n_signals": n_signals,
        "n_features": data.inputs.shape[1],
        "n_train": n_train,
        "n_test": min(n_signals - n_train, MOST_TESTED),
        "n_splits": n_splits,
        "units": data.units,
        "graph": data.graph_words,
        "source": data.source,
        "licence": data.licence,
        "sha256": content_sum(data),
    }


def content_sum(data: RealSet) -> str:
    """A sum of graph, inputs and signals."""
    content = hashlib.sha256()
    for array in (data.graph.weights.toarray(), data.inputs, data.signals):
        content.update(np.ascontiguousarray(array, dtype=float).tobytes())
    return content.hexdigest()[:16]


def ring(n_nodes: int) -> Graph:
    return Graph.from_edges([(node, (node + 1) % n_nodes) for node in range(n_nodes)])


def path(n_nodes: int) -> Graph:
    return Graph.from_edges([(node, node + 1) for node in range(n_nodes - 1)])


def pixels(n_rows: int, n_columns: int) -> Graph:
    """Pixels with their eight neighbours, numbered row by row."""
    rows, columns = np.indices((n_rows, n_columns))
    return Graph.from_points(np.c_[columns.ravel(), -rows.ravel()].astype(float), radius=1.5)


def _paper_data() -> Any:
    folder = data_folder()
    if folder is None:
        raise AbsentError("the paper's data are not here: set SPECTRALGP_DATA to their folder")
    return folder


def _weather(*, dense: bool) -> RealSet:
    weather = load_weather(_paper_data())
    graph, words = weather.graph, "the paper's: 10 nearest neighbours, weights exp(-d²/0.1) in scaled coordinates"
    if dense:
        squares = np.sum((graph.coordinates[:, None] - graph.coordinates) ** 2, axis=-1)
        weights = np.exp(-squares / squares.mean())
        np.fill_diagonal(weights, 0.0)
        graph = Graph(weights, coordinates=graph.coordinates)
        words = "all pairs, weights exp(-d²/mean d²) in degrees"
    return RealSet(
        "temperatures of 45 Swedish cities, from those of the day before",
        graph,
        weather.temperatures[:-1],
        weather.temperatures[1:],
        "°C",
        words,
        "SMHI, released with the paper",
        "SMHI's open data, CC BY 4.0; the release states none",
    )


def _traffic() -> RealSet:
    traffic = load_traffic(_paper_data())
    return RealSet(
        "minutes of congestion a day at 60 bottlenecks of San Francisco, from those at 15 others",
        traffic.output_graph,
        traffic.delays[:, : traffic.n_inputs],
        traffic.delays[:, traffic.n_inputs :],
        "minutes",
        "the paper's: nodes closer than 13 km, inverse distances",
        "PeMS, released with the paper",
        "not stated",
    )


def _income(*, changes: bool) -> RealSet:
    data = load_us_income()
    relative = data.relative_incomes
    what = "change of" if changes else "next year's"
    return RealSet(
        f"{what} relative income per head of 48 US states, from this year's relative incomes",
        data.graph,
        relative[:-1],
        100 * (np.diff(relative, axis=0) if changes else relative[1:]),
        "%",
        "states that share a border",
        "Bureau of Economic Analysis, through libpysal, in this package",
        "public domain",
    )


def _digits() -> RealSet:
    from sklearn.datasets import load_digits

    images = load_digits().data
    lower = images[:, 32:]
    inked = np.flatnonzero(np.mean(lower == 0, axis=0) <= 0.5)  # the others are constant in many a training set
    return RealSet(
        "lower half of handwritten digits from the upper half, pixels that have ink in half of all images",
        pixels(4, 8).subgraph(inked),
        images[:, :32],
        lower[:, inked],
        "grey levels of 16",
        "pixels with their eight neighbours",
        "UCI, in scikit-learn",
        "CC BY 4.0",
    )


def _patches() -> RealSet:
    from sklearn.datasets import load_sample_image

    grey = load_sample_image("china.jpg").mean(axis=2)
    n_rows, n_columns = (8 * (size // 8) for size in grey.shape)
    patches = grey[:n_rows, :n_columns].reshape(n_rows // 8, 8, n_columns // 8, 8).swapaxes(1, 2).reshape(-1, 64)
    return RealSet(
        "lower five rows of patches of 8 x 8 pixels of a photograph, from the upper three rows",
        pixels(5, 8),
        patches[:, :24],
        patches[:, 24:],
        "grey levels of 255",
        "pixels with their eight neighbours",
        "china.jpg by danielbuechele, in scikit-learn",
        "CC BY 2.0",
    )


def _statsmodels(name: str) -> Any:
    try:
        from statsmodels import datasets
    except ImportError as error:
        raise AbsentError("statsmodels is not installed: see benchmarks/requirements.txt") from error
    return getattr(datasets, name).load_pandas().data


def _elnino() -> RealSet:
    temperatures = _statsmodels("elnino").drop(columns="YEAR").to_numpy(dtype=float)
    return RealSet(
        "monthly temperatures of the sea in the region Niño 1+2, from those of the year before",
        ring(12),
        temperatures[:-1],
        temperatures[1:],
        "°C",
        "ring of months",
        "NOAA, in statsmodels",
        "public domain",
    )


def _co2() -> RealSet:
    months = _statsmodels("co2")["co2"].resample("MS").mean()
    by_year = months.groupby([months.index.year, months.index.month]).mean().unstack().to_numpy(dtype=float)
    whole = np.isfinite(by_year).all(axis=1)
    pairs = np.flatnonzero(whole[:-1] & whole[1:])
    return RealSet(
        "monthly CO2 in the air at Mauna Loa, from that of the year before",
        ring(12),
        by_year[pairs],
        by_year[pairs + 1],
        "ppm",
        "ring of months",
        "Scripps Institution of Oceanography, in statsmodels",
        "public domain",
    )


def _fertility() -> RealSet:
    table = _statsmodels("fertility")
    years = [str(year) for year in range(1960, 2012)]
    rates = table[years].dropna().to_numpy(dtype=float)
    return RealSet(
        "births per woman in a country, 1990 to 2011, from those of 1960 to 1989",
        path(22),
        rates[:, :30],
        rates[:, 30:],
        "births per woman",
        "path of years",
        "World Bank, in statsmodels",
        "World Bank's terms of use, CC BY 4.0",
    )


SETS: dict[str, Callable[[], RealSet]] = {
    "weather": lambda: _weather(dense=False),
    "weather, dense graph": lambda: _weather(dense=True),
    "traffic": _traffic,
    "income changes": lambda: _income(changes=True),
    "incomes": lambda: _income(changes=False),
    "digits": _digits,
    "image patches": _patches,
    "sea temperature": _elnino,
    "CO2": _co2,
    "fertility": _fertility,
}


@cache
def real_set(name: str) -> RealSet:
    """A set by name, read once in a process.

    Raises
    ------
    AbsentError
        If it is not on this machine.
    """
    return SETS[name]()


def problems(names: list[str]) -> tuple[list[Problem], dict[str, str]]:
    """The problems of the sets named, and the sets that are not here with the reason."""
    found, absent = [], {}
    for name in names:
        try:
            n_signals = len(real_set(name).signals)
        except (AbsentError, FileNotFoundError) as error:  # no folder, or a folder without the file
            absent[name] = str(error)
            continue
        found += [Problem(name, size) for size in training_sizes(n_signals)]
    return found, absent
