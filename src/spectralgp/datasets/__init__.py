"""Data sets: five that come with the package, those of the paper, and synthetic draws."""

from spectralgp.datasets.dataset import Dataset
from spectralgp.datasets.embedded import load_air_quality, load_fertility, load_homicides, load_sids, load_us_income
from spectralgp.datasets.released import load_cerebellum, load_traffic, load_uber, load_weather
from spectralgp.datasets.synthetic import (
    barabasi_albert_graph,
    draw_filtered_signals,
    draw_inverse_wishart,
    sensor_graph,
)

__all__ = [
    "Dataset",
    "barabasi_albert_graph",
    "draw_filtered_signals",
    "draw_inverse_wishart",
    "load_air_quality",
    "load_cerebellum",
    "load_fertility",
    "load_homicides",
    "load_sids",
    "load_traffic",
    "load_uber",
    "load_us_income",
    "load_weather",
    "sensor_graph",
]
