from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import oracle
from cases import GRAPHS, WEIGHTS
from spectralgp.graphs import Graph
from spectralgp.model import spectra
from spectralgp.model.signals import expected_signals, read_signals
from tolerances import EXACT, FORMULA

every_graph = pytest.mark.parametrize("graph", GRAPHS)
every_laplacian = pytest.mark.parametrize("laplacian", ["combinatorial", "normalized", "balanced"])
both_scales = pytest.mark.parametrize("scaled", [False, True])


def some_signals(graph, n_signals=3):
    return np.random.default_rng(0).standard_normal((n_signals, GRAPHS[graph].n_nodes))


@both_scales
@every_laplacian
@every_graph
def test_eigenpairs_rebuild_the_laplacian(graph, laplacian, scaled):
    """Equation (2): L = V diag(lambda) V^T, orthonormal and ascending."""
    spectrum = spectra.decompose(GRAPHS[graph], laplacian, scaled=scaled)
    vectors, values = spectrum.eigenvectors, spectrum.eigenvalues
    expected = oracle.laplacian(WEIGHTS[graph], laplacian, scaled)
    assert oracle.relative_error(vectors @ np.diag(values) @ vectors.T, expected) < FORMULA
    assert oracle.relative_error(vectors.T @ vectors, np.eye(len(values))) < EXACT
    assert np.all(np.diff(values) >= 0)
    assert (spectrum.graph, spectrum.laplacian, spectrum.scaled) == (GRAPHS[graph], laplacian, scaled)


@both_scales
@every_laplacian
@every_graph
def test_each_component_has_one_eigenvalue_of_exactly_zero(graph, laplacian, scaled):
    values = spectra.decompose(GRAPHS[graph], laplacian, scaled=scaled).eigenvalues
    expected = {"disconnected": 3, "edgeless": 4}.get(graph, 1)
    assert np.count_nonzero(values == 0.0) == expected
    assert np.all(values >= 0)


@every_laplacian
@every_graph
def test_scaled_eigenvalues_end_at_one(graph, laplacian):
    """Equation (2): L_S = L / lambda_max."""
    plain = spectra.decompose(GRAPHS[graph], laplacian)
    scaled = spectra.decompose(GRAPHS[graph], laplacian, scaled=True)
    largest = plain.eigenvalues[-1]
    assert scaled.eigenvalues[-1] == (1.0 if largest > 0 else 0.0)
    assert oracle.relative_error(scaled.eigenvalues * largest, plain.eigenvalues) < EXACT
    assert scaled.forward is plain.forward
    assert scaled.upper == 1.0


def test_the_interval_of_filters():
    assert spectra.decompose(GRAPHS["ring"], "normalized").upper == 2.0
    assert spectra.decompose(GRAPHS["ring"]).upper == pytest.approx(4.0, rel=EXACT)
    assert spectra.decompose(GRAPHS["edgeless"]).upper == 1.0


@every_laplacian
@every_graph
def test_transform_keeps_the_energy_and_inverse_undoes_it(graph, laplacian):
    """Parseval."""
    spectrum, signals = spectra.decompose(GRAPHS[graph], laplacian), some_signals(graph)
    coefficients = spectrum.transform(signals)
    assert oracle.relative_error(np.sum(coefficients**2, axis=1), np.sum(signals**2, axis=1)) < EXACT
    assert oracle.relative_error(spectrum.inverse(coefficients), signals) < EXACT
    expected = [[signal @ vector for vector in spectrum.eigenvectors.T] for signal in signals]
    assert oracle.relative_error(coefficients, expected) < EXACT
    assert oracle.relative_error(spectrum.transform(signals[0]), coefficients[0]) < EXACT
    assert oracle.relative_error(spectrum.inverse(coefficients[0]), signals[0]) < EXACT


@both_scales
@every_laplacian
@every_graph
def test_filter_is_a_function_of_the_laplacian(graph, laplacian, scaled):
    """Equation (2): B = g(L), by the dense matrix exponential and a dense polynomial."""
    spectrum, signals = spectra.decompose(GRAPHS[graph], laplacian, scaled=scaled), some_signals(graph)
    matrix = oracle.laplacian(WEIGHTS[graph], laplacian, scaled)
    heat = oracle.diffusion(matrix, 1.4)
    filtered = spectrum.filter(signals, lambda eigenvalues: np.exp(-0.7 * eigenvalues))
    assert oracle.relative_error(filtered, signals @ heat) < FORMULA
    given = spectrum.filter(signals[0], np.exp(-0.7 * spectrum.eigenvalues))
    assert oracle.relative_error(given, heat @ signals[0]) < FORMULA
    square = spectrum.filter(signals, lambda eigenvalues: eigenvalues**2)
    assert oracle.relative_error(square, signals @ matrix @ matrix) < FORMULA


