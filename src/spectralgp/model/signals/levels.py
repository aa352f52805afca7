"""Levels and scales of nodes: shrunk estimates from few values, and predictions at nodes without observations.

The levels, or the log scales, one number per node, are a small Gaussian field on the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigh
from scipy.optimize import minimize
from scipy.spatial.distance import cdist, pdist
from scipy.special import digamma, gammaln, polygamma

from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp.graphs import Graph, GraphBase

MOST_PLACED = 2_000  # nodes: a field is a matrix of nodes by nodes
MOST_LEARNT_FROM = 300  # known nodes that the parameters of a field are learnt from
FEWEST_KNOWN = 3  # nodes that a field can be learnt from
PSEUDO_NODES = 8  # of calibrated predictions, added to those left out when the variance is inflated
CONSTANT = 1e-12  # of the largest value: a spread below this is rounding
SMOOTHNESS, SMOOTHNESS_WIDTH = 3.0, 2.0  # prior mean and standard deviation of log a
LENGTH_WIDTH = 1.0  # prior standard deviation of the log length scale, about the median distance of two nodes
AMPLITUDE_WIDTH = 2.0  # prior standard deviation of log v, about the variance of the known values
WHITE, WHITE_WIDTH = float(np.log(0.1)), 1.5  # of log t, in that variance
REACH = 4.0  # prior standard deviations within which parameters are searched
TYPICAL_WORTH, WORTH_SPREAD = 8.0, 1.5  # equivalent sample size of the common variance: median, deviation of its log
SMALLEST_VARIANCE = 0.01  # of the mean: a constant node would make the prior arbitrarily narrow
MOST_STEPS, LONGEST_STEP, SMALLEST_STEP = 100, 1.0, 1e-10  # of Newton's method for the two


@dataclass(frozen=True, eq=False)
class UnitCovariance:
    """Covariance of nodes with a mean variance of about one and one parameter, given by its logarithm."""

    between: Callable[[float, Indices, Indices], tuple[Array, Array]]  # with its derivative by the logarithm
    centre: float  # prior mean and standard deviation of that logarithm
    width: float


def smooth_covariance(laplacian: Array) -> UnitCovariance:
    """``J (1 + a L)^-2 J`` over its mean diagonal, with ``J = I - 11^T / M``, and `L` over its largest eigenvalue."""
    values, vectors = eigh(laplacian, check_finite=False)
    values, vectors = np.maximum(values, 0.0) / max(float(values[-1]), 1e-300), vectors - vectors.mean(axis=0)
    shares = np.mean(np.square(vectors), axis=0)

    def between(log: float, rows: Indices, columns: Indices) -> tuple[Array, Array]:
        scaled = np.exp(log) * values
        power = (1 + scaled) ** -2.0
        slope = -2 * scaled * (1 + scaled) ** -3.0
        total = float(shares @ power)
        covariance = (vectors[rows] * (power / total)) @ vectors[columns].T
        moved = (vectors[rows] * (slope / total)) @ vectors[columns].T
        return covariance, moved - covariance * float(shares @ slope) / total

    return UnitCovariance(between, SMOOTHNESS, SMOOTHNESS_WIDTH)


def matern_covariance(distances: Array) -> UnitCovariance:
    """Matern-3/2 covariance by distances between all nodes, over their median."""

    def between(log: float, rows: Indices, columns: Indices) -> tuple[Array, Array]:
        scaled = np.sqrt(3) * np.exp(-log) * distances[np.ix_(rows, columns)]
        decay = np.exp(-scaled)
        return (1 + scaled) * decay, scaled**2 * decay

    return UnitCovariance(between, 0.0, LENGTH_WIDTH)


@dataclass(frozen=True, eq=False)
class NodeField:
    """Levels ``m = mu + v^1/2 c z + t^1/2 white + error`` with a flat prior of `mu`: equations (23b) and (23c)."""

    unit: UnitCovariance
    logs: Array  # of v, t and the parameter of `unit`
    values: Array  # at the known nodes
    errors: Array  # variances of their errors
    known: Indices

    @cached_property
    def _projected(self) -> tuple[Array, list[Array], Array, float]:
        """``P = K^-1 - K^-1 11^T K^-1 / 1^T K^-1 1`` with ``K``'s derivatives, ``K^-1 1`` and ``log |K|``."""
        covariance, slope = self.unit.between(self.logs[2], self.known, self.known)
        amplitude, white = np.exp(self.logs[:2])
        matrix, n_known = amplitude * covariance, self.known.size
        slopes = [matrix.copy(), white * np.eye(n_known), amplitude * slope]
        matrix[np.diag_indices_from(matrix)] += white + self.errors
        factor = cholesky(matrix, lower=True, check_finite=False)
        inverse = cho_solve((factor, True), np.eye(n_known), check_finite=False)
        sums = inverse.sum(axis=1)
        return inverse - np.outer(sums, sums) / sums.sum(), slopes, sums, 2 * float(np.sum(np.log(np.diag(factor))))

    @property
    def log_evidence(self) -> float:
        """Log density of the values, integrated over the mean."""
        projected, _, sums, logs = self._projected
        form = float(self.values @ projected @ self.values)
        return -0.5 * (form + logs + np.log(sums.sum()) + (self.known.size - 1) * np.log(2 * np.pi))

    @property
    def gradient(self) -> Array:
        """Gradient of the log evidence in `logs`."""
        projected, slopes, _, _ = self._projected
        solved = projected @ self.values
        inner = 0.5 * (np.outer(solved, solved) - projected)
        return np.array([np.sum(inner * slope) for slope in slopes])

    def left_out(self) -> tuple[Array, Array]:
        """Leave-one-out errors and variances of the known values."""
        projected = self._projected[0]
        variances = 1 / np.diag(projected)
        return (projected @ self.values) * variances, variances

    def at(self, nodes: Indices) -> tuple[Array, Array]:
        """Predictive means and variances at nodes without a known value."""
        projected, _, sums, _ = self._projected
        amplitude, white = np.exp(self.logs[:2])
        across = amplitude * self.unit.between(self.logs[2], nodes, self.known)[0]
        own = amplitude * np.diag(self.unit.between(self.logs[2], nodes, nodes)[0]) + white
        means = float(sums @ self.values / sums.sum()) + across @ (projected @ self.values)
        given = np.sum(across @ projected * across, axis=1)
        return means, np.maximum(own - given + (1 - 2 * across @ sums) / sums.sum(), 0.0)


