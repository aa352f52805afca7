"""Eigendecompositions of covariances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from spectralgp._checks import Array


@dataclass(frozen=True, eq=False)
class Modes:
    """Eigenvalues and eigenvectors of a covariance matrix, ``V diag(values) V^T``.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Non-negative, in the order of the vectors.
    vectors : ndarray of shape (n, n)
        Orthonormal, in columns.
    """

    values: Array
    vectors: Array


def modes_of(covariance: Array, name: str = "covariance") -> Modes:
    """Eigendecomposition of a covariance matrix.

    Eigenvalues that rounding made negative are set to zero; a matrix with truly negative ones is refused.

    Raises
    ------
    ValueError
        If the smallest eigenvalue is below ``-1e-8`` times the largest.
    """
    values, vectors = eigh(covariance, check_finite=False, driver="evd")
    if values[0] < -1e-8 * max(abs(values[-1]), abs(values[0])):
        raise ValueError(
            f"{name} must be positive semi-definite; got smallest eigenvalue {values[0]:.3g} and largest "
            f"{values[-1]:.3g}. Check that the kernel is a valid covariance and that the matrix is symmetric."
        )
    return Modes(np.maximum(values, 0.0), vectors)
