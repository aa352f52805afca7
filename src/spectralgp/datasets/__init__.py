"""Data sets: three that come with the package, those of the paper, and synthetic draws."""

from spectralgp.datasets.air_quality import AirQuality, load_air_quality
from spectralgp.datasets.cerebellum import Cerebellum, load_cerebellum
from spectralgp.datasets.fertility import Fertility, load_fertility
from spectralgp.datasets.synthetic import (
    FilteredSignals,
    barabasi_albert_graph,
    draw_filtered_signals,
    draw_inverse_wishart,
    sensor_graph,
)
from spectralgp.datasets.traffic import Traffic, load_traffic
from spectralgp.datasets.uber import Uber, load_uber
from spectralgp.datasets.us_income import USIncome, load_us_income
from spectralgp.datasets.weather import Weather, load_weather

__all__ = [
    "AirQuality",
    "Cerebellum",
    "Fertility",
    "FilteredSignals",
    "Traffic",
    "USIncome",
    "Uber",
    "Weather",
    "barabasi_albert_graph",
    "draw_filtered_signals",
    "draw_inverse_wishart",
    "load_air_quality",
    "load_cerebellum",
    "load_fertility",
    "load_traffic",
    "load_uber",
    "load_us_income",
    "load_weather",
    "sensor_graph",
]
