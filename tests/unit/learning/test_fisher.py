"""The Fisher information against dense covariance matrices and their derivatives."""

import numpy as np
import pytest
from scipy.linalg import block_diag
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import oracle
from cases import KERNELS, WEIGHTS
from spectralgp import LocalAverage
from spectralgp.graphs import Graph
from spectralgp.learning import Task
from spectralgp.learning.objective import Objective, fisher_information
from spectralgp.model.kernels import Polynomial
from spectralgp.model.spectra import Chebyshev, Exact, decompose
from tolerances import FORMULA, GRADIENT, QUADRATURE

N_SIGNALS = 5
RNG = np.random.default_rng(0)
INPUTS = RNG.uniform(-2, 2, (N_SIGNALS, 2))
SIGNALS = RNG.standard_normal((N_SIGNALS, 7))
NOISE = 0.3
INPUT_KERNEL = ConstantKernel(1.7) * RBF([0.8, 1.6])
ONE_SIDED = 1e-3  # the curvature of the prior by one-sided differences
EXACTLY = Chebyshev(n_moments=257, n_probes="exact")


def objective_of(kernel, weights=WEIGHTS["random"], spectrum=Exact(), signals=None, **options):
    values = SIGNALS[:, : len(weights)] if signals is None else signals
    task = Task.of(Graph(weights), INPUT_KERNEL, INPUTS, values, spectrum=spectrum, **options)
    found = task.spectrum_of(kernel)
    objective = Objective(task, kernel.bind(found), found)
    return objective, objective.join(objective.graph_kernel.theta, INPUT_KERNEL.theta, NOISE)


def from_slopes(covariance, slopes):
    """``tr(C^-1 dC_a C^-1 dC_b) / 2`` with dense matrices."""
    solved = [np.linalg.solve(covariance, slope) for slope in slopes]
    return np.array([[0.5 * np.sum(left * right.T) for right in solved] for left in solved])


def dense_slopes(node_covariance, node_slopes, noise_variance=NOISE):
    """The covariance of all signals, and its derivatives in graph theta, input theta and log noise, by hand."""
    squared = (INPUTS[:, None] - INPUTS) ** 2 / np.array([0.8, 1.6]) ** 2
    inputs = 1.7 * np.exp(-0.5 * squared.sum(axis=2))
    slopes = [np.kron(inputs, slope) for slope in node_slopes]
    # in the logarithms of the constant and of the two length scales
    for slope in (inputs, inputs * squared[:, :, 0], inputs * squared[:, :, 1]):
        slopes.append(np.kron(slope, node_covariance))
    slopes.append(noise_variance * np.eye(len(slopes[0])))
    return oracle.covariance(inputs, node_covariance, noise_variance), slopes


def dense_polynomial(weights, theta):
    """``B B^T`` of a Chebyshev series on [0, 1], and its derivatives in the coefficients."""
    laplacian = oracle.laplacian(weights, scaled=True)
    powers = [oracle.chebyshev_matrix(2 * laplacian - np.eye(len(laplacian)), order) for order in range(len(theta))]
    matrix = sum(value * power for value, power in zip(theta, powers, strict=True))
    return matrix @ matrix, [power @ matrix + matrix @ power for power in powers]


THETA = np.array([1.0, -0.4, 0.3])


@pytest.mark.parametrize("graph", ["random", "disconnected", "complete", "edgeless"])
def test_information_is_that_of_dense_matrices(graph):
    weights = WEIGHTS[graph]
    signals = RNG.standard_normal((N_SIGNALS, len(weights)))
    objective, x = objective_of(Polynomial(2).with_theta(THETA), weights, signals=signals)
    expected = from_slopes(*dense_slopes(*dense_polynomial(weights, THETA)))
    assert oracle.relative_error(objective.evidence(x).information(), expected) < FORMULA


def test_information_on_a_quadrature_is_that_of_dense_matrices():
    """With all moments of a smooth filter the quadrature is exact but for rounding."""
    objective, x = objective_of(Polynomial(2).with_theta(THETA), spectrum=EXACTLY)
    assert objective.spectrum.multiplicities.size == 257
    expected = from_slopes(*dense_slopes(*dense_polynomial(WEIGHTS["random"], THETA)))
    assert oracle.relative_error(objective.evidence(x).information(), expected) < FORMULA


@pytest.mark.parametrize("name", [name for name in KERNELS if "LocalAverage" not in name])
def test_information_of_every_kernel_with_a_filter(name):
    """Derivatives of the dense covariance between nodes by differences."""
    case, weights = KERNELS[name], WEIGHTS["random"]
    objective, x = objective_of(case.kernel)
    kernel = objective.graph_kernel
    slopes = oracle.jacobian(lambda theta: case.dense(kernel.with_theta(theta), weights), kernel.theta)
    expected = from_slopes(*dense_slopes(case.dense(kernel, weights), np.moveaxis(slopes, -1, 0)))
    assert oracle.relative_error(objective.evidence(x).information(), expected) < GRADIENT


