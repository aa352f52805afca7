"""Data of the package: numbers typed here were read in the files of their sources, places and borders on a map."""

import copy
import csv
import dataclasses
import pickle
import re
from importlib import resources
from pathlib import Path

import geopandas
import numpy as np
import pytest
from libpysal import examples
from libpysal.io import open as open_pysal
from scipy.sparse.csgraph import connected_components

from spectralgp.datasets import Dataset, load_air_quality, load_fertility, load_homicides, load_sids, load_us_income

INCOME, SIDS, HOMICIDES, FERTILITY = load_us_income(), load_sids(), load_homicides(), load_fertility()


def neighbours(data: Dataset, name: str) -> set[str]:
    names = data.graph.names
    return {names[node] for node in np.flatnonzero(data.graph.weights.toarray()[names.index(name)])}


@pytest.mark.parametrize(
    ("data", "name", "others"),
    [
        (INCOME, "Maine", {"New Hampshire"}),
        (INCOME, "Michigan", {"Indiana", "Ohio", "Wisconsin"}),
        (INCOME, "Arizona", {"California", "Colorado", "Nevada", "New Mexico", "Utah"}),  # a corner counts
        (SIDS, "Currituck", {"Camden", "Dare"}),
        (SIDS, "Cherokee", {"Clay", "Graham"} | {"Macon"}),
        (SIDS, "New Hanover", {"Brunswick", "Pender"}),
        (HOMICIDES, "St. Louis City", {"St. Louis", "St. Clair", "Madison, Illinois"}),
        (HOMICIDES, "Calhoun", {"Greene", "Jersey", "Lincoln", "Pike, Illinois", "Pike, Missouri", "St. Charles"}),
        (FERTILITY, "Portugal", {"Spain"}),
        (FERTILITY, "Lesotho", {"South Africa"}),
        (FERTILITY, "Kosovo", {"Albania", "Macedonia, FYR", "Montenegro", "Serbia"}),
        (FERTILITY, "United Kingdom", {"France", "Ireland"}),
        (FERTILITY, "Iceland", {"Greenland"}),
        (FERTILITY, "Samoa", {"Tonga"}),  # not Fiji, across the line where longitudes jump
    ],
)
def test_neighbours_are_those_of_an_atlas(data, name, others):
    assert neighbours(data, name) == others


@pytest.mark.parametrize(
    ("data", "n_edges"),
    [(INCOME, 107), (SIDS, None), (HOMICIDES, None), (FERTILITY, 313 + 42)],  # the last by land, and over sea
    ids=["income", "sids", "homicides", "fertility"],
)
def test_borders_are_a_connected_graph_in_alphabetical_order(data, n_edges):
    weights = data.graph.weights.toarray()
    np.testing.assert_array_equal(weights, weights.T)
    assert set(np.unique(weights)) == {0.0, 1.0}
    assert not np.diag(weights).any()
    assert connected_components(weights, directed=False)[0] == 1
    assert list(data.graph.names) == sorted(data.graph.names)
    assert n_edges in (None, data.graph.n_edges)


# Incomes of the states of the USA


def test_incomes_equal_libpysals_copy_cell_by_cell():
    with Path(examples.get_path("usjoin.csv")).open(newline="") as file:
        header, *rows = csv.reader(file)
    assert INCOME.graph.names == tuple(row[0] for row in rows)
    np.testing.assert_array_equal(INCOME.years, [int(year) for year in header[2:]])
    np.testing.assert_array_equal(INCOME.incomes, np.array([row[2:] for row in rows], dtype=float).T)


def test_contiguity_equals_libpysals_copy_edge_by_edge():
    file = open_pysal(examples.get_path("states48.gal"))
    listed = file.read().neighbors
    file.close()
    names = INCOME.graph.names
    expected = {frozenset((names[int(a)], names[int(b)])) for a in listed for b in listed[a]}
    assert {frozenset((name, other)) for name in names for other in neighbours(INCOME, name)} == expected


def test_centres_are_those_of_libpysals_map():
    shapes = geopandas.read_file(examples.get_path("us48.shp")).set_index("STATE_NAME")
    shapes = shapes.loc[list(INCOME.graph.names)]
    centres = np.column_stack([shapes.geometry.centroid.x, shapes.geometry.centroid.y])
    # written down to 0.1 degree
    np.testing.assert_allclose(INCOME.graph.coordinates, centres, rtol=0, atol=0.15)
    assert INCOME.postal_codes == tuple(shapes.STATE_ABBR)


def test_relative_incomes_are_logs_over_the_geometric_mean():
    geometric_mean = np.prod(INCOME.incomes ** (1 / 48), axis=1)
    np.testing.assert_allclose(
        np.exp(INCOME.relative_incomes) * geometric_mean[:, None], INCOME.incomes, rtol=1e-12, atol=0
    )
    np.testing.assert_allclose(INCOME.relative_incomes.sum(axis=1), 0, atol=1e-12)


def test_a_data_set_prints_and_names_its_attributes_and_survives_copies():
    assert repr(INCOME) == (
        "Dataset(graph=Graph(48 nodes, 107 edges), years=(81,) array, incomes=(81, 48) array, "
        "relative_incomes=(81, 48) array, postal_codes=48 values)"
    )
    with pytest.raises(
        AttributeError, match="one of graph, years, incomes, relative_incomes, postal_codes; got 'income'"
    ):
        INCOME.income  # noqa: B018
    for again in (copy.deepcopy(INCOME), pickle.loads(pickle.dumps(INCOME))):
        assert repr(again) == repr(INCOME)
        np.testing.assert_array_equal(again.incomes, INCOME.incomes)


