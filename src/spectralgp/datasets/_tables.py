"""Tables that come with the package: nodes with their edges or places, and a signal a row."""

from __future__ import annotations

import csv
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from spectralgp.graphs import Graph


def read_places(nodes: str, edges: str) -> tuple[Graph, tuple[str, ...]]:
    """Graph with edges of weight 1, and codes of its nodes.

    Parameters
    ----------
    nodes : str
        File with a row a node: name, code, longitude, latitude.
    edges : str
        File with a row an edge: two names.
    """
    names, codes, longitudes, latitudes = zip(*_rows(nodes), strict=True)
    coordinates = np.array([longitudes, latitudes], dtype=np.float64).T
    return Graph.from_edges(_rows(edges), names=names, coordinates=coordinates), codes


def read_years(file_name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Years, and signals of shape (n_years, n_nodes) with NaN where a cell is empty; both are read-only."""
    labels, signals = read_table(file_name)
    years = np.array(labels, dtype=np.int64)
    years.setflags(write=False)
    return years, signals


def read_table(file_name: str) -> tuple[list[str], NDArray[np.float64]]:
    """What the first column says, and signals of shape (n_rows, n_nodes) with NaN where a cell is empty, read-only."""
    rows = _rows(file_name)
    signals = np.array([[cell or "nan" for cell in row[1:]] for row in rows], dtype=np.float64)
    signals.setflags(write=False)
    return [row[0] for row in rows], signals


def read_points(file_name: str) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Names and coordinates of nodes: a row each with name, longitude, latitude."""
    names, *coordinates = zip(*_rows(file_name), strict=True)
    return names, np.array(coordinates, dtype=np.float64).T


def _rows(file_name: str) -> list[list[str]]:
    """Rows of a table, without its header."""
    file = resources.files("spectralgp.datasets") / "data" / file_name
    return list(csv.reader(file.read_text(encoding="utf-8").splitlines()))[1:]
