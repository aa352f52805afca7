"""Kinds of filters: constructed ones, with and without deviations, and learnt ones against the evidence."""

from types import SimpleNamespace

import numpy as np
import pytest

import oracle
from spectralgp import Graph, GraphGPRegressor, Identity, Polynomial
from spectralgp.model.spectra import decompose
from spectralgp.show.report.shapes import FilterShape, representative_modes, shape_of
from tolerances import EXACT

EVEN = (np.linspace(0, 1, 41), np.full(41, 1 / 41))


def filtered(*values):
    """A filter that goes through given values, evenly spaced, on straight lines."""
    return np.interp(EVEN[0], np.linspace(0, 1, len(values)), values)


def drawn(values, deviation, seed=0):
    """Draws of a filter whose values are off by some share of its largest, smoothly in the frequency."""
    rng = np.random.default_rng(seed)
    waves = np.cos(np.pi * np.multiply.outer(np.arange(4), EVEN[0]))
    return values + deviation * np.max(np.abs(values)) * rng.standard_normal((32, 4)) @ waves / 2


CASES = {
    "low-pass": [(1.0, 0.5, 0.1), (6.3, 1.0, 0.2, 0.2, 0.25), (0.9, 1.0, 0.4, 0.1)],
    "high-pass": [(0.1, 0.5, 1.0), (0.2, 0.1, 0.3, 2.0)],
    "band-pass": [(0.1, 1.0, 0.1), (-0.2, -0.9, -0.2), (0.0, 0.2, 1.0, 0.9, 0.1)],
    "band-stop": [(2.09, 0.146, 2.85), (1.0, 0.05, 0.05, 0.7)],
    "several humps": [(0.99, 0.13, 0.02, 0.15, 0.49, 0.14), (0.0, 1.0, 0.0, 1.0, 0.0), (1.0, 0.0, 1.0, 0.0, 1.0)],
}


@pytest.mark.parametrize(("kind", "values"), [(kind, values) for kind, some in CASES.items() for values in some])
def test_kinds_of_filters(kind, values):
    values = filtered(*values)
    assert shape_of(EVEN, values).kind == kind
    assert shape_of(EVEN, values, drawn(values, 0.01)).kind == kind
    assert not shape_of(EVEN, values).is_weak
    assert shape_of(EVEN, 1e6 * values).kind == kind


@pytest.mark.parametrize("values", [(1.0, 1.0), (1.0, 0.97, 1.0), (0.98, 1.02, 0.99)])
def test_a_filter_that_hardly_varies_is_flat(values):
    values = filtered(*values)
    assert shape_of(EVEN, values).kind == "flat"
    assert shape_of(EVEN, values, drawn(values, 0.1)).kind == "flat"


def test_a_filter_that_varies_by_chance_is_flat_and_one_that_hardly_varies_for_certain_is_not():
    """What decides is whether powers are told apart: so a large evidence against a flat filter is never called flat."""
    wide, narrow = filtered(1.0, 0.6), filtered(1.0, 0.97)
    assert shape_of(EVEN, wide).kind == shape_of(EVEN, wide, drawn(wide, 0.05)).kind == "low-pass"
    found = shape_of(EVEN, wide, drawn(wide, 0.5))
    assert found.kind == "flat"
    assert found.meaning() == "flat within its uncertainty: there is no evidence that nodes are related"
    found = shape_of(EVEN, narrow, drawn(narrow, 0.001))
    assert (found.kind, found.is_weak) == ("low-pass", True)
    assert found.meaning() == "weakly low-pass: neighbours are alike, a little"


def test_draws_of_one_shape_and_any_size_are_certain():
    values = filtered(1.0, 0.7)
    sizes = np.exp(np.random.default_rng(0).standard_normal(32))
    assert shape_of(EVEN, values, sizes[:, None] * values).kind == "low-pass"


def test_a_filter_turns_where_its_humps_and_valleys_are():
    """Small ones between larger ones are left out with the valley or hump beside them, wherever they are."""
    large = (0.1, 2.0, 0.0, 1.5, 0.3, 1.2)
    for values, kept in (
        (large, range(6)),
        ((0.1, 2.0, 1.0, 1.05, 0.0, 1.5, 0.3, 1.2), (0, 1, 4, 5, 6, 7)),
        ((0.1, 2.0, 0.0, 1.5, 0.9, 0.93, 0.3, 1.2), (0, 1, 2, 3, 6, 7)),
        ((0.1, 0.05, 2.0, 0.0, 1.5, 0.3, 1.2, 1.15), range(8)),  # ends are told, turns or not
    ):
        modes = (np.arange(float(len(values))), np.full(len(values), 1 / len(values)))
        found = shape_of(modes, np.array(values))
        assert found.kind == "several humps"
        assert found.turns == tuple((float(place), values[place]) for place in kept), values


def test_a_hump_of_little_power_is_none():
    """At the end of a low-pass filter, and where a graph has few frequencies."""
    assert shape_of(EVEN, filtered(1.0, 0.1, 0.02, 0.1)).kind == "low-pass"
    assert shape_of(EVEN, filtered(1.0, 0.1, 0.02, 0.6)).kind == "band-stop"
    few = np.where(EVEN[0] > 0.7, 0.001, 1.0)
    assert shape_of((EVEN[0], few / few.sum()), filtered(1.0, 0.1, 0.02, 0.6)).kind == "low-pass"


