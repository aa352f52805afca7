"""Spectra of graphs: exact eigenpairs, or a quadrature from Chebyshev moments, behind the same few verbs."""

from spectralgp.spectra.base import (
    Errors,
    FilterBank,
    Filters,
    Modes,
    OfEigenvalues,
    SpectralData,
    Spectrum,
    SpectrumSettings,
    modes_of,
)
from spectralgp.spectra.exact import Eigenpairs, Exact, ExactSpectrum, SpectralSignals, decompose, oblique
from spectralgp.spectra.quadrature import Chebyshev, DensityState, Quadrature, SpectralMoments, release_passes
