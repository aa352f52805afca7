"""Sentences that results decide: each is made of the numbers it speaks of."""

from __future__ import annotations

from collections import Counter

import numpy as np

from reproduction.experiments import (
    AVERAGED,
    BAND_PASS,
    BASELINES,
    BY_ALGORITHM_1,
    BY_SEARCH,
    CONSTRAINED,
    LOW_PASS,
    POLYNOMIALS,
    PRINTED_RATES,
    RANDOM_STARTS,
    by_printed,
    by_random,
)
from reproduction.jobs import JOINT
from reproduction.problems import AS_RELEASED, FIRST_SORTED, SORTED
from reproduction.published import TABLE_1
from reproduction.results import Filters, Finished, Fit, Predictions
from reproduction.tables import OUTCOMES, SAME_MAXIMUM, columns_of, markdown

SENSIBLE_SHARE, SENSIBLE_NATS = -0.01, 10.0


def sentence(words: str) -> str:
    """Words as a sentence.

    Examples
    --------
    >>> sentence("not run")
    'Not run.'
    """
    return f"{words[0].upper()}{words[1:]}."


def unit(found: Predictions) -> str:
    """The unit of scores, and what it shifts them by."""
    shift = found.fit(found.study.sizes[0], POLYNOMIALS[0].key)["shift"]
    if shift == 0:
        return "Scores are of standardised signals."
    return f"Scores are in the paper's unit, minutes; standardised data would score {-shift:.2f} nats more a signal."


def beside_the_column(found: Predictions) -> str:
    """How many of our baselines score above every entry of the paper's column."""
    parts = []
    for column in columns_of(found):
        highest = max(score.mean for score in TABLE_1[column].values())
        above = sum(found.score(column[1], model.key).mean > highest for model in BASELINES)
        parts.append(f"{above} of {len(BASELINES)} baselines with {column[1]} signals")
    return "Above every entry of the paper's column score " + " and ".join(parts) + "."


def gains_over_standard(found: Predictions) -> str:
    """Which models differ from the standard GP over the random splits, by their intervals."""
    parts = []
    for size in found.study.sizes:
        better, worse = [], []
        for model in (one for one in found.study.models if one.row != "standard" and not one.by):
            difference = found.difference(size, model.key, "standard")
            if difference.low > 0:
                better.append(model.label)
            elif difference.high < 0:
                worse.append(model.label)
        parts.append(f"{size} signals: above it {_listed(better)}; below it {_listed(worse)}")
    return "Models whose interval of the median difference to the standard GP excludes zero, " + ". ".join(parts) + "."


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "none"


def orders(found: Predictions) -> str:
    """What the order of test days changes, what their choice does, and which standard errors are the paper's."""
    parts = []
    for size in found.study.sizes:
        released, same, first = (
            found.score(size, "degree-3", order).mean for order in (AS_RELEASED, SORTED, FIRST_SORTED)
        )
        parts.append(
            f"with {size} signals degree 3 scores {released:.2f} in the released order, {same:.2f} with the same days "
            f"sorted and {first:.2f} on the first 60 days, so that {(first - same) / (first - released):.0%} of the "
            "change is due to which days are left out"
        )
    counts = dict.fromkeys((AS_RELEASED, SORTED, FIRST_SORTED), 0)
    smaller, n_cells = 0, 0
    for column in columns_of(found):
        for row, paper in TABLE_1[column].items():
            errors = {order: found.score(column[1], row, order).standard_error or 0.0 for order in counts}
            counts[min(errors, key=lambda order: abs(errors[order] - (paper.standard_error or 0.0)))] += 1
            smaller += errors[FIRST_SORTED] < (paper.standard_error or 0.0)
            n_cells += 1
    return (
        f"{sentence('; '.join(parts))} Of the {n_cells} standard errors, the paper's is closest to ours in "
        f"the released order {counts[AS_RELEASED]} times, with the same days sorted {counts[SORTED]} times, and on the "
        f"first 60 days {counts[FIRST_SORTED]} times (where ours is smaller in {smaller})."
    )


