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
from reproduction.experiments import PredictionStudy
from reproduction.tables import Results, job_of, paired
from spectralgp import Graph, Polynomial
from spectralgp.plots import plot_signal

WIDE = 100.0  # nats: an interval that reaches further would flatten all others

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def data_figure(study: PredictionStudy, results: Results) -> Figure:
    """The graph with inputs and outputs, the training signals' Fourier coefficients, and the learnt spectra."""
    figure, axes = new_figure(1, 3)
    draw_graph(axes[0, 0], study, results)
    draw_data_fourier(axes[0, 1], study, results)
    draw_spectra(axes[0, 2], study, results)
    return figure


def second_figure(pairs: list[tuple[PredictionStudy, Results | None]]) -> Figure:
    """The paper's Fig. 2: spectra learnt on the larger training set, a panel a data set."""
    figure, axes = new_figure(1, len(pairs))
    for ax, (study, results) in zip(axes[0], pairs, strict=True):
        _or_missing(draw_spectra, ax, study, results)
    return figure


def fifth_figure(pairs: list[tuple[PredictionStudy, Results | None]]) -> Figure:
    """The supplement's Fig. 5: graphs above, graph Fourier coefficients of the training data below."""
    figure, axes = new_figure(2, len(pairs))
    for column, (study, results) in enumerate(pairs):
        _or_missing(draw_graph, axes[0, column], study, results)
        _or_missing(draw_data_fourier, axes[1, column], study, results)
    return figure


def _or_missing(draw: Any, ax: Axes, study: PredictionStudy, results: Results | None) -> None:
    if results is not None:
        draw(ax, study, results)
        return
    ax.text(0.5, 0.5, f"{study.title}\nnot run: file missing", ha="center", va="center", transform=ax.transAxes)
    ax.set_axis_off()


def draw_graph(ax: Axes, study: PredictionStudy, results: Results) -> None:
    """The graph, inputs yellow and outputs purple as in the paper, told apart in print by their brightness."""
    from matplotlib import colormaps

    shown = _data(study, results)
    coordinates, is_input = np.array(shown["coordinates"]), np.array(shown["is_input"])
    graph = Graph.from_edges(shown["edges"], n_nodes=len(coordinates), coordinates=coordinates)
    # places on the earth: a degree of longitude is shorter than one of latitude
    aspect: Any = "equal" if shown["arbitrary_places"] else 1 / np.cos(np.radians(np.mean(coordinates[:, 1])))
    plot_signal(graph, is_input.astype(float), ax=ax, vmin=0, vmax=1, colorbar=False, node_size=28, aspect=aspect)
    both = "output" if is_input.any() else "input one day, output the next"
    for name, value in (("input", 1.0), (both, 0.0)):
        if np.any(is_input == bool(value)):
            colour = colormaps["viridis"](value)
            ax.scatter([], [], color=[colour], edgecolors="0.25", linewidths=0.5, label=name)
    ax.set_title(f"{study.title.lower() if study.data != 'fmri' else 'fMRI'}: graph", fontsize="medium")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False, fontsize="small")


def draw_data_fourier(ax: Axes, study: PredictionStudy, results: Results) -> None:
    """Graph Fourier coefficients of the training signals."""
    shown = _data(study, results)
    draw_coefficients(ax, shown["eigenvalues"], shown["fourier"])
    ax.set_title(f"{study.data}: {len(shown['fourier'])} training signals", fontsize="medium")


def draw_spectra(ax: Axes, study: PredictionStudy, results: Results) -> None:
    """Filters learnt on the larger training set, by both solvers."""
    shown = _data(study, results)
    models = job_of(results, max(study.sizes), study.splits[0])["models"]
    for index, degree in enumerate((1, 2, 3)):
        for key, line in ((f"degree-{degree}", "-"), (f"degree-{degree} by Algorithm 1", "--")):
            response = Polynomial.from_coefficients(models[key]["coefficients"]).response(GRID)
            label = f"degree {degree}" + (", Algorithm 1" if line == "--" else "")
            style: dict[str, Any] = {"marker": MARKERS[index], "markersize": 4, "markevery": (30 * index + 15, 90)}
            ax.plot(GRID, response, color=COLOURS[index], linestyle=line, linewidth=1.6, label=label, **style)
    mark_eigenvalues(ax, shown["eigenvalues"])
    ax.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    ax.set_xlabel(EIGENVALUE)
    ax.set_ylabel("learnt filter g(λ)")
    ax.set_title(f"{study.data}, {max(study.sizes)} signals", fontsize="medium")
    legend_below(ax, 2)


def _data(study: PredictionStudy, results: Results) -> dict[str, Any]:
    shown: dict[str, Any] = job_of(results, max(study.sizes), study.splits[0])["shown"]
    return shown


def splits_figure(study: PredictionStudy, results: Results) -> Figure:
    """Paired differences to the standard GP with 95% intervals, a panel a training size."""
    figure, axes = new_figure(1, len(study.sizes), width=4.6, height=4.2)
    models = [model for model in study.models if model.row != "standard"]
    groups = ("polynomial", "baseline", "beyond")
    for ax, size in zip(axes[0], study.sizes, strict=True):
        ends = []
        for place, model in enumerate(models):
            mean, half = paired(study, results, size, model.key, "standard")
            ends.append(abs(mean) + half)
            style = groups.index(model.group)
            ax.errorbar(mean, place, xerr=half, color=COLOURS[style], marker=MARKERS[style], capsize=3, markersize=5)
        ax.axvline(0, color="0.4", linewidth=0.8)
        ax.set_yticks(range(len(models)), [model.label for model in models] if ax is axes[0, 0] else [])
        ax.set_ylim(len(models) - 0.5, -0.5)
        ax.grid(axis="x", color="0.9")
        wide = max(ends) > WIDE
        if wide:
            ax.set_xscale("symlog", linthresh=1)
        unit = "nats a signal, logarithmic beyond ±1" if wide else "nats a signal"
        ax.set_xlabel(f"test score less that of the standard GP\n({unit})")
        ax.set_title(f"{study.data}, {size} signals, {len(study.splits)} splits", fontsize="medium")
    return figure
