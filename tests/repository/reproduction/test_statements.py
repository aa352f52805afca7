"""Statements are decided by their criteria: results are made up so that the answer is known."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from reproduction.experiments import (
    BASELINES,
    BY_ALGORITHM_1,
    EXPERIMENTS,
    POLYNOMIALS,
    FilterStudy,
    PredictionStudy,
)
from reproduction.jobs import variants_of
from reproduction.ours import ours
from reproduction.results import Difference, Finished
from reproduction.sections import count
from reproduction.statements import fourteen, further

STUDIES = {study.key: study for study in EXPERIMENTS}


def filter_results(study: FilterStudy, likelihood, shape_error=lambda truth, snr, variant: 0.05):
    return [
        {
            "truth": truth.key,
            "snr": snr,
            "seed": seed,
            "learnt": [
                {
                    "variant": variant.name,
                    "degree": variant.degree,
                    "log_likelihood": likelihood(truth, snr, variant),
                    "error": shape_error(truth, snr, variant),
                    "shape_error": shape_error(truth, snr, variant),
                    "converged": True,
                }
                for variant in variants_of(study, truth)
            ],
        }
        for truth, snr, seed in product(study.truths, study.snrs, study.seeds)
    ]


def prediction_results(study: PredictionStudy, score):
    found = []
    for size, split, model in product(study.sizes, study.splits, study.models):
        scores = (score(size, model) + np.array([-1.0, 1.0])).tolist()
        found.append(
            {
                "size": size,
                "split": split,
                "model": model.key,
                "scores": {"released": scores},
                "smallest_response": -1.0,
                "log_likelihood": 0.0,
            }
        )
    return found


def finished(**results):
    return Finished(STUDIES, {key.replace("_", "-"): found for key, found in results.items()})


def by_wording(statements, *words):
    (found,) = [one for one in statements if all(word in one.wording for word in words)]
    return found


def test_the_paper_makes_fourteen_statements_about_filters_and_scores():
    statements = fourteen(finished())
    assert len(statements) == 14
    assert not any(one.is_tested for one in statements)
    assert all(one.where and one.criterion for one in [*statements, *further(finished())])
    assert "None of the paper's 14" in count(statements, "statements")


@pytest.mark.parametrize(
    ("likelihoods", "holds"),
    [
        ({1: 0.0, 2: 4.5, 3: 4.6, 4: 4.65, 5: 9.0}, True),  # the authors' draws
        ({1: 0.0, 2: 1.0, 3: 1.5, 4: 2.5, 5: 2.5}, False),  # more beyond than before
        ({1: 0.0, 2: 9.0, 3: 10.0, 4: 11.5, 5: 11.5}, False),  # more than little beyond
    ],
)
def test_little_improvement_is_little_by_itself_and_beside_what_came_before(likelihoods, holds):
    results = filter_results(STUDIES["sensor"], lambda truth, snr, variant: likelihoods[variant.degree])
    statement = by_wording(fourteen(finished(sensor=results)), "low-pass", "little improvement")
    assert statement.holds == {"jointly": holds, "by Algorithm 1": holds}


def test_recovery_is_asked_of_each_solver_at_every_ratio_from_10_dB():
    def error(truth, snr, variant):
        return 0.12 if variant.name == BY_ALGORITHM_1 and snr == 15 else 0.2 if snr < 10 else 0.09

    results = filter_results(STUDIES["noise"], lambda truth, snr, variant: snr, error)
    statement = by_wording(fourteen(finished(noise=results)), "band-pass", "recovered well")
    assert statement.holds == {"jointly": True, "by Algorithm 1": False}
    assert "12.0% at 15 dB" in statement.numbers
    assert by_wording(fourteen(finished(noise=results)), "low-pass", "marginals").holds["jointly"]
    reverse = filter_results(STUDIES["noise"], lambda truth, snr, variant: -snr)
    assert not by_wording(fourteen(finished(noise=reverse)), "low-pass", "marginals").holds["jointly"]


def test_traffic_holds_only_if_a_polynomial_is_best():
    def score(size, model):
        if model.row == "laplacian" and not model.by:
            return -320.0 if size == 10 else -321.0
        return -320.5 if model.row == "degree-2" else -322.0

    statements = fourteen(finished(traffic=prediction_results(STUDIES["traffic"], score)))
    first, second = (by_wording(statements, f"{size} signals: the polynomials") for size in (10, 20))
    assert first.holds == {"jointly": False, "by Algorithm 1": False}
    assert second.holds == {"jointly": True, "by Algorithm 1": True}
    assert "degree-2 -320.50, laplacian -320.00, paired -0.50 +- 0.00" in first.numbers


def test_weather_holds_only_if_both_degrees_are_better():
    def score(size, model):
        if model.group == "polynomial":
            return {"degree-2": -6.0, "degree-3": -3.0}.get(model.row, -9.0)
        return -5.0 if size == 30 else -7.0

    results = prediction_results(STUDIES["weather"], score)
    statements = fourteen(finished(weather=results))
    assert by_wording(statements, "15 signals").holds["jointly"]
    assert not by_wording(statements, "30 signals").holds["jointly"]


def test_what_is_not_tested_is_not_counted():
    results = prediction_results(STUDIES["weather"], lambda size, model: 1.0 if model.group == "polynomial" else 0.0)
    statements = fourteen(finished(weather=results))
    assert count(statements, "statements") == (
        "Of the paper's statements, 2 were tested: 2 with filters learnt jointly and 2 with filters learnt by "
        "Algorithm 1 hold; 12 of the 14 were not tested here."
    )


def test_statements_about_auto_are_ours_and_like_is_compared_with_like():
    def score(size, model):
        return {"auto": 2.0}.get(model.row, 3.0 if model.by == "averaged" else 1.0)

    found = finished(weather_splits=prediction_results(STUDIES["weather-splits"], score))
    answers = {one.wording: one.holds[""] for one in ours(found)}
    assert answers['15 signals: "auto" scores at least as high as every baseline at maximum likelihood']
    assert not answers['15 signals: "auto" scores at least as high as every baseline with the same prior and averaging']
    assert not any("auto" in one.wording for one in [*fourteen(found), *further(found)])


def test_a_difference_is_taken_in_pairs_and_its_median_stands_one_outlier():
    rng = np.random.default_rng(0)
    level = rng.normal(scale=50, size=20)
    first, second = level + rng.normal(0.5, 0.1, 20), level + rng.normal(0, 0.1, 20)
    difference = Difference.of(first, second)
    pairs = first - second
    assert difference.mean == pytest.approx(np.mean(pairs))
    assert difference.standard_error == pytest.approx(np.std(pairs, ddof=1) / np.sqrt(20))
    assert (difference.low, difference.high) == (np.sort(pairs)[5], np.sort(pairs)[14])
    first[3] -= 2000
    assert abs(Difference.of(first, second).median - difference.median) < 0.1
    # the interval of the median from the 6th to the 15th of 20 holds it in 96 of 100 samples
    hits = [one.low <= 0 <= one.high for one in (Difference.of(rng.normal(size=20), np.zeros(20)) for _ in range(2000))]
    assert np.mean(hits) == pytest.approx(0.9586, abs=0.015)


def test_every_model_of_the_paper_is_in_its_table():
    assert len(POLYNOMIALS) + len(BASELINES) == 13
