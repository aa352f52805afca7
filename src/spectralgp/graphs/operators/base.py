"""Laplacians as operators of the Chebyshev recurrence: the seam, moments by it, and the Lanczos method."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct
from scipy.linalg import eigh_tridiagonal

from spectralgp._basics.checks import Array
from spectralgp._basics.progress import mention
from spectralgp.graphs.operators import blocks
from spectralgp.graphs.operators.randomness import node_normals, node_signs

LANCZOS_STEPS = 200
LANCZOS_TOLERANCE = 1e-7
CHECKED_EVERY_STEP = 200  # steps after which the largest eigenvalue is computed ever less often
BOUND_MARGIN = 1.002  # of the interval over the largest eigenvalue, which Lanczos underestimates
RESIDUALS_BEYOND = 2.0  # residuals of Lanczos by which the interval reaches beyond its eigenvalue


class Operator(ABC):
    """``A = 2 L / bound - I`` acting on blocks of columns, with the nodes along the first axis.

    Blocks are arrays of the operator's own library, in its own order of the nodes; `load` and `unload` translate. The
    `bound` on the eigenvalues of ``L`` starts as `gershgorin`, which always holds; `tighten` shrinks it.
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
        """Block with a one at one node per column, and zeros elsewhere."""

    @abstractmethod
    def random_block(self, draw: Callable[..., Any], n_columns: int, random_state: np.random.Generator) -> Any:
        """Block of random numbers of the nodes, drawn by `node_signs` or `node_normals`."""

    @abstractmethod
    def rows(self) -> Any:
        """Block of two columns: the diagonal of ``L``, and the sums of squares of its other entries in each row."""

    @abstractmethod
    def step(self, current: Any, previous: Any) -> Any:
        """``2 A current - previous``, which may overwrite `previous`."""

    def step_plus(self, current: Any, previous: Any, columns: Any, coefficients: Array) -> Any:
        """Return a `step` plus combined columns."""
        following = self.step(current, previous)
        following += blocks.combine_columns(columns, coefficients)
        return following

    def advance(self, current: Any, previous: Any, gram: bool) -> tuple[Any, Array, Array]:
        """Next block of the recurrence, with its products with itself and with the current block."""
        following = self.step(current, previous)
        multiply = blocks.block_products if gram else blocks.column_products
        return following, multiply(following, following), multiply(following, current)

    def recurrence(self, columns: Any, gram: bool) -> Iterator[tuple[Array, Array]]:
        """Yield products of ``T_k(A)`` times a block, which it overwrites, with itself and the one before; k from 1."""
        multiply = blocks.block_products if gram else blocks.column_products
        previous, current = columns, self.step(columns * 0.5, self.zeros(columns.shape[1]))  # T_1 = A T_0
        yield multiply(current, current), multiply(current, previous)
        while True:
            following, squares, crosses = self.advance(current, previous, gram)
            previous, current = current, following
            yield squares, crosses

    def filtered(self, columns: Any, coefficients: Array) -> Any:
        """``sum_k T_k(A) C_k`` by Clenshaw's recurrence, with ``C_k = columns @ G_k``; the block is not changed."""
        # coefficients G have shape (n_terms, n_columns, n_outputs), or (n_terms, n_columns): a number per column
        n_steps = len(coefficients) - 1
        current = blocks.combine_columns(columns, coefficients[-1])
        previous = self.zeros(coefficients.shape[-1])
        for number in reversed(range(n_steps)):
            if number == 0:  # the last step has A b_1 - b_2 where the others have 2 A b_1 - b_2
                current *= 0.5
            current, previous = self.step_plus(current, previous, columns, coefficients[number]), current
            mention(f"filter {n_steps - number} of {n_steps}")
        return current

    def probed(self, probes: Any, coefficients: Array) -> Any:
        """Mean over probes ``z`` of ``z * f(L) z``, a column per ``f``, of Chebyshev series (n_functions, n_terms)."""
        total = self.zeros(coefficients.shape[0])
        for coefficient, column in zip(coefficients.T, probed_terms(self, probes), strict=False):
            total += blocks.combine_columns(column, coefficient[None])
        return total

    def tridiagonal(self, start: Any) -> Iterator[tuple[float, float]]:
        """Rows of the tridiagonal matrix that `lanczos` makes of ``A``, from a block of one column."""

        def inner(left: Any, right: Any) -> float:
            return float(blocks.block_products(left, right)[0, 0])

        return lanczos(lambda block: self.step(block * 0.5, self.zeros(1)), inner, start)


