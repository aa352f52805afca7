import copy
import csv
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

from spectralgp.datasets import Dataset, load_us_income


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_us_income()


def edges_of(data: Dataset) -> set[frozenset[str]]:
    rows, columns = data.graph.weights.nonzero()
    names = data.graph.names
    return {frozenset((names[row], names[column])) for row, column in zip(rows, columns, strict=True)}


def test_incomes_equal_libpysals_copy_cell_by_cell(data):
    with Path(examples.get_path("usjoin.csv")).open(newline="") as file:
        header, *rows = csv.reader(file)
    assert data.graph.names == tuple(row[0] for row in rows)
    np.testing.assert_array_equal(data.years, [int(year) for year in header[2:]])
    np.testing.assert_array_equal(data.incomes, np.array([row[2:] for row in rows], dtype=float).T)


def test_contiguity_equals_libpysals_copy_edge_by_edge(data):
    file = open_pysal(examples.get_path("states48.gal"))
    neighbours = file.read().neighbors
    file.close()
    names = data.graph.names
    expected = {frozenset((names[int(a)], names[int(b)])) for a in neighbours for b in neighbours[a]}
    assert edges_of(data) == expected


def test_centres_are_those_of_libpysals_map(data):
    shapes = geopandas.read_file(examples.get_path("us48.shp")).set_index("STATE_NAME")
    shapes = shapes.loc[list(data.graph.names)]
    centres = np.column_stack([shapes.geometry.centroid.x, shapes.geometry.centroid.y])
    # written down to 0.1 degree
    np.testing.assert_allclose(data.graph.coordinates, centres, rtol=0, atol=0.15)
    assert data.postal_codes == tuple(shapes.STATE_ABBR)


def test_edges_known_from_an_atlas(data):
    edges = edges_of(data)
    assert frozenset(("Maine", "New Hampshire")) in edges
    assert frozenset(("Michigan", "Wisconsin")) in edges
    assert frozenset(("Arizona", "Colorado")) in edges  # a corner counts
    assert frozenset(("Maine", "Vermont")) not in edges
    assert data.graph.degrees[data.graph.names.index("Tennessee")] == 8
    assert data.graph.degrees[data.graph.names.index("Maine")] == 1


def test_the_graph_is_connected_without_islands(data):
    assert connected_components(data.graph.weights, directed=False)[0] == 1
    assert data.graph.degrees.min() >= 1
    assert data.graph.n_edges == 107
    assert set(data.graph.weights.data) == {1.0}


def test_relative_incomes_are_logs_over_the_geometric_mean(data):
    geometric_mean = np.prod(data.incomes ** (1 / 48), axis=1)
    np.testing.assert_allclose(
        np.exp(data.relative_incomes) * geometric_mean[:, None], data.incomes, rtol=1e-12, atol=0
    )
    np.testing.assert_allclose(data.relative_incomes.sum(axis=1), 0, atol=1e-12)


def test_a_data_set_prints_and_names_its_attributes_and_survives_copies(data):
    assert repr(data) == (
        "Dataset(graph=Graph(48 nodes, 107 edges), years=(81,) array, incomes=(81, 48) array, "
        "relative_incomes=(81, 48) array, postal_codes=48 values)"
    )
    with pytest.raises(
        AttributeError, match="one of graph, years, incomes, relative_incomes, postal_codes; got 'income'"
    ):
        data.income  # noqa: B018
    for again in (copy.deepcopy(data), pickle.loads(pickle.dumps(data))):
        assert repr(again) == repr(data)
        np.testing.assert_array_equal(again.incomes, data.incomes)


def test_every_embedded_file_comes_with_its_source_and_terms():
    folder = resources.files("spectralgp.datasets") / "data"
    files = {file.name for file in folder.iterdir()} - {"README.md"}
    rows = [row for row in (folder / "README.md").read_text(encoding="utf-8").splitlines() if row.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+\.csv)`", row.split("|")[1])} == files
    terms = "public domain|World Bank terms of use|permits re-use|BSD 3-clause licence"
    assert all(re.search(terms, row) for row in rows)
