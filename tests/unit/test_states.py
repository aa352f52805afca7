"""Filters and their adjoints against dense matrices written out of lags: equations (28) to (32)."""

import numpy as np
import pytest

import oracle
from spectralgp.model.statespace import (
    Filter,
    MaternComponent,
    OscillatorComponent,
    StateSpace,
    Timeline,
    evaluate,
    filters,
    plain,
)

TOLERANCE = 1e-10  # of the issue, against dense algebra
SAME = 1e-11  # of the issue, between two ways of one recursion
GRADIENT = 1e-7  # of the issue, against differences

SUMS = {
    "1/2": (MaternComponent(0.5),),
    "3/2": (MaternComponent(1.5),),
    "5/2": (MaternComponent(2.5),),
    "oscillator": (OscillatorComponent(7.3),),
    "1/2 + 5/2": (MaternComponent(0.5), MaternComponent(2.5)),
    "3/2 + harmonics": (MaternComponent(1.5), OscillatorComponent(24.0, 3)),
}
N_MODES = 4


def case(name, spacing, n_steps=150, n_modes=N_MODES):
    random = np.random.default_rng(sum(map(ord, name + spacing)))
    components = SUMS[name]
    shape = (len(components), n_modes)
    space = StateSpace(
        components,
        np.exp(0.5 * random.standard_normal(shape)),
        np.exp(0.5 * random.standard_normal(shape) - 1),
        np.exp(0.3 * random.standard_normal(n_modes) - 1),
    )
    times = {
        "even": np.arange(n_steps) / 2.0,
        "gaps": np.delete(np.arange(n_steps + 20) * 0.3, random.integers(1, n_steps, 12)),
        "irregular": np.cumsum(random.gamma(2.0, 0.5, n_steps)),
    }[spacing]
    values = 0.2 * random.standard_normal((times.size, n_modes)).cumsum(axis=0) + random.standard_normal(
        (times.size, n_modes)
    )
    return space, times, values


def error(found, expected):
    return np.max(np.abs(found - expected)) / np.max(np.abs(expected))


@pytest.fixture
def run_by(monkeypatch):
    """A function that chooses the module whose loops filters run."""
    return lambda loops: monkeypatch.setattr(filters, "_loops", lambda: loops)


@pytest.fixture(params=["compiled", "plain"])
def engine(request, run_by):
    if request.param == "plain":
        run_by(plain)
    else:
        pytest.importorskip("numba")
    return request.param


every = pytest.mark.parametrize("name", SUMS)
spacings = pytest.mark.parametrize("spacing", ["even", "gaps", "irregular"])


@every
@spacings
def test_a_filter_equals_dense_algebra(name, spacing, engine):
    space, times, values = case(name, spacing)
    found = Filter.of(space, Timeline.of(times))
    white = np.random.default_rng(0).standard_normal(values.shape)
    solved, diagonal, product = found.solve(values), found.inverse_diagonal(), found.times(values)
    drawn, likelihoods = found.drawn(white), found.log_likelihoods(found.innovations(values)[0])
    for mode, covariance in enumerate(oracle.time_covariances(space, times)):
        z, inverse, (_, log_determinant) = values[:, mode], np.linalg.inv(covariance), np.linalg.slogdet(covariance)
        expected = -0.5 * (z @ inverse @ z + log_determinant + times.size * np.log(2 * np.pi))
        assert likelihoods[mode] == pytest.approx(expected, rel=TOLERANCE)
        assert error(solved[:, mode], inverse @ z) < TOLERANCE
        assert error(diagonal[:, mode], np.diag(inverse)) < TOLERANCE
        assert error(product[:, mode], covariance @ z) < TOLERANCE
        assert error(drawn[:, mode], np.linalg.cholesky(covariance) @ white[:, mode]) < TOLERANCE
    assert error(found.whitened(drawn), white) < TOLERANCE


def evaluated(space, line, values):
    """Log likelihoods, and their slopes in powers, rates and own variances."""
    value, slopes = evaluate(space, line, values)
    return value, *np.split(slopes[:-1], 2), slopes[-1]


