"""Whether predicted uncertainties are right, in numbers: a histogram of `scores.pit`, and coverage by level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from spectralgp._checks import Array

LEVELS = np.linspace(0.01, 0.99, 99)
CHANCE = 0.9  # probability of the bands


@dataclass(frozen=True, eq=False)
class Calibration:
    """How often observed values fell where predictions said; all as shares of the observed values.

    Bands hold the share `CHANCE` of calibrated predictions whose values are independent. Values of neighbouring nodes
    are not, so that theirs stray further.

    Parameters
    ----------
    n_values : int
        Number of observed values.
    edges : ndarray of shape (n_bins + 1,)
        Of the bars of the histogram, from 0 to 1.
    density : ndarray of shape (n_bins,)
        Density of the transformed values: one if predictions are calibrated.
    density_band : pair of float
        Its band.
    covered : ndarray of shape (99,)
        Share of the values inside the central interval of each of `LEVELS`.
    low, high : ndarray of shape (99,)
        Its band.
    """

    n_values: int
    edges: Array
    density: Array
    density_band: tuple[float, float]
    covered: Array
    low: Array
    high: Array

    def covered_at(self, level: float) -> float:
        """Share of the values inside the central interval of one of `LEVELS`."""
        return float(self.covered[int(np.argmin(np.abs(level - LEVELS)))])


def calibration_of(transformed: Array, n_bins: int = 10) -> Calibration:
    """Calibration of predictions, from the probabilities that `scores.pit` gives; NaN was not observed.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp.calibration import calibration_of
    >>> found = calibration_of(np.array([0.1, 0.3, 0.7, 0.98]), n_bins=2)
    >>> found.density.tolist(), found.covered_at(0.9)
    ([1.0, 1.0], 0.75)
    """
    known = transformed[~np.isnan(transformed)]
    density, edges = np.histogram(known, n_bins, (0, 1), density=True)
    band = tuple(float(count) * n_bins / known.size for count in binom(known.size, 1 / n_bins).interval(CHANCE))
    # a value lies in the central interval of a level if its PIT is within half the level of one half
    smallest_level = np.sort(np.abs(2 * known - 1))
    covered = np.searchsorted(smallest_level, LEVELS, side="right") / known.size
    low, high = (counts / known.size for counts in binom(known.size, LEVELS).interval(CHANCE))
    return Calibration(known.size, edges, density, (band[0], band[1]), covered, low, high)
