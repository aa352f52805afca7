"""The curvature that learning steps by: the Fisher information of the hyperparameters, and the prior's curvature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.learning.objective import Objective

LEAST_PRECISION = 1.0  # in nats for the square of a parameter's unit, where the data say nothing


@dataclass(frozen=True, eq=False)
class Separable:
    """Directions in which ``D`` changes by a product, ``dD_ij = a_i c_j``: filters and the noise.

    Parameters
    ----------
    of_signals : ndarray of shape (n_signals,)
        ``a``, shared by all of them.
    of_frequencies : ndarray of shape (n_frequencies, n_directions)
        ``c``, one column each.
    """

    of_signals: Array
    of_frequencies: Array


def fisher_information(
    precisions: Array,
    power: Array,
    multiplicities: Array,
    before: Sequence[Separable],
    input_slopes: Array,
    after: Sequence[Separable] = (),
) -> Array:
    """Expected curvature of the log likelihood, equation (17), without an array of signals, frequencies and directions.

    Parameters
    ----------
    precisions : ndarray of shape (n_signals, n_frequencies)
        ``1 / D``.
    power : ndarray of shape (n_frequencies,)
        ``gamma``.
    multiplicities : ndarray of shape (n_frequencies,)
        How many nodes' worth of spectrum each frequency stands for.
    before, after : sequence of Separable
        Directions of filters and noise, in the order of the parameters, before and after those of the input kernel.
    input_slopes : ndarray of shape (n_signals, n_signals, n_input_parameters)
        ``T = U^T (dK / d theta) U``.

    Returns
    -------
    ndarray of shape (n_parameters, n_parameters)
    """
    squares, groups = np.square(precisions), (*before, *after)
    inner = np.zeros((input_slopes.shape[2], input_slopes.shape[2]))
    if inner.size:  # else the product of signals by signals is for nothing
        weights = (precisions * (multiplicities * power**2)) @ precisions.T
        flat = input_slopes.reshape(weights.size, input_slopes.shape[2])
        inner = flat.T @ (weights.reshape(-1, 1) * flat)
    diagonals = np.einsum("iia->ia", input_slopes)
    weighted = squares * (multiplicities * power)
    crossed = [(diagonals * one.of_signals[:, None]).T @ (weighted @ one.of_frequencies) for one in groups]
    blocks = [[_between(left, right, squares, multiplicities) for right in groups] for left in groups]
    position = len(before)
    for index, row in enumerate(blocks):
        row.insert(position, crossed[index].T)
    crossed.insert(position, inner)
    blocks.insert(position, crossed)
    return 0.5 * np.block(blocks)


def _between(left: Separable, right: Separable, squares: Array, multiplicities: Array) -> Array:
    shared = multiplicities * ((left.of_signals * right.of_signals) @ squares)
    return left.of_frequencies.T @ (shared[:, None] * right.of_frequencies)


def information_at(objective: Objective, x: Array) -> Array | None:
    """Fisher information of all hyperparameters at a point; None where the graph kernel has no Jacobian."""
    graph_kernel, input_theta, noise_variance = objective.split(x)
    spectrum, (rows, jacobian) = objective.spectrum, objective.inputs_at(input_theta)
    eigenvalues, each = spectrum.eigenvalues, np.ones(rows.n_signals)
    jacobians = graph_kernel.power_jacobians(eigenvalues)
    if jacobians is None:
        return None
    evidence = objective.read(graph_kernel, input_theta, noise_variance)[0]
    slopes = np.moveaxis(rows.turn.T @ np.moveaxis(jacobian, 2, 0) @ rows.turn, 0, 2)
    filters = [Separable(shares, own) for shares, own in zip((rows.modes.values, each), jacobians, strict=False)]
    noise = Separable(each, np.full((eigenvalues.size, 1), noise_variance))
    powers = evidence.precisions, evidence.power
    return fisher_information(
        *powers, spectrum.multiplicities, filters, slopes, [noise] if objective.learns_noise else []
    )


def precision_at(objective: Objective, x: Array) -> Array | None:
    """Positive definite curvature to step by: Fisher information plus that of the prior.

    In no direction is it less than one nat for a parameter's unit squared: the information vanishes where the filter
    does, a prior need not be concave, and on a quadrature single weights may be negative.
    """
    information = information_at(objective, x)
    if information is None:
        return None
    units = objective.units
    curvature = (information + objective.log_prior_precision(x)) * np.outer(units, units)
    values, vectors = np.linalg.eigh(curvature)
    scaled = vectors / units[:, None]
    return (scaled * np.maximum(values, LEAST_PRECISION)) @ scaled.T
