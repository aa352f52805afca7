"""Pictures over the spectrum: filters, and the graph Fourier coefficients of signals."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from spectralgp._basics.checks import Array, as_option, as_real_array
from spectralgp.graphs import Graph
from spectralgp.model.kernels import GraphKernel, Polynomial
from spectralgp.model.spectra import ExactSpectrum, decompose
from spectralgp.show.plots.style import COLOURS, as_axes, curve_look, legend
from spectralgp.show.report.numbers import Which, deviation_band, laplacian_in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES: dict[Which, str] = {"signal": "signal g", "residual": "residual h", "carry": "carry-over b"}
MAX_SINGLE_SIGNALS = len(COLOURS)
MAX_JOINED = 300  # eigenvalues; lines through more are a solid block
N_GRID_POINTS = 400
MARKERS = (".", "x", "+", "^", "v", "s", "D")
ROUNDING_ERROR = 1e-14  # of the largest coefficient


@dataclass(frozen=True, eq=False)
class _Curve:
    """Values of a filter over `grid`, with the graph's eigenvalues if they are known."""

    label: str
    laplacian: str
    eigenvalues: Array | None
    grid: Array
    response: Array
    std: Array | None
    peak: float


def plot_filter(
    fits: Any,
    *,
    ax: Axes | None = None,
    eigenvalues: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    normalize: bool = False,
    show_eigenvalues: bool = True,
    show_std: bool = False,
    which: Which | Sequence[Which] = "signal",
) -> Axes:
    """Draw one or more filters over the range of the eigenvalues.

    Filters of different Laplacians are drawn against eigenvalues relative to the largest of each.

    Parameters
    ----------
    fits : graph kernel, fitted GraphGPRegressor, or a list or dict of those
        Filters to draw; the keys of a dict are labels for the legend, as are `labels`, one per filter.
    eigenvalues : array-like of shape (n_eigenvalues,), optional
        Eigenvalues of the graph. A fitted regressor knows them; a kernel alone is drawn over the whole range of its
        Laplacian (up to 1 if scaled, 2 if normalised), and needs them otherwise.
    normalize : bool, default=False
        Divide each filter by its largest value at the eigenvalues, as the paper compares filters.
    show_eigenvalues : bool, default=True
        Mark the eigenvalues by ticks along the bottom.
    show_std : bool, default=False
        Shade one standard deviation of each learnt filter to either side, over draws of the hyperparameters and stacked
        models. A filter that is nowhere negative is not shaded below zero.
    which : {"signal", "residual", "carry"}, or a sequence of those, default="signal"
        Filters of fitted regressors to draw: ``g`` of the signals explained by inputs, ``h`` of the shared residual, or
        the carry-over filter ``b``, which has no units. A kernel has a signal filter only.

    Examples
    --------
    >>> from spectralgp import Polynomial
    >>> from spectralgp.show.plots import plot_filter
    >>> ax = plot_filter({"band-pass": Polynomial.from_coefficients([0, 1, 4, 1, -6])})
    >>> ax.get_legend_handles_labels()[1]
    ['band-pass']
    """
    named, kinds = _named(fits, labels), (which,) if isinstance(which, str) else tuple(which)
    for kind in kinds:
        as_option(kind, "which", tuple(NAMES))
    known = None if eigenvalues is None else as_real_array(eigenvalues, "eigenvalues", ("n_eigenvalues",))
    curves = []
    for label, fit in named:
        for kind in kinds:
            name = label if len(kinds) == 1 else NAMES[kind] if len(named) == 1 else f"{label}: {NAMES[kind]}"
            curves.append(_curve(name, fit, known, show_std, kind))
    ax = as_axes(ax)
    relative = len({curve.laplacian for curve in curves}) > 1
    top, rugs = 0.0, list[Array]()
    for index, curve in enumerate(curves):
        divisor = curve.peak if normalize and curve.peak > 0 else 1.0
        width = curve.grid[-1] if relative else 1.0
        style = curve_look(index)
        ax.plot(curve.grid / width, curve.response / divisor, label=curve.label, linewidth=1.8, **style)
        top = max(top, curve.peak / divisor)
        if curve.std is not None:
            low, high = deviation_band(curve.response / divisor, curve.std / divisor)
            ax.fill_between(curve.grid / width, low, high, color=style["color"], alpha=0.2, linewidth=0)
            top = max(top, float(np.max(high)))
        if show_eigenvalues and curve.eigenvalues is not None:
            ticks = curve.eigenvalues / width
            # scaled and unscaled eigenvalues agree but for rounding
            if not any(rug.shape == ticks.shape and np.allclose(rug, ticks) for rug in rugs):
                rugs.append(ticks)
    for row, ticks in enumerate(rugs):
        bottom = 0.01 + 0.03 * row
        ax.vlines(ticks, bottom, bottom + 0.025, color="0.35", linewidth=0.7, transform=ax.get_xaxis_transform())
    lowest = min(float(np.min(curve.response)) for curve in curves)
    ax.set_ylim(min(0.0, lowest) - 0.09 * top, 1.08 * top if top > 0 else None)  # room for the ticks of two Laplacians
    across = "eigenvalue / largest eigenvalue" if relative else f"eigenvalue λ of the {curves[0].laplacian}"
    symbol = f"filter {NAMES[kinds[0]][-1]}(λ)" if len(kinds) == 1 else "filter"
    ax.set(xlabel=across, ylabel=f"{symbol}, largest value 1" if normalize else symbol)
    if labels is not None or isinstance(fits, Mapping) or len(curves) > 1:
        legend(ax)
    return ax


