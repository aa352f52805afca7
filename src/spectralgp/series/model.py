"""Learnt series: mean, scales of nodes, ensemble of processes with their states, and forecasts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from scipy.linalg import solve_triangular

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.progress import mention
from spectralgp._basics.saved import Count, axes, ge, gt
from spectralgp._basics.tables import listing
from spectralgp.graphs import Graph, LaplacianKind
from spectralgp.learning import Sqp
from spectralgp.model.kernels import Polynomial
from spectralgp.model.spectra import decompose
from spectralgp.model.statespace import Component, MaternComponent, OscillatorComponent
from spectralgp.scores import observed_mean
from spectralgp.series import ensembles
from spectralgp.series.backtests import Backtest, ScoredForecasts, coverage_words, rival_words, scored
from spectralgp.series.clocks import Clock, time_labels
from spectralgp.series.ensembles import GRAPH, HORIZONS, LAGS, NODES, SEPARABLE, EnsembleMember
from spectralgp.series.learning import SeriesFit, learn_each, learn_on_graph
from spectralgp.series.mean import SeriesMean, learn_mean, learnt_from, on_grid, peaks, periodogram, smoothness_slope
from spectralgp.series.process import ROUGHLY_OPEN, FilteredProcess, ProcessForecast, complete, rows_seen

SMOOTH_SLOPE = -5.0  # of the log periodogram, between that of a Matern process of 3/2 and of 5/2
MOST_OSCILLATORS = 2
MOST_BRIDGED = 0.1  # share of missing values that is interpolated to learn models that are only compared
MOST_LEARNT = 20_000  # last rows that all but the mean is learnt from; states are those of all rows
FEWEST_COMPARED = 2_000  # rows before the blocks that models are learnt from to be compared, where they are many
COMPARED_VALUES = 100_000  # the same in values, if these are more rows
COMPARED_TOLERANCE_NATS = 0.1  # of searches for them, and of those that go on from there
FEWEST_SCALED = 8  # values of a node, below which its scale is at least that of the others
SMALLEST_SCALE = 1e-3  # of the median of all nodes' scales: one that hardly moved
LAPLACIANS: tuple[LaplacianKind, ...] = ("combinatorial", "normalized")  # of which the likelier is taken
DEGREES = (3, 2, 2)  # of powers, rates and the residual
FAR = 20.0  # forecast deviations, beyond which a value is suspicious
SETTLED = 1e-12  # relative change of variances from row to row, below which correlations are cached


@dataclass(frozen=True, eq=False)
class SeriesRows:
    """Rows in time order: steps of the clock, values with NaN where nothing was observed, exogenous columns."""

    steps: Array  # (n_steps,)
    values: Array  # (n_steps, n_nodes), in the graph's order
    exogenous: Array | None  # (n_steps, n_exogenous)

    def part(self, chosen: slice | Indices) -> SeriesRows:
        """Return some of the rows."""
        exogenous = None if self.exogenous is None else self.exogenous[chosen]
        return SeriesRows(self.steps[chosen], self.values[chosen], exogenous)

    def each(self) -> Iterator[SeriesRows]:
        """Yield each row alone."""
        return (self.part(slice(place, place + 1)) for place in range(len(self.steps)))


def joined(parts: Sequence[SeriesRows]) -> SeriesRows:
    """Concatenate rows."""
    exogenous = [one.exogenous for one in parts if one.exogenous is not None]
    steps, values = np.concatenate([one.steps for one in parts]), np.concatenate([one.values for one in parts])
    return SeriesRows(steps, values, np.concatenate(exogenous) if exogenous else None)


@dataclass(frozen=True, eq=False)
class SeriesForecast:
    """Forecasts of rows, in the units of the user and the graph's order of nodes."""

    mean: Array  # (n_steps, n_nodes)
    variance: Array
    model: SeriesModel
    parts: tuple[ProcessForecast, ...]  # of the members
    horizons: Array

    def correlation(self, place: int) -> Array:
        """Correlations of the nodes of one row."""
        stack = self.model.stack
        return stack.correlation(self.parts[stack.spread].node_covariance(place), float(self.horizons[place]))

    def covariance(self, place: int) -> Array:
        """Covariance of the nodes of one row."""
        deviations = np.sqrt(self.variance[place])
        return deviations[:, None] * self.correlation(place) * deviations


