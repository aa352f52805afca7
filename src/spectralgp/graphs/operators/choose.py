"""Choice of the operator by the library and device of the signals; the operator for any array library."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj
from array_api_compat import device as device_of
from numpy.typing import NDArray
from scipy.sparse import diags_array

from spectralgp._basics.checks import Array
from spectralgp.graphs.operators.base import Operator
from spectralgp.graphs.operators.cpu import CpuOperator, gershgorin_bound, row_squares
from spectralgp.graphs.operators.cuda import CudaOperator


class PlainOperator(Operator):
    """Laplacian as a matrix of an array library that follows the array API, for blocks such as `prototype`."""

    def __init__(self, laplacian: Any, weights: Any, diagonal: Array, prototype: Any) -> None:
        super().__init__(laplacian.shape[0], gershgorin_bound(weights, diagonal))
        self.laplacian = laplacian
        self.dtype, self.device = prototype.dtype, device_of(prototype)
        self._empty = array_namespace(prototype).zeros(0, dtype=self.dtype, device=self.device)
        self._rows = self._array(np.column_stack([diagonal, row_squares(weights.indptr, weights.data)]))

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

    def step(self, current: Any, previous: Any) -> Any:
        return (self.laplacian @ current) * (4 / self.bound) - current * 2 - previous


def make_operator(weights: Any, diagonal: Array, prototype: Any, device: str | None = None) -> Operator:
    """Operator of the Laplacian ``diag(diagonal) - weights``, on the host, for signals such as `prototype`."""
    precision = precision_of(prototype)
    library = type(prototype).__module__.partition(".")[0]
    if library == "cupy":
        return _cuda(weights, diagonal, precision, "cupy")
    if library == "torch":
        if prototype.device.type == "cuda" and find_spec("cupy") is not None:
            return _cuda(weights, diagonal, precision, "torch")
        return _torch(weights, diagonal, prototype)
    if library != "numpy" and is_array_api_obj(prototype):  # dense: other libraries have no common sparse format
        xp = array_namespace(prototype)
        dense = xp.asarray(np.diag(diagonal) - weights.toarray(), dtype=prototype.dtype, device=prototype.device)
        return PlainOperator(dense, weights, diagonal, prototype)
    if device in (None, "cpu"):  # NumPy arrays and files run on the CPU or on `device`, others on their own
        if _has_numba():
            return CpuOperator(weights, diagonal, precision)
        laplacian = (diags_array(diagonal) - weights).tocsr().astype(precision)
        return PlainOperator(laplacian, weights, diagonal, np.empty(0, dtype=precision))
    if find_spec("cupy") is None:
        raise ImportError(
            f"device must be 'cpu' or None where CuPy is not installed; got {device!r}. "
            "Install CuPy for your CUDA version, or pass torch CUDA tensors."
        )
    return _cuda(weights, diagonal, precision, "numpy")


def precision_of(prototype: Any) -> Any:
    """Type of computations: float32 for float32, float64 for integers and float64; others are refused."""
    name = str(prototype.dtype).rpartition(".")[2]
    if name == "float32":
        return np.dtype(np.float32)
    if name == "float64" or name.startswith(("int", "uint")):
        return np.dtype(np.float64)
    raise TypeError(
        f"Y must be of type float32 or float64 on a large graph; got {name}. "
        "Convert it first: half precision, for one, loses the small differences that the recurrence lives on."
    )


def _cuda(weights: Any, diagonal: Array, precision: Any, outside: str) -> Operator:
    import cupy

    values, on_diagonal = (cupy.asarray(part, dtype=precision) for part in (weights.data, diagonal))
    indices = cupy.asarray(weights.indices, dtype=np.int32)
    return CudaOperator(cupy.asarray(weights.indptr), indices, values, on_diagonal, outside)


def _torch(weights: Any, diagonal: Array, prototype: Any) -> Operator:
    import torch

    laplacian = (diags_array(diagonal) - weights).tocsr()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse")  # torch warns that its CSR matrices are in beta
        matrix = torch.sparse_csr_tensor(
            torch.as_tensor(laplacian.indptr.astype(np.int64)),
            torch.as_tensor(laplacian.indices.astype(np.int64)),
            torch.as_tensor(laplacian.data),
            size=laplacian.shape,
            dtype=prototype.dtype,
            device=prototype.device,
        )
    return PlainOperator(matrix, weights, diagonal, prototype)


@cache
def _has_numba() -> bool:
    """Whether Numba is installed for the compiled loops; warn once if not."""
    found = find_spec("numba") is not None
    if not found:
        warnings.warn(
            "Numba is not installed, so large graphs are computed by SciPy, several times slower. "
            "Install it with: pip install 'spectralgp[large]'.",
            stacklevel=2,
        )
    return found
