"""Particulate matter: numbers typed here were read in the R package's file, places on a map."""

import numpy as np
import pytest

from spectralgp.datasets import load_air_quality


@pytest.fixture(scope="module")
def data():
    return load_air_quality()


def test_what_is_there_and_what_is_missing(data):
    assert data.concentrations.shape == (365, 50)
    assert data.dates[0] == np.datetime64("2003-01-01")
    assert data.dates[-1] == np.datetime64("2003-12-31")
    assert np.isnan(data.concentrations).sum() == 1043
    assert np.isfinite(data.concentrations).mean(axis=0).min() >= 0.5
    assert np.nanmin(data.concentrations) == 1.125


def test_stations_stand_in_germany_and_are_joined_to_their_nearest(data):
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
