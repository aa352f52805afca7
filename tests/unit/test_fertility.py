"""Births per woman: numbers typed here were read in statsmodels' file, borders in an atlas."""

import dataclasses

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from spectralgp.datasets import Dataset, load_fertility

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


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_fertility()


def neighbours(data: Dataset, country: str) -> set[str]:
    names = data.graph.names
    return {names[node] for node in np.flatnonzero(data.graph.weights.toarray()[names.index(country)])}


def rate(data: Dataset, code: str, year: int) -> float:
    return data.rates[list(data.years).index(year), data.codes.index(code)]


def test_what_is_missing_is_what_the_world_bank_does_not_have(data):
    counts = np.isnan(data.rates).sum(axis=0)
    assert {name: count for name, count in zip(data.graph.names, counts, strict=True) if count} == MISSING
    assert np.isnan(data.rates).sum() == 582
    dominica = data.rates[:, data.codes.index("DMA")]
    assert list(data.years[~np.isnan(dominica)]) == [1972, 1982, 1987, 1992, 1997, 2002, 2003]
    assert list(data.years[np.isnan(data.rates[:, data.codes.index("SGP")])]) == [2000]


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
def test_rates_are_those_of_the_source(data, code, year, expected):
    assert rate(data, code, year) == expected


def test_countries_are_named_and_coded_in_order(data):
    assert list(data.graph.names) == sorted(data.graph.names)
    codes = dict(zip(data.graph.names, data.codes, strict=True))
    assert len(set(data.codes)) == 198
    assert (codes["Germany"], codes["Korea, Rep."], codes["Kosovo"]) == ("DEU", "KOR", "KSV")
    assert not {"OECD members", "Other small states", "Bermuda"} & set(codes)


def test_borders_known_from_an_atlas(data):
    assert neighbours(data, "Portugal") == {"Spain"}
    assert neighbours(data, "Lesotho") == {"South Africa"}
    assert neighbours(data, "Kosovo") == {"Albania", "Macedonia, FYR", "Montenegro", "Serbia"}
    # by land, and over sea to Great Britain; French Guiana is France
    assert neighbours(data, "France") == {
        *("Andorra", "Belgium", "Germany", "Italy", "Luxembourg", "Monaco", "Spain", "Switzerland"),
        *("Brazil", "Suriname", "United Kingdom"),
    }
    assert neighbours(data, "United Kingdom") == {"France", "Ireland"}
    assert neighbours(data, "Iceland") == {"Greenland"}
    assert neighbours(data, "Samoa") == {"Tonga"}  # not Fiji, across the line where longitudes jump


def test_the_graph_is_connected_and_symmetric(data):
    weights = data.graph.weights.toarray()
    np.testing.assert_array_equal(weights, weights.T)
    assert not np.diag(weights).any()
    assert set(weights.ravel()) == {0.0, 1.0}
    assert data.graph.n_edges == 313 + 42  # by land, and over sea
    assert connected_components(weights, directed=False)[0] == 1


def test_the_data_cannot_be_changed_by_accident(data):
    for array in (data.rates, data.years):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError, match="codes"):
        data.codes = ()
