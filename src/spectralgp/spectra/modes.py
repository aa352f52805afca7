"""Eigendecompositions of covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import eigh

from spectralgp._basics.checks import Array

ROUNDING = 1e-8  # of the largest eigenvalue: below zero by less than this is rounding


@dataclass(frozen=True, eq=False)
class Modes:
    """Eigenvalues and eigenvectors of a covariance matrix, ``V diag(values) V^T``. Made by `modes_of`.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Non-negative, in the order of the vectors.
    vectors : ndarray of shape (n, n)
        Orthonormal, in columns.
    smallest : float, default=0.0
        The smallest eigenvalue as it was found; where it is negative, zero stands for it among the values.
    """

    values: Array
    vectors: Array
    smallest: float = 0.0

    def require_definite(self, name: str) -> Self:
        """The modes themselves, if no eigenvalue is negative by more than rounding.

        Raises
        ------
        ValueError
            If the smallest eigenvalue is below ``-1e-8`` times the largest in size.
        """
        largest = float(np.max(self.values, initial=0.0))
        if self.smallest < -ROUNDING * max(largest, abs(self.smallest)):
            raise ValueError(
                f"{name} must be positive semi-definite; got smallest eigenvalue {self.smallest:.3g} and largest "
                f"{largest:.3g}. Check that the kernel is a valid covariance and that the matrix is symmetric."
            )
        return self


def modes_of(covariance: Array) -> Modes:
    """Eigendecomposition of a covariance matrix, with zero for negative eigenvalues; `Modes.smallest` tells of them.

    Examples
    --------
    >>> import numpy as np
    >>> modes_of(np.array([[2.0, 0.0], [0.0, 3.0]])).values.tolist()
    [2.0, 3.0]
    """
    if covariance.shape[0] == 0:
        return Modes(np.empty(0), np.empty((0, 0)))
    values, vectors = eigh(covariance, check_finite=False, driver="evd")
    return Modes(np.maximum(values, 0.0), vectors, float(values[0]))
