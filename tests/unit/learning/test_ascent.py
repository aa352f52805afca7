"""Steps of an ascent against the conditions of optimality, and updates against their defining equations."""

import numpy as np
import pytest
from scipy.optimize import nnls

import oracle
from spectralgp.learning import Certificate, Outcome
from spectralgp.learning.fit import active_constraints, certify, lift_above_zero
from spectralgp.learning.sqp import _quadratic_program, certified_outcome, maximise, updated
from spectralgp.model.kernels import Positivity
from tolerances import EXACT


@pytest.mark.parametrize("seed", range(20))
def test_a_quadratic_program_is_solved(seed):
    """Random ones with the origin feasible, of which several constraints bind."""
    rng = np.random.default_rng(seed)
    size, n_rows = 5, 12
    factor = rng.standard_normal((size, size)) * 10.0 ** rng.uniform(-1, 2, size)
    precision = factor @ factor.T + 0.1 * np.eye(size)
    gradient, rows = 100 * rng.standard_normal(size), rng.standard_normal((n_rows, size))
    least = -rng.uniform(0, 0.5, n_rows)
    root = np.linalg.inv(np.linalg.cholesky(precision)).T
    step = _quadratic_program(root, gradient, rows, least)
    slacks = rows @ step - least
    assert np.min(slacks) > -1e-10
    # the model is concave, so the conditions of optimality, with multipliers of binding constraints, suffice
    multipliers, residual = nnls(rows[slacks < 1e-9].T, precision @ step - gradient)
    assert np.count_nonzero(multipliers) > 0
    assert residual < 1e-7 * np.linalg.norm(gradient)


def test_a_free_step_is_newtons():
    rng = np.random.default_rng(0)
    factor, gradient = rng.standard_normal((4, 4)), rng.standard_normal(4)
    precision = factor @ factor.T
    root = np.linalg.inv(np.linalg.cholesky(precision)).T
    expected = np.linalg.solve(precision, gradient)
    for rows, least in ((np.empty((0, 4)), np.empty(0)), (np.eye(4), expected - 1.0)):
        assert oracle.relative_error(_quadratic_program(root, gradient, rows, least), expected) < 1e-10


@pytest.mark.parametrize("curvature", [2.0, 1e-3, -1.0])
def test_an_update_is_that_of_powell(curvature):
    """The secant equation where the curvature is positive enough, and positive definite whatever it is."""
    rng = np.random.default_rng(0)
    factor, step = rng.standard_normal((4, 4)), rng.standard_normal(4)
    precision = factor @ factor.T + np.eye(4)
    expected = float(step @ precision @ step)
    change = curvature * precision @ step
    found = updated(precision, step, change)
    assert np.linalg.eigvalsh(found)[0] > 0
    # 0.2 is Powell's constant
    assert oracle.relative_error(step @ found @ step, max(curvature, 0.2) * expected) < EXACT
    if curvature > 0.2:
        assert oracle.relative_error(found @ step, change) < EXACT


class Parabola:
    """A concave parabola between bounds, of which filters may have to be positive."""

    has_information = True

    def __init__(self, top, curvature, low=-np.inf, high=np.inf, level=0.0, filters=()):
        self.top, self.curvature, self.level, self.filters = np.array(top, float), np.array(curvature), level, filters
        self.bounds = np.stack([np.full(self.top.size, low), np.full(self.top.size, high)], axis=1)
        self.units, self.size = np.ones(self.top.size), 10
        self.parameter_names = tuple(f"p{number}" for number in range(self.top.size))

    def evaluate(self, x):
        away = x - self.top
        return self.level - 0.5 * float(away @ self.curvature @ away), -self.curvature @ away

    def precision(self, x):
        return self.curvature

    def positivity(self, x, coarse=False):
        return self.filters


CURVED = np.array([[2.0, 0.6], [0.6, 1.0]])


@pytest.mark.parametrize("level", [0.0, -40.0, 1e9])
def test_an_ascent_ends_at_the_top(level):
    """In steps of a unit at most, so that one that is eight units away takes more than eight."""
    x, value, outcome, detail = maximise(Parabola([3.0, -8.0], CURVED, level=level), np.zeros(2), 100)
    np.testing.assert_allclose(x, [3.0, -8.0], atol=1e-3 if level == 1e9 else 1e-6)
    assert value == pytest.approx(level, abs=1e-5)
    assert (outcome, detail) == (Outcome.CONVERGED, "no step promises more")
    _, value, outcome, detail = maximise(Parabola([3.0, -8.0], CURVED), np.zeros(2), 7)
    assert (outcome, detail) == (Outcome.NOT_STATIONARY, "iteration limit reached")
    assert -0.5 * np.array([3, -8]) @ CURVED @ [3, -8] < value < -0.1


