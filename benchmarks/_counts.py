"""Counts on graphs: entries held out, rivals and scores, for `bench_observations.py`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from _reporting import data_folder
from scipy.optimize import minimize_scalar
from scipy.stats import nbinom, norm, poisson
from sklearn.gaussian_process.kernels import RBF

from spectralgp import Graph, GraphGPRegressor, Polynomial, RegularizedLaplacian
from spectralgp.datasets import load_homicides, load_sids, load_uber

Array = np.ndarray
SMALLEST = 1e-300
INTERVAL = (0.05, 0.95)


@dataclass(frozen=True, eq=False)
class Counts:
    """A panel of counts, one row per period or hour, and what regressions know of each entry."""

    words: str
    graph: Graph
    counts: Array  # shape (n_signals, n_nodes)
    exposure: Array
    inputs: Array
    columns: Array  # of the regressions, shape (n_signals, n_nodes, n_columns)
    covariates: dict[str, Array] | None  # of our model
    n_folds: int  # of the entries, of which `n_used` are held out one after the other
    n_used: int


def sids() -> Counts:
    """Sudden infant deaths, with the share of nonwhite births."""
    data = load_sids()
    share = np.log((data.nonwhite_births + 1) / data.births)
    share -= share.mean()
    columns = np.stack([np.ones_like(share), share], axis=2)
    words = "sudden infant deaths in 100 counties of North Carolina, two periods; exposure: births"
    inputs, covariates = np.arange(2.0)[:, None], {"log share of nonwhite births": share}
    return Counts(words, data.graph, data.deaths, data.births / 1000, inputs, columns, covariates, 5, 5)


def homicides() -> Counts:
    """Homicides around St. Louis."""
    data = load_homicides()
    periods = np.broadcast_to(np.eye(3)[:, None], (*data.counts.shape, 3))
    words = "homicides in 78 counties around St. Louis, three periods; exposure: person-years"
    inputs = np.arange(3.0)[:, None]
    return Counts(words, data.graph, data.counts, data.person_years / 1e5, inputs, periods, None, 5, 5)


def _uber(share: float) -> Counts:
    """Four days of hourly counts in 29 zones; a share of them is kept at random, each by itself."""
    folder = data_folder()
    if folder is None or not (folder / "journal" / "uber_data.mat").is_file():
        raise FileNotFoundError("journal/uber_data.mat is not in the data folder")
    data = load_uber(folder / "journal")
    counts = data.signals[:96].astype(int)
    if share < 1:
        counts = np.random.default_rng(0).binomial(counts, share)
    hours, zones = np.arange(96) % 24, counts.shape[1]
    columns = np.concatenate(
        [
            np.broadcast_to(np.eye(zones)[None], (96, zones, zones)),
            np.broadcast_to(np.eye(24)[hours][:, None, 1:], (96, zones, 23)),
        ],
        axis=2,
    )
    turn = 2 * np.pi * hours / 24
    inputs = np.column_stack([np.sin(turn), np.cos(turn), np.arange(96) / 24])
    thinned = "" if share == 1 else f", thinned to {share:.0%}"
    words = f"hourly counts in 29 zones, four days{thinned} (mean {counts.mean():.1f})"
    return Counts(words, data.graph, counts.astype(float), np.ones(counts.shape), inputs, columns, None, 10, 3)


COUNTS: dict[str, Callable[[], Counts]] = {
    "sids": sids,
    "homicides": homicides,
    "uber, thinned": lambda: _uber(0.05),
    "uber": lambda: _uber(1.0),
}


@dataclass(frozen=True, eq=False)
class Said:
    """Predictions of a method for all entries: log probability, median, and ends of 90% intervals."""

    log_density: Array
    median: Array
    low: Array
    high: Array


def regression(data: Counts, known: Array, is_poisson: bool) -> Said:
    """Poisson regression by statsmodels, and negative binomial by its means with a dispersion by maximum likelihood."""
    import statsmodels.api as sm

    rows, offset = data.columns[known], np.log(data.exposure)
    fitted = sm.GLM(data.counts[known], rows, family=sm.families.Poisson(), offset=offset[known]).fit()
    mean = np.exp(data.columns @ fitted.params + offset)
    if is_poisson:
        law: Any = poisson(mean)
    else:

        def negative_binomial(log_size: float) -> Any:
            size = np.exp(log_size)
            return nbinom(size, size / (size + mean))

        def cost(log_size: float) -> float:
            return -float(negative_binomial(log_size).logpmf(data.counts)[known].sum())

        law = negative_binomial(minimize_scalar(cost, bounds=(-3, 9), method="bounded").x)
    low, high = (law.ppf(one) for one in INTERVAL)
    return Said(law.logpmf(data.counts), law.median(), low, high)


def transformed(data: Counts, known: Array, is_root: bool, kernel: Any) -> Said:
    """A Gaussian model of logarithms or roots of rates: the probability of a count is that of its interval."""
    shift = 3 / 8 if is_root else 0.5

    def forward(counts: Array) -> Array:
        rates = (counts + shift) / data.exposure
        return np.sqrt(rates) if is_root else np.log(rates)

    values = np.where(known, forward(data.counts), np.nan)
    model = GraphGPRegressor(data.graph, kernel).fit(data.inputs, values)
    mean, std = model.impute(data.inputs, values)
    std = np.where(known, 1.0, std)
    ends = forward(np.maximum(data.counts - 0.5, -shift * is_root)), forward(data.counts + 0.5)
    lower = np.where(data.counts > 0, norm.cdf(ends[0], mean, std), 0.0)
    mass = norm.cdf(ends[1], mean, std) - lower

    def back(level: float) -> Array:
        found = mean + std * norm.ppf(level)
        rates = np.maximum(found, 0) ** 2 if is_root else np.exp(found)
        return np.maximum(np.round(rates * data.exposure - shift), 0)

    return Said(np.log(np.maximum(mass, SMALLEST)), back(0.5), back(INTERVAL[0]), back(INTERVAL[1]))


def observed(data: Counts, known: Array, likelihood: str, kernel: Any, with_covariates: bool) -> Said:
    """Our model of counts."""
    values = np.where(known, data.counts, np.nan)
    given = data.covariates if with_covariates else None
    model = GraphGPRegressor(data.graph, kernel, None if len(values) < 10 else _panel_kernel(), likelihood=likelihood)
    model.fit(data.inputs, values, exposure=data.exposure, covariates=given)
    field = model.posterior_.imputed(np.arange(len(values)))
    nodes = np.arange(data.graph.n_nodes)
    ends = [np.asarray(field.quantile(one)) for one in (0.5, *INTERVAL)]
    return Said(np.asarray(field.value_log_densities(data.counts, nodes)), *ends)


def _panel_kernel() -> Any:
    """Hours of the day and days, as the Gaussian default would have to find them."""
    return RBF([1.0, 1.0, 1.0]) + 0.5


def rivals(data: Counts) -> dict[str, Callable[[Array], Said]]:
    """A method of the comparison: predictions of all entries from the known ones."""
    found: dict[str, Callable[[Array], Said]] = {
        "Poisson regression": lambda known: regression(data, known, True),
        "negative binomial regression": lambda known: regression(data, known, False),
        "Gaussian, log rates": lambda known: transformed(data, known, False, Polynomial(2)),
        "Gaussian, root rates": lambda known: transformed(data, known, True, Polynomial(2)),
        "default, log rates": lambda known: transformed(data, known, False, None),
        "default, root rates": lambda known: transformed(data, known, True, None),
        "CAR-like, Poisson": lambda known: observed(data, known, "poisson", RegularizedLaplacian(), False),
        "Poisson": lambda known: observed(data, known, "poisson", None, False),
        "negative binomial": lambda known: observed(data, known, "negative_binomial", None, False),
    }
    if data.covariates is not None:
        found["Poisson, covariates"] = lambda known: observed(data, known, "poisson", None, True)
    return found


def run(name: str, n_folds: int | None = None) -> dict[str, Any]:
    """Log density of each held-out count, errors and coverage of all rivals, and their processor time."""
    data = COUNTS[name]()
    order = np.random.default_rng(0).permutation(data.counts.size)
    found = dict[str, Any]()
    for fold in range(data.n_used if n_folds is None else n_folds):
        hidden = np.zeros(data.counts.size, dtype=bool)
        hidden[order[fold :: data.n_folds]] = True
        hidden = hidden.reshape(data.counts.shape)
        for rival, say in rivals(data).items():
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of fits that stop early, which the scores show
                said = say(~hidden)
            truth = data.counts[hidden]
            one = found.setdefault(rival, {"log_density": [], "error": [], "covered": [], "seconds": []})
            one["log_density"] += said.log_density[hidden].tolist()
            one["error"] += np.abs(said.median[hidden] - truth).tolist()
            one["covered"] += ((said.low[hidden] <= truth) & (truth <= said.high[hidden])).astype(int).tolist()
            one["seconds"].append(time.process_time() - start)
            print(f"{name:16} fold {fold}  {rival:30} {said.log_density[hidden].mean():8.4f}", flush=True)
    return {"words": data.words, "n_counts": len(found["Poisson regression"]["error"]), "rivals": found}
