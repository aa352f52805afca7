"""Construction of a folder from rows of the weights: boundaries, rings of halos, partitions, head."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from spectralgp._basics.checks import Array, Integers, as_integer
from spectralgp._basics.files import atomic_write
from spectralgp._basics.progress import progress_bar, step_done
from spectralgp.graphs.partitioned import folder
from spectralgp.graphs.partitioned.partitioning import Partitioning
from spectralgp.graphs.weights import check_sums, small_integers

MAX_AUTO_HOPS = 8
MAX_AUTO_HALO = 0.25  # of the nodes, in all halos together
LOCK, LOCK_GUARD, SCRATCH = "building.lock", "building.lock.guard", "building-"
PROCESS = secrets.token_hex(8)  # distinguishes this process from an earlier one of the same number
BESIDE = (folder.NAMES, folder.COORDINATES, folder.OWNERS, folder.PLACES)  # files that may stand beside the head
FOLDERS = re.compile(rf"{SCRATCH}[0-9a-f]+|{folder.PART}-\d{{5,}}")
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class BuildRequest:
    """Common arguments of the builders; see `PartitionedGraph.from_graph`."""

    folder: Path | str
    n_partitions: int
    n_hops: int | Literal["auto"]
    overwrite: bool
    verbose: bool

    def __post_init__(self) -> None:
        """Check the number of hops before anything is read."""
        if self.n_hops != "auto":
            if isinstance(self.n_hops, str):
                raise ValueError(f"n_hops must be 'auto' or a whole number; got {self.n_hops!r}. Pass 'auto'.")
            as_integer(self.n_hops, "n_hops", 1)


@dataclass(frozen=True, eq=False)
class BuildDirectory:
    """Folder under construction. Each finished step is a folder of arrays in `scratch`, renamed when complete."""

    folder: Path
    scratch: Path  # named by the builder's arguments: only the same call continues with it
    n_nodes: int
    n_partitions: int
    n_hops: int | Literal["auto"]
    partitioner: str
    names: Sequence[Hashable] | None

    @property
    def deepest(self) -> int:
        """Largest possible number of rings of halos."""
        return MAX_AUTO_HOPS if self.n_hops == "auto" else self.n_hops

    def store(self, step: str, number: int, make: Callable[[], Arrays]) -> None:
        """Write the arrays of a step, unless they exist; partitions go to the folder, synchronised to disk first."""
        name, is_partition = folder.numbered(step, number), step == folder.PART
        target, beside = (self.folder if is_partition else self.scratch) / name, self.scratch / f"{name}.unfinished"
        if target.is_dir():
            return
        arrays = make()
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        for array_name, array in arrays.items():
            with (beside / f"{array_name}.npy").open("wb") as file:
                np.save(file, array)
                if is_partition:
                    file.flush()
                    os.fsync(file.fileno())
        os.replace(beside, target)

    def store_each(self, step: str, make: Callable[[int], Arrays], n_times: int | None = None) -> None:
        """Write the arrays of a step for each partition, or `n_times`, in turn."""
        n_times = self.n_partitions if n_times is None else n_times
        for number in range(n_times):
            self.store(step, number, partial(make, number))
            step_done(f"{step} {number + 1} of {n_times}")

    def stored(self, step: str, number: int, array: str) -> NDArray[Any]:
        """One of the arrays of a step, memory-mapped."""
        return folder.read_array(self.scratch / folder.numbered(step, number) / f"{array}.npy")

    def publish(self, name: str, write: Callable[[Path], object]) -> None:
        """Write a file of the graph, unless it exists."""
        if not (self.folder / name).exists():
            with atomic_write(self.scratch / name) as beside:
                write(beside)
            os.replace(self.scratch / name, self.folder / name)

    def store_partitioning(self, make: Callable[[], Partitioning]) -> None:
        """Write the partitioning."""

        def arrays() -> Arrays:
            order, starts = make()
            rank = np.empty(self.n_nodes, dtype=small_integers(self.n_nodes))
            rank[order] = np.arange(self.n_nodes, dtype=rank.dtype)
            return {"order": np.asarray(order, rank.dtype), "rank": rank, "starts": starts}

        self.store("partitioning", 0, arrays)

    @cached_property
    def order(self) -> NDArray[Any]:
        """Nodes by rank."""
        return self.stored("partitioning", 0, "order")

    @cached_property
    def rank(self) -> NDArray[Any]:
        """Ranks of the nodes."""
        return self.stored("partitioning", 0, "rank")

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Ranks at which partitions begin, and the number of nodes."""
        return np.array(self.stored("partitioning", 0, "starts"))

    def own(self, number: int) -> slice:
        """Ranks of a partition's own nodes."""
        return slice(int(self.starts[number]), int(self.starts[number + 1]))

    def owners(self, ranks: NDArray[Any]) -> NDArray[np.int32]:
        """Partitions that own nodes."""
        return (np.searchsorted(self.starts, ranks, side="right") - 1).astype(np.int32)

    def by_owner(self, ranks: Integers) -> Iterator[tuple[int, Integers]]:
        """The owners of sorted nodes, each with the places of its nodes in it."""
        ends = np.searchsorted(ranks, self.starts)
        for owner in np.flatnonzero(np.diff(ends)).tolist():
            yield owner, ranks[ends[owner] : ends[owner + 1]] - self.starts[owner]

    def rows(self, number: int) -> csr_array:
        """Rows of the weights of a partition's own nodes, over the nodes by rank, memory-mapped."""
        indptr, columns, weights = (self.stored("rows", number, name) for name in ("indptr", "columns", "weights"))
        return csr_array((weights, columns, indptr), shape=(len(indptr) - 1, self.n_nodes))


