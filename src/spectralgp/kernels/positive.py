"""Kernels whose parameters are positive numbers."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.checks import Array, as_positive
from spectralgp.kernels.base import GraphKernel
from spectralgp.spectra import Spectrum

Bounds = tuple[float, float] | Literal["fixed"]

AMPLITUDE_RANGE = (1e-8, 1e8)  # times the standard deviation of the signals, where no bounds are given
STRENGTH_BOUNDS = (1e-5, 1e5)
SIGNAL_SHARE = 0.8  # of the signals' variance that learning starts with, the rest being noise
BOUND_ROUNDING = 1e-9  # by which a learnt parameter may lie beyond its bound


class PositiveParameters(GraphKernel):
    """A kernel whose parameters are positive numbers, learnt on a logarithmic scale.

    Subclasses are dataclasses; each name in `_names` is a field with a companion field ``<name>_bounds``, which is a
    pair or "fixed". The amplitude, which has the units of the signals, may also have bounds of None, for eight orders
    of magnitude to either side of their standard deviation. `_starts` gives further values to start learning from.
    """

    _names: ClassVar[tuple[str, ...]] = ("amplitude",)
    _starts: ClassVar[dict[str, tuple[float, ...]]] = {}
    amplitude: float
    amplitude_bounds: Bounds | None

    def __post_init__(self) -> None:
        """Check every parameter and its bounds."""
        for name in self._names:
            value = as_positive(getattr(self, name), name)
            bounds: Bounds | None = getattr(self, f"{name}_bounds")
            if bounds == "fixed" or (bounds is None and name == "amplitude"):
                continue
            if bounds is None or isinstance(bounds, str) or np.shape(bounds) != (2,):
                raise ValueError(
                    f"{name}_bounds must be a pair (low, high) or 'fixed'; got {bounds!r}. Pass such as (0.1, 10.0)."
                )
            low, high = np.asarray(bounds, dtype=float)
            if not 0 < low * (1 - BOUND_ROUNDING) <= value <= high * (1 + BOUND_ROUNDING):
                raise ValueError(
                    f"{name} must lie within {name}_bounds, themselves positive and ascending; got {name} = {value} "
                    f"and bounds {bounds}. Widen {name}_bounds or pass 'fixed'."
                )

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(name for name in self._names if getattr(self, f"{name}_bounds") != "fixed")

    @property
    def theta(self) -> Array:
        return np.log([getattr(self, name) for name in self.parameter_names])

    def bounds(self, variance: float = 1.0) -> Array:
        pairs = [getattr(self, f"{name}_bounds") for name in self.parameter_names]
        default = tuple(np.sqrt(variance) * np.array(AMPLITUDE_RANGE))
        return np.log(np.reshape([default if pair is None else pair for pair in pairs], (-1, 2)))

    def with_theta(self, theta: ArrayLike) -> Self:
        values = dict(zip(self.parameter_names, np.exp(theta).tolist(), strict=True))
        return _replace(self, values)

    @property
    def has_free_amplitude(self) -> bool:
        return "amplitude" in self.parameter_names

    def scaled_by(self, factor: float) -> Self:
        bounds = self.amplitude_bounds
        if isinstance(bounds, tuple):
            bounds = (bounds[0] * factor, bounds[1] * factor)
        return _replace(self, {"amplitude": self.amplitude * factor, "amplitude_bounds": bounds})

    def starting_points(self, spectrum: Spectrum, variance: float) -> list[Array]:
        candidates = [self]
        for name, values in self._starts.items():
            if name in self.parameter_names:
                candidates += [_replace(self, {name: value}) for value in values]
        if not self.has_free_amplitude:
            return [candidate.theta for candidate in candidates]
        starts = []
        for candidate in candidates:
            mean_power = _replace(candidate, {"amplitude": 1.0}).mean_power(spectrum)
            amplitude = np.sqrt(SIGNAL_SHARE * variance / mean_power) if mean_power > 0 else np.sqrt(variance)
            starts.append(_replace(candidate, {"amplitude": amplitude}).theta)
        return starts


def _replace(kernel: Any, values: dict[str, Any]) -> Any:
    """Copy of a kernel with other parameter values, not held to the bounds: those bind learning, not arithmetic."""
    other = object.__new__(type(kernel))
    for field in dataclasses.fields(kernel):
        object.__setattr__(other, field.name, values.get(field.name, getattr(kernel, field.name)))
    return other
