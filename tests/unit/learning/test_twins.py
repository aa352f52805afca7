"""Twins of a model for signals of different scale: scales, amplitudes of least error, weights, and the default."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

import spectralgp
from spectralgp import Graph, GraphGPRegressor, Polynomial, Task, condition, condition_shrunk, learn
from spectralgp.learning import Candidate, Sqp
from spectralgp.learning.candidates import (
    have_scales,
    learn_candidates,
    scaled_twin,
    signal_scales,
    tuned,
    tuned_twin,
)
from spectralgp.learning.weights import weights_by_error
from spectralgp.model.fields import leave_one_out
from spectralgp.model.kernels import StandardisedKernel
from spectralgp.model.signals import read_signals

N_NODES = 24
RING = Graph.from_edges([(node, (node + 1) % N_NODES) for node in range(N_NODES)])
KERNEL = Polynomial(2).with_residual(Polynomial(2))


def data(spread: float, seed: int = 0, n_signals: int = 40):
    """Inputs, signals, and the scales of what inputs do not explain of them."""
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((n_signals, 2))
    scales = np.exp(spread * rng.standard_normal(n_signals))
    vectors = spectralgp.decompose(RING).eigenvectors
    smooth = (vectors / (1 + np.arange(N_NODES))) @ vectors.T
    explained = inputs @ rng.standard_normal((2, N_NODES)) @ smooth
    own = scales[:, None] * rng.standard_normal((n_signals, N_NODES)) @ (0.2 * np.eye(N_NODES) + smooth)
    return inputs, explained + own, scales


def candidate_of(inputs, values):
    task = Task(RING, StandardisedKernel.of(inputs), inputs, read_signals(values, "global", "global"))
    return Candidate(task, KERNEL, shrunk=True, name="a model")


def test_scales_are_found_and_signals_held_out_are_likelier_with_them():
    inputs, values, scales = data(spread=0.8, n_signals=80)
    kept, others = np.arange(40), np.arange(40, 80)
    one = candidate_of(inputs[kept], values[kept])
    tasks, fits = learn_candidates([one, scaled_twin(one)], [one.task] * 2, Sqp().coarse(), None)
    found = tasks[1].signals.units.signal_scales
    assert np.corrcoef(np.log(found), np.log(scales[kept]))[0, 1] > 0.8
    np.testing.assert_allclose(np.mean(found**2), 1.0)
    assert have_scales(one, one.task, fits[0].model)
    posteriors = [one.condition(fit.model, task) for task, fit in zip(tasks, fits, strict=True)]
    plain, scaled = (one.at(inputs[others]).log_density(values[others], joint=False) for one in posteriors)
    gain = scaled - plain
    assert np.mean(gain) > 2 * np.std(gain) / np.sqrt(len(gain))


def test_signals_of_one_scale_have_scales_near_one():
    inputs, values, _ = data(spread=0.0)
    one = candidate_of(inputs, values)
    fit = learn(one.task, one.kernel)
    assert np.std(2 * np.log(signal_scales(condition(fit.model, inputs, one.task.signals)))) < 0.3
    assert not have_scales(one, one.task, fit.model)


def test_the_amplitude_of_means_has_the_least_left_out_error():
    inputs, values, _ = data(spread=0.8, n_signals=12)
    one = candidate_of(inputs, values)
    (task, again), (fit, other) = learn_candidates(
        [scaled_twin(one), tuned_twin(scaled_twin(one))], [one.task] * 2, Sqp().coarse(), None
    )
    assert again.signals.units.signal_scales.shape == task.signals.units.signal_scales.shape
    found, errors = tuned(fit.model, task), []
    amplitudes = 10.0 ** np.arange(-4, 1.1, 0.25)
    for amplitude in amplitudes:
        model = replace(fit.model, mean_amplitude=float(amplitude))
        errors.append(np.mean(np.square(leave_one_out(condition(model, inputs, task.signals)).mean - values)))
    np.testing.assert_allclose(found.mean_amplitude, amplitudes[int(np.argmin(errors))])
    assert np.min(np.abs(amplitudes - other.model.mean_amplitude)) < 1e-9
    posterior = condition_shrunk(found, inputs, task.signals)
    assert posterior.prior.mean_amplitude == found.mean_amplitude


def test_weights_by_error_are_those_of_a_general_solver():
    rng = np.random.default_rng(3)
    logs, errors = rng.standard_normal((30, 4)), rng.standard_normal((30, 5, 4)) + rng.standard_normal((30, 5, 1))
    flat = errors.reshape(-1, 4)

    def negative(weights):
        mixed = np.log(np.exp(logs) @ weights).sum()
        return -(mixed - 75.0 * np.log(np.mean(np.square(flat @ weights))))

    whole = {"type": "eq", "fun": lambda weights: weights.sum() - 1}
    start = np.full(4, 0.25)
    best = minimize(negative, start, bounds=[(1e-9, 1)] * 4, constraints=whole, method="SLSQP", tol=1e-12)
    np.testing.assert_allclose(weights_by_error(logs, errors, 150.0), best.x, atol=1e-3)


@pytest.fixture(scope="module")
def fitted():
    inputs, values, _ = data(spread=1.0, n_signals=16)
    return inputs, values, GraphGPRegressor(RING).fit(inputs, values)


def test_the_default_has_twins_where_signals_differ_in_scale(fitted):
    tried = [one.name for one in fitted[2].learnt_.tried]
    assert sum("signal scales" in name for name in tried) >= 1
    assert any("least squares" in name for name in tried)
    plain = GraphGPRegressor(RING).fit(*data(spread=0.0, n_signals=16)[:2])
    assert not any("scales" in one.name.replace("node scales", "") for one in plain.learnt_.tried)


def test_models_with_scales_are_saved_and_take_more_signals(fitted, tmp_path):
    inputs, values, model = fitted
    parts = [part.prior.mean_amplitude for _, part in model.posterior_.parts]
    scaled = [part.signals.units.signal_scales is not None for _, part in model.posterior_.parts]
    assert any(amplitude != 1.0 for amplitude in parts) or any(scaled)
    new, further, _ = data(spread=1.0, seed=5, n_signals=3)
    model.save(tmp_path / "model.sgp")
    again = spectralgp.load(tmp_path / "model.sgp")
    for one, other in ((model, again), (model.condition_on(new, further), again.condition_on(new, further))):
        for left, right in zip(one.predict(new, return_std=True), other.predict(new, return_std=True), strict=True):
            assert np.array_equal(left, right)
    np.testing.assert_array_equal(
        model.log_predictive_density(new, further, joint=False), again.log_predictive_density(new, further, joint=False)
    )
    holes = further.copy()
    holes[0, :3] = np.nan
    more = model.condition_on(new, holes)
    completed, std = more.impute(new, holes)
    assert np.array_equal(completed[~np.isnan(holes)], holes[~np.isnan(holes)])
    assert np.all(std[np.isnan(holes)] > 0)
    assert more.leave_one_out().mean.shape == (19, N_NODES)
    same, nothing = model.impute(inputs, values)  # which are those it was fitted to
    assert np.array_equal(same, values)
    assert not nothing.any()
    draws = model.sample_y(new, n_samples=500, random_state=0, include_noise=True)
    mean, deviation = model.predict(new, return_std=True, include_noise=True)
    np.testing.assert_allclose(draws.mean(axis=2), mean, atol=6 * np.max(deviation) / np.sqrt(500))
    assert "signal scales" in model.summary() or "least squares" in model.summary()