def random_signs(operator: Operator, n_columns: int, random_state: np.random.Generator) -> Any:
    """Block of independent random signs of the nodes: every operator draws the same."""
    return operator.random_block(node_signs, n_columns, random_state)


def random_normal(operator: Operator, n_columns: int, random_state: np.random.Generator) -> Any:
    """Block of independent standard normal numbers of the nodes: every operator draws the same."""
    return operator.random_block(node_normals, n_columns, random_state)


def probed_terms(operator: Operator, probes: Any) -> Iterator[Any]:
    """Mean over probes ``z`` of ``z * T_k(A) z``, a block of one column for each k = 0, 1, ..."""
    share = np.array([[1 / probes.shape[1]]])
    yield blocks.combine_columns(blocks.row_products(probes, probes), share)
    previous, current = probes * 1, operator.step(probes * 0.5, operator.zeros(probes.shape[1]))
    while True:
        yield blocks.combine_columns(blocks.row_products(probes, current), share)
        previous, current = current, operator.step(current, previous)


def traces(operator: Operator) -> tuple[float, float]:
    """Traces of ``L`` and of its square, from sums over its entries."""
    rows = operator.rows()
    trace, others = blocks.block_products(operator.zeros(1) + 1, rows)[0]
    return float(trace), float(blocks.block_products(rows, rows)[0, 0] + others)


def low_diagonals(operator: Operator) -> Any:
    """Block of three columns: the diagonals of ``T_0(A)``, ``T_1(A)`` and ``T_2(A)``, exactly."""
    rows, scale = operator.rows(), 2 / operator.bound
    ones = operator.zeros(1) + 1
    first = blocks.combine_columns(rows, np.array([[scale], [0.0]])) - ones
    second = 2 * (first * first + blocks.combine_columns(rows, np.array([[0.0], [scale**2]]))) - ones
    return blocks.join_columns(blocks.join_columns(ones, first), second)


def keeps_constants(operator: Operator) -> bool:
    """Whether a constant is an eigenvector, of eigenvalue -1 of ``A``, as for the combinatorial Laplacian."""
    ones = operator.zeros(1) + 1
    missed = operator.step(ones, operator.zeros(1)) + ones * 2
    rounding = 64 * float(np.finfo(str(operator.dtype).rpartition(".")[2]).eps)
    return bool(blocks.column_products(missed, missed)[0] <= operator.n_nodes * rounding**2)


def largest_eigenvalue(operator: Operator) -> tuple[float, float]:
    """Largest eigenvalue of ``L`` by the Lanczos method, and its residual, within which an eigenvalue lies."""
    # if many eigenvalues crowd at the upper end, as on a long ring, 200 steps leave a residual of some thousandths
    # not random signs, often orthogonal to the last eigenvector of a bipartite graph, which consists of signs
    rows = operator.tridiagonal(random_normal(operator, 1, np.random.default_rng(0)))
    value, residual = largest_ritz_value(rows, LANCZOS_TOLERANCE, min(LANCZOS_STEPS, operator.n_nodes))
    return operator.bound * (value + 1) / 2, operator.bound * residual / 2


def tighten(operator: Operator, largest: float, residual: float) -> None:
    """Shrink the interval to the spectrum, with a margin for the error of the Lanczos method."""
    reach = max(BOUND_MARGIN * largest, largest + RESIDUALS_BEYOND * residual)
    operator.bound = min(operator.gershgorin, reach) or 1.0


def lanczos(
    apply: Callable[[Any], Any], inner: Callable[[Any, Any], float], start: Any
) -> Iterator[tuple[float, float]]:
    """Yield the tridiagonal matrix row by row: its entries on the diagonal and next to it, where a zero is the last."""
    # only two vectors are kept: lost orthogonality merely repeats eigenvalues
    current = start * (1 / math.sqrt(inner(start, start)))
    previous, length = None, 0.0
    while True:
        following = apply(current)
        if previous is not None:
            following = following - previous * length
        diagonal = inner(following, current)
        following = following - current * diagonal
        length = math.sqrt(max(inner(following, following), 0.0))
        yield diagonal, length
        previous, current = current, following * (1 / length)


