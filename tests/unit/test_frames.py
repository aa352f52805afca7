"""Column names, the index, and the threads of linear algebra."""

from datetime import date, datetime, timedelta, timezone

import array_api_strict
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

from spectralgp._basics import tables

FRAME = pd.DataFrame([[1.0, 2.0]], columns=["b", "a"], index=["row"])


@pytest.mark.parametrize(("own", "wanted"), [("aab", "aba"), ("ab", "aa"), ("ab", "ac"), ("abc", "ab")])
def test_row_labels_that_do_not_match_one_to_one_are_refused(own, wanted):
    with pytest.raises(ValueError, match="exposure must have one row for each signal, by its label"):
        tables.match_rows(pd.Index(list(own)), pd.Index(list(wanted)), "exposure")
    assert tables.match_rows(pd.Index(list("cab")), pd.Index(list("abc")), "exposure").tolist() == [1, 2, 0]


@pytest.mark.parametrize("thing", [np.ones((2, 2)), [[1, 2]], None, (np.ones(2), np.ones(2)), pd.Series([1.0])])
def test_other_things_have_none(thing):
    assert tables.frame_names(thing) is None
    assert tables.frame_index(thing) is None


@pytest.mark.parametrize("thing", [np.ones(2), [1, 2], (1, 2), None, FRAME])
def test_what_is_no_series_has_none(thing):
    assert tables.series_index(thing) is None


@pytest.mark.parametrize("seed", range(5))
def test_matched_columns_are_in_the_order_of_the_nodes(seed):
    names = np.array([f"node {i}" for i in range(9)])
    shuffled = np.random.default_rng(seed).permutation(names)
    order = tables.match_columns(tuple(shuffled), tuple(names))
    assert shuffled[order].tolist() == names.tolist()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("a", "b"), r"got 2 columns, of which none belong to no node, while 'c' are missing\. Rename or select"),
        (("a", "b", "c", "d"), r"got 4 columns, of which 'd' belong to no node, while none are missing"),
        (("a", "b", "x"), r"'x' belong to no node, while 'c' are missing"),
        (("a", "b", "c", "c"), r"Y must have one column for each node of the graph, by name; got 4 columns"),
        (tuple("defghij"), r"'d', 'e', 'f', 'g', 'h' and 2 more belong to no node"),
    ],
)
def test_columns_that_do_not_match_are_named(columns, message):
    with pytest.raises(ValueError, match=message):
        tables.match_columns(columns, ("a", "b", "c"))


def test_values_that_do_not_match_are_called_so():
    message = (
        r"signal must have one value for each node of the graph, by name; got 2 values, of which 'x' belong to no "
        r"node, while 'b' are missing\. Rename or select values, or pass signal\.to_numpy\(\) with its values in "
    )
    with pytest.raises(ValueError, match=message):
        tables.match_columns(("a", "x"), ("a", "b"), "signal", "value")


def test_single_precision_is_that_of_every_column():
    single, double = np.ones(2, dtype=np.float32), np.ones(2)
    for make in (pd.DataFrame, pl.DataFrame):
        assert tables.as_table(make({"a": single, "b": single}), "Y").values.dtype == np.float32
        assert tables.as_table(make({"a": single, "b": double}), "Y").values.dtype == np.float64
        assert tables.as_table(make({"a": single, "b": [1, 2]}), "Y").values.dtype == np.float64


def test_objects_that_stand_for_nothing_are_nan():
    frame = pd.DataFrame({"a": [1, None, pd.NA], "b": [0.5, 1.5, 2.5]}, dtype=object)
    np.testing.assert_array_equal(tables.as_table(frame, "Y").values, [[1.0, 0.5], [np.nan, 1.5], [np.nan, 2.5]])
    with pytest.raises(TypeError, match="Y must hold numbers; got"):
        tables.as_table(pd.DataFrame({"a": [[1.0]]}), "Y")
    assert tables.as_table(pl.DataFrame(), "X").values.shape == (0, 0)
    assert tables.as_table(pa.table({"a": [1, 2]}).select([]), "X").values.shape[1] == 0


