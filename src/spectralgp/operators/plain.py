"""The operator for any array library: dense algebra by the array API, sparse products by the library's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray

from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array
from spectralgp.operators.base import Operator


class PlainOperator(Operator):
    """Laplacian as a sparse or dense matrix of an array library that follows the array API, applied with ``@``.

    It serves CuPy, torch and array-api-strict, and SciPy as the plain path that the fused kernels are tested against.
    `rows` are what `Operator.rows` gives, on the host; blocks have the library, device and dtype of `prototype`.
    """

    def __init__(self, laplacian: Any, gershgorin: float, rows: Array, prototype: Any) -> None:
        super().__init__(laplacian.shape[0], gershgorin)
        self.laplacian = laplacian
        self.dtype, self.device = prototype.dtype, device(prototype)
        self._empty = array_namespace(prototype).zeros(0, dtype=self.dtype, device=self.device)
        self._rows = self._array(rows)

    @property
    def xp(self) -> Any:
        """The library; not an attribute, since modules cannot be pickled."""
        return array_namespace(self._empty)

    def _array(self, values: Any) -> Any:
        return self.xp.asarray(values, dtype=self.dtype, device=self.device)

    def load(self, signals: Any) -> Any:
        return self.xp.asarray(self._array(signals).T, copy=True)

    def unload(self, block: Any) -> Any:
        return block.T

    def zeros(self, n_columns: int) -> Any:
        return self.xp.zeros((self.n_nodes, n_columns), dtype=self.dtype, device=self.device)

    def unit_vectors(self, nodes: NDArray[np.intp]) -> Any:
        block = np.zeros((self.n_nodes, len(nodes)), dtype=np.float32)
        block[nodes, np.arange(len(nodes))] = 1
        return self._array(block)

    def random_block(self, draw: Callable[..., Any], n_columns: int, random_state: np.random.Generator) -> Any:
        nodes = np.arange(self.n_nodes, dtype=np.uint64)
        return self._array(draw(nodes, n_columns, random_state, np.float64))

    def rows(self) -> Any:
        return self._rows

    def row_products(self, left: Any, right: Any) -> Any:
        return self.xp.sum(left * right, axis=1)[:, None]

    def step(self, current: Any, previous: Any) -> Any:
        return (self.laplacian @ current) * (4 / self.bound) - current * 2 - previous

    def product(self, left: Any, right: Any) -> Array:
        return self._host(left.T @ right)

    def column_products(self, left: Any, right: Any) -> Array:
        return self._host(self.xp.sum(left * right, axis=0))

    def combine(self, block: Any, matrix: Array) -> Any:
        return block @ self._array(matrix)

    def scale(self, block: Any, factors: Array) -> Any:
        return block * self._array(factors)

    def _host(self, array: Any) -> Array:
        return np.asarray(on_host(array), dtype=np.float64)
