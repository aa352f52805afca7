"""What all pictures share: colours, axes, legends, names of axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralgp._basics.colours import COLOURS as COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# no common divisor with the number of colours, so that a colour comes back with another style
LINE_STYLES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (7, 2)), (0, (4, 1, 1, 1, 1, 1)))

FILLED_MARKER = "s"  # of what was filled in, where circles were observed


def axes(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points, of which an inch has 72; a layout may still change them."""
    box = ax.get_window_extent()
    return float(box.width * 72 / ax.figure.dpi), float(box.height * 72 / ax.figure.dpi)


def mark_size(ax: Axes, n_values: int) -> float:
    """Size in points of the marks of so many values side by side: many in little room are small."""
    return float(np.clip(10 * size_in_points(ax)[0] / n_values, 1.5, 4.0))


def legend(ax: Axes, n_entries: int) -> None:
    """Legend where matplotlib finds room inside, or beside the axes if it is long."""
    if n_entries <= 4:
        ax.legend(frameon=False, fontsize="small", handlelength=3)
    else:
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small", handlelength=3)


def legend_above(ax: Axes) -> None:
    """Legend in one line above the axes, where it hides no values."""
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False, fontsize="small")


def interval_label(level: float) -> str:
    """Name of an interval of this probability."""
    return f"{100 * level:.4g}% interval"


def eigenvalue_label(kind: str, scaled: bool) -> str:
    """Name of the horizontal axis, for eigenvalues of one Laplacian."""
    british = {"normalized": "normalised"}.get(kind, kind)
    return f"eigenvalue λ of the {'scaled ' if scaled else ''}{british} Laplacian"
