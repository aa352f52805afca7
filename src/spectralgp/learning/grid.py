"""The paper's starting point: a grid search of the filter's coefficients and the noise."""

from __future__ import annotations

import itertools

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.fields import Inputs
from spectralgp.learning.objective import Objective
from spectralgp.spectra import SpectralData

GRIDS = (np.linspace(-5, 5, 11), np.linspace(-10, 10, 11))  # the paper's: for low-pass, and for other spectra
NOISE_SHARES = (0.1, 0.2)  # of the signals' variance, the paper's
GRID_LIMIT = 10_000  # filters of one grid, beyond which it is thinned
MOST_COEFFICIENTS = 9  # with three values each they still fit the limit
BLOCK = 200_000  # variances computed at a time, few enough for a processor's cache


def grid_search(objective: Objective) -> tuple[Array, str]:
    """Best point of the paper's grids, at the length scale ``l = mean |y_n|^2`` and the amplitude ``var(Y)``.

    Returns the point and a name for this stage that says how far the grid was thinned.

    Raises
    ------
    ValueError
        If the graph kernel is no polynomial with free coefficients.
    """
    task, kernel, spectrum = objective.task, objective.graph_kernel, objective.spectrum
    inputs = _first_length_scales(objective)
    rows = objective.inputs_at(inputs)[0]
    data = objective.data_in(spectrum, rows)
    powers = np.vander(spectrum.eigenvalues / spectrum.upper, objective.n_graph, increasing=True)
    amplitude = np.sqrt(task.variance)
    noises = [share * task.variance for share in NOISE_SHARES]
    if task.known_noise is not None:
        noises = [task.known_noise]
    best: tuple[float, Array, float] = (-np.inf, np.zeros(objective.n_graph), noises[0])
    n_values = 0
    for grid in GRIDS:
        candidates, n_values = _candidates(grid, objective.n_graph)
        spectra = np.square(amplitude * candidates @ powers.T)
        for noise in noises:
            values = _log_likelihoods(rows, spectra, noise, data)
            index = int(np.argmax(values))
            if values[index] > best[0]:
                best = (float(values[index]), amplitude * candidates[index], noise)
    found = kernel.with_powers(best[1])
    if found is None:
        raise ValueError(f"graph_kernel must be a polynomial to search its coefficients on a grid; got {kernel!r}.")
    thinned = f", {n_values} of 11 values a coefficient" if n_values < 11 else ""
    return objective.join(found.theta, inputs, best[2]), f"grid search{thinned}"


def _first_length_scales(objective: Objective) -> Array:
    """The input kernel's parameters, with every length scale at the supplement's starting value."""
    task, theta = objective.task, objective.input_theta.copy()
    energy = task.signals.mean_square * task.signals.shape[1]
    if theta.size and energy > 0:
        scales = ~np.isnan(task.input_kernel.typical_theta(task.inputs))
        theta[scales] = 0.5 * np.log(energy)
        theta = np.clip(theta, *task.input_kernel.bounds.T)
    return theta


def _candidates(values: Array, n_coefficients: int) -> tuple[Array, int]:
    """All combinations of coefficients up to a common sign, from fewer values where there would be too many.

    A filter and its negative have the same covariance, so half of the combinations suffice. Beyond nine
    coefficients even three values are too many, and the highest coefficients stay zero.
    """
    free = min(n_coefficients, MOST_COEFFICIENTS)
    n_values = values.size
    while n_values**free // 2 > GRID_LIMIT:
        n_values -= 2  # keeps zero among them
    chosen = np.linspace(values[0], values[-1], n_values)
    combinations = np.array(list(itertools.product(chosen, repeat=free)))
    half = combinations[: (combinations.shape[0] + 1) // 2]  # the other half holds the negatives in reverse
    return np.pad(half, ((0, 0), (0, n_coefficients - free))), n_values


def _log_likelihoods(rows: Inputs, spectra: Array, noise_variance: float, data: SpectralData) -> Array:
    """Equation (5), up to its constant, for many filters at once, in blocks that fit the cache."""
    energies, multiplicities = data.energies, data.multiplicities
    block = max(1, BLOCK // energies.size)
    values = np.empty(spectra.shape[0])
    for start in range(0, spectra.shape[0], block):
        variances = rows.variances(spectra[start : start + block], noise_variance)
        values[start : start + block] = -0.5 * np.sum(
            multiplicities * np.log(variances) + energies / variances, axis=(1, 2)
        )
    return values
