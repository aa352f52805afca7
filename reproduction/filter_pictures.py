"""Pictures of filter studies, drawn from results alone, in the paper's arrangement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.drawing import (
    COLOURS,
    EIGENVALUE,
    GRID,
    MARKERS,
    draw_coefficients,
    legend_below,
    mark_eigenvalues,
    new_figure,
)
from reproduction.experiments import BY_ALGORITHM_1, SHOWN, Truth
from reproduction.jobs import JOINT, NOISE_KNOWN
from reproduction.results import FAILED_NATS, Filters, Fit
from spectralgp import Polynomial
from spectralgp.show.plots import LINE_STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEARNERS = {JOINT: "jointly", NOISE_KNOWN: "jointly, noise known", BY_ALGORITHM_1: "by Algorithm 1"}


def filter_figure(found: Filters) -> Figure:
    """The supplement's Figs. 3 and 4: one row per truth, Fourier coefficients of the signals and learnt filters."""
    figure, axes = new_figure(len(SHOWN), 2, width=5.0)
    for row, truth in zip(axes, SHOWN, strict=True):
        draw_fourier(row[0], found, truth)
        draw_degrees(row[1], found, truth)
    return figure


def first_figure(sensor: Filters, noise: Filters) -> Figure:
    """The paper's Fig. 1: Fourier coefficients, filters by degree, filters by noise; one row per truth."""
    figure, axes = new_figure(len(SHOWN), 3)
    for row, truth in zip(axes, SHOWN, strict=True):
        draw_fourier(row[0], sensor, truth)
        draw_degrees(row[1], sensor, truth)
        draw_ratios(row[2], noise, truth)
    return figure


