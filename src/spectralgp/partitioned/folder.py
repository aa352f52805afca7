"""The folder of a partitioned graph: a head in JSON with checksums, and arrays in files that can be memory-mapped."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.files import atomic_write
from spectralgp.partitioned.partition import Partition, damage_of

FORMAT = "spectralgp partitioned graph"
VERSION = 1
HEAD, NAMES, COORDINATES = "head.json", "names.json", "coordinates.npy"
OWNERS, PLACES = "owners.npy", "places.npy"
ARRAYS = tuple(field.name for field in fields(Partition) if field.name != "number")
UNFINISHED = ".unfinished-"
CHUNK = 1 << 24
_reading = Lock()  # one header at a time: Python 3.11 may fail to parse several in threads

_AGAIN = "Build the folder again, or copy it again from where it was built."


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


def part_name(number: int) -> str:
    """Name of the folder of a partition."""
    return f"part-{number:05d}"


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Array into a file that is written whole or not at all."""
    with atomic_write(path) as beside:
        np.save(beside, array, allow_pickle=False)


def write_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]], *, durable: bool = True) -> None:
    """Arrays into files of their names in a new folder, which is there once all of them are.

    What is durable is on the disk by then: it outlives a loss of power, but that takes milliseconds a file.
    """
    beside = folder.with_name(f"{UNFINISHED}{folder.name}")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    try:
        for name, array in arrays.items():
            with (beside / f"{name}.npy").open("wb") as file:
                np.save(file, array, allow_pickle=False)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
        os.replace(beside, folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


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
    home = folder / part_name(number)
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
    _verify_once(folder, content_hash, tuple(f"{part_name(number)}/{name}.npy" for name in ARRAYS))
    part = read_partition(Path(folder), number)
    wrong = damage_of(part, _head_of(folder, content_hash).sizes)
    if wrong is not None:
        home = Path(folder) / part_name(number)
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
    """Compare some files with their checksums, once for each process; an error is raised anew each time."""
    verify_files(Path(folder), _head_of(folder, content_hash), names)


def checksum(path: Path) -> tuple[int, str]:
    """Number of bytes of a file and their sha256, read a piece at a time."""
    digest, n_bytes = hashlib.sha256(), 0
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            digest.update(piece)
            n_bytes += len(piece)
    return n_bytes, digest.hexdigest()


def file_names(n_partitions: int, has_names: bool, has_coordinates: bool) -> list[str]:
    """Names, relative to the folder, of all files but the head."""
    parts = [f"{part_name(number)}/{name}.npy" for number in range(n_partitions) for name in ARRAYS]
    return parts + [OWNERS, PLACES] + [NAMES] * has_names + [COORDINATES] * has_coordinates


def write_head(folder: Path, head: Head) -> None:
    """Write the head; with it the folder is finished."""
    with atomic_write(folder / HEAD) as beside:
        beside.write_text(json.dumps({"format": FORMAT, "version": VERSION} | asdict(head), indent=1), encoding="utf-8")


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
