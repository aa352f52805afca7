"""Where nodes are: points of a plane, a space of any dimension or the sphere, in arrays, tables or geometries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.checks import Array, as_option, as_real_array
from spectralgp._basics.tables import frame_index, frame_names
from spectralgp.graphs.nodes import Names, is_range

FARTHEST = 1e140
"""Points farther apart are refused: the sum of their squared distances could overflow."""

CLOSEST = 1e-140
"""Points closer together are refused unless they coincide: their squared distance loses its digits."""

EARTH_RADIUS = 6371.0088
"""Mean radius of the Earth (WGS 84) in kilometres."""


@dataclass(frozen=True, eq=False)
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
        """Euclidean distance of embedded points that are no farther apart than a radius."""
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


@dataclass(frozen=True, eq=False)
class Sphere:
    """Longitudes and latitudes in degrees, compared by great circles in kilometres."""

    points: Array

    def __post_init__(self) -> None:
        """Refuse what cannot be longitudes and latitudes."""
        if self.points.shape[1] != 2:
            raise ValueError(
                "points must have two columns, longitude and latitude, when metric='haversine'; "
                f"got {self.points.shape}. Pass these two in degrees."
            )
        for axis, name, column, low, high in ((1, "latitude", "second", -90, 90), (0, "longitude", "first", -180, 360)):
            values = self.points[:, axis]
            outside = values[(values < low) | (values > high)]
            if outside.size:
                raise ValueError(
                    f"points must have {name}s from {low} to {high} in the {column} column when metric='haversine'; "
                    f"got {outside[0]}. Columns are longitude and latitude in degrees: did you swap them?"
                )

    def embedded(self) -> Array:
        """Points on a sphere of radius one in space: chords have the order of great circles."""
        longitude, latitude = np.radians(self.points.T)
        cosine = self._cosines()
        return np.column_stack([cosine * np.cos(longitude), cosine * np.sin(longitude), np.sin(latitude)])

    def reach(self, radius: float) -> float:
        """Chord of a great circle of that length, or a little more: nearly antipodal chords hardly differ."""
        return 2 * float(np.sin(min(radius / (2 * EARTH_RADIUS), np.pi / 2))) + 1e-14

    def squared_distances(self, starts: NDArray[Any], ends: NDArray[Any]) -> Array:
        """Squared lengths of great circles between pairs of points, by the haversine formula."""
        longitude, latitude = self.points.T
        cosine = self._cosines()
        turn = longitude[starts] - longitude[ends]
        turn -= 360 * np.round(turn / 360)  # 360 degrees are none, but the sine of a rounded pi is not zero
        haversine = cosine[starts] * cosine[ends] * np.square(np.sin(np.radians(turn) / 2))
        haversine += np.square(np.sin(np.radians(latitude[starts] - latitude[ends]) / 2))
        return np.square(2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(haversine, 1.0))))

    def _cosines(self) -> Array:
        """Cosines of the latitudes, exactly zero at the poles."""
        return np.sin(np.radians(90 - np.abs(self.points[:, 1])))


def as_places(points: Any, metric: str) -> tuple[Plane | Sphere, Names]:
    """Points with their metric, and the names that a table or geometries give them."""
    as_option(metric, "metric", ("euclidean", "haversine"))
    geometry: Any = getattr(points, "geometry", None)
    if hasattr(geometry, "crs"):
        _check_reference_system(geometry.crs, metric)
        array, index = as_points(_point_coordinates(geometry)), geometry.index
    else:
        array, index = as_points(points), frame_index(points)
        columns = frame_names(points)
        if metric == "haversine" and columns is not None and str(columns[0]).lower().startswith("lat"):
            raise ValueError(
                f"points must have the columns (longitude, latitude) when metric='haversine'; got {list(columns)}. "
                "Reorder the columns."
            )
    return Plane(array) if metric == "euclidean" else Sphere(array), _labels(index)


def _labels(index: Any) -> Names:
    """Labels of the rows of a table, unless they only count."""
    labels = () if index is None else tuple(index.tolist())
    return None if is_range(labels) else labels


def _point_coordinates(geometry: Any) -> Array:
    try:
        return np.column_stack([geometry.x, geometry.y])
    except ValueError as error:
        raise TypeError(
            f"points must have point geometries; got other ones ({error}). Pass points.centroid, or other points."
        ) from error


def _check_reference_system(system: Any, metric: str) -> None:
    if system is None or system.is_geographic == (metric == "haversine"):
        return
    if system.is_geographic:
        raise ValueError(
            f"metric must be 'haversine' for points in degrees; got 'euclidean' with points in {system.name}. "
            "Pass metric='haversine', or project the points by to_crs."
        )
    raise ValueError(
        f"metric must be 'euclidean' for projected points; got 'haversine' with points in {system.name}. "
        "Leave the metric out, or pass points.to_crs(4326)."
    )


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
