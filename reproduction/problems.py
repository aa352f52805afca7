"""The paper's prediction tasks: which signals are learnt from, which are predicted, and in which unit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from spectralgp import Graph
from spectralgp.datasets import load_cerebellum, load_traffic, load_uber, load_weather

Folder = str | Path | None

FMRI_NODES, FMRI_INPUTS, FMRI_TRAINING = 50, 10, 42
FMRI_SAMPLED, FMRI_SEED = 500, 59
UBER_SEED, UBER_NODES, UBER_OUTPUTS, UBER_TRAINING, UBER_HOURS = 8, 29, 20, 20, 744

AS_RELEASED, SORTED, FIRST_SORTED = "released", "sorted", "first 60 sorted"
"""Orders that test sets are cut from."""


class MissingData(Exception):
    """Data that an experiment needs are not on this machine; the message says what, and where to get it."""


@dataclass(frozen=True, eq=False)
class Problem:
    """One split of one data set, standardised by the mean and standard deviation of all its values.

    Attributes
    ----------
    graph : Graph
        Of the nodes predicted.
    whole_graph, is_input : Graph, ndarray of bool
        The graph that it is part of, and which of its nodes are inputs.
    inputs, signals : ndarray
        To learn from.
    tests : dict of str to (inputs, signals)
        To predict, in the orders that test sets are cut from.
    set_size : int
        Signals in a test set, which are predicted jointly.
    shift : float
        Nats to add to a test score per signal, to have it in the unit of the paper's table.
    n_grid : int
        Signals that the released program searches its grid on.
    """

    graph: Graph
    whole_graph: Graph
    is_input: np.ndarray[Any, np.dtype[np.bool_]]
    inputs: Any
    signals: Any
    tests: dict[str, tuple[Any, Any]]
    set_size: int
    shift: float = 0.0
    n_grid: int = 10


@lru_cache(maxsize=8)
def problem(data: str, n_training: int, seed: int, folder: Folder = None) -> Problem:
    """The split of a data set that a seed gives; seed 1 is the authors' released one.

    Raises
    ------
    MissingData
        If the data are not here and cannot be downloaded.
    """
    builders = {
        "weather": _weather,
        "traffic": _traffic,
        "traffic-text": _traffic_of_text,
        "fmri": _fmri,
        "fmri-released": _fmri_released,
        "uber": _uber,
    }
    try:
        return builders[data](n_training, seed, folder)
    except FileNotFoundError as error:
        raise MissingData(str(error)) from error


def paper_graph(name: str, folder: Folder = None) -> tuple[Graph, Any]:
    """A graph of the paper that data come with, whole, and which of its nodes are inputs.

    Raises
    ------
    MissingData
        If its file is not here and cannot be downloaded.
    """
    try:
        if name == "weather":
            graph = load_weather(folder).graph
            return graph, np.zeros(graph.n_nodes, dtype=bool)
        if name in ("traffic", "traffic-text"):
            traffic = load_traffic(folder)
            graph = traffic.graph if name == "traffic" else traffic.text_graph
            return graph, np.arange(graph.n_nodes) < traffic.n_inputs
        if name == "uber":
            graph = load_uber(folder).graph
            return graph, ~np.isin(np.arange(graph.n_nodes), _uber_outputs(np.random.RandomState(UBER_SEED)))
        voxels = load_cerebellum(folder, signals=False).graph
    except FileNotFoundError as error:
        raise MissingData(str(error)) from error
    if name == "fmri":
        return voxels.subgraph(range(FMRI_NODES)), np.arange(FMRI_NODES) < FMRI_INPUTS
    graph, _ = _sampled_voxels(voxels)
    return graph, np.zeros(graph.n_nodes, dtype=bool)


def _permutation(length: int, seed: int) -> Any:
    # the released split is this generator's: the newer ones would give another
    return np.random.RandomState(seed).permutation(length)


def _standardised(values: Any) -> tuple[Any, float]:
    spread = float(np.std(values))
    return (values - np.mean(values)) / spread, spread


def _weather(n_training: int, seed: int, folder: Folder) -> Problem:
    """Each day from the day before; 60 days in sets of 6, cut from three orders."""
    data = load_weather(folder)
    temperatures, _ = _standardised(data.temperatures)
    days = _permutation(95, seed)
    days = days[days != 94]  # the last day has no next
    orders = {AS_RELEASED: days[30:90], SORTED: np.sort(days[30:90]), FIRST_SORTED: np.sort(days[30:])[:60]}
    return Problem(
        data.graph,
        data.graph,
        np.zeros(data.graph.n_nodes, dtype=bool),
        temperatures[days[:n_training]],
        temperatures[days[:n_training] + 1],
        {name: (temperatures[order], temperatures[order + 1]) for name, order in orders.items()},
        set_size=6,
        n_grid=15,
    )


def _traffic(n_training: int, seed: int, folder: Folder) -> Problem:
    """The last 60 bottlenecks from the first 15, on the released graph; scores in minutes."""
    return _traffic_on(load_traffic(folder).graph, n_training, seed, folder)


def _traffic_of_text(n_training: int, seed: int, folder: Folder) -> Problem:
    """Problem on the graph that the paper's text describes."""
    return _traffic_on(load_traffic(folder).text_graph, n_training, seed, folder)


