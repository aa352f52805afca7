"""Daily congestion at 75 bottlenecks of San Francisco's freeways, the paper's traffic data."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.datasets._files import ReleasedFile, fetch_file, variables
from spectralgp.graphs import Graph
from spectralgp.graphs.places import Sphere

DELAYS = ReleasedFile(
    "traffic_delay_san_francisco.mat", "54556e144e9ddf371c4c718b1704a8bb006a7a1ec13da5283a39558b22d40fac"
)
N_INPUTS = 15
REACH = 13.0


@dataclass(frozen=True, eq=False)
class Traffic:
    """Minutes of congestion a day at 75 freeway bottlenecks on 2798 days (PeMS), with the paper's graph.

    Attributes
    ----------
    graph : Graph
        The released one: 75 bottlenecks, joined with weights ``exp(-d)`` where d is below 0.044, the Euclidean
        distance between longitudes and latitudes in degrees, which are its coordinates. The longest edge has 4.86 km;
        two pairs of stations at the same place have the weight ``exp(-0.01)``. The paper's text describes another
        graph, `text_graph`.
    output_graph : Graph
        The part of it on the last 60 nodes, those that the paper predicts.
    delays : ndarray of shape (2798, 75)
        Minutes: one signal a day, one column a bottleneck. The paper predicts the last 60 from the first 15.
    n_inputs : int
        15, the number of nodes whose delays are the inputs.

    See Also
    --------
    load_traffic : Reads the data.
    """

    graph: Graph
    output_graph: Graph
    delays: Array
    n_inputs: int = N_INPUTS

    @property
    def text_graph(self) -> Graph:
        """The graph of the paper's text: 75 bottlenecks joined where closer than 13 km, weighted by 1 / km.

        Distances are great circles. The text has no rule for the two pairs of stations at the same place, whose weight
        would be infinite: they are taken to be as far apart as the closest others, 9.7 m.
        """
        coordinates = np.asarray(self.graph.coordinates)
        pairs = np.triu_indices(len(coordinates), 1)
        kilometres = np.sqrt(Sphere(coordinates).squared_distances(*pairs))
        kilometres[kilometres == 0] = kilometres[kilometres > 0].min()
        weights = np.zeros((len(coordinates), len(coordinates)))
        weights[pairs] = np.where(kilometres < REACH, 1 / kilometres, 0.0)
        return Graph(weights + weights.T, coordinates=coordinates)


def load_traffic(folder: str | os.PathLike[str] | None = None) -> Traffic:
    """Read the daily congestion at 75 bottlenecks of San Francisco that the paper predicts.

    The file `traffic_delay_san_francisco.mat` is looked for as `load_weather` describes.

    Parameters
    ----------
    folder : path, optional
        Where the file is.

    Returns
    -------
    Traffic
        The released graph, its part that is predicted, and the delays, read-only, of shape (2798, 75).

    Raises
    ------
    FileNotFoundError
        If the file is nowhere and cannot be downloaded; the message says which file to put where.
    ValueError
        If the file is not the released one, by its SHA-256 sum.

    Examples
    --------
    >>> from spectralgp.datasets import load_traffic
    >>> data = load_traffic()  # doctest: +SKIP
    >>> data.graph, data.output_graph, data.delays.shape  # doctest: +SKIP
    (Graph(75 nodes, 1074 edges), Graph(60 nodes, 612 edges), (2798, 75))
    >>> data.text_graph  # doctest: +SKIP
    Graph(75 nodes, 2733 edges)
    """
    content = variables(fetch_file(DELAYS, folder))
    weights, coordinates = (np.asarray(content[name], dtype=float) for name in ("Adj_Matrix", "Coords"))
    graph = Graph(weights, coordinates=coordinates)
    delays = np.ascontiguousarray(np.asarray(content["average_delay"], dtype=float).T)
    delays.setflags(write=False)
    return Traffic(graph, graph.subgraph(range(N_INPUTS, graph.n_nodes)), delays)
