"""Sentences of reports: accuracy, filters, shares of the variance, time scales, and cautions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp._basics.tables import listing
from spectralgp.learning.baselines import PredictionErrors
from spectralgp.scores import INTERVAL_LEVELS, Calibration, Share
from spectralgp.series.backtests import PERSISTENCE, SEASONAL, Backtest, coverage_words, rival_words, steps_ahead
from spectralgp.show.curves import FILTER_NAMES, Which
from spectralgp.show.report.numbers import FilterBands, SeriesReport, SignalReport, Source, VarianceShares

# thresholds beyond which there is a sentence
FEW_SIGNALS = 10
COVERAGE_TOLERANCES = {0.5: 0.05, 0.8: 0.05, 0.9: 0.03}  # by the probability of the intervals
BIAS_TOLERANCE = 0.05  # distance from one half of the mean of the PIT
MUCH_NOISE = 0.9  # share of the variance
N_NAMED = 3  # nodes with the largest errors
COVERAGE_LEVELS = (0.5, 0.8, 0.9, 0.95)  # of the intervals in a table
WIDE_BAND = 0.5  # standard deviation of a filter, relative to its largest value
SMALLEST_GAIN = 0.005  # share of the variance that the other nodes of a signal explain in addition to the inputs

ROLES: dict[Which, str] = {
    "signal": "the part explained by inputs",
    "residual": "the residual shared by neighbours",
    "carry": "the part that carries over from inputs",
}
ROLE_WITHOUT_INPUTS = "the part shared by neighbours"
# of predictions: the words after "predictions", "predicted" and a score
SOURCES: dict[Source, tuple[str, str, str]] = {
    "left out": ("of each training signal from all others", "from the other signals", "on signals left out"),
    "held out": ("of signals that the model had not seen", "in held-out signals", "on held-out signals"),
    "fitted": ("of signals that the model was fitted to", "in the fit itself", "on signals of the fit"),
}

# by measure: words for a better value, and its name
BETTER = {
    "rmse": ("a lower error (RMSE {0:.4g} against {1:.4g})", "error"),
    "crps": ("a lower CRPS ({0:.4g} against {1:.4g})", "CRPS"),
    "log_density": ("a higher log density ({0:.2f} against {1:.2f} nats per {2})", "log density"),
}
SUBJECTS = {
    "node means": "Node means have",
    "no change": "No change has",
    "ridge regression": "Ridge regression has",
    "neighbours on the graph": "Neighbours on the graph have",
    "iterative imputer": "The iterative imputer has",
}
IMPUTING = "in imputing hidden values"

# of a series
RIVALS = {PERSISTENCE: "persistence (the last row again)", SEASONAL: "the seasonal naive forecast (a season before)"}
VALIDATION = {
    "by models of the first three fifths": "Forecasts are scored on the last two fifths of the rows, by models of the "
    "first three fifths.",
    "rows after those seen": "Forecasts are scored on given rows that the model was not fitted to.",
    "rows that the model has seen": "Forecasts are scored on rows of the fit: errors are too small, and coverage is no "
    "evidence.",
}


def percent(share: float) -> str:
    """A share in whole per cent; "less than 1%" and "more than 99%" instead of none and all."""
    if 0 < share < 0.01:
        return "less than 1%"
    return "more than 99%" if 0.99 < share < 1 else f"{100 * share:.0f}%"


def count(number: int, noun: str) -> str:
    """A number with its noun, such as "1 signal" or "2,000 nodes"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def capitalised(sentence: str) -> str:
    """A sentence with a capital first letter."""
    return sentence[:1].upper() + sentence[1:]


def training_note(n_training: int, n_given: int) -> str:
    """Treatment of training signals among the signals given; empty if there are none."""
    if n_training == 0:
        return ""
    if n_training == n_given:
        they = "signal given is a training signal" if n_given == 1 else "signals given are training signals"
        return f"The {they}. So each training signal is predicted from all others instead."
    are = "is a training signal" if n_training == 1 else "are training signals"
    return f"{n_training:,} of the {n_given:,} signals given {are}, and left out here."