def test_an_ascent_between_bounds_ends_where_it_is_pressed_against_them():
    """The first parameter at its upper bound, the second at its best given that, by hand."""
    objective = Parabola([3.0, 0.0], CURVED, -1.0, 1.0)
    x, value, outcome, _ = maximise(objective, np.array([-9.0, 9.0]), 100)
    assert outcome is Outcome.CONVERGED
    np.testing.assert_allclose(x, [1.0, 1.0], atol=1e-9)  # 0.6 * 2 = 1.2 would be beyond
    assert value == pytest.approx(-0.5 * (2 * 4 - 2 * 0.6 * 2 + 1))
    certificate = certify(objective, x)
    assert certificate.active == ("p0 at its upper bound", "p1 at its upper bound")
    np.testing.assert_allclose(certificate.multipliers, [4 - 0.6, 1.2 - 1.0], rtol=1e-9)
    assert max(certificate.stationarity, certificate.feasibility, certificate.complementarity) < 1e-9
    loose = certify(objective, np.array([1.0, 0.5]))
    assert loose.active == ("p0 at its upper bound",)
    assert loose.stationarity == pytest.approx(1.2 - 0.5)
    inside = certify(objective, np.array([0.5, 0.5]))
    assert (inside.active, inside.stationarity) == ((), pytest.approx(2 * 2.5 - 0.3))


class Wrong(Parabola):
    """A parabola whose gradient points downhill."""

    def evaluate(self, x):
        value, gradient = super().evaluate(x)
        return value, -gradient


@pytest.mark.parametrize("start", [1.0, 1e20], ids=["cut too often", "swallowed by rounding"])
def test_an_ascent_that_no_step_leads_up_says_so(start):
    x, _, *ended = maximise(Wrong([3.0, -8.0], CURVED), np.full(2, start), 100)
    assert (x.tolist(), *ended) == ([start] * 2, Outcome.NOT_STATIONARY, "no step leads up")


def test_an_ascent_with_a_tolerance_stops_where_a_step_promises_less():
    objective = Parabola([0.3, 0.0], np.eye(2))
    x, value, outcome, _ = maximise(objective, np.zeros(2), 100, tolerance_nats=0.1)
    assert (x.tolist(), outcome) == ([0.0, 0.0], Outcome.CONVERGED)  # which promises 0.09
    assert value == pytest.approx(-0.045)
    x, *_ = maximise(objective, np.zeros(2), 100, tolerance_nats=0.08)
    np.testing.assert_allclose(x, [0.3, 0.0], atol=1e-9)


def test_nothing_is_learnt_of_no_parameters():
    found = maximise(Parabola([], np.empty((0, 0)), level=2.5), np.empty(0), 100)
    assert found[1:] == (2.5, Outcome.NOTHING_TO_LEARN, "nothing to learn: every hyperparameter is fixed")


