import gzip
import json
import warnings

import networkx
import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from scipy.io import mmwrite
from scipy.sparse import csr_array, save_npz

from spectralgp import Graph
from spectralgp.datasets import load_us_income
from spectralgp.files.graphs import graph_from_file, graph_from_points, with_points
from spectralgp.files.inputs import inputs_from_file, lagged, time_inputs
from spectralgp.files.signals import signals_from_file
from spectralgp.files.tables import (
    as_label,
    as_long,
    dialect_of,
    following,
    read_table,
    side_by_side,
    times_of,
    with_intervals,
    write_tables,
)

MATRIX = "%%MatrixMarket matrix coordinate real general\n"
POINT = '{"features": [{"geometry": {"type": "Point", "coordinates": [1, 2]}, "id": 1}, '
PATH = Graph.from_edges([("a", "b"), ("b", "c")])


@pytest.fixture
def file(tmp_path):
    """Write a file of some text, or bytes, and give its path."""

    def written(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


def values_of(frame):
    return frame[sorted(frame)].to_numpy().tolist()


# --------------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize(
    "content",
    [
        "day,a,b,c\n1,0.5,2,3e2\n",
        "\ufeffday,a,b,c\n1,0.5,2,3e2\n",
        "day;a;b;c\n1;0,5;2;3e2\n",
        "\ufeffday;a;b;c\r\n1;0,5;2;3e2\r\n",
        "day\ta\tb\tc\n1\t0,5\t2\t3e2\n",
        "day|a|b|c\n1|0.5|2|3e2\n",
        '"day","a","b","c"\n"1","0.5","2","3e2"\n',
        " day , a , b , c \n1, 0.5 , 2,3e2\n",
        "day,c,a,b\n1,3e2,0.5,2\n",
        "day;a;b;c;\n1;0,5;2;3e2;\n",
        "\nday,a,b,c\n\n1,0.5,2,3e2\n\n",
        "day,a,b,c\n1,0.5,2,3e2\n".encode("utf-16"),
        "day\ta\tb\tc\r\n1\t0,5\t2\t3e2\r\n".encode("utf-16"),
    ],
)
def test_dialects_of_csv_hold_the_same_signals(file, content):
    signals = signals_from_file(file(content), PATH)
    assert values_of(signals) == [[0.5, 2.0, 300.0]]
    assert (signals.index.tolist(), signals.index.name) == ([1], "day")


def test_quoted_names_keep_what_separates_cells(file):
    graph = Graph.from_edges([("Washington, D.C.", 'the "Lone Star" state')])
    content = 'year,"Washington, D.C.","the ""Lone Star"" state"\n1990,1.5,2\n'
    assert signals_from_file(file(content), graph).to_numpy().tolist() == [[1.5, 2.0]]
    unquoted = 'year;Washington, D.C.;the "Lone Star" state\n1990;1,5;2\n'
    assert signals_from_file(file(unquoted), graph).to_numpy().tolist() == [[1.5, 2.0]]


@pytest.mark.parametrize("empty", ["", " ", "NA", "nan", "NaN", "N/A", "null", '""'])
def test_empty_cells_are_not_observed(file, empty):
    signals = signals_from_file(file(f"day,a,b,c\n1,{empty},2,3\n"), PATH)
    np.testing.assert_array_equal(signals, [[np.nan, 2.0, 3.0]])


def test_names_of_nodes_are_never_missing_values_or_numbers(file):
    graph = graph_from_file(file("source,target\nNA,007\n007,7\nnull,NA\n", "edges.csv"))
    assert graph.names == ("NA", "007", "7", "null")
    assert values_of(signals_from_file(file("007,7,null,NA\n1,2,3,4\n"), graph)) == [[1.0, 2.0, 4.0, 3.0]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("day,a,b,c\n1,2,3,4\n2,3,x,5\n", r"got 'x' in row 3, column 'b'"),
        ("day,a,b,c\n1,2,3,4\n\n2,3,x,5\n", r"got 'x' in row 4, column 'b'"),
        ("day,a,b,c\n1,2,True,4\n", r"got 'True' in row 2, column 'b'"),
        ("day,a,b,c\n1,2,1_0,4\n", r"got '1_0' in row 2, column 'b'"),
        ('day,a,b,c\n1,2,"1,234",4\n', r"got '1,234' in row 2, column 'b'"),
        ("day;a;b;c\n1;2;1.234,5;4\n", r"got '1.234,5' in row 2, column 'b'"),
        (
            "day;a;b;c\n1;1,5;2.5;4\n",
            r"one decimal mark; got '1,5' in row 2, column 'a' and '2.5' in row 2, column 'b'",
        ),
        (
            "day;a;b;c\n1;NA;2;4\n2;1,5;2;4\n3;2,5;3.5;4\n4;1;4.5;4\n",
            r"got '1,5' in row 3, column 'a' and '3.5' in row 4, column 'b'",
        ),
        ("day,a,b,c\n1,2,3,4\n2,2,inf,4\n3,2,inf,4\n", r"infinity in row 3, column 'b'\. Leave cells"),
        ("day;a;b;c;\n1;1;2;3;\n2;1;2;3;9\n", r"name every column in row 1; got no name in column 5"),
        ("day,a,b,c\n1,2,3\n", r"as there are names, 4; got 3 in row 2\. Cells are separated by ','"),
        ("day,a,b,c\n1,2,3,4\n1,2,3,4,5\n", r"as there are names, 4; got 5 in row 3"),
        ("day,a,b,a\n1,2,3,4\n", r"distinct column names; got 'a' more than once \('a' in columns 2, 4\)"),
        ("day,a,,c\n1,2,3,4\n", r"name every column in row 1; got no name in column 3"),
        ("day,a,b,c\n", r"rows below the names"),
        ("", r"got an empty file"),
        (b"day,a,b,c\n1,2,\xe9,4\n", r"text in UTF-8; got the byte e9 in row 2"),
        ('day,a,b,c\n1,"2,3,4\n', r"got unexpected end of data in row 2"),
        ("day,a,b,c\n,2,3,4\n", r"label every row; got an empty cell in row 2, column 'day'"),
    ],
)
def test_what_is_wrong_with_a_table_is_named_with_its_place(file, content, message):
    path = file(content)
    with pytest.raises(ValueError, match=message) as caught:
        signals_from_file(path, PATH)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


