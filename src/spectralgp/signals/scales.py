"""Scales of the nodes: variances of few values each, squeezed towards each other as far as the data ask for it."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from spectralgp._basics.checks import Array

TYPICAL_WORTH, WORTH_SPREAD = 8.0, 1.5  # signals that the common variance is worth: median, and deviation of their log
SMALLEST_VARIANCE = 0.01  # of the mean: a node that never moved would make the prior as narrow as it likes
MOST_STEPS, LONGEST_STEP, SMALLEST_STEP = 100, 1.0, 1e-10


def relative_scales(variances: Array, counts: Array) -> Array:
    """Scales of the nodes about one, from mean squares about their own means and the number of values of each.

    Equation (13b): a node's variance is averaged with the common one, which counts as `nu` more signals. Where no node
    has two values that differ, all scales are one; a node with one value or none has the common one.
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
    """What the common variance is worth, in signals, and the common variance: the maximum of (13c), by Newton steps."""
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
    share = product / totals  # of the prior in what is known of a node
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
