"""The slow dense truth, straight from the definitions. Imports nothing from the package.

Graphs are dense weight matrices here, covariances are full matrices of n_signals * n_nodes rows, leaving out
is deleting, and derivatives are finite differences.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike, NDArray
from scipy.stats import multivariate_normal
from scipy.stats import t as student

Array = NDArray[np.float64]


# Comparing


def relative_error(actual: ArrayLike, expected: ArrayLike, scale: float | None = None) -> float:
    """Largest difference over the largest expected value (or `scale`); shapes must agree exactly.

    Where nothing but zero is expected the difference itself is returned.
    """
    actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape, f"shape {actual.shape}, expected {expected.shape}"
    if scale is None:
        scale = float(np.max(np.abs(expected), initial=0.0)) or 1.0
    return float(np.max(np.abs(actual - expected), initial=0.0)) / scale


# Graphs


def random_weights(n_nodes: int, seed: int, density: float = 0.5) -> Array:
    """Weighted random graph; a path is added so that it is connected."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((n_nodes, n_nodes))
    for i in range(n_nodes):
        for j in range(i):
            if j == i - 1 or rng.random() < density:
                weights[i, j] = weights[j, i] = rng.uniform(0.2, 2.0)
    return weights


def complete(n_nodes: int) -> Array:
    return np.ones((n_nodes, n_nodes)) - np.eye(n_nodes)


def ring(n_nodes: int) -> Array:
    weights = np.zeros((n_nodes, n_nodes))
    for i in range(n_nodes):
        weights[i, (i + 1) % n_nodes] = weights[(i + 1) % n_nodes, i] = 1.0
    return weights


def star(n_nodes: int) -> Array:
    weights = np.zeros((n_nodes, n_nodes))
    weights[0, 1:] = weights[1:, 0] = 1.0
    return weights


def disconnected() -> Array:
    """Two weighted components and an isolated node, nodes shuffled."""
    blocks = [random_weights(4, seed=1), random_weights(3, seed=2), np.zeros((1, 1))]
    order = np.random.default_rng(3).permutation(8)
    return scipy.linalg.block_diag(*blocks)[np.ix_(order, order)]


def laplacian(weights: Array, kind: str = "combinatorial", scaled: bool = False) -> Array:
    """Entry by entry; the row of an isolated node is zero in all kinds. Equation (2) if scaled."""
    n_nodes = len(weights)
    if kind == "balanced":
        return laplacian(np.diag(np.diag(normalised := laplacian(weights, "normalized"))) - normalised, scaled=scaled)
    degrees = [sum(weights[i, j] for j in range(n_nodes)) for i in range(n_nodes)]
    matrix = np.zeros((n_nodes, n_nodes))
    for i in range(n_nodes):
        for j in range(n_nodes):
            if kind == "combinatorial":
                matrix[i, j] = (degrees[i] if i == j else 0.0) - weights[i, j]
            elif degrees[i] > 0 and degrees[j] > 0:
                matrix[i, j] = float(i == j) - weights[i, j] / np.sqrt(degrees[i] * degrees[j])
    if scaled:
        largest = np.linalg.eigvalsh(matrix)[-1]
        matrix = matrix / largest if largest > 1e-12 else matrix
    return matrix


# Graph kernels: B B^T from a Laplacian by functions of dense matrices


def from_filter(matrix: Array) -> Array:
    return matrix @ matrix.T


def polynomial(matrix: Array, coefficients: ArrayLike) -> Array:
    """``B B^T`` with ``B = sum_p beta_p L^p``, equation (4)."""
    terms = [beta * np.linalg.matrix_power(matrix, p) for p, beta in enumerate(np.asarray(coefficients))]
    return from_filter(np.sum(terms, axis=0))


def global_filter(matrix: Array, strength: float) -> Array:
    return from_filter(np.linalg.inv(np.eye(len(matrix)) + strength * matrix))


def local_average(weights: Array, strength: float) -> Array:
    identity = np.eye(len(weights))
    return from_filter(
        np.linalg.inv(identity + strength * np.diag(weights.sum(axis=0))) @ (identity + strength * weights)
    )


def pseudo_inverse(matrix: Array) -> Array:
    return np.linalg.pinv(matrix, rcond=1e-12, hermitian=True)


def regularized_laplacian(matrix: Array, strength: float) -> Array:
    return np.linalg.inv(np.eye(len(matrix)) + strength * matrix)


def diffusion(matrix: Array, strength: float) -> Array:
    return scipy.linalg.expm(-strength / 2 * matrix)


def random_walk(matrix: Array, shift: float, steps: int) -> Array:
    return np.linalg.matrix_power(shift * np.eye(len(matrix)) - matrix, steps)


