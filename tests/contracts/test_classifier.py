"""GraphGPClassifier: what it learns from a few labels, the forms it takes them in, and what it refuses."""

import networkx
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.gaussian_process.kernels import RBF

import oracle
import spectralgp
from spectralgp import Chebyshev, Graph, GraphGPClassifier
from spectralgp.files.container import read_file, write_file
from spectralgp.model.fields.classes import given_labels

KARATE = networkx.karate_club_graph()
CLUBS = np.array([KARATE.nodes[node]["club"] for node in KARATE])


def karate() -> Graph:
    return Graph(networkx.to_numpy_array(KARATE, weight=None))


def some_clubs(*nodes: int) -> np.ndarray:
    labels = np.full(34, None, dtype=object)
    labels[list(nodes)] = CLUBS[list(nodes)]
    return labels


@pytest.fixture(scope="module")
def model() -> GraphGPClassifier:
    return GraphGPClassifier(karate()).fit(None, some_clubs(0, 33))


def test_two_leaders_tell_who_follows_whom(model):
    # with the leaders' labels alone harmonic functions and label spreading get all but one or two right
    wrong = np.flatnonzero(model.predict() != CLUBS)
    assert len(wrong) <= 2
    assert model.score(None, CLUBS) == 1 - len(wrong) / 34
    assert model.classes_.tolist() == ["Mr. Hi", "Officer"]
    assert model.n_labels_ == 2


def test_probabilities_are_those_of_the_members_and_the_temperature(model):
    laplacian = np.eye(34) - karate().weights.toarray() / np.sqrt(
        np.outer(*2 * (karate().weights.toarray().sum(axis=1),))
    )
    values, vectors = np.linalg.eigh(laplacian)
    found = np.zeros((34, 2))
    for weight, kernel in zip(model.kernel_weights_, model.graph_kernel_, strict=True):
        dense = (vectors * np.exp(-0.5 * kernel.strength * values)) @ vectors.T
        dense = 10.0**2 * (0.999 * dense / np.mean(np.diag(dense)) + 0.001 * np.eye(34))
        field = given_labels(dense[np.ix_([0, 33], [0, 33])], np.array([0, 1]), 2)
        found += weight * field.probabilities(dense[:, [0, 33]], np.diag(dense))
    powers = found**model.temperature_
    expected = powers / powers.sum(axis=1, keepdims=True)
    # members start from one another, and light ones are left out
    np.testing.assert_allclose(model.predict_proba(), expected, rtol=0, atol=0.02)


def test_decisions_are_log_odds_of_the_second_class(model):
    np.testing.assert_allclose(expit(model.decision_function()), model.predict_proba()[:, 1], rtol=1e-9)


def test_decisions_of_three_classes_are_centred_logarithms():
    labels = some_clubs(0, 33)
    labels[16] = "other"
    fitted = GraphGPClassifier(karate()).fit(None, labels)
    decisions = fitted.decision_function()
    np.testing.assert_allclose(decisions.sum(axis=1), 0, atol=1e-9)
    shares = np.exp(decisions) / np.exp(decisions).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, fitted.predict_proba(), rtol=1e-9)


@pytest.mark.parametrize("missing", [-1, np.nan])
def test_numbers_that_are_no_labels(missing, model):
    labels = np.full(34, missing, dtype=float)
    labels[[0, 33]] = 0, 1
    found = GraphGPClassifier(karate()).fit(None, labels)
    np.testing.assert_allclose(found.predict_proba(), model.predict_proba(), rtol=1e-12)
    assert found.classes_.tolist() == [0, 1]


def test_masked_labels_and_those_that_pandas_lacks_are_none(model):
    masked = np.ma.array(CLUBS, mask=~np.isin(np.arange(34), [0, 33]))
    series = pd.Series(some_clubs(0, 33), dtype="string")
    for labels in (masked, series):
        found = GraphGPClassifier(karate()).fit(None, labels)
        np.testing.assert_allclose(found.predict_proba(), model.predict_proba(), rtol=1e-12)


def test_a_permutation_of_the_nodes_permutes_the_answer(model):
    order = np.random.default_rng(1).permutation(34)
    weights = karate().weights.toarray()[np.ix_(order, order)]
    found = GraphGPClassifier(Graph(weights)).fit(None, some_clubs(0, 33)[order])
    np.testing.assert_allclose(found.predict_proba(), model.predict_proba()[order], rtol=0, atol=1e-6)


def test_labels_left_out_are_told_by_the_others():
    labels = some_clubs(0, 1, 7, 33, 32, 29)
    fitted = GraphGPClassifier(karate()).fit(None, labels)
    found, known = fitted.leave_one_out(), np.flatnonzero([one is not None for one in labels])
    assert np.isnan(np.delete(found, known, axis=0)).all()
    assert (fitted.classes_[found[known].argmax(axis=1)] == CLUBS[known]).all()
    assert np.all(found[known].max(axis=1) < fitted.predict_proba()[known].max(axis=1))


