"""The graph: weights between nodes, names, coordinates; builders and Laplacians."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components

from spectralgp._basics.arrays import frozen
from spectralgp._basics.checks import Array, as_integer, as_option, as_real_array
from spectralgp._basics.tables import as_html, as_table, check_same_order, frame_names
from spectralgp.graphs.correlations import weights_from_signals
from spectralgp.graphs.operators import Operator, make_operator
from spectralgp.graphs.operators.base import lanczos, largest_ritz_value
from spectralgp.graphs.points import PointJoin, as_places, weights_from_points
from spectralgp.graphs.weights import (
    as_coordinates,
    as_names,
    as_weights,
    chosen_nodes,
    finished,
    is_range,
    read_only,
    weights_from_edges,
    with_small_indices,
)

LaplacianKind = Literal["combinatorial", "normalized", "balanced"]
LAPLACIANS: tuple[LaplacianKind, ...] = ("combinatorial", "normalized", "balanced")

NAMES_SHOWN = 5  # in a notebook
MAX_DENSE_NODES = 200  # for which a dense eigenvalue routine is faster than Lanczos iterations
EIGENVALUE_RESIDUAL = 1e-9  # of a converged eigenpair, if the largest degree is one


class GraphBase(ABC):
    """Immutable undirected weighted graph, which is its own copy: in memory, or a folder of partitions."""

    is_whole: ClassVar[bool] = True  # whether all of it is in memory, so that it can be decomposed
    _cache: dict[Hashable, Any]  # expensive results, which are not pickled

    @property
    @abstractmethod
    def n_nodes(self) -> int:
        """Number of nodes."""

    @property
    @abstractmethod
    def n_edges(self) -> int:
        """Number of edges, each counted once."""

    @property
    @abstractmethod
    def names(self) -> Sequence[Hashable] | None:
        """Names of the nodes; None without names."""

    @property
    @abstractmethod
    def coordinates(self) -> Any:
        """Coordinates of the nodes, shape (n_nodes, n_dimensions); None if unknown."""

    def require_whole(self, purpose: str) -> Graph:
        """Return the graph; raise TypeError, with the purpose, if it is in partitions."""
        if not isinstance(self, Graph):
            raise TypeError(
                f"graph must be in memory {purpose}; got {type(self).__name__}. Use a Graph, where it fits into memory."
            )
        return self

    def as_native(self, signals: Any) -> Any:
        """Return signals in the form of the graph's operators; raise ValueError for missing values it cannot handle."""
        return signals

    @abstractmethod
    def operator(
        self, kind: LaplacianKind = "combinatorial", prototype: Any = None, device: str | None = None
    ) -> Operator:
        """Laplacian as an operator on blocks of signals such as `prototype`."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    __sklearn_clone__ = __copy__  # so that cross-validation computes its spectrum once


@dataclass(frozen=True, eq=False, repr=False)
class Graph(GraphBase):
    """Immutable undirected weighted graph.

    A copy, also by `sklearn.base.clone`, is the graph itself; graphs are equal only if they are the same object.
    Expensive results, such as the eigendecomposition, are cached on it and not pickled.

    Parameters
    ----------
    weights : array-like or SciPy sparse matrix of shape (n_nodes, n_nodes)
        Adjacency matrix: symmetric, non-negative, with a zero diagonal. Copied into a read-only ``csr_array`` of
        float64. Directions that differ by rounding are averaged: by no more than 1e-8 of the larger weight in
        float64, 1e-5 in float32 and 1e-2 in float16. Any larger difference, and any between integers, is an error.
    names : sequence of hashables of length n_nodes, optional
        Distinct node names, in the order of the rows of `weights`; tables of signals are matched by name. They may be
        integers, but in a selection of nodes an integer is a position (see `subgraph` and `positions`).
    coordinates : array-like of shape (n_nodes, n_dimensions), optional
        Coordinates of the nodes, for drawing, and for the levels of nodes without observations.

    Raises
    ------
    TypeError, ValueError
        If `weights` is no adjacency matrix of real numbers (see `as_graph` for other libraries' graphs), or `names`
        or `coordinates` do not match it.

    Examples
    --------
    >>> from spectralgp import Graph
    >>> graph = Graph([[0, 2, 0], [2, 0, 1], [0, 1, 0]], names=["a", "b", "c"])
    >>> graph
    Graph(3 nodes, 2 edges)
    >>> graph.degrees
    array([2., 3., 1.])
    >>> graph.subgraph(["c", "b"]).weights.toarray()
    array([[0., 1.],
           [1., 0.]])
    """

    weights: Any
    names: Sequence[Hashable] | None = None
    coordinates: Any = None
    _cache: dict[Hashable, Any] = field(init=False)

    def __post_init__(self) -> None:
        self._fill(as_weights(self.weights), self.names, self.coordinates)

    @classmethod
    def _built(cls, weights: Any, names: Any, coordinates: Any) -> Self:
        """Graph on a validated, read-only matrix, which is neither checked nor copied again."""
        graph = cls.__new__(cls)
        graph._fill(weights, names, coordinates)
        return graph

    def _fill(self, weights: Any, names: Any, coordinates: Any) -> None:
        n_nodes = weights.shape[0]
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "names", None if names is None else as_names(names, n_nodes))
        object.__setattr__(self, "coordinates", None if coordinates is None else as_coordinates(coordinates, n_nodes))
        object.__setattr__(self, "_cache", {})

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        weights: ArrayLike | None = None,
        *,
        names: Any = None,
        n_nodes: int | None = None,
        coordinates: ArrayLike | None = None,
    ) -> Self:
        """Graph from a list or a table of edges.

        Parameters
        ----------
        edges : sequence of (u, v) or (u, v, weight), array of shape (n_edges, 2) or (n_edges, 3), or a table
            A table is a pandas DataFrame or a dict, with the columns ``source``, ``target`` and optionally
            ``weight``. Nodes are integers counted from zero, or labels (any hashables); integers are labels too if
            `names` consists of integers. An edge listed several times, in either direction and with one weight,
            counts once. An edge of weight zero is no edge.
        weights : array-like of shape (n_edges,), optional
            Edge weights; 1 unless given here or with the edges.
        names : sequence of hashables, optional
            Node names in the desired order, including nodes without edges. By default labels become names in the
            order of their first appearance, and integers give a graph without names.
        n_nodes : int, optional
            Number of nodes, if some of them have no edge and edges are integers.
        coordinates : array-like of shape (n_nodes, n_dimensions), optional
            Coordinates of the nodes.

        Raises
        ------
        ValueError
            If edges conflict, form self-loops, mention unknown nodes, or skip a node without `n_nodes`.

        Examples
        --------
        >>> from spectralgp import Graph
        >>> Graph.from_edges([(0, 1), (1, 2)])
        Graph(3 nodes, 2 edges)
        >>> table = {"source": ["Oslo", "Bergen"], "target": ["Bergen", "Voss"], "weight": [0.5, 2.0]}
        >>> Graph.from_edges(table).names
        ('Oslo', 'Bergen', 'Voss')
        """
        return cls._built(*weights_from_edges(edges, weights, names, n_nodes), coordinates)

    @classmethod
    def from_points(
        cls,
        points: Any,
        n_neighbors: int | None = None,
        *,
        radius: float | None = None,
        weights: Literal["gaussian", "inverse", "binary"] = "gaussian",
        bandwidth: float | None = None,
        symmetrize: Literal["maximum", "average", "minimum"] = "maximum",
        metric: Literal["euclidean", "haversine"] = "euclidean",
        names: Any = None,
    ) -> Self:
        """Graph that joins nearby points, by number of neighbours or within a radius.

        Parameters
        ----------
        points : array-like, table or geopandas geometry of shape (n_nodes, n_dimensions)
            The coordinates of the nodes. The index of a table or of geometries becomes the names, unless it only
            counts 0, 1, 2, ...
        n_neighbors : int, optional
            Join every node to this many nearest others; 10 if `radius` is not given either. Among equally
            distant ones, as on a regular grid, the choice is arbitrary: use `radius` there.
        radius : float, optional
            Join all nodes with ``d <= radius`` instead, up to a relative 1e-9 for rounding.
        weights : {"gaussian", "inverse", "binary"}, default="gaussian"
            Edge weights ``exp(-d^2 / bandwidth)``, ``1 / d`` or 1.
        bandwidth : float, optional
            Of the Gaussian weights, a distance squared; the mean of ``d^2`` over all nodes and their neighbours
            if not given.
        symmetrize : {"maximum", "average", "minimum"}, default="maximum"
            Nearness by `n_neighbors` is not mutual. With W from each node to its neighbours, the weights are the
            elementwise maximum of W and W^T, ``(W + W^T) / 2`` or the elementwise minimum.
        metric : {"euclidean", "haversine"}, default="euclidean"
            Kind of distance d. With "haversine" points are longitude and latitude in degrees, and d is the
            length of the great circle in kilometres on a sphere of radius 6371.0088 km.
        names : sequence of hashables of length n_nodes, optional
            Node names, instead of those of a table.

        Raises
        ------
        ValueError
            If there are too few points for `n_neighbors`, or distances and weights do not go together.

        Examples
        --------
        >>> import numpy as np
        >>> from spectralgp import Graph
        >>> Graph.from_points(np.random.default_rng(0).random((50, 2)), n_neighbors=5)
        Graph(50 nodes, ... edges)
        >>> Graph.from_points([[0.0], [1.0], [3.0]], radius=2, weights="inverse").weights.toarray()
        array([[0. , 1. , 0. ],
               [1. , 0. , 0.5],
               [0. , 0.5, 0. ]])
        """
        places, labels = as_places(points, metric)
        joining = PointJoin(n_neighbors, radius, weights, bandwidth, symmetrize, metric).checked(len(places.points))
        return cls._built(weights_from_points(places, joining), labels if names is None else names, places.points)

    @classmethod
    def from_signals(cls, Y: Any, X: Any = None, n_neighbors: int = 5) -> Self:
        """Graph of correlations between the columns of signals, if nothing else says which nodes are related.

        Weights are positive correlations of what inputs do not explain, shrunk by the intensity of Ledoit and Wolf. If
        models are compared on the same signals, scores flatter the graph. ``GraphGPRegressor(Graph.from_signals)``
        makes it of the training signals of each fold instead, and ``functools.partial`` sets `n_neighbors` there.

        Parameters
        ----------
        Y : array or table of shape (n_signals, n_nodes)
            Signals in rows, NaN at missing values. Names of columns become those of the nodes.
        X : array or table of shape (n_signals, n_features), optional
            Inputs: correlations are those of errors of a ridge regression on them, of held-out signals in five folds.
        n_neighbors : int, default=5
            Join each node to this many others of the largest positive correlation, and those to it.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> Y = rng.standard_normal((50, 1)) * [1, 1, -1] + rng.standard_normal((50, 3))
        >>> Graph.from_signals(Y, n_neighbors=1).weights.toarray().round(1)
        array([[0. , 0.3, 0. ],
               [0.3, 0. , 0. ],
               [0. , 0. , 0. ]])
        """
        table, inputs = as_table(Y, "Y"), None
        values, labels = as_real_array(table, "Y", ("n_signals", "n_nodes"), allow_nan=True), frame_names(table)
        kept = np.isfinite(values).any(axis=1)
        if X is not None:
            given = as_table(X, "X", allow_dates=True)
            check_same_order(given, table)
            sizes = {"n_signals": len(values)}
            inputs = as_real_array(given, "X", ("n_signals", "n_features"), sizes=sizes)[kept]
        weights = finished(weights_from_signals(values[kept], inputs, n_neighbors))
        return cls._built(weights, None if labels is None or is_range(labels) else labels, None)

    @classmethod
    def edgeless(cls, n_nodes: int, names: Any = None) -> Self:
        """Graph without edges, for models of unrelated nodes; no dense matrix is built.

        Examples
        --------
        >>> from spectralgp import Graph
        >>> Graph.edgeless(1_000_000)
        Graph(1000000 nodes, 0 edges)
        """
        n_nodes = as_integer(n_nodes, "n_nodes", 1)
        return cls._built(finished(csr_array((n_nodes, n_nodes), dtype=np.float64)), names, None)

    @property
    def n_nodes(self) -> int:
        return int(self.weights.shape[0])

    @property
    def n_edges(self) -> int:
        return int(self.weights.nnz) // 2

    @cached_property
    def degrees(self) -> Array:
        """Sum of the weights at each node, shape (n_nodes,)."""
        return frozen(np.asarray(self.weights.sum(axis=1), dtype=np.float64))

    @cached_property
    def components(self) -> NDArray[np.int32]:
        """Label of each node's connected component, from 0 to ``n_components - 1``, shape (n_nodes,)."""
        return frozen(connected_components(self.weights)[1])

    @property
    def n_components(self) -> int:
        """Number of connected components; an isolated node is one."""
        return int(self.components.max()) + 1

    @property
    def is_connected(self) -> bool:
        """Whether every node can be reached from every other."""
        return self.n_components == 1

    def laplacian(self, kind: LaplacianKind = "combinatorial", *, scaled: bool = False) -> Any:
        """Graph Laplacian, ``D - W`` or ``I - D^-1/2 W D^-1/2`` with degrees D, as a sparse ``csr_array``.

        Parameters
        ----------
        kind : {"combinatorial", "normalized", "balanced"}, default="combinatorial"
            Kind of Laplacian; "balanced" is the combinatorial one of the weights ``D^-1/2 W D^-1/2``, which couples
            nodes of low degree as strongly as others, and keeps constants as its smoothest signals. The row of an
            isolated node is zero in all kinds.
        scaled : bool, default=False
            Divide by the largest eigenvalue, equation (2), so that eigenvalues lie in [0, 1].

        Examples
        --------
        >>> from spectralgp import Graph
        >>> Graph.from_edges([(0, 1), (1, 2)]).laplacian().toarray()
        array([[ 1., -1.,  0.],
               [-1.,  2., -1.],
               [ 0., -1.,  1.]])
        """
        weights, diagonal = self.laplacian_parts(kind)
        laplacian = with_small_indices(csr_array(diags_array(diagonal) - weights))
        if scaled and self.n_edges:
            laplacian.data /= self.largest_eigenvalue(kind)
        return laplacian

    def laplacian_parts(self, kind: LaplacianKind = "combinatorial") -> tuple[csr_array, Array]:
        """Weights and diagonal of a Laplacian, ``diag(diagonal) - weights``."""
        as_option(kind, "kind", LAPLACIANS)
        return laplacian_parts(self.weights, self.degrees, kind)

    def operator(
        self, kind: LaplacianKind = "combinatorial", prototype: Any = None, device: str | None = None
    ) -> Operator:
        return make_operator(*self.laplacian_parts(kind), np.empty((0, 0)) if prototype is None else prototype, device)

    def largest_eigenvalue(self, kind: LaplacianKind = "combinatorial") -> float:
        """Largest eigenvalue of a Laplacian, to a relative 1e-9 or better; zero for a graph without edges.

        Examples
        --------
        >>> from spectralgp import Graph
        >>> round(Graph.from_edges([(0, 1), (1, 2)]).largest_eigenvalue(), 9)
        3.0
        """
        key = ("largest_eigenvalue", as_option(kind, "kind", LAPLACIANS))
        if key not in self._cache:
            self._cache[key] = _largest_eigenvalue(self.laplacian(kind)) if self.n_edges else 0.0
        return float(self._cache[key])

    def positions(self, names: Any) -> NDArray[np.int64]:
        """Positions of named nodes, in the order given; the way to choose nodes by names that are integers.

        Examples
        --------
        >>> from spectralgp import Graph
        >>> Graph.from_edges([("a", "b"), ("b", "c")]).positions(["c", "a"])
        array([2, 0])
        """
        if self.names is None:
            raise ValueError("names must belong to a graph with names; got a graph without. Use positions 0, 1, ...")
        if isinstance(names, str | bytes) or not hasattr(names, "__iter__"):
            raise TypeError(f"names must be a sequence of names; got {names!r}. Pass a list, such as [{names!r}].")
        wanted = names.tolist() if hasattr(names, "tolist") else list(names)
        try:
            unknown = [name for name in wanted if name not in self._index]
        except TypeError as error:
            raise TypeError(f"names must be hashable; got {error}. Use strings, numbers or tuples.") from error
        if unknown:
            raise ValueError(
                f"names must be names of nodes; got {unknown[0]!r} ({len(unknown)} unknown in all). "
                "The graph's own are in graph.names."
            )
        return np.fromiter(map(self._index.__getitem__, wanted), dtype=np.int64, count=len(wanted))

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {name: position for position, name in enumerate(self.names or ())}

    def subgraph(self, nodes: Any) -> Graph:
        """Graph on some of the nodes with the edges among them, in the order given.

        Parameters
        ----------
        nodes : sequence of int, of bool or of names
            Positions, or a mask of length n_nodes, or names. Integers are always positions: for names that are
            integers pass ``graph.positions(names)``.

        Examples
        --------
        >>> from spectralgp import Graph
        >>> Graph.from_edges([("a", "b"), ("b", "c")]).subgraph(["a", "b"])
        Graph(2 nodes, 1 edge)
        """
        chosen = chosen_nodes(nodes, self.n_nodes, self.positions)
        names = None if self.names is None else [self.names[node] for node in chosen.tolist()]
        coordinates = None if self.coordinates is None else self.coordinates[chosen]
        return Graph._built(finished(self.weights[chosen][:, chosen]), names, coordinates)

    def __repr__(self) -> str:
        nodes, edges = "node" + "s" * (self.n_nodes != 1), "edge" + "s" * (self.n_edges != 1)
        return f"Graph({self.n_nodes} {nodes}, {self.n_edges} {edges})"

    def _repr_html_(self) -> str:
        more = ", ..." * (self.n_nodes > NAMES_SHOWN)
        properties = {
            "nodes": self.n_nodes,
            "edges": self.n_edges,
            "components": self.n_components,
            "names": "none" if self.names is None else ", ".join(map(str, self.names[:NAMES_SHOWN])) + more,
            "coordinates": "none" if self.coordinates is None else f"{self.coordinates.shape[1]} of each node",
        }
        return as_html("Graph", properties)

    def __getstate__(self) -> dict[str, Any]:
        return {"weights": self.weights, "names": self.names, "coordinates": self.coordinates}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._fill(read_only(state["weights"]), state["names"], state["coordinates"])  # pickled arrays are writable


def laplacian_parts(weights: Any, degrees: Array, kind: LaplacianKind) -> tuple[csr_array, Array]:
    """Weights of a Laplacian, or the first rows of them, and its diagonal: ``D^-1/2 W D^-1/2`` unless combinatorial."""
    n_rows = weights.shape[0]
    if kind == "combinatorial":
        return weights, degrees[:n_rows]
    roots = np.sqrt(degrees)
    inverse_roots = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    # the two factors of an edge are multiplied first, so that both directions round alike
    factors = np.repeat(inverse_roots[:n_rows], np.diff(weights.indptr)) * inverse_roots[weights.indices]
    scaled = csr_array((weights.data * factors, weights.indices, weights.indptr), shape=weights.shape)
    return scaled, np.asarray(scaled.sum(axis=1)) if kind == "balanced" else (degrees[:n_rows] > 0).astype(np.float64)


def _largest_eigenvalue(laplacian: Any) -> float:
    if laplacian.shape[0] < MAX_DENSE_NODES:
        # all eigenvalues: LAPACK's routine for some of them fails on repeated ones, as complete graphs have
        return float(np.linalg.eigvalsh(laplacian.toarray())[-1])
    scale = float(laplacian.diagonal().max())  # half the eigenvalue at least: no product overflows
    matrix = laplacian / scale
    # any fixed generic start will do, so that the same graph always has the same eigenvalue to the last bit
    start = np.random.default_rng(0).standard_normal(matrix.shape[0])
    # thousands of such steps are cheap: ARPACK takes minutes for a path of 10,000 nodes
    return scale * largest_ritz_value(lanczos(lambda vector: matrix @ vector, np.dot, start), EIGENVALUE_RESIDUAL)[0]
