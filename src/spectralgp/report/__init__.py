"""The report: one HTML file with what is predicted and how well, what was learnt, and what to watch out for."""

from spectralgp.report.numbers import NewSignals, gather
from spectralgp.report.page import page_of, series_page_of, write_page

__all__ = ["NewSignals", "gather", "page_of", "series_page_of", "write_page"]
