"""The report: one HTML file with what was learnt, how well it predicts, and what to watch out for."""

from spectralgp.report.numbers import NewSignals, gather
from spectralgp.report.page import write_page

__all__ = ["NewSignals", "gather", "write_page"]
