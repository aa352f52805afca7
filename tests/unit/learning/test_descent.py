"""Gradient descent with the paper's rule for the learning rate."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from cases import GRAPHS, bound
from spectralgp.learning import Limits, Task
from spectralgp.learning.lagrangian import MAX_STEP, RATES, FilterProblem, descend, learning_rate
from spectralgp.learning.objective import Objective
from spectralgp.model.kernels import Polynomial
from tolerances import GRADIENT

EVERYTHING = np.arange(1)


def parabola(curvature):
    return lambda x: (0.5 * float(curvature @ x**2), curvature * x)


@pytest.mark.parametrize("curvature", [0.3, 1.0, 1.9, 2.1, 30.0, 150.0, 1e4])
def test_learning_rate_is_the_largest_power_of_ten_that_descends(curvature):
    """Steps on a parabola descend up to a rate of 2 over its curvature."""
    rate = learning_rate(parabola(np.array([curvature])), np.array([0.1]), EVERYTHING)
    assert rate == 10.0 ** np.floor(np.log10(2 / curvature))


def test_learning_rate_leaps_no_further_than_the_longest_step():
    """A slope of 20 at rate 1 would leap by 20."""
    line = lambda x: (20 * float(x[0]), np.array([20.0]))  # noqa: E731
    rate = learning_rate(line, np.zeros(1), EVERYTHING)
    assert rate * 20 <= MAX_STEP < 10 * rate * 20


def test_learning_rate_is_the_smallest_where_nothing_descends():
    uphill = lambda x: (-float(x[0]), np.array([1.0]))  # noqa: E731 (a wrong gradient)
    assert learning_rate(uphill, np.zeros(1), EVERYTHING) == RATES[-1]


def test_each_group_has_its_own_rate():
    function = parabola(np.array([1.0, 1.0, 300.0]))
    rates = [learning_rate(function, np.full(3, 0.1), np.array(group)) for group in ([0, 1], [2])]
    np.testing.assert_allclose(rates, [1.0, 1e-3])


def test_descent_reaches_the_minimum_of_a_parabola():
    curvature = np.array([1.0, 5.0])
    x, settled = descend(parabola(curvature), np.array([3.0, -2.0]), np.array([0.1, 0.1]), limit=1000, tolerance=1e-8)
    assert settled
    assert np.max(np.abs(curvature * x)) <= 1e-8


def test_descent_lowers_a_rate_that_does_not_descend():
    x, settled = descend(parabola(np.array([1.0])), np.array([1.0]), np.array([100.0]), limit=1000, tolerance=1e-8)
    assert settled
    assert abs(x[0]) <= 1e-8


def test_descent_stops_at_a_bound_and_calls_that_settled():
    x, settled = descend(
        parabola(np.array([1.0])),
        np.array([5.0]),
        np.array([0.5]),
        limit=100,
        tolerance=1e-9,
        bounds=(np.array([2.0]), np.array([9.0])),
    )
    assert settled
    assert x.tolist() == [2.0]


def test_descent_says_when_it_ran_out_of_steps():
    x, settled = descend(parabola(np.array([1.0])), np.array([1.0]), np.array([1e-3]), limit=10, tolerance=1e-9)
    assert not settled
    assert 0 < x[0] < 1


def test_descent_gives_up_where_no_step_descends():
    uphill = lambda x: (-float(x[0]), np.array([1.0]))  # noqa: E731
    x, settled = descend(uphill, np.zeros(1), np.ones(1), limit=1000, tolerance=1e-9)
    assert not settled
    assert x.tolist() == [0.0]


@pytest.mark.parametrize("slope", [1e-3, 0.5, 3.0])
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_slope_into_a_bound_counts_for_nothing_and_one_off_it_does(slope, sign):
    """A line that falls into a bound is at rest there; from the other bound it goes all the way."""
    line = lambda x: (sign * slope * float(x[0]), np.array([sign * slope]))  # noqa: E731
    bounds = (np.array([-1.0]), np.array([1.0]))
    for start in (-1.0, 1.0):
        x, settled = descend(line, np.array([start]), np.array([1.0]), limit=10_000, tolerance=1e-9, bounds=bounds)
        assert settled
        assert x.tolist() == [-float(sign)]
        assert descend(line, np.array([start]), np.array([1.0]), 1, 1e-9, bounds)[1] == (start == -sign)


def test_a_start_beyond_a_bound_is_brought_inside():
    x, _ = descend(
        parabola(np.ones(2)), np.array([-9.0, 9.0]), np.ones(2), 0, 1e-9, (np.full(2, -2.0), np.full(2, 3.0))
    )
    assert x.tolist() == [-2.0, 3.0]


@pytest.mark.parametrize(("slope", "rate"), [(5.0, 1.0), (5.01, 0.1), (500.0, 0.01)])
def test_a_step_of_five_is_the_longest(slope, rate):
    line = lambda x: (slope * float(x[0]), np.array([slope]))  # noqa: E731
    assert learning_rate(line, np.zeros(1), EVERYTHING) == rate


def test_five_steps_must_descend_for_a_rate_to_be_taken():
    """A function that falls for so many steps and then rises."""
    for n_falling, is_taken in ((4, False), (5, True)):
        called = []

        def function(x, called=called, n_falling=n_falling):
            called.append(1)
            return (-float(len(called)) if len(called) <= 1 + n_falling else 1.0 / len(called)), np.array([1e-3])

        assert (learning_rate(function, np.zeros(1), EVERYTHING) == RATES[0]) == is_taken


def test_a_descent_that_cannot_go_on_ends_before_its_limit():
    """A gradient that points uphill: the rate falls tenfold until rounding swallows the step."""
    called = []

    def uphill(x):
        called.append(float(x[0]))
        return -float(x[0]), np.array([1.0])

    x, settled = descend(uphill, np.array([2.0]), np.array([1.0]), limit=1000, tolerance=1e-8)
    assert (x.tolist(), settled) == ([2.0], False)
    assert called[1:4] == pytest.approx([1.0, 1.9, 1.99])
    assert 15 <= len(called) <= 18


def test_limits_are_in_proportion_to_one_number():
    assert Limits.from_iterations(500) == Limits() == Limits(3000, 1000, 500)
    assert Limits.from_iterations(7) == Limits(42, 14, 7)


@pytest.mark.parametrize("constraint", ["eigenvalues", "interval"])
def test_multipliers_stand_at_every_eigenvalue_or_all_along_the_interval(constraint):
    """Where the filter is asked to be positive everywhere, 201 points more from zero to the end of the spectrum."""
    kernel, spectrum = bound(Polynomial(2, constraint), GRAPHS["random"])
    signals = np.random.default_rng(0).standard_normal((4, 7))
    objective = Objective(Task.of(GRAPHS["random"], None, np.empty((4, 0)), signals), kernel, spectrum)
    theta = np.array([0.9, -0.3, 0.2])
    problem = FilterProblem(objective, np.eye(3), objective.join(theta, np.empty(0), 0.3))
    expected = spectrum.eigenvalues
    if constraint == "interval":
        expected = np.union1d(expected, np.linspace(0.0, spectrum.upper, 201))
    np.testing.assert_array_equal(problem.points, expected)
    response = np.polynomial.chebyshev.chebval(2 * expected / spectrum.upper - 1, theta)
    np.testing.assert_allclose(problem.rows @ problem.start, response, atol=1e-12)
    np.testing.assert_allclose(problem.whole(2 * theta)[:3], 2 * theta)
    # the Lagrangian and its slope, by differences
    multipliers = np.linspace(0.1, 0.7, expected.size)
    lagrangian = problem.lagrangian(multipliers)
    assert lagrangian(theta)[0] == pytest.approx(problem.negative(theta)[0] - multipliers @ response)
    slope = oracle.jacobian(lambda z: lagrangian(z)[0], theta, step=1e-5)
    assert oracle.relative_error(lagrangian(theta)[1], slope) < GRADIENT