@contextmanager
def building(
    request: BuildRequest,
    source: Sequence[Any],
    n_nodes: int,
    names: Sequence[Hashable] | None,
    partitioner: Any,
    n_steps: int = 0,
    n_rounds: int = 2,
) -> Iterator[BuildDirectory]:
    """Lock a folder and build in it; wrong arguments leave nothing there, and other errors leave the finished steps."""
    home, n_partitions = Path(request.folder).absolute(), as_integer(request.n_partitions, "n_partitions", 1, n_nodes)
    for name in names or ():  # written as JSON
        if not isinstance(name, str | int | float):
            raise TypeError(
                f"names must be text or numbers to be written to a folder; got {name!r} of {type(name).__name__}. "
                "Pass names=[str(name) for name in names]."
            )
    files = {folder.HEAD, LOCK, LOCK_GUARD, *BESIDE}
    found = [home] if home.is_file() else home.glob("*")  # nothing if there is no such folder
    if not all(path.name in files or FOLDERS.fullmatch(path.name) for path in found):
        raise ValueError(f"folder must be new or empty; got {home} with other things in it. Choose another folder.")
    if not request.overwrite:
        _require_unfinished(home)  # before anything is written
    home.mkdir(parents=True, exist_ok=True)
    scratch = home / f"{SCRATCH}{joblib.hash([*source, n_nodes, names, n_partitions, partitioner, request.n_hops])}"
    partitioner = partitioner if isinstance(partitioner, str) else "given"
    build = BuildDirectory(home, scratch, n_nodes, n_partitions, request.n_hops, partitioner, names)
    n_steps += n_rounds * n_partitions + build.deepest  # a bar also shows rounds over the partitions, and rings
    with _locked(home), progress_bar("partition", n_steps, request.verbose):
        begun = {path for path in home.iterdir() if path.name.startswith(SCRATCH)}
        if request.overwrite and ((home / folder.HEAD).exists() or begun - {scratch}):
            _clear(home)
            begun = set()
        _require_unfinished(home)
        if begun - {scratch}:
            raise ValueError(
                f"folder must have been begun with the same arguments to be finished; got {home}, begun with others. "
                "Choose another folder, delete this one, or pass overwrite=True."
            )
        if not begun:
            _clear(home)  # remains of an interrupted deletion
            scratch.mkdir()
        try:
            yield build
        except (TypeError, ValueError):
            _clear(home)
            raise


def _require_unfinished(home: Path) -> None:
    if (home / folder.HEAD).exists():
        raise ValueError(
            f"folder must not hold a partitioned graph yet; got {home}. Read it by PartitionedGraph.open, choose "
            "another folder, or pass overwrite=True."
        )


