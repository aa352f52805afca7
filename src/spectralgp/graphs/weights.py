"""Validation of the parts of graphs: adjacency matrices, lists and tables of edges, names, coordinates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse, triu

from spectralgp._basics.arrays import frozen
from spectralgp._basics.checks import Array, Integers, as_integer, as_real_array, without_mask
from spectralgp._basics.tables import frame_names, series_index

Names = tuple[Hashable, ...] | None
NodeName = Callable[[int], object]  # of a position, for messages

_ADJACENCY = "Weights are an adjacency matrix; for a list of edges use Graph.from_edges, for points Graph.from_points."
_ABSENT = "Use 0 where there is no edge."
_COUNTED = "Nodes are counted from zero; if the integers are labels, give the labels as names."
_UNDIRECTED = "Graphs are undirected: pass (weights + weights.T) / 2, or the larger of the two directions."

SIMILARITIES = "A Laplacian needs similarities: pass absolute values, or drop the negative edges."


def as_names(names: Any, n_nodes: int | None) -> tuple[Hashable, ...]:
    """Distinct hashable names, one per node; any number of them if `n_nodes` is None."""
    listed = names.tolist() if hasattr(names, "tolist") else names
    if isinstance(listed, str | bytes | Set) or not hasattr(listed, "__iter__"):
        raise TypeError(
            f"names must be a sequence with one name for each node; got {names!r:.60}. Pass a list of names, in order."
        )
    labels = tuple(listed)
    if not labels and n_nodes is None:
        raise ValueError("names must name at least one node; got none. Pass one name for each node.")
    if n_nodes is not None and len(labels) != n_nodes:
        raise ValueError(
            f"names must have one name for each of {n_nodes} nodes; got {len(labels)}. "
            "Pass them in the order of the rows of weights."
        )
    try:
        distinct = set(labels)
    except TypeError as error:
        raise TypeError(f"names must be hashable; got {error}. Use strings, numbers or tuples.") from error
    missing = missing_labels(distinct)
    if missing:
        raise ValueError(f"names must not be missing; got {missing[0]!r}. Name every node.")
    if len(distinct) < len(labels):
        repeated = Counter(labels).most_common(1)[0][0]
        raise ValueError(f"names must be distinct; got {repeated!r} more than once. Number the repeated names.")
    return labels


def missing_labels(labels: Iterable[Hashable]) -> list[Hashable]:
    """Labels that stand for a missing value: None, NaN, pandas.NA and NaT."""
    # NaN is the one label that differs from itself; others are known by type, as pandas may not be installed
    kinds = ("NoneType", "NAType", "NaTType")
    return [one for one in labels if type(one).__name__ in kinds or (isinstance(one, float) and one != one)]


def as_coordinates(coordinates: Any, n_nodes: int) -> Array:
    """Finite coordinates of shape (n_nodes, n_dimensions), as a read-only copy."""
    axes, remedy = ("n_nodes", "n_dimensions"), "Rows are nodes, in the order of the rows of weights."
    return frozen(as_real_array(coordinates, "coordinates", axes, sizes={"n_nodes": n_nodes}, remedy=remedy).copy())


def is_range(labels: Sequence[Hashable]) -> bool:
    """Whether labels merely count the nodes 0, 1, 2, ..."""
    return all(isinstance(label, int | np.integer) and label == place for place, label in enumerate(labels))


def chosen_nodes(nodes: Any, n_nodes: int, positions: Callable[[Any], NDArray[np.int64]]) -> NDArray[np.int64]:
    """Positions of nodes selected by position, mask or name, each once; see `Graph.subgraph`."""
    if isinstance(nodes, str) or not hasattr(nodes, "__iter__"):
        raise TypeError(f"nodes must be a sequence of nodes; got {nodes!r}. Pass a list, such as [{nodes!r}].")
    nodes = without_mask(nodes, "nodes")
    if isinstance(nodes, np.ndarray) and nodes.ndim != 1:
        raise ValueError(f"nodes must have one dimension; got shape {nodes.shape}. List the nodes in a row.")
    listed = as_labels(nodes)
    kinds = set(map(type, listed))
    if kinds and kinds <= {bool, np.bool_}:
        mask = np.asarray(listed, dtype=bool)
        if mask.shape != (n_nodes,):
            raise ValueError(
                f"nodes must have shape ({n_nodes},) when it is a mask; got {mask.shape}. "
                "Give one truth value for each node."
            )
        index = series_index(nodes) or ()
        chosen = np.flatnonzero(mask)
        if not is_range(index):  # a mask with names
            chosen = np.sort(positions([name for name, is_chosen in zip(index, mask, strict=True) if is_chosen]))
    elif all(issubclass(kind, int | np.integer) for kind in kinds):
        given = np.asarray(listed)
        outside = given[(given < 0) | (given >= n_nodes)]
        if outside.size:
            raise ValueError(
                f"nodes must be positions from 0 to {n_nodes - 1}; got {outside[0]}. "
                "For names that are integers pass graph.positions(names)."
            )
        chosen = given.astype(np.int64)
    else:
        chosen = positions(listed)
    if not chosen.size or np.unique(chosen).size < chosen.size:
        got = "no node" if not chosen.size else "a node more than once"
        raise ValueError(f"nodes must be at least one node, each once; got {got}. Select every node once.")
    return chosen


def as_weights(weights: Any, *, remedy: str = _UNDIRECTED) -> Any:
    """Validated adjacency matrix, as a canonical read-only copy; `remedy` is for directed graphs."""
    given = weights if issparse(weights) else _dense(weights)
    if len(given.shape) != 2 or given.shape[0] != given.shape[1]:
        raise ValueError(f"weights must have shape (n_nodes, n_nodes); got {given.shape}. {_ADJACENCY}")
    if given.shape[0] == 0:
        raise ValueError(f"weights must have at least one node; got shape {given.shape}. {_ADJACENCY}")
    matrix = _from_sparse(given) if issparse(weights) else csr_array(given)
    if not np.isfinite(matrix.data).all():
        row, column, value = _first(matrix, ~np.isfinite(matrix.data))
        raise ValueError(f"weights must be finite; got weights[{row}, {column}] = {value}. {_ABSENT}")
    # two pairs (u, v) or three triples (u, v, weight) are square matrices too
    may_be_edges = not issparse(weights) and matrix.shape[0] in (2, 3) and not (matrix.toarray()[:, :2] % 1).any()
    hint = " If its rows are edges, use Graph.from_edges." if may_be_edges else ""
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
    dtype = np.asarray(weights).dtype if given is not weights else given.dtype
    # up to which two directions of an edge are one, relative to it
    rounding = 0.0 if dtype.kind in "biu" else {2: 1e-2, 4: 1e-5}.get(dtype.itemsize, 1e-8)
    return finished(_symmetric(matrix, rounding, remedy + hint))


def _check_laplacian(matrix: Any) -> None:
    """Refuse matrices with only negative numbers off a positive diagonal."""
    diagonal, n_positive = matrix.diagonal(), np.count_nonzero(matrix.data > 0)
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
    """Refuse weights whose sums at nodes overflow or are subnormal."""
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
        return as_real_array(weights, "weights", ("n_nodes", "n_nodes"), remedy=_ADJACENCY, missing=_ABSENT)
    except TypeError as error:
        raise TypeError(f"{error} {_ADJACENCY}") from error


def _from_sparse(weights: Any) -> Any:
    """Copy to canonical CSR in float64."""
    without_mask(getattr(weights, "data", None), "weights", _ABSENT)
    if weights.dtype.kind not in "biuf":
        raise TypeError(
            f"weights must be real numbers; got dtype {weights.dtype}. Pass the modulus of complex weights."
        )
    if hasattr(weights, "check_format"):  # SciPy checks no index on conversion
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
    """Return the matrix with 32-bit indices where they suffice, at half the memory."""
    wanted = small_integers(max(matrix.nnz, *matrix.shape))
    if matrix.indices.dtype == matrix.indptr.dtype == wanted:
        return matrix
    return csr_array((matrix.data, matrix.indices.astype(wanted), matrix.indptr.astype(wanted)), shape=matrix.shape)


def small_integers(largest: int) -> type[np.signedinteger[Any]]:
    """Type of 32 bits where it holds the numbers up to the largest."""
    return np.int32 if largest < 2**31 else np.int64


def _symmetric(matrix: Any, tolerance: float, remedy: str) -> Any:
    other = matrix.T.tocsr()
    same_edges = np.array_equal(matrix.indptr, other.indptr) and np.array_equal(matrix.indices, other.indices)
    if same_edges and np.array_equal(matrix.data, other.data):
        return matrix
    if same_edges and np.allclose(matrix.data, other.data, rtol=tolerance, atol=0.0):
        mean = 0.5 * matrix.data + 0.5 * other.data
        return csr_array((mean, matrix.indices, matrix.indptr), shape=matrix.shape)
    difference = abs(matrix - other).tocoo()
    row, column = (int(ends[np.argmax(difference.data)]) for ends in (difference.row, difference.col))
    raise ValueError(
        f"weights must be symmetric; got weights[{row}, {column}] = {matrix[row, column]} and weights[{column}, {row}] "
        f"= {matrix[column, row]}, the largest of {difference.nnz // 2} differences. {remedy}"
    )


def _first(matrix: Any, where: Any) -> tuple[int, int, float]:
    position = int(np.flatnonzero(where)[0])
    row = int(np.searchsorted(matrix.indptr, position, side="right")) - 1
    return row, int(matrix.indices[position]), float(matrix.data[position])


def finished(matrix: Any) -> Any:
    """Finish a symmetric matrix as the weights of a graph: canonical, compact, read-only."""
    matrix = _canonical(matrix)
    with np.errstate(over="ignore"):
        check_sums(matrix.data, matrix.sum(axis=1))
    # SciPy allocates for the worst case and keeps a view: up to twice the memory for the life of the graph
    if matrix.data.base is not None and matrix.data.base.size > matrix.data.size:
        matrix.data, matrix.indices = matrix.data.copy(), matrix.indices.copy()
    return read_only(matrix)


def read_only(matrix: Any) -> Any:
    """Make the arrays of a sparse matrix read-only, and return it."""
    matrix.has_canonical_format = True  # set now, as SciPy tests it by sorting in place
    for part in (matrix.data, matrix.indices, matrix.indptr):
        frozen(part)
    return matrix


def mirrored(low: Any, high: Any, values: Array, n_nodes: int) -> Any:
    """Weights from edges that are each listed once, in one direction."""
    upper = coo_array((values, (low, high)), shape=(n_nodes, n_nodes)).tocsr()
    return finished(upper + upper.T)


def heaviest_edges(weights: Any, most: int) -> tuple[Integers, Integers, Array]:
    """Ends and weights of edges, each once, at most `most` of them, the heaviest first, for pictures."""
    edges = triu(weights, format="coo")
    # multiples of the golden ratio are spread evenly: of equal weights not just the first nodes' edges are kept
    spread = np.arange(edges.nnz) * 0.618033988749895 % 1
    order = np.lexsort((spread, -edges.data))[:most]
    return edges.row[order], edges.col[order], edges.data[order]


def weights_from_edges(edges: Any, weights: Any, names: Any, n_nodes: int | None) -> tuple[Any, Names]:
    """Return the weights and names of `Graph.from_edges`."""
    sources, targets, column = edge_columns(edges)
    if column is not None and weights is not None:
        raise ValueError(
            "weights must be None when the edges carry weights themselves; got both. Pass them in one place only."
        )
    counted = [as_integers(labels) for labels in (sources, targets)]
    if all(integers is not None for integers in counted):  # so that lists are converted once
        sources, targets = counted
    nodes = nodes_of_edges([(sources, targets, column)], names, n_nodes)
    starts, ends = map(nodes.positions, (sources, targets))
    values = edge_values(column if weights is None else weights, len(starts))
    integers = small_integers(nodes.n_nodes)
    low, high = (np.asarray(edge(starts, ends), integers) for edge in (np.minimum, np.maximum))
    refuse_loops(low, high, nodes.name)
    return mirrored(*unique_edges(low, high, values, nodes.name, nodes.name), nodes.n_nodes), nodes.names


def edge_values(given: Any, n_edges: int, name: str = "weights") -> Array:
    """Finite weights of edges; 1 where none are given."""
    if given is None:
        return np.ones(n_edges)
    remedy = "Pass one weight for each edge."
    return as_real_array(given, name, ("n_edges",), sizes={"n_edges": n_edges}, remedy=remedy)


def edge_columns(edges: Any) -> tuple[Any, Any, Any]:
    """Split edges into sources, targets and weights (None if they carry none)."""
    if isinstance(edges, np.ndarray) and edges.dtype.names:
        edges = {name: edges[name] for name in edges.dtype.names}
    names = frame_names(edges)
    if isinstance(edges, dict) or names is not None:
        present = list(edges if names is None else names)
        if "source" not in present or "target" not in present:
            raise ValueError(
                f"edges must have columns 'source', 'target' and optionally 'weight'; got {present}. "
                "Rename the columns, or pass a list of pairs."
            )
        columns = [_column(edges[key], key) for key in ("source", "target", "weight") if key in present]
    elif isinstance(edges, np.ndarray) and edges.ndim == 2 and edges.shape[1] in (2, 3):
        if edges.shape == (3, 3) and np.array_equal(edges, edges.T) and not np.any(edges.diagonal()):
            _refuse("an adjacency matrix")  # no three edges read like this
        columns = list(edges.T)
    else:
        columns = _columns_of_tuples(edges)
    if len(set(map(len, columns))) > 1:
        raise ValueError(
            f"edges must have columns of one length; got lengths {[len(part) for part in columns]}. "
            "Every edge needs a source and a target."
        )
    sources, targets = (without_mask(column, "edges", "Drop such edges.") for column in columns[:2])
    return sources, targets, columns[2] if len(columns) == 3 else None


def _column(values: Any, name: str) -> Any:
    """One column of a table: an array, or a list, in which tuples stay labels."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise ValueError(f"column {name!r} of edges must be a sequence; got {values!r}. Give one entry for each edge.")
    column = np.asanyarray(values) if hasattr(values, "dtype") or hasattr(values, "dtypes") else list(values)
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise ValueError(
            f"column {name!r} of edges must have one dimension; got shape {column.shape}. Give one entry for each edge."
        )
    return column


