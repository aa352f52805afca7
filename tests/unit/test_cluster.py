"""What is asked of a Dask cluster: who has which partition, what is sent and waited for, what its failures mean."""

import pickle
from concurrent.futures import CancelledError
from types import SimpleNamespace

import dask
import dask.array as da
import distributed
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import relative_error
from spectralgp import Graph, PartitionedGraph
from spectralgp.graphs.operators import MomentPass, largest_eigenvalue, low_diagonals, random_signs, tighten
from spectralgp.graphs.partitioned import local
from spectralgp.graphs.partitioned import operator as operators
from spectralgp.graphs.partitioned.operator import (
    PartitionedOperator,
    current_client,
    explained_failures,
    placed_evenly,
    workers_of,
)
from tolerances import EXACT


@pytest.mark.parametrize(
    ("homes", "workers", "expected"),
    [
        ([""] * 8, "ab", "aaaabbbb"),  # partitions that follow each other go to one worker
        ([""] * 3, "ab", "abb"),
        ([""] * 2, "abc", "bc"),
        ("aabbcc", "ac", "aaaccc"),  # only those of a lost worker move
        ("aaaa", "ab", "aabb"),
        ("bbbb", "ab", "bbaa"),
        (["", "a"], "", ["", ""]),
    ],
)
def test_partitions_are_placed_evenly(homes, workers, expected):
    assert placed_evenly(list(homes), list(workers)) == list(expected)


NAMES = st.sampled_from("abcdef")
MANAGER = "active-memory-manager.start"


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


class Client:
    """What is asked of a client whose scheduler may not answer."""

    dashboard_link = "no dashboard"

    def __init__(self, status, answer):
        self.status, self._answer = status, answer
        self.scheduler = SimpleNamespace(address="tcp://here:8786")

    def ncores(self):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def compute(self, tasks):
        return list(dask.compute(*tasks, scheduler="synchronous"))


@pytest.mark.parametrize(
    ("status", "answer"),
    [("running", OSError("Timed out trying to connect")), ("running", CancelledError()), ("connecting", {"a": 1})],
)
def test_a_scheduler_that_does_not_answer_is_told(status, answer):
    """Asking it may take a minute to fail, so that a client that knows is not made to ask."""
    assert workers_of(Client("running", {"b": 1, "a": 2})) == ["a", "b"]
    client = Client(status, answer)
    with pytest.raises(RuntimeError, match="the Dask scheduler at tcp://here:8786 must stay there"):
        workers_of(client)
    client.scheduler = None
    with pytest.raises(RuntimeError, match="the Dask scheduler at an unknown address must stay there"):
        workers_of(client)


@pytest.mark.parametrize(("cores", "words"), [({3}, "1 worker was started"), ({0, 2, 5}, "3 workers was started")])
def test_without_a_client_a_local_one_is_made_which_moves_nothing(monkeypatch, cores, words):
    def made(**options):
        settings = [dask.config.get(f"distributed.scheduler.{name}") for name in ("work-stealing", MANAGER)]
        assert settings == [False, False]
        return SimpleNamespace(dashboard_link="http://here", **options)

    monkeypatch.setattr(distributed, "Client", made)
    monkeypatch.setattr(operators.os, "sched_getaffinity", {0: cores}.__getitem__)  # of this process
    with pytest.warns(UserWarning, match=rf"No Dask client was there, so a local one with {words} \(http://here\)"):
        client = current_client()
    assert (client.n_workers, client.threads_per_worker) == (len(cores), 1)
    assert dask.config.get("distributed.scheduler.work-stealing")  # as it was


def killed(**worker):
    return distributed.KilledWorker("task", SimpleNamespace(**worker) if worker else None, 3)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (killed(address="tcp://w", memory_limit=25e8), MemoryError, r"got tcp://w \(memory limit 2.5 GB\) killed"),
        (killed(address="tcp://w", memory_limit=0), MemoryError, "got tcp://w killed while it computed. Cut the graph"),
        (killed(), MemoryError, "got a worker killed while it computed. Cut the graph"),
        (MemoryError("no gigabyte."), MemoryError, "workers must have memory .*; got less: no gigabyte. Cut the graph"),
        (distributed.comm.CommClosedError("gone"), RuntimeError, r"scheduler at tcp://here:8786 .*\(CommClosedError\)"),
        (CancelledError(), RuntimeError, r"must stay there until the work is done; .*\(CancelledError\)"),
        (ZeroDivisionError("own"), ZeroDivisionError, "^own$"),
    ],
)
def test_failures_of_a_cluster_are_told_in_plain_words(error, kind, message):
    with pytest.raises(kind, match=message), explained_failures(Client("running", {})):
        raise error


# -------------------------------------------------------------------------------------------- what is sent to workers

N_NODES, N_HOPS = 24, 2
RING = Graph.from_edges([(node, (node + 1) % N_NODES, 1.0 + node) for node in range(N_NODES)])


