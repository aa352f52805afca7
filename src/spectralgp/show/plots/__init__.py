"""Pictures with matplotlib: filters, graph Fourier coefficients, signals, imputed values, predictions, forecasts.

`plot_calibration` shows whether uncertainties are right. Every function draws on given axes, `ax`, or on those of a new
figure, and returns the axes. A legend above the axes leaves a title room by ``ax.set_title(..., pad=26)``.
`COLOURS` and `LINE_STYLES` are those that the curves take, in order.
"""

# ruff: noqa: E402, for modules below import matplotlib
from spectralgp._basics.extras import require

require("matplotlib", "plots", "to draw")

from spectralgp.show.plots.filters import plot_filter, plot_fourier, plot_rates
from spectralgp.show.plots.predictions import (
    plot_backtest,
    plot_calibration,
    plot_forecast,
    plot_forecast_map,
    plot_imputed,
    plot_prediction,
)
from spectralgp.show.plots.signals import plot_signal
from spectralgp.show.plots.style import COLOURS, LINE_STYLES

__all__ = [
    "COLOURS",
    "LINE_STYLES",
    "plot_backtest",
    "plot_calibration",
    "plot_filter",
    "plot_forecast",
    "plot_forecast_map",
    "plot_fourier",
    "plot_imputed",
    "plot_prediction",
    "plot_rates",
    "plot_signal",
]