def _columns_of_tuples(edges: Any) -> list[Any]:
    listed = hasattr(edges, "__iter__") and not isinstance(edges, str) and not issparse(edges)
    listed = listed and getattr(edges, "ndim", 1) > 0
    rows = [tuple(row) if isinstance(row, set | frozenset) else row for row in edges] if listed else []
    sized = all(hasattr(row, "__len__") and not isinstance(row, str | dict) for row in rows)
    lengths = set(map(len, rows)) if sized else set()
    if not listed or (rows and lengths not in ({2}, {3})):
        _refuse(f"shape {edges.shape}" if hasattr(edges, "shape") else f"{edges!r:.60}")
    return [list(map(itemgetter(axis), rows)) for axis in range(next(iter(lengths), 2))]


def _refuse(given: str) -> NoReturn:
    raise ValueError(
        "edges must be pairs (u, v), triples (u, v, weight), or a table with columns 'source', 'target' and optionally "
        f"'weight'; got {given}. For an adjacency matrix or another library's graph use as_graph; if sources and "
        "targets are rows, pass edges.T."
    )


@dataclass(frozen=True, eq=False)
class EdgeNodes:
    """Nodes of edges: `index` maps labels to positions; without it integers are positions."""

    n_nodes: int
    names: Names = None
    index: dict[Hashable, int] | None = None

    def positions(self, labels: Any) -> Integers:
        """Positions of some ends of edges."""
        if self.index is not None:
            listed = as_labels(labels)
            try:
                return np.fromiter(map(self.index.__getitem__, listed), dtype=np.int64, count=len(listed))
            except KeyError as error:
                _refuse_missing(error.args)
                raise ValueError(
                    f"edges must join nodes listed in names; got {error.args[0]!r}. Add it to names, or drop its edges."
                ) from None
            except TypeError as error:
                raise _unhashable(error) from error
        positions = as_integers(labels)
        if positions is None:
            raise ValueError(
                f"edges must join nodes from 0 to {self.n_nodes - 1}, as the first of them do; got {labels[0]!r}. "
                "Pass names."
            )
        outside = positions[(positions < 0) | (positions >= self.n_nodes)]
        if outside.size:
            raise ValueError(f"edges must join nodes from 0 to {self.n_nodes - 1}; got {outside[0]}. {_COUNTED}")
        return positions

    def name(self, node: int) -> object:
        """Name of a node, for messages."""
        return node if self.names is None else self.names[node]


