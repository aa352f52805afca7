"""Data that come with the package: incomes, fertility, particulate matter, and counts of deaths in counties.

Nothing is downloaded. ``datasets/data/README.md`` has the sources of the data and their terms, which must be passed on
with them.
"""

from __future__ import annotations

import csv
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp.datasets.dataset import Dataset
from spectralgp.graphs import Graph


def load_us_income() -> Dataset:
    """Read the annual income per head of the 48 contiguous US states, and the graph of their borders.

    From the US Bureau of Economic Analysis (public domain), by way of libpysal. Alaska, Hawaii and the District of
    Columbia are not among the states.

    Returns
    -------
    Dataset
        - ``graph``: 48 nodes named by state, in alphabetical order, and 107 edges of weight 1 between states that share
          a border or a corner; coordinates are the approximate longitude and latitude of each state's centre.
        - ``years``, shape (81,): 1929 to 2009.
        - ``incomes``, shape (81, 48): personal income per head in current dollars, one signal per year, one column per
          state.
        - ``relative_incomes``, shape (81, 48): log of income over the geometric mean of the states in the same year.
          Inflation and growth common to all states drop out; 0.1 means about ten per cent above the typical state.
        - ``postal_codes``: two-letter abbreviations of the states, in the order of the nodes.

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
    years, incomes = _signals("us_income.csv", "int64")
    logs = np.log(incomes)
    relative = logs - logs.mean(axis=1, keepdims=True)
    return Dataset(graph, years=years, incomes=incomes, relative_incomes=relative, postal_codes=postal_codes)


def load_fertility() -> Dataset:
    """Read the fertility rates of 198 countries, some of them missing, and the graph of their borders.

    From the World Bank's World Development Indicators. Of 10296 rates 582 (5.7%) are missing, in 16 countries: some
    start late (Greenland in 1990), some report every few years, and three have none (Monaco, San Marino and Tuvalu).

    Countries are neighbours if their areas touch on Natural Earth's map at the scale of 1:110,000,000. Where no land
    leads, the shortest ways over sea that make the graph connected do: 42 of the 355 edges. 28 countries too small for
    the map are the points of their capitals, with one to three neighbours. French Guiana is part of France, which so
    borders Brazil and Suriname.

    Returns
    -------
    Dataset
        - ``graph``: 198 nodes named by country, in alphabetical order, and 355 edges of weight 1 between neighbours;
          coordinates are the longitude and latitude of a point inside each country.
        - ``years``, shape (52,): 1960 to 2011.
        - ``rates``, shape (52, 198): births per woman, over her life at the rates of the year: one signal per year, one
          column per country. NaN where the World Bank has no figure.
        - ``codes``: three-letter codes of the countries (ISO 3166-1; KSV for Kosovo), in the order of the nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp.datasets import load_fertility
    >>> data = load_fertility()
    >>> data.graph, data.rates.shape, int(np.isnan(data.rates).sum())
    (Graph(198 nodes, 355 edges), (52, 198), 582)
    """
    graph, codes = _border_graph("countries.csv", "country_borders.csv")
    years, rates = _signals("fertility.csv", "int64")
    return Dataset(graph, years=years, rates=rates, codes=codes)


def load_air_quality() -> Dataset:
    """Read a year of particulate matter (PM10) at 50 rural stations in Germany, and the graph of near stations.

    From the European Environment Agency's AirBase. 2003 is the year of 1998 to 2009 with the fewest values missing, and
    the stations are those that have at least half of its days: 1,043 of 18,250 values (5.7%) are missing.

    Returns
    -------
    Dataset
        - ``graph``: 50 stations, named by their European codes, each joined to its five nearest others on the sphere;
          coordinates are longitude and latitude.
        - ``dates``, shape (365,): the days of 2003.
        - ``concentrations``, shape (365, 50): daily means in micrograms per cubic metre, one signal per day, one column
          per station. NaN where a value is missing.

    Examples
    --------
    >>> from spectralgp.datasets import load_air_quality
    >>> data = load_air_quality()
    >>> data.graph, data.concentrations.shape
    (Graph(50 nodes, 160 edges), (365, 50))
    """
    codes, *coordinates = zip(*_rows("air_stations.csv"), strict=True)
    graph = Graph.from_points(np.array(coordinates, dtype=float).T, n_neighbors=5, metric="haversine", names=codes)
    dates, concentrations = _signals("air_quality.csv", "datetime64[D]")
    return Dataset(graph, dates=dates, concentrations=concentrations)


def load_sids() -> Dataset:
    """Read the sudden infant deaths in the counties of North Carolina in two periods, with births and neighbours.

    From Cressie, Statistics for Spatial Data (1993), by way of libpysal, whose edges these are.

    Returns
    -------
    Dataset
        - ``graph``: 100 counties, in alphabetical order, and 231 edges of weight 1 between neighbours; coordinates are
          the longitude and latitude of a point inside each county.
        - ``periods``: "1974-78" and "1979-84".
        - ``deaths``, shape (2, 100): counts, of which births are the exposure; one row per period, one column per
          county.
        - ``births`` and ``nonwhite_births``, shape (2, 100): live births, and those among them that the register calls
          nonwhite.

    Examples
    --------
    >>> from spectralgp.datasets import load_sids
    >>> data = load_sids()
    >>> data.graph, data.deaths.shape
    (Graph(100 nodes, 231 edges), (2, 100))
    >>> (1000 * data.deaths.sum(axis=1) / data.births.sum(axis=1)).round(2).tolist()  # deaths per 1,000 births
    [2.02, 1.98]
    """
    graph, (deaths, births, nonwhite) = _counties("sids.csv", "sids_borders.csv", 2)
    return Dataset(graph, periods=("1974-78", "1979-84"), deaths=deaths, births=births, nonwhite_births=nonwhite)


def load_homicides() -> Dataset:
    """Read the homicides in 78 counties around St. Louis in three periods, with populations and neighbours.

    From Messner and others, An Atlas of the Spatial Patterning of County-Level Homicide, 1960-1990 (2000), by way of
    libpysal, whose edges these are. Few counts are large: the median is 4, and the city of St. Louis has up to 1,238.

    Returns
    -------
    Dataset
        - ``graph``: 78 counties of Illinois and Missouri, in alphabetical order, and 199 edges of weight 1 between
          those that share a border or a corner; coordinates are the longitude and latitude of a point inside each
          county. Counties that have a namesake in the other state are named with their state.
        - ``periods``: "1979-84", "1984-88" and "1988-93".
        - ``counts``, shape (3, 78): homicides, one row per period, one column per county.
        - ``person_years``, shape (3, 78): population, summed over the years of the period.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp.datasets import load_homicides
    >>> data = load_homicides()
    >>> data.graph, data.counts.shape, float(np.median(data.counts))
    (Graph(78 nodes, 199 edges), (3, 78), 4.0)
    """
    graph, (counts, person_years) = _counties("homicides.csv", "homicides_borders.csv", 3)
    return Dataset(graph, periods=("1979-84", "1984-88", "1988-93"), counts=counts, person_years=person_years)


def _counties(nodes: str, edges: str, n_periods: int) -> tuple[Graph, list[NDArray[np.float64]]]:
    """Graph, and measures (n_periods, n_nodes), from rows of a county's place and measures by period."""
    columns = list(zip(*_rows(nodes), strict=True))[4:]
    measures = np.array(columns, dtype=np.float64).reshape(-1, n_periods, len(columns[0]))
    return _border_graph(nodes, edges)[0], list(measures)


def _border_graph(nodes: str, edges: str) -> tuple[Graph, tuple[str, ...]]:
    """Graph with edges of weight 1, and codes of its nodes, from rows (name, code, x, y, ...) and pairs."""
    names, codes, *coordinates = list(zip(*_rows(nodes), strict=True))[:4]
    return Graph.from_edges(_rows(edges), names=names, coordinates=np.array(coordinates, dtype=float).T), codes


def _signals(file_name: str, label_type: str) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Labels in the first column, and signals (n_rows, n_nodes), NaN where a cell is empty."""
    rows = _rows(file_name)
    labels = np.array([row[0] for row in rows], dtype=label_type)
    return labels, np.array([[cell or "nan" for cell in row[1:]] for row in rows], dtype=np.float64)


def _rows(file_name: str) -> list[list[str]]:
    """Rows of a table, without its header."""
    file = resources.files("spectralgp.datasets") / "data" / file_name
    return list(csv.reader(file.read_text(encoding="utf-8").splitlines()))[1:]
