"""Many signals: learning from some, conditioning on all by a low rank, and an estimate of the time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.progress import mention
from spectralgp.learning.candidates import Candidate
from spectralgp.learning.draws import Draws
from spectralgp.learning.fit import Fit
from spectralgp.learning.folds import MOST_MEMBERS
from spectralgp.learning.missing import with_evidence
from spectralgp.model.fields import GraphGP, Posterior, greedy_points, posterior_of
from spectralgp.model.kernels import held_out_inputs
from spectralgp.model.spectra import modes_of

LEARNT_FROM = 1_000  # signals in a random subset of more
MOST_EXACT = 6_000  # signals that are conditioned on exactly
RANK = 500  # inducing inputs for more signals
HELD_OUT = 200  # signals for the comparison of low rank and subset

# Cost of a fit in eigendecompositions of a matrix, whose time is measured on a sample
SAMPLE_ROWS = 512
COMPARED_ROWS, COMPARED_STEPS = 320, 325  # rows and evaluations on folds, of all models of the default
LEARNING_STEPS = 20  # evaluations on the training signals, per model
EVALUATION = 2.0  # of the likelihood, with its gradient and curvature
PASS = 0.4  # product of a matrix of signals by signals with the signals
CONDITIONING_PASSES = 10
NODE_MATRICES = 4  # eigendecompositions of nodes by nodes per model


def rows_to_learn_from(n_signals: int, random_state: np.random.Generator) -> Indices:
    """Random subset of many signals to learn from."""
    return np.sort(random_state.spawn(1)[0].permutation(n_signals)[:LEARNT_FROM])


def expected_seconds(shape: tuple[int, int], n_models: int, is_choice: bool) -> float:
    """Rough time of learning models from a subset of the signals and conditioning them on all."""
    n_signals, n_nodes = shape
    sample = np.random.default_rng(0).standard_normal((SAMPLE_ROWS, SAMPLE_ROWS))
    start = time.perf_counter()
    modes_of(sample @ sample.T)
    unit = (time.perf_counter() - start) / SAMPLE_ROWS**3

    def evaluation(n_rows: int) -> float:
        return EVALUATION * n_rows**3 + 2 * PASS * n_rows**2 * n_nodes

    compared = COMPARED_STEPS * evaluation(COMPARED_ROWS) if is_choice else 0.0
    rank, n_times = (n_signals, 1) if n_signals <= MOST_EXACT else (RANK, 3)
    conditioned = rank**2 * n_signals + CONDITIONING_PASSES * PASS * rank * n_signals * n_nodes
    conditioned = n_times * (conditioned + NODE_MATRICES * n_nodes**3)
    return unit * (compared + n_models * (LEARNING_STEPS * evaluation(LEARNT_FROM) + conditioned))


def time_message(shape: tuple[int, int], n_models: int, is_choice: bool) -> str:
    """Message on the treatment of many signals and its time."""
    minutes = expected_seconds(shape, MOST_MEMBERS if is_choice else n_models, is_choice) / 60
    long = "less than a minute" if minutes < 1 else f"about {minutes:.0f} minute{'s' if minutes >= 1.5 else ''}"
    all_of_them = "all" if shape[0] <= MOST_EXACT else f"all by {RANK} of them, unless those {LEARNT_FROM:,} do better"
    return f"{shape[0]:,} signals: learning from {LEARNT_FROM:,} drawn at random, conditioning on {all_of_them}; {long}"


def conditioning(
    candidates: Sequence[Candidate],
    drawn: Sequence[Draws],
    weights: Array,
    rows: Indices,
    random_state: np.random.Generator,
) -> tuple[Sequence[Candidate], Sequence[Draws], str, Indices | None]:
    """Choose how to condition: on all signals exactly or, if they are very many, by a low rank or on `rows` alone.

    Held-out log densities under the model of the largest weight decide. Missing values take the low rank, which imputes
    all signals. Hyperparameters were learnt from `rows`. Returns candidates with the signals to condition on, their
    models, a note for the summary, and the rows that are conditioned on, if not all.
    """
    task = candidates[0].task
    n_signals, note = task.signals.shape[0], f"Hyperparameters are learnt from {rows.size} signals drawn at random"
    if n_signals <= MOST_EXACT:
        return candidates, drawn, f"{note}; all are conditioned on.", None
    mention("inducing inputs")
    held_out = random_state.spawn(1)[0].permutation(np.setdiff1d(np.arange(n_signals), rows))[:HELD_OUT]
    kept = np.setdiff1d(np.arange(n_signals), held_out)
    low = []
    for candidate, own in zip(candidates, drawn, strict=True):  # models with inducing inputs among those kept
        kernel, points = own.models[0].input_kernel, np.empty(0, dtype=np.intp)
        if not kernel.is_identity:  # exact without any
            points = kept[greedy_points(kernel, kernel.form.subset(candidate.task.inputs, kept), RANK)]
        low.append(replace(own, models=tuple(replace(model, points=points) for model in own.models)))
    by_rank = f"{note}; all are conditioned on by a covariance of rank {RANK}"
    if task.signals.has_missing:
        return candidates, low, f"{by_rank}.", None
    heaviest = int(np.argmax(weights))
    candidate = candidates[heaviest]
    mention(f"{held_out.size} signals held out from all, and from those learnt from")
    by_all = _log_densities(candidate, low[heaviest].models[0], kept, held_out)
    by_some = _log_densities(candidate, drawn[heaviest].models[0], rows, held_out)
    compared = f"{held_out.size} others have log densities of {by_all:.5g} by all and {by_some:.5g} by those alone"
    if by_all > by_some:
        return candidates, low, f"{by_rank}: {compared}.", None
    parts = {one.task: one.learning for one in candidates}  # candidates with one task share its part
    alone = [replace(one, task=parts[one.task], learnt_from=None) for one in candidates]
    return alone, drawn, f"{note}, and these alone are conditioned on: {compared}.", rows


def _log_densities(candidate: Candidate, model: GraphGP, kept: Indices, held_out: Indices) -> float:
    """Mean log density of held-out signals given those kept."""
    task = candidate.task
    if model.points is not None:
        model = replace(model, points=np.searchsorted(kept, model.points))
    posterior = candidate.condition(model, task.part(kept, task.signals.some(kept)))
    new = held_out_inputs(model.input_kernel, task.inputs, kept, held_out)
    prediction = posterior.given(new, task.inputs[held_out])
    return float(np.mean(posterior.log_densities_of(prediction, task.signals.some(held_out))))


def with_full_evidence(candidate: Candidate, fit: Fit, drawn: Draws, posteriors: Sequence[Posterior]) -> Fit:
    """Fit to a subset of the signals with the evidence of all of them, if they are complete."""
    part, task, model = candidate.learning, candidate.task, replace(fit.model, points=drawn.models[0].points)
    fit = with_evidence(part, fit)
    detail = f"{fit.detail}; learnt from {part.signals.shape[0]} of {task.signals.shape[0]} signals, drawn at random"
    # densities of the subset are in its own units
    fit = fit.shifted(task.signals.log_volume - part.signals.log_volume)
    if task.signals.has_missing:  # the evidence of all would dominate the cost
        return replace(fit, detail=f"{detail}, of which the likelihood is")
    known = (one.covariance.rows for one in posteriors if one.prior.input_kernel is model.input_kernel)
    value = posterior_of(model, task.inputs, task.signals, task.carried, rows=next(known, None)).log_evidence()
    log_posterior = value + fit.log_posterior - fit.log_likelihood
    return replace(fit, log_likelihood=value, log_posterior=log_posterior, detail=detail)
