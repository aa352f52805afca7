"""Births a woman in 198 countries on the graph of their borders, 1960 to 2011, with what nobody recorded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectralgp.datasets._tables import read_places, read_years
from spectralgp.graphs import Graph


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
        Births a woman, over her life at the rates of the year: one signal a year, one column a country. NaN
        where the World Bank has no figure.
    codes : tuple of str
        Three-letter codes of the countries (ISO 3166-1), in the order of the nodes. Kosovo, which has none there, is
        KSV, as in the source.

    See Also
    --------
    load_fertility : Reads the data.
    """

    graph: Graph
    years: NDArray[np.int64]
    rates: NDArray[np.float64]
    codes: tuple[str, ...]


def load_fertility() -> Fertility:
    """Read the fertility rates of 198 countries, with the holes they have, and the countries' graph.

    Of 10296 rates 582 (5.7%) are missing, in 16 countries: some start late (Greenland in 1990), some report every few
    years (Dominica), one lacks a single year (Singapore), and three have none (Monaco, San Marino and Tuvalu).

    Countries are neighbours if their areas touch on a map at the scale of 1:110,000,000. Where no land leads, the
    shortest ways over sea that make the graph connected do: 42 of the 355 edges. 28 countries too small for the map are
    the points of their capitals, with one to three neighbours. French Guiana is part of France, which so borders Brazil
    and Suriname.

    The files are part of the package: nothing is downloaded.

    Returns
    -------
    Fertility
        Graph, years, rates of shape (52, 198) with NaN for what is missing, and codes. Years and rates are read-only.

    Notes
    -----
    Rates: The World Bank: Fertility rate, total (births per woman): World Development Indicators, as statsmodels 0.15.0
    ships them, "distributed according to the World Bank terms of use". These are, unless a data set is labelled
    otherwise, the Creative Commons Attribution 4.0 licence with additional terms: whoever passes the rates on names the
    World Bank as here, and asks the same of others. Left out are 5 groups of countries, 16 territories that the map
    does not have, and the years 2012 and 2013, which are empty.

    Map: Natural Earth (public domain), as geopandas 0.14.4 ships it. ``benchmarks/make_fertility.py`` made the files.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp.datasets import load_fertility
    >>> data = load_fertility()
    >>> data.rates.shape, int(np.isnan(data.rates).sum())
    ((52, 198), 582)
    >>> never = np.isnan(data.rates).all(axis=0)
    >>> [data.graph.names[node] for node in np.flatnonzero(never)]
    ['Monaco', 'San Marino', 'Tuvalu']
    """
    graph, codes = read_places("countries.csv", "country_borders.csv")
    years, rates = read_years("fertility.csv")
    return Fertility(graph=graph, years=years, rates=rates, codes=codes)
