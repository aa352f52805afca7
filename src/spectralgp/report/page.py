"""The page of a report: HTML with its styles, script and numbers inside."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path

from spectralgp._basics.extras import require
from spectralgp._basics.files import atomic_write
from spectralgp.report import sections, words
from spectralgp.report.data import as_json, drawn, shown_signals
from spectralgp.report.numbers import Numbers
from spectralgp.report.places import places_of

SECTIONS = {
    "words": "In words",
    "map": "Map of the signals",
    "filters": "Filters",
    "predictions": "Prediction against truth",
    "calibration": "Calibration",
    "models": "Models compared",
    "certificate": "Certificate",
    "numbers": "Numbers",
}
# nothing may be fetched, whatever a name or a browser makes of the page; the plotting library compiles functions
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:; base-uri 'none'; form-action 'none'"
)


def write_page(path: str | PathLike[str], numbers: Numbers, title: str, aspect: float) -> Path:
    """Write the report to a file, whole or not at all; a file of that name is replaced."""
    text = page_of(numbers, title, aspect)
    with atomic_write(Path(path)) as beside:
        beside.write_bytes(text.encode("utf-8", "replace"))  # half a surrogate pair in a name is no text
    return Path(path)


def page_of(numbers: Numbers, title: str, aspect: float = 1.0) -> str:
    """The report as one page of HTML.

    Parameters
    ----------
    numbers : Numbers
        What it tells.
    title : str
        Its heading.
    aspect : float
        How much longer one unit upwards is drawn than one unit sideways on the map.

    Raises
    ------
    ImportError
        If plotly is not installed.
    """
    plotly = require("plotly.offline", "report", "to write a report").get_plotlyjs()
    places = places_of(numbers.graph)
    shown = shown_signals(len(numbers.predictions.labels), places.nodes.size)
    data = drawn(numbers, places, shown, aspect)
    bodies = {
        "words": sections.words_section(numbers),
        "map": sections.map_section(numbers, places.note, shown.size),
        "filters": sections.filters_section(numbers),
        "predictions": sections.predictions_section(numbers),
        "calibration": sections.calibration_section(numbers),
        "models": sections.models_section(numbers),
        "certificate": sections.certificate_section(numbers),
        "numbers": sections.numbers_section(numbers),
    }
    written = "\n".join(
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{SECTIONS[name]}</h2>\n{body}\n'
        "</section>"
        for name, body in bodies.items()
    )
    links = "".join(f'<li><a href="#{name}">{heading}</a></li>' for name, heading in SECTIONS.items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{_own_file("page.css")}
</style>
</head>
<body>
<a class="skip" href="#words">Skip to the report</a>
<header>
<h1>{escape(title)}</h1>
<p>{escape(_overview(numbers))}</p>
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main>
<noscript><p class="note">The pictures need JavaScript, which is off. The words and tables do not.</p></noscript>
{written}
</main>
<footer><p>Written by spectralgp. This file holds everything it shows and fetches nothing.</p></footer>
<script>
{plotly}
</script>
<script type="application/json" id="report-data">{as_json(data)}</script>
<script>
{_own_file("page.js")}
</script>
</body>
</html>
"""


def _own_file(name: str) -> str:
    return files("spectralgp.report").joinpath(name).read_text(encoding="utf-8")


def _overview(numbers: Numbers) -> str:
    counts, n_models = numbers.counts, sum(one.weight > 0 for one in numbers.members)
    signals = f"{words.count(counts.signals, 'training signal')} on {words.count(counts.nodes, 'node')}"
    models = "one model" if n_models == 1 else f"a mixture of {n_models} models"
    return f"{signals} and {words.count(counts.edges, 'edge')}; {models}."
