"""Versions, threads and devices, for the command `info`."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import numpy  # noqa: F401 - its threads are listed
from threadpoolctl import threadpool_info

from spectralgp import __version__
from spectralgp.cli.app import Answer

LIBRARIES = ("numpy", "scipy", "scikit-learn")
OPTIONAL = {  # libraries, by the extras that install them
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


def installed() -> Answer:
    """List versions, threads and devices."""
    threads = {str(pool["internal_api"]): pool["num_threads"] for pool in threadpool_info()}
    versions = {name: installed_version(name) for name in (*LIBRARIES, *OPTIONAL)}
    answer = {
        "spectralgp": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": versions,
        "cores": os.cpu_count(),
        "threads": threads,
        "devices": cuda_devices(),
    }
    lines = [f"spectralgp {answer['spectralgp']}, Python {answer['python']}, {answer['platform']}"]
    for name, found in versions.items():
        missing = f"not installed: pip install 'spectralgp[{OPTIONAL.get(name, 'all')}]'"
        lines.append(f"  {name:13} {found or missing}")
    listed = ", ".join(f"{name} {number}" for name, number in sorted(threads.items())) or "none known"
    lines.append(f"cores: {answer['cores']}; threads of linear algebra: {listed}")
    lines.append(f"devices: {', '.join(['cpu', *cuda_devices()])}")
    return answer, "\n".join(lines)


def installed_version(name: str) -> str | None:
    """Version of an installed library; None if there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def cuda_devices() -> list[str]:
    """CUDA devices of PyTorch or CuPy."""
    for name in ("torch", "cupy"):
        if find_spec(name) is None and name not in sys.modules:
            continue
        try:
            library: Any = __import__(name)
            if name == "torch":
                return [library.cuda.get_device_name(place) for place in range(library.cuda.device_count())]
            places = range(library.cuda.runtime.getDeviceCount())
            return [library.cuda.runtime.getDeviceProperties(place)["name"].decode() for place in places]
        except Exception:  # of any kind, from a driver that is missing or broken
            continue
    return []
