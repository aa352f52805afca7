"""Times of rows: steps of a clock and back, whatever table or zone they come from."""

import datetime
import zoneinfo

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectralgp.series.clocks import (
    CalendarClock,
    NumericClock,
    as_times,
    clock_of,
    moments,
    offsets,
    order_of,
    shown,
    time_labels,
    timed_rows,
)

BERLIN = "Europe/Berlin"
INDEXES = {
    "hours through both changes": (pd.date_range("2018-03-01", "2018-11-30", freq="h", tz=BERLIN), "elapsed"),
    "days through both changes": (pd.date_range("2018-03-01", "2018-11-30", freq="D", tz=BERLIN), "clock"),
    "days without a zone": (pd.date_range("2018-03-01", periods=50), "elapsed"),
    "ends of months": (pd.date_range("2018-01-31", periods=40, freq="ME"), "month ends"),
    "starts of months": (pd.date_range("2018-01-01", periods=40, freq="MS", tz=BERLIN), "months"),
    "quarters": (pd.period_range("2018-01", periods=30, freq="Q"), "months"),
    "years": (pd.date_range("2000", periods=9, freq="YS"), "months"),
    "a fixed offset": (pd.date_range("2018-01-01", periods=9, freq="h", tz="+01:00"), "elapsed"),
}


@pytest.mark.parametrize("name", INDEXES)
def test_even_dates_count_up_and_come_back(name):
    index, by = INDEXES[name]
    times = as_times(index)
    clock = clock_of(times)
    steps = clock.steps(times)
    np.testing.assert_array_equal(steps, np.arange(len(index)))
    assert isinstance(clock, CalendarClock)
    assert clock.by == by
    np.testing.assert_array_equal(clock.labels(steps).astype(np.int64), times.stamps)


def test_a_clock_goes_on_after_the_last_row_as_pandas_does():
    for index, _ in INDEXES.values():
        clock = clock_of(as_times(index))
        more = index.append(index[-1:] + index.freq).append(index[-1:] + 2 * index.freq)[-2:]
        expected = as_times(more).stamps
        np.testing.assert_array_equal(clock.labels(np.array([len(index), len(index) + 1.0])).astype(np.int64), expected)


def test_days_of_a_month_are_parts_of_it():
    clock = clock_of(as_times(pd.date_range("2018-01-01", periods=12, freq="MS")))
    between = pd.DatetimeIndex(["2018-02-15", "2018-04-16", "2019-01-01 12:00"])
    np.testing.assert_allclose(clock.steps(as_times(between)), [1 + 14 / 28, 3 + 15 / 30, 12 + 0.5 / 31], atol=1e-12)


def test_seasons_follow_the_local_clock():
    index = pd.date_range("2018-03-20", "2018-04-05", freq="h", tz=BERLIN)
    clock = clock_of(as_times(index))
    passed = clock.cycles(np.arange(len(index)))
    np.testing.assert_allclose(passed["day"] % 1 * 24, index.hour, atol=1e-9)
    np.testing.assert_allclose(np.floor(passed["week"] % 1 * 7 + 1e-9), index.day_of_week)
    np.testing.assert_allclose(np.floor(passed["year"] % 1 * 365 + 1e-6), index.day_of_year - 1)


@pytest.mark.parametrize("zone", [BERLIN, "America/New_York", "Australia/Lord_Howe", "UTC-11:30", None])
@pytest.mark.parametrize("start", ["2018-03-10", "2018-03-24", "2018-03-31", "2018-10-06", "2018-10-27", "2018-11-03"])
def test_moments_are_those_at_which_a_clock_shows_times(zone, start):
    """The first of two where it went back; where it leapt, as if it had gone on: Python's own rules."""
    fixed = datetime.timezone(-datetime.timedelta(hours=11, minutes=30))
    own = {"UTC-11:30": fixed, None: datetime.UTC}.get(zone) or zoneinfo.ZoneInfo(zone)
    local = pd.date_range(start, periods=192, freq="15min")
    expected = [one.to_pydatetime().replace(tzinfo=own).astimezone(datetime.UTC).replace(tzinfo=None) for one in local]
    found = moments(local.to_numpy("M8[us]").astype(np.int64), zone)
    np.testing.assert_array_equal(found.astype("M8[us]"), np.array(expected, dtype="M8[us]"))


