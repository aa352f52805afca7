"""Parts of forecasts: seasons, means, weights, drift, calibration and correlations, each against a plain answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from spectralgp.model.statespace import MaternComponent, OscillatorComponent
from spectralgp.series import ModalProcess, ensembles
from spectralgp.series.backtests import ScoredForecasts, naive, scored
from spectralgp.series.clocks import NumericClock, as_times, clock_of
from spectralgp.series.ensembles import _forecasts, _MemberForecasts, _validated_at
from spectralgp.series.mean import (
    PENALTIES,
    _around,
    _best_penalty,
    _centre,
    _is_harmonic,
    _seasons,
    candidate_seasons,
    learn_mean,
    learnt_from,
    natural_seasons,
    on_grid,
    peaks,
    periodogram,
    season_of,
    smoothness_slope,
    week_about,
)
from spectralgp.series.model import SeriesRows, _units, components_for, conditioned_row, interpolated, scored_rows


def noise(n_steps: int, n_nodes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n_steps, n_nodes))


def autoregressive(n_steps: int, n_nodes: int, carry: float, seed: int = 0) -> np.ndarray:
    white = noise(n_steps, n_nodes, seed)
    values = np.zeros_like(white)
    for step in range(1, n_steps):
        values[step] = carry * values[step - 1] + white[step]
    return values


def waves(n_steps: int, *periods: float) -> np.ndarray:
    steps = np.arange(n_steps)
    return np.stack([sum(np.sin(2 * np.pi * steps / p + k) for p in periods) for k in range(4)], axis=1)


# ------------------------------------------------------------------------------------------------------------ mean


def test_the_periodogram_has_peaks_where_series_have_waves():
    values = 2 * waves(600, 24.0, 7.5) + autoregressive(600, 4, 0.7)
    found = peaks(periodogram(values), 600)
    assert len(found) == 2
    np.testing.assert_allclose(sorted(found), [7.5, 24.0], rtol=0.01)


def test_long_periodograms_have_peaks_too():
    values = noise(6_000, 4) + 0.3 * waves(6_000, 24.0, 7.3)
    found = peaks(periodogram(values), 6_000)
    np.testing.assert_allclose(sorted(found[:2]), [7.3, 24.0], rtol=0.001)


@pytest.mark.parametrize("carry", [0.0, 0.5, 0.95, 1.0])
def test_series_without_a_season_have_no_peaks(carry):
    found = [peaks(periodogram(autoregressive(500, 10, carry, seed)), 500) for seed in range(10)]
    assert sum(map(len, found)) <= 1


def test_smooth_series_have_a_steep_periodogram():
    rough = autoregressive(2000, 5, 0.9)
    smooth = rough
    for _ in range(2):
        smooth = autoregressive_of(smooth, 0.9)
    assert smoothness_slope(periodogram(rough)) > -3.0
    assert smoothness_slope(periodogram(smooth)) < -5.0


def autoregressive_of(inputs: np.ndarray, carry: float) -> np.ndarray:
    values = np.zeros_like(inputs)
    for step in range(1, len(inputs)):
        values[step] = carry * values[step - 1] + inputs[step]
    return values


def test_a_week_of_days_is_looked_for_with_the_waves_beside_those_of_days():
    values = 2 * waves(24 * 7 * 5, 24.0) + noise(24 * 7 * 5, 4)
    found = candidate_seasons(periodogram(values), len(values))
    assert [one.period for one in found] == [24.0, 168.0]
    assert set(week_about(season_of(24.0, 1000)).harmonics).isdisjoint({7, 14, 21, 28})


def test_seasons_that_do_not_help_are_left_out():
    clock = NumericClock()
    steps = np.arange(400.0)
    assert learn_mean(clock, steps, autoregressive(400, 5, 0.8), None, "auto", "auto").seasons == ()
    seasonal = learn_mean(clock, steps, 3 * waves(400, 12.0) + noise(400, 4), None, "auto", "auto")
    assert [one.period for one in seasonal.seasons] == [12.0]
    left = 3 * waves(400, 12.0) - seasonal.at(steps)
    assert np.std(left) < 0.3


def test_means_are_a_ridge_regression_with_levels_that_are_not_shrunk():
    clock, steps = NumericClock(), np.arange(120.0)
    X = noise(120, 2, 1)
    values = 50 + 3 * waves(120, 8.0) + X @ noise(2, 4, 2) + 0.1 * noise(120, 4)
    mean = learn_mean(clock, steps, values, X, 8.0, None)
    columns = np.hstack([mean.seasons[0].columns(clock, steps), (X - X.mean(0)) / X.std(0)])
    weights = np.r_[np.full(columns.shape[1] - 2, mean.penalty), np.full(2, mean.x_penalty)]
    np.testing.assert_allclose(mean.coefficients, ridge(columns, values, weights, 2), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(np.mean(values - mean.at(steps, X), axis=0), 0.0, atol=1e-10)


@pytest.mark.parametrize(("n_rows", "is_judged"), [(9, False), (10, True), (60, True)])
def test_columns_that_say_nothing_are_shrunk_where_rows_can_be_held_out(n_rows, is_judged):
    X, values = noise(n_rows, 3, 1), noise(n_rows, 2, 8)
    mean = learn_mean(NumericClock(), np.arange(float(n_rows)), values, X, None, None)
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    best = _best_penalty(np.arange(float(n_rows)), (X - X.mean(axis=0)) / X.std(axis=0), scaled, 3)[1]
    assert best > PENALTIES[0]
    assert mean.x_penalty == (best if is_judged else PENALTIES[0])


def test_rows_too_few_to_be_held_out_are_shrunk_the_least():
    steps, X = np.arange(9.0), noise(9, 1, 1)
    values = 50 + waves(9, 5.0) + X @ noise(1, 4, 2)
    mean = learn_mean(NumericClock(), steps, values, X, 5.0, None)
    columns = np.hstack([mean.seasons[0].columns(NumericClock(), steps), (X - X.mean(0)) / X.std(0)])
    expected = ridge(columns, values, np.full(columns.shape[1], np.min(PENALTIES)), 1)
    np.testing.assert_allclose(mean.coefficients, expected, rtol=1e-8)


def test_a_calendar_is_of_dates_and_by_name():
    index = np.datetime64("2020-01-01") + np.arange(400)
    clock = clock_of(as_times(index))
    steps = np.arange(400.0)
    days = np.where(np.arange(400) % 7 < 2, 5.0, 0.0)[:, None] + noise(400, 3)
    mean = learn_mean(clock, steps, days, None, "auto", "auto")
    assert [one.name for one in mean.seasons] == ["week"]
    assert [one.name for one in learn_mean(clock, steps, noise(400, 3), None, None, ["year"]).seasons] == ["year"]
    with pytest.raises(ValueError, match=r"calendar must be 'auto', None or names among"):
        learn_mean(clock, steps, days, None, None, ["day"])
    with pytest.raises(ValueError, match=r"seasons must be periods of two steps or more; got \[1.0\]"):
        learn_mean(clock, steps, days, None, 1, None)


def test_gaps_are_bridged_for_the_periodogram_and_no_more():
    steps, whole = np.delete(np.arange(24.0), [2, 7, 8]), np.arange(24.0)
    squares = np.stack([steps**2, -steps], axis=1)
    bridged = whole**2
    bridged[[2, 7, 8]] = 5.0, 36 + 45 / 3, 36 + 2 * 45 / 3  # on lines from 1 to 9, and from 36 to 81
    for start in (0.0, 5.0):
        np.testing.assert_allclose(on_grid(start + steps, squares), np.stack([bridged, -whole], axis=1))
    every = noise(24, 2)
    assert on_grid(5 + whole, every) is every
    assert on_grid(whole[:23], every[:23]) is None  # too few
    assert on_grid(steps[:-1], squares[:-1]) is None
    few = np.r_[np.arange(7.0), 31.0]
    assert len(on_grid(few, np.zeros((8, 1)))) == 32  # steps of eight rows
    assert on_grid(few + (few > 9), np.zeros((8, 1))) is None


def test_a_periodogram_is_the_mean_power_of_what_a_line_leaves():
    values = 3 + 0.2 * np.arange(40.0)[:, None] + noise(40, 3)
    steps, expected = np.arange(40), np.zeros(21)
    taper = np.sin(np.pi * (steps + 1) / 41) ** 2
    for column in values.T:
        left = column - np.polyval(np.polyfit(steps, column, 1), steps)
        waves_at = np.exp(-2j * np.pi * np.outer(np.arange(21), steps) / 40)
        expected += np.abs(waves_at @ (taper * left / left.std())) ** 2 / np.sum(taper**2) / 3
    np.testing.assert_allclose(periodogram(values), expected, rtol=1e-9)


def test_a_peak_is_where_the_parabola_through_logarithms_is_highest():
    bins = np.arange(40.0)
    for centre in (10.0, 10.3, 9.6):
        assert _centre(np.exp(-0.3 * (bins - centre) ** 2), 10) == pytest.approx(centre, rel=1e-9)
    assert _centre(np.exp(-0.3 * (bins - 30.0) ** 2), 10) == 10.5  # no peak: no farther than half a bin
    assert _centre(np.exp(0.3 * (bins - 10.0) ** 2), 10) == 10.0  # a dip
    assert _centre(bins, 39) == 39.0  # the last


@pytest.mark.parametrize("k", [3, 9, 12, 30, 90])
def test_a_neighbourhood_is_of_frequencies_within_a_factor_or_of_eight_bins(k):
    power = np.arange(100.0)  # which name their bins
    low, high = min(int(k / 1.6), k - 8), max(int(np.ceil(1.6 * k)), k + 8)
    expected = [bin for bin in range(1, 100) if low <= bin <= high and abs(bin - k) > 2]
    assert _around(power, k).tolist() == expected


def test_slopes_are_those_of_a_factor_of_three_not_of_less():
    bins = np.r_[1.0, np.arange(1.0, 2_000.0)]
    assert smoothness_slope(1 / bins) == pytest.approx(-1.0, abs=0.05)
    at_the_end = np.maximum(bins / 1_000, 1.0) ** -8.0 / bins  # over a factor of two alone
    assert -7.5 < smoothness_slope(at_the_end) < -4
    between = np.clip(bins / 300, 1.0, 3.0) ** -5.0 / bins
    assert smoothness_slope(between) == pytest.approx(-6.0, abs=0.3)
    assert smoothness_slope(np.ones(4)) == 0.0


def test_seasons_of_a_periodogram_are_wholes_of_the_strongest():
    n_steps = 10_080
    power = np.ones(n_steps // 2 + 1)
    for period, height in {24: 1_000.0, 10: 500.0, 72: 200.0, 12: 90.0, 5.3: 9.0}.items():
        power[round(n_steps / period)] = height
    found = candidate_seasons(power, n_steps)  # 12 is half of 24, and 5.3 does not stand out
    assert [one.period for one in found] == [24.0, 10.0, 72.0, 168.0]
    assert found[-1] == week_about(found[0])
    power[60] = 300.0  # which is not looked for twice
    assert [one.period for one in candidate_seasons(power, n_steps)] == [24.0, 10.0, 168.0, 72.0]
    for n_steps, periods in ((560, [24.0, 168.0]), (559, [24.0])):  # a week twice before the first block
        short = np.ones(n_steps // 2 + 1)
        short[round(n_steps / 24)] = 100.0
        found = [one.period for one in candidate_seasons(short, n_steps)]
        np.testing.assert_allclose(found, periods, rtol=0.05)


def test_peaks_are_ten_times_their_neighbourhood_and_there_three_times():
    def found(heights, n_bins=401):
        power = np.full(n_bins, 2.0)
        for place, height in heights.items():
            power[place] = height
        return peaks(power, 800)

    assert found({100: 20.0}) == [8.0]
    assert found({100: 19.99}) == []
    np.testing.assert_allclose(found({100: 30.0, 40: 50.0, 300: 40.0}), [20.0, 800 / 300, 8.0])  # the strongest first
    assert found({2: 900.0}) == []
    assert found({3: 900.0}) == [800 / 3]
    assert found({100: 30.0, 102: 31.0}) == [800 / 102]  # one peak, with bins on either side that are its own
    assert len(found({100: 30.0, 103: 31.0})) == 2
    assert found({400: 30.0}) == [2.0]
    several = {24: 1_000.0, 11: 900.0, 7.7: 800.0, 5.3: 700.0, 3.1: 600.0}
    power = np.ones(5_041)
    for period, height in several.items():
        power[round(10_080 / period)] = height
    chosen = [one.period for one in candidate_seasons(power, 10_080)]
    np.testing.assert_allclose(chosen, [24.0, 11.0, 7.7, 5.3, 168.0], rtol=1e-3)  # four, and the week


def test_two_weeks_of_days_are_tried_for_a_week():
    clock = clock_of(as_times(np.datetime64("2020-01-01") + np.arange(14)))
    for n_rows, names in ((14, ["week"]), (13, [])):
        taken, tried = _seasons(clock, np.arange(float(n_rows)), noise(n_rows, 2), None, "auto")
        assert (taken, [one.name for one in tried]) == ([], names)


@pytest.mark.parametrize("slope", [-1.0, -2.5, -6.0])
def test_the_slope_of_a_power_law_is_its_own(slope):
    power = np.arange(1.0, 402.0) ** slope
    assert smoothness_slope(np.concatenate([[1.0], power])) == pytest.approx(slope, abs=0.1)


def test_seasons_have_the_waves_that_steps_can_show():
    assert season_of(24.0, 1_000).harmonics == tuple(range(1, 9))
    assert season_of(5.0, 1_000).harmonics == (1, 2)
    assert season_of(2.2, 1_000).harmonics == (1,)
    assert season_of(24.1, 2_900).period == 24.1
    assert (season_of(2.01, 200).period, season_of(2.01, 300).period) == (2.0, 2.01)
    assert season_of(1.45, 2).period == 1.45  # no season is one step long
    assert season_of(24.1, 2_880).period == 24.0  # which shows frequencies to half a cycle in the span
    week = week_about(season_of(24.0, 1_000))
    assert (week.period, week.harmonics) == (168.0, (1, 2, 3, 4, 5, 6, 8, 13, 15, 20, 22, 27, 29))
    assert week_about(season_of(2.0, 1_000)).harmonics == (1, 2, 3, 4, 5, 6)


def test_a_harmonic_is_a_whole_part_of_a_period_as_far_as_a_span_can_tell():
    assert _is_harmonic(12.0, 24.0, 500)
    assert _is_harmonic(24.0, 24.0, 500)
    assert not _is_harmonic(24.0, 12.0, 500)
    assert not _is_harmonic(10.0, 24.0, 500)
    assert _is_harmonic(11.9, 24.0, 500)
    assert not _is_harmonic(11.9, 24.0, 5_000)


def test_the_calendar_has_seasons_that_fit_twice_into_the_span():
    hours = clock_of(as_times(np.datetime64("2020-01-01T00") + np.arange(24 * 30)))
    found = {one.name: one for one in natural_seasons(hours, 24 * 30)}
    assert list(found) == ["day", "week"]
    assert (found["day"].period, found["day"].harmonics) == (24.0, tuple(range(1, 9)))
    assert found["week"].harmonics == week_about(found["day"]).harmonics
    assert [one.name for one in natural_seasons(hours, 48.0)] == ["day"]
    assert natural_seasons(hours, 47.9) == []
    days = clock_of(as_times(np.datetime64("2020-01-01") + np.arange(900)))
    week, year = natural_seasons(days, 900)
    assert (week.harmonics, year.harmonics) == ((1, 2, 3), (1, 2, 3, 4))


def ridge(columns, values, weights, n_exogenous=0):
    """Ridge regression by rows of zeros, each of which asks a coefficient to be small; seasons are without trends."""
    steps, n_seasonal = np.arange(len(columns)), columns.shape[1] - n_exogenous
    rows = np.vstack([columns - columns.mean(axis=0), np.diag(np.sqrt(weights))])
    if n_seasonal:
        rows[: len(columns), :n_seasonal] -= np.multiply.outer(
            steps - steps.mean(), np.polyfit(steps, columns[:, :n_seasonal], 1)[0]
        )
    targets = np.vstack([values - values.mean(axis=0), np.zeros((columns.shape[1], values.shape[1]))])
    return np.linalg.lstsq(rows, targets, rcond=None)[0]


def held_out_error(columns, values, weights, n_exogenous=0):
    total = 0.0
    for cut, end in ((36, 48), (48, 60)):  # of sixty rows
        left = values[cut:end] - columns[cut:end] @ ridge(columns[:cut], values[:cut], weights, n_exogenous)
        total += np.sum((left - left.mean(axis=0)) ** 2)
    return total


def test_a_node_with_missing_values_has_the_season_of_its_own_values():
    steps, values = np.arange(120.0), 50 + 3 * waves(120, 8.0) + 0.1 * noise(120, 4)
    values[60:, 1] = np.nan
    values[20:30] = np.nan
    mean = learn_mean(NumericClock(), steps, values, None, 8.0, None)
    there = np.r_[np.arange(20), np.arange(30, 60)]
    alone = learnt_from(mean, steps[there], values[there], None)
    np.testing.assert_allclose(mean.coefficients[:, 1], alone.coefficients[:, 1], rtol=1e-9)
    np.testing.assert_allclose(mean.levels[1], alone.levels[1], rtol=1e-12)
    unseen = learnt_from(mean, steps, np.where(np.arange(4) == 1, np.nan, values), None)
    assert (unseen.levels[1], *unseen.coefficients[:, 1]) == (mean.levels[1], *[0.0] * 8)


@pytest.mark.parametrize("slope", [5.0, -0.1, 3.0])
def test_a_straight_line_has_no_season(slope):
    """Not even that of its rounding, however large its numbers are."""
    for n_rows, level in ((60, 0.0), (200, 1e6)):
        steps = np.arange(float(n_rows))
        line = level + slope * steps[:, None] + np.arange(3)
        assert periodogram(line).max() == 0
        assert learn_mean(NumericClock(), steps, line, None, "auto", None).seasons == ()
        (saw,) = learn_mean(
            NumericClock(), steps, line, None, 7.0, None
        ).seasons  # which would fit a part of it as a saw
        mean = learn_mean(NumericClock(), steps, line, None, 7.0, None)
        np.testing.assert_allclose(mean.coefficients, 0.0, atol=1e-7 * abs(slope))
        assert saw.period == 7.0


def test_a_season_is_learnt_beside_a_trend():
    steps = np.arange(60.0)
    season = 3 * np.sin(2 * np.pi * steps[:, None] / 7 + np.arange(4))
    plain = learn_mean(NumericClock(), steps, season, None, 7.0, None)
    risen = learnt_from(plain, steps, season + 2 * steps[:, None], None)
    np.testing.assert_allclose(risen.coefficients, plain.coefficients, atol=1e-9)


def test_penalties_are_those_with_the_least_error_in_later_rows():
    seasonal, exogenous = season_of(12.0, 60).columns(NumericClock(), np.arange(60.0)), noise(60, 3, 1)
    values = 2 + seasonal @ noise(16, 2, 2)[: seasonal.shape[1]] + 0.3 * exogenous @ noise(3, 2, 3) + noise(60, 2)
    errors = [held_out_error(seasonal, values, np.full(seasonal.shape[1], penalty)) for penalty in PENALTIES]
    steps = np.arange(60.0)
    error, penalty = _best_penalty(steps, seasonal, values)
    assert error == pytest.approx(min(errors), rel=1e-9)
    assert penalty == PENALTIES[int(np.argmin(errors))]
    assert _best_penalty(steps, np.empty((60, 0)), values)[0] == pytest.approx(
        sum(np.sum((values[a:b] - values[a:b].mean(axis=0)) ** 2) for a, b in ((36, 48), (48, 60)))
    )
    both, n_seasonal = np.hstack([seasonal, exogenous]), seasonal.shape[1]
    errors = [held_out_error(both, values, np.r_[np.full(n_seasonal, 3.0), np.full(3, own)], 3) for own in PENALTIES]
    assert _best_penalty(steps, both, values, exogenous.shape[1], 3.0)[1] == PENALTIES[int(np.argmin(errors))]


def test_terms_are_fast_and_slow_ones_a_smooth_one_and_waves_that_no_season_has():
    steps, usual = np.arange(800.0), (MaternComponent(0.5), MaternComponent(1.5))
    rough = autoregressive(800, 4, 0.5)
    nothing = learn_mean(NumericClock(), steps, rough, None, None, None)
    assert components_for(steps, rough, nothing) == usual
    smooth = autoregressive_of(autoregressive_of(autoregressive(800, 4, 0.9), 0.9), 0.9)
    assert components_for(steps, smooth, nothing) == (*usual, MaternComponent(2.5))
    assert components_for(steps[:23], rough[:23], nothing) == usual
    waving = 3 * waves(800, 9.3) + rough
    *first, wave = components_for(steps, waving, nothing)
    assert tuple(first) == usual
    assert isinstance(wave, OscillatorComponent)
    assert wave.period == pytest.approx(9.3, rel=0.01)
    assert components_for(steps, waving, learn_mean(NumericClock(), steps, waving, None, 9.3, None)) == usual
    third = learn_mean(NumericClock(), steps, waving, None, 3 * 9.3, None)  # of whose season the wave is a harmonic
    assert components_for(steps, waving, third) == usual
    many = rough + 5 * waves(800, 9.3) + 9 * waves(800, 21.7) + waves(800, 5.2)
    *_, first, second = components_for(steps, many, nothing)
    np.testing.assert_allclose(sorted([first.period, second.period]), [9.3, 21.7], rtol=0.02)
    assert len(components_for(steps, many, nothing)) == 4


def test_units_are_deviations_and_those_of_others_for_nodes_seen_little():
    steps, values = np.arange(40.0), noise(40, 4) * [1.0, 2.0, 1e-9, 1.0]
    values[3:, 3] = np.nan
    nothing = learn_mean(NumericClock(), steps, np.zeros((40, 4)), None, None, None)
    left, scales = _units(SeriesRows(steps, values, None), nothing)
    deviations = np.sqrt(np.nanmean(values**2, axis=0))
    typical = np.median(deviations)
    np.testing.assert_allclose(scales, [*deviations[:2], 1e-3 * typical, max(deviations[3], typical)], rtol=1e-9)
    np.testing.assert_allclose(left, values / scales)
    values[:, 0], values[8:, 1], values[7:, 3] = 0.0, np.nan, np.nan  # eight of one, seven of the other
    deviations = np.sqrt(np.nanmean(values**2, axis=0))
    typical = np.median(deviations[1:])  # of those that moved
    scales = _units(SeriesRows(steps, values, None), nothing)[1]
    still = typical / np.sqrt(41)  # of forty values that are all zero
    expected = [still, max(deviations[1], 1e-3 * typical), 1e-3 * typical, max(deviations[3], typical)]
    np.testing.assert_allclose(scales, expected, rtol=1e-9)
    for constant, size in ((0.0, 1.0), (-7.0, 7.0)):  # where no node moves the largest value is the scale, or one
        found = _units(SeriesRows(steps, np.full((40, 4), constant), None), nothing)[1]
        np.testing.assert_allclose(found, np.full(4, size / np.sqrt(41)))


def test_forecasts_without_a_model_are_rows_before_with_the_deviations_of_changes():
    values = np.cumsum(noise(30, 3), axis=0)
    values[4:, 2] = np.nan
    targets = np.array([3, 5, 9])
    found = {lag: naive(values[:10], targets, lag, values) for lag in (1, 5)}
    for lag, (mean, std) in found.items():
        changes = values[lag:] - values[:-lag]
        expected = np.sqrt(np.nanmean(changes[:, :2] ** 2, axis=0))
        np.testing.assert_allclose(std[:, :2], np.tile(expected, (3, 1)), rtol=1e-12)
        there = targets >= lag
        np.testing.assert_array_equal(mean[there], values[targets[there] - lag])
        assert np.isnan(mean[~there]).all()
    np.testing.assert_allclose(found[1][1][:, 2], np.sqrt(np.mean(np.diff(values[:4, 2]) ** 2)), rtol=1e-12)
    # of which nothing is known: what the others have
    np.testing.assert_allclose(found[5][1][:, 2], np.sqrt(np.mean(found[5][1][0, :2] ** 2)), rtol=1e-12)
    assert naive(values, targets[:1], 1, np.zeros((1, 3)))[1].tolist() == [[1.0, 1.0, 1.0]]  # no change is known
    still = naive(values, targets[:1], 1, np.array([[1.0, 5.0, 2.0], [1.0, 7.0, 2.0], [1.0, 7.0, 2.0]]))[1]
    np.testing.assert_allclose(still, [[np.sqrt(2 / 3), np.sqrt(2), np.sqrt(2 / 3)]])  # those that never moved as all


@pytest.mark.parametrize(("horizon", "lag"), [(1, 7), (7, 7), (8, 14), (15, 21)])
def test_the_seasonal_naive_forecast_is_a_row_of_the_last_season_known(horizon, lag):
    values, targets = np.cumsum(noise(40, 2), axis=0), np.array([30, 34])
    own = ScoredForecasts(targets, values[targets], np.zeros((2, 2)), np.ones((2, 2)))
    found = scored(np.array([horizon]), [own], values, values[:25], 7, "")
    for name, back in (("persistence", horizon), ("seasonal naive", lag)):
        expected = np.sqrt(np.mean((values[targets] - values[targets - back]) ** 2))
        assert found.rmse[name][0] == pytest.approx(expected, rel=1e-12)


# --------------------------------------------------------------------------------------------------------- judging


def test_weights_take_the_better_model_and_average_equal_ones():
    truth = noise(400, 5)
    good, other, bad = (truth * 0 + scale * noise(400, 5, seed) for seed, scale in ((1, 1.0), (2, 1.0), (3, 5.0)))
    np.testing.assert_array_equal(ensembles.weights_by_squares([[good, bad]]), [1.0, 0.0])
    both = ensembles.weights_by_squares([[good, other, bad]])
    assert both[2] == 0
    np.testing.assert_allclose(both[:2], 0.5, atol=0.11)
    assert ensembles.weights_by_squares([[good]]).tolist() == [1.0]


@pytest.mark.parametrize(
    ("best", "expected"), [(0.3, 0.3), (0.1, 0.1), (0.05, 0.0), (0.12, 0.1), (0.5, 0.5), (1.0, 1.0)]
)
def test_weights_are_on_a_grid_of_twentieths_and_a_tenth_at_least(best, expected):
    """Errors that have nothing in common have the least squares at weights that go as one over their squares."""
    sizes = np.sqrt([1 - best, best])
    errors = [np.array([[sizes[0], 0.0], [np.nan, 9.0]]), np.array([[0.0, sizes[1]], [5.0, np.nan]])]
    np.testing.assert_allclose(ensembles.weights_by_squares([errors]), [expected, 1 - expected], atol=1e-12)
    other = [np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])]
    both = ensembles.weights_by_squares([errors, other])
    grid = np.arange(21) / 20
    scores = np.log(np.maximum((grid * sizes[0]) ** 2 + ((1 - grid) * sizes[1]) ** 2, 1e-300))
    scores = scores + np.log(grid**2 + (1 - grid) ** 2)
    chosen = grid[np.argmin(scores)]
    np.testing.assert_allclose(both[0], chosen if chosen >= 0.1 else 0.0)


def test_last_rows_are_the_latest_first():
    values = np.arange(12.0).reshape(6, 2)
    np.testing.assert_array_equal(ensembles.last_rows(values, np.array([4]))[0], [8, 9, 6, 7, 4, 5])
    np.testing.assert_array_equal(ensembles.last_rows(values, np.array([0]))[0], [0, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(ensembles.last_rows(values, np.array([-1, 2])), [[0] * 6, [4, 5, 2, 3, 0, 1]])
    values[3, 1] = np.nan
    np.testing.assert_array_equal(ensembles.last_rows(values, np.array([3]))[0], [6, 0, 4, 5, 2, 3])


def test_drift_is_ridge_regression_and_is_shrunk_where_there_is_none():
    rows, truth = noise(2000, 9), noise(9, 3, 1)
    errors = rows @ truth + 0.1 * noise(2000, 3, 2)
    np.testing.assert_allclose(ensembles.drift_of(rows, errors, 1.0), truth, atol=0.02)
    assert ensembles.drift_penalty(rows, errors) < 100
    assert ensembles.drift_penalty(rows, noise(2000, 3, 3)) > 2000  # more than all rows


def test_inflations_find_the_scale_of_errors_and_trust_few_of_them_less():
    errors = noise(5000, 4) * np.array([1.0, 1.0, 2.0, 0.5])
    np.testing.assert_allclose(ensembles.inflations(errors, np.ones_like(errors), 1), [1, 1, 4, 0.25], rtol=0.08)
    few = ensembles.inflations(4 * noise(3, 4), np.ones((3, 4)), 1)
    assert np.all((few > 1) & (few < 8))
    far = ensembles.inflations(4 * noise(60, 4), np.ones((60, 4)), 24)
    assert np.all(far < ensembles.inflations(4 * noise(60, 4), np.ones((60, 4)), 1))


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_densities_by_share_are_those_of_the_mixed_correlations(seed):
    random = np.random.default_rng(seed)
    roots = random.standard_normal((2, 4, 6))
    own, shown = (ensembles.as_correlations(root @ root.T) for root in roots)
    scaled = random.standard_normal((7, 4))
    scaled[random.random((7, 4)) < random.choice([0.0, 0.4])] = np.nan  # rows count by what is observed of them
    seen, expected = np.isfinite(scaled), []
    for share in ensembles.SHARES:
        mixed = (1 - share) * own + share * shown
        rows = [
            (row[there], mixed[np.ix_(there, there)]) for row, there in zip(scaled, seen, strict=True) if there.any()
        ]
        expected.append(sum(multivariate_normal(cov=cov).logpdf(row) for row, cov in rows))
    found = ensembles.densities_by_share(own, shown, scaled) - 0.5 * seen.sum() * np.log(2 * np.pi)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_correlations_shown_are_those_of_errors():
    errors = noise(4000, 3) @ np.linalg.cholesky([[4.0, 1, 0], [1, 1, 0], [0, 0, 9]]).T
    found = ensembles.shown_correlations(errors, np.broadcast_to([4.0, 1, 9], errors.shape))
    np.testing.assert_allclose(found, [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]], atol=0.05)


def test_a_node_of_which_no_error_is_known_goes_with_itself_alone():
    errors = noise(50, 3) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    errors[:, 2] = np.nan
    found = ensembles.shown_correlations(errors, np.full(errors.shape, 2.0))
    between = np.sum(errors[:, 0] * errors[:, 1]) / np.sqrt(np.sum(errors[:, 0] ** 2) * np.sum(errors[:, 1] ** 2))
    np.testing.assert_allclose(found, [[1, between, 0], [between, 1, 0], [0, 0, 1]], atol=1e-9)


def test_drift_has_the_penalty_with_the_least_error_in_the_last_fifth():
    rows, errors = noise(50, 6, 1), 0.2 * noise(50, 6, 1) @ noise(6, 2, 7) + noise(50, 2, 3)
    errors[3, 1] = errors[45, 0] = np.nan  # the other node of these rows is regressed and compared all the same
    gram, shares, squares = rows[:40].T @ rows[:40], (1.0, 39 / 40), []
    for penalty in ensembles.DRIFT_PENALTIES:
        found = np.empty((6, 2))
        for node, share in enumerate(shares):
            known = np.isfinite(errors[:40, node])
            across = rows[:40][known].T @ errors[:40, node][known]
            found[:, node] = np.linalg.solve(share * gram + penalty * np.eye(6), across)
        np.testing.assert_allclose(ensembles.drift_of(rows[:40], errors[:40], penalty), found, rtol=1e-9)
        squares.append(np.nanmean((errors[40:] - rows[40:] @ found) ** 2))
    assert ensembles.drift_penalty(rows, errors) == ensembles.DRIFT_PENALTIES[int(np.argmin(squares))]
    assert 0 < int(np.argmin(squares)) < len(squares) - 1
    errors[40:] = np.nan
    assert ensembles.drift_penalty(rows, errors) == ensembles.DRIFT_PENALTIES[-1]  # where nothing speaks for a drift


def test_a_dead_node_takes_no_drift_from_the_others():
    rows, truth = noise(400, 9), noise(9, 3, 1)
    errors = rows @ truth + 0.1 * noise(400, 3, 2)
    errors[:, 1] = np.nan
    found = ensembles.drift_of(rows, errors, 1.0)
    np.testing.assert_allclose(found[:, [0, 2]], ensembles.drift_of(rows, errors[:, [0, 2]], 1.0), rtol=1e-9)
    np.testing.assert_allclose(found[:, [0, 2]], truth[:, [0, 2]], atol=0.05)
    assert (found[:, 1] == 0).all()


@pytest.mark.parametrize("horizon", [1, 3])
def test_inflations_by_hand(horizon):
    """A node's mean ratio is worth its forecasts over ``2 h - 1``; common ones 20 of these, one itself ten."""
    errors, variances = 2 * noise(60, 3), np.full((60, 3), 0.5)
    errors[40:, 2] = np.nan
    worth = np.array([60, 60, 40]) / (2 * horizon - 1)
    means = np.nanmean(errors**2 / 0.5, axis=0)
    common = (worth @ means / np.sqrt(3) + 10) / (worth.sum() / np.sqrt(3) + 10)
    expected = (worth * means + 20 * common) / (worth + 20)
    np.testing.assert_allclose(ensembles.inflations(errors, variances, horizon), expected, rtol=1e-12)


