"""Figures of reports, by what they are drawn from: which node first, colours, points and shares."""

import base64
import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from spectralgp import Graph
from spectralgp.scores import calibration_of
from spectralgp.show.curves import FILTER_NAMES, filter_curve
from spectralgp.show.report import figures
from spectralgp.show.report.numbers import FilterBands, Predictions

NAN = np.nan
NODES = np.arange(3)
OBSERVED = np.array([[1.0, 2.0, 3.0], [2.0, NAN, 5.0], [0.0, 1.0, NAN]])
MEAN = np.array([[1.5, 2.0, 1.0], [2.0, 3.0, 4.0], [0.0, 4.0, 1.0]])


EMPTY = FilterBands("Laplacian", {}, {}, np.array([0.0, 1.0]), np.ones(1), np.ones(1))


def predictions(imputed=None, baseline=None, std=1.0):
    baseline = np.zeros((3, 3)) if baseline is None else baseline
    std = np.full((3, 3), std)
    return Predictions("left out", ("a", "b", "c"), OBSERVED, MEAN, std, None, baseline, imputed)


def page_data(shown, graph=None, calibration=None):
    """Data of a page with predictions at the nodes "u", "v" and "w", or at those of a graph."""
    graph = Graph.edgeless(shown.observed.shape[1]) if graph is None else graph
    names = ("u", "v", "w")[: graph.n_nodes] if graph.n_nodes < 4 else tuple(map(str, range(graph.n_nodes)))
    calibration = calibration_of(np.linspace(0.01, 0.99, 40).reshape(10, 4)) if calibration is None else calibration
    numbers = SimpleNamespace(predictions=shown, names=names, graph=graph, calibration=calibration, bands=EMPTY)
    return figures.figure_data(numbers, figures.map_coordinates(graph)[0], 1.5)


def traces(data, name):
    def values(one):
        is_array = isinstance(one, dict) and "bdata" in one
        return np.frombuffer(base64.b64decode(one["bdata"]), one["dtype"]) if is_array else one

    drawn = data["figures"][name]["data"]
    return [SimpleNamespace(**{key: values(one) for key, one in trace.items()}) for trace in drawn]


def limited(monkeypatch, **limits):
    for name, most in limits.items():
        monkeypatch.setattr(figures, name, most)


def test_the_node_drawn_first_has_a_middling_error_or_the_most_missing_values():
    """Errors are 0.08, 4.5 and 2.5 squared on average."""

    def first(shown):
        return page_data(shown)["start"]["node"]

    assert first(predictions()) == 2
    missing = np.where(np.isnan(OBSERVED), 7.0, NAN)
    missing[0, 2] = 7.0
    assert first(predictions((missing, missing))) == 2
    # a node that is hardly observed says little of its imputed values
    rarely = OBSERVED.copy()
    rarely[:2, 2] = NAN
    assert first(dataclasses.replace(predictions((missing, missing)), observed=rarely)) == 1
    # squared errors of 1 four times, 4 once and 2 once
    errors = np.array([[1.0, 2.0, np.sqrt(2)], [1, NAN, NAN], [1, NAN, NAN], [1, NAN, NAN]])
    zeros = np.zeros((4, 3))
    assert (
        first(dataclasses.replace(predictions(), labels=tuple("abcd"), observed=errors, mean=zeros, std=zeros + 1)) == 2
    )


def test_colours_end_where_tails_begin():
    values = np.arange(1_003.0).reshape(-1, 1) * np.ones(3)
    values[-2:, 0] = NAN
    shown = Predictions("left out", tuple(map(str, range(1_003))), values, values + 2, 0 * values + 0.4, None, values)
    found = {name: one["marker"] for name, one in page_data(shown)["markers"].items()}
    tail = figures.COLOUR_TAIL
    known = np.concatenate([one[np.isfinite(one)] for one in (values, values + 2)])
    for name in ("observed", "mean"):
        np.testing.assert_allclose([found[name]["cmin"], found[name]["cmax"]], np.quantile(known, [tail, 1 - tail]))
    assert (found["residual"]["cmin"], found["residual"]["cmax"]) == (-2.5, 2.5)
    assert (found["std"]["cmin"], found["std"]["cmax"]) == (pytest.approx(-0.1), pytest.approx(0.9))
    nothing = page_data(dataclasses.replace(predictions(), observed=NAN * MEAN, pit=NAN * MEAN))["markers"]["residual"]
    assert (nothing["marker"]["cmin"], nothing["marker"]["cmax"]) == (-1.0, 1.0)


def test_points_are_inside_their_intervals_or_outside():
    inside, outside, line = traces(page_data(predictions(std=1.2)), "scatter-plot")
    half = norm.ppf(0.95) * 1.2
    known = np.isfinite(OBSERVED)
    near = known & (np.abs(OBSERVED - MEAN) <= half)
    for trace, chosen in ((inside, near), (outside, known & ~near)):
        np.testing.assert_allclose(trace.x, MEAN[chosen])
        np.testing.assert_allclose(trace.y, OBSERVED[chosen])
    assert list(outside.text) == ["w, a", "v, c"]
    assert list(line.x) == list(line.y) == [0.0, 5.0]


