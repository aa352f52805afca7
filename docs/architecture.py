"""The picture of ARCHITECTURE.md: the folders of the package, and the steps of a fit through them."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from spectralgp.show.plots import COLOURS

# layers from the bottom up, in the order of the imports: folders with what each is, and their parts
LAYERS: tuple[tuple[tuple[str, str, tuple[str, ...]], ...], ...] = (
    (("_basics", "arrays, checks, tables, progress", ()),),
    (("graphs", "weights, names, coordinates, Laplacians", ("operators", "partitioned")),),
    (
        (
            "model",
            "signals on a graph as one Gaussian field",
            ("signals", "spectra", "kernels", "statespace", "likelihoods", "fields"),
        ),
    ),
    (
        ("scores", "densities, errors, coverage", ()),
        ("datasets", "embedded or released", ()),
        ("learning", "objective, search, default", ()),
        ("series", "forecasts", ()),
    ),
    (
        ("files", "models and tables in files", ()),
        ("show", "figures and reports", ("report", "plots")),
        ("estimators", "fit and predict", ()),
    ),
    (("cli", "the command line", ()),),
)
FIT: tuple[tuple[str, str], ...] = (  # where a fit goes, and what it does there
    ("estimators", "read what the user gave, checked once"),
    ("model.signals", "centre, scale, units, missing values"),
    ("learning", "choose variants to try, and folds"),
    ("model.spectra", "eigenvalues and eigenvectors of the graph"),
    ("model.kernels", "powers of a filter, and its search space"),
    ("model.fields", "evidence and its gradient"),
    ("learning", "optimise, check optimality, weight models"),
    ("model.fields", "condition on all signals; used by predict"),
)
WIDTH, GAP, INNER = 10.0, 0.22, 0.42
LOW, HIGH = 0.62, 1.15  # heights of folders without parts, and with some


def package_picture() -> Figure:
    """Folders in layers, with numbers where a fit passes and a list of its steps."""
    figure = Figure(figsize=(13.0, 6.4), layout="constrained")
    ax = figure.subplots()
    bottom = 0.0
    for layer in LAYERS:
        height = HIGH if any(parts for _, _, parts in layer) else LOW
        width = (WIDTH - GAP * (len(layer) - 1)) / len(layer)
        for position, (name, text, parts) in enumerate(layer):
            _folder(ax, (position * (width + GAP), bottom, width, height), name, text, parts)
        bottom += height + GAP
    top = bottom - GAP
    ax.add_patch(FancyArrowPatch((-0.3, top), (-0.3, 0.0), arrowstyle="-|>", mutation_scale=14, color="0.35"))
    ax.text(-0.45, top / 2, "imports point down", rotation=90, ha="right", va="center", fontsize=10, color="0.35")
    ax.text(WIDTH + 0.5, top, "The steps of a fit", fontsize=11, va="top", weight="bold")
    for number, (place, text) in enumerate(FIT, 1):
        height = top - 0.25 - 0.62 * number
        _circled(ax, WIDTH + 0.66, height, number)
        ax.text(WIDTH + 0.95, height + 0.1, text, va="center", fontsize=10)
        ax.text(WIDTH + 0.95, height - 0.17, place.replace(".", "/"), va="center", fontsize=8.5, color="0.4")
    ax.set_xlim(-0.9, WIDTH + 5.2)
    ax.set_ylim(-0.1, top + 0.1)
    ax.set_axis_off()
    return figure


def _folder(ax: Axes, place: tuple[float, float, float, float], name: str, text: str, parts: tuple[str, ...]) -> None:
    """A folder with its name, what it is, and its parts."""
    left, bottom, width, height = place
    _box(ax, place, name)
    line = bottom + height - LOW / 2
    ax.text(left + 0.15, line + 0.13, name, va="center", fontsize=11, weight="bold")
    ax.text(left + 0.15, line - 0.14, text, va="center", fontsize=8.5, color="0.35")
    inner = (width - GAP * (len(parts) + 1)) / max(len(parts), 1)
    for position, part in enumerate(parts):
        left_of_part = left + GAP + position * (inner + GAP)
        _box(ax, (left_of_part, bottom + 0.1, inner, INNER), f"{name}.{part}")
        ax.text(left_of_part + inner / 2, bottom + 0.1 + INNER / 2, part, ha="center", va="center", fontsize=10)


def _box(ax: Axes, place: tuple[float, float, float, float], name: str) -> None:
    """A box with the numbers of the steps of a fit that pass through it."""
    left, bottom, width, height = place
    numbers = [number for number, (at, _) in enumerate(FIT, 1) if at == name]
    style, colour = "round,pad=0,rounding_size=0.08", COLOURS[0] if numbers else "0.6"
    box = FancyBboxPatch((left, bottom), width, height, boxstyle=style, edgecolor=colour, facecolor="white")
    box.set_linewidth(1.6 if numbers else 0.9)
    ax.add_patch(box)
    for position, number in enumerate(numbers):
        _circled(ax, left + width - 0.16 - 0.3 * position, bottom + height - 0.02, number)


def _circled(ax: Axes, x: float, y: float, number: int) -> None:
    """The number of a step of a fit."""
    circle = {"boxstyle": "circle,pad=0.22", "facecolor": COLOURS[1], "edgecolor": "none"}
    ax.text(x, y, str(number), ha="center", va="center", fontsize=8.5, color="white", bbox=circle)
