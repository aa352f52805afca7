"""Series with missing values against dense conditioning and a Kalman smoother over all nodes at once."""

import numpy as np
import pytest

import oracle
from spectralgp import Graph, Polynomial, decompose
from spectralgp.model.statespace import Filter, StateSpace, Timeline
from spectralgp.series import MaternComponent, ModalProcess, OscillatorComponent, complete, learn_each, learn_on_graph

FILLED = 1e-6  # of the issue
N_NODES = 5


ROUGH = (MaternComponent(0.5),)


def series(n_steps, components=ROUGH, n_nodes=N_NODES, seed=0):
    random = np.random.default_rng(seed)
    basis = np.linalg.qr(random.standard_normal((n_nodes, n_nodes)))[0]
    shape = (len(components), n_nodes)
    process = ModalProcess(
        components,
        np.exp(0.4 * random.standard_normal(shape)),
        np.exp(0.4 * random.standard_normal(shape) - 1),
        np.exp(0.4 * random.standard_normal(n_nodes) - 2),
        basis,
    )
    times = np.cumsum(np.where(random.random(n_steps) < 0.1, 2.0, 1.0))
    white = random.standard_normal((n_steps, n_nodes))
    values = process.unload(Filter.of(process.space, Timeline.of(times)).drawn(white))
    incomplete = np.where(random.random(values.shape) < 0.25, np.nan, values)
    incomplete[n_steps // 2] = np.nan
    return process, times, incomplete


@pytest.mark.parametrize("components", [(MaternComponent(0.5),), (MaternComponent(1.5), OscillatorComponent(6.0))])
def test_what_is_filled_in_equals_dense_conditioning(components):
    process, times, values = series(40, components)
    later = times[-1] + np.array([1.0, 4.0])
    covariance = oracle.process_covariance(process, np.r_[times, later])
    seen = np.flatnonzero(~np.isnan(values).ravel())
    hidden = np.flatnonzero(np.isnan(values).ravel())
    ahead = np.arange(values.size, covariance.shape[0])
    weights = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[seen])
    mean = weights.T @ values.ravel()[seen]
    left = covariance - weights.T @ covariance[seen]
    found = complete(process, times, values, n_draws=400)
    scale = np.max(np.abs(mean))
    assert np.max(np.abs(found.mean.ravel()[hidden] - mean[hidden])) < FILLED * scale
    assert np.array_equal(found.mean.ravel()[seen], values.ravel()[seen])
    assert np.all(found.variance.ravel()[seen] == 0)
    expected = np.diag(left)[hidden]
    assert np.all(np.abs(found.variance.ravel()[hidden] - expected) < 5 * expected * np.sqrt(2 / 400))
    forecast = process.filtered(times, values).forecast(later)
    assert np.max(np.abs(forecast.mean.ravel() - mean[ahead])) < FILLED * scale
    assert np.max(np.abs(forecast.variance.ravel() / np.diag(left)[ahead] - 1)) < FILLED


def kalman_smoother(process, times, values):
    """Means of the values without noise given what was observed, by a filter over all nodes and its way back."""
    basis, power, rate = process.basis, process.powers[0], process.rates[0]
    own = (basis * process.own) @ basis.T
    mean, covariance, passes = np.zeros(power.size), np.diag(power), []
    for step in range(times.size):
        decay = np.exp(-rate * (times[step] - times[step - 1])) if step else np.ones(power.size)
        before = decay * mean, np.outer(decay, decay) * covariance + np.diag(power * (1 - decay**2))
        there = ~np.isnan(values[step])
        side = basis[there]
        total = side @ before[1] @ side.T + own[np.ix_(there, there)]
        gain = np.linalg.solve(total, side @ before[1]).T
        mean = before[0] + gain @ (values[step, there] - side @ before[0])
        covariance = before[1] - gain @ side @ before[1]
        passes.append((decay, *before, mean, covariance))
    smoothed = [mean]
    for step in range(times.size - 1, 0, -1):
        decay, predicted, spread, _, _ = passes[step]
        _, _, _, own_mean, own_spread = passes[step - 1]
        back = np.linalg.solve(spread, decay[:, None] * own_spread).T
        smoothed.append(own_mean + back @ (smoothed[-1] - predicted))
    states = np.array(smoothed[::-1]) @ basis.T
    for step, there in enumerate(~np.isnan(values)):  # what is missing of the noise that nodes share
        error = values[step, there] - states[step, there]
        states[step] += own[:, there] @ np.linalg.solve(own[np.ix_(there, there)], error)
    return states


def test_what_is_filled_in_equals_a_kalman_smoother_over_all_nodes():
    process, times, values = series(600, n_nodes=12, seed=2)
    hidden = np.isnan(values)
    found, expected = complete(process, times, values).mean, kalman_smoother(process, times, values)
    assert np.max(np.abs(found - expected)[hidden]) < FILLED * np.max(np.abs(expected))


def test_dynamics_are_learnt_from_series_with_missing_values():
    n_nodes, times = 6, np.arange(900.0)
    edges = [(node, (node + 1) % n_nodes) for node in range(n_nodes)] + [(0, 3)]
    spectrum = decompose(Graph.from_edges(edges), "combinatorial", scaled=True)
    power, rate = (1.2 - 0.8 * spectrum.eigenvalues) ** 2, (0.25 + 0.5 * spectrum.eigenvalues) ** 2
    space = StateSpace((MaternComponent(0.5),), power[None], rate[None], np.full(n_nodes, 0.2))
    random = np.random.default_rng(4)
    values = Filter.of(space, Timeline.of(times)).drawn(random.standard_normal((times.size, n_nodes)))
    values = values @ spectrum.eigenvectors.T
    hidden = random.random(values.shape) < 0.1
    hidden[100:150, 2] = hidden[400:500, 5] = True
    arguments = (MaternComponent(0.5),), Polynomial(1), Polynomial(1)
    fit = learn_on_graph(spectrum, times, np.where(hidden, np.nan, values), *arguments)
    full = learn_on_graph(spectrum, times, values, *arguments)
    assert fit.converged
    assert "another step would gain" in fit.detail
    exactly = fit.process.filtered(times, np.where(hidden, np.nan, values)).log_likelihood
    assert fit.log_likelihood == pytest.approx(exactly, abs=0.01)
    assert fit.log_likelihood > full.process.filtered(times, np.where(hidden, np.nan, values)).log_likelihood - 3
    _, spreads = full.bands(spectrum.eigenvalues)
    assert np.all(np.abs(np.log(fit.process.rates[0] / rate)) < 5 * spreads[0])
    assert np.max(np.abs(np.log(fit.process.own / full.process.own))) < 0.1


def test_nodes_on_their_own_are_learnt_from_series_with_missing_values():
    times, random = np.arange(1_500.0), np.random.default_rng(5)
    rates, powers = np.array([[0.05, 0.2, 0.6]]), np.array([[1.0, 0.5, 2.0]])
    space = StateSpace((MaternComponent(0.5),), powers, rates, np.array([0.1, 0.3, 0.2]))
    values = Filter.of(space, Timeline.of(times)).drawn(random.standard_normal((times.size, 3)))
    full = learn_each(times, values, (MaternComponent(0.5),))
    values[random.random(values.shape) < 0.15] = np.nan
    found = learn_each(times, values, (MaternComponent(0.5),))
    for part, limit in {"powers": 0.25, "rates": 0.25, "own": 0.6}.items():  # fast nodes hardly tell noise apart
        assert np.max(np.abs(np.log(getattr(found, part) / getattr(full, part)))) < limit
