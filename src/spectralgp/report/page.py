"""The page of a report: HTML with its styles, script and numbers inside."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralgp._basics.extras import require
from spectralgp._basics.files import atomic_write
from spectralgp.report import figures, words
from spectralgp.report.numbers import Numbers

if TYPE_CHECKING:
    from spectralgp.report.series import SeriesNumbers


def write_page(path: str | PathLike[str], text: str) -> Path:
    """Write a page to a file, whole or not at all; a file of that name is replaced."""
    with atomic_write(Path(path)) as beside:
        beside.write_bytes(text.encode("utf-8", "replace"))  # half a surrogate pair in a name is no text
    return Path(path)


def page_of(numbers: Numbers, title: str, aspect: float = 1.0) -> str:
    """The report as one page of HTML; on its map one unit upwards is drawn `aspect` times as long as one sideways."""
    return _rendered("signals.html", numbers, title, aspect, partial(figures.signal_figures, numbers))


def series_page_of(numbers: SeriesNumbers, title: str, aspect: float = 1.0) -> str:
    """The report of a series as one page of HTML."""
    from spectralgp.report import series

    return _rendered("series.html", numbers, title, aspect, lambda _: figures.series_figures(numbers), series=series)


def _rendered(
    template: str,
    numbers: Numbers | SeriesNumbers,
    title: str,
    aspect: float,
    others: Callable[[figures.Places], dict[str, Any]],
    **context: Any,
) -> str:
    """A page by a template, with the map, the picture of a node, and other figures that are drawn as they are."""
    plotly = require("plotly.offline", "report", "to write a report").get_plotlyjs()
    environment = _environment(require("jinja2", "report", "to write a report"))
    places, n_signals = figures.places_of(numbers.graph), len(numbers.predictions.labels)
    chosen = figures.shown_signals(n_signals, places.nodes.size)
    context |= {"title": title, "numbers": numbers, "places": places, "n_signals": n_signals, "n_shown": chosen.size}
    context |= {"figures": figures, "words": words, "plotly": plotly, "sections": []}
    data = figures.figure_data(numbers, places, chosen, aspect, others(places))
    return str(environment.get_template(template).render(data=data, **context))


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
