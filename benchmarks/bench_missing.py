"""Imputation of values removed from real data, compared with other methods; and nowcasting.

    python benchmarks/bench_missing.py                      20 seeds of every setting, an hour or so on two cores
    python benchmarks/bench_missing.py --rivals default     the default anew; the others' results are kept
    python benchmarks/bench_missing.py --page               the page anew, from the results
    python benchmarks/bench_missing.py --quick              2 seeds of every setting, into a temporary folder

Results are in benchmarks/results/missing.json; docs/missing-data.md is made of them, but for its hand-written head.
Only removed values are scored.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from _imputers import IMPUTERS
from _missing_page import bars_met, is_complete, rmse_ratio, write
from _missing_values import REMOVALS, SETS, Problem, complete_set
from _real_data import AbsentError, RealSet, content_sum, real_set
from _reporting import save
from _splits import add, options, print_problem, results, run, tried, write_page

from spectralgp import GraphGPRegressor
from spectralgp.learning.baselines import Imputed, graph_neighbours, with_deviations
from spectralgp.scores import coverage, crps, mean_log_density, root_mean_square_error

N_SEEDS, QUICK_SEEDS = 20, 2
SHARE_HIDDEN = 0.2  # of each test signal, in nowcasting
Array = np.ndarray
Kept = dict[str, Any]  # what is in the file


def scores(truth: Array, filled: Imputed, removed: Array) -> dict[str, float]:
    """Scores of removed values."""
    observed, mean, std = truth[removed], filled[0][removed], filled[1][removed]
    return {
        "log_density": mean_log_density(observed, mean, std),
        "rmse": root_mean_square_error(observed, mean),
        "crps": float(np.mean(crps(observed, mean, std))),
        "coverage": coverage(observed, mean, std, 0.9),
    }


def fill_in(problem: Problem, seed: int, rivals: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Scores of each method on one draw of the removed values."""
    data, removed = complete_set(problem.set_name), problem.removed(seed)
    incomplete = np.where(removed, np.nan, data.signals)
    return {
        rival: tried(
            f"seed {seed}",
            lambda fill=IMPUTERS[rival].fill: scores(data.signals, fill(data.graph, data.inputs, incomplete), removed),
        )
        for rival in rivals
    }


@dataclass(frozen=True)
class Nowcast:
    """A set whose later half is forecast from inputs and from observed values of the signals."""

    set_name: str

    @property
    def name(self) -> str:
        return self.set_name


@dataclass(frozen=True)
class Today:
    """Training data, and test signals with hidden entries."""

    set_name: str
    data: RealSet
    n_train: int
    partial: Array


@cache
def learnt(set_name: str) -> GraphGPRegressor:
    """The default, learnt from the first half of the signals."""
    data = real_set(set_name)
    n_train = len(data.signals) // 2
    return GraphGPRegressor(data.graph).fit(data.inputs[:n_train], data.signals[:n_train])


def with_observed(today: Today) -> Imputed:
    inputs = today.data.inputs[today.n_train :]
    return learnt(today.set_name).predict(inputs, return_std=True, include_noise=True, observed=today.partial)


def without_observed(today: Today) -> Imputed:
    inputs = today.data.inputs[today.n_train :]
    return learnt(today.set_name).predict(inputs, return_std=True, include_noise=True)


def neighbours_today(today: Today) -> Imputed:
    """Neighbours on the graph, with node means of the training signals."""
    data, n_train = today.data, today.n_train
    values = partial(graph_neighbours, means=data.signals[:n_train].mean(axis=0))
    return with_deviations(values)(data.graph, data.inputs[n_train:], today.partial)


NOWCASTERS: dict[str, Callable[[Today], Imputed]] = {
    "default": with_observed,
    "alone": without_observed,
    "graph-knn": neighbours_today,
}


def nowcast(problem: Nowcast, seed: int, rivals: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Scores at the hidden nodes of the test signals."""
    data = real_set(problem.set_name)
    n_train = len(data.signals) // 2
    test = data.signals[n_train:]
    order = np.random.default_rng(seed).random(test.shape).argsort(axis=1)
    hidden = order < round(SHARE_HIDDEN * test.shape[1])
    today = Today(problem.set_name, data, n_train, np.where(hidden, np.nan, test))
    return {
        rival: tried(f"seed {seed}", lambda forecast=NOWCASTERS[rival]: scores(test, forecast(today), hidden))
        for rival in rivals
    }


def facts(data: RealSet, n_seeds: int) -> dict[str, Any]:
    n_signals, n_nodes = data.signals.shape
    return {
        "words": data.words,
        "n_nodes": n_nodes,
        "n_signals": n_signals,
        "n_splits": n_seeds,
        "units": data.units,
        "density_units": "nats per value",
        "graph": data.graph_words,
        "source": data.source,
        "licence": data.licence,
        "sha256": content_sum(data),
    }


def removal_facts(problem: Problem, n_seeds: int) -> dict[str, Any]:
    return facts(complete_set(problem.set_name), n_seeds) | {
        "set": problem.set_name,
        "removal": problem.removal,
        "share": float(np.mean([problem.removed(seed).mean() for seed in range(n_seeds)])),
    }


def nowcast_facts(problem: Nowcast, n_seeds: int) -> dict[str, Any]:
    n_signals = len(real_set(problem.set_name).signals)
    return facts(real_set(problem.set_name), n_seeds) | {"n_train": n_signals // 2, "share": SHARE_HIDDEN}


def run_all(chosen: argparse.Namespace, kept: Kept, folder: Path) -> None:
    """Run methods on problems, and save the results of each problem when it is finished."""
    problems = [Problem(name, removal) for name in chosen.sets for removal in chosen.removals]
    for problem, new in run(fill_in, problems, chosen.rivals, chosen.seeds, chosen.workers):
        about = removal_facts(problem, chosen.seeds)
        runs = add(kept["problems"], problem.name, about, new, list(IMPUTERS))
        save("missing", kept, folder)
        print_problem(problem.name, runs)
        if is_complete(runs):
            short = ", ".join(bar for bar, met in bars_met(runs).items() if not met)
            print("not better than, or short of:", short or "none", flush=True)
    if "default" not in chosen.rivals:
        return
    nowcasts = [Nowcast(name) for name in chosen.sets]
    for each, new in run(nowcast, nowcasts, list(NOWCASTERS), chosen.seeds, chosen.workers):
        runs = add(kept["nowcasting"], each.name, nowcast_facts(each, chosen.seeds), new, list(NOWCASTERS))
        save("missing", kept, folder)
        print_problem(f"nowcasting, {each.name}", runs)
        print(f"RMSE over that without the observed ones: {rmse_ratio(runs):.3f}", flush=True)


def main() -> None:
    lists = {"sets": list(SETS), "removals": list(REMOVALS), "rivals": list(IMPUTERS)}
    chosen = options(__doc__, "seeds", N_SEEDS, QUICK_SEEDS, lists)
    kept, path, docs = results("missing", chosen.out, {"problems": {}, "nowcasting": {}})
    if not chosen.page:
        kept["settings"] = {"n_workers": chosen.workers, "sklearn": sklearn.__version__}
        kept["absent"] = {}
        for name in list(chosen.sets):
            try:
                complete_set(name)
            except (AbsentError, FileNotFoundError) as error:
                kept["absent"][name] = str(error)
                chosen.sets.remove(name)
        run_all(chosen, kept, path.parent)
    write_page(path, docs, write)


if __name__ == "__main__":
    main()
