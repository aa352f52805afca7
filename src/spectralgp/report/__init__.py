"""The report: one HTML file with what was learnt, how well it predicts, and what to watch out for.

`gather` collects the numbers, `words` puts them into sentences, and `page` writes them down with a plotting library's
script inside, so that the file needs no network.
"""

from spectralgp.report.gathering import gather
from spectralgp.report.numbers import Numbers, Predictions
from spectralgp.report.page import page_of, write_page

__all__ = ["Numbers", "Predictions", "gather", "page_of", "write_page"]
