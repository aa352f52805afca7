"""What was done to signals before learning, and how to undo it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.arrays import on_host, take


@dataclass(frozen=True, eq=False)
class Units:
    """What was subtracted from signals, and what they were divided by after that.

    Parameters
    ----------
    offset : float, or array of shape (n_nodes,)
        Subtracted: one number, or one a node.
    spread : float
        Divided by.
    relative : array of shape (n_nodes,), optional
        Divided by too: the scales of the nodes, relative to the common one.
    """

    offset: Any = 0.0
    spread: float = 1.0
    relative: Any = None

    @property
    def divisor(self) -> Any:
        """All that was divided by: one number, or one a node."""
        return self.spread if self.relative is None else self.spread * self.relative

    def apply(self, signals: Any) -> Any:
        """Signals in the units they came in, centred and scaled."""
        return (signals - self.offset) / self.divisor

    def mean(self, mean: Any) -> Any:
        """A mean in the units the signals came in."""
        return mean * self.divisor + self.offset

    def std(self, std: Any, nodes: NDArray[np.intp] | None = None) -> Any:
        """Standard deviations in those units, at all nodes or at some."""
        if self.relative is None or nodes is None:
            return std * self.divisor
        return std * on_host(take(self.divisor, nodes, axis=0))

    def log_volume(self, observed: NDArray[np.bool_], axis: int | None = None) -> Any:
        """Logarithm of what a density of some of the values of signals is divided by in those units, summed up."""
        divisors = np.broadcast_to(np.asarray(on_host(self.divisor)), observed.shape)
        return np.sum(np.log(divisors), axis=axis, where=observed)

    def log_density(self, log_density: Any, n_values: int) -> Any:
        """The log density of so many values, whole signals, in those units."""
        log_density = log_density - n_values * float(np.log(self.spread))
        if self.relative is None:
            return log_density
        relative = np.asarray(on_host(self.relative))
        return log_density - n_values / relative.size * float(np.sum(np.log(relative)))

    def log_densities(self, log_densities: Any, n_values: int) -> Any:
        """The log densities of so many values at each node, along the last axis, in those units."""
        return log_densities - n_values * np.log(self.divisor)
