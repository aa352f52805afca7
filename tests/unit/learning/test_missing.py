"""Expectation-maximisation: where it ends, what it says of itself, and that nothing depends on luck."""

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
    NegativeBinomial,
    Poisson,
    Polynomial,
    Task,
    graph_gp,
    learn,
    log_marginal_likelihood,
)
from spectralgp.learning import Sqp, missing
from spectralgp.learning.draws import hyperparameter_draws
from spectralgp.learning.missing import (
    LatentExpectation,
    MissingValueExpectation,
    learn_incomplete,
    objective_of,
    with_evidence,
)
from spectralgp.model.fields import ObservationModel, partial_observations
from spectralgp.model.kernels import WithResidual
from spectralgp.model.likelihoods import parameter_slopes
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


# where this was written: steps with exact completions, steps with draws, and how many draws these ended with
COSTS = {"10%": (5, 5, 8), "30%": (6, 10, 31), "50%": (8, 11, 90), "80%": (16, 24, 535), "outages": (6, 6, 8)}
COSTS["nodes"] = (6, 9, 19)


@pytest.mark.parametrize("name", COSTS)
def test_draws_end_where_exact_completions_do(name, monkeypatch):
    """The bar: within 0.05 nats of the exact maximum, by the exact evidence of both ends; and in as few steps."""
    kernel, task = Polynomial(2), task_of(name)
    exact = learn(task, kernel)
    monkeypatch.setattr(missing, "MAX_EXACT_OPERATIONS", 0)
    by_draws = MissingValueExpectation.of(task)
    drawn = with_evidence(task, learn_incomplete(task, kernel, Sqp(), expectation=by_draws))
    costs = len(exact.stages), len(drawn.stages), int(drawn.method.split()[0])
    np.testing.assert_allclose(costs, COSTS[name], rtol=0.2)
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
def test_every_kind_of_kernel_learns_from_missing_values(kernel):
    """Few missing values: the fit is near that of complete signals, and better than that is on what was observed."""
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
        assert missing.max_draws(task) == (n_draws if isinstance(n_draws, int) else n_draws[place])


def test_missing_values_are_completed_exactly_where_that_is_cheap(monkeypatch):
    task = task_of("30%")
    n_values, shape = task.signals.observed.size, task.signals.shape
    n_missing = n_values - task.signals.size
    assert MissingValueExpectation.of(task).n_draws is None
    assert MissingValueExpectation.of(task, is_coarse=True).n_draws == 4  # more than eight are missing
    assert MissingValueExpectation.of(task).missing_share == pytest.approx(n_missing / n_values)
    limit = n_missing * n_values * sum(shape)
    monkeypatch.setattr(missing, "MAX_EXACT_OPERATIONS", limit)
    assert MissingValueExpectation.of(task).n_draws is None
    monkeypatch.setattr(missing, "MAX_EXACT_OPERATIONS", limit - 1)
    assert MissingValueExpectation.of(task).n_draws == 8
    assert MissingValueExpectation.of(task, is_coarse=True).n_draws == 4
    assert [missing.count_of(number) for number in (1, 2)] == ["1 draw", "2 draws"]


def test_few_missing_values_are_completed_exactly_in_coarse_fits_too():
    signals = SIGNALS.copy()
    signals.flat[:8] = np.nan
    task = dataclasses.replace(task_of("30%"), signals=read_signals(signals))
    assert MissingValueExpectation.of(task, is_coarse=True).n_draws is None
    signals.flat[8] = np.nan
    task = dataclasses.replace(task, signals=read_signals(signals))
    assert MissingValueExpectation.of(task, is_coarse=True).n_draws == 4


def test_a_rough_fit_on_a_large_graph_takes_one_draw():
    """By the exact evidence it costs about half a parameter's nats times missing over observed information."""
    task = task_of("30%", spectrum=Chebyshev(n_probes="exact"))
    assert MissingValueExpectation.of(task, is_coarse=True).n_draws == 1
    assert MissingValueExpectation.of(task).n_draws == 8
    rough, fine = learn_incomplete(task, Polynomial(2), Sqp().coarse()), learn(task_of("30%"), Polynomial(2))
    exact = dataclasses.replace(rough.model, spectrum=fine.model.spectrum)
    assert log_marginal_likelihood(exact, INPUTS, task.signals.values) > fine.log_likelihood - 3.0


def test_one_draw_completes_signals_without_their_mean():
    """A prior draw, moved by what it misses of the values: on average the mean, about it the covariance."""
    task = task_of("30%")
    expectation = MissingValueExpectation(task, 1)
    found = expectation.completed(TRUTH).signals
    seen = partial_observations(0.0, TRUTH.covariance(TRUTH.rows(INPUTS)), task.signals)
    prior = seen.drawn(np.random.default_rng(0))
    expected = prior + seen.completed(SIGNALS - prior)[0]
    assert relative_error(found.values, expected) < 1e-3
    assert len(found.deviations) == 0
    again = expectation.completed(TRUTH).signals  # from the solution that it found
    assert relative_error(again.values, found.values) < 1e-3


# Latent signals


def latent_task(likelihood, **settings) -> Task:
    rng = np.random.default_rng(4)
    values = rng.poisson(np.exp(SIGNALS[:5])).astype(float)
    values[rng.random(values.shape) < 0.2] = np.nan
    task = Task.of(GRAPH, RBF(1.0), INPUTS[:5], SIGNALS[:5], **settings)
    ones = np.ones(values.shape)
    observed_by = ObservationModel.of(likelihood, ones, ones[None], values, has_intercept=True)
    return dataclasses.replace(task, signals=read_signals(values), observed_by=observed_by)


class Hill:
    """A quadratic objective without constraints, with a note of the noise that its information is asked for."""

    units, bounds = np.ones(2), np.array([[-1e3, 1e3], [-1e3, 1e3]])

    def __init__(self, precision, slope, has_information=True) -> None:
        self.known, self.slope, self.noises, self.has_information = precision, slope, [], has_information

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
    expectation.settle(Hill(np.eye(2), slope, has_information=False), before, before, 5.0)
    assert expectation.ahead is None
    assert expectation.left_nats is None
