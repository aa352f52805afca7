"""Adjacency matrices from lists and tables of edges; every step is a whole-array operation."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import chain
from operator import itemgetter
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import issparse, triu

from spectralgp._basics.checks import Array, Integers, as_integer, as_real_array, without_mask
from spectralgp._basics.tables import frame_names
from spectralgp.graphs.nodes import Names, as_names, missing_labels
from spectralgp.graphs.weights import SIMILARITIES, mirrored


def heaviest_edges(weights: Any, most: int) -> tuple[Integers, Integers, Array]:
    """Ends and weights of edges, each once, the heaviest first and no more than so many, for pictures.

    Examples
    --------
    >>> from spectralgp import Graph
    >>> starts, ends, weights = heaviest_edges(Graph([[0, 2, 0], [2, 0, 3], [0, 3, 0]]).weights, most=1)
    >>> starts.tolist(), ends.tolist(), weights.tolist()
    ([1], [2], [3.0])
    """
    edges = triu(weights, format="coo")
    # multiples of the golden ratio are spread evenly: of equal weights not just the first nodes' edges are kept
    spread = np.arange(edges.nnz) * 0.618033988749895 % 1
    order = np.lexsort((spread, -edges.data))[:most]
    return edges.row[order], edges.col[order], edges.data[order]


def weights_from_edges(edges: Any, weights: Any, names: Any, n_nodes: int | None) -> tuple[Any, Names]:
    """Weights and names for `Graph.from_edges`, whose docstring says what is accepted."""
    sources, targets, column = edge_columns(edges)
    if column is not None and weights is not None:
        raise ValueError(
            "weights must be None when the edges carry weights themselves; got both. Pass them in one place only."
        )
    if names is not None:
        names = as_names(names, None if n_nodes is None else as_integer(n_nodes, "n_nodes", 1))
    starts, ends, n_nodes, names = _positions(sources, targets, names, n_nodes)
    values = edge_values(column if weights is None else weights, len(starts))
    return _from_pairs(starts, ends, values, n_nodes, names), names


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
    """One column of a table: an array where it is one, else a list, so that tuples in it stay labels."""
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
    return [list(map(itemgetter(axis), rows)) for axis in range(max(lengths, default=2))]


def _refuse(given: str) -> NoReturn:
    raise ValueError(
        "edges must be pairs (u, v), triples (u, v, weight), or a table with columns 'source', 'target' and optionally "
        f"'weight'; got {given}. For an adjacency matrix or another library's graph use as_graph; if sources and "
        "targets are rows, pass edges.T."
    )


def _positions(sources: Any, targets: Any, names: Names, n_nodes: int | None) -> tuple[Integers, Integers, int, Names]:
    """Turn endpoints into node positions: integers are positions already, anything else is a label."""
    starts, ends = as_integers(sources), as_integers(targets)
    labelled = names is not None and all(isinstance(name, int | np.integer) for name in names)
    if starts is None or ends is None or (labelled and len(starts)):
        return _look_up(as_labels(sources), as_labels(targets), names, n_nodes)
    largest = max(starts.max(), ends.max()) if len(starts) else -1
    smallest = min(starts.min(), ends.min()) if len(starts) else 0
    if names is not None:
        n_nodes = len(names)
    elif n_nodes is not None:
        n_nodes = as_integer(n_nodes, "n_nodes", 1)
    if smallest < 0 or (n_nodes is not None and largest >= n_nodes):
        raise ValueError(
            f"edges must join nodes from 0{'' if n_nodes is None else f' to {n_nodes - 1}'}; "
            f"got {smallest if smallest < 0 else largest}. "
            "Nodes are counted from zero; if the integers are labels, give the labels as names."
        )
    if n_nodes is None:
        n_nodes = count_nodes(starts, ends, int(largest))
    return starts, ends, n_nodes, names


def count_nodes(starts: Integers, ends: Integers, largest: int) -> int:
    """Count nodes that nobody counted: safe only when every node from zero on has an edge."""
    if largest < 0:
        raise ValueError("n_nodes must be given when there are no edges and no names; got None. Pass n_nodes or names.")
    few = largest < 2 * len(starts) + 10**6  # labels taken for positions could ask for any amount of memory
    seen = np.zeros(largest + 1 if few else 1, dtype=bool)
    if few:
        seen[starts] = seen[ends] = True
    if not seen.all():
        missing = f"no edge at node {int(np.argmin(seen))}" if few else f"{len(starts)} edges"
        raise ValueError(
            f"edges must mention every node from 0 to {largest} unless n_nodes or names is given; "
            f"got {missing}. Count nodes from zero; pass n_nodes={largest + 1} if nodes without edges are "
            "meant; or, if the integers are labels, give the labels as names."
        )
    return largest + 1


def as_integers(column: Any) -> Integers | None:
    """Endpoints as an integer array, or None if they are labels."""
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
        if not (np.abs(array) <= 2**53).all() or (array != np.floor(array)).any():
            raise ValueError(
                "edges must join whole-numbered nodes or named ones; got numbers with a fraction, beyond 2**53, "
                "NaN or infinity. Drop such rows, or name the nodes by strings."
            )
        array = array.astype(np.int64)
    integers: Integers = array
    return integers


def as_labels(column: Any) -> list[Hashable]:
    """Endpoints as labels."""
    # NumPy would list dates of some units as integers
    listed = not isinstance(column, np.ndarray) or column.dtype.kind in "mM"
    return list(column) if listed else column.tolist()


def _look_up(
    sources: list[Hashable], targets: list[Hashable], names: Names, n_nodes: int | None
) -> tuple[Integers, Integers, int, Names]:
    try:
        found = dict.fromkeys(chain.from_iterable(zip(sources, targets, strict=True)))
    except TypeError as error:
        raise TypeError(f"edges must join hashable nodes; got {error}. Use strings, numbers or tuples.") from error
    missing = missing_labels(found)
    if missing:
        raise ValueError(f"edges must name both ends; got {missing[0]!r}. Drop the rows with missing ends.")
    if names is None:
        names = tuple(found)
        if n_nodes is not None and n_nodes != len(names):
            raise ValueError(
                f"n_nodes must equal the number of labels in edges, {len(names)}; got {n_nodes}. "
                "Name nodes without edges too, by names=[...]."
            )
    index = {name: position for position, name in enumerate(names)}
    unknown = next((label for label in found if label not in index), None)
    if unknown is not None:
        raise ValueError(f"edges must join nodes listed in names; got {unknown!r}. Add it to names, or drop its edges.")
    starts, ends = (
        np.fromiter(map(index.__getitem__, labels), dtype=np.int64, count=len(labels)) for labels in (sources, targets)
    )
    return starts, ends, len(names), names


def _from_pairs(starts: Integers, ends: Integers, values: Array, n_nodes: int, names: Names) -> Any:
    """Symmetric matrix from edges given once or several times, in any direction."""
    dtype = np.int32 if n_nodes < 2**31 else np.int64
    low: Integers = np.minimum(starts, ends).astype(dtype, copy=False)
    high: Integers = np.maximum(starts, ends).astype(dtype, copy=False)
    named = (lambda node: node) if names is None else names.__getitem__
    refuse_loops(low, high, named)
    return mirrored(*unique_edges(low, high, values, named, named), n_nodes)


def unique_edges(
    starts: Integers,
    ends: Integers,
    values: Array,
    start_name: Callable[[int], object],
    end_name: Callable[[int], object],
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
    if repeated.any():
        keep = np.concatenate(([True], ~repeated))
        starts, ends, values = starts[keep], ends[keep], values[keep]
    return starts, ends, values


def refuse_loops(starts: Integers, ends: Integers, named: Callable[[int], object]) -> None:
    """Refuse edges from a node to itself."""
    loops = starts == ends
    if loops.any():
        node = named(int(starts[np.argmax(loops)]))
        raise ValueError(f"edges must join two different nodes; got a self-loop at {node!r}. Remove the self-loops.")
