import copy
import pickle
import re

import joblib
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given

from spectralgp.graphs import Graph, as_graph
from spectralgp.graphs.core import laplacian_parts
from strategies import adjacencies, graphs, graphs_and_permutations

ROUNDING = 1e-13  # relative, a few operations on doubles
EIGENVALUE = 1e-11  # relative, an eigenvalue of a small or well-separated problem

PATH = np.array([[0, 2.0, 0], [2, 0, 1], [0, 1, 0]])


def slow_laplacian(weights, kind):
    n_nodes = len(weights)
    degrees = [sum(weights[i][j] for j in range(n_nodes)) for i in range(n_nodes)]
    laplacian = np.zeros((n_nodes, n_nodes))
    for i in range(n_nodes):
        for j in range(n_nodes):
            if kind == "combinatorial":
                laplacian[i, j] = (degrees[i] if i == j else 0.0) - weights[i][j]
            elif degrees[i] > 0 and degrees[j] > 0:
                laplacian[i, j] = (i == j) - weights[i][j] / np.sqrt(degrees[i] * degrees[j])
    if kind == "balanced":
        laplacian = np.diag([sum(i != j and -row[j] for j in range(n_nodes)) for i, row in enumerate(laplacian)]) + (
            laplacian - np.diag(np.diag(laplacian))
        )
    return laplacian


def slow_components(weights):
    labels = list(range(len(weights)))
    for _ in labels:
        for i, j in np.argwhere(weights):
            labels[i] = labels[j] = min(labels[i], labels[j])
    return labels


@given(adjacencies())
def test_fields_are_those_of_the_dense_matrix(dense):
    graph = Graph(dense)
    np.testing.assert_array_equal(graph.weights.toarray(), dense)
    assert graph.n_nodes == len(dense)
    assert graph.n_edges == np.count_nonzero(np.triu(dense))
    np.testing.assert_allclose(graph.degrees, dense.sum(axis=1), rtol=ROUNDING)
    assert graph.weights.indices.dtype == graph.weights.indptr.dtype == np.int32


@given(graphs())
def test_components_equal_slow_flooding(graph):
    slow = slow_components(graph.weights.toarray())
    same = graph.components[:, None] == graph.components[None, :]
    np.testing.assert_array_equal(same, np.equal.outer(slow, slow))
    assert graph.n_components == len(set(slow))
    assert graph.is_connected == (len(set(slow)) == 1)
    assert sorted(set(graph.components.tolist())) == list(range(graph.n_components))


@pytest.mark.parametrize("name", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
@given(dense=adjacencies())
def test_every_sparse_format_gives_the_same_weights(name, kind, dense):
    weights = getattr(scipy.sparse, f"{name}_{kind}")(dense)
    np.testing.assert_array_equal(Graph(weights).weights.toarray(), dense)
    np.testing.assert_array_equal(weights.toarray(), dense)  # as it was


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.float32])
def test_duplicates_are_added_up_without_overflow(dtype):
    ends = ([0, 0, 1, 1], [1, 1, 0, 0])
    weights = scipy.sparse.coo_array((np.full(4, 100, dtype=dtype), ends), shape=(2, 2))
    np.testing.assert_array_equal(Graph(weights).weights.toarray(), [[0, 200], [200, 0]])
    weights = scipy.sparse.coo_array((np.full(4, True), ends), shape=(2, 2))
    np.testing.assert_array_equal(Graph(weights).weights.toarray(), weights.toarray())  # true and true is true


def test_unsorted_64_bit_indices_become_sorted_32_bit_ones():
    rows = scipy.sparse.csr_array(
        (np.array([2.0, 1, 2, 1]), np.array([1, 2, 0, 1]), np.array([0, 1, 3, 4])), shape=(3, 3)
    )
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    graph = Graph(rows)
    np.testing.assert_array_equal(graph.weights.toarray(), PATH)
    np.testing.assert_array_equal(graph.weights.indices, [1, 0, 2, 1])
    assert graph.weights.indices.dtype == graph.weights.indptr.dtype == np.int32