@pytest.mark.parametrize("drifting", [False, True])
def test_a_horizon_is_judged_in_two_later_blocks(drifting):
    """Drift, ensembles.inflations and densities of each block are of what was forecast before it."""
    n_rows, horizon, cuts, weights = 120, 2, [72, 96, 120], np.array([0.75, 0.25])
    origins = np.arange(2, n_rows - horizon)
    rows, targets = noise(len(origins), 9, 4), origins + horizon
    first, second = noise(len(origins), 3, 5), noise(len(origins), 3, 6)
    observed = 0.75 * first + 0.25 * second + 1.5 * noise(len(origins), 3, 7)
    observed += 3 * drifting * rows @ noise(9, 3, 8)
    variances = [np.full(first.shape, 1.0), np.full(first.shape, 3.0)]
    one = _MemberForecasts(horizon, origins, rows, observed, [first, second], variances)
    own = np.array([[1.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.0]])
    found = _validated_at(one, cuts, weights, [own], with_drift=True)
    errors, variance, gains, penalties, parts = observed - 0.75 * first - 0.25 * second, 1.5, [], [], []
    densities = np.zeros((1, len(ensembles.SHARES)))
    for start, end in ((72, 96), (96, 120)):
        before, after = targets < start, (origins >= start - 1) & (targets < end)
        penalties.append(ensembles.drift_penalty(rows[before], errors[before]))
        left = errors[after] - rows[after] @ ensembles.drift_of(rows[before], errors[before], penalties[-1])
        gains.append(np.mean(left**2) / np.mean(errors[after] ** 2))
        larger = ensembles.inflations(errors[before], np.full(errors[before].shape, variance), horizon) * variance
        left, larger = (left, gains[-1] * larger) if drifting else (errors[after], larger)
        parts.append((targets[after], left, np.broadcast_to(larger, left.shape)))
        shown = ensembles.shown_correlations(errors[before], np.full(errors[before].shape, variance))
        scaled = left / np.sqrt(larger)
        densities += ensembles.densities_by_share(own, shown, scaled / np.sqrt(np.mean(scaled**2)))
    np.testing.assert_allclose(found.drift_gains, gains, rtol=1e-9)
    assert (max(gains) < 0.9) == drifting
    if drifting:
        assert found.penalty == pytest.approx(np.sqrt(penalties[0] * penalties[1]))
    else:
        assert found.penalty is None
    np.testing.assert_allclose(found.densities, densities, rtol=1e-9)
    np.testing.assert_array_equal(found.scored.targets, np.concatenate([part[0] for part in parts]))
    np.testing.assert_allclose(found.scored.observed - found.scored.mean, np.concatenate([part[1] for part in parts]))
    np.testing.assert_allclose(found.scored.std**2, np.concatenate([part[2] for part in parts]))
    n_free = sum(len(part[0]) for part in parts) / 3
    ratio = np.average([np.mean(p[1] ** 2 / p[2]) for p in parts], weights=[len(p[0]) for p in parts])
    assert found.factor == pytest.approx((n_free * max(1.0, ratio) + 10) / (n_free + 10), rel=1e-9)