def test_fixed_noise_has_no_direction():
    objective, x = objective_of(Polynomial(2).with_theta(THETA), noise_variance=NOISE)
    expected = from_slopes(*dense_slopes(*dense_polynomial(WEIGHTS["random"], THETA)))[:-1, :-1]
    assert oracle.relative_error(objective.evidence(x).information(), expected) < FORMULA


def test_several_filters_in_any_order():
    """A second filter that is no function of the inputs, with its directions after those of the input kernel."""
    rng = np.random.default_rng(1)
    kappa, power, noise = rng.uniform(size=4), rng.uniform(size=6), 0.2
    groups = [(kappa, rng.standard_normal((6, 2))), (np.ones(4), rng.standard_normal((6, 3)))]
    slopes = rng.standard_normal((4, 4, 2))
    slopes = slopes + slopes.transpose(1, 0, 2)
    dense = [np.diag(np.outer(groups[0][0], column).ravel()) for column in groups[0][1].T]
    dense += [np.kron(slope, np.diag(power)) for slope in np.moveaxis(slopes, -1, 0)]
    dense += [np.diag(np.outer(groups[1][0], column).ravel()) for column in groups[1][1].T]
    variances = np.outer(kappa, power) + noise
    expected = from_slopes(np.diag(variances.ravel()), dense)
    actual = fisher_information(1 / variances, power, np.ones(6), groups[:1], slopes, groups[1:])
    assert oracle.relative_error(actual, expected) < FORMULA


def test_multiplicities_count_repeated_frequencies():
    rng = np.random.default_rng(2)
    kappa, power, columns = rng.uniform(size=3), rng.uniform(size=2), rng.standard_normal((2, 2))
    slopes = np.ones((3, 3, 1))
    precisions = 1 / (np.outer(kappa, power) + 0.1)
    once = fisher_information(precisions, power, np.array([2.0, 3.0]), [(kappa, columns)], slopes)
    repeated = np.repeat(np.arange(2), [2, 3])
    filters = [(kappa, columns[repeated])]
    many = fisher_information(precisions[:, repeated], power[repeated], np.ones(5), filters, slopes)
    assert oracle.relative_error(once, many) < FORMULA


def test_kernels_without_a_jacobian_have_none():
    objective, x = objective_of(LocalAverage())
    assert objective.evidence(x).information() is None
    np.testing.assert_array_equal(objective.precision(x), np.diag(objective.size / objective.units**2))


@pytest.mark.parametrize("prior", ["weak", None])
def test_precision_adds_the_curvature_of_the_prior(prior):
    """By differences of the penalty written by hand; the rest has the curvature of its centre.

    The amplitude is redundant: the data leave one direction open.
    """
    objective, x = objective_of(Polynomial(2).with_theta(THETA), prior=prior)
    weights, variance, noise = 0.1 * np.arange(3) ** 6.0, np.var(SIGNALS), np.exp(x[-1])
    eigenvalues = decompose(Graph(WEIGHTS["random"]), scaled=True).eigenvalues

    def penalty(theta):
        power = np.mean(np.polynomial.chebyshev.chebval(2 * eigenvalues - 1, theta) ** 2)
        return 0.5 * weights @ theta**2 / (power + noise)

    units = np.array([np.sqrt(variance)] * 3 + [1.0] * 4)
    expected = objective.evidence(x).information()
    if prior:
        curvature = oracle.jacobian(lambda point: oracle.jacobian(penalty, point), x[:3])
        # the amplitude has no prior, two length scales have a standard deviation of 1/2, the noise is a t
        expected = expected + block_diag(curvature, np.diag([0.0, 4.0, 4.0, 4 / 3]))
    values, vectors = np.linalg.eigh(expected * np.outer(units, units))
    assert values[0] < 1 < values[-1]
    floored = (vectors * np.maximum(values, 1.0)) @ vectors.T
    assert oracle.relative_error(objective.precision(x) * np.outer(units, units), floored) < ONE_SIDED


@pytest.mark.parametrize("spectrum", [Exact(), Chebyshev(n_moments=5, n_probes="exact")])
def test_precision_is_at_least_one_in_units(spectrum):
    """At a filter of zero, of which the data say nothing, and on a quadrature with negative weights."""
    objective, x = objective_of(Polynomial(2).with_theta([0.0, 0.0, 0.0]), spectrum=spectrum, prior=None)
    units = objective.units
    values = np.linalg.eigvalsh(objective.precision(x) * np.outer(units, units))
    assert oracle.relative_error(values[0], 1.0) < QUADRATURE
    assert np.linalg.matrix_rank(objective.evidence(x).information()) == 1  # the noise alone
