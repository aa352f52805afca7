"""Twins of a model for signals of different scale: a scale for each, and inputs weighed by squared error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.fields import GraphGP, Posterior, condition
from spectralgp.kernels import GraphKernel
from spectralgp.learning.candidates import Candidate
from spectralgp.learning.families import learn_all
from spectralgp.learning.fit import Fit, Solver
from spectralgp.learning.objective import Task

ROUNDS = 2  # of finding scales under a model, and learning it from the scaled signals
PRIOR_VALUES = 8.0  # that a scale of one is worth, in the scale of a signal
NODES_PER_VALUE = 4  # of a signal, whose errors at neighbours are alike
SAME_SCALE = 0.3  # standard deviation of the logarithms of squared scales, below which signals have one scale
OTHER_MAXIMUM_NATS = 0.5  # by which a rough fit is likelier than another only where that is at another maximum
AMPLITUDES = np.logspace(-4, 1, 21)  # of what inputs explain, by which its variance is multiplied


def scaled_twin(candidate: Candidate) -> Candidate:
    """A candidate with scales of the signals."""
    name = f"{candidate.name}, signal scales"
    return replace(candidate, name=name, scales_signals=True, warm_start_from=candidate)


def tuned_twin(candidate: Candidate) -> Candidate:
    """A candidate with means of the amplitude that has the least squared error."""
    return replace(candidate, name=f"{candidate.name}, least squares", is_tuned=True, warm_start_from=candidate)


def have_scales(candidate: Candidate, task: Task, model: GraphGP) -> bool:
    """Whether signals differ in scale under a model, so that twins may be of use; they take what is exact and whole."""
    if not candidate.shrunk or task.spectrum.needs_passes or task.signals.has_holes:
        return False
    return float(np.std(2 * np.log(signal_scales(_conditioned(model, task))))) > SAME_SCALE


def learn_candidates(
    candidates: Sequence[Candidate],
    tasks: Sequence[Task],
    solver: Solver,
    starts: Sequence[Fit | None] | None,
    learnt: dict[Candidate, tuple[Task, Fit]] | None = None,
    looks_elsewhere: bool = False,
) -> tuple[list[Task], list[Fit]]:
    """Fits of candidates to tasks, and the tasks that they are fits to, in which signals have their scales.

    What was `learnt` before is not learnt again, and added to: a candidate that is tuned is another one but for means.
    With `looks_elsewhere` a fit that is less likely than a rough one from scratch goes on from that.
    """
    learnt = {} if learnt is None else learnt
    known: Sequence[Fit | None] = starts or [None] * len(candidates)
    places = {candidate.untuned: place for place, candidate in enumerate(candidates) if candidate.untuned not in learnt}
    plain = {one: place for one, place in places.items() if not one.scales_signals}
    own, kernels = [tasks[place] for place in plain.values()], [one.kernel for one in plain]
    fits = learn_all(own, kernels, solver, [known[place] for place in plain.values()])
    if looks_elsewhere:
        rough = learn_all(own, kernels, solver.coarse())
        gains = [other.log_posterior - fit.log_posterior for other, fit in zip(rough, fits, strict=True)]
        for place in (place for place, gain in enumerate(gains) if gain > OTHER_MAXIMUM_NATS):
            (fits[place],) = learn_all([own[place]], [kernels[place]], solver, [rough[place]])
    learnt |= zip(plain, zip(own, fits, strict=True), strict=True)
    for one in places.keys() - plain.keys():
        learnt[one] = _scaled(tasks[places[one]], one.kernel, solver, known[places[one]])
    for one in (one for one in candidates if one.is_tuned):
        task, fit = learnt[one.untuned]
        learnt[one] = task, replace(fit, model=tuned(fit.model, task))
    found = [learnt[one] for one in candidates]
    return [task for task, _ in found], [fit for _, fit in found]


def _scaled(task: Task, kernel: GraphKernel, solver: Solver, start: Fit | None) -> tuple[Task, Fit]:
    """The task with scales of its signals, and the fit to it: expectation-maximisation from a fit without them."""
    fit = learn_all([task], [kernel], solver.coarse())[0] if start is None else start
    scaled = task
    for number in range(ROUNDS):
        scales = signal_scales(_conditioned(fit.model, scaled))
        scaled = replace(task, signals=task.signals.scaled_by_signal(scales))
        (fit,) = learn_all([scaled], [kernel], solver if number == ROUNDS - 1 else solver.coarse(), [fit])
    return scaled, fit


def signal_scales(posterior: Posterior) -> Array:
    """``sqrt(w_n)``, scales of signals by how well each is predicted from the others: equation (18c)."""
    scales, (n_signals, n_nodes) = posterior.signals.units.signal_scales, posterior.signals.shape
    energies = posterior.left_out(posterior.signals.is_centred_by_node and n_signals > 1).lengths / n_nodes
    n_values = n_nodes / NODES_PER_VALUE
    relative = energies if scales is None else energies * scales**2
    squared = (PRIOR_VALUES + n_values * relative) / (PRIOR_VALUES + n_values)
    return np.asarray(np.sqrt(squared / np.mean(squared)))


def tuned(model: GraphGP, task: Task) -> GraphGP:
    """The model with means of the amplitude that has the least squared error of signals left out: equation (18d)."""
    models = [replace(model, mean_amplitude=float(amplitude)) for amplitude in AMPLITUDES]
    return models[int(np.argmin([_left_out_error(_conditioned(one, task)) for one in models]))]


def _left_out_error(posterior: Posterior) -> float:
    """Mean squared error of signals left out one by one, in the units that they came in: equation (10)."""
    signals = posterior.signals
    errors = posterior.left_out(signals.is_centred_by_node and signals.shape[0] > 1).errors
    return float(np.mean(np.square(signals.units.restore_scale(posterior.basis.unload(errors)))))


def _conditioned(model: GraphGP, task: Task) -> Posterior:
    return condition(replace(model, shrinkage=None), task.inputs, task.signals, task.carried)
