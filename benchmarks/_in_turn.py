"""Partitions computed in one process, their tasks in turn: for a machine with a GPU and without Dask."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from spectralgp import Graph, PartitionedGraph
from spectralgp._basics.arrays import on_host
from spectralgp.graphs.operators import (
    MomentPass,
    largest_eigenvalue,
    random_normal,
    random_signs,
    tighten,
)
from spectralgp.graphs.partitioned.operator import PartitionedOperator

N_NODES, N_PARTITIONS, N_HOPS, N_COLUMNS = 20_000, 5, 4, 6


class _Here:
    """Stand-in for a client with two workers, so that messages are cut to the blocks that each needs."""

    dashboard_link, status = "no dashboard", "running"

    def ncores(self) -> dict[str, int]:
        return {"one": 1, "two": 1}


class InTurn(PartitionedOperator):
    """An operator that runs its tasks one by one, on request."""

    @property
    def client(self) -> Any:
        return _Here()

    def submit(self, function: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
        return function(*arguments)

    def gather(self, futures: list[Any]) -> list[Any]:
        return list(futures)

    def settle(self, futures: list[Any]) -> None:
        """They are done."""


def partitions(device: str) -> dict[str, dict[str, float]]:
    """Largest differences of a device's partitions from the whole graph on the CPU, as shares of the largest value."""
    rng = np.random.default_rng(0)
    graph = Graph.from_points(rng.random((N_NODES, 2)), n_neighbors=8)
    signals = rng.standard_normal((N_COLUMNS, N_NODES))
    with tempfile.TemporaryDirectory() as folder:
        parted = PartitionedGraph.from_graph(graph, N_PARTITIONS, f"{folder}/graph", n_hops=N_HOPS)
        return {dtype: _differences(graph, parted, signals.astype(dtype), device) for dtype in ("float64", "float32")}


def _differences(graph: Graph, parted: PartitionedGraph, signals: Any, device: str) -> dict[str, float]:
    rng, order = np.random.default_rng(1), parted.order
    mixing, shares = rng.standard_normal((12, N_COLUMNS, 2)), rng.standard_normal((2, 13))
    whole, parts = graph.operator("normalized", signals), InTurn(parted, "normalized", signals.dtype, device)
    largest = largest_eigenvalue(whole)
    compared = {"largest eigenvalue": (largest_eigenvalue(parts)[0], largest[0])}
    for operator in (whole, parts):
        tighten(operator, *largest)

    def both(action: Callable[[Any], Any]) -> tuple[Any, Any]:
        own = [on_host(part) for part in action(parts).parts]
        return np.concatenate(own).T, whole.unload(action(whole))[:, order]

    compared["moments"] = (_moments(parts, parts.load(signals)), _moments(whole, whole.load(signals)))
    compared["filter"] = both(lambda operator: operator.filtered(operator.load(signals), mixing))
    compared["random numbers"] = both(lambda operator: random_normal(operator, 3, np.random.default_rng(2)))
    compared["probes"] = both(
        lambda operator: operator.probed(random_signs(operator, 8, np.random.default_rng(3)), shares)
    )
    return {name: float(np.max(np.abs(one - other)) / np.max(np.abs(other))) for name, (one, other) in compared.items()}


def _moments(operator: Any, block: Any) -> Any:
    found = MomentPass(operator, block, gram=True)
    found.extend(41)
    return found.moments
