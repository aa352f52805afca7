"""Container of a model file: JSON and arrays in the safetensors format, with a version and a checksum."""

from __future__ import annotations

import hashlib
import json
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray

from spectralgp._basics.extras import require
from spectralgp._basics.files import atomic_write

Json = Any
FORMAT, FORMAT_VERSION = "spectralgp model", 9
LARGEST_HEADER = 100_000_000  # bytes, beyond which the format's own readers refuse it
UNQUESTIONED_PARTS = 100_000  # of JSON, which any model may have
PURPOSE = "to save and load models"
TYPES = {"F64", "F32", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8"}


def write_file(path: str | PathLike[str], state: Json, arrays: dict[str, NDArray[Any]]) -> None:
    """Write JSON and contiguous little-endian arrays by name to a file, whole or not at all."""
    safetensors, numpy_files = require("safetensors", "files", PURPOSE), require("safetensors.numpy", "files", PURPOSE)
    text = json.dumps(state, allow_nan=False, separators=(",", ":"))
    libraries = {"spectralgp": "unknown", "python": platform.python_version(), "numpy": np.__version__}
    with suppress(PackageNotFoundError):  # of a checkout that was never installed
        libraries["spectralgp"] = version("spectralgp")
    libraries |= {"scipy": scipy.__version__, "scikit-learn": sklearn.__version__}
    metadata = {"format": FORMAT, "format_version": str(FORMAT_VERSION)}
    metadata |= {"written_by": json.dumps(libraries), "model": text}
    metadata["sha256"] = digest(metadata, arrays)
    n_bytes = len(json.dumps(metadata)) + 200 * len(arrays)
    if n_bytes > LARGEST_HEADER:
        raise ValueError(
            f"names and settings must take less than {LARGEST_HEADER:,} bytes to be saved; got about {n_bytes:,}. "
            "Give the nodes shorter names, or none."
        )
    with atomic_write(Path(path)) as beside:
        beside.touch()
        mode = beside.stat().st_mode  # that of any new file; the library makes one that nobody else can read
        try:
            numpy_files.save_file(arrays, beside, metadata=metadata)
        except safetensors.SafetensorError as error:
            raise OSError(f"{path} could not be written: {error}. An old file of that name is unchanged.") from error
        beside.chmod(mode)


def read_file(path: str | PathLike[str]) -> tuple[Json, dict[str, NDArray[Any]], int]:
    """Return JSON, arrays and version of a file; nothing is executed, and sizes are checked before memory is taken."""
    safetensors = require("safetensors", "files", PURPOSE)
    if not Path(path).is_file():
        raise FileNotFoundError(f"path must name a model file; got {path}, where there is no file. Check the name.")
    try:
        with safetensors.safe_open(path, framework="numpy") as opened:
            metadata = opened.metadata() or {}
            format_version = _version_of(path, metadata)
            slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118, it is no dict
            strange = [one.get_dtype() for one in slices.values() if one.get_dtype() not in TYPES]
            if strange:
                raise ValueError(f"{path} must hold arrays of real numbers; got {strange[0]}.")
            # copies of our own: what a library hands out may be aligned in another way, and sums depend on it
            arrays = {name: np.array(opened.get_tensor(name), order="C") for name in slices}
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{path} must be a whole model file, as model.save writes it; got one that is cut off, changed or of "
            f"another kind ({error}). Save the model again, or copy the file again."
        ) from error
    if digest(metadata, arrays) != metadata.get("sha256"):
        raise ValueError(
            f"{path} must be as it was written; got bytes that do not match its checksum. Copy the file again, or save "
            "the model again."
        )
    # JSON takes many times its length in memory; names of nodes are most of it, and each node has numbers in arrays
    n_parts = metadata.get("model", "").count(",")
    most = UNQUESTIONED_PARTS + sum(one.nbytes for one in arrays.values())
    if n_parts > most:
        raise ValueError(
            f"{path} must hold a model as model.save writes it; got JSON with {n_parts:,} commas, more parts than "
            f"its arrays account for ({most:,}). Save the model again."
        )
    try:
        return msgspec.json.decode(metadata["model"]), arrays, format_version
    except (KeyError, msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"{path} must hold a model in JSON; got {type(error).__name__}. Save it again.") from error


def _version_of(path: str | PathLike[str], metadata: dict[str, str]) -> int:
    """Return the format version of a file; refuse other kinds of files and newer versions."""
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"{path} must be a model file, as model.save writes it; got a safetensors file of another kind. "
            "Check the name."
        )
    version = metadata.get("format_version", "")
    number = int(version) if version.isascii() and version.isdecimal() and len(version) < 10 else 0
    if number > FORMAT_VERSION:
        raise ValueError(
            f"{path} must be of format version {FORMAT_VERSION} or older to be read by this spectralgp; got version "
            f"{number}, written by {metadata.get('written_by', 'a newer one')[:200]}. Upgrade: pip install --upgrade "
            "spectralgp."
        )
    if number < 1:
        raise ValueError(f"{path} must have a format version from 1 to {FORMAT_VERSION}; got {version[:20]!r}.")
    return number


def digest(metadata: dict[str, str], arrays: dict[str, NDArray[Any]]) -> str:
    """SHA-256 of the contents of a file, the digest itself excepted."""
    described = sorted((key, value) for key, value in metadata.items() if key != "sha256")
    total = hashlib.sha256(json.dumps(described).encode())
    for name in sorted(arrays):
        array = arrays[name]
        total.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        total.update(np.ascontiguousarray(array).data if array.size else b"")
    return total.hexdigest()
