"""Spectra of graphs: exact eigenpairs, or a quadrature from Chebyshev moments, behind the same few verbs."""

from spectralgp.model.spectra.base import (
    FilterBank,
    Filters,
    LikelihoodErrors,
    Modes,
    OfEigenvalues,
    SpectralData,
    Spectrum,
    SpectrumSettings,
    modes_of,
)
from spectralgp.model.spectra.exact import Eigenpairs, Exact, ExactSpectrum, SpectralSignals, decompose, oblique
from spectralgp.model.spectra.quadrature import Chebyshev, DensityState, Quadrature, SpectralMoments, release_passes
