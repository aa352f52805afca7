"""What the benchmarks share: where the data are, tables on the screen, small files of results."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
sys.path.insert(0, str(ROOT / "tests"))  # the tests hold the protocols of the paper's data


def data_folder() -> Path | None:
    """Folder of the paper's data, as the tests find it; None where they are not here."""
    folder = Path(os.environ.get("SPECTRALGP_DATA", ROOT.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as they need to be."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    print(f"\n{title}\n")
    for index, row in enumerate(cells):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if index == 0:
            print("  ".join("-" * width for width in widths))


def save(name: str, result: dict[str, Any]) -> None:
    """Write ``benchmarks/results/<name>.json``, with the machine it was measured on."""
    RESULTS.mkdir(exist_ok=True)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cpus": os.cpu_count()}
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine, **result}, indent=2) + "\n")
    print(f"\nwritten to {path.relative_to(ROOT)}")
