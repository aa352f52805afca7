"""Baselines for predictions and imputations, with standard deviations, and their errors beside a model's.

Predictions of signals from inputs: node means, no change, ridge regression. Imputations: neighbours on the graph,
scikit-learn's iterative imputer. Values keep their units and order of the nodes; NaN is a missing value.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit
from scipy.stats import multivariate_normal
from sklearn.covariance import LedoitWolf
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp.graphs import Graph
from spectralgp.learning.hidden import hidden_like_missing
from spectralgp.learning.time_order import time_order
from spectralgp.scores import calibration_of, crps, log_density, observed_mean, pit

PENALTIES = np.logspace(-3, 5, 17)
N_FOLDS, N_ROUNDS = 5, 4
FLOOR = 0.01  # least variance of a node relative to the mean: few signals may leave a node constant
N_RESIDUAL_FOLDS = 20  # for covariances of residuals, which must not use the signals they are scored on
SMALLEST_STD = 1e-6  # relative to the predictions, if all residuals are zero
PRIOR_COUNT = 5  # equivalent sample size of the pooled variance in that of a node
FEWEST_REGRESSED = 5  # signals for the ridge regression of a node, and for its own variance
MOST_CORRELATED = 1_000  # nodes with a dense covariance of residuals
MOST_PATTERNS = 500  # of missing values, each with its own ridge regression
MOST_IMPUTED = 60  # columns for the iterative imputer

Values = Callable[[Graph, Array, Array], Array]  # of graph, inputs and incomplete signals: imputed signals
Imputed = tuple[Array, Array]  # imputed signals, and the standard deviation of each entry
Baseline = Callable[..., "BaselinePrediction"]
"""Predictor of signals from features, without a graph: ``baseline(inputs, signals, new_inputs)``.

