"""Make the pictures of the documentation again: make pictures.

Those of docs/reproduction.md are made with it, by make reproduce.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from architecture import package_picture
from matplotlib.figure import Figure

from spectralgp import GraphGPRegressor, Polynomial
from spectralgp._basics.files import atomic_write
from spectralgp.cli.showcase import draw, run_demo
from spectralgp.datasets import load_fertility, load_weather
from spectralgp.show.plots import plot_filter, plot_imputed, plot_signal

IMAGES = Path(__file__).parent / "images"


def filled_in_by_default() -> Figure:
    """The picture at the head of the README, the demonstration's."""
    with TemporaryDirectory() as folder:
        return draw(run_demo(Path(folder)))


def three_filters() -> Figure:
    """The filters of a model with all three, on the paper's temperatures: tomorrow's from today's."""
    data = load_weather()
    model = GraphGPRegressor(data.graph, Polynomial(3), residual=Polynomial(2))
    fit = model.fit(data.temperatures[:60], data.temperatures[1:61])
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    ax = plot_filter(fit, ax=figure.subplots(), show_std=True, which=("signal", "residual", "carry"))
    ax.set_title("Temperatures of 45 cities, from one day to the next")
    return figure


def filled_in() -> Figure:
    """Births per woman with imputed values: a country over the years, and the map of 1980."""
    data = load_fertility()
    inputs = data.years[:, None]
    model = GraphGPRegressor(data.graph, Polynomial(3)).fit(inputs, data.rates)
    completed, std = model.impute(inputs, data.rates)
    figure = Figure(figsize=(14, 4.6), layout="constrained")
    over_years, on_map = figure.subplots(1, 2, width_ratios=[1, 1.5])
    plot_imputed(
        data.rates,
        completed,
        std,
        "Kosovo",
        ax=over_years,
        names=data.graph.names,
        positions=data.years,
        xlabel="year",
        ylabel="births per woman",
    )
    over_years.set_title("Kosovo", loc="left")
    year = int(np.flatnonzero(data.years == 1980)[0])
    plot_signal(
        data.graph,
        data.rates[year],
        imputed=completed[year],
        ax=on_map,
        node_size=26,
        colorbar_label="births per woman",
    )
    on_map.set_title("1980: squares are imputed")
    return figure


PICTURES = {
    "three-filters.png": three_filters,
    "demo.png": filled_in_by_default,
    "filled-in.png": filled_in,
    "architecture.png": package_picture,
}

if __name__ == "__main__":
    for name, make in PICTURES.items():
        with atomic_write(IMAGES / name) as path:
            make().savefig(path, dpi=100)
        print(IMAGES / name)