def plot_fourier(
    signals: ArrayLike,
    graph: Graph | ExactSpectrum,
    *,
    ax: Axes | None = None,
    absolute: bool = True,
    log: bool = False,
    labels: Sequence[str] | None = None,
    level: float = 0.8,
) -> Axes:
    """Draw the graph Fourier coefficients of signals against the eigenvalues.

    Parameters
    ----------
    signals : array-like of shape (n_signals, n_nodes) or (n_nodes,)
        Signals in rows. Up to seven are drawn one by one (by marks alone on more than 300 nodes), named by `labels` if
        given; of more, the median and a band that holds the central share `level` of them.
    graph : Graph or ExactSpectrum
        The graph the signals live on, decomposed with its scaled combinatorial Laplacian; for another one pass a
        spectrum made by `decompose`.
    absolute : bool, default=True
        Draw magnitudes; signed coefficients otherwise. Signs of eigenvectors are arbitrary.
    log : bool, default=False
        Draw magnitudes on a logarithmic axis, from 1e-14 of the largest: smaller ones are rounding errors.

    Examples
    --------
    >>> from spectralgp import Graph
    >>> from spectralgp.show.plots import plot_fourier
    >>> ax = plot_fourier([1.0, 1.0, 1.0], Graph.from_edges([(0, 1), (1, 2)]))
    >>> ax.lines[0].get_ydata().round(3).tolist()
    [1.732, 0.0, 0.0]
    """
    spectrum = decompose(graph, scaled=True) if isinstance(graph, Graph) else graph
    coefficients = np.atleast_2d(spectrum.transform(signals))
    if absolute:
        coefficients = np.abs(coefficients)
    elif log:
        raise ValueError("absolute must be True where log is; got False. Signed coefficients have no logarithm.")
    n_signals = coefficients.shape[0]
    many = n_signals > MAX_SINGLE_SIGNALS
    if labels is not None and (many or len(labels) != n_signals):
        raise ValueError(
            f"labels must name each of at most {MAX_SINGLE_SIGNALS} signals; got {len(labels)} labels for "
            f"{n_signals} signals. More signals are drawn as a band and need no labels."
        )
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1; got {level!r}. Pass 0.8 for the central 80%.")
    tail = (1 - level) / 2
    drawn = np.quantile(coefficients, [tail, 0.5, 1 - tail], axis=0) if many else coefficients
    if log and not drawn.any():
        raise ValueError("signals must differ from zero to be drawn on a logarithmic axis; got zeros. Pass log=False.")
    ax = as_axes(ax)
    places, crowded = spectrum.eigenvalues, spectrum.eigenvalues.size > MAX_JOINED
    if many:
        low, middle, high = drawn
        ax.fill_between(places, low, high, color=COLOURS[0], alpha=0.25, linewidth=0, label=f"central {level:.0%}")
        ax.plot(places, middle, color=COLOURS[0], marker="" if crowded else ".", linewidth=1.2, label="median")
    else:
        for index, row in enumerate(drawn):
            style = {**curve_look(index), "marker": "."}
            if crowded:
                style |= {"linestyle": "none", "marker": MARKERS[index], "markersize": 3}
            name = f"signal {index}" if labels is None else labels[index]
            ax.plot(places, row, linewidth=1.0, label=name, **style)
    if not absolute:
        ax.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    if log:
        ax.set_yscale("log")
        largest = float(np.max(drawn))
        ax.set_ylim(max(float(np.min(drawn[drawn > 0])) / 2, ROUNDING_ERROR * largest), 2 * largest)
    ax.set_xlabel(f"eigenvalue λ of the {laplacian_in_words(spectrum.laplacian, spectrum.scaled)}")
    ax.set_ylabel("magnitude of Fourier coefficient" if absolute else "Fourier coefficient")
    if labels is not None or n_signals > 1:
        legend(ax)
    return ax