# -------------------------------------------------------------------------------------------------------- signals


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (["2024-01-31", "2024-02-01"], pd.DatetimeIndex(["2024-01-31", "2024-02-01"])),
        (["2024-01-31T12:30", "2024-02-01T00:00"], pd.DatetimeIndex(["2024-01-31T12:30", "2024-02-01"])),
        (["1990", "1991"], pd.Index([1990, 1991])),
        (["0.5", "1"], pd.Index([0.5, 1.0])),
        (["31/01/2024", "01/02/2024"], pd.Index(["31/01/2024", "01/02/2024"], dtype=object)),
        (["007", "008"], pd.Index(["007", "008"], dtype=object)),
    ],
)
def test_the_index_is_numbers_or_dates_or_labels(file, days, expected):
    signals = signals_from_file(file(f"day,a,b,c\n{days[0]},1,2,3\n{days[1]},4,5,6\n"), PATH)
    pd.testing.assert_index_equal(signals.index, expected.rename("day"), exact="equiv")


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (["20200131", "20200201"], ["2020-01-31", "2020-02-01"]),
        (["2020013118", "2020020100"], ["2020-01-31T18:00", "2020-02-01"]),
    ],
)
def test_dates_without_marks_are_dates_with_a_note(file, tmp_path, days, expected):
    """Weather archives write them; as numbers a month would be 70 steps long."""
    dates = pd.DatetimeIndex(expected, name="day")
    with pytest.warns(UserWarning, match=rf"column 'day' of .*table.csv is read as dates: {days[0]} as 2020-01-31"):
        signals = signals_from_file(file(f"day,a,b,c\n{days[0]},1,2,3\n{days[1]},4,5,6\n"), PATH)
    pd.testing.assert_index_equal(signals.index, dates, exact="equiv")
    signals.set_axis(pd.Index(map(int, days), name="day")).to_parquet(tmp_path / "table.parquet")
    with pytest.warns(UserWarning, match=r"column 'day' of .*table.parquet is read as dates"):
        signals = signals_from_file(tmp_path / "table.parquet", PATH)
    pd.testing.assert_index_equal(signals.index, dates, exact="equiv")


@pytest.mark.parametrize("days", [["20200131", "20200132"], ["10000101", "10000102"], ["20200131.0", "20200201.0"]])
def test_other_numbers_of_eight_digits_are_numbers(file, days):
    signals = signals_from_file(file(f"day,a,b,c\n{days[0]},1,2,3\n{days[1]},4,5,6\n"), PATH)
    assert signals.index.tolist() == [float(day) for day in days]


def test_times_of_several_offsets_are_converted_to_utc_with_a_note(file):
    path = file("time,a,b,c\n2020-03-29T01:00+01:00,1,2,3\n2020-03-29T03:00+02:00,4,5,6\n")
    with pytest.warns(UserWarning, match=r"column 'time' of .*table.csv has several UTC offsets; .*converted to UTC"):
        signals = signals_from_file(path, PATH)
    assert np.diff(times_of(signals.index)) == pytest.approx(1 / 24)
    mixed = file("time,a,b,c\n2020-03-29T01:00,1,2,3\n2020-03-29T03:00+02:00,4,5,6\n")
    with pytest.raises(ValueError, match="got labels such as '2020-03-29T01:00'"):  # of an unknown clock
        time_inputs(signals_from_file(mixed, PATH).index)


def test_a_date_format_is_that_of_every_row(file):
    path = file("day,a,b,c\n31.01.2024,1,2,3\n01.02.2024,4,5,6\n")
    signals = signals_from_file(path, PATH, date_format="%d.%m.%Y")
    assert signals.index.tolist() == [pd.Timestamp("2024-01-31"), pd.Timestamp("2024-02-01")]
    with pytest.raises(ValueError, match=r"hold dates there; got '31.01.2024' in row 2, column 'day'"):
        signals_from_file(path, PATH, date_format="%Y-%m-%d")


def test_a_table_may_have_no_index(file):
    signals = signals_from_file(file("c,a,b\n3,1,2\n6,4,5\n"), PATH)
    assert values_of(signals) == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert signals.index.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "day,a,b",
            r"the 3 nodes of the graph, by name; got no column for 'c' \(the first column, 'day', is the index",
        ),
        ("day,a,b,c,d", r"got columns that are no node: 'd'"),
        ("day,a,b,C", r"got no column for 'c' and columns that are no node: 'C'"),
    ],
)
def test_missing_and_extra_nodes_are_named(file, header, message):
    path = file(f"{header}\n{','.join('1' for _ in header.split(','))}\n")
    with pytest.raises(ValueError, match=message):
        signals_from_file(path, PATH)
    signals = signals_from_file(path, PATH, nodes="graph")
    np.testing.assert_array_equal(signals, [[1.0, 1.0, 1.0 if "c" in header.split(",") else np.nan]])