def test_a_graph_is_decomposed_once():
    graph = Graph(WEIGHTS["random"])
    first = spectra.decompose(graph)
    assert spectra.decompose(graph, "combinatorial", scaled=False).eigenvectors is first.eigenvectors
    assert spectra.decompose(graph, scaled=True).eigenvectors is first.eigenvectors
    assert spectra.decompose(graph, "normalized").eigenvectors is not first.eigenvectors
    assert spectra.decompose(Graph(WEIGHTS["random"])).eigenvectors is not first.eigenvectors


def test_a_graph_without_edges_is_not_decomposed():
    """20,000 outputs without a graph: a matrix of nodes by nodes would take 3.2 GB and a quarter of an hour."""
    n_nodes = 20_000
    spectrum = spectra.decompose(Graph(csr_array((n_nodes, n_nodes))), scaled=True)
    signals = np.random.default_rng(0).standard_normal((2, n_nodes))
    np.testing.assert_array_equal(spectrum.transform(signals), signals)
    np.testing.assert_array_equal(spectrum.inverse(signals), signals)
    np.testing.assert_array_equal(spectrum.eigenvalues, np.zeros(n_nodes))
    powers = spectrum.diagonals(lambda eigenvalues: np.stack([eigenvalues + 1, eigenvalues + 2]))[0]
    np.testing.assert_array_equal(powers, np.repeat([[1.0], [2.0]], n_nodes, axis=1))


