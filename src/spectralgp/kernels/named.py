"""The kernels on graphs of the literature, each a closed formula on the spectrum."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.checks import Array, as_integer, as_positive
from spectralgp.graphs import LaplacianKind
from spectralgp.kernels.base import SpectralKernel
from spectralgp.kernels.positive import STRENGTH_BOUNDS, Bounds, PositiveParameters
from spectralgp.spectra import Spectrum


class NamedKernel(PositiveParameters, SpectralKernel):
    """``amplitude^2`` times a fixed formula; subclasses give the formula and its logarithmic derivatives.

    The amplitude and its bounds are in the units of the signals; without bounds it is free.
    """

    @abstractmethod
    def _formula(self, eigenvalues: Array) -> Array:
        """Power at unit amplitude."""

    def _slopes(self, eigenvalues: Array) -> dict[str, Array]:
        """Derivative of the formula in the logarithm of each parameter but the amplitude."""
        return {}

    def power(self, eigenvalues: ArrayLike) -> Array:
        return self.amplitude**2 * self._formula(np.asarray(eigenvalues, dtype=float))

    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        values = np.asarray(eigenvalues, dtype=float)
        slopes = {"amplitude": 2 * self._formula(values)} | self._slopes(values)
        columns = [self.amplitude**2 * slopes[name] for name in self.parameter_names]
        return np.stack(columns, axis=1) if columns else np.empty((values.size, 0))


@dataclass(frozen=True)
class Identity(NamedKernel):
    """The standard multi-output GP: ``B = I``, nodes independent given the input.

    Examples
    --------
    >>> from spectralgp import Identity
    >>> Identity(amplitude=2.0).power([0.0, 0.5]).tolist()
    [4.0, 4.0]
    """

    amplitude: float = 1.0
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = False

    @property
    def needs_no_graph(self) -> bool:
        return True

    def _formula(self, eigenvalues: Array) -> Array:
        return np.ones_like(eigenvalues)


@dataclass(frozen=True)
class GlobalFilter(NamedKernel):
    """Global filtering (Venkitaraman et al.): ``B = (I + a L)^-1`` with `strength` a.

    Examples
    --------
    >>> from spectralgp import GlobalFilter
    >>> GlobalFilter(strength=1.0).response([0.0, 1.0]).tolist()
    [1.0, 0.5]
    """

    strength: float = 1.0
    amplitude: float = 1.0
    strength_bounds: Bounds = STRENGTH_BOUNDS
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = False
    _names: ClassVar[tuple[str, ...]] = ("amplitude", "strength")
    _starts: ClassVar[dict[str, tuple[float, ...]]] = {"strength": (0.1, 10.0)}

    def _formula(self, eigenvalues: Array) -> Array:
        return (1 + self.strength * eigenvalues) ** -2.0

    def _slopes(self, eigenvalues: Array) -> dict[str, Array]:
        return {"strength": -2 * self.strength * eigenvalues * (1 + self.strength * eigenvalues) ** -3.0}


@dataclass(frozen=True)
class PseudoInverse(NamedKernel):
    """Laplacian regularisation: ``B B^T`` is the pseudo-inverse of ``L``.

    Eigenvalues below the rounding of the largest one count as zero and get no power.

    Examples
    --------
    >>> from spectralgp import PseudoInverse
    >>> PseudoInverse().power([0.0, 0.5]).tolist()
    [0.0, 2.0]
    """

    amplitude: float = 1.0
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = False

    def bind(self, spectrum: Spectrum) -> Self:
        """Refused on a quadrature: no polynomial comes close to a pole."""
        spectrum.require_eigenvectors(
            "graph_kernel must be a function on the spectrum without a pole in it for a large graph; got "
            f"{self!r}. Use another kernel, or spectrum='exact' where the graph is small enough."
        )
        return self

    def _formula(self, eigenvalues: Array) -> Array:
        threshold = eigenvalues.size * np.finfo(float).eps * np.max(eigenvalues, initial=0.0)
        positive = eigenvalues > threshold
        return np.divide(1.0, eigenvalues, out=np.zeros_like(eigenvalues), where=positive)


@dataclass(frozen=True)
class RegularizedLaplacian(NamedKernel):
    """Regularised Laplacian (Smola and Kondor): ``B B^T = (I + a L)^-1`` with `strength` a.

    Examples
    --------
    >>> from spectralgp import RegularizedLaplacian
    >>> RegularizedLaplacian(strength=3.0).power([1.0]).tolist()
    [0.25]
    """

    strength: float = 1.0
    amplitude: float = 1.0
    strength_bounds: Bounds = STRENGTH_BOUNDS
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "normalized"
    scaled: bool = False
    _names: ClassVar[tuple[str, ...]] = ("amplitude", "strength")
    _starts: ClassVar[dict[str, tuple[float, ...]]] = {"strength": (0.1, 10.0)}

    def _formula(self, eigenvalues: Array) -> Array:
        return 1 / (1 + self.strength * eigenvalues)

    def _slopes(self, eigenvalues: Array) -> dict[str, Array]:
        return {"strength": -self.strength * eigenvalues / (1 + self.strength * eigenvalues) ** 2}


@dataclass(frozen=True)
class Diffusion(NamedKernel):
    """Diffusion, or heat, kernel (Smola and Kondor): ``B B^T = exp(-a/2 L)`` with `strength` a.

    Examples
    --------
    >>> from spectralgp import Diffusion
    >>> Diffusion(strength=2.0).power([0.0, 1.0]).round(4).tolist()
    [1.0, 0.3679]
    """

    strength: float = 1.0
    amplitude: float = 1.0
    strength_bounds: Bounds = STRENGTH_BOUNDS
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "normalized"
    scaled: bool = False
    _names: ClassVar[tuple[str, ...]] = ("amplitude", "strength")
    _starts: ClassVar[dict[str, tuple[float, ...]]] = {"strength": (0.1, 10.0)}

    def _formula(self, eigenvalues: Array) -> Array:
        return np.exp(-0.5 * self.strength * eigenvalues)

    def _slopes(self, eigenvalues: Array) -> dict[str, Array]:
        return {"strength": -0.5 * self.strength * eigenvalues * self._formula(eigenvalues)}


@dataclass(frozen=True)
class RandomWalk(NamedKernel):
    """Random walk of several steps (Smola and Kondor): ``B B^T = (a I - L)^p`` with `shift` a >= 2 and `steps` p.

    Examples
    --------
    >>> from spectralgp import RandomWalk
    >>> RandomWalk(steps=3, shift=2.0).power([0.0, 1.0]).tolist()
    [8.0, 1.0]
    """

    steps: int = 3
    shift: float = 2.0
    amplitude: float = 1.0
    shift_bounds: Bounds = (2.0, 1e3)
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "normalized"
    scaled: bool = False
    _names: ClassVar[tuple[str, ...]] = ("amplitude", "shift")
    _starts: ClassVar[dict[str, tuple[float, ...]]] = {"shift": (3.0, 20.0)}

    def __post_init__(self) -> None:
        super().__post_init__()
        as_integer(self.steps, "steps", 1)
        _require_bounded_spectrum(self)
        smallest = self.shift if self.shift_bounds == "fixed" else float(self.shift_bounds[0])
        if smallest < 2:
            raise ValueError(
                f"shift must be at least 2, the largest eigenvalue a normalised Laplacian can have; got {smallest}. "
                "Raise shift and the lower end of shift_bounds."
            )

    def _formula(self, eigenvalues: Array) -> Array:
        # An eigenvalue that should be 2 may be rounded above it.
        return np.maximum(self.shift - eigenvalues, 0.0) ** self.steps

    def _slopes(self, eigenvalues: Array) -> dict[str, Array]:
        base = np.maximum(self.shift - eigenvalues, 0.0)
        return {"shift": self.steps * self.shift * base ** (self.steps - 1)}


@dataclass(frozen=True)
class Cosine(NamedKernel):
    """Inverse-cosine regularisation (Smola and Kondor): ``B B^T = cos(pi/4 L)``.

    Examples
    --------
    >>> from spectralgp import Cosine
    >>> Cosine().power([0.0, 2.0]).round(6).tolist()
    [1.0, 0.0]
    """

    amplitude: float = 1.0
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "normalized"
    scaled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_bounded_spectrum(self)

    def _formula(self, eigenvalues: Array) -> Array:
        return np.maximum(np.cos(np.pi / 4 * eigenvalues), 0.0)  # an eigenvalue of 2 may be rounded above it


@dataclass(frozen=True)
class Matern(NamedKernel):
    """Matern kernel on a graph (Borovitskiy et al.): ``B B^T = (2 nu / l^2 + L)^-nu`` with `length_scale` l.

    Examples
    --------
    >>> from spectralgp import Matern
    >>> Matern(nu=1.0, length_scale=1.0).power([0.0, 2.0]).tolist()
    [0.5, 0.25]
    """

    nu: float = 1.5
    length_scale: float = 1.0
    amplitude: float = 1.0
    length_scale_bounds: Bounds = (1e-3, 1e3)
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = False
    _names: ClassVar[tuple[str, ...]] = ("amplitude", "length_scale")
    _starts: ClassVar[dict[str, tuple[float, ...]]] = {"length_scale": (0.3, 5.0)}

    def __post_init__(self) -> None:
        super().__post_init__()
        as_positive(self.nu, "nu")

    def _formula(self, eigenvalues: Array) -> Array:
        return (2 * self.nu / self.length_scale**2 + eigenvalues) ** -self.nu

    def _slopes(self, eigenvalues: Array) -> dict[str, Array]:
        shift = 2 * self.nu / self.length_scale**2
        return {"length_scale": 2 * self.nu * shift * (shift + eigenvalues) ** (-self.nu - 1)}


def _require_bounded_spectrum(kernel: RandomWalk | Cosine) -> None:
    if kernel.laplacian != "normalized" and not kernel.scaled:
        raise ValueError(
            f"laplacian must be 'normalized', or scaled, for {type(kernel).__name__}, whose formula turns negative "
            f"beyond eigenvalue 2; got laplacian = {kernel.laplacian!r}. Pass laplacian='normalized' or scaled=True."
        )
