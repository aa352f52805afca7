"""Page of a report: HTML with styles, script and numbers inside."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np

from spectralgp._basics.extras import require
from spectralgp._basics.files import atomic_write
from spectralgp.show.report import figures, words
from spectralgp.show.report.numbers import SeriesReport, SignalReport


def write_page(path: str | PathLike[str], numbers: SignalReport | SeriesReport, title: str, aspect: float) -> Path:
    """Write a report to a file, whole or not at all; a file of that name is replaced.

    On its map one unit upwards is drawn `aspect` times as long as one sideways.
    """
    plotly = require("plotly.offline", "report", "to write a report").get_plotlyjs()
    jinja = require("jinja2", "report", "to write a report")
    loader = jinja.PackageLoader("spectralgp.show.report", "")
    environment = jinja.Environment(loader=loader, autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True)
    # plotly packs arrays but those that are empty
    as_json = {"allow_nan": False, "separators": (",", ":"), "default": np.ndarray.tolist}
    environment.policies["json.dumps_kwargs"] = as_json
    template = environment.get_template("series.html" if isinstance(numbers, SeriesReport) else "signals.html")
    coordinates, note = figures.map_coordinates(numbers.graph)
    data = figures.figure_data(numbers, coordinates, aspect)
    given = {"title": title, "numbers": numbers, "data": data, "note": note, "plotly": plotly, "sections": []}
    text = str(template.render(given, figures=figures, words=words))
    with atomic_write(Path(path)) as beside:
        beside.write_bytes(text.encode("utf-8", "replace"))  # half a surrogate pair in a name is no text
    return Path(path)
