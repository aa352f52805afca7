"""Spectra of graphs: exact eigenpairs, or a quadrature from Chebyshev moments, with one interface."""

from spectralgp.model.spectra.base import (
    FilterBank,
    Filters,
    LikelihoodErrors,
    Modes,
    SpectralData,
    Spectrum,
    SpectrumSettings,
    mean_over_nodes,
    modes_of,
    state_of_spectrum,
)
from spectralgp.model.spectra.exact import Eigenpairs, Exact, ExactSpectrum, decompose, require_eigenvectors
from spectralgp.model.spectra.quadrature import Chebyshev, DensityState, Quadrature, SpectralMoments, release_passes
