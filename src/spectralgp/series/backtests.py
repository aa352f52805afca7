"""Scores of forecasts of past rows by horizon, with those of naive forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.saved import UNSAVED, StoredAs, axes
from spectralgp._basics.tables import listing
from spectralgp.scores import INTERVAL_LEVELS, coverage, crps, observed_mean, root_mean_square_error

GOOD_COVERAGE = (0.86, 0.94)  # of 90% intervals
PERSISTENCE, SEASONAL = "persistence", "seasonal naive"
Rival = Literal["model", "persistence", "seasonal naive"]
Scores = Annotated[Array, axes("n_scored", allows_nan=True)]


@dataclass(frozen=True, eq=False)
class Backtest:
    """Scores of forecasts from rolling origins, in the units of `Y`, by horizon.

    Attributes
    ----------
    horizons, n_origins : ndarray of shape (n_horizons,)
        Rows ahead, and numbers of forecasts.
    rmse, crps : dict of str to ndarray of shape (n_horizons,)
        Root mean squared error and continuous ranked probability score of the model, and of persistence (the last row
        again) and the seasonal naive forecast (the row one season before) where there is a season.
    coverage, log_density : ndarray of shape (n_horizons,)
        Share of the values in their 90% intervals, and joint log density of a row in nats per value, NaN unless asked.
    node_rmse : ndarray of shape (n_horizons, n_nodes)
        Root mean squared error of each node; NaN where nothing was observed.
    how : str
        Rows that the model was learnt from, in words.
    """

    horizons: Annotated[Indices, axes("n_scored")]
    n_origins: Annotated[Indices, axes("n_scored")]
    rmse: Annotated[dict[str, Array], StoredAs(dict[Rival, Scores])]
    crps: Annotated[dict[str, Array], StoredAs(dict[Rival, Scores])]
    coverage: Scores
    log_density: Scores
    node_rmse: Annotated[Array, axes("n_scored", "n_nodes", allows_nan=True)]
    how: str
    # observed, mean, std
    forecasts: Annotated[dict[int, tuple[Array, Array, Array]], UNSAVED] = field(default_factory=dict, repr=False)
    densities: Annotated[dict[int, Array], UNSAVED] = field(default_factory=dict, repr=False)  # of the rows, in nats
    coverages: Annotated[Array, axes("_levels", "n_scored", allows_nan=True)] | None = None  # of 50, 80, 90% intervals
    bias: Scores | None = None  # mean of observed less forecast values

    @property
    def miscovered(self) -> list[tuple[int, float]]:
        """Horizons whose 90% intervals cover too little or too much, with their coverage."""
        low, high = GOOD_COVERAGE
        pairs = zip(self.horizons.tolist(), self.coverage.tolist(), strict=True)
        return [(horizon, share) for horizon, share in pairs if not low <= share <= high]

    def __str__(self) -> str:
        rivals = [name for name in self.rmse if name != "model"]
        rows = [["steps", "rmse", *rivals, "crps", "coverage"]]
        for place, horizon in enumerate(self.horizons.tolist()):
            numbers = [self.rmse["model"][place], *(self.rmse[name][place] for name in rivals)]
            cells = [f"{value:.4g}" for value in [*numbers, self.crps["model"][place]]]
            rows.append([str(horizon), *cells, f"{self.coverage[place]:.2f}"])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([f"Backtest, {self.how}:", *lines])


@dataclass(frozen=True, eq=False)
class ScoredForecasts:
    """Forecasts of rows at one horizon, with the observed rows."""

    targets: Indices  # numbers of the rows
    observed: Array  # (n, n_nodes), NaN where nothing was
    mean: Array
    std: Array
    densities: Array | None = None  # (n,), joint log densities of the rows


def naive(values: Array, targets: Indices, lag: int, before: Array) -> tuple[Array, Array]:
    """Row a lag before each target, NaN if missing, and the spread of differences at that lag in rows `before`."""
    there = (targets >= lag)[:, None]
    mean = np.where(there, values[np.maximum(targets - lag, 0)], np.nan)
    changes = before[lag:] - before[: max(len(before) - lag, 0)]
    known = np.isfinite(changes).sum(axis=0) > 1
    spread = np.sqrt(observed_mean(np.where(known, changes**2, np.nan), 0))
    common = np.sqrt(np.nanmean(spread**2)) if known.any() else 1.0
    return mean, np.broadcast_to(np.where(known & (spread > 0), spread, max(float(common), 1e-12)), mean.shape)


def scored(
    horizons: Indices, forecasts: Sequence[ScoredForecasts], values: Array, before: Array, season: int | None, how: str
) -> Backtest:
    """Scores of forecasts by horizon, with those of persistence and, given a season, the seasonal naive forecast."""
    names = ["model", PERSISTENCE, *([] if season is None else [SEASONAL])]
    rmse, scores = np.full((2, len(names), horizons.size), np.nan)
    covered, node_rmse = np.full((len(INTERVAL_LEVELS), horizons.size), np.nan), []
    bias, densities = np.full((2, horizons.size), np.nan)
    for place, (horizon, own) in enumerate(zip(horizons.tolist(), forecasts, strict=True)):
        observed, mean, std = own.observed, own.mean, own.std
        lags = [horizon] if season is None else [horizon, season * -(-horizon // season)]
        moments = [(mean, std), *(naive(values, own.targets, lag, before) for lag in lags)]
        for row, (centre, spread) in enumerate(moments):
            known = np.where(np.isfinite(centre), observed, np.nan)
            if np.isfinite(known).any():
                rmse[row, place] = root_mean_square_error(known, centre)
                scores[row, place] = np.nanmean(crps(known, centre, spread))
        if n_known := int(np.isfinite(observed).sum()):
            covered[:, place] = [coverage(observed, mean, std, level) for level in INTERVAL_LEVELS]
            bias[place] = np.nanmean(observed - mean)
            densities[place] = np.nan if own.densities is None else np.sum(own.densities) / n_known
        node_rmse.append(np.sqrt(observed_mean((observed - mean) ** 2, 0)))
    n_origins = np.array([len(one.targets) for one in forecasts], dtype=np.intp)
    errors, losses = (dict(zip(names, numbers, strict=True)) for numbers in (rmse, scores))
    pairs = list(zip(horizons.tolist(), forecasts, strict=True))
    kept = {horizon: (one.observed, one.mean, one.std) for horizon, one in pairs}
    of_rows = {horizon: one.densities for horizon, one in pairs if one.densities is not None}
    averages = errors, losses, covered[-1], densities, np.array(node_rmse)
    return Backtest(horizons, n_origins, *averages, how, kept, of_rows, covered, bias)


def steps_ahead(*horizons: int) -> str:
    """Such as "1 step ahead", or "6 and 24 steps ahead"."""
    return f"{listing(horizons)} step{'' if horizons == (1,) else 's'} ahead"


def coverage_words(backtest: Backtest) -> list[str]:
    """Sentences about horizons whose intervals were too narrow or too wide."""
    sentences = []
    for horizon, share in backtest.miscovered:
        way = "too narrow, and wider by now" if share < GOOD_COVERAGE[0] else "too wide"
        sentences.append(f"90% intervals {steps_ahead(horizon)} covered {share:.1%} of what came: {way}.")
    return sentences


def rival_words(backtest: Backtest) -> list[str]:
    """Sentences about horizons at which a naive forecast had the smaller error."""
    ours, rmse = backtest.rmse["model"], backtest.rmse.items()
    better = {name: backtest.horizons[errors < ours].tolist() for name, errors in rmse}
    return [f"{name} had the smaller error {steps_ahead(*which)}." for name, which in better.items() if which]
