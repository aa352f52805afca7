"""The folder of a partitioned graph: a head in JSON with checksums, and arrays in files that can be memory-mapped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.checks import Array, Integers

FORMAT = "spectralgp partitioned graph"
VERSION = 1
HEAD, NAMES, COORDINATES = "head.json", "names.json", "coordinates.npy"
OWNERS, PLACES = "owners.npy", "places.npy"
PART = "part"  # folder of a partition, numbered
BYTES_READ_AT_ONCE = 1 << 24
_reading = Lock()  # one header at a time: Python 3.11 may fail to parse several in threads

_AGAIN = "Build the folder again, or copy it again from where it was built."


@dataclass(frozen=True, eq=False)
class Partition:
    """Own nodes, the halo of nodes within `n_hops` hops around them, and the rows of the weights that are needed.

    Local nodes are the own ones first, then the halo ring by ring; within a ring by owner, then by place in the owner's
    own nodes. Rows of the weights (CSR) are those of the first ``ends[-2]`` local nodes, within ``n_hops - 1`` hops;
    their columns are local positions, sorted. The level of an own node is the smallest ring in which another partition
    has it.
    """

    number: int  # which partition this is, from 0
    nodes: NDArray[np.int64]  # (n_local,) local nodes, in the user's order of nodes
    ends: NDArray[np.int64]  # (n_hops + 1,) numbers of local nodes within 0, 1, ... hops of the own ones
    indptr: Integers  # int32 where that suffices
    indices: NDArray[np.int32]
    weights: Array
    degrees: Array  # (n_local,) sums of the weights at all local nodes, the last ring included
    boundary: NDArray[np.int32]  # own positions that others have in their halos, by level, then by position
    boundary_ends: NDArray[np.int64]  # (n_hops + 1,) numbers of boundary nodes of level 0 (none), at most 1, ...
    halo_owner: NDArray[np.int32]  # (n_halo,) the partition whose own each halo node is
    halo_place: NDArray[np.int32]  # (n_halo,) its place in the owner's boundary

    @property
    def n_own(self) -> int:
        """Number of own nodes."""
        return int(self.ends[0])

    @property
    def n_local(self) -> int:
        """Number of own and halo nodes."""
        return int(self.ends[-1])

    @property
    def n_hops(self) -> int:
        """Number of rings of the halo, some of which may be empty."""
        return len(self.ends) - 1

    @property
    def neighbours(self) -> NDArray[np.int32]:
        """Partitions that own nodes of the halo, sorted."""
        return np.unique(np.asarray(self.halo_owner))


ARRAYS = tuple(field.name for field in fields(Partition) if field.name != "number")


def damaged_array(part: Partition, sizes: Sequence[int]) -> str | None:
    """Name of the first array that cannot be that of a partition of a graph with such sizes; None if all can."""
    wrong = {
        "ends": part.n_own != sizes[part.number] or not _ascends(part.ends),
        "nodes": not _within(part.nodes, sum(sizes)),
        "indptr": part.indptr[0] != 0 or not _ascends(part.indptr),
        "indices": not _within(part.indices, part.n_local),
        "weights": not _within(part.weights, np.inf),
        "degrees": not _within(part.degrees, np.inf),
        "boundary": not _within(part.boundary, part.n_own),
        "boundary_ends": part.boundary_ends[0] != 0 or not _ascends(part.boundary_ends),
        "halo_owner": not _within(part.halo_owner, len(sizes)),
        "halo_place": not _within(part.halo_place, max(sizes)),
    }
    return next((name for name, is_wrong in wrong.items() if is_wrong), None)


def _ascends(array: Integers) -> bool:
    return bool(np.all(array[1:] >= array[:-1]))


def _within(array: NDArray[Any], end: float) -> bool:
    """Whether all are numbers from 0 to below the end."""
    return array.size == 0 or bool(np.min(array) >= 0 and np.max(array) < end)  # comparisons with NaN are false


@dataclass(frozen=True, eq=False)
class Head:
    """What is known of a partitioned graph without reading a partition; `files` has bytes and sha256 by name."""

    n_nodes: int
    n_edges: int
    n_partitions: int
    n_hops: int
    partitioner: str
    cut: int
    halo: float
    sizes: tuple[int, ...]
    has_names: bool
    has_coordinates: bool
    files: Mapping[str, tuple[int, str]]


def numbered(name: str, number: int) -> str:
    """Name of one of several folders of arrays."""
    return f"{name}-{number:05d}"


def read_array(path: Path) -> NDArray[Any]:
    """Array of a file, memory-mapped and read-only; what is empty cannot be mapped, and is read."""
    try:
        with _reading:
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"folder must hold all files of a graph; got none at {path}. {_AGAIN}") from error
    except (ValueError, EOFError) as error:
        raise ValueError(f"folder must hold whole files; got {path} that cannot be read ({error}). {_AGAIN}") from error
    return array


def read_partition(folder: Path, number: int) -> Partition:
    """One partition, its arrays memory-mapped."""
    home = folder / numbered(PART, number)
    part = Partition(number, **{name: read_array(home / f"{name}.npy") for name in ARRAYS})
    n_halo = part.n_local - part.n_own
    lengths = {
        "nodes": part.n_local,
        "degrees": part.n_local,
        "boundary_ends": len(part.ends),
        "halo_owner": n_halo,
        "halo_place": n_halo,
        "indptr": int(part.ends[-2]) + 1,
        "indices": int(part.indptr[-1]),
        "weights": int(part.indptr[-1]),
        "boundary": int(part.boundary_ends[-1]),
    }
    for name, length in lengths.items():
        if getattr(part, name).shape != (length,):
            raise ValueError(
                f"folder must hold arrays that go together; got {home / name}.npy of shape {getattr(part, name).shape} "
                f"instead of ({length},). {_AGAIN}"
            )
    return part


def read_verified(folder: str, content_hash: str, number: int) -> Partition:
    """One partition, memory-mapped, whose files are as they were built and go together: nothing else is computed with.

    Checksums are compared when a process first reads it. Ranges are looked at each time, since compiled loops do not.
    """
    _verify_once(folder, content_hash, tuple(f"{numbered(PART, number)}/{name}.npy" for name in ARRAYS))
    part = read_partition(Path(folder), number)
    wrong = damaged_array(part, _head_of(folder, content_hash).sizes)
    if wrong is not None:
        home = Path(folder) / numbered(PART, number)
        raise ValueError(f"folder must hold partitions of one graph; got wrong {wrong} in {home}. {_AGAIN}")
    return part


def read_owners(folder: str, content_hash: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """For every node, in the user's order, the partition that owns it and its place there, memory-mapped."""
    _verify_once(folder, content_hash, (OWNERS, PLACES))
    return read_array(Path(folder) / OWNERS), read_array(Path(folder) / PLACES)


