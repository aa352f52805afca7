"""What even steps say of parameters before they are seen: Whittle's information, equation (33)."""

from __future__ import annotations

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.states.filters import StateSpace, Timeline

N_FREQUENCIES = 96  # between the lowest that a series tells of and the highest
N_NEAR_PERIODS = 10  # more on either side of each harmonic of an oscillator
WIDTH_OF_PERIODS = 0.3  # radians per step, how far those lie


def frequencies(space: StateSpace, gap: float, n_steps: int) -> tuple[Array, Array]:
    """Angular frequencies per step, denser at low ones and about periods, and how many values each stands for."""
    lowest = np.pi / max(n_steps, 2)
    points = [np.geomspace(lowest, np.pi, N_FREQUENCIES)]
    near = np.geomspace(lowest / 2, WIDTH_OF_PERIODS, N_NEAR_PERIODS)
    for component in space.components:
        points += [angle + sign * near for angle in component.angles * gap for sign in (-1, 1)]
    folded = np.abs(np.mod(np.concatenate(points) + np.pi, 2 * np.pi) - np.pi)
    chosen = np.unique(np.clip(folded, lowest / 4, np.pi))
    edges = np.concatenate([[0.0], 0.5 * (chosen[1:] + chosen[:-1]), [np.pi]])
    return chosen, n_steps * np.diff(edges) / np.pi


def log_density_slopes(space: StateSpace, gap: float, angles: Array) -> Array:
    """Derivatives of the log spectral density of the sampled process in powers, rates and own variances.

    The density is ``D(w) = r + Re h^T (2 (I - A e^-iw)^-1 - I) P_inf h``. Shape (2 n_components + 1, n_frequencies,
    n_modes).
    """
    n_components = len(space.components)
    slopes = np.empty((2 * n_components + 1, angles.size, space.n_modes))
    phases = np.exp(-1j * angles)[:, None, None, None]
    density = np.broadcast_to(space.own, (angles.size, space.n_modes)).copy()
    for number, component in enumerate(space.components):
        matrices, changes = component.transitions(np.array([gap]), space.rates[number])
        unit, change = np.zeros((2, angles.size, space.n_modes))
        with_value = component.stationary[:, 0]
        for block in range(component.n_blocks):
            matrix, changed = (np.moveaxis(part[0, block], -1, 0) for part in (matrices, changes))  # (n_modes, b, b)
            resolvent = np.linalg.inv(np.eye(len(with_value)) - phases * matrix)
            ahead, behind = resolvent @ with_value, resolvent[..., 0, :]
            unit += 2 * ahead[..., 0].real - with_value[0]
            bent = np.einsum("wja,jab,wjb->wj", behind, changed, ahead, optimize=True)
            change += 2 * (phases[..., 0, 0] * bent).real
        slopes[number] = np.maximum(unit, 0.0) / component.n_blocks
        slopes[n_components + number] = space.powers[number] * change / component.n_blocks
        density += space.powers[number] * slopes[number]
    slopes[-1] = 1.0
    return slopes / density


def information(space: StateSpace, timeline: Timeline) -> Array:
    """Expected curvature in powers, rates and own variances of every mode: equation (33).

    Shape (2 n_components + 1, 2 n_components + 1, n_modes). Uneven steps count as even ones of the same mean.
    """
    n_steps = timeline.times.size
    gap = float(timeline.times[-1] - timeline.times[0]) / max(n_steps - 1, 1) or 1.0
    angles, counts = frequencies(space, gap, n_steps)
    slopes = log_density_slopes(space, gap, angles)
    by_mode = slopes.transpose(2, 0, 1)
    return np.moveaxis((by_mode * (0.5 * counts)) @ by_mode.transpose(0, 2, 1), 0, -1)
