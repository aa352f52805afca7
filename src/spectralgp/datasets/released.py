"""The paper's data: weather, traffic, "uber" and cerebellum, in the files that its authors released.

Every loader looks for its files, downloads and checks them as `load_weather` describes, with the same errors.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.datasets._files import ReleasedFile, fetch_file, variables
from spectralgp.graphs import Graph
from spectralgp.graphs.points import Sphere

CITIES = ReleasedFile("city45data.mat", "7c82c3554c7c4eb63772b5e637a98c7c8d8b75432acdcd722ec04f4c0c99b77b")
TEMPERATURES = ReleasedFile("smhi_temp_17.mat", "d7d72fc1b06836b6d559160c53851c90af00a8efd0a366a215d25abfa635ade0")
DELAYS = ReleasedFile(
    "traffic_delay_san_francisco.mat", "54556e144e9ddf371c4c718b1704a8bb006a7a1ec13da5283a39558b22d40fac"
)
UBER = ReleasedFile("uber_data.mat", shapes=(("lon", (29, 1)), ("lat", (29, 1)), ("X1", (29, 744))))
VOXELS = ReleasedFile("A_cerebellum.mat", "e6f3471a5ea813260728c886065588aa5dbe80ed118401cb6af6e0dfff0a102b")
SIGNALS = ReleasedFile(
    "signal_set_cerebellum.mat", git_blob="018059436389d58ab6181f9e16e317dbbb7f59f4", shapes=(("F2", (4465, 292)),)
)
N_TRAFFIC_INPUTS = 15
TEXT_GRAPH_REACH = 13.0  # km, of the traffic graph in the paper's text


@dataclass(frozen=True, eq=False)
class Weather:
    """Daily temperatures of 45 Swedish cities on 95 days of 2017 (SMHI), with the paper's graph.

    Attributes
    ----------
    graph : Graph
        45 nodes joined to their 10 nearest others with weights ``exp(-d^2 / 0.1)``, where d is a distance between
        coordinates that were centred and scaled, and the two directions averaged: the graph that PyGSP 0.5.1 builds
        and the paper used. Its coordinates are longitude and latitude.
    temperatures : ndarray of shape (95, 45)
        Degrees Celsius: one signal per day, one column per city.
    """

    graph: Graph
    temperatures: Array


def load_weather(folder: str | os.PathLike[str] | None = None) -> Weather:
    """Read the temperatures of 45 Swedish cities that the paper predicts from one day to the next.

    The files `city45data.mat` and `smhi_temp_17.mat` are looked for in `folder`, in the folder named by the environment
    variable ``SPECTRALGP_DATA`` and in the user's cache, and downloaded into the cache otherwise, from the repository
    that the paper's authors published (github.com/yincong-zhi/Polynomial_Kernel_Learning). A download is kept only if
    it is the released file; where the error stream is a terminal, a bar shows how far it is. The array is read-only.

    Raises
    ------
    FileNotFoundError
        If a file is nowhere and cannot be downloaded; the message says which file to put where.
    ValueError
        If a file is not the released one, by its SHA-256 sum.

    Examples
    --------
    >>> from spectralgp.datasets import load_weather
    >>> data = load_weather()  # doctest: +SKIP
    >>> data.graph, data.temperatures.shape  # doctest: +SKIP
    (Graph(45 nodes, 278 edges), (95, 45))
    """
    places = np.asarray(variables(fetch_file(CITIES, folder))["coord45"], dtype=float)  # latitude, longitude
    temperatures = variables(fetch_file(TEMPERATURES, folder))["temp_17"]
    return Weather(_neighbour_graph(places[:, ::-1], 10), _read_only(temperatures))


@dataclass(frozen=True, eq=False)
class Traffic:
    """Minutes of congestion per day at 75 freeway bottlenecks on 2798 days (PeMS), with the paper's graph.

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
        Minutes: one signal per day, one column per bottleneck. The paper predicts the last 60 from the first 15.
    n_inputs : int
        15, the number of nodes whose delays are the inputs.
    """

    graph: Graph
    output_graph: Graph
    delays: Array
    n_inputs: int = N_TRAFFIC_INPUTS

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
        weights[pairs] = np.where(kilometres < TEXT_GRAPH_REACH, 1 / kilometres, 0.0)
        return Graph(weights + weights.T, coordinates=coordinates)


def load_traffic(folder: str | os.PathLike[str] | None = None) -> Traffic:
    """Read the daily congestion at 75 bottlenecks of San Francisco that the paper predicts.

    The file is `traffic_delay_san_francisco.mat`, read as `load_weather` describes.
    """
    content = variables(fetch_file(DELAYS, folder))
    weights, coordinates = (np.asarray(content[name], dtype=float) for name in ("Adj_Matrix", "Coords"))
    graph = Graph(weights, coordinates=coordinates)
    output_graph = graph.subgraph(range(N_TRAFFIC_INPUTS, graph.n_nodes))
    return Traffic(graph, output_graph, _read_only(content["average_delay"].T))


@dataclass(frozen=True, eq=False)
class Uber:
    """Signals on 29 places of the data called "uber", with the graph of the released program.

    Attributes
    ----------
    graph : Graph
        29 nodes joined to their 4 nearest others with weights ``exp(-d^2 / 0.1)``, built as that of `Weather` from
        longitudes and latitudes, which are its coordinates.
    signals : ndarray of shape (744, 29)
        One signal per row, one column per place. The released program does not say what they measure, or when; 744 is
        the number of hours in 31 days.
    """

    graph: Graph
    signals: Array


def load_uber(folder: str | os.PathLike[str] | None = None) -> Uber:
    """Read the data called "uber" that the paper's journal version predicts (doi 10.1109/TSIPN.2023.3265160).

    The file is `uber_data.mat`, read as `load_weather` describes. No checksum of it is known: the variables ``lon``,
    ``lat`` and ``X1`` and their shapes are checked instead.

    The program that the authors released standardises ``X1`` by the mean and the standard deviation of all its values,
    builds the graph, and predicts a random 20 of the nodes from the other 9, at the same time.
    """
    content = variables(fetch_file(UBER, folder))
    places = np.hstack([np.asarray(content[name], dtype=float) for name in ("lon", "lat")])
    return Uber(_neighbour_graph(places, 4), _read_only(content["X1"].T))


@dataclass(frozen=True, eq=False)
class Cerebellum:
    """Graph of 4465 voxels of the cerebellum (Behjat et al., 2016), with edges of weight 1 between neighbours.

    BOLD signals (292, 4465) are in its rows; None if they were not asked for.
    """

    graph: Graph
    signals: Array | None


def load_cerebellum(folder: str | os.PathLike[str] | None = None, *, signals: bool = True) -> Cerebellum:
    """Read the graph of the cerebellum, and the fMRI signals on it (Venkitaraman, Chatterjee and Handel, 2018).

    The files are `A_cerebellum.mat` and `signal_set_cerebellum.mat`, the larger one, which is not read if `signals` is
    False. They are read as `load_weather` describes, and the signals checked by their git blob hash.
    """
    graph = Graph(variables(fetch_file(VOXELS, folder))["A"])
    return Cerebellum(graph, _read_only(variables(fetch_file(SIGNALS, folder))["F2"].T) if signals else None)


def _read_only(values: Any) -> Array:
    array = np.array(values, dtype=float, order="C")
    array.setflags(write=False)
    return array


def _neighbour_graph(points: Array, n_neighbors: int) -> Graph:
    """Graph that joins every point to its nearest others, as PyGSP 0.5.1's ``NNGraph(points, k=n_neighbors)`` does.

    Weights are ``exp(-d^2 / 0.1)``, with d the distance of points that were centred, and scaled so that half the
    diagonal of their bounding box is ``n_nodes^(1 / n_dimensions) / 10``; the two directions are averaged.
    """
    n_nodes, n_dimensions = points.shape
    half_diagonal = 0.5 * np.linalg.norm(np.ptp(points, axis=0))
    scaled = (points - points.mean(axis=0)) * (n_nodes ** (1 / n_dimensions) / 10 / half_diagonal)
    weights = Graph.from_points(scaled, n_neighbors, bandwidth=0.1, symmetrize="average").weights
    return Graph(weights, coordinates=points)