@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.bsr_array])
@pytest.mark.parametrize(("part", "value"), [("indices", 7), ("indices", -1), ("indptr", 50)])
def test_malformed_sparse_matrices_are_refused(form, part, value):
    weights = form(PATH)
    getattr(weights, part)[1] = value  # SciPy would write out of bounds
    with pytest.raises(ValueError, match=r"weights must be a well-formed sparse matrix; got .* Build it anew"):
        Graph(weights)


def test_stored_zeros_are_dropped():
    weights = scipy.sparse.csr_array(([1.0, 0.0, 1.0, 0.0], ([0, 0, 1, 2], [1, 2, 0, 2])), shape=(3, 3))
    graph = Graph(weights)
    assert (graph.n_edges, graph.weights.nnz) == (1, 2)
    assert weights.nnz == 4  # the caller's matrix is as it was


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
def test_nothing_outside_can_change_a_graph(make):
    weights, coordinates = make(PATH), np.zeros((3, 2))
    graph = Graph(weights, coordinates=coordinates)
    weights[0, 1] = 7.0
    coordinates[0] = 7.0
    np.testing.assert_array_equal(graph.weights.toarray(), PATH)
    np.testing.assert_array_equal(graph.coordinates, np.zeros((3, 2)))
    for array in (graph.weights.data, graph.weights.indices, graph.weights.indptr, graph.coordinates):
        assert not array.flags.writeable
    for array in (graph.degrees, graph.components):
        assert not array.flags.writeable
    with pytest.raises(AttributeError, match="cannot assign to field 'names'"):
        graph.names = ("a", "b", "c")


def test_copies_are_the_graph_itself_and_pickles_stay_frozen():
    graph = Graph(PATH, names=["a", "b", "c"], coordinates=np.eye(3))
    assert copy.copy(graph) is copy.deepcopy([graph])[0] is graph
    assert graph.degrees.sum() == 6.0
    restored = pickle.loads(pickle.dumps(graph))
    assert restored.names == ("a", "b", "c")
    np.testing.assert_array_equal(restored.weights.toarray(), PATH)
    np.testing.assert_array_equal(restored.coordinates, np.eye(3))
    assert not restored.weights.data.flags.writeable
    assert not restored.coordinates.flags.writeable
    np.testing.assert_array_equal(restored.laplacian().toarray(), graph.laplacian().toarray())


def test_graphs_in_files_of_joblib_may_be_mapped_into_memory(tmp_path):
    graph = Graph.from_points(np.random.default_rng(0).random((50, 2)), 3, names=range(50))
    joblib.dump(graph, tmp_path / "graph.joblib")
    restored = joblib.load(tmp_path / "graph.joblib", mmap_mode="r")
    np.testing.assert_array_equal(restored.weights.toarray(), graph.weights.toarray())
    np.testing.assert_array_equal(restored.laplacian("normalized").toarray(), graph.laplacian("normalized").toarray())
    assert restored.subgraph([3, 1]).names == (3, 1)


@pytest.mark.parametrize("n_nodes", [1, 5])
def test_edgeless_graphs_equal_those_of_a_zero_matrix(n_nodes):
    edgeless, dense = Graph.edgeless(n_nodes), Graph(np.zeros((n_nodes, n_nodes)))
    np.testing.assert_array_equal(edgeless.weights.toarray(), dense.weights.toarray())
    assert edgeless.weights.dtype == np.float64
    assert edgeless.weights.indices.dtype == edgeless.weights.indptr.dtype == np.int32
    assert (edgeless.n_edges, edgeless.n_components, edgeless.names) == (0, n_nodes, None)
    for kind in ("combinatorial", "normalized", "balanced"):
        np.testing.assert_array_equal(edgeless.laplacian(kind, scaled=True).toarray(), np.zeros((n_nodes, n_nodes)))
    assert pickle.loads(pickle.dumps(edgeless)).n_nodes == n_nodes