N_ROWS = 60  # two blocks of twelve, at 36 and at 48


@pytest.fixture(scope="module")
def members():
    """Two processes of three nodes: modes of a ring, and nodes on their own."""
    turned = np.linalg.qr(np.array([[1.0, 1.0, 0.2], [1.0, -1.0, 0.4], [1.0, 0.3, -1.0]]))[0]
    smooth, rough = np.array([[2.0, 0.5, 0.3]]), np.array([[0.4, 1.0, 2.0]])
    rates = np.full((1, 3), 0.3)
    first = ModalProcess((MaternComponent(1.5),), smooth, rates, np.full(3, 0.2), turned)
    second = ModalProcess((MaternComponent(0.5),), rough, 2 * rates, np.array([0.1, 0.3, 0.2]), None)
    return [ensembles.EnsembleMember("separable", first), ensembles.EnsembleMember("nodes", second)]


@pytest.fixture(scope="module")
def series():
    return np.cumsum(noise(N_ROWS, 3, 9), axis=0) / 3 + noise(N_ROWS, 3, 10)


@pytest.fixture(scope="module")
def one_by_one(members, series):
    """Means and variances by member, horizon, origin and node, each from a filter that saw the rows before alone."""
    found = {}
    for place, one in enumerate(members):
        for origin in range(2 * ensembles.LAGS, N_ROWS - 1):
            known = one.process.filtered(np.arange(origin + 1.0), series[: origin + 1])
            ahead = known.forecast(origin + np.array([1.0, 2.0, 3.0, 6.0]))
            for number, horizon in enumerate((1, 2, 3, 6)):
                found[place, horizon, origin] = ahead.mean[number], ahead.variance[number]
    return found


