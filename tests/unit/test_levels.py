"""Levels and log scales of nodes that were never observed: a field against dense algebra, and reading by it."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import oracle
from spectralgp import Graph
from spectralgp.model.signals import levels, read_signals
from tolerances import EXACT, FORMULA, GRADIENT

N_NODES = 14
PLACES = np.random.default_rng(3).random((N_NODES, 2))
GRAPHS = {
    "near": Graph.from_points(PLACES, n_neighbors=3),
    "disconnected": Graph(oracle.disconnected()),
    "isolated": Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], n_nodes=6),
    "edgeless": Graph.edgeless(5),
}
every_graph = pytest.mark.parametrize("name", GRAPHS)


def unit_on_graph(weights, log_smoothness):
    """Dense: the inverse of a matrix, twice, without the mean."""
    n_nodes, matrix = len(weights), oracle.laplacian(weights, "balanced", scaled=True)
    root = np.linalg.inv(np.eye(n_nodes) + np.exp(log_smoothness) * matrix)
    centring = np.eye(n_nodes) - 1 / n_nodes
    dense = centring @ root @ root @ centring
    return dense / np.mean(np.diag(dense))


def unit_on_places(places, log_length):
    distances = cdist(places, places) * np.sqrt(3) / np.exp(log_length)
    return (1 + distances) * np.exp(-distances)


def cases():
    rng = np.random.default_rng(0)
    for name, graph in GRAPHS.items():
        dense, n_nodes = graph.weights.toarray(), graph.n_nodes
        unit = levels.smooth_covariance(graph.laplacian("balanced").toarray())
        logs = np.array([0.3, -1.5, 1.7])
        yield name, unit, unit_on_graph(dense, logs[2]), logs, rng.standard_normal(n_nodes), rng.random(n_nodes)
    logs = np.array([0.3, -1.5, -0.4])
    unit = levels.matern_covariance(cdist(PLACES, PLACES))
    yield "places", unit, unit_on_places(PLACES, logs[2]), logs, rng.standard_normal(N_NODES), rng.random(N_NODES)


every_case = pytest.mark.parametrize("case", list(cases()), ids=lambda case: case[0])


@every_case
def test_fields_are_those_of_dense_algebra(case):
    """Unit covariances, the evidence, what is predicted, and every value left out, in equations (23b) and (23c)."""
    _, unit, dense, logs, values, errors = case
    everything = np.arange(values.size)
    assert oracle.relative_error(unit.between(logs[2], everything, everything)[0], dense) < EXACT
    known, unseen = everything[2:], everything[:2]
    field = levels.NodeField(unit, logs, values[known], errors[known], known)
    complete = np.exp(logs[0]) * dense + np.exp(logs[1]) * np.eye(values.size)
    noisy = complete[np.ix_(known, known)] + np.diag(errors[known])
    # differences from the first value have no mean, and say all that there is beside it
    contrasts = np.column_stack([-np.ones(known.size - 1), np.eye(known.size - 1)])
    covariance, apart = contrasts @ noisy @ contrasts.T, contrasts @ values[known]
    form = apart @ np.linalg.solve(covariance, apart)
    expected = -0.5 * (form + np.linalg.slogdet(2 * np.pi * covariance)[1])
    assert oracle.relative_error(field.log_evidence, expected, max(abs(expected), 1.0)) < FORMULA
    for one, (mean, variance) in zip(unseen, zip(*field.at(unseen), strict=True), strict=True):
        assert_kriged(mean, variance, noisy, complete[one, known], complete[one, one], values[known])
    for place, (missed, variance) in enumerate(zip(*field.left_out(), strict=True)):
        others = np.flatnonzero(np.arange(known.size) != place)
        across = noisy[place, others]
        own = values[known[place]] - missed, variance
        assert_kriged(*own, noisy[np.ix_(others, others)], across, noisy[place, place], values[known[others]])


def assert_kriged(mean, variance, covariance, across, own, values):
    """Ordinary kriging: weights that add up to one, by Lagrange's multiplier."""
    ones = np.ones(len(values))
    system = np.block([[covariance, ones[:, None]], [ones[None], np.zeros((1, 1))]])
    right = np.append(across, 1.0)
    weights = np.linalg.solve(system, right)
    assert oracle.relative_error(mean, weights[:-1] @ values, 1.0) < FORMULA
    assert oracle.relative_error(variance, own - weights @ right, 1.0) < FORMULA


@every_case
def test_gradients_of_the_evidence_are_differences(case):
    _, unit, _, logs, values, errors = case
    known, step = np.arange(1, values.size), 1e-5

    def evidence(moved):
        return levels.NodeField(unit, moved, values[known], errors[known], known).log_evidence

    gradient = levels.NodeField(unit, logs, values[known], errors[known], known).gradient
    for axis, own in enumerate(gradient):
        move = step * np.eye(logs.size)[axis]
        assert own == pytest.approx(
            (evidence(logs + move) - evidence(logs - move)) / (2 * step), rel=GRADIENT, abs=1e-6
        )