def _traffic_on(graph: Graph, n_training: int, seed: int, folder: Folder) -> Problem:
    data = load_traffic(folder)
    delays, spread = _standardised(data.delays)
    days = _permutation(len(delays), seed)
    train, test = days[:n_training], days[20:120]
    split = data.n_inputs
    outputs = graph.subgraph(range(split, graph.n_nodes))
    return Problem(
        outputs,
        graph,
        np.arange(graph.n_nodes) < split,
        delays[train, :split],
        delays[train, split:],
        {AS_RELEASED: (delays[test, :split], delays[test, split:])},
        set_size=10,
        shift=-outputs.n_nodes * float(np.log(spread)),
    )


def _fmri_signals(folder: Folder) -> tuple[Graph, Any]:
    data = load_cerebellum(folder)
    signals, _ = _standardised(data.signals)
    return data.graph, signals


def _fmri(n_training: int, seed: int, folder: Folder) -> Problem:
    """The text: voxels 11 to 50 from the first 10; the first signals are learnt from, and the last 250 predicted."""
    voxels, signals = _fmri_signals(folder)
    whole = voxels.subgraph(range(FMRI_NODES))
    inputs, outputs = signals[:, :FMRI_INPUTS], signals[:, FMRI_INPUTS:FMRI_NODES]
    return _fmri_problem(
        whole.subgraph(range(FMRI_INPUTS, FMRI_NODES)),
        whole,
        np.arange(FMRI_NODES) < FMRI_INPUTS,
        inputs,
        outputs,
        n_training,
    )


def _fmri_released(n_training: int, seed: int, folder: Folder) -> Problem:
    """The released program: the largest component of 500 voxels drawn with replacement, from the first 10 voxels."""
    voxels, signals = _fmri_signals(folder)
    graph, nodes = _sampled_voxels(voxels)
    outputs = signals[:, nodes]
    return _fmri_problem(
        graph, graph, np.zeros(graph.n_nodes, dtype=bool), signals[:, :FMRI_INPUTS], outputs, n_training
    )


def _sampled_voxels(voxels: Graph) -> tuple[Graph, Any]:
    """The released program's graph, in which a voxel that is drawn twice stands twice, and its voxels."""
    nodes = np.random.RandomState(FMRI_SEED).randint(0, voxels.n_nodes, FMRI_SAMPLED)
    weights = voxels.weights[nodes][:, nodes]
    _, labels = connected_components(weights, directed=False)
    nodes = nodes[labels == np.argmax(np.bincount(labels))]
    return Graph(voxels.weights[nodes][:, nodes]), nodes


def _fmri_problem(graph: Graph, whole: Graph, is_input: Any, inputs: Any, outputs: Any, n_training: int) -> Problem:
    last = slice(FMRI_TRAINING, FMRI_TRAINING + 250)
    return Problem(
        graph,
        whole,
        is_input,
        inputs[:n_training],
        outputs[:n_training],
        {AS_RELEASED: (inputs[last], outputs[last])},
        set_size=25,
        n_grid=21,
    )


def _uber(n_training: int, seed: int, folder: Folder) -> Problem:
    """The released program: 20 nodes, drawn, from the other 9, at 20 hours drawn with replacement; 20 sets of 10."""
    data = load_uber(folder)
    signals, _ = _standardised(data.signals)
    random = np.random.RandomState(UBER_SEED)
    outputs = _uber_outputs(random)
    hours = random.randint(0, UBER_HOURS, UBER_TRAINING)
    is_input = ~np.isin(np.arange(UBER_NODES), outputs)
    train, test = hours[:n_training], np.setdiff1d(np.arange(UBER_HOURS), hours)[:200]
    return Problem(
        data.graph.subgraph(outputs),
        data.graph,
        is_input,
        signals[train][:, is_input],
        signals[train][:, outputs],
        {AS_RELEASED: (signals[test][:, is_input], signals[test][:, outputs])},
        set_size=10,
    )


def _uber_outputs(random: np.random.RandomState) -> Any:
    return random.choice(UBER_NODES, UBER_OUTPUTS, replace=False)
