"""Markdown tables from results; every word in them is computed from the numbers that it stands beside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reproduction.experiments import (
    AVERAGED,
    BASELINES,
    BEYOND,
    BY_ALGORITHM_1,
    BY_RELEASED,
    BY_SEARCH,
    POLYNOMIALS,
    RELEASED_PROGRAM,
    Model,
    Truth,
)
from reproduction.jobs import JOINT, NOISE_KNOWN
from reproduction.problems import AS_RELEASED, FIRST_SORTED, SORTED
from reproduction.published import (
    SYNTHETIC_LOG_LIKELIHOODS,
    TABLE_1,
    Column,
    MeanScore,
)
from reproduction.results import Difference, Filters, Finished, Fit, Predictions

CLOSE = 1.0  # standard errors of the paper's number within which two numbers count as the same
APART = 1.0  # nats of likelihood or score from which two solvers count as having ended apart
SAME_MAXIMUM = 0.05  # nats


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


# ------------------------------------------------------------------------------------------------------ filters


def shown_likelihoods(found: Filters) -> str:
    """Log marginal likelihoods of the draw shown, a column a truth and solver."""
    study = found.study
    authors = SYNTHETIC_LOG_LIKELIHOODS if study.key == "sensor" else {}
    header, columns = ["SNR (dB)" if study.degrees is None else "degree"], []
    settings = [(snr, degree) for snr in study.snrs for degree in study.degrees or (0,)]
    for truth in study.truths:
        for variant, words in ((JOINT, "jointly"), (BY_ALGORITHM_1, "Algorithm 1")):
            header.append(f"{truth.key}: {words}")
            columns.append([_shown(found, truth, variant, snr, degree or truth.degree) for snr, degree in settings])
        if truth.key in authors:
            header.append(f"{truth.key}: authors' draws")
            known = authors[truth.key]
            columns.append([f"({known[degree - 1]:.2f})" if degree <= len(known) else "-" for _, degree in settings])
    names = [f"{snr:g}" if study.degrees is None else str(degree) for snr, degree in settings]
    return markdown(header, zip(names, *columns, strict=True))


def _shown(found: Filters, truth: Truth, variant: str, snr: float, degree: int) -> str:
    fits = found.learnt(truth.key, variant, snr=snr, degree=degree)
    if not fits:
        return "-"
    value = fits[0]["log_likelihood"]
    return f"{value:.2f} ({found.without_2pi(value):.2f}){mark(fits[0])}"


def recovery_errors(found: Filters, truth: Truth) -> str:
    """Relative errors of the filters over the seeds, and how often Algorithm 1 did not converge."""
    study = found.study
    header = [
        "SNR (dB)" if study.degrees is None else "degree",
        "jointly",
        "jointly, noise known",
        "Algorithm 1",
        "jointly, scaled",
        "Algorithm 1, scaled",
        "Algorithm 1 not converged",
    ]
    rows = []
    for snr in study.snrs:
        for degree in study.degrees or (truth.degree,):
            joint, known, algorithm_1 = (
                found.learnt(truth.key, variant, snr=snr, degree=degree)
                for variant in (JOINT, NOISE_KNOWN, BY_ALGORITHM_1)
            )
            unconverged, n_fits = found.unconverged(truth.key, BY_ALGORITHM_1, snr=snr, degree=degree)
            rows.append(
                [
                    f"{snr:g}" if study.degrees is None else str(degree),
                    _quartiles(joint, "error"),
                    _quartiles(known, "error"),
                    _quartiles(algorithm_1, "error"),
                    _quartiles(joint, "shape_error"),
                    _quartiles(algorithm_1, "shape_error"),
                    f"{unconverged} of {n_fits}" if n_fits else "-",
                ]
            )
    return markdown(header, rows)


def _quartiles(fits: list[Fit], what: str) -> str:
    if not fits:
        return "-"
    low, middle, high = np.percentile([fit[what] for fit in fits], [25, 50, 75])
    return f"{middle:.1%} [{low:.1%}, {high:.1%}]"


# --------------------------------------------------------------------------------------------------- prediction


def columns_of(found: Predictions) -> list[Column]:
    """The columns of the paper's table that a study stands beside; on the text's graph they are the same."""
    return [(found.study.data.removesuffix("-text").removesuffix("-released"), size) for size in found.study.sizes]


def released_table(found: Predictions) -> str:
    """The paper's table: in each cell our score by either solver, that of the released program, and the paper's."""
    columns = columns_of(found)
    header = ["model", *(f"{data} {size}" for data, size in columns), "beside the paper"]
    rows = []
    for model in (*POLYNOMIALS, *BASELINES, *BEYOND):
        if not found.has(model.key):
            continue
        cells = ["<br>".join(_cell(found, column, model)) for column in columns]
        rows.append([model.label, *cells, beside_the_paper(found, model)])
    return markdown(header, rows)


def _cell(found: Predictions, column: Column, model: Model) -> list[str]:
    _, size = column
    fit = found.fit(size, model.key)
    lines = [f"ours **{as_text(found.score(size, model.key))}**{mark(fit)}"]
    for by in (BY_ALGORITHM_1, BY_RELEASED):
        if found.has(key := f"{model.row}, {by}"):
            lines.append(f"{by} {as_text(found.score(size, key))}{mark(found.fit(size, key))}")
    paper = TABLE_1.get(column, {}).get(model.row)
    if paper is not None:
        lines.append(f"paper {as_text(paper)}")
    return lines


def beside_the_paper(found: Predictions, model: Model) -> str:
    """Where a row stands beside the paper's, column by column, and where the two solvers end apart."""
    parts = []
    for column in columns_of(found):
        paper, (_, size) = TABLE_1.get(column, {}).get(model.row), column
        if paper is not None:
            parts.append(f"{size}: {against(found.score(size, model.key).mean, paper)}")
        if model.group == "polynomial" and found.has(f"{model.row}, {BY_ALGORITHM_1}"):
            parts.append(_solvers(found, size, model))
    return ". ".join(part for part in parts if part) or "not in the paper"