def cosine(matrix: Array) -> Array:
    return scipy.linalg.cosm(np.pi / 4 * matrix)


def matern(matrix: Array, nu: float, length_scale: float) -> Array:
    shifted = 2 * nu / length_scale**2 * np.eye(len(matrix)) + matrix
    return np.real(scipy.linalg.fractional_matrix_power(shifted, -nu))


def matrix_function(matrix: Array, function: Callable[[Array], Array]) -> Array:
    """Any function of a symmetric matrix, for filters of the user's own."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors @ np.diag(function(values)) @ vectors.T


# The model, equation (3), in both orders of vec


def rbf(left: Array, right: Array, length_scale: float = 1.0) -> Array:
    matrix = np.zeros((len(left), len(right)))
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            matrix[i, j] = np.exp(-np.sum((x - y) ** 2) / (2 * length_scale**2))
    return matrix


def covariance(input_covariance: Array, node_covariance: Array, noise_variance: float, order: str = "signals") -> Array:
    """Dense covariance of ``Y.ravel()`` (order "signals") or of ``Y.T.ravel()`` (order "nodes")."""
    factors = (input_covariance, node_covariance)
    product = np.kron(*factors) if order == "signals" else np.kron(*factors[::-1])
    return product + noise_variance * np.eye(len(product))


def log_density(values: Array, mean: ArrayLike, matrix: Array) -> float:
    """Gaussian log density by Cholesky."""
    residual = np.asarray(values) - mean
    lower = np.linalg.cholesky(matrix)
    whitened = scipy.linalg.solve_triangular(lower, residual, lower=True)
    return float(-0.5 * whitened @ whitened - np.sum(np.log(np.diag(lower))) - 0.5 * residual.size * np.log(2 * np.pi))


def log_likelihood(
    signals: Array, input_covariance: Array, node_covariance: Array, noise_variance: float, order: str = "signals"
) -> float:
    matrix = covariance(input_covariance, node_covariance, noise_variance, order)
    return log_density(signals.ravel() if order == "signals" else signals.T.ravel(), 0.0, matrix)


def draw(input_covariance: Array, node_covariance: Array, noise_variance: float, rng: np.random.Generator) -> Array:
    """One set of signals from the model, shape (n_signals, n_nodes)."""
    shape = (len(input_covariance), len(node_covariance))
    matrix = covariance(input_covariance, node_covariance, noise_variance)
    return (np.linalg.cholesky(matrix) @ rng.standard_normal(matrix.shape[0])).reshape(shape)


# The weak prior


def noise_log_prior(noise_variance: float, variance_within: float, n_nodes: int) -> float:
    """Of the log noise about a tenth of the variance: Student's t with 3 degrees of freedom above, (19b) below."""
    deviation = np.log(noise_variance / (0.1 * variance_within))
    if deviation > 0:
        return float(student.logpdf(deviation, 3) - student.logpdf(0.0, 3))
    return float(-0.25 * min(n_nodes, 1_000) / 2 * (np.sqrt(1 + deviation**2) - 1))


# Conditioning


def condition(matrix: Array, observed: Array, values: Array, wanted: Array) -> tuple[Array, Array]:
    """Mean and covariance of the entries `wanted` given the entries `observed` of a centred Gaussian."""
    within = matrix[np.ix_(observed, observed)]
    across = matrix[np.ix_(wanted, observed)]
    solved = np.linalg.solve(within, across.T).T
    return solved @ values, matrix[np.ix_(wanted, wanted)] - solved @ across.T


class OneNumber:
    """A generator of normal numbers that are all zero but for one, the number at a place, and of a known scale."""

    def __init__(self, place: int, scale: float = 1.0) -> None:
        self.place, self.n_drawn, self.scale, self.freedom = place, 0, scale, np.empty(0)

    def chisquare(self, freedom: Array) -> Array:
        """What makes a t of the covariance C, ``sqrt((f - 2) / chi^2) L z``, the normal law of the scale."""
        self.freedom = freedom
        return (freedom - 2) / self.scale**2

    def standard_normal(self, size: int | tuple[int, ...]) -> Array:
        numbers = np.zeros(size)
        if 0 <= self.place - self.n_drawn < numbers.size:
            numbers.ravel()[self.place - self.n_drawn] = 1.0
        self.n_drawn += numbers.size
        return numbers


def law_of(draw: Callable[[Any], ArrayLike], scale: float = 1.0) -> tuple[Array, Array]:
    """Mean and covariance, without error, of what is drawn as a linear function of normal numbers."""
    nothing = OneNumber(-1, scale)
    mean = np.ravel(draw(nothing)).astype(float)
    roots = np.array([np.ravel(draw(OneNumber(place, scale))) - mean for place in range(nothing.n_drawn)])
    return mean, roots.T @ roots