def test_features_of_nodes_tell_classes_apart_where_the_graph_does_not():
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 2, 80)
    graph = Graph(oracle.random_weights(80, 5, density=0.05))  # says nothing of the classes
    features = truth[:, None] * 3.0 + generator.standard_normal((80, 2))
    labels = np.where(np.arange(80) < 30, truth, -1)
    alone = GraphGPClassifier(graph).fit(None, labels)
    with_features = GraphGPClassifier(graph).fit(features, labels)
    assert with_features.score(None, truth) > 0.9 > alone.score(None, truth)
    assert with_features.n_features_in_ == 2
    assert "by features" in with_features.summary()


def signals() -> tuple[Graph, np.ndarray, np.ndarray]:
    """Labels on a ring that turns with the input."""
    nodes, inputs = np.arange(16), np.linspace(0, 1, 9)[:, None]
    truth = (np.sin(2 * np.pi * (nodes / 16 + inputs / 2)) > 0).astype(int)
    return Graph(oracle.ring(16)), inputs, truth


def test_signals_at_inputs_tell_of_those_between():
    graph, inputs, truth = signals()
    labels = np.where(np.random.default_rng(0).random(truth.shape) < 0.6, truth, -1)
    labels[4] = -1  # a signal without any label
    fitted = GraphGPClassifier(graph).fit(inputs, labels)
    assert fitted.predict_proba(inputs[[4]]).shape == (1, 16, 2)
    assert np.mean(fitted.predict(inputs[[4]])[0] == truth[4]) >= 14 / 16
    assert fitted.score(inputs, truth) > 0.9
    np.testing.assert_allclose(fitted.predict_proba(), fitted.predict_proba(inputs), rtol=1e-9)
    assert len(fitted.kernel_weights_) % 3 == 0  # lengths of 0.3, 1 and 3


def test_a_column_given_several_times_says_no_more_than_once():
    """Lengths grow with the root of the number of columns, as distances do."""
    graph, inputs, truth = signals()
    labels = np.where(np.random.default_rng(0).random(truth.shape) < 0.3, truth, -1)[::2]
    once, often = (GraphGPClassifier(graph).fit(np.repeat(inputs[::2], times, axis=1), labels) for times in (1, 3))
    np.testing.assert_allclose(often.predict_proba(), once.predict_proba(), atol=1e-6)
    np.testing.assert_allclose(often.kernel_weights_, once.kernel_weights_, rtol=1e-4, atol=1e-9)


def test_signals_without_inputs_are_independent():
    graph, _, truth = signals()
    labels = np.where(np.arange(16) % 2, truth[[0, 8]], -1)
    both = GraphGPClassifier(graph).fit(None, labels)
    assert both.predict().shape == (2, 16)
    assert both.score(None, truth[[0, 8]]) > 0.8
    # the labels of the other signal weigh members, and say nothing of this one
    np.testing.assert_allclose(both.predict_proba()[0], both.predict_proba()[1][:, ::-1], atol=0.35)


def test_a_kernel_of_the_inputs_is_used_as_given():
    graph, inputs, truth = signals()
    labels = np.where(np.random.default_rng(0).random(truth.shape) < 0.6, truth, -1)
    fitted = GraphGPClassifier(graph, input_kernel=RBF(0.3)).fit(inputs, labels)
    assert fitted.score(inputs, truth) > 0.9
    assert "inputs of length" not in fitted.summary()


def test_a_large_graph_is_answered_by_filters():
    graph = Graph(oracle.ring(200))
    labels = np.full(200, -1)
    labels[[20, 60, 120, 160]] = 0, 0, 1, 1
    exact, filtered = (GraphGPClassifier(graph, spectrum=one).fit(None, labels) for one in ("exact", "chebyshev"))
    sure = exact.predict_proba().max(axis=1) > 0.7
    assert sure.sum() > 50
    np.testing.assert_array_equal(filtered.predict()[sure], exact.predict()[sure])


def test_the_summary_counts_labels_and_weights(model):
    text = model.summary()
    assert "2 labels of 2 classes (Mr. Hi 1, Officer 1) on 34 nodes and 78 edges." in text
    np.testing.assert_allclose(model.kernel_weights_.sum(), 1)
    assert f"power of {model.temperature_:.2g}" in text


def labels_with(place: int, value: object) -> np.ndarray:
    labels = np.full(34, None, dtype=object)
    labels[place] = value
    return labels


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "y must hold labels"),
        (np.full(34, -1), "y must hold labels of some nodes; got None, NaN or -1 everywhere"),
        (labels_with(5, "a"), "one class only, 'a', first at node 5"),
        ([1, -1] * 17, "one class only, 1, first at node 0. Label a node of another class; -1 stands for no"),
        (labels_with(7, 0.25), "got 0.25 at node 7. Use GraphGPRegressor"),
        (labels_with(7, np.inf), "got inf at node 7"),
        (np.where(np.arange(68).reshape(2, 34) == 37, 1.5, -1), r"got 1.5 at signal 1, node 3"),
        (np.array(["a", 1] * 17, dtype=object), "y must hold labels of one kind"),
        (np.tile(CLUBS, (59, 1)), "at most 2,000 labels, whose covariance is a full matrix; got 2,006"),
        (np.zeros(33), r"n_nodes = 34, the nodes of the graph; got \(33,\)"),
        (np.zeros((2, 2, 34)), r"got \(2, 2, 34\)"),
    ],
)
def test_labels_that_are_refused_leave_a_model_as_it_was(labels, message, model):
    before = model.predict_proba()
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(None, labels)
    np.testing.assert_array_equal(model.predict_proba(), before)


