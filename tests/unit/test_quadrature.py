"""The spectrum of large graphs: moments of its density, their errors, and what is remembered on the graph."""

import gc
import pickle
import threading
import weakref
from functools import partial

import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebpts1, chebval, chebvander
from scipy.special import ive

import oracle
from cases import GRAPHS, WEIGHTS
from spectralgp.graphs import Graph
from spectralgp.graphs.operators import chebyshev_coefficients, random_signs
from spectralgp.model.signals import expected_signals, read_signals
from spectralgp.model.spectra import Chebyshev, Exact, SpectralMoments, decompose, mean_over_nodes
from spectralgp.model.spectra.exact import SpectralSignals
from spectralgp.model.spectra.quadrature import shrunk_diagonals
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


# Signals on it


def test_energies_at_frequencies_say_what_coefficients_do():
    """Of a quadrature that has every frequency of its own, so that matrices are outer products of coefficients."""
    rng, n_rows = np.random.default_rng(1), 6
    coefficients = rng.standard_normal((n_rows, 5))
    matrices = np.einsum("iq,kq->qik", coefficients, coefficients)
    quadrature = Chebyshev(n_moments=5, n_probes="exact").of(Graph.from_edges([(one, one + 1) for one in range(4)]))
    exact, moments = SpectralSignals(coefficients), SpectralMoments(matrices, quadrature)
    response, scales = rng.standard_normal(5), rng.standard_normal((n_rows, 5))
    factors = np.tril(rng.standard_normal((5, 3, 3))) + 3 * np.eye(3)
    for own, other in zip(exact.carried_energies, moments.carried_energies, strict=True):
        assert oracle.relative_error(other, own) < EXACT
    pairs = [(exact, moments, scales), (exact.without_carried(response), moments.without_carried(response), scales[:3])]
    turn = rng.standard_normal((n_rows, 4))
    pairs.append((exact.rotate(turn), moments.rotate(turn), scales[:4]))
    for own, other, part in pairs:
        assert other.n_observations == own.n_observations
        assert oracle.relative_error(other.energies, own.energies) < EXACT
        assert oracle.relative_error(other.gram(part), own.gram(part)) < EXACT
        assert other.multiplicities.sum() == pytest.approx(own.multiplicities.sum())
    assert oracle.relative_error(pairs[1][1].quadratics(factors), pairs[1][0].quadratics(factors)) < EXACT


@every_laplacian
def test_what_completed_signals_carry_over_is_known(laplacian):
    """Sums over frequencies of expected signals less filtered ones, on a quadrature as on the exact spectrum."""
    graph, rng = GRAPHS["random"], np.random.default_rng(3)
    n_nodes = graph.n_nodes
    signals = expected_signals(rng.standard_normal((2, n_nodes)), 0.4 * rng.standard_normal((3, 2, n_nodes)))
    carried, grams = rng.standard_normal((2, n_nodes)), []
    for spectrum in (decompose(graph, laplacian), EXACTLY.of(graph, laplacian)):
        data = spectrum.read(signals, carried).without_carried(0.3 - 0.2 * spectrum.eigenvalues)
        grams.append(data.gram(np.ones((2, spectrum.eigenvalues.size))))
        np.testing.assert_allclose(data.energies.sum(axis=1), np.diag(grams[-1]))
    assert oracle.relative_error(grams[1], grams[0]) < FORMULA


def test_diagonals_by_probes_count_as_far_as_they_are_not_noise():
    """By hand: two functions of three terms on four nodes, of which the second is all noise."""
    low = np.array([[1.0, 1.0, 1.0, 1.0], [0.5, -0.2, 0.1, 0.3], [0.2, 0.7, -0.4, 0.6]])
    probed = np.array([[1.0, 1.0, 1.0, 1.0], [3.0, -1.0, 2.0, 0.5], [0.1, 0.2, -0.1, 0.0], [9.0, 9.0, 9.0, 9.0]])
    noise = np.diag([0.0, 0.2, 0.5, 70.0])
    quadratics, left = np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([[0.0, 2.0, 1.0], [0.0, 0.0, 4.0]])
    found, errors = shrunk_diagonals(low, probed, noise, quadratics, left)
    first = 2 * probed[1] + probed[2]
    share = 1 - 1.3 / np.mean(first**2)
    np.testing.assert_allclose(found, [2 * low[0] + low[1] + share * first, 3 * low[1]])
    np.testing.assert_allclose(errors, [np.sqrt(1.3 * share), np.sqrt(8.0 * 0.5)])


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
    exact = EXACTLY.of(POINTS, laplacian)
    expected = chebvander(np.linalg.eigvalsh(dense_operator(exact)), 20).sum(axis=0)
    found = np.array(
        [Chebyshev(n_probes=16, random_state=seed).of(POINTS, laplacian).density.moments(21) for seed in range(60)]
    )
    assert oracle.relative_error(found[:, :3], np.tile(expected[:3], (60, 1))) < EXACT
    errors = found[:, 3:].std(axis=0, ddof=1) / np.sqrt(60)
    assert np.all(np.abs(found[:, 3:].mean(axis=0) - expected[3:]) < STANDARD_ERRORS * errors)


