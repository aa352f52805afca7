"""Counts and classes: models of observations against what people use instead.

    python benchmarks/bench_observations.py                     everything at hand, half an hour
    python benchmarks/bench_observations.py --counts sids       some of the counts
    python benchmarks/bench_observations.py --classes karate    some of the classes
    python benchmarks/bench_observations.py --page              write docs/observations.md, and run nothing

Splits have seeds from 0. The method of the classifier was chosen on other splits and graphs, which the page names.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import _classes
import _counts
from _observations_page import page
from _reporting import RESULTS, ROOT, save
from _splits import on_one_thread

CLASSES = ("karate", "digits", "wine", "breast cancer")


def per_class(name: str) -> tuple[int, ...]:
    """Number of labels of each class."""
    return (2,) if name == "karate" else _classes.PER_CLASS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", nargs="*", choices=list(_counts.COUNTS))
    parser.add_argument("--classes", nargs="*", choices=CLASSES)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    path = arguments.out / "observations.json"
    result: dict[str, Any] = {"counts": {}, "classes": {}, "absent": {}}
    if path.is_file():
        result |= {name: one for name, one in json.loads(path.read_text()).items() if name in result}
    if not arguments.page:
        on_one_thread()
        everything = arguments.counts is None and arguments.classes is None
        for name in list(_counts.COUNTS) if everything else arguments.counts or ():
            try:
                result["counts"][name] = _counts.run(name)
                result["absent"].pop(name, None)
            except FileNotFoundError as error:
                result["absent"][name] = str(error)
            save("observations", result, arguments.out)
        for name in CLASSES if everything else arguments.classes or ():
            for number in per_class(name):
                result["classes"][f"{name}, {number}"] = _classes.run(name, number, arguments.splits)
                save("observations", result, arguments.out)
    (ROOT / "docs" / "observations.md").write_text(page(result), encoding="utf-8")


if __name__ == "__main__":
    main()