def test_a_file_of_other_nodes_is_an_error_whoever_decides(file):
    with pytest.raises(ValueError, match=r"no column for 'a', 'b', 'c' and columns that are no node: 'y'"):
        signals_from_file(file("x,y\n1,2\n"), PATH, nodes="graph")


@pytest.mark.parametrize("nameless", [False, True])
def test_long_tables_come_in_any_order(file, nameless):
    content = "node,value,day\nb,2,2024-02-01\na,1,2024-02-01\nc,6,2024-01-31\nb,,2024-01-31\n"
    if nameless:  # an index that pandas writes beside
        content = "".join(f"{row or ''},{line}\n" for row, line in enumerate(content.split()))
    signals = signals_from_file(file(content), PATH)
    np.testing.assert_array_equal(signals, [[np.nan, np.nan, 6.0], [1.0, 2.0, np.nan]])
    assert signals.index.tolist() == [pd.Timestamp("2024-01-31"), pd.Timestamp("2024-02-01")]
    assert signals.index.name == "day"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "day,node,value\n1,a,1\n1,b,2\n1,a,3\n1,c,1\n1,b,4\n",  # of two copies the first is named
            r"one value for each signal and node; got another one than in row 2 in row 4, column 'node'",
        ),
        ("day,node,value\n1,a,1\n1,b,2\n1,d,3\n1,c,1\n", r"got nodes that are no node: 'd'"),
        ("day,node,value\n1,a,1\n1,b,2\n1,,3\n1,c,1\n", r"name a node in every row; got an empty cell in row 4"),
        ("day,hour,node,value\n1,2,a,1\n", r"must have the columns node, value and one more"),
    ],
)
def test_long_tables_that_are_wrong(file, content, message):
    with pytest.raises(ValueError, match=message):
        signals_from_file(file(content), PATH, layout="long")


def test_columns_are_in_the_order_of_nodes_without_names(file):
    graph = Graph.from_edges([(0, 1), (1, 2)])

    def values_of(frame):  # as they come
        return frame.to_numpy().tolist()

    assert values_of(signals_from_file(file("x,y,z\n1,2,3\n"), graph)) == [[1.0, 2.0, 3.0]]
    assert values_of(signals_from_file(file("day,x,y,z\n9,1,2,3\n"), graph)) == [[1.0, 2.0, 3.0]]
    assert values_of(signals_from_file(file("2,0,1\n3,1,2\n"), graph)) == [[1.0, 2.0, 3.0]]
    assert values_of(signals_from_file(file("day,node,value\n9,3,3\n9,1,1\n9,2,2\n"), graph)) == [[1.0, 2.0, 3.0]]
    with pytest.raises(ValueError, match=r"must have 3 columns, one for each node of a graph without names; got 2"):
        signals_from_file(file("x,y\n1,2\n"), graph)
    with pytest.raises(ValueError, match=r"must name nodes by their numbers"):
        signals_from_file(file("day,node,value\n9,x,3\n9,y,1\n9,z,2\n"), graph)


@pytest.mark.parametrize("index", [True, False])
def test_parquet_holds_what_csv_does(tmp_path, index):
    frame = pd.DataFrame(
        {"c": [3, 6], "a": [1.0, np.nan], "b": pd.array([2, None], dtype="Int64")},
        index=pd.DatetimeIndex(["2024-01-31", "2024-02-01"], name="day"),
    )
    path = tmp_path / "signals.parquet"
    (frame if index else frame.reset_index()).to_parquet(path)
    signals = signals_from_file(path, PATH)
    np.testing.assert_array_equal(signals[["a", "b", "c"]], [[1.0, 2.0, 3.0], [np.nan, np.nan, 6.0]])
    assert signals.index.tolist() == frame.index.tolist()
    frame.assign(b=["x", "2"]).to_parquet(path)
    with pytest.raises(ValueError, match=r"got 'x' in row 1, column 'b'"):
        signals_from_file(path, PATH)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=r"must be a Parquet file"):
        signals_from_file(path, PATH)


# --------------------------------------------------------------------------------------------------------- graphs


def test_edges_with_and_without_weights(file):
    graph = graph_from_file(file("weight,Target,Source\n0.5,b,a\n2,c,b\n0.5,a,b\n,,alone\n", "edges.csv"))
    assert graph.names == ("a", "b", "c", "alone")
    weights = pd.DataFrame(graph.weights.toarray(), index=graph.names, columns=graph.names)
    assert (weights.loc["a", "b"], weights.loc["b", "c"], weights.loc["a", "c"]) == (0.5, 2.0, 0.0)
    assert weights.loc["alone"].sum() == 0
    plain = graph_from_file(file("source;target\n1;2\n2;3\n", "edges.csv"))
    assert plain.names == ("1", "2", "3")
    np.testing.assert_array_equal(plain.weights.toarray(), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("from,to\na,b\n", r"must have the columns source, target and optionally weight"),
        ("Source,SOURCE,target\na,b,c\n", r"must have the columns source, .*; got 'Source', 'SOURCE', 'target'"),
        ("source,to\na,b\n", r"must have the columns source, target and .*; got 'source', 'to'"),
        ("source,target\na,b\nc,c\n", r"an edge from 'c' to itself in row 3, column 'target'"),
        ("source,target\na,b\n,c\n", r"an empty cell in row 3, column 'source'"),
        ("source,target,weight\na,b,-1\n", r"weights from 0 on; got -1 in row 2, column 'weight'"),
        ("source,target,weight\na,b,x\n", r"got 'x' in row 2, column 'weight'"),
        ("source,target,weight\na,b,\n", r"weights from 0 on; got an empty cell in row 2, column 'weight'"),
        ("source,target,weight\na,b,1\nb,a,2\n", r"got 2 between 'b' and 'a' \(1 in row 2\) in row 3, column 'weight'"),
    ],
)
def test_edges_that_are_wrong(file, content, message):
    with pytest.raises(ValueError, match=message):
        graph_from_file(file(content))


