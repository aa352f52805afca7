"""Tools of the benchmarks on large graphs: signals of a known filter, child processes, memory, times of parts."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from spectralgp import Graph, Polynomial, SpectralKernel
from spectralgp.graphs.operators import (
    CpuOperator,
    chebyshev_coefficients,
    chebyshev_points,
    largest_eigenvalue,
    random_normal,
    tighten,
)

GIGABYTE = 1e9
TRUTH = Polynomial.from_coefficients([1.0, -2.2, 1.9, -0.6])
NOISE_SHARE = 0.1  # of the variance of the signals
INPUT_KERNEL = RBF(1.0)


def peak_memory() -> float:
    """Largest resident memory of this process so far, in gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIGABYTE


def present_memory() -> float:
    """Resident memory of this process now, in gigabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / GIGABYTE


def seconds(action: Callable[[], object]) -> float:
    """Time that an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def run_child(
    script: str, *arguments: object, limit: float | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run a benchmark script in a process of its own, whose peak memory is its own, and read its last line.

    A process that ends badly, or takes longer than `limit` seconds, gives what it said under "failed". Variables of
    `environment` are set beside those of this process.
    """
    command = [sys.executable, script, *map(str, arguments)]
    load = os.getloadavg()[0]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, env={**os.environ, **(environment or {})}
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not finished after {limit:.0f} s", "load_average_before": load}
    if ended.returncode:
        said = (ended.stderr.strip().splitlines() or [f"ended by signal {-ended.returncode}"])[-1]
        return {"failed": said, "load_average_before": load}
    found: dict[str, Any] = json.loads(ended.stdout.strip().splitlines()[-1])
    return {**found, "load_average_before": load}


def report(found: dict[str, Any]) -> None:
    """Last line of a child process."""
    print(json.dumps(found))


def one_blas_thread() -> Any:
    """BLAS on one thread, as the estimator sets it for few signals; compiled loops keep every core."""
    return threadpool_limits(1, "blas")


def conditions() -> dict[str, Any]:
    """Conditions that may slow a run: cores, threads, and the load of the machine."""
    import numba

    return {
        "load_average": list(os.getloadavg()),
        "numba_threads": numba.get_num_threads(),
        "blas_threads": 1,
        "memory_gigabytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIGABYTE,
    }


def warm_up() -> None:
    """Compile the loops, or read them from Numba's cache, before anything is timed."""
    rng = np.random.default_rng(0)
    graph = Graph.from_points(rng.random((500, 2)), 8)
    # arrays of the graph's own are read-only, which makes them another type to Numba
    for laplacian, reorder in product(("combinatorial", "normalized"), (False, True)):
        operator = operator_of(graph, laplacian, reorder)
        block = random_normal(operator, 4, rng)
        operator.step(block, operator.zeros(4))
        operator.advance(block, operator.zeros(4), gram=True)
        operator.advance(block, operator.zeros(4), gram=False)


def operator_of(graph: Graph, laplacian: str = "combinatorial", reorder: bool | None = None) -> CpuOperator:
    """The operator that the estimator would make."""
    weights, diagonal = graph.laplacian_parts(laplacian)
    return CpuOperator(weights, diagonal, reorder=reorder)


def draw_signals(
    graph: Graph, truth: SpectralKernel, inputs: np.ndarray | None, n_signals: int, random_state: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Signals of a known filter with noise, shape (n_signals, n_nodes), and the variance of their noise.

    Independent of each other if there are no inputs.
    """
    operator = operator_of(graph, truth.laplacian)
    largest, residual = largest_eigenvalue(operator)
    tighten(operator, largest, residual)
    covariance = np.eye(n_signals) if inputs is None else INPUT_KERNEL(inputs)
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    unit = largest if truth.scaled else 1.0
    n_terms = 16 if isinstance(truth, Polynomial) else 256
    response = truth.response(operator.bound * (chebyshev_points(n_terms) + 1) / 2 / unit)
    coefficients = chebyshev_coefficients(response)
    significant = np.flatnonzero(np.abs(coefficients) > 1e-12 * np.abs(coefficients).max())[-1] + 1
    white = random_normal(operator, n_signals, random_state)
    drawn = operator.filtered(white, coefficients[:significant, None, None] * root)
    noise_variance = NOISE_SHARE * float(np.var(drawn))
    for column in range(n_signals):  # one at a time: memory
        drawn[:, column] += np.sqrt(noise_variance) * random_state.standard_normal(graph.n_nodes)
    return operator.unload(drawn), noise_variance


def filter_error(truth: SpectralKernel, learnt: SpectralKernel, upper: float = 1.0) -> float:
    """Relative error of a learnt filter over the interval of the spectrum, whatever its sign."""
    grid = np.linspace(0, upper, 201)
    return relative_error(truth.response(grid), learnt.response(grid))


def relative_error(truth: np.ndarray, learnt: np.ndarray) -> float:
    """Root mean square of the difference over that of the truth; a filter and its negative are one."""
    differences = (np.linalg.norm(truth - learnt), np.linalg.norm(truth + learnt))
    return float(min(differences) / np.linalg.norm(truth))


class Stopwatch:
    """Time inside of named functions, without what other named functions take inside of them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner = [0.0]

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        """Charge the time of a block of code to a name."""
        self._inner.append(0.0)
        start = time.perf_counter()
        yield
        whole = time.perf_counter() - start
        self.seconds[name] = self.seconds.get(name, 0.0) + whole - self._inner.pop()
        self._inner[-1] += whole

    def watch(self, owner: Any, attribute: str, name: str) -> None:
        """Charge every call of a function to a name."""
        plain = getattr(owner, attribute)

        def timed(*arguments: Any, **options: Any) -> Any:
            with self.lap(name):
                return plain(*arguments, **options)

        setattr(owner, attribute, timed)


def watched_passes() -> Stopwatch:
    """A stopwatch on what every fit by passes over the graph does."""
    from spectralgp.estimators import reading
    from spectralgp.graphs import operators
    from spectralgp.model.signals import Signals
    from spectralgp.model.spectra import quadrature

    watch = Stopwatch()
    watch.watch(reading, "read_signals", "reading the signals")
    watch.watch(operators, "largest_eigenvalue", "largest eigenvalue")
    watch.watch(Signals, "moments", "moments of the signals")
    watch.watch(quadrature.Density, "_raw", "moments of the probes")
    return watch


def watched_stages() -> Stopwatch:
    """A stopwatch on the stages of a fit on a large graph."""
    from spectralgp.model.spectra import Quadrature, quadrature

    watch = watched_passes()
    watch.watch(Graph, "operator", "operator and ordering")
    watch.watch(Quadrature, "diagonals", "variances by probes")
    watch.watch(quadrature, "diagonals_at", "variances at chosen nodes")
    return watch
