"""Folder of a partitioned graph: a head in JSON with checksums, and memory-mapped arrays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.checks import Array, Integers

FORMAT = "spectralgp partitioned graph"
VERSION = 1
HEAD, NAMES, COORDINATES = "head.json", "names.json", "coordinates.npy"
OWNERS, PLACES = "owners.npy", "places.npy"
PART = "part"  # folder of a partition, numbered
_reading = Lock()  # one header at a time: Python 3.11 may fail to parse several in threads

_AGAIN = "Build the folder again, or copy it again from where it was built."


@dataclass(frozen=True, eq=False)
class Partition:
    """Own nodes, the halo of nodes within `n_hops` hops around them, and the rows of the weights for `n_hops` steps.

    Local nodes are the own ones first, then the halo ring by ring; within a ring by owner, then by place in the owner's
    own nodes. Rows of the weights (CSR) are those of the first ``ends[-2]`` local nodes; their columns are local
    positions, sorted. The level of an own node is the smallest ring of another partition that contains it.
    """

    number: int  # of the partition, from 0
    nodes: NDArray[np.int64]  # (n_local,) local nodes, in the user's order of nodes
    ends: NDArray[np.int64]  # (n_hops + 1,) numbers of local nodes within 0, 1, ... hops of the own ones
    indptr: Integers  # int32 where that suffices
    indices: NDArray[np.int32]
    weights: Array
    degrees: Array  # (n_local,) sums of the weights at all local nodes, the last ring included
    boundary: NDArray[np.int32]  # own positions in the halos of others, by level, then by position
    boundary_ends: NDArray[np.int64]  # (n_hops + 1,) numbers of boundary nodes of level 0 (none), at most 1, ...
    halo_owner: NDArray[np.int32]  # (n_halo,) the partition that owns each halo node
    halo_place: NDArray[np.int32]  # (n_halo,) its place in the owner's boundary

    @property
    def n_own(self) -> int:
        """Number of own nodes."""
        return int(self.ends[0])

    @property
    def n_local(self) -> int:
        """Number of own and halo nodes."""
        return int(self.ends[-1])


ARRAYS = tuple(field.name for field in fields(Partition) if field.name != "number")


def numbered(name: str, number: int) -> str:
    """Name of one of several folders of arrays."""
    return f"{name}-{number:05d}"


def file_names(n_partitions: int, has_names: bool, has_coordinates: bool) -> list[str]:
    """Names, relative to the folder, of all files but the head."""
    parts = [f"{numbered(PART, number)}/{name}.npy" for number in range(n_partitions) for name in ARRAYS]
    return parts + [OWNERS, PLACES] + [NAMES] * has_names + [COORDINATES] * has_coordinates


def checksum(path: Path) -> tuple[int, str]:
    """Number of bytes of a file and their sha256, read a piece at a time."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return file.tell(), digest.hexdigest()


@dataclass(frozen=True, eq=False)
class FolderHeader:
    """Head of a partitioned graph: its properties, and the checksums of its files."""

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
    files: Mapping[str, tuple[int, str]]  # bytes and sha256 by name

    @cached_property
    def content_hash(self) -> str:
        """Digest of the checksums of all files, which identifies the graph."""
        sums = "".join(digest for _, (_, digest) in sorted(self.files.items()))
        return hashlib.sha256(sums.encode()).hexdigest()

    def write(self, path: Path) -> None:
        """Write the head, which completes the folder."""
        text = json.dumps({"format": FORMAT, "version": VERSION} | asdict(self), indent=1)
        path.write_text(text, encoding="utf-8")

    def verify(self, folder: Path, names: Iterable[str]) -> None:
        """Compare files with their checksums."""
        for name in names:
            if checksum(folder / name) != self.files[name]:
                raise ValueError(f"folder must hold files as they were built; got {folder / name} changed. {_AGAIN}")