def nodes_of_edges(blocks: Iterable[tuple[Any, Any, Any]], names: Any, n_nodes: int | None) -> EdgeNodes:
    """Nodes of edges in blocks: named, counted, or listed from all edges, which may be read several times."""
    if n_nodes is not None:
        n_nodes = as_integer(n_nodes, "n_nodes", 1)
    if names is not None:
        names = as_names(names, n_nodes)
    first = next(((sources, targets) for sources, targets, _ in blocks if len(sources)), ())
    are_counted = all(as_integers(labels) is not None for labels in first)
    if names is None and are_counted:
        return EdgeNodes(n_nodes or _number_of_nodes(blocks))
    if names is None:
        names = _labels_of(blocks)
        if n_nodes is not None and n_nodes != len(names):
            raise ValueError(
                f"n_nodes must equal the number of labels in edges, {len(names)}; got {n_nodes}. "
                "Name nodes without edges too, by names=[...]."
            )
    are_labels = not are_counted or all(isinstance(name, int | np.integer) for name in names)
    return EdgeNodes(len(names), names, {name: place for place, name in enumerate(names)} if are_labels else None)


def _labels_of(blocks: Iterable[tuple[Any, Any, Any]]) -> tuple[Hashable, ...]:
    """Labels in the order of their first appearance."""
    found: dict[Hashable, None] = {}
    for sources, targets, _ in blocks:
        try:
            found |= dict.fromkeys(chain.from_iterable(zip(as_labels(sources), as_labels(targets), strict=True)))
        except TypeError as error:
            raise _unhashable(error) from error
    _refuse_missing(found)
    return tuple(found)


