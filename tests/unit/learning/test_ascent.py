"""Steps of an ascent against the conditions of optimality, and updates against their defining equations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

import oracle
from spectralgp import Graph, Polynomial, Sqp, Task, learn
from spectralgp.learning import Certificate, Outcome, sqp
from spectralgp.learning.fit import active_constraints, certify, lift_above_zero
from spectralgp.learning.sqp import _climb, _KnownMaximum, _quadratic_program, judged, maximise, updated
from spectralgp.model.kernels import Positivity, WithResidual
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


def test_an_ascent_that_is_higher_than_a_known_maximum_goes_on():
    """Else what it had reached by then would be taken for the highest maximum, and it is none."""
    known = _KnownMaximum(np.zeros(2), 5.0, np.eye(2))
    near = np.array([0.1, 0.0])
    assert known.is_ahead(near, 4.99, 0.001)
    assert not known.is_ahead(near, 5.01, 0.001)
    assert not known.is_ahead(near + 1, 4.99, 0.001)
    assert not known.is_ahead(near, 4.99, 1.0)
    # as near as a twentieth of a nat along its parabola, and no promise of more than that above it
    assert [known.is_ahead(np.array([0.0, far]), 4.99, 0.001) for far in (0.31, 0.32)] == [True, False]
    assert [known.is_ahead(near, 4.99, promised) for promised in (0.11, 0.13)] == [True, False]
    assert _KnownMaximum(np.zeros(2), 0.0, 0.1 * np.eye(2)).is_ahead(np.array([1.0, 0.0]), 0.0, 0.1)
    steep = _KnownMaximum(np.zeros(2), 5.0, np.diag([4.0, 1.0]))
    assert [steep.is_ahead(np.array([far, 0.0]), 4.99, 0.001) for far in (0.15, 0.165)] == [True, False]


class Flat:
    """An objective that is the same everywhere."""

    units = np.ones(2)

    def evaluate(self, x):
        return 1e6, np.zeros(2)


def test_a_step_that_rounding_swallows_is_none():
    assert _climb(Flat(), np.ones(2), 1e6, np.full(2, 1e-20), 1e-20) is None


class Line:
    """A function of the share of a step of one unit that promises one nat, which notes the shares tried."""

    units = np.ones(1)

    def __init__(self, value):
        self.value, self.shares = value, []

    def evaluate(self, x):
        self.shares.append(float(x[0]))
        return self.value(float(x[0])), np.ones(1)


@pytest.mark.parametrize(
    ("value", "shares"),
    [
        (lambda share: share - 0.95 * share**2, [1.0]),
        (lambda share: 1.1e-4, [1.0]),  # a ten-thousandth of the promise is enough
        (lambda share: share - 2 * share**2, [1.0, 0.25]),  # the top of the parabola
        (lambda share: share - 50 * share**2, [1.0, 0.1, 0.01]),  # which lies further than a tenth
        (lambda share: 0.9e-4 if share == 1 else share, [1.0, 0.5]),  # or nearer than half
        (lambda share: -np.inf if share > 0.05 else share, [1.0, 0.1, 0.01]),
        (lambda share: np.nan if share > 0.05 else share, [1.0, 0.1, 0.01]),
        (lambda share: {1.0: -100.0, 0.1: 5e-6}.get(share, share), [1.0, 0.1, 0.05]),
    ],
)
def test_a_step_is_cut_to_the_top_of_a_parabola_within_reason(value, shares):
    line = Line(value)
    x, found, _ = _climb(line, np.zeros(1), 0.0, np.ones(1), 1.0)
    assert line.shares == pytest.approx(shares, rel=1e-9)
    assert (x.tolist(), found) == (line.shares[-1:], value(line.shares[-1]))


def test_a_step_that_never_leads_up_is_cut_so_often_and_no_more():
    line = Line(lambda share: -1.0)
    assert _climb(line, np.zeros(1), 0.0, np.ones(1), 1.0) is None
    assert len(line.shares) == 25


def test_points_that_rounding_misses_are_not_asked_for_again(monkeypatch):
    """Signals that are all zero drive filters to zero by steps against constraints at every one of their points."""
    solved, stepped = [], []
    solve, step = sqp._quadratic_program, sqp._Constraints.step
    monkeypatch.setattr(sqp, "_quadratic_program", lambda *arguments: solved.append(1) or solve(*arguments))
    monkeypatch.setattr(sqp._Constraints, "step", lambda *arguments: stepped.append(1) or step(*arguments))
    ring = Graph.from_edges([(node, (node + 1) % 5) for node in range(5)])
    kernel = WithResidual.of(Polynomial(2), Polynomial(2))
    learn(Task.of(ring, None, np.empty((12, 0)), np.zeros((12, 5))), kernel)
    assert len(solved) <= 2 * len(stepped)


class Parabola:
    """A concave parabola between bounds, of which filters may have to be positive."""

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


class Fickle(Counting):
    """One that rises once whenever its curvature was asked for, and at the start, and falls else."""

    def evaluate(self, x):
        self.points.append(x.copy())
        if 1 + self.n_precisions > self.level:
            self.level += 1
            return float(self.level), np.ones(1)
        return -1.0, np.ones(1)


def test_an_ascent_begins_afresh_three_times_and_then_gives_up():
    objective = Fickle([0.0], np.eye(1))
    _, value, outcome, detail = maximise(objective, np.zeros(1), 100)
    assert (outcome, detail) == (Outcome.NOT_STATIONARY, "no step leads up")
    assert (objective.n_precisions, value) == (4, 5.0)
    # the first curvature is fresh: where its step does not lead up, no other would
    flat = Fickle([0.0], np.eye(1), level=2)
    assert maximise(flat, np.zeros(1), 100)[3] == "no step leads up"
    assert flat.n_precisions == 1


def test_a_curvature_that_is_not_known_is_that_of_one_unit_per_observation():
    """Ten observations, and a parabola as steep: the first step leads to its top, in units of two."""
    objective = Counting([0.9, -1.2], np.diag([10.0, 10.0]) / 4)
    objective.units, objective.precision = np.full(2, 2.0), lambda x: None
    x, *_ = maximise(objective, np.zeros(2), 100)
    np.testing.assert_allclose(objective.points[1], [0.9, -1.2])
    np.testing.assert_allclose(x, [0.9, -1.2])


class Other:
    """A place where a search ended."""

    def __init__(self, x, value):
        self.x, self.value = np.array(x, float), value


def test_solutions_are_distinct_where_they_are_high_enough_and_apart():
    """Within 1.2 nats of the highest, and half a nat apart along the parabola of the curvature."""
    objective = Parabola([0.0, 0.0], np.diag([2.0, 1.0]))
    places = [([-1, 0], 3.9), ([1.1, 0], 4.4), ([0, 0], 5.0), ([0, 3], 3.7), ([1, 0], 4.5), ([0, 0.9], 4.9)]
    found = [Other(*place) for place in places]
    kept = sqp._distinct(objective, found, 1.2, 0.5)
    assert [one.tolist() for one in kept] == [[0, 0], [1, 0], [-1, 0]]
    objective.precision = lambda x: None
    assert len(sqp._distinct(objective, found, 1.2, 0.5)) == len(found)


class Held(Counting):
    """A parabola whose last parameter is the input kernel's; the best of the others is known for each."""

    is_of_inputs = np.array([False, True])
    wall = np.inf  # of the last, beyond which it is very low

    @property
    def task(self):
        return self

    signals = property(lambda self: self)

    def evaluate(self, x):
        value, gradient = super().evaluate(x)
        return (value if x[1] <= self.wall else -1e9), gradient

    def inputs_held(self, x):
        best = self.top[0] - self.curvature[0, 1] / self.curvature[0, 0] * (x[1] - self.top[1])
        return Parabola([best], self.curvature[:1, :1])


