"""Figures of a report, made with plotly; its script draws them in the page, by one of `TEMPLATES`.

Colours are legible on white and on black; lines and texts without a colour take the ink of the page.
"""

from __future__ import annotations

import base64
import re
from html import escape
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.extras import require
from spectralgp.graphs import Graph
from spectralgp.graphs.weights import heaviest_edges
from spectralgp.scores import LEVELS, Calibration, interval_half_width
from spectralgp.series.backtests import Backtest
from spectralgp.show.curves import COLOURS, FILTER_NAMES, Curve
from spectralgp.show.report.numbers import FilterBands, Predictions, SeriesReport, SignalReport
from spectralgp.show.report.words import shares_inside

go = require("plotly.graph_objects", "report", "to write a report")
make_subplots = require("plotly.subplots", "report", "to write a report").make_subplots

MAX_NODES = 50_000  # drawn
MAX_EDGES = 40_000  # drawn
MAX_EDGES_UNASKED = 10_000  # drawn before they are asked for: with more the map is slow without a graphics card
MAX_VALUES = 1_000_000  # on the map: observed values, predictions and deviations, of four bytes each
MAX_POINTS = 3_000  # predictions against observed values, and marks drawn without WebGL
N_WORST = 10  # nodes with the largest errors, in the table
MAX_NAME = 80  # letters of a name in hover texts
FAN = (0.9, 0.5)  # intervals of a node over the signals
DATE = re.compile(r"\d{4}-\d{2}-\d{2}( \d{2}:\d{2}(:\d{2}(\.\d+)?)?)?")
LEAST_POWER = 1e-4  # of the largest, down to which powers are drawn
COLOUR_TAIL = 0.005  # share of the values beyond either end of the colours
EMBEDDING_TOLERANCE = 1e-2  # of the eigenvalues by which nodes of a large graph without coordinates are placed
TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 1.0]])  # parts of a few nodes, which have too few eigenvectors

ORANGE, GREEN, PINK, SKY = COLOURS[1], COLOURS[2], COLOURS[3], COLOURS[6]
BLUE, GREY = "#1F88C8", "#808080"  # the blue is lighter than Okabe and Ito's, which is dim on black
LOOKS = ((BLUE, "solid"), (ORANGE, "dash"), (GREEN, "dashdot"), (PINK, "dot"))
LINES = [{"color": colour, "dash": dash, "width": 2.5} for colour, dash in LOOKS]
DIAGONAL = {"color": GREY, "dash": "dash", "width": 1.5}
CALIBRATED = {"mode": "lines", "name": "calibrated", "hoverinfo": "skip", "line": DIAGONAL}
BARS = {"marker": {"color": SKY, "line": {"width": 0}}}
FIELDS = {  # colours of the nodes: names in the choice, and on the colour bar
    "observed": ("data", "observed"),
    "mean": ("prediction", "predicted"),
    "std": ("uncertainty", "standard deviation"),
    "residual": ("residual", "observed - predicted"),
}


def _template(paper: str, ink: str, line: str, panel: str) -> dict[str, Any]:
    lines = dict.fromkeys(("gridcolor", "linecolor", "zerolinecolor"), line)
    axis = {**lines, "automargin": True, "title": {"standoff": 8}, "ticks": "outside", "tickcolor": paper}
    layout = {
        "paper_bgcolor": paper,
        "plot_bgcolor": paper,
        "colorway": [ink],
        "font": {"color": ink, "family": "system-ui, sans-serif", "size": 13},
        "margin": {"l": 50, "r": 12, "t": 34, "b": 44},
        # below the axes: above them it touches the buttons where it wraps
        "legend": {"orientation": "h", "yref": "container", "y": 0.0, "yanchor": "bottom", "x": 0},
        "hoverlabel": {"bgcolor": panel, "bordercolor": line, "font": {"color": ink}},
        "xaxis": axis,
        "yaxis": axis,
    }
    return {"layout": layout}


TEMPLATES = {
    "light": _template("#ffffff", "#1b1f23", "#dde2e7", "#f4f6f8"),
    "dark": _template("#14171a", "#e6e8eb", "#333a41", "#1d2125"),
}


