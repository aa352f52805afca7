"""Graphs from files: lists of edges, GraphML, adjacency matrices, GeoJSON, and tables of points."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.io import mminfo, mmread
from scipy.sparse import load_npz

from spectralgp._basics.checks import Array
from spectralgp._basics.extras import require
from spectralgp._basics.tables import some
from spectralgp.files.geojson import graph_from_geojson
from spectralgp.files.tables import PARQUET, TEXT, Table, read_table
from spectralgp.graphs import Graph, as_graph

NEIGHBORS = 8
"""How many nearest neighbours points are joined to."""

LONGITUDE, LATITUDE = ("longitude", "lon", "lng", "long"), ("latitude", "lat")
NAME = ("name", "node", "id")
PACKED = (*(f"{suffix}.gz" for suffix in TEXT), ".mtx.gz")
FEW_ROWS = 1_000_000  # of a matrix, which any file may have
MATRIX_NAMES = ("weights", "adjacency")


def graph_from_file(path: Path | str, n_neighbors: int | None = None, radius: float | None = None) -> Graph:
    r"""Read a graph from a file, by its suffix.

    Parameters
    ----------
    path : path
        - ``.csv``, ``.tsv``, ``.txt``, ``.parquet``, also ``.csv.gz``: a table of edges with the columns ``source``,
          ``target`` and optionally ``weight``. Nodes are named by text or numbers; a row without a target makes a
          node without edges;
        - ``.graphml``: by networkx; nodes are named by their ids;
        - ``.mtx``, ``.mtx.gz``: the adjacency matrix in Matrix Market's format, without names;
        - ``.npz``: the adjacency matrix as `scipy.sparse.save_npz` writes it, or an array ``weights`` or ``adjacency``
          with, optionally, ``names`` and ``coordinates``;
        - ``.geojson``, ``.json``: features with a property ``name`` (or an ``id``): points are joined to their nearest
          neighbours on the sphere, polygons to those that they share a stretch of border with.
    n_neighbors, radius : optional
        Of the points of a GeoJSON file; see `graph_from_points`.

    Returns
    -------
    Graph
        Names are text, whatever they were in the file.

    Raises
    ------
    ValueError
        If the file holds no such graph; the message names the file and where.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from spectralgp.files.graphs import graph_from_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "edges.csv"
    ...     n_characters = path.write_text("source,target,weight\nOslo,Bergen,0.5\nBergen,Voss,2\nVardo,,\n")
    ...     graph = graph_from_file(path)
    >>> graph, graph.names
    (Graph(4 nodes, 2 edges), ('Oslo', 'Bergen', 'Voss', 'Vardo'))
    """
    path = Path(path)
    suffix = "".join(path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:]).lower()
    suffix = suffix.removesuffix(".gz") if suffix in PACKED else suffix
    if suffix in (".geojson", ".json"):
        return graph_from_geojson(path, NEIGHBORS if n_neighbors is None and radius is None else n_neighbors, radius)
    if n_neighbors is not None or radius is not None:
        raise ValueError(
            f"n_neighbors and radius must be left out where a file has edges of its own; got one with {path}. They are "
            "for points."
        )
    if suffix not in _READERS:
        raise ValueError(f"{path} must have one of the suffixes {', '.join(SUFFIXES)}; got {suffix!r}. Rename it.")
    return _READERS[suffix](path)


def graph_from_points(
    path: Path | str,
    n_neighbors: int | None = None,
    radius: float | None = None,
    weights: Literal["gaussian", "inverse", "binary"] = "gaussian",
) -> Graph:
    r"""Read nodes with their coordinates from a CSV or Parquet file, and join each to its neighbours.

    Parameters
    ----------
    path : path
        A table with the columns ``longitude`` and ``latitude`` (or ``lon``, ``lat``) in degrees, which are compared on
        the sphere; or ``x`` and ``y`` (and ``z``), which are compared in the plane (in space). Names are in the column
        ``name``, ``node`` or ``id``, or in the first column if that is no coordinate; there may be none.
    n_neighbors : int, optional
        How many nearest others each node is joined to; 8 if neither this nor `radius` is given.
    radius : float, optional
        Join all nodes within this distance instead, in kilometres for longitude and latitude.
    weights : {"gaussian", "inverse", "binary"}, default="gaussian"
        See `Graph.from_points`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from spectralgp.files.graphs import graph_from_points
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "cities.csv"
    ...     n_characters = path.write_text("name,lon,lat\nOslo,10.7,59.9\nBergen,5.3,60.4\nVoss,6.4,60.6\n")
    ...     graph = graph_from_points(path, n_neighbors=1)
    >>> graph.names, graph.weights.nnz
    (('Oslo', 'Bergen', 'Voss'), 4)
    """
    table = read_table(path)
    points, names, is_sphere = _points(table)
    n_neighbors = NEIGHBORS if n_neighbors is None and radius is None else n_neighbors
    try:
        return Graph.from_points(
            points,
            n_neighbors,
            radius=radius,
            weights=weights,
            metric="haversine" if is_sphere else "euclidean",
            names=names,
        )
    except ValueError as error:
        raise ValueError(f"{table.path}: {error}") from error


def with_points(graph: Graph, path: Path | str) -> Graph:
    """The graph with the coordinates of a table such as `graph_from_points` reads, to draw it by.

    Raises
    ------
    ValueError
        If a node is not in the table.
    """
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
        raise ValueError(
            f"{table.path} must have a row for every node of the graph; got none for {some(missing)}. Add it."
        )
    return Graph(graph.weights, graph.names, points[[places[str(name)] for name in graph.names]])


def _points(table: Table) -> tuple[Array, list[str] | None, bool]:
    """Coordinates, names, and whether they are on the sphere."""
    longitude, latitude, x, y, z = (_first_of(table, names) for names in (LONGITUDE, LATITUDE, ("x",), ("y",), ("z",)))
    is_sphere = longitude is not None and latitude is not None
    columns = [longitude, latitude] if is_sphere else [x, y, z]
    chosen = [column for column in columns if column is not None]
    if len(chosen) < 2 or (not is_sphere and (x is None or y is None)):
        raise ValueError(
            f"{table.path} must have the columns longitude and latitude, or x and y; got {some(list(table.names))}. "
            "Rename them."
        )
    named = _first_of(table, NAME)
    if named is None and 0 not in chosen:
        named = 0
    names = None if named is None else table.labels(named)
    if names is not None and named is not None:
        seen: dict[str, int] = {}
        for row, name in enumerate(names):
            if not name or name in seen:
                got = f"{name!r} again (it is in row {table.rows[seen[name]]} too)" if name else "an empty cell"
                table.refuse("name every node once", got, row, named, "Rename or drop rows.")
            seen[name] = row
    return table.numbers(chosen), names, is_sphere


def _first_of(table: Table, names: tuple[str, ...]) -> int | None:
    return next((place for place in map(table.place, names) if place is not None), None)


# ---------------------------------------------------------------------------------------------------------- edges


def _from_edges(path: Path) -> Graph:
    table = read_table(path)
    source, target, weight = (table.place(name) for name in ("source", "target", "weight"))
    if source is None or target is None:
        raise ValueError(
            f"{path} must have the columns source, target and optionally weight, to be a list of edges; got "
            f"{some(list(table.names))}. Rename them; for coordinates of nodes use --points."
        )
    starts, ends = table.labels(source), table.labels(target)
    weights = np.ones(table.n_rows) if weight is None else table.numbers([weight], allow_missing=True)[:, 0]
    seen: dict[tuple[str, str], int] = {}
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if not start:
            table.refuse("name a node in every row", "an empty cell", row, source, "Drop the row.")
        if not end:
            continue
        if start == end:
            table.refuse("join different nodes", f"an edge from {start!r} to itself", row, target, "Drop the row.")
        if weight is not None and not weights[row] >= 0:
            got = "an empty cell" if np.isnan(weights[row]) else f"{weights[row]:g}"
            table.refuse("have weights from 0 on", got, row, weight, "Weights say how strongly nodes are joined.")
        pair = (min(start, end), max(start, end))
        first = seen.setdefault(pair, row)
        if weights[first] != weights[row]:
            table.refuse(
                "give an edge one weight, in either direction",
                f"{weights[row]:g} between {start!r} and {end!r} ({weights[first]:g} in row {table.rows[first]})",
                row,
                target if weight is None else weight,
                "Drop or average copies.",
            )
    kept = sorted(seen.values())
    names = dict.fromkeys(label for pair in zip(starts, ends, strict=True) for label in pair if label)
    columns = {"source": [starts[row] for row in kept], "target": [ends[row] for row in kept], "weight": weights[kept]}
    return Graph.from_edges(columns, names=list(names)) if kept else Graph.edgeless(len(names), list(names))


# ------------------------------------------------------------------------------------------- other kinds of files


def _from_graphml(path: Path) -> Graph:
    networkx = require("networkx", "networkx", "to read GraphML files")
    try:
        read = networkx.read_graphml(path)
        graph = as_graph(read)
    except OSError:
        raise
    except Exception as error:  # parsers of XML have errors of their own
        raise ValueError(f"{path} must be an undirected graph in GraphML; got {error}") from error
    names = [str(name) for name in read]
    return Graph(graph.weights, names, _coordinates(read))


def _coordinates(graph: Any) -> Array | None:
    for pair in (("longitude", "latitude"), ("lon", "lat"), ("x", "y")):
        values = [[data.get(key) for key in pair] for _, data in graph.nodes(data=True)]
        if all(isinstance(value, int | float) for point in values for value in point):
            return np.array(values, dtype=np.float64)
    return None


def _from_matrix_market(path: Path) -> Graph:
    try:
        _require_size(path)
        return Graph(mmread(path))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} must be an adjacency matrix in Matrix Market's format; got {error}") from error


def _require_size(path: Path) -> None:
    """Refuse a matrix that claims to be larger than its file could hold, before memory is taken for it."""
    n_rows, n_columns, n_entries, layout, *_ = mminfo(path)
    n_bytes = path.stat().st_size * (1032 if path.suffix.lower() == ".gz" else 1)  # gzip packs no better than that
    n_values = n_rows * n_columns if layout == "array" else n_entries
    if max(n_rows, n_columns) > max(FEW_ROWS, n_bytes) or n_values > n_bytes:
        raise ValueError(
            f"a header of {n_rows:,} rows and {n_values:,} entries, more than {n_bytes:,} bytes can hold. Check it."
        )


def _from_npz(path: Path) -> Graph:
    try:
        with np.load(path, allow_pickle=False) as archive:
            if "format" in archive.files:
                return Graph(load_npz(path))
            key = next((name for name in MATRIX_NAMES if name in archive.files), None)
            if key is None:
                raise ValueError(f"the arrays {some(archive.files)}, none of them 'weights' or 'adjacency'")
            names = [str(name) for name in archive["names"].tolist()] if "names" in archive.files else None
            return Graph(archive[key], names, archive["coordinates"] if "coordinates" in archive.files else None)
    except (ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} must be an adjacency matrix in NumPy's npz format; got {error}") from error


_READERS: dict[str, Callable[[Path], Graph]] = {
    **dict.fromkeys((*TEXT, *PARQUET), _from_edges),
    ".graphml": _from_graphml,
    ".mtx": _from_matrix_market,
    ".npz": _from_npz,
}
SUFFIXES = (*_READERS, ".geojson", ".json")
