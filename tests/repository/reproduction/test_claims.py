"""Claims are decided by their criteria: results are made up so that the answer is known."""

from itertools import combinations

import numpy as np
import pytest
from made_up import STUDIES, everything, filters, finished, predictions

from reproduction.claims import Verdict, beyond, claims
from reproduction.experiments import BY_ALGORITHM_1, BY_SEARCH
from reproduction.figures import pictures
from reproduction.jobs import spread_out
from reproduction.results import Difference

YES, NO, OPEN = Verdict.YES, Verdict.NO, Verdict.OPEN


def by_wording(found, *words):
    (claim,) = [one for one in claims(found) if all(word in one.wording for word in words)]
    return claim


def verdicts(found, *words, solver="jointly"):
    return by_wording(found, *words).answer(solver).verdicts


@pytest.mark.parametrize(
    ("likelihoods", "expected"),
    [
        ({1: 0.0, 2: 4.5, 3: 4.6, 4: 4.65, 5: 9.0}, (NO, YES, YES)),  # degree 5 is the stricter bar's
        ({1: 0.0, 2: 1.0, 3: 1.5, 4: 2.5, 5: 2.5}, (NO, NO, NO)),  # more beyond than before
        ({1: 0.0, 2: 9.0, 3: 10.0, 4: 12.0, 5: 12.0}, (NO, NO, YES)),  # more than little beyond
    ],
)
def test_little_improvement_is_little_by_itself_and_beside_what_came_before(likelihoods, expected):
    results = filters(
        STUDIES["sensor"], lambda truth, snr, variant, seed: {"log_likelihood": likelihoods[variant.degree]}
    )
    assert verdicts(finished(sensor=results), "little improvement") == expected


def test_fits_that_did_not_converge_support_nothing():
    def say(truth, snr, variant, seed):
        failed = variant.name == BY_ALGORITHM_1 and seed <= 11  # of 20
        return {"converged": not failed, "shape_error": 0.9 if failed else 0.01}

    found = finished(barabasi_albert=filters(STUDIES["barabasi-albert"], say))
    claim = by_wording(found, "relatively well")
    assert claim.answer("jointly").verdicts == (YES, YES, YES)
    assert claim.answer("Algorithm 1").verdicts == (OPEN, OPEN, OPEN)
    assert "too many fits failed" in claim.answer("Algorithm 1").numbers


def test_recovery_is_asked_of_each_solver_at_every_ratio_from_10_dB():
    def say(truth, snr, variant, seed):
        high = 0.12 if variant.name == BY_ALGORITHM_1 and snr == 15 else 0.09
        return {"shape_error": 0.5 if snr < 10 else high, "log_likelihood": snr}

    found = finished(noise=filters(STUDIES["noise"], say))
    assert verdicts(found, "band-pass: recovered") == (NO, YES, YES)
    assert verdicts(found, "band-pass: recovered", solver="Algorithm 1") == (NO, NO, YES)
    assert verdicts(found, "marginals") == (YES, YES, YES)


def test_a_difference_within_its_error_is_not_decided():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(10)
    noise -= noise.mean()
    error = np.std(noise, ddof=1) / np.sqrt(10)
    for shift, expected in ((0.5, (OPEN, OPEN, YES)), (1.5, (OPEN, YES, YES)), (-2.5, (NO, NO, NO))):
        difference = Difference.of(noise + shift * error, np.zeros(10))
        assert tuple(beyond(difference, bar) for bar in (2.0, 1.0, 0.0)) == expected


def test_a_diverged_fit_neither_supports_nor_refutes_a_claim_about_scores():
    """The page once took -2014.17 against -2747.94 as support for the constraint."""

    def score(size, model):
        return {"degree-3": -2014.0, "degree-3-free": -2748.0}.get(model.row, -320.0) if model.by else -320.0

    def say(size, model):
        return {"converged": not (model.by == BY_ALGORITHM_1 and model.row.startswith("degree-3"))}

    found = finished(traffic=predictions(STUDIES["traffic"], score, say))
    claim = by_wording(found, "traffic: constrained better")
    assert claim.answer("Algorithm 1").verdict is not YES


def test_a_fit_far_below_the_best_maximum_counts_as_failed():
    def say(size, model):
        return {"log_likelihood": 131.8 if model.by == BY_SEARCH and model.row == "degree-3-free" else 0.0}

    found = finished(
        weather=predictions(STUDIES["weather"], lambda size, model: 1.0 if "free" not in model.row else 0.0, say)
    )
    assert verdicts(found, "weather: unconstrained") == (OPEN, OPEN, OPEN)
    plain = finished(
        weather=predictions(STUDIES["weather"], lambda size, model: 1.0 if "free" not in model.row else 0.0)
    )
    assert verdicts(plain, "weather: unconstrained") == (YES, YES, YES)


@pytest.mark.parametrize(("best", "expected"), [("degree-2", YES), ("laplacian", NO)])
def test_traffic_holds_only_if_a_polynomial_is_best(best, expected):
    results = predictions(STUDIES["traffic"], lambda size, model: 1.0 if model.row == best else 0.0)
    assert by_wording(finished(traffic=results), "polynomials perform best").answer("jointly").verdict is expected


def test_fourier_coefficients_near_0_are_asked_beside_every_band_not_a_pool():
    results = predictions(STUDIES["traffic"])
    results[0]["shown"]["fourier"] = [[0.93, 0.5, 0.5, 0.5, 0.96, 2.05]]  # the referee's figures
    assert verdicts(finished(traffic=results), "Fourier") == (NO, NO, YES)


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


# Pictures


def test_no_panel_is_empty_and_intervals_need_their_splits():
    found = everything()
    for picture in pictures(found):
        for ax in picture.draw(found).axes:
            assert ax.lines or ax.collections or ax.get_legend(), (picture.name, ax.get_title())
    cut = {key: study.quick() for key, study in STUDIES.items()}
    assert "splits" in [picture.name for picture in pictures(found)]
    found = type(found)(cut, found.results)
    drawn = {picture.name: picture for picture in pictures(found)}
    assert "splits" not in drawn  # few splits hold no 95%
    assert len(drawn["table-1"].draw(found).axes) == 3  # one training size


def test_the_places_of_a_graph_in_parts_do_not_overlap():
    edges = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5)]
    places = spread_out(8, edges)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)[~np.eye(8, dtype=bool)]
    assert apart.min() > 0.2
    # components stand in rows, side by side
    boxes = [(places[part].min(axis=0), places[part].max(axis=0)) for part in ([0, 1, 2], [3, 4, 5], [6], [7])]
    for (low, high), (other_low, other_high) in combinations(boxes, 2):
        assert np.any((high < other_low) | (other_high < low))
