"""Compiled loops of the CPU's operator. This module imports Numba, so others import it only where needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numba.extending import register_jitable

from spectralgp._basics.extras import can_keep_compiled

BLOCK = 2048  # rows that one thread takes at a time: few enough for their columns to stay in its cache
MOST_PARTS = 64  # partial sums, added up in a fixed order


# jitable, not compiled itself: a compiled function in their closure would keep the others out of Numba's cache
@register_jitable(fastmath=True)
def _rows(matrix: Any, scale: Any, current: Any, previous: Any, start: int, stop: int, term: Any = None) -> None:
    """Rows of a step; a term, if given, is a block and a factor for each of its columns."""
    indptr, indices, weights, diagonal = matrix
    n_columns = current.shape[1]
    total = np.empty(n_columns, current.dtype)
    for row in range(start, stop):
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
        if term is not None:  # known when the loop is compiled
            for column in range(n_columns):
                previous[row, column] += term[1][column] * term[0][row, column]


@register_jitable(fastmath=True)
def _add(
    matrix: Any, scale: Any, current: Any, previous: Any, start: int, stop: int, squares: Any, crosses: Any
) -> None:
    """Products of all pairs of columns if sums have two axes, else of each column alone; Numba compiles one branch."""
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        _rows(matrix, scale, current, previous, first, last)
        if squares.ndim == 2:
            following = previous[first:last]
            squares[:, :] += np.dot(following.T, following)
            crosses[:, :] += np.dot(following.T, current[first:last])
        else:
            for row in range(first, last):
                for column in range(current.shape[1]):
                    squares[column] += previous[row, column] * previous[row, column]
                    crosses[column] += previous[row, column] * current[row, column]


def _step(matrix: Any, scale: Any, current: Any, previous: Any, term: Any) -> None:
    n_nodes = current.shape[0]
    for block in prange((n_nodes + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        last = min(first + BLOCK, n_nodes)
        _rows(matrix, scale, current, previous, first, last, term)


def _step_sums(matrix: Any, scale: Any, current: Any, previous: Any, squares: Any, crosses: Any) -> None:
    n_nodes, n_parts = current.shape[0], squares.shape[0]
    for part in prange(n_parts):
        start = n_nodes * part // n_parts
        stop = n_nodes * (part + 1) // n_parts
        _add(matrix, scale, current, previous, start, stop, squares[part], crosses[part])


step, step_sums = (njit(parallel=True, cache=can_keep_compiled(), fastmath=True)(loop) for loop in (_step, _step_sums))
# for processes forked from one with threads, which must not start any; not cached, or they would pass for the others
serial_step, serial_step_sums = (njit(fastmath=True)(loop) for loop in (_step, _step_sums))
# of some rows, by one thread that leaves the interpreter to others: parts of a graph run side by side
step_rows, add = (njit(cache=can_keep_compiled(), fastmath=True, nogil=True)(loop) for loop in (_rows, _add))
