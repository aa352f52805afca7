import dataclasses
import functools
import hashlib
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pygsp.graphs import NNGraph
from scipy.io import loadmat, savemat
from scipy.spatial.distance import cdist

import oracle
from spectralgp.datasets import load_cerebellum, load_traffic, load_uber, load_weather, released
from tolerances import EXACT, FORMULA

WEATHER_FILES = ("city45data.mat", "smhi_temp_17.mat")


@pytest.fixture(autouse=True)
def cache(monkeypatch) -> Iterator[Path]:
    """Each test has an empty cache, and no other folder but those that it names."""
    monkeypatch.delenv("SPECTRALGP_DATA", raising=False)
    folder = released.cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    shutil.rmtree(folder)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class HangingUp(Quiet):
    """Promises a whole file and sends half of it."""

    def copyfile(self, source, outputfile):
        content = source.read()
        outputfile.write(content[: len(content) // 2])
        outputfile.flush()
        self.close_connection = True


@pytest.fixture
def serve(monkeypatch):
    """Function that serves a folder as if it were the authors' repository."""
    servers = []

    def start(folder: Path, handler: type[Quiet] = Quiet) -> None:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        monkeypatch.setattr(released, "BASE_URL", f"http://127.0.0.1:{server.server_port}/")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def dense_neighbour_graph(places: np.ndarray, n_neighbours: int) -> np.ndarray:
    """The graph that PyGSP 0.5.1 builds, by its words: one row at a time."""
    n_nodes = len(places)
    points = places - places.mean(axis=0)
    half_diagonal = 0.5 * np.linalg.norm(points.max(axis=0) - points.min(axis=0))
    distances = cdist(points, points) * (n_nodes**0.5 / 10) / half_diagonal
    weights = np.zeros((n_nodes, n_nodes))
    for node in range(n_nodes):
        nearest = np.argsort(distances[node], kind="stable")[1 : n_neighbours + 1]
        weights[node, nearest] = np.exp(-(distances[node, nearest] ** 2) / 0.1)
    return (weights + weights.T) / 2


def test_weather_is_the_released_data_on_the_paper_s_graph(data_folder):
    data = load_weather(data_folder)
    expected = dense_neighbour_graph(loadmat(data_folder / "city45data.mat")["coord45"], 10)
    np.testing.assert_allclose(data.graph.weights.toarray(), expected, rtol=EXACT, atol=0)
    np.testing.assert_array_equal(data.temperatures, loadmat(data_folder / "smhi_temp_17.mat")["temp_17"])
    longitude, latitude = data.graph.coordinates.T  # of Sweden
    assert 10 < longitude.min() < longitude.max() < 25
    assert 55 < latitude.min() < latitude.max() < 69


def test_traffic_is_the_released_data_with_its_output_graph(data_folder):
    data = load_traffic(data_folder)
    content = loadmat(data_folder / "traffic_delay_san_francisco.mat")
    np.testing.assert_array_equal(data.graph.weights.toarray(), content["Adj_Matrix"])
    np.testing.assert_array_equal(data.output_graph.weights.toarray(), content["Adj_Matrix"][15:, 15:])
    np.testing.assert_array_equal(data.output_graph.coordinates, content["Coords"][15:])
    np.testing.assert_array_equal(data.delays, content["average_delay"].T)
    assert data.n_inputs == 15


def great_circles(coordinates: np.ndarray) -> np.ndarray:
    """Kilometres between longitudes and latitudes, by the angle between vectors from the Earth's centre."""
    longitude, latitude = np.radians(coordinates.T)
    flat = np.cos(latitude)
    vectors = np.column_stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)])
    return 6371.0088 * 2 * np.arcsin(cdist(vectors, vectors) / 2)


def test_the_released_traffic_graph_falls_off_with_degrees(data_folder):
    """As its docstring has it, and not as the paper's text has it."""
    graph = load_traffic(data_folder).graph
    degrees = cdist(graph.coordinates, graph.coordinates)
    upper = np.triu_indices(75, 1)
    weights, degrees, kilometres = (
        matrix[upper] for matrix in (graph.weights.toarray(), degrees, great_circles(graph.coordinates))
    )
    coincident, joined = degrees == 0, weights > 0
    np.testing.assert_array_equal(joined, degrees < 0.044)
    np.testing.assert_allclose(weights[joined & ~coincident], np.exp(-degrees[joined & ~coincident]), rtol=EXACT)
    np.testing.assert_allclose(weights[coincident], np.exp([-0.01, -0.01]), rtol=EXACT)
    assert kilometres[joined].max() == pytest.approx(4.86, abs=0.005)


