"""Rows of the weights, one partition at a time: from a graph in memory, edges in blocks, or points.

Edges are never all in memory: they are shuffled to the owners of their ends. Neighbours of points are exact across
borders.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import numpy as np
from array_api_compat import is_dask_array
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.spatial import cKDTree

from spectralgp._basics.checks import Array, Integers, as_option
from spectralgp._basics.extras import require
from spectralgp._basics.progress import step_done
from spectralgp.graphs import Graph
from spectralgp.graphs.partitioned.building import Arrays, BuildDirectory, BuildRequest, building, finish
from spectralgp.graphs.partitioned.partitioning import as_partitioner, curve_order, cut_nodes, in_equal_pieces
from spectralgp.graphs.partitioned.sources import READING, RowBlocks, open_table, table_blocks
from spectralgp.graphs.points import METRICS, PointJoin, as_points, others_of, symmetrized, usual_bandwidth, weigh
from spectralgp.graphs.weights import (
    NodeName,
    as_coordinates,
    as_names,
    edge_columns,
    edge_values,
    nodes_of_edges,
    refuse_loops,
    small_integers,
    unique_edges,
)

EDGE = ("source", "target", "weight")
ROWS_AT_ONCE = 1 << 20  # rows of an array in a block
SLACK = 1 + 1e-9  # factor of distances, so that rounding hides no neighbour


def build_from_graph(graph: Graph, partitioner: Any, request: BuildRequest) -> None:
    """Build for `PartitionedGraph.from_graph`."""
    if not isinstance(graph, Graph):
        raise TypeError(f"graph must be a Graph; got {type(graph).__name__}. Convert it with as_graph first.")
    weights, coordinates = graph.weights, graph.coordinates
    chosen = as_partitioner(partitioner, coordinates is not None)
    given = ["graph", weights.data, weights.indices, weights.indptr, coordinates]
    with building(request, given, graph.n_nodes, graph.names, chosen) as build:
        cut = partial(cut_nodes, chosen, graph.n_nodes, build.n_partitions, coordinates, lambda: weights)
        build.store_partitioning(cut)
        finish(build, lambda number: weights[np.asarray(build.order[build.own(number)])], coordinates)


def build_from_edges(
    edges: Any, n_nodes: int | None, names: Any, coordinates: Any, partitioner: Any, request: BuildRequest
) -> None:
    """Build for `PartitionedGraph.from_edges`."""
    chosen = as_partitioner(partitioner, coordinates is not None)
    remedy = "For edges in memory use Graph.from_edges, then from_graph."
    frame = open_table(edges, "edges", EDGE, "columns source, target and optionally weight", remedy)
    columns = [name for name in EDGE if name in frame.columns]
    if columns[:2] != ["source", "target"]:
        raise ValueError(
            "edges must have columns 'source', 'target' and optionally 'weight'; "
            f"got {list(frame.columns)}. Rename them."
        )
    listed = table_blocks(frame[columns], edges, edge_columns)
    nodes = nodes_of_edges(listed, names, n_nodes)

    def read(number: int) -> tuple[Integers, Integers, Array]:
        """Positions of both ends, and weights, of a block of edges."""
        sources, targets, column = listed.read(number)
        starts, ends = map(nodes.positions, (sources, targets))
        refuse_loops(starts, ends, nodes.name)
        return starts, ends, edge_values(column, len(starts), f"weights of edges (block {number})")

    edges = RowBlocks(listed.n_blocks, read, listed.fingerprint)
    if coordinates is not None:
        coordinates = as_coordinates(coordinates, nodes.n_nodes)
    given = ["edges", edges.fingerprint, coordinates]
    with building(request, given, nodes.n_nodes, nodes.names, chosen, n_steps=edges.n_blocks) as build:
        whole = partial(_whole_weights, edges, build.n_nodes)
        build.store_partitioning(lambda: cut_nodes(chosen, build.n_nodes, build.n_partitions, coordinates, whole))
        build.store_each("edges", lambda number: _shuffled(build, edges.read(number)), edges.n_blocks)
        finish(build, lambda number: _rows_from_edges(build, number, edges.n_blocks, nodes.name), coordinates)


def _whole_weights(edges: RowBlocks, n_nodes: int) -> Any:
    """Weights of the whole graph, for partitioners; edges that are listed several times are added up."""
    starts, ends, values = (np.concatenate(parts) for parts in zip(*edges, strict=True))
    both = (np.concatenate([starts, ends]), np.concatenate([ends, starts]))
    matrix = coo_array((np.concatenate([values, values]), both), shape=(n_nodes, n_nodes)).tocsr()
    matrix.eliminate_zeros()
    return matrix


def _shuffled(build: BuildDirectory, edges: tuple[Integers, Integers, Array]) -> Arrays:
    """Edges in both directions, sorted by the owners of the nodes that they start from."""
    starts, ends, values = edges
    ranks = np.concatenate([build.rank[starts], build.rank[ends]])
    columns = np.asarray(np.concatenate([ends, starts]), ranks.dtype)
    return sorted_by_owner(build, ranks, {"columns": columns, "weights": np.concatenate([values, values])})


def sorted_by_owner(build: BuildDirectory, ranks: Integers, others: Arrays) -> Arrays:
    """Entries sorted by the owner of a node: positions there, further arrays, and ends of the owners' entries."""
    owners = build.owners(ranks)
    # sixteen bits are sorted in linear time
    order = np.argsort(owners.astype(np.int16) if build.n_partitions < 2**15 else owners, kind="stable")
    ends = np.cumsum(np.bincount(owners, minlength=build.n_partitions))
    rows = (ranks - build.starts[owners]).astype(np.int32)[order]
    return {"rows": rows, "ends": ends, **{name: array[order] for name, array in others.items()}}


