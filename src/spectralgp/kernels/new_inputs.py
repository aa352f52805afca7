"""New inputs, as prediction sees them: by their covariances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from spectralgp._basics.checks import Array


class NewInputs(ABC):
    """Covariances of new inputs with the training inputs and among themselves: all that prediction needs of them."""

    @property
    @abstractmethod
    def cross(self) -> Array:
        """``k(x*, x_n)``, shape (n_inputs, n_signals)."""

    @property
    @abstractmethod
    def variances(self) -> Array:
        """``k(x*, x*)``, shape (n_inputs,)."""

    @property
    @abstractmethod
    def covariance(self) -> Array:
        """``k(x*, x*')``, shape (n_inputs, n_inputs)."""


@dataclass(frozen=True, eq=False)
class GivenInputs(NewInputs):
    """Covariances that were given as matrices; those among new inputs may be missing.

    Parameters
    ----------
    own_cross : ndarray of shape (n_inputs, n_signals)
        With the training inputs.
    own_variances : ndarray of shape (n_inputs,), optional
        Of the new inputs.
    own_covariance : ndarray of shape (n_inputs, n_inputs), optional
        Among the new inputs.
    """

    own_cross: Array
    own_variances: Array | None = None
    own_covariance: Array | None = None

    @property
    def cross(self) -> Array:
        """``k(x*, x_n)``."""
        return self.own_cross

    @property
    def variances(self) -> Array:
        """``k(x*, x*)``."""
        return _required(self.own_variances)

    @property
    def covariance(self) -> Array:
        """``k(x*, x*')``."""
        return _required(self.own_covariance)


def _required(matrix: Array | None) -> Array:
    if matrix is None:
        raise ValueError(
            "X must hold the covariance of the test inputs where covariances are wanted; got the cross-covariance "
            "only. Pass X = (cross, test covariance)."
        )
    return matrix


@dataclass(frozen=True, eq=False)
class KernelInputs(NewInputs):
    """Covariances by a scikit-learn kernel, computed where they are asked for."""

    kernel: Kernel
    training: Array
    inputs: Array

    @cached_property
    def cross(self) -> Array:
        """``k(x*, x_n)``."""
        return np.asarray(self.kernel(self.inputs, self.training))

    @cached_property
    def variances(self) -> Array:
        """``k(x*, x*)``."""
        return np.asarray(self.kernel.diag(self.inputs))

    @cached_property
    def covariance(self) -> Array:
        """``k(x*, x*')``."""
        return np.asarray(self.kernel(self.inputs))
