"""Signals that each have a scale of their own: against dense algebra, and through all that restores their values."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from spectralgp import Graph, Polynomial, condition, condition_shrunk, graph_gp
from spectralgp.learning import Task
from spectralgp.learning.objective import Objective
from spectralgp.model.fields import leave_one_out, node_covariances, standard_deviation
from spectralgp.model.kernels import StandardisedKernel, as_input_kernel, with_residual
from spectralgp.model.kernels.carry import CarryColumns, CarryFilter
from spectralgp.model.signals import read_signals, state_of

N_SIGNALS, N_NODES = 7, 5
RING = Graph.from_edges([(node, (node + 1) % N_NODES) for node in range(N_NODES)])
FILTER = with_residual(Polynomial(1, chebyshev=(1.3, -0.5), upper=4.0), Polynomial(1, chebyshev=(0.6, 0.2), upper=4.0))


def data(seed: int = 0):
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((N_SIGNALS, N_NODES))
    return inputs, 3.0 + 2.0 * rng.standard_normal((N_SIGNALS, N_NODES)), np.exp(rng.uniform(-1, 1, N_SIGNALS))


def scaled_by(scales, signals):
    """Signals as model files of older versions hold them: each divided by its own scale."""
    state, units = state_of(signals), replace(signals.units, signal_scales=scales)
    if signals.has_missing:
        return replace(state, values=state.values / scales[:, None], units=units).signals
    return replace(state, source=state.source / scales[:, None], units=units).signals


def prior_of(carries: bool = False):
    prior = graph_gp(RING, FILTER, RBF(1.5), noise_variance=0.3)
    return replace(prior, carry=CarryFilter(np.array([0.4, -0.2, 0.1]), prior.spectrum.upper)) if carries else prior


def dense(prior, inputs, scales, units):
    """``K (x) G + W (x) H`` of the signals as they came in, and the part of it that inputs explain."""
    vectors, eigenvalues = prior.spectrum.eigenvectors, prior.spectrum.eigenvalues
    kernel = prior.graph_kernel
    explained = (vectors * kernel.power(eigenvalues)) @ vectors.T
    own = (vectors * (kernel.residual_power(eigenvalues) + prior.noise_variance)) @ vectors.T
    between = np.kron(np.asarray(prior.input_kernel.described(inputs)), explained)
    divisor = np.tile(np.broadcast_to(units.of_new.divisor, (N_NODES,)), len(inputs))
    together = between + np.kron(np.diag(scales**2), own)
    return together * np.outer(divisor, divisor), between * np.outer(divisor, divisor)


def mean_of(prior, carried, inputs, units):
    """What inputs carry over, in the units that the signals came in."""
    if carried is None:
        return np.full((len(inputs), N_NODES), units.offset)
    vectors = prior.spectrum.eigenvectors
    through = (vectors * prior.carry.response(prior.spectrum.eigenvalues)) @ vectors.T
    return units.offset + ((inputs - carried.offset) / units.of_new.divisor) @ through * units.of_new.divisor


@pytest.mark.parametrize("scale", ["global", "node"])
@pytest.mark.parametrize("carries", [False, True])
def test_predictions_and_evidence_are_those_of_dense_algebra(scale, carries):
    inputs, values, scales = data()
    prior, new = prior_of(carries), data(1)[0][:3]
    carried = CarryColumns.of(np.arange(N_NODES), inputs) if carries else None
    signals = scaled_by(scales, read_signals(values, "global", scale))
    posterior, units = condition(prior, inputs, signals, carried), signals.units
    together, _ = dense(prior, np.vstack([inputs, new]), np.append(scales, np.ones(3)), units)
    n = values.size
    among, across, left = together[:n, :n], together[n:, :n], together[n:, n:]
    errors = (values - mean_of(prior, carried, inputs, units)).ravel()
    expected = mean_of(prior, carried, new, units) + (across @ np.linalg.solve(among, errors)).reshape(3, -1)
    covariance = left - across @ np.linalg.solve(among, across.T)
    predicted = posterior.at(new)
    np.testing.assert_allclose(predicted.mean, expected, rtol=1e-9)
    np.testing.assert_allclose(predicted.variance(include_noise=True).ravel(), np.diag(covariance), rtol=1e-9)
    _, determinant = np.linalg.slogdet(2 * np.pi * among)
    evidence = -0.5 * (determinant + errors @ np.linalg.solve(among, errors))
    np.testing.assert_allclose(posterior.log_evidence() - signals.log_volume, evidence, rtol=1e-10)
    further = np.where(np.arange(N_NODES) < 2, data(2)[1][:3], np.nan)
    seen = np.isfinite(further).ravel()
    both = np.concatenate([np.ones(n, dtype=bool), seen])
    known = np.concatenate([errors, (further - mean_of(prior, carried, new, units)).ravel()[seen]])
    filled = together[n:][:, both] @ np.linalg.solve(together[np.ix_(both, both)], known)
    given = predicted.given(further)
    expected = mean_of(prior, carried, new, units) + filled.reshape(3, -1)
    np.testing.assert_allclose(given.values[:, 2:], expected[:, 2:], rtol=1e-8)


def test_new_signals_join_those_with_missing_values_in_their_scales():
    """What inputs carry over is in the units of each signal; a new one has the scale one."""
    inputs, values, scales = data()
    values[2, 1] = values[4, 3] = np.nan
    prior, (new, further) = prior_of(True), (one[:3] for one in data(1)[:2])
    further[:, 2:] = np.nan
    carried = CarryColumns.of(np.arange(N_NODES), inputs)
    signals = scaled_by(scales, read_signals(values, "global", "node"))
    units, everything = signals.units, np.vstack([inputs, new])
    together, _ = dense(prior, everything, np.append(scales, np.ones(3)), units)
    centre = mean_of(prior, carried, everything, units).ravel()
    known = np.vstack([values, further]).ravel()
    seen, hidden = np.isfinite(known), np.arange(known.size) >= values.size
    hidden &= ~seen
    among, across = together[np.ix_(seen, seen)], together[np.ix_(hidden, seen)]
    expected = centre[hidden] + across @ np.linalg.solve(among, (known - centre)[seen])
    given = condition(prior, inputs, signals, carried).at(new).given(further)
    np.testing.assert_allclose(given.values[:, 2:].ravel(), expected, rtol=1e-8)
    covariance = together[np.ix_(hidden, hidden)] - across @ np.linalg.solve(among, across.T)
    np.testing.assert_allclose(given.values_variance()[:, 2:].ravel(), np.diag(covariance), rtol=1e-8)


def test_training_signals_filled_in_are_those_of_dense_algebra():
    inputs, values, scales = data()
    values[2, 1] = values[4, 3] = np.nan
    signals = scaled_by(scales, read_signals(values, "global", "global"))
    posterior = condition(prior_of(), inputs, signals)
    together, _ = dense(prior_of(), inputs, scales, signals.units)
    seen = np.isfinite(values).ravel()
    errors = values.ravel()[seen] - signals.units.offset
    across, among = together[np.ix_(~seen, seen)], together[np.ix_(seen, seen)]
    mean = signals.units.offset + across @ np.linalg.solve(among, errors)
    variance = np.diag(together[np.ix_(~seen, ~seen)] - across @ np.linalg.solve(among, across.T))
    rows = np.array([2, 4])
    filled = posterior.imputed(rows)
    np.testing.assert_allclose(filled.values[[0, 1], [1, 3]], mean, rtol=1e-9)
    np.testing.assert_allclose(filled.values_variance()[[0, 1], [1, 3]], variance, rtol=1e-9)
    np.testing.assert_allclose(filled.values[0, 0], values[2, 0], rtol=1e-12)
    block = node_covariances(filled)[0]
    assert np.all(np.linalg.eigvalsh(block) > -1e-12)
    np.testing.assert_allclose(np.diag(block), filled.variance()[0], rtol=1e-9)


@pytest.mark.parametrize("center", ["global", "node"])
def test_signals_left_out_are_predicted_as_new_ones(center):
    inputs, values, scales = data()
    signals = scaled_by(scales, read_signals(values, center, "global"))
    left = leave_one_out(condition(prior_of(), inputs, signals))
    units = signals.units
    for row in range(N_SIGNALS):
        others = np.delete(np.arange(N_SIGNALS), row)
        offset = values[others].mean(axis=0) if center == "node" else units.offset
        own = np.append(scales[others], 1.0)
        together, _ = dense(prior_of(), inputs[np.append(others, row)], own, units)
        n = others.size * N_NODES
        across, among = together[n:, :n], together[:n, :n]
        mean = offset + across @ np.linalg.solve(among, (values[others] - offset).ravel())
        covariance = together[n:, n:] - across @ np.linalg.solve(among, across.T)
        np.testing.assert_allclose(left.mean[row], mean, rtol=1e-8)
        np.testing.assert_allclose(left.std[row], np.sqrt(np.diag(covariance)), rtol=1e-8)
        error = values[row] - mean
        _, determinant = np.linalg.slogdet(2 * np.pi * covariance)
        expected = -0.5 * (determinant + error @ np.linalg.solve(covariance, error))
        np.testing.assert_allclose(left.log_density[row], expected, rtol=1e-8)


@pytest.mark.parametrize("kernel", [RBF(1.5), None])
def test_the_evidence_of_a_task_is_that_of_its_posterior_and_has_its_gradient(kernel):
    inputs, values, scales = data()
    inputs = inputs if kernel is not None else np.empty((N_SIGNALS, 0))
    signals = scaled_by(scales, read_signals(values, "global", "global"))
    prior = replace(prior_of(), input_kernel=as_input_kernel(kernel))
    objective = Objective(Task(RING, prior.input_kernel, inputs, signals), prior.graph_kernel, prior.spectrum)
    x = objective.point(prior)
    evidence = objective.evidence(x)
    np.testing.assert_allclose(evidence.log_likelihood, condition(prior, inputs, signals).log_evidence(), rtol=1e-10)
    for index in range(x.size):
        step = 1e-5 * np.eye(x.size)[index]
        slope = (objective.evidence(x + step).log_likelihood - objective.evidence(x - step).log_likelihood) / 2e-5
        np.testing.assert_allclose(evidence.gradient[index], slope, rtol=1e-5, atol=1e-6)


def test_scales_of_one_change_nothing():
    inputs, values, _ = data()
    plain = read_signals(values, "node", "node")
    scaled = scaled_by(np.ones(N_SIGNALS), plain)
    one, other = (condition_shrunk(prior_of(), inputs, signals) for signals in (plain, scaled))
    np.testing.assert_allclose(one.at(inputs[:2]).mean, other.at(inputs[:2]).mean, rtol=1e-12)
    np.testing.assert_allclose(one.prior.freedom, other.prior.freedom, rtol=1e-6)
    first, second = leave_one_out(one), leave_one_out(other)
    np.testing.assert_allclose(first.log_density, second.log_density, rtol=1e-9)
    np.testing.assert_allclose(first.std, second.std, rtol=1e-9)


@pytest.mark.parametrize("with_level", [False, True])
def test_means_may_have_an_amplitude_of_their_own(with_level):
    inputs, values, scales = data()
    kernel = StandardisedKernel.of(inputs) if with_level else as_input_kernel(RBF(1.5))
    prior = replace(prior_of(), input_kernel=kernel, mean_amplitude=0.2)
    signals = scaled_by(scales, read_signals(values, "global", "global"))
    new, level = data(1)[0][:3], kernel.level
    everything = np.vstack([inputs, new])
    covariance = kernel.covariance(everything)
    means = replace(prior, input_kernel=as_input_kernel("precomputed"), mean_amplitude=1.0)
    n, weighed = len(inputs), level + 0.2 * (covariance - level)
    cross, among = weighed[n:, :n], weighed[:n, :n]
    expected = condition(means, among, signals).at(cross).mean
    plain = condition(replace(prior, mean_amplitude=1.0), inputs, signals)
    posterior = condition(prior, inputs, signals)
    np.testing.assert_allclose(posterior.at(new).mean, expected, rtol=1e-9)
    np.testing.assert_allclose(standard_deviation(posterior.at(new)), standard_deviation(plain.at(new)), rtol=1e-12)
    left, own = leave_one_out(posterior), leave_one_out(plain)
    np.testing.assert_allclose(left.mean, leave_one_out(condition(means, among, signals)).mean, rtol=1e-9)
    np.testing.assert_allclose(left.std, own.std, rtol=1e-12)
    further = np.where(np.arange(N_NODES) < 2, values[:3], np.nan)
    shift = posterior.at(new).mean - plain.at(new).mean
    given = posterior.at(new).given(further).values
    np.testing.assert_allclose(given, plain.at(new).given(further - shift).values + shift, rtol=1e-9)
    values[0, 0] = np.nan  # what is not known of training signals is known beside new ones
    gaps = scaled_by(scales, read_signals(values, "global", "global"))
    posterior, plain = condition(prior, inputs, gaps), condition(replace(prior, mean_amplitude=1.0), inputs, gaps)
    shift = posterior.at(new).mean - plain.at(new).mean
    given = posterior.at(new).given(further).values
    np.testing.assert_allclose(given, plain.at(new).given(further - shift).values + shift, rtol=1e-8)
