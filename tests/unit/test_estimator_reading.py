"""What estimators are given, read by hand: forms of tables, orders of nodes, centres, columns that carry over."""

from types import SimpleNamespace

import array_api_strict
import numpy as np
import pandas as pd
import pytest

import oracle
from spectralgp import Chebyshev, Exact, Graph, GraphGPRegressor
from spectralgp._basics.tables import TableKind, as_table
from spectralgp.estimators import reading
from spectralgp.estimators.reading import SignalFormat

NAN = np.nan
NAMES = ("c", "a", "b")
# the graph's nodes are a, b, c: where each is among the columns
FORM = SignalFormat(NAMES, np.array([1, 2, 0]), False, None, True, np.array([True, False, True, True]))
PLAIN = SignalFormat(None, None, False, None, True, np.ones(4, dtype=bool))
FLAT = SignalFormat(None, None, True, None, True, np.ones(2, dtype=bool))


# Forms


def test_nodes_are_named_in_the_order_of_the_graph():
    assert FORM.names_of(3) == ["a", "b", "c"]
    assert SignalFormat(NAMES, None, False, None, True, FORM.kept).names_of(3) == ["c", "a", "b"]
    assert PLAIN.names_of(2) == ["node 0", "node 1"]
    assert [FORM.node_name(node) for node in range(3)] == ["a", "b", "c"]
    assert PLAIN.node_name(2) == 2
    assert SignalFormat(None, np.array([1, 2, 0]), False, None, True, FORM.kept).node_name(2) == 0


def test_orders_of_nodes_are_undone_along_any_axis():
    values = np.arange(6.0).reshape(2, 3)
    assert FORM.to_graph(values).tolist() == [[1, 2, 0], [4, 5, 3]]
    np.testing.assert_array_equal(FORM.to_user(FORM.to_graph(values)), values)
    np.testing.assert_array_equal(FORM.to_user(FORM.to_graph(values).T, 0), values.T)
    read = FORM.in_graph(np.array([[1, 2, 3]]))
    assert read.dtype == float
    assert read.tolist() == [[2, 3, 1]]
    assert PLAIN.to_graph(values) is PLAIN.to_user(values) is values


def test_nodes_are_chosen_by_name_and_by_position():
    columns, nodes = FORM.chosen(["b", "c"], 3)
    assert (columns.tolist(), nodes.tolist()) == ([2, 0], [1, 2])
    columns, nodes = FORM.chosen([0, 1], 3)
    assert (columns.tolist(), nodes.tolist()) == ([0, 1], [2, 0])
    columns, nodes = PLAIN.chosen([2, 0], 3)
    assert (columns.tolist(), nodes.tolist()) == ([2, 0], [2, 0])
    with pytest.raises(ValueError, match="nodes must be positions if neither the graph nor the columns of Y have"):
        PLAIN.chosen(["b"], 3)
    with pytest.raises(ValueError, match=r"got 'x' \(2 unknown in all\)\. The first of them are \['c', 'a', 'b'\]"):
        FORM.chosen(["a", "x", "y"], 3)


def test_rows_are_labelled_after_those_before():
    assert FORM.kept_labels == ("row 0", "row 2", "row 3")
    counted = FORM.with_rows(np.array([True, False]), None)
    assert (counted.kept.tolist(), counted.labels) == ([True, False, True, True, True, False], None)
    assert counted.kept_labels == ("row 0", "row 2", "row 3", "row 4")
    labelled = FORM.with_rows(np.array([True]), pd.Index(["x"]))
    assert labelled.labels == ("row 0", "row 1", "row 2", "row 3", "x")
    assert labelled.kept_labels == ("row 0", "row 2", "row 3", "x")
    again = labelled.with_rows(np.array([False, True]), None)
    assert again.kept_labels == ("row 0", "row 2", "row 3", "x", "row 6")