class Counting(Parabola):
    """A parabola that counts how often its curvature is asked for, and notes where it is evaluated."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.n_precisions, self.points = 0, []

    def evaluate(self, x):
        self.points.append(x.copy())
        return super().evaluate(x)

    def precision(self, x):
        self.n_precisions += 1
        return super().precision(x)


@pytest.mark.parametrize(("top", "n_precisions"), [(3.16, 1), (3.17, 2)])
def test_the_curvature_is_taken_anew_after_a_step_that_promised_ten_nats(top, n_precisions):
    objective = Counting([top], np.eye(1))
    objective.units = np.full(1, 10.0)
    assert maximise(objective, np.zeros(1), 100)[0] == pytest.approx([top])
    assert objective.n_precisions == n_precisions


@pytest.mark.parametrize(("bend", "points"), [(4.0, [0, 1, 0.25]), (100.0, [0, 1, 0.1, 0.01])])
def test_a_step_that_is_too_long_is_cut_to_the_top_of_a_parabola_within_reason(bend, points):
    """Of a curvature that is taken for one: to a tenth of the step at least."""
    objective = Counting([1 / bend], np.array([[bend]]))
    objective.precision = lambda x: np.eye(1)
    maximise(objective, np.zeros(1), 1)
    np.testing.assert_allclose(np.ravel(objective.points)[: len(points)], points, atol=1e-9)


def filters_at(*rows):
    return (Positivity(np.linspace(0.0, 1.0, len(rows)), np.array(rows, float), np.array([1.0, 0.0])),)


def test_an_ascent_keeps_filters_above_zero():
    """A line over the spectrum whose best is negative at its end: it ends on zero there."""
    objective = Parabola([1.0, -3.0], np.eye(2), filters=filters_at([1, 0], [1, 0.5], [1, 1]))
    x, _, outcome, _ = maximise(objective, np.array([1.0, 0.0]), 100)
    assert outcome is Outcome.CONVERGED
    np.testing.assert_allclose(x, [2.0, -2.0], atol=1e-6)
    rows, slacks, names, feasibility = active_constraints(objective, np.array([2.0, -2.0]))
    assert (rows.tolist(), slacks.tolist(), names, feasibility) == ([[1, 1]], [0.0], ("filter at 1",), 0.0)
    certificate = certify(objective, np.array([2.0, -2.0]))
    np.testing.assert_allclose(certificate.multipliers, [1.0])
    assert certificate.stationarity < 1e-12


def test_an_ascent_from_below_zero_begins_at_the_nearest_point_that_is_not():
    """A constant kept, and the slope: from minus one at the end of the spectrum the nearest is half-way between."""
    objective = Counting([9.0, 0.0], np.eye(2), filters=filters_at([1, 0], [1, 1]))
    maximise(objective, np.array([1.0, -2.0]), 1)
    np.testing.assert_allclose(objective.points[0], [1.5, -1.5], atol=1e-9)
    allowed = Counting([9.0, 0.0], np.eye(2), filters=filters_at([1, 0], [1, 1]))
    maximise(allowed, np.array([2.0, -1.0]), 1)
    np.testing.assert_array_equal(allowed.points[0], [2.0, -1.0])


def test_no_step_takes_a_filter_from_well_above_zero_to_less_than_a_fifth():
    """The top is far below zero; a filter that nearly touches it may go there at once."""
    objective = Counting([-50.0, 0.0], np.eye(2), filters=filters_at([1, 0], [1, 1]))
    objective.units = np.full(2, 100.0)
    maximise(objective, np.array([10.0, 0.0]), 2)
    np.testing.assert_allclose(objective.points[:3], [[10.0, 0.0], [2.0, 0.0], [0.4, 0.0]], atol=1e-9)


@pytest.mark.parametrize("size", [1e-7, 1.0, 1e7])
def test_a_quadratic_program_has_no_scale(size):
    rng = np.random.default_rng(3)
    root, rows, gradient = np.diag([0.5, 1.0, 2.0]), rng.standard_normal((5, 3)), rng.standard_normal(3)
    least = rows @ np.array([0.3, -0.2, 0.4]) - rng.uniform(0, 0.3, 5)  # which that step satisfies
    expected = _quadratic_program(root, gradient, rows, least)
    assert np.min(rows @ expected - least) == pytest.approx(0.0, abs=1e-9)
    found = _quadratic_program(root, size * gradient, rows, size * least)
    np.testing.assert_allclose(found / size, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("stationarity", "feasibility", "outcome"),
    [(0.02, 1e-12, Outcome.CONVERGED), (0.0201, 0.0, Outcome.NOT_STATIONARY), (0.0, 1.1e-12, Outcome.NOT_STATIONARY)],
)
def test_a_search_is_judged_by_its_certificate(stationarity, feasibility, outcome):
    """A thousandth of the gradient's deviation over draws, the root of 400 observations."""
    certificate = Certificate(stationarity, feasibility, 0.0, 0.0, ())
    found, detail = certified_outcome(certificate, 400, Outcome.NOT_STATIONARY, "it stopped", met_tolerance=False)
    assert found is outcome
    if outcome is Outcome.CONVERGED:
        assert detail == "stationary within 0.02"
    else:
        assert detail == f"it stopped; stationarity {stationarity:.2g} exceeds 0.02"
    for own, met in ((Outcome.NOTHING_TO_LEARN, False), (Outcome.CONVERGED, True)):
        assert certified_outcome(certificate, 400, own, "it stopped", met) == (own, "it stopped")


def test_filters_below_zero_are_measured_by_their_largest_value_and_lifted():
    objective = Parabola([0.0, 0.0], np.eye(2), filters=filters_at([1, 0], [1, 1]))
    x = np.array([4.0, -5.0])  # four at one end, and one below zero at the other
    _, slacks, names, feasibility = active_constraints(objective, x)
    assert (slacks.tolist(), names, feasibility) == ([-1.0], ("filter at 1",), 0.25)
    lifted, lift = lift_above_zero(objective, x)
    assert lifted[1] == -5.0
    assert lifted[0] == pytest.approx(5.0)
    assert lifted.sum() > 0
    assert lift == pytest.approx(0.25)
    safe = np.array([4.0, -3.0])
    assert lift_above_zero(objective, safe)[1] == 0.0
    np.testing.assert_array_equal(lift_above_zero(objective, safe)[0], safe)
    np.testing.assert_array_equal(lift_above_zero(objective, np.zeros(2))[0], np.zeros(2))