@lru_cache(maxsize=16)
def _head_of(folder: str, content_hash: str) -> Head:
    """Head of a folder that must still hold the graph of the hash."""
    head = read_head(Path(folder))
    if content_hash_of(head) != content_hash:
        raise ValueError(
            f"folder must hold the graph that was opened; got {folder}, which was built anew since. "
            "Open it again by PartitionedGraph.open."
        )
    return head


@lru_cache(maxsize=2**16)
def _verify_once(folder: str, content_hash: str, names: tuple[str, ...]) -> None:
    """Compare some files with their checksums, once per process; an error is raised anew each time."""
    verify_files(Path(folder), _head_of(folder, content_hash), names)


def checksum(path: Path) -> tuple[int, str]:
    """Number of bytes of a file and their sha256, read a piece at a time."""
    digest, n_bytes = hashlib.sha256(), 0
    with path.open("rb") as file:
        while piece := file.read(BYTES_READ_AT_ONCE):
            digest.update(piece)
            n_bytes += len(piece)
    return n_bytes, digest.hexdigest()


def file_names(n_partitions: int, has_names: bool, has_coordinates: bool) -> list[str]:
    """Names, relative to the folder, of all files but the head."""
    parts = [f"{numbered(PART, number)}/{name}.npy" for number in range(n_partitions) for name in ARRAYS]
    return parts + [OWNERS, PLACES] + [NAMES] * has_names + [COORDINATES] * has_coordinates


