"""The partitioned graph: a folder, of which only the head is in memory."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.checks import as_integer
from spectralgp._basics.tables import as_html
from spectralgp.graphs import Graph, LaplacianKind
from spectralgp.graphs.core import GraphBase
from spectralgp.graphs.operators import Operator, precision_of
from spectralgp.graphs.partitioned.building import BuildRequest
from spectralgp.graphs.partitioned.folder import (
    COORDINATES,
    NAMES,
    FolderHeader,
    Partition,
    read_array,
    read_head,
    read_partition,
)
from spectralgp.graphs.partitioned.rows import build_from_edges, build_from_graph, build_from_points
from spectralgp.graphs.partitioned.sources import as_dask, require_complete, signals_of_table
from spectralgp.graphs.points import PointJoin


@dataclass(frozen=True, eq=False, repr=False)
class PartitionedGraph(GraphBase):
    """Undirected weighted graph as a folder of partitions, for graphs beyond the memory of one machine.

    A partition holds its own nodes, the halo of nodes within `n_hops` hops around them, and the rows of the weights
    that `n_hops` steps of a recurrence need, in memory-mapped files. Nodes keep the user's order. Copying returns the
    graph itself; pickles hold the path of the folder, which must exist where they are read.

    One process builds in a folder, under a lock, step by step with the head last. After an interruption the same call
    continues. Meanwhile building takes a few times the disk space of the finished folder.

    Parameters
    ----------
    folder : path
        Of a finished partitioned graph.
    is_in_partition_order : bool, default=False
        Whether nodes are counted partition by partition rather than in the user's order; see `in_partition_order`.

    Attributes
    ----------
    n_partitions, n_hops : int
        Numbers of partitions, and of rings of nodes in their halos.
    sizes : tuple of int
        Numbers of nodes that partitions own.
    cut : int
        Number of edges between partitions, each counted once.
    halo : float
        Number of nodes in all halos, as a share of the nodes of the graph.
    partitioner : {"hilbert", "metis", "rcm", "contiguous", "given"}
        Method that partitioned the graph.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from spectralgp import Graph
    >>> from spectralgp.graphs.partitioned import PartitionedGraph
    >>> graph = Graph.from_points(np.random.default_rng(0).random((2000, 2)), n_neighbors=6)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     partitioned = PartitionedGraph.from_graph(graph, 4, folder, n_hops=2)
    ...     print(partitioned)
    ...     print(partitioned.partition(0).n_own, partitioned.sizes)
    PartitionedGraph(2000 nodes, ... edges, 4 partitions: ... edges cut, halos of 2 hops with ... % of the nodes)
    500 (500, 500, 500, 500)
    """

    is_whole: ClassVar[bool] = False
    folder: Path
    is_in_partition_order: bool = False
    n_partitions: int = field(init=False)
    n_hops: int = field(init=False)
    sizes: tuple[int, ...] = field(init=False)
    cut: int = field(init=False)
    halo: float = field(init=False)
    partitioner: str = field(init=False)
    _head: FolderHeader = field(init=False)
    _cache: dict[Hashable, Any] = field(init=False)

    def __post_init__(self) -> None:
        """Read the head."""
        folder = Path(self.folder).absolute()
        head = read_head(folder)
        names = "n_partitions", "n_hops", "sizes", "cut", "halo", "partitioner"
        vars(self).update({name: getattr(head, name) for name in names}, folder=folder, _head=head, _cache={})

    @classmethod
    def open(cls, folder: Path | str, *, verify: bool = False) -> Self:
        """Partitioned graph of a folder that was built before; only its head is read.

        With `verify` all files are compared with their checksums now; otherwise only their lengths are checked now, and
        checksums when a process first computes with a partition.

        Raises
        ------
        FileNotFoundError
            If there is no such folder, it is unfinished, or a file is missing.
        ValueError
            If the head has another format or version, or a file is changed.
        """
        graph = cls(Path(folder))
        if verify:
            graph._head.verify(graph.folder, graph._head.files)
        return graph

    @classmethod
    def from_graph(
        cls,
        graph: Graph,
        n_partitions: int,
        folder: Path | str,
        *,
        partitioner: Any = "auto",
        n_hops: Any = "auto",
        overwrite: bool = False,
        verbose: bool = False,
    ) -> Self:
        """Partitioned graph of a graph in memory.

        Parameters
        ----------
        graph : Graph
            Graph whose names, if any, are text or numbers.
        n_partitions : int
            Number of partitions.
        folder : path
            New or empty folder to build in, or one in which the same call was interrupted.
        partitioner : {"auto", "hilbert", "metis", "rcm", "contiguous"} or int array of shape (n_nodes,)
            Method of partitioning. "hilbert" cuts a space-filling curve through the coordinates into equal pieces
            (through the first three principal axes of coordinates of more dimensions), "metis" minimises the edges cut
            (by pymetis, an extra; parts are balanced within 3 %), "rcm" cuts the order of reverse Cuthill-McKee,
            "contiguous" the order of the nodes; an array gives every node the number of its partition. "auto" is
            "hilbert" with coordinates, else "metis" where it is installed, else "rcm".
        n_hops : int, default="auto"
            Rings of nodes around each partition, and steps between two exchanges. "auto" is the largest number from 1
            to 8 whose halos together have at most a quarter of the nodes of the graph, and at least 1.
        overwrite : bool, default=False
            Delete a graph that the folder holds.
        verbose : bool, default=False
            Draw a bar of progress.

        Raises
        ------
        ValueError
            If there are more partitions than nodes, or the folder holds something else.
        """
        build_from_graph(graph, partitioner, BuildRequest(folder, n_partitions, n_hops, overwrite, verbose))
        return cls.open(folder)

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        folder: Path | str,
        *,
        n_partitions: int,
        n_nodes: int | None = None,
        names: Any = None,
        coordinates: Any = None,
        partitioner: Any = "auto",
        n_hops: Any = "auto",
        overwrite: bool = False,
        verbose: bool = False,
    ) -> Self:
        """Partitioned graph from a table of edges that need not fit in memory.

        Edges are shuffled, a block of the table at a time, to the owners of their ends; then each partition is made on
        its own. In memory are a block, a partition and vectors over the nodes. The partitioners "metis" and "rcm"
        need the whole graph in memory; "hilbert" (with coordinates), "contiguous" or an array do not.

        Parameters
        ----------
        edges : dask DataFrame, or path of a Parquet file or of a folder of such
            Columns ``source``, ``target`` and optionally ``weight``, as in `Graph.from_edges`: an edge may be listed
            several times, in either direction, if its weight is the same each time.
        n_nodes : int, optional
            Number of nodes, for edges between integers. Without it, or names, all edges are read once more.
        names : sequence of text or numbers of length n_nodes, optional
            Node names in the desired order.
        coordinates : array-like of shape (n_nodes, n_dimensions), optional
            Coordinates of the nodes.
        folder, n_partitions, partitioner, n_hops, overwrite, verbose
            As in `from_graph`.

        Raises
        ------
        ValueError
            If edges conflict, form self-loops, have negative or infinite weights, or join unknown nodes.
        """
        request = BuildRequest(folder, n_partitions, n_hops, overwrite, verbose)
        build_from_edges(edges, n_nodes, names, coordinates, partitioner, request)
        return cls.open(folder)

    @classmethod
    def from_points(
        cls,
        points: Any,
        folder: Path | str,
        *,
        n_partitions: int,
        n_neighbors: int | None = None,
        radius: float | None = None,
        weights: str = "gaussian",
        bandwidth: float | None = None,
        symmetrize: str = "maximum",
        metric: str = "euclidean",
        names: Any = None,
        n_hops: Any = "auto",
        overwrite: bool = False,
        verbose: bool = False,
    ) -> Self:
        """Partitioned graph that joins nearby points, the same as `Graph.from_points` builds.

        Points are cut along a Hilbert curve. Neighbours are found one partition at a time, across borders too, and
        exactly: among equally distant candidates alone the choice may be another than in memory.

        Parameters
        ----------
        points : array, np.memmap, dask array, or path of a Parquet file or folder, of shape (n_nodes, n_dimensions)
            Coordinates of the nodes; all columns of Parquet files are coordinates.
        n_neighbors, radius, weights, bandwidth, symmetrize, metric, names
            As in `Graph.from_points`.
        folder, n_partitions, n_hops, overwrite, verbose
            As in `from_graph`.
        """
        request = BuildRequest(folder, n_partitions, n_hops, overwrite, verbose)
        joining = PointJoin(n_neighbors, radius, weights, bandwidth, symmetrize, metric)
        build_from_points(points, joining, names, request)
        return cls.open(folder)

    @property
    def n_nodes(self) -> int:
        return self._head.n_nodes

    @property
    def n_edges(self) -> int:
        return self._head.n_edges

    @cached_property
    def names(self) -> Sequence[Hashable] | None:
        if not self._head.has_names:
            return None
        self._head.verify(self.folder, [NAMES])
        names = json.loads((self.folder / NAMES).read_text(encoding="utf-8"))
        return tuple([names[node] for node in self.order] if self.is_in_partition_order else names)

    @cached_property
    def coordinates(self) -> Any:
        if not self._head.has_coordinates:
            return None
        read = read_array(self.folder / COORDINATES)
        return read[self.order] if self.is_in_partition_order else read

    def as_native(self, signals: Any) -> Any:
        return require_complete(as_dask(signals))

    @property
    def content_hash(self) -> str:
        """Digest of the checksums of all files, which identifies the graph."""
        return self._head.content_hash

    def own_nodes(self, number: int) -> NDArray[np.int64]:
        """Nodes that a partition owns, by their positions in the order of the graph."""
        if self.is_in_partition_order:
            return np.arange(self.sizes[number]) + sum(self.sizes[:number])
        return np.asarray(self.partition(number).nodes[: self.sizes[number]])

    @property
    def order(self) -> NDArray[np.int64]:
        """The user's nodes partition by partition: ``signals[:, graph.order]`` are in the order of the partitions."""
        return np.concatenate([self.partition(number).nodes[:size] for number, size in enumerate(self.sizes)])

    def in_partition_order(self) -> PartitionedGraph:
        """Copy with nodes, names and signals in the order of `order`, so that signals need not be shuffled."""
        return PartitionedGraph(self.folder, is_in_partition_order=True)

    def signals(self, table: Any, node: str | None = None) -> Any:
        """Signals of a table with one row per node and one column per signal, as a Dask array to fit or predict with.

        Parameters
        ----------
        table : dask DataFrame, or path of a Parquet file or of a folder of such
            The table; it is read when signals are computed.
        node : str, optional
            Column with the names of the nodes, or their numbers without names: each must have one row. If not given,
            rows are in the order of the nodes.
        """
        return signals_of_table(table, node, self.n_nodes, self.names)

    def partition(self, number: int) -> Partition:
        """One partition, its arrays memory-mapped."""
        return read_partition(self.folder, as_integer(number, "number", 0, self.n_partitions - 1))

    def operator(
        self, kind: LaplacianKind = "combinatorial", prototype: Any = None, device: str | None = None
    ) -> Operator:
        from spectralgp.graphs.partitioned.operator import PartitionedOperator

        dtype = precision_of(np.empty(0) if prototype is None else prototype)
        return PartitionedOperator(self, kind, dtype, device or "cpu")

    def __repr__(self) -> str:
        counts = {"node": self.n_nodes, "edge": self.n_edges, "partition": self.n_partitions, "hop": self.n_hops}
        nodes, edges, parts, hops = (f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items())
        cut = f"{self.cut} edge{'s' * (self.cut != 1)} cut"
        halos = f"halos of {hops} with {100 * self.halo:.3g} % of the nodes"
        return f"PartitionedGraph({nodes}, {edges}, {parts}: {cut}, {halos})"

    def _repr_html_(self) -> str:
        coordinates = self.coordinates
        properties = {
            "nodes": self.n_nodes,
            "edges": self.n_edges,
            "partitions": f"{self.n_partitions}, of {min(self.sizes)} to {max(self.sizes)} nodes ({self.partitioner})",
            "edges cut": self.cut,
            "halos": f"{self.n_hops} hops, {100 * self.halo:.3g} % of the nodes",
            "names": "none" if not self._head.has_names else "of all nodes",
            "coordinates": "none" if coordinates is None else f"{coordinates.shape[1]} of each node",
            "folder": self.folder,
        }
        return as_html("PartitionedGraph", properties)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.folder, self.is_in_partition_order)
