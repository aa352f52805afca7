"""Daily temperatures of 45 Swedish cities, the paper's weather data."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.datasets._files import ReleasedFile, fetch_file, variables
from spectralgp.datasets._neighbours import neighbour_graph
from spectralgp.graphs import Graph

CITIES = ReleasedFile("city45data.mat", "7c82c3554c7c4eb63772b5e637a98c7c8d8b75432acdcd722ec04f4c0c99b77b")
TEMPERATURES = ReleasedFile("smhi_temp_17.mat", "d7d72fc1b06836b6d559160c53851c90af00a8efd0a366a215d25abfa635ade0")
N_NEIGHBORS = 10


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
        Degrees Celsius: one signal a day, one column a city.

    See Also
    --------
    load_weather : Reads the data.
    """

    graph: Graph
    temperatures: Array


def load_weather(folder: str | os.PathLike[str] | None = None) -> Weather:
    """Read the temperatures of 45 Swedish cities that the paper predicts from one day to the next.

    The files `city45data.mat` and `smhi_temp_17.mat` are looked for in `folder`, in the folder named by the environment
    variable ``SPECTRALGP_DATA`` and in the user's cache, and downloaded into the cache otherwise, from the repository
    that the paper's authors published (github.com/yincong-zhi/Polynomial_Kernel_Learning). A download is kept only if
    it is the released file; where the error stream is a terminal, a bar shows how far it is.

    Parameters
    ----------
    folder : path, optional
        Where the files are.

    Returns
    -------
    Weather
        The graph and the temperatures, read-only, of shape (95, 45).

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
    temperatures = np.array(variables(fetch_file(TEMPERATURES, folder))["temp_17"], dtype=float, order="C")
    temperatures.setflags(write=False)
    return Weather(neighbour_graph(places[:, ::-1], N_NEIGHBORS), temperatures)
