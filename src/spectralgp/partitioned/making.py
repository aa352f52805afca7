"""Builders of partitioned graphs: from a graph, from edges and from points, each into a folder."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from spectralgp._basics.checks import Array, as_option
from spectralgp._basics.progress import progress_bar, report
from spectralgp.graphs import Graph
from spectralgp.graphs.nodes import as_coordinates, as_names
from spectralgp.graphs.places import Plane, Sphere
from spectralgp.graphs.points import as_joining
from spectralgp.partitioned.building import DEEPEST, as_n_hops, finish, keep_rows
from spectralgp.partitioned.cutting import as_n_partitions, as_partitioner, curve_order, cut_nodes, in_equal_pieces
from spectralgp.partitioned.edges import as_edge_table, rows_from_edges, shuffle
from spectralgp.partitioned.points import Joiner
from spectralgp.partitioned.site import Site, building, fingerprint_of
from spectralgp.partitioned.sources import Blocks, edge_blocks, point_blocks


def build_from_graph(
    graph: Graph, n_partitions: int, folder: Path | str, partitioner: Any, n_hops: Any, overwrite: bool, verbose: bool
) -> None:
    """Build for `PartitionedGraph.from_graph`, whose docstring says what is meant."""
    if not isinstance(graph, Graph):
        raise TypeError(f"graph must be a Graph; got {type(graph).__name__}. Convert it with as_graph first.")
    n_partitions, n_hops = as_n_partitions(n_partitions, graph.n_nodes), as_n_hops(n_hops)
    chosen = as_partitioner(partitioner, graph.coordinates is not None)
    names = _writable(graph.names)
    weights, deepest = graph.weights, _deepest(n_hops)
    matrix = [weights.data, weights.indices, weights.indptr]
    given = ["graph", *matrix, names, graph.coordinates, n_partitions, chosen, n_hops]
    bar = progress_bar("partition", 2 * n_partitions + deepest, verbose)
    with building(folder, fingerprint_of(given), overwrite) as site, bar:
        site.keep_cut(lambda: cut_nodes(chosen, graph.n_nodes, n_partitions, graph.coordinates, lambda: weights))
        site.each(
            "rows",
            lambda number: keep_rows(site, number, deepest, lambda: weights[np.asarray(site.order[site.own(number)])]),
        )
        finish(site, n_hops, _called(chosen), names, graph.coordinates)


def build_from_edges(
    edges: Any,
    folder: Path | str,
    n_partitions: int,
    n_nodes: int | None,
    names: Any,
    coordinates: Any,
    partitioner: Any,
    n_hops: Any,
    overwrite: bool,
    verbose: bool,
) -> None:
    """Build for `PartitionedGraph.from_edges`, whose docstring says what is meant."""
    blocks, n_hops = edge_blocks(edges), as_n_hops(n_hops)
    chosen = as_partitioner(partitioner, coordinates is not None)
    table = as_edge_table(blocks, names, n_nodes)
    names = _writable(table.names)
    n_partitions = as_n_partitions(n_partitions, table.n_nodes)
    if coordinates is not None:
        coordinates = as_coordinates(coordinates, table.n_nodes)
    deepest = _deepest(n_hops)
    given = ["edges", blocks.fingerprint, table.n_nodes, names, coordinates, n_partitions, chosen, n_hops]

    def weights() -> Any:
        read = [table.read(number) for number in range(blocks.n_blocks)]
        starts, ends, values = (np.concatenate(parts) for parts in zip(*read, strict=True))
        both = (np.concatenate([starts, ends]), np.concatenate([ends, starts]))
        # how often an edge is listed matters to nobody who asks for these
        matrix = coo_array((np.concatenate([values, values]), both), shape=(table.n_nodes, table.n_nodes)).tocsr()
        matrix.eliminate_zeros()
        return matrix

    bar = progress_bar("partition", blocks.n_blocks + 2 * n_partitions + deepest, verbose)
    with building(folder, fingerprint_of(given), overwrite) as site, bar:
        site.keep_cut(lambda: cut_nodes(chosen, table.n_nodes, n_partitions, coordinates, weights))
        shuffle(site, table)
        site.each(
            "rows",
            lambda number: keep_rows(site, number, deepest, lambda: rows_from_edges(site, number, table)),
        )
        finish(site, n_hops, _called(chosen), names, coordinates)


def build_from_points(
    points: Any,
    folder: Path | str,
    n_partitions: int,
    joining: dict[str, Any],
    metric: str,
    names: Any,
    n_hops: Any,
    overwrite: bool,
    verbose: bool,
) -> None:
    """Build for `PartitionedGraph.from_points`, whose docstring says what is meant."""
    kind: type[Plane] | type[Sphere] = (
        Plane if as_option(metric, "metric", ("euclidean", "haversine")) == "euclidean" else Sphere
    )
    blocks, n_hops = point_blocks(points), as_n_hops(n_hops)
    sizes, low, high = _extent(blocks)
    kind(np.stack([low, high]))  # refuses what is too far apart, or no longitudes and latitudes
    n_nodes = sum(sizes)
    joined = as_joining(n_nodes, **joining)
    n_partitions = as_n_partitions(n_partitions, n_nodes)
    names = _writable(None if names is None else as_names(names, n_nodes))
    deepest = _deepest(n_hops)
    given = ["points", blocks.fingerprint, n_partitions, sorted(joining.items()), metric, names, n_hops]
    bar = progress_bar("partition", 5 * n_partitions + deepest, verbose)
    with building(folder, fingerprint_of(given), overwrite) as site, bar:
        joiner = Joiner(site, kind, joined)
        coordinates = _coordinates(site, blocks, sizes)
        site.keep_cut(
            lambda: in_equal_pieces(curve_order(coordinates, lambda rows: kind(rows).embedded()), n_partitions)
        )
        site.each("points", lambda number: joiner.keep_points(number, coordinates))
        site.each("neighbours", joiner.keep_found)
        bandwidth = joiner.bandwidth()
        site.each("weights", lambda number: joiner.keep_weights(number, bandwidth))
        site.each("rows", lambda number: keep_rows(site, number, deepest, lambda: joiner.rows(number)))
        finish(site, n_hops, "hilbert", names, coordinates)


def _called(partitioner: Any) -> str:
    return partitioner if isinstance(partitioner, str) else "given"


def _deepest(n_hops: int | str) -> int:
    return DEEPEST if isinstance(n_hops, str) else n_hops


def _writable(names: Sequence[Hashable] | None) -> Sequence[Hashable] | None:
    """Names as JSON can hold them."""
    for name in names or ():
        if not isinstance(name, str | int | float):
            raise TypeError(
                f"names must be text or numbers to be written to a folder; got {name!r} of {type(name).__name__}. "
                "Pass names=[str(name) for name in names]."
            )
    return names


def _extent(blocks: Blocks) -> tuple[list[int], Array, Array]:
    """Numbers of rows of the blocks, and the box around all points."""
    found = [(len(block), block.min(axis=0), block.max(axis=0)) for block in blocks if len(block)]
    if not found:
        raise ValueError("points must have at least one row and one column; got none. Rows are nodes.")
    widths = {len(low) for _, low, _ in found}
    if len(widths) > 1:
        raise ValueError(f"points must have one number of columns; got blocks with {sorted(widths)}. Rows are nodes.")
    sizes, low, high = zip(*found, strict=True)
    return list(sizes), np.min(low, axis=0), np.max(high, axis=0)


def _coordinates(site: Site, blocks: Blocks, sizes: list[int]) -> Array:
    """All points as one array: the given one, or one on disk into which blocks are copied."""
    if isinstance(blocks.fingerprint, np.ndarray) and blocks.fingerprint.dtype == np.float64:
        return blocks.fingerprint
    path, beside = site.scratch / "coordinates.npy", site.scratch / "unfinished.npy"
    if not path.exists():
        width = next(iter(blocks)).shape[1]
        copy = np.lib.format.open_memmap(beside, mode="w+", dtype=np.float64, shape=(sum(sizes), width))
        start = 0
        for block in blocks:
            copy[start : start + len(block)] = block
            start += len(block)
        copy.flush()
        del copy
        os.replace(beside, path)
        report("points copied")
    array: Array = np.load(path, mmap_mode="r")
    return array
