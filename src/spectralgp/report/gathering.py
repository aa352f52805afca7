"""The numbers of a report, gathered from a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spectralgp import scores
from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array
from spectralgp.fields import Mixture, Posterior, leave_one_out
from spectralgp.graphs import Graph
from spectralgp.learning.fitting import FittedModels
from spectralgp.report.numbers import (
    Bands,
    Counts,
    LearntFilter,
    Member,
    Numbers,
    Predictions,
    Scores,
    Variance,
    Which,
)
from spectralgp.scores import calibration_of
from spectralgp.spectra import Spectrum

N_POINTS = 200  # at which filters are drawn
N_BINS = 30  # of the spectrum


class Fitted(Protocol):
    """What a report asks of a fitted estimator."""

    graph_: Graph
    spectrum_: Spectrum
    posterior_: Posterior | Mixture

    def response(self, eigenvalues: Any = None, return_std: bool = False, which: Which = "signal") -> Any:
        """A learnt filter."""


def gather(
    model: Fitted,
    learnt: FittedModels,
    names: Sequence[str],
    kept: NDArray[np.bool_],
    held_out: tuple[Sequence[str], Array, Array, Array] | None = None,
) -> Numbers:
    """Everything a report tells of a fitted model.

    Parameters
    ----------
    model : fitted estimator
        What was learnt.
    learnt : FittedModels
        Its models.
    names : sequence of str
        Of the nodes, in the graph's order.
    kept : ndarray of bool
        For each signal that was given at `fit`, whether it had any value, and so is a training signal.
    held_out : tuple of (labels, observed, mean, std), optional
        New signals with their predictions, shapes (n_signals, n_nodes) in the graph's order. If not given, each
        training signal is predicted from all others.

    Raises
    ------
    ValueError
        If the model holds no signals and none are given, or nothing was observed of them.
    """
    graph, heaviest = model.graph_, max(model.posterior_.parts, key=lambda part: part[0])[1]
    training = _training_signals(heaviest)
    if held_out is None and not len(training):
        raise ValueError(
            "model must hold signals to report on, or be given some; got a model without any. Pass X and Y."
        )
    predictions = (
        _of_training(model.posterior_, heaviest, training, kept)
        if held_out is None
        else Predictions("held out", tuple(held_out[0]), *held_out[1:], _node_means(training, held_out[1].shape))
    )
    observed = (predictions.observed, predictions.mean, predictions.std)
    return Numbers(
        graph=graph,
        names=tuple(names),
        counts=_counts(graph, heaviest.inputs, training, kept),
        bands=_bands(model, heaviest),
        predictions=predictions,
        scores=_scores(*observed),
        calibration=calibration_of(scores.pit(*observed)),
        variance=_variance(model.posterior_, heaviest, predictions),
        members=_members(learnt),
        tried=tuple(sorted(learnt.tried, key=lambda one: -one.score)),
        stand_ins=learnt.n_stand_ins,
        has_inputs=heaviest.prior.input_kernel.has_features or heaviest.prior.input_kernel.is_pairwise,
    )


def _training_signals(posterior: Posterior) -> Array:
    """Training signals in the units of the data, NaN where nothing was observed."""
    return _on_host(posterior.signals.units.mean(posterior.values))


def _of_training(
    posterior: Posterior | Mixture, heaviest: Posterior, training: Array, kept: NDArray[np.bool_]
) -> Predictions:
    """Each training signal from all others; from all of them where that has no closed form."""
    labels = tuple(f"row {number}" for number in np.flatnonzero(kept))
    is_large = not heaviest.basis.has_eigenvectors
    if heaviest.seen is not None and is_large:
        prediction = posterior.at(heaviest.prior.input_kernel.as_new(heaviest.inputs))
        mean, std = _on_host(prediction.mean), _on_host(prediction.std(include_noise=True))
        return Predictions("fitted", labels, training, mean, std, _node_means(training, training.shape))
    left = leave_one_out(posterior)
    n_seen = np.sum(np.isfinite(training), axis=0)
    known = np.where(np.isfinite(training), training, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        baseline = (known.sum(axis=0) - known) / (n_seen - np.isfinite(training))
    return Predictions("left out", labels, training, _on_host(left.mean), _on_host(left.std), baseline)


def _on_host(array: Any) -> Array:
    return np.asarray(on_host(array), dtype=float)


def _node_means(training: Array, shape: tuple[int, ...]) -> Array:
    """Means of the nodes over the training signals, repeated; NaN for a node that was never observed."""
    known = np.isfinite(training)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(known, training, 0.0).sum(axis=0) / known.sum(axis=0)
    return np.broadcast_to(means, shape)


def _counts(graph: Graph, inputs: Array, training: Array, kept: NDArray[np.bool_]) -> Counts:
    distinct = {(one.tobytes(), signal.tobytes()) for one, signal in zip(inputs, training, strict=True)}
    missing = ~np.isfinite(training)
    return Counts(
        signals=len(training),
        nodes=graph.n_nodes,
        edges=graph.n_edges,
        components=graph.n_components,
        repeated=len(training) - len(distinct) if inputs.shape[1] else 0,
        empty=int(np.count_nonzero(~kept)),
        missing=int(missing.sum()),
        unseen=int(missing.all(axis=0).sum()) if len(training) else 0,
    )


# ------------------------------------------------------------------------------------------------------- filters


def _bands(model: Fitted, heaviest: Posterior) -> Bands:
    spectrum = model.spectrum_
    # nodes of a quadrature may lie a little beyond the interval
    upper = min(float(np.max(spectrum.eigenvalues)), spectrum.upper) or spectrum.upper
    grid = np.linspace(0.0, upper, N_POINTS)
    edges = np.linspace(0.0, upper, N_BINS + 1)
    bins = np.clip(np.searchsorted(edges, spectrum.eigenvalues, side="right") - 1, 0, N_BINS - 1)
    posteriors = [part for weight, part in model.posterior_.parts if weight > 0]
    knows = heaviest.signals.shape[0] > 0
    filters: list[LearntFilter] = []
    if all(one.prior.graph_kernel.shares_eigenvectors for one in posteriors):
        has: dict[Which, bool] = {
            "signal": True,
            "residual": any(one.prior.graph_kernel.residual is not None for one in posteriors),
            "carry": any(one.prior.carry is not None for one in posteriors),
        }
        filters = [_filter(model, grid, kind, knows) for kind, is_there in has.items() if is_there]
    # the weights of a quadrature may be negative one by one
    eigenvalues = np.maximum(np.bincount(bins, spectrum.multiplicities, N_BINS), 0.0)
    energies = np.zeros(N_BINS)
    if knows:
        own = next((one for one in posteriors if one.prior.spectrum is spectrum), heaviest)
        energies = np.maximum(np.bincount(bins, spectrum.read(own.signals).energies.sum(axis=0), N_BINS), 0.0)
    kind = {"normalized": "normalised"}.get(spectrum.laplacian, spectrum.laplacian)
    laplacian = f"{'scaled ' if spectrum.scaled else ''}{kind} Laplacian"
    return Bands(laplacian, grid, tuple(filters), edges, _shares(eigenvalues), _shares(energies))


def _filter(model: Fitted, grid: Array, which: Which, with_std: bool) -> LearntFilter:
    if not with_std:
        return LearntFilter(which, model.response(grid, which=which), None)
    return LearntFilter(which, *model.response(grid, return_std=True, which=which))


def _shares(amounts: Array) -> Array:
    total = float(amounts.sum())
    return amounts / total if total > 0 else amounts


# ---------------------------------------------------------------------------------------------------- predictions


def _scores(observed: Array, mean: Array, std: Array) -> Scores:
    known = np.isfinite(observed)
    return Scores(
        n_values=int(known.sum()),
        error=scores.root_mean_square_error(observed, mean),
        spread=float(np.sqrt(np.mean(np.square(std[known])))),
        crps=float(np.nanmean(scores.crps(observed, mean, std))),
        log_density=scores.mean_log_density(observed, mean, std),
    )


def _variance(posterior: Posterior | Mixture, heaviest: Posterior, predictions: Predictions) -> Variance:
    prior, basis = heaviest.prior, heaviest.prior.graph_basis
    inputs = heaviest.input_variance if heaviest.inputs.shape[0] else 1.0
    parts = np.array(
        [
            inputs * float(basis.mean(prior.power)),
            float(basis.mean(prior.graph_kernel.residual_power(basis.eigenvalues))),
            _carried_variance(heaviest),
            prior.noise_variance,
        ]
    )
    with_neighbours = None
    if predictions.source == "left out" and basis.has_eigenvectors:
        with_neighbours = _explained(predictions, np.asarray(leave_one_out(posterior, "entry").mean))
    from_inputs, neighbours, carry, noise = (parts / parts.sum()).tolist()
    predicted = _explained(predictions, predictions.mean)
    return Variance(from_inputs, neighbours, carry, noise, predicted, with_neighbours)


def _carried_variance(posterior: Posterior) -> float:
    if posterior.carried is None:
        return 0.0
    values = posterior.prior.carried_values(posterior.carried, posterior.inputs, posterior.signals.units)
    return float(np.var(_on_host(values)))


def _explained(predictions: Predictions, mean: Array) -> float | None:
    """Share of the squared distance to the nodes' means that predictions take away; None where there is none."""
    baseline, observed = predictions.baseline, predictions.observed
    known = np.isfinite(observed) & np.isfinite(baseline)
    total = float(np.sum(np.square((observed - baseline)[known])))
    return 1 - float(np.sum(np.square((observed - mean)[known]))) / total if total > 0 else None


def _members(learnt: FittedModels) -> tuple[Member, ...]:
    order = np.argsort(-learnt.weights, kind="stable").tolist()
    return tuple(
        Member(
            learnt.candidates[index].described,
            float(learnt.weights[index]),
            learnt.fits[index],
            str(learnt.fits[index].model.input_kernel.described),
        )
        for index in order
    )