def _clear(home: Path) -> None:
    """Delete the files of a graph and nothing else: the head first, so that no partial graph looks complete."""
    for name in (folder.HEAD, *BESIDE):
        (home / name).unlink(missing_ok=True)
    # scratch folders go last: they identify the partitions
    for path in sorted(home.iterdir(), key=lambda path: path.name.startswith(SCRATCH)):
        if FOLDERS.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Keep other processes from building in a folder; a lock whose process is dead is taken over."""
    lock, own = home / LOCK, {"host": socket.gethostname(), "pid": os.getpid(), "process": PROCESS}
    if not _create_lock(lock, own):
        holder = _holder(lock)
        if _is_dead(holder, own):
            guard = lock.with_name(LOCK_GUARD)
            with suppress(FileExistsError):  # one process at a time, lest a second deletes the lock of the first
                guard.mkdir()
                if _holder(lock) == holder:
                    lock.unlink()
                guard.rmdir()
        if not _create_lock(lock, own):
            holder = _holder(lock)
            builder = f"process {holder['pid']} on {holder['host']}" if holder else "one that has not said which"
            raise ValueError(
                f"folder must be built by one process at a time; got {home}, and another process builds here: "
                f"{builder}. Wait until it is done, or choose another folder; if it runs no more, delete {lock}."
            )
    try:
        yield
    finally:
        if _holder(lock) == own:
            lock.unlink()


def _create_lock(lock: Path, own: dict[str, Any]) -> bool:
    """Create a lock with its holder; return whether it could be created."""
    try:
        with lock.open("x", encoding="utf-8") as file:
            json.dump(own, file)
    except FileExistsError:
        return False
    except BaseException:  # created, but not written
        lock.unlink(missing_ok=True)
        raise
    return True


def _holder(lock: Path) -> dict[str, Any]:
    """Process that holds a lock; empty if the lock is gone, or not written yet."""
    try:
        found = json.loads(lock.read_text(encoding="utf-8"))
        return {"host": str(found["host"]), "pid": int(found["pid"]), "process": str(found["process"])}
    except (OSError, LookupError, TypeError, ValueError):
        return {}


def _is_dead(holder: dict[str, Any], own: dict[str, Any]) -> bool:
    """Whether a process of this machine has certainly ended: its number is free, or now that of this process."""
    if not holder or holder["host"] != own["host"]:
        return False
    if holder["pid"] == own["pid"]:
        return bool(holder["process"] != own["process"])
    if os.name == "posix":  # on Windows the call would end the process
        try:
            os.kill(holder["pid"], 0)
        except ProcessLookupError:
            return True
        except OSError:  # it runs, for another user
            pass
    return False


def _own_rows(build: BuildDirectory, number: int, matrix: Any) -> Arrays:
    own = build.own(number)
    with np.errstate(over="ignore"):
        degrees = np.asarray(matrix.sum(axis=1), dtype=np.float64)  # in the user's order, like `Graph.degrees`
        check_sums(matrix.data, degrees, build.order[own])
    ranked = csr_array((matrix.data, build.rank[matrix.indices], matrix.indptr), shape=matrix.shape)
    ranked.sort_indices()
    inside = (ranked.indices >= own.start) & (ranked.indices < own.stop)
    levels = _levels(ranked, inside, own.start, build.deepest)
    boundary = np.flatnonzero(levels).astype(np.int32)
    boundary = boundary[np.argsort(levels[boundary], kind="stable")]
    places = np.empty(len(levels), dtype=np.int32)  # in the boundary; undefined for other nodes
    places[boundary] = np.arange(len(boundary), dtype=np.int32)
    return {
        "indptr": ranked.indptr,
        "columns": ranked.indices,
        "weights": ranked.data,
        "degrees": degrees,
        "boundary": boundary,
        "boundary_ends": np.cumsum(np.bincount(levels[boundary], minlength=build.deepest + 1)),
        "places": places,
        "counts": np.array([ranked.nnz, np.count_nonzero(~inside)]),
    }


def _levels(ranked: Any, inside: NDArray[np.bool_], first: int, deepest: int) -> NDArray[np.int32]:
    """Hops from own nodes to the nearest other node, by symmetry their levels; 0 beyond the deepest."""
    n_own = ranked.shape[0]
    levels = np.zeros(n_own, dtype=np.int32)
    levels[np.repeat(np.arange(n_own), np.diff(ranked.indptr))[~inside]] = 1
    for level in range(2, deepest + 1):
        near = ranked[levels == level - 1].indices - first
        near = near[(near >= 0) & (near < n_own)]
        levels[near[levels[near] == 0]] = level
    return levels


def _number_of_rings(build: BuildDirectory) -> int:
    """Number of rings of the halos: the given one, or the largest whose halos stay small."""
    n_halo = 0
    for hop in range(1, build.deepest + 1):
        for number in range(build.n_partitions):
            n_halo += len(_ring(build, number, hop))
            if build.n_hops == "auto" and hop > 1 and n_halo > MAX_AUTO_HALO * build.n_nodes:
                return hop - 1
        step_done(f"ring {hop}")
    return build.deepest


def _ring(build: BuildDirectory, number: int, hop: int) -> Integers:
    """Ranks of the nodes at `hop` hops from a partition, sorted."""

    def neighbours() -> Arrays:
        """Neighbours of the last ring, or of the partition, outside the partition and the last two rings."""
        own, last = build.own(number), [_ring(build, number, before) for before in range(max(1, hop - 2), hop)]
        rows = _rows_of(build, last[-1]) if last else [build.rows(number)]
        found = np.unique(np.concatenate([build.order[:0], *(one.indices for one in rows)]))
        found = found[(found < own.start) | (found >= own.stop)]
        return {"ranks": np.setdiff1d(found, np.concatenate([found[:0], *last]))}

    build.store(f"ring-{hop}", number, neighbours)
    return build.stored(f"ring-{hop}", number, "ranks")


def _rows_of(build: BuildDirectory, ranks: Integers) -> list[csr_array]:
    """Rows of the weights of sorted nodes, owner by owner."""
    return [build.rows(owner)[places] for owner, places in build.by_owner(ranks)]


def _partition_arrays(build: BuildDirectory, number: int, n_hops: int) -> Arrays:
    own = build.own(number)
    n_own = own.stop - own.start
    rings = [np.array(_ring(build, number, hop)) for hop in range(1, n_hops + 1)]
    halo = np.concatenate(rings)
    sizes = [n_own, *map(len, rings)]
    rows = vstack([build.rows(number), *chain.from_iterable(_rows_of(build, ring) for ring in rings[:-1])], "csr")
    indices, by_rank = rows.indices - own.start, np.argsort(halo)
    outside = (indices < 0) | (indices >= n_own)
    indices[outside] = n_own + by_rank[np.searchsorted(halo, rows.indices[outside], sorter=by_rank)]
    indptr = rows.indptr.astype(small_integers(rows.nnz))
    matrix = csr_array((rows.data, indices.astype(np.int32), indptr), shape=(sum(sizes[:-1]), sum(sizes)))
    matrix.sort_indices()
    boundary_ends = np.array(build.stored("rows", number, "boundary_ends")[: n_hops + 1], dtype=np.int64)

    def of_halo(name: str) -> list[NDArray[Any]]:
        """Values at halo nodes, from the rows of their owners."""
        owned = chain.from_iterable(map(build.by_owner, rings))
        return [build.stored("rows", owner, name)[places] for owner, places in owned]

    return {
        "nodes": np.concatenate([build.order[own], build.order[halo]]).astype(np.int64),
        "ends": np.cumsum(sizes, dtype=np.int64),
        "indptr": np.asarray(matrix.indptr, indptr.dtype),
        "indices": np.asarray(matrix.indices, np.int32),
        "weights": matrix.data,
        "degrees": np.concatenate([build.stored("rows", number, "degrees"), *of_halo("degrees")]),
        "boundary": np.array(build.stored("rows", number, "boundary")[: boundary_ends[-1]]),
        "boundary_ends": boundary_ends,
        "halo_owner": build.owners(halo),
        "halo_place": np.concatenate([np.empty(0, dtype=np.int32), *of_halo("places")]),
    }


def finish(build: BuildDirectory, rows: Callable[[int], Any], coordinates: Array | None) -> None:
    """Write partitions from their own rows, in canonical form over the user's nodes, then the head; clean up."""
    build.store_each("rows", lambda number: _own_rows(build, number, rows(number)))
    n_hops, numbers = _number_of_rings(build), range(build.n_partitions)
    build.store_each(folder.PART, lambda number: _partition_arrays(build, number, n_hops))
    has_names, has_coordinates = build.names is not None, coordinates is not None
    if has_names:
        build.publish(folder.NAMES, lambda path: path.write_text(json.dumps(build.names), encoding="utf-8"))
    if coordinates is not None:
        build.publish(folder.COORDINATES, lambda path: np.save(path, coordinates))
    owners, places = (np.empty(build.n_nodes, dtype=np.int32) for _ in range(2))
    for number in numbers:
        nodes = build.order[build.own(number)]
        owners[nodes], places[nodes] = number, np.arange(len(nodes), dtype=np.int32)
    build.publish(folder.OWNERS, lambda path: np.save(path, owners))
    build.publish(folder.PLACES, lambda path: np.save(path, places))
    names = folder.file_names(build.n_partitions, has_names, has_coordinates)
    n_entries, n_cut = np.sum([build.stored("rows", number, "counts") for number in numbers], axis=0).tolist()
    n_halo = sum(len(_ring(build, number, hop)) for number in numbers for hop in range(1, n_hops + 1))
    head = folder.FolderHeader(
        n_nodes=build.n_nodes,
        n_edges=n_entries // 2,
        n_partitions=build.n_partitions,
        n_hops=n_hops,
        partitioner=build.partitioner,
        cut=n_cut // 2,
        halo=n_halo / build.n_nodes,
        sizes=tuple(np.diff(build.starts).tolist()),
        has_names=has_names,
        has_coordinates=has_coordinates,
        files={name: folder.checksum(build.folder / name) for name in names},
    )
    build.publish(folder.HEAD, head.write)
    shutil.rmtree(build.scratch, ignore_errors=True)
