"""Weights by every rule against a general-purpose optimiser of the score, computed by its definition."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import minimize
from scipy.stats import norm

from cases import GRAPHS
from spectralgp.learning import Draws, FittedModels, Task
from spectralgp.learning.fitting import condition_all
from spectralgp.learning.weights import simplex_weights, stacking_weights, weights_by_crps, weights_by_error
from spectralgp.scores import crps
from tolerances import OPTIMUM

SMALL = Task.of(GRAPHS["random"], None, np.empty((4, 0)), np.random.default_rng(3).standard_normal((4, 7)))


def mean_crps(weights, observed, parts) -> float:
    """Mean integral of the squared distance between the distribution function and the step at the observed value."""
    total = 0.0
    for number, value in enumerate(observed):
        rows = [part.points[number] for part in parts]
        points = np.sort(np.concatenate([*rows, [value]]))
        middle = (points[1:] + points[:-1]) / 2
        below = sum(
            weight * (row[None] <= middle[:, None]) @ part.weights
            for weight, row, part in zip(weights, rows, parts, strict=True)
        )
        total += float(np.sum(np.diff(points) * (below - (value <= middle)) ** 2))
    return total / len(observed)


class Quantiles(NamedTuple):
    """Distributions of values as points, with one weight each."""

    points: np.ndarray
    weights: np.ndarray


def least_crps(observed, parts):
    points, shares = np.concatenate([one.points for one in parts], axis=1), block_diag(*(one.weights for one in parts))
    return weights_by_crps(observed, points, shares)


def distributions(rng: np.random.Generator, n_values: int) -> Quantiles:
    weight, centres = rng.uniform(), rng.normal(size=(2, n_values, 1))
    parts = [centre + rng.uniform(0.1, 2) * rng.normal(size=(n_values, 5)) for centre in centres]
    return Quantiles(np.concatenate(parts, axis=1), np.repeat([weight / 5, (1 - weight) / 5], 5))


def best_by_scipy(score, n_models):
    """Largest score on the simplex, by a general-purpose optimiser from several starts."""
    on_simplex = {"type": "eq", "fun": lambda weights: np.sum(weights) - 1, "jac": lambda _: np.ones(n_models)}
    starts = [np.full(n_models, 1 / n_models), *(0.9 * np.eye(n_models) + 0.1 / n_models)]
    found = [
        minimize(
            lambda weights: -score(np.maximum(weights, 1e-300)),
            start,
            method="SLSQP",
            bounds=[(0, 1)] * n_models,
            constraints=[on_simplex],
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        for start in starts
    ]
    best = min(found, key=lambda one: one.fun).x.clip(1e-300)
    return score(best / best.sum())


def log_score(log_densities, counts):
    highest = log_densities.max(axis=1, keepdims=True)
    return lambda weights: float(counts @ np.log(np.exp(log_densities - highest) @ weights))


def by_density(rng, spread, prior=0.0):
    logs, counts = spread * rng.standard_normal((12, 5)) - 300, rng.uniform(0.2, 2, 12)
    score = log_score(logs, counts)
    return stacking_weights(
        logs, counts, prior
    ), lambda one: score(one) + (prior * np.mean(np.log(one)) if prior else 0.0)


def by_density_with_prior(rng, spread):
    return by_density(rng, spread, prior=1.0)


def by_error(rng, spread):
    """The second model has the better densities, the first the smaller errors."""
    logs = rng.normal([-3.0, -2.6, -3.2], 0.7 * spread, size=(12, 3))
    errors = rng.normal(size=(12, 4, 1)) * [0.5, 0.9, 0.8] + 0.3 * rng.normal(size=(12, 4, 3))
    score, n_values = log_score(logs, np.ones(12)), 40.0 * spread
    expected = lambda one: score(one) - 0.5 * n_values * np.log(np.mean(np.square(errors @ one)))  # noqa: E731
    return weights_by_error(logs, errors, n_values), expected


def by_crps(rng, spread):
    observed, parts = spread * rng.normal(size=4), [distributions(rng, 4) for _ in range(3)]
    return least_crps(observed, parts), lambda one: -mean_crps(one, observed, parts)


def by_squares(rng, spread):
    """Log mean squared errors of forecasts at three horizons, as a rule of one's own."""
    errors = spread * rng.normal(1.0, [0.5, 1.0, 1.5, 1.0], size=(3, 40, 4))
    products = np.einsum("hni,hnj->hij", errors, errors)

    def score(weights):
        crossed = products @ weights
        return -np.mean(np.log(crossed @ weights)), -np.mean(2 * crossed / (crossed @ weights)[:, None], axis=0)

    return simplex_weights(score, 4), lambda one: score(one)[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spread", [0.5, 5.0, 500.0])
@pytest.mark.parametrize("rule", [by_density, by_density_with_prior, by_error, by_crps, by_squares])
def test_weights_are_the_best_on_the_simplex(rule, spread, seed):
    weights, score = rule(np.random.default_rng(seed), spread)
    assert np.all(weights >= 0)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    best = best_by_scipy(score, weights.size)
    assert score(weights) >= best - OPTIMUM * max(1.0, abs(best))


def test_weights_ignore_what_all_models_have_in_common():
    log_densities = np.random.default_rng(1).standard_normal((8, 3))
    shifted = log_densities + np.linspace(-1000, 1000, 8)[:, None]
    np.testing.assert_allclose(stacking_weights(shifted), stacking_weights(log_densities), atol=1e-8)


def test_observations_count_as_often_as_they_say():
    rng = np.random.default_rng(2)
    rows, counts = rng.standard_normal((9, 3)), np.array([1.0] * 5 + [3.0] * 4)
    repeated = stacking_weights(np.repeat(rows, counts.astype(int), axis=0))
    np.testing.assert_allclose(stacking_weights(rows, counts), repeated, atol=1e-8)
    assert np.max(np.abs(repeated - stacking_weights(rows))) > 0.01


def test_equal_models_share_the_weight_and_one_model_has_all_of_it():
    np.testing.assert_allclose(stacking_weights(np.full((4, 2), -7.0)), [0.5, 0.5])
    assert stacking_weights(np.array([[-1.0], [-2.0]])).tolist() == [1.0]
    assert stacking_weights(np.empty((0, 4)), prior=1.0).tolist() == [0.25] * 4


def test_negligible_weights_are_zero():
    """Three models share each signal alike; with the first two as likely as e to one they get 0.5, 0.3 and 0.2."""
    log_densities = np.log([[0.9, 0.05, 0.05]] * 5 + [[0.05, 0.9, 0.05]] * 3 + [[0.05, 0.05, 0.9]] * 2)
    weights = stacking_weights(log_densities)
    assert np.all(weights > 0.1)
    kept = stacking_weights(log_densities, negligible=float(weights[1]) - 1e-6)
    np.testing.assert_allclose(kept, [*(weights[:2] / weights[:2].sum()), 0.0])
    assert stacking_weights(log_densities, negligible=0.9).tolist() == [1.0, 0.0, 0.0]  # the largest is kept always


def test_steps_shrink_where_they_do_not_lead_up():
    """Errors so small that the first step overshoots, and a model so bad that its weight would underflow."""
    logs = np.array([[-1.0, -2000.0], [-1.5, -1900.0]])
    errors = np.array([[1e-9, 1.0], [-2e-9, 1.0]])
    np.testing.assert_allclose(weights_by_error(logs, errors, 1e6), [1.0, 0.0], atol=1e-6)


def normal_points(n_values, center=0.0, scale=1.0):
    points = center + scale * norm.ppf((np.arange(19) + 0.5) / 19)
    return Quantiles(np.tile(points, (n_values, 1)), np.full(19, 1 / 19))


def test_the_right_distribution_gets_all_the_weight_by_crps():
    observed = np.random.default_rng(0).normal(size=3_000)
    right, wrong = normal_points(3_000), normal_points(3_000, 3.0, 4.0)
    assert least_crps(observed, [right, wrong])[0] > 0.97
    assert least_crps(observed, [wrong, right])[1] > 0.97
    # nineteen points are enough for the score of a normal distribution
    normal = np.mean(crps(observed, np.zeros(3_000), np.ones(3_000)))
    assert mean_crps([1.0, 0.0], observed, [right, wrong]) == pytest.approx(normal, rel=0.01)


def test_ties_do_not_decide():
    """Half of the values are exactly zero: a model that is ever surer of it gains a bounded score, and no more."""
    rng = np.random.default_rng(1)
    observed = np.where(rng.random(400) < 0.5, 0.0, rng.normal(size=400))
    shares = [
        least_crps(observed, [normal_points(400), normal_points(400, scale=width)])[1] for width in (1e-2, 1e-6, 1e-12)
    ]
    assert np.ptp(shares) < 0.05
    assert 0.2 < shares[-1] < 0.8


# ------------------------------------------------------------------------------------------ what weights are made into


class Conditioned:
    """What a candidate makes of a model: a posterior that names it."""

    is_fallback = False

    def __init__(self, name):
        self.name, self.task = name, SMALL

    def condition(self, model, task=None):
        return SimpleNamespace(prior=f"{model} of {self.name}, taught")


def test_models_share_the_weight_of_their_candidate_and_those_without_one_are_left_alone():
    candidates, drawn = [Conditioned(name) for name in "abc"], [Draws(("m", "n")), Draws(("o",)), Draws(("p",), 1)]
    draws, mixture = condition_all(candidates, np.array([0.6, 0.0, 0.4]), drawn)
    assert [one.models for one in draws] == [("m of a, taught", "n of a, taught"), ("o",), ("p of c, taught",)]
    assert draws[2].n_stand_ins == 1
    np.testing.assert_allclose(mixture.weights, [0.3, 0.3, 0.4])
    assert [one.prior for one in mixture.posteriors] == [model for one in (draws[0], draws[2]) for model in one.models]
    assert mixture.imputation_weights is None
    # other weights where values are imputed, by which another has a part
    draws, mixture = condition_all(candidates, np.array([0.6, 0.0, 0.4]), drawn, np.array([0.5, 0.5, 0.0]))
    np.testing.assert_allclose(mixture.weights, [0.3, 0.3, 0.0, 0.4])
    np.testing.assert_allclose(mixture.imputation_weights, [0.25, 0.25, 0.5, 0.0])
    _, alone = condition_all(candidates, np.array([0.0, 1.0, 0.0]), drawn)
    assert alone.prior == "o of b, taught"


def test_the_likelihood_of_a_mixture_is_the_mean_of_its_members():
    drawn = (Draws(("m",), 2), Draws(("n",), 3), Draws(("o",), 5))
    models = FittedModels((), (), np.array([0.25, 0.0, 0.75]), drawn, None)
    models.__dict__["fits"] = tuple(SimpleNamespace(log_likelihood=value) for value in (-1.0, 50.0, -2.5))
    assert models.log_likelihood == pytest.approx(np.log(0.25 * np.exp(-1.0) + 0.75 * np.exp(-2.5)))
    assert models.n_stand_ins == 7