def test_control_variates_reduce_the_spread_of_a_log_determinant():
    """Of ``tr log(1 + A/2)``, by more than a factor of ten in the standard deviation over seeds."""
    plain, controlled, stated = [], [], []
    values, vectors = np.linalg.eigh(dense_operator(EXACTLY.of(POINTS, scaled=True)))
    dense = (vectors * np.log(1.5 + (values + 1) / 2)) @ vectors.T
    for seed in range(40):
        spectrum = Chebyshev(n_probes=16, random_state=seed).of(POINTS, scaled=True)
        density = spectrum.density
        coefficients = chebyshev_coefficients(np.log(1.5 + spectrum.points(41)))
        probes = np.random.default_rng(seed).choice([-1.0, 1.0], (200, 16))
        plain.append(np.mean(np.sum(probes * (dense @ probes), axis=0)))
        controlled.append(coefficients @ density.moments(41))
        stated.append(density.spread(coefficients))
    assert np.std(controlled) < np.std(plain) / 10
    # the spread over the probes of one run states the spread over runs: chi-squared with 39 degrees of freedom
    ratio = np.std(controlled) / np.sqrt(np.mean(np.square(stated)))
    assert abs(ratio - 1) < STANDARD_ERRORS / np.sqrt(2 * 39)


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


def test_moments_begin_again_after_an_interrupt_left_probes_at_different_ones(listener):
    """40 probes are two blocks. The second is interrupted while the first has gone on, and a fit releases both."""

    def interrupt(text):
        if text in listener.mentions:
            raise KeyboardInterrupt
        listener.mentions.append(text)

    density = Chebyshev(n_probes=40).of(fresh(POINTS)).density
    expected = density.moments(17)
    density = Chebyshev(n_probes=40).of(fresh(POINTS)).density
    density.moments(9)
    listener.mentions.clear()
    listener.mention = interrupt
    with pytest.raises(KeyboardInterrupt):
        density.moments(17)
    del listener.mention
    density.release()
    np.testing.assert_array_equal(density.moments(17), expected)


# The quadrature


@every_graph
@every_laplacian
@pytest.mark.parametrize("scaled", [True, False])
def test_it_integrates_polynomials_as_the_eigenvalues_do(name, laplacian, scaled):
    spectrum, exact = EXACTLY.of(GRAPHS[name], laplacian, scaled), decompose(GRAPHS[name], laplacian, scaled=scaled)
    assert oracle.relative_error(spectrum.upper, exact.upper) < FORMULA
    assert np.all(np.diff(spectrum.eigenvalues) > 0)
    assert spectrum.eigenvalues[-1] < spectrum.end
    assert oracle.relative_error(spectrum.multiplicities.sum(), exact.graph.n_nodes) < EXACT
    coefficients = np.random.default_rng(0).standard_normal(8)
    actual = mean_over_nodes(spectrum, np.polyval(coefficients, spectrum.eigenvalues / exact.upper))
    expected = mean_over_nodes(exact, np.polyval(coefficients, exact.eigenvalues / exact.upper))
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


# Functions on it


def test_a_series_has_as_many_terms_as_it_takes():
    """Those of exponentials end where terms are 1e-10 of the largest, and those of powers with their degree."""
    spectrum = EXACTLY.of(POINTS, scaled=True)
    half = spectrum.end / 2
    # exp(-a x / end) is e^{-a/2} (I_0 + 2 sum_k (-1)^k I_k(a/2) T_k)
    orders = np.arange(80)
    for rate in (3.0, 60.0):
        terms = 2 * (-1.0) ** orders * ive(orders, rate / 2)
        terms[0] /= 2
        found = spectrum.series(lambda points, rate=rate: np.exp(-rate * points / spectrum.end)[None])[0]
        np.testing.assert_allclose(found, terms[: found.size], atol=1e-14)
        assert found.size == 1 + np.flatnonzero(np.abs(terms) > 1e-10 * np.max(np.abs(terms)))[-1]
    powers = spectrum.series(lambda points: np.stack([(points / half - 1) ** 3, 0 * points]))
    np.testing.assert_allclose(powers, [[0.0, 0.75, 0.0, 0.25], [0.0] * 4], atol=1e-14)
    assert spectrum.series(lambda points: np.zeros((2, points.size))).shape == (2, 1)
    assert spectrum.series(lambda points: np.full((1, points.size), 7.0)).tolist() == [[7.0]]