def owned_entries(build: BuildDirectory, owner: int, step: str, number: int) -> slice:
    """Slice of an owner's entries among those of a step that were sorted by `sorted_by_owner`."""
    ends = build.stored(step, number, "ends")
    return slice(int(ends[owner - 1]) if owner else 0, int(ends[owner]))


def _rows_from_edges(build: BuildDirectory, number: int, n_blocks: int, name: NodeName) -> Any:
    """Rows of a partition's own nodes from the edges that were shuffled to it."""
    nodes = build.order[build.own(number)]
    found: list[tuple[NDArray[Any], ...]]
    found = [(np.empty(0, dtype=np.int32), np.empty(0, dtype=small_integers(build.n_nodes)), np.empty(0))]
    for block in range(n_blocks):
        mine = owned_entries(build, number, "edges", block)
        found.append(tuple(build.stored("edges", block, name)[mine] for name in ("rows", "columns", "weights")))
    rows, columns, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    rows, columns, values = unique_edges(rows, columns, values, lambda row: name(int(nodes[row])), name)
    matrix = csr_array((values, (rows, columns)), shape=(len(nodes), build.n_nodes))
    matrix.eliminate_zeros()
    return matrix


def build_from_points(points: Any, joining: PointJoin, names: Any, request: BuildRequest) -> None:
    """Build for `PartitionedGraph.from_points`."""
    as_option(joining.metric, "metric", tuple(METRICS))
    blocks = point_blocks(points)
    extents = [(len(block), block.min(axis=0), block.max(axis=0)) for block in blocks if len(block)]
    if not extents:
        raise ValueError("points must have at least one row and one column; got none. Rows are nodes.")
    sizes, low, high = zip(*extents, strict=True)
    joining.places(np.stack([np.min(low, axis=0), np.max(high, axis=0)]))  # refuses invalid coordinates
    n_nodes = sum(sizes)
    given, joining = ["points", blocks.fingerprint, joining], joining.checked(n_nodes)
    if names is not None:
        names = as_names(names, n_nodes)
    with building(request, given, n_nodes, names, "hilbert", n_rounds=5) as build:
        coordinates = _coordinates(build, blocks)
        along = partial(curve_order, coordinates, lambda rows: joining.places(rows).embedded())
        build.store_partitioning(lambda: in_equal_pieces(along(), build.n_partitions))
        build.store_each("points", lambda number: _with_box(joining, coordinates[build.order[build.own(number)]]))
        build.store_each("neighbours", partial(_neighbours, build, joining))
        bandwidth = joining.bandwidth
        if joining.weights == "gaussian" and bandwidth is None:  # the mean of all squared distances
            found = [build.stored("neighbours", number, "squared") for number in range(build.n_partitions)]
            bandwidth = usual_bandwidth(found) if any(map(len, found)) else None
        # each weight is computed once, for the rows of both ends
        squared = partial(build.stored, "neighbours", array="squared")
        build.store_each(
            "weights", lambda number: {"weights": weigh(squared(number).copy(), joining.weights, bandwidth)}
        )
        finish(build, partial(_rows_from_points, build, joining), coordinates)


