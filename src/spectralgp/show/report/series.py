"""Report of a time series: forecasts and their accuracy by horizon, in numbers and in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp._basics.tables import listing
from spectralgp.graphs import Graph
from spectralgp.scores import INTERVAL_LEVELS
from spectralgp.series.backtests import PERSISTENCE, SEASONAL, Backtest, coverage_words, rival_words, steps_ahead
from spectralgp.series.model import SeriesModel
from spectralgp.show.curves import Curve
from spectralgp.show.report.numbers import Pair, Predictions
from spectralgp.show.report.words import capitalised, count, percent, worst_nodes

RIVALS = {PERSISTENCE: "persistence (the last row again)", SEASONAL: "the seasonal naive forecast (a season before)"}
VALIDATION = {
    "by models of the first three fifths": "Forecasts are scored on the last two fifths of the rows, by models of the "
    "first three fifths.",
    "rows after those seen": "Forecasts are scored on given rows that the model was not fitted to.",
    "rows that the model has seen": "Forecasts are scored on rows of the fit: errors are too small, and coverage is no "
    "evidence.",
}


@dataclass(frozen=True, eq=False)
class SeriesReport:
    """Numbers of a report of a series; nodes are in the graph's order."""

    graph: Graph
    names: tuple[str, ...]
    predictions: Predictions  # observed rows, without predictions, and rows of the forecast
    model: SeriesModel
    backtest: Backtest | None
    times: tuple[Curve, ...]  # in steps; empty for independent nodes
    powers: tuple[Curve, ...]


def forecast_predictions(
    labels: Sequence[str], past: Array, later: Array, mean: Array, std: Array, imputed: Pair | None
) -> Predictions:
    """Observed rows, then rows of a forecast with later values, NaN if unknown."""
    nothing = np.full(past.shape, np.nan)
    observed = np.concatenate([past, later])
    means, deviations = (np.concatenate([nothing, one]) for one in (mean, std))
    if imputed is not None:
        rest = np.full(mean.shape, np.nan)
        imputed = np.concatenate([imputed[0], rest]), np.concatenate([imputed[1], rest])
    return Predictions("forecast", tuple(labels), observed, means, deviations, None, nothing, imputed, first=len(past))


def series_overview(numbers: SeriesReport) -> str:
    """Numbers of rows, nodes, edges and steps in one sentence."""
    graph, model, last = numbers.graph, numbers.model, numbers.predictions.labels[-1]
    n_steps = len(numbers.predictions.labels) - numbers.predictions.first
    sizes = f"{count(model.n_steps, 'row')} of {count(graph.n_nodes, 'node')} and {count(graph.n_edges, 'edge')}"
    return f"{sizes}; a forecast of {count(n_steps, 'step')}, up to {last}."


def forecast_accuracy_words(numbers: SeriesReport) -> list[str]:
    """Accuracy of the forecasts by horizon."""
    found, n_nodes = numbers.backtest, numbers.graph.n_nodes
    said = [f"The model forecasts {count(n_nodes, 'node')} from {'its' if n_nodes == 1 else 'their'} past."]
    if found is None:
        return [*said, "There are too few rows to score forecasts."]
    said.append(VALIDATION.get(found.how, f"Forecasts are scored on {found.how}."))
    rivals = {name: RIVALS.get(name, name) for name in found.rmse if name != "model"}
    for place, horizon in enumerate(found.horizons.tolist()):
        others = [f"{name if place else known} by {found.rmse[name][place]:.3g}" for name, known in rivals.items()]
        also = f"; {listing(others)}" if others else ""
        said.append(f"{steps_ahead(horizon)} they are typically off by {found.rmse['model'][place]:.3g}{also}.")
    better = rival_words(found)
    if not better and rivals:
        better = [f"{' and '.join(rivals)} {'have' if len(rivals) > 1 else 'has'} a smaller error at no horizon."]
    said += map(capitalised, better)
    for place in sorted({0, len(found.horizons) - 1}):
        inside = f"{percent(float(found.coverage[place]))} of values lie inside their 90% intervals"
        if found.coverages is not None:
            levels = listing([f"{level:.0%}" for level in INTERVAL_LEVELS])
            shares = listing([percent(share) for share in found.coverages[:, place].tolist()])
            inside = f"{shares} of values lie inside their intervals of {levels}"
        bias = ""
        if found.bias is not None:
            side = "low" if found.bias[place] > 0 else "high"
            bias = f", and forecasts are too {side} by {abs(found.bias[place]):.2g} on average"
        said.append(f"{steps_ahead(int(found.horizons[place]))} {inside}{bias}.")
    worst, first = worst_nodes(numbers.names, found.node_rmse[0]), steps_ahead(int(found.horizons[0]))
    return [*said, *(f"{first} {one[0].lower()}{one[1:]}" for one in worst)]