def test_edgeless_graphs_cost_no_more_than_their_nodes():
    graph = Graph.edgeless(10**7)  # a dense matrix would take 800 TB
    weights = graph.weights
    assert (weights.data.nbytes, weights.indices.nbytes, weights.indptr.nbytes) == (0, 0, 4 * (10**7 + 1))
    assert Graph.edgeless(3, names=pd.Index(["a", "b", "c"])).names == ("a", "b", "c")


def test_edgeless_graphs_without_nodes_are_refused():
    with pytest.raises(ValueError, match="n_nodes must be an integer of at least 1; got 0"):
        Graph.edgeless(0)
    with pytest.raises(ValueError, match="names must have one name for each of 3 nodes; got 2"):
        Graph.edgeless(3, names=["a", "b"])


@pytest.mark.parametrize("kind", ["combinatorial", "normalized", "balanced"])
@given(graph=graphs())
def test_laplacians_equal_the_loops(kind, graph):
    dense = slow_laplacian(graph.weights.toarray().tolist(), kind)
    laplacian = graph.laplacian(kind)
    assert isinstance(laplacian, scipy.sparse.csr_array)
    scale = np.abs(dense).max()
    np.testing.assert_allclose(laplacian.toarray(), dense, rtol=ROUNDING, atol=ROUNDING * scale)
    np.testing.assert_array_equal(laplacian.toarray(), laplacian.toarray().T)
    largest = np.linalg.eigvalsh(dense)[-1] if graph.n_edges else 0.0
    assert graph.largest_eigenvalue(kind) == pytest.approx(largest, rel=EIGENVALUE)
    scaled = dense / largest if graph.n_edges else dense
    np.testing.assert_allclose(graph.laplacian(kind, scaled=True).toarray(), scaled, rtol=EIGENVALUE, atol=EIGENVALUE)


@given(graphs_and_permutations())
def test_relabelling_nodes_relabels_everything(pair):
    graph, order = pair
    moved = graph.subgraph(order)
    np.testing.assert_array_equal(moved.weights.toarray(), graph.weights.toarray()[np.ix_(order, order)])
    for kind in ("combinatorial", "normalized", "balanced"):
        expected = graph.laplacian(kind).toarray()[np.ix_(order, order)]
        np.testing.assert_allclose(
            moved.laplacian(kind).toarray(), expected, rtol=ROUNDING, atol=ROUNDING * np.abs(expected).max()
        )


@pytest.mark.parametrize("kind", ["combinatorial", "normalized", "balanced"])
def test_largest_eigenvalue_by_lanczos_equals_dense(kind):
    points = np.random.default_rng(3).random((400, 2))
    graph = Graph.from_points(points, n_neighbors=6)
    exact = np.linalg.eigvalsh(slow_laplacian(graph.weights.toarray().tolist(), kind))[-1]
    assert graph.largest_eigenvalue(kind) == pytest.approx(exact, rel=EIGENVALUE)
    again = Graph(graph.weights)
    assert again.largest_eigenvalue(kind) == graph.largest_eigenvalue(kind)