def against(ours: float, paper: MeanScore) -> str:
    """Where a score of ours stands beside the paper's, in its standard errors.

    Examples
    --------
    >>> against(-320.0, MeanScore(-325.0, 2.5))
    '2.0 standard errors above the paper'
    """
    error = paper.standard_error or 0.0
    distance = (ours - paper.mean) / error if error else np.inf
    if abs(distance) <= CLOSE:
        return "within one standard error of the paper"
    return f"{abs(distance):.1f} standard errors {'above' if distance > 0 else 'below'} the paper"


def _solvers(found: Predictions, size: int, model: Model) -> str:
    """What the two solvers differ by, where they end apart."""
    joint, other = (found.fit(size, key) for key in (model.key, f"{model.row}, {BY_ALGORITHM_1}"))
    gain = other["log_likelihood"] - joint["log_likelihood"]
    change = np.mean(other["scores"][AS_RELEASED]) - np.mean(joint["scores"][AS_RELEASED])
    if max(abs(gain), abs(change)) < APART:
        return ""
    ending = "" if other["converged"] else f" ({OUTCOMES[other['outcome']]})"
    return (
        f"{size}: Algorithm 1 ends{ending} {abs(gain):.1f} nats {'higher' if gain > 0 else 'lower'} in likelihood and "
        f"{abs(change):.1f} {'higher' if change > 0 else 'lower'} in score"
    )


OUTCOMES = {
    "CONVERGED": "converged",
    "NOT_STATIONARY": "not stationary",
    "TOO_FEW_MOMENTS": "too few moments",
    "DIVERGED": "diverged",
    "STEP_LIMIT": "at a step limit",
    "NEGATIVE_FILTER": "negative somewhere",
    "NOTHING_TO_LEARN": "nothing to learn",
}
"""How fits end, in words."""


def orders_table(found: Predictions) -> str:
    """Scores of the same fits in the three orders that test sets can be cut from, beside the paper's."""
    columns = columns_of(found)
    header = ["model"]
    for _, size in columns:
        header += [f"{size}: {words}" for words in ("released order", "same days, sorted", "first 60, sorted", "paper")]
    rows = []
    models = [*POLYNOMIALS, *(model for model in RELEASED_PROGRAM if found.has(model.key)), *BASELINES, *BEYOND]
    for model in models:
        row = [f"{model.label}, {model.by}" if model.by else model.label]
        for column in columns:
            _, size = column
            row += [as_text(found.score(size, model.key, order)) for order in (AS_RELEASED, SORTED, FIRST_SORTED)]
            paper = TABLE_1[column].get(model.row)
            row.append("-" if paper is None else as_text(paper))
        rows.append(row)
    return markdown(header, rows)


