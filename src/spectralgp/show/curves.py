"""Curves over the frequencies of a graph, with their uncertainty, and the colours of every picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from spectralgp._basics.checks import Array

# Okabe and Ito's palette, distinct to colour-blind readers too, in an order that starts with the strongest contrasts;
# its yellow is left out as too faint for lines on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
Which = Literal["signal", "residual", "carry"]

FILTER_NAMES: dict[Which, str] = {
    "signal": "signal filter g",
    "residual": "residual filter h",
    "carry": "carry-over filter b",
}
WIDEST = 1_000.0  # ratio of the end of a band to the learnt value, at most


@dataclass(frozen=True, eq=False)
class Curve:
    """Values by frequency of the graph, and the ends of a band of uncertainty about them."""

    name: str
    frequencies: Array
    values: Array
    low: Array
    high: Array


def filter_curve(name: str, frequencies: Array, values: Array, std: Array | None) -> Curve:
    """Filter in a band of one standard deviation, at least zero if the filter is nowhere negative; std may be None."""
    low, high = (values, values) if std is None else (values - std, values + std)
    return Curve(name, frequencies, values, np.maximum(low, 0.0) if np.min(values) >= 0 else low, high)


def component_curves(
    model: Any, which: Literal["rate", "power"], frequencies: Array | None = None
) -> tuple[Curve, ...]:
    """Time scale in steps, one over the rate, or power of each component of a fitted forecaster."""
    points, found, deviations = model.response(frequencies, return_std=True, which=which)
    values = 1 / found if which == "rate" else found
    reach = np.exp(np.minimum(2 * deviations / found, np.log(WIDEST)))  # two deviations of the logarithm
    curves = zip(model.component_names_, values, values / reach, values * reach, strict=True)
    return tuple(Curve(name, points, value, low, high) for name, value, low, high in curves)


def laplacian_in_words(kind: str, scaled: bool) -> str:
    """Name of a Laplacian, such as "scaled normalised Laplacian"."""
    return f"{'scaled ' if scaled else ''}{kind.replace('normalized', 'normalised')} Laplacian"
