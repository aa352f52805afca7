"""Tools of the benchmarks: the folder of the data, a clock, tables on the screen, small files of results."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
sys.path.insert(0, str(ROOT / "tests"))  # the tests hold the protocols of the paper's data


def data_folder() -> Path | None:
    """Folder of the paper's data, as the tests find it; None where they are not here."""
    folder = Path(os.environ.get("SPECTRALGP_DATA", ROOT.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


def least(work: Callable[[], object], repeats: int = 3) -> float:
    """Least processor time of some repeats, after one that is not counted."""
    times = []
    for _ in range(repeats + 1):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times[1:])


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as they need to be."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    print(f"\n{title}\n")
    for index, row in enumerate(cells):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if index == 0:
            print("  ".join("-" * width for width in widths))


def save(name: str, result: dict[str, Any], folder: Path = RESULTS) -> None:
    """Write ``<name>.json`` into a folder, with the machine it was measured on; a list of numbers is one line."""
    folder.mkdir(exist_ok=True, parents=True)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cpus": os.cpu_count()}
    path = folder / f"{name}.json"
    text = json.dumps({"machine": machine, **result}, indent=2)
    text = re.sub(r"\[[^][{}\"]*\]", lambda found: " ".join(found[0].split()), text)
    path.write_text(text + "\n")
    print(f"\nwritten to {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")
