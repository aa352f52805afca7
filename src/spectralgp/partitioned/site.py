"""The place where a folder of partitions is built: what is finished stays, so that an interrupted build goes on."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.files import atomic_write
from spectralgp._basics.progress import report
from spectralgp.graphs.points import small_integers
from spectralgp.partitioned.cutting import Cut
from spectralgp.partitioned.folder import COORDINATES, HEAD, NAMES, OWNERS, PLACES, UNFINISHED, read_array, write_arrays

JOURNAL = "journal.json"
SCRATCH = "building"
LOCK = "building.lock"
PROCESS = secrets.token_hex(8)  # tells this process from one that had its number before
PART = r"part-\d{5,}"
BESIDE = (NAMES, COORDINATES, OWNERS, PLACES)  # files that may stand beside the head


@dataclass(frozen=True, eq=False)
class Site:
    """A folder that is being built, with its scratch folder; arrays in it are memory-mapped."""

    folder: Path

    @property
    def scratch(self) -> Path:
        """Folder of what is needed until the graph is finished."""
        return self.folder / SCRATCH

    def keep(self, name: str, make: Callable[[], dict[str, NDArray[Any]]]) -> None:
        """Make arrays and write them, unless that was done before."""
        if not (self.scratch / name).is_dir():
            write_arrays(self.scratch / name, make(), durable=False)

    def kept(self, name: str, array: str) -> NDArray[Any]:
        """One of the arrays that were kept under a name."""
        return read_array(self.scratch / name / f"{array}.npy")

    def keep_cut(self, make: Callable[[], Cut]) -> None:
        """Keep which nodes go where."""
        if not (self.scratch / "cut").is_dir():
            cut = make()
            n_nodes = len(cut.order)
            rank = np.empty(n_nodes, dtype=small_integers(n_nodes))
            rank[cut.order] = np.arange(n_nodes, dtype=rank.dtype)
            order = cut.order.astype(rank.dtype, copy=False)
            self.keep("cut", lambda: {"order": order, "rank": rank, "starts": cut.starts})

    @cached_property
    def order(self) -> NDArray[Any]:
        """Nodes by rank."""
        return self.kept("cut", "order")

    @cached_property
    def rank(self) -> NDArray[Any]:
        """Ranks of the nodes."""
        return self.kept("cut", "rank")

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Ranks at which partitions begin, and the number of nodes."""
        return np.array(self.kept("cut", "starts"))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.starts[-1])

    @property
    def n_partitions(self) -> int:
        """Number of partitions."""
        return len(self.starts) - 1

    def own(self, number: int) -> slice:
        """Ranks of a partition's own nodes."""
        return slice(int(self.starts[number]), int(self.starts[number + 1]))

    def owners(self, ranks: NDArray[Any]) -> NDArray[np.int32]:
        """Partitions that own nodes."""
        return (np.searchsorted(self.starts, ranks, side="right") - 1).astype(np.int32)

    def each(self, step: str, function: Callable[[int], None]) -> None:
        """Do a step for every partition, one after the other."""
        for number in range(self.n_partitions):
            function(number)
            report(f"{step} {number + 1} of {self.n_partitions}")


