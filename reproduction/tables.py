"""Markdown tables from results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from reproduction.experiments import (
    ALGORITHM_1,
    BASELINES,
    BEYOND,
    POLYNOMIALS,
    FilterStudy,
    Model,
    PredictionStudy,
)
from reproduction.published import (
    AUTHORS_CODE,
    AUTHORS_CODE_IN_TIME_ORDER,
    OPTIMA,
    SYNTHETIC_LOG_LIKELIHOODS,
    TABLE_1,
    Column,
    MeanScore,
)
from reproduction.reasons import why

Results = dict[str, Any]


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


def mean_score(scores: Sequence[float]) -> MeanScore:
    """Mean over the test sets and its standard error (ddof 0, as the paper's)."""
    return MeanScore(float(np.mean(scores)), float(np.std(scores) / np.sqrt(len(scores))))


def as_text(score: MeanScore) -> str:
    """A score as text, with its standard error in brackets."""
    return f"{score.mean:.2f}" if score.standard_error is None else f"{score.mean:.2f} ({score.standard_error:.2f})"


# ------------------------------------------------------------------------------------------------------ filters


def without_2pi(log_likelihood: float, study: FilterStudy) -> float:
    """A log marginal likelihood without its 2 pi term, as the paper's figures give it."""
    return log_likelihood + 0.5 * study.n_nodes * study.n_signals * float(np.log(2 * np.pi))


def learnt(results: Results, truth: str, variant: str, *, snr: float, degree: int) -> list[dict[str, Any]]:
    """The fits of one kind, one for each seed that has it, the shown draw first."""
    return [
        fit
        for job in results["jobs"]
        if job["truth"] == truth and job["snr"] == snr
        for fit in job["learnt"]
        if fit["variant"] == variant and fit["degree"] == degree
    ]


def filter_tables(study: FilterStudy, results: Results) -> str:
    """One table a truth: log marginal likelihoods of the shown draw, and recovery errors over all seeds."""
    n_seeds = len(study.seeds)
    header = [
        "SNR (dB)" if study.degrees is None else "degree",
        "log marginal likelihood, with (without) 2 pi: sqp",
        "Algorithm 1",
        "authors' draws, without 2 pi",
        f"relative L2 error over {n_seeds} seeds, median [quartiles]: sqp",
        "sqp, noise known",
        "Algorithm 1",
        "scaled by maximum: sqp",
    ]
    parts = []
    for truth in study.truths:
        rows = [_filter_row(study, results, truth.key, snr, degree) for snr, degree in _settings(study, truth.degree)]
        parts.append(f"**{truth.key}** {_theta(truth.coefficients)}\n\n{markdown(header, rows)}")
    return "\n\n".join(parts)


def _settings(study: FilterStudy, own_degree: int) -> list[tuple[float, int]]:
    return [(snr, degree) for snr in study.snrs for degree in study.degrees or (own_degree,)]


def _filter_row(study: FilterStudy, results: Results, truth: str, snr: float, degree: int) -> list[str]:
    by_sqp, known, algorithm_1 = (
        learnt(results, truth, variant, snr=snr, degree=degree) for variant in ("sqp", "noise known", "Algorithm 1")
    )
    authors = SYNTHETIC_LOG_LIKELIHOODS.get(truth, ()) if study.key == "sensor" else ()
    return [
        f"{snr:g}" if study.degrees is None else str(degree),
        _both_likelihoods(by_sqp, study),
        _both_likelihoods(algorithm_1, study),
        f"{authors[degree - 1]:.2f}" if degree <= len(authors) else "-",
        _quartiles([fit["error"] for fit in by_sqp]),
        _quartiles([fit["error"] for fit in known]),
        _quartiles([fit["error"] for fit in algorithm_1]) if len(algorithm_1) == len(study.seeds) else "-",
        _quartiles([fit["shape_error"] for fit in by_sqp]),
    ]


def _both_likelihoods(fits: list[dict[str, Any]], study: FilterStudy) -> str:
    if not fits:
        return "-"
    value = fits[0]["log_likelihood"]
    mark = "" if fits[0]["converged"] else " *"
    return f"{value:.2f} ({without_2pi(value, study):.2f}){mark}"


def _quartiles(values: list[float]) -> str:
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{middle:.1%} [{low:.1%}, {high:.1%}]"


def _theta(coefficients: Sequence[float]) -> str:
    return "theta = (" + ", ".join(f"{value:.4g}" for value in coefficients) + ")"


# --------------------------------------------------------------------------------------------------- prediction


def job_of(results: Results, size: int, split: int) -> dict[str, Any]:
    """Results of one training size and split."""
    return next(job for job in results["jobs"] if job["size"] == size and job["split"] == split)


def released_table(study: PredictionStudy, results: Results, order: str) -> str:
    """The paper's table: in each cell our score by either solver, the paper's, and that of the authors' code."""
    columns: list[Column] = [(study.data, size) for size in study.sizes]
    header = ["model", *(f"{data} {size}" for data, size in columns), "where and why they differ"]
    rows = []
    for model in (*POLYNOMIALS, *BASELINES, *BEYOND):
        ours = [_ours(study, results, column, model, order) for column in columns]
        cells = ["<br>".join(lines) for lines in ours]
        rows.append([model.label, *cells, why(model, columns, _scores(study, results, columns, model, order), order)])
    return markdown(header, rows)


def _scores(
    study: PredictionStudy, results: Results, columns: list[Column], model: Model, order: str
) -> list[dict[str, Any]]:
    """Per column: our mean score and log likelihood by either solver."""
    found = []
    for _, size in columns:
        models = job_of(results, size, study.splits[0])["models"]
        entry = {}
        for solver, key in (("sqp", model.key), ("lagrangian", f"{model.row} by Algorithm 1")):
            if key in models:
                entry[solver] = {
                    "mean": mean_score(models[key]["scores"][order]).mean,
                    "log_likelihood": models[key]["log_likelihood"],
                    "converged": models[key]["converged"],
                }
        found.append(entry)
    return found


def _ours(study: PredictionStudy, results: Results, column: Column, model: Model, order: str) -> list[str]:
    models = job_of(results, column[1], study.splits[0])["models"]
    lines = [f"ours **{as_text(mean_score(models[model.key]['scores'][order]))}**"]
    by_algorithm_1 = next((one.key for one in ALGORITHM_1 if one.row == model.row), None)
    if by_algorithm_1 in models:
        fit = models[by_algorithm_1]
        lines.append(f"Algorithm 1 {as_text(mean_score(fit['scores'][order]))}" + ("" if fit["converged"] else " *"))
    if model.row in TABLE_1[column]:
        lines.append(f"paper {as_text(TABLE_1[column][model.row])}")
    authors: MeanScore | None = AUTHORS_CODE.get(column, {}).get(model.row)
    if order == "time":
        authors = AUTHORS_CODE_IN_TIME_ORDER.get(column, {}).get(model.row)
    if authors is not None:
        lines.append(f"authors' code {as_text(authors)}")
    elif order == "released" and model.row in OPTIMA.get(column, {}):
        lines.append(f"reference {as_text(OPTIMA[column][model.row])}")
    return lines


def likelihood_table(study: PredictionStudy, results: Results) -> str:
    """Log marginal likelihoods of the training signals, by either solver and by the authors' code."""
    columns: list[Column] = [(study.data, size) for size in study.sizes]
    header = ["model", *(f"{data} {size}" for data, size in columns)]
    rows = []
    for model in POLYNOMIALS:
        cells = []
        for column in columns:
            models = job_of(results, column[1], study.splits[0])["models"]
            parts = [f"sqp {models[model.key]['log_likelihood']:.2f}"]
            key = f"{model.row} by Algorithm 1"
            if key in models:
                fit = models[key]
                parts.append(f"Algorithm 1 {fit['log_likelihood']:.2f}" + ("" if fit["converged"] else " *"))
            authors = AUTHORS_CODE.get(column, {}).get(model.row)
            if authors is not None:
                parts.append(f"authors' code {authors.log_likelihood:.1f}")
            cells.append("<br>".join(parts))
        rows.append([model.label, *cells])
    return markdown(header, rows)


def split_scores(study: PredictionStudy, results: Results, size: int, key: str) -> Any:
    """Mean test score of a model on each random split, shape (n_splits,)."""
    return np.array(
        [np.mean(job_of(results, size, split)["models"][key]["scores"]["released"]) for split in study.splits]
    )


def paired(study: PredictionStudy, results: Results, size: int, key: str, other: str) -> tuple[float, float]:
    """Mean difference of two models over the splits, and half the width of its 95% interval (Student's t)."""
    differences = split_scores(study, results, size, key) - split_scores(study, results, size, other)
    error = np.std(differences, ddof=1) / np.sqrt(differences.size)
    return float(np.mean(differences)), float(stdtrit(differences.size - 1, 0.975) * error)


def splits_table(study: PredictionStudy, results: Results, size: int) -> str:
    """Scores over the random splits, paired differences to the standard GP, and leave-one-out scores."""
    header = ["model", "test, mean (SE)", "worst", "less standard GP [95% interval]", "leave-one-out"]
    rows = []
    for model in study.models:
        values = split_scores(study, results, size, model.key)
        mean, half = paired(study, results, size, model.key, "standard")
        left_out = np.mean(
            [job_of(results, size, split)["models"][model.key]["leave_one_out"] for split in study.splits]
        )
        error = np.std(values, ddof=1) / np.sqrt(values.size)
        difference = "-" if model.row == "standard" else f"{mean:+.2f} [{mean - half:+.2f}, {mean + half:+.2f}]"
        rows.append(
            [model.label, f"{np.mean(values):.2f} ({error:.2f})", f"{values.min():.1f}", difference, f"{left_out:.2f}"]
        )
    return markdown(header, rows)