@every
@spacings
def test_slopes_equal_differences(name, spacing, engine):
    space, times, values = case(name, spacing)
    line = Timeline.of(times)
    found = evaluated(space, line, [values])

    def value(powers, rates, own):
        changed = StateSpace(space.components, powers, rates, own)
        filtered = Filter.of(changed, line)
        return filtered.log_likelihoods(filtered.innovations(values)[0])

    parts = (space.powers, space.rates, space.own)
    assert error(found[0], value(*parts)) < 1e-13
    scale = max(np.max(np.abs(slope * part)) for slope, part in zip(found[1:], parts, strict=True))
    for number, slopes in enumerate(found[1:]):
        for place in np.ndindex(parts[number].shape[:-1]):
            small = 1e-5 * parts[number][place]
            ends = []
            for sign in (-1, 1):
                moved = [part.copy() for part in parts]
                moved[number][place] += sign * small
                ends.append(value(*moved))
            difference = (ends[1] - ends[0]) / (2 * small)
            assert np.max(np.abs((slopes[place] - difference) * parts[number][place])) < GRADIENT * scale


@every
@pytest.mark.parametrize("spacing", ["even", "gaps"])
def test_a_steady_state_equals_the_full_recursion(name, spacing, engine, monkeypatch):
    space, times, values = case(name, spacing, n_steps={"even": 400, "gaps": 1_000}[spacing])
    line = Timeline.of(times)

    def answers():
        found = Filter.of(space, line)
        return len(found.table[0]), (found.solve(values), found.inverse_diagonal(), *evaluated(space, line, [values]))

    n_rows, steady = answers()
    monkeypatch.setattr(filters, "STEADY", -1.0)  # never
    n_full, full = answers()
    assert n_full == times.size
    assert n_rows < 0.9 * times.size
    for one, other in zip(steady, full, strict=True):
        assert error(one, other) < SAME


def answers(space, line, values):
    """All that a filter answers."""
    found = Filter.of(space, line)
    return [
        *found.table,
        found.solve(values),
        found.inverse_diagonal(),
        found.times(values),
        found.drawn(values),
        *evaluated(space, line, [values, 0.5 * values]),
    ]


@pytest.mark.parametrize("name", ["1/2", "1/2 + 5/2", "oscillator"])
@pytest.mark.parametrize("spacing", ["even", "gaps"])
@pytest.mark.parametrize("steady", [filters.STEADY, 1e-3])
def test_loops_stay_inside_their_arrays(name, spacing, steady, monkeypatch):
    """As Python they refuse what compiled ones would do in silence; with a high tolerance states are steady soon."""
    loops = pytest.importorskip("spectralgp.model.statespace.compiled")
    space, times, values = case(name, spacing, n_steps=40, n_modes=2)
    times, values = times[:24], values[:24]
    line = Timeline.of(times)
    monkeypatch.setattr(filters, "STEADY", steady)
    expected = answers(space, line, values)
    for one in ("gains", "forward", "backward", "scores", "informations", "products"):
        monkeypatch.setattr(loops, one, getattr(loops, one).py_func)
    for one, other in zip(answers(space, line, values), expected, strict=True):
        assert error(one, other) < SAME


@every
@spacings
def test_numpy_equals_numba(name, spacing, run_by):
    pytest.importorskip("numba")
    space, times, values = case(name, spacing, n_steps=300)
    line = Timeline.of(times)

    compiled = answers(space, line, values)
    run_by(plain)
    for one, other in zip(answers(space, line, values), compiled, strict=True):
        assert error(one, other) < SAME


def test_lots_of_modes_change_nothing(monkeypatch):
    space, times, values = case("3/2 + harmonics", "gaps", n_modes=19)
    line = Timeline.of(times)
    whole = evaluated(space, line, [values])
    monkeypatch.setattr(filters, "MOST_NUMBERS", 1)
    assert len(list(filters.lots(space, line))) == 3
    for one, other in zip(evaluated(space, line, [values]), whole, strict=True):
        assert error(one, other) < 1e-12


@pytest.mark.parametrize(
    ("change", "before", "tolerance", "expected"),
    [
        (1.0, np.inf, 1.0, True),  # of one change alone: nothing is taken to come
        (1.0, np.inf, 0.9, False),
        (0.5, 1.0, 0.999, False),  # halved each time, so that as much again is to come
        (0.5, 1.0, 1.0, True),
        (2.0, 1.0, 199.0, False),  # growing: a hundred times as much
        (2.0, 1.0, 201.0, True),
        (0.0, 0.0, 0.0, True),
        (1.0, 0.0, 0.9, False),
    ],
)
def test_changes_have_settled_when_those_to_come_add_up_to_little(change, before, tolerance, expected):
    assert plain.has_settled(change, before, tolerance) is expected


