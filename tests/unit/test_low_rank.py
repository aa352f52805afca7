"""Covariances of low rank, equation (34), against dense algebra with ``Phi Phi^T + k I`` in place of ``K``."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

import oracle
from spectralgp import Diffusion, Graph, condition, condition_shrunk, graph_gp, leave_one_out, log_marginal_likelihood
from spectralgp.model.fields import InputCovariance, greedy_points, standard_deviation
from spectralgp.model.fields.factors import LowRankCovariance
from spectralgp.model.kernels import (
    IndependentSignals,
    LearntInputKernel,
    NewInputs,
    PrecomputedCovariance,
    StandardisedKernel,
    modes_of_inputs,
)
from tolerances import EXACT, FORMULA

WEIGHTS = oracle.random_weights(5, 3)
GRAPH = Graph(WEIGHTS)
RNG = np.random.default_rng(4)
INPUTS, NEW = RNG.standard_normal((14, 2)), RNG.standard_normal((3, 2))
SIGNALS = RNG.standard_normal((14, 5))
NOISE = 0.2
KERNEL = ConstantKernel(1.3, "fixed") * RBF(1.5)
POINTS = np.array([3, 0, 11, 7])
EXACT_PRIOR = graph_gp(GRAPH, Diffusion(2.0), KERNEL, NOISE)
PRIOR = replace(EXACT_PRIOR, points=POINTS)


def dense_covariances(kernel=KERNEL, points=POINTS):
    """``K``, its cross-covariance with new inputs, and that of those: by the definition."""
    through = np.linalg.solve(kernel(INPUTS[points]), kernel(INPUTS[points], INPUTS))
    own = kernel(INPUTS, INPUTS[points]) @ through
    cross = kernel(NEW, INPUTS[points]) @ through
    return own + np.mean(kernel.diag(INPUTS) - np.diag(own)) * np.eye(len(INPUTS)), cross, kernel(NEW)


def dense_posterior(prior, own, cross, new):
    nodes = prior.node_covariance()
    known = np.kron(own, nodes) + NOISE * np.eye(SIGNALS.size)
    across = np.kron(cross, nodes)
    mean = across @ np.linalg.solve(known, SIGNALS.ravel())
    covariance = np.kron(new, nodes) - across @ np.linalg.solve(known, across.T)
    return known, mean.reshape(-1, 5), covariance


def test_likelihood_means_and_covariances_are_those_of_the_dense_matrix():
    known, mean, covariance = dense_posterior(PRIOR, *dense_covariances())
    expected = multivariate_normal(np.zeros(SIGNALS.size), known).logpdf(SIGNALS.ravel())
    assert log_marginal_likelihood(PRIOR, INPUTS, SIGNALS) == pytest.approx(expected, rel=FORMULA)
    field = condition(PRIOR, INPUTS, SIGNALS).at(NEW)
    assert oracle.relative_error(field.mean, mean) < FORMULA
    assert oracle.relative_error(standard_deviation(field) ** 2, np.diag(covariance).reshape(-1, 5)) < FORMULA
    assert oracle.relative_error(field.joint_covariance().reshape(15, 15), covariance) < FORMULA


def test_as_many_points_as_signals_are_the_exact_model():
    kernel = Matern(1.0, nu=0.5)
    exact = graph_gp(GRAPH, Diffusion(2.0), kernel, NOISE)
    whole = replace(exact, points=RNG.permutation(14))
    posteriors = [condition(one, INPUTS, SIGNALS) for one in (exact, whole)]
    assert posteriors[1].covariance.rows.rest < EXACT
    assert posteriors[1].log_evidence() == pytest.approx(posteriors[0].log_evidence(), rel=FORMULA)
    fields = [one.at(NEW) for one in posteriors]
    assert oracle.relative_error(fields[1].mean, fields[0].mean) < FORMULA
    assert oracle.relative_error(standard_deviation(fields[1]), standard_deviation(fields[0])) < FORMULA
    left = [leave_one_out(one) for one in posteriors]
    assert oracle.relative_error(left[1].log_density, left[0].log_density) < FORMULA


def test_rows_do_what_their_matrices_do():
    rows, own = PRIOR.rows(INPUTS), dense_covariances()[0]
    assert isinstance(rows, LowRankCovariance)
    power, residual = np.array([0.7, 0.0, 2.0]), np.array([0.1, 0.4, 0.2])
    matrices = [p * own + r * np.eye(14) for p, r in zip(power, residual, strict=True)]
    assert oracle.relative_error(rows.matrices(power, residual), np.stack(matrices)) < FORMULA
    signals = RNG.standard_normal((14, 3))
    loaded = rows.load(signals)
    assert loaded.shape == (sum(rows.vectors.shape), 3)
    assert oracle.relative_error(rows.unload(loaded), signals) < EXACT
    assert np.sum(loaded**2) == pytest.approx(np.sum(signals**2), rel=EXACT)
    solved = np.stack([np.linalg.solve(one, signals[:, j]) for j, one in enumerate(matrices)], axis=1)
    assert oracle.relative_error(rows.unload(rows.apply(loaded, power, residual, -1)), solved) < FORMULA
    half = rows.apply(rows.apply(loaded, power, residual, 0.5), power, residual, -0.5)
    assert oracle.relative_error(rows.unload(half), signals) < FORMULA
    assert (
        oracle.relative_error(rows.log_determinants(power, residual), [np.linalg.slogdet(m)[1] for m in matrices])
        < FORMULA
    )
    inverses = [np.linalg.inv(one) for one in matrices]
    for exponent, expected in ((1.0, matrices), (-1.0, inverses)):
        diagonals = np.stack([np.diag(one) for one in expected], axis=1)
        assert oracle.relative_error(rows.diagonal(power, residual, exponent), diagonals) < FORMULA
        columns = np.stack([one[:, 5] for one in expected], axis=1)
        assert oracle.relative_error(rows.column(5, power, residual, exponent), columns) < FORMULA


def test_signals_may_have_scales_and_means_an_amplitude():
    scales = RNG.uniform(0.5, 2.0, 14)
    kernel = LearntInputKernel(KERNEL)
    rows, own = LowRankCovariance.of(kernel, INPUTS, POINTS, scales), dense_covariances()[0]
    rest = own - dense_covariances()[0] + np.eye(14) * rows.rest
    through = own - np.eye(14) * PRIOR.rows(INPUTS).rest
    expected = through / np.outer(scales, scales) + rest
    assert oracle.relative_error(rows.matrices(np.ones(1), np.zeros(1))[0], expected) < FORMULA
    left = KERNEL.diag(INPUTS) - np.diag(through)
    assert rows.rest == pytest.approx(np.mean(left / scales**2), rel=FORMULA)
    cross = KERNEL(NEW, INPUTS)
    expected_cross = dense_covariances()[1] / scales @ rows.vectors
    found = rows.at(NewInputs(cross / scales), PRIOR.nodes.powers).weights
    assert oracle.relative_error(found, expected_cross) < FORMULA
    doubled = LowRankCovariance.of(kernel, INPUTS, POINTS, amplitude=2.0)
    assert oracle.relative_error(doubled.values, 2 * PRIOR.rows(INPUTS).values) < FORMULA


def test_modes_that_are_rounding_are_told_by_the_largest():
    """In any units; where nothing varies there is no mode."""
    rows = LowRankCovariance.of(LearntInputKernel(KERNEL), INPUTS, POINTS)
    tiny = LearntInputKernel(ConstantKernel(1.3e-16, "fixed") * RBF(1.5))
    small = LowRankCovariance.of(tiny, INPUTS, POINTS)
    assert greedy_points(tiny, INPUTS, 5).tolist() == greedy_points(LearntInputKernel(KERNEL), INPUTS, 5).tolist()
    assert small.values.size == rows.values.size == 4
    assert oracle.relative_error(small.values * 1e16, rows.values) < FORMULA
    twice = LowRankCovariance.of(LearntInputKernel(KERNEL), np.vstack([INPUTS, INPUTS[:1]]), np.array([0, 3, 14]))
    assert twice.values.size == 2
    nothing = LowRankCovariance.of(LearntInputKernel(KERNEL), INPUTS, POINTS, amplitude=0.0)
    assert (nothing.values.size, nothing.rest) == (0, 0.0)


def test_missing_values_are_seen_through():
    holed = SIGNALS.copy()
    holed[RNG.random(holed.shape) < 0.2] = np.nan
    own, cross, new = dense_covariances()
    known, _, _ = dense_posterior(PRIOR, own, cross, new)
    seen = ~np.isnan(holed.ravel())
    expected = multivariate_normal(np.zeros(seen.sum()), known[np.ix_(seen, seen)]).logpdf(holed.ravel()[seen])
    assert log_marginal_likelihood(PRIOR, INPUTS, holed) == pytest.approx(expected, rel=FORMULA)
    across = np.kron(cross, PRIOR.node_covariance())[:, seen]
    mean = across @ np.linalg.solve(known[np.ix_(seen, seen)], holed.ravel()[seen])
    field = condition(PRIOR, INPUTS, holed).at(NEW)
    assert oracle.relative_error(field.mean, mean.reshape(-1, 5)) < 1e-6
    covariance = np.kron(new, PRIOR.node_covariance()) - across @ np.linalg.solve(known[np.ix_(seen, seen)], across.T)
    assert oracle.relative_error(standard_deviation(field) ** 2, np.diag(covariance).reshape(-1, 5)) < 1e-6
    with pytest.raises(ValueError, match="observed must be None if the covariance of very many signals"):
        field.given(np.where(np.arange(5) < 2, 1.0, np.nan) * np.ones((3, 1)))


def test_shrinkage_is_learnt_from_coordinates_that_keep_lengths():
    kernel = Matern(1.0, nu=0.5)
    exact = graph_gp(GRAPH, Diffusion(2.0), kernel, NOISE)
    posteriors = [condition_shrunk(one, INPUTS, SIGNALS) for one in (exact, replace(exact, points=np.arange(14)))]
    logs = [one.at(NEW).log_density(np.ones((3, 5)), joint=True) for one in posteriors]
    assert logs[1] == pytest.approx(logs[0], rel=1e-6)
    assert condition_shrunk(PRIOR, INPUTS, SIGNALS).prior.points is POINTS


def test_no_matrix_is_written_out_to_leave_out_nodes():
    with pytest.raises(ValueError, match="by must be 'signal' or 'entry' if the covariance of very many signals"):
        leave_one_out(condition(PRIOR, INPUTS, SIGNALS), by="node")


def test_a_prior_is_sampled_at_other_inputs_without_its_points():
    drawn = [one.sample(NEW, 2, np.random.default_rng(0)) for one in (PRIOR, EXACT_PRIOR)]
    assert np.array_equal(*drawn)


def test_points_leave_least_open_and_stop_at_rounding():
    kernel = LearntInputKernel(RBF(1.5))
    points = greedy_points(kernel, INPUTS, 6)
    left = RBF(1.5).diag(INPUTS)
    for number, point in enumerate(points):
        assert left[point] == pytest.approx(left.max(), rel=1e-6)
        chosen = INPUTS[points[: number + 1]]
        through = RBF(1.5)(INPUTS, chosen) @ np.linalg.solve(RBF(1.5)(chosen), RBF(1.5)(chosen, INPUTS))
        left = 1 - np.diag(through)
    doubled = np.repeat(INPUTS[:3], 4, axis=0)
    assert sorted(np.unique(doubled[greedy_points(kernel, doubled, 12)], axis=0)[:, 0]) == sorted(INPUTS[:3, 0])
    assert greedy_points(kernel, doubled, 12).size == 3


@pytest.mark.parametrize(
    ("kernel", "inputs"),
    [
        (LearntInputKernel(KERNEL + WhiteKernel(0.3)), INPUTS),
        (PrecomputedCovariance(), KERNEL(INPUTS)),
        (StandardisedKernel.of(INPUTS), INPUTS),
        (IndependentSignals(), np.empty((14, 0))),
    ],
    ids=["white", "precomputed", "default", "independent"],
)
def test_columns_and_variances_are_those_of_the_covariance(kernel, inputs):
    whole = kernel.covariance(inputs)
    assert oracle.relative_error(kernel.variances(inputs), np.diag(whole)) < EXACT
    columns = kernel.columns(inputs, POINTS)
    away = np.ones(columns.shape, dtype=bool)
    away[POINTS, np.arange(POINTS.size)] = False  # a white kernel is between a signal and itself
    assert oracle.relative_error(columns[away], whole[:, POINTS][away]) < EXACT


def test_independent_signals_are_exact_without_points():
    rows = LowRankCovariance.of(IndependentSignals(), np.empty((6, 0)), np.empty(0, dtype=np.intp))
    assert (rows.rest, rows.values.size) == (1.0, 0)
    exact = InputCovariance(modes_of_inputs(IndependentSignals(), np.empty((6, 0))))
    powers = np.array([0.5, 2.0]), np.array([0.1, 0.2])
    assert oracle.relative_error(rows.log_determinants(*powers), exact.log_determinants(*powers)) < EXACT
