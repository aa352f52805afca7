"""Which figure is drawn from what, and where it stands; those that are current are not drawn again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reproduction.drawing import save
from reproduction.experiments import BY_ALGORITHM_1, FilterStudy, PredictionStudy
from reproduction.filter_pictures import error_figure, filter_figure, first_figure, noise_figure
from reproduction.jobs import JOINT
from reproduction.prediction_pictures import PANELS, data_figure, fifth_figure, second_figure, splits_figure
from reproduction.results import Filters, Finished, Predictions
from reproduction.store import Drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure: its name, what it shows, the experiments it needs and may use, and what draws it."""

    name: str
    caption: str
    needs: tuple[str, ...]
    draw: Callable[[Finished], Figure]
    uses: tuple[str, ...] = ()


LEGENDS = (
    "Legends give log marginal likelihoods without the 2 pi term; ticks along the bottom are the graph's eigenvalues."
)
FIRST = (
    "The paper's Fig. 1 with filters learnt {learner}, and the high-pass filter, which the paper does not show, in a "
    "third row. "
)
ERRORS = "Relative errors of the filters: medians and quartiles over the seeds."


def pictures(finished: Finished) -> list[Picture]:
    """The figures that the finished experiments allow."""
    found = [
        Picture(
            "figure-1",
            FIRST.format(learner="by Algorithm 1, the paper's method") + LEGENDS,
            ("sensor", "noise"),
            partial(_first, learner=BY_ALGORITHM_1),
        ),
        Picture(
            "figure-1-jointly",
            FIRST.format(learner="jointly") + LEGENDS,
            ("sensor", "noise"),
            partial(_first, learner=JOINT),
        ),
        Picture(
            "figure-2",
            "The paper's Fig. 2: filters learnt on the larger training set, by both solvers, each divided by its "
            "maximum. Ticks along the bottom are the graph's eigenvalues.",
            ("traffic", "weather"),
            second_figure,
            tuple(PANELS),
        ),
        Picture(
            "figure-5",
            "The supplement's Fig. 5: the graphs, inputs yellow and outputs purple, and the graph Fourier coefficients "
            "of the training signals. No filter is drawn.",
            ("graphs", "traffic", "weather"),
            fifth_figure,
            tuple(PANELS),
        ),
    ]
    for key, study in finished.studies.items():
        if isinstance(study, FilterStudy):
            draw = noise_figure if study.degrees is None else filter_figure
            caption = f"Filters learnt by Algorithm 1 and jointly. {LEGENDS}"
            found.append(Picture(f"{key}/figure", caption, (key,), partial(_of_filters, key=key, draw=draw)))
            found.append(Picture(f"{key}/errors", ERRORS, (key,), partial(_of_filters, key=key, draw=error_figure)))
        elif isinstance(study, PredictionStudy) and not study.is_released:
            caption = (
                "Median differences to the standard GP over the splits, with intervals from order statistics that hold "
                "at least 95%. Blue circles: learnt filters; orange squares: baselines; green triangles: beyond "
                "the paper."
            )
            found.append(
                Picture(f"{key}/figure", caption, (key,), partial(_of_predictions, key=key, draw=splits_figure))
            )
        elif isinstance(study, PredictionStudy) and study.key != "traffic-text":
            caption = "The graph, the Fourier coefficients of the training signals, and filters learnt by both solvers."
            found.append(Picture(f"{key}/figure", caption, (key,), partial(_of_predictions, key=key, draw=data_figure)))
    return [picture for picture in found if finished.has(*picture.needs)]


def _first(finished: Finished, *, learner: str) -> Figure:
    return first_figure(finished.filters("sensor"), finished.filters("noise"), learner)


def _of_filters(finished: Finished, *, key: str, draw: Callable[[Filters], Figure]) -> Figure:
    return draw(finished.filters(key))


def _of_predictions(finished: Finished, *, key: str, draw: Callable[[Predictions], Figure]) -> Figure:
    return draw(finished.predictions(key))


def draw_all(folder: Path, finished: Finished, digests: dict[str, str]) -> int:
    """Draw every figure that is not current into the results folder; how many were drawn."""
    drawn, n_drawn = Drawn(folder), 0
    for picture in pictures(finished):
        sources = {key: digests[key] for key in (*picture.needs, *picture.uses) if key in digests}
        if drawn.is_current(picture.name, sources):
            continue
        place, _, name = picture.name.rpartition("/")
        save(picture.draw(finished), folder / place, name)
        drawn.keep(picture.name, sources)
        n_drawn += 1
    return n_drawn
