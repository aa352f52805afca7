"""Certificates of points that are made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from cases import GRAPHS
from spectralgp.learning import Outcome, Task, learn
from spectralgp.learning.fit import certify
from spectralgp.learning.objective import Objective
from spectralgp.model.kernels import Polynomial, with_residual
from spectralgp.model.spectra import decompose

SIGNALS = np.random.default_rng(0).standard_normal((6, 7))


@pytest.mark.parametrize("constraint", ["eigenvalues", "interval"])
@pytest.mark.parametrize(("share", "active"), [(1e-3, ()), (1e-5, ()), (1e-7, ("filter at 1",)), (0, ("filter at 1",))])
def test_a_filter_touches_zero_within_a_millionth_of_its_largest_value(constraint, share, active):
    """A line from one at zero to some share of it at one."""
    spectrum = decompose(GRAPHS["random"], scaled=True)
    task = Task.of(GRAPHS["random"], None, np.empty((6, 0)), SIGNALS)
    objective = Objective(task, Polynomial(1, constraint), spectrum)
    x = objective.join(np.array([1 + share, share - 1]) / 2, np.empty(0), 0.3)
    certificate = certify(objective, x)
    assert certificate.active == active
    assert len(certificate.multipliers) == len(active)
    assert certificate.feasibility == 0.0


@pytest.fixture(scope="module")
def fit():
    return learn(
        Task.of(GRAPHS["random"], None, np.empty((6, 0)), SIGNALS), with_residual(Polynomial(1), Polynomial(0))
    )


@pytest.mark.parametrize(("floor", "is_at_bound"), [(0.0, True), (1.4, True), (1.6, False)])
def test_noise_is_at_its_bound_unless_most_of_it_is_the_floor_of_the_residual(fit, floor, is_at_bound):
    active = ("filter at 1", "noise_variance at its lower bound")
    kernel = replace(fit.model.graph_kernel, floor=floor)
    model = replace(fit.model, graph_kernel=kernel, noise_variance=3.0)
    lowest = replace(fit, model=model, certificate=replace(fit.certificate, active=active))
    assert lowest.is_noise_at_bound is is_at_bound
    assert not replace(lowest, certificate=replace(fit.certificate, active=active[:1])).is_noise_at_bound


def test_a_fit_is_shifted_with_all_that_it_says_of_densities(fit):
    restarted = replace(fit, restarts=(-3.0, -np.inf))
    moved = restarted.shifted(2.5)
    assert moved.log_likelihood == fit.log_likelihood + 2.5
    assert moved.log_posterior == fit.log_posterior + 2.5
    assert moved.restarts == (-0.5, -np.inf)
    assert [stage.log_posterior for stage in moved.stages] == [stage.log_posterior + 2.5 for stage in fit.stages]
    assert (moved.n_evaluations, moved.model) == (fit.n_evaluations, fit.model)


@pytest.mark.parametrize("outcome", Outcome)
def test_every_way_to_end_has_a_remedy_unless_it_ended_well(fit, outcome):
    ended = replace(fit, outcome=outcome, detail="it stopped")
    is_well = outcome in (Outcome.CONVERGED, Outcome.NOTHING_TO_LEARN)
    assert ended.converged is is_well
    assert ended.message == "it stopped" if is_well else ended.message.startswith("it stopped. ")
    assert len({replace(fit, outcome=one).message for one in Outcome}) == 6


def test_a_bound_is_one_within_a_billionth():
    """Of its size, or of one where that is less."""
    spectrum = decompose(GRAPHS["random"], scaled=True)
    task = replace(Task.of(GRAPHS["random"], None, np.empty((6, 0)), SIGNALS), noise_variance=(np.exp(-7.0), 2.0))
    objective = Objective(task, Polynomial(1), spectrum)
    for away, active in ((6.9e-9, ("noise_variance at its lower bound",)), (7.1e-9, ())):
        x = np.array([1.0, 0.0, -7.0 + away])
        assert certify(objective, x).active == active
    for away, active in ((0.9e-9, ("noise_variance at its upper bound",)), (1.1e-9, ())):
        x = np.array([1.0, 0.0, np.log(2.0) - away])
        assert certify(objective, x).active == active
