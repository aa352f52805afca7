"""What pictures look like, as plain data: places, colours, widths and words of all that is drawn.

How a picture should look nobody can compute. Each of these was looked at and found right, and `data/looks.json` keeps
what it was made of; ``python tests/looks.py`` keeps what it is made of now, for whoever has looked at it again.
"""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import fields
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from sklearn.base import BaseEstimator

from spectralgp import Graph, Polynomial, decompose
from spectralgp.scores import calibration_of
from spectralgp.series.backtests import Backtest
from spectralgp.show import plots
from spectralgp.show.report import figures
from spectralgp.show.report.numbers import FilterBands, ImputedValues, LearntFilter, Predictions, SignalReport
from spectralgp.show.report.series import ComponentCurve, SeriesReport
from spectralgp.show.report.shapes import SpectrumModes, shape_of

KEPT = Path(__file__).parent / "data" / "looks.json"
NAN = np.nan


def plain(value: Any) -> Any:
    """Numbers to five digits, none that is only rounding, and null for what is no number."""
    if isinstance(value, dict) and "bdata" in value:
        return plain(np.frombuffer(b64decode(value["bdata"]), value["dtype"]))
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(part) for part in value]
    if isinstance(value, float | np.floating):
        return None if np.isnan(value) else float(f"{value:.5g}") if abs(value) > 1e-9 else 0.0
    return value.item() if isinstance(value, np.generic) else value


# ------------------------------------------------------------------------------------------------------ matplotlib


def of_axes(ax: Any) -> dict[str, Any]:
    """All that was drawn on axes."""
    ax.figure.draw_without_rendering()
    drawn = {
        "x": [ax.get_xlabel(), ax.get_xscale(), *ax.get_xlim(), *(text.get_text() for text in ax.get_xticklabels())],
        "y": [ax.get_ylabel(), ax.get_yscale(), *ax.get_ylim(), *(text.get_text() for text in ax.get_yticklabels())],
        "aspect": ax.get_aspect(),
        "margins": ax.margins(),
    }
    artists = [*ax.lines, *(one for one in ax.collections if not isinstance(one, QuadMesh))]  # no colour bar's colours
    drawn |= {f"artist {number}": _of_artist(artist) for number, artist in enumerate(artists)}
    for number, bar in enumerate(ax.patches):
        look = [to_hex(bar.get_facecolor(), True), to_hex(bar.get_edgecolor(), True), bar.get_linewidth()]
        drawn[f"patch {number}"] = [
            bar.get_label(),
            *look,
            *(bar.get_bbox().bounds if isinstance(bar, Rectangle) else []),
        ]
    for number, text in enumerate(ax.texts):
        look = [text.get_fontsize(), text.get_color(), text.get_ha(), text.get_va(), text.get_zorder()]
        drawn[f"text {number}"] = [text.get_text(), *text.get_position(), *look]
    legend = ax.get_legend()
    if legend is not None:
        anchor = ax.transAxes.inverted().transform(legend.get_bbox_to_anchor().bounds[:2])
        sizes = [legend.markerscale, legend.handlelength, legend.borderaxespad, legend.get_texts()[0].get_fontsize()]
        marks = [one.get_offsets()[0, 1] for one in legend.legend_handles if isinstance(one, PathCollection)]
        drawn["legend"] = [legend._ncols, legend.get_frame_on(), legend._get_loc(), *anchor, *sizes, *marks]
    return plain(drawn)


def _of_artist(artist: Any) -> dict[str, Any]:
    common = {"label": artist.get_label(), "alpha": artist.get_alpha(), "zorder": artist.get_zorder()}
    if isinstance(artist, Line2D):
        marks = [artist.get_marker(), artist.get_markersize(), artist.get_markeredgewidth()]
        line = [to_hex(artist.get_color()), artist.get_linestyle(), artist.get_linewidth(), *marks]
        return {**common, "look": line, "at": _some(artist.get_xydata())}
    colours = [to_hex(one, True) for one in (*artist.get_facecolor(), *artist.get_edgecolor())]
    sizes = [*artist.get_linewidths(), *(artist.get_sizes() if hasattr(artist, "get_sizes") else [])]
    ends = [path.vertices for path in artist.get_paths()]
    outline = _some(np.concatenate(ends)) if ends and not isinstance(artist, PathCollection) else []  # not of marks
    return {**common, "colours": colours, "sizes": sizes, "offsets": artist.get_offsets(), "outline": outline}


def _some(points: Any) -> list[Any]:
    """Few points as they are; how many there are, and some of them."""
    return [*points] if len(points) < 60 else [len(points), *points[::50]]


