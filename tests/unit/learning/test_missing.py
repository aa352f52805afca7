"""Expectation-maximisation: where it ends, what it says of itself, and that nothing depends on luck."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import RBF

import oracle
from oracle import relative_error
from spectralgp import (
    Chebyshev,
    Diffusion,
    Graph,
    Identity,
    LocalAverage,
    Polynomial,
    Task,
    graph_gp,
    learn,
    log_marginal_likelihood,
)
from spectralgp.learning import Sqp, expectations, missing
from spectralgp.learning.draws import hyperparameter_draws
from spectralgp.learning.expectations import LatentExpectation, MissingValueExpectation
from spectralgp.learning.fit import Outcome
from spectralgp.learning.missing import objective_of
from spectralgp.model.fields import ObservationModel, PartialObservations, seen_about
from spectralgp.model.fields.sites import FINAL, ROUGH, STEP
from spectralgp.model.kernels import WithResidual
from spectralgp.model.likelihoods import NegativeBinomial, Poisson, parameter_slopes
from spectralgp.model.signals import read_signals
from tolerances import EXACT, ITERATIVE, NATS, STANDARD_ERRORS

N_SIGNALS, N_NODES = 24, 20
RNG = np.random.default_rng(0)
GRAPH = Graph.from_points(RNG.random((N_NODES, 2)), 5)
INPUTS = RNG.standard_normal((N_SIGNALS, 2))
TRUTH = graph_gp(GRAPH, Polynomial.from_coefficients([2.0, -3.0, 1.2]), RBF(2.0), 0.1)
SIGNALS = TRUTH.sample(INPUTS, 1, RNG, include_noise=True)[0]


def observed(name: str) -> np.ndarray:
    mask = np.ones(SIGNALS.shape, dtype=bool)
    if name.endswith("%"):
        return np.random.default_rng(1).random(SIGNALS.shape) >= float(name[:-1]) / 100
    if name == "outages":
        for node, start in ((1, 0), (4, 8), (9, 3), (15, 12)):
            mask[start : start + 10, node] = False
    if name == "nodes":
        mask[:, [2, 11]] = False
    return mask


def task_of(name: str, kernel: RBF | None = None, **settings) -> Task:
    task = Task.of(GRAPH, kernel or RBF(1.0), INPUTS, SIGNALS, **settings)
    return dataclasses.replace(task, signals=read_signals(np.where(observed(name), SIGNALS, np.nan)))


MASKS = ("10%", "30%", "50%", "80%", "outages", "nodes")


@pytest.mark.parametrize("name", MASKS)
def test_draws_end_where_exact_completions_do(name, monkeypatch):
    """The bar: within 0.05 nats of the exact maximum, by the exact evidence of both ends."""
    kernel, task = Polynomial(2), task_of(name)
    exact = learn(task, kernel)
    monkeypatch.setattr(expectations, "MAX_EXACT_OPERATIONS", 0)
    drawn = learn(task, kernel)
    assert exact.method.startswith("exact, ")
    assert "draws, " in drawn.method
    assert exact.converged
    assert drawn.converged
    assert drawn.probe_error == exact.probe_error == 0.0  # the evidence is exact even where completions are not
    assert abs(exact.log_posterior - drawn.log_posterior) < NATS


@pytest.mark.parametrize("name", ["30%", "outages"])
def test_an_exact_fit_is_a_maximum_of_the_evidence(name):
    """No small step from it gains more than the fit says that another would."""
    task, kernel = task_of(name, prior=None), Polynomial(2)
    fit = learn(task, kernel)
    objective = objective_of(task, fit.model, MissingValueExpectation(task, None))
    x = objective.point(fit.model)
    best = log_marginal_likelihood(fit.model, INPUTS, task.signals.values)
    assert relative_error(fit.log_likelihood, best) < EXACT
    rng = np.random.default_rng(0)
    for _ in range(30):
        nearby = x + 0.02 * objective.units * rng.standard_normal(x.size)
        if all(np.all(one.response(nearby) >= 0) for one in objective.positivity(nearby)):
            form, theta, noise = objective.split(nearby)
            model = dataclasses.replace(
                fit.model, graph_kernel=form, input_kernel=task.input_kernel.with_theta(theta), noise_variance=noise
            )
            assert log_marginal_likelihood(model, INPUTS, task.signals.values) < best + NATS / 5


def test_plain_steps_end_within_a_thousandth_of_a_nat_of_the_maximum(monkeypatch):
    """The maximum is found by another search of the evidence; with little observed, a step leaves most of the way."""
    monkeypatch.setattr(missing, "MAX_EXTRAPOLATION", 0.0)  # which would hide a stop that comes too early
    inputs, signals = INPUTS[:12], np.where(observed("80%"), SIGNALS, np.nan)[:12]
    task = Task.of(GRAPH, RBF(2.0, "fixed"), inputs, SIGNALS[:12], prior=None)
    fit = learn(dataclasses.replace(task, signals=read_signals(signals)), Identity())
    assert fit.converged

    def evidence(logarithms: np.ndarray) -> float:
        amplitude, noise = np.exp(logarithms)
        return log_marginal_likelihood(graph_gp(GRAPH, Identity(amplitude), RBF(2.0), noise), inputs, signals)

    end = np.log([fit.model.graph_kernel.amplitude, fit.model.noise_variance])
    assert relative_error(evidence(end), fit.log_likelihood) < EXACT
    highest = -minimize(lambda logarithms: -evidence(logarithms), end, method="BFGS").fun
    assert 0 <= highest - fit.log_likelihood < 1e-3


def test_the_error_of_a_stochastic_evidence_is_stated():
    """Nothing is left to learn, and moments of the density are exact: all of the error is that of the determinant."""
    kernel = Polynomial.from_coefficients([2.0, -3.0, 1.2], fixed=True)
    settings = {"noise_variance": 0.1, "prior": None, "spectrum": Chebyshev(n_probes="exact", n_moments=65)}
    task = task_of("50%", RBF(2.0, "fixed"), **settings)
    fit = learn(task, kernel)
    value, error = MissingValueExpectation.of(task).log_likelihood(fit.model)
    assert relative_error(fit.log_likelihood, value) < ITERATIVE
    assert relative_error(fit.probe_error, error) < ITERATIVE
    assert error > 0
    seen = observed("50%").ravel()
    node = oracle.polynomial(oracle.laplacian(GRAPH.weights.toarray(), scaled=True), [2.0, -3.0, 1.2])
    matrix = oracle.covariance(oracle.rbf(INPUTS, INPUTS, 2.0), node, 0.1)[np.ix_(seen, seen)]
    assert abs(value - oracle.log_density(SIGNALS.ravel()[seen], 0.0, matrix)) < STANDARD_ERRORS * error


def test_fits_repeat():
    task = task_of("30%")
    first, again = learn(task, Polynomial(2)), learn(task, Polynomial(2))
    np.testing.assert_array_equal(first.model.graph_kernel.theta, again.model.graph_kernel.theta)
    assert first.log_likelihood == again.log_likelihood


@pytest.mark.parametrize(
    "kernel",
    [
        Polynomial(3, constraint="interval"),
        Polynomial(2, laplacian="normalized", scaled=False),
        WithResidual.of(Polynomial(2), Polynomial(1)),
        Diffusion(),
        LocalAverage(),
        Identity(),
    ],
    ids=lambda kernel: kernel.label,
)
def test_every_kind_of_kernel_learns_from_holes(kernel):
    """Few holes: the fit is near that of complete signals, and better than that is on what was observed."""
    task = task_of("10%")
    fit, complete = learn(task, kernel), learn(Task.of(GRAPH, RBF(1.0), INPUTS, SIGNALS), kernel)
    assert fit.converged
    assert "values missing" in fit.method
    assert complete.method == "every value was observed"
    of_complete = log_marginal_likelihood(complete.model, INPUTS, task.signals.values)
    assert fit.log_likelihood > of_complete - 1.0
    np.testing.assert_allclose(fit.model.noise_variance, complete.model.noise_variance, rtol=0.3)


def test_a_rough_fit_stops_early():
    task = task_of("50%")
    rough, fine = (learn(task, Polynomial(2), solver=solver) for solver in (Sqp().coarse(), Sqp()))
    assert len(rough.stages) < len(fine.stages)
    assert rough.log_posterior > fine.log_posterior - 3.0


def test_more_draws_are_made_where_they_cost_too_much(monkeypatch):
    monkeypatch.setattr(expectations, "MAX_EXACT_OPERATIONS", 0)
    few, many = (learn(task_of(name), Polynomial(2)) for name in ("10%", "80%"))
    assert int(few.method.split()[0]) < int(many.method.split()[0])


def test_steps_that_run_out_are_told():
    """A step for every five iterations that the solver may take, so that the remedy is one."""
    fit = learn(task_of("80%"), Polynomial(2), solver=Sqp(max_iterations=20))
    assert not fit.converged
    assert "another step would gain" in fit.message
    assert "Raise max_iterations" in fit.message
    assert len(fit.stages) == 2 + 20 / 5  # two are the first fits, of the simplest form and of this one


def test_draws_of_hyperparameters_know_what_is_missing():
    """Half the values say less of the noise than all of them, by about the root of two."""
    spreads = []
    for task in (Task.of(GRAPH, RBF(1.0), INPUTS, SIGNALS), task_of("50%")):
        fit = learn(task, Polynomial(1))
        models = hyperparameter_draws(task, fit, 200, np.random.default_rng(0)).models
        spreads.append(np.std([np.log(model.noise_variance) for model in models]))
    assert 1.2 < spreads[1] / spreads[0] < 2.2


def test_the_objective_of_complete_signals_is_the_plain_one():
    task = Task.of(GRAPH, RBF(1.0), INPUTS, SIGNALS)
    fit = learn(task, Polynomial(1))
    assert objective_of(task, fit.model).complete is None


@pytest.mark.parametrize(
    ("size", "n_draws"),
    [(1, 1_024), (2_048, 1_024), (4_096, 512), (2**18, 8), (2**19, 8), (2**20, 8), (2**20 + 1, (2, 1))],
)
def test_there_are_no_more_draws_than_memory_is_meant_for(size, n_draws):
    """Two million values of all, but eight draws while these are eight million; of more two, or one with passes."""
    for place, needs_passes in enumerate((False, True)):
        spectrum = SimpleNamespace(needs_passes=needs_passes)
        task = SimpleNamespace(signals=SimpleNamespace(shape=(1, size)), spectrum=spectrum)
        assert expectations.max_draws(task) == (n_draws if isinstance(n_draws, int) else n_draws[place])


def test_holes_are_completed_exactly_where_that_is_cheap(monkeypatch):
    task = task_of("30%")
    n_values, shape = task.signals.observed.size, task.signals.shape
    n_missing = n_values - task.signals.size
    assert MissingValueExpectation.of(task).n_draws is None
    assert MissingValueExpectation.of(task, is_coarse=True).n_draws == 4  # more than eight are missing
    assert MissingValueExpectation.of(task).missing_share == pytest.approx(n_missing / n_values)
    limit = n_missing * n_values * sum(shape)
    monkeypatch.setattr(expectations, "MAX_EXACT_OPERATIONS", limit)
    assert MissingValueExpectation.of(task).n_draws is None
    monkeypatch.setattr(expectations, "MAX_EXACT_OPERATIONS", limit - 1)
    assert MissingValueExpectation.of(task).n_draws == 8
    assert MissingValueExpectation.of(task, is_coarse=True).n_draws == 4
    assert [expectations.count_of(number) for number in (1, 2)] == ["1 draw", "2 draws"]


def test_few_holes_are_completed_exactly_in_coarse_fits_too():
    signals = SIGNALS.copy()
    signals.flat[:8] = np.nan
    task = dataclasses.replace(task_of("30%"), signals=read_signals(signals))
    assert MissingValueExpectation.of(task, is_coarse=True).n_draws is None
    signals.flat[8] = np.nan
    task = dataclasses.replace(task, signals=read_signals(signals))
    assert MissingValueExpectation.of(task, is_coarse=True).n_draws == 4


class Line:
    """An objective without constraints, whose models are points."""

    units, bounds = np.ones(2), np.array([[-1e3, 1e3], [-1e3, 4.0]])

    def __init__(self, precision=None) -> None:
        self.known = precision

    def precision(self, x):
        return self.known

    def positivity(self, x):
        return ()

    def model(self, x):
        return x


def steps_of(matrix: np.ndarray, end: np.ndarray, start: np.ndarray, number: int) -> list[missing._Step]:
    """Steps that leave a share of the way, each from the end of the one before."""
    found, x = [], start
    for _ in range(number):
        after = end + matrix @ (x - end)
        fit = SimpleNamespace(model=after)
        found.append(missing._Step(x, after, fit, 1.0, False, None, None))
        x = after
    return found


def searching(objective) -> missing._ExpectationMaximisation:
    search = object.__new__(missing._ExpectationMaximisation)
    search.objective, search.expectation = objective, SimpleNamespace(ahead=None, n_draws=16, missing_share=0.4)
    search.is_coarse, search.reach = False, 1.0
    return search


@pytest.mark.parametrize("precision", [None, np.array([[2.0, 0.3], [0.3, 0.7]])])
def test_extrapolation_finds_the_end_of_steps_that_leave_a_share_of_the_way(precision):
    """Exactly in two dimensions after three steps, and in one after two."""
    search, end = searching(Line(precision)), np.array([0.7, -1.3])
    history = steps_of(np.array([[0.8, 0.1], [0.05, 0.6]]), end, np.array([3.0, 2.0]), 3)
    np.testing.assert_allclose(search._extrapolated(history), end, atol=1e-6)
    history = steps_of(0.8 * np.eye(2), end, np.array([3.0, 2.0]), 2)
    np.testing.assert_allclose(search._extrapolated(history), end, atol=1e-9)
    assert search._extrapolated(history[:1]) is history[0].fit.model


def test_extrapolation_goes_no_further_than_twenty_steps_and_the_bounds():
    search, end = searching(Line()), np.array([0.7, -1.3])
    history = steps_of(0.99 * np.eye(2), end, np.array([3.0, 2.0]), 2)  # 99 steps are left
    last = history[-1]
    np.testing.assert_allclose(search._extrapolated(history), last.after + 20 * (last.after - last.before), rtol=1e-6)
    history = steps_of(0.8 * np.eye(2), np.array([0.7, 9.0]), np.array([3.0, 2.0]), 2)
    np.testing.assert_allclose(search._extrapolated(history), [0.7, 4.0], atol=1e-9)


def test_what_is_known_of_the_way_ahead_is_gone_as_far_as_it_reaches():
    search, reached = searching(Line()), []
    search.expectation = SimpleNamespace(ahead=np.array([5.0, 1.0]), lengthen=reached.append)
    search.reach = 0.25
    history = steps_of(0.8 * np.eye(2), np.array([0.7, -1.3]), np.array([3.0, 2.0]), 1)
    after = history[0].after
    np.testing.assert_allclose(search._extrapolated(history), after + 0.25 * (np.array([5.0, 1.0]) - after))
    assert reached == [0.25]


def test_an_extrapolation_that_breaks_a_constraint_is_shortened(monkeypatch):
    """By half and by half again, as long as a filter would have to be lifted by more than a hundredth."""
    search, last = searching(Line()), steps_of(0.8 * np.eye(2), np.zeros(2), np.array([3.0, 2.0]), 1)[0]
    for lift_at, share in ((9.0, 1.0), (0.7, 0.5), (0.3, 0.25), (0.1, 0.0)):
        monkeypatch.setattr(
            missing, "lift_above_zero", lambda _, x, a=lift_at: (x, 0.0101 if x[0] - last.after[0] > a else 0.01)
        )
        found = search._moved(search.objective, last, np.array([1.0, -0.5]))
        np.testing.assert_allclose(found, last.after + share * np.array([1.0, -0.5]))


def test_a_step_is_astray_where_more_is_left_than_before():
    last = missing._Step(None, None, None, 1.0, False, 2.0, None)
    for left, is_astray in ((3.0, False), (3.1, True)):
        assert missing._is_astray(dataclasses.replace(last, left_nats=left), last) is is_astray
    for step in (dataclasses.replace(last, left_nats=None), last):
        before = dataclasses.replace(last, left_nats=None) if step is last else last
        assert not missing._is_astray(dataclasses.replace(step, gain=1.0), before)
        assert missing._is_astray(dataclasses.replace(step, gain=1.1), before)


@pytest.mark.parametrize(("size", "n_draws"), [(0.0199, 16), (0.0201, 32), (0.05, 48), (1.0, 960), (2.0, 1_024)])
def test_draws_grow_as_far_as_their_gradients_differ(size, n_draws, monkeypatch):
    """Half the trace of the spread of the mean gradient over the precision, and more the more is missing."""
    precision, rng = np.array([[2.0, 0.3], [0.3, 0.7]]), np.random.default_rng(0)
    gradients = rng.standard_normal((8, 2))
    gradients -= gradients.mean(axis=0)
    spread = sum(np.outer(one, one) for one in gradients) / 7 / 8
    gradients *= np.sqrt(size * (1 - 0.4) / (0.5 * np.trace(np.linalg.solve(precision, spread))))
    search, told = searching(Line(precision)), []
    deviations = rng.standard_normal((16, 1, 2))

    @dataclasses.dataclass
    class Part:
        signals: object

    def completed(values, scaled):
        told.append(scaled)
        return SimpleNamespace(values=values)

    search.objective.task = Part(SimpleNamespace(values=None, deviations=deviations))
    search.objective.graph_kernel = search.objective.spectrum = None
    search.task = SimpleNamespace(signals=SimpleNamespace(completed=completed, shape=(1, 2)), spectrum=None)
    following = iter(gradients)
    fake = SimpleNamespace(evaluate=lambda x: (0.0, next(following)))
    monkeypatch.setattr(missing, "Objective", lambda *_: fake)
    assert search._has_enough_draws(np.zeros(2)) is (n_draws == 16)
    assert search.expectation.n_draws == n_draws
    np.testing.assert_allclose(np.concatenate(told), deviations * np.sqrt(8))


def test_solves_of_completions_are_as_fine_as_their_cost_in_nats_allows(monkeypatch):
    """Of the mean by the square for each value; of draws as they are; each goes on from the last solutions."""
    expectation, asked, told = MissingValueExpectation(task_of("30%"), 3), [], []
    draws, about = PartialObservations.draws, expectations.seen_about

    def recorded(self, n_draws, random_state, start, tolerance):
        asked.append((n_draws, None if start is None else len(start), tolerance))
        return draws(self, n_draws, random_state, start, tolerance)

    def iterative(*given, **how):
        told.append(how)
        return about(*given, **how, most_dense=-1)

    monkeypatch.setattr(PartialObservations, "draws", recorded)
    monkeypatch.setattr(expectations, "seen_about", iterative)
    monkeypatch.setattr(expectations, "MIN_SOLVE_TOLERANCE", 1e-9)
    for is_far in (True, False, True):
        expectation.completed(TRUTH, is_far)
    energy = np.sum(np.square(SIGNALS), where=observed("30%")) / 0.1
    coarse = pytest.approx(np.sqrt(0.01 / energy))
    assert asked == [(2, None, coarse), (3, 3, coarse), (2, 2, coarse)]
    fine = np.sqrt(3e-6 / np.count_nonzero(observed("30%")))
    assert told == [{"tolerance": pytest.approx(fine)}] * 3
    monkeypatch.setattr(expectations, "MIN_SOLVE_TOLERANCE", 0.1)
    expectation.completed(TRUTH)
    assert told[-1] == {"tolerance": 0.1}
    assert asked[-1] == (3, 3, 0.1)


def test_one_draw_completes_signals_without_their_mean():
    """A prior draw, moved by what it misses of the values: on average the mean, about it the covariance."""
    task = task_of("30%")
    expectation = MissingValueExpectation(task, 1)
    found = expectation.completed(TRUTH).signals
    seen = seen_about(0.0, TRUTH.covariance(TRUTH.rows(INPUTS)), task.signals)
    prior = seen.drawn(np.random.default_rng(0))
    expected = prior + seen.filled(SIGNALS - prior)[0]
    assert relative_error(found.values, expected) < 1e-3
    assert len(found.deviations) == 0
    again = expectation.completed(TRUTH).signals  # from the solution that it found
    assert relative_error(again.values, found.values) < 1e-3


class Scripted(missing._ExpectationMaximisation):
    """The loop alone: what steps gain is written down, and models are names."""

    def __init__(self, gains, tolerance=1e-3, left=None, draws=(), restarts=(), max_steps=20, share=0.5) -> None:
        self.gains, self.left, self.enough, self.higher = iter(gains), left, iter(draws), iter(restarts)
        self.max_steps, self.tolerance_nats, self.reach = max_steps, tolerance, 1.0
        self.expectation = SimpleNamespace(has_parameters=False, missing_share=share, likelihood="first")
        self.asked, self.histories, self.reaches = [], [], []

    def _first_fit(self, warm_start, near):
        return SimpleNamespace(outcome=Outcome.CONVERGED, model="start")

    def _step(self, model, fit, is_far, solver=None):
        number = len(self.asked)
        self.asked.append((model, is_far))
        gain = next(self.gains)
        left = None if self.left is None else gain * self.left
        found = SimpleNamespace(model=f"fit {number}")
        return missing._Step(None, None, found, gain, is_far, left, f"likelihood {number}")

    def _extrapolated(self, history):
        self.histories.append([step.gain for step in history])
        self.reaches.append(self.reach)
        return f"after {history[-1].fit.model}"

    def _has_enough_draws(self, x):
        return next(self.enough, True)

    def _restarted(self, fit):
        return next(self.higher, None)

    def _finished(self, fit, outcome, detail):
        return fit.model, outcome, detail


def test_steps_end_where_what_is_left_is_within_the_tolerance():
    """By the share that is missing, or by how gains fall where that is more, at most by 0.98."""
    for gains, number in (
        ([0.004, 0.0004, 0.0], 2),  # a half is missing: as much is left as was gained
        ([0.0004, 0.0], 1),
        ([0.00051, 0.0, 0.0], 2),
        ([0.004, 0.00049, 0.0], 2),
        ([0.004, 0.0004, 0.00035, 0.0], 2),
        ([0.02, 0.005, 0.003, 0.0024, 0.0001, 0.0], 5),
        ([0.0006, 0.0004, 0.0001, 0.0], 3),  # the gain falls by a third: the share of the way by 0.82
        ([0.1, 0.00002, 0.1], 2),
        ([0.0006, 0.0006, 0.000019, 0.0], 3),
        ([-0.1, 0.1, 0.0], 1),
    ):
        search = Scripted(gains)
        model, outcome, _ = search.fit(SimpleNamespace(model="warm"))
        assert outcome is Outcome.CONVERGED
        assert len(search.asked) == number, gains
        assert model == f"fit {number - 1}"
        assert not any(is_far for _, is_far in search.asked)
    equal = Scripted([0.0006] * 30)
    assert equal.fit(SimpleNamespace(model="warm"))[1:] == (
        Outcome.NOT_STATIONARY,
        "another step would gain 0.0006 nats",
    )
    assert len(equal.asked) == 20
    little = Scripted([0.00002, 0.00002])  # 0.98 at most: fifty times as much is left
    assert little.fit(SimpleNamespace(model="warm"))[1] is Outcome.CONVERGED
    known = Scripted([0.002, 0.0009, 0.0], left=1.1)
    known.fit(SimpleNamespace(model="warm"))
    assert len(known.asked) == 2


@pytest.mark.parametrize(("tolerance", "limit"), [(1e-3, 10.0), (3.0, 30.0)])
def test_completions_are_rough_until_a_step_gains_little_and_never_again(tolerance, limit):
    gains = [100.0, limit + 0.1, limit, limit + 5.0, 0.0]
    search = Scripted(gains, tolerance)
    search.fit(None)
    assert [is_far for _, is_far in search.asked] == [True, True, True, False, False]
    assert search.histories[-1] == [limit + 5.0]  # without the steps that were far
    near = Scripted([100.0, 0.0])
    near.fit(None, near="model")
    assert [is_far for _, is_far in near.asked] == [False, False]
    far = Scripted([0.0, 0.0])  # a step that is far is not the last
    far.fit(None)
    assert [is_far for _, is_far in far.asked] == [True, False]


def test_an_extrapolation_that_led_astray_is_taken_back():
    """The next step begins where it began; of the way ahead a quarter is gone, and then twice as much each time."""
    search = Scripted([9.0, 5.0, 6.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    search.fit(SimpleNamespace(model="warm"))
    models = [model for model, _ in search.asked]
    assert models[:5] == ["start", "after fit 0", "after fit 1", "fit 1", "after fit 3"]
    assert search.expectation.likelihood == "likelihood 1"
    assert search.histories == [[9.0], [9.0, 5.0], [4.0], [4.0, 3.0], [4.0, 3.0, 2.0], [4.0, 3.0, 2.0, 1.0]]
    assert search.reaches == [1.0, 1.0, 0.5, 1.0, 1.0, 1.0]
    long = Scripted([9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 0.0])
    long.fit(SimpleNamespace(model="warm"))
    assert long.histories[-1] == [7.0, 6.0, 5.0, 4.0, 3.0, 2.0]  # five, and the last


def test_more_draws_and_higher_restarts_begin_anew():
    search = Scripted([0.5, 0.0, 0.3, 0.0, 0.2, 0.0], draws=[False], restarts=[SimpleNamespace(model="higher")])
    assert search.fit(SimpleNamespace(model="warm"))[1] is Outcome.CONVERGED
    models = [model for model, _ in search.asked]
    assert models == ["start", "after fit 0", "fit 1", "after fit 2", "higher", "after fit 4"]
    assert search.histories == [[0.5], [0.3], [0.2]]


def test_there_is_a_step_for_every_five_iterations_and_one_at_least():
    for max_iterations, max_steps in ((500, 100), (24, 4), (25, 5), (3, 1)):
        search = missing._ExpectationMaximisation(task_of("30%"), Polynomial(1), Sqp(max_iterations=max_iterations))
        assert search.max_steps == max_steps
    assert search.tolerance_nats == 1e-3
    assert search.reach == 1.0
    assert not search.is_coarse
    coarse = Sqp().coarse()
    search = missing._ExpectationMaximisation(task_of("30%"), Polynomial(1), coarse)
    assert search.is_coarse
    assert search.tolerance_nats == coarse.tolerance_nats > 1e-3


# Latent signals


def latent_task(likelihood, **settings) -> Task:
    rng = np.random.default_rng(4)
    values = rng.poisson(np.exp(SIGNALS[:5])).astype(float)
    values[rng.random(values.shape) < 0.2] = np.nan
    task = Task.of(GRAPH, RBF(1.0), INPUTS[:5], SIGNALS[:5], **settings)
    ones = np.ones(values.shape)
    observed_by = ObservationModel.of(likelihood, ones, ones[None], values, has_intercept=True)
    return dataclasses.replace(task, signals=read_signals(values), observed_by=observed_by)


class Hill(Line):
    """A quadratic objective, with a note of the noise that its information is asked for."""

    bounds = np.array([[-1e3, 1e3], [-1e3, 1e3]])

    def __init__(self, precision, slope) -> None:
        super().__init__(precision)
        self.slope, self.noises = slope, []

    def precision(self, x, noise):
        self.noises.append(noise)
        return self.known

    def positivity(self, x, coarse=False):
        return ()

    def evaluate(self, x):
        return 0.0, self.slope


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial()], ids=["poisson", "negative binomial"])
def test_where_a_step_would_lead_is_newtons_step_with_the_noise_of_sites(likelihood):
    """Equation (41); with the logarithm of a likelihood's own parameter beside the others."""
    expectation = LatentExpectation(latent_task(likelihood))
    expectation.completed(dataclasses.replace(TRUTH, noise_variance=0.2))
    sites, before, slope = expectation.sites, np.array([0.3, -0.4]), np.array([5.0, -2.0])
    precision = np.array([[20.0, 3.0], [3.0, 7.0]])
    hill, whole, all_slopes = Hill(precision, slope), precision, slope
    if likelihood.parameters:
        seen, used = sites.observations.observed, sites.observations.likelihood
        law = sites.observations.values[seen], sites.mean[seen], sites.variance[seen], np.ones(seen.sum())
        own, curvature = parameter_slopes(used, ("dispersion",), *law)
        whole = np.zeros((3, 3))
        whole[:2, :2], whole[2, 2], all_slopes = precision, curvature[0, 0], np.append(slope, own)
    step = np.linalg.solve(whole, all_slopes)
    expectation.settle(hill, before, before + 1.0, 5.0)
    assert hill.noises == [pytest.approx(1 / np.mean(sites.terms[2]))]
    np.testing.assert_allclose(expectation.left_nats, 0.5 * all_slopes @ step, rtol=1e-6)
    np.testing.assert_allclose(expectation.ahead, before + step[:2], rtol=1e-6)
    first = expectation.likelihood
    expectation.lengthen(0.25)
    if likelihood.parameters:
        target = np.log(used.dispersion) + step[2]
        here, there = np.log(first.dispersion), np.log(expectation.likelihood.dispersion)
        assert there == pytest.approx(here + 0.25 * (target - here))
    expectation.settle(hill, before, before + 1.0, 1e-4 - expectation.gain)
    assert expectation.left_nats == pytest.approx(1e-4 / 0.02)  # no more than fifty times the gain
    expectation.settle(Hill(None, slope), before, before, 5.0)
    assert expectation.ahead is None
    assert expectation.left_nats is None