def predict(
    signals: Array, input_covariance: Array, node_covariance: Array, noise_variance: float
) -> tuple[Array, Array]:
    """Mean and covariance of the noise-free signals at the last inputs.

    `input_covariance` is of training inputs followed by new ones; the mean is flat, nodes varying fastest.
    """
    n_signals, n_nodes = signals.shape
    n_inputs = len(input_covariance) - n_signals
    prior = np.kron(input_covariance, node_covariance)
    noisy = prior + noise_variance * np.diag(np.repeat([1.0, 0.0], [signals.size, n_inputs * n_nodes]))
    entries = np.arange(len(noisy))
    return condition(noisy, entries[: signals.size], signals.ravel(), entries[signals.size :])


def leave_out(signals: Array, matrix: Array, left_out: Array) -> tuple[Array, Array, float]:
    """Delete entries (a boolean mask like `signals`) and predict them: mean, covariance and log density."""
    flat = left_out.ravel()
    values = signals.ravel()
    mean, variance = condition(matrix, np.flatnonzero(~flat), values[~flat], np.flatnonzero(flat))
    return mean, variance, log_density(values[flat], mean, variance)


# Derivatives


def derivative(function: Callable[[float], ArrayLike], step: float) -> Array:
    """Derivative at zero by central differences of fourth order."""
    ahead, behind = np.asarray(function(step)), np.asarray(function(-step))
    far_ahead, far_behind = np.asarray(function(2 * step)), np.asarray(function(-2 * step))
    return (8 * (ahead - behind) - (far_ahead - far_behind)) / (12 * step)


def jacobian(function: Callable[[Array], ArrayLike], point: Array, step: float = 1e-3) -> Array:
    """Derivatives in each coordinate, stacked on the last axis; steps relative to coordinates above one."""
    columns = []
    for index, value in enumerate(point):
        direction = np.eye(len(point))[index] * max(1.0, abs(value))
        columns.append(derivative(lambda t, d=direction: function(point + t * d), step) / np.max(direction))
    return np.stack(columns, axis=-1)


# Chebyshev


def chebyshev_matrix(matrix: Array, order: int) -> Array:
    """``T_order`` of a matrix, by the recurrence that defines it."""
    previous, current = np.eye(len(matrix)), np.array(matrix)
    if order == 0:
        return previous
    for _ in range(order - 1):
        previous, current = current, 2 * matrix @ current - previous
    return current


def chebyshev_weights(moments: Array) -> Array:
    """``m_q`` of equation (25) by its loops, from moments along the first axis."""
    n_points = len(moments)
    weights = np.zeros_like(moments)
    for q in range(n_points):
        for k in range(n_points):
            factor = (1 if k == 0 else 2) / n_points * np.cos(np.pi * k * (q + 0.5) / n_points)
            weights[q] += factor * moments[k]
    return weights


def lattice(n_rows: int, n_columns: int) -> Array:
    """Rectangular grid, each node joined to the next in its row and in its column."""
    weights = np.zeros((n_rows * n_columns, n_rows * n_columns))
    for node in range(n_rows * n_columns):
        for other in ([node + 1] if (node + 1) % n_columns else []) + [node + n_columns]:
            if other < len(weights):
                weights[node, other] = weights[other, node] = 1.0
    return weights


# Time series


def time_correlation(component: Any, lags: Array, rate: float) -> Array:
    """Correlation of a Matern or oscillating component over lags in time, equation (27)."""
    tau = rate * lags
    if hasattr(component, "period"):
        turns = [np.cos(2 * np.pi * k * lags / component.period) for k in range(1, component.n_harmonics + 1)]
        return np.exp(-tau) * np.mean(turns, axis=0)
    return np.exp(-tau) * {0.5: 1.0, 1.5: 1 + tau, 2.5: 1 + tau + tau**2 / 3}[component.smoothness]


def time_covariances(space: Any, times: Array) -> list[Array]:
    """Covariance over times of each mode of a sum of components, with the own variance of each value."""
    lags, found = np.abs(np.subtract.outer(times, times)), []
    for powers, rates, own in zip(space.powers.T, space.rates.T, space.own, strict=True):
        parts = zip(space.components, powers, rates, strict=True)
        total = np.sum([power * time_correlation(component, lags, rate) for component, power, rate in parts], axis=0)
        found.append(total + own * np.eye(times.size))
    return found


