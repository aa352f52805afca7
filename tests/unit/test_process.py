"""Processes in time against Gaussian conditioning with dense matrices over all nodes and times."""

import pickle

import numpy as np
import pytest

import oracle
from spectralgp.series import MaternComponent, ModalProcess, OscillatorComponent, completed_in_turn, rolling
from spectralgp.series.process import _largest

TOLERANCE = 1e-9  # of a dense covariance of all nodes and times
SAME = 1e-10  # of the issue: updates against one pass
STANDARD_ERRORS = 5.0
COMPONENTS = (MaternComponent(1.5), MaternComponent(0.5), OscillatorComponent(6.0, 2))
N_NODES = 3


def make(has_basis=True, seed=0):
    random = np.random.default_rng(seed)
    shape = (len(COMPONENTS), N_NODES)
    basis = np.linalg.qr(random.standard_normal((N_NODES, N_NODES)))[0] if has_basis else None
    powers, rates = np.exp(0.5 * random.standard_normal(shape)), np.exp(0.5 * random.standard_normal(shape) - 1)
    return ModalProcess(COMPONENTS, powers, rates, np.exp(random.standard_normal(N_NODES) - 1), basis)


def conditioned(process, times, values, later):
    """Mean and covariance of rows at later times given values that are not NaN, and the log density of these."""
    covariance = oracle.process_covariance(process, np.concatenate([times, later]))
    kept = np.concatenate([~np.isnan(values).ravel(), np.ones(later.size * N_NODES, bool)])
    covariance, y = covariance[np.ix_(kept, kept)], values[~np.isnan(values)]
    n = y.size
    weights = np.linalg.solve(covariance[:n, :n], covariance[:n, n:])
    log_density = -0.5 * (
        y @ np.linalg.solve(covariance[:n, :n], y) + np.linalg.slogdet(covariance[:n, :n])[1] + n * np.log(2 * np.pi)
    )
    return weights.T @ y, covariance[n:, n:] - weights.T @ covariance[:n, n:], log_density


def error(found, expected):
    return np.max(np.abs(found - expected)) / np.max(np.abs(expected))


@pytest.fixture(params=[True, False], ids=["graph", "nodes"])
def process(request):
    return make(request.param)


@pytest.fixture
def times():
    return np.delete(np.arange(40) * 0.5, [7, 20, 21])


@pytest.fixture
def values(times):
    return np.random.default_rng(1).standard_normal((times.size, N_NODES))


LATER = np.array([20.0, 20.5, 23.0])


def test_a_forecast_equals_dense_conditioning(process, times, values):
    known = process.filtered(times, values)
    forecast = known.forecast(LATER)
    mean, covariance, log_density = conditioned(process, times, values, LATER)
    assert known.log_likelihood == pytest.approx(log_density, rel=TOLERANCE)
    assert error(forecast.mean.ravel(), mean) < TOLERANCE
    assert error(forecast.variance.ravel(), np.diag(covariance)) < TOLERANCE
    for step in range(LATER.size):
        part = slice(step * N_NODES, (step + 1) * N_NODES)
        assert error(forecast.node_covariance(step), covariance[part, part]) < TOLERANCE


def test_updates_equal_one_pass(process, times, values):
    whole = process.filtered(times, values)
    known = process.filtered(times[:10], values[:10])
    for row in range(10, times.size):
        known = known.updated(times[row : row + 1], values[row : row + 1])
    for name in ("time", "state", "covariance", "log_likelihood"):
        assert error(np.asarray(getattr(known, name)), np.asarray(getattr(whole, name))) < SAME
    gained = known.log_likelihood - process.filtered(times[:10], values[:10]).log_likelihood
    *_, log_density = conditioned(process, times, values, LATER)
    *_, log_density_before = conditioned(process, times[:10], values[:10], LATER)
    assert gained == pytest.approx(log_density - log_density_before, rel=TOLERANCE)


def test_rows_of_nan_are_skipped(process, times, values):
    incomplete = values.copy()
    incomplete[[0, 5, 6, 36]] = np.nan
    kept = np.setdiff1d(np.arange(times.size), [0, 5, 6, 36])
    found, expected = process.filtered(times, incomplete), process.filtered(times[kept], values[kept])
    assert found.log_likelihood == expected.log_likelihood
    assert found.time == times[35]
    assert np.array_equal(found.forecast(LATER).mean, expected.forecast(LATER).mean)
    assert np.array_equal(found.forecast(LATER).variance, expected.forecast(LATER).variance)
    same = found.updated(times[:1] + 30, incomplete[:1])
    assert same.time == found.time
    assert same.log_likelihood == found.log_likelihood
    assert np.array_equal(same.state, found.state)


