"""Rows of the weights from edges that are never all in memory: shuffled to the owners of their ends."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from spectralgp._basics.checks import Array, Integers, as_integer
from spectralgp.graphs.points import small_integers
from spectralgp.graphs.weights import (
    Names,
    as_coordinates,
    as_integers,
    as_labels,
    as_names,
    edge_columns,
    edge_values,
    missing_labels,
    refuse_loops,
    unique_edges,
)
from spectralgp.partitioned.building import BuildDirectory, BuildRequest, building, finish
from spectralgp.partitioned.partitioning import as_partitioner, cut_nodes
from spectralgp.partitioned.sources import Blocks, open_table

EDGE = ("source", "target", "weight")


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """Edges in blocks of sources, targets and weights, and the nodes they join: positions, or names in `index`."""

    blocks: Blocks
    n_nodes: int
    names: Names
    index: dict[Hashable, int] | None

    def read(self, number: int) -> tuple[Integers, Integers, Array]:
        """Positions of both ends, and weights, of a block of edges."""
        sources, targets, column = self.blocks.read(number)
        starts, ends = (self._positions(labels) for labels in (sources, targets))
        refuse_loops(starts, ends, self.name)
        return starts, ends, edge_values(column, len(starts), f"weights of edges (block {number})")

    def weights(self) -> Any:
        """The whole graph for partitioners, to whom it does not matter how often an edge is listed."""
        read = [self.read(number) for number in range(self.blocks.n_blocks)]
        starts, ends, values = (np.concatenate(parts) for parts in zip(*read, strict=True))
        both = (np.concatenate([starts, ends]), np.concatenate([ends, starts]))
        matrix = coo_array((np.concatenate([values, values]), both), shape=(self.n_nodes, self.n_nodes)).tocsr()
        matrix.eliminate_zeros()
        return matrix

    def name(self, node: int) -> object:
        """Name of a node, for messages."""
        return node if self.names is None else self.names[node]

    def _positions(self, labels: Any) -> Integers:
        if self.index is not None:
            listed = as_labels(labels)
            try:
                return np.fromiter(map(self.index.__getitem__, listed), dtype=np.int64, count=len(listed))
            except KeyError as error:
                raise ValueError(
                    f"edges must join nodes listed in names; got {error.args[0]!r}. Add it to names, or drop its edges."
                ) from None
        positions = as_integers(labels)
        if positions is None:
            raise ValueError(
                f"edges must join nodes from 0 to {self.n_nodes - 1} when n_nodes is given without names; got "
                f"{labels[0]!r}. Leave n_nodes out, or pass names."
            )
        outside = positions[(positions < 0) | (positions >= self.n_nodes)]
        if outside.size:
            raise ValueError(
                f"edges must join nodes from 0 to {self.n_nodes - 1}; got {outside[0]}. "
                "Nodes are counted from zero; if the integers are labels, give the labels as names."
            )
        return positions


def as_edge_table(edges: Any, names: Any, n_nodes: int | None) -> EdgeTable:
    """Find the nodes of edges: those that are named or counted, or else in a first pass over all edges."""
    remedy = "For edges in memory use Graph.from_edges, then from_graph."
    table = open_table(edges, "edges", EDGE, "columns source, target and optionally weight", remedy)
    if not {"source", "target"} <= set(table.columns):
        raise ValueError(
            f"edges must have columns 'source', 'target' and optionally 'weight'; got {table.columns}. Rename them."
        )
    columns = [name for name in EDGE if name in table.columns]
    blocks = Blocks(table.n_blocks, lambda number: edge_columns(table.read(number, columns)), table.fingerprint)
    if n_nodes is not None:
        n_nodes = as_integer(n_nodes, "n_nodes", 1)
    if names is None and n_nodes is None and not _are_counted(blocks):  # labels in the order of their first appearance
        found: dict[Hashable, None] = {}
        for sources, targets, _ in blocks:
            found |= dict.fromkeys(chain.from_iterable(zip(as_labels(sources), as_labels(targets), strict=True)))
        missing = missing_labels(found)
        if missing:
            raise ValueError(f"edges must name both ends; got {missing[0]!r}. Drop the rows with missing ends.")
        names = tuple(found)
    if names is None:
        return EdgeTable(blocks, n_nodes or _number_of_nodes(blocks), None, None)
    names = as_names(names, n_nodes)
    labelled = all(isinstance(name, int | np.integer) for name in names) or not _are_counted(blocks)
    index = {name: position for position, name in enumerate(names)} if labelled else None
    return EdgeTable(blocks, len(names), names, index)


def _are_counted(blocks: Blocks) -> bool:
    """Whether edges join integers, as far as the first edges tell."""
    first = next(((sources, targets) for sources, targets, _ in blocks if len(sources)), ())
    return all(as_integers(labels) is not None for labels in first)


def _number_of_nodes(blocks: Blocks) -> int:
    """Count nodes: safe only when every one from zero on has an edge."""
    seen, n_edges = np.zeros(0, dtype=bool), 0
    for sources, targets, _ in blocks:
        n_edges += len(sources)
        for nodes in map(as_integers, (sources, targets)):
            if nodes is None or not len(nodes):
                continue
            if nodes.min() < 0:
                raise ValueError(f"edges must join nodes from 0; got {nodes.min()}. Nodes are counted from zero.")
            largest = int(nodes.max())
            if largest > 2 * n_edges + 10**6 and largest > 8 * len(seen):  # labels could ask for any memory
                raise ValueError(
                    f"n_nodes must be given for a node {largest} among the first {n_edges} edges; got None. "
                    "Pass n_nodes; if the integers are labels, give the labels as names."
                )
            if largest >= len(seen):
                seen = np.pad(seen, (0, largest + 1 - len(seen)))
            seen[nodes] = True
    if not len(seen):
        raise ValueError("n_nodes must be given when there are no edges and no names; got None. Pass n_nodes or names.")
    if not seen.all():
        raise ValueError(
            f"edges must mention every node from 0 to {len(seen) - 1} unless n_nodes or names is given; got no edge at "
            f"node {int(np.argmin(seen))}. Pass n_nodes={len(seen)} if nodes without edges are meant; or, if the "
            "integers are labels, give the labels as names."
        )
    return len(seen)


def build_from_edges(
    edges: Any, n_nodes: int | None, names: Any, coordinates: Any, partitioner: Any, request: BuildRequest
) -> None:
    """Build for `PartitionedGraph.from_edges`."""
    chosen = as_partitioner(partitioner, coordinates is not None)
    table = as_edge_table(edges, names, n_nodes)
    if coordinates is not None:
        coordinates = as_coordinates(coordinates, table.n_nodes)
    given = ["edges", table.blocks.fingerprint, coordinates]
    with building(request, given, table.n_nodes, table.names, chosen, n_steps=table.blocks.n_blocks) as build:
        build.keep_partitioning(
            lambda: cut_nodes(chosen, build.n_nodes, build.n_partitions, coordinates, table.weights)
        )
        build.keep_each("edges", lambda number: _shuffled(build, table, number), table.blocks.n_blocks)
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
    nodes = build.order[build.own(number)]
    found = pieces(build, number, "edges", range(table.blocks.n_blocks), ("rows", "columns", "weights"))
    empty = (np.empty(0, dtype=np.int32), np.empty(0, dtype=small_integers(build.n_nodes)), np.empty(0))
    rows, columns, values = (np.concatenate(parts) for parts in zip(empty, *found, strict=True))
    rows, columns, values = unique_edges(rows, columns, values, lambda row: table.name(int(nodes[row])), table.name)
    matrix = csr_array((values, (rows, columns)), shape=(len(nodes), build.n_nodes))
    matrix.eliminate_zeros()
    return matrix
