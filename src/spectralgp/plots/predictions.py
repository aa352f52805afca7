"""Pictures of predictions beside what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectralgp._checks import Array, as_real_array
from spectralgp.plots.style import COLOURS, axes, size_in_points
from spectralgp.scores import interval_half_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INSIDE, OUTSIDE = COLOURS[:2]
SMALLEST_FONT, LINE_HEIGHT = 5.0, 1.15  # in points, and in sizes of the font


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
    dates = None if positions is None else _as_dates(positions)
    if positions is not None:
        places = as_real_array(positions if dates is None else dates.days, "positions", ("n_values",), sizes=size)
        order = np.argsort(places, kind="stable")
    else:
        order = np.argsort(centres, kind="stable") if sort else np.arange(values.size)
        places = np.argsort(order, kind="stable").astype(float)
    ax = axes(ax)
    interval = f"{level:.0%} interval"
    low, high = centres - half_widths, centres + half_widths
    if positions is not None:
        ax.fill_between(places[order], low[order], high[order], color="0.8", linewidth=0, label=interval)
        ax.plot(places[order], centres[order], color="0.35", label="predicted")
    else:
        width = np.clip(size_in_points(ax)[0] / values.size, 1.0, 4.0)
        ax.vlines(places, low, high, color="0.8", linewidth=width, label=interval)
        ax.plot(places, centres, "_", color="0.25", markersize=7, markeredgewidth=1.6, label="predicted")
    _mark_observed(ax, places, values, np.abs(values - centres) <= half_widths)
    ax.margins(x=0.02)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False, fontsize="small")
    if positions is None:
        shown = "node, in order of prediction" if sort else "node"
    else:
        shown = _name_of(positions, "position" if dates is None else f"date ({dates.zone})" if dates.zone else "date")
    if names is not None:
        shown += _write_names(ax, places[order], [str(names[index]) for index in order])
    elif positions is None and sort:
        ax.set_xticks([])  # ranks would be taken for the nodes' numbers
    elif dates is not None:
        _use_dates(ax, dates.zone)
    else:
        _use_numbers(ax, places)
    ax.set_xlabel(shown if xlabel is None else xlabel)
    ax.set_ylabel(_name_of(observed, "value") if ylabel is None else ylabel)
    return ax


def _mark_observed(ax: Axes, places: Array, values: Array, inside: NDArray[np.bool_]) -> None:
    """Observed values, those outside their interval by another colour and shape; many in little room are small."""
    size = float(np.clip(10 * size_in_points(ax)[0] / values.size, 1.5, 4.0))
    ax.plot(places[inside], values[inside], "o", color=INSIDE, markersize=size, label="observed")
    if not inside.all():
        style: dict[str, Any] = {"color": OUTSIDE, "markersize": 1.25 * size, "label": "observed, outside"}
        ax.plot(places[~inside], values[~inside], "D", **style)


@dataclass(frozen=True, eq=False)
class _Dates:
    """Dates as matplotlib counts them, in days since 1970 in UTC, and the time zone to show them in, if any."""

    days: Array
    zone: tzinfo | None


def _as_dates(positions: Any) -> _Dates | None:
    """The positions as dates; None if they are no dates."""
    try:
        array = np.asarray(positions)
    except ValueError:  # rows of unequal length, which the door refuses in its own words
        return None
    items = array.ravel().tolist() if array.dtype.kind in "OSU" else []
    if items and isinstance(items[0], str | bytes):
        raise TypeError(
            f"positions must be numbers or dates; got text ({items[0]!r}). "
            "Convert it, for example by pandas.to_datetime(positions)."
        )
    if array.dtype.kind != "M" and not (items and all(isinstance(item, date) for item in items)):
        return None
    missing = np.argwhere(array != array)  # only NaT differs from itself
    if missing.size:
        raise ValueError(
            f"positions must be complete; got NaT at index {int(missing[0, 0])}. Remove values without a date first."
        )
    zones = [getattr(item, "tzinfo", None) for item in items]  # NumPy's dates have none
    if None in zones and any(zones):
        raise ValueError(
            "positions must all have a time zone or none; got both. "
            "Convert them, for example by pandas.to_datetime(positions, utc=True)."
        )
    return _Dates(_matplotlib_dates().date2num(array), zones[0] if zones else None)


def _matplotlib_dates() -> Any:
    """Matplotlib's dates, which carry no types."""
    import matplotlib.dates

    return matplotlib.dates


def _use_numbers(ax: Axes, places: Array) -> None:
    """Ticks at whole numbers, such as years, if all places are."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=bool((places == np.round(places)).all())))


def _use_dates(ax: Axes, zone: tzinfo | None) -> None:
    """Ticks at years, months, days or hours, whichever suit."""
    dates = _matplotlib_dates()
    ax.xaxis_date(zone)  # so that dates can be added to the axes
    locator = dates.AutoDateLocator(tz=zone)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=zone))


def _write_names(ax: Axes, places: Array, names: list[str]) -> str:
    """Names along the bottom, smaller or fewer where they would touch; says so if some are left out."""
    from matplotlib.font_manager import FontProperties

    upright = len(names) <= 12 and max(map(len, names)) <= 4
    room = size_in_points(ax)[0] / len(names) / LINE_HEIGHT
    step = int(np.ceil(SMALLEST_FONT / room))
    ax.set_xticks(places[::step], names[::step], rotation=0 if upright else 90)
    usual = FontProperties(size="small").get_size_in_points()
    ax.tick_params(axis="x", labelsize=min(usual, room * step), length=0)
    return f" (one in {step} is named)" if step > 1 else ""


def _name_of(data: Any, otherwise: str) -> str:
    """Name of a pandas Series or Index."""
    name = getattr(data, "name", None)
    return name if isinstance(name, str) else otherwise