def data_overview(numbers: SignalReport) -> str:
    """Numbers of signals, nodes, edges and models in one sentence."""
    graph, n_models = numbers.graph, sum(weight > 0 for _, weight, _ in numbers.members)
    models = "one model" if n_models == 1 else f"a mixture of {n_models} models"
    sizes = f"{count(numbers.counts.signals, 'training signal')} on {count(graph.n_nodes, 'node')}"
    return " ".join(f"{sizes} and {count(graph.n_edges, 'edge')}; {models}. {numbers.order} {numbers.weights}".split())


def accuracy_words(numbers: SignalReport) -> list[str]:
    """Accuracy of the predictions, for readers who do not know graph frequencies."""
    errors, n_nodes = numbers.errors, numbers.graph.n_nodes
    of_what, _, scored = SOURCES[numbers.predictions.source]
    nodes = "one node" if n_nodes == 1 else f"each of {count(n_nodes, 'node')}"
    said = [numbers.note] if numbers.note else []
    if numbers.inputs:
        said.append(f"The model predicts signals, a value at {nodes}, from {listing(numbers.inputs)}.")
    else:
        said.append(f"The model says how signals, a value at {nodes}, are distributed. It has no inputs.")
    beside = [f"those by {one.name} by {one.rmse:.3g}" for one in numbers.forecasts[1:]]
    also = f"; {listing(beside)}" if beside else ""
    off = f"are typically off by {errors.rmse:.3g} (root mean square)"
    said.append(f"Predictions {of_what} {off}{also}.")
    said += baseline_words(numbers.forecasts, scored) + baseline_words(numbers.imputations, IMPUTING)
    shares = numbers.calibration.coverages
    inside = listing([percent(one.value) for one in shares.values()])
    levels = listing([f"{level:.0%}" for level in shares])
    values = count(errors.n_values, "value")
    said.append(f"{inside} of {values} lie inside their intervals of {levels}.")
    return [*said, bias_words(numbers.bias), *worst_nodes(numbers.names, numbers.predictions.node_errors)]


def bias_words(bias: Share) -> str:
    """Mean error of the predictions, with its standard error."""
    side = "low" if bias.value > 0 else "high"
    error = "" if bias.n_signals < 2 else f" (± {bias.standard_error:.2g})"
    chance = "" if bias.is_off() else ", which may be chance"
    return f"Predictions are too {side} by {abs(bias.value):.3g} on average{error}{chance}."


def worst_first(errors: Array) -> list[int]:
    """Nodes with observed values by their errors, the largest first."""
    return [node for node in np.argsort(-errors, kind="stable").tolist() if np.isfinite(errors[node])]


def worst_nodes(names: Sequence[str], errors: Array) -> list[str]:
    """Names of the nodes with the largest and the smallest errors; empty for one node."""
    named = [f"{names[node]} ({errors[node]:.3g})" for node in worst_first(errors)]
    if len(named) < 2:
        return []
    return [f"Errors are largest at {listing(named[:-1][:N_NAMED])}, and smallest at {named[-1]}."]


def neighbour_words(numbers: SignalReport) -> list[str]:
    """Correlation of neighbours, effect of the filters, and shares of the variance."""
    said = []
    if numbers.correlations is not None:
        joined, pairs = numbers.correlations
        said.append(
            f"Noise apart, the model gives neighbours a correlation of {joined:.2f}, and any two nodes one of "
            f"{pairs:.2f} (medians)."
        )
    for which, shape in numbers.bands.shapes.items():
        meaning = shape.meaning(which == "carry")
        if shape.kind == "none":
            continue
        if which == "carry":
            said.append(f"Of the inputs at each node {meaning}.")
        else:
            about = f"In the part that inputs {'do not ' if which == 'residual' else ''}explain"
            about = about if numbers.has_inputs else "In signals"
            said.append(f"{about}, {meaning.partition(': ')[2]}.")
    return [*said, *variance_words(numbers.variance, numbers.predictions.source, numbers.has_inputs)]


