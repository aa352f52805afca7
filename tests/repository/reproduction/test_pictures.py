"""Pictures say which curve is which, and by whom it was learnt."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from matplotlib.colors import to_hex

from reproduction.experiments import LOW_PASS, FilterStudy
from reproduction.filter_pictures import filter_figure
from reproduction.jobs import jobs_of, spread_out
from reproduction.results import Filters
from spectralgp.plots import COLOURS


def test_learnt_filters_take_the_palette_and_leave_black_to_the_truth():
    study = FilterStudy("", "", "", "sensor", (LOW_PASS,), seeds=(1,))
    _, by_algorithm_1, jointly = filter_figure(Filters(study, [job.run() for job in jobs_of(study)])).axes
    assert "by Algorithm 1" in by_algorithm_1.get_title()
    assert "jointly" in jointly.get_title()
    for ax in (by_algorithm_1, jointly):
        colours = {line.get_label().split(":")[0]: to_hex(line.get_color()).upper() for line in ax.lines}
        assert colours["truth"] == "#000000"
        learnt = {colours[label] for label in colours if label.startswith("degree")}
        assert len(learnt) == (5 if ax is jointly else 4)
        assert learnt <= set(COLOURS) - {"#000000"}


def test_the_places_of_a_graph_in_parts_do_not_overlap():
    edges = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5)]
    places = spread_out(8, edges)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)[~np.eye(8, dtype=bool)]
    assert apart.min() > 0.2
    # components stand in rows, side by side
    boxes = [(places[part].min(axis=0), places[part].max(axis=0)) for part in ([0, 1, 2], [3, 4, 5], [6], [7])]
    for (low, high), (other_low, other_high) in combinations(boxes, 2):
        assert np.any((high < other_low) | (other_high < low))