def shares_inside(found: Backtest) -> dict[float, Array]:
    """Shares of values inside intervals by probability and horizon; backtests in old files have those of 90%."""
    if found.coverages is None:
        return {0.9: found.coverage}
    return dict(zip(INTERVAL_LEVELS, found.coverages, strict=True))


def by_horizon(found: Backtest) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of a table of scores by horizon."""
    rivals, shares = [name for name in found.rmse if name != "model"], shares_inside(found)
    heads = ["steps ahead", "forecasts"]
    for score in ("error", "CRPS"):
        heads += [score, *(f"{score} of {name}" for name in rivals)]
    rows = []
    for place, horizon in enumerate(found.horizons.tolist()):
        scores = [one[name][place] for one in (found.rmse, found.crps) for name in ("model", *rivals)]
        cells = [*(f"{score:.4g}" for score in scores), *(f"{one[place]:.1%}" for one in shares.values())]
        rows.append([str(horizon), f"{found.n_origins[place]:,}", *cells])
    return [*heads, *(f"in {level:.0%}" for level in shares)], rows


def _steps(number: float) -> str:
    """A number with two digits, without powers of ten."""
    return f"{float(f'{number:.2g}'):,g}"


def forecast_cautions(numbers: SeriesReport) -> list[str]:
    """Reasons for caution about the forecasts; empty if nothing stands out."""
    notes = [capitalised(f"{note}.") for note in numbers.model.notes]
    found = [] if numbers.backtest is None else coverage_words(numbers.backtest)
    fits = [(one.name, one.fit) for one in numbers.model.stack.members if one.fit is not None]
    failed = [f"The fit of {name} did not converge: {fit.detail}." for name, fit in fits if not fit.converged]
    return [*notes, *found, *failed]


def time_scale_words(numbers: SeriesReport) -> list[str]:
    """Weight of models on the graph, and time scales of the components."""
    stack, said = numbers.model.stack, []
    members = zip(stack.weights, stack.members, strict=True)
    on_graph = float(sum(weight for weight, one in members if one.fit is not None))
    if on_graph > 0:
        alone = f"; {percent(1 - on_graph)} go to independent nodes" if on_graph < 1 else ""
        said.append(
            f"{percent(on_graph)} of the weight of forecasts go to models in which neighbours inform each other{alone}."
        )
    else:
        said.append("Nodes are forecast independently: models on the graph did not forecast later rows better.")
    for one in numbers.times if on_graph > 0 else ():
        smooth, rough = float(one.values[0]), float(one.values[-1])
        if max(smooth, rough) > 1.05 * min(smooth, rough):
            common = f"patterns common to neighbours last about {_steps(smooth)} steps"
            said.append(f"{one.name}: {common}, differences between neighbours about {_steps(rough)}.")
        else:
            said.append(f"{one.name}: patterns last about {_steps(smooth)} steps, smooth or rough.")
    if stack.drift_horizons:
        said.append(f"The last rows of all nodes improve forecasts {listing(stack.drift_horizons)} steps ahead.")
    return said
