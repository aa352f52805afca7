import numpy as np
import pandas as pd
import pytest

from spectralgp._basics.checks import as_integer, as_option, as_positive, as_real_array, as_signals, as_training_signals

AXES = ("n_signals", "n_nodes")


def test_numbers_of_every_kind_become_float64():
    for value in ([[1, 2]], np.array([[True, False]]), pd.DataFrame([[1, 2.5]]), np.array([[1, 2]], dtype=object)):
        array = as_real_array(value, "signals", AXES)
        assert array.dtype == np.float64
        np.testing.assert_array_equal(array, np.asarray(value, dtype=float))


def test_float64_is_not_copied():
    array = np.ones((2, 3))
    assert as_real_array(array, "signals", AXES) is array


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (np.ones((1, 2), dtype=complex), r"signals must be an array of real numbers; got dtype complex128\. Pass the"),
        ([["a", "b"]], r"signals must be an array of real numbers; got dtype <U1\. Convert"),
        ([[1, 2], [3]], r"signals must be an array of real numbers; got list .* rows of equal length"),
        (np.array([[None, "a"]], dtype=object), "signals must be an array of real numbers; got ndarray"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "signals must be an array of real numbers; got dtype dat"),
    ],
)
def test_what_holds_no_real_numbers_is_refused(value, match):
    with pytest.raises(TypeError, match=match):
        as_real_array(value, "signals", AXES)


def test_a_wrong_shape_is_refused_with_the_axes_and_the_remedy():
    with pytest.raises(ValueError, match=r"must .*; got \(3, 2\)\. Transpose it\."):
        as_real_array(np.ones((3, 2)), "signals", AXES, sizes={"n_nodes": 3}, remedy="Transpose it.")
    with pytest.raises(ValueError, match=r"inputs must have shape \(n_inputs,\); got \(3, 2\)\.$"):
        as_real_array(np.ones((3, 2)), "inputs", ("n_inputs",))


def test_values_that_are_not_finite_are_refused_where_they_are():
    with pytest.raises(ValueError, match=r"signals must be finite; got nan at index \(0, 1\) \(2 such in all\)"):
        as_real_array([[1, np.nan, np.inf]], "signals", AXES)
    with pytest.raises(ValueError, match=r"signals must be finite or NaN; got inf at index \(0, 2\) \(1 such in all\)"):
        as_real_array([[1, np.nan, np.inf]], "signals", AXES, allow_nan=True)
    kept = as_real_array([[1, np.nan]], "signals", AXES, allow_nan=True)
    np.testing.assert_array_equal(kept, [[1, np.nan]])


MASKED = np.ma.array([[1.0, 99.0, 3.0]], mask=[[False, True, False]])


@pytest.mark.parametrize(
    "value", [MASKED, MASKED.astype(int), MASKED.astype(np.float32), MASKED.astype(object), [MASKED[0]], (MASKED[0],)]
)
def test_masked_entries_are_refused_where_they_are(value):
    match = r"signals must have no masked entries; got 1, the first at index \(0, 1\)\. Remove or fill in such values"
    with pytest.raises(ValueError, match=match):
        as_real_array(value, "signals", AXES)
    with pytest.raises(ValueError, match=match):
        as_signals(value, 3)


@pytest.mark.parametrize("dtype", [float, int, np.float32, object])
def test_masked_entries_are_missing_where_those_are_allowed(dtype):
    for array in (
        as_real_array(MASKED.astype(dtype), "signals", AXES, allow_nan=True),
        as_signals(MASKED.astype(dtype), 3, allow_nan=True),
    ):
        assert type(array) is np.ndarray
        assert array.dtype == np.float64
        np.testing.assert_array_equal(array, [[1.0, np.nan, 3.0]])
    np.testing.assert_array_equal(MASKED.data, [[1.0, 99.0, 3.0]])  # as it was


