"""Statements of ours, about what the paper does not claim: kept apart from the paper's, and not counted with them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reproduction.answers import LITTLE, WELL
from reproduction.experiments import AVERAGED, BASELINES, HIGHEST_DEGREE, TRUTHS, Truth
from reproduction.jobs import JOINT, NOISE_KNOWN
from reproduction.results import Filters, Finished, Predictions
from reproduction.statements import Statement

ALONE = ""
"""There is one way to ask these."""


def ours(finished: Finished) -> list[Statement]:
    """Every statement that the finished experiments can be asked about."""
    found: list[Statement] = []
    for key in ("sensor", "barabasi-albert", "inverse-wishart"):
        if finished.has(key):
            found += _little_beyond(finished.filters(key))
    if finished.has("noise"):
        found += [_noise_known(finished, truth) for truth in finished.filters("noise").study.truths]
    for key in ("traffic", "weather", "traffic-splits", "weather-splits"):
        if finished.has(key):
            found += _auto(finished.predictions(key))
    return found


def _little_beyond(found: Filters) -> Iterator[Statement]:
    """The paper's statement taken to a degree that it does not show, and for the filter that it does not show."""
    highest = (found.study.degrees or (0,))[-1]
    if highest == HIGHEST_DEGREE:
        return
    for truth in found.study.truths:
        before = found.gain(truth.key, JOINT, 1, truth.degree)
        after = found.gain(truth.key, JOINT, truth.degree, highest)
        yield Statement(
            found.study.title,
            f"{truth.key}: beyond degree {truth.degree} there is only little improvement up to degree {highest}",
            f"the median gain beyond it is below {LITTLE:g} nats and below the gain up to it",
            {ALONE: after < LITTLE and after < before},
            f"{before:.1f} nats up to degree {truth.degree}, {after:.1f} beyond it",
        )


def _noise_known(finished: Finished, truth: Truth) -> Statement:
    found = finished.filters("noise")
    errors = {
        snr: found.median(truth.key, NOISE_KNOWN, "shape_error", degree=truth.degree, snr=snr)
        for snr in found.study.snrs
        if snr >= 10
    }
    return Statement(
        found.study.title,
        f"{truth.key}: with the noise known, the spectrum is recovered well at 10 dB and above",
        f"the median error of the scaled filter is below {WELL:.0%} at every ratio from 10 dB",
        {ALONE: max(errors.values()) < WELL},
        ", ".join(f"{error:.1%} at {snr:g} dB" for snr, error in errors.items()),
    )


def _auto(found: Predictions) -> Iterator[Statement]:
    """Stacked degrees against the baselines: at maximum likelihood, and like with like."""
    n_splits = len(found.study.splits)
    where = f"{found.study.data}, " + ("released split" if found.study.is_released else f"{n_splits} random splits")
    for size in found.study.sizes:
        for group, words in ((BASELINES, "at maximum likelihood"), (AVERAGED, "with the same prior and averaging")):
            keys = [model.key for model in group if found.has(model.key)]
            if not keys:
                continue
            other = found.best(size, keys)
            difference = found.difference(size, "auto", other)
            yield Statement(
                where,
                f'{size} signals: "auto" scores at least as high as every baseline {words}',
                "the mean of the paired differences to the best of them is not negative",
                {ALONE: difference.mean >= 0},
                f"to {other.split(',')[0]}: {difference}",
            )


def recovered_at_own_degree(finished: Finished, key: str) -> str:
    """What learning the noise costs, in one sentence of numbers."""
    found = finished.filters(key)
    parts = []
    for truth in (truth for truth in TRUTHS if truth in found.study.truths):
        learnt, known = (
            np.median([fit["error"] for fit in found.learnt(truth.key, variant, degree=truth.degree)])
            for variant in (JOINT, NOISE_KNOWN)
        )
        parts.append(f"{truth.key} {learnt:.1%} with the noise learnt and {known:.1%} with it known")
    return "; ".join(parts)
