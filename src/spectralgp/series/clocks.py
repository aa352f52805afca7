"""Times of rows, numbers or dates, as steps of a clock, and steps as times again."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.saved import Positive, ge
from spectralgp._basics.tables import Table, as_table, is_counted, row_labels

Stamps = NDArray[np.int64]  # microseconds since 1970, in UTC; of the local clock where they say so
Ways = Literal["elapsed", "clock", "months", "month ends"]

SECOND = 1_000_000
DAY = 86_400 * SECOND
NATURAL = {"day": DAY, "week": 7 * DAY, "year": 365.2425 * DAY}
SAME_STEP = 1e-6  # of a step, by which a gap may differ from a whole number of steps
MOST_STEPS = 1e12  # from the first row, beyond which a step is no longer told from the next
SHORTEST_MONTH = 27.5 * DAY
ZONE_BLOCK = 900 * SECOND  # clocks change on a quarter of an hour of UTC
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments, with the zone of the clock that they were read from; None for a clock of its own."""

    stamps: Stamps
    zone: str | None

    @property
    def local(self) -> Stamps:
        """Local date and time, as on a clock."""
        return self.stamps + offsets(self.stamps, self.zone)


Times = Array | Moments


def offsets(stamps: Stamps, zone: str | None) -> Stamps:
    """By how much the clock of a zone is ahead of UTC at each moment."""
    if zone is None:
        return np.zeros_like(stamps)
    blocks, which = np.unique(stamps // ZONE_BLOCK, return_inverse=True)
    own = _zone(zone)
    found = [(EPOCH + timedelta(microseconds=int(one) * ZONE_BLOCK)).astimezone(own).utcoffset() for one in blocks]
    ahead = [0 if one is None else round(one.total_seconds()) * SECOND for one in found]
    return np.array(ahead, dtype=np.int64)[which.reshape(-1)]


def moments(local: Stamps, zone: str | None) -> Stamps:
    """The moments at which the clock of a zone shows given times; the first of two, and in a gap what follows it."""
    earlier, later = (local - offsets(local + shift, zone) for shift in (-DAY, DAY))  # by offsets of the days about it
    is_earlier, is_later = (one + offsets(one, zone) == local for one in (earlier, later))
    return np.where(is_earlier | ~is_later, earlier, later)


@cache
def _zone(name: str) -> Any:
    with suppress(ZoneInfoNotFoundError, ValueError):
        return ZoneInfo(name)
    with suppress(ValueError):
        return datetime.strptime(name, "UTC%z").tzinfo  # pandas' name of a fixed offset, such as UTC+01:00
    raise ValueError(
        f"times must be in a time zone that is known here; got {name!r}. Convert them to one of the IANA names, "
        "such as Europe/Berlin, or install tzdata."
    )


@dataclass(frozen=True)
class NumericClock:
    """Times that are numbers: rows that are counted, seconds, years. Steps count from the first row at `fit`."""

    start: float = 0.0
    step: Positive = 1.0

    def steps(self, times: Times) -> Array:
        """Times as numbers of steps, whole ones where times are on the grid."""
        if isinstance(times, Moments):
            raise TypeError("times must be numbers, as those at fit were; got dates. Pass numbers, or fit with dates.")
        return _whole((times - self.start) / self.step)

    def labels(self, steps: Array) -> Array:
        """Steps as times."""
        return self.start + self.step * steps

    def cycles(self, steps: Array) -> dict[str, Array]:
        """Numbers of natural seasons passed at steps: numbers have no natural season."""
        return {}

    def natural_periods(self) -> dict[str, float]:
        """Lengths of natural seasons in steps: none."""
        return {}


@dataclass(frozen=True)
class CalendarClock:
    """Times that are dates. Steps count from the first row at `fit`.

    Steps are of time elapsed, of what the clock shows (days that are 23 hours long twice count alike), or months.
    """

    start: Annotated[int, ge(-(2**62), 2**62)]  # the first row, in microseconds of UTC
    step: Positive  # microseconds, or months
    zone: str | None
    by: Ways

    def steps(self, times: Times) -> Array:
        """Times as numbers of steps, whole ones where times are on the grid."""
        if not isinstance(times, Moments):
            raise TypeError("times must be dates, as those at fit were; got numbers. Pass dates, or a number of steps.")
        if (times.zone is None) != (self.zone is None):
            has, has_not = ("fit", "these") if times.zone is None else ("these", "fit")
            raise ValueError(
                f"times must all have a time zone or none; got some at {has} and none at {has_not}. "
                "Use tz_localize or tz_convert(None)."
            )
        return _whole(_counted(Moments(times.stamps, self.zone), self.start, self.by) / self.step)

    def labels(self, steps: Array) -> NDArray[np.datetime64]:
        """Steps as moments of UTC."""
        start = Moments(np.array([self.start]), self.zone)
        if self.by == "elapsed":
            stamps = self.start + np.round(steps * self.step).astype(np.int64)
        elif self.by == "clock":
            stamps = moments(start.local[0] + np.round(steps * self.step).astype(np.int64), self.zone)
        else:
            shift = DAY if self.by == "month ends" else 0
            months = _passed(start.local + shift, "M")[0] + steps * self.step
            whole = np.floor(months + SAME_STEP)
            first = whole.astype(np.int64).astype("M8[M]")
            lengths = ((first + np.timedelta64(1, "M")).astype("M8[us]") - first.astype("M8[us]")).astype(np.int64)
            local = first.astype("M8[us]").astype(np.int64) + np.round((months - whole) * lengths).astype(np.int64)
            # days are whole ones again where the first row was one
            local = np.where(start.local[0] % DAY, local, np.round(local / DAY).astype(np.int64) * DAY)
            stamps = moments(local - shift, self.zone)
        return stamps.astype("M8[us]")

    def cycles(self, steps: Array) -> dict[str, Array]:
        """Number of each natural season longer than two steps that has passed at steps."""
        local = Moments(self.labels(steps).astype(np.int64), self.zone).local
        passed = {name: local / length for name, length in NATURAL.items()}
        passed["week"] = (local + 3 * DAY) / NATURAL["week"]  # 1970 began on a Thursday
        passed["year"] = _passed(local, "Y")
        return {name: passed[name] for name in self.natural_periods()}

    def natural_periods(self) -> dict[str, float]:
        """Lengths of these seasons in steps."""
        length = self.step if self.by in ("elapsed", "clock") else self.step * NATURAL["year"] / 12
        return {name: period / length for name, period in NATURAL.items() if period / length > 2 + SAME_STEP}


Clock = NumericClock | CalendarClock


def _whole(steps: Array) -> Array:
    """Steps rounded to whole ones where all of them are but for rounding."""
    far = float(np.abs(steps).max(initial=0.0))
    if far > MOST_STEPS:
        raise ValueError(f"times must lie within {MOST_STEPS:g} steps of the first; got {far:g}. Check their units.")
    nearest = np.round(steps)
    return nearest if np.all(np.abs(steps - nearest) <= SAME_STEP * np.maximum(1.0, 1e-6 * np.abs(steps))) else steps


def _passed(local: Stamps, unit: Literal["M", "Y"]) -> Array:
    """Months or years since 1970, with the part of the one that has passed."""
    first = local.astype("M8[us]").astype(f"M8[{unit}]")
    begun, ended = (one.astype("M8[us]").astype(np.int64) for one in (first, first + np.timedelta64(1, unit)))
    return first.astype(np.int64).astype(float) + (local - begun) / (ended - begun)


def _counted(dates: Moments, start: int, by: Ways) -> Array:
    """Time since the first row, in microseconds or months."""
    if by == "elapsed":
        return (dates.stamps - start).astype(float)
    first = Moments(np.array([start]), dates.zone).local[0]
    if by == "clock":
        return (dates.local - first).astype(float)
    shift = DAY if by == "month ends" else 0
    return _passed(dates.local + shift, "M") - _passed(np.array([first + shift]), "M")[0]


def clock_of(times: Times) -> Clock:
    """The clock on which the gaps between rows, in the order of time, are most alike."""
    if not isinstance(times, Moments):
        gaps = np.diff(np.sort(times))
        return NumericClock(float(times.min()), float(np.median(gaps)) if gaps.size else 1.0)
    times = Moments(np.sort(times.stamps), times.zone)
    start = int(times.stamps[0])
    if len(times.stamps) < 2:
        return CalendarClock(start, float(DAY), times.zone, "elapsed")
    ways: list[Ways] = ["elapsed"] if times.zone is None else ["elapsed", "clock"]
    if np.median(np.diff(times.stamps)) > SHORTEST_MONTH:
        ways += ["months", "month ends"]
    found = []
    for by in ways:
        gaps = np.diff(_counted(times, start, by))
        step = float(np.median(gaps))
        alike = float(np.mean(np.abs(gaps / step - np.round(gaps / step)) < 1e-4)) if step > 0 else 0.0
        found.append((alike, step if by in ("elapsed", "clock") else float(np.round(step, 6)), by))
    _, step, by = max(found, key=lambda one: one[0])  # the first of those alike
    return CalendarClock(start, step, times.zone, by)


def shown(times: Times) -> tuple[str, ...]:
    """Times as people write them: dates by the local clock, or numbers."""
    if isinstance(times, Moments):
        return row_labels(times.local.astype("M8[us]"), len(times.stamps))
    return tuple(f"{time:.12g}" for time in times.tolist())


def time_labels(clock: Clock, steps: Array) -> tuple[str, ...]:
    """Steps as people write their times, or as rows where these are only counted."""
    if isinstance(clock, CalendarClock):
        return shown(Moments(clock.labels(steps).astype(np.int64), clock.zone))
    return tuple(f"row {label}" if clock == NumericClock() else label for label in shown(clock.labels(steps)))


def as_times(given: Any, argument: str = "times") -> Times:
    """Numbers or dates of any library as times."""
    if hasattr(given, "to_timestamp") and hasattr(given, "freq"):  # periods of pandas
        given = given.to_timestamp()
    if hasattr(given, "tz") and hasattr(given, "dtype"):
        zone = None if given.tz is None else str(given.tz)
        utc = given if given.tz is None else given.tz_convert("UTC").tz_localize(None)
        return _stamped(np.asarray(utc.to_numpy(), dtype="M8[us]"), zone, argument)
    n_levels = getattr(given, "nlevels", 1)
    if n_levels > 1:
        raise TypeError(f"{argument} must be one time per row; got {n_levels} levels. Keep the level of the times.")
    if hasattr(given, "to_numpy"):
        # a type of Polars, whose NumPy values are of UTC, such as Datetime(time_unit='us', time_zone='Europe/Berlin')
        _, found, rest = str(getattr(given, "dtype", "")).partition("time_zone='")
        if found:
            return _stamped(np.asarray(given.to_numpy(), dtype="M8[us]"), rest.partition("'")[0], argument)
        given = given.to_numpy()
    values = np.asarray(given)
    if values.dtype.kind == "O" and values.size and all(hasattr(one, "year") for one in values.flat):
        zones = {str(one.tzinfo) for one in values.flat if getattr(one, "tzinfo", None) is not None}
        if len(zones) > 1:
            raise ValueError(f"{argument} must have one time zone; got {sorted(zones)[:2]}. Convert them to one.")
        utc = [one.astimezone(UTC).replace(tzinfo=None) if zones else one for one in values.flat]
        return _stamped(np.array(utc, dtype="M8[us]"), zones.pop() if zones else None, argument)
    if values.dtype.kind == "M":
        return _stamped(values.astype("M8[us]"), None, argument)
    if values.dtype.kind not in "iuf" or values.ndim != 1:
        shown = repr(values.flat[0])[:40] if values.size else "nothing"
        raise TypeError(
            f"{argument} must be numbers or dates, one per row; got {shown}. Make dates of texts with "
            "pandas.to_datetime, or pass an array, whose rows are counted."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{argument} must be finite; got NaN or infinity. Drop such rows.")
    return values.astype(float)


def _stamped(values: NDArray[np.datetime64], zone: str | None, argument: str) -> Moments:
    if np.isnat(values).any():
        raise ValueError(f"{argument} must be dates in every row; got a missing one. Drop such rows.")
    return Moments(values.astype(np.int64), zone)


@dataclass(frozen=True, eq=False)
class TimedRows:
    """A table or array whose rows have times; None where they are counted."""

    table: Any  # as `as_table` gives it, without its column of times
    times: Times | None
    column: str | None = None  # that the times had in a library without an index

    @property
    def is_counted(self) -> bool:
        """Whether rows are only counted: an array, or a table without an index of its own."""
        return self.times is None or (self.column is None and is_counted(self.table.index))


def timed_rows(given: Any, argument: str, **kwargs: Any) -> TimedRows:
    """A table of any library with its times: its index, or its one column of dates."""
    column = _date_column(given)
    if column is not None:
        times = as_times(given[column], f"column {column!r} of {argument}")
        rest = given.drop(column, axis=1) if hasattr(given, "iloc") else given.drop(column)
        return TimedRows(as_table(rest, argument, **kwargs), times, column)
    table = as_table(given, argument, **kwargs)
    index = table.index if isinstance(table, Table) else None
    return TimedRows(table, None if index is None else as_times(index, f"the index of {argument}"))


def places_in_time(timed: TimedRows, steps: Array, clock: Clock, argument: str) -> Indices:
    """The row of a table at each step, -1 where it has none; rows that are only counted are those of the steps."""
    if timed.times is None or timed.is_counted:
        if len(timed.table) != len(steps):
            raise ValueError(f"{argument} must have {len(steps)} rows, one per time; got {len(timed.table)}.")
        return np.arange(len(steps))
    own = clock.steps(timed.times)
    order = np.argsort(own, kind="stable")
    same = np.flatnonzero(np.diff(own[order]) <= SAME_STEP)
    if same.size:
        twice = shown(timed.times)[order[same[0]]]
        raise ValueError(f"{argument} must have one row per time; got {twice} more than once. Drop or average them.")
    nearest = order[np.minimum(np.searchsorted(own[order], steps - SAME_STEP), len(own) - 1)]
    return np.where(np.abs(own[nearest] - steps) <= SAME_STEP, nearest, -1)


def _date_column(given: Any) -> str | None:
    """The one column of dates of a table, if its index has none."""
    if not hasattr(given, "columns") or hasattr(getattr(given, "index", None), "tz"):
        return None
    from narwhals.stable import v2 as nw

    frame = nw.from_native(given, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    found = [name for name, dtype in frame.schema.items() if dtype in (nw.Date, nw.Datetime)]
    return found[0] if len(found) == 1 else None


def order_of(times: Times, argument: str) -> Indices:
    """The order of rows by time, with a warning where they are in another; equal times are refused."""
    numbers: Any = times.stamps if isinstance(times, Moments) else times
    order = np.argsort(numbers, kind="stable")
    same = np.flatnonzero(np.diff(numbers[order]) <= 0)
    if same.size:
        raise ValueError(
            f"{argument} must have one row per time; got {shown(times)[order[same[0]]]} more than once "
            f"({same.size} such rows in all). Drop or average them; where a clock went back, localise it: "
            "tz_localize(zone, ambiguous='infer')."
        )
    if np.any(np.diff(order) < 0):
        warnings.warn(f"{argument} is not in the order of time: its rows are sorted.", stacklevel=4)
    return order
