"""How accurate the likelihood on a quadrature spectrum is, and when it needs more moments."""

from __future__ import annotations

import numpy as np

from spectralgp._checks import Array
from spectralgp.graph_kernels.base import SpectralKernel
from spectralgp.learning.objective import Objective
from spectralgp.spectrum import ChebyshevSpectrum, TooFewMoments, chebyshev_coefficients

FINER = 4  # times as many points as moments, to see the tail of a Chebyshev series
LEAST_POINTS = 1024  # however few the moments: their tail may be longer than a few times their number


def likelihood_errors(objective: Objective, x: Array) -> tuple[float, float]:
    """Bound on the truncation error of the log likelihood at ``x``, and its standard error by the probes, in nats.

    The quadrature is exact for polynomials of its degree, and no Chebyshev polynomial exceeds one, so what the
    coefficients of ``log D`` and ``1 / D`` beyond that degree add up to, times the number of nodes and the energy of
    the signals, bounds the error. Those coefficients follow from the filter alone. Both errors are zero on an exact
    spectrum.
    """
    spectrum = objective.spectrum
    kernel, input_theta, noise_variance = objective.split(x)
    if not isinstance(spectrum, ChebyshevSpectrum) or not isinstance(kernel, SpectralKernel):
        return 0.0, 0.0
    modes, _, rotated = objective.inputs_at(input_theta)
    n_moments = spectrum.eigenvalues.size
    power = kernel.power(spectrum.points(max(FINER * n_moments, LEAST_POINTS)))
    variances = np.multiply.outer(modes.values, power) + noise_variance
    logarithms, inverses = chebyshev_coefficients(np.log(variances)), chebyshev_coefficients(1 / variances)
    # a term beyond the degree is lost, and aliased into a lower one: twice its size at most, half of it in (13)
    lost = spectrum.n_nodes * np.sum(np.abs(logarithms[:, n_moments:]))
    lost += np.abs(rotated.energies.sum(axis=1)) @ np.sum(np.abs(inverses[:, n_moments:]), axis=1)
    return float(lost), 0.5 * spectrum.probe_spread(logarithms.sum(axis=0))


def require_moments(objective: Objective, x: Array) -> None:
    """Ask for more moments where the truncation error at a solution ``x`` is above the spectrum's tolerance.

    Quadrature weights can be negative, and an optimiser exploits that where they are too coarse for its filter. Since
    the error is bounded, such a solution never passes. Points on the way to a solution need not pass: they are often
    harder to resolve than the answer, and cost nothing but time.

    Raises
    ------
    TooFewMoments
        If more moments are needed and may be had.
    """
    spectrum = objective.spectrum
    if not isinstance(spectrum, ChebyshevSpectrum) or spectrum.source.is_exhausted:
        return
    if not likelihood_errors(objective, x)[0] <= truncation_limit(objective):
        raise TooFewMoments


def truncation_limit(objective: Objective) -> float:
    """Truncation error that the spectrum's tolerance allows, in nats; infinite on an exact spectrum."""
    if not isinstance(objective.spectrum, ChebyshevSpectrum):
        return float("inf")
    # one nat an observation is the scale of the likelihood, and unlike its value never near zero
    return objective.spectrum.source.settings.tolerance * objective.task.signals.size
