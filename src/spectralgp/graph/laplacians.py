"""What graph Laplacians are made of, and where their spectrum ends."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh

from spectralgp._checks import Array

LaplacianKind = Literal["combinatorial", "normalized"]
LAPLACIANS = ("combinatorial", "normalized")

_DENSE_LIMIT = 200
"""Below this many nodes a dense eigenvalue routine is faster than Lanczos iterations."""


def normalized_parts(weights: Any, degrees: Array) -> tuple[csr_array, Array]:
    """Weights ``D^-1/2 W D^-1/2`` and diagonal of the normalised Laplacian; both are zero at isolated nodes."""
    roots = np.sqrt(degrees)
    inverse_roots = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    # the two factors of an edge are multiplied first, so that both directions round alike
    factors = np.repeat(inverse_roots, np.diff(weights.indptr)) * inverse_roots[weights.indices]
    scaled = csr_array((weights.data * factors, weights.indices, weights.indptr), shape=weights.shape)
    return scaled, (degrees > 0).astype(np.float64)


def largest_eigenvalue(laplacian: Any) -> float:
    """Largest eigenvalue of the Laplacian of a graph with edges, to rounding."""
    n_nodes = laplacian.shape[0]
    if n_nodes < _DENSE_LIMIT:
        # all eigenvalues: LAPACK's routine for some of them fails on repeated ones, as complete graphs have
        return float(np.linalg.eigvalsh(laplacian.toarray())[-1])
    # any fixed generic start will do, so that the same graph always has the same eigenvalue to the last bit
    start = np.random.default_rng(0).standard_normal(n_nodes)
    return float(eigsh(laplacian, k=1, which="LA", v0=start, tol=0, return_eigenvectors=False)[0])
