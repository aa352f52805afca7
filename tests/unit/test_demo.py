"""The demonstration: its outages, the methods it compares with, and what it says."""

import errno

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from scipy.stats import norm

from spectralgp import GraphGPRegressor, Identity, Polynomial
from spectralgp.cli.showcase import METHODS, OUTAGE, PICTURE, interpolate, made_outages, run_demo
from spectralgp.datasets import load_air_quality

pytestmark = pytest.mark.slow  # test_cli runs the demonstration as it is

FEW = {"interpolation": interpolate}


@pytest.fixture(scope="module")
def data():
    return made_outages()


@pytest.fixture(scope="module")
def result(tmp_path_factory, data):
    plt.close("all")  # those of examples in docstrings
    folder = tmp_path_factory.mktemp("demo") / "made" / "here"
    return run_demo(folder, GraphGPRegressor(data.graph, Polynomial(2), random_state=0), FEW)


def test_every_station_loses_a_fortnight_and_nothing_else(data):
    air = load_air_quality()
    np.testing.assert_array_equal(data.measured, np.log(air.concentrations[:90]))
    gone = np.isnan(data.known)
    for station in range(50):
        real = np.isnan(data.measured[:, station])
        first = np.flatnonzero(gone[:, station] & ~real)
        # between the first and the last day taken out lie no more than a fortnight
        assert 1 <= first[-1] - first[0] + 1 <= OUTAGE
        assert gone[first[0] : first[-1] + 1, station].all()
    np.testing.assert_array_equal(data.known[~gone], data.measured[~gone])
    assert data.hidden.sum() == np.isfinite(data.measured).sum() - np.isfinite(data.known).sum()


def test_the_numbers_are_those_of_what_was_hidden(result, data):
    truth, found = data.measured[data.hidden], result.completed[data.hidden]
    ours = result.rows[-1]
    assert ours["method"] == "spectralgp"
    assert ours["rmse"] == pytest.approx(np.sqrt(np.mean((truth - found) ** 2)))
    assert ours["mean_error"] == pytest.approx(np.mean(np.abs(truth - found)))
    assert ours["coverage"] == np.mean(np.abs(truth - found) <= norm.ppf(0.95) * result.std[data.hidden])
    lines = interpolate(data)[0]
    assert result.rows[0]["rmse"] == pytest.approx(np.sqrt(np.mean((truth - lines[data.hidden]) ** 2)))
    assert result.rows[0]["coverage"] is None


def test_other_methods_keep_what_is_known_and_leave_no_hole(data):
    for name, fill in METHODS.items():
        completed, std = fill(data)
        seen = np.isfinite(data.known)
        np.testing.assert_allclose(completed[seen], data.known[seen], err_msg=name)
        assert np.isfinite(completed).all(), name
        assert (std is not None) == name.startswith("GP")


def test_the_picture_is_there_and_holds_something(result):
    picture = result.picture
    assert picture.name == PICTURE
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    pixels = imread(picture)[::5, ::5]
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 50
    assert plt.get_fignums() == []


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_disk_that_fills_up_costs_no_picture_that_was_there(tmp_path, data, monkeypatch, error):
    (tmp_path / PICTURE).write_bytes(b"good")
    save = Figure.savefig

    def fill_up(figure, path, **options):
        save(figure, path, **options)
        with open(path, "r+b") as file:
            file.truncate(1000)
        raise error

    monkeypatch.setattr(Figure, "savefig", fill_up)
    with pytest.raises(type(error)):
        run_demo(tmp_path, model=GraphGPRegressor(data.graph, Identity(), residual=None), methods=FEW)
    assert (tmp_path / PICTURE).read_bytes() == b"good"
    assert [path.name for path in tmp_path.iterdir()] == [PICTURE]


@pytest.mark.slow
def test_with_its_default_the_demonstration_is_ahead_of_every_other_method(tmp_path):
    result = run_demo(tmp_path)
    *others, ours = result.rows
    assert ours["rmse"] < min(row["rmse"] for row in others)
    assert 0.85 <= ours["coverage"] <= 0.95
