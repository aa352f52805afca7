"""Annual income per head of 48 US states on the graph of state contiguity, 1929 to 2009."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectralgp.datasets._tables import read_places, read_years
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
        Personal income per head in current dollars: one signal a year, one column a state.
    postal_codes : tuple of str
        Two-letter abbreviations of the states, in the order of the nodes.

    See Also
    --------
    load_us_income : Reads the data.
    """

    graph: Graph
    years: NDArray[np.int64]
    incomes: NDArray[np.float64]
    postal_codes: tuple[str, ...]

    @property
    def relative_incomes(self) -> NDArray[np.float64]:
        """Log of income over the geometric mean of the states in the same year, of shape (81, 48).

        Inflation and growth common to all states drop out: every row sums to zero, and 0.1 means about ten
        per cent above the typical state.
        """
        log_incomes = np.log(self.incomes)
        relative: NDArray[np.float64] = log_incomes - log_incomes.mean(axis=1, keepdims=True)
        return relative


def load_us_income() -> USIncome:
    """Read the annual income per head of 48 US states and the states' contiguity graph.

    The incomes are figures of the US Bureau of Economic Analysis (public domain); they and the contiguity are
    those of libpysal's example `us_income`. Alaska, Hawaii and the District of Columbia are not among the
    states. The files are part of the package: nothing is downloaded.

    Returns
    -------
    USIncome
        Graph, years, incomes of shape (81, 48) in current dollars, and postal codes. Years and incomes are
        read-only.

    Examples
    --------
    >>> from spectralgp.datasets import load_us_income
    >>> data = load_us_income()
    >>> data.incomes.shape
    (81, 48)
    >>> data.graph.n_nodes, data.graph.n_edges
    (48, 107)

    Mississippi in 2009, against the typical state of that year:

    >>> float(data.relative_incomes[-1, data.graph.names.index("Mississippi")])
    -0.228
    """
    graph, postal_codes = read_places("us_states.csv", "us_contiguity.csv")
    years, incomes = read_years("us_income.csv")
    return USIncome(graph=graph, years=years, incomes=incomes, postal_codes=postal_codes)
