from __future__ import annotations

import dataclasses
import functools
import http.server
import shutil
import threading
from pathlib import Path

import numpy as np
import pooch
import pytest
from scipy.io import loadmat, savemat
from scipy.spatial.distance import cdist

from spectralgp.datasets import _files, load_cerebellum, load_traffic, load_weather

WEATHER_FILES = ("city45data.mat", "smhi_temp_17.mat")


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No file is found, or fetched from the network, unless a test arranges it."""
    monkeypatch.delenv("SPECTRALGP_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.setattr(_files, "BASE_URL", "http://127.0.0.1:9/")


@pytest.fixture
def cache(tmp_path) -> Path:
    folder = tmp_path / "cache" / "spectralgp"
    folder.mkdir(parents=True)
    return folder


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def serve(monkeypatch):
    """Function that serves a folder as if it were the authors' repository."""
    servers = []

    def start(folder: Path) -> None:
        handler = functools.partial(Quiet, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        monkeypatch.setattr(_files, "BASE_URL", f"http://127.0.0.1:{server.server_port}/")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def dense_weather_graph(folder: Path) -> np.ndarray:
    """The graph of DESIGN.md, section 10, by its words: one row at a time."""
    places = loadmat(folder / "city45data.mat")["coord45"]
    points = places - places.mean(axis=0)
    half_diagonal = 0.5 * np.linalg.norm(points.max(axis=0) - points.min(axis=0))
    distances = cdist(points, points) * (45**0.5 / 10) / half_diagonal
    weights = np.zeros((45, 45))
    for city in range(45):
        nearest = np.argsort(distances[city], kind="stable")[1:11]
        weights[city, nearest] = np.exp(-(distances[city, nearest] ** 2) / 0.1)
    return (weights + weights.T) / 2


def test_weather_is_the_released_data_on_the_paper_s_graph(data_folder):
    data = load_weather(data_folder)
    np.testing.assert_allclose(data.graph.weights.toarray(), dense_weather_graph(data_folder), rtol=1e-12, atol=0)
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


def test_the_cerebellum_comes_without_signals_where_their_file_is_missing(data_folder, tmp_path):
    copy(data_folder, tmp_path, "A_cerebellum.mat")
    data = load_cerebellum(tmp_path)
    assert (data.graph.weights != loadmat(tmp_path / "A_cerebellum.mat")["A"]).nnz == 0
    assert data.signals is None


def test_the_cerebellum_s_signals_are_read_in_rows(data_folder, tmp_path):
    copy(data_folder, tmp_path, "A_cerebellum.mat")
    columns = np.random.default_rng(0).standard_normal((4465, 3))
    savemat(tmp_path / "signal_set_cerebellum.mat", {"F2": columns})
    np.testing.assert_array_equal(load_cerebellum(tmp_path).signals, columns.T)


@pytest.mark.parametrize(
    ("content", "message"),
    [({"F1": np.zeros((4465, 2))}, "must hold the variable F2"), ({"F2": np.zeros((2, 4465))}, "rows the voxels")],
)
def test_a_wrong_file_of_signals_is_refused(data_folder, tmp_path, content, message):
    copy(data_folder, tmp_path, "A_cerebellum.mat")
    savemat(tmp_path / "signal_set_cerebellum.mat", content)
    with pytest.raises(ValueError, match=message):
        load_cerebellum(tmp_path)


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
    file = _files.ReleasedFile("city45data.mat", None)
    copy(data_folder, cache, file.name)
    assert _files.find_file(file) == cache / file.name
    monkeypatch.setenv("SPECTRALGP_DATA", str(named))
    assert _files.find_file(file) == cache / file.name
    copy(data_folder, named, file.name)
    assert _files.find_file(file) == named / file.name
    assert _files.find_file(file, given) == named / file.name
    copy(data_folder, given, file.name)
    assert _files.find_file(file, given) == given / file.name


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
    with pytest.raises(ValueError, match="does not match the known hash"):
        load_weather()
    assert not (cache / "city45data.mat").exists()


def test_an_offline_machine_is_told_which_file_to_put_where(cache):
    with pytest.raises(FileNotFoundError, match=r"traffic_delay_san_francisco\.mat must be on this machine") as raised:
        load_traffic()
    assert f"put it into {cache}" in str(raised.value)
    assert "Polynomial_Kernel_Learning" in str(raised.value)


def copy(source: Path, target: Path, *names: str) -> None:
    for name in names:
        shutil.copyfile(source / name, target / name)