Without new inputs, each signal is predicted from all others, with the settings of all; deviations are of other folds.
"""


# ------------------------------------------------------------------------------------------------------- predictions


@dataclass(frozen=True, eq=False)
class BaselinePrediction:
    """Mean and standard deviation of each value, with noise, and covariances between the nodes of a signal."""

    mean: Array  # (n_signals, n_nodes)
    std: Array
    covariances: tuple[tuple[Indices, Array], ...] = ()  # with the signals of each; none if independent

    def log_density(self, observed: Array) -> Array:
        """Joint log density of the observed values of each signal, in nats."""
        if not self.covariances:
            return np.asarray(np.nansum(log_density(observed, self.mean, self.std), axis=1))
        densities, errors = np.zeros(len(observed)), observed - self.mean
        for signals, covariance in self.covariances:
            for nodes, rows in _patterns(~np.isnan(errors[signals]).T):
                if nodes.size:
                    density = multivariate_normal(cov=covariance[np.ix_(nodes, nodes)])
                    densities[signals[rows]] = density.logpdf(errors[np.ix_(signals[rows], nodes)])
        return densities


def node_means(inputs: Array, signals: Array, new_inputs: Array | None = None) -> BaselinePrediction:
    """Mean of each node."""
    if new_inputs is None:
        return from_others(signals, lambda kept: means_of_others(signals[kept]))
    means = np.tile(observed_mean(signals, 0, np.nanmean(signals)), (len(new_inputs), 1))  # of all for an empty node
    return with_residuals(means, signals - means_of_others(signals))


def no_change(
    inputs: Array, signals: Array, new_inputs: Array | None = None, *, columns: Indices, factor: float = 1.0
) -> BaselinePrediction:
    """Previous signal: columns of the inputs, one per node, in units that differ by a factor."""
    before = factor * inputs[:, columns]
    if new_inputs is None:
        return from_others(signals, lambda kept: before[kept])
    return with_residuals(factor * new_inputs[:, columns], signals - before)


def ridge_regression(
    inputs: Array, signals: Array, new_inputs: Array | None = None, *, is_correlated: bool = True
) -> BaselinePrediction:
    """Ridge regression on standardised inputs: penalty by leave-one-out, deviations by the residuals of five folds.

    Each node is learnt from the signals in which it is observed. Residuals may have a Ledoit-Wolf covariance.
    """
    if new_inputs is None:
        return _ridge_regression_left_out(inputs, signals, is_correlated)
    means = np.tile(observed_mean(signals, 0, np.nanmean(signals)), (len(new_inputs), 1))
    residuals = signals - means_of_others(signals)
    for rows, nodes in _patterns(~np.isnan(signals)):
        if rows.size >= FEWEST_REGRESSED:
            known, values = inputs[rows], signals[np.ix_(rows, nodes)]
            model = make_pipeline(StandardScaler(), RidgeCV(PENALTIES)).fit(known, values)
            again = make_pipeline(StandardScaler(), Ridge(model[-1].alpha_))
            folds = KFold(N_FOLDS, shuffle=True, random_state=0)
            means[:, nodes] = model.predict(new_inputs).reshape(-1, nodes.size)  # one axis for one node
            predicted = cross_val_predict(again, known, values, cv=folds)
            residuals[np.ix_(rows, nodes)] = values - predicted.reshape(values.shape)
    return with_residuals(means, residuals, is_correlated)


def _ridge_regression_left_out(inputs: Array, signals: Array, is_correlated: bool) -> BaselinePrediction:
    regressed = []  # nodes, their signals, and inputs and penalty of the regression
    for rows, nodes in _patterns(~np.isnan(signals)):
        if rows.size >= FEWEST_REGRESSED:
            known = StandardScaler().fit_transform(inputs[rows])
            penalty = RidgeCV(PENALTIES).fit(known, signals[np.ix_(rows, nodes)]).alpha_
            regressed.append((nodes, rows, known, penalty))

    def predict(kept: Indices) -> Array:
        means = means_of_others(signals[kept])
        for nodes, rows, known, penalty in regressed:
            own = np.isin(rows, kept)
            features, values = known[own] - known[own].mean(axis=0), signals[np.ix_(rows[own], nodes)]
            vectors, sizes, _ = np.linalg.svd(features, full_matrices=False)
            hat = (vectors * (sizes**2 / (sizes**2 + penalty))) @ vectors.T + 1 / len(values)
            errors = (values - hat @ values) / (1 - np.diag(hat))[:, None]
            means[np.ix_(np.searchsorted(kept, rows[own]), nodes)] = values - errors
        return means

    return from_others(signals, predict, is_correlated)


def baselines_of(
    inputs: Array, signals: Array, columns: Indices | None, factor: float | None = None
) -> dict[str, Baseline]:
    """Baselines that apply to training data, by name; `columns` of the inputs hold a value per node, if any.

    Without a `factor`, complete signals tell whether these columns are the previous signal. Ridge regression needs
    inputs, and at most `MOST_PATTERNS` patterns of missing values.
    """
    found: dict[str, Baseline] = {"node means": node_means}
    has_missing = bool(np.isnan(signals).any())
    if columns is not None:
        order = None if has_missing or factor is not None else time_order(inputs, signals, columns)
        factor = order.factor if order is not None else factor
        if factor is not None:
            found["no change"] = partial(no_change, columns=columns, factor=factor)
    n_patterns = len(np.unique(np.isnan(signals), axis=1).T) if has_missing else 1
    if inputs.shape[1] and n_patterns <= MOST_PATTERNS and len(signals) >= FEWEST_REGRESSED:
        found["ridge regression"] = ridge_regression
    return found


def with_residuals(mean: Array, residuals: Array, is_correlated: bool = True) -> BaselinePrediction:
    """Prediction with the variances of residuals about zero, or with their covariance.

    Few signals share one variance between all nodes, with the 90% intervals of Student's t.
    """
    n_signals, n_nodes = residuals.shape
    squares, is_few = np.square(residuals), n_signals < FEWEST_REGRESSED
    is_whole = not is_few and 1 < n_nodes <= MOST_CORRELATED and bool(np.isfinite(squares).all() and squares.any())
    if is_correlated and is_whole:
        covariance = LedoitWolf(assume_centered=True).fit(residuals).covariance_
        std = np.tile(np.sqrt(np.diag(covariance)), (len(mean), 1))
        return BaselinePrediction(mean, std, ((np.arange(len(mean)), covariance),))
    pooled = float(observed_mean(squares.ravel(), 0, 0.0))
    variances = observed_mean(squares, 0, pooled)
    if is_few:
        known = ~np.isnan(residuals)
        freedom = max(int(known.sum() - (known.any(axis=0).sum() if n_signals > 1 else 1)), 1)
        variances = np.full(n_nodes, pooled * float(stdtrit(freedom, 0.95) / ndtri(0.95)) ** 2)
    least = max(FLOOR * variances.mean(), float(np.mean((SMALLEST_STD * mean) ** 2)), float(np.finfo(float).tiny))
    return BaselinePrediction(mean, np.tile(np.sqrt(np.maximum(variances, least)), (len(mean), 1)))


def from_others(signals: Array, predict: Callable[[Indices], Array], is_correlated: bool = True) -> BaselinePrediction:
    """Prediction of each signal from all others by `predict`; errors among the others give the variances."""
    mean = predict(np.arange(len(signals)))
    std, covariances = np.empty(signals.shape), []
    for others, own in KFold(min(N_RESIDUAL_FOLDS, len(signals)), shuffle=True, random_state=0).split(signals):
        part = with_residuals(mean[own], signals[others] - predict(others), is_correlated)
        std[own] = part.std
        covariances += [(own[rows], covariance) for rows, covariance in part.covariances]
    return BaselinePrediction(mean, std, tuple(covariances))


def means_of_others(signals: Array) -> Array:
    """Mean of each node over the other signals; of all their values if the node has none, and zero without any value.

    A single signal has no others: its nodes differ from these means like two values with the spread of its nodes.
    """
    known, values = ~np.isnan(signals), np.nan_to_num(signals)
    own = (known, values) if len(signals) == 1 else (one.sum(axis=1, keepdims=True) for one in (known, values))
    counts, sums = (one.sum() - without for one, without in zip((known, values), own, strict=True))
    level = sums / np.maximum(counts, 1)
    if len(signals) == 1:
        return values + np.sqrt(2) * (level - values)
    counts, sums = known.sum(axis=0) - known, values.sum(axis=0) - values
    return np.where(counts > 0, sums / np.maximum(counts, 1), level)


def _patterns(known: Mask) -> Iterator[tuple[Indices, Indices]]:
    """Groups of columns that are known in the same rows: rows and columns."""
    patterns, pattern_of = np.unique(known, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        yield np.flatnonzero(pattern), np.flatnonzero(np.ravel(pattern_of) == number)


# ------------------------------------------------------------------------------------------------------- imputations


def hidden(incomplete: Array, random_state: np.random.Generator) -> Iterator[Mask]:
    """Observed entries to hide, in folds, in the pattern of the missing values.

    The pattern is moved to other nodes and later signals, and its runs are dealt into folds. A fold hides few entries,
    and single entries, outages or whole nodes as they are missing.
    """
    missing = np.isnan(incomplete)
    n_signals, n_nodes = missing.shape
    moved = np.roll(missing, random_state.integers(n_signals), axis=0)[:, random_state.permutation(n_nodes)]
    begins = moved & ~np.vstack([np.zeros((1, n_nodes), dtype=bool), moved[:-1]])
    runs = np.where(moved, np.cumsum(begins.T).reshape(n_nodes, n_signals).T, 0)  # counted down each node in turn
    fold_of = np.concatenate([[-1], random_state.permutation(runs.max()) % N_FOLDS])
    for fold in range(N_FOLDS):
        out = (fold_of[runs] == fold) & ~missing
        if out.any():
            yield out


def hidden_at_once(incomplete: Array, rows: slice = slice(None)) -> Mask:
    """Entries of some rows to score imputations on, in the pattern of missing values; their nodes stay observed."""
    observed, is_scored = ~np.isnan(incomplete), np.zeros(incomplete.shape, dtype=bool)
    is_scored[rows] = True
    chosen = hidden_like_missing(observed, np.random.default_rng(0))[0] & is_scored
    return chosen & (observed & ~chosen).any(axis=0)


def residuals(
    values: Values, graph: Graph, inputs: Array, incomplete: Array, n_rounds: int = N_ROUNDS, n_folds: int = N_FOLDS
) -> list[Array]:
    """Errors at hidden entries, in some folds of every round; NaN elsewhere."""
    found = []
    random_state = np.random.default_rng(0)
    for _ in range(n_rounds):
        for out in islice(hidden(incomplete, random_state), n_folds):
            completed = values(graph, inputs, np.where(out, np.nan, incomplete))
            found.append(np.where(out, incomplete - completed, np.nan))
    return found or [incomplete - means_of_others(incomplete)]  # if no pattern can be moved


def deviations(errors: Sequence[Array]) -> Array:
    """Standard deviation of each node's errors, with the pooled variance of all nodes as a prior."""
    squares = np.concatenate(errors) ** 2
    counts, sums = np.sum(~np.isnan(squares), axis=0), np.nansum(squares, axis=0)
    pooled = sums.sum() / max(counts.sum(), 1)
    return np.asarray(np.sqrt((sums + PRIOR_COUNT * pooled) / (counts + PRIOR_COUNT)))


