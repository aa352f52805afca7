"""The operator of a partitioned graph: every verb does what that of one machine does."""

import pickle
import sys

import dask.array as da
import numpy as np
import pytest
import zarr
from clusters import cluster

from oracle import relative_error
from spectralgp import Graph, PartitionedGraph
from spectralgp.graphs import operators
from tolerances import EXACT, SINGLE

N_NODES, N_COLUMNS = 700, 4
POINTS = np.random.default_rng(0).random((N_NODES, 2))
GRAPH = Graph.from_points(POINTS, n_neighbors=5)
SIGNALS = np.random.default_rng(1).standard_normal((N_COLUMNS, N_NODES))


@pytest.fixture(scope="module", autouse=True)
def client():
    with cluster(2, processes=False) as client:
        yield client


@pytest.fixture(scope="module")
def parted(tmp_path_factory):
    """The graph in three partitions, on two workers, with halos of three hops."""
    return PartitionedGraph.from_graph(GRAPH, 3, tmp_path_factory.mktemp("graph") / "parts", n_hops=3)


PAIRS = [("combinatorial", "float64"), ("normalized", "float32")]  # test_cluster.py has every kind in one process


@pytest.fixture(scope="module", params=PAIRS, ids="-".join)
def pair(request, parted):
    """Operators of one machine and of partitions, on the same interval; and how close they must be."""
    kind, dtype = request.param
    signals = SIGNALS.astype(dtype)
    whole, parts = GRAPH.operator(kind, signals), parted.operator(kind, signals)
    found = operators.largest_eigenvalue(whole)
    for operator in (whole, parts):
        operators.tighten(operator, *found)
    return whole, parts, SINGLE if dtype == "float32" else EXACT


def signals_of(operator, block):
    return np.asarray(operator.unload(block))


def test_bounds_traces_and_constants_are_the_same(pair):
    whole, parts, close = pair
    assert relative_error(parts.gershgorin, whole.gershgorin) < close
    assert relative_error(operators.traces(parts), operators.traces(whole)) < close
    assert operators.keeps_constants(parts) == operators.keeps_constants(whole)


def test_the_largest_eigenvalue_is_the_same(pair):
    whole, parts, close = pair
    (value, residual), (expected, _) = operators.largest_eigenvalue(parts), operators.largest_eigenvalue(whole)
    assert relative_error(value, expected) < max(close, 1e-12)
    assert residual < 1e-5


def test_workers_send_each_other_what_their_partitions_need_and_no_more(parted, client):
    """Signals, then both blocks of the recurrence, at every node that the other worker has in a halo."""
    workers = client.cluster.workers.values()
    operator = parted.operator("normalized", SIGNALS)
    homes, n_rows = operator.placed(), 0
    for home in set(homes):
        here = [number for number, one in enumerate(homes) if one == home]
        halos = [part.nodes[part.n_own :] for part in map(parted.partition, here)]
        n_rows += len(np.setdiff1d(np.concatenate(halos), np.concatenate([parted.own_nodes(one) for one in here])))
    for worker in workers:
        worker.transfer_outgoing_log.clear()
    operators.MomentPass(operator, operator.load(SIGNALS), gram=True).extend(25)
    sent = [entry["keys"] for worker in workers for entry in worker.transfer_outgoing_log]
    sizes = [size for keys in sent for key, size in keys.items() if key.startswith("message_of")]
    assert not any(key.startswith(("advance", "as_block")) for keys in sent for key in keys)
    n_blocks = 1 + 3 * 2  # before the first three steps of twelve, and between them
    needed = n_blocks * n_rows * N_COLUMNS * 8
    assert needed <= sum(sizes) <= 1.1 * needed  # with the places of the nodes


def test_blocks_are_loaded_and_unloaded_in_the_users_order(pair):
    _, parts, _ = pair
    unloaded = parts.unload(parts.load(SIGNALS))
    assert isinstance(unloaded, da.Array)
    np.testing.assert_array_equal(unloaded, SIGNALS.astype(parts.dtype))


@pytest.mark.parametrize("source", ["memory map", "transposed memory map", "dask", "chunks in both axes", "zarr"])
def test_signals_may_be_anywhere(pair, source, tmp_path):
    _, parts, _ = pair
    if source == "dask":
        signals = da.from_array(SIGNALS, chunks=(N_COLUMNS, 150))
    elif source == "chunks in both axes":
        signals = da.from_array(SIGNALS, chunks=(3, 97))
    elif source == "zarr":
        signals = zarr.create_array(tmp_path / "signals", shape=SIGNALS.shape, chunks=(N_COLUMNS, 100), dtype="f8")
        signals[:] = SIGNALS
    else:
        order = "F" if source.startswith("transposed") else "C"
        signals = np.memmap(tmp_path / "signals", dtype="f8", mode="w+", shape=SIGNALS.shape, order=order)
        signals[:] = SIGNALS
        signals.flush()
    np.testing.assert_array_equal(signals_of(parts, parts.load(signals)), SIGNALS.astype(parts.dtype))


