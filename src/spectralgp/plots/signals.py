"""Pictures of signals on the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectralgp._checks import Array, as_real_array
from spectralgp.graph import Graph
from spectralgp.plots.style import axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_signal(
    graph: Graph,
    signal: ArrayLike,
    *,
    ax: Axes | None = None,
    cmap: str | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    symmetric: bool = False,
    colorbar: bool | Literal["right", "bottom"] = True,
    colorbar_label: str = "",
    labels: Sequence[str] | None = None,
    node_size: float = 60.0,
    aspect: float | Literal["equal"] = "equal",
) -> Axes:
    """Draw a signal on the graph: nodes at their coordinates coloured by value, edges thin and grey.

    Parameters
    ----------
    graph : Graph
        With two-dimensional coordinates.
    signal : array-like of shape (n_nodes,)
        One value a node.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    cmap : str, optional
        Colour map; "viridis", or with `symmetric` the diverging "RdBu_r" (red above zero, blue below).
    vmin, vmax : float, optional
        Ends of the colour scale; the signal's own by default.
    symmetric : bool, default=False
        Centre the colour scale at zero, for signed values.
    colorbar : bool, "right" or "bottom", default=True
        Draw the colour scale beside the axes (True or "right") or below.
    colorbar_label : str, optional
        What the colours mean, with units.
    labels : sequence of str of length n_nodes, optional
        Short texts to write on the nodes.
    node_size : float, default=60.0
        Area of a node in points squared.
    aspect : float or "equal", default="equal"
        How much longer one unit upwards is drawn than one unit sideways. For longitudes and latitudes pass
        ``1 / cos(latitude)``, about 1.28 for the United States.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the graph has no coordinates in the plane, or the signal or the labels do not fit it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from spectralgp import Graph
    >>> from spectralgp.plots import plot_signal
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], coordinates=[[0, 0], [1, 0], [1, 1]])
    >>> ax = plot_signal(graph, [1.0, 2.0, 3.0])
    >>> ax.collections[1].get_offsets().tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    >>> matplotlib.pyplot.close(ax.figure)
    """
    from matplotlib.collections import LineCollection

    coordinates = _plane(graph)
    values = as_real_array(signal, "signal", ("n_nodes",), sizes={"n_nodes": graph.n_nodes}, remedy="Pass one signal.")
    if labels is not None and len(labels) != graph.n_nodes:
        raise ValueError(
            f"labels must hold one text for each of the {graph.n_nodes} nodes; got {len(labels)}. "
            "Pass '' for a node without one."
        )
    if symmetric:
        ends = [abs(end) for end in (vmin, vmax) if end is not None] or [float(np.max(np.abs(values)))]
        vmax = max(ends) or 1.0
        vmin = -vmax
    ax = axes(ax)
    rows, columns = graph.weights.nonzero()
    once = rows < columns
    segments = np.stack([coordinates[rows[once]], coordinates[columns[once]]], axis=1)
    ax.add_collection(LineCollection(list(segments), colors="0.75", linewidths=0.7, zorder=1))
    nodes = ax.scatter(
        coordinates[:, 0],
        coordinates[:, 1],
        c=values,
        s=node_size,
        cmap=cmap or ("RdBu_r" if symmetric else "viridis"),
        vmin=vmin,
        vmax=vmax,
        edgecolors="0.25",
        linewidths=0.5,
        zorder=2,
    )
    if labels is not None:
        _write_on_nodes(ax, coordinates, labels, nodes.to_rgba(values), node_size)
    ax.set_aspect(aspect)
    ax.set_axis_off()
    if colorbar:
        location = "right" if colorbar is True else colorbar
        ax.figure.colorbar(nodes, ax=ax, location=location, shrink=0.7, pad=0.03, label=colorbar_label)
    return ax


def _plane(graph: Graph) -> Array:
    if graph.coordinates is None:
        raise ValueError(
            "graph must have coordinates to be drawn; got a graph without. "
            "Pass them: Graph(weights, names, coordinates), one row (x, y) a node."
        )
    if graph.coordinates.shape[1] != 2:
        raise ValueError(
            f"graph must have two coordinates a node to be drawn; got {graph.coordinates.shape[1]}. "
            "Project them to the plane first."
        )
    coordinates: Array = graph.coordinates
    return coordinates


def _write_on_nodes(
    ax: Axes, coordinates: Array, labels: Sequence[str], colours: NDArray[np.float64], node_size: float
) -> None:
    """Texts on the nodes, black or white, whichever stands out against the node's colour."""
    luminance = colours[:, :3] @ np.array([0.299, 0.587, 0.114])
    font_size = 0.42 * np.sqrt(node_size)
    for (x, y), label, light in zip(coordinates, labels, luminance > 0.5, strict=True):
        colour = "black" if light else "white"
        ax.text(x, y, label, ha="center", va="center", fontsize=font_size, color=colour, zorder=3)