def test_every_kind_of_file_holds_the_same_graph(tmp_path):
    expected = load_us_income().graph
    rows, columns = expected.weights.nonzero()
    names = list(expected.names)
    edges = pd.DataFrame({"source": [names[row] for row in rows], "target": [names[column] for column in columns]})
    edges.to_csv(tmp_path / "edges.csv", index=False)
    edges.to_parquet(tmp_path / "edges.parquet")
    networkx.write_graphml(networkx.from_pandas_edgelist(edges), tmp_path / "graph.graphml")
    for path in ("edges.csv", "edges.parquet", "graph.graphml"):
        graph = graph_from_file(tmp_path / path)
        assert (graph.subgraph(names).weights != expected.weights).nnz == 0, path
    mmwrite(tmp_path / "graph.mtx", expected.weights)
    save_npz(tmp_path / "sparse.npz", csr_array(expected.weights))
    arrays = {"names": np.array(names), "coordinates": expected.coordinates}
    np.savez(tmp_path / "arrays.npz", adjacency=expected.weights.toarray(), **arrays)
    for path in ("graph.mtx", "sparse.npz", "arrays.npz"):
        graph = graph_from_file(tmp_path / path)
        assert (graph.weights != expected.weights).nnz == 0, path
    assert graph.names == expected.names
    np.testing.assert_array_equal(graph.coordinates, expected.coordinates)


GEOMETRY = r"geometry in every feature, .*; got "
MAPS = [
    ("{}", r"GeoJSON FeatureCollection"),
    ("[1, 2]", r"GeoJSON FeatureCollection, an object with a list of features; got a list\. Export"),
    ('{"type": "Feature"}', r"list of features; got an object with 'type'\. Export"),
    ('{"features": 3}', r"list of features; got an object with 'features'\. Export"),
    ('{"features": [1]}', GEOMETRY + "1 in feature 1"),
    (POINT + '{"geometry": null}]}', GEOMETRY + "None in feature 2"),
    (POINT + '{"geometry": {"type": "Point", "coordinates": [1, %s]}}]}' % (400 * "9"), r"got .* in feature 2"),
    (POINT + '{"geometry": {"type": "Polygon"}}]}', GEOMETRY + ".* in feature 2"),
    (POINT + '{"geometry": {"type": "Point", "coordinates": [1]}}]}', r"got .* in feature 2"),
    (
        POINT + '{"geometry": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 0]], []]}}]}',
        GEOMETRY + ".* in feature 2",
    ),
    (
        POINT + '{"geometry": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 0]]]}}]}',
        r"points, or polygons, and nothing else; got Point, Polygon\.",
    ),
    ('{"features": []}', r"points, or polygons, and nothing else; got no features"),
]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("graph.graphml", "<graphml", r"undirected graph in GraphML"),
        ("graph.mtx", "nonsense", r"Matrix Market"),
        ("graph.npz", "nonsense", r"npz format"),
        (
            "graph.mtx",
            f"{MATRIX}2000000000 2000000000 1\n1 2 1.0\n",
            r"got a header of 2,000,000,000 rows and 1 entries, more than 78 bytes can hold",
        ),
        ("graph.mtx", f"{MATRIX}3 3 2000000000\n1 2 1.0\n", r"3 rows and 2,000,000,000 entries, more than"),
        ("graph.mtx", f"{MATRIX}3 1000001 1\n1 2 1.0\n", r"a header of 3 rows and 1 entries, more than"),
        ("graph.mtx", f"{MATRIX}1000001 3 1\n1 2 1.0\n", r"a header of 1,000,001 rows and 1 entries, more than"),
        ("graph.mtx", f"{MATRIX}1000000 3 1\n1 2 1.0\n", r"weights must .*; got \(1000000"),
        ("edges.parquet.gz", "", r"must have one of the suffixes .*; got '.parquet.gz'"),
        *(("graph.geojson", content, message) for content, message in MAPS),
        ("graph.xlsx", "", r"must have one of the suffixes .csv, .*; got '.xlsx'"),
    ],
)
def test_files_that_hold_no_graph(file, name, content, message):
    path = file(content, name)
    with pytest.raises(ValueError, match=message) as caught:
        graph_from_file(path)
    assert str(path) in str(caught.value)


def test_a_pickle_in_an_npz_file_is_not_run(tmp_path):
    np.savez(tmp_path / "evil.npz", weights=np.array([print], dtype=object))
    with pytest.raises(ValueError, match=r"npz format; got .*allow_pickle"):
        graph_from_file(tmp_path / "evil.npz")


