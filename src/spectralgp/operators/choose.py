"""Which operator serves which signals: computation follows the data."""

from __future__ import annotations

import warnings
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj
from scipy.sparse import diags_array

from spectralgp._basics.checks import Array
from spectralgp.operators.base import Operator
from spectralgp.operators.cpu import CpuOperator, gershgorin_bound, row_squares
from spectralgp.operators.cuda import CudaOperator
from spectralgp.operators.plain import PlainOperator


def make_operator(weights: Any, diagonal: Array, prototype: Any, device: str | None = None) -> Operator:
    """Operator of the Laplacian ``diag(diagonal) - weights``, a CSR matrix and an array on the host, for given signals.

    Computation follows the signals, such as `prototype`: NumPy and anything NumPy reads run on the CPU or on `device`,
    CuPy arrays and torch CUDA tensors on their device; arrays of any other library that follows the array API are
    computed there with dense matrices.
    """
    precision = precision_of(prototype)
    library = type(prototype).__module__.partition(".")[0]
    if library == "cupy":
        return _cuda(weights, diagonal, precision, "cupy")
    if library == "torch":
        if prototype.device.type == "cuda" and find_spec("cupy") is not None:
            return _cuda(weights, diagonal, precision, "torch")
        return _torch(weights, diagonal, prototype)
    if library != "numpy" and is_array_api_obj(prototype):  # of a library without sparse matrices that we know of
        xp = array_namespace(prototype)
        dense = xp.asarray(np.diag(diagonal) - weights.toarray(), dtype=prototype.dtype, device=prototype.device)
        return _plain(dense, weights, diagonal, prototype)
    if device in (None, "cpu"):
        return CpuOperator(weights, diagonal, precision) if _has_numba() else _scipy(weights, diagonal, precision)
    if find_spec("cupy") is None:
        raise ImportError(
            f"device must be 'cpu' or None where CuPy is not installed; got {device!r}. "
            "Install CuPy for your CUDA version, or pass torch CUDA tensors."
        )
    return _cuda(weights, diagonal, precision, "numpy")


def precision_of(prototype: Any) -> Any:
    """Type in which to compute: float32 stays float32, integers and float64 become float64, nothing else will do."""
    name = str(prototype.dtype).rpartition(".")[2]
    if name == "float32":
        return np.dtype(np.float32)
    if name == "float64" or name.startswith(("int", "uint")):
        return np.dtype(np.float64)
    raise TypeError(
        f"Y must be of type float32 or float64 on a large graph; got {name}. "
        "Convert it first: half precision, for one, loses the small differences that the recurrence lives on."
    )


def _cuda(weights: Any, diagonal: Array, precision: Any, outside: Literal["cupy", "torch", "numpy"]) -> Operator:
    import cupy

    indices = cupy.asarray(weights.indices.astype(np.int32, copy=False))
    indptr = cupy.asarray(weights.indptr)
    return CudaOperator(
        indptr, indices, cupy.asarray(weights.data, dtype=precision), cupy.asarray(diagonal, dtype=precision), outside
    )


def _torch(weights: Any, diagonal: Array, prototype: Any) -> Operator:
    import torch

    laplacian = (diags_array(diagonal) - weights).tocsr()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse")  # torch says that its CSR matrices are in beta
        matrix = torch.sparse_csr_tensor(
            torch.as_tensor(laplacian.indptr.astype(np.int64)),
            torch.as_tensor(laplacian.indices.astype(np.int64)),
            torch.as_tensor(laplacian.data),
            size=laplacian.shape,
            dtype=prototype.dtype,
            device=prototype.device,
        )
    return _plain(matrix, weights, diagonal, prototype)


@cache
def _has_numba() -> bool:
    """Whether the compiled loops can be had; where they cannot, that is said once."""
    found = find_spec("numba") is not None
    if not found:
        warnings.warn(
            "Numba is not installed, so large graphs are computed by SciPy, several times slower. "
            "Install it with: pip install 'spectralgp[large]'.",
            stacklevel=2,
        )
    return found


def _scipy(weights: Any, diagonal: Array, precision: Any) -> Operator:
    laplacian = (diags_array(diagonal) - weights).tocsr().astype(precision)
    return _plain(laplacian, weights, diagonal, np.empty(0, dtype=precision))


def _plain(laplacian: Any, weights: Any, diagonal: Array, prototype: Any) -> Operator:
    rows = np.column_stack([diagonal, row_squares(weights.indptr, weights.data)])
    return PlainOperator(laplacian, gershgorin_bound(weights, diagonal), rows, prototype)
