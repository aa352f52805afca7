"""Spectra of graphs: exact eigenpairs, or a quadrature from Chebyshev moments, behind the same few verbs."""

from spectralgp.spectrum.base import (
    Errors,
    FilterBank,
    Filters,
    FilterSum,
    OfEigenvalues,
    Spectrum,
    SpectrumSettings,
)
from spectralgp.spectrum.data import SpectralData, SpectralMoments, SpectralSignals
from spectralgp.spectrum.density import Found
from spectralgp.spectrum.exact import Eigenpairs, Exact, ExactSpectrum, MatrixBasis, Oblique, decompose
from spectralgp.spectrum.quadrature import Chebyshev, Quadrature, release_passes

__all__ = [
    "Chebyshev",
    "Eigenpairs",
    "Errors",
    "Exact",
    "ExactSpectrum",
    "FilterBank",
    "FilterSum",
    "Filters",
    "Found",
    "MatrixBasis",
    "Oblique",
    "OfEigenvalues",
    "Quadrature",
    "SpectralData",
    "SpectralMoments",
    "SpectralSignals",
    "Spectrum",
    "SpectrumSettings",
    "decompose",
    "release_passes",
]