@pytest.mark.parametrize(("longitude", "latitude"), [("longitude", "latitude"), ("Lon", "LAT"), ("lng", "lat")])
def test_longitudes_and_latitudes_are_on_the_sphere(tmp_path, longitude, latitude):
    data = load_us_income()
    places = pd.DataFrame(data.graph.coordinates, columns=[longitude, latitude], index=data.graph.names)
    places[[latitude, longitude]].to_csv(tmp_path / "states.csv", index_label="state")
    graph = graph_from_points(tmp_path / "states.csv", n_neighbors=5)
    expected = Graph.from_points(data.graph.coordinates, 5, metric="haversine")
    np.testing.assert_array_equal(graph.weights.toarray(), expected.weights.toarray())
    assert graph.names == data.graph.names
    near = graph_from_points(tmp_path / "states.csv", radius=500)
    expected = Graph.from_points(data.graph.coordinates, radius=500, metric="haversine")
    np.testing.assert_array_equal(near.weights.toarray(), expected.weights.toarray())


def test_a_packed_matrix_may_be_longer_than_its_file(tmp_path, file):
    header = "%%MatrixMarket matrix array real general\n"
    (tmp_path / "zeros.mtx.gz").write_bytes(gzip.compress((header + "40 40\n" + "0\n" * 1600).encode()))
    assert graph_from_file(tmp_path / "zeros.mtx.gz").n_nodes == 40
    for content in (f"{header}40 40\n0\n", f"{header}900 900\n0\n"):
        with pytest.raises(ValueError, match=r"00? rows and (1,600|810,000) entries, more than \d+ bytes"):
            graph_from_file(file(content, "zeros.mtx"))


def test_points_are_joined_to_eight_neighbours_unless_something_is_said(file):
    points = np.random.default_rng(0).random((30, 2)).round(6)
    rows = "".join(f"{x},{y}\n" for x, y in points)
    for options in ({}, {"radius": 0.2}, {"n_neighbors": 3}):
        graph = graph_from_points(file("x,y\n" + rows), **options)
        expected = Graph.from_points(points, **(options or {"n_neighbors": 8}))
        assert (graph.weights != expected.weights).nnz == 0


def test_coordinates_join_a_graph_by_position_where_one_of_both_has_no_names(file):
    for graph, content in ((PATH, "x,y\n1,2\n3,4\n5,6\n"), (Graph(PATH.weights), "name,x,y\nq,1,2\np,3,4\nr,5,6\n")):
        placed = with_points(graph, file(content))
        assert placed.names == graph.names
        np.testing.assert_array_equal(placed.coordinates, [[1, 2], [3, 4], [5, 6]])
        with pytest.raises(ValueError, match=r"one row for each of the 3 nodes; got 2\."):
            with_points(graph, file("\n".join(content.splitlines()[:-1])))


def test_a_longitude_without_a_latitude_is_no_place(file):
    graph = graph_from_points(file("lon,x,y,z\n10,0,0,0\n20,3,4,0\n30,3,4,12\n"), n_neighbors=1, weights="inverse")
    np.testing.assert_allclose(graph.weights.toarray()[1], [0.2, 0, 1 / 12])
    assert graph.names == ("10", "20", "30")  # the first column, which is no coordinate


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name,a,b\nx,1,2\n", r"columns longitude and latitude, or x and y; got 'name', 'a', 'b'"),
        ("name,x,y\np,1,2\np,3,4\n", r"name every node once; got 'p' again \(it is in row 2 too\) in row 3"),
        ("name,lon,lat\np,1,95\nq,1,2\n", r"latitudes from -90 to 90"),
        ("name,x,y\np,1,\nq,1,2\n", r"finite numbers there; got an empty cell in row 2, column 'y'"),
        ("name,x,y\np,1,2\nq,1,2\n", r"n_neighbors"),
    ],
)
def test_points_that_are_wrong(file, content, message):
    path = file(content)
    with pytest.raises(ValueError, match=message) as caught:
        graph_from_points(path)
    assert str(caught.value).startswith(str(path))


def test_coordinates_join_a_graph_whose_names_are_numbers(file):
    graph = with_points(Graph(PATH.weights, names=[1, 2, 3]), file("name,x,y\n2,3,4\n3,5,6\n1,1,2\n"))
    assert graph.names == (1, 2, 3)
    np.testing.assert_array_equal(graph.coordinates, [[1, 2], [3, 4], [5, 6]])


def test_packed_tables_are_read(tmp_path):
    """As pandas writes them, whose `to_csv` packs by the suffix."""
    pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]}).to_csv(tmp_path / "edges.csv.gz", index=False)
    assert (graph_from_file(tmp_path / "edges.csv.gz").weights != PATH.weights).nnz == 0
    (tmp_path / "signals.csv.gz").write_bytes(b"a,b,c\n1,2,3\n")
    with pytest.raises(ValueError, match=r"signals.csv.gz must be packed by gzip; got .*Rename"):
        read_table(tmp_path / "signals.csv.gz")
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.parquet")


