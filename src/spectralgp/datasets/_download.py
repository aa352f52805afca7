"""Downloads, with a bar where a person looks."""

from __future__ import annotations

from pathlib import Path

from spectralgp._basics.extras import require
from spectralgp._basics.progress import mention, progress_bar, report

N_STEPS = 100
CHUNK = 2**16


def download(url: str, path: Path) -> None:
    """Write what an address serves to a file.

    Raises
    ------
    OSError
        If the server cannot be reached, has no such file or hangs up early; an unfinished file stays behind.
    """
    pooch = require("pooch", "data", "to download the paper's data")
    with progress_bar(f"download of {url.rpartition('/')[2]}", N_STEPS, show=True):
        pooch.HTTPDownloader(progressbar=_Steps(), chunk_size=CHUNK)(url, str(path), None)


class _Steps:
    """Bytes as pooch counts them, reported in hundredths of `total`, which pooch sets; zero where it is not known."""

    def __init__(self) -> None:
        self.total = 0
        self._n_bytes = 0
        self._n_steps = 0

    def update(self, n_bytes: int) -> None:
        self._n_bytes += n_bytes
        if not self.total:
            mention(f"{self._n_bytes / 1e6:.1f} MB")
            return
        n_bytes = min(self._n_bytes, self.total)  # the last chunk is counted as a whole one
        while self._n_steps < N_STEPS * n_bytes // self.total:
            self._n_steps += 1
            report(f"{n_bytes / 1e6:.1f} of {self.total / 1e6:.1f} MB")

    def reset(self) -> None:
        """The count stays: at the end pooch counts all bytes once more, and they are no more than the whole."""

    def close(self) -> None:
        """The bar ends with the download."""