def all_forecasts(one_by_one, series, horizon):
    """Origins, last rows, what came, and the means and variances of both members at a horizon."""
    origins = np.arange(2 * ensembles.LAGS, N_ROWS - horizon)
    rows = np.hstack([series[origins], series[origins - 1], series[origins - 2]])
    means, variances = (
        [np.array([one_by_one[place, horizon, origin][part] for origin in origins]) for place in range(2)]
        for part in range(2)
    )
    return origins, rows, series[origins + horizon], means, variances


def test_members_are_judged_by_forecasts_of_the_last_two_fifths(members, series, one_by_one):
    found = ensembles.validated(members, np.arange(float(N_ROWS)), series, with_drift=True)
    assert (found.horizons.tolist(), found.names) == ([1, 2, 3, 6], ("separable", "nodes"))
    errors, table, forecasts = [], [], []
    for horizon in (1, 2, 3, 6):
        origins, rows, observed, means, variances = all_forecasts(one_by_one, series, horizon)
        targets = origins + horizon
        inside = ((origins >= 35) & (targets < 48)) | (origins >= 47)
        errors.append([observed[inside] - mean[inside] for mean in means])
        table.append([np.sqrt(np.mean(one**2)) for one in errors[-1]])
        forecasts.append(_MemberForecasts(horizon, origins, rows, observed, means, variances))
    np.testing.assert_allclose(found.errors, table, rtol=1e-8)
    np.testing.assert_array_equal(found.weights, ensembles.weights_by_squares(errors))
    ends = [
        [
            ensembles.as_correlations(
                one.process.filtered(np.arange(60.0), series).forecast([59.0 + h]).node_covariance(0)
            )
        ]
        for one in members
        for h in (1, 2, 3, 6)
    ]
    expected = [[ends[place][0], ends[4 + place][0]] for place in range(4)]
    totals = []
    for said, one, own in zip(found.by_horizon, forecasts, expected, strict=True):
        alone = _validated_at(one, [36, 48, 60], found.weights, own, with_drift=True)
        np.testing.assert_allclose(said.densities, alone.densities, rtol=1e-7)
        np.testing.assert_allclose(said.drift_gains, alone.drift_gains, rtol=1e-7)
        np.testing.assert_allclose(said.scored.mean, alone.scored.mean, rtol=1e-7)
        np.testing.assert_allclose(said.scored.std, alone.scored.std, rtol=1e-7)
        assert (said.penalty, said.factor) == pytest.approx((alone.penalty, alone.factor))
        totals.append(alone.densities)
    best = np.max(totals, axis=2).sum(axis=0)  # of each member, with the best share of the errors at every horizon
    spread = int(np.argmax(best))
    assert found.spread == found.names[spread]
    np.testing.assert_array_equal(found.shares, [ensembles.SHARES[np.argmax(one[spread])] for one in totals])


