"""Graphs from lists and tables of edges."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from spectralgp.graphs import Graph
from strategies import adjacencies

PATH = np.array([[0, 2.0, 0], [2, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    "edges",
    [
        [(0, 1, 2.0), (1, 2, 1.0)],
        [(1, 0, 2), (1, 2, 1), (0, 1, 2), (1, 2, 1)],
        np.array([[0, 1, 2.0], [2, 1, 1.0]]),
        np.array([[0, 1, 2], [2, 1, 1]]),
        {"source": [0, 1], "target": [1, 2], "weight": [2, 1]},
        pd.DataFrame({"target": [1, 2], "weight": [2, 1], "source": [0, 1], "colour": ["red", "blue"]}),
        iter([(0, 1, 2.0), (1, 2, 1.0)]),
    ],
)
def test_every_form_of_edges_gives_the_same_graph(edges):
    graph = Graph.from_edges(edges)
    np.testing.assert_array_equal(graph.weights.toarray(), PATH)
    assert graph.names is None
    assert graph.weights.indices.dtype == np.int32


def test_weights_beside_edges():
    for edges in ([(0, 1), (1, 2)], np.array([[0, 1], [1, 2]]), {"source": [0, 1], "target": [1, 2]}):
        np.testing.assert_array_equal(Graph.from_edges(edges, [2, 1]).weights.toarray(), PATH)
        np.testing.assert_array_equal(Graph.from_edges(edges).weights.toarray(), PATH > 0)
    assert Graph.from_edges([(0, 1), (1, 2)], [2, 0]).n_edges == 1


def test_labels_become_names_in_order_of_appearance():
    graph = Graph.from_edges([("z", "b"), ("a", "b")], [2, 1], coordinates=np.eye(3))
    assert graph.names == ("z", "b", "a")
    np.testing.assert_array_equal(graph.weights.toarray(), PATH)
    np.testing.assert_array_equal(graph.coordinates, np.eye(3))
    frame = pd.DataFrame({"source": ["z", "a"], "target": ["b", "b"], "weight": [2.0, 1.0]})
    assert Graph.from_edges(frame).names == ("z", "b", "a")
    assert Graph.from_edges(np.array([["z", "b"], ["a", "b"]])).names == ("z", "b", "a")
    assert Graph.from_edges([((0, 0), (0, 1)), ((0, 1), "x")]).names == ((0, 0), (0, 1), "x")
    assert Graph.from_edges([(1, "a"), ("a", 2)]).names == (1, "a", 2)
    assert Graph.from_edges([(True, 2), (2, 0)]).names == (True, 2, 0)


@pytest.mark.parametrize("form", [list, tuple, iter, pd.Series])
def test_tuples_are_labels_in_every_form_of_table(form):
    sources, targets = [(0, 0), (1, 0)], [(0, 1), (0, 1)]
    table = {"source": form(sources), "target": targets, "weight": [2, 1]}
    graph = Graph.from_edges(table)
    assert graph.names == ((0, 0), (0, 1), (1, 0))
    np.testing.assert_array_equal(graph.weights.toarray(), PATH)
    ragged = Graph.from_edges({"source": [("a",), ("b", 1)], "target": [("b", 1), "c"]})
    assert ragged.names == (("a",), ("b", 1), "c")


def test_pairs_without_an_order_are_edges():
    graph = Graph.from_edges([frozenset(("a", "b")), frozenset(("b", "c"))], names=["a", "b", "c"])
    np.testing.assert_array_equal(graph.weights.toarray(), PATH > 0)


def test_dates_are_labels():
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[ns]")
    assert Graph.from_edges({"source": days[:1], "target": days[1:]}).names == tuple(days)


def test_fields_of_structured_arrays_are_columns():
    fields = [("weight", float), ("target", int), ("source", int)]
    edges = np.array([(2.0, 1, 0), (1.0, 2, 1)], dtype=fields)
    np.testing.assert_array_equal(Graph.from_edges(edges).weights.toarray(), PATH)
    np.testing.assert_array_equal(Graph.from_edges(edges.view(np.recarray)).weights.toarray(), PATH)


def test_names_give_the_order_and_may_include_isolated_nodes():
    graph = Graph.from_edges([("z", "b"), ("a", "b")], [2, 1], names=["a", "b", "alone", "z"])
    assert graph.names == ("a", "b", "alone", "z")
    expected = [[0, 1, 0, 0], [1, 0, 0, 2], [0, 0, 0, 0], [0, 2, 0, 0]]
    np.testing.assert_array_equal(graph.weights.toarray(), expected)


def test_integers_are_positions_unless_the_names_are_integers():
    assert Graph.from_edges([(0, 1)], names=iter(["a", "b", "c"])).names == ("a", "b", "c")
    graph = Graph.from_edges([(1001, 1003)], names=[1003, 1002, 1001])
    assert graph.names == (1003, 1002, 1001)
    np.testing.assert_array_equal(np.argwhere(graph.weights.toarray()), [[0, 2], [2, 0]])


def test_edgeless_graphs_need_a_number_of_nodes():
    for dtype in (bool, np.float16, str, object):
        assert Graph.from_edges(np.empty((0, 2), dtype=dtype), n_nodes=3).n_nodes == 3
    assert repr(Graph.from_edges([], n_nodes=3)) == "Graph(3 nodes, 0 edges)"
    assert Graph.from_edges([], names=["a", "b"]).names == ("a", "b")
    assert Graph.from_edges(np.empty((0, 2)), names=[5, 6]).n_nodes == 2
    with pytest.raises(ValueError, match="n_nodes must be given when there are no edges and no names; got None"):
        Graph.from_edges([])
    with pytest.raises(ValueError, match="names must name at least one node; got none"):
        Graph.from_edges([], names=[])


@pytest.mark.parametrize(
    ("edges", "options", "match"),
    [
        ([(0, 1, 2.0), (1, 0, 3.0)], {}, r"edges must .*; got 2.0 and 3.0 between 0 and 1\."),
        ([("a", "b", 2.0), ("b", "a", 3.0)], {}, r"got 2.0 and 3.0 between 'a' and 'b'\. .*add or average"),
        ([("a", "b"), ("b", "b"), ("a", "a")], {}, "edges must join two different nodes; got a self-loop at 'b'"),
        ([(0, 1), (3, 4)], {}, r"edges must .*; got no edge at node 2\. .*pass n_nodes=5"),
        ([(1, 2), (2, 3)], {}, r"got no edge at node 0\. Count nodes from zero"),
        ([(1001, 10**12)], {}, r"edges must .*; got 1 edges.* labels as names"),
        ([(0.0, 2.0**53)], {"n_nodes": 3}, "edges must join nodes from 0 to 2; got 9007199254740992"),
        ([(0.0, 2.0**53 + 2)], {"n_nodes": 3}, r"whole-numbered nodes or named ones; got numbers .* beyond 2\*\*53"),
        ([(0.0, 1.5)], {"n_nodes": 3}, "whole-numbered nodes or named ones; got numbers with a fraction"),
        ([(0, 10**6 + 2)], {}, r"edges must mention every node from 0 to 1000002 .*; got 1 edges\."),
        (
            [(0, 10**6 + 1)],  # as many as memory is taken for whatever comes
            {},
            r"edges must mention every node from 0 to 1000001 .*; got no edge at node 1\.",
        ),
        ([(0, 5)], {"n_nodes": 3}, "edges must join nodes from 0 to 2; got 5"),
        ([(0, -1)], {"n_nodes": 3}, "edges must join nodes from 0 to 2; got -1"),
        ([(0, -1), (0, -2)], {}, "edges must join nodes from 0; got -2"),
        (np.empty((0, 2), dtype=bool), {}, "n_nodes must be given when there are no edges and no names; got None"),
        ([("a", "b")], {"names": ["a", "c"]}, r"edges must join nodes listed in names; got 'b'\. Add it to names"),
        ([("a", "b")], {"n_nodes": 3}, r"n_nodes must equal the number of labels in edges, 2; got 3\. Name nodes"),
        ([("a", "b")], {"names": ["a", "b"], "n_nodes": 3}, "names must have one name for each of 3 nodes; got 2"),
        ([("a", None)], {}, r"edges must name both ends; got None\. Drop the rows"),
        ([("a", float("nan")), ("a", "b")], {}, "edges must name both ends; got nan"),
        ([(0, 1), (1, float("nan"))], {}, "edges must join whole-numbered nodes .*, NaN or infinity. Drop such"),
        ([("a", pd.NA)], {}, "edges must name both ends; got <NA>"),
        ([(0.0, 1.5)], {}, "edges must join whole-numbered nodes or named ones; got numbers with a fraction"),
        ([("a", "b", -1.0)], {}, r"weights must be non-negative; got -1.0 between 'a' and 'b'\. .*absolute values"),
        ([(0, 1, np.nan)], {}, r"weights must be finite; got nan at index \(0,\)"),
        ([(0, 1, 1.0)], {"weights": [1.0]}, "weights must be None when the edges carry weights themselves; got both"),
        ([(0, 1)], {"weights": [1.0, 2.0]}, r"weights must have shape \(n_edges,\) with n_edges = 1; got \(2,\)"),
        ([(0, 1), (1, 2, 3.0)], {}, "edges must be pairs .u, v., triples"),
        (["ab", "bc"], {}, "edges must be pairs .u, v., triples"),
        ("ab", {}, "edges must be pairs .u, v., triples .*; got 'ab'"),
        (3, {}, "edges must be pairs .u, v., triples .*; got 3"),
        (np.zeros((4, 4)), {}, r"edges must be pairs .*; got shape \(4, 4\)\. For an adjacency matrix .* use as_graph"),
        (PATH, {}, r"edges must be pairs .*; got an adjacency matrix\. For an adjacency matrix .* use as_graph"),
        (
            scipy.sparse.csr_array(PATH),
            {},
            r"edges must be pairs .*; got shape \(3, 3\)\. For an adjacency matrix .* use as_graph",
        ),
        ([{"source": 0, "target": 1}], {}, r"edges must be pairs .* or a table with columns"),
        (np.array(3), {}, r"edges must be pairs .*; got shape \(\)\."),
        (np.arange(8).reshape(2, 4), {}, r"edges must be pairs .*; got shape \(2, 4\)\..* pass edges\.T"),
        (np.array([[0, 1e300]]), {}, r"edges must join whole-numbered nodes .*; got .*beyond 2\*\*53"),
        ([(0, -1e300)], {"n_nodes": 3}, r"edges must join whole-numbered nodes .*; got .*beyond 2\*\*53"),
        ({"u": [0], "v": [1]}, {}, r"edges must have columns 'source', 'target' .*; got \['u', 'v'\]\. Rename"),
        (np.array([(0, 1)], dtype=[("u", int), ("v", int)]), {}, r"edges must .*; got \['u', 'v'\]\. Rename"),
        ({"source": [0], "to": [1]}, {}, r"edges must have columns 'source', 'target' .*; got \['source', 'to'\]\."),
        ({"from": [0], "target": [1]}, {}, r"edges must .*; got \['from', 'target'\]\."),
        ({"source": "ab", "target": "bc"}, {}, r"column 'source' of edges must be a sequence; got 'ab'"),
        ({"source": 0, "target": 1}, {}, r"column 'source' of edges must be a sequence; got 0"),
        ({"source": np.zeros((2, 2)), "target": [0, 1]}, {}, r"column 'source' of edges must .*; got shape \(2, 2\)"),
        (
            pd.DataFrame([[0, 1, 1]], columns=["source", "target", "target"]),
            {},
            r"column 'target' of edges must have one dimension; got shape \(1, 2\)",
        ),
        ({"source": [0, 1], "target": [1]}, {}, r"edges must have columns of one length; got lengths \[2, 1\]"),
    ],
)
def test_bad_edges_are_refused(edges, options, match):
    with pytest.raises(ValueError, match=match):
        Graph.from_edges(edges, **options)


def test_unhashable_labels_and_odd_numbers_of_nodes_are_refused():
    with pytest.raises(TypeError, match="edges must join hashable nodes; got"):
        Graph.from_edges([(["a"], ["b"])])
    with pytest.raises(TypeError, match=r"n_nodes must be an integer of at least 1; got 2.5"):
        Graph.from_edges([(0, 1)], n_nodes=2.5)


@given(adjacencies(), st.randoms(use_true_random=False))
def test_edges_in_any_order_and_direction_give_the_matrix_back(dense, random):
    edges = [(int(i), int(j), float(dense[i, j])) for i, j in np.argwhere(dense) if random.random() < 0.5 or i < j]
    random.shuffle(edges)
    graph = Graph.from_edges(edges, n_nodes=len(dense))
    np.testing.assert_array_equal(graph.weights.toarray(), dense)
