"""Dask clusters of tests: small, quiet, and on this machine."""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster

from spectralgp.graphs.partitioned.operator import QUIET


@contextmanager
def cluster(n_workers: int, *, processes: bool = True, **options: Any) -> Iterator[Client]:
    """A client of a local cluster whose workers have one thread each; in this process where `processes` is False."""
    with warnings.catch_warnings(), dask.config.set(QUIET):
        warnings.simplefilter("ignore")  # of Dask's own, about ports and old names
        with (
            LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=processes,
                dashboard_address=None,
                silence_logs=50,
                **options,
            ) as local,
            Client(local) as client,
        ):
            yield client


class Machines:
    """A scheduler and workers, each in a process of its own, as on machines that may fail; a folder is theirs."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._file = folder, folder / "scheduler.json"
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--host", "127.0.0.1"]
        self.scheduler = self._started([*command, "--no-dashboard", "--scheduler-file", str(self._file)])
        self.workers: list[subprocess.Popen[bytes]] = []

    def _started(self, command: list[str]) -> subprocess.Popen[bytes]:
        paths = os.pathsep.join(path for path in sys.path if path)  # they find what this process finds
        settings = {"DASK_" + name.upper().replace(".", "__").replace("-", "_"): str(on) for name, on in QUIET.items()}
        environment = os.environ | {"PYTHONPATH": paths} | settings
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @property
    def address(self) -> str:
        """Where the scheduler is, once it is there."""
        deadline = time.monotonic() + 60
        while not self._file.exists() or not self._file.read_text():
            assert time.monotonic() < deadline, "the scheduler did not start"
            time.sleep(0.05)
        return str(json.loads(self._file.read_text())["address"])

    def start(self) -> None:
        """Start a worker with one thread."""
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny"]
        command += ["--no-dashboard", "--local-directory", str(self._folder)]
        self.workers.append(self._started(command))

    def kill(self, number: int) -> None:
        """Kill a worker, as a machine that fails does."""
        process = self.workers.pop(number)
        process.kill()
        process.wait()


@contextmanager
def machines(n_workers: int) -> Iterator[tuple[Machines, Client]]:
    """Machines that may fail, and a client of theirs."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        own = Machines(Path(folder))
        try:
            for _ in range(n_workers):
                own.start()
            with Client(own.address, timeout=60) as client:
                client.wait_for_workers(n_workers, timeout=60)
                yield own, client
        finally:
            for process in (own.scheduler, *own.workers):
                process.kill()
                process.wait()