def error_figure(studies: list[Filters]) -> Figure:
    """One row per truth, one column per study: medians and quartiles of scaled errors over the seeds, on one scale."""
    figure, axes = new_figure(len(SHOWN), len(studies), width=3.2, height=2.7)
    highest = 0.0
    for row, truth in zip(axes, SHOWN, strict=True):
        for ax, found in zip(row, studies, strict=True):
            highest = max(highest, _draw_errors(ax, found, truth))
    for ax in axes.flat:
        ax.set_ylim(0, 105 * highest)
    for ax in axes[:, 0]:
        ax.set_ylabel("scaled error (%)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw_errors(ax: Axes, found: Filters, truth: Truth) -> float:
    """Errors of one study and truth; the largest upper quartile."""
    study, highest = found.study, 0.0
    settings = [(snr, degree) for snr in study.snrs for degree in study.degrees or (truth.degree,)]
    for shift, (variant, marker) in enumerate(zip(LEARNERS, MARKERS, strict=False)):
        draws = [found.learnt(truth.key, variant, snr=snr, degree=degree) for snr, degree in settings]
        places = [index for index, fits in enumerate(draws) if fits]
        quartiles = np.array([np.percentile([f["shape_error"] for f in draws[i]], [25, 50, 75]) for i in places])
        low, middle, high = quartiles.T
        highest = max(highest, float(high.max()))
        ax.errorbar(
            np.array(places) + 0.16 * (shift - 1),
            100 * middle,
            100 * np.array([middle - low, high - middle]),
            color=COLOURS[shift],
            marker=marker,
            markersize=4,
            linestyle="none",
            capsize=2,
            label=LEARNERS[variant],
        )
    ticks = [f"{snr:g}" if study.degrees is None else str(degree) for snr, degree in settings]
    ax.set_xticks(range(len(settings)), ticks)
    ax.set_xlabel("signal-to-noise ratio (dB)" if study.degrees is None else "degree")
    ax.set_title(f"{truth.key}, {study.key}", fontsize="medium")
    return highest


def draw_fourier(ax: Axes, found: Filters, truth: Truth) -> None:
    """Graph Fourier coefficients of the shown draw, one colour per signal, with the true filter as envelope."""
    shown = found.shown(truth.key, max(found.study.snrs))
    draw_coefficients(ax, shown["eigenvalues"], shown["fourier"])
    truly = Polynomial.from_coefficients(shown["truth"])
    size = np.sqrt(np.mean(np.square(shown["fourier"])) / np.mean(truly.power(shown["eigenvalues"])))
    envelope = 2 * size * truly.response(GRID)  # two standard deviations of the average signal
    ax.plot(GRID, envelope, color="black", linewidth=1, linestyle="--", label="± the true filter, to scale")
    ax.plot(GRID, -envelope, color="black", linewidth=1, linestyle="--")
    ax.set_title(f"{truth.key}: {found.study.n_signals} signals, seed {found.study.seeds[0]}", fontsize="medium")
    legend_below(ax, 1)


def draw_degrees(ax: Axes, found: Filters, truth: Truth) -> None:
    """Filters of all degrees that Algorithm 1 learnt over the truth, and thin the same learnt jointly."""
    study = found.study
    shown = found.shown(truth.key, study.snrs[0])
    _truth(ax, shown)
    for index, degree in enumerate(study.degrees or ()):
        pair = [found.learnt(truth.key, learner, degree=degree) for learner in (BY_ALGORITHM_1, JOINT)]
        if all(pair):
            _filters(ax, found, pair[0][0], pair[1][0], index, f"degree {degree}")
    ax.set_title(f"{truth.key}, by Algorithm 1", fontsize="medium")
    _filter_axes(ax, shown)


def draw_ratios(ax: Axes, found: Filters, truth: Truth) -> None:
    """Filters that Algorithm 1 learnt at each signal-to-noise ratio over the truth, and thin the same jointly."""
    shown = found.shown(truth.key, found.study.snrs[0])
    _truth(ax, shown)
    for index, snr in enumerate(found.study.snrs):
        pair = [found.learnt(truth.key, one, snr=snr, degree=truth.degree)[0] for one in (BY_ALGORITHM_1, JOINT)]
        _filters(ax, found, pair[0], pair[1], index, f"{snr:g} dB")
    ax.set_title(f"{truth.key}, degree {truth.degree}, by Algorithm 1", fontsize="medium")
    _filter_axes(ax, shown)


def _truth(ax: Axes, shown: Mapping[str, Any]) -> None:
    true = Polynomial.from_coefficients(shown["truth"]).rescaled()
    ax.plot(GRID, true.response(GRID), color="black", linewidth=2.6, alpha=0.75, label="truth")


def _filters(ax: Axes, found: Filters, fit: Fit, joint: Fit, index: int, name: str) -> None:
    """A filter by Algorithm 1, unless it failed altogether, and the joint one; the label says how it ended."""
    label = f"{name}: {found.without_2pi(fit['log_likelihood']):.1f}" + ("" if fit["converged"] else " *")
    is_lost = not fit["converged"] and fit["log_likelihood"] < joint["log_likelihood"] - FAILED_NATS
    response = [] if is_lost else _scaled(fit)
    style = {"color": COLOURS[index], "linestyle": LINE_STYLES[index]}
    ax.plot(GRID[: len(response)], response, linewidth=1.8, label=label + (" not drawn" if is_lost else ""), **style)
    ax.plot(GRID, _scaled(joint), linewidth=0.7, color=COLOURS[index])


def _scaled(fit: Fit) -> Any:
    return Polynomial.from_coefficients(fit["coefficients"]).rescaled().response(GRID)


def _filter_axes(ax: Axes, shown: Mapping[str, Any]) -> None:
    ax.plot([], [], color="0.3", linewidth=0.7, label="thin: jointly")
    mark_eigenvalues(ax, shown["eigenvalues"])
    ax.set_ylim(-0.08, 1.08)
    ax.set_xlabel(EIGENVALUE)
    ax.set_ylabel("filter g(λ) / maximum")
    legend_below(ax, 2)
