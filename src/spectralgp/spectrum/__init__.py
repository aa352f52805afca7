"""Spectra of graphs: exact eigenpairs, or a quadrature from Chebyshev moments, behind the same few verbs."""

from spectralgp.spectrum.chebyshev import Chebyshev, ChebyshevSpectrum, LargeSignals, TooFewMoments
from spectralgp.spectrum.exact import Spectrum, decompose
from spectralgp.spectrum.passes import chebyshev_coefficients, chebyshev_points, filter_columns
from spectralgp.spectrum.signals import RotatedMoments, RotatedSignals, SpectralMoments, SpectralSignals

AnySpectrum = Spectrum | ChebyshevSpectrum
AnyRotated = RotatedSignals | RotatedMoments

__all__ = [
    "AnyRotated",
    "AnySpectrum",
    "Chebyshev",
    "ChebyshevSpectrum",
    "LargeSignals",
    "RotatedMoments",
    "RotatedSignals",
    "SpectralMoments",
    "SpectralSignals",
    "Spectrum",
    "TooFewMoments",
    "chebyshev_coefficients",
    "chebyshev_points",
    "decompose",
    "filter_columns",
]