def starts(found: Predictions) -> str:
    """Where the search found more, and what more likelihood did to the test score."""
    higher, lower, same = [], 0, 0
    for size in found.study.sizes:
        for model in (*POLYNOMIALS, *BASELINES):
            usual, searched = (found.fit(size, key) for key in (model.key, f"{model.row}, {BY_SEARCH}"))
            gain = searched["log_likelihood"] - usual["log_likelihood"]
            if gain <= SAME_MAXIMUM:
                same += 1
                continue
            change = np.mean(searched["scores"][AS_RELEASED]) - np.mean(usual["scores"][AS_RELEASED])
            lower += change < 0
            higher.append(f"{model.label}, {size} signals ({gain:+.2f} nats, score {change:+.2f})")
    text = f"On {found.study.data} {same} of {same + len(higher)} fits are at the highest maximum found"
    if not higher:
        return f"{text}."
    return f"{text}; higher ones exist for {'; '.join(higher)}: the test score is lower at {lower} of {len(higher)}."


def averaging(found: Predictions) -> str:
    """How much of what "auto" gains over the standard GP the standard GP gains by the same prior and averaging."""
    parts = []
    for size in found.study.sizes:
        whole = found.difference(size, "auto", "standard")
        own = found.difference(size, AVERAGED[0].key, "standard")
        rest = found.difference(size, "auto", AVERAGED[0].key)
        share = f" ({own.mean / whole.mean:.0%} of it)" if whole.mean > 0 and own.mean > 0 else ""
        parts.append(
            f'with {size} signals "auto" less the standard GP is {whole}; the standard GP with the same prior and '
            f'averaging gains {own}{share}; "auto" less that is {rest}'
        )
    return f"On {found.study.data}, {'; '.join(parts)}."


def traffic_filter(found: Predictions) -> str:
    """The shape of the degree-3 filter of the larger training set at its ends."""
    parts = []
    for key, words in (("degree-3", "jointly"), (f"degree-3, {BY_ALGORITHM_1}", "by Algorithm 1")):
        grid = np.polynomial.Polynomial(found.fit(max(found.study.sizes), key)["coefficients"])(np.linspace(0, 1, 1001))
        parts.append(f"{grid[0] / grid.max():.2f} at 0 and {grid[-1] / grid.max():.2f} at 1 learnt {words}")
    return (
        f"Divided by its maximum, the degree-3 filter of {max(found.study.sizes)} signals is " + ", ".join(parts) + "."
    )


# -------------------------------------------------------------------------------------------------- Algorithm 1


def is_sensible(fit: Fit, joint: Fit) -> bool:
    """Whether the printed algorithm ended where one can use it."""
    return bool(
        fit["converged"]
        and fit["smallest_share"] >= SENSIBLE_SHARE
        and fit["log_likelihood"] >= joint["log_likelihood"] - SENSIBLE_NATS
    )


def printed_table(finished: Finished) -> str:
    """How Algorithm 1 as printed ends, on real data and on synthetic signals."""
    header = ["data", "degree"]
    for rate in PRINTED_RATES:
        header += [f"rate {rate:g}: ended", "smallest value / largest", "nats below ours"]
    rows, sensible, n_runs = [], 0, 0
    for key in ("traffic", "weather"):
        found = finished.predictions(key)
        for size in found.study.sizes:
            for model in CONSTRAINED:
                joint = found.fit(size, model.key)
                row = [f"{key} {size}", model.label.removeprefix("degree ")]
                for rate in PRINTED_RATES:
                    fit = found.fit(size, f"{model.row}, {by_printed(rate)}")
                    row += [
                        OUTCOMES[fit["outcome"]],
                        f"{fit['smallest_share']:.2f}",
                        f"{joint['log_likelihood'] - fit['log_likelihood']:.1f}",
                    ]
                    sensible += is_sensible(fit, joint)
                    n_runs += 1
                rows.append(row)
    return f"On real data {sensible} of {n_runs} runs end in a sensible filter.\n\n{markdown(header, rows)}"


