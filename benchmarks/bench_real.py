"""Real data: the default beside the paper's model, GPs without a graph, ridge regression and k-NN, on the same splits.

    python benchmarks/bench_real.py                        20 splits of every set, about twenty minutes on two cores
    python benchmarks/bench_real.py --rivals default       the default anew; the others' results are kept
    python benchmarks/bench_real.py --page                 the page anew, from the results
    python benchmarks/bench_real.py --quick                2 splits of 3 sets, into a temporary folder

Results are in benchmarks/results/real.json, the page that is made of them in docs/real-data.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from _paired import bars_met, is_complete
from _real_data import SETS, Problem, RealSet, facts, problems, real_set, split
from _real_page import write
from _reporting import save
from _rivals import RIVALS
from _splits import add, options, print_problem, results, run, tried, write_page

from spectralgp.scores import coverage, crps, root_mean_square_error

N_SPLITS = 20
QUICK_SPLITS, QUICK_SETS = 2, ("weather", "income changes", "sea temperature")
Kept = dict[str, Any]  # what is in the file


def score(data: RealSet, n_train: int, seed: int, rival: str) -> dict[str, Any]:
    """A rival's scores on one split, or what it failed with."""
    train, test = split(len(data.signals), n_train, seed)
    observed = data.signals[test]

    def scores() -> dict[str, float]:
        forecast = RIVALS[rival].forecast(data.graph, data.inputs[train], data.signals[train], data.inputs[test])
        return {
            "log_density": float(np.mean(forecast.log_density(observed))),
            "rmse": root_mean_square_error(observed, forecast.mean),
            "crps": float(np.mean(crps(observed, forecast.mean, forecast.std))),
            "coverage": coverage(observed, forecast.mean, forecast.std, 0.9),
        }

    return tried(f"split {seed}", scores)


def one_split(problem: Problem, seed: int, rivals: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Every rival's scores on one split of a problem."""
    data = real_set(problem.set_name)
    return {rival: score(data, problem.n_train, seed, rival) for rival in rivals}


def run_all(
    chosen: Sequence[Problem], rivals: Sequence[str], n_splits: int, n_workers: int, kept: Kept, folder: Path
) -> None:
    """Run methods on problems, and save the results of each problem when it is finished."""
    for problem, new in run(one_split, chosen, rivals, n_splits, n_workers):
        runs = add(kept["problems"], problem.name, facts(problem, n_splits), new, list(RIVALS))
        save("real", kept, folder)
        print_problem(problem.name, runs)
        if is_complete(runs):
            short = ", ".join(bar for bar, met in bars_met(runs).items() if not met)
            print("bars not met:", short or "none", flush=True)


def main() -> None:
    chosen = options(__doc__, "splits", N_SPLITS, QUICK_SPLITS, {"sets": list(SETS), "rivals": list(RIVALS)})
    if chosen.quick:
        chosen.sets = list(QUICK_SETS)
    kept, path, docs = results("real", chosen.out, {"problems": {}})
    if not chosen.page:
        found, absent = problems(chosen.sets)
        sizes = {problem.name for problem in found}
        here = set(chosen.sets) - set(absent)  # their old results go where they are not run with such a size any more
        kept["problems"] = {
            name: old for name, old in kept["problems"].items() if old["facts"]["set"] not in here or name in sizes
        }
        kept["absent"] = absent
        kept["settings"] = {"n_workers": chosen.workers, "sklearn": sklearn.__version__}
        run_all(found, chosen.rivals, chosen.splits, chosen.workers, kept, path.parent)
    write_page(path, docs, write)


if __name__ == "__main__":
    main()