def _named(fits: Any, labels: Sequence[str] | None) -> list[tuple[str, Any]]:
    """Pairs of label and fit, given in any form."""
    if isinstance(fits, Mapping):
        found, names = list(fits.values()), [str(key) for key in fits]
    else:
        found = list(fits) if isinstance(fits, list | tuple) else [fits]
        # None is the regressor's default
        kernels = [getattr(fit, "graph_kernel", fit) or Polynomial("auto") for fit in found]
        names = [getattr(kernel, "label", "stacked") for kernel in kernels]
    if not found:
        raise ValueError("fits must hold at least one filter to draw; got none. Pass a graph kernel or a regressor.")
    if labels is not None and len(labels) != len(found):
        raise ValueError(f"labels must name each of the {len(found)} filters; got {len(labels)}.")
    return list(zip(names if labels is None else labels, found, strict=True))


def _curve(label: str, fit: Any, eigenvalues: Array | None, with_std: bool, which: Which) -> _Curve:
    """Evaluate one filter over the range of its eigenvalues."""
    is_kernel = isinstance(fit, GraphKernel)
    if not is_kernel and not hasattr(fit, "response"):
        raise TypeError(
            f"fits must be graph kernels or fitted GraphGPRegressors; got {type(fit).__name__}. "
            "Pass one of them, a list or a dict."
        )
    if is_kernel:
        _check_kernel(label, fit, eigenvalues, which)
        of, upper, evaluate = fit, 1.0 if fit.scaled else 2.0, fit.response
    else:
        check_is_fitted(fit)
        of, upper, evaluate = fit.spectrum_, 1.0, functools.partial(fit.response, which=which)
        if eigenvalues is None:
            eigenvalues = np.minimum(of.eigenvalues, of.upper)  # those of a quadrature may lie beyond
    if eigenvalues is not None:
        upper = float(np.max(eigenvalues)) or 1.0
    grid = np.linspace(0, upper, N_GRID_POINTS)
    response, std = evaluate(grid, return_std=True) if with_std and not is_kernel else (evaluate(grid), None)
    # values between the eigenvalues do not enter the model: a pole there must not set the scale
    peak = float(np.max(evaluate(eigenvalues) if eigenvalues is not None else response))
    return _Curve(label, laplacian_in_words(of.laplacian, of.scaled), eigenvalues, grid, response, std, peak)


def _check_kernel(label: str, kernel: GraphKernel, eigenvalues: Array | None, which: Which) -> None:
    """Refuse a kernel without the filter to draw."""
    if which != "signal":
        raise ValueError(
            f"which must be 'signal' for a graph kernel, which has no other filter; got {which!r}. "
            "Pass a fitted GraphGPRegressor."
        )
    if not kernel.shares_eigenvectors:
        raise TypeError(
            f"fits must be filters on the spectrum; got {type(kernel).__name__}, which has no common eigenvectors "
            "with the Laplacian. Leave it out of the picture."
        )
    if eigenvalues is None and not kernel.scaled and kernel.laplacian != "normalized":
        raise ValueError(
            f"eigenvalues must be given to draw {label}: the {kernel.laplacian} Laplacian has no fixed range; got "
            "None. Pass decompose(graph).eigenvalues, or a fitted GraphGPRegressor."
        )
