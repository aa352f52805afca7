"""The door to learning: families, progress, options."""

import dataclasses

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cases import GRAPHS
from spectralgp import LocalAverage
from spectralgp.learning import Sqp, Task, learn, learn_all
from spectralgp.model.kernels import Diffusion, Identity, Polynomial, with_residual
from tolerances import OPTIMUM

SIGNALS = np.cumsum(np.random.default_rng(0).standard_normal((6, 7)), axis=1)
GRAPH = GRAPHS["random"]
TASK = Task.of(GRAPH, None, np.empty((6, 0)), SIGNALS - SIGNALS.mean())
LISTS = {
    "degrees": [Polynomial(2), Polynomial(0), Polynomial(4)],
    "twice the same": [Polynomial(1), Polynomial(1)],
    "two families": [Polynomial(2), Polynomial(3, laplacian="normalized"), Polynomial(1, "interval")],
    "mixed": [Identity(), Polynomial(2), Diffusion(), LocalAverage(), Polynomial(1)],
    "paths that part": [Polynomial(degree) + Polynomial(2) for degree in (0, 1, 2)],
    "unconstrained": [Polynomial(1, None), Polynomial(2)],
}


def learn_on(task, kernels, solver=None, warm_starts=None):
    return learn_all([task] * len(kernels), kernels, solver, warm_starts)


# what stages there are is at stake, not what they achieve
@pytest.mark.parametrize("name", LISTS)
def test_every_stage_is_told(name, listener):
    fits = learn_on(TASK, LISTS[name])
    # those that kernels share are told once, and what is refined at the end of a kernel's path with them
    stages = {stage.name for fit in fits for stage in fit.stages}
    assert set(listener.steps) == stages
    assert len(listener.steps) >= len(stages)


@pytest.mark.parametrize("name", LISTS)
def test_learning_together_is_learning_one_by_one(name):
    """Sharing a continuation changes the cost, not the answers, nor their order."""
    together = learn_on(TASK, LISTS[name])
    for kernel, fit in zip(LISTS[name], together, strict=True):
        alone = learn(TASK, kernel)
        assert type(fit.model.graph_kernel) is type(kernel)
        assert (fit.model.graph_kernel.laplacian, fit.model.graph_kernel.scaled) == (kernel.laplacian, kernel.scaled)
        np.testing.assert_array_equal(fit.model.graph_kernel.theta, alone.model.graph_kernel.theta)
        assert fit.log_posterior == alone.log_posterior


OTHER = Task.of(GRAPH, None, np.empty((6, 0)), 1.1 * SIGNALS - SIGNALS.mean())


@pytest.mark.parametrize("name", LISTS)
def test_a_fit_from_a_warm_start_is_the_cold_one_for_less(name):
    """Signals that are almost the same have almost the same maximum."""
    cold = learn_on(OTHER, LISTS[name])
    warm = learn_on(OTHER, LISTS[name], warm_starts=learn_on(TASK, LISTS[name]))
    for one, other in zip(cold, warm, strict=True):
        assert other.converged
        assert abs(one.log_posterior - other.log_posterior) < OPTIMUM * SIGNALS.size
        assert len(other.stages) == 1
    assert sum(fit.n_evaluations for fit in warm) < sum(fit.n_evaluations for fit in cold)


def test_every_kernel_with_a_warm_start_is_told(listener):
    kernels = LISTS["mixed"]
    warm_starts = learn_on(TASK, kernels)
    listener.steps.clear()
    learn_on(OTHER, kernels, warm_starts=warm_starts)
    assert sorted(listener.steps) == sorted(kernel.label for kernel in kernels)


def test_kernels_are_learnt_each_on_its_task():
    """Those of one family share a continuation only where they share a task."""
    kernels, tasks = [Polynomial(2), Polynomial(1), Polynomial(1)], [TASK, OTHER, TASK]
    for task, kernel, fit in zip(tasks, kernels, learn_all(tasks, kernels), strict=True):
        assert fit.log_posterior == learn(task, kernel).log_posterior