def map_coordinates(graph: Graph) -> tuple[Array, str]:
    """Coordinates of all nodes on the map, shape (n_nodes, 2), and a note unless they are the graph's own."""
    known = graph.coordinates
    if known is None or known.shape[1] == 0:
        return _layout(graph), "The graph has no coordinates: neighbours are drawn near each other."
    if known.shape[1] == 1:
        flat = np.column_stack([known[:, 0], np.zeros(len(known))])
        return flat, "Nodes have one coordinate, drawn from left to right."
    if known.shape[1] == 2:
        return np.asarray(known, dtype=float), ""
    centred = known - known.mean(axis=0)
    projected = centred @ np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :2]
    return projected, f"The two principal directions of {known.shape[1]} coordinates are drawn."


def _layout(graph: Graph) -> Array:
    """Components side by side in rows, the largest first, each along its two smoothest eigenvectors."""
    n_parts, part_of = connected_components(graph.weights, directed=False)
    sizes = np.bincount(part_of, minlength=n_parts)
    sides, width = np.sqrt(sizes), np.ceil(np.sqrt(graph.n_nodes))
    members = np.split(np.argsort(part_of, kind="stable"), np.cumsum(sizes)[:-1])
    places, x, y, height = np.empty((graph.n_nodes, 2)), 0.0, 0.0, 0.0
    for part in np.argsort(-sizes, kind="stable").tolist():
        if x + sides[part] > width:
            x, y, height = 0.0, y - height, 0.0
        nodes, within = members[part], TRIANGLE[: sizes[part]]
        if sizes[part] > len(TRIANGLE):
            within = _smoothest(graph.weights if n_parts == 1 else graph.weights[nodes][:, nodes])
        places[nodes] = [x, y] + (sides[part] - 0.7) * within * [1, -1]
        x, height = x + sides[part], max(height, sides[part])
    return places


def _smoothest(weights: csr_array) -> Array:
    """Ranks from 0 to 1 of the nodes of a connected graph in its two lowest non-constant eigenvectors."""
    n_nodes = weights.shape[0]
    scale = diags_array(1 / np.sqrt(weights.sum(axis=1)))
    # the largest eigenvalues of this are those of the normalised Laplacian that are smallest
    smoothing = csr_array(scale @ weights @ scale + eye_array(n_nodes))
    start = np.random.default_rng(0).standard_normal(n_nodes)
    tolerance = EMBEDDING_TOLERANCE if n_nodes > 2_000 else 0.0
    vectors = scale @ eigsh(smoothing, k=3, which="LA", v0=start, tol=tolerance)[1][:, 1::-1]
    ranks = np.argsort(np.argsort(vectors, axis=0, kind="stable"), axis=0, kind="stable")
    return ranks / (n_nodes - 1)


def evenly_spaced(number: int, most: int) -> Indices:
    """All positions below a number, or at most so many of them."""
    return np.unique(np.linspace(0, number - 1, min(number, most)).round().astype(np.intp))