@pytest.mark.parametrize(("distance", "end"), [(3.5, 3.5), (30.0, 20.0)])
def test_inputs_settle_in_twenty_steps_of_a_unit(distance, end):
    """With the best of the others at each step, so that a step in a valley is as long as on a plain."""
    objective = Held([1.0, distance], CURVED)
    x = sqp._settled(objective, np.array([7.0, 0.0]), 100)
    assert x[1] == pytest.approx(end)
    assert x[0] == pytest.approx(1.0 - 0.3 * (end - distance))
    # each is tried once, and evaluated again for its gradient
    assert len({tuple(point) for point in objective.points}) == 1 + np.ceil(end)


@pytest.mark.parametrize(("distance", "n_precisions"), [(3.4, 1), (3.6, 2)])
def test_inputs_have_a_fresh_curvature_after_a_step_that_promised_ten_nats(distance, n_precisions):
    """Along the valley the curvature is 0.82, so that the step promises as much times the squared distance."""
    objective = Held([1.0, distance], CURVED)
    objective.units = np.full(2, 10.0)
    assert sqp._settled(objective, np.zeros(2), 100)[1] == pytest.approx(distance)
    assert objective.n_precisions == n_precisions


class Plateau(Held):
    """One that promises what a parabola does, and keeps little of it."""

    def evaluate(self, x):
        gradient = super().evaluate(x)[1]
        return 1e-4 * float(x[1] > 0), gradient * float(x[1] == 0)


def test_a_step_of_inputs_must_keep_a_ten_thousandth_of_what_it_promises():
    for distance, end in ((0.7, 0.7), (1.4, 0.5)):  # which promise 0.4 and, cut to a unit, 1.1 nats: half is taken
        assert sqp._settled(Plateau([0.0, distance], CURVED), np.zeros(2), 100)[1] == pytest.approx(end)


