"""Learning of processes in time: slopes, information, recovery of what series were drawn from, certificates."""

from itertools import pairwise

import numpy as np
import pytest

from spectralgp import Diffusion, Graph, Polynomial, decompose
from spectralgp.learning.objective import Objective
from spectralgp.model.fields import ProcessKernel, RatePriors
from spectralgp.model.statespace import Filter, StateSpace, Timeline, evaluate, information
from spectralgp.series import (
    MaternComponent,
    ModalProcess,
    OscillatorComponent,
    complete,
    learn_each,
    learn_on_graph,
    learning,
)
from spectralgp.series.learning import SeriesExpectation, _SeparateNodes, series_task

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
    kernel = ProcessKernel.open(components, power, rate, residual, RatePriors.of(components, Timeline.of(times)))
    return Objective(series_task(spectrum, times, values), kernel.bind(spectrum), spectrum)


def test_rates_lie_between_one_over_the_step_and_one_over_the_span():
    times = np.r_[0.0, 2.0, 4.0, 6.0, 80.0]  # steps of two, mostly
    line, reach = Timeline.of(times), np.log(40.0)
    found = RatePriors.of(
        (MaternComponent(0.5), OscillatorComponent(3.0), MaternComponent(1.5), OscillatorComponent(50.0)), line
    )
    slow, fast = 1 / 80, 1 / 2
    # Matern processes at a third and two thirds of the way; oscillators keep their phase for five periods, or the span
    centres = [np.log(fast) - reach / 3, np.log(1 / 15), np.log(fast) - 2 * reach / 3, np.log(slow)]
    np.testing.assert_allclose(found.centres, centres, rtol=1e-12)
    np.testing.assert_allclose(found.spreads, [reach / 3, 1.5, reach / 3, 1.5])
    np.testing.assert_allclose(found.shifts, [reach, 0, reach, 0])
    assert found.least == pytest.approx(0.01 / 80)
    short = RatePriors.of(
        (MaternComponent(),), Timeline.of(np.array([0.0, 4.0, 8.0]))
    )  # of which the range is below one
    np.testing.assert_allclose([short.centres[0], short.spreads[0], short.shifts[0]], [-np.log(4) - 0.5, 1.0, 1.0])


@pytest.fixture(scope="module")
def objective(spectrum):
    """Of values that are six times as large as usual, with a residual."""
    values = 6 * np.random.default_rng(2).standard_normal((30, N_NODES))
    forms = Polynomial(2), Polynomial(1), Polynomial(1)
    return objective_of(
        spectrum, np.arange(30.0), values, (MaternComponent(0.5), OscillatorComponent(7.0)), *forms
    ), values


def test_searches_begin_with_constant_filters_that_share_the_variance(spectrum, objective):
    objective, values = objective
    variance, kernel = np.mean(values**2), objective.graph_kernel
    priors, starts = kernel.priors, objective.starting_points()
    assert len(starts) == 3
    form, _, noise = objective.split(starts[0])
    space, least = form.space(spectrum.eigenvalues, noise), form.least_rate
    np.testing.assert_allclose(space.powers, np.full((2, N_NODES), 0.8 * variance / 3), rtol=1e-9)
    rates = np.exp(priors.centres + 0.25 * priors.shifts) + least
    np.testing.assert_allclose(space.rates, np.tile(rates[:, None], N_NODES), rtol=1e-9)
    np.testing.assert_allclose(space.own, (0.8 / 3 + 0.2) * variance, rtol=1e-9)
    np.testing.assert_allclose(objective.bounds[-1], np.log([1e-6 * variance, 10 * variance]))
    assert objective.parameter_names == (
        *(f"power {n}: chebyshev[{k}]" for n in range(2) for k in range(3)),
        *(f"rate 0: chebyshev[{k}]" for k in range(2)),
        "rate 1: amplitude",
        *(f"residual: chebyshev[{k}]" for k in range(2)),
        "noise_variance",
    )
    assert objective.size == values.size


