"""Which worker each partition is at home with, and what partitions tell those of other workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


def shared_out(homes: Sequence[str], workers: Sequence[str]) -> list[str]:
    """Homes of the partitions when these workers are there.

    Partitions stay where they are, as far as their worker is still there and has no more than its share. The others go
    to workers that have less, partitions that follow each other to the same one.

    Parameters
    ----------
    homes : sequence of str
        Where the partitions were at home before; workers that are not there if nowhere.
    workers : sequence of str
        Who is there.

    Returns
    -------
    list of str
    """
    n_partitions, n_workers = len(homes), len(workers)
    stops = [n_partitions * number // n_workers for number in range(n_workers + 1)]
    room = {worker: stops[number + 1] - stops[number] for number, worker in enumerate(workers)}
    kept: list[str | None] = []
    for home in homes:
        stays = room.get(home, 0) > 0
        kept.append(home if stays else None)
        if stays:
            room[home] -= 1
    free = iter([worker for worker in workers for _ in range(room[worker])])
    return [home or next(free) for home in kept]


class Homes:
    """The worker that each partition is at home with: its tasks run there, and its states stay there.

    Left to itself, Dask gives tasks and with them whole states to whoever has less to do.

    Parameters
    ----------
    n_partitions : int
        Number of partitions.
    """

    def __init__(self, n_partitions: int) -> None:
        self._now, self.known = [""] * n_partitions, set[str]()

    def now(self, workers: Sequence[str]) -> list[str]:
        """Where partitions are at home with the workers that are there now; nowhere (empty) if there are none."""
        self._now = shared_out(self._now, workers) if workers else [""] * len(self._now)
        self.known |= set(workers)
        return self._now


def at(home: str) -> dict[str, Any]:
    """Options of a task that runs there, and elsewhere only if that worker is lost."""
    return {"workers": [home], "allow_other_workers": True} if home else {}


@dataclass(frozen=True, eq=False)
class Told:
    """What partitions told each other.

    Parameters
    ----------
    homes : list of str
        Where partitions were at home then.
    messages : list of dict
        What each told those at home with a worker, by worker.
    """

    homes: list[str]
    messages: list[dict[str, Any]]

    @property
    def futures(self) -> list[Any]:
        """All messages."""
        return [future for told in self.messages for future in told.values()]

    def inbox(self, number: int, neighbours: Sequence[int]) -> list[Any]:
        """What a partition was told by its neighbours."""
        return [self.messages[one][self.homes[number]] for one in neighbours]
