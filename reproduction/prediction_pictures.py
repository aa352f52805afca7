"""Pictures of prediction studies, drawn from results alone, in the paper's arrangement."""

from __future__ import annotations

from collections.abc import Sequence
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
from reproduction.experiments import BASELINES, BY_ALGORITHM_1, POLYNOMIALS
from reproduction.published import TABLE_1
from reproduction.results import Finished, Predictions
from spectralgp import Graph, Polynomial
from spectralgp.show.plots import plot_signal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DATA = {"traffic": "traffic", "weather": "weather", "uber": "Uber"}
"""The real data whose signals are here, as titles have them."""
COINCIDE = 0.01  # of their maxima: two curves that one cannot tell apart
FAR_NATS = 45.0  # below the best row, from which a score is written at the edge and not drawn
ALONE = 0.5  # of the range of all scores, that a gap must exceed for those below it to be written there too
DEGREE_KM = 111.2  # of latitude


def score_figure(finished: Finished) -> Figure:
    """Table 1 as a picture: our scores beside the paper's, one panel per column."""
    n_sizes = len(finished.predictions(next(iter(DATA))).study.sizes)
    figure, axes = new_figure(n_sizes, len(DATA), width=4.3, height=3.4)
    models = (*POLYNOMIALS, *BASELINES)
    for column, (key, name) in enumerate(DATA.items()):
        found = finished.predictions(key)
        for ax, size in zip(axes[:, column], found.study.sizes, strict=True):
            ours = {model.row: found.score(size, model.key) for model in models}
            sides = [(ours, "ours, jointly", -0.17)]
            if (key, size) in TABLE_1:
                sides.append((TABLE_1[key, size], "paper", 0.17))
            least = edge([score.mean for side, _, _ in sides for score in side.values()])
            for index, (side, label, shift) in enumerate(sides):
                places = [place for place, model in enumerate(models) if side[model.row].mean > least]
                means = [side[models[place].row] for place in places]
                ax.errorbar(
                    [score.mean for score in means],
                    np.array(places) + shift,
                    xerr=[score.standard_error or 0.0 for score in means],
                    color=COLOURS[index],
                    marker=MARKERS[index],
                    markersize=4,
                    capsize=2,
                    linestyle="none",
                    label=label,
                )
            for place, model in enumerate(models):
                far = [
                    f"{label.split(',')[0]} {side[model.row].mean:.0f}"
                    for side, label, _ in sides
                    if side[model.row].mean <= least
                ]
                if far:
                    ax.text(
                        0.01,
                        place,
                        "◂ " + ", ".join(far),
                        transform=ax.get_yaxis_transform(),
                        va="center",
                        fontsize="x-small",
                    )
            labels = [model.label for model in models] if column == 0 else []
            ax.set_yticks(range(len(models)), labels, fontsize="small")
            ax.set_ylim(len(models) - 0.5, -0.5)
            ax.axhline(len(POLYNOMIALS) - 0.5, color="0.7", linewidth=0.8)
            ax.grid(axis="x", color="0.92")
            ax.locator_params(axis="x", nbins=5)
            ax.set_title(f"{name}, {size} signals", fontsize="medium")
    for ax in axes[-1]:
        ax.set_xlabel("mean test log-likelihood per signal (nats)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def edge(scores: Sequence[float]) -> float:
    """The score up to which scores are written and not drawn: far from the best, or from all others together.

    Examples
    --------
    >>> edge([-8.0, -9.0, -9.6, -21.0])
    -21.0
    >>> edge([-320.0, -324.0, -328.0, -332.0]) < -332
    True
    """
    ranked = np.sort(scores)
    gaps = np.diff(ranked)
    widest = int(np.argmax(gaps)) if gaps.size else 0
    if gaps.size and gaps[widest] > ALONE * np.sum(gaps):
        return float(ranked[widest])
    return float(ranked[-1]) - FAR_NATS


def second_figure(finished: Finished) -> Figure:
    """The paper's Fig. 2: spectra learnt on the larger training set, one panel per data set, by both solvers."""
    figure, axes = new_figure(1, len(DATA))
    for ax, key in zip(axes[0], DATA, strict=True):
        draw_spectra(ax, finished.predictions(key))
    return figure


def fifth_figure(finished: Finished) -> Figure:
    """The supplement's Fig. 5: graphs above, graph Fourier coefficients of the training data below."""
    graphs = {"traffic": "traffic", "fmri": "fMRI", "weather": "weather", "uber": "Uber"}
    figure, axes = new_figure(2, len(graphs), width=3.4)
    for ax, (key, name) in zip(axes[0], graphs.items(), strict=True):
        draw_graph(ax, name, finished.graphs()[key]["shown"])
    for ax, key in zip(axes[1], DATA, strict=False):
        draw_data_fourier(ax, finished.predictions(key))
    key = axes[1, -1]
    for word, colour in (("input", "#fde725"), ("output", "#440154")):
        key.scatter([], [], color=colour, edgecolors="0.25", linewidths=0.5, label=word)
    key.legend(
        loc="center", frameon=False, title="nodes (weather: each is the\ninput of one day and the\noutput of the next)"
    )
    key.set_title("", loc="left")
    key.set_axis_off()
    return figure


def draw_graph(ax: Axes, name: str, shown: dict[str, Any]) -> None:
    """The graph, inputs yellow and outputs purple as in the paper, distinct in print by their brightness."""
    coordinates, is_input = np.array(shown["coordinates"]), np.array(shown["is_input"])
    graph = Graph.from_edges(shown["edges"], n_nodes=len(coordinates), coordinates=coordinates)
    # places on the earth: a degree of longitude is shorter than one of latitude
    shrunk = float(np.cos(np.radians(np.mean(coordinates[:, 1]))))
    aspect: Any = "equal" if shown["arbitrary_places"] else 1 / shrunk
    plot_signal(graph, is_input.astype(float), ax=ax, vmin=0, vmax=1, colorbar=False, node_size=24, aspect=aspect)
    if shown["arbitrary_places"]:
        ax.set_title(f"{name}: arbitrary places", fontsize="medium")
        return
    width = float(np.ptp(coordinates[:, 0])) * DEGREE_KM * shrunk
    length = 10.0 ** np.floor(np.log10(width / 2))
    left, bottom = coordinates.min(axis=0)
    bottom -= 0.06 * float(np.ptp(coordinates[:, 1]))
    ax.plot([left, left + length / (DEGREE_KM * shrunk)], [bottom, bottom], color="black", linewidth=2)
    ax.text(left, bottom, f"{length:g} km", va="top", fontsize="small")
    ax.set_title(f"{name}: graph", fontsize="medium")


def draw_data_fourier(ax: Axes, found: Predictions) -> None:
    """Graph Fourier coefficients of the training signals."""
    shown = found.shown
    draw_coefficients(ax, shown["eigenvalues"], shown["fourier"])
    ax.set_xlabel("eigenvalue λ")
    ax.set_title(f"{DATA[found.study.data]}: {len(shown['fourier'])} training signals", fontsize="medium")


def draw_spectra(ax: Axes, found: Predictions) -> None:
    """Filters learnt on the larger training set by both solvers, each divided by its maximum as the authors' are."""
    size = max(found.study.sizes)
    for index, degree in enumerate((1, 2, 3)):
        fits = [found.fit(size, key) for key in (f"degree-{degree}", f"degree-{degree}, {BY_ALGORITHM_1}")]
        curves = [Polynomial.from_coefficients(fit["coefficients"]).rescaled().response(GRID) for fit in fits]
        star = "" if fits[1]["converged"] else " *"
        style: dict[str, Any] = {"marker": MARKERS[index], "markersize": 4, "markevery": (30 * index + 15, 90)}
        if np.max(np.abs(curves[0] - curves[1])) < COINCIDE:
            labels = {0: f"degree {degree}, both{star}"}
        else:
            labels = {0: f"degree {degree}, jointly", 1: f"degree {degree}, Algorithm 1{star}"}
        for which, label in labels.items():
            line = "-" if which == 0 else "--"
            ax.plot(GRID, curves[which], color=COLOURS[index], linestyle=line, linewidth=1.6, label=label, **style)
    mark_eigenvalues(ax, found.shown["eigenvalues"])
    ax.set_ylim(-0.08, 1.08)
    ax.set_xlabel(EIGENVALUE)
    ax.set_ylabel("filter g(λ) / maximum")
    ax.set_title(f"{DATA[found.study.data]}, {size} signals", fontsize="medium")
    legend_below(ax, 2)


def splits_figure(finished: Finished) -> Figure:
    """Median paired differences to the standard GP with their intervals, one row per data set, one panel per size."""
    studies = [finished.predictions(f"{key}-splits") for key in ("traffic", "weather")]
    figure, axes = new_figure(len(studies), 2, width=5.0, height=3.4)
    models = [model for model in (*POLYNOMIALS, *BASELINES) if model.row != "standard"]
    for row, found in zip(axes, studies, strict=True):
        for ax, size in zip(row, found.study.sizes, strict=True):
            for place, model in enumerate(models):
                difference = found.difference(size, model.key, "standard")
                middle = difference.median
                if middle < -FAR_NATS / 3:
                    words = f"◂ {middle:.1f} [{difference.low:.1f}, {difference.high:.1f}]"
                    ax.text(0.01, place, words, transform=ax.get_yaxis_transform(), va="center", fontsize="x-small")
                    continue
                style = 0 if model.group == "polynomial" else 1
                ax.errorbar(
                    middle,
                    place,
                    xerr=[[middle - difference.low], [difference.high - middle]],
                    color=COLOURS[style],
                    marker=MARKERS[style],
                    capsize=3,
                    markersize=4,
                )
            ax.axvline(0, color="0.4", linewidth=0.8)
            ax.set_yticks(range(len(models)), [one.label for one in models] if ax is row[0] else [], fontsize="small")
            ax.set_ylim(len(models) - 0.5, -0.5)
            ax.grid(axis="x", color="0.9")
            ax.set_title(f"{found.study.data}, {size} signals, {len(found.study.splits)} splits", fontsize="medium")
    for ax in axes[-1]:
        ax.set_xlabel("test score less that of the standard GP (nats per signal)")
    return figure
