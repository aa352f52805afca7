"""Learning of processes in time: slopes, information, recovery of what series were drawn from, certificates."""

from __future__ import annotations

import numpy as np
import pytest

from spectralgp import Diffusion, Graph, Polynomial, decompose
from spectralgp.learning import Sqp
from spectralgp.states import Filter, StateSpace, Timeline, information
from spectralgp.time import Matern, Oscillator, learn_each, learn_on_graph
from spectralgp.time.learning import RatePriors, SeriesObjective, _Search, dynamics_of

N_NODES = 8
STANDARD_ERRORS = 5.0


@pytest.fixture(scope="module")
def spectrum():
    edges = [(node, (node + 1) % N_NODES) for node in range(N_NODES)] + [(0, 3), (2, 6)]
    return decompose(Graph.from_edges(edges), "combinatorial", scaled=True)


def drawn(spectrum, components, powers, rates, own, times, seed=0):
    space = StateSpace(components, np.array(powers), np.array(rates), own)
    white = np.random.default_rng(seed).standard_normal((times.size, N_NODES))
    return Filter.of(space, Timeline.of(times)).drawn(white) @ spectrum.eigenvectors.T


def relative(found, expected):
    return np.max(np.abs(found - expected)) / np.max(np.abs(expected))


def objective_of(spectrum, times, values, components, power, rate, residual):
    line = Timeline.of(times)
    form = dynamics_of(spectrum, line, components, power, rate, residual)
    data = [np.ascontiguousarray(values @ spectrum.eigenvectors)]
    return SeriesObjective(form, spectrum, line, data, RatePriors.of(components, line))


@pytest.mark.parametrize(
    ("power", "rate", "residual"),
    [
        (Polynomial(2), Polynomial(1), Polynomial(1)),
        (Polynomial(1), None, None),
        (Diffusion(scaled=True), Polynomial(2, "interval"), None),
    ],
)
def test_the_slope_of_the_log_posterior_equals_differences(spectrum, power, rate, residual):
    random = np.random.default_rng(0)
    times, values = np.arange(60.0), random.standard_normal((60, N_NODES))
    components = (Matern(0.5), Matern(1.5), Oscillator(7.0))
    objective = objective_of(spectrum, times, values, components, power, rate, residual)
    x = objective.start(0.1) + 0.05 * random.standard_normal(objective.units.size) * objective.units
    gradient = objective.evaluate(x)[1]
    assert len(objective.parameter_names) == len(objective.bounds) == x.size
    differences = []
    for place, unit in enumerate(objective.units):
        ends = []
        for sign in (-1, 1):
            moved = x.copy()
            moved[place] += sign * 1e-5 * unit
            ends.append(objective.evaluate(moved)[0])
        differences.append((ends[1] - ends[0]) / 2e-5)
    assert relative(gradient * objective.units, np.array(differences)) < 1e-6


def test_whittles_information_is_nearly_fishers():
    components = (Matern(1.5), Oscillator(12.0))
    space = StateSpace(components, np.array([[1.0], [0.4]]), np.array([[0.2], [0.05]]), np.array([0.3]))
    times = 40 + np.arange(800.0)  # when it begins says nothing
    lags = np.abs(np.subtract.outer(times, times))

    def covariance(powers, rates, own):
        first = powers[0] * np.exp(-rates[0] * lags) * (1 + rates[0] * lags)
        return first + powers[1] * np.exp(-rates[1] * lags) * np.cos(2 * np.pi * lags / 12) + own * np.eye(times.size)

    parameters = np.array([1.0, 0.4, 0.2, 0.05, 0.3])

    def at(x):
        return covariance(x[:2], x[2:4], x[4])

    inverse, slopes = np.linalg.inv(at(parameters)), []
    for place in range(5):
        small = 1e-5 * np.eye(5)[place]
        slopes.append(inverse @ (at(parameters + small) - at(parameters - small)) / 2e-5)
    fisher = 0.5 * np.array([[np.sum(a * b.T) for b in slopes] for a in slopes])
    found = information(space, Timeline.of(times))[..., 0]
    scale = np.sqrt(np.outer(np.diag(fisher), np.diag(fisher)))
    assert np.max(np.abs(found - fisher) / scale) < 0.1


