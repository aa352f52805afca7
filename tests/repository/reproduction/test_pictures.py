"""Pictures say which curve is which, by whom it was learnt, and which fit did not converge."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from made_up import STUDIES, everything, filters, finished, predictions
from matplotlib.colors import to_hex

from reproduction.experiments import BY_ALGORITHM_1
from reproduction.figures import pictures
from reproduction.filter_pictures import error_figure, filter_figure
from reproduction.jobs import spread_out
from reproduction.prediction_pictures import DATA, draw_spectra, new_figure, score_figure
from spectralgp.show.plots import COLOURS


def lines(ax) -> dict:
    """Curves that a legend names."""
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def test_legends_carry_the_mark_of_fits_that_did_not_converge():
    def say(truth, snr, variant, seed):
        if variant.name == BY_ALGORITHM_1 and variant.degree == 2:
            return {"converged": False, "log_likelihood": -1.0}  # near the joint one
        if variant.name == BY_ALGORITHM_1 and variant.degree == 4:
            return {"converged": False, "log_likelihood": -948.0}  # lost
        return {}

    found = finished(barabasi_albert=filters(STUDIES["barabasi-albert"], say)).filters("barabasi-albert")
    ax = filter_figure(found).axes[1]
    named = lines(ax)
    assert "by Algorithm 1" in ax.get_title()
    (second,) = (label for label in named if label.startswith("degree 2"))
    (fourth,) = (label for label in named if label.startswith("degree 4"))
    assert second.endswith(" *")
    assert len(named[second].get_xdata()) > 0
    assert fourth.endswith(" * not drawn")
    assert len(named[fourth].get_xdata()) == 0
    assert "*" not in next(label for label in named if label.startswith("degree 1"))
    assert to_hex(named["truth"].get_color()) == "#000000"
    learnt = {to_hex(line.get_color()).upper() for label, line in named.items() if label.startswith("degree")}
    assert len(learnt) == 4
    assert learnt <= set(COLOURS) - {"#000000"}
    # the joint filters are thin lines of the same colours in the same panel
    thin = {to_hex(line.get_color()).upper() for line in ax.lines if line.get_linewidth() < 1}
    assert learnt <= thin


def test_errors_are_of_the_scaled_filters_that_the_claims_speak_of():
    results = filters(STUDIES["sensor"], lambda *given: {"error": 0.9, "shape_error": 0.07})
    figure = error_figure([finished(sensor=results).filters("sensor")])
    for ax in figure.axes:
        middles = {float(y) for line in ax.lines for y in line.get_ydata() if line.get_marker() in "os^"}
        assert middles == {7.000000000000001} or np.allclose(list(middles), 7.0)
    assert len(figure.legends) == 1


def test_curves_that_coincide_are_drawn_once_and_say_so():
    def say(size, model):
        apart = model.by == BY_ALGORITHM_1 and model.row == "degree-1"
        return {"coefficients": [0.2, 0.5] if apart else [1.0, -0.5], "converged": not apart}

    found = finished(uber=predictions(STUDIES["uber"], say=say)).predictions("uber")
    _, axes = new_figure(1, 1)
    draw_spectra(axes[0, 0], found)
    assert list(lines(axes[0, 0])) == [
        "degree 1, jointly",
        "degree 1, Algorithm 1 *",
        "degree 2, both",
        "degree 3, both",
    ]


def test_no_panel_is_empty_and_intervals_need_their_splits():
    found = everything()
    for picture in pictures(found):
        for ax in picture.draw(found).axes:
            assert ax.lines or ax.collections or ax.get_legend(), (picture.name, ax.get_title())
    cut = {key: study.quick() for key, study in STUDIES.items()}
    assert "splits" in [picture.name for picture in pictures(found)]
    found = type(found)(cut, found.results)
    drawn = {picture.name: picture for picture in pictures(found)}
    assert "splits" not in drawn  # few splits hold no 95%
    assert len(drawn["table-1"].draw(found).axes) == 3  # one training size


def test_the_places_of_a_graph_in_parts_do_not_overlap():
    edges = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5)]
    places = spread_out(8, edges)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)[~np.eye(8, dtype=bool)]
    assert apart.min() > 0.2
    # components stand in rows, side by side
    boxes = [(places[part].min(axis=0), places[part].max(axis=0)) for part in ([0, 1, 2], [3, 4, 5], [6], [7])]
    for (low, high), (other_low, other_high) in combinations(boxes, 2):
        assert np.any((high < other_low) | (other_high < low))


def test_a_score_far_from_all_others_is_written_at_the_edge_so_that_they_can_be_told_apart():
    def score(size, model):
        return -21.2 if model.row == "laplacian" else -8.0 - 0.1 * len(model.row)

    studies = {key: predictions(STUDIES[key], score if key == "uber" else lambda size, model: 0.0) for key in DATA}
    figure = score_figure(finished(**studies))
    panels = [ax for ax in figure.axes if "Uber" in ax.get_title()]
    assert len(panels) == 2
    for ax in panels:
        assert [text.get_text() for text in ax.texts] == ["◂ ours -21"]
        assert ax.get_xlim()[0] > -15