def test_signals_may_come_in_the_order_of_the_partitions(parted, tmp_path):
    inside = parted.in_partition_order()
    operator, order = inside.operator("normalized", SIGNALS), inside.order
    assert sorted(order) == list(range(N_NODES))
    np.testing.assert_array_equal(inside.coordinates, POINTS[order])
    np.save(tmp_path / "signals.npy", SIGNALS[:, order])
    sources = [SIGNALS[:, order], da.from_array(SIGNALS[:, order], chunks=(3, 97))]
    for signals in (*sources, np.load(tmp_path / "signals.npy", mmap_mode="r")):
        np.testing.assert_array_equal(signals_of(operator, operator.load(signals)), SIGNALS[:, order])
    other = parted.operator("normalized", SIGNALS)
    for draw in (operators.random_signs, operators.random_normal):
        drawn = [signals_of(one, draw(one, 3, np.random.default_rng(0))) for one in (operator, other)]
        np.testing.assert_array_equal(drawn[0], drawn[1][:, order])
    chosen = np.array([3, 650])
    np.testing.assert_array_equal(signals_of(operator, operator.unit_vectors(chosen)), np.eye(N_NODES)[chosen])
    steps = [
        signals_of(one, one.step(one.load(values), one.zeros(N_COLUMNS)))
        for one, values in ((operator, SIGNALS[:, order]), (other, SIGNALS))
    ]
    np.testing.assert_array_equal(steps[0], steps[1][:, order])
    assert pickle.loads(pickle.dumps(inside)).is_in_partition_order


def test_random_numbers_belong_to_nodes(pair):
    whole, parts, _ = pair
    for draw in (operators.random_signs, operators.random_normal):
        states = [np.random.default_rng(3) for _ in range(2)]
        drawn = [
            signals_of(operator, draw(operator, 5, state))
            for operator, state in zip((whole, parts), states, strict=True)
        ]
        np.testing.assert_array_equal(drawn[1], drawn[0])
        assert states[0].integers(2**60) == states[1].integers(2**60)  # both have moved on alike


def test_unit_vectors_and_zeros(pair):
    _, parts, _ = pair
    chosen = np.array([17, 699, 0])
    np.testing.assert_array_equal(signals_of(parts, parts.unit_vectors(chosen)), np.eye(N_NODES)[chosen])
    assert not signals_of(parts, parts.zeros(2)).any()


def test_arithmetic_is_that_of_arrays(pair):
    whole, parts, close = pair
    matrix = np.random.default_rng(4).standard_normal((N_COLUMNS, 2))

    def everything(operator):
        left, right = operator.load(SIGNALS), operator.load(SIGNALS[::-1] * 2)
        one = operators.combine_columns(left, matrix[:, :1])
        return {
            "sum": left + right,
            "difference with a column": left - one,
            "product": (left * right) * 0.5 + 1.0,
            "reflected": 2 * left,
            "power": left**2,
            "combined": operators.combine_columns(left, matrix),
            "scaled": operators.combine_columns(left, np.arange(4.0)),
            "beside": operators.join_columns(left, one),
            "chosen": operators.take_columns(left, np.array([2, 0])),
            "rows": operators.row_products(left, right),
            "diagonals": operators.low_diagonals(operator),
            "entries": operator.rows(),
            "step": operator.step(left, right * 1),
        }

    for (name, expected), found in zip(everything(whole).items(), everything(parts).values(), strict=True):
        assert found.shape == expected.shape, name
        assert relative_error(signals_of(parts, found), whole.unload(expected)) < close, name


def test_products_are_sums_over_all_nodes(pair):
    whole, parts, close = pair
    for multiply in (operators.block_products, operators.column_products):
        found, expected = (multiply(one.load(SIGNALS), one.load(SIGNALS[::-1] + 1)) for one in (parts, whole))
        assert relative_error(found, expected) < close


@pytest.mark.parametrize("gram", [True, False])
def test_moments_are_those_of_one_machine_however_they_are_asked_for(pair, gram):
    """With halos of three hops: passes of one, two and three steps between exchanges, and parts of them."""
    whole, parts, close = pair
    expected = operators.MomentPass(whole, whole.load(SIGNALS), gram)
    expected.extend(27)
    for numbers in ([27], [5, 6, 9, 27]):
        found = operators.MomentPass(parts, parts.load(SIGNALS), gram)
        for number in numbers:
            found.extend(number)
        assert relative_error(found.moments, expected.moments) < close