@contextmanager
def building(folder: Path | str, fingerprint: str, overwrite: bool) -> Iterator[Site]:
    """Folder to build in; arguments that turn out wrong leave nothing in it, and any other error what is finished.

    Raises
    ------
    ValueError
        If the folder is finished and may not be overwritten, was begun with other arguments, holds other things, or
        another process builds in it.
    """
    site = Site(Path(folder).absolute())
    if site.folder.exists() and (not site.folder.is_dir() or any(map(_is_foreign, site.folder.iterdir()))):
        raise ValueError(f"folder must be new or empty; got {folder} with other things in it. Choose another folder.")
    if not overwrite:
        _require_unfinished(site.folder)  # before anything is written there
    site.folder.mkdir(parents=True, exist_ok=True)
    with _locked(site.folder):
        _begin(site, fingerprint, overwrite)
        try:
            yield site
        except (TypeError, ValueError):
            clear(site.folder)
            raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from building in a folder; a lock whose process is dead is taken over."""
    lock, own = folder / LOCK, {"host": socket.gethostname(), "pid": os.getpid(), "process": PROCESS}
    if not _taken(lock, own):
        holder = _holder(lock)
        if _is_dead(holder, own):
            _remove_dead(lock, holder)
        if not _taken(lock, own):
            holder = _holder(lock)
            builder = f"process {holder['pid']} on {holder['host']}" if holder else "one that has not said which"
            raise ValueError(
                f"folder must be built by one process at a time; got {folder}, and another process builds here: "
                f"{builder}. Wait until it is done, or choose another folder; if it runs no more, delete {lock}."
            )
    try:
        yield
    finally:
        if _holder(lock) == own:
            lock.unlink()


def _taken(lock: Path, own: dict[str, Any]) -> bool:
    """Whether a lock could be made, which says who holds it."""
    try:
        file = lock.open("x", encoding="utf-8")
    except FileExistsError:
        return False
    try:
        with file:
            json.dump(own, file)
    except BaseException:
        lock.unlink()
        raise
    return True


def _holder(lock: Path) -> dict[str, Any]:
    """What a lock says of the process that holds it; nothing if it is gone, or not written yet."""
    try:
        found = json.loads(lock.read_text(encoding="utf-8"))
        return {"host": str(found["host"]), "pid": int(found["pid"]), "process": str(found["process"])}
    except (OSError, LookupError, TypeError, ValueError):
        return {}


def _is_dead(holder: dict[str, Any], own: dict[str, Any]) -> bool:
    """Whether a process is known to run no more: on this machine, by a number that nobody has or that is now ours."""
    if not holder or holder["host"] != own["host"]:
        return False
    if holder["pid"] == own["pid"]:
        return bool(holder["process"] != own["process"])
    if os.name != "posix":  # elsewhere the question would end the process that is asked for
        return False
    try:
        os.kill(holder["pid"], 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is there, and somebody else's
        return False
    return False


def _remove_dead(lock: Path, holder: dict[str, Any]) -> None:
    """Delete the lock of a dead process; one process at a time, lest a second deletes the lock of the first."""
    guard = lock.with_name(f"{UNFINISHED}{LOCK}")
    try:
        guard.mkdir()
    except FileExistsError:
        return
    if _holder(lock) == holder:
        lock.unlink()
    shutil.rmtree(guard, ignore_errors=True)


def _require_unfinished(folder: Path) -> None:
    if (folder / HEAD).exists():
        raise ValueError(
            f"folder must not hold a partitioned graph yet; got {folder}. Read it by PartitionedGraph.open, choose "
            "another folder, or pass overwrite=True."
        )


def _begin(site: Site, fingerprint: str, overwrite: bool) -> None:
    """Make the folder one to build in: new, or interrupted with the same arguments."""
    folder, journal = site.folder, site.scratch / JOURNAL
    if overwrite and ((folder / HEAD).exists() or (journal.exists() and _noted(journal) != fingerprint)):
        clear(folder)
    _require_unfinished(folder)
    if journal.exists():
        if _noted(journal) != fingerprint:
            raise ValueError(
                f"folder must have been begun with the same arguments to be finished; got {folder}, begun with others. "
                "Choose another folder, delete this one, or pass overwrite=True."
            )
        _sweep(folder)
        return
    site.scratch.mkdir(exist_ok=True)
    with atomic_write(journal) as beside:
        beside.write_text(json.dumps({"fingerprint": fingerprint}), encoding="utf-8")


def _is_foreign(path: Path) -> bool:
    """Whether something in the folder is none of what building writes there."""
    ours = path.name in (HEAD, SCRATCH, LOCK, *BESIDE) or re.fullmatch(PART, path.name)
    return not ours and not path.name.startswith(UNFINISHED) and not _is_half_written(path)


def _noted(journal: Path) -> str:
    return str(json.loads(journal.read_text(encoding="utf-8"))["fingerprint"])


def clear(folder: Path) -> None:
    """Delete what building writes and nothing else; the head goes first, so that no half of a graph looks whole."""
    for name in (HEAD, *BESIDE):
        (folder / name).unlink(missing_ok=True)
    _sweep(folder)
    for part in [*(path for path in folder.iterdir() if re.fullmatch(PART, path.name)), folder / SCRATCH]:
        shutil.rmtree(part, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Delete what a process that was killed left half-written."""
    for left in folder.glob(f"{UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)
    for file in filter(_is_half_written, list(folder.iterdir())):
        file.unlink()


def _is_half_written(path: Path) -> bool:
    """Whether a file is one that `atomic_write` had begun."""
    return any(path.match(f".{name.stem}-*{name.suffix}") for name in map(Path, (HEAD, *BESIDE)))


def fingerprint_of(things: Iterable[Any]) -> str:
    """Digest of arguments: arrays by their bytes, a piece at a time, others by how they are written."""
    digest = hashlib.sha256()
    for thing in things:
        if isinstance(thing, np.ndarray):
            digest.update(f"{thing.dtype}{thing.shape}".encode())
            for start in range(0, len(thing), 1 << 20):
                digest.update(np.ascontiguousarray(thing[start : start + (1 << 20)]).data)
        else:
            digest.update(repr(thing).encode())
        digest.update(b"|")
    return digest.hexdigest()