class Learnt(BaseEstimator):
    """What pictures ask of a fitted model, by formulas."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.graph_, self.spectrum_ = graph, decompose(graph)
        self.graph_kernel = None
        self.node_names_, self.scale_ = tuple(graph.names), np.ones(graph.n_nodes)
        self.component_names_ = ("Matern 1/2", "Oscillator")

    def fit(self) -> Learnt:
        return self

    def set_output(self, **_: Any) -> Learnt:
        return self

    def response(self, points: Any = None, return_std: bool = False, which: str = "signal") -> Any:
        if which in ("rate", "power"):
            at = np.linspace(0.0, 1.0, 4)
            values = np.stack([0.2 + at, 3.0 - at**2]) * (1.0 if which == "rate" else 2.0)
            return at, values, np.stack([0.05 + 0.1 * at, 0.5 + at])
        mean = {"signal": 1.5, "residual": 0.6, "carry": 0.4}[which] * np.exp(-points) - (
            0.3 if which == "carry" else 0
        )
        return (mean, 0.1 + 0.05 * points) if return_std else mean

    def predict(self, horizon: int, return_std: bool, X: Any) -> Any:
        steps = np.arange(1.0, horizon + 1)[:, None]
        mean = np.sin(steps + np.arange(len(self.scale_)))
        return mean, 0.2 * np.sqrt(steps) + np.zeros(mean.shape)

    def times_ahead(self, horizon: int) -> Any:
        return np.arange(10.0, 10.0 + horizon)


PLACES = np.array([[0.0, 0.0], [2.0, 0.5], [1.0, 2.0], [3.0, 2.5], [0.5, 1.0]])
GRAPH = Graph.from_edges(
    [(0, 1, 1.0), (1, 2, 2.0), (2, 3, 0.5), (3, 4, 4.0), (4, 0, 1.5)], names=list("abcde"), coordinates=PLACES
)
PATH = Graph.from_edges([(node, node + 1) for node in range(300)])
SIGNALS = np.sin(1.0 + np.arange(40.0).reshape(8, 5) ** 1.3)
HOLED = np.where((SIGNALS > 0.6) & (np.arange(8) % 3 == 1)[:, None], NAN, SIGNALS)
BACKTEST = Backtest(
    horizons=np.array([1, 3, 12]),
    n_origins=np.array([40, 38, 29]),
    rmse={"model": np.array([1.0, 1.3, 1.9]), "persistence": np.array([1.2, 1.5, 2.4])},
    crps={"model": np.array([0.6, 0.7, 1.1]), "persistence": np.array([0.7, 0.9, 1.3])},
    coverage=np.array([0.88, 0.62, 0.93]),
    log_density=np.full(3, NAN),
    node_rmse=np.ones((3, 5)),
    how="rows after those seen",
    coverages=np.array([[0.48, 0.4, 0.55], [0.78, 0.5, 0.85], [0.88, 0.62, 0.93]]),
)


def drawn_by_matplotlib() -> dict[str, Any]:
    """Pictures of every kind, by name."""
    model, mean, std = Learnt(GRAPH), SIGNALS * 0.8 + 0.1, 0.1 + np.abs(np.cos(np.arange(40.0).reshape(8, 5))) / 4
    kernels = [
        Polynomial.from_coefficients([0.2, 0.3, 4.0, -3.0]),
        model,
        Polynomial.from_coefficients([1.0], laplacian="normalized"),
    ]
    found: dict[str, Any] = {"line styles": plain(plots.LINE_STYLES)}
    pictures = {
        "filters of a model": lambda ax: plots.plot_filter(model, ax=ax, show_std=True, which=["signal", "carry"]),
        "filters of two Laplacians": lambda ax: plots.plot_filter(kernels, ax=ax, normalize=True),
        "five filters": lambda ax: plots.plot_filter(2 * kernels[:2] + kernels[:1], ax=ax),
        "coefficients": lambda ax: plots.plot_fourier(SIGNALS[:3], GRAPH, ax=ax),
        "many coefficients": lambda ax: plots.plot_fourier(SIGNALS, GRAPH, ax=ax, log=True),
        "crowded coefficients": lambda ax: plots.plot_fourier(np.eye(301)[:3], PATH, ax=ax, labels=list("abc")),
        "a signal above its colours": lambda ax: plots.plot_signal(
            GRAPH, SIGNALS[0], ax=ax, colorbar="bottom", colorbar_label="unit"
        ),
        "a signal": lambda ax: plots.plot_signal(
            GRAPH, HOLED[1], ax=ax, aspect=1.5, labels=list("ABCDE"), symmetric=True
        ),
        "a signal filled in": lambda ax: plots.plot_signal(GRAPH, HOLED[1], filled=SIGNALS[1], ax=ax, node_size=90),
        "predictions of nodes": lambda ax: plots.plot_prediction(
            SIGNALS[2], mean[2], std[2], ax=ax, names=list("abcde")
        ),
        "predictions over time": lambda ax: plots.plot_prediction(
            SIGNALS[:, 1], mean[:, 1], std[:, 1], ax=ax, positions=np.arange(8) + 2000
        ),
        "a node filled in": lambda ax: plots.plot_filled(HOLED, SIGNALS, std, 2, ax=ax),
        "a forecast": lambda ax: plots.plot_forecast(model, "b", 3, past=SIGNALS, later=SIGNALS[:2], ax=ax),
        "a forecast of one step": lambda ax: plots.plot_forecast(model, 0, 1, past=SIGNALS, ax=ax),
        "a forecast on a map": lambda ax: plots.plot_forecast_map(model, 2, ax=ax),
        "rates": lambda ax: plots.plot_rates(model, ax=ax),
        "errors by horizon": lambda ax: plots.plot_backtest(BACKTEST, ax=ax),
        "coverage by horizon": lambda ax: plots.plot_backtest(BACKTEST, what="coverage", ax=ax),
    }
    for name, draw in pictures.items():
        figure, ax = plt.subplots(figsize=(6, 4))
        draw(ax)
        for number, one in enumerate(figure.axes):
            found |= {f"{name}, axes {number}, {part}": value for part, value in of_axes(one).items()}
        plt.close(figure)
    pair = plots.plot_calibration(SIGNALS, mean, std)
    for name, one in zip(("PIT", "coverage"), pair, strict=True):
        found |= {f"{name}, {part}": value for part, value in of_axes(one).items()}
    found["calibration, size"] = plain(pair[0].figure.get_size_inches())
    plt.close(pair[0].figure)
    return found


# --------------------------------------------------------------------------------------------------------- plotly


def reported() -> dict[str, Any]:
    """Figures of the two kinds of reports, and what the script of the page reads beside them."""
    filled = ImputedValues(np.where(np.isnan(HOLED), SIGNALS, NAN), np.where(np.isnan(HOLED), 0.3, NAN))
    mean, std = SIGNALS * 0.8 + 0.1, 0.1 + np.abs(np.cos(np.arange(40.0).reshape(8, 5))) / 4
    labels = tuple(str(year) for year in range(2000, 2008))
    shown = Predictions("held out", labels, HOLED, mean, std, None, mean[0], filled, first=5)
    grid, modes = np.linspace(0.0, 1.0, 4), SpectrumModes(np.linspace(0.0, 1.0, 4), np.full(4, 0.25))
    curves = {"signal": np.exp(-grid), "residual": 0.5 - 0.2 * grid, "carry": 0.3 - grid}
    learnt = tuple(LearntFilter(which, one, 0.1 + 0.2 * grid, shape_of(modes, one)) for which, one in curves.items())
    bands = FilterBands(
        "scaled Laplacian", grid, learnt, np.array([0.0, 0.5, 1.0]), np.array([0.4, 0.6]), np.array([0.7, 0.3])
    )
    given = {"graph": GRAPH, "names": GRAPH.names, "predictions": shown, "bands": bands}
    given["calibration"] = calibration_of(0.5 + 0.4 * SIGNALS)
    numbers = SignalReport(**{one.name: given.get(one.name) for one in fields(SignalReport)})
    times = tuple(ComponentCurve(name, grid, 5 - grid, 4 - grid, 7 - grid) for name in ("Matern 1/2", "Oscillator"))
    powers = tuple(ComponentCurve(name, grid, 1 + grid, 0.5 + grid, 2 + grid) for name in ("Matern 1/2", "Oscillator"))
    series = SeriesReport(GRAPH, GRAPH.names, shown, None, BACKTEST, times, powers)
    places = figures.places_of(GRAPH)
    found = {}
    for name, one in {"signals": numbers, "series": series}.items():
        data = figures.figure_data(one, places, 1.5)
        data["arrays"] = {field: {"bdata": packed, "dtype": "<f4"} for field, packed in data["arrays"].items()}
        data = plain(data)
        drawn = data.pop("figures")
        found |= {f"report of {name}, {part}": value for part, value in data.items()}
        for title, picture in drawn.items():
            found[f"report of {name}, {title}, layout"] = picture["layout"]
            for number, trace in enumerate(picture["data"]):
                found[f"report of {name}, {title}, {number}"] = trace
    return found


def kept(found: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parts of pictures as they were when somebody last looked at them, and as they are; those alone that differ."""
    now, before = json.loads(json.dumps(found)), json.loads(KEPT.read_text(encoding="utf-8"))
    changed = [name for name in now if before.get(name) != now[name]]
    return {name: before.get(name) for name in changed}, {name: now[name] for name in changed}


if __name__ == "__main__":
    parts = {**drawn_by_matplotlib(), **reported()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(part)}" for name, part in parts.items())
    KEPT.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
