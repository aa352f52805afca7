"""Scores of two models on the same splits compared, and the bars that the default must reach: for `bench_real.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

OURS = "default"
BARRED = ("ridge-lw", "standard")  # rivals that the bars are set against
RMSE_SLACK = 0.01
COVERAGE = (0.86, 0.94)
LARGER_IS_BETTER = {"log_density": True, "rmse": False, "crps": False}
BAR = (
    "The default's log density is no worse than that of ridge + Ledoit-Wolf and than that of the standard GP, within "
    f"one standard error of the paired difference; its RMSE is at most {RMSE_SLACK:.0%} above the better one of these "
    f"two; its 90% intervals cover {COVERAGE[0]:.0%} to {COVERAGE[1]:.0%}."
)
Runs = Mapping[str, Mapping[str, Any]]  # of one problem: by rival, the scores of each split, None where it failed


@dataclass(frozen=True)
class Advantage:
    """By how much the default is better than a rival on average over splits, in the score's units."""

    mean: float
    standard_error: float  # of the mean, as if splits were independent
    n_ahead: int
    n_splits: int

    @property
    def is_loss(self) -> bool:
        """Whether the default is worse by more than a standard error."""
        return self.mean < -self.standard_error


def scores(runs: Runs, rival: str, measure: str) -> np.ndarray:
    """A rival's scores, one a split; nan where it failed."""
    return np.array([np.nan if score is None else score for score in runs[rival][measure]], dtype=float)


def advantage(runs: Runs, rival: str, measure: str) -> Advantage:
    """Of the default over a rival, on the splits that both finished; above zero where the default is better."""
    differences = scores(runs, OURS, measure) - scores(runs, rival, measure)
    differences = differences[~np.isnan(differences)] * (1 if LARGER_IS_BETTER[measure] else -1)
    n_splits = len(differences)
    if n_splits < 2:
        return Advantage(np.nan, np.nan, 0, n_splits)
    error = differences.std(ddof=1) / np.sqrt(n_splits)
    return Advantage(float(differences.mean()), float(error), int(np.sum(differences > 0)), n_splits)


def average(runs: Runs, rival: str, measure: str) -> float:
    """A rival's mean score over the splits that it finished; nan where it finished none."""
    found = scores(runs, rival, measure)
    found = found[~np.isnan(found)]
    return float(found.mean()) if len(found) else np.nan


def is_complete(runs: Runs) -> bool:
    """Whether the default and the rivals of the bars were run."""
    return {OURS, *BARRED} <= set(runs)


def rmse_ratio(runs: Runs) -> float:
    """The default's RMSE over that of the better one of the rivals of the bars."""
    return average(runs, OURS, "rmse") / min(average(runs, rival, "rmse") for rival in BARRED)


def bars_met(runs: Runs) -> dict[str, bool]:
    """Bars that the default reaches on a problem; none if it did not finish on every split."""
    finished = not runs[OURS]["failed"]
    covered = average(runs, OURS, "coverage")
    met = {}
    for rival in BARRED:
        ahead = advantage(runs, rival, "log_density")
        met[f"log density, {rival}"] = ahead.mean >= -ahead.standard_error  # not met where there is none to compare
    met["rmse"] = rmse_ratio(runs) <= 1 + RMSE_SLACK
    met["coverage"] = COVERAGE[0] <= covered <= COVERAGE[1]
    return {name: finished and bool(reached) for name, reached in met.items()}
