"""Mean of a series: levels, seasons and exogenous columns, with a shrunken coefficient per node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from scipy.ndimage import maximum_filter1d

from spectralgp._basics.checks import Array
from spectralgp._basics.saved import Count, NotNegative, Positive, StoredAs, axes, gt
from spectralgp.series.clocks import Clock

TINY = float(np.finfo(float).tiny)  # in place of nothing, where that would be divided by
LINE = 1e-6  # of the spread of a node: where a straight line leaves less, it leaves rounding
PEAK = 10.0  # times its neighbourhood, from which on a frequency of the periodogram is a season's
NEIGHBOURHOOD, FEWEST_NEIGHBOURS = 1.6, 8  # of a bin: a factor either way, and bins either way
PEAK_WIDTH = 2  # bins either way that are a peak's own
MOST_NEIGHBOURS = 400  # bins whose median is the neighbourhood's level
FEWEST_CYCLES = 3  # in the training span, of a season that the periodogram shows
FEWEST_NATURAL = 2  # of one that the calendar has
MOST_HARMONICS = 8
YEARLY_HARMONICS = 4
DAYS_OF_WEEK = 7
MOST_SEASONS = 4  # that are looked for in a periodogram
PENALTIES = np.geomspace(0.1, 1e5, 19)  # of the ridge, in rows
LEAST_GAIN = 0.01  # of the held-out squared error, for which a season is added
BLOCKS = (0.6, 0.8, 1.0)  # of the rows: learnt before each of the first two, validated from there to the next
FEWEST_JUDGED = 10  # rows, below which nothing is held out
MOST_GRID, FEWEST_GRID = 4, 24  # grid points per row, up to which rows with gaps have a periodogram, and in all


@dataclass(frozen=True)
class Season:
    """A pattern that repeats: waves of a period's harmonics."""

    name: Annotated[str, StoredAs(Literal["", "day", "week", "year"])]  # a natural one's, or the empty string
    period: Positive  # in steps
    harmonics: tuple[Count, ...]

    def columns(self, clock: Clock, steps: Array) -> Array:
        """Sines and cosines, shape (n_steps, 2 n_harmonics)."""
        passed = clock.cycles(steps)[self.name] if self.name else steps / self.period
        angles = 2 * np.pi * np.multiply.outer(passed, np.array(self.harmonics, dtype=float))
        return np.sqrt(2) * np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)

    @property
    def described(self) -> str:
        """In words."""
        return self.name or f"{self.period:.4g} steps"


@dataclass(frozen=True, eq=False)
class SeriesMean:
    """Levels and coefficients of the nodes."""

    clock: Clock
    seasons: tuple[Season, ...]
    levels: Annotated[Array, axes("n_nodes")]
    coefficients: Annotated[Array, axes("_columns", "n_nodes")]  # of seasons and then of exogenous columns
    x_center: Annotated[Array, axes("n_exogenous")]
    x_scale: Annotated[Array, axes("n_exogenous"), gt(0)]
    penalty: NotNegative  # of the ridge of seasons, in rows
    x_penalty: NotNegative

    def at(self, steps: Array, X: Array | None = None) -> Array:
        """Means, shape (n_steps, n_nodes)."""
        n_seasonal = len(self.coefficients) - self.x_center.size
        mean = self.levels + _columns(self.clock, self.seasons, steps) @ self.coefficients[:n_seasonal]
        if self.x_center.size and X is not None:
            mean = mean + (X - self.x_center) / self.x_scale @ self.coefficients[n_seasonal:]
        return mean

    @property
    def n_exogenous(self) -> int:
        """Number of exogenous columns."""
        return self.x_center.size


def _columns(clock: Clock, seasons: Sequence[Season], steps: Array) -> Array:
    parts = [season.columns(clock, steps) for season in seasons]
    return np.concatenate(parts, axis=1) if parts else np.empty((len(steps), 0))


def on_grid(steps: Array, values: Array) -> Array | None:
    """Rows at every whole step, interpolated where there is none; None where these are few, or few of them rows."""
    n_steps = int(np.round(steps[-1] - steps[0])) + 1
    if not FEWEST_GRID <= n_steps <= MOST_GRID * len(steps):
        return None
    grid = steps[0] + np.arange(n_steps)
    if np.array_equal(grid, steps):
        return values
    return np.stack([np.interp(grid, steps, column) for column in values.T], axis=1)