class InTurn(PartitionedOperator):
    """An operator whose tasks are run as they are asked for, and noted with their options."""

    workers, asked = ("a", "b"), []

    @property
    def client(self):
        return Client("running", dict.fromkeys(self.workers, 1))

    def submit(self, function, *arguments, **options):
        self.asked.append((getattr(function, "func", function).__name__, options))
        return function(*arguments)

    def gather(self, futures):
        return list(futures)

    def settle(self, futures):
        pass


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    """Four pieces of a ring, each of which has two neighbours."""
    folder = tmp_path_factory.mktemp("ring") / "parts"
    return PartitionedGraph.from_graph(RING, 4, folder, partitioner="contiguous", n_hops=N_HOPS)


@pytest.fixture
def operator(ring):
    made = InTurn(ring, "combinatorial", "float32")
    made.asked.clear()
    return made


def pinned(*workers):
    return [{"workers": [worker], "allow_other_workers": True} for worker in workers]


def test_tasks_run_on_the_worker_of_their_partition_and_elsewhere_only_without_it(operator):
    operator.zeros(3)
    assert operator.asked == [("zeros", options) for options in pinned("a", "a", "b", "b")]
    operator.asked.clear()
    operator.workers = ("b",)
    random_signs(operator, 3, np.random.default_rng(0))
    assert operator.asked == [("random", options) for options in pinned("b", "b", "b", "b")]
    operator.asked.clear()
    operator.workers = ()
    operator.zeros(3)
    assert operator.asked == [("zeros", {})] * 4


def test_a_partition_sends_all_to_its_own_worker_and_to_others_what_they_need(operator):
    block = operator.load(np.random.default_rng(0).standard_normal((3, N_NODES)))
    operator.asked.clear()
    first, *_, last = operator.exchange(block.parts, 1)
    # each has a neighbour on its own worker and one on the other
    assert operator.asked == [("message_of", options) for options in pinned(*"aaaabbbb")]
    # of both ends of the first partition the last one has the lower in its halo, and the other way round
    whole, part = first[0], first[1]
    assert (whole.rows, part.values.shape) == (None, (1, 1, 3))
    np.testing.assert_array_equal(whole.values[0], block.parts[1][[0, 5]])
    np.testing.assert_array_equal(part.values[0], block.parts[3][[5]])
    np.testing.assert_array_equal(last[0].values[0], block.parts[0][[0]])
    np.testing.assert_array_equal(last[0].rows, [0])


def test_the_address_of_a_worker_stays_where_it_is_known(operator):
    assert operator.placed() == ["a", "a", "b", "b"]
    made = object.__new__(InTurn)
    made.__dict__ |= pickle.loads(pickle.dumps(operator.__getstate__()))
    made.workers = ("c",)
    assert made.placed() == ["c"] * 4


def test_numbers_keep_the_precision_of_a_block(operator):
    block = operator.load(np.random.default_rng(0).standard_normal((2, N_NODES)))
    for found in (block * np.float64(2), np.float64(3) - block, block + np.ones(2, dtype=np.float32), block**2):
        assert found.n_columns == 2
        assert {part.dtype for part in found.parts} == {np.dtype(np.float32)}
    with pytest.raises(TypeError):
        np.add.reduce(block)


@pytest.mark.parametrize(("n_bytes", "widths"), [(3 * 4 * N_NODES + 1, [24]), (100, [8, 8, 8]), (10, [6, 6, 6, 6])])
def test_answers_have_no_larger_chunks_than_needed_and_no_more_than_partitions(operator, monkeypatch, n_bytes, widths):
    """288 bytes in all."""
    monkeypatch.setattr(operators, "BYTES_PER_CHUNK", n_bytes)
    signals = np.random.default_rng(0).standard_normal((3, N_NODES)).astype(np.float32)
    found = operator.unload(operator.load(signals))
    assert found.chunks == ((3,), tuple(widths))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.compute(scheduler="synchronous"), signals)


class Lazily:
    """An array in a file, as h5py has them, of which slices can be asked."""

    def __init__(self, array):
        self._array, self.shape = array, array.shape

    def __getitem__(self, places):
        return self._array[places]


def test_arrays_of_other_libraries_are_read_by_slices(operator):
    signals = np.random.default_rng(0).standard_normal((3, N_NODES)).astype(np.float32)
    for array in (Lazily(signals), np.asfortranarray(signals)):
        np.testing.assert_array_equal(np.concatenate(operator.load(array).parts), signals.T)


@pytest.mark.parametrize("order", ["C", "F"])
def test_files_that_are_mapped_are_read_by_those_who_need_them(operator, tmp_path, order):
    """From where an array begins in its file; what is a part of a map is read here."""
    signals = np.random.default_rng(0).standard_normal((3, N_NODES)).astype(np.float32)
    mapped = np.memmap(tmp_path / "signals", signals.dtype, "w+", 20, signals.shape, order)
    mapped[:] = signals
    mapped.flush()
    operator.asked.clear()
    found = operator.load(np.memmap(tmp_path / "signals", signals.dtype, "r", 20, signals.shape, order))
    assert [name for name, _ in operator.asked] == ["read_map"] * 4
    np.testing.assert_array_equal(np.concatenate(found.parts), signals.T)
    np.testing.assert_array_equal(np.concatenate(operator.load(mapped[1:]).parts), signals[1:].T)
    assert operator.asked[-1][0] == "as_block"