def test_numbers_become_tables_of_a_kind():
    table = np.arange(6.0).reshape(2, 3)
    assert tables.to_table(table, tables.TableKind("polars")).columns == ["0", "1", "2"]
    assert tables.to_table(table, tables.TableKind("pyarrow"), (1, "b", 2.5)).column_names == ["1", "b", "2.5"]
    assert tables.to_table(table, tables.TableKind("pandas"), None, ["x", "y"]).index.tolist() == ["x", "y"]
    for library in ("pandas", "polars"):
        series = tables.to_table(np.array([1.0, 3.0]), tables.TableKind(library))
        assert (series.shape, series.to_list()) == ((2,), [1.0, 3.0])
    with pytest.raises(ValueError, match=r"names of nodes must differ as texts to be columns of polars; got '1' more"):
        tables.to_table(table, tables.TableKind("polars"), (1, "1", "b"))


@pytest.mark.parametrize(
    ("index", "dims", "found"),
    [
        (None, None, ("signal", "node")),
        (pd.Index([5, 6]), None, ("signal", "node")),
        (pd.Index([5, 6], name="node"), None, ("signal", "node")),
        (pd.Index([5, 6], name="day"), None, ("day", "node")),
        (pd.Index([5, 6], name="day"), ("time", "place"), ("time", "place")),
    ],
)
def test_rows_of_xarray_are_along_what_their_labels_are_called(index, dims, found):
    for is_turned in (False, True):
        array = tables.to_table(
            np.arange(6.0).reshape(2, 3), tables.TableKind("xarray", dims, is_turned), ("a", "b", "c"), index
        )
        assert array.dims == (found[::-1] if is_turned else found)
        assert array.sel({found[1]: "b"}).to_numpy().tolist() == [1, 4]
        assert (found[0] in array.coords) == (index is not None)
    assert tables.to_table(np.ones(2), tables.TableKind("xarray", dims), None, index).dims == found[:1]


def test_labels_with_levels_stay_so_in_xarray():
    levels = pd.MultiIndex.from_tuples([("x", 1), ("y", 2)], names=["letter", "number"])
    array = tables.to_table(np.array([[3.0], [4.0]]), tables.TableKind("xarray"), ("a",), levels)
    assert array.sel(letter="y").values.tolist() == [[4.0]]


def test_rows_are_labelled_by_their_index_or_their_numbers():
    assert (tables.row_labels(None, 2), tables.row_labels(None, 2, 3)) == (("row 0", "row 1"), ("row 3", "row 4"))
    days = np.array(["2018-04-01", "2018-04-02"], dtype="M8[ns]")
    assert tables.row_labels(days, 2) == ("2018-04-01", "2018-04-02")
    assert tables.row_labels(pd.RangeIndex(5, 7), 2, 3) == ("row 5", "row 6")
    assert tables.row_labels(pd.Index([4, 2]), 2) == ("4", "2")
    assert tables.row_labels(pd.DatetimeIndex(["2020-01-01 00:30", "2020-01-02"]), 2) == (
        "2020-01-01 00:30",
        "2020-01-02 00:00",
    )
    zoned = pd.DatetimeIndex(["2020-01-01 05:00:07"], tz="Asia/Tokyo")
    assert tables.row_labels(zoned, 1) == ("2020-01-01 05:00:07",)
    assert tables.is_counted(None)
    assert tables.is_counted(pd.RangeIndex(3))
    assert not tables.is_counted(pd.RangeIndex(3, name="day"))
    assert not tables.is_counted(pd.Index([0, 1, 2]))


def test_answers_are_like_what_they_answer():
    values = np.arange(4.0).reshape(2, 2)
    frame = pd.DataFrame(np.ones((2, 2)), columns=["b", "a"], index=["x", "y"])
    found = tables.like_table(values, tables.as_table(frame, "Y"))
    assert (found.columns.tolist(), found.index.tolist()) == (["b", "a"], ["x", "y"])
    series = pd.Series([1.0, 2.0], index=["x", "y"], name="load")
    assert tables.like_table(values[0], tables.as_table(series, "Y")).name == "load"
    assert tables.like_table(
        values, tables.as_table(pl.DataFrame(np.ones((2, 2)), schema=["b", "a"]), "Y")
    ).columns == ["b", "a"]
    single = array_api_strict.ones((2, 2), dtype=array_api_strict.float32)
    assert tables.like_table(values, single).dtype == array_api_strict.float32
    assert tables.like_table(values, np.ones((2, 2), dtype=np.float32)) is values


