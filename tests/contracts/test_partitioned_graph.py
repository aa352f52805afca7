"""A graph as a folder of partitions: the same graph, whoever cuts it and wherever it comes from."""

import copy
import json
import os
import pickle
import re
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from scipy.sparse.csgraph import shortest_path
from sklearn.base import clone

from cases import Columns, run_python
from spectralgp import Graph, decompose
from spectralgp.graphs import GraphBase
from spectralgp.graphs.partitioned import PartitionedGraph, building, sources
from spectralgp.graphs.partitioned.folder import ARRAYS, checksum, read_owners, read_verified
from spectralgp.graphs.partitioned.partitioning import curve_order
from spectralgp.graphs.partitioned.rows import point_blocks
from spectralgp.graphs.points import usual_bandwidth

PARTITIONERS = ["hilbert", "metis", "rcm", "contiguous", "given"]


def random_graph(seed: int = 0, n_nodes: int = 120) -> Graph:
    """Sparse and weighted, with several components and isolated nodes."""
    rng = np.random.default_rng(seed)
    half = random_array((n_nodes, n_nodes), density=0.012, rng=rng, data_sampler=lambda size: rng.random(size) + 0.1)
    upper = np.triu(half.toarray(), 1)
    return Graph(upper + upper.T, names=[f"node {i}" for i in range(n_nodes)], coordinates=rng.random((n_nodes, 2)))


def partitioner_of(name: str, graph: Graph, n_partitions: int) -> object:
    if name != "given":
        return name
    return np.random.default_rng(1).permutation(np.arange(graph.n_nodes) % n_partitions)


def weights_of(partitioned: PartitionedGraph) -> csr_array:
    """Gather all own rows."""
    rows, columns, values = [], [], []
    for part in map(partitioned.partition, range(partitioned.n_partitions)):
        own = slice(part.indptr[part.n_own])
        rows += np.repeat(part.nodes[: part.n_own], np.diff(part.indptr[: part.n_own + 1])).tolist()
        columns += part.nodes[part.indices[own]].tolist()
        values += part.weights[own].tolist()
    return csr_array((values, (rows, columns)), shape=(partitioned.n_nodes, partitioned.n_nodes))


def same_matrix(one: csr_array, other: csr_array) -> bool:
    return one.nnz == other.nnz and (one != other).nnz == 0


def check_partitions(partitioned: PartitionedGraph, graph: Graph) -> None:
    """Everything that a partition says, against the whole graph and breadth-first search."""
    parts = [partitioned.partition(number) for number in range(partitioned.n_partitions)]
    hops = shortest_path(graph.weights, unweighted=True)
    own = [part.nodes[: part.n_own] for part in parts]
    assert sorted(np.concatenate(own).tolist()) == list(range(graph.n_nodes))
    owner = np.empty(graph.n_nodes, dtype=int)
    place = np.empty(graph.n_nodes, dtype=int)
    for part in parts:
        owner[own[part.number]], place[own[part.number]] = part.number, np.arange(part.n_own)
    for found, expected in zip(
        read_owners(str(partitioned.folder), partitioned.content_hash), (owner, place), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    n_halo = 0
    for part in parts:
        distance = hops[own[part.number]].min(axis=0)
        for ring in range(1, len(part.ends)):
            nodes = part.nodes[part.ends[ring - 1] : part.ends[ring]]
            expected = np.flatnonzero(distance == ring)
            expected = expected[np.lexsort((place[expected], owner[expected]))]
            np.testing.assert_array_equal(nodes, expected)
        halo = part.nodes[part.n_own :]
        n_halo += len(halo)
        np.testing.assert_array_equal(part.halo_owner, owner[halo])
        np.testing.assert_array_equal(np.unique(part.halo_owner), np.unique(owner[halo]))
        for node, home, at in zip(halo, part.halo_owner, part.halo_place, strict=True):
            assert parts[home].nodes[parts[home].boundary[at]] == node
        rows = csr_array((part.weights, part.indices, part.indptr), shape=(part.ends[-2], part.n_local))
        assert rows.has_sorted_indices
        kept = graph.weights[part.nodes[: part.ends[-2]]]
        assert rows.nnz == kept.nnz
        assert same_matrix(rows, csr_array(kept[:, part.nodes]))
        np.testing.assert_array_equal(part.degrees, graph.degrees[part.nodes])
        others = np.delete(np.arange(graph.n_nodes), own[part.number])
        level = hops[np.ix_(own[part.number], others)].min(axis=1) if others.size else np.full(part.n_own, np.inf)
        expected = [np.flatnonzero(level == ring) for ring in range(1, len(part.ends))]
        np.testing.assert_array_equal(part.boundary, np.concatenate(expected))
        np.testing.assert_array_equal(part.boundary_ends, np.cumsum([0, *map(len, expected)]))
        kinds = [part.nodes, part.ends, part.indices, part.weights, part.degrees, part.boundary, part.boundary_ends]
        assert [array.dtype for array in [*kinds, part.halo_owner, part.halo_place]] == [
            *(np.int64, np.int64, np.int32, np.float64, np.float64, np.int32, np.int64, np.int32, np.int32)
        ]
    assert partitioned.halo == n_halo / graph.n_nodes
    ends = graph.weights.tocoo()
    assert partitioned.cut == np.count_nonzero(owner[ends.row] != owner[ends.col]) // 2
    assert (partitioned.n_nodes, partitioned.n_edges) == (graph.n_nodes, graph.n_edges)
    assert partitioned.sizes == tuple(map(len, own))


@pytest.mark.parametrize("partitioner", PARTITIONERS)
@pytest.mark.parametrize(("n_partitions", "n_hops"), [(1, 3), (2, 1), (3, 2), (7, 4), (7, "auto")])
def test_partitions_are_those_of_the_graph(tmp_path, partitioner, n_partitions, n_hops):
    graph = random_graph()
    chosen = partitioner_of(partitioner, graph, n_partitions)
    partitioned = PartitionedGraph.from_graph(graph, n_partitions, tmp_path / "g", partitioner=chosen, n_hops=n_hops)
    check_partitions(partitioned, graph)
    assert same_matrix(weights_of(partitioned), graph.weights)
    assert partitioned.partitioner == partitioner
    assert partitioned.names == graph.names
    np.testing.assert_array_equal(partitioned.coordinates, graph.coordinates)
    if partitioner in ("hilbert", "rcm", "contiguous"):
        assert max(partitioned.sizes) - min(partitioned.sizes) <= 1


@pytest.mark.parametrize("n_partitions", [5, 40])
def test_a_partition_of_few_nodes_and_a_graph_without_edges(tmp_path, n_partitions):
    graph = Graph.edgeless(40)
    partitioned = PartitionedGraph.from_graph(graph, n_partitions, tmp_path / "g", partitioner="contiguous")
    check_partitions(partitioned, graph)
    assert (partitioned.n_hops, partitioned.halo, partitioned.cut) == (8, 0.0, 0)


def halo_share(graph: Graph, own: np.ndarray, n_hops: int) -> float:
    hops = shortest_path(graph.weights, unweighted=True)
    nearest = np.array([hops[own == number].min(axis=0) for number in np.unique(own)])
    return np.count_nonzero((nearest > 0) & (nearest <= n_hops)) / graph.n_nodes


def test_the_number_of_hops_is_the_largest_whose_halos_are_small(tmp_path):
    # a path in 4 contiguous pieces: each hop adds 6 nodes in all
    for n_nodes, expected in ((400, 8), (168, 7), (120, 5), (24, 1), (8, 1)):
        path = Graph.from_edges([(i, i + 1) for i in range(n_nodes - 1)])
        partitioned = PartitionedGraph.from_graph(path, 4, tmp_path / str(n_nodes), partitioner="contiguous")
        assert partitioned.n_hops == expected
        own = np.repeat(np.arange(4), n_nodes // 4)
        assert partitioned.halo == halo_share(path, own, expected)
        assert expected == 8 or halo_share(path, own, expected + 1) > 0.25


def test_auto_cuts_by_coordinates_where_there_are_any(tmp_path, monkeypatch):
    graph = random_graph()
    assert PartitionedGraph.from_graph(graph, 2, tmp_path / "a").partitioner == "hilbert"
    bare = Graph(graph.weights)
    assert PartitionedGraph.from_graph(bare, 2, tmp_path / "b").partitioner == "metis"
    monkeypatch.setitem(sys.modules, "pymetis", None)  # as if it were not installed
    assert PartitionedGraph.from_graph(bare, 2, tmp_path / "c").partitioner == "rcm"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"graph": np.eye(3)}, "graph must be a Graph; got ndarray"),
        ({"graph": Graph.edgeless(5), "partitioner": "hilbert"}, "another than 'hilbert' for a graph without coord"),
        ({"graph": Graph.edgeless(3, names=[(0, 1), (0, 2), 5])}, r"names must be text or numbers .*; got \(0, 1\)"),
        ({"n_partitions": 121}, "n_partitions must"),
        ({"n_partitions": 0}, "n_partitions must"),
        ({"n_hops": 0}, "n_hops must"),
        ({"n_hops": "many"}, "n_hops must be 'auto' or a whole number"),
        ({"partitioner": "best"}, "partitioner must"),
        ({"partitioner": [0, 1]}, r"partitioner must .* for each of 120 nodes"),
        ({"partitioner": np.zeros(120, dtype=int)}, "must give every partition a node; got none for partition 1"),
        ({"partitioner": np.arange(120)}, "partitioner must have partitions from 0 to 2; got 3"),
        ({"partitioner": np.zeros(120)}, "got an array of float64"),
    ],
)
def test_wrong_arguments_are_refused_and_leave_nothing(tmp_path, arguments, message):
    given = {"graph": random_graph(), "n_partitions": 3, "folder": tmp_path / "g"} | arguments
    with pytest.raises((TypeError, ValueError), match=message):
        PartitionedGraph.from_graph(**given)
    assert not (tmp_path / "g").exists() or not list((tmp_path / "g").iterdir())


