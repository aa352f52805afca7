"""Pictures of predictions beside what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._checks import as_real_array
from spectralgp.plots.style import axes
from spectralgp.scores import interval_half_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INSIDE, OUTSIDE = "#0072B2", "#D55E00"


def plot_prediction(
    observed: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    ax: Axes | None = None,
    names: Sequence[str] | None = None,
    positions: ArrayLike | None = None,
    level: float = 0.9,
    sort: bool = True,
) -> Axes:
    """Draw predictions with intervals, and what was observed, for the nodes of one signal or one node over time.

    Parameters
    ----------
    observed, mean : array-like of shape (n_values,)
        What was observed, and what was predicted for it.
    std : array-like of shape (n_values,)
        Standard deviation of the prediction, noise included (``predict(..., include_noise=True)``).
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    names : sequence of str, optional
        Of the nodes, written along the bottom.
    positions : array-like of shape (n_values,), optional
        Where the values stand on the horizontal axis, such as years: draws a line with a band, unsorted.
    level : float, default=0.9
        Probability of the intervals.
    sort : bool, default=True
        Order nodes by their prediction.

    Returns
    -------
    matplotlib Axes
        Observations outside their interval are marked by another colour and shape.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from spectralgp.plots import plot_prediction
    >>> ax = plot_prediction([0.0, 5.0], [0.1, 0.0], [1.0, 1.0], names=["a", "b"])
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['b', 'a']
    >>> matplotlib.pyplot.close(ax.figure)
    """
    from matplotlib.ticker import MaxNLocator

    values = as_real_array(observed, "observed", ("n_values",))
    size = {"n_values": values.size}
    centres = as_real_array(mean, "mean", ("n_values",), sizes=size)
    half_widths = interval_half_width(as_real_array(std, "std", ("n_values",), sizes=size), level)
    if names is not None and len(names) != values.size:
        raise ValueError(f"names must hold one name for each of the {values.size} values; got {len(names)}.")
    if positions is not None:
        places = as_real_array(positions, "positions", ("n_values",), sizes=size)
        order = np.argsort(places, kind="stable")
    else:
        places = np.arange(values.size, dtype=float)
        order = np.argsort(centres, kind="stable") if sort else np.arange(values.size)
        places = places[np.argsort(order, kind="stable")]
    ax = axes(ax)
    interval = f"{level:.0%} interval"
    if positions is not None:
        low, high = centres - half_widths, centres + half_widths
        ax.fill_between(places[order], low[order], high[order], color="0.8", linewidth=0, label=interval)
        ax.plot(places[order], centres[order], color="0.35", label="predicted")
        ax.xaxis.set_major_locator(MaxNLocator(integer=bool((places == np.round(places)).all())))
    else:
        ax.vlines(places, centres - half_widths, centres + half_widths, color="0.8", linewidth=4, label=interval)
        ax.plot(places, centres, "_", color="0.25", markersize=7, markeredgewidth=1.6, label="predicted")
    inside = np.abs(values - centres) <= half_widths
    ax.plot(places[inside], values[inside], "o", color=INSIDE, markersize=4, label="observed")
    if not inside.all():
        ax.plot(places[~inside], values[~inside], "D", color=OUTSIDE, markersize=5, label="observed, outside")
    if names is not None:
        rotation = 90 if values.size > 12 or max(map(len, map(str, names))) > 4 else 0
        ax.set_xticks(places[order], [str(names[index]) for index in order], rotation=rotation)
        ax.tick_params(axis="x", labelsize="small", length=0)
    ax.margins(x=0.02)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False, fontsize="small")
    return ax
