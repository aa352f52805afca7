"""Components of processes in time: Matern processes and damped oscillators, each with a few states.

States are scaled by powers of the rate ``a``, as ``(f, f' / a, f'' / a^2)``, so that a transition over a gap depends on
``tau = a * gap`` alone and the stationary covariance is the power times a constant matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp._basics.saved import Positive, ge

# A = exp(-tau) (B_0 + B_1 tau + B_2 tau^2): coefficients of the polynomials in tau
_POLYNOMIALS = {
    0.5: np.ones((1, 1, 1)),
    1.5: np.array([[[1.0, 0], [0, 1]], [[1, 1], [-1, -1]]]),
    2.5: np.array(
        [
            [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]],
            [[1, 1, 0], [0, 1, 1], [-1, -3, -2]],
            [[0.5, 1, 0.5], [-0.5, -1, -0.5], [0.5, 1, 0.5]],
        ]
    ),
}
_STATIONARY = {
    0.5: np.eye(1),
    1.5: np.eye(2),
    2.5: np.array([[1, 0, -1 / 3], [0, 1 / 3, 0], [-1 / 3, 0, 1]]),
}


class Component(ABC):
    """Stationary process of variance one, in blocks of states; its value is the sum of their first states."""

    @property
    def n_blocks(self) -> int:
        """Number of blocks, each with its own transition and an equal share of the power: one per angle, or one."""
        return max(self.angles.size, 1)

    @property
    @abstractmethod
    def stationary(self) -> Array:
        """Covariance of the states of a block whose power is one, shape (n_block_states, n_block_states)."""

    @abstractmethod
    def transitions(self, gaps: Array, rates: Array) -> tuple[Array, Array]:
        """Transitions and slopes in rates, each (n_gaps, n_blocks, n_block_states, n_block_states, n_rates)."""

    @property
    def angles(self) -> Array:
        """Angular frequencies of oscillations, per unit of time."""
        return np.empty(0)

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.n_blocks * len(self.stationary)


@dataclass(frozen=True)
class MaternComponent(Component):
    """Matern process: smoothness 1/2, ``exp(-tau)``; 3/2, ``exp(-tau) (1 + tau)``; 5/2, with ``tau^2 / 3`` as well.

    In terms of scikit-learn's length scale the rate is ``sqrt(2 * smoothness) / length_scale``.
    """

    smoothness: Positive = 0.5

    def __post_init__(self) -> None:
        if self.smoothness not in _POLYNOMIALS:
            raise ValueError(f"smoothness must be 0.5, 1.5 or 2.5; got {self.smoothness!r}.")

    @property
    def stationary(self) -> Array:
        return _STATIONARY[self.smoothness]

    def transitions(self, gaps: Array, rates: Array) -> tuple[Array, Array]:
        taus = np.multiply.outer(gaps, rates)[:, None, None]  # (n_gaps, 1, 1, n_rates)
        terms = _POLYNOMIALS[self.smoothness][..., None]
        polynomial, slope = np.zeros((1, 1, 1, 1)), np.zeros((1, 1, 1, 1))
        for term in terms[::-1]:  # Horner's rule
            slope = polynomial + taus * slope
            polynomial = term + taus * polynomial
        decay = np.exp(-taus)
        matrices = decay * polynomial
        return matrices[:, None], (decay * slope - matrices)[:, None] * gaps[:, None, None, None, None]


@dataclass(frozen=True)
class OscillatorComponent(Component):
    """Damped oscillators, ``exp(-tau) cos(2 pi k t / period)`` for the first few harmonics k, of equal power.

    A season that changes slowly is one whose rate is small.
    """

    period: Positive
    n_harmonics: Annotated[int, ge(1, 1000)] = 1

    def __post_init__(self) -> None:
        if not (np.isfinite(self.period) and self.period > 0):
            raise ValueError(f"period must be positive; got {self.period!r}.")
        if self.n_harmonics < 1:
            raise ValueError(f"n_harmonics must be at least 1; got {self.n_harmonics!r}.")

    @property
    def stationary(self) -> Array:
        return np.eye(2)

    @property
    def angles(self) -> Array:
        return 2 * np.pi / self.period * np.arange(1.0, self.n_harmonics + 1)

    def transitions(self, gaps: Array, rates: Array) -> tuple[Array, Array]:
        angles = np.multiply.outer(gaps, self.angles)
        cosines, sines = np.cos(angles), np.sin(angles)
        turns = np.stack([np.stack([cosines, sines], -1), np.stack([-sines, cosines], -1)], -2)
        matrices = turns[..., None] * np.exp(-np.multiply.outer(gaps, rates))[:, None, None, None]
        return matrices, -matrices * gaps[:, None, None, None, None]