def printed_on_draws(found: Filters) -> str:
    """The same over the seeds of a filter study."""
    parts = []
    for truth in (LOW_PASS, BAND_PASS):
        for rate in PRINTED_RATES:
            fits = found.learnt(truth.key, by_printed(rate), degree=truth.degree)
            joint = found.learnt(truth.key, JOINT, degree=truth.degree)
            sensible = sum(is_sensible(one, other) for one, other in zip(fits, joint, strict=True))
            parts.append(f"{truth.key}, rate {rate:g}: {sensible} of {len(fits)}")
    return f"{found.study.title}: " + "; ".join(parts) + "."


def convergence_table(finished: Finished) -> str:
    """How our Algorithm 1 ended, over seeds, truths and degrees."""
    rows = []
    for key in ("sensor", "noise", "barabasi-albert", "inverse-wishart"):
        if not finished.has(key):
            continue
        found = finished.filters(key)
        for truth in found.study.truths:
            for degree in found.study.degrees or (truth.degree,):
                fits = [
                    fit
                    for snr in found.study.snrs
                    for fit in found.learnt(truth.key, BY_ALGORITHM_1, degree=degree, snr=snr)
                ]
                if fits:
                    ends = Counter(fit["outcome"] for fit in fits)
                    counts = [str(ends[outcome]) for outcome in ("CONVERGED", "DIVERGED", "STEP_LIMIT")]
                    rows.append([found.study.title, truth.key, str(degree), str(len(fits)), *counts])
    return markdown(["study", "truth", "degree", "fits", "converged", "diverged", "at a step limit"], rows)


def unconverged_on_data(finished: Finished) -> str:
    """The fits of real data by Algorithm 1 that did not converge, with how they ended."""
    listed = []
    for key in ("traffic", "weather"):
        found = finished.predictions(key)
        for size in found.study.sizes:
            for model in POLYNOMIALS:
                fit = found.fit(size, f"{model.row}, {BY_ALGORITHM_1}")
                if not fit["converged"]:
                    listed.append(f"{key} {size}, {model.label}: {fit['message']}")
    if not listed:
        return "On the real data every fit by Algorithm 1 converged."
    return "On the real data these fits by Algorithm 1 did not converge. " + " ".join(f"{one}." for one in listed)


def random_multipliers(finished: Finished) -> str:
    """Log likelihoods from random multipliers beside those from the fixed ones."""
    header = ["data", "degree", "fixed", *(f"random {seed}" for seed in RANDOM_STARTS)]
    rows = []
    for key in ("traffic", "weather"):
        found = finished.predictions(key)
        for size in found.study.sizes:
            for model in CONSTRAINED:
                ways = [BY_ALGORITHM_1, *(by_random(seed) for seed in RANDOM_STARTS)]
                fits = [found.fit(size, f"{model.row}, {way}") for way in ways]
                values = [f"{fit['log_likelihood']:.2f}" + ("" if fit["converged"] else " *") for fit in fits]
                rows.append([f"{key} {size}", model.label.removeprefix("degree "), *values])
    return markdown(header, rows)


def thinned(found: Filters) -> str:
    """Where the grid of Algorithm 1's initialisation was thinned."""
    degrees = {
        fit["degree"]: fit["first_stage"].removeprefix("grid search, ")
        for one in found.results
        for fit in one["learnt"]
        if fit["variant"] == BY_ALGORITHM_1 and "," in fit["first_stage"]
    }
    if not degrees:
        return ""
    listed = "; ".join(f"degree {degree}: {text}" for degree, text in sorted(degrees.items()))
    return f"The grid that starts Algorithm 1 is thinned here to 10,000 filters ({listed})."