def _refuse_missing(labels: Iterable[Hashable]) -> None:
    missing = missing_labels(labels)
    if missing:
        raise ValueError(f"edges must name both ends; got {missing[0]!r}. Drop the rows with missing ends.")


def _unhashable(error: TypeError) -> TypeError:
    return TypeError(f"edges must join hashable nodes; got {error}. Use strings, numbers or tuples.")


def _number_of_nodes(blocks: Iterable[tuple[Any, Any, Any]]) -> int:
    """Count nodes; every one from zero on must have an edge."""
    seen, n_edges = np.zeros(0, dtype=bool), 0
    for sources, targets, _ in blocks:
        n_edges += len(sources)
        for nodes in map(as_integers, (sources, targets)):
            if nodes is None or not len(nodes):
                continue
            smallest, largest = int(nodes.min()), int(nodes.max())
            if smallest < 0:
                raise ValueError(f"edges must join nodes from 0; got {smallest}. {_COUNTED}")
            if largest >= 2 * n_edges + 10**6 and largest > 8 * len(seen):  # labels would exhaust the memory
                raise _skipped(largest, f"{n_edges} edges")
            seen = np.pad(seen, (0, max(0, largest + 1 - len(seen))))
            seen[nodes] = True
    if not len(seen):
        raise ValueError("n_nodes must be given when there are no edges and no names; got None. Pass n_nodes or names.")
    if not seen.all():
        raise _skipped(len(seen) - 1, f"no edge at node {int(np.argmin(seen))}")
    return len(seen)