@pytest.mark.parametrize("n_nodes", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_largest_eigenvalue_of_long_rings_and_paths_is_known(n_nodes):
    nodes = np.arange(n_nodes)
    ring = Graph.from_edges(np.column_stack([nodes, (nodes + 1) % n_nodes]))
    path = Graph.from_edges(np.column_stack([nodes[:-1], nodes[1:]]))
    assert ring.largest_eigenvalue() == pytest.approx(4.0, rel=EIGENVALUE)
    assert path.largest_eigenvalue() == pytest.approx(2 + 2 * np.cos(np.pi / n_nodes), rel=EIGENVALUE)
    for graph in (ring, path):
        assert graph.largest_eigenvalue("normalized") == pytest.approx(2.0, rel=EIGENVALUE)


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("n_nodes", [3, 300])
def test_largest_eigenvalues_of_stars_in_any_unit_are_known(unit, n_nodes):
    star = Graph.from_edges([(0, leaf, unit) for leaf in range(1, n_nodes)])
    assert star.largest_eigenvalue() == pytest.approx(n_nodes * unit, rel=EIGENVALUE)
    assert star.largest_eigenvalue("normalized") == pytest.approx(2.0, rel=EIGENVALUE)


@pytest.mark.parametrize("kind", ["combinatorial", "normalized", "balanced"])
def test_some_rows_of_a_laplacian_are_those_of_the_whole(kind):
    """As a partition has them: its own rows, and the degrees of all nodes that they join."""
    graph = Graph([[0, 2.0, 0.5, 0, 0], [2, 0, 3, 0, 0], [0.5, 3, 0, 1.5, 0], [0, 0, 1.5, 0, 0], [0, 0, 0, 0, 0]])
    weights, diagonal = laplacian_parts(graph.weights[:3], graph.degrees, kind)
    expected = graph.laplacian(kind).toarray()[:3]
    np.testing.assert_allclose(np.eye(3, 5) * diagonal[:, None] - weights.toarray(), expected, rtol=ROUNDING)
    assert (weights.shape, diagonal.shape) == ((3, 5), (3,))


def test_unknown_laplacians_are_refused():
    graph = Graph(PATH)
    for ask in (graph.laplacian, graph.laplacian_parts, graph.largest_eigenvalue):
        with pytest.raises(ValueError, match=r"kind must be one of 'combinatorial', .*; got 'normalised'"):
            ask("normalised")


@pytest.mark.parametrize(
    "weights", [scipy.sparse.csr_array((2, 3)), scipy.sparse.coo_array(np.ones(5)), scipy.sparse.csr_array((0, 0))]
)
def test_sparse_weights_that_are_not_square_are_refused(weights):
    match = r"weights must have (shape \(n_nodes, n_nodes\)|at least one node); got .*an adjacency matrix"
    with pytest.raises(ValueError, match=match):
        Graph(weights)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ([[0, 1.0], [0, 0]], r"weights must .*; got weights\[0, 1\] = 1.0 and weights\[1, 0\] = 0.0, .*undirected"),
        (
            [[0, 1, 3.0], [1, 0, 2], [9, 2.5, 0]],
            r"weights\[0, 2\] = 3.0 and weights\[2, 0\] = 9.0, the largest of 2 diff",
        ),
        ([[0, -1.0], [-1, 0]], r"weights must be non-negative; got weights\[0, 1\] = -1.0\. .*absolute values"),
        ([[0, np.nan], [np.nan, 0]], r"weights must be finite; got .*(nan at index \(0, 1\)|\[0, 1\] = nan)"),
        ([[0, np.inf], [np.inf, 0]], r"weights must be finite; got .*inf"),
        ([[0, 1.0], [1, 2]], r"weights must .*; got 1 self-loops, the first at node 1\. .*fill_diagonal"),
        (np.ones((2, 3)), r"weights must have shape \(n_nodes, n_nodes\); got \(2, 3\)\. .*Graph.from_edges"),
        (np.zeros((0, 0)), r"weights must have at least one node; got shape \(0, 0\)"),
    ],
)
def test_bad_weights_are_refused(form, weights, match):
    with pytest.raises(ValueError, match=match):
        Graph(form(weights))


def test_weights_that_are_no_matrix_are_refused():
    with pytest.raises(ValueError, match=r"weights must have shape \(n_nodes, n_nodes\); got \(3,\)"):
        Graph(np.zeros(3))
    with pytest.raises(ValueError, match=r"weights must have shape \(n_nodes, n_nodes\); got \(0,\)"):
        Graph([])
    for weights in (1j * PATH, scipy.sparse.csr_array(1j * PATH)):
        with pytest.raises(TypeError, match=r"weights must be .*real numbers; got dtype complex128"):
            Graph(weights)
    with pytest.raises(TypeError, match="weights must be an array of real numbers; got dtype <U1"):
        Graph([["a", "b"], ["c", "d"]])
    with pytest.raises(TypeError, match=r"weights must .*; got DataFrame.*as_graph"):
        Graph(pd.DataFrame(PATH))
    for weights in (None, 3, "weights", {"a": 1}):
        with pytest.raises(TypeError, match="weights must be a NumPy array or a SciPy sparse matrix; got"):
            Graph(weights)


