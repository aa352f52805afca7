"""The graph of nearest neighbours that PyGSP 0.5.1 builds, on which the paper's authors put two of their data sets."""

from __future__ import annotations

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.graphs import Graph


def neighbour_graph(points: Array, n_neighbors: int) -> Graph:
    """Graph that joins every point to its nearest others, as PyGSP 0.5.1's ``NNGraph(points, k=n_neighbors)`` does.

    Weights are ``exp(-d^2 / 0.1)``, with d the distance of points that were centred, and scaled so that half the
    diagonal of their bounding box is ``n_nodes^(1 / n_dimensions) / 10``; the two directions are averaged.

    Parameters
    ----------
    points : ndarray of shape (n_nodes, n_dimensions)
        Where the nodes are; these become the graph's coordinates.
    n_neighbors : int
        Join every node to this many others.
    """
    n_nodes, n_dimensions = points.shape
    half_diagonal = 0.5 * np.linalg.norm(np.ptp(points, axis=0))
    scaled = (points - points.mean(axis=0)) * (n_nodes ** (1 / n_dimensions) / 10 / half_diagonal)
    weights = Graph.from_points(scaled, n_neighbors, bandwidth=0.1, symmetrize="average").weights
    return Graph(weights, coordinates=points)