def periodogram(values: Array) -> Array:
    """Mean over nodes of the power at ``k / n`` cycles per step, ``k = 0 .. n // 2``: trends removed, tapered."""
    n_steps = len(values)
    line = np.linspace(-1.0, 1.0, n_steps)
    flat = values - values.mean(axis=0) - np.multiply.outer(line, line @ values / (line @ line))
    taper = np.hanning(n_steps + 2)[1:-1]
    spreads = flat.std(axis=0)
    scales = np.where(spreads > LINE * values.std(axis=0), spreads, np.inf)
    power = np.abs(np.fft.rfft(flat / scales * taper[:, None], axis=0)) ** 2
    return power.mean(axis=1) / np.sum(taper**2)


def peaks(power: Array, n_steps: int) -> list[float]:
    """Periods, in steps, of the frequencies that stand out of their neighbourhood, the strongest first."""
    found = []
    highest = maximum_filter1d(power, 2 * PEAK_WIDTH + 1, mode="nearest")
    for k in np.flatnonzero((power >= highest) & (power > 0)).tolist():
        around = _around(power, k)
        if k >= FEWEST_CYCLES and around.size >= FEWEST_NEIGHBOURS // 2 and power[k] >= PEAK * np.median(around):
            found.append((power[k] / np.median(around), n_steps / _centre(power, k)))
    return [period for _, period in sorted(found, reverse=True)]


