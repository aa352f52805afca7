"""Graphs from GeoJSON: points and their neighbours, or polygons and who borders whom."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from spectralgp.graph import Graph

POLYGONS = ("Polygon", "MultiPolygon")


def graph_from_geojson(path: Path, n_neighbors: int | None, radius: float | None) -> Graph:
    """Graph of the features of a GeoJSON file, for `graph_from_file`, whose docstring says what is accepted."""
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
        features = document["features"]
        kinds = {feature["geometry"]["type"] for feature in features}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path} must be a GeoJSON FeatureCollection with geometries; got {reason}.") from error
    if not kinds or not (kinds == {"Point"} or kinds <= set(POLYGONS)):
        found = ", ".join(sorted(map(str, kinds))) or "no features"
        raise ValueError(f"{path} must have points, or polygons, and nothing else; got {found}. Drop other features.")
    names = _names(features, path)
    try:
        if kinds == {"Point"}:
            points = np.array([feature["geometry"]["coordinates"][:2] for feature in features], dtype=np.float64)
            return Graph.from_points(points, n_neighbors, radius=radius, metric="haversine", names=names)
        return _contiguous(features, names)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{path}: {error}") from error


def _names(features: list[Any], path: Path) -> list[str]:
    names: list[str] = []
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
        names.append(str(name))
    return names


def _contiguous(features: list[Any], names: list[str]) -> Graph:
    """Polygons that share a stretch of border, that is two neighbouring corners, joined with weight 1."""
    owners: dict[frozenset[tuple[float, float]], set[int]] = defaultdict(set)
    centres = np.empty((len(features), 2))
    for place, feature in enumerate(features):
        corners = []
        for ring in _rings(feature["geometry"]):
            points = [(float(point[0]), float(point[1])) for point in ring]
            corners += points[:-1]
            for stretch in pairwise(points):
                owners[frozenset(stretch)].add(place)
        centres[place] = np.mean(corners, axis=0)
    edges = sorted({pair for owned in owners.values() for pair in combinations(sorted(owned), 2)})
    if not edges:
        raise ValueError(
            "polygons must share stretches of border, corner by corner; got none that do. Use points instead, or a "
            "list of edges."
        )
    return Graph.from_edges(np.array(edges), names=names, coordinates=centres)


def _rings(geometry: Any) -> Iterator[Any]:
    parts = [geometry["coordinates"]] if geometry["type"] == "Polygon" else geometry["coordinates"]
    for part in parts:
        yield from part
