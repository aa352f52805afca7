"""The door for adjacency matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse

from spectralgp._basics.checks import Array, as_real_array, without_mask

_ADJACENCY = "Weights are an adjacency matrix; for a list of edges use Graph.from_edges, for points Graph.from_points."
_ROWS_OF_EDGES = " If its rows are edges, use Graph.from_edges."
_ABSENT = "Use 0 where there is no edge."
_UNDIRECTED = "Graphs are undirected: pass (weights + weights.T) / 2, or the larger of the two directions."

SIMILARITIES = "A Laplacian needs similarities: pass absolute values, or drop the negative edges."


def as_weights(weights: Any, *, remedy: str = _UNDIRECTED) -> Any:
    """Symmetric non-negative adjacency matrix, sparse, sorted, without stored zeros and read-only.

    Indices are 32-bit wherever they fit. Nothing is shared with the caller, so that nothing outside can change
    a graph.

    Parameters
    ----------
    weights : array-like or SciPy sparse matrix, shape (n_nodes, n_nodes)
        Edge weights. Directions that differ by rounding, see `Graph`, are averaged.
    remedy : str
        What to do about a directed graph.

    Returns
    -------
    csr_array of shape (n_nodes, n_nodes)
    """
    matrix = _from_sparse(weights) if issparse(weights) else csr_array(_dense(weights))
    if not np.isfinite(matrix.data).all():
        row, column, value = _first(matrix, ~np.isfinite(matrix.data))
        raise ValueError(f"weights must be finite; got weights[{row}, {column}] = {value}. {_ABSENT}")
    hint = _ROWS_OF_EDGES if not issparse(weights) and _has_rows_of_edges(matrix) else ""
    _check_laplacian(matrix)
    loops = np.flatnonzero(matrix.diagonal())
    if loops.size:
        raise ValueError(
            f"weights must have a zero diagonal; got {loops.size} self-loops, the first at node {loops[0]}. "
            f"They do not enter a Laplacian: remove them, by np.fill_diagonal(weights, 0) or setdiag(0).{hint}"
        )
    if matrix.data.size and matrix.data.min() < 0:
        row, column, value = _first(matrix, matrix.data < 0)
        raise ValueError(f"weights must be non-negative; got weights[{row}, {column}] = {value}. {SIMILARITIES}{hint}")
    dtype = weights.dtype if issparse(weights) else np.asarray(weights).dtype
    return finished(_symmetric(matrix, _rounding(dtype), remedy + hint))


def _has_rows_of_edges(matrix: Any) -> bool:
    """Whether a matrix may be a list of two pairs (u, v), or of three triples (u, v, weight)."""
    return matrix.shape[0] in (2, 3) and not (matrix.toarray()[:, :2] % 1).any()


def _check_laplacian(matrix: Any) -> None:
    """Refuse what has nothing but negative numbers off a positive diagonal."""
    diagonal = matrix.diagonal()
    n_positive = np.count_nonzero(matrix.data > 0)
    if not n_positive or n_positive == matrix.nnz or n_positive > np.count_nonzero(diagonal > 0):
        return
    if np.abs(matrix.sum(axis=1)).max() <= 1e-6 * diagonal.max():
        raise ValueError(
            "weights must be an adjacency matrix; got a Laplacian, whose rows sum to 0. "
            "Pass the adjacency matrix that it was made of: np.diag(np.diag(L)) - L, or where L is sparse "
            "scipy.sparse.diags_array(L.diagonal()) - L."
        )
    raise ValueError(
        "weights must be an adjacency matrix; got only negative numbers off a positive diagonal, as a normalised "
        "Laplacian has. Pass the adjacency matrix that it was made of."
    )


def check_sums(values: Array, degrees: Array, nodes: Any = None) -> None:
    """Refuse weights whose sums overflow, or are too small to keep their digits; nodes are rows if nobody says which.

    Parameters
    ----------
    values : array
        Stored weights of some rows.
    degrees : array of shape (n_rows,)
        Their sums.
    nodes : array of shape (n_rows,), optional
        Nodes of the rows.
    """
    tiny = float(np.finfo(np.float64).tiny)
    if not np.isfinite(degrees.sum()):
        raise ValueError(
            f"weights must have a finite sum; got weights up to {values.max():.3g}. Divide them by the largest of them."
        )
    small = np.flatnonzero((degrees > 0) & (degrees < tiny))
    if small.size:
        node = small[0] if nodes is None else nodes[small[0]]
        raise ValueError(
            f"weights must sum to 0 or at least {tiny:.3g} at every node; got {degrees[small[0]]:.3g} at node "
            f"{node}. Multiply all weights, or set such small ones to 0."
        )


def _dense(weights: Any) -> Array:
    if hasattr(weights, "columns") or not (hasattr(weights, "__array__") or isinstance(weights, list | tuple)):
        raise TypeError(
            f"weights must be a NumPy array or a SciPy sparse matrix; got {type(weights).__name__}. "
            "Use as_graph(...) for a graph of networkx, PyGSP or libpysal or a pandas adjacency, which also keeps the "
            "names of nodes; Graph.from_edges for a table of edges."
        )
    try:
        array = as_real_array(weights, "weights", ("n_nodes", "n_nodes"), remedy=_ADJACENCY, missing=_ABSENT)
    except TypeError as error:
        raise TypeError(f"{error} {_ADJACENCY}") from error
    _check_square(array.shape)
    return array


def _check_square(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"weights must have shape (n_nodes, n_nodes); got {shape}. {_ADJACENCY}")
    if shape[0] == 0:
        raise ValueError(f"weights must have at least one node; got shape {shape}. {_ADJACENCY}")


def _from_sparse(weights: Any) -> Any:
    """Convert to canonical CSR in float64, in arrays of its own."""
    _check_square(weights.shape)
    without_mask(getattr(weights, "data", None), "weights", _ABSENT)
    if weights.dtype.kind not in "biuf":
        raise TypeError(
            f"weights must be real numbers; got dtype {weights.dtype}. Pass the modulus of complex weights."
        )
    if hasattr(weights, "check_format"):  # SciPy itself looks at no index when it converts
        try:
            weights.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(
                f"weights must be a well-formed sparse matrix; got {error}. Build it anew from its rows and columns."
            ) from error
    # duplicates are added up while small integers are converted: as wide ones, or they would overflow
    wide = weights.astype(np.float64) if weights.dtype.kind in "iu" else weights
    return _canonical(csr_array(wide, dtype=np.float64, copy=True))


def _canonical(matrix: Any) -> Any:
    """Sort in place, add up duplicates and drop stored zeros; indices become small."""
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return with_small_indices(matrix)


def with_small_indices(matrix: Any) -> Any:
    """Return the same matrix with 32-bit indices where they suffice, at half the memory."""
    if matrix.indices.dtype == matrix.indptr.dtype == np.int32 or max(matrix.nnz, *matrix.shape) > 2**31 - 1:
        return matrix
    indices, indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return csr_array((matrix.data, indices, indptr), shape=matrix.shape)


def _rounding(dtype: np.dtype[Any]) -> float:
    """Relative difference up to which two directions of an edge are the same edge, in numbers of a type."""
    if dtype.kind in "biu":
        return 0.0
    return {2: 1e-2, 4: 1e-5}.get(dtype.itemsize if dtype.kind == "f" else 8, 1e-8)


def _symmetric(matrix: Any, tolerance: float, remedy: str) -> Any:
    other = matrix.T.tocsr()
    same_edges = np.array_equal(matrix.indptr, other.indptr) and np.array_equal(matrix.indices, other.indices)
    if same_edges and np.array_equal(matrix.data, other.data):
        return matrix
    if same_edges and (abs(matrix.data - other.data) <= tolerance * np.maximum(matrix.data, other.data)).all():
        mean = 0.5 * matrix.data + 0.5 * other.data
        return csr_array((mean, matrix.indices, matrix.indptr), shape=matrix.shape)
    difference = abs(matrix - other).tocoo()
    worst = int(np.argmax(difference.data))
    row, column = int(difference.row[worst]), int(difference.col[worst])
    raise ValueError(
        f"weights must be symmetric; got weights[{row}, {column}] = {matrix[row, column]} and "
        f"weights[{column}, {row}] = {matrix[column, row]}, the largest of {difference.nnz // 2} "
        f"differences. {remedy}"
    )


def _first(matrix: Any, where: Any) -> tuple[int, int, float]:
    position = int(np.flatnonzero(where)[0])
    row = int(np.searchsorted(matrix.indptr, position, side="right")) - 1
    return row, int(matrix.indices[position]), float(matrix.data[position])


def finished(matrix: Any) -> Any:
    """Make a symmetric matrix that of a graph: canonical, no larger than needed, read-only."""
    matrix = _canonical(matrix)
    with np.errstate(over="ignore"):
        check_sums(matrix.data, matrix.sum(axis=1))
    # SciPy allocates for the worst case and keeps a view: up to twice the memory for the life of the graph
    if matrix.data.base is not None and matrix.data.base.size > matrix.data.size:
        matrix.data = matrix.data.copy()
        matrix.indices = matrix.indices.copy()
    return read_only(matrix)


def read_only(matrix: Any) -> Any:
    """Return the same sparse matrix, its arrays read-only."""
    matrix.has_canonical_format = True  # noted while true, for SciPy tests it by trying to sort in place
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    return matrix


def mirrored(low: Any, high: Any, values: Array, n_nodes: int) -> Any:
    """Weights from edges that are each listed once, in one direction."""
    upper = coo_array((values, (low, high)), shape=(n_nodes, n_nodes)).tocsr()
    return finished(upper + upper.T)
