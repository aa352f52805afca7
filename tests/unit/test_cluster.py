"""Which worker has which partition, as workers come and go."""

from __future__ import annotations

from concurrent.futures import CancelledError
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectralgp.partitioned.operator import placed_evenly, workers_of


def test_partitions_that_follow_each_other_go_to_one_worker():
    assert placed_evenly([""] * 8, ["a", "b"]) == ["a"] * 4 + ["b"] * 4
    assert placed_evenly([""] * 3, ["a", "b"]) == ["a", "b", "b"]
    assert placed_evenly([""] * 2, ["a", "b", "c"]) == ["b", "c"]


def test_only_the_partitions_of_a_lost_worker_move():
    assert placed_evenly(["a", "a", "b", "b", "c", "c"], ["a", "c"]) == ["a", "a", "a", "c", "c", "c"]


def test_a_new_worker_takes_what_is_more_than_a_share_of_the_others():
    assert placed_evenly(["a"] * 4, ["a", "b"]) == ["a", "a", "b", "b"]
    assert placed_evenly(["b"] * 4, ["a", "b"]) == ["b", "b", "a", "a"]


NAMES = st.sampled_from("abcdef")


@given(st.lists(NAMES, min_size=1, max_size=20), st.sets(NAMES, min_size=1))
def test_shares_are_even_and_stable(homes, workers):
    found = placed_evenly(homes, sorted(workers))
    counts = [found.count(worker) for worker in workers]
    assert sum(counts) == len(homes)
    assert max(counts) - min(counts) <= 1
    assert placed_evenly(found, sorted(workers)) == found
    moved = sum(one != other for one, other in zip(homes, found, strict=True))
    least = sum(max(0, homes.count(worker) - found.count(worker)) for worker in set(homes))
    assert moved == least


def test_without_workers_partitions_are_nowhere():
    assert placed_evenly(["", "a"], []) == ["", ""]


class Client:
    """What is asked of a client whose scheduler may not answer."""

    def __init__(self, status, answer):
        self.status, self._answer = status, answer
        self.scheduler = SimpleNamespace(address="tcp://here:8786")

    def ncores(self):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def test_workers_come_in_the_order_of_their_addresses():
    assert workers_of(Client("running", {"b": 1, "a": 2})) == ["a", "b"]


@pytest.mark.parametrize(
    ("status", "answer"),
    [("running", OSError("Timed out trying to connect")), ("running", CancelledError()), ("connecting", {"a": 1})],
)
def test_a_scheduler_that_does_not_answer_is_told(status, answer):
    """Asking it may take a minute to fail, so that a client that knows is not made to ask."""
    with pytest.raises(RuntimeError, match="the Dask scheduler at tcp://here:8786 must stay there"):
        workers_of(Client(status, answer))