def point_blocks(points: Any, rows_at_once: int = ROWS_AT_ONCE) -> RowBlocks:
    """Blocks of an array of points, each finite and of shape (n_rows, n_dimensions)."""
    if isinstance(points, str | os.PathLike):
        frame = open_table(points, "points", (), "coordinates in its columns", "")
        return table_blocks(frame, points, as_points)
    if is_dask_array(points):
        lazy: Any = points
        whole = lazy.rechunk(dict.fromkeys(range(1, lazy.ndim), -1))
        token = require("dask", "dask", READING).base.tokenize(lazy)
        return RowBlocks(whole.numblocks[0], lambda number: as_points(whole.blocks[number].compute()), token)
    array = points if isinstance(points, np.ndarray) and points.ndim == 2 else as_points(points)
    starts = range(0, len(array), rows_at_once)
    return RowBlocks(len(starts), lambda number: as_points(array[starts[number] :][:rows_at_once]), array)


def _coordinates(build: BuildDirectory, blocks: RowBlocks) -> Array:
    """All points as one array: the given one, or a copy of the blocks on disk."""
    if isinstance(blocks.fingerprint, np.ndarray) and blocks.fingerprint.dtype == np.float64:
        return blocks.fingerprint
    path, beside = build.scratch / "points.npy", build.scratch / "unfinished.npy"
    if not path.exists():
        width = next(iter(blocks)).shape[1]
        copy = np.lib.format.open_memmap(beside, mode="w+", dtype=np.float64, shape=(build.n_nodes, width))
        start = 0
        for block in blocks:
            copy[start : start + len(block)] = block
            start += len(block)
        copy.flush()
        del copy
        os.replace(beside, path)
        step_done("points copied")
    array: Array = np.load(path, mmap_mode="r")
    return array


def _with_box(joining: PointJoin, points: Array) -> Arrays:
    """Points of a partition, and the lowest and highest corner of a box around them."""
    embedded = joining.places(points).embedded()
    return {"points": points, "box": np.stack([embedded.min(axis=0), embedded.max(axis=0)])}


def _neighbours(build: BuildDirectory, joining: PointJoin, number: int) -> Arrays:
    """Neighbours of a partition's own points and their squared distances, by the neighbours' owners."""
    starts, ends = (_nearest if joining.radius is None else _within)(build, joining, number)
    own, points = build.own(number), build.stored("points", number, "points")
    inside = (ends >= own.start) & (ends < own.stop)
    foreign, where = np.unique(ends[~inside], return_inverse=True)
    theirs = [build.stored("points", other, "points")[places] for other, places in build.by_owner(foreign)]
    positions = ends - own.start
    positions[~inside] = len(points) + where
    # computed as for a graph in memory
    squared = joining.places(np.concatenate([points, *theirs])).squared_distances(starts, positions)
    if joining.radius is not None:
        near = np.sqrt(squared) <= joining.radius
        starts, ends, squared = starts[near], ends[near], squared[near]
    return sorted_by_owner(build, ends, {"starts": starts.astype(np.int32), "squared": squared})


def _nearest(build: BuildDirectory, joining: PointJoin, number: int) -> tuple[Integers, Integers]:
    """Own positions and ranks of the nearest others of every own point in turn."""
    own, n_neighbors = build.own(number), cast(int, joining.n_neighbors)
    embedded = joining.places(np.array(build.stored("points", number, "points"))).embedded()
    n_own = len(embedded)
    distances, ranks = np.full((n_own, n_neighbors), np.inf), np.full((n_own, n_neighbors), -1)
    among = min(n_neighbors + 1, n_own)
    found, neighbors = _asked(embedded, embedded, among)
    others = others_of(neighbors)
    distances[:, : among - 1] = found[others].reshape(n_own, among - 1)
    ranks[:, : among - 1] = neighbors[others].reshape(n_own, among - 1) + own.start
    for asking, theirs, points in _near(build, joining, number, embedded, distances[:, -1]):
        among = min(n_neighbors, len(points))
        found, neighbors = _asked(points, embedded[asking], among)
        together = np.concatenate([distances[asking], found], axis=1)
        chosen = np.argsort(together, axis=1, kind="stable")[:, :n_neighbors]
        distances[asking] = np.take_along_axis(together, chosen, axis=1)
        both = np.concatenate([ranks[asking], theirs[neighbors]], axis=1)
        ranks[asking] = np.take_along_axis(both, chosen, axis=1)
    return np.repeat(np.arange(n_own), n_neighbors), ranks.ravel()


