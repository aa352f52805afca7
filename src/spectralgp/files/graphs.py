"""Graphs from files: lists of edges, GraphML, adjacency matrices, GeoJSON, and tables of points."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.io import mminfo, mmread
from scipy.sparse import load_npz

from spectralgp._basics.checks import Array
from spectralgp._basics.extras import require
from spectralgp._basics.tables import some
from spectralgp.files.tables import PARQUET, TEXT, FileTable, naming_file, read_table
from spectralgp.graphs import Graph, as_graph

NEIGHBORS = 8  # that points are joined to
LONGITUDE, LATITUDE = ("longitude", "lon", "lng", "long"), ("latitude", "lat")
NAME = ("name", "node", "id")
PACKED = (*(f"{suffix}.gz" for suffix in TEXT), ".mtx.gz")
FEW_ROWS = 1_000_000  # of a matrix, which a file of any size may have
POLYGONS = ("Polygon", "MultiPolygon")
Ring = list[tuple[float, float]]


def graph_from_file(path: Path | str, n_neighbors: int | None = None, radius: float | None = None) -> Graph:
    """Read a graph, with text for names, from a file, by its suffix.

    Parameters
    ----------
    path : path
        - ``.csv``, ``.tsv``, ``.txt``, ``.parquet``, also ``.csv.gz``: a table of edges with the columns ``source``,
          ``target`` and optionally ``weight``. A row without a target makes a node without edges;
        - ``.graphml``: by networkx; nodes are named by their ids;
        - ``.mtx``, ``.mtx.gz``: the adjacency matrix in Matrix Market's format, without names;
        - ``.npz``: the adjacency matrix as `scipy.sparse.save_npz` writes it, or an array ``weights`` or ``adjacency``
          with, optionally, ``names`` and ``coordinates``;
        - ``.geojson``, ``.json``: features with a property ``name`` (or an ``id``): points are joined to their nearest
          neighbours on the sphere, polygons to those with a common stretch of border.
    n_neighbors, radius : optional
        Of the points of a GeoJSON file; see `graph_from_points`.
    """
    path = Path(path)
    suffix = "".join(path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:]).lower()
    suffix = suffix.removesuffix(".gz") if suffix in PACKED else suffix
    if suffix in (".geojson", ".json"):
        return _from_geojson(path, n_neighbors, radius)
    if n_neighbors is not None or radius is not None:
        raise ValueError(
            f"n_neighbors and radius must be left out where a file has edges of its own; got one with {path}. They are "
            "for points."
        )
    if suffix in (*TEXT, *PARQUET):
        return _from_edges(path)
    if suffix not in _READERS:
        raise ValueError(f"{path} must have one of the suffixes {', '.join(SUFFIXES)}; got {suffix!r}. Rename it.")
    contents, read = _READERS[suffix]
    try:
        return read(path)
    except (OSError, ImportError, MemoryError):
        raise
    except Exception as error:  # parsers have errors of their own
        raise ValueError(f"{path} must be {contents}; got {error}") from error


def graph_from_points(
    path: Path | str,
    n_neighbors: int | None = None,
    radius: float | None = None,
    weights: Literal["gaussian", "inverse", "binary"] = "gaussian",
) -> Graph:
    """Read nodes with their coordinates from a CSV or Parquet file, and join each to its neighbours.

    The table has the columns ``longitude`` and ``latitude`` (or ``lon``, ``lat``) in degrees, compared on the sphere,
    with `radius` in kilometres; or ``x`` and ``y`` (and ``z``), compared in the plane (in space). Names are in the
    column ``name``, ``node`` or ``id``, or in the first column if that is no coordinate; there may be none.
    """
    table = read_table(path)
    points, names, is_sphere = _points(table)
    metric: Any = "haversine" if is_sphere else "euclidean"
    with naming_file(table.path):
        return _joined(points, n_neighbors, radius, weights=weights, metric=metric, names=names)


def _joined(points: Array, n_neighbors: int | None, radius: float | None, **options: Any) -> Graph:
    """Graph of points, each joined to `NEIGHBORS` others unless the number or a radius is given."""
    n_neighbors = NEIGHBORS if n_neighbors is None and radius is None else n_neighbors
    return Graph.from_points(points, n_neighbors, radius=radius, **options)


def with_points(graph: Graph, path: Path | str) -> Graph:
    """Graph with the coordinates of a table such as `graph_from_points` reads, for drawing."""
    table = read_table(path)
    points, names, _ = _points(table)
    if graph.names is None or names is None:
        if len(points) != graph.n_nodes:
            raise ValueError(
                f"{table.path} must have one row for each of the {graph.n_nodes} nodes; got {len(points)}. Add or drop "
                "rows, or name nodes in both files."
            )
        return Graph(graph.weights, graph.names, points)
    places = {name: place for place, name in enumerate(names)}
    missing = [name for name in graph.names if str(name) not in places]
    if missing:
        raise ValueError(f"{table.path} must have a row for every node of the graph; got none for {some(missing)}.")
    return Graph(graph.weights, graph.names, points[[places[str(name)] for name in graph.names]])


def _points(table: FileTable) -> tuple[Array, list[str] | None, bool]:
    """Coordinates, names, and whether they are on the sphere."""
    degrees, axes = [table.place(*names) for names in (LONGITUDE, LATITUDE)], [table.place(name) for name in "xyz"]
    is_sphere = None not in degrees
    if not is_sphere and None in axes[:2]:
        raise ValueError(
            f"{table.path} must have the columns longitude and latitude, or x and y; got {some(list(table.names))}. "
            "Rename them."
        )
    chosen = [column for column in (degrees if is_sphere else axes) if column is not None]
    named = table.place(*NAME)
    named = 0 if named is None and 0 not in chosen else named
    if named is None:
        return table.numbers(chosen), None, is_sphere
    seen: dict[str, int] = {}
    for row, name in enumerate(table.labels(named)):
        if not name or name in seen:
            got = f"{name!r} again (it is in row {table.rows[seen[name]]} too)" if name else "an empty cell"
            table.refuse("name every node once", got, row, named, "Rename or drop rows.")
        seen[name] = row
    return table.numbers(chosen), list(seen), is_sphere


def _from_edges(path: Path) -> Graph:
    table = read_table(path)
    source, target, weight = (table.place(name) for name in ("source", "target", "weight"))
    if source is None or target is None:
        raise ValueError(
            f"{path} must have the columns source, target and optionally weight, to be a list of edges; got "
            f"{some(list(table.names))}. Rename them; for coordinates of nodes use --points."
        )
    starts, ends = table.labels(source), table.labels(target)
    weights = np.ones(len(table.rows)) if weight is None else table.numbers([weight], allow_missing=True)[:, 0]
    seen: dict[tuple[str, str], int] = {}
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if not start:
            table.refuse("name a node in every row", "an empty cell", row, source, "Drop the row.")
        if not end:
            continue
        if start == end:
            table.refuse("join different nodes", f"an edge from {start!r} to itself", row, target, "Drop the row.")
        first = seen.setdefault((min(start, end), max(start, end)), row)
        if weight is None:
            continue
        if not weights[row] >= 0:
            got = "an empty cell" if np.isnan(weights[row]) else f"{weights[row]:g}"
            table.refuse("have weights from 0 on", got, row, weight, "Weights say how strongly nodes are joined.")
        if weights[first] != weights[row]:
            got = f"{weights[row]:g} between {start!r} and {end!r} ({weights[first]:g} in row {table.rows[first]})"
            table.refuse("give an edge one weight, in either direction", got, row, weight, "Drop or average copies.")
    kept = sorted(seen.values())
    names = dict.fromkeys(label for pair in zip(starts, ends, strict=True) for label in pair if label)
    columns = {"source": [starts[row] for row in kept], "target": [ends[row] for row in kept], "weight": weights[kept]}
    return Graph.from_edges(columns, names=list(names)) if kept else Graph.edgeless(len(names), list(names))


def _from_graphml(path: Path) -> Graph:
    read = require("networkx", "networkx", "to read GraphML files").read_graphml(path)
    graph, coordinates = as_graph(read), None
    for pair in (("x", "y"), ("lon", "lat"), ("longitude", "latitude")):  # the last that all nodes have
        points = [[data.get(key) for key in pair] for _, data in read.nodes(data=True)]
        if all(isinstance(value, int | float) for point in points for value in point):
            coordinates = np.array(points, dtype=np.float64)
    return Graph(graph.weights, [str(name) for name in read], coordinates)


def _from_matrix_market(path: Path) -> Graph:
    # a matrix may claim to be larger than its file could hold: that is refused before memory is taken for it
    n_rows, n_columns, n_entries, layout, *_ = mminfo(path)
    n_bytes = path.stat().st_size * (1032 if path.suffix.lower() == ".gz" else 1)  # gzip packs no better than that
    n_values = n_rows * n_columns if layout == "array" else n_entries
    if max(n_rows, n_columns) > max(FEW_ROWS, n_bytes) or n_values > n_bytes:
        raise ValueError(
            f"a header of {n_rows:,} rows and {n_values:,} entries, more than {n_bytes:,} bytes can hold. Check it."
        )
    return Graph(mmread(path))


def _from_npz(path: Path) -> Graph:
    with np.load(path, allow_pickle=False) as archive:
        if "format" in archive.files:
            return Graph(load_npz(path))
        key = next((name for name in ("weights", "adjacency") if name in archive.files), None)
        if key is None:
            raise ValueError(f"the arrays {some(archive.files)}, none of them 'weights' or 'adjacency'")
        names = [str(name) for name in archive["names"].tolist()] if "names" in archive.files else None
        return Graph(archive[key], names, archive["coordinates"] if "coordinates" in archive.files else None)


def _from_geojson(path: Path, n_neighbors: int | None, radius: float | None) -> Graph:
    """Graph of points and their nearest neighbours, or of polygons that share a stretch of border."""
    condition = f"{path} must be a GeoJSON FeatureCollection, an object with a list of features"
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{condition}; got what is no JSON ({error}). Check the file.") from error
    features = document.get("features") if isinstance(document, dict) else None
    if not isinstance(features, list):
        got = f"an object with {some(list(document))}" if isinstance(document, dict) else f"a {type(document).__name__}"
        raise ValueError(f"{condition}; got {got}. Export it again.")
    shapes = [_shape(feature, number, path) for number, feature in enumerate(features, 1)]
    kinds = {kind for kind, _ in shapes}
    if not kinds or not (kinds == {"Point"} or kinds <= set(POLYGONS)):
        found = ", ".join(sorted(kinds)) or "no features"
        raise ValueError(f"{path} must have points, or polygons, and nothing else; got {found}. Drop other features.")
    names, rings = _feature_names(features, path), [found for _, found in shapes]
    with naming_file(path):
        if kinds == {"Point"}:
            points = np.array([ring[0] for (ring,) in rings])
            return _joined(points, n_neighbors, radius, metric="haversine", names=names)
        return _contiguous(rings, names)


def _shape(feature: Any, number: int, path: Path) -> tuple[str, list[Ring]]:
    """Kind of a feature, and the rings of its polygons; a point is a ring with one corner."""
    geometry: Any = feature.get("geometry") if isinstance(feature, dict) else feature
    try:
        kind, parts = str(geometry["type"]), geometry.get("coordinates")
        if kind not in ("Point", *POLYGONS):
            return kind, []
        parts = {"Point": [[[parts]]], "Polygon": [parts]}.get(kind, parts)
        rings = [[(float(point[0]), float(point[1])) for point in ring] for part in parts for ring in part]
        if not rings or not all(rings):
            raise ValueError("no coordinates")
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must have a geometry in every feature, with coordinates that are numbers; got "
            f"{repr(geometry)[:80]} in feature {number}. Correct or drop it."
        ) from error
    return kind, rings


def _feature_names(features: list[Any], path: Path) -> list[str]:
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
    """Graph of polygons, joined with weight 1 if they share two neighbouring corners."""
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


_READERS: dict[str, tuple[str, Callable[[Path], Graph]]] = {  # with what they read
    ".graphml": ("an undirected graph in GraphML", _from_graphml),
    ".mtx": ("an adjacency matrix in Matrix Market's format", _from_matrix_market),
    ".npz": ("an adjacency matrix in NumPy's npz format", _from_npz),
}
SUFFIXES = (*TEXT, *PARQUET, *_READERS, ".geojson", ".json")