# --------------------------------------------------------------------------------------------------- the Hilbert curve


@pytest.mark.parametrize("n_dimensions", [1, 2, 3, 5])
def test_the_curve_cuts_less_than_the_users_order(tmp_path, n_dimensions):
    rng = np.random.default_rng(3)
    points = rng.random((600, n_dimensions)) * [10.0, 10.0, 10.0, 0.1, 0.1][:n_dimensions]
    points @= np.linalg.qr(rng.standard_normal((n_dimensions, n_dimensions)))[0]
    graph = Graph.from_points(points, n_neighbors=4)
    curve = PartitionedGraph.from_graph(graph, 6, tmp_path / "a", n_hops=1)
    order = PartitionedGraph.from_graph(graph, 6, tmp_path / "b", partitioner="contiguous", n_hops=1)
    assert curve.cut < 0.5 * order.cut
    check_partitions(curve, graph)


@pytest.mark.parametrize("n_dimensions", [2, 3])
def test_points_of_a_grid_follow_the_curve_from_each_to_a_neighbour(n_dimensions):
    """In any unit, about any origin and in blocks: cells of all 21 bits of an axis, three of which fill 63 bits."""
    axes = np.meshgrid(*[np.arange(8)] * n_dimensions, indexing="ij")
    cells = np.stack(axes, axis=-1).reshape(-1, n_dimensions)[::-1]  # of which blocks have different extents
    order = curve_order(-3e4 + 0.37 * cells, lambda points: points, points_at_once=37)
    assert sorted(order) == list(range(len(cells)))
    np.testing.assert_array_equal(np.abs(np.diff(cells[order], axis=0)).sum(axis=1), 1)


def test_points_on_a_line_are_told_apart_by_their_last_bit():
    """Cells 3 and 2 of 2,097,152; those in one cell stay as they come."""
    width = 7 / (2**21 - 1)
    points = np.array([[7.0], [3.5 * width], [2.6 * width], [2.3 * width], [0.0]])
    assert curve_order(points, lambda points: points, points_at_once=2).tolist() == [4, 2, 3, 1, 0]
    assert curve_order(np.full((3, 2), 7.0), lambda points: points).tolist() == [0, 1, 2]


# ----------------------------------------------------------------------------------------------------------- from edges