def test_parquet_columns_that_hold_no_numbers_are_named(tmp_path):
    path = tmp_path / "signals.parquet"
    pd.DataFrame({"a": [[1.0], [2.0]], "b": [1.0, 2.0], "c": [1.0, 2.0]}).to_parquet(path)
    with pytest.raises(ValueError, match=r"signals.parquet must hold numbers there.* got \[1.0\] in row 1, column 'a'"):
        signals_from_file(path, PATH)
    pd.DataFrame({"a": [1.0, 2.0], "b": [True, False], "c": [1.0, 2.0]}).to_parquet(path)
    with pytest.raises(ValueError, match=r"must hold numbers there.* got True in row 1, column 'b'"):
        signals_from_file(path, PATH)
    twice = pyarrow.table([pyarrow.array([1.0]), pyarrow.array([2.0])], names=["a", "a"])
    pyarrow.parquet.write_table(twice, path)
    with pytest.raises(ValueError, match=r"distinct column names; got 'a' more than once \('a' in columns 1, 2\)"):
        read_table(path)


def test_coordinates_join_a_graph_by_name(file):
    points = file("name,x,y\nc,5,6\nb,3,4\na,1,2\nelsewhere,7,8\n")
    graph = with_points(PATH, points)
    assert graph.names == ("a", "b", "c")
    np.testing.assert_array_equal(graph.coordinates, [[1, 2], [3, 4], [5, 6]])
    with pytest.raises(ValueError, match=r"a row for every node of the graph; got none for 'b', 'c'"):
        with_points(PATH, file("name,x,y\na,1,2\n"))


def feature(name, kind, coordinates):
    return {"type": "Feature", "properties": {"NAME": name}, "geometry": {"type": kind, "coordinates": coordinates}}


def test_points_of_geojson_are_joined_on_the_sphere(file):
    rng = np.random.default_rng(0)
    places = rng.uniform([-10, 40], [10, 60], (12, 2))
    features = [feature(f"p{number}", "Point", place.tolist()) for number, place in enumerate(places)]
    path = file(json.dumps({"type": "FeatureCollection", "features": features}), "points.geojson")
    expected = Graph.from_points(places, 3, metric="haversine")
    graph = graph_from_file(path, n_neighbors=3)
    np.testing.assert_array_equal(graph.weights.toarray(), expected.weights.toarray())
    assert graph.names == tuple(f"p{number}" for number in range(12))
    path = file(json.dumps({"features": [*features, features[0]]}), "points.geojson")
    with pytest.raises(ValueError, match=r"name every feature once, .*; got 'p0' again in feature 13"):
        graph_from_file(path)


def test_polygons_of_geojson_are_joined_where_they_share_a_border(file):
    def square(x, y):
        return [[[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]]]

    features = [
        feature("west", "Polygon", square(0, 0)),
        feature("east", "Polygon", square(1, 0)),
        feature("corner", "Polygon", square(2, 1)),  # touches the east in one point
        feature("islands", "MultiPolygon", [square(0, 1), square(9, 9)]),
    ]
    graph = graph_from_file(file(json.dumps({"features": features}), "squares.geojson"))
    assert graph.names == ("west", "east", "corner", "islands")
    np.testing.assert_array_equal(graph.weights.toarray(), [[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]])
    np.testing.assert_allclose(graph.coordinates[:3], [[0.5, 0.5], [1.5, 0.5], [2.5, 1.5]])


# --------------------------------------------------------------------------------------------------------- inputs


def test_inputs_are_matched_by_the_index(file):
    index = pd.DatetimeIndex(["2024-01-02", "2024-01-01"], name="day")
    inputs = inputs_from_file(file("day,wind\n2024-01-01,1\n2024-01-02,2\n2024-01-03,3\n"), index)
    assert inputs["wind"].tolist() == [2.0, 1.0]
    with pytest.raises(ValueError, match=r"a row for every signal, matched by its first column, 'day'; got none for"):
        inputs_from_file(file("day,wind\n2024-01-01,1\n"), index)
    with pytest.raises(ValueError, match=r"one row for each label; got 2024-01-01 .* again in row 3, column 'day'"):
        inputs_from_file(file("day,wind\n2024-01-01,1\n2024-01-01,1\n2024-01-02,1\n"), index)
    with pytest.raises(ValueError, match=r"got an empty cell in row 3, column 'wind'\. Fill it in"):
        inputs_from_file(file("day,wind\n2024-01-01,1\n2024-01-02,\n"), index)
    with pytest.raises(ValueError, match=r"columns of numbers beside the index, its first column; got 'wind' alone"):
        inputs_from_file(file("wind\n1\n2\n"), index)


@pytest.mark.parametrize(
    "index", [pd.RangeIndex(2, name="n"), pd.Index([0.0, 1.0]), pd.Index([1, 0]), pd.RangeIndex(1, -1, -1)]
)
def test_what_counts_rows_under_a_name_or_in_another_way_is_an_index(file, index):
    inputs = inputs_from_file(file("n,wind\n1,10\n0,20\n2,30\n"), index)
    assert inputs["wind"].tolist() == [20.0 - 10.0 * label for label in index]


def test_inputs_without_an_index_are_paired_by_position(file):
    index = pd.RangeIndex(2)
    assert inputs_from_file(file("wind,sun\n1,2\n3,4\n"), index).to_numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(ValueError, match=r"a row for each of the 2 signals .*; got 1\."):
        inputs_from_file(file("wind,sun\n1,2\n"), index)


