"""The operator on a CUDA device, through CuPy: one thread a node and column, the sparse product fused with the step."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp.graphs.operators.base import Operator

THREADS = 256
DRAWN_AT_ONCE = 2**26  # random numbers

SOURCE = """
extern "C" __global__ void chebyshev_step(
    const long long n_nodes, const int n_columns, const {index}* indptr, const int* indices, const {real}* weights,
    const {real}* diagonal, const {real} scale, const {real}* current, {real}* previous)
{{
    const long long position = blockIdx.x * (long long) blockDim.x + threadIdx.x;
    const long long row = position / n_columns;
    if (row >= n_nodes) return;
    const int column = (int) (position - row * n_columns);
    const {index} stop = indptr[row + 1];
    {real} total = 0;
    for ({index} entry = indptr[row]; entry < stop; ++entry)
        total += weights[entry] * current[(long long) indices[entry] * n_columns + column];
    const {real} value = current[position];
    previous[position] = scale * (diagonal[row] * value - total) - 2 * value - previous[position];
}}
"""


class CudaOperator(Operator):
    """Laplacian on a CUDA device, from CuPy arrays; `outside`, "cupy", "torch" or "numpy", has signals and answers."""

    def __init__(self, indptr: Any, indices: Any, weights: Any, diagonal: Any, outside: str = "cupy") -> None:
        self.indptr, self.indices, self.weights, self.diagonal = indptr, indices, weights, diagonal
        bound = float(self.cupy.max(self._row_sums(self.cupy.abs(weights)) + diagonal))
        super().__init__(int(diagonal.size), bound)
        self.dtype = weights.dtype
        self.outside = outside

    @property
    def cupy(self) -> Any:
        """The library; not an attribute, since modules cannot be pickled."""
        import cupy

        return cupy

    def load(self, signals: Any) -> Any:
        signals = signals[:] if not hasattr(signals, "__dlpack__") else signals
        is_torch = type(signals).__module__.partition(".")[0] == "torch"
        array = self.cupy.from_dlpack(signals) if is_torch else self.cupy.asarray(signals)
        return self.cupy.array(array.T, dtype=self.dtype, order="C", copy=True)

    def unload(self, block: Any) -> Any:
        signals = self.cupy.ascontiguousarray(block.T)
        if self.outside == "numpy":
            return self.cupy.asnumpy(signals)
        if self.outside == "torch":
            import torch

            return torch.from_dlpack(signals)
        return signals

    def zeros(self, n_columns: int) -> Any:
        return self.cupy.zeros((self.n_nodes, n_columns), dtype=self.dtype)

    def unit_vectors(self, nodes: NDArray[np.intp]) -> Any:
        block = self.zeros(len(nodes))
        block[self.cupy.asarray(nodes), self.cupy.arange(len(nodes))] = 1
        return block

    def random_block(self, draw: Callable[..., Any], n_columns: int, random_state: np.random.Generator) -> Any:
        nodes = self.cupy.arange(self.n_nodes, dtype=np.uint64)
        return draw(nodes, n_columns, random_state, self.dtype, DRAWN_AT_ONCE)

    def rows(self) -> Any:
        return self.cupy.stack([self.diagonal, self._row_sums(self.weights**2)], axis=1)

    def _row_sums(self, entries: Any) -> Any:
        """Sum of the given entries over each row; reduceat gives an empty row the entry after it."""
        if entries.size == 0:
            return self.cupy.zeros(self.diagonal.size, dtype=entries.dtype)
        starts = self.cupy.minimum(self.indptr[:-1], entries.size - 1)
        sums = self.cupy.add.reduceat(entries, starts)
        return self.cupy.where(self.indptr[1:] > self.indptr[:-1], sums, 0)

    def step(self, current: Any, previous: Any) -> Any:
        n_columns = current.shape[1]
        n_blocks = (self.n_nodes * n_columns + THREADS - 1) // THREADS
        matrix = (self.indptr, self.indices, self.weights, self.diagonal, self.dtype.type(4 / self.bound))
        blocks = (self.cupy.ascontiguousarray(current), previous)
        kernel = _kernel(self.indptr.dtype.str, self.dtype.str)
        kernel((n_blocks,), (THREADS,), (np.int64(self.n_nodes), np.int32(n_columns), *matrix, *blocks))
        return previous


@cache
def _kernel(index: str, real: str) -> Any:
    import cupy

    names = {"<i4": "int", "<i8": "long long", "<f4": "float", "<f8": "double"}
    return cupy.RawKernel(SOURCE.format(index=names[index], real=names[real]), "chebyshev_step")