def filter_words(bands: FilterBands, has_inputs: bool) -> list[str]:
    """Kind and values of each filter, one sentence each."""
    if not bands.filters:
        return ["There is no filter to show: the graph kernel is not a function on the graph's spectrum."]
    said = []
    for which, shape in bands.shapes.items():
        name, carries = FILTER_NAMES[which], which == "carry"
        role = ROLES[which] if has_inputs or carries else ROLE_WITHOUT_INPUTS
        if shape.kind == "none" or not carries:
            values = "" if shape.kind == "none" else f" ({shape.values})"
            said.append(f"The {name}, of {role}, is {shape.meaning()}{values}.")
        else:
            said.append(f"By the {name} {shape.meaning(carries)} ({shape.values}).")
    return said


def variance_words(variance: VarianceShares, source: Source, has_inputs: bool) -> list[str]:
    """Explained share of the variance, and shares of its sources."""
    predicted, (_, where, _) = variance.predicted, SOURCES[source]
    said = []
    if predicted is not None and predicted > 0:
        about = "of the variance about the nodes' means is explained"
        said.append(capitalised(f"{percent(predicted)} {about} {where}."))
    elif predicted is not None:
        said.append(f"Predictions explain nothing {where}: the nodes' means do as well, or better.")
    if variance.with_neighbours is not None and predicted is not None:
        gain = variance.with_neighbours - max(predicted, 0.0)
        added = count(round(100 * gain), "percentage point")
        said.append(
            f"Given also the values of all other nodes of the same signal it is "
            f"{percent(max(variance.with_neighbours, 0.0))}: the graph adds {added}."
            if gain > SMALLEST_GAIN
            else "The values of the other nodes of the same signal add nothing."
        )
    parts = {
        f"{ROLES['signal']} (with levels of the nodes)" if has_inputs else ROLE_WITHOUT_INPUTS: variance.inputs,
        ROLES["residual"]: variance.neighbours,
        ROLES["carry"]: variance.carry,
        "noise": variance.noise,
    }
    first, *others = [(percent(share), what) for what, share in parts.items() if share > 0]
    total = f"the variance of {variance.of}" if variance.of else "the variance"
    listed = [f"{first[0]} of {total} comes from {first[1]}", *(f"{share} from {what}" for share, what in others)]
    return [*said, f"According to the model, {listing(listed)}."]


def cautions(numbers: SignalReport) -> list[str]:
    """Reasons for caution about the model; empty if nothing stands out."""
    graph, counts, variance, members = numbers.graph, numbers.counts, numbers.variance, numbers.members
    n_values = max(counts.signals * graph.n_nodes, 1)
    calibration = calibration_words(numbers.calibration)
    if numbers.predictions.source == "fitted":
        calibration = ["Calibration was not checked on held-out signals."]
    warnings = {
        **{f"The fit of {name} did not converge: {fit.message}.": not fit.converged for name, _, fit in members},
        "The noise is at its lower bound: the data do not identify any noise, and intervals may be too narrow. "
        "Look for copies or interpolated values, or pass noise_variance, or bounds of it.": (
            sum(weight for _, weight, fit in members if fit.is_noise_at_bound) > 0.5
        ),
        f"{count(numbers.stand_ins, 'draw')} of the hyperparameters violated a constraint and "
        f"{_was(numbers.stand_ins)} replaced by the best values: bands may be too narrow.": numbers.stand_ins > 0,
        "The model has no signals of this graph: its predictions rest on hyperparameters learnt on another one.": (
            counts.signals == 0
        ),
        f"There are only {count(counts.signals, 'training signal')}: filters, scales, noise and calibration are "
        "uncertain.": 0 < counts.signals < FEW_SIGNALS,
        f"{count(counts.repeated, 'signal')} {'repeats another' if counts.repeated == 1 else 'repeat others'}, "
        "inputs included: taken for repeated measurements. Drop copies made by mistake: they make the noise look "
        "too small.": counts.repeated > 0,
        f"{count(counts.empty, 'signal')} without any value {_was(counts.empty)} left out.": counts.empty > 0,
        f"{count(counts.missing, 'value')} ({percent(counts.missing / n_values)}) of the training signals "
        f"{'is' if counts.missing == 1 else 'are'} missing.": counts.missing > 0,
        f"{count(counts.unseen, 'node')} {_was(counts.unseen)} never observed.": counts.unseen > 0,
        "The graph has no edges: nodes do not inform each other.": graph.n_edges == 0 and graph.n_nodes > 1,
        f"The graph has {graph.n_components:,} components without edges between them: they share filters, but do not "
        "inform each other.": graph.n_edges > 0 and graph.n_components > 1,
        **dict.fromkeys(calibration, True),
        f"Little was learnt: according to the model, {percent(variance.noise)} of the variance is noise.": (
            variance.noise > MUCH_NOISE and not variance.of
        ),
        "Predictions are no better than the nodes' means: inputs may be uninformative, or signals too few.": (
            variance.noise <= MUCH_NOISE and variance.predicted is not None and variance.predicted <= 0
        ),
    }
    return [sentence for sentence, applies in warnings.items() if applies]