def with_deviations(
    values: Values, n_rounds: int = N_ROUNDS, n_folds: int = N_FOLDS
) -> Callable[[Graph, Array, Array], Imputed]:
    """Add deviations to an imputation method, from its errors at hidden entries."""

    def fill(graph: Graph, inputs: Array, incomplete: Array) -> Imputed:
        spread = deviations(residuals(values, graph, inputs, incomplete, n_rounds, n_folds))
        return values(graph, inputs, incomplete), np.broadcast_to(spread, incomplete.shape)

    return fill


def signal_means(graph: Graph, inputs: Array, incomplete: Array) -> Array:
    """Impute the mean of the signal's observed nodes, or else of all entries."""
    means = observed_mean(incomplete, 1, np.nanmean(incomplete))
    return np.where(np.isnan(incomplete), means[:, None], incomplete)


def for_seen_nodes(values: Values) -> Values:
    """Apply a method to the observed nodes; the others get the mean of each signal."""

    def completed(graph: Graph, inputs: Array, incomplete: Array) -> Array:
        result, known = signal_means(graph, inputs, incomplete), ~np.isnan(incomplete).all(axis=0)
        result[:, known] = values(graph, inputs, incomplete[:, known])
        return np.where(np.isnan(incomplete), result, incomplete)

    return completed


