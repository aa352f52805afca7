"""Where nodes are: points of a plane or a space of any dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp._checks import Array, as_real_array

FARTHEST = 1e140
"""Points farther apart are refused: the sum of their squared distances could overflow."""

CLOSEST = 1e-140
"""Points closer together are refused unless they coincide: their squared distance loses its digits."""


@dataclass(frozen=True)
class Plane:
    """Points compared by Euclidean distance."""

    points: Array

    def __post_init__(self) -> None:
        """Refuse points whose squared distances would overflow."""
        with np.errstate(over="ignore"):
            extent = float(np.ptp(self.points, axis=0).max())
        if not extent <= FARTHEST:
            raise ValueError(
                f"points must lie within {FARTHEST} of each other; got coordinates that differ by {extent:.3g}. "
                "Rescale them: squared distances would overflow."
            )

    def embedded(self) -> Array:
        """Points whose Euclidean distances have the same order."""
        return self.points

    def reach(self, radius: float) -> float:
        """Euclidean distance of embedded points that is as far as a radius."""
        return radius

    def squared_distances(self, starts: NDArray[Any], ends: NDArray[Any]) -> Array:
        """Squared distances between pairs of points."""
        squared = np.zeros(len(starts))
        for coordinate in self.points.T:  # one axis at a time and in place: pairs are many
            difference = coordinate[starts]
            difference -= coordinate[ends]
            squared += np.square(difference, out=difference)
        close = np.flatnonzero(squared < CLOSEST**2)
        if (self.points[starts[close]] != self.points[ends[close]]).any():
            raise ValueError(
                f"points must coincide or lie {CLOSEST} apart; got different points that are closer. "
                "Rescale them: squared distances would be lost to rounding."
            )
        return squared


def as_points(points: Any) -> Array:
    """Finite points of shape (n_nodes, n_dimensions), at least one of each."""
    array = as_real_array(
        points,
        "points",
        ("n_nodes", "n_dimensions"),
        remedy="Rows are nodes; use points[:, None] for points on a line.",
    )
    if 0 in array.shape:
        raise ValueError(f"points must have at least one row and one column; got {array.shape}. Rows are nodes.")
    return array
