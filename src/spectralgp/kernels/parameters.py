"""What learning asks of the parameters of graph kernels: slopes to pull back, and constraints to keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from spectralgp._basics.checks import Array


class Slopes(Protocol):
    """Derivatives of a log likelihood in a covariance between nodes, as `Evidence` has them."""

    @property
    def power_gradient(self) -> Array:
        """In the power at each frequency."""

    @property
    def residual_gradient(self) -> Array:
        """In the power of the residual at each frequency."""

    @property
    def node_covariance_gradient(self) -> Array:
        """In the entries of the covariance, in its own eigenbasis."""


@dataclass(frozen=True, eq=False)
class Positivity:
    """Where a filter must not be negative, and its values there as linear functions of its parameters.

    Parameters
    ----------
    points : ndarray of shape (n_points,)
        Eigenvalues, ascending.
    rows : ndarray of shape (n_points, n_parameters)
        ``rows @ theta`` is the filter at the points.
    constant : ndarray of shape (n_parameters,)
        What to add to `theta` to raise the filter by one everywhere.
    """

    points: Array
    rows: Array
    constant: Array

    def padded(self, before: int, n_parameters: int) -> Positivity:
        """The same for a vector of parameters in which others stand before and after those of the filter."""
        rows, constant = np.zeros((self.points.size, n_parameters)), np.zeros(n_parameters)
        own = slice(before, before + self.constant.size)
        rows[:, own], constant[own] = self.rows, self.constant
        return Positivity(self.points, rows, constant)
