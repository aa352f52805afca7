"""Figures and the results they are drawn from; current ones are not drawn again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.polynomial import Polynomial as PowerSeries

from reproduction.drawing import save
from reproduction.experiments import BY_ALGORITHM_1, LOW_PASS, PredictionStudy
from reproduction.filter_pictures import error_figure, filter_figure, first_figure
from reproduction.prediction_pictures import DATA, fifth_figure, score_figure, second_figure, splits_figure
from reproduction.results import Finished
from reproduction.store import Drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST_SPLITS = 6  # of which order statistics hold 95%


@dataclass(frozen=True)
class Picture:
    """A figure: its name, what it shows, the experiments it needs, and what draws it."""

    name: str
    caption: str
    needs: tuple[str, ...]
    draw: Callable[[Finished], Figure]


LEGENDS = (
    "Legends: log marginal likelihoods without the 2 pi term; a * did not converge, and is not drawn if far below the "
    "joint fit. Ticks: the graph's eigenvalues."
)
STUDIES = ("sensor", "barabasi-albert", "inverse-wishart", "noise")


def pictures(finished: Finished) -> list[Picture]:
    """The figures that the finished experiments allow."""
    found = [
        Picture(
            "table-1",
            "Table 1 drawn, with standard errors; scores too far to the left are written at the edge.",
            tuple(DATA),
            score_figure,
        ),
        Picture(
            "figure-1",
            f"The paper's Fig. 1 by Algorithm 1; thin lines are learnt jointly. {_vanishing(finished)}{LEGENDS}",
            ("sensor", "noise"),
            lambda finished: first_figure(finished.filters("sensor"), finished.filters("noise")),
        ),
        Picture(
            "figure-2",
            "The paper's Fig. 2, with Uber for fMRI. *Both*: the curves of the two solvers coincide.",
            tuple(DATA),
            second_figure,
        ),
        Picture(
            "figure-5",
            "The supplement's Fig. 5 and Uber: the graphs, and the graph Fourier coefficients of the training "
            "signals, one colour per signal; of fMRI the graph alone.",
            ("graphs", *DATA),
            fifth_figure,
        ),
        Picture(
            "errors",
            "Errors of filters divided by their maxima: medians and quartiles over the seeds.",
            STUDIES,
            lambda finished: error_figure([finished.filters(key) for key in STUDIES]),
        ),
    ]
    for key in ("barabasi-albert", "inverse-wishart"):
        caption = (
            f"The supplement's Fig. {3 if key == 'barabasi-albert' else 4}; thin lines are learnt jointly. {LEGENDS}"
        )
        found.append(Picture(f"{key}/figure", caption, (key,), partial(_of_filters, key=key)))
    splits = ("traffic-splits", "weather-splits")
    studies = [finished.studies.get(key) for key in splits]
    if all(isinstance(one, PredictionStudy) and len(one.splits) >= FEWEST_SPLITS for one in studies):
        caption = (
            "Median differences to the standard GP over the random splits, with intervals from order statistics that "
            "hold at least 95%: blue circles learnt filters, orange squares baselines."
        )
        found.append(Picture("splits", caption, splits, splits_figure))
    return [picture for picture in found if finished.has(*picture.needs)]


def _vanishing(finished: Finished) -> str:
    """At which ratios the low-pass filter falls to zero at the end of the spectrum, where the truth does not."""
    if not finished.has("noise"):
        return ""
    found, truth = finished.filters("noise"), PowerSeries(LOW_PASS.coefficients)
    ratios = []
    for snr in found.study.snrs:
        fit = found.learnt(LOW_PASS.key, BY_ALGORITHM_1, snr=snr, degree=LOW_PASS.degree)[0]
        learnt = PowerSeries(fit["coefficients"])
        if learnt(1.0) < 0.02 * learnt(0.0):
            ratios.append(f"{snr:g}")
    if not ratios:
        return ""
    words = f"In (c) the filters at {', '.join(ratios)} dB end at 0 on the right, where the truth is {truth(1.0):.2f}"
    return f"{words}: noise has taken its place. "


def _of_filters(finished: Finished, *, key: str) -> Figure:
    return filter_figure(finished.filters(key))


def draw_all(folder: Path, finished: Finished, digests: dict[str, str]) -> int:
    """Draw every figure that is not current into the results folder; how many were drawn."""
    drawn, n_drawn = Drawn(folder), 0
    for picture in pictures(finished):
        sources = {key: digests[key] for key in picture.needs}
        if drawn.is_current(picture.name, sources):
            continue
        save(picture.draw(finished), folder / f"{picture.name}.png")
        drawn.keep(picture.name, sources)
        n_drawn += 1
    return n_drawn
