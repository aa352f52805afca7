"""Pictures over the spectrum: filters, the graph Fourier coefficients of signals, and time scales of a series."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from spectralgp._basics.checks import Array, as_option, as_real_array
from spectralgp.graphs import Graph
from spectralgp.model.kernels import GraphKernel, Polynomial
from spectralgp.model.spectra import ExactSpectrum, decompose
from spectralgp.show.curves import FILTER_NAMES, Curve, Which, component_curves, filter_curve, laplacian_in_words
from spectralgp.show.plots.style import COLOURS, as_axes, curve_look, legend, legend_above

NAMES: dict[Which, str] = {which: name.replace(" filter", "") for which, name in FILTER_NAMES.items()}
MAX_SINGLE_SIGNALS = len(COLOURS)
MAX_JOINED = 300  # eigenvalues; lines through more are a solid block
N_GRID_POINTS = 400
MARKERS = (".", "x", "+", "^", "v", "s", "D")
ROUNDING_ERROR = 1e-14  # of the largest coefficient


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
    drawn = [(label, fit, kind) for label, fit in named for kind in kinds]
    domains = [_domain(label, fit, known, kind) for label, fit, kind in drawn]
    ax = as_axes(ax)
    laplacians = list(dict.fromkeys(laplacian for laplacian, *_ in domains))
    top, lowest, rugs = 0.0, 0.0, list[Array]()
    for index, ((label, fit, kind), (_, eigenvalues, upper)) in enumerate(zip(drawn, domains, strict=True)):
        name = label if len(kinds) == 1 else NAMES[kind] if len(named) == 1 else f"{label}: {NAMES[kind]}"
        curve, peak = _curve(name, fit, eigenvalues, upper, show_std, normalize, kind)
        width, style = upper if len(laplacians) > 1 else 1.0, curve_look(index)
        across = curve.frequencies / width
        ax.plot(across, curve.values, label=name, linewidth=1.8, **style)
        top, lowest = max(top, peak), min(lowest, float(np.min(curve.values)))
        if np.any(curve.high > curve.values):
            ax.fill_between(across, curve.low, curve.high, color=style["color"], alpha=0.2, linewidth=0)
            top = max(top, float(np.max(curve.high)))
        if show_eigenvalues and eigenvalues is not None:
            ticks = eigenvalues / width
            # scaled and unscaled eigenvalues agree but for rounding
            if not any(rug.shape == ticks.shape and np.allclose(rug, ticks) for rug in rugs):
                rugs.append(ticks)
    for row, ticks in enumerate(rugs):
        bottom = 0.01 + 0.03 * row
        ax.vlines(ticks, bottom, bottom + 0.025, color="0.35", linewidth=0.7, transform=ax.get_xaxis_transform())
    ax.set_ylim(lowest - 0.09 * top, 1.08 * top if top > 0 else None)  # room for the ticks of two Laplacians
    shown = "eigenvalue / largest eigenvalue" if len(laplacians) > 1 else f"eigenvalue λ of the {laplacians[0]}"
    symbol = f"filter {NAMES[kinds[0]][-1]}(λ)" if len(kinds) == 1 else "filter"
    ax.set(xlabel=shown, ylabel=f"{symbol}, largest value 1" if normalize else symbol)
    if labels is not None or isinstance(fits, Mapping) or len(drawn) > 1:
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
            ax.plot(places, row, linewidth=1.0, label=f"signal {index}" if labels is None else labels[index], **style)
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


def plot_rates(model: Any, *, which: Literal["rate", "power"] = "rate", ax: Axes | None = None) -> Axes:
    """Draw learnt time scales, one over the rate, or powers of the components by frequency of the graph, with bands.

    Bands are two standard deviations wide to either side, up to a factor of a thousand.
    """
    as_option(which, "which", ("rate", "power"))
    curves = component_curves(model, which)
    ax = as_axes(ax)
    for place, one in enumerate(curves):
        look = curve_look(place)
        ax.fill_between(one.frequencies, one.low, one.high, color=look["color"], alpha=0.2, linewidth=0)
        ax.plot(one.frequencies, one.values, label=one.name, **look)
    shown = "time scale in steps" if which == "rate" else "power, in units of nodes"
    ax.set(yscale="log", xlabel="frequency (eigenvalue of the Laplacian)", ylabel=shown)
    legend_above(ax)
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


def _domain(label: str, fit: Any, eigenvalues: Array | None, which: Which) -> tuple[str, Array | None, float]:
    """Laplacian of a filter, its eigenvalues if known, and the end of their range; refuse what has no such filter."""
    if isinstance(fit, GraphKernel):
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
        if eigenvalues is None and not fit.scaled and fit.laplacian != "normalized":
            raise ValueError(
                f"eigenvalues must be given to draw {label}: the {fit.laplacian} Laplacian has no fixed range; got "
                "None. Pass decompose(graph).eigenvalues, or a fitted GraphGPRegressor."
            )
        of, upper = fit, 1.0 if fit.scaled else 2.0
    elif hasattr(fit, "response"):
        check_is_fitted(fit)
        of, upper = fit.spectrum_, 1.0
        if eigenvalues is None:
            eigenvalues = np.minimum(of.eigenvalues, of.upper)  # those of a quadrature may lie beyond
    else:
        raise TypeError(
            f"fits must be graph kernels or fitted GraphGPRegressors; got {type(fit).__name__}. "
            "Pass one of them, a list or a dict."
        )
    upper = upper if eigenvalues is None else float(np.max(eigenvalues)) or 1.0
    return laplacian_in_words(of.laplacian, of.scaled), eigenvalues, upper


def _curve(
    name: str, fit: Any, eigenvalues: Array | None, upper: float, show_std: bool, normalize: bool, which: Which
) -> tuple[Curve, float]:
    """A filter up to an eigenvalue, and its largest value at the eigenvalues."""
    grid, is_kernel = np.linspace(0, upper, N_GRID_POINTS), isinstance(fit, GraphKernel)
    evaluate = fit.response if is_kernel else functools.partial(fit.response, which=which)
    response, std = evaluate(grid, return_std=True) if show_std and not is_kernel else (evaluate(grid), None)
    # values between the eigenvalues do not enter the model: a pole there must not set the scale
    peak = float(np.max(response if eigenvalues is None else evaluate(eigenvalues)))
    divisor = peak if normalize and peak > 0 else 1.0
    return filter_curve(name, grid, response / divisor, None if std is None else std / divisor), peak / divisor
