"""Points from tables and geometries, and neighbours on the sphere."""

import geopandas
import numpy as np
import pandas as pd
import pytest
from shapely.geometry import Polygon
from sklearn.metrics.pairwise import haversine_distances

from spectralgp.graphs import Graph

ROUNDING = 1e-13  # relative
EARTH_RADIUS = 6371.0088  # km, the mean radius of the ellipsoid WGS 84

CITIES = pd.DataFrame(
    {"longitude": [10.75, 5.33, 6.41, 10.4], "latitude": [59.91, 60.39, 60.63, 63.43]},
    index=["Oslo", "Bergen", "Voss", "Trondheim"],
)


def slow_distances(points):
    """Kilometres between places, by scikit-learn."""
    return EARTH_RADIUS * haversine_distances(np.radians(np.asarray(points, dtype=float)[:, ::-1]))


def everywhere(n_points, seed=0):
    """Places all over the sphere, across the date line too, in both conventions of longitude."""
    rng = np.random.default_rng(seed)
    longitude = np.where(rng.random(n_points) < 0.5, rng.uniform(-180, 180, n_points), rng.uniform(0, 360, n_points))
    return np.column_stack([longitude, np.degrees(np.arcsin(rng.uniform(-1, 1, n_points)))])


@pytest.mark.parametrize("weights", ["gaussian", "inverse", "binary"])
def test_all_places_within_a_radius_in_kilometres(weights):
    points, radius, bandwidth = everywhere(60), 3000.0, 2e6
    distances = slow_distances(points)
    np.fill_diagonal(distances, np.inf)
    weigh = {"gaussian": np.exp(-(distances**2) / bandwidth), "inverse": 1 / distances, "binary": 1.0}
    expected = np.where(distances <= radius, weigh[weights], 0)
    options = {"bandwidth": bandwidth} if weights == "gaussian" else {}
    graph = Graph.from_points(points, radius=radius, weights=weights, metric="haversine", **options)
    np.testing.assert_allclose(graph.weights.toarray(), expected, rtol=ROUNDING)
    np.testing.assert_array_equal(graph.coordinates, points)


def test_nearest_places_and_the_default_bandwidth():
    points = everywhere(60, seed=1)
    distances = slow_distances(points)
    np.fill_diagonal(distances, np.inf)
    chosen = np.argsort(distances, axis=1)[:, :4]
    squared = np.take_along_axis(distances, chosen, axis=1) ** 2
    directed = np.zeros_like(distances)
    np.put_along_axis(directed, chosen, np.exp(-squared / squared.mean()), axis=1)
    graph = Graph.from_points(points, 4, metric="haversine")
    np.testing.assert_allclose(graph.weights.toarray(), np.maximum(directed, directed.T), rtol=ROUNDING)


def test_distances_on_meridians_and_the_equator_are_arcs():
    for places, arc in (
        ([[0, 0], [0, 90]], 90),
        ([[0, 0], [180, 0]], 180),
        ([[179, 0], [-179, 0]], 2),
        ([[350, 0], [10, 0]], 20),
        ([[-10, 0], [350, 1]], 1),
        ([[0, 89], [180, 89]], 2),
        ([[20, 1e-9], [20, 0]], 1e-9),
    ):
        graph = Graph.from_points(places, 1, weights="inverse", metric="haversine")
        distance = 1 / graph.weights.toarray()[0, 1]
        assert distance == pytest.approx(np.radians(arc) * EARTH_RADIUS, rel=ROUNDING)
    half = np.pi * EARTH_RADIUS
    assert Graph.from_points([[0, 0], [180, 0]], radius=half, metric="haversine").n_edges == 1
    assert Graph.from_points([[0, 0], [180, 0]], radius=1e9, metric="haversine").n_edges == 1
    # the chords of these differ by less than rounding
    assert Graph.from_points([[0, 0], [180, 0]], radius=half * (1 - 1e-8), metric="haversine").n_edges == 0


def test_antipodes_are_half_a_circle_apart():
    half = np.pi * EARTH_RADIUS
    for longitude, latitude in everywhere(300):
        places = [[longitude, latitude], [longitude - 180 if longitude > 0 else longitude + 180, -latitude]]
        graph = Graph.from_points(places, radius=half, weights="inverse", metric="haversine")
        # the haversine is flat there: half the digits of a distance are all that it can tell
        assert 1 / graph.weights.toarray()[0, 1] == pytest.approx(half, rel=1e-7)


def test_one_place_may_have_several_longitudes():
    for places in ([[0, 90], [77, 90]], [[-180, 10], [180, 10]], [[-90, 10], [270, 10]], [[0, 0], [360, 0]]):
        assert Graph.from_points(places, 1, bandwidth=1.0, metric="haversine").weights.toarray()[0, 1] == 1.0
        with pytest.raises(ValueError, match="points must be distinct when weights='inverse'"):
            Graph.from_points(places, 1, weights="inverse", metric="haversine")


