"""Model files of the present format version, each with what its model predicts, for `data`.

``python tests/version_files.py`` writes them. It is run while a version has not been released; after that its files are
never written again, and a new version has models of its own here.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import load, save
from sklearn.gaussian_process.kernels import RBF

from spectralgp import Graph, GraphGPForecaster, GraphGPRegressor, LearntGraph, Polynomial, Stacking
from spectralgp.files.container import FORMAT_VERSION, digest

DATA = Path(__file__).parent / "data"
RING = Graph.from_edges([(node, (node + 1) % 8) for node in range(8)])


def averaged_counts() -> tuple[Any, dict[str, Any]]:
    """Counts few enough for an average over hyperparameters, and a signal after them, which makes weights unequal."""
    rng = np.random.default_rng(7)
    inputs, exposure = np.arange(3.0)[:, None], rng.uniform(1.0, 3.0, (3, 8))
    covariates = rng.standard_normal((2, 3, 8))
    rates = np.exp(0.5 + 0.4 * covariates[0] + 0.5 * np.sin(np.arange(8) / 2) + inputs / 4)
    counts = rng.poisson(exposure * rates).astype(float)
    counts[1, 5] = np.nan
    first, last = (
        {"exposure": exposure[rows], "covariates": {"slope": covariates[0, rows], "width": covariates[1, rows]}}
        for rows in (slice(2), slice(2, 3))
    )
    model = GraphGPRegressor(RING, Polynomial(1), RBF(), likelihood="poisson").fit(inputs[:2], counts[:2], **first)
    model = model.condition_on(inputs[2:], counts[2:], **last)
    new = rng.standard_normal((2, 2, 8))
    return model, {"inputs": inputs[:2] + 0.5, "slope": new[0], "width": new[1]}


def time_order() -> tuple[Any, dict[str, Any]]:
    """Rows in time order, with a choice among few models, and new rows within and beyond the range of training."""
    series = 10 + np.cumsum(np.random.default_rng(9).standard_normal((31, 8)), axis=0)
    model = GraphGPRegressor(RING, Stacking(effort="fast")).fit(series[:-1], series[1:])
    return model, {"inputs": series[-3:] + np.array([0.0, 4.0, 40.0])[:, None]}


def learnt_graph() -> tuple[Any, dict[str, Any]]:
    """A graph whose weights were learnt, with names of the nodes and of the coordinates."""
    rng = np.random.default_rng(10)
    places = pd.DataFrame(rng.random((8, 2)), [f"station {node}" for node in range(8)], ["east", "north"])
    inputs = rng.standard_normal((20, 1))
    signals = np.sin(inputs + 6 * places["east"].to_numpy()) + 0.1 * rng.standard_normal((20, 8))
    model = GraphGPRegressor(LearntGraph(places, 4), Polynomial(1), RBF()).fit(inputs, signals)
    return model, {"inputs": inputs[:2] + 0.1}


def one_signal() -> tuple[Any, dict[str, Any]]:
    """One signal with a value missing: kernels integrated over a grid, mixtures of t's with an uncertain level."""
    signal = 3 + np.cumsum(np.random.default_rng(10).standard_normal((1, 8)), axis=1)
    signal[0, 5] = np.nan
    return GraphGPRegressor(RING).fit([[1.0]], signal), {"inputs": np.array([[1.0], [2.0]])}


MODELS: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "time-order": time_order,
    "learnt-graph": learnt_graph,
    "one-signal": one_signal,
}


def unpacked(content: bytes) -> tuple[dict[str, str], Any, dict[str, np.ndarray]]:
    """Metadata, JSON and arrays of a file."""
    metadata = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
    return metadata, json.loads(metadata["model"]), load(content)


def packed(metadata: dict[str, str], state: Any, arrays: dict[str, np.ndarray]) -> bytes:
    """A file with a checksum that is right, as whoever makes one up would write."""
    metadata = metadata | {"model": state if isinstance(state, str) else json.dumps(state)}
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return save(arrays, metadata | {"sha256": digest(metadata, arrays)})


def predicted(model: Any, asked: Any) -> tuple[Any, Any]:
    """Means and standard deviations that a model of a file predicts for what stands beside it."""
    if isinstance(model, GraphGPForecaster):
        later = None
        if "exogenous" in asked:
            later = pd.DataFrame(asked["exogenous"], pd.DatetimeIndex(asked["dates"]), list(asked["columns"]))
        return model.predict(int(asked["inputs"]), return_std=True, X=later)
    inputs, names = asked["inputs"], getattr(model, "feature_names_in_", None)
    inputs = inputs if names is None else pd.DataFrame(inputs, columns=names)
    given = {"covariates": {name: asked[name] for name in ("slope", "width")}} if "slope" in asked else {}
    return model.predict(inputs, return_std=True, include_noise=True, **given)


def write() -> None:
    """Write the files of the present version."""
    for name, make in MODELS.items():
        (model, asked), path = make(), DATA / f"version{FORMAT_VERSION}-{name}"
        mean, std = predicted(model, asked)
        model.save(path.with_suffix(".sgp"))
        np.savez_compressed(path.with_suffix(".npz"), mean=np.asarray(mean), std=np.asarray(std), **asked)


if __name__ == "__main__":
    write()