def process_covariance(process: Any, times: Array) -> Array:
    """Covariance of all values of a process, time by time, from those of its modes."""
    basis = np.eye(process.own.size) if process.basis is None else process.basis
    found = np.einsum("kst,mk,nk->smtn", np.array(time_covariances(process, times)), basis, basis)
    return found.reshape(2 * [times.size * len(basis)])


# Latent signals that a likelihood observes


def normal_law(
    covariance: Array, mean: Array, expected: Callable[[Array, Array], tuple[Array, Array, Array]]
) -> tuple[Array, Array, float]:
    """The best normal law ``N(m, S)`` of latent values with a prior ``N(mean, covariance)``, and the bound it gives.

    `expected` has, for means and variances, the expected log densities, slopes and curvatures of each value. The mean
    and the precisions of sites are damped fixed points, all by dense matrices and inverses.
    """
    precision = np.linalg.inv(covariance)
    law_mean, weights = np.array(mean, dtype=float), np.full(len(mean), 1.0)
    for _ in range(2_000):
        law = np.linalg.inv(precision + np.diag(weights))
        _, slopes, curvatures = expected(law_mean, np.diag(law))
        step = law @ (slopes - precision @ (law_mean - mean))
        moved = np.maximum(curvatures, 0.0) - weights
        law_mean, weights = law_mean + 0.3 * np.clip(step, -1.0, 1.0), weights + 0.3 * moved
        if max(np.max(np.abs(step)), np.max(np.abs(moved))) < 1e-12:
            break
    law = np.linalg.inv(precision + np.diag(weights))
    logs = expected(law_mean, np.diag(law))[0]
    apart, size = law_mean - mean, len(mean)
    divergence = np.trace(precision @ law) - size + apart @ precision @ apart
    divergence += np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(law)[1]
    return law_mean, law, float(np.sum(logs) - 0.5 * divergence)


def by_importance(
    covariance: Array,
    mean: Array,
    log_density: Callable[[Array], Array],
    law: tuple[Array, Array],
    n_draws: int,
    random_state: np.random.Generator,
) -> tuple[float, float, Array, Array]:
    """Log evidence with its standard error, and posterior means and standard deviations, by importance sampling.

    Draws are from a multivariate t with 20 degrees of freedom about `law`, a mean and a covariance; `log_density` sums
    those of the values given each draw.
    """
    centre, spread = law
    freedom, size = 20, len(mean)
    root = np.linalg.cholesky(spread)
    scales = np.sqrt(freedom / random_state.chisquare(freedom, n_draws))
    draws = centre + (random_state.standard_normal((n_draws, size)) @ root.T) * scales[:, None]
    proposed = scipy.stats.multivariate_t(centre, spread, freedom).logpdf(draws)
    logs = multivariate_normal(mean, covariance).logpdf(draws) + log_density(draws) - proposed
    weights = np.exp(logs - logs.max())
    evidence, error = float(logs.max() + np.log(weights.mean())), float(weights.std() / weights.mean() / n_draws**0.5)
    shares = weights / weights.sum()
    found = shares @ draws
    return evidence, error, found, np.sqrt(shares @ (draws - found) ** 2)


# Classes


def class_probabilities(covariance: Array, labels: ArrayLike, n_classes: int, n_draws: int, seed: int) -> Array:
    """Probabilities of the classes at all entries given labels of the first ones, by weighing draws of the prior."""
    generator, labels = np.random.default_rng(seed), np.asarray(labels)
    latent = generator.standard_normal((n_draws, n_classes, len(covariance))) @ scipy.linalg.cholesky(covariance)
    shares = np.exp(latent - scipy.special.logsumexp(latent, axis=1, keepdims=True))
    weights = np.prod([shares[:, label, entry] for entry, label in enumerate(labels)], axis=0)
    return np.einsum("d,dcn->nc", weights / weights.sum(), shares)


def class_bound(covariance: Array, labels: ArrayLike, means: Array, covariances: Array, normal: Array) -> float:
    """The bound on the log probability of labels by Gaussians, one per class, with expectations over given draws."""
    labels, total = np.asarray(labels), 0.0
    roots = np.sqrt(np.array([np.diag(one) for one in covariances]))
    latent = means[None] + roots[None] * normal
    total += float(np.sum(means[labels, np.arange(len(labels))]))
    total -= float(np.mean(scipy.special.logsumexp(latent, axis=1), axis=0).sum())
    inverse = np.linalg.inv(covariance)
    for mean, one in zip(means, covariances, strict=True):
        trace, square = np.trace(inverse @ one), mean @ inverse @ mean
        logs = np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(one)[1]
        total -= 0.5 * (trace + square - len(mean) + logs)
    return total