def complete_by_graph(graph: Graph, values: Array, errors: Array, known: Mask) -> tuple[Array, Array]:
    """Complete one number per node of a small graph: known ones are kept, others predicted, with their variances.

    `errors` are variances of the errors of the known values, at least one; both are ignored elsewhere.
    """
    centre = float(np.mean(values, where=known))
    means, variances = np.where(known, values, centre), np.zeros(values.size)
    spread = float(np.std(values, where=known))
    if spread <= CONSTANT * float(np.max(np.abs(values), where=known, initial=0.0)):
        return means, variances
    nodes, unseen = np.flatnonzero(known), np.flatnonzero(~known)
    if nodes.size < FEWEST_KNOWN:
        variances[unseen] = spread**2 * (nodes.size + 1) / (nodes.size - 1)  # of a further node, by few known ones
        return means, variances
    scaled, own_errors = (values[nodes] - centre) / spread, errors[nodes] / spread**2
    found = [learnt_field(unit, scaled, own_errors, nodes) for unit in unit_covariances(graph)]
    field = max(found, key=lambda one: one[0])[1]
    missed, expected = field.left_out()
    factor = max(1.0, (float(np.sum(missed**2 / expected)) + PSEUDO_NODES) / (nodes.size + PSEUDO_NODES))
    predicted, left = field.at(unseen)
    means[unseen] = centre + spread * predicted
    variances[unseen] = spread**2 * factor * left
    return means, variances


def can_complete(graph: GraphBase | None) -> TypeGuard[Graph]:
    """Whether levels and scales of nodes without observations are predicted from the others on a graph."""
    return isinstance(graph, Graph) and graph.n_nodes <= MOST_PLACED


def unit_covariances(graph: Graph) -> Sequence[UnitCovariance]:
    """Kinds of fields on a graph, cached there."""
    key, places = "node fields", graph.coordinates
    if key not in graph._cache:
        units: list[UnitCovariance] = [smooth_covariance(graph.laplacian("balanced").toarray())]
        if places is not None and (median := float(np.median(pdist(places)))) > 0:
            units.append(matern_covariance(cdist(places, places) / median))
        graph._cache[key] = tuple(units)
    return tuple(graph._cache[key])