def test_zones_of_a_fixed_offset_have_their_own_days():
    index = pd.date_range("2018-01-01 22:00", periods=60, freq="h", tz="-03:30")
    clock = clock_of(as_times(index))
    np.testing.assert_allclose(clock.cycles(np.arange(60.0))["day"] % 1 * 24, index.hour, atol=1e-9)
    with pytest.raises(ValueError, match=r"times must be in a time zone that is known here; got 'UTC.Mars'"):
        offsets(np.zeros(1, np.int64), "UTC+Mars")


def test_natural_seasons_are_those_of_more_than_two_steps():
    hours = {12: ["week", "year"], 11: ["day", "week", "year"]}
    for length, names in hours.items():
        clock = clock_of(as_times(pd.date_range("2018-01-01", periods=9, freq=f"{length}h")))
        assert list(clock.natural_periods()) == list(clock.cycles(np.arange(3.0))) == names
        assert clock.natural_periods()["week"] == pytest.approx(168 / length)
        assert clock.natural_periods()["year"] == pytest.approx(365.2425 * 24 / length)
    months = clock_of(as_times(pd.date_range("2018-01-01", periods=9, freq="2MS")))
    assert months.natural_periods() == {"year": pytest.approx(6.0)}
    assert NumericClock().natural_periods() == NumericClock().cycles(np.arange(3.0)) == {}


def test_steps_are_of_time_elapsed_unless_another_clock_fits_better():
    weeks = clock_of(as_times(pd.date_range("2018-01-01", periods=9, freq="28D")))
    assert (weeks.by, weeks.step) == ("elapsed", 28 * 86_400e6)
    uneven = pd.DatetimeIndex(["2018-01-01", "2018-01-02", "2018-01-05", "2018-01-06"])
    assert clock_of(as_times(uneven)).step == 86_400e6
    one = clock_of(as_times(uneven[1:2]))
    assert (one.step, one.by, one.start) == (86_400e6, "elapsed", as_times(uneven).stamps[1])
    assert clock_of(np.array([7.0])) == NumericClock(7.0, 1.0)
    assert clock_of(np.array([7.0, 9.0, 11.0, 20.0])) == NumericClock(7.0, 2.0)


def test_steps_are_whole_where_times_are_but_for_rounding():
    clock = NumericClock(0.1, 0.1)
    np.testing.assert_array_equal(clock.steps(np.array([0.1, 0.2, 0.3, 0.7])), [0, 1, 2, 6])
    assert NumericClock().steps(np.array([2.0, 3.0 + 9e-7]))[1] == 3.0
    assert NumericClock().steps(np.array([2.0, 3.0 + 2e-6]))[1] == 3.0 + 2e-6


def test_times_are_written_by_the_local_clock():
    index = pd.date_range("2018-03-24 22:30", periods=3, freq="h", tz=BERLIN)
    clock = clock_of(as_times(index))
    assert shown(as_times(index)) == ("2018-03-24 22:30", "2018-03-24 23:30", "2018-03-25 00:30")
    assert time_labels(clock, np.array([1.0, 4.0])) == ("2018-03-24 23:30", "2018-03-25 03:30")
    assert shown(np.array([1.0, 0.25, 1e7])) == ("1", "0.25", "10000000")
    assert time_labels(NumericClock(), np.array([3.0])) == ("row 3",)
    assert time_labels(NumericClock(1.0, 0.5), np.array([3.0])) == ("2.5",)


def test_gaps_are_steps_that_are_missing():
    index = pd.date_range("2018-01-01", periods=10, freq="B")
    times = as_times(index)
    steps = clock_of(times).steps(times)
    np.testing.assert_array_equal(np.diff(steps), [1, 1, 1, 1, 3, 1, 1, 1, 1])


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=20), st.floats(-1e6, 1e6), st.floats(1e-3, 1e3))
def test_numbers_of_any_origin_and_unit_come_back(gaps, start, unit):
    times = start + unit * np.cumsum(np.array(gaps, dtype=float))
    clock = clock_of(times)
    assert isinstance(clock, NumericClock)
    np.testing.assert_allclose(clock.labels(clock.steps(times)), times, rtol=1e-9, atol=1e-6 * unit)


def test_times_of_all_kinds_are_the_same_moments():
    index = pd.date_range("2020-01-01", periods=3, tz=BERLIN)
    expected = as_times(index)
    for other in (pl.Series(index), index.to_pydatetime(), [one.to_pydatetime() for one in index]):
        found = as_times(other)
        np.testing.assert_array_equal(found.stamps, expected.stamps)
        assert found.zone == BERLIN
    dates = [datetime.date(2020, 1, day) for day in (1, 2)]
    np.testing.assert_array_equal(as_times(dates).stamps, as_times(np.array(dates, dtype="M8[D]")).stamps)


