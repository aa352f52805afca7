"""Results read: fits by what they are, scores with their errors, and differences of scores taken in pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import binom

from reproduction.experiments import BY_SEARCH, FilterStudy, GraphStudy, PredictionStudy, Study
from reproduction.problems import AS_RELEASED
from reproduction.published import MeanScore
from reproduction.store import Results

FAILED_NATS = 10.0  # below the best maximum that any start found, from which a fit is none of its model

Fit = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Finished:
    """Experiments, and the results of those that are finished.

    Parameters
    ----------
    studies : dict of str to Study
        By their names.
    results : dict of str to list
        What their jobs found.
    statuses : dict of str to str
        What became of those that were asked for.
    """

    studies: Mapping[str, Study]
    results: Mapping[str, Results]
    statuses: Mapping[str, str] = field(default_factory=dict)

    def has(self, *keys: str) -> bool:
        """Whether all these experiments are finished."""
        return all(key in self.results for key in keys)

    def filters(self, key: str) -> Filters:
        """Results of a filter study."""
        study = self.studies[key]
        assert isinstance(study, FilterStudy)
        return Filters(study, self.results[key])

    def predictions(self, key: str) -> Predictions:
        """Results of a prediction study."""
        study = self.studies[key]
        assert isinstance(study, PredictionStudy)
        return Predictions(study, self.results[key])

    def program(self, data: str, size: int, row: str) -> Fit:
        """Scores of the released program with a baseline."""
        wanted = (data, size, row)
        return next(one for one in self.results["baselines"] if (one["data"], one["size"], one["row"]) == wanted)

    def graphs(self) -> dict[str, Fit]:
        """Results on the paper's graphs, by their names."""
        (study,) = (study for study in self.studies.values() if isinstance(study, GraphStudy))
        return {found["graph"]: found for found in self.results[study.key]}


