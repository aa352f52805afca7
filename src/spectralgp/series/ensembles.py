"""Ensemble of models of one series: a weighted mean, corrected by the last rows, with calibrated errors.

Weights, drift, correlations and calibration are estimated on held-out blocks of later rows. All values are in units of
nodes: rows less their mean, divided by the scale of the node. A horizon is a number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import Annotated, Literal

import numpy as np
from scipy.linalg import eigh

from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp._basics.saved import UNSAVED, Count, StoredAs, axes, ge, gt
from spectralgp.scores import observed_mean
from spectralgp.series import ModalProcess, SeriesFit, completed_in_turn, rolling
from spectralgp.series.backtests import ScoredForecasts
from spectralgp.series.mean import BLOCKS, TINY

GRAPH, SEPARABLE, NODES = "graph", "graph, separable", "nodes on their own"  # names of members
MemberNames = Annotated[tuple[Literal["graph", "graph, separable", "nodes on their own"], ...], ge(1)]
LAGS = 3  # last rows that errors are regressed on
HORIZONS = (1, 2, 3, 6, 12, 24)  # at which everything is weighed; in between by interpolation
MOST_GROWN = 10.0  # times the growth of the median node, from which on what a node did before the blocks says nothing
STILL = 1e-4  # of its scale, below which a node has not moved
FEWEST_BLOCK = 8  # rows of a block, below which nothing is weighed
MOST_ORIGINS = 4_000  # from which forecasts are looked at
WEIGHT_STEP = 0.05  # of the grid of weights
SMALLEST_WEIGHT = 0.1  # below which a model is left out
DRIFT_GAIN = 0.05  # of the squared error that the drift must gain over the blocks, of which it may lose in none
DRIFT_PENALTIES = np.geomspace(1.0, 1e7, 22)
FEWEST_REGRESSED = 5 * LAGS  # rows of a regression on last rows
MOST_DRIFTING = 700  # nodes: the regression has a column per node and lag
MOST_CORRELATED = 1_000  # nodes whose errors have a correlation matrix per horizon
SHARES = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])  # of the errors' own correlations
NODE_PRIOR, COMMON_PRIOR = 20.0, 10.0  # rows that the common variance, and the models' own, are worth


@dataclass(frozen=True, eq=False)
class EnsembleMember:
    """One model of an ensemble."""

    name: str
    process: ModalProcess
    fit: SeriesFit | None = None  # on the graph


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Members with their weights, the drift, and the calibration of errors by horizon."""

    members: Annotated[tuple[EnsembleMember, ...], ge(1)]
    weights: Annotated[Array, axes("n_members")]  # in the mean
    spread: Count  # the member whose correlations of nodes are taken
    horizons: Annotated[Array, axes("n_horizons")]
    drift: Annotated[Array, axes("_drifting", "_lags", "n_nodes")]  # what the last rows add
    drifting: Annotated[Indices, axes("n_horizons")]  # which of those each horizon has; -1 for none
    inflations: Annotated[Array, axes("n_horizons", "n_nodes"), gt(0)]  # of the members' variances
    shares: Annotated[Array, axes("n_horizons")]  # of the errors' own correlations
    correlations: Annotated[Array, axes("_correlated", "n_nodes", "n_nodes")]  # of errors, per horizon, or none

    @property
    def drift_horizons(self) -> list[int]:
        """Horizons at which the drift applies."""
        return [int(h) for h, which in zip(self.horizons, self.drifting, strict=True) if which >= 0]

    @property
    def heaviest(self) -> EnsembleMember:
        """Member with the largest weight, among those on the graph if there are any."""
        pairs = zip(self.weights.tolist(), self.members, strict=True)
        return max(pairs, key=lambda pair: (pair[1].fit is not None, pair[0]))[1]

    def mean(self, means: Sequence[Array], rows: Array, horizon: float) -> Array:
        """Return the mean at a horizon from the members' means and the last rows, latest first."""
        mean = weighted(self.weights, means)
        left = np.clip(2 - horizon / self.horizons[-1], 0.0, 1.0)  # it fades, and is gone at twice the last horizon
        for which, share in zip(self.drifting.tolist(), self._shares(horizon), strict=True):
            if which >= 0 and share:
                mean = mean + left * share * (rows @ self.drift[which])
        return mean

    def variance(self, variances: Sequence[Array], horizon: float) -> Array:
        """Return variances of nodes from those of the members, with any leading axes."""
        return np.asarray(self._shares(horizon) @ self.inflations * weighted(self.weights, variances))

    def correlation(self, covariance: Array, horizon: float) -> Array:
        """Return correlations between the errors of nodes, from the covariance of the member `spread` at a horizon."""
        own = as_correlations(covariance)
        if not len(self.correlations):
            return own
        shares = self._shares(horizon)
        share = shares @ self.shares
        return np.asarray((1 - share) * own + share * np.tensordot(shares, self.correlations, 1))

    def _shares(self, horizon: float) -> Array:
        """Interpolation weights of the horizons at a given one, constant beyond the first and the last."""
        return np.array([np.interp(horizon, self.horizons, one) for one in np.eye(self.horizons.size)])