def test_of_many_points_some_are_drawn(monkeypatch):
    pairs = set(zip(MEAN[np.isfinite(OBSERVED)], OBSERVED[np.isfinite(OBSERVED)], strict=True))
    for most, n_drawn in ((6, 6), (7, 7), (8, 7)):
        limited(monkeypatch, MAX_POINTS=most)
        found = traces(page_data(predictions()), "scatter-plot")[:2]
        drawn = [pair for trace in found for pair in zip(trace.x, trace.y, strict=True)]
        assert len({text for trace in found for text in trace.text}) == len(drawn) == n_drawn
        assert set(drawn) <= pairs
    none = dataclasses.replace(predictions(), observed=np.full((3, 3), NAN), pit=np.full((3, 3), NAN))
    assert list(traces(page_data(none), "scatter-plot")[2].x) == [0.0, 1.0]


def test_a_map_has_the_edges_between_nodes_that_are_drawn(monkeypatch):
    coordinates = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0]])
    graph = Graph.from_edges([(0, 2, 1.0), (2, 4, 3.0), (1, 2, 5.0), (0, 4, 2.0)], n_nodes=5, coordinates=coordinates)
    ends = {0: (0.0, 1.0), 2: (4.0, 5.0), 4: (8.0, 9.0)}
    shown = Predictions("left out", ("a",), *np.ones((3, 1, 5)), None, np.zeros((1, 5)))

    def drawn(**limits):
        limited(monkeypatch, **limits)
        edges, nodes, missing, _ = traces(page_data(shown, graph), "map-plot")
        points = np.c_[edges.x, edges.y].reshape(-1, 3, 2)
        assert np.isnan(points[:, 2]).all()
        return {edges.type, nodes.type, missing.type}, [sorted(map(tuple, one)) for one in points[:, :2].tolist()]

    kinds, edges = drawn()
    assert (kinds, len(edges)) == ({"scatter"}, 4)
    assert sorted(drawn(MAX_NODES=3)[1]) == sorted([[ends[0], ends[2]], [ends[2], ends[4]], [ends[0], ends[4]]])
    assert sorted(drawn(MAX_EDGES=2)[1]) == sorted([[ends[2], ends[4]], [ends[0], ends[4]]])  # the heaviest
    assert [drawn(MAX_POINTS=most)[0] for most in (3, 2)] == [{"scatter"}, {"scattergl"}]


def test_names_that_are_long_or_broken_are_one_short_line():
    assert figures.hover_text("a" * 80) == "a" * 80
    assert figures.hover_text("a" * 81) == "a" * 77 + "..."
    assert figures.hover_text("<a>\n  & b") == "&lt;a&gt; &amp; b"


@pytest.mark.parametrize(
    ("labels", "places", "order", "kind", "title"),
    [
        (["2020-02-01", "2020-01-01 06:00"], ["2020-02-01", "2020-01-01 06:00"], [1, 0], "date", ""),
        (["2020-02-01", "20200101"], ["2020-02-01", "20200101"], [0, 1], "category", ""),
        (["10", "9", "-1.5"], [10.0, 9.0, -1.5], [2, 1, 0], "linear", ""),
        (["row 10", "row 9"], [10.0, 9.0], [1, 0], "linear", "row"),
        (["row 10", "9"], ["row 10", "9"], [0, 1], "category", ""),
        (["3", "nan"], ["3", "nan"], [0, 1], "category", ""),
    ],
)
def test_labels_are_places_along_an_axis(labels, places, order, kind, title):
    assert figures.signal_axis(labels) == (places, {"type": kind, "title": title})
    shown = Predictions("left out", tuple(labels), *np.ones((3, len(labels), 1)), None, np.zeros(1))
    data = page_data(shown)
    assert (data["along"], data["order"]) == (places, order)


def test_bars_are_the_densities_of_bins_between_the_band_of_calibrated_ones():
    found = calibration_of(np.random.default_rng(0).random((30, 4)))
    bars, band, flat = traces(page_data(predictions(), calibration=found), "pit-plot")
    np.testing.assert_allclose(bars.x, found.edges[:-1] + 0.5 * np.diff(found.edges))
    np.testing.assert_allclose(bars.y, found.density)
    assert np.all(np.asarray(bars.width) < np.diff(found.edges))
    assert np.sum(np.asarray(bars.y) * np.diff(found.edges)) == pytest.approx(1.0)
    assert {float(np.min(band.y)), float(np.max(band.y))} == set(found.density_band)
    assert set(flat.y) == {1}


def test_filters_have_an_axis_for_their_units_and_one_for_shares():
    """What carries over has none of them, so that it is drawn below the others, and the spectrum below both."""

    def bands(*kinds):
        values, shares = np.array([3.0, 2.0, 1.0]), np.array([0.25, 0.75])
        filters = {which: filter_curve(FILTER_NAMES[which], np.linspace(0, 1, 3), values, None) for which in kinds}
        return FilterBands("Laplacian", filters, {}, np.array([0, 0.5, 1]), shares, shares[::-1])

    for kinds, rows in (
        (("signal", "residual", "carry"), [1, 1, 1, 1, 2, 2, 3, 3]),
        (("signal",), [1, 1, 2, 2]),
        ((), [1, 1]),
    ):
        figure = figures.filter_figure(bands(*kinds))
        places = [int((trace.yaxis or "y").removeprefix("y") or 1) for trace in figure.data]
        assert places == rows
        bars, energy = figure.data[-2:]
        np.testing.assert_allclose([bars.x, bars.y], [[0.25, 0.75], [0.25, 0.75]])
        np.testing.assert_allclose([energy.x, energy.y], [[0.25, 0.75], [0.75, 0.25]])
        assert bars.width == 0.5
        titles = [figure.layout[f"yaxis{row if row > 1 else ''}"].title.text for row in range(1, max(rows) + 1)]
        assert titles == (["filters g, h", "filter b"][: max(rows) - 1] if kinds else []) + ["share"]
