"""Counts of deaths in counties: numbers typed here were read in libpysal's tables, neighbours on a map."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from spectralgp.datasets import load_homicides, load_sids

SIDS, HOMICIDES = load_sids(), load_homicides()


def neighbours(data: Any, county: str) -> set[str]:
    names = data.graph.names
    return {names[node] for node in np.flatnonzero(data.graph.weights.toarray()[names.index(county)])}


@pytest.mark.parametrize(
    ("county", "deaths", "births", "nonwhite"),
    [
        ("Ashe", (1, 0), (1091, 1364), (10, 19)),
        ("Anson", (15, 4), (1570, 1875), (952, 1161)),
        ("Mecklenburg", (44, 35), (21588, 30757), (8027, 11631)),
        ("Robeson", (31, 26), (7889, 9087), (5904, 6899)),
    ],
)
def test_deaths_and_births_are_those_of_the_source(county, deaths, births, nonwhite):
    node = SIDS.graph.names.index(county)
    found = [tuple(values[:, node]) for values in (SIDS.deaths, SIDS.births, SIDS.nonwhite_births)]
    assert found == [deaths, births, nonwhite]


@pytest.mark.parametrize(
    ("county", "counts", "person_years"),
    [
        ("St. Louis City", (1238, 763, 1090), (2658090, 2119437, 2374448)),
        ("Franklin, Illinois", (10, 16, 8), (260154, 212112, 242736)),
        ("Franklin, Missouri", (18, 17, 21), (432159, 381345, 488564)),
        ("Wayne, Missouri", (4, 0, 6), (68218, 57181, 70993)),
    ],
)
def test_homicides_are_those_of_the_source(county, counts, person_years):
    node = HOMICIDES.graph.names.index(county)
    assert [tuple(one[:, node]) for one in (HOMICIDES.counts, HOMICIDES.person_years)] == [counts, person_years]


@pytest.mark.parametrize(
    ("data", "county", "others"),
    [
        (SIDS, "Currituck", {"Camden", "Dare"}),
        (SIDS, "Cherokee", {"Clay", "Graham"} | {"Macon"}),
        (SIDS, "New Hanover", {"Brunswick", "Pender"}),
        (HOMICIDES, "St. Louis City", {"St. Louis", "St. Clair", "Madison, Illinois"}),
        (HOMICIDES, "Calhoun", {"Greene", "Jersey", "Lincoln", "Pike, Illinois", "Pike, Missouri", "St. Charles"}),
    ],
)
def test_neighbours_are_those_of_a_map(data, county, others):
    assert neighbours(data, county) == others


@pytest.mark.parametrize("data", [SIDS, HOMICIDES], ids=["sids", "homicides"])
def test_counties_are_a_connected_graph_in_alphabetical_order(data):
    weights = data.graph.weights.toarray()
    assert connected_components(weights, directed=False)[0] == 1
    np.testing.assert_array_equal(weights, weights.T)
    assert set(np.unique(weights)) == {0.0, 1.0}
    assert list(data.graph.names) == sorted(data.graph.names)


def test_counties_lie_in_their_states():
    place = dict(zip(SIDS.graph.names, SIDS.graph.coordinates, strict=True))
    assert place["Cherokee"][0] < place["Wake"][0] < place["Dare"][0]  # from west to east
    np.testing.assert_allclose(place["Mecklenburg"], (-80.8, 35.2), atol=0.1)  # Charlotte
    place = dict(zip(HOMICIDES.graph.names, HOMICIDES.graph.coordinates, strict=True))
    np.testing.assert_allclose(place["St. Louis City"], (-90.2, 38.6), atol=0.1)