def test_dates_are_days_whatever_holds_them():
    stamps = [datetime(1970, 1, 3, 12), date(1970, 1, 2), np.datetime64("1970-01-01T06")]
    np.testing.assert_array_equal(tables.days_of(np.array(stamps, dtype=object)), [2.5, 1.0, 0.25])
    zoned = np.array([datetime(1970, 1, 2, 3, tzinfo=timezone(timedelta(hours=3)))], dtype=object)
    np.testing.assert_array_equal(tables.days_of(zoned), [1.0])
    assert tables.days_of(np.array(["1970-01-02", "1970-01-01T12"], dtype="datetime64[h]")).tolist() == [1.0, 0.5]
    assert tables.days_of(np.array([date(1971, 1, 1)])).tolist() == [365.0]
    assert tables.days_of(np.array([3.0])) is None
    assert tables.days_of(np.array([date(1970, 1, 2), 1.0], dtype=object)) is None
    assert tables.days_of(np.array([], dtype=object)) is None


def test_tables_are_paired_by_position_unless_their_labels_say_otherwise():
    def labelled(*labels):
        return tables.as_table(pd.DataFrame({"a": np.ones(len(labels))}, index=labels), "Y")

    first = labelled("x", "y", "z")
    for other in (first, labelled("x", "y"), labelled("u", "v", "w"), labelled("x", "x", "y"), np.ones((3, 1)), None):
        tables.check_same_order(first, other)
        tables.check_same_order(other, first)
    tables.check_same_order(labelled("x", "x", "y"), labelled("x", "y", "x"))  # which of them is which nobody knows
    with pytest.raises(ValueError, match=r"X and Y must have their rows in the same order.*Pass Y\.loc\[X\.index\]"):
        tables.check_same_order(first, labelled("y", "x", "z"))


def test_dates_of_arrays_and_tables_are_days_and_numbers_stay():
    stamps = np.array(["1970-01-02", "1970-01-04"], dtype="M8[s]")
    days, places = tables.columns_in_days(stamps[:, None])
    assert (days.tolist(), places) == ([[1.0], [3.0]], (0,))
    mixed = np.array([[2.5, date(1970, 1, 2)], [3.5, date(1970, 1, 3)]], dtype=object)
    days, places = tables.columns_in_days(mixed)
    assert (days.tolist(), places) == ([[2.5, 1.0], [3.5, 2.0]], (1,))
    for numbers in (np.ones((2, 2)), stamps, np.array([[1.0], [2.0]], dtype=object)):
        kept, places = tables.columns_in_days(numbers)
        assert kept is numbers
        assert places == ()
    columns = {"a": [5.0, 6.0], "t": stamps.astype("M8[ms]"), "d": [date(1970, 1, 3), date(1970, 1, 1)]}
    for make in (pd.DataFrame, pl.DataFrame):
        given = make(columns)
        table = tables.as_table(given, "X", allow_dates=True)
        np.testing.assert_array_equal(table.values, [[5.0, 1.0, 2.0], [6.0, 3.0, 0.0]])
        assert table.dates == (1, 2)
        assert given["d"].to_list() == columns["d"]  # as they were
        assert tables.as_table(make({"a": [5.0, 6.0]}), "X", allow_dates=True).dates == ()
        with pytest.raises(TypeError, match=r"X must hold numbers; got dates in column 't' \(\d such columns in all\)"):
            tables.as_table(make(columns), "X")


