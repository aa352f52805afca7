"""Arrays of any library, random numbers, and threads of the linear algebra."""

from functools import cached_property

import array_api_strict
import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_info, threadpool_limits

from spectralgp import Diffusion, Graph, GraphGPRegressor
from spectralgp._basics import arrays
from spectralgp.model.spectra import base, exact


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_up_to_512_rows_get_one_thread_and_the_setting_comes_back():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        for n_rows, inside in ((512, {1}), (513, before)):
            with arrays.few_threads(n_rows):
                assert blas_threads() == inside
                with arrays.few_threads(1):
                    assert blas_threads() == {1}
                assert blas_threads() == inside
            assert blas_threads() == before
        with pytest.raises(KeyboardInterrupt), arrays.few_threads(1):
            raise KeyboardInterrupt
        assert blas_threads() == before


def test_large_matrices_have_the_users_threads_inside_a_block_of_small_ones():
    with threadpool_limits(2, user_api="blas"):
        users = blas_threads()
        with arrays.few_threads(30):
            for sizes, inside in (((513,), users), ((512,), {1}), ((500, 500, 2_000), users), ((30, 30, 2_000), {1})):
                with arrays.few_threads(*sizes):
                    assert blas_threads() == inside
                    with arrays.few_threads(40):
                        assert blas_threads() == {1}
                    assert blas_threads() == inside
                assert blas_threads() == {1}
        assert blas_threads() == users


def test_a_fit_to_few_signals_decomposes_a_large_graph_on_the_users_threads(monkeypatch):
    seen = []

    def watched(matrix, **settings):
        seen.append((len(matrix), blas_threads()))
        return eigh(matrix, **settings)

    monkeypatch.setattr(exact, "eigh", watched)
    monkeypatch.setattr(base, "eigh", watched)
    graph, rng = Graph.from_edges([(node, node + 1) for node in range(519)]), np.random.default_rng(0)
    with threadpool_limits(2, user_api="blas"):
        GraphGPRegressor(graph, Diffusion(), RBF(1.0)).fit(rng.standard_normal((3, 1)), rng.standard_normal((3, 520)))
        assert {number for size, threads in seen for number in threads if size == 520} == blas_threads()
        assert {number for size, threads in seen for number in threads if size == 3} == {1}


def test_products_of_stacked_rows_are_those_of_each():
    stacked, matrix = np.arange(24.0).reshape(2, 3, 4), np.arange(20.0).reshape(4, 5)
    np.testing.assert_array_equal(arrays.times_matrix(stacked, matrix), stacked @ matrix)
    np.testing.assert_array_equal(arrays.times_matrix(stacked[0, 0], matrix), stacked[0, 0] @ matrix)


def test_arrays_of_another_library_stay_so():
    array = array_api_strict.asarray([[4.0, -1.0, 9.0]])
    chosen = arrays.take(array, np.array([2, 0]), axis=1)
    root = arrays.non_negative_root(array)
    for one, values in ((chosen, [[9.0, 4.0]]), (root, [[2.0, 0.0, 3.0]])):
        assert type(one) is type(array)
        np.testing.assert_array_equal(np.asarray(one), values)
    assert arrays.device_of(array) == str(array.device)
    assert arrays.device_of(object()) == "cpu"


def test_seeds_repeat_and_generators_move_on():
    own = np.random.default_rng(5)
    assert arrays.as_generator(own) is own
    for state in (3, np.random.RandomState(3)):
        assert arrays.as_generator(state).random() == arrays.as_generator(3).random()
    assert arrays.as_generator(None, 3).random() == arrays.as_generator(3).random()
    assert arrays.as_generator(4).random() != arrays.as_generator(3).random()


def test_what_was_asked_before_is_no_part_of_a_state():
    class Thing:
        def __init__(self):
            self.kept = 1

        @cached_property
        def found(self):
            return 2

    class Special(Thing):
        @cached_property
        def more(self):
            return 3

    thing = Special()
    assert (thing.found, thing.more) == (2, 3)
    assert arrays.without_caches(thing) == {"kept": 1}
