"""Parts of the benchmark of partitioned graphs: sizes, clusters whose memory is watched, points and signals."""

from __future__ import annotations

import os
import re
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _large import GIGABYTE, peak_memory, present_memory

from spectralgp.graphs.operators import MomentPass, Operator

N_WORKERS = 2
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
WATCHED = 0.02  # seconds between two looks at the memory of the workers


@dataclass(frozen=True)
class Cost:
    """A pass over a graph that fits in memory, by partitions and on one machine."""

    n_nodes: int = 1_000_000
    n_neighbors: int = 8
    n_signals: int = 32
    n_moments: int = 129
    partitions: tuple[int, ...] = (2, 4, 8)
    repeats: int = 6


@dataclass(frozen=True)
class Streamed:
    """A fit and a prediction on a graph that the workers have no memory for."""

    n_nodes: int = 20_000_000
    n_neighbors: int = 6
    n_signals: int = 8
    n_partitions: int = 64
    n_moments: int = 33
    gigabytes: float = 3.0  # of all workers together
    chunk: int = 2**18  # nodes
    n_new: int = 2


@dataclass(frozen=True)
class Paper:
    """Measurements for the estimate for a billion nodes: ten edges per node, and nearly empty tasks."""

    n_nodes: int = 1_000_000
    n_neighbors: int = 17
    n_signals: int = 32
    n_steps: int = 32
    n_partitions: int = 2
    n_small: int = 64_000
    small_partitions: int = 64


@dataclass(frozen=True)
class Sizes:
    """All three."""

    cost: Cost
    streamed: Streamed
    paper: Paper


FULL = Sizes(Cost(), Streamed(), Paper())
QUICK = Sizes(
    Cost(n_nodes=100_000, n_signals=8, n_moments=33, partitions=(2,), repeats=1),
    Streamed(n_nodes=100_000, n_signals=4, n_partitions=4, n_moments=17, gigabytes=1.6, chunk=2**15),
    Paper(n_nodes=20_000, n_signals=8, n_steps=16, n_small=4_000, small_partitions=4),
)


class Memory:
    """The largest memory of processes while they are watched, in gigabytes; a process that ends is noted."""

    def __init__(self, processes: dict[str, int]) -> None:
        self.processes, self.peak, self.lost = processes, dict.fromkeys(processes, 0.0), set[str]()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(WATCHED):
            for name, number in self.processes.items():
                try:
                    self.peak[name] = max(self.peak[name], memory_of(number))
                except OSError:
                    self.lost.add(name)


def memory_of(process: int) -> float:
    """Resident memory of a process now, in gigabytes."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / GIGABYTE


@contextmanager
def cluster(folder: Path, gigabytes: float | None = None) -> Iterator[Any]:
    """A client of two local workers with one thread each; `gigabytes` is the memory of both together."""
    import dask
    from distributed import Client, LocalCluster

    from spectralgp.graphs.partitioned.operator import QUIET

    limit = 0 if gigabytes is None else int(gigabytes * GIGABYTE / N_WORKERS)
    with warnings.catch_warnings(), dask.config.set(QUIET):
        warnings.simplefilter("ignore")  # of Dask's own, about ports
        with (
            LocalCluster(
                n_workers=N_WORKERS,
                threads_per_worker=1,
                memory_limit=limit,
                dashboard_address=None,
                local_directory=str(folder / "workers"),
            ) as local,
            Client(local) as client,
        ):
            yield client


def run_on(client: Any, function: Any) -> dict[str, Any]:
    """Run a function in every worker: answers by address."""
    answers: dict[str, Any] = client.run(function)
    return answers


def sent_by(dask_worker: Any) -> int:
    """Bytes that a worker has sent to others."""
    return int(dask_worker.transfer_outgoing_bytes_total)


def kills(folder: Path) -> int:
    """Workers that Dask killed or restarted, by what it wrote to a file of messages."""
    text = (folder / "messages").read_text() if (folder / "messages").exists() else ""
    return len(re.findall(r"exceeded \d+% memory budget|Restarting worker|Removing worker", text))


@contextmanager
def messages_in(folder: Path) -> Iterator[None]:
    """Dask's messages go to a file."""
    import logging

    handler = logging.FileHandler(folder / "messages")
    logger = logging.getLogger("distributed")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


def write_points(n_nodes: int, folder: Path, chunk: int = 2**20) -> Path:
    """Random points in the unit square, in random order, written a chunk at a time."""
    path = folder / "points.npy"
    points = np.lib.format.open_memmap(path, "w+", dtype=np.float64, shape=(n_nodes, 2))
    for start in range(0, n_nodes, chunk):
        stop = min(start + chunk, n_nodes)
        points[start:stop] = np.random.default_rng([0, start]).random((stop - start, 2))
    points.flush()
    return path


def wave_at(inputs: Any, points: Any) -> Any:
    """A wave that moves with the input, at points."""
    return np.sin(np.array([[7.0, 11.0]]) @ points.T + 2 * np.reshape(inputs, (-1, 1)))


def write_signals(points: Any, n_signals: int, chunk: int, path: Path) -> None:
    """A wave that moves from signal to signal, with noise, as a Zarr array that is never whole in memory."""
    import zarr

    n_nodes, inputs = len(points), np.linspace(0, 1, n_signals)
    stored = zarr.create_array(str(path), shape=(n_signals, n_nodes), chunks=(n_signals, chunk), dtype="f8")
    for start in range(0, n_nodes, chunk):
        some = np.asarray(points[start : start + chunk])
        noise = np.random.default_rng([1, start]).standard_normal((n_signals, len(some)))
        stored[:, start : start + len(some)] = wave_at(inputs, some) + 0.3 * noise


def moment_pass(operator: Operator, block: Any, n_moments: int) -> MomentPass:
    """All products of the columns after each step."""
    made = MomentPass(operator, block, gram=True)
    made.extend(n_moments)
    return made


def client_memory() -> dict[str, float]:
    """Of the process that is asked."""
    return {"now": present_memory(), "peak": peak_memory()}


def cpu(client: Any) -> tuple[float, float]:
    """Seconds of the processor so far: of the workers together, and of this process, which has the scheduler too."""
    return sum(run_on(client, time.process_time).values()), time.process_time()
