"""The page of a report: HTML with its styles, script and numbers inside."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp._basics.extras import require
from spectralgp._basics.files import atomic_write
from spectralgp.report import figures, words
from spectralgp.report.numbers import Numbers
from spectralgp.scores import Calibration

if TYPE_CHECKING:
    from spectralgp.report.series import SeriesNumbers

COVERAGE_LEVELS = (0.5, 0.8, 0.9, 0.95)


SECTIONS = {
    "glance": "How well it predicts",
    "map": "Map",
    "series": "A node",
    "neighbours": "Neighbours",
    "predictions": "Prediction against truth",
    "calibration": "Calibration",
    "filters": "Filters",
    "models": "Models",
    "appendix": "Appendix",
}
N_WORST = 10  # nodes with the largest errors, in the table


def write_page(path: str | PathLike[str], text: str) -> Path:
    """Write a page to a file, whole or not at all; a file of that name is replaced."""
    with atomic_write(Path(path)) as beside:
        beside.write_bytes(text.encode("utf-8", "replace"))  # half a surrogate pair in a name is no text
    return Path(path)


SERIES_SECTIONS = {
    "glance": "How well it forecasts",
    "map": "Map",
    "series": "A node",
    "horizons": "By horizon",
    "neighbours": "Neighbours",
    "rates": "Time scales",
    "models": "Models",
    "appendix": "Appendix",
}


def series_page_of(numbers: SeriesNumbers, title: str, aspect: float = 1.0) -> str:
    """The report of a series as one page of HTML."""
    from spectralgp.report import series

    errors = None if numbers.backtest is None else numbers.backtest.node_rmse[0]
    left_out = {"horizons": errors is None, "rates": not numbers.times}
    return _rendered(
        "series.html",
        numbers,
        title,
        aspect,
        lambda places: figures.series_figures(numbers),
        sections=[(name, words) for name, words in SERIES_SECTIONS.items() if not left_out.get(name, False)],
        overview=series.overview(numbers),
        series=series,
        worst_nodes=[] if errors is None else worst_first(errors),
    )


def worst_first(errors: Array) -> list[int]:
    """Some nodes with the largest errors."""
    order = np.argsort(-errors, kind="stable").tolist()
    return [node for node in order if np.isfinite(errors[node])][:N_WORST]


def page_of(numbers: Numbers, title: str, aspect: float = 1.0) -> str:
    """The report as one page of HTML; on its map one unit upwards is drawn `aspect` times as long as one sideways."""
    return _rendered(
        "signals.html",
        numbers,
        title,
        aspect,
        lambda places: figures.signal_figures(numbers, places),
        sections=SECTIONS.items(),
        overview=words.overview(numbers),
        worst_nodes=worst_first(numbers.scores.node_errors),
        coverages={words.percent(level): _covered(numbers.calibration, level) for level in COVERAGE_LEVELS},
    )


def _rendered(
    template: str,
    shown: Numbers | SeriesNumbers,
    title: str,
    aspect: float,
    others: Callable[[figures.Places], dict[str, Any]],
    **context: Any,
) -> str:
    """A page by a template, with the map, the picture of a node, and other figures that are drawn as they are."""
    plotly = require("plotly.offline", "report", "to write a report").get_plotlyjs()
    jinja = require("jinja2", "report", "to write a report")
    environment = _environment(jinja)
    places, n_signals = figures.places_of(shown.graph), len(shown.predictions.labels)
    chosen = figures.shown_signals(n_signals, places.nodes.size)
    data = figures.figure_data(shown, places, chosen, aspect, others(places))
    return str(
        environment.get_template(template).render(
            title=title,
            numbers=shown,
            places=places,
            figures=figures,
            words=words,
            n_signals=n_signals,
            n_shown=chosen.size,
            data=data,
            plotly=plotly,
            **context,
        )
    )


@cache
def _environment(jinja: Any) -> Any:
    """Templates, which are compiled once."""
    environment = jinja.Environment(
        loader=jinja.PackageLoader("spectralgp.report", ""),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # plotly packs arrays but those that are empty
    as_json = {"allow_nan": False, "separators": (",", ":"), "default": np.ndarray.tolist}
    environment.policies["json.dumps_kwargs"] = as_json
    return environment


def _covered(calibration: Calibration, level: float) -> str:
    """Share of the values inside an interval, with its standard error where that is known."""
    found = calibration.coverages.get(level)
    error = "" if found is None or found.n_signals < 2 else f" ± {found.standard_error:.1%}"
    return f"{calibration.covered_at(level):.1%}{error}"