@pytest.mark.parametrize(
    ("points", "match"),
    [
        (
            [[59.9, 151.2], [60.4, 5.3]],
            r"latitudes from -90 to 90 in the second column .*; got 151.2.*did you swap them\?",
        ),
        ([[500000.0, 60.0], [5.3, 60.4]], r"longitudes from -180 to 360 in the first column .*; got 500000.0"),
        (np.zeros((3, 3)), r"points must have two columns, longitude and latitude, .*; got \(3, 3\)"),
        (CITIES[["latitude", "longitude"]], r"columns \(longitude, latitude\).*; got \['latitude', 'longitude'\]"),
        (CITIES[["latitude", "longitude"]].rename(columns=str.title), r"\(longitude, latitude\).*; got \['Lat"),
    ],
)
def test_places_that_are_no_longitudes_and_latitudes_are_refused(points, match):
    with pytest.raises(ValueError, match=match):
        Graph.from_points(points, 1, metric="haversine")


def test_unknown_metrics_are_refused():
    with pytest.raises(ValueError, match="metric must be one of 'euclidean', 'haversine'; got 'manhattan'"):
        Graph.from_points(np.eye(3), 1, metric="manhattan")


def test_the_index_of_a_table_of_points_becomes_names():
    graph = Graph.from_points(CITIES, 1, metric="haversine")
    assert graph.names == ("Oslo", "Bergen", "Voss", "Trondheim")
    assert [graph.names[node] for node in np.flatnonzero(graph.weights.toarray()[1])] == ["Voss"]
    np.testing.assert_array_equal(graph.coordinates, CITIES.to_numpy())
    assert Graph.from_points(CITIES, 1, names="abcd".__iter__()).names == ("a", "b", "c", "d")
    pairs = CITIES.set_index(pd.MultiIndex.from_product([["east", "west"], [1, 2]]))
    assert Graph.from_points(pairs, 1).names == (("east", 1), ("east", 2), ("west", 1), ("west", 2))


def test_an_index_that_only_counts_names_nothing():
    assert Graph.from_points(CITIES.reset_index(drop=True), 1).names is None
    # rows of another table, once some were dropped or moved
    assert Graph.from_points(CITIES.reset_index(drop=True).iloc[1:], 1).names == (1, 2, 3)
    assert Graph.from_points(CITIES.reset_index(drop=True).iloc[::-1], 1).names == (3, 2, 1, 0)


def test_tables_without_an_index_have_no_names():
    class Table:  # as polars has it
        columns = ("x", "y")

        def __array__(self, dtype=None, copy=None):
            return np.eye(3)[:, :2]

    graph = Graph.from_points(Table(), 1)
    assert graph.names is None
    np.testing.assert_array_equal(graph.coordinates, np.eye(3)[:, :2])


def test_tables_with_other_columns_are_refused():
    with pytest.raises(TypeError, match=r"points must be an array of real numbers; got DataFrame"):
        Graph.from_points(CITIES.assign(country="Norway"), 1)


GEOMETRY = geopandas.GeoSeries.from_xy(CITIES.longitude, CITIES.latitude, index=CITIES.index)


@pytest.mark.parametrize(
    "points",
    [
        GEOMETRY.set_crs(4326),
        geopandas.GeoDataFrame({"height": [1, 2, 3, 4]}, CITIES.index, geometry=GEOMETRY, crs=4326),
        geopandas.GeoDataFrame({"height": [1, 2, 3, 4]}, CITIES.index, geometry=GEOMETRY).rename_geometry("place"),
        geopandas.GeoSeries.from_xy(CITIES.longitude, CITIES.latitude, z=[1, 2, 3, 4], index=CITIES.index),
    ],
)
def test_point_geometries_are_points(points):
    graph = Graph.from_points(points, 2, metric="haversine")
    expected = Graph.from_points(CITIES, 2, metric="haversine")
    assert graph.names == expected.names
    np.testing.assert_array_equal(graph.weights.toarray(), expected.weights.toarray())
    np.testing.assert_array_equal(graph.coordinates, expected.coordinates)


def test_the_metric_must_fit_the_reference_system():
    with pytest.raises(ValueError, match=r"metric must be 'haversine' for points in degrees; got 'euclidean' .*WGS 84"):
        Graph.from_points(GEOMETRY.set_crs(4326), 2)
    with pytest.raises(ValueError, match=r"metric must be 'euclidean' for projected points; got 'haversine' .*UTM"):
        Graph.from_points(GEOMETRY.set_crs(32632), 2, metric="haversine")
    assert Graph.from_points(GEOMETRY.set_crs(32632), 1).n_edges == Graph.from_points(CITIES, 1).n_edges


def test_other_geometries_are_refused():
    square = Polygon([(0, 0), (1, 0), (1, 1)])
    with pytest.raises(TypeError, match=r"points must have point geometries; got .*points\.centroid"):
        Graph.from_points(geopandas.GeoSeries([square, square]), 1)
    with pytest.raises(ValueError, match=r"points must be finite; got nan at index \(1, 0\)"):
        Graph.from_points(geopandas.GeoSeries([GEOMETRY.iloc[0], None]), 1)
