"""The operator on the CPU: one fused pass over memory a step, rows in parallel."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from spectralgp._checks import Array
from spectralgp._operators.base import Operator

BLOCK = 2048  # rows that one thread takes at a time: few enough for their columns to stay in its cache
REORDER_FROM = 50_000  # nodes, from which a better order is worth finding


class CpuOperator(Operator):
    """Laplacian of a SciPy sparse graph, applied by compiled loops.

    Parameters
    ----------
    weights : scipy.sparse.csr_array
        Symmetric weights, already divided by the roots of the degrees for a normalised Laplacian.
    diagonal : ndarray of shape (n_nodes,)
        Diagonal of the Laplacian.
    dtype : float64 or float32
        Precision of the blocks.
    reorder : bool, optional
        Renumber the nodes so that neighbours lie close in memory; from 50,000 nodes if not given.
    """

    def __init__(self, weights: Any, diagonal: Array, dtype: Any = np.float64, reorder: bool | None = None) -> None:
        super().__init__(weights.shape[0], gershgorin_bound(weights, diagonal))
        self.dtype = np.dtype(dtype)
        self.order: NDArray[np.intp] | None = None
        if self.n_nodes >= REORDER_FROM if reorder is None else reorder:
            self.order = reverse_cuthill_mckee(weights, symmetric_mode=True)
            weights = weights[self.order][:, self.order]
            diagonal = diagonal[self.order]
        self.indptr, self.indices = weights.indptr, weights.indices
        self.weights = weights.data.astype(self.dtype, copy=False)
        self.diagonal = diagonal.astype(self.dtype, copy=False)

    def load(self, signals: Any) -> Any:
        """Read signals by blocks of columns, so that they may be larger than memory."""
        n_signals = signals.shape[0]
        block = np.empty((self.n_nodes, n_signals), dtype=self.dtype)
        place = None if self.order is None else np.argsort(self.order)
        width = max(1, 2**22 // max(1, n_signals))
        for start in range(0, self.n_nodes, width):
            columns = slice(start, min(start + width, self.n_nodes))
            rows: Any = columns if place is None else place[columns]
            block[rows] = np.asarray(signals[:, columns]).T
        return block

    def unload(self, block: Any) -> Any:
        """Signals in the user's order of the nodes."""
        if self.order is None:
            return np.ascontiguousarray(block.T)
        signals = np.empty((block.shape[1], self.n_nodes), dtype=self.dtype)
        signals[:, self.order] = block.T
        return signals

    def zeros(self, n_columns: int) -> Any:
        """Block of zeros."""
        return np.zeros((self.n_nodes, n_columns), dtype=self.dtype)

    def random_signs(self, n_columns: int, random_state: np.random.Generator) -> Any:
        """Block of random signs, made without wider temporaries than bytes."""
        signs = random_state.integers(0, 2, size=(self.n_nodes, n_columns), dtype=np.int8)
        block = signs.astype(self.dtype)
        block *= 2
        block -= 1
        return block

    def random_normal(self, n_columns: int, random_state: np.random.Generator) -> Any:
        """Block of standard normal numbers."""
        return random_state.standard_normal((self.n_nodes, n_columns), dtype=self.dtype.type)

    def rows(self) -> Any:
        """Diagonal of ``L``, and sums of squares of its other entries in each row."""
        return np.column_stack([self.diagonal, row_squares(self.indptr, self.weights)]).astype(self.dtype)

    def row_products(self, left: Any, right: Any) -> Any:
        """Inner products of the rows."""
        return np.einsum("mn,mn->m", left, right)[:, None]

    def stack(self, signals: list[Any]) -> Any:
        """Sets of signals along a new first axis."""
        return np.stack(signals)

    def step(self, current: Any, previous: Any) -> Any:
        """``2 A current - previous`` in place of `previous`."""
        self._run(_kernels()[0], current, previous)
        return previous

    def advance(self, current: Any, previous: Any, gram: bool) -> tuple[Any, Array, Array]:
        """Fused step: sparse product, recurrence and products in one pass over memory."""
        squares, crosses = self._run(_kernels()[1 if gram else 2], current, previous)
        return previous, squares, crosses

    def _run(self, kernel: Any, current: Any, previous: Any) -> Any:
        """One step by a kernel, on as many threads as there are blocks of rows for them.

        Arrays go in read-only, since Numba would compile anew for those that are not.
        """
        from numba import get_num_threads, set_num_threads

        matrix = [array.view() for array in (self.indptr, self.indices, self.weights, self.diagonal)]
        for view in matrix:
            view.flags.writeable = False
        n_threads = get_num_threads()
        # threads without work still wait for each other, on busy cores for longer than the work takes
        set_num_threads(min(n_threads, max(1, self.n_nodes // BLOCK)))
        try:
            return kernel(*matrix, self.dtype.type(4 / self.bound), current, previous)
        finally:
            set_num_threads(n_threads)

    def product(self, left: Any, right: Any) -> Array:
        """``left^T right``."""
        return np.asarray(left.T @ right, dtype=np.float64)

    def column_products(self, left: Any, right: Any) -> Array:
        """Inner products of the columns."""
        return np.asarray(np.einsum("mn,mn->n", left, right, dtype=np.float64))

    def combine(self, block: Any, matrix: Array) -> Any:
        """``block @ matrix``."""
        return block @ matrix.astype(self.dtype)


def row_squares(indptr: Any, weights: Any) -> Array:
    """Sum of squares of the entries in each row of a sparse matrix."""
    sums = np.concatenate([[0.0], np.cumsum(np.square(weights, dtype=np.float64))])
    return np.diff(sums[indptr])


def gershgorin_bound(weights: Any, diagonal: Array) -> float:
    """Largest row sum of absolute values, a bound on every eigenvalue."""
    rows = np.asarray(abs(weights).sum(axis=1)).ravel() + diagonal
    return float(np.max(rows, initial=0.0))


@cache
def _kernels() -> tuple[Any, Any, Any]:
    """Compiled loops: the step alone, with Gram matrices, and with the columns' inner products."""
    from numba import njit, prange
    from numba.extending import register_jitable

    # jitable, not compiled itself: a compiled function in their closure would keep the others out of Numba's cache
    @register_jitable(fastmath=True)
    def rows(
        indptr: Any,
        indices: Any,
        weights: Any,
        diagonal: Any,
        scale: Any,
        current: Any,
        previous: Any,
        first: int,
        last: int,
    ) -> None:
        n_columns = current.shape[1]
        total = np.empty(n_columns, current.dtype)
        for row in range(first, last):
            total[:] = 0
            for entry in range(indptr[row], indptr[row + 1]):
                weight = weights[entry]
                neighbour = indices[entry]
                for column in range(n_columns):
                    total[column] += weight * current[neighbour, column]
            for column in range(n_columns):
                value = current[row, column]
                laplacian = diagonal[row] * value - total[column]
                previous[row, column] = scale * laplacian - 2 * value - previous[row, column]

    @njit(cache=True, parallel=True, fastmath=True)
    def step(indptr, indices, weights, diagonal, scale, current, previous):  # type: ignore[no-untyped-def]
        n_nodes = current.shape[0]
        for block in prange((n_nodes + BLOCK - 1) // BLOCK):
            first = block * BLOCK
            last = min(first + BLOCK, n_nodes)
            rows(indptr, indices, weights, diagonal, scale, current, previous, first, last)

    @njit(cache=True, parallel=True, fastmath=True)
    def step_gram(indptr, indices, weights, diagonal, scale, current, previous):  # type: ignore[no-untyped-def]
        n_nodes, n_columns = current.shape
        n_parts = min(64, (n_nodes + BLOCK - 1) // BLOCK)  # each keeps its own sums, added up in a fixed order
        squares = np.zeros((n_parts, n_columns, n_columns))
        crosses = np.zeros((n_parts, n_columns, n_columns))
        for part in prange(n_parts):
            start = n_nodes * part // n_parts
            stop = n_nodes * (part + 1) // n_parts
            for first in range(start, stop, BLOCK):
                last = min(first + BLOCK, stop)
                rows(indptr, indices, weights, diagonal, scale, current, previous, first, last)
                following = previous[first:last]
                squares[part] += np.dot(following.T, following)
                crosses[part] += np.dot(following.T, current[first:last])
        return squares.sum(axis=0), crosses.sum(axis=0)

    @njit(cache=True, parallel=True, fastmath=True)
    def step_columns(indptr, indices, weights, diagonal, scale, current, previous):  # type: ignore[no-untyped-def]
        n_nodes, n_columns = current.shape
        n_parts = min(64, (n_nodes + BLOCK - 1) // BLOCK)
        squares = np.zeros((n_parts, n_columns))
        crosses = np.zeros((n_parts, n_columns))
        for part in prange(n_parts):
            start = n_nodes * part // n_parts
            stop = n_nodes * (part + 1) // n_parts
            for first in range(start, stop, BLOCK):
                last = min(first + BLOCK, stop)
                rows(indptr, indices, weights, diagonal, scale, current, previous, first, last)
                for row in range(first, last):
                    for column in range(n_columns):
                        squares[part, column] += previous[row, column] * previous[row, column]
                        crosses[part, column] += previous[row, column] * current[row, column]
        return squares.sum(axis=0), crosses.sum(axis=0)

    return step, step_gram, step_columns
