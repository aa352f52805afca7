"""The default and `effort="fast"` on the same splits of real sets: time, log density, error and coverage.

    python benchmarks/bench_effort.py                 four splits of each set, two minutes
    python benchmarks/bench_effort.py --splits 20

Ratios of processor time are of fits in one run, on one thread. Differences of log densities are in thousandths of a nat
per value, with standard errors over splits, which share signals.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from _real_data import SETS, AbsentError, RealSet, real_set, split, training_sizes
from _reporting import RESULTS, print_table, save
from _splits import on_one_thread

from spectralgp import GraphGPRegressor, Stacking
from spectralgp.scores import coverage, root_mean_square_error

EFFORTS = ("full", "fast")


def scored(data: RealSet, n_train: int, seed: int, effort: Any) -> list[float]:
    """Seconds of the fit, and log density per value, error and coverage of the test signals."""
    train, test = split(len(data.signals), n_train, seed)
    start = time.process_time()
    model = GraphGPRegressor(data.graph, Stacking(effort=effort)).fit(data.inputs[train], data.signals[train])
    took = time.process_time() - start
    inputs, observed = data.inputs[test], data.signals[test]
    mean, std = model.predict(inputs, return_std=True, include_noise=True)
    density = np.mean(model.log_predictive_density(inputs, observed, joint=False)) / data.graph.n_nodes
    return [took, float(density), root_mean_square_error(observed, mean), coverage(observed, mean, std, 0.9)]


def compared(data: RealSet, n_splits: int) -> dict[str, float]:
    """The fast search beside the full one."""
    n_train = training_sizes(len(data.signals))[-1]
    both = np.array([[scored(data, n_train, seed, effort) for effort in EFFORTS] for seed in range(n_splits)])
    (times, densities, errors, shares), gains = both.transpose(2, 1, 0), 1000 * (both[:, 1, 1] - both[:, 0, 1])
    return {
        "seconds": float(np.mean(times[0])),
        "time_ratio": float(np.sum(times[1]) / np.sum(times[0])),
        "density": float(np.mean(densities[0])),
        "density_change": float(np.mean(gains)),
        "density_change_error": float(np.std(gains, ddof=1) / np.sqrt(n_splits)),
        "rmse_ratio": float(np.exp(np.mean(np.log(errors[1] / errors[0])))),
        "coverage": float(np.mean(shares[0])),
        "coverage_fast": float(np.mean(shares[1])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="NAME", help="; ".join(SETS))
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for results")
    chosen = parser.parse_args()
    on_one_thread()
    found: dict[str, dict[str, float]] = {}
    absent: dict[str, str] = {}
    for name in chosen.sets:
        try:
            found[name] = compared(real_set(name), chosen.splits)
        except (AbsentError, FileNotFoundError) as error:
            absent[name] = str(error)
    columns = ("time_ratio", "density_change", "density_change_error", "rmse_ratio", "coverage", "coverage_fast")
    rows = [[name, *(f"{one[column]:.3f}" for column in columns)] for name, one in found.items()]
    print_table("effort='fast' beside the default", ["", *columns], rows)
    means = {
        "time_ratio": float(np.exp(np.mean([np.log(one["time_ratio"]) for one in found.values()]))),
        "density_change": float(np.mean([one["density_change"] for one in found.values()])),
        "rmse_ratio": float(np.exp(np.mean([np.log(one["rmse_ratio"]) for one in found.values()]))),
    }
    print("; ".join(f"{name} {value:.3f}" for name, value in means.items()))
    save("effort", {"n_splits": chosen.splits, "sets": found, "means": means, "absent": absent}, chosen.out)


if __name__ == "__main__":
    main()
