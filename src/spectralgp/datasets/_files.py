"""The released files of the paper's data: where they are looked for, fetched from, and how they are checked."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectralgp._basics.extras import require
from spectralgp._basics.files import atomic_write
from spectralgp.datasets._download import download

REPOSITORY = "github.com/yincong-zhi/Polynomial_Kernel_Learning"
COMMIT = "f9b219ac167ba6c06da8b88a88376ddcbd7efd1e"
BASE_URL = f"https://raw.githubusercontent.com/yincong-zhi/Polynomial_Kernel_Learning/{COMMIT}/data/"
VARIABLE = "SPECTRALGP_DATA"


@dataclass(frozen=True)
class ReleasedFile:
    r"""One file of the paper's data, and the one thing that its content is checked by.

    That is its SHA-256 sum, where that is known. It is the hash by which git names its content, where only the list of
    the repository's files is known. Where neither is known, it is the variables that the file must hold, with their
    shapes: another file of the same shape would pass.

    Parameters
    ----------
    name : str
        The file's name.
    sha256 : str, optional
        Sum that its content must have.
    git_blob : str, optional
        SHA-1 of ``blob <size>\0`` and the content; taken if there is no `sha256`.
    shapes : tuple of (str, tuple of int)
        Variables, among others, and their shapes; taken if there is no sum.
    """

    name: str
    sha256: str | None = None
    git_blob: str | None = None
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()


def find_file(file: ReleasedFile, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Path of a file in `folder`, the folder named by ``SPECTRALGP_DATA``, or the cache; None if it is in none.

    Raises
    ------
    NotADirectoryError
        If `folder`, or the folder named by the variable, does not exist: a folder asked for by name and absent is a
        mistake.
    ValueError
        If the first such file does not pass its check.
    """
    for place in _places(folder):
        path = place / file.name
        if path.is_file():
            _check(path, file, str(path), "remove it, and it will be downloaded again")
            return path
    return None


def fetch_file(file: ReleasedFile, folder: str | os.PathLike[str] | None = None) -> Path:
    """Path of a file, downloaded into the cache if it is nowhere on this machine.

    A download is checked before it has the file's name: what is interrupted or damaged is never found later.

    Raises
    ------
    FileNotFoundError
        If it is not here and cannot be downloaded; the message says which file to put where.
    ValueError
        If what is here, or was downloaded, does not pass its check.
    """
    found = find_file(file, folder)
    if found is not None:
        return found
    url, target = BASE_URL + file.name, cache_folder() / file.name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(target) as beside:
            download(url, beside)
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