def test_graphs_and_inputs_that_are_refused(model):
    with pytest.raises(ValueError, match="graph must be a graph on the nodes; got None"):
        GraphGPClassifier().fit(None, CLUBS)
    with pytest.raises((TypeError, ValueError), match="graph"):
        GraphGPClassifier("karate").fit(None, CLUBS)
    with pytest.raises(ValueError, match="spectrum must be one of 'auto', 'exact', 'chebyshev'; got 'exactly'"):
        GraphGPClassifier(karate(), spectrum="exactly").fit(None, CLUBS)
    with pytest.raises(ValueError, match="X must have one row per node, 34 in all; got 3"):
        GraphGPClassifier(karate()).fit(np.zeros((3, 2)), CLUBS)
    with pytest.raises(ValueError, match="X must have one row per signal, 2 in all; got 34"):
        GraphGPClassifier(karate()).fit(np.zeros((34, 2)), np.stack([CLUBS, CLUBS]))
    with pytest.raises(ValueError, match="X must be None for a model of nodes"):
        model.predict(np.zeros((34, 1)))
    with pytest.raises(ValueError, match="y must have the shape of the predictions"):
        model.score(None, np.stack([CLUBS, CLUBS]))
    with pytest.raises(ValueError, match="y must hold at least one label to be scored"):
        model.score(None, np.full(34, -1))


SIGNALS = np.random.default_rng(3).integers(-1, 2, (3, 34))
FEATURES = np.random.default_rng(4).standard_normal((34, 2))


@pytest.mark.parametrize(
    ("settings", "inputs", "labels"),
    [
        ({}, None, some_clubs(0, 33, 5)),
        ({}, FEATURES, some_clubs(0, 33)),
        ({"spectrum": Chebyshev(n_moments=30, n_probes=8)}, None, some_clubs(0, 33)),
        ({}, pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 1.0]}), SIGNALS),
        ({"input_kernel": RBF(0.5)}, np.array([[0.0], [1.0], [2.0]]), SIGNALS),
    ],
)
def test_files_hold_all_of_it(settings, inputs, labels, tmp_path):
    model = GraphGPClassifier(karate(), **settings).fit(inputs, labels)
    model.save(tmp_path / "classes.sgp")
    again = spectralgp.load(tmp_path / "classes.sgp")
    new = inputs if labels.ndim > 1 else None
    assert np.array_equal(again.predict_proba(new), model.predict_proba(new))
    assert again.classes_.dtype == model.classes_.dtype
    assert again.predict(new).tolist() == model.predict(new).tolist()
    assert np.array_equal(again.leave_one_out(), model.leave_one_out(), equal_nan=True)
    assert again.summary() == model.summary()
    assert again.score(new, labels) == model.score(new, labels)
    assert again.get_params()["spectrum"] == model.get_params()["spectrum"]


def test_files_keep_the_order_of_names_and_refuse_what_does_not_go_together(tmp_path):
    graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
    model = GraphGPClassifier(graph).fit(None, pd.Series([1, None, None, 0], ["d", "c", "b", "a"]))
    model.save(tmp_path / "classes.sgp")
    assert np.array_equal(spectralgp.load(tmp_path / "classes.sgp").predict_proba(), model.predict_proba())
    state, arrays, _ = read_file(tmp_path / "classes.sgp")
    for name, wrong in {"labels": 7, "order": 0}.items():
        changed = {key: value.copy() for key, value in arrays.items()}
        changed[name][..., 0] = wrong
        changed[name][..., 1] = wrong
        write_file(tmp_path / "wrong.sgp", state, changed)
        with pytest.raises(ValueError, match=f"wrong.sgp must hold a model .* {name}"):
            spectralgp.load(tmp_path / "wrong.sgp")


def test_dates_of_tables_are_days_as_those_of_arrays_are():
    path = Graph.from_edges([(node, node + 1) for node in range(5)])
    labels = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1]])
    days = np.arange("2020-01-01", "2020-01-04", dtype="datetime64[D]")
    frame = pd.DataFrame({"day": days.astype("datetime64[ns]"), "load": [1.0, 2.0, 4.0]})
    numbers = np.column_stack([days.astype(float), frame["load"]])
    by_frame, by_numbers = (GraphGPClassifier(path).fit(X, labels) for X in (frame, numbers))
    assert by_frame.date_columns_ == (0,)
    np.testing.assert_array_equal(by_frame.predict_proba(frame), by_numbers.predict_proba(numbers))
