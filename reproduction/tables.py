"""Markdown tables from results; every word in them is computed from the numbers that it stands beside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from reproduction.claims import SOLVERS, Claim
from reproduction.experiments import (
    AVERAGED,
    BASELINES,
    BEYOND,
    BY_ALGORITHM_1,
    BY_FILTER_SEARCH,
    BY_RELEASED,
    BY_SEARCH,
    CONSTRAINED,
    GMA_MULTIPLIER,
    MAIN_MULTIPLIER,
    POLYNOMIALS,
    PRINTED_STARTS,
    RELEASED_PROGRAM,
    Model,
    by_printed,
)
from reproduction.jobs import JOINT, NOISE_KNOWN
from reproduction.problems import AS_RELEASED, FIRST_SORTED, SORTED
from reproduction.published import SYNTHETIC_LOG_LIKELIHOODS, TABLE_1, Column, MeanScore
from reproduction.released_baselines import MENDED_WALK
from reproduction.results import FAILED_NATS, Difference, Filters, Finished, Fit, Predictions, mean_score

APART = 2.0  # standard errors of both numbers together, from which a score is another than the paper's
SAME_MAXIMUM = 0.05  # nats
SENSIBLE_SHARE = -0.01  # of its largest value, that a filter may fall to
PAPER_DATA = ("traffic", "weather")
DATA = (*PAPER_DATA, "uber")


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table.

    Examples
    --------
    >>> print(markdown(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "|" + "|".join(line) + "|" if line[0] == "---" else "| " + " | ".join(line) + " |" for line in lines
    )


def as_text(score: MeanScore) -> str:
    """A score as text, with its standard error in brackets."""
    return f"{score.mean:.2f}" if score.standard_error is None else f"{score.mean:.2f} ({score.standard_error:.2f})"


def mark(fit: Fit) -> str:
    """A star for a fit that did not converge."""
    return "" if fit["converged"] else " *"


# ------------------------------------------------------------------------------------------------------- claims


def claims_table(claims: Sequence[Claim]) -> str:
    """Statements of the paper, its figures, ours, the verdicts, and links to explanations."""
    rows = []
    for number, one in enumerate(claims, 1):
        answers = [one.answer(words) for words in SOLVERS]
        joint, other = answers
        if joint is None or other is None:
            numbers, verdicts = "not run", ["-", "-"]
        else:
            verdicts = [str(joint), "same" if other is joint else str(other)]
            numbers = joint.numbers
            if other.verdict is not joint.verdict:
                numbers += f". Algorithm 1: {other.numbers}"
        rows.append(
            [
                f"{number}{one.criterion}",
                f"{one.wording} ({one.where})",
                one.paper,
                numbers,
                *verdicts,
                ", ".join(reason.link for reason in one.why),
            ]
        )
    return markdown(["", "claim", "paper", "ours", "jointly", "Algorithm 1", "why"], rows)


# ------------------------------------------------------------------------------------------------------ filters


def filters_table(found: Filters) -> str:
    """A study of filters: one row per truth and degree, or ratio."""
    study = found.study
    by_ratio = study.degrees is None
    header = [
        "truth",
        "SNR (dB)" if by_ratio else "degree",
        "likelihood of the draw shown: jointly",
        "Algorithm 1",
        *(["authors' draws"] if study.key == "sensor" else []),
        "scaled error: jointly",
        "noise known",
        "Algorithm 1",
        "Algorithm 1: converged, diverged, at a step limit",
        "jointly below the best of the starts",
    ]
    rows = []
    for truth in study.truths:
        for snr in study.snrs:
            for degree in study.degrees or (truth.degree,):
                joint, known, other, searched = (
                    found.learnt(truth.key, variant, snr=snr, degree=degree)
                    for variant in (JOINT, NOISE_KNOWN, BY_ALGORITHM_1, BY_FILTER_SEARCH)
                )
                if not joint:
                    continue
                ends = Counter(fit["outcome"] for fit in other)
                counts = [ends[outcome] for outcome in ("CONVERGED", "DIVERGED", "STEP_LIMIT")]
                row = [truth.key, f"{snr:g}" if by_ratio else str(degree), _shown(found, joint), _shown(found, other)]
                if study.key == "sensor":
                    authors = SYNTHETIC_LOG_LIKELIHOODS.get(truth.key, ())
                    row.append(f"{authors[degree - 1]:.2f}" if degree <= len(authors) else "-")
                row += [_quartiles(fits) for fits in (joint, known, other)]
                row.append(", ".join(map(str, counts)) if other else "-")
                row.append(_below(joint, searched))
                rows.append(row)
    return markdown(header, rows)


def _shown(found: Filters, fits: list[Fit]) -> str:
    return f"{found.without_2pi(fits[0]['log_likelihood']):.2f}{mark(fits[0])}" if fits else "-"


def _quartiles(fits: list[Fit]) -> str:
    if not fits:
        return "-"
    low, middle, high = np.percentile([fit["shape_error"] for fit in fits], [25, 50, 75])
    return f"{middle:.1%} [{low:.1%}, {high:.1%}]"


def shortfalls(joint: list[Fit], searched: list[Fit]) -> list[float]:
    """Nats that each fit is below the best of many starts."""
    return [float(best["log_likelihood"] - fit["log_likelihood"]) for fit, best in zip(joint, searched, strict=True)]


def _below(joint: list[Fit], searched: list[Fit]) -> str:
    if not searched:
        return "-"
    found = shortfalls(joint, searched)
    return f"{sum(one > SAME_MAXIMUM for one in found)} of {len(found)}, at most {max(found):.2f} nats"


# --------------------------------------------------------------------------------------------------- prediction


def columns_of(found: Predictions) -> list[Column]:
    """The columns of the paper's table that a study stands beside; on the text's graph they are the same."""
    return [(found.study.data.removesuffix("-text").removesuffix("-released"), size) for size in found.study.sizes]


def distance(ours: MeanScore, paper: MeanScore) -> float:
    """Of two scores, in standard errors of both together.

    Examples
    --------
    >>> round(distance(MeanScore(-320.0, 3.0), MeanScore(-325.0, 4.0)), 2)
    1.0
    """
    return (ours.mean - paper.mean) / float(np.hypot(ours.standard_error or 0.0, paper.standard_error or 0.0))


def higher_maximum(found: Predictions, size: int, model: Model) -> float | None:
    """The score at a higher maximum of the likelihood, where many starts found one."""
    searched = f"{model.row}, {BY_SEARCH}"
    if not found.has(searched):
        return None
    usual, other = (found.fit(size, key) for key in (model.key, searched))
    is_higher = other["log_likelihood"] > usual["log_likelihood"] + SAME_MAXIMUM
    return float(np.mean(other["scores"][AS_RELEASED])) if is_higher else None


def table_1(finished: Finished) -> str:
    """The paper's table beside ours, in one cell each, and the journal version's data."""
    header = ["model, paper / ours"]
    header += [f"{'fMRI' if data == 'fmri' else data} {size}" for data, size in TABLE_1]
    header += [f"Uber {size}, ours" for size in finished.predictions("uber").study.sizes]
    rows = []
    for model in (*POLYNOMIALS, *BASELINES):
        row = [model.label]
        for data, size in TABLE_1:
            paper = TABLE_1[data, size].get(model.row)
            if data not in PAPER_DATA or paper is None:
                row.append("-" if paper is None else f"{paper.mean:.2f} / -")
                continue
            found = finished.predictions(data)
            ours = found.score(size, model.key)
            text = f"{ours.mean:.2f}" + ("" if higher_maximum(found, size, model) is None else "¹")
            row.append(f"{paper.mean:.2f} / " + (f"**{text}**" if abs(distance(ours, paper)) > APART else text))
        uber = finished.predictions("uber")
        for size in uber.study.sizes:
            note = "" if higher_maximum(uber, size, model) is None else "¹"
            row.append(as_text(uber.score(size, model.key)) + note)
        rows.append(row)
    return markdown(header, rows)


def scores_table(found: Predictions) -> str:
    """Our score by either solver, that of the released program, and the paper's, with their standard errors."""
    columns = columns_of(found)
    header = ["model"]
    for data, size in columns:
        header += [f"{data} {size}: jointly", "Algorithm 1"]
        header += ["released program"] if found.has(RELEASED_PROGRAM[0].key) else []
        header += ["paper", "apart"] if (data, size) in TABLE_1 else []
    rows = []
    for model in (*POLYNOMIALS, *BASELINES):
        row = [model.label]
        for column in columns:
            ours = found.score(column[1], model.key)
            row.append(f"{as_text(ours)}{mark(found.fit(column[1], model.key))}")
            ways = [BY_ALGORITHM_1, *([BY_RELEASED] if found.has(RELEASED_PROGRAM[0].key) else [])]
            for by in ways:
                key = f"{model.row}, {by}"
                has = found.has(key)
                row.append(f"{as_text(found.score(column[1], key))}{mark(found.fit(column[1], key))}" if has else "-")
            if column in TABLE_1:
                paper = TABLE_1[column].get(model.row)
                row += ["-", "-"] if paper is None else [as_text(paper), f"{distance(ours, paper):+.1f}"]
        rows.append(row)
    return markdown(header, rows)


