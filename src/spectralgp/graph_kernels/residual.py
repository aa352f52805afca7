"""A filter for what the inputs explain, and one for what neighbours share beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._checks import Array
from spectralgp.graph_kernels.base import Parts, SpectralKernel
from spectralgp.graph_kernels.parameters import Slopes
from spectralgp.spectrum import Spectrum


@dataclass(frozen=True)
class WithResidual(Parts):
    """Two kernels: ``g`` of what the inputs explain, and ``h`` of what each signal has to itself: equation (14).

    A signal is ``g(L) f(x) + h(L) e + noise`` with white ``e``. The residual ``h(L) e`` is shared by neighbours, but
    not by signals, so that no input predicts it. Made by ``WithResidual.of(signal, residual)``.

    Parameters
    ----------
    kernels : pair of SpectralKernel
        The signal's, and the residual's.
    laplacian, scaled
        The spectrum that both are functions of.

    Examples
    --------
    >>> from spectralgp import Diffusion, Identity
    >>> from spectralgp.graph_kernels import WithResidual
    >>> both = WithResidual.of(Identity(), Diffusion(strength=2.0))
    >>> both.power([0.0, 1.0]).tolist(), both.residual_power([0.0, 1.0]).round(4).tolist()
    ([1.0, 1.0], [1.0, 0.3679])
    """

    @property
    def signal(self) -> SpectralKernel:
        """The kernel of what the inputs explain."""
        return self.kernels[0]

    @property
    def residual(self) -> SpectralKernel:
        """The kernel of what they do not."""
        return self.kernels[1]

    def power(self, eigenvalues: ArrayLike) -> Array:
        """``gamma``, the power of the signal."""
        return self.signal.power(eigenvalues)

    def response(self, eigenvalues: ArrayLike) -> Array:
        """The filter ``g`` of the signal."""
        return self.signal.response(eigenvalues)

    def residual_power(self, eigenvalues: ArrayLike) -> Array:
        """``eta``, the power of the residual."""
        return self.residual.power(eigenvalues)

    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        """Derivative of the signal's power: the residual's parameters do not enter."""
        own = self.signal.power_jacobian(eigenvalues)
        return np.pad(own, ((0, 0), (0, self.residual.theta.size)))

    def pull_back(self, slopes: Slopes, spectrum: Spectrum) -> Array:
        """Each part from its own slope: equations (6) and (16)."""
        residual = self.residual.power_jacobian(spectrum.eigenvalues).T @ slopes.residual_gradient
        return np.concatenate([self.signal.pull_back(slopes, spectrum), residual])

    @property
    def has_free_amplitude(self) -> bool:
        """Whether the signal has one."""
        return self.signal.has_free_amplitude

    @property
    def label(self) -> str:
        """The signal's name, and that of what is beside it."""
        return f"{self.signal.label} | {self.residual.label}"
