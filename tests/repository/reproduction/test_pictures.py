"""Pictures say which curve is which, by whom it was learnt, and which fit did not converge."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from made_up import STUDIES, everything

from reproduction.figures import pictures
from reproduction.jobs import spread_out


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
