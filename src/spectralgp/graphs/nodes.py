"""The door for what belongs to nodes: names, coordinates, and selections of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.checks import Array, as_real_array, without_mask
from spectralgp._basics.html import as_html

Names = tuple[Hashable, ...] | None
SHOWN = 5  # names of nodes in a notebook


def as_names(names: Any, n_nodes: int | None) -> tuple[Hashable, ...]:
    """Distinct hashable names, one a node; they count the nodes where nobody else does."""
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
    """Those of some labels that stand for a missing value: None, NaN, pandas.NA and NaT."""
    # NaN is the one label that differs from itself; the others go by their type, for pandas may not be there
    return [
        label
        for label in labels
        if label is None
        or type(label).__name__ in ("NAType", "NaTType")
        or (isinstance(label, float) and label != label)
    ]


def as_coordinates(coordinates: Any, n_nodes: int) -> Array:
    """Finite coordinates of shape (n_nodes, n_dimensions), read-only and shared with nobody."""
    array = as_real_array(
        coordinates,
        "coordinates",
        ("n_nodes", "n_dimensions"),
        sizes={"n_nodes": n_nodes},
        remedy="Rows are nodes, in the order of the rows of weights.",
    )
    array = array.copy()
    array.flags.writeable = False
    return array


def is_range(labels: Sequence[Hashable]) -> bool:
    """Whether labels only count the nodes 0, 1, 2, ..., and so name nothing."""
    return all(isinstance(label, int | np.integer) and label == place for place, label in enumerate(labels))


def positions_of(names: Any, index: Mapping[Hashable, int]) -> NDArray[np.int64]:
    """Positions of named nodes, in the order given; see `Graph.positions`."""
    if isinstance(names, str | bytes) or not hasattr(names, "__iter__"):
        raise TypeError(f"names must be a sequence of names; got {names!r}. Pass a list, such as [{names!r}].")
    wanted = names.tolist() if hasattr(names, "tolist") else list(names)
    try:
        unknown = [name for name in wanted if name not in index]
    except TypeError as error:
        raise TypeError(f"names must be hashable; got {error}. Use strings, numbers or tuples.") from error
    if unknown:
        raise ValueError(
            f"names must be names of nodes; got {unknown[0]!r} ({len(unknown)} unknown in all). "
            "The graph's own are in graph.names."
        )
    return np.fromiter(map(index.__getitem__, wanted), dtype=np.int64, count=len(wanted))


def chosen_nodes(nodes: Any, n_nodes: int, positions: Callable[[Any], NDArray[np.int64]]) -> NDArray[np.int64]:
    """Positions of the nodes chosen by position, mask or name, each once; see `Graph.subgraph`."""
    if isinstance(nodes, str) or not hasattr(nodes, "__iter__"):
        raise TypeError(f"nodes must be a sequence of nodes; got {nodes!r}. Pass a list, such as [{nodes!r}].")
    nodes = without_mask(nodes, "nodes")
    if isinstance(nodes, np.ndarray) and nodes.ndim != 1:
        raise ValueError(f"nodes must have one dimension; got shape {nodes.shape}. List the nodes in a row.")
    listed = nodes if isinstance(nodes, np.ndarray) and nodes.dtype.kind in "biu" else list(nodes)
    kinds = {listed.dtype.type} if isinstance(listed, np.ndarray) else set(map(type, listed))
    if kinds and all(issubclass(kind, bool | np.bool_) for kind in kinds):
        mask = np.asarray(listed, dtype=bool)
        if mask.shape != (n_nodes,):
            raise ValueError(
                f"nodes must have shape ({n_nodes},) when it is a mask; got {mask.shape}. "
                "Give one truth value for each node."
            )
        chosen = np.flatnonzero(mask)
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


def shown(
    n_nodes: int, n_edges: int, n_components: int, names: Sequence[Hashable] | None, coordinates: Array | None
) -> str:
    """What a notebook shows of a graph."""
    listed = "none" if names is None else ", ".join(map(str, names[:SHOWN])) + ", ..." * (n_nodes > SHOWN)
    places = "none" if coordinates is None else f"{coordinates.shape[1]} of each node"
    properties = {
        "nodes": n_nodes,
        "edges": n_edges,
        "components": n_components,
        "names": listed,
        "coordinates": places,
    }
    return as_html("Graph", properties)
