"""Data sets that come with the package."""

from spectralgp.datasets.us_income import USIncome, load_us_income

__all__ = ["USIncome", "load_us_income"]