@dataclass(frozen=True, eq=False)
class SeriesModel:
    """Learnt model of a series with its state after the last row; its size does not grow with the rows."""

    clock: Clock
    mean: SeriesMean
    scales: Annotated[Array, axes("n_nodes"), gt(0)]
    stack: ensembles.Ensemble
    states: tuple[FilteredProcess, ...]  # of the members
    # last rows in units of nodes, latest first; zero where there was nothing
    recent: Annotated[Array, axes("_lags", "n_nodes")]
    last: float  # the step of the last row
    n_steps: Count
    trials: ensembles.BlockValidation | None  # without scores by horizon
    components: Annotated[tuple[Component, ...], ge(1)]
    notes: tuple[str, ...]  # treatment of the rows, in words

    def ahead(self, steps: Array, X: Array | None = None) -> SeriesForecast:
        """Forecast rows at steps after the last one."""
        parts = tuple(state.forecast(steps) for state in self.states)
        horizons = steps - self.last
        rows = self.recent.reshape(-1)
        centre, spread = np.empty((2, len(steps), self.scales.size))
        for place, horizon in enumerate(horizons.tolist()):
            centre[place] = self.stack.mean([one.mean[place] for one in parts], rows, horizon)
            spread[place] = self.stack.variance([one.variance[place] for one in parts], horizon)
        mean = self.mean.at(steps, X) + self.scales * centre
        return SeriesForecast(mean, np.square(self.scales) * spread, self, parts, horizons)

    def in_units(self, rows: SeriesRows) -> Array:
        """Rows less their mean, divided by the scales of nodes."""
        return (rows.values - self.mean.at(rows.steps, rows.exogenous)) / self.scales

    def updated(self, rows: SeriesRows) -> SeriesModel:
        """Update the state by more rows, exactly; the last rows, which the drift needs, are imputed by forecasts."""
        model, own, start = self, self.in_units(rows), 0
        partial = np.flatnonzero(np.isnan(own).any(axis=1) & ~np.isnan(own).all(axis=1))
        for place in [*partial[partial >= len(own) - LAGS].tolist(), len(own)]:
            model = model._taken(rows.steps[start:place], own[start:place], own[start:place])
            if place < len(own):
                one = rows.part(slice(place, place + 1))
                ahead = model.ahead(one.steps, one.exogenous)
                full, _ = conditioned_row(ahead.mean[0], ahead.covariance(0), one.values[0])
                completed = model.in_units(replace(one, values=full[None]))
                model = model._taken(one.steps, own[place : place + 1], completed)
            start = place + 1
        return model

    def _taken(self, steps: Array, values: Array, completed: Array) -> SeriesModel:
        """Model after rows in units of nodes, with imputed values of the last of them."""
        if not len(steps):
            return self
        states = tuple(state.updated(steps, values) for state in self.states)
        recent = np.concatenate([np.where(np.isfinite(completed), completed, 0.0)[::-1], self.recent])[:LAGS]
        return replace(self, states=states, recent=recent, last=float(steps[-1]), n_steps=self.n_steps + len(steps))


def on_another_graph(model: SeriesModel, graph: Graph) -> SeriesModel:
    """Move the model of the graph of largest weight to another graph, with common levels and scales and no rows."""
    fit = model.stack.heaviest.fit
    if fit is None:
        raise ValueError("the model must have one of the graph to transfer; got nodes on their own alone.")
    spectrum, n_nodes = decompose(graph, fit.kernel.laplacian, scaled=True), graph.n_nodes
    fit = fit.moved_to(spectrum)
    member, process, none = EnsembleMember(GRAPH, fit.process, fit), fit.process, np.empty(0)
    levels = np.full(n_nodes, model.mean.levels.mean())
    return replace(
        model,
        mean=replace(
            model.mean, seasons=(), levels=levels, coefficients=np.empty((0, n_nodes)), x_center=none, x_scale=none
        ),
        scales=np.full(n_nodes, np.sqrt(np.mean(model.scales**2))),
        stack=ensembles.stacked([member], None, np.zeros(1), np.full((1, n_nodes), np.nan)),
        states=(process.start(model.last),),
        recent=np.zeros((LAGS, n_nodes)),
        n_steps=0,
        trials=None,
        notes=(f"moved from a graph of {model.scales.size} nodes",),
    )


