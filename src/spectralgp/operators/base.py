"""What the Chebyshev recurrence needs of a Laplacian, whatever computes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from spectralgp._basics.arrays import take
from spectralgp._basics.checks import Array
from spectralgp._basics.progress import mention

LANCZOS_STEPS = 200
LANCZOS_TOLERANCE = 1e-7
MARGIN = 1.002  # of the interval over the largest eigenvalue, which Lanczos finds from below
SAFETY = 2.0  # times the residual of Lanczos that the interval reaches beyond what it found


class Tridiagonal:
    """The matrix that the Lanczos method makes of ``A``, row by row, and its largest eigenvalue.

    Parameters
    ----------
    n_nodes : int
        As many rows it has at most.

    Attributes
    ----------
    value, residual : float
        The eigenvalue, and how far ``A`` has one from it at most.
    """

    def __init__(self, n_nodes: int) -> None:
        self.value = self.residual = 0.0
        self._most = min(LANCZOS_STEPS, n_nodes)
        self._diagonal: list[float] = []
        self._below: list[float] = []

    def add(self, diagonal: float, length: float) -> bool:
        """One row, with the length of what is left of the vector after it; whether that is enough."""
        self._diagonal.append(diagonal)
        last = len(self._diagonal) - 1
        values, vectors = eigh_tridiagonal(self._diagonal, self._below, select="i", select_range=(last, last))
        self.value, self.residual = float(values[0]), length * abs(float(vectors[-1, 0]))
        self._below.append(length)
        return self.residual <= LANCZOS_TOLERANCE or len(self._diagonal) == self._most


class Recurrence(ABC):
    """Chebyshev polynomials of an operator times a block, one after the other.

    Attributes
    ----------
    first : ndarray
        Products of the block with itself: of all its columns, or of each with itself.
    """

    first: Array

    @abstractmethod
    def advance(self, n_steps: int) -> Iterator[tuple[Array, Array]]:
        """So many steps on: products of each new block with itself, and with the one before."""


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
    def unit_vectors(self, nodes: NDArray[np.intp]) -> Any:
        """Block with a one at a node in each column, and zeros elsewhere."""

    @abstractmethod
    def random_signs(self, n_columns: int, random_state: np.random.Generator) -> Any:
        """Block of independent random signs, which belong to the nodes: every operator draws the same."""

    @abstractmethod
    def random_normal(self, n_columns: int, random_state: np.random.Generator) -> Any:
        """Block of independent standard normal numbers, which belong to the nodes too."""

    @abstractmethod
    def rows(self) -> Any:
        """Block of two columns: the diagonal of ``L``, and the sums of squares of its other entries in each row."""

    @abstractmethod
    def row_products(self, left: Any, right: Any) -> Any:
        """Inner products of the rows of two blocks, as a block of one column."""

    @abstractmethod
    def stack(self, signals: list[Any]) -> Any:
        """Sets of signals along a new first axis."""

    def beside(self, left: Any, right: Any) -> Any:
        """Block with the columns of two."""
        return array_namespace(left).concat([left, right], axis=1)

    def chosen(self, block: Any, columns: NDArray[np.intp]) -> Any:
        """Block with some of the columns of another."""
        return take(block, columns, axis=1)

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

    def recurrence(self, columns: Any, gram: bool) -> Recurrence:
        """``T_k(A)`` of a block, which this takes over, with products of each with itself and with the one before."""
        return Steps(self, columns, gram)

    def filtered(self, columns: Any, coefficients: Array) -> Any:
        """``sum_k T_k(A) C_k`` by Clenshaw's recurrence, the ``C_k`` made of the columns of a block, left as it is.

        Parameters
        ----------
        columns : block of shape (n_nodes, n_columns)
            ``Y^T``.
        coefficients : ndarray of shape (n_terms, n_columns, n_outputs) or (n_terms, n_columns)
            ``C_k`` are ``Y^T G_k``, with these ``G_k``; or every column times a number.
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
        """Mean over the probes ``z`` of ``z * f(L) z`` for several functions, as a block with a column for each.

        Parameters
        ----------
        probes : block of shape (n_nodes, n_probes)
            Left as it is.
        coefficients : ndarray of shape (n_functions, n_terms)
            Chebyshev series of the functions.
        """
        width = probes.shape[1]
        total = self.zeros(coefficients.shape[0])
        current, previous = probes * 1, None
        n_terms = coefficients.shape[1]
        for term in range(n_terms):
            total += self.combine(self.row_products(probes, current), coefficients[None, :, term] / width)
            if term == n_terms - 1:
                break
            if previous is None:
                following = self.step(current * 0.5, self.zeros(width))
            else:
                following = self.step(current, previous)
            previous, current = current, following
        return total

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
        previous, length = self.zeros(1), 0.0
        found = Tridiagonal(self.n_nodes)
        while True:
            # step returns 2 A current - previous, so that scaling previous gives 2 (A current - beta previous)
            following = self.step(current, self.combine(previous, np.full((1, 1), 2 * length)))
            doubled = float(self.product(following, current)[0, 0])
            following = following - current * doubled
            length = float(np.sqrt(max(self.product(following, following)[0, 0], 0.0))) / 2
            if found.add(doubled / 2, length):
                break
            previous, current = current, self.combine(following, np.full((1, 1), 0.5 / length))
        return self.bound * (found.value + 1) / 2, self.bound * found.residual / 2

    def tighten(self, largest_eigenvalue: float, residual: float) -> None:
        """Shrink the interval to the spectrum, with a margin for what Lanczos may have missed."""
        reach = max(MARGIN * largest_eigenvalue, largest_eigenvalue + SAFETY * residual)
        self.bound = min(self.gershgorin, reach) or 1.0


class Steps(Recurrence):
    """The recurrence step by step, with two blocks.

    Parameters
    ----------
    operator : Operator
        ``A``.
    columns : block of shape (n_nodes, n_columns)
        ``Y^T``; taken over.
    gram : bool
        Whether to take all products of columns, or each column's with itself only.
    """

    def __init__(self, operator: Operator, columns: Any, gram: bool) -> None:
        self.operator, self.gram = operator, gram
        self.first = self._multiply(columns, columns)
        self._current, self._previous = columns, None

    @property
    def _multiply(self) -> Any:
        return self.operator.product if self.gram else self.operator.column_products

    def advance(self, n_steps: int) -> Iterator[tuple[Array, Array]]:
        return (self._step() for _ in range(n_steps))

    def _step(self) -> tuple[Array, Array]:
        operator, current = self.operator, self._current
        if self._previous is None:
            # T_1 = A T_0: the recurrence with T_{-1} = A T_0 would need it, so the first step is taken by halves
            following = operator.step(current * 0.5, operator.zeros(current.shape[1]))
            squares, crosses = self._multiply(following, following), self._multiply(following, current)
        else:
            following, squares, crosses = operator.advance(current, self._previous, self.gram)
        self._previous, self._current = current, following
        return squares, crosses