def test_powers_and_rates_are_recovered(spectrum):
    frequencies = spectrum.eigenvalues
    power, rate = (1.2 - 0.8 * frequencies) ** 2, (0.25 + 0.5 * frequencies) ** 2
    times = np.delete(np.arange(6_000.0), [17, 900, 901])
    values = drawn(spectrum, (Matern(0.5),), [power], [rate], np.full(N_NODES, 0.2), times)
    fit = learn_on_graph(spectrum, times, values, (Matern(0.5),), Polynomial(1), Polynomial(1))
    assert fit.converged, fit.detail
    assert fit.certificate.stationarity < 1e-3 * np.sqrt(values.size)
    spread_power, spread_rate = fit.bands(frequencies)
    assert np.all(np.abs(np.log(fit.process.powers[0] / power)) < STANDARD_ERRORS * spread_power[0])
    assert np.all(np.abs(np.log(fit.process.rates[0] / rate)) < STANDARD_ERRORS * spread_rate[0])
    assert np.max(spread_rate) < 0.3
    separable = learn_on_graph(spectrum, times, values, (Matern(0.5),), Polynomial(1))
    assert np.ptp(separable.process.rates) == 0
    assert separable.log_likelihood < fit.log_likelihood - 100
    assert fit.process.filtered(times, values).log_likelihood == pytest.approx(fit.log_likelihood, rel=1e-10)


def test_rows_of_nan_are_skipped_and_a_residual_is_learnt(spectrum):
    frequencies = spectrum.eigenvalues
    own = 0.1 + np.square(1 - frequencies)
    times = np.arange(1_500.0)
    values = drawn(spectrum, (Matern(1.5),), [np.ones(N_NODES)], [np.full(N_NODES, 0.1)], own, times)
    holes = values.copy()
    holes[100:110] = np.nan
    kept = np.setdiff1d(np.arange(1_500), np.arange(100, 110))
    arguments = (Matern(1.5),), Polynomial(1), None, Polynomial(1)
    fit = learn_on_graph(spectrum, times, holes, *arguments)
    same = learn_on_graph(spectrum, times[kept], values[kept], *arguments)
    assert fit.value == same.value
    assert np.max(np.abs(np.log(fit.process.own / own))) < 0.2
    plain = learn_on_graph(spectrum, times, holes, (Matern(1.5),), Polynomial(1))
    assert plain.log_likelihood < fit.log_likelihood - 50


def test_a_component_that_does_nothing_is_dropped(spectrum):
    times = np.arange(4_000.0)
    values = drawn(spectrum, (Matern(0.5),), [np.ones(N_NODES)], [np.full(N_NODES, 0.3)], np.full(N_NODES, 0.2), times)
    fit = learn_on_graph(spectrum, times, values, (Matern(0.5), Oscillator(10.0)), Polynomial(1))
    assert fit.dynamics.components == fit.process.components == (Matern(0.5),)
    assert fit.converged


def test_nodes_on_their_own_are_learnt_alike_alone_and_together():
    times = np.arange(700.0)
    rates, powers = np.array([[0.05, 0.2, 0.6, 0.1]]), np.array([[1.0, 0.5, 2.0, 1.0]])
    space = StateSpace((Matern(0.5),), powers, rates, np.array([0.1, 0.3, 0.2, 0.05]))
    values = Filter.of(space, Timeline.of(times)).drawn(np.random.default_rng(3).standard_normal((700, 4)))
    values[33] = np.nan
    together = learn_each(times, values, (Matern(0.5), Oscillator(9.0)))
    assert together.basis is None
    alone = learn_each(times, values[:, 2:3], (Matern(0.5), Oscillator(9.0)))
    assert relative(together.powers[:, 2:3], alone.powers) < 1e-6
    assert np.max(np.abs(np.log(together.powers[0] / powers[0]))) < 0.7
    assert np.max(np.abs(np.log(together.rates[0] / rates[0]))) < 0.7
    truth = [Filter.of(space, Timeline.of(np.delete(times, 33)))]
    seen = np.delete(values, 33, axis=0)
    expected = truth[0].log_likelihoods(truth[0].innovations(seen)[0])
    found = together.filtered(times, values).log_likelihood
    assert found > expected.sum()


