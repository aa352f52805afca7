"""The picture of ARCHITECTURE.md: the rooms of the package, and the way of a fit through them."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from spectralgp.show.plots import COLOURS

# floors from the ground up: what the floor is about, and its rooms in the order of the imports
FLOORS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("the ground", ("_basics", "graphs.operators")),
    ("the data", ("graphs", "graphs.partitioned")),
    (
        "the model",
        (
            "model",
            "model.signals",
            "model.spectra",
            "model.kernels",
            "model.statespace",
            "model.likelihoods",
            "model.fields",
        ),
    ),
    ("learning", ("scores", "datasets", "learning", "series")),
    ("faces", ("files", "show", "show.report", "estimators", "show.plots")),
    ("programs", ("__init__", "cli", "__main__")),
)
# where a fit goes, and what it does there
FIT: tuple[tuple[str, str], ...] = (
    ("estimators", "1  fit(X, Y): read what the user gave"),
    ("graphs", "2  a graph in memory,"),
    ("graphs.partitioned", "3  or one in partitions on workers: the same verbs"),
    ("model.signals", "4  Signals: centre, scale, units, holes"),
    ("learning", "5  candidates: which models to try, by stages"),
    ("model.spectra", "6  the spectrum that a kernel asks for"),
    ("graphs.operators", "7  on large graphs: moments by the Laplacian"),
    ("model.kernels", "8  gamma = g², eta = h², constraints; K of the inputs"),
    ("model.fields", "9  D = kappa gamma + eta + sigma²; log likelihood and gradient"),
    ("learning", "10  folds, draws, weights of several models"),
    ("model.fields", "11  condition on all signals: what predict asks"),
)
WIDTH, HEIGHT, GAP = 10.0, 0.8, 0.4


def rooms_picture() -> Figure:
    """Floors of rooms, with numbers where a fit passes and a list of what happens there."""
    figure = Figure(figsize=(13.5, 6.0), layout="constrained")
    ax = figure.subplots()
    places = {}
    for floor, (name, rooms) in enumerate(FLOORS):
        bottom = floor * (HEIGHT + GAP)
        ax.text(-0.15, bottom + HEIGHT / 2, name, ha="right", va="center", fontsize=10, color="0.35")
        width = (WIDTH - 0.15 * (len(rooms) - 1)) / len(rooms)
        for position, room in enumerate(rooms):
            left = position * (width + 0.15)
            places[room] = (left, bottom, width)
            numbers = [step.split()[0] for place, step in FIT if place == room]
            colour = COLOURS[0] if numbers else "0.6"
            box = FancyBboxPatch(
                (left, bottom),
                width,
                HEIGHT,
                boxstyle="round,pad=0,rounding_size=0.08",
                edgecolor=colour,
                facecolor="white",
                linewidth=1.6 if numbers else 0.9,
            )
            ax.add_patch(box)
            label = "spectralgp" if room == "__init__" else room
            ax.text(left + width / 2, bottom + HEIGHT / 2, label, ha="center", va="center", fontsize=11)
            for place, number in enumerate(numbers):
                _circled(ax, left + 0.16 + 0.3 * place, bottom + HEIGHT - 0.14, number)
    top = len(FLOORS) * (HEIGHT + GAP)
    ax.add_patch(FancyArrowPatch((-1.75, top - GAP), (-1.75, 0.0), arrowstyle="-|>", mutation_scale=14, color="0.35"))
    ax.text(-1.9, top / 2, "imports point down", rotation=90, ha="right", va="center", fontsize=10, color="0.35")
    ax.text(WIDTH + 0.5, top - GAP, "The way of a fit", fontsize=11, va="top", weight="bold")
    for line, (_, step) in enumerate(FIT):
        number, text = step.split(maxsplit=1)
        height = top - GAP - 0.75 - 0.62 * line
        _circled(ax, WIDTH + 0.66, height, number)
        ax.text(WIDTH + 0.95, height, text, va="center", fontsize=10)
    ax.set_xlim(-2.3, WIDTH + 6.2)
    ax.set_ylim(-0.15, top + 0.05)
    ax.set_axis_off()
    return figure


def _circled(ax: Axes, x: float, y: float, number: str) -> None:
    """The number of a step of a fit."""
    circle = {"boxstyle": "circle,pad=0.22", "facecolor": COLOURS[1], "edgecolor": "none"}
    ax.text(x, y, number, ha="center", va="center", fontsize=8.5, color="white", bbox=circle)
