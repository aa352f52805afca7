"""Diagonals of functions of a Laplacian given by Chebyshev series: by probes, or at chosen nodes."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.chebyshev import chebval, chebvander
from numpy.typing import NDArray

from spectralgp._basics.checks import Array
from spectralgp.operators import MomentPass, Operator

UNIT_VECTORS = 32


def closest_quadratics(coefficients: Array, points: Array, multiplicities: Array) -> Array:
    """Chebyshev coefficients of the quadratics closest to functions in the mean over a spectrum, on [-1, 1]."""
    roots = np.sqrt(np.maximum(multiplicities, 0.0))[:, None]
    design = chebvander(points, min(2, coefficients.shape[1] - 1))
    values = chebval(points, coefficients.T).T
    return np.asarray(np.linalg.lstsq(roots * design, roots * values, rcond=None)[0].T, dtype=np.float64)


def diagonals_at(operator: Operator, coefficients: Array, nodes: NDArray[np.intp]) -> Array:
    """Diagonals at some nodes without error, shape (n_functions, n_some_nodes)."""
    values = []
    for start in range(0, len(nodes), UNIT_VECTORS):
        chosen = nodes[start : start + UNIT_VECTORS]
        moments = MomentPass(operator, operator.unit_vectors(chosen), gram=False)
        moments.extend(coefficients.shape[1])
        values.append(coefficients @ moments.moments[: coefficients.shape[1]])
    return np.concatenate(values, axis=1)