def weighted(weights: Array, parts: Sequence[Array]) -> Array:
    """Weighted sum of the parts of nonzero weight."""
    return np.asarray(sum(weight * one for weight, one in zip(weights, parts, strict=True) if weight))


def as_correlations(covariance: Array) -> Array:
    """Correlations of a covariance."""
    deviations = np.sqrt(np.maximum(np.diag(covariance), TINY))
    return covariance / np.multiply.outer(deviations, deviations)


def last_rows(values: Array, origins: Indices) -> Array:
    """Rows at origins and before, latest first, (n_origins, LAGS * n_nodes); zero where there are none."""
    known = np.where(np.isfinite(values), values, 0.0)
    parts = [np.where((origins >= lag)[:, None], known[np.maximum(origins - lag, 0)], 0.0) for lag in range(LAGS)]
    return np.concatenate(parts, axis=1)


def completed(members: Sequence[EnsembleMember], steps: Array, values: Array) -> Array:
    """Impute missing values given the observed ones and rows before, by a member of the graph if there is one."""
    return completed_in_turn(min(members, key=lambda one: one.process.basis is None).process, steps, values)


# ---------------------------------------------------------------------------------------------------- validation


@dataclass(frozen=True, eq=False)
class HorizonScores:
    """Validation on the blocks at one horizon."""

    penalty: float | None  # of the drift, where it gained
    drift_gains: tuple[float, ...]  # squared error with drift over that without, by block
    factor: float  # squared error over the variance that errors before the block inflate; at least 1, and shrunk to it
    densities: Array  # (n_members, n_shares), of all rows, for correlations of a member mixed with those of errors
    scored: ScoredForecasts | None


@dataclass(frozen=True, eq=False)
class BlockValidation:
    """Members validated on held-out blocks, and choices for the same members learnt from all rows."""

    names: Annotated[tuple[str, ...], StoredAs(MemberNames)]
    weights: Annotated[Array, axes("n_tried")]
    horizons: Annotated[Indices, axes("n_tried_horizons")]
    errors: Annotated[Array, axes("n_tried_horizons", "n_tried", allows_nan=True)]  # root mean squares, in units
    # choices, which model files have in the ensemble
    spread: Annotated[str, UNSAVED] = ""  # name of the member whose correlations of nodes did best
    shares: Annotated[Array, UNSAVED] = field(default_factory=lambda: np.empty(0))  # of the errors' own correlations
    by_horizon: Annotated[tuple[HorizonScores, ...], UNSAVED] = ()


@dataclass(frozen=True, eq=False)
class _MemberForecasts:
    """Forecasts of all members at one horizon, with the observed rows."""

    horizon: int
    origins: Indices
    rows: Array  # last rows, (n, LAGS * n_nodes)
    observed: Array  # (n, n_nodes), NaN where nothing was
    means: list[Array]  # of the members
    variances: list[Array]

    @property
    def targets(self) -> Indices:
        """Numbers of the rows that are forecast."""
        return self.origins + self.horizon

    def errors(self, weights: Array) -> tuple[Array, Array]:
        """Errors of the weighted mean, and their variances."""
        return self.observed - weighted(weights, self.means), weighted(weights, self.variances)

    def blocks(self, cuts: Sequence[int]) -> list[tuple[Mask, Mask]]:
        """For each block with values the forecasts of rows before it, and those made from its eve on of rows in it."""
        targets, seen = self.targets, np.isfinite(self.observed).any(axis=1)
        afters = [seen & (self.origins + 1 >= start) & (targets < end) for start, end in pairwise(cuts)]
        return [(seen & (targets < start), after) for start, after in zip(cuts, afters, strict=False) if after.any()]


