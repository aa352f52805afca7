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
from spectralgp.learning import Sqp, Task, held_out_log_densities, hyperparameter_draws, learn, n_steps
from tolerances import REFIT

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
    expected = np.empty((N_SIGNALS, 2))
    for held_out, rng in zip(np.array_split(shuffled.permutation(N_SIGNALS), 3), streams, strict=True):
        kept = np.array([n for n in range(N_SIGNALS) if n not in held_out])
        inputs = task.inputs[np.ix_(kept, kept)] if name == "precomputed" else task.inputs[kept]
        part = Task.of(GRAPH, task.input_kernel, inputs, SIGNALS[kept], task.noise_variance, task.prior)
        for column, kernel in enumerate(KERNELS):
            fit = learn(part, kernel)
            models = hyperparameter_draws(part, fit, n_draws, rng).models if n_draws else (fit.model,)
            logs = [dense_densities(model, covariance_of(task, model), kept, held_out) for model in models]
            expected[held_out, column] = logsumexp(logs, axis=0) - np.log(len(models))
    assert oracle.relative_error(actual, expected) < REFIT


def test_every_fold_reports_its_progress():
    steps = []
    with telling(steps.append):
        held_out_log_densities(TASKS["kernel"], KERNELS, n_folds=4, n_draws=0, random_state=np.random.default_rng(0))
    assert len(steps) == 4 * n_steps(KERNELS, Sqp())
