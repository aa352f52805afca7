"""The spectrum of large graphs: moments of its density, their errors, and what is remembered on the graph."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import oracle
from cases import GRAPHS, WEIGHTS
from spectralgp.graphs import Graph
from spectralgp.operators import CpuOperator, chebyshev_coefficients
from spectralgp.signals import read_signals
from spectralgp.spectra import Chebyshev, decompose
from tolerances import EXACT, FORMULA, STANDARD_ERRORS

N_SIGNALS = 4
EXACTLY = Chebyshev(n_moments=21, n_probes="exact")
POINTS = Graph.from_points(np.random.default_rng(0).random((200, 2)), 6)

every_graph = pytest.mark.parametrize("name", GRAPHS)
every_laplacian = pytest.mark.parametrize("laplacian", ["combinatorial", "normalized", "balanced"])


def signals_on(name):
    n_nodes = len(WEIGHTS[name])
    return 3 + np.random.default_rng(n_nodes).standard_normal((N_SIGNALS, n_nodes))


def dense_operator(spectrum):
    weights = spectrum.graph.weights.toarray()
    return 2 * oracle.laplacian(weights, spectrum.laplacian) / spectrum.operator.bound - np.eye(len(weights))


def fresh(graph):
    """The same graph, which nothing was computed on."""
    return Graph(graph.weights)


# Moments of the density


@every_graph
@every_laplacian
def test_exact_density_moments_are_traces(name, laplacian):
    spectrum = EXACTLY.of(GRAPHS[name], laplacian)
    matrix = dense_operator(spectrum)
    expected = [np.trace(oracle.chebyshev_matrix(matrix, k)) for k in range(21)]
    assert oracle.relative_error(spectrum.density.moments(21), expected) < FORMULA
    assert spectrum.density.probe_moments(21) is None
    assert spectrum.density.spread(np.ones(21)) == 0.0


@every_laplacian
def test_probes_are_exact_in_the_first_traces_and_unbiased_in_the_others(laplacian):
    """Over 60 seeds, the mean deviation from the trace stays within its standard error."""
    matrix = dense_operator(EXACTLY.of(POINTS, laplacian))
    expected = np.array([np.trace(oracle.chebyshev_matrix(matrix, k)) for k in range(21)])
    found = np.array(
        [Chebyshev(n_probes=16, random_state=seed).of(POINTS, laplacian).density.moments(21) for seed in range(60)]
    )
    assert oracle.relative_error(found[:, :3], np.tile(expected[:3], (60, 1))) < EXACT
    errors = found[:, 3:].std(axis=0, ddof=1) / np.sqrt(60)
    assert np.all(np.abs(found[:, 3:].mean(axis=0) - expected[3:]) < STANDARD_ERRORS * errors)


def test_control_variates_reduce_the_spread_of_a_log_determinant():
    """Of ``tr log(1 + A/2)``, by more than a factor of ten in the standard deviation over seeds."""
    plain, controlled, stated = [], [], []
    for seed in range(40):
        spectrum = Chebyshev(n_probes=16, random_state=seed).of(POINTS, scaled=True)
        density = spectrum.density
        coefficients = chebyshev_coefficients(np.log(1.5 + spectrum.points(41)))
        plain.append(coefficients @ density._raw(41).mean(axis=1))
        controlled.append(coefficients @ density.moments(41))
        stated.append(density.spread(coefficients))
    assert np.std(controlled) < np.std(plain) / 10
    # the spread over the probes of one run states the spread over runs: chi-squared with 39 degrees of freedom
    ratio = np.std(controlled) / np.sqrt(np.mean(np.square(stated)))
    assert abs(ratio - 1) < STANDARD_ERRORS / np.sqrt(2 * 39)


@pytest.mark.slow
def test_the_stated_spread_has_the_degrees_of_freedom_of_its_controls():
    """With five probes and two controls only two are left: over 600 seeds the median of its square tells them apart.

    A mean would be that of one or two seeds whose controls nearly depend on each other.
    """
    truth = EXACTLY.of(POINTS, scaled=True)
    coefficients = chebyshev_coefficients(np.log(1.5 + truth.points(41)))
    expected = coefficients @ truth.density.moments(41)
    deviations, stated = [], []
    for seed in range(600):
        density = Chebyshev(n_probes=5, random_state=seed).of(POINTS, scaled=True).density
        deviations.append(coefficients @ density.moments(41) - expected)
        stated.append(density.spread(coefficients))
    ratio = np.median(np.square(stated)) / np.median(np.square(deviations))
    assert 0.6 < ratio < 1.2  # with the degrees of freedom of five probes alone it would be half of this


def test_probes_repeat_with_their_seed_and_differ_with_another():
    found = [Chebyshev(random_state=seed).of(fresh(POINTS)).density.moments(9) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.allclose(found[0], found[2], rtol=1e-9)


def test_moments_asked_for_in_parts_are_those_of_one_pass():
    parts, whole = Chebyshev().of(fresh(POINTS)).density, Chebyshev().of(fresh(POINTS)).density
    parts.moments(9)
    np.testing.assert_array_equal(parts.moments(17), whole.moments(17))
    parts.release()
    np.testing.assert_array_equal(parts.moments(17), whole.moments(17))
    assert oracle.relative_error(parts.moments(33), whole.moments(33)) < EXACT  # from the start again


def test_moments_begin_again_after_an_interrupt_left_probes_at_different_ones(monkeypatch):
    """40 probes are two blocks. The second is interrupted while the first has gone on, and a fit releases both."""
    density = Chebyshev(n_probes=40).of(fresh(POINTS)).density
    expected = density.moments(17)
    density = Chebyshev(n_probes=40).of(fresh(POINTS)).density
    density.moments(9)
    with monkeypatch.context() as patch:
        patch.setattr(density._passes[1], "extend", lambda n_moments: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            density.moments(17)
    density.release()
    np.testing.assert_array_equal(density.moments(17), expected)


# The quadrature


@every_graph
@every_laplacian
@pytest.mark.parametrize("scaled", [True, False])
def test_it_integrates_polynomials_as_the_eigenvalues_do(name, laplacian, scaled):
    spectrum, exact = EXACTLY.of(GRAPHS[name], laplacian, scaled), decompose(GRAPHS[name], laplacian, scaled=scaled)
    assert spectrum.n_nodes == exact.n_nodes
    assert oracle.relative_error(spectrum.upper, exact.upper) < FORMULA
    assert np.all(np.diff(spectrum.eigenvalues) > 0)
    assert spectrum.eigenvalues[-1] < spectrum.end
    assert oracle.relative_error(spectrum.multiplicities.sum(), exact.n_nodes) < EXACT
    coefficients = np.random.default_rng(0).standard_normal(8)
    actual = spectrum.mean(np.polyval(coefficients, spectrum.eigenvalues / exact.upper))
    expected = exact.mean(np.polyval(coefficients, exact.eigenvalues / exact.upper))
    assert oracle.relative_error(actual, expected) < FORMULA
    values = signals_on(name)
    energies = spectrum.read(read_signals(values))
    expected = (values @ exact.eigenvectors) * np.polyval(coefficients, exact.eigenvalues / exact.upper)
    expected = expected @ exact.eigenvectors.T @ values.T
    weights = np.polyval(coefficients, spectrum.eigenvalues / exact.upper)
    assert oracle.relative_error(np.tensordot(weights, energies.matrices, axes=1), expected) < FORMULA
    assert energies.n_observations == values.size


def test_refining_doubles_up_to_the_limit_and_leaves_coarser_ones_as_they_were():
    coarse = Chebyshev(n_moments=9, max_moments=20, n_probes="exact").of(GRAPHS["random"])
    before = coarse.multiplicities.copy()
    sizes, finer = [], coarse.refined()
    while finer is not None:
        sizes.append(finer.eigenvalues.size)
        finer = finer.refined()
    assert sizes == [17, 21]  # always an odd number
    np.testing.assert_array_equal(coarse.multiplicities, before)
    assert coarse.eigenvalues.size == 9
    assert decompose(GRAPHS["random"]).refined() is None


def test_repr_says_what_stands_for_what():
    expected = "Quadrature(21 nodes for 7 frequencies of the scaled combinatorial Laplacian)"
    assert repr(EXACTLY.of(GRAPHS["random"], scaled=True)) == expected


# The largest eigenvalue


@pytest.mark.parametrize("n_nodes", [20_000, 20_001])
def test_a_ring_whose_top_eigenvalues_crowd_is_held_by_the_interval(n_nodes):
    """200 steps of Lanczos do not resolve it: the value is off by a millionth or so, and that is stated."""
    edges = np.column_stack([np.arange(n_nodes), (np.arange(n_nodes) + 1) % n_nodes])
    ring = Graph.from_edges(edges)
    spectrum = Chebyshev(n_moments=65).of(ring)
    truth = 2 - 2 * np.cos(2 * np.pi * (n_nodes // 2) / n_nodes)
    error = abs(spectrum.largest_eigenvalue - truth)
    assert 1e-9 < error <= spectrum.density.residual
    assert spectrum.operator.bound >= truth
    assert np.all(np.abs(spectrum.density.moments(65)) <= 1.01 * n_nodes)


def test_the_interval_reaches_beyond_what_lanczos_missed():
    """A residual larger than the usual margin widens the interval by itself."""
    operator = CpuOperator(*POINTS.laplacian_parts())
    operator.gershgorin = 100.0
    operator.tighten(4.0, 0.5)
    assert operator.bound == pytest.approx(5.0)
    operator.tighten(4.0, 0.0)
    assert 4.0 < operator.bound < 4.1


# What is remembered on the graph


def test_the_graph_is_probed_once_whatever_the_signals_and_tolerances(monkeypatch):
    graph, runs = fresh(POINTS), []
    original = CpuOperator.largest_eigenvalue
    monkeypatch.setattr(CpuOperator, "largest_eigenvalue", lambda self: runs.append(1) or original(self))
    first = Chebyshev(tolerance=1e-4).of(graph)
    assert Chebyshev(tolerance=1e-6, n_moments=33).of(graph, scaled=True).density is first.density
    assert len(runs) == 1
    assert Chebyshev(n_probes=16).of(graph).density is not first.density
    assert Chebyshev().of(graph, "normalized").density is not first.density
    assert Chebyshev().of(graph, prototype=np.empty((0, 0), dtype=np.float32)).density is not first.density


@pytest.mark.parametrize("make", [lambda graph: decompose(graph), lambda graph: Chebyshev(n_moments=9).of(graph)])
def test_a_graph_that_nobody_needs_goes_at_once(make):
    """Nothing that is remembered on a graph leads back to it, or eigenvectors would stay until a full collection."""
    graph = fresh(POINTS)
    spectrum = make(graph)
    assert spectrum.multiplicities.sum() == pytest.approx(200)
    gone = weakref.ref(graph)
    gc.disable()
    try:
        del graph, spectrum
        assert gone() is None
    finally:
        gc.enable()


def test_threads_share_a_density():
    graph = fresh(POINTS)
    expected = Chebyshev().of(fresh(POINTS)).density.moments(65)
    density, found = Chebyshev().of(graph).density, []
    threads = [threading.Thread(target=lambda n=n: found.append(density.moments(n))) for n in (9, 33, 65, 17, 65)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for moments in found:
        assert oracle.relative_error(moments, expected[: moments.size]) < EXACT


def test_a_quadrature_travels_in_pickles():
    spectrum = Chebyshev().of(GRAPHS["random"], scaled=True)
    copy = pickle.loads(pickle.dumps(spectrum))
    np.testing.assert_array_equal(copy.multiplicities, spectrum.multiplicities)
    np.testing.assert_array_equal(copy.refined().multiplicities, spectrum.refined().multiplicities)


# Settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0.0}, "tolerance must be"),
        ({"tolerance": -1e-3}, "tolerance must be"),
        ({"tolerance": float("nan")}, "tolerance must be"),
        ({"n_moments": 0}, "n_moments must be"),
        ({"n_moments": -129}, "n_moments must be"),
        ({"n_moments": 33.5}, "n_moments must be"),
        ({"n_moments": 65, "max_moments": 33}, "max_moments must be"),
        ({"n_probes": 0}, "n_probes must be"),
        ({"n_probes": -1}, "n_probes must be"),
        ({"n_probes": "all"}, "n_probes must be"),
        ({"n_probes": None}, "n_probes must be"),
        ({"random_state": None}, "random_state must be"),
        ({"random_state": -1}, "random_state must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Chebyshev(**options)


def test_the_laplacian_must_be_known():
    with pytest.raises(ValueError, match=r"laplacian must be one of 'combinatorial', .*; got 'banana'"):
        Chebyshev().of(GRAPHS["random"], "banana")


def test_a_filter_too_steep_for_a_series_is_named():
    spectrum = EXACTLY.of(POINTS, scaled=True)
    with pytest.warns(RuntimeWarning, match="too steep for a series of 16384 Chebyshev polynomials"):
        spectrum.diagonals(lambda points: (points[None] > 0.3).astype(float))
