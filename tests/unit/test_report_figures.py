"""Figures of reports, by what they are drawn from: which node first, colours, points and shares."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import norm

from spectralgp import Graph
from spectralgp.scores import calibration_of
from spectralgp.show.report import figures, numbers
from spectralgp.show.report.numbers import ImputedValues, Predictions
from spectralgp.show.report.shapes import SpectrumModes, shape_of

NAN = np.nan
NODES = np.arange(3)
OBSERVED = np.array([[1.0, 2.0, 3.0], [2.0, NAN, 5.0], [0.0, 1.0, NAN]])
MEAN = np.array([[1.5, 2.0, 1.0], [2.0, 3.0, 4.0], [0.0, 4.0, 1.0]])


def predictions(filled=None, baseline=None, std=1.0):
    baseline = np.zeros((3, 3)) if baseline is None else baseline
    std = np.full((3, 3), std)
    return Predictions("left out", ("a", "b", "c"), OBSERVED, MEAN, std, None, baseline, filled)


def test_the_node_drawn_first_has_a_middling_error_or_the_most_holes():
    """Errors are 0.08, 4.5 and 2.5 squared on average."""
    assert figures._first_node(predictions(), NODES) == 2
    assert figures._first_node(predictions(), np.array([0, 2])) == 1
    holes = np.where(np.isnan(OBSERVED), 7.0, NAN)
    holes[0, 2] = 7.0
    assert figures._first_node(predictions(ImputedValues(holes, holes)), NODES) == 2
    # a node that is hardly observed says little of what fills its holes
    rarely = OBSERVED.copy()
    rarely[:2, 2] = NAN
    few = dataclasses.replace(predictions(ImputedValues(holes, holes)), observed=rarely)
    assert figures._first_node(few, NODES) == 1
    half = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, NAN], [1.0, NAN]])
    filled = ImputedValues(np.where(np.isnan(half), 7.0, NAN), half)
    assert figures._first_node(dataclasses.replace(few, observed=half, filled=filled), np.arange(2)) == 1
    # squared errors of 1 four times, 4 once and 2 once
    errors = np.array([[1.0, 2.0, np.sqrt(2)], [1, NAN, NAN], [1, NAN, NAN], [1, NAN, NAN]])
    assert figures._first_node(dataclasses.replace(predictions(), observed=errors, mean=np.zeros((4, 3))), NODES) == 2


def test_colours_end_where_tails_begin():
    values = np.append(np.arange(1_001.0), [NAN, np.inf])
    tail = figures.COLOUR_TAIL
    assert 0 < tail < 0.1
    np.testing.assert_allclose(figures._colour_range(values), (1_000 * tail, 1_000 * (1 - tail)))
    assert figures._colour_range(np.full(4, 2.0)) == (1.5, 2.5)
    assert figures._colour_range(np.full(4, NAN)) == (0.0, 1.0)
    fields = {"observed": OBSERVED, "mean": MEAN, "std": np.full((3, 3), 0.4)}
    found = {name: one["marker"] for name, one in figures._markers(fields, 100).items()}
    residual = found["residual"]
    assert residual["cmin"] == -residual["cmax"] < 0
    assert residual["cmax"] == figures._colour_range(np.abs(OBSERVED - MEAN))[1]
    both = figures._colour_range(np.concatenate([OBSERVED.ravel(), MEAN.ravel()]))
    assert all((found[name]["cmin"], found[name]["cmax"]) == both for name in ("observed", "mean"))
    assert found["std"]["cmin"] < 0.4 < found["std"]["cmax"]
    sizes = [figures._markers(fields, n)["mean"]["marker"]["size"] for n in (1, 900, 10**4, 19_600, 10**6)]
    assert sizes == [14.0, 14.0, pytest.approx(4.2), 3.0, 3.0]
    borders = [figures._markers(fields, n)["mean"]["marker"]["line"]["width"] for n in (2_000, 2_001)]
    assert borders == [0.5, 0]


def test_points_are_inside_their_intervals_or_outside():
    inside, outside, line = figures._scatter(predictions(std=1.2), ("u", "v", "w"), NODES).data
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
        monkeypatch.setattr(figures, "MAX_POINTS", most)
        traces = figures._scatter(predictions(), ("u", "v", "w"), NODES).data[:2]
        drawn = [pair for trace in traces for pair in zip(trace.x, trace.y, strict=True)]
        assert len({text for trace in traces for text in trace.text}) == len(drawn) == n_drawn
        assert set(drawn) <= pairs
    none = dataclasses.replace(predictions(), observed=np.full((3, 3), NAN), pit=np.full((3, 3), NAN))
    assert list(figures._scatter(none, ("u", "v", "w"), NODES).data[2].x) == [0.0, 1.0]


def test_a_map_has_the_edges_between_nodes_that_are_drawn(monkeypatch):
    coordinates = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0]])
    graph = Graph.from_edges([(0, 2, 1.0), (2, 4, 3.0), (1, 2, 5.0), (0, 4, 2.0)], n_nodes=5, coordinates=coordinates)
    ends = {0: (0.0, 1.0), 2: (4.0, 5.0), 4: (8.0, 9.0)}

    def drawn():
        edges, nodes, missing, _ = figures._map(graph, figures.places_of(graph), 1.5).data
        points = np.c_[edges.x, edges.y].reshape(-1, 3, 2)
        assert np.isnan(points[:, 2]).all()
        return {edges.type, nodes.type, missing.type}, [sorted(map(tuple, one)) for one in points[:, :2].tolist()]

    assert drawn()[0] == {"scatter"}
    assert len(drawn()[1]) == 4
    monkeypatch.setattr(figures, "MAX_NODES", 3)
    assert sorted(drawn()[1]) == sorted([[ends[0], ends[2]], [ends[2], ends[4]], [ends[0], ends[4]]])
    monkeypatch.setattr(figures, "MAX_EDGES", 2)
    assert sorted(drawn()[1]) == sorted([[ends[2], ends[4]], [ends[0], ends[4]]])  # the heaviest
    for most, kind in ((3, "scatter"), (2, "scattergl")):
        monkeypatch.setattr(figures, "MAX_POINTS", most)
        assert drawn()[0] == {kind}


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
    along = figures.positions_of(labels)
    assert (along.places, along.order, along.kind, along.title) == (places, order, kind, title)


def test_bars_are_the_densities_of_bins_between_the_band_of_calibrated_ones():
    found = calibration_of(np.random.default_rng(0).random((30, 4)))
    bars, band, flat = figures._histogram(found).data
    np.testing.assert_allclose(bars.x, found.edges[:-1] + 0.5 * np.diff(found.edges))
    np.testing.assert_allclose(bars.y, found.density)
    assert np.all(np.asarray(bars.width) < np.diff(found.edges))
    assert np.sum(np.asarray(bars.y) * np.diff(found.edges)) == pytest.approx(1.0)
    assert {float(np.min(band.y)), float(np.max(band.y))} == set(found.density_band)
    assert set(flat.y) == {1}


def test_what_is_explained_is_of_values_with_a_baseline():
    baseline = np.array([[0.0, NAN, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    known = np.isfinite(OBSERVED) & np.isfinite(baseline)
    errors, spread = (np.sum(np.square(OBSERVED - one)[known]) for one in (MEAN, baseline))
    assert numbers._explained(predictions(baseline=baseline), MEAN) == pytest.approx(1 - errors / spread)
    assert numbers._explained(predictions(baseline=OBSERVED), MEAN) is None


def test_scores_are_of_what_was_observed():
    spread = np.array([[0.5, 1.0, 2.0], [1.5, 9.0, 0.3], [1.0, 2.0, 9.0]])
    found, known = numbers._scores(OBSERVED, MEAN, spread), np.isfinite(OBSERVED)
    errors = (OBSERVED - MEAN)[known]
    assert found.n_values == 7
    assert found.error == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert found.spread == pytest.approx(np.sqrt(np.mean(spread[known] ** 2)))
    assert found.log_density == pytest.approx(norm(MEAN, spread).logpdf(OBSERVED)[known].mean())
    assert (found.bias.value, found.bias.expected) == (pytest.approx(errors.mean()), 0.0)
    np.testing.assert_allclose(found.node_errors, np.sqrt([0.25 / 3, 9 / 2, 5 / 2]))
    np.testing.assert_allclose(found.node_biases, [-0.5 / 3, -1.5, 1.5])
    unseen = numbers._scores(np.where(NODES == 1, NAN, OBSERVED), MEAN, spread)
    assert np.isnan([unseen.node_errors[1], unseen.node_biases[1]]).all()


def test_shares_of_bins_add_up_to_one_and_none_is_negative():
    bins, weights = np.array([0, 2, 2, 5]), np.array([1.0, 4.0, -1.0, -2.0])
    found = numbers._shares(bins, weights)
    expected = np.zeros(numbers.N_SPECTRUM_BINS)
    expected[[0, 2]] = 0.25, 0.75
    np.testing.assert_allclose(found, expected)
    assert not numbers._shares(bins, np.zeros(4)).any()


def test_filters_have_an_axis_for_their_units_and_one_for_shares():
    """What carries over has none of them, so that it is drawn below the others, and the spectrum below both."""
    modes = SpectrumModes(np.linspace(0, 1, 3), np.full(3, 1 / 3))

    def bands(*kinds):
        values = np.array([3.0, 2.0, 1.0])
        filters = tuple(numbers.LearntFilter(which, values, None, shape_of(modes, values)) for which in kinds)
        shares = np.array([0.25, 0.75])
        return numbers.FilterBands(
            "Laplacian", np.linspace(0, 1, 3), filters, np.array([0, 0.5, 1]), shares, shares[::-1]
        )

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


def test_counts_are_of_signals_nodes_and_what_is_missing():
    inputs = np.array([[1.0], [1.0], [1.0], [2.0]])
    training = np.array([[1.0, 2, 3, 4, NAN]] * 2 + [[1.0, 2, 3, NAN, NAN]] * 2)
    found = numbers._counts(inputs, training, 2)
    assert (found.signals, found.repeated, found.empty, found.missing, found.unseen) == (4, 1, 2, 6, 1)
    assert numbers._counts(np.empty((4, 0)), training, 0).repeated == 0
    nothing = numbers._counts(np.empty((0, 1)), np.empty((0, 5)), 0)
    assert (nothing.signals, nothing.missing, nothing.unseen, nothing.repeated) == (0, 0, 0, 0)
