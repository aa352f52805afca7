"""The paper's statements, and ours, checked against the results: what holds and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from reproduction.experiments import BASELINES, POLYNOMIALS, FilterStudy, PredictionStudy, Study
from reproduction.tables import Results, job_of, learnt, mean_score, paired, split_scores

LITTLE = 3.0  # nats; twice this is about the 95% point of a likelihood ratio with one or two degrees of freedom
RECOVERED = 0.1  # relative L2 error
CONSTRAINED = tuple(model for model in POLYNOMIALS if model.row != "degree-3-free")


@dataclass(frozen=True)
class Claim:
    """A statement, whether it holds here, and the numbers."""

    statement: str
    holds: bool
    numbers: str


def claims(studies: Mapping[str, Study], results: Mapping[str, Results]) -> list[Claim]:
    """Every statement that the finished experiments can be asked about."""
    found: list[Claim] = []
    for key, study in studies.items():
        if key not in results:
            continue
        if isinstance(study, FilterStudy):
            found += _noise(study, results[key]) if study.degrees is None else _degrees(study, results[key])
        elif not study.is_released:
            found += [claim for size in study.sizes for claim in _on_splits(study, results[key], size)]
        else:
            found += [claim for size in study.sizes for claim in _on_released(study, results[key], size)]
    return found


def _degrees(study: FilterStudy, results: Results) -> list[Claim]:
    """Little gain in likelihood beyond degree 2 (low-pass, high-pass) or 3 (band-pass)."""
    found = []
    for truth in study.truths:
        snr = study.snrs[0]
        curves = np.array(
            [
                [fit["log_likelihood"] for fit in learnt(results, truth.key, "sqp", snr=snr, degree=degree)]
                for degree in study.degrees or ()
            ]
        )
        own = list(study.degrees or ()).index(truth.degree)
        before = np.median(curves[own] - curves[0])
        after = np.median(curves[-1] - curves[own])
        errors = [fit["error"] for fit in learnt(results, truth.key, "sqp", snr=snr, degree=truth.degree)]
        found.append(
            Claim(
                f"{study.title}, {truth.key}: little gain in likelihood beyond degree {truth.degree}",
                bool(after < LITTLE),
                f"median gain {before:.1f} nats up to degree {truth.degree}, {after:.1f} beyond it; median filter "
                f"error {np.median(errors):.0%} at that degree",
            )
        )
    return found


def _noise(study: FilterStudy, results: Results) -> list[Claim]:
    """Filters recovered well at 10 dB and above, and marginals that fall with noise."""
    found = []
    for truth in study.truths:
        for variant, words in (("sqp", "noise learnt"), ("noise known", "noise known")):
            fits = {snr: learnt(results, truth.key, variant, snr=snr, degree=truth.degree) for snr in study.snrs}
            errors = {snr: float(np.median([fit["error"] for fit in fits[snr]])) for snr in study.snrs}
            listed = ", ".join(f"{error:.0%} at {snr:g} dB" for snr, error in errors.items())
            found.append(
                Claim(
                    f"{study.title}, {truth.key}, {words}: recovered to {RECOVERED:.0%} at 10 dB and above",
                    all(error < RECOVERED for snr, error in errors.items() if snr >= 10),
                    f"median error {listed}",
                )
            )
            if variant == "sqp":
                middle = [float(np.median([fit["log_likelihood"] for fit in fits[snr]])) for snr in study.snrs]
                found.append(
                    Claim(
                        f"{study.title}, {truth.key}: marginals fall with noise",
                        bool(np.all(np.diff(middle) < 0)),  # the ratios are listed from high to low
                        "median log marginal likelihood " + ", ".join(f"{value:.0f}" for value in middle),
                    )
                )
    return found


def _statement(study: PredictionStudy, size: int, where: str, ours: str) -> str:
    bar = "within one standard error of" if study.data == "traffic" else "at least as good as"
    subject = (
        "constrained polynomials stacked" if ours == "auto" else "the best constrained polynomial (degrees 1 to 3)"
    )
    return f"{study.data} {size}, {where}: {subject} {'are' if ours == 'auto' else 'is'} {bar} the best baseline"


def _on_released(study: PredictionStudy, results: Results, size: int) -> list[Claim]:
    models = job_of(results, size, study.splits[0])["models"]
    scores = {key: mean_score(found["scores"]["released"]) for key, found in models.items()}
    best, other = (max((m.key for m in group), key=lambda key: scores[key].mean) for group in (CONSTRAINED, BASELINES))
    error = scores[other].standard_error or 0.0
    slack = error if study.data == "traffic" else 0.0
    return [
        Claim(
            _statement(study, size, "released split", ours),
            scores[ours].mean >= scores[other].mean - slack,
            f"{ours} {scores[ours].mean:.2f}, {other} {scores[other].mean:.2f} (SE {error:.2f})",
        )
        for ours in (best, "auto")
    ]


def _on_splits(study: PredictionStudy, results: Results, size: int) -> list[Claim]:
    values = {model.key: split_scores(study, results, size, model.key) for model in study.models}
    means = {key: float(np.mean(scores)) for key, scores in values.items()}
    best, other = (max((m.key for m in group), key=means.__getitem__) for group in (CONSTRAINED, BASELINES))
    error = float(np.std(values[other], ddof=1) / np.sqrt(values[other].size))
    slack = error if study.data == "traffic" else 0.0
    found = []
    for ours in (best, "auto"):
        mean, half = paired(study, results, size, ours, other)
        found.append(
            Claim(
                _statement(study, size, f"mean of {len(study.splits)} random splits", ours),
                means[ours] >= means[other] - slack,
                f"{ours} {means[ours]:.2f}, {other} {means[other]:.2f} (SE over splits {error:.2f}); paired difference "
                f"{mean:+.2f} +- {half:.2f} (95%)",
            )
        )
    return found
