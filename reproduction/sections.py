"""The sections of the page: which tables stand in them, and the words that belong to those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reproduction import facts, findings
from reproduction.answers import SOLVERS
from reproduction.experiments import (
    AVERAGED,
    N_STARTS,
    PRINTED,
    RANDOM,
    SEARCHED,
    FilterStudy,
    PredictionStudy,
    Study,
)
from reproduction.figures import Picture
from reproduction.ours import ours, recovered_at_own_degree
from reproduction.results import Finished
from reproduction.statements import Statement, fourteen, further
from reproduction.tables import (
    averaged_table,
    graphs_side_by_side,
    graphs_table,
    likelihood_table,
    markdown,
    orders_table,
    recovery_errors,
    released_table,
    shown_likelihoods,
    splits_table,
    starts_table,
)

NOT_HAD = "not run here: the file could not be had"
REAL = ("traffic", "weather")
Section = list[str]
"""Paragraphs, tables and images."""

STATEMENTS = """\
The criterion of each statement was written before its number was computed. Where the paper's words leave it open
("well", "little") it is ours. Filters are compared divided by their maxima, as the figures draw them; differences of
scores are paired over the test sets, with their standard errors."""

FILTERS = """\
Log marginal likelihoods are of the draw shown (the first seed), with, and in brackets without, the 2 pi term. Errors
are relative L2 errors on the graph's eigenvalues, medians and quartiles over the seeds: of the filter with its
amplitude, and, scaled, of filters divided by their maxima. Algorithm 1 learns the high-pass filter, which the paper
does not show, at its own degree only, and no degree above 4; it starts its noise at a tenth of the variance, which is
near the truth at 10 dB."""

INDEPENDENT = """\
Signals are independent here (K = I): noise and filter can be told apart only by the shape that a low degree can take.
At the truth's own degree, learnt jointly, the median errors are: {errors}."""

SPLITS = """\
The protocol of the released split with other seeds. Intervals are of the median, from order statistics, so that one
split does not move them; splits share days, so they show the luck of a split, not of another year. The leave-one-out
score has its hyperparameters held fixed: it does not see overfitting."""

LOCAL = f"""\
`Sqp` starts each degree from the solution of the one before it. What it finds is stationary, but a local maximum near
the simpler model; Algorithm 1 is local too, as the paper says. Here every model of the table is learnt once more from
{N_STARTS} seeded random starts as well, and the highest likelihood is kept (`Sqp(n_restarts={N_STARTS})`); a start has
reached it if it ends within 0.05 nats. Scores are on the released split."""

LIKE = """\
"auto" has a weak prior on its hyperparameters and averages its predictions over 16 draws of them. The baselines of the
paper have neither. Here they have both, so that like is compared with like; the differences are paired over the splits,
with their standard errors."""

SENSIBLE = f"""\
`Lagrangian(literal=True)` runs the printed lines 1 to 5: from the unconstrained solution, with one fixed learning rate
10^r for the raw coefficients and one for the multipliers; both loops stop where the Lagrangian changes by less than
0.001, the released program's tolerance, since the paper names none. For large filters the Lagrangian is about
N M log|g| - m^T g, without a lower bound: only local minima exist, and none for large multipliers. A run is
*sensible* if it ends by its own rule, is nowhere below -{-findings.SENSIBLE_SHARE:.0%} of its largest value, and is
within {findings.SENSIBLE_NATS:g} nats of the joint solution of the same degree."""

TEXT_GRAPH = """\
The text joins stations closer than 13 km, with the inverse of the distance as weight; two pairs of stations stand at
one place, and get the weight of the smallest distance between two that do not. The released file is another graph:
its weights are exp(-d), with d the distance in degrees, cut at 0.044 degrees."""


def statement_section(finished: Finished) -> Section:
    """The paper's statements with their count, and ours."""
    first, more, own = fourteen(finished), further(finished), ours(finished)
    parts = ["## What the paper states, and what we find", count(first, "statements about filters and scores")]
    parts += [STATEMENTS, _paper_table(first)]
    parts += ["### Further statements of the paper", count(more, "further statements"), _paper_table(more)]
    if own:
        rows = [[one.where, one.wording, one.criterion, _yes(*one.holds.values()), one.numbers] for one in own]
        parts += [
            "### Statements of ours",
            "The paper makes none of these, and they are not counted with its own.",
            markdown(["where", "statement", "holds if", "holds", "numbers"], rows),
        ]
    return parts


