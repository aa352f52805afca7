"""Signals with holes under a covariance: what is not observed, given what is."""

from spectralgp.masked.completion import Completion, completion_of
from spectralgp.masked.covariances import (
    CompleteCovariance,
    EigenCovariance,
    Mask,
    SeriesCovariance,
    covariance_of,
    covariance_on,
)
from spectralgp.masked.solves import MaskedCovariance

__all__ = [
    "CompleteCovariance",
    "Completion",
    "EigenCovariance",
    "Mask",
    "MaskedCovariance",
    "SeriesCovariance",
    "completion_of",
    "covariance_of",
    "covariance_on",
]