def read_head(folder: Path) -> FolderHeader:
    """Read the head of a folder and check its fields; its files must exist and have their lengths."""
    import msgspec

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
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"folder must hold a partitioned graph; got another kind of {HEAD} in {folder}.")
    if found.get("version") != VERSION:
        raise ValueError(
            f"folder must have format version {VERSION}; got {found.get('version')!r} in {folder}. "
            "Use the version of spectralgp that wrote it, or build it again."
        )
    try:
        head = msgspec.convert(found, FolderHeader)
        if len(head.sizes) != head.n_partitions or sum(head.sizes) != head.n_nodes:
            raise ValueError("sizes that do not add up to the nodes")
        if set(head.files) != set(file_names(head.n_partitions, head.has_names, head.has_coordinates)):
            raise ValueError("a list of files that is not that of its partitions")
    except ValueError as error:
        raise ValueError(f"folder must hold a well-formed {HEAD}; got {error} in {folder}. {_AGAIN}") from error
    for name, (n_bytes, _) in head.files.items():
        path = folder / name
        if not path.is_file():
            raise FileNotFoundError(f"folder must hold all files of a graph; got none at {path}. {_AGAIN}")
        if path.stat().st_size != n_bytes:
            raise ValueError(
                f"folder must hold whole files; got {path.stat().st_size} bytes of {n_bytes} in {path}. {_AGAIN}"
            )
    return head


def read_array(path: Path) -> NDArray[Any]:
    """Array of a file, memory-mapped and read-only; an empty one is read."""
    try:
        with _reading:
            array: NDArray[Any] = np.load(path, mmap_mode="r")  # never objects
    except FileNotFoundError as error:
        raise FileNotFoundError(f"folder must hold all files of a graph; got none at {path}. {_AGAIN}") from error
    except (ValueError, EOFError) as error:
        raise ValueError(f"folder must hold whole files; got {path} that cannot be read ({error}). {_AGAIN}") from error
    return array


def read_partition(folder: Path, number: int) -> Partition:
    """One partition, its arrays memory-mapped."""
    home = folder / numbered(PART, number)
    part = Partition(number, **{name: read_array(home / f"{name}.npy") for name in ARRAYS})
    lengths = dict.fromkeys(("nodes", "degrees"), part.n_local)
    lengths |= dict.fromkeys(("halo_owner", "halo_place"), part.n_local - part.n_own)
    lengths |= dict.fromkeys(("indices", "weights"), int(part.indptr[-1]))
    lengths |= {"indptr": int(part.ends[-2]) + 1, "boundary": int(part.boundary_ends[-1])}
    lengths |= {"boundary_ends": len(part.ends)}
    for name, length in lengths.items():
        if getattr(part, name).shape != (length,):
            raise ValueError(
                f"folder must hold arrays that go together; got {home / name}.npy of shape {getattr(part, name).shape} "
                f"instead of ({length},). {_AGAIN}"
            )
    return part


def read_verified(folder: str, content_hash: str, number: int) -> Partition:
    """One verified partition, memory-mapped: checksums once per process, ranges each time."""
    _verify_once(folder, content_hash, tuple(f"{numbered(PART, number)}/{name}.npy" for name in ARRAYS))
    part, sizes = read_partition(Path(folder), number), _head_of(folder, content_hash).sizes
    limits = {"nodes": sum(sizes), "indices": part.n_local, "weights": np.inf, "degrees": np.inf}
    limits |= {"boundary": part.n_own, "halo_owner": len(sizes), "halo_place": max(sizes)}
    begins = {"ends": sizes[number], "indptr": 0, "boundary_ends": 0}
    for name in ARRAYS:
        array = getattr(part, name)
        if name in begins:  # compiled loops check no ranges
            is_right = array[0] == begins[name] and np.all(array[1:] >= array[:-1])
        else:  # comparisons with NaN are false
            is_right = np.min(array, initial=0) >= 0 and np.max(array, initial=0) < limits[name]
        if not is_right:
            home = Path(folder) / numbered(PART, number)
            raise ValueError(f"folder must hold partitions of one graph; got wrong {name} in {home}. {_AGAIN}")
    return part


def read_owners(folder: str, content_hash: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """For every node, in the user's order, the partition that owns it and its place there, memory-mapped."""
    _verify_once(folder, content_hash, (OWNERS, PLACES))
    return read_array(Path(folder) / OWNERS), read_array(Path(folder) / PLACES)


@lru_cache(maxsize=16)
def _head_of(folder: str, content_hash: str) -> FolderHeader:
    """Head of a folder that must still hold the graph of the hash."""
    head = read_head(Path(folder))
    if head.content_hash != content_hash:
        raise ValueError(
            f"folder must hold the graph that was opened; got {folder}, which was built anew since. "
            "Open it again by PartitionedGraph.open."
        )
    return head


@lru_cache(maxsize=2**16)
def _verify_once(folder: str, content_hash: str, names: tuple[str, ...]) -> None:
    """Compare some files with their checksums, once per process; an error is raised anew each time."""
    _head_of(folder, content_hash).verify(Path(folder), names)
