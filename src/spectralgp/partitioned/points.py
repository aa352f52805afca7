"""Rows of the weights from points, one partition at a time, with neighbours across borders exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from spectralgp._basics.checks import Array, Integers
from spectralgp.graphs.places import Plane, Sphere
from spectralgp.graphs.points import ExactSum, Joining, others_of, symmetrized, weigh
from spectralgp.partitioned.edges import by_owner, pieces
from spectralgp.partitioned.site import Site

SEGMENTS = 64  # of the curve in a partition, each with a box around its points
SLACK = 1 + 1e-9  # times a distance: rounding must hide no neighbour


@dataclass(frozen=True, eq=False)
class Joiner:
    """Joins points that are kept by partition, in the order of the curve, with the boxes of its segments."""

    site: Site
    kind: type[Plane] | type[Sphere]
    joining: Joining

    def keep_points(self, number: int, coordinates: Array) -> None:
        """Keep the points of a partition, and boxes around them."""
        self.site.keep(_points(number), lambda: self._boxed(coordinates[self.site.order[self.site.own(number)]]))

    def _boxed(self, points: Array) -> dict[str, NDArray[Any]]:
        n_segments = min(SEGMENTS, len(points))
        starts = np.arange(n_segments) * len(points) // n_segments
        embedded = self.kind(points).embedded()
        low, high = (np.asarray(extreme.reduceat(embedded, starts)) for extreme in (np.minimum, np.maximum))
        return {"points": points, "starts": np.append(starts, len(points)), "low": low, "high": high}

    def keep_found(self, number: int) -> None:
        """Keep the neighbours of a partition's own points and their squared distances, by the neighbours' owners."""
        self.site.keep(_found(number), lambda: self._found(number))

    def _found(self, number: int) -> dict[str, NDArray[Any]]:
        find = self._nearest if self.joining.radius is None else self._within
        starts, ends = find(number)
        squared = self._squared(number, starts, ends)
        if self.joining.radius is not None:
            near = np.sqrt(squared) <= self.joining.radius
            starts, ends, squared = starts[near], ends[near], squared[near]
        return by_owner(self.site, ends, {"starts": starts.astype(np.int32), "squared": squared})

    def _points_of(self, number: int) -> Array:
        return np.array(self.site.kept(_points(number), "points"))

    def _nearest(self, number: int) -> tuple[Integers, Integers]:
        """Own positions and ranks of the nearest others of every own point in turn."""
        n_neighbors, own = self.joining.n_neighbors or 0, self.site.own(number)
        embedded = self.kind(self._points_of(number)).embedded()
        n_own = len(embedded)
        distances, ranks = np.full((n_own, n_neighbors), np.inf), np.full((n_own, n_neighbors), -1)
        among = min(n_neighbors + 1, n_own)
        found, neighbors = _asked(embedded, embedded, among)
        others = others_of(neighbors)
        distances[:, : among - 1] = found[others].reshape(n_own, -1)
        ranks[:, : among - 1] = neighbors[others].reshape(n_own, -1) + own.start
        for asking, theirs, points in self._near(number, embedded, distances[:, -1], both_ways=True):
            among = min(n_neighbors, len(points))
            found, neighbors = _asked(points, embedded[asking], among)
            together = np.concatenate([distances[asking], found], axis=1)
            chosen = np.argsort(together, axis=1, kind="stable")[:, :n_neighbors]
            distances[asking] = np.take_along_axis(together, chosen, axis=1)
            both = np.concatenate([ranks[asking], theirs[neighbors]], axis=1)
            ranks[asking] = np.take_along_axis(both, chosen, axis=1)
        return np.repeat(np.arange(n_own), n_neighbors), ranks.ravel()

    def _within(self, number: int) -> tuple[Integers, Integers]:
        """Pairs within the radius, each once: among own points, and with points of later partitions."""
        own = self.site.own(number)
        places = self.kind(self._points_of(number))
        embedded, reach = places.embedded(), places.reach(self.joining.radius or 0.0)
        pairs = cKDTree(embedded).query_pairs(reach, output_type="ndarray")
        starts, ends = [pairs[:, 0]], [pairs[:, 1] + own.start]
        for asking, theirs, points in self._near(number, embedded, np.full(len(embedded), reach), both_ways=False):
            near = cKDTree(embedded[asking]).sparse_distance_matrix(cKDTree(points), reach, output_type="ndarray")
            starts.append(asking[near["i"]])
            ends.append(theirs[near["j"]])
        return np.concatenate(starts), np.concatenate(ends)

    def _near(
        self, number: int, embedded: Array, reaches: Array, both_ways: bool
    ) -> Iterator[tuple[Integers, Integers, Array]]:
        """For other partitions that may have points within reach: own points that ask, ranks and points to look among.

        The reaches are looked at anew for every partition: they shrink while neighbours are found.
        """
        starts, low, high = (self.site.kept(_points(number), name) for name in ("starts", "low", "high"))
        for other in range(0 if both_ways else number + 1, self.site.n_partitions):
            if other == number:
                continue
            farthest = np.maximum.reduceat(reaches, starts[:-1]) * SLACK
            bottoms, tops = (np.array(self.site.kept(_points(other), name)) for name in ("low", "high"))
            near = _gaps(low[:, None], high[:, None], bottoms, tops) <= farthest[:, None]
            asks = np.zeros(len(embedded), dtype=bool)
            for segment in np.flatnonzero(near.any(axis=1)).tolist():
                mine = slice(int(starts[segment]), int(starts[segment + 1]))
                limits = reaches[mine] * SLACK
                for box in np.flatnonzero(near[segment]).tolist():
                    asks[mine] |= _gaps(embedded[mine], embedded[mine], bottoms[box], tops[box]) <= limits
            asking = np.flatnonzero(asks)
            if not asking.size:
                continue
            begins = self.site.kept(_points(other), "starts")
            boxes = np.flatnonzero(near.any(axis=0)).tolist()
            places = np.concatenate([np.arange(begins[box], begins[box + 1]) for box in boxes])
            points = self.kind(self.site.kept(_points(other), "points")[places]).embedded()
            yield asking, places + self.site.own(other).start, points

    def _squared(self, number: int, starts: Integers, ends: Integers) -> Array:
        """Squared distances from own points to others, as a graph in memory computes them."""
        own, n_own = self.site.own(number), int(self.site.starts[number + 1] - self.site.starts[number])
        inside = (ends >= own.start) & (ends < own.stop)
        foreign, where = np.unique(ends[~inside], return_inverse=True)
        owners = np.searchsorted(foreign, self.site.starts)
        points = [self._points_of(number)]
        for other in np.flatnonzero(np.diff(owners)).tolist():
            theirs = foreign[owners[other] : owners[other + 1]] - self.site.starts[other]
            points.append(self.site.kept(_points(other), "points")[theirs])
        positions = ends - own.start
        positions[~inside] = n_own + where
        return self.kind(np.concatenate(points)).squared_distances(starts, positions)

    def bandwidth(self) -> float | None:
        """Of Gaussian weights: the one given, or the mean of all squared distances that were found."""
        if self.joining.weights != "gaussian" or self.joining.bandwidth is not None:
            return self.joining.bandwidth
        total = ExactSum()
        for number in range(self.site.n_partitions):
            total = total.plus(self.site.kept(_found(number), "squared"))
        return total.mean if total.count else None

    def keep_weights(self, number: int, bandwidth: float | None) -> None:
        """Keep the weights of what was found: computed once, though both ends' rows have them."""
        squared = self.site.kept(_found(number), "squared")
        self.site.keep(_weighed(number), lambda: {"weights": weigh(np.array(squared), self.joining.weights, bandwidth)})

    def rows(self, number: int) -> Any:
        """Rows of a partition's own nodes, columns being nodes in the user's order."""
        own = self.site.own(number)
        shape = (own.stop - own.start, self.site.n_nodes)
        starts, rows, ends = (self.site.kept(_found(number), name) for name in ("starts", "rows", "ends"))
        owned = np.repeat(self.site.starts[:-1], np.diff(ends, prepend=0))
        weights = self.site.kept(_weighed(number), "weights")
        directed = csr_array((weights, (starts, self.site.order[owned + rows])), shape=shape)
        others = []
        for other in range(self.site.n_partitions):
            ((theirs, mine),) = pieces(self.site, number, [_found(other)], ("starts", "rows"))
            limits = self.site.kept(_found(other), "ends")
            entries = slice(int(limits[number]) - len(mine), int(limits[number]))
            nodes = self.site.order[theirs + self.site.starts[other]]
            others.append((mine, nodes, self.site.kept(_weighed(other), "weights")[entries]))
        mine, nodes, values = (np.concatenate(parts) for parts in zip(*others, strict=True))
        other_way = csr_array((values, (mine, nodes)), shape=shape)
        if self.joining.radius is not None:
            return directed + other_way
        return symmetrized(directed, other_way, self.joining.symmetrize)


def _asked(among: Array, points: Array, n_neighbors: int) -> tuple[Array, Integers]:
    """Distances and positions of the nearest points, of shape (n_points, n_neighbors) also where that is one."""
    distances, neighbors = cKDTree(among).query(points, k=np.arange(1, n_neighbors + 1), workers=-1)
    return distances, neighbors


def _gaps(low: Array, high: Array, bottoms: Array, tops: Array) -> Array:
    """Distances between boxes, zero where they meet."""
    between = np.maximum(np.maximum(bottoms - high, low - tops), 0.0)
    return np.asarray(np.sqrt(np.square(between).sum(axis=-1)))


def _points(number: int) -> str:
    return f"points-{number:05d}"


def _found(number: int) -> str:
    return f"found-{number:05d}"


def _weighed(number: int) -> str:
    return f"weighed-{number:05d}"