def test_a_hump_that_is_not_told_apart_is_none():
    values = filtered(1.0, 0.3, 0.5, 0.1)
    assert shape_of(EVEN, values).kind == "several humps"
    assert shape_of(EVEN, values, drawn(values, 0.15)).kind == "low-pass"


def test_none_and_the_words():
    assert shape_of(EVEN, np.zeros(41)).kind == "none"
    found = shape_of(EVEN, filtered(2.09, 0.146, 2.85))
    assert found.values == "2.09 at frequency 0, 0.146 at frequency 0.5, 2.85 at the highest"
    assert found.meaning().startswith("band-stop: smooth patterns and rough ones stand out")
    assert found.meaning(carries=True) == "smooth patterns and rough ones carry over most"
    assert FilterShape("flat", False, ((0.0, 1.0),)).values == "1 at the one frequency"


def test_modes_are_the_ends_and_the_means_of_bins():
    weights = oracle.random_weights(40, 0)
    spectrum = decompose(Graph(weights))
    modes, values = (
        representative_modes(spectrum),
        np.linalg.eigvalsh(oracle.laplacian(weights, scaled=spectrum.scaled)),
    )
    assert modes[1].sum() == pytest.approx(1)
    assert modes[1] @ modes[0] == pytest.approx(values.mean(), rel=1e-9)
    assert (modes[0][0], modes[0][-1]) == pytest.approx((values[0], values[-1]), abs=EXACT)
    assert modes[1][0] == pytest.approx(1 / 40)
    assert representative_modes(decompose(Graph.edgeless(3)))[1].tolist() == [1.0]


# --------------------------------------------------------------------------------------------------------- learnt


def learnt(response, n_signals, n_nodes=60, seed=0, degree=4):
    """A polynomial learnt from white signals filtered on a random graph, and its evidence over a flat filter."""
    rng = np.random.default_rng(seed)
    graph = Graph.from_points(rng.random((n_nodes, 2)), n_neighbors=4)
    spectrum = decompose(graph, "normalized", scaled=True)
    vectors = spectrum.eigenvectors
    values = response(spectrum.eigenvalues / spectrum.upper)
    Y = (rng.standard_normal((n_signals, n_nodes)) * values) @ vectors.T
    Y = Y + 0.1 * rng.standard_normal(Y.shape)
    settings = {"residual": None, "center": "global", "scale": "global"}
    model, flat = (
        GraphGPRegressor(graph, kernel, **settings).fit(None, Y)
        for kernel in (Polynomial(degree, laplacian="normalized"), Identity())
    )
    return model, model.log_marginal_likelihood_ - flat.log_marginal_likelihood_


def kind_in(model):
    (line,) = [one for one in model.summary().splitlines() if one.startswith("  signal:")]
    return line.removeprefix("  signal:").strip()


def test_a_learnt_band_stop_filter_is_called_so():
    """It was called nearly flat, since its ends are alike."""
    model, evidence = learnt(lambda t: 0.1 + 10 * (t - 0.5) ** 2, 40)
    assert evidence > 100
    assert kind_in(model).startswith("band-stop: ")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("slope", [0.0, 0.1, 0.3])
def test_a_learnt_filter_is_never_flat_where_the_evidence_is_large(slope, seed):
    model, evidence = learnt(lambda t: 1 - slope * t, 30, seed=seed, degree=2)
    if evidence > 10:
        assert not kind_in(model).startswith("flat")
    if slope == 0.0:
        assert evidence < 10
        assert kind_in(model).startswith("flat")


def test_frequencies_of_a_quadrature_count_by_their_weights_and_negative_ones_for_nothing():
    values, weights = np.array([0.0, 0.5, 0.5, 1.0]), np.array([2.0, 4.0, -1.0, 0.5])
    found = representative_modes(SimpleNamespace(eigenvalues=values, multiplicities=weights, upper=1.0))
    np.testing.assert_allclose(found[0], [0.0, 0.5, 1.0])
    np.testing.assert_allclose(found[1], np.array([2.0, 4.0, 0.5]) / 6.5)
    many = representative_modes(
        SimpleNamespace(eigenvalues=np.linspace(0, 1, 302), multiplicities=np.ones(302), upper=1.0)
    )
    assert many[0].size == 32  # both ends, and thirty bins of ten
    np.testing.assert_allclose(many[1][1:-1] * 302, 10.0)
    near = representative_modes(
        SimpleNamespace(eigenvalues=np.array([0.0, 0.01, 0.99, 1.0]), multiplicities=weights, upper=1.0)
    )
    np.testing.assert_allclose(near[0], [0.0, 0.01, 1.0])  # ends are alone; the third counts for nothing
    np.testing.assert_allclose(near[1], np.array([2.0, 4.0, 0.5]) / 6.5)
    near = representative_modes(
        SimpleNamespace(eigenvalues=np.array([0.0, 0.01, 0.99, 1.0]), multiplicities=np.ones(4), upper=1.0)
    )
    np.testing.assert_allclose(near[0], [0.0, 0.01, 0.99, 1.0])
    beyond = representative_modes(SimpleNamespace(eigenvalues=values * 1.2 - 0.1, multiplicities=np.ones(4), upper=1.0))
    np.testing.assert_allclose(beyond[0], [0.0, 0.5, 1.0])
