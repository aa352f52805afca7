"""Graphs of other libraries: what they say about themselves and what `as_graph` makes of them."""

import re
from fractions import Fraction

import libpysal.graph
import libpysal.weights
import networkx as nx
import numpy as np
import pandas as pd
import pygsp
import pytest

from cases import run_python
from spectralgp.graphs import Graph, as_graph

ROUNDING = 1e-13  # relative


# ----- networkx -----


@pytest.mark.parametrize("seed", range(3))
def test_networkx_graphs_agree_on_laplacians_and_components(seed):
    theirs = nx.gnp_random_graph(25, 0.06, seed=seed)
    rng = np.random.default_rng(seed)
    for _, _, attributes in theirs.edges(data=True):
        attributes["weight"] = rng.random()
    theirs = nx.relabel_nodes(theirs, {node: f"node {node}" for node in theirs})
    ours = as_graph(theirs)
    assert ours.names == tuple(theirs)
    assert (ours.n_nodes, ours.n_edges) == (theirs.number_of_nodes(), theirs.number_of_edges())
    np.testing.assert_allclose(ours.laplacian().toarray(), nx.laplacian_matrix(theirs).toarray(), rtol=ROUNDING)
    normalized = nx.normalized_laplacian_matrix(theirs).toarray()
    np.testing.assert_allclose(ours.laplacian("normalized").toarray(), normalized, atol=ROUNDING)
    components = {frozenset(np.flatnonzero(ours.components == label)) for label in range(ours.n_components)}
    assert {frozenset(ours.positions(part).tolist()) for part in nx.connected_components(theirs)} == components
    part = list(theirs)[::3]
    expected = nx.to_numpy_array(theirs.subgraph(part), nodelist=part)
    np.testing.assert_array_equal(ours.subgraph(part).weights.toarray(), expected)


