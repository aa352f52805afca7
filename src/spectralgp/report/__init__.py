"""The report: one HTML file with what was learnt, how well it predicts, and what to watch out for.

`numbers` gathers what it tells from a fitted model, `words` puts that into sentences, `figures` draws it with plotly,
and `page` writes all of it into one file that needs no network.
"""

from spectralgp.report.numbers import gather
from spectralgp.report.page import write_page

__all__ = ["gather", "write_page"]
