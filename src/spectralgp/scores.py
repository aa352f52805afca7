"""How good predictions are: densities, errors and coverage; arrays in, numbers out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from spectralgp._checks import Array, as_positive, as_real_array


def log_density(observed: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Gaussian log density of each observed value, taken alone.

    Parameters
    ----------
    observed, mean : array-like of any one shape
        What was observed, and what was predicted for it.
    std : array-like of the same shape
        Standard deviation of the prediction, noise included (``predict(..., include_noise=True)``).

    Returns
    -------
    ndarray of the same shape
        In nats. The values of one signal are correlated: for the density of a whole signal use
        `GraphGPRegressor.log_predictive_density`, not the sum of these.

    Raises
    ------
    ValueError
        If shapes differ, a value is not finite, or a standard deviation is not above zero.

    Examples
    --------
    >>> from spectralgp.scores import log_density
    >>> log_density([0.0, 1.0], [0.0, 0.0], [1.0, 1.0]).round(4).tolist()
    [-0.9189, -1.4189]
    """
    values, centres, spreads = _checked(observed, mean, std)
    return -0.5 * (((values - centres) / spreads) ** 2 + np.log(2 * np.pi)) - np.log(spreads)


def mean_log_density(observed: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    """Mean of `log_density` over all values: a score of both error and uncertainty, larger is better.

    Examples
    --------
    >>> from spectralgp.scores import mean_log_density
    >>> round(mean_log_density([0.0, 1.0], [0.0, 0.0], [1.0, 1.0]), 4)
    -1.1689
    """
    return float(np.mean(log_density(observed, mean, std)))


def root_mean_square_error(observed: ArrayLike, mean: ArrayLike) -> float:
    """Root of the mean squared error over all values, in their units.

    Parameters
    ----------
    observed, mean : array-like of any one shape
        What was observed, and what was predicted for it.

    Examples
    --------
    >>> from spectralgp.scores import root_mean_square_error
    >>> root_mean_square_error([[1.0, 2.0]], [[1.0, 4.0]]) ** 2
    2.0
    """
    values, centres = _checked(observed, mean)
    return float(np.sqrt(np.mean((values - centres) ** 2)))


def interval_half_width(std: ArrayLike, level: float = 0.9) -> Array:
    """Half the width of the central Gaussian interval that holds the share `level` of the probability.

    Parameters
    ----------
    std : array-like
        Standard deviations.
    level : float, default=0.9
        Between 0 and 1, both excluded.

    Examples
    --------
    >>> from spectralgp.scores import interval_half_width
    >>> interval_half_width([1.0, 2.0], level=0.95).round(2).tolist()
    [1.96, 3.92]
    """
    share = as_positive(level, "level")
    if share >= 1:
        raise ValueError(f"level must lie between 0 and 1; got {level!r}. Pass 0.9 for 90% intervals.")
    spreads = _as_any_shape(std, "std")
    return float(ndtri(0.5 + share / 2)) * spreads


def coverage(observed: ArrayLike, mean: ArrayLike, std: ArrayLike, level: float = 0.9) -> float:
    """Share of the observed values inside their central interval; near `level` if the predictions are calibrated.

    Parameters
    ----------
    observed, mean : array-like of any one shape
        What was observed, and what was predicted for it.
    std : array-like of the same shape
        Standard deviation of the prediction, noise included (``predict(..., include_noise=True)``).
    level : float, default=0.9
        Probability of the intervals.

    Examples
    --------
    >>> from spectralgp.scores import coverage
    >>> coverage([0.0, 1.0, 2.0, 3.0], [0.0] * 4, [1.0] * 4, level=0.9)
    0.5
    """
    values, centres, spreads = _checked(observed, mean, std)
    return float(np.mean(np.abs(values - centres) <= interval_half_width(spreads, level)))


def _checked(observed: ArrayLike, mean: ArrayLike, std: ArrayLike | None = None) -> tuple[Array, ...]:
    """The arguments as arrays of one shape; nothing is broadcast, since that hides transposed arguments."""
    named = {"observed": observed, "mean": mean} | ({} if std is None else {"std": std})
    arrays = {name: _as_any_shape(value, name) for name, value in named.items()}
    shape = arrays["observed"].shape
    if arrays["observed"].size == 0:
        raise ValueError(f"observed must hold at least one value; got shape {shape}. Pass what was observed.")
    for name, array in arrays.items():
        if array.shape != shape:
            raise ValueError(
                f"{name} must have the shape of observed, {shape}; got {array.shape}. "
                "Pass one prediction for each observed value."
            )
    if "std" in arrays and not (arrays["std"] > 0).all():
        raise ValueError(
            f"std must be above zero everywhere; got {arrays['std'].min()}. "
            "Predict with include_noise=True to score observed values."
        )
    return tuple(arrays.values())


def _as_any_shape(value: Any, name: str) -> Array:
    try:
        n_axes = np.ndim(value)
    except ValueError:  # rows of unequal length, which the door refuses in its own words
        n_axes = 1
    return as_real_array(value, name, tuple(f"axis {axis}" for axis in range(n_axes)))
