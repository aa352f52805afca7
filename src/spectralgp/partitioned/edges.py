"""Rows of the weights from edges that are never all in memory: shuffled to the owners of their ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from spectralgp._basics.checks import Array, Integers
from spectralgp.graphs.points import small_integers
from spectralgp.graphs.weights import (
    EdgeNodes,
    as_coordinates,
    edge_columns,
    edge_values,
    nodes_of_edges,
    refuse_loops,
    unique_edges,
)
from spectralgp.partitioned.building import BuildDirectory, BuildRequest, building, finish
from spectralgp.partitioned.partitioning import as_partitioner, cut_nodes
from spectralgp.partitioned.sources import Blocks, open_table

EDGE = ("source", "target", "weight")


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """Edges in blocks of sources, targets and weights, and the nodes they join."""

    blocks: Blocks
    nodes: EdgeNodes

    def read(self, number: int) -> tuple[Integers, Integers, Array]:
        """Positions of both ends, and weights, of a block of edges."""
        sources, targets, column = self.blocks.read(number)
        starts, ends = map(self.nodes.positions, (sources, targets))
        refuse_loops(starts, ends, self.nodes.name)
        return starts, ends, edge_values(column, len(starts), f"weights of edges (block {number})")

    def weights(self) -> Any:
        """The whole graph for partitioners, to whom it does not matter how often an edge is listed."""
        read = [self.read(number) for number in range(self.blocks.n_blocks)]
        starts, ends, values = (np.concatenate(parts) for parts in zip(*read, strict=True))
        both = (np.concatenate([starts, ends]), np.concatenate([ends, starts]))
        n_nodes = self.nodes.n_nodes
        matrix = coo_array((np.concatenate([values, values]), both), shape=(n_nodes, n_nodes)).tocsr()
        matrix.eliminate_zeros()
        return matrix


def as_edge_table(edges: Any, names: Any, n_nodes: int | None) -> EdgeTable:
    """Open a table of edges, and find their nodes."""
    remedy = "For edges in memory use Graph.from_edges, then from_graph."
    table = open_table(edges, "edges", EDGE, "columns source, target and optionally weight", remedy)
    if not {"source", "target"} <= set(table.columns):
        raise ValueError(
            f"edges must have columns 'source', 'target' and optionally 'weight'; got {table.columns}. Rename them."
        )
    columns = [name for name in EDGE if name in table.columns]
    blocks = Blocks(table.n_blocks, lambda number: edge_columns(table.read(number, columns)), table.fingerprint)
    return EdgeTable(blocks, nodes_of_edges(blocks, names, n_nodes))


def build_from_edges(
    edges: Any, n_nodes: int | None, names: Any, coordinates: Any, partitioner: Any, request: BuildRequest
) -> None:
    """Build for `PartitionedGraph.from_edges`."""
    chosen = as_partitioner(partitioner, coordinates is not None)
    table = as_edge_table(edges, names, n_nodes)
    if coordinates is not None:
        coordinates = as_coordinates(coordinates, table.nodes.n_nodes)
    given = ["edges", table.blocks.fingerprint, coordinates]
    n_nodes, names, n_blocks = table.nodes.n_nodes, table.nodes.names, table.blocks.n_blocks
    with building(request, given, n_nodes, names, chosen, n_steps=n_blocks) as build:
        build.keep_partitioning(
            lambda: cut_nodes(chosen, build.n_nodes, build.n_partitions, coordinates, table.weights)
        )
        build.keep_each("edges", lambda number: _shuffled(build, table, number), n_blocks)
        finish(build, lambda number: _rows_from_edges(build, number, table), coordinates)


def _shuffled(build: BuildDirectory, table: EdgeTable, number: int) -> dict[str, NDArray[Any]]:
    starts, ends, values = table.read(number)
    ranks = np.concatenate([build.rank[starts], build.rank[ends]])
    columns = np.concatenate([ends, starts]).astype(ranks.dtype, copy=False)
    return by_owner(build, ranks, {"columns": columns, "weights": np.concatenate([values, values])})


def by_owner(build: BuildDirectory, ranks: Integers, others: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Entries sorted by the owner of a node: its place there, what goes with it, and where each owner's entries end."""
    owners = build.owners(ranks)
    # sixteen bits are sorted in linear time
    order = np.argsort(owners.astype(np.int16) if build.n_partitions < 2**15 else owners, kind="stable")
    ends = np.cumsum(np.bincount(owners, minlength=build.n_partitions))
    rows = (ranks - build.starts[owners]).astype(np.int32)[order]
    return {"rows": rows, "ends": ends, **{name: array[order] for name, array in others.items()}}


def pieces(
    build: BuildDirectory, owner: int, step: str, numbers: Iterable[int], names: tuple[str, ...]
) -> Iterator[tuple[NDArray[Any], ...]]:
    """Entries of an owner from some that a step kept by `by_owner`."""
    for number in numbers:
        ends = build.kept(step, number, "ends")
        mine = slice(int(ends[owner - 1]) if owner else 0, int(ends[owner]))
        yield tuple(build.kept(step, number, name)[mine] for name in names)


def _rows_from_edges(build: BuildDirectory, number: int, table: EdgeTable) -> Any:
    """Rows of a partition's own nodes from the edges that were shuffled to it."""
    nodes, name = build.order[build.own(number)], table.nodes.name
    found = pieces(build, number, "edges", range(table.blocks.n_blocks), ("rows", "columns", "weights"))
    empty = (np.empty(0, dtype=np.int32), np.empty(0, dtype=small_integers(build.n_nodes)), np.empty(0))
    rows, columns, values = (np.concatenate(parts) for parts in zip(empty, *found, strict=True))
    rows, columns, values = unique_edges(rows, columns, values, lambda row: name(int(nodes[row])), name)
    matrix = csr_array((values, (rows, columns)), shape=(len(nodes), build.n_nodes))
    matrix.eliminate_zeros()
    return matrix