def test_lengths_of_long_series_do_not_change_what_is_learnt(spectrum, monkeypatch):
    times = np.arange(2_000.0)
    rates = [0.1 + 0.3 * spectrum.eigenvalues]
    values = drawn(spectrum, (Matern(0.5),), [np.ones(N_NODES)], rates, np.full(N_NODES, 0.3), times)
    arguments = spectrum, times, values, (Matern(0.5),), Polynomial(1), Polynomial(1)
    whole = learn_on_graph(*arguments)
    monkeypatch.setattr("spectralgp.time.learning.MOST_ON_THE_WAY", 4_000)
    windowed = learn_on_graph(*arguments)
    assert windowed.value == pytest.approx(whole.value, abs=1e-3)


@pytest.mark.parametrize("has_holes", [False, True])
def test_a_search_that_goes_on_from_other_rows_ends_where_others_do(spectrum, has_holes):
    times, random = np.arange(1_200.0), np.random.default_rng(5)
    rates = [0.1 + 0.3 * spectrum.eigenvalues]
    values = drawn(spectrum, (Matern(0.5),), [np.ones(N_NODES)], rates, np.full(N_NODES, 0.3), times)
    if has_holes:
        values[random.random(values.shape) < 0.05] = np.nan
    form = (Matern(0.5),), Polynomial(1), Polynomial(1)
    whole = learn_on_graph(spectrum, times, values, *form)
    part = learn_on_graph(spectrum, times[:400], values[:400], *form)
    found = learn_on_graph(spectrum, times, values, *form, start=part.dynamics)
    if not has_holes:  # of which the value is an expected one
        assert found.value == pytest.approx(whole.value, abs=1e-3)
    assert relative(found.process.rates, whole.process.rates) < (0.05 if has_holes else 1e-3)
    assert found.n_evaluations < whole.n_evaluations
    alone = learn_each(times, values, (Matern(0.5),))
    again = learn_each(times, values, (Matern(0.5),), start=learn_each(times[:400], values[:400], (Matern(0.5),)))
    assert relative(again.rates, alone.rates) < (0.05 if has_holes else 1e-2)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda s, t, y: learn_on_graph(s, t, y, (), Polynomial(1)), r"components must hold at least one"),
        (lambda s, t, y: learn_on_graph(s, t[:2], y[:2], (Matern(),), Polynomial(1)), r"values must have 3 rows"),
        (lambda s, t, y: learn_each(t[:2], y[:2], (Matern(),)), r"values must have 3 rows or more"),
        (lambda s, t, y: learn_on_graph(s, t, y[:, 1:], (Matern(),), Polynomial(1)), r"values must have shape"),
    ],
)
def test_what_cannot_be_learnt_is_said(spectrum, ask, message):
    times = np.arange(10.0)
    with pytest.raises(ValueError, match=message):
        ask(spectrum, times, np.random.default_rng(0).standard_normal((10, N_NODES)))


@pytest.mark.parametrize(
    ("most", "first"),
    [(50 * 16, 0), (10**6, 0), (50 * 16 - 1, 1), (30 * 16, 20), (30 * 16 + 15, 20), (3 * 16, 47), (16, 48), (0, 48)],
)
def test_searches_on_the_way_see_the_latest_rows_and_two_at_least(spectrum, monkeypatch, most, first):
    monkeypatch.setattr("spectralgp.time.learning.MOST_ON_THE_WAY", most)
    series = tuple(np.zeros((2, 50, N_NODES)))  # of two sets, sixteen values per row
    window = _Search(spectrum, Timeline.of(np.arange(50.0)), series, Sqp()).window
    assert np.arange(50)[window].tolist() == list(range(first, 50))
