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
from reproduction.experiments import FilterStudy, Truth
from reproduction.tables import Results, learnt, without_2pi
from spectralgp import Polynomial
from spectralgp.plots import LINE_STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def filter_figure(study: FilterStudy, results: Results) -> Figure:
    """A row a truth: graph Fourier coefficients of the signals, and the filters learnt."""
    figure, axes = new_figure(len(study.truths), 2, width=4.6)
    for (left, right), truth in zip(axes, study.truths, strict=True):
        draw_fourier(left, results, truth)
        draw_degrees(right, study, results, truth)
    return figure


def noise_figure(study: FilterStudy, results: Results) -> Figure:
    """A panel a truth: the filters learnt at each signal-to-noise ratio."""
    figure, axes = new_figure(1, len(study.truths))
    for ax, truth in zip(axes[0], study.truths, strict=True):
        draw_ratios(ax, study, results, truth)
    return figure


def first_figure(sensor: FilterStudy, of_sensor: Results, noise: FilterStudy, of_noise: Results) -> Figure:
    """The paper's Fig. 1, with the high-pass filter in a third row."""
    figure, axes = new_figure(len(sensor.truths), 3)
    for row, truth in zip(axes, sensor.truths, strict=True):
        draw_fourier(row[0], of_sensor, truth)
        draw_degrees(row[1], sensor, of_sensor, truth)
        draw_ratios(row[2], noise, of_noise, truth)
    return figure


def error_figure(study: FilterStudy, results: Results) -> Figure:
    """A panel a truth: medians and quartiles of the recovery error over the seeds."""
    figure, axes = new_figure(1, len(study.truths), height=3.0)
    for ax, truth in zip(axes[0], study.truths, strict=True):
        settings = [(snr, degree) for snr in study.snrs for degree in study.degrees or (truth.degree,)]
        for shift, (variant, marker) in enumerate(zip(("sqp", "noise known", "Algorithm 1"), MARKERS, strict=False)):
            draws = [learnt(results, truth.key, variant, snr=snr, degree=degree) for snr, degree in settings]
            places = [index for index, fits in enumerate(draws) if len(fits) == len(study.seeds)]
            if not places:
                continue
            quartiles = np.array([np.percentile([f["error"] for f in draws[i]], [25, 50, 75]) for i in places])
            low, middle, high = quartiles.T
            ax.errorbar(
                np.array(places) + 0.16 * (shift - 1),
                100 * middle,
                100 * np.array([middle - low, high - middle]),
                color=COLOURS[shift],
                marker=marker,
                linestyle="none",
                capsize=2,
                label={"noise known": "sqp, noise known"}.get(variant, variant),
            )
        ticks = [f"{snr:g}" if study.degrees is None else str(degree) for snr, degree in settings]
        ax.set_xticks(range(len(settings)), ticks)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("signal-to-noise ratio (dB)" if study.degrees is None else "degree")
        ax.set_ylabel("relative L2 error (%)")
        ax.set_title(truth.key, fontsize="medium")
        legend_below(ax, 3)
    return figure


def draw_fourier(ax: Axes, results: Results, truth: Truth) -> None:
    """Graph Fourier coefficients of the shown draw, a colour a signal, with the true filter as envelope."""
    shown = _shown(results, truth, max(job["snr"] for job in results["jobs"]))
    draw_coefficients(ax, shown["eigenvalues"], shown["fourier"])
    truly = Polynomial.from_coefficients(shown["truth"])
    size = np.sqrt(np.mean(np.square(shown["fourier"])) / np.mean(truly.power(shown["eigenvalues"])))
    envelope = 2 * size * truly.response(GRID)  # two standard deviations of the average signal
    ax.plot(GRID, envelope, color="black", linewidth=1, linestyle="--", label="± the true filter, to scale")
    ax.plot(GRID, -envelope, color="black", linewidth=1, linestyle="--")
    ax.set_title(f"{truth.key} signals", fontsize="medium")
    legend_below(ax, 1)


def draw_degrees(ax: Axes, study: FilterStudy, results: Results, truth: Truth) -> None:
    """Learnt filters of all degrees over the truth, scaled by their maximum."""
    shown = _shown(results, truth, study.snrs[0])
    _truth(ax, shown)
    for index, degree in enumerate(study.degrees or ()):
        fit = learnt(results, truth.key, "sqp", snr=study.snrs[0], degree=degree)[0]
        label = f"degree {degree}: {without_2pi(fit['log_likelihood'], study):.1f}"
        _filter(ax, fit["coefficients"], index, label)
    known = learnt(results, truth.key, "noise known", snr=study.snrs[0], degree=truth.degree)[0]
    curve = Polynomial.from_coefficients(known["coefficients"]).rescaled().response(GRID)
    ax.plot(
        GRID, curve, color="0.55", linewidth=1.2, marker="x", markevery=25, label=f"degree {truth.degree}, noise known"
    )
    ax.set_title(f"{truth.key}: filters learnt", fontsize="medium")
    _filter_axes(ax, shown, 2)


def draw_ratios(ax: Axes, study: FilterStudy, results: Results, truth: Truth) -> None:
    """Learnt filters at each signal-to-noise ratio over the truth."""
    shown = _shown(results, truth, study.snrs[0])
    _truth(ax, shown)
    for index, snr in enumerate(study.snrs):
        fit = learnt(results, truth.key, "sqp", snr=snr, degree=truth.degree)[0]
        _filter(ax, fit["coefficients"], index, f"{snr:g} dB: {without_2pi(fit['log_likelihood'], study):.1f}")
    ax.set_title(f"{truth.key}, degree {truth.degree}: noise", fontsize="medium")
    _filter_axes(ax, shown, 2)


def _shown(results: Results, truth: Truth, snr: float) -> dict[str, Any]:
    found: dict[str, Any] = next(
        job["shown"] for job in results["jobs"] if job["truth"] == truth.key and job["snr"] == snr and "shown" in job
    )
    return found


def _truth(ax: Axes, shown: Mapping[str, Any]) -> None:
    true = Polynomial.from_coefficients(shown["truth"]).rescaled()
    ax.plot(GRID, true.response(GRID), color="black", linewidth=2.6, alpha=0.75, label="truth")


def _filter(ax: Axes, coefficients: list[float], index: int, label: str) -> None:
    kernel = Polynomial.from_coefficients(coefficients).rescaled()
    ax.plot(GRID, kernel.response(GRID), color=COLOURS[index], linestyle=LINE_STYLES[index], linewidth=1.6, label=label)


def _filter_axes(ax: Axes, shown: Mapping[str, Any], n_columns: int) -> None:
    mark_eigenvalues(ax, shown["eigenvalues"])
    ax.set_ylim(-0.08, 1.08)
    ax.set_xlabel(EIGENVALUE)
    ax.set_ylabel("filter g(λ) / maximum")
    legend_below(ax, n_columns)
