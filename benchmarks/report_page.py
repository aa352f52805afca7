"""Size of a report, and time until it can be used: python benchmarks/report_page.py [n_nodes ...].

It needs plotly, playwright and Debian's chromium, which draws without a graphics card here.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

from spectralgp import Graph, GraphGPRegressor, Polynomial

REPEATS = 3


def fitted(n_nodes: int, n_signals: int = 16) -> GraphGPRegressor:
    rng = np.random.default_rng(0)
    points = rng.random((n_nodes, 2))
    graph = Graph.from_points(points, n_neighbors=8, names=[f"sensor {node:06d}" for node in range(n_nodes)])
    inputs = rng.standard_normal((n_signals, 1))
    signals = np.sin(inputs + 6 * points[:, 0]) + 0.3 * rng.standard_normal((n_signals, n_nodes))
    return GraphGPRegressor(graph, Polynomial(3)).fit(inputs, signals)


def opening(page: Page, path: Path) -> tuple[float, float]:
    """Seconds until all pictures are drawn and controls work, and from a key on the slider to the map drawn anew."""
    start = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=all]", state="attached")
    opened = time.perf_counter() - start
    drawn = page.evaluate(
        """() => new Promise((done) => {
            const plot = document.getElementById("map-plot"), slider = document.getElementById("signal");
            const start = performance.now();
            plot.once("plotly_afterplot", () => requestAnimationFrame(() => done((performance.now() - start) / 1000)));
            slider.value = "1";
            slider.dispatchEvent(new Event("input"));
        })"""
    )
    return opened, float(drawn)


def main(sizes: list[int]) -> None:
    print("nodes     MB  written s  usable s  slider s  (medians)")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for n_nodes in sizes:
            model = fitted(n_nodes)
            start = time.perf_counter()
            path = model.report(Path(folder) / "report.html")
            written = time.perf_counter() - start
            times = []
            for _ in range(REPEATS):
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                times.append(opening(page, path))
                page.close()
            usable, slider = np.median(times, axis=0)
            size = path.stat().st_size / 1e6
            print(f"{n_nodes:<7,} {size:5.1f} {written:10.2f} {usable:9.2f} {slider:9.2f}")
        browser.close()


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [50, 2_000, 20_000, 50_000])