def _within(build: BuildDirectory, joining: PointJoin, number: int) -> tuple[Integers, Integers]:
    """Pairs within the radius, each once: among own points, and with points of later partitions."""
    own, places = build.own(number), joining.places(np.array(build.stored("points", number, "points")))
    embedded, reach = places.embedded(), places.reach(cast(float, joining.radius))
    pairs = cKDTree(embedded).query_pairs(reach, output_type="ndarray")
    starts, ends = [pairs[:, 0]], [pairs[:, 1] + own.start]
    reaches = np.full(len(embedded), reach)
    for asking, theirs, points in _near(build, joining, number, embedded, reaches, first=number + 1):
        near = cKDTree(embedded[asking]).sparse_distance_matrix(cKDTree(points), reach, output_type="ndarray")
        starts.append(asking[near["i"]])
        ends.append(theirs[near["j"]])
    return np.concatenate(starts), np.concatenate(ends)


def _near(
    build: BuildDirectory, joining: PointJoin, number: int, embedded: Array, reaches: Array, first: int = 0
) -> Iterator[tuple[Integers, Integers, Array]]:
    """Yield, per partition from the first: own points within reach of it, and ranks and places of its points nearby."""
    low, high = build.stored("points", number, "box")
    for other in range(first, build.n_partitions):
        box = build.stored("points", other, "box")
        between = np.maximum(np.maximum(box[0] - high, low - box[1]), 0.0)
        if other == number or np.linalg.norm(between) > reaches.max() * SLACK:  # most partitions are far away
            continue
        asking = np.flatnonzero(_distances(embedded, box) <= reaches * SLACK)
        if not asking.size:
            continue
        points, mine = joining.places(build.stored("points", other, "points")).embedded(), embedded[asking]
        gaps = _distances(points, (mine.min(axis=0), mine.max(axis=0)))
        near = np.flatnonzero(gaps <= reaches[asking].max() * SLACK)
        if near.size:
            yield asking, near + build.own(other).start, points[near]


def _rows_from_points(build: BuildDirectory, joining: PointJoin, number: int) -> Any:
    """Rows of a partition's own nodes, columns being nodes in the user's order."""
    own = build.own(number)
    shape = (own.stop - own.start, build.n_nodes)
    starts, rows, ends = (build.stored("neighbours", number, name) for name in ("starts", "rows", "ends"))
    owned = np.repeat(build.starts[:-1], np.diff(ends, prepend=0))
    weights = build.stored("weights", number, "weights")
    directed = csr_array((weights, (starts, build.order[owned + rows])), shape=shape)
    others = []
    for other in range(build.n_partitions):
        entries = owned_entries(build, number, "neighbours", other)
        theirs, mine = (build.stored("neighbours", other, name)[entries] for name in ("starts", "rows"))
        nodes = build.order[theirs + build.starts[other]]
        others.append((mine, nodes, build.stored("weights", other, "weights")[entries]))
    mine, nodes, values = (np.concatenate(parts) for parts in zip(*others, strict=True))
    other_way = csr_array((values, (mine, nodes)), shape=shape)
    if joining.radius is not None:
        return directed + other_way
    return symmetrized(directed, other_way, joining.symmetrize)


def _asked(among: Array, points: Array, n_neighbors: int) -> tuple[Array, Integers]:
    """Distances and positions of the nearest points, shape (n_points, n_neighbors)."""
    distances, neighbors = cKDTree(among).query(points, k=np.arange(1, n_neighbors + 1), workers=-1)
    return distances, neighbors


def _distances(points: Array, box: Any) -> Array:
    """Distances from a box, given by its lowest and highest corner; zero inside."""
    outside = points - np.clip(points, *box)
    return np.sqrt(np.einsum("ij,ij->i", outside, outside))