def test_a_series_leaves_out_what_is_within_a_slack():
    """T_0 + 0.1 T_1 + 0.01 T_2 + ..., smallest 1 / 1.1 or so at the left end, less than a share of that."""
    spectrum = EXACTLY.of(POINTS)
    exact = np.array([[1.0, 0.1, 0.01, 0.001, 1e-4], [5.0, 0.2, 0.0, 0.0, 0.002]])
    functions = partial(_series_at, spectrum, exact)
    smallest = np.min(np.abs(functions(spectrum.eigenvalues)), axis=1)
    tails = np.cumsum(np.abs(exact[:, ::-1]), axis=1)[:, ::-1]  # of each term and those after it
    for slack in (1e-5, 3e-4, 5e-3, 0.02, 0.2):
        n_terms = int(np.sum(np.any(tails > slack * smallest[:, None], axis=0)))
        found = spectrum.series(functions, slack)
        assert found.shape == (2, n_terms)
        np.testing.assert_allclose(found, exact[:, :n_terms], atol=1e-14)
    assert spectrum.series(functions).shape == (2, 5)


def _series_at(spectrum, coefficients, points):
    return chebval(2 * points / spectrum.end - 1, coefficients.T)


def test_diagonals_by_probes_are_exact_for_quadratics_and_have_the_error_of_their_halves():
    """Cubics less the quadratics that are nearest on the spectrum, by the same probes and dense matrices."""
    spectrum = Chebyshev(n_moments=21, n_probes=6, random_state=4).of(POINTS, scaled=True)
    exact = Chebyshev(n_moments=21, n_probes="exact", random_state=4).of(POINTS, scaled=True)
    matrix, n_nodes = dense_operator(exact), 200
    coefficients = np.array([[1.0, -0.5, 0.3, 0.4], [0.2, 0.1, 0.0, 0.0]])
    values, vectors = np.linalg.eigh(matrix)
    points, roots = 2 * exact.eigenvalues / exact.end - 1, np.sqrt(exact.multiplicities.clip(0))[:, None]
    quadratics = np.linalg.lstsq(roots * chebvander(points, 2), roots * chebval(points, coefficients.T).T)[0].T
    left = coefficients - np.pad(quadratics, ((0, 0), (0, 1)))
    dense = [(vectors * chebval(values, one)) @ vectors.T for one in left]
    random_state, halves = np.random.default_rng(5), []
    for _ in range(2):
        probes = np.asarray(random_signs(exact.operator, 32, random_state))
        halves.append(np.stack([np.mean(probes * (one @ probes), axis=1) for one in dense]))
    known = chebval(values, quadratics.T) @ np.square(vectors).T
    found, errors = exact.diagonals(partial(_series_at, exact, coefficients))
    np.testing.assert_allclose(found, known + (halves[0] + halves[1]) / 2, atol=1e-9)
    np.testing.assert_allclose(errors, np.sqrt(np.mean((halves[0] - halves[1]) ** 2, axis=1)) / 2, atol=1e-9)
    assert errors[1] < 1e-9 < 1e-3 < errors[0]
    at = np.array([3, 0, 77])
    chosen, none = exact.diagonals(partial(_series_at, exact, coefficients), at)
    truth = chebval(values, coefficients.T) @ np.square(vectors).T
    np.testing.assert_allclose(chosen, truth[:, at], atol=1e-12)
    assert none.tolist() == [0.0, 0.0]
    few, wide = spectrum.diagonals(partial(_series_at, spectrum, coefficients))
    assert few.shape == (2, n_nodes)
    assert wide[0] > 2 * errors[0]  # of six probes, where 64 were taken


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_errors_are_what_series_leave_out(dtype):
    """Of ``log D`` for every node and ``1 / D`` for the energies, beyond as many terms as there are moments."""
    settings = Chebyshev(n_moments=9, n_probes=8, tolerance=1e-3)
    spectrum = settings.of(fresh(POINTS), scaled=True, prototype=np.empty((0, 0), dtype=dtype))
    values = np.random.default_rng(2).standard_normal((3, 200)).astype(dtype)
    data = spectrum.read(read_signals(values, keep_source=True))
    levels = np.array([0.05, 0.2, 1.0])

    def variances(points):
        return levels[:, None] + np.exp(-4 * points)

    errors = data.errors(variances)
    energies, tails, totals, summed, points = data.energies.sum(axis=1), [], [], [], chebpts1(61)
    for function in (np.log, np.reciprocal):
        series = np.linalg.solve(chebvander(points, 60), function(variances(spectrum.end * (points + 1) / 2)).T).T
        tails.append(np.abs(series)[:, 9:].sum(axis=1))
        totals.append(np.abs(series).sum(axis=1))
        summed.append(series.sum(axis=0)[:9])
    expected = 200 * tails[0].sum() + energies @ tails[1]
    assert errors.truncation == pytest.approx(expected, rel=1e-6)
    rounding = 0.5 * np.finfo(dtype).eps * (200 * totals[0].sum() + energies @ totals[1])
    assert errors.rounding == (0.0 if dtype is np.float64 else pytest.approx(rounding, rel=1e-6))
    assert errors.probes == pytest.approx(0.5 * spectrum.density.spread(summed[0]), rel=1e-6)
    assert errors.limit == pytest.approx(1e-3 * 600)
    steep = data.errors(lambda points: variances(points) + 1e3 * (points[None] > 0.999 * spectrum.end))
    assert steep.truncation > 200 * 3 * 0.5 * np.log(1e3)  # a jump that no series goes through


