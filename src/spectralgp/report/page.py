"""The page of a report: HTML with its styles, script and numbers inside."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np

from spectralgp._basics.extras import require
from spectralgp._basics.files import atomic_write
from spectralgp.report import figures, words
from spectralgp.report.numbers import Numbers
from spectralgp.scores import Calibration

COVERAGE_LEVELS = (0.5, 0.8, 0.9, 0.95)


def write_page(path: str | PathLike[str], numbers: Numbers, title: str, aspect: float) -> Path:
    """Write the report to a file, whole or not at all; a file of that name is replaced."""
    text = page_of(numbers, title, aspect)
    with atomic_write(Path(path)) as beside:
        beside.write_bytes(text.encode("utf-8", "replace"))  # half a surrogate pair in a name is no text
    return Path(path)


def page_of(numbers: Numbers, title: str, aspect: float = 1.0) -> str:
    """The report as one page of HTML; on its map one unit upwards is drawn `aspect` times as long as one sideways."""
    plotly = require("plotly.offline", "report", "to write a report").get_plotlyjs()
    jinja = require("jinja2", "report", "to write a report")
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
    places = figures.places_of(numbers.graph)
    n_signals = len(numbers.predictions.labels)
    shown = figures.shown_signals(n_signals, places.nodes.size)
    return environment.get_template("page.html").render(
        title=title,
        numbers=numbers,
        places=places,
        figures=figures,
        words=words,
        n_signals=n_signals,
        n_shown=shown.size,
        coverages={words.percent(level): _covered(numbers.calibration, level) for level in COVERAGE_LEVELS},
        data=figures.figure_data(numbers, places, shown, aspect),
        plotly=plotly,
    )


def _covered(calibration: Calibration, level: float) -> str:
    """Share of the values inside an interval, with its standard error where that is known."""
    found = calibration.coverages.get(level)
    error = "" if found is None or found.n_signals < 2 else f" ± {found.standard_error:.1%}"
    return f"{calibration.covered_at(level):.1%}{error}"