def count(statements: Sequence[Statement], what: str) -> str:
    """How many of the paper's statements hold."""
    tested = [one for one in statements if one.is_tested]
    if not tested:
        return f"None of the paper's {len(statements)} {what} was tested in this run."
    held = {words: sum(one.holds[words] for one in tested) for words in SOLVERS}
    by = " and ".join(f"{number} with filters learnt {words}" for words, number in held.items())
    rest = len(statements) - len(tested)
    left = f"; {rest} of the {len(statements)} were not tested here" if rest else ""
    return f"Of the paper's {what}, {len(tested)} were tested: {by} hold{left}."


def _paper_table(statements: Sequence[Statement]) -> str:
    rows = [
        [
            str(number),
            one.where,
            one.wording,
            one.criterion,
            *(_yes(one.holds[words]) if one.is_tested else "-" for words in SOLVERS),
            one.numbers,
        ]
        for number, one in enumerate(statements, 1)
    ]
    return markdown(["", "in the paper", "it states", "holds if", *SOLVERS, "numbers"], rows)


def _yes(holds: bool) -> str:
    return "yes" if holds else "**no**"


def source_section(finished: Finished) -> Section:
    """Where data and figures come from, what the paper leaves open, and what it gets wrong."""
    absent = [study.title for key, study in finished.studies.items() if finished.statuses.get(key) == NOT_HAD]
    smallest, lift = facts.smallest_of_authors()
    parts = ["## Where it all comes from", facts.DATA]
    if absent:
        parts.append(f"Not run here, because their files could not be had on this machine: {'; '.join(absent)}.")
    parts += [
        markdown(["in the tables", "what it is", "can be made again here"], facts.SOURCES),
        "What the paper leaves open:",
        markdown(["what", "in the paper", "here"], facts.OPEN),
        facts.TESTED,
        "The supplement's equation (7), the inverse of the covariance, is wrong as printed: the inverse of a "
        "Kronecker sum is not the Kronecker sum of the inverses. On a random covariance of 4 nodes by 5 signals "
        f"its relative error is {facts.printed_inverse_error():.0f}. The order O(N^3 + M^3) that it is to show is "
        f"right: ours is equation (5) of [the method](method.md), which the tests compare with dense algebra.",
        "The authors' gma/plotting.py (at 976198e) lists a filter of degree 3 whose least value on [0, 1] is "
        f"{smallest:.2f}, and adds {lift:.2f} to the degree-3 filter of the plot that it calls Traffic.",
    ]
    if finished.has("graphs"):
        parts += ["The graphs (random ones: of the first seed):", graphs_table(finished)]
    return parts


def study_section(finished: Finished, study: Study) -> Section:
    """Tables of one experiment, with the words that belong to them."""
    if isinstance(study, FilterStudy):
        return _filter_section(finished, study)
    if not isinstance(study, PredictionStudy):
        return []
    found = finished.predictions(study.key)
    if not study.is_released:
        parts = [findings.gains_over_standard(found)]
        return parts + [f"**{study.data}, {size} signals**\n\n{splits_table(found, size)}" for size in study.sizes]
    if study.key == "traffic-text":
        parts = [TEXT_GRAPH]
        if finished.has("traffic"):
            parts.append(graphs_side_by_side(found, finished.predictions("traffic")))
        return parts
    parts = [findings.unit(found)]
    if study.key in REAL:
        parts.append(findings.beside_the_column(found))
    parts += ["Mean test log-likelihood a signal (standard error over the test sets):", released_table(found)]
    if study.key == "traffic":
        parts.append(findings.traffic_filter(found))
    if study.key == "weather":
        parts += [
            "The released program cuts its test sets from permuted days; the paper does not say which 60 of the "
            "64 days it "
            "takes, nor in which order. " + findings.orders(found),
            orders_table(found),
        ]
    parts += [
        "Log marginal likelihoods of the training signals (standardised, with the 2 pi term):",
        likelihood_table(found),
    ]
    return parts


