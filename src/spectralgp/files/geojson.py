"""Graphs from GeoJSON: points and their neighbours, or polygons and who borders whom."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from spectralgp.graphs import Graph

POLYGONS = ("Polygon", "MultiPolygon")
Ring = list[tuple[float, float]]


def graph_from_geojson(path: Path, n_neighbors: int | None, radius: float | None) -> Graph:
    """Graph of the features of a GeoJSON file, for `graph_from_file`, whose docstring says what is accepted."""
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
        features = list(document["features"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path} must be a GeoJSON FeatureCollection; got {reason}.") from error
    shapes = [_shape(feature, number, path) for number, feature in enumerate(features, 1)]
    kinds = {kind for kind, _ in shapes}
    if not kinds or not (kinds == {"Point"} or kinds <= set(POLYGONS)):
        found = ", ".join(sorted(kinds)) or "no features"
        raise ValueError(f"{path} must have points, or polygons, and nothing else; got {found}. Drop other features.")
    names, rings = _names(features, path), [found for _, found in shapes]
    try:
        if kinds == {"Point"}:
            points = np.array([ring[0] for (ring,) in rings])
            return Graph.from_points(points, n_neighbors, radius=radius, metric="haversine", names=names)
        return _contiguous(rings, names)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _shape(feature: Any, number: int, path: Path) -> tuple[str, list[Ring]]:
    """Kind of a feature, and the rings of its polygons; a point is a ring of one."""
    geometry: Any = feature.get("geometry") if isinstance(feature, dict) else feature
    try:
        kind, parts = str(geometry["type"]), geometry.get("coordinates")
        if kind == "Point":
            parts = [[[parts]]]
        elif kind in POLYGONS:
            parts = [parts] if kind == "Polygon" else parts
        else:
            return kind, []
        rings = [[(float(point[0]), float(point[1])) for point in ring] for part in parts for ring in part]
        if not rings or not all(rings):
            raise ValueError("no coordinates")
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must have a geometry in every feature, with coordinates that are numbers; got "
            f"{repr(geometry)[:80]} in feature {number}. Correct or drop it."
        ) from error
    return kind, rings


def _names(features: list[Any], path: Path) -> list[str]:
    names: dict[str, None] = {}  # in order, and looked up at once
    for number, feature in enumerate(features, 1):
        properties = feature.get("properties") or {}
        lowered = {str(key).lower(): value for key, value in properties.items()}
        name = lowered.get("name", feature.get("id", lowered.get("id")))
        if name is None or str(name) in names:
            got = f"{name!r} again" if name is not None else f"properties {sorted(map(str, properties))}"
            raise ValueError(
                f"{path} must name every feature once, by a property 'name' or an 'id'; got {got} in feature {number}. "
                "Add or correct it."
            )
        names[str(name)] = None
    return list(names)


def _contiguous(shapes: list[list[Ring]], names: list[str]) -> Graph:
    """Polygons that share a stretch of border, that is two neighbouring corners, joined with weight 1."""
    owners: dict[frozenset[tuple[float, float]], set[int]] = defaultdict(set)
    centres = np.empty((len(shapes), 2))
    for place, rings in enumerate(shapes):
        centres[place] = np.mean([corner for ring in rings for corner in ring[:-1] or ring], axis=0)
        for stretch in (stretch for ring in rings for stretch in pairwise(ring)):
            owners[frozenset(stretch)].add(place)
    edges = sorted({pair for owned in owners.values() for pair in combinations(sorted(owned), 2)})
    if not edges:
        raise ValueError(
            "polygons must share stretches of border, corner by corner; got none that do. Use points instead, or a "
            "list of edges."
        )
    return Graph.from_edges(np.array(edges), names=names, coordinates=centres)