def baselines_table(finished: Finished, data: str, sizes: Sequence[int], *, with_minus: bool = False) -> str:
    """Baselines as the released program computes them, with its softplus and without; its walk with a minus too."""
    labels = {model.row: model.label for model in BASELINES}
    if with_minus:
        labels[MENDED_WALK] = "1-step random walk, with a minus"
    header = ["model"]
    for size in sizes:
        header += [f"{data} {size}: paper", "baselines.py", "softplus once", "ours"]
    rows = []
    for row, label in labels.items():
        cells = [label]
        for size in sizes:
            program = finished.program(data, size, row)
            paper = TABLE_1[data, size].get(row)
            cells.append("-" if paper is None else as_text(paper))
            cells += [as_text(mean_score(program["as_released"])), f"{np.mean(program['once']):.2f}"]
            cells.append("-" if paper is None else f"{finished.predictions(data).score(size, row).mean:.2f}")
        rows.append(cells)
    return markdown(header, rows)


def is_sensible(fit: Fit, joint: Fit) -> bool:
    """Whether the printed algorithm ended where one can use it."""
    return bool(
        fit["converged"]
        and fit["smallest_share"] >= SENSIBLE_SHARE
        and fit["log_likelihood"] >= joint["log_likelihood"] - FAILED_NATS
    )


