"""What every graph kernel is: a covariance between nodes with learnt parameters."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._checks import Array, as_positive
from spectralgp.graph import LaplacianKind
from spectralgp.modes import Modes
from spectralgp.spectrum import AnySpectrum, Spectrum

Bounds = tuple[float, float] | Literal["fixed"]

AMPLITUDE_BOUNDS = (1e-8, 1e8)
STRENGTH_BOUNDS = (1e-5, 1e5)


class GraphKernel(ABC):
    """Covariance ``B B^T`` between the nodes of a graph, with parameters that learning may change.

    A kernel is frozen: `with_theta` returns another one. ``theta`` holds the free parameters as the optimiser
    sees them (logarithms of positive parameters, Chebyshev coefficients of a polynomial), as in scikit-learn.
    """

    laplacian: LaplacianKind
    scaled: bool

    @property
    @abstractmethod
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the free parameters, in the order of `theta`."""

    @property
    @abstractmethod
    def theta(self) -> Array:
        """The free parameters as the optimiser sees them."""

    @property
    @abstractmethod
    def bounds(self) -> Array:
        """Bounds of `theta`, shape (n_parameters, 2), for signals of unit variance."""

    @abstractmethod
    def with_theta(self, theta: ArrayLike) -> Self:
        """Same kernel with other values of its free parameters."""

    @abstractmethod
    def scaled_by(self, factor: float) -> Self:
        """Same kernel with the filter ``B`` multiplied by a positive factor."""

    @abstractmethod
    def modes(self, spectrum: AnySpectrum) -> Modes:
        """Eigenvalues (power) and eigenvectors of ``B B^T`` on a graph."""

    def mean_power(self, spectrum: AnySpectrum) -> float:
        """Variance that the kernel gives a node, averaged over the nodes."""
        return float(np.mean(self.modes(spectrum).values))

    @abstractmethod
    def starting_points(self, spectrum: AnySpectrum, variance: float) -> list[Array]:
        """Values of `theta` to start learning from, for signals with the given variance on a graph."""

    def bind(self, spectrum: AnySpectrum) -> Self:
        """Same kernel with whatever it must know of the spectrum's range filled in."""
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments by name, so that grid searches reach them as ``graph_kernel__degree``."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]  # every kernel is a dataclass
        return {field.name: getattr(self, field.name) for field in fields}

    def __sklearn_clone__(self) -> Self:
        """A frozen object is its own clone."""
        return self


class SpectralKernel(GraphKernel):
    """A graph kernel that is a function on the spectrum: ``B B^T = V diag(power(lambda)) V^T``."""

    @abstractmethod
    def power(self, eigenvalues: ArrayLike) -> Array:
        """Covariance spectrum ``gamma(lambda) = g(lambda)^2``."""

    @abstractmethod
    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        """Derivative of `power` in `theta`, shape (n_eigenvalues, n_parameters)."""

    def response(self, eigenvalues: ArrayLike) -> Array:
        """The filter ``g(lambda)``; the non-negative root of `power` unless the kernel is itself a filter."""
        return np.sqrt(self.power(eigenvalues))

    def mean_power(self, spectrum: AnySpectrum) -> float:
        """Variance that the kernel gives a node, averaged over the nodes."""
        return float(spectrum.mean(self.power(spectrum.eigenvalues)))

    def modes(self, spectrum: AnySpectrum) -> Modes:
        """Power at the graph's frequencies, with the graph's own eigenvectors."""
        if not isinstance(spectrum, Spectrum):
            raise TypeError("spectrum must be exact to have eigenvectors; got a quadrature. Use decompose(graph).")
        return Modes(self.power(spectrum.eigenvalues), spectrum.eigenvectors)


class PositiveParameters(GraphKernel):
    """A kernel whose parameters are positive numbers, learnt on a logarithmic scale.

    Subclasses are dataclasses; each name in `_names` is a field with a companion field ``<name>_bounds``, which is a
    pair or "fixed". `_starts` gives further values to start learning from.
    """

    _names: ClassVar[tuple[str, ...]] = ("amplitude",)
    _starts: ClassVar[dict[str, tuple[float, ...]]] = {}
    amplitude: float

    def __post_init__(self) -> None:
        """Check every parameter and its bounds."""
        for name in self._names:
            value = as_positive(getattr(self, name), name)
            bounds: Bounds = getattr(self, f"{name}_bounds")
            if bounds == "fixed":
                continue
            low, high = bounds
            if not 0 < low <= value <= high:
                raise ValueError(
                    f"{name} must lie within {name}_bounds, themselves positive and ascending; got {name} = {value} "
                    f"and bounds {bounds}. Widen {name}_bounds or pass 'fixed'."
                )

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters that are not fixed."""
        return tuple(name for name in self._names if getattr(self, f"{name}_bounds") != "fixed")

    @property
    def theta(self) -> Array:
        """Logarithms of the free parameters."""
        return np.log([getattr(self, name) for name in self.parameter_names])

    @property
    def bounds(self) -> Array:
        """Logarithms of the bounds of the free parameters."""
        pairs = [getattr(self, f"{name}_bounds") for name in self.parameter_names]
        return np.log(np.reshape(pairs, (-1, 2)))

    def with_theta(self, theta: ArrayLike) -> Self:
        """Same kernel with other values of its free parameters."""
        values = dict(zip(self.parameter_names, np.exp(theta).tolist(), strict=True))
        return _replace(self, values)

    def scaled_by(self, factor: float) -> Self:
        """Same kernel with its amplitude multiplied."""
        return _replace(self, {"amplitude": self.amplitude * factor})

    def starting_points(self, spectrum: AnySpectrum, variance: float) -> list[Array]:
        """Present values first, then each parameter's other starts, the amplitude matched to the variance."""
        candidates = [self]
        for name, values in self._starts.items():
            if name in self.parameter_names:
                candidates += [_replace(self, {name: value}) for value in values]
        if "amplitude" not in self.parameter_names:
            return [candidate.theta for candidate in candidates]
        starts = []
        for candidate in candidates:
            mean_power = candidate.mean_power(spectrum)
            factor = np.sqrt(0.8 * variance / mean_power) if mean_power > 0 else 1.0
            starts.append(candidate.scaled_by(factor).theta)
        return starts


def _replace(kernel: Any, values: dict[str, float]) -> Any:
    """Copy of a kernel with other parameter values, not held to the bounds: those bind learning, not arithmetic."""
    other = object.__new__(type(kernel))
    for field in dataclasses.fields(kernel):
        object.__setattr__(other, field.name, values.get(field.name, getattr(kernel, field.name)))
    return other