@pytest.mark.parametrize("n_terms", [1, 2, 3, 5, 12])
def test_filters_are_those_of_one_machine(pair, n_terms):
    whole, parts, close = pair
    for shape in ((n_terms, N_COLUMNS, 3), (n_terms, N_COLUMNS)):
        coefficients = np.random.default_rng(5).standard_normal(shape)
        found, expected = (signals_of(one, one.filtered(one.load(SIGNALS), coefficients)) for one in (parts, whole))
        assert relative_error(found, expected) < close


@pytest.mark.parametrize("n_terms", [1, 2, 3, 5, 12])
def test_probes_are_those_of_one_machine(pair, n_terms):
    whole, parts, close = pair
    coefficients = np.random.default_rng(6).standard_normal((2, n_terms))
    found, expected = (
        signals_of(one, one.probed(operators.random_signs(one, 6, np.random.default_rng(7)), coefficients))
        for one in (parts, whole)
    )
    assert relative_error(found, expected) < close


def test_a_block_that_was_taken_over_cannot_be_used_again(pair):
    _, parts, _ = pair
    block = parts.load(SIGNALS)
    parts.recurrence(block, gram=True)
    with pytest.raises(RuntimeError, match="after a recurrence had taken it over"):
        parts.unload(block)


@pytest.mark.parametrize(("n_partitions", "partitioner"), [(1, "hilbert"), (9, "hilbert"), (6, "metis"), (2, "rcm")])
def test_the_answer_does_not_depend_on_the_partitioning(tmp_path, n_partitions, partitioner):
    expected = GRAPH.operator("normalized", SIGNALS)
    parted = PartitionedGraph.from_graph(GRAPH, n_partitions, tmp_path / "parts", partitioner=partitioner, n_hops=2)
    found = parted.operator("normalized", SIGNALS)
    coefficients = np.random.default_rng(8).standard_normal((7, 6))
    answers = []
    for operator in (found, expected):
        block = operators.random_normal(operator, 6, np.random.default_rng(9))
        moments = operators.MomentPass(
            operator, operators.random_signs(operator, 6, np.random.default_rng(9)), gram=False
        )
        moments.extend(15)
        answers.append((signals_of(operator, operator.filtered(block, coefficients)), moments.moments))
    for own, other in zip(*answers, strict=True):
        assert relative_error(own, other) < EXACT


def test_graphs_with_isolated_nodes_and_several_components(tmp_path):
    graph = Graph.from_edges([(0, 1), (1, 2), (4, 5), (6, 7), (7, 8), (8, 6)], n_nodes=10)
    signals = np.random.default_rng(0).standard_normal((3, 10))
    parted = PartitionedGraph.from_graph(graph, 3, tmp_path / "parts", partitioner="contiguous", n_hops=2)
    for kind in ("combinatorial", "normalized", "balanced"):
        whole, parts = graph.operator(kind, signals), parted.operator(kind, signals)
        found, expected = (operators.MomentPass(one, one.load(signals), gram=True) for one in (parts, whole))
        for one in (found, expected):
            one.extend(21)
        assert relative_error(found.moments, expected.moments) < EXACT
        assert relative_error(operators.largest_eigenvalue(parts)[0], operators.largest_eigenvalue(whole)[0]) < 1e-9


@pytest.mark.parametrize(
    ("name", "change"), [("indices", lambda old: 2**30), ("weights", lambda old: 1e6 * old)], ids=["index", "weight"]
)
def test_a_damaged_folder_is_told_from_a_wrong_computation(tmp_path, name, change):
    """An index out of range would end the process, and a weight that grew in an eigenvalue beyond the interval."""
    graph = PartitionedGraph.from_graph(GRAPH, 3, tmp_path / "g", n_hops=2)
    path = tmp_path / "g" / "part-00001" / f"{name}.npy"
    array = np.load(path)
    array[3] = change(array[3])
    np.save(path, array)
    with pytest.raises(ValueError, match=rf"got .*part-00001.{name}\.npy changed. Build the folder again, or copy it"):
        graph.operator("combinatorial")


def test_without_numba_partitions_are_computed_by_scipy(parted, monkeypatch):
    whole, parts = GRAPH.operator("combinatorial", SIGNALS), parted.operator("combinatorial", SIGNALS)
    expected = operators.MomentPass(whole, whole.load(SIGNALS), gram=True)
    expected.extend(21)
    monkeypatch.setitem(sys.modules, "numba", None)  # as if it were not installed
    found = operators.MomentPass(parts, parts.load(SIGNALS), gram=True)
    found.extend(21)
    assert relative_error(found.moments, expected.moments) < EXACT
