"""Data that come with the package: incomes of US states, fertility of countries, particulate matter in Germany.

Nothing is downloaded, and arrays are read-only. ``datasets/data/README.md`` has the sources of the data and their
terms, which whoever passes them on must name.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp.graphs import Graph


@dataclass(frozen=True, eq=False)
class USIncome:
    """Annual income per head of the 48 contiguous US states, with the graph of who borders whom.

    Attributes
    ----------
    graph : Graph
        48 nodes named by state, in alphabetical order, and 107 edges of weight 1 between states that share a
        border or a corner; coordinates are the approximate longitude and latitude of each state's centre.
    years : ndarray of shape (81,)
        1929 to 2009.
    incomes : ndarray of shape (81, 48)
        Personal income per head in current dollars: one signal per year, one column per state.
    postal_codes : tuple of str
        Two-letter abbreviations of the states, in the order of the nodes.
    """

    graph: Graph
    years: NDArray[np.int64]
    incomes: NDArray[np.float64]
    postal_codes: tuple[str, ...]

    @property
    def relative_incomes(self) -> NDArray[np.float64]:
        """Log of income over the geometric mean of the states in the same year, of shape (81, 48).

        Inflation and growth common to all states drop out; 0.1 means about ten per cent above the typical state.
        """
        log_incomes = np.log(self.incomes)
        return log_incomes - log_incomes.mean(axis=1, keepdims=True)


def load_us_income() -> USIncome:
    """Read the annual income per head of 48 US states and the states' contiguity graph.

    From the US Bureau of Economic Analysis (public domain), by way of libpysal. Alaska, Hawaii and the District of
    Columbia are not among the states.

    Examples
    --------
    >>> from spectralgp.datasets import load_us_income
    >>> data = load_us_income()
    >>> data.graph, data.incomes.shape
    (Graph(48 nodes, 107 edges), (81, 48))
    >>> float(data.relative_incomes[-1, data.graph.names.index("Mississippi")])  # in 2009, to the typical state
    -0.228
    """
    graph, postal_codes = _border_graph("us_states.csv", "us_contiguity.csv")
    return USIncome(graph, *_signals("us_income.csv", "int64"), postal_codes)


@dataclass(frozen=True, eq=False)
class Fertility:
    """Total fertility rates of 198 countries, with the graph of who borders whom.

    Attributes
    ----------
    graph : Graph
        198 nodes named by country, in alphabetical order, and 355 edges of weight 1 between neighbours;
        coordinates are the longitude and latitude of a point inside each country.
    years : ndarray of shape (52,)
        1960 to 2011.
    rates : ndarray of shape (52, 198)
        Births per woman, over her life at the rates of the year: one signal per year, one column per country. NaN
        where the World Bank has no figure.
    codes : tuple of str
        Three-letter codes of the countries (ISO 3166-1; KSV for Kosovo), in the order of the nodes.
    """

    graph: Graph
    years: NDArray[np.int64]
    rates: NDArray[np.float64]
    codes: tuple[str, ...]


def load_fertility() -> Fertility:
    """Read the fertility rates of 198 countries, with the holes they have, and the countries' graph.

    From the World Bank's World Development Indicators. Of 10296 rates 582 (5.7%) are missing, in 16 countries: some
    start late (Greenland in 1990), some report every few years, and three have none (Monaco, San Marino and Tuvalu).

    Countries are neighbours if their areas touch on Natural Earth's map at the scale of 1:110,000,000. Where no land
    leads, the shortest ways over sea that make the graph connected do: 42 of the 355 edges. 28 countries too small for
    the map are the points of their capitals, with one to three neighbours. French Guiana is part of France, which so
    borders Brazil and Suriname.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp.datasets import load_fertility
    >>> data = load_fertility()
    >>> data.graph, data.rates.shape, int(np.isnan(data.rates).sum())
    (Graph(198 nodes, 355 edges), (52, 198), 582)
    """
    graph, codes = _border_graph("countries.csv", "country_borders.csv")
    return Fertility(graph, *_signals("fertility.csv", "int64"), codes)


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
        Micrograms per cubic metre: one signal per day, one column per station. NaN where a station has none.
    """

    graph: Graph
    dates: NDArray[np.datetime64]
    concentrations: NDArray[np.float64]


def load_air_quality() -> AirQuality:
    """Read a year of particulate matter at 50 rural stations in Germany, with the holes it has.

    From the European Environment Agency's AirBase. 2003 is the year of 1998 to 2009 with the fewest values missing, and
    the stations are those that have at least half of its days: 1,043 of 18,250 values (5.7%) are missing.

    Examples
    --------
    >>> from spectralgp.datasets import load_air_quality
    >>> data = load_air_quality()
    >>> data.graph, data.concentrations.shape
    (Graph(50 nodes, 160 edges), (365, 50))
    """
    codes, *coordinates = zip(*_rows("air_stations.csv"), strict=True)
    points = np.array(coordinates, dtype=float).T
    graph = Graph.from_points(points, n_neighbors=5, metric="haversine", names=codes)
    return AirQuality(graph, *_signals("air_quality.csv", "datetime64[D]"))


def _border_graph(nodes: str, edges: str) -> tuple[Graph, tuple[str, ...]]:
    """Graph with edges of weight 1, and codes of its nodes, from rows (name, code, longitude, latitude) and pairs."""
    names, codes, *coordinates = zip(*_rows(nodes), strict=True)
    return Graph.from_edges(_rows(edges), names=names, coordinates=np.array(coordinates, dtype=float).T), codes


def _signals(file_name: str, label_type: str) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Labels in the first column, and signals (n_rows, n_nodes), NaN where a cell is empty; both are read-only."""
    rows = _rows(file_name)
    labels = np.array([row[0] for row in rows], dtype=label_type)
    signals = np.array([[cell or "nan" for cell in row[1:]] for row in rows], dtype=np.float64)
    for array in (labels, signals):
        array.setflags(write=False)
    return labels, signals


def _rows(file_name: str) -> list[list[str]]:
    """Rows of a table, without its header."""
    file = resources.files("spectralgp.datasets") / "data" / file_name
    return list(csv.reader(file.read_text(encoding="utf-8").splitlines()))[1:]
