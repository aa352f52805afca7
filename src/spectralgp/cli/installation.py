"""`info`: which versions, threads and devices there are."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import numpy  # noqa: F401 - whose threads are listed
import typer
from threadpoolctl import threadpool_info

from spectralgp import __version__
from spectralgp.cli.app import print_json
from spectralgp.cli.commands import InfoCommand

LIBRARIES = ("numpy", "scipy", "scikit-learn")
OPTIONAL = {  # libraries, and the extras that bring them
    "numba": "large",
    "matplotlib": "plots",
    "pooch": "data",
    "typer": "cli",
    "rich": "cli",
    "pandas": "pandas",
    "pyarrow": "parquet",
    "networkx": "networkx",
    "safetensors": "files",
    "plotly": "report",
    "jinja2": "report",
}


def info(asked: InfoCommand) -> None:
    """Print it."""
    threads = {str(pool["internal_api"]): pool["num_threads"] for pool in threadpool_info()}
    answer = {
        "spectralgp": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {name: _version(name) for name in (*LIBRARIES, *OPTIONAL)},
        "cores": os.cpu_count(),
        "threads": threads,
        "devices": _devices(),
    }
    if asked.as_json:
        print_json(answer)
        return
    typer.echo(f"spectralgp {answer['spectralgp']}, Python {answer['python']}, {answer['platform']}")
    for name in (*LIBRARIES, *OPTIONAL):
        missing = f"not installed: pip install 'spectralgp[{OPTIONAL.get(name, 'all')}]'"
        typer.echo(f"  {name:13} {_version(name) or missing}")
    listed = ", ".join(f"{name} {number}" for name, number in sorted(threads.items())) or "none known"
    typer.echo(f"cores: {answer['cores']}; threads of linear algebra: {listed}")
    typer.echo(f"devices: {', '.join(['cpu', *_devices()])}")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _devices() -> list[str]:
    """CUDA devices that PyTorch or CuPy can compute on; what only draws or plays is not asked."""
    for name in ("torch", "cupy"):
        if find_spec(name) is None and name not in sys.modules:
            continue
        try:
            library: Any = __import__(name)
            if name == "torch":
                return [library.cuda.get_device_name(place) for place in range(library.cuda.device_count())]
            places = range(library.cuda.runtime.getDeviceCount())
            return [library.cuda.runtime.getDeviceProperties(place)["name"].decode() for place in places]
        except Exception:  # a driver that is missing or broken has errors of its own kinds: then there is no device
            continue
    return []
