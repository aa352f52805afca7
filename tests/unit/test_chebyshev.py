"""The spectrum of large graphs: moments of density and signals, their views and their errors."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from cases import GRAPHS, WEIGHTS
from spectralgp.graph import Graph
from spectralgp.spectrum import Chebyshev, LargeSignals, chebyshev_coefficients, decompose
from tolerances import EXACT, FORMULA, STANDARD_ERRORS

N_SIGNALS = 4
EXACTLY = Chebyshev(n_moments=21, n_probes="exact")
POINTS = Graph.from_points(np.random.default_rng(0).random((200, 2)), 6)

every_graph = pytest.mark.parametrize("name", GRAPHS)
every_laplacian = pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])


def large(name="random", settings=EXACTLY, **options):
    n_nodes = len(WEIGHTS[name])
    signals = 3 + np.random.default_rng(n_nodes).standard_normal((N_SIGNALS, n_nodes))
    return LargeSignals(GRAPHS[name], signals, settings, **options)


def dense_operator(signals, laplacian):
    weights = signals.graph.weights.toarray()
    return 2 * oracle.laplacian(weights, laplacian) / signals.operator(laplacian).bound - np.eye(len(weights))


# Moments


@every_graph
@every_laplacian
def test_exact_density_moments_are_traces(name, laplacian):
    signals = large(name)
    matrix = dense_operator(signals, laplacian)
    expected = [np.trace(oracle.chebyshev_matrix(matrix, k)) for k in range(21)]
    assert oracle.relative_error(signals.density_moments(laplacian), expected) < FORMULA
    assert signals.probe_moments(laplacian) is None


@every_graph
@every_laplacian
def test_signal_moments_are_dense_products(name, laplacian):
    signals = large(name, offset=0.5, spread=2.0)
    values = (signals.signals - 0.5) / 2.0
    matrix = dense_operator(signals, laplacian)
    expected = [values @ oracle.chebyshev_matrix(matrix, k) @ values.T for k in range(21)]
    assert oracle.relative_error(signals.signal_moments(laplacian), np.stack(expected)) < FORMULA


@every_laplacian
def test_probes_are_exact_in_the_first_traces_and_unbiased_in_the_others(laplacian):
    """Over 60 seeds, the mean deviation from the trace stays within its standard error."""
    matrix = dense_operator(LargeSignals(POINTS, np.ones((1, 200)), EXACTLY), laplacian)
    expected = np.array([np.trace(oracle.chebyshev_matrix(matrix, k)) for k in range(21)])
    found = []
    for seed in range(60):
        settings = Chebyshev(n_moments=21, n_probes=16, random_state=seed)
        found.append(LargeSignals(POINTS, np.ones((1, 200)), settings).density_moments(laplacian))
    found = np.array(found)
    assert oracle.relative_error(found[:, :3], np.tile(expected[:3], (60, 1))) < EXACT
    errors = found[:, 3:].std(axis=0, ddof=1) / np.sqrt(60)
    assert np.all(np.abs(found[:, 3:].mean(axis=0) - expected[3:]) < STANDARD_ERRORS * errors)


def test_control_variates_reduce_the_spread_of_a_log_determinant():
    """Of ``tr log(1 + A/2)``, by more than a factor of ten in the standard deviation over seeds."""
    plain, controlled, stated = [], [], []
    for seed in range(40):
        settings = Chebyshev(n_moments=41, n_probes=16, random_state=seed)
        signals = LargeSignals(POINTS, np.ones((1, 200)), settings)
        spectrum = signals.spectrum("combinatorial", scaled=True)
        coefficients = chebyshev_coefficients(np.log(1.5 + spectrum.points(41)))
        plain.append(coefficients @ signals._raw_probes("combinatorial").mean(axis=1))
        controlled.append(coefficients @ signals.density_moments("combinatorial"))
        stated.append(spectrum.probe_spread(coefficients))
    assert np.std(controlled) < np.std(plain) / 10
    # the spread over the probes of one run states the spread over runs: chi-squared with 39 degrees of freedom
    ratio = np.std(controlled) / np.sqrt(np.mean(np.square(stated)))
    assert abs(ratio - 1) < STANDARD_ERRORS / np.sqrt(2 * 39)


def test_probes_repeat_with_their_seed_and_differ_with_another():
    found = [
        LargeSignals(POINTS, np.ones((1, 200)), Chebyshev(n_moments=9, random_state=seed)).density_moments(
            "combinatorial"
        )
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.allclose(found[0], found[2], rtol=1e-9)


# The spectrum


@every_graph
@every_laplacian
@pytest.mark.parametrize("scaled", [True, False])
def test_the_quadrature_integrates_polynomials_as_the_eigenvalues_do(name, laplacian, scaled):
    signals = large(name)
    spectrum, exact = signals.spectrum(laplacian, scaled), decompose(GRAPHS[name], laplacian, scaled=scaled)
    assert not spectrum.is_exact
    assert spectrum.n_nodes == exact.n_nodes
    assert oracle.relative_error(spectrum.upper, exact.upper) < FORMULA
    assert np.all(np.diff(spectrum.eigenvalues) > 0)
    assert spectrum.eigenvalues[-1] < spectrum.end
    assert oracle.relative_error(spectrum.multiplicities.sum(), exact.n_nodes) < EXACT
    coefficients = np.random.default_rng(0).standard_normal(8)
    actual = spectrum.mean(np.polyval(coefficients, spectrum.eigenvalues / exact.upper))
    expected = exact.mean(np.polyval(coefficients, exact.eigenvalues / exact.upper))
    assert oracle.relative_error(actual, expected) < FORMULA
    energies = spectrum.read(signals)
    expected = (signals.signals @ exact.eigenvectors) * np.polyval(coefficients, exact.eigenvalues / exact.upper)
    expected = expected @ exact.eigenvectors.T @ signals.signals.T
    weights = np.polyval(coefficients, spectrum.eigenvalues / exact.upper)
    assert oracle.relative_error(np.tensordot(weights, energies.matrices, axes=1), expected) < FORMULA
    assert energies.n_observations == signals.size


def test_repr_says_what_stands_for_what():
    expected = "ChebyshevSpectrum(21 quadrature nodes for 7 frequencies of the scaled combinatorial Laplacian)"
    assert repr(large().spectrum("combinatorial", scaled=True)) == expected


# Views


def energies(signals, whole):
    return whole.spectrum("combinatorial", scaled=True).read(signals).matrices


@pytest.mark.parametrize("offset", [1.5, np.linspace(0, 1, 7)])
def test_views_are_the_signals_they_say(offset):
    """Scaled, in units, and some of either: columns and energies of all are those of the arrays themselves."""
    whole = large(offset=offset, spread=2.5)
    centred = whole.signals - offset
    rows = np.array([3, 0])
    views = {
        "scaled": (whole, centred / 2.5),
        "in units": (whole.in_units(), centred),
        "some": (whole.subset(rows), centred[rows] / 2.5),
        "some in units": (whole.in_units().subset(rows), centred[rows]),
        "some of some": (whole.subset(np.array([1, 0, 3])).subset(np.array([2, 1])), centred[rows] / 2.5),
    }
    for kind, (view, expected) in views.items():
        assert view.shape == expected.shape, kind
        assert view.size == expected.size, kind
        columns = view.operator("combinatorial").unload(view.columns("combinatorial"))
        assert oracle.relative_error(columns, expected) < EXACT, kind
        direct = LargeSignals(whole.graph, expected, EXACTLY)
        assert oracle.relative_error(energies(view, whole), energies(direct, direct)) < EXACT, kind
        assert oracle.relative_error(view.mean_square, np.mean(expected**2)) < EXACT, kind


def test_a_spectrum_from_a_view_reads_the_moments_of_all():
    whole = large()
    view = whole.subset(np.array([2]))
    assert energies(view, view).shape == (21, 1, 1)
    assert oracle.relative_error(energies(view, view)[:, 0, 0], energies(whole, whole)[:, 2, 2]) < EXACT


def test_extending_doubles_up_to_the_limit_and_leaves_earlier_spectra_readable():
    signals = large(settings=Chebyshev(n_moments=9, max_moments=20, n_probes="exact"))
    small = signals.spectrum("combinatorial", scaled=True)
    before = small.read(signals).matrices
    sizes = []
    while not signals.is_exhausted:
        signals.extend()
        sizes.append(signals.spectrum("combinatorial", scaled=True).eigenvalues.size)
    assert sizes == [17, 21]  # always an odd number
    assert small.eigenvalues.size == 9
    np.testing.assert_array_equal(small.read(signals).matrices, before)
    signals.extend()
    assert signals.spectrum("combinatorial", scaled=True).eigenvalues.size == 21


def test_extended_moments_are_those_of_one_pass():
    parts, whole = large(settings=Chebyshev(n_moments=9)), large(settings=Chebyshev(n_moments=17))
    parts.spectrum("normalized", scaled=False)
    parts.extend()
    np.testing.assert_array_equal(parts.signal_moments("normalized"), whole.signal_moments("normalized"))
    assert oracle.relative_error(parts.density_moments("normalized"), whole.density_moments("normalized")) < EXACT


def test_release_keeps_the_moments_and_forgets_the_rest():
    steps = []
    signals = large(progress=steps.append)
    before = energies(signals, signals)
    assert steps
    signals.release()
    np.testing.assert_array_equal(energies(signals, signals), before)
    held = [*signals._passes.values(), *signals._probes["combinatorial"]]
    assert all(state.current is None and state.previous is None for state in held)
    assert signals.progress is None


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
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Chebyshev(**options)
