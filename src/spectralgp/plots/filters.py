"""Pictures over the spectrum: filters, and the graph Fourier coefficients of signals."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from spectralgp._basics.checks import Array, as_option, as_real_array
from spectralgp.graphs import Graph
from spectralgp.kernels import GraphKernel, Polynomial
from spectralgp.plots.style import COLOURS, LINE_STYLES, axes, eigenvalue_label, legend
from spectralgp.spectra import ExactSpectrum, decompose

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Which = Literal["signal", "residual", "carry"]

SYMBOLS = {"signal": "filter g(λ)", "residual": "filter h(λ)", "carry": "filter b(λ)"}
NAMES = {"signal": "signal g", "residual": "residual h", "carry": "carry-over b"}
MOST_SINGLE_SIGNALS = len(COLOURS)
GRID_POINTS = 400
MOST_JOINED = 300  # eigenvalues; lines through more are a solid block
MARKERS = (".", "x", "+", "^", "v", "s", "D")
ROUNDING = 1e-14  # of the largest coefficient


@dataclass(frozen=True, eq=False)
class _Curve:
    """A filter, ready to draw: over `grid`, with the graph's eigenvalues where they are known."""

    label: str
    laplacian: tuple[str, bool]
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

    Parameters
    ----------
    fits : graph kernel, fitted GraphGPRegressor, or a list or dict of those
        What to draw; the keys of a dict are labels.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    eigenvalues : array-like of shape (n_eigenvalues,), optional
        Eigenvalues of the graph. A fitted regressor knows them; a kernel alone is drawn over the whole range of its
        Laplacian (up to 1 if scaled, 2 if normalised), and needs them otherwise.
    labels : sequence of str, optional
        Names for the legend, one a filter.
    normalize : bool, default=False
        Divide each filter by its largest value at the eigenvalues, as the paper compares filters.
    show_eigenvalues : bool, default=True
        Mark the eigenvalues by ticks along the bottom.
    show_std : bool, default=False
        Shade one standard deviation of each filter that a regressor learnt to either side, over draws of the
        hyperparameters and over stacked models. A filter that is nowhere negative is not shaded below zero.
    which : {"signal", "residual", "carry"}, or a sequence of those, default="signal"
        Filters of fitted regressors to draw: ``g`` of what inputs explain, ``h`` of what neighbours share beside it,
        ``b`` through which inputs carry over, which has no units. A kernel has a signal's only.

    Returns
    -------
    matplotlib Axes
        Filters of different Laplacians are drawn against eigenvalues relative to the largest of each, and the axis
        says so.

    Raises
    ------
    TypeError
        If something to draw is neither a graph kernel nor a regressor, or has no filter on the spectrum.
    ValueError
        If labels and filters do not match, or eigenvalues are needed.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from spectralgp import Polynomial
    >>> from spectralgp.plots import plot_filter
    >>> ax = plot_filter({"band-pass": Polynomial.from_coefficients([0, 1, 4, 1, -6])})
    >>> ax.get_legend_handles_labels()[1]
    ['band-pass']
    >>> matplotlib.pyplot.close(ax.figure)
    """
    named, kinds = _named(fits, labels), (which,) if isinstance(which, str) else tuple(which)
    for kind in kinds:
        as_option(kind, "which", tuple(SYMBOLS))
    known = None if eigenvalues is None else as_real_array(eigenvalues, "eigenvalues", ("n_eigenvalues",))
    curves = []
    for label, fit in named:
        for kind in kinds:
            name = label if len(kinds) == 1 else NAMES[kind] if len(named) == 1 else f"{label}: {NAMES[kind]}"
            curves.append(_curve(name, fit, known, show_std, kind))
    ax = axes(ax)
    relative = len({curve.laplacian for curve in curves}) > 1
    tops: list[float] = []
    rugs: list[Array] = []
    for index, curve in enumerate(curves):
        divisor = curve.peak if normalize and curve.peak > 0 else 1.0
        width = curve.grid[-1] if relative else 1.0
        style = {"color": COLOURS[index % len(COLOURS)], "linestyle": LINE_STYLES[index % len(LINE_STYLES)]}
        ax.plot(curve.grid / width, curve.response / divisor, label=curve.label, linewidth=1.8, **style)
        if curve.std is not None:
            low, high = _band(curve.response / divisor, curve.std / divisor)
            ax.fill_between(curve.grid / width, low, high, color=style["color"], alpha=0.2, linewidth=0)
            tops.append(float(np.max(high)))
        tops.append(curve.peak / divisor)
        if show_eigenvalues and curve.eigenvalues is not None:
            _add_if_new(rugs, curve.eigenvalues / width)
    for row, places in enumerate(rugs):
        _rug(ax, places, row)
    symbol = SYMBOLS[kinds[0]] if len(kinds) == 1 else "filter"
    _finish_filter_axes(ax, curves, relative, normalize, max(tops), symbol)
    if labels is not None or isinstance(fits, Mapping) or len(curves) > 1:
        legend(ax, len(curves))
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
        Signals in rows. Up to seven are drawn one by one (by marks alone on more than 300 nodes); of more, the median
        and a band that holds the central share `level` of them.
    graph : Graph or ExactSpectrum
        The graph the signals live on, decomposed with its scaled combinatorial Laplacian; for another one pass a
        spectrum made by `decompose`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    absolute : bool, default=True
        Draw magnitudes; signed coefficients otherwise. Signs of eigenvectors are arbitrary.
    log : bool, default=False
        Draw magnitudes on a logarithmic axis, where a few large ones would hide the rest. The axis ends at 1e-14 of the
        largest, below which there are rounding errors only.
    labels : sequence of str, optional
        Names for the legend, one a signal (up to seven signals).
    level : float, default=0.8
        Share of the signals in the band.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If signals or labels do not match, or there is nothing to draw on a logarithmic axis.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from spectralgp import Graph
    >>> from spectralgp.plots import plot_fourier
    >>> ax = plot_fourier([1.0, 1.0, 1.0], Graph.from_edges([(0, 1), (1, 2)]))
    >>> ax.lines[0].get_ydata().round(3).tolist()
    [1.732, 0.0, 0.0]
    >>> matplotlib.pyplot.close(ax.figure)
    """
    spectrum = decompose(graph, scaled=True) if isinstance(graph, Graph) else graph
    coefficients = np.atleast_2d(spectrum.transform(signals))
    if absolute:
        coefficients = np.abs(coefficients)
    elif log:
        raise ValueError("absolute must be True where log is; got False. Signed coefficients have no logarithm.")
    many = coefficients.shape[0] > MOST_SINGLE_SIGNALS
    if labels is not None and (many or len(labels) != coefficients.shape[0]):
        raise ValueError(
            f"labels must name each of at most {MOST_SINGLE_SIGNALS} signals; got {len(labels)} labels for "
            f"{coefficients.shape[0]} signals. More signals are drawn as a band and need no labels."
        )
    tail = (1 - _share(level)) / 2
    drawn = np.quantile(coefficients, [tail, 0.5, 1 - tail], axis=0) if many else coefficients
    if log and not drawn.any():
        raise ValueError("signals must differ from zero to be drawn on a logarithmic axis; got zeros. Pass log=False.")
    ax = axes(ax)
    crowded = spectrum.eigenvalues.size > MOST_JOINED
    if many:
        low, middle, high = drawn
        ax.fill_between(
            spectrum.eigenvalues, low, high, color=COLOURS[0], alpha=0.25, linewidth=0, label=f"central {level:.0%}"
        )
        marker = "" if crowded else "."
        ax.plot(spectrum.eigenvalues, middle, color=COLOURS[0], marker=marker, linewidth=1.2, label="median")
    else:
        for index, row in enumerate(drawn):
            ax.plot(
                spectrum.eigenvalues,
                row,
                color=COLOURS[index % len(COLOURS)],
                linestyle="none" if crowded else LINE_STYLES[index % len(LINE_STYLES)],
                marker=MARKERS[index] if crowded else ".",
                markersize=3 if crowded else None,
                linewidth=1.0,
                label=labels[index] if labels is not None else f"signal {index}",
            )
    if not absolute:
        ax.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    if log:
        _use_logarithms(ax, drawn)
    ax.set_xlabel(eigenvalue_label(spectrum.laplacian, spectrum.scaled))
    ax.set_ylabel("magnitude of Fourier coefficient" if absolute else "Fourier coefficient")
    if many or labels is not None or coefficients.shape[0] > 1:
        legend(ax, 2 if many else coefficients.shape[0])
    return ax