@pytest.mark.parametrize("make", [Graph, as_graph])
@pytest.mark.parametrize(
    "edges",
    [
        [(0, 1), (1, 2)],
        np.array([[0, 1], [1, 2]]),
        np.array([[0, 1], [2, 1]]),
        [(0, 1), (1, 2), (2, 3)],
        np.array([[0, 1, 2], [1, 2, 1], [2, 3, 1]]),
        [(0, 1, 0.5), (1, 2, 0.3), (2, 0, 0.7)],
        [(0, 1, 0.5), (1, 2, 0.3)],
        [("a", "b"), ("b", "c")],
        [("a", "b", 0.5), ("b", "c", 0.3)],
        [("a", 1), ("b", 2, 3)],
        np.array([["a", "b"], ["b", "c"]], dtype=object),
        {"source": ["a"], "target": ["b"]},
    ],
)
def test_edges_given_as_weights_are_sent_to_from_edges(make, edges):
    with pytest.raises((TypeError, ValueError), match=r"^weights must .*Graph\.from_edges"):
        make(edges)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix])
@given(graph=graphs(min_nodes=2).filter(lambda graph: graph.n_edges))
def test_laplacians_given_as_weights_are_recognised(form, graph):
    laplacian = form(graph.laplacian().toarray())
    match = r"weights must be an adjacency matrix; got a Laplacian.*np\.diag\(np\.diag\(L\)\) - L"
    with pytest.raises(ValueError, match=match):
        Graph(laplacian)
    dense = graph.laplacian().toarray()
    np.testing.assert_array_equal(Graph(np.diag(np.diag(dense)) - dense).weights.toarray(), graph.weights.toarray())
    with pytest.raises(ValueError, match=r"weights must be an adjacency matrix; got .*normalised Laplacian"):
        Graph(form(graph.laplacian("normalized").toarray() + 0.1 * np.eye(graph.n_nodes)))
    with pytest.raises(ValueError, match=r"weights must have a zero diagonal; got .* self-loops.*fill_diagonal"):
        Graph(-laplacian)


def test_weights_whose_sum_overflows_are_refused():
    complete = np.ones((3, 3)) - np.eye(3)
    match = r"weights must have a finite sum; got weights up to 1e\+308\. Divide them"
    for make in (Graph, as_graph, lambda weights: Graph(scipy.sparse.coo_array(weights))):
        with pytest.raises(ValueError, match=match):
            make(1e308 * complete)
    with pytest.raises(ValueError, match=match):
        Graph.from_edges([(0, 1, 1e308), (1, 2, 1e308)])
    heavy = Graph(1e307 * complete)
    np.testing.assert_allclose(heavy.degrees, 2e307, rtol=ROUNDING)
    assert heavy.largest_eigenvalue() == pytest.approx(3e307, rel=EIGENVALUE)
    np.testing.assert_allclose(heavy.laplacian("normalized").toarray(), np.eye(3) - complete / 2, rtol=ROUNDING)


def test_degrees_that_have_lost_their_digits_are_refused():
    weights = 5e-324 * np.array([[0, 1, 0], [1, 0, 3], [0, 3, 0]])
    match = r"weights must sum to 0 or at least 2\.2\S*e-308 at every node; got 4\.94e-324 at node 0\. Multiply"
    with pytest.raises(ValueError, match=match):
        Graph(weights)
    with pytest.raises(ValueError, match=match):
        Graph.from_edges([(0, 1, 5e-324), (1, 2, 1.5e-323)])
    # a weight may be as small where others are not, as a Gaussian of distances is
    weights = np.array([[0, 1e-310, 1.0], [1e-310, 0, 1e-300], [1.0, 1e-300, 0]])
    np.testing.assert_array_equal(Graph(weights).weights.toarray(), weights)
    with pytest.raises(ValueError, match=r"weights must sum to 0 or at least .*; got 1e-310 at node 0"):
        Graph(weights).subgraph([0, 1])
    degrees = weights.sum(axis=1)
    expected = (degrees > 0) * np.eye(3) - weights / np.sqrt(degrees)[:, None] / np.sqrt(degrees)
    np.testing.assert_allclose(Graph(weights).laplacian("normalized").toarray(), expected, rtol=ROUNDING)