def test_columns_of_a_model_are_chosen_by_name(file):
    inputs = inputs_from_file(file("day,sun,wind,rain\n5,1,2,3\n"), features=["wind", "sun"])
    assert (inputs.columns.tolist(), inputs.to_numpy().tolist(), inputs.index.tolist()) == (
        ["wind", "sun"],
        [[2.0, 1.0]],
        [5],
    )
    last = inputs_from_file(file("day,rain,sun,wind\n5,3,1,2\n"), features=["wind", "sun"])
    assert (last.to_numpy().tolist(), last.index.tolist()) == ([[2.0, 1.0]], [5])
    bare = inputs_from_file(file("sun,wind,rain\n1,2,3\n"), features=["wind", "sun"])
    assert (bare.to_numpy().tolist(), bare.index.tolist()) == ([[2.0, 1.0]], [0])
    with pytest.raises(ValueError, match=r"columns that the model was fitted to; got none named 'wind'"):
        inputs_from_file(file("day,sun\n5,1\n"), features=["wind", "sun"])


def test_time_is_a_number():
    assert times_of(pd.Index([1990, 1991])).tolist() == [1990.0, 1991.0]
    dates = pd.DatetimeIndex(["2000-01-01", "2000-01-02T06:00"])
    assert times_of(dates).tolist() == [10957.0, 10958.25]
    assert times_of(dates.tz_localize("Europe/Oslo")).tolist() == [10957 - 1 / 24, 10958.25 - 1 / 24]
    assert time_inputs(dates)["time"].tolist() == [10957.0, 10958.25]
    with pytest.raises(ValueError, match=r"time must be numbers or dates as 2024-01-31, .*; got labels such as 'x'"):
        times_of(pd.Index(["x"], dtype=object))


@pytest.mark.parametrize(
    ("index", "following"),
    [
        ([2001, 2002, 2003], 2004),
        (pd.DatetimeIndex(["2024-01-31", "2024-02-29", "2024-03-31"]), pd.Timestamp("2024-04-30")),
        pytest.param(
            pd.DatetimeIndex(["2024-01-01", "2024-01-02", "2024-01-09"]),
            "after 2024-01-09",
            marks=pytest.mark.filterwarnings("ignore:lag.1 counts rows"),
        ),
        (["x", "y", "z"], "after z"),
    ],
)
def test_the_row_before_is_the_input(index, following):
    signals = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=index)
    inputs, targets = lagged(signals)
    assert (values_of(inputs), values_of(targets)) == ([[1.0], [2.0]], [[2.0], [3.0]])
    assert inputs.index.tolist() == targets.index.tolist() == signals.index[1:].tolist()
    inputs, targets = lagged(signals, ahead=True)
    assert values_of(inputs) == [[1.0], [2.0], [3.0]]
    assert targets.index.tolist() == [*signals.index[1:], following]


def test_labels_go_on_from_two_rows_and_one_has_no_step():
    assert following(pd.Index([3, 5]), 2) == [7, 9]
    assert following(pd.Index([3]), 2) == ["after 3", "2 after 3"]
    assert following(pd.Index([0.1, 0.2, 0.1 + 0.2]), 3) == pytest.approx([0.4, 0.5, 0.6])
    days = pd.DatetimeIndex(["2024-01-01", "2024-01-03", "2024-01-05"])
    assert following(days, 2) == [pd.Timestamp("2024-01-07"), pd.Timestamp("2024-01-09")]
    assert following(days[:2], 1) == ["after 2024-01-03"]  # of two dates no one knows the frequency


def test_times_must_be_what_the_model_was_fitted_to():
    for index, clock, other in (
        (pd.Index([1990.5, 2000.0]), "numbers", "dates"),
        (pd.DatetimeIndex(["2000-01-01"]), "dates", "numbers"),
    ):
        assert len(time_inputs(index, clock)) == len(time_inputs(index)) == len(index)
        with pytest.raises(ValueError, match=rf"time must be {other}, as the model was fitted to; got {clock} such as"):
            time_inputs(index, other)


@pytest.mark.parametrize(
    ("cell", "label"),
    [(None, ""), (np.nan, ""), (3.0, "3"), (2.5, "2.5"), (np.float32(4), "4"), (7, "7"), (" x ", "x"), (True, "True")],
)
def test_cells_are_names_without_what_numbers_are_written_with(cell, label):
    assert as_label(cell) == label


def test_the_separator_is_judged_by_fifty_rows(file):
    """By commas the names are more, and as many as cells in all rows but one."""
    for row, separator in ((50, ";"), (51, ",")):
        lines = ["x,y,z;w"] + ["1,2,3;4"] * 60
        lines[row - 1] = "1,2;4"
        path = file("\n".join(lines))
        if separator == ";":
            assert dialect_of(path)["sep"] == separator
            continue
        with pytest.raises(ValueError, match=r"got 2 in row 51\. Cells are separated by ','"):
            dialect_of(path)


def test_rows_before_must_be_complete():
    signals = pd.DataFrame({"a": [1.0, 2.0, np.nan]}, index=[2001, 2002, 2003])
    assert len(lagged(signals)[0]) == 2  # the last row is no input
    with pytest.raises(ValueError, match=r"an empty cell in the row of 2003, column 'a'"):
        lagged(signals, ahead=True)
    with pytest.raises(ValueError, match=r"at least 2 rows"):
        lagged(signals.iloc[:1])


# -------------------------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_is_written_is_read_again(tmp_path, suffix):
    rng = np.random.default_rng(0)
    index = pd.DatetimeIndex(["2024-01-31", "2024-02-01"], name="day")
    frame = pd.DataFrame(rng.standard_normal((2, 3)), index=index, columns=["a", "b", "c"])
    frame.iloc[0, 1] = np.nan
    path = tmp_path / f"signals.{suffix}"
    write_tables({path: frame})
    pd.testing.assert_frame_equal(signals_from_file(path, PATH), frame, check_freq=False)


