"""From rows of the weights to a finished folder: boundaries, rings of halos, partitions, head."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spectralgp._basics.checks import Array, Integers, as_integer
from spectralgp._basics.files import atomic_write
from spectralgp._basics.progress import report
from spectralgp.graphs.points import small_integers
from spectralgp.graphs.weights import check_sums
from spectralgp.partitioned.folder import (
    ARRAYS,
    COORDINATES,
    NAMES,
    OWNERS,
    PLACES,
    Head,
    checksum,
    file_names,
    part_name,
    write_array,
    write_arrays,
    write_head,
)
from spectralgp.partitioned.site import Site

DEEPEST = 8  # rings of a halo where their number is "auto"
LARGEST_HALO = 0.25  # of the nodes, in all halos together, where the number of rings is "auto"


def as_n_hops(n_hops: Any) -> int | Literal["auto"]:
    """Number of rings of the halos, or "auto"."""
    if isinstance(n_hops, str):
        if n_hops != "auto":
            raise ValueError(f"n_hops must be 'auto' or a whole number; got {n_hops!r}. Pass 'auto'.")
        return "auto"
    return as_integer(n_hops, "n_hops", 1)


def keep_rows(site: Site, number: int, deepest: int, make: Callable[[], Any]) -> None:
    """Keep the rows of a partition's own nodes, with what follows from them alone.

    Parameters
    ----------
    make : callable
        Gives the rows as a canonical ``csr_array`` whose columns are nodes in the user's order.
    """
    site.keep(_rows(number), lambda: _made_rows(site, number, deepest, make()))


def _rows(number: int) -> str:
    return f"rows-{number:05d}"


def _made_rows(site: Site, number: int, deepest: int, matrix: Any) -> dict[str, NDArray[Any]]:
    own = site.own(number)
    with np.errstate(over="ignore"):
        degrees = np.asarray(matrix.sum(axis=1), dtype=np.float64)  # in the user's order, as `Graph.degrees` adds up
        check_sums(matrix.data, degrees, site.order[own])
    ranked = csr_array((matrix.data, site.rank[matrix.indices], matrix.indptr), shape=matrix.shape)
    ranked.sort_indices()
    inside = (ranked.indices >= own.start) & (ranked.indices < own.stop)
    levels = _levels(ranked, inside, own.start, deepest)
    boundary = np.flatnonzero(levels).astype(np.int32)
    boundary = boundary[np.argsort(levels[boundary], kind="stable")]
    places = np.full(len(levels), -1, dtype=np.int32)
    places[boundary] = np.arange(len(boundary), dtype=np.int32)
    return {
        "indptr": ranked.indptr,
        "columns": ranked.indices,
        "weights": ranked.data,
        "degrees": degrees,
        "boundary": boundary,
        "boundary_ends": np.cumsum(np.bincount(levels[boundary], minlength=deepest + 1)),
        "places": places,
        "counts": np.array([ranked.nnz, np.count_nonzero(~inside)]),
    }


def _levels(ranked: Any, inside: NDArray[np.bool_], first: int, deepest: int) -> NDArray[np.int32]:
    """Hops from own nodes to the nearest that is not, up to the deepest and 0 beyond: by symmetry the level."""
    n_own = ranked.shape[0]
    levels = np.zeros(n_own, dtype=np.int32)
    levels[np.repeat(np.arange(n_own), np.diff(ranked.indptr))[~inside]] = 1
    for level in range(2, deepest + 1):
        picked = _picks(ranked.indptr, np.flatnonzero(levels == level - 1))
        near = ranked.indices[picked[inside[picked]]] - first
        near = near[levels[near] == 0]
        if not near.size:
            break
        levels[near] = level
    return levels


def _picks(indptr: Integers, rows: Integers) -> NDArray[np.int64]:
    """Positions of the entries of some rows, one row after the other."""
    begins = np.asarray(indptr[rows], dtype=np.int64)
    lengths = indptr[rows + 1] - begins
    shifts = np.repeat(begins - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.arange(len(shifts), dtype=np.int64) + shifts


def grow_rings(site: Site, n_hops: int | Literal["auto"]) -> int:
    """Keep the rings of all halos, and return how many: those given, or as many as stay small."""
    n_halo, deepest = 0, DEEPEST if n_hops == "auto" else n_hops
    for hop in range(1, deepest + 1):
        for number in range(site.n_partitions):
            n_halo += len(_ring(site, number, hop))
            if n_hops == "auto" and hop > 1 and n_halo > LARGEST_HALO * site.n_nodes:
                return hop - 1
        report(f"ring {hop}")
    return deepest


def _ring(site: Site, number: int, hop: int) -> Integers:
    """Ranks of the nodes at that many hops from a partition, sorted; none are kept twice."""
    key = f"ring-{hop:03d}-{number:05d}"
    site.keep(key, lambda: {"ranks": _grown(site, number, hop)})
    return site.kept(key, "ranks")


def _grown(site: Site, number: int, hop: int) -> Integers:
    own = site.own(number)
    if hop == 1:
        columns = site.kept(_rows(number), "columns")
        found = columns[(columns < own.start) | (columns >= own.stop)]
        return np.unique(found)
    last = _ring(site, number, hop - 1)
    found = np.unique(np.concatenate([last[:0], *(columns for _, columns, _ in _rows_of(site, last, weights=False))]))
    found = found[(found < own.start) | (found >= own.stop)]
    known = last if hop == 2 else np.concatenate([last, _ring(site, number, hop - 2)])
    return np.setdiff1d(found, known, assume_unique=True)


def _rows_of(site: Site, ranks: Integers, weights: bool) -> list[tuple[Integers, Integers, Array]]:
    """Lengths, columns and weights of the rows of sorted nodes, one triple for each partition that owns some."""
    ends = np.searchsorted(ranks, site.starts)
    rows = []
    for owner in np.flatnonzero(np.diff(ends)).tolist():
        chosen = ranks[ends[owner] : ends[owner + 1]] - site.starts[owner]
        indptr = site.kept(_rows(owner), "indptr")
        picked = _picks(indptr, chosen)
        values = site.kept(_rows(owner), "weights")[picked] if weights else np.empty(0)
        rows.append((indptr[chosen + 1] - indptr[chosen], site.kept(_rows(owner), "columns")[picked], values))
    return rows


def keep_part(site: Site, number: int, n_hops: int) -> None:
    """Write a partition, and keep the checksums of its files."""
    home, sums = site.folder / part_name(number), site.scratch / f"sums-{number:05d}.json"
    if sums.exists():
        return
    if not home.exists():
        write_arrays(home, _made_part(site, number, n_hops))
    found = {f"{home.name}/{name}.npy": checksum(home / f"{name}.npy") for name in ARRAYS}
    with atomic_write(sums) as beside:
        beside.write_text(json.dumps(found), encoding="utf-8")


def _made_part(site: Site, number: int, n_hops: int) -> dict[str, NDArray[Any]]:
    own = site.own(number)
    n_own = own.stop - own.start
    rings = [np.array(_ring(site, number, hop)) for hop in range(1, n_hops + 1)]
    halo = np.concatenate(rings)
    sizes = [n_own, *map(len, rings)]
    own_rows = tuple(site.kept(_rows(number), name) for name in ("indptr", "columns", "weights"))
    rows = [(np.diff(own_rows[0]), own_rows[1], own_rows[2])]
    for ring in rings[:-1]:
        rows += _rows_of(site, ring, weights=True)
    lengths, columns, weights = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    n_rows, n_local = sum(sizes[:-1]), sum(sizes)
    indptr = np.zeros(n_rows + 1, dtype=small_integers(len(columns)))
    np.cumsum(lengths, out=indptr[1:])
    indices = _local_positions(columns, own, halo).astype(np.int32)
    matrix = csr_array((weights, indices, indptr), shape=(n_rows, n_local))
    matrix.sort_indices()
    owners = site.owners(halo)
    boundary_ends = np.array(site.kept(_rows(number), "boundary_ends")[: n_hops + 1], dtype=np.int64)
    return {
        "nodes": np.concatenate([site.order[own], site.order[halo]]).astype(np.int64),
        "ends": np.cumsum(sizes, dtype=np.int64),
        "indptr": matrix.indptr.astype(indptr.dtype, copy=False),
        "indices": matrix.indices.astype(np.int32, copy=False),
        "weights": matrix.data,
        "degrees": np.concatenate(
            [site.kept(_rows(number), "degrees"), _owned(site, halo, owners, "degrees", np.float64)]
        ),
        "boundary": np.array(site.kept(_rows(number), "boundary")[: boundary_ends[-1]]),
        "boundary_ends": boundary_ends,
        "halo_owner": owners,
        "halo_place": _owned(site, halo, owners, "places", np.int32),
    }


def _local_positions(columns: Integers, own: slice, halo: Integers) -> Integers:
    """Positions in own and halo nodes of ranks that are all among them."""
    positions = columns - own.start
    outside = np.flatnonzero((columns < own.start) | (columns >= own.stop))
    if outside.size:
        by_rank = np.argsort(halo)
        found = np.searchsorted(halo, columns[outside], sorter=by_rank)
        positions[outside] = own.stop - own.start + by_rank[found]
    return positions


def _owned(site: Site, halo: Integers, owners: NDArray[np.int32], name: str, dtype: Any) -> NDArray[Any]:
    """Values at halo nodes, from the rows of their owners."""
    values = np.empty(len(halo), dtype=dtype)
    for owner in np.unique(owners).tolist():
        here = np.flatnonzero(owners == owner)
        values[here] = site.kept(_rows(owner), name)[halo[here] - site.starts[owner]]
    return values


def finish(
    site: Site,
    n_hops: int | Literal["auto"],
    partitioner: str,
    names: Sequence[Hashable] | None,
    coordinates: Array | None,
) -> None:
    """Make partitions of rows that are all kept, then the head; what was needed for building is deleted."""
    rings = grow_rings(site, n_hops)
    site.each("part", lambda number: keep_part(site, number, rings))
    _write_extras(site.folder, names, coordinates)
    _write_owners(site)
    counts = np.sum([site.kept(_rows(number), "counts") for number in range(site.n_partitions)], axis=0)
    files: dict[str, tuple[int, str]] = {}
    for number in range(site.n_partitions):
        files |= json.loads((site.scratch / f"sums-{number:05d}.json").read_text(encoding="utf-8"))
    for name in file_names(0, names is not None, coordinates is not None):
        files[name] = checksum(site.folder / name)
    n_halo = sum(len(_ring(site, number, hop)) for number in range(site.n_partitions) for hop in range(1, rings + 1))
    head = Head(
        n_nodes=site.n_nodes,
        n_edges=int(counts[0]) // 2,
        n_partitions=site.n_partitions,
        n_hops=rings,
        partitioner=partitioner,
        cut=int(counts[1]) // 2,
        halo=n_halo / site.n_nodes,
        sizes=tuple(np.diff(site.starts).tolist()),
        has_names=names is not None,
        has_coordinates=coordinates is not None,
        files=files,
    )
    write_head(site.folder, head)
    shutil.rmtree(site.scratch, ignore_errors=True)


def _write_owners(site: Site) -> None:
    """For every node the partition that owns it, and its place there: vectors over the nodes."""
    owners, places = (np.empty(site.n_nodes, dtype=np.int32) for _ in range(2))
    for number in range(site.n_partitions):
        nodes = site.order[site.own(number)]
        owners[nodes], places[nodes] = number, np.arange(len(nodes), dtype=np.int32)
    write_array(site.folder / OWNERS, owners)
    write_array(site.folder / PLACES, places)


def _write_extras(folder: Path, names: Sequence[Hashable] | None, coordinates: Array | None) -> None:
    if names is not None:
        with atomic_write(folder / NAMES) as beside:
            beside.write_text(json.dumps(list(names)), encoding="utf-8")
    if coordinates is not None and not (folder / COORDINATES).exists():
        write_array(folder / COORDINATES, coordinates)
