"""Column names, the index, and the threads of linear algebra."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info

from spectralgp._basics.arrays import SMALL, few_threads
from spectralgp._basics.tables import frame_index, frame_names, match_columns, series_index

FRAME = pd.DataFrame([[1.0, 2.0]], columns=["b", "a"], index=["row"])


def test_frames_have_names_and_an_index():
    assert frame_names(FRAME) == ("b", "a")
    assert frame_index(FRAME).tolist() == ["row"]


@pytest.mark.parametrize("thing", [np.ones((2, 2)), [[1, 2]], None, (np.ones(2), np.ones(2)), pd.Series([1.0])])
def test_other_things_have_none(thing):
    assert frame_names(thing) is None
    assert frame_index(thing) is None


def test_a_series_has_an_index():
    assert series_index(pd.Series([1.0, 2.0], index=["b", "a"])) == ("b", "a")


@pytest.mark.parametrize("thing", [np.ones(2), [1, 2], (1, 2), None, FRAME])
def test_what_is_no_series_has_none(thing):
    assert series_index(thing) is None


@pytest.mark.parametrize("seed", range(5))
def test_matched_columns_are_in_the_order_of_the_nodes(seed):
    names = np.array([f"node {i}" for i in range(9)])
    shuffled = np.random.default_rng(seed).permutation(names)
    order = match_columns(tuple(shuffled), tuple(names))
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
        match_columns(columns, ("a", "b", "c"))


def test_values_that_do_not_match_are_called_so():
    message = (
        r"signal must have one value for each node of the graph, by name; got 2 values, of which 'x' belong to no "
        r"node, while 'b' are missing\. Rename or select values, or pass signal\.to_numpy\(\) with its values in "
    )
    with pytest.raises(ValueError, match=message):
        match_columns(("a", "x"), ("a", "b"), "signal", "value")


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_small_matrices_get_one_thread_and_the_setting_comes_back():
    before = blas_threads()
    with few_threads(SMALL):
        assert blas_threads() == {1}
    assert blas_threads() == before
    with few_threads(SMALL + 1):
        assert blas_threads() == before


def test_matching_columns_takes_time_in_proportion():
    names = tuple(f"node {number}" for number in range(100_000))
    start = time.perf_counter()
    order = match_columns(names[::-1], names)
    assert time.perf_counter() - start < 5  # it takes minutes where every column is looked up in a set made anew
    assert order[:2].tolist() == [99_999, 99_998]
