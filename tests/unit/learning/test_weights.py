"""Shares of two predictions by CRPS, against a grid of shares and the integral that defines the score."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

from cases import GRAPHS
from spectralgp.learning import Candidate, Draws, FittedModels, Folds, FoldScores, Sqp, Task
from spectralgp.learning.fitting import _of_use, _tried, _weights_between, conditioned
from spectralgp.learning.weights import Quantiles, share_by_crps, weights_by_error
from spectralgp.model.fields import Logarithms, stacking_weights
from spectralgp.model.kernels import Identity
from spectralgp.scores import crps

SMALL = Task.of(GRAPHS["random"], None, np.empty((4, 0)), np.random.default_rng(3).standard_normal((4, 7)))


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


@pytest.mark.parametrize("n_values", [0.5, 40.0])
def test_weights_by_error_are_the_best_of_all(n_values):
    """By SciPy, on the simplex; the second model has the better densities, the first the smaller errors."""
    rng = np.random.default_rng(5)
    logs = rng.normal([-3.0, -2.6, -3.2], 0.7, size=(12, 3))
    errors = rng.normal(size=(12, 4, 1)) * [0.5, 0.9, 0.8] + 0.3 * rng.normal(size=(12, 4, 3))

    def negative(weights):
        mixed = np.log(np.exp(logs) @ weights).sum()
        return -(mixed - 0.5 * n_values * np.log(np.mean(np.square(errors @ weights))))

    options = {"ftol": 1e-14, "maxiter": 1000}
    on_simplex = {"type": "eq", "fun": lambda weights: weights.sum() - 1}
    best = minimize(negative, np.full(3, 1 / 3), bounds=[(0, 1)] * 3, constraints=on_simplex, options=options)
    found = weights_by_error(logs, errors, n_values)
    assert found.sum() == pytest.approx(1.0)
    assert np.min(found) >= 0
    assert negative(found) == pytest.approx(best.fun, abs=1e-4)
    np.testing.assert_allclose(found, best.x, atol=0.01)


def test_weights_by_error_take_steps_that_shrink_where_they_do_not_lead_up():
    """Errors so small that the first step overshoots, and a model so bad that its weight would underflow."""
    logs = np.array([[-1.0, -2000.0], [-1.5, -1900.0]])
    errors = np.array([[1e-9, 1.0], [-2e-9, 1.0]])
    np.testing.assert_allclose(weights_by_error(logs, errors, 1e6), [1.0, 0.0], atol=1e-6)


@pytest.mark.parametrize(
    ("given", "most", "expected"),
    [
        ([0.5, 0.009, 0.491], None, [0.5 / 0.991, 0.0, 0.491 / 0.991]),
        ([0.5, 0.011, 0.489], None, [0.5, 0.011, 0.489]),
        ([0.5, 0.2, 0.3], 2, [0.625, 0.0, 0.375]),
        ([0.5, 0.2, 0.3], 3, [0.5, 0.2, 0.3]),
        ([0.3, 0.005, 0.695], 1, [0.0, 0.0, 1.0]),
    ],
)
def test_members_of_a_choice_are_few_and_none_is_negligible(given, most, expected):
    np.testing.assert_allclose(_of_use(np.array(given), most), expected)


class Judge(Folds):
    """Folds that were scored before: what was held out, and points of what candidates said of it."""

    def __init__(self, points):
        self.points, self.asked = points, []

    def values(self, candidate):
        self.asked.append(candidate.name)
        return np.array([1.0, 2.0]), self.points[candidate.name]


def test_between_groups_whose_densities_do_not_compare_crps_decides():
    """By densities within a group; of four candidates two see logarithms, whose points are nearer by half."""
    logarithms = Logarithms.of(np.exp(SMALL.signals.values), np.empty((4, 0)), None)
    names, kinds = "abcd", (None, logarithms, None, logarithms)
    candidates = [
        Candidate(SMALL, Identity(), name=name, transformation=kind) for name, kind in zip(names, kinds, strict=True)
    ]
    rng = np.random.default_rng(1)
    logs = rng.normal([-1.0, 50.0, -1.1, 51.0], 1.0, size=(6, 4))  # which would leave nothing to the plain ones
    points = {name: np.array([[1.0], [2.0]]) + rng.normal(size=(2, 5)) for name in names}
    judge, scores = Judge(points), FoldScores(logs, None, 3, ("fit",) * 4)
    found = _weights_between(candidates, scores, judge, is_choice=False, most=None)
    plain, seen = stacking_weights(logs[:, ::2]), stacking_weights(logs[:, 1::2])
    laws = [
        Quantiles.mixed(own, [points[name] for name in part]) for own, part in ((plain, ("a", "c")), (seen, ("b", "d")))
    ]
    share = share_by_crps(np.array([1.0, 2.0]), *laws)
    assert 0.05 < share < 0.95
    expected = [(1 - share) * plain[0], share * seen[0], (1 - share) * plain[1], share * seen[1]]
    np.testing.assert_allclose(found, expected, atol=0.01)
    assert sorted(judge.asked) == [name for name, weight in zip(names, found, strict=True) if weight > 0]
    # alike ones are weighed by densities alone
    alike = _weights_between(candidates[::2], scores.of(np.array([0, 2])), judge, is_choice=False, most=None)
    np.testing.assert_allclose(alike, plain)


# ------------------------------------------------------------------------------------------ what weights are made into


class Scripted:
    """A judge whose log densities are given, one row of signals for each name."""

    def __init__(self, logs):
        self.logs, self.asked = logs, []

    def score(self, candidates, solver):
        self.asked.append([one.name for one in candidates])
        logs = np.array([self.logs[one.name] for one in candidates]).T
        return FoldScores(logs, None, 7, tuple(f"fit of {one.name}" for one in candidates))


def test_a_plan_knows_the_scores_of_its_last_stage_and_all_are_kept():
    named = {name: Candidate(SMALL, Identity(), name=name) for name in "abc"}
    heard = []

    def plan():
        heard.append((yield [named["a"], named["b"]]))
        heard.append((yield [named["c"]]))

    judge, steps = Scripted({"a": [-1.0, -2.0], "b": [-3.0, -5.0], "c": [-7.0, -11.0]}), plan()
    tried, held_out = _tried(steps, next(steps), judge, Sqp())
    assert [one.tolist() for one in heard] == [[-3.0, -8.0], [-18.0]]
    assert ([one.name for one in tried], judge.asked) == (["a", "b", "c"], [["a", "b"], ["c"]])
    np.testing.assert_array_equal(held_out.log_densities, [[-1, -3, -7], [-2, -5, -11]])
    assert held_out.fits == ("fit of a", "fit of b", "fit of c")


class Conditioned:
    """What a candidate makes of a model: a posterior that names it."""

    def __init__(self, name):
        self.name, self.task = name, SMALL

    def condition(self, model, task=None):
        return SimpleNamespace(prior=f"{model} of {self.name}, taught")


def test_models_share_the_weight_of_their_candidate_and_those_without_one_are_left_alone():
    candidates, drawn = [Conditioned(name) for name in "abc"], [Draws(("m", "n")), Draws(("o",)), Draws(("p",), 1)]
    draws, mixture = conditioned(candidates, np.array([0.6, 0.0, 0.4]), drawn)
    assert [one.models for one in draws] == [("m of a, taught", "n of a, taught"), ("o",), ("p of c, taught",)]
    assert draws[2].n_stand_ins == 1
    np.testing.assert_allclose(mixture.weights, [0.3, 0.3, 0.4])
    assert [one.prior for one in mixture.posteriors] == [model for one in (draws[0], draws[2]) for model in one.models]
    assert mixture.filling is None
    # other weights where values are filled in, by which another has a part
    draws, mixture = conditioned(candidates, np.array([0.6, 0.0, 0.4]), drawn, np.array([0.5, 0.5, 0.0]))
    np.testing.assert_allclose(mixture.weights, [0.3, 0.3, 0.0, 0.4])
    np.testing.assert_allclose(mixture.filling, [0.25, 0.25, 0.5, 0.0])
    _, alone = conditioned(candidates, np.array([0.0, 1.0, 0.0]), drawn)
    assert alone.prior == "o of b, taught"


def test_the_likelihood_of_a_mixture_is_the_mean_of_its_members():
    drawn = (Draws(("m",), 2), Draws(("n",), 3), Draws(("o",), 5))
    models = FittedModels((), (), np.array([0.25, 0.0, 0.75]), drawn, None)
    models.__dict__["fits"] = tuple(SimpleNamespace(log_likelihood=value) for value in (-1.0, 50.0, -2.5))
    assert models.log_likelihood == pytest.approx(np.log(0.25 * np.exp(-1.0) + 0.75 * np.exp(-2.5)))
    assert models.n_stand_ins == 7