def test_precision_is_information_and_the_curvature_of_the_prior(spectrum, objective):
    objective, values = objective
    random = np.random.default_rng(1)
    x = objective.starting_points()[-1] + 0.2 * random.standard_normal(objective.units.size) * objective.units
    eigenvalues, step = spectrum.eigenvalues, 1e-6 * objective.units

    def local(x):
        kernel, _, noise = objective.split(x)
        space = kernel.space(eigenvalues, noise)
        return np.vstack([space.powers, space.rates, space.own])

    jacobian = np.stack([(local(x + move) - local(x - move)) / (2 * move.sum()) for move in np.diag(step)], axis=-1)
    form, _, noise_variance = objective.split(x)
    curvature = information(form.space(eigenvalues, noise_variance), Timeline.of(np.arange(30.0)))
    expected = np.einsum("aji,abj,bjk->ik", jacobian, curvature, jacobian)
    n, deviation = len(form.components), np.log(noise_variance / (0.1 * np.mean(values**2)))
    for number, (kernel, place) in enumerate(zip(form.kernels, form.places, strict=True)):
        is_rate = n <= number < 2 * n
        least = form.least_rate if is_rate else noise_variance
        expected[place, place] += kernel.search().log_prior(spectrum, least).precision
        if is_rate:
            mean, spread = local(x)[number].mean(), form.priors.spreads[number - n]
            slope = jacobian[number].mean(axis=0)[place] / (mean * spread)
            expected[place, place] += np.outer(slope, slope)
    expected[-1, -1] += 4 / 3 if deviation > 0 else 0.125 * N_NODES / np.hypot(1, deviation) ** 3
    values, vectors = np.linalg.eigh(expected * np.outer(objective.units, objective.units))
    vectors = vectors / objective.units[:, None]
    expected = (vectors * np.maximum(values, 1.0)) @ vectors.T  # in units of parameters at least one
    assert relative(objective.precision(x), expected) < 1e-6


def test_forms_grow_in_powers_first_and_then_in_rates(spectrum):
    components = MaternComponent(0.5), OscillatorComponent(7.0)
    priors = RatePriors.of(components, Timeline.of(np.arange(30.0)))
    form = ProcessKernel.open(components, Polynomial(2), Polynomial(3), Polynomial(1), priors)
    path = form.search().path()
    sizes = [[kernel.theta.size for kernel in one.kernels] for one in path]
    lengths = [len(kernel.search().path()) for kernel in form.kernels]
    powers, rates = [*lengths[:2], lengths[4]], lengths[2:4]
    assert len(path) == max(powers) + max(rates) - 1
    assert sizes[0] == [kernel.search().path()[0].theta.size for kernel in form.kernels]
    assert sizes[-1] == [kernel.theta.size for kernel in form.kernels]
    at_rates = len(path) - max(rates)  # the last form whose rates have not grown
    assert [one[2:4] for one in sizes[: at_rates + 1]] == [sizes[0][2:4]] * (at_rates + 1)
    assert sizes[at_rates][:2] + sizes[at_rates][4:] == sizes[-1][:2] + sizes[-1][4:]
    random = np.random.default_rng(0)
    for simpler, larger in pairwise(path):
        at = simpler.with_theta(random.uniform(0.3, 0.9, simpler.theta.size))
        assert at.search().is_given  # as those of its polynomials are
        grown = larger.with_theta(larger.search().grown_from(at))
        assert [kernel.theta.size for kernel in grown.kernels] == [kernel.theta.size for kernel in larger.kernels]
        for part in ("powers", "rates", "own"):
            one, other = (getattr(form.space(spectrum.eigenvalues, 0.1), part) for form in (at, grown))
            np.testing.assert_allclose(one, other, rtol=1e-9)


def nodes_alone(*components):
    line = Timeline.of(np.arange(60.0))
    values = np.random.default_rng(4).standard_normal((60, 3)).cumsum(axis=0) * [0.2, 1.0, 5.0]
    return _SeparateNodes(line, components, RatePriors.of(components, line), np.mean(values**2, axis=0)), values


