"""The operator on the CPU: one fused pass over memory a step, rows in parallel."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from spectralgp._basics.checks import Array
from spectralgp.graphs.operators.base import Operator

REORDERED_FROM = 5_000  # nodes, from which an order is worth finding in which neighbours lie close in memory
VALUES_READ_AT_ONCE = 2**22
FEWEST_IN_PARALLEL = 2**17  # values of a block, below which threads cost more than they save

_running = threading.Lock()  # one parallel loop at a time: not every thread pool of Numba allows two
_first_process: list[int] = []  # that started threads; a process forked from it must not start any
if sys.platform != "win32":  # which has no fork
    os.register_at_fork(after_in_child=lambda: globals().update(_running=threading.Lock()))


class CpuOperator(Operator):
    """Laplacian ``diag(diagonal) - weights`` of a SciPy sparse matrix, applied by compiled loops."""

    def __init__(self, weights: Any, diagonal: Array, dtype: Any = np.float64, reorder: bool | None = None) -> None:
        super().__init__(weights.shape[0], gershgorin_bound(weights, diagonal))
        self.dtype = np.dtype(dtype)
        self.order: NDArray[np.intp] | None = None
        if self.n_nodes >= REORDERED_FROM if reorder is None else reorder:
            self.order = reverse_cuthill_mckee(weights, symmetric_mode=True)
            weights = weights[self.order][:, self.order]
            diagonal = diagonal[self.order]
        self.indptr, self.indices = weights.indptr, weights.indices
        self.weights = np.asarray(weights.data, dtype=self.dtype)
        self.diagonal = np.asarray(diagonal, dtype=self.dtype)

    def load(self, signals: Any) -> Any:
        n_signals = signals.shape[0]
        block = np.empty((self.n_nodes, n_signals), dtype=self.dtype)
        place = None if self.order is None else np.argsort(self.order)
        width = max(1, VALUES_READ_AT_ONCE // max(1, n_signals))
        for start in range(0, self.n_nodes, width):
            columns = slice(start, min(start + width, self.n_nodes))
            rows: Any = columns if place is None else place[columns]
            block[rows] = np.asarray(signals[:, columns]).T
        return block

    def unload(self, block: Any) -> Any:
        if self.order is None:
            return np.ascontiguousarray(block.T)
        signals = np.empty((block.shape[1], self.n_nodes), dtype=self.dtype)
        signals[:, self.order] = block.T
        return signals

    def zeros(self, n_columns: int) -> Any:
        return np.zeros((self.n_nodes, n_columns), dtype=self.dtype)

    def unit_vectors(self, nodes: NDArray[np.intp]) -> Any:
        block = self.zeros(len(nodes))
        block[nodes if self.order is None else np.argsort(self.order)[nodes], np.arange(len(nodes))] = 1
        return block

    def random_block(self, draw: Callable[..., Any], n_columns: int, random_state: np.random.Generator) -> Any:
        nodes = np.arange(self.n_nodes) if self.order is None else self.order
        return draw(nodes.astype(np.uint64), n_columns, random_state, self.dtype)

    def rows(self) -> Any:
        return np.column_stack([self.diagonal, row_squares(self.indptr, self.weights)]).astype(self.dtype)

    def step(self, current: Any, previous: Any) -> Any:
        self._run("step", current, previous, None)
        return previous

    def step_plus(self, current: Any, previous: Any, columns: Any, coefficients: Array) -> Any:
        if coefficients.ndim == 2:
            return super().step_plus(current, previous, columns, coefficients)
        term = np.ascontiguousarray(columns), coefficients.astype(self.dtype)
        self._run("step", current, previous, term)
        return previous

    def advance(self, current: Any, previous: Any, gram: bool) -> tuple[Any, Array, Array]:
        from spectralgp.graphs.operators.loops import BLOCK, MOST_PARTS

        n_parts, n_columns = min(MOST_PARTS, -(-self.n_nodes // BLOCK)), current.shape[1]
        squares, crosses = np.zeros((2, n_parts, *[n_columns] * (2 if gram else 1)))
        self._run("step_sums", current, previous, squares, crosses)
        return previous, squares.sum(axis=0), crosses.sum(axis=0)

    def _run(self, loop: str, current: Any, previous: Any, *others: Any) -> None:
        """One step by a compiled loop, with at most one thread per block of rows."""
        from numba import get_num_threads, set_num_threads

        from spectralgp.graphs.operators import loops

        matrix = [array.view() for array in (self.indptr, self.indices, self.weights, self.diagonal)]
        for view in matrix:
            view.flags.writeable = False  # Numba would compile anew for arrays that are not
        arguments = (tuple(matrix), self.dtype.type(4 / self.bound), current, previous, *others)
        if _first_process and _first_process[0] != os.getpid():
            getattr(loops, f"serial_{loop}")(*arguments)
            return
        with _running:
            _first_process[:] = [os.getpid()]
            n_threads = get_num_threads()
            # threads without work still wait for each other, on busy cores for longer than the work takes
            n_blocks = self.n_nodes // loops.BLOCK if current.size >= FEWEST_IN_PARALLEL else 1
            set_num_threads(min(n_threads, max(1, n_blocks)))
            try:
                getattr(loops, loop)(*arguments)
            except SystemError as error:  # Numba raises it for an interrupt while a loop runs
                if _stems_from_interrupt(error):
                    raise KeyboardInterrupt from None
                raise
            finally:
                set_num_threads(n_threads)


def _stems_from_interrupt(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def row_squares(indptr: Any, weights: Any) -> Array:
    """Sum of squares of the entries in each row of a sparse matrix."""
    sums = np.concatenate([[0.0], np.cumsum(np.square(weights, dtype=np.float64))])
    return np.diff(sums[indptr])


def gershgorin_bound(weights: Any, diagonal: Array) -> float:
    """Largest row sum of absolute values, a bound on every eigenvalue."""
    rows = np.asarray(abs(weights).sum(axis=1)).ravel() + diagonal
    return float(np.max(rows, initial=0.0))
