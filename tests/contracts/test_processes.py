"""Threads, forked processes, interrupts and places that cannot be written to, each in a process of its own."""

import os
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import oracle
import spectralgp
from cases import LARGE_FILTERS, LargeCase, run_python
from spectralgp import Chebyshev, Graph, GraphGPRegressor, Polynomial
from spectralgp._basics.arrays import few_threads

CASE = LargeCase(LARGE_FILTERS["low-pass"], 0.1, n_nodes=60)
SETUP = """
import numpy as np
from sklearn.gaussian_process.kernels import RBF
from spectralgp import Chebyshev, Graph, GraphGPRegressor, Polynomial
paper = {"residual": None, "carry": None, "center": "global", "scale": "global"}
rng = np.random.default_rng(0)
graph = Graph.from_points(rng.random((5000, 2)), 6)
X, Y = rng.standard_normal((6, 2)), rng.standard_normal((6, 5000))
def fit(seed=0):
    spectrum = Chebyshev(n_moments=33, random_state=seed)
    return GraphGPRegressor(graph, Polynomial(1), RBF(1.0), spectrum=spectrum, **paper).fit(X, Y)
"""


def run(script: str, **environment: str) -> str:
    """What a script prints that starts with the fits above."""
    return run_python(SETUP + textwrap.dedent(script), **{"NUMBA_NUM_THREADS": "2"} | environment)


@pytest.mark.slow
def test_a_forked_process_goes_on_where_its_parent_has_threads():
    """GNU OpenMP kills a child that starts threads of its own after its parent did: it computes on one instead."""
    printed = run(
        """
        import multiprocessing as mp
        operator = graph.operator()
        def image():
            return operator.unload(operator.step(operator.load(Y), operator.zeros(6)))
        def work(queue):
            queue.put(image())
        fit()
        context = mp.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=work, args=(queue,))
        child.start()
        found = queue.get(timeout=120)
        child.join(30)
        print(child.exitcode, np.max(np.abs(found - image())) < 1e-12)
        """
    )
    assert printed.split() == ["0", "True"]


@pytest.mark.parametrize("layer", ["workqueue", "omp"])
@pytest.mark.slow
def test_fits_in_threads_do_not_meet_in_the_compiled_loops(layer):
    """The work queue of Numba aborts the process when two threads enter it."""
    printed = run(
        """
        import threading
        expected = fit().log_marginal_likelihood_
        found = []
        threads = [threading.Thread(target=lambda: found.append(fit().log_marginal_likelihood_)) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(found), max(abs(value / expected - 1) for value in found) < 1e-9)
        """,
        NUMBA_THREADING_LAYER=layer,
    )
    assert printed.split() == ["4", "True"]


@pytest.mark.slow
def test_nothing_to_write_to_is_no_reason_to_fail(tmp_path):
    """A read-only installation without a writable home: Numba compiles without its cache, where it would raise."""
    source = Path(spectralgp.__file__).parents[1]
    script = """
        operator = graph.operator()
        print(np.isfinite(operator.unload(operator.step(operator.load(Y), operator.zeros(6)))).all())
        """
    # makes Numba find no place for its cache, as on a read-only file system
    (tmp_path / "sitecustomize.py").write_text(
        "import numba.core.caching as caching\n"
        "def nowhere(self, py_func):\n"
        "    raise RuntimeError('cannot cache function: no locator available')\n"
        "caching.CacheImpl.__init__ = nowhere\n"
    )
    assert run(script, PYTHONPATH=f"{source}{os.pathsep}{tmp_path}").split() == ["True"]
    cache = tmp_path / "cache"
    assert run(script, NUMBA_CACHE_DIR=str(cache)).split() == ["True"]
    assert list(cache.rglob("*.nbi"))


@pytest.mark.slow
def test_without_numba_the_graph_is_computed_by_scipy():
    printed = run(
        """
        import sys, warnings
        sys.modules["numba"] = None
        from importlib.machinery import PathFinder
        import spectralgp.graphs.operators.choose as choose
        choose.find_spec = lambda name: None if name == "numba" else PathFinder.find_spec(name)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            first, second = fit(), fit(1)
        print(len([w for w in caught if "spectralgp[large]" in str(w.message)]), first.log_marginal_likelihood_)
        """
    )
    n_warnings, value = printed.split()
    assert n_warnings == "1"
    expected = run("print(fit().log_marginal_likelihood_)")
    assert abs(float(value) / float(expected) - 1) < 1e-9


@pytest.mark.slow
def test_an_interrupted_fit_leaves_nothing_behind():
    """Ctrl-C in the middle of passes: the bar is gone, the old fit is there, and another fit works."""
    printed = run(
        """
        import os, signal, threading
        signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a script ignore it
        model = fit()
        before = model.predict(X)
        threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                model.set_params(spectrum=Chebyshev(n_moments=513, random_state=int(rng.integers(1000)))).fit(X, Y)
        except KeyboardInterrupt:
            print(np.array_equal(model.predict(X), before) or "another fit had ended")
        print(np.isfinite(fit(2).log_marginal_likelihood_))
        """
    )
    assert printed.split("\n")[0] in ("True", "another fit had ended")
    assert printed.split("\n")[1] == "True"


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_threads_give_the_pool_of_linear_algebra_back():
    """Limits restored in the wrong order left the process at one thread for ever."""
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        inside, outside = threading.Event(), threading.Event()

        def first():
            with few_threads(1):
                inside.set()
                outside.wait(10)

        thread = threading.Thread(target=first)
        thread.start()
        inside.wait(10)
        with few_threads(1):  # enters while the other is inside, and leaves after it
            outside.set()
            thread.join()
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_fits_in_threads_are_the_fits_alone():
    """Bit by bit, on small graphs."""
    graph = Graph(oracle.random_weights(9, seed=1))
    rng = np.random.default_rng(0)
    data = [(rng.standard_normal((8, 2)), rng.standard_normal((8, 9))) for _ in range(4)]

    def fitted(X, Y):
        return GraphGPRegressor(graph, Polynomial(2)).fit(X, Y).predict(X)

    expected = [fitted(*given) for given in data]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda given: fitted(*given), data))
    for actual, truth in zip(found, expected, strict=True):
        np.testing.assert_array_equal(actual, truth)


@pytest.mark.slow
def test_large_fits_in_threads_share_the_graph():
    def fit(_):
        model = GraphGPRegressor(CASE.graph, Polynomial(1), spectrum=Chebyshev(n_moments=33))
        return model.fit(CASE.inputs, CASE.signals).log_marginal_likelihood_

    expected = fit(None)
    with ThreadPoolExecutor(4) as pool:
        np.testing.assert_allclose(list(pool.map(fit, range(4))), [expected] * 4, rtol=1e-12)
