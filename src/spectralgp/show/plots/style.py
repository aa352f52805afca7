"""Style of all pictures: colours, axes, legends, and positions along the horizontal axis."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, tzinfo
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import MaxNLocator

from spectralgp._basics.checks import Array, as_real_array
from spectralgp._basics.extras import require
from spectralgp.show.curves import COLOURS as COLOURS

matplotlib_dates = require("matplotlib.dates", "plots", "to draw")  # which has no types

# no common divisor with the number of colours, so that a colour comes back with another style
LINE_STYLES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (7, 2)), (0, (4, 1, 1, 1, 1, 1)))

IMPUTED_MARKER = "s"  # of imputed values; circles are observed ones
SMALLEST_FONT, LINE_HEIGHT = 5.0, 1.15  # in points, and in sizes of the font


def curve_look(place: int) -> dict[str, Any]:
    """Colour and line of one of several curves."""
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": LINE_STYLES[place % len(LINE_STYLES)]}


def as_axes(ax: Axes | None) -> Axes:
    """Given axes, or those of a new figure."""
    return plt.subplots(layout="constrained")[1] if ax is None else ax


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points (1/72 inch); a layout may still change them."""
    box = ax.get_window_extent()
    return float(box.width * 72 / ax.figure.dpi), float(box.height * 72 / ax.figure.dpi)


def mark_size(ax: Axes, n_values: int) -> float:
    """Size in points of the marks of values side by side, small if there are many."""
    return float(np.clip(10 * size_in_points(ax)[0] / n_values, 1.5, 4.0))


def legend(ax: Axes) -> None:
    """Add a legend inside the axes, or beside them if it is long."""
    is_long = len(ax.get_legend_handles_labels()[0]) > 4
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if is_long else {}
    ax.legend(frameon=False, fontsize="small", handlelength=3, **beside)


def legend_above(ax: Axes) -> None:
    """Add a legend in one line above the axes."""
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False, fontsize="small")


def interval_label(level: float) -> str:
    """Name of an interval of this probability."""
    return f"{100 * level:.4g}% interval"


@dataclass(frozen=True, eq=False)
class Positions:
    """Positions along an axis, and its label; dates are in days since 1970 in UTC, as in matplotlib."""

    places: Array
    label: str
    are_dates: bool
    zone: tzinfo | None

    def use(self, ax: Axes) -> None:
        """Set ticks at years, months, days or hours; of numbers, at whole ones if all are whole."""
        if not self.are_dates:
            ax.xaxis.set_major_locator(MaxNLocator(integer=bool((self.places == np.round(self.places)).all())))
            return
        ax.xaxis_date(self.zone)  # so that dates can be added to the axes
        locator = matplotlib_dates.AutoDateLocator(tz=self.zone)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(matplotlib_dates.ConciseDateFormatter(locator, tz=self.zone))


def read_positions(positions: Any, n_values: int, otherwise: str = "position") -> Positions:
    """Read positions, numbers or dates; `otherwise` is the label of numbers without a name."""
    dates = _as_dates(positions)
    numbers, zone = (positions, None) if dates is None else dates
    places = as_real_array(numbers, "positions", ("n_values",), sizes={"n_values": n_values})
    label = otherwise if dates is None else f"date ({zone})" if zone else "date"
    return Positions(places, name_of(positions, label), dates is not None, zone)


def _as_dates(positions: Any) -> tuple[Array, tzinfo | None] | None:
    """Dates in days, with the time zone to show them in, if any; None for numbers."""
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
    return matplotlib_dates.date2num(array), zones[0] if zones else None


def write_names(ax: Axes, places: Array, names: list[str]) -> str:
    """Write names along the bottom, smaller or fewer if they would touch; return a note if some are left out."""
    upright = len(names) <= 12 and max(map(len, names)) <= 4
    room = size_in_points(ax)[0] / len(names) / LINE_HEIGHT
    step = int(np.ceil(SMALLEST_FONT / room))
    ax.set_xticks(places[::step], names[::step], rotation=0 if upright else 90)
    usual = FontProperties(size="small").get_size_in_points()
    ax.tick_params(axis="x", labelsize=min(usual, room * step), length=0)
    return f" (one in {step} is named)" if step > 1 else ""


def name_of(data: Any, otherwise: str) -> str:
    """Name of a pandas Series or Index."""
    name = getattr(data, "name", None)
    return name if isinstance(name, str) else otherwise