def _filter_section(finished: Finished, study: FilterStudy) -> Section:
    found = finished.filters(study.key)
    parts = []
    if study.input_covariance == "independent":
        parts.append(INDEPENDENT.format(errors=recovered_at_own_degree(finished, study.key)))
    if thinned := findings.thinned(found):
        parts.append(thinned)
    parts.append(shown_likelihoods(found))
    for truth in study.truths:
        theta = ", ".join(f"{value:.4g}" for value in truth.coefficients)
        parts.append(f"**{truth.key}**, theta = ({theta}): relative errors\n\n{recovery_errors(found, truth)}")
    return parts


def local_maxima(finished: Finished) -> Section:
    """The search from many starts."""
    keys = _with(finished, REAL, SEARCHED[0].key)
    if not keys:
        return []
    parts = ["## Local maxima", LOCAL]
    for key in keys:
        found = finished.predictions(key)
        parts += [findings.starts(found), starts_table(found)]
    return parts


def like_with_like(finished: Finished) -> Section:
    """Baselines with the prior and the averaging of "auto"."""
    keys = _with(finished, [f"{key}-splits" for key in REAL], AVERAGED[0].key)
    if not keys:
        return []
    parts = ["## Like with like", LIKE]
    for key in keys:
        found = finished.predictions(key)
        parts += [findings.averaging(found), averaged_table(found)]
    return parts


def algorithm_section(finished: Finished) -> Section:
    """Algorithm 1: line by line, how often it converges, as printed, and from random multipliers."""
    parts = ["## Algorithm 1, line by line", markdown(["as printed", "as done here", "why"], facts.PRINTED)]
    if any(isinstance(finished.studies[key], FilterStudy) for key in finished.results):
        parts += [
            "### How it ends",
            "*Diverged*: the dual problem. *At a step limit*: the unconstrained ascent before it, so that what "
            "Algorithm 1 freezes is not at its optimum, or the dual problem.",
            findings.convergence_table(finished),
        ]
    real = finished.has(*REAL)
    if real:
        parts.append(findings.unconverged_on_data(finished))
    as_printed = []
    if real and _with(finished, REAL, PRINTED[0].key):
        as_printed.append(findings.printed_table(finished))
    if finished.has("sensor") and finished.filters("sensor").study.variants:
        as_printed.append(findings.printed_on_draws(finished.filters("sensor")))
    if as_printed:
        parts += ["### As printed", SENSIBLE, *as_printed]
    if real and _with(finished, REAL, RANDOM[0].key):
        parts += [
            "### Random first multipliers",
            "Log marginal likelihoods from multipliers that start at 0.01 each, and from random ones, log-normal "
            "about 0.01:",
            findings.random_multipliers(finished),
        ]
    return parts


def _with(finished: Finished, keys: Sequence[str], model: str) -> list[str]:
    """Which of some prediction studies are finished and have a model."""
    return [key for key in keys if finished.has(key) and finished.predictions(key).has(model)]


def images_of(key: str, pictures: Sequence[Picture], links: Mapping[str, str]) -> Section:
    """The images of one experiment's section, with their captions."""
    by_name = {picture.name: picture for picture in pictures}
    names, elsewhere = [f"{key}/figure", f"{key}/errors"], ""
    if "figure-1" in by_name:  # holds what the figures of two sections hold
        first = {"sensor": ["figure-1", "figure-1-jointly", "sensor/errors"], "noise": ["noise/errors"]}
        names, elsewhere = first.get(key, names), {"noise": "sensor graph"}.get(key, elsewhere)
    if "figure-5" in by_name:
        fifth: dict[str, list[str]] = {"traffic": ["figure-2", "figure-5"], "weather": []}
        names, elsewhere = fifth.get(key, names), {"weather": "traffic data"}.get(key, elsewhere)
    images = [
        f"![{name.replace('/', ' ')}]({links[name]})\n\n{by_name[name].caption}" for name in names if name in by_name
    ]
    return [f"The paper's figures of this are with those of the {elsewhere}, above.", *images] if elsewhere else images
