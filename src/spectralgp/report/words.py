"""A report's numbers in words: what kind of filter was learnt, what explains how much, and what to watch out for."""

from __future__ import annotations

from typing import Literal

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.report.numbers import Bands, Counts, LearntFilter, Member, Numbers, Source, Variance, Which
from spectralgp.scores import Calibration

Kind = Literal["none", "band-pass", "low-pass", "high-pass", "flat"]

STEEP = 1.5  # ratio of a filter's values at which it is no longer called flat
ABSENT = 1e-12  # below which a filter is none
FEW_SIGNALS = 10
OFF = {0.9: 0.05, 0.5: 0.1}  # of the coverage of a level, beyond which intervals are said to be wrong
BIASED = 0.15  # from one half, of the share of values above their predicted means
MUCH_NOISE = 0.9  # share of the variance, beyond which little is left to be learnt
WIDE_BAND = 0.5  # of a filter's largest value, that its standard deviation may be before it is called uncertain

SYMBOLS: dict[Which, str] = {
    "signal": "signal filter g",
    "residual": "residual filter h",
    "carry": "carry-over filter b",
}
ROLES: dict[Which, str] = {
    "signal": "what inputs explain",
    "residual": "what neighbours share beside it",
    "carry": "what carries over from the inputs",
}
WITHOUT_INPUTS = "what neighbours share"
MEANINGS: dict[Kind, str] = {
    "none": "it is zero",
    "band-pass": "it is band-pass: patterns of a middle scale stand out",
    "low-pass": "it is low-pass: neighbours are alike",
    "high-pass": "it is high-pass: neighbours are opposed",
    "flat": "it is nearly flat: nodes are on their own",
}
CARRIED: dict[Kind, str] = {
    "none": "it is zero",
    "band-pass": "patterns of a middle scale carry over most",
    "low-pass": "smooth patterns carry over most",
    "high-pass": "rough patterns carry over most",
    "flat": "patterns of every scale carry over alike",
}
SHORT_SOURCES: dict[Source, str] = {
    "left out": "Each training signal is predicted from all others, as on the map.",
    "held out": "The signals were held out, as on the map.",
    "fitted": "The training signals are predicted by the model that was fitted to them, as on the map.",
}
SOURCES: dict[Source, str] = {
    "left out": (
        "Each training signal is predicted from all others (leave-one-out, in closed form), with the hyperparameters "
        "learnt from all of them. So errors and coverage are not those of the fit, but still a little too good."
    ),
    "held out": "These signals were held out: the model had not seen them.",
    "fitted": (
        "Leave-one-out has no closed form for signals with holes on a graph of this size. The training signals are "
        "predicted by the model that was fitted to them: errors are too small and coverage is no evidence. For an "
        "honest check pass held-out signals, model.report(path, X, Y)."
    ),
}

HOW_CALIBRATED = (
    "If predictions are calibrated, the share of the values inside each interval is its probability, and the "
    "histogram is flat. A hump, and a curve above the diagonal, belong to intervals that are too wide; a U, and a "
    "curve below, to intervals that are too narrow; a slope is a bias. Grey bands hold 90% of calibrated predictions "
    "whose values are independent; those of neighbouring nodes are not, and stray further. Mixtures and heavy tails "
    "are judged by the Gaussian with their mean and standard deviation."
)
HOW_COMPARED = (
    "Models were compared by what they predict of signals that they had not seen, in folds. The weights are those of "
    "the mixture that predicts held-out signals, and their values one by one, best; a model of weight 0 was left out."
)
HOW_CERTIFIED = (
    "Residuals of the conditions for a constrained maximum of the likelihood, in nats for a unit change of a "
    "parameter as the optimiser sees it: near zero at every local maximum. Errors of the log likelihood, in nats, are "
    "zero where the spectrum is exact."
)