def test_words_are_no_numbers_and_a_long_table_is_said_to_be_one():
    long = {"time": [1, 2], "node": ["a", "b"], "value": [1.0, 2.0]}
    with pytest.raises(TypeError, match=r"Y must be a wide table.*words in column 'node'.*Y\.pivot\(index=<time>"):
        tables.as_table(pd.DataFrame(long), "Y")
    wide = long | {"more": [1.0, 1.0]}
    for table, argument in ((long, "X"), (wide, "Y")):
        with pytest.raises(TypeError, match=r"must hold numbers; got words in column 'node' \(1 such columns in all\)"):
            tables.as_table(pd.DataFrame(table), argument)


def xarray_table(dims=("day", "place"), **coordinates):
    return xr.DataArray(np.arange(6.0).reshape(2, 3), dims=dims, coords=coordinates)


@pytest.mark.parametrize(
    ("array", "known", "is_turned"),
    [
        (xarray_table(place=["a", "b", "c"]), {"names": ("c", "b", "a")}, False),
        (xarray_table(day=["a", "b"]), {"names": ("a", "b")}, True),
        (xarray_table(("day", "node")), {}, False),
        (xarray_table(("node", "day")), {"names": ("x", "y")}, True),
        (xarray_table(place=["a", "b", "z"]), {"names": ("a", "b")}, False),  # some of the names
        (xarray_table(day=["a", "b"], place=["a", "b", "c"]), {"names": ("c", "a", "b")}, False),  # all of them
        (xarray_table(), {"rows": "day"}, False),
        (xarray_table(), {"rows": "place"}, True),
        (xarray_table(("node", "day"), node=["a", "b"]), {"rows": "node", "names": ("a", "b")}, False),
    ],
)
def test_dimensions_of_xarray_are_told_apart(array, known, is_turned):
    table = tables.as_table(array, "Y", **known)
    np.testing.assert_array_equal(table.values, array.to_numpy().T if is_turned else array.to_numpy())
    assert table.layout.is_turned == is_turned
    rows, columns = array.dims[::-1] if is_turned else array.dims
    assert table.layout.dims == (rows, columns)
    assert table.names == (tuple(array[columns].to_numpy().tolist()) if columns in array.coords else None)
    back = tables.like_table(10 * table.values, table)
    assert back.dims == array.dims
    np.testing.assert_array_equal(back, 10 * array)


def test_dimensions_that_cannot_be_told_apart_are_refused():
    for array in (xarray_table(), xarray_table(day=["a", "b"], place=["a", "b", "c"])):
        with pytest.raises(ValueError, match="Y must have one dimension whose coordinate holds the names of the"):
            tables.as_table(array, "Y", names=("a", "b", "z"))
    assert tables.as_table(xarray_table(), "X").values.shape == (2, 3)  # whose columns are features
    with pytest.raises(ValueError, match=r"Y must have two dimensions.*got \('day', 'place', 'level'\)"):
        tables.as_table(xarray_table().expand_dims("level", 2), "Y")


def test_one_dimension_of_xarray_is_a_series():
    values = xr.DataArray([3, 4], dims="place", coords={"place": ["a", "b"]})
    table = tables.as_table(values, "observed")
    assert (table.values.dtype, table.values.tolist(), table.names) == (float, [3, 4], None)
    row = table.as_one_row()
    assert (row.shape, row.names) == ((1, 2), ("a", "b"))
    assert tables.series_index(values) == ("a", "b")
    assert tables.series_index(xr.DataArray([3, 4], dims="place")) is None
    assert tables.series_index(xarray_table(place=["a", "b", "c"])) is None
    nameless = tables.as_table(pl.Series("x", [1.0, 2.0]), "observed").as_one_row()
    assert (nameless.shape, nameless.names) == ((1, 2), None)


def test_dates_of_xarray_are_days():
    stamps = xr.DataArray(np.array([["1970-01-02"], ["1970-01-05"]], dtype="M8[ns]"), dims=("row", "feature"))
    table = tables.as_table(stamps, "X", allow_dates=True)
    assert (table.values.tolist(), table.dates) == ([[1.0], [4.0]], (0,))
    with pytest.raises(TypeError, match="X must hold numbers; got dates"):
        tables.as_table(stamps, "X")
    assert tables.as_table(xarray_table(), "X", allow_dates=True).dates == ()
