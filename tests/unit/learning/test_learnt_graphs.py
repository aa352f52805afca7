"""Graphs made of training signals: learnt weights and correlations, against loops, differences and simulated truths."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import cross_val_score

import oracle
import spectralgp
from spectralgp import (
    Diffusion,
    Graph,
    GraphGPClassifier,
    GraphGPForecaster,
    GraphGPRegressor,
    Identity,
    LearntGraph,
    Polynomial,
    Stacking,
    Task,
    WithResidual,
    learn,
)
from spectralgp.learning.graphs import WeightObjective
from spectralgp.model.kernels.carry import CarryColumns
from tolerances import FORMULA, STANDARD_ERRORS

GRADIENT_IN_GRAPHS = 1e-6  # relative, by central differences: the bar of the issue
RNG = np.random.default_rng(0)
POINTS = RNG.random((14, 2))
INPUTS = RNG.standard_normal((11, 14))
SIGNALS = 0.4 * INPUTS + 0.5 * RNG.standard_normal((11, 14)).cumsum(axis=1)
SIGNALS -= SIGNALS.mean()


def slow_weights(points, lengths, exponent, neighbors):
    """Equation (44), pair by pair."""
    n_nodes = len(points)
    weights = np.zeros((n_nodes, n_nodes))

    def nearness(a, b):
        nearer = sum(math.dist(points[a], points[c]) < math.dist(points[a], points[b]) for c in range(n_nodes))
        return 1 / (1 + math.exp(-(neighbors - nearer) / (neighbors / 4)))

    for a in range(n_nodes):
        for b in range(n_nodes):
            if a != b:
                squared = sum(((x - y) / one) ** 2 for x, y, one in zip(points[a], points[b], lengths, strict=True))
                near = 1 - (1 - nearness(a, b)) * (1 - nearness(b, a))
                weights[a, b] = math.exp(-(squared ** (exponent / 2))) * near
    return weights


def objective(kind="combinatorial", scaled=True, carries=False, points=POINTS):
    """The log posterior of a polynomial with a residual, learnt on the usual graph."""
    family = LearntGraph(points, 4).family()
    task = Task.of(family.graph(family.usual), RBF(5.0, "fixed"), INPUTS, SIGNALS)
    if carries:
        task = replace(task, carried=CarryColumns.of(np.arange(14), INPUTS))
    form = Polynomial(2, "eigenvalues", kind, scaled)
    return WeightObjective(family, task, learn(task, WithResidual.of(form, form)).model)


def elsewhere(found):
    """A point that is not the start."""
    return found.start + 0.1 * np.random.default_rng(1).standard_normal(found.start.size) * found.units


def test_weights_are_those_of_the_formula_and_the_usual_ones_those_of_the_points():
    family = LearntGraph(POINTS, 4).family()
    nearest = [sorted(math.dist(a, b) for b in POINTS)[4] for a in POINTS]
    np.testing.assert_allclose(np.exp(family.usual), [np.median(nearest)] * 2 + [2, 4], rtol=FORMULA)
    graph, _ = family.at(np.log([0.2, 0.5, 1.4, 3.0]))
    np.testing.assert_allclose(graph.weights.toarray(), slow_weights(POINTS, (0.2, 0.5), 1.4, 3.0), rtol=FORMULA)
    kept = family.graph(np.log([0.2, 0.5, 1.4, 3.0])).weights.toarray()
    assert np.max(np.abs(kept - graph.weights.toarray()).sum(axis=1) / graph.degrees) < 14e-6


@pytest.mark.parametrize("kind", ["combinatorial", "normalized", "balanced"])
@pytest.mark.parametrize(("scaled", "carries"), [(True, True), (False, False)])
def test_the_gradient_in_weights_filters_and_noise_is_that_of_differences(kind, scaled, carries):
    found = objective(kind, scaled, carries)
    x, step = elsewhere(found), 1e-5
    _, gradient = found.evaluate(x, found.held)
    ends = [
        [found.evaluate(x + sign * step * unit, found.held)[0] for sign in (1, -1)] for unit in np.diag(found.units)
    ]
    differences = -np.diff(ends, axis=1)[:, 0] / (2 * step * found.units)
    assert oracle.relative_error(gradient, differences) < GRADIENT_IN_GRAPHS


def test_the_evidence_is_that_of_the_dense_covariance_of_the_weights():
    found = objective()
    x = elsewhere(found)
    theta, rest = x[:4], x[4:]
    deviations, kernel = theta - found.family.usual, found.model.graph_kernel.with_theta(rest[:-1])
    lengths = np.exp(theta)
    matrix = oracle.laplacian(slow_weights(POINTS, lengths[:2], *lengths[2:]), scaled=True)
    signal, residual = (oracle.matrix_function(matrix, part.power) for part in kernel.kernels)
    noise = residual + np.exp(rest[-1]) * np.eye(14)
    covariance = np.kron(oracle.rbf(INPUTS, INPUTS, 5.0), signal) + np.kron(np.eye(11), noise)
    expected = oracle.log_density(SIGNALS.ravel(), 0.0, covariance) - 0.5 * deviations @ deviations
    assert found.evaluate(x, found.held)[0] == pytest.approx(expected + found.held.log_prior(rest)[0], rel=FORMULA)


def drawn(seed=0, n_signals=60):
    """Points of three coordinates, the last of which says next to nothing, and signals of weights that they make."""
    rng = np.random.default_rng(seed)
    points = rng.random((30, 3))
    family = LearntGraph(points, 6).family()
    truth = np.log([0.15, 0.45, 4.0, 2.0, 6.0])
    spectrum = spectralgp.decompose(family.at(truth)[0], scaled=True)
    spectral = rng.standard_normal((n_signals, 30)) * np.exp(-4 * spectrum.eigenvalues)
    return points, truth, spectral @ spectrum.eigenvectors.T + 0.05 * rng.standard_normal((n_signals, 30))


def test_lengths_of_a_simulation_are_recovered_and_that_of_an_idle_coordinate_grows():
    points, truth, signals = drawn()
    model = GraphGPRegressor(LearntGraph(points, 6), Polynomial(3), residual=None).fit(None, signals)
    found = model.graph_parameters_
    usual = np.exp(LearntGraph(points, 6).family().usual)
    errors = np.log(found.values / np.exp(truth)) / (found.errors / found.values)
    assert np.max(np.abs(errors)) < STANDARD_ERRORS
    assert np.max(found.errors[:2] / found.values[:2]) < 0.2
    assert found["length 2"] > 4 * usual[2]
    assert model.graph_.n_nodes == 30
    assert "learnt weights of the graph: length 0" in model.summary()


def test_standard_errors_are_those_of_a_numerical_hessian():
    points, _, signals = drawn()
    family = LearntGraph(points, 6).family()
    task = Task.of(family.graph(family.usual), None, np.empty((60, 0)), signals - signals.mean())
    found = WeightObjective(family, task, learn(task, Polynomial(2)).model)
    x, size = found.maximum(), found.start.size
    steps = 3e-3 * np.diag(found.units)
    hessian = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            corners = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
            values = [found.evaluate(x + a * steps[i] + b * steps[j], found.held)[0] for a, b in corners]
            hessian[i, j] = (values[0] - values[1] - values[2] + values[3]) / (4 * steps[i, i] * steps[j, j])
    expected = np.sqrt(np.diag(np.linalg.inv(-hessian)))[:5] * np.exp(x[:5])
    np.testing.assert_allclose(found.parameters(x).errors, expected, rtol=0.01)


def slow_shrinkage(residuals):
    """Intensity of Ledoit and Wolf, signal by signal."""
    n_signals, n_nodes = residuals.shape
    covariance = residuals.T @ residuals / n_signals
    target = np.trace(covariance) / n_nodes * np.eye(n_nodes)
    spread = sum(np.sum((np.outer(row, row) - covariance) ** 2) for row in residuals) / n_signals**2
    return min(1.0, spread / np.sum((covariance - target) ** 2))


def slow_ridge(inputs, signals, new):
    """Ridge regression of the penalty with the least error of leaving out, one signal after the other."""
    scale, offset = inputs.std(axis=0), inputs.mean(axis=0)
    inputs, new = (inputs - offset) / scale, (new - offset) / scale

    def predict(chosen, penalty, at):
        centre, mean = inputs[chosen].mean(axis=0), signals[chosen].mean(axis=0)
        own = inputs[chosen] - centre
        slopes = np.linalg.solve(own.T @ own + penalty * np.eye(own.shape[1]), own.T @ (signals[chosen] - mean))
        return (at - centre) @ slopes + mean

    each = np.arange(len(inputs))
    errors = {
        penalty: sum(np.sum((signals[i] - predict(each != i, penalty, inputs[i])) ** 2) for i in each)
        for penalty in np.logspace(-2, 5, 15)
    }
    return predict(each >= 0, min(errors, key=errors.get), new)


def test_correlations_are_those_of_slow_residuals():
    rng = np.random.default_rng(2)
    inputs = rng.standard_normal((23, 2))
    common = rng.standard_normal((23, 2)) @ rng.standard_normal((2, 7))
    signals = inputs @ rng.standard_normal((2, 7)) + common + rng.standard_normal((23, 7)) * np.arange(1, 8)
    centred, folds = signals - signals.mean(axis=0), np.arange(23) % 5
    left = centred.copy()
    for fold in range(5):
        kept, held_out = folds != fold, folds == fold
        left[held_out] -= slow_ridge(inputs[kept], centred[kept], inputs[held_out])
    left /= np.sqrt(np.mean(left**2, axis=0))
    correlations = (1 - slow_shrinkage(left)) * left.T @ left / 23
    expected = np.zeros((7, 7))
    for a in range(7):
        others = sorted((b for b in range(7) if b != a), key=lambda b, a=a: -correlations[a, b])
        for b in others[:2]:
            expected[a, b] = expected[b, a] = max(correlations[a, b], 0.0)
    graph = Graph.from_signals(pd.DataFrame(signals, columns=list("abcdefg")), inputs, 2)
    np.testing.assert_allclose(graph.weights.toarray(), expected, rtol=1e-8, atol=1e-12)
    assert graph.names == tuple("abcdefg")


def test_correlations_of_missing_values_are_those_of_the_pairs_observed():
    rng = np.random.default_rng(3)
    signals = rng.standard_normal((40, 1)) + 0.5 * rng.standard_normal((40, 3))
    signals[::4, 1], signals[7], signals[:, 2] = np.nan, np.nan, 5.0
    both = np.isfinite(signals[:, :2]).all(axis=1)
    unit = [np.sqrt(np.nanvar(signals[:, node])) for node in (0, 1)]
    left = (signals[:, :2] - np.nanmean(signals[:, :2], axis=0)) / unit
    expected = np.mean(left[both, 0] * left[both, 1])
    weights = Graph.from_signals(signals, n_neighbors=1).weights.toarray()
    assert 0.6 * expected < weights[0, 1] < expected  # shrunk
    assert np.count_nonzero(weights) == 2  # a constant column has no correlations
    with pytest.raises(ValueError, match=r"Y must have at least 4 rows.*got \(3, 3\)"):
        Graph.from_signals(signals[:3])


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_a_graph_of_signals_never_sees_those_that_it_is_judged_by(share):
    rng, seen = np.random.default_rng(4), []
    signals = np.cumsum(rng.standard_normal((24, 6)), axis=1)
    signals[rng.random(signals.shape) < share] = np.nan

    def make(Y, X):
        seen.append(Y.copy())
        return Graph.from_signals(Y, X, 2)

    kernels = Stacking(effort="fast") if share else Stacking([Diffusion(), Polynomial(1)], n_folds=3)
    model = GraphGPRegressor(make, kernels).fit(rng.standard_normal((24, 1)), signals)
    whole, *others = seen
    np.testing.assert_array_equal(whole, signals)
    if share:  # entries are hidden, and some whole signals
        assert np.isnan(others[0]).all(axis=1).any()
        assert np.isnan(others[0]).sum() > np.isnan(signals).sum() + 10
    else:
        assert [len(one) for one in others] == [16, 16, 16]
        assert sorted(tuple(row) for one in others for row in one) == sorted([*map(tuple, signals)] * 2)
    seen.clear()
    np.testing.assert_array_equal(
        graph_of(model), make(signals, model.learnt_.candidates[0].task.inputs).weights.toarray()
    )


def graph_of(model):
    return model.graph_.weights.toarray()


def test_the_best_of_several_graphs_is_kept_whatever_their_order():
    points, _, signals = drawn(n_signals=24)
    right, wrong = Graph.from_points(points[:, :2] / [1, 3], 6), Graph.from_points(points[::-1, :2], 6)
    for graphs in ([right, wrong], [wrong, right]):
        for kernel in (Diffusion(), [Diffusion(), Polynomial(1)]):
            assert GraphGPRegressor(graphs, kernel).fit(None, signals).graph_ is right
    with pytest.raises(ValueError, match="graph must be a list of graphs on the same nodes"):
        GraphGPRegressor([right, right.subgraph(range(5))]).fit(None, signals)


def test_names_copies_and_files_keep_what_was_learnt(tmp_path):
    points, _, signals = drawn(n_signals=20)
    names = [f"station {number}" for number in range(30)]
    table = pd.DataFrame(points[:, :2], index=names, columns=["east", "north"])
    model = GraphGPRegressor(LearntGraph(table, 6), Polynomial(1), residual=None)
    again = clone(model).set_params(graph__neighbors=5)
    assert (again.graph.neighbors, model.graph.neighbors, again.graph.metric) == (5, 6, "euclidean")
    assert repr(again).startswith("GraphGPRegressor(graph=LearntGraph(neighbors=5")
    turned = pd.DataFrame(signals[:, ::-1], columns=names[::-1])
    model.fit(None, turned)
    assert model.graph_.names == tuple(names)
    assert model.graph_parameters_.names == ("length east", "length north", "exponent", "neighbors")
    other = GraphGPRegressor(LearntGraph(points[:, :2], 6), Polynomial(1), residual=None).fit(None, signals)
    np.testing.assert_allclose(model.graph_parameters_.values, other.graph_parameters_.values, rtol=1e-3)
    model.save(tmp_path / "model.sgp")
    for copied in (spectralgp.load(tmp_path / "model.sgp"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copied.graph_.weights.toarray(), graph_of(model))
        assert repr(copied.graph_parameters_) == repr(model.graph_parameters_)
        assert copied.summary() == model.summary()
    assert model.transfer(Graph.from_points(points, 4)).graph_parameters_ is None
    assert np.isfinite(cross_val_score(model, np.zeros((20, 1)), signals, cv=2)).all()


def test_weights_are_learnt_from_missing_values():
    points, _, signals = drawn(n_signals=15)
    values = np.where(np.random.default_rng(5).random(signals.shape) < 0.1, np.nan, signals)
    model = GraphGPRegressor(LearntGraph(points, 6), Polynomial(2), residual=None).fit(None, values)
    found, usual = model.graph_parameters_, np.exp(LearntGraph(points, 6).family().usual)
    assert found["length 0"] < found["length 1"] < found["length 2"]
    assert found["length 2"] > 1.5 * usual[2]
    assert np.isfinite(found.errors[:3]).all()


def test_weights_learnt_from_counts_are_likelier_than_the_usual_ones():
    points, _, signals = drawn(n_signals=8)
    counts = np.random.default_rng(5).poisson(np.exp(2 + 4 * signals[:, :12])).astype(float)
    family, options = LearntGraph(points[:12], 4).family(), {"likelihood": "poisson", "residual": None}
    learnt = GraphGPRegressor(LearntGraph(points[:12], 4), Polynomial(1), **options).fit(None, counts)
    usual = GraphGPRegressor(family.graph(family.usual), Polynomial(1), **options).fit(None, counts)
    assert learnt.graph_parameters_.is_kept
    assert learnt.log_marginal_likelihood_ > usual.log_marginal_likelihood_ + 1
    assert np.isfinite(learnt.graph_parameters_.values).all()


def test_where_nothing_can_be_learnt_the_usual_graph_is_kept_or_the_error_says_why():
    family = LearntGraph(POINTS, 4).family()
    model = GraphGPRegressor(LearntGraph(POINTS, 4), Identity()).fit(None, SIGNALS)
    np.testing.assert_array_equal(graph_of(model), family.graph(family.usual).weights.toarray())
    assert model.graph_parameters_ is None
    assert GraphGPRegressor(LearntGraph(POINTS, 4)).fit(None, SIGNALS[:1]).graph_parameters_ is None
    with pytest.raises(ValueError, match="spectrum must be 'auto' or 'exact' for a LearntGraph"):
        GraphGPRegressor(LearntGraph(POINTS, 4), spectrum="chebyshev").fit(None, SIGNALS)
    for estimator in (GraphGPForecaster, GraphGPClassifier):
        for graph in (LearntGraph(POINTS), Graph.from_signals):
            data = (np.zeros((9, 14)),) if estimator is GraphGPForecaster else (None, np.arange(14) % 2)
            with pytest.raises(TypeError, match=r"graph must be a graph here; got .*Pass the graph_ of a fitted"):
                estimator(graph).fit(*data)
    for points, error in {
        "many": (np.zeros((1_001, 1)), "points must have 3 to 1,000 rows"),
        "one place": (np.zeros((9, 2)), "points must not coincide with most of their 8 neighbours"),
    }.values():
        with pytest.raises(ValueError, match=error):
            GraphGPRegressor(LearntGraph(points)).fit(None, SIGNALS)
    sphere = LearntGraph(POINTS + np.array([10, 50]), 4, metric="haversine").family()
    assert sphere.parameter_names == ("length in km", "exponent", "neighbors")
