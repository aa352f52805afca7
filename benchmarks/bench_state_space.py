"""Processes in time, by filters: processor seconds and ratios of them, on one thread.

    python benchmarks/bench_state_space.py            all of it, a minute or two
    python benchmarks/bench_state_space.py --quick    a tenth of the sizes, to see that it runs

To be run with OPENBLAS_NUM_THREADS, OMP_NUM_THREADS and NUMBA_NUM_THREADS of 1.

1. The likelihood with all derivatives, 500 nodes x 10,000 steps, two states: compiled, in NumPy, over a copy of data.
2. A fit of a million steps on 20 nodes, and its memory.
3. A fit of 100 nodes x 5,000 steps with a fifth missing.
4. An update by one row at 500 nodes, with three states and with nine.
5. A step of a regressor's fit with a Matern kernel, 2,000 signals on 20 nodes: by filters over by modes.

Compiled loops are warmed up first. Results are in benchmarks/results/state_space.json.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np
from _reporting import least, print_table, save
from sklearn.gaussian_process.kernels import Matern as MaternKernel

from spectralgp import Graph, Polynomial, Task, decompose
from spectralgp.learning.objective import Objective
from spectralgp.model.fields import processes
from spectralgp.model.statespace import Filter, StateSpace, Timeline, evaluate, filters, plain
from spectralgp.series import MaternComponent, ModalProcess, OscillatorComponent, learn_on_graph

BARS = {
    "evaluation, 500 x 10,000, s": 0.25,
    "the same in NumPy, s": 1.5,
    "fit, a million x 20, s": 15.0,
    "its memory, GB": 4.0,
    "fit with missing values, 100 x 5,000, s": 30.0,
    "update, 500 nodes, 3 states, ms": 1.0,
    "update, 500 nodes, 9 states, ms": 1.0,
    "Matern regression, filter / modes": 0.01,
}


def once(work: Callable[[], object]) -> float:
    """Processor time."""
    start = time.process_time()
    work()
    return time.process_time() - start


def series(n_steps: int, n_nodes: int, seed: int = 0):
    """Times, values and the spectrum of a graph on which they are a Matern process with rates by frequency."""
    random = np.random.default_rng(seed)
    spectrum = decompose(Graph.from_points(random.random((n_nodes, 2)), 4), "combinatorial", scaled=True)
    frequencies, times = spectrum.eigenvalues, np.arange(float(n_steps))
    powers, rates = np.square(1.2 - 0.8 * frequencies), np.square(0.25 + 0.5 * frequencies)
    space = StateSpace((MaternComponent(0.5),), powers[None], rates[None], np.full(n_nodes, 0.2))
    drawn = Filter.of(space, Timeline.of(times)).drawn(random.standard_normal((n_steps, n_nodes)))
    return times, drawn @ spectrum.eigenvectors.T, spectrum


def evaluations(share: float) -> dict[str, float]:
    """The likelihood with all derivatives."""
    random, n_steps, n_modes = np.random.default_rng(0), int(10_000 * share), 500
    rates = np.exp(-1 + 0.3 * random.standard_normal((1, n_modes)))
    space = StateSpace((MaternComponent(1.5),), np.full((1, n_modes), 0.5), rates, np.full(n_modes, 0.3))
    line, values = Timeline.of(np.arange(float(n_steps))), random.standard_normal((n_steps, n_modes))
    found = {"evaluation, 500 x 10,000, s": least(lambda: evaluate(space, line, [values]))}
    compiled, filters._loops = filters._loops, lambda: plain
    found["the same in NumPy, s"] = least(lambda: evaluate(space, line, [values]), 2)
    filters._loops = compiled
    found["evaluation / a copy of the data"] = found["evaluation, 500 x 10,000, s"] / least(values.copy, 5)
    return found


def fits(share: float) -> dict[str, float]:
    """Learning of long series, and of series with missing values."""
    arguments = (MaternComponent(0.5),), Polynomial(1), Polynomial(1)
    times, values, spectrum = series(int(1_000_000 * share), 20)
    learn_on_graph(spectrum, times[:200], values[:200], *arguments)
    found = {"fit, a million x 20, s": once(lambda: learn_on_graph(spectrum, times, values, *arguments))}
    found["its memory, GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    times, values, spectrum = series(int(5_000 * share), 100)
    random = np.random.default_rng(1)
    values[random.random(values.shape) < 0.1] = np.nan
    for node in range(100):
        for start in random.integers(0, max(1, len(times) - 100), int(len(times) * 0.1 / 100)):
            values[start : start + 100, node] = np.nan
    found["fit with missing values, 100 x 5,000, s"] = once(lambda: learn_on_graph(spectrum, times, values, *arguments))
    return found


def updates() -> dict[str, float]:
    """One row after the other."""
    random, n_nodes, found = np.random.default_rng(0), 500, {}
    basis = np.linalg.qr(random.standard_normal((n_nodes, n_nodes)))[0]
    sums = {3: (MaternComponent(2.5),), 9: (MaternComponent(0.5), MaternComponent(1.5), OscillatorComponent(24.0, 3))}
    for n_states, components in sums.items():
        shape = (len(components), n_nodes)
        rates = np.exp(-1 + 0.3 * random.standard_normal(shape))
        process = ModalProcess(components, np.ones(shape), rates, np.full(n_nodes, 0.3), basis)
        rows = random.standard_normal((60, n_nodes))
        known = process.filtered(np.arange(10.0), rows[:10])
        times = []
        for step in range(10, 60):
            start = time.process_time()
            known = known.updated([float(step)], rows[step : step + 1])
            times.append(time.process_time() - start)
        found[f"update, 500 nodes, {n_states} states, ms"] = 1e3 * float(np.median(times))
    return found


def regression(share: float) -> dict[str, float]:
    """The log posterior with its slopes at another length scale, by filters and by modes."""
    times, values, spectrum = series(int(2_000 * share), 20)
    task = Task.of(spectrum.graph, MaternKernel(7.0, nu=1.5), times[:, None], values)

    def seconds() -> float:
        objective = Objective(task, Polynomial(2).bind(spectrum), spectrum)
        start = objective.starting_points()[0]
        steps = iter(np.linspace(0.0, 0.1, 9))
        return least(lambda: objective.evaluate(start + next(steps)), 2)

    filtered, fewest = seconds(), processes.FEWEST_IN_TIME
    processes.FEWEST_IN_TIME = 10**9
    by_modes = seconds()
    processes.FEWEST_IN_TIME = fewest
    return {"Matern regression, filter / modes": filtered / by_modes}


def main() -> None:
    """Measure all, print and save it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    share = 0.1 if parser.parse_args().quick else 1.0
    found = {**evaluations(share), **fits(share), **updates(), **regression(share)}
    rows = [(name, f"{value:.3g}", f"{BARS[name]:g}" if name in BARS else "") for name, value in found.items()]
    print_table("Processes in time, processor time on one thread", ("what", "measured", "bar"), rows)
    if share == 1.0:
        save("state_space", {"measured": found, "bars": BARS})


if __name__ == "__main__":
    main()
