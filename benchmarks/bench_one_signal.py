"""One signal, part of whose values are hidden: the default, one kernel with the best parameters, and a constant.

    .venv-bench/bin/python benchmarks/bench_one_signal.py

Eleven maps from the package, scikit-learn and libpysal, with 20, 50 and 70% of the values hidden, three times each. The
default integrates over the parameters of four kernels and stacks them; `Diffusion()` was the default before. Scores are
of the hidden values with their noise: error over that of a constant (geometric mean), log density of a value (mean),
and share of values in their 90% intervals. Constants of the method were not chosen by these scores.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from _reporting import data_folder, print_table, save
from scipy.stats import gmean
from scipy.stats import t as student
from sklearn.datasets import load_diabetes, load_digits, load_sample_image

from spectralgp import Diffusion, Graph, GraphGPRegressor, Matern
from spectralgp import datasets as built_in

SHARES, N_SEEDS = (0.2, 0.5, 0.7), 3
BARS: dict[str, Any] = {"error": 0.714, "density": -2.09, "covered": (0.86, 0.94)}
METHODS: dict[str, Callable[[], Any]] = {
    "default": lambda: None,
    "Diffusion()": lambda: Diffusion(laplacian="normalized"),
    "Matern()": Matern,
}


def weather() -> tuple[Graph, Any]:
    """Daily mean temperatures of one day at 45 stations."""
    data = built_in.load_weather(data_folder())
    return data.graph, data.temperatures[40]


def air_quality() -> tuple[Graph, Any]:
    """Logarithms of concentrations on day 40."""
    data = built_in.load_air_quality()
    return data.graph, np.log(data.concentrations[40])


def incomes() -> tuple[Graph, Any]:
    """Logarithms of incomes relative to the typical state."""
    data = built_in.load_us_income()
    return data.graph, data.relative_incomes[data.years.tolist().index(1960)]


def sids() -> tuple[Graph, Any]:
    """Roots of deaths per thousand births, 1979 to 1984."""
    data = built_in.load_sids()
    return data.graph, np.sqrt(1e3 * data.deaths[1] / data.births[1])


def homicides() -> tuple[Graph, Any]:
    """Logarithms of homicides per 100,000 and year, 1988 to 1993, half a case added."""
    data = built_in.load_homicides()
    return data.graph, np.log(1e5 * (data.counts[2] + 0.5) / data.person_years[2])


def columbus() -> tuple[Graph, Any]:
    """Crimes per thousand households in 49 neighbourhoods."""
    import libpysal

    path = libpysal.examples.get_path
    borders = libpysal.io.open(path("columbus.gal")).read()
    names = borders.id_order
    pairs = [(names.index(one), names.index(other)) for one in names for other in borders.neighbors[one]]
    table = libpysal.io.open(path("columbus.dbf"))
    return Graph.from_edges(sorted({tuple(sorted(pair)) for pair in pairs})), np.array(table.by_col("CRIME"))


def fertility() -> tuple[Graph, Any]:
    """Children per woman in 1990, where they are known."""
    data = built_in.load_fertility()
    return data.graph, data.rates[data.years.tolist().index(1990)]


def baltimore() -> tuple[Graph, Any]:
    """Logarithms of prices of 211 houses."""
    import libpysal

    table = libpysal.io.open(libpysal.examples.get_path("baltim.dbf"))
    points = np.column_stack([table.by_col("X"), table.by_col("Y")]).astype(float)
    return Graph.from_points(points, n_neighbors=6), np.log(table.by_col("PRICE"))


def diabetes() -> tuple[Graph, Any]:
    """Progress of the disease, by a graph of the nearest in ten measurements."""
    features, target = load_diabetes(return_X_y=True)
    return Graph.from_points(features, n_neighbors=10), target


def image() -> tuple[Graph, Any]:
    """A patch of 20 x 20 pixels of a photograph, in levels of grey."""
    patch = load_sample_image("china.jpg").mean(axis=2)[100:300:10, 200:400:10]
    rows, columns = np.indices(patch.shape)
    return Graph.from_points(np.column_stack([rows.ravel(), columns.ravel()]), n_neighbors=4), patch.ravel()


def digits() -> tuple[Graph, Any]:
    """Which digit 400 drawings show, as a number, by a graph of the nearest in 64 pixels."""
    pixels, target = load_digits(return_X_y=True)
    return Graph.from_points(pixels[:400], n_neighbors=8), target[:400].astype(float)


PROBLEMS = (
    weather, air_quality, incomes, sids, homicides, columbus, fertility, baltimore, diabetes, image, digits,
)  # fmt: skip


def constant(known: Any, truth: Any) -> tuple[float, float, float]:
    """Scores of a constant level with normal values, both unknown: a t."""
    values = known[np.isfinite(known)]
    spread = student(values.size - 1, values.mean(), values.std(ddof=1) * np.sqrt(1 + 1 / values.size))
    inside = np.abs(spread.cdf(truth) - 0.5) <= 0.45
    return (
        float(np.sqrt(np.mean((truth - values.mean()) ** 2))),
        float(spread.logpdf(truth).mean()),
        float(inside.mean()),
    )


def scores(model: GraphGPRegressor, known: Any, truth: Any, hidden: Any) -> tuple[float, float, float]:
    """Error, log density and coverage of hidden values by a fitted model."""
    mean = model.impute(None, known[None])[0][0, hidden]
    field = model.posterior_.imputed(np.array([0]))
    step, at = 1e-4 * np.nanstd(known), np.where(hidden, truth, np.nanmean(known))
    low, high = (field.distribution((at + sign * step)[None])[0, hidden] for sign in (-1, 1))
    inside = np.abs((low + high) / 2 - 0.5) <= 0.45
    return (
        float(np.sqrt(np.mean((mean - truth[hidden]) ** 2))),
        float(np.mean(np.log((high - low) / (2 * step)))),
        float(inside.mean()),
    )


def measured(problem: Callable[[], tuple[Graph, Any]]) -> dict[str, dict[str, float]]:
    """Scores of one problem, over all shares and seeds."""
    graph, values = problem()
    seen = np.flatnonzero(np.isfinite(values))
    cells: dict[str, list[Any]] = {name: [] for name in (*METHODS, "constant")}
    for share, seed in product(SHARES, range(N_SEEDS)):
        hidden = np.zeros(values.size, dtype=bool)
        hidden[np.random.default_rng(seed).permutation(seen)[: round(share * seen.size)]] = True
        known = np.where(hidden, np.nan, values)
        cells["constant"].append((*constant(known, values[hidden]), 0.0))
        for name, kernel in METHODS.items():
            start = time.process_time()
            model = GraphGPRegressor(graph, kernel()).fit(None, known[None])
            cells[name].append((*scores(model, known, values, hidden), time.process_time() - start))
    found = {name: np.array(one).T for name, one in cells.items()}
    return {
        name: {
            "error": float(gmean(errors / found["constant"][0])),
            **dict(zip(("density", "covered", "seconds"), np.mean(others, axis=1).tolist(), strict=True)),
        }
        for name, (errors, *others) in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=[one.__name__ for one in PROBLEMS])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {}
    for problem in PROBLEMS:
        if not given.only or problem.__name__ in given.only:
            found[problem.__name__.replace("_", " ")] = measured(problem)
            print(problem.__name__, flush=True)
    found["all"] = {
        name: {
            key: float((gmean if key == "error" else np.mean)([one[name][key] for one in found.values()]))
            for key in ("error", "density", "covered", "seconds")
        }
        for name in (*METHODS, "constant")
    }
    header = ["problem"]
    for key in ("error", "density", "covered"):
        header += [f"{key}: {name}" for name in (*METHODS, "constant") if (key, name) != ("error", "constant")]
    rows = []
    for problem, one in found.items():
        cells = [one[name.split(": ")[1]][name.split(": ")[0]] for name in header[1:]]
        rows.append([problem, *(f"{cell:.3f}" for cell in cells)])
    print_table("hidden values of one signal", header, rows)
    ours = found["all"]["default"]
    met = {
        "error": ours["error"] <= BARS["error"],
        "density": ours["density"] >= BARS["density"],
        "covered": BARS["covered"][0] <= ours["covered"] <= BARS["covered"][1],
    }
    print_table(
        "bars", ["bar", "met"], [[f"{name}: {BARS[name]}", "yes" if one else "NO"] for name, one in met.items()]
    )
    if not given.only:
        save("one_signal", {"shares": list(SHARES), "n_seeds": N_SEEDS, "problems": found, "bars": BARS})


if __name__ == "__main__":
    main()