def largest_ritz_value(
    rows: Iterable[tuple[float, float]], tolerance: float, max_steps: int | None = None
) -> tuple[float, float]:
    """Largest eigenvalue of the matrix that `lanczos` yields, until it is within the tolerance of the operator's."""
    diagonal, below = list[float](), list[float]()
    next_check, value, residual = 1, 0.0, math.inf
    for entry, length in rows:
        diagonal.append(entry)
        n_steps = len(diagonal)
        if n_steps in (next_check, max_steps) or length <= tolerance:
            last = (n_steps - 1, n_steps - 1)
            values, vectors = eigh_tridiagonal(diagonal, below, select="i", select_range=last)
            value, residual = float(values[0]), length * abs(float(vectors[-1, 0]))
            if residual <= tolerance or n_steps == max_steps:
                break
            next_check = n_steps + (1 if n_steps < CHECKED_EVERY_STEP else n_steps // 4)
        below.append(length)
    return value, residual


def chebyshev_points(n_points: int) -> Array:
    """``x_q = cos(pi (q + 1/2) / Q)``, the nodes of equation (25), in [-1, 1] from right to left."""
    return np.cos(np.pi * (np.arange(n_points) + 0.5) / n_points)


def chebyshev_coefficients(values: Array) -> Array:
    """Coefficients of the Chebyshev series through values at `chebyshev_points`, along the last axis."""
    coefficients = dct(values, type=2, axis=-1) / values.shape[-1]
    coefficients[..., 0] /= 2
    return coefficients


def quadrature_weights(moments: Array) -> Array:
    """Weights at `chebyshev_points` from moments of ``T_k``, along the first axis: equation (25)."""
    return dct(moments, type=3, axis=0) / moments.shape[0]


class MomentPass:
    """Chebyshev moments ``Y T_k(A) Y^T`` of columns ``Y^T`` (`gram`), or of each alone, by a resumable recurrence.

    Every step gives two moments, since ``2 T_i T_j = T_{i+j} + T_{|i-j|}`` (equation (24)). The columns, a block of the
    operator, are overwritten. Pickles hold the moments alone.
    """

    def __init__(self, operator: Operator, columns: Any, gram: bool) -> None:
        self.gram = gram
        self._moments: list[Any] = [(blocks.block_products if gram else blocks.column_products)(columns, columns)]
        self._recurrence: Iterator[tuple[Array, Array]] | None = operator.recurrence(columns, gram)
        self._go_on(1)

    @classmethod
    def known(cls, moments: Array, gram: bool) -> MomentPass:
        """Pass with known moments alone, for example from a file."""
        known = cls.__new__(cls)
        known.gram, known._moments, known._recurrence = gram, list(moments), None
        return known

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_recurrence": None}

    @property
    def n_moments(self) -> int:
        """Number of moments so far; always odd."""
        return len(self._moments)

    @property
    def moments(self) -> Array:
        """Moments so far, along the first axis."""
        return np.stack(self._moments)

    def release(self) -> None:
        """Free the state of the recurrence, which then cannot continue, and keep the moments."""
        self._recurrence = None

    @property
    def is_released(self) -> bool:
        """Whether the recurrence cannot continue."""
        return self._recurrence is None

    def _go_on(self, n_steps: int, n_wanted: int | None = None) -> None:
        assert self._recurrence is not None or not n_steps, "the state of the recurrence was freed"
        try:
            for squares, crosses in islice(self._recurrence or (), n_steps):
                first = crosses if self.n_moments == 1 else 2 * crosses - self._moments[1]
                self._moments += [first, 2 * squares - self._moments[0]]
                if n_wanted is not None:
                    mention(f"moment {self.n_moments} of {n_wanted}")
        except BaseException:
            self.release()  # a recurrence that was interrupted ends
            raise

    def extend(self, n_moments: int) -> Array:
        """Return the first `n_moments`, computed if new; ArithmeticError if an eigenvalue is outside the interval."""
        self._go_on(max(0, n_moments - self.n_moments + 1) // 2, n_moments)
        moments = self.moments
        sizes = np.diagonal(moments, axis1=1, axis2=2) if self.gram else moments
        if not np.all(np.abs(sizes) <= 1.01 * sizes[0] + 1e-300):  # no moment exceeds the first on [-1, 1]
            raise ArithmeticError("an eigenvalue of the Laplacian lies beyond the interval of the recurrence")
        return moments[:n_moments]
