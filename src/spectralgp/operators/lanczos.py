"""The Lanczos method: a symmetric operator as a tridiagonal matrix, row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from scipy.linalg import eigh_tridiagonal

CHECKED_EVERY_STEP = 200  # steps after which the largest eigenvalue is found anew less and less often


def lanczos(
    apply: Callable[[Any], Any], inner: Callable[[Any, Any], float], start: Any
) -> Iterator[tuple[float, float]]:
    """Yield the entries of the tridiagonal matrix on its diagonal and next to it, one row per step.

    Only two vectors are kept: lost orthogonality merely repeats eigenvalues that have been found. The second entry is
    the length of what is left of the vector; where it is zero, the recurrence cannot go on.
    """
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
    """Largest eigenvalue of the matrix that `lanczos` yields, and how far at most the operator has one from it.

    Rows are asked for until that residual is within the tolerance.
    """
    diagonal: list[float] = []
    below: list[float] = []
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