def head_text(head: Head) -> str:
    """The head as it is written; with it a folder is finished."""
    return json.dumps({"format": FORMAT, "version": VERSION} | asdict(head), indent=1)


def read_head(folder: Path) -> Head:
    """Head of a folder, its fields checked; the files that it lists must be there and have their lengths."""
    if not folder.is_dir():
        raise FileNotFoundError(f"folder must be a folder of a partitioned graph; got {folder}, which is none.")
    try:
        found = json.loads((folder / HEAD).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"folder must hold a finished partitioned graph; got {folder} without {HEAD}. "
            "Call the builder again with the same arguments: it goes on where it was interrupted."
        ) from error
    except ValueError as error:
        raise ValueError(f"folder must hold a readable {HEAD}; got {error} in {folder}. {_AGAIN}") from error
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise ValueError(f"folder must hold a partitioned graph; got another kind of {HEAD} in {folder}.")
    version = found.pop("version", None)
    if version != VERSION:
        raise ValueError(
            f"folder must have format version {VERSION}; got {version!r} in {folder}. "
            "Use the version of spectralgp that wrote it, or build it again."
        )
    head = _as_head(found, folder)
    _check_files(folder, head)
    return head


def _as_head(found: dict[str, Any], folder: Path) -> Head:
    kinds: dict[str, Any] = {"partitioner": str, "halo": int | float, "sizes": list, "files": dict}
    kinds |= dict.fromkeys(("has_names", "has_coordinates"), bool)
    for field in fields(Head):
        kind = kinds.get(field.name, int)
        value = found.get(field.name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            _refuse(f"{field.name} = {value!r:.60}", folder)
    if len(found["sizes"]) != found["n_partitions"] or sum(found["sizes"]) != found["n_nodes"]:
        _refuse("sizes that do not add up to the nodes", folder)
    try:
        files = {name: (int(n_bytes), str(digest)) for name, (n_bytes, digest) in found["files"].items()}
    except (TypeError, ValueError):
        _refuse("files without bytes and sha256", folder)
    if set(files) != set(file_names(found["n_partitions"], found["has_names"], found["has_coordinates"])):
        _refuse("a list of files that is not that of its partitions", folder)
    chosen = {field.name: found[field.name] for field in fields(Head)}
    return Head(**chosen | {"sizes": tuple(found["sizes"]), "files": files})


def _refuse(what: str, folder: Path) -> NoReturn:
    raise ValueError(f"folder must hold a well-formed {HEAD}; got {what} in {folder}. {_AGAIN}")


def _check_files(folder: Path, head: Head) -> None:
    """Every file must be there, as long as it was; this reads none of them."""
    for name, (n_bytes, _) in head.files.items():
        path = folder / name
        if not path.is_file():
            raise FileNotFoundError(f"folder must hold all files of a graph; got none at {path}. {_AGAIN}")
        found = path.stat().st_size
        if found != n_bytes:
            raise ValueError(f"folder must hold whole files; got {found} bytes of {n_bytes} in {path}. {_AGAIN}")


def content_hash_of(head: Head) -> str:
    """What tells a graph from any other: a digest of the checksums of its files."""
    sums = "".join(digest for _, (_, digest) in sorted(head.files.items()))
    return hashlib.sha256(sums.encode()).hexdigest()


def verify_files(folder: Path, head: Head, names: Iterable[str]) -> None:
    """Compare files with their checksums."""
    for name in names:
        if checksum(folder / name) != head.files[name]:
            raise ValueError(f"folder must hold files as they were built; got {folder / name} changed. {_AGAIN}")
