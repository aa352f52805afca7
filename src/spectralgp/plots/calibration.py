"""Pictures that tell whether predicted uncertainties are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.checks import as_integer
from spectralgp.plots.style import COLOURS
from spectralgp.scores import CHANCE, LEVELS, Calibration, calibration_of, pit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SKY = COLOURS[6]  # light enough for the grey band to show on it


def plot_calibration(
    observed: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    axes: Sequence[Axes] | None = None,
    n_bins: int = 10,
) -> tuple[Axes, Axes]:
    """Draw whether predicted uncertainties are right: a histogram of `scores.pit`, and `scores.coverage` by level.

    The histogram is flat, and the coverage on the diagonal, if the predictions are calibrated. A hump, and a coverage
    above the diagonal, belong to intervals that are too wide; a U, and a coverage below, to intervals that are too
    narrow; a slope is a bias.

    Parameters
    ----------
    observed, mean : array-like of any one shape
        What was observed, NaN where nothing was (such values are left out), and what was predicted for it.
    std : array-like of the same shape
        Standard deviation of the prediction, noise included (``predict(..., include_noise=True)``).
    axes : pair of matplotlib Axes, optional
        Where to draw the histogram and the coverage; a new figure if not given.
    n_bins : int, default=10
        Number of bars of the histogram.

    Returns
    -------
    pair of matplotlib Axes
        The grey bands hold 90% of calibrated predictions whose values are independent. Values of neighbouring nodes
        are not, so that theirs stray further.

    Raises
    ------
    ValueError
        If `scores.pit` refuses the values, or `axes` is no pair.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from spectralgp.plots import plot_calibration
    >>> observed = np.random.default_rng(0).standard_normal((20, 30))
    >>> histogram, coverage = plot_calibration(observed, np.zeros((20, 30)), np.ones((20, 30)))
    >>> coverage.get_xlabel()
    'probability of the interval'
    >>> matplotlib.pyplot.close(coverage.figure)
    """
    transformed = pit(observed, mean, std)
    n_bars = as_integer(n_bins, "n_bins", 2)
    if axes is not None and len(axes) != 2:
        raise ValueError(f"axes must be a pair, for the histogram and the coverage; got {len(axes)}. Pass two Axes.")
    left, right = _pair() if axes is None else axes
    found = calibration_of(transformed, n_bars)
    _draw_histogram(left, found)
    _draw_coverage(right, found)
    return left, right


def _pair() -> tuple[Axes, Axes]:
    import matplotlib.pyplot as plt

    left, right = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")[1]
    return left, right


def _draw_histogram(ax: Axes, found: Calibration) -> None:
    density, edges, band = found.density, found.edges, found.density_band
    ax.bar(edges[:-1], density, np.diff(edges), align="edge", color=SKY, edgecolor="white", label="observed")
    ax.axhspan(*band, color="0.3", alpha=0.3, linewidth=0, label=f"{CHANCE:.0%} of calibrated, if independent")
    ax.axhline(1, color="black", linestyle="--", linewidth=1.2, label="calibrated")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.3 * max(density.max(), band[1]))  # with room for the legend
    ax.set_xlabel("predicted probability of a lower value (PIT)")
    ax.set_ylabel("density of observed values")
    ax.legend(loc="upper center", ncols=2, frameon=False, fontsize="small")


def _draw_coverage(ax: Axes, found: Calibration) -> None:
    from matplotlib.ticker import PercentFormatter

    ax.fill_between(LEVELS, found.low, found.high, color="0.3", alpha=0.3, linewidth=0)
    ax.plot([0, 1], [0, 1], color="black", linestyle="--", linewidth=1.2)
    label = f"observed ({found.covered_at(0.9):.0%} in 90% intervals)"
    ax.plot(LEVELS, found.covered, color=COLOURS[0], linewidth=2, label=label)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0))
    ax.set_xlabel("probability of the interval")
    ax.set_ylabel("share of observed values inside")
    ax.legend(loc="best", frameon=False, fontsize="small")