def _skipped(largest: int, given: str) -> ValueError:
    return ValueError(
        f"edges must mention every node from 0 to {largest} unless n_nodes or names is given; got {given}. Count nodes "
        f"from zero; pass n_nodes={largest + 1} if nodes without edges are meant; or, if the integers are labels, give "
        "the labels as names."
    )


def as_integers(column: Any) -> Integers | None:
    """Endpoints as an integer array; None if they are labels."""
    if not len(column):
        return np.empty(0, dtype=np.int64)
    array = column
    if not isinstance(column, np.ndarray) or column.dtype.kind == "O":
        kinds = set(map(type, column))
        if bool in kinds or not all(issubclass(kind, int | float | np.integer | np.floating) for kind in kinds):
            return None
        array = np.array(list(column))
    if array.dtype.kind not in "iuf":
        return None
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
        if not (np.abs(array) <= 2**53).all() or (array != np.trunc(array)).any():
            raise ValueError(
                "edges must join whole-numbered nodes or named ones; got numbers with a fraction, beyond 2**53, "
                "NaN or infinity. Drop such rows, or name the nodes by strings."
            )
        array = array.astype(np.int64)
    return np.asarray(array)


def as_labels(column: Any) -> list[Hashable]:
    """Endpoints as labels; NumPy itself would list dates of some units as integers."""
    return column.tolist() if isinstance(column, np.ndarray) and column.dtype.kind not in "mM" else list(column)