OUTCOMES = {
    "CONVERGED": "far below",
    "NOT_STATIONARY": "not stationary",
    "DIVERGED": "diverged",
    "STEP_LIMIT": "step limit",
    "NEGATIVE_FILTER": "negative",
}
"""How fits that are not sensible end, in words."""


def multiplier_name(multiplier: float) -> str:
    """A first multiplier, by the formula of the authors where it is theirs."""
    return {MAIN_MULTIPLIER: "softplus(-1)", GMA_MULTIPLIER: "exp(0.1)"}.get(multiplier, f"{multiplier:g}")


def start_name(multiplier: float, rate: float) -> str:
    """First multipliers and their rate, in words."""
    return f"{multiplier_name(multiplier)}, rate {rate:g}"


def printed_table(finished: Finished) -> str:
    """Results of Algorithm 1 as printed, by start: the likelihood of a sensible fit, or the reason it is none."""
    rows = []
    for key in PAPER_DATA:
        found = finished.predictions(key)
        for size in found.study.sizes:
            for model in CONSTRAINED:
                joint = found.fit(size, model.key)
                row = [f"{key} {size}, {model.label}"]
                for start in PRINTED_STARTS:
                    fit = found.fit(size, f"{model.row}, {by_printed(*start)}")
                    good = is_sensible(fit, joint)
                    row.append(f"**{fit['log_likelihood']:.2f}**" if good else OUTCOMES[fit["outcome"]])
                rows.append(row)
    return markdown(["", *(start_name(*start) for start in PRINTED_STARTS)], rows)


def orders_table(found: Predictions) -> str:
    """Scores of the same fits in the three orders that test sets can be cut from, beside the paper's."""
    columns = columns_of(found)
    header = ["model"]
    for _, size in columns:
        header += [f"{size}: {words}" for words in ("released order", "same days, sorted", "first 60, sorted", "paper")]
    rows = []
    for model in (*POLYNOMIALS, *BASELINES):
        row = [model.label]
        for column in columns:
            orders = (AS_RELEASED, SORTED, FIRST_SORTED)
            row += [as_text(found.score(column[1], model.key, order)) for order in orders]
            row.append(as_text(TABLE_1[column][model.row]))
        rows.append(row)
    return markdown(header, rows)


def likelihood_table(finished: Finished, keys: Sequence[str]) -> str:
    """Log marginal likelihoods of the training signals, by either solver and by the released program."""
    rows = []
    for key in keys:
        found = finished.predictions(key)
        for size in found.study.sizes:
            for model in POLYNOMIALS:
                row = [f"{key} {size}, {model.label}", f"{found.fit(size, model.key)['log_likelihood']:.2f}"]
                for by in (BY_ALGORITHM_1, BY_RELEASED):
                    other = f"{model.row}, {by}"
                    fit = found.fit(size, other) if found.has(other) else None
                    row.append("-" if fit is None else f"{fit['log_likelihood']:.2f}{mark(fit)}")
                rows.append(row)
    return markdown(["", "jointly", "Algorithm 1", "released program"], rows)


