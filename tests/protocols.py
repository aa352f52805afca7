"""Splits of the paper's real data, as DESIGN.md section 10 states them; inputs and signals are standardised."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spectralgp.datasets import load_traffic, load_weather
from spectralgp.graphs import Graph


@dataclass(frozen=True, eq=False)
class Split:
    """Training data, ten test sets in a row, and what turns a score into the units of the tables."""

    graph: Graph
    inputs: np.ndarray
    signals: np.ndarray
    test_inputs: np.ndarray
    test_signals: np.ndarray
    set_size: int
    shift: float  # added to a score per signal: minutes for traffic, nothing for weather

    def scores(self, log_density) -> np.ndarray:
        """Joint log density of each test set over its size; `log_density` takes inputs and signals."""
        starts = range(0, len(self.test_signals), self.set_size)
        totals = [
            log_density(self.test_inputs[s : s + self.set_size], self.test_signals[s : s + self.set_size])
            for s in starts
        ]
        return np.array(totals) / self.set_size + self.shift


def weather(folder: Path, n_signals: int, seed: int = 1) -> Split:
    """Temperatures of one day from those of the day before."""
    data = load_weather(folder)
    days = (data.temperatures - data.temperatures.mean()) / data.temperatures.std()
    order = np.random.RandomState(seed).permutation(95)
    order = order[order != 94]
    train, test = order[:n_signals], order[30:90]
    return Split(data.graph, days[train], days[train + 1], days[test], days[test + 1], 6, 0.0)


def traffic(folder: Path, n_signals: int, seed: int = 1) -> Split:
    """Delays at 60 bottlenecks from those at 15 others on the same day."""
    data = load_traffic(folder)
    deviation = data.delays.std()
    delays = (data.delays - data.delays.mean()) / deviation
    inputs, signals = delays[:, : data.n_inputs], delays[:, data.n_inputs :]
    order = np.random.RandomState(seed).permutation(2798)
    train, test = order[:n_signals], order[20:120]
    shift = -data.output_graph.n_nodes * np.log(deviation)
    return Split(data.output_graph, inputs[train], signals[train], inputs[test], signals[test], 10, shift)
