"""Which partitions a worker keeps open where its memory does not hold all of them."""

from types import SimpleNamespace

import numpy as np
import pytest

from spectralgp import Graph, PartitionedGraph
from spectralgp.graphs.partitioned import local

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


def read(keys, known):
    """Numbers of those that are read from the folder when taken in turn, with room for two and a half of four."""
    largest = max(local.laplacian(key, limit=0).n_bytes for key in keys)
    found = {key: local.laplacian(key, limit=2.5 * largest) for key in keys}
    new = [key.number for key in keys if found[key] is not known.get(key)]
    known |= found
    return new


def test_partitions_taken_in_turn_are_not_all_read_again_in_every_round(keys):
    """Were the last used ones kept, each would be gone when its turn comes; those of other Laplacians make room."""
    known = {}
    for kind in ("combinatorial", "normalized"):
        assert [read(keys(kind), known) for _ in range(3)] == [[0, 1, 2, 3], [2, 3], [2, 3]]


@pytest.mark.parametrize(("limit", "expected"), [(1000, 200.0), (None, np.inf), (0, np.inf)])
def test_a_fifth_of_the_memory_of_a_worker_is_for_open_partitions(monkeypatch, limit, expected):
    assert local.cache_limit() == np.inf  # in no worker
    worker = SimpleNamespace(memory_manager=SimpleNamespace(memory_limit=limit))
    monkeypatch.setattr("distributed.get_worker", lambda: worker)
    assert local.cache_limit() == expected


def test_states_and_messages_say_how_large_they_are(keys):
    """Dask decides by it what to move and what to write to the disk."""
    message = local.Message(np.zeros((2, 3, 5)))
    assert message.__sizeof__() == 8 * 30
    assert local.Message(message.values, np.arange(3, dtype=np.int32)).__sizeof__() == 8 * 30 + 12
    state = local.RecurrenceState([np.zeros((7, 5)), np.zeros((7, 5))], {"columns": np.zeros(11)}, [1.0], message)
    assert state.__sizeof__() == 8 * (70 + 11 + 30)
    opened = local.laplacian(keys("combinatorial")[0])
    assert opened.n_bytes == sum(one.nbytes for one in opened.matrix) + 8 * opened.n_own


def test_the_state_of_a_recurrence_has_one_taker():
    blocks, carried = [np.arange(3.0), np.ones(3)], {"columns": np.ones(2)}
    state = local.RecurrenceState(list(blocks), carried, ["found"], local.Message(np.ones(1)))
    taken = state.take_over()
    assert all(one is other for one, other in zip(taken.blocks, blocks, strict=True))
    assert (taken.carried, taken.results, state.blocks) == (carried, [], [])
    with pytest.raises(RuntimeError, match="taken over twice; run the whole pass again"):
        state.take_over()
