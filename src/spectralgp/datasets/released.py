"""The paper's data: weather, traffic, "uber" and cerebellum, in the files that its authors released.

Every loader looks for its files, downloads and checks them as `load_weather` describes, with the same errors.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp._basics.extras import require
from spectralgp._basics.files import atomic_write
from spectralgp._basics.progress import new_bar
from spectralgp.datasets.dataset import Dataset
from spectralgp.graphs import Graph
from spectralgp.graphs.points import Sphere

REPOSITORY = "github.com/yincong-zhi/Polynomial_Kernel_Learning"
COMMIT = "f9b219ac167ba6c06da8b88a88376ddcbd7efd1e"
BASE_URL = f"https://raw.githubusercontent.com/yincong-zhi/Polynomial_Kernel_Learning/{COMMIT}/data/"
VARIABLE = "SPECTRALGP_DATA"
CHUNK_BYTES = 2**16
CHECKSUMS = {  # of the files' content; git's where the content was not at hand, from the repository's list of files
    "city45data.mat": "SHA-256 7c82c3554c7c4eb63772b5e637a98c7c8d8b75432acdcd722ec04f4c0c99b77b",
    "smhi_temp_17.mat": "SHA-256 d7d72fc1b06836b6d559160c53851c90af00a8efd0a366a215d25abfa635ade0",
    "traffic_delay_san_francisco.mat": "SHA-256 54556e144e9ddf371c4c718b1704a8bb006a7a1ec13da5283a39558b22d40fac",
    "uber_data.mat": "SHA-256 732f7f0d42c7faafe634d2a7c437daa9268232872933144834b084c3691fd969",
    "A_cerebellum.mat": "SHA-256 e6f3471a5ea813260728c886065588aa5dbe80ed118401cb6af6e0dfff0a102b",
    "signal_set_cerebellum.mat": "git blob hash 018059436389d58ab6181f9e16e317dbbb7f59f4",
}
SUBFOLDER = "journal"  # of a folder of data, where files may also be
N_TRAFFIC_INPUTS = 15
TEXT_GRAPH_REACH = 13.0  # km, of the traffic graph in the paper's text


def load_weather(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Read the daily temperatures of 45 Swedish cities (SMHI), which the paper predicts from one day to the next.

    The files `city45data.mat` and `smhi_temp_17.mat` are looked for in `folder`, in the folder named by the environment
    variable ``SPECTRALGP_DATA`` and in the user's cache, and downloaded into the cache otherwise, from the repository
    that the paper's authors published (github.com/yincong-zhi/Polynomial_Kernel_Learning). A download is kept only if
    it is the released file; where the error stream is a terminal, a bar shows how far it is.

    Returns
    -------
    Dataset
        - ``graph``: 45 nodes joined to their 10 nearest others with weights ``exp(-d^2 / 0.1)``, where d is a distance
          between coordinates that were centred and scaled, and the two directions averaged: the graph that PyGSP 0.5.1
          builds and the paper used. Its coordinates are longitude and latitude.
        - ``temperatures``, shape (95, 45): degrees Celsius, one signal per day of 2017, one column per city.

    Raises
    ------
    FileNotFoundError
        If a file is missing and cannot be downloaded, with the place to put it.
    ValueError
        If a file has another SHA-256 sum than the released one.

    Examples
    --------
    >>> from spectralgp.datasets import load_weather
    >>> data = load_weather()  # doctest: +SKIP
    >>> data.graph, data.temperatures.shape  # doctest: +SKIP
    (Graph(45 nodes, 278 edges), (95, 45))
    """
    places = np.asarray(_variables("city45data.mat", folder)["coord45"], dtype=float)  # latitude, longitude
    temperatures = _variables("smhi_temp_17.mat", folder)["temp_17"]
    return Dataset(_neighbour_graph(places[:, ::-1], 10), temperatures=_real(temperatures))