def test_several_ascents_stop_short_of_a_maximum_that_is_known():
    """The second comes to where the first ended; the third is elsewhere, and higher; the fourth comes to that."""

    class Hills(Counting):
        def evaluate(self, x):
            value, gradient = super().evaluate(x)
            return (value, gradient) if x[0] < 50 else (7.0 - 0.5 * (x[0] - 100.0) ** 2, np.array([100.0 - x[0]]))

    hills = Hills([0.0], np.eye(1))
    hills.units, starts = np.full(1, 100.0), [np.array([start]) for start in (2.0, 0.2, 97.0, 100.2)]
    found = sqp._ascents(hills, starts, 100, None)
    ends = [(one.x[0], one.detail) for one in found]
    known, searched = "on the way to a maximum that is known", "no step promises more"
    assert ends == [(0.0, searched), (0.2, known), (100.0, searched), (100.2, known)]
    hills.task = Task.of(Graph.from_edges([(0, 1)]), None, np.empty((3, 0)), np.ones((3, 2)))
    highest = Sqp()._highest(hills, starts)
    assert (highest.x.tolist(), highest.value) == ([100.0], 7.0)


def test_steps_of_inputs_are_halved_five_times():
    objective = Held([0.0, 2.0], CURVED)
    objective.wall = 0.3
    x = sqp._settled(objective, np.zeros(2), 100)
    tried = list(dict.fromkeys(float(point[1]) for point in objective.points))
    assert tried[:4] == pytest.approx([0.0, 1.0, 0.5, 0.25])  # of which the last is taken, and from there:
    assert tried[4:] == pytest.approx([1.25, 0.75, 0.375, 0.3125])  # and a half again
    assert x[1] == pytest.approx(0.25)
    # a step that promises less than what is asked for is not taken
    profile = CURVED[1, 1] - CURVED[0, 1] ** 2 / CURVED[0, 0]
    for tolerance, end in ((0.9 * profile * 0.25, 0.5), (1.1 * profile * 0.25, 0.0)):
        near = Held([0.0, 0.5], CURVED)
        assert sqp._settled(near, np.zeros(2), 100, tolerance)[1] == pytest.approx(end)


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


def test_rounding_below_zero_is_a_share_of_the_filters_largest_value():
    """A filter of 4 at one end that touches zero at the other."""
    objective = Parabola([0.0, 0.0], np.eye(2), -50.0, 50.0, filters=filters_at([1, 0], [1, 1]))
    x = np.array([4.0, -4.0])
    constraints = sqp._Constraints(objective, x)
    for fall, is_allowed in ((3.9e-12, True), (4.1e-12, False)):
        assert constraints.allow(x, np.array([0.0, -fall])) is is_allowed
    assert constraints.allow(x, np.array([46.0, 0.0]))
    assert not constraints.allow(x, np.array([46.1, 0.0]))
    assert not constraints.allow(x, np.array([0.0, -46.1]))


def test_no_step_takes_a_filter_from_well_above_zero_to_less_than_a_fifth(monkeypatch):
    """The top is far below zero; a filter that nearly touches it may go there at once."""
    objective = Counting([-50.0, 0.0], np.eye(2), filters=filters_at([1, 0], [1, 1]))
    objective.units = np.full(2, 100.0)
    maximise(objective, np.array([10.0, 0.0]), 2)
    np.testing.assert_allclose(objective.points[:3], [[10.0, 0.0], [2.0, 0.0], [0.4, 0.0]], atol=1e-9)
    for response, least in ((1.1e-3, 2.2e-4), (0.9e-3, 0.0)):
        np.testing.assert_allclose(sqp._least(np.array([1.0, response]), 1.0), [0.2, least])
    solved = []
    monkeypatch.setattr(sqp, "_quadratic_program", lambda *arguments: solved.append(1))
    free = Counting([3.0, 1.0], np.eye(2), filters=filters_at([1, 0], [1, 1]))
    assert maximise(free, np.array([1.0, 1.0]), 100)[0] == pytest.approx([3.0, 1.0])
    assert not solved  # which steps that nothing stands against need not


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
    [
        (0.02, 1e-12, Outcome.CONVERGED),
        (0.0201, 0.0, Outcome.NOT_STATIONARY),
        (0.0, 1.1e-12, Outcome.NOT_STATIONARY),
    ],
)
def test_a_search_is_judged_by_its_certificate(stationarity, feasibility, outcome):
    """A thousandth of the gradient's deviation over draws, the root of 400 observations."""
    certificate = Certificate(stationarity, feasibility, 0.0, 0.0, ())
    found, detail = judged(certificate, 400, Outcome.NOT_STATIONARY, "it stopped", met_tolerance=False)
    assert found is outcome
    if outcome is Outcome.CONVERGED:
        assert detail == "stationary within 0.02"
    else:
        assert detail == f"it stopped; stationarity {stationarity:.2g} exceeds 0.02"
    for own, met in ((Outcome.NOTHING_TO_LEARN, False), (Outcome.CONVERGED, True)):
        assert judged(certificate, 400, own, "it stopped", met) == (own, "it stopped")


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