def test_values_that_are_not_there_are_not_judged(members, series):
    seen = np.ones(series.shape, bool)
    seen[43, 1] = False
    found = ensembles.validated(members, np.arange(float(N_ROWS)), np.where(seen, series, np.nan), with_drift=False)
    assert [one.drift_gains for one in found.by_horizon] == 4 * [()]
    for one in found.by_horizon:
        missing = np.isnan(one.scored.observed)
        assert missing.sum() == 1
        assert one.scored.targets[missing.any(axis=1)].tolist() == [43]
        assert np.isfinite(one.scored.mean[~missing]).all()


def test_blocks_are_shares_of_the_rows_with_values(members, series):
    assert ensembles.block_ends(series) == [36, 48, 60]
    gaps = np.insert(series, [20] * 15 + [40] * 25 + [60] * 30, np.nan, axis=0)
    assert ensembles.block_ends(gaps) == [
        51,
        88,
        100,
    ]  # thirty-six, forty-eight and sixty rows with values are before these
    found = ensembles.validated(members, np.arange(130.0), gaps, with_drift=True)
    assert found.horizons.tolist() == [1, 2, 3, 6]
    for horizon, one in zip((1, 2, 3, 6), found.by_horizon, strict=True):
        assert np.isfinite(one.scored.observed).all()
        assert one.factor >= 1
        from_eve = np.flatnonzero(np.isfinite(gaps[:, 0]) & (np.arange(130) >= 50 + horizon))
        assert (one.scored.targets.min(), one.scored.targets.max()) == (from_eve[0], 99)
        assert len(one.drift_gains) == 2