def conditioned_row(mean: Array, covariance: Array, observed: Array) -> tuple[Array, Array]:
    """Mean and covariance of a row given its observed values, whose variance is zero."""
    seen = np.isfinite(observed)
    across = covariance[:, seen]
    gain = np.linalg.solve(covariance[np.ix_(seen, seen)], across.T).T
    mean, left = mean + gain @ (observed[seen] - mean[seen]), covariance - gain @ across.T
    mean[seen], left[seen], left[:, seen] = observed[seen], 0.0, 0.0
    return mean, left


def components_for(steps: Array, values: Array, mean: SeriesMean) -> tuple[Component, ...]:
    """Fast and slow components, a smooth one if the periodogram falls steeply, an oscillator for each peak."""
    found: list[Component] = [MaternComponent(0.5), MaternComponent(1.5)]
    there = np.isfinite(values).any(axis=1)
    grid = on_grid(steps[there], interpolated(steps[there], values[there]))
    if grid is None:
        return tuple(found)
    power = periodogram(grid)
    if smoothness_slope(power) < SMOOTH_SLOPE:
        found.append(MaternComponent(2.5))
    seasonal = [harmonic / season.period for season in mean.seasons for harmonic in season.harmonics]
    periods = [one for one in peaks(power, len(grid)) if all(abs(1 / one - own) > 1 / len(grid) for own in seasonal)]
    return (*found, *(OscillatorComponent(period) for period in periods[:MOST_OSCILLATORS]))


def interpolated(steps: Array, values: Array) -> Array:
    """Interpolate missing values linearly in time, with constant ends; empty rows stay empty."""
    seen, filled = np.isfinite(values), values.copy()
    there = seen.any(axis=1)
    for node in np.flatnonzero(~seen[there].all(axis=0)):
        known, lost = seen[:, node], there & ~seen[:, node]
        filled[lost, node] = np.interp(steps[lost], steps[known], values[known, node]) if known.any() else 0.0
    return filled


def learn_members(
    graph: Graph,
    components: Sequence[Component],
    has_residual: bool,
    steps: Array,
    values: Array,
    names: Sequence[str],
    laplacians: Sequence[LaplacianKind],
    solver: Sqp,
    before: Mapping[str, EnsembleMember],
) -> dict[str, EnsembleMember]:
    """Learn members by name, from those learnt `before`, and those of the graph on the likeliest of some Laplacians."""
    found = {}

    def on_graph(name: str, laplacian: LaplacianKind) -> SeriesFit:
        power, rate, rest = (Polynomial(degree, "interval", laplacian) for degree in DEGREES)
        forms = (power, rate if name == GRAPH else None, rest if has_residual else None)
        known = before[name].fit if name in before else None
        spectrum = decompose(graph, laplacian, scaled=True)
        return learn_on_graph(spectrum, steps, values, components, *forms, solver, known)

    if NODES in names:
        mention("nodes on their own")
        start = before[NODES].process if NODES in before else None
        found[NODES] = EnsembleMember(NODES, learn_each(steps, values, components, start))
    if SEPARABLE in names:
        mention("the graph, one rate for all frequencies")
        fits = {one: on_graph(SEPARABLE, one) for one in laplacians}
        best = max(fits, key=lambda one: fits[one].log_posterior)
        found[SEPARABLE], laplacians = EnsembleMember(SEPARABLE, fits[best].process, fits[best]), (best,)
    if GRAPH in names:
        mention("the graph, a rate for each frequency")
        fit = on_graph(GRAPH, laplacians[0])
        found[GRAPH] = EnsembleMember(GRAPH, fit.process, fit)
    return {name: found[name] for name in names}


def imputed(model: SeriesModel, rows: SeriesRows, n_draws: int) -> tuple[Array, Array]:
    """Impute missing values by a model of the graph, if there is one; return rows and variances, by draws."""
    found = complete(model.stack.heaviest.process, rows.steps, model.in_units(rows), n_draws)
    seen = np.isfinite(rows.values)
    mean = model.mean.at(rows.steps, rows.exogenous) + model.scales * found.mean
    return np.where(seen, rows.values, mean), np.where(seen, 0.0, np.square(model.scales) * found.variance)