def test_the_traffic_graph_of_the_text_falls_off_with_kilometres(data_folder):
    data = load_traffic(data_folder)
    kilometres = great_circles(data.graph.coordinates)
    np.fill_diagonal(kilometres, np.inf)
    closest = kilometres[kilometres > 0].min()
    assert closest == pytest.approx(0.0097, abs=0.00005)
    expected = np.where(kilometres < 13, 1 / np.where(kilometres == 0, closest, kilometres), 0)
    np.testing.assert_allclose(data.text_graph.weights.toarray(), expected, rtol=FORMULA, atol=0)
    np.testing.assert_array_equal(data.text_graph.coordinates, data.graph.coordinates)


def accept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a stand-in for the released file of its name."""
    monkeypatch.setitem(released.CHECKSUMS, path.name, f"SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}")


UBER = {
    "lon": np.random.default_rng(1).uniform(-74.02, -73.75, (29, 1)),
    "lat": np.random.default_rng(2).uniform(40.60, 40.87, (29, 1)),
    "X1": np.random.default_rng(3).poisson(20.0, (29, 744)).astype(np.uint16),
}
"""In place of `uber_data.mat`, with its shapes."""


def test_uber_has_its_columns_in_rows_on_pygsp_s_graph(tmp_path, monkeypatch):
    savemat(tmp_path / "uber_data.mat", UBER)
    accept(tmp_path / "uber_data.mat", monkeypatch)
    data = load_uber(tmp_path)
    places = np.column_stack([UBER["lon"], UBER["lat"]])
    weights = data.graph.weights.toarray()
    np.testing.assert_allclose(weights, dense_neighbour_graph(places, 4), rtol=EXACT, atol=0)
    # since 0.6 the bandwidth is another by default
    assert oracle.relative_error(weights, NNGraph(places, k=4, sigma=0.1).W.toarray()) < EXACT
    np.testing.assert_array_equal(data.graph.coordinates, places)
    np.testing.assert_array_equal(data.signals, UBER["X1"].T)
    with pytest.raises(ValueError, match="read-only"):
        data.signals[0, 0] = 0


def test_the_released_uber_is_known_by_its_sum(data_folder, tmp_path):
    file = data_folder / "journal" / "uber_data.mat"
    if not file.is_file():
        pytest.skip(f"{file} is not here")
    data = load_uber(data_folder)  # in its subfolder
    np.testing.assert_array_equal(data.signals, loadmat(file)["X1"].T)
    (tmp_path / file.name).write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"uber_data\.mat must be the released file with SHA-256 732f7f0d.*; got"):
        load_uber(tmp_path)


@pytest.fixture
def brain(data_folder, tmp_path, monkeypatch) -> Path:
    """A folder with the graph of the cerebellum and random signals, whose sum is nobody's business."""
    folder = tmp_path / "brain"
    folder.mkdir()
    copy(data_folder, folder, "A_cerebellum.mat")
    savemat(folder / "signal_set_cerebellum.mat", {"F2": np.random.default_rng(0).standard_normal((4465, 292))})
    accept(folder / "signal_set_cerebellum.mat", monkeypatch)
    return folder


def test_the_cerebellum_comes_without_signals_on_demand(data_folder, tmp_path):
    copy(data_folder, tmp_path, "A_cerebellum.mat")
    data = load_cerebellum(tmp_path, signals=False)
    assert (data.graph.weights != loadmat(tmp_path / "A_cerebellum.mat")["A"]).nnz == 0
    assert data.signals is None


def test_the_cerebellum_s_signals_are_read_in_rows(brain):
    columns = loadmat(brain / "signal_set_cerebellum.mat")["F2"]
    np.testing.assert_array_equal(load_cerebellum(brain).signals, columns.T)


def test_other_signals_than_the_released_ones_are_refused(brain, monkeypatch):
    monkeypatch.undo()  # the hash is that of the released file again
    with pytest.raises(ValueError, match=r"signal_set_cerebellum\.mat must be .* with git blob hash 0180"):
        load_cerebellum(brain)


def test_signals_that_cannot_be_had_are_an_error(data_folder, tmp_path, cache):
    copy(data_folder, tmp_path, "A_cerebellum.mat")
    with pytest.raises(FileNotFoundError, match=r"signal_set_cerebellum\.mat must be on this machine") as raised:
        load_cerebellum(tmp_path)
    assert f"{released.BASE_URL}signal_set_cerebellum.mat" in str(raised.value)
    assert str(cache) in str(raised.value)


