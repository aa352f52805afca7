"""Which partitions a worker keeps open where its memory does not hold all of them."""

from __future__ import annotations

import numpy as np
import pytest

from spectralgp import Graph, PartitionedGraph
from spectralgp.partitioned import local

N_PARTITIONS = 4


@pytest.fixture
def places(tmp_path):
    """Places of four partitions of one size, for a kind of Laplacian."""
    points = np.random.default_rng(0).random((400, 2))
    graph = PartitionedGraph.from_graph(Graph.from_points(points, n_neighbors=4), N_PARTITIONS, tmp_path, n_hops=1)
    numbers = range(N_PARTITIONS)
    return lambda kind: [local.Place(str(graph.folder), graph.mark, number, kind, "float64") for number in numbers]


@pytest.fixture
def opened(monkeypatch, places):
    """Places that were read from the folder, with room for two and a half of four."""
    largest = max(local._opened(place).n_bytes for place in places("combinatorial"))
    plain, found = local._opened, []
    monkeypatch.setattr(local, "_kept", local._Kept())
    monkeypatch.setattr(local, "_limit", lambda: 2.5 * largest)
    monkeypatch.setattr(local, "_opened", lambda place: (found.append(place), plain(place))[1])
    return found


def test_partitions_taken_in_turn_are_not_all_read_again_in_every_round(places, opened):
    """Were the last used ones kept, each would be gone when its turn comes."""
    turn = places("combinatorial")
    for _ in range(3):
        for place in turn:
            local.laplacian(place)
    assert opened == [*turn, *turn[2:], *turn[2:]]


def test_those_of_another_laplacian_make_room(places, opened):
    for place in places("combinatorial"):
        local.laplacian(place)
    turn = places("normalized")
    opened.clear()
    for _ in range(2):
        for place in turn:
            local.laplacian(place)
    assert opened == [*turn, *turn[2:]]
