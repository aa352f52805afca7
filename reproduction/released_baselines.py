"""The authors' released baselines followed step by step, in eigenbases instead of dense matrices.

Settings are those of ``baselines.py`` at commit ec9cc8e of the authors' repository: what starts, which learning rates,
when it stops. Two things in it are not the paper's: it transforms the learnt hyperparameters by a softplus *inside* the
loop over test sets, so that set ``i`` is scored with ``i`` transforms of them, and its 1-step walk has a plus for the
paper's minus. Scores without the one, and a walk without the other, are found too. The code is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from spectralgp import Graph, decompose

RATES = np.array([1e-3, 1.0, 1e-3, 1e-4])  # of the strength, the length scale, the variance and the noise
TOLERANCE = 1e-3  # of the log likelihood between two steps
MOST_STEPS = 60_000  # ours: the program has no limit

MENDED_WALK = "walk-1, minus"
"""The 1-step walk with the paper's sign."""

Array = Any
Modes = Callable[[float], tuple[Array, Array, Array]]
"""Of a strength: eigenvalues and eigenvectors of the nodes' covariance, and its derivative in their basis."""


@dataclass(frozen=True)
class Scored:
    """Scores of the test sets: as released, with one softplus alone, and whether the ascent stopped by itself."""

    as_released: list[float]
    once: list[float]
    stopped: bool


def softplus(values: Array) -> Array:
    """Softplus, under which the program has its hyperparameters."""
    return np.logaddexp(0.0, values)


def run_baseline(
    graph: Graph, row: str, training: tuple[Array, Array], test: tuple[Array, Array], set_size: int
) -> Scored:
    """Follow the program.

    Parameters
    ----------
    graph : Graph
        Of the signals.
    row : str
        Which baseline, by its row of the paper's table.
    training, test : pair of ndarray
        Inputs and signals.
    set_size : int
        Signals in a test set.

    Returns
    -------
    Scored
    """
    modes, (inputs, signals) = modes_of(graph, row), training
    length = float(np.mean(np.sum(inputs**2, axis=1)))
    x = np.array([0.0, length, float(np.var(signals)), 0.1 * length])
    squared = _squared(inputs)
    value, slope = log_likelihood(x, modes, squared, signals)
    stopped = False
    for _ in range(MOST_STEPS):
        before, x = value, x + RATES * slope
        value, slope = log_likelihood(x, modes, squared, signals)
        if abs(value - before) <= TOLERANCE:
            stopped = True
            break
    scores: list[list[float]] = [[], []]
    anew = x
    for start in range(0, len(test[0]), set_size):
        one = tuple(part[start : start + set_size] for part in test)
        anew = softplus(anew)
        for kept, values in zip(scores, (anew, softplus(x)), strict=True):
            kept.append(log_density(values, modes, training, (one[0], one[1])) / set_size)
    return Scored(scores[0], scores[1], stopped)


def modes_of(graph: Graph, row: str) -> Modes:
    """The nodes' covariance of a baseline, as the program has it."""
    is_of_smola = row in ("regularised", "diffusion", "walk-1", MENDED_WALK, "walk-3", "cosine")
    spectrum = decompose(graph, "normalized" if is_of_smola else "combinatorial", scaled=False)
    values, vectors = spectrum.eigenvalues, spectrum.eigenvectors
    if row == "local":
        weights = graph.weights.toarray()
        return lambda strength: _averaged(weights, strength)
    inverse = np.concatenate([[0.0], 1 / values[1:]])
    powers: dict[str, Callable[[float], tuple[Array, Array]]] = {
        "standard": lambda a: (np.ones_like(values), 0 * values),
        "laplacian": lambda a: (inverse, 0 * values),
        "global": lambda a: ((1 + a * values) ** -2, -2 * values * (1 + a * values) ** -3),
        "regularised": lambda a: (1 / (1 + a * values), -values / (1 + a * values) ** 2),
        "diffusion": lambda a: (np.exp(-a * values), -values * np.exp(-a * values)),
        "walk-1": lambda a: (2 + a + values, np.ones_like(values)),
        MENDED_WALK: lambda a: (2 + a - values, np.ones_like(values)),
        "walk-3": lambda a: ((2 + a - values) ** 3, 3 * (2 + a - values) ** 2),
        "cosine": lambda a: (np.cos(np.pi * values / 4), 0 * values),
    }
    power = powers[row]

    def modes(strength: float) -> tuple[Array, Array, Array]:
        found, slope = power(strength)
        return found, vectors, np.diag(slope)

    return modes


def _averaged(weights: Array, strength: float) -> tuple[Array, Array, Array]:
    """Local averaging ``B = (I + a D)^-1 (I + a A)``, whose ``B B^T`` has eigenvectors of its own."""
    degrees = np.sum(weights, axis=1)
    scale = 1 / (1 + strength * degrees)
    averaging = scale[:, None] * (np.eye(len(weights)) + strength * weights)
    slope = scale[:, None] * weights - (scale * degrees)[:, None] * averaging
    values, vectors = np.linalg.eigh(averaging @ averaging.T)
    return values, vectors, vectors.T @ (slope @ averaging.T + averaging @ slope.T) @ vectors


def log_likelihood(x: Array, modes: Modes, squared: Array, signals: Array) -> tuple[float, Array]:
    """Log likelihood without its constant, and its slope in the arguments of softplus."""
    strength, length, variance, noise = softplus(x)
    powers, vectors, bend = modes(strength)
    alike = np.exp(-0.5 * squared / length)
    kappa, rotation = np.linalg.eigh(alike)
    energies = rotation.T @ signals @ vectors
    variances = variance * np.multiply.outer(kappa, powers) + noise
    value = -0.5 * float(np.sum(np.log(variances) + energies**2 / variances))
    pulled = energies / variances
    slopes = 0.5 * (pulled**2 - 1 / variances)
    nodes = 0.5 * variance * ((pulled.T * kappa) @ pulled - np.diag(np.sum(kappa[:, None] / variances, axis=0)))
    rows = 0.5 * variance * ((pulled * powers) @ pulled.T - np.diag(np.sum(powers / variances, axis=1)))
    of_length = np.sum((rotation @ rows @ rotation.T) * alike * squared) / (2 * length**2)
    slope = [np.sum(nodes * bend), of_length, np.sum(slopes * np.multiply.outer(kappa, powers)), np.sum(slopes)]
    return value, np.array(slope) * expit(x)


def log_density(values: Array, modes: Modes, training: tuple[Array, Array], test: tuple[Array, Array]) -> float:
    """Log density of test signals given training signals, at given hyperparameters."""
    strength, length, variance, noise = values
    powers, vectors, _ = modes(strength)

    def joint(inputs: Array, signals: Array) -> float:
        kappa, rotation = np.linalg.eigh(np.exp(-0.5 * _squared(inputs) / length))
        variances = variance * np.multiply.outer(kappa, powers) + noise
        return -0.5 * float(np.sum(np.log(2 * np.pi * variances) + (rotation.T @ signals @ vectors) ** 2 / variances))

    both = [np.vstack(parts) for parts in zip(training, test, strict=True)]
    return joint(both[0], both[1]) - joint(*training)


def _squared(inputs: Array) -> Array:
    return np.sum((inputs[:, None] - inputs[None]) ** 2, axis=2)