def test_answers_stand_among_the_rows_that_were_given():
    found = FORM.among_given(np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(found, [[0, 1], [NAN, NAN], [2, 3], [4, 5]])
    np.testing.assert_array_equal(FORM.among_given(np.array([1.0, 2.0, 3.0])), [1, NAN, 2, 3])
    values = np.ones((4, 2))
    assert PLAIN.among_given(values) is values


def test_answers_are_shaped_as_what_was_given():
    given = as_table(pd.DataFrame([[1.0, 2.0, 3.0]], columns=["b", "c", "a"]), "Y")
    assert FORM.shaped_as(np.array([[10.0, 20.0, 30.0]]), given).tolist() == [[20, 30, 10]]
    assert FORM.shaped_as(np.array([[10.0, 20.0, 30.0]]), np.zeros((1, 3))).tolist() == [[30, 10, 20]]
    assert FLAT.shaped_as(np.array([[1.0], [2.0]]), np.zeros(2)).tolist() == [1, 2]


def test_one_signal_may_be_one_dimensional():
    assert FORM.as_rows(np.array([1.0, 2.0, 3.0])).shape == (1, 3)
    assert FORM.as_rows(np.ones((2, 3))).shape == (2, 3)
    assert FLAT.as_rows(np.ones(2)).shape == (2,)
    masked = FORM.as_rows(np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]))
    assert np.ma.getmaskarray(masked).tolist() == [[False, True, False]]
    row = FORM.as_rows(as_table(pd.Series([1.0, 2.0, 3.0], index=["a", "b", "c"]), "observed"))
    assert (row.names, row.shape) == (("a", "b", "c"), (1, 3))


def test_signals_have_the_columns_of_those_at_fit():
    estimator = GraphGPRegressor()
    table = as_table(pd.DataFrame([[1.0, 2.0, 3.0]], columns=["b", "c", "a"]), "Y")
    assert FORM.signals(table, 3, estimator).tolist() == [[2, 3, 1]]
    assert PLAIN.signals(table, 3, estimator).tolist() == [[1, 2, 3]]
    for wrong in (np.ones((3, 2)), np.ones(3)):
        with pytest.raises(ValueError, match=r"Y must have shape \(n_inputs, n_nodes\) with n_nodes = 3; got"):
            FORM.signals(wrong, 3, estimator)
    assert FLAT.signals(np.ones(2), 1, estimator).shape == (2, 1)


def test_the_kind_of_table_is_that_of_fit_unless_another_is_asked_for():
    values = np.arange(6.0).reshape(2, 3)
    turned = SignalFormat(
        NAMES, None, False, TableKind("xarray", ("day", "place"), is_turned=True), True, np.ones(2, dtype=bool)
    )
    assert turned.answer(values, "xarray", NAMES, None).dims == ("place", "day")
    assert turned.answer(values, "default", NAMES, None).dims == ("place", "day")
    assert type(turned.answer(values, "numpy", NAMES, None)) is np.ndarray
    frames = SignalFormat(NAMES, None, False, TableKind("pandas"), True, np.ones(2, dtype=bool))
    assert frames.answer(values, "xarray", NAMES, None).dims == ("signal", "node")
    assert frames.answer(values, "default", NAMES, None).columns.tolist() == list(NAMES)
    assert PLAIN.answer(values, "default", None, None) is values


# Graphs and their columns


def test_columns_are_matched_to_the_graph_by_name_or_by_place():
    named = Graph.from_edges([("a", "b"), ("b", "c")])
    bare, counted = Graph(oracle.ring(3)), Graph(oracle.ring(3), names=[0, 1, 2])
    matched = reading.matched_graph
    graph, names, columns = matched(named, 3, NAMES)
    assert graph is named
    assert (names, columns.tolist()) == (NAMES, [1, 2, 0])
    assert matched(named, 3, ("a", "b", "c"))[1:] == (("a", "b", "c"), None)
    assert matched(named, 3, None)[1:] == (("a", "b", "c"), None)
    assert matched(named, 3, (0, 1, 2))[1:] == (("a", "b", "c"), None)  # columns that are only counted
    assert matched(counted, 3, (0, 1, 2))[1:] == ((0, 1, 2), None)
    assert matched(counted, 3, (2, 0, 1))[2].tolist() == [1, 2, 0]
    assert matched(bare, 3, NAMES)[1:] == (NAMES, None)
    assert matched(bare, 3, None)[1:] == (None, None)
    graph, names, columns = matched(None, 3, NAMES)
    assert (graph.n_nodes, graph.n_edges, names, columns) == (3, 0, NAMES, None)


