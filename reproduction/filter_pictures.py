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
from reproduction.experiments import BY_ALGORITHM_1, Truth
from reproduction.jobs import JOINT, NOISE_KNOWN
from reproduction.results import Filters
from spectralgp import Polynomial
from spectralgp.plots import LINE_STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEARNERS = {JOINT: "jointly", BY_ALGORITHM_1: "by Algorithm 1"}


def filter_figure(found: Filters) -> Figure:
    """A row a truth: Fourier coefficients of the signals, and filters learnt by Algorithm 1 and jointly."""
    truths = found.study.truths
    figure, axes = new_figure(len(truths), 3)
    for row, truth in zip(axes, truths, strict=True):
        draw_fourier(row[0], found, truth)
        draw_degrees(row[1], found, truth, BY_ALGORITHM_1)
        draw_degrees(row[2], found, truth, JOINT)
    return figure


def noise_figure(found: Filters) -> Figure:
    """A column a truth: the filters learnt at each signal-to-noise ratio, by Algorithm 1 above and jointly below."""
    figure, axes = new_figure(2, len(found.study.truths))
    for column, truth in enumerate(found.study.truths):
        for row, learner in enumerate((BY_ALGORITHM_1, JOINT)):
            draw_ratios(axes[row, column], found, truth, learner)
    return figure


def first_figure(sensor: Filters, noise: Filters, learner: str) -> Figure:
    """The paper's Fig. 1 by one solver, with the high-pass filter in a third row."""
    truths = sensor.study.truths
    figure, axes = new_figure(len(truths), 3)
    for row, truth in zip(axes, truths, strict=True):
        draw_fourier(row[0], sensor, truth)
        draw_degrees(row[1], sensor, truth, learner)
        draw_ratios(row[2], noise, truth, learner)
    return figure


def error_figure(found: Filters) -> Figure:
    """A panel a truth: medians and quartiles of the recovery error over the seeds, on one scale."""
    study = found.study
    figure, axes = new_figure(1, len(study.truths), height=3.0)
    highest = 0.0
    for ax, truth in zip(axes[0], study.truths, strict=True):
        settings = [(snr, degree) for snr in study.snrs for degree in study.degrees or (truth.degree,)]
        for shift, (variant, marker) in enumerate(zip((JOINT, NOISE_KNOWN, BY_ALGORITHM_1), MARKERS, strict=False)):
            draws = [found.learnt(truth.key, variant, snr=snr, degree=degree) for snr, degree in settings]
            places = [index for index, fits in enumerate(draws) if fits]
            quartiles = np.array([np.percentile([f["error"] for f in draws[i]], [25, 50, 75]) for i in places])
            low, middle, high = quartiles.T
            highest = max(highest, float(high.max()))
            ax.errorbar(
                np.array(places) + 0.16 * (shift - 1),
                100 * middle,
                100 * np.array([middle - low, high - middle]),
                color=COLOURS[shift],
                marker=marker,
                linestyle="none",
                capsize=2,
                label={NOISE_KNOWN: "jointly, noise known"}.get(variant) or LEARNERS[variant],
            )
        ticks = [f"{snr:g}" if study.degrees is None else str(degree) for snr, degree in settings]
        ax.set_xticks(range(len(settings)), ticks)
        ax.set_xlabel("signal-to-noise ratio (dB)" if study.degrees is None else "degree")
        ax.set_ylabel("relative L2 error (%)")
        ax.set_title(truth.key, fontsize="medium")
        legend_below(ax, 1)
    for ax in axes[0]:
        ax.set_ylim(0, 105 * highest)
    return figure


def draw_fourier(ax: Axes, found: Filters, truth: Truth) -> None:
    """Graph Fourier coefficients of the shown draw, a colour a signal, with the true filter as envelope."""
    shown = found.shown(truth.key, max(found.study.snrs))
    draw_coefficients(ax, shown["eigenvalues"], shown["fourier"])
    truly = Polynomial.from_coefficients(shown["truth"])
    size = np.sqrt(np.mean(np.square(shown["fourier"])) / np.mean(truly.power(shown["eigenvalues"])))
    envelope = 2 * size * truly.response(GRID)  # two standard deviations of the average signal
    ax.plot(GRID, envelope, color="black", linewidth=1, linestyle="--", label="± the true filter, to scale")
    ax.plot(GRID, -envelope, color="black", linewidth=1, linestyle="--")
    ax.set_title(f"{truth.key}: {found.study.n_signals} signals, seed {found.study.seeds[0]}", fontsize="medium")
    legend_below(ax, 1)


def draw_degrees(ax: Axes, found: Filters, truth: Truth, learner: str) -> None:
    """Filters of all degrees that a solver learnt over the truth, scaled by their maximum."""
    study = found.study
    shown = found.shown(truth.key, study.snrs[0])
    _truth(ax, shown)
    for index, degree in enumerate(study.degrees or ()):
        fits = found.learnt(truth.key, learner, degree=degree)
        if fits:
            label = f"degree {degree}: {found.without_2pi(fits[0]['log_likelihood']):.1f}"
            _filter(ax, fits[0]["coefficients"], index, label)
    ax.set_title(f"{truth.key}, {LEARNERS[learner]}", fontsize="medium")
    _filter_axes(ax, shown)


def draw_ratios(ax: Axes, found: Filters, truth: Truth, learner: str) -> None:
    """Filters that a solver learnt at each signal-to-noise ratio over the truth."""
    shown = found.shown(truth.key, found.study.snrs[0])
    _truth(ax, shown)
    for index, snr in enumerate(found.study.snrs):
        fit = found.learnt(truth.key, learner, snr=snr, degree=truth.degree)[0]
        _filter(ax, fit["coefficients"], index, f"{snr:g} dB: {found.without_2pi(fit['log_likelihood']):.1f}")
    ax.set_title(f"{truth.key}, degree {truth.degree}, {LEARNERS[learner]}", fontsize="medium")
    _filter_axes(ax, shown)


def _truth(ax: Axes, shown: Mapping[str, Any]) -> None:
    true = Polynomial.from_coefficients(shown["truth"]).rescaled()
    ax.plot(GRID, true.response(GRID), color="black", linewidth=2.6, alpha=0.75, label="truth")


def _filter(ax: Axes, coefficients: list[float], index: int, label: str) -> None:
    kernel = Polynomial.from_coefficients(coefficients).rescaled()
    ax.plot(GRID, kernel.response(GRID), color=COLOURS[index], linestyle=LINE_STYLES[index], linewidth=1.6, label=label)


def _filter_axes(ax: Axes, shown: Mapping[str, Any]) -> None:
    mark_eigenvalues(ax, shown["eigenvalues"])
    ax.set_ylim(-0.08, 1.08)
    ax.set_xlabel(EIGENVALUE)
    ax.set_ylabel("filter g(λ) / maximum")
    legend_below(ax, 2)