def test_nodes_on_their_own_end_at_the_highest_log_posterior(monkeypatch):
    nodes, values = nodes_alone(MaternComponent(0.5), OscillatorComponent(9.0))
    calls = []
    monkeypatch.setattr(learning, "evaluate", lambda *given: calls.append(1) or evaluate(*given))
    variances, priors = nodes.mean_squares, nodes.priors
    centre = nodes.start(0.0)
    np.testing.assert_allclose(np.exp(centre[:2]), np.tile(0.4 * variances, (2, 1)))
    np.testing.assert_allclose(np.exp(centre[4]), 0.2 * variances)
    np.testing.assert_allclose(centre[2:4], np.tile(priors.centres[:, None], 3))
    moved = nodes.start(0.25) - centre
    np.testing.assert_allclose(moved[2:4], np.tile(0.25 * priors.shifts[:, None], 3), atol=1e-12)

    def posterior(x):
        filtered = Filter.of(nodes.process(x).space, nodes.timeline)
        precisions = np.r_[0.02, 0.02, priors.spreads**-2.0, 0.02]
        return filtered.log_likelihoods(filtered.innovations(values)[0]) - 0.5 * precisions @ (x - centre) ** 2

    x, value = nodes.scored([values], centre)
    assert 15 < len(calls) < 32
    np.testing.assert_allclose(value, posterior(x), rtol=1e-9)
    assert np.all(value > posterior(centre))
    for place in range(5):
        for sign in (-1, 1):
            shift = np.zeros(x.shape)
            shift[place] = sign * 0.5
            assert np.all(posterior(x + shift) < value)
    highest = posterior(nodes.learnt([values]))
    tried = [nodes.scored([values], nodes.start(shift))[1] for shift in (0.0, 0.25, -0.25)]
    np.testing.assert_allclose(highest, np.max(tried, axis=0), rtol=1e-12)


def test_nodes_go_on_from_what_was_learnt_of_other_rows():
    nodes, _ = nodes_alone(MaternComponent(0.5))
    least = nodes.priors.least
    rates = np.array([[0.3, 1.2 * least, 0.5 * least]])
    process = ModalProcess((MaternComponent(0.5),), np.array([[1.0, 2.0, 3.0]]), rates, np.array([0.1, 0.2, 0.3]), None)
    again = nodes.process(nodes.logarithms(process))
    np.testing.assert_allclose(again.powers, process.powers)
    np.testing.assert_allclose(again.own, process.own)
    np.testing.assert_allclose(again.rates, [[0.3, 2 * least, 2 * least]])  # slower ones as slow as can be told


@pytest.mark.parametrize(
    ("n_steps", "n_missing", "n_draws"), [(100, 1, 2), (100, 25, 2), (100, 100, 8), (100, 101, 9), (1, 3, 24)]
)
def test_draws_are_as_many_as_values_are_missing(n_steps, n_missing, n_draws):
    """Thirty-two times the share, of a million values at most, and two at least."""
    edgeless = decompose(Graph.edgeless(4))
    values = np.zeros((n_steps, 4))
    values.ravel()[:n_missing] = np.nan
    task = series_task(edgeless, np.arange(float(n_steps)), values)
    assert SeriesExpectation(task).n_draws == n_draws
    assert SeriesExpectation(task, most_drawn=5 * values.size + 1).n_draws == min(n_draws, 5)


@pytest.mark.parametrize(
    ("power", "rate", "residual"),
    [
        (Polynomial(2), Polynomial(1), Polynomial(1)),
        (Polynomial(1), None, None),
        (Diffusion(laplacian="combinatorial", scaled=True), Polynomial(2, "interval"), None),
    ],
)
def test_the_slope_of_the_log_posterior_equals_differences(spectrum, power, rate, residual):
    random = np.random.default_rng(0)
    times, values = np.arange(60.0), random.standard_normal((60, N_NODES))
    components = (MaternComponent(0.5), MaternComponent(1.5), OscillatorComponent(7.0))
    objective = objective_of(spectrum, times, values, components, power, rate, residual)
    x = objective.starting_points()[-1] + 0.05 * random.standard_normal(objective.units.size) * objective.units
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
    components = (MaternComponent(1.5), OscillatorComponent(12.0))
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
    values = drawn(spectrum, (MaternComponent(0.5),), [power], [rate], np.full(N_NODES, 0.2), times)
    fit = learn_on_graph(spectrum, times, values, (MaternComponent(0.5),), Polynomial(1), Polynomial(1))
    assert fit.converged, fit.detail
    assert fit.certificate.stationarity < 1e-3 * np.sqrt(values.size)
    spread_power, spread_rate = fit.bands(frequencies)
    assert np.all(np.abs(np.log(fit.process.powers[0] / power)) < STANDARD_ERRORS * spread_power[0])
    assert np.all(np.abs(np.log(fit.process.rates[0] / rate)) < STANDARD_ERRORS * spread_rate[0])
    assert np.max(spread_rate) < 0.3
    kernel, step = fit.kernel, 1e-6 * np.abs(fit.kernel.theta)
    covariance = np.linalg.inv(fit.precision)
    for part, spread in (("powers", spread_power), ("rates", spread_rate)):  # by differences of logarithms
        ends = [
            [
                getattr(kernel.with_theta(kernel.theta + sign * move).space(frequencies, 0.1), part)[0]
                for sign in (-1, 1)
            ]
            for move in np.diag(step)
        ]
        slopes = np.array([np.log(high / low) for low, high in ends]) / (2 * step[:, None])
        place = kernel.places[0 if part == "powers" else 1]
        own = np.einsum("aj,ab,bj->j", slopes[place], covariance[place, place], slopes[place])
        np.testing.assert_allclose(spread[0], np.sqrt(own), rtol=1e-4)
    separable = learn_on_graph(spectrum, times, values, (MaternComponent(0.5),), Polynomial(1))
    assert np.ptp(separable.process.rates) == 0
    assert separable.log_likelihood < fit.log_likelihood - 100
    assert fit.process.filtered(times, values).log_likelihood == pytest.approx(fit.log_likelihood, rel=1e-10)


