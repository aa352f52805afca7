"""The Dask cluster: its client, which worker has which partition, and what is said when it fails."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from spectralgp._basics.extras import require

PURPOSE = "to compute on partitioned graphs"
QUIET = {"distributed.scheduler.work-stealing": False, "distributed.scheduler.active-memory-manager.start": False}
"""Settings of Dask under which no state of a recurrence is moved or copied; for clusters of your own too."""

PATIENCE = 10.0  # seconds after which is asked whether any worker is left
NO_ROOM = "workers must have memory for their partitions"
MORE_ROOM = "Cut the graph into more partitions, pass Y as float32, or raise the workers' memory_limit."


def current_client() -> Any:
    """The user's client, else a new one of a local cluster, with one worker per core and a message."""
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
    """Sorted addresses of the workers; a RuntimeError if the scheduler does not answer."""
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


@contextmanager
def explained_failures(client: Any) -> Iterator[None]:
    """Say in plain words what it means when workers or the scheduler are lost, or tasks have no room."""
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


def settle(client: Any, futures: list[Any], workers: set[str]) -> None:
    """Wait until tasks are done, and raise what failed; a RuntimeError if all the workers that had partitions are gone.

    Dask does not give to others what was meant for workers that were all lost at once.
    """
    distributed = require("distributed", "dask", PURPOSE)
    with explained_failures(client):
        while True:
            try:
                distributed.wait(futures, timeout=PATIENCE)
                break
            except distributed.TimeoutError:
                alive = set(workers_of(client))
                if workers and alive and not alive & workers:
                    raise RuntimeError(
                        f"some worker must live as long as a pass; got all {len(workers)} lost since it began. Nothing "
                        "was changed: run it again."
                    ) from None
        for future in futures:
            if future.status != "finished":
                future.result()


# ----------------------------------------------------------------------------------------------------- placement


def placed_evenly(before: Sequence[str], workers: Sequence[str]) -> list[str]:
    """The worker of each partition, given where partitions were before ("" for nowhere) and the workers of now.

    Partitions stay with a worker that lives and has no more than its share; others go to workers that have less,
    consecutive ones to the same.
    """
    n_partitions, n_workers = len(before), len(workers)
    stops = [n_partitions * number // n_workers for number in range(n_workers + 1)]
    room = {worker: stops[number + 1] - stops[number] for number, worker in enumerate(workers)}
    kept: list[str | None] = []
    for worker in before:
        stays = room.get(worker, 0) > 0
        kept.append(worker if stays else None)
        if stays:
            room[worker] -= 1
    free = iter([worker for worker in workers for _ in range(room[worker])])
    return [worker or next(free) for worker in kept]


class Placement:
    """The worker of each partition, where its tasks run: Dask would move states to whichever has less to do."""

    def __init__(self, n_partitions: int) -> None:
        self._workers, self.known = [""] * n_partitions, set[str]()

    def among(self, workers: Sequence[str]) -> list[str]:
        """The worker of each partition, given those that are there now; "" if there are none."""
        self._workers = placed_evenly(self._workers, workers) if workers else [""] * len(self._workers)
        self.known |= set(workers)
        return self._workers


def pinned_to(worker: str) -> dict[str, Any]:
    """Options of a task that runs on a worker, and elsewhere only if that worker is lost."""
    return {"workers": [worker], "allow_other_workers": True} if worker else {}
