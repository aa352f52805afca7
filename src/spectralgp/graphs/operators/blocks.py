"""Operations on blocks of columns over the nodes, for arrays of any library; other blocks register their own."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_cupy_array
from numpy.typing import NDArray

from spectralgp._basics.arrays import on_host, take
from spectralgp._basics.checks import Array

VALUES_SUMMED_AT_ONCE = 2**20  # of single precision, in double precision


@singledispatch
def row_products(left: Any, right: Any) -> Any:
    """Inner products of the rows of two blocks, as a block of one column."""
    if is_cupy_array(left):  # whose compiled sum over an axis is slow
        import cupy

        return cupy.einsum("mn,mn->m", left, right)[:, None]
    return array_namespace(left).vecdot(left, right)[:, None]


@singledispatch
def block_products(left: Any, right: Any) -> Array:
    """``left^T right`` on the host, as float64."""
    # NumPy's single precision is added up in double precision, a piece at a time
    if not isinstance(left, np.ndarray) or left.dtype == np.float64:
        return np.asarray(on_host(left.T @ right), dtype=np.float64)
    height = max(1, VALUES_SUMMED_AT_ONCE // max(1, left.shape[1] + right.shape[1]))
    total = np.zeros((left.shape[1], right.shape[1]))
    for start in range(0, len(left), height):
        rows = slice(start, start + height)
        total += left[rows].astype(np.float64).T @ right[rows].astype(np.float64)
    return total


@singledispatch
def column_products(left: Any, right: Any) -> Array:
    """Inner products of the columns of two blocks on the host, as float64."""
    if isinstance(left, np.ndarray):
        return np.asarray(np.einsum("mn,mn->n", left, right, dtype=np.float64))
    if is_cupy_array(left):  # where a whole product is faster than a reduction by columns
        return np.diagonal(block_products(left, right)).copy()
    return np.asarray(on_host(array_namespace(left).sum(left * right, axis=0)), dtype=np.float64)


@singledispatch
def combine_columns(block: Any, matrix: Array) -> Any:
    """``block @ matrix``, a small one from the host, of each group of columns; or columns times a factor each."""
    xp = array_namespace(block)
    given = xp.asarray(matrix, dtype=block.dtype, device=device(block))
    if matrix.ndim == 1:
        return block * given
    if block.shape[1] == matrix.shape[0]:
        return block @ given
    return xp.reshape(xp.reshape(block, (-1, matrix.shape[0])) @ given, (block.shape[0], -1))


@singledispatch
def join_columns(left: Any, right: Any) -> Any:
    """Block with the columns of two."""
    return array_namespace(left).concat([left, right], axis=1)


@singledispatch
def take_columns(block: Any, columns: NDArray[np.intp]) -> Any:
    """Block with some of the columns of another."""
    return take(block, columns, axis=1)