# Deaths in counties


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


def test_counties_lie_in_their_states():
    place = dict(zip(SIDS.graph.names, SIDS.graph.coordinates, strict=True))
    assert place["Cherokee"][0] < place["Wake"][0] < place["Dare"][0]  # from west to east
    np.testing.assert_allclose(place["Mecklenburg"], (-80.8, 35.2), atol=0.1)  # Charlotte
    place = dict(zip(HOMICIDES.graph.names, HOMICIDES.graph.coordinates, strict=True))
    np.testing.assert_allclose(place["St. Louis City"], (-90.2, 38.6), atol=0.1)


# Births per woman


MISSING = {
    "Andorra": 47,
    "Dominica": 45,
    "Greenland": 30,
    "Kosovo": 21,
    "Liechtenstein": 40,
    "Luxembourg": 3,
    "Marshall Islands": 47,
    "Monaco": 52,
    "Palau": 49,
    "San Marino": 52,
    "Serbia": 34,
    "Seychelles": 33,
    "Singapore": 1,
    "St. Kitts and Nevis": 46,
    "Tuvalu": 52,
    "West Bank and Gaza": 30,
}


def test_what_is_missing_is_what_the_world_bank_does_not_have():
    counts = np.isnan(FERTILITY.rates).sum(axis=0)
    assert {name: count for name, count in zip(FERTILITY.graph.names, counts, strict=True) if count} == MISSING
    assert np.isnan(FERTILITY.rates).sum() == 582
    dominica = FERTILITY.rates[:, FERTILITY.codes.index("DMA")]
    assert list(FERTILITY.years[~np.isnan(dominica)]) == [1972, 1982, 1987, 1992, 1997, 2002, 2003]
    assert list(FERTILITY.years[np.isnan(FERTILITY.rates[:, FERTILITY.codes.index("SGP")])]) == [2000]


@pytest.mark.parametrize(
    ("code", "year", "expected"),
    [
        ("FRA", 1960, 2.85),
        ("FRA", 2011, 2.03),
        ("CHN", 1960, 5.758),
        ("NER", 2011, 7.581),
        ("SRB", 1961, 2.5),
        ("DMA", 1972, 5.5),
        ("HKG", 2003, 0.901),
        ("YEM", 1983, 9.223),
    ],
)
def test_rates_are_those_of_the_source(code, year, expected):
    assert FERTILITY.rates[list(FERTILITY.years).index(year), FERTILITY.codes.index(code)] == expected


def test_countries_are_named_and_coded_in_order():
    codes = dict(zip(FERTILITY.graph.names, FERTILITY.codes, strict=True))
    assert len(set(FERTILITY.codes)) == 198
    assert (codes["Germany"], codes["Korea, Rep."], codes["Kosovo"]) == ("DEU", "KOR", "KSV")
    assert not {"OECD members", "Other small states", "Bermuda"} & set(codes)


def test_countries_border_by_land_and_over_sea_to_great_britain():
    """French Guiana is France."""
    assert neighbours(FERTILITY, "France") == {
        *("Andorra", "Belgium", "Germany", "Italy", "Luxembourg", "Monaco", "Spain", "Switzerland"),
        *("Brazil", "Suriname", "United Kingdom"),
    }


def test_the_data_cannot_be_changed_by_accident():
    for array in (FERTILITY.rates, FERTILITY.years):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError, match="codes"):
        FERTILITY.codes = ()


# Particulate matter


def test_concentrations_are_those_of_the_r_package():
    data = load_air_quality()
    assert data.concentrations.shape == (365, 50)
    assert data.dates[0] == np.datetime64("2003-01-01")
    assert data.dates[-1] == np.datetime64("2003-12-31")
    assert np.isnan(data.concentrations).sum() == 1043
    assert np.isfinite(data.concentrations).mean(axis=0).min() >= 0.5
    assert np.nanmin(data.concentrations) == 1.125


def test_stations_stand_in_germany_and_are_joined_to_their_nearest():
    data = load_air_quality()
    longitudes, latitudes = data.graph.coordinates.T
    assert 5.8 < longitudes.min() < longitudes.max() < 15.1
    assert 47.2 < latitudes.min() < latitudes.max() < 55.1
    # great circles by the haversine formula, written out
    half = np.radians(np.stack([longitudes, latitudes]))
    steps = half[:, :, None] - half[:, None]
    chord = np.sin(steps[1] / 2) ** 2 + np.cos(half[1][:, None]) * np.cos(half[1]) * np.sin(steps[0] / 2) ** 2
    nearest = np.argsort(chord, axis=1)[:, 1:6]
    weights = data.graph.weights.toarray()
    assert all(weights[station, nearest[station]].all() for station in range(50))


# All


def test_every_embedded_file_comes_with_its_source_and_terms():
    folder = resources.files("spectralgp.datasets") / "data"
    files = {file.name for file in folder.iterdir()} - {"README.md"}
    rows = [row for row in (folder / "README.md").read_text(encoding="utf-8").splitlines() if row.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+\.csv)`", row.split("|")[1])} == files
    terms = "public domain|World Bank terms of use|permits re-use|BSD 3-clause licence"
    assert all(re.search(terms, row) for row in rows)