def forecasts_from(
    members: Sequence[EnsembleMember], steps: Array, values: Array, origins: Indices, horizons: Indices
) -> list[_MemberForecasts]:
    """Forecasts of later rows, noise included, from given origins: by horizon, in one pass per member."""
    beyond = int(horizons.max())
    later = np.concatenate([steps, steps[-1] + 1.0 + np.arange(beyond)])  # of which no row is there
    padded = np.concatenate([values, np.full((beyond, values.shape[1]), np.nan)])
    forecasts = [rolling(one.process, later, padded, origins, horizons) for one in members]
    rows, found = last_rows(completed(members, steps, values), origins), []
    for place, horizon in enumerate(horizons.tolist()):
        kept = origins + horizon < len(values)
        moments = ([one[kept, place] for one in parts] for parts in zip(*forecasts, strict=True))
        found.append(_MemberForecasts(horizon, origins[kept], rows[kept], values[origins[kept] + horizon], *moments))
    return found


def block_ends(values: Array) -> list[int]:
    """Last rows of the blocks at the shares `BLOCKS` of the rows with values; no block is empty."""
    seen = np.flatnonzero(np.isfinite(values).any(axis=1))
    return [int(seen[int(share * seen.size) - 1]) + 1 for share in BLOCKS]


def horizons_for(n_steps: int) -> Indices:
    """Horizons that fit at least twice into a block of a series, by its number of rows with values."""
    length = int((BLOCKS[1] - BLOCKS[0]) * n_steps)
    chosen = [one for one in HORIZONS if 2 * one <= length] if length >= FEWEST_BLOCK else []
    return np.array(chosen, dtype=np.intp)


