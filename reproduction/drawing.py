"""Colours, axes, legends and files of the pictures of the experiments."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.store import write_bytes
from spectralgp.show.plots import COLOURS as PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = tuple(colour for colour in PALETTE if colour != "#000000")  # black is the truth's
MARKERS = ("o", "s", "^", "D", "v", "P")
GRID = np.linspace(0, 1, 301)
EIGENVALUE = "eigenvalue λ of the scaled Laplacian"
DOTS_PER_INCH = 100


def new_figure(n_rows: int, n_columns: int, width: float = 4.0, height: float = 3.3) -> tuple[Figure, Any]:
    """A figure and its axes, without the global state of pyplot."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for index, ax in enumerate(axes.flat):
        ax.set_title(f"({chr(ord('a') + index)})", loc="left", fontsize="medium")
    return figure, axes


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, the same bytes for the same results."""
    for ax in figure.axes:  # beside the title, where it cannot run into it however narrow the axes are
        letter, title = ax.get_title(loc="left"), ax.get_title()
        ax.set_title("", loc="left")
        ax.set_title(f"{letter} {title}".strip(), fontsize="medium")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    write_bytes(path, buffer.getvalue())


def legend_below(ax: Axes, n_columns: int) -> None:
    """Legend under the axes, clear of the curves."""
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.2),
        ncols=n_columns,
        frameon=False,
        fontsize="small",
        handlelength=2.6,
        columnspacing=1.2,
    )


def draw_coefficients(ax: Axes, eigenvalues: list[float], fourier: list[list[float]]) -> None:
    """Graph Fourier coefficients against the eigenvalues, one colour per signal."""
    from matplotlib import colormaps

    for share, signal in zip(np.linspace(0, 1, len(fourier)), fourier, strict=True):
        colour = colormaps["turbo"](share)
        ax.plot(eigenvalues, signal, color=colour, marker="o", markersize=2.2, linestyle="none", alpha=0.8)
    ax.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    ax.set_xlabel(EIGENVALUE)
    ax.set_ylabel("graph Fourier coefficient")


def mark_eigenvalues(ax: Axes, eigenvalues: list[float]) -> None:
    """Ticks along the bottom at the graph's eigenvalues."""
    ax.vlines(eigenvalues, 0.0, 0.025, color="0.35", linewidth=0.7, transform=ax.get_xaxis_transform())
