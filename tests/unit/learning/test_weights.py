"""Shares of two predictions by CRPS, against a grid of shares and the integral that defines the score."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from spectralgp.learning.weights import Quantiles, share_by_crps
from spectralgp.scores import crps


def score(share: float, observed: np.ndarray, first: Quantiles, second: Quantiles) -> float:
    """Mean integral of the squared distance between the distribution function and the step at what was observed."""
    total = 0.0
    for value, left, right in zip(observed, first.points, second.points, strict=True):
        points = np.sort(np.concatenate([left, right, [value]]))
        middle = (points[1:] + points[:-1]) / 2
        below = (1 - share) * (left[None] <= middle[:, None]) @ first.weights
        below += share * (right[None] <= middle[:, None]) @ second.weights
        total += float(np.sum(np.diff(points) * (below - (value <= middle)) ** 2))
    return total / len(observed)


def laws(rng: np.random.Generator, n_values: int) -> Quantiles:
    weight, centres = rng.uniform(), rng.normal(size=(2, n_values, 1))
    parts = [centre + rng.uniform(0.1, 2) * rng.normal(size=(n_values, 5)) for centre in centres]
    return Quantiles.mixed(np.array([weight, 1 - weight]), parts)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_no_other_share_has_a_lower_score(seed):
    rng = np.random.default_rng(seed)
    observed, first, second = rng.normal(size=4), laws(rng, 4), laws(rng, 4)
    found = share_by_crps(observed, first, second)
    best = min(score(share, observed, first, second) for share in np.linspace(0, 1, 21))
    assert 0 <= found <= 1
    assert score(found, observed, first, second) <= best + 1e-12


def test_a_law_gets_all_where_it_is_right_and_equal_ones_leave_the_first():
    rng, levels = np.random.default_rng(0), norm.ppf((np.arange(19) + 0.5) / 19)
    observed = rng.normal(size=3_000)
    right = Quantiles.mixed(np.ones(1), [np.tile(levels, (3_000, 1))])
    wrong = Quantiles.mixed(np.ones(1), [np.tile(3 + 4 * levels, (3_000, 1))])
    assert share_by_crps(observed, right, wrong) < 0.03
    assert share_by_crps(observed, wrong, right) > 0.97
    assert share_by_crps(observed, right, right) == 0.0
    # nineteen points are enough for the score of a normal law
    normal = np.mean(crps(observed, np.zeros(3_000), np.ones(3_000)))
    assert score(0.0, observed, right, wrong) == pytest.approx(normal, rel=0.01)


def test_ties_do_not_decide():
    """Half of the values are exactly zero: a law that is ever surer of it gains a bounded score, and no more."""
    rng, levels = np.random.default_rng(1), norm.ppf((np.arange(19) + 0.5) / 19)
    observed = np.where(rng.random(400) < 0.5, 0.0, rng.normal(size=400))
    wide = Quantiles.mixed(np.ones(1), [np.tile(levels, (400, 1))])
    shares = []
    for width in (1e-2, 1e-6, 1e-12):
        atom = Quantiles.mixed(np.ones(1), [np.tile(width * levels, (400, 1))])
        shares.append(share_by_crps(observed, wide, atom))
    assert np.ptp(shares) < 0.05
    assert 0.2 < shares[-1] < 0.8