def graph_neighbours(graph: Graph, inputs: Array, incomplete: Array, means: Array | None = None) -> Array:
    """Impute the mean of a node plus the weighted mean of its neighbours' deviations from theirs in that signal.

    Means are those of the observed entries unless given. A node without any has the weighted mean of its neighbours'
    means; without an observed neighbour, all nodes are neighbours with equal weights.
    """
    if means is None:
        means = observed_mean(incomplete, 0)
        means = np.where(np.isnan(means), _weighted_mean(graph, means[None])[0], means)
    completed = means + _weighted_mean(graph, incomplete - means)
    return np.where(np.isnan(incomplete), completed, incomplete)


def _weighted_mean(graph: Graph, values: Array) -> Array:
    """Weighted mean of the neighbours' observed values, or else of all in the signal, or else zero."""
    there = (~np.isnan(values)).astype(float)
    zeroed = np.nan_to_num(values)
    totals, sums = there @ graph.weights, zeroed @ graph.weights
    counts = there.sum(axis=1, keepdims=True)
    fallback = zeroed.sum(axis=1, keepdims=True) / np.maximum(counts, 1)
    return np.where(totals > 0, sums / np.where(totals > 0, totals, 1), fallback)


def iterative(graph: Graph | None, inputs: Array, incomplete: Array) -> Array:
    """Impute by scikit-learn's `IterativeImputer` with default settings; inputs are further columns."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it always runs its ten rounds to the end
        filled: Array = IterativeImputer().fit_transform(np.hstack([inputs, incomplete]))[:, inputs.shape[1] :]
    return filled


# ------------------------------------------------------------------------------------------------------------ errors


@dataclass(frozen=True, eq=False)
class PredictionErrors:
    """Errors of predictions, in all and per signal; NaN for a signal without values."""

    name: str
    n_values: int
    rmse: float
    crps: float
    log_density: float  # in nats: mean over signals, or over single values
    is_by_value: bool  # whether it is over single values
    coverages: dict[float, float]  # by level
    squared_errors: Array  # (n_signals,): means over the values of each
    crps_values: Array
    log_densities: Array

    @classmethod
    def of(
        cls, name: str, observed: Array, mean: Array, std: Array, densities: Any = None, pits: Any = None
    ) -> PredictionErrors:
        """Errors of predictions, by joint `densities` of signals or else by value, with normal `pits` by default."""
        known = ~np.isnan(observed)
        squares, ranked = np.where(known, np.square(observed - mean), np.nan), crps(observed, mean, std)
        by_value = log_density(observed, mean, std)
        pits = pit(observed, mean, std) if pits is None else pits
        by_signal = observed_mean(by_value, 1) if densities is None else np.where(known.any(axis=1), densities, np.nan)
        return cls(
            name,
            int(np.sum(known)),
            float(np.sqrt(np.nanmean(squares))),
            float(np.nanmean(ranked)),
            float(np.nanmean(by_value if densities is None else by_signal)),
            densities is None,
            {level: one.value for level, one in calibration_of(pits).coverages.items()},
            observed_mean(squares, 1),
            observed_mean(ranked, 1),
            by_signal,
        )

    @property
    def log_density_error(self) -> float:
        """Standard error of the log density over the signals; NaN for one."""
        known = self.log_densities[~np.isnan(self.log_densities)]
        return float(np.std(known, ddof=1) / np.sqrt(known.size)) if known.size > 1 else float("nan")

    def better_than(self, other: PredictionErrors) -> dict[str, bool]:
        """Measures in which this one is better, and whether by more than one standard error."""
        lower_is_better = {
            "rmse": (self.rmse, other.rmse, self.squared_errors - other.squared_errors),
            "crps": (self.crps, other.crps, self.crps_values - other.crps_values),
            "log_density": (-self.log_density, -other.log_density, other.log_densities - self.log_densities),
        }
        found = {}
        for measure, (own, others, differences) in lower_is_better.items():
            if own < others:
                known = differences[~np.isnan(differences)]
                error = known.std(ddof=1) / np.sqrt(known.size) if known.size > 1 else np.inf
                found[measure] = bool(-known.mean() > error)
        return found


def prediction_errors(
    found: Mapping[str, Baseline], training: tuple[Array, Array], new: tuple[Array, Array] | None = None
) -> list[PredictionErrors]:
    """Errors of baselines on new signals, or on each training signal given all others."""
    performances = []
    for name, baseline in found.items():
        forecast = baseline(*training) if new is None else baseline(*training, new[0])
        observed = training[1] if new is None else new[1]
        densities = forecast.log_density(observed)
        performances.append(PredictionErrors.of(name, observed, forecast.mean, forecast.std, densities))
    return performances


def imputation_errors(
    name: str, fill: Callable[[Mask], Imputed], graph: Any, inputs: Array, incomplete: Array, rows: slice
) -> list[PredictionErrors]:
    """Errors of a model and of baselines at entries of some rows, hidden in the pattern of missing values, if any.

    `fill` returns the model's values of these rows and their deviations without the hidden entries. Baselines have
    deviations by hiding more entries. The iterative imputer, which is slow, needs a small graph.
    """
    out = hidden_at_once(incomplete, rows) if np.isnan(incomplete).any() else np.zeros(0, dtype=bool)
    if not out.any():
        return []
    partial, scored = np.where(out, np.nan, incomplete), np.where(out, incomplete, np.nan)
    mean, std = np.full((2, *incomplete.shape), np.nan)
    mean[rows], std[rows] = fill(out)
    performances = [PredictionErrors.of(name, scored, mean, std)]
    others = {"neighbours on the graph": with_deviations(graph_neighbours)}
    if inputs.shape[1] + incomplete.shape[1] <= MOST_IMPUTED:
        others["iterative imputer"] = with_deviations(for_seen_nodes(iterative), n_rounds=1, n_folds=2)
    return performances + [
        PredictionErrors.of(one, scored, *way(graph, inputs, partial)) for one, way in others.items()
    ]
