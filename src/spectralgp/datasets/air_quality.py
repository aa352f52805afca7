"""Daily particulate matter at 50 stations in the German countryside in 2003, with the days that they missed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectralgp.datasets._tables import read_points, read_table
from spectralgp.graphs import Graph

NEIGHBOURS = 5


@dataclass(frozen=True, eq=False)
class AirQuality:
    """Daily means of particulate matter (PM10) at rural stations, with the graph of which are near.

    Attributes
    ----------
    graph : Graph
        50 stations, named by their European codes, each joined to its five nearest others on the sphere;
        coordinates are longitude and latitude.
    dates : ndarray of datetime64 of shape (365,)
        The days of 2003.
    concentrations : ndarray of shape (365, 50)
        Micrograms per cubic metre: one signal a day, one column a station. NaN where a station has none.

    See Also
    --------
    load_air_quality : Reads the data.
    """

    graph: Graph
    dates: NDArray[np.datetime64]
    concentrations: NDArray[np.float64]


def load_air_quality() -> AirQuality:
    """Read a year of particulate matter at 50 rural stations in Germany, with the holes it has.

    2003 is the year of 1998 to 2009 with the fewest values missing, and the stations are those that have at least half
    of its days: 1,043 of 18,250 values (5.7%) are missing. The files are part of the package: nothing is downloaded.

    Returns
    -------
    AirQuality
        Graph, dates, and concentrations of shape (365, 50) with NaN for what is missing; both arrays are read-only.

    Notes
    -----
    European Environment Agency, AirBase: daily means of PM10 at rural background stations, as the R package spacetime
    1.2-8 ships them (its data set `air`). The agency permits re-use, also commercial, if it is named as the source.
    ``benchmarks/make_air_quality.py`` made the files.

    Examples
    --------
    >>> from spectralgp.datasets import load_air_quality
    >>> data = load_air_quality()
    >>> data.graph, data.concentrations.shape
    (Graph(50 nodes, 160 edges), (365, 50))
    """
    codes, coordinates = read_points("air_stations.csv")
    dates, concentrations = read_table("air_quality.csv")
    graph = Graph.from_points(coordinates, n_neighbors=NEIGHBOURS, metric="haversine", names=codes)
    days = np.array(dates, dtype="datetime64[D]")
    days.setflags(write=False)
    return AirQuality(graph, days, concentrations)