def edges_of(graph: Graph, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Edges in any order and direction, some of them listed twice."""
    upper = csr_array(np.triu(graph.weights.toarray())).tocoo()
    chosen = np.concatenate([np.arange(upper.nnz), rng.integers(0, upper.nnz, upper.nnz // 3)])
    chosen = rng.permutation(chosen)
    turned = rng.random(len(chosen)) < 0.5
    source = np.where(turned, upper.row[chosen], upper.col[chosen])
    target = np.where(turned, upper.col[chosen], upper.row[chosen])
    return {"source": source, "target": target, "weight": upper.data[chosen]}


def as_parquet(table: dict[str, np.ndarray], folder: Path) -> Path:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    folder.mkdir()
    frame = pd.DataFrame(table)
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[rows].to_parquet(folder / f"{number}.parquet", row_group_size=25)
    return folder


def as_dask(table: dict[str, np.ndarray], folder: Path) -> object:
    dask_frame = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    return dask_frame.from_pandas(pd.DataFrame(table), npartitions=4, sort=False)


@pytest.mark.parametrize("kind", [as_parquet, as_dask])
@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_edges_give_the_same_graph(tmp_path, kind, partitioner):
    graph = random_graph(5)
    edges = kind(edges_of(graph, np.random.default_rng(2)), tmp_path / "edges")
    partitioned = PartitionedGraph.from_edges(
        edges,
        tmp_path / "g",
        n_partitions=4,
        n_nodes=graph.n_nodes,
        coordinates=graph.coordinates,
        partitioner=partitioner_of(partitioner, graph, 4),
        n_hops=2,
    )
    check_partitions(partitioned, graph)
    assert same_matrix(weights_of(partitioned), graph.weights)
    assert partitioned.names is None


# ------------------------------------------------------------------------------------------------------ signals


def small(tmp_path, names=None):
    graph = Graph.from_edges([(node, node + 1) for node in range(99)], n_nodes=100)
    named = graph if names is None else Graph(graph.weights, names)
    return PartitionedGraph.from_graph(named, 2, tmp_path / "g", n_hops=1)


def columns_of(values):
    return {str(2000 + number): row for number, row in enumerate(values)}


@pytest.mark.parametrize("kind", [as_parquet, as_dask])
@pytest.mark.parametrize("called", [None, "numbers", "names"])
def test_signals_of_a_table_come_in_the_order_of_the_nodes(tmp_path, kind, called):
    names = [f"station {node:02d}" for node in range(100)]
    graph = small(tmp_path, names if called == "names" else None)
    values, order = np.random.default_rng(0).standard_normal((3, 100)), np.random.default_rng(1).permutation(100)
    if called is None:
        found = graph.signals(kind(columns_of(values), tmp_path / "signals"))
    else:
        which = order if called == "numbers" else np.array(names)[order]
        found = graph.signals(kind({"at": which, **columns_of(values[:, order])}, tmp_path / "signals"), node="at")
    assert found.dtype == np.float64
    assert found.numblocks[1] > 1
    np.testing.assert_array_equal(found.compute(scheduler="synchronous"), values)


def test_single_precision_and_an_index_of_names_are_kept(tmp_path):
    pd, dask_frame = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    graph, values = small(tmp_path), np.random.default_rng(0).standard_normal((2, 100)).astype("float32")
    frame = pd.DataFrame(columns_of(values), index=pd.Index(np.arange(100), name="at"))[::-1]
    found = graph.signals(dask_frame.from_pandas(frame, npartitions=3, sort=False), node="at")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.compute(scheduler="synchronous"), values)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of dask itself, by pandas
def test_row_groups_of_few_columns_are_not_joined(tmp_path):
    """Dask joins them where a column is read alone, as that of the nodes is."""
    pd, dask_frame = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    graph, values = small(tmp_path), np.random.default_rng(0).standard_normal((5, 100))
    index = pd.Index(np.arange(100), name="at")
    pd.DataFrame(columns_of(values), index=index).to_parquet(tmp_path / "signals.parquet", row_group_size=7)
    lazy = dask_frame.read_parquet(tmp_path / "signals.parquet", split_row_groups=True)
    for table in (tmp_path / "signals.parquet", lazy, lazy.reset_index()):
        found = graph.signals(table, node="at")
        np.testing.assert_array_equal(found.compute(scheduler="synchronous"), values)


@pytest.mark.parametrize(
    ("table", "node", "error", "message"),
    [
        ({"at": np.arange(100)}, "at", ValueError, "column for each signal; got none"),
        ({"at": np.arange(100), "a": np.ones(100)}, "node", ValueError, "node must be a column .* got 'node'"),
        ({"at": ["x"] * 100, "a": np.ones(100)}, None, TypeError, "table must have columns of numbers; got 'at'"),
        ({"at": np.arange(99), "a": np.ones(99)}, "at", ValueError, "row for each of the 100 nodes; got 99 rows"),
        ({"at": [*range(99), 7], "a": np.ones(100)}, "at", ValueError, "one row per node; got several for 7"),
        ({"at": np.arange(1, 101), "a": np.ones(100)}, "at", ValueError, "got no row for 0, and one for 100"),
    ],
)
@pytest.mark.parametrize("kind", [as_parquet, as_dask])
def test_tables_that_are_no_signals_of_the_graph_are_refused(tmp_path, kind, table, node, error, message):
    with pytest.raises(error, match=message):
        small(tmp_path).signals(kind(table, tmp_path / "signals"), node=node)


def test_signals_must_be_complete_and_are_looked_at_a_chunk_at_a_time(tmp_path):
    signals = np.random.default_rng(0).standard_normal((3, 10))
    given = Columns(signals)
    assert sources.require_complete(given, bytes_per_chunk=100) is given
    assert given.asked == [(3, 4), (3, 4), (3, 2)]
    many = Columns(np.zeros((20, 2)))
    assert sources.require_complete(many, bytes_per_chunk=100).asked == [(20, 1), (20, 1)]
    assert sources.require_complete(np.empty((0, 5))).shape == (0, 5)
    da = pytest.importorskip("dask.array")
    np.testing.assert_array_equal(sources.require_complete(da.from_array(signals, chunks=4)).compute(), signals)
    for place in ((0, 0), (2, 3), (1, 4), (2, 9)):
        holed = signals.copy()
        holed[place] = np.nan
        lazy = sources.require_complete(da.from_array(holed, chunks=4))
        for look in (lambda holed=holed: sources.require_complete(holed), lambda lazy=lazy: lazy.compute()):
            with pytest.raises(ValueError, match="Y must be complete on a PartitionedGraph; got NaN"):
                look()
    with pytest.raises(TypeError, match="table must be a dask DataFrame or a file or folder of Parquet"):
        small(tmp_path).signals(np.ones((2, 100)))


def test_other_columns_of_edges_may_hold_anything(tmp_path):
    pd = pytest.importorskip("pandas")
    table = {"source": [0, 1], "target": [1, 2], "since": pd.to_datetime(["2020-01-01", "2021-01-01"], utc=True)}
    folder = as_parquet(table, tmp_path / "edges")
    graph = PartitionedGraph.from_edges(folder, tmp_path / "g", n_partitions=1, n_nodes=3)
    assert graph.n_edges == 2


def test_one_parquet_file_without_weights_or_counts(tmp_path):
    edges = {"source": np.array([0, 1, 2, 3]), "target": np.array([1, 2, 3, 0]), "other": np.zeros(4)}
    file = as_parquet(edges, tmp_path / "edges")
    partitioned = PartitionedGraph.from_edges(file, tmp_path / "g", n_partitions=2, partitioner="contiguous")
    expected = Graph.from_edges(list(zip(edges["source"], edges["target"], strict=True)))
    assert same_matrix(weights_of(partitioned), expected.weights)
    only = PartitionedGraph.from_edges(file / "0.parquet", tmp_path / "h", n_partitions=1, n_nodes=4)
    assert only.n_edges == 2


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("partitioner", ["rcm", "contiguous"])
def test_labels_become_names(tmp_path, named, partitioner):
    pd = pytest.importorskip("pandas")
    table = {"source": ["Oslo", "Voss", "Oslo"], "target": ["Bergen", "Bergen", "Hamar"], "weight": [0.5, 2.0, 1.0]}
    names = ["Hamar", "Voss", "Oslo", "Bergen", "Rana"] if named else None
    expected = Graph.from_edges(pd.DataFrame(table), names=names)
    folder = as_parquet({name: np.array(column) for name, column in table.items()}, tmp_path / "edges")
    options = {"n_partitions": 2, "partitioner": partitioner, "n_hops": 1}
    partitioned = PartitionedGraph.from_edges(folder, tmp_path / "g", names=names, **options)
    assert partitioned.names == expected.names
    with pytest.raises(ValueError, match=r"edges must join nodes listed in names; got '(Oslo|Voss)'"):
        PartitionedGraph.from_edges(folder, tmp_path / "h", n_partitions=2, names=["Hamar", "Bergen"])
    assert same_matrix(weights_of(partitioned), expected.weights)
    numbers = as_parquet({"source": np.array([10, 30]), "target": np.array([30, 20])}, tmp_path / "numbers")
    partitioned = PartitionedGraph.from_edges(numbers, tmp_path / "n", names=[10, 20, 30], **options)
    expected = Graph.from_edges([(10, 30), (30, 20)], names=[10, 20, 30])
    assert same_matrix(weights_of(partitioned), expected.weights)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": [0, 2, 3]}, "edges must join two different nodes; got a self-loop at 0"),
        ({"weight": [1.0, -2.0, 1.0]}, r"weights must be non-negative; got -2.0 between (1 and 2|2 and 1)"),
        ({"weight": [1.0, np.nan, 1.0]}, r"weights of edges \(block 1\) must be finite; got nan"),
        ({"weight": [1.0, np.inf, 1.0]}, r"weights of edges \(block 1\) must be finite; got inf"),
        ({"source": [0, 1, 1], "target": [1, 2, 0]}, r"got (1.0 and 3.0|3.0 and 1.0) between (0 and 1|1 and 0)"),
        ({"source": [0, 1, 9]}, "edges must join nodes from 0 to 3; got 9"),
        ({"source": [0, 1, -1]}, "edges must join nodes from 0 to 3; got -1"),
        ({"source": ["a", "b", "c"]}, "n_nodes must equal the number of labels in edges, 6; got 4"),
    ],
)
@pytest.mark.parametrize("partitioner", ["contiguous", "rcm"])
def test_wrong_edges_are_refused_and_leave_nothing(tmp_path, change, message, partitioner):
    table = {"source": [0, 1, 2], "target": [1, 2, 3], "weight": [1.0, 2.0, 3.0]} | change
    folder = as_parquet({name: np.array(column) for name, column in table.items()}, tmp_path / "edges")
    with pytest.raises(ValueError, match=message):
        PartitionedGraph.from_edges(folder, tmp_path / "g", n_partitions=2, n_nodes=4, partitioner=partitioner)
    assert not (tmp_path / "g").exists() or not list((tmp_path / "g").iterdir())


def test_edges_that_are_counted_at_first_and_named_later_are_refused(tmp_path):
    edges = as_parquet({"source": [0, 1, 2], "target": [1, 2, 3]}, tmp_path / "edges")
    pytest.importorskip("pandas").DataFrame({"source": ["a"], "target": [3]}).to_parquet(edges / "3.parquet")
    with pytest.raises(ValueError, match="edges must join nodes from 0 to 3, as the first of them do; got 'a'"):
        PartitionedGraph.from_edges(edges, tmp_path / "g", n_partitions=2, partitioner="contiguous")


def test_edges_that_skip_a_node_need_its_number(tmp_path):
    folder = as_parquet({"source": np.array([0, 1, 3]), "target": np.array([1, 0, 4])}, tmp_path / "edges")
    with pytest.raises(ValueError, match=r"edges must mention every node from 0 to 4 .* got no edge at node 2"):
        PartitionedGraph.from_edges(folder, tmp_path / "g", n_partitions=2)
    with pytest.raises(TypeError, match="edges must be a dask DataFrame or a file or folder of Parquet"):
        PartitionedGraph.from_edges([(0, 1)], tmp_path / "g", n_partitions=2)
    with pytest.raises(FileNotFoundError, match="edges must be a file or a folder of Parquet"):
        PartitionedGraph.from_edges(tmp_path / "none", tmp_path / "g", n_partitions=2)
    wrong = as_parquet({"from": np.array([0]), "to": np.array([1])}, tmp_path / "wrong")
    with pytest.raises(ValueError, match=r"edges must have columns 'source', 'target' .* got \['from', 'to'\]"):
        PartitionedGraph.from_edges(wrong, tmp_path / "g", n_partitions=1)


# ---------------------------------------------------------------------------------------------------------- from points


UNIFORM = np.random.default_rng(0).random((300, 2))
COINCIDENT = np.concatenate([UNIFORM[:100], UNIFORM[:100], UNIFORM[200:]])
SPHERE = np.column_stack([360 * UNIFORM[:, 0] - 180, np.degrees(np.arcsin(2 * UNIFORM[:, 1] - 1))])


@pytest.mark.parametrize(("n_partitions", "n_dimensions"), [(5, 1), (5, 2), (5, 3), (1, 2)])
@pytest.mark.parametrize(
    "options",
    [
        {"n_neighbors": 6},
        {"n_neighbors": 3, "symmetrize": "average", "weights": "inverse"},
        {"n_neighbors": 4, "symmetrize": "minimum", "bandwidth": 0.3},
        {"radius": 0.12},
        {"radius": 0.05, "weights": "binary"},
    ],
)
def test_points_give_the_same_graph_to_the_last_bit(tmp_path, n_dimensions, n_partitions, options):
    points = np.random.default_rng(n_dimensions).random((400, n_dimensions))
    points[7] = 3.0  # far from all others
    graph = Graph.from_points(points, **options)
    partitioned = PartitionedGraph.from_points(points, tmp_path / "g", n_partitions=n_partitions, n_hops=1, **options)
    assert same_matrix(weights_of(partitioned), graph.weights)
    check_partitions(partitioned, graph)
    np.testing.assert_array_equal(partitioned.coordinates, points)


@pytest.mark.parametrize(
    ("points", "n_partitions", "options"),
    [
        (UNIFORM[:40], 9, {"n_neighbors": 12}),  # more than a partition has nodes
        (COINCIDENT, 5, {"radius": 0.1}),
        (UNIFORM, 3, {"radius": 1e-9}),  # no edges
        (SPHERE, 6, {"n_neighbors": 5, "metric": "haversine"}),
        (SPHERE, 6, {"radius": 400.0, "metric": "haversine"}),
        (SPHERE, 6, {"radius": 2500.0, "weights": "inverse", "metric": "haversine"}),
    ],
)
def test_points_of_all_kinds_give_the_same_graph(tmp_path, points, n_partitions, options):
    partitioned = PartitionedGraph.from_points(points, tmp_path / "g", n_partitions=n_partitions, n_hops=1, **options)
    assert same_matrix(weights_of(partitioned), Graph.from_points(points, **options).weights)


def test_a_neighbour_that_is_nearer_by_a_rounding_is_found_beyond_the_border(tmp_path):
    points = np.array([[0.0], [1.0], [2.0 - 1e-10], [5.0]])
    partitioned = PartitionedGraph.from_points(
        points, tmp_path / "g", n_partitions=2, n_neighbors=1, symmetrize="minimum", weights="binary"
    )
    assert np.argwhere(weights_of(partitioned).toarray()).tolist() == [[1, 2], [2, 1]]


def test_points_in_blocks_are_those_at_once(tmp_path):
    blocks = list(point_blocks(UNIFORM, rows_at_once=70))
    assert list(map(len, blocks)) == [70, 70, 70, 70, 20]
    np.testing.assert_array_equal(np.concatenate(blocks), UNIFORM)
    da = pytest.importorskip("dask.array")
    for far in (2e140, -2e140):  # in a block of its own
        points = da.from_array(np.append(UNIFORM, [[0.5, far]], axis=0), chunks=(100, 2))
        with pytest.raises(ValueError, match="points must lie within"):
            PartitionedGraph.from_points(points, tmp_path / "far", n_partitions=2)


def test_neighbours_of_coincident_points_are_as_near_as_can_be(tmp_path):
    # which of equally near points are chosen is arbitrary, how near they are is not
    points = np.concatenate([COINCIDENT[:200], [UNIFORM[0]] * 20, UNIFORM[220:]])
    n_neighbors = 4
    partitioned = PartitionedGraph.from_points(
        points, tmp_path / "g", n_partitions=5, n_neighbors=n_neighbors, n_hops=1, symmetrize="maximum"
    )
    squared = np.square(points[:, None] - points).sum(axis=-1)
    np.fill_diagonal(squared, np.inf)
    nearest = np.sort(squared, axis=1)[:, :n_neighbors]
    bandwidth = nearest.mean()
    assert bandwidth == pytest.approx(usual_bandwidth([nearest.ravel()]), rel=1e-12)
    weights = weights_of(partitioned).toarray()
    rows, columns = np.nonzero(weights)
    np.testing.assert_allclose(weights[rows, columns], np.exp(-squared[rows, columns] / bandwidth), rtol=1e-12)
    # every node has its nearest ones, and every edge is of a node to one of its nearest
    assert all(np.sort(squared[i][weights[i] > 0])[:n_neighbors] == pytest.approx(nearest[i]) for i in range(300))
    farthest = nearest[:, -1]
    assert (squared[rows, columns] <= np.maximum(farthest[rows], farthest[columns]) * (1 + 1e-12)).all()


@pytest.mark.parametrize("kind", ["memmap", "float32", "dask", "parquet"])
def test_points_are_read_from_wherever_they_are(tmp_path, kind):
    points = np.random.default_rng(0).random((300, 2)).astype(np.float32)
    graph = Graph.from_points(points, n_neighbors=4)
    if kind == "memmap":
        given = np.memmap(tmp_path / "points", dtype=np.float64, mode="w+", shape=points.shape)
        given[:] = points
    elif kind == "dask":
        given = pytest.importorskip("dask.array").from_array(points, chunks=(70, 1))
    elif kind == "parquet":
        given = as_parquet({"x": points[:, 0], "y": points[:, 1]}, tmp_path / "points")
    else:
        given = points
    partitioned = PartitionedGraph.from_points(given, tmp_path / "g", n_partitions=3, n_neighbors=4, n_hops=1)
    assert same_matrix(weights_of(partitioned), graph.weights)
    np.testing.assert_array_equal(partitioned.coordinates, points.astype(np.float64))


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of dask itself, by pandas
def test_parts_of_a_parquet_folder_are_read_by_their_numbers(tmp_path):
    dask_frame = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    points = np.random.default_rng(0).random((130, 2))
    frame = pd.DataFrame(points, columns=["x", "y"], index=np.arange(130) + 7)
    dask_frame.from_pandas(frame, npartitions=13).to_parquet(tmp_path / "points")
    partitioned = PartitionedGraph.from_points(tmp_path / "points", tmp_path / "g", n_partitions=3, n_neighbors=4)
    np.testing.assert_array_equal(partitioned.coordinates, points)


def test_files_are_known_again_in_another_process(tmp_path):
    """So that it goes on with what was built of them."""
    folder = as_parquet({"x": UNIFORM[:, 0], "y": UNIFORM[:, 1]}, tmp_path / "points")
    code = "import sys; from spectralgp.graphs.partitioned.rows import point_blocks; "
    found = run_python(code + "print(repr(point_blocks(sys.argv[1]).fingerprint))", str(folder))
    assert found == f"{point_blocks(folder).fingerprint!r}\n"


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        (np.zeros((30, 2)), {}, "points must not all coincide"),
        (np.zeros((30, 2)), {"weights": "inverse"}, "points must be distinct"),
        (np.full((30, 2), np.nan), {}, "points must be finite"),
        (np.arange(60.0).reshape(30, 2), {"n_neighbors": 30}, "n_neighbors must"),
        (np.arange(60.0).reshape(30, 2), {"n_neighbors": 3, "radius": 1.0}, "n_neighbors must be None when radius"),
        (np.arange(60.0).reshape(30, 2) * 1e139, {}, "points must lie within"),
        (np.full((30, 2), 100.0), {"metric": "haversine"}, "points must have latitudes from -90 to 90"),
        (np.arange(60.0).reshape(30, 2), {"metric": "taxicab"}, "metric must"),
    ],
)
def test_wrong_points_are_refused_and_leave_nothing(tmp_path, points, options, message):
    with pytest.raises(ValueError, match=message):
        PartitionedGraph.from_points(points, tmp_path / "g", n_partitions=3, **options)
    assert not (tmp_path / "g").exists() or not list((tmp_path / "g").iterdir())


# ------------------------------------------------------------------------------------------------- folders and building


@pytest.fixture
def folder(tmp_path):
    PartitionedGraph.from_graph(random_graph(), 3, tmp_path / "g", n_hops=2)
    return tmp_path / "g"


def test_nothing_but_the_graph_is_left_in_the_folder(folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        *("coordinates.npy", "head.json", "names.json", "owners.npy", "part-00000", "part-00001", "part-00002"),
        "places.npy",
    ]
    head = json.loads((folder / "head.json").read_text())
    assert head["format"] == "spectralgp partitioned graph"
    assert head["version"] == 1
    assert len(head["files"]) == 34


def test_a_graph_is_opened_copied_and_pickled_by_its_folder(folder, monkeypatch):
    graph = PartitionedGraph.open(folder, verify=True)
    assert isinstance(graph, GraphBase)
    assert copy.copy(graph) is copy.deepcopy(graph) is clone(graph, safe=False) is graph
    pickled = pickle.dumps(graph)
    assert len(pickled) < 1000
    again = pickle.loads(pickled)
    assert (again.folder, again.n_edges, again.names) == (graph.folder, graph.n_edges, graph.names)
    assert isinstance(graph.partition(0).weights, np.memmap)
    assert not graph.partition(0).weights.flags.writeable
    monkeypatch.chdir(folder.parent)
    assert PartitionedGraph.open("g").folder == folder
    with pytest.raises(ValueError, match="number must"):
        graph.partition(3)


def test_what_needs_the_graph_in_memory_says_so(folder):
    graph = PartitionedGraph.open(folder)
    message = r"graph must be in memory to be decomposed; got PartitionedGraph\. Pass spectrum"
    with pytest.raises(TypeError, match=message):
        decompose(graph)
    with pytest.raises(TypeError, match="graph must be in memory for LocalAverage; got PartitionedGraph"):
        graph.require_whole("for LocalAverage")


def test_what_is_shown_has_the_cut_and_the_halo(folder, tmp_path):
    graph = PartitionedGraph.open(folder)
    assert repr(graph) == (
        f"PartitionedGraph(120 nodes, {graph.n_edges} edges, 3 partitions: {graph.cut} edges cut, "
        f"halos of 2 hops with {100 * graph.halo:.3g} % of the nodes)"
    )
    pair = PartitionedGraph.from_graph(Graph.from_edges([(0, 1)]), 2, tmp_path / "p", partitioner="rcm", n_hops=1)
    assert pair.coordinates is pair.names is None
    assert repr(pair) == (
        "PartitionedGraph(2 nodes, 1 edge, 2 partitions: 1 edge cut, halos of 1 hop with 100 % of the nodes)"
    )


def test_names_and_coordinates_follow_the_order_of_the_partitions(folder):
    graph, inside = random_graph(), PartitionedGraph.open(folder).in_partition_order()
    assert sorted(inside.order) == list(range(120))
    assert inside.names == tuple(graph.names[node] for node in inside.order)
    np.testing.assert_array_equal(inside.coordinates, graph.coordinates[inside.order])
    np.testing.assert_array_equal(np.concatenate([inside.own_nodes(number) for number in range(3)]), np.arange(120))


@pytest.mark.parametrize("source", ["graph", "edges", "points"])
def test_a_bar_counts_the_steps_of_a_build(tmp_path, monkeypatch, listener, source):
    graph, totals = random_graph(n_nodes=40), []
    # beside the bar nobody would hear of the steps
    monkeypatch.setattr(building, "progress_bar", lambda *bar: nullcontext(totals.append(bar)))
    options = {"n_partitions": 3, "folder": tmp_path / "g", "n_hops": 2, "verbose": True}
    if source == "graph":
        PartitionedGraph.from_graph(graph, **options)
    elif source == "edges":
        edges = as_parquet(edges_of(graph, np.random.default_rng(2)), tmp_path / "edges")
        PartitionedGraph.from_edges(edges, n_nodes=40, partitioner="contiguous", **options)
    else:
        PartitionedGraph.from_points(graph.coordinates, n_neighbors=2, **options)
    assert totals == [("partition", len(listener.steps), True)]
    assert listener.steps[-5:] == ["ring 1", "ring 2", "part 1 of 3", "part 2 of 3", "part 3 of 3"]


def damaged_head(folder: Path, **change: object) -> None:
    head = json.loads((folder / "head.json").read_text())
    (folder / "head.json").write_text(json.dumps(head | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "folder must hold a partitioned graph; got another kind"),
        ({"version": 2}, "folder must have format version 1; got 2"),
        ({"n_nodes": "many"}, r"well-formed head.json; got Expected `int`, got `str` - at `\$.n_nodes`"),
        ({"n_nodes": 119}, "sizes that do not add up"),
        ({"sizes": [60, 60]}, "sizes that do not add up"),
        ({"files": {}}, "a list of files that is not that of its partitions"),
        ({"files": {"part-00000/nodes.npy": 3}}, r"Expected `array`, got `int` - at `\$.files"),
        ({"has_names": False}, "a list of files"),
        ({"n_edges": True}, r"got Expected `int`, got `bool` - at `\$.n_edges`"),
    ],
)
def test_a_wrong_head_is_refused(folder, change, message):
    damaged_head(folder, **change)
    with pytest.raises(ValueError, match=message):
        PartitionedGraph.open(folder)


def test_damaged_folders_are_refused(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="folder must be a folder of a partitioned graph"):
        PartitionedGraph.open(tmp_path / "none")
    weights = folder / "part-00001" / "weights.npy"
    data = weights.read_bytes()
    graph = PartitionedGraph.open(folder)
    weights.write_bytes(data[:-1])
    with pytest.raises(ValueError, match="folder must hold whole files; got"):
        PartitionedGraph.open(folder)
    with pytest.raises(ValueError, match="cannot be read"):
        graph.partition(1)
    weights.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    PartitionedGraph.open(folder)
    with pytest.raises(ValueError, match=r"folder must hold files as they were built; got .*weights.npy changed"):
        PartitionedGraph.open(folder, verify=True)
    weights.unlink()
    with pytest.raises(FileNotFoundError, match="folder must hold all files of a graph"):
        PartitionedGraph.open(folder)
    with pytest.raises(FileNotFoundError, match="folder must hold all files of a graph"):
        graph.partition(1)
    np.save(weights, np.zeros(3))
    with pytest.raises(ValueError, match="folder must hold arrays that go together"):
        graph.partition(1)
    (folder / "head.json").write_text("{")
    with pytest.raises(ValueError, match=r"folder must hold a readable head\.json"):
        PartitionedGraph.open(folder)
    (folder / "head.json").unlink()
    with pytest.raises(FileNotFoundError, match="Call the builder again with the same arguments"):
        PartitionedGraph.open(folder)


def test_what_is_pickled_in_a_folder_is_not_run(folder):
    graph, path = PartitionedGraph.open(folder), folder / "part-00001" / "weights.npy"
    np.save(path, np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"cannot be read \(.*Python objects"):
        graph.partition(1)


@pytest.mark.parametrize("name", sorted({*ARRAYS} - {"ends"}))
def test_arrays_of_a_partition_must_have_their_lengths(folder, name):
    graph, path = PartitionedGraph.open(folder), folder / "part-00001" / f"{name}.npy"
    array = np.load(path)
    for other in (array[:-1], np.append(array, array[-1:])):
        np.save(path, other)
        with pytest.raises(ValueError, match="folder must hold arrays that go together"):
            graph.partition(1)


@pytest.mark.parametrize("name", ARRAYS)
def test_nothing_is_computed_with_a_partition_that_was_changed(folder, name):
    graph = PartitionedGraph.open(folder)
    assert read_verified(str(folder), graph.content_hash, 0).n_own == 40
    path = folder / "part-00001" / f"{name}.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    message = (
        rf"folder must hold files as they were built; got .*part-00001.{name}\.npy changed\. Build the folder again"
    )
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            read_verified(str(folder), graph.content_hash, 1)
    assert read_verified(str(folder), graph.content_hash, 2).n_own == 40


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("nodes", 3, 120),
        ("indptr", 2, -1),
        ("indptr", 0, 1),
        ("indices", 3, 2**30),
        ("indices", 3, -1),
        ("weights", 3, np.nan),
        ("weights", 3, np.inf),
        ("weights", 3, -1.0),
        ("degrees", 0, np.nan),
        ("boundary", 0, 40),
        ("boundary_ends", 0, 1),
        ("halo_owner", 0, 3),
        ("halo_place", 0, -1),
    ],
)
def test_arrays_out_of_range_are_refused_whatever_the_checksums_say(folder, name, place, value):
    path = folder / "part-00001" / f"{name}.npy"
    array = np.load(path)
    array[place] = value
    np.save(path, array)
    head = json.loads((folder / "head.json").read_text())
    damaged_head(folder, files=head["files"] | {f"part-00001/{name}.npy": checksum(path)})
    graph = PartitionedGraph.open(folder, verify=True)
    with pytest.raises(ValueError, match=rf"partitions of one graph; got wrong {name} in .*part-00001\. Build the"):
        read_verified(str(folder), graph.content_hash, 1)


def test_a_folder_that_was_built_anew_is_not_taken_for_the_old_one(folder):
    graph = PartitionedGraph.open(folder)
    PartitionedGraph.from_graph(random_graph(3), 3, folder, overwrite=True)
    message = r"folder must hold the graph that was opened; got .* built anew since\. Open it"
    with pytest.raises(ValueError, match=message):
        read_verified(str(folder), graph.content_hash, 1)


@pytest.mark.parametrize("name", ["owners.npy", "places.npy", "names.json"])
def test_owners_and_names_that_were_changed_are_refused(folder, name):
    graph = PartitionedGraph.open(folder)
    path = folder / name
    path.write_bytes(path.read_bytes()[:-2] + b"!]")
    with pytest.raises(ValueError, match=f"folder must hold files as they were built; got .*{name} changed"):
        read_owners(str(folder), graph.content_hash), graph.names


def test_a_finished_folder_is_not_overwritten_unless_asked(folder):
    other = random_graph(9)
    with pytest.raises(ValueError, match="folder must not hold a partitioned graph yet"):
        PartitionedGraph.from_graph(other, 2, folder)
    assert PartitionedGraph.open(folder, verify=True).n_partitions == 3
    (folder / "mine.txt").write_text("stays")
    with pytest.raises(ValueError, match="folder must be new or empty"):
        PartitionedGraph.from_graph(other, 2, folder, overwrite=True)
    assert PartitionedGraph.open(folder, verify=True).n_partitions == 3
    (folder / "mine.txt").unlink()
    (folder / "building-0123" / "part-00001.unfinished").mkdir(parents=True)  # as a process that was killed leaves it
    (folder / "building-0123" / ".names-0123456789abcdef.json").write_text("half of")
    again = PartitionedGraph.from_graph(other, 2, folder, overwrite=True)
    check_partitions(PartitionedGraph.open(folder, verify=True), other)
    assert not (folder / "part-00002").exists()
    assert not (folder / "building-0123").exists()
    assert again.n_partitions == 2


def test_partitions_that_an_interrupted_overwriting_left_are_not_taken_for_new_ones(folder):
    (folder / "head.json").unlink()  # the first to be deleted
    other = random_graph(9)
    check_partitions(PartitionedGraph.from_graph(other, 3, folder, n_hops=2), other)


def watched_steps(monkeypatch, stop: str = "") -> list[str]:
    """Names of the steps that builds finish from now on; the disk is full when `stop` is to be written."""
    kept: list[str] = []
    replace = os.replace

    def watched(source, target):
        if Path(target).name == stop:
            raise OSError(28, "No space left on device")
        kept.append(Path(target).name)
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    return kept


@pytest.mark.parametrize("stop", ["edges-00002", "rows-00003", "ring-1-00003", "part-00003", "head.json"])
def test_an_interrupted_build_goes_on_with_what_is_finished(tmp_path, monkeypatch, stop):
    graph = random_graph(5)
    edges = as_parquet(edges_of(graph, np.random.default_rng(2)), tmp_path / "edges")

    def build(**options):
        given = {"n_partitions": 5, "n_nodes": 120, "partitioner": "contiguous", "n_hops": 1} | options
        return PartitionedGraph.from_edges(edges, tmp_path / "g", **given)

    with monkeypatch.context() as patched:
        before = watched_steps(patched, stop)
        with pytest.raises(OSError, match="No space left"):
            build()
    with pytest.raises(FileNotFoundError, match="folder must hold a finished partitioned graph"):
        PartitionedGraph.open(tmp_path / "g")
    with pytest.raises(ValueError, match="begun with others"):
        build(n_hops=2)
    after = watched_steps(monkeypatch)
    check_partitions(build(), graph)
    assert after[0] == stop
    assert not set(before) & set(after)
    assert PartitionedGraph.open(tmp_path / "g", verify=True).n_edges == graph.n_edges


def test_an_interrupted_build_with_other_arguments_may_be_overwritten(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        watched_steps(patched, "part-00001")
        with pytest.raises(OSError, match="No space left"):
            PartitionedGraph.from_graph(random_graph(), 3, tmp_path / "g")
    other = random_graph(4)
    check_partitions(PartitionedGraph.from_graph(other, 3, tmp_path / "g", overwrite=True), other)


# ------------------------------------------------------------------------------------------------ one builder at a time


BUILDER = """
import os
import sys
import time
import numpy as np
from spectralgp import Graph, PartitionedGraph

points = np.random.default_rng(int(sys.argv[1])).random((400, 2))
graph = Graph.from_points(points, n_neighbors=5)
replace = os.replace
if sys.argv[2:]:
    os.replace = lambda source, target: (
        (print("parts", flush=True), time.sleep(600)) if "part-0" in str(target) else replace(source, target)
    )
print("ready", flush=True)
for folder in sys.stdin:
    try:
        PartitionedGraph.from_graph(graph, 3, folder.strip(), n_hops=1)
        print("built", flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
"""
BUSY = r"folder must be built by one process at a time; got .*, and another process builds here: "
NAMED = BUSY + r"process \d+ on "  # a builder that has the lock and was stopped before it wrote its name is not named


def builder(*arguments: str) -> subprocess.Popen[str]:
    """A process that builds a graph in every folder it is told."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", BUILDER, *arguments]
    return subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def built_by(seed: int) -> Graph:
    return Graph.from_points(np.random.default_rng(seed).random((400, 2)), n_neighbors=5)


@pytest.mark.slow
def test_of_two_processes_one_builds_and_the_other_is_told(tmp_path):
    graphs, processes = [built_by(seed) for seed in (1, 2)], [builder(str(seed)) for seed in (1, 2)]
    answers = []
    try:
        assert [process.stdout.readline() for process in processes] == ["ready\n", "ready\n"]
        for attempt in range(60):
            folder = tmp_path / f"{attempt}"
            for process in processes:
                process.stdin.write(f"{folder}\n")
            for process in processes:
                process.stdin.flush()
            found = [process.stdout.readline() for process in processes]
            answers += found
            assert found.count("built\n") == 1, found
            winner = graphs[found.index("built\n")]
            finished = PartitionedGraph.open(folder, verify=True)
            assert same_matrix(weights_of(finished), winner.weights)
            assert not (folder / "building.lock").exists()
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    told = [answer for answer in answers if answer != "built\n"]
    assert all(re.match(f"ValueError ({BUSY}|folder must not hold a partitioned graph yet)", answer) for answer in told)
    assert any(re.match(f"ValueError {NAMED}", answer) for answer in told)


def test_a_build_that_was_killed_is_finished_by_the_same_call(tmp_path):
    graph, process = built_by(1), builder("1", "stop")
    try:
        process.stdin.write(f"{tmp_path / 'g'}\n")
        process.stdin.flush()
        assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "parts\n"]
        with pytest.raises(ValueError, match=f"{NAMED}.*if it runs no more, delete .*building.lock"):
            PartitionedGraph.from_graph(graph, 3, tmp_path / "g", n_hops=1)
    finally:
        process.kill()
        process.communicate()
    assert (tmp_path / "g" / "building.lock").exists()
    check_partitions(PartitionedGraph.from_graph(graph, 3, tmp_path / "g", n_hops=1), graph)
    assert not (tmp_path / "g" / "building.lock").exists()


@pytest.mark.parametrize(
    ("lock", "is_taken_over"),
    [
        ({"host": "elsewhere", "pid": 1}, False),
        ({"pid": os.getppid()}, False),
        ({"process": "that had our number before"}, True),
        ("", False),
    ],
    ids=["another machine", "alive", "our number", "not written yet"],
)
def test_only_locks_of_the_dead_are_taken_over(tmp_path, lock, is_taken_over):
    graph, file = random_graph(), tmp_path / "g" / "building.lock"
    file.parent.mkdir()
    known = {"host": socket.gethostname(), "pid": os.getpid(), "process": "other"}
    file.write_text(json.dumps(known | lock) if lock else "")
    if is_taken_over:
        check_partitions(PartitionedGraph.from_graph(graph, 3, tmp_path / "g"), graph)
        return
    with pytest.raises(ValueError, match=rf"another process builds here: .*delete {re.escape(str(file))}"):
        PartitionedGraph.from_graph(graph, 3, tmp_path / "g", overwrite=True)
    assert [path.name for path in file.parent.iterdir()] == ["building.lock"]
