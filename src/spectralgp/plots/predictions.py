"""Pictures of predictions beside what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectralgp._basics.checks import Array, as_real_array
from spectralgp.plots.positions import name_of, read_positions, use_whole_numbers, write_names
from spectralgp.plots.style import COLOURS, axes, interval_label, legend_above, mark_size, size_in_points
from spectralgp.scores import interval_half_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INSIDE, OUTSIDE = COLOURS[:2]


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
    xlabel: str | None = None,
    ylabel: str | None = None,
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
        Of the nodes, written along the bottom: as many as fit.
    positions : array-like of shape (n_values,), optional
        Where the values stand on the horizontal axis: numbers such as years, or dates (NumPy's, pandas' or Python's,
        shown in their own time zone). Draws a line with a band, unsorted.
    level : float, default=0.9
        Probability of the intervals.
    sort : bool, default=True
        Order nodes by their prediction.
    xlabel, ylabel : str, optional
        What the axes show; "" for nothing. If not given: the name of `positions` and of `observed`, where they are
        pandas objects with one, else "node", "date" or "position", and "value".

    Returns
    -------
    matplotlib Axes
        Observations outside their interval are marked by another colour and shape. The legend stands above the axes:
        give a title room, ``ax.set_title(..., pad=26)``.

    Raises
    ------
    TypeError, ValueError
        If the arrays do not match, or positions are neither numbers nor dates.

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
    values = as_real_array(observed, "observed", ("n_values",))
    if values.size == 0:
        raise ValueError("observed must hold at least one value; got none. Pass what was observed.")
    size = {"n_values": values.size}
    centres = as_real_array(mean, "mean", ("n_values",), sizes=size)
    half_widths = interval_half_width(as_real_array(std, "std", ("n_values",), sizes=size), level)
    if names is not None and len(names) != values.size:
        raise ValueError(f"names must hold one name for each of the {values.size} values; got {len(names)}.")
    along = None if positions is None else read_positions(positions, values.size)
    if along is not None:
        places = along.places
        order = np.argsort(places, kind="stable")
    else:
        order = np.argsort(centres, kind="stable") if sort else np.arange(values.size)
        places = np.argsort(order, kind="stable").astype(float)
    ax = axes(ax)
    interval = interval_label(level)
    low, high = centres - half_widths, centres + half_widths
    if along is not None:
        ax.fill_between(places[order], low[order], high[order], color="0.8", linewidth=0, label=interval)
        ax.plot(places[order], centres[order], color="0.35", label="predicted")
    else:
        width = np.clip(size_in_points(ax)[0] / values.size, 1.0, 4.0)
        ax.vlines(places, low, high, color="0.8", linewidth=width, label=interval)
        ax.plot(places, centres, "_", color="0.25", markersize=7, markeredgewidth=1.6, label="predicted")
    _mark_observed(ax, places, values, np.abs(values - centres) <= half_widths)
    ax.margins(x=0.02)
    legend_above(ax)
    shown = along.label if along is not None else "node, in order of prediction" if sort else "node"
    if names is not None:
        shown += write_names(ax, places[order], [str(names[index]) for index in order])
    elif along is not None:
        along.use(ax)
    elif sort:
        ax.set_xticks([])  # ranks would be taken for the nodes' numbers
    else:
        use_whole_numbers(ax)
    ax.set_xlabel(shown if xlabel is None else xlabel)
    ax.set_ylabel(name_of(observed, "value") if ylabel is None else ylabel)
    return ax


def _mark_observed(ax: Axes, places: Array, values: Array, inside: NDArray[np.bool_]) -> None:
    """Observed values, those outside their interval by another colour and shape."""
    size = mark_size(ax, values.size)
    ax.plot(places[inside], values[inside], "o", color=INSIDE, markersize=size, label="observed")
    if not inside.all():
        style: dict[str, Any] = {"color": OUTSIDE, "markersize": 1.25 * size, "label": "observed, outside"}
        ax.plot(places[~inside], values[~inside], "D", **style)