@pytest.mark.parametrize(
    ("content", "dialect"),
    [
        ("day,a\n2024-01-31,0.5\n", {}),
        ("day;a;b\n1;2;0,5\n", {"sep": ";", "decimal": ","}),
        ('\nday;a;b\r\n\r\n1;2;"0,5"\r\n', {"sep": ";", "decimal": ","}),
        ("day;a\n1;0.5\n", {"sep": ";"}),
        ("day\ta\n20240131\t3\n", {"sep": "\t", "date_format": "%Y%m%d"}),
        ("node|day|value\na|2024013118|0,5\n", {"sep": "|", "decimal": ",", "date_format": "%Y%m%d%H"}),
        ("day,a\n2024-01-31T12:00,3\n", {"date_format": "%Y-%m-%dT%H:%M"}),
        ("day,a\n2024-01-31 12:00:30,3\n", {"date_format": "%Y-%m-%d %H:%M:%S"}),
        ("\ufeffday,ä\n1,3\n", {"encoding": "utf-8-sig"}),
    ],
)
def test_answers_are_written_as_the_file_was(file, tmp_path, content, dialect):
    path = file(content)
    dialect = {"sep": ",", "decimal": ".", "date_format": None, "encoding": "utf-8"} | dialect
    assert dialect_of(path) == dialect
    assert dialect_of(path, "%d.%m.%Y")["date_format"] == "%d.%m.%Y"
    frame = pd.DataFrame(
        {"a": [1.5, -2e-9], "b": [3.0, np.nan], "c": [0.0, 1.0]},
        index=pd.DatetimeIndex(["2024-01-31 12:00", "2024-02-01 13:00"], name="day"),
    )
    frame.index = frame.index if dialect["date_format"] != "%Y%m%d" else frame.index.normalize()
    write_tables({tmp_path / "answer.csv": frame}, **dialect)
    assert dialect_of(tmp_path / "answer.csv")["sep"] == dialect["sep"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is read as dates")
        again = signals_from_file(tmp_path / "answer.csv", PATH)
    pd.testing.assert_frame_equal(again, frame, check_freq=False)


def test_intervals_are_rounded_to_three_digits_of_the_deviation_and_what_was_observed_is_kept():
    labels = {"index": [2001, 2002], "columns": ["a", "b"]}
    mean = pd.DataFrame([[1.2345678, 1234.5678], [3.3333333333, 5.0]], **labels)
    std = pd.DataFrame([[0.0123456, 45.678], [0.0, 0.0]], **labels)
    tables = with_intervals(mean, std, 0.9)
    half = 1.6448536269514722  # of a standard Gaussian
    assert tables["mean"].to_numpy().tolist() == [[1.2346, 1234.6], [3.3333333333, 5.0]]
    assert tables["lower"].to_numpy().tolist() == [
        [round(1.2345678 - half * 0.0123456, 4), round(1234.5678 - half * 45.678, 1)],
        [3.3333333333, 5.0],
    ]
    assert tables["std"].to_numpy().tolist() == [[0.0123, 45.7], [0.0, 0.0]]
    wide, long = side_by_side(tables), as_long(tables)
    assert list(wide) == ["a", "a lower", "a upper", "b", "b lower", "b upper"]
    assert (wide["b upper"] == tables["upper"]["b"]).all()
    assert list(long) == ["signal", "node", "mean", "std", "lower", "upper"]
    row = long[(long["signal"] == 2001) & (long["node"] == "b")]
    assert row.iloc[0, 2:].tolist() == [tables[name].loc[2001, "b"] for name in ("mean", "std", "lower", "upper")]


@pytest.mark.parametrize(
    ("days", "message"),
    [
        (["2024-01-02", "2024-01-01"], r"got 2024-01-01 00:00:00 after 2024-01-02 00:00:00 \(row 2\) in row 4, column"),
        (["7", "7"], r"got 7 again \(row 2\) in row 4, column 'day'\. Sort them"),
    ],
)
def test_times_that_are_repeated_or_go_back_are_named_by_their_rows(file, days, message):
    path = file(f"day,a,b,c\n{days[0]},1,2,3\n\n{days[1]},4,5,6\n")
    assert len(signals_from_file(path, PATH)) == 2
    with pytest.raises(ValueError, match=message):
        signals_from_file(path, PATH, in_order=True)


def test_labels_and_long_tables_have_no_order_to_keep(file):
    labels = signals_from_file(file("who,a,b,c\ny,1,2,3\nx,4,5,6\n"), PATH, in_order=True)
    assert labels.index.tolist() == ["y", "x"]
    long = file("day,node,value\n2,a,1\n1,a,2\n2,b,1\n1,b,2\n1,c,1\n2,c,2\n")
    assert signals_from_file(long, PATH, in_order=True).index.tolist() == [1, 2]


def test_no_file_is_replaced_before_all_are_written(tmp_path):
    frame = pd.DataFrame({"a": [1.0]})
    (tmp_path / "first.csv").write_text("old")
    with pytest.raises(OSError, match="nowhere"):
        write_tables({tmp_path / "first.csv": frame, tmp_path / "nowhere" / "second.csv": frame})
    assert [path.name for path in tmp_path.iterdir()] == ["first.csv"]
    assert (tmp_path / "first.csv").read_text() == "old"
