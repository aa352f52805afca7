"""Held-out densities against learning and conditioning by hand, fold by fold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GRAPHS
from spectralgp._progress import telling
from spectralgp.graph_kernels import Diffusion, Polynomial
from spectralgp.learning import Sqp, Task, held_out_log_densities, hyperparameter_draws, learn, learn_all, n_steps
from spectralgp.posterior import condition
from spectralgp.signals import read_signals
from tolerances import FORMULA

N_SIGNALS = 9
GRAPH = GRAPHS["random"]
INPUTS = np.random.default_rng(0).uniform(-2, 2, (N_SIGNALS, 2))
SIGNALS = np.random.default_rng(1).standard_normal((N_SIGNALS, 7)).cumsum(axis=1)
SIGNALS = SIGNALS - SIGNALS.mean()
COVARIANCE = oracle.rbf(INPUTS, INPUTS, 1.2)
KERNELS = [Polynomial(1), Diffusion()]
TASKS = {
    "kernel": Task.of(GRAPH, RBF(1.0), INPUTS, SIGNALS),
    "precomputed": Task.of(GRAPH, "precomputed", COVARIANCE, SIGNALS),
    "independent": Task.of(GRAPH, None, np.empty((N_SIGNALS, 0)), SIGNALS, noise_variance=0.3, prior=None),
}


def dense_densities(model, covariance, kept, held_out):
    """Log density of each held-out signal alone, from the dense conditional covariance."""
    node_covariance = model.node_covariance()
    logs = []
    for index in held_out:
        rows = [*kept, index]
        mean, matrix = oracle.predict(
            SIGNALS[kept], covariance[np.ix_(rows, rows)], node_covariance, model.noise_variance
        )
        logs.append(oracle.log_density(SIGNALS[index], mean, matrix + model.noise_variance * np.eye(7)))
    return np.array(logs)


def covariance_of(task, model):
    if task.input_kernel.described is None:
        return np.eye(N_SIGNALS)
    return (
        COVARIANCE
        if task.input_kernel.described == "precomputed"
        else oracle.rbf(INPUTS, INPUTS, model.input_kernel.kernel.length_scale)
    )


@pytest.mark.parametrize("n_draws", [0, 3])
@pytest.mark.parametrize("name", TASKS)
def test_held_out_densities_are_those_done_by_hand(name, n_draws):
    task = TASKS[name]
    actual = held_out_log_densities(task, KERNELS, n_folds=3, n_draws=n_draws, random_state=np.random.default_rng(4))
    shuffled, *streams = np.random.default_rng(4).spawn(4)
    expected, first = np.empty((N_SIGNALS, 2)), None
    for held_out, rng in zip(np.array_split(shuffled.permutation(N_SIGNALS), 3), streams, strict=True):
        kept = np.array([n for n in range(N_SIGNALS) if n not in held_out])
        part = task.fold(kept, held_out)[0]
        assert oracle.relative_error(part.signals.values, SIGNALS[kept]) < FORMULA
        # the first fold from scratch, the others from its solutions where there is a prior
        fits = [learn(part, kernel) for kernel in KERNELS] if first is None else learn_all(part, KERNELS, like=first)
        first = None if task.prior is None else first or fits
        for column, (fit, own) in enumerate(zip(fits, rng.spawn(2), strict=True)):
            models = hyperparameter_draws(part, fit, n_draws, own).models if n_draws else (fit.model,)
            logs = [dense_densities(model, covariance_of(task, model), kept, held_out) for model in models]
            expected[held_out, column] = logsumexp(logs, axis=0) - np.log(len(models))
    assert oracle.relative_error(actual, expected) < FORMULA


def test_every_fold_reports_its_progress():
    steps = []
    with telling(steps.append):
        held_out_log_densities(TASKS["kernel"], KERNELS, n_folds=4, n_draws=0, random_state=np.random.default_rng(0))
    assert len(steps) == 4 * n_steps(KERNELS, Sqp())


def test_folds_do_not_depend_on_draws_or_on_the_other_kernels():
    """The same random state cuts the same folds, and draws the same, whatever else is asked for."""
    task = TASKS["kernel"]

    def densities(kernels, n_draws):
        return held_out_log_densities(task, kernels, n_folds=3, n_draws=n_draws, random_state=np.random.default_rng(4))

    for n_draws in (0, 3):
        np.testing.assert_array_equal(densities(KERNELS[:1], n_draws)[:, 0], densities(KERNELS, n_draws)[:, 0])


def test_a_fold_is_centred_by_what_it_keeps():
    """Levels by node that differ much: the held-out densities are those of a model that never saw them."""
    levels = 10 * np.arange(7.0)
    task = Task.of(GRAPH, RBF(1.0), INPUTS, read_signals(SIGNALS + levels, "node"))
    actual = held_out_log_densities(task, [Polynomial(1)], n_folds=3, n_draws=0, random_state=np.random.default_rng(4))
    shuffled, *_ = np.random.default_rng(4).spawn(4)
    for held_out in np.array_split(shuffled.permutation(N_SIGNALS), 3):
        kept = np.setdiff1d(np.arange(N_SIGNALS), held_out)
        centre = (SIGNALS + levels)[kept].mean(axis=0)
        part = Task.of(GRAPH, RBF(1.0), INPUTS[kept], (SIGNALS + levels)[kept] - centre)
        model = learn(part, Polynomial(1)).model
        posterior = condition(model, part.inputs, part.signals)
        expected = posterior.at(INPUTS[held_out]).log_density((SIGNALS + levels)[held_out] - centre, joint=False)
        np.testing.assert_allclose(actual[held_out, 0], expected, rtol=1e-5)