@every_graph
@pytest.mark.parametrize("n_known", [1, 2, 3, 4])
def test_few_known_nodes_say_what_they_can(name, n_known):
    graph = GRAPHS[name]
    known = np.arange(graph.n_nodes) < n_known
    values = np.where(known, np.arange(graph.n_nodes) ** 2.0, np.nan)
    mean, variance = levels.complete_by_graph(graph, values, np.full(graph.n_nodes, 0.01), known)
    np.testing.assert_array_equal(mean[known], values[known])
    assert not variance[known].any()
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(variance))
    assert np.all(variance[~known] > 0) == (n_known > 1)
    if n_known < 3:
        np.testing.assert_allclose(mean[~known], values[known].mean())
    if n_known == 2:  # the error of a mean of two, and the deviation of a third
        np.testing.assert_allclose(variance[~known], 1.5 * np.var(values[known], ddof=1))


@every_graph
def test_equal_levels_are_those_of_unseen_nodes(name):
    graph = GRAPHS[name]
    known = np.arange(graph.n_nodes) > 0
    mean, variance = levels.complete_by_graph(graph, np.full(graph.n_nodes, 1e9 / 3), np.zeros(graph.n_nodes), known)
    np.testing.assert_allclose(mean, 1e9 / 3, rtol=1e-14)
    assert not variance.any()


def test_units_change_nothing_but_units():
    graph, known = GRAPHS["near"], np.arange(N_NODES) > 2
    values, errors = np.sin(4 * PLACES[:, 0]), np.full(N_NODES, 0.01)
    mean, variance = levels.complete_by_graph(graph, values, errors, known)
    moved, wide = levels.complete_by_graph(graph, 1e6 * values + 5e6, 1e12 * errors, known)
    np.testing.assert_allclose(moved, 1e6 * mean + 5e6, rtol=1e-6)
    np.testing.assert_allclose(wide, 1e12 * variance, rtol=1e-5)


def test_coordinates_serve_where_they_say_more_than_edges():
    """Edges between random nodes; one coordinate is in other units, as longitudes far from the equator are."""
    rng = np.random.default_rng(7)
    points = rng.random((50, 2)) * [1.0, 3.0]
    edges = {tuple(sorted(rng.choice(50, 2, replace=False).tolist())) for _ in range(100)}
    graph = Graph.from_edges(sorted(edges), n_nodes=50, coordinates=points)
    values, known = np.sin(4 * points[:, 0]), np.arange(50) >= 10
    bare = Graph(graph.weights)
    errors = [
        np.sqrt(np.mean((levels.complete_by_graph(one, values, np.full(50, 1e-4), known)[0] - values)[~known] ** 2))
        for one in (graph, bare)
    ]
    assert errors[0] < 0.2 * values.std() < 0.7 * values.std() < errors[1]


def test_coordinates_that_are_all_the_same_are_not_used():
    graph = Graph(GRAPHS["near"].weights, coordinates=np.ones((N_NODES, 2)))
    known, values = np.arange(N_NODES) > 0, np.random.default_rng(0).standard_normal(N_NODES)
    found, bare = (
        levels.complete_by_graph(one, values, np.zeros(N_NODES), known) for one in (graph, Graph(graph.weights))
    )
    np.testing.assert_array_equal(found, bare)


def test_variances_grow_where_left_out_nodes_are_missed():
    """By the mean of squared errors over variances, with eight more nodes that are as expected; never below one."""
    graph, known = GRAPHS["near"], np.arange(N_NODES) > 1
    rng = np.random.default_rng(2)
    values = np.where(np.arange(N_NODES) == 5, 30.0, 0.1 * rng.standard_normal(N_NODES))
    _, variance = levels.complete_by_graph(graph, values, np.zeros(N_NODES), known)
    found = [levels.learnt_field(unit, *_scaled(values, known)) for unit in levels.unit_covariances(graph)]
    field = max(found, key=lambda one: one[0])[1]
    missed, expected = field.left_out()
    factor = max(1.0, (np.sum(missed**2 / expected) + 8) / (np.count_nonzero(known) + 8))
    np.testing.assert_allclose(variance[:2], np.var(values[known]) * factor * field.at(np.arange(2))[1], rtol=1e-6)


def _scaled(values, known):
    own = values[known]
    return (own - own.mean()) / own.std(), np.zeros(own.size), np.flatnonzero(known)


@pytest.mark.parametrize(("place", "centre", "width"), [(0, 3.0, 2.0), (1, 0.0, 1.0)])
def test_parameters_of_a_field_are_the_most_probable(place, centre, width):
    """Stationary: slopes of the evidence balance those of normal priors, of the logarithms of v, t and a or l."""
    unit = levels.unit_covariances(GRAPHS["near"])[place]
    values = np.sin(4 * PLACES[:, 0]) + 0.3 * np.random.default_rng(1).standard_normal(N_NODES)
    height, field = levels.learnt_field(unit, values, np.full(N_NODES, 0.02), np.arange(N_NODES))
    deviations = (field.logs - [0.0, np.log(0.1), centre]) / [2.0, 1.5, width]
    assert np.max(np.abs(deviations)) < 4  # none is at the end of where it is looked for
    np.testing.assert_allclose(field.gradient, deviations / [2.0, 1.5, width], atol=1e-3)
    assert height == pytest.approx(field.log_evidence - 0.5 * np.sum(deviations**2))