@pytest.mark.parametrize("kind", ["loops", "plain"])
def test_steps_that_repeat_are_taken_at_once(kind, run_by, monkeypatch):
    """Steps whose gains have settled have one row; those whose information has settled too are one step back."""
    loops, n_steps = pytest.importorskip("spectralgp.model.statespace.compiled"), 300
    taken, name = [], {"loops": "_multiply_matrix", "plain": "written_out"}[kind]
    module = {"loops": loops, "plain": plain}[kind]
    counted = getattr(module, name)
    for one in ("gains", "forward", "informations"):
        monkeypatch.setattr(loops, one, getattr(loops, one).py_func)
    run_by(module)
    space = case("1/2", "even", n_modes=1)[0]
    found = Filter.of(space, Timeline.of(np.arange(n_steps) / 2.0))
    n_rows = len(found.table.gains)
    assert n_rows < 60
    monkeypatch.setattr(module, name, lambda *given: taken.append(1) or counted(*given))
    found.inverse_diagonal()
    assert n_rows < len(taken) < 2.5 * n_rows


def test_a_table_has_a_row_per_step_until_it_is_steady_and_again_after_a_gap():
    space = case("1/2", "even")[0]
    times = np.delete(np.arange(300.0), [150])
    found = Filter.of(space, Timeline.of(times))
    index = found.table.row_of
    n_first = int(np.argmax(np.diff(index) == 0)) + 1
    assert index[:n_first].tolist() == list(range(n_first))
    assert set(index[n_first:150].tolist()) == {n_first - 1}
    assert index[150] == n_first  # after the gap
    assert len(found.table.gains) == len(found.table.variances) == index.max() + 1
    assert len(found.table.filtered) == 1
    kept = Filter.of(space, Timeline.of(times), keeps_covariances=True)
    assert len(kept.table.filtered) == index.max() + 1
    np.testing.assert_allclose(kept.table.filtered[-1], found.table.filtered[0], rtol=1e-12)
    np.testing.assert_array_equal(found.variances, found.table.variances[index])