@pytest.mark.parametrize("first", [0.0, 1e-3])
def test_nodes_that_begin_to_move_in_the_blocks_do_not_calibrate_the_others(members, series, first):
    """Their scale was not known before: squared errors would be a million times their variances, for all nodes."""
    late = series / series[:36].std(axis=0)
    late[36:, 1] /= first or 1e-3  # in units of the rows before, which are next to nothing or nothing at all
    late[:36, 1] *= first > 0
    found, plain = (ensembles.validated(members, np.arange(60.0), one, with_drift=False) for one in (late, series))
    for one, usual in zip(found.by_horizon, plain.by_horizon, strict=True):
        assert np.isnan(one.scored.observed[:, 1]).all()
        assert np.isfinite(one.scored.observed[:, [0, 2]]).all()
        assert 1 <= one.factor < 10 * usual.factor
    still = np.where(np.arange(3) == 1, 0.0, series)  # a node that never moves has what all nodes show
    (one,) = _forecasts(members, np.arange(60.0), still, np.array([1]))
    assert np.isnan(one.observed[:, 1]).all()
    errors, variances = one.errors(found.weights)
    n_free = 2 * len(errors) / np.sqrt(3)
    common = (np.nansum(errors**2 / variances) / np.sqrt(3) + 10) / (n_free + 10)
    larger = ensembles.stacked(members, found, np.arange(60.0), still).inflations[0, 1]
    assert larger == pytest.approx(found.by_horizon[0].factor * common, rel=1e-9)