@dataclass(frozen=True, eq=False)
class Filters:
    """A filter study with its results."""

    study: FilterStudy
    results: Results

    def learnt(self, truth: str, variant: str, *, degree: int, snr: float | None = None) -> list[Fit]:
        """The fits of one kind, one per seed that has it, the shown draw first; at the study's first ratio."""
        snr = self.study.snrs[0] if snr is None else snr
        return [
            fit
            for found in self.results
            if found["truth"] == truth and found["snr"] == snr
            for fit in found["learnt"]
            if fit["variant"] == variant and fit["degree"] == degree
        ]

    def shown(self, truth: str, snr: float) -> dict[str, Any]:
        """The draw that is shown."""
        found: dict[str, Any] = next(
            one["shown"] for one in self.results if one["truth"] == truth and one["snr"] == snr and "shown" in one
        )
        return found

    def converged(self, truth: str, variant: str, what: str, *, degree: int, snr: float | None = None) -> Any:
        """A number of every seed whose fit converged; nan where it did not: what failed supports nothing."""
        fits = self.learnt(truth, variant, degree=degree, snr=snr)
        return np.array([fit[what] if fit["converged"] else np.nan for fit in fits])

    def median(self, truth: str, variant: str, what: str, *, degree: int, snr: float | None = None) -> float:
        """Median of a number over the seeds whose fits converged; nan where that is less than half of them."""
        return median_of(self.converged(truth, variant, what, degree=degree, snr=snr))

    def gains(self, truth: str, variant: str, low: int, high: int) -> Any:
        """Gain in log marginal likelihood from one degree to another, of every seed; nan where a fit failed."""
        first, last = (self.converged(truth, variant, "log_likelihood", degree=degree) for degree in (low, high))
        return last - first

    def gain(self, truth: str, variant: str, low: int, high: int) -> float:
        """Its median over the seeds."""
        return median_of(self.gains(truth, variant, low, high))

    def unconverged(self, truth: str, variant: str, *, degree: int, snr: float | None = None) -> tuple[int, int]:
        """Number of fits that did not converge, and number of all fits."""
        fits = self.learnt(truth, variant, degree=degree, snr=snr)
        return sum(not fit["converged"] for fit in fits), len(fits)

    def without_2pi(self, log_likelihood: float) -> float:
        """A log marginal likelihood without its 2 pi term, as the paper's figures give it."""
        return log_likelihood + 0.5 * self.study.n_nodes * self.study.n_signals * float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Difference:
    """A difference of two models' scores, taken in pairs: its mean, the mean's standard error, and its median.

    Parameters
    ----------
    mean, standard_error : float
        Of the pairs.
    median, low, high : float
        With an interval that holds at least 95%, from order statistics: one outlier does not move it.
    """

    mean: float
    standard_error: float
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, first: Any, second: Any) -> Difference:
        """Of two rows of scores of the same test sets or splits.

        Examples
        --------
        >>> Difference.of([1.0, 2.0, 4.0, 3.0, 5.0, 9.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).low
        1.0
        """
        pairs = np.sort(np.asarray(first) - np.asarray(second))
        n = pairs.size
        # the largest rank k with P(fewer than k of n below the median) at most 2.5%
        rank = max(int(binom.ppf(0.025, n, 0.5)), 1)
        error = float(np.std(pairs, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
        return cls(
            float(np.mean(pairs)), error, float(np.median(pairs)), float(pairs[rank - 1]), float(pairs[n - rank])
        )

    def __str__(self) -> str:
        """Its mean and the standard error of that."""
        return f"{self.mean:+.2f} ± {self.standard_error:.2f}"


@dataclass(frozen=True, eq=False)
class Predictions:
    """A prediction study with its results."""

    study: PredictionStudy
    results: Results

    def fit(self, size: int, key: str, split: int | None = None) -> Fit:
        """One model's result; on the first split if none is given."""
        split = self.study.splits[0] if split is None else split
        return next(one for one in self.results if (one["size"], one["split"], one["model"]) == (size, split, key))

    def has_failed(self, size: int, key: str) -> bool:
        """Whether a fit did not converge, or is far below the best maximum that any start found of its model."""
        fit, searched = self.fit(size, key), f"{key.split(',')[0]}, {BY_SEARCH}"
        best = self.fit(size, searched)["log_likelihood"] if self.has(searched) else -np.inf
        return not fit["converged"] or bool(fit["log_likelihood"] < best - FAILED_NATS)

    def has(self, key: str) -> bool:
        """Whether the study has this model."""
        return any(one["model"] == key for one in self.results)

    def set_scores(self, size: int, key: str, order: str = AS_RELEASED) -> list[float]:
        """Scores of the test sets."""
        scores: list[float] = self.fit(size, key)["scores"][order]
        return scores

    def score(self, size: int, key: str, order: str = AS_RELEASED) -> MeanScore:
        """Mean over the test sets and its standard error (ddof 0, as the paper's)."""
        return mean_score(self.set_scores(size, key, order))

    def split_scores(self, size: int, key: str) -> Any:
        """Mean test score on each split, shape (n_splits,)."""
        return np.array([np.mean(self.fit(size, key, split)["scores"][AS_RELEASED]) for split in self.study.splits])

    def difference(self, size: int, key: str, other: str, order: str = AS_RELEASED) -> Difference:
        """Of two models: over the splits where there are several, else over the test sets."""
        if len(self.study.splits) > 1:
            return Difference.of(self.split_scores(size, key), self.split_scores(size, other))
        return Difference.of(self.set_scores(size, key, order), self.set_scores(size, other, order))

    def means(self, size: int, keys: Sequence[str]) -> dict[str, float]:
        """Mean score of each model, over splits and test sets."""
        return {key: float(np.mean(self.split_scores(size, key))) for key in keys}

    def best(self, size: int, keys: Sequence[str]) -> str:
        """The model with the highest mean score."""
        means = self.means(size, keys)
        return max(means, key=means.__getitem__)

    @property
    def shown(self) -> dict[str, Any]:
        """Data for the pictures."""
        found: dict[str, Any] = next(one["shown"] for one in self.results if "shown" in one)
        return found


def mean_score(scores: Sequence[float]) -> MeanScore:
    """Mean and its standard error with ddof 0, as the paper's."""
    return MeanScore(float(np.mean(scores)), float(np.std(scores) / np.sqrt(len(scores))))


def median_of(values: Any) -> float:
    """Median of the finite values; NaN if they are less than half.

    Examples
    --------
    >>> median_of([1.0, 3.0, float("nan")]), median_of([1.0, float("nan"), float("nan")])
    (2.0, nan)
    """
    there = np.asarray(values)[~np.isnan(values)]
    return float(np.median(there)) if 2 * there.size >= np.size(values) else float("nan")