def test_large_graphs_and_no_graph_have_no_such_fields():
    assert not levels.can_complete(None)
    assert not levels.can_complete(Graph.edgeless(levels.MOST_PLACED + 1))
    assert levels.can_complete(GRAPHS["edgeless"])
    values = np.random.default_rng(0).standard_normal((6, levels.MOST_PLACED + 1)) + 3
    values[:, 0] = np.nan
    signals = read_signals(values, "node", "node", graph=Graph.edgeless(levels.MOST_PLACED + 1))
    assert signals.units.offset_variance is None
    assert signals.units.offset[0] == pytest.approx(np.nanmean(values))


# ----- reading signals -----


def holed(n_signals=20):
    rng = np.random.default_rng(1)
    level, scale = 5 + 3 * PLACES[:, 0], np.exp(PLACES[:, 1])
    values = level + scale * rng.standard_normal((n_signals, N_NODES))
    values[:, [0, 4]] = np.nan
    values[3, 6] = np.nan
    return values


@pytest.mark.parametrize("scale", [None, "global", "node"])
@pytest.mark.parametrize("center", [None, "global", "node"])
def test_seen_nodes_keep_what_they_have(center, scale):
    graph, values = GRAPHS["near"], holed()
    bare, signals = read_signals(values, center, scale), read_signals(values, center, scale, graph=graph)
    assert not signals.observed.any(axis=0).all()
    seen = np.isfinite(values).any(axis=0)
    for name in ("offset", "divisor"):
        own, other = (np.broadcast_to(getattr(one.units, name), N_NODES) for one in (signals, bare))
        np.testing.assert_array_equal(own[seen], other[seen])
    np.testing.assert_array_equal(signals.values, bare.values)
    variances = signals.units.offset_variance
    assert (variances is None) == (center != "node")
    if center == "node":
        np.testing.assert_array_equal(variances > 0, ~seen)
        assert np.all(np.abs(signals.units.offset[~seen] - bare.units.offset[~seen]) > 0)
    if scale == "node":
        assert np.all(np.abs(signals.units.relative - bare.units.relative)[~seen] > 0)


@pytest.mark.parametrize("scale", ["global", "node"])
def test_unseen_nodes_have_levels_and_scales_of_fields_through_those_of_the_others(scale):
    """Means err by the node's own variance over the number of its values; log scales by half of one over theirs."""
    graph, values = GRAPHS["near"], holed(4)
    values[1:, 2] = np.nan  # a node with one value
    seen = np.isfinite(values)
    counts = seen.sum(axis=0)
    means = np.nansum(values, axis=0) / counts.clip(1)
    squares = np.nansum((values - means) ** 2, axis=0)
    scales = levels.relative_scales(squares / counts.clip(1), counts)
    errors = squares.sum() / counts.sum() * scales**2 / counts.clip(1)
    offset, variances = levels.complete_by_graph(graph, means, errors, counts > 0)
    units = read_signals(values, "node", scale, graph=graph).units
    np.testing.assert_allclose(units.offset, offset, rtol=1e-6)
    np.testing.assert_allclose(units.offset_variance, variances, rtol=1e-5)
    if scale == "node":
        logs, _ = levels.complete_by_graph(graph, np.log(scales), 0.5 / (counts + 8), counts > 0)
        np.testing.assert_allclose(units.relative, np.exp(logs), rtol=1e-6)


def test_nothing_changes_where_every_node_was_seen():
    values = holed()
    values[0, [0, 4]] = 1.0
    own, bare = (read_signals(values, "node", "node", graph=graph) for graph in (GRAPHS["near"], None))
    assert own.units.offset_variance is None
    assert own.observed.any(axis=0).all()
    np.testing.assert_array_equal(own.units.offset, bare.units.offset)
    np.testing.assert_array_equal(own.units.relative, bare.units.relative)


def test_a_part_in_which_more_nodes_are_unseen_finds_their_levels():
    """As folds and hidden nodes have them; the others are read in its units."""
    values = holed()
    values[:-1, 7] = np.nan
    signals = read_signals(values, "node", "node", graph=GRAPHS["near"])
    kept, held_out = signals.fold(np.arange(10), np.arange(10, 20))
    again = read_signals(values[:10], "node", "node", graph=GRAPHS["near"])
    for name in ("offset", "relative", "offset_variance"):
        np.testing.assert_allclose(getattr(kept.units, name), getattr(again.units, name), rtol=1e-9)
        np.testing.assert_array_equal(getattr(held_out.units, name), getattr(kept.units, name))
    assert kept.units.offset_variance[7] > 0 == signals.units.offset_variance[7]


def test_constant_signals_have_constant_levels():
    values = np.full((5, N_NODES), 2.5)
    values[:, 3] = np.nan
    signals = read_signals(values, "node", "node", graph=GRAPHS["near"])
    np.testing.assert_allclose(signals.units.offset, 2.5)
    assert signals.units.relative is None
    assert not signals.units.offset_variance.any()