def learnt_field(unit: UnitCovariance, values: Array, errors: Array, known: Indices) -> tuple[float, NodeField]:
    """Log posterior of the best parameters of a field, and the field with them."""
    chosen = np.unique(np.linspace(0, known.size - 1, MOST_LEARNT_FROM).astype(np.intp))
    centres, widths = np.array([0.0, WHITE, unit.centre]), np.array([AMPLITUDE_WIDTH, WHITE_WIDTH, unit.width])

    def cost(steps: Array) -> tuple[float, Array]:
        field = NodeField(unit, centres + widths * steps, values[chosen], errors[chosen], known[chosen])
        return 0.5 * float(steps @ steps) - field.log_evidence, steps - widths * field.gradient

    best = minimize(cost, np.zeros(3), jac=True, method="L-BFGS-B", bounds=[(-REACH, REACH)] * 3)
    return -float(best.fun), NodeField(unit, centres + widths * best.x, values, errors, known)


# --------------------------------------------------------------------------------- scales of observed nodes


def relative_scales(variances: Array, counts: Array) -> Array:
    """Scales of the nodes about one, from mean squares about their own means and the number of values of each.

    Equation (13b): a node's variance is averaged with the common one, which counts as `nu` more signals. If no node has
    two values that differ, all scales are one; a node with at most one value has the common one.
    """
    freedom = np.maximum(counts - 1.0, 0.0)
    squares = variances * counts
    if not np.sum(squares) > 0:
        return np.ones(variances.shape)
    informed = freedom > 0
    relative = np.zeros(variances.shape)
    relative[informed] = squares[informed] / freedom[informed] / (np.sum(squares) / np.sum(freedom))
    relative[informed] = np.maximum(relative[informed], SMALLEST_VARIANCE)
    worth, common = common_variance(relative[informed], freedom[informed])
    scales: Array = np.sqrt((worth * common + freedom * relative) / (worth + freedom))
    return scales


def common_variance(variances: Array, freedom: Array) -> tuple[float, float]:
    """Equivalent sample size of the common variance, and that variance: the maximum of (13c), by Newton steps."""
    point = np.array([np.log(TYPICAL_WORTH), 0.0])
    value, slope, curvature = _log_posterior(point, variances, freedom)
    for _ in range(MOST_STEPS):
        precisions, directions = np.linalg.eigh(-curvature)
        step = directions @ ((directions.T @ slope) / np.maximum(np.abs(precisions), 1e-6))
        step *= min(1.0, LONGEST_STEP / max(float(np.linalg.norm(step)), SMALLEST_STEP))
        found = _log_posterior(point + step, variances, freedom)
        while found[0] < value and np.linalg.norm(step) > 1e-4:  # below that rounding decides
            step = step / 4
            found = _log_posterior(point + step, variances, freedom)
        point, (value, slope, curvature) = point + step, found
        if np.linalg.norm(step) < SMALLEST_STEP:
            break
    worth, common = np.exp(point).tolist()
    return worth, common


def _log_posterior(point: Array, variances: Array, freedom: Array) -> tuple[float, Array, Array]:
    """Equation (13c) at ``(log nu, log s^2)``, up to a constant, with its gradient and its curvature."""
    worth, product = np.exp(point[0]), np.exp(point[0] + point[1])
    kinds, which = np.unique(freedom, return_counts=True)  # most often one
    totals = product + freedom * variances
    share = product / totals  # of the prior in the posterior of a node's variance
    deviation, half = (point[0] - np.log(TYPICAL_WORTH)) / WORTH_SPREAD, 0.5 * (freedom + worth)
    logs = float(np.sum(point.sum() - np.log(totals)))  # each log(nu s^2 / total)
    value = which @ (gammaln(0.5 * (kinds + worth)) - gammaln(0.5 * worth)) + 0.5 * worth * logs
    value -= 0.5 * float(freedom @ np.log(totals)) + 0.5 * deviation**2
    of_worth = 0.5 * worth * (which @ (digamma(0.5 * (kinds + worth)) - digamma(0.5 * worth)) + logs)
    of_common = float(np.sum(0.5 * worth - half * share))
    bend = float(np.sum(half * share * (1 - share)))
    mixed = 0.5 * worth * float(np.sum(1 - share)) - bend
    tri = which @ (polygamma(1, 0.5 * (kinds + worth)) - polygamma(1, 0.5 * worth))
    corner = of_worth + 0.5 * worth * (0.5 * worth * tri + float(np.sum(1 - share))) + mixed - WORTH_SPREAD**-2
    slope = np.array([of_worth + of_common - deviation / WORTH_SPREAD, of_common])
    return float(value), slope, np.array([[corner, mixed], [mixed, -bend]])