def test_columns_that_may_belong_to_other_nodes_are_refused():
    bare, named = Graph(oracle.ring(3)), Graph.from_edges([("a", "b"), ("b", "c")])
    match = "integers 0 to 2 in another order; got 2 first"
    with pytest.raises(ValueError, match=match):
        reading.matched_graph(bare, 3, (2, 0, 1))
    assert reading.matched_graph(bare, 3, (1, 2, 3))[1] == (1, 2, 3)  # names of another kind
    for graph, names in ((bare, None), (named, (0, 1))):
        with pytest.raises(ValueError, match=r"with n_nodes = 3, the nodes of the graph; got 2 columns"):
            reading.matched_graph(graph, 2, names)
    with pytest.raises(ValueError, match="'x' belong to no node, while 'c' are missing"):
        reading.matched_graph(named, 3, ("a", "b", "x"))


# Signals


def test_values_are_read_with_which_were_observed():
    values, seen = reading.read_values([[1, NAN], [3, 4]], GraphGPRegressor(), True)
    assert values.dtype == float
    assert seen.tolist() == [[True, False], [True, True]]
    assert reading.read_values([1.0, 2.0], GraphGPRegressor(), True)[0].shape == (2,)
    for given, match in (
        (None, "requires y to be passed, but the target y is None"),
        ([[1.0, -np.inf], [np.inf, 2.0]], r"Y contains infinity at row 0, column 1 \(2 values that are infinite in"),
        (np.ones((2, 2, 2)), "Found array with dim 3"),
        (np.ones((2, 2)) * 1j, "Complex data not supported"),
        ([["1", "2"]], "Y must hold numbers; got"),
    ):
        with pytest.raises(ValueError, match=match):
            reading.read_values(given, GraphGPRegressor(), True)


def test_values_that_are_not_read_into_memory_are_looked_at_as_far_as_they_are_there():
    estimator = GraphGPRegressor()
    values, seen = reading.read_values([[1.0, NAN], [np.inf, 4.0]], estimator, False)
    assert values.shape == (2, 2)
    assert seen.tolist() == [[True, False], [True, True]]  # infinity is refused where blocks are read
    elsewhere = array_api_strict.ones((2, 3))
    assert reading.read_values(elsewhere, estimator, False) == (elsewhere, None)
    for wrong in ([1.0, 2.0], SimpleNamespace(shape=(2, 2)), SimpleNamespace(dtype=float)):
        with pytest.raises(ValueError, match=r"Y must have shape \(n_signals, n_nodes\) on a large graph"):
            reading.read_values(wrong, estimator, False)


def chosen_center(values, threshold, graph=None):
    values = np.asarray(values, dtype=float)
    graph = Graph(oracle.ring(max(3, values.shape[1]))) if graph is None else graph
    training = SimpleNamespace(values=values, seen=~np.isnan(values), graph=graph)
    return reading.chosen_center(training, threshold)


def test_nodes_have_centres_of_their_own_where_means_vary_more_than_by_chance():
    """Means 2, 5.5 and 10 of variances 1, 0.5 and 4 over 3, 2 and 2 values; what was observed once says nothing."""
    values = np.array([[1.0, 5.0, NAN, 700.0], [2.0, NAN, 8.585786437626905, NAN], [3.0, 6.0, 11.414213562373096, NAN]])
    by_chance = (1 / 3 + 0.5 / 2 + 4 / 2) / 3
    ratio = np.var([2.0, 5.5, 10.0], ddof=1) / by_chance
    for factor in (1.0, -1e200):
        assert chosen_center(factor * values, 0.999 * ratio) == "node"
        assert chosen_center(factor * values, 1.001 * ratio) == "global"


def test_too_few_values_have_one_centre():
    apart = np.array([[0.0, 10.0], [1.0, 11.0], [2.0, 12.0]])
    assert chosen_center(apart, 1.0) == "node"
    assert chosen_center(apart[:2], 1.0) == "global"
    assert chosen_center(apart[:, :1], -1.0) == "global"
    assert chosen_center(np.where([[True, True], [True, False], [True, False]], apart, NAN), -1.0) == "global"
    assert chosen_center(0 * apart, -1.0) == "global"
    infinite = np.where(apart == 12, np.inf, apart)  # of a large graph, refused later
    assert chosen_center(infinite, -1.0) == "global"
    training = SimpleNamespace(values=apart, seen=None, graph=Graph(oracle.ring(3)))
    assert reading.chosen_center(training, 1.0) == "global"


