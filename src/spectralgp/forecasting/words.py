"""What was learnt of a series, in words."""

from __future__ import annotations

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.forecasting.backtests import GOOD_COVERAGE, Backtest
from spectralgp.forecasting.model import SeriesModel
from spectralgp.forecasting.stack import Member
from spectralgp.graphs import Graph
from spectralgp.time import Component, Matern, Oscillator


def component_words(component: Component) -> str:
    """A component by its name."""
    match component:
        case Matern(smoothness=smoothness):
            return f"Matern {round(2 * smoothness)}/2"
        case Oscillator(period=period):
            return f"oscillator of {period:.4g} steps"
    return type(component).__name__


def summary_of(model: SeriesModel, backtest: Backtest | None, graph: Graph) -> str:
    """The mean, the models and their weights, the drift, and how forecasts of past rows were."""
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
    drift = f"errors regressed on the last rows at {_listed(drifting)} steps" if drifting else "none that gained 5%"
    lines.append(f"  drift:    {drift}")
    shares = f"; {stack.shares[0]:.0%} of it from past errors at one step" if len(stack.correlations) else ""
    lines.append(f"  nodes:    errors are correlated as by {stack.members[stack.spread].name}{shares}")
    if backtest is None:
        lines.append("  backtest: none, for lack of rows; intervals are those of the model")
        return "\n".join(lines)
    lines += ["", str(backtest)]
    return "\n".join([*lines, *(f"  {said}" for said in coverage_words(backtest) + rival_words(backtest))])


def steps_ahead(*horizons: int) -> str:
    """Such as "1 step ahead", or "6 and 24 steps ahead"."""
    return f"{_listed(list(horizons))} step{'' if horizons == (1,) else 's'} ahead"


def coverage_words(backtest: Backtest) -> list[str]:
    """Horizons whose intervals were too narrow or too wide."""
    said = []
    for horizon, share in backtest.miscovered:
        way = "too narrow, and wider by now" if share < GOOD_COVERAGE[0] else "too wide"
        said.append(f"90% intervals {steps_ahead(horizon)} covered {share:.1%} of what came: {way}.")
    return said


def rival_words(backtest: Backtest) -> list[str]:
    """At which horizons forecasts without a model had the smaller error."""
    said = []
    for name, errors in backtest.rmse.items():
        better = backtest.horizons[errors < backtest.rmse["model"]].tolist()
        if better:
            said.append(f"{name} had the smaller error {steps_ahead(*better)}.")
    return said


def _member_lines(member: Member) -> list[str]:
    process = member.process
    total = float(np.mean(np.sum(process.powers, axis=0) + process.own))
    lines = []
    for component, power, rate in zip(process.components, process.powers, process.rates, strict=True):
        share = float(np.mean(power)) / total
        lines.append(
            f"  {component_words(component)}: {share:.0%} of the variance, time scale {_spans(1 / rate)} steps"
        )
    lines.append(f"  each value for itself: {float(np.mean(process.own)) / total:.0%} of the variance")
    return lines


def _spans(times: Array) -> str:
    low, high = float(times.min()), float(times.max())
    return f"{low:.2g}" if high < 1.05 * low else f"{low:.2g} to {high:.2g}"


def _listed(numbers: list[int]) -> str:
    return " and ".join(", ".join(str(one) for one in part) for part in (numbers[:-1], numbers[-1:]) if part)