def maxima_table(finished: Finished, keys: Sequence[str]) -> str:
    """The fits for which many starts found a higher maximum."""
    rows = []
    for key in keys:
        found = finished.predictions(key)
        for size in found.study.sizes:
            for model in (*POLYNOMIALS, *BASELINES):
                if higher_maximum(found, size, model) is None:
                    continue
                usual, searched = (found.fit(size, one) for one in (model.key, f"{model.row}, {BY_SEARCH}"))
                reached = sum(value >= searched["log_likelihood"] - SAME_MAXIMUM for value in searched["restarts"])
                starts = f"{reached} of {len(searched['restarts'])}"
                rows.append([f"{key} {size}, {model.label}", _both(usual), _both(searched), starts])
    return markdown(["", "as learnt: likelihood, score", "best of the starts: likelihood, score", "reached by"], rows)


def _both(fit: Fit) -> str:
    return f"{fit['log_likelihood']:.2f}, {np.mean(fit['scores'][AS_RELEASED]):.2f}"


def splits_table(found: Predictions) -> str:
    """Scores over the random splits, and paired differences to the standard GP."""
    header = ["model"]
    for size in found.study.sizes:
        header += [f"{size}: mean (SE)", "less standard GP", "median [interval]"]
    rows = []
    for model in (*POLYNOMIALS, *BASELINES):
        row = [model.label]
        for size in found.study.sizes:
            values = found.split_scores(size, model.key)
            difference = found.difference(size, model.key, "standard")
            row.append(f"{np.mean(values):.2f} ({np.std(values, ddof=1) / np.sqrt(values.size):.2f})")
            if model.row == "standard":
                row += ["-", "-"]
            else:
                row += [
                    str(difference),
                    f"{difference.median:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]",
                ]
        rows.append(row)
    return markdown(header, rows)


def averaged_table(finished: Finished, keys: Sequence[str]) -> str:
    """Differences over the random splits of "auto" and other models from each baseline, under equal priors."""
    header = ["model"]
    columns = [(finished.predictions(key), size) for key in keys for size in finished.predictions(key).study.sizes]
    for found, size in columns:
        header += [f"{found.study.data} {size}: as in the paper", "averaged", '"auto" less averaged']
    rows = []
    for model, averaged in zip(BASELINES, AVERAGED, strict=True):
        row = [model.label]
        for found, size in columns:
            means = found.means(size, [model.key, averaged.key])
            row += [f"{mean:.2f}" for mean in means.values()]
            row.append(str(found.difference(size, "auto", averaged.key)))
        rows.append(row)
    for model in BEYOND:
        row = [model.label]
        for found, size in columns:
            is_averaged = model.n_draws > 0
            mean = f"{found.means(size, [model.key])[model.key]:.2f}"
            row += ["-" if is_averaged else mean, mean if is_averaged else "-"]
            row.append("-" if model.row == "auto" else str(found.difference(size, "auto", model.key)))
        rows.append(row)
    return markdown(header, rows)


def graphs_side_by_side(text: Predictions, released: Predictions) -> str:
    """Scores on the graph that the text describes, and on the released one."""
    header = ["model"]
    for size in text.study.sizes:
        header += [f"{size}: text's graph", "released graph", "paired difference"]
    rows = []
    for model in (*POLYNOMIALS, *BASELINES):
        row = [model.label]
        for size in text.study.sizes:
            scores = [found.set_scores(size, model.key) for found in (text, released)]
            row += [as_text(found.score(size, model.key)) for found in (text, released)]
            row.append(str(Difference.of(*scores)))
        rows.append(row)
    return markdown(header, rows)


def graphs_table(finished: Finished) -> str:
    """Sizes of the paper's graphs, and what their eigenvalues fill."""
    header = ["graph", "nodes", "edges", "components of the outputs", "largest eigenvalue, normalised (of 2)"]
    rows = [
        [
            name,
            str(found["n_nodes"]),
            str(found["n_edges"]),
            str(found["n_components"]),
            f"{found['largest_normalized']:.2f}",
        ]
        for name, found in finished.graphs().items()
    ]
    return markdown(header, rows)