def test_masked_weights_are_refused():
    mask = np.zeros((3, 3), dtype=bool)
    assert Graph(np.ma.array(PATH, mask=mask)).n_edges == 2
    mask[0, 1] = mask[1, 0] = True
    match = r"weights must have no masked entries; got 2, the first at index \(0, 1\)\. Use 0 where there is no edge"
    for make in (Graph, as_graph):
        with pytest.raises(ValueError, match=match):
            make(np.ma.array(PATH, mask=mask))
    sparse = scipy.sparse.csr_array(PATH)
    sparse.data = np.ma.array(sparse.data, mask=[True, False, False, False])
    with pytest.raises(ValueError, match=r"weights must have no masked entries; got 1"):
        Graph(sparse)


@pytest.mark.parametrize("column", ["source", "target", "weight"])
def test_masked_edges_are_refused(column):
    edges = np.ma.array([[0, 1, 2], [1, 2, 1]])
    edges[1, ["source", "target", "weight"].index(column)] = np.ma.masked
    table = {"source": edges[:, 0], "target": edges[:, 1], "weight": edges[:, 2]}
    name = "weights" if column == "weight" else "edges"
    match = rf"{name} must have no masked entries; got 1, the first at index \(1,\)"
    for form in (edges, edges.astype(float), table, list(edges), [tuple(row) for row in edges]):
        with pytest.raises(ValueError, match=match):
            Graph.from_edges(form)
    if column == "weight":
        with pytest.raises(ValueError, match=match):
            Graph.from_edges(edges[:, :2].data, edges[:, 2])


def test_masked_coordinates_points_and_selections_are_refused():
    points = np.ma.array(np.eye(3), mask=np.eye(3) > 0)
    with pytest.raises(ValueError, match=r"coordinates must .*; got 3, the first at index \(0, 0\)"):
        Graph(PATH, coordinates=points)
    with pytest.raises(ValueError, match=r"points must have no masked entries; got 3, the first at index \(0, 0\)"):
        Graph.from_points(points, 1)
    for nodes in (np.ma.array([0, 1], mask=[False, True]), np.ma.array([True, True, False], mask=[False, True, False])):
        with pytest.raises(ValueError, match=r"nodes must have no masked entries; got 1, the first at index \(1,\)"):
            Graph(PATH).subgraph(nodes)
    assert Graph(PATH).subgraph(np.ma.array([0, 1])).n_nodes == 2


@pytest.mark.parametrize(
    ("form", "dtype", "tolerance"),
    [
        (np.asarray, np.float64, 1e-8),
        (np.asarray, np.float32, 1e-5),
        (np.asarray, np.float16, 1e-2),
        (np.ndarray.tolist, np.float64, 1e-8),
        (lambda weights: weights.astype(object), np.float64, 1e-8),
        (scipy.sparse.csr_array, np.float64, 1e-8),
        (scipy.sparse.csr_array, np.float32, 1e-5),
    ],
)
def test_rounding_asymmetry_is_averaged_and_anything_larger_refused(form, dtype, tolerance):
    weights = PATH.astype(dtype)
    weights[0, 1] *= dtype(1 + tolerance / 2)
    assert weights[0, 1] != weights[1, 0]
    stored = Graph(form(weights)).weights.toarray()
    assert stored[0, 1] == stored[1, 0] == pytest.approx((float(weights[0, 1]) + 2) / 2, rel=1e-15)
    weights[0, 1] = dtype(2 * (1 + 2 * tolerance))
    with pytest.raises(ValueError, match=r"weights must be symmetric; .*1 differences"):
        Graph(form(weights))


