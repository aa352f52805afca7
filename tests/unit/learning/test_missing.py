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
from spectralgp.kernels import WithResidual
from spectralgp.learning import Lagrangian, Sqp, expectations, missing
from spectralgp.learning.draws import hyperparameter_draws
from spectralgp.learning.expectations import CompletedHoles
from spectralgp.learning.missing import objective_of
from spectralgp.signals import read_signals
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
    objective = objective_of(task, fit.model, CompletedHoles(task, None))
    x = objective.point(fit.model)
    best = log_marginal_likelihood(fit.model, INPUTS, task.signals.values)
    assert relative_error(fit.log_likelihood, best) < EXACT
    rng = np.random.default_rng(0)
    for _ in range(30):
        nearby = x + 0.02 * objective.units * rng.standard_normal(x.size)
        if all(np.all(one.rows @ nearby >= 0) for one in objective.positivity(nearby)):
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
    value, error = CompletedHoles.of(task).log_likelihood(fit.model)
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


def test_the_papers_algorithm_learns_from_holes():
    fit = learn(task_of("10%", prior=None, noise_variance=0.1), Polynomial(2), solver=Lagrangian())
    exact = learn(task_of("10%", prior=None, noise_variance=0.1), Polynomial(2))
    assert abs(fit.log_likelihood - exact.log_likelihood) < 1.0


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
    assert CompletedHoles.of(task).n_draws is None
    assert CompletedHoles.of(task, is_coarse=True).n_draws == 4  # more than eight are missing
    assert CompletedHoles.of(task).missing_share == pytest.approx(n_missing / n_values)
    limit = n_missing * n_values * sum(shape)
    monkeypatch.setattr(expectations, "MAX_EXACT_OPERATIONS", limit)
    assert CompletedHoles.of(task).n_draws is None
    monkeypatch.setattr(expectations, "MAX_EXACT_OPERATIONS", limit - 1)
    assert CompletedHoles.of(task).n_draws == 8
    assert CompletedHoles.of(task, is_coarse=True).n_draws == 4
    assert [expectations.count_of(number) for number in (1, 2)] == ["1 draw", "2 draws"]


def test_few_holes_are_completed_exactly_in_coarse_fits_too():
    signals = SIGNALS.copy()
    signals.flat[:8] = np.nan
    task = dataclasses.replace(task_of("30%"), signals=read_signals(signals))
    assert CompletedHoles.of(task, is_coarse=True).n_draws is None
    signals.flat[8] = np.nan
    task = dataclasses.replace(task, signals=read_signals(signals))
    assert CompletedHoles.of(task, is_coarse=True).n_draws == 4
