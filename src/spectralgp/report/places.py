"""Where nodes are drawn, and which of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array

from spectralgp._basics.checks import Array
from spectralgp.graphs import Graph

MOST_NODES = 50_000  # that are drawn
MOST_PUSHED = 1_000  # nodes that are laid out by forces, of which there are as many as pairs
N_PUSHES = 150
N_SMOOTHINGS = 300


@dataclass(frozen=True, eq=False)
class Places:
    """Where nodes are drawn.

    Parameters
    ----------
    nodes : ndarray of int
        Those that are drawn, ascending.
    coordinates : ndarray of shape (n_drawn, 2)
        Where.
    note : str
        How that was found, in words; empty where the graph says it.
    """

    nodes: NDArray[np.intp]
    coordinates: Array
    note: str


def places_of(graph: Graph) -> Places:
    """Places of the nodes of a graph: its coordinates, or a layout by its edges.

    Examples
    --------
    >>> from spectralgp import Graph
    >>> places_of(Graph.from_edges([(0, 1)], coordinates=[[0, 1], [2, 3]])).coordinates.tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """
    coordinates, note = _coordinates(graph)
    nodes = np.arange(graph.n_nodes)
    if graph.n_nodes > MOST_NODES:
        nodes = np.linspace(0, graph.n_nodes - 1, MOST_NODES).astype(np.intp)
        note = f"{note} Of {graph.n_nodes:,} nodes {MOST_NODES:,} are drawn, evenly spaced in their order.".strip()
    return Places(nodes, coordinates[nodes], note)


def _coordinates(graph: Graph) -> tuple[Array, str]:
    known = graph.coordinates
    if known is None or known.shape[1] == 0:
        return _layout(graph), "The graph has no coordinates: nodes that are joined are drawn near each other."
    if known.shape[1] == 1:
        return np.column_stack(
            [known[:, 0], np.zeros(len(known))]
        ), "Nodes have one coordinate, drawn from left to right."
    if known.shape[1] == 2:
        return np.asarray(known, dtype=float), ""
    centred = known - known.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :2]
    return centred @ axes, f"Of {known.shape[1]} coordinates the two principal directions are drawn."


def _layout(graph: Graph) -> Array:
    if graph.n_edges == 0:
        width = int(np.ceil(np.sqrt(graph.n_nodes)))
        rows, columns = np.divmod(np.arange(graph.n_nodes), width)
        return np.column_stack([columns, -rows]).astype(float)
    start = _smoothed(graph)
    return _pushed(graph, start) if graph.n_nodes <= MOST_PUSHED else start


def _smoothed(graph: Graph) -> Array:
    """Random places averaged over neighbours many times, and spread out again by their ranks."""
    degrees = np.maximum(graph.degrees, np.finfo(float).tiny)
    step = csr_array(0.5 * (eye_array(graph.n_nodes) + diags_array(1 / degrees) @ graph.weights))
    places = np.random.default_rng(0).standard_normal((graph.n_nodes, 2))
    for _ in range(N_SMOOTHINGS):
        places = step @ places
        places -= places.mean(axis=0)
        # the second direction without the first, or both would end as the same
        places[:, 1] -= places[:, 0] * (places[:, 0] @ places[:, 1]) / (places[:, 0] @ places[:, 0] or 1.0)
        places /= np.std(places, axis=0) + np.finfo(float).tiny
    ranks = np.argsort(np.argsort(places, axis=0, kind="stable"), axis=0, kind="stable")
    return ranks / max(graph.n_nodes - 1, 1)


def _pushed(graph: Graph, start: Array) -> Array:
    """Springs along the edges and a push between all nodes, after Fruchterman and Reingold."""
    places, distance = start.copy(), 1 / np.sqrt(graph.n_nodes)
    joined = graph.weights.toarray() > 0
    for temperature in np.linspace(0.1, 0.001, N_PUSHES):
        apart = places[:, None, :] - places[None, :, :]
        lengths = np.maximum(np.sqrt(np.sum(apart**2, axis=2)), 1e-3 * distance)
        # and a weak pull to the middle, or parts that are not connected would fly off
        forces = distance**2 / lengths**2 - np.where(joined, lengths / distance, 0.0)
        moves = np.einsum("ij,ijk->ik", forces, apart) - 0.5 * (places - 0.5)
        sizes = np.maximum(np.linalg.norm(moves, axis=1, keepdims=True), np.finfo(float).tiny)
        places = places + moves / sizes * np.minimum(sizes, temperature)
    return places
