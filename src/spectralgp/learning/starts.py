"""Where searches start, other than at typical values: anywhere, and at the best point of the paper's grids."""

from __future__ import annotations

import itertools

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.learning.objective import Objective

RANDOM_SPREAD = 2.0  # standard deviation of random graph parameters about typical ones, in their units
MAX_LOG_DISTANCE = float(np.log(30.0))  # of random input parameters from typical ones

GRIDS = (np.linspace(-5, 5, 11), np.linspace(-10, 10, 11))  # the paper's: for low-pass, and for other spectra
GRID_NOISE_SHARES = (0.1, 0.2)  # of the signals' variance, the paper's
MAX_GRID_FILTERS = 10_000  # of one grid, beyond which it is thinned
MAX_GRID_COEFFICIENTS = 9  # with three values each they still fit the limit
MAX_BLOCK = 200_000  # variances computed at a time, few enough for a processor's cache


def random_start(objective: Objective, random_state: np.random.Generator) -> Array:
    """A point within the bounds, where filters need not be positive.

    Graph parameters are normal about one of the kernel's own starts, input parameters log-uniform about where they are
    expected, and the noise is log-uniform between its lower bound and the signals' variance.
    """
    task, kernel = objective.task, objective.graph_kernel
    low, high = objective.bounds.T
    graph_thetas = kernel.starting_points(objective.spectrum, task.variance)
    start = graph_thetas[random_state.integers(len(graph_thetas))]
    graph_theta = random_state.normal(start, RANDOM_SPREAD * kernel.theta_units(task.variance))
    centres = task.input_kernel.expected_theta(task.inputs)
    own = slice(kernel.theta.size, kernel.theta.size + centres.size)
    lowest, highest = (np.clip(centres + far, low[own], high[own]) for far in (-MAX_LOG_DISTANCE, MAX_LOG_DISTANCE))
    input_theta = random_state.uniform(lowest, highest)
    least_noise = task.noise_bounds[0]
    log_noise = random_state.uniform(least_noise, max(least_noise, np.log(task.variance)))
    return np.clip(objective.join(graph_theta, input_theta, float(np.exp(log_noise))), low, high)


def grid_search(objective: Objective) -> tuple[Array, str]:
    """Best point of the paper's grids, at the length scale ``l = mean |y_n|^2`` and the amplitude ``var(Y)``.

    Returns the point and a name for this stage that says how far the grid was thinned.

    Raises
    ------
    ValueError
        If the graph kernel is not a polynomial with free coefficients.
    """
    task, kernel, spectrum = objective.task, objective.graph_kernel, objective.spectrum
    input_theta, energy = objective.input_theta.copy(), task.signals.mean_square * task.signals.shape[1]
    if input_theta.size and energy > 0:
        is_length_scale = ~np.isnan(task.input_kernel.typical_theta(task.inputs))
        input_theta[is_length_scale] = 0.5 * np.log(energy)
        input_theta = np.clip(input_theta, *task.input_kernel.bounds.T)
    rows = objective.inputs_at(input_theta)[0]
    data = objective.data_in(spectrum, rows)
    powers = np.vander(spectrum.eigenvalues / spectrum.upper, objective.n_graph, increasing=True)
    amplitude = np.sqrt(task.variance)
    noises = [share * task.variance for share in GRID_NOISE_SHARES]
    if task.known_noise is not None:
        noises = [task.known_noise]
    best: tuple[float, Array, float] = (-np.inf, np.zeros(objective.n_graph), noises[0])
    block = max(1, MAX_BLOCK // data.energies.size)
    n_values = 0
    for grid in GRIDS:
        coefficients, n_values = _combinations(grid, objective.n_graph)
        spectra = np.square(amplitude * coefficients @ powers.T)
        for noise in noises:
            values = np.empty(len(spectra))
            for start in range(0, len(spectra), block):  # equation (5), up to its constant
                variances = rows.variances(spectra[start : start + block], noise)
                terms = data.multiplicities * np.log(variances) + data.energies / variances
                values[start : start + block] = -0.5 * np.sum(terms, axis=(1, 2))
            index = int(np.argmax(values))
            if values[index] > best[0]:
                best = (float(values[index]), amplitude * coefficients[index], noise)
    found = kernel.with_powers(best[1])
    if found is None:
        raise ValueError(f"graph_kernel must be a polynomial to search its coefficients on a grid; got {kernel!r}.")
    thinned = f", {n_values} of 11 values per coefficient" if n_values < 11 else ""
    return objective.join(found.theta, input_theta, best[2]), f"grid search{thinned}"


def _combinations(values: Array, n_coefficients: int) -> tuple[Array, int]:
    """All combinations of coefficients up to a common sign, from fewer values where there would be too many.

    A filter and its negative have the same covariance, so half of the combinations suffice. Beyond nine
    coefficients even three values are too many, and the highest coefficients stay zero.
    """
    free = min(n_coefficients, MAX_GRID_COEFFICIENTS)
    n_values = values.size
    while n_values**free // 2 > MAX_GRID_FILTERS:
        n_values -= 2  # keeps zero among them
    chosen = np.linspace(values[0], values[-1], n_values)
    combinations = np.array(list(itertools.product(chosen, repeat=free)))
    half = combinations[: (combinations.shape[0] + 1) // 2]  # the other half holds the negatives in reverse
    return np.pad(half, ((0, 0), (0, n_coefficients - free))), n_values