@pytest.mark.parametrize("first", [0.0, -3.5, 1e9, 1e12])
def test_a_process_begins_at_the_first_row_whenever_that_is(process, times, values, first):
    moved = process.filtered(first + times, values)
    np.testing.assert_allclose(moved.log_likelihood, process.filtered(times, values).log_likelihood, rtol=1e-9)
    before = process.start(first + times[0])
    assert before.time < first + times[0]
    holed = np.where(np.arange(len(times))[:, None] == 0, np.array([np.nan, 1.0, 2.0]), values)
    found = [process.filtered(start + times, holed).log_likelihood for start in (0.0, first)]
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.parametrize("has_missing", [False, True])
def test_draws_have_the_law_of_the_forecast(process, times, values, has_missing):
    n_samples = 4_000
    if has_missing:  # in the last rows, so that much is open
        values = np.where(np.arange(times.size)[:, None] >= times.size - 3, np.array([np.nan, np.nan, 1.0]), values)
    forecast = process.filtered(times, values).forecast(LATER)
    assert bool(len(forecast.known.unknown)) == (has_missing and process.basis is not None)
    mean, covariance, _ = conditioned(process, times, values, LATER)
    draws = forecast.sample(n_samples, 3).reshape(n_samples, -1)
    deviations = draws - mean
    assert np.all(np.abs(deviations.mean(axis=0)) < STANDARD_ERRORS * np.sqrt(np.diag(covariance) / n_samples))
    found = deviations.T @ deviations / n_samples
    spread = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / n_samples)
    assert np.all(np.abs(found - covariance) < STANDARD_ERRORS * spread)
    assert np.array_equal(forecast.sample(2, 7), forecast.sample(2, 7))


def test_a_process_is_pickled_without_what_it_computed(times, values):
    process = make()
    before = process.filtered(times, values).forecast(LATER).mean
    again = pickle.loads(pickle.dumps(process))
    assert "space" not in vars(again)
    assert np.array_equal(again.filtered(times, values).forecast(LATER).mean, before)


@pytest.fixture
def holed(values):
    incomplete = np.where(np.random.default_rng(2).random(values.shape) < 0.3, np.nan, values)
    incomplete[5] = np.nan
    return incomplete


def test_rows_with_missing_values_equal_dense_conditioning(process, times, holed):
    mean, covariance, log_density = conditioned(process, times, holed, LATER)
    known = process.filtered(times, holed)
    ahead = known.forecast(LATER)
    blocks = covariance.reshape(LATER.size, N_NODES, LATER.size, N_NODES)
    assert error(ahead.mean.ravel(), mean) < TOLERANCE
    assert error(ahead.variance.ravel(), np.diag(covariance)) < TOLERANCE
    for place in range(LATER.size):
        assert error(ahead.node_covariance(place), blocks[place, :, place]) < TOLERANCE
    assert abs(known.log_likelihood - log_density) < TOLERANCE * abs(log_density)


def test_updates_with_missing_values_equal_dense_conditioning_and_add_up_to_the_density(process, times, holed, values):
    rows = np.concatenate([values[:10], holed[10:30], values[30:]])  # complete, with missing values, complete again
    mean, _, log_density = conditioned(process, times, rows, LATER)
    known = process.filtered(times[:10], rows[:10])
    for step in range(10, len(times)):
        known = known.updated(times[step : step + 1], rows[step : step + 1])
    assert abs(known.log_likelihood - log_density) < TOLERANCE * abs(log_density)
    assert error(known.forecast(LATER).mean.ravel(), mean) < TOLERANCE


def test_what_missing_values_leave_open_is_forgotten(process, times, holed):
    known = process.filtered(times, holed)
    later = times[-1] + 0.5 * np.arange(1, 400)
    rows = np.random.default_rng(4).standard_normal((later.size, N_NODES))
    assert len(known.unknown) == (0 if process.basis is None else known.unknown.shape[0])
    assert len(known.updated(later, rows).unknown) == 0