@pytest.mark.parametrize("dtype", [np.int64, np.uint32])
def test_integers_do_not_round(dtype):
    weights = np.array([[0, 10**9], [10**9 + 1, 0]], dtype=dtype)
    for form in (np.asarray, np.ndarray.tolist, scipy.sparse.csr_array):
        with pytest.raises(ValueError, match="weights must be symmetric"):
            Graph(form(weights))


@pytest.mark.parametrize(
    ("names", "error", "match"),
    [
        (["a", "b"], ValueError, r"names must have one name for each of 3 nodes; got 2\. Pass them in the order"),
        (["a", "b", "a"], ValueError, "names must be distinct; got 'a' more than once"),
        (["a", "b", None], ValueError, r"names must not be missing; got None\. Name every node"),
        (["a", np.nan, float("nan")], ValueError, r"names must not be missing; got nan\. Name every node"),
        (pd.Index(["a", "b", None]), ValueError, "names must not be missing; got"),
        (pd.array([1, 2, None]), ValueError, "names must not be missing; got <NA>"),
        (np.ma.array([1, 2, 3], mask=[0, 1, 0]), ValueError, "names must not be missing; got None"),
        ({"a", "b", "c"}, TypeError, r"names must be a sequence with one name for each node; got \{.*order"),
        (np.array("abc"), TypeError, "names must be a sequence with one name for each node; got array"),
        (b"abc", TypeError, "names must be a sequence with one name for each node; got b'abc'"),
        ("abc", TypeError, "names must be a sequence with one name for each node; got 'abc'"),
        (3, TypeError, "names must be a sequence with one name for each node; got 3"),
        ([["a"], ["b"], ["c"]], TypeError, "names must be hashable; got"),
    ],
)
def test_bad_names_are_refused(names, error, match):
    with pytest.raises(error, match=match):
        Graph(PATH, names=names)


def test_bad_coordinates_are_refused():
    with pytest.raises(ValueError, match=r"coordinates must .*; got \(2, 2\)\. Rows are nodes"):
        Graph(PATH, coordinates=np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"coordinates must be finite; got nan at index \(0, 0\)"):
        Graph(PATH, coordinates=np.full((3, 2), np.nan))


def test_subgraphs_by_position_mask_and_name_carry_everything():
    graph = Graph(PATH, names=["a", "b", "c"], coordinates=[[0, 0], [1, 1], [2, 2]])
    lists = [2, 1], np.array([2, 1], dtype=np.uint8), ["c", "b"], pd.Index(["c", "b"]), np.array(["c", "b"])
    for nodes in (*lists, (node for node in (2, 1)), {2: "a dict", 1: "of nodes"}, map(str, ["c", "b"])):
        part = graph.subgraph(nodes)
        np.testing.assert_array_equal(part.weights.toarray(), [[0, 1], [1, 0]])
        assert part.names == ("c", "b")
        np.testing.assert_array_equal(part.coordinates, [[2, 2], [1, 1]])
    for mask in ([True, False, True], np.array([True, False, True])):
        assert graph.subgraph(mask).names == ("a", "c")
        assert graph.subgraph(mask).n_edges == 0
    assert Graph(PATH).subgraph([0]).names is None


def test_integer_names_are_selected_through_positions():
    graph = Graph(PATH, names=[10, 20, 30])
    assert graph.subgraph(graph.positions([30, 10])).names == (30, 10)
    np.testing.assert_array_equal(graph.positions(np.array([30, 10])), [2, 0])
    with pytest.raises(ValueError, match=r"nodes must be positions from 0 to 2; got 30\. .*graph.positions"):
        graph.subgraph([30])