def _forecasts(
    members: Sequence[EnsembleMember], steps: Array, values: Array, horizons: Indices, cut: int | None = None
) -> list[_MemberForecasts]:
    """Forecasts from rows spread over all but the first, the last ones among them.

    Nodes that did not move up to a cut, or grew beyond the others after it, are not compared: their scale was unknown.
    """
    n_steps = len(values)
    moved = observed_mean(values[:cut] ** 2, 0, 0.0) > STILL**2
    growth = observed_mean(values[n_steps if cut is None else cut :] ** 2, 0, 0.0)
    typical = float(np.median(growth[moved])) if moved.any() else 0.0
    targets = np.where(moved & (growth <= MOST_GROWN**2 * typical), values, np.nan)
    first = max(2 * LAGS, n_steps // 20, int(np.argmax(np.isfinite(values).any(axis=1))))
    stride = max(1, -(-(n_steps - 1 - first) // MOST_ORIGINS))
    origins = np.arange(n_steps - 2, first - 1, -stride, dtype=np.intp)[::-1]
    found = forecasts_from(members, steps, values, origins, horizons)
    return [replace(one, observed=targets[one.targets]) for one in found]


def weights_by_squares(errors: Sequence[Sequence[Array]]) -> Array:
    """Weights on a grid with the least sum over horizons of the log mean squared error; small ones are left out."""
    products = []
    for own in errors:  # of the members at a horizon
        flat = np.stack([one.ravel() for one in own])
        flat = flat[:, np.isfinite(flat).all(axis=0)]
        products.append(flat @ flat.T)
    n_parts = round(1 / WEIGHT_STEP)
    listed = [one for one in product(range(n_parts + 1), repeat=len(errors[0])) if sum(one) == n_parts]
    points = np.array(listed, dtype=float) / n_parts
    scores = sum(np.log(np.maximum(np.sum((points @ one) * points, axis=1), TINY)) for one in products)
    best = points[int(np.argmin(scores))]
    best = np.where(best < SMALLEST_WEIGHT, 0.0, best)
    return np.asarray(best / best.sum())


def _regression(rows: Array, errors: Array) -> tuple[Array, Array, Array]:
    """Eigenvectors of a regression on last rows, and precisions and products with errors by node: missing at random."""
    known = np.isfinite(errors)
    precisions, vectors = np.linalg.eigh(rows.T @ rows)
    across = vectors.T @ (rows.T @ np.where(known, errors, 0.0))
    return vectors, np.multiply.outer(np.maximum(precisions, 0.0), known.mean(axis=0)), across


def drift_of(rows: Array, errors: Array, penalty: float) -> Array:
    """Coefficients of errors on the last rows, by ridge regression on the observed errors of each node."""
    vectors, precisions, across = _regression(rows, errors)
    return np.asarray(vectors @ (across / (precisions + penalty)))


def drift_penalty(rows: Array, errors: Array) -> float:
    """The penalty with the least error in the last fifth; the largest where none of it is observed."""
    cut = int(0.8 * len(rows))
    vectors, precisions, across = _regression(rows[:cut], errors[:cut])
    later = rows[cut:] @ vectors
    squares = [np.nansum((errors[cut:] - later @ (across / (precisions + one))) ** 2) for one in DRIFT_PENALTIES[::-1]]
    return float(DRIFT_PENALTIES[::-1][int(np.argmin(squares))])


def inflations(errors: Array, variances: Array, horizon: int) -> Array:
    """Variance inflation of each node, the ratio of squared errors to variances, shrunk towards that of all nodes.

    Forecasts that overlap are not independent, and neither are neighbours: both count for less than their number.
    """
    ratios = errors**2 / variances
    counts = np.isfinite(ratios).sum(axis=0)
    n_free, n_nodes = counts / (2 * horizon - 1), ratios.shape[1]
    sums = np.nansum(ratios, axis=0) / np.maximum(counts, 1) * n_free
    common = (sums.sum() / np.sqrt(n_nodes) + COMMON_PRIOR) / (n_free.sum() / np.sqrt(n_nodes) + COMMON_PRIOR)
    return np.asarray((sums + NODE_PRIOR * common) / (n_free + NODE_PRIOR))


def shown_correlations(errors: Array, variances: Array) -> Array:
    """Empirical correlations between the errors of nodes; missing ones count as zero."""
    scaled = np.where(np.isfinite(errors), errors / np.sqrt(variances), 0.0)
    correlations = as_correlations(scaled.T @ scaled)
    np.fill_diagonal(correlations, 1.0)  # of nodes of which no error is known too
    return correlations


def densities_by_share(own: Array, shown: Array, scaled: Array) -> Array:
    """Log density, but for scales, of rows whose correlations are ``(1 - b) own + b shown``, for each b of `SHARES`.

    In the basis that makes both diagonal; missing values are integrated out by their block of the precision matrix.
    """
    firm = own + 1e-8 * np.eye(len(own))
    ratios, vectors = eigh(shown, firm)
    mixed = (1 - SHARES)[:, None] + np.multiply.outer(SHARES, np.maximum(ratios, 0.0))
    determinants = np.sum(np.log(mixed), axis=1) + float(np.linalg.slogdet(firm)[1])
    found, (patterns, which) = np.zeros(len(SHARES)), np.unique(np.isfinite(scaled), axis=0, return_inverse=True)
    for number, there in enumerate(patterns):
        turned = np.where(there, scaled[which.reshape(-1) == number], 0.0) @ vectors
        lost = vectors[~there] / mixed[:, None]  # (n_shares, n_missing, n_nodes)
        precisions, across = lost @ vectors[~there].T, lost @ turned.T
        explained = np.sum(across * np.linalg.solve(precisions, across), axis=(1, 2))
        logs = len(turned) * (determinants + np.linalg.slogdet(precisions)[1])
        found -= 0.5 * (np.sum(np.sum(turned**2, axis=0) / mixed, axis=1) - explained + logs)
    return found


def validated(members: Sequence[EnsembleMember], steps: Array, values: Array, with_drift: bool) -> BlockValidation:
    """Validate members, learnt before both blocks, on these: weights, drift and calibration."""
    n_nodes, cuts = values.shape[1], block_ends(values)
    horizons = horizons_for(int(np.isfinite(values).any(axis=1).sum()))
    found = _forecasts(members, steps, values, horizons, cuts[0])
    errors = []
    for one in found:
        inside = np.any([np.zeros(len(one.origins), bool), *(after for _, after in one.blocks(cuts))], axis=0)
        errors.append([one.observed[inside] - mean[inside] for mean in one.means])
    weights = weights_by_squares(errors)
    expected: list[list[Array]] = [[] for _ in horizons]
    if 1 < n_nodes <= MOST_CORRELATED:  # correlations of each member's forecasts after all rows, none of them missing
        there = steps[np.isfinite(values).any(axis=1)]
        states = [one.process.filtered(there, np.zeros((there.size, n_nodes))) for one in members]
        ahead = [state.forecast(steps[-1] + horizons) for state in states]
        expected = [[as_correlations(one.node_covariance(place)) for one in ahead] for place in range(len(horizons))]
    with_drift = with_drift and n_nodes <= MOST_DRIFTING
    pairs = zip(found, expected, strict=True)
    by_horizon = tuple(_validated_at(one, cuts, weights, own, with_drift) for one, own in pairs)
    spread, shares = int(np.argmax(weights)), np.zeros(len(horizons))
    totals = np.array([one.densities for one in by_horizon])
    if totals.any():
        spread = int(np.argmax(totals.max(axis=2).sum(axis=0)))
        shares = SHARES[np.argmax(totals[:, spread], axis=1)]
    table = np.sqrt([[float(observed_mean(one.ravel() ** 2, 0)) for one in own] for own in errors])
    names = tuple(one.name for one in members)
    return BlockValidation(names, weights, horizons, table, names[spread], shares, by_horizon)


def _validated_at(
    one: _MemberForecasts, cuts: Sequence[int], weights: Array, expected: Sequence[Array], with_drift: bool
) -> HorizonScores:
    """Validate on the blocks at one horizon, with the correlations `expected` by each member."""
    error, variance = one.errors(weights)
    blocks = [(before, after) for before, after in one.blocks(cuts) if before.sum() >= FEWEST_REGRESSED]
    gains, penalties, added = [], [], np.zeros_like(error)
    for before, after in blocks if with_drift else []:
        penalties.append(drift_penalty(one.rows[before], error[before]))
        added[after] = one.rows[after] @ drift_of(one.rows[before], error[before], penalties[-1])
        plain, corrected = (float(np.nanmean(e**2)) for e in (error[after], error[after] - added[after]))
        gains.append(corrected / plain if plain else 1.0)
    has_drift = 0 < len(gains) == len(one.blocks(cuts)) and max(gains) < 1 and np.mean(gains) <= 1 - DRIFT_GAIN
    ratios, counts, pieces = [], [], []
    densities = np.zeros((len(expected), len(SHARES)))
    for number, (before, after) in enumerate(blocks):
        own = inflations(error[before], variance[before], one.horizon) * variance[after]
        left = error[after]
        if has_drift:
            own, left = gains[number] * own, left - added[after]
        mean = one.observed[after] - error[after] + (added[after] if has_drift else 0.0)
        pieces.append((one.targets[after], one.observed[after], mean, np.sqrt(own)))
        ratios.append(float(np.nanmean(left**2 / own)))
        counts.append(float(np.isfinite(left).sum() / left.shape[1]))
        if expected:
            shown, scaled = shown_correlations(error[before], variance[before]), left / np.sqrt(own)
            # how wide errors are is another question
            scaled = scaled / np.sqrt(max(float(np.nanmean(scaled**2)), np.finfo(float).tiny))
            densities += [densities_by_share(member, shown, scaled) for member in expected]
    factor = 1.0
    if counts:  # later rows can say that intervals are too narrow; calm blocks are no reason to narrow them
        n_free, ratio = sum(counts) / (2 * one.horizon - 1), max(1.0, float(np.average(ratios, weights=counts)))
        factor = (n_free * ratio + COMMON_PRIOR) / (n_free + COMMON_PRIOR)
    scored = ScoredForecasts(*(np.concatenate(part) for part in zip(*pieces, strict=True))) if pieces else None
    penalty = float(np.exp(np.mean(np.log(penalties)))) if has_drift else None
    return HorizonScores(penalty, tuple(gains), factor, densities, scored)


def stacked(members: Sequence[EnsembleMember], trials: BlockValidation | None, steps: Array, values: Array) -> Ensemble:
    """Ensemble of members learnt from all rows, some of those validated; the first alone without a validation."""
    n_nodes = values.shape[1]
    no_drift, no_errors = np.empty((0, LAGS * n_nodes, n_nodes)), np.empty((0, n_nodes, n_nodes))
    if trials is None:
        plain = no_drift, np.array([-1]), np.ones((1, n_nodes)), np.zeros(1), no_errors
        return Ensemble(tuple(members), np.eye(len(members))[0], 0, np.ones(1), *plain)
    names = [one.name for one in members]
    weights = trials.weights[[trials.names.index(name) for name in names]]
    drifts, drifting, inflated, correlations = list[Array](), [], [], []
    found = _forecasts(members, steps, values, trials.horizons)
    for one, chosen in zip(found, trials.by_horizon, strict=True):
        error, variance = one.errors(weights)
        larger = chosen.factor * inflations(error, variance, one.horizon)
        if chosen.penalty is not None:
            drifts.append(drift_of(one.rows, error, chosen.penalty))
            # the gain in later blocks: here the regression has seen all rows
            error, larger = error - one.rows @ drifts[-1], float(np.mean(chosen.drift_gains)) * larger
        drifting.append(-1 if chosen.penalty is None else len(drifts) - 1)
        inflated.append(larger)
        if np.any(trials.shares > 0):
            correlations.append(shown_correlations(error, variance))
    drift = np.array(drifts) if drifts else no_drift
    errors = trials.shares, np.array(correlations) if correlations else no_errors
    of_mean = weights, names.index(trials.spread), trials.horizons.astype(float)
    return Ensemble(tuple(members), *of_mean, drift, np.array(drifting), np.array(inflated), *errors)
