"""The Dask client: the user's, or a local one; and what is said when a cluster fails."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.extras import require
from spectralgp.partitioned.local import Place
from spectralgp.partitioned.partition import Partition

PURPOSE = "to compute on partitioned graphs"
QUIET = {"distributed.scheduler.work-stealing": False, "distributed.scheduler.active-memory-manager.start": False}
"""Settings of Dask under which no state of a recurrence is moved or copied; for clusters of your own too."""

PATIENCE = 10.0  # seconds after which is asked whether anyone is left to do the work
NO_ROOM = "workers must have memory for their partitions"
MORE_ROOM = "Cut the graph into more partitions, pass Y as float32, or raise the workers' memory_limit."


class Parted(Protocol):
    """What computing needs of a graph in partitions."""

    @property
    def folder(self) -> Path:
        """Where it is."""

    @property
    def mark(self) -> str:
        """What tells the graph from any other."""

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""

    @property
    def n_partitions(self) -> int:
        """Number of partitions."""

    @property
    def n_hops(self) -> int:
        """Number of rings of the halos."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of nodes that partitions own."""

    @property
    def is_in_partition_order(self) -> bool:
        """Whether signals come in the order of the partitions."""

    def own_nodes(self, number: int) -> NDArray[np.int64]:
        """Nodes that a partition owns."""

    def partition(self, number: int) -> Partition:
        """One partition."""


class Computing(Protocol):
    """What runs tasks on the partitions of a graph."""

    graph: Parted
    places: list[Place]
    n_nodes: int
    dtype: Any

    @property
    def client(self) -> Any:
        """Dask's client."""

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Run a task."""

    def each(self, function: Callable[..., Any], rows: Iterable[Sequence[Any]]) -> list[Any]:
        """Run a task for every partition where it is at home, each with its row of arguments."""


def current_client() -> Any:
    """The client that is there, else a new one of a local cluster, with a message.

    Workers of the local cluster have one thread each, as many as there are cores; states stay where they are.
    """
    distributed = require("distributed", "dask", PURPOSE)
    try:
        return distributed.get_client()
    except ValueError:
        pass
    n_workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with require("dask", "dask", PURPOSE).config.set(QUIET):
        client = distributed.Client(n_workers=n_workers, threads_per_worker=1)
    warnings.warn(
        f"No Dask client was there, so a local one with {n_workers} worker{'s' * (n_workers > 1)} was started "
        f"({client.dashboard_link}). Make your own before: dask.distributed.Client(...).",
        UserWarning,
        stacklevel=2,
    )
    return client


def workers_of(client: Any) -> list[str]:
    """Addresses of the workers that are there.

    Raises
    ------
    RuntimeError
        If the scheduler does not answer.
    """
    try:
        if client.status != "running":
            raise ConnectionError(f"the client is {client.status}")
        return sorted(client.ncores())
    except (OSError, CancelledError) as error:
        raise _lost(client, error) from error


def _lost(client: Any, error: BaseException) -> RuntimeError:
    address = client.scheduler.address if client.scheduler is not None else "an unknown address"
    return RuntimeError(
        f"the Dask scheduler at {address} must stay there until the work is done; got its connection closed "
        f"({type(error).__name__}). Nothing was changed: start a cluster and run it again."
    )


def settle(client: Any, futures: list[Any], homes: set[str]) -> None:
    """Wait until tasks are done or have failed.

    Parameters
    ----------
    client : Client
        Dask's.
    futures : list of Future
        The tasks.
    homes : set of str
        Workers that partitions were at home with.

    Raises
    ------
    RuntimeError
        If all of these are gone: Dask does not give to others what was meant for workers that were all lost at once.
    """
    distributed = require("distributed", "dask", PURPOSE)
    while True:
        try:
            distributed.wait(futures, timeout=PATIENCE)
        except distributed.TimeoutError:
            alive = set(workers_of(client))
            if homes and alive and not alive & homes:
                raise RuntimeError(
                    f"some worker must live as long as a pass; got all {len(homes)} lost since it began. Nothing was "
                    "changed: run it again."
                ) from None
        else:
            return


@contextmanager
def explaining(client: Any) -> Iterator[None]:
    """Say in plain words what it means when workers or the scheduler are lost.

    Raises
    ------
    RuntimeError
        If the scheduler was lost.
    MemoryError
        If a task has no room, or workers were killed at it, as those are that run out of memory.
    """
    distributed = require("distributed", "dask", PURPOSE)
    lost = (distributed.comm.CommClosedError, CancelledError, TimeoutError)
    try:
        yield
    except distributed.KilledWorker as error:
        worker = getattr(error.last_worker, "address", "a worker")
        limit = getattr(error.last_worker, "memory_limit", None)
        room = f" (memory limit {limit / 1e9:.2g} GB)" if limit else ""
        raise MemoryError(f"{NO_ROOM}; got {worker}{room} killed while it computed. {MORE_ROOM}") from error
    except MemoryError as error:  # of a task, or of the scheduler, which knows what no worker can hold
        raise MemoryError(f"{NO_ROOM}; got less: {error} {MORE_ROOM}") from error
    except lost as error:
        raise _lost(client, error) from error
