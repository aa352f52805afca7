"""What benchmarks put a stopwatch on is there, under the names that they know it by."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.parametrize("stages", ["_large.watched_stages", "_dask.watched_partitions"])
def test_watched_functions_are_there(stages):
    """In a process of its own, since watching changes classes."""
    module, _ = stages.split(".")
    code = f"import {module}; assert {stages}().seconds == {{}}"
    subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, check=True)