def test_one_warm_start_of_a_family_is_as_good_as_none():
    kernels = [Polynomial(2), Polynomial(1)]
    cold, warm = learn_on(OTHER, kernels), learn_on(OTHER, kernels, warm_starts=[learn(TASK, kernels[0]), None])
    assert [fit.stages for fit in cold] == [fit.stages for fit in warm]


@pytest.mark.parametrize("is_silent", [True, False])
def test_a_start_that_leads_nowhere_is_given_up_for_a_cold_one(is_silent):
    """A filter of zero has no slope; one iteration converges from no solution but its own."""
    kernels = LISTS["degrees"]
    starts, solver = learn_on(TASK, kernels), Sqp() if is_silent else Sqp(max_iterations=1)
    if is_silent:
        model = dataclasses.replace(starts[0].model, graph_kernel=Polynomial(2).with_theta([0.0, 0.0, 0.0]))
        starts[0] = dataclasses.replace(starts[0], model=model)
    cold, warm = learn_on(OTHER, kernels, solver), learn_on(OTHER, kernels, solver, starts)
    for one, other in zip(cold, warm, strict=True):
        np.testing.assert_array_equal(one.model.graph_kernel.theta, other.model.graph_kernel.theta)
        assert one.stages == other.stages


def test_evaluations_are_those_of_the_stages():
    fit = learn(TASK, Polynomial(3))
    assert [stage.name for stage in fit.stages] == [f"Polynomial({degree})" for degree in range(4)]
    assert fit.n_evaluations == sum(stage.n_evaluations for stage in fit.stages) > 0


RNG = np.random.default_rng(8)
INPUTS = RNG.uniform(-2, 2, (12, 2))
EXPLAINED = np.sin(INPUTS @ RNG.standard_normal((2, 7))) + np.cumsum(0.3 * RNG.standard_normal((12, 7)), axis=1)


def explained(prior):
    """Signals that two inputs explain in part, and neighbours share in part."""
    return Task.of(GRAPH, RBF(1.0), INPUTS, EXPLAINED - EXPLAINED.mean(), prior=prior)


@pytest.mark.parametrize(
    ("prior", "kernel", "n_evaluations"),
    [
        ("weak", Polynomial(2), 45),
        ("weak", with_residual(Polynomial(2), Polynomial(2)), 31),
        ("weak", Polynomial(2, None), 119),
        ("weak", Diffusion(), 84),
        (None, Polynomial(2), 60),
        (None, with_residual(Polynomial(2), Polynomial(2)), 49),
        (None, Polynomial(2, None), 108),
    ],
)
def test_learning_takes_few_evaluations(prior, kernel, n_evaluations):
    """A tenth more evaluations of the likelihood than it takes where this was written."""
    fit = learn(explained(prior), kernel)
    assert fit.converged
    assert fit.n_evaluations <= 1.1 * n_evaluations


@pytest.mark.parametrize(
    ("prior", "kernel", "least", "most"),
    [
        ("weak", Polynomial(2), 0.0, 1e-6),
        ("weak", with_residual(Polynomial(2), Polynomial(2)), 1e-3, 0.3),
        (None, Polynomial(2), 1e-4, 0.01),
        (None, with_residual(Polynomial(2), Polynomial(2)), 1e-4, 0.01),
    ],
)
def test_forms_on_the_way_are_learnt_as_far_as_they_must(prior, kernel, least, most):
    """With a prior and a residual they only lead to the next; without a prior they decide which maximum that is."""
    task, forms = explained(prior), kernel.search().path()
    stages = learn(task, kernel).stages
    short = [learn(task, one).log_posterior - stage.log_posterior for one, stage in zip(forms, stages, strict=True)]
    assert least <= max(short[:-1]) <= most
    assert min(short) > -1e-6
    assert short[-1] == 0.0


