"""Passes over a graph: Chebyshev moments of columns, and sums of filtered columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.fft import dct

from spectralgp._checks import Array
from spectralgp._operators.base import Operator
from spectralgp._progress import mention


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

    Every step of the recurrence gives two moments, since ``2 T_i T_j = T_{i+j} + T_{|i-j|}`` (equation (11)).

    Parameters
    ----------
    operator : Operator
        ``A``.
    columns : block of shape (n_nodes, n_columns)
        ``Y^T``; the pass takes it over.
    gram : bool
        Whether to take all products of columns, or each column's with itself only.
    """

    def __init__(self, operator: Operator, columns: Any, gram: bool) -> None:
        self.operator, self.gram = operator, gram
        multiply = operator.product if gram else operator.column_products
        first = multiply(columns, columns)
        # T_1 = A T_0: the recurrence with T_{-1} = A T_0 would need it, so the first step is taken by halves
        self.previous: Any = columns
        self.current: Any = operator.step(columns * 0.5, operator.zeros(columns.shape[1]))
        self._moments: list[Any] = [
            first,
            multiply(self.current, columns),
            2 * multiply(self.current, self.current) - first,
        ]

    @classmethod
    def known(cls, operator: Operator, moments: Array, gram: bool) -> MomentPass:
        """A pass that was made before, of which nothing but the moments is left."""
        known = cls.__new__(cls)
        known.operator, known.gram, known._moments = operator, gram, list(moments)
        known.release()
        return known

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
        self.current = self.previous = None

    @property
    def is_released(self) -> bool:
        """Whether the recurrence cannot go on."""
        return self.current is None

    def extend(self, n_moments: int) -> None:
        """Go on until there are at least so many moments.

        Raises
        ------
        ArithmeticError
            If the moments grow, which they do only where an eigenvalue lies outside of the operator's interval.
        """
        while self.n_moments < n_moments:
            following, squares, crosses = self.operator.advance(self.current, self.previous, self.gram)
            self.previous, self.current = self.current, following
            self._moments.append(2 * crosses - self._moments[1])
            self._moments.append(2 * squares - self._moments[0])
            mention(f"moment {self.n_moments} of {n_moments}")
        sizes = np.diagonal(self.moments, axis1=1, axis2=2) if self.gram else self.moments
        if not np.all(np.abs(sizes) <= 1.01 * sizes[0] + 1e-300):
            raise ArithmeticError("an eigenvalue of the Laplacian lies beyond the interval of the recurrence")


def filter_columns(operator: Operator, columns: Any, coefficients: Array) -> Any:
    """``sum_k T_k(A) Y^T G_k``: many filters of the columns, summed into new columns, by Clenshaw's recurrence.

    Parameters
    ----------
    operator : Operator
        ``A``.
    columns : block of shape (n_nodes, n_columns)
        ``Y^T``; left as it is.
    coefficients : ndarray of shape (n_terms, n_columns, n_outputs)
        ``G_k``.

    Returns
    -------
    block of shape (n_nodes, n_outputs)
    """
    n_terms, _, n_outputs = coefficients.shape
    return _clenshaw(operator, n_outputs, n_terms, lambda k: operator.combine(columns, coefficients[k]))


def filter_each(operator: Operator, columns: Any, coefficients: Array) -> Any:
    """Every column through a filter of its own.

    Parameters
    ----------
    operator : Operator
        ``A``.
    columns : block of shape (n_nodes, n_columns)
        Left as it is.
    coefficients : ndarray of shape (n_columns, n_terms)
        Of Chebyshev polynomials.
    """
    n_columns, n_terms = coefficients.shape
    return _clenshaw(operator, n_columns, n_terms, lambda k: operator.scale(columns, coefficients[:, k]))


def _clenshaw(operator: Operator, n_outputs: int, n_terms: int, term: Callable[[int], Any]) -> Any:
    """``sum_k T_k(A) C_k`` by Clenshaw's recurrence, with what makes the blocks ``C_k``."""
    current, previous = operator.zeros(n_outputs), operator.zeros(n_outputs)
    for number in range(n_terms - 1, 0, -1):
        following = operator.step(current, previous)
        following += term(number)
        current, previous = following, current
        mention(f"filter {n_terms - number} of {n_terms - 1}")
    # the last step has A b_1 - b_2 where the others have 2 A b_1 - b_2
    last = previous * -0.5
    following = operator.step(current, previous)
    following *= 0.5
    following += last
    following += term(0)
    return following