def test_a_column_of_dates_is_the_time_where_there_is_no_index():
    index = pd.date_range("2020-01-01", periods=3, tz=BERLIN)
    frame = pl.DataFrame({"when": index, "a": [1.0, 2.0, 3.0]})
    for given_one in (frame, frame.to_arrow(), frame.to_pandas()):
        timed = timed_rows(given_one, "Y")
        assert timed.column == "when"
        assert timed.table.names == ("a",)
        np.testing.assert_array_equal(timed.times.stamps, as_times(index).stamps)
    indexed = timed_rows(pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=index), "Y")
    np.testing.assert_array_equal(indexed.times.stamps, as_times(index).stamps)
    assert timed_rows(np.ones((3, 1)), "Y").times is None


def test_wrong_times_are_refused_with_what_to_do():
    with pytest.raises(TypeError, match=r"must be numbers or dates, one per row; got .*to_datetime"):
        as_times(pd.Index(["2020-01-01", "2020-01-02"]))
    with pytest.raises(ValueError, match=r"a missing one"):
        as_times(pd.DatetimeIndex(["2020-01-01", None]))
    with pytest.raises(TypeError, match=r"times must be numbers or dates, one per row; got np.float64"):
        as_times(np.zeros((2, 1)))
    with pytest.raises(TypeError, match=r"one per row; got nothing"):
        as_times(np.array([], dtype=str))
    with pytest.raises(ValueError, match=r"times must be finite; got NaN or infinity"):
        as_times([0.0, np.inf])
    with pytest.raises(ValueError, match=r"times must have one time zone; got \["):
        as_times([one.to_pydatetime() for tz in (BERLIN, "UTC") for one in pd.date_range("2020", periods=1, tz=tz)])
    with pytest.raises(TypeError, match=r"got 2 levels"):
        as_times(pd.MultiIndex.from_tuples([(1, 2)]))
    with pytest.raises(ValueError, match=r"Y must have one row per time; got 1.5 more .* \(2 such.*ambiguous='infer'"):
        order_of(np.array([1.5, 0.0, 3.0, 1.5, 3.0]), "Y")
    twice = pd.DatetimeIndex(["2020-01-02 05:00", "2020-01-01 23:30", "2020-01-01 23:30"], tz=BERLIN)
    with pytest.raises(ValueError, match=r"got 2020-01-01 23:30 more than once \(1 such"):
        order_of(as_times(twice), "Y")
    clock = clock_of(as_times(pd.date_range("2020-01-01", periods=3, tz=BERLIN)))
    with pytest.raises(ValueError, match=r"must all have a time zone or none"):
        clock.steps(as_times(pd.date_range("2020-01-04", periods=3)))
    with pytest.raises(TypeError, match=r"must be dates, as those at fit were"):
        clock.steps(np.arange(3.0))
    with pytest.raises(TypeError, match=r"must be numbers, as those at fit were"):
        NumericClock().steps(as_times(pd.date_range("2020-01-04", periods=3)))


def test_another_zone_names_the_same_moments():
    index = pd.date_range("2020-01-01", periods=5, freq="h", tz=BERLIN)
    clock = clock_of(as_times(index))
    np.testing.assert_array_equal(clock.steps(as_times(index.tz_convert("Asia/Tokyo"))), np.arange(5))


def test_the_order_of_rows_is_that_of_time():
    np.testing.assert_array_equal(order_of(np.array([0.0, 1.0, 2.0]), "Y"), [0, 1, 2])  # where a warning is an error
    with pytest.warns(UserWarning, match="X is not in the order of time: its rows are sorted"):
        np.testing.assert_array_equal(order_of(np.array([2.0, 0.0, 1.0]), "X"), [1, 2, 0])
    index = pd.date_range("2020-01-01", periods=3, tz=BERLIN)[[2, 0, 1]]
    with pytest.warns(UserWarning, match="not in the order of time"):
        np.testing.assert_array_equal(order_of(as_times(index), "Y"), [1, 2, 0])
    np.testing.assert_array_equal(clock_of(as_times(index)).steps(as_times(index)), [2, 0, 1])
    assert clock_of(np.array([3.0, 1.5, 0.5, 1.0])) == NumericClock(0.5, 0.5)
