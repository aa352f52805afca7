"""Which partitions a worker keeps open where its memory does not hold all of them."""

from __future__ import annotations

import numpy as np
import pytest

from spectralgp import Graph, PartitionedGraph
from spectralgp.partitioned import local

N_PARTITIONS = 4


@pytest.fixture
def keys(tmp_path):
    """Keys of four partitions of one size, for a kind of Laplacian."""
    points = np.random.default_rng(0).random((400, 2))
    graph = PartitionedGraph.from_graph(Graph.from_points(points, n_neighbors=4), N_PARTITIONS, tmp_path, n_hops=1)
    numbers = range(N_PARTITIONS)
    return lambda kind: [
        local.TaskKey(str(graph.folder), graph.content_hash, number, kind, "float64") for number in numbers
    ]


@pytest.fixture
def opened(monkeypatch, keys):
    """Keys that were read from the folder, with room for two and a half of four."""
    largest = max(local._opened(key).n_bytes for key in keys("combinatorial"))
    plain, found = local._opened, []
    monkeypatch.setattr(local, "_cache", {})
    monkeypatch.setattr(local, "_memory_limit", lambda: 2.5 * largest)
    monkeypatch.setattr(local, "_opened", lambda key: (found.append(key), plain(key))[1])
    return found


def test_partitions_taken_in_turn_are_not_all_read_again_in_every_round(keys, opened):
    """Were the last used ones kept, each would be gone when its turn comes."""
    turn = keys("combinatorial")
    for _ in range(3):
        for key in turn:
            local.laplacian(key)
    assert opened == [*turn, *turn[2:], *turn[2:]]


def test_those_of_another_laplacian_make_room(keys, opened):
    for key in keys("combinatorial"):
        local.laplacian(key)
    turn = keys("normalized")
    opened.clear()
    for _ in range(2):
        for key in turn:
            local.laplacian(key)
    assert opened == [*turn, *turn[2:]]