def _use_logarithms(ax: Axes, magnitudes: Array) -> None:
    """Logarithmic axis from the smallest to the largest magnitude, rounding errors left out."""
    ax.set_yscale("log")
    largest = float(np.max(magnitudes))
    smallest = float(np.min(magnitudes[magnitudes > 0]))
    ax.set_ylim(max(smallest / 2, ROUNDING * largest), 2 * largest)


def _share(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1; got {level!r}. Pass 0.8 for the central 80%.")
    return level


def _named(fits: Any, labels: Sequence[str] | None) -> list[tuple[str, Any]]:
    """Pairs of label and fit, whatever form they came in."""
    if isinstance(fits, Mapping):
        found, names = list(fits.values()), [str(key) for key in fits]
    else:
        found = list(fits) if isinstance(fits, list | tuple) else [fits]
        names = [_describe(getattr(fit, "graph_kernel", fit)) for fit in found]
    if not found:
        raise ValueError("fits must hold at least one filter to draw; got none. Pass a graph kernel or a regressor.")
    if labels is None:
        return list(zip(names, found, strict=True))
    if len(labels) != len(found):
        raise ValueError(f"labels must name each of the {len(found)} filters; got {len(labels)}.")
    return list(zip(labels, found, strict=True))


def _describe(kernel: Any) -> str:
    if kernel is None:  # the regressor's default
        kernel = Polynomial("auto")
    return kernel.label if isinstance(kernel, GraphKernel) else "stacked"


def _curve(label: str, fit: Any, eigenvalues: Array | None, with_std: bool, which: Which) -> _Curve:
    """Evaluate one filter over the range of its eigenvalues."""
    if isinstance(fit, GraphKernel):
        kind, scaled = fit.laplacian, fit.scaled
        if which != "signal":
            raise ValueError(
                f"which must be 'signal' for a graph kernel, which has no other filter; got {which!r}. "
                "Pass a fitted GraphGPRegressor."
            )
        if not fit.shares_eigenvectors:
            raise TypeError(
                f"fits must be filters on the spectrum; got {type(fit).__name__}, which has no common eigenvectors "
                "with the Laplacian. Leave it out of the picture."
            )
        if eigenvalues is None and not scaled and kind != "normalized":
            raise ValueError(
                f"eigenvalues must be given to draw {label}: the combinatorial Laplacian has no fixed range; got None. "
                "Pass decompose(graph).eigenvalues, or a fitted GraphGPRegressor."
            )
        upper = 1.0 if scaled else 2.0
    elif hasattr(fit, "response"):
        check_is_fitted(fit)
        kind, scaled = fit.spectrum_.laplacian, fit.spectrum_.scaled
        own = np.minimum(fit.spectrum_.eigenvalues, fit.spectrum_.upper)  # those of a quadrature may lie beyond
        eigenvalues = own if eigenvalues is None else eigenvalues
        upper = 1.0
    else:
        raise TypeError(
            f"fits must be graph kernels or fitted GraphGPRegressors; got {type(fit).__name__}. "
            "Pass one of them, a list or a dict."
        )
    if eigenvalues is not None:
        upper = float(np.max(eigenvalues)) or 1.0
    grid = np.linspace(0, upper, GRID_POINTS)
    evaluate: Any = fit.response if isinstance(fit, GraphKernel) else functools.partial(fit.response, which=which)
    response, std = evaluate(grid), None
    if with_std and not isinstance(fit, GraphKernel):
        response, std = evaluate(grid, return_std=True)
    # what lies between the eigenvalues never enters the model: a pole there must not set the scale
    peak = float(np.max(evaluate(eigenvalues) if eigenvalues is not None else response))
    return _Curve(label, (kind, bool(scaled)), eigenvalues, grid, response, std, peak)


def _band(response: Array, std: Array) -> tuple[Array, Array]:
    """One standard deviation to either side, down to zero at most where the filter itself stays above it."""
    low, high = response - std, response + std
    return (np.maximum(low, 0.0) if np.min(response) >= 0 else low), high


def _finish_filter_axes(
    ax: Axes, curves: list[_Curve], relative: bool, normalize: bool, top: float, symbol: str
) -> None:
    kind, scaled = curves[0].laplacian
    lowest = min(float(np.min(curve.response)) for curve in curves)
    ax.set_ylim(min(0.0, lowest) - 0.09 * top, 1.08 * top if top > 0 else None)  # room for the ticks of two Laplacians
    ax.set_xlabel("eigenvalue / largest eigenvalue" if relative else eigenvalue_label(kind, scaled))
    ax.set_ylabel(f"{symbol}, largest value 1" if normalize else symbol)


def _add_if_new(rugs: list[Array], places: Array) -> None:
    """Keep one row of ticks for each set of eigenvalues; scaled and unscaled ones agree but for rounding."""
    if not any(rug.shape == places.shape and np.allclose(rug, places) for rug in rugs):
        rugs.append(places)


def _rug(ax: Axes, places: Array, row: int) -> None:
    """Ticks at the eigenvalues, along the bottom; further sets in rows above."""
    bottom = 0.01 + 0.03 * row
    ax.vlines(places, bottom, bottom + 0.025, color="0.35", linewidth=0.7, transform=ax.get_xaxis_transform())
