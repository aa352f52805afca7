"""Answers of fitted models: filters, summary, imputed values, and the models conditioned on other data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralgp._basics.arrays import few_threads, on_host
from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp.graphs import GraphBase
from spectralgp.learning import Candidate, Draws, FittedModels
from spectralgp.learning.fitting import Shown
from spectralgp.learning.missing import expectation_of, objective_of
from spectralgp.model import fields
from spectralgp.model.kernels import GraphKernel
from spectralgp.model.signals import Units, no_signals, read_in
from spectralgp.model.spectra import Spectrum

if TYPE_CHECKING:
    from spectralgp.show.report.shapes import FilterShape

SAME_VALUE = 64 * np.finfo(float).eps  # relative change of values by scaling and scaling back, at most
FIRST_COMPARED = 8  # nodes by which signals are compared first


def average_response(models: Iterable[Shown], spectrum: Spectrum, points: Array, which: str) -> tuple[Array, Array]:
    """Mean and standard deviation of a filter over weighted models, but those that need another Laplacian."""
    weights, values, own = [], [], []
    for weight, model, factor, carried in models:
        kernel = model.graph_kernel
        if not kernel.shares_eigenvectors:
            raise ValueError(
                f"graph_kernel must be a function on the spectrum to have a response; got {type(kernel).__name__}. "
                "Look at the kernels in graph_kernel_ one by one."
            )
        same = (model.spectrum.laplacian, model.spectrum.scaled) == (spectrum.laplacian, spectrum.scaled)
        if same or kernel.needs_no_graph:
            weights.append(weight)
            values.append(_filter_of(model, points, which, carried) * (1.0 if which == "carry" else factor))
            own.append(model.carry.variance(points) if which == "carry" and model.carry is not None else 0 * points)
    shares = np.array(weights) / np.sum(weights)
    mean = shares @ np.array(values)
    return mean, np.sqrt(shares @ ((np.array(values) - mean) ** 2 + np.array(own)))


def _filter_of(model: fields.GraphGP, points: Array, which: str, carried: float) -> Array:
    if which == "signal":
        return model.graph_kernel.response(points)
    if which == "residual":
        return model.residual_response(points)
    return carried + (np.zeros(len(points)) if model.carry is None else model.carry.response(points))


def mixture_summary(learnt: FittedModels) -> str:
    """Return a summary of the learnt models: one paragraph each, the largest weight first."""
    from spectralgp.show.report.words import count

    n_signals, n_nodes = learnt.candidates[0].task.signals.shape
    graph = learnt.raw_fits[0].model.spectrum.graph
    n_models = int(np.sum(learnt.weights > 0))
    models = "one model" if n_models == 1 else f"a mixture of {n_models} models"
    sizes = f"{count(n_signals, 'signal')} on {count(n_nodes, 'node')} and {count(graph.n_edges, 'edge')}"
    lines = [f"{sizes}; {models}."]
    if learnt.note:
        lines.append(learnt.note)
    if learnt.order is not None:
        lines.append(learnt.order_words)
    if learnt.graph_parameters is not None:
        lines.append(str(learnt.graph_parameters))
    for member in np.argsort(-learnt.weights, kind="stable").tolist():
        lines += ["", f"weight {learnt.weights[member]:.2f}: {learnt.candidates[member].described}"]
        lines += [f"  {name + ':':<9} {text}" for name, text in _member_words(learnt, member)]
    return "\n".join(lines)


def _member_words(learnt: FittedModels, member: int) -> Iterator[tuple[str, str]]:
    """Names and descriptions of the filters, inputs, noise and corrections of one model."""
    candidate, first = learnt.candidates[member], learnt.draws[member].models[0]
    fit = candidate.in_units(learnt.raw_fits[member])
    model, signals = fit.model, candidate.task.signals
    has = {
        "signal": True,
        "residual": model.graph_kernel.residual is not None,
        "carry": model.carry is not None or bool(candidate.carried),
    }
    # draws say nothing of a model without a weight
    drawn = [learnt.shown[member]] if signals.shape[0] and learnt.weights[member] else []
    for which in (which for which, is_there in has.items() if is_there):
        if not model.graph_kernel.shares_eigenvectors:
            yield which, "not a function on the spectrum"
            continue
        shape = filter_shape([(1.0, model, 1.0, candidate.carried)], drawn, model.spectrum, which)
        values = "" if shape.kind == "none" else f" ({shape.values})"
        yield which, f"{shape.meaning(which == 'carry')}{values}"
    yield "inputs", str(model.input_kernel.described)
    deviation = f"standard deviation {np.sqrt(candidate.noise_of(model)):.3g}"
    if model.likelihood is None:
        yield "noise", deviation
        if not signals.is_complete:
            yield "missing", fit.method
    else:
        yield "white", f"{deviation}, of the latent signals"
        yield "observed", f"{model.likelihood}; {fit.method}"
    if (scales := signals.units.signal_scales) is not None:
        yield "scales", f"of signals, from {scales.min():.2g} to {scales.max():.2g}"
    if first.mean_amplitude != 1.0:
        yield "means", f"{first.mean_amplitude:.2g} times the variance by inputs, for the least squared error"
    if candidate.shrunk and first.shrinkage is not None:
        yield "shrunk", f"{first.shrinkage.data_weight:.0%} of the covariance from the signals, the rest from the graph"
        yield "tails", f"of a t distribution with {first.shrinkage.freedom:.3g} degrees of freedom"
    if not fit.converged:
        yield "fit", fit.message


def filter_shape(
    fitted: Sequence[Shown], drawn: Sequence[Sequence[Shown]], spectrum: Spectrum, which: str
) -> FilterShape:
    """Shape of a filter of weighted models, uncertain by draws of their hyperparameters unless it carries over."""
    from spectralgp.show.report.shapes import representative_modes, shape_of

    modes = representative_modes(spectrum)
    values, _ = average_response(fitted, spectrum, modes[0], which)
    draws = None
    if drawn and which != "carry":
        parts = [part for part in drawn if any(share for share, *_ in part)]
        chosen = zip(*(_resampled(part, max(map(len, parts))) for part in parts), strict=True)
        draws = np.array([average_response(one, spectrum, modes[0], which)[0] for one in chosen])
    return shape_of(modes, values, draws)


def _resampled(draws: Sequence[Shown], number: int) -> list[Shown]:
    """A number of draws of one model, resampled by their weights, each with the total weight."""
    ends = np.cumsum([share for share, *_ in draws])
    places = np.searchsorted(ends, ends[-1] * (np.arange(number) + 0.5) / number)
    return [(float(ends[-1]), *draws[place][1:]) for place in places.tolist()]


def imputed_signals(
    posterior: fields.Posterior | fields.Mixture | fields.LatentPosterior,
    features: Any,
    signals: Array,
    rows: Indices,
    observed_by: fields.ObservationModel | None = None,
) -> tuple[Array, Array]:
    """Signals with their missing values imputed, and the predictive variances of these values.

    `rows` are their numbers among the training signals, -1 for new ones, observed by `observed_by` if it is given.
    """
    first = posterior.parts[0][1]
    values, variances = signals.copy(), np.zeros(signals.shape)
    # matrices are of nodes if their vectors are known, of signals otherwise
    largest = max(first.covariance.shape) if first.covariance.is_written_out else first.covariance.shape[0]
    for chosen in (rows >= 0, rows < 0):
        missing = np.isnan(signals) & chosen[:, None]
        if not missing.any():
            continue
        found: fields.PredictiveDistribution
        with few_threads(largest):
            if rows[chosen][0] >= 0:
                found = posterior.imputed(rows[chosen])
            else:
                new: fields.PredictiveDistribution = posterior.at(first.prior.input_kernel.form.some(features, chosen))
                own = None if observed_by is None else observed_by.some(chosen)
                found = fields.observed_with(new, own).given(signals[chosen])
            values[missing] = found.values[missing[chosen]]
            variances[missing] = found.values_variance()[missing[chosen]]
    return values, variances


def training_numbers(posterior: fields.Posterior | fields.LatentPosterior, features: Any, signals: Array) -> Indices:
    """Number of the training signal with the inputs and values of each signal; -1 for new ones.

    The nearest training signal with the same inputs and missing values is taken, if every value differs by rounding
    alone; of equal ones, one not taken yet.
    """
    rows = np.full(len(signals), -1, dtype=np.intp)
    if not posterior.inputs.shape[0]:  # no signals yet
        return rows
    if posterior.transformation is not None:
        features = posterior.transformation.inputs(features)
    known, offset = np.asarray(on_host(posterior.given_signals), dtype=float), on_host(posterior.signals.units.offset)
    # a value was rounded at the size of what was subtracted, a mean of all at that of the largest
    tolerance = np.broadcast_to(SAME_VALUE * (np.nanmax(np.abs(known)) + np.abs(offset)), signals.shape[1:])
    n_taken, is_missing = np.zeros(len(known), dtype=np.intp), np.isnan(known)
    for number, equal in enumerate(posterior.prior.input_kernel.form.equal_rows(posterior.inputs, features)):
        seen = np.flatnonzero(~np.isnan(signals[number]))
        candidates = np.array(equal, dtype=np.intp)
        candidates = candidates[np.all(is_missing[candidates] == np.isnan(signals[number]), axis=1)]
        distances = np.zeros(candidates.size)
        for nodes in (seen[:FIRST_COMPARED], seen):  # most signals differ at the first of them
            apart = np.abs(known[candidates[:, None], nodes] - signals[number, nodes])
            near = np.all(apart <= tolerance[nodes], axis=1)
            candidates, distances = candidates[near], apart[near].max(axis=1, initial=0.0)
        if candidates.size:
            rows[number] = candidates[np.lexsort((n_taken[candidates], distances))[0]]
            n_taken[rows[number]] += 1
    return rows


def evidence_at(learnt: FittedModels, theta: Array) -> tuple[float, Array]:
    """Log marginal likelihood of the given signals at hyperparameters, and its gradient in these."""
    candidate, (fit,) = learnt.candidates[0], learnt.raw_fits
    task = candidate.learning
    objective = objective_of(task, fit.model)
    volume = candidate.in_units(fit).log_likelihood - fit.log_likelihood  # of the units of the fit
    if task.is_complete:
        evidence = objective.evidence(theta)
        return evidence.log_likelihood + volume, evidence.gradient
    model = replace(objective.model(theta, carries=False), likelihood=fit.model.likelihood)
    value, _ = expectation_of(task).log_likelihood(model)
    return value + volume, objective.completed(theta).evidence(theta).gradient


def with_more_signals(
    learnt: FittedModels, features: Any, signals: Array, observed_by: fields.ObservationModel | None = None
) -> FittedModels:
    """Learnt models conditioned on more signals, with inputs in the form that kernels take."""
    candidates, draws = [], learnt.draws
    if learnt.posterior.is_averaged:
        mixture: Any = fields.observed_with(learnt.posterior.at(features), observed_by)
        shares = mixture.weights_given(signals)
        pairs = zip(draws, learnt.weights, strict=True)
        draws = tuple(replace(one, weights=shares) if weight else one for one, weight in pairs)
    for candidate in learnt.candidates:
        task, units, new, seen = candidate.task, candidate.task.signals.units, features, signals
        if candidate.transformation is not None:
            new = candidate.transformation.inputs(features)
            seen = candidate.transformation.signals(signals, new)
        # by NumPy or, if the training signals are on its workers, by Dask
        known = units.informed_by(seen).with_new(len(seen))
        training = read_in(known, np.concatenate([units.restore(task.signals.values), seen]))
        inputs = task.input_kernel.form.joined(task.inputs, new)
        own = task.observed_by
        if own is not None and observed_by is not None:
            own = own.followed_by(observed_by)
        more = replace(task, inputs=inputs, signals=training, observed_by=own)
        candidates.append(replace(candidate, task=more))
    return replace(learnt, draws=draws).conditioned_anew(candidates)


def without_entries(learnt: FittedModels, hidden: Mask) -> fields.Posterior | fields.Mixture:
    """Posterior of learnt models without some entries of their training signals, in the same units."""
    candidates, draws = [], []
    for candidate, drawn in zip(learnt.candidates, learnt.draws, strict=True):
        task, units = candidate.task, candidate.task.signals.units
        values = np.asarray(on_host(units.restore(task.signals.as_observed)), dtype=float)
        training = read_in(units, np.where(hidden, np.nan, values))
        candidates.append(replace(candidate, task=replace(task, signals=training)))
        # the covariance of the signals is learnt without those entries
        draws.append(replace(drawn, models=tuple(replace(model, shrinkage=None) for model in drawn.models)))
    return replace(learnt, draws=tuple(draws)).conditioned_anew(candidates).posterior


def moved_to_graph(learnt: FittedModels, graph: GraphBase) -> FittedModels:
    """Learnt models on another graph, without signals, and with a common level and scale for all nodes."""
    candidates: list[Candidate] = []
    fits, notes = [], list[str]()
    for candidate, fit in zip(learnt.candidates, learnt.raw_fits, strict=True):
        task, units = candidate.task, candidate.task.signals.units
        transformation = candidate.transformation
        if task.observed_by is not None:
            raise ValueError(
                "likelihood must be 'gaussian' to transfer a model, without covariates or noise known per entry; got "
                "another. Fit a model to values on the other graph."
            )
        if task.carried is not None or (transformation is not None and transformation.is_of_nodes):
            raise ValueError(
                "carry must be None to transfer a model, since columns of X belong to the nodes of one graph; got "
                "a model that carries them over. Fit it with carry=None."
            )
        moved = Units(float(np.mean(on_host(units.offset))), units.spread)
        inputs = task.input_kernel.form.subset(task.inputs, np.empty(0, dtype=np.intp))
        own = replace(task, graph=graph, inputs=inputs, signals=no_signals(graph.n_nodes, moved))
        candidates.append(replace(candidate, task=own, shrunk=False, learnt_from=None))
        kernel, spectrum = fit.model.graph_kernel, own.spectrum_of(fit.model.graph_kernel)
        moved_kernel = kernel.moved_to(spectrum, fit.model.spectrum)
        if moved_kernel is not kernel:
            notes += _changed(kernel, moved_kernel, fit.model.spectrum.eigenvalues)
        fits.append(replace(fit, model=replace(fit.model, spectrum=spectrum, graph_kernel=moved_kernel)))
    draws = tuple(Draws((fit.model,)) for fit in fits)
    learnt = replace(learnt, raw_fits=tuple(fits), draws=draws, note=" ".join(notes), graph_parameters=None)
    return learnt.conditioned_anew(candidates)


def _changed(before: GraphKernel, after: GraphKernel, eigenvalues: Array) -> list[str]:
    """Sentences about changes of the filters by moving to another graph."""
    said = []
    for name, old, new in (
        ("filter", before.power(eigenvalues), after.power(eigenvalues)),
        ("residual filter", before.residual_power(eigenvalues), after.residual_power(eigenvalues)),
    ):
        old, new = np.sqrt(old), np.sqrt(new)
        change = np.max(np.abs(new - old)) / np.max(old, initial=0.0) if np.any(old) else 0.0
        if change > 0:
            said.append(
                f"Transferred: the {name} of {before.label} was negative between the frequencies that it was learnt "
                f"on, and is replaced by the nearest polynomial that is nowhere negative; at these frequencies they "
                f"differ by at most {change:.1%} of the largest value."
            )
    return said
