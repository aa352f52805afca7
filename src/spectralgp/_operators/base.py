"""What the Chebyshev recurrence needs of a Laplacian, whatever computes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal

from spectralgp._checks import Array

LANCZOS_STEPS = 200
LANCZOS_TOLERANCE = 1e-7
MARGIN = 1.002  # of the interval over the largest eigenvalue, which Lanczos finds from below
SAFETY = 2.0  # times the residual of Lanczos that the interval reaches beyond what it found


class Operator(ABC):
    """``A = 2 L / bound - I`` acting on blocks of columns, with the nodes along the first axis.

    Blocks are arrays (n_nodes, n_columns) of the operator's own library, in its own order of the nodes; `load` and
    `unload` translate. Eigenvalues of ``A`` lie in [-1, 1] as long as `bound` is not below the largest of ``L``.

    Parameters
    ----------
    n_nodes : int
        Number of nodes.
    gershgorin : float
        A bound on the eigenvalues of ``L`` that always holds; the first value of `bound`.
    """

    dtype: Any

    def __init__(self, n_nodes: int, gershgorin: float) -> None:
        self.n_nodes = n_nodes
        self.gershgorin = gershgorin or 1.0
        self.bound = self.gershgorin

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
    def random_signs(self, n_columns: int, random_state: np.random.Generator) -> Any:
        """Block of independent random signs."""

    @abstractmethod
    def random_normal(self, n_columns: int, random_state: np.random.Generator) -> Any:
        """Block of independent standard normal numbers."""

    @abstractmethod
    def rows(self) -> Any:
        """Block of two columns: the diagonal of ``L``, and the sums of squares of its other entries in each row."""

    @abstractmethod
    def row_products(self, left: Any, right: Any) -> Any:
        """Inner products of the rows of two blocks, as a block of one column."""

    @abstractmethod
    def stack(self, signals: list[Any]) -> Any:
        """Sets of signals along a new first axis."""

    @abstractmethod
    def step(self, current: Any, previous: Any) -> Any:
        """``2 A current - previous``, which may overwrite `previous`."""

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

    def advance(self, current: Any, previous: Any, gram: bool) -> tuple[Any, Array, Array]:
        """Next block of the recurrence, with its products with itself and with the current block."""
        following = self.step(current, previous)
        multiply = self.product if gram else self.column_products
        return following, multiply(following, following), multiply(following, current)

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
        columns = (ones, first, second)
        return sum(self.combine(column, np.eye(3)[[index]]) for index, column in enumerate(columns))

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
        current = self.random_normal(1, np.random.default_rng(0))
        current = self.combine(current, self.product(current, current) ** -0.5)
        previous = self.zeros(1)
        diagonal: list[float] = []
        below: list[float] = []
        value = residual = 0.0
        for _ in range(min(LANCZOS_STEPS, self.n_nodes)):
            # step returns 2 A current - previous, so that scaling previous gives 2 (A current - beta previous)
            following = self.step(current, self.combine(previous, np.full((1, 1), 2 * (below[-1] if below else 0.0))))
            doubled = float(self.product(following, current)[0, 0])
            following = following - current * doubled
            diagonal.append(doubled / 2)
            length = float(np.sqrt(max(self.product(following, following)[0, 0], 0.0))) / 2
            last = len(diagonal) - 1
            values, vectors = eigh_tridiagonal(diagonal, below, select="i", select_range=(last, last))
            value = float(values[0])
            residual = length * abs(float(vectors[-1, 0]))
            if residual <= LANCZOS_TOLERANCE:
                break
            below.append(length)
            previous, current = current, self.combine(following, np.full((1, 1), 0.5 / length))
        return self.bound * (value + 1) / 2, self.bound * residual / 2

    def tighten(self, largest_eigenvalue: float, residual: float) -> None:
        """Shrink the interval to the spectrum, with a margin for what Lanczos may have missed."""
        reach = max(MARGIN * largest_eigenvalue, largest_eigenvalue + SAFETY * residual)
        self.bound = min(self.gershgorin, reach) or 1.0