@pytest.mark.parametrize("has_gap", [False, True])
@pytest.mark.parametrize("length", [9, 20])
def test_lots_of_modes_hold_a_bounded_number_of_values(length, has_gap):
    """Of two states: five numbers per step, four matrices per gap, and one matrix per step where gaps differ."""
    space, most = case("3/2", "even", n_modes=50)[0], 2**25
    per_step, per_gap = 5 + 4 * has_gap, 4 * 4
    n_steps = (most // length - per_gap * (1 + has_gap)) // per_step
    times = np.arange(n_steps + 1.0)
    if has_gap:
        times[-1] += 20
    found = list(filters.lots(space, Timeline.of(times[1:])))
    assert [one.start for one in found] == list(range(0, 50, length))
    assert {one.stop - one.start for one in found} == {length}
    assert next(filters.lots(space, Timeline.of(times))).stop == max(length - 1, 8)


def test_frequencies_stand_for_all_values_and_lie_on_both_sides_of_periods():
    space = StateSpace((MaternComponent(), OscillatorComponent(12.0, 2)), np.ones((2, 1)), np.ones((2, 1)), np.ones(1))
    n_steps, gap = 400, 0.5
    drifting = StateSpace((MaternComponent(),), np.ones((1, 1)), np.ones((1, 1)), np.ones(1))
    np.testing.assert_allclose(filters.frequencies(drifting, gap, n_steps)[0], np.geomspace(np.pi / 400, np.pi, 96))
    angles, counts = filters.frequencies(space, gap, n_steps)
    assert np.all(np.diff(angles) > 0)
    assert counts.sum() == pytest.approx(n_steps)
    assert np.all(counts > 0)
    edges = np.concatenate([[0.0], 0.5 * (angles[1:] + angles[:-1]), [np.pi]])
    np.testing.assert_allclose(counts, n_steps * np.diff(edges) / np.pi)
    assert (angles[0], angles[-1]) == (pytest.approx(np.pi / n_steps / 4, rel=4), np.pi)
    for harmonic in (1, 2):
        at = 2 * np.pi * harmonic * gap / 12
        for distance in np.geomspace(np.pi / n_steps / 2, 0.3, 10):
            for place in (at - distance, at + distance):
                assert np.min(np.abs(angles - np.clip(abs(place), np.pi / n_steps / 4, None))) < 1e-12


@every
def test_slopes_of_the_spectral_density_equal_differences_of_a_sum_over_lags(name):
    space, gap = case(name, "even", n_modes=2)[0], 0.7
    angles, lags = np.array([0.05, 0.4, 1.3, np.pi]), np.arange(1, 4_000)

    def log_density(powers, rates, own):
        found = np.empty((angles.size, 2))
        for mode in range(2):
            parts = zip(space.components, powers[:, mode], rates[:, mode], strict=True)
            shared = [power * oracle.time_correlation(one, np.r_[0, lags] * gap, rate) for one, power, rate in parts]
            total = np.sum(shared, axis=0)
            found[:, mode] = own[mode] + total[0] + 2 * np.cos(np.outer(angles, lags)) @ total[1:]
        return np.log(found)

    found = filters.log_density_slopes(space, gap, angles)
    parts, place = (space.powers, space.rates, space.own), 0
    for number, part in enumerate(parts):
        for at in np.ndindex(part.shape[:-1]):
            ends = []
            for sign in (-1, 1):
                moved = [one.copy() for one in parts]
                moved[number][at] *= 1 + sign * 1e-5
                ends.append(log_density(*moved))
            np.testing.assert_allclose(found[place], (ends[1] - ends[0]) / (2e-5 * part[at]), rtol=1e-5, atol=1e-7)
            place += 1
    assert place == len(found)


def test_gaps_are_told_apart_and_the_common_one_is_known():
    line = Timeline.of(np.array([3.0, 5.0, 5.5, 7.5, 9.5, 10.0]))
    np.testing.assert_allclose(line.gaps, [0.5, 2.0])
    assert line.which.tolist() == [1, 1, 0, 1, 1, 0]  # that before the first is of no consequence
    assert line.common == 1
    alone = Timeline.of(np.array([4.0]))
    assert (alone.gaps.tolist(), alone.which.tolist(), alone.common) == ([1.0], [0], 0)
    assert Timeline.of(np.array([1.0, 1.0])).gaps.tolist() == [0.0]  # two values at one time


def test_gaps_that_differ_by_rounding_are_one():
    line = Timeline.of(1e5 + np.arange(1_000) / 24)
    assert line.gaps.size == 1
    assert line.gaps[0] == pytest.approx(1 / 24)


def test_times_must_be_in_order():
    with pytest.raises(ValueError, match=r"times must be in order"):
        Timeline.of(np.array([0.0, 1.0, 0.5]))


@every
@pytest.mark.parametrize("spacing", ["even", "irregular"])
def test_variances_between_steps_equal_dense_algebra(name, spacing, engine):
    space, times, _ = case(name, spacing)
    times = np.sort(np.append(times, times[20]))  # one of them twice
    n = times.size
    new = np.array([times[0] - 1, times[0], times[3] + 0.1, times[20], times[-1] + 2, 0.5 * (times[70] + times[71])])
    found = Filter.of(space, Timeline.of(times), keeps_covariances=True).between(new)
    for mode, covariance in enumerate(oracle.time_covariances(space, np.concatenate([times, new]))):
        shared = covariance - space.own[mode] * np.eye(n + new.size)
        weights = np.linalg.solve(covariance[:n, :n], shared[:n, n:])
        assert error(found[:, mode], np.diag(shared[n:, n:] - weights.T @ shared[:n, n:])) < TOLERANCE


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MaternComponent(1.0), r"smoothness must be 0.5, 1.5 or 2.5; got 1.0"),
        (lambda: OscillatorComponent(-1.0), r"period must be positive; got -1.0"),
        (lambda: OscillatorComponent(2.0, 0), r"n_harmonics must be at least 1; got 0"),
    ],
)
def test_components_say_what_they_are_not(make, message):
    with pytest.raises(ValueError, match=message):
        make()
