"""Adjacency matrices from points of a plane, a space of any dimension or the sphere: neighbours, or all in a radius."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from spectralgp._basics.checks import Array, Integers, Mask, as_integer, as_option, as_positive, as_real_array
from spectralgp._basics.tables import frame_index, frame_names
from spectralgp.graphs.weights import Names, finished, is_range, mirrored, small_integers

FARTHEST = 1e140  # apart: the sum of squared distances of points beyond it could overflow
CLOSEST = 1e-140  # apart, unless points coincide: the squared distance of closer ones loses its digits
EARTH_RADIUS = 6371.0088  # in kilometres: mean radius of the Earth (WGS 84)
DEFAULT_NEIGHBORS = 10
RADIUS_ROUNDING = 1e-9  # by which a point may lie beyond a radius, relative to it


@dataclass(frozen=True, eq=False)
class Plane:
    """Points compared by Euclidean distance."""

    points: Array

    def __post_init__(self) -> None:
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


METRICS: dict[str, type[Plane] | type[Sphere]] = {"euclidean": Plane, "haversine": Sphere}


def as_places(points: Any, metric: str) -> tuple[Plane | Sphere, Names]:
    """Points with their metric, and their names in a table or in geometries."""
    kind = METRICS[as_option(metric, "metric", tuple(METRICS))]
    geometry: Any = getattr(points, "geometry", None)
    if hasattr(geometry, "crs"):
        system = geometry.crs
        if system is not None and system.is_geographic != (metric == "haversine"):
            fitting, of, remedy = (
                ("haversine", "points in degrees", "Pass metric='haversine', or project the points by to_crs.")
                if system.is_geographic
                else ("euclidean", "projected points", "Leave the metric out, or pass points.to_crs(4326).")
            )
            raise ValueError(
                f"metric must be {fitting!r} for {of}; got {metric!r} with points in {system.name}. {remedy}"
            )
        try:
            coordinates = np.column_stack([geometry.x, geometry.y])
        except ValueError as error:
            raise TypeError(
                f"points must have point geometries; got other ones ({error}). Pass points.centroid, or other points."
            ) from error
        array, index = as_points(coordinates), geometry.index
    else:
        array, index = as_points(points), frame_index(points)
        columns = frame_names(points)
        if metric == "haversine" and columns is not None and str(columns[0]).lower().startswith("lat"):
            raise ValueError(
                f"points must have the columns (longitude, latitude) when metric='haversine'; got {list(columns)}. "
                "Reorder the columns."
            )
    labels = () if index is None else tuple(index.tolist())
    return kind(array), None if is_range(labels) else labels


def as_points(points: Any) -> Array:
    """Finite points of shape (n_nodes, n_dimensions), at least one of each."""
    remedy = "Rows are nodes; use points[:, None] for points on a line."
    array = as_real_array(points, "points", ("n_nodes", "n_dimensions"), remedy=remedy)
    if 0 in array.shape:
        raise ValueError(f"points must have at least one row and one column; got {array.shape}. Rows are nodes.")
    return array


@dataclass(frozen=True, eq=False)
class PointJoin:
    """Rule that joins points and weighs the edges; see `Graph.from_points` for the fields."""

    n_neighbors: int | None
    radius: float | None
    weights: str
    bandwidth: float | None
    symmetrize: str
    metric: str

    def places(self, points: Array) -> Plane | Sphere:
        """Points with the metric."""
        return METRICS[self.metric](points)

    def checked(self, n_nodes: int) -> PointJoin:
        """Return a validated copy with either n_neighbors or a radius, which is widened by rounding."""
        as_option(self.weights, "weights", ("gaussian", "inverse", "binary"))
        as_option(self.symmetrize, "symmetrize", ("maximum", "average", "minimum"))
        bandwidth = None if self.bandwidth is None else as_positive(self.bandwidth, "bandwidth")
        if bandwidth is not None and self.weights != "gaussian":
            raise ValueError(
                f"bandwidth must be None unless weights='gaussian'; got {bandwidth} with "
                f"weights={self.weights!r}. Leave it out."
            )
        if self.radius is not None and self.n_neighbors is not None:
            raise ValueError(
                f"n_neighbors must be None when radius is given; got n_neighbors={self.n_neighbors} and "
                f"radius={self.radius}. Choose one of the two."
            )
        if self.radius is not None:
            reach = as_positive(self.radius, "radius") * (1 + RADIUS_ROUNDING)
            return replace(self, radius=reach, bandwidth=bandwidth)
        if n_nodes < 2:
            raise ValueError(
                f"points must have at least two rows for nearest neighbours; got {n_nodes}. "
                "Use Graph.edgeless(1) for a single node."
            )
        wanted = DEFAULT_NEIGHBORS if self.n_neighbors is None else self.n_neighbors
        return replace(self, n_neighbors=as_integer(wanted, "n_neighbors", 1, n_nodes - 1), bandwidth=bandwidth)


def weights_from_points(places: Plane | Sphere, joining: PointJoin) -> Any:
    """Return the weights of `Graph.from_points`."""
    n_nodes, n_neighbors, embedded = len(places.points), cast(int, joining.n_neighbors), places.embedded()
    integers, tree = small_integers(n_nodes), cKDTree(embedded)
    if joining.radius is not None:
        pairs = tree.query_pairs(places.reach(joining.radius), output_type="ndarray")
        starts, ends = pairs.T.astype(integers)
        squared = places.squared_distances(starts, ends)
        near = np.sqrt(squared) <= joining.radius
        weights = weigh(squared[near], joining.weights, joining.bandwidth)
        return mirrored(starts[near], ends[near], weights, n_nodes)
    neighbors = tree.query(embedded, k=n_neighbors + 1, workers=-1)[1]
    ends = neighbors[others_of(neighbors)].astype(integers)  # coincident points included
    squared = places.squared_distances(np.repeat(np.arange(n_nodes, dtype=integers), n_neighbors), ends)
    indptr = np.arange(0, len(ends) + 1, n_neighbors, dtype=small_integers(len(ends)))
    directed = csr_array((weigh(squared, joining.weights, joining.bandwidth), ends, indptr), shape=(n_nodes, n_nodes))
    directed.sort_indices()
    return finished(symmetrized(directed, directed.T.tocsr(), joining.symmetrize))


def others_of(neighbors: Integers) -> Mask:
    """Mask of the neighbours of each point that are not the point itself, the same number for each."""
    others: Mask = neighbors != np.arange(len(neighbors))[:, np.newaxis]
    # if coincident points displaced a node from its own list, its farthest neighbour is dropped instead
    others[others.all(axis=1), -1] = False
    return others


def weigh(squared: Array, weights: str, bandwidth: float | None) -> Array:
    """Edge weights from squared distances, in place; every one is positive."""
    if weights == "binary":
        return np.ones_like(squared)
    if not squared.size:
        return squared
    if weights == "inverse":
        if squared.min() == 0:
            raise ValueError(
                "points must be distinct when weights='inverse'; got coincident neighbours. "
                "Merge them, or use weights='gaussian'."
            )
        np.sqrt(squared, out=squared)
        return np.divide(1.0, squared, out=squared)
    if bandwidth is None:
        bandwidth = usual_bandwidth([squared])
    farthest = float(squared.max())
    with np.errstate(over="ignore"):
        squared /= -bandwidth
    np.exp(squared, out=squared)
    if squared.min() < np.finfo(np.float64).tiny:  # so small a number has lost its digits, if it is not zero
        raise ValueError(
            "bandwidth must be large enough for every neighbour's weight exp(-d^2 / bandwidth) to be "
            f"above 0; got {bandwidth} with a neighbour at d^2 = {farthest}. "
            f"Pass at least {farthest / 700:.3g}, or use weights='inverse'."
        )
    return squared


def symmetrized(directed: Any, other: Any, symmetrize: str) -> Any:
    """Combine the weights of both directions."""
    if symmetrize == "maximum":
        return directed.maximum(other)
    if symmetrize == "minimum":
        return directed.minimum(other)
    mean = directed + other
    mean.data *= 0.5
    return mean


def usual_bandwidth(pieces: Sequence[Array]) -> float:
    """Mean of squared distances; the sum is exact, so that it does not depend on order or pieces."""
    total = math.fsum(chain.from_iterable(map(np.asarray, pieces)))  # a memory map itself is slow to iterate over
    if total == 0:
        raise ValueError(
            "points must not all coincide with their neighbours; got only distances of 0. Pass a bandwidth."
        )
    return total / sum(map(len, pieces))
