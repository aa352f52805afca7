"""Optional libraries: imported where they are used, with an error that names the extra to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(library: str, extra: str, purpose: str) -> Any:
    """Import an optional library; raise ImportError with the command that installs it."""
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        name = library.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != name:
            raise  # a dependency of the installed library is missing
        raise ImportError(
            f"{name} must be installed {purpose}; got an environment without it. "
            f"Install it with: pip install 'spectralgp[{extra}]'."
        ) from error


def can_keep_compiled() -> bool:
    """Whether Numba can cache compiled code: not on a read-only installation without a writable home."""
    from numba import njit

    def probe() -> None:
        pass

    try:
        njit(cache=True)(probe)
    except RuntimeError:
        return False
    return True