def likelihood_table(found: Predictions) -> str:
    """Log marginal likelihoods of the training signals, by either solver and by the released program."""
    columns = columns_of(found)
    rows = []
    for model in POLYNOMIALS:
        cells = []
        for column in columns:
            _, size = column
            parts = [f"jointly {found.fit(size, model.key)['log_likelihood']:.2f}"]
            for by in (BY_ALGORITHM_1, BY_RELEASED):
                if found.has(key := f"{model.row}, {by}"):
                    fit = found.fit(size, key)
                    parts.append(f"{by} {fit['log_likelihood']:.2f}{mark(fit)}")
            cells.append("<br>".join(parts))
        rows.append([model.label, *cells])
    return markdown(["model", *(f"{data} {size}" for data, size in columns)], rows)


def starts_table(found: Predictions) -> str:
    """Where learning ends by default, and where the best of many random starts does."""
    columns = columns_of(found)
    header = ["model"]
    for data, size in columns:
        header += [f"{data} {size}: likelihood, score", "best of the starts: likelihood, score", "reached by"]
    rows = []
    for model in (*POLYNOMIALS, *BASELINES):
        row = [model.label]
        for _, size in columns:
            usual, searched = (found.fit(size, key) for key in (model.key, f"{model.row}, {BY_SEARCH}"))
            gain = searched["log_likelihood"] - usual["log_likelihood"]
            reached = sum(value >= searched["log_likelihood"] - SAME_MAXIMUM for value in searched["restarts"])
            row += [
                _both(usual),
                "the same" if gain <= SAME_MAXIMUM else f"**{_both(searched)}**",
                f"{reached} of {len(searched['restarts'])}",
            ]
        rows.append(row)
    return markdown(header, rows)


def _both(fit: Fit) -> str:
    return f"{fit['log_likelihood']:.2f}, {np.mean(fit['scores'][AS_RELEASED]):.2f}"


def averaged_table(found: Predictions) -> str:
    """Baselines with what "auto" has beside its kernels: a weak prior and an average over hyperparameters."""
    sizes = found.study.sizes
    header = ["model"]
    for size in sizes:
        header += [
            f"{size}: likelihood",
            "averaged",
            "paired: averaged less likelihood",
            'paired: "auto" less averaged',
        ]
    rows = []
    for model, averaged in zip(BASELINES, AVERAGED, strict=True):
        row = [model.label]
        for size in sizes:
            means = found.means(size, [model.key, averaged.key])
            row += [f"{mean:.2f}" for mean in means.values()]
            row += [
                str(found.difference(size, averaged.key, model.key)),
                str(found.difference(size, "auto", averaged.key)),
            ]
        rows.append(row)
    return markdown(header, rows)


def splits_table(found: Predictions, size: int) -> str:
    """Scores over the random splits, paired differences to the standard GP, and leave-one-out scores."""
    header = [
        "model",
        "test, mean (SE)",
        "median",
        "worst",
        "less standard GP, mean +- SE",
        "median [95% interval]",
        "leave-one-out",
    ]
    rows = []
    for model in (one for one in found.study.models if not one.by):
        values = found.split_scores(size, model.key)
        difference = found.difference(size, model.key, "standard")
        left_out = np.mean([found.fit(size, model.key, split)["leave_one_out"] for split in found.study.splits])
        error = np.std(values, ddof=1) / np.sqrt(values.size)
        is_standard = model.row == "standard"
        rows.append(
            [
                model.label,
                f"{np.mean(values):.2f} ({error:.2f})",
                f"{np.median(values):.2f}",
                f"{values.min():.1f}",
                "-" if is_standard else str(difference),
                "-" if is_standard else f"{difference.median:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}]",
                f"{left_out:.2f}",
            ]
        )
    return markdown(header, rows)


def graphs_side_by_side(text: Predictions, released: Predictions) -> str:
    """Scores on the graph that the text describes, beside those on the released one."""
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