def test_networkx_round_trip_and_missing_weights():
    graph = Graph([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    back = as_graph(nx.from_scipy_sparse_array(graph.weights))
    assert back.names == (0, 1, 2)
    np.testing.assert_array_equal(back.weights.toarray(), graph.weights.toarray())
    theirs = nx.Graph([("a", "b")])
    theirs.add_edge("b", "c", weight=2.0)
    np.testing.assert_array_equal(as_graph(theirs).weights.toarray(), [[0, 1, 0], [1, 0, 2], [0, 2, 0]])


def test_networkx_edge_lists_are_tables():
    theirs = nx.Graph()
    theirs.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", 1.0)])
    table = nx.to_pandas_edgelist(theirs)
    np.testing.assert_array_equal(Graph.from_edges(table).weights.toarray(), as_graph(theirs).weights.toarray())
    listed = Graph.from_edges(theirs.edges, names=list(theirs))
    np.testing.assert_array_equal(listed.weights.toarray(), nx.to_numpy_array(theirs, weight=None))


def test_weights_of_networkx_may_be_any_real_numbers():
    for weight in (2, 2.0, np.float32(2), np.int8(2), Fraction(2)):
        assert as_graph(nx.Graph([("a", "b", {"weight": weight})])).degrees.tolist() == [2.0, 2.0]
    assert as_graph(nx.Graph([("a", "b", {"weight": np.True_})])).degrees.tolist() == [1.0, 1.0]


def test_subclasses_and_simple_multigraphs_are_networkx_graphs():
    class Roads(nx.Graph):
        pass

    assert as_graph(Roads([("a", "b")])).names == ("a", "b")
    assert as_graph(nx.MultiGraph([("a", "b")])).n_edges == 1


def test_unfit_networkx_graphs_are_refused():
    for graph, message in (
        (nx.DiGraph([(0, 1)]), r"graph must be undirected; got a networkx DiGraph\. Pass graph.to_undirected"),
        (nx.MultiGraph([(0, 1), (0, 1)]), "graph must have one edge between two nodes; got a networkx MultiGraph"),
        (nx.Graph(), "graph must have at least one node; got an empty networkx graph"),
        (nx.Graph([(0, 0), (0, 1)]), "weights must have a zero diagonal; got 1 self-loops"),
    ):
        with pytest.raises(ValueError, match=message):
            as_graph(graph)
    for weight in ("heavy", "2.0", None, 2j, [1.0]):
        heavy = nx.Graph([("a", "b"), ("b", "c", {"weight": weight})])
        match = rf"numbers as its edge attribute 'weight'; got {re.escape(repr(weight))} between 'b' and 'c'"
        with pytest.raises(ValueError, match=f"graph must have {match}"):
            as_graph(heavy)
    for weight in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"weights must be finite; got weights\[0, 1\] = (nan|inf)"):
            as_graph(nx.Graph([("a", "b", {"weight": weight})]))
    with pytest.raises(TypeError, match=r"graph must be a networkx.Graph; got NodeView"):
        as_graph(nx.path_graph(3).nodes)


# ----- PyGSP -----


def test_pygsp_graphs_agree_on_laplacians_and_keep_coordinates():
    theirs = pygsp.graphs.Sensor(30, seed=4)
    ours = as_graph(theirs)
    assert ours.n_edges == theirs.n_edges
    np.testing.assert_array_equal(ours.coordinates, theirs.coords)
    np.testing.assert_allclose(ours.laplacian().toarray(), theirs.L.toarray(), atol=ROUNDING * theirs.dw.max())
    theirs.compute_laplacian("normalized")
    np.testing.assert_allclose(ours.laplacian("normalized").toarray(), theirs.L.toarray(), atol=ROUNDING)
    theirs.compute_fourier_basis()
    assert ours.largest_eigenvalue("normalized") == pytest.approx(theirs.e[-1], rel=1e-11)


def test_pygsp_graphs_without_coordinates_or_undirected_edges():
    weights = np.array([[0, 2.0], [2, 0]])
    ours = as_graph(pygsp.graphs.Graph(weights))
    assert ours.coordinates is None
    np.testing.assert_array_equal(ours.weights.toarray(), weights)
    with pytest.raises(ValueError, match=r"weights must be symmetric; got .*undirected"):
        as_graph(pygsp.graphs.Graph(np.array([[0, 2.0], [1, 0]])))
    line = pygsp.graphs.Graph(weights)
    line.coords = np.array([0.0, 1.0])
    np.testing.assert_array_equal(as_graph(line).coordinates, [[0.0], [1.0]])
    with pytest.raises(TypeError, match="graph must be a PyGSP graph; got pygsp Heat"):
        as_graph(pygsp.filters.Heat(line))


# ----- libpysal -----

NEIGHBOURS = {"z": ["b"], "b": ["z", "c"], "c": ["b"], "alone": []}
PATH = {("z", "b"), ("b", "z"), ("b", "c"), ("c", "b")}


def named_edges(graph):
    return {(graph.names[i], graph.names[j]) for i, j in zip(*graph.weights.nonzero(), strict=True)}


def test_libpysal_weights_keep_ids():
    theirs = libpysal.weights.W(NEIGHBOURS, silence_warnings=True)
    ours = as_graph(theirs)
    assert set(ours.names) == set(NEIGHBOURS)
    assert named_edges(ours) == PATH
    assert as_graph(libpysal.weights.lat2W(3, 3)).names == tuple(range(9))
    assert as_graph(libpysal.weights.lat2W(3, 3)).n_edges == 12
    ordered = libpysal.weights.W(NEIGHBOURS, silence_warnings=True, id_order=[*"zbc", "alone"])
    assert named_edges(as_graph(ordered)) == PATH
    sparse = libpysal.weights.WSP(theirs.sparse, id_order=theirs.id_order)
    assert named_edges(as_graph(sparse)) == PATH


def test_libpysal_graphs_keep_ids_and_isolated_nodes():
    theirs = libpysal.graph.Graph.from_arrays(
        ["z", "b", "b", "c", "alone"], ["b", "z", "c", "b", "alone"], [1.0, 1.0, 2.0, 2.0, 0.0]
    )
    ours = as_graph(theirs)
    assert ours.names == ("z", "b", "c", "alone")
    np.testing.assert_array_equal(ours.weights.toarray(), [[0, 1, 0, 0], [1, 0, 2, 0], [0, 2, 0, 0], [0, 0, 0, 0]])


def test_row_standardised_libpysal_weights_are_refused_until_binary():
    theirs = libpysal.weights.lat2W(3, 3)
    theirs.transform = "r"
    with pytest.raises(ValueError, match=r"weights must be symmetric; got .*use the binary transform"):
        as_graph(theirs)
    theirs.transform = "b"
    assert as_graph(theirs).n_edges == 12
    graph = libpysal.graph.Graph.from_W(libpysal.weights.lat2W(3, 3))
    with pytest.raises(ValueError, match=r"weights must be symmetric; got .*use the binary transform"):
        as_graph(graph.transform("r"))
    assert as_graph(graph.transform("b")).n_edges == 12


def test_one_sided_libpysal_neighbours_are_refused_until_symmetrised():
    theirs = libpysal.weights.KNN.from_array(np.random.default_rng(0).random((20, 2)), k=3)
    with pytest.raises(ValueError, match=r"weights must be symmetric; got .*w\.symmetrize\(\)"):
        as_graph(theirs)
    points = np.random.default_rng(0).random((20, 2))
    ours = Graph.from_points(points, 3, weights="binary")
    np.testing.assert_array_equal(as_graph(theirs.symmetrize()).weights.toarray(), ours.weights.toarray())


@pytest.mark.filterwarnings("ignore:Objects based on the `Geometry`:FutureWarning")
def test_other_libpysal_objects_are_refused():
    with pytest.raises(TypeError, match=r"graph must be a libpysal W or libpysal.graph.Graph; got"):
        as_graph(libpysal.cg.Point((0.0, 1.0)))


# ----- pandas -----


def test_pandas_adjacencies_keep_names():
    frame = pd.DataFrame([[0, 2], [2, 0]], index=["a", "b"], columns=["a", "b"])
    ours = as_graph(frame)
    assert ours.names == ("a", "b")
    np.testing.assert_array_equal(ours.weights.toarray(), [[0, 2], [2, 0]])
    pairs = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    assert as_graph(pd.DataFrame([[0, 2], [2, 0]], index=pairs, columns=pairs)).names == (("a", 1), ("b", 2))


def test_integer_labels_are_names_too():
    frame = pd.DataFrame([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    theirs = [
        frame,
        nx.from_pandas_adjacency(frame),
        libpysal.weights.W({0: [1], 1: [0, 2], 2: [1]}, {0: [2], 1: [2, 1], 2: [1]}, silence_warnings=True),
        libpysal.graph.Graph.from_arrays([0, 1, 1, 2], [1, 0, 2, 1], [2.0, 2.0, 1.0, 1.0]),
    ]
    for graph in map(as_graph, theirs):
        assert graph.names == (0, 1, 2)
        np.testing.assert_array_equal(graph.weights.toarray(), frame.to_numpy())
    moved = nx.Graph()
    moved.add_weighted_edges_from([(2, 1, 1.0), (1, 0, 2.0)])
    assert as_graph(moved).names == (2, 1, 0)
    np.testing.assert_array_equal(as_graph(moved).positions([0, 1, 2]), [2, 1, 0])
    assert as_graph(frame.to_numpy()).names is None


def test_unfit_pandas_tables_are_refused():
    frame = pd.DataFrame([[0, 2], [2, 0]], index=["a", "b"], columns=["b", "a"])
    with pytest.raises(ValueError, match=r"graph must have the same names in its index and columns.*frame.loc"):
        as_graph(frame)
    edges = pd.DataFrame({"source": ["a"], "target": ["b"]})
    with pytest.raises(ValueError, match=r"graph must have the same names .* shape \(1, 2\).*Graph.from_edges"):
        as_graph(edges)
    with pytest.raises(ValueError, match=r"graph must have the same names .*; got a pandas Series"):
        as_graph(pd.Series([1.0]))


def test_no_library_is_imported_that_the_user_does_not_have():
    # a module that is None in sys.modules cannot be imported, as if it were not installed
    program = """
import sys
libraries = ("networkx", "pygsp", "libpysal", "pandas")
sys.modules.update(dict.fromkeys(libraries))
import numpy as np
from spectralgp.graphs import Graph, as_graph
as_graph(np.eye(2)[::-1])
Graph.from_edges({"source": ["a"], "target": ["b"]})
Graph.from_points(np.eye(3), 1)
print([name for name in libraries if sys.modules[name] is not None])
"""
    assert run_python(program).strip() == "[]"