def load_traffic(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Read the daily minutes of congestion at 75 freeway bottlenecks of San Francisco (PeMS), which the paper predicts.

    The file is `traffic_delay_san_francisco.mat`, read as `load_weather` describes.

    Returns
    -------
    Dataset
        - ``graph``: the released graph of 75 bottlenecks, joined with weights ``exp(-d)`` where d is below 0.044, the
          Euclidean distance between longitudes and latitudes in degrees, which are its coordinates. The longest edge
          has 4.86 km; two pairs of stations at the same place have the weight ``exp(-0.01)``.
        - ``text_graph``: the graph of the paper's text, 75 bottlenecks joined where closer than 13 km on great circles,
          weighted by 1 / km. The text has no rule for the two pairs of stations at the same place, whose weight would
          be infinite: they are taken to be as far apart as the closest others, 9.7 m.
        - ``output_graph``: the part of the released graph on the last 60 nodes, those that the paper predicts.
        - ``delays``, shape (2798, 75): minutes, one signal per day, one column per bottleneck. The paper predicts the
          last 60 from the first 15.
        - ``n_inputs``: 15, the number of nodes whose delays are the inputs.
    """
    content = _variables("traffic_delay_san_francisco.mat", folder)
    weights, coordinates = (np.asarray(content[name], dtype=float) for name in ("Adj_Matrix", "Coords"))
    graph = Graph(weights, coordinates=coordinates)
    outputs, delays = graph.subgraph(range(N_TRAFFIC_INPUTS, graph.n_nodes)), _real(content["average_delay"].T)
    graphs = {"text_graph": _text_graph(coordinates), "output_graph": outputs}
    return Dataset(graph, **graphs, delays=delays, n_inputs=N_TRAFFIC_INPUTS)


def load_uber(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Read the hourly Uber pickups in New York of the paper's journal version (doi 10.1109/TSIPN.2023.3265160).

    The file is `uber_data.mat`, read as `load_weather` describes; it may stand in a subfolder `journal`, too.

    The program that the authors released standardises ``X1`` by the mean and the standard deviation of all its values,
    builds the graph, and predicts a random 20 of the nodes from the other 9, at the same time.

    Returns
    -------
    Dataset
        - ``graph``: 29 nodes joined to their 4 nearest others with weights ``exp(-d^2 / 0.1)``, built as that of
          `load_weather` from longitudes and latitudes, which are its coordinates: the graph of the released program.
        - ``signals``, shape (744, 29): pickups, one signal per hour of 31 days, one column per zone.
    """
    content = _variables("uber_data.mat", folder)
    places = np.hstack([np.asarray(content[name], dtype=float) for name in ("lon", "lat")])
    return Dataset(_neighbour_graph(places, 4), signals=_real(content["X1"].T))


def load_cerebellum(folder: str | os.PathLike[str] | None = None, *, signals: bool = True) -> Dataset:
    """Read the graph of the cerebellum, and the fMRI signals on it (Venkitaraman, Chatterjee and Handel, 2018).

    The files are `A_cerebellum.mat` and `signal_set_cerebellum.mat`, the larger one, which is not read if `signals` is
    False. They are read as `load_weather` describes, and the signals checked by their git blob hash.

    Returns
    -------
    Dataset
        - ``graph``: 4465 voxels (Behjat et al., 2016), with edges of weight 1 between neighbours.
        - ``signals``, shape (292, 4465): BOLD signals in rows; None with ``signals=False``.
    """
    graph = Graph(_variables("A_cerebellum.mat", folder)["A"])
    return Dataset(graph, signals=_real(_variables("signal_set_cerebellum.mat", folder)["F2"].T) if signals else None)


def _real(values: Any) -> Array:
    return np.array(values, dtype=float, order="C")


def _text_graph(coordinates: Array) -> Graph:
    """Return the traffic graph of the paper's text, by great circles."""
    pairs = np.triu_indices(len(coordinates), 1)
    kilometres = np.sqrt(Sphere(coordinates).squared_distances(*pairs))
    kilometres[kilometres == 0] = kilometres[kilometres > 0].min()
    weights = np.zeros((len(coordinates), len(coordinates)))
    weights[pairs] = np.where(kilometres < TEXT_GRAPH_REACH, 1 / kilometres, 0.0)
    return Graph(weights + weights.T, coordinates=coordinates)


def _neighbour_graph(points: Array, n_neighbors: int) -> Graph:
    """Graph that joins every point to its nearest others, as PyGSP 0.5.1's ``NNGraph(points, k=n_neighbors)`` does.

    Weights are ``exp(-d^2 / 0.1)``, with d the distance of points that were centred, and scaled so that half the
    diagonal of their bounding box is ``n_nodes^(1 / n_dimensions) / 10``; the two directions are averaged.
    """
    n_nodes, n_dimensions = points.shape
    half_diagonal = 0.5 * np.linalg.norm(np.ptp(points, axis=0))
    scaled = (points - points.mean(axis=0)) * (n_nodes ** (1 / n_dimensions) / 10 / half_diagonal)
    weights = Graph.from_points(scaled, n_neighbors, bandwidth=0.1, symmetrize="average").weights
    return Graph(weights, coordinates=points)


def find_file(file: str, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Path of a file in `folder`, the folder that ``SPECTRALGP_DATA`` names, or the cache; None if in none."""
    for place in _places(folder):
        for path in (place / file, place / SUBFOLDER / file):
            if path.is_file():
                _check(path, file, str(path), "remove it, and it will be downloaded again")
                return path
    return None


def fetch_file(file: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Path of a file, downloaded into the cache if it is not on this machine; a download gets its name once checked."""
    found = find_file(file, folder)
    if found is not None:
        return found
    url, target = BASE_URL + file, cache_folder() / file
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(target) as beside:
            pooch = require("pooch", "data", "to download the paper's data")
            with new_bar(total=1, desc=f"download of {file}", unit="B", unit_scale=True) as bar:  # pooch sets the total
                pooch.HTTPDownloader(progressbar=bar, chunk_size=CHUNK_BYTES)(url, str(beside), None)
            _check(beside, file, f"the download of {url}", "it was not kept, try again")
    except OSError as error:  # no network, no such host, no such page, no room
        raise FileNotFoundError(
            f"{file} must be on this machine or within reach of it; got no such file, and the download of "
            f"{url} failed ({type(error).__name__}). Get it from {REPOSITORY} (folder data) on "
            f"another machine and put it into {target.parent}, or into a folder "
            f"of your own that you name by folder= or by the environment variable {VARIABLE}."
        ) from error
    return target


def cache_folder() -> Path:
    """The user's cache folder for this package's downloads."""
    pooch = require("pooch", "data", "to find the folder of the paper's data")
    return Path(pooch.os_cache("spectralgp"))


def _variables(file: str, folder: str | os.PathLike[str] | None) -> dict[str, Any]:
    """Variables of a MATLAB file, by name."""
    from scipy.io import loadmat

    return loadmat(fetch_file(file, folder))


def _places(folder: str | os.PathLike[str] | None) -> list[Path]:
    named = {"folder": folder, VARIABLE: os.environ.get(VARIABLE) or None}
    given = {name: Path(value).expanduser() for name, value in named.items() if value is not None}
    for name, place in given.items():
        if not place.is_dir():
            got = str(named[name])
            raise NotADirectoryError(f"{name} must name an existing folder; got {got!r}. Make it, or leave it out.")
    return [*given.values(), cache_folder()]


def _check(path: Path, file: str, shown: str, remedy: str) -> None:
    """Refuse any other file than the released one; `shown` is its name in messages."""
    n_bytes = path.stat().st_size
    kind, _, expected = CHECKSUMS[file].rpartition(" ")
    header = f"blob {n_bytes}\0".encode()  # of git
    begun = hashlib.sha256() if kind == "SHA-256" else hashlib.sha1(header, usedforsecurity=False)
    with path.open("rb") as content:  # read a block at a time
        found = hashlib.file_digest(content, lambda: begun).hexdigest()
    if found != expected:
        raise ValueError(
            f"{shown} must be the released file with {kind} {expected}; got {found} ({n_bytes} bytes). "
            f"It is damaged, cut short or another version: {remedy}."
        )