def test_nodes_never_observed_get_levels_where_the_graph_can_place_them():
    values = np.array([[0.0, 0.1, NAN], [1.0, 0.9, NAN], [2.0, 2.2, NAN]])
    assert chosen_center(values, 1e9) == "node"
    assert chosen_center(values, 1e9, SimpleNamespace(n_nodes=3)) == "global"  # partitioned


# Inputs


def test_inputs_are_as_large_as_their_squares_are_numbers():
    limit = reading.LARGEST_INPUT
    assert reading.checked_inputs(GraphGPRegressor(), np.array([[limit], [-limit]]), reset=True).shape == (2, 1)
    with pytest.raises(ValueError, match=r"X must hold values up to 1e\+150 in size, .* got 1\.1e\+150"):
        reading.checked_inputs(GraphGPRegressor(), np.array([[0.0], [-1.1 * limit]]), reset=True)
    with pytest.raises(ValueError, match=r"X contains NaN at row 1, column 0 \(2 values that are NaN or infinite in"):
        reading.checked_inputs(GraphGPRegressor(), np.array([[0.0, 1.0], [NAN, np.inf]]), reset=True)
    with pytest.raises(ValueError, match=r"X must have at least one row; got shape \(0, 2\)"):
        reading.checked_inputs(GraphGPRegressor(), np.empty((0, 2)), reset=True)


def carried(carry, columns=None, n_features=3, form=FORM, has_features=True, n_nodes=3):
    found = reading.carried_columns(carry, columns, has_features, n_features, form, n_nodes)
    return None if found is None else found.tolist()


def test_columns_carry_over_to_the_nodes_of_their_names():
    """Of the columns c, a, b of Y; the graph's nodes are a, b, c."""
    assert carried("auto", ("a", "u", "c", "b"), 4) == [0, 3, 2]
    assert carried("auto", ("a", "u", "c"), 3) is None
    assert carried("auto") == carried("lagged") == [1, 2, 0]  # without names, by number
    assert carried("auto", n_features=4) is None
    assert carried("auto", form=PLAIN) == [0, 1, 2]
    assert carried("auto", ("a", "b", "c"), form=PLAIN) is None
    assert carried("auto", has_features=False) is None
    assert carried("auto", n_features=1, form=PLAIN, n_nodes=1) is None  # which would be its own neighbour
    assert carried(None) is None


def test_columns_that_carry_over_are_given_by_number_or_name():
    assert carried([2, 0, 2]) == [0, 2, 2]
    assert carried(["u", "v", "u"], ("u", "v"), 2) == [1, 0, 0]
    for wrong, columns, got in (([3, 0, 0], None, "3"), ([0, -1, 0], None, "-1"), (["u", "w", "u"], ("u", "v"), "'w'")):
        with pytest.raises(ValueError, match=rf"carry must hold columns of X; got {got}\. X has 3 columns"):
            carried(wrong, columns)
    for shape in ([0, 1], [[0, 1, 2]]):
        with pytest.raises(ValueError, match=r"carry must .*; got shape"):
            carried(shape)
    with pytest.raises(ValueError, match="carry must name one column of X"):
        carried([0, 1, 2], n_features=0)
    with pytest.raises(ValueError, match="carry must be None or 'auto' unless X holds features"):
        carried([0, 1, 2], has_features=False)
    with pytest.raises(ValueError, match="carry must be one of 'auto', 'lagged'; got 'none'"):
        carried("none")


@pytest.mark.parametrize(
    ("given", "n_nodes", "is_whole", "kind"),
    [
        ("auto", 5_000, True, Exact),
        ("auto", 5_001, True, Chebyshev),
        ("auto", 10, False, Chebyshev),
        ("exact", 5_001, True, Exact),
        ("chebyshev", 10, True, Chebyshev),
        (Exact(), 5_001, True, Exact),
    ],
)
def test_the_spectrum_is_chosen_by_the_size_of_the_graph(given, n_nodes, is_whole, kind):
    graph = SimpleNamespace(n_nodes=n_nodes, is_whole=is_whole)
    assert isinstance(reading.spectrum_settings(given, graph), kind)
    assert isinstance(reading.spectrum_settings("auto", None), Exact)
    with pytest.raises(ValueError, match="spectrum must be 'auto', 'chebyshev' or Chebyshev"):
        reading.spectrum_settings("exact", SimpleNamespace(n_nodes=10, is_whole=False))
