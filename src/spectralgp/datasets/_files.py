"""The released files of the paper's data: where they are looked for, fetched from, and how they are checked."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectralgp._basics.extras import require
from spectralgp._basics.files import atomic_write
from spectralgp._basics.progress import mention, progress_bar, report

REPOSITORY = "github.com/yincong-zhi/Polynomial_Kernel_Learning"
COMMIT = "f9b219ac167ba6c06da8b88a88376ddcbd7efd1e"
BASE_URL = f"https://raw.githubusercontent.com/yincong-zhi/Polynomial_Kernel_Learning/{COMMIT}/data/"
VARIABLE = "SPECTRALGP_DATA"
N_PROGRESS_STEPS = 100
CHUNK_BYTES = 2**16


@dataclass(frozen=True)
class ReleasedFile:
    """One file of the paper's data, and what its content is checked by: the first of these that is known."""

    name: str
    sha256: str | None = None
    git_blob: str | None = None  # the hash by which git names the content, from the list of the repository's files
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()  # of variables that the file must hold, among others


def find_file(file: ReleasedFile, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Path of a file in `folder`, the folder that ``SPECTRALGP_DATA`` names, or the cache; None if in none."""
    for place in _places(folder):
        path = place / file.name
        if path.is_file():
            _check(path, file, str(path), "remove it, and it will be downloaded again")
            return path
    return None


def fetch_file(file: ReleasedFile, folder: str | os.PathLike[str] | None = None) -> Path:
    """Path of a file, downloaded into the cache if it is nowhere on this machine.

    A download is checked before it has the file's name: what is interrupted or damaged is never found later.
    """
    found = find_file(file, folder)
    if found is not None:
        return found
    url, target = BASE_URL + file.name, cache_folder() / file.name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(target) as beside:
            _download(url, beside)
            _check(beside, file, f"the download of {url}", "it was not kept, try again")
    except OSError as error:  # no network, no such host, no such page, no room
        raise FileNotFoundError(
            f"{file.name} must be on this machine or within reach of it; got no such file, and the download of "
            f"{url} failed ({type(error).__name__}). Get it from {REPOSITORY} (folder data) on "
            f"another machine and put it into {target.parent}, or into a folder "
            f"of your own that you name by folder= or by the environment variable {VARIABLE}."
        ) from error
    return target


def cache_folder() -> Path:
    """The user's cache folder for this package's downloads."""
    pooch = require("pooch", "data", "to find the folder of the paper's data")
    return Path(pooch.os_cache("spectralgp"))


def variables(path: Path) -> dict[str, Any]:
    """Variables of a MATLAB file, by name."""
    from scipy.io import loadmat

    content: dict[str, Any] = loadmat(path)
    return content


def _places(folder: str | os.PathLike[str] | None) -> list[Path]:
    named = {"folder": folder, VARIABLE: os.environ.get(VARIABLE) or None}
    places = []
    for name, value in named.items():
        if value is None:
            continue
        place = Path(value).expanduser()
        if not place.is_dir():
            raise NotADirectoryError(
                f"{name} must name an existing folder; got {str(value)!r}. Make it, or leave it out."
            )
        places.append(place)
    return [*places, cache_folder()]


def _check(path: Path, file: ReleasedFile, shown: str, remedy: str) -> None:
    """Refuse what is not the released file, as far as that can be told; `shown` is what messages call it."""
    n_bytes = path.stat().st_size
    expected: Any
    found: Any
    if file.sha256 is not None:
        kind, expected, found = "SHA-256", file.sha256, _digest(path, hashlib.sha256())
    elif file.git_blob is not None:
        header = hashlib.sha1(f"blob {n_bytes}\0".encode(), usedforsecurity=False)
        kind, expected, found = "git blob hash", file.git_blob, _digest(path, header)
    else:
        kind, expected, found = "variables", dict(file.shapes), _shapes(path, file)
    if found != expected:
        raise ValueError(
            f"{shown} must be the released file with {kind} {expected}; got {found} ({n_bytes} bytes). "
            f"It is damaged, cut short or another version: {remedy}."
        )


def _digest(path: Path, begun: hashlib._Hash) -> str:
    """Digest of a file's content after what was hashed before, a block at a time."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, lambda: begun).hexdigest()


def _shapes(path: Path, file: ReleasedFile) -> dict[str, tuple[int, ...]] | str:
    """Shapes of those variables that the file should have and has; the reader's complaint if it cannot be read."""
    if not file.shapes:
        return {}
    try:
        content = variables(path)
    except Exception as error:  # the reader raises anything at a file that is damaged or none of MATLAB's
        return f"{type(error).__name__}: {error}"
    return {name: content[name].shape for name, _ in file.shapes if name in content}


def _download(url: str, path: Path) -> None:
    """Write what an address serves to a file, with a bar where a person looks."""
    pooch = require("pooch", "data", "to download the paper's data")
    with progress_bar(f"download of {url.rpartition('/')[2]}", N_PROGRESS_STEPS, show=True):
        pooch.HTTPDownloader(progressbar=_Steps(), chunk_size=CHUNK_BYTES)(url, str(path), None)


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
        while self._n_steps < N_PROGRESS_STEPS * n_bytes // self.total:
            self._n_steps += 1
            report(f"{n_bytes / 1e6:.1f} of {self.total / 1e6:.1f} MB")

    def reset(self) -> None:
        pass  # at the end pooch counts all bytes once more, and they are no more than the whole

    def close(self) -> None:
        pass  # the bar ends with the download