@pytest.mark.parametrize(("n_directions", "n_modes"), [(7, 4), (256, 130), (257, 130)])
def test_what_is_open_is_kept_by_its_largest_directions(n_directions, n_modes):
    """By 256 of them at most."""
    random = np.random.default_rng(5)
    directions = random.standard_normal((n_directions, 2, n_modes))
    scales = np.exp(random.standard_normal((2, n_modes)))
    covariance = np.zeros((2, 2, n_modes))
    covariance[0, 0], covariance[1, 1] = scales**2
    flat = (directions / scales).reshape(n_directions, -1)
    values, vectors = np.linalg.eigh(flat.T @ flat)
    for smallest, kept in ((0.0, min(n_directions, 256)), (np.sqrt(values[-3]) * 1.001, 2), (1e9, 0)):
        found = (_largest(directions, covariance, smallest) / scales).reshape(kept, 2 * n_modes)
        chosen = vectors[:, len(values) - kept :]
        np.testing.assert_allclose(found.T @ found, (chosen * values[len(values) - kept :]) @ chosen.T, atol=1e-9)


def forecasts_from_each(process, times, rows, origins, horizons, tolerance):
    """Hold rolling forecasts against those from each origin."""
    means, variances = rolling(process, times, rows, origins, horizons)
    for place, origin in enumerate(origins):
        ahead = process.filtered(times[: origin + 1], rows[: origin + 1]).forecast(times[origin + horizons])
        assert error(means[place], ahead.mean) < tolerance
        assert error(variances[place], ahead.variance) < tolerance


def test_rolling_origins_equal_forecasts_from_each(process, times, values):
    empty = values.copy()
    empty[[9, 12]] = np.nan
    forecasts_from_each(process, times, empty, np.array([8, 9, 15, 30]), np.array([1, 3, 6]), SAME)


@pytest.mark.parametrize("smallest", [1e-10, 1e-3])
def test_rolling_origins_with_missing_values_equal_forecasts_from_each(process, times, holed, monkeypatch, smallest):
    monkeypatch.setattr("spectralgp.series.process.ROUGHLY_OPEN", smallest)
    tolerance = max(TOLERANCE, smallest)
    forecasts_from_each(process, times, holed, np.array([4, 5, 12, 30]), np.array([1, 3]), tolerance)


def test_no_forecast_and_no_completion_knows_of_later_rows(process, times, holed):
    others = holed.copy()
    others[20:] = np.where(np.isnan(holed[20:]), np.nan, 50.0)
    origins = np.arange(3, 20)
    for one in (0, 1):
        found = [rolling(process, times, rows, origins, np.array([1, 4]))[one] for rows in (holed, others)]
        assert np.array_equal(*found)
    filled = [completed_in_turn(process, times, rows) for rows in (holed, others)]
    assert np.array_equal(filled[0][:20], filled[1][:20], equal_nan=True)
    assert np.array_equal(filled[0][~np.isnan(holed)], holed[~np.isnan(holed)])
    row = int(np.flatnonzero(np.isnan(holed).any(axis=1) & ~np.isnan(holed).all(axis=1))[-1])
    missing, past = np.isnan(holed[row]), np.delete(np.arange(row + 1), [])
    covariance = oracle.process_covariance(process, times[past])
    seen = ~np.isnan(holed[past]).ravel()
    weights = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[seen])
    expected = (weights.T @ holed[past].ravel()[seen]).reshape(past.size, N_NODES)[row]
    assert np.max(np.abs(filled[0][row][missing] - expected[missing])) < 1e-3


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda p, t, y: p.filtered(t, np.full(y.shape, np.nan)), r"values must have a row that is not NaN; got none"),
        (lambda p, t, y: p.filtered(t, y[:, :2]), r"values must have shape .* n_nodes = 3"),
        (lambda p, t, y: p.filtered(t, y).forecast([0.0]), r"times must be later than the last row, at 19.5; got 0.0"),
        (lambda p, t, y: p.filtered(t, y).forecast([]), r"times must be later than the last row, at 19.5; got none"),
        (lambda p, t, y: p.filtered(t, y).updated(t[:1], y[:1]), r"times must be later than the last row"),
        (lambda p, t, y: p.filtered(t, y).updated([19.5, 20.0], y[:2]), r"later than the last row, at 19.5; got 19.5"),
        (lambda p, t, y: p.filtered(t[[0, 1, 1]], y[:3]), r"times must increase; got 0.5 before 0.5"),
        (lambda p, t, y: rolling(p, t, y, [36], [1]), r"must point to rows of values; got row 37 of 37"),
        (lambda p, t, y: rolling(p, t, y, [3, -1], [1]), r"must point to rows after the first one seen"),
        (lambda p, t, y: rolling(p, t, y, [3], [0]), r"must point to rows after the first one seen"),
    ],
)
def test_what_cannot_be_done_is_said(ask, message, times, values):
    with pytest.raises(ValueError, match=message):
        ask(make(), times, values)