def filter_warnings(bands: FilterBands) -> list[str]:
    """Warnings of uncertain filters."""
    return [
        f"The {one.name} is uncertain: its standard deviation exceeds half its largest value at some frequency."
        for one in bands.filters.values()
        if np.max(one.high - one.values) > WIDE_BAND * np.max(np.abs(one.values)) > 0
    ]


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def baseline_words(found: Sequence[PredictionErrors], where: str) -> list[str]:
    """Baselines that are better than the first predictions given, our own, and the measures in which they are."""
    if len(found) < 2:
        return []
    ours, *others = found
    said = []
    for one in others:
        better, worse = one.better_than(ours), ours.better_than(one)
        if better:
            unit = "value" if one.is_by_value else "signal"
            wins = [BETTER[name][0].format(getattr(one, name), getattr(ours, name), unit) for name in better]
            losses = [BETTER[name][1] for name in worse]
            chance = " That is within one standard error over the signals, so it may be chance."
            less = f" The {ours.name} is better in {listing(losses)}." if losses else ""
            said.append(f"{SUBJECTS[one.name]} {listing(wins)} {where}.{'' if any(better.values()) else chance}{less}")
    if not said:
        names = ", ".join(one.name for one in others)
        said = [f"No baseline ({names}) is better than the {ours.name} {where} in error, CRPS or log density."]
    return said


def calibration_words(calibration: Calibration) -> list[str]:
    """Faults of calibration: bias, skewed errors, wide or narrow intervals; any is false in `FALSE_ALARMS` of cases."""
    values, found, said = count(calibration.n_values, "value"), calibration.pit_mean, []
    is_biased = found.is_off(BIAS_TOLERANCE)
    if is_biased:
        above = float(np.sum(calibration.density[calibration.edges[:-1] >= 0.5]) / calibration.density.size)
        side, where, share = ("low", "above", above) if found.value > 0.5 else ("high", "below", 1 - above)
        error = calibration.error_mean
        is_biased = error.is_off() and (error.value > 0) == (found.value > 0.5)
        what = f"Predictions are biased, too {side}:" if is_biased else "Errors are skewed, but zero on average:"
        pit = f"the mean of the PIT is {found.value:.2f} ± {found.standard_error:.2f}, and 0.5 if calibrated"
        said.append(f"{what} {percent(share)} of {values} lie {where} their predicted means ({pit}).")
    for side, is_few in (("narrow", True), ("wide", False)):
        shares = [
            f"{percent(one.value)} in their {level:.0%} intervals"
            for level, one in calibration.coverages.items()
            if one.is_off(COVERAGE_TOLERANCES[level]) and (one.value < one.expected) == is_few
        ]
        if shares:
            first, *others = shares
            listed = listing([first.replace(" in", f" of {values} lie in", 1), *others])
            because = ", which the bias explains at least in part" if is_few and is_biased else ""
            said.append(f"Intervals are too {side}{because}: {'only ' if is_few else ''}{listed}.")
    return said


def coverage_shares(calibration: Calibration) -> dict[str, str]:
    """Shares of values inside intervals by probability, with standard errors if known."""
    shares = {}
    for level in COVERAGE_LEVELS:
        found = calibration.coverages.get(level)
        error = "" if found is None or found.n_signals < 2 else f" ± {found.standard_error:.1%}"
        shares[percent(level)] = f"{calibration.covered_at(level):.1%}{error}"
    return shares


# ------------------------------------------------------------------------------------------------- time series


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