def test_missing_values_of_pandas_are_nan():
    frame = pd.DataFrame({"a": [1.5, None], "b": [None, 2]}).convert_dtypes()
    array = as_real_array(frame.astype(object), "signals", AXES, allow_nan=True)
    np.testing.assert_array_equal(array, [[1.5, np.nan], [np.nan, 2]])
    with pytest.raises(ValueError, match=r"signals must be finite; got nan at index \(0, 1\) \(2 such in all\)"):
        as_real_array(frame.astype(object), "signals", AXES)


def test_an_empty_mask_hides_nothing():
    for mask in (np.ma.nomask, [[False, False]]):
        array = as_real_array(np.ma.array([[1.0, 2.0]], mask=mask), "signals", AXES)
        assert type(array) is np.ndarray
        np.testing.assert_array_equal(array, [[1.0, 2.0]])
    under_mask = np.ma.array([[np.inf, 1.0]], mask=[[True, False]])
    np.testing.assert_array_equal(as_real_array(under_mask, "signals", AXES, allow_nan=True), [[np.nan, 1.0]])


def test_numbers_in_strings_are_refused_in_arrays_of_objects_too():
    for value in (np.array([["1", 2.0]], dtype=object), pd.DataFrame({"a": [1], "b": ["2"]}), [[b"1", None]]):
        with pytest.raises(TypeError, match="signals must be an array of real numbers; got"):
            as_real_array(value, "signals", AXES)


def test_signals_may_be_one_or_many():
    assert as_signals([1, 2], 2).shape == (2,)
    assert as_signals([[1, 2]], 2).shape == (1, 2)


@pytest.mark.parametrize(
    ("shape", "match"),
    [
        ((45, 30), r"must have shape \(n_signals, n_nodes\) with n_nodes = 45; got \(45, 30\)\. .* transpose\?"),
        ((30, 44), r"with n_nodes = 45; got \(30, 44\)\. Rows are signals, columns the nodes"),
        ((44,), r"signals must have shape \(n_nodes,\) with n_nodes = 45; got \(44,\)"),
        ((2, 3, 45), r"signals must have shape \(n_signals, n_nodes\) with n_nodes = 45; got \(2, 3, 45\)"),
        ((), r"signals must have shape .*; got \(\)"),
    ],
)
def test_signals_of_another_shape_are_refused(shape, match):
    with pytest.raises(ValueError, match=match):
        as_signals(np.ones(shape), 45)


def test_training_signals_have_a_row_for_each_input():
    found = as_training_signals([[1, np.nan]], 1, 2)
    np.testing.assert_array_equal(found, [[1.0, np.nan]])
    with pytest.raises(
        ValueError, match=r"with n_signals = 2 and n_nodes = 1; got \(1, 2\)\. Rows are signals, one for"
    ):
        as_training_signals([[1.0, 2.0]], 2, 1)


def test_positive_numbers():
    assert as_positive(np.float32(2), "radius") == 2.0
    for value in (0, -1, np.nan, np.inf):
        with pytest.raises(ValueError, match="radius must be a finite number above 0; got"):
            as_positive(value, "radius")
    for value in ("1", None, True, 1j, [1.0]):
        with pytest.raises(TypeError, match="radius must be a finite number above 0; got"):
            as_positive(value, "radius")


def test_integers():
    assert as_integer(np.int32(3), "degree", 0) == 3
    assert isinstance(as_integer(np.int32(3), "degree", 0), int)
    assert as_integer(5, "degree", 0, 5) == 5
    with pytest.raises(ValueError, match=r"degree must be an integer of at least 0; got -1\. Pass at least 0\."):
        as_integer(-1, "degree", 0)
    with pytest.raises(ValueError, match=r"degree must .*; got 6\. Pass at most 5"):
        as_integer(6, "degree", 0, 5)
    for value in (1.0, "1", None, True):
        with pytest.raises(TypeError, match=r"degree must be an integer of at least 0; got .*\. Pass a whole number"):
            as_integer(value, "degree", 0)


def test_options():
    assert as_option("b", "kind", ("a", "b")) == "b"
    for value in ("c", None, ["a"]):
        with pytest.raises(ValueError, match="kind must be one of 'a', 'b'; got"):
            as_option(value, "kind", ("a", "b"))
