"""Conversion of other libraries' graphs, by the module of their class, without importing the libraries."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from spectralgp.graphs.core import Graph, GraphBase
from spectralgp.graphs.weights import as_weights


def as_graph(graph: Any) -> Graph:
    """Convert adjacency matrices and other libraries' graphs to a `Graph`.

    Parameters
    ----------
    graph : Graph, array, sparse matrix, or a graph of another library
        - a `Graph`, returned unchanged;
        - a NumPy array or SciPy sparse matrix, the adjacency;
        - a pandas DataFrame, the adjacency, with the same node names in index and columns;
        - a networkx ``Graph``: nodes become names, the edge attribute ``weight`` (1 where missing) the weights;
        - a PyGSP graph, with its coordinates;
        - a libpysal ``W`` or ``libpysal.graph.Graph``: ids become names.

        Labels are names even if they merely count the nodes, so that a DataFrame of signals is matched by them.

    Raises
    ------
    TypeError, ValueError
        If it is none of these, directed (also by row-standardised weights), or no valid `Graph`.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import as_graph
    >>> as_graph(np.array([[0, 1], [1, 0]]))
    Graph(2 nodes, 1 edge)
    """
    if isinstance(graph, GraphBase):
        return graph.require_whole("here")
    if isinstance(graph, list | tuple | dict) and any(  # graphs or matrices, rather than the rows of one matrix
        len(one.shape) == 2 if hasattr(one, "shape") else isinstance(one, GraphBase) or _reader_of(one) is not None
        for one in (graph.values() if isinstance(graph, dict) else graph)
    ):
        raise TypeError(
            f"graph must be one graph for all signals; got {len(graph)} of them. A graph that varies in time, or one "
            "graph per signal, is not modelled: pass one, such as their mean, or fit a model for each."
        )
    if getattr(graph, "ndim", 2) == 3:
        raise ValueError(
            f"graph must be one adjacency matrix, with two axes; got three, of lengths {tuple(graph.shape)}. A graph "
            "that varies in time is not modelled: pass one, such as the mean over the first axis."
        )
    return (_reader_of(graph) or Graph)(graph)


def _reader_of(graph: Any) -> Callable[[Any], Graph] | None:
    """Reader of graphs of an object's library; None if there is none."""
    libraries = (base.__module__.partition(".")[0] for base in type(graph).__mro__)
    return next((_READERS[library] for library in libraries if library in _READERS), None)


def _from_networkx(graph: Any) -> Graph:
    import networkx

    if not isinstance(graph, networkx.Graph):
        raise TypeError(f"graph must be a networkx.Graph; got {type(graph).__name__}. Pass the graph itself.")
    if graph.is_directed():
        raise ValueError(
            f"graph must be undirected; got a networkx {type(graph).__name__}. Pass graph.to_undirected()."
        )
    if graph.is_multigraph() and graph.number_of_edges() > networkx.Graph(graph).number_of_edges():
        raise ValueError(
            "graph must have one edge between two nodes; got a networkx MultiGraph with parallel edges. "
            "Add or average their weights first; networkx.Graph(graph) keeps the last of them."
        )
    nodes = list(graph)
    if not nodes:
        raise ValueError("graph must have at least one node; got an empty networkx graph. Add nodes to it.")
    for source, target, weight in graph.edges(data="weight", default=1):
        if not isinstance(weight, Real | np.bool_):
            raise ValueError(
                f"graph must have numbers as its edge attribute 'weight'; got {weight!r} between {source!r} and "
                f"{target!r}. Convert or remove the attribute."
            )
    weights = networkx.to_scipy_sparse_array(graph, nodelist=nodes, weight="weight", dtype=np.float64)
    return Graph(weights, nodes)


def _from_pygsp(graph: Any) -> Graph:
    if not hasattr(graph, "W"):
        raise TypeError(f"graph must be a PyGSP graph; got pygsp {type(graph).__name__}. Pass the graph itself.")
    coordinates: Any = getattr(graph, "coords", None)
    if np.ndim(coordinates) == 1:
        coordinates = np.asarray(coordinates)[:, np.newaxis]
    return Graph(graph.W, coordinates=coordinates)


_PYSAL_REMEDY = (
    "Row-standardised or otherwise transformed weights are not symmetric: use the binary transform "
    '(w.transform = "b", or graph.transform("b")); for nearest neighbours also make them mutual '
    "(w.symmetrize(), or a union with the transpose)."
)


def _from_libpysal(graph: Any) -> Graph:
    if hasattr(graph, "unique_ids"):  # libpysal.graph.Graph; its isolated nodes are self-loops of weight zero
        ids, adjacency = graph.unique_ids, graph.adjacency
        ends = [ids.get_indexer(adjacency.index.get_level_values(level)) for level in (0, 1)]
        weights = coo_array((adjacency.to_numpy(dtype=np.float64), tuple(ends)), shape=(len(ids), len(ids)))
        return Graph._built(as_weights(weights, remedy=_PYSAL_REMEDY), ids.tolist(), None)
    if not hasattr(graph, "sparse"):
        raise TypeError(
            f"graph must be a libpysal W or libpysal.graph.Graph; got {type(graph).__name__}. Pass the weights."
        )
    return Graph._built(as_weights(graph.sparse, remedy=_PYSAL_REMEDY), getattr(graph, "id_order", None), None)


def _from_pandas(frame: Any) -> Graph:
    index, columns = frame.index.tolist(), getattr(frame, "columns", frame.index).tolist()
    if frame.ndim != 2 or index != columns:
        hint = "Reorder it by frame.loc[frame.columns]" if set(index) == set(columns) else "Label both by the nodes"
        raise ValueError(
            f"graph must have the same names in its index and columns, in the same order; got a pandas "
            f"{type(frame).__name__} of shape {frame.shape} whose labels differ. "
            f"{hint}, or use Graph.from_edges for a table of edges."
        )
    return Graph(frame.to_numpy(), index)


_READERS: dict[str, Callable[[Any], Graph]] = {
    "networkx": _from_networkx,
    "pygsp": _from_pygsp,
    "libpysal": _from_libpysal,
    "pandas": _from_pandas,
}
