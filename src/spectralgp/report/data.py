"""What the script of a report draws: numbers as JSON that may stand inside a page."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.checks import Array
from spectralgp.graphs.edges import heaviest_edges
from spectralgp.report.numbers import Bands, Numbers, Predictions
from spectralgp.report.places import Places
from spectralgp.report.words import SYMBOLS
from spectralgp.scores import LEVELS, Calibration, interval_half_width

MOST_EDGES = 40_000  # that can be drawn
FEW_EDGES = 10_000  # that are drawn unasked: of more a map without a graphics card is slow
MOST_VALUES = 1_000_000  # on the map: observed, predicted and deviations of so many, four bytes each
MOST_POINTS = 3_000  # of predictions against what was observed, so few that they need no WebGL
TAIL = 0.005  # share of the values beyond either end of the colours
UNSAFE = {character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def as_json(data: Any) -> str:
    r"""JSON in which nothing can end a script element or begin markup.

    Examples
    --------
    >>> as_json(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character, escaped in UNSAFE.items():
        text = text.replace(character, escaped)
    return text


def encoded(values: Any, kind: str = "<f4") -> str:
    """An array's bytes, little endian and in rows, as base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def shown_signals(n_signals: int, n_drawn: int) -> NDArray[np.intp]:
    """Signals that the map has room for, evenly spaced.

    Examples
    --------
    >>> shown_signals(3, 50).tolist(), shown_signals(1_000, 20_000).size
    ([0, 1, 2], 16)
    """
    n_shown = min(n_signals, max(1, MOST_VALUES // (3 * n_drawn)))
    return np.unique(np.linspace(0, n_signals - 1, n_shown).round().astype(np.intp))


def drawn(numbers: Numbers, places: Places, shown: NDArray[np.intp], aspect: float) -> dict[str, Any]:
    """Everything that is drawn."""
    return {
        "map": _map(numbers, places, shown, aspect),
        "bands": _bands(numbers.bands),
        "scatter": _scatter(numbers, places.nodes),
        "calibration": _calibration(numbers.calibration),
    }


def _map(numbers: Numbers, places: Places, shown: NDArray[np.intp], aspect: float) -> dict[str, Any]:
    predictions, nodes = numbers.predictions, places.nodes
    fields = {name: getattr(predictions, name)[np.ix_(shown, nodes)] for name in ("observed", "mean", "std")}
    residual = fields["observed"] - fields["mean"]
    largest = _ends(np.abs(residual))[1]
    weights = numbers.graph.weights
    if nodes.size < numbers.graph.n_nodes:
        weights = weights[nodes][:, nodes]
    starts, ends, _ = heaviest_edges(weights, MOST_EDGES)
    return {
        "names": [numbers.names[node] for node in nodes.tolist()],
        "labels": [predictions.labels[number] for number in shown.tolist()],
        "x": encoded(places.coordinates[:, 0]),
        "y": encoded(places.coordinates[:, 1]),
        "starts": encoded(starts, "<i4"),
        "ends": encoded(ends, "<i4"),
        "aspect": aspect,
        **{name: encoded(values) for name, values in fields.items()},
        "ranges": {
            "value": _ends(np.concatenate([fields["observed"].ravel(), fields["mean"].ravel()])),
            "std": _ends(fields["std"]),
            "residual": [-largest, largest],
        },
    }


def _ends(values: Array) -> list[float]:
    """Ends of the colours: the tails beyond them have the colour of the end."""
    known = values[np.isfinite(values)]
    low, high = np.quantile(known, [TAIL, 1 - TAIL]).tolist() if known.size else (0.0, 1.0)
    return [low, high] if high > low else [low - 0.5, low + 0.5]


def _bands(bands: Bands) -> dict[str, Any]:
    filters = []
    for one in bands.filters:
        std = np.zeros_like(one.mean) if one.std is None else one.std
        low, high = one.mean - std, one.mean + std
        low = np.maximum(low, 0.0) if np.min(one.mean) >= 0 else low
        filters.append(
            {
                "which": one.which,
                "label": SYMBOLS[one.which],
                "mean": one.mean.tolist(),
                "low": low.tolist(),
                "high": high.tolist(),
            }
        )
    return {
        "laplacian": bands.laplacian,
        "grid": bands.grid.tolist(),
        "filters": filters,
        "edges": bands.edges.tolist(),
        "eigenvalues": bands.eigenvalue_shares.tolist(),
        "energy": bands.energy_shares.tolist(),
    }


def _scatter(numbers: Numbers, nodes: NDArray[np.intp]) -> dict[str, Any]:
    """Predictions against what was observed, of no more than some values, drawn by lot."""
    predictions = numbers.predictions
    rows, columns = np.nonzero(np.isfinite(predictions.observed[:, nodes]))
    n_values = rows.size
    if n_values > MOST_POINTS:
        kept = np.sort(np.random.default_rng(0).choice(n_values, MOST_POINTS, replace=False))
        rows, columns = rows[kept], columns[kept]
    observed, mean, std = (_entries(predictions, name, rows, nodes[columns]) for name in ("observed", "mean", "std"))
    return {
        "observed": encoded(observed),
        "mean": encoded(mean),
        "half": encoded(interval_half_width(std, 0.9)),
        "nodes": encoded(columns, "<i4"),
        "labels": [predictions.labels[row] for row in rows.tolist()],
    }


def _entries(predictions: Predictions, name: str, rows: Any, nodes: Any) -> Array:
    values: Array = getattr(predictions, name)[rows, nodes]
    return values


def _calibration(found: Calibration) -> dict[str, Any]:
    return {
        "levels": LEVELS.tolist(),
        "covered": found.covered.tolist(),
        "low": found.low.tolist(),
        "high": found.high.tolist(),
        "edges": found.edges.tolist(),
        "density": found.density.tolist(),
        "band": list(found.density_band),
    }