def test_sites_are_rough_until_a_step_gains_a_tenth_of_a_nat(monkeypatch):
    efforts, expectation = [], LatentExpectation(latent_task(Poisson()))
    expectation.completed(TRUTH)
    found = expectation.sites
    monkeypatch.setattr(expectations, "find_sites", lambda *given: efforts.append(given[-1]) or found)
    for gain in (5.0, 0.11, 0.1, 5.0):
        expectation.completed(TRUTH)
        expectation.settle(Hill(np.eye(2), np.ones(2)), np.zeros(2), np.zeros(2), gain)
    expectation.completed(TRUTH)
    expectation.log_likelihood(TRUTH)
    assert efforts == [ROUGH, ROUGH, ROUGH, STEP, STEP, FINAL]
    learns = LatentExpectation(latent_task(NegativeBinomial()))
    found = dataclasses.replace(
        found, observations=dataclasses.replace(found.observations, likelihood=NegativeBinomial(0.3))
    )
    learns.completed(TRUTH)
    assert efforts[-1] == STEP
    assert learns.finished(TRUTH).likelihood.dispersion == learns.likelihood.dispersion
    assert (learns.names, learns.gain) == ((), 0.0)


def test_deviations_of_latent_signals_are_as_many_as_operations_allow(monkeypatch):
    """Eight at least; on a large graph they are draws, solved as finely as the tolerance in nats says."""
    asked = []

    def deviating(n_draws, random_state, start, tolerance):
        asked.append((n_draws, start, tolerance))
        return np.full((n_draws, 5, N_NODES), 3.0), "solutions"

    nothing = np.zeros((1, 5, N_NODES))
    sites = SimpleNamespace(
        observations=None,
        image=nothing[0],
        deviating=deviating,
        field_factors=np.full((1, 5, N_NODES), 7.0),
        deviations=lambda most, _: asked.append(most) or nothing,
    )
    monkeypatch.setattr(LatentExpectation, "_found", lambda *_: sites)
    expectation = LatentExpectation(latent_task(Poisson()))
    expectation.completed(TRUTH)
    monkeypatch.setattr(expectations, "MAX_SPREAD_OPERATIONS", 5**2 * N_NODES * 11 + 1)
    expectation.completed(TRUTH)
    monkeypatch.setattr(expectations, "MAX_SPREAD_OPERATIONS", 5**2 * N_NODES * 7)
    expectation.completed(TRUTH)
    assert asked == [2**26 // (25 * N_NODES), 11, 8]
    assert expectation.tolerance_nats == 0.012
    large = LatentExpectation(latent_task(Poisson(), spectrum=Chebyshev()))
    for _ in range(2):
        found = large.completed(TRUTH).signals
    tolerance = pytest.approx(np.sqrt(large.tolerance_nats / large.signals.size))
    assert large.tolerance_nats == max(0.1, 0.1 * large.task.spectrum.tolerance * large.signals.size)
    assert asked[3:] == [(64, None, tolerance), (64, "solutions", tolerance)]
    np.testing.assert_allclose(found.deviations[:-1], 3.0 / 8.0)
    np.testing.assert_allclose(found.deviations[-1], 7.0)  # of the fixed effects