def kind_of_filter(values: Array) -> Kind:
    """Where a filter is large, from its values at points that go through the whole spectrum.

    Examples
    --------
    >>> import numpy as np
    >>> kind_of_filter(np.array([2.0, 1.5, 1.0])), kind_of_filter(np.array([1.0, 3.0, 1.0]))
    ('low-pass', 'band-pass')
    """
    low, high, peak = abs(float(values[0])), abs(float(values[-1])), float(np.max(np.abs(values)))
    if peak < ABSENT:
        return "none"
    if peak > STEEP * max(low, high):
        return "band-pass"
    if low > STEEP * high:
        return "low-pass"
    return "high-pass" if high > STEEP * low else "flat"


def percent(share: float) -> str:
    """A share as whole per cent, or as what it is where that would be none or all.

    Examples
    --------
    >>> percent(0.456), percent(0.001), percent(0.9999)
    ('46%', 'less than 1%', 'more than 99%')
    """
    if 0 < share < 0.01:
        return "less than 1%"
    return "more than 99%" if 0.99 < share < 1 else f"{100 * share:.0f}%"


def count(number: int, noun: str) -> str:
    """A number with its noun.

    Examples
    --------
    >>> count(1, "signal"), count(2_000, "node")
    ('1 signal', '2,000 nodes')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def filter_words(bands: Bands, has_inputs: bool = True) -> list[str]:
    """What kind of filter each is, one sentence each."""
    if not bands.filters:
        return ["The graph kernel is no function on the graph's spectrum, so that there is no filter to show."]
    return [_filter_sentence(one, has_inputs) for one in bands.filters]


def _filter_sentence(learnt: LearntFilter, has_inputs: bool) -> str:
    kind = kind_of_filter(learnt.mean)
    meanings = CARRIED if learnt.which == "carry" else MEANINGS
    values = f"{learnt.mean[0]:.3g} at frequency 0, {learnt.mean[-1]:.3g} at the highest"
    role = ROLES[learnt.which] if has_inputs else WITHOUT_INPUTS
    start = f"The {SYMBOLS[learnt.which]} is of {role}; {meanings[kind]}"
    return f"{start}." if kind == "none" else f"{start} ({values})."


def variance_words(variance: Variance, source: Source, has_inputs: bool = True) -> list[str]:
    """How much of the variance is explained, and by what."""
    said = []
    if variance.predicted is not None:
        how = {"left out": "from the other signals", "held out": "in held-out signals", "fitted": "in the fit itself"}
        if variance.predicted > 0:
            share = f"{percent(variance.predicted)} of the variance of values about their nodes' means is predicted"
            said.append(f"{share[0].upper()}{share[1:]} {how[source]}.")
        else:
            said.append(f"Nothing is predicted {how[source]}: the nodes' means do as well, or better.")
    if variance.with_neighbours is not None and variance.predicted is not None:
        gain = variance.with_neighbours - max(variance.predicted, 0.0)
        if gain > 0.005:
            said.append(
                f"Given also the values of all other nodes of the same signal it is "
                f"{percent(max(variance.with_neighbours, 0.0))}: the graph adds {100 * gain:.0f} percentage points."
            )
        else:
            said.append("The values of the other nodes of the same signal add nothing to that.")
    parts = [
        (
            variance.inputs,
            f"from {ROLES['signal']} (with levels of the nodes)" if has_inputs else f"from {WITHOUT_INPUTS}",
        ),
        (variance.neighbours, "from what neighbours share beside it"),
        (variance.carry, "from what carries over"),
        (variance.noise, "from noise at single nodes"),
    ]
    said.append(
        "By the model's own account "
        + _joined([f"{percent(share)} of the variance comes {what}" for share, what in parts if share > 0])
        + "."
    )
    return said


def _joined(parts: list[str]) -> str:
    """Parts as one enumeration, of which those after the first are cut short."""
    first, *others = parts
    short = [part.replace(" of the variance comes", "") for part in others]
    return first if not short else ", ".join([first, *short[:-1]]) + f" and {short[-1]}"


def watch_outs(numbers: Numbers) -> list[str]:
    """What a reader should know before trusting the model; empty where nothing stands out."""
    return [
        *_of_fits(numbers.members, numbers.stand_ins),
        *_of_data(numbers.counts),
        *_of_calibration(numbers.calibration, numbers.predictions.source),
        *_of_variance(numbers.variance),
        *_of_filters(numbers.bands),
    ]


def _of_fits(members: tuple[Member, ...], stand_ins: int) -> list[str]:
    said = [f"The fit of {one.name} did not converge: {one.fit.message}." for one in members if not one.fit.converged]
    at_bound = sum(one.weight for one in members if one.fit.is_noise_at_bound)
    if at_bound > 0.5:
        said.append(
            "The noise is at its lower bound: nothing could be told apart as noise, and intervals may be too narrow. "
            "Look for copies or interpolated values, or pass noise_variance, or bounds of it."
        )
    if stand_ins:
        said.append(
            f"{count(stand_ins, 'draw')} of the hyperparameters could not be had; the best values stand in for them, "
            "so that bands may be too narrow."
        )
    return said


def _of_data(counts: Counts) -> list[str]:
    said = []
    if counts.signals == 0:
        said.append("The model holds no signals of this graph: it predicts what it was taught elsewhere.")
    elif counts.signals < FEW_SIGNALS:
        said.append(
            f"There are only {count(counts.signals, 'training signal')}: filters, scales and noise are uncertain, and "
            "calibration can hardly be judged."
        )
    if counts.repeated:
        said.append(
            f"{count(counts.repeated, 'signal')} {'repeats another' if counts.repeated == 1 else 'repeat others'}, "
            "inputs and all: taken for repeated measurements. Drop what is there twice by mistake, which makes the "
            "noise look smaller than it is."
        )
    if counts.empty:
        said.append(f"{count(counts.empty, 'signal')} without any value {_was(counts.empty)} left out.")
    if counts.missing:
        share = counts.missing / (counts.signals * counts.nodes)
        said.append(
            f"{count(counts.missing, 'value')} ({percent(share)}) of the training signals {_was(counts.missing)} "
            "not observed."
        )
    if counts.unseen:
        said.append(f"{count(counts.unseen, 'node')} {_was(counts.unseen)} never observed.")
    if counts.edges == 0 and counts.nodes > 1:
        said.append("The graph has no edges: nodes learn nothing from each other.")
    elif counts.components > 1:
        said.append(
            f"The graph falls into {counts.components:,} parts that are not connected: filters are common to them, but "
            "nothing passes from one to another."
        )
    return said


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _of_calibration(calibration: Calibration, source: Source) -> list[str]:
    if source == "fitted":
        return ["Calibration was not checked on signals that the model had not seen."]
    values, said = count(calibration.n_values, "value"), []
    above = float(np.sum(calibration.density[calibration.edges[:-1] >= 0.5]) / calibration.density.size)
    if abs(above - 0.5) > BIASED:
        side, where, share = ("low", "above", above) if above > 0.5 else ("high", "below", 1 - above)
        said.append(f"Predictions are too {side}: {percent(share)} of {values} lie {where} their predicted means.")
    for level, tolerance in OFF.items():
        covered = calibration.covered_at(level)
        if abs(covered - level) > tolerance:
            found = f"{percent(covered)} of {values} lie inside their {level:.0%} intervals"
            return [*said, f"Intervals are too {'narrow: only' if covered < level else 'wide:'} {found}."]
    return said


def _of_variance(variance: Variance) -> list[str]:
    if variance.noise > MUCH_NOISE:
        return [f"By the model's own account {percent(variance.noise)} of the variance is noise: little was learnt."]
    if variance.predicted is not None and variance.predicted <= 0:
        return ["Predictions are no better than the nodes' means. Inputs may say nothing, or signals be too few."]
    return []


def _of_filters(bands: Bands) -> list[str]:
    said = []
    for one in bands.filters:
        peak = float(np.max(np.abs(one.mean)))
        if one.std is not None and peak > ABSENT and float(np.max(one.std)) > WIDE_BAND * peak:
            said.append(
                f"The {SYMBOLS[one.which]} is uncertain: somewhere its band is wider than half its largest value."
            )
    return said
