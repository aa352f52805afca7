"""Libraries that only some users need: loaded where they are used, and asked for by name where they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(library: str, extra: str, purpose: str) -> Any:
    """A library that an extra of this package brings; an error says how to install it where it is missing."""
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        name = library.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != name:
            raise  # the library is there, and lacks something itself
        raise ImportError(
            f"{name} must be installed {purpose}; got an environment without it. "
            f"Install it with: pip install 'spectralgp[{extra}]'."
        ) from error


def can_keep_compiled() -> bool:
    """Whether Numba finds a place for compiled code: none on a read-only installation without a writable home."""
    from numba import njit

    def probe() -> None:
        pass

    try:
        njit(cache=True)(probe)
    except RuntimeError:
        return False
    return True
