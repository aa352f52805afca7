"""What was learnt, averaged over models and put into words."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.fields import GraphGP
from spectralgp.learning.fitting import FittedModels
from spectralgp.spectra import Spectrum


def average_response(
    models: Iterable[tuple[float, GraphGP, float]], spectrum: Spectrum, points: Array, which: str
) -> tuple[Array, Array]:
    """Mean and standard deviation over weighted models, each with a factor for its units, of one of their filters.

    Models on another Laplacian are left out, but for those that need no graph.
    """
    weights, values, own = [], [], []
    for weight, model, factor in models:
        kernel = model.graph_kernel
        if not kernel.shares_eigenvectors:
            raise ValueError(
                f"graph_kernel must be a function on the spectrum to have a response; got {type(kernel).__name__}. "
                "Look at the kernels in graph_kernel_ one by one."
            )
        same = (model.spectrum.laplacian, model.spectrum.scaled) == (spectrum.laplacian, spectrum.scaled)
        if weight > 0 and (same or kernel.needs_no_graph):
            weights.append(weight)
            values.append(_filter_of(which)(model, points) * (1.0 if which == "carry" else factor))
            own.append(model.carry.variance(points) if which == "carry" and model.carry is not None else 0 * points)
    shares = np.array(weights) / np.sum(weights)
    mean = shares @ np.array(values)
    return mean, np.sqrt(shares @ ((np.array(values) - mean) ** 2 + np.array(own)))


def _filter_of(which: str) -> Callable[[GraphGP, Array], Array]:
    return {
        "signal": lambda model, points: model.graph_kernel.response(points),
        "residual": lambda model, points: model.residual_response(points),
        "carry": lambda model, points: np.zeros(len(points)) if model.carry is None else model.carry.response(points),
    }[which]


def summary_of(learnt: FittedModels) -> str:
    """A paragraph a model, the heaviest first."""
    fits = learnt.fits
    n_signals, n_nodes = learnt.candidates[0].task.signals.shape
    graph = fits[0].model.spectrum.graph
    lines = [f"{n_signals} signals on {n_nodes} nodes and {graph.n_edges} edges; {_count(len(fits))}."]
    for index in np.argsort(-learnt.weights, kind="stable").tolist():
        fit, candidate = fits[index], learnt.candidates[index]
        model = fit.model
        lines += ["", f"weight {learnt.weights[index]:.2f}: {candidate.described}"]
        lines.append(f"  signal:   {_in_words(model, 'signal')}")
        if model.graph_kernel.residual is not None:
            lines.append(f"  residual: {_in_words(model, 'residual')}")
        if model.carry is not None:
            lines.append(f"  carry:    {_in_words(model, 'carry')}")
        lines.append(f"  inputs:   {model.input_kernel.described}")
        lines.append(f"  noise:    standard deviation {np.sqrt(model.noise_variance):.3g}")
        if candidate.task.signals.observed is not None:
            lines.append(f"  holes:    {fit.method}")
        if candidate.shrunk:
            shrinkage = learnt.draws[index].models[0].shrinkage
            if shrinkage is not None:
                lines.append(
                    f"  shrunk:   {shrinkage.share:.0%} of the covariance from the signals, the rest from the graph"
                )
                lines.append(f"  tails:    those of a t with {shrinkage.freedom:.3g} degrees of freedom")
        if not fit.converged:
            lines.append(f"  fit:      {fit.message}")
    return "\n".join(lines)


def _count(n_models: int) -> str:
    return "one model" if n_models == 1 else f"a mixture of {n_models} models"


def _in_words(model: GraphGP, which: str) -> str:
    """Where a filter is large: its values at both ends of the spectrum, and its largest between."""
    from spectralgp.report.words import kind_of_filter

    points = np.linspace(0.0, model.spectrum.upper, 101)
    values = _filter_of(which)(model, points)
    low, high, peak = float(values[0]), float(values[-1]), float(values[np.argmax(np.abs(values))])
    ends = f"{low:.3g} at frequency 0, {high:.3g} at the highest"
    kind = kind_of_filter(values)
    if kind == "none":
        return "none"
    if kind == "band-pass":
        return f"band-pass ({ends}, {peak:.3g} at {points[np.argmax(np.abs(values))]:.2g})"
    if kind == "low-pass":
        return f"low-pass: neighbours alike ({ends})"
    if kind == "high-pass":
        return f"high-pass: neighbours opposed ({ends})"
    return f"nearly flat: nodes on their own ({ends})"
