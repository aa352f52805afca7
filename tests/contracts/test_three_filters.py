"""Signal, residual and carry-over filters with node scales, against dense matrices over all signals and nodes."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF

import oracle
from spectralgp.graphs import Graph
from spectralgp.learning.objective import Objective, Task
from spectralgp.model import kernels
from spectralgp.model.fields import condition, graph_gp, leave_one_out, node_covariances
from spectralgp.model.kernels.carry import CarryColumns, CarryFilter
from spectralgp.model.signals import Units, read_signals
from spectralgp.model.spectra import Chebyshev, Exact
from spectralgp.model.spectra.exact import SpectralSignals
from tolerances import DIFFERENCE, FORMULA, GRADIENT, QUADRATURE

WEIGHTS = oracle.random_weights(7, seed=0)
GRAPH = Graph(WEIGHTS)
N_SIGNALS, N_NODES = 6, 7
RNG = np.random.default_rng(5)
INPUTS = np.column_stack([RNG.uniform(-2, 2, (N_SIGNALS, 2)) * [1.0, 1e4], RNG.standard_normal((N_SIGNALS, N_NODES))])
SCALES = np.linspace(0.5, 2.0, N_NODES)
SIGNALS = 3 + SCALES * (RNG.standard_normal((N_SIGNALS, N_NODES)).cumsum(axis=1) + 0.7 * INPUTS[:, 2:])
NEW = np.column_stack([RNG.uniform(-2, 2, (3, 2)) * [1.0, 1e4], RNG.standard_normal((3, N_NODES))])
COLUMNS = np.arange(2, 2 + N_NODES)
PAIRS = {
    "polynomials": kernels.WithResidual.of(
        kernels.Polynomial.from_coefficients([0.7, 0.4, -0.6]), kernels.Polynomial.from_coefficients([0.2, 0.9])
    ),
    "named": kernels.WithResidual.of(kernels.Diffusion(strength=1.3), kernels.Diffusion(strength=0.4)),
    "flat": kernels.WithResidual.of(kernels.Identity(amplitude=0.8), kernels.Polynomial.from_coefficients([0.3, 0.5])),
}
SPECTRA = {"exact": Exact(), "quadrature": Chebyshev(n_moments=129, n_probes="exact")}
CLOSE = {"exact": FORMULA, "quadrature": QUADRATURE}
NOISE = 0.3


def dense_filter(kernel):
    """``B B^T`` of a kernel by matrix functions."""
    matrix = oracle.laplacian(WEIGHTS, kernel.laplacian, kernel.scaled)
    return oracle.matrix_function(matrix, kernel.power)


def task_of(spectrum, scale="node", carried=True, kernel="default"):
    signals = read_signals(SIGNALS, "global", scale, keep_source=SPECTRA[spectrum] is not None)
    chosen = kernels.StandardisedKernel.of(INPUTS) if kernel == "default" else kernels.as_input_kernel(kernel)
    return Task(
        GRAPH,
        chosen,
        INPUTS,
        signals,
        prior=None,
        spectrum=SPECTRA[spectrum],
        carried=CarryColumns.of(COLUMNS, INPUTS) if carried else None,
    )


def dense_model(task, model, inputs):
    """Mean and covariance of all signals at some inputs, in the units that they came in, from equation (11)."""
    units, kernel = task.signals.units, model.graph_kernel
    covariance = model.input_kernel.covariance(inputs)
    inner = np.kron(covariance, dense_filter(kernels.signal_of(kernel)))
    inner += np.kron(np.eye(len(inputs)), dense_filter(kernel.residual) + model.noise_variance * np.eye(N_NODES))
    scales = np.tile(np.broadcast_to(units.divisor, N_NODES), len(inputs))
    mean = np.zeros((len(inputs), N_NODES))
    if task.carried is not None:
        matrix = oracle.laplacian(WEIGHTS, kernel.laplacian, kernel.scaled)
        through = oracle.matrix_function(matrix, model.carry.response)
        mean = (inputs[:, COLUMNS] - INPUTS[:, COLUMNS].mean(axis=0)) / units.divisor @ through
    return (units.offset + units.divisor * mean).ravel(), scales[:, None] * inner * scales


def learnt_at(task, kernel):
    """An objective, and a point that is no optimum."""
    spectrum = task.spectrum_of(kernel)
    objective = Objective(task, kernel.bind(spectrum), spectrum)
    theta = objective.input_theta + 0.1 * np.arange(objective.input_theta.size)
    return objective, objective.join(objective.graph_kernel.theta, theta, NOISE)


@pytest.mark.parametrize("carried", [True, False])
@pytest.mark.parametrize("scale", ["node", "global"])
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("pair", PAIRS)
def test_the_likelihood_is_that_of_the_dense_covariance(pair, spectrum, scale, carried):
    task = task_of(spectrum, scale, carried)
    objective, x = learnt_at(task, PAIRS[pair])
    mean, covariance = dense_model(task, objective.model(x), INPUTS)
    expected = multivariate_normal.logpdf(SIGNALS.ravel(), mean, covariance)
    actual = task.signals.units.log_density(objective.evaluate(x)[0], SIGNALS.size)
    assert oracle.relative_error(actual, expected) < CLOSE[spectrum]


@pytest.mark.parametrize("prior", [None, "weak"])
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("pair", PAIRS)
def test_the_gradient_is_that_of_differences(pair, spectrum, prior):
    """The carry-over filter is the best one at every point, so its own slope is zero and adds nothing."""
    objective, x = learnt_at(dataclasses.replace(task_of(spectrum), prior=prior), PAIRS[pair])
    numerical = approx_fprime(x, lambda point: objective.evaluate(point)[0], 1e-7)
    assert oracle.relative_error(objective.evaluate(x)[1], numerical) < GRADIENT


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_carry_over_is_by_generalised_least_squares(spectrum):
    task = task_of(spectrum)
    objective, x = learnt_at(task, PAIRS["polynomials"])
    model = objective.model(x)
    _, covariance = dense_model(task, model, INPUTS)
    eigenvalues, vectors = np.linalg.eigh(oracle.laplacian(WEIGHTS, "combinatorial", scaled=True))
    carried = (INPUTS[:, COLUMNS] - INPUTS[:, COLUMNS].mean(axis=0)) / task.signals.units.divisor
    columns = []
    for order in range(3):
        response = CarryFilter(np.eye(3)[order], 1.0).response(eigenvalues)
        columns.append((task.signals.units.divisor * (carried @ (vectors * response) @ vectors.T)).ravel())
    design, target = np.column_stack(columns), (SIGNALS - task.signals.units.offset).ravel()
    weighted = np.linalg.solve(covariance, design)
    expected = np.linalg.solve(design.T @ weighted, weighted.T @ target)
    assert oracle.relative_error(model.carry.chebyshev, expected) < max(CLOSE[spectrum], DIFFERENCE)
    covariance = np.linalg.inv(design.T @ weighted)
    points = np.polynomial.chebyshev.chebvander(2 * eigenvalues - 1, 2)
    variances = np.einsum("ja,ab,jb->j", points, covariance, points)
    assert oracle.relative_error(model.carry.variance(eigenvalues), variances) < max(CLOSE[spectrum], DIFFERENCE)


@pytest.mark.parametrize("carried", [True, False])
@pytest.mark.parametrize("scale", ["node", "global"])
@pytest.mark.parametrize("spectrum", SPECTRA)
def test_predictions_are_those_of_dense_conditioning(spectrum, scale, carried):
    task = task_of(spectrum, scale, carried)
    objective, x = learnt_at(task, PAIRS["polynomials"])
    model = objective.model(x)
    mean, covariance = dense_model(task, model, np.vstack([INPUTS, NEW]))
    old, new = np.split(np.arange(mean.size), [SIGNALS.size])
    moved, conditional = oracle.condition(covariance, old, SIGNALS.ravel() - mean[old], new)
    expected = mean[new] + moved
    posterior = condition(model, INPUTS, task.signals, task.carried)
    prediction, tolerance = posterior.at(NEW), CLOSE[spectrum]
    assert oracle.relative_error(prediction.mean.ravel(), expected) < tolerance
    assert oracle.relative_error(prediction.variance(True, np.arange(7)).ravel(), np.diag(conditional)) < tolerance
    # only sigma^2 is measurement noise: the residual is part of the signal
    noise = np.tile(model.noise_variance * np.broadcast_to(task.signals.units.divisor, N_NODES) ** 2, 3)
    clean = prediction.variance(False, np.arange(7)).ravel()
    assert oracle.relative_error(clean, np.diag(conditional) - noise) < tolerance
    observed = SIGNALS[:3] + 0.5
    expected_density = multivariate_normal.logpdf(observed.ravel(), expected, conditional)
    assert oracle.relative_error(prediction.log_density(observed), expected_density) < tolerance
    if spectrum == "exact":
        joint = prediction.joint_covariance(include_noise=True).reshape(21, 21)
        assert oracle.relative_error(joint, conditional) < tolerance
        single = node_covariances(prediction, include_noise=True)
        assert oracle.relative_error(single[1], conditional[7:14, 7:14]) < tolerance


@pytest.mark.parametrize("by", ["signal", "node", "entry"])
def test_leaving_out_is_dense_conditioning_on_the_rest(by):
    task = task_of("exact")
    objective, x = learnt_at(task, PAIRS["polynomials"])
    model = objective.model(x)
    mean, covariance = dense_model(task, model, INPUTS)
    left = leave_one_out(condition(model, INPUTS, task.signals, task.carried), by)
    index = np.arange(SIGNALS.size).reshape(SIGNALS.shape)
    out = {"signal": index[2], "node": index[:, 3], "entry": index[2, 3:4]}[by]
    rest = np.setdiff1d(index, out)
    moved, conditional = oracle.condition(covariance, rest, (SIGNALS.ravel() - mean)[rest], out)
    expected = mean[out] + moved
    where = {"signal": (2,), "node": (slice(None), 3), "entry": (2, 3)}[by]
    density = {"signal": (2,), "node": (3,), "entry": (2, 3)}[by]
    assert oracle.relative_error(np.ravel(left.mean[where]), expected) < FORMULA
    assert oracle.relative_error(np.ravel(left.std[where]), np.sqrt(np.diag(conditional))) < FORMULA
    expected_density = multivariate_normal.logpdf(SIGNALS.ravel()[out], expected, conditional)
    assert oracle.relative_error(left.log_density[density], expected_density) < FORMULA


def test_samples_have_the_moments_of_the_prediction():
    task = task_of("exact")
    objective, x = learnt_at(task, PAIRS["polynomials"])
    prediction = condition(objective.model(x), INPUTS, task.signals, task.carried).at(NEW[:2])
    for noise in (False, True):
        mean, covariance = oracle.law_of(lambda state, noise=noise: prediction.sample(1, state, noise))
        assert oracle.relative_error(mean, prediction.mean.ravel()) < FORMULA
        assert oracle.relative_error(covariance, prediction.joint_covariance(noise).reshape(14, 14)) < FORMULA


def test_a_prior_with_a_residual_is_sampled_with_it():
    kernel = PAIRS["polynomials"]
    prior = graph_gp(GRAPH, kernel, RBF(1.0), 0.1)
    expected = np.kron(RBF(1.0)(INPUTS[:2, :1]), dense_filter(kernels.signal_of(kernel)))
    expected = expected + np.kron(np.eye(2), dense_filter(kernel.residual))
    _, found = oracle.law_of(lambda state: prior.sample(INPUTS[:2, :1], 1, state))
    assert oracle.relative_error(found, expected) < FORMULA


def test_what_carries_over_is_found_by_weighted_least_squares():
    """Of Chebyshev polynomials, with a row per signal and frequency; what inputs say nothing of is nothing."""
    rng = np.random.default_rng(2)
    eigenvalues, upper = np.linspace(0.1, 2.4, 7), 2.5
    signals, carried = rng.standard_normal((2, 4, 7))
    precisions = 0.5 + rng.random((4, 7))
    points = 2 * eigenvalues / upper - 1
    design = np.column_stack([np.ones(7), points, 2 * points**2 - 1])
    for inputs in (carried, carried * (np.arange(7) == 3)):  # the second say one combination of the three
        rows = (np.sqrt(precisions) * inputs)[:, :, None] * design
        expected = np.linalg.lstsq(rows.reshape(-1, 3), (np.sqrt(precisions) * signals).ravel(), rcond=1e-6)[0]
        found = CarryFilter.learnt(SpectralSignals(np.vstack([signals, inputs])), precisions, eigenvalues, upper)
        np.testing.assert_allclose(found.chebyshev, expected, rtol=1e-6)
        np.testing.assert_allclose(found.response(eigenvalues), design @ expected, rtol=1e-6)
        if inputs is carried:
            covariance = np.linalg.inv(np.einsum("nja,njb->ab", rows, rows))
            np.testing.assert_allclose(found.covariance, covariance, rtol=1e-6)
            np.testing.assert_allclose(found.variance(eigenvalues), np.diag(design @ covariance @ design.T), rtol=1e-6)
    assert CarryFilter(expected, upper).variance(eigenvalues).tolist() == [0.0] * 7
    small = CarryFilter.learnt(SpectralSignals(np.vstack([signals, 1e-140 * carried])), precisions, eigenvalues, upper)
    assert np.max(np.abs(small.chebyshev)) > 1e138
    for size in (0.0, 1e-151):  # whose squares leave nothing to divide by
        data = SpectralSignals(np.vstack([signals, size * carried]))
        nothing = CarryFilter.learnt(data, precisions, eigenvalues, upper)
        assert nothing.chebyshev.tolist() == [0.0] * 3
        assert not nothing.covariance.any()


def test_columns_that_do_not_vary_carry_nothing_over():
    inputs = np.column_stack([np.full(3, 0.1), [1.0, 2.0, 6.0], np.full(3, 1e9 / 3)])
    carried = CarryColumns.of(np.array([2, 1, 0]), inputs)
    np.testing.assert_array_equal(carried.offset, [1e9 / 3, 3.0, 0.1])
    found = carried.signals(inputs, Units(7.0, 2.0, np.array([1.0, 0.5, 4.0])))
    np.testing.assert_array_equal(found, [[0.0, -2.0, 0.0], [0.0, -1.0, 0.0], [0.0, 3.0, 0.0]])
