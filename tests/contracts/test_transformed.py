"""Models of transformed signals against plain models of the same signals: shifted by hand, or with a scaled prior."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import oracle
from oracle import relative_error
from spectralgp import Graph, Polynomial, condition, condition_shrunk, graph_gp
from spectralgp.learning import Candidate, Stacking, Task, learn_all
from spectralgp.learning.folds import Folds
from spectralgp.learning.sqp import Sqp
from spectralgp.model import fields
from spectralgp.model.kernels import WithResidual
from spectralgp.model.signals import read_signals
from tolerances import EXACT, FORMULA

N_SIGNALS, N_NODES, N_NEW, FACTOR = 9, 5, 3, 2.5
RNG = np.random.default_rng(3)
INPUTS, NEW = RNG.standard_normal((N_SIGNALS, N_NODES + 1)), RNG.standard_normal((N_NEW, N_NODES + 1))
COLUMNS = np.array([3, 0, 5, 1, 2])
SIGNALS, FURTHER = RNG.standard_normal((N_SIGNALS, N_NODES)), RNG.standard_normal((N_NEW, N_NODES))
OBSERVED = np.where(RNG.random((N_NEW, N_NODES)) < 0.4, FURTHER, np.nan)
REST = np.where(np.isnan(OBSERVED), FURTHER, np.nan)
INCOMPLETE = np.where(RNG.random(SIGNALS.shape) < 0.2, np.nan, SIGNALS)
KERNEL = WithResidual.of(Polynomial.from_coefficients([1.2, -1.5, 0.6]), Polynomial.from_coefficients([0.6, -0.4]))
PRIOR = graph_gp(Graph(oracle.random_weights(N_NODES, seed=2)), KERNEL, RBF(1.3), 0.3)
SLOPE = 3.0


@dataclass(frozen=True, eq=False)
class Scaled(fields.Transformation):
    """``a y``: the plain model with a prior of another scale, with slopes that are not one."""

    is_of_nodes, has_slopes = False, True
    described = "scaled"

    def inputs(self, given):
        return 2.0 * given

    def signals(self, given, inputs):
        return SLOPE * given

    def restored(self, seen, inputs):
        return seen / SLOPE

    def log_slopes(self, seen, inputs):
        return np.log(SLOPE) + 0.0 * seen

    def mean(self, mean, find_noisy, inputs):
        assert np.shape(find_noisy()) == mean.shape[-2:]
        return mean / SLOPE

    def variance(self, mean, variance, noisy, nodes=None):
        assert mean.shape == variance.shape == noisy.shape
        assert np.all(noisy >= variance)
        return variance / SLOPE**2

    def covariance(self, mean, covariance, noisy):
        assert covariance.shape == mean.shape * 2
        assert mean.shape == noisy.shape
        return covariance / SLOPE**2


def conditioned(prior, inputs, signals, is_shrunk):
    return (condition_shrunk if is_shrunk else condition)(prior, inputs, read_signals(signals, "node", "node"))


@pytest.fixture(params=["plain", "shrunk", "incomplete", "shrunk, incomplete"], scope="module")
def case(request):
    return "shrunk" in request.param, INCOMPLETE if "incomplete" in request.param else SIGNALS


@pytest.fixture(scope="module")
def changes(case):
    """A model of changes, the plain model of the differences, and what is added to what it says at new inputs."""
    is_shrunk, signals = case
    plain = conditioned(PRIOR, INPUTS, signals - FACTOR * INPUTS[:, COLUMNS], is_shrunk)
    return replace(plain, transformation=fields.Changes(COLUMNS, FACTOR)), plain, FACTOR * NEW[:, COLUMNS]


@pytest.fixture(scope="module")
def scaled(case):
    """A model of multiplied signals at multiplied inputs, and the plain model that it is the same as."""
    is_shrunk, signals = case
    seen = conditioned(PRIOR, 2.0 * INPUTS, SLOPE * signals, is_shrunk)
    halved = replace(PRIOR, input_kernel=graph_gp(PRIOR.spectrum.graph, KERNEL, RBF(0.65), 0.3).input_kernel)
    return replace(seen, transformation=Scaled()), conditioned(halved, INPUTS, signals, is_shrunk)


def same_answers(field, plain, shift, limit):
    """Every verb of a prediction."""
    assert relative_error(field.mean, plain.mean + shift) < limit
    assert relative_error(field.values, plain.values + shift) < limit
    assert relative_error(field.values_variance(), plain.values_variance()) < limit
    for noise in (False, True):
        assert relative_error(field.variance(noise), plain.variance(noise)) < limit
        deviations = (fields.standard_deviation(one, noise, np.array([2, 0])) for one in (field, plain))
        assert relative_error(*deviations) < limit
        assert relative_error(fields.node_covariances(field, noise), fields.node_covariances(plain, noise)) < limit
        assert relative_error(field.joint_covariance(noise), plain.joint_covariance(noise)) < limit
    drawn, expected = (one.sample(2, np.random.default_rng(0), True) for one in (field, plain))
    assert relative_error(drawn, expected + shift) < limit
    assert not field.variance_error.any()


def same_densities(field, plain, signals, shift, limit):
    """Log densities of complete signals and of signals with missing values."""
    for joint in (False, True):
        found, expected = field.log_density(signals, joint), plain.log_density(signals - shift, joint)
        assert relative_error(found, expected) < limit


def test_changes_are_the_plain_model_of_the_differences_shifted(changes):
    """Equation (19d)."""
    model, plain, shift = changes
    field, inner = model.at(NEW), plain.at(NEW)
    same_answers(field, inner, shift, EXACT)
    for signals in (FURTHER, OBSERVED):
        same_densities(field, inner, signals, shift, EXACT)


def test_changes_given_values_are_the_plain_model_given_differences(changes):
    model, plain, shift = changes
    field, inner = model.at(NEW).given(OBSERVED), plain.at(NEW).given(OBSERVED - shift)
    same_answers(field, inner, shift, FORMULA)
    same_densities(field, inner, REST, shift, FORMULA)


def test_changes_of_training_signals_are_filled_in_and_left_out(changes):
    model, plain, _ = changes
    shift, rows = FACTOR * INPUTS[:, COLUMNS], np.array([4, 1, 7])
    same_answers(model.imputed(rows), plain.imputed(rows), shift[rows], FORMULA)
    for by in ("signal", "entry"):
        left, expected = fields.leave_one_out(model, by), fields.leave_one_out(plain, by)
        assert relative_error(left.mean, expected.mean + shift) < EXACT
        assert np.array_equal(left.std, expected.std)
        assert np.array_equal(left.log_density, expected.log_density, equal_nan=True)


def test_training_signals_come_back_as_they_were_given(case, changes, scaled):
    for model in (changes[0], scaled[0]):
        assert np.array_equal(np.isnan(model.given_signals), np.isnan(case[1]))
        assert np.nanmax(np.abs(model.given_signals - case[1])) < EXACT


def test_a_scaled_model_is_the_plain_one_of_another_scale(scaled):
    model, plain = scaled
    field, inner = model.at(NEW), plain.at(NEW)
    same_answers(field, inner, 0.0, FORMULA)
    same_answers(model.imputed(np.array([5, 0])), plain.imputed(np.array([5, 0])), 0.0, FORMULA)
    same_answers(field.given(OBSERVED), inner.given(OBSERVED), 0.0, FORMULA)


def test_slopes_are_in_densities_of_what_was_not_known(scaled):
    model, plain = scaled
    field, inner = model.at(NEW), plain.at(NEW)
    for signals in (FURTHER, OBSERVED):
        same_densities(field, inner, signals, 0.0, FORMULA)
    same_densities(field.given(OBSERVED), inner.given(OBSERVED), FURTHER, 0.0, FORMULA)
    for by in ("signal", "entry"):
        left, expected = fields.leave_one_out(model, by), fields.leave_one_out(plain, by)
        assert relative_error(left.mean, expected.mean) < FORMULA
        assert relative_error(left.std, expected.std) < FORMULA
        observed = np.isfinite(expected.log_density)
        assert relative_error(left.log_density[observed], expected.log_density[observed]) < FORMULA
        assert np.array_equal(np.isfinite(left.log_density), observed)


def test_mixtures_are_of_transformed_and_plain_models(changes):
    model, plain, shift = changes
    mixture = fields.Mixture(np.array([0.25, 0.75]), (plain, model)).at(NEW)
    first, second = plain.at(NEW), model.at(NEW)
    assert relative_error(mixture.mean, first.mean + 0.75 * shift) < EXACT
    spread = 0.25 * first.variance() + 0.75 * second.variance() + 0.25 * 0.75 * shift**2
    assert relative_error(mixture.variance(), spread) < EXACT
    densities = [one.log_density(FURTHER, False) for one in (first, second)]
    total = np.log(0.25 * np.exp(densities[0]) + 0.75 * np.exp(densities[1]))
    assert relative_error(mixture.log_density(FURTHER, False), total) < FORMULA


def test_values_of_the_wrong_shape_are_refused(changes):
    with pytest.raises(ValueError, match="observed must have one row for each of the 3 inputs"):
        changes[0].at(NEW).given(FURTHER[:2])


@pytest.mark.parametrize("is_shrunk", [False, True])
def test_folds_and_evidence_are_in_the_users_units(is_shrunk):
    graph = PRIOR.spectrum.graph
    fixed = RBF(1.3, "fixed"), RBF(2.6, "fixed")
    tasks = [
        Task.of(graph, kernel, factor * INPUTS, read_signals(slope * SIGNALS, "global", "global"))
        for kernel, factor, slope in zip(fixed, (1.0, 2.0), (1.0, SLOPE), strict=True)
    ]
    plain = Candidate(tasks[0], Polynomial(1), is_shrunk)
    scaled = Candidate(tasks[1], Polynomial(1), is_shrunk, transformation=Scaled())
    folds = Folds((N_SIGNALS, N_NODES), Stacking(n_folds=3, n_draws=0), np.random.default_rng(0))
    scores = folds.score([plain, scaled])
    assert relative_error(scores.log_densities[:, 1], scores.log_densities[:, 0]) < FORMULA
    assert relative_error(scores.value_log_densities[..., 1], scores.value_log_densities[..., 0]) < FORMULA
    fits = learn_all(tasks, [Polynomial(1)] * 2, Sqp())
    evidence = [one.in_units(fit).log_likelihood for one, fit in zip((plain, scaled), fits, strict=True)]
    assert relative_error(evidence[1], evidence[0]) < FORMULA
