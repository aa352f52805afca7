"""What graph Laplacians are made of, and where their spectrum ends."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from spectralgp._basics.checks import Array
from spectralgp.operators.lanczos import lanczos, largest_ritz_value

LaplacianKind = Literal["combinatorial", "normalized"]
LAPLACIANS = ("combinatorial", "normalized")

_DENSE_LIMIT = 200
"""Below this many nodes a dense eigenvalue routine is faster than Lanczos iterations."""

_RESIDUAL = 1e-9
"""Of an eigenpair that counts as found, where the largest degree is one."""


def normalized_parts(weights: Any, degrees: Array) -> tuple[csr_array, Array]:
    """Weights ``D^-1/2 W D^-1/2`` and diagonal of the normalised Laplacian; both are zero at isolated nodes.

    `weights` may be the first rows only, of all the nodes that `degrees` has.
    """
    roots = np.sqrt(degrees)
    inverse_roots = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    n_rows = weights.shape[0]
    # the two factors of an edge are multiplied first, so that both directions round alike
    factors = np.repeat(inverse_roots[:n_rows], np.diff(weights.indptr)) * inverse_roots[weights.indices]
    scaled = csr_array((weights.data * factors, weights.indices, weights.indptr), shape=weights.shape)
    return scaled, (degrees[:n_rows] > 0).astype(np.float64)


def largest_eigenvalue(laplacian: Any) -> float:
    """Largest eigenvalue of the Laplacian of a graph with edges, to a relative 1e-9 or better."""
    if laplacian.shape[0] < _DENSE_LIMIT:
        # all eigenvalues: LAPACK's routine for some of them fails on repeated ones, as complete graphs have
        return float(np.linalg.eigvalsh(laplacian.toarray())[-1])
    scale = float(laplacian.diagonal().max())  # half the eigenvalue at least: no product overflows
    matrix = laplacian / scale
    # any fixed generic start will do, so that the same graph always has the same eigenvalue to the last bit
    start = np.random.default_rng(0).standard_normal(matrix.shape[0])
    # thousands of such steps are cheap: ARPACK takes minutes for a path of 10,000 nodes
    return scale * largest_ritz_value(lanczos(lambda vector: matrix @ vector, np.dot, start), _RESIDUAL)[0]
