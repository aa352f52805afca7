"""Graphs from points: neighbours against brute force, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spectralgp.graphs import Graph
from spectralgp.graphs.points import usual_bandwidth

ROUNDING = 1e-13  # relative, a few operations on doubles

SYMMETRIZE = {
    "maximum": lambda directed: np.maximum(directed, directed.T),
    "average": lambda directed: (directed + directed.T) / 2,
    "minimum": lambda directed: np.minimum(directed, directed.T),
}
WEIGH = {
    "gaussian": lambda squared: np.exp(-squared / 0.1),
    "inverse": lambda squared: 1 / np.sqrt(squared),
    "binary": lambda squared: 1.0,
}


def slow_neighbours(points, n_neighbors, weigh):
    directed = np.zeros((len(points), len(points)))
    for i, point in enumerate(points):
        squared = np.sum((points - point) ** 2, axis=1)
        squared[i] = np.inf
        for j in np.argsort(squared)[:n_neighbors]:
            directed[i, j] = weigh(squared[j])
    return directed


@pytest.mark.parametrize("weights", WEIGH)
@pytest.mark.parametrize("symmetrize", SYMMETRIZE)
@pytest.mark.parametrize("n_dimensions", [1, 2, 5])
def test_nearest_neighbours_equal_brute_force(weights, symmetrize, n_dimensions):
    points = np.random.default_rng(n_dimensions).random((40, n_dimensions))
    bandwidth = 0.1 if weights == "gaussian" else None
    graph = Graph.from_points(points, 4, weights=weights, bandwidth=bandwidth, symmetrize=symmetrize)
    expected = SYMMETRIZE[symmetrize](slow_neighbours(points, 4, WEIGH[weights]))
    np.testing.assert_allclose(graph.weights.toarray(), expected, rtol=ROUNDING)
    np.testing.assert_array_equal(graph.coordinates, points)
    assert graph.weights.indices.dtype == np.int32


@pytest.mark.parametrize("weights", WEIGH)
def test_all_within_a_radius_equal_brute_force(weights):
    points = np.random.default_rng(5).random((40, 3))
    bandwidth = 0.1 if weights == "gaussian" else None
    graph = Graph.from_points(points, radius=0.4, weights=weights, bandwidth=bandwidth, names=range(100, 140))
    expected = np.zeros((40, 40))
    for i in range(40):
        for j in range(40):
            squared = np.sum((points[i] - points[j]) ** 2)
            if i != j and squared <= 0.4**2:
                expected[i, j] = WEIGH[weights](squared)
    assert 0 < np.count_nonzero(expected) < 40 * 39
    np.testing.assert_allclose(graph.weights.toarray(), expected, rtol=ROUNDING)
    assert graph.names == tuple(range(100, 140))


def test_default_is_ten_neighbours_with_the_mean_squared_distance_as_bandwidth():
    points = np.random.default_rng(6).random((30, 2))
    squared = slow_neighbours(points, 10, lambda value: value)
    bandwidth = squared[squared > 0].mean()
    directed = slow_neighbours(points, 10, lambda value: np.exp(-value / bandwidth))
    expected = np.maximum(directed, directed.T)
    np.testing.assert_allclose(Graph.from_points(points).weights.toarray(), expected, rtol=ROUNDING)


@pytest.mark.parametrize("symmetrize", SYMMETRIZE)
def test_a_crowd_in_one_place_moves_nobody_elses_neighbours(symmetrize):
    # of six coincident points some are missing from their own lists of three
    apart = np.array([[10.0], [11.0], [12.5], [14.5], [17.0]])
    graph = Graph.from_points(np.vstack([np.zeros((6, 1)), apart]), 2, bandwidth=9.0, symmetrize=symmetrize)
    dense = graph.weights.toarray()
    expected = SYMMETRIZE[symmetrize](slow_neighbours(apart, 2, lambda squared: np.exp(-squared / 9.0)))
    np.testing.assert_allclose(dense[6:, 6:], expected, rtol=ROUNDING)
    assert not dense[:6, 6:].any()
    if symmetrize == "average":  # every node of the crowd chose two of the others, at distance zero
        assert dense[:6, :6].sum() == 12.0


@given(st.data())
def test_neighbours_among_coincident_and_equally_distant_points(data):
    """On a small lattice ties are everywhere: whoever is strictly nearer than the last neighbour must be one."""
    n_nodes, n_dimensions = data.draw(st.integers(2, 30)), data.draw(st.integers(1, 3))
    points = data.draw(hnp.arrays(np.int8, (n_nodes, n_dimensions), elements=st.integers(0, 3), fill=st.nothing()))
    n_neighbors = data.draw(st.integers(1, n_nodes - 1))
    graph = Graph.from_points(points, n_neighbors, weights="binary", symmetrize="average")
    chosen = graph.weights.toarray()
    squared = np.sum((points[:, None].astype(int) - points) ** 2, axis=2)
    others = np.where(np.eye(n_nodes) > 0, 10**6, squared)
    last = np.sort(others, axis=1)[:, n_neighbors - 1]
    assert chosen.sum() == n_nodes * n_neighbors  # each chose as many, none itself
    assert chosen[others < last[:, None]].all()
    assert (others[chosen > 0] <= np.maximum.outer(last, last)[chosen > 0]).all()
    within = Graph.from_points(points, radius=1.5, weights="binary").weights.toarray()
    np.testing.assert_array_equal(within, others <= 2)


@pytest.mark.parametrize("options", [{"n_neighbors": 2}, {"radius": 1.0}, {"radius": 1e200}])
@pytest.mark.parametrize("weights", WEIGH)
def test_points_whose_squared_distances_overflow_are_refused(options, weights):
    points = np.random.default_rng(0).standard_normal((20, 2))
    for scale in (1e145, 1e160, 1e300, 1e308):
        match = r"points must lie within 1e\+140 of each other; got coordinates that differ by .*\. Rescale them"
        with pytest.raises(ValueError, match=match):
            Graph.from_points(scale * np.clip(points, -1, 1), weights=weights, **options)


@pytest.mark.parametrize("options", [{"n_neighbors": 1}, {"radius": 1e-149}, {"radius": 1.0}])
@pytest.mark.parametrize("weights", WEIGH)
def test_points_whose_squared_distances_underflow_are_refused(options, weights):
    for points in ([[0.0], [1e-170], [2e-170]], [[0.0, 1.0], [1e-150, 1.0], [0.5, 1.0]]):
        with pytest.raises(ValueError, match=r"points must coincide or lie 1e-140 apart; got .* Rescale them"):
            Graph.from_points(points, weights=weights, **options)


@pytest.mark.parametrize("scale", [1e-130, 1e130])
def test_graphs_do_not_depend_on_the_unit_of_length(scale):
    points = np.random.default_rng(7).random((30, 2))
    expected = Graph.from_points(points, 4).weights.toarray()
    np.testing.assert_allclose(Graph.from_points(scale * points, 4).weights.toarray(), expected, rtol=ROUNDING)
    expected = Graph.from_points(points, radius=0.3, weights="inverse").weights.toarray()
    rescaled = Graph.from_points(scale * points, radius=0.3 * scale, weights="inverse").weights.toarray()
    np.testing.assert_allclose(rescaled * scale, expected, rtol=ROUNDING)


def test_a_radius_of_the_spacing_joins_all_neighbours_on_a_grid():
    # 0.1 * 3 and 0.1 * 4 are 0.10000000000000003 apart
    steps = 0.1 * np.arange(20)
    points = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    assert Graph.from_points(points, radius=0.1, weights="binary").n_edges == 2 * 20 * 19
    assert Graph.from_points(points, radius=0.1 * (1 - 1e-6), weights="binary").n_edges == 0


def test_a_radius_reaches_a_billionth_farther_and_no_more():
    for beyond, n_edges in ((0.5e-9, 1), (2e-9, 0)):
        assert Graph.from_points([[0.0], [3 * (1 + beyond)]], radius=3.0, weights="binary").n_edges == n_edges


def test_points_as_far_and_as_near_as_may_be():
    for distance in (1e140, 1e-140):
        assert Graph.from_points([[0.0], [distance]], 1, weights="inverse").weights[0, 1] == pytest.approx(1 / distance)


def test_a_radius_that_reaches_nobody_leaves_isolated_nodes():
    for weights in WEIGH:
        graph = Graph.from_points([[0.0], [1.0]], radius=0.5, weights=weights)
        assert (graph.n_edges, graph.n_components) == (0, 2)
    assert Graph.from_points([[0.0]], radius=0.5).n_nodes == 1


@pytest.mark.parametrize(
    ("points", "options", "match"),
    [
        (np.zeros(5), {}, r"points must have shape \(n_nodes, n_dimensions\); got \(5,\)\. Rows are nodes; use points"),
        (np.zeros((0, 2)), {}, r"points must have at least one row and one column; got \(0, 2\)"),
        ([[np.nan, 1]], {}, r"points must be finite; got nan at index \(0, 0\)"),
        ([[0.0]], {}, r"points must have at least two rows for nearest neighbours; got 1\."),
        (np.eye(5), {}, "n_neighbors must be an integer of at least 1 and at most 4; got 10"),
        (np.eye(5), {"n_neighbors": 0}, "n_neighbors must be an integer of at least 1 and at most 4; got 0"),
        (np.eye(5), {"n_neighbors": 2, "radius": 1.0}, "n_neighbors must .*; got n_neighbors=2"),
        (np.eye(5), {"radius": -1.0}, r"radius must be a finite number above 0; got -1.0"),
        (np.eye(5), {"weights": "heat"}, "weights must be one of 'gaussian', 'inverse', 'binary'; got 'heat'"),
        (np.eye(5), {"symmetrize": "sum"}, "symmetrize must be one of 'maximum', 'average', 'minimum'; got 'sum'"),
        (np.eye(5), {"bandwidth": 0}, "bandwidth must be a finite number above 0; got 0"),
        (np.eye(5), {"weights": "binary", "bandwidth": 1}, "bandwidth must be None unless weights='gaussian'; got 1.0"),
        (np.eye(5), {"n_neighbors": 2, "bandwidth": 1e-3}, r"bandwidth must .*; got 0.001 .*at least 0.00286"),
        ([[0.0], [26.8]], {"n_neighbors": 1, "bandwidth": 1}, r"bandwidth must .*; got 1.0 .*at least 1.03"),
        (np.eye(5), {"n_neighbors": 2, "bandwidth": 5e-324}, r"bandwidth must be large enough .*; got 5e-324"),
        (np.zeros((3, 1)), {"n_neighbors": 1}, r"points must not all coincide .*; got only distances of 0"),
        (np.zeros((3, 1)), {"n_neighbors": 1, "weights": "inverse"}, "points must be distinct when weights='inverse'"),
    ],
)
def test_bad_points_are_refused(points, options, match):
    with pytest.raises(ValueError, match=match):
        Graph.from_points(points, **options)


def test_the_weather_graph_of_the_paper(data_folder):
    """DESIGN.md section 10: the graph that PyGSP 0.5.1 built, step by step."""
    from scipy.io import loadmat

    coordinates = loadmat(data_folder / "city45data.mat")["coord45"].astype(float)
    centred = coordinates - coordinates.mean(axis=0)
    half_diagonal = 0.5 * np.linalg.norm(np.ptp(coordinates, axis=0))
    points = centred * (len(centred) ** 0.5 / 10 / half_diagonal)
    graph = Graph.from_points(points, n_neighbors=10, weights="gaussian", bandwidth=0.1, symmetrize="average")
    directed = slow_neighbours(points, 10, lambda squared: np.exp(-squared / 0.1))
    np.testing.assert_allclose(graph.weights.toarray(), (directed + directed.T) / 2, rtol=ROUNDING)


@pytest.mark.parametrize("seed", range(3))
def test_an_exact_sum_rounds_once_whatever_the_order_and_the_pieces(seed):
    rng = np.random.default_rng(seed)
    numbers = np.exp(rng.uniform(-600, 600, 5000))
    numbers[:10] = [0.0, 5e-324, 2.0**-1022, 1.0, 1.0 + 2.0**-52, 1e300, 3.0, 1e-300, 0.1, 2.0**53 - 1]
    whole = usual_bandwidth([numbers])
    shuffled = rng.permutation(numbers)
    assert usual_bandwidth([shuffled[:1234], shuffled[1234:]]) == whole
    assert whole == pytest.approx(float(sum(map(Fraction, numbers.tolist())) / 5000), rel=2**-52)
