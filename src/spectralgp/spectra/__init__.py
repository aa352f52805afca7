"""Spectra of graphs: exact eigenpairs, or a quadrature from Chebyshev moments, behind the same few verbs."""

from spectralgp.spectra.base import (
    Errors,
    FilterBank,
    Filters,
    FilterSum,
    OfEigenvalues,
    Spectrum,
    SpectrumSettings,
)
from spectralgp.spectra.data import SpectralData, SpectralMoments, SpectralSignals
from spectralgp.spectra.density import Found
from spectralgp.spectra.exact import Eigenpairs, Exact, ExactSpectrum, MatrixBasis, Oblique, decompose
from spectralgp.spectra.quadrature import Chebyshev, Quadrature, release_passes

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
