"""The paper's prediction tasks: which signals are learnt from, which are predicted, and in which unit."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectralgp import Graph
from spectralgp.datasets import load_cerebellum, load_traffic, load_weather

Folder = str | os.PathLike[str] | None

FMRI_NODES, FMRI_INPUTS, FMRI_TRAINING = 50, 10, 42
FMRI_SOURCE = (
    "signal_set_cerebellum.mat (variable F2, 4465 x 292) was not published with the paper. The signals are those of "
    "Venkitaraman, Chatterjee and Handel (2018), on the graph of Behjat et al. (2016): ask the authors, put the file "
    "beside the others into the folder named by SPECTRALGP_DATA, and run this again"
)


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
        Nats to add to a test score a signal, to have it in the unit of the paper's table.
    """

    graph: Graph
    whole_graph: Graph
    is_input: np.ndarray[Any, np.dtype[np.bool_]]
    inputs: Any
    signals: Any
    tests: dict[str, tuple[Any, Any]]
    set_size: int
    shift: float = 0.0


def problem(data: str, n_training: int, seed: int, folder: Folder = None) -> Problem:
    """The split of a data set that a seed gives; seed 1 is the authors' released one.

    Raises
    ------
    MissingData
        If the data are not here and cannot be downloaded.
    """
    builders = {"weather": _weather, "traffic": _traffic, "fmri": _fmri}
    try:
        return builders[data](n_training, seed, folder)
    except FileNotFoundError as error:
        raise MissingData(f"file missing: {error}") from error


def _permutation(length: int, seed: int) -> Any:
    # the released split is this generator's: the newer ones would give another
    return np.random.RandomState(seed).permutation(length)


def _standardised(values: Any) -> tuple[Any, float]:
    spread = float(np.std(values))
    return (values - np.mean(values)) / spread, spread


def _weather(n_training: int, seed: int, folder: Folder) -> Problem:
    """Each day from the day before; the sets of 6 days as released, and in time order."""
    data = load_weather(folder)
    temperatures, _ = _standardised(data.temperatures)
    days = _permutation(95, seed)
    days = days[days != 94]  # the last day has no next
    orders = {"released": days[30:90], "time": np.sort(days[30:])[:60]}
    return Problem(
        data.graph,
        data.graph,
        np.zeros(data.graph.n_nodes, dtype=bool),
        temperatures[days[:n_training]],
        temperatures[days[:n_training] + 1],
        {name: (temperatures[order], temperatures[order + 1]) for name, order in orders.items()},
        set_size=6,
    )


def _traffic(n_training: int, seed: int, folder: Folder) -> Problem:
    """The last 60 bottlenecks from the first 15; scores in minutes."""
    data = load_traffic(folder)
    delays, spread = _standardised(data.delays)
    days = _permutation(len(delays), seed)
    train, test = days[:n_training], days[20:120]
    split = data.n_inputs
    return Problem(
        data.output_graph,
        data.graph,
        np.arange(data.graph.n_nodes) < split,
        delays[train, :split],
        delays[train, split:],
        {"released": (delays[test, :split], delays[test, split:])},
        set_size=10,
        shift=-data.output_graph.n_nodes * float(np.log(spread)),
    )


def _fmri(n_training: int, seed: int, folder: Folder) -> Problem:
    """Voxels 11 to 50 from the first 10; the first signals are learnt from, and the last 250 predicted."""
    data = load_cerebellum(folder)
    if data.signals is None:
        raise MissingData(f"file missing: {FMRI_SOURCE}")
    signals, _ = _standardised(data.signals)
    whole = data.graph.subgraph(range(FMRI_NODES))
    inputs, outputs = signals[:, :FMRI_INPUTS], signals[:, FMRI_INPUTS:FMRI_NODES]
    return Problem(
        whole.subgraph(range(FMRI_INPUTS, FMRI_NODES)),
        whole,
        np.arange(FMRI_NODES) < FMRI_INPUTS,
        inputs[:n_training],
        outputs[:n_training],
        {"released": (inputs[FMRI_TRAINING : FMRI_TRAINING + 250], outputs[FMRI_TRAINING : FMRI_TRAINING + 250])},
        set_size=25,
    )