def test_rows_of_nan_are_skipped_and_a_residual_is_learnt(spectrum):
    frequencies = spectrum.eigenvalues
    own = 0.1 + np.square(1 - frequencies)
    times = np.arange(1_500.0)
    values = drawn(spectrum, (MaternComponent(1.5),), [np.ones(N_NODES)], [np.full(N_NODES, 0.1)], own, times)
    incomplete = values.copy()
    incomplete[100:110] = np.nan
    kept = np.setdiff1d(np.arange(1_500), np.arange(100, 110))
    arguments = (MaternComponent(1.5),), Polynomial(1), None, Polynomial(1)
    fit = learn_on_graph(spectrum, times, incomplete, *arguments)
    same = learn_on_graph(spectrum, times[kept], values[kept], *arguments)
    assert fit.log_posterior == same.log_posterior
    assert np.max(np.abs(np.log(fit.process.own / own))) < 0.2
    plain = learn_on_graph(spectrum, times, incomplete, (MaternComponent(1.5),), Polynomial(1))
    assert plain.log_likelihood < fit.log_likelihood - 50


def test_a_component_that_does_nothing_is_dropped(spectrum):
    times = np.arange(4_000.0)
    values = drawn(
        spectrum, (MaternComponent(0.5),), [np.ones(N_NODES)], [np.full(N_NODES, 0.3)], np.full(N_NODES, 0.2), times
    )
    fit = learn_on_graph(spectrum, times, values, (MaternComponent(0.5), OscillatorComponent(10.0)), Polynomial(1))
    assert fit.kernel.components == fit.process.components == (MaternComponent(0.5),)
    assert fit.converged


def test_nodes_on_their_own_are_learnt_alike_alone_and_together():
    times = np.arange(700.0)
    rates, powers = np.array([[0.05, 0.2, 0.6, 0.1]]), np.array([[1.0, 0.5, 2.0, 1.0]])
    space = StateSpace((MaternComponent(0.5),), powers, rates, np.array([0.1, 0.3, 0.2, 0.05]))
    values = Filter.of(space, Timeline.of(times)).drawn(np.random.default_rng(3).standard_normal((700, 4)))
    values[33] = np.nan
    together = learn_each(times, values, (MaternComponent(0.5), OscillatorComponent(9.0)))
    assert together.basis is None
    alone = learn_each(times, values[:, 2:3], (MaternComponent(0.5), OscillatorComponent(9.0)))
    assert relative(together.powers[:, 2:3], alone.powers) < 1e-6
    assert np.max(np.abs(np.log(together.powers[0] / powers[0]))) < 0.7
    assert np.max(np.abs(np.log(together.rates[0] / rates[0]))) < 0.7
    truth = [Filter.of(space, Timeline.of(np.delete(times, 33)))]
    seen = np.delete(values, 33, axis=0)
    expected = truth[0].log_likelihoods(truth[0].innovations(seen)[0])
    found = together.filtered(times, values).log_likelihood
    assert found > expected.sum()


def test_lengths_of_long_series_do_not_change_what_is_learnt(spectrum):
    times = np.arange(2_000.0)
    rates = [0.1 + 0.3 * spectrum.eigenvalues]
    values = drawn(spectrum, (MaternComponent(0.5),), [np.ones(N_NODES)], rates, np.full(N_NODES, 0.3), times)
    arguments = spectrum, times, values, (MaternComponent(0.5),), Polynomial(1), Polynomial(1)
    whole, windowed = learn_on_graph(*arguments), learn_on_graph(*arguments, most_first=4_000)
    assert windowed.log_posterior == pytest.approx(whole.log_posterior, abs=1e-3)
    assert windowed.n_evaluations < whole.n_evaluations


