"""Check and time the large-graph path on a CUDA device: run on a machine with a GPU and CuPy (torch is optional).

    python benchmarks/gpu.py [results.json]

First the estimator on NumPy, CuPy and torch signals, which must agree, and the operator of a partitioned graph, which
must agree with that of the whole one; then lattices of 10^7 and 10^8 nodes, built on the device, with signals of a
known filter.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from _in_turn import partitions
from sklearn.gaussian_process.kernels import RBF

from spectralgp import Chebyshev, Graph, GraphGPRegressor, Polynomial, condition
from spectralgp.graphs.operators import (
    CudaOperator,
    chebyshev_coefficients,
    chebyshev_points,
    largest_eigenvalue,
    random_normal,
    tighten,
)
from spectralgp.learning import Task, learn
from spectralgp.model.signals import read_signals

TRUTH = Polynomial.from_coefficients([1.0, -2.2, 1.9, -0.6])
NOISE_SHARE = 0.1


def agreement() -> dict[str, object]:
    """Largest relative differences between the libraries, on a graph small enough for the exact spectrum too."""
    rng = np.random.default_rng(0)
    graph = Graph.from_points(rng.random((2000, 2)), 8)
    inputs = rng.standard_normal((16, 2))
    signals = np.sin(inputs[:, :1] + 6 * graph.coordinates[:, 0]) + 0.3 * rng.standard_normal((16, 2000))
    paper: dict[str, Any] = {"residual": None, "carry": None, "center": "global", "scale": "global"}
    kernels = (Polynomial(3, "interval"), RBF(1.0))
    exact = GraphGPRegressor(graph, *kernels, **paper, spectrum="exact").fit(inputs, signals)
    reference = exact.predict(inputs[:4], return_std=True, nodes=[0, 7])
    stds = exact.predict(inputs[:4], return_std=True)[1]
    reference_mean = exact.predict(inputs[:1])[:, :, None]
    settings = Chebyshev(n_probes="exact", tolerance=1e-8)
    kinds = {"numpy": signals, "cupy": cupy.asarray(signals), "device=cuda": signals}
    try:
        import torch

        kinds["torch cuda"] = torch.as_tensor(signals, device="cuda")
        kinds["torch cpu"] = torch.as_tensor(signals)
    except ImportError:
        pass
    found: dict[str, object] = {}
    for name, given in kinds.items():
        own = replace(settings, device="cuda") if name == "device=cuda" else settings
        model = GraphGPRegressor(graph, *kernels, **paper, spectrum=own).fit(inputs, given)
        mean, std = model.predict(inputs[:4], return_std=True, nodes=[0, 7])
        everywhere = model.predict(inputs[:4])
        assert type(everywhere) is type(given), (name, type(everywhere))
        host = _host(mean)
        density = float(model.log_predictive_density(inputs[:4], given[:4]))
        truth = exact.log_predictive_density(inputs[:4], signals[:4])
        found[name] = {
            "log_likelihood": abs(model.log_marginal_likelihood_ / exact.log_marginal_likelihood_ - 1),
            "noise": abs(model.noise_variance_ / exact.noise_variance_ - 1),
            "mean": float(np.max(np.abs(host - reference[0]))),
            "std": float(np.max(np.abs(np.asarray(std) - reference[1]))),
            "log_density": abs(density / truth - 1),
            "std_everywhere": float(np.max(np.abs(_host(model.predict(inputs[:4], return_std=True)[1]) - stds))),
            "sample_spread": float(np.std(_host(model.sample_y(inputs[:1], 20, include_noise=True)) - reference_mean)),
        }
    return found


def _host(array: object) -> np.ndarray:
    return array.get() if hasattr(array, "get") else np.asarray(array.cpu() if hasattr(array, "cpu") else array)


def lattice(side: int, dtype: type = np.float64) -> CudaOperator:
    """Torus of side x side nodes, each with eight neighbours, in rows of memory that follow the lattice."""
    node = cupy.arange(side * side, dtype=cupy.int32)
    row, column = node // side, node % side
    moves = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if down or right]
    indices = cupy.empty((node.size, 8), dtype=cupy.int32)
    for position, (down, right) in enumerate(moves):
        indices[:, position] = (row + down) % side * side + (column + right) % side
    weights = cupy.tile(cupy.asarray([0.5 if down and right else 1.0 for down, right in moves], dtype=dtype), node.size)
    indptr = cupy.arange(0, 8 * node.size + 1, 8, dtype=cupy.int32)
    return CudaOperator(indptr, indices.ravel(), weights, cupy.full(node.size, 6.0, dtype=dtype))


class Lattice(Graph):
    """A graph that is on the device only: all that is asked of it is its operator."""

    def __init__(self, operator: CudaOperator) -> None:
        for name, value in (("_operator", operator), ("_cache", {}), ("names", None), ("coordinates", None)):
            object.__setattr__(self, name, value)

    n_nodes = property(lambda self: self._operator.n_nodes)
    n_edges = property(lambda self: 4 * self._operator.n_nodes)

    def operator(self, *_: object) -> CudaOperator:
        return self._operator


def recover(side: int, n_signals: int, n_probes: int) -> dict[str, object]:
    """Draw signals of a known filter, then time learning and the posterior mean at five inputs."""
    rng = np.random.default_rng(1)
    operator = lattice(side)
    n_nodes = side * side
    largest, residual = largest_eigenvalue(operator)
    tighten(operator, largest, residual)
    inputs = rng.standard_normal((n_signals, 2))
    root = np.linalg.cholesky(RBF(1.0)(inputs) + 1e-10 * np.eye(n_signals)).T
    response = TRUTH.response(operator.bound * (chebyshev_points(16) + 1) / 2 / largest)
    filters = chebyshev_coefficients(response)[:, None, None] * root
    drawn = operator.filtered(random_normal(operator, n_signals, rng), filters)
    noise_variance = NOISE_SHARE * float(cupy.var(drawn))
    for column in range(n_signals):  # one at a time: memory
        noise = cupy.random.default_rng(column).standard_normal(n_nodes)
        drawn[:, column] += np.sqrt(noise_variance) * noise
    signals = operator.unload(drawn)
    operator.bound = operator.gershgorin
    del drawn, noise
    cupy.get_default_memory_pool().free_all_blocks()
    timings: dict[str, float] = {}

    def lap(name: str, start: float) -> float:
        cupy.cuda.Device().synchronize()
        now = time.perf_counter()
        timings[name] = now - start
        return now

    cupy.cuda.Device().synchronize()
    began = mark = time.perf_counter()
    graph, settings = Lattice(operator), Chebyshev(n_probes=n_probes)
    read = read_signals(signals, keep_source=True)
    del signals
    mark = lap("reading the signals", mark)
    spectrum = settings.of(graph, scaled=True, prototype=read.like)
    mark = lap("largest eigenvalue", mark)
    spectrum.density.moments(spectrum.n_moments)
    mark = lap("moments of the probes", mark)
    spectrum.read(read)
    mark = lap("moments of the signals", mark)
    task = Task.of(graph, RBF(2.0), inputs, read, prior=None, spectrum=settings)
    fit = learn(task, Polynomial(3))
    mark = lap("learning", mark)
    read.release()
    spectrum.density.release()
    cupy.get_default_memory_pool().free_all_blocks()
    mean = condition(fit.model, inputs, read).at(rng.standard_normal((5, 2))).mean
    lap("posterior mean at 5 inputs", mark)
    timings["total"] = time.perf_counter() - began
    grid = np.linspace(0, 1, 201)
    truth, learnt = TRUTH.response(grid), fit.model.graph_kernel.response(grid)
    assert mean.shape == (5, n_nodes)
    current, previous = random_normal(operator, n_signals, rng), operator.zeros(n_signals)
    operator.step(current, previous)
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    for _ in range(10):
        operator.step(current, previous)
    end.record()
    end.synchronize()
    return {
        "nodes": n_nodes,
        "stored_weights": 9 * n_nodes,
        "signals": n_signals,
        "seconds": timings,
        "fused_step_ms": cupy.cuda.get_elapsed_time(begin, end) / 10,
        "noise_ratio": fit.model.noise_variance / noise_variance,
        "filter_error": float(np.linalg.norm(truth - learnt) / np.linalg.norm(truth)),
        "converged": fit.converged,
        "evaluations": fit.n_evaluations,
        "truncation_error_nats": fit.truncation_error,
        "probe_error_nats": fit.probe_error,
        "device_bytes": cupy.get_default_memory_pool().total_bytes(),
    }


def main() -> None:
    results: dict[str, object] = {"device": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()}
    results["agreement"] = agreement()
    results["partitions"] = partitions("cuda")
    print(json.dumps(results, indent=1), flush=True)
    recover(1000, 32, 32)  # compiles and warms up
    results["10^7 nodes"] = recover(3163, 32, 32)
    print(json.dumps(results["10^7 nodes"], indent=1), flush=True)
    cupy.get_default_memory_pool().free_all_blocks()
    results["10^8 nodes"] = recover(10_000, 8, 8)
    print(json.dumps(results["10^8 nodes"], indent=1), flush=True)
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "results" / "gpu.json"
    path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