@pytest.mark.parametrize(
    ("content", "blob"),
    [
        (b"", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),  # git's name of the empty file, in every repository
        (b"hello\n", "ce013625030ba8dba906f756967f9e9ca394464a"),  # echo hello | git hash-object --stdin
    ],
)
def test_a_git_blob_hash_is_git_s(tmp_path, cache, monkeypatch, content, blob):
    (tmp_path / "file").write_bytes(content)
    monkeypatch.setitem(released.CHECKSUMS, "file", f"git blob hash {blob}")
    assert released.find_file("file", tmp_path) == tmp_path / "file"
    monkeypatch.setitem(released.CHECKSUMS, "file", "git blob hash 00")
    with pytest.raises(ValueError, match=rf"with git blob hash 00; got {blob} \({len(content)} bytes\)"):
        released.find_file("file", tmp_path)


def test_data_cannot_be_changed_by_accident(data_folder):
    data = load_weather(data_folder)
    with pytest.raises(ValueError, match="read-only"):
        data.temperatures[0, 0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError, match="graph"):
        data.graph = None


def test_places_are_searched_in_order(data_folder, tmp_path, cache, monkeypatch):
    given, named = tmp_path / "given", tmp_path / "named"
    for folder in (given, named):
        folder.mkdir()
    file = "city45data.mat"
    copy(data_folder, cache, file)
    assert released.find_file(file) == cache / file
    monkeypatch.setenv("SPECTRALGP_DATA", str(named))
    assert released.find_file(file) == cache / file
    copy(data_folder, named, file)
    assert released.find_file(file) == named / file
    assert released.find_file(file, given) == named / file
    copy(data_folder, given, file)
    assert released.find_file(file, given) == given / file


def test_a_folder_that_does_not_exist_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(NotADirectoryError, match="folder must name an existing folder"):
        load_weather(tmp_path / "absent")
    monkeypatch.setenv("SPECTRALGP_DATA", str(tmp_path / "absent"))
    with pytest.raises(NotADirectoryError, match="SPECTRALGP_DATA must name an existing folder"):
        load_weather()


@pytest.mark.parametrize("damage", ["truncated", "one byte"])
def test_a_damaged_file_is_refused_even_if_a_good_one_is_elsewhere(data_folder, tmp_path, cache, damage):
    copy(data_folder, cache, *WEATHER_FILES)
    copy(data_folder, tmp_path, *WEATHER_FILES)
    content = bytearray((tmp_path / "smhi_temp_17.mat").read_bytes())
    if damage == "truncated":
        content = content[:-100]
    else:
        content[5000] ^= 1
    (tmp_path / "smhi_temp_17.mat").write_bytes(content)
    with pytest.raises(ValueError, match=r"smhi_temp_17\.mat must be the released file with SHA-256 d7d7"):
        load_weather(tmp_path)


def test_missing_files_are_downloaded_into_the_cache(data_folder, cache, serve):
    serve(data_folder)
    expected = load_weather(data_folder).temperatures
    np.testing.assert_array_equal(load_weather().temperatures, expected)
    assert sorted(path.name for path in cache.iterdir()) == sorted(WEATHER_FILES)


def test_a_damaged_download_is_refused_and_not_kept(data_folder, tmp_path, cache, serve):
    (tmp_path / "served").mkdir()
    copy(data_folder, tmp_path / "served", *WEATHER_FILES)
    (tmp_path / "served" / "city45data.mat").write_bytes(b"half of it")
    serve(tmp_path / "served")
    with pytest.raises(
        ValueError, match=r"the download of http\S+/city45data\.mat must be the released file with SHA-256 7c82"
    ):
        load_weather()
    assert list(cache.iterdir()) == []


def test_an_interrupted_download_leaves_nothing_and_may_be_tried_again(data_folder, cache, serve):
    serve(data_folder, HangingUp)
    with pytest.raises(FileNotFoundError, match=r"the download of http\S+/traffic_delay_san_francisco\.mat failed"):
        load_traffic()
    assert list(cache.iterdir()) == []
    serve(data_folder)
    np.testing.assert_array_equal(load_traffic().delays, load_traffic(data_folder).delays)


def test_a_file_that_the_server_does_not_have_is_named(tmp_path, cache, serve):
    serve(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"uber_data\.mat must be on this machine .* failed \(HTTPError\)"):
        load_uber()
    assert list(cache.iterdir()) == []


def copy(source: Path, target: Path, *names: str) -> None:
    for name in names:
        shutil.copyfile(source / name, target / name)
