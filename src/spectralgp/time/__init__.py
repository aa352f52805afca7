"""Signals that follow one another in time: processes by mode, filtered, forecast and updated."""

from spectralgp.states import Component, Matern, Oscillator
from spectralgp.time.process import Filtered, Forecast, ModalProcess, rolling

__all__ = ["Component", "Filtered", "Forecast", "Matern", "ModalProcess", "Oscillator", "rolling"]
