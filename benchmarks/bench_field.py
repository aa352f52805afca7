"""The one field beside an earlier version of the package, on the same work: ratios of processor time.

    python benchmarks/bench_field.py --before ../before          a checkout of that version, for example of 4554596

1. Evidence with all gradients, 1,000 signals on 200 nodes.
2. Prediction of mean and standard deviation with shrinkage, 50 signals on 500 nodes, 20 inputs.
3. Conditioning on signals with missing values by conjugate gradients, 300 signals on 100 nodes.
4. The default, fit and first prediction: weather, 30 signals on 45 nodes; smooth fields, 60 signals on 300 nodes and
   200 on 1,000; by quadrature, 32 on 20,000.
5. The paper's model, fit alone: weather with degree 3 and with every degree.
6. Its fit and the mean at 5 inputs on a large graph: 32 signals on 200,000 nodes, and 8 on 100,000 nodes in two
   partitions by two workers of Dask, whose time counts.

Every piece of work is timed in processes of either version in turn, on one thread; a ratio is that of the least times.
Results are in benchmarks/results/field.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROUNDS = 3
BARS = {
    "evidence 1,000 x 200": 0.7,
    "shrunk prediction at 500 nodes": 0.2,
    "solves with missing values": 1 / 3,
    "default, weather": 1.05,
    "default, 300 nodes": 1.05,
    "default, 1,000 x 200": 1.05,
    "default, 20,000 x 32": 1.05,
    "fit of degree 3": 1.05,
    "fit of every degree": 1.05,
    "large, 200,000 x 32": 1.05,
    "partitions, 100,000 x 8": 1.05,
}


def works() -> dict[str, Callable[[], float]]:
    """Every piece of work, by names that both versions of the package have."""
    import numpy as np
    from _fields import smooth_fields
    from _reporting import data_folder, least
    from protocols import weather as weather_split
    from settings import PAPER, paper_kernel
    from sklearn.gaussian_process.kernels import RBF

    from spectralgp import (
        Diffusion,
        Graph,
        GraphGPRegressor,
        PartitionedGraph,
        Polynomial,
        Task,
        condition,
        condition_shrunk,
        decompose,
        graph_gp,
    )
    from spectralgp.datasets import load_weather
    from spectralgp.learning.objective import Objective
    from spectralgp.model.fields import standard_deviation

    def evidence() -> float:
        graph, inputs, signals = smooth_fields(200, 1_000, 20.0)
        kernel = Polynomial(3).bind(decompose(graph, scaled=True))
        task = Task.of(graph, RBF(1.0), inputs, signals)
        objective = Objective(task, kernel, decompose(graph, scaled=True))
        point = objective.join(kernel.theta + 0.1, task.input_kernel.theta, 0.1)
        objective.evaluate(point)

        def work() -> None:
            objective._evaluated = None
            objective.evaluate(point)

        return least(work, 5)

    def predict() -> float:
        graph, inputs, signals = smooth_fields(500, 50, 20.0)
        posterior = condition_shrunk(graph_gp(graph, Diffusion(20.0), RBF(1.0), 0.1), inputs, signals)
        new = np.random.default_rng(0).standard_normal((20, inputs.shape[1]))

        def work() -> None:
            prediction = posterior.at(new)
            standard_deviation(prediction, include_noise=True)
            np.asarray(prediction.mean)

        return least(work, 20)

    def missing() -> float:
        graph, inputs, signals = smooth_fields(100, 300, 20.0)
        signals = np.where(np.random.default_rng(1).random(signals.shape) < 0.5, np.nan, signals)
        prior = graph_gp(graph, Diffusion(20.0), RBF(1.0), 0.1)
        return least(lambda: condition(prior, inputs, signals).at(inputs[:2]).mean, 3)

    def weather() -> float:
        data = load_weather(data_folder())
        order = np.random.default_rng(0).permutation(len(data.temperatures) - 1)[:30]
        inputs, signals = data.temperatures[order], data.temperatures[order + 1]
        return least(lambda: GraphGPRegressor(data.graph).fit(inputs, signals).predict(inputs[:5], return_std=True), 3)

    def default(n_nodes: int, n_signals: int, **options: str) -> Callable[[], float]:
        def timing() -> float:
            graph, inputs, signals = smooth_fields(n_nodes, n_signals, 20.0)

            def work() -> None:
                model = GraphGPRegressor(Graph(graph.weights), **options).fit(inputs, signals)
                model.predict(inputs[:5], return_std=not options)  # on a quadrature, the mean alone

            return least(work, 1)

        return timing

    def paper(degree: int | str) -> Callable[[], float]:
        def timing() -> float:
            split = weather_split(data_folder(), 30)
            kernel = paper_kernel(split.inputs)

            def fit() -> None:
                graph = Graph(split.graph.weights)
                GraphGPRegressor(graph, Polynomial(degree), kernel, **PAPER).fit(split.inputs, split.signals)

            return least(fit, 15)

        return timing

    def large() -> float:
        rng = np.random.default_rng(0)
        graph = Graph.from_points(rng.random((200_000, 2)), 8)
        inputs = rng.standard_normal((32, 2))
        signals = np.sin(inputs @ rng.standard_normal((2, 1)) + 9 * graph.coordinates[:, 0])
        signals += 0.3 * rng.standard_normal(signals.shape)

        def work() -> None:
            model = GraphGPRegressor(graph, Polynomial(3), RBF(1.0), **PAPER, spectrum="chebyshev")
            model.fit(inputs, signals).predict(inputs[:5])

        return least(work, 1)

    def partitions() -> float:
        from _dask import cluster, cpu

        rng = np.random.default_rng(0)
        points, inputs = rng.random((100_000, 2)), rng.standard_normal((8, 2))
        signals = np.sin(inputs @ rng.standard_normal((2, 1)) + 9 * points[:, 0])
        signals += 0.3 * rng.standard_normal(signals.shape)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            graph = PartitionedGraph.from_points(points, folder / "graph", n_partitions=2, n_neighbors=8)
            with cluster(folder) as client:
                model = GraphGPRegressor(graph, Polynomial(3), RBF(1.0), **PAPER)
                times = []
                for _ in range(3):
                    before = sum(cpu(client))
                    np.asarray(model.fit(inputs, signals).predict(inputs[:5]))
                    times.append(sum(cpu(client)) - before)
        return min(times[1:])

    defaults = (default(300, 60), default(1_000, 200), default(20_000, 32, spectrum="chebyshev"))
    each = (evidence, predict, missing, weather, *defaults, paper(3), paper("auto"), large, partitions)
    return dict(zip(BARS, each, strict=True))


def timed(root: Path, name: str) -> float:
    """Seconds that a piece of work takes with the package of a checkout."""
    env = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    env["PYTHONPATH"] = os.pathsep.join(str(root / part) for part in ("src", "benchmarks", "tests"))
    answer = subprocess.run(
        [sys.executable, "-P", __file__, "--work", name], env=env, capture_output=True, text=True, check=True
    )
    return float(answer.stdout.split()[-1])


def main() -> None:
    """Time every piece of work in turn, and write the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="checkout of the earlier version")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="*", default=list(BARS), help="pieces of work, by name")
    options = parser.parse_args()
    if options.work:
        print(works()[options.work]())
        return
    if options.before is None:
        print("bench_field.py compares with an earlier checkout: pass --before PATH.")
        return
    root = Path(__file__).resolve().parents[1]
    path = root / "benchmarks" / "results" / "field.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for name in options.only:
        times = [[timed(one, name) for one in (options.before.resolve(), root)] for _ in range(ROUNDS)]
        before, after = (min(one) for one in zip(*times, strict=True))
        results[name] = {"before": before, "after": after, "ratio": after / before, "bar": BARS[name]}
        print(f"{name:32s} {before:9.4f} s -> {after:9.4f} s: {after / before:.2f} (bar {BARS[name]:.2f})", flush=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