# The largest eigenvalue


@pytest.mark.parametrize("n_nodes", [5_000, 5_001])
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


# What is remembered on the graph


def test_the_graph_is_probed_once_whatever_the_signals_and_tolerances():
    graph = fresh(POINTS)
    first = Chebyshev(tolerance=1e-4).of(graph)
    assert Chebyshev(tolerance=1e-6, n_moments=33).of(graph, scaled=True).density is first.density
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


def test_memory_is_that_of_blocks_and_of_moments():
    needed, of, remedy = Chebyshev(n_moments=33, n_probes=16).memory(5, 1_000, 4)
    assert needed == (4 * 5 + 2 * 16) * 1_000 * 4 + 3 * 8 * 33 * 25
    assert of == "5 signals and 16 probes on 1000 nodes"
    assert remedy.startswith("Pass Y as float32")
    assert Chebyshev(n_probes="exact").memory(5, 100, 8)[1] == "5 signals and 100 probes on 100 nodes"
    needed, of, remedy = Chebyshev().memory(2_000, 100, 8)
    assert needed == (4 * 2_000 + 2 * 32) * 100 * 8 + 3 * 8 * 129 * 2_000**2
    assert of == "129 moments of 2000 by 2000 signals, and more if some are added"
    assert remedy.startswith("Learn from fewer signals")
    needed, of, remedy = Exact().memory(5, 1_000, 8)
    assert (needed, of) == (24e6, "the exact spectrum of 1000 nodes")
    assert "chebyshev" in remedy


def test_the_least_that_settings_may_be():
    least = Chebyshev(n_moments=3, max_moments=3, n_probes=4, random_state=0, device="cpu")
    assert least.of(GRAPHS["random"]).n_moments == 3
    assert least.of(GRAPHS["random"]).refined() is None
    assert Chebyshev(n_moments=4).of(GRAPHS["random"]).n_moments == 5  # odd, since a product gives two more


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        ("tolerance", (0.0, -1e-3, float("nan"))),
        ("n_moments", (2, -129, 33.5)),
        ("max_moments", (33,)),
        ("n_probes", (3, -1, "all", None)),
        ("random_state", (None, -1)),
        ("device", ("tpu",)),
    ],
)
def test_settings_that_make_no_sense_are_refused(setting, values):
    for value in values:
        with pytest.raises((TypeError, ValueError), match=f"{setting} must be"):
            Chebyshev(**{setting: value})


def test_the_laplacian_must_be_known():
    with pytest.raises(ValueError, match=r"laplacian must be one of 'combinatorial', .*; got 'banana'"):
        Chebyshev().of(GRAPHS["random"], "banana")


def test_a_filter_too_steep_for_a_series_is_named():
    spectrum = EXACTLY.of(POINTS, scaled=True)
    with pytest.warns(RuntimeWarning, match="too steep for a series of 16384 Chebyshev polynomials"):
        spectrum.series(lambda points: (points[None] > 0.3).astype(float))
