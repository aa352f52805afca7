"""Means of the amplitude that has the least squared error, which the default tries where signals differ in scale."""

from dataclasses import replace

import numpy as np
import pytest

import spectralgp
from spectralgp import Graph, GraphGPRegressor, Polynomial, Task, condition, condition_shrunk, learn
from spectralgp.learning import Candidate, Sqp
from spectralgp.learning.candidates import differ_in_scale, learn_candidates, tuned, with_tuned_means
from spectralgp.model.fields import leave_one_out
from spectralgp.model.kernels import StandardisedKernel, with_residual
from spectralgp.model.signals import read_signals

N_NODES = 24
RING = Graph.from_edges([(node, (node + 1) % N_NODES) for node in range(N_NODES)])
KERNEL = with_residual(Polynomial(2), Polynomial(2))


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


def test_signals_of_one_scale_are_told_from_those_that_differ():
    for spread, expected in ((0.0, False), (0.8, True)):
        one = candidate_of(*data(spread)[:2])
        assert differ_in_scale(one, one.task, learn(one.task, one.kernel).model) is expected


def test_the_amplitude_of_means_has_the_least_left_out_error():
    inputs, values, _ = data(spread=0.8, n_signals=12)
    one = candidate_of(inputs, values)
    fit, other = learn_candidates([one, with_tuned_means(one)], [one.task] * 2, Sqp().coarse())
    found, errors = tuned(fit.model, one.task), []
    amplitudes = 10.0 ** np.arange(-4, 1.1, 0.25)
    for amplitude in amplitudes:
        model = replace(fit.model, mean_amplitude=float(amplitude))
        errors.append(np.mean(np.square(leave_one_out(condition(model, inputs, one.task.signals)).mean - values)))
    np.testing.assert_allclose(found.mean_amplitude, amplitudes[int(np.argmin(errors))])
    assert other.model.mean_amplitude == found.mean_amplitude
    posterior = condition_shrunk(found, inputs, one.task.signals)
    assert posterior.prior.mean_amplitude == found.mean_amplitude


@pytest.fixture(scope="module")
def fitted():
    inputs, values, _ = data(spread=1.0, n_signals=16)
    return inputs, values, GraphGPRegressor(RING).fit(inputs, values)


def test_the_default_tunes_means_where_signals_differ_in_scale(fitted):
    assert any(part.prior.mean_amplitude != 1.0 for _, part in fitted[2].posterior_.parts)
    plain = GraphGPRegressor(RING).fit(*data(spread=0.0, n_signals=16)[:2])
    assert "least squares" not in plain.summary()


def test_tuned_models_are_saved_and_take_more_signals(fitted, tmp_path):
    inputs, values, model = fitted
    new, further, _ = data(spread=1.0, seed=5, n_signals=3)
    model.save(tmp_path / "model.sgp")
    again = spectralgp.load(tmp_path / "model.sgp")
    for one, other in ((model, again), (model.condition_on(new, further), again.condition_on(new, further))):
        for left, right in zip(one.predict(new, return_std=True), other.predict(new, return_std=True), strict=True):
            assert np.array_equal(left, right)
    np.testing.assert_array_equal(
        model.log_predictive_density(new, further, joint=False), again.log_predictive_density(new, further, joint=False)
    )
    incomplete = further.copy()
    incomplete[0, :3] = np.nan
    more = model.condition_on(new, incomplete)
    completed, std = more.impute(new, incomplete)
    assert np.array_equal(completed[~np.isnan(incomplete)], incomplete[~np.isnan(incomplete)])
    assert np.all(std[np.isnan(incomplete)] > 0)
    assert more.leave_one_out().mean.shape == (19, N_NODES)
    same, nothing = model.impute(inputs, values)  # which are those it was fitted to
    assert np.array_equal(same, values)
    assert not nothing.any()
    draws = model.sample_y(new, n_samples=500, random_state=0, include_noise=True)
    mean, deviation = model.predict(new, return_std=True, include_noise=True)
    np.testing.assert_allclose(draws.mean(axis=2), mean, atol=6 * np.max(deviation) / np.sqrt(500))
    assert "least squares" in model.summary()