def test_a_list_of_integers_is_positions_whatever_the_names_are():
    graph = Graph(PATH, names=[2, 0, 1])
    assert graph.subgraph([2, 0]).names == (1, 2)
    assert graph.subgraph(graph.positions([2, 0])).names == (2, 0)
    assert Graph(PATH, names=[0, 1, 2]).subgraph([2, 0]).names == (2, 0)  # where both say the same
    mixed = Graph(PATH, names=[1, "a", 2])
    assert mixed.subgraph([1, 2]).names == ("a", 2)
    assert mixed.subgraph(["a", 2]).names == ("a", 2)  # a list that is not all integers is names


@pytest.mark.parametrize(
    ("names", "error", "match"),
    [
        ("ab", TypeError, r"names must be a sequence of names; got 'ab'\. Pass a list, such as \['ab'\]"),
        (3, TypeError, r"names must be a sequence of names; got 3\. Pass a list, such as \[3\]"),
        ([["a"]], TypeError, "names must be hashable; got"),
        (np.array([["a", "b"]]), TypeError, "names must be hashable; got"),
    ],
)
def test_positions_of_what_are_no_names_are_refused(names, error, match):
    with pytest.raises(error, match=match):
        Graph(PATH, names=["a", "b", "c"]).positions(names)


@pytest.mark.parametrize(
    ("nodes", "error", "match"),
    [
        (np.array([[0, 1], [2, 0]]), ValueError, r"nodes must have one dimension; got shape \(2, 2\)"),
        ([10**30], ValueError, r"nodes must be positions from 0 to 2; got 1000000000000000000000000000000"),
        (np.array([2**64 - 1], dtype=np.uint64), ValueError, "from 0 to 2; got 18446744073709551615"),
        ([], ValueError, "nodes must be at least one node, each once; got no node"),
        ([False] * 3, ValueError, "nodes must be at least one node, each once; got no node"),
        ([0, 0], ValueError, "nodes must be at least one node, each once; got a node more than once"),
        ([-1], ValueError, "nodes must be positions from 0 to 2; got -1"),
        ([True, False], ValueError, r"nodes must have shape \(3,\) when it is a mask; got \(2,\)"),
        (["a", "z"], ValueError, r"names must be names of nodes; got 'z' \(1 unknown in all\)\. .*graph.names"),
        ("a", TypeError, r"nodes must be a sequence of nodes; got 'a'\. Pass a list, such as \['a'\]"),
        (1, TypeError, r"nodes must be a sequence of nodes; got 1\. Pass a list, such as \[1\]"),
    ],
)
def test_bad_selections_are_refused(nodes, error, match):
    with pytest.raises(error, match=match):
        Graph(PATH, names=["a", "b", "c"]).subgraph(nodes)


def test_names_of_a_nameless_graph_are_refused():
    with pytest.raises(ValueError, match="names must belong to a graph with names; got a graph without"):
        Graph(PATH).subgraph(["a"])


@pytest.mark.parametrize(
    ("several", "error", "message"),
    [
        ([Graph(PATH), Graph(PATH)], TypeError, "got 2 of them. A graph that varies in time"),
        ((PATH, PATH, PATH), TypeError, "one graph for all signals; got 3 of them"),
        ({"monday": PATH}, TypeError, "got 1 of them"),
        ([nx.path_graph(3)], TypeError, "pass one, such as their mean, or fit a model for each"),
        (np.stack([PATH, PATH]), ValueError, "one adjacency matrix, with two axes; got three, of lengths (2, "),
    ],
)
def test_a_graph_that_varies_in_time_is_refused_by_name(several, error, message):
    with pytest.raises(error, match=re.escape(message)):
        as_graph(several)


def test_as_graph_of_graphs_arrays_and_sparse_matrices():
    graph = Graph(PATH)
    assert as_graph(graph) is graph
    for form in (PATH, PATH.tolist(), scipy.sparse.csc_matrix(PATH), scipy.sparse.dok_array(PATH)):
        np.testing.assert_array_equal(as_graph(form).weights.toarray(), PATH)
    with pytest.raises(TypeError, match="weights must be a NumPy array or a SciPy sparse matrix; got object"):
        as_graph(object())
    with pytest.raises(ValueError, match="weights must be symmetric"):
        as_graph(np.triu(PATH))