def test_of_nodes_that_never_moved_the_heaviest_member_is_kept(members):
    found = ensembles.validated(members, np.arange(60.0), np.zeros((60, 3)), with_drift=True)
    assert found.spread == found.names[int(np.argmax(found.weights))]
    assert (found.weights.sum(), found.shares.tolist()) == (1.0, [0.0] * 4)
    assert [(one.factor, one.penalty, one.scored) for one in found.by_horizon] == [(1.0, None, None)] * 4


@pytest.mark.parametrize(("most", "n_gains"), [(2, 0), (3, 2)])
def test_graphs_of_many_nodes_have_no_drift(members, series, monkeypatch, most, n_gains):
    monkeypatch.setattr("spectralgp.series.ensembles.MOST_DRIFTING", most)
    found = ensembles.validated(members, np.arange(float(N_ROWS)), series, with_drift=True)
    assert [len(one.drift_gains) for one in found.by_horizon] == [n_gains] * 4
    assert {one.densities.shape for one in found.by_horizon} == {(2, len(ensembles.SHARES))}


@pytest.mark.parametrize(("n_nodes", "n_members"), [(1_000, 1), (1_001, 0)])
def test_graphs_of_very_many_nodes_have_no_correlations(n_nodes, n_members):
    powers = np.ones((1, n_nodes))
    alone = ModalProcess((MaternComponent(0.5),), powers, 0.3 * powers, 0.2 * powers[0], None)
    values = np.cumsum(noise(45, n_nodes, 9), axis=0)
    found = ensembles.validated([ensembles.EnsembleMember("nodes", alone)], np.arange(45.0), values, with_drift=False)
    assert {one.densities.shape for one in found.by_horizon} == {(n_members, len(ensembles.SHARES))}
    assert (found.spread, bool(found.shares.any())) == ("nodes", n_members > 0)


def test_forecasts_of_long_series_are_from_some_rows_with_the_last_ones_among_them(members):
    """From twice as many rows as lags, or a twentieth of all, on; four thousand at most."""
    for n_rows, first, stride in ((N_ROWS, 6, 1), (180, 9, 1), (4_211, 210, 1), (4_212, 210, 2), (8_425, 422, 3)):
        series = noise(n_rows, 3)
        found = _forecasts(members, np.arange(float(n_rows)), series, np.array([1, 3]))
        np.testing.assert_array_equal(found[0].origins, np.arange(first, n_rows - 1, stride))
        np.testing.assert_array_equal(found[1].origins, np.arange(first, n_rows - 3, stride))
        np.testing.assert_array_equal(found[1].observed, series[found[1].origins + 3])


def test_a_node_alone_has_no_correlations_to_judge(members, series):
    alone = ModalProcess((MaternComponent(0.5),), np.ones((1, 1)), np.ones((1, 1)), np.ones(1), None)
    found = ensembles.validated([ensembles.EnsembleMember("nodes", alone)], np.arange(60.0), series[:, :1], False)
    assert (found.spread, found.shares.tolist(), found.weights.tolist()) == ("nodes", [0.0] * 4, [1.0])


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_a_stack_has_what_was_decided_of_forecasts_of_all_rows(members, series, one_by_one, share):
    """Drift at the second and fourth horizon; ensembles.inflations times the factor, less where drift gained."""
    weights, horizons, nothing = np.array([0.7, 0.3]), np.array([1, 2, 3, 6]), np.zeros((2, len(ensembles.SHARES)))
    said = [
        ensembles.HorizonScores(None, (), 1.5, nothing, None),
        ensembles.HorizonScores(30.0, (0.8, 0.6), 1.2, nothing, None),
        ensembles.HorizonScores(None, (1.2, 0.9), 1.0, nothing, None),
        ensembles.HorizonScores(5.0, (0.5, 0.5), 1.1, nothing, None),
    ]
    shares = np.array([0.0, share, 0.0, 0.0])
    names = "separable", "nodes"
    decided = ensembles.BlockValidation(names, weights, horizons, np.ones((4, 2)), "nodes", shares, tuple(said))
    found = ensembles.stacked(members, decided, np.arange(float(N_ROWS)), series)
    assert (found.spread, found.drifting.tolist(), found.drift_horizons) == (1, [-1, 0, -1, 1], [2, 6])
    np.testing.assert_array_equal(found.shares, shares)
    np.testing.assert_array_equal(found.horizons, horizons)
    drifts, correlations = [], []
    for place, (horizon, one) in enumerate(zip((1, 2, 3, 6), said, strict=True)):
        _, rows, observed, means, variances = all_forecasts(one_by_one, series, horizon)
        error, variance = observed - 0.7 * means[0] - 0.3 * means[1], 0.7 * variances[0] + 0.3 * variances[1]
        larger = one.factor * ensembles.inflations(error, variance, horizon)
        if one.penalty is not None:
            drifts.append(ensembles.drift_of(rows, error, one.penalty))
            error, larger = error - rows @ drifts[-1], np.mean(one.drift_gains) * larger
        correlations.append(ensembles.shown_correlations(error, variance))
        np.testing.assert_allclose(found.inflations[place], larger, rtol=1e-7)
    np.testing.assert_allclose(found.drift, drifts, rtol=1e-6, atol=1e-9)
    if share:
        np.testing.assert_allclose(found.correlations, correlations, atol=1e-8)
        own = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 2.0]])
        for horizon, second in ((1.0, 0.0), (2.0, 1.0), (1.5, 0.5), (2.25, 0.75), (6.0, 0.0)):
            first = {1.0: (0, 1), 2.0: (1, 1), 1.5: (0, 1), 2.25: (1, 2), 6.0: (3, 3)}[horizon]
            other = second if first == (0, 1) else 1 - second
            shown = (1 - other) * correlations[first[0]] + other * correlations[first[1]]
            mixed = (1 - share * second) * own / 2 + share * second * shown
            np.testing.assert_allclose(found.correlation(own, horizon), mixed, atol=1e-8)
    else:
        assert found.correlations.shape == (0, 3, 3)