def unique_edges(
    starts: Integers, ends: Integers, values: Array, start_name: NodeName, end_name: NodeName
) -> tuple[Integers, Integers, Array]:
    """Edges sorted by their ends, each once; conflicting or negative weights are refused by name."""
    order = np.lexsort((ends, starts))
    starts, ends, values = starts[order], ends[order], values[order]
    repeated = (starts[1:] == starts[:-1]) & (ends[1:] == ends[:-1])

    def between(at: int) -> str:
        return f"between {start_name(int(starts[at]))!r} and {end_name(int(ends[at]))!r}"

    conflicting = np.flatnonzero(repeated & (values[1:] != values[:-1]))
    if conflicting.size:
        at = int(conflicting[0])
        raise ValueError(
            f"edges must give one weight to each pair of nodes; got {values[at]} and {values[at + 1]} {between(at)}. "
            "Graphs are undirected: add or average the weights of repeated edges first."
        )
    if values.size and values.min() < 0:
        at = int(np.argmin(values))
        raise ValueError(f"weights must be non-negative; got {values[at]} {between(at)}. {SIMILARITIES}")
    if not repeated.any():
        return starts, ends, values
    keep = np.concatenate(([True], ~repeated))
    return starts[keep], ends[keep], values[keep]


def refuse_loops(starts: Integers, ends: Integers, named: NodeName) -> None:
    """Refuse edges from a node to itself."""
    loops = np.flatnonzero(starts == ends)
    if loops.size:
        node = named(int(starts[loops[0]]))
        raise ValueError(f"edges must join two different nodes; got a self-loop at {node!r}. Remove the self-loops.")