def test_a_spectrum_cannot_be_written_to():
    spectrum = spectra.decompose(GRAPHS["ring"])
    with pytest.raises(ValueError, match="read-only"):
        spectrum.eigenvalues[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        spectrum.eigenvectors[0, 0] = 1.0


def test_an_exact_spectrum_has_no_errors():
    spectrum = spectra.decompose(GRAPHS["random"])
    data = spectrum.read(read_signals(np.ones((2, 7))))
    errors = data.errors(lambda eigenvalues: np.ones((2, eigenvalues.size)))
    assert errors == spectra.LikelihoodErrors(truncation=0.0, rounding=0.0, probes=0.0, limit=np.inf)
    assert errors.is_tolerable
    assert not spectra.LikelihoodErrors(truncation=2e-3, limit=1e-3).is_tolerable
    assert spectra.LikelihoodErrors(truncation=1e-3, limit=1e-3).is_tolerable


def test_spectral_signals_count_and_rotate():
    signals = spectra.exact.SpectralSignals(some_signals("ring"))
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
    rotated = signals.rotate(rotation)
    assert rotated.n_observations == 18
    np.testing.assert_array_equal(rotated.multiplicities, np.ones(6))
    assert oracle.relative_error(rotated.coefficients, rotation.T @ signals.coefficients) < EXACT
    assert oracle.relative_error(rotated.energies, rotated.coefficients**2) < EXACT
    scales = np.random.default_rng(2).random((3, 6))
    expected = np.zeros((3, 3))
    for j in range(6):
        column = scales[:, j] * rotated.coefficients[:, j]
        expected += np.outer(column, column)
    assert oracle.relative_error(rotated.gram(scales), expected) < EXACT


@pytest.mark.parametrize("has_after", [False, True])
@pytest.mark.parametrize("has_beside", [False, True])
def test_a_bank_of_filters_is_a_matrix_at_every_eigenvalue(has_after, has_beside):
    """Combinations of filtered signals, filtered again, beside the same combinations filtered once."""
    rng, eigenvalues = np.random.default_rng(0), np.linspace(0.1, 2.0, 5)
    combination, coefficients = rng.standard_normal((2, 3)), rng.standard_normal((3, 5))
    before, after, beside = (np.multiply.outer(rng.random(size), eigenvalues) + 1 for size in (3, 2, 2))
    bank = spectra.FilterBank(
        lambda _: before,
        combination,
        (lambda _: after) if has_after else None,
        added=(lambda _: beside) if has_beside else None,
    )
    expected = np.empty((2, 5))
    for j in range(5):
        matrix = combination @ np.diag(before[:, j])
        matrix = np.diag(after[:, j]) @ matrix if has_after else matrix
        matrix = matrix + np.diag(beside[:, j]) @ combination if has_beside else matrix
        np.testing.assert_allclose(bank.matrices(eigenvalues)[:, :, j], matrix)
        expected[:, j] = matrix @ coefficients[:, j]
    np.testing.assert_allclose(bank.apply(coefficients, eigenvalues), expected)


def test_expected_signals_have_the_squares_of_their_mean_and_deviations():
    """More deviations than signals, and fewer; rotated, and with what is carried over below them."""
    rng, spectrum = np.random.default_rng(4), spectra.decompose(GRAPHS["random"])
    mean, carried = rng.standard_normal((2, 2, 7))
    turn, response, scales = rng.standard_normal((2, 2)), rng.standard_normal(7), rng.random((2, 7))
    factors = np.tril(rng.standard_normal((7, 2, 2))) + 3 * np.eye(2)
    for n_deviations in (0, 1, 5):
        deviations = rng.standard_normal((n_deviations, 2, 7))
        signals = expected_signals(mean, deviations)
        stacked = spectrum.read(signals, carried)
        own, across = stacked.carried_energies
        np.testing.assert_allclose(own, spectrum.load(carried) ** 2)
        np.testing.assert_allclose(across, spectrum.load(carried) * spectrum.load(mean))
        data = stacked.rotate(np.kron(np.eye(2), turn)).without_carried(response)
        plain = spectrum.read(signals).rotate(turn)
        less = spectrum.load(mean) - response * spectrum.load(carried)
        for found, rows in ((data, less), (plain, spectrum.load(mean))):
            sets = [turn.T @ rows, *(turn.T @ spectrum.load(one) for one in deviations)]
            np.testing.assert_allclose(found.energies, sum(one**2 for one in sets))
            scaled = [one * scales for one in sets]
            np.testing.assert_allclose(found.gram(scales), sum(one @ one.T for one in scaled))
            np.testing.assert_allclose(found.node_gram(scales), sum(one.T @ one for one in scaled))
            solved = [np.linalg.solve(factors[j], one[:, j]) for one in sets for j in range(7)]
            np.testing.assert_allclose(found.quadratics(factors), np.square(solved).sum(axis=0))
            assert found.n_observations == 14
            np.testing.assert_array_equal(found.multiplicities, np.ones(7))


def test_a_turned_basis_goes_there_and_back():
    """Vectors ``B`` that are not orthonormal, with their dual."""
    spectrum, rng = spectra.decompose(GRAPHS["random"], "normalized"), np.random.default_rng(1)
    vectors = rng.standard_normal((7, 7)) + 3 * np.eye(7)
    dual, numbers = np.linalg.inv(vectors).T, np.arange(7.0)
    basis = spectra.ExactSpectrum(spectrum.graph, "normalized", False, numbers, vectors, dual, 2.5)
    signals = rng.standard_normal((2, 7))
    coordinates = np.linalg.solve(vectors, signals.T).T
    np.testing.assert_allclose(basis.load(signals), coordinates)
    np.testing.assert_allclose(basis.coefficients(read_signals(signals)), coordinates)
    np.testing.assert_allclose(basis.unload(coordinates), signals)
    assert (basis.log_volume, spectrum.log_volume) == (2.5, 0.0)
    np.testing.assert_array_equal(basis.eigenvalues, np.arange(7))
    diagonal, errors = basis.diagonals(lambda values: values[None] + 1, np.array([4, 2]))
    np.testing.assert_allclose(diagonal[0], np.diag(vectors @ np.diag(np.arange(1.0, 8.0)) @ vectors.T)[[4, 2]])
    assert errors.tolist() == [0.0]


# Errors


def test_the_laplacian_must_be_known():
    with pytest.raises(ValueError, match="must be one of 'combinatorial', 'normalized', 'balanced'; got 'signless'"):
        spectra.decompose(Graph(WEIGHTS["ring"]), "signless")


def test_signals_must_fit_the_graph():
    spectrum = spectra.decompose(GRAPHS["ring"])
    with pytest.raises(ValueError, match=r"signals must have shape .*n_nodes = 6; got \(6, 2\).*the transpose\?"):
        spectrum.transform(np.ones((6, 2)))
    with pytest.raises(ValueError, match=r"spectral_signals must have shape \(n_nodes,\) with n_nodes = 6; got \(5,\)"):
        spectrum.inverse(np.ones(5))
    with pytest.raises(ValueError, match="signals must be finite; got nan"):
        spectrum.transform(np.full(6, np.nan))


@pytest.mark.parametrize("response", [np.ones(5), 1.0, lambda eigenvalues: eigenvalues[:, None]])
def test_a_response_must_fit_the_spectrum(response):
    with pytest.raises(ValueError, match="response must give one value for each of the 6 eigenvalues; got shape"):
        spectra.decompose(GRAPHS["ring"]).filter(np.ones(6), response)


def restored(spectrum, settings, found):
    graph = Graph(GRAPHS["ring"].weights)
    settings.remember(graph, spectrum.laplacian, found)
    again = settings.of(graph, spectrum.laplacian, spectrum.scaled)
    return again if again.n_moments == spectrum.n_moments else replace(again, n_moments=spectrum.n_moments)


@both_scales
@every_laplacian
def test_a_spectrum_is_restored_from_what_was_found_without_computing_it(laplacian, scaled):
    exact = spectra.Exact().of(GRAPHS["ring"], laplacian, scaled)
    large = spectra.Chebyshev(n_moments=5, n_probes=4).of(GRAPHS["ring"], laplacian, scaled)
    found = spectra.state_of_spectrum(exact)
    changed = spectra.Eigenpairs(found.eigenvalues, found.eigenvectors[:, ::-1])
    np.testing.assert_array_equal(restored(exact, spectra.Exact(), changed).eigenvectors, changed.eigenvectors)
    np.testing.assert_array_equal(restored(exact, spectra.Exact(), changed).eigenvalues, exact.eigenvalues)
    expected = large.multiplicities
    again = restored(large, large.settings, spectra.state_of_spectrum(large))
    np.testing.assert_array_equal(again.eigenvalues, large.eigenvalues)
    np.testing.assert_array_equal(again.multiplicities, expected)


def test_what_settings_cannot_have_found_is_refused():
    exact, large = spectra.decompose(GRAPHS["ring"]), spectra.Chebyshev(n_moments=5, n_probes=4).of(GRAPHS["ring"])
    for values in (exact.eigenvalues[::-1], exact.eigenvalues - 1):
        with pytest.raises(ValueError, match="eigenpairs must have eigenvalues that ascend from zero; got"):
            restored(exact, spectra.Exact(), spectra.Eigenpairs(values, exact.eigenvectors))
    with pytest.raises(ValueError, match="eigenpairs must be those of the combinatorial Laplacian; got none"):
        restored(exact, spectra.Exact(), None)
    with pytest.raises(ValueError, match="n_moments is declared with init=False"):
        restored(large, spectra.Exact(), spectra.state_of_spectrum(exact))
    with pytest.raises(ValueError, match="densities must hold one of the combinatorial Laplacian; got none"):
        restored(large, large.settings, spectra.state_of_spectrum(exact))
    with pytest.raises(ValueError, match="n_moments must be an odd number up to 3; got 5"):
        restored(large, spectra.Chebyshev(n_moments=3, max_moments=3, n_probes=4), spectra.state_of_spectrum(large))
    large.multiplicities  # noqa: B018 (which computes the moments)
    with pytest.raises(ValueError, match="densities must hold an odd number of moments of 8 probes; got"):
        restored(large, spectra.Chebyshev(n_moments=5, n_probes=8), spectra.state_of_spectrum(large))


# Modes of other covariances


def test_modes_rebuild_the_matrix():
    root = np.random.default_rng(8).standard_normal((5, 5))
    covariance = root @ root.T
    modes = spectra.modes_of(covariance)
    assert isinstance(modes, spectra.Modes)
    rebuilt = modes.vectors @ np.diag(modes.values) @ modes.vectors.T
    assert oracle.relative_error(rebuilt, covariance) < FORMULA


def test_rounding_below_zero_is_removed_and_a_truly_negative_eigenvalue_refused():
    rounded = spectra.modes_of(np.diag([1.0, -1e-12]))
    assert rounded.values.tolist() == [0.0, 1.0]
    assert rounded.smallest == -1e-12
    assert rounded.require_definite() is rounded
    with pytest.raises(
        ValueError, match=r"the input covariance must be positive semi-definite; got smallest eigenvalue -2"
    ):
        spectra.modes_of(np.diag([1.0, -2.0])).require_definite()
    for size in (1.0, 1e-9):  # relative to the largest
        assert spectra.modes_of(size * np.diag([1.0, -0.9e-8])).require_definite().values.tolist() == [0.0, size]
        for values in ([1.0, -1.1e-8], [-1.0, -0.5]):
            with pytest.raises(ValueError, match="must be positive semi-definite"):
                spectra.modes_of(size * np.diag(values)).require_definite()
    assert spectra.modes_of(np.empty((0, 0))).require_definite().vectors.shape == (0, 0)


def test_a_matrix_of_zeros_is_a_covariance():
    assert spectra.modes_of(np.zeros((3, 3))).require_definite().values.tolist() == [0.0, 0.0, 0.0]