@pytest.mark.parametrize("has_missing", [False, True])
def test_a_search_that_goes_on_from_other_rows_ends_where_others_do(spectrum, has_missing):
    times, random = np.arange(1_200.0), np.random.default_rng(5)
    rates = [0.1 + 0.3 * spectrum.eigenvalues]
    values = drawn(spectrum, (MaternComponent(0.5),), [np.ones(N_NODES)], rates, np.full(N_NODES, 0.3), times)
    if has_missing:
        values[random.random(values.shape) < 0.05] = np.nan
    form = (MaternComponent(0.5),), Polynomial(1), Polynomial(1)
    whole = learn_on_graph(spectrum, times, values, *form)
    part = learn_on_graph(spectrum, times[:400], values[:400], *form)
    found = learn_on_graph(spectrum, times, values, *form, start=part)
    if not has_missing:  # of which the value is an expected one
        assert found.log_posterior == pytest.approx(whole.log_posterior, abs=1e-3)
    assert relative(found.process.rates, whole.process.rates) < (0.05 if has_missing else 1e-3)
    assert found.n_evaluations < whole.n_evaluations
    alone = learn_each(times, values, (MaternComponent(0.5),))
    again = learn_each(
        times, values, (MaternComponent(0.5),), start=learn_each(times[:400], values[:400], (MaternComponent(0.5),))
    )
    assert relative(again.rates, alone.rates) < (0.05 if has_missing else 1e-2)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda s, t, y: learn_on_graph(s, t, y, (), Polynomial(1)), r"components must hold at least one"),
        (
            lambda s, t, y: learn_on_graph(s, t[:2], y[:2], (MaternComponent(),), Polynomial(1)),
            r"values must have 3 rows",
        ),
        (lambda s, t, y: learn_each(t[:2], y[:2], (MaternComponent(),)), r"values must have 3 rows or more"),
        (
            lambda s, t, y: learn_on_graph(s, t, y[:, 1:], (MaternComponent(),), Polynomial(1)),
            r"values must have shape",
        ),
    ],
)
def test_what_cannot_be_learnt_is_said(spectrum, ask, message):
    times = np.arange(10.0)
    with pytest.raises(ValueError, match=message):
        ask(spectrum, times, np.random.default_rng(0).standard_normal((10, N_NODES)))


def test_nodes_with_missing_values_are_completed_under_what_was_learnt_before(monkeypatch):
    """Six times, by solves that go on from the last ones; once from several starts, unless something is known."""
    values = np.random.default_rng(4).standard_normal((60, 2)).cumsum(axis=0) * [0.2, 1.0]
    values[[3, 40], [1, 0]] = np.nan
    completed, searched, times = [], [], np.arange(60.0)

    def counted(process, at, rows, n_draws, before, tolerance):
        completed.append((process, before))
        return complete(process, at, rows, n_draws, before, tolerance)

    monkeypatch.setattr(learning, "complete", counted)
    several = _SeparateNodes.learnt
    monkeypatch.setattr(_SeparateNodes, "learnt", lambda self, sets: searched.append(len(sets)) or several(self, sets))
    found = learn_each(times, values, (MaternComponent(0.5),))
    assert (len(completed), searched) == (6, [3])  # with two draws
    assert [before is None for _, before in completed] == [True] + 5 * [False]
    rates = np.array([process.rates for process, _ in completed])
    assert np.abs(np.log(found.rates / rates[-1])).max() < 0.2 * np.abs(np.log(rates[1] / rates[0])).max()
    learn_each(times, values, (MaternComponent(0.5),), start=found)
    assert (len(completed), len(searched)) == (12, 1)
    np.testing.assert_allclose(completed[6][0].rates, found.rates, rtol=1e-9)


def test_three_rows_are_enough_to_learn_from():
    rows = np.array([[1.0, 2.0], [np.nan, np.nan], [0.5, 0.0], [-1.0, 3.0]])
    found, expected = (
        learn_each(np.arange(4.0)[own], rows[own], (MaternComponent(),)) for own in (slice(None), [0, 2, 3])
    )
    np.testing.assert_array_equal([found.powers, found.rates], [expected.powers, expected.rates])
    assert np.isfinite([found.powers, found.rates]).all()