@pytest.mark.parametrize(
    ("kind", "is_compiled"), [("combinatorial", False), ("normalized", True), ("balanced", True), ("balanced", False)]
)
def test_partitions_in_turn_do_what_the_whole_graph_does(ring, monkeypatch, kind, is_compiled):
    """Every recurrence, by loops and by SciPy: of one step, of as many as a halo has rings, and of more."""
    monkeypatch.setattr(local.LocalLaplacian, "_is_compiled", is_compiled)
    rng, whole = np.random.default_rng(0), RING.operator(kind, np.empty(0))
    parts, signals = InTurn(ring, kind, "float64"), rng.standard_normal((3, N_NODES))
    assert parts.gershgorin == pytest.approx(whole.gershgorin)
    largest = largest_eigenvalue(whole)
    assert largest_eigenvalue(parts)[0] == pytest.approx(largest[0], rel=1e-9)
    for operator in (whole, parts):
        tighten(operator, *largest)

    def both(action):
        found, expected = np.concatenate(action(parts).parts).T, whole.unload(action(whole))
        assert relative_error(found, expected) < EXACT

    for gram in (True, False):
        for n_moments in (3, 2 * N_HOPS + 1, 4 * N_HOPS + 3):
            found, expected = (MomentPass(one, one.load(signals), gram) for one in (parts, whole))
            for one in (found, expected):
                one.extend(n_moments)
            assert relative_error(found.moments, expected.moments) < EXACT
    for n_terms in (1, 2, 3, 5, 6):
        mixing, shares = rng.standard_normal((n_terms, 3, 2)), rng.standard_normal((2, n_terms))
        both(lambda operator, mixing=mixing: operator.filtered(operator.load(signals), mixing))
        both(lambda operator, factors=mixing[:, :, 0]: operator.filtered(operator.load(signals), factors))
        both(lambda operator, shares=shares: operator.probed(operator.load(signals), shares))
    both(lambda operator: operator.step(operator.load(signals), operator.load(2 * signals)))
    both(lambda operator: operator.unit_vectors(np.arange(N_NODES)[::-1]))
    both(lambda operator: operator.rows())
    both(low_diagonals)


# --------------------------------------------------------------------------------------------------- what is waited for


class Waiting(InTurn):
    settle = PartitionedOperator.settle


class Future:
    def __init__(self, status, error=None):
        self.status, self._error = status, error

    def result(self):
        raise self._error


@pytest.fixture
def waits(monkeypatch):
    """Limits of time of what was waited for; the first wait ends without a result."""
    found = []

    def wait(futures, timeout):
        found.append(timeout)
        if len(found) == 1:
            raise distributed.TimeoutError

    monkeypatch.setattr(distributed, "wait", wait)
    return found


def test_tasks_are_waited_for_as_long_as_one_of_their_workers_lives(ring, waits):
    operator = Waiting(ring, "combinatorial", "float64")
    operator.workers = ("b", "c")
    operator.settle([Future("finished")])
    assert waits == [10.0, 10.0]
    with pytest.raises(ZeroDivisionError, match="in a task"):
        operator.settle([Future("finished"), Future("error", ZeroDivisionError("in a task"))])


def test_workers_that_were_all_lost_are_not_waited_for(ring, waits):
    operator = Waiting(ring, "combinatorial", "float64")
    operator.workers = ("c",)
    with pytest.raises(RuntimeError, match="some worker must live as long as a pass; got all 2 lost since it began"):
        operator.settle([Future("pending")])
    waits.clear()
    operator.workers = ()  # they may come back
    operator.settle([Future("finished")])
    assert len(waits) == 2


def test_dask_arrays_in_the_order_of_the_partitions_are_not_shuffled(ring):
    """Chunks are those of the partitions, in and out."""
    operator = InTurn(ring.in_partition_order(), "combinatorial", "float64")
    signals = np.random.default_rng(0).standard_normal((2, N_NODES))
    found = operator.unload(operator.load(signals))
    assert isinstance(found, da.Array)
    assert found.chunks == ((2,), (6, 6, 6, 6))
    np.testing.assert_array_equal(found.compute(scheduler="synchronous"), signals)


# ------------------------------------------ partitions that a worker keeps open where its memory does not hold all


@pytest.fixture
def keys(tmp_path):
    """Keys of four partitions of one size, for a kind of Laplacian."""
    points = np.random.default_rng(0).random((400, 2))
    graph = PartitionedGraph.from_graph(Graph.from_points(points, n_neighbors=4), 4, tmp_path, n_hops=1)
    place = str(graph.folder), graph.content_hash
    return lambda kind: [local.TaskKey(*place, number, kind, "float64") for number in range(4)]


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
