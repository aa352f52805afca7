"""Files, functions, calls and depth of a fit and of a prediction.

    python benchmarks/way_of_a_fit.py           the table, with bars
    python benchmarks/way_of_a_fit.py --files   and the files of every run, with their functions

A ring of 12 nodes with 20 signals, or 60 rows of a series; counted by `sys.setprofile`, and only frames of the
package. Comprehensions and generator expressions belong to the function that they stand in, as they do for a reader;
lambdas and functions within functions count.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
from _reporting import print_table

import spectralgp
from spectralgp import Graph, GraphGPForecaster, GraphGPRegressor, Polynomial

PACKAGE = str(Path(spectralgp.__file__).parent)
WITHIN = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")  # frames that are no function of their own
BARS = {  # files, functions, calls, depth
    "fit, Polynomial(2)": (30, 280, None, None),
    "predict with std": (15, None, None, None),
    "fit, default": (None, 350, 75_000, 21),
    "fit, forecaster of 60 rows": (None, None, 250_000, None),
}


class Way:
    """Frames of the package that a piece of work passes through."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.depth = self.deepest = 0

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(PACKAGE) or code.co_name in WITHIN:
            return
        self.depth += 1 if event == "call" else -1
        self.deepest = max(self.deepest, self.depth)
        if event == "call":
            self.calls[code.co_filename[len(PACKAGE) + 1 :], code.co_qualname] += 1

    def of(self, work: Callable[[], object]) -> Way:
        """Run the work, and note what it passes through."""
        sys.setprofile(self._note)
        try:
            work()
        finally:
            sys.setprofile(None)
        return self

    @property
    def files(self) -> dict[str, list[str]]:
        """Functions by the file that they are in."""
        found = defaultdict(list)
        for file, function in sorted(self.calls):
            found[file].append(function)
        return found


def ways() -> dict[str, Way]:
    """The way of every run, after one that is not counted, since modules are loaded where they are used."""
    rng = np.random.default_rng(0)
    graph = Graph(np.roll(np.eye(12), 1, axis=0) + np.roll(np.eye(12), -1, axis=0))
    X, Y = rng.standard_normal((20, 2)), rng.standard_normal((20, 12))
    incomplete = np.where(rng.random(Y.shape) < 0.1, np.nan, Y)
    one, default = GraphGPRegressor(graph, Polynomial(2)), GraphGPRegressor(graph)
    forecaster, series = GraphGPForecaster(graph), np.cumsum(rng.standard_normal((60, 12)), axis=0)
    works: dict[str, Callable[[], object]] = {
        "fit, Polynomial(2)": lambda: one.fit(X, Y),
        "predict with std": lambda: one.predict(X[:3], return_std=True),
        "fit, default": lambda: default.fit(X, Y),
        "predict, default": lambda: default.predict(X[:3], return_std=True),
        "fit, default, 10% missing": lambda: default.fit(X, incomplete),
        "fit, forecaster of 60 rows": lambda: forecaster.fit(series),
        "impute": lambda: default.impute(X, incomplete),
    }
    found = {}
    for name, work in works.items():
        work()
        found[name] = Way().of(work)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="name the files, and their functions")
    options = parser.parse_args()
    rows = []
    for name, way in ways().items():
        found = len(way.files), len(way.calls), sum(way.calls.values()), way.deepest
        bars = BARS.get(name, (None,) * len(found))
        met = all(bar is None or count <= bar for bar, count in zip(bars, found, strict=True))
        shown = " / ".join("-" if bar is None else f"{bar:,}" for bar in bars) if name in BARS else ""
        rows.append([name, *found, shown, "yes" if met else "NO"])
        if options.files:
            print(f"\n{name}")
            for file, names in way.files.items():
                print(f"  {file}: {', '.join(names)}")
    print_table("the way of a value", ["run", "files", "functions", "calls", "depth", "bars", "met"], rows)


if __name__ == "__main__":
    main()
