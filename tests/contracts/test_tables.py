"""Tables of every library: the same numbers as arrays give, by name, and what comes in goes out."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from settings import PAPER
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import spectralgp
from spectralgp import Graph, GraphGPRegressor, Polynomial
from spectralgp.scores import coverage_scorer, crps_scorer, log_density_scorer, pit
from spectralgp.show.plots import plot_imputed, plot_signal

NAMES = list("abcde")
PLACES = [[0, 0], [1, 0], [2, 1], [3, 0], [4, 1]]
GRAPH = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")])
ORDER = [3, 1, 0, 4, 2]
SHUFFLED = [NAMES[place] for place in ORDER]
DAYS = pd.date_range("2024-01-01", periods=14, name="time")
RNG = np.random.default_rng(0)
X = np.column_stack([np.arange(14.0), RNG.standard_normal(14)])
Y = np.sin(X[:, :1] / 3 + np.arange(5)) + 0.1 * RNG.standard_normal((14, 5))
Y[3, 2] = Y[5, 0] = np.nan


def pandas_table(values, names):
    return pd.DataFrame(values, columns=names, index=DAYS[: len(values)])


def polars_table(values, names):
    return pl.DataFrame(values, schema=names).fill_nan(None)


def pyarrow_table(values, names):
    return pa.table({name: pa.array(column, from_pandas=True) for name, column in zip(names, values.T, strict=True)})


def xarray_table(values, names, dims=("time", "node")):
    return xr.DataArray(values, dims=dims, coords={dims[0]: DAYS[: len(values)], dims[1]: names})


TABLES = {
    "pandas": (pandas_table, pd.DataFrame),
    "nullable": (lambda values, names: pandas_table(values, names).astype("Float64"), pd.DataFrame),
    "polars": (polars_table, pl.DataFrame),
    "pyarrow": (pyarrow_table, pa.Table),
    "xarray": (xarray_table, xr.DataArray),
    "turned": (lambda values, names: xarray_table(values, names, ("time", "station")).T, xr.DataArray),
}
MAKERS, KINDS = ({kind: pair[place] for kind, pair in TABLES.items()} for place in (0, 1))
every = pytest.mark.parametrize("kind", MAKERS)


def model(**options):
    return GraphGPRegressor(GRAPH, Polynomial(2), **options)


def quick_model():
    """For what is fitted often."""
    return model(input_kernel=RBF(3.0, "fixed"), **PAPER)


def rows_first(table):
    """Names and values of a table, one row a signal, by means of its own library."""
    if isinstance(table, xr.DataArray):
        table = table.transpose("time", ...)
        return table[table.dims[1]].to_numpy().tolist(), table.to_numpy()
    if isinstance(table, pa.Table):
        return table.column_names, np.column_stack([column.to_numpy() for column in table.columns])
    return list(table.columns), table.to_numpy()


def inputs(kind, values=X, names=("u", "v")):
    beside = {"dims": ("time", "feature")} if kind == "turned" else {}
    return (xarray_table if kind == "turned" else MAKERS[kind])(values, list(names), **beside)


@pytest.fixture(scope="module")
def plain():
    return model().fit(X, Y)


@pytest.fixture(scope="module")
def quick():
    return quick_model().fit(X, Y)


@pytest.fixture(scope="module")
def fitted():
    return {kind: model().fit(inputs(kind), make(Y[:, ORDER], SHUFFLED)) for kind, make in MAKERS.items()}


@every
def test_predictions_are_those_of_arrays_in_tables_of_the_same_kind(kind, plain, fitted):
    expected = plain.predict(X[:6], return_std=True, include_noise=True)
    answers = fitted[kind].predict(inputs(kind, X[:6]), return_std=True, include_noise=True)
    for actual, truth in zip(answers, expected, strict=True):
        assert type(actual) is KINDS[kind]
        names, values = rows_first(actual)
        assert names == SHUFFLED
        np.testing.assert_allclose(values, truth[:, ORDER])
        if kind in ("pandas", "nullable"):
            pd.testing.assert_index_equal(actual.index, DAYS[:6])
        if kind == "turned":
            assert actual.dims == ("station", "time")
        if isinstance(actual, xr.DataArray):
            assert (actual["time"].to_numpy() == DAYS[:6].to_numpy()).all()
    assert fitted[kind].node_names_ == tuple(SHUFFLED)
    assert fitted[kind].feature_names_in_.tolist() == ["u", "v"]


@every
def test_chosen_nodes_keep_their_names(kind, plain, fitted):
    names, values = rows_first(fitted[kind].predict(inputs(kind), nodes=["e", "a"]))
    assert names == ["e", "a"]
    np.testing.assert_allclose(values, plain.predict(X)[:, [4, 0]])


@every
def test_missing_values_are_filled_in_tables_whose_columns_are_in_yet_another_order(kind, plain, fitted):
    other = [2, 0, 1, 3, 4]
    table = MAKERS[kind](Y[:, other], [NAMES[place] for place in other])
    for actual, truth in zip(fitted[kind].impute(inputs(kind), table), plain.impute(X, Y), strict=True):
        assert type(actual) is type(table)
        names, values = rows_first(actual)
        assert names == [NAMES[place] for place in other]
        np.testing.assert_allclose(values.astype(float), truth[:, other])
        if kind in ("pandas", "nullable"):
            pd.testing.assert_index_equal(actual.index, DAYS)
        if kind == "turned":
            xr.testing.assert_equal(actual["station"], table["station"])
            assert actual.dims == table.dims


@every
def test_scores_and_densities_are_those_of_arrays(kind, plain, fitted):
    own, table, new = fitted[kind], MAKERS[kind](Y[:, ::-1], NAMES[::-1]), inputs(kind)
    assert own.score(new, table) == pytest.approx(plain.score(X, Y))
    assert own.log_predictive_density(new, table) == pytest.approx(plain.log_predictive_density(X, Y))
    for scorer in (log_density_scorer, crps_scorer, coverage_scorer):
        assert scorer(own, new, table) == pytest.approx(scorer(plain, X, Y))
    aligned = MAKERS[kind](Y[:, ORDER], SHUFFLED)
    answers = own.predict(new, return_std=True, include_noise=True)
    truth = pit(Y, *plain.predict(X, return_std=True, include_noise=True))[:, ORDER]
    np.testing.assert_allclose(pit(aligned, *answers), truth.T if kind == "turned" else truth)
    np.testing.assert_allclose(own.leave_one_out().mean, plain.leave_one_out().mean[:, ORDER])
    np.testing.assert_allclose(own.center_, np.broadcast_to(plain.center_, 5)[ORDER])
    covariances = (one.predict(at, return_cov=True)[1] for one, at in ((own, new), (plain, X)))
    np.testing.assert_allclose(next(covariances), next(covariances)[:, ORDER][:, :, ORDER], atol=1e-9)


@every
def test_more_signals_and_what_is_known_of_new_ones(kind, plain, fitted):
    make = MAKERS[kind]
    more = fitted[kind].condition_on(inputs(kind, X[:4] + 0.5), make(Y[:4, ::-1], NAMES[::-1]))
    expected = plain.condition_on(X[:4] + 0.5, Y[:4])
    np.testing.assert_allclose(rows_first(more.predict(inputs(kind)))[1], expected.predict(X)[:, ORDER])
    known = np.where(np.arange(5) < 3, Y[7:9], np.nan)
    _, values = rows_first(fitted[kind].predict(inputs(kind, X[7:9]), observed=make(known[:, ::-1], NAMES[::-1])))
    np.testing.assert_allclose(values, plain.predict(X[7:9], observed=known)[:, ORDER])
    draws = fitted[kind].sample_y(inputs(kind, X[7:9]), 3, random_state=1)
    assert draws.shape == (2, 5, 3)
    np.testing.assert_allclose(draws[:, 2], plain.sample_y(X[7:9], 3, random_state=1)[:, 0])


@pytest.mark.parametrize(
    "signal",
    [
        pd.Series([0.4, np.nan, 0.1, np.nan, -0.3], index=NAMES)[SHUFFLED],
        xr.DataArray([0.4, np.nan, 0.1, np.nan, -0.3], dims="node", coords={"node": NAMES})[ORDER],
    ],
)
def test_one_signal_is_matched_by_its_labels(signal, plain):
    expected = plain.predict(X[:1], observed=[0.4, np.nan, 0.1, np.nan, -0.3])
    np.testing.assert_allclose(plain.predict(X[:1], observed=signal), expected)
    coordinates = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")], coordinates=PLACES)
    drawn = plot_signal(coordinates, signal, colorbar=False).collections[1].get_array()
    np.testing.assert_allclose(np.ma.filled(drawn, np.nan)[:1], [0.4])


@pytest.mark.parametrize("output", ["numpy", "pandas", "polars", "pyarrow", "xarray"])
@pytest.mark.parametrize("save", [False, True])
def test_the_choice_is_kept_by_clones_copies_and_files(output, save, tmp_path, quick):
    types = {"numpy": np.ndarray} | KINDS
    chosen = clone(quick_model().set_output(predict=output)).fit(X, Y)
    if save:
        chosen.save(tmp_path / "model.sgp")
        chosen = spectralgp.load(tmp_path / "model.sgp")
    for answer in (chosen.predict(X), chosen.impute(X, Y)[0], chosen.condition_on(X[:2] + 0.1, Y[:2]).predict(X)):
        assert type(answer) is types[output]
    values = chosen.predict(X) if output == "numpy" else rows_first_of_plain(chosen.predict(X))
    np.testing.assert_allclose(values, quick.predict(X))
    again = chosen.set_output().set_output(predict="default")
    assert isinstance(again.predict(X), np.ndarray)


def rows_first_of_plain(table):
    if isinstance(table, xr.DataArray):
        assert table.dims == ("signal", "node")
        assert table["node"].to_numpy().tolist() == NAMES
        return table.to_numpy()
    names, values = rows_first(table)
    assert names == NAMES
    return values


@every
def test_files_remember_the_kind_of_table(kind, fitted, tmp_path):
    fitted[kind].save(tmp_path / "model.sgp")
    loaded = spectralgp.load(tmp_path / "model.sgp")
    before, after = fitted[kind].predict(inputs(kind)), loaded.predict(inputs(kind))
    assert type(after) is KINDS[kind]
    np.testing.assert_array_equal(rows_first(after)[1], rows_first(before)[1])
    assert getattr(after, "dims", None) == getattr(before, "dims", None)


def test_other_choices_are_refused():
    with pytest.raises(ValueError, match=r"predict must be one of 'default', 'numpy', 'pandas'.*got 'arrow'"):
        model().set_output(predict="arrow")


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "xarray"])
def test_scikit_learn_cuts_and_searches_tables(kind):
    model, new, table = quick_model(), inputs(kind), MAKERS[kind](Y[:, ORDER], SHUFFLED)
    np.testing.assert_allclose(cross_val_score(model, new, table, cv=3), cross_val_score(model, X, Y, cv=3))
    np.testing.assert_allclose(
        cross_val_predict(model, new, table, cv=3), cross_val_predict(model, X, Y, cv=3)[:, ORDER]
    )
    search = GridSearchCV(model, {"graph_kernel__degree": [1, 2]}, cv=2).fit(new, table)
    assert type(search.predict(new)) is KINDS[kind]


def test_a_pipeline_answers_with_tables():
    pipeline = make_pipeline(StandardScaler(), model()).fit(inputs("polars"), polars_table(Y, NAMES))
    assert pipeline.predict(inputs("polars")).columns == NAMES


def test_a_single_column_comes_back_as_one():
    for series, kind in (
        (pd.Series(Y[:, 1], index=DAYS), pd.Series),
        (pl.Series(Y[:, 1]), pl.Series),
        (xr.DataArray(Y[:, 1], dims="time", coords={"time": DAYS}), xr.DataArray),
    ):
        answer = GraphGPRegressor().fit(X, series).predict(X)
        assert type(answer) is kind
        np.testing.assert_allclose(answer.to_numpy(), GraphGPRegressor().fit(X, Y[:, 1]).predict(X))


@every
def test_pictures_take_what_the_model_gives(kind, fitted):
    table = MAKERS[kind](Y[:, ORDER], SHUFFLED)
    options = {"names": SHUFFLED} if kind == "turned" else {}
    drawn = plot_imputed(table, *fitted[kind].impute(inputs(kind), table), "c", **options)
    hole = drawn.lines[1].get_xydata()
    completed = fitted[kind].impute(inputs(kind), table)[0]
    assert hole[0, 1] == pytest.approx(rows_first(completed)[1][3, SHUFFLED.index("c")])


@every
def test_columns_that_do_not_belong_are_named(kind, fitted):
    wrong = MAKERS[kind](Y, ["a", "b", "c", "d", "z"])
    for call in (model().fit, fitted[kind].score):
        with pytest.raises(ValueError, match="'z' belong to no node, while 'e' are missing"):
            call(inputs(kind), wrong)
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        fitted[kind].predict(inputs(kind, X[:, ::-1], ["v", "u"]))


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (pl.DataFrame({"a": ["x"], "b": [1.0], "c": [1.0], "d": [1.0], "e": [1.0]}), TypeError, "words in column 'a'"),
        (pa.table({"a": ["x"], "b": [1.0], "c": [1.0], "d": [1.0], "e": [1.0]}), TypeError, "words in column 'a'"),
        (pl.DataFrame({"time": [1], "node": ["a"], "value": [1.0]}), TypeError, r"Y\.pivot\(on=<node>"),
        (pa.table({"time": [1], "node": ["a"], "value": [1.0]}), TypeError, "Turn it into a wide one"),
        (pl.DataFrame({"a": [DAYS[0]]}), TypeError, "dates in column 'a'.*days since the first"),
        (pa.table({"a": pa.array([DAYS[0].to_pydatetime()])}), TypeError, "dates in column 'a'"),
        (pa.table([[1.0], [2.0]], names=["a", "a"]), ValueError, "distinct column names; got 'a' more than once"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), ValueError, "distinct column names; got 'a' more than once"),
        (pd.DataFrame({"a": [1j]}), ValueError, "Complex data not supported"),
        (pl.DataFrame({"a": [[1.0, 2.0]]}), TypeError, "got List.* in column 'a'"),
        (pl.LazyFrame({"a": [1.0]}), TypeError, r"got a lazy one, polars\.LazyFrame\. Pass Y\.collect\(\)"),
        (xr.DataArray(Y, dims=("time", "place")), ValueError, r"got \('time', 'place'\).*rename\(\{'place': 'node'\}"),
        (xr.DataArray(Y[:, :, None], dims=("time", "node", "z")), ValueError, "Y must have two dimensions"),
        (xr.DataArray(DAYS.to_numpy()[:, None], dims=("time", "node")), TypeError, "must hold numbers; got dates"),
        (
            xr.DataArray(Y, dims=("time", "node"), coords={"node": ["a", "a", "c", "d", "e"]}),
            ValueError,
            "distinct names along 'node'; got 'a' more than once",
        ),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(table, error, message):
    with pytest.raises(error, match=message):
        model().fit(np.arange(float(len(Y)))[:, None], table)


def test_dimensions_are_told_apart_by_the_names_of_the_nodes():
    """Both dimensions have names; those of the graph say which one is that of the nodes, and X has that of the rows."""
    square = xr.DataArray(Y[:5].T, dims=("p", "q"), coords={"p": NAMES, "q": list("vwxyz")})
    other = xr.DataArray(X[:5].T, dims=("feature", "q"), coords={"feature": ["u", "v"], "q": list("vwxyz")})
    answer = model().fit(other, square).predict(other)
    assert answer.dims == ("p", "q")
    assert answer["q"].to_numpy().tolist() == list("vwxyz")
    np.testing.assert_allclose(answer.to_numpy().T, model().fit(X[:5], Y[:5]).predict(X[:5]))


def test_rows_in_another_order_are_refused():
    with pytest.raises(ValueError, match=r"rows in the same order.*Select the rows of Y by the labels of X"):
        model().fit(inputs("xarray"), xarray_table(Y, NAMES)[::-1])


def test_names_that_are_no_texts_are_written_as_such():
    graph = Graph(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), names=[10, 20, 30])
    fitted = GraphGPRegressor(graph, Polynomial(1)).fit(X, Y[:, :3])
    assert fitted.set_output(predict="pandas").predict(X).columns.tolist() == [10, 20, 30]
    assert fitted.set_output(predict="polars").predict(X).columns == ["10", "20", "30"]
    assert fitted.set_output(predict="xarray").predict(X)["node"].to_numpy().tolist() == [10, 20, 30]


def test_single_precision_of_tables_is_kept_on_large_graphs():
    graph = Graph.from_edges([(node, (node + 1) % 60) for node in range(60)])
    signals = np.sin(X[:8, :1] + np.arange(60) / 10).astype(np.float32)
    table = pl.DataFrame(signals, schema=[str(node) for node in range(60)])
    fitted = GraphGPRegressor(graph, Polynomial(1), spectrum="chebyshev").fit(X[:8], table)
    assert fitted.predict(X[:8]).schema["0"] == pl.Float32


def test_later_signals_of_xarray_have_their_nodes_by_name_whatever_dimensions_are_called():
    """Fitted along "time" by "station"; a table with other dimensions is known by the coordinate of names."""
    fitted = quick_model().fit(X, xarray_table(Y, NAMES, ("time", "station")))
    expected = fitted.log_predictive_density(X[:3], Y[:3])
    for table in (
        xarray_table(Y[:3], NAMES, ("time", "place")).rename(time="year"),
        xarray_table(Y[:3][:, ORDER], SHUFFLED, ("time", "place")).rename(time="year"),
        xarray_table(Y[:3], NAMES, ("time", "place")).rename(time="year").T,
    ):
        assert fitted.log_predictive_density(X[:3], table) == pytest.approx(expected, rel=1e-12)