def _around(power: Array, k: int) -> Array:
    """Background of a periodogram near a bin, without the bin and its neighbours."""
    n_bins = len(power)
    low = max(1, min(int(k / NEIGHBOURHOOD), k - FEWEST_NEIGHBOURS))
    high = min(n_bins, max(int(np.ceil(k * NEIGHBOURHOOD)), k + FEWEST_NEIGHBOURS) + 1)
    stride = max(1, (high - low) // MOST_NEIGHBOURS)
    below, above = slice(low, max(k - PEAK_WIDTH, low), stride), slice(min(k + PEAK_WIDTH + 1, high), high, stride)
    return np.concatenate([power[below], power[above]])


def _centre(power: Array, k: int) -> float:
    """Place of a peak between bins, by the parabola through the logarithms of three."""
    if k + 1 >= len(power):
        return float(k)
    left, middle, right = np.log(np.maximum(power[k - 1 : k + 2], TINY))
    bend = left - 2 * middle + right
    return k + (float(np.clip(0.5 * (left - right) / bend, -0.5, 0.5)) if bend < 0 else 0.0)


def smoothness_slope(power: Array) -> float:
    """The steepest slope of the log periodogram over the log frequency, within any factor of three of frequencies."""
    k = np.arange(1, len(power))
    edges = np.geomspace(2, len(power) - 1, int(8 * np.log2(len(power) / 2)))
    middle, logs = [], []
    for low, high in pairwise(edges.tolist()):
        chosen = (k >= low) & (k < high)
        if chosen.any():
            middle.append(np.log(k[chosen].mean()))
            logs.append(np.log(max(float(np.median(power[1:][chosen])), TINY)))
    x, y = np.array(middle), np.array(logs)
    slopes = []
    for start in x:
        chosen = (x >= start) & (x <= start + np.log(3.0))
        if np.count_nonzero(chosen) >= 4 and x[chosen].max() - x[chosen].min() > np.log(2.5):
            slopes.append(float(np.polyfit(x[chosen], y[chosen], 1)[0]))
    return min(slopes, default=0.0)


def _harmonics(period: float, most: int) -> tuple[int, ...]:
    """Harmonics whose half wave is at least one step, up to the wanted number; always the first."""
    return tuple(range(1, max(1, min(int(period / 2), most)) + 1))


def season_of(period: float, n_steps: float) -> Season:
    """Season of a length, rounded to a whole number if the span cannot tell the difference."""
    whole = np.round(period)
    if whole >= 2 and abs(1 / period - 1 / whole) < 0.5 / n_steps:
        period = float(whole)
    return Season("", period, _harmonics(period, MOST_HARMONICS))


def week_about(day: Season) -> Season:
    """Seven times a season, as a week is of days: its own waves, and side bands of the waves of the days."""
    beside = [DAYS_OF_WEEK * k + side for k in range(1, 5) for side in (-1, 1)]
    period = DAYS_OF_WEEK * day.period
    return Season("", period, tuple(k for k in (*range(1, DAYS_OF_WEEK - 1), *beside) if k <= period / 2))


def candidate_seasons(power: Array, n_steps: int) -> list[Season]:
    """Seasons that a periodogram shows, the strongest first, none of which is a harmonic of another."""
    found: list[Season] = []
    for period in peaks(power, n_steps):
        if period < 2 + 1e-6 or len(found) == MOST_SEASONS:
            continue
        own = season_of(period, n_steps)
        if any(_is_harmonic(own.period, one.period, n_steps) for one in found):
            continue
        if found and _is_harmonic(found[0].period, own.period, n_steps):  # a whole number of the strongest
            times = round(own.period / found[0].period)
            own = replace(own, period=times * found[0].period) if times != DAYS_OF_WEEK else week_about(found[0])
        found.append(own)
    # the rows before the first block must have two weeks to be learnt from
    most = BLOCKS[0] * n_steps / (FEWEST_NATURAL * DAYS_OF_WEEK)
    weeks = [week_about(one) for one in found[:1] if one.period <= most]
    return found + [one for one in weeks if all(one.period != other.period for other in found)]


def natural_seasons(clock: Clock, n_steps: float) -> list[Season]:
    """Days, weeks and years of which the span has at least two."""
    periods = {name: p for name, p in clock.natural_periods().items() if FEWEST_NATURAL * p <= n_steps}
    found = []
    for name, period in periods.items():
        harmonics = _harmonics(period, YEARLY_HARMONICS if name == "year" else MOST_HARMONICS)
        if name == "week" and "day" in periods:
            harmonics = week_about(Season("", periods["day"], (1,))).harmonics
        found.append(Season(name, period, harmonics))
    return found


def learn_mean(clock: Clock, steps: Array, values: Array, X: Array | None, seasons: Any, calendar: Any) -> SeriesMean:
    """Learn levels, seasons and exogenous columns from rows in time order; NaN in `values` is missing."""
    there = np.isfinite(values).any(axis=1)
    steps, values, X = steps[there], values[there], None if X is None else X[there]
    scales = np.sqrt(np.maximum(np.nanvar(values, axis=0), TINY))
    scaled = np.where(np.isfinite(values), (values - np.nanmean(values, axis=0)) / scales, 0.0)
    taken, open_ones = _seasons(clock, steps, scaled, seasons, calendar)
    columns, penalty, x_penalty = _columns(clock, taken, steps), float(PENALTIES[0]), float(PENALTIES[0])
    if len(steps) >= FEWEST_JUDGED:
        error, penalty = _best_penalty(steps, columns, scaled)
        for season in open_ones:
            wider = np.concatenate([columns, season.columns(clock, steps)], axis=1)
            found, best = _best_penalty(steps, wider, scaled)
            if found < (1 - LEAST_GAIN) * error:
                columns, taken, error, penalty = wider, [*taken, season], found, best
    center, spread = np.empty(0), np.empty(0)
    if X is not None:
        center, spread = X.mean(axis=0), X.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        if len(steps) >= FEWEST_JUDGED:
            both = np.concatenate([columns, (X - center) / spread], axis=1)
            x_penalty = _best_penalty(steps, both, scaled, center.size, penalty)[1]
    n_nodes = values.shape[1]
    nothing = np.zeros((columns.shape[1] + center.size, n_nodes))
    mean = SeriesMean(clock, tuple(taken), np.zeros(n_nodes), nothing, center, spread, penalty, x_penalty)
    return learnt_from(mean, steps, values, X)


def learnt_from(mean: SeriesMean, steps: Array, values: Array, X: Array | None) -> SeriesMean:
    """Keep seasons and penalties; learn levels and coefficients from other rows, for each node separately."""
    columns = _columns(mean.clock, mean.seasons, steps)
    weights = np.full(columns.shape[1], mean.penalty)
    if X is not None:
        columns = np.concatenate([columns, (X - mean.x_center) / mean.x_scale], axis=1)
        weights = np.concatenate([weights, np.full(X.shape[1], mean.x_penalty)])
    levels, coefficients = mean.levels.copy(), np.zeros((columns.shape[1], values.shape[1]))
    patterns, which = np.unique(np.isfinite(values), axis=1, return_inverse=True)
    for number, seen in enumerate(patterns.T):
        nodes = np.flatnonzero(which.reshape(-1) == number)
        if seen.any():  # a node of which nothing is there keeps its level
            own, known = columns[seen], values[seen][:, nodes]
            centred = _centred(steps[seen], own, mean.n_exogenous)
            gram, across = centred.T @ centred + np.diag(weights), centred.T @ (known - known.mean(axis=0))
            coefficients[:, nodes] = np.linalg.solve(gram, across)
            levels[nodes] = np.mean(known - own @ coefficients[:, nodes], axis=0)
    return replace(mean, levels=levels, coefficients=coefficients)


def _centred(steps: Array, columns: Array, n_exogenous: int) -> Array:
    """Columns about their means, and waves of seasons about straight lines too: a trend is no part of a season."""
    centred, line = columns - columns.mean(axis=0), steps - steps.mean()
    waves = centred[:, : columns.shape[1] - n_exogenous]
    waves -= np.multiply.outer(line, line @ waves / max(float(line @ line), TINY))
    return np.asarray(centred)


def _seasons(
    clock: Clock, steps: Array, scaled: Array, seasons: Any, calendar: Any
) -> tuple[list[Season], list[Season]]:
    """Seasons that are asked for, and those that are open."""
    natural = natural_seasons(clock, float(steps[-1] - steps[0]) + 1)
    taken, open_ones = [], []
    if isinstance(calendar, str):  # "auto"
        open_ones += natural
    elif calendar is not None:
        periods = clock.natural_periods()
        for name in calendar:
            if name not in periods:
                raise ValueError(
                    f"calendar must be 'auto', None or names among {sorted(periods)}; got {name!r}. These are the "
                    "seasons that are longer than two steps where times are dates."
                )
        known = {one.name: one for one in natural_seasons(clock, np.inf)}
        taken += [known[name] for name in calendar]
    if isinstance(seasons, str):
        grid = on_grid(steps, scaled)
        found = [] if grid is None else candidate_seasons(periodogram(grid), len(grid))
        if clock.natural_periods():  # weeks are among them
            found = [one for one in found if all(one != week_about(other) for other in found)]
        for one in found:  # but for what a natural season has already
            if grid is not None and not any(_is_harmonic(one.period, other.period, len(grid)) for other in natural):
                open_ones.append(one)
    elif seasons is not None:
        given = [float(period) for period in np.atleast_1d(np.asarray(seasons, dtype=float))]
        if any(not period >= 2 for period in given):
            raise ValueError(f"seasons must be periods of two steps or more; got {given}. Pass for example (24, 168).")
        shortest = min(given, default=1.0)
        for period in given:
            is_week = period != shortest and abs(period / shortest - DAYS_OF_WEEK) < 1e-9
            taken.append(week_about(season_of(shortest, np.inf)) if is_week else season_of(period, np.inf))
    return taken, open_ones


def _is_harmonic(period: float, of: float, n_steps: int) -> bool:
    ratio = of / period
    return ratio > 0.9 and abs(ratio - round(ratio)) < max(of, period) / n_steps


def _best_penalty(
    steps: Array, columns: Array, values: Array, n_exogenous: int = 0, of_seasons: float = 0.0
) -> tuple[float, float]:
    """The least squared error of later rows about their levels, and its penalty: of exogenous columns, if there are."""
    cuts, errors = [int(share * len(values)) for share in BLOCKS], np.zeros(len(PENALTIES))
    is_open = np.arange(columns.shape[1]) >= (columns.shape[1] - n_exogenous if n_exogenous else 0)
    for cut, end in pairwise(cuts):
        before = _centred(steps[:cut], columns[:cut], n_exogenous)
        after = columns[cut:end] - columns[cut:end].mean(axis=0)
        known, target = (values[part] - values[part].mean(axis=0) for part in (slice(cut), slice(cut, end)))
        gram, across = before.T @ before, before.T @ known
        for place, penalty in enumerate(PENALTIES):
            found = np.linalg.solve(gram + np.diag(np.where(is_open, penalty, of_seasons)), across)
            errors[place] += np.sum((target - after @ found) ** 2)
    best = int(np.argmin(errors))
    return float(errors[best]), float(PENALTIES[best])
