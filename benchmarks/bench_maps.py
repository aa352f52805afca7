"""One map of counts on a large graph: seconds, memory and iterations, with the filter learnt and with it given.

    python benchmarks/bench_maps.py                    every size, each in a process of its own; about four minutes
    python benchmarks/bench_maps.py fit 100000 learnt  one part alone, as the main process starts it

Nodes are random points in the unit square, joined to their eight nearest neighbours. Counts are Poisson, of mean rate
about 3; a tenth of them is missing.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from _large import conditions, one_blas_thread, peak_memory, present_memory, report, run_child, seconds, warm_up
from _reporting import print_table, save

from spectralgp import Chebyshev, Graph, GraphGPRegressor, Polynomial, graph_gp
from spectralgp.model.fields import krylov

RUNS = ((10_000, "learnt"), (100_000, "learnt"), (1_000_000, "given"))
BARS = {(100_000, "learnt"): 60.0, (1_000_000, "given"): 120.0}
TRUTH = Polynomial.from_coefficients([1.6, -2.6, 1.1], fixed=True)
WHITE, INTERCEPT, MISSING, N_NEIGHBORS = 0.05, 0.4, 0.1, 8


def counts(graph: Graph, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A map of counts, and the logarithms of their rates."""
    prior = graph_gp(graph, TRUTH, None, WHITE, spectrum=Chebyshev())
    latent = INTERCEPT + prior.sample(np.empty((1, 0)), 1, rng, include_noise=True)[0]
    values = rng.poisson(np.exp(latent)).astype(float)
    values[rng.random(values.shape) < MISSING] = np.nan
    return values, latent


def counted() -> list[int]:
    """Iterations of each solve from now on."""
    found, solve = list[int](), krylov.mention

    def mention(said: str) -> None:
        if said.startswith("solving, iteration"):
            number = int(said.rsplit(" ", 1)[1]) + 1  # it is said after all but the last
            if number == 2 or not found:
                found.append(number)
            found[-1] = number
        solve(said)

    krylov.mention = mention
    return found


def fit(n_nodes: int, how: str) -> dict[str, Any]:
    """Fit and answer through the public estimator."""
    rng = np.random.default_rng(0)
    graph = Graph.from_points(rng.random((n_nodes, 2)), N_NEIGHBORS)
    values, latent = counts(graph, rng)
    graph = Graph(graph.weights)  # which remembers nothing
    compiling, before, iterations = seconds(warm_up), present_memory(), counted()
    given = {"noise_variance": WHITE} if how == "given" else {}
    kernel = TRUTH if how == "given" else Polynomial(2)
    model = GraphGPRegressor(graph, kernel, likelihood="poisson", spectrum="chebyshev", **given)
    with one_blas_thread():
        processor, start = time.process_time(), time.perf_counter()
        model.fit(None, values)
        fitted = time.perf_counter()
        processor = time.process_time() - processor
        _, std = model.impute(None, values)
        ended = time.perf_counter()
    sites, (learnt,) = model.posterior_.sites, model.fits_
    assert std.shape == values.shape
    apart = (sites.mean - latent) / np.sqrt(sites.variance)
    points = np.linspace(0.0, 1.0, 65)
    powers = [np.square(one.response(points)) for one in (model.graph_kernel_[0], TRUTH)]
    seen = np.isfinite(values)
    return {
        "nodes": n_nodes,
        "edges": graph.n_edges,
        "how": how,
        "seconds": {"fit": fitted - start, "impute": ended - fitted, "cpu": processor},
        "warm_up_seconds": compiling,
        "gigabytes": {"before": before, "peak": peak_memory()},
        "solves": len(iterations),
        "iterations": {"all": sum(iterations), "mean": float(np.mean(iterations)), "most": max(iterations)},
        "steps": len(learnt.stages),
        "converged": learnt.converged,
        "method": learnt.method,
        "power_error": float(np.linalg.norm(powers[0] - powers[1]) / np.linalg.norm(powers[1])),
        "white_variance": model.noise_variance_,
        "intercept": [model.coefficients_["intercept"], float(model.coefficients_.errors[0])],
        "log_bound": model.log_marginal_likelihood_,
        "probe_error_nats": learnt.probe_error,
        "variance_error": sites.variance_error / float(np.mean(sites.variance)),
        "squared_errors_over_variance": {
            "seen": float(np.mean(apart[seen] ** 2)),
            "missing": float(np.mean(apart[~seen] ** 2)),
        },
    }


def show(runs: list[dict[str, Any]]) -> None:
    rows = [
        [f"{run['nodes']:,}", run["how"], f"{run['seconds']['fit']:.1f}", f"{run['gigabytes']['peak']:.2f}",
         run["solves"], f"{run['iterations']['mean']:.1f}", run["steps"], f"{run['power_error']:.1%}"]
        for run in runs if "failed" not in run
    ]  # fmt: skip
    header = ["nodes", "filter", "fit s", "GB", "solves", "iterations each", "steps", "power error"]
    print_table("one map of Poisson counts", header, rows)


def main() -> None:
    runs = []
    for n_nodes, how in RUNS:
        runs.append(run_child(__file__, "fit", n_nodes, how))
        print(runs[-1], flush=True)
    took = {(run["nodes"], run["how"]): run["seconds"]["fit"] for run in runs if "failed" not in run}
    met = {f"{n_nodes:,} nodes, {how}, in {bar:.0f} s": took.get((n_nodes, how), np.inf) <= bar
           for (n_nodes, how), bar in BARS.items()}  # fmt: skip
    show(runs)
    save("maps", {"conditions": conditions(), "runs": runs, "bars_met": met})


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        report(fit(int(sys.argv[2]), sys.argv[3]))
