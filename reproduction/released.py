"""The authors' released program followed step by step, in the graph's eigenbasis instead of dense matrices.

Its settings are those of ``main.py`` at commit ec9cc8e of the authors' repository: what starts, which learning rates,
when it stops. Hyperparameters are softplus transforms of what is learnt, the length scale is that of ``exp(-d^2 / (2
l))``, and the covariance of the inputs has the variance of the signals. The code is ours.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from spectralgp import decompose

GRID = np.arange(-6.0, 7.0)
RATE, NOISE_RATE, LENGTH_RATE = 1e-4, 1e-4, 1.0
TOLERANCE = 1e-3  # of the log likelihood between two steps, and of the Lagrangian between two dual steps
ADDED = 1.0  # to every coefficient, before the constrained search
FIRST_MULTIPLIER, MULTIPLIER_RATE = -1.0, 1.0  # under a softplus
MOST_STEPS, MOST_DUAL_STEPS = 60_000, 5_000  # ours: the program has no limit
BLOCK = 2_000  # filters of the grid at a time

Array = Any


@dataclass(frozen=True)
class Found:
    """Result of the program: filter, length scale l, variances, and whether it stopped by itself."""

    coefficients: Array
    length: float
    noise_variance: float
    input_variance: float
    stopped: bool


class _Data:
    """Signals in the graph's eigenbasis, and squared distances between their inputs."""

    def __init__(self, inputs: Array, signals: Array, vectors: Array, powers: Array) -> None:
        self.squared = np.sum((inputs[:, None] - inputs[None]) ** 2, axis=2)
        self.variance = float(np.var(signals))
        self.coefficients, self.powers = signals @ vectors, powers

    def modes(self, length: float) -> tuple[Array, Array, Array, Array]:
        """Covariance of the inputs, its eigenvalues and eigenvectors, and the signals in both eigenbases."""
        covariance = self.variance * np.exp(-0.5 * self.squared / length)
        values, vectors = np.linalg.eigh(covariance)
        return covariance, values, vectors, vectors.T @ self.coefficients

    def log_likelihood(self, beta: Array, length_: float, noise_: float) -> tuple[float, Array, float, float]:
        """Log likelihood without its constant, and slopes in the coefficients and the arguments of softplus."""
        length, noise = np.logaddexp(0, length_), np.logaddexp(0, noise_)
        covariance, values, vectors, energies = self.modes(length)
        response = self.powers @ beta
        variances = values[:, None] * response**2 + noise
        value = -0.5 * float(np.sum(np.log(variances) + energies**2 / variances))
        slopes = 0.5 * (energies**2 / variances - 1) / variances
        of_beta = self.powers.T @ (2 * response * (values @ slopes))
        pulled = energies / variances * response
        of_covariance = pulled @ pulled.T - np.diag(np.sum(response**2 / variances, axis=1))
        of_covariance = 0.5 * vectors @ of_covariance @ vectors.T
        of_length = float(np.sum(of_covariance * covariance * self.squared)) / (2 * length**2)
        return value, of_beta, of_length * float(expit(length_)), float(np.sum(slopes) * expit(noise_))


def run_released(graph: Any, inputs: Array, signals: Array, degree: int, n_grid: int) -> Found:
    """Follow the program.

    Parameters
    ----------
    graph : Graph
        Of the signals.
    inputs, signals : ndarray
        To learn from.
    degree : int
        Of the filter.
    n_grid : int
        Signals that the grid search uses: the program takes the smaller of its two training sizes.

    Returns
    -------
    Found
    """
    spectrum = decompose(graph, scaled=True)
    powers = np.vander(spectrum.eigenvalues, degree + 1, increasing=True)
    data = _Data(inputs, signals, spectrum.eigenvectors, powers)
    fewer = _Data(inputs[:n_grid], signals[:n_grid], spectrum.eigenvectors, powers)
    length = float(np.mean(np.sum(inputs**2, axis=0)))
    noise = length / 10
    beta = _grid_search(fewer, length, noise)
    beta, length, noise, has_risen = _ascend(data, beta, length, noise)
    beta, has_ended = _constrain(data, beta + ADDED, length, noise)
    length, noise = (float(np.logaddexp(0, one)) for one in (length, noise))
    return Found(beta, length, noise, data.variance, has_risen and has_ended)


def _grid_search(data: _Data, length_: float, noise_: float) -> Array:
    """The most likely filter of the grid; the last of those that tie, which is the positive one of two signs."""
    _, values, _, energies = data.modes(float(np.logaddexp(0, length_)))
    noise = np.logaddexp(0, noise_)
    filters = np.array(list(itertools.product(GRID, repeat=data.powers.shape[1])))
    likelihoods = np.empty(len(filters))
    for start in range(0, len(filters), BLOCK):
        part = slice(start, start + BLOCK)
        variances = values[:, None] * (filters[part] @ data.powers.T)[:, None] ** 2 + noise
        likelihoods[part] = -0.5 * np.sum(np.log(variances) + energies**2 / variances, axis=(1, 2))
    return filters[len(filters) - 1 - np.argmax(likelihoods[::-1])]


def _ascend(data: _Data, beta: Array, length: float, noise: float) -> tuple[Array, float, float, bool]:
    """Ascent without the constraint, until a step changes the likelihood little."""
    value, of_beta, of_length, of_noise = data.log_likelihood(beta, length, noise)
    for _ in range(MOST_STEPS):
        before = value
        beta, length, noise = beta + RATE * of_beta, length + LENGTH_RATE * of_length, noise + NOISE_RATE * of_noise
        value, of_beta, of_length, of_noise = data.log_likelihood(beta, length, noise)
        if abs(value - before) <= TOLERANCE:
            return beta, length, noise, True
    return beta, length, noise, False


def _constrain(data: _Data, beta: Array, length: float, noise: float) -> tuple[Array, bool]:
    """Descent in the coefficients to where it slows down, then one step of the multipliers; and again."""
    logs = np.full(data.powers.shape[0], FIRST_MULTIPLIER)

    def lagrangian(beta: Array) -> tuple[float, Array]:
        value, of_beta, _, _ = data.log_likelihood(beta, length, noise)
        multipliers = np.logaddexp(0, logs)
        return -value - float(multipliers @ (data.powers @ beta)), -of_beta - data.powers.T @ multipliers

    n_steps, current = 0, lagrangian(beta)[0]
    for _ in range(MOST_DUAL_STEPS):
        before = current
        value, slope = lagrangian(beta)
        while n_steps < MOST_STEPS:
            last, beta = value, beta - RATE * slope
            value, slope = lagrangian(beta)
            n_steps += 1
            if abs(value - last) <= TOLERANCE:
                break
        logs = logs - MULTIPLIER_RATE * expit(logs) * (data.powers @ beta)
        current = lagrangian(beta)[0]
        if abs(current - before) <= TOLERANCE:
            return beta, True
        if n_steps >= MOST_STEPS:
            break
    return beta, False