def figure_data(numbers: SignalReport | SeriesReport, coordinates: Array, aspect: float) -> dict[str, Any]:
    """Data of the page's script: figures by the names of their places, and the values of the map."""
    predictions, nodes = numbers.predictions, evenly_spaced(numbers.graph.n_nodes, MAX_NODES)
    shown = evenly_spaced(len(predictions.labels), max(1, MAX_VALUES // (3 * nodes.size)))
    cells = np.ix_(shown, nodes)
    fields = {name: getattr(predictions, name)[cells] for name in ("observed", "mean", "std")}
    names = [numbers.names[node] for node in nodes.tolist()]
    labels = [predictions.labels[number] for number in shown.tolist()]
    along, axis = signal_axis(labels)
    figures = {"map-plot": map_figure(numbers.graph, nodes, coordinates, aspect), "node-plot": node_figure(axis)}
    if isinstance(numbers, SeriesReport):
        figures |= series_figures(numbers)
    else:
        figures["scatter-plot"] = scatter_figure(predictions, numbers.names, nodes)
        figures["coverage-plot"] = coverage_figure(numbers.calibration)
        figures["pit-plot"] = histogram_figure(numbers.calibration)
        figures["filter-plot"] = filter_figure(numbers.bands)
    as_dicts = {name: figure.to_dict() for name, figure in figures.items()}
    for one in as_dicts.values():
        del one["layout"]["template"]  # one of ours, by the scheme of the page
    arrays = {"x": coordinates[nodes, 0], "y": coordinates[nodes, 1], **fields}
    imputed = np.empty(0, dtype=np.intp)
    if predictions.imputed is not None:  # few values, by their places
        means, deviations = (one[cells].ravel() for one in predictions.imputed)
        imputed = np.flatnonzero(np.isfinite(means))
        arrays |= {"imputedMean": means[imputed], "imputedStd": deviations[imputed]}
    return {
        "figures": as_dicts,
        "templates": TEMPLATES,
        "names": names,
        "texts": [hover_text(name) for name in names],
        "labels": labels,
        "markers": node_markers(fields, nodes.size),
        "along": along,
        "order": sorted(range(len(along)), key=None if axis["type"] == "category" else along.__getitem__),
        "imputed": imputed.tolist(),
        "start": {"signal": int(np.argmin(np.abs(shown - predictions.first))), "node": first_node(predictions, nodes)},
        "widths": [float(interval_half_width(1.0, level)) for level in FAN],
        "arrays": {
            name: base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")
            for name, values in arrays.items()
        },
    }


def first_node(predictions: Predictions, nodes: Indices) -> int:
    """Node that is drawn first: with most imputed values among those mostly observed, or else with a median error."""
    n_observed = np.isfinite(predictions.observed[:, nodes]).sum(axis=0)
    if predictions.imputed is not None:
        n_imputed = np.isfinite(predictions.imputed[0][:, nodes]).sum(axis=0)
        return int(np.argmax(np.where(2 * n_observed >= n_observed.max(), n_imputed, -1)))
    errors = np.nan_to_num(predictions.node_errors[nodes])
    return int(np.argsort(errors, kind="stable")[errors.size // 2])


def signal_axis(labels: list[str]) -> tuple[list[Any], dict[str, str]]:
    """Positions of signals by their labels, dates, numbers or neither, and their axis; counted rows have numbers."""
    if all(DATE.fullmatch(label) for label in labels):
        return labels, {"type": "date", "title": ""}
    are_counted = all(label.startswith("row ") for label in labels)
    try:
        numbers = [float(label.removeprefix("row ") if are_counted else label) for label in labels]
    except ValueError:
        numbers = [np.nan]
    if not np.isfinite(numbers).all():
        return labels, {"type": "category", "title": ""}
    return numbers, {"type": "linear", "title": "row" if are_counted else ""}


def series_figures(numbers: SeriesReport) -> dict[str, Any]:
    """Figures of a series without controls: scores by horizon, and time scales by frequency."""
    found, drawn = numbers.backtest, {}
    if found is not None:
        drawn["error-plot"] = _by_horizon(found, found.rmse, "root mean square error")
        drawn["crps-plot"] = _by_horizon(found, found.crps, "CRPS")
        drawn["coverage-plot"] = _coverage_by_horizon(found)
    if numbers.times:
        drawn["rate-plot"] = _rates(numbers)
    return drawn


def _by_horizon(found: Backtest, scores: dict[str, Array], title: str) -> Any:
    figure, steps = go.Figure(), [str(one) for one in found.horizons]
    for (name, values), line in zip(scores.items(), LINES, strict=False):
        hover = f"%{{x}} steps ahead: %{{y:.4g}}<extra>{name}</extra>"
        figure.add_scatter(x=steps, y=values, name=name, mode="lines+markers", line=line, hovertemplate=hover)
    figure.update_xaxes(title_text="steps ahead", type="category")
    return figure.update_yaxes(title_text=title, rangemode="tozero")


def _coverage_by_horizon(found: Backtest) -> Any:
    """Shares of values inside intervals by horizon, with the probability of each interval."""
    figure, steps = go.Figure(), [str(one) for one in found.horizons]
    for (level, values), colour in zip(shares_inside(found).items(), (GREEN, ORANGE, BLUE), strict=False):
        expected = {"mode": "lines", "line": {**DIAGONAL, "color": colour}, "hoverinfo": "skip", "showlegend": False}
        figure.add_scatter(x=steps, y=[level] * len(steps), **expected)
        name, hover = f"in {level:.0%} intervals", "%{x} steps ahead: %{y:.1%}<extra></extra>"
        line = {"color": colour, "width": 2.5}
        figure.add_scatter(x=steps, y=values, name=name, mode="lines+markers", line=line, hovertemplate=hover)
    figure.update_xaxes(title_text="steps ahead", type="category")
    return figure.update_yaxes(title_text="share of values inside", range=[0, 1], tickformat=".0%")


def _rates(numbers: SeriesReport) -> Any:
    """Time scales and powers of components by frequency, with bands of two standard deviations."""
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.06)
    hover = "%{y:.3g} at frequency %{x:.2g}"
    for row, curves in enumerate((numbers.times, numbers.powers), start=1):
        for one, line in zip(curves, LINES, strict=False):
            figure.add_traces(_curve(one, line, hovertemplate=hover, showlegend=row == 1), row, 1)
    figure.update_yaxes(title_text="time scale in steps", type="log", dtick=1, row=1)
    highest = max(float(one.high.max()) for one in numbers.powers)
    ends = [float(np.log10(highest * share)) for share in (LEAST_POWER, 1.5)]
    figure.update_yaxes(title_text="power", type="log", dtick=1, range=ends, row=2)
    figure.update_xaxes(title_text="frequency, smooth to rough", zeroline=False, row=2)
    return figure.update_layout(hovermode="closest")


def _curve(curve: Curve, line: dict[str, Any], **look: Any) -> list[Any]:
    """A line over its band."""
    across = curve.frequencies
    band = _band(across, curve.low, curve.high, line["color"], 0.25, showlegend=False)
    return [band, go.Scatter(x=across, y=curve.values, mode="lines", name=curve.name, line=line, **look)]


def _band(across: Any, low: Any, high: Any, colour: str = GREY, opacity: float = 0.4, **look: Any) -> Any:
    """A shaded band between two curves."""
    x, y = np.concatenate([across, across[::-1]]), np.concatenate([high, low[::-1]])
    return go.Scatter(x=x, y=y, **_shade(colour, opacity), hoverinfo="skip", **look)


def _shade(colour: str, opacity: float) -> dict[str, Any]:
    fill = f"rgba{(*bytes.fromhex(colour[1:]), opacity)}"
    return {"mode": "lines", "fill": "toself", "fillcolor": fill, "line": {"width": 0}}


def node_figure(axis: dict[str, str]) -> Any:
    """Marks of a node over the signals; the page sets their places."""
    figure = go.Figure(layout={"hovermode": "closest"})
    figure.update_xaxes(**axis, zeroline=False)
    for level, opacity in zip(FAN, (0.22, 0.4), strict=True):
        figure.add_scatter(name=f"{level:.0%} interval", **_shade(GREY, opacity), hoverinfo="skip", legendrank=2)
    looks = {
        "predicted": {"mode": "lines", "line": {"width": 1.5, "color": GREY}},
        "observed": {"mode": "lines+markers", "line": {"width": 1, "color": BLUE}, "marker": {"size": 5}},
        "imputed, with its 90% interval": {
            "mode": "markers",
            "marker": {"size": 8, "symbol": "square", "color": ORANGE},
            "error_y": {"type": "data", "color": ORANGE, "thickness": 1, "width": 2},
        },
    }
    for name, look in looks.items():
        figure.add_scatter(name=name, hovertemplate="%{text}: %{y:.4g}", **look)
    return figure


def hover_text(name: str) -> str:
    """A name with the markup escaped that plotly reads in texts."""
    return escape(" ".join((name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 3]}...").split()), quote=False)


def map_figure(graph: Graph, nodes: Indices, coordinates: Array, aspect: float) -> Any:
    """Edges, and marks of observed, missing and chosen nodes; the page sets their places."""
    n_drawn, own = nodes.size, coordinates[nodes]
    starts, ends, _ = heaviest_edges(graph.weights[nodes][:, nodes], MAX_EDGES)
    gaps = np.full((starts.size, 2), np.nan)
    across, up = np.stack([own[starts], own[ends], gaps], axis=1).reshape(-1, 2).T
    size, line_width = _mark_size(n_drawn), 0.5 if n_drawn > 2_000 else 1
    marks = go.Scattergl if max(n_drawn, starts.size) > MAX_POINTS else go.Scatter
    ring = {"size": size + 10, "symbol": "circle-open", "color": ORANGE, "line": {"width": 3}}
    axis = {"visible": False, "constrain": "domain"}
    edges = {"x": np.float32(across), "y": np.float32(up), "hoverinfo": "skip", "showlegend": False}
    unobserved = {"mode": "markers", "name": "not observed", "marker": {"size": size, "symbol": "circle-open"}}
    return go.Figure(
        [
            marks(mode="lines", line={"width": line_width, "color": "rgba(128, 128, 128, 0.6)"}, **edges),
            marks(mode="markers", showlegend=False),
            marks(hovertemplate="%{text}<br>not observed<extra></extra>", **unobserved),
            go.Scatter(mode="markers", hoverinfo="skip", showlegend=False, marker=ring),
        ],
        {
            "margin": {"l": 4, "r": 4, "t": 34, "b": 70},
            "hovermode": "closest",
            "dragmode": "pan",
            "legend": {"yref": "paper", "y": 1.0},  # below is the colour bar
            "uirevision": "map",
            "xaxis": axis,
            "yaxis": {**axis, "scaleanchor": "x", "scaleratio": aspect},
        },
    )


def _mark_size(n_nodes: int) -> float:
    return float(np.clip(420 / np.sqrt(n_nodes), 3, 14))


def node_markers(fields: dict[str, Array], n_nodes: int) -> dict[str, Any]:
    """Size and colours of the nodes, by the field that is shown."""
    values = colour_range(np.concatenate([fields["observed"].ravel(), fields["mean"].ravel()]))
    largest = colour_range(np.abs(fields["observed"] - fields["mean"]))[1]
    ranges = {"observed": values, "mean": values, "std": colour_range(fields["std"]), "residual": (-largest, largest)}
    look = {"size": _mark_size(n_nodes), "line": {"width": 0 if n_nodes > 2_000 else 0.5, "color": GREY}}
    bar = {"orientation": "h", "y": -0.02, "yanchor": "top", "thickness": 12, "len": 0.9, "nticks": 6}
    found = {}
    for field, (low, high) in ranges.items():
        title = FIELDS[field][1]
        own = {**bar, "outlinewidth": 0, "title": {"text": title, "side": "bottom"}}
        colours = "RdBu_r" if field == "residual" else "Viridis"
        marker = go.scatter.Marker(cmin=low, cmax=high, colorscale=colours, colorbar=own, **look)
        template = f"%{{text}}<br>{title}: %{{marker.color:.4g}}<extra></extra>"
        found[field] = {"marker": marker.to_plotly_json(), "hovertemplate": template}
    return found


def colour_range(values: Array) -> tuple[float, float]:
    """Ends of the colour scale; tails beyond them have the colours of the ends."""
    known = values[np.isfinite(values)]
    low, high = np.quantile(known, [COLOUR_TAIL, 1 - COLOUR_TAIL]).tolist() if known.size else (0.0, 1.0)
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def filter_figure(bands: FilterBands) -> Any:
    """Filters with their bands, one axis per unit, above shares of the eigenvalues and of the energy."""
    heights = [1.0] if not bands.filters else [0.4, 0.26, 0.26] if "carry" in bands.filters else [0.6, 0.34]
    n_rows, styles = len(heights), dict(zip(FILTER_NAMES, LINES, strict=False))
    figure = make_subplots(n_rows, 1, shared_xaxes=True, vertical_spacing=0.06, row_heights=heights)
    for which, one in bands.filters.items():
        curve = _curve(one, styles[which], hovertemplate="λ = %{x:.3g}: %{y:.4g}")
        figure.add_traces(curve, 2 if which == "carry" else 1, 1)
    middles, width = (bands.edges[1:] + bands.edges[:-1]) / 2, float(bands.edges[1] - bands.edges[0])
    look: dict[str, Any] = {**BARS, "hovertemplate": "%{y:.1%} of the eigenvalues<extra></extra>"}
    bars = go.Bar(x=middles, y=bands.eigenvalue_shares, width=width, name="share of the eigenvalues", **look)
    look = {"line": {"width": 1.5, "shape": "hvh"}, "marker": {"size": 4}, "mode": "lines+markers"}
    look["hovertemplate"] = "%{y:.1%} of the energy<extra></extra>"
    energy = go.Scatter(x=middles, y=bands.energy_shares, name="share of the data's energy", **look)
    figure.add_traces([bars, energy], n_rows, 1)
    for row, title in enumerate(("filters g, h", "filter b")[: n_rows - 1], start=1):
        figure.update_yaxes(title_text=title, row=row)
    figure.update_yaxes(title_text="share", tickformat=".0%", rangemode="tozero", row=n_rows)
    figure.update_xaxes(title_text=f"λ of the {bands.laplacian}", zeroline=False, row=n_rows)
    return figure.update_layout(bargap=0, hovermode="x")


def scatter_figure(predictions: Predictions, names: tuple[str, ...], nodes: Indices) -> Any:
    """Observed values against predictions, at most `MAX_POINTS` chosen at random."""
    rows, columns = np.nonzero(np.isfinite(predictions.observed[:, nodes]))
    if rows.size > MAX_POINTS:
        kept = np.sort(np.random.default_rng(0).choice(rows.size, MAX_POINTS, replace=False))
        rows, columns = rows[kept], columns[kept]
    places = rows, nodes[columns]
    observed, mean = predictions.observed[places], predictions.mean[places]
    pairs = ((names[node], predictions.labels[row]) for row, node in zip(*places, strict=True))
    texts = np.array([f"{hover_text(name)}, {hover_text(label)}" for name, label in pairs], dtype=object)
    inside = np.abs(2 * predictions.transformed[places] - 1) <= 0.9
    styles = {
        "inside its 90% interval": (inside, {"size": 5, "opacity": 0.6, "color": BLUE}),
        "outside": (~inside, {"size": 6, "opacity": 0.8, "symbol": "diamond", "color": ORANGE}),
    }
    figure = go.Figure(layout={"hovermode": "closest", "xaxis_title": "predicted", "yaxis_title": "observed"})
    hover = "%{text}<br>predicted %{x:.4g}, observed %{y:.4g}<extra></extra>"
    for name, (chosen, marker) in styles.items():
        points = {"x": np.float32(mean[chosen]), "y": np.float32(observed[chosen]), "text": texts[chosen].tolist()}
        figure.add_scatter(**points, mode="markers", name=name, marker=marker, hovertemplate=hover)
    values = np.concatenate([observed, mean])
    ends = [float(values.min()), float(values.max())] if values.size else [0.0, 1.0]  # nothing observed where drawn
    return figure.add_scatter(x=ends, y=ends, **(CALIBRATED | {"name": "observed = predicted"}))


def coverage_figure(found: Calibration) -> Any:
    """Coverage of intervals by their probability, with the band of calibrated predictions."""
    figure = go.Figure(_band(LEVELS, found.low, found.high, name="90% of calibrated"))
    figure.add_scatter(x=[0, 1], y=[0, 1], **CALIBRATED)
    look = {"mode": "lines", "line": {"color": BLUE, "width": 2.5}}
    hover = "%{y:.1%} in %{x:.0%} intervals<extra></extra>"
    figure.add_scatter(x=LEVELS, y=found.covered, name="observed", hovertemplate=hover, **look)
    figure.update_xaxes(title_text="probability of the interval", range=[0, 1], tickformat=".0%")
    return figure.update_yaxes(title_text="share of values inside", range=[0, 1], tickformat=".0%")


def histogram_figure(found: Calibration) -> Any:
    """Histogram of PIT values, with the band of calibrated predictions."""
    low, high = (np.full(2, end) for end in found.density_band)
    middles, widths = (found.edges[1:] + found.edges[:-1]) / 2, 0.96 * np.diff(found.edges)
    hover = "density %{y:.2f}<extra></extra>"
    bars = go.Bar(x=middles, y=found.density, width=widths, name="observed", hovertemplate=hover, **BARS)
    figure = go.Figure([bars, _band(np.array([0.0, 1.0]), low, high, name="90% of calibrated")])
    figure.add_scatter(x=[0, 1], y=[1, 1], **CALIBRATED)
    figure.update_xaxes(title_text="predicted probability of a lower value", range=[0, 1])
    return figure.update_yaxes(title_text="density", rangemode="tozero")
