"""A filter of the user's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.checks import Array, as_positive, as_real_array
from spectralgp.graphs import LaplacianKind
from spectralgp.kernels.base import SpectralKernel
from spectralgp.kernels.positive import AMPLITUDE_RANGE, SIGNAL_SHARE
from spectralgp.spectra import Spectrum


@dataclass(frozen=True)
class Response(SpectralKernel):
    """The user's own filter, ``B = amplitude * function(L, *parameters)``.

    Parameters
    ----------
    function : callable
        ``function(eigenvalues, *parameters)`` gives the filter ``g`` at an array of eigenvalues.
    parameters : tuple of float, default=()
        Starting values of the parameters to learn, on the scale on which they should be learnt.
    parameter_bounds : tuple of pairs, optional
        A (low, high) pair for each parameter; free if not given.
    jacobian : callable, optional
        ``jacobian(eigenvalues, *parameters)`` gives the derivatives of ``g``, shape (n_eigenvalues, n_parameters).
        Differences of `function` within the bounds stand in for it if not given.
    amplitude : float, default=1.0
        Positive factor, learnt on a logarithmic scale.
    laplacian, scaled
        Which Laplacian the eigenvalues are of, as in `decompose`.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Response
    >>> bump = Response(lambda eigenvalues, centre: np.exp(-50 * (eigenvalues - centre) ** 2), (0.5,))
    >>> bump.response([0.5, 1.0]).round(4).tolist()
    [1.0, 0.0]
    """

    function: Callable[..., ArrayLike]
    parameters: tuple[float, ...] = ()
    parameter_bounds: tuple[tuple[float, float], ...] | None = None
    jacobian: Callable[..., ArrayLike] | None = None
    amplitude: float = 1.0
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = True

    def __post_init__(self) -> None:
        """Check that the function is one, and that bounds and parameters match."""
        if not callable(self.function):
            raise TypeError(
                f"function must be callable as function(eigenvalues, *parameters); got {self.function!r}. "
                "Pass for example lambda eigenvalues, rate: np.exp(-rate * eigenvalues)."
            )
        as_positive(self.amplitude, "amplitude")
        if self.parameter_bounds is not None and len(self.parameter_bounds) != len(self.parameters):
            raise ValueError(
                f"parameter_bounds must hold one pair for each of the {len(self.parameters)} parameters; "
                f"got {len(self.parameter_bounds)}. Pass (-np.inf, np.inf) for a free one."
            )

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return ("amplitude", *(f"parameters[{index}]" for index in range(len(self.parameters))))

    @property
    def has_free_amplitude(self) -> bool:
        return True

    @property
    def theta(self) -> Array:
        return np.array([np.log(self.amplitude), *self.parameters])

    def bounds(self, variance: float = 1.0) -> Array:
        amplitude = np.log(AMPLITUDE_RANGE) + 0.5 * np.log(variance)
        return np.vstack([amplitude, self._parameter_bounds])

    @property
    def _parameter_bounds(self) -> Array:
        free = ((-np.inf, np.inf),) * len(self.parameters)
        return np.reshape(np.asarray(self.parameter_bounds or free, dtype=float), (-1, 2))

    def with_theta(self, theta: ArrayLike) -> Self:
        log_amplitude, *parameters = np.asarray(theta, dtype=float).tolist()
        return dataclasses.replace(self, amplitude=float(np.exp(log_amplitude)), parameters=tuple(parameters))

    def scaled_by(self, factor: float) -> Self:
        return dataclasses.replace(self, amplitude=self.amplitude * factor)

    def starting_points(self, spectrum: Spectrum, variance: float) -> list[Array]:
        mean_power = dataclasses.replace(self, amplitude=1.0).mean_power(spectrum)
        amplitude = np.sqrt(SIGNAL_SHARE * variance / mean_power) if mean_power > 0 else np.sqrt(variance)
        return [dataclasses.replace(self, amplitude=float(amplitude)).theta]

    def response(self, eigenvalues: ArrayLike) -> Array:
        """The filter ``g(lambda)``."""
        return self.amplitude * self._shape(np.asarray(eigenvalues, dtype=float), *self.parameters)

    def power(self, eigenvalues: ArrayLike) -> Array:
        """Covariance spectrum ``g(lambda)^2``."""
        return np.square(self.response(eigenvalues))

    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        points = np.asarray(eigenvalues, dtype=float)
        response = self.response(points)
        slopes = self.amplitude * self._shape_jacobian(points)
        return np.column_stack([2 * response**2, 2 * response[:, None] * slopes])

    def _shape(self, eigenvalues: Array, *parameters: float) -> Array:
        values = as_real_array(self.function(eigenvalues, *parameters), "the values of function", ("n_eigenvalues",))
        if values.shape != eigenvalues.shape:
            raise ValueError(
                f"function must give one value for each eigenvalue; got shape {values.shape} for {eigenvalues.shape}. "
                "Write it with NumPy operations on the array of eigenvalues."
            )
        return values

    def _shape_jacobian(self, eigenvalues: Array) -> Array:
        if self.jacobian is not None:
            slopes = np.asarray(self.jacobian(eigenvalues, *self.parameters), dtype=float)
            if slopes.shape != (eigenvalues.size, len(self.parameters)):
                raise ValueError(
                    f"jacobian must give shape (n_eigenvalues, n_parameters) = "
                    f"({eigenvalues.size}, {len(self.parameters)}); got {slopes.shape}. One column a parameter."
                )
            return slopes
        columns = []
        for index, (value, (low, high)) in enumerate(zip(self.parameters, self._parameter_bounds, strict=True)):
            step = np.finfo(float).eps ** (1 / 3) * max(1.0, abs(value))
            # the function need not exist beyond the bounds: at one, the differences are one-sided
            offsets = [offset for offset in (-2, -1, 0, 1, 2) if low <= value + offset * step <= high]
            columns.append(self._difference(eigenvalues, index, step, offsets))
        return np.column_stack(columns) if columns else np.empty((eigenvalues.size, 0))

    def _difference(self, eigenvalues: Array, index: int, step: float, offsets: list[int]) -> Array:
        """Derivative in one parameter from values at multiples of a step away from it, to second order."""
        weights = {(-1, 1): (-0.5, 0.5), (0, 1, 2): (-1.5, 2.0, -0.5), (-2, -1, 0): (0.5, -2.0, 1.5)}
        for chosen, factors in weights.items():
            if set(chosen) <= set(offsets):
                moved = []
                for offset in chosen:
                    parameters = list(self.parameters)
                    parameters[index] += offset * step
                    moved.append(self._shape(eigenvalues, *parameters))
                return np.tensordot(factors, moved, axes=1) / step
        return np.zeros(eigenvalues.size)  # no room to move between the bounds
