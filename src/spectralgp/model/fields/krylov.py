"""Solutions of linear systems and estimates of determinants by products alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import mul, pos
from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal

from spectralgp._basics.checks import Array
from spectralgp._basics.progress import mention

MAX_ITERATIONS = 2_000  # of conjugate gradients
MAX_LANCZOS_STEPS, LANCZOS_TOLERANCE = 100, 1e-5  # relative change of a quadrature at which Lanczos stops
STEPS_BETWEEN = 10  # of Lanczos, between checks of the quadrature
BREAKDOWN = 1e-12  # of the first entry of the tridiagonal matrix: a step this short is the last
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """A preconditioned system for blocks, positive definite in an inner product of its own.

    Blocks ``x`` go with their images ``J x``: the inner product of ``x`` and ``y`` is the sum of ``J x`` times ``y``.
    """

    times: Callable[[Any, Any], Any]  # the system times a block with a given image
    precondition: Callable[[Any], tuple[Any, Any]]  # the preconditioner times a block, and the image of the product
    inner: Callable[[Any, Any], Any]  # sums of the products of two blocks' entries, one per set of signals
    smallest: float  # lower bound of the eigenvalues of the preconditioned system
    image: Callable[[Any], Any] = pos  # ``J x``; by default the block itself
    scaled: Callable[[Any, Any], Any] = mul  # a block with every set of signals times a factor


def conjugate_gradients(system: LinearSystem, rest: Any, start: Any, tolerance: float) -> Any:
    """Solve a system for blocks, to a relative error in energy of at most the square of `tolerance`.

    The energy of the error is bounded by the Gauss-Radau rule with a node at the smallest eigenvalue, by a scalar
    recurrence (Meurant and Tichy, Numerical Algorithms 62, 2013).
    """
    solution, energy = rest * 0.0, 0.0  # energy of the solution, less the gain of further steps
    if start is not None:
        image = system.image(start)
        moved = system.times(start, image)
        solution, energy, rest = start, system.inner(image, rest * 2.0 - moved), rest - moved
    direction = image = rest * 0.0
    before, length, reach = 1.0, 0.0, 1 / system.smallest
    for number in range(MAX_ITERATIONS):
        found, reached = system.precondition(rest)
        now = system.inner(rest, reached)
        if number:
            ahead = np.maximum(reach - length, 0.0)
            reach = ahead / np.maximum(system.smallest * ahead + now / before, TINY)
        if np.all(reach * now <= tolerance**2 * energy):
            break
        direction = found + system.scaled(direction, now / before)
        image = direction if reached is found else reached + system.scaled(image, now / before)
        moved = system.times(direction, image)
        length = now / np.maximum(system.inner(image, moved), TINY)
        solution = solution + system.scaled(direction, length)
        rest = rest - system.scaled(moved, length)
        energy, before = energy + length * now, np.maximum(now, TINY)
        mention(f"solving, iteration {number + 1}")
    return solution


def gauss_quadrature(
    steps: Iterable[tuple[float, float]], between: int = STEPS_BETWEEN, max_steps: int = MAX_LANCZOS_STEPS
) -> tuple[Array, Array]:
    """Nodes and weights of the Gauss rule for ``z^T f(M) z / z^T z`` by Lanczos steps from a probe ``z``.

    The mean logarithm is checked every `between` steps; the steps end when it no longer changes.
    """
    diagonal, below, last = list[float](), list[float](), np.inf
    for entry, length in steps:
        diagonal.append(entry)
        is_last = length <= BREAKDOWN * diagonal[0] or len(diagonal) == max_steps
        if len(diagonal) % between == 0 or is_last:
            nodes, vectors = eigh_tridiagonal(diagonal, below)
            nodes, weights = np.maximum(nodes, TINY), np.square(vectors[0])
            moment, size = float(weights @ np.log(nodes)), float(weights @ np.abs(np.log(nodes)))
            if is_last or abs(moment - last) <= LANCZOS_TOLERANCE * size:
                break
            last = moment
        below.append(length)
        mention(f"log determinant, step {len(diagonal)}")
    return nodes, weights
