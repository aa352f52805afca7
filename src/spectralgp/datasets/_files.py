"""The released files of the paper's data: where they are looked for, fetched from, and how they are checked."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectralgp._extras import require

REPOSITORY = "github.com/yincong-zhi/Polynomial_Kernel_Learning"
COMMIT = "f9b219ac167ba6c06da8b88a88376ddcbd7efd1e"
BASE_URL = f"https://raw.githubusercontent.com/yincong-zhi/Polynomial_Kernel_Learning/{COMMIT}/data/"
VARIABLE = "SPECTRALGP_DATA"


@dataclass(frozen=True)
class ReleasedFile:
    """One file of the paper's data.

    Parameters
    ----------
    name : str
        The file's name.
    sha256 : str or None
        Sum that its content must have; None for a file that was never published with one.
    """

    name: str
    sha256: str | None


def find_file(file: ReleasedFile, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Path of a file in `folder`, the folder named by ``SPECTRALGP_DATA``, or the cache; None if it is in none.

    Raises
    ------
    NotADirectoryError
        If `folder`, or the folder named by the variable, does not exist: a folder asked for by name and absent is a
        mistake.
    ValueError
        If the first such file is not the released one, by its SHA-256 sum.
    """
    for place in _places(folder):
        path = place / file.name
        if path.is_file():
            _check_sum(path, file)
            return path
    return None


def fetch_file(file: ReleasedFile, folder: str | os.PathLike[str] | None = None) -> Path:
    """Path of a file, downloaded into the cache if it is nowhere on this machine.

    Raises
    ------
    FileNotFoundError
        If it is not here and cannot be downloaded; the message says which file to put where.
    """
    found = find_file(file, folder)
    if found is not None:
        return found
    pooch = require("pooch", "data", "to download the paper's data")
    try:
        downloaded = pooch.retrieve(
            BASE_URL + file.name, known_hash=f"sha256:{file.sha256}", fname=file.name, path=cache_folder()
        )
    except OSError as error:  # no network, no such host, no such page, no room
        raise FileNotFoundError(
            f"{file.name} must be on this machine or within reach of it; got no such file, and the download of "
            f"{BASE_URL + file.name} failed ({type(error).__name__}). Get it from {REPOSITORY} (folder data) on "
            f"another machine and put it into {cache_folder()}, or into a folder "
            f"of your own that you name by folder= or by the environment variable {VARIABLE}."
        ) from error
    return Path(downloaded)


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


def _check_sum(path: Path, file: ReleasedFile) -> None:
    if file.sha256 is None:
        return
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != file.sha256:
        raise ValueError(
            f"{path} must be the released file with SHA-256 {file.sha256}; got {found} ({path.stat().st_size} bytes). "
            "It is damaged, cut short or another version: remove it, and it will be downloaded again."
        )
