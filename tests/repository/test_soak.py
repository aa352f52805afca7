"""The soak in small: memory does not grow from fit to fit, and threads and processes find the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_many_fits_hold_no_memory_and_at_the_same_time_find_the_same(tmp_path):
    script = ROOT / "benchmarks" / "soak.py"
    command = [sys.executable, str(script), "--fits", "40", "--workers", "3", "--out", str(tmp_path)]
    # several threads of the linear algebra: what runs on them alone would be rounded otherwise when others fit too
    threads = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    environment = {**os.environ, **threads, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads((tmp_path / "soak.json").read_text(encoding="utf-8"))
    assert found["fits"] == 40
    assert set(found["bars_met"].values()) == {True}
    assert found["megabytes"] < 20
