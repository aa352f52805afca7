"""Pictures say which curve is which."""

from __future__ import annotations

from matplotlib.colors import to_hex

from reproduction.experiments import LOW_PASS, FilterStudy
from reproduction.filter_pictures import filter_figure
from reproduction.jobs import jobs_of
from spectralgp.plots import COLOURS


def test_learnt_filters_take_the_palette_and_leave_black_to_the_truth():
    study = FilterStudy("", "", "", "sensor", (LOW_PASS,), seeds=(1,), brief=True)
    _, ax = filter_figure(study, {"jobs": [job.run() for job in jobs_of(study)]}).axes
    colours = {line.get_label().split(":")[0]: to_hex(line.get_color()).upper() for line in ax.lines}
    assert colours["truth"] == "#000000"
    learnt = {colours[f"degree {degree}"] for degree in study.degrees}
    assert len(learnt) == 5
    assert learnt <= set(COLOURS) - {"#000000"}
