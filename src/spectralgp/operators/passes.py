"""Passes over a graph: Chebyshev moments of columns, and sums of filtered columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from scipy.fft import dct

from spectralgp._basics.checks import Array
from spectralgp._basics.progress import mention
from spectralgp.operators.base import Operator


def chebyshev_points(n_points: int) -> Array:
    """``x_q = cos(pi (q + 1/2) / Q)``, the nodes of equation (12), in [-1, 1] from right to left."""
    return np.cos(np.pi * (np.arange(n_points) + 0.5) / n_points)


def chebyshev_coefficients(values: Array) -> Array:
    """Coefficients of the Chebyshev series through values at `chebyshev_points`, along the last axis."""
    coefficients = dct(values, type=2, axis=-1) / values.shape[-1]
    coefficients[..., 0] /= 2
    return coefficients


def quadrature_weights(moments: Array) -> Array:
    """Weights at `chebyshev_points` from moments of ``T_k``, along the first axis: equation (12)."""
    return dct(moments, type=3, axis=0) / moments.shape[0]


class MomentPass:
    """Chebyshev moments ``Y T_k(A) Y^T`` of columns, or of each column alone, by one recurrence that can go on.

    Every step of the recurrence gives two moments, since ``2 T_i T_j = T_{i+j} + T_{|i-j|}`` (equation (11)). The
    columns ``Y^T``, a block of the operator, are taken over. `gram` asks for all products of columns rather than for
    those of each column with itself. Pickles hold the moments alone.
    """

    def __init__(self, operator: Operator, columns: Any, gram: bool) -> None:
        self.gram = gram
        self._moments: list[Any] = [(operator.product if gram else operator.column_products)(columns, columns)]
        self._recurrence: Iterator[tuple[Array, Array]] | None = operator.recurrence(columns, gram)
        self._go_on(1)

    @classmethod
    def known(cls, moments: Array, gram: bool) -> MomentPass:
        """A pass that was made before, of which nothing but the moments is left."""
        known = cls.__new__(cls)
        known.gram, known._moments, known._recurrence = gram, list(moments), None
        return known

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling, without that of the recurrence."""
        return self.__dict__ | {"_recurrence": None}

    @property
    def n_moments(self) -> int:
        """How many moments there are so far; always odd."""
        return len(self._moments)

    @property
    def moments(self) -> Array:
        """Moments so far, along the first axis."""
        return np.stack(self._moments)

    def release(self) -> None:
        """Forget the state of the recurrence, which going on would need, and keep the moments."""
        self._recurrence = None

    @property
    def is_released(self) -> bool:
        """Whether the recurrence cannot go on."""
        return self._recurrence is None

    def _go_on(self, n_steps: int, n_wanted: int | None = None) -> None:
        if n_steps == 0:
            return
        assert self._recurrence is not None, "the state of the recurrence was forgotten"
        try:
            for squares, crosses in islice(self._recurrence, n_steps):
                first = crosses if self.n_moments == 1 else 2 * crosses - self._moments[1]
                self._moments += [first, 2 * squares - self._moments[0]]
                if n_wanted is not None:
                    mention(f"moment {self.n_moments} of {n_wanted}")
        except BaseException:
            self.release()  # a recurrence that was interrupted ends
            raise

    def extend(self, n_moments: int) -> None:
        """Go on until there are at least `n_moments`; an ArithmeticError if they grow.

        They do so only where an eigenvalue lies outside of the operator's interval.
        """
        self._go_on(max(0, n_moments - self.n_moments + 1) // 2, n_moments)
        sizes = np.diagonal(self.moments, axis1=1, axis2=2) if self.gram else self.moments
        if not np.all(np.abs(sizes) <= 1.01 * sizes[0] + 1e-300):
            raise ArithmeticError("an eigenvalue of the Laplacian lies beyond the interval of the recurrence")