def test_a_stack_of_which_nothing_was_judged_is_its_first_member(members, series):
    found = ensembles.stacked(members, None, np.arange(float(N_ROWS)), series)
    assert (found.weights.tolist(), found.spread, found.drift_horizons) == ([1.0, 0.0], 0, [])
    mean, rows = [np.arange(3.0), np.full(3, np.nan)], np.ones(9)
    for horizon in (0.5, 1.0, 7.0):
        np.testing.assert_array_equal(found.mean(mean, rows, horizon), mean[0])
        np.testing.assert_array_equal(found.variance([np.ones(3), np.full(3, np.nan)], horizon), np.ones(3))
        np.testing.assert_allclose(found.correlation(np.diag([1.0, 4.0, 9.0]), horizon), np.eye(3))
    assert found.heaviest.fit is None
    assert (found.drift.shape, found.correlations.shape) == ((0, 9, 3), (0, 3, 3))


def test_the_heaviest_on_the_graph_is_that_of_the_largest_weight_with_a_fit(members):
    process, fits = members[0].process, [object(), object()]
    several = (
        ensembles.EnsembleMember("nodes", process),
        ensembles.EnsembleMember("one", process, fits[0]),
        ensembles.EnsembleMember("other", process, fits[1]),
    )
    nothing = np.empty((0, 9, 3)), np.array([-1]), np.ones((1, 3)), np.zeros(1), np.empty((0, 3, 3))
    for weights, expected in (([0.6, 0.1, 0.3], fits[1]), ([0.6, 0.3, 0.1], fits[0]), ([1.0, 0.0, 0.0], fits[0])):
        assert ensembles.Ensemble(several, np.array(weights), 0, np.ones(1), *nothing).heaviest.fit is expected


def test_blocks_are_long_enough_for_their_horizons():
    assert ensembles.horizons_for(30).size == ensembles.horizons_for(39).size == 0  # blocks of seven rows
    assert ensembles.horizons_for(41).tolist() == [1, 2, 3]
    assert ensembles.horizons_for(60).tolist() == ensembles.horizons_for(110).tolist() == [1, 2, 3, 6]
    for n_steps in (40, 100, 1000):
        assert 2 * ensembles.horizons_for(n_steps)[-1] <= 0.2 * n_steps


# ------------------------------------------------------------------------------------------------------------- law


def two_members(n_nodes: int = 2) -> ensembles.Ensemble:
    inflated = np.array([np.full(n_nodes, 1.0), np.full(n_nodes, 3.0)])
    drift = np.ones((1, ensembles.LAGS * n_nodes, n_nodes))
    return ensembles.Ensemble(
        (), np.ones(1), 0, np.array([2.0, 4.0]), drift, np.array([-1, 0]), inflated, np.zeros(2), np.empty((0, 2, 2))
    )


def test_between_horizons_everything_is_interpolated_and_drift_fades_beyond():
    one, rows = two_members(), np.full(6, 0.5)
    variances = [np.ones(2)]
    assert [one.variance(variances, h)[0] for h in (1.0, 2.0, 3.0, 4.0, 9.0)] == [1, 1, 2, 3, 3]
    means = [one.mean([np.zeros(2)], rows, h)[0] for h in (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 20.0)]
    np.testing.assert_allclose(means, [0, 0, 1.5, 3.0, 1.5, 0, 0])


def test_rows_are_scored_by_a_normal_law_with_missing_values_left_out():
    correlation = np.array([[1, 0.6, 0.2], [0.6, 1, 0.3], [0.2, 0.3, 1]])
    errors = np.array([[0.3, -1.0, 0.2], [0.3, np.nan, 0.2], [np.nan, -1.5, np.nan], [np.nan] * 3])
    std = np.array([[1.0, 2.0, 0.5], [0.7, 1.0, 3.0], [1.0, 0.4, 1.0], [1.0, 1.0, 1.0]])
    distances, densities = scored_rows(correlation, errors, std)
    for row in range(3):
        kept = np.flatnonzero(np.isfinite(errors[row]))
        covariance = (std[row][:, None] * correlation * std[row])[np.ix_(kept, kept)]
        error = errors[row, kept]
        assert densities[row] == pytest.approx(multivariate_normal(cov=covariance).logpdf(error), rel=1e-12)
        assert distances[row] == pytest.approx(np.sqrt(error @ np.linalg.inv(covariance) @ error / kept.size))
    assert (np.isnan(distances[3]), densities[3]) == (True, 0.0)


def test_a_row_given_some_of_it_is_a_conditional_normal():
    root = noise(4, 4)
    covariance, mean = root @ root.T, np.arange(4.0)
    observed = np.array([1.0, np.nan, 0.0, np.nan])
    seen, lost = [0, 2], [1, 3]
    found, left = conditioned_row(mean, covariance, observed)
    gain = covariance[np.ix_(lost, seen)] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
    np.testing.assert_allclose(found[lost], mean[lost] + gain @ (observed[seen] - mean[seen]))
    expected = covariance[np.ix_(lost, lost)] - gain @ covariance[np.ix_(seen, lost)]
    np.testing.assert_allclose(left[np.ix_(lost, lost)], expected, atol=1e-12)
    np.testing.assert_array_equal(found[seen], observed[seen])
    assert not left[seen].any()


def test_missing_values_are_bridged_in_time_and_empty_rows_stay():
    values = np.array([[0.0, 1.0], [np.nan, 2.0], [np.nan, np.nan], [6.0, np.nan]])
    expected = [[0.0, 1.0], [2.0, 2.0], [np.nan, np.nan], [6.0, 2.0]]
    np.testing.assert_array_equal(interpolated(np.array([0.0, 1.0, 2.0, 3.0]), values), expected)
