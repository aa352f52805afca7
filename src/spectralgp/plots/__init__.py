"""Pictures with matplotlib: filters, graph Fourier coefficients, signals on the graph, predictions.

Every function draws on the axes it is given, or makes a figure of its own, and returns the axes.
"""

from spectralgp.plots.filters import plot_filter, plot_fourier
from spectralgp.plots.signals import plot_prediction, plot_signal

__all__ = ["plot_filter", "plot_fourier", "plot_prediction", "plot_signal"]
