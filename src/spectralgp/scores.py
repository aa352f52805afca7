"""Scores of predictions: densities, errors, coverage and calibration.

`observed`, `mean` and `std` are array-like of one shape, whatever it is: observed values, their predictions, and the
standard deviations of these, noise included (``predict(..., include_noise=True)``). NaN in `observed`, a masked entry
or pandas.NA is a missing value: its score is NaN, and averages skip it; its prediction may be NaN, and its deviation
zero. A ValueError is raised for arrays of different shapes, infinite values, arrays without any observed value, and,
at observed values, predictions that are NaN and deviations that are not positive.

The scorers are for scikit-learn's cross-validation and searches, ``scorer(estimator, X, Y)``: `estimator` is a fitted
GraphGPRegressor, or a Pipeline or a search that ends in one, and higher is better.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtrit
from scipy.stats import binom
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array, as_positive, as_real_array, without_mask
from spectralgp._basics.tables import as_table, frame_names, match_columns
from spectralgp.model.likelihoods.base import AuxiliaryData

__all__ = [
    "coverage",
    "coverage_scorer",
    "crps",
    "crps_scorer",
    "interval_half_width",
    "log_density",
    "log_density_scorer",
    "mean_log_density",
    "normalized_mean_squared_error",
    "pit",
    "root_mean_square_error",
]


def log_density(observed: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Gaussian log density of each observed value, taken alone, in nats.

    The values of one signal are correlated: for the density of a whole signal use
    `GraphGPRegressor.log_predictive_density`, not the sum of these.

    Examples
    --------
    >>> from spectralgp.scores import log_density
    >>> log_density([0.0, 1.0, float("nan")], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]).round(4).tolist()
    [-0.9189, -1.4189, nan]
    """
    values, centres, spreads = _checked(observed, mean, std)
    return -0.5 * (((values - centres) / spreads) ** 2 + np.log(2 * np.pi)) - np.log(spreads)