def _units(rows: SeriesRows, mean: SeriesMean) -> tuple[Array, Array]:
    """Rows less their mean in units of nodes, and the units.

    A node with n equal values has the median (or the largest value, or one, where no node moved) over ``sqrt(n + 1)``.
    """
    values, left = rows.values, rows.values - mean.at(rows.steps, rows.exogenous)
    counts, is_still = np.isfinite(left).sum(axis=0), np.fmax.reduce(values) == np.fmin.reduce(values)
    deviations = np.where(is_still, 0.0, np.sqrt(observed_mean(left**2, 0, 0.0)))
    typical = float(np.median(deviations[deviations > 0])) if np.any(deviations > 0) else 0.0
    typical = typical or float(np.nanmax(np.abs(values))) or 1.0
    least = np.where(is_still, 1 / np.sqrt(counts + 1), SMALLEST_SCALE)
    scales = np.maximum(deviations, np.where(counts < FEWEST_SCALED, 1.0, least) * typical)
    return left / scales, scales


def learn_series(
    graph: Graph,
    clock: Clock,
    rows: SeriesRows,
    *,
    components: Any,
    seasons: Any,
    calendar: Any,
    residual: Any,
    drift: Any,
    notes: tuple[str, ...],
) -> tuple[SeriesModel, Backtest | None]:
    """Learn a series from rows in time order, with a backtest on the last two fifths by models of the rest."""
    mean = learn_mean(clock, rows.steps, rows.values, rows.exogenous, seasons, calendar)
    all_values, scales = _units(rows, mean)
    n_steps, all_steps = len(all_values), rows.steps
    rows, values = rows.part(slice(-MOST_LEARNT, None)), all_values[-MOST_LEARNT:]
    if n_steps > MOST_LEARNT:
        notes = (*notes, f"all but the mean is learnt from the last {MOST_LEARNT:,} rows")
    chosen = components_for(rows.steps, values, mean) if isinstance(components, str) else tuple(components)
    names = [SEPARABLE, GRAPH, NODES] if graph.n_edges else [NODES]
    of_what, solver = (graph, chosen, residual is not None), Sqp()
    decided, backtest, laplacians, compared = None, None, LAPLACIANS, dict[str, EnsembleMember]()
    if ensembles.horizons_for(int(np.isfinite(values).any(axis=1).sum())).size:
        cut = ensembles.block_ends(values)[0]
        first = max(0, cut - max(FEWEST_COMPARED, COMPARED_VALUES // values.shape[1]))
        if first:
            solver = Sqp(tolerance_nats=COMPARED_TOLERANCE_NATS)
            notes = (*notes, f"models that are compared are learnt from {cut - first:,} of these")
        earlier = rows.part(slice(0, cut))
        before = learnt_from(mean, earlier.steps, earlier.values, earlier.exogenous)
        own_scales = _units(earlier, before)[1]
        own = (rows.values - before.at(rows.steps, rows.exogenous)) / own_scales
        known = own if np.mean(np.isnan(own)) > MOST_BRIDGED else interpolated(rows.steps, own)
        members = learn_members(*of_what, rows.steps[first:cut], known[first:cut], names, LAPLACIANS, solver, {})
        compared = members if first else compared  # searches on many rows start from fits to some
        decided = ensembles.validated(list(members.values()), rows.steps, own, drift is not None)
        backtest = _block_scores(rows, before, own_scales, decided, cut)
        kept = {decided.spread, *np.array(names)[decided.weights > 0].tolist()}
        if kept == {NODES} and graph.n_edges:  # the better one on the graph too, for imputation and pictures
            errors = dict(zip(names, np.prod(decided.errors, axis=0).tolist(), strict=True))
            kept.add(min((SEPARABLE, GRAPH), key=lambda name: errors[name]))
        names = [name for name in names if name in kept]
        laplacians = tuple(one.fit.kernel.laplacian for one in members.values() if one.fit is not None)[:1]
    else:
        names = names[:1]
    members = learn_members(*of_what, rows.steps, values, names, laplacians, solver, compared)
    states = tuple(one.process.filtered(all_steps, all_values, ROUGHLY_OPEN) for one in members.values())
    stack = ensembles.stacked(list(members.values()), decided, rows.steps, values)
    recent = np.nan_to_num(ensembles.completed([*members.values()], rows.steps, values)[::-1][:LAGS])
    last = float(rows.steps[-1])
    trials = None if decided is None else replace(decided, by_horizon=())  # whose size grows with the rows
    return SeriesModel(clock, mean, scales, stack, states, recent, last, n_steps, trials, chosen, notes), backtest


def season_rows(mean: SeriesMean, n_before: int) -> int | None:
    """Longest season of a mean, in whole steps, for naive forecasts; None unless two of them precede."""
    longest = max((round(one.period) for one in mean.seasons), default=0)
    return longest if 0 < 2 * longest <= n_before else None


def _block_scores(
    rows: SeriesRows, mean: SeriesMean, scales: Array, held: ensembles.BlockValidation, cut: int
) -> Backtest | None:
    """Backtest of the held-out blocks in the units of the user."""
    level, horizons, found = mean.at(rows.steps, rows.exogenous), [], []
    for horizon, one in zip(held.horizons.tolist(), held.by_horizon, strict=True):
        if (own := one.scored) is not None:
            observed, forecast = (level[own.targets] + scales * part for part in (own.observed, own.mean))
            horizons.append(horizon)
            found.append(ScoredForecasts(own.targets, observed, forecast, scales * own.std))
    if not found:
        return None
    how, season = "by models of the first three fifths", season_rows(mean, cut)
    return scored(np.array(horizons, dtype=np.intp), found, rows.values, rows.values[:cut], season, how)


def backtested(model: SeriesModel, rows: SeriesRows, first: int, horizons: Indices, how: str) -> Backtest:
    """Backtest of a learnt model from each origin after a first one; rows before it start the filters."""
    values = model.in_units(rows)
    origins = np.arange(first, len(values) - 1, dtype=np.intp)
    ahead = model.ahead(model.last + horizons.astype(float))
    level = model.mean.at(rows.steps, rows.exogenous)
    found = []
    for place, one in enumerate(ensembles.forecasts_from(model.stack.members, rows.steps, values, origins, horizons)):
        centre = model.stack.mean(one.means, one.rows, float(one.horizon))
        spread = model.stack.variance(one.variances, float(one.horizon))
        observed = rows.values[one.targets]
        mean, std = level[one.targets] + model.scales * centre, model.scales * np.sqrt(spread)
        _, densities = scored_rows(ahead.correlation(place), observed - mean, std)
        found.append(ScoredForecasts(one.targets, observed, mean, std, densities))
    return scored(horizons, found, rows.values, rows.values[: first + 1], season_rows(model.mean, first), how)


def backtested_after(model: SeriesModel, rows: SeriesRows, horizons: Indices) -> Backtest:
    """Backtest on rows after the last one, from the present state and after each of them."""
    n_steps = len(rows.steps)
    last = np.full((1, model.scales.size), np.nan)  # the last row, from which persistence goes on
    if not model.mean.n_exogenous:
        last = model.recent[:1] * model.scales + model.mean.at(np.array([model.last]))
    first = model.ahead(rows.steps[horizons - 1])
    moments: dict[int, list[tuple[Array, Array]]] = {horizon: [] for horizon in horizons.tolist()}
    for origin in range(-1, n_steps - 1):
        ahead = horizons[origin + horizons < n_steps]
        if ahead.size:
            own = rows.part(origin + ahead)
            forecast = model.ahead(own.steps, own.exogenous)
            for place, horizon in enumerate(ahead.tolist()):
                moments[horizon].append((forecast.mean[place], np.sqrt(forecast.variance[place])))
        model = model.updated(rows.part(slice(origin + 1, origin + 2)))
    forecasts = []
    for place, horizon in enumerate(horizons.tolist()):
        mean, std = (np.array(part) for part in zip(*moments[horizon], strict=True))
        observed = rows.values[horizon - 1 :]
        _, densities = scored_rows(first.correlation(place), observed - mean, std)
        forecasts.append(ScoredForecasts(np.arange(horizon, n_steps + 1), observed, mean, std, densities))
    values = np.concatenate([last, rows.values])
    return scored(horizons, forecasts, values, values, None, "rows after those seen")


def one_step(model: SeriesModel, rows: SeriesRows) -> tuple[Array, Array, Array]:
    """One-step errors of rows in standard deviations, root mean squares of decorrelated errors, and log densities."""
    found, known_gap, settled, correlation = [], np.nan, np.empty(0), np.empty(0)
    for row in rows.each():
        forecast = model.ahead(row.steps, row.exogenous)
        _, variances, opened = forecast.parts[model.stack.spread].modes  # by which, and the gap, nodes are correlated
        gap = np.nan if opened.size else forecast.horizons[0]
        if gap != known_gap or not np.allclose(variances, settled, rtol=SETTLED, atol=0.0):
            known_gap, settled, correlation = gap, variances, forecast.correlation(0)
        std, error = np.sqrt(forecast.variance), row.values - forecast.mean
        found.append((error / std, *scored_rows(correlation, error, std)))
        model = model.updated(row)
    scaled, distances, densities = (np.concatenate(part) for part in zip(*found, strict=True))
    return scaled, distances, densities


def update_warnings(
    model: SeriesModel, rows: SeriesRows, seen: Sequence[SeriesRows], names: Sequence[str]
) -> Iterator[str]:
    """Warnings about later rows that hardly belong to the series, as `GraphGPForecaster.update` states them."""
    gaps, labels = np.diff(rows.steps, prepend=model.last), time_labels(model.clock, rows.steps)
    place, past = int(np.argmax(gaps)), [*(one.steps for one in seen), np.array([model.last])]
    if gaps[place] > HORIZONS[-1] and gaps[place] > 2 * np.diff(np.concatenate(past)).max(initial=1.0):
        yield f"Y has a gap of {gaps[place]:.6g} steps before {labels[place]}, unlike rows before. Check its times."
    ahead = model.ahead(rows.steps, rows.exogenous)
    far = np.argwhere(np.abs(rows.values - ahead.mean) > FAR * np.sqrt(ahead.variance))
    if len(far):
        place, node = far[0].tolist()
        yield (
            f"Y has {len(far)} values beyond {FAR:g} deviations of their forecasts; the first is {labels[place]}, "
            f"{names[node]}: {rows.values[place, node]:.6g}, where {ahead.mean[place, node]:.6g} was forecast. Pass "
            "NaN if it is a code for a missing value."
        )


def given_in_turn(model: SeriesModel, rows: SeriesRows) -> tuple[Array, Array]:
    """Means and covariances of rows, each given its observed values and the rows before it."""
    found = []
    for row in rows.each():
        ahead = model.ahead(row.steps, row.exogenous)
        mean, covariance = ahead.mean[0], ahead.covariance(0)
        if np.isfinite(row.values).any():
            mean, covariance = conditioned_row(mean, covariance, row.values[0])
            model = model.updated(row)
        found.append((mean, covariance))
    means, covariances = (np.array(part) for part in zip(*found, strict=True))
    return means, covariances


def innovations(model: SeriesModel, rows: SeriesRows) -> Array:
    """One-step forecast errors of each row in standard deviations; NaN in the first row."""
    own, shown = model.in_units(rows), np.full(rows.values.shape, np.nan)
    origins = np.arange(rows_seen(own)[0][0], len(own) - 1)
    (one,) = ensembles.forecasts_from(model.stack.members, rows.steps, own, origins, np.ones(1, np.intp))
    mean, variance = model.stack.mean(one.means, one.rows, 1.0), model.stack.variance(one.variances, 1.0)
    shown[one.targets] = (one.observed - mean) / np.sqrt(variance)
    return shown


def paths(ahead: SeriesForecast, n_samples: int, random: np.random.Generator) -> Array:
    """Draw paths of rows, (n_samples, n_steps, n_nodes), from one member, transformed to the ensemble's covariances."""
    part = ahead.parts[ahead.model.stack.spread]
    drawn = part.sample(n_samples, random) - part.mean
    out = np.empty_like(drawn)
    for place in range(len(ahead.mean)):
        white = solve_triangular(np.linalg.cholesky(part.node_covariance(place)), drawn[:, place].T, lower=True)
        out[:, place] = (np.linalg.cholesky(ahead.covariance(place)) @ white).T + ahead.mean[place]
    return out


def scored_rows(correlation: Array, errors: Array, std: Array) -> tuple[Array, Array]:
    """Root mean squares of decorrelated errors of rows, in deviations, and joint log densities of rows in nats.

    Correlations are the same for all rows. Missing values are left out; the distance of an empty row is NaN.
    """
    known = np.isfinite(errors)
    lengths, determinants = np.zeros((2, len(errors)))
    factor = np.linalg.cholesky(correlation)
    for place, (row, there) in enumerate(zip(errors / std, known, strict=True)):
        lower = factor if there.all() else np.linalg.cholesky(correlation[np.ix_(there, there)])
        white = solve_triangular(lower, row[there], lower=True)
        lengths[place], determinants[place] = white @ white, 2 * np.sum(np.log(np.diag(lower)))
    counts, logs = known.sum(axis=1), np.where(known, np.log(2 * np.pi * std**2), 0.0).sum(axis=1)
    distances = np.sqrt(lengths / np.where(counts > 0, counts, np.nan))
    return distances, -0.5 * (lengths + determinants + logs)


def component_words(component: Component) -> str:
    """Name of a component."""
    match component:
        case MaternComponent(smoothness=smoothness):
            return f"Matern {round(2 * smoothness)}/2"
        case OscillatorComponent(period=period):
            return f"oscillator of {period:.4g} steps"
    return type(component).__name__


def summary_of(model: SeriesModel, backtest: Backtest | None, graph: Graph) -> str:
    """Summary in words: mean, models and weights, drift, and the backtest."""
    stack, mean = model.stack, model.mean
    nodes = f"{graph.n_nodes} node{'' if graph.n_nodes == 1 else 's'}"
    lines = [f"{model.n_steps:,} steps on {nodes} and {graph.n_edges} edges."]
    lines += [f"Note: {note}." for note in model.notes]
    seasons = ", ".join(f"{one.described} ({len(one.harmonics)} waves)" for one in mean.seasons) or "none"
    lines.append(f"  mean:     levels of nodes; seasons: {seasons}; exogenous columns: {mean.n_exogenous or 'none'}")
    if model.trials is not None:
        tried = zip(model.trials.names, model.trials.weights.tolist(), strict=True)
        lines.append("  weights:  " + ", ".join(f"{name} {weight:.2f}" for name, weight in tried))
    for weight, member in zip(stack.weights.tolist(), stack.members, strict=True):
        if weight:
            lines += ["", f"{member.name}, weight {weight:.2f}:", *_member_lines(member)]
    lines.append("")
    drifting = stack.drift_horizons
    drift = f"errors regressed on the last rows at {listing(drifting)} steps" if drifting else "none that gained 5%"
    lines.append(f"  drift:    {drift}")
    shares = f"; {stack.shares[0]:.0%} of it from past errors at one step" if len(stack.correlations) else ""
    lines.append(f"  nodes:    errors are correlated as by {stack.members[stack.spread].name}{shares}")
    if backtest is None:
        lines.append("  backtest: none, for lack of rows; intervals are those of the model")
        return "\n".join(lines)
    lines += ["", str(backtest)]
    return "\n".join([*lines, *(f"  {sentence}" for sentence in coverage_words(backtest) + rival_words(backtest))])


def _member_lines(member: EnsembleMember) -> list[str]:
    process = member.process
    total = float(np.mean(np.sum(process.powers, axis=0) + process.own))
    lines = []
    for component, power, rate in zip(process.components, process.powers, process.rates, strict=True):
        name, share = component_words(component), float(np.mean(power)) / total
        low, high = float((1 / rate).min()), float((1 / rate).max())
        times = f"{low:.2g}" if high < 1.05 * low else f"{low:.2g} to {high:.2g}"
        lines.append(f"  {name}: {share:.0%} of the variance, time scale {times} steps")
    lines.append(f"  noise and residual: {float(np.mean(process.own)) / total:.0%} of the variance")
    return lines
