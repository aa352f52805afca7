"""Pictures of signals on the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import Normalize
from numpy.typing import ArrayLike

from spectralgp._basics.checks import Array, as_real_array
from spectralgp._basics.tables import match_columns, series_index
from spectralgp.graphs import Graph
from spectralgp.graphs.weights import heaviest_edges, is_range
from spectralgp.show.plots.style import IMPUTED_MARKER, as_axes, size_in_points

MAX_EDGES = 20_000
EDGE_COLOUR = "0.6"
EDGE_WIDTH, EDGE_WIDTHS = 0.7, (0.1, 3.0)  # in points: of an edge of mean weight; of the lightest and the heaviest
EDGE_INK, FAINTEST = 0.4, 0.04  # share of the axes that edges may cover, and how faint they are made to keep to it


def plot_signal(
    graph: Graph,
    signal: ArrayLike,
    *,
    imputed: ArrayLike | None = None,
    ax: Axes | None = None,
    cmap: str | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    symmetric: bool = False,
    colorbar: bool | Literal["right", "bottom"] = True,
    colorbar_label: str = "",
    labels: Sequence[str] | None = None,
    node_size: float | None = None,
    missing_label: str = "missing",
    aspect: float | Literal["equal"] = "equal",
) -> Axes:
    """Draw a signal on the graph: nodes at their coordinates coloured by value, edges grey and as wide as their weight.

    Edges that would cover the picture are drawn fainter. At most the 20,000 heaviest are drawn, and a legend then has
    their number.

    Parameters
    ----------
    graph : Graph
        With two-dimensional coordinates.
    signal : array-like of shape (n_nodes,)
        One value per node; NaN or masked values are missing and drawn as hollow nodes, with a legend. A pandas Series
        is matched to the names of the graph by its index, unless that only counts 0, 1, 2, ...
    imputed : array-like of shape (n_nodes,), optional
        Values of nodes that are missing in `signal`, such as a row of the result of ``model.impute``. These nodes are
        squares with a wide border, on the same colour scale.
    cmap, vmin, vmax : str and floats, optional
        Colour map, and the ends of its scale; by default those of all values drawn.
    symmetric : bool, default=False
        Centre the colour scale at zero, for signed values: red above zero, blue below.
    colorbar : bool, "right" or "bottom", default=True
        Draw the colour scale beside the axes (True or "right") or below, with `colorbar_label`.
    labels : sequence of str of length n_nodes, optional
        Short texts to write on the nodes; `missing_label` is the name of nodes without a value in the legend.
    node_size : float, optional
        Area of a node in points squared; by default 60, and less on graphs of more than 200 nodes.
    aspect : float or "equal", default="equal"
        Aspect ratio, height to width; ``1 / cos(latitude)`` for longitudes and latitudes, about 1.28 for the United
        States.

    Examples
    --------
    >>> from spectralgp import Graph
    >>> from spectralgp.show.plots import plot_signal
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], coordinates=[[0, 0], [1, 0], [1, 1]])
    >>> ax = plot_signal(graph, [1.0, float("nan"), 3.0], imputed=[1.0, 2.2, 3.0])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['observed', 'imputed']
    """
    coordinates = _plane(graph)
    values = _as_signal(signal, "signal", graph)
    observed = ~np.isnan(values)
    if imputed is not None:
        values = np.where(observed, values, _as_signal(imputed, "imputed", graph))
    known = ~np.isnan(values)
    if not known.any():
        raise ValueError(f"signal must have a value at some node; got NaN at all {graph.n_nodes}. Pass one signal.")
    if labels is not None and len(labels) != graph.n_nodes:
        raise ValueError(
            f"labels must hold one text for each of the {graph.n_nodes} nodes; got {len(labels)}. "
            "Pass '' for a node without one."
        )
    if symmetric:
        ends = [abs(end) for end in (vmin, vmax) if end is not None] or [float(np.max(np.abs(values[known])))]
        vmax = max(ends) or 1.0
        vmin = -vmax
    size = min(60.0, 12_000 / graph.n_nodes) if node_size is None else node_size
    ax = as_axes(ax)
    n_drawn = _draw_edges(ax, graph, coordinates, 1.0 if aspect == "equal" else aspect)
    if n_drawn < graph.n_edges:
        heaviest = ", the heaviest" if np.ptp(graph.weights.data) > 0 else ""
        ax.plot([], [], color=EDGE_COLOUR, label=f"{n_drawn:,} of {graph.n_edges:,} edges{heaviest}")
    scale: dict[str, Any] = {"norm": Normalize(vmin, vmax), "cmap": cmap or ("RdBu_r" if symmetric else "viridis")}
    scale["norm"].autoscale_None(values[known])
    nodes = _draw_nodes(ax, coordinates, values, observed, size, scale, missing_label)
    if n_drawn < graph.n_edges or not observed.all():
        look: dict[str, Any] = {"frameon": False, "fontsize": "small", "borderaxespad": 0.0, "scatteryoffsets": [0.5]}
        # marks as on the map, but no larger than the lines of the legend leave room for
        shrink = min(1.0, np.sqrt(60.0 / size))
        ax.legend(loc="upper left", bbox_to_anchor=(0.0, 0.0), markerscale=shrink, **look)
    if labels is not None:
        colours = np.where(known[:, None], nodes.to_rgba(values), 1.0)
        is_light = colours[:, :3] @ np.array([0.299, 0.587, 0.114]) > 0.5  # under a text in black, else in white
        text: dict[str, Any] = {"fontsize": 0.42 * np.sqrt(size), "ha": "center", "va": "center", "zorder": 3}
        for (x, y), label, light in zip(coordinates, labels, is_light, strict=True):
            ax.text(x, y, label, color="black" if light else "white", **text)
    ax.set_aspect(aspect)
    ax.set_axis_off()
    if colorbar:
        location = "right" if colorbar is True else colorbar
        bar = ax.figure.colorbar(nodes, ax=ax, location=location, shrink=0.7, pad=0.03, label=colorbar_label)
        bar.ax.locator_params(nbins=5)  # of more the labels of a short bar touch
    return ax


def _as_signal(signal: Any, name: str, graph: Graph) -> Array:
    """One value per node, in the order of the nodes."""
    sizes, remedy = {"n_nodes": graph.n_nodes}, "Pass one signal."
    values = as_real_array(signal, name, ("n_nodes",), sizes=sizes, allow_nan=True, remedy=remedy)
    index = series_index(signal)
    if index is None or is_range(index):
        return values
    if graph.names is not None:
        return values[match_columns(index, tuple(graph.names), name, "value")]
    if set(index) == set(range(graph.n_nodes)):
        raise ValueError(
            f"{name} must be in the order of the nodes where the graph has no names; got the index 0 to "
            f"{graph.n_nodes - 1} in another order. Pass {name}.sort_index()."
        )
    return values


def _draw_nodes(
    ax: Axes, places: Array, values: Array, observed: Any, size: float, scale: dict[str, Any], missing_label: str
) -> PathCollection:
    """Draw observed, imputed and missing nodes; return the marks of the observed ones."""
    border = min(0.5, 0.06 * np.sqrt(size))  # a wide one would hide the colour of a small node
    across, up = places.T
    empty = np.isnan(values)
    imputed = ~observed & ~empty
    thin: dict[str, Any] = {"edgecolors": "0.25", "linewidths": border, "s": size, "zorder": 2}
    # a wide border tells an empty node from one with a pale colour
    wide = thin | {"edgecolors": "black", "linewidths": 2.5 * border}
    nodes = ax.scatter(across[observed], up[observed], c=values[observed], **thin, **scale)
    if imputed.any():
        ax.scatter(across[imputed], up[imputed], c=values[imputed], marker=IMPUTED_MARKER, **wide, **scale)
        # grey in the legend, for colours are values
        ax.scatter([], [], facecolors="0.8", label="observed", **thin)
        ax.scatter([], [], facecolors="0.8", label="imputed", marker=IMPUTED_MARKER, **wide)
    if empty.any():
        ax.scatter(across[empty], up[empty], facecolors="white", label=missing_label, **wide)
    return nodes


def _draw_edges(ax: Axes, graph: Graph, coordinates: Array, stretch: float) -> int:
    """Draw edges as wide as their weights, fainter or fewer if they cover much; return their number."""
    starts, ends, weights = heaviest_edges(graph.weights, MAX_EDGES)
    segments = np.stack([coordinates[starts], coordinates[ends]], axis=1)
    widths = np.clip(EDGE_WIDTH * weights / np.mean(weights), *EDGE_WIDTHS) if weights.size else weights
    # lengths in points, once the axes are fitted to the coordinates
    room, extent = size_in_points(ax), np.ptp(coordinates, axis=0) * [1, stretch]
    scale = min(points / (distance or points) for points, distance in zip(room, extent, strict=True))
    lengths = scale * np.linalg.norm((segments[:, 1] - segments[:, 0]) * [1, stretch], axis=1)
    ink = np.cumsum(widths * lengths) / np.prod(room)
    n_drawn = int(np.searchsorted(ink, EDGE_INK / FAINTEST))
    alpha = EDGE_INK / max(EDGE_INK, ink[:n_drawn].max(initial=0.0))
    style = {"colors": EDGE_COLOUR, "linewidths": widths[:n_drawn][::-1], "alpha": alpha, "zorder": 1}
    ax.add_collection(LineCollection(list(segments[:n_drawn][::-1]), **style))
    return n_drawn


def _plane(graph: Graph) -> Array:
    coordinates = graph.coordinates
    if coordinates is None:
        raise ValueError(
            "graph must have coordinates to be drawn; got a graph without. "
            "Pass them: Graph(weights, names, coordinates), one row (x, y) per node."
        )
    if coordinates.shape[1] != 2:
        raise ValueError(
            f"graph must have two coordinates per node to be drawn; got {coordinates.shape[1]}. "
            "Project them to the plane first."
        )
    return np.asarray(coordinates)