def mean_log_density(observed: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    """Mean of `log_density` over all observed values: a score of both error and uncertainty, larger is better."""
    return float(np.nanmean(log_density(observed, mean, std)))


def crps(observed: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Continuous ranked probability score of each Gaussian prediction; smaller is better.

    It is ``std (z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi))`` with ``z = (observed - mean) / std``, the integral of the
    squared distance between the distribution function and a step at the observed value. It has the units of the data,
    equals the absolute error of a prediction without uncertainty, and is less sensitive to outliers than `log_density`.

    Examples
    --------
    >>> from spectralgp.scores import crps
    >>> crps([0.0, 1.0], [0.0, 0.0], [1.0, 1.0]).round(4).tolist()
    [0.2337, 0.6024]
    """
    values, centres, spreads = _checked(observed, mean, std)
    z = (values - centres) / spreads
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return spreads * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))


def pit(observed: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Probability integral transform: the predicted probability of a value below the observed one.

    Uniform on [0, 1] if the predictions are calibrated; `spectralgp.show.plots.plot_calibration` draws it.
    """
    values, centres, spreads = _checked(observed, mean, std)
    return ndtr((values - centres) / spreads)


def root_mean_square_error(observed: ArrayLike, mean: ArrayLike) -> float:
    """Root of the mean squared error over all observed values, in their units."""
    values, centres = _checked(observed, mean)
    return float(np.sqrt(np.nanmean((values - centres) ** 2)))


def normalized_mean_squared_error(observed: ArrayLike, mean: ArrayLike, baseline: ArrayLike | None = None) -> float:
    """Mean squared error relative to that of a baseline: 0 is perfect, 1 no better than the baseline.

    The baseline is one number, or one per value; the mean of all observed values if not given. With 0 the score is
    ``||observed - mean||^2 / ||observed||^2``, as signal processing has it.

    Examples
    --------
    >>> from spectralgp.scores import normalized_mean_squared_error
    >>> normalized_mean_squared_error([1.0, 3.0], [1.0, 2.0]), normalized_mean_squared_error([1.0, 3.0], [1.0, 2.0], 0)
    (0.5, 0.1)
    """
    values, centres = _checked(observed, mean)
    known = ~np.isnan(values)
    simple = as_real_array(np.nanmean(values) if baseline is None else baseline, "baseline", None, allow_nan=True)
    if simple.shape not in ((), values.shape):
        raise ValueError(
            f"baseline must have the shape of observed, {values.shape}; got {simple.shape}. "
            "Pass one number for all values, or one for each."
        )
    _check_where_observed(simple, "baseline", known if simple.shape else np.True_)
    scale = float(np.nanmean((values - simple) ** 2))
    if scale == 0:
        raise ValueError(
            f"baseline must differ from observed somewhere; got {values[known][0]} for equal values. "
            "Pass another baseline, or use root_mean_square_error."
        )
    return float(np.nanmean((values - centres) ** 2)) / scale


def interval_half_width(std: ArrayLike, level: float = 0.9) -> Array:
    """Half the width of the central Gaussian interval of probability `level`, between 0 and 1: 1.96 `std` for 0.95."""
    share = as_positive(level, "level")
    if share >= 1:
        raise ValueError(f"level must lie between 0 and 1; got {level!r}. Pass 0.9 for 90% intervals.")
    return float(ndtri(0.5 + share / 2)) * as_real_array(std, "std", None)


def coverage(observed: ArrayLike, mean: ArrayLike, std: ArrayLike, level: float = 0.9) -> float:
    """Share of the observed values inside their central interval; near `level` if the predictions are calibrated."""
    values, centres, spreads = _checked(observed, mean, std)
    known = ~np.isnan(values)
    return float(np.mean(np.abs(values - centres)[known] <= interval_half_width(spreads[known], level)))


def observed_mean(values: Array, axis: int, otherwise: ArrayLike = np.nan) -> Array:
    """Means along an axis of the values that are not NaN, and another value where there are none."""
    counts = np.sum(~np.isnan(values), axis=axis)
    return np.where(counts > 0, np.nansum(values, axis=axis) / np.maximum(counts, 1), otherwise)


def _routed(scorer: Any) -> Any:
    """Request exposures, covariates and the like from scikit-learn's metadata routing, if it is enabled."""
    request = MetadataRequest(owner=scorer.__name__)
    for name in AuxiliaryData.__annotations__:
        request.score.add_request(param=name, alias=True)
    scorer.get_metadata_routing = lambda: request
    return scorer


@_routed
def log_density_scorer(estimator: Any, X: Any, Y: Any, **beside: Any) -> float:
    """Mean log predictive density of a signal in nats; signals without observed values do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from spectralgp import Graph, GraphGPRegressor, Polynomial
    >>> from spectralgp.scores import log_density_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((12, 2))
    >>> Y = np.sin(X[:, :1] + np.arange(4)) + 0.1 * rng.standard_normal((12, 4))
    >>> model = GraphGPRegressor(Graph.from_edges([(0, 1), (1, 2), (2, 3)]), Polynomial(1))
    >>> cross_val_score(model, X, Y, scoring=log_density_scorer, cv=2).shape
    (2,)
    """
    model, inputs = _last_step(estimator, X, beside)
    Y = as_table(Y, "Y", names=getattr(model, "node_names_", None))
    values = as_real_array(_values(Y), "observed", None, allow_nan=True)
    _check_something(values)
    counted = ~np.isnan(values.reshape(values.shape[0], -1)).all(axis=1)
    return float(np.mean(on_host(model.log_predictive_density(inputs, Y, joint=False, **beside))[counted]))


@_routed
def crps_scorer(estimator: Any, X: Any, Y: Any, **beside: Any) -> float:
    """Minus the mean `crps` of the observed values.

    A stacked model, whose prediction is a mixture, is scored as the Gaussian with the same mean and deviation.
    """
    return -float(np.nanmean(crps(*observed_and_predicted(estimator, X, Y, **beside))))


@_routed
def coverage_scorer(estimator: Any, X: Any, Y: Any, level: float = 0.9, **beside: Any) -> float:
    """`coverage` of the predicted intervals; near `level` is best.

    It is for inspection (``cross_validate(..., scoring={"coverage": coverage_scorer})``), not for searches: the widest
    intervals cover most. For another level use ``partial(coverage_scorer, level=0.5)``.
    """
    return coverage(*observed_and_predicted(estimator, X, Y, **beside), level)


def _last_step(estimator: Any, X: Any, beside: dict[str, Any]) -> tuple[Any, Any]:
    """Regressor and its inputs, inside a search or a pipeline or alone."""
    if hasattr(estimator, "best_estimator_"):
        return _last_step(estimator.best_estimator_, X, beside)
    if isinstance(estimator, Pipeline):
        return _last_step(estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X, beside)
    if not hasattr(estimator, "log_predictive_density"):
        raise TypeError(
            "estimator must be a GraphGPRegressor, or a Pipeline or a search that ends in one; "
            f"got {type(estimator).__name__}. Use one of scikit-learn's scorers for other estimators."
        )
    needed = getattr(estimator, "_needed_beside", None)
    if needed is not None and beside.get(needed) is None:
        raise ValueError(
            f"{needed} must be given to score where it was given to fit; got None. Enable scikit-learn's metadata "
            "routing and pass params, or call the scorer with it."
        )
    return estimator, X


def observed_and_predicted(estimator: Any, X: Any, Y: Any, **beside: Any) -> tuple[Any, Any, Any]:
    """Observed values with predicted means and deviations, noise included; columns of a table are matched by name."""
    model, inputs = _last_step(estimator, X, beside)
    known = model.node_names_
    own = as_table(Y, "Y", names=known)
    values, names = _values(own), frame_names(own)
    plain = copy.copy(model).set_output(predict="numpy")
    inputs = np.empty((len(values), 0)) if inputs is None else inputs  # all alike without inputs
    mean, std = plain.predict(inputs, return_std=True, include_noise=True, **beside)
    return values if names is None or known is None else values[:, match_columns(names, known)], mean, std


def _values(Y: Any) -> Any:
    """Signals of any kind as an array of NumPy, with NaN for masked entries."""
    return on_host(without_mask(Y, "Y", allow_nan=True))


def _checked(observed: ArrayLike, mean: ArrayLike, std: ArrayLike | None = None) -> tuple[Array, ...]:
    """Arrays of one shape, all NaN at missing values; nothing is broadcast, which would hide transposes."""
    named = {"observed": observed, "mean": mean} | ({} if std is None else {"std": std})
    arrays = {name: as_real_array(value, name, None, allow_nan=True) for name, value in named.items()}
    shape, known = arrays["observed"].shape, ~np.isnan(arrays["observed"])
    _check_something(arrays["observed"])
    for name, array in arrays.items():
        if array.shape != shape:
            raise ValueError(
                f"{name} must have the shape of observed, {shape}; got {array.shape}. "
                "Pass one prediction for each observed value."
            )
        _check_where_observed(array, name, known)
    if "std" in arrays and not (arrays["std"][known] > 0).all():
        raise ValueError(
            f"std must be above zero at observed values; got {arrays['std'][known].min()}. "
            "Predict with include_noise=True to score observed values."
        )
    return tuple(np.where(known, array, np.nan) for array in arrays.values())


def _check_something(observed: Array) -> None:
    """Refuse an array without observed values."""
    if np.isnan(observed).all():
        found = f"NaN in all of shape {observed.shape}" if observed.size else f"shape {observed.shape}"
        raise ValueError(f"observed must hold at least one value; got {found}. Pass observed values.")


def _check_where_observed(array: Array, name: str, known: NDArray[np.bool_] | np.bool_) -> None:
    """Refuse NaN at observed values."""
    lost = np.argwhere(np.isnan(array) & known)
    if len(lost):  # its size is zero for a single number
        raise ValueError(
            f"{name} must be finite at observed values; got nan at index {tuple(map(int, lost[0]))} "
            f"({len(lost)} such in all). Predict every observed value, or set observed to NaN there."
        )


LEVELS = np.linspace(0.01, 0.99, 99)
BAND_PROBABILITY = 0.9
INTERVAL_LEVELS = (0.5, 0.8, 0.9)
FALSE_ALARMS = 0.05  # share of calibrated predictions that are called uncalibrated, at most
LARGEST_Z = 8.0  # beyond which a PIT is one to rounding


@dataclass(frozen=True)
class Share:
    """A mean over values, and its expectation for calibrated predictions.

    Signals are taken as independent, but not the values of one signal: the standard error is by signals.
    """

    value: float
    standard_error: float  # NaN for one signal
    expected: float
    n_signals: int

    def is_off(self, tolerance: float = 0.0) -> bool:
        """Return whether it is off by more than a tolerance and by more than chance; False for one signal.

        Chance is `FALSE_ALARMS`, shared between bias and the levels of `INTERVAL_LEVELS`.
        """
        if self.n_signals < 2:
            return False
        tail = FALSE_ALARMS / (2 * (1 + len(INTERVAL_LEVELS)))
        by_chance = float(stdtrit(self.n_signals - 1, 1 - tail)) * self.standard_error
        return abs(self.value - self.expected) > max(tolerance, by_chance)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Distribution of observed values relative to predictions, as shares of the observed values.

    Bands hold the share `BAND_PROBABILITY` of calibrated predictions if values are independent; neighbours vary more.
    """

    n_values: int
    edges: Array  # of the bars of the histogram of transformed values, from 0 to 1
    density: Array  # of the transformed values: one if predictions are calibrated
    density_band: tuple[float, float]
    covered: Array  # share of the values inside the central interval of each of `LEVELS`
    low: Array  # its band
    high: Array
    pit_mean: Share  # one half if calibrated: above it predictions are too low
    error_mean: Share  # of errors in predicted deviations: zero if unbiased, however skewed errors are
    coverages: dict[float, Share]  # at the levels of `INTERVAL_LEVELS`

    def covered_at(self, level: float) -> float:
        """Share of the values inside the central interval of one of `LEVELS`."""
        return float(self.covered[int(np.argmin(np.abs(level - LEVELS)))])


def calibration_of(transformed: Array, n_bins: int = 10) -> Calibration:
    """Calibration from the probabilities of `scores.pit`, a row or one value per signal; NaN is a missing value."""
    known = transformed[~np.isnan(transformed)]
    n_values = known.size
    density, edges = np.histogram(known, n_bins, (0, 1), density=True)
    counts = binom(n_values, 1 / n_bins).interval(BAND_PROBABILITY)
    lowest, highest = (float(count) * n_bins / n_values for count in counts)
    # a value lies in the central interval of a level if its PIT is within half the level of one half
    smallest_level = np.sort(np.abs(2 * known - 1))
    covered = np.searchsorted(smallest_level, LEVELS, side="right") / n_values
    low, high = (counts / n_values for counts in binom(n_values, LEVELS).interval(BAND_PROBABILITY))
    by_signal = np.reshape(transformed, (len(np.atleast_1d(transformed)), -1))
    from_middle = np.abs(2 * by_signal - 1)
    errors = np.clip(ndtri(by_signal), -LARGEST_Z, LARGEST_Z)
    means = share_of(by_signal, 0.5), share_of(errors, 0.0)
    shares = {level: _coverage_share(from_middle, level) for level in INTERVAL_LEVELS}
    return Calibration(n_values, edges, density, (lowest, highest), covered, low, high, *means, shares)


def share_of(values: Array, expected: float, least_variance: float = 0.0) -> Share:
    """Mean over the values with its standard error by signals, whose square is not below `least_variance`."""
    values = values[~np.isnan(values).all(axis=1)]
    n_signals, n_values = len(values), int(np.sum(~np.isnan(values)))
    mean = float(np.nanmean(values))
    if n_signals < 2:
        return Share(mean, float("nan"), expected, n_signals)
    sums = np.nansum(values - mean, axis=1)
    variance = n_signals / (n_signals - 1) * float(sums @ sums) / n_values**2
    return Share(mean, float(np.sqrt(max(variance, least_variance))), expected, n_signals)


def _coverage_share(from_middle: Array, level: float) -> Share:
    """Share of the values inside the interval of a level.

    If all are inside, their scatter is zero: the variance is at least that of calibrated predictions whose distances
    from the middle are as correlated within a signal.
    """
    inside = np.where(np.isnan(from_middle), np.nan, from_middle <= level)
    counts = np.sum(~np.isnan(from_middle), axis=1)
    in_a_signal = float(np.sum(counts**2) / np.sum(counts))  # values, as a value sees it
    inflation = 1 + (in_a_signal - 1) * _intraclass_correlation(from_middle)
    return share_of(inside, level, level * (1 - level) * inflation / float(np.sum(counts)))


def _intraclass_correlation(values: Array) -> float:
    """Intraclass correlation by the analysis of variance, from 0 to 1; 0 where no signal has two values."""
    values = values[~np.isnan(values).all(axis=1)]
    counts = np.sum(~np.isnan(values), axis=1)
    n_signals, n_values = len(values), int(counts.sum())
    if n_signals < 2 or n_values == n_signals:
        return 0.0
    means = np.nanmean(values, axis=1)
    between = float(counts @ (means - np.nanmean(values)) ** 2) / (n_signals - 1)
    within = float(np.nansum((values - means[:, None]) ** 2)) / (n_values - n_signals)
    typical = (n_values - float(counts @ counts) / n_values) / (n_signals - 1)
    whole = between + (typical - 1) * within
    return float(np.clip((between - within) / whole, 0.0, 1.0)) if whole > 0 else 1.0
