"""What the Chebyshev recurrence needs of a Laplacian, whatever computes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from spectralgp._basics.arrays import take
from spectralgp._basics.checks import Array
from spectralgp._basics.progress import mention
from spectralgp.operators.lanczos import lanczos, largest_ritz_value
from spectralgp.operators.randomness import node_normals, node_signs

LANCZOS_STEPS = 200
LANCZOS_TOLERANCE = 1e-7
BOUND_MARGIN = 1.002  # of the interval over the largest eigenvalue, which Lanczos finds from below
RESIDUALS_BEYOND = 2.0  # residuals of Lanczos by which the interval reaches beyond what it found


class Operator(ABC):
    """``A = 2 L / bound - I`` acting on blocks of columns, with the nodes along the first axis.

    Blocks are arrays (n_nodes, n_columns) of the operator's own library, in its own order of the nodes; `load` and
    `unload` translate. Eigenvalues of ``A`` lie in [-1, 1] as long as `bound` is not below the largest of ``L``. It
    starts as `gershgorin`, a bound that always holds.
    """

    dtype: Any

    def __init__(self, n_nodes: int, gershgorin: float) -> None:
        self.n_nodes = n_nodes
        self.gershgorin = gershgorin or 1.0
        self.bound = self.gershgorin

    # ------------------------------------------------------------------------------------------------- blocks

    @abstractmethod
    def load(self, signals: Any) -> Any:
        """Block with the given signals, shape (n_signals, n_nodes), in its columns."""

    @abstractmethod
    def unload(self, block: Any) -> Any:
        """Signals, shape (n_signals, n_nodes), from a block; undoes `load`."""

    @abstractmethod
    def zeros(self, n_columns: int) -> Any:
        """Block of zeros."""

    @abstractmethod
    def unit_vectors(self, nodes: NDArray[np.intp]) -> Any:
        """Block with a one at one node per column, and zeros elsewhere."""

    @abstractmethod
    def random_block(self, draw: Callable[..., Any], n_columns: int, random_state: np.random.Generator) -> Any:
        """Block of random numbers of the nodes, drawn by `node_signs` or `node_normals`."""

    def random_signs(self, n_columns: int, random_state: np.random.Generator) -> Any:
        """Block of independent random signs, which belong to the nodes: every operator draws the same."""
        return self.random_block(node_signs, n_columns, random_state)

    def random_normal(self, n_columns: int, random_state: np.random.Generator) -> Any:
        """Block of independent standard normal numbers, which belong to the nodes too."""
        return self.random_block(node_normals, n_columns, random_state)

    @abstractmethod
    def rows(self) -> Any:
        """Block of two columns: the diagonal of ``L``, and the sums of squares of its other entries in each row."""

    @abstractmethod
    def row_products(self, left: Any, right: Any) -> Any:
        """Inner products of the rows of two blocks, as a block of one column."""

    @abstractmethod
    def product(self, left: Any, right: Any) -> Array:
        """``left^T right`` on the host, as float64."""

    @abstractmethod
    def column_products(self, left: Any, right: Any) -> Array:
        """Inner products of the columns of two blocks on the host, as float64."""

    @abstractmethod
    def combine(self, block: Any, matrix: Array) -> Any:
        """``block @ matrix`` with a small matrix from the host."""

    @abstractmethod
    def scale(self, block: Any, factors: Array) -> Any:
        """Columns times one factor each, from the host."""

    def beside(self, left: Any, right: Any) -> Any:
        """Block with the columns of two."""
        return array_namespace(left).concat([left, right], axis=1)

    def chosen(self, block: Any, columns: NDArray[np.intp]) -> Any:
        """Block with some of the columns of another."""
        return take(block, columns, axis=1)

    def stack(self, signals: list[Any]) -> Any:
        """Sets of unloaded signals along a new first axis."""
        return array_namespace(signals[0]).stack(signals)

    # ------------------------------------------------------------------------------------------------- passes

    @abstractmethod
    def step(self, current: Any, previous: Any) -> Any:
        """``2 A current - previous``, which may overwrite `previous`."""

    def advance(self, current: Any, previous: Any, gram: bool) -> tuple[Any, Array, Array]:
        """Next block of the recurrence, with its products with itself and with the current block."""
        following = self.step(current, previous)
        multiply = self.product if gram else self.column_products
        return following, multiply(following, following), multiply(following, current)

    def recurrence(self, columns: Any, gram: bool) -> Iterator[tuple[Array, Array]]:
        """Yield products of ``T_k(A)`` times a block with itself and with ``T_{k-1}(A)`` times it, for k = 1, 2, ...

        The block is taken over. Products are those of all columns (`gram`), or of each column alone.
        """
        multiply = self.product if gram else self.column_products
        previous, current = columns, self.step(columns * 0.5, self.zeros(columns.shape[1]))  # T_1 = A T_0
        yield multiply(current, current), multiply(current, previous)
        while True:
            following, squares, crosses = self.advance(current, previous, gram)
            previous, current = current, following
            yield squares, crosses

    def filtered(self, columns: Any, coefficients: Array) -> Any:
        """``sum_k T_k(A) C_k`` by Clenshaw's recurrence, the ``C_k`` made of the columns of a block, left as it is.

        With coefficients ``G_k`` of shape (n_terms, n_columns, n_outputs), ``C_k`` is ``columns @ G_k``; with those of
        shape (n_terms, n_columns), every column times a number.
        """
        term = self.combine if coefficients.ndim == 3 else self.scale
        n_terms, n_outputs = coefficients.shape[0], coefficients.shape[-1]
        current, previous = self.zeros(n_outputs), self.zeros(n_outputs)
        for number in range(n_terms - 1, 0, -1):
            following = self.step(current, previous)
            following += term(columns, coefficients[number])
            current, previous = following, current
            mention(f"filter {n_terms - number} of {n_terms - 1}")
        # the last step has A b_1 - b_2 where the others have 2 A b_1 - b_2
        last = previous * -0.5
        following = self.step(current, previous)
        following *= 0.5
        following += last
        following += term(columns, coefficients[0])
        return following

    def probed(self, probes: Any, coefficients: Array) -> Any:
        """Mean over the probes ``z``, columns that stay as they are, of ``z * f(L) z``: one column per function ``f``.

        The functions are Chebyshev series with coefficients of shape (n_functions, n_terms).
        """
        width, n_terms = probes.shape[1], coefficients.shape[1]
        total = self.combine(self.row_products(probes, probes), coefficients[None, :, 0] / width)
        current, previous = probes * 1, None
        for term in range(1, n_terms):
            following = self.step(probes * 0.5, self.zeros(width)) if term == 1 else self.step(current, previous)
            previous, current = current, following
            total += self.combine(self.row_products(probes, current), coefficients[None, :, term] / width)
        return total

    # ------------------------------------------------------------------------------------------------- spectrum

    @cached_property
    def traces(self) -> tuple[float, float]:
        """Traces of ``L`` and of its square, from sums over its entries."""
        rows = self.rows()
        trace, others = self.product(self.zeros(1) + 1, rows)[0]
        return float(trace), float(self.product(rows, rows)[0, 0] + others)

    def low_diagonals(self) -> Any:
        """Block of three columns: the diagonals of ``T_0(A)``, ``T_1(A)`` and ``T_2(A)``, exactly."""
        rows, scale = self.rows(), 2 / self.bound
        ones = self.zeros(1) + 1
        first = self.combine(rows, np.array([[scale], [0.0]])) - ones
        second = 2 * (first * first + self.combine(rows, np.array([[0.0], [scale**2]]))) - ones
        return self.beside(self.beside(ones, first), second)

    @cached_property
    def keeps_constants(self) -> bool:
        """Whether a constant is an eigenvector, of eigenvalue -1 of ``A``, as for the combinatorial Laplacian."""
        ones = self.zeros(1) + 1
        missed = self.step(ones, self.zeros(1)) + ones * 2
        rounding = 64 * float(np.finfo(str(self.dtype).rpartition(".")[2]).eps)
        return bool(self.column_products(missed, missed)[0] <= self.n_nodes * rounding**2)

    def largest_eigenvalue(self) -> tuple[float, float]:
        """Largest eigenvalue of ``L`` by the Lanczos method, from a fixed random start, and its residual.

        An eigenvalue lies within the residual of the value, and it is the largest unless the start happens to have
        almost nothing of that one's eigenvector. Where eigenvalues crowd at the upper end, as on a long ring, 200 steps
        leave a residual of some thousandths; the value itself is then off by much less.
        """
        # not of random signs, to which the last eigenvector of a bipartite graph, signs too, is often orthogonal
        start = self.random_normal(1, np.random.default_rng(0))
        rows = self._lanczos_rows(start)
        value, residual = largest_ritz_value(rows, LANCZOS_TOLERANCE, min(LANCZOS_STEPS, self.n_nodes))
        return self.bound * (value + 1) / 2, self.bound * residual / 2

    def _lanczos_rows(self, start: Any) -> Iterator[tuple[float, float]]:
        """Rows of the tridiagonal matrix that `lanczos` makes of ``A``."""
        return lanczos(
            lambda block: self.step(block * 0.5, self.zeros(1)),
            lambda left, right: float(self.product(left, right)[0, 0]),
            start,
        )

    def tighten(self, largest_eigenvalue: float, residual: float) -> None:
        """Shrink the interval to the spectrum, with a margin for what Lanczos may have missed."""
        reach = max(BOUND_MARGIN * largest_eigenvalue, largest_eigenvalue + RESIDUALS_BEYOND * residual)
        self.bound = min(self.gershgorin, reach) or 1.0