def test_a_given_filter_is_a_start_of_the_last_form_alone():
    """The forms on the way are those of the kernel without it."""
    task, given = explained("weak"), Polynomial(1).with_theta(np.array([1.0, -0.5]))
    plain, begun = (learn(task, Polynomial(3) + part).stages for part in (Polynomial(1), given))
    assert [stage.n_evaluations for stage in begun[1:-1]] == [stage.n_evaluations for stage in plain[1:-1]]


def test_a_coarse_fit_is_as_near_to_its_maximum_as_was_asked_for():
    """Three tenths of a nat, or a hundredth for each signal; a solver that has a tolerance keeps it."""
    assert Sqp().coarse().tolerance_nats == Sqp().coarse(29).tolerance_nats == 0.3
    assert Sqp().coarse(100).tolerance_nats == 1.0
    assert Sqp(tolerance_nats=0.02).coarse(100) == Sqp(tolerance_nats=0.02)
    assert Sqp(n_restarts=3).coarse(tolerance_nats=0.7) == Sqp(tolerance_nats=0.7)
    kernel, task = with_residual(Polynomial(2), Polynomial(2)), explained("weak")
    exact, coarse = learn(task, kernel), learn(task, kernel, solver=Sqp().coarse())
    assert exact.detail.startswith("stationary within")
    assert (coarse.converged, coarse.detail) == (True, "no step promises more")
    assert 1e-4 < exact.log_posterior - coarse.log_posterior < 0.3
    assert coarse.certificate.stationarity > exact.certificate.stationarity
    assert coarse.n_evaluations < exact.n_evaluations


def test_a_solver_is_a_value():
    """Equal settings are one key, and nobody changes those of another."""
    assert {Sqp(): 1}[Sqp(500)] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        Sqp().random_state = 3


def test_an_unknown_solver_is_refused():
    with pytest.raises(ValueError, match=r"solver must be one of 'sqp'; got 'newton'"):
        learn(TASK, Polynomial(1), solver="newton")
    with pytest.raises(ValueError, match=r"got 'lagrangian'.*Algorithm 1 is in .*pass solver=Lagrangian\(\)"):
        learn(TASK, Polynomial(1), solver="lagrangian")


def test_a_degree_in_words_is_refused():
    with pytest.raises(ValueError, match="degree must be an integer to evaluate a polynomial; got 'auto'"):
        learn(TASK, Polynomial("auto"))


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"signals": np.full((6, 7), np.inf)}, ValueError, "signals must be finite or NaN; got inf"),
        ({"inputs": np.full((6, 1), np.inf)}, ValueError, "inputs must be finite; got inf"),
        (
            {"signals": np.ones((7, 6))},
            ValueError,
            r"signals must have shape .* n_signals = 6 and n_nodes = 7; got \(7, 6\)",
        ),
        ({"prior": "strong"}, ValueError, "prior must be one of 'weak'; got 'strong'"),
        ({"noise_variance": -1e-3}, ValueError, "noise_variance must be a finite number above 0; got -0.001"),
        (
            {"noise_variance": (0.0, 1.0)},
            ValueError,
            r"noise_variance must be .* bounds \(low, high\) with 0 < low < high",
        ),
        ({"spectrum": None}, TypeError, r"spectrum must be Exact\(\) or Chebyshev\(...\); got None"),
        ({"graph": np.zeros((7, 7))}, TypeError, "graph must be a Graph; got ndarray. Convert it with as_graph"),
        ({"input_kernel": "rbf"}, TypeError, "kernel must be a scikit-learn kernel"),
    ],
)
def test_a_task_that_cannot_be_learnt_is_refused_at_the_door(change, kind, message):
    given = {"graph": GRAPH, "input_kernel": None, "inputs": np.empty((6, 0)), "signals": SIGNALS} | change
    with pytest.raises(kind, match=message):
        Task.of(**given)


def test_learning_takes_a_task_and_a_kernel():
    with pytest.raises(TypeError, match="task must be a Task; got Graph"):
        learn(GRAPH, Polynomial(1))
    with pytest.raises(TypeError, match=r"graph_kernel must .*; got 'polynomial'"):
        learn(TASK, "polynomial")
