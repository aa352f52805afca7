"""Pictures of prediction studies, drawn from results alone, in the paper's arrangement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.drawing import (
    COLOURS,
    EIGENVALUE,
    GRID,
    MARKERS,
    draw_coefficients,
    legend_below,
    mark_eigenvalues,
    new_figure,
)
from reproduction.experiments import BY_ALGORITHM_1
from reproduction.results import Finished, Predictions
from spectralgp import Graph, Polynomial
from spectralgp.plots import plot_signal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = {"traffic": "traffic", "fmri": "fMRI", "weather": "weather"}
"""The real data, in the order of the paper's figures."""


def data_figure(found: Predictions) -> Figure:
    """The graph with inputs and outputs, the training signals' Fourier coefficients, and the learnt spectra."""
    figure, axes = new_figure(1, 3)
    draw_graph(axes[0, 0], found.study.data, found.shown)
    draw_data_fourier(axes[0, 1], found)
    draw_spectra(axes[0, 2], found)
    return figure


def second_figure(finished: Finished) -> Figure:
    """The paper's Fig. 2: spectra learnt on the larger training set, a panel a data set, by both solvers."""
    figure, axes = new_figure(1, len(PANELS))
    for ax, (key, name) in zip(axes[0], PANELS.items(), strict=True):
        if finished.has(key):
            draw_spectra(ax, finished.predictions(key))
        else:
            _missing(ax, name)
    return figure


def fifth_figure(finished: Finished) -> Figure:
    """The supplement's Fig. 5: graphs above, graph Fourier coefficients of the training data below."""
    figure, axes = new_figure(2, len(PANELS))
    graphs = finished.graphs()
    for column, (key, name) in enumerate(PANELS.items()):
        draw_graph(axes[0, column], name, graphs[key]["shown"])
        if finished.has(key):
            draw_data_fourier(axes[1, column], finished.predictions(key))
        else:
            _missing(axes[1, column], name)
    return figure


def _missing(ax: Axes, name: str) -> None:
    ax.text(
        0.5, 0.5, f"{name}\nnot run here:\nthe file could not be had", ha="center", va="center", transform=ax.transAxes
    )
    ax.set_axis_off()


def draw_graph(ax: Axes, name: str, shown: dict[str, Any]) -> None:
    """The graph, inputs yellow and outputs purple as in the paper, told apart in print by their brightness."""
    from matplotlib import colormaps

    coordinates, is_input = np.array(shown["coordinates"]), np.array(shown["is_input"])
    graph = Graph.from_edges(shown["edges"], n_nodes=len(coordinates), coordinates=coordinates)
    # places on the earth: a degree of longitude is shorter than one of latitude
    aspect: Any = "equal" if shown["arbitrary_places"] else 1 / np.cos(np.radians(np.mean(coordinates[:, 1])))
    plot_signal(graph, is_input.astype(float), ax=ax, vmin=0, vmax=1, colorbar=False, node_size=28, aspect=aspect)
    both = "output" if is_input.any() else "input one day, output the next"
    for word, value in (("input", 1.0), (both, 0.0)):
        if np.any(is_input == bool(value)):
            colour = colormaps["viridis"](value)
            ax.scatter([], [], color=[colour], edgecolors="0.25", linewidths=0.5, label=word)
    places = ", arbitrary places" if shown["arbitrary_places"] else ""
    ax.set_title(f"{name}: graph{places}", fontsize="medium")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False, fontsize="small")


def draw_data_fourier(ax: Axes, found: Predictions) -> None:
    """Graph Fourier coefficients of the training signals."""
    shown = found.shown
    draw_coefficients(ax, shown["eigenvalues"], shown["fourier"])
    ax.set_title(f"{found.study.data}: {len(shown['fourier'])} training signals", fontsize="medium")


def draw_spectra(ax: Axes, found: Predictions) -> None:
    """Filters learnt on the larger training set by both solvers, each divided by its maximum as the authors' are."""
    size = max(found.study.sizes)
    for index, degree in enumerate((1, 2, 3)):
        for key, line in ((f"degree-{degree}", "-"), (f"degree-{degree}, {BY_ALGORITHM_1}", "--")):
            kernel = Polynomial.from_coefficients(found.fit(size, key)["coefficients"]).rescaled()
            label = f"degree {degree}" + (", Algorithm 1" if line == "--" else "")
            style: dict[str, Any] = {"marker": MARKERS[index], "markersize": 4, "markevery": (30 * index + 15, 90)}
            response = kernel.response(GRID)
            ax.plot(GRID, response, color=COLOURS[index], linestyle=line, linewidth=1.6, label=label, **style)
    mark_eigenvalues(ax, found.shown["eigenvalues"])
    ax.set_ylim(-0.08, 1.08)
    ax.set_xlabel(EIGENVALUE)
    ax.set_ylabel("filter g(λ) / maximum")
    ax.set_title(f"{found.study.data}, {size} signals", fontsize="medium")
    legend_below(ax, 2)


def splits_figure(found: Predictions) -> Figure:
    """Median paired differences to the standard GP with 95% intervals, a panel a training size."""
    study = found.study
    figure, axes = new_figure(1, len(study.sizes), width=5.0, height=4.4)
    models = [model for model in study.models if model.row != "standard" and not model.by]
    groups = ("polynomial", "baseline", "beyond")
    for ax, size in zip(axes[0], study.sizes, strict=True):
        for place, model in enumerate(models):
            difference = found.difference(size, model.key, "standard")
            middle = difference.median
            style = groups.index(model.group)
            ax.errorbar(
                middle,
                place,
                xerr=[[middle - difference.low], [difference.high - middle]],
                color=COLOURS[style],
                marker=MARKERS[style],
                capsize=3,
                markersize=5,
            )
        ax.axvline(0, color="0.4", linewidth=0.8)
        ax.set_yticks(range(len(models)), [model.label for model in models] if ax is axes[0, 0] else [])
        ax.set_ylim(len(models) - 0.5, -0.5)
        ax.margins(x=0.08)
        ax.grid(axis="x", color="0.9")
        ax.set_xlabel("test score less that of the\nstandard GP (nats per signal)")
        ax.set_title(f"{study.data}, {size} signals, {len(study.splits)} splits", fontsize="medium")
    return figure
